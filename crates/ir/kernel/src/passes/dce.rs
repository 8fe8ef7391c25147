//! Removes what nobody uses: values, stores to allocs that are never read, and loops and branches
//! with nothing left in them.
//!
//! Liveness spreads backwards from what can be seen from outside: stores to memory that is not the
//! function's own, atomics, calls, barriers, returns. A live read of an alloc makes every store to it
//! live; a live statement makes the loops and branches around it live, and a live loop its breaks.

use super::alias::{Class, Memory, Reach};
use crate::ir::{Block, Function, Inst, Stmt, Value};
use loopwright_arena::TiVec;
use loopwright_threads::interrupt::unwind_if_asked;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Runs the pass.
pub fn run(function: &mut Function) {
    let memory = Memory::of(function);
    let mut liveness = Liveness {
        memory: &memory,
        nodes: vec![Node::default()],
        operands: Vec::new(),
        jumps: FxHashMap::default(),
        definition: vec![None; function.values.len()].into(),
        alloc: vec![None; memory.class_count()].into(),
        stores: vec![Vec::new(); memory.class_count()].into(),
        work: Vec::new(),
    };
    // Nodes are numbered in the order of the walk, which the sweep repeats.
    liveness.scan(&function.body, 0, 0);
    liveness.spread();
    let live: Vec<bool> = liveness.nodes.iter().map(|node| node.live).collect();
    let mut next = 1;
    sweep(&mut function.body, &live, &mut next);
}

/// A statement.
#[derive(Clone, Default)]
struct Node {
    live: bool,
    /// The loop or branch it stands in; 0 is the function.
    parent: usize,
    /// Its place in [`Liveness::operands`].
    operands: Range<usize>,
}

struct Liveness<'m> {
    memory: &'m Memory,
    nodes: Vec<Node>,
    /// What the statements use, one after the other.
    operands: Vec<Value>,
    /// The breaks and continues of loops.
    jumps: FxHashMap<usize, Vec<usize>>,
    /// The statement that defines each value.
    definition: TiVec<Value, Option<usize>>,
    /// The alloc that makes each class.
    alloc: TiVec<Class, Option<usize>>,
    /// The stores to each class that is an alloc.
    stores: TiVec<Class, Vec<usize>>,
    work: Vec<usize>,
}

impl Liveness<'_> {
    fn scan(&mut self, block: &Block, parent: usize, innermost: usize) {
        unwind_if_asked();
        for stmt in block {
            let number = self.nodes.len();
            let first = self.operands.len();
            stmt.operands(&mut |operand| self.operands.push(*operand));
            self.nodes.push(Node {
                live: false,
                parent,
                operands: first..self.operands.len(),
            });
            if let Some(value) = stmt.defined() {
                self.definition[value] = Some(number);
            }
            let mut loop_number = innermost;
            let live = match stmt {
                Stmt::Let(value, inst) => match inst {
                    Inst::Alloc { .. } => {
                        if let Reach::Class(class) = self.memory.reach(*value) {
                            self.alloc[class] = Some(number);
                        }
                        false
                    }
                    Inst::Atomic { .. } | Inst::CompareExchange { .. } | Inst::Call(..) => true,
                    _ => false,
                },
                Stmt::Store { ptr, .. } | Stmt::TileStore { ptr, .. } => {
                    match self.memory.reach(*ptr) {
                        Reach::Class(class) if self.alloc[class].is_some() => {
                            self.stores[class].push(number);
                            false
                        }
                        _ => true,
                    }
                }
                Stmt::For { .. } => {
                    loop_number = number;
                    false
                }
                // A loop that may not end is not nothing.
                Stmt::While { .. } => {
                    loop_number = number;
                    true
                }
                Stmt::If { .. } => false,
                Stmt::Break | Stmt::Continue => {
                    self.jumps.entry(innermost).or_default().push(number);
                    false
                }
                Stmt::Call(..)
                | Stmt::Return(_)
                | Stmt::Barrier { .. }
                | Stmt::AsyncCopy { .. }
                | Stmt::AsyncWait { .. } => true,
            };
            if live {
                self.mark(number);
            }
            for inner in stmt.blocks().into_iter().flatten() {
                self.scan(inner, number, loop_number);
            }
        }
    }

    fn mark(&mut self, number: usize) {
        if !self.nodes[number].live {
            self.nodes[number].live = true;
            self.work.push(number);
        }
    }

    fn spread(&mut self) {
        while let Some(number) = self.work.pop() {
            let Node {
                parent, operands, ..
            } = self.nodes[number].clone();
            for jump in self.jumps.remove(&number).unwrap_or_default() {
                self.mark(jump);
            }
            if parent != 0 {
                self.mark(parent);
            }
            for at in operands {
                let operand = self.operands[at];
                if let Some(definition) = self.definition[operand] {
                    self.mark(definition);
                }
                if let Reach::Class(class) = self.memory.reach(operand) {
                    for store in std::mem::take(&mut self.stores[class]) {
                        self.mark(store);
                    }
                }
            }
        }
    }
}

fn sweep(block: &mut Block, live: &[bool], next: &mut usize) {
    unwind_if_asked();
    block.retain_mut(|stmt| {
        let keep = live[*next];
        *next += 1;
        for inner in stmt.blocks_mut().into_iter().flatten() {
            sweep(inner, live, next);
        }
        keep
    });
}
