//! Shared passes: module in, the same module in fewer or better instructions out.
//!
//! One pass, one file. None of [`NAMES`] changes a value: the interpreter gives the same bits before and
//! after, which a differential test checks on thousands of random kernels. They need a valid module
//! and leave one. [`expand_math`] and [`contract`] are none of them: they change roundings, and a backend asks for them ([`relaxed`]).
//!
//! [`Pipeline::standard`] is the order backends use. Each pass is a single sweep or two, so that the
//! whole takes microseconds.
//!
//! ```
//! use loopwright_kernel::Module;
//! use loopwright_kernel::passes::{Pipeline, by_name};
//!
//! let mut module = Module::default();
//! Pipeline::standard().run(&mut module, &mut |_pass, _module| ());
//!
//! let dce = by_name("dce").expect("there is such a pass");
//! dce(&mut module);
//! ```

mod alias;
#[cfg(any(test, feature = "broken-pass"))]
mod broken;
pub mod contract;
pub mod cse;
pub mod dce;
#[cfg(test)]
mod differential;
pub mod divide_invariant;
pub mod expand_math;
pub mod inline_virtual;
pub mod licm;
pub mod log_stores;
pub mod promote;
pub mod share;
pub mod simplify;
pub mod unroll;

use crate::ir::{Function, Module};
use expand_math::Precision;
use loopwright_ops::Op;
use loopwright_threads::interrupt::unwind_if_asked;
use std::borrow::Cow;

/// What a backend can compute better than what the passes that change roundings would write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine<'a> {
    /// Whether `mul_add` of `f32` and `f64` is one instruction.
    pub fuses: bool,
    /// Ops on `f32` that are not expanded.
    pub kept: &'a [Op],
}

/// The module as backends compile it outside strict mode: functions are arithmetic, and products are added to running
/// values without being rounded, where the machine can. All other roundings stay.
pub fn relaxed<'m>(
    module: &'m Module,
    precision: Precision,
    machine: Machine<'_>,
) -> Cow<'m, Module> {
    if !machine.fuses {
        return expand_math::expanded_but(module, precision, machine);
    }
    let mut module = module.clone();
    for function in &mut module.functions {
        contract::accumulations(function);
        function.compact();
    }
    Cow::Owned(expand_math::expanded_but(&module, precision, machine).into_owned())
}

/// A pass.
pub type Pass = fn(&mut Module);

/// The names of all passes that change no value.
pub const NAMES: &[&str] = &[
    "unroll",
    "simplify",
    "promote",
    "inline_virtual",
    "cse",
    "licm",
    "dce",
    "share",
];

/// The names of the deliberately wrong passes.
#[cfg(any(test, feature = "broken-pass"))]
pub const BROKEN: &[&str] = &["cse_ignores_stores", "simplify_swaps_sub"];

/// The pass of that name, one of [`NAMES`], `contract`, `expand_math` or `divide_invariant`. It leaves values in the normal form of [`Function::compact`].
pub fn by_name(name: &str) -> Option<Pass> {
    macro_rules! compacting {
        ($run:path) => {
            |module| {
                for function in &mut module.functions {
                    $run(function);
                    function.compact();
                }
            }
        };
    }
    Some(match name {
        "unroll" => compacting!(unroll::run),
        "simplify" => compacting!(simplify::run),
        "promote" => compacting!(promote::run),
        "inline_virtual" => compacting!(inline_virtual::run),
        "cse" => compacting!(cse::run),
        "licm" => compacting!(licm::run),
        "dce" => compacting!(dce::run),
        "share" => compacting!(share::all),
        "contract" => compacting!(contract::accumulations),
        "expand_math" => compacting!(expand_math::run),
        "divide_invariant" => compacting!(divide_invariant::run),
        #[cfg(any(test, feature = "broken-pass"))]
        "cse_ignores_stores" => compacting!(broken::cse_ignores_stores),
        #[cfg(any(test, feature = "broken-pass"))]
        "simplify_swaps_sub" => compacting!(broken::simplify_swaps_sub),
        _ => return None,
    })
}

/// The same, on one function and without the normal form, which a pipeline restores once.
fn function_pass(name: &str) -> Option<fn(&mut Function)> {
    Some(match name {
        "unroll" => unroll::run,
        "simplify" => simplify::run,
        "promote" => promote::run,
        "inline_virtual" => inline_virtual::run,
        "cse" => cse::run,
        "licm" => licm::run,
        "dce" => dce::run,
        "share" => share::run,
        #[cfg(any(test, feature = "broken-pass"))]
        "cse_ignores_stores" => broken::cse_ignores_stores,
        #[cfg(any(test, feature = "broken-pass"))]
        "simplify_swaps_sub" => broken::simplify_swaps_sub,
        _ => return None,
    })
}

/// Passes in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pipeline {
    names: Vec<&'static str>,
}

impl Pipeline {
    /// The passes every backend wants.
    ///
    /// Loops are written out first and their indices folded, which tells `promote` and
    /// `inline_virtual` which elements are meant; what they uncover is simplified once more.
    /// Invariant motion comes before common subexpressions: what it moves out of neighbouring loops
    /// meets in one block, where it is found to be the same. Arrays share memory last, when it is known
    /// which are left; only where there is much of it.
    pub fn standard() -> Pipeline {
        Pipeline {
            names: vec![
                "unroll",
                "simplify",
                "promote",
                "inline_virtual",
                "simplify",
                "licm",
                "cse",
                "dce",
                "share",
            ],
        }
    }

    /// These passes, each one of [`NAMES`]; `None` if one is not.
    pub fn of(names: &[&'static str]) -> Option<Pipeline> {
        let known = names.iter().all(|name| NAMES.contains(name));
        known.then(|| Pipeline {
            names: names.to_vec(),
        })
    }

    /// No passes.
    pub fn empty() -> Pipeline {
        Pipeline { names: Vec::new() }
    }

    /// The standard passes with a deliberately wrong one among them, to show that it is caught;
    /// `None` if `name` is none of [`BROKEN`].
    #[cfg(any(test, feature = "broken-pass"))]
    pub fn with_broken(name: &str) -> Option<Pipeline> {
        let broken = BROKEN.iter().find(|broken| **broken == name)?;
        let mut pipeline = Pipeline::standard();
        // First, before the right passes have left it nothing to do.
        pipeline.names.insert(0, broken);
        Some(pipeline)
    }

    /// The names of the passes in order.
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// Runs the passes; after each, `observe` sees its name and what it has made of the module.
    pub fn run(&self, module: &mut Module, observe: &mut dyn FnMut(&str, &Module)) {
        for name in &self.names {
            let Some(pass) = function_pass(name) else {
                unreachable!("a pipeline holds names of passes, and `{name}` is none")
            };
            for function in &mut module.functions {
                unwind_if_asked();
                pass(function);
            }
            observe(name, module);
        }
        module.compact();
    }
}
