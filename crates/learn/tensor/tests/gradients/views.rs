//! Views: every element of the input gets what flows to all places that show it.

use crate::differences::{Point, Random, check};
use loopwright_tensor::{DType, Scalar, Slice, Tensor, Window, concat, stack};

fn zero() -> Option<Scalar> {
    Some(Scalar::zero(DType::F64))
}

#[test]
fn axes_in_other_places() {
    let point = [Point::scattered(&[2, 3, 2], 30)];
    check("permute", &point, |x| x[0].permute([2, 0, 1]).sin());
    check("transpose", &point, |x| x[0].transpose(0, 2).sin());
    check("move_axis", &point, |x| x[0].move_axis(0, 2).sin());
    check("unsqueeze", &point, |x| x[0].unsqueeze(1).sin());
    check("squeeze", &[Point::scattered(&[2, 1, 3], 31)], |x| {
        x[0].squeeze(1).sin()
    });
    check("reshape that merges", &point, |x| {
        x[0].reshape([6, 2]).sin()
    });
    check("reshape that splits", &point, |x| {
        x[0].reshape([2, 3, 1, 2]).sin()
    });
    check("reshape across", &point, |x| x[0].reshape([4, 3]).sin());
    check("split_axis", &[Point::scattered(&[6, 2], 32)], |x| {
        x[0].split_axis(0, [2, 3]).sin()
    });
    check("flatten", &point, |x| x[0].flatten().sin());
    check("names", &point, |x| {
        x[0].named(["a", "b", "c"]).rename("b", "d").unnamed().sin()
    });
}

#[test]
fn parts() {
    let point = [Point::scattered(&[4, 5], 33)];
    check("a range", &point, |x| x[0].at((1..3, ..)).sin());
    check("steps", &point, |x| x[0].at((.., Slice::All.step(2))).sin());
    check("steps that leave a rest", &point, |x| {
        x[0].at((Slice::from(1..4).step(3), Slice::from(0..4).step(3)))
            .sin()
    });
    check("steps back", &point, |x| {
        x[0].at((Slice::All.step(-1), Slice::All.step(-2))).sin()
    });
    check("an element", &point, |x| x[0].at((-1, 2)).sin());
    check("a row", &point, |x| x[0].at((2, Slice::New)).sin());
    check("nothing", &point, |x| {
        x[0].at((0..0, ..)).sum(..) + &x[0].sum(..)
    });
    check("narrow", &point, |x| x[0].narrow(1, 2, 3).sin());
}

#[test]
fn more_and_fewer_elements() {
    let point = [Point::scattered(&[2, 4], 34)];
    check("pad", &point, |x| x[0].pad(1, 2, 1, 0.5).sin());
    check("negative pad", &point, |x| x[0].pad(1, -1, -2, 0.0).sin());
    check("both", &point, |x| {
        x[0].pad(1, -2, 3, 0.0).pad(0, 1, -1, 2.0).sin()
    });
    check("tile", &point, |x| x[0].tile(1, 3).sin());
    check("repeat", &point, |x| x[0].repeat(0, 2).sin());
    check("broadcast_to", &[Point::scattered(&[2, 1], 35)], |x| {
        x[0].broadcast_to([3, 2, 4]).sin().cumsum(2)
    });
}

#[test]
fn elements_at_other_places() {
    let point = [Point::scattered(&[3, 4], 36)];
    check("flip", &point, |x| x[0].flip([0, 1]).sin());
    check("roll", &point, |x| x[0].roll(1, 1).sin() * &x[0]);
    check("roll back, more than once around", &point, |x| {
        x[0].roll(-5, 0).sin()
    });
    check("diagonal", &[Point::scattered(&[2, 3, 4], 37)], |x| {
        x[0].diagonal().sin()
    });
    check(
        "diagonal of a square",
        &[Point::scattered(&[3, 3], 38)],
        |x| x[0].diagonal().sin(),
    );
    check("tril", &point, |x| x[0].tril(0).sin());
    check("triu", &point, |x| x[0].triu(1).sin());
    check("tril below", &point, |x| (x[0].tril(-1) + 1.0).log1p());
}

#[test]
fn joined() {
    let points = [Point::scattered(&[2, 2], 39), Point::scattered(&[2, 3], 40)];
    check("concat", &points, |x| {
        concat(&[&x[0], &x[1], &x[0]], 1).sin()
    });
    let points = [Point::scattered(&[3], 41), Point::scattered(&[3], 42)];
    check("stack", &points, |x| stack(&[&x[0], &x[1]], -1).sin());
    // More than are joined at once.
    check("many", &points, |x| {
        let parts: Vec<Tensor> = (1..12).map(|at| &x[at % 2] * at).collect();
        concat(&parts.iter().collect::<Vec<_>>(), 0).sin()
    });
}

#[test]
fn windows() {
    let windows = [
        // They overlap.
        Window::new(3usize),
        Window::new(3usize).padding(1),
        Window::new(3usize).stride(2).padding(1),
        // They touch.
        Window::new(2usize).stride(2),
        // They leave gaps.
        Window::new(2usize).stride(3),
        Window::new(1usize).stride(2),
        // What they show is apart.
        Window::new(2usize).dilation(3),
        Window::new(3usize).dilation(2).padding(2),
        Window::new(2usize).stride(2).dilation(3).padding(1),
        Window::new(3usize).stride(2).dilation(2).padding(3),
    ];
    for window in windows {
        let what = format!("{window:?}");
        check(&what, &[Point::scattered(&[2, 8], 43)], move |x| {
            let outside = (window.padding != (0, 0)).then(zero).flatten();
            x[0].window(1, &window, outside).sin()
        });
    }
}

#[test]
fn a_convolution() {
    let points = [
        Point::scattered(&[2, 4, 4], 44),
        Point::scattered(&[2, 2, 3], 45),
    ];
    check("convolution", &points, |x| {
        let rows = Window::new(2usize).stride(2);
        let columns = Window::new(3usize).padding(1);
        // channel, row, row of the kernel, column, column of the kernel
        let seen = x[0].window(1, &rows, None).window(3, &columns, zero());
        let kernel = x[1].reshape([2, 1, 2, 1, 3]);
        (seen * kernel).sum([0, 2, 4])
    });
}

/// Views of views of views, by chance.
#[test]
fn compositions() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let steps: Vec<[usize; 3]> = (0..4)
            .map(|_| {
                [
                    random.below(9),
                    random.below(1 << 16),
                    random.below(1 << 16),
                ]
            })
            .collect();
        let what = format!("composition {seed} {steps:?}");
        check(&what, &[Point::scattered(&[2, 4, 3], seed)], move |x| {
            let y = steps.iter().fold(x[0].clone(), moved);
            y.sin()
        });
    }
}

fn moved(x: Tensor, &[kind, a, b]: &[usize; 3]) -> Tensor {
    let axis = a % x.rank();
    let size = x.shape().axes()[axis].known().unwrap();
    match kind {
        0 => x.transpose(axis, b % x.rank()),
        1 => x.flip(axis),
        2 => x.roll(b as i64 % 3 - 1, axis),
        3 if size > 2 => x.at(sliced(&x, axis, Slice::All.step(2 - 4 * (b as i64 % 2)))),
        4 => x.pad(axis, 1, (b % 3) as i64 - 1, 0.25),
        5 if size > 1 && x.rank() < 5 => {
            x.window(axis, &Window::new(2usize).stride(1 + b % 2), None)
        }
        6 => x.flatten().reshape([x.shape().elements().unwrap(), 1]),
        7 if x.rank() > 1 => x.merge_axes(axis.saturating_sub(1), axis),
        8 if x.rank() > 1 => x.tril(b as i64 % 2),
        _ => x,
    }
}

fn sliced(x: &Tensor, axis: usize, slice: Slice) -> Vec<Slice> {
    (0..x.rank())
        .map(|at| {
            if at == axis {
                slice.clone()
            } else {
                Slice::All
            }
        })
        .collect()
}
