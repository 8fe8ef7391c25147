//! `loopwright._core.loops`: symbols, graphs, loop trees, plans, programs, backends and agents, one file each.

mod agent;
mod backends;
mod bound;
mod build;
mod changes;
mod display;
mod errors;
mod graph;
mod layout;
mod memory;
mod node;
mod plan;
mod program;
mod reductions;
mod symbols;
mod tree;
mod value;
mod views;

pub(crate) use backends::raised;
pub(crate) use build::place;
pub(crate) use errors::text as text_error;
pub(crate) use graph::PyGraph;
pub(crate) use memory::{array_of, given_back};
pub(crate) use plan::PyPlan;

// Links the backends in.
use loopwright as _;
use pyo3::prelude::*;

/// Adds the submodule `loops`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let loops = PyModule::new(module.py(), "loops")?;
    errors::register(&loops)?;
    symbols::register(&loops)?;
    memory::register(&loops)?;
    value::register(&loops)?;
    node::register(&loops)?;
    graph::register(&loops)?;
    tree::register(&loops)?;
    plan::register(&loops)?;
    changes::register(&loops)?;
    program::register(&loops)?;
    bound::register(&loops)?;
    backends::register(&loops)?;
    agent::register(&loops)?;
    module.add_submodule(&loops)
}
