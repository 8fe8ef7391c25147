//! Running a program as its loop tree says, element by element.
//!
//! A backend can be as small as the arithmetic of one element: the loops, the order in which they run,
//! where every element comes from and where it goes are here. What is computed is what
//! [`loopwright_graph::evaluate()`] means; the loops that compute it are those of the tree, so that
//! reductions fold in the tree's order. Annotations change no value: a `parallel` loop runs backwards,
//! as on the kernel interpreter, so that one whose rounds are not independent shows; the others run as
//! plain loops.
//!
//! Simple comes before small and fast: a step that the caller has no memory for is held as a whole,
//! sixteen bytes for an element, and not by the block that [`crate::allocations`] says.

mod element;
mod walker;

use crate::tree::{LoopTree, TreeRef};
use loopwright_graph::{Binding, Graph, NodeId};
use loopwright_ops::{DType, Op, Scalar};
use std::fmt::{Debug, Display};
use walker::Walker;

/// The caller's memory of whole nodes: inputs and states to read, outputs and new values of states to
/// write. Any other step may have memory there, too; it is held here if it has none. Arrays are
/// row-major, elements least significant byte first. Arrays of constants are taken from the graph.
pub trait NodeMemory {
    /// The memory of a node, to be read.
    fn bytes(&self, node: NodeId) -> Option<&[u8]>;

    /// The memory that a step is computed into. For the new value of a state that is the state's own
    /// memory.
    fn bytes_mut(&mut self, node: NodeId) -> Option<&mut [u8]>;
}

/// What a leaf computes with. Every function from an op and its operands is one, among them
/// [`loopwright_ops::evaluate`]; a closure says what its operands are, `|op, operands: &[Scalar]|`.
///
/// What moves a value without computing one is not asked for: copies, bitcasts, and the choices that
/// sorts, `argmax` and `argmin` make, whose order is [`loopwright_ops::total_less`].
pub trait Arithmetic {
    /// Why a value cannot be computed.
    type Error: Debug + Display;

    /// The value of an op, of the dtype that [`Op::result_dtype`] says.
    fn map(&mut self, op: Op, operands: &[Scalar]) -> Result<Scalar, Self::Error>;

    /// The value converted to another dtype.
    fn cast(&mut self, value: Scalar, to: DType) -> Result<Scalar, Self::Error> {
        Ok(loopwright_ops::cast(value, to))
    }
}

impl<F, E> Arithmetic for F
where
    F: FnMut(Op, &[Scalar]) -> Result<Scalar, E>,
    E: Debug + Display,
{
    type Error = E;

    fn map(&mut self, op: Op, operands: &[Scalar]) -> Result<Scalar, E> {
        self(op, operands)
    }
}

/// Why a tree could not be executed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExecuteError<E: Debug + Display> {
    /// The caller's arithmetic refused an op.
    #[error("`{node}`: {error}")]
    Arithmetic {
        /// The node that is computed.
        node: String,
        /// What the arithmetic said.
        error: E,
    },
    /// The caller's arithmetic gave a value of the wrong dtype.
    #[error("`{node}`: the arithmetic gives {got} where {expected} is computed")]
    DType {
        /// The node that is computed.
        node: String,
        /// The dtype that the program computes in.
        expected: DType,
        /// The value's.
        got: DType,
    },
    /// The caller has no memory for a node.
    #[error("no memory is given for `{node}`")]
    Missing {
        /// The node.
        node: String,
    },
    /// The caller's memory for a node is not as large as the node.
    #[error("`{node}` has {expected} bytes, and memory of {got} bytes is given")]
    Length {
        /// The node.
        node: String,
        /// Bytes of all its elements.
        expected: usize,
        /// Bytes of the memory.
        got: usize,
    },
    /// There is no memory to hold a step.
    #[error("there is no memory to hold `{node}`")]
    OutOfMemory {
        /// The step.
        node: String,
    },
    /// An index that cannot be computed.
    #[error("`{node}`: {message}")]
    Index {
        /// The node.
        node: String,
        /// What happened.
        message: String,
    },
    /// The tree does not compute the graph.
    #[error("the tree does not compute the program: `{node}` {why}")]
    Tree {
        /// The node.
        node: String,
        /// What is wrong.
        why: &'static str,
    },
}

impl<E: Debug + Display> ExecuteError<E> {
    fn tree(graph: &Graph, node: NodeId, why: &'static str) -> ExecuteError<E> {
        ExecuteError::Tree {
            node: graph.node_name(node),
            why,
        }
    }

    fn index(graph: &Graph, node: NodeId, error: &loopwright_symbolic::Error) -> ExecuteError<E> {
        let names = |symbol| graph.symbol_name(symbol);
        ExecuteError::Index {
            node: graph.node_name(node),
            message: error.display(&names).to_string(),
        }
    }
}

/// Runs the tree of a graph whose results are stores (see [`Graph::with_stores`]).
///
/// # Errors
/// What the arithmetic refuses, memory that does not fit, and trees that were not made for the graph; in
/// all of them results may be written in part.
///
/// ```
/// use loopwright_arena::TiVec;
/// use loopwright_graph::{NodeId, parse};
/// use loopwright_looptree::{LoopTree, NodeMemory, execute, parse_schedule};
/// use loopwright_ops::evaluate;
/// use loopwright_text::Source;
///
/// /// The memory of each node.
/// struct Memory(TiVec<NodeId, Vec<u8>>);
///
/// impl NodeMemory for Memory {
///     fn bytes(&self, node: NodeId) -> Option<&[u8]> {
///         self.0.get(node).map(Vec::as_slice)
///     }
///     fn bytes_mut(&mut self, node: NodeId) -> Option<&mut [u8]> {
///         self.0.get_mut(node).map(Vec::as_mut_slice)
///     }
/// }
///
/// let program = "loopwright program 1
/// input x: u8[i=5]
/// output y = x * x
/// ";
/// let graph = parse(&Source::new("square.lw", program)).unwrap().with_stores();
/// let schedule = "loopwright schedule 1\ny: i/2 parallel, i\n";
/// let schedule = parse_schedule(&Source::new("square.sched", schedule), &graph).unwrap();
/// let tree = LoopTree::new(&graph, &schedule)?;
/// let mut memory = Memory(vec![vec![1, 2, 3, 4, 5], vec![0; 5]].into());
/// execute(&graph, &tree, &graph.bind(&[])?, &mut memory, evaluate)?;
/// assert_eq!(memory.0[NodeId(1)], [1, 4, 9, 16, 25]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn execute<A: Arithmetic>(
    graph: &Graph,
    tree: &LoopTree,
    binding: &Binding,
    memory: &mut dyn NodeMemory,
    arithmetic: A,
) -> Result<(), ExecuteError<A::Error>> {
    execute_part(graph, tree, tree.roots(), binding, memory, arithmetic)
}

/// Runs some of the subtrees of a tree, in the order in which they are given. `roots` are of
/// [`LoopTree::roots`]; what they read and other subtrees compute is in the caller's memory, and so is
/// what other subtrees will read of them.
///
/// # Errors
/// See [`ExecuteError`].
pub fn execute_part<A: Arithmetic>(
    graph: &Graph,
    tree: &LoopTree,
    roots: &[TreeRef],
    binding: &Binding,
    memory: &mut dyn NodeMemory,
    arithmetic: A,
) -> Result<(), ExecuteError<A::Error>> {
    Walker::new(graph, tree, roots, binding, memory, arithmetic)?.block(roots)
}
