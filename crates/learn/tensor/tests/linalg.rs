//! Linear algebra: what factors and solutions have to satisfy, and gradients.

mod numeric;

use loopwright_tensor::linalg::{
    self, MatrixNorm, cholesky, det, eigh, eigvalsh, inverse, kron, lstsq, matrix_norm, outer, qr,
    slogdet, solve, solve_triangular, svd, svdvals, trace, vector_norm,
};
use loopwright_tensor::{DType, Session, Tensor, TensorError, jit};
use numeric::{check_second_gradients, close, everywhere, random};
use std::slice::from_ref;

type Checked = Result<(), TensorError>;

fn eye(size: usize) -> Tensor {
    Tensor::eye(size, DType::F64)
}

/// Symmetric and positive definite.
fn positive(a: &Tensor) -> Tensor {
    let size = a.sizes().unwrap().pop().unwrap();
    a.matmul(&a.t()) + eye(size) * 0.5
}

#[track_caller]
fn same(a: &Tensor, b: &Tensor, tolerance: f64, what: &str) -> Checked {
    assert_eq!(a.sizes()?, b.sizes()?, "{what}");
    close(&a.to_f64()?, &b.to_f64()?, tolerance, what);
    Ok(())
}

#[test]
fn solutions() {
    everywhere(|| -> Checked {
        let (a, b) = (random(&[2, 5, 5], 1), random(&[5, 3], 2));
        let x = solve(&a, &b);
        assert_eq!(x.sizes()?, [2, 5, 3]);
        same(&a.matmul(&x), &b.broadcast_to([2, 5, 3]), 1e-11, "solve")?;
        // A pivot of 0 in the first place.
        let turned = Tensor::from([[0.0f64, 2.0], [1.0, 0.0]]);
        close(
            &solve(&turned, &Tensor::from([4.0f64, 3.0])).to_f64()?,
            &[3.0, 2.0],
            1e-15,
            "pivot",
        );
        same(
            &a.matmul(&inverse(&a)),
            &eye(5).broadcast_to([2, 5, 5]),
            1e-11,
            "inverse",
        )?;
        let lower = a.tril(0) + eye(5) * 2.0;
        same(
            &lower.matmul(&solve_triangular(&lower, &b, true)),
            &b.broadcast_to([2, 5, 3]),
            1e-12,
            "lower",
        )?;
        let upper = lower.t();
        let vector = b.at((.., 0));
        let x = solve_triangular(&upper.at(0), &vector, false);
        same(&upper.at(0).matmul(&x), &vector, 1e-12, "upper")
    });
}

#[test]
fn determinants() {
    everywhere(|| -> Checked {
        close(
            &[det(&Tensor::from([[1.0f64, 2.0], [3.0, 4.0]])).item()?],
            &[-2.0],
            1e-14,
            "two",
        );
        let turned = Tensor::from([[0.0f64, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);
        close(&[det(&turned).item()?], &[1.0], 0.0, "even");
        let a = random(&[3, 4, 4], 3);
        let both = det(&a.at(0).matmul(&a.at(1))).item()?;
        close(
            &[both],
            &[det(&a.at(0)).item()? * det(&a.at(1)).item()?],
            1e-12,
            "product",
        );
        let (sign, log) = slogdet(&a);
        close(
            &(sign * log.exp()).to_f64()?,
            &det(&a).to_f64()?,
            1e-12,
            "slogdet",
        );
        Ok(())
    });
}

#[test]
fn factors() {
    everywhere(|| -> Checked {
        let a = positive(&random(&[2, 5, 5], 4));
        let l = cholesky(&a);
        same(&l.matmul(&l.t()), &a, 1e-13, "cholesky")?;
        same(&l.tril(0), &l, 0.0, "lower triangle")?;
        let a = random(&[2, 6, 4], 5);
        let (q, r) = qr(&a);
        same(&q.matmul(&r), &a, 1e-13, "q r")?;
        same(
            &q.t().matmul(&q),
            &eye(4).broadcast_to([2, 4, 4]),
            1e-13,
            "orthogonal",
        )?;
        same(&r.triu(0), &r, 0.0, "upper triangle")?;
        // Columns that are nearly the same: done once, they would not be orthogonal.
        let near = Tensor::from([[1.0f64, 1.0], [1e-7, 0.0], [0.0, 1e-7]]);
        let (q, _) = qr(&near);
        same(&q.t().matmul(&q), &eye(2), 1e-13, "near columns")?;
        let b = random(&[6], 6);
        let x = lstsq(&a.at(0), &b);
        // The rest is orthogonal to all columns.
        let rest = b - a.at(0).matmul(&x);
        close(
            &a.at(0).t().matmul(&rest).to_f64()?,
            &[0.0; 4],
            1e-13,
            "lstsq",
        );
        Ok(())
    });
}

#[test]
fn values_and_vectors() {
    everywhere(|| -> Checked {
        let a = random(&[2, 5, 5], 7);
        let a = (&a + a.t()) * 0.5;
        let (values, vectors) = eigh(&a);
        same(
            &a.matmul(&vectors),
            &(&vectors * values.unsqueeze(-2)),
            1e-12,
            "eigh",
        )?;
        same(
            &vectors.t().matmul(&vectors),
            &eye(5).broadcast_to([2, 5, 5]),
            1e-13,
            "orthogonal",
        )?;
        let found = values.to_f64()?;
        assert!(
            found[..5].is_sorted() && found[5..].is_sorted(),
            "{found:?}"
        );
        let (values, _) = eigh(&Tensor::from([[2.0f64, 1.0], [1.0, 2.0]]));
        close(&values.to_f64()?, &[1.0, 3.0], 1e-14, "known values");
        same(&eigvalsh(&a), &eigh(&a).0, 0.0, "eigvalsh")?;
        for shape in [[6, 4], [3, 5]] {
            let a = random(&shape, 8);
            let (u, s, v) = svd(&a);
            let size = shape[0].min(shape[1]);
            same(&(&u * &s).matmul(&v.t()), &a, 1e-12, "svd")?;
            same(&u.t().matmul(&u), &eye(size), 1e-12, "left vectors")?;
            same(&v.t().matmul(&v), &eye(size), 1e-12, "right vectors")?;
            assert!(s.to_f64()?.is_sorted_by(|a, b| a >= b));
            same(&svdvals(&a), &s, 0.0, "svdvals")?;
        }
        Ok(())
    });
}

/// In functions that are traced, all steps are written out.
#[test]
fn the_largest_matrices_of_traced_functions() {
    let session = Session::new("x86").unwrap();
    let checked = session.scope(|| -> Checked {
        let a = random(&[linalg::MAX_SIZE, linalg::MAX_SIZE], 1);
        let b = random(&[linalg::MAX_SIZE], 2);
        let solved = jit("solve", |(a, b): &(Tensor, Tensor)| solve(a, b));
        let x = solved.call(&(a.clone(), b.clone()))?;
        same(&a.matmul(&x), &b, 1e-9, "solve")?;
        let p = positive(&a);
        let l = jit("cholesky", |p: &Tensor| cholesky(p)).call(&p)?;
        same(&l.matmul(&l.t()), &p, 1e-12, "cholesky")?;
        let q = jit("qr", |a: &Tensor| qr(a).0).call(&a)?;
        same(&q.t().matmul(&q), &eye(linalg::MAX_SIZE), 1e-12, "qr")?;
        let a = random(&[linalg::MAX_JACOBI, linalg::MAX_JACOBI], 3);
        let (u, s, v) = jit("svd", |a: &Tensor| svd(a)).call(&a)?;
        same(&(&u * &s).matmul(&v.t()), &a, 1e-12, "svd")?;
        same(
            &u.t().matmul(&u),
            &eye(linalg::MAX_JACOBI),
            1e-11,
            "left vectors",
        )?;
        let p = positive(&a);
        let (values, vectors) = jit("eigh", |p: &Tensor| eigh(p)).call(&p)?;
        same(
            &p.matmul(&vectors),
            &(&vectors * values.unsqueeze(-2)),
            1e-12,
            "eigh",
        )
    });
    checked.unwrap();
}

#[test]
fn gradients() {
    everywhere(|| -> Checked {
        let (a, b) = (random(&[3, 3], 1) + eye(3) * 2.0, random(&[3, 2], 2));
        check_second_gradients(&[a.clone(), b.clone()], |x| solve(&x[0], &x[1]), "solve")?;
        check_second_gradients(
            &[a.clone(), b.clone()],
            |x| solve_triangular(&x[0], &x[1], true),
            "lower",
        )?;
        check_second_gradients(
            &[a.clone(), b.clone()],
            |x| solve_triangular(&x[0], &x[1], false),
            "upper",
        )?;
        check_second_gradients(from_ref(&a), |x| inverse(&x[0]), "inverse")?;
        check_second_gradients(from_ref(&a), |x| det(&x[0]), "det")?;
        check_second_gradients(from_ref(&a), |x| slogdet(&x[0]).1, "slogdet")?;
        check_second_gradients(from_ref(&a), |x| cholesky(&positive(&x[0])), "cholesky")?;
        let tall = random(&[4, 3], 3);
        check_second_gradients(from_ref(&tall), |x| qr(&x[0]).0, "q")?;
        check_second_gradients(from_ref(&tall), |x| qr(&x[0]).1, "r")?;
        check_second_gradients(
            &[tall.clone(), random(&[4], 4)],
            |x| lstsq(&x[0], &x[1]),
            "lstsq",
        )
    });
}

#[test]
fn gradients_of_values_and_vectors() {
    everywhere(|| -> Checked {
        let a = random(&[3, 3], 1) + Tensor::new(&[1.0, 0., 0., 0., 3.0, 0., 0., 0., 6.0], [3, 3]);
        check_second_gradients(
            from_ref(&a),
            |x| eigh(&((&x[0] + x[0].t()) * 0.5)).0,
            "eigenvalues",
        )?;
        // Signs of vectors are open; their squares are not.
        check_second_gradients(
            from_ref(&a),
            |x| eigh(&((&x[0] + x[0].t()) * 0.5)).1.square(),
            "eigenvectors",
        )?;
        let tall = random(&[4, 3], 3);
        check_second_gradients(from_ref(&tall), |x| svd(&x[0]).1, "singular values")?;
        check_second_gradients(from_ref(&tall), |x| svd(&x[0]).0.square(), "left vectors")?;
        check_second_gradients(
            &[tall.t()],
            |x| svd(&x[0]).0.square(),
            "left vectors of a wide one",
        )?;
        check_second_gradients(&[tall], |x| svd(&x[0]).2.square(), "right vectors")
    });
}

#[test]
fn norms_and_products() {
    everywhere(|| -> Checked {
        let x = Tensor::from([3.0f64, -4.0, 0.0]);
        let norm = |p: f64| vector_norm(&x, p, ..).item();
        assert_eq!(
            [norm(0.0)?, norm(1.0)?, norm(2.0)?, norm(f64::INFINITY)?],
            [2., 7., 5., 4.]
        );
        close(&[norm(3.0)?], &[91f64.cbrt()], 1e-14, "cubes");
        let a = Tensor::from([[1.0f64, -2.0], [3.0, 4.0]]);
        let of = |norm| matrix_norm(&a, norm).item();
        close(
            &[of(MatrixNorm::Frobenius)?],
            &[30f64.sqrt()],
            1e-14,
            "frobenius",
        );
        assert_eq!(
            [of(MatrixNorm::One)?, of(MatrixNorm::Infinity)?],
            [6.0, 7.0]
        );
        let product = of(MatrixNorm::Spectral)?.powi(2)
            + (det(&a).item()? / of(MatrixNorm::Spectral)?).powi(2);
        close(&[product], &[30.0], 1e-12, "spectral");
        close(
            &[of(MatrixNorm::Nuclear)?.powi(2)],
            &[30.0 + 2.0 * 10.0],
            1e-12,
            "nuclear",
        );
        assert_eq!(trace(&a).item()?, 5.0);
        assert_eq!(
            outer(&x, &Tensor::from([1.0f64, 2.0])).to_f64()?,
            [3., 6., -4., -8., 0., 0.]
        );
        let blocks = kron(&a, &Tensor::from([[0.0f64, 1.0]]));
        assert_eq!(blocks.to_f64()?, [0., 1., 0., -2., 0., 3., 0., 4.]);
        Ok(())
    });
}

#[test]
fn mistakes() {
    let text = |tensor: Tensor| tensor.check().unwrap_err().kind().to_string();
    assert_eq!(
        text(inverse(&random(&[2, 3], 1))),
        "`inverse` of [2, 3]: it has 2 rows and 3 columns, which must be as many"
    );
    assert_eq!(
        text(qr(&random(&[2, 3], 1)).0),
        "`qr` of [2, 3]: it has 2 rows, fewer than its 3 columns"
    );
    let traced = jit("traced", |a: &Tensor| det(a));
    let error = traced
        .call(&Tensor::zeros([129, 129], DType::F32))
        .unwrap_err();
    assert_eq!(
        error.kind().to_string(),
        "`det` of [129, 129]: 129 steps would be written out, and 128 are the most where values are not known"
    );
    assert_eq!(
        text(solve(&eye(3), &random(&[2], 1))),
        "`solve` of [3, 3] and [2]: the left side has 3 rows and the right side 2, which must be as many"
    );
    assert_eq!(
        text(linalg::eigh(&Tensor::from([[1i64]])).0),
        "`eigh` needs a matrix of floats, not i64"
    );
}
