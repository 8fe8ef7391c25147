//! Einsum against loops written out.

mod numeric;

use loopwright_tensor::{
    DType, Einsum, Op, ReduceOp, Tensor, TensorError, einsum, einsum_with, unknown,
};
use numeric::{check_second_gradients, close, everywhere, random};

type Checked = Result<(), TensorError>;

/// A result over `output` index ranges, each element a sum over `inner` ones.
fn summed(output: &[usize], inner: &[usize], term: impl Fn(&[usize], &[usize]) -> f64) -> Vec<f64> {
    let places = |sizes: &[usize]| -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new()];
        for size in sizes {
            all = all
                .into_iter()
                .flat_map(|place: Vec<usize>| {
                    (0..*size).map(move |at| place.iter().copied().chain([at]).collect())
                })
                .collect();
        }
        all
    };
    let inner = places(inner);
    places(output)
        .iter()
        .map(|place| inner.iter().map(|at| term(place, at)).sum())
        .collect()
}

#[test]
fn plain_formulas() {
    everywhere(|| -> Checked {
        let (a, b) = (random(&[3, 4], 1), random(&[4, 5], 2));
        let (x, y) = (a.to_f64()?, b.to_f64()?);
        let product = summed(&[3, 5], &[4], |o, k| {
            x[o[0] * 4 + k[0]] * y[k[0] * 5 + o[1]]
        });
        close(
            &einsum("ij,jk->ik", &[&a, &b]).to_f64()?,
            &product,
            1e-12,
            "matmul",
        );
        close(
            &einsum("ij,jk", &[&a, &b]).to_f64()?,
            &product,
            1e-12,
            "implied",
        );
        close(
            &einsum("row in, in column -> row column", &[&a, &b]).to_f64()?,
            &product,
            1e-12,
            "words",
        );
        close(
            &einsum("ij->ji", &[&a]).to_f64()?,
            &a.t().to_f64()?,
            0.0,
            "turned",
        );
        close(
            &einsum("ba", &[&a]).to_f64()?,
            &a.t().to_f64()?,
            0.0,
            "alphabetical",
        );
        close(
            &einsum("ij->", &[&a]).to_f64()?,
            &[x.iter().sum()],
            1e-12,
            "sum",
        );
        let outer = summed(&[3, 4, 4, 5], &[], |_, _| 0.0).len();
        assert_eq!(einsum("ij,kl->ijkl", &[&a, &b]).to_f64()?.len(), outer);
        let square = random(&[4, 4], 3);
        let s = square.to_f64()?;
        close(
            &einsum("ii->i", &[&square]).to_f64()?,
            &[s[0], s[5], s[10], s[15]],
            0.0,
            "diagonal",
        );
        close(
            &einsum("ii", &[&square]).to_f64()?,
            &[s[0] + s[5] + s[10] + s[15]],
            1e-12,
            "trace",
        );
        let line = random(&[3], 4);
        let l = line.to_f64()?;
        let diagonal = summed(&[3, 3], &[], |_, _| 0.0);
        assert_eq!(diagonal.len(), 9);
        let expected = [l[0], 0., 0., 0., l[1], 0., 0., 0., l[2]];
        let whole = einsum("i->ii", &[&Tensor::from([1i64, 2])]);
        assert_eq!(whole.to_vec::<i64>()?, [1, 0, 0, 2]);
        close(
            &einsum("i->ii", &[&line]).to_f64()?,
            &expected,
            0.0,
            "to a diagonal",
        );
        Ok(())
    });
}

#[test]
fn three_operands_and_more() {
    everywhere(|| -> Checked {
        let (a, b, c) = (random(&[3, 4], 1), random(&[4, 5], 2), random(&[5, 2], 3));
        let expected = a.matmul(&b).matmul(&c).to_f64()?;
        close(
            &einsum("ij,jk,kl->il", &[&a, &b, &c]).to_f64()?,
            &expected,
            1e-12,
            "chain",
        );
        let (u, v) = (random(&[3], 4), random(&[2], 5));
        let form = einsum("i,ij,jk,kl,l->", &[&u, &a, &b, &c, &v]).item()?;
        let by_hand = u.matmul(&a.matmul(&b).matmul(&c)).matmul(&v).item()?;
        close(&[form], &[by_hand], 1e-12, "bilinear form");
        check_second_gradients(
            &[a, b, c],
            |x| einsum("ij,jk,kl->il", &[&x[0], &x[1], &x[2]]),
            "chain",
        )
    });
}

#[test]
fn the_rest_meets_as_operands_do() {
    everywhere(|| -> Checked {
        let (a, b) = (random(&[2, 1, 3, 4], 1), random(&[6, 4, 5], 2));
        let product = einsum("...ij,...jk->...ik", &[&a, &b]);
        assert_eq!(product.sizes()?, [2, 6, 3, 5]);
        close(
            &product.to_f64()?,
            &a.matmul(&b).to_f64()?,
            1e-12,
            "batched",
        );
        let total = einsum("...i->i", &[&a]);
        close(
            &total.to_f64()?,
            &a.sum([0, 1, 2]).to_f64()?,
            1e-12,
            "the rest is summed",
        );
        assert_eq!(einsum("i...->...i", &[&a]).sizes()?, [1, 3, 4, 2]);
        check_second_gradients(
            &[a, b],
            |x| einsum("...ij,...jk->...ik", &[&x[0], &x[1]]),
            "batched",
        )
    });
}

#[test]
fn fixed_places() {
    everywhere(|| -> Checked {
        let a = random(&[3, 4], 1);
        close(
            &einsum("i1->i", &[&a]).to_f64()?,
            &a.at((.., 1)).to_f64()?,
            0.0,
            "column",
        );
        let new = einsum("ij->i0j", &[&a]);
        assert_eq!(new.sizes()?, [3, 1, 4]);
        let line = random(&[2], 2);
        let l = line.to_f64()?;
        close(
            &einsum("i->2i", &[&line]).to_f64()?,
            &[0., 0., 0., 0., l[0], l[1]],
            0.0,
            "put",
        );
        check_second_gradients(&[line], |x| einsum("i->2i", &[&x[0]]), "put")
    });
}

#[test]
fn steps_and_windows() {
    everywhere(|| -> Checked {
        let (x, w) = (random(&[2, 11], 1), random(&[3], 2));
        let (xs, ws) = (x.to_f64()?, w.to_f64()?);
        let plain = einsum("b 2*i+k, k -> b i", &[&x, &w]);
        let expected = summed(&[2, 5], &[3], |o, k| {
            xs[o[0] * 11 + 2 * o[1] + k[0]] * ws[k[0]]
        });
        close(&plain.to_f64()?, &expected, 1e-12, "stride");
        let wide = einsum("b i+3*k, k -> b i", &[&x, &w]);
        let expected = summed(&[2, 5], &[3], |o, k| {
            xs[o[0] * 11 + o[1] + 3 * k[0]] * ws[k[0]]
        });
        close(&wide.to_f64()?, &expected, 1e-12, "dilation");
        let padded = einsum("b i+k-1, k -> b i", &[&x, &w]);
        let expected = summed(&[2, 11], &[3], |o, k| {
            let at = (o[1] + k[0]).checked_sub(1).filter(|at| *at < 11);
            at.map_or(0.0, |at| xs[o[0] * 11 + at] * ws[k[0]])
        });
        close(&padded.to_f64()?, &expected, 1e-12, "padding");
        let later = einsum("b i+2 -> b i", &[&x]);
        close(
            &later.to_f64()?,
            &x.at((.., 2..)).to_f64()?,
            0.0,
            "from a place on",
        );
        // The other way: every input element adds a window of the result.
        let back = einsum("b i, k -> b 2*i+k", &[&x.at((.., ..4)), &w]);
        assert_eq!(back.sizes()?, [2, 9]);
        let expected = summed(&[2, 9], &[4, 3], |o, i| match 2 * i[0] + i[1] == o[1] {
            true => xs[o[0] * 11 + i[0]] * ws[i[1]],
            false => 0.0,
        });
        close(&back.to_f64()?, &expected, 1e-12, "transposed");
        check_second_gradients(
            &[x.clone(), w.clone()],
            |x| einsum("b 2*i+k-1, k -> b i", &[&x[0], &x[1]]),
            "windows",
        )?;
        check_second_gradients(
            &[x.at((.., ..4)), w],
            |x| einsum("b i, k -> b 2*i+k", &[&x[0], &x[1]]),
            "transposed",
        )
    });
}

#[test]
fn sizes_are_found_in_both_directions() {
    everywhere(|| -> Checked {
        // The kernel's size follows from the input's and the result's.
        let (x, y) = (random(&[11], 1), random(&[5], 2));
        let (correlation, sizes) = Einsum::new("2*i+k, i -> k").capture(&[&x, &y]);
        assert_eq!(sizes.known("k"), Some(3));
        assert_eq!(correlation.sizes()?, [3]);
        // An unknown input follows from the result.
        let w = Tensor::zeros([unknown("w"), unknown("w")], DType::F64);
        let product = einsum("ij,jk->ik", &[&random(&[2, 3], 1), &w]);
        let sum = product + random(&[2, 7], 2);
        assert_eq!(w.sizes()?, [3, 7]);
        assert_eq!(sum.sizes()?, [2, 7]);
        let (split, sizes) = Einsum::new("t (h d) -> h t d")
            .size("h", 2)
            .capture(&[&random(&[3, 8], 1)]);
        assert_eq!(split.sizes()?, [2, 3, 4]);
        assert_eq!(sizes.value("d").item()?, 4.0);
        Ok(())
    });
}

#[test]
fn groups() {
    everywhere(|| -> Checked {
        let x = random(&[3, 8], 1);
        let split = Einsum::new("t (h d) -> h t d").size("d", 4).of(&[&x]);
        let expected = x.reshape([3, 2, 4]).permute([1, 0, 2]);
        close(&split.to_f64()?, &expected.to_f64()?, 0.0, "split");
        let joined = einsum("h t d -> t (h d)", &[&split]);
        close(&joined.to_f64()?, &x.to_f64()?, 0.0, "merged");
        check_second_gradients(
            &[x],
            |x| {
                Einsum::new("t (h d), s (h d) -> h t s")
                    .size("h", 2)
                    .of(&[&x[0], &x[0]])
            },
            "scores",
        )
    });
}

#[test]
fn blocks() {
    everywhere(|| -> Checked {
        let (a, b) = (random(&[2, 3], 1), random(&[4, 3], 2));
        let (x, y) = (a.to_f64()?, b.to_f64()?);
        let joined = einsum("ik,jk->i^jk", &[&a, &b]);
        close(
            &joined.to_f64()?,
            &[x.clone(), y.clone()].concat(),
            0.0,
            "joined",
        );
        let first = Einsum::new("i^jk->ik").size("j", 4).of(&[&joined]);
        close(&first.to_f64()?, &x, 0.0, "first block");
        let second = Einsum::new("i^jk->jk").size("j", 4).of(&[&joined]);
        close(&second.to_f64()?, &y, 0.0, "second block");
        // A product with a matrix of blocks.
        let (u, v) = (random(&[2], 3), random(&[4], 4));
        let product = einsum("i^jk,i,j->k", &[&joined, &u, &v]);
        let expected = einsum("ik,i->k", &[&a, &u]) + einsum("jk,j->k", &[&b, &v]);
        close(&product.to_f64()?, &expected.to_f64()?, 1e-12, "by blocks");
        check_second_gradients(
            &[a, b],
            |x| einsum("ik,jk->i^jk", &[&x[0], &x[1]]),
            "joined",
        )
    });
}

#[test]
fn other_semirings() {
    everywhere(|| -> Checked {
        let (a, b) = (random(&[3, 4], 1), random(&[4, 5], 2));
        let (x, y) = (a.to_f64()?, b.to_f64()?);
        let best = |least: bool| {
            let mut found = Vec::new();
            for i in 0..3 {
                for k in 0..5 {
                    let sums = (0..4).map(|j| x[i * 4 + j] + y[j * 5 + k]);
                    found.push(match least {
                        true => sums.fold(f64::INFINITY, f64::min),
                        false => sums.fold(f64::NEG_INFINITY, f64::max),
                    });
                }
            }
            found
        };
        let largest = einsum_with(ReduceOp::Max, Op::Add, "ij,jk->ik", &[&a, &b]);
        close(&largest.to_f64()?, &best(false), 0.0, "max-plus");
        let smallest = einsum_with(ReduceOp::Min, Op::Add, "ij,jk->ik", &[&a, &b]);
        close(&smallest.to_f64()?, &best(true), 0.0, "min-plus");
        let zero = Tensor::new(&[0.0], ());
        let (p, q) = (a.gt(&zero), b.gt(&zero));
        let reach = einsum_with(ReduceOp::Any, Op::And, "ij,jk->ik", &[&p, &q]);
        let count = einsum("ij,jk->ik", &[&p.cast(DType::F64), &q.cast(DType::F64)]);
        let expected: Vec<f64> = count
            .to_f64()?
            .iter()
            .map(|count| f64::from(*count > 0.0))
            .collect();
        close(&reach.cast(DType::F64).to_f64()?, &expected, 0.0, "any-and");
        // The largest in padded windows.
        let pooled = einsum_with(
            ReduceOp::Max,
            Op::Add,
            "i+k-1,k->i",
            &[&a.at(0), &Tensor::zeros([3], DType::F64)],
        );
        let expected: Vec<f64> = (0..4usize)
            .map(|i| {
                (i.saturating_sub(1)..(i + 2).min(4))
                    .map(|at| x[at])
                    .fold(f64::NEG_INFINITY, f64::max)
            })
            .collect();
        close(&pooled.to_f64()?, &expected, 0.0, "pool");
        // A pair that does not distribute: all are combined first.
        let norm = einsum_with(ReduceOp::Sum, Op::Max, "ij,jk->ik", &[&a, &b]);
        let mut expected = Vec::new();
        for i in 0..3 {
            for k in 0..5 {
                expected.push((0..4).map(|j| x[i * 4 + j].max(y[j * 5 + k])).sum());
            }
        }
        close(&norm.to_f64()?, &expected, 1e-12, "sum of maxima");
        check_second_gradients(
            &[a, b],
            |x| einsum_with(ReduceOp::Max, Op::Add, "ij,jk->ik", &[&x[0], &x[1]]),
            "max-plus",
        )
    });
}

#[test]
fn named_axes() {
    everywhere(|| -> Checked {
        let a = random(&[3, 4], 1).named(["time", "width"]);
        let b = random(&[5, 4], 2).named(["out", "width"]);
        // By name, in whatever order the term has them.
        let product = einsum("width time, out width -> time out", &[&a, &b]);
        assert_eq!(product.shape().to_string(), "[time 3, out 5]");
        let expected = a.unnamed().matmul(&b.unnamed().t());
        close(&product.to_f64()?, &expected.to_f64()?, 1e-12, "by name");
        // By place, where the term has other names.
        let by_place = einsum("ij,kj->ik", &[&a, &b]);
        assert_eq!(by_place.shape().to_string(), "[time 3, out 5]");
        let rest = einsum("... width -> ...", &[&a]);
        assert_eq!(rest.shape().to_string(), "[time 3]");
        Ok(())
    });
}

#[test]
fn mistakes_show_their_place() {
    let text = |tensor: Tensor| tensor.check().unwrap_err().kind().to_string();
    let (a, b) = (random(&[2, 3], 1), random(&[4, 5], 2));
    assert_eq!(
        text(einsum("ij,jk->ik", &[&a, &b])),
        "`einsum` of [2, 3] and [4, 5]: `j` is 4 here and 3 before\n  ij,jk->ik\n     ^"
    );
    assert_eq!(
        text(einsum("ij,jk->ik", &[&a])),
        "`einsum` of [2, 3]: the formula has 2 terms for operands, and 1 is given\n  ij,jk->ik\n  ^^^^^"
    );
    assert_eq!(
        text(einsum("ijk->i", &[&a])),
        "`einsum` of [2, 3]: the term is for 3 axes, and the operand [2, 3] has 2\n  ijk->i\n  ^^^"
    );
    assert_eq!(
        text(einsum("ij->ik", &[&a])),
        "`einsum` of [2, 3]: `k` is in no operand; say how long it is with `Einsum::size`\n  ij->ik\n       ^"
    );
    assert_eq!(
        text(einsum("i7->i", &[&a])),
        "`einsum` of [2, 3]: place 7 is outside of an axis of size 3\n  i7->i\n   ^"
    );
    assert_eq!(
        text(einsum("i j+k, k -> i j", &[&a, &b.at(0)])),
        "`einsum` of [2, 3] and [5]: the windows do not fit into an axis of size 3\n  i j+k, k -> i j\n    ^^^"
    );
    assert_eq!(
        text(Einsum::new("i (h d) -> i h d").size("h", 2).of(&[&a])),
        "`einsum` of [2, 3]: an axis of size 3 cannot be this, where `h` is 2 and `d` is not known yet\n  i (h d) -> i h d\n    ^^^^^"
    );
    assert_eq!(
        text(einsum_with(ReduceOp::Max, Op::Add, "i->ii", &[&b.at(0)])),
        "`einsum` of [5]: the zeros beside it would be no neutral elements of `max`; only sums are put at places\n  i->ii\n      ^"
    );
    let undecided = einsum("i+k->ik", &[&b.at(0)]).realize().unwrap_err();
    assert!(
        undecided
            .kind()
            .to_string()
            .contains("`i` in the einsum `i+k->ik`"),
        "{undecided}"
    );
    assert!(undecided.place().file().ends_with("einsum.rs"));
}
