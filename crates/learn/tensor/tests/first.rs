//! Values of formulas, on every backend that is linked in.

use loopwright_cc as _;
use loopwright_interp as _;
use loopwright_tensor::{
    Axis, DType, ReduceOp, Session, Slice, Tensor, TensorError, Variable, Window, concat, jit,
    select, stack,
};
use loopwright_x86 as _;

fn everywhere(test: impl Fn() -> Result<(), TensorError>) {
    for device in ["interp", "x86"] {
        let session = Session::new(device).unwrap();
        session.scope(|| test().unwrap_or_else(|error| panic!("{device}: {error}")));
    }
}

fn counted(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    Tensor::arange(0, count as i64, 1)
        .cast(DType::F32)
        .reshape(shape)
}

#[test]
fn arithmetic_broadcasts_as_in_numpy() {
    everywhere(|| {
        let a = counted(&[2, 3]);
        let b = Tensor::from([10.0f32, 20.0, 30.0]);
        assert_eq!((&a + &b).to_vec::<f32>()?, [10., 21., 32., 13., 24., 35.]);
        assert_eq!(
            (a.at((.., 0..1)) * &b).to_vec::<f32>()?,
            [0., 0., 0., 30., 60., 90.]
        );
        assert_eq!((2.0 - &a).to_vec::<f32>()?, [2., 1., 0., -1., -2., -3.]);
        Ok(())
    });
}

#[test]
fn a_tensor_meets_itself_turned() {
    everywhere(|| {
        let a = counted(&[3, 3]);
        assert_eq!(
            (&a + a.t()).to_vec::<f32>()?,
            [0., 4., 8., 4., 8., 12., 8., 12., 16.]
        );
        assert_eq!(
            a.matmul(&a.t()).to_vec::<f32>()?,
            [5., 14., 23., 14., 50., 86., 23., 86., 149.]
        );
        Ok(())
    });
}

#[test]
fn movement() {
    everywhere(|| {
        let a = counted(&[2, 3, 4]);
        assert_eq!(
            a.reshape([4, 6]).at((1, ..)).to_vec::<f32>()?,
            [6., 7., 8., 9., 10., 11.]
        );
        assert_eq!(
            a.reshape([3, 2, 4]).at((2, 1)).to_vec::<f32>()?,
            [20., 21., 22., 23.]
        );
        assert_eq!(
            a.permute([2, 0, 1]).at((1, 1)).to_vec::<f32>()?,
            [13., 17., 21.]
        );
        assert_eq!(a.at((0, 0)).flip(0).to_vec::<f32>()?, [3., 2., 1., 0.]);
        assert_eq!(a.at((0, 0)).roll(1, 0).to_vec::<f32>()?, [3., 0., 1., 2.]);
        assert_eq!(
            a.at((0, 0)).pad(0, 1, 2, 9.0).to_vec::<f32>()?,
            [9., 0., 1., 2., 3., 9., 9.]
        );
        assert_eq!(
            a.at((0, 0)).tile(0, 2).to_vec::<f32>()?,
            [0., 1., 2., 3., 0., 1., 2., 3.]
        );
        assert_eq!(
            a.at((0, 0)).repeat(0, 2).to_vec::<f32>()?,
            [0., 0., 1., 1., 2., 2., 3., 3.]
        );
        assert_eq!(
            a.at((1, 2, Slice::All.step(-2))).to_vec::<f32>()?,
            [23., 21.]
        );
        let (x, y) = (counted(&[2]), counted(&[3]));
        assert_eq!(
            concat(&[&x, &y, &x], 0).to_vec::<f32>()?,
            [0., 1., 0., 1., 2., 0., 1.]
        );
        assert_eq!(stack(&[&x, &x], -1).to_vec::<f32>()?, [0., 0., 1., 1.]);
        assert_eq!(
            counted(&[3, 3]).tril(0).to_vec::<f32>()?,
            [0., 0., 0., 3., 4., 0., 6., 7., 8.]
        );
        assert_eq!(counted(&[3, 3]).diagonal().to_vec::<f32>()?, [0., 4., 8.]);
        let windows = counted(&[5]).window(0, &Window::new(3usize).stride(2), None);
        assert_eq!(windows.to_vec::<f32>()?, [0., 1., 2., 2., 3., 4.]);
        Ok(())
    });
}

#[test]
fn folds_and_orders() {
    everywhere(|| {
        let a = counted(&[2, 3]);
        assert_eq!(a.sum(0).to_vec::<f32>()?, [3., 5., 7.]);
        assert_eq!(a.mean(..).item()?, 2.5);
        assert_eq!(a.max(-1).to_vec::<f32>()?, [2., 5.]);
        assert_eq!(a.var(1, 0.0).to_vec::<f32>()?, [2. / 3., 2. / 3.]);
        assert_eq!(a.argmax(1).to_vec::<i64>()?, [2, 2]);
        assert_eq!(a.cumsum(1).to_vec::<f32>()?, [0., 1., 3., 3., 7., 12.]);
        let b = Tensor::from([3.0f32, 1.0, 2.0]);
        assert_eq!(b.sort(0, false).to_vec::<f32>()?, [1., 2., 3.]);
        let (values, places) = b.topk(2, 0);
        assert_eq!(values.to_vec::<f32>()?, [3., 2.]);
        assert_eq!(places.to_vec::<i64>()?, [0, 2]);
        let soft = a.softmax(1).sum(1).to_vec::<f32>()?;
        assert!(soft.iter().all(|sum| (sum - 1.0).abs() < 1e-6));
        Ok(())
    });
}

#[test]
fn look_ups() {
    everywhere(|| {
        let table = counted(&[4, 2]);
        let index = Tensor::from([[3i64, 0], [1, 9]]);
        assert_eq!(
            table.take(&index, 0).to_vec::<f32>()?,
            [6., 7., 0., 1., 2., 3., 0., 0.]
        );
        let order = Tensor::from([[1i64, 0], [0, 0], [1, 1], [0, 1]]);
        assert_eq!(
            table.take_along(&order, 1).to_vec::<f32>()?,
            [1., 0., 2., 2., 5., 5., 6., 7.]
        );
        let zeros = Tensor::zeros([3], DType::F32);
        let sums = zeros.scatter(
            &Tensor::from([0i64, 2, 0]),
            &Tensor::from([1.0f32, 2.0, 4.0]),
            0,
            Some(ReduceOp::Sum),
        );
        assert_eq!(sums.to_vec::<f32>()?, [5., 0., 2.]);
        assert_eq!(
            Tensor::from([1i64, 0])
                .one_hot(3, DType::F32)
                .to_vec::<f32>()?,
            [0., 1., 0., 1., 0., 0.]
        );
        let mask = Tensor::from([1i64, 0, 1, 0]).eq(&Tensor::scalar(1));
        assert_eq!(table.at(&mask).to_vec::<f32>()?, [0., 1., 4., 5.]);
        Ok(())
    });
}

#[test]
fn named_axes_meet_by_name() {
    everywhere(|| {
        let a = counted(&[2, 3]).named(["i", "k"]);
        let b = counted(&[4, 3]).named(["j", "k"]);
        let c = (&a * &b).sum("k");
        assert_eq!(c.shape().to_string(), "[i 2, j 4]");
        assert_eq!(c.to_vec::<f32>()?, [5., 14., 23., 32., 14., 50., 86., 122.]);
        let x = Tensor::index(Axis::named("x", 3)).cast(DType::F32);
        assert_eq!(
            select(&x.gt(&Tensor::scalar(1.0)), &x, &(-&x)).to_vec::<f32>()?,
            [0., -1., 2.]
        );
        Ok(())
    });
}

#[test]
fn gradients_of_a_network() {
    everywhere(|| {
        let x = counted(&[2, 3]);
        let w = counted(&[3, 2]) - 2.0;
        let loss = x.matmul(&w).relu().square().sum(..);
        let [dw] = loss.gradients([&w]);
        // By hand: h = x w = [[1,4],[-5... ]] is checked against finite differences elsewhere.
        let step = 1e-2f32;
        let base = w.to_vec::<f32>()?;
        for at in 0..6 {
            let moved = |by: f32| -> Result<f64, TensorError> {
                let mut values = base.clone();
                values[at] += by;
                x.matmul(&Tensor::new(&values, [3, 2]))
                    .relu()
                    .square()
                    .sum(..)
                    .item()
            };
            let expected = (moved(step)? - moved(-step)?) / f64::from(2.0 * step);
            let got = f64::from(dw.to_vec::<f32>()?[at]);
            assert!(
                (expected - got).abs() < 1e-2 * (1.0 + expected.abs()),
                "{at}: {expected} {got}"
            );
        }
        Ok(())
    });
}

#[test]
fn a_function_is_traced_once_for_a_shape() {
    everywhere(|| {
        let w = Variable::new(&Tensor::from([1.0f32, 2.0]));
        let step = jit("step", {
            let w = w.clone();
            move |x: &Tensor| {
                let loss = (w.get() * x).sum(..);
                w.set(&(w.get() - x * 0.5))?;
                Ok(loss)
            }
        });
        let x = Tensor::from([1.0f32, 1.0]);
        let losses: Vec<Tensor> = (0..3).map(|_| step.call(&x)).collect::<Result<_, _>>()?;
        let losses: Vec<f64> = losses.iter().map(Tensor::item).collect::<Result<_, _>>()?;
        assert_eq!(losses, [3., 2., 1.]);
        let snapshot = w.get();
        step.call(&x)?;
        assert_eq!(snapshot.to_vec::<f32>()?, [-0.5, 0.5]);
        assert_eq!(w.get().to_vec::<f32>()?, [-1., 0.]);
        assert_eq!(step.reports().len(), 1);
        Ok(())
    });
}

/// Outside of compiled functions, too, a variable is known again as long as it is not set.
#[test]
fn gradients_of_variables_that_were_set() {
    everywhere(|| {
        let w = Variable::new(&Tensor::from([1.0f32, 2.0]));
        for _ in 0..3 {
            let loss = (w.get() * w.get()).sum(..);
            let [g] = loss.gradients([&w.get()]);
            w.set(&(w.get() - g * 0.25))?;
        }
        assert_eq!(w.get().to_vec::<f32>()?, [0.125, 0.25]);
        Ok(())
    });
}

#[test]
fn nothing_has_any_shape_without_elements() {
    everywhere(|| {
        for (old, new) in [
            (vec![0, 0], vec![0]),
            (vec![3, 0], vec![0, 5]),
            (vec![0, 4], vec![2, 0, 2]),
        ] {
            let turned = (Tensor::zeros(old, DType::F32) + 1.0).reshape(new.clone());
            assert_eq!(turned.sizes()?, new);
            assert!((&turned * 2.0).to_vec::<f32>()?.is_empty());
            let places = Tensor::from(Vec::<i64>::new());
            let taken = turned.flatten().take(&(&places + &places), 0);
            assert!(taken.to_vec::<f32>()?.is_empty());
        }
        Ok(())
    });
}
