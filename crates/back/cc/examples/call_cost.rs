//! What a call of a compiled kernel costs, for kernels that do nothing.
//!
//! `cargo run --release -p loopwright-cc --example call_cost`

use loopwright_backend::{Argument, BackendError, CompileOptions, KernelBackend};
use loopwright_cc::CcBackend;
use loopwright_kernel::{Access, Builder, FunctionKind, Module, Space};
use loopwright_ops::{DType, Scalar};
use std::time::Instant;

/// Calls of one measurement: few enough that some measurement is not interrupted.
const CALLS: u32 = 10_000;
const MEASUREMENTS: u32 = 500;

fn main() -> Result<(), BackendError> {
    let counts = [0usize, 4, 16, 40];
    let kernel = |count: usize| {
        let kind = FunctionKind::Kernel { group: None };
        let mut builder = Builder::new(format!("empty_{count}"), kind);
        // A scalar for each buffer.
        for at in 0..count {
            let name = format!("p{at}");
            if at % 2 == 0 {
                builder.param_ptr(DType::F32, Space::Global, &name, Access::Write, true);
            } else {
                builder.param_scalar(DType::I64, &name);
            }
        }
        builder.finish()
    };
    let module = Module {
        functions: counts.map(kernel).into_iter().collect(),
        ..Module::default()
    };
    let executable = CcBackend::from_env().compile(&module, &CompileOptions::default())?;
    for count in counts {
        let name = format!("empty_{count}");
        let mut memory = vec![[0u8; 64]; count];
        let mut arguments: Vec<Argument<'_>> = memory
            .iter_mut()
            .enumerate()
            .map(|(at, bytes)| match at % 2 {
                // Bytes on the heap, in pieces of 64: aligned enough for anything.
                0 => Argument::Write(bytes),
                _ => Argument::Scalar(Scalar::i64(at as i64)),
            })
            .collect();
        let mut best = f64::INFINITY;
        for _ in 0..MEASUREMENTS {
            let start = Instant::now();
            for _ in 0..CALLS {
                // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
                unsafe { executable.run(&name, &mut arguments) }?;
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        let nanoseconds = best / f64::from(CALLS) * 1e9;
        println!("{count:3} arguments: {nanoseconds:.1} ns");
    }
    Ok(())
}
