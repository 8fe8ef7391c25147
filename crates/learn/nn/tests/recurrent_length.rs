//! Recurrent layers are loops: what is compiled does not depend on the number of steps.

use loopwright_interp as _;
use loopwright_nn::{Gru, Lstm, Module, Rnn, gradients, seed};
use loopwright_tensor::{DType, Session, Tensor, TensorError, loops};
use loopwright_x86 as _;

/// The kernel of an LSTM over some steps, forward or with the gradients of its weights, with `N` for their number.
fn kernel(steps: usize, backward: bool) -> Result<String, TensorError> {
    seed(3);
    let lstm = Lstm::new(50);
    let x = Tensor::ones([3, steps, 20], DType::F32);
    x.realize()?;
    let (all, state) = lstm.forward(&x, None);
    let mut results = vec![all.clone(), state.cell.clone()];
    if backward {
        let loss = all.square().sum(..) + state.cell.sum(..);
        results.extend(gradients(&lstm.parameters(), &loss));
    }
    Ok(loops(&results)?.kernel())
}

/// The line without its number, and the number, if it defines an integer.
fn constant(line: &str) -> (&str, Option<i64>) {
    let parts = line.rsplit_once("i64 = const ");
    let number = parts.and_then(|(name, value)| Some((name, value.parse().ok()?)));
    number.map_or((line, None), |(name, value)| (name, Some(value)))
}

/// Integers may follow from the trip count: they are linear in it. All else is the same.
#[test]
fn an_lstm_over_32_and_100_000_steps_is_the_same_kernel_but_for_the_trip_count() {
    let session = Session::new("interp").expect("it is there");
    session.scope(|| {
        for backward in [false, true] {
            let steps = [32, 1024, 100_000];
            let kernels = steps.map(|steps| kernel(steps, backward).expect("it compiles"));
            let lines = |at: usize| kernels[at].lines();
            assert!(
                [1, 2]
                    .iter()
                    .all(|at| lines(*at).count() == lines(0).count())
            );
            let mut differ = 0;
            for ((a, b), c) in lines(0).zip(lines(1)).zip(lines(2)) {
                let [a, b, c] = [a, b, c].map(constant);
                assert_eq!((a.0, a.0), (b.0, c.0), "backward: {backward}");
                if let (Some(a), Some(b), Some(c)) = (a.1, b.1, c.1) {
                    let step = |at: usize| (steps[at] - steps[0]) as i64;
                    assert_eq!((b - a) * step(2), (c - a) * step(1), "{a}, {b}, {c}");
                    differ += usize::from(a != b);
                }
            }
            assert!(differ > 0, "no trip count in\n{}", kernels[0]);
        }
    });
}

/// By hand, one step after the other.
#[test]
fn recurrent_layers_give_what_their_steps_give_one_by_one() -> Result<(), TensorError> {
    seed(5);
    let (rnn, gru, lstm) = (Rnn::new(3), Gru::new(3), Lstm::new(3));
    for steps in [1, 2, 5] {
        let count = (2 * steps * 4) as i64;
        let x = (Tensor::arange(0, count, 1).cast(DType::F32) * 0.3).sin();
        let x = x.reshape([2, steps, 4]);
        let step = |at: usize| x.narrow(1, at, 1);
        let (rnn_all, rnn_last) = rnn.forward(&x, None);
        let (gru_all, gru_last) = gru.forward(&x, None);
        let (lstm_all, lstm_last) = lstm.forward(&x, None);
        let (mut r, mut g, mut l) = (None, None, None);
        for at in 0..steps {
            r = Some(rnn.forward(&step(at), r.as_ref()).1);
            g = Some(gru.forward(&step(at), g.as_ref()).1);
            l = Some(lstm.forward(&step(at), l.as_ref()).1);
        }
        let lstm_expected = l.expect("there is a step");
        for (all, last, expected) in [
            (rnn_all, rnn_last, r.expect("there is a step")),
            (gru_all, gru_last, g.expect("there is a step")),
            (lstm_all, lstm_last.hidden, lstm_expected.hidden.clone()),
        ] {
            let at_end = all.narrow(1, steps - 1, 1).squeeze(1).to_vec::<f32>()?;
            let (last, expected) = (last.to_vec::<f32>()?, expected.to_vec::<f32>()?);
            for ((a, b), c) in at_end.iter().zip(&last).zip(&expected) {
                assert!((a - c).abs() < 1e-5 && (b - c).abs() < 1e-5, "{a} {b} {c}");
            }
        }
        let (cell, expected) = (
            lstm_last.cell.to_vec::<f32>()?,
            lstm_expected.cell.to_vec::<f32>()?,
        );
        let near = cell
            .iter()
            .zip(&expected)
            .all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(near, "{cell:?} {expected:?}");
    }
    Ok(())
}
