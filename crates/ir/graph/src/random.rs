//! Random numbers by counter: every number is a function of a seed and a counter, so that it depends on
//! no schedule, no device and no other number.
//!
//! All of them are made of the op [`Op::Threefry`] and ordinary ops; a graph that holds them is a graph
//! like any other.

use crate::builder::GraphBuilder;
use crate::error::GraphError;
use crate::ir::{DimId, NodeId};
use loopwright_ops::{DType, Op, Scalar};

impl GraphBuilder {
    /// 64 random bits (`u64`): Threefry-2x32-20 with the seed as its key. Seed and counter are any
    /// integers, taken as 64 bits: a negative one counts as its two's complement.
    ///
    /// ```
    /// use loopwright_graph::{GraphBuilder, evaluate};
    /// use loopwright_ops::{DType, Scalar};
    /// use loopwright_symbolic::Expr;
    ///
    /// let mut builder = GraphBuilder::new();
    /// let i = builder.dim("i")?;
    /// builder.set_size(i, Expr::constant(3), "the example");
    /// let seed = builder.constant(Scalar::i64(7));
    /// let counter = builder.linear_index(&[i])?;
    /// let share = builder.uniform(seed, counter, DType::F32)?;
    /// builder.output("share", share)?;
    /// let graph = builder.finish()?;
    /// let results = evaluate(&graph, &graph.bind(&[])?, &[])?;
    /// assert!(results[0].1.to_f64().iter().all(|share| (0.0..1.0).contains(share)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn random_bits(&mut self, seed: NodeId, counter: NodeId) -> Result<NodeId, GraphError> {
        let seed = self.word(seed, "the seed of random numbers")?;
        let counter = self.word(counter, "the counter of random numbers")?;
        self.map(Op::Threefry, &[seed, counter])
    }

    /// Uniformly distributed numbers in [0, 1), of a float dtype.
    ///
    /// The bits of a number are the highest of [`GraphBuilder::random_bits`], as many as the dtype has
    /// of precision: 53 in `f64`, 24 in `f32`, 11 in `f16`, 8 in `bf16`. So every number is a multiple
    /// of 2 to the minus so many, all are equally likely, and nothing is ever rounded: 1 does not
    /// occur, and the same bits come out on every device.
    pub fn uniform(
        &mut self,
        seed: NodeId,
        counter: NodeId,
        dtype: DType,
    ) -> Result<NodeId, GraphError> {
        let digits = digits("uniform", dtype)?;
        let bits = self.random_bits(seed, counter)?;
        let fraction = self.fraction(bits, 64 - digits, digits, dtype.compute())?;
        Ok(self.narrowed(fraction, dtype))
    }

    /// Normally distributed numbers of mean 0 and variance 1, of a float dtype.
    ///
    /// By the method of Box and Muller, `sqrt(-2 log(1 - u)) cos(2 pi v)`, in `f64` for `f64` and in `f32`
    /// for all others, which are rounded from it. `u` and `v` have 24 bits each in `f32`, both of one
    /// [`GraphBuilder::random_bits`], and 53 bits each in `f64`, `v` from the bits that the first ones
    /// give as a counter. The largest number is 5.77 in `f32` and 8.57 in `f64`.
    ///
    /// Logarithm and cosine are made of ops that are rounded once everywhere (`exact.rs`), so that all devices
    /// give the same bits. The absolute error is below 4e-6 in `f32` and 2e-14 in `f64`.
    pub fn normal(
        &mut self,
        seed: NodeId,
        counter: NodeId,
        dtype: DType,
    ) -> Result<NodeId, GraphError> {
        digits("normal", dtype)?;
        let wide = dtype.compute();
        let digits = digits("normal", wide)?;
        let bits = self.random_bits(seed, counter)?;
        let u = self.fraction(bits, 64 - digits, digits, wide)?;
        let v = if 2 * digits <= 64 {
            self.fraction(bits, 64 - 2 * digits, digits, wide)?
        } else {
            let more = self.random_bits(seed, bits)?;
            self.fraction(more, 64 - digits, digits, wide)?
        };
        // 1 - u with u in [0, 1) has a finite logarithm, and is exact.
        let one = self.constant(Scalar::from_f64(wide, 1.0));
        let rest = self.map(Op::Sub, &[one, u])?;
        let log = self.exact_log(rest)?;
        let minus_two = self.constant(Scalar::from_f64(wide, -2.0));
        let square = self.map(Op::Mul, &[log, minus_two])?;
        let radius = self.map(Op::Sqrt, &[square])?;
        let cos = self.exact_cos_of_turns(v)?;
        // A product could be contracted with a sum that it is a part of later.
        let zero = self.constant(Scalar::zero(wide));
        let normal = self.map(Op::MulAdd, &[radius, cos, zero])?;
        Ok(self.narrowed(normal, dtype))
    }

    /// The place (`u64`) of each element of an array over `dims`, in row-major order: the usual
    /// counter of random numbers. Over no dimensions it is 0.
    pub fn linear_index(&mut self, dims: &[DimId]) -> Result<NodeId, GraphError> {
        let mut place = None;
        for dim in dims {
            let index = self.index(*dim, DType::U64)?;
            place = Some(match place {
                None => index,
                Some(place) => {
                    let size = self.size_value(self.size_of(*dim))?;
                    let size = self.cast(size, DType::U64);
                    let rows = self.map(Op::Mul, &[place, size])?;
                    self.map(Op::Add, &[rows, index])?
                }
            });
        }
        Ok(place.unwrap_or_else(|| self.constant(Scalar::zero(DType::U64))))
    }

    /// An integer as 64 bits.
    fn word(&mut self, node: NodeId, what: &str) -> Result<NodeId, GraphError> {
        let dtype = self.node(node).dtype;
        if !dtype.is_int() {
            return Err(GraphError::DType {
                what: what.to_owned(),
                expected: "an integer dtype".to_owned(),
                got: dtype,
            });
        }
        Ok(if dtype == DType::U64 {
            node
        } else {
            self.cast(node, DType::U64)
        })
    }

    /// A number in [0, 1) of `dtype`, `f32` or `f64`, from the `digits` bits of `bits` above `shift`.
    fn fraction(
        &mut self,
        bits: NodeId,
        shift: u32,
        digits: u32,
        dtype: DType,
    ) -> Result<NodeId, GraphError> {
        let word = |bits: u64| Scalar::from_bits(DType::U64, bits);
        let amount = self.constant(word(shift.into()));
        let mut top = self.map(Op::Shr, &[bits, amount])?;
        if shift + digits < 64 {
            let mask = self.constant(word((1 << digits) - 1));
            top = self.map(Op::And, &[top, mask])?;
        }
        // Signed integers as wide as the float: machines have an instruction that converts those.
        let signed = if dtype == DType::F64 {
            DType::I64
        } else {
            DType::I32
        };
        let top = self.cast(top, signed);
        let whole = self.cast(top, dtype);
        let unit = self.constant(Scalar::from_f64(dtype, (-f64::from(digits)).exp2()));
        self.map(Op::Mul, &[whole, unit])
    }

    /// A value that was computed in `dtype`'s compute dtype, as `dtype`.
    fn narrowed(&mut self, node: NodeId, dtype: DType) -> NodeId {
        if self.node(node).dtype == dtype {
            node
        } else {
            self.cast(node, dtype)
        }
    }
}

/// The bits of a float's precision.
fn digits(function: &str, dtype: DType) -> Result<u32, GraphError> {
    match dtype {
        DType::F8E5M2 => Ok(3),
        DType::F8E4M3 => Ok(4),
        DType::BF16 => Ok(8),
        DType::F16 => Ok(11),
        DType::F32 => Ok(24),
        DType::F64 => Ok(53),
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => Err(GraphError::DType {
            what: format!("the dtype of `{function}`"),
            expected: "a float dtype".to_owned(),
            got: dtype,
        }),
    }
}
