//! Which failures are the fault of another row.

use crate::pieces::{Piece, Pieces};
use crate::report::{Outcome, Row};
use rustc_hash::{FxHashMap, FxHashSet};

/// A row that was run.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    pub(crate) row: Row,
    /// What it tests, if that is one thing of the op table.
    pub(crate) tests: Option<Piece>,
    /// Where it failed: what the kernels that failed are made of.
    pub(crate) suspects: Pieces,
}

/// Decides what fails and what is only blocked. A row that fails is blocked if a kernel of it that fails is
/// made of something whose own row fails, or is blocked in turn. Where rows would block each other and
/// nothing else blocks them, all of them fail: nothing says which comes first.
pub(crate) fn resolve(ran: Vec<Ran>) -> Vec<Ran> {
    let failed = |ran: &Ran| matches!(ran.row.outcome, Outcome::Failed { .. });
    let mut testers: FxHashMap<Piece, usize> = FxHashMap::default();
    for (at, row) in ran.iter().enumerate() {
        if let Some(piece) = row.tests.filter(|_| failed(row)) {
            testers.insert(piece, at);
        }
    }
    // By row: the failing rows that test what it is made of.
    let blockers: Vec<Vec<usize>> = ran
        .iter()
        .enumerate()
        .map(|(at, row)| {
            let suspects = row.suspects.iter().filter_map(|piece| testers.get(piece));
            match failed(row) {
                true => suspects.copied().filter(|tester| *tester != at).collect(),
                false => Vec::new(),
            }
        })
        .collect();
    let reached: Vec<FxHashSet<usize>> = (0..ran.len()).map(|at| reach(at, &blockers)).collect();
    // Nothing blocks it, or only what it blocks in turn.
    let guilty = |at: usize| {
        reached[at]
            .iter()
            .all(|other| reached[*other].contains(&at))
    };
    let blocked = |at: usize| {
        let mut roots: Vec<usize> = reached[at]
            .iter()
            .copied()
            .filter(|at| guilty(*at))
            .collect();
        roots.sort_unstable();
        let by = roots.into_iter().map(|root| ran[root].row.name());
        Outcome::Blocked { by: by.collect() }
    };
    let outcomes: Vec<Option<Outcome>> = (0..ran.len())
        .map(|at| (!guilty(at)).then(|| blocked(at)))
        .collect();
    let mut ran = ran;
    for (ran, blocked) in ran.iter_mut().zip(outcomes) {
        if let Some(blocked) = blocked {
            ran.row.outcome = blocked;
        }
    }
    ran
}

/// All that is reached from a row through those that block it; the row itself only on a circle.
fn reach(from: usize, blockers: &[Vec<usize>]) -> FxHashSet<usize> {
    let mut reached = FxHashSet::default();
    let mut open: Vec<usize> = blockers[from].clone();
    while let Some(at) = open.pop() {
        if reached.insert(at) {
            open.extend(&blockers[at]);
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Group;
    use loopwright_ops::{DType, Op};

    fn ran(name: &str, tests: Option<Op>, suspects: &[Op]) -> Ran {
        let piece = |op: &Op| Piece::Op(*op, DType::I64);
        Ran {
            row: Row {
                group: Group::Ops,
                line: name.to_owned(),
                column: String::new(),
                outcome: Outcome::failed("wrong"),
                uses: Pieces::new(),
            },
            tests: tests.as_ref().map(piece),
            suspects: suspects.iter().map(piece).collect(),
        }
    }

    fn marks(ran: Vec<Ran>) -> String {
        let rows = resolve(ran);
        rows.iter().map(|ran| ran.row.outcome.mark()).collect()
    }

    #[test]
    fn what_is_made_of_a_failing_op_is_blocked() {
        let rows = vec![
            ran("add", Some(Op::Add), &[Op::Add]),
            ran("sub", Some(Op::Sub), &[Op::Sub, Op::Add]),
            ran("product", None, &[Op::Sub]),
            ran("other", None, &[Op::Exp]),
        ];
        assert_eq!(marks(rows.clone()), "FbbF");
        let by = match &resolve(rows)[2].row.outcome {
            Outcome::Blocked { by } => by.clone(),
            other => panic!("it is blocked, not {other:?}"),
        };
        assert_eq!(by, ["add"], "the one that fails on its own account");
    }

    #[test]
    fn rows_that_block_each_other_fail() {
        let rows = vec![
            ran("add", Some(Op::Add), &[Op::Add, Op::Sub]),
            ran("sub", Some(Op::Sub), &[Op::Sub, Op::Add]),
            ran("product", None, &[Op::Add]),
        ];
        assert_eq!(marks(rows), "FFb");
    }

    #[test]
    fn rows_that_block_each_other_can_be_blocked() {
        let rows = vec![
            ran("add", Some(Op::Add), &[Op::Add]),
            ran("lt", Some(Op::Lt), &[Op::Lt, Op::Mod, Op::Add]),
            ran("mod", Some(Op::Mod), &[Op::Lt, Op::Mod, Op::Add]),
        ];
        assert_eq!(marks(rows), "Fbb");
    }

    #[test]
    fn what_passed_blocks_nothing() {
        let mut rows = vec![
            ran("add", Some(Op::Add), &[Op::Add]),
            ran("product", None, &[Op::Add]),
        ];
        rows[0].row.outcome = Outcome::Passed;
        assert_eq!(marks(rows), ".F");
    }
}
