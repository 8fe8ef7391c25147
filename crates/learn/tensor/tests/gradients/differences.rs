//! Gradients by finite differences.

use loopwright_runtime::{Runtime, RuntimeOptions};
use loopwright_tensor::{Session, Tensor, TensorError, jit};
use std::sync::OnceLock;

/// How far a point is moved to either side.
const STEP: f64 = 1e-4;

/// How much the gradients may differ, relative to a size of 1 or more. Differences to both sides are wrong
/// by the square of the step times a third derivative.
const TOLERANCE: f64 = 2e-6;

/// A session on every backend that is linked in and works on this machine.
pub fn sessions() -> &'static [Session] {
    static SESSIONS: OnceLock<Vec<Session>> = OnceLock::new();
    SESSIONS.get_or_init(|| {
        let platforms = Runtime::new(RuntimeOptions::default()).platforms();
        let usable = platforms
            .iter()
            .filter(|platform| platform.unavailable.is_none());
        let sessions: Vec<Session> = usable
            .map(|platform| Session::new(&platform.name).unwrap())
            .collect();
        assert!(sessions.len() >= 2, "only {sessions:?}");
        sessions
    })
}

/// Runs a test on every backend.
pub fn everywhere(test: impl Fn() -> Result<(), TensorError>) {
    for session in sessions() {
        session.scope(|| test().unwrap_or_else(|error| panic!("{session:?}: {error}")));
    }
}

/// A tensor with a value, as a point at which gradients are taken.
#[derive(Clone)]
pub struct Point {
    pub values: Vec<f64>,
    pub shape: Vec<usize>,
}

impl Point {
    pub fn new(values: &[f64], shape: &[usize]) -> Point {
        assert_eq!(values.len(), shape.iter().product::<usize>());
        Point {
            values: values.to_vec(),
            shape: shape.to_vec(),
        }
    }

    /// Values that are all different and far from each other and from zero, in no order.
    pub fn scattered(shape: &[usize], seed: u64) -> Point {
        let count: usize = shape.iter().product();
        let mut random = Random(seed);
        let mut values: Vec<f64> = (0..count)
            .map(|at| {
                let size = 0.3 + 2.0 * (at as f64 + 0.5 * random.unit()) / count as f64;
                if random.below(2) == 0 { size } else { -size }
            })
            .collect();
        for at in (1..count).rev() {
            values.swap(at, random.below(at + 1));
        }
        Point::new(&values, shape)
    }

    pub fn tensor(&self) -> Tensor {
        Tensor::new(&self.values, &self.shape[..])
    }
}

/// Numbers that only depend on where they start.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Numbers between 0.5 and 1.5 that tell the elements of a tensor apart.
pub fn weights(like: &Tensor, seed: u64) -> Tensor {
    let sizes = match like.sizes() {
        Ok(sizes) => sizes,
        Err(error) => panic!("{error}"),
    };
    let mut random = Random(seed);
    let values: Vec<f64> = (0..sizes.iter().product::<usize>())
        .map(|_| 0.5 + random.unit())
        .collect();
    Tensor::new(&values, like.shape())
}

/// Checks the first and the second gradient of a function at a point, on every backend.
///
/// The first is that of a weighted sum of the result; the second that of a weighted sum of the first.
pub fn check(
    what: &str,
    points: &[Point],
    function: impl Fn(&[Tensor]) -> Tensor + Send + Sync + 'static,
) {
    let traced = jit(what, move |x: &Vec<Tensor>| {
        let of: Vec<&Tensor> = x.iter().collect();
        let y = function(x);
        y.check()?;
        let loss = (&y * weights(&y, 1)).sum(..);
        let first = loss.gradients_of(&of);
        let mut along = Tensor::scalar(0.0).cast(loopwright_tensor::DType::F64);
        for gradient in &first {
            gradient.check()?;
            along = along + (gradient * weights(gradient, 2)).sum(..);
        }
        let second = along.gradients_of(&of);
        Ok((vec![loss, along], first, second))
    });
    for session in sessions() {
        let test = || -> Result<(), TensorError> {
            let x: Vec<Tensor> = points.iter().map(Point::tensor).collect();
            let (_, first, second) = traced.call(&x)?;
            let first: Vec<Vec<f64>> =
                first.iter().map(Tensor::to_vec).collect::<Result<_, _>>()?;
            let second: Vec<Vec<f64>> = second
                .iter()
                .map(Tensor::to_vec)
                .collect::<Result<_, _>>()?;
            for (input, point) in points.iter().enumerate() {
                assert_eq!(first[input].len(), point.values.len());
                for at in 0..point.values.len() {
                    let moved = |by: f64| -> Result<[f64; 2], TensorError> {
                        let mut x = x.clone();
                        let mut point = point.clone();
                        point.values[at] += by;
                        x[input] = point.tensor();
                        let (sums, _, _) = traced.call(&x)?;
                        Ok([sums[0].item()?, sums[1].item()?])
                    };
                    let (up, down) = (moved(STEP)?, moved(-STEP)?);
                    for (order, got) in [(0, first[input][at]), (1, second[input][at])] {
                        let expected = (up[order] - down[order]) / (2.0 * STEP);
                        assert!(
                            (expected - got).abs() <= TOLERANCE * (1.0 + expected.abs()),
                            "{what} on {session:?}: gradient {} of element {at} of operand {input} is {got}, by differences {expected}",
                            order + 1
                        );
                    }
                }
            }
            Ok(())
        };
        session.scope(|| test().unwrap_or_else(|error| panic!("{what} on {session:?}: {error}")));
    }
    assert_eq!(
        traced.reports().len(),
        sessions().len(),
        "{what} was traced more than once on a backend"
    );
}
