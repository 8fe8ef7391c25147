//! Convolutions and pools against loops written out.

mod numeric;

use loopwright_tensor::{
    ConvOptions, DType, PoolOptions, Tensor, TensorError, adaptive_avg_pool, adaptive_max_pool,
    avg_pool, conv, conv_transpose, global_avg_pool, global_max_pool, max_pool, unknown,
};
use numeric::{check_gradients, check_second_gradients, close, everywhere, random};

type Checked = Result<(), TensorError>;

/// A kernel and how it moves, the same along every axis.
#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    channels: usize,
    out: usize,
    size: [usize; 2],
    kernel: [usize; 2],
    stride: usize,
    padding: usize,
    dilation: usize,
    groups: usize,
}

const CASES: [Case; 7] = [
    Case {
        batch: 2,
        channels: 3,
        out: 4,
        size: [7, 5],
        kernel: [3, 2],
        stride: 1,
        padding: 0,
        dilation: 1,
        groups: 1,
    },
    Case {
        batch: 1,
        channels: 2,
        out: 3,
        size: [8, 7],
        kernel: [3, 3],
        stride: 2,
        padding: 1,
        dilation: 1,
        groups: 1,
    },
    Case {
        batch: 2,
        channels: 2,
        out: 2,
        size: [9, 8],
        kernel: [2, 3],
        stride: 1,
        padding: 0,
        dilation: 2,
        groups: 1,
    },
    Case {
        batch: 1,
        channels: 4,
        out: 6,
        size: [6, 6],
        kernel: [3, 3],
        stride: 1,
        padding: 1,
        dilation: 1,
        groups: 2,
    },
    Case {
        batch: 1,
        channels: 3,
        out: 3,
        size: [7, 7],
        kernel: [3, 3],
        stride: 2,
        padding: 2,
        dilation: 2,
        groups: 3,
    },
    Case {
        batch: 1,
        channels: 1,
        out: 1,
        size: [5, 6],
        kernel: [5, 1],
        stride: 3,
        padding: 2,
        dilation: 1,
        groups: 1,
    },
    Case {
        batch: 1,
        channels: 2,
        out: 4,
        size: [1, 1],
        kernel: [1, 1],
        stride: 1,
        padding: 0,
        dilation: 1,
        groups: 2,
    },
];

impl Case {
    fn options(&self) -> ConvOptions {
        ConvOptions::default()
            .stride(self.stride)
            .padding(self.padding)
            .dilation(self.dilation)
            .groups(self.groups)
    }

    fn places(&self) -> [usize; 2] {
        [0, 1].map(|at| {
            (self.size[at] + 2 * self.padding - self.dilation * (self.kernel[at] - 1) - 1)
                / self.stride
                + 1
        })
    }

    /// Calls `meet` with the places in input, kernel and result of all products.
    fn each(&self, mut meet: impl FnMut(usize, usize, usize)) {
        let [p, q] = self.places();
        let ([h, w], [k, l]) = (self.size, self.kernel);
        let (inner, outer) = (self.channels / self.groups, self.out / self.groups);
        for (b, o, y, x) in (0..self.batch * self.out * p * q).map(|at| {
            (
                at / (self.out * p * q),
                at / (p * q) % self.out,
                at / q % p,
                at % q,
            )
        }) {
            for (c, i, j) in (0..inner * k * l).map(|at| (at / (k * l), at / l % k, at % l)) {
                let at = |place: usize, inside: usize, size: usize| {
                    let at =
                        (place * self.stride + inside * self.dilation).checked_sub(self.padding)?;
                    (at < size).then_some(at)
                };
                let (Some(row), Some(column)) = (at(y, i, h), at(x, j, w)) else {
                    continue;
                };
                let channel = o / outer * inner + c;
                meet(
                    ((b * self.channels + channel) * h + row) * w + column,
                    ((o * inner + c) * k + i) * l + j,
                    ((b * self.out + o) * p + y) * q + x,
                );
            }
        }
    }

    fn input(&self) -> Tensor {
        random(&[self.batch, self.channels, self.size[0], self.size[1]], 1)
    }

    fn kernel(&self) -> Tensor {
        random(
            &[
                self.out,
                self.channels / self.groups,
                self.kernel[0],
                self.kernel[1],
            ],
            2,
        )
    }
}

#[test]
fn convolutions() {
    everywhere(|| -> Checked {
        for case in CASES {
            let (x, w) = (case.input(), case.kernel());
            let (xs, ws) = (x.to_f64()?, w.to_f64()?);
            let [p, q] = case.places();
            let mut expected = vec![0.0; case.batch * case.out * p * q];
            case.each(|at_x, at_w, at_y| expected[at_y] += xs[at_x] * ws[at_w]);
            let y = conv(&x, &w, &case.options());
            assert_eq!(y.sizes()?, [case.batch, case.out, p, q]);
            close(&y.to_f64()?, &expected, 1e-12, &format!("{case:?}"));
        }
        Ok(())
    });
}

#[test]
fn transposed_convolutions() {
    everywhere(|| -> Checked {
        for case in CASES {
            // The result of the convolution is the input here, and the other way round.
            let [p, q] = case.places();
            let (y, w) = (random(&[case.batch, case.out, p, q], 3), case.kernel());
            let (ys, ws) = (y.to_f64()?, w.to_f64()?);
            let mut expected = vec![0.0; case.batch * case.channels * case.size[0] * case.size[1]];
            case.each(|at_x, at_w, at_y| expected[at_x] += ys[at_y] * ws[at_w]);
            // What the division leaves over comes back as padding of the result.
            let more = [0, 1].map(|at| {
                let room =
                    case.size[at] + 2 * case.padding - case.dilation * (case.kernel[at] - 1) - 1;
                room % case.stride
            });
            let x = conv_transpose(&y, &w, &case.options().output_padding(more));
            assert_eq!(
                x.sizes()?,
                [case.batch, case.channels, case.size[0], case.size[1]]
            );
            close(&x.to_f64()?, &expected, 1e-12, &format!("{case:?}"));
        }
        Ok(())
    });
}

#[test]
fn gradients_of_convolutions() {
    everywhere(|| -> Checked {
        for case in [CASES[1], CASES[4]] {
            check_gradients(
                &[case.input(), case.kernel()],
                |x| conv(&x[0], &x[1], &case.options()),
                "conv",
            )?;
        }
        let case = CASES[3];
        check_second_gradients(
            &[random(&[1, 6, 2, 2], 3), case.kernel()],
            |x| conv_transpose(&x[0], &x[1], &case.options().stride(2)),
            "conv_transpose",
        )
    });
}

#[test]
fn one_and_three_dimensions() {
    everywhere(|| -> Checked {
        // A line is a plane of height 1, and a box of depth 1 a plane.
        let (x, w) = (random(&[2, 3, 9], 1), random(&[4, 3, 3], 2));
        let line = conv(&x, &w, &ConvOptions::default().stride(2));
        let plane = conv(
            &x.unsqueeze(2),
            &w.unsqueeze(2),
            &ConvOptions::default().stride([1, 2]),
        );
        close(&line.to_f64()?, &plane.to_f64()?, 1e-12, "line");
        let (x, w) = (random(&[1, 2, 3, 4, 5], 1), random(&[2, 2, 2, 3, 3], 2));
        let solid = conv(&x, &w, &ConvOptions::default().padding([0, 1, 1]));
        assert_eq!(solid.sizes()?, [1, 2, 2, 4, 5]);
        let mut by_planes: Option<Tensor> = None;
        for depth in 0..2usize {
            let part = conv(
                &x.at((.., .., depth)),
                &w.at((.., .., depth)),
                &ConvOptions::default().padding(1),
            );
            by_planes = Some(match by_planes {
                Some(sum) => sum + part,
                None => part,
            });
        }
        let by_planes = by_planes.expect("there are two planes");
        close(
            &solid.at((.., .., 0)).to_f64()?,
            &by_planes.to_f64()?,
            1e-12,
            "box",
        );
        // Without a batch, and with names.
        let x = random(&[2, 6], 5).named(["channels", "time"]);
        let y = conv(&x, &random(&[3, 2, 2], 6), &ConvOptions::default());
        assert_eq!(y.shape().to_string(), "[channels 3, time 5]");
        Ok(())
    });
}

#[test]
fn channels_are_inferred() {
    let w = Tensor::zeros(
        vec![
            4usize.into(),
            loopwright_tensor::Size::from(unknown("in")),
            3usize.into(),
            3usize.into(),
        ],
        DType::F64,
    );
    let y = conv(&random(&[1, 5, 8, 8], 1), &w, &ConvOptions::default());
    assert_eq!(y.sizes().unwrap(), [1, 4, 6, 6]);
    assert_eq!(w.sizes().unwrap(), [4, 5, 3, 3]);
}

/// Folds of all windows along the last axis.
fn pooled(
    line: &[f64],
    size: usize,
    stride: usize,
    padding: usize,
    fold: impl Fn(&[f64]) -> f64,
) -> Vec<f64> {
    let count = (line.len() + 2 * padding - size) / stride + 1;
    (0..count)
        .map(|place| {
            let shown = (0..size).filter_map(|k| (place * stride + k).checked_sub(padding));
            let shown: Vec<f64> = shown.filter_map(|at| line.get(at).copied()).collect();
            fold(&shown)
        })
        .collect()
}

#[test]
fn pools() {
    everywhere(|| -> Checked {
        let x = random(&[9], 1);
        let xs = x.to_f64()?;
        let most = |shown: &[f64]| shown.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum = |shown: &[f64]| shown.iter().sum::<f64>();
        for (size, stride, padding) in [(2, 2, 0), (3, 2, 1), (3, 1, 0), (4, 3, 2)] {
            let options = PoolOptions::new([size]).stride(stride).padding(padding);
            let what = format!("{size} {stride} {padding}");
            let expected = pooled(&xs, size, stride, padding, most);
            close(&max_pool(&x, &options).to_f64()?, &expected, 0.0, &what);
            let expected = pooled(&xs, size, stride, padding, |shown| sum(shown) / size as f64);
            close(&avg_pool(&x, &options).to_f64()?, &expected, 1e-12, &what);
            let expected = pooled(&xs, size, stride, padding, |shown| {
                sum(shown) / shown.len() as f64
            });
            let inside = options.count_include_pad(false);
            close(&avg_pool(&x, &inside).to_f64()?, &expected, 1e-12, &what);
        }
        let image = random(&[2, 3, 6, 7], 2);
        let down = max_pool(&image, &PoolOptions::new([2, 3]));
        assert_eq!(down.sizes()?, [2, 3, 3, 2]);
        close(
            &down.at((1, 2, 2, 1)).to_f64()?,
            &image.at((1, 2, 4..6, 3..6)).max(..).to_f64()?,
            0.0,
            "plane",
        );
        close(
            &global_max_pool(&image, 2).to_f64()?,
            &image.max([2, 3]).to_f64()?,
            0.0,
            "global",
        );
        assert_eq!(global_avg_pool(&image, 2).sizes()?, [2, 3]);
        check_gradients(
            &[x],
            |x| max_pool(&x[0], &PoolOptions::new([3]).stride(2).padding(1)),
            "max_pool",
        )?;
        check_gradients(
            &[random(&[5, 5], 4)],
            |x| {
                avg_pool(
                    &x[0],
                    &PoolOptions::new([3, 2])
                        .stride(1)
                        .padding(1)
                        .count_include_pad(false),
                )
            },
            "avg_pool",
        )
    });
}

#[test]
fn adaptive_pools() {
    everywhere(|| -> Checked {
        let x = random(&[2, 7], 1);
        let xs = x.to_f64()?;
        for count in [1, 2, 3, 5, 7, 9usize] {
            let (mut means, mut largest) = (Vec::new(), Vec::new());
            for row in 0..2 {
                for part in 0..count {
                    let (start, end) = (part * 7 / count, ((part + 1) * 7).div_ceil(count));
                    let shown = &xs[row * 7 + start..row * 7 + end];
                    means.push(shown.iter().sum::<f64>() / shown.len() as f64);
                    largest.push(shown.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                }
            }
            let what = format!("{count} parts");
            close(
                &adaptive_avg_pool(&x, &[count]).to_f64()?,
                &means,
                1e-12,
                &what,
            );
            close(
                &adaptive_max_pool(&x, &[count]).to_f64()?,
                &largest,
                0.0,
                &what,
            );
        }
        check_gradients(
            &[random(&[5, 7], 3)],
            |x| adaptive_avg_pool(&x[0], &[2, 3]),
            "adaptive_avg_pool",
        )?;
        check_gradients(
            &[random(&[7], 3)],
            |x| adaptive_max_pool(&x[0], &[3]),
            "adaptive_max_pool",
        )
    });
}
