//! `dump --stage plan`: all memory that a run needs, before it runs.

use crate::failure::Failure;
use crate::memory::{Stack, total};
use crate::preview::describe;
use crate::program::{Compiled, NO_CAP, Opened};
use crate::table::Table;
use crate::units;
use loopwright::runtime::{Plan, Planned, PlannedRole, RuntimeError};
use std::fmt::Write as _;

/// Writing to a string cannot fail.
macro_rules! line {
    ($text:expr, $($words:tt)*) => {
        let _ = writeln!($text, $($words)*);
    };
}

/// Pools with what lies where in them, the stack of each thread, and where values live.
pub(super) fn plan_text(opened: &Opened<'_>, compiled: &Compiled) -> Result<String, Failure> {
    let cap = opened.device.runtime.options().pool_cap;
    let sizes = opened.given_sizes();
    let (plan, refused) = match compiled.plan(&sizes, cap).map_err(|error| *error) {
        Ok(plan) => (plan, None),
        // What needs too much is what the plan is looked at for.
        Err(error @ RuntimeError::OverCap { .. }) => {
            (compiled.plan(&sizes, NO_CAP)?, Some(error.to_string()))
        }
        Err(error) => return Err(error.into()),
    };
    let stack = Stack::of(&compiled.program().module());
    let mut text = String::new();
    pools(compiled, &plan, &mut text);
    on_stack(&stack, &mut text);
    modes(compiled, &mut text);
    totals(&plan, &stack, &mut text);
    if let Some(reason) = refused {
        line!(text, "it cannot run like this: {reason}");
    }
    Ok(text)
}

fn add(table: &Table, text: &mut String) {
    for line in table.lines(2) {
        line!(text, "{line}");
    }
    text.push('\n');
}

fn pools(compiled: &Compiled, plan: &Plan, text: &mut String) {
    for (pool, bytes) in plan.pools.iter_enumerated() {
        line!(text, "pool {}: {}", pool.0, exactly(*bytes as u128));
        let inside = plan.entries.iter();
        let mut inside: Vec<&Planned> = inside.filter(|entry| entry.loc.pool == pool).collect();
        inside.sort_by_key(|entry| entry.loc.offset);
        let mut table = Table::right(&[0, 1]);
        table.row(["offset", "size", "use", "name", "array", ""]);
        for entry in &inside {
            let array = match &entry.array {
                Some(array) => array.clone(),
                None => scratch(compiled, entry),
            };
            let sharing: Vec<&str> = inside
                .iter()
                .filter(|other| !std::ptr::eq(**other, *entry) && overlap(entry, other))
                .map(|other| other.name.as_str())
                .collect();
            let mut notes = Vec::new();
            if let Some(live) = &entry.live {
                notes.push(match live.end.saturating_sub(live.start) {
                    0 => "never used".to_owned(),
                    1 => format!("in statement {}", live.start),
                    _ => format!("in statements {} to {}", live.start, live.end - 1),
                });
            }
            if !sharing.is_empty() {
                notes.push(format!("shares bytes with {}", sharing.join(", ")));
            }
            table.row([
                &entry.loc.offset.to_string(),
                &units::bytes(entry.bytes as u128),
                entry.role.name(),
                &entry.name,
                &array,
                &notes.join(", "),
            ]);
        }
        add(&table, text);
    }
}

/// What scratch memory holds.
fn scratch(compiled: &Compiled, entry: &Planned) -> String {
    let mut known = compiled.program().scratch().iter();
    known
        .find(|scratch| scratch.name == entry.name)
        .map_or_else(String::new, |scratch| {
            describe(scratch.dtype, &[entry.bytes / scratch.dtype.bytes()])
        })
}

/// Whether two pieces of one pool have bytes in common.
fn overlap(a: &Planned, b: &Planned) -> bool {
    let end = |entry: &Planned| entry.loc.offset + entry.bytes;
    a.loc.offset.max(b.loc.offset) < end(a).min(end(b))
}

fn on_stack(stack: &Stack, text: &mut String) {
    if stack.arrays.is_empty() {
        return;
    }
    line!(
        text,
        "stack of each thread: at most {}",
        exactly(stack.bytes)
    );
    let mut table = Table::right(&[0]);
    table.row(["size", "name", "array", ""]);
    for array in &stack.arrays {
        let copies = match array.copies {
            1 => String::new(),
            copies => format!("{copies} of these"),
        };
        table.row([
            &units::bytes(array.bytes),
            &array.name,
            &array.describe(),
            &copies,
        ]);
    }
    add(&table, text);
}

fn modes(compiled: &Compiled, text: &mut String) {
    line!(text, "where values live:");
    let mut table = Table::default();
    table.row(["name", "mode", "because"]);
    for node in compiled.code.modes() {
        table.row([
            compiled.shown_name(&node.node),
            &node.mode.to_string(),
            &node.why.to_string(),
        ]);
    }
    add(&table, text);
}

fn totals(plan: &Plan, stack: &Stack, text: &mut String) {
    let of = |roles: &[PlannedRole]| -> u128 {
        let entries = plan.entries.iter();
        let entries = entries.filter(|entry| roles.contains(&entry.role));
        entries.map(|entry| entry.bytes as u128).sum()
    };
    let arrays = of(&[PlannedRole::Input, PlannedRole::State, PlannedRole::Output]);
    line!(text, "arrays: {}", exactly(arrays));
    let scratch = of(&[PlannedRole::Scratch]);
    if scratch > 0 {
        line!(
            text,
            "scratch: {}{}",
            exactly(scratch),
            saved(plan, scratch)
        );
    }
    let constants = of(&[PlannedRole::Constant]);
    if constants > 0 {
        line!(text, "constants: {}, once on a device", exactly(constants));
    }
    line!(
        text,
        "peak: {} in {}, and at most {} on the stack of each thread",
        exactly(total(plan)),
        units::count(plan.pools.len(), "pool"),
        exactly(stack.bytes)
    );
}

/// How much less scratch memory takes because some of it shares bytes.
fn saved(plan: &Plan, scratch: u128) -> String {
    let mut taken = 0;
    for pool in plan.pools.keys() {
        let mut pieces: Vec<(usize, usize)> = plan
            .entries
            .iter()
            .filter(|entry| entry.role == PlannedRole::Scratch)
            .filter(|entry| entry.loc.pool == pool)
            .map(|entry| (entry.loc.offset, entry.loc.offset + entry.bytes))
            .collect();
        pieces.sort_unstable();
        let mut covered = 0;
        for (start, end) in pieces {
            taken += end.saturating_sub(start.max(covered)) as u128;
            covered = covered.max(end);
        }
    }
    match scratch.saturating_sub(taken) {
        0 => String::new(),
        _ => format!(", in {} that it shares", exactly(taken)),
    }
}

/// `1968 bytes (1.9 KiB)`.
fn exactly(bytes: u128) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1024 => format!("{bytes} bytes"),
        _ => format!("{bytes} bytes ({})", units::bytes(bytes)),
    }
}
