//! Code under construction: types, temporaries, branches, loops and the small functions that ops become.

use crate::context::Context;
use crate::ffi::{Binary, Blk, Compare, Func, FuncKind, Place, Ty, Unary, Val, types};
use crate::level::Level;
use loopwright_ops::{DType, Kind, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::c_int;

/// What all functions of a module share.
pub(crate) struct Shared<'a> {
    pub(super) context: &'a Context,
    pub(super) level: Level,
    /// Small functions, each written once.
    helpers: FxHashMap<String, Func>,
    builtins: FxHashMap<String, Func>,
    scalars: FxHashMap<DType, Ty>,
    vectors: FxHashMap<(DType, u32), Ty>,
    /// Vectors as they lie in memory: aligned as their elements are.
    memory_vectors: FxHashMap<(DType, u32), Ty>,
    /// Vectors larger than a register, which functions take and give by address: GCC has something to say on the ABI of others, and
    /// the library takes every note and warning for an error.
    large: FxHashSet<Ty>,
    /// Arrays: to the library two of the same element and length are two types.
    arrays: FxHashMap<(Ty, c_int), Ty>,
}

/// A scalar or vector. A vector of `bool` that a comparison gave is a mask: lanes of signed integers so many bits
/// wide, all bits set where true. Any other `bool` is a byte of 0 or 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) val: Val,
    pub(crate) mask: Option<u32>,
}

impl Held {
    pub(crate) fn plain(val: Val) -> Held {
        Held { val, mask: None }
    }
}

/// The integer or float that a dtype is held as: narrow floats and `bool` as their bits.
pub(super) fn held_as(dtype: DType) -> DType {
    match dtype {
        DType::Bool | DType::F8E4M3 | DType::F8E5M2 => DType::U8,
        DType::F16 | DType::BF16 => DType::U16,
        other => other,
    }
}

/// Whether a dtype is held as the bits of a float narrower than `float`.
pub(super) fn is_narrow(dtype: DType) -> bool {
    dtype.compute() != dtype
}

/// The integer dtype of so many bits.
pub(super) fn int_dtype(bits: u32, signed: bool) -> DType {
    match (bits, signed) {
        (8, true) => DType::I8,
        (16, true) => DType::I16,
        (32, true) => DType::I32,
        (_, true) => DType::I64,
        (8, false) => DType::U8,
        (16, false) => DType::U16,
        (32, false) => DType::U32,
        (_, false) => DType::U64,
    }
}

impl<'a> Shared<'a> {
    pub(crate) fn new(context: &'a Context, level: Level) -> Shared<'a> {
        Shared {
            context,
            level,
            helpers: FxHashMap::default(),
            builtins: FxHashMap::default(),
            scalars: FxHashMap::default(),
            vectors: FxHashMap::default(),
            memory_vectors: FxHashMap::default(),
            large: FxHashSet::default(),
            arrays: FxHashMap::default(),
        }
    }

    pub(super) fn scalar(&mut self, dtype: DType) -> Ty {
        let context = self.context;
        let dtype = held_as(dtype);
        *self.scalars.entry(dtype).or_insert_with(|| match dtype {
            DType::F32 => context.basic(types::FLOAT),
            DType::F64 => context.basic(types::DOUBLE),
            _ => context.int(dtype.bytes(), dtype.kind() == Kind::Signed),
        })
    }

    pub(super) fn vector(&mut self, dtype: DType, lanes: u32) -> Ty {
        let (context, dtype) = (self.context, held_as(dtype));
        let element = self.scalar(dtype);
        let (large, register) = (&mut self.large, self.level.register());
        let vectors = self.vectors.entry((dtype, lanes));
        *vectors.or_insert_with(|| {
            let vector = context.vector_of(element, lanes);
            if lanes as usize * dtype.bytes() > register {
                large.insert(vector);
            }
            vector
        })
    }

    /// Whether a function cannot give a value of a type.
    pub(super) fn is_large(&self, ty: Ty) -> bool {
        self.large.contains(&ty)
    }

    /// The type of a parameter for values of a type.
    pub(super) fn parameter(&self, ty: Ty) -> Ty {
        match self.large.contains(&ty) {
            true => self.context.pointer(ty),
            false => ty,
        }
    }

    /// Where a parameter for values of a type has its value.
    pub(super) fn parameter_place(&self, ty: Ty, place: Place) -> Place {
        match self.large.contains(&ty) {
            true => self.context.pointee(self.context.value(place)),
            false => place,
        }
    }

    /// A scalar for one lane, else a vector.
    pub(super) fn of(&mut self, dtype: DType, lanes: u32) -> Ty {
        if lanes == 1 {
            self.scalar(dtype)
        } else {
            self.vector(dtype, lanes)
        }
    }

    /// The type of a value that is held so.
    pub(super) fn of_held(&mut self, dtype: DType, lanes: u32, mask: Option<u32>) -> Ty {
        match mask {
            Some(bits) => self.vector(int_dtype(bits, true), lanes),
            None => self.of(dtype, lanes),
        }
    }

    pub(super) fn memory_vector(&mut self, dtype: DType, lanes: u32) -> Ty {
        let (context, dtype) = (self.context, held_as(dtype));
        let vector = self.vector(dtype, lanes);
        let types = self.memory_vectors.entry((dtype, lanes));
        *types.or_insert_with(|| context.aligned(vector, dtype.bytes()))
    }

    pub(super) fn array(&mut self, element: Ty, count: c_int) -> Ty {
        let context = self.context;
        let arrays = self.arrays.entry((element, count));
        *arrays.or_insert_with(|| context.array_of(element, count))
    }

    /// A vector seen as an array, to reach its lanes.
    fn lane_array(&mut self, dtype: DType, lanes: u32) -> Ty {
        let element = self.scalar(dtype);
        self.array(element, c_int::try_from(lanes).unwrap_or(c_int::MAX))
    }

    /// C's `bool`, which comparisons of scalars give.
    pub(super) fn truth_type(&self) -> Ty {
        self.context.basic(types::BOOL)
    }

    pub(super) fn builtin(&mut self, name: &str) -> Func {
        if let Some(&function) = self.builtins.get(name) {
            return function;
        }
        let function = self.context.builtin(name);
        self.builtins.insert(name.to_owned(), function);
        function
    }

    /// A function of the C library, declared once.
    pub(super) fn imported(&mut self, name: &str, result: Ty, params: &[(Ty, &str)]) -> Func {
        if let Some(&function) = self.builtins.get(name) {
            return function;
        }
        let (function, _) = self
            .context
            .function(FuncKind::Imported, result, name, params);
        self.builtins.insert(name.to_owned(), function);
        function
    }
}

/// A function being written, at the end of one of its blocks.
pub(crate) struct Code<'m, 'a> {
    pub(super) shared: &'m mut Shared<'a>,
    pub(super) function: Func,
    pub(super) block: Blk,
    temporaries: u32,
    blocks: u32,
}

impl<'m, 'a> Code<'m, 'a> {
    pub(super) fn new(shared: &'m mut Shared<'a>, function: Func) -> Code<'m, 'a> {
        let block = shared.context.block(function, "entry");
        Code {
            shared,
            function,
            block,
            temporaries: 0,
            blocks: 0,
        }
    }

    pub(super) fn context(&self) -> &'a Context {
        self.shared.context
    }

    pub(super) fn new_block(&mut self, name: &str) -> Blk {
        self.blocks += 1;
        self.context()
            .block(self.function, &format!("{name}{}", self.blocks))
    }

    /// A variable without a value.
    pub(super) fn temporary(&mut self, ty: Ty) -> Place {
        self.temporaries += 1;
        self.context()
            .local(self.function, ty, &format!("t{}", self.temporaries))
    }

    pub(super) fn assign(&mut self, place: Place, value: Val) {
        self.context().assign(self.block, place, value);
    }

    /// The value in a variable of its own: computed here and once, however often it is used.
    pub(super) fn keep(&mut self, ty: Ty, value: Val) -> Val {
        let place = self.temporary(ty);
        self.assign(place, value);
        self.context().value(place)
    }

    pub(super) fn integer(&mut self, dtype: DType, value: i64) -> Val {
        let ty = self.shared.scalar(dtype);
        self.context().integer(ty, value)
    }

    /// A constant.
    pub(super) fn constant(&mut self, value: Scalar) -> Val {
        let dtype = value.dtype();
        let ty = self.shared.scalar(dtype);
        match dtype {
            DType::F32 | DType::F64 => {
                let number = value.to_f64();
                if number.is_nan() {
                    // By its bits, which it keeps.
                    let bits = self.integer(int_dtype(dtype.bits(), false), value.bits() as i64);
                    return self.context().bitcast(bits, ty);
                }
                self.context().real(ty, number)
            }
            _ => {
                let number = value.as_i64().unwrap_or(value.bits() as i64);
                self.context().integer(ty, number)
            }
        }
    }

    /// The number `value` in every lane of a vector, or as a scalar.
    pub(super) fn number(&mut self, dtype: DType, lanes: u32, value: f64) -> Val {
        let scalar = self.constant(Scalar::from_f64(dtype, value));
        self.splat(dtype, lanes, scalar)
    }

    /// The integer `value` in every lane of a vector, or as a scalar.
    pub(super) fn integers(&mut self, dtype: DType, lanes: u32, value: i64) -> Val {
        let scalar = self.integer(dtype, value);
        self.splat(dtype, lanes, scalar)
    }

    /// A scalar, which costs nothing to write down, in every lane.
    pub(super) fn splat(&mut self, dtype: DType, lanes: u32, scalar: Val) -> Val {
        if lanes == 1 {
            return scalar;
        }
        let ty = self.shared.vector(dtype, lanes);
        self.context().lanes(ty, &vec![scalar; lanes as usize])
    }

    pub(super) fn binary(&mut self, op: Binary, dtype: DType, lanes: u32, a: Val, b: Val) -> Val {
        let ty = self.shared.of(dtype, lanes);
        self.context().binary(op, ty, a, b)
    }

    pub(super) fn unary(&mut self, op: Unary, dtype: DType, lanes: u32, a: Val) -> Val {
        let ty = self.shared.of(dtype, lanes);
        self.context().unary(op, ty, a)
    }

    /// The bits of a scalar or vector as another of the same size.
    pub(super) fn bits_as(&mut self, dtype: DType, lanes: u32, value: Val) -> Val {
        let ty = self.shared.of(dtype, lanes);
        self.context().bitcast(value, ty)
    }

    /// A conversion of C's.
    pub(super) fn converted(&mut self, dtype: DType, value: Val) -> Val {
        let ty = self.shared.scalar(dtype);
        self.context().cast(value, ty)
    }

    pub(super) fn compare(&self, op: Compare, a: Val, b: Val) -> Val {
        self.context().compare(op, a, b)
    }

    /// Whether either of two comparisons holds.
    pub(super) fn either(&self, a: Val, b: Val) -> Val {
        self.context()
            .binary(Binary::LogicalOr, self.shared.truth_type(), a, b)
    }

    /// Whether both of two comparisons hold.
    pub(super) fn both(&self, a: Val, b: Val) -> Val {
        self.context()
            .binary(Binary::LogicalAnd, self.shared.truth_type(), a, b)
    }

    /// A comparison's result as a byte of 0 or 1.
    pub(super) fn byte(&mut self, truth: Val) -> Val {
        self.converted(DType::Bool, truth)
    }

    /// A byte of 0 or 1 as a condition.
    pub(super) fn condition(&mut self, byte: Val) -> Val {
        let zero = self.integer(DType::Bool, 0);
        self.compare(Compare::Ne, byte, zero)
    }

    /// `condition ? a : b` of a type; only the one that is chosen is computed.
    pub(super) fn choose(&mut self, condition: Val, ty: Ty, a: Val, b: Val) -> Val {
        let place = self.temporary(ty);
        let context = self.context();
        let [then, otherwise, after] = ["then", "else", "after"].map(|name| self.new_block(name));
        context.branch(self.block, condition, then, otherwise);
        context.assign(then, place, a);
        context.jump(then, after);
        context.assign(otherwise, place, b);
        context.jump(otherwise, after);
        self.block = after;
        context.value(place)
    }

    /// [`choose`](Code::choose) of scalars of a dtype.
    pub(super) fn pick(&mut self, condition: Val, dtype: DType, a: Val, b: Val) -> Val {
        let ty = self.shared.scalar(dtype);
        self.choose(condition, ty, a, b)
    }

    /// Runs `body` with a counter from `first` up to, not including, `end`, by `step`.
    pub(super) fn count(
        &mut self,
        name: &str,
        [first, end, step]: [Val; 3],
        body: impl FnOnce(&mut Self, Val),
    ) {
        let context = self.context();
        let index = self.shared.scalar(DType::I64);
        let place = context.local(self.function, index, name);
        self.assign(place, first);
        let [head, inside, after] = ["head", "body", "after"].map(|name| self.new_block(name));
        context.jump(self.block, head);
        let counter = context.value(place);
        context.branch(
            head,
            context.compare(Compare::Lt, counter, end),
            inside,
            after,
        );
        self.block = inside;
        body(self, counter);
        let next = context.binary(Binary::Add, index, counter, step);
        self.assign(place, next);
        context.jump(self.block, head);
        self.block = after;
    }

    /// [`count`](Code::count) from 0 to a constant.
    pub(super) fn repeat(&mut self, times: i64, body: impl FnOnce(&mut Self, Val)) {
        let range = [0, times, 1].map(|value| self.integer(DType::I64, value));
        self.temporaries += 1;
        self.count(&format!("i{}", self.temporaries), range, body);
    }

    /// Lane `lane` of a vector in a variable.
    pub(super) fn lane(&mut self, dtype: DType, lanes: u32, vector: Val, lane: u32) -> Val {
        let array = self.shared.lane_array(dtype, lanes);
        let index = self.integer(DType::I32, i64::from(lane));
        let context = self.context();
        let place = context.element(context.bitcast(vector, array), index);
        context.value(place)
    }

    /// The address of a vector's first lane, to reach lanes by number.
    pub(super) fn lane_pointer(&mut self, dtype: DType, vector: Place) -> Val {
        let element = self.shared.scalar(dtype);
        let context = self.context();
        context.cast(context.address(vector), context.pointer(element))
    }

    /// Calls a small function, which is written at its first use: `write` is given its parameters' places and gives its
    /// result. The compiler copies it to where it is called.
    pub(super) fn apply(
        &mut self,
        name: &str,
        result: Ty,
        arguments: &[(Ty, Val)],
        write: impl FnOnce(&mut Code<'_, 'a>, &[Place]) -> Val,
    ) -> Val {
        let context = self.context();
        let by_address = self.shared.large.contains(&result);
        let function = match self.shared.helpers.get(name) {
            Some(&function) => function,
            None => {
                let types = arguments.iter().map(|(ty, _)| self.shared.parameter(*ty));
                let mut params: Vec<(Ty, &str)> = types.zip(["a", "b", "c"]).collect();
                let mut given = result;
                if by_address {
                    params.push((context.pointer(result), "r"));
                    given = context.basic(types::VOID);
                }
                let (function, mut places) =
                    context.function(FuncKind::Internal, given, name, &params);
                for ((ty, _), place) in arguments.iter().zip(&mut places) {
                    *place = self.shared.parameter_place(*ty, *place);
                }
                let to = places.last().copied();
                let mut code = Code::new(&mut *self.shared, function);
                let value = write(&mut code, &places[..arguments.len()]);
                match to {
                    Some(to) if by_address => {
                        let to = context.pointee(context.value(to));
                        code.assign(to, value);
                        context.give(code.block, None);
                    }
                    _ => context.give(code.block, Some(value)),
                }
                self.shared.helpers.insert(name.to_owned(), function);
                function
            }
        };
        let mut values: Vec<Val> = Vec::with_capacity(arguments.len() + 1);
        for (ty, value) in arguments {
            values.push(self.argument(*ty, *value));
        }
        if !by_address {
            return context.call(function, &values);
        }
        let place = self.temporary(result);
        values.push(context.address(place));
        let call = context.call(function, &values);
        context.evaluate(self.block, call);
        context.value(place)
    }

    /// A value as a function takes it.
    pub(super) fn argument(&mut self, ty: Ty, value: Val) -> Val {
        if !self.shared.large.contains(&ty) {
            return value;
        }
        let place = self.temporary(ty);
        self.assign(place, value);
        self.context().address(place)
    }
}
