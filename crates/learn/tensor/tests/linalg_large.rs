//! Linear algebra of matrices that are taken apart on the host: the same functions, of any size.

mod numeric;

use loopwright_tensor::linalg::{
    self, cholesky, complement, det, eigh, eigvalsh, inverse, lstsq, qr, slogdet, solve,
    solve_triangular, svd, svdvals,
};
use loopwright_tensor::{DType, Session, Tensor, TensorError, concat, jacobian, jit, vmap};
use numeric::{close, everywhere, random, values};

type Checked = Result<(), TensorError>;

fn eye_like(a: &Tensor) -> Tensor {
    let size = a.sizes().unwrap().pop().unwrap();
    Tensor::eye(size, a.dtype()).broadcast_to(a.shape())
}

fn symmetric(a: &Tensor) -> Tensor {
    (a + a.t()) * 0.5
}

fn positive(a: &Tensor) -> Tensor {
    a.matmul(&a.t()) + eye_like(a)
}

/// Fails unless two tensors are within some units of rounding of their dtype of each other.
#[track_caller]
fn same(a: &Tensor, b: &Tensor, units: f64, what: &str) -> Checked {
    let unit = match a.dtype() {
        DType::F64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    };
    assert_eq!((a.dtype(), a.sizes()?), (b.dtype(), b.sizes()?), "{what}");
    close(&a.to_f64()?, &b.to_f64()?, units * unit, what);
    Ok(())
}

#[track_caller]
fn check_orthonormal(q: &Tensor, what: &str) -> Checked {
    let inner = q.t().matmul(q);
    same(&inner, &eye_like(&inner), 256.0, what)
}

#[test]
fn values_and_vectors() {
    everywhere(|| {
        for (shape, dtype) in [
            (vec![9, 9], DType::F64),
            (vec![70, 70], DType::F32),
            (vec![2, 3, 20, 20], DType::F32),
            (vec![150, 150], DType::F64),
        ] {
            let a = symmetric(&random(&shape, 1).cast(dtype));
            let (values, vectors) = eigh(&a);
            let scaled = &vectors * values.unsqueeze(-2);
            same(&a.matmul(&vectors), &scaled, 4096.0, "eigh")?;
            check_orthonormal(&vectors, "eigenvectors")?;
            same(&eigvalsh(&a), &values, 0.0, "eigvalsh")?;
            let size = shape[shape.len() - 1];
            let values = values.to_f64()?;
            assert!(values.chunks(size).all(|values| values.is_sorted()));
        }
        for (shape, dtype) in [
            (vec![9, 9], DType::F64),
            (vec![140, 30], DType::F32),
            (vec![30, 140], DType::F64),
            (vec![2, 3, 20, 12], DType::F32),
            (vec![150, 150], DType::F64),
        ] {
            let a = random(&shape, 2).cast(dtype);
            let (u, s, v) = svd(&a);
            let made = (&u * s.unsqueeze(-2)).matmul(&v.t());
            same(&made, &a, 1024.0, "svd")?;
            check_orthonormal(&u, "left vectors")?;
            check_orthonormal(&v, "right vectors")?;
            same(&svdvals(&a), &s, 0.0, "svdvals")?;
            let size = shape[shape.len() - 2..].iter().min().unwrap();
            let s = s.to_f64()?;
            assert!(s.chunks(*size).all(|s| s.is_sorted_by(|a, b| a >= b)));
        }
        // A matrix of rank one still has all vectors.
        let (u, s, v) = svd(&Tensor::ones([40, 25], DType::F64));
        check_orthonormal(&u, "left vectors of zeros")?;
        check_orthonormal(&v, "right vectors of zeros")?;
        close(&s.to_f64()?[..2], &[1000f64.sqrt(), 0.0], 1e-13, "rank one");
        Ok(())
    });
}

#[test]
fn solutions_and_factors() {
    everywhere(|| {
        for (lead, size, dtype) in [
            (vec![], 150, DType::F64),
            (vec![2], 20, DType::F64),
            (vec![], 60, DType::F32),
        ] {
            let shape = |tail: &[usize]| [&lead[..], tail].concat();
            let a = random(&shape(&[size, size]), 1).cast(dtype);
            let b = random(&[size, 2], 2).cast(dtype);
            let wide = b.broadcast_to(shape(&[size, 2]));
            // Some of these matrices are not far from singular ones.
            same(&a.matmul(&solve(&a, &b)), &wide, 1e5, "solve")?;
            let one = a.matmul(&inverse(&a));
            same(&one, &eye_like(&a), 1e5, "inverse")?;
            let lower = a.tril(-1) * 0.1 + eye_like(&a);
            let x = solve_triangular(&lower, &b, true);
            same(&lower.matmul(&x), &wide, 256.0, "lower")?;
            let x = solve_triangular(&lower.t(), &b, false);
            same(&lower.t().matmul(&x), &wide, 256.0, "upper")?;
            let p = positive(&a);
            let l = cholesky(&p);
            same(&l.matmul(&l.t()), &p, 1024.0, "cholesky")?;
            same(&l, &l.tril(0), 0.0, "lower triangle")?;
            let (sign, log) = slogdet(&a);
            let (scaled, power) = (&a * 0.3, (size as f64) * 0.3f64.ln());
            let determinant = sign * (log + power).exp();
            same(&det(&scaled), &determinant, 1e5, "det")?;
            let tall = random(&shape(&[2 * size, size]), 3).cast(dtype);
            let (q, r) = qr(&tall);
            same(&q.matmul(&r), &tall, 256.0, "qr")?;
            check_orthonormal(&q, "q")?;
            same(&r, &r.triu(0), 0.0, "upper triangle")?;
            let whole = concat(&[&q, &complement(&q)], -1);
            check_orthonormal(&whole, "complement")?;
            let b = random(&[2 * size, 1], 4).cast(dtype);
            let rest = &b - tall.matmul(&lstsq(&tall, &b));
            let along = tall.t().matmul(&rest);
            same(&along, &along.zeros_like(), 1024.0, "lstsq")?;
        }
        Ok(())
    });
}

/// Fails unless the gradient of a weighted sum of a result, along a direction, is that of finite differences.
#[track_caller]
fn check_slope(a: &Tensor, function: impl Fn(&Tensor) -> Tensor, what: &str) -> Checked {
    let sizes = a.sizes()?;
    let direction = random(&sizes, 9);
    let weighted = |a: &Tensor| -> Tensor {
        let result = function(a).flatten();
        let weight = values(result.sizes().unwrap()[0], 8);
        (result * Tensor::from(weight)).sum(..)
    };
    let [gradient] = weighted(a).gradients([a]);
    let slope = (gradient * &direction).sum(..).item()?;
    let step = 1e-6;
    let ends = [step, -step].map(|by| weighted(&(a + &direction * by)).item());
    let [after, before] = ends;
    close(&[slope], &[(after? - before?) / (2.0 * step)], 1e-5, what);
    Ok(())
}

fn check_gradients(size: usize) -> Checked {
    let spread = Tensor::from((0..size).map(|i| i as f64).collect::<Vec<_>>());
    let far = random(&[size, size], 1) * 0.1 + Tensor::eye(size, DType::F64) * &spread;
    check_slope(&far, |x| eigh(&symmetric(x)).0, "eigenvalues")?;
    check_slope(&far, |x| eigvalsh(&symmetric(x)), "eigvalsh")?;
    check_slope(&far, |x| eigh(&symmetric(x)).1.square(), "eigenvectors")?;
    let tall = concat(&[&far, &random(&[5, size], 2)], 0) + 0.1;
    check_slope(&tall, |x| svd(x).0.square(), "left vectors")?;
    check_slope(&tall, |x| svd(x).1, "singular values")?;
    check_slope(&tall.t(), svdvals, "svdvals")?;
    check_slope(&tall.t(), |x| svd(x).2.square(), "of a wide one")?;
    let a = random(&[size, size], 3) * 0.1 + Tensor::eye(size, DType::F64) * 3.0;
    let b = random(&[size], 4);
    check_slope(&a, |a| solve(a, &b), "solve")?;
    check_slope(&b, |b| solve(&a, b), "solve, right side")?;
    check_slope(&a, inverse, "inverse")?;
    check_slope(&(&a * 0.35), det, "det")?;
    check_slope(&a, |a| slogdet(a).1, "slogdet")?;
    check_slope(&a, |a| cholesky(&positive(a)), "cholesky")?;
    check_slope(&a, |a| solve_triangular(a, &b, true), "lower")?;
    check_slope(&tall, |a| qr(a).0, "q")?;
    check_slope(&tall, |a| qr(a).1, "r")?;
    // The columns beside turn in themselves, but what they span does not.
    let other = |a: &Tensor| {
        let other = complement(&qr(a).0);
        other.matmul(&other.t())
    };
    check_slope(&tall, other, "complement")
}

#[test]
fn gradients() {
    everywhere(|| check_gradients(12));
}

/// More than there could be steps written out.
#[test]
fn gradients_of_large_matrices() {
    let session = Session::new("x86").unwrap();
    session.scope(|| check_gradients(140)).unwrap();
}

/// What is mapped is not known, but the matrix is.
#[test]
fn jacobians() {
    everywhere(|| {
        let a = random(&[12, 12], 1) + Tensor::eye(12, DType::F64) * 4.0;
        let b = random(&[12], 2);
        let slopes = jacobian(|b: &Tensor| solve(&a, b), &b)?;
        same(&slopes, &inverse(&a), 64.0, "of a solution")?;
        let values = jacobian(|a: &Tensor| eigh(a).0, &symmetric(&a))?;
        let (_, vectors) = eigh(&symmetric(&a));
        let expected = vectors.t().unsqueeze(-1) * vectors.t().unsqueeze(-2);
        same(&values, &expected, 256.0, "of eigenvalues")
    });
}

#[test]
fn in_traced_functions() {
    everywhere(|| {
        let a = random(&[40, 40], 1);
        let text = |error: TensorError| error.kind().to_string();
        let traced = jit("traced", |a: &Tensor| svd(a).1);
        assert_eq!(
            text(traced.call(&a).unwrap_err()),
            "`svd` of [40, 40]: 40 steps would be written out, and 32 are the most where values are not known"
        );
        let mapped = vmap(|a: &Tensor| eigh(a).0);
        let batch = random(&[2, 40, 40], 2);
        assert!(mapped.call(&batch).is_err());
        let columns = jit("columns", |a: &Tensor| complement(&a.narrow(1, 0, 3)));
        assert_eq!(
            text(columns.call(&a).unwrap_err()),
            "`complement` of [40, 3]: its values are not known, as in a function that is traced"
        );
        // One that is no argument is known.
        let known = a.clone();
        let traced = jit("known", move |x: &Tensor| svd(&known).1 * x);
        let two = Tensor::from([2.0f64]).sum(..);
        same(&traced.call(&two)?, &(svd(&a).1 * 2.0), 0.0, "known")?;
        // What is small enough is written out, and comes to the same.
        let small = a.narrow(0, 0, 12).narrow(1, 0, 12);
        let traced = jit("small", |a: &Tensor| svd(a).1).call(&small)?;
        same(&traced, &svd(&small).1, 256.0, "small")
    });
}

/// All steps in one loop over the batch: the arrays between them would be more than a stack is, were each its own.
#[test]
fn many_steps_for_each_of_a_batch() {
    Session::new("x86").unwrap().scope(|| {
        let a = positive(&random(&[4, 32, 32], 3).cast(DType::F32));
        let values = jit("values", |a: &Tensor| eigh(a).0);
        same(&values.call(&a).unwrap(), &eigvalsh(&a), 64.0, "eigh").unwrap();
        let a = positive(&random(&[3, 64, 64], 4).cast(DType::F32));
        let solutions = jit("solutions", |a: &Tensor| solve(a, a));
        same(&solutions.call(&a).unwrap(), &eye_like(&a), 4096.0, "solve").unwrap();
    });
}

#[test]
fn what_is_not_finite() {
    everywhere(|| {
        for wrong in [f64::NAN, f64::INFINITY] {
            let mut elements = values(2 * 15 * 15, 1);
            elements[7] = wrong;
            let a = Tensor::new(&elements, [2, 15, 15]);
            let all = |x: &Tensor, of: fn(f64) -> bool| -> Result<bool, TensorError> {
                Ok(x.to_f64()?.into_iter().all(of))
            };
            let (values, vectors) = eigh(&a);
            let (u, s, v) = svd(&a);
            let (q, r) = qr(&a);
            for x in [values, vectors, u, s, v, q, r, inverse(&a), det(&a)] {
                assert!(all(&x.at(0), f64::is_nan)?);
                assert!(all(&x.at(1), f64::is_finite)?);
            }
        }
        let zeros = Tensor::zeros([15, 15], DType::F64);
        assert_eq!(det(&zeros).item()?, 0.0);
        assert_eq!(slogdet(&zeros).1.item()?, f64::NEG_INFINITY);
        assert!(!inverse(&zeros).to_f64()?.iter().any(|x| x.is_finite()));
        assert!(cholesky(&-eye_like(&zeros)).item().is_err());
        assert!(cholesky(&-eye_like(&zeros)).to_f64()?[0].is_nan());
        assert_eq!(eigh(&zeros).0.to_f64()?, [0.0; 15]);
        assert_eq!(svd(&zeros).1.to_f64()?, [0.0; 15]);
        let none = Tensor::zeros([0, 15, 15], DType::F64);
        assert_eq!(eigh(&none).1.sizes()?, [0, 15, 15]);
        Ok(())
    });
}

#[test]
fn what_is_in_the_other_triangle_is_not_looked_at() {
    everywhere(|| {
        let a = positive(&random(&[2, 12, 12], 5));
        let hidden = (Tensor::ones([12, 12], DType::F64).triu(1) * f64::NAN).triu(1);
        let lower = a.tril(0) + &hidden;
        let l = cholesky(&a);
        same(&cholesky(&lower), &l, 4.0, "cholesky")?;
        let b = random(&[2, 12, 3], 6);
        let x = solve_triangular(&l, &b, true);
        same(
            &solve_triangular(&(&l + &hidden), &b, true),
            &x,
            4.0,
            "lower",
        )?;
        let x = solve_triangular(&l.t(), &b, false);
        let upper = l.t() + hidden.t();
        same(&solve_triangular(&upper, &b, false), &x, 4.0, "upper")
    });
}

#[test]
fn mistakes() {
    let text = |tensor: Tensor| tensor.check().unwrap_err().kind().to_string();
    assert_eq!(
        text(complement(&random(&[3, 3], 1))),
        "`complement` of [3, 3]: there is nothing beside 3 columns with 3 rows"
    );
    assert_eq!(
        text(svd(&Tensor::zeros([20, 0], DType::F64)).0),
        "`svd` of [20, 0]: a matrix has rows and columns"
    );
    assert!(linalg::is_on_host(&random(&[20, 20], 1)));
    assert!(!linalg::is_on_host(&random(&[20, 3], 1)));
}
