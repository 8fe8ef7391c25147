//! Vector and mask instructions: every row, every encoding, every form of operand.

use iced_x86::{
    Decoder, DecoderOptions, EncodingKind, Instruction, InstructionInfoFactory, OpAccess, OpKind,
    Register,
};
use loopwright_x86::asm::table::{Access, Kind, Memory, Place, Tuple, W};
use loopwright_x86::asm::*;

use crate::oracle::*;

/// Encodes one vector instruction, decodes it, and compares.
fn check_vector(vector: &Vector, info: &mut InstructionInfoFactory) {
    let spec = vector.op.spec();
    let form = &spec.form;
    let mut asm = Assembler::new();
    asm.vector(vector);
    let length = asm.here();
    let code = if matches!(vector.rm, Rm::Mem(Mem::Pool(_))) {
        asm.finish(&POOL)
    } else {
        asm.finish(&[])
    };
    let instruction = decode(&code, vector);
    assert_eq!(
        instruction.len(),
        length,
        "length of {vector:?}, decoded as {instruction}"
    );

    let is_mask_row = spec.name.starts_with('k');
    let name = match vector.encoding {
        Encoding::Legacy => spec.name.to_owned(),
        _ if is_mask_row => spec.name.to_owned(),
        _ => format!("v{}", spec.name),
    };
    assert_eq!(
        mnemonic(&instruction),
        name,
        "mnemonic of {vector:?}, decoded as {instruction}"
    );
    let encoding = match vector.encoding {
        Encoding::Legacy => EncodingKind::Legacy,
        Encoding::Vex => EncodingKind::VEX,
        Encoding::Evex => EncodingKind::EVEX,
    };
    assert_eq!(
        instruction.code().encoding(),
        encoding,
        "encoding of {vector:?}"
    );

    // Operands in the order of the manuals.
    let gpr_bytes = if spec.w == W::W1 { 8 } else { 4 };
    let register = |operand: Operand| match operand {
        Operand::Vec(vec) => Meant::Vec(vec),
        Operand::Gpr(gpr) => Meant::Gpr(gpr, gpr_bytes),
        Operand::Mask(mask) => Meant::Mask(mask),
    };
    let reg = register(vector.reg);
    let vvvv = vector
        .vvvv
        .map(register)
        .filter(|_| vector.encoding != Encoding::Legacy);
    let rm = match vector.rm {
        Rm::Operand(operand) => register(operand),
        Rm::Mem(memory) => Meant::Mem(memory),
        Rm::Gathered {
            base,
            index,
            scale,
            disp,
        } => Meant::Gathered {
            base,
            index,
            scale,
            disp,
        },
    };
    let mut meant = Vec::new();
    if form.rm_access == Access::Write {
        meant.push(rm);
        meant.extend(vvvv);
        meant.push(reg);
    } else {
        meant.push(reg);
        let gather = form.memory == Memory::Gathered;
        meant.extend(vvvv.filter(|_| !gather));
        if !(vector.encoding == Encoding::Legacy && matches!(form.place, Place::Vvvv(_))) {
            meant.push(rm);
        }
        meant.extend(vvvv.filter(|_| gather));
    }
    meant.extend(vector.third.map(Meant::Vec));
    meant.extend(vector.imm.map(|imm| Meant::Imm(i64::from(imm), 1)));
    check_operands(&instruction, &code, &meant, vector);

    // Mask, zeroing, broadcast.
    let mask = instruction.op_mask();
    match vector.mask {
        None => assert_eq!(mask, Register::None, "mask of {vector:?}"),
        Some(meant) => assert_eq!(mask.number(), usize::from(meant.0), "mask of {vector:?}"),
    }
    assert_eq!(
        instruction.zeroing_masking(),
        vector.zeroing,
        "zeroing of {vector:?}"
    );
    assert_eq!(
        instruction.is_broadcast(),
        vector.broadcast,
        "broadcast of {vector:?}"
    );

    // The vector length is that of the widest operand.
    let mut widest = (0..instruction.op_count())
        .filter(|&position| instruction.op_kind(position) == OpKind::Register)
        .map(|position| instruction.op_register(position))
        .filter(|register| register.is_vector_register())
        .map(|register| register.size())
        .max()
        .unwrap_or(16);
    if instruction.memory_index().is_vector_register() {
        widest = widest.max(instruction.memory_index().size());
    }
    let memory = matches!(vector.rm, Rm::Mem(_));
    if memory && !vector.broadcast {
        widest = widest.max(instruction.memory_size().size());
    }
    // The one case where no operand has the length: a conversion to a narrower type of one element for all lanes.
    let narrowing =
        vector.broadcast && widest < vector.width.bytes() as usize && spec.name.starts_with("cvt");
    // A gather or widening conversion may have all operands narrower than its destination, never wider.
    if !narrowing {
        assert_eq!(
            widest,
            vector.width.bytes() as usize,
            "vector length of {vector:?}, decoded as {instruction}"
        );
    }

    // The size of the memory operand.
    if memory {
        let moves_some_lanes = spec.name.contains("compress") || spec.name.contains("expand");
        if !moves_some_lanes {
            assert_eq!(
                instruction.memory_size().size(),
                spec.tuple.bytes(vector.width, vector.broadcast) as usize,
                "memory operand of {vector:?}, decoded as {instruction}"
            );
        }
    }

    // What the row says is read and written. A mask or the legacy encoding makes reads of writes, and a register less
    // or compared with itself is not read at all.
    let with_itself = vvvv == Some(rm);
    if vector.mask.is_none() && vector.encoding != Encoding::Legacy && !with_itself {
        let info = info.info(&instruction);
        let (first, last) = if form.rm_access == Access::Write {
            (form.rm_access, form.reg_access)
        } else {
            (form.reg_access, form.rm_access)
        };
        let position =
            |meant_operand: Meant| meant.iter().position(|&operand| operand == meant_operand);
        let other = if form.rm_access == Access::Write {
            reg
        } else {
            rm
        };
        check_access(info.op0_access(), first, vector, &instruction);
        if let Some(at) = position(other).filter(|&at| at > 0) {
            check_access(info.op_access(at as u32), last, vector, &instruction);
        }
    }
}

fn check_access(found: OpAccess, meant: Access, vector: &Vector, instruction: &Instruction) {
    let right = match meant {
        Access::Read => matches!(found, OpAccess::Read | OpAccess::CondRead),
        Access::Write => matches!(found, OpAccess::Write | OpAccess::CondWrite),
        Access::Update => matches!(found, OpAccess::ReadWrite | OpAccess::ReadCondWrite),
    };
    assert!(
        right,
        "{vector:?}, decoded as {instruction}: the row says {meant:?}, the decoder {found:?}"
    );
}

/// What the operand `rm` shall be.
#[derive(Clone, Copy)]
enum Shape {
    Register(u8),
    Memory(Mem),
    Any,
}

/// An instruction of a row with the operands that its form has; none where the shape is not the form's.
fn make(
    op: Vop,
    encoding: Encoding,
    width: Width,
    reg: Option<u8>,
    shape: Shape,
    random: &mut Random,
) -> Option<Vector> {
    let spec = op.spec();
    let form = &spec.form;
    let evex = encoding == Encoding::Evex;
    let registers = if evex { 32 } else { 16 };
    let operand = |kind: Kind, number: u8| match kind {
        Kind::Vec => Operand::Vec(Xmm(number % registers)),
        Kind::Gpr => Operand::Gpr(Gpr(number % 16)),
        Kind::Mask => Operand::Mask(Kreg(number % 8)),
    };
    let reg = operand(form.reg, reg.unwrap_or_else(|| random.below(32) as u8));
    let legacy_shift = encoding == Encoding::Legacy && matches!(form.place, Place::Vvvv(_));
    let memory_allowed =
        form.memory == Memory::Plain && (evex || !matches!(form.place, Place::Vvvv(_)));
    let wants_memory = match shape {
        Shape::Register(_) => false,
        Shape::Memory(_) => true,
        Shape::Any => form.rm.is_none() || memory_allowed && random.flip(),
    };
    let broadcast = wants_memory && evex && spec.broadcasts() && random.below(3) == 0;
    let unit = spec.tuple.bytes(width, broadcast) as i32;
    let rm = match (shape, form.memory) {
        (Shape::Register(_), Memory::Gathered) => return None,
        (_, Memory::Gathered) => {
            let (base, scale, disp) = match shape {
                Shape::Memory(Mem::At {
                    base,
                    index: Some((_, scale)),
                    disp,
                }) => (base, scale, disp),
                Shape::Any => (
                    random.gpr(),
                    1 << random.below(4),
                    random.displacement(unit),
                ),
                _ => return None,
            };
            Rm::Gathered {
                base,
                index: Xmm(random.below(u64::from(registers)) as u8),
                scale,
                disp,
            }
        }
        (Shape::Register(_), _) | (Shape::Any, _) if !wants_memory => {
            let number = match shape {
                Shape::Register(number) => number,
                _ => random.below(32) as u8,
            };
            if legacy_shift {
                Rm::Operand(reg)
            } else {
                Rm::Operand(operand(form.rm?, number))
            }
        }
        _ if !memory_allowed => return None,
        (Shape::Memory(memory), _) => Rm::Mem(memory),
        _ => Rm::Mem(random.memory(unit)),
    };
    let vvvv = match form.vvvv {
        Some(_) if evex && form.memory == Memory::Gathered => None,
        Some(_) if encoding == Encoding::Legacy => random.flip().then_some(reg),
        Some(kind) => Some(operand(kind, random.below(32) as u8)),
        None => None,
    };
    let mut vector = Vector::new(op, width, encoding, reg, vvvv, rm);
    vector.imm = form.immediate.then(|| random.next() as u8);
    vector.third = form.third.then(|| Xmm(random.below(16) as u8));
    vector.broadcast = broadcast;
    if evex && spec.maskable() && (form.memory == Memory::Gathered || random.flip()) {
        vector.mask = Some(Kreg(1 + random.below(7) as u8));
        vector.zeroing =
            spec.zeroable() && !(wants_memory && form.rm_access != Access::Read) && random.flip();
    }
    // A gather whose registers are not all different is no instruction.
    if let (Rm::Gathered { index, .. }, Operand::Vec(reg)) = (vector.rm, vector.reg) {
        let clash = reg == index
            || vector.vvvv == Some(Operand::Vec(index))
            || vector.vvvv == Some(vector.reg);
        if clash {
            return None;
        }
    }
    Some(vector)
}

/// Every row with every encoding and width that it has.
fn rows() -> impl Iterator<Item = (Vop, Encoding, Width)> {
    Vop::ALL
        .iter()
        .flat_map(|&op| {
            Encoding::ALL.into_iter().flat_map(move |encoding| {
                Width::ALL
                    .into_iter()
                    .map(move |width| (op, encoding, width))
            })
        })
        .filter(|&(op, encoding, width)| op.spec().has_width(encoding, width))
}

#[test]
fn every_row_has_an_encoding_at_some_width() {
    for &op in Vop::ALL {
        for encoding in Encoding::ALL {
            let widths = Width::ALL
                .iter()
                .filter(|&&width| op.spec().has_width(encoding, width))
                .count();
            assert_eq!(
                widths > 0,
                op.spec().has(encoding),
                "{op:?} in {encoding:?}"
            );
        }
        assert!(
            Encoding::ALL
                .iter()
                .any(|&encoding| op.spec().has(encoding)),
            "{op:?} has no encoding"
        );
    }
}

#[test]
fn every_row_with_every_register() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut info = InstructionInfoFactory::new();
    let mut count = 0;
    for (op, encoding, width) in rows() {
        let before = count;
        for number in 0..32 {
            for shape in [
                Shape::Register(number),
                Shape::Register(31 - number),
                Shape::Any,
            ] {
                if let Some(vector) = make(op, encoding, width, Some(number), shape, &mut random) {
                    check_vector(&vector, &mut info);
                    count += 1;
                }
            }
        }
        assert!(
            count > before,
            "{op:?} {encoding:?} {width:?} was never made"
        );
    }
    assert!(count > 100_000, "only {count} instructions were checked");
}

#[test]
fn every_row_with_every_form_of_address() {
    let mut random = Random(0xfeed_5678_9abc_def1);
    let mut info = InstructionInfoFactory::new();
    let mut count = 0;
    for (op, encoding, width) in rows() {
        let unit = op.spec().tuple.bytes(width, false) as i32;
        for base in 0..16 {
            let index = match random.below(16) as u8 {
                4 => 12,
                other => other,
            };
            for index in [
                None,
                Some((Gpr(index), 1 << random.below(4))),
                Some((R12, 8)),
            ] {
                let edges = [
                    0,
                    unit,
                    127 * unit,
                    128 * unit,
                    -128 * unit,
                    -129 * unit,
                    unit / 2,
                    random.pick(&DISPLACEMENTS),
                ];
                for disp in edges {
                    let memory = Mem::At {
                        base: Gpr(base),
                        index,
                        disp,
                    };
                    if let Some(vector) = make(
                        op,
                        encoding,
                        width,
                        None,
                        Shape::Memory(memory),
                        &mut random,
                    ) {
                        check_vector(&vector, &mut info);
                        count += 1;
                    }
                }
            }
        }
        let memory = Mem::Pool(random.below(4096) as u32);
        if let Some(vector) = make(
            op,
            encoding,
            width,
            None,
            Shape::Memory(memory),
            &mut random,
        ) {
            check_vector(&vector, &mut info);
            count += 1;
        }
    }
    assert!(count > 400_000, "only {count} instructions were checked");
}

/// Sets bits of the last byte of an EVEX prefix and tells whether what comes out is still an instruction.
fn decodes_with(vector: &Vector, bits: u8) -> bool {
    let mut asm = Assembler::new();
    asm.vector(vector);
    let mut code = asm.finish(&[]);
    code.bytes[3] |= bits;
    !Decoder::with_ip(64, &code.bytes, ADDRESS, DecoderOptions::NONE)
        .decode()
        .is_invalid()
}

#[test]
fn rows_say_of_all_masks_zeroing_and_broadcasts_that_there_are() {
    const MASK: u8 = 0x01;
    const ZEROING: u8 = 0x80;
    const BROADCAST: u8 = 0x10;
    let mut random = Random(0x5eed_5678_9abc_def1);
    for (op, encoding, width) in rows().filter(|&(_, encoding, _)| encoding == Encoding::Evex) {
        let spec = op.spec();
        if spec.form.memory == Memory::Gathered {
            continue;
        }
        let unmasked = |vector: Vector| Vector {
            mask: None,
            zeroing: false,
            broadcast: false,
            ..vector
        };
        let in_register =
            make(op, encoding, width, None, Shape::Register(3), &mut random).map(unmasked);
        let in_memory = Shape::Memory(Mem::at(RDI, 0));
        let in_memory = make(op, encoding, width, None, in_memory, &mut random).map(unmasked);
        let any = in_register
            .or(in_memory)
            .expect("every row has a register or a memory form");
        assert_eq!(
            decodes_with(&any, MASK),
            spec.maskable(),
            "{op:?} {width:?} with a mask"
        );
        assert_eq!(
            decodes_with(&any, MASK | ZEROING),
            spec.zeroable(),
            "{op:?} {width:?} with zeroing"
        );
        if let Some(in_memory) = in_memory {
            assert_eq!(
                decodes_with(&in_memory, BROADCAST),
                spec.broadcasts(),
                "{op:?} {width:?} with a broadcast"
            );
        }
    }
}

/// Random instructions of all rows.
fn fuzz(count: u32, seed: u64) {
    let mut random = Random(seed);
    let mut info = InstructionInfoFactory::new();
    let rows: Vec<_> = rows().collect();
    for _ in 0..count {
        let (op, encoding, width) = random.pick(&rows);
        if let Some(vector) = make(op, encoding, width, None, Shape::Any, &mut random) {
            check_vector(&vector, &mut info);
        }
    }
}

#[test]
fn random_vector_instructions() {
    fuzz(20_000, 0x9e37_79b9_7f4a_7c15);
}

#[test]
#[ignore = "millions of instructions"]
fn many_random_vector_instructions() {
    for seed in 1..=5 {
        fuzz(1_000_000, 0x9e37_79b9_7f4a_7c15 ^ seed);
    }
}

#[test]
fn the_displacement_is_compressed_by_the_size_of_the_operand() {
    let add = |tuple_disp, broadcast, width| {
        let mut vector = Vector::new(
            Vop::Addps,
            width,
            Encoding::Evex,
            Operand::Vec(Xmm(0)),
            Some(Operand::Vec(Xmm(1))),
            Rm::Mem(Mem::at(RAX, tuple_disp)),
        );
        vector.broadcast = broadcast;
        let mut asm = Assembler::new();
        asm.vector(&vector);
        asm.here()
    };
    assert_eq!(
        add(64 * 127, false, Width::W512),
        7,
        "127 vectors are one byte"
    );
    assert_eq!(
        add(64 * 128, false, Width::W512),
        10,
        "128 vectors are four bytes"
    );
    assert_eq!(
        add(32, false, Width::W512),
        10,
        "half a vector is four bytes"
    );
    assert_eq!(add(32, false, Width::W256), 7);
    assert_eq!(add(-16 * 128, false, Width::W128), 7);
    assert_eq!(
        add(4 * 127, true, Width::W512),
        7,
        "a broadcast counts elements"
    );
    assert_eq!(Tuple::Full(4).bytes(Width::W512, true), 4);
}

#[test]
fn what_a_row_has_not_panics_with_its_name() {
    let cases: [(Vector, &str); 7] = [
        (
            plain(Vop::Pternlogd, Encoding::Vex, Width::W128),
            "Pternlogd (pternlogd) has no Vex encoding",
        ),
        (
            plain(Vop::Addps, Encoding::Vex, Width::W512),
            "Addps (addps) has no Vex encoding of W512",
        ),
        (
            plain(Vop::Sqrtps, Encoding::Vex, Width::W128),
            "Sqrtps (sqrtps) was given a second operand",
        ),
        (
            plain(Vop::Shufps, Encoding::Vex, Width::W128),
            "Shufps (shufps) was given no immediate",
        ),
        (
            Vector {
                mask: Some(Kreg(0)),
                ..plain(Vop::Addps, Encoding::Evex, Width::W512)
            },
            "Addps (addps) was given a mask that it cannot have",
        ),
        (
            Vector {
                reg: Operand::Vec(Xmm(16)),
                ..plain(Vop::Addps, Encoding::Vex, Width::W256)
            },
            "Addps (addps) was given Vec(Xmm(16)) for reg",
        ),
        (
            Vector {
                broadcast: true,
                ..plain(Vop::Paddb, Encoding::Evex, Width::W512)
            },
            "Paddb (paddb) was given a broadcast that it cannot have",
        ),
    ];
    for (vector, message) in cases {
        let panic =
            std::panic::catch_unwind(|| Assembler::new().vector(&vector)).expect_err(message);
        let text = panic
            .downcast_ref::<String>()
            .expect("a message with the row");
        assert!(
            text.starts_with(message),
            "expected {message:?}, got {text:?}"
        );
    }
}

/// `op xmm1, xmm2, xmm3`.
fn plain(op: Vop, encoding: Encoding, width: Width) -> Vector {
    let register = |number| Operand::Vec(Xmm(number));
    Vector::new(
        op,
        width,
        encoding,
        register(1),
        Some(register(2)),
        Rm::Operand(register(3)),
    )
}
