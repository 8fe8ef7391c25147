//! What is known of a function before code is written: how indices are made up, which values need a register, which arrays are
//! variables, and which products are part of a sum.

use super::linear::Linear;
use super::matrix::Matrix;
use super::stream::{Streams, streams};
use loopwright_arena::{TiSlice, TiVec};
use loopwright_kernel::interpret::Layout;
use loopwright_kernel::{
    Block, Function, FunctionKind, Inst, LoopKind, Module, Space, Stmt, Type, Value,
};
use loopwright_ops::{DType, Op, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// An op and its operands.
type Mapped = (Op, SmallVec<[Value; 3]>);

/// What is known of a function.
pub(crate) struct Analysis {
    /// Constants.
    pub(crate) constants: TiVec<Value, Option<Scalar>>,
    /// Indices and pointers as sums of products; pointers are in bytes.
    pub(crate) forms: TiVec<Value, Option<Linear>>,
    /// Whether a value is needed as such, and not only as a part of addresses.
    pub(crate) needed: TiVec<Value, bool>,
    /// How often a value is used, as a part of addresses too.
    pub(crate) uses: TiVec<Value, u32>,
    /// Arrays of one element that are only read and written: variables, which can be in registers.
    pub(crate) variable: TiVec<Value, bool>,
    /// When a value is defined, and, for the variable of a loop, when that ends.
    pub(crate) defined: TiVec<Value, u32>,
    pub(crate) loop_ends: FxHashMap<Value, u32>,
    /// Loads of which only copies in all lanes of vectors are needed.
    pub(crate) broadcast: TiVec<Value, bool>,
    /// Reads of a variable that need no copy of it: nothing writes the variable before their last use.
    pub(crate) alias: TiVec<Value, bool>,
    /// Values that are computed right into the variable that they are stored to: the array.
    pub(crate) into: TiVec<Value, Option<Value>>,
    /// The op of each value that is one, with its operands: ops that are computed with others.
    pub(crate) maps: TiVec<Value, Option<Mapped>>,
    /// The tiles, where they are in registers.
    pub(crate) matrix: Option<Matrix>,
    /// What goes past the caches, and what is fetched early.
    pub(crate) streams: Streams,
}

/// What the walk collects to find variables.
#[derive(Clone, Copy, Default)]
struct Array {
    /// The parallel loop it is made in.
    parallel: u32,
    disqualified: bool,
}

struct Walk<'f> {
    module: &'f Module,
    function: &'f Function,
    found: Analysis,
    arrays: FxHashMap<Value, Array>,
    time: u32,
    parallel: u32,
    parallels: u32,
    /// Whether the function's parallel loops run on the pool.
    pooled: bool,
    /// For each use of a value as such: what makes it needed.
    inst_operands: TiVec<Value, SmallVec<[Value; 3]>>,
    roots: Vec<Value>,
}

/// Looks at a function.
pub(crate) fn analyse(module: &Module, function: &Function) -> Analysis {
    let count = function.values.len();
    let mut walk = Walk {
        module,
        function,
        found: Analysis {
            constants: vec![None; count].into(),
            forms: vec![None; count].into(),
            needed: vec![false; count].into(),
            uses: vec![0; count].into(),
            variable: vec![false; count].into(),
            defined: vec![0; count].into(),
            loop_ends: FxHashMap::default(),
            broadcast: vec![false; count].into(),
            alias: vec![false; count].into(),
            into: vec![None; count].into(),
            maps: vec![None; count].into(),
            matrix: None,
            streams: Streams::default(),
        },
        arrays: FxHashMap::default(),
        time: 1,
        parallel: 0,
        parallels: 0,
        pooled: matches!(function.kind, FunctionKind::Kernel { .. }),
        inst_operands: vec![SmallVec::new(); count].into(),
        roots: Vec::new(),
    };
    for param in &function.params {
        walk.atom(param.value);
    }
    walk.block(&function.body);
    for (array, info) in &walk.arrays {
        walk.found.variable[*array] = !info.disqualified;
    }
    walk.mark();
    walk.broadcasts(&function.body);
    walk.variables(&function.body, &mut Places::new(count));
    walk.found.streams = streams(module, function, &walk.found);
    walk.found
}

impl<'f> Walk<'f> {
    fn atom(&mut self, value: Value) {
        match self.function.ty(value) {
            Type::Scalar(DType::I64) | Type::Pointer(..) => {
                self.found.forms[value] = Some(Linear::value(value));
            }
            _ => {}
        }
    }

    fn form(&self, value: Value) -> Linear {
        let form = &self.found.forms[value];
        form.clone().unwrap_or_else(|| Linear::value(value))
    }

    fn block(&mut self, block: &Block) {
        for stmt in block {
            self.time += 1;
            self.statement(stmt);
        }
    }

    /// A use that is not a read or write of an array as such.
    fn escapes(&mut self, value: Value) {
        if let Some(array) = self.arrays.get_mut(&value) {
            array.disqualified = true;
        }
    }

    /// A read or write of `ty` at an element of what may be a variable.
    fn accessed(&mut self, ptr: Value, index: Value, ty: &'f Type) {
        let form = self.found.forms[index].as_ref();
        let zero = form.is_some_and(|form| form.known() == Some(0));
        let parallel = self.parallel;
        let whole = self.function.ty(ptr).pointee() == Some(ty);
        if let Some(array) = self.arrays.get_mut(&ptr)
            && !(zero && whole && array.parallel == parallel)
        {
            array.disqualified = true;
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        stmt.operands(&mut |operand| self.found.uses[*operand] += 1);
        match stmt {
            Stmt::Let(value, inst) => self.definition(*value, inst),
            Stmt::Store { ptr, index, value } => {
                self.accessed(*ptr, *index, self.function.ty(*value));
                self.escapes(*value);
                self.roots.push(*value);
                self.access_roots(*ptr, *index);
            }
            Stmt::For {
                var,
                start,
                end,
                step,
                kind,
                body,
            } => {
                self.roots.extend([*start, *end, *step]);
                self.found.defined[*var] = self.time;
                self.atom(*var);
                let outer = self.parallel;
                if self.pooled && *kind == LoopKind::Parallel && outer == 0 {
                    self.parallels += 1;
                    self.parallel = self.parallels;
                }
                self.block(body);
                self.parallel = outer;
                self.time += 1;
                self.found.loop_ends.insert(*var, self.time);
            }
            Stmt::While { head, cond, body } => {
                self.block(head);
                self.roots.push(*cond);
                self.block(body);
                self.time += 1;
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } => {
                self.roots.push(*cond);
                self.block(then);
                self.block(otherwise);
            }
            other => {
                let mut operands = SmallVec::<[Value; 4]>::new();
                other.operands(&mut |operand| operands.push(*operand));
                for operand in operands {
                    self.escapes(operand);
                    self.roots.push(operand);
                }
            }
        }
    }

    /// What an address is made of is needed, where it is not a variable.
    fn access_roots(&mut self, ptr: Value, index: Value) {
        let address = self.address(ptr, index);
        for term in &address.terms {
            self.roots.extend(term.factors.iter().copied());
        }
    }

    /// The address of an element, in bytes.
    fn address(&self, ptr: Value, index: Value) -> Linear {
        address(self.module, self.function, &self.found, ptr, index)
    }

    fn definition(&mut self, value: Value, inst: &Inst) {
        self.found.defined[value] = self.time;
        let is_index = *self.function.ty(value) == Type::INDEX;
        let mut operands = SmallVec::<[Value; 3]>::new();
        inst.operands(&mut |operand| operands.push(*operand));
        match inst {
            Inst::Const(scalar) => {
                self.found.constants[value] = Some(*scalar);
                if is_index {
                    self.found.forms[value] = Some(Linear::constant(scalar.bits().cast_signed()));
                }
            }
            Inst::Map(op, of) => {
                self.found.maps[value] = Some((*op, SmallVec::from_slice(of)));
                if is_index {
                    let form = match (op, of.as_slice()) {
                        (Op::Add, &[a, b]) => self.form(a).plus(&self.form(b)).short(),
                        (Op::Sub, &[a, b]) => self.form(a).plus(&self.form(b).times(-1)).short(),
                        (Op::Mul, &[a, b]) => self.form(a).product(&self.form(b)),
                        (Op::Neg, &[a]) => Some(self.form(a).times(-1)),
                        (Op::Copy, &[a]) => Some(self.form(a)),
                        (Op::MulAdd, &[a, b, c]) => {
                            let product = self.form(a).product(&self.form(b));
                            product.and_then(|product| product.plus(&self.form(c)).short())
                        }
                        _ => None,
                    };
                    self.found.forms[value] = Some(form.unwrap_or_else(|| Linear::value(value)));
                }
                self.inst_operands[value] = operands;
            }
            Inst::Alloc { space, ty, count } => {
                if *space == Space::Private
                    && *count == 1
                    && matches!(ty, Type::Scalar(_) | Type::Vector(..))
                {
                    let array = Array {
                        parallel: self.parallel,
                        disqualified: false,
                    };
                    self.arrays.insert(value, array);
                }
                self.atom(value);
            }
            Inst::Load { ptr, index } => {
                self.accessed(*ptr, *index, self.function.ty(value));
                let address = self.address(*ptr, *index);
                let factors = address.terms.iter().flat_map(|term| term.factors.iter());
                // Reading has no effect but its value: if that is not needed, neither is the address.
                self.inst_operands[value] = factors.copied().collect();
                self.atom(value);
            }
            Inst::Offset { ptr, index } => {
                self.escapes(*ptr);
                self.found.forms[value] = Some(self.address(*ptr, *index));
                self.pointer_operands(value);
            }
            Inst::Field { ptr, field } => {
                self.escapes(*ptr);
                let offset = self.field_offset(*ptr, *field);
                self.found.forms[value] = Some(self.form(*ptr).plus(&Linear::constant(offset)));
                self.pointer_operands(value);
            }
            Inst::Elements(ptr) => {
                self.escapes(*ptr);
                self.found.forms[value] = Some(self.form(*ptr));
                self.pointer_operands(value);
            }
            Inst::Atomic { .. } | Inst::CompareExchange { .. } | Inst::Call(..) => {
                for operand in &operands {
                    self.escapes(*operand);
                }
                self.roots.push(value);
                if let Inst::Atomic {
                    ptr,
                    index,
                    value: operand,
                    ..
                } = inst
                {
                    self.access_roots(*ptr, *index);
                    self.roots.push(*operand);
                } else if let Inst::CompareExchange {
                    ptr,
                    index,
                    expected,
                    value: new,
                } = inst
                {
                    self.access_roots(*ptr, *index);
                    self.roots.extend([*expected, *new]);
                } else {
                    self.roots.extend(operands.iter().copied());
                }
                self.atom(value);
            }
            _ => {
                for operand in &operands {
                    self.escapes(*operand);
                }
                self.inst_operands[value] = operands;
                self.atom(value);
            }
        }
    }

    /// What a pointer's form mentions is needed where the pointer is.
    fn pointer_operands(&mut self, value: Value) {
        let form = self.form(value);
        let factors = form.terms.iter().flat_map(|term| term.factors.iter());
        self.inst_operands[value] = factors.copied().filter(|f| *f != value).collect();
    }

    fn field_offset(&self, ptr: Value, field: u32) -> i64 {
        let Some(Type::Struct(id)) = self.function.ty(ptr).pointee() else {
            return 0;
        };
        let fields = &self.module.structs[*id].fields;
        let offset = Layout::field_offset(self.module, fields, field as usize);
        offset.unwrap_or(0) as i64
    }

    /// Marks what is needed, from the roots on.
    fn mark(&mut self) {
        let mut open = std::mem::take(&mut self.roots);
        while let Some(value) = open.pop() {
            let needed = &mut self.found.needed[value];
            if !*needed {
                *needed = true;
                open.extend(self.inst_operands[value].iter().copied());
            }
        }
    }

    /// Finds loads of scalars that are only wanted in all lanes of vectors.
    fn broadcasts(&mut self, block: &Block) {
        let mut splats: FxHashMap<Value, u32> = FxHashMap::default();
        count_splats(self.function, block, &self.found.variable, &mut splats);
        for (value, count) in splats {
            if self.found.uses[value] == count {
                self.found.broadcast[value] = true;
            }
        }
    }

    /// Whether a value is used once, and computed by an instruction that can write it where it is wanted.
    fn only_in_place(&self, value: Value) -> bool {
        let map = self.found.maps[value].as_ref();
        self.found.uses[value] == 1
            && map.is_some_and(|(op, _)| computed_in_place(*op, self.function.ty(value)))
    }

    /// The sum in the same block that a sum goes on from, and when it is made; `None` for one that goes on from what it reads
    /// of the variable.
    fn continued(
        &self,
        sum: Value,
        places: &Places,
        reads_variable: &dyn Fn(&Value) -> bool,
    ) -> Option<(Value, u32)> {
        let (op, operands) = self.found.maps[sum].as_ref()?;
        if operands.iter().any(reads_variable) {
            return None;
        }
        // What a product is added to, not the product.
        let first = if *op == Op::MulAdd { 2 } else { 0 };
        let before = operands[first..]
            .iter()
            .find(|operand| self.only_in_place(**operand) && self.same_type(**operand, sum))?;
        Some((*before, places.defined(*before)?))
    }

    fn same_type(&self, a: Value, b: Value) -> bool {
        self.function.ty(a) == self.function.ty(b)
    }

    /// Finds which reads of variables need no copy, and which values are computed right into a variable.
    fn variables(&mut self, block: &Block, places: &mut Places) {
        for stmt in block {
            for inner in stmt.blocks().into_iter().flatten() {
                self.variables(inner, places);
            }
        }
        places.block += 1;
        // Every read and write of a variable.
        let mut touches: Vec<Touch> = Vec::new();
        for (at, stmt) in block.iter().enumerate() {
            let at = at as u32;
            stmt.operands(&mut |operand| places.uses(*operand, at));
            match stmt {
                Stmt::Let(value, inst) => {
                    places.defines(*value, at);
                    if let Inst::Load { ptr, .. } = inst
                        && self.found.variable[*ptr]
                    {
                        touches.push(Touch::new(*ptr, at, How::Read(*value)));
                    }
                }
                Stmt::Store { ptr, value, .. } if self.found.variable[*ptr] => {
                    touches.push(Touch::new(*ptr, at, How::Written(*value)));
                }
                _ => {
                    for block in stmt.blocks().into_iter().flatten() {
                        self.inner_touches(block, at, places, &mut touches);
                    }
                }
            }
        }
        // Those of one variable together, in order.
        touches.sort_by_key(|touch| touch.array);
        for touches in touches.chunk_by_mut(|one, next| one.array == next.array) {
            self.touched(touches, places);
        }
    }

    /// What the blocks of a statement use, and which variables they touch.
    fn inner_touches(&self, block: &Block, at: u32, places: &mut Places, touches: &mut Vec<Touch>) {
        for stmt in block {
            stmt.operands(&mut |operand| places.uses(*operand, at));
            let (array, how) = match stmt {
                Stmt::Store { ptr, .. } => (*ptr, How::WrittenInside),
                Stmt::Let(_, Inst::Load { ptr, .. }) => (*ptr, How::ReadInside),
                _ => {
                    for inner in stmt.blocks().into_iter().flatten() {
                        self.inner_touches(inner, at, places, touches);
                    }
                    continue;
                }
            };
            if self.found.variable[array] {
                touches.push(Touch::new(array, at, how));
            }
        }
    }

    /// Decides for the reads and writes of one variable in a block.
    fn touched(&mut self, touches: &mut [Touch], places: &Places) {
        // Values computed right into the variable: nothing touches it in between.
        for number in 0..touches.len() {
            let Touch { array, at, how, .. } = touches[number];
            let How::Written(value) = how else { continue };
            let Some(made) = places.defined(value) else {
                continue;
            };
            // The variable is there from its definition on.
            let made_in = places.defined(array);
            let untouched = |from: u32, to: u32| {
                let mut touches = touches.iter();
                made_in.is_none_or(|made_in| made_in < from)
                    && !touches.any(|touch| touch.at > from && touch.at < to)
            };
            if !self.only_in_place(value) || !untouched(made, at) {
                continue;
            }
            self.found.into[value] = Some(array);
            // So are those that it continues, one after the other, as in a loop that was written out.
            let (mut first, mut next) = (made, value);
            let reads_array = |value: &Value| {
                let mut touches = touches.iter();
                touches.any(|touch| matches!(touch.how, How::Read(read) if read == *value))
            };
            while let Some((before, made)) = self.continued(next, places, &reads_array)
                && untouched(made, at)
            {
                self.found.into[before] = Some(array);
                (first, next) = (made, before);
            }
            touches[number].begins = first;
        }
        for touch in touches.iter() {
            let How::Read(value) = touch.how else {
                continue;
            };
            let last = places.last_use(value).unwrap_or(touch.at);
            let mut writes = touches.iter().filter(|touch| touch.writes());
            let next = writes.find(|write| write.at > touch.at);
            // A statement with blocks that both uses the value and writes the variable may do so in any order.
            let nested = touches
                .iter()
                .any(|touch| touch.at == last && matches!(touch.how, How::WrittenInside));
            // An index is part of other values' sums, which may be used at any time.
            let index = self.found.forms[value].is_some();
            self.found.alias[value] =
                !index && !nested && next.is_none_or(|next| last <= next.begins);
        }
    }
}

/// A read or write of a variable by a statement of a block.
#[derive(Clone, Copy)]
struct Touch {
    array: Value,
    /// The statement.
    at: u32,
    how: How,
    /// The statement that writes it first: an earlier one, where a value is computed right into the variable.
    begins: u32,
}

#[derive(Clone, Copy)]
enum How {
    /// This value is what was read.
    Read(Value),
    /// This value is written.
    Written(Value),
    /// A block of the statement reads it.
    ReadInside,
    /// A block of the statement writes it.
    WrittenInside,
}

impl Touch {
    fn new(array: Value, at: u32, how: How) -> Touch {
        let begins = at;
        Touch {
            array,
            at,
            how,
            begins,
        }
    }

    fn writes(&self) -> bool {
        matches!(self.how, How::Written(_) | How::WrittenInside)
    }
}

/// Where in the block at hand values are defined and used last. One table serves all blocks: an entry counts if it was made
/// for this one.
struct Places {
    /// The block's number.
    block: u32,
    /// For each value, the number of a block and the statement there.
    defined: TiVec<Value, (u32, u32)>,
    last_use: TiVec<Value, (u32, u32)>,
}

impl Places {
    fn new(values: usize) -> Places {
        Places {
            block: 0,
            defined: vec![(0, 0); values].into(),
            last_use: vec![(0, 0); values].into(),
        }
    }

    fn defines(&mut self, value: Value, at: u32) {
        self.defined[value] = (self.block, at);
    }

    fn uses(&mut self, value: Value, at: u32) {
        self.last_use[value] = (self.block, at);
    }

    fn defined(&self, value: Value) -> Option<u32> {
        let (block, at) = self.defined[value];
        (block == self.block).then_some(at)
    }

    fn last_use(&self, value: Value) -> Option<u32> {
        let (block, at) = self.last_use[value];
        (block == self.block).then_some(at)
    }
}

/// How often elements of memory, but not of variables, are put into all lanes of a vector.
fn count_splats(
    function: &Function,
    block: &Block,
    variable: &TiSlice<Value, bool>,
    splats: &mut FxHashMap<Value, u32>,
) {
    fn collect(
        function: &Function,
        block: &Block,
        variable: &TiSlice<Value, bool>,
        loads: &mut FxHashSet<Value>,
        splats: &mut FxHashMap<Value, u32>,
    ) {
        for stmt in block {
            match stmt {
                Stmt::Let(value, Inst::Load { ptr, .. }) if !variable[*ptr] => {
                    loads.insert(*value);
                }
                Stmt::Let(_, Inst::Splat(value)) if loads.contains(value) => {
                    *splats.entry(*value).or_default() += 1;
                }
                Stmt::For {
                    kind: LoopKind::Parallel,
                    body,
                    ..
                } => {
                    // A task takes scalars from outside as they are: integers in general registers.
                    let mut taken = loads.clone();
                    taken.retain(|value| {
                        let ty = function.ty(*value);
                        matches!(ty, Type::Scalar(DType::F32 | DType::F64))
                    });
                    collect(function, body, variable, &mut taken, splats);
                    continue;
                }
                _ => {}
            }
            for inner in stmt.blocks().into_iter().flatten() {
                collect(function, inner, variable, loads, splats);
            }
        }
    }
    collect(function, block, variable, &mut FxHashSet::default(), splats);
}

/// Ops whose machine instruction writes its result last and at once.
fn computed_in_place(op: Op, ty: &Type) -> bool {
    match ty {
        Type::Scalar(DType::F32 | DType::F64) | Type::Vector(DType::F32 | DType::F64, _) => {
            matches!(op, Op::Add | Op::Sub | Op::Mul | Op::MulAdd)
        }
        Type::Vector(DType::I32 | DType::U32 | DType::I64 | DType::U64, _) => {
            matches!(op, Op::Add | Op::Sub)
        }
        _ => false,
    }
}

/// The address of an element, in bytes.
pub(crate) fn address(
    module: &Module,
    function: &Function,
    found: &Analysis,
    ptr: Value,
    index: Value,
) -> Linear {
    let form = |value: Value| found.forms[value].as_ref();
    let size = function
        .ty(ptr)
        .pointee()
        .and_then(|ty| Layout::of(module, ty))
        .map_or(0, |layout| layout.size as i64);
    let mut address = form(ptr).cloned().unwrap_or_else(|| Linear::value(ptr));
    match form(index) {
        Some(index) => address.add_times(index, size),
        None => address.add_times(&Linear::value(index), size),
    }
    address
}
