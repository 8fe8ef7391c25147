//! Runs every example program through the release binary, as a user would.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::process;
use crate::test::Notes;
use crate::tools::{self, Missing};
use crate::workspace::Workspace;

/// The folder with the example programs.
const PROGRAMS: &str = "examples/programs";

/// An example takes milliseconds; one that takes this long hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs `loopwright run PROGRAM --device D` for every example on every device that computes.
pub(crate) fn run_examples(workspace: &Workspace, notes: &mut Notes) -> Result<(), Error> {
    let programs: Vec<PathBuf> = workspace
        .entries(PROGRAMS)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "lw"))
        .collect();
    if programs.is_empty() {
        return Err(Error::Check(format!(
            "there is no {PROGRAMS}/*.lw, so nothing was run"
        )));
    }
    process::run(&mut workspace.cargo(&["build", "--release", "--package", "loopwright-cli"]))?;
    let binary = workspace
        .target
        .join("release")
        .join(format!("loopwright{}", std::env::consts::EXE_SUFFIX));

    let mut devices = vec!["interp"];
    match tools::c_compiler(workspace) {
        Ok(()) => devices.extend(["cc", "manycore"]),
        Err(Missing(why)) => notes.skip("examples on the devices cc and manycore", why),
    }
    match tools::gccjit(workspace) {
        Ok(()) => devices.push("gccjit"),
        Err(Missing(why)) => notes.skip("examples on the device gccjit", why),
    }
    let mut failures = 0;
    for program in &programs {
        for device in &devices {
            let stem = program.file_stem().unwrap_or_default().to_string_lossy();
            let log = workspace
                .target
                .join("xtask")
                .join("smoke")
                .join(format!("{stem}.{device}.log"));
            let mut command = workspace.command(&binary);
            command.arg("run").arg(program).args(["--device", device]);
            let started = Instant::now();
            let result = process::run_logged(&mut command, &log, LIMIT);
            let milliseconds = started.elapsed().as_millis();
            let name = workspace.shown(program);
            match result {
                Ok(()) => println!("  ok     {device:<8} {name}  ({milliseconds} ms)"),
                Err(error) => {
                    failures += 1;
                    println!("  FAILED {device:<8} {name}: {error}");
                    for line in fs::read_to_string(&log).unwrap_or_default().lines() {
                        println!("    | {line}");
                    }
                }
            }
        }
    }
    let runs = programs.len() * devices.len();
    notes.line(format!(
        "{} example programs on {}: {} of {runs} ran",
        programs.len(),
        devices.join(", "),
        runs - failures
    ));
    if failures == 0 {
        Ok(())
    } else {
        Err(Error::Check(format!(
            "{failures} of {runs} example runs failed"
        )))
    }
}
