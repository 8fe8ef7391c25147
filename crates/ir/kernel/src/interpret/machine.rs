//! Running the flat form.

use super::code::{Access, Code, Fast, Function, Slot, TileMma};
use super::memory::{
    Copied, Fault, Own, Region, RegionId, pack_pointer, read_bits, unpack_pointer, write_bits,
};
use super::{Grid, InterpretError, Program};
use crate::ir::{FunctionId, Value, WorkItem};
use loopwright_ops::{DType, Op, OpError, Scalar, cast, evaluate};
use loopwright_threads::interrupt;

/// Calls within calls; the IR has no recursion, so real programs stay far below.
const MOST_CALLS: usize = 256;

/// A function being run.
#[derive(Clone, Copy, Debug)]
struct Frame {
    function: FunctionId,
    pc: usize,
    /// Its first slot.
    base: usize,
    /// Its first private region.
    regions: usize,
    /// Where in the caller's frame the result goes.
    result: Slot,
}

/// A work-item.
#[derive(Debug)]
struct Item<'a> {
    local_id: [u64; 3],
    slots: Vec<u64>,
    frames: Vec<Frame>,
    regions: Vec<Region<'a>>,
}

/// Why a work-item stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    Finished,
    /// At the barrier of this function and place.
    Barrier(FunctionId, usize),
}

/// The state that all work-items share.
pub(super) struct Machine<'p, 'a> {
    pub program: &'p Program,
    pub arguments: Vec<Region<'a>>,
    /// Memory of the work-group that runs.
    pub group: Vec<Region<'a>>,
    pub grid: Grid,
    pub group_id: [u64; 3],
    /// Steps that are left.
    pub steps: u64,
    /// Steps there were.
    pub limit: u64,
}

impl<'a> Machine<'_, 'a> {
    /// Undefined memory.
    pub fn own(&self, function: FunctionId, bytes: u64) -> Result<Own, InterpretError> {
        Own::new(bytes).ok_or_else(|| InterpretError::OutOfMemory {
            function: self.program.functions[function].name.clone(),
            bytes,
        })
    }

    /// Runs all work-items of a group.
    pub fn run_group(
        &mut self,
        kernel: FunctionId,
        initial: &[[u64; 2]],
    ) -> Result<(), InterpretError> {
        let [nx, ny, nz] = self.grid.local;
        let ids = (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])));
        if !self.program.has_barriers {
            // Nobody waits for anybody: one work-item's memory serves all, one after the other.
            let mut item = Item {
                local_id: [0; 3],
                slots: Vec::new(),
                frames: Vec::new(),
                regions: Vec::new(),
            };
            for id in ids {
                self.start(&mut item, kernel, id, initial);
                self.resume(&mut item)?;
            }
            return Ok(());
        }
        let mut items: Vec<Item<'a>> = ids
            .map(|id| {
                let mut item = Item {
                    local_id: id,
                    slots: Vec::new(),
                    frames: Vec::new(),
                    regions: Vec::new(),
                };
                self.start(&mut item, kernel, id, initial);
                item
            })
            .collect();
        loop {
            let mut stops = Vec::with_capacity(items.len());
            for item in &mut items {
                stops.push(self.resume(item)?);
            }
            let Some(waiting) = stops.iter().find(|stop| **stop != Stop::Finished) else {
                return Ok(());
            };
            let count = stops.iter().filter(|stop| *stop == waiting).count();
            if count != stops.len() {
                return Err(InterpretError::Divergence {
                    kernel: self.program.functions[kernel].name.clone(),
                    group: self.group_id,
                    waiting: count,
                    elsewhere: stops.len() - count,
                });
            }
        }
    }

    /// Makes a work-item ready to run a kernel from its start.
    fn start(
        &self,
        item: &mut Item<'a>,
        kernel: FunctionId,
        local_id: [u64; 3],
        initial: &[[u64; 2]],
    ) {
        let function = &self.program.functions[kernel];
        item.local_id = local_id;
        item.slots.clear();
        item.slots.resize(function.slots as usize, 0);
        for (&slot, bits) in function.params.iter().zip(initial) {
            item.slots[slot as usize] = bits[0];
            // A pointer's second slot is its byte offset, 0 as all slots are.
        }
        item.frames.clear();
        item.frames.push(Frame {
            function: kernel,
            pc: 0,
            base: 0,
            regions: 0,
            result: 0,
        });
        item.regions.truncate(function.privates as usize);
        item.regions
            .resize_with(function.privates as usize, || Region::Own(Own::default()));
    }

    /// Runs a work-item until it finishes or reaches a barrier.
    fn resume(&mut self, item: &mut Item<'a>) -> Result<Stop, InterpretError> {
        let program = self.program;
        let Some(mut frame) = item.frames.pop() else {
            return Ok(Stop::Finished);
        };
        let mut function = &program.functions[frame.function];
        macro_rules! slot {
            ($slot:expr) => {
                item.slots[frame.base + $slot as usize]
            };
        }
        macro_rules! scalar {
            ($slot:expr, $dtype:expr) => {
                Scalar::from_bits($dtype, slot!($slot))
            };
        }
        loop {
            if self.steps == 0 {
                return Err(InterpretError::Steps {
                    function: function.name.clone(),
                    limit: self.limit,
                });
            }
            self.steps -= 1;
            let code = &function.code[frame.pc];
            frame.pc += 1;
            match code {
                Code::Const { dst, bits, lanes } => {
                    for lane in 0..*lanes {
                        slot!(dst + lane) = *bits;
                    }
                }
                Code::Fast {
                    op,
                    dst,
                    left,
                    right,
                    lanes,
                } => {
                    for lane in 0..*lanes {
                        slot!(dst + lane) = fast(*op, slot!(left + lane), slot!(right + lane))?;
                    }
                }
                Code::Map {
                    op,
                    dst,
                    args,
                    dtypes,
                    lanes,
                } => {
                    let arity = op.arity();
                    for lane in 0..*lanes {
                        let mut operands = [Scalar::bool(false); 3];
                        for at in 0..arity {
                            operands[at] = scalar!(args[at] + lane, dtypes[at]);
                        }
                        slot!(dst + lane) = evaluate(*op, &operands[..arity])?.bits();
                    }
                }
                Code::Cast {
                    dst,
                    src,
                    from,
                    to,
                    lanes,
                } => {
                    for lane in 0..*lanes {
                        slot!(dst + lane) = cast(scalar!(src + lane, *from), *to).bits();
                    }
                }
                Code::Move { dst, src, count } => {
                    let from = frame.base + *src as usize;
                    let to = frame.base + *dst as usize;
                    item.slots.copy_within(from..from + *count as usize, to);
                }
                Code::Splat { dst, src, lanes } => {
                    for lane in 0..*lanes {
                        slot!(dst + lane) = slot!(*src);
                    }
                }
                Code::ReduceLanes {
                    op,
                    dst,
                    src,
                    dtype,
                    lanes,
                } => {
                    let mut result = scalar!(*src, *dtype);
                    for lane in 1..*lanes {
                        let operand = scalar!(src + lane, *dtype);
                        result = evaluate(op.combine(), &[result, operand])?;
                    }
                    slot!(*dst) = result.bits();
                }
                Code::AllocPrivate { dst, site, bytes } => {
                    let number = frame.regions + *site as usize;
                    let Region::Own(own) = &mut item.regions[number] else {
                        unreachable!("a work-item's regions are its own")
                    };
                    if !own.reset(*bytes) {
                        return Err(InterpretError::OutOfMemory {
                            function: function.name.clone(),
                            bytes: *bytes,
                        });
                    }
                    slot!(*dst) = RegionId::Item(number as u32).bits();
                    slot!(dst + 1) = 0;
                }
                Code::AllocLocal { dst, site } => {
                    slot!(*dst) = RegionId::Group(*site).bits();
                    slot!(dst + 1) = 0;
                }
                Code::Offset {
                    dst,
                    ptr,
                    index,
                    stride,
                    bytes,
                    name,
                } => {
                    let index = index.map_or(0, |index| slot!(index) as i64);
                    let offset = i128::from(slot!(ptr + 1) as i64)
                        + i128::from(index) * i128::from(*stride)
                        + i128::from(*bytes);
                    // No region is as long as this, so a pointer that does not fit is out of bounds.
                    let Ok(offset) = i64::try_from(offset) else {
                        return Err(InterpretError::OutOfBounds {
                            function: function.name.clone(),
                            action: "points at",
                            pointer: function.names[*name].clone(),
                            index: index.into(),
                            length: 0,
                        });
                    };
                    slot!(*dst) = slot!(*ptr);
                    slot!(dst + 1) = offset as u64;
                }
                Code::Load { dst, from } => {
                    let dst = frame.base + *dst as usize;
                    self.read(item, function, frame.base, from, 0, dst)?;
                }
                Code::Store { src, to } => {
                    let src = frame.base + *src as usize;
                    self.write(item, function, frame.base, to, 0, src)?;
                }
                Code::Atomic { op, dst, at, value } => {
                    let before = frame.base + *dst as usize;
                    self.read(item, function, frame.base, at, 0, before)?;
                    let old = scalar!(*dst, at.dtype);
                    let operand = scalar!(*value, at.dtype);
                    let new = match op {
                        Some(op) => evaluate(*op, &[old, operand])?,
                        None => operand,
                    };
                    self.write_one(item, function, frame.base, at, new.bits())?;
                }
                Code::CompareExchange {
                    dst,
                    at,
                    expected,
                    value,
                } => {
                    let before = frame.base + *dst as usize;
                    self.read(item, function, frame.base, at, 0, before)?;
                    if slot!(*dst) == slot!(*expected) {
                        let new = slot!(*value);
                        self.write_one(item, function, frame.base, at, new)?;
                    }
                }
                Code::WorkItem { dst, query, axis } => {
                    slot!(*dst) = self.work_item(item.local_id, *query, *axis);
                }
                Code::AsyncCopy { dst, src, count } => {
                    let count = slot!(*count) as i64;
                    // One element at a time through a scratch frame behind the function's own.
                    let scratch = item.slots.len();
                    item.slots.resize(scratch + src.lanes as usize, 0);
                    for element in 0..count {
                        let element = i128::from(element);
                        self.read(item, function, frame.base, src, element, scratch)?;
                        self.write(item, function, frame.base, dst, element, scratch)?;
                    }
                    item.slots.truncate(scratch);
                }
                Code::TileLoad {
                    dst,
                    from,
                    rows,
                    cols,
                    stride,
                    interleave,
                } => {
                    let stride = i128::from(slot!(*stride) as i64);
                    let mut at = frame.base + *dst as usize;
                    for row in 0..*rows {
                        for col in 0..*cols {
                            let element = i128::from(row / interleave) * stride
                                + i128::from(col * interleave + row % interleave);
                            self.read(item, function, frame.base, from, element, at)?;
                            at += 1;
                        }
                    }
                }
                Code::TileStore {
                    src,
                    to,
                    rows,
                    cols,
                    stride,
                } => {
                    let stride = i128::from(slot!(*stride) as i64);
                    let mut at = frame.base + *src as usize;
                    for row in 0..*rows {
                        for col in 0..*cols {
                            let element = i128::from(row) * stride + i128::from(col);
                            self.write(item, function, frame.base, to, element, at)?;
                            at += 1;
                        }
                    }
                }
                Code::TileMma(mma) => tile_mma(&mut item.slots[frame.base..], mma)?,
                Code::Call {
                    function: callee,
                    args,
                    dst,
                } => {
                    let number = *callee;
                    let callee = &program.functions[number];
                    if item.frames.len() >= MOST_CALLS {
                        return Err(InterpretError::Depth {
                            function: callee.name.clone(),
                            depth: item.frames.len(),
                        });
                    }
                    let base = item.slots.len();
                    item.slots.resize(base + callee.slots as usize, 0);
                    for (&(src, count), &param) in args.iter().zip(&callee.params) {
                        let from = frame.base + src as usize;
                        item.slots
                            .copy_within(from..from + count as usize, base + param as usize);
                    }
                    item.frames.push(frame);
                    frame = Frame {
                        function: number,
                        pc: 0,
                        base,
                        regions: item.regions.len(),
                        result: *dst,
                    };
                    function = callee;
                    item.regions
                        .resize_with(frame.regions + callee.privates as usize, || {
                            Region::Own(Own::default())
                        });
                }
                Code::Return { src, count } => {
                    let Some(caller) = item.frames.pop() else {
                        return Ok(Stop::Finished);
                    };
                    let from = frame.base + *src as usize;
                    item.slots.copy_within(
                        from..from + *count as usize,
                        caller.base + frame.result as usize,
                    );
                    item.slots.truncate(frame.base);
                    item.regions.truncate(frame.regions);
                    frame = caller;
                    function = &program.functions[frame.function];
                }
                Code::LoopEnter {
                    var,
                    start,
                    end,
                    step,
                    remaining,
                    reversed,
                    exit,
                    name,
                } => {
                    let step = slot!(*step) as i64;
                    if step < 1 {
                        return Err(InterpretError::Step {
                            function: function.name.clone(),
                            var: function.names[*name].clone(),
                            step,
                        });
                    }
                    let start = slot!(*start) as i64;
                    let end = slot!(*end) as i64;
                    if start >= end {
                        frame.pc = *exit as usize;
                        continue;
                    }
                    // In 128 bits neither the distance nor the last value can overflow.
                    let last = (i128::from(end) - i128::from(start) - 1) / i128::from(step);
                    slot!(*remaining) = last as u64;
                    let first = match reversed {
                        true => (i128::from(start) + last * i128::from(step)) as i64,
                        false => start,
                    };
                    slot!(*var) = first as u64;
                }
                Code::LoopNext {
                    var,
                    step,
                    remaining,
                    reversed,
                    body,
                } => {
                    if slot!(*remaining) > 0 {
                        leave_if_asked()?;
                        slot!(*remaining) -= 1;
                        let step = slot!(*step);
                        slot!(*var) = match reversed {
                            true => slot!(*var).wrapping_sub(step),
                            false => slot!(*var).wrapping_add(step),
                        };
                        frame.pc = *body as usize;
                    }
                }
                Code::Jump(to) => {
                    // A loop jumps back.
                    leave_if_asked()?;
                    frame.pc = *to as usize;
                }
                Code::JumpUnless { cond, to } => {
                    if slot!(*cond) == 0 {
                        frame.pc = *to as usize;
                    }
                }
                Code::Barrier => {
                    let stop = Stop::Barrier(frame.function, frame.pc);
                    item.frames.push(frame);
                    return Ok(stop);
                }
            }
        }
    }

    fn work_item(&self, local_id: [u64; 3], query: WorkItem, axis: u8) -> u64 {
        let axis = usize::from(axis);
        if axis > 2 {
            // As in OpenCL, further axes have one work-item.
            return match query {
                WorkItem::GlobalId | WorkItem::LocalId | WorkItem::GroupId => 0,
                WorkItem::GlobalSize | WorkItem::LocalSize | WorkItem::GroupCount => 1,
            };
        }
        match query {
            WorkItem::GlobalId => self.group_id[axis] * self.grid.local[axis] + local_id[axis],
            WorkItem::LocalId => local_id[axis],
            WorkItem::GroupId => self.group_id[axis],
            WorkItem::GlobalSize => self.grid.global[axis],
            WorkItem::LocalSize => self.grid.local[axis],
            WorkItem::GroupCount => self.grid.global[axis] / self.grid.local[axis],
        }
    }

    /// Reads an access, `further` elements on, into the slots from `dst` on.
    fn read(
        &self,
        item: &mut Item<'a>,
        function: &Function,
        base: usize,
        access: &Access,
        further: i128,
        dst: usize,
    ) -> Result<(), InterpretError> {
        let size = access.dtype.bytes();
        let place = Place::of(item, base, access, further);
        let region = match place.region {
            RegionId::Argument(number) => self.arguments.get(number as usize),
            RegionId::Group(number) => self.group.get(number as usize),
            RegionId::Item(number) => item.regions.get(number as usize),
        };
        let Some(region) = region else {
            return Err(dangling(function, access.name));
        };
        let mut copy = Copied::new();
        let bytes = place
            .offset(region)
            .and_then(|at| region.read(at, size * access.lanes as usize, &mut copy))
            .map_err(|fault| place.error(fault, "reads", function, access, region))?;
        // One scalar is most of what is read; it needs no loop.
        if access.lanes == 1 {
            let bits = read_bits(access.dtype, bytes);
            if access.pointer {
                item.slots[dst..dst + 2].copy_from_slice(&unpack_pointer(bits));
            } else {
                item.slots[dst] = bits;
            }
        } else {
            for (lane, bytes) in bytes.chunks_exact(size).enumerate() {
                item.slots[dst + lane] = read_bits(access.dtype, bytes);
            }
        }
        Ok(())
    }

    /// Writes the slots from `src` on.
    fn write(
        &mut self,
        item: &mut Item<'a>,
        function: &Function,
        base: usize,
        access: &Access,
        further: i128,
        src: usize,
    ) -> Result<(), InterpretError> {
        let size = access.dtype.bytes();
        let place = Place::of(item, base, access, further);
        let packed = match access.pointer {
            true => match pack_pointer(item.slots[src], item.slots[src + 1]) {
                Some(packed) => Some(packed),
                None => return Err(dangling(function, access.name)),
            },
            false => None,
        };
        let region = match place.region {
            RegionId::Argument(number) => self.arguments.get_mut(number as usize),
            RegionId::Group(number) => self.group.get_mut(number as usize),
            RegionId::Item(number) => item.regions.get_mut(number as usize),
        };
        let Some(region) = region else {
            return Err(dangling(function, access.name));
        };
        let slots = &item.slots[src..];
        let fill = |bytes: &mut [u8]| match packed {
            Some(packed) => write_bits(packed, bytes),
            None => {
                for (bits, bytes) in slots.iter().zip(bytes.chunks_exact_mut(size)) {
                    write_bits(*bits, bytes);
                }
            }
        };
        place
            .offset(region)
            .and_then(|at| region.write(at, size * access.lanes as usize, fill))
            .map_err(|fault| place.error(fault, "writes", function, access, region))
    }

    /// Writes one element that is in no slot.
    fn write_one(
        &mut self,
        item: &mut Item<'a>,
        function: &Function,
        base: usize,
        access: &Access,
        bits: u64,
    ) -> Result<(), InterpretError> {
        let scratch = item.slots.len();
        item.slots.push(bits);
        self.write(item, function, base, access, 0, scratch)?;
        item.slots.truncate(scratch);
        Ok(())
    }
}

/// Where an access goes: a region and a byte of it, which may lie outside.
#[derive(Clone, Copy)]
struct Place {
    region: RegionId,
    byte: i128,
}

impl Place {
    #[inline]
    fn of(item: &Item<'_>, base: usize, access: &Access, further: i128) -> Place {
        let ptr = base + access.ptr as usize;
        let offset = item.slots[ptr + 1] as i64;
        let index = item.slots[base + access.index as usize] as i64;
        let index = i128::from(index) + further;
        // An index of at most 64 bits and an offset cannot leave 128 bits unless the tile's stride
        // is absurd; then the access is out of bounds anyway.
        let byte = index
            .saturating_mul(i128::from(access.stride))
            .saturating_add(i128::from(offset));
        Place {
            region: RegionId::from_bits(item.slots[ptr]),
            byte,
        }
    }

    #[inline]
    fn offset(&self, region: &Region<'_>) -> Result<usize, Fault> {
        match usize::try_from(self.byte) {
            Ok(byte) if byte <= region.len() => Ok(byte),
            _ => Err(Fault::Bounds),
        }
    }

    #[cold]
    fn error(
        &self,
        fault: Fault,
        action: &'static str,
        function: &Function,
        access: &Access,
        region: &Region<'_>,
    ) -> InterpretError {
        let size = access.stride.max(1);
        let name = function.name.clone();
        let pointer = function.names[access.name].clone();
        let first = self.byte.div_euclid(size.into());
        let length = region.len() as u64 / size;
        match fault {
            Fault::Bounds => InterpretError::OutOfBounds {
                function: name,
                action,
                pointer,
                // The first element that is not there.
                index: if first < 0 {
                    first
                } else {
                    first.max(length.into())
                },
                length,
            },
            Fault::Undefined => InterpretError::Undefined {
                function: name,
                pointer,
                index: first,
            },
            Fault::ReadOnly => InterpretError::ReadOnly {
                function: name,
                pointer,
            },
        }
    }
}

#[cold]
fn dangling(function: &Function, pointer: Value) -> InterpretError {
    InterpretError::Dangling {
        function: function.name.clone(),
        pointer: function.names[pointer].clone(),
    }
}

/// The ops most programs are made of, computed directly. Each is what `evaluate` says: integers
/// wrap, floats are the machine's, and a NaN is left to `evaluate`, which says which one it is.
#[inline]
fn fast(op: Fast, left: u64, right: u64) -> Result<u64, OpError> {
    let (a, b) = (left as i64, right as i64);
    let single = |op: Op, result: f32| -> Result<u64, OpError> {
        if result.is_nan() {
            let operand = |bits| Scalar::from_bits(DType::F32, bits);
            return Ok(evaluate(op, &[operand(left), operand(right)])?.bits());
        }
        Ok(u64::from(result.to_bits()))
    };
    let double = |op: Op, result: f64| -> Result<u64, OpError> {
        if result.is_nan() {
            let operand = |bits| Scalar::from_bits(DType::F64, bits);
            return Ok(evaluate(op, &[operand(left), operand(right)])?.bits());
        }
        Ok(result.to_bits())
    };
    let (f, g) = (f32::from_bits(left as u32), f32::from_bits(right as u32));
    let (d, e) = (f64::from_bits(left), f64::from_bits(right));
    match op {
        Fast::I64Add => Ok(a.wrapping_add(b) as u64),
        Fast::I64Sub => Ok(a.wrapping_sub(b) as u64),
        Fast::I64Mul => Ok(a.wrapping_mul(b) as u64),
        Fast::I64Lt => Ok(u64::from(a < b)),
        Fast::I64Le => Ok(u64::from(a <= b)),
        Fast::I64Eq => Ok(u64::from(a == b)),
        Fast::I64Ne => Ok(u64::from(a != b)),
        Fast::F32Add => single(Op::Add, f + g),
        Fast::F32Sub => single(Op::Sub, f - g),
        Fast::F32Mul => single(Op::Mul, f * g),
        Fast::F64Add => double(Op::Add, d + e),
        Fast::F64Sub => double(Op::Sub, d - e),
        Fast::F64Mul => double(Op::Mul, d * e),
    }
}

fn tile_mma(slots: &mut [u64], mma: &TileMma) -> Result<(), OpError> {
    let operand = |slots: &[u64], slot: u32, from: DType| {
        cast(Scalar::from_bits(from, slots[slot as usize]), mma.dtype)
    };
    for row in 0..mma.rows {
        for col in 0..mma.cols {
            let at = row * mma.cols + col;
            let mut sum = Scalar::from_bits(mma.dtype, slots[(mma.accumulator + at) as usize]);
            for k in 0..mma.inner {
                let left = operand(slots, mma.left + row * mma.inner + k, mma.left_dtype);
                let right = operand(slots, mma.right + k * mma.cols + col, mma.right_dtype);
                sum = evaluate(Op::MulAdd, &[left, right, sum])?;
            }
            slots[(mma.dst + at) as usize] = sum.bits();
        }
    }
    Ok(())
}

/// Ends the run where it was told to end.
#[inline]
fn leave_if_asked() -> Result<(), InterpretError> {
    let attention = interrupt::attention();
    match attention.load(std::sync::atomic::Ordering::Relaxed) != 0 && interrupt::poll() != 0 {
        true => Err(InterpretError::Interrupted),
        false => Ok(()),
    }
}
