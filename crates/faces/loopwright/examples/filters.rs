//! Filters for pictures: blur, sharpen, and find edges.
//!
//! It shows convolutions with weights that are known, and pictures in and out.
//!
//! ```console
//! $ cargo run --release --example filters [OUT.png [IN.png]]
//! ```
//!
//! It writes the picture and what three filters make of it, side by side, to `filters.png`. Without a picture of yours it
//! paints one.

use loopwright::image;
use loopwright::prelude::*;
use loopwright::tensor::PadMode;
use std::error::Error;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().unwrap_or("filters.png".into()));
    let picture = match arguments.next() {
        Some(own) => read(Path::new(&own))?,
        None => painted(240, 320),
    };
    let filtered = [
        picture.clone(),
        blur(&picture, 3.0),
        sharpen(&picture),
        edges(&picture),
    ];
    let [picture, blurred, sharp, edges] = &filtered;
    let top = concat(&[picture, blurred], 2);
    let all = concat(&[&top, &concat(&[sharp, edges], 2)], 1);
    write(&path, &all)?;
    println!("above: the picture, blurred; below: sharpened, its edges");
    println!("the picture is in {}", path.display());
    Ok(())
}

/// Weights of a bell over a few times its width, blurred down and then across: much less work than both at
/// once.
fn blur(picture: &Tensor, deviation: f64) -> Tensor {
    let reach = (3.0 * deviation).ceil();
    let places = Tensor::linspace(-reach, reach, 2 * reach as usize + 1);
    let bell = (-(places / deviation).square() / 2.0).exp();
    let bell = &bell / bell.sum(..);
    filter(&filter(picture, &bell.unsqueeze(1)), &bell.unsqueeze(0))
}

/// More of what a place has beyond its surroundings.
fn sharpen(picture: &Tensor) -> Tensor {
    (picture + (picture - blur(picture, 1.5)) * 1.5).clip(0.0, 1.0)
}

/// How steep the picture is at each place, by Sobel's weights.
fn edges(picture: &Tensor) -> Tensor {
    let across = Tensor::from([[-1.0f32, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]);
    let (dx, dy) = (filter(picture, &across), filter(picture, &across.t()));
    (dx.square() + dy.square()).sqrt().clip(0.0, 1.0)
}

/// Each channel of `[channel, y, x]` with every place replaced by a weighted sum of what is around it. Beyond the
/// rim, the picture goes on as it ends.
fn filter(picture: &Tensor, weights: &Tensor) -> Tensor {
    let reach = |axis: usize| {
        weights.shape().axes()[axis]
            .known()
            .map_or(0, |size| size / 2)
    };
    let (down, across) = (reach(0), reach(1));
    let wide =
        picture
            .pad_by(1, down, down, PadMode::Edge)
            .pad_by(2, across, across, PadMode::Edge);
    // A convolution has a batch and channels: every channel here is an example of its own.
    let weights = weights.unsqueeze(0).unsqueeze(0);
    conv(&wide.unsqueeze(1), &weights, &ConvOptions::default()).squeeze(1)
}

/// A picture as `f32[channel, y, x]` from 0 to 1; what a file has of opacity is left out.
fn read(path: &Path) -> Result<Tensor, Box<dyn Error>> {
    let picture = Tensor::of(image::read(path)?);
    let most = if picture.dtype() == DType::U16 {
        65535.0
    } else {
        255.0
    };
    let picture = picture.move_axis(2, 0).cast(DType::F32) / most;
    let channels = picture.sizes()?[0];
    Ok(match channels {
        1 | 2 => picture.at(0..1).repeat(0, 3),
        _ => picture.at(0..3),
    })
}

fn write(path: &Path, picture: &Tensor) -> Result<(), Box<dyn Error>> {
    let bytes = (picture * 255.0 + 0.5).cast(DType::U8).move_axis(0, 2);
    Ok(image::write(path, &*bytes.array()?)?)
}

/// A lit ball over a floor of squares.
fn painted(height: usize, width: usize) -> Tensor {
    let wide = width as f64 / height as f64;
    let x = Tensor::linspace(-wide, wide, width);
    let y = Tensor::linspace(1.0, -1.0, height).unsqueeze(1);
    // The ball: how high its surface is tells where it is lit from the upper left.
    let (bx, by) = (&x / 0.6, (&y - 0.1) / 0.6);
    let over = 1.0 - bx.square() - by.square();
    let up = over.maximum(0.0).sqrt();
    let lit = (&bx * -0.5 + &by * 0.6 + up * 0.6).clip(0.1, 1.0);
    // The floor: squares in perspective, below the horizon.
    let depth = 1.0 / (0.35 - &y).maximum(0.02);
    let squares = ((&x * &depth * 2.0).floor() + (&depth * 3.0).floor()).cast(DType::I64) % 2;
    let floor = squares.eq(0).cast(DType::F32) * 0.6 + 0.3;
    let sky = 0.55 + (&y + &x * 0.0) * 0.4;
    let behind = select(&y.lt(0.3), &floor, &sky);
    let ball = over.gt(0.0);
    let tinted =
        |of_ball: f64, of_rest: f64| select(&ball, &(&lit * of_ball), &(&behind * of_rest));
    stack(
        &[&tinted(1.0, 0.75), &tinted(0.45, 0.85), &tinted(0.25, 1.0)],
        0,
    )
    .clip(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_even_stays_even_and_has_no_edges() -> Result<(), TensorError> {
        let even = Tensor::full([3, 9, 12], 0.4, DType::F32);
        for filtered in [blur(&even, 2.0), sharpen(&even)] {
            assert!((filtered - 0.4).abs().max(..).item()? < 1e-6);
        }
        assert!(edges(&even).max(..).item()? < 1e-6);
        Ok(())
    }

    #[test]
    fn a_step_has_one_edge_of_known_height_and_blurs_to_a_slope() -> Result<(), TensorError> {
        let step = Tensor::arange(0, 20, 1).ge(10).cast(DType::F32);
        let step = step.broadcast_to([1, 8, 20]) * 0.1;
        // Sobel's weights see a step of 0.1 four times, at the two columns that touch it.
        let found = edges(&step).at((0, 4)).to_f64()?;
        for (at, found) in found.iter().enumerate() {
            let wanted = if at == 9 || at == 10 { 0.4 } else { 0.0 };
            assert!((found - wanted).abs() < 1e-5, "{at}: {found}");
        }
        let slope = blur(&step, 1.0).at((0, 4)).to_f64()?;
        assert!(slope.is_sorted() && (slope[9] + slope[10] - 0.1).abs() < 1e-6);
        let sharp = sharpen(&step).at((0, 4)).to_f64()?;
        assert!(
            sharp[9] < 1e-6 && sharp[10] > 0.12,
            "it overshoots: {sharp:?}"
        );
        Ok(())
    }

    #[test]
    fn pictures_come_back_from_files() -> Result<(), Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("painted.png");
        let picture = painted(24, 32);
        write(&path, &picture)?;
        let again = read(&path)?;
        assert_eq!(again.sizes()?, [3, 24, 32]);
        assert!((again - picture).abs().max(..).item()? <= 0.51 / 255.0);
        Ok(())
    }
}
