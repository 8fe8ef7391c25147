//! Schedules and loop trees: how a graph runs, as loops that can be read and edited.

mod access;
mod allocation;
mod cost;
mod default_schedule;
mod error;
mod schedule;
mod target;
mod text;
mod tree;

pub use access::{Access, Env, Stride, accesses, inputs_env, substitute};
pub use allocation::{Accumulator, Allocation, PRIVATE_BYTES, Storage, accumulator, allocations};
pub use cost::{StepCost, bytes_moved, costs, flops};
pub use default_schedule::default_schedule;
pub use error::ScheduleError;
pub use schedule::{
    Annotation, LoopSpec, NodeSchedule, Schedule, can_inline, carries, is_given, loop_dims,
};
pub use target::Target;
pub use text::{parse_schedule, parse_tree, print_schedule, print_tree};
pub use tree::{LoopTree, TreeNode, TreeRef, loops_around};
