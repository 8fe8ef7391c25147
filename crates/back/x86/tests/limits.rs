//! Indices made of sizes and statics at the limits of 64 bits: refused, or as the reference computes them.

use loopwright_backend::{Backend, CompileOptions};
use loopwright_compile::Compiler;
use loopwright_conformance::limits::{LimitOutcome, check_limits, limit_program};
use loopwright_conformance::oracle::Oracle;
use loopwright_graph::{GraphError, parse};
use loopwright_text::Source;
use loopwright_x86::X86;

/// Seeds that `cargo test` runs; `cargo run -p loopwright-x86 --example limits -- FIRST COUNT` runs others.
const SEEDS: u64 = 4000;

#[test]
fn sizes_at_the_limits_of_64_bits_are_refused_or_computed_as_the_reference_does() {
    let oracle = Oracle::new(Backend::kernel_backend(X86::new())).without_texts();
    let (mut refused, mut agreed) = (0, 0);
    for seed in 0..SEEDS {
        match check_limits(&oracle, seed) {
            Ok(Some(LimitOutcome::Refused)) => refused += 1,
            Ok(Some(LimitOutcome::Agreed)) => agreed += 1,
            Ok(None) => {}
            Err(mismatch) => panic!("seed {seed}: {mismatch}\n{:#?}", limit_program(seed)),
        }
    }
    assert!(
        refused > 400 && agreed > 400,
        "refused {refused}, agreed {agreed}"
    );
}

#[test]
fn a_stride_whose_products_wrap_is_refused_when_sizes_are_bound() {
    let text = "loopwright program 1\nsize N = 4\nsize STRIDE = 2\ninput x: f32[i=N]\ndim j = 4\noutput y = x[j*STRIDE] else 0\n";
    let graph = parse(&Source::new("stride.lw", text)).expect("the program is right");
    let compiler = Compiler::new(
        Backend::kernel_backend(X86::new()),
        CompileOptions::default(),
    );
    let program = compiler
        .compile(&graph, None)
        .expect("it compiles at any sizes");
    let Err(error) = program.bind(&[("STRIDE", 9_223_372_032_559_808_512)]) else {
        panic!("the stride was accepted");
    };
    let message = error.to_string();
    for part in [
        "`y`",
        "STRIDE*j",
        "STRIDE = 9223372032559808512",
        "j in 0 .. 4",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(program.bind(&[("STRIDE", 1 << 40)]).is_ok());
    // The same for statics, whose whole range counts.
    let text = text.replace(
        "size STRIDE = 2",
        "static STRIDE in 0 .. 9223372036854775807 = 2",
    );
    let graph = parse(&Source::new("stride.lw", text)).expect("the program is right");
    let error = graph.bind_sizes(&[]).expect_err("the range is too large");
    assert!(matches!(error, GraphError::IndexOverflow { .. }), "{error}");
}
