//! The schedule file: the schedule, what it is for and what it gave, and comments that say how it was found.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// How the first comment of a file that was tuned begins.
pub const TUNED: &str = "# tuned by loopwright";

/// Columns of the comments.
const WIDTH: usize = 100;

/// What is said of every schedule of a search.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) program: String,
    pub(crate) sizes: String,
    pub(crate) device: String,
    pub(crate) seed: u64,
    pub(crate) flops: f64,
}

/// What a schedule gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gave {
    /// Seconds of a run by default.
    pub(crate) before: f64,
    /// Seconds of a run with it.
    pub(crate) after: f64,
    /// The share of the roofline that is.
    pub(crate) share: f64,
}

impl Header {
    /// A schedule's text as a file, with what is known of it so far.
    pub(crate) fn file(&self, schedule: &str, path: &[String], gave: Option<Gave>) -> String {
        let time = |seconds: f64| {
            let rate = self.flops / seconds / 1e9;
            format!("{:.4} ms, {rate:.1} GFLOP/s", seconds * 1e3)
        };
        let mut comments = vec![format!(
            "{TUNED} {} for {}{}",
            env!("CARGO_PKG_VERSION"),
            self.program,
            match self.sizes.as_str() {
                "" => String::new(),
                sizes => format!(", {sizes}"),
            }
        )];
        let mut header = vec![format!("device {:?}", self.device)];
        comments.push(format!("# date: {}", date(SystemTime::now())));
        if let Some(gave) = gave {
            comments.push(format!("# before: {}", time(gave.before)));
            let share = match gave.share > 0.0 {
                true => format!(", {:.0}% of the roofline", gave.share * 100.0),
                false => String::new(),
            };
            header.push(format!("gave {:?}", format!("{}{share}", time(gave.after))));
        }
        comments.push(format!("# seed: {}", self.seed));
        let mut line = "# found by:".to_owned();
        if path.is_empty() {
            line.push_str(" nothing; this is the start");
        }
        for (at, mutation) in path.iter().enumerate() {
            let mutation = match at + 1 == path.len() {
                true => mutation.clone(),
                false => format!("{mutation};"),
            };
            if line.len() + mutation.len() >= WIDTH {
                comments.push(std::mem::replace(&mut line, "#  ".to_owned()));
            }
            let _ = write!(line, " {mutation}");
        }
        comments.push(line);
        let (first, rest) = schedule.split_once('\n').unwrap_or((schedule, ""));
        header.extend(comments);
        schedule_file(first, &header, rest)
    }
}

/// A schedule with further lines behind its first.
pub(crate) fn schedule_file(first: &str, lines: &[String], rest: &str) -> String {
    format!("{first}\n{}\n{rest}", lines.join("\n"))
}

/// A day of the calendar: `2026-03-01`.
fn date(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let days = i64::try_from(seconds / 86_400).unwrap_or(0);
    // Years that begin in March end with the day that comes and goes.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn days_have_names() {
        for (days, name) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (19_723, "2024-01-01"),
            (20_088, "2024-12-31"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(days * 86_400 + 5);
            assert_eq!(date(time), name, "day {days}");
        }
    }

    #[test]
    fn the_schedule_stays_what_it_is() {
        let header = Header {
            program: "p.lw".to_owned(),
            sizes: "N=4".to_owned(),
            device: "cc".to_owned(),
            seed: 7,
            flops: 1e6,
        };
        let path = vec!["split C i 8".to_owned(); 20];
        let gave = Gave {
            before: 2e-3,
            after: 1e-3,
            share: 0.5,
        };
        let file = header.file("loopwright schedule 1\nC: i\n", &path, Some(gave));
        let lines: Vec<&str> = file.lines().collect();
        assert_eq!(lines[0], "loopwright schedule 1");
        assert_eq!(lines[1], "device \"cc\"");
        assert!(lines[3].starts_with(TUNED), "{file}");
        assert_eq!(lines.last(), Some(&"C: i"));
        assert!(
            lines[2] == "gave \"1.0000 ms, 1.0 GFLOP/s, 50% of the roofline\"",
            "{file}"
        );
        assert!(
            lines[3..lines.len() - 1]
                .iter()
                .all(|line| line.starts_with('#')),
            "{file}"
        );
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{file}");
    }
}
