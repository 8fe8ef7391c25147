//! What a program should give: a sample of its results from the meaning of the program alone.
//!
//! Candidates are checked at the sizes at which they are timed, where the reference evaluator
//! ([`loopwright_graph::evaluate()`]) would take minutes: it holds whole arrays of every node. So elements are
//! computed on demand, from the same table of ops, each from the elements that it needs. Where the roundings
//! are free, a value comes with the range that other roundings may give, found on the way; no tolerance is
//! assumed. What is not in the sample is held to what the program gives without a schedule of its own,
//! which was held to the sample before.

mod element;
mod range;

use crate::error::TuneError;
use crate::random::Generator;
use element::Elements;
use loopwright_graph::{Array, Binding, Graph, NodeId};
use loopwright_ops::{DType, Scalar, same_value};
use range::Range;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Elements of each result that are in the sample, at most.
const SAMPLES: usize = 192;

/// The stack of the thread that computes: an element's depth is that of the graph.
const STACK: usize = 256 << 20;

/// A sample of what a program should give.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Expected {
    results: Vec<ExpectedResult>,
}

/// A sample of one output, or of a state after the run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct ExpectedResult {
    name: String,
    samples: Vec<Sample>,
    elements: usize,
}

/// One element: its place, the bits of the reference's value, and the bits of the ends of its range as `f64`;
/// none where any value will do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Sample {
    flat: usize,
    bits: u64,
    exact: bool,
    ends: Option<(u64, u64)>,
}

impl Expected {
    /// Computes the sample.
    ///
    /// # Errors
    /// A program that takes longer than `deadline` leaves.
    pub fn new(
        graph: &Graph,
        binding: &Binding,
        inputs: &[(NodeId, Array)],
        strict: bool,
        seed: u64,
        deadline: Instant,
    ) -> Result<Expected, TuneError> {
        let compute = || Expected::compute(graph, binding, inputs, strict, seed, deadline);
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK);
            let handle = thread
                .spawn_scoped(scope, compute)
                .map_err(|error| TuneError::Reference(format!("no thread for it: {error}")))?;
            let joined = handle.join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn compute(
        graph: &Graph,
        binding: &Binding,
        inputs: &[(NodeId, Array)],
        strict: bool,
        seed: u64,
        deadline: Instant,
    ) -> Result<Expected, TuneError> {
        let mut elements = Elements::new(graph, binding, inputs, strict, deadline);
        let outputs = graph.outputs().iter();
        let outputs = outputs.map(|output| (output.name.clone(), output.node));
        let updates = graph.updates().iter();
        let updates = updates.map(|update| (graph.node(update.state).name.clone(), update.value));
        let mut results: Vec<ExpectedResult> = Vec::new();
        for (name, node) in outputs.chain(updates) {
            // A state that has the name of an output cannot be told from it after the run.
            if results.iter().any(|result| result.name == name) {
                continue;
            }
            let parts = graph.node(node);
            let count = binding.elements(graph, node) as usize;
            let mut samples = Vec::new();
            for flat in places(count, seed, &name) {
                let at = elements.unflat(&parts.dims, flat);
                let cell = elements.element(node, &at)?;
                let ends = cell
                    .ends()
                    .map(|(low, high)| (low.to_bits(), high.to_bits()));
                samples.push(Sample {
                    flat,
                    bits: cell.value.bits(),
                    exact: cell.range == Range::Exact,
                    ends,
                });
            }
            results.push(ExpectedResult {
                name,
                samples,
                elements: count,
            });
        }
        Ok(Expected { results })
    }

    /// Names of what is compared.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.results.iter().map(|result| result.name.as_str())
    }

    /// How many elements are in the sample, and how many there are.
    pub fn coverage(&self) -> (usize, usize) {
        let sampled = self.results.iter().map(|result| result.samples.len()).sum();
        (
            sampled,
            self.results.iter().map(|result| result.elements).sum(),
        )
    }

    /// Compares results, in the order of [`Expected::names`], with the sample, and where it is given with
    /// `base`, which agrees with the sample.
    ///
    /// # Errors
    /// The first element that differs.
    pub fn check(&self, got: &[&Array], base: Option<&[Array]>) -> Result<(), String> {
        for (at, expected) in self.results.iter().enumerate() {
            let array = got[at];
            if array.len() != expected.elements {
                return Err(format!("`{}` has another size", expected.name));
            }
            expected.check_sample(array)?;
            if let Some(base) = base {
                expected.check_rest(array, &base[at])?;
            }
        }
        Ok(())
    }
}

impl ExpectedResult {
    fn check_sample(&self, array: &Array) -> Result<(), String> {
        let dtype = array.dtype();
        for sample in &self.samples {
            let wanted = Scalar::from_bits(dtype, sample.bits);
            let got = element(array, sample.flat);
            let agrees = got.is_some_and(|got| {
                let Some((low, high)) = sample.ends else {
                    return true;
                };
                same_value(wanted, got)
                    || !sample.exact
                        && (f64::from_bits(low)..=f64::from_bits(high)).contains(&got.to_f64())
                    || dtype.is_float() && wanted.to_f64() == got.to_f64()
            });
            if !agrees {
                return Err(self.difference(array, sample.flat, wanted, "the reference"));
            }
        }
        Ok(())
    }

    /// Holds every element to that of the program without a schedule of its own, as near as the widest
    /// range of the sample allows.
    fn check_rest(&self, array: &Array, base: &Array) -> Result<(), String> {
        if array.bytes() == base.bytes() {
            return Ok(());
        }
        let Some((near, share)) = self.slack(base.dtype()) else {
            return Ok(());
        };
        for (flat, wanted) in base.iter().enumerate() {
            let Some(got) = element(array, flat) else {
                return Err(self.difference(array, flat, wanted, "the program by itself"));
            };
            let (a, b) = (wanted.to_f64(), got.to_f64());
            let agrees =
                same_value(wanted, got) || a == b || (a - b).abs() <= near + share * a.abs();
            if !agrees {
                return Err(self.difference(array, flat, wanted, "the program by itself"));
            }
        }
        Ok(())
    }

    /// How far two right results may lie apart: so much, and so much for each unit of the value; `None` where
    /// anything may be right.
    fn slack(&self, dtype: DType) -> Option<(f64, f64)> {
        let mut near: f64 = 0.0;
        let mut share: f64 = 0.0;
        for sample in &self.samples {
            let (low, high) = sample.ends?;
            let (low, high) = (f64::from_bits(low), f64::from_bits(high));
            if sample.exact {
                continue;
            }
            if !dtype.is_float() {
                return None;
            }
            near = near.max(high - low);
            let size = low.abs().max(high.abs());
            if size > 0.0 {
                share = share.max((high - low) / size);
            }
        }
        // Twice the widest of the sample, as others may be a little wider; shares of tiny values mean nothing.
        Some((2.0 * near, 2.0 * share.min(0.01)))
    }

    fn difference(&self, array: &Array, flat: usize, wanted: Scalar, who: &str) -> String {
        let mut rest = flat;
        let mut index = vec![0; array.shape().len()];
        for (place, size) in index.iter_mut().zip(array.shape()).rev() {
            *place = rest % size;
            rest /= size;
        }
        let got =
            element(array, flat).map_or("a byte that is no bool".to_owned(), |got| got.to_string());
        format!("`{}`{index:?} is {got}, and {who} has {wanted}", self.name)
    }
}

/// An element; `None` for a `bool` that is neither 0 nor 1.
fn element(array: &Array, flat: usize) -> Option<Scalar> {
    let dtype = array.dtype();
    let broken = dtype == DType::Bool && array.bytes()[flat] > 1;
    (!broken).then(|| array.get_flat(flat))
}

/// Where the sample is taken: everywhere in a small array, else at both ends and at random.
fn places(count: usize, seed: u64, name: &str) -> Vec<usize> {
    if count <= SAMPLES {
        return (0..count).collect();
    }
    let mut generator = Generator::named(seed, name);
    let mut places: Vec<usize> = vec![0, 1, count / 2, count - 2, count - 1];
    while places.len() < SAMPLES {
        places.push(generator.below(count as u64) as usize);
    }
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::random_inputs;
    use loopwright_graph::{evaluate, parse};
    use loopwright_text::Source;
    use std::time::Duration;

    fn expected(text: &str, strict: bool) -> (Expected, Vec<Array>) {
        let source = Source::new("test.lw", format!("loopwright program 1\n{text}"));
        let graph = parse(&source).map_err(|error| error.render(&source));
        let graph = graph.expect("a program").with_stores();
        let binding = graph.bind(&[]).expect("sizes");
        let inputs = random_inputs(&graph, &binding, 3).expect("memory");
        let deadline = Instant::now() + Duration::from_secs(60);
        let expected = Expected::new(&graph, &binding, &inputs, strict, 3, deadline);
        let results = evaluate(&graph, &binding, &inputs).expect("it runs");
        let results = results.into_iter().map(|(_, array)| array).collect();
        (expected.expect("small"), results)
    }

    /// Programs with every kind of node: what is computed on demand is what the evaluator gives.
    #[test]
    fn elements_are_those_of_the_evaluator() {
        for program in [
            "input a: f32[i=9, k=7]\ninput b: f32[k, j=5]\noutput c = sum[k](a * b)\n",
            "input a: f32[i=9, j=7]\ns = max[j](a)\ne = exp(a - s)\noutput y = e / sum[j](e)\n",
            "input a: i32[i=9]\noutput y = a * a + 1\noutput z = sum[i](a)\n",
            "input a: f32[i=9]\noutput s = sort[i](a)\noutput p = argsort[i](a)\noutput m = argmax[i](a)\n",
            "input a: f32[i=9]\noutput y = a[i - 1] else 0\n",
            "state x: f32[i=8]\nleft = x[i - 1] else 0\nnext = x + left\nupdate x = next\n",
            "input a: f32[i=9]\noutput y = cumsum[i](a)\n",
        ] {
            for strict in [true, false] {
                let (expected, results) = expected(program, strict);
                let got: Vec<&Array> = results.iter().collect();
                expected
                    .check(&got, Some(&results))
                    .unwrap_or_else(|error| panic!("{error} in\n{program}"));
                assert_eq!(expected.coverage().0, expected.coverage().1, "{program}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_found() {
        let program = "input a: f32[i=40, k=64]\ninput b: f32[k, j=40]\noutput c = sum[k](a * b)\n";
        let (expected, results) = expected(program, false);
        assert!(expected.coverage().0 < expected.coverage().1, "a sample");
        for flat in [0, 777, 1599] {
            let mut wrong = results[0].clone();
            let value = wrong.get_flat(flat).to_f64();
            wrong.set_flat(flat, Scalar::from_f64(DType::F32, value + 0.05));
            let error = expected.check(&[&wrong], Some(&results));
            let error = error.expect_err("one element is wrong");
            assert!(error.contains("`c`["), "{error}");
        }
        // The last bit is free outside strict mode.
        let mut near = results[0].clone();
        near.set_flat(
            5,
            Scalar::from_bits(DType::F32, near.get_flat(5).bits() ^ 1),
        );
        assert_eq!(expected.check(&[&near], Some(&results)), Ok(()));
    }

    #[test]
    fn strict_programs_agree_bit_for_bit() {
        let program = "input a: f32[i=4, k=64]\noutput c = sum[k](a)\n";
        let (expected, results) = expected(program, true);
        let mut near = results[0].clone();
        near.set_flat(
            2,
            Scalar::from_bits(DType::F32, near.get_flat(2).bits() ^ 1),
        );
        assert!(expected.check(&[&near], None).is_err());
    }
}
