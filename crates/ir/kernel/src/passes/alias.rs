//! Which memory a pointer may reach, and what writes to it.
//!
//! Memory is divided into classes that do not overlap: every alloc and every `noalias` parameter is
//! one, and all other parameters of a space share one. A pointer that comes out of a call or out of
//! memory may reach any class but those whose address never left the function's hands.

use crate::ir::{Block, Function, Inst, Space, Stmt, Type, Value};
use loopwright_arena::TiVec;
use loopwright_threads::interrupt::unwind_if_asked;

loopwright_arena::handle! {
    /// A class of memory.
    pub(super) struct Class;
}

/// What a pointer may reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// It is no pointer.
    Nothing,
    /// Memory of one class.
    Class(Class),
    /// Any memory.
    Anything,
}

/// What a statement may write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Write {
    /// Memory a pointer reaches.
    Through(Reach),
    /// What a called function can reach.
    Call,
    /// What other work-items have written.
    Barrier,
}

/// What is known of a class.
#[derive(Clone, Copy, Debug)]
struct ClassInfo {
    space: Space,
    /// An alloc whose address stays within loads and stores of this function.
    contained: bool,
}

/// The classes of a function's memory.
pub(super) struct Memory {
    reach: TiVec<Value, Reach>,
    classes: TiVec<Class, ClassInfo>,
}

impl Memory {
    pub fn of(function: &Function) -> Memory {
        let mut memory = Memory {
            reach: vec![Reach::Nothing; function.values.len()].into(),
            classes: TiVec::new(),
        };
        let mut shared: [Option<Class>; 3] = [None; 3];
        for param in &function.params {
            let Type::Pointer(space, _) = function.ty(param.value) else {
                continue;
            };
            let class = if param.noalias {
                memory.class(*space, false)
            } else {
                // Constant memory may be a buffer that another pointer writes before the kernel
                // runs, never while it does; it may still be the same buffer as a global one.
                let at = match space {
                    Space::Global | Space::Constant => 0,
                    Space::Local => 1,
                    Space::Private => 2,
                };
                *shared[at].get_or_insert_with(|| memory.class(*space, false))
            };
            memory.reach[param.value] = Reach::Class(class);
        }
        memory.block(function, &function.body);
        memory
    }

    fn class(&mut self, space: Space, contained: bool) -> Class {
        self.classes
            .push_and_get_key(ClassInfo { space, contained })
    }

    fn block(&mut self, function: &Function, block: &Block) {
        unwind_if_asked();
        for stmt in block {
            match stmt {
                Stmt::Let(value, inst) => {
                    let reach = match inst {
                        Inst::Alloc { space, .. } => Reach::Class(self.class(*space, true)),
                        Inst::Offset { ptr, .. }
                        | Inst::Field { ptr, .. }
                        | Inst::Elements(ptr) => self.reach(*ptr),
                        Inst::Call(_, args) => {
                            self.escape(args);
                            match function.ty(*value) {
                                Type::Pointer(..) => Reach::Anything,
                                _ => Reach::Nothing,
                            }
                        }
                        _ => match function.ty(*value) {
                            Type::Pointer(..) => Reach::Anything,
                            _ => Reach::Nothing,
                        },
                    };
                    self.reach[*value] = reach;
                }
                Stmt::Call(_, args) => self.escape(args),
                // A pointer may be kept in memory and come back from there.
                Stmt::Return(Some(value)) | Stmt::Store { value, .. } => self.escape(&[*value]),
                _ => {}
            }
            for inner in stmt.blocks().into_iter().flatten() {
                self.block(function, inner);
            }
        }
    }

    fn escape(&mut self, values: &[Value]) {
        for &value in values {
            if let Reach::Class(class) = self.reach(value) {
                self.classes[class].contained = false;
            }
        }
    }

    /// What a value reaches as a pointer. Values made since are no pointers.
    pub fn reach(&self, value: Value) -> Reach {
        self.reach.get(value).copied().unwrap_or(Reach::Nothing)
    }

    /// How many classes there are.
    pub fn class_count(&self) -> usize {
        self.classes.len()
    }

    /// Whether the memory is an alloc whose address stays within loads and stores of this function.
    pub fn is_contained(&self, class: Class) -> bool {
        self.classes[class].contained
    }

    /// Whether a write may change memory of the class.
    pub fn may_change(&self, write: Write, class: Class) -> bool {
        let info = self.classes[class];
        match write {
            Write::Through(Reach::Nothing) => false,
            Write::Through(Reach::Class(written)) => written == class,
            Write::Through(Reach::Anything) => !info.contained,
            // A call may contain a barrier, after which others' writes to local memory show.
            Write::Call => !(info.contained && info.space == Space::Private),
            Write::Barrier => info.space != Space::Private,
        }
    }

    /// What the statement itself writes; not what the statements of its blocks do.
    pub fn write(&self, stmt: &Stmt) -> Option<Write> {
        match stmt {
            Stmt::Store { ptr, .. } | Stmt::TileStore { ptr, .. } => {
                Some(Write::Through(self.reach(*ptr)))
            }
            Stmt::AsyncCopy { dst, .. } => Some(Write::Through(self.reach(dst.0))),
            Stmt::Let(_, Inst::Atomic { ptr, .. } | Inst::CompareExchange { ptr, .. }) => {
                Some(Write::Through(self.reach(*ptr)))
            }
            Stmt::Let(_, Inst::Call(..)) | Stmt::Call(..) => Some(Write::Call),
            // An asynchronous copy may land at any time up to the wait.
            Stmt::Barrier { .. } | Stmt::AsyncWait { .. } => Some(Write::Barrier),
            // Memory that comes into being anew has lost what was written before.
            Stmt::Let(value, Inst::Alloc { .. }) => Some(Write::Through(self.reach(*value))),
            Stmt::Let(..)
            | Stmt::For { .. }
            | Stmt::While { .. }
            | Stmt::If { .. }
            | Stmt::Break
            | Stmt::Continue
            | Stmt::Return(_) => None,
        }
    }

    /// Everything a block writes, statements of inner blocks included.
    pub fn writes(&self, block: &Block, see: &mut dyn FnMut(Write)) {
        for stmt in block {
            if let Some(write) = self.write(stmt) {
                see(write);
            }
            for inner in stmt.blocks().into_iter().flatten() {
                self.writes(inner, see);
            }
        }
    }
}

/// Whether the instruction only computes: the same operands give the same value, and nobody notices
/// whether it runs, once or often. Every op is total, so this holds even where it was guarded.
pub(super) fn is_pure(inst: &Inst) -> bool {
    match inst {
        Inst::Const(_)
        | Inst::Map(..)
        | Inst::Cast(..)
        | Inst::Bitcast(..)
        | Inst::Offset { .. }
        | Inst::Field { .. }
        | Inst::Elements(_)
        | Inst::Splat(_)
        | Inst::Build(_)
        | Inst::Extract(..)
        | Inst::Insert(..)
        | Inst::Shuffle(..)
        | Inst::ReduceLanes(..)
        | Inst::WorkItem(..)
        | Inst::TileSplat(_)
        | Inst::TileMma { .. } => true,
        Inst::Alloc { .. }
        | Inst::Load { .. }
        | Inst::TileLoad { .. }
        | Inst::Atomic { .. }
        | Inst::CompareExchange { .. }
        | Inst::Call(..) => false,
    }
}

/// The pointer an instruction reads through, if that is all it does.
pub(super) fn read_through(inst: &Inst) -> Option<Value> {
    match inst {
        Inst::Load { ptr, .. } | Inst::TileLoad { ptr, .. } => Some(*ptr),
        _ => None,
    }
}

/// Whether a block leaves the loop it is the body of early: by `Break` or `Continue` of that very
/// loop, or by `Return`.
pub(super) fn leaves(block: &Block) -> bool {
    block.iter().any(|stmt| match stmt {
        Stmt::Break | Stmt::Continue | Stmt::Return(_) => true,
        Stmt::If {
            then, otherwise, ..
        } => leaves(then) || leaves(otherwise),
        Stmt::For { body, .. } => returns(body),
        Stmt::While { head, body, .. } => returns(head) || returns(body),
        _ => false,
    })
}

/// Whether a block has a `Return` anywhere.
pub(super) fn returns(block: &Block) -> bool {
    block.iter().any(|stmt| {
        matches!(stmt, Stmt::Return(_)) || stmt.blocks().into_iter().flatten().any(returns)
    })
}

/// Whether a block has a `Break` or `Continue` of the loop it is the body of.
pub(super) fn jumps(block: &Block) -> bool {
    block.iter().any(|stmt| match stmt {
        Stmt::Break | Stmt::Continue => true,
        Stmt::If {
            then, otherwise, ..
        } => jumps(then) || jumps(otherwise),
        _ => false,
    })
}
