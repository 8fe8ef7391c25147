//! Canonical forms, signs, limits and text, one case at a time.

use loopwright_symbolic::{
    Bounds, Cmp, DEPTH_LIMIT, Error, Expr, ExprKind, Range, Symbol, affine, differentiate,
    differentiate_within, intercept, isolate,
};

const I: Symbol = Symbol(0);
const J: Symbol = Symbol(1);
const N: Symbol = Symbol(2);

fn c(value: i64) -> Expr {
    Expr::constant(value)
}

fn s(symbol: Symbol) -> Expr {
    Expr::symbol(symbol)
}

fn name(symbol: Symbol) -> String {
    ["i", "j", "N"]
        .get(usize::from(symbol))
        .map_or(format!("s{}", symbol.0), |name| name.to_string())
}

fn text(expr: Result<Expr, Error>) -> String {
    match expr {
        Ok(expr) => expr.display(&name).to_string(),
        Err(error) => format!("error: {}", error.display(&name)),
    }
}

/// `i*a + j*b + k`.
fn linear(a: i64, b: i64, k: i64) -> Expr {
    let sum = s(I)
        .mul(&c(a))
        .and_then(|x| x.add(&s(J).mul(&c(b))?))
        .and_then(|x| x.add(&c(k)));
    sum.expect("the coefficients of these tests fit")
}

fn at(expr: &Expr, i: i64) -> Result<i64, Error> {
    expr.evaluate(&|symbol| (symbol == I).then_some(i))
}

#[test]
fn division_rounds_down_for_all_signs() {
    let cases = [
        (7, 2, 3, 1),
        (-7, 2, -4, 1),
        (7, -2, -4, -1),
        (-7, -2, 3, -1),
        (-1, 2, -1, 1),
        (-1, 4, -1, 3),
        (1, -4, -1, -3),
        (-8, 4, -2, 0),
        (8, -4, -2, 0),
        (0, -3, 0, 0),
        (i64::MIN, 2, i64::MIN / 2, 0),
        (i64::MAX, -2, i64::MIN / 2, -1),
        ((1 << 24) + 1, 2, 1 << 23, 1),
    ];
    for (a, b, quotient, remainder) in cases {
        assert_eq!(c(a).floor_div(&c(b)), Ok(c(quotient)), "{a} / {b}");
        assert_eq!(c(a).modulo(&c(b)), Ok(c(remainder)), "{a} % {b}");
        let (q, r) = (s(I).floor_div(&c(b)), s(I).modulo(&c(b)));
        assert_eq!(q.and_then(|q| at(&q, a)), Ok(quotient), "i / {b} at {a}");
        assert_eq!(r.and_then(|r| at(&r, a)), Ok(remainder), "i % {b} at {a}");
    }
}

#[test]
fn ceiling_division_rounds_up_for_all_signs() {
    for (a, b, quotient) in [
        (7, 2, 4),
        (-7, 2, -3),
        (7, -2, -3),
        (-7, -2, 4),
        (8, 4, 2),
        (0, 5, 0),
    ] {
        assert_eq!(c(a).ceil_div(&c(b)), Ok(c(quotient)), "{a} / {b}");
        let symbolic = s(I)
            .ceil_div(&s(J))
            .expect("a symbolic quotient can be built");
        let values = |symbol| Some(if symbol == I { a } else { b });
        assert_eq!(
            symbolic.evaluate(&values),
            Ok(quotient),
            "{a} / {b}, symbolic"
        );
    }
    assert_eq!(text(s(N).ceil_div(&c(4))), "(N + 3) / 4");
    assert_eq!(c(1).ceil_div(&c(0)), Err(Error::DivisionByZero));
}

#[test]
fn algebraic_identities_are_equal() {
    let (i, j, n) = (s(I), s(J), s(N));
    let product = |a: &Expr, b: &Expr| a.mul(b).expect("small products fit");
    let sum = |a: &Expr, b: &Expr| a.add(b).expect("small sums fit");
    // (i + j) * (i - j) == i*i - j*j
    let difference = i.sub(&j).expect("small sums fit");
    let squares = product(&i, &i)
        .sub(&product(&j, &j))
        .expect("small sums fit");
    assert_eq!(product(&sum(&i, &j), &difference), squares);
    // (i*N + j) * 4 == 4*j + N*(i*4)
    let left = product(&sum(&product(&i, &n), &j), &c(4));
    let right = sum(&product(&j, &c(4)), &product(&n, &product(&i, &c(4))));
    assert_eq!(left, right);
    assert_eq!(left.cmp(&right), std::cmp::Ordering::Equal);
    // i - i == 0, 0*i == 0
    assert_eq!(i.sub(&i), Ok(c(0)));
    assert_eq!(i.mul(&c(0)), Ok(c(0)));
    // 8*(i / 8) + i % 8 == i
    let eight = c(8);
    let (q, r) = (i.floor_div(&eight), i.modulo(&eight));
    let (q, r) = (q.expect("8 is not zero"), r.expect("8 is not zero"));
    assert_eq!(sum(&product(&q, &eight), &r), i);
    // … and in three levels: 8*(i / 8) + 4*(i / 4 % 2) + i % 4 == i
    let four = i
        .floor_div(&c(4))
        .and_then(|x| x.modulo(&c(2)))
        .and_then(|x| x.mul(&c(4)));
    let low = i.modulo(&c(4)).expect("4 is not zero");
    let high = sum(&product(&q, &eight), &four.expect("small products fit"));
    assert_eq!(sum(&high, &low), i);
    // i/2/3 == i/6, (i % 12) % 4 == i % 4, (i % 8) / 4 == (i / 4) % 2
    let by = |x: &Expr, d: i64| x.floor_div(&c(d)).expect("not zero");
    let rem = |x: &Expr, d: i64| x.modulo(&c(d)).expect("not zero");
    assert_eq!(by(&by(&i, 2), 3), by(&i, 6));
    assert_eq!(rem(&rem(&i, 12), 4), rem(&i, 4));
    assert_eq!(by(&rem(&i, 8), 4), rem(&by(&i, 4), 2));
}

#[test]
fn comparisons_have_one_form() {
    let compare = |cmp, a: &Expr, b: &Expr| text(Expr::compare(cmp, a, b));
    assert_eq!(compare(Cmp::Lt, &s(I), &s(N)), "i < N");
    assert_eq!(
        compare(Cmp::Lt, &s(I).sub(&s(N)).expect("fits"), &c(0)),
        "i < N"
    );
    assert_eq!(
        compare(Cmp::Le, &s(I).add(&c(1)).expect("fits"), &s(N)),
        "i < N"
    );
    assert_eq!(compare(Cmp::Le, &s(I), &s(N)), "i <= N");
    assert_eq!(compare(Cmp::Le, &c(0), &s(I)), "0 <= i");
    assert_eq!(compare(Cmp::Lt, &s(I), &c(8)), "i < 8");
    assert_eq!(compare(Cmp::Le, &linear(2, 0, 0), &c(7)), "i < 4");
    assert_eq!(compare(Cmp::Eq, &linear(-2, 0, 0), &c(-8)), "i == 4");
    assert_eq!(compare(Cmp::Eq, &linear(2, 4, 0), &c(7)), "0");
    assert_eq!(compare(Cmp::Ne, &linear(2, 4, 0), &c(7)), "1");
    assert_eq!(compare(Cmp::Le, &s(I), &s(I)), "1");
}

#[test]
fn extrema_drop_what_never_wins() {
    let i1 = s(I).add(&c(1)).expect("fits");
    assert_eq!(Expr::min(&s(I), &i1), Ok(s(I)));
    assert_eq!(Expr::max(&s(I), &i1), Ok(i1.clone()));
    assert_eq!(Expr::min(&c(3), &c(-4)), Ok(c(-4)));
    let nested = Expr::max(&Expr::max(&s(J), &c(3)).expect("fits"), &s(I));
    let other = Expr::max(
        &c(2),
        &Expr::max(&Expr::max(&s(I), &c(3)).expect("fits"), &s(J)).expect("fits"),
    );
    assert_eq!(nested, other);
    assert_eq!(text(nested), "max(i, max(j, 3))");
}

#[test]
fn bounds_decide_divisions_comparisons_and_extrema() {
    let bounds: Bounds = [
        (I, Range::extent(100)),
        (J, Range::extent(8)),
        (N, Range::at_least(1)),
    ]
    .into_iter()
    .collect();
    let simple = |expr: Result<Expr, Error>| text(expr.map(|expr| expr.simplify(&bounds)));
    let flat = linear(8, 1, 0);
    assert_eq!(simple(flat.floor_div(&c(8))), "i");
    assert_eq!(simple(flat.modulo(&c(8))), "j");
    assert_eq!(simple(flat.floor_div(&c(16))), "i / 2");
    assert_eq!(simple(flat.modulo(&c(16))), "j + (i % 2)*8");
    assert_eq!(
        simple(flat.add(&c(8)).and_then(|x| x.floor_div(&c(8)))),
        "i + 1"
    );
    assert_eq!(simple(flat.floor_div(&c(4))), "i*2 + j / 4");
    assert_eq!(simple(Expr::min(&s(J), &c(7))), "j");
    assert_eq!(simple(Expr::max(&s(I), &c(0))), "i");
    assert_eq!(simple(Expr::min(&s(I), &c(50))), "min(i, 50)");
    assert_eq!(simple(Expr::compare(Cmp::Lt, &flat, &c(800))), "1");
    assert_eq!(simple(Expr::compare(Cmp::Eq, &s(J), &c(8))), "0");
    assert_eq!(simple(Expr::compare(Cmp::Lt, &s(J), &c(7))), "j < 7");
    // i - 8*(i / 8) is the remainder, and small enough not to be one.
    let back = s(J).sub(
        &s(J)
            .floor_div(&c(3))
            .and_then(|q| q.mul(&c(3)))
            .expect("fits"),
    );
    assert_eq!(simple(back), "j % 3");
    // Symbolic divisors that are known not to be zero.
    let rows = s(I).mul(&s(N)).and_then(|x| x.add(&s(J))).expect("fits");
    assert_eq!(simple(rows.floor_div(&s(N))), "i + j / N");
    assert_eq!(simple(rows.modulo(&s(N))), "j % N");
    assert_eq!(simple(c(0).floor_div(&s(N))), "0");
    assert_eq!(
        text(c(0).modulo(&s(N)).map(|x| x.simplify(&Bounds::new()))),
        "0 % N"
    );
    assert_eq!(
        text(c(0).floor_div(&s(N)).map(|x| x.simplify(&Bounds::new()))),
        "0 / N"
    );
}

#[test]
fn ranges_are_tight_where_it_matters() {
    let bounds: Bounds = [(I, Range::new(-3, 4)), (J, Range::extent(8))]
        .into_iter()
        .collect();
    assert_eq!(linear(8, 1, 0).range(&bounds), Range::new(-24, 39));
    assert_eq!(
        s(I).mul(&s(I)).map(|x| x.range(&bounds)),
        Ok(Range::new(0, 16))
    );
    assert_eq!(
        s(I).modulo(&c(4)).map(|x| x.range(&bounds)),
        Ok(Range::new(0, 3))
    );
    assert_eq!(
        s(I).floor_div(&c(2)).map(|x| x.range(&bounds)),
        Ok(Range::new(-2, 2))
    );
    assert_eq!(s(N).range(&bounds), Range::UNBOUNDED);
    assert_eq!(
        s(N).modulo(&c(5)).map(|x| x.range(&bounds)),
        Ok(Range::new(0, 4))
    );
    assert_eq!(
        Expr::max(&s(N), &c(0)).map(|x| x.range(&bounds)),
        Ok(Range::at_least(0))
    );
    let huge: Bounds = [(I, Range::new(0, i64::MAX)), (J, Range::UNBOUNDED)]
        .into_iter()
        .collect();
    assert_eq!(
        s(I).mul(&c(2)).map(|x| x.range(&huge)),
        Ok(Range::at_least(0))
    );
}

#[test]
fn overflow_is_an_error() {
    let max = c(i64::MAX);
    assert_eq!(
        text(max.add(&c(1))),
        "error: `9223372036854775807 + 1` does not fit in 64 bits"
    );
    assert!(matches!(c(i64::MIN).neg(), Err(Error::Overflow { .. })));
    assert!(matches!(
        c(i64::MIN).sub(&c(1)),
        Err(Error::Overflow { .. })
    ));
    assert!(matches!(
        c(i64::MIN).floor_div(&c(-1)),
        Err(Error::Overflow { .. })
    ));
    assert_eq!(c(i64::MIN).modulo(&c(-1)), Ok(c(0)));
    assert!(matches!(
        c(1 << 32).mul(&c(1 << 31)),
        Err(Error::Overflow { .. })
    ));
    assert_eq!(c(1 << 31).mul(&c(1 << 31)), Ok(c(1 << 62)));
    let coefficient = s(I).mul(&max).expect("the coefficient fits");
    assert!(matches!(
        coefficient.add(&s(I)),
        Err(Error::Overflow { .. })
    ));
    assert_eq!(coefficient.sub(&coefficient), Ok(c(0)));
}

#[test]
fn evaluation_is_exact_up_to_64_bits() {
    let expr = linear(8, 1, 0);
    let values = |i, j| move |symbol| Some(if symbol == I { i } else { j });
    assert_eq!(expr.evaluate(&values(1 << 24, 3)), Ok((1 << 27) + 3));
    assert_eq!(expr.evaluate(&values((1 << 60) - 1, 7)), Ok(i64::MAX));
    assert_eq!(
        expr.evaluate(&values(1 << 60, 0)),
        Err(Error::Overflow { expr: expr.clone() })
    );
    // The first term alone does not fit; the sum does.
    assert_eq!(expr.evaluate(&values(1 << 60, -1)), Ok(i64::MAX));
    assert_eq!(at(&expr, 0), Err(Error::Unbound(J)));
    let quotient = s(J)
        .floor_div(&s(I))
        .expect("a symbolic quotient can be built");
    assert_eq!(quotient.evaluate(&values(0, 1)), Err(Error::DivisionByZero));
    assert!(matches!(
        quotient.evaluate(&values(-1, i64::MIN)),
        Err(Error::Overflow { .. })
    ));
}

#[test]
fn division_by_a_constant_zero_is_refused() {
    assert_eq!(s(I).floor_div(&c(0)), Err(Error::DivisionByZero));
    assert_eq!(s(I).modulo(&c(0)), Err(Error::DivisionByZero));
    let quotient = s(I)
        .floor_div(&s(N))
        .expect("a symbolic quotient can be built");
    assert_eq!(
        quotient.substitute(&|x| (x == N).then(|| c(0))),
        Err(Error::DivisionByZero)
    );
}

#[test]
fn depth_and_size_are_limited() {
    let mut deep = s(I);
    let error = (0..2 * DEPTH_LIMIT).find_map(|_| {
        // Remainders of quotients alternate so that nothing merges.
        match deep.floor_div(&s(N)).and_then(|x| x.add(&s(J))) {
            Ok(next) => {
                deep = next;
                None
            }
            Err(error) => Some(error),
        }
    });
    assert_eq!(error, Some(Error::TooDeep { limit: DEPTH_LIMIT }));
    assert!(
        deep.range(&Bounds::new()) == Range::UNBOUNDED && deep.simplify(&Bounds::new()) == deep
    );

    let mut wide = s(I);
    let error = (0..64).find_map(|_| {
        match wide
            .floor_div(&s(N))
            .and_then(|q| Expr::max(&q, &wide.modulo(&s(N))?))
        {
            Ok(next) => {
                wide = next;
                None
            }
            Err(error) => Some(error),
        }
    });
    assert!(matches!(error, Some(Error::TooLarge { .. })), "{error:?}");
}

#[test]
fn simplification_of_nested_rewrites_is_linear() {
    // Every level is a quotient that loses its low part; visiting children twice per level would not end.
    let bounds: Bounds = [(I, Range::extent(1 << 20)), (J, Range::extent(4))]
        .into_iter()
        .collect();
    let mut expr = s(I);
    for _ in 0..50 {
        let shifted = expr.mul(&c(4)).and_then(|x| x.add(&s(J)));
        expr = shifted
            .and_then(|x| x.floor_div(&c(24)))
            .and_then(|x| Expr::max(&x, &s(N)))
            .expect("the nesting is within the limit");
    }
    let simple = expr.simplify(&bounds);
    let values = |symbol| Some(if symbol == I { 1 << 19 } else { 3 });
    assert_eq!(simple.evaluate(&values), expr.evaluate(&values));
    assert!(!simple.contains(J), "{simple}");
}

#[test]
fn large_products_stay_products() {
    let sum = |from: u32| {
        (from..from + 10).fold(c(1), |sum, i| {
            sum.add(&s(Symbol(i))).expect("small sums fit")
        })
    };
    let product = sum(0).mul(&sum(20)).expect("the product is small");
    assert!(
        matches!(product.kind(), ExprKind::Mul(factors) if factors.len() == 2),
        "{product}"
    );
    assert_eq!(product.evaluate(&|_| Some(1)), Ok(121));
    assert_eq!(
        product.mul(&c(2)).and_then(|x| x.evaluate(&|_| Some(1))),
        Ok(242)
    );
}

#[test]
fn text_has_the_parentheses_it_needs() {
    let flat = linear(8, 1, 0);
    assert_eq!(text(Ok(flat.clone())), "i*8 + j");
    assert_eq!(text(linear(3, 1, 0).floor_div(&c(4))), "(i*3 + j) / 4");
    assert_eq!(text(linear(3, 0, 0).modulo(&c(4))), "i*3 % 4");
    assert_eq!(
        text(s(I).floor_div(&c(4)).and_then(|x| x.modulo(&c(3)))),
        "i / 4 % 3"
    );
    assert_eq!(
        text(s(I).modulo(&c(4)).and_then(|x| x.floor_div(&c(3)))),
        "i % 4 / 3"
    );
    assert_eq!(
        text(s(I).floor_div(&c(8)).and_then(|x| x.mul(&c(3)))),
        "(i / 8)*3"
    );
    assert_eq!(
        text(s(I).floor_div(&s(J)).and_then(|x| x.add(&c(1)))),
        "i / j + 1"
    );
    assert_eq!(
        text(s(I).floor_div(&s(J).mul(&s(N)).expect("fits"))),
        "i / (j*N)"
    );
    assert_eq!(
        text(s(N).sub(&s(I)).and_then(|x| x.sub(&c(1)))),
        "N - i - 1"
    );
    assert_eq!(
        text(linear(-1, -2, -3).neg().and_then(|x| x.neg())),
        "-i - j*2 - 3"
    );
    assert_eq!(text(Expr::min(&flat, &c(-1))), "min(i*8 + j, -1)");
    assert_eq!(text(Ok(c(i64::MIN))), "-9223372036854775808");
    let guard = Expr::compare(Cmp::Lt, &s(I), &s(N)).and_then(|x| x.mul(&s(J)));
    assert_eq!(text(guard), "j*(i < N)");
    assert_eq!(format!("{flat} {flat:?}"), "s0*8 + s1 s0*8 + s1");
}

#[test]
fn strides_are_coefficients_or_not_affine() {
    assert_eq!(differentiate(&linear(8, 1, 5), I), Ok(c(8)));
    assert_eq!(differentiate(&linear(8, 1, 5), N), Ok(c(0)));
    assert_eq!(intercept(&linear(8, 1, 5), I), Ok(linear(0, 1, 5)));
    let rows = s(I)
        .mul(&s(N))
        .and_then(|x| x.add(&s(N).floor_div(&c(2))?))
        .expect("fits");
    assert_eq!(differentiate(&rows, I), Ok(s(N)));
    assert!(matches!(
        differentiate(&rows, N),
        Err(Error::NotAffine { symbol: N, .. })
    ));
    let form = affine(&rows, &[I]).expect("the form is affine in i");
    assert_eq!(
        (form.coefficients.len(), text(Ok(form.constant))),
        (1, "N / 2".to_string())
    );
    assert_eq!(affine(&rows, &[I, N]), None);
    for (expr, expected) in [
        (s(I).floor_div(&c(2)), "error: `i / 2` is not affine in `i`"),
        (s(I).modulo(&c(3)), "error: `i % 3` is not affine in `i`"),
        (s(I).mul(&s(I)), "error: `i*i` is not affine in `i`"),
        (
            Expr::min(&s(I), &s(N)),
            "error: `min(i, N)` is not affine in `i`",
        ),
    ] {
        assert_eq!(
            text(expr.and_then(|expr| differentiate(&expr, I))),
            expected
        );
    }
    let bounds: Bounds = [(I, Range::extent(3))].into_iter().collect();
    let inside = s(I).modulo(&c(3)).expect("3 is not zero");
    assert_eq!(differentiate_within(&inside, I, &bounds), Ok(c(1)));
}

#[test]
fn isolate_is_exact_or_says_why_not() {
    assert_eq!(isolate(&linear(2, 0, -1), &c(15), I), Ok(c(8)));
    assert_eq!(isolate(&linear(2, 4, 6), &c(0), I), Ok(linear(0, -2, -3)));
    let product = s(I).mul(&s(N)).expect("fits");
    assert_eq!(
        isolate(&product, &s(N).mul(&linear(0, 3, 4)).expect("fits"), I),
        Ok(linear(0, 3, 4))
    );
    assert_eq!(
        text(isolate(&linear(2, 0, 0), &c(15), I)),
        "error: `i*2 == 15` has no integer solution"
    );
    assert_eq!(
        text(isolate(&linear(2, 1, 0), &c(0), I)),
        "error: `i*2 == -j` has no solution that is known to be an integer"
    );
    assert_eq!(
        text(isolate(&linear(2, 1, 0), &linear(2, 0, 1), I)),
        "error: `i` does not occur in `j - 1 == 0`"
    );
    let half = s(I).floor_div(&c(2)).expect("2 is not zero");
    assert!(matches!(
        isolate(&half, &c(4), I),
        Err(Error::NotAffine { .. })
    ));
}
