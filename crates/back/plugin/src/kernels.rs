//! A plug-in that takes kernels, as their own text or as C.

use crate::abi::{self, LW_FORM_C, LW_FORM_C99, LW_FORM_KERNEL};
use crate::arguments::{arguments_of, text_of};
use crate::loaded::{Job, OwnedCode, PluginBackend};
use crate::table::Form;
use loopwright_backend::{
    Argument, BackendError, CompileOptions, Describe, Executable, KernelBackend, Signature,
};
use loopwright_emit::{C, C99, Dialect, EmitError, emit};
use loopwright_kernel::{FunctionKind, Module, print};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A module in the form that a plug-in takes.
struct Rendered {
    form: u32,
    text: String,
    /// By kernel, in the module's order: the entry point's name, or nothing.
    symbols: Vec<String>,
    math: Vec<&'static str>,
}

impl PluginBackend {
    fn render(&self, module: &Module) -> Result<Rendered, BackendError> {
        let (form, dialect): (u32, &dyn Dialect) = match self.0.table.form {
            Form::C => (LW_FORM_C, &C),
            Form::C99 => (LW_FORM_C99, &C99),
            // Loops are another backend's.
            Form::Kernel | Form::Program => {
                return Ok(Rendered {
                    form: LW_FORM_KERNEL,
                    text: print(module),
                    symbols: Vec::new(),
                    math: Vec::new(),
                });
            }
        };
        let emitted = emit(module, dialect);
        let emitted = emitted.map_err(
            |EmitError::Unsupported {
                 function, reason, ..
             }| BackendError::Unsupported {
                backend: self.name().to_owned(),
                kernel: function,
                reason,
            },
        )?;
        Ok(Rendered {
            form,
            text: emitted.source,
            symbols: emitted.kernels.into_iter().map(|k| k.symbol).collect(),
            math: emitted.math,
        })
    }
}

impl KernelBackend for PluginBackend {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        Ok(Arc::new(self.compile_module(module, options)?))
    }
}

impl PluginBackend {
    /// Has the kernels of a module compiled.
    pub(crate) fn compile_module(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<CompiledModule, BackendError> {
        let rendered = self.render(module)?;
        let mut signatures = FxHashMap::default();
        let mut kernels = Vec::new();
        let functions = module.functions.iter();
        let of_host = functions.filter(|f| matches!(f.kind, FunctionKind::Kernel { .. }));
        for (at, function) in of_host.enumerate() {
            let signature =
                Signature::of(module, function).map_err(|reason| BackendError::Unsupported {
                    backend: self.name().to_owned(),
                    kernel: function.name.clone(),
                    reason,
                })?;
            let symbol = rendered.symbols.get(at).map_or("", String::as_str);
            kernels.push(abi::Kernel {
                name: text_of(&function.name),
                symbol: text_of(symbol),
                group: signature.group,
            });
            signatures.insert(function.name.clone(), signature);
        }
        let first = module.functions.first();
        let code = self.0.compile(
            &Job {
                kernel: first.map_or("", |function| &function.name),
                form: rendered.form,
                text: &rendered.text,
                schedule: "",
                kernels,
                math: &rendered.math,
            },
            options,
        )?;
        Ok(CompiledModule {
            code,
            signatures,
            text: rendered.text,
        })
    }
}

/// What the plug-in made of a module.
pub(crate) struct CompiledModule {
    pub(crate) code: OwnedCode,
    signatures: FxHashMap<String, Signature>,
    /// What the plug-in was given.
    text: String,
}

impl CompiledModule {
    /// What a kernel takes.
    pub(crate) fn signature(&self, kernel: &str) -> Result<&Signature, String> {
        let signature = self.signatures.get(kernel);
        signature.ok_or_else(|| "the module has no kernel of that name".to_owned())
    }

    /// The code, or else what the plug-in was given.
    pub(crate) fn text(&self) -> String {
        self.code.text().unwrap_or_else(|| self.text.clone())
    }
}

impl Executable for CompiledModule {
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        let wrong = |reason: String| BackendError::Call {
            kernel: kernel.to_owned(),
            reason,
        };
        let signature = self.signature(kernel).map_err(wrong)?;
        let mut words = arguments_of(signature, arguments).map_err(wrong)?;
        // SAFETY: the arguments fit the kernel's parameters; buffers that it writes are exclusively
        // borrowed, or shared on this thread only. That accesses stay within the buffers is what the caller
        // states by passing them to a validated module.
        unsafe { self.code.run(kernel, words.words()) }
    }

    fn code(&self) -> String {
        self.text()
    }
}
