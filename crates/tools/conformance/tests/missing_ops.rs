//! Without an op, exactly the rows of that op fail, and what is made of it is blocked by them.

mod support;

use loopwright_backend::{
    Backend, BackendError, CompileOptions, Describe, Executable, KernelBackend,
};
use loopwright_conformance::lanes::Lanes;
use loopwright_conformance::{CheckOptions, Group, Kit, Outcome, Piece, Pieces, Report, pieces};
use loopwright_interp::Interp;
use loopwright_kernel::{Block, Inst, Module, Stmt};
use loopwright_ops::{DType, Op};
use std::sync::Arc;

/// Everything but random programs.
fn options() -> CheckOptions {
    CheckOptions {
        groups: Group::ALL
            .into_iter()
            .filter(|group| *group != Group::Fuzzing)
            .collect(),
        ..CheckOptions::default()
    }
}

fn has(uses: &Pieces, op: Op) -> bool {
    let same = |piece: &Piece| matches!(piece, Piece::Op(used, _) if *used == op);
    uses.iter().any(same)
}

/// Fails unless the rows of the op fail, all of them and nothing else, and exactly what is made of it is
/// blocked by rows of it.
fn assert_exactly(report: &Report, op: Op, all: &Report) {
    let name = op.name();
    let mut wrong = Vec::new();
    for row in &report.rows {
        let own = row.group == Group::Ops && row.line == name;
        let right = match &row.outcome {
            Outcome::Failed { .. } => own,
            Outcome::Blocked { by } => {
                let of_op = |by: &String| by.split(' ').next() == Some(name);
                !own && has(&row.uses, op) && by.iter().all(of_op)
            }
            Outcome::Passed => !own && !has(&row.uses, op),
            Outcome::NotApplicable { .. } => !own,
        };
        if !right {
            wrong.push(format!("{}: {:?}", row.name(), row.outcome));
        }
    }
    assert!(wrong.is_empty(), "without `{name}`:\n{}", wrong.join("\n"));
    assert_eq!(report.rows.len(), all.rows.len(), "no row is left out");
    assert!(report.failed > 0, "`{name}` has rows");
}

#[test]
fn without_an_op_exactly_its_rows_fail() {
    let kit = Kit::new(&support::interp()).abridged();
    let all = kit.check(&support::interp(), &options());
    assert_eq!(all.failures, [], "the interpreter has everything");
    for op in Op::ALL.iter().copied() {
        let without = support::interp().refusing(move |module| {
            has(&pieces(module), op).then(|| BackendError::Unsupported {
                backend: "interp".to_owned(),
                kernel: "program".to_owned(),
                reason: format!("there is no `{op}`"),
            })
        });
        assert_exactly(&kit.check(&without, &options()), op, &all);
    }
}

/// An interpreter that does another op in place of one.
struct Instead {
    of: Op,
    does: Op,
}

impl Describe for Instead {
    fn name(&self) -> &str {
        "instead"
    }
}

impl KernelBackend for Instead {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let mut module = module.clone();
        for function in &mut module.functions {
            self.replace(&mut function.body);
        }
        Interp.compile(&module, options)
    }
}

impl Instead {
    fn replace(&self, block: &mut Block) {
        for stmt in block {
            if let Stmt::Let(_, Inst::Map(op, _)) = stmt
                && *op == self.of
            {
                *op = self.does;
            }
            for block in stmt.blocks_mut().into_iter().flatten() {
                self.replace(block);
            }
        }
    }
}

#[test]
fn a_wrong_op_fails_its_own_rows_alone() {
    let kit = Kit::new(&support::interp());
    // Rows of these, and everything that sorts or folds, are made of the ops that are wrong.
    let pairs = [
        (Op::Max, Op::Min),
        (Op::Exp, Op::Exp2),
        (Op::Sub, Op::Add),
        (Op::Le, Op::Lt),
        (Op::Shr, Op::Shl),
    ];
    for (of, does) in pairs {
        let backend = Backend::kernel_backend(Instead { of, does });
        let report = kit.check(&backend, &options());
        let failed = report
            .rows
            .iter()
            .filter(|row| matches!(row.outcome, Outcome::Failed { .. }));
        let others = failed.filter(|row| row.group != Group::Ops || row.line != of.name());
        let others: Vec<String> = others
            .map(|row| format!("{}: {:?}", row.name(), row.outcome))
            .collect();
        assert!(
            others.is_empty(),
            "{does} in place of {of}:\n{}",
            others.join("\n")
        );
        let own = report.rows.iter().filter(|row| {
            row.group == Group::Ops && row.line == of.name() && row.outcome == Outcome::Passed
        });
        let own: Vec<String> = own.map(|row| row.name()).collect();
        assert_eq!(
            own, [""; 0],
            "{does} in place of {of}: every dtype shows it"
        );
    }
}

/// With the op, the dtype and the lanes, and what the operands were.
#[test]
#[should_panic(expected = "max_i16x8(1 (0x1), 0 (0x0)) gave 0 (0x0), expected 1 (0x1)")]
fn a_wrong_op_is_wrong_in_lanes() {
    let instead = Instead {
        of: Op::Max,
        does: Op::Min,
    };
    let lanes = Lanes::new(Backend::kernel_backend(instead)).widths(|_| &[8]);
    lanes.assert_ops(&[DType::I16]);
}
