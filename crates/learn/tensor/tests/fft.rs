//! Fourier transforms against the sums that define them.

mod numeric;

use loopwright_tensor::fft::{Complex, fft, fft2, ifft, ifft2, irfft, rfft};
use loopwright_tensor::{Tensor, TensorError};
use numeric::{check_second_gradients, close, everywhere, random};

type Checked = Result<(), TensorError>;

/// The transform of one line by its definition.
fn by_sums(re: &[f64], im: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let n = re.len();
    let number = |k: usize| {
        (0..n).fold((0.0, 0.0), |(a, b), at| {
            let angle = -std::f64::consts::TAU * (k * at % n) as f64 / n as f64;
            let (sin, cos) = angle.sin_cos();
            (
                a + re[at] * cos - im[at] * sin,
                b + re[at] * sin + im[at] * cos,
            )
        })
    };
    (0..n).map(number).unzip()
}

#[test]
fn transforms_of_any_size() {
    everywhere(|| -> Checked {
        for size in [1, 2, 3, 5, 8, 12, 17, 32, 34, 45, 60] {
            let x = Complex::new(&random(&[size], 1), &random(&[size], 2));
            let (re, im) = by_sums(&x.re.to_f64()?, &x.im.to_f64()?);
            let y = fft(&x, -1);
            close(&y.re.to_f64()?, &re, 1e-12, &format!("real part of {size}"));
            close(
                &y.im.to_f64()?,
                &im,
                1e-12,
                &format!("imaginary part of {size}"),
            );
            let back = ifft(&y, -1);
            close(&back.re.to_f64()?, &x.re.to_f64()?, 1e-13, "back");
            close(&back.im.to_f64()?, &x.im.to_f64()?, 1e-13, "back");
            let half = rfft(&x.re, 0);
            let (re, im) = by_sums(&x.re.to_f64()?, &vec![0.0; size]);
            close(&half.re.to_f64()?, &re[..size / 2 + 1], 1e-12, "real input");
            close(&half.im.to_f64()?, &im[..size / 2 + 1], 1e-12, "real input");
            close(
                &irfft(&half, size, 0).to_f64()?,
                &x.re.to_f64()?,
                1e-13,
                "real output",
            );
        }
        Ok(())
    });
}

#[test]
fn any_axis_and_two_at_once() {
    everywhere(|| -> Checked {
        let x = Complex::new(&random(&[2, 6, 3], 1), &random(&[2, 6, 3], 2));
        let turned = Complex::new(&x.re.move_axis(1, -1), &x.im.move_axis(1, -1));
        let (a, b) = (fft(&x, 1), fft(&turned, -1));
        close(
            &a.re.to_f64()?,
            &b.re.move_axis(-1, 1).to_f64()?,
            0.0,
            "axis",
        );
        let both = fft2(&x);
        close(
            &both.im.to_f64()?,
            &fft(&fft(&x, 2), 1).im.to_f64()?,
            1e-13,
            "two axes",
        );
        close(
            &ifft2(&both).re.to_f64()?,
            &x.re.to_f64()?,
            1e-13,
            "and back",
        );
        let named = rfft(&random(&[2, 8], 3).named(["batch", "time"]), "time");
        assert_eq!(named.re.shape().to_string(), "[batch 2, time 5]");
        // A product of transforms is a convolution around a circle.
        let (p, q) = (random(&[20], 4), random(&[20], 5));
        let product = rfft(&p, 0).times(&rfft(&q, 0));
        let (ps, qs) = (p.to_f64()?, q.to_f64()?);
        let expected: Vec<f64> = (0..20)
            .map(|at| (0..20).map(|k| ps[k] * qs[(at + 20 - k) % 20]).sum())
            .collect();
        close(
            &irfft(&product, 20, 0).to_f64()?,
            &expected,
            1e-12,
            "circle",
        );
        Ok(())
    });
}

#[test]
fn gradients() {
    everywhere(|| -> Checked {
        check_second_gradients(&[random(&[18], 1)], |x| rfft(&x[0], 0).abs(), "rfft")?;
        check_second_gradients(
            &[random(&[2, 6], 1), random(&[2, 6], 2)],
            |x| {
                ifft(
                    &fft(&Complex::new(&x[0], &x[1]), -1).times(&Complex::real(&x[0])),
                    -1,
                )
                .re
            },
            "fft",
        )?;
        check_second_gradients(
            &[random(&[5], 1), random(&[5], 2)],
            |x| irfft(&Complex::new(&x[0], &x[1]), 8, 0),
            "irfft",
        )
    });
}

#[test]
fn mistakes() {
    let text = |tensor: &Tensor| tensor.check().unwrap_err().to_string();
    let x = random(&[4], 1);
    let message = text(&irfft(&rfft(&x, 0), 7, 0));
    assert!(
        message.starts_with("`irfft` of [3]: 7 elements have 4 numbers in the first half of their transform, and axis 0 has 3\n"),
        "{message}"
    );
    assert!(message.contains("tests/fft.rs"), "{message}");
    let message = text(&fft(&Complex::new(&x, &random(&[5], 2)), 0).re);
    assert!(
        message.starts_with(
            "`fft` of f64[4] and f64[5]: real and imaginary part have one dtype and shape"
        ),
        "{message}"
    );
}
