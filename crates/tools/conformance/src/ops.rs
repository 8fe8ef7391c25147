//! Every op, cast, reduction, scan and sort at every dtype, against independent values.
//!
//! The values are those of [`loopwright_ops::reference`], computed without any of our code. Each op at
//! each dtype is one program over a symbolic size, compiled once and run for every row of reference
//! values. What works element by element is scheduled in the lanes of vectors with a scalar tail, two
//! paths through most backends, and run three times: over all elements of a row at once, over a few at
//! a time, which only the tail takes, and over none.

use crate::functions::is_near;
use crate::generate::{Arithmetic, Case};
use crate::oracle::{Mismatch, Oracle, Prepared};
use crate::pieces::Piece;
use crate::report::Group;
use crate::verdict::{Ready, Verdict};
use loopwright_backend::{Capabilities, MathAccuracy};
use loopwright_graph::{Array, GraphBuilder, GraphError, NodeId};
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::{Block, Function, FunctionId, Inst, Stmt};
use loopwright_looptree::{Annotation, LoopSpec, NodeSchedule, Schedule};
use loopwright_ops::reference::{Row, RowOp, rows};
use loopwright_ops::{DType, Op, Scalar};
use loopwright_symbolic::Expr;
use smallvec::smallvec;
use std::ops::Range;
use std::sync::OnceLock;

/// Elements a vectorised loop takes at a time.
const LANES: i64 = 4;

/// Elements that are too few for a vector.
const TAIL: usize = LANES as usize - 1;

/// One op at one dtype in one form, with all its reference values.
pub struct OpTest {
    op: RowOp,
    dtype: DType,
    case: Case,
    rows: Vec<Row>,
    /// The kernel that is tested.
    tested: OnceLock<Result<Ready, Mismatch>>,
    /// The kernel of one plain loop, which has no op but this one: it says whose fault a failure is.
    plain: OnceLock<Result<Ready, Mismatch>>,
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
        let graph = program(op, &rows[0]).unwrap_or_else(|error| {
            panic!(
                "the reference values are for ops that exist, but {} {dtype}: {error}",
                op_name(op)
            )
        });
        let case = Case {
            schedule: is_pointwise(op).then(|| in_lanes(&graph)),
            graph,
            sizes: vec![("N".to_owned(), 0)],
            inputs: Vec::new(),
            arithmetic: Arithmetic::Strict,
        };
        OpTest {
            op,
            dtype,
            case,
            rows,
            tested: OnceLock::new(),
            plain: OnceLock::new(),
        }
    });
    tests.collect()
}

/// Compiles tests together and runs each; what was found is in their order. Kernels are made by `maker`,
/// once, and run by `oracle`.
pub(crate) fn run_op_tests(oracle: &Oracle, maker: &Oracle, tests: &[&OpTest]) -> Vec<Verdict> {
    let capabilities = oracle.backend().capabilities();
    let accuracy = &capabilities.math;
    let mut verdicts: Vec<Option<Verdict>> = vec![None; tests.len()];
    // In vectors first; what fails there is tried in one plain loop.
    let mut failed: Vec<Option<(Mismatch, &Ready)>> = vec![None; tests.len()];
    let chosen: Vec<Option<&Ready>> = tests
        .iter()
        .zip(&mut verdicts)
        .map(
            |(test, verdict)| match test.applicable(maker, &capabilities) {
                Ok(ready) => Some(ready),
                Err(found) => {
                    *verdict = Some(found);
                    None
                }
            },
        )
        .collect();
    for (at, result) in run_chosen(oracle, accuracy, tests, &chosen) {
        match (result, chosen[at]) {
            (Err(mismatch), Some(ready)) => failed[at] = Some((mismatch, ready)),
            _ => verdicts[at] = Some(Verdict::Passed),
        }
    }
    let plain: Vec<Option<&Ready>> = tests
        .iter()
        .zip(&failed)
        .map(|(test, failed)| {
            failed.as_ref()?;
            test.plain(maker)?.as_ref().ok()
        })
        .collect();
    for (at, result) in run_chosen(oracle, accuracy, tests, &plain) {
        if let (Err(mismatch), Some(ready)) = (result, plain[at]) {
            failed[at] = Some((mismatch, ready));
        }
    }
    let verdicts = verdicts.into_iter().zip(failed);
    verdicts
        .map(|(verdict, failed)| match (verdict, failed) {
            (_, Some((mismatch, ready))) => Verdict::Failed {
                message: mismatch.to_string(),
                suspects: ready.uses.clone(),
            },
            (Some(verdict), None) => verdict,
            (None, None) => unreachable!("what applies was run"),
        })
        .collect()
}

/// Compiles those that are chosen together and runs each.
fn run_chosen(
    oracle: &Oracle,
    accuracy: &MathAccuracy,
    tests: &[&OpTest],
    chosen: &[Option<&Ready>],
) -> Vec<(usize, Result<(), Mismatch>)> {
    let places = (0..tests.len()).filter_map(|at| Some((at, chosen[at]?)));
    let places: Vec<(usize, &Ready)> = places.collect();
    let prepared: Vec<&Prepared> = places.iter().map(|(_, ready)| &ready.prepared).collect();
    let compiled = oracle.compile_batch(&prepared).into_iter();
    let runs = places.iter().zip(compiled);
    runs.map(|((at, ready), compiled)| {
        let result = compiled.and_then(|compiled| {
            let run = |sizes: &[(&str, i64)], inputs: &[(NodeId, Array)]| {
                compiled.run_with(&ready.prepared, sizes, inputs)
            };
            tests[*at].run(accuracy, &run)
        });
        (*at, result)
    })
    .collect()
}

/// Runs at these sizes with these inputs; gives the bytes of the result, or none where the backend does not
/// compute.
type Run<'a> = dyn Fn(&[(&str, i64)], &[(NodeId, Array)]) -> Result<Option<Vec<u8>>, Mismatch> + 'a;

impl OpTest {
    /// What is tested: the op, or what else it is.
    pub fn line(&self) -> String {
        op_name(self.op)
    }

    /// At which dtype.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// What kind of op it is.
    pub fn group(&self) -> Group {
        match self.op {
            RowOp::Op(_) => Group::Ops,
            RowOp::Cast(_) | RowOp::Bitcast(_) => Group::Casts,
            RowOp::Reduce(_)
            | RowOp::Scan(_)
            | RowOp::ArgMax
            | RowOp::ArgMin
            | RowOp::Sort
            | RowOp::ArgSort => Group::Folds,
        }
    }

    /// What it tests of the op table; `None` where it is made of several things.
    pub fn piece(&self) -> Option<Piece> {
        let from = self.dtype;
        match self.op {
            RowOp::Op(op) => Some(Piece::Op(op, from)),
            RowOp::Cast(to) => Some(Piece::Cast { from, to }),
            RowOp::Bitcast(to) => Some(Piece::Bitcast { from, to }),
            RowOp::Reduce(_)
            | RowOp::Scan(_)
            | RowOp::ArgMax
            | RowOp::ArgMin
            | RowOp::Sort
            | RowOp::ArgSort => None,
        }
    }

    /// How many operands the op has.
    pub fn operands(&self) -> usize {
        self.case.graph.parameters().count()
    }

    /// Keeps only the first row of reference values: enough to see whether it runs at all.
    pub(crate) fn abridge(&mut self) {
        self.rows.truncate(1);
    }

    /// The kernel that is tested.
    pub(crate) fn tested(&self, maker: &Oracle) -> &Result<Ready, Mismatch> {
        self.tested.get_or_init(|| self.kernel(maker, &self.case))
    }

    /// The kernel of one plain loop; `None` where the op does not work element by element.
    fn plain(&self, maker: &Oracle) -> Option<&Result<Ready, Mismatch>> {
        let plain = || {
            let case = Case {
                schedule: Some(in_one_loop(&self.case.graph)),
                ..self.case.clone()
            };
            self.kernel(maker, &case)
        };
        is_pointwise(self.op).then(|| self.plain.get_or_init(plain))
    }

    fn kernel(&self, maker: &Oracle, case: &Case) -> Result<Ready, Mismatch> {
        let ready = maker.lowered(case).map(Ready::new)?;
        let Some(piece) = self.piece().filter(|piece| !ready.uses.contains(piece)) else {
            return Ok(ready);
        };
        // A pass has found something else that does the same; it is this op that is tested.
        let maker = maker.clone().with_pipeline(Pipeline::empty());
        let mut prepared = maker.lowered(case)?;
        if matches!(piece, Piece::Op(Op::Copy, _)) {
            copy_what_is_stored(&mut prepared.module_mut().functions[FunctionId(0)]);
        }
        Ok(Ready::new(prepared))
    }

    /// The kernel that a backend with these capabilities is given, or why there is none.
    fn applicable(&self, maker: &Oracle, capabilities: &Capabilities) -> Result<&Ready, Verdict> {
        let first = self.tested(maker);
        let refusal = match first {
            Ok(ready) => match ready.refusal(capabilities) {
                None => return Ok(ready),
                Some(refusal) => refusal,
            },
            Err(mismatch) => return Err(Verdict::from(mismatch)),
        };
        match self.plain(maker) {
            Some(Ok(ready)) => match ready.refusal(capabilities) {
                None => Ok(ready),
                Some(refusal) => Err(Verdict::NotApplicable(refusal)),
            },
            _ => Err(Verdict::NotApplicable(refusal)),
        }
    }

    /// By how many units in the last place a result may be off because the backend says so.
    fn stated(&self, accuracy: &MathAccuracy) -> u32 {
        match self.op {
            RowOp::Op(op) => accuracy.ulps(op, self.dtype),
            RowOp::Cast(_)
            | RowOp::Bitcast(_)
            | RowOp::Reduce(_)
            | RowOp::Scan(_)
            | RowOp::ArgMax
            | RowOp::ArgMin
            | RowOp::Sort
            | RowOp::ArgSort => 0,
        }
    }

    fn run(&self, accuracy: &MathAccuracy, run: &Run<'_>) -> Result<(), Mismatch> {
        let stated = self.stated(accuracy);
        for row in &self.rows {
            let all = row.operands[0].len();
            self.run_row(run, row, stated, 0..all)?;
            if is_pointwise(row.op) {
                self.run_row(run, row, stated, 0..0)?;
                for start in (0..all).step_by(TAIL) {
                    self.run_row(run, row, stated, start..all.min(start + TAIL))?;
                }
            }
        }
        Ok(())
    }

    /// Runs some of a row's elements; all of them where the op does not work element by element.
    fn run_row(
        &self,
        run: &Run<'_>,
        row: &Row,
        stated: u32,
        part: Range<usize>,
    ) -> Result<(), Mismatch> {
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
        let Some(bytes) = run(&[("N", count as i64)], &inputs)? else {
            return Ok(());
        };
        let dtype = self
            .case
            .graph
            .node(self.case.graph.outputs()[0].node)
            .dtype;
        for (offset, bytes) in bytes.chunks_exact(dtype.bytes()).enumerate() {
            let at = part.start + offset;
            let got = Scalar::read(dtype, bytes);
            let near = stated > 0 && is_near(got, row.expected[at], stated);
            if !near && !row.accepts(at, got) {
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

/// Copies every value before it is stored. Lowering has no use for copies, so that this is the only way to
/// see one.
fn copy_what_is_stored(function: &mut Function) {
    let mut body = std::mem::take(&mut function.body);
    copy_in_block(function, &mut body);
    function.body = body;
}

fn copy_in_block(function: &mut Function, block: &mut Block) {
    let mut copied = Block::with_capacity(block.len());
    for mut stmt in block.drain(..) {
        if let Stmt::Store { value, .. } = &mut stmt {
            let copy = function.value(function.ty(*value).clone(), "copy");
            copied.push(Stmt::Let(copy, Inst::Map(Op::Copy, smallvec![*value])));
            *value = copy;
        }
        for inner in stmt.blocks_mut().into_iter().flatten() {
            copy_in_block(function, inner);
        }
        copied.push(stmt);
    }
    *block = copied;
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

/// In the lanes of vectors, with a tail.
fn in_lanes(graph: &loopwright_graph::Graph) -> Schedule {
    over_elements(
        graph,
        &[(LANES, Annotation::Serial), (1, Annotation::Vectorize)],
    )
}

/// One element after the other.
fn in_one_loop(graph: &loopwright_graph::Graph) -> Schedule {
    over_elements(graph, &[(1, Annotation::Serial)])
}

fn over_elements(graph: &loopwright_graph::Graph, loops: &[(i64, Annotation)]) -> Schedule {
    let graph = graph.clone().with_stores();
    let node = graph.outputs()[0].node;
    let dim = graph.node(node).dims[0];
    let loops = loops.iter().map(|(step, annotation)| LoopSpec {
        dim,
        step: *step,
        annotation: *annotation,
    });
    Schedule::of_steps(vec![NodeSchedule::new(node, loops)])
}
