//! Writing a graph out and reading it back is the identity, numbering and all.

mod support;

use loopwright_graph::{Graph, GraphBuilder, GraphError, NodeId, View, parse, print};
use loopwright_ops::{DType, Op, ReduceOp, Scalar};
use loopwright_symbolic::{Cmp, Expr, Symbol};
use loopwright_text::Source;
use smallvec::smallvec;
use support::Random;

fn survives(graph: &Graph) {
    let text = print(graph);
    let source = Source::new("printed.lw", text.clone());
    match parse(&source) {
        Ok(again) => assert_eq!(again, *graph, "{text}"),
        Err(error) => panic!("{}\n{text}", error.render(&source)),
    }
}

/// A graph with every kind of node, most of them without a name.
fn one_of_each() -> Result<Graph, GraphError> {
    let mut builder = GraphBuilder::new();
    // Symbols of both kinds, interleaved, and a size that uses a later symbol.
    let i = builder.dim("i")?;
    let n = builder.size("N", Some(6))?;
    let j = builder.dim("j")?;
    let m = builder.size("M", None)?;
    let t = builder.dim("t")?;
    builder.set_size(i, Expr::symbol(m).add(&Expr::symbol(n))?, "test");
    builder.set_size(j, Expr::constant(3), "test");
    let x = builder.input("x", DType::F32, &[i, j])?;
    let state = builder.state("state", DType::F32, &[j, i])?;
    let lookup = builder.input("lookup", DType::U8, &[t])?;
    builder.set_size(t, Expr::constant(4), "test");
    let scalar = builder.constant(Scalar::f32(-0.0));
    let array = builder.constant_array(
        DType::F16,
        &[j],
        [0.1, -1.0, f64::INFINITY]
            .map(|v| Scalar::from_f64(DType::F16, v))
            .into(),
    )?;
    let nan = builder.constant(Scalar::from_bits(DType::F64, 0xfff8_0000_0000_0001));
    let index = builder.index(i, DType::I64)?;
    let narrow = builder.index(j, DType::U8)?;
    let size = builder.size_value(Expr::symbol(n).mul(&Expr::symbol(m))?)?;
    let sum = builder.map(Op::Add, &[x, scalar])?;
    let negated = builder.map(Op::Neg, &[sum])?;
    let copied = builder.map(Op::Copy, &[negated])?;
    builder.name(copied, "v.copy'")?;
    let cast = builder.cast(array, DType::I32);
    let bits = builder.bitcast(x, DType::U32)?;
    let not = builder.map(Op::Not, &[bits])?;
    let total = builder.reduce(ReduceOp::Sum, x, &[j, i], Some(DType::F64))?;
    let largest = builder.reduce(ReduceOp::Max, copied, &[i], None)?;
    let arg = builder.arg_reduce(false, x, i)?;
    let scan = builder.scan(ReduceOp::Prod, x, i, Some(DType::F64), true, true)?;
    let plain = builder.scan(ReduceOp::Sum, x, j, None, false, false)?;
    let index_symbol = |builder: &GraphBuilder, dim| Expr::symbol(builder.index_symbol(dim));
    let (at_i, at_j) = (index_symbol(&builder, i), index_symbol(&builder, j));
    let view = builder.view(
        x,
        &[j, t, i],
        View {
            map: smallvec![at_i.sub(&Expr::constant(1))?, at_j.clone()],
            constraints: vec![
                Expr::compare(Cmp::Lt, &at_i, &Expr::constant(5))?,
                at_j.modulo(&Expr::constant(2))?,
            ],
            outside: Some(Scalar::f32(f32::NEG_INFINITY)),
        },
    )?;
    let layout = builder.layout(scalar, &[t, j])?;
    let gather = builder.gather(x, lookup, i, Some(Scalar::f32(2.5)))?;
    let zero_gather = builder.gather(x, lookup, j, None)?;
    let scatter = builder.scatter(x, lookup, gather, i, Some(ReduceOp::Max))?;
    let set = builder.scatter(x, lookup, gather, i, None)?;
    let sorted = builder.sort(x, i, true)?;
    let order = builder.arg_sort(x, j, false)?;
    let turned = builder.layout(x, &[j, i])?;
    builder.update(state, turned)?;
    let results: Vec<NodeId> = vec![
        x,
        nan,
        index,
        narrow,
        size,
        copied,
        cast,
        not,
        total,
        largest,
        arg,
        scan,
        plain,
        view,
        layout,
        zero_gather,
        scatter,
        set,
        sorted,
        order,
    ];
    for (at, node) in results.into_iter().enumerate() {
        builder.output(&format!("result{at}"), node)?;
    }
    builder.output("x", x)?;
    builder.finish()
}

#[test]
fn every_kind_of_node_survives() {
    survives(&one_of_each().expect("the graph is sound"));
}

#[test]
fn the_printed_form_reads_well() {
    let graph = support::program(
        "size M = 4\ninput a: f32[i=M, k=3]\noutput b = sum[k](a * 2)\noutput c = a[p - 1, k] if k < 2 else 0\ndim p = M + 2",
    );
    let expected = "\
loopwright program 1

size M = 4
dim p = M + 2
dim i = M
dim k = 3

input a: f32[i, k]
const %1: f32 = 2.0
%2 = a * %1
b = sum[k](%2)
c[p, k] = a[p - 1, k] if k < 2 else 0.0

output b
output c
";
    assert_eq!(print(&graph), expected);
}

#[test]
fn any_name_survives() {
    let names = [
        "if",
        "else",
        "inf",
        "nan",
        "true",
        "index",
        "size",
        "dim",
        "input",
        "output",
        "sum",
        "max",
        "f32",
        "view",
        "acc",
        "desc",
        "two words",
        "quo\"te",
        "back\\slash",
        "line\nbreak",
        "tab\t",
        "π",
        "3",
        "%3",
        "a.b",
        "a.",
        "x'",
        "#",
        "_",
        "set",
        "-1",
        "\r",
    ];
    for name in names {
        for role in 0..5 {
            let mut builder = GraphBuilder::new();
            let named = |at: usize, other: &'static str| if role == at { name } else { other };
            let build = |builder: &mut GraphBuilder| -> Result<(), GraphError> {
                let size = builder.size(named(0, "N"), Some(3))?;
                let dim = builder.dim(named(1, "i"))?;
                builder.set_size(dim, Expr::symbol(size), "test");
                let x = builder.input(named(2, "x"), DType::F32, &[dim])?;
                let y = builder.scan(ReduceOp::Sum, x, dim, None, true, false)?;
                builder.name(y, named(3, "y"))?;
                let index = builder.index(dim, DType::I64)?;
                let z = builder.gather(y, index, dim, None)?;
                let sorted = builder.sort(z, dim, true)?;
                builder.output(named(4, "z"), sorted)
            };
            build(&mut builder).expect("the names are free");
            survives(&builder.finish().expect("the graph is sound"));
        }
    }
}

/// A random expression over these symbols.
fn random_expr(random: &mut Random, symbols: &[Symbol], depth: usize) -> Expr {
    if depth == 0 || random.below(5) == 0 {
        return match random.below(3) {
            0 => Expr::constant(random.below(9) as i64 - 4),
            1 if random.below(40) == 0 => Expr::constant(i64::MIN + random.below(2) as i64),
            _ => Expr::symbol(symbols[random.below(symbols.len())]),
        };
    }
    let a = random_expr(random, symbols, depth - 1);
    let op = random.below(9);
    // Divisors do not move with an index: the last symbol is a size.
    let of = match op {
        4 | 5 => &symbols[symbols.len() - 1..],
        _ => symbols,
    };
    let b = random_expr(random, of, depth - 1);
    let result = match op {
        0 | 1 => a.add(&b),
        2 => a.sub(&b),
        3 => a.mul(&b),
        4 => a.floor_div(&b),
        5 => a.modulo(&b),
        6 => Expr::min(&a, &b),
        7 => Expr::max(&a, &b),
        _ => Expr::compare(
            [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le][random.below(4)],
            &a,
            &b,
        ),
    };
    // What overflows or divides by zero is left out.
    result.unwrap_or(a)
}

#[test]
fn any_index_expression_survives() {
    let mut random = Random(11);
    for _ in 0..20_000 {
        let mut builder = GraphBuilder::new();
        let build = |builder: &mut GraphBuilder, random: &mut Random| -> Result<(), GraphError> {
            let (i, j) = (builder.dim("i")?, builder.dim("j")?);
            let n = builder.size("N", Some(2))?;
            for dim in [i, j] {
                builder.set_size(dim, Expr::symbol(n), "test");
            }
            let symbols = [builder.index_symbol(i), builder.index_symbol(j), n];
            let x = builder.input("x", DType::F32, &[i, j])?;
            let mut exprs = || random_expr(random, &symbols, 4);
            let view = View {
                map: smallvec![exprs(), exprs()],
                constraints: vec![exprs()],
                outside: Some(Scalar::f32(0.0)),
            };
            let y = builder.view(x, &[i, j], view)?;
            let size = random_expr(random, &[n], 3);
            let size = builder.size_value(size)?;
            builder.output("y", y)?;
            builder.output("size", size)
        };
        build(&mut builder, &mut random).expect("the steps are sound");
        survives(&builder.finish().expect("the graph is sound"));
    }
}

#[test]
fn odd_programs_survive() {
    for body in [
        "input %x: f32[i=2]\nstate %s: f32[i]\nupdate %s = %x + 1",
        "output size = size(4)\noutput max = 3\noutput dim = 1",
        "const t: f32[i=0] = []\noutput t",
        "const t: f32[i=0, j=3] = []\noutput t",
        "const t: f32[i, j] = [[], []]\noutput t",
        "const t: bool[i, j, k] = [[[true], [false]]]\noutput t",
        "const t: f32 = nan:0x7fc00001\noutput t",
        "x = 3\ny[] = x\noutput y",
    ] {
        survives(&support::program(body));
    }
}
