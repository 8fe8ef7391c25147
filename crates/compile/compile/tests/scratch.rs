//! Scratch memory that is used again.

mod both;

use both::{bound, compilers, graph, output};
use loopwright_kernel::FunctionId;
use loopwright_lower::KernelParam;

/// Five products in a row: the result of each is needed for the next one only.
const CHAIN: &str = "\
size N
input a: f32[i=N, j=N]
input b: f32[j, k=N]
input c: f32[k, l=N]
input d: f32[l, m=N]
input e: f32[m, n=N]
p = sum[j](a * b)
q = sum[k](p * c)
r = sum[l](q * d)
output y = sum[m](r * e)
";

#[test]
fn memory_is_shared_only_by_what_is_not_used_at_the_same_time() {
    let graph = graph(CHAIN);
    let [interp, cc] = compilers();
    let compiled = cc.compile(&graph, None).expect("it compiles");
    // The same loops, so that both use memory alike.
    let interpreted = interp.compile(&graph, Some(compiled.schedule()));
    let interpreted = interpreted.expect("it compiles");

    for program in [&compiled, &interpreted] {
        let live = program.scratch_live();
        assert_eq!(live.len(), program.scratch().len());
        let params = program.params().iter();
        let mut shared = 0;
        for (param, declared) in params.zip(&program.module().functions[FunctionId(0)].params) {
            let KernelParam::Scratch(number) = param else {
                continue;
            };
            let own = &live[*number as usize];
            let apart = live
                .iter()
                .any(|other| own.end <= other.start || other.end <= own.start);
            assert_eq!(declared.noalias, !apart, "scratch {number} of {live:?}");
            shared += usize::from(apart);
        }
        assert!(shared >= 2, "the chain shares memory: {live:?}");
    }

    let compiled = output(&mut bound(&compiled, &[("N", 37)]), "y");
    let interpreted = output(&mut bound(&interpreted, &[("N", 37)]), "y");
    assert_eq!(compiled, interpreted, "cc and interp");

    // Small integers: exact, in any order. Computed here once more, one product at a time.
    let size = 37;
    let matrix = |number: usize| -> Vec<f64> {
        let value = |at: usize| ((at * 7 + number * 3) % 11) as f64 - 5.0;
        (0..size * size).map(value).collect()
    };
    let product = |left: &[f64], right: &[f64]| -> Vec<f64> {
        let element = |at: usize| {
            let (row, column) = (at / size, at % size);
            (0..size)
                .map(|k| left[row * size + k] * right[k * size + column])
                .sum()
        };
        (0..size * size).map(element).collect()
    };
    let expected = (1..5).fold(matrix(0), |left, number| product(&left, &matrix(number)));
    // Beyond 2^24 single precision rounds.
    let close = compiled
        .iter()
        .zip(&expected)
        .all(|(found, expected)| (found - expected).abs() <= 1e-5 * (1e6 + expected.abs()));
    assert!(close, "cc and a plain product");
}
