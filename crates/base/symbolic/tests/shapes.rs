//! Sizes solved across a program, in both directions, and contradictions that explain themselves.

use loopwright_symbolic::{Contradiction, Equation, Error, Expr, Symbol, unify, unify_keeping};

const A: Symbol = Symbol(0);
const B: Symbol = Symbol(1);
const N: Symbol = Symbol(2);
const IN: Symbol = Symbol(3);
const OUT: Symbol = Symbol(4);
const K: Symbol = Symbol(5);

fn name(symbol: Symbol) -> String {
    ["a", "b", "N", "in", "out", "k"][usize::from(symbol)].to_string()
}

fn c(value: i64) -> Expr {
    Expr::constant(value)
}

fn s(symbol: Symbol) -> Expr {
    Expr::symbol(symbol)
}

fn given(symbol: Symbol, value: i64, origin: &'static str) -> Equation<&'static str> {
    Equation::new(s(symbol), c(value), origin)
}

/// `in == (out - 1)*2 + (k - 1)*1 + 1`.
fn window() -> Equation<&'static str> {
    let strided = s(OUT).sub(&c(1)).and_then(|x| x.mul(&c(2)));
    let size = strided
        .and_then(|x| x.add(&s(K).sub(&c(1))?))
        .and_then(|x| x.add(&c(1)));
    Equation::new(s(IN), size.expect("small coefficients fit"), "window")
}

fn explain(equations: &[Equation<&'static str>]) -> String {
    match unify(equations) {
        Ok(solution) => format!("solved: {solution:?}"),
        Err(contradiction) => contradiction
            .display(&name, &|origin| format!("[{origin}]"))
            .to_string(),
    }
}

#[test]
fn sizes_flow_forwards() {
    let solution = unify(&[window(), given(OUT, 8, "o"), given(K, 3, "k")]).expect("solvable");
    assert_eq!(solution.get(IN), Some(&c(17)));
    assert!(solution.residual().is_empty());
}

#[test]
fn sizes_flow_backwards() {
    let solution = unify(&[window(), given(IN, 17, "i"), given(K, 3, "k")]).expect("solvable");
    assert_eq!(solution.get(OUT), Some(&c(8)));
}

#[test]
fn a_size_that_does_not_divide_is_explained() {
    assert_eq!(
        explain(&[window(), given(IN, 18, "input"), given(K, 3, "kernel")]),
        "`out` has no integer value: [window] requires `out*2 == 17` (given [input], [kernel])"
    );
}

#[test]
fn symbolic_sizes_stay_symbolic() {
    let double = s(A).mul(&c(2)).expect("fits");
    let equations = [
        Equation::new(s(A), s(N), "x"),
        Equation::new(s(B), double.clone(), "y"),
    ];
    let solution = unify(&equations).expect("solvable");
    assert_eq!(solution.get(A), Some(&s(N)));
    assert_eq!(solution.get(B), s(N).mul(&c(2)).as_ref().ok());
    assert_eq!(solution.get(N), None);
    assert_eq!(solution.apply(&double), s(N).mul(&c(2)));
}

#[test]
fn kept_symbols_are_solved_last() {
    let equations = [
        Equation::new(s(N), s(A), "x"),
        Equation::new(s(B), s(A), "y"),
    ];
    let solution = unify_keeping(&equations, &|symbol| symbol == N).expect("solvable");
    assert_eq!(
        (solution.get(A), solution.get(B), solution.get(N)),
        (Some(&s(N)), Some(&s(N)), None)
    );
    // A number still decides them.
    let equations = [Equation::new(s(N), s(A), "x"), given(A, 4, "y")];
    let solution = unify_keeping(&equations, &|symbol| symbol == N).expect("solvable");
    assert_eq!(solution.get(N), Some(&c(4)));
}

#[test]
fn two_values_for_one_symbol_name_both_places() {
    let contradiction = unify(&[given(A, 8, "X"), given(A, 9, "Y")]);
    let Err(Contradiction::Conflict {
        subject,
        first,
        second,
        through,
    }) = contradiction
    else {
        panic!("expected a conflict, got {contradiction:?}");
    };
    assert_eq!(subject, s(A));
    assert_eq!((first.value, first.origin), (c(8), "X"));
    assert_eq!((second.value, second.origin), (c(9), "Y"));
    assert!(through.is_empty());
}

#[test]
fn derived_values_name_the_deciding_equations() {
    let double = s(A).mul(&c(2)).expect("fits");
    let equations = [
        Equation::new(s(A), s(N), "a is N"),
        Equation::new(s(B), double, "b is 2a"),
        given(N, 8, "N given"),
        given(B, 20, "b given"),
    ];
    assert_eq!(
        explain(&equations),
        "`b` is 20 according to [b given], but 16 according to [b is 2a] (given [a is N], [N given])"
    );
    assert_eq!(
        explain(&[
            window(),
            given(IN, 17, "i"),
            given(OUT, 8, "o"),
            given(K, 4, "k")
        ]),
        "`in` is 17 according to [i], but 18 according to [window] (given [o], [k])"
    );
}

#[test]
fn symbolic_contradictions_are_found() {
    let more = s(N).add(&c(1)).expect("fits");
    assert_eq!(
        explain(&[
            Equation::new(s(A), s(N), "x"),
            Equation::new(s(A), more, "y")
        ]),
        "`a` is N according to [x], but N + 1 according to [y]"
    );
    let (even, odd) = (s(A).mul(&c(2)), s(B).mul(&c(2)).and_then(|x| x.add(&c(1))));
    let parity = [Equation::new(even.expect("fits"), odd.expect("fits"), "x")];
    assert_eq!(
        explain(&parity),
        "`a*2` is a*2 according to [x], but b*2 + 1 according to [x]"
    );
    assert_eq!(
        explain(&[Equation::new(c(8), c(9), "x")]),
        "`8` is 8 according to [x], but 9 according to [x]"
    );
}

#[test]
fn what_cannot_be_solved_stays_a_condition() {
    let half = s(A).floor_div(&c(2)).expect("2 is not zero");
    let rounded = Equation::new(half, c(4), "half");
    let solution = unify(std::slice::from_ref(&rounded)).expect("no contradiction");
    assert_eq!(solution.get(A), None);
    assert_eq!(solution.residual().len(), 1);
    assert_eq!(solution.residual()[0].equation, 0);
    let solution = unify(&[rounded.clone(), given(A, 9, "a")]).expect("9 / 2 is 4");
    assert!(solution.residual().is_empty());
    assert_eq!(
        explain(&[rounded, given(A, 10, "a")]),
        "`a / 2` is 5 according to [a], but 4 according to [half]"
    );
}

#[test]
fn a_symbolic_factor_might_be_zero() {
    // N*a == N*4 says nothing of `a` where N is 0.
    let equation = Equation::new(
        s(N).mul(&s(A)).expect("fits"),
        s(N).mul(&c(4)).expect("fits"),
        "x",
    );
    let solution = unify(std::slice::from_ref(&equation)).expect("no contradiction");
    assert_eq!((solution.get(A), solution.residual().len()), (None, 1));
    let solution = unify(&[equation, given(N, 3, "n")]).expect("solvable");
    assert_eq!(solution.get(A), Some(&c(4)));
}

#[test]
fn simultaneous_equations_are_solved() {
    // a + b == 10, a - b == 4
    let (sum, difference) = (s(A).add(&s(B)), s(A).sub(&s(B)));
    let equations = [
        Equation::new(sum.expect("fits"), c(10), "x"),
        Equation::new(difference.expect("fits"), c(4), "y"),
    ];
    let solution = unify(&equations).expect("solvable");
    assert_eq!(
        (solution.get(A), solution.get(B)),
        (Some(&c(7)), Some(&c(3)))
    );
}

#[test]
fn a_size_that_overflows_is_an_error() {
    let large = s(B).mul(&c(i64::MAX)).expect("the coefficient fits");
    let contradiction = unify(&[Equation::new(s(A), large, "x"), given(B, 2, "y")]);
    let Err(Contradiction::Arithmetic {
        error,
        origin,
        through,
    }) = contradiction
    else {
        panic!("expected an overflow, got {contradiction:?}");
    };
    assert!(matches!(error, Error::Overflow { .. }), "{error}");
    assert_eq!((origin, through), ("x", vec!["y"]));
}

#[test]
fn long_chains_are_solved_in_any_order() {
    // x1 == x0 + 1, x2 == x1 + 1, …: as long as a deep network, and then some.
    let length = 5000;
    let mut equations: Vec<_> = (0..length)
        .map(|i| {
            let next = s(Symbol(i)).add(&c(1)).expect("fits");
            Equation::new(s(Symbol(i + 1)), next, i)
        })
        .collect();
    for _ in 0..2 {
        equations.reverse();
        let solution = unify(&equations).expect("solvable");
        let last = s(Symbol(0)).add(&c(i64::from(length))).expect("fits");
        assert_eq!(solution.get(Symbol(length)), Some(&last));
    }
}
