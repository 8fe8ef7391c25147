//! Private arrays that do not fit a frame: they lie in scratch memory, of which every worker has a part.
//!
//! Code generators keep private arrays on the stack, and a thread's stack may be small. What a long chain of steps
//! inside of one loop keeps can be megabytes. Where the arrays of a *frame*, a kernel's body or the body of an
//! outermost parallel loop, take more than a frame may have, the larger ones are moved: those that are not needed
//! at the same time share memory, and a parallel loop runs in as many pieces as there are parts of the memory, each
//! of which goes through its iterations one after the other.
//!
//! This happens to kernels, below the loop tree and above all backends, so that no backend has to know of it.

use crate::pack::{Request, pack};
use loopwright_arena::TiVec;
use loopwright_kernel::{
    Access, Block, Function, FunctionKind, Inst, LoopKind, Space, Stmt, Type, Value,
};
use loopwright_lower::Scratch;
use loopwright_ops::{DType, Op, Scalar};
use loopwright_symbolic::Expr;
use rustc_hash::FxHashMap;
use smallvec::smallvec;
use std::ops::Range;

/// What a frame may have where the backend sets no smaller limit: little beside the smallest stacks that threads
/// are commonly given (512 KiB).
const FRAME_BYTES: u64 = 128 << 10;

/// Arrays up to this size stay in the frame, unless they alone are too many: they are nearly registers.
const SMALL_BYTES: u64 = 1 << 10;

/// Parts of memory begin at multiples of this, so that workers do not share cache lines.
const PART_BYTES: u64 = 128;

/// What a kernel's frames may have, and how many workers run its parallel loops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameLimits {
    /// Bytes of private arrays in a frame.
    pub(crate) bytes: u64,
    /// Pieces that a parallel loop is divided into at most.
    pub(crate) workers: u64,
}

impl FrameLimits {
    /// Those for a machine of so many threads whose private memory may be limited. There are two pieces for each thread:
    /// one that is slow does not hold up the others for long.
    pub(crate) fn new(threads: u32, private_memory: Option<u64>) -> FrameLimits {
        FrameLimits {
            bytes: private_memory.map_or(FRAME_BYTES, |most| most.min(FRAME_BYTES)),
            workers: 2 * u64::from(threads.max(1)),
        }
    }
}

/// Moves private arrays of a kernel that do not fit its frames to scratch memory; gives that memory, for which
/// the kernel has got parameters behind all others, in this order.
pub(crate) fn spill(function: &mut Function, limits: FrameLimits) -> Vec<Scratch> {
    if !matches!(function.kind, FunctionKind::Kernel { .. }) {
        return Vec::new();
    }
    let mut found = Found::new(function);
    if found.work_items || !found.choose(limits.bytes) {
        return Vec::new();
    }
    let mut memory = found.place(limits.workers);
    for (dtype, region) in &mut memory {
        let pointer = Type::Scalar(*dtype).pointer(Space::Global);
        let name = format!("frame_{}", dtype.name());
        region.param = function.param(pointer, name, Access::ReadWrite, true);
    }
    let body = std::mem::take(&mut function.body);
    let mut spilling = Spilling {
        function,
        found: &found,
        memory: &memory,
        frame: 0,
        bases: FxHashMap::default(),
    };
    let (body, _) = spilling.block(body);
    function.body = body;
    function.compact();
    let scratch = memory.iter().map(|(dtype, region)| Scratch {
        name: format!("arrays_of_{}", dtype.name()),
        dtype: *dtype,
        elements: Expr::constant(region.elements as i64),
    });
    scratch.collect()
}

/// A private array.
struct Array {
    value: Value,
    dtype: DType,
    /// Bytes, rounded up to what begins at a cache line.
    bytes: u64,
    frame: usize,
    /// From the first to the last statement of its block that touches it.
    live: Range<u32>,
    /// How many blocks are around the statements that `live` is counted in.
    depth: usize,
    /// Whether all that is done with its address is known.
    is_movable: bool,
    /// Where it goes, in elements from the start of the frame's part; `None`: it stays.
    place: Option<u64>,
}

/// A kernel's body, or the body of one of its outermost parallel loops.
#[derive(Default)]
struct Frame {
    /// Iterations, where they are known.
    iterations: Option<u64>,
    /// Bytes of arrays that this does not look into.
    other_bytes: u64,
    /// How many pieces the loop is divided into at most; 1 for the kernel's body.
    pieces: u64,
    /// By dtype: elements of a piece's part.
    parts: FxHashMap<DType, u64>,
}

/// Memory for the arrays of a dtype.
struct Region {
    /// The kernel's parameter.
    param: Value,
    /// Elements in all.
    elements: u64,
    /// Where the parts of parallel loops begin; the part of the kernel's body comes first.
    workers_at: u64,
}

/// What is in a kernel.
struct Found {
    arrays: Vec<Array>,
    frames: Vec<Frame>,
    /// By value: the array that it points into.
    array: TiVec<Value, Option<usize>>,
    constants: FxHashMap<Value, i64>,
    /// Whether work-items run through the kernel side by side.
    work_items: bool,
    /// By frame that is a loop's: which.
    by_var: FxHashMap<Value, usize>,
    position: u32,
    /// By depth of blocks: arrays that the statement at hand touches.
    touched: Vec<Vec<usize>>,
}

impl Found {
    fn new(function: &Function) -> Found {
        let mut found = Found {
            arrays: Vec::new(),
            frames: vec![Frame::default()],
            array: vec![None; function.values.len()].into(),
            constants: FxHashMap::default(),
            work_items: false,
            by_var: FxHashMap::default(),
            position: 0,
            touched: Vec::new(),
        };
        found.block(&function.body, 0, (0, 0));
        found
    }

    /// `depth` counts the blocks around; `of` is the frame, and the depth at which arrays made here are counted.
    fn block(&mut self, block: &Block, depth: usize, of: (usize, usize)) {
        if self.touched.len() <= depth {
            self.touched.resize_with(depth + 1, Vec::new);
        }
        for stmt in block {
            let enter = self.position;
            self.position += 1;
            self.statement(stmt, depth, of);
            let exit = self.position;
            for array in std::mem::take(&mut self.touched[depth]) {
                let live = &mut self.arrays[array].live;
                if live.start == live.end {
                    live.start = enter;
                }
                live.end = exit;
            }
        }
    }

    fn statement(&mut self, stmt: &Stmt, depth: usize, (frame, counted): (usize, usize)) {
        stmt.operands(&mut |operand| {
            if let Some(array) = self.array.get(*operand).copied().flatten() {
                let at = self.arrays[array].depth;
                self.touched[at].push(array);
            }
        });
        match stmt {
            Stmt::Let(value, inst) => self.definition(*value, inst, (frame, counted)),
            // An address that is stored is one that others may know.
            Stmt::Store { value, .. } | Stmt::Return(Some(value)) => self.keep(*value),
            Stmt::Call(_, arguments) => arguments.iter().for_each(|value| self.keep(*value)),
            Stmt::AsyncCopy { dst, src, .. } => {
                self.keep(dst.0);
                self.keep(src.0);
                self.work_items = true;
            }
            Stmt::Barrier { .. } | Stmt::AsyncWait { .. } => self.work_items = true,
            Stmt::For { .. }
            | Stmt::While { .. }
            | Stmt::If { .. }
            | Stmt::Break
            | Stmt::Continue
            | Stmt::Return(None)
            | Stmt::TileStore { .. } => {}
        }
        let inner = match stmt {
            Stmt::For {
                var,
                start,
                end,
                step,
                kind: LoopKind::Parallel,
                ..
            } if frame == 0 => {
                let known = |value: &Value| self.constants.get(value).copied();
                let iterations = match (known(start), known(end), known(step)) {
                    (Some(start), Some(end), Some(step)) => {
                        let span = i128::from(end) - i128::from(start);
                        let step = i128::from(step.max(1));
                        u64::try_from((span.max(0) + step - 1) / step).ok()
                    }
                    _ => None,
                };
                self.frames.push(Frame {
                    iterations,
                    ..Frame::default()
                });
                self.by_var.insert(*var, self.frames.len() - 1);
                self.frames.len() - 1
            }
            _ => frame,
        };
        let is_while = matches!(stmt, Stmt::While { .. });
        for (at, block) in stmt.blocks().into_iter().enumerate() {
            let Some(block) = block else { continue };
            // What the head of a loop makes, its body sees: it is needed until the loop ends.
            let counted = match is_while && at == 0 {
                true => depth,
                false => depth + 1,
            };
            self.block(block, depth + 1, (inner, counted));
        }
    }

    fn definition(&mut self, value: Value, inst: &Inst, (frame, counted): (usize, usize)) {
        match inst {
            Inst::Alloc {
                space: Space::Private,
                ty,
                count,
            } => match ty {
                Type::Scalar(dtype) if *count > 1 => {
                    let bytes = count.saturating_mul(dtype.bytes() as u64);
                    self.array[value] = Some(self.arrays.len());
                    self.arrays.push(Array {
                        value,
                        dtype: *dtype,
                        bytes: bytes.saturating_add(63) & !63,
                        frame,
                        live: 0..0,
                        depth: counted,
                        is_movable: true,
                        place: None,
                    });
                }
                Type::Vector(dtype, lanes) => {
                    let bytes = dtype.bytes() as u64 * u64::from(*lanes);
                    let frame = &mut self.frames[frame];
                    frame.other_bytes += bytes.saturating_mul(*count);
                }
                _ => {}
            },
            Inst::Alloc { .. } | Inst::WorkItem(..) => self.work_items = true,
            Inst::Offset { ptr, .. } => {
                self.array[value] = self.array[*ptr];
            }
            Inst::Const(scalar) => {
                if let Some(known) = scalar.as_i64() {
                    self.constants.insert(value, known);
                }
            }
            Inst::Load { .. } | Inst::TileLoad { .. } => {}
            inst => inst.operands(&mut |operand| self.keep(*operand)),
        }
    }

    /// An array stays where it is if this is its address.
    fn keep(&mut self, value: Value) {
        if let Some(array) = self.array.get(value).copied().flatten() {
            self.arrays[array].is_movable = false;
        }
    }

    /// Marks the arrays that are to be moved; whether there are any.
    fn choose(&mut self, most: u64) -> bool {
        let mut any = false;
        for frame in 0..self.frames.len() {
            let other = self.frames[frame].other_bytes;
            let own = |array: &&Array| array.frame == frame;
            let in_frame = |least: u64, movable: bool| -> u64 {
                let arrays = self.arrays.iter().filter(own);
                let stays = |array: &&Array| array.bytes <= least || !array.is_movable || !movable;
                let bytes = arrays.filter(stays).map(|array| array.bytes);
                bytes.fold(other, u64::saturating_add)
            };
            if in_frame(0, false) <= most {
                continue;
            }
            let least = match in_frame(SMALL_BYTES, true) <= most {
                true => SMALL_BYTES,
                false => 0,
            };
            for array in &mut self.arrays {
                if array.frame == frame && array.is_movable && array.bytes > least {
                    array.place = Some(0);
                    any = true;
                }
            }
        }
        any
    }

    /// Gives the arrays their places.
    fn place(&mut self, workers: u64) -> Vec<(DType, Region)> {
        let mut dtypes: Vec<DType> = Vec::new();
        for array in self.arrays.iter().filter(|array| array.place.is_some()) {
            if !dtypes.contains(&array.dtype) {
                dtypes.push(array.dtype);
            }
        }
        for (number, frame) in self.frames.iter_mut().enumerate() {
            frame.pieces = match (number, frame.iterations) {
                (0, _) => 1,
                (_, Some(iterations)) => iterations.clamp(1, workers),
                (_, None) => workers,
            };
        }
        let region = |dtype: DType| {
            let dtype_bytes = dtype.bytes() as u64;
            let mut region = Region {
                param: Value(0),
                elements: 0,
                workers_at: 0,
            };
            for number in 0..self.frames.len() {
                let wanted = |array: &&mut Array| {
                    array.frame == number && array.dtype == dtype && array.place.is_some()
                };
                let mut arrays: Vec<&mut Array> = self.arrays.iter_mut().filter(wanted).collect();
                let request = |array: &&mut Array| Request {
                    bytes: array.bytes,
                    align: 64,
                    live: array.live.clone(),
                };
                let requests: Vec<Request> = arrays.iter().map(request).collect();
                let packed = pack(&requests);
                for (array, offset) in arrays.iter_mut().zip(&packed.offsets) {
                    array.place = Some(offset / dtype_bytes);
                }
                let part = packed.bytes.next_multiple_of(PART_BYTES) / dtype_bytes;
                let frame = &mut self.frames[number];
                frame.parts.insert(dtype, part);
                let end = part.saturating_mul(frame.pieces);
                match number {
                    0 => {
                        region.workers_at = end;
                        region.elements = end;
                    }
                    _ => {
                        let end = region.workers_at.saturating_add(end);
                        region.elements = region.elements.max(end);
                    }
                }
            }
            (dtype, region)
        };
        dtypes.into_iter().map(region).collect()
    }
}

struct Spilling<'f> {
    function: &'f mut Function,
    found: &'f Found,
    memory: &'f [(DType, Region)],
    frame: usize,
    /// By dtype: where the part of the piece at hand begins.
    bases: FxHashMap<DType, Value>,
}

impl<'f> Spilling<'f> {
    /// The block with its arrays moved, and whether there were any.
    fn block(&mut self, block: Block) -> (Block, bool) {
        let mut out = Block::with_capacity(block.len());
        let mut any = false;
        for mut stmt in block {
            if let Stmt::Let(value, Inst::Alloc { .. }) = &stmt
                && let Some(array) = self.moved(*value)
            {
                self.address(array, &mut out);
                any = true;
                continue;
            }
            if let Stmt::Let(value, Inst::Offset { .. }) = &stmt
                && self.moved(*value).is_some()
            {
                self.retype(*value);
            }
            if let Stmt::For {
                var,
                kind: LoopKind::Parallel,
                ..
            } = &stmt
                && self.frame == 0
                && let Some(frame) = self.found.by_var.get(var).copied()
                && self.moves_any(frame)
            {
                self.divided(stmt, frame, &mut out);
                continue;
            }
            let mut inside = false;
            for inner in stmt.blocks_mut().into_iter().flatten() {
                let (body, moved) = self.block(std::mem::take(inner));
                *inner = body;
                inside |= moved;
            }
            // Its iterations share what is moved now.
            if let Stmt::For { kind, .. } = &mut stmt
                && inside
                && matches!(kind, LoopKind::Parallel | LoopKind::Vectorize)
            {
                *kind = LoopKind::Serial;
            }
            any |= inside;
            out.push(stmt);
        }
        (out, any)
    }

    fn moved(&self, value: Value) -> Option<&'f Array> {
        let found = self.found;
        let array = found.array.get(value).copied().flatten()?;
        let array = &found.arrays[array];
        array.place.is_some().then_some(array)
    }

    fn moves_any(&self, frame: usize) -> bool {
        let arrays = self.found.arrays.iter();
        let mut own = arrays.filter(|array| array.frame == frame);
        own.any(|array| array.place.is_some())
    }

    fn retype(&mut self, value: Value) {
        if let Type::Pointer(space, _) = &mut self.function.values[value].ty {
            *space = Space::Global;
        }
    }

    fn define(&mut self, inst: Inst, name: &str, out: &mut Block) -> Value {
        let value = self.function.value(Type::INDEX, name);
        out.push(Stmt::Let(value, inst));
        value
    }

    fn number(&mut self, number: u64, out: &mut Block) -> Value {
        self.define(Inst::Const(Scalar::i64(number as i64)), "", out)
    }

    fn map(&mut self, op: Op, operands: [Value; 2], out: &mut Block) -> Value {
        let [a, b] = operands;
        self.define(Inst::Map(op, smallvec![a, b]), "", out)
    }

    /// Defines an array as the address of its place.
    fn address(&mut self, array: &Array, out: &mut Block) {
        let region = self.memory.iter().find(|(dtype, _)| *dtype == array.dtype);
        let Some((_, region)) = region else {
            unreachable!("there is memory for every dtype that is moved")
        };
        let ptr = region.param;
        let place = array.place.unwrap_or_default();
        let mut index = self.number(place, out);
        if let Some(base) = self.bases.get(&array.dtype).copied() {
            index = self.map(Op::Add, [base, index], out);
        }
        self.retype(array.value);
        out.push(Stmt::Let(array.value, Inst::Offset { ptr, index }));
    }

    /// A parallel loop in pieces, each with memory of its own.
    fn divided(&mut self, stmt: Stmt, frame: usize, out: &mut Block) {
        let Stmt::For {
            var,
            start,
            end,
            step,
            body,
            ..
        } = stmt
        else {
            unreachable!("only loops are divided")
        };
        let (zero, one) = (self.number(0, out), self.number(1, out));
        let most = self.number(self.found.frames[frame].pieces, out);
        // Iterations: the span, rounded up; pieces; and iterations of a piece, the first of which have one more.
        let span = self.map(Op::Sub, [end, start], out);
        let span = self.map(Op::Max, [span, zero], out);
        let less = self.map(Op::Sub, [step, one], out);
        let rounded = self.map(Op::Add, [span, less], out);
        let count = self.map(Op::FloorDiv, [rounded, step], out);
        let pieces = self.map(Op::Min, [count, most], out);
        let each = self.map(Op::FloorDiv, [count, pieces], out);
        let longer = self.map(Op::Mod, [count, pieces], out);

        let piece = self.function.value(Type::INDEX, "worker");
        let mut inside = Block::new();
        let at = |spilling: &mut Self, piece: Value, inside: &mut Block| {
            let first = spilling.map(Op::Mul, [piece, each], inside);
            let more = spilling.map(Op::Min, [piece, longer], inside);
            let iteration = spilling.map(Op::Add, [first, more], inside);
            let scaled = spilling.map(Op::Mul, [iteration, step], inside);
            spilling.map(Op::Add, [start, scaled], inside)
        };
        let from = at(self, piece, &mut inside);
        let next = self.map(Op::Add, [piece, one], &mut inside);
        let to = at(self, next, &mut inside);
        for (dtype, region) in self.memory {
            let part = self.found.frames[frame].parts[dtype];
            let part = self.number(part, &mut inside);
            let offset = self.map(Op::Mul, [piece, part], &mut inside);
            let before = self.number(region.workers_at, &mut inside);
            let base = self.map(Op::Add, [before, offset], &mut inside);
            self.bases.insert(*dtype, base);
        }
        self.frame = frame;
        let (body, _) = self.block(body);
        self.frame = 0;
        self.bases.clear();
        inside.push(Stmt::For {
            var,
            start: from,
            end: to,
            step,
            kind: LoopKind::Serial,
            body,
        });
        out.push(Stmt::For {
            var: piece,
            start: zero,
            end: pieces,
            step: one,
            kind: LoopKind::Parallel,
            body: inside,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_kernel::Argument;
    use loopwright_kernel::interpret::{Grid, interpret};
    use loopwright_kernel::{FunctionId, Module, parse, print, validate};
    use loopwright_text::Source;

    const LIMITS: FrameLimits = FrameLimits {
        bytes: 512,
        workers: 3,
    };

    fn kernel(body: &str) -> Module {
        let text = format!(
            "loopwright kernel 1\n\nkernel @k(%out: readwrite noalias ptr<global, f32>, %n: i64) {{\n\
             %zero: i64 = const 0\n%one: i64 = const 1\n%two: i64 = const 2\n{body}\n}}\n"
        );
        let source = Source::new("k", &text);
        let module = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
        validate(&module).unwrap();
        module
    }

    /// What the kernel writes for `n`, with scratch memory of these sizes that holds something else before.
    fn written(module: &Module, n: i64, scratch: &[Scratch]) -> Vec<u8> {
        let mut out = vec![0; 64 * 4];
        let elements = |scratch: &Scratch| scratch.elements.as_const().unwrap() as usize;
        let mut memory: Vec<Vec<u8>> = scratch
            .iter()
            .map(|scratch| vec![0x5a; elements(scratch) * scratch.dtype.bytes()])
            .collect();
        let mut arguments = vec![Argument::Write(&mut out), Argument::Scalar(Scalar::i64(n))];
        arguments.extend(memory.iter_mut().map(|bytes| Argument::Write(bytes)));
        interpret(module, "k", &mut arguments, Grid::default()).unwrap();
        out
    }

    /// Checks that a kernel writes the same when its arrays are moved; gives it and the memory.
    fn spilled(body: &str) -> (String, Vec<Scratch>) {
        let module = kernel(body);
        let mut moved = module.clone();
        let scratch = spill(&mut moved.functions[FunctionId(0)], LIMITS);
        validate(&moved).unwrap();
        for n in [0, 1, 2, 3, 4, 7, 60] {
            let expected = written(&module, n, &[]);
            assert_eq!(
                written(&moved, n, &scratch),
                expected,
                "{n}\n{}",
                print(&moved)
            );
        }
        (print(&moved), scratch)
    }

    const CHAIN: &str = "
        %x: f32 = cast %i
        %a: ptr<private, f32> = alloc private f32 x 100
        %b: ptr<private, f32> = alloc private f32 x 100
        %c: ptr<private, f32> = alloc private f32 x 100
        store %a[%one], %x
        %p: ptr<private, f32> = offset %a[%one]
        %y: f32 = load %p[%zero]
        store %b[%two], %y
        %z: f32 = load %b[%two]
        store %c[%zero], %z
        %w: f32 = load %c[%zero]
        store %out[%i], %w";

    #[test]
    fn arrays_that_fit_a_frame_stay() {
        let small = CHAIN.replace("f32 x 100", "f32 x 10");
        let (text, scratch) = spilled(&format!(
            "for %i: i64 = %zero .. %n step %one parallel {{{small}\n}}"
        ));
        assert!(
            scratch.is_empty() && text.contains("alloc private"),
            "{text}"
        );
    }

    #[test]
    fn every_worker_of_a_parallel_loop_has_memory_of_its_own_that_live_ranges_share() {
        for kind in ["parallel", "serial"] {
            let body = format!("for %i: i64 = %zero .. %n step %one {kind} {{{CHAIN}\n}}");
            let (text, scratch) = spilled(&body);
            assert!(!text.contains("alloc private"), "{text}");
            // One array of 448 bytes is needed at a time, in a part of whole cache lines.
            let parts = if kind == "parallel" { 3 } else { 1 };
            assert_eq!(scratch.len(), 1);
            assert_eq!(
                scratch[0].elements,
                Expr::constant(parts * 512 / 4),
                "{text}"
            );
        }
    }

    #[test]
    fn loops_whose_iterations_would_share_moved_arrays_run_one_after_the_other() {
        let body = format!(
            "for %o: i64 = %zero .. %two step %one parallel {{
               for %i: i64 = %zero .. %n step %two parallel {{{CHAIN}\n}}
             }}"
        );
        let (text, _) = spilled(&body);
        assert_eq!(text.matches(" parallel").count(), 1, "{text}");
        let body = format!("for %i: i64 = %one .. %n step %two vectorize {{{CHAIN}\n}}");
        let (text, _) = spilled(&body);
        assert_eq!(text.matches(" vectorize").count(), 0, "{text}");
    }

    #[test]
    fn what_is_live_around_a_parallel_loop_is_apart_from_what_its_workers_have() {
        let body = format!(
            "%before: ptr<private, f32> = alloc private f32 x 200
             %f: f32 = const 2.5
             store %before[%one], %f
             for %i: i64 = %zero .. %n step %one parallel {{{CHAIN}\n}}
             %g: f32 = load %before[%one]
             %last: i64 = const 63
             store %out[%last], %g"
        );
        let (_, scratch) = spilled(&body);
        assert_eq!(scratch[0].elements, Expr::constant((896 + 3 * 512) / 4));
    }

    #[test]
    fn a_head_keeps_its_arrays_until_its_loop_ends() {
        let body = "
            %count: ptr<private, i64> = alloc private i64 x 1
            store %count[%zero], %zero
            while {
                %a: ptr<private, f32> = alloc private f32 x 100
                %at: i64 = load %count[%zero]
                %v: f32 = cast %at
                store %a[%zero], %v
                %go: bool = lt %at, %n
            } cond %go {
                %b: ptr<private, f32> = alloc private f32 x 100
                store %b[%zero], %v
                %y: f32 = load %a[%zero]
                store %out[%at], %y
                %next: i64 = add %at, %one
                store %count[%zero], %next
            }";
        let (_, scratch) = spilled(body);
        assert_eq!(scratch[0].elements, Expr::constant(896 / 4));
    }
}
