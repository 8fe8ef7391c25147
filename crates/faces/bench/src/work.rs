//! A piece of work: a program, values for its inputs, and what of it is counted.

use crate::BenchError;
use loopwright::graph::{Array, Graph, parse};
use loopwright::text::Source;
use loopwright_tune::roofline::Roofline;
use std::borrow::Cow;

/// A program of a suite.
pub(crate) struct Work {
    pub(crate) name: String,
    /// What peers know the same work by.
    pub(crate) request: &'static str,
    /// The program.
    pub(crate) text: Cow<'static, str>,
    /// Values of its sizes that are no numbers, all of which are unknown when it is compiled.
    pub(crate) sizes: Vec<(&'static str, i64)>,
    /// What its inputs and states are filled with, by name and shape.
    pub(crate) fill: fn(&str, &[usize]) -> Fill,
    pub(crate) counted: Counted,
}

/// The distribution of an array's floats.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Fill {
    /// Normal around 0, with this deviation.
    Normal(f64),
    /// Even between these.
    Uniform(f64, f64),
}

impl Fill {
    /// What arrays are filled with that need nothing else.
    pub(crate) fn plain(_name: &str, _shape: &[usize]) -> Fill {
        Fill::Normal(1.0)
    }
}

/// What a run of a piece of work amounts to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Counted {
    /// Operations on floats.
    Flops(f64),
    /// Operations on floats narrower than `f32`, for which no ceiling is measured.
    NarrowFlops(f64),
    /// Bytes, about as many read as written.
    Copied(f64),
    /// Bytes that are read; next to nothing is written.
    Read(f64),
    /// One step, which has so many operations on floats.
    Step(f64),
}

impl Counted {
    /// What a row says it in.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Counted::Flops(_) | Counted::NarrowFlops(_) => "GFLOP/s",
            Counted::Copied(_) | Counted::Read(_) => "GB/s",
            Counted::Step(_) => "ms",
        }
    }

    /// The figure of a run that took so long.
    pub(crate) fn figure(self, seconds: f64) -> f64 {
        match self {
            Counted::Flops(amount)
            | Counted::NarrowFlops(amount)
            | Counted::Copied(amount)
            | Counted::Read(amount) => amount / seconds / 1e9,
            Counted::Step(_) => seconds * 1e3,
        }
    }

    /// How much of what the machine can do at most a run was that took so long.
    pub(crate) fn share(self, seconds: f64, ceilings: &Roofline) -> Option<f64> {
        let (amount, ceiling) = match self {
            Counted::NarrowFlops(_) => return None,
            Counted::Flops(flops) | Counted::Step(flops) => (flops, ceilings.flops_per_second),
            Counted::Copied(bytes) => (bytes, ceilings.copy_bytes_per_second),
            Counted::Read(bytes) => (bytes, ceilings.read_bytes_per_second),
        };
        Some(amount / seconds / ceiling)
    }
}

impl Work {
    /// A matrix product of size `n`.
    pub(crate) fn matmul(n: u32) -> Work {
        Work {
            name: format!("matmul {n}"),
            request: "matmul",
            text: format!(
                "loopwright program 1\n\
                 input A: f32[i={n}, k={n}]\n\
                 input B: f32[k, j={n}]\n\
                 output C = sum[k](A * B)\n"
            )
            .into(),
            sizes: Vec::new(),
            fill: Fill::plain,
            counted: Counted::Flops(2.0 * f64::from(n).powi(3)),
        }
    }

    /// The same with sizes that are not known when it is compiled.
    pub(crate) fn symbolic_matmul(n: u32) -> Work {
        Work {
            name: format!("matmul {n}, symbolic sizes"),
            text: "loopwright program 1\n\
                   size M, N, K\n\
                   input A: f32[i=M, k=K]\n\
                   input B: f32[k, j=N]\n\
                   output C = sum[k](A * B)\n"
                .into(),
            sizes: ["M", "N", "K"].map(|size| (size, i64::from(n))).to_vec(),
            ..Work::matmul(n)
        }
    }

    /// A matrix product of `bf16`, summed in `f32` and rounded once.
    pub(crate) fn bf16_matmul(n: u32) -> Work {
        Work {
            name: format!("matmul bf16 {n}"),
            request: "matmul_bf16",
            text: format!(
                "loopwright program 1\n\
                 input A: bf16[i={n}, k={n}]\n\
                 input B: bf16[k, j={n}]\n\
                 output C = bf16(sum[k](f32(A) * f32(B)))\n"
            )
            .into(),
            counted: Counted::NarrowFlops(2.0 * f64::from(n).powi(3)),
            ..Work::matmul(n)
        }
    }

    /// A convolution, 3x3, that reads no pixel outside of its image.
    pub(crate) fn conv(channels: u32, out: u32) -> Work {
        let size = out + 2;
        let (c, o) = (f64::from(channels), f64::from(out));
        Work {
            name: format!("conv 3x3, {channels} channels, {out}x{out}"),
            request: "conv",
            text: format!(
                "loopwright program 1\n\
                 dim y = {out}, x = {out}\n\
                 input W: f32[o={channels}, c={channels}, ky=3, kx=3]\n\
                 input X: f32[c, iy={size}, ix={size}]\n\
                 Y[o, y, x] = sum[c, ky, kx](W * X[c, y + ky, x + kx])\n\
                 output Y\n"
            )
            .into(),
            sizes: Vec::new(),
            fill: Fill::plain,
            counted: Counted::Flops(2.0 * c * c * 9.0 * o * o),
        }
    }

    pub(crate) fn graph(&self) -> Result<Graph, BenchError> {
        parsed(&self.name, &self.text)
    }

    /// Values for every input and state, the same in every run: floats as the work says, integers are labels
    /// below 10.
    pub(crate) fn inputs(&self, graph: &Graph) -> Result<Vec<(String, Array)>, BenchError> {
        let fail = |error: &dyn ToString| ours(&self.name, error.to_string());
        let binding = graph.bind(&self.sizes).map_err(|error| fail(&error))?;
        let mut random = Random(0);
        let mut inputs = Vec::new();
        for node in graph.parameters() {
            let parts = graph.node(node);
            let shape = binding.shape(graph, node);
            let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
            let fill = (self.fill)(&parts.name, &shape);
            let values: Vec<f64> = (0..shape.iter().product())
                .map(|_| match fill {
                    _ if !parts.dtype.is_float() => (random.bits() % 10) as f64,
                    Fill::Normal(deviation) => deviation * random.normal(),
                    Fill::Uniform(low, high) => low + (high - low) * random.uniform(),
                })
                .collect();
            let array =
                Array::from_f64(parts.dtype, &shape, &values).map_err(|error| fail(&error))?;
            inputs.push((parts.name.clone(), array));
        }
        Ok(inputs)
    }
}

pub(crate) fn parsed(name: &str, text: &str) -> Result<Graph, BenchError> {
    let source = Source::new(name, text);
    parse(&source).map_err(|error| ours(name, error.render(&source)))
}

/// What went wrong with a piece of work on our side.
pub(crate) fn ours(work: &str, error: impl ToString) -> BenchError {
    BenchError::Ours {
        work: work.to_owned(),
        reason: error.to_string(),
    }
}

/// Random numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In (0, 1].
    fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (radius, turn) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_shares_follow_from_the_time() {
        let ceilings = Roofline {
            flops_per_second: 4e9,
            copy_bytes_per_second: 2e9,
            read_bytes_per_second: 1e9,
        };
        for (counted, unit, figure, share) in [
            (Counted::Flops(1e9), "GFLOP/s", 2.0, Some(0.5)),
            (Counted::NarrowFlops(1e9), "GFLOP/s", 2.0, None),
            (Counted::Copied(1e9), "GB/s", 2.0, Some(1.0)),
            (Counted::Read(1e9), "GB/s", 2.0, Some(2.0)),
            (Counted::Step(1e9), "ms", 500.0, Some(0.5)),
        ] {
            assert_eq!(counted.unit(), unit, "{counted:?}");
            assert_eq!(counted.figure(0.5), figure, "{counted:?}");
            assert_eq!(counted.share(0.5, &ceilings), share, "{counted:?}");
        }
    }

    #[test]
    fn inputs_are_the_same_every_time_and_fit_their_dtypes() {
        let text = "loopwright program 1\n\
                    input x: f32[i=1000]\n\
                    input label: i64[i]\n\
                    input even: f32[i]\n\
                    state w: f32[i]\n\
                    update w = w + x * f32(label) * even\n";
        let work = Work {
            name: "inputs".to_owned(),
            request: "inputs",
            text: text.into(),
            sizes: Vec::new(),
            fill: |name, shape| match (name, shape) {
                ("w", [1000]) => Fill::Normal(0.05),
                ("even", _) => Fill::Uniform(0.5, 1.5),
                _ => Fill::Normal(1.0),
            },
            counted: Counted::Read(1.0),
        };
        let graph = work.graph().expect("the program is right");
        let inputs = work.inputs(&graph).expect("inputs can be made");
        assert_eq!(inputs, work.inputs(&graph).expect("again"));
        let largest = |name: &str| {
            let (_, array) = inputs.iter().find(|(input, _)| input == name).expect(name);
            let values = array.to_f64().into_iter();
            values.map(f64::abs).fold(0.0, f64::max)
        };
        assert!((2.0..6.0).contains(&largest("x")), "{}", largest("x"));
        assert!((0.1..0.3).contains(&largest("w")), "{}", largest("w"));
        assert_eq!(largest("label"), 9.0);
        assert!(
            (1.4..=1.5).contains(&largest("even")),
            "{}",
            largest("even")
        );
    }
}
