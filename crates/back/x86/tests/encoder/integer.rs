//! Integer and tile instructions, jumps, alignment and the pool.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use loopwright_x86::asm::*;

use crate::oracle::*;

/// Encodes with `emit`, decodes and compares.
fn check_integer(emit: impl FnOnce(&mut Assembler), name: &str, meant: &[Meant]) -> Instruction {
    let mut asm = Assembler::new();
    emit(&mut asm);
    let length = asm.here();
    let pool = meant
        .iter()
        .any(|operand| matches!(operand, Meant::Mem(Mem::Pool(_))));
    let code = if pool {
        asm.finish(&POOL)
    } else {
        asm.finish(&[])
    };
    let what = (name, meant);
    let instruction = decode(&code, &what);
    assert_eq!(
        instruction.len(),
        length,
        "length of {what:?}, decoded as {instruction}"
    );
    assert_eq!(
        mnemonic(&instruction),
        name,
        "mnemonic of {what:?}, decoded as {instruction}"
    );
    check_operands(&instruction, &code, meant, &what);
    instruction
}

const VALUES: [i32; 11] = [
    0,
    1,
    -1,
    127,
    128,
    -128,
    -129,
    255,
    32767,
    i32::MAX,
    i32::MIN,
];

#[test]
fn integer_instructions_with_two_registers() {
    use Alu::*;
    for a in (0..16).map(Gpr) {
        for b in (0..16).map(Gpr) {
            for bits in Bits::ALL {
                let n = bits.bytes();
                let pair = [Meant::Gpr(a, n), Meant::Gpr(b, n)];
                check_integer(|asm| asm.mov(bits, a, b), "mov", &pair);
                check_integer(|asm| asm.test(bits, a, b), "test", &pair);
                for op in [Add, Or, Adc, Sbb, And, Sub, Xor, Cmp] {
                    check_integer(
                        |asm| asm.alu(op, bits, a, b),
                        &format!("{op:?}").to_lowercase(),
                        &pair,
                    );
                }
                check_extension(bits, false, a, b);
                check_extension(bits, true, a, b);
                if bits == Bits::B8 {
                    continue;
                }
                check_integer(|asm| asm.imul(bits, a, b), "imul", &pair);
                for value in VALUES {
                    let immediate = Meant::Imm(i64::from(value), n.min(4));
                    check_integer(
                        |asm| asm.imul_imm(bits, a, b, value),
                        "imul",
                        &[pair[0], pair[1], immediate],
                    );
                }
                for (condition, suffix) in Cond::ALL.into_iter().zip(CONDITIONS) {
                    check_integer(
                        |asm| asm.cmov(condition, bits, a, b),
                        &format!("cmov{suffix}"),
                        &pair,
                    );
                }
                use BitCount::*;
                for op in [Popcnt, Lzcnt, Tzcnt, Bsr, Bsf] {
                    check_integer(
                        |asm| asm.bit_count(op, bits, a, b),
                        &format!("{op:?}").to_lowercase(),
                        &pair,
                    );
                }
            }
        }
    }
}

const CONDITIONS: [&str; 16] = [
    "o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g",
];

/// The mnemonic and sizes of a widening move.
fn extension(bits: Bits, signed: bool) -> (&'static str, u32, u32) {
    match (bits, signed) {
        (Bits::B8, true) => ("movsx", 8, 1),
        (Bits::B8, false) => ("movzx", 4, 1),
        (Bits::B16, true) => ("movsx", 8, 2),
        (Bits::B16, false) => ("movzx", 4, 2),
        (Bits::B32, true) => ("movsxd", 8, 4),
        (Bits::B32, false) => ("mov", 4, 4),
        (Bits::B64, _) => ("mov", 8, 8),
    }
}

fn check_extension(bits: Bits, signed: bool, to: Gpr, from: Gpr) {
    let (name, to_bytes, from_bytes) = extension(bits, signed);
    check_integer(
        |asm| asm.extend(bits, signed, to, from),
        name,
        &[Meant::Gpr(to, to_bytes), Meant::Gpr(from, from_bytes)],
    );
}

#[test]
fn integer_instructions_with_one_register() {
    for r in (0..16).map(Gpr) {
        for bits in Bits::ALL {
            let n = bits.bytes();
            let one = [Meant::Gpr(r, n)];
            for value in VALUES {
                let immediate = Meant::Imm(i64::from(value), n.min(4));
                for op in [
                    Alu::Add,
                    Alu::Or,
                    Alu::Adc,
                    Alu::Sbb,
                    Alu::And,
                    Alu::Sub,
                    Alu::Xor,
                    Alu::Cmp,
                ] {
                    let name = format!("{op:?}").to_lowercase();
                    check_integer(
                        |asm| asm.alu_imm(op, bits, r, value),
                        &name,
                        &[one[0], immediate],
                    );
                }
            }
            check_integer(|asm| asm.unary(Unary::Not, bits, r), "not", &one);
            check_integer(|asm| asm.unary(Unary::Neg, bits, r), "neg", &one);
            check_integer(|asm| asm.mul_wide(bits, false, r), "mul", &one);
            check_integer(|asm| asm.mul_wide(bits, true, r), "imul", &one);
            check_integer(|asm| asm.divide(bits, false, r), "div", &one);
            check_integer(|asm| asm.divide(bits, true, r), "idiv", &one);
            for op in [Shift::Shl, Shift::Shr, Shift::Sar, Shift::Rol, Shift::Ror] {
                let name = format!("{op:?}").to_lowercase();
                for by in [0, 1, 2, 7, 31, 63] {
                    let shift = [one[0], Meant::Imm(i64::from(by), 1)];
                    check_integer(|asm| asm.shift_imm(op, bits, r, by), &name, &shift);
                }
                check_integer(
                    |asm| asm.shift_cl(op, bits, r),
                    &name,
                    &[one[0], Meant::Gpr(RCX, 1)],
                );
            }
        }
        for (condition, suffix) in Cond::ALL.into_iter().zip(CONDITIONS) {
            check_integer(
                |asm| asm.set(condition, r),
                &format!("set{suffix}"),
                &[Meant::Gpr(r, 1)],
            );
        }
        check_integer(|asm| asm.push(r), "push", &[Meant::Gpr(r, 8)]);
        check_integer(|asm| asm.pop(r), "pop", &[Meant::Gpr(r, 8)]);
        check_integer(|asm| asm.call(r), "call", &[Meant::Gpr(r, 8)]);
    }
}

#[test]
fn constants_take_the_shortest_move() {
    for r in (0..16).map(Gpr) {
        let high = usize::from(r.0 >= 8);
        for (value, length, bytes) in [
            (0, 5 + high, 4),
            (1, 5 + high, 4),
            (i64::from(i32::MAX), 5 + high, 4),
            (i64::from(u32::MAX), 5 + high, 4),
            (-1, 7, 8),
            (i64::from(i32::MIN), 7, 8),
            (i64::from(i32::MIN) - 1, 10, 8),
            (1 << 32, 10, 8),
            (i64::MAX, 10, 8),
            (i64::MIN, 10, 8),
        ] {
            let meant = [Meant::Gpr(r, bytes), Meant::Imm(value, bytes)];
            let instruction = check_integer(|asm| asm.mov_imm(r, value), "mov", &meant);
            assert_eq!(instruction.len(), length, "{instruction} of {value}");
        }
    }
}

#[test]
fn integer_instructions_with_memory() {
    let mut random = Random(0xabcd_ef01_2345_6789);
    for _ in 0..4000 {
        let m = random.memory(1);
        let r = random.gpr();
        let memory = Meant::Mem(m);
        for bits in Bits::ALL {
            let n = bits.bytes();
            let register = Meant::Gpr(r, n);
            for signed in [false, true] {
                let (name, to_bytes, from_bytes) = extension(bits, signed);
                let load = [Meant::Gpr(r, to_bytes), memory];
                let instruction = check_integer(|asm| asm.load(bits, signed, r, m), name, &load);
                assert_eq!(
                    instruction.memory_size().size(),
                    from_bytes as usize,
                    "{instruction}"
                );
            }
            check_integer(|asm| asm.store(bits, m, r), "mov", &[memory, register]);
            let value = random.pick(&VALUES);
            let store = [memory, Meant::Imm(i64::from(value), n.min(4))];
            let instruction = check_integer(|asm| asm.store_imm(bits, m, value), "mov", &store);
            assert_eq!(
                instruction.memory_size().size(),
                n as usize,
                "{instruction}"
            );
            for op in [
                Alu::Add,
                Alu::Or,
                Alu::Adc,
                Alu::Sbb,
                Alu::And,
                Alu::Sub,
                Alu::Xor,
                Alu::Cmp,
            ] {
                let name = format!("{op:?}").to_lowercase();
                check_integer(
                    |asm| asm.alu_mem(op, bits, r, m),
                    &name,
                    &[register, memory],
                );
            }
            if bits != Bits::B8 {
                check_integer(|asm| asm.imul_mem(bits, r, m), "imul", &[register, memory]);
            }
            let locked = [memory, register];
            assert!(
                check_integer(|asm| asm.lock_cmpxchg(bits, m, r), "cmpxchg", &locked)
                    .has_lock_prefix()
            );
            assert!(
                check_integer(|asm| asm.lock_xadd(bits, m, r), "xadd", &locked).has_lock_prefix()
            );
            check_integer(|asm| asm.xchg(bits, m, r), "xchg", &locked);
        }
        check_integer(|asm| asm.lea(r, m), "lea", &[Meant::Gpr(r, 8), memory]);
        for kind in [Prefetch::T0, Prefetch::T1, Prefetch::T2, Prefetch::Nta] {
            let name = format!("prefetch{kind:?}").to_lowercase();
            check_integer(|asm| asm.prefetch(kind, m), &name, &[memory]);
        }
    }
}

#[test]
fn instructions_without_operands() {
    check_integer(Assembler::ret, "ret", &[]);
    check_integer(Assembler::mfence, "mfence", &[]);
    check_integer(Assembler::sfence, "sfence", &[]);
    check_integer(Assembler::vzeroupper, "vzeroupper", &[]);
    check_integer(Assembler::trap, "ud2", &[]);
    check_integer(|asm| asm.sign_extend_rax(Bits::B16), "cwd", &[]);
    check_integer(|asm| asm.sign_extend_rax(Bits::B32), "cdq", &[]);
    check_integer(|asm| asm.sign_extend_rax(Bits::B64), "cqo", &[]);
}

#[test]
fn tiles() {
    let mut random = Random(0x7777_ef01_2345_6789);
    for _ in 0..2000 {
        let tile = |random: &mut Random| Tmm(random.below(8) as u8);
        let (to, a, b) = (tile(&mut random), tile(&mut random), tile(&mut random));
        let m = random.memory(1);
        check_integer(
            |asm| asm.tile(&Tile::Configure(m)),
            "ldtilecfg",
            &[Meant::Mem(m)],
        );
        check_integer(|asm| asm.tile(&Tile::Release), "tilerelease", &[]);
        check_integer(
            |asm| asm.tile(&Tile::Zero(to)),
            "tilezero",
            &[Meant::Tile(to)],
        );
        if matches!(m, Mem::At { .. }) {
            let meant = [Meant::Tile(to), Meant::Mem(m)];
            check_integer(
                |asm| asm.tile(&Tile::Load { to, from: m }),
                "tileloadd",
                &meant,
            );
            let meant = [Meant::Mem(m), Meant::Tile(to)];
            check_integer(
                |asm| asm.tile(&Tile::Store { to: m, from: to }),
                "tilestored",
                &meant,
            );
        }
        // The decoder refuses products whose tiles are not all different, as the machine does.
        if to == a || to == b || a == b {
            continue;
        }
        let names = ["tdpbf16ps", "tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud"];
        for (kind, name) in TileDot::ALL.into_iter().zip(names) {
            let meant = [Meant::Tile(to), Meant::Tile(a), Meant::Tile(b)];
            check_integer(|asm| asm.tile(&Tile::Dot { kind, to, a, b }), name, &meant);
        }
    }
}

/// All instructions of a finished code before its pool.
fn decode_all(code: &Code) -> Vec<Instruction> {
    Decoder::with_ip(
        64,
        &code.bytes[..code.pool_at],
        ADDRESS,
        DecoderOptions::NONE,
    )
    .iter()
    .collect()
}

#[test]
fn jumps_reach_their_labels() {
    // Distances around the edge of the short form, and far ones.
    for gap in [
        0_usize, 1, 100, 123, 124, 125, 126, 127, 128, 129, 130, 200, 70_000,
    ] {
        for condition in [None, Some(Cond::Less), Some(Cond::Parity)] {
            let jump = |asm: &mut Assembler, label| match condition {
                None => asm.jump(label),
                Some(condition) => asm.jump_if(condition, label),
            };
            let mut asm = Assembler::new();
            let (back, forward) = (asm.label(), asm.label());
            asm.bind(back);
            (0..gap).for_each(|_| asm.ret());
            let first = asm.here();
            jump(&mut asm, back);
            let second = asm.here();
            jump(&mut asm, forward);
            (0..gap).for_each(|_| asm.ret());
            asm.bind(forward);
            asm.ret();
            let code = asm.finish(&[]);
            let instructions = decode_all(&code);
            let at = |offset: usize| {
                *instructions
                    .iter()
                    .find(|i| i.ip() == ADDRESS + offset as u64)
                    .expect("an instruction at the jump")
            };
            check_operands(
                &at(first),
                &code,
                &[Meant::Code(code.offset(back))],
                &(gap, condition),
            );
            check_operands(
                &at(second),
                &code,
                &[Meant::Code(code.offset(forward))],
                &(gap, condition),
            );
            assert_eq!(code.offset(back), 0);
            let expected = match condition {
                None => "jmp",
                Some(Cond::Less) => "jl",
                Some(_) => "jp",
            };
            assert_eq!(
                (mnemonic(&at(first)), mnemonic(&at(second))),
                (expected.to_owned(), expected.to_owned())
            );
            let short = gap + 2 <= 128;
            assert_eq!(
                at(first).len() == 2,
                short,
                "a backward jump over {gap} bytes: {}",
                at(first).len()
            );
        }
    }
    for (condition, suffix) in Cond::ALL.into_iter().zip(CONDITIONS) {
        let mut asm = Assembler::new();
        let label = asm.label();
        asm.jump_if(condition, label);
        asm.bind(label);
        assert_eq!(
            mnemonic(&decode_all(&asm.finish(&[]))[0]),
            format!("j{suffix}")
        );
        assert_eq!(condition.negated().negated(), condition);
    }
}

#[test]
fn calls_and_addresses_of_code_reach_their_labels() {
    for r in (0..16).map(Gpr) {
        let mut asm = Assembler::new();
        let (before, behind) = (asm.label(), asm.label());
        asm.bind(before);
        asm.call_label(behind);
        asm.lea_label(r, behind);
        asm.lea_label(r, before);
        asm.bind(behind);
        asm.call_label(before);
        let code = asm.finish(&[]);
        let instructions = decode_all(&code);
        let names: Vec<_> = instructions.iter().map(Instruction::mnemonic).collect();
        assert_eq!(
            names,
            [Mnemonic::Call, Mnemonic::Lea, Mnemonic::Lea, Mnemonic::Call]
        );
        let behind = ADDRESS + code.offset(behind) as u64;
        assert_eq!(instructions[0].near_branch_target(), behind);
        assert_eq!(instructions[1].memory_displacement64(), behind);
        assert_eq!(instructions[2].memory_displacement64(), ADDRESS);
        assert_eq!(instructions[3].near_branch_target(), ADDRESS);
        assert!(
            is_gpr(instructions[1].op0_register(), r),
            "{}",
            instructions[1]
        );
    }
}

#[test]
fn alignment_is_few_long_nops() {
    for start in 0..64 {
        for to in [1, 2, 4, 16, 32, 64] {
            let mut asm = Assembler::new();
            (0..start).for_each(|_| asm.ret());
            asm.align(to);
            let end = asm.here();
            assert_eq!(end, (start as usize).next_multiple_of(to as usize));
            let code = asm.finish(&[]);
            let nops: Vec<_> = decode_all(&code).into_iter().skip(start as usize).collect();
            assert!(
                nops.iter().all(|nop| nop.mnemonic() == Mnemonic::Nop),
                "{nops:?}"
            );
            assert_eq!(nops.len(), (end - start as usize).div_ceil(9));
        }
    }
}

#[test]
fn the_pool_lies_behind_the_code() {
    let mut asm = Assembler::new();
    asm.load(Bits::B64, false, RAX, Mem::Pool(8));
    asm.ret();
    let code = asm.finish(&[7; 16]);
    assert_eq!((code.pool_at, code.bytes.len()), (64, 80));
    assert!(
        code.bytes[8..64].iter().all(|&byte| byte == 0xcc),
        "what lies between traps"
    );
    assert_eq!(Assembler::new().finish(&[]).bytes, []);
}
