//! What a backend can do decides what it is given.

use loopwright_backend::{
    Backend, BackendError, Capabilities, CompileOptions, Describe, Executable, KernelBackend,
    Target,
};
use loopwright_compile::Kernels;
use loopwright_graph::parse;
use loopwright_kernel::Module;
use loopwright_kernel::passes::Pipeline;
use loopwright_ops::{DType, Op};
use loopwright_text::Source;
use std::sync::Arc;

/// A backend that must never be reached.
struct Poor(Capabilities);

impl Describe for Poor {
    fn name(&self) -> &str {
        "poor"
    }

    fn target(&self) -> Target {
        Target {
            vector_bytes: 32,
            vector_registers: 16,
            ..Target::SCALAR
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.0.clone()
    }
}

impl KernelBackend for Poor {
    fn compile(&self, _: &Module, _: &CompileOptions) -> Result<Arc<dyn Executable>, BackendError> {
        panic!("what is outside its capabilities is refused before it is asked")
    }
}

/// Why a program is refused with the schedule that is chosen first.
fn refusal(capabilities: Capabilities, program: &str) -> String {
    let backend = Backend::kernel_backend(Poor(capabilities));
    let source = Source::new("test.lw", format!("loopwright program 1\n{program}"));
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    let kernels = Kernels::new(&graph, None, &backend.target(), &Pipeline::standard());
    let kernels = kernels.expect("it can be lowered");
    let units: Vec<_> = kernels.units().collect();
    match backend.compile(&units, &CompileOptions::default()) {
        Err(error @ BackendError::Unsupported { .. }) => error.to_string(),
        Err(other) => panic!("it is unsupported, not: {other}"),
        Ok(_) => panic!("it compiles"),
    }
}

#[test]
fn structs_are_refused_where_there_are_none() {
    let text = "loopwright kernel 1\n\nstruct Pair { x: f32, y: f32 }\n\n\
                kernel @pairs(%p: read ptr<global, Pair>) {\n}\n";
    let source = Source::new("pairs.lwk", text);
    let module = loopwright_kernel::parse(&source).expect("it is a kernel");
    let refused = Capabilities {
        structs: false,
        ..Capabilities::default()
    };
    let refused = refused.check(&module).expect_err("there are no structs");
    assert_eq!(
        refused.to_string(),
        "kernel `pairs`: it has structs, and the backend does not take them; keep each field in an array of its own"
    );
    assert_eq!(Capabilities::default().check(&module), Ok(()));
}

#[test]
fn what_is_missing_is_named() {
    let all = Capabilities::default;
    let of = |reason: &str| format!("backend `poor` cannot run kernel `program`: {reason}");
    let dtypes = vec![DType::Bool, DType::I64, DType::F32];
    assert_eq!(
        refusal(
            Capabilities { dtypes, ..all() },
            "input x: f64[i=3]\noutput y = x + 1\n"
        ),
        of("it computes with f64, and the backend has bool, i64, f32 only")
    );
    let missing_ops = vec![Op::Exp];
    assert_eq!(
        refusal(
            Capabilities {
                missing_ops,
                ..all()
            },
            "input x: f32[i=3]\noutput y = exp(x)\n"
        ),
        of("it uses the op `exp`, which the backend does not have")
    );
    assert_eq!(
        refusal(
            Capabilities {
                vector_lanes: 4,
                ..all()
            },
            "input x: f32[i=64]\noutput y = x * 2\n"
        ),
        of("it has vectors of 8 lanes, and the most is 4")
    );
    let max_params = Some(2);
    assert_eq!(
        refusal(
            Capabilities {
                max_params,
                ..all()
            },
            "input a: f32\ninput b: f32\noutput y = a + b\n"
        ),
        of("it has 3 parameters, and the most is 2; split the program in two")
    );
    let private_memory = Some(16);
    let told = refusal(
        Capabilities {
            private_memory,
            ..all()
        },
        "input x: f32[i=3, j=40]\ns = cumsum[j](x)\noutput y = s * max[j](s)\n",
    );
    assert!(told.contains("bytes, and a work-item has 16"), "{told}");
}
