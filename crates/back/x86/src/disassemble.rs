//! Machine code as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use iced_x86::{
    Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, OpKind, SymbolResolver,
    SymbolResult,
};

use crate::profile::Symbol;

/// The name of the constant pool in operands.
const POOL: &str = "pool";

/// Machine code in Intel's syntax, one instruction a line, with the names of its functions, labels where it jumps to,
/// and its constants as hexadecimal data.
///
/// `bytes` is code with the pool behind it from `pool_at` on, and `base` the address that it is decoded at. The text
/// has offsets, not addresses, so the same code gives the same text wherever it lies.
pub fn disassemble(bytes: &[u8], base: u64, symbols: &[Symbol], pool_at: usize) -> String {
    let pool_at = pool_at.min(bytes.len());
    let instructions = decode(&bytes[..pool_at], base);
    let names = Names::new(&instructions, base, symbols, pool_at, bytes.len());
    formatted(bytes, &instructions, names)
}

/// Machine code as [`disassemble`] has it, and behind it the bytes, 32 a line: the same text in every process. Numbers that are
/// addresses of this process have names in the first part and are zeros in the second; `outside` has those of this code alone.
pub(crate) fn listing(
    bytes: &[u8],
    symbols: &[Symbol],
    pool_at: usize,
    outside: &[(u64, String)],
) -> String {
    let pool_at = pool_at.min(bytes.len());
    let instructions = decode(&bytes[..pool_at], 0);
    let mut names = Names::new(&instructions, 0, symbols, pool_at, bytes.len());
    names.outside.extend(outside.iter().cloned());
    let mut shown = bytes.to_vec();
    for instruction in &instructions {
        let last = instruction.op_count().checked_sub(1);
        let is_address = last.is_some_and(|at| {
            instruction.op_kind(at) == OpKind::Immediate64
                && names.outside(instruction.immediate64()).is_some()
        });
        if is_address {
            let end = instruction.next_ip() as usize;
            shown[end - 8..end].fill(0);
        }
    }
    let mut text = formatted(bytes, &instructions, names);
    text.push_str("bytes:\n");
    for (row, chunk) in shown.chunks(32).enumerate() {
        let data: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        line_of(&mut text, row * 32, &data.concat());
    }
    text
}

fn formatted(bytes: &[u8], instructions: &[Instruction], names: Names) -> String {
    let (base, pool_at) = (names.base, names.pool_at);
    let mut formatter = IntelFormatter::with_options(Some(Box::new(names.clone())), None);
    let options = formatter.options_mut();
    options.set_space_after_operand_separator(true);
    options.set_uppercase_hex(false);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_show_branch_size(false);
    options.set_rip_relative_addresses(false);

    let mut text = String::new();
    let mut line = String::new();
    for instruction in instructions {
        let offset = (instruction.ip() - base) as usize;
        names.headings(offset, &mut text);
        line.clear();
        formatter.format(instruction, &mut line);
        line_of(&mut text, offset, &line);
    }
    let end = instructions
        .last()
        .map_or(0, |last| (last.next_ip() - base) as usize);
    names.headings(end, &mut text);
    if pool_at < bytes.len() {
        let _ = writeln!(text, "{POOL}:");
        for (row, chunk) in bytes[pool_at..].chunks(16).enumerate() {
            let data: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
            line_of(&mut text, row * 16, &data.join(" "));
        }
    }
    text
}

/// `offset  what`.
fn line_of(text: &mut String, offset: usize, what: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{offset:6x}  {what}");
}

/// All instructions but for the traps between the code and its pool.
fn decode(code: &[u8], base: u64) -> Vec<Instruction> {
    let end = code
        .iter()
        .rposition(|&byte| byte != 0xcc)
        .map_or(0, |last| last + 1);
    let mut decoder = Decoder::with_ip(64, code, base, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    // A last instruction may end in bytes that look like traps; it is decoded whole.
    while decoder.can_decode() && decoder.position() < end {
        instructions.push(decoder.decode());
    }
    instructions
}

/// The names of places in the code.
#[derive(Clone)]
struct Names {
    base: u64,
    functions: BTreeMap<usize, Vec<String>>,
    labels: BTreeMap<usize, String>,
    pool_at: usize,
    len: usize,
    /// What lies outside of the code and whose address is a number in it: another one in every process.
    outside: Vec<(u64, String)>,
}

impl Names {
    fn new(
        instructions: &[Instruction],
        base: u64,
        symbols: &[Symbol],
        pool_at: usize,
        len: usize,
    ) -> Self {
        let mut functions = BTreeMap::<usize, Vec<String>>::new();
        for symbol in symbols {
            functions
                .entry(symbol.offset)
                .or_default()
                .push(symbol.name.clone());
        }
        let targets: BTreeSet<usize> = instructions
            .iter()
            .filter_map(target)
            .filter_map(|target| usize::try_from(target.checked_sub(base)?).ok())
            .filter(|offset| *offset < pool_at && !functions.contains_key(offset))
            .collect();
        let labels = targets
            .into_iter()
            .enumerate()
            .map(|(n, offset)| (offset, format!(".L{}", n + 1)))
            .collect();
        Names {
            base,
            functions,
            labels,
            pool_at,
            len,
            outside: [
                (Some(crate::poll::attention()), "attention"),
                (crate::poll::poll(), "poll"),
            ]
            .into_iter()
            .filter_map(|(address, name)| Some((address?, name.to_owned())))
            .collect(),
        }
    }

    /// The name of something outside of the code.
    fn outside(&self, address: u64) -> Option<&str> {
        let mut known = self.outside.iter();
        known.find_map(|(at, name)| (*at == address).then_some(name.as_str()))
    }

    /// The names of this place on lines of their own.
    fn headings(&self, offset: usize, text: &mut String) {
        for name in self.functions.get(&offset).into_iter().flatten() {
            let _ = writeln!(text, "{name}:");
        }
        if let Some(label) = self.labels.get(&offset) {
            let _ = writeln!(text, "{label}:");
        }
    }
}

/// The place in the code that an instruction jumps to, calls, or takes the address of.
fn target(instruction: &Instruction) -> Option<u64> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(instruction.ip_rel_memory_address());
    }
    let branch = instruction.op_count() == 1 && instruction.op0_kind() == OpKind::NearBranch64;
    branch.then(|| instruction.near_branch_target())
}

impl SymbolResolver for Names {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _operand: u32,
        _instruction_operand: Option<u32>,
        address: u64,
        _address_size: u32,
    ) -> Option<SymbolResult<'_>> {
        if let Some(name) = self.outside(address) {
            return Some(SymbolResult::with_str(address, name));
        }
        // Only what counts from the instruction is a place in the code; numbers that look like one are not.
        if target(instruction) != Some(address) {
            return None;
        }
        let offset = usize::try_from(address.checked_sub(self.base)?).ok()?;
        if (self.pool_at..self.len).contains(&offset) {
            return Some(SymbolResult::with_str(
                self.base + self.pool_at as u64,
                POOL,
            ));
        }
        let name = match self.functions.get(&offset).and_then(|names| names.first()) {
            Some(name) => name,
            None => self.labels.get(&offset)?,
        };
        Some(SymbolResult::with_str(address, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::{
        Alu, Assembler, Bits, Cond, Encoding, Mem, Operand, RAX, RDI, Rm, Vector, Vop, Width, Xmm,
    };

    /// A loop over floats that are scaled by a constant, and a second function that calls it.
    fn example() -> (Vec<u8>, usize, Vec<Symbol>) {
        let mut asm = Assembler::new();
        let (scale, twice, top, done) = (asm.label(), asm.label(), asm.label(), asm.label());
        asm.bind(scale);
        asm.test(Bits::B64, RAX, RAX);
        asm.jump_if(Cond::Equal, done);
        asm.bind(top);
        let vector = |op, vvvv, rm| {
            Vector::new(
                op,
                Width::W256,
                Encoding::Vex,
                Operand::Vec(Xmm(0)),
                vvvv,
                rm,
            )
        };
        asm.vector(&vector(Vop::Movups, None, Rm::Mem(Mem::at(RDI, 0))));
        asm.vector(&vector(
            Vop::Mulps,
            Some(Operand::Vec(Xmm(0))),
            Rm::Mem(Mem::Pool(32)),
        ));
        asm.vector(&vector(Vop::MovupsStore, None, Rm::Mem(Mem::at(RDI, 0))));
        asm.alu_imm(Alu::Add, Bits::B64, RDI, 32);
        asm.alu_imm(Alu::Sub, Bits::B64, RAX, 8);
        asm.jump_if(Cond::NotEqual, top);
        asm.bind(done);
        asm.vzeroupper();
        asm.ret();
        asm.align(16);
        asm.bind(twice);
        asm.call_label(scale);
        asm.jump(scale);
        let code = asm.finish(&[0x40; 64]);
        let at = |name: &str, from, to: usize| Symbol {
            name: name.to_owned(),
            offset: from,
            size: to - from,
        };
        let (first, second) = (code.offset(scale), code.offset(twice));
        let symbols = vec![at("scale", first, second), at("twice", second, second + 7)];
        (code.bytes, code.pool_at, symbols)
    }

    #[test]
    fn code_is_text_with_names_labels_and_constants() {
        let (bytes, pool_at, symbols) = example();
        let expected = "\
scale:
     0  test rax, rax
     3  je .L2
.L1:
     9  vmovups ymm0, [rdi]
     d  vmulps ymm0, ymm0, [pool+0x20]
    15  vmovups [rdi], ymm0
    19  add rdi, 0x20
    1d  sub rax, 8
    21  jne .L1
.L2:
    23  vzeroupper
    26  ret
    27  nop [rax+rax]
twice:
    30  call scale
    35  jmp scale
pool:
     0  40 40 40 40 40 40 40 40 40 40 40 40 40 40 40 40
    10  40 40 40 40 40 40 40 40 40 40 40 40 40 40 40 40
    20  40 40 40 40 40 40 40 40 40 40 40 40 40 40 40 40
    30  40 40 40 40 40 40 40 40 40 40 40 40 40 40 40 40
";
        assert_eq!(disassemble(&bytes, 0, &symbols, pool_at), expected);
        assert_eq!(
            disassemble(&bytes, 0x7f12_3456_7000, &symbols, pool_at),
            expected,
            "the address does not show"
        );
    }

    #[test]
    fn any_bytes_are_some_text() {
        let bytes: Vec<u8> = (0..4096_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        for start in 0..256 {
            let text = disassemble(&bytes[start..], 0x1000, &[], 2000);
            assert!(text.contains("pool:"), "{text}");
        }
        assert_eq!(disassemble(&[], 0, &[], 0), "");
        assert_eq!(disassemble(&[0xc3], 0, &[], 100), "     0  ret\n");
    }
}
