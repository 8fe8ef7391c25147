//! k-means: points are gathered around centres, which move until nothing changes any more.
//!
//! It shows distances by broadcasting, and a loop whose step is compiled once and which ends by what it
//! computes.
//!
//! ```console
//! $ cargo run --release --example kmeans [FILE.png]
//! ```
//!
//! It prints the centres and writes a picture of the plane to `kmeans.png`: to which centre each place belongs.

use loopwright::chart::{HeatMap, Palette};
use loopwright::data::blobs;
use loopwright::prelude::*;
use loopwright::tensor::repeat_while;
use std::error::Error;
use std::path::PathBuf;

/// The part of the plane that is drawn, in both directions.
const RANGE: (f64, f64) = (-13.0, 13.0);

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args().nth(1).unwrap_or("kmeans.png".into()));
    let data = blobs(1500, 5, 1.0, 2)?;
    let points = Tensor::of(data.inputs.clone());
    let found = kmeans(&points, 5)?;
    println!(
        "after {} rounds the centres are\n{}",
        found.rounds, found.centres
    );

    // Every place of the plane, and the number of its centre.
    let side = 500;
    let line = Tensor::linspace(RANGE.0, RANGE.1, side);
    let x = line.broadcast_to([side, side]);
    let y = line.unsqueeze(1).broadcast_to([side, side]);
    let places = nearest(&stack(&[&x, &y], -1), &found.centres).array()?;
    let classes = found.classes.array()?;
    HeatMap::new(&places)
        .palette(Palette::Grey)
        .range(-8.0, 5.0)
        .points(&data.inputs, &classes, RANGE, RANGE)
        .write(&path)?;
    println!("the picture is in {}", path.display());
    Ok(())
}

/// The number of the nearest centre, for points along the last axis.
fn nearest(points: &Tensor, centres: &Tensor) -> Tensor {
    let distances = (points.unsqueeze(-2) - centres).square().sum(-1);
    distances.argmin(-1)
}

struct Found {
    centres: Tensor,
    /// The centre of each point.
    classes: Tensor,
    rounds: usize,
}

fn kmeans(points: &Tensor, count: usize) -> Result<Found, TensorError> {
    let first = spread(points, count)?;
    let around = repeat_while(
        "k-means",
        // Centres now, centres before, points, rounds.
        |[now, before, ..]: &[Tensor; 4]| now.ne(before).any(..),
        move |[now, _, points, rounds]| {
            // Each centre goes to the mean of its points: a product with ones where a point is its own.
            let own = nearest(points, now).one_hot(count, DType::F32);
            let sizes = own.sum(0).unsqueeze(1);
            let means = own.t().matmul(points) / sizes.maximum(1.0);
            let next = select(&sizes.gt(0.0), &means, now);
            [next, now.clone(), points.clone(), rounds + 1]
        },
    );
    let nowhere = first.zeros_like() + f64::INFINITY;
    let [centres, _, points, rounds] =
        around.call(&[first, nowhere, points.clone(), Tensor::scalar(0i64)])?;
    Ok(Found {
        classes: nearest(&points, &centres),
        rounds: rounds.item()? as usize,
        centres,
    })
}

/// Points to begin with: the first, and then always the one that is farthest from all chosen so far.
fn spread(points: &Tensor, count: usize) -> Result<Tensor, TensorError> {
    let mut chosen = points.at(0..1);
    for _ in 1..count {
        let distances = (points.unsqueeze(1) - &chosen).square().sum(-1).min(-1);
        let farthest = points.at(distances.argmax(0));
        chosen = concat(&[&chosen, &farthest.unsqueeze(0)], 0);
        chosen.realize()?;
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centres_are_the_means_of_their_points() -> Result<(), Box<dyn Error>> {
        let data = blobs(500, 4, 0.5, 1)?;
        let found = kmeans(&Tensor::of(data.inputs.clone()), 4)?;
        assert!((1..20).contains(&found.rounds), "{}", found.rounds);
        let (centres, classes) = (found.centres.to_f64()?, found.classes.to_f64()?);
        let points = data.inputs.to_f64();
        for at in 0..4 {
            let own: Vec<&[f64]> = points
                .chunks_exact(2)
                .zip(&classes)
                .filter_map(|(point, class)| (*class == at as f64).then_some(point))
                .collect();
            for axis in 0..2 {
                let mean = own.iter().map(|point| point[axis]).sum::<f64>() / own.len() as f64;
                assert!((mean - centres[at * 2 + axis]).abs() < 1e-3);
            }
        }
        // The clouds lie apart: points are together exactly if they were made around the same centre.
        let made = data.targets.to_f64();
        let pairs = (0..500).flat_map(|a| (0..a).map(move |b| (a, b)));
        let wrong = pairs.filter(|(a, b)| (made[*a] == made[*b]) != (classes[*a] == classes[*b]));
        assert_eq!(wrong.count(), 0);
        Ok(())
    }
}
