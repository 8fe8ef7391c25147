//! Tracks what compiling costs, in instructions: unlike times, they are the same on a busy machine.

use std::fs;
use std::path::PathBuf;

use crate::error::Error;
use crate::process;
use crate::test::Notes;
use crate::tools::{self, Missing};
use crate::workspace::Workspace;

/// The counts that are tracked: a line for each piece of work, its name and its instructions.
const TRACKED: &str = "crates/faces/bench/instructions.txt";

/// More than this above the tracked count is a failure: hash seeds and library versions move a count by less.
const ALLOWED: f64 = 1.05;

/// How often the work is repeated; the difference to one round is divided by the rest, so that start-up does not count.
const ROUNDS: u64 = 21;

/// Compares the counts of today's code with the tracked ones; with `bless`, writes them down instead.
pub(crate) fn check(workspace: &Workspace, notes: &mut Notes, bless: bool) -> Result<(), Error> {
    if let Err(Missing(why)) = tools::valgrind(workspace) {
        notes.skip("instruction counts", why);
        return Ok(());
    }
    let build = [
        "build",
        "--release",
        "--package",
        "loopwright-bench",
        "--example",
        "graph_to_kernel",
    ];
    process::run(&mut workspace.cargo(&build))?;
    let binary = workspace.target.join("release/examples/graph_to_kernel");
    let path = workspace.root.join(TRACKED);
    let tracked = fs::read_to_string(&path).unwrap_or_default();
    let mut today = String::new();
    let mut worse = Vec::new();
    for work in ["matmul", "network"] {
        let once = count(workspace, &binary, work, 1)?;
        let many = count(workspace, &binary, work, ROUNDS)?;
        let now = many.saturating_sub(once) / (ROUNDS - 1);
        today.push_str(&format!("{work} {now}\n"));
        let before = tracked.lines().find_map(|line| {
            let (name, count) = line.split_once(' ')?;
            (name == work).then(|| count.trim().parse::<u64>().ok())?
        });
        notes.line(match before {
            Some(before) => {
                format!("graph to kernel, {work}: {now} instructions (tracked: {before})")
            }
            None => format!("graph to kernel, {work}: {now} instructions (not tracked yet)"),
        });
        if !before.is_some_and(|before| now as f64 <= before as f64 * ALLOWED) {
            worse.push(work);
        }
    }
    if bless {
        return fs::write(&path, today).map_err(|source| Error::File { path, source });
    }
    check_recurrence(workspace, notes)?;
    if worse.is_empty() {
        return Ok(());
    }
    Err(Error::Check(format!(
        "more instructions than {TRACKED} tracks for {}; if the work is worth them, run `cargo xtask instructions --bless` \
         and say why in the commit",
        worse.join(", ")
    )))
}

/// Steps of the recurrence whose counts are compared.
const STEPS: [&str; 3] = ["32", "1024", "100000"];

/// From graph to code, an LSTM takes as many instructions for few steps as for many: it is one loop.
fn check_recurrence(workspace: &Workspace, notes: &mut Notes) -> Result<(), Error> {
    const EXAMPLE: &str = "lstm_to_code";
    let build = [
        "build",
        "--release",
        "--package",
        "loopwright-targets",
        "--example",
        EXAMPLE,
    ];
    process::run(&mut workspace.cargo(&build))?;
    let binary = workspace.target.join("release/examples").join(EXAMPLE);
    let mut counts = Vec::with_capacity(STEPS.len());
    for steps in STEPS {
        let (once, twice) = (
            count(workspace, &binary, steps, 1)?,
            count(workspace, &binary, steps, 2)?,
        );
        let now = twice.saturating_sub(once);
        notes.line(format!(
            "graph to code, LSTM of {steps} steps with gradients: {now} instructions"
        ));
        counts.push(now);
    }
    let least = counts.iter().min().copied().unwrap_or_default();
    let most = counts.iter().max().copied().unwrap_or_default();
    match most as f64 <= least as f64 * ALLOWED {
        true => Ok(()),
        false => Err(Error::Check(format!(
            "an LSTM takes {least} to {most} instructions to compile, depending on its number of steps"
        ))),
    }
}

fn count(workspace: &Workspace, binary: &PathBuf, work: &str, rounds: u64) -> Result<u64, Error> {
    let mut command = workspace.command("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(binary)
        .arg(work)
        .arg(rounds.to_string());
    let (lines, result) = process::run_keeping(&mut command, |line| line.contains("Collected"));
    result?;
    let count = lines
        .iter()
        .find_map(|line| line.rsplit(':').next()?.trim().parse().ok());
    count.ok_or_else(|| Error::Check("valgrind printed no instruction count".to_owned()))
}
