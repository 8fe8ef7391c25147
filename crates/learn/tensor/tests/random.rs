//! Random numbers: the same bits as the graph's, and the distributions that they claim to be.

mod numeric;

use loopwright_graph::{GraphBuilder, evaluate};
use loopwright_ops::Scalar;
use loopwright_symbolic::Expr;
use loopwright_tensor::random::{self, Generator, Key};
use loopwright_tensor::{DType, Tensor, TensorError, jit};
use numeric::everywhere;

type Checked = Result<(), TensorError>;

/// The bytes that the graph's own functions give over a shape.
fn by_graph(seed: u64, shape: &[usize], dtype: DType, normal: bool) -> Vec<f64> {
    let mut builder = GraphBuilder::new();
    let mut dims = Vec::new();
    for (at, size) in shape.iter().enumerate() {
        let dim = builder.dim(&format!("d{at}")).unwrap();
        builder.set_size(dim, Expr::constant(*size as i64), "the test");
        dims.push(dim);
    }
    let seed = builder.constant(Scalar::from_bits(DType::U64, seed));
    let counter = builder.linear_index(&dims).unwrap();
    let drawn = match normal {
        true => builder.normal(seed, counter, dtype).unwrap(),
        false => builder.uniform(seed, counter, dtype).unwrap(),
    };
    builder.output("drawn", drawn).unwrap();
    let graph = builder.finish().unwrap();
    let results = evaluate(&graph, &graph.bind(&[]).unwrap(), &[]).unwrap();
    results[0].1.to_f64()
}

#[test]
fn the_bits_are_those_of_the_graph() {
    everywhere(|| -> Checked {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            let key = Key::new(0x1234_5678_9abc_def0);
            let expected = by_graph(0x1234_5678_9abc_def0, &[3, 5], dtype, false);
            assert_eq!(
                random::uniform(&key, [3, 5], dtype).to_f64()?,
                expected,
                "{dtype}"
            );
            let expected = by_graph(0x1234_5678_9abc_def0, &[3, 5], dtype, true);
            let drawn = random::normal(&key, [3, 5], dtype).to_f64()?;
            let tolerance = match dtype {
                DType::F64 => 2e-14,
                DType::F32 => 4e-6,
                _ => 1e-2,
            };
            numeric::close(&drawn, &expected, tolerance, dtype.name());
        }
        Ok(())
    });
}

fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>();
    (mean, variance / values.len() as f64)
}

#[test]
fn distributions_have_their_moments() {
    everywhere(|| -> Checked {
        let key = Key::new(11);
        let shape = [64, 64];
        let near = |tensor: Tensor, mean: f64, variance: f64, what: &str| -> Checked {
            let (got_mean, got_variance) = moments(&tensor.to_f64()?);
            assert!((got_mean - mean).abs() < 0.05, "{what}: mean {got_mean}");
            assert!(
                (got_variance - variance).abs() < 0.1 * (1.0 + variance),
                "{what}: variance {got_variance}"
            );
            Ok(())
        };
        let [a, b, c, d, e, f] = key.split();
        let again = key.split_into(6);
        let numbers = |key: &Key| random::bits(key, [2]).to_vec::<u64>();
        assert_eq!(again.len(), 6);
        assert_eq!(numbers(&again[5])?, numbers(&f)?);
        near(
            random::uniform(&a, shape, DType::F32),
            0.5,
            1.0 / 12.0,
            "uniform",
        )?;
        near(random::normal(&b, shape, DType::F32), 0.0, 1.0, "normal")?;
        near(
            random::bernoulli(&c, shape, 0.3).cast(DType::F32),
            0.3,
            0.21,
            "bernoulli",
        )?;
        near(
            random::exponential(&d, shape, DType::F32),
            1.0,
            1.0,
            "exponential",
        )?;
        near(
            random::gumbel(&e, shape, DType::F32),
            0.577,
            1.645,
            "gumbel",
        )?;
        let cut = random::truncated_normal(&f, shape, -2.0, 2.0, DType::F32);
        assert!(cut.to_f64()?.iter().all(|x| (-2.0..=2.0).contains(x)));
        near(cut, 0.0, 0.774, "truncated_normal")?;
        let tail = random::truncated_normal(&f, shape, 1.0, f64::INFINITY, DType::F64);
        near(tail, 1.525, 0.199, "truncated_normal tail")?;
        let dice = random::randint(&a, shape, 1, 7);
        assert_eq!(dice.dtype(), DType::I64);
        let mut counts = [0usize; 6];
        for face in dice.to_vec::<i64>()? {
            counts[(face - 1) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (583..783).contains(count)),
            "{counts:?}"
        );
        let far = random::randint(&a, [100], -(1 << 40), 1 << 40).to_vec::<i64>()?;
        assert!(far.iter().all(|x| (-(1i64 << 40)..1 << 40).contains(x)));
        assert!(far.iter().any(|x| x.abs() > 1 << 38));
        Ok(())
    });
}

#[test]
fn orders_and_classes() {
    everywhere(|| -> Checked {
        let key = Key::new(5);
        let order = random::permutation(&key, 50).to_vec::<i64>()?;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<i64>>());
        assert_ne!(order, sorted);
        let x = Tensor::arange(0, 12, 1).reshape([4, 3]);
        let rows = random::shuffle(&key, &x, 0).to_vec::<i64>()?;
        assert!(
            rows.chunks(3)
                .all(|row| row[1] == row[0] + 1 && row[0] % 3 == 0)
        );
        let logits = Tensor::from([0.7f32, 0.2, 0.1])
            .log()
            .broadcast_to([4000, 3]);
        let drawn = random::categorical(&key, &logits, 1).to_vec::<i64>()?;
        let share = |class: i64| drawn.iter().filter(|x| **x == class).count() as f64 / 4000.0;
        assert!((share(0) - 0.7).abs() < 0.03, "{}", share(0));
        assert!((share(2) - 0.1).abs() < 0.03, "{}", share(2));
        let dropped =
            random::dropout(&key, &Tensor::ones([1000], DType::F32), 0.25).to_vec::<f32>()?;
        let kept = dropped.iter().filter(|x| **x != 0.0).count();
        assert!((700..800).contains(&kept), "{kept}");
        assert!(dropped.iter().all(|x| *x == 0.0 || *x == 1.0 / 0.75));
        Ok(())
    });
}

#[test]
fn keys_are_independent() {
    everywhere(|| -> Checked {
        let key = Key::new(1);
        let bits = |key: &Key| random::bits(key, [4]).to_vec::<u64>();
        let [a, b] = key.split();
        let all = [
            bits(&key)?,
            bits(&a)?,
            bits(&b)?,
            bits(&key.fold_in(0))?,
            bits(&key.fold_in(1))?,
            bits(&key.fold_in(1 << 40))?,
        ];
        for (at, one) in all.iter().enumerate() {
            for other in &all[..at] {
                assert_ne!(one, other);
            }
        }
        assert_eq!(
            bits(&key.fold_in(7))?,
            bits(&key.fold_in_value(&Tensor::scalar(7i64)))?
        );
        Ok(())
    });
}

#[test]
fn a_compiled_function_draws_new_numbers() {
    everywhere(|| -> Checked {
        let generator = Generator::new(9);
        let alone = Generator::new(9);
        let draw = jit("draw", {
            let generator = generator.clone();
            move |x: &Tensor| {
                let a = random::uniform(&generator.key(), [3], DType::F32);
                let b = random::uniform(&generator.key(), [3], DType::F32);
                (a + x, b)
            }
        });
        let zero = Tensor::from([0.0f32; 3]);
        for _ in 0..3 {
            let (a, b) = draw.call(&zero)?;
            // The same numbers as without compilation, key after key.
            let expected = random::uniform(&alone.key(), [3], DType::F32);
            assert_eq!(a.to_vec::<f32>()?, expected.to_vec::<f32>()?);
            let expected = random::uniform(&alone.key(), [3], DType::F32);
            assert_eq!(b.to_vec::<f32>()?, expected.to_vec::<f32>()?);
        }
        assert_eq!(draw.reports().len(), 1);
        assert_eq!(generator.count().get().to_vec::<u64>()?, [6]);
        Ok(())
    });
}
