//! Every op, cast, reduction, scan and sort at every dtype, against independent values.
//!
//! The values are those of [`loopwright_ops::reference`], computed without any of our code. Each op at
//! each dtype is one program over a symbolic size, compiled once and run for every row of reference
//! values. What works element by element is scheduled in the lanes of vectors with a scalar tail, two
//! paths through most backends, and run three times: over all elements of a row at once, over a few at
//! a time, which only the tail takes, and over none.

use crate::generate::{Arithmetic, Case};
use crate::oracle::{Mismatch, Oracle, Prepared};
use loopwright_graph::{Array, GraphBuilder, GraphError, NodeId};
use loopwright_looptree::{Annotation, LoopSpec, NodeSchedule, Schedule};
use loopwright_ops::reference::{Row, RowOp, rows};
use loopwright_ops::{DType, Scalar};
use loopwright_symbolic::Expr;
use smallvec::smallvec;
use std::ops::Range;

/// Programs compiled together.
const BATCH: usize = 48;

/// Elements a vectorised loop takes at a time.
const LANES: i64 = 4;

/// Elements that are too few for a vector.
const TAIL: usize = LANES as usize - 1;

/// One op at one dtype in one form, with all its reference values.
pub struct OpTest {
    /// What is tested, for people.
    pub name: String,
    case: Case,
    rows: Vec<Row>,
}

/// Every test there is.
pub fn op_tests() -> Vec<OpTest> {
    let mut groups: Vec<(RowOp, DType, Vec<Row>)> = Vec::new();
    for row in rows() {
        let same =
            |(op, dtype, _): &&mut (RowOp, DType, Vec<Row>)| *op == row.op && *dtype == row.dtype;
        match groups.iter_mut().rev().find(same) {
            Some((_, _, rows)) => rows.push(row),
            None => groups.push((row.op, row.dtype, vec![row])),
        }
    }
    let tests = groups.into_iter().map(|(op, dtype, rows)| {
        let name = format!("{} {dtype}", op_name(op));
        let graph = program(op, &rows[0]).unwrap_or_else(|error| {
            panic!("the reference values are for ops that exist, but {name}: {error}")
        });
        let case = Case {
            schedule: is_pointwise(op).then(|| in_lanes(&graph)),
            graph,
            sizes: vec![("N".to_owned(), 0)],
            inputs: Vec::new(),
            arithmetic: Arithmetic::Strict,
        };
        OpTest { name, case, rows }
    });
    tests.collect()
}

/// Runs tests in batches; the results are in their order.
pub fn run_op_tests(oracle: &Oracle, tests: &[OpTest]) -> Vec<Result<(), Mismatch>> {
    let mut results = Vec::with_capacity(tests.len());
    for batch in tests.chunks(BATCH) {
        let lowered: Vec<Result<Prepared, Mismatch>> = batch
            .iter()
            .map(|test| oracle.lowered(&test.case))
            .collect();
        let good: Vec<Prepared> = lowered.iter().flatten().cloned().collect();
        let mut compiled = oracle.compile_batch(&good).into_iter();
        for (test, lowered) in batch.iter().zip(lowered) {
            results.push(lowered.and_then(|prepared| {
                let Some(compiled) = compiled.next() else {
                    unreachable!("everything that was lowered is compiled, or says why not")
                };
                let compiled = compiled?;
                test.run(&|sizes, inputs| compiled.run_with(&prepared, sizes, inputs))
            }));
        }
    }
    results
}

type Run<'a> = dyn Fn(&[(&str, i64)], &[(NodeId, Array)]) -> Result<Vec<u8>, Mismatch> + 'a;

impl OpTest {
    fn run(&self, run: &Run<'_>) -> Result<(), Mismatch> {
        for row in &self.rows {
            let all = row.operands[0].len();
            self.run_row(run, row, 0..all)?;
            if is_pointwise(row.op) {
                self.run_row(run, row, 0..0)?;
                for start in (0..all).step_by(TAIL) {
                    self.run_row(run, row, start..all.min(start + TAIL))?;
                }
            }
        }
        Ok(())
    }

    /// Runs some of a row's elements; all of them where the op does not work element by element.
    fn run_row(&self, run: &Run<'_>, row: &Row, part: Range<usize>) -> Result<(), Mismatch> {
        let count = part.len();
        let inputs: Vec<(NodeId, Array)> = self
            .case
            .graph
            .parameters()
            .zip(&row.operands)
            .map(|(node, operand)| {
                let dtype = self.case.graph.node(node).dtype;
                let array = Array::from_scalars(dtype, &[count], &operand[part.clone()]);
                (
                    node,
                    array.unwrap_or_else(|error| panic!("an operand has one dtype: {error}")),
                )
            })
            .collect();
        let bytes = run(&[("N", count as i64)], &inputs)?;
        let dtype = self
            .case
            .graph
            .node(self.case.graph.outputs()[0].node)
            .dtype;
        for (offset, bytes) in bytes.chunks_exact(dtype.bytes()).enumerate() {
            let at = part.start + offset;
            let got = Scalar::read(dtype, bytes);
            if !row.accepts(at, got) {
                let operands = row.operands.iter().filter_map(|operand| operand.get(at));
                let operands: Vec<String> = operands.map(|value| value.to_string()).collect();
                return Err(Mismatch::new(
                    crate::oracle::Blame::Backend,
                    format!(
                        "element {at} of {count} ({}), operands {}: expected {} (bits {:#x}), got {got} (bits {:#x})",
                        row.place,
                        operands.join(", "),
                        row.expected[at],
                        row.expected[at].bits(),
                        got.bits()
                    ),
                ));
            }
        }
        Ok(())
    }
}

fn is_pointwise(op: RowOp) -> bool {
    match op {
        RowOp::Op(_) | RowOp::Cast(_) | RowOp::Bitcast(_) => true,
        RowOp::Reduce(_)
        | RowOp::Scan(_)
        | RowOp::ArgMax
        | RowOp::ArgMin
        | RowOp::Sort
        | RowOp::ArgSort => false,
    }
}

fn op_name(op: RowOp) -> String {
    match op {
        RowOp::Op(op) => op.to_string(),
        RowOp::Cast(to) => format!("cast to {to} from"),
        RowOp::Bitcast(to) => format!("bitcast to {to} from"),
        RowOp::Reduce(op) => format!("reduce {op}"),
        RowOp::Scan(op) => format!("scan {op}"),
        RowOp::ArgMax => "argmax".to_owned(),
        RowOp::ArgMin => "argmin".to_owned(),
        RowOp::Sort => "sort".to_owned(),
        RowOp::ArgSort => "argsort".to_owned(),
    }
}

/// The program of an op: inputs over `N` elements, one output.
fn program(op: RowOp, row: &Row) -> Result<loopwright_graph::Graph, GraphError> {
    let mut builder = GraphBuilder::new();
    let size = builder.size("N", None)?;
    let dim = builder.dim("i")?;
    builder.set_size(dim, Expr::symbol(size), "the test");
    let mut inputs = Vec::new();
    for (at, operand) in row.operands.iter().enumerate() {
        // `select` has a condition; all other operands have the row's dtype.
        let dtype = operand.first().map_or(row.dtype, |value| value.dtype());
        inputs.push(builder.input(["a", "b", "c"][at], dtype, &[dim])?);
    }
    let node = match op {
        RowOp::Op(op) => builder.map(op, &inputs)?,
        RowOp::Cast(to) => builder.cast(inputs[0], to),
        RowOp::Bitcast(to) => builder.bitcast(inputs[0], to)?,
        RowOp::Reduce(op) => builder.reduce(op, inputs[0], &[dim], None)?,
        RowOp::Scan(op) => builder.scan(op, inputs[0], dim, None, false, false)?,
        RowOp::ArgMax => builder.arg_reduce(true, inputs[0], dim)?,
        RowOp::ArgMin => builder.arg_reduce(false, inputs[0], dim)?,
        RowOp::Sort => builder.sort(inputs[0], dim, false)?,
        RowOp::ArgSort => builder.arg_sort(inputs[0], dim, false)?,
    };
    builder.output("result", node)?;
    builder.finish()
}

fn in_lanes(graph: &loopwright_graph::Graph) -> Schedule {
    let graph = graph.clone().with_stores();
    let node = graph.outputs()[0].node;
    let dim = graph.node(node).dims[0];
    let spec = |step, annotation| LoopSpec {
        dim,
        step,
        annotation,
    };
    Schedule {
        steps: vec![NodeSchedule {
            node,
            loops: smallvec![
                spec(LANES, Annotation::Serial),
                spec(1, Annotation::Vectorize)
            ],
            share: None,
        }],
    }
}
