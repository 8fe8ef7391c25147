//! Inlines virtual nodes: private arrays that only carry a value from where it is computed to where
//! it is used.
//!
//! A load takes the value of the store before it, in the same block or one around it, that wrote the
//! same index: the same value, or the same value plus the same constant. Between the two there is no
//! store to the array at an index that is not provably another, and no loop containing one that the
//! load is part of or comes after. What is then never loaded vanishes, with its stores. An array for
//! which this does not hold, or whose address is used for anything but loads and stores, stays.

use super::promote;
use crate::ir::{Block, Function, Inst, Space, Stmt, Type, Value};
use loopwright_arena::TiVec;
use loopwright_ops::{DType, Op};

/// Stores to one array that are remembered; a longer run of them is forgotten rather than searched.
const MOST_REMEMBERED: usize = 64;

/// Runs the pass.
pub fn run(function: &mut Function) {
    // Arrays accessed only at constant places are treated element by element.
    promote::run(function);
    let mut body = std::mem::take(&mut function.body);
    let mut inline = Inline {
        array_of: vec![None; function.values.len()].into(),
        place: function
            .values
            .keys()
            .map(|value| Place {
                base: Some(value),
                offset: 0,
            })
            .collect(),
        replaced: function.values.keys().collect(),
        arrays: Vec::new(),
        scopes: Vec::new(),
        function,
    };
    inline.scan(&body);
    inline.block(&mut body);
    let dead = |value: Value| {
        inline.array_of[value].is_some_and(|number| {
            let array = &inline.arrays[number as usize];
            !array.escapes && array.loads == 0
        })
    };
    remove(&mut body, &dead);
    function.body = body;
}

/// An index: a value plus a constant, or a constant alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    base: Option<Value>,
    offset: i64,
}

/// What a store has written.
struct Stored {
    place: Place,
    lanes: i64,
    value: Value,
    alive: bool,
}

/// A private array.
#[derive(Default)]
struct Array {
    /// Whether its address is used for anything but loads and stores.
    escapes: bool,
    /// How many loads are left.
    loads: usize,
    stored: Vec<Stored>,
    /// The entries before this one are all dead.
    alive_from: usize,
}

impl Array {
    fn forget(&mut self) {
        for stored in &mut self.stored[self.alive_from..] {
            stored.alive = false;
        }
        self.alive_from = self.stored.len();
    }
}

struct Inline<'f> {
    function: &'f Function,
    array_of: TiVec<Value, Option<u32>>,
    place: TiVec<Value, Place>,
    replaced: TiVec<Value, Value>,
    arrays: Vec<Array>,
    /// For each open block, the arrays stored to in it, with how much was remembered before.
    scopes: Vec<Vec<(u32, usize)>>,
}

impl Inline<'_> {
    /// Finds the arrays and what is done with them.
    fn scan(&mut self, block: &Block) {
        for stmt in block {
            match stmt {
                Stmt::Let(
                    value,
                    Inst::Alloc {
                        space: Space::Private,
                        ty: Type::Scalar(_) | Type::Vector(..) | Type::Pointer(..) | Type::Tile(_),
                        ..
                    },
                ) => {
                    self.array_of[*value] = Some(self.arrays.len() as u32);
                    self.arrays.push(Array::default());
                }
                Stmt::Let(_, Inst::Load { ptr, .. }) => {
                    if let Some(array) = self.array_of[*ptr] {
                        self.arrays[array as usize].loads += 1;
                    }
                }
                Stmt::Store { value, .. } => self.escape(*value),
                other => other.operands(&mut |operand| self.escape(*operand)),
            }
            for inner in stmt.blocks().into_iter().flatten() {
                self.scan(inner);
            }
        }
    }

    /// The value is used for something else than to load or store through it.
    fn escape(&mut self, value: Value) {
        if let Some(array) = self.array_of[value] {
            self.arrays[array as usize].escapes = true;
        }
    }

    /// The array of a pointer, if it is followed.
    fn array(&self, ptr: Value) -> Option<u32> {
        let number = self.array_of[ptr]?;
        (!self.arrays[number as usize].escapes).then_some(number)
    }

    fn block(&mut self, block: &mut Block) {
        self.scopes.push(Vec::new());
        self.statements(block);
        self.leave();
    }

    fn leave(&mut self) {
        for (array, remembered) in self.scopes.pop().unwrap_or_default().into_iter().rev() {
            let array = &mut self.arrays[array as usize];
            array.stored.truncate(remembered);
            array.alive_from = array.alive_from.min(remembered);
        }
    }

    /// Forgets all that the blocks store to.
    fn forget_stored(&mut self, blocks: [Option<&Block>; 2]) {
        for stmt in blocks.into_iter().flatten().flatten() {
            if let Stmt::Store { ptr, .. } = stmt
                && let Some(array) = self.array(*ptr)
            {
                self.arrays[array as usize].forget();
            }
            self.forget_stored(stmt.blocks());
        }
    }

    fn statements(&mut self, block: &mut Block) {
        block.retain_mut(|stmt| {
            if !matches!(stmt, Stmt::While { .. }) {
                stmt.operands_mut(&mut |operand| *operand = self.replaced[*operand]);
            }
            match stmt {
                Stmt::Let(value, Inst::Load { ptr, index }) => {
                    if let Some(number) = self.array(*ptr)
                        && let Some(stored) = self.stored(number, *index, *value)
                    {
                        self.replaced[*value] = stored;
                        self.arrays[number as usize].loads -= 1;
                        return false;
                    }
                }
                Stmt::Let(value, inst) => self.place_of(*value, inst),
                Stmt::Store { ptr, index, value } => {
                    if let Some(number) = self.array(*ptr) {
                        self.store(number, *index, *value);
                    }
                }
                Stmt::For { .. } => {
                    self.forget_stored(stmt.blocks());
                    for inner in stmt.blocks_mut().into_iter().flatten() {
                        self.block(inner);
                    }
                }
                Stmt::While { .. } => {
                    self.forget_stored(stmt.blocks());
                    if let Stmt::While { head, cond, body } = stmt {
                        self.scopes.push(Vec::new());
                        self.statements(head);
                        *cond = self.replaced[*cond];
                        self.statements(body);
                        self.leave();
                    }
                }
                Stmt::If {
                    then, otherwise, ..
                } => {
                    self.block(then);
                    self.block(otherwise);
                }
                _ => {}
            }
            true
        });
    }

    /// Notes an index that is a constant or another plus a constant. Sums wrap, and an access is in
    /// bounds or an error, so two places with different constants are different elements.
    fn place_of(&mut self, value: Value, inst: &Inst) {
        let place = match inst {
            Inst::Const(scalar) if scalar.dtype() == DType::I64 => Place {
                base: None,
                offset: scalar.as_i64().unwrap_or(0),
            },
            Inst::Map(op @ (Op::Add | Op::Sub), operands)
                if *self.function.ty(value) == Type::INDEX =>
            {
                let [left, right] = [operands[0], operands[1]].map(|v| self.place[v]);
                match (op, left, right) {
                    (Op::Add, _, Place { base: None, offset }) => Place {
                        offset: left.offset.wrapping_add(offset),
                        ..left
                    },
                    (Op::Add, Place { base: None, offset }, _) => Place {
                        offset: right.offset.wrapping_add(offset),
                        ..right
                    },
                    (Op::Sub, _, Place { base: None, offset }) => Place {
                        offset: left.offset.wrapping_sub(offset),
                        ..left
                    },
                    _ => return,
                }
            }
            _ => return,
        };
        self.place[value] = place;
    }

    fn stored(&self, number: u32, index: Value, value: Value) -> Option<Value> {
        let array = &self.arrays[number as usize];
        let place = self.place[index];
        let found = array.stored[array.alive_from..]
            .iter()
            .rev()
            .find(|stored| {
                stored.alive
                    && stored.place == place
                    && self.function.ty(stored.value) == self.function.ty(value)
            })?;
        Some(found.value)
    }

    fn store(&mut self, number: u32, index: Value, value: Value) {
        let place = self.place[index];
        let ty = self.function.ty(value);
        let array = &mut self.arrays[number as usize];
        if array.stored.len() - array.alive_from > MOST_REMEMBERED {
            array.forget();
        }
        // In units of the widest reading of it: lanes of a vector stored through a pointer to its
        // scalars are elements; a vector stored as one element makes this needlessly careful.
        let lanes = i64::from(ty.lanes());
        for stored in &mut array.stored[array.alive_from..] {
            let distance = place.offset.wrapping_sub(stored.place.offset);
            let apart =
                place.base == stored.place.base && (distance >= stored.lanes || distance <= -lanes);
            stored.alive &= apart;
        }
        let remembered = array.stored.len();
        array.stored.push(Stored {
            place,
            lanes,
            value,
            alive: true,
        });
        if let Some(scope) = self.scopes.last_mut() {
            scope.push((number, remembered));
        }
    }
}

/// Removes arrays that are never read, and the stores to them.
fn remove(block: &mut Block, dead: &impl Fn(Value) -> bool) {
    block.retain_mut(|stmt| {
        for inner in stmt.blocks_mut().into_iter().flatten() {
            remove(inner, dead);
        }
        match stmt {
            Stmt::Let(value, Inst::Alloc { .. }) => !dead(*value),
            Stmt::Store { ptr, .. } => !dead(*ptr),
            _ => true,
        }
    });
}
