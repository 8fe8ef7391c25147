//! Schedules and loop trees: how a graph runs, as loops that can be read and edited.
//!
//! A [`Schedule`] lists the nodes that get code of their own (the *steps*), in order, each with its
//! loops; all other nodes are inline, computed where they are read. The [`LoopTree`] follows from
//! graph and schedule: each step shares the outer loops of the step before it as far as they are
//! equal and no dependence forbids it. From the tree follow the [`allocations`] (what is held in
//! memory, how much of it, for how long), the [`accesses`] (strides and bounds) and the [`costs`]. A
//! step can be handed to another backend; [`parts_by_delegate`] says which root subtrees run where.
//! [`execute`] runs a tree element by element, with any arithmetic that a caller brings. [`mutate`] changes
//! a schedule by one [`Mutation`] that keeps its values, or says which dependence stands against it.
//!
//! ```
//! use loopwright_graph::parse;
//! use loopwright_looptree::{LoopTree, Storage, allocations, parse_schedule, print_tree};
//! use loopwright_text::Source;
//!
//! let program = "loopwright program 1
//! input A: f32[i=64, k=32]
//! input B: f32[k, j=48]
//! C = sum[k](A * B)
//! output D = max(C, 0)
//! ";
//! let graph = parse(&Source::new("relu.lw", program)).unwrap().with_stores();
//! let text = "loopwright schedule 1
//! C: i, j/16, k, j vectorize
//! D: i, j/16, j
//! ";
//! let schedule = parse_schedule(&Source::new("relu.sched", text), &graph).unwrap();
//! let tree = LoopTree::new(&graph, &schedule).unwrap();
//! assert_eq!(print_tree(&graph, &tree), "loopwright tree 1
//! for i {
//!   for j/16 {
//!     for k {
//!       for j vectorize {
//!         C
//!       }
//!     }
//!     for j {
//!       D
//!     }
//!   }
//! }
//! ");
//! // The product never exists as a whole: sixteen elements of it at a time do.
//! let held = allocations(&graph, &schedule, &tree).unwrap();
//! let c = &held[&graph.find("C").unwrap()];
//! assert_eq!(c.elements().unwrap().as_const(), Some(16));
//! assert_eq!(c.storage, Storage::Private);
//! ```

#![forbid(unsafe_code)]

mod access;
mod allocation;
mod cost;
mod error;
mod execute;
mod mutate;
mod plan;
mod schedule;
mod target;
mod text;
mod tree;

pub use access::{Access, Env, Stride, Visit, accesses, delayed_env, inputs_env, substitute, walk};
pub use allocation::{
    Accumulator, Allocation, Axis, PRIVATE_BYTES, Slot, Storage, accumulator, allocations,
    allocations_in_parts, inner_accumulator,
};
pub use cost::{StepCost, bytes_moved, costs, flops, node_flops};
pub use error::ScheduleError;
pub use execute::{Arithmetic, ExecuteError, NodeMemory, execute, execute_part};
pub use mutate::{
    Cursor, Mutated, Mutation, MutationError, for_sharers, legal, maximise_reuse, mutate,
    reassociated, unroll_inner,
};
pub use plan::{Changed, Plan};
pub use schedule::{
    Annotation, Edit, LoopName, LoopSpec, NodeSchedule, Schedule, can_inline, carries, is_given,
    loop_dims,
};
pub use target::{MatrixUnit, Target};
pub use text::{
    MUTATIONS, Replayed, ScheduleFile, parse_mutation, parse_schedule, parse_schedule_file,
    parse_tree, print_mutation, print_schedule, print_schedule_file, print_tree, replay,
};
pub use tree::{LoopTree, TreeNode, TreeRef, loops_around, parts_by_delegate};
