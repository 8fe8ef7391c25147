//! A backend whose math functions are coarser than ours: it passes if it says so, and fails if it does not.

use loopwright_backend::{
    Backend, Capabilities, CompileOptions, Describe, LoopBackend, LoopProgram, LoopResult,
    MathAccuracy,
};
use loopwright_compile::Compiler;
use loopwright_conformance::{CheckOptions, Group, Outcome, Report, VerifiedRun, Verifier, check};
use loopwright_graph::Array;
use loopwright_kernel::passes::Pipeline;
use loopwright_ops::{DType, Op, OpError, Scalar, evaluate};

/// By how many units in the last place results are moved at most.
const MOVED: u64 = 40;

/// What covers that: results are moved away from ours, which are a few units off themselves.
const STATED: u32 = 44;

/// A loop backend with a math library of its own.
struct Coarse {
    /// What is moved.
    moves: fn(Op) -> bool,
    stated: MathAccuracy,
}

impl Describe for Coarse {
    fn name(&self) -> &str {
        "coarse"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            math: self.stated.clone(),
            ..Capabilities::default()
        }
    }
}

impl LoopBackend for Coarse {
    fn compile(&self, program: &LoopProgram, _: &CompileOptions) -> LoopResult {
        let moves = self.moves;
        program.executed_with(
            move |op: Op, operands: &[Scalar]| -> Result<Scalar, OpError> {
                let exact = evaluate(op, operands)?;
                Ok(match moves(op) {
                    true => moved(exact, operands),
                    false => exact,
                })
            },
        )
    }
}

/// The result some units up or down, which depends on the operands alone.
fn moved(exact: Scalar, operands: &[Scalar]) -> Scalar {
    let dtype = exact.dtype();
    let value = exact.to_f64();
    if !dtype.is_float() || !value.is_finite() || value == 0.0 {
        return exact;
    }
    let most = match dtype {
        DType::F32 | DType::F64 => MOVED,
        _ => 1,
    };
    let mixed = operands.iter().fold(7u64, |mixed, operand| {
        (mixed ^ operand.bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    let by = (mixed >> 32) % (2 * most + 1);
    // A float's bits without its sign are in the order of its size.
    let bits = exact.bits().wrapping_add(by).wrapping_sub(most);
    let moved = Scalar::from_bits(dtype, bits);
    let same_sign = (moved.to_f64() > 0.0) == (value > 0.0) && moved.to_f64() != 0.0;
    match moved.to_f64().is_finite() && same_sign {
        true => moved,
        false => exact,
    }
}

fn coarse(moves: fn(Op) -> bool, stated: MathAccuracy) -> Backend {
    Backend::loop_backend(Coarse { moves, stated })
}

fn checked(backend: Backend, groups: &[Group], programs: u64) -> Report {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let options = CheckOptions {
        groups: groups.to_vec(),
        seconds: 600,
        programs: Some(programs),
        failure_dir: directory.path().to_owned(),
        ..CheckOptions::default()
    };
    check(backend, &options)
}

#[test]
fn what_is_stated_passes() {
    let stated = MathAccuracy::within(STATED);
    let report = checked(coarse(Op::is_math_function, stated), &Group::ALL, 640);
    assert_eq!(
        (report.failed, report.blocked),
        (0, 0),
        "{:#?}",
        report.failures
    );
    assert!(report.programs > 600, "{}", report.programs);
}

#[test]
fn what_is_not_stated_fails() {
    let silent = coarse(Op::is_math_function, MathAccuracy::exact());
    let report = checked(silent, &[Group::Ops, Group::Features], 0);
    for function in ["exp", "sin", "pow", "atan2"] {
        for dtype in ["f32", "f64"] {
            let row = format!("{function} {dtype}");
            let outcome = report.row(&row).map(|row| &row.outcome);
            let failed = matches!(outcome, Some(Outcome::Failed { .. }));
            assert!(failed, "{row}: {outcome:?}");
        }
    }
    // What has no function in it is as it was.
    for row in ["add f32", "sqrt f32", "matrix_product"] {
        let outcome = report.row(row).map(|row| &row.outcome);
        assert_eq!(outcome, Some(&Outcome::Passed), "{row}");
    }
    let fuzzed = checked(
        coarse(Op::is_math_function, MathAccuracy::exact()),
        &[Group::Fuzzing],
        640,
    );
    assert!(fuzzed.failed > 0, "random programs have functions");
}

#[test]
fn a_statement_is_for_its_op_and_no_more() {
    let moves = |op: Op| matches!(op, Op::Exp | Op::Sin);
    let stated = MathAccuracy::exact().with(Op::Exp, STATED);
    let report = checked(coarse(moves, stated), &[Group::Ops], 0);
    let failed: Vec<String> = report.failures.iter().map(|row| row.name.clone()).collect();
    let expected = ["sin f32", "sin f64"];
    assert!(
        expected
            .iter()
            .all(|row| failed.iter().any(|name| name == row)),
        "{failed:?}"
    );
    assert!(
        failed.iter().all(|row| row.starts_with("sin ")),
        "{failed:?}"
    );
    // More than is stated is wrong.
    let little = MathAccuracy::within(4);
    let report = checked(coarse(Op::is_math_function, little), &[Group::Ops], 0);
    let row = report.row("exp f32").map(|row| &row.outcome);
    assert!(matches!(row, Some(Outcome::Failed { .. })), "{row:?}");
}

/// One run of `exp` and what follows from it, verified as `run --verify` does.
fn verified(stated: MathAccuracy, strict: bool) -> Result<(), String> {
    let text = "loopwright program 1\ninput x: f32[i=64]\ne = exp(x)\noutput y = e / sum[i](e)\n";
    let source = loopwright_text::Source::new("softmax.lw", text);
    let graph = loopwright_graph::parse(&source).map_err(|error| error.render(&source))?;
    let backend = coarse(Op::is_math_function, stated);
    let options = CompileOptions {
        strict,
        ..CompileOptions::default()
    };
    let compiler = Compiler::new(backend.clone(), options.clone());
    let program = compiler.compile(&graph, None).map_err(|e| e.to_string())?;
    let values: Vec<f64> = (0..64).map(|i| f64::from(i) / 9.0 - 3.0).collect();
    let x = Array::from_f64(DType::F32, &[64], &values).map_err(|e| e.to_string())?;
    let mut run = program.bind(&[]).map_err(|e| e.to_string())?;
    run.give("x", x.clone()).map_err(|e| e.to_string())?;
    run.run().map_err(|e| e.to_string())?;
    let y = run.array("y").ok_or("it has an output")?;
    let binding = program.graph().bind(&[]).map_err(|e| e.to_string())?;
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut before: Vec<&[u8]> = vec![&[]; program.params().len()];
    let mut after = before.clone();
    for (at, param) in program.params().iter().enumerate() {
        match param {
            loopwright_lower::KernelParam::Parameter(_) => before[at] = x.bytes(),
            loopwright_lower::KernelParam::Output(_) => after[at] = y.bytes(),
            _ => {}
        }
    }
    Verifier::new(directory.path().to_owned())
        .with_limits(20, 5)
        .check(&VerifiedRun {
            program: &program,
            backend: &backend,
            options: &options,
            pipeline: &Pipeline::standard(),
            binding: &binding,
            before: &before,
            after: &after,
        })
        .map_err(|error| error.to_string())
}

#[test]
fn verified_runs_take_what_is_stated() {
    for strict in [true, false] {
        let passed = verified(MathAccuracy::within(STATED), strict);
        assert_eq!(passed, Ok(()), "strict {strict}");
    }
    let failed = verified(MathAccuracy::exact(), true).expect_err("nothing was stated");
    assert!(failed.contains("on `coarse`"), "{failed}");
}
