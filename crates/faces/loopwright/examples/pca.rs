//! Principal components: 64 pixels of a digit become two numbers, and digits that look alike lie together.
//!
//! It shows linear algebra on tensors: a covariance, and the two directions of most variance by rotating a plane
//! until it stays (subspace iteration with QR).
//!
//! ```console
//! $ cargo run --release --example pca [FILE.png]
//! ```
//!
//! It prints the share of the variance that two numbers keep, and writes all digits as points, a colour for each of
//! the ten, to `pca.png`.

use loopwright::chart::{HeatMap, Palette, TerminalOptions};
use loopwright::data::digits;
use loopwright::prelude::*;
use loopwright::tensor::linalg::{qr, trace};
use loopwright::tensor::random::{Key, normal};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args().nth(1).unwrap_or("pca.png".into()));
    let digits = digits();
    let images = Tensor::of(digits.inputs.clone()).merge_axes(1, 2);
    let found = pca(&images, 2)?;
    let shares = found.shares.to_f64()?;
    println!(
        "of the variance of 64 pixels, one number keeps {:.1} %, and two keep {:.1} %",
        100.0 * shares[0],
        100.0 * (shares[0] + shares[1])
    );

    // A direction is a picture itself: what it adds to a digit, and what it takes away.
    let first = found.directions.at((.., 0)).reshape([8, 8]);
    println!(
        "the direction of most variance:\n{}",
        HeatMap::new(&*first.repeat(1, 2).array()?)
            .flipped()
            .terminal(&TerminalOptions::for_stdout().height(8))?
    );

    let points = found.points.array()?;
    let bound = found.points.abs().max(..).item()? * 1.05;
    let paper = Tensor::ones([700, 700], DType::F32).array()?;
    HeatMap::new(&paper)
        .palette(Palette::Grey)
        .range(0.0, 1.0)
        .points(&points, &digits.targets, (-bound, bound), (-bound, bound))
        .write(&path)?;
    println!("the picture is in {}", path.display());
    Ok(())
}

struct Components {
    /// The directions of most variance, as columns.
    directions: Tensor,
    /// The share of all variance along each of them.
    shares: Tensor,
    /// The data in these directions: `[examples, components]`.
    points: Tensor,
}

/// The directions in which data (`[examples, features]`) varies most.
fn pca(data: &Tensor, components: usize) -> Result<Components, TensorError> {
    let [examples, features] = data.sizes()?[..] else {
        return Err(data.refusal("pca", "data is [examples, features]"));
    };
    let centred = data - data.mean(0);
    let covariance = centred.t().matmul(&centred) / (examples as f64 - 1.0);
    covariance.realize()?;

    // What is multiplied by the covariance turns towards its first eigenvectors; QR keeps the axes apart.
    let turn = jit("turn", |[covariance, plane]: &[Tensor; 2]| {
        qr(&covariance.matmul(plane)).0
    });
    let mut plane = normal(&Key::new(0), [features, components], DType::F32);
    for _ in 0..200 {
        plane = turn.call(&[covariance.clone(), plane])?;
    }
    let variances = plane.t().matmul(&covariance.matmul(&plane)).diagonal();
    Ok(Components {
        shares: variances / trace(&covariance),
        points: centred.matmul(&plane),
        directions: plane,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_what_others_find() -> Result<(), TensorError> {
        let images = Tensor::of(digits().inputs).merge_axes(1, 2);
        let found = pca(&images, 2)?;
        // As scikit-learn's PCA has them for these images.
        let shares = found.shares.to_f64()?;
        assert!((shares[0] - 0.1489).abs() < 1e-3, "{shares:?}");
        assert!((shares[1] - 0.1362).abs() < 1e-3, "{shares:?}");
        Ok(())
    }

    #[test]
    fn points_have_these_variances_and_directions_are_orthonormal() -> Result<(), TensorError> {
        let images = Tensor::of(digits().inputs).merge_axes(1, 2);
        let found = pca(&images, 3)?;
        let all = images.var(0, 1.0).sum(..);
        let direct = (found.points.var(0, 1.0) / all).to_f64()?;
        for (share, direct) in found.shares.to_f64()?.iter().zip(direct) {
            assert!((share - direct).abs() < 1e-4, "{share} is not {direct}");
        }
        let product = found.directions.t().matmul(&found.directions);
        let off = (product - Tensor::eye(3, DType::F32))
            .abs()
            .max(..)
            .item()?;
        assert!(off < 1e-5, "{off}");
        // No two of them vary together.
        let points = &found.points;
        let covariance = points.t().matmul(points) / 1796.0;
        let beside = (&covariance - &covariance * Tensor::eye(3, DType::F32)).abs();
        assert!(beside.max(..).item()? < 1e-3);
        Ok(())
    }
}
