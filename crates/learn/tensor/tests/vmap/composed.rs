//! Mapped functions in and around other ones, names, sizes, variables and random numbers.

use crate::numeric::{close, everywhere, random};
use loopwright_tensor::{
    Axis, DType, Shape, Tensor, TensorError, Variable, jit, linalg, random as numbers, stack,
    unknown, vmap,
};

#[test]
fn inside_each_other() {
    everywhere(|| {
        let (a, b) = (random(&[3, 4], 1), random(&[2, 4], 2));
        // All pairs of rows, by a map of a map; the second axis of the result is the inner one.
        let distances = vmap(|(a, b): &(Tensor, Tensor)| {
            let a = a.clone();
            vmap(move |b: &Tensor| (&a - b).square().sum(..).sqrt()).call(b)
        });
        let pairs = distances
            .over([Some(0), None])
            .call(&(a.clone(), b.clone()))?;
        let expected = (a.unsqueeze(1) - b.unsqueeze(0)).square().sum(2).sqrt();
        assert_eq!(pairs.sizes()?, [3, 2]);
        close(&pairs.to_f64()?, &expected.to_f64()?, 1e-12, "pairs");
        let of = |distances: &Tensor| distances.square().sum(..).gradients([&a, &b]);
        for (pairs, expected) in of(&pairs).iter().zip(of(&expected)) {
            close(
                &pairs.to_f64()?,
                &expected.to_f64()?,
                1e-12,
                "gradients of pairs",
            );
        }

        // Three of them, each over another axis of one tensor.
        let x = random(&[2, 3, 4], 3);
        let sorted = vmap(|x: &Tensor| {
            vmap(|x: &Tensor| vmap(Tensor::exp).call(x))
                .over([Some(1)])
                .to(1)
                .call(x)
        });
        let sorted = sorted.over([Some(2)]).to(-1).call(&x)?;
        close(&sorted.to_f64()?, &x.exp().to_f64()?, 1e-12, "three");
        Ok(())
    });
}

#[test]
fn gradients_of_every_example() {
    everywhere(|| {
        let (x, w) = (random(&[3, 2], 4), random(&[2], 5));
        let loss = |x: &Tensor, w: &Tensor| (x * w).sum(..).tanh();
        let slopes = vmap(|(x, w): &(Tensor, Tensor)| loss(x, w).gradients([w, x]))
            .over([Some(0), None])
            .call(&(x.clone(), w.clone()))?;
        for example in 0..3 {
            let own = x.at(example);
            let expected = loss(&own, &w).gradients([&w, &own]);
            for (slopes, expected) in slopes.iter().zip(&expected) {
                close(
                    &slopes.at(example).to_f64()?,
                    &expected.to_f64()?,
                    1e-12,
                    "each",
                );
            }
        }
        // The gradient of what gradients give: the second one.
        let norm = slopes[0].square().sum(..);
        let [second] = norm.gradients([&w]);
        let parts = (0..3).map(|example| {
            let own = x.at(example);
            let [slope] = loss(&own, &w).gradients([&w]);
            slope.square().sum(..)
        });
        let [expected] = parts.reduce(|a, b| a + b).unwrap().gradients([&w]);
        close(&second.to_f64()?, &expected.to_f64()?, 1e-11, "second");
        Ok(())
    });
}

#[test]
fn gradients_of_their_own_two_maps_deep() {
    everywhere(|| {
        // The gradient of a factorisation, and one that has taken a mapped tensor along.
        let own = |x: &Tensor, scale: &Tensor| {
            let twice = scale * 2.0;
            let marked = x.sum(..).with_gradient(&[x, scale], move |of, _, g| {
                vec![&of[0] * g * &twice, g * &of[1] * of[0].sum(..)]
            });
            let positive = linalg::outer(x, x) + Tensor::eye(2, DType::F64);
            let (values, _) = linalg::eigh(&positive);
            marked + values.max(0) + linalg::cholesky(&positive).sum(..)
        };
        let (x, scale) = (random(&[2, 3, 2], 6), random(&[3], 7));
        let deep = vmap(|(x, scale): &(Tensor, Tensor)| {
            vmap(|(x, scale): &(Tensor, Tensor)| own(x, scale)).call(&(x.clone(), scale.clone()))
        });
        let deep = deep
            .over([Some(0), None])
            .call(&(x.clone(), scale.clone()))?;
        let rows = (0..2).map(|i| {
            let row: Vec<Tensor> = (0..3).map(|j| own(&x.at((i, j)), &scale.at(j))).collect();
            stack(&row.iter().collect::<Vec<_>>(), 0)
        });
        let rows: Vec<Tensor> = rows.collect();
        let expected = stack(&rows.iter().collect::<Vec<_>>(), 0);
        close(&deep.to_f64()?, &expected.to_f64()?, 1e-9, "values");
        let weight = random(&[2, 3], 8);
        let of = |values: &Tensor| values.vjp(&weight, &[&x, &scale]);
        for (deep, expected) in of(&deep).iter().zip(of(&expected)) {
            close(&deep.to_f64()?, &expected.to_f64()?, 1e-8, "gradients");
        }
        Ok(())
    });
}

#[test]
fn in_functions_that_are_compiled() {
    everywhere(|| {
        let weight = Variable::new(&Tensor::from([0.0f64, 0.0]));
        let step = jit("step", {
            let weight = weight.clone();
            move |(x, y): &(Tensor, Tensor)| {
                let loss =
                    vmap(|(x, y): &(Tensor, Tensor)| ((x * weight.get()).sum(..) - y).square());
                let loss = loss.call(&(x.clone(), y.clone()))?.mean(0);
                let value = weight.get();
                let [slope] = loss.gradients([&value]);
                weight.set(&(value - slope * 0.3))?;
                Ok::<_, TensorError>(loss)
            }
        })
        .dynamic(0, 0)
        .dynamic(1, 0);
        for turn in 0..200 {
            let rows = 4 + turn % 3;
            let x = random(&[rows, 2], turn as u64 + 9);
            let y = (&x * Tensor::from([1.0f64, -2.0])).sum(1);
            step.call(&(x, y))?;
        }
        // One trace and one program for all sizes of the mapped axis.
        assert_eq!(step.reports().len(), 1);
        close(
            &weight.get().to_f64()?,
            &[1.0, -2.0],
            1e-6,
            "the line is found",
        );

        // A compiled function becomes a part of the one that is mapped.
        let double = jit("double", |x: &Tensor| x + x);
        let x = random(&[3, 2], 10);
        let both = vmap(|x: &Tensor| double.call(x)).call(&x)?;
        close(&both.to_f64()?, &(&x * 2.0).to_f64()?, 0.0, "doubled");
        assert!(double.reports().is_empty());
        Ok(())
    });
}

#[test]
fn variables_are_the_same_for_all() {
    everywhere(|| {
        let weight = Variable::new(&random(&[2], 11));
        let x = random(&[3, 2], 12);
        let mapped = vmap(|x: &Tensor| (x * weight.get()).sum(..).exp()).call(&x)?;
        let value = weight.get();
        let expected = (&x * &value).sum(1).exp();
        let (mapped, expected) = (
            mapped.sum(..).gradients([&value]),
            expected.sum(..).gradients([&value]),
        );
        close(
            &mapped[0].to_f64()?,
            &expected[0].to_f64()?,
            1e-12,
            "to a variable",
        );
        Ok(())
    });
}

#[test]
fn names() {
    everywhere(|| {
        let x = random(&[3, 2], 13).named(["batch", "i"]);
        let w = random(&[2, 4], 14).named(["i", "j"]);
        let both = (x.clone(), w.clone());
        let product = || vmap(|(x, w): &(Tensor, Tensor)| (x * w).sum("i"));
        let expected = (&x * &w).sum("i");
        let mapped = product().over_named("batch").call(&both)?;
        assert_eq!(mapped.shape().to_string(), "[batch 3, j 4]");
        close(&mapped.to_f64()?, &expected.to_f64()?, 1e-12, "by name");
        let mapped = product().over([Some("batch"), None]).to(-1).call(&both)?;
        assert_eq!(mapped.shape().to_string(), "[j 4, batch 3]");
        close(
            &mapped.to_f64()?,
            &expected.t().to_f64()?,
            1e-12,
            "as the last",
        );

        // The function does not see the axis, and may have others of its name.
        let own = vmap(|(x, w): &(Tensor, Tensor)| (x * w.rename("j", "batch")).sum("batch"));
        let mapped = own.over([Some(0), None]).call(&both)?;
        assert_eq!(mapped.shape().to_string(), "[batch 3, i 2]");
        close(
            &mapped.to_f64()?,
            &(x * w.sum("j")).to_f64()?,
            1e-12,
            "a name twice",
        );

        // Of two names none is taken, of one and none the one.
        let (a, b) = (Tensor::from([1.0f32, 2.0]), Tensor::from([3.0f32, 4.0]));
        let add = || vmap(|(a, b): &(Tensor, Tensor)| a + b);
        let named = |tensor: &Tensor, name| tensor.named([name]);
        let two = add().call(&(named(&a, "a"), named(&b, "b")))?;
        assert_eq!(two.shape().to_string(), "[2]");
        let one = add().call(&(a, named(&b, "b")))?;
        assert_eq!(one.shape().to_string(), "[b 2]");
        assert_eq!(one.to_vec::<f32>()?, [4.0, 6.0]);
        Ok(())
    });
}

#[test]
fn places_of_results() {
    everywhere(|| {
        let (x, w) = (random(&[2, 3, 4], 15), random(&[3], 16));
        let both = vmap(|(x, w): &(Tensor, Tensor)| (x.exp(), w * 2.0, x.sum(..)))
            .over([Some(-1), None])
            .to_each([1, -1, 0])
            .call(&(x.clone(), w.clone()))?;
        let (powers, doubled, sums) = both;
        close(
            &powers.to_f64()?,
            &x.exp().move_axis(2, 1).to_f64()?,
            1e-12,
            "in the middle",
        );
        // What depends on no mapped argument is the same for all.
        assert_eq!(doubled.sizes()?, [3, 4]);
        close(
            &doubled.to_f64()?,
            &(w.unsqueeze(1) * Tensor::ones([3, 4], DType::F64) * 2.0).to_f64()?,
            1e-12,
            "repeated",
        );
        close(
            &sums.to_f64()?,
            &x.sum([0, 1]).to_f64()?,
            1e-12,
            "of numbers",
        );
        Ok(())
    });
}

#[test]
fn sizes_are_found() {
    everywhere(|| {
        // The inner size of a parameter follows from an argument, and the mapped one from another.
        let weight = Tensor::ones(Shape::new([Axis::of(unknown("inner"))]), DType::F64);
        let batch = Tensor::ones(Shape::new([Axis::of(unknown("batch"))]), DType::F64);
        let x = random(&[3, 2], 17);
        let mapped = vmap(|(x, b): &(Tensor, Tensor)| (x * &weight).sum(..) + b);
        let mapped = mapped.call(&(x.clone(), batch.clone()))?;
        close(
            &mapped.to_f64()?,
            &(x.sum(1) + 1.0).to_f64()?,
            1e-12,
            "found",
        );
        assert_eq!((weight.sizes()?, batch.sizes()?), (vec![2], vec![3]));
        Ok(())
    });
}

#[test]
fn random_numbers_follow_from_seeds() {
    everywhere(|| {
        let seeds = Tensor::from([5i64, 6, 7]);
        let draw = |seed: &Tensor| numbers::normal(&numbers::Key::of(seed), [4], DType::F32);
        let drawn = vmap(draw).call(&seeds)?.to_vec::<f32>()?;
        for (example, own) in drawn.chunks(4).enumerate() {
            assert_eq!(own, draw(&seeds.at(example as i64)).to_vec::<f32>()?);
        }
        // A key of the function's own is the same for all.
        let same = vmap(|_: &Tensor| numbers::uniform(&numbers::Key::new(1), [2], DType::F32));
        let same = same.call(&seeds)?.to_vec::<f32>()?;
        assert!(same.chunks(2).all(|own| own == &same[..2]), "{same:?}");
        Ok(())
    });
}

#[test]
fn values_of_what_is_not_mapped_are_known() {
    everywhere(|| {
        let steps = Tensor::from([3i64]);
        let powers = vmap(|(x, steps): &(Tensor, Tensor)| {
            let count = steps.to_vec::<i64>()?[0];
            Ok::<_, TensorError>((1..count).fold(x.clone(), |power, _| power * x))
        });
        let powers = powers
            .over([Some(0), None])
            .call(&(Tensor::from([2.0f32, 3.0]), steps))?;
        assert_eq!(powers.to_vec::<f32>()?, [8.0, 27.0]);
        Ok(())
    });
}

#[test]
fn one_example_and_none() {
    everywhere(|| {
        let w = random(&[3, 2], 18);
        for examples in [1, 0] {
            let x = random(&[examples, 3], 19);
            let mapped = vmap(|(x, w): &(Tensor, Tensor)| x.matmul(w).softmax(0))
                .over([Some(0), None])
                .call(&(x.clone(), w.clone()))?;
            let expected = x.matmul(&w).softmax(1);
            assert_eq!(mapped.sizes()?, [examples, 2]);
            close(&mapped.to_f64()?, &expected.to_f64()?, 1e-12, "values");
            let of = |y: &Tensor| y.square().sum(..).gradients([&x, &w]);
            for (mapped, expected) in of(&mapped).iter().zip(of(&expected)) {
                close(&mapped.to_f64()?, &expected.to_f64()?, 1e-12, "gradients");
            }
        }
        Ok(())
    });
}

#[test]
fn a_function_that_panics_leaves_nothing_behind() {
    let x = random(&[2], 20);
    let call = || vmap(|_: &Tensor| -> Tensor { panic!("on purpose") }).call(&x);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
    assert!(result.is_err());
    // Variables can be set again.
    let variable = Variable::new(&x);
    variable.set(&(&x + 1.0)).unwrap();
}
