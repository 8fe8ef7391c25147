//! Every example program gives the reference's values on every backend that is available here.

mod computing;

use computing::computing;
use loopwright::backend::CompileOptions;
use loopwright::compile::Compiler;
use loopwright::graph::{Array, Graph, NodeId, evaluate, parse};
use loopwright::ops::{DType, Scalar, same_value};
use loopwright::text::Source;
use std::path::Path;

fn programs() -> Vec<(String, Graph)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/programs");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "lw"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 12, "a dozen programs are shipped");
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let source = Source::new(name.clone(), std::fs::read_to_string(path).unwrap());
        let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
        (name, graph)
    };
    paths.into_iter().map(read).collect()
}

/// Values that differ from run to run of the loop but not from run to run of the test.
fn filled(dtype: DType, shape: &[usize], state: &mut u64) -> Array {
    let count = shape.iter().product();
    let values = (0..count).map(|_| {
        *state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let bits = *state >> 33;
        match dtype {
            DType::Bool => Scalar::bool(bits % 2 == 1),
            dtype if dtype.is_float() => {
                Scalar::from_f64(dtype, (bits % 2000) as f64 / 1000.0 - 1.0)
            }
            dtype => Scalar::from_i64(dtype, (bits % 7) as i64),
        }
    });
    Array::from_scalars(dtype, shape, &values.collect::<Vec<_>>()).unwrap()
}

#[test]
fn examples_agree_with_the_reference() {
    let mut state = 7;
    for (name, graph) in programs() {
        let binding = graph.bind(&[]).unwrap();
        let inputs: Vec<(NodeId, Array)> = graph
            .parameters()
            .map(|node| {
                let shape: Vec<usize> = binding
                    .shape(&graph, node)
                    .iter()
                    .map(|size| *size as usize)
                    .collect();
                (node, filled(graph.node(node).dtype, &shape, &mut state))
            })
            .collect();
        let expected = evaluate(&graph, &binding, &inputs).unwrap();
        for backend in computing() {
            for strict in [true, false] {
                let options = CompileOptions {
                    strict,
                    ..CompileOptions::default()
                };
                let compiler = Compiler::new(backend.clone(), options);
                let program = compiler.compile(&graph, None).unwrap();
                let mut bound = program.bind(&[]).unwrap();
                for (node, array) in &inputs {
                    bound.give(&graph.node(*node).name, array.clone()).unwrap();
                }
                bound
                    .run()
                    .unwrap_or_else(|error| panic!("{name} on {}: {error}", backend.name()));
                for (output, expected) in &expected {
                    let got = bound.array(output).unwrap();
                    for (at, (got, want)) in got.iter().zip(expected.iter()).enumerate() {
                        let close = same_value(got, want)
                            || !strict && {
                                let (got, want) = (got.to_f64(), want.to_f64());
                                (got - want).abs() <= 1e-4 * want.abs().max(1.0)
                            };
                        assert!(
                            close,
                            "{name}.{output}[{at}] on {} (strict {strict}): {got} instead of {want}",
                            backend.name()
                        );
                    }
                }
            }
        }
    }
}
