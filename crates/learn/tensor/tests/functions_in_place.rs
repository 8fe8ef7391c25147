//! Large arguments of compiled functions that are the same from call to call: they are read where they lie, and the values are
//! right whatever becomes of them in between.

use loopwright_interp as _;
use loopwright_manycore as _;
use loopwright_tensor::{DType, Session, Tensor, TensorError, Variable, jit};
use loopwright_x86 as _;

/// More than is copied.
const SIZE: usize = 20_000;

fn on_devices(run: impl Fn() -> Result<(), TensorError>) {
    for device in ["x86", "interp", "manycore"] {
        let Ok(session) = Session::new(device) else {
            continue;
        };
        session.scope(&run).expect("the program is well formed");
    }
}

fn full(value: f32) -> Tensor {
    Tensor::new(&vec![value; SIZE], [SIZE])
}

fn first(tensor: &Tensor) -> Result<f32, TensorError> {
    let values = tensor.to_vec::<f32>()?;
    assert!(values.iter().all(|value| *value == values[0]));
    Ok(values[0])
}

#[test]
fn the_same_arguments_and_others_in_turn() {
    on_devices(|| {
        let add = jit("add", |(a, b): &(Tensor, Tensor)| a * 2.0 + b);
        let (a, b, c) = (full(1.0), full(10.0), full(100.0));
        let computed = full(3.0) + 1.0;
        let rows = [
            (&a, &b),
            (&a, &b),
            (&a, &b),
            (&a, &c),
            (&a, &c),
            (&c, &a),
            (&c, &a),
            (&a, &b),
        ];
        for (x, y) in rows
            .into_iter()
            .chain([(&computed, &a), (&computed, &a), (&computed, &a)])
        {
            let given = add.call(&(x.clone(), y.clone()))?;
            assert_eq!(first(&given)?, first(x)? * 2.0 + first(y)?);
        }
        assert_eq!(add.reports().len(), 1);
        Ok(())
    });
}

#[test]
fn results_become_arguments_and_are_held() {
    on_devices(|| {
        let double = jit("double", |x: &Tensor| x + x);
        let mut x = full(1.0);
        let mut kept = Vec::new();
        for round in 1..8 {
            let y = double.call(&x)?;
            // The same argument twice more: the second is read in place.
            assert_eq!(first(&double.call(&x)?)?, first(&y)?);
            assert_eq!(first(&double.call(&x)?)?, first(&y)?);
            kept.push((round, y.clone()));
            x = y;
        }
        for (round, held) in kept {
            assert_eq!(first(&held)?, (1 << round) as f32);
        }
        Ok(())
    });
}

#[test]
fn a_variable_as_an_argument() {
    on_devices(|| {
        let total = Variable::new(&full(1.0));
        let add = jit("add", {
            let total = total.clone();
            move |x: &Tensor| {
                total.set(&(total.get() + x))?;
                Ok::<_, TensorError>(x * 1.0)
            }
        });
        // Its own value of the time is the argument, three times the same.
        let snapshot = total.get();
        for _ in 0..3 {
            assert_eq!(first(&add.call(&snapshot)?)?, 1.0);
        }
        assert_eq!(first(&total.get())?, 4.0);
        // And the value it has each time.
        for round in 1..4 {
            add.call(&total.get())?;
            assert_eq!(first(&total.get())?, (4 << round) as f32);
        }
        total.set(&full(0.5))?;
        assert_eq!(first(&add.call(&snapshot)?)?, 1.0);
        assert_eq!(first(&total.get())?, 1.5);
        Ok(())
    });
}

#[test]
fn open_sizes() {
    on_devices(|| {
        let mean = jit("mean", |x: &Tensor| x.mean(0)).dynamic(0, 0);
        for size in [SIZE, 2 * SIZE, SIZE] {
            let x = Tensor::full([size], 3.0, DType::F32) * 1.0;
            for _ in 0..3 {
                assert_eq!(mean.call(&x)?.item()?, 3.0);
            }
        }
        Ok(())
    });
}
