//! A second opinion on every run of a kernel: the hook. What compares is `crates/tools/conformance/src/verify`.

use crate::layout::{Layout, LayoutMemory};
use crate::node::Node;
use crate::routine::RoutineShared;
use loopwright_backend::{Backend, CompileOptions, DeviceError, LaunchArgument, Slab};
use loopwright_compile::Program;
use loopwright_graph::Binding;
use std::fmt;
use std::sync::Arc;

/// Who is shown every run of a kernel and says whether it is right. Runs that are not fail.
pub trait Verify: Send + Sync + fmt::Debug {
    /// Checks a run.
    ///
    /// # Errors
    /// What is wrong, in words.
    fn check(&self, run: &Run<'_>) -> Result<(), String>;
}

/// A run of a kernel. Memory is listed by the parameters of the program's kernel; it is empty for those
/// that are no arrays of the program.
pub struct Run<'a> {
    /// The program.
    pub program: &'a Arc<Program>,
    /// The backend that compiled it.
    pub backend: &'a Backend,
    /// How it was compiled.
    pub options: &'a CompileOptions,
    /// Its sizes, and the values of its static symbols in this run.
    pub binding: &'a Binding,
    /// What stood in memory before.
    pub before: &'a [&'a [u8]],
    /// What stood in memory after.
    pub after: &'a [&'a [u8]],
}

impl RoutineShared {
    /// Runs the kernel between two looks at its memory, and has the difference checked.
    pub(crate) fn launch_verified(
        &self,
        verify: &dyn Verify,
        statics: &[i64],
        merge: Option<&Node>,
        launch: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let before = self.look(merge)?;
        launch()?;
        let after = self.look(merge)?;
        let device = &self.context.stream().shared.device;
        let binding = binding_of(&self.layout, statics);
        let before: Vec<&[u8]> = before.iter().map(Vec::as_slice).collect();
        let after: Vec<&[u8]> = after.iter().map(Vec::as_slice).collect();
        verify
            .check(&Run {
                program: &self.layout.program,
                backend: &device.platform.backend,
                options: &device.options.compile,
                binding: &binding,
                before: &before,
                after: &after,
            })
            .map_err(DeviceError::Other)
    }

    /// What stands in the arrays of the program, by the kernel's parameters.
    fn look(&self, merge: Option<&Node>) -> Result<Vec<Vec<u8>>, DeviceError> {
        let read = |slab: &Arc<dyn Slab>, offset: usize, bytes: usize| {
            let mut copy = vec![0; bytes];
            // SAFETY: this is the routine's task, which the ledger has ordered behind all that writes
            // what it uses; an array lies within its slab.
            unsafe { slab.read(offset, &mut copy) }.map(|()| copy)
        };
        let look = |argument: &LaunchArgument<LayoutMemory>| match argument {
            LaunchArgument::Memory(LayoutMemory::Array(at)) => {
                let array = &self.layout.arrays[*at];
                let node = self.context.find(&array.info.name);
                let node = node.expect("a routine's context has its arrays");
                read(node.slab(), node.offset, node.bytes)
            }
            LaunchArgument::Merge { .. } => match merge {
                Some(node) => read(node.slab(), node.offset, node.bytes),
                None => Ok(Vec::new()),
            },
            LaunchArgument::Memory(
                LayoutMemory::Constant(_) | LayoutMemory::Scratch(_) | LayoutMemory::Log,
            )
            | LaunchArgument::Integer(_)
            | LaunchArgument::Static(_) => Ok(Vec::new()),
        };
        self.layout.arguments.iter().map(look).collect()
    }
}

/// The binding of a run.
fn binding_of(layout: &Layout, statics: &[i64]) -> Binding {
    let mut binding = layout.binding.clone();
    for (symbol, value) in layout.statics.iter().zip(statics) {
        let set = binding.set_static(layout.program.graph(), symbol.symbol, *value);
        set.expect("values were checked against the range when they were captured");
    }
    binding
}
