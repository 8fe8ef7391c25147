//! What is done to kernels before they are lowered: functions as arithmetic, and short loops written out.

use super::overwritten;
use super::value::size_of;
use crate::level::Level;
use loopwright_arena::TiVec;
use loopwright_kernel::passes::expand_math::Precision;
use loopwright_kernel::passes::{Machine, Pipeline, divide_invariant, relaxed};
use loopwright_kernel::{Block, Function, Inst, LoopKind, Module, Stmt, Type, Value};
use loopwright_ops::Op;
use rustc_hash::{FxHashMap, FxHashSet};

/// A loop of so many rounds at most is written out, if so many statements come of it at most.
const ROUNDS: i64 = 8;
const STATEMENTS: i64 = 320;

/// A module that gives the same values, but for roundings.
pub(crate) fn prepared(module: &Module, level: Level, precision: Precision) -> Module {
    // With AVX-512 there are instructions for what the expansion of this one does step by step.
    let kept: &[Op] = match level {
        Level::Avx512 => &[Op::Exp],
        _ => &[],
    };
    let fuses = level != Level::Sse;
    let mut module = relaxed(module, precision, Machine { fuses, kept }).into_owned();
    let mut short = false;
    for function in &mut module.functions {
        if level != Level::Sse {
            divide_invariant::run(function);
        }
        short |= write_out(function, level);
    }
    let passes: &[&str] = match short {
        true => &["unroll", "simplify", "licm", "cse", "dce"],
        false => &["simplify", "licm", "cse", "dce"],
    };
    let Some(passes) = Pipeline::of(passes) else {
        unreachable!("`{passes:?}` are all passes")
    };
    passes.run(&mut module, &mut |_, _| {});
    if short {
        module.functions.iter_mut().for_each(overwritten::remove);
    }
    module
}

/// Marks short innermost loops to be written out; whether there are any.
fn write_out(function: &mut Function, level: Level) -> bool {
    let mut loops = ShortLoops {
        constants: FxHashMap::default(),
        registers: vec![0; function.values.len()].into(),
        private: vec![false; function.values.len()].into(),
        most: i64::from(level.registers()),
    };
    for (registers, value) in loops.registers.iter_mut().zip(&function.values) {
        *registers = match &value.ty {
            Type::Vector(dtype, lanes) => lanes.div_ceil(level.bytes() / size_of(*dtype).max(4)),
            _ => 1,
        };
    }
    loops.collect(&function.body);
    loops.mark(&mut function.body)
}

/// What is known of a function whose short loops are looked for.
struct ShortLoops {
    constants: FxHashMap<Value, i64>,
    /// By value: how many vector registers it takes, if it is in such.
    registers: TiVec<Value, u32>,
    /// By value: whether it is an array of the function's own.
    private: TiVec<Value, bool>,
    /// How many vector registers there are.
    most: i64,
}

impl ShortLoops {
    fn collect(&mut self, block: &Block) {
        for stmt in block {
            match stmt {
                Stmt::Let(value, Inst::Const(scalar)) => {
                    if let Some(known) = scalar.as_i64() {
                        self.constants.insert(*value, known);
                    }
                }
                Stmt::Let(value, Inst::Alloc { .. }) => self.private[*value] = true,
                _ => {}
            }
            for inner in stmt.blocks().into_iter().flatten() {
                self.collect(inner);
            }
        }
    }

    fn mark(&self, block: &mut Block) -> bool {
        let mut any = false;
        for stmt in block {
            match stmt {
                Stmt::For {
                    start,
                    end,
                    step,
                    kind,
                    body,
                    ..
                } => {
                    let of = |value: &Value| self.constants.get(value).copied();
                    if let (
                        LoopKind::Serial | LoopKind::Vectorize,
                        Some(start),
                        Some(end),
                        Some(step),
                    ) = (*kind, of(start), of(end), of(step))
                        && is_straight(body)
                    {
                        let rounds =
                            end.saturating_sub(start).saturating_add(step - 1) / step.max(1);
                        if rounds <= ROUNDS
                            && rounds * body.len() as i64 <= STATEMENTS
                            && (rounds == 1 || self.fits_registers(body))
                        {
                            *kind = LoopKind::Unroll;
                            any = true;
                            continue;
                        }
                    }
                    any |= self.mark(body);
                }
                Stmt::While { head, body, .. } => any |= self.mark(head) | self.mark(body),
                Stmt::If {
                    then, otherwise, ..
                } => any |= self.mark(then) | self.mark(otherwise),
                _ => {}
            }
        }
        any
    }

    /// Whether the running values of a loop and all that a round reads fit the registers. Rounds that are written out share
    /// what they read, which then stays in registers from one to the next; running values must not lose theirs to it.
    fn fits_registers(&self, body: &Block) -> bool {
        let mut running = FxHashSet::default();
        let (mut held, mut read) = (0, 0);
        for stmt in body {
            match stmt {
                Stmt::Store { ptr, value, .. } if self.private[*ptr] && running.insert(*ptr) => {
                    held += i64::from(self.registers[*value]);
                }
                Stmt::Let(value, Inst::Load { ptr, .. }) if !self.private[*ptr] => {
                    read += i64::from(self.registers[*value]);
                }
                _ => {}
            }
        }
        running.is_empty() || held + read <= self.most
    }
}

/// Whether a block has no blocks inside, and nothing that leaves it.
fn is_straight(block: &Block) -> bool {
    block
        .iter()
        .all(|stmt| matches!(stmt, Stmt::Let(..) | Stmt::Store { .. }))
}
