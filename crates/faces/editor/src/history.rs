//! Undo and redo: plans are values, so the old ones are kept.

use loopwright::looptree::Cursor;
use loopwright::looptree::Plan;

/// Which plan of a session: results of compiling and measuring are kept under it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Version(pub(crate) u64);

/// A plan of the session.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) version: Version,
    pub(crate) plan: Plan,
    /// Where the cursor was when it was left.
    pub(crate) cursor: Cursor,
    /// What made it from the one before.
    pub(crate) what: String,
}

/// The plans of a session, of which one is shown.
#[derive(Debug)]
pub(crate) struct History {
    entries: Vec<Entry>,
    at: usize,
    next: u64,
}

impl History {
    pub(crate) fn new(plan: Plan, cursor: Cursor) -> History {
        let first = Entry {
            version: Version(0),
            plan,
            cursor,
            what: "opened".to_owned(),
        };
        History {
            entries: vec![first],
            at: 0,
            next: 1,
        }
    }

    pub(crate) fn now(&self) -> &Entry {
        &self.entries[self.at]
    }

    /// The plan of a version, if it can still be reached.
    pub(crate) fn find(&self, version: Version) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.version == version)
    }

    /// How many changes can be undone, and redone.
    pub(crate) fn reach(&self) -> (usize, usize) {
        (self.at, self.entries.len() - 1 - self.at)
    }

    /// Makes a plan the one that is shown. What was undone is forgotten.
    pub(crate) fn push(&mut self, plan: Plan, cursor: Cursor, what: String) {
        self.entries.truncate(self.at + 1);
        self.entries.push(Entry {
            version: Version(self.next),
            plan,
            cursor,
            what,
        });
        self.next += 1;
        self.at += 1;
    }

    /// Notes where the cursor is, to come back to it.
    pub(crate) fn leave(&mut self, cursor: Cursor) {
        self.entries[self.at].cursor = cursor;
    }

    /// Back by one; says what was undone.
    pub(crate) fn undo(&mut self) -> Option<String> {
        let what = self.now().what.clone();
        self.at = self.at.checked_sub(1)?;
        Some(what)
    }

    /// Forth by one; says what is done again.
    pub(crate) fn redo(&mut self) -> Option<String> {
        let next = self.entries.get(self.at + 1)?;
        self.at += 1;
        Some(next.what.clone())
    }
}
