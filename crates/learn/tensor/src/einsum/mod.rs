//! Einsum: products of tensors by named indices, summed over what the result does not have.

mod bind;
mod evaluate;
mod formula;

use crate::error::{ErrorKind, TensorError};
use crate::node::Tensor;
use crate::ops::{failure, settle};
use crate::shape::{Axis, Size};
use crate::size;
use formula::Mistake;
use loopwright_ops::{Op, ReduceOp};
use loopwright_symbolic::Expr;
use std::collections::BTreeMap;

/// A product of tensors by named indices, summed over those that the result does not have.
///
/// The terms before `->` name the axes of the operands, in order, and the one behind it those of the
/// result. See [`Einsum`] for all that a formula can say.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{Tensor, einsum};
///
/// let a = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
/// let x = Tensor::from([10.0f32, 1.0]);
/// assert_eq!(einsum("ij,j->i", &[&a, &x]).to_vec::<f32>()?, [12.0, 34.0]);
/// assert_eq!(einsum("ii->i", &[&a]).to_vec::<f32>()?, [1.0, 4.0]);
/// assert_eq!(einsum("ij->", &[&a]).item()?, 10.0);
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
#[track_caller]
pub fn einsum(formula: &str, operands: &[&Tensor]) -> Tensor {
    Einsum::new(formula).of(operands)
}

/// As [`einsum`] with another fold than the sum and another op than the product: the largest of sums, the
/// smallest of sums, whether any pair is both true.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{Op, ReduceOp, Tensor, einsum_with};
///
/// // Two steps of a road map: the shortest way by way of any town.
/// let roads = Tensor::from([[0.0f32, 4.0, 9.0], [4.0, 0.0, 1.0], [9.0, 1.0, 0.0]]);
/// let ways = einsum_with(ReduceOp::Min, Op::Add, "ij,jk->ik", &[&roads, &roads]);
/// assert_eq!(ways.at((0, 2)).item()?, 5.0);
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
#[track_caller]
pub fn einsum_with(reduce: ReduceOp, combine: Op, formula: &str, operands: &[&Tensor]) -> Tensor {
    Einsum::new(formula).with(reduce, combine).of(operands)
}

/// An einsum with all that can be said about it.
///
/// A formula has a term for each operand, with commas between them, and behind `->` one for the result.
/// Names are single letters (`ij,jk->ik`), unless a space parts two axes somewhere: then they are words
/// (`batch time, time -> batch`). `{time}` is a word of its own anywhere.
///
/// | written | in an operand | in the result |
/// |---|---|---|
/// | `i` | the axis that `i` runs along | an axis |
/// | `ii` | the diagonal | a diagonal, zeros beside it |
/// | `...` | all axes that are not spoken of; they meet as operands' do | the same axes |
/// | `2` | the element at that place | an axis that ends at that place, zeros before it |
/// | `2*i+3*k` | windows: `i` moves them in steps of 2, `k` runs inside in steps of 3 | every element added at that place |
/// | `2*i+k+1` | the same from place 1 on | the same from place 1 on |
/// | `2*i+k-1` | the same with 1 place of padding at both ends | |
/// | `(h d)` | the axis as several, row-major | several as one |
/// | `i^j` | the axis in blocks: first `i`, then `j` | blocks joined |
///
/// **Without `->`** the result has the names that occur once, in alphabetical order, behind the `...`.
///
/// **Sizes** follow from the operands in every direction: of `2*i+k` and the operand's size, whichever of
/// `i` and `k` is known gives the other; so does one factor of `(h d)` or one block of `i^j`. What cannot
/// be found is said with [`Einsum::size`]; what was found can be read from [`Sizes`].
///
/// **Blocks** are alternatives. For each of `i` and `j` the formula is computed with that block of every
/// `i^j` and without operands of the other one; `i^j` in the result joins both, a result with only one
/// takes that, and one with neither adds them up. So `i,j->i^j` joins two vectors and `i^j->j` takes the
/// second part of one.
///
/// **Named axes** of an operand are found by their name where the term has it, in whatever order; other
/// axes stand in order. Axes of the result keep the names that they have in the operands.
///
/// **Work.** Operands are joined two at a time, smallest result first, and what is needed no more is
/// summed at once, wherever the op distributes over the fold (sum of products, max or min of sums, any of
/// ands, ..); elsewhere all are combined first.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{Einsum, Tensor, TensorError};
///
/// // Attention scores of several heads.
/// let (queries, keys) = (Tensor::ones([5, 8], loopwright_tensor::DType::F32), Tensor::ones([7, 8], loopwright_tensor::DType::F32));
/// let (scores, sizes) = Einsum::new("t (h d), s (h d) -> h t s")
///     .size("h", 2)
///     .capture(&[&queries, &keys]);
/// assert_eq!(scores.sizes()?, [2, 5, 7]);
/// assert_eq!(sizes.known("d"), Some(4));
/// assert_eq!(sizes.names().collect::<Vec<_>>(), ["d", "h", "s", "t"]);
///
/// // A convolution with stride 2.
/// let moved = Einsum::new("2*i+k, k -> i").of(&[&Tensor::from([1.0f32, 2.0, 3.0, 4.0, 5.0]), &Tensor::from([1.0f32, 0.0, -1.0])]);
/// assert_eq!(moved.to_vec::<f32>()?, [-2.0, -2.0]);
/// # Ok::<(), TensorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Einsum {
    text: String,
    reduce: ReduceOp,
    combine: Op,
    sizes: Vec<(String, Size)>,
}

impl Einsum {
    /// A sum of products.
    pub fn new(formula: &str) -> Einsum {
        Einsum {
            text: formula.to_owned(),
            reduce: ReduceOp::Sum,
            combine: Op::Mul,
            sizes: Vec::new(),
        }
    }

    /// The same with another fold and another op of two operands.
    pub fn with(self, reduce: ReduceOp, combine: Op) -> Einsum {
        Einsum {
            reduce,
            combine,
            ..self
        }
    }

    /// Says the size of a name.
    pub fn size(mut self, name: &str, size: impl Into<Size>) -> Einsum {
        self.sizes.push((name.to_owned(), size.into()));
        self
    }

    /// The result for operands.
    #[track_caller]
    pub fn of(&self, operands: &[&Tensor]) -> Tensor {
        self.capture(operands).0
    }

    /// The result for operands, and the sizes of all names.
    #[track_caller]
    pub fn capture(&self, operands: &[&Tensor]) -> (Tensor, Sizes) {
        if let Some(failed) = failure(operands) {
            return (failed, Sizes::default());
        }
        match evaluate::evaluate(self, operands) {
            Ok((tensor, sizes)) => (tensor, sizes),
            Err(Trouble::Formula(mistake)) => {
                let error = self.refuse(&mistake, operands);
                (settle(Err(error)), Sizes::default())
            }
            Err(Trouble::Tensor(error)) => (settle(Err(error)), Sizes::default()),
        }
    }

    #[track_caller]
    fn refuse(&self, mistake: &Mistake, operands: &[&Tensor]) -> TensorError {
        let shapes: Vec<String> = operands
            .iter()
            .map(|operand| operand.shape().to_string())
            .collect();
        let before = self.text[..mistake.at.start].chars().count();
        let marked = self.text[mistake.at.clone()].chars().count().max(1);
        TensorError::new(ErrorKind::Formula {
            shapes: shapes.join(" and "),
            reason: mistake.reason.clone(),
            formula: self.text.clone(),
            marks: format!("{}{}", " ".repeat(before), "^".repeat(marked)),
        })
    }
}

/// The sizes that the names of a formula have.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    sizes: BTreeMap<String, Expr>,
}

impl Sizes {
    /// The size of a name, which may still be unknown; `None` if the formula has no such name.
    pub fn get(&self, name: &str) -> Option<Size> {
        Some(Size(size::resolve(self.sizes.get(name)?)))
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sizes.keys().map(String::as_str)
    }

    /// The size of a name, if it is known by now.
    pub fn known(&self, name: &str) -> Option<usize> {
        Axis::of(self.get(name)?).known()
    }

    /// The size of a name as a tensor (`i64`) for formulas: its value may become known later.
    #[track_caller]
    pub fn value(&self, name: &str) -> Tensor {
        match self.get(name) {
            Some(size) => Tensor::size_value(&size.0),
            None => Tensor::failed(ErrorKind::Argument {
                op: "einsum".to_owned(),
                reason: format!("no index is called `{name}`"),
            }),
        }
    }
}

/// What can go wrong while a formula is evaluated.
enum Trouble {
    /// Something in the formula.
    Formula(Mistake),
    /// An op that the formula needs.
    Tensor(TensorError),
}

impl From<Mistake> for Trouble {
    fn from(mistake: Mistake) -> Trouble {
        Trouble::Formula(mistake)
    }
}

impl From<TensorError> for Trouble {
    fn from(error: TensorError) -> Trouble {
        Trouble::Tensor(error)
    }
}
