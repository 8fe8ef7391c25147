//! Who used which memory last: the dependences between streams.
//!
//! Every piece of memory that is tracked on its own has an entry: the point behind its last write, and
//! for every stream the point behind its last read since. Scheduling looks up what it must wait for and
//! enters itself, both under the runtime's one lock; so all work of a runtime has one order, every wait
//! is for something before it in that order, and no circle of waits can be.

use loopwright_arena::TiVec;
use loopwright_threads::Event;
use smallvec::SmallVec;

/// What a task does with a piece of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// Reads it.
    Read,
    /// Writes all of it, and reads nothing of what was there.
    Overwrite,
    /// Writes a part of it, and leaves the rest as it was.
    Patch,
    /// Reads and writes it.
    Update,
}

impl Use {
    pub(crate) fn reads(self) -> bool {
        matches!(self, Use::Read | Use::Update)
    }

    /// Whether anything that was there before is there, or used, after.
    fn keeps(self) -> bool {
        !matches!(self, Use::Overwrite)
    }

    pub(crate) fn writes(self) -> bool {
        matches!(self, Use::Overwrite | Use::Patch | Use::Update)
    }
}

loopwright_arena::handle! {
    /// An entry's number.
    pub(crate) struct Entry;
}

/// A point that a task waits for.
#[derive(Clone)]
pub(crate) struct Wait {
    pub(crate) event: Event,
    /// Whether what is before it must have gone well: it does where its values are used, and need not where
    /// they are only to be written over, or where they were only read.
    pub(crate) well: bool,
}

/// The points that a task waits for, at most two of each other stream.
pub(crate) type Waits = SmallVec<[Wait; MANY_WAITS]>;

/// More other streams than this are rarely waited for at once.
pub(crate) const MANY_WAITS: usize = 8;

#[derive(Default)]
struct Uses {
    /// Whether anything was ever scheduled that writes it.
    written: bool,
    /// Whether what was to write it was interrupted, and nothing has written all of it since.
    lost: bool,
    /// The point behind the last write, if it was not done when last looked at.
    writer: Option<Event>,
    /// Points behind reads since the last write, one of each stream.
    readers: SmallVec<[Event; 2]>,
}

/// All entries.
#[derive(Default)]
pub(crate) struct Ledger {
    entries: TiVec<Entry, Uses>,
    free: Vec<Entry>,
}

impl Ledger {
    /// A new entry, for memory that nobody has written.
    pub(crate) fn open(&mut self) -> Entry {
        self.free
            .pop()
            .unwrap_or_else(|| self.entries.push_and_get_key(Uses::default()))
    }

    /// Gives an entry's number back.
    pub(crate) fn close(&mut self, entry: Entry) {
        self.entries[entry] = Uses::default();
        self.free.push(entry);
    }

    /// How many entries there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether anything that writes it was scheduled, and not interrupted.
    pub(crate) fn is_written(&self, entry: Entry) -> bool {
        let uses = &self.entries[entry];
        uses.written && !uses.lost
    }

    /// Whether its values are lost: what was to write it was interrupted.
    pub(crate) fn is_lost(&self, entry: Entry) -> bool {
        self.entries[entry].lost
    }

    /// Says that a task that uses an entry so was interrupted. `begun`: it may have written a part. Otherwise what it was to
    /// update is as it was, and only what it was to fill is not there.
    pub(crate) fn lose(&mut self, entry: Entry, usage: Use, begun: bool) {
        if usage == Use::Overwrite || (begun && usage.writes()) {
            self.entries[entry].lost = true;
        }
    }

    /// Whether everything that was scheduled to use it is done, and went well.
    pub(crate) fn is_idle(&self, entry: Entry) -> bool {
        let uses = &self.entries[entry];
        let is_well = |writer: &Event| writer.is_done() && writer.failure().is_none();
        uses.writer.as_ref().is_none_or(is_well) && uses.readers.iter().all(Event::is_done)
    }

    /// Adds what a task at the point `now` must wait for before it uses an entry so.
    pub(crate) fn waits(&mut self, entry: Entry, usage: Use, now: &Event, waits: &mut Waits) {
        let uses = &mut self.entries[entry];
        if let Some(writer) = &uses.writer {
            add(writer, usage.keeps(), now, waits);
        }
        if usage.writes() {
            for reader in &uses.readers {
                add(reader, false, now, waits);
            }
        }
    }

    /// Enters a task's use; `now` is the point behind the task.
    pub(crate) fn enter(&mut self, entry: Entry, usage: Use, now: &Event) {
        let uses = &mut self.entries[entry];
        if usage.writes() {
            uses.written = true;
            uses.lost &= usage == Use::Patch;
            uses.readers.clear();
            match &mut uses.writer {
                Some(writer) if writer.is_same_queue(now) => writer.move_to(now.count()),
                writer => *writer = Some(now.clone()),
            }
        } else {
            let known = uses
                .readers
                .iter_mut()
                .find(|reader| reader.is_same_queue(now));
            match known {
                Some(reader) => reader.move_to(now.count()),
                None => {
                    // Reads that are done need no more be waited for, and their streams may be gone.
                    uses.readers.retain(|reader| !reader.is_done());
                    uses.readers.push(now.clone());
                }
            }
        }
    }
}

/// Adds a point to wait for, unless it is on the task's own stream, which keeps its order, or done as it must.
fn add(point: &Event, well: bool, now: &Event, waits: &mut Waits) {
    if point.is_same_queue(now) || (point.is_done() && (!well || point.failure().is_none())) {
        return;
    }
    let known = waits
        .iter_mut()
        .find(|known| known.well == well && known.event.is_same_queue(point));
    match known {
        Some(known) if known.event.count() < point.count() => known.event.move_to(point.count()),
        Some(_) => {}
        None => waits.push(Wait {
            event: point.clone(),
            well,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_threads::{InlineQueue, Job};

    fn counts(waits: &Waits) -> Vec<(String, u64)> {
        let pairs = waits
            .iter()
            .map(|wait| (wait.event.queue().into(), wait.event.count()));
        pairs.collect()
    }

    #[test]
    fn reads_wait_for_writes_and_writes_for_both() {
        let mut ledger = Ledger::default();
        let entry = ledger.open();
        let [a, b, c] = ["a", "b", "c"].map(|name| InlineQueue::new(name).record());
        let ask = |usage, now: &Event, ledger: &mut Ledger| {
            let mut waits = Waits::new();
            ledger.waits(entry, usage, now, &mut waits);
            ledger.enter(entry, usage, now);
            counts(&waits)
        };
        assert_eq!(ask(Use::Overwrite, &a.at(1), &mut ledger), []);
        assert_eq!(ask(Use::Read, &a.at(2), &mut ledger), []);
        let read_after_write = [("a".to_owned(), 1)];
        assert_eq!(ask(Use::Read, &b.at(1), &mut ledger), read_after_write);
        assert_eq!(ask(Use::Read, &c.at(5), &mut ledger), read_after_write);
        let write_after_read = [("a".to_owned(), 1), ("c".to_owned(), 5)];
        assert_eq!(ask(Use::Overwrite, &b.at(2), &mut ledger), {
            let mut expected = write_after_read.to_vec();
            expected[0].1 = 2;
            expected
        });
        let write_after_write = [("b".to_owned(), 2)];
        assert_eq!(
            ask(Use::Overwrite, &c.at(6), &mut ledger),
            write_after_write
        );
        assert!(ledger.is_written(entry));
        ledger.close(entry);
        assert_eq!(ledger.len(), 0);
        let again = ledger.open();
        assert_eq!(again, entry);
        assert!(!ledger.is_written(again));
    }

    #[test]
    fn what_is_done_is_not_waited_for_unless_it_failed() {
        let mut ledger = Ledger::default();
        let entry = ledger.open();
        let mut writer = InlineQueue::new("writer");
        writer.push(Job::new("write", || Ok(()))).expect("it works");
        ledger.enter(entry, Use::Overwrite, &writer.record());
        let reader = InlineQueue::new("reader").record();
        let mut waits = Waits::new();
        ledger.waits(entry, Use::Read, &reader.at(1), &mut waits);
        assert!(waits.is_empty());
        let failed = writer.push(Job::new("write", || Err("no".into())));
        assert!(failed.is_err());
        ledger.enter(entry, Use::Overwrite, &writer.record());
        ledger.waits(entry, Use::Read, &reader.at(1), &mut waits);
        assert_eq!(counts(&waits), [("writer".to_owned(), 2)]);
    }
}
