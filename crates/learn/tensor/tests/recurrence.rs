//! Steps as a loop: what they give, and their gradients, beside the same steps written out.

use loopwright_interp as _;
use loopwright_tensor::{DType, Session, Tensor, TensorError, jit, scan, select, stack, vmap};
use loopwright_x86 as _;

type Step = fn(&(Tensor, Tensor), &Tensor, &[Tensor]) -> ((Tensor, Tensor), Tensor);

fn waves(shape: &[usize], phase: f64) -> Tensor {
    let count = shape.iter().product::<usize>() as i64;
    let numbers = Tensor::arange(0, count, 1).cast(DType::F64);
    (numbers * 0.37 + phase).sin().reshape(shape)
}

/// The steps one by one.
fn written_out(
    first: &(Tensor, Tensor),
    x: &Tensor,
    weights: &[Tensor],
    step: Step,
) -> ((Tensor, Tensor), Tensor) {
    let mut carried = first.clone();
    let mut outputs = Vec::new();
    for at in 0..x.sizes().expect("they are known")[0] {
        let (after, output) = step(&carried, &x.at(at), weights);
        carried = after;
        outputs.push(output);
    }
    let outputs: Vec<&Tensor> = outputs.iter().collect();
    (carried, stack(&outputs, 0))
}

/// An LSTM's step, with its gates cut out of one product.
fn lstm((h, c): &(Tensor, Tensor), x: &Tensor, weights: &[Tensor]) -> ((Tensor, Tensor), Tensor) {
    let gates = x.matmul(&weights[0]) + h.matmul(&weights[1]) + &weights[2];
    let part = |at: usize| gates.narrow(-1, at * 3, 3);
    let cell = part(1).sigmoid() * c + part(0).sigmoid() * part(2).tanh();
    let hidden = part(3).sigmoid() * cell.tanh();
    ((hidden.clone(), cell), hidden * 2.0)
}

/// A step that normalises what it carries, with sums and largest elements along other axes.
fn normalising(
    (h, c): &(Tensor, Tensor),
    x: &Tensor,
    weights: &[Tensor],
) -> ((Tensor, Tensor), Tensor) {
    let mixed = (h * 0.5 + x.matmul(&weights[0]).narrow(-1, 0, 3)).tanh();
    let centred = &mixed - mixed.mean(-1).unsqueeze(1);
    let next = centred.exp() / centred.exp().sum(-1).unsqueeze(1);
    let most = next.max(-1);
    ((next.clone(), c * 0.9 + &next), next + most.unsqueeze(1))
}

/// A selective scan: the decay depends on the input, and what is carried does not meet along its axes.
fn selective(
    (h, c): &(Tensor, Tensor),
    x: &Tensor,
    weights: &[Tensor],
) -> ((Tensor, Tensor), Tensor) {
    let x = x.narrow(-1, 0, 3);
    let decay = (&x * &weights[3]).sigmoid();
    let state = &decay * h + &x * (1.0 - &decay);
    ((state.clone(), c.clone()), state * c)
}

const STEPS: [(&str, Step); 3] = [
    ("lstm", lstm),
    ("normalising", normalising),
    ("selective", selective),
];

fn weights() -> Vec<Tensor> {
    vec![
        waves(&[4, 12], 0.1),
        waves(&[3, 12], 0.7),
        waves(&[12], 1.3),
        waves(&[3], 1.9),
    ]
}

fn near(name: &str, found: &Tensor, expected: &Tensor) -> Result<(), TensorError> {
    assert_eq!(found.sizes()?, expected.sizes()?, "{name}");
    let (found, expected) = (found.to_vec::<f64>()?, expected.to_vec::<f64>()?);
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let apart = (found - expected).abs();
        assert!(
            apart <= 1e-9 * expected.abs().max(1.0),
            "{name}, element {at}: {found}, not {expected}"
        );
    }
    Ok(())
}

fn everywhere(test: impl Fn() -> Result<(), TensorError>) {
    for device in ["interp", "x86"] {
        let Ok(session) = Session::new(device) else {
            continue;
        };
        session.scope(|| test().unwrap_or_else(|error| panic!("{device}: {error}")));
    }
}

#[test]
fn a_loop_gives_what_the_steps_give_one_by_one() {
    everywhere(|| {
        for (name, step) in STEPS {
            for length in [1, 3] {
                let (x, weights) = (waves(&[length, 2, 4], 0.0), weights());
                let first = (waves(&[2, 3], 0.3), waves(&[2, 3], 0.6));
                let ((h, c), all) = scan(&first, &x, 0, |carried, x| step(carried, x, &weights))?;
                let (carried, expected) = written_out(&first, &x, &weights, step);
                near(name, &h, &carried.0)?;
                near(name, &c, &carried.1)?;
                near(name, &all, &expected)?;
            }
        }
        Ok(())
    });
}

#[test]
fn no_steps_carry_what_they_start_from() -> Result<(), TensorError> {
    let (x, weights) = (Tensor::zeros([0, 2, 4], DType::F64), weights());
    let first = (waves(&[2, 3], 0.3), waves(&[2, 3], 0.6));
    let ((h, _), all) = scan(&first, &x, 0, |carried, x| lstm(carried, x, &weights))?;
    assert_eq!(all.sizes()?, [0, 2, 3]);
    near("h", &h, &first.0)
}

#[test]
fn no_steps_of_what_cannot_be_a_loop_have_outputs_without_elements() -> Result<(), TensorError> {
    let first = waves(&[3], 0.3);
    // A loop in the step of a loop, both without steps.
    let x = Tensor::zeros([0, 0, 3], DType::F64);
    let (last, all) = scan(&first, &x, 0, |carried, rows| {
        let inner = scan(carried, rows, 0, |carried, row| {
            (carried * 0.5 + row, carried + row)
        });
        let (last, all) = inner.expect("it can be written out");
        (last, all.sum(0))
    })?;
    assert_eq!(all.sizes()?, [0, 3]);
    near("last", &last, &first)?;
    // A gather from what is carried.
    let places = Tensor::zeros([0, 2], DType::I64);
    let (last, all) = scan(&first, &places, 0, |carried, at| {
        (carried * 0.5, carried.take(at, 0))
    })?;
    assert_eq!(all.sizes()?, [0, 2]);
    near("last", &last, &first)
}

#[test]
fn a_loop_inside_of_a_loop_with_too_many_steps_names_their_number() {
    let x = Tensor::zeros([1500, 1500], DType::F64);
    let found = scan(&Tensor::scalar(0.0f64), &x, 0, |carried, row| {
        match scan(carried, row, 0, |carried, x| (carried + x, x.clone())) {
            Ok((last, all)) => (last, all.sum(0)),
            Err(error) => (carried.clone(), Tensor::from_error(error)),
        }
    });
    let error = found.map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("1500 steps, and 1024 are the most"),
        "{error}"
    );
}

fn loss(((h, c), all): &((Tensor, Tensor), Tensor)) -> Tensor {
    h.square().sum(..) + c.sin().sum(..) + all.square().sum(..)
}

#[test]
fn gradients_of_a_loop_are_those_of_the_steps_one_by_one() {
    everywhere(|| {
        for (name, step) in STEPS {
            for length in [2, 4] {
                let (x, weights) = (waves(&[length, 2, 4], 0.0), weights());
                let first = (waves(&[2, 3], 0.3), waves(&[2, 3], 0.6));
                let found = scan(&first, &x, 0, |carried, x| step(carried, x, &weights))?;
                let expected = written_out(&first, &x, &weights, step);
                let of = [
                    &x,
                    &first.0,
                    &first.1,
                    &weights[0],
                    &weights[1],
                    &weights[3],
                ];
                let found = loss(&found).gradients(of);
                let expected = loss(&expected).gradients(of);
                for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    near(
                        &format!("{name}, gradient {at}, {length} steps"),
                        found,
                        expected,
                    )?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn gradients_of_gradients_go_through_loops() -> Result<(), TensorError> {
    let (x, weights) = (waves(&[4, 2, 4], 0.0), weights());
    let first = (waves(&[2, 3], 0.3), waves(&[2, 3], 0.6));
    for (name, step) in STEPS {
        let second = |value: &((Tensor, Tensor), Tensor)| {
            let [dx, df] = loss(value).gradients([&x, &first.0]);
            let norm = dx.square().sum(..) + df.sin().sum(..);
            norm.gradients([&x, &weights[0], &first.0])
        };
        let found = second(&scan(&first, &x, 0, |carried, x| {
            step(carried, x, &weights)
        })?);
        let expected = second(&written_out(&first, &x, &weights, step));
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            near(&format!("{name}, second gradient {at}"), found, expected)?;
        }
    }
    Ok(())
}

#[test]
fn two_loops_one_after_the_other_have_gradients() -> Result<(), TensorError> {
    let (x, weights) = (waves(&[5, 2, 4], 0.0), weights());
    let first = (waves(&[2, 3], 0.3), waves(&[2, 3], 0.6));
    let pad = |all: &Tensor| loopwright_tensor::concat(&[all, &all.narrow(-1, 0, 1)], 2);
    let (_, all) = scan(&first, &x, 0, |carried, x| lstm(carried, x, &weights))?;
    let found = scan(&first, &pad(&all), 0, |carried, x| {
        normalising(carried, x, &weights)
    })?;
    let (_, all) = written_out(&first, &x, &weights, lstm);
    let expected = written_out(&first, &pad(&all), &weights, normalising);
    let of = [&x, &weights[0], &weights[1], &first.0];
    let (found, expected) = (loss(&found).gradients(of), loss(&expected).gradients(of));
    for (found, expected) in found.iter().zip(&expected) {
        near("gradient", found, expected)?;
    }
    Ok(())
}

#[test]
fn a_loop_is_traced_once_and_runs_more_steps_than_can_be_written_out() -> Result<(), TensorError> {
    let sums = jit("sums", |x: &Tensor| {
        let zero = Tensor::zeros([] as [usize; 0], DType::F64);
        scan(&zero, x, 0, |state, x| {
            let next = state * 0.5 + x;
            (next.clone(), next)
        })
    });
    let x = waves(&[5000], 0.0);
    let (last, all) = sums.call(&x)?;
    let mut state = 0.0;
    for (x, found) in x.to_vec::<f64>()?.iter().zip(all.to_vec::<f64>()?) {
        state = state * 0.5 + x;
        assert!((found - state).abs() < 1e-12);
    }
    assert!((last.item()? - state).abs() < 1e-12);
    Ok(())
}

/// A generator of steps: what is carried, the input and the weights, put together at random.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % most
    }

    /// A tensor of `[batch, 3]` made of such tensors, of which there is at least one.
    fn grown(&mut self, known: &[Tensor], weights: &[Tensor]) -> Tensor {
        let mut known = known.to_vec();
        for _ in 0..2 + self.below(5) {
            let a = known[self.below(known.len() as u64) as usize].clone();
            let b = known[self.below(known.len() as u64) as usize].clone();
            let square = weights[1].narrow(1, 3 * self.below(4) as usize, 3);
            let new = match self.below(12) {
                0 => &a + &b,
                1 => &a * &b,
                2 => a.tanh(),
                3 => a.sigmoid() * &b,
                4 => a.matmul(&square) * 0.3,
                5 => &a - a.mean(-1).unsqueeze(1),
                6 => select(&a.gt(&b), &a, &b),
                7 => a.flip(-1) * 0.5,
                8 => loopwright_tensor::concat(&[&a.narrow(-1, 1, 2), &b.narrow(-1, 0, 1)], 1),
                9 => a.cumsum(-1) * 0.4,
                10 => (&a * 0.7).softmax(-1),
                _ => a.t().matmul(&b).narrow(0, 0, 2).sum(1).unsqueeze(1) * 0.2 + &b,
            };
            known.push(new);
        }
        known[known.len() - 1].tanh()
    }
}

/// The same steps as a loop and one by one, with gradients of all that they read.
fn random_steps(seed: u64) -> Result<(), TensorError> {
    let length = 2 + Random(seed).below(4) as usize;
    let (x, weights) = (waves(&[length, 2, 3], 0.0), weights());
    let first = (waves(&[2, 3], 0.3), waves(&[2, 3], 0.6));
    let step = |(h, c): &(Tensor, Tensor), x: &Tensor| {
        let mut random = Random(seed ^ 0xabcd);
        let given = [h.clone(), c.clone(), x.clone(), x.clone()];
        let next = random.grown(&given, &weights);
        let given = [next.clone(), c.clone(), h.clone()];
        let kept = match random.below(4) {
            0 => h.clone(),
            _ => random.grown(&given, &weights),
        };
        let output = random.grown(&[next.clone(), kept.clone()], &weights);
        ((next, kept), output)
    };
    let found = scan(&first, &x, 0, step)?;
    let mut carried = first.clone();
    let mut outputs = Vec::new();
    for at in 0..length {
        let (after, output) = step(&carried, &x.at(at));
        carried = after;
        outputs.push(output);
    }
    let outputs: Vec<&Tensor> = outputs.iter().collect();
    let expected = (carried, stack(&outputs, 0));
    near(&format!("seed {seed}, outputs"), &found.1, &expected.1)?;
    near(&format!("seed {seed}, carried"), &found.0.1, &expected.0.1)?;
    let of = [&x, &first.0, &first.1, &weights[1]];
    let (found, expected) = (loss(&found).gradients(of), loss(&expected).gradients(of));
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        near(&format!("seed {seed}, gradient {at}"), found, expected)?;
    }
    Ok(())
}

/// Seeds from `LOOPWRIGHT_FIRST_SEED` on, as many as `LOOPWRIGHT_SEEDS` says: a long run can go on where another ended.
#[test]
fn random_steps_give_the_same_as_a_loop_and_one_by_one() {
    let number = |name: &str, default: u64| {
        let set = std::env::var(name).ok();
        set.and_then(|set| set.parse().ok()).unwrap_or(default)
    };
    let first = number("LOOPWRIGHT_FIRST_SEED", 0);
    for seed in first..first + number("LOOPWRIGHT_SEEDS", 6) {
        for device in ["interp", "x86"] {
            let Ok(session) = Session::new(device) else {
                continue;
            };
            let done = session.scope(|| random_steps(seed));
            done.unwrap_or_else(|error| panic!("{device}, seed {seed}: {error}"));
        }
    }
}

#[test]
fn the_number_of_steps_may_be_known_only_when_the_program_runs() -> Result<(), TensorError> {
    let both = jit("both", |x: &Tensor| {
        let (first, weights) = ((waves(&[2, 3], 0.3), waves(&[2, 3], 0.6)), weights());
        let found = scan(&first, x, 0, |carried, x| lstm(carried, x, &weights))?;
        let loss = loss(&found);
        let [dx, dw] = loss.gradients([x, &weights[1]]);
        Ok::<_, TensorError>((loss, (dx, dw)))
    })
    .dynamic(0, 0);
    for length in [2, 3, 7, 40] {
        let (x, weights) = (waves(&[length, 2, 4], 0.0), weights());
        let (value, (dx, dw)) = both.call(&x)?;
        if length < 8 {
            let first = (waves(&[2, 3], 0.3), waves(&[2, 3], 0.6));
            let expected = loss(&written_out(&first, &x, &weights, lstm));
            near("loss", &value, &expected)?;
            let gradients = expected.gradients([&x, &weights[1]]);
            near("gradient of x", &dx, &gradients[0])?;
            near("gradient of a weight", &dw, &gradients[1])?;
        }
        assert_eq!(dx.sizes()?, [length, 2, 4]);
    }
    assert_eq!(both.reports().len(), 1, "one program for all lengths");
    Ok(())
}

#[test]
fn loops_are_mapped_over_examples() -> Result<(), TensorError> {
    let x = waves(&[3, 4, 2], 0.2);
    let decayed = |x: &Tensor| {
        let zero = Tensor::zeros([2], DType::F64);
        let (last, all) = scan(&zero, x, 0, |state, x| {
            let next = (state * 0.5 + x).tanh();
            (next.clone(), next)
        })?;
        let [slope] = (all.square().sum(..) + last.sum(..)).gradients([x]);
        Ok::<_, TensorError>((all, slope))
    };
    let (all, slopes) = vmap(decayed).call(&x)?;
    for at in 0..3 {
        let (one, slope) = decayed(&x.at(at))?;
        near("outputs", &all.at(at), &one)?;
        near("gradients", &slopes.at(at), &slope)?;
    }
    Ok(())
}
