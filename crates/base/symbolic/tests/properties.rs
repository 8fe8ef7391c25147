//! The algebra against brute force: random expressions, evaluated by an independent reference for every
//! value of their symbols within small bounds.

use loopwright_symbolic::{
    Bounds, Cmp, Contradiction, Equation, Error, Expr, Range, Symbol, affine, differentiate,
    differentiate_within, intercept, isolate, unify,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};

const SYMBOLS: u32 = 3;

/// An expression as it was asked for, with its meaning spelled out in [`Tree::value`].
#[derive(Clone, Debug)]
enum Tree {
    Const(i64),
    Symbol(u32),
    Binary(Op, Box<Tree>, Box<Tree>),
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Add,
    Sub,
    Mul,
    FloorDiv,
    CeilDiv,
    Mod,
    Min,
    Max,
    Compare(Cmp),
}

impl Tree {
    /// The value with checked 64-bit steps; `None` where a step overflows or divides by zero.
    fn value(&self, values: &[i64]) -> Option<i64> {
        match self {
            Tree::Const(value) => Some(*value),
            Tree::Symbol(symbol) => Some(values[*symbol as usize]),
            Tree::Binary(op, a, b) => {
                let (a, b) = (a.value(values)?, b.value(values)?);
                match op {
                    Op::Add => a.checked_add(b),
                    Op::Sub => a.checked_sub(b),
                    Op::Mul => a.checked_mul(b),
                    // Rounding down and up, without relying on the code under test.
                    Op::FloorDiv => {
                        let (quotient, exact) = (a.checked_div(b)?, a.checked_rem(b)? == 0);
                        Some(quotient - i64::from(!exact && (a < 0) != (b < 0)))
                    }
                    Op::CeilDiv => {
                        let (quotient, exact) = (a.checked_div(b)?, a.checked_rem(b)? == 0);
                        Some(quotient + i64::from(!exact && (a < 0) == (b < 0)))
                    }
                    Op::Mod => {
                        let remainder = a.checked_rem(b)?;
                        let shift = remainder != 0 && (remainder < 0) != (b < 0);
                        Some(if shift { remainder + b } else { remainder })
                    }
                    Op::Min => Some(if a < b { a } else { b }),
                    Op::Max => Some(if a > b { a } else { b }),
                    Op::Compare(Cmp::Eq) => Some(i64::from(a == b)),
                    Op::Compare(Cmp::Ne) => Some(i64::from(a != b)),
                    Op::Compare(Cmp::Lt) => Some(i64::from(a < b)),
                    Op::Compare(Cmp::Le) => Some(i64::from(a <= b)),
                }
            }
        }
    }

    fn build(&self) -> Result<Expr, Error> {
        match self {
            Tree::Const(value) => Ok(Expr::constant(*value)),
            Tree::Symbol(symbol) => Ok(Expr::symbol(Symbol(*symbol))),
            Tree::Binary(op, a, b) => {
                let (a, b) = (a.build()?, b.build()?);
                match op {
                    Op::Add => a.add(&b),
                    Op::Sub => a.sub(&b),
                    Op::Mul => a.mul(&b),
                    Op::FloorDiv => a.floor_div(&b),
                    Op::CeilDiv => a.ceil_div(&b),
                    Op::Mod => a.modulo(&b),
                    Op::Min => Expr::min(&a, &b),
                    Op::Max => Expr::max(&a, &b),
                    Op::Compare(cmp) => Expr::compare(*cmp, &a, &b),
                }
            }
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Add),
        2 => Just(Op::Sub),
        3 => Just(Op::Mul),
        3 => Just(Op::FloorDiv),
        1 => Just(Op::CeilDiv),
        3 => Just(Op::Mod),
        1 => Just(Op::Min),
        1 => Just(Op::Max),
        1 => prop::sample::select(vec![Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le]).prop_map(Op::Compare),
    ]
}

fn tree_with(constants: impl Strategy<Value = i64> + 'static) -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        constants.prop_map(Tree::Const),
        (0..SYMBOLS).prop_map(Tree::Symbol),
    ];
    leaf.prop_recursive(5, 24, 2, |inner| {
        (op(), inner.clone(), inner)
            .prop_map(|(op, a, b)| Tree::Binary(op, Box::new(a), Box::new(b)))
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    tree_with(prop_oneof![
        -9..=12i64,
        prop::sample::select(vec![2i64, 4, 8, 16, 32]),
    ])
}

/// Polynomials without division and the like, of degree one in each symbol.
fn linear() -> impl Strategy<Value = (Vec<i64>, i64)> {
    (
        prop::collection::vec(-9..=9i64, SYMBOLS as usize),
        -50..=50i64,
    )
}

fn build_linear(coefficients: &[i64], constant: i64) -> Expr {
    let mut sum = Expr::constant(constant);
    for (symbol, coefficient) in (0..).zip(coefficients) {
        let term = Expr::symbol(Symbol(symbol)).mul(&Expr::constant(*coefficient));
        sum = sum
            .add(&term.expect("small coefficients fit"))
            .expect("small coefficients fit");
    }
    sum
}

/// A small range for each symbol.
fn ranges() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let range = prop_oneof![(0..=0i64, 0..=5i64), (-6..=6i64, 0..=4i64),];
    prop::collection::vec(
        range.prop_map(|(lo, width)| (lo, lo + width)),
        SYMBOLS as usize,
    )
}

fn bounds(ranges: &[(i64, i64)]) -> Bounds {
    (0..)
        .map(Symbol)
        .zip(ranges.iter().map(|(lo, hi)| Range::new(*lo, *hi)))
        .collect()
}

/// Every assignment within the ranges.
fn assignments(ranges: &[(i64, i64)]) -> Vec<Vec<i64>> {
    ranges.iter().fold(vec![vec![]], |prefixes, (lo, hi)| {
        let extend = |prefix: &Vec<i64>| {
            let prefix = prefix.clone();
            (*lo..=*hi).map(move |value| [&prefix[..], &[value]].concat())
        };
        prefixes.iter().flat_map(extend).collect()
    })
}

fn evaluate(expr: &Expr, values: &[i64]) -> Result<i64, Error> {
    expr.evaluate(&|symbol| values.get(usize::from(symbol)).copied())
}

/// Values and constants where 64 bits run out, and ordinary ones among them.
fn extreme() -> impl Strategy<Value = i64> {
    prop_oneof![
        -5..=5i64,
        (1i64 << 24)..=(1 << 25),
        (i64::MAX - 3)..=i64::MAX,
        i64::MIN..=(i64::MIN + 3),
        (1i64 << 31)..=(1 << 33),
        any::<i64>(),
    ]
}

fn config() -> Config {
    Config {
        cases: 2000,
        failure_persistence: None,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(0x10_0917),
        max_global_rejects: 1_000_000,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn canonical_form_keeps_the_value(tree in tree(), ranges in ranges()) {
        let built = tree.build();
        for values in assignments(&ranges) {
            let Some(expected) = tree.value(&values) else { continue };
            match &built {
                Ok(expr) => prop_assert_eq!(evaluate(expr, &values), Ok(expected), "{} at {:?}", expr, values),
                Err(error) => prop_assert!(false, "{error}, but the value at {values:?} is {expected}"),
            }
        }
    }

    #[test]
    fn simplification_keeps_the_value(tree in tree(), ranges in ranges()) {
        let Ok(expr) = tree.build() else { return Ok(()) };
        let simple = expr.simplify(&bounds(&ranges));
        for values in assignments(&ranges) {
            if let Some(expected) = tree.value(&values) {
                prop_assert_eq!(evaluate(&simple, &values), Ok(expected), "{} became {} at {:?}", expr, simple, values);
            }
        }
    }

    #[test]
    fn range_holds_every_value(tree in tree(), ranges in ranges()) {
        let Ok(expr) = tree.build() else { return Ok(()) };
        let range = expr.range(&bounds(&ranges));
        for values in assignments(&ranges) {
            if let Ok(value) = evaluate(&expr, &values) {
                prop_assert!(range.contains(value), "{expr} is {value} at {values:?}, outside {range:?}");
            }
        }
    }

    #[test]
    fn large_values_are_exact_or_an_error(
        tree in tree_with(extreme()),
        values in prop::collection::vec(extreme(), SYMBOLS as usize),
        known in prop::collection::vec(any::<bool>(), SYMBOLS as usize),
    ) {
        let Ok(expr) = tree.build() else { return Ok(()) };
        let bounds: Bounds = (0..).map(Symbol).zip(&values).zip(&known).filter(|(_, known)| **known)
            .map(|((symbol, value), _)| (symbol, Range::new(value.saturating_sub(1), value.saturating_add(1))))
            .collect();
        let Some(expected) = tree.value(&values) else { return Ok(()) };
        for expr in [&expr, &expr.simplify(&bounds)] {
            match evaluate(expr, &values) {
                Ok(value) => prop_assert_eq!(value, expected, "{} at {:?}", expr, values),
                Err(Error::Overflow { .. }) => {}
                Err(error) => prop_assert!(false, "{expr} at {values:?}: {error}"),
            }
        }
        prop_assert!(expr.range(&bounds).contains(expected), "{expr} is {expected} at {values:?}");
    }

    #[test]
    fn substitution_commutes_with_evaluation(tree in tree(), inner in tree(), ranges in ranges()) {
        let (Ok(expr), Ok(replacement)) = (tree.build(), inner.build()) else { return Ok(()) };
        let substituted = expr.substitute(&|symbol| (symbol == Symbol(1)).then(|| replacement.clone()));
        for values in assignments(&ranges) {
            let Some(value) = inner.value(&values) else { continue };
            let replaced = [values[0], value, values[2]];
            let Some(expected) = tree.value(&replaced) else { continue };
            match &substituted {
                Ok(expr) => prop_assert_eq!(evaluate(expr, &values), Ok(expected), "{} at {:?}", expr, values),
                // The larger expression may be over a limit; it must not be over a value.
                Err(error) => prop_assert!(
                    matches!(error, Error::TooDeep { .. } | Error::TooLarge { .. } | Error::Overflow { .. }),
                    "{error}"
                ),
            }
        }
    }

    #[test]
    fn stride_is_the_finite_difference(tree in tree(), ranges in ranges()) {
        let Ok(expr) = tree.build() else { return Ok(()) };
        let symbol = Symbol(0);
        let strides = [
            differentiate(&expr, symbol),
            differentiate_within(&expr, symbol, &bounds(&ranges)),
        ];
        for stride in strides {
            let Ok(stride) = stride else { continue };
            prop_assert!(!stride.contains(symbol));
            for values in assignments(&ranges) {
                let next = [values[0] + 1, values[1], values[2]];
                if next[0] > ranges[0].1 {
                    continue;
                }
                if let (Some(here), Some(there)) = (tree.value(&values), tree.value(&next)) {
                    prop_assert_eq!(evaluate(&stride, &values), Ok(there - here), "{} at {:?}", expr, values);
                }
            }
        }
        if let (Ok(stride), Ok(start)) = (differentiate(&expr, symbol), intercept(&expr, symbol)) {
            let together = stride.mul(&Expr::symbol(symbol)).and_then(|part| part.add(&start));
            prop_assert_eq!(together, Ok(expr));
        }
    }

    #[test]
    fn affine_finds_every_linear_form((coefficients, constant) in linear()) {
        let expr = build_linear(&coefficients, constant);
        let symbols: Vec<Symbol> = (0..SYMBOLS).map(Symbol).collect();
        let form = affine(&expr, &symbols).expect("a linear form is affine");
        prop_assert_eq!(form.constant, Expr::constant(constant));
        for (symbol, coefficient) in symbols.iter().zip(coefficients) {
            let found = form.coefficients.get(symbol).and_then(Expr::as_const).unwrap_or(0);
            prop_assert_eq!(found, coefficient);
        }
    }

    #[test]
    fn isolated_value_satisfies_the_equation(lhs in tree(), rhs in tree(), ranges in ranges()) {
        let (Ok(left), Ok(right)) = (lhs.build(), rhs.build()) else { return Ok(()) };
        let Ok(solution) = isolate(&left, &right, Symbol(0)) else { return Ok(()) };
        prop_assert!(!solution.contains(Symbol(0)));
        for values in assignments(&ranges) {
            let Ok(value) = evaluate(&solution, &values) else { continue };
            let solved = [value, values[1], values[2]];
            if let (Some(a), Some(b)) = (lhs.value(&solved), rhs.value(&solved)) {
                prop_assert_eq!(a, b, "{} == {} solved by {} at {:?}", left, right, solution, values);
            }
        }
    }

    #[test]
    fn isolate_solves_what_has_a_solution((coefficients, constant) in linear(), at in -20..=20i64) {
        prop_assume!(coefficients[0] != 0);
        let expr = build_linear(&[coefficients[0]], constant);
        let value = coefficients[0] * at + constant;
        prop_assert_eq!(isolate(&expr, &Expr::constant(value), Symbol(0)), Ok(Expr::constant(at)));
        if coefficients[0].abs() > 1 {
            let off = isolate(&expr, &Expr::constant(value + 1), Symbol(0));
            prop_assert!(matches!(off, Err(Error::Indivisible { .. })), "{off:?}");
        }
    }

    /// Equations are planted around known values, so they have a solution; what unify finds must agree.
    #[test]
    fn solutions_satisfy_all_equations(
        trees in prop::collection::vec((tree(), 0..SYMBOLS + 1), 1..6),
        values in prop::collection::vec(-6..=6i64, SYMBOLS as usize),
    ) {
        let mut equations = Vec::new();
        for (origin, (tree, symbol)) in trees.iter().enumerate() {
            let (Some(value), Ok(expr)) = (tree.value(&values), tree.build()) else { continue };
            let other = match values.get(*symbol as usize) {
                Some(own) => Expr::symbol(Symbol(*symbol)).add(&Expr::constant(value - own)),
                None => Ok(Expr::constant(value)),
            };
            equations.push(Equation::new(expr, other.expect("small values fit"), origin));
        }
        let solution = match unify(&equations) {
            Ok(solution) => solution,
            // Values put into each other may outgrow a limit or 64 bits before they cancel.
            Err(Contradiction::Arithmetic { error, .. }) => {
                prop_assert!(error != Error::DivisionByZero, "{equations:?} has the solution {values:?}");
                return Ok(());
            }
            Err(contradiction) => {
                prop_assert!(false, "{contradiction} in {equations:?}, solved by {values:?}");
                return Ok(());
            }
        };
        for (symbol, value) in solution.iter() {
            prop_assert_eq!(
                evaluate(value, &values), Ok(values[usize::from(symbol)]),
                "{:?} = {} from {:?}", symbol, value, equations
            );
        }
        for (i, equation) in equations.iter().enumerate() {
            if solution.residual().iter().any(|residual| residual.equation == i) {
                continue;
            }
            // What is not a condition holds for every value of the symbols that stay open.
            let (Ok(lhs), Ok(rhs)) = (solution.apply(&equation.lhs), solution.apply(&equation.rhs)) else { continue };
            for values in assignments(&[(-3, 3); SYMBOLS as usize]) {
                if let (Ok(a), Ok(b)) = (evaluate(&lhs, &values), evaluate(&rhs, &values)) {
                    prop_assert_eq!(a, b, "{} == {} at {:?}", lhs, rhs, values);
                }
            }
        }
    }

    #[test]
    fn planted_contradictions_are_found(
        chain in prop::collection::vec((-9..=9i64, -9..=9i64), 1..6),
        start in -20..=20i64,
        off in prop_oneof![-9..=-1i64, 1..=9i64],
        order in any::<u64>(),
    ) {
        // x0 == start, x1 == a*x0 + b, …, and the last one is stated to be something else.
        let symbol = |i: usize| Expr::symbol(Symbol(i as u32));
        let mut equations = vec![Equation::new(symbol(0), Expr::constant(start), 0)];
        let mut value = start;
        for (i, (a, b)) in chain.iter().enumerate() {
            let next = symbol(i).mul(&Expr::constant(*a)).and_then(|x| x.add(&Expr::constant(*b)));
            equations.push(Equation::new(symbol(i + 1), next.expect("small values fit"), i + 1));
            value = a * value + b;
        }
        prop_assert!(unify(&equations).is_ok());
        let last = equations.len();
        equations.push(Equation::new(symbol(last - 1), Expr::constant(value + off), last));
        let turn = order as usize % equations.len();
        equations.rotate_left(turn);
        match unify(&equations) {
            Ok(solution) => prop_assert!(false, "{equations:?} was solved by {solution:?}"),
            Err(Contradiction::Conflict { first, second, .. }) => {
                prop_assert!(first.value != second.value);
                prop_assert!(first.origin != second.origin);
            }
            Err(contradiction) => prop_assert!(
                matches!(contradiction, Contradiction::Indivisible { .. }),
                "{contradiction}"
            ),
        }
    }
}
