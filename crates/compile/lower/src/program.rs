//! From a scheduled graph to a module with one kernel.

use crate::error::LowerError;
use crate::fold::Fold;
use crate::index::Place;
use crate::memory::{Layout, Memory};
use crate::nest::{Dropped, Extent};
use crate::row::SortRows;
use loopwright_arena::TiVec;
use loopwright_graph::{DimId, Graph, NodeId, NodeOp};
use loopwright_kernel::{Access, Builder, FunctionKind, Module, Space, Value};
use loopwright_looptree::{
    Accumulator, Allocation, Annotation, Env, LoopTree, Plan, Storage, TreeRef, inner_accumulator,
    is_given,
};
use loopwright_ops::DType;
use loopwright_symbolic::{Bounds, Expr, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::rc::Rc;

/// What a kernel's parameter is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KernelParam {
    /// An input or a state.
    Parameter(NodeId),
    /// An array of constants.
    Constant(NodeId),
    /// An output, by its number.
    Output(u32),
    /// Scratch memory, by its number.
    Scratch(u32),
    /// A size.
    Size(Symbol),
    /// Memory that the kernel logs its stores to. Lowering makes none; a kernel that is to log gets it
    /// as its last parameter (`loopwright_kernel::passes::log_stores`).
    Log,
}

/// Memory that a kernel needs while it runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Scratch {
    /// What it holds, for people.
    pub name: String,
    /// Its elements' dtype.
    pub dtype: DType,
    /// How many, over size symbols.
    pub elements: Expr,
}

/// A lowered program, or a part of one.
#[derive(Clone, PartialEq, Debug)]
pub struct Lowered {
    /// One kernel, the first function.
    pub module: Module,
    /// What its parameters are, in order.
    pub params: Vec<KernelParam>,
    /// Scratch memory, by number. The parts of a program have the same.
    pub scratch: Vec<Scratch>,
    /// Annotations that were not carried out anywhere, each with the reason. Nothing depends on them
    /// but speed.
    pub notes: Vec<String>,
}

/// Lowers a plan to a kernel of that name. No pass has run on the result yet.
///
/// # Errors
/// Index expressions that cannot be handled.
pub fn lower(plan: &Plan, name: &str) -> Result<Lowered, LowerError> {
    let whole = 0..plan.tree().roots().len();
    let allocations = plan.allocations_in_parts(std::slice::from_ref(&whole))?;
    lower_roots(plan, &allocations, whole, name)
}

/// Lowers some of the root subtrees of a plan to a kernel that has a parameter for everything there is.
pub(crate) fn lower_roots(
    plan: &Plan,
    allocations: &FxHashMap<NodeId, Allocation>,
    roots: Range<usize>,
    name: &str,
) -> Result<Lowered, LowerError> {
    let mut lowering = Lowering::new(plan, allocations, roots, name)?;
    lowering.declare_params()?;
    lowering.block(None)?;
    let notes = lowering.annotation_notes();
    let Lowering {
        builder,
        params,
        scratch,
        ..
    } = lowering;
    let module = Module {
        functions: vec![builder.finish()].into(),
        ..Module::default()
    };
    Ok(Lowered {
        module,
        params,
        scratch,
        notes,
    })
}

pub(crate) struct Lowering<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) tree: &'a LoopTree,
    /// The root subtrees that are lowered.
    pub(crate) roots: Vec<TreeRef>,
    pub(crate) builder: Builder,
    pub(crate) bounds: Bounds,
    pub(crate) scheduled: TiVec<NodeId, bool>,
    pub(crate) allocations: &'a FxHashMap<NodeId, Allocation>,
    /// Allocations by the loop they live in.
    pub(crate) scopes: FxHashMap<Option<TreeRef>, Vec<NodeId>>,
    /// Steps whose running values are set before a loop.
    pub(crate) folds: FxHashMap<TreeRef, Vec<NodeId>>,
    /// Steps whose running values lie in memory and can be in registers while a loop runs.
    pub(crate) inner_folds: FxHashMap<TreeRef, Vec<(NodeId, Accumulator)>>,
    /// The steps among them.
    pub(crate) has_inner_fold: FxHashSet<NodeId>,
    pub(crate) params: Vec<KernelParam>,
    pub(crate) scratch: Vec<Scratch>,
    /// The memory of given nodes and of steps that are being computed.
    pub(crate) memory: FxHashMap<NodeId, Rc<Memory>>,
    pub(crate) running: FxHashMap<NodeId, Fold>,
    /// Steps whose running values are in scratch memory.
    pub(crate) fold_scratch: FxHashSet<NodeId>,
    pub(crate) sort_rows: FxHashMap<NodeId, SortRows>,
    pub(crate) sizes: FxHashMap<Symbol, Value>,
    /// Values that stand in index expressions for what is only known when the kernel runs.
    pub(crate) dynamic: Vec<Value>,
    /// By dimension: where its loops are.
    pub(crate) index: TiVec<DimId, Option<Place>>,
    /// By dimension: how much its inner loops cover.
    pub(crate) extent: TiVec<DimId, Option<Extent>>,
    /// The loops that are open, outermost first.
    pub(crate) open: Vec<TreeRef>,
    /// Where each open loop is.
    pub(crate) blocks: FxHashMap<TreeRef, Place>,
    /// The dimension whose elements lie in the lanes of vectors, and how many.
    pub(crate) vector: Option<(loopwright_graph::DimId, u32)>,
    /// Nodes that more than one node reads.
    pub(crate) shared: TiVec<NodeId, bool>,
    /// Elements of such nodes that are computed and visible here.
    pub(crate) computed: FxHashMap<NodeId, Vec<(Env, Value)>>,
    /// By loop: why its annotation was not carried out, or that it was.
    pub(crate) annotations: FxHashMap<TreeRef, Option<Dropped>>,
}

/// Symbols from here on stand for values of [`Lowering::dynamic`].
const DYNAMIC: u32 = 1 << 29;

impl<'a> Lowering<'a> {
    fn new(
        plan: &'a Plan,
        allocations: &'a FxHashMap<NodeId, Allocation>,
        roots: Range<usize>,
        name: &str,
    ) -> Result<Lowering<'a>, LowerError> {
        let (graph, tree) = (&**plan.graph(), plan.tree());
        let mut scheduled: TiVec<NodeId, _> = vec![false; graph.node_ids().count()].into();
        let mut scopes: FxHashMap<_, Vec<NodeId>> = FxHashMap::default();
        let mut folds: FxHashMap<_, Vec<NodeId>> = FxHashMap::default();
        let mut inner_folds: FxHashMap<_, Vec<_>> = FxHashMap::default();
        let mut has_inner_fold = FxHashSet::default();
        let leaves = tree.leaf_places();
        let roots = tree.roots()[roots].to_vec();
        // Places are numbered in the order in which they run.
        let in_roots = |leaf: TreeRef| roots.binary_search(&tree.root(leaf)).is_ok();
        for step in &plan.schedule().steps {
            let node = step.node;
            scheduled[node] = true;
            let leaf = leaves[&node];
            let allocation = &allocations[&node];
            if allocation.storage == Storage::Private && in_roots(leaf) {
                scopes.entry(allocation.scope).or_default().push(node);
            }
            if let Some(fold) = loopwright_looptree::accumulator(graph, tree, leaf, node)? {
                folds.entry(fold.around).or_default().push(node);
            }
            let reduces = matches!(graph.node(node).op, NodeOp::Reduce { .. });
            if reduces && let Some(inner) = inner_accumulator(graph, tree, leaf, node)? {
                let at_loop: &mut Vec<_> = inner_folds.entry(inner.around).or_default();
                at_loop.push((node, inner));
                has_inner_fold.insert(node);
            }
        }
        let mut readers: TiVec<NodeId, u32> = vec![0; scheduled.len()].into();
        for node in graph.node_ids() {
            for input in &graph.node(node).inputs {
                readers[*input] += 1;
            }
        }
        Ok(Lowering {
            graph,
            tree,
            roots,
            builder: Builder::new(name, FunctionKind::Kernel { group: None }),
            bounds: graph.bounds(),
            scheduled,
            allocations,
            scopes,
            folds,
            inner_folds,
            has_inner_fold,
            params: Vec::new(),
            scratch: Vec::new(),
            memory: FxHashMap::default(),
            running: FxHashMap::default(),
            fold_scratch: FxHashSet::default(),
            sort_rows: FxHashMap::default(),
            sizes: FxHashMap::default(),
            dynamic: Vec::new(),
            index: vec![None; graph.dims().len()].into(),
            extent: vec![None; graph.dims().len()].into(),
            open: Vec::new(),
            blocks: FxHashMap::default(),
            vector: None,
            shared: readers.iter().map(|readers| *readers > 1).collect(),
            computed: FxHashMap::default(),
            annotations: FxHashMap::default(),
        })
    }

    /// Declares inputs, states, constants, outputs, scratch memory, and sizes and statics, in this order.
    fn declare_params(&mut self) -> Result<(), LowerError> {
        let graph = self.graph;
        let mut whole: Vec<(NodeId, Value)> = Vec::new();
        let constants = graph.node_ids().filter(|node| {
            matches!(graph.node(*node).op, NodeOp::Constant(_)) && is_given(graph, *node)
        });
        for node in graph.parameters().chain(constants.collect::<Vec<_>>()) {
            let updated = graph.updates().iter().any(|update| update.state == node);
            let access = if updated {
                Access::ReadWrite
            } else {
                Access::Read
            };
            let constant = matches!(graph.node(node).op, NodeOp::Constant(_));
            let ptr = self.declare(graph.node(node).dtype, &self.value_name(node), access);
            self.params.push(if constant {
                KernelParam::Constant(node)
            } else {
                KernelParam::Parameter(node)
            });
            whole.push((node, ptr));
        }
        for (at, output) in graph.outputs().iter().enumerate() {
            let dtype = graph.node(output.node).dtype;
            let ptr = self.declare(dtype, &output.name, Access::ReadWrite);
            self.params.push(KernelParam::Output(at as u32));
            whole.push((output.node, ptr));
        }
        let mut scratched: Vec<NodeId> = self
            .allocations
            .values()
            .filter(|allocation| allocation.storage == Storage::Scratch)
            .map(|allocation| allocation.node)
            .collect();
        scratched.sort();
        for node in scratched {
            let allocation = self.allocations[&node].clone();
            let ptr = self.new_scratch(
                format!("{}_memory", self.value_name(node)),
                allocation.dtype,
                allocation.elements()?,
            );
            let layout = Layout::of_allocation(&allocation);
            let memory = Memory { ptr, layout };
            self.memory.insert(node, Rc::new(memory));
        }
        self.declare_fold_scratch()?;
        self.declare_row_scratch()?;
        for (symbol, name, _) in graph.integers() {
            let value = self.builder.param_scalar(DType::I64, name);
            self.params.push(KernelParam::Size(symbol));
            self.sizes.insert(symbol, value);
        }
        for (node, ptr) in whole {
            let layout = Layout::whole(graph, node);
            let memory = Memory { ptr, layout };
            self.memory.insert(node, Rc::new(memory));
        }
        for update in graph.updates() {
            let state = self.memory[&update.state].ptr;
            let layout = Layout::whole(graph, update.value);
            let memory = Memory { ptr: state, layout };
            self.memory.insert(update.value, Rc::new(memory));
        }
        Ok(())
    }

    fn declare(&mut self, dtype: DType, name: &str, access: Access) -> Value {
        self.builder
            .param_ptr(dtype, Space::Global, name, access, true)
    }

    /// A parameter for scratch memory; only while parameters are declared.
    pub(crate) fn new_scratch(&mut self, name: String, dtype: DType, elements: Expr) -> Value {
        let ptr = self.declare(dtype, &name, Access::ReadWrite);
        self.params
            .push(KernelParam::Scratch(self.scratch.len() as u32));
        self.scratch.push(Scratch {
            name,
            dtype,
            elements,
        });
        ptr
    }

    fn annotation_notes(&self) -> Vec<String> {
        let mut places: Vec<_> = self.annotations.iter().collect();
        places.sort();
        let note = |(place, dropped): (&TreeRef, &Option<Dropped>)| {
            let (spec, dropped) = (self.tree.spec(*place)?, (*dropped)?);
            let inside = self.tree.leaves(*place);
            let around = inside.first().map(|leaf| self.graph.node_name(*leaf));
            Some(format!(
                "the loop over `{}` around `{}` is not {}: {}",
                self.graph.dim(spec.dim).name,
                around.unwrap_or_default(),
                match spec.annotation {
                    Annotation::Serial => "serial",
                    Annotation::Parallel => "parallel",
                    Annotation::Vectorize => "vectorized",
                    Annotation::Unroll => "unrolled",
                    Annotation::Block => "on blocks",
                    Annotation::Thread => "on threads",
                    Annotation::Warp => "on a warp",
                    Annotation::Tile => "in a matrix unit's tile",
                    Annotation::Prefetch => "fetched ahead",
                },
                dropped.reason()
            ))
        };
        places.into_iter().filter_map(note).collect()
    }

    /// What values made for a node are called in the kernel.
    pub(crate) fn value_name(&self, node: NodeId) -> String {
        match self.graph.node(node).name.as_str() {
            "" => format!("v{}", node.0),
            name => name.to_owned(),
        }
    }

    /// A symbol that stands for a value in index expressions.
    pub(crate) fn dynamic_symbol(&mut self, value: Value) -> Symbol {
        self.dynamic.push(value);
        Symbol(DYNAMIC + self.dynamic.len() as u32 - 1)
    }

    /// The value a symbol stands for, if it stands for one.
    pub(crate) fn dynamic_value(&self, symbol: Symbol) -> Option<Value> {
        let at = symbol.0.checked_sub(DYNAMIC)?;
        self.dynamic.get(at as usize).copied()
    }
}
