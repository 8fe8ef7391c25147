//! The smallest programs that once went wrong.

mod computing;

use computing::computing;
use loopwright::backend::CompileOptions;
use loopwright::compile::Compiler;
use loopwright::graph::{Array, evaluate, parse};
use loopwright::ops::{DType, Scalar, same_value};
use loopwright::text::Source;

/// Runs a program with one input, `x`, on every backend, strictly and not.
fn agrees_with_the_reference(program: &str, x: &[Scalar]) {
    let source = Source::new("test.lw", format!("loopwright program 1\n{program}\n"));
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    let binding = graph.bind(&[]).unwrap();
    let node = graph.find("x").unwrap();
    let shape = binding.shape(&graph, node);
    let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
    let array = Array::from_scalars(x[0].dtype(), &shape, x).unwrap();
    let inputs = [(node, array.clone())];
    let expected = evaluate(&graph, &binding, &inputs).unwrap();
    for backend in computing() {
        for strict in [true, false] {
            let options = CompileOptions {
                strict,
                ..CompileOptions::default()
            };
            let program = Compiler::new(backend.clone(), options)
                .compile(&graph, None)
                .unwrap();
            let mut bound = program.bind(&[]).unwrap();
            bound.give("x", array.clone()).unwrap();
            bound.run().unwrap();
            for (name, expected) in &expected {
                let got = bound.array(name).unwrap();
                for (at, (got, want)) in got.iter().zip(expected.iter()).enumerate() {
                    assert!(
                        same_value(got, want),
                        "{name}[{at}] on {}: {got} instead of {want}",
                        backend.name()
                    );
                }
            }
        }
    }
}

#[test]
fn an_integer_is_never_minus_zero() {
    let values: Vec<Scalar> = [-0.0, 0.0, -0.4, 0.4, -1.5, 2.5]
        .iter()
        .map(|value| Scalar::from_f64(DType::F32, *value))
        .collect();
    for ints in ["i8", "i16", "i32", "i64"] {
        let program = format!(
            "input x: f32[i=6]\nwhole = {ints}(x)\noutput a = f32(whole)\noutput b = f8e4m3(whole)\noutput c = f64(whole)"
        );
        agrees_with_the_reference(&program, &values);
    }
}

/// GCC 12 vectorised the loop over rows with masks, and lost elements of the third column.
#[test]
fn guarded_loads_in_a_short_inner_loop() {
    let x: Vec<Scalar> = (1..=36)
        .map(|value| Scalar::from_i64(DType::F32, value))
        .collect();
    for shift in -2..3 {
        let program = format!(
            "size N = 12
static shift in -2 .. 3 = {shift}
input x: f32[row=N, d=3]
output moved = x[row + shift, d] if d != shift else -1"
        );
        agrees_with_the_reference(&program, &x);
    }
}
