//! Takes an LSTM with its gradients from graph to machine code a number of times, for counting instructions:
//! `lstm_to_code STEPS ROUNDS`. The code is written for one machine and not run.

use loopwright_backend::{CompileOptions, KernelBackend as _};
use loopwright_compile::Kernels;
use loopwright_kernel::passes::Pipeline;
use loopwright_targets::{lstm_gradients, random_target};
use loopwright_x86::{Level, X86};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| match arguments.next() {
        Some(text) => text.parse(),
        None => Ok(default),
    };
    let (steps, rounds) = (number(32)?, number(1)?);
    let graph = lstm_gradients(steps)?;
    // Of one thread, with vectors of 32 bytes: with more threads, loops that are long enough become parallel, which is more code.
    let (target, x86) = (random_target(3), X86::for_level(Level::Avx2));
    assert_eq!((target.threads, target.vector_bytes), (1, 32));
    for _ in 0..rounds {
        let kernels = Kernels::new(&graph, None, &target, &Pipeline::standard())?;
        x86.compile(&kernels.module(), &CompileOptions::default())?;
    }
    Ok(())
}
