//! Every kind of node, mapped and not, and its gradients.

use crate::numeric::{self, close, everywhere};
use loopwright_tensor::{
    ConvOptions, DType, PerAxis, ReduceOp, Tensor, TensorError, Window, concat, conv, einsum, fft,
    linalg, realize, scan, select, stack, vmap,
};

/// How many examples there are.
const EXAMPLES: usize = 3;

/// Floats for every example, the same in every run.
fn floats(shape: &[usize], seed: u64, dtype: DType) -> Tensor {
    let shape: Vec<usize> = [EXAMPLES].iter().chain(shape).copied().collect();
    numeric::random(&shape, seed).cast(dtype)
}

/// Integers from 0 to a bound for every example.
fn ints(shape: &[usize], seed: u64, bound: i64) -> Tensor {
    let scaled = (floats(shape, seed, DType::F64) + 1.0) * (0.5 * bound as f64);
    scaled.cast(DType::I64)
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-11,
        DType::F32 => 2e-5,
        dtype if dtype.is_float() => 3e-2,
        _ => 0.0,
    }
}

/// A weight for every element of a result, which differs from place to place.
fn weights(like: &Tensor) -> Tensor {
    (Tensor::numbered(like.shape()).cast(DType::F64) * 0.7)
        .sin()
        .cast(like.dtype())
}

fn same(mapped: &[Tensor], looped: &[Tensor], what: &str) -> Result<(), TensorError> {
    assert_eq!(mapped.len(), looped.len(), "{what}");
    realize(mapped)?;
    realize(looped)?;
    for (at, (mapped, looped)) in mapped.iter().zip(looped).enumerate() {
        let what = format!("{what}, {at}");
        assert_eq!(mapped.dtype(), looped.dtype(), "{what}");
        assert_eq!(mapped.shape(), looped.shape(), "{what}");
        close(
            &mapped.to_f64()?,
            &looped.to_f64()?,
            tolerance(mapped.dtype()),
            &what,
        );
    }
    Ok(())
}

/// The function for every example by itself, with results along a new first axis.
fn looped(
    arguments: &[Tensor],
    axes: &[Option<i64>],
    function: &dyn Fn(&[Tensor]) -> Vec<Tensor>,
) -> Vec<Tensor> {
    let results = (0..EXAMPLES).map(|example| {
        let own = arguments
            .iter()
            .zip(axes)
            .map(|(argument, axis)| match axis {
                Some(axis) => argument.narrow(*axis, example, 1).squeeze(*axis),
                None => argument.clone(),
            });
        function(&own.collect::<Vec<_>>())
    });
    let results: Vec<Vec<Tensor>> = results.collect();
    let stacked = |at: usize| {
        stack(
            &results.iter().map(|result| &result[at]).collect::<Vec<_>>(),
            0,
        )
    };
    (0..results[0].len()).map(stacked).collect()
}

/// Fails unless a function is mapped right: with every choice of arguments that are mapped, along axes at
/// different places, and so are the gradients of what it gives. Arguments have the axis in front.
#[track_caller]
fn check(
    what: &str,
    arguments: &[Tensor],
    function: impl Fn(&[Tensor]) -> Vec<Tensor>,
) -> Result<(), TensorError> {
    for choice in 1..1usize << arguments.len() {
        let chosen = |at: usize| choice >> at & 1 == 1;
        let given: Vec<(Tensor, Option<i64>)> = arguments
            .iter()
            .enumerate()
            .map(|(at, argument)| {
                let place = ((choice + at) % argument.rank()) as i64;
                match chosen(at) {
                    true => (argument.move_axis(0, place), Some(place)),
                    false => (argument.narrow(0, 1, 1).squeeze(0), None),
                }
            })
            .collect();
        let (given, axes): (Vec<Tensor>, Vec<Option<i64>>) = given.into_iter().unzip();
        realize(&given)?;
        let what = format!("{what}, axes {axes:?}");
        let mapped = vmap(|own: &Vec<Tensor>| function(own))
            .over(axes.clone())
            .call(&given)?;
        let looped = looped(&given, &axes, &function);
        same(&mapped, &looped, &what)?;
        let of: Vec<&Tensor> = given.iter().filter(|x| x.dtype().is_float()).collect();
        let gradients = |results: &[Tensor]| -> Vec<Tensor> {
            let floats = results.iter().filter(|result| result.dtype().is_float());
            let slopes = floats.flat_map(|result| result.vjp(&weights(result), &of));
            slopes.collect()
        };
        same(
            &gradients(&mapped),
            &gradients(&looped),
            &format!("gradients of {what}"),
        )?;
    }
    Ok(())
}

#[test]
fn element_by_element() {
    everywhere(|| {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            let (a, b) = (floats(&[2, 4], 1, dtype), floats(&[4], 2, dtype));
            check(&format!("{dtype}"), &[a, b], |x| {
                let larger = select(&x[0].gt(&x[1]), &x[0], &x[1]);
                vec![&x[0] * &x[1] - 0.5, (&x[0] + &x[1]).exp(), larger]
            })?;
        }
        for dtype in [DType::I8, DType::I32, DType::U8, DType::U64] {
            let (a, b) = (ints(&[3], 3, 50).cast(dtype), ints(&[], 4, 50).cast(dtype));
            check(&format!("{dtype}"), &[a, b], |x| {
                vec![&x[0] * &x[1] + &x[0], x[0].eq(&x[1]), &x[0] & &x[1]]
            })?;
        }
        let x = floats(&[2, 2], 5, DType::F32);
        check("casts", &[x], |x| {
            let bits = x[0].bitcast(DType::U32);
            vec![
                x[0].cast(DType::F64),
                (&x[0] * 9.0).cast(DType::I16),
                bits.bitcast(DType::F32),
            ]
        })
    });
}

#[test]
fn folds_and_running_folds() {
    everywhere(|| {
        let x = floats(&[2, 3], 6, DType::F64);
        check("folds", std::slice::from_ref(&x), |x| {
            let x = &x[0];
            vec![
                x.sum(0),
                x.sum(..),
                x.prod(1),
                x.max([0, 1]),
                x.min(-1),
                x.mean(0),
                x.gt(0.0).any(0),
                x.gt(0.0).all(..),
            ]
        })?;
        check("places of folds", std::slice::from_ref(&x), |x| {
            vec![x[0].argmax(0), x[0].argmin(-1)]
        })?;
        check("running folds", std::slice::from_ref(&x), |x| {
            let x = &x[0];
            let runs = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min]
                .into_iter()
                .zip(0..);
            let mut all: Vec<Tensor> = runs
                .map(|(op, at)| x.scan(op, at % 2, at == 1, at > 1))
                .collect();
            all.push(x.softmax(-1));
            all.push(x.logsumexp(0));
            all
        })?;
        check("orders", std::slice::from_ref(&x), |x| {
            let x = &x[0];
            let (best, places) = x.topk(2, 1);
            vec![
                x.sort(0, false),
                x.sort(1, true),
                x.argsort(0, true),
                best,
                places,
            ]
        })?;
        check("of integers", &[ints(&[2, 3], 7, 9)], |x| {
            vec![x[0].sum(1), x[0].max(0), x[0].sort(1, true), x[0].cumsum(0)]
        })
    });
}

#[test]
fn views() {
    everywhere(|| {
        let x = floats(&[4, 3], 8, DType::F32);
        check("whole", std::slice::from_ref(&x), |x| {
            let x = &x[0];
            vec![
                x.t(),
                x.reshape([2, 6]),
                x.flatten(),
                x.flip(0),
                x.roll(1, 1),
                x.unsqueeze(1),
                x.tile(0, 2),
                x.repeat(1, 2),
            ]
        })?;
        check("parts", std::slice::from_ref(&x), |x| {
            let x = &x[0];
            let window = x.window(0, &Window::new(2).stride(2), None);
            vec![
                x.narrow(0, 1, 2),
                x.at((1, ..)),
                x.pad(1, 1, 2, 0.5),
                x.tril(-1),
                x.diagonal(),
                window,
                x.broadcast_to([2, 4, 3]),
            ]
        })?;
        let y = floats(&[2, 3], 9, DType::F32);
        check("together", &[x.clone(), y], |x| {
            vec![concat(&[&x[0], &x[1]], 0), stack(&[&x[1], &x[1]], -1)]
        })?;
        check("places", &[x], |x| {
            let numbers = Tensor::numbered([4, 3]).cast(DType::F32);
            let size = Tensor::size_value(&x[0].shape().axes()[0].size).cast(DType::F32);
            vec![&x[0] * &numbers + size, numbers]
        })
    });
}

#[test]
fn look_ups() {
    everywhere(|| {
        let table = floats(&[4, 5], 10, DType::F64);
        for (at, shape) in [&[][..], &[2], &[2, 3]].into_iter().enumerate() {
            // Some of them are outside.
            let index = ints(shape, 11 + at as u64, 6);
            check(&format!("take {shape:?}"), &[table.clone(), index], |x| {
                vec![x[0].take(&x[1], 0), x[0].take(&x[1], 1)]
            })?;
        }
        check("take_along", &[table.clone(), ints(&[4, 2], 14, 5)], |x| {
            vec![x[0].take_along(&x[1], 1)]
        })?;
        check(
            "take_along, the first",
            &[table, ints(&[2, 5], 15, 4)],
            |x| vec![x[0].take_along(&x[1], 0)],
        )
    });
}

#[test]
fn scatters() {
    everywhere(|| {
        for (at, combine) in [
            None,
            Some(ReduceOp::Sum),
            Some(ReduceOp::Max),
            Some(ReduceOp::Prod),
        ]
        .into_iter()
        .enumerate()
        {
            let seed = 20 + 10 * at as u64;
            let base = floats(&[4, 3], seed, DType::F64);
            let (index, updates) = (
                ints(&[2], seed + 1, 4),
                floats(&[2, 3], seed + 2, DType::F64),
            );
            check(
                &format!("scatter {combine:?}"),
                &[base.clone(), index, updates],
                |x| vec![x[0].scatter(&x[1], &x[2], 0, combine)],
            )?;
            let (index, updates) = (
                ints(&[4, 2], seed + 3, 4),
                floats(&[4, 2], seed + 4, DType::F64),
            );
            check(
                &format!("scatter_along {combine:?}"),
                &[base, index, updates],
                |x| vec![x[0].scatter_along(&x[1], &x[2], 1, combine)],
            )?;
        }
        Ok(())
    });
}

#[test]
fn marks() {
    everywhere(|| {
        let (x, y) = (
            floats(&[2, 3], 60, DType::F64),
            floats(&[3], 61, DType::F64),
        );
        check("label and stop", &[x.clone(), y.clone()], |x| {
            let stopped = x[0].stop_gradient();
            vec![
                (&stopped * &x[1] + x[0].exp()).label("sum"),
                (&x[0] * x[1].stop_gradient()).sum(..),
            ]
        })?;
        check("recomputed", &[x.clone(), y.clone()], |x| {
            let inner = (&x[0] * &x[1]).sin().exp();
            let other = x[1].exp().recomputed(&[&x[1], &x[0]]);
            vec![
                inner.recomputed(&[&x[0]]) * 2.0,
                inner.sin().recomputed(&[&x[0], &x[1]]),
                other,
            ]
        })?;
        // A gradient that is none, of a value that is not even made of both, with tensors that the function has
        // taken along: one of each kind.
        check("a gradient of its own", &[x.clone(), y.clone()], |x| {
            let (along, constant) = (x[0].cos() * &x[1], Tensor::from([1.0f64, 2.0, 3.0]));
            let own = x[0]
                .exp()
                .with_gradient(&[&x[0], &x[1]], move |of, value, g| {
                    let first = g * value * &along * &of[1] + &constant;
                    vec![first, (g * &of[0]).sum(0) + constant.sum(..)]
                });
            vec![own]
        })?;
        // What is taken along follows from an argument that the function is not given.
        check(
            "a gradient with another argument",
            &[x.clone(), y.clone()],
            |x| {
                let along = x[1].exp();
                let own = x[0]
                    .sin()
                    .with_gradient(&[&x[0]], move |_, _, g| vec![g * &along]);
                vec![own]
            },
        )?;
        check("a gradient of its own, of one", &[x, y], |x| {
            let own = x[0]
                .sum(0)
                .with_gradient(&[&x[1]], |of, value, g| vec![g * value * &of[0]]);
            vec![&own * &x[1]]
        })
    });
}

#[test]
fn what_is_made_of_many_ops() {
    everywhere(|| {
        let (x, w) = (
            floats(&[2, 3], 70, DType::F32),
            floats(&[3, 4], 71, DType::F32),
        );
        check("matmul", &[x.clone(), w.clone()], |x| {
            vec![x[0].matmul(&x[1]), einsum("ik,kj->ji", &[&x[0], &x[1]])]
        })?;
        let (image, kernel) = (
            floats(&[1, 2, 5, 5], 72, DType::F32),
            floats(&[3, 2, 3, 3], 73, DType::F32),
        );
        check("conv", &[image, kernel], |x| {
            let options = ConvOptions {
                padding: PerAxis::All(1),
                ..ConvOptions::default()
            };
            vec![conv(&x[0], &x[1], &options)]
        })?;
        let (a, b) = (
            floats(&[3, 3], 74, DType::F64),
            floats(&[3], 75, DType::F64),
        );
        check("linalg", &[a, b], |x| {
            let positive = x[0].matmul(&x[0].t()) + Tensor::eye(3, DType::F64);
            vec![
                linalg::solve(&positive, &x[1]),
                linalg::cholesky(&positive),
                linalg::det(&x[0]),
            ]
        })?;
        check("fft", &[floats(&[4], 76, DType::F64)], |x| {
            let spectrum = fft::rfft(&x[0], 0);
            vec![spectrum.re, spectrum.im]
        })?;
        check(
            "scan",
            &[floats(&[3], 77, DType::F64), floats(&[], 78, DType::F64)],
            |x| {
                let steps = scan(&x[1], &x[0], 0, |state, x| {
                    let next = (state * 0.5 + x).tanh();
                    (next.clone(), next)
                });
                let (last, all) = steps.unwrap();
                vec![last, all]
            },
        )
    });
}
