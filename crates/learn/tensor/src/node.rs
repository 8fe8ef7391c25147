//! The lazy program behind tensors.

use crate::buffer::Buffer;
use crate::error::{ErrorKind, TensorError};
use crate::ops::is_inside;
use crate::ops::refuse_shape;
use crate::shape::Shape;
use crate::variable::VariableId;
use loopwright_ops::{DType, Op, ReduceOp, Scalar};
use loopwright_symbolic::Expr;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A lazy n-dimensional array.
///
/// A tensor is a formula. Nothing is computed until a value is asked for ([`Tensor::array`] and what
/// stands on it), and then all that is needed for it becomes one program. Clones are the same tensor.
#[derive(Clone)]
pub struct Tensor {
    pub(crate) node: Arc<Node>,
}

pub(crate) struct Node {
    /// Grows from operand to result, so that it is an order in which tensors can be computed.
    pub(crate) id: u64,
    pub(crate) kind: Kind,
    pub(crate) inputs: SmallVec<[Tensor; 3]>,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    /// The caller's line.
    pub(crate) place: &'static Location<'static>,
    /// The value, once it has been computed or if it was given.
    pub(crate) value: OnceLock<Buffer>,
}

/// What a tensor is.
///
/// These are the ops of a graph over axes by place. Operands of [`Kind::Map`] have all axes of the
/// result, in its order: broadcasting and permuting are views.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// It cannot be.
    Failed(TensorError),
    /// Its value was given.
    Data,
    /// The value that a variable had when the function that is traced began.
    Variable(VariableId),
    /// An argument of the function that is traced.
    Argument(usize),
    /// One number, without axes.
    Constant(Scalar),
    /// The index along the only axis.
    Index,
    /// A size as a number (`i64`), without axes.
    Size(Expr),
    Map(Op),
    Cast,
    Bitcast,
    Reduce {
        op: ReduceOp,
        over: SmallVec<[usize; 2]>,
    },
    ArgReduce {
        largest: bool,
        over: usize,
    },
    Scan {
        op: ReduceOp,
        over: usize,
        exclusive: bool,
        reverse: bool,
    },
    View(View),
    /// The first input's axis is looked up at the index, the second. For each axis of the index, the axis
    /// of the table that it runs along with, or `None`: those stand where the looked up one stood.
    Gather {
        axis: usize,
        along: Along,
    },
    /// Inputs: base, index, updates. The updates are shaped as the result of a gather from the base.
    Scatter {
        axis: usize,
        along: Along,
        combine: Option<ReduceOp>,
    },
    Sort {
        over: usize,
        descending: bool,
    },
    ArgSort {
        over: usize,
        descending: bool,
    },
    /// What a loop carries, one step back along an axis (one step on if it is reversed), zero where there is none. What it
    /// is the previous value of stands in the [`Kind::Recurred`] through which all that is made of it leaves the loop.
    Previous {
        over: usize,
        reverse: bool,
    },
    /// The first operand, which loops compute. For everything that they carry, two more: its formula, and the
    /// [`Kind::Previous`] that stands for it one step back.
    Recurred,
    /// The operand, and something about it that is no value.
    Marked(Mark),
}

/// For each axis of an index, the axis of the table that it runs along with.
pub(crate) type Along = SmallVec<[Option<usize>; 4]>;

/// Re-indexing: for each axis of the input an index over the axes of the result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    pub(crate) map: SmallVec<[Expr; 4]>,
    pub(crate) constraints: Vec<Expr>,
    pub(crate) outside: Option<Scalar>,
    /// Where every element of the input stands exactly once in the result: for each axis of the result
    /// the index over the axes of the input.
    pub(crate) inverse: Option<SmallVec<[Expr; 4]>>,
}

impl View {
    /// A view that stays inside its input.
    pub(crate) fn inside(map: SmallVec<[Expr; 4]>) -> View {
        View {
            map,
            constraints: Vec::new(),
            outside: None,
            inverse: None,
        }
    }

    /// A view that every element of the input stands in exactly once.
    pub(crate) fn exact(map: SmallVec<[Expr; 4]>, inverse: SmallVec<[Expr; 4]>) -> View {
        View {
            inverse: Some(inverse),
            ..View::inside(map)
        }
    }
}

/// What is special about a tensor: most of them are about its gradient.
#[derive(Clone)]
pub(crate) enum Mark {
    /// What it is called in loops and schedules.
    Label(Arc<str>),
    /// It has none.
    Stop,
    /// What it is made of is computed again where its gradient needs it.
    Recompute,
    /// A function gives it: from the tensors it depends on (the node's other inputs), the value and the
    /// gradient of the value to a gradient for each of them.
    Custom(Arc<CustomGradient>),
}

/// From inputs, the value and its gradient to a gradient for each input.
pub(crate) type CustomGradient = dyn Fn(&[Tensor], &Tensor, &Tensor) -> Vec<Tensor> + Send + Sync;

impl std::fmt::Debug for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Mark::Label(label) => write!(f, "Label({label:?})"),
            Mark::Stop => f.write_str("Stop"),
            Mark::Recompute => f.write_str("Recompute"),
            Mark::Custom(_) => f.write_str("Custom"),
        }
    }
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Tensor {
    /// A tensor of known dtype and shape. If an operand cannot be, neither can this.
    #[track_caller]
    pub(crate) fn make(kind: Kind, inputs: &[&Tensor], shape: Shape, dtype: DType) -> Tensor {
        let place = Location::caller();
        let failed = inputs.iter().find_map(|input| match &input.node.kind {
            Kind::Failed(error) => Some(error.clone()),
            _ => None,
        });
        let kind = failed.map_or(kind, Kind::Failed);
        let inputs = match kind {
            Kind::Failed(_) => SmallVec::new(),
            _ => inputs.iter().map(|input| (*input).clone()).collect(),
        };
        Tensor {
            node: Arc::new(Node {
                id: next_id(),
                kind,
                inputs,
                shape,
                dtype,
                place,
                value: OnceLock::new(),
            }),
        }
    }

    /// A tensor whose value is given.
    #[track_caller]
    pub(crate) fn of_buffer(buffer: Buffer, shape: Shape) -> Tensor {
        let tensor = Tensor::make(Kind::Data, &[], shape, buffer.dtype());
        // A new node has no value yet.
        let _ = tensor.node.value.set(buffer);
        tensor
    }

    /// A tensor that cannot be.
    #[track_caller]
    pub(crate) fn failed(kind: ErrorKind) -> Tensor {
        Tensor::of_error(TensorError::new(kind))
    }

    #[track_caller]
    pub(crate) fn of_error(error: TensorError) -> Tensor {
        // What was found in a closure has a line of this crate.
        let error = match is_inside(error.place()) {
            true => error.moved_to(Location::caller()),
            false => error,
        };
        Tensor::make(Kind::Failed(error), &[], Shape::scalar(), DType::F32)
    }

    /// A tensor that cannot be, for functions that are made of tensor ops: it carries the mistake on.
    #[track_caller]
    pub fn from_error(error: TensorError) -> Tensor {
        Tensor::of_error(error)
    }

    /// The mistake that an op does not take a tensor of this shape, at the caller's line.
    #[track_caller]
    pub fn refusal(&self, op: &str, reason: &str) -> TensorError {
        refuse_shape(op, &self.node.shape, reason)
    }

    /// The mistake that this tensor is made of, if there is one.
    ///
    /// # Errors
    /// The mistake, with the caller's line.
    pub fn check(&self) -> Result<(), TensorError> {
        match &self.node.kind {
            Kind::Failed(error) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Its axes.
    pub fn shape(&self) -> &Shape {
        &self.node.shape
    }

    /// How many axes it has.
    pub fn rank(&self) -> usize {
        self.node.shape.rank()
    }

    /// Its elements' type.
    pub fn dtype(&self) -> DType {
        self.node.dtype
    }

    pub(crate) fn is_failed(&self) -> bool {
        matches!(self.node.kind, Kind::Failed(_))
    }

    pub(crate) fn same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.node, &other.node)
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.node.kind {
            Kind::Failed(error) => write!(f, "Tensor(cannot be: {error})"),
            _ => write!(f, "Tensor({}{})", self.node.dtype, self.node.shape),
        }
    }
}

/// Long chains are taken apart one by one: the nested drops of a formula a million steps deep would not
/// fit on a stack.
impl Drop for Node {
    fn drop(&mut self) {
        let mut open: Vec<Tensor> = self.inputs.drain(..).collect();
        while let Some(tensor) = open.pop() {
            if let Some(mut node) = Arc::into_inner(tensor.node) {
                open.extend(node.inputs.drain(..));
            }
        }
    }
}

/// All tensors that these are made of, each once, operands before results. What has a value ends a path.
pub(crate) fn program_order(roots: &[Tensor]) -> Vec<Tensor> {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut open: Vec<Tensor> = roots.to_vec();
    let mut found = Vec::new();
    while let Some(tensor) = open.pop() {
        if !seen.insert(tensor.node.id) {
            continue;
        }
        if tensor.node.value.get().is_none() {
            open.extend(tensor.node.inputs.iter().cloned());
        }
        found.push(tensor);
    }
    found.sort_unstable_by_key(|tensor| tensor.node.id);
    found
}
