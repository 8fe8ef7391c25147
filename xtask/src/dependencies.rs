//! Licences, bans, sources and advisories of the dependencies, by cargo-deny with `deny.toml`.

use std::fs;
use std::time::Duration;

use crate::error::Error;
use crate::process;
use crate::test::Notes;
use crate::tools::{self, Missing};
use crate::workspace::Workspace;

/// How long the advisory database may take to arrive. It is some ten megabytes; a host that is blocked, not refused,
/// would otherwise hold the run up for minutes.
const FETCH_LIMIT: Duration = Duration::from_secs(90);

/// Checks every dependency against `deny.toml`.
pub(crate) fn check(workspace: &Workspace, notes: &mut Notes) -> Result<(), Error> {
    let deny = match tools::cargo_deny(workspace) {
        Ok(deny) => deny,
        Err(Missing(why)) => {
            notes.skip("licences, bans, sources, advisories", why);
            return Ok(());
        }
    };
    // Called as cargo would call it, which works for a binary outside of the path too.
    let deny_command = |arguments: &[&str]| {
        let mut command = workspace.command(&deny);
        command
            .env("CARGO_TARGET_DIR", &workspace.target)
            .args(arguments);
        command
    };
    let offline_checks = process::run(&mut deny_command(&["check", "licenses", "bans", "sources"]));

    let log = workspace.target.join("xtask").join("advisories-fetch.log");
    match process::run_logged(&mut deny_command(&["fetch", "db"]), &log, FETCH_LIMIT) {
        Ok(()) => {
            let advisories = process::run(&mut deny_command(&[
                "check",
                "--disable-fetch",
                "advisories",
            ]));
            offline_checks.and(advisories)?;
        }
        Err(error) => {
            let reason = fs::read_to_string(&log).unwrap_or_default();
            let reason = reason
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty())
                .unwrap_or("no output")
                .trim()
                .to_owned();
            println!("the advisory database cannot be fetched: {error}: {reason}");
            notes.excused_skip("advisories", "the advisory database cannot be fetched here");
            offline_checks?;
        }
    }
    Ok(())
}
