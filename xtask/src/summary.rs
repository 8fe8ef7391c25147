//! The closing report of `cargo xtask test`.

use std::fmt::Write;
use std::time::Duration;

use crate::error::Error;
use crate::test::{Notes, Skip};

/// How a step ended, as the report counts it.
#[derive(Debug)]
pub(crate) enum Verdict {
    Passed,
    /// Nothing failed, but a part did not run.
    Incomplete,
    Failed(String),
}

/// A step that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    time: Duration,
    lines: Vec<String>,
    skips: Vec<Skip>,
}

impl Finished {
    /// Judges a step's result. Under CI a skip that is not excused is a failure too.
    pub(crate) fn new(
        name: &'static str,
        time: Duration,
        notes: Notes,
        result: Result<(), Error>,
        ci: bool,
    ) -> Self {
        let mut failures: Vec<String> = result.err().iter().map(ToString::to_string).collect();
        for skip in notes.skips.iter().filter(|skip| ci && !skip.excused) {
            failures.push(format!(
                "{} could not run, and CI=true allows no skip: {}",
                skip.what, skip.why
            ));
        }
        let verdict = if !failures.is_empty() {
            Verdict::Failed(failures.join("\n"))
        } else if notes.skips.is_empty() {
            Verdict::Passed
        } else {
            Verdict::Incomplete
        };
        Finished {
            name,
            verdict,
            time,
            lines: notes.lines,
            skips: notes.skips,
        }
    }
}

/// The report: what the steps noted, a table with times, skips, failures, and the verdict.
pub(crate) fn render(finished: &[Finished], not_run: &[&str]) -> String {
    let mut text = String::from("\n==> summary\n");
    // Writing to a string cannot fail.
    let mut line = |content: std::fmt::Arguments<'_>| {
        writeln!(text, "{content}").expect("a string takes every write")
    };
    for note in finished.iter().flat_map(|step| &step.lines) {
        line(format_args!("{note}"));
    }
    line(format_args!(
        "\n  {:<10} {:<10} {:>9}",
        "step", "result", "time"
    ));
    for step in finished {
        let verdict = match step.verdict {
            Verdict::Passed => "ok",
            Verdict::Incomplete => "incomplete",
            Verdict::Failed(_) => "FAILED",
        };
        line(format_args!(
            "  {:<10} {verdict:<10} {:>7.1} s",
            step.name,
            step.time.as_secs_f64()
        ));
    }
    let total: Duration = finished.iter().map(|step| step.time).sum();
    line(format_args!(
        "  {:<10} {:<10} {:>7.1} s",
        "total",
        "",
        total.as_secs_f64()
    ));
    if !not_run.is_empty() {
        line(format_args!(
            "\nnot run (--only, --skip or --fail-fast): {}",
            not_run.join(", ")
        ));
    }
    let skips: Vec<&Skip> = finished.iter().flat_map(|step| &step.skips).collect();
    for skip in &skips {
        line(format_args!("\nskipped: {}: {}", skip.what, skip.why));
    }
    let mut failures = 0;
    for step in finished {
        if let Verdict::Failed(why) = &step.verdict {
            failures += 1;
            line(format_args!("\nFAILED {}:", step.name));
            for reason in why.lines() {
                line(format_args!("  {reason}"));
            }
        }
    }
    let verdict = if failures == 0 { "PASSED" } else { "FAILED" };
    line(format_args!(
        "\n{verdict}: {} steps run, {failures} failed, {} parts skipped",
        finished.len(),
        skips.len()
    ));
    text
}

/// Whether a test runner's line is one of those that close a run.
pub(crate) fn is_closing_line(line: &str) -> bool {
    let is_pytest = || {
        let counts = line.trim_matches(['=', ' ']);
        let outcome = [" passed", " failed", " skipped", " error"];
        counts.starts_with(|first: char| first.is_ascii_digit())
            && counts.contains(" in ")
            && outcome.iter().any(|word| counts.contains(word))
    };
    line.trim_start().starts_with("Summary [") || line.starts_with("test result: ") || is_pytest()
}

/// The closing lines for the report: nextest has one for all; those of cargo test, one per binary, are added up.
pub(crate) fn closing_lines(what: &str, lines: &[String]) -> Vec<String> {
    let mut closing: Vec<String> = Vec::new();
    let (mut binaries, mut passed, mut failed, mut ignored) = (0, 0, 0, 0);
    for line in lines {
        match line.strip_prefix("test result: ") {
            None => closing.push(format!("{what}: {}", line.trim())),
            Some(counts) => {
                binaries += 1;
                passed += count_before(counts, "passed");
                failed += count_before(counts, "failed");
                ignored += count_before(counts, "ignored");
            }
        }
    }
    if binaries > 0 {
        closing.push(format!("{what}: {passed} passed, {failed} failed, {ignored} ignored in {binaries} test binaries"));
    }
    closing
}

/// The number before `word` in a line such as `ok. 3 passed; 0 failed; 1 ignored; …`.
fn count_before(counts: &str, word: &str) -> u64 {
    let words: Vec<&str> = counts
        .split([' ', ';'])
        .filter(|part| !part.is_empty())
        .collect();
    words
        .windows(2)
        .find(|pair| pair[1] == word)
        .and_then(|pair| pair[0].parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn one_skip(excused: bool) -> Notes {
        let mut notes = Notes::default();
        notes.skips.push(Skip {
            what: "a part".to_owned(),
            why: "a reason".to_owned(),
            excused,
        });
        notes
    }

    #[test]
    fn under_ci_only_an_excused_skip_is_no_failure() {
        let verdict =
            |excused, ci| Finished::new("fmt", SECOND, one_skip(excused), Ok(()), ci).verdict;
        assert!(matches!(verdict(false, false), Verdict::Incomplete));
        assert!(matches!(verdict(true, true), Verdict::Incomplete));
        assert!(matches!(verdict(false, true), Verdict::Failed(why) if why.contains("a reason")));
    }

    #[test]
    fn a_step_that_fails_keeps_its_skips() {
        let failed = Finished::new(
            "deny",
            SECOND,
            one_skip(true),
            Err(Error::Check("broken".to_owned())),
            false,
        );
        let text = render(&[failed], &[]);
        assert!(
            text.contains("FAILED: 1 steps run, 1 failed, 1 parts skipped"),
            "{text}"
        );
    }

    #[test]
    fn the_report_counts_failures_and_skips_and_names_what_did_not_run() {
        let broken = Err(Error::Check("it is broken".to_owned()));
        let finished = [
            Finished::new("fmt", SECOND, Notes::default(), Ok(()), false),
            Finished::new("deny", SECOND, one_skip(true), Ok(()), false),
            Finished::new("smoke", SECOND, Notes::default(), broken, false),
        ];
        let text = render(&finished, &["doc"]);
        for expected in [
            "fmt        ok             1.0 s",
            "deny       incomplete     1.0 s",
            "smoke      FAILED         1.0 s",
            "total                     3.0 s",
            "not run (--only, --skip or --fail-fast): doc",
            "skipped: a part: a reason",
            "it is broken",
            "FAILED: 3 steps run, 1 failed, 1 parts skipped",
        ] {
            assert!(text.contains(expected), "expected {expected:?} in:\n{text}");
        }
    }

    #[test]
    fn closing_lines_of_both_runners_are_understood() {
        let lines = [
            "     Summary [   0.005s] 3 tests run: 3 passed, 1 skipped",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ]
        .map(str::to_owned);
        assert!(lines.iter().all(|line| is_closing_line(line)));
        assert!(!is_closing_line("test parse::result ... ok"));
        assert_eq!(
            closing_lines("tests", &lines),
            [
                "tests: Summary [   0.005s] 3 tests run: 3 passed, 1 skipped",
                "tests: 5 passed, 4 failed, 1 ignored in 2 test binaries",
            ]
        );
    }
}
