//! What must hold when a backend's code meets memory and time: the behaviours of the runtime, each under
//! either scheduler.
//!
//! Programs are over `i64`, which every backend has. Where a backend does not compute, values are compared
//! only where they were given.

mod bench;
mod devices;
mod gate;
mod linking;
mod memory;
mod streams;

pub(crate) use bench::{Bench, Stop, ensure, link, write};

use crate::kit::RowName;
use crate::pieces::Pieces;
use crate::report::Group;
use crate::verdict::Verdict;
use loopwright_backend::{Backend, Scheduler};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Something that must hold.
#[derive(Clone, Copy)]
pub struct Behaviour {
    /// Its name, an identifier.
    pub name: &'static str,
    hold: fn(&Bench<'_>) -> Result<(), Stop>,
}

macro_rules! behaviours {
    ($($module:ident: $($name:ident)*;)*) => {
        /// Every behaviour.
        pub const BEHAVIOURS: &[Behaviour] = &[
            $($(Behaviour { name: stringify!($name), hold: $module::$name },)*)*
        ];
    };
}

behaviours! {
    memory:
        values_come_back zeroed_arrays_are_zero neighbours_are_left_alone slices_are_views
        scratch_is_reused constants_are_shared memory_is_given_back the_plan_is_what_is_used
        host_arrays_are_adopted_or_refused;
    linking:
        children_share_arrays linked_twice_is_linked_once states_persist statics_are_captured
        several_sizes_from_one_compile batches_compile_together parts_are_delegated schedules_are_set
        stores_are_logged;
    streams:
        work_runs_in_order a_full_queue_drops_nothing reads_wait_for_writes
        writes_wait_for_reads streams_wait_for_events a_failure_stays_on_its_stream
        many_threads_at_once;
    devices:
        copies_between_streams copies_between_devices merges_by_copy;
}

/// The behaviour of that name.
pub fn behaviour(name: &str) -> Option<&'static Behaviour> {
    BEHAVIOURS.iter().find(|behaviour| behaviour.name == name)
}

impl Behaviour {
    pub(crate) fn row(&self, scheduler: Scheduler) -> RowName<'static> {
        RowName {
            group: Group::Runtime,
            line: self.name,
            column: scheduler.name(),
        }
    }

    /// Sees whether it holds; also gives what the kernels are made of that it runs.
    pub(crate) fn run(&self, backend: &Backend, scheduler: Scheduler) -> (Pieces, Verdict) {
        let bench = Bench::new(backend, scheduler);
        run_on(&bench, || (self.hold)(&bench))
    }
}

/// Runs something on a bench, with all that can come of it.
pub(crate) fn run_on(
    bench: &Bench<'_>,
    row: impl FnOnce() -> Result<(), Stop>,
) -> (Pieces, Verdict) {
    let result = catch_unwind(AssertUnwindSafe(row));
    let uses = bench.uses();
    let failed = |message: String| Verdict::Failed {
        message,
        suspects: uses.clone(),
    };
    let verdict = match result {
        Ok(Ok(())) => Verdict::Passed,
        Ok(Err(Stop::NotApplicable(why))) => Verdict::NotApplicable(why),
        Ok(Err(Stop::Failed(message))) => failed(message),
        Err(panic) => failed(crate::oracle::panic_message(&*panic)),
    };
    (uses, verdict)
}
