//! What a backend is given to compile, at every level at once.

use loopwright_kernel::{FunctionId, FunctionKind, Module};
use loopwright_looptree::Plan;
use loopwright_lower::KernelParam;
use std::sync::Arc;

/// One kernel of a program, as it is launched. A program is a list of these, which run one after the other.
#[derive(Clone, Debug)]
pub struct KernelLaunch {
    /// The backend that its part of the program is delegated to; `None`: the program's own.
    pub backend: Option<Arc<str>>,
    /// A module whose first function is the kernel.
    pub module: Module,
    /// What the kernel's parameters are, in order.
    pub params: Vec<KernelParam>,
}

impl KernelLaunch {
    /// The kernel's name, another for each kernel that is compiled with it.
    pub fn kernel(&self) -> &str {
        &self.module.functions[FunctionId(0)].name
    }

    /// The work-items of a work-group, along each axis.
    pub fn group(&self) -> [u32; 3] {
        match self.module.functions[FunctionId(0)].kind {
            FunctionKind::Kernel { group } => group.unwrap_or([1; 3]),
            FunctionKind::Device => [1; 3],
        }
    }
}

/// One kernel to compile, with the loops that it was made of. A backend takes what its level is about.
#[derive(Clone, Copy)]
pub struct CompileUnit<'a> {
    /// The kernel.
    pub launch: &'a KernelLaunch,
    /// The program, its schedule and the loops that follow.
    pub plan: &'a Plan,
}
