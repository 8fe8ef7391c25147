//! The Mandelbrot set: how long it takes until `z ← z² + c` runs away, for every pixel at once.
//!
//! It shows arithmetic on whole pictures: hundreds of operations a pixel become a few loops.
//!
//! ```console
//! $ cargo run --release --example mandelbrot [FILE.png]
//! ```
//!
//! It writes the picture to `mandelbrot.png` and prints a small one.

use loopwright::chart::{HeatMap, TerminalOptions};
use loopwright::image;
use loopwright::prelude::*;
use std::error::Error;
use std::f64::consts::TAU;
use std::path::PathBuf;
use std::time::Instant;

/// Iterations in one call, and how often it is called.
const STEPS: usize = 25;
const CALLS: usize = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args().nth(1).unwrap_or("mandelbrot.png".into()));
    let (width, height) = (960, 640);
    let begun = Instant::now();
    let times = escape_times(
        &Tensor::linspace(-2.25, 0.75, width),
        &Tensor::linspace(1.0, -1.0, height).unsqueeze(1),
    )?;
    image::write(&path, &*colours(&times).array()?)?;
    println!(
        "{width}×{height} pixels, {} iterations: {:.2} s",
        STEPS * CALLS,
        begun.elapsed().as_secs_f64()
    );
    let logs = (times + 1.0).log().array()?;
    println!(
        "{}",
        HeatMap::new(&logs)
            .flipped()
            .terminal(&TerminalOptions::for_stdout().height(24))?
    );
    println!("the picture is in {}", path.display());
    Ok(())
}

/// After how many iterations `c = x + iy` runs away, with fractions, or all iterations if it does not.
fn escape_times(x: &Tensor, y: &Tensor) -> Result<Tensor, TensorError> {
    let iterate = jit("iterate", |[x, y, re, im, times]: &[Tensor; 5]| {
        let (mut re, mut im, mut times) = (re.clone(), im.clone(), times.clone());
        for _ in 0..STEPS {
            // What has run away stays where it is: numbers never overflow.
            let inside = (re.square() + im.square()).le(256.0);
            let (real, imaginary) = (re.square() - im.square() + x, &re * &im * 2.0 + y);
            re = select(&inside, &real, &re);
            im = select(&inside, &imaginary, &im);
            times = times + inside.cast(DType::F32);
        }
        [x.clone(), y.clone(), re, im, times]
    });
    let zero = x * 0.0 + y * 0.0;
    let mut state = [x.clone(), y.clone(), zero.clone(), zero.clone(), zero];
    for _ in 0..CALLS {
        state = iterate.call(&state)?;
    }
    let [_, _, re, im, times] = &state;
    // How far beyond the bound it is makes the fraction: bands become a slope.
    let size = (re.square() + im.square()).maximum(256.0);
    let smooth = times + 1.0 - (size.log() / 256f64.ln()).log2();
    Ok(select(&times.lt(STEPS * CALLS), &smooth, times))
}

/// A picture `u8[height, width, 3]`: colours run through a wheel, and the set itself is black.
fn colours(times: &Tensor) -> Tensor {
    let outside = times.lt(STEPS * CALLS).cast(DType::F32);
    let turn = (times + 1.0).log() * 0.9 + 2.4;
    let channel = |shift: f64| ((&turn + shift * TAU).cos() * 0.5 + 0.5) * &outside;
    let [red, green, blue] = [0.0, 0.08, 0.18].map(channel);
    (stack(&[&red, &green, &blue], -1) * 255.0).cast(DType::U8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_points_are_in_and_out() -> Result<(), Box<dyn Error>> {
        // Of the set: 0, -1 (which goes to and fro), -2 (its very tip), i. Not: 1, 0.5, -2.1, 1 + i.
        let x = Tensor::from([0.0f32, -1.0, -2.0, 0.0, 1.0, 0.5, -2.1, 1.0]);
        let y = Tensor::from([0.0f32, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
        let times = escape_times(&x, &y)?.to_f64()?;
        let all = (STEPS * CALLS) as f64;
        assert_eq!(times[..4], [all; 4]);
        assert!(times[4..].iter().all(|times| *times < 20.0), "{times:?}");
        // 1 goes 1, 2, 5, 26: beyond the bound, 16, after four iterations.
        assert!((times[4] - 4.0).abs() < 1.0, "{}", times[4]);
        Ok(())
    }

    #[test]
    fn the_picture_is_symmetric_and_can_be_read() -> Result<(), Box<dyn Error>> {
        let y = Tensor::linspace(1.0, -1.0, 33).unsqueeze(1);
        let times = escape_times(&Tensor::linspace(-2.25, 0.75, 48), &y)?;
        assert!((&times - times.flip(0)).abs().max(..).item()? < 1e-3);
        let picture = colours(&times).array()?;
        let decoded = image::decode(&image::encode_png(&picture)?, "mandelbrot.png")?;
        assert_eq!(decoded, *picture);
        assert_eq!(decoded.shape(), [33, 48, 3]);
        Ok(())
    }
}
