//! Lets private arrays of a block that are not needed at the same time be one array.
//!
//! A long program of small steps inside of one loop has an array for each of its steps. Together they
//! may be more than a thread's stack; those that are needed at a time are few.

use super::alias::{Class, Memory, Reach};
use crate::ir::{Block, Function, Inst, Space, Stmt, Type, Value};
use loopwright_arena::TiVec;
use loopwright_threads::interrupt::unwind_if_asked;
use rustc_hash::FxHashMap;

/// Up to so many bytes of arrays fit every stack, and every cache, as they are.
const FEW: u64 = 64 << 10;

/// Runs the pass on functions with more than a few arrays.
pub fn run(function: &mut Function) {
    if array_bytes(&function.body) > FEW {
        all(function);
    }
}

/// Runs the pass on any function.
pub fn all(function: &mut Function) {
    let memory = Memory::of(function);
    let mut sharing = Sharing {
        shareable: vec![true; memory.class_count()].into(),
        memory: &memory,
        instead: FxHashMap::default(),
    };
    sharing.look_for_copies(&function.body);
    let mut body = std::mem::take(&mut function.body);
    sharing.block(&mut body, true);
    let instead = sharing.instead;
    if !instead.is_empty() {
        replace(&mut body, &instead);
    }
    function.body = body;
}

/// The bytes of all private arrays; of those of structs, the number of elements.
fn array_bytes(block: &Block) -> u64 {
    let of = |stmt: &Stmt| match stmt {
        Stmt::Let(
            _,
            Inst::Alloc {
                space: Space::Private,
                ty,
                count,
            },
        ) if *count > 1 => {
            let bytes = match ty {
                Type::Scalar(dtype) => dtype.bytes() as u64,
                Type::Vector(dtype, lanes) => dtype.bytes() as u64 * u64::from(*lanes),
                _ => 1,
            };
            bytes.saturating_mul(*count)
        }
        _ => stmt.blocks().into_iter().flatten().map(array_bytes).sum(),
    };
    block.iter().map(of).sum()
}

/// What arrays have to agree in to be one: the type of their elements, and how many there are.
type Kind = (Type, u64);

struct Sharing<'m> {
    memory: &'m Memory,
    /// By class: whether only this function, and nothing that goes on beside it, touches the memory.
    shareable: TiVec<Class, bool>,
    /// The arrays that have become others.
    instead: FxHashMap<Value, Value>,
}

impl Sharing<'_> {
    /// Copies that go on beside the function may come to an end at any time.
    fn look_for_copies(&mut self, block: &Block) {
        for stmt in block {
            if let Stmt::AsyncCopy { dst, src, .. } = stmt {
                for end in [dst.0, src.0] {
                    if let Reach::Class(class) = self.memory.reach(end) {
                        self.shareable[class] = false;
                    }
                }
            }
            for inner in stmt.blocks().into_iter().flatten() {
                self.look_for_copies(inner);
            }
        }
    }

    /// Shares the arrays of a block. What a loop's head makes, its body sees: such blocks keep their own.
    fn block(&mut self, block: &mut Block, is_whole: bool) {
        unwind_if_asked();
        for stmt in &mut *block {
            let has_head = matches!(stmt, Stmt::While { .. });
            for (at, inner) in stmt.blocks_mut().into_iter().enumerate() {
                if let Some(inner) = inner {
                    self.block(inner, !(has_head && at == 0));
                }
            }
        }
        let found = block.iter().filter_map(|stmt| self.array(stmt));
        let mut arrays: Vec<(Value, Class, Kind)> = found.collect();
        if !is_whole || arrays.len() < 2 {
            return;
        }
        let uses = self.uses(block);
        arrays.retain(|(_, class, _)| uses.contains_key(class));
        arrays.sort_by_key(|(_, class, _)| uses[class].0);
        // For each kind the arrays that there are, with the last statements that touch them. One that is
        // touched no more was made before the next is touched first.
        let mut kept: FxHashMap<Kind, Vec<(Value, usize)>> = FxHashMap::default();
        for (value, class, kind) in arrays {
            let (first, last) = uses[&class];
            let there = kept.entry(kind).or_default();
            match there.iter_mut().find(|(_, end)| *end < first) {
                Some((array, end)) => {
                    self.instead.insert(value, *array);
                    *end = last;
                }
                None => there.push((value, last)),
            }
        }
        let instead = &self.instead;
        block.retain(|stmt| !matches!(stmt, Stmt::Let(value, _) if instead.contains_key(value)));
    }

    /// An array that may be shared: the pointer to it, its memory, and what it is.
    fn array(&self, stmt: &Stmt) -> Option<(Value, Class, Kind)> {
        let Stmt::Let(
            value,
            Inst::Alloc {
                space: Space::Private,
                ty,
                count,
            },
        ) = stmt
        else {
            return None;
        };
        let Reach::Class(class) = self.memory.reach(*value) else {
            return None;
        };
        let fits = *count > 1 && self.memory.is_contained(class);
        (fits && self.shareable[class]).then(|| (*value, class, (ty.clone(), *count)))
    }

    /// The first and the last statement of a block that touch each class of memory.
    fn uses(&self, block: &Block) -> FxHashMap<Class, (usize, usize)> {
        let mut uses: FxHashMap<Class, (usize, usize)> = FxHashMap::default();
        for (at, stmt) in block.iter().enumerate() {
            self.touched(stmt, &mut |class| {
                uses.entry(class).or_insert((at, at)).1 = at;
            });
        }
        uses
    }

    fn touched(&self, stmt: &Stmt, see: &mut dyn FnMut(Class)) {
        stmt.operands(&mut |operand| {
            if let Reach::Class(class) = self.memory.reach(*operand) {
                see(class);
            }
        });
        for inner in stmt.blocks().into_iter().flatten() {
            for stmt in inner {
                self.touched(stmt, see);
            }
        }
    }
}

fn replace(block: &mut Block, instead: &FxHashMap<Value, Value>) {
    for stmt in block {
        stmt.operands_mut(&mut |operand| {
            if let Some(other) = instead.get(operand) {
                *operand = *other;
            }
        });
        for inner in stmt.blocks_mut().into_iter().flatten() {
            replace(inner, instead);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{all, run};
    use crate::text::{parse, print};
    use crate::validate;
    use loopwright_text::Source;

    /// The arrays that are left of a function with this body.
    fn left(pass: fn(&mut crate::Function), body: &str) -> Vec<String> {
        let text = format!(
            "loopwright kernel 1\n\nkernel @k(%out: readwrite noalias ptr<global, f32>, %n: i64) {{\n\
             %zero: i64 = const 0\n%one: i64 = const 1\n%x: f32 = const 1.0\n{body}\n}}\n"
        );
        let mut module =
            parse(&Source::new("k", &text)).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        module.functions.iter_mut().for_each(pass);
        validate(&module).unwrap();
        let text = print(&module);
        let lines = text.lines().filter(|line| line.contains("alloc private"));
        lines
            .filter_map(|line| Some(line.trim().split_once(':')?.0.to_owned()))
            .collect()
    }

    const THREE: &str = "
        %a: ptr<private, f32> = alloc private f32 x 8
        %b: ptr<private, f32> = alloc private f32 x 8
        %c: ptr<private, f32> = alloc private f32 x 8
        store %a[%zero], %x
        %y: f32 = load %a[%zero]
        store %b[%zero], %y
        %z: f32 = load %b[%zero]
        store %c[%zero], %z
        %w: f32 = load %c[%zero]
        store %out[%zero], %w";

    #[test]
    fn arrays_that_are_not_needed_together_are_one() {
        assert_eq!(left(all, THREE), ["%a"]);
        // A few of them stay.
        assert_eq!(left(run, THREE), ["%a", "%b", "%c"]);
        let many = THREE.replace("f32 x 8", "f32 x 8000");
        assert_eq!(left(run, &many), ["%a"]);
    }

    #[test]
    fn arrays_that_are_needed_together_stay_apart() {
        let again = format!("{THREE}\n%v: f32 = load %a[%one]\nstore %out[%one], %v");
        assert_eq!(left(all, &again), ["%a", "%b"]);
        let other = THREE.replacen("f32 x 8", "f32 x 9", 1);
        assert_eq!(left(all, &other), ["%a", "%b"]);
    }

    #[test]
    fn a_loop_needs_what_is_touched_in_it_until_its_end() {
        let inside = "
            %a: ptr<private, f32> = alloc private f32 x 8
            %b: ptr<private, f32> = alloc private f32 x 8
            for %i: i64 = %zero .. %n step %one serial {
                store %b[%zero], %x
                %y: f32 = load %b[%zero]
                store %a[%zero], %y
                %z: f32 = load %a[%zero]
                store %out[%i], %z
            }";
        assert_eq!(left(all, inside), ["%a", "%b"]);
        let made_inside = "
            for %i: i64 = %zero .. %n step %one serial {
                %a: ptr<private, f32> = alloc private f32 x 8
                store %a[%zero], %x
                %y: f32 = load %a[%zero]
                %b: ptr<private, f32> = alloc private f32 x 8
                store %b[%zero], %y
                %z: f32 = load %b[%zero]
                store %out[%i], %z
            }";
        assert_eq!(left(all, made_inside), ["%a"]);
    }

    #[test]
    fn what_a_head_makes_is_its_own() {
        let head = "
            while {
                %a: ptr<private, f32> = alloc private f32 x 8
                store %a[%zero], %x
                %b: ptr<private, f32> = alloc private f32 x 8
                store %b[%zero], %x
                %y: f32 = load %b[%zero]
                %go: bool = lt %y, %x
            } cond %go {
                %z: f32 = load %a[%zero]
                store %out[%zero], %z
            }";
        assert_eq!(left(all, head), ["%a", "%b"]);
    }
}
