//! Lines 23 to 27: analysis.

use crate::program;
use loopwright_graph::Graph;
use loopwright_looptree::{
    Access, LoopTree, Schedule, Storage, Target, accesses, allocations, bytes_moved, costs, flops,
    parse_schedule,
};
use loopwright_scheduler::default_schedule;
use loopwright_symbolic::{Equation, Expr, Range, Symbol, affine, differentiate, isolate, unify};
use loopwright_text::Source;

fn schedule(graph: &Graph, text: &str) -> Schedule {
    let source = Source::new("schedule", format!("loopwright schedule 1\n{text}"));
    parse_schedule(&source, graph).unwrap_or_else(|error| panic!("{}", error.render(&source)))
}

fn read_of(graph: &Graph, step: &str, array: &str) -> Access {
    let step = graph.find(step).expect("there is such a step");
    let array = graph.find(array).expect("there is such an array");
    let reads = accesses(graph, step, &|_| false).expect("its indices can be computed");
    let read = reads.into_iter().find(|read| read.node == array);
    read.expect("the step reads the array")
}

#[test]
fn line_23_allocations_shrink() {
    let graph = program(
        "dim i = 16\ndim j = 32\ninput A: f32[i, k=8]\ninput B: f32[k, j]\nC = sum[k](A * B)\nD = C + 1\noutput D\n",
    );
    let c = graph.find("C").expect("there is a C");
    // Fused: the accumulator holds a row of N.
    let fused = schedule(&graph, "C: i, k, j\nD: i, j\n");
    let tree = LoopTree::new(&graph, &fused).expect("it is legal");
    let held = allocations(&graph, &fused, &tree).expect("it can be analysed");
    assert_eq!(held[&c].elements().expect("small").as_const(), Some(32));
    assert_eq!(held[&c].storage, Storage::Private);
    // Element by element: one.
    let tight = schedule(&graph, "C: i, j, k\nD: i, j\n");
    let tree = LoopTree::new(&graph, &tight).expect("it is legal");
    let held = allocations(&graph, &tight, &tree).expect("it can be analysed");
    assert_eq!(held[&c].elements().expect("small").as_const(), Some(1));
    // Apart: all of M·N.
    let apart = schedule(&graph, "C: i, j, k\nD: share=0, i, j\n");
    let tree = LoopTree::new(&graph, &apart).expect("it is legal");
    let held = allocations(&graph, &apart, &tree).expect("it can be analysed");
    assert_eq!(
        held[&c].elements().expect("small").as_const(),
        Some(16 * 32)
    );
}

#[test]
fn line_24_what_is_not_scheduled_allocates_nothing() {
    let graph = program(
        "input x: f32[i=8]\ndim p = 10\npadded[p] = x[p - 1] else 0\ny = padded * 2\noutput y\n",
    )
    .with_stores();
    let schedule = default_schedule(&graph, &Target::SCALAR).expect("there is a schedule");
    let tree = LoopTree::new(&graph, &schedule).expect("it is legal");
    let held = allocations(&graph, &schedule, &tree).expect("it can be analysed");
    assert_eq!(held.len(), 1);
    let output = graph.outputs()[0].node;
    assert_eq!(held[&output].storage, Storage::Output(0));
}

#[test]
fn line_25_strides_intercepts_and_bounds() {
    // x has rows of 20: element (h, w) is at 20*h + w.
    let graph = program(
        "input x: f32[h=12, w=20]\ndim a = 3\ndim b = 2\ny = max[a, b](x[2*p + a + 1, 3*q + b])\noutput y\n",
    );
    let read = read_of(&graph, "y", "x");
    let symbol = |name: &str| graph.dim(graph.find_dim(name).expect("it exists")).index;
    let step = |name: &str| {
        let step = read.step(&graph, symbol(name)).expect("affine");
        step.and_then(|step| step.as_const())
    };
    assert_eq!(step("p"), Some(40));
    assert_eq!(step("a"), Some(20));
    assert_eq!(step("q"), Some(3));
    assert_eq!(step("b"), Some(1));
    let intercept = read.intercept(&graph).expect("affine");
    assert_eq!(
        intercept.and_then(|intercept| intercept.as_const()),
        Some(20)
    );
    let sizes: Vec<Option<i64>> = ["p", "q"]
        .iter()
        .map(|name| {
            graph
                .dim(graph.find_dim(name).expect("it exists"))
                .size
                .as_const()
        })
        .collect();
    // 2*p + 2 + 1 <= 11 and 3*q + 1 <= 19.
    assert_eq!(sizes, [Some(5), Some(7)]);
    assert_eq!(read.ranges(&graph), [Range::new(1, 11), Range::new(0, 19)]);
}

#[test]
fn line_26_symbolic_expressions() {
    let (x, y, n) = (Symbol(0), Symbol(1), Symbol(2));
    let (ex, ey, en) = (Expr::symbol(x), Expr::symbol(y), Expr::symbol(n));
    let number = Expr::constant;
    // differentiate: 3*x - 2*y + 7
    let e = ex
        .mul(&number(3))
        .and_then(|e| e.sub(&ey.mul(&number(2))?))
        .and_then(|e| e.add(&number(7)));
    let e = e.expect("small");
    assert_eq!(differentiate(&e, x).expect("affine"), number(3));
    assert_eq!(differentiate(&e, y).expect("affine"), number(-2));
    let form = affine(&e, &[x, y]).expect("affine");
    assert_eq!(form.coefficients[&x], number(3));
    // A remainder is not affine, which is an answer.
    let remainder = ex.modulo(&number(4)).expect("4 is not 0");
    assert!(differentiate(&remainder, x).is_err());
    // isolate: 2*x + 1 = y gives x = (y - 1) / 2, for a y that is odd.
    let lhs = ex
        .mul(&number(2))
        .and_then(|e| e.add(&number(1)))
        .expect("small");
    let solved = isolate(&lhs, &number(9), x).expect("it can be solved");
    assert_eq!(solved, number(4));
    // unify: i = n + 2 and n = 6.
    let sum = en.add(&number(2)).expect("small");
    let solution = unify(&[
        Equation::new(ex.clone(), sum, "a"),
        Equation::new(en, number(6), "b"),
    ]);
    assert_eq!(solution.expect("they agree").get(x), Some(&number(8)));
    // 64 bits: a float has no 2^53 + 1.
    let large = number((1 << 53) + 1);
    let value = ex.add(&large).and_then(|e| e.evaluate(&|_| Some(0)));
    assert_eq!(value.expect("it fits"), (1 << 53) + 1);
    // Division rounds down, and a remainder has the sign of the divisor.
    let at = |e: Expr, value: i64| e.evaluate(&|_| Some(value)).expect("it has a value");
    assert_eq!(at(ex.floor_div(&number(4)).expect("4 is not 0"), -1), -1);
    assert_eq!(at(ex.modulo(&number(4)).expect("4 is not 0"), -1), 3);
    assert_eq!(ex.sub(&ex).expect("small"), number(0));
}

#[test]
fn line_27_costs_parallelism_and_places() {
    let graph =
        program("input A: f32[i=16, k=8]\ninput B: f32[k, j=32]\nC = sum[k](A * B)\noutput C\n");
    let schedule = schedule(&graph, "C: i, j, k\n");
    let tree = LoopTree::new(&graph, &schedule).expect("it is legal");
    let held = allocations(&graph, &schedule, &tree).expect("it can be analysed");
    let costs = costs(&graph, &schedule, &held).expect("it can be analysed");
    let total = flops(&graph, &costs).expect("small").as_const();
    assert_eq!(total, Some(2 * 16 * 8 * 32));
    let bytes = bytes_moved(&graph, &costs).expect("small").as_const();
    assert_eq!(bytes, Some(4 * (16 * 8 + 8 * 32 + 16 * 32)));

    let c = graph.find("C").expect("there is a C");
    let leaf = tree.find(c).expect("it has a place");
    let loops = tree.ancestors(leaf);
    let parallel: Vec<bool> = loops
        .iter()
        .map(|place| tree.trivially_parallel(&graph, *place))
        .collect();
    assert_eq!(parallel, [true, true, false]);
    assert_eq!(tree.find(graph.find("A").expect("there is an A")), None);
}
