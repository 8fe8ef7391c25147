//! What the suite found: rows, and tables of them.

use crate::pieces::Pieces;
use std::fmt;
use std::path::PathBuf;

/// What a row is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Group {
    /// An op at a dtype.
    Ops,
    /// A cast or a bitcast from one dtype to another.
    Casts,
    /// A reduction, a scan or a sort at a dtype.
    Folds,
    /// A kernel written by hand.
    Kernels,
    /// A program that shows one feature.
    Features,
    /// A program with a schedule that shows one construct.
    Schedules,
    /// A behaviour of the runtime under a scheduler.
    Runtime,
    /// What must be refused, and how.
    Errors,
    /// Random programs.
    Fuzzing,
}

impl Group {
    /// All of them, in the order in which they are run.
    pub const ALL: [Group; 9] = [
        Group::Ops,
        Group::Casts,
        Group::Folds,
        Group::Kernels,
        Group::Features,
        Group::Schedules,
        Group::Runtime,
        Group::Errors,
        Group::Fuzzing,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Ops => "ops",
            Group::Casts => "casts",
            Group::Folds => "folds",
            Group::Kernels => "kernels",
            Group::Features => "features",
            Group::Schedules => "schedules",
            Group::Runtime => "runtime",
            Group::Errors => "errors",
            Group::Fuzzing => "fuzzing",
        }
    }

    /// The group of that name.
    pub fn from_name(name: &str) -> Option<Group> {
        Group::ALL.into_iter().find(|group| group.name() == name)
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a row ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// As it should.
    Passed,
    /// Otherwise.
    Failed {
        /// What is wrong, and which stage is to blame.
        message: String,
        /// The smallest failing program, if there is one and it could be written.
        file: Option<PathBuf>,
    },
    /// It fails, and is made of something whose own row fails: that comes first.
    Blocked {
        /// The rows that fail.
        by: Vec<String>,
    },
    /// The backend does not say that it can do it.
    NotApplicable {
        /// What it would have to be able to do.
        why: String,
    },
}

impl Outcome {
    pub(crate) fn failed(message: impl Into<String>) -> Outcome {
        Outcome::Failed {
            message: message.into(),
            file: None,
        }
    }

    /// One letter for tables.
    pub const fn mark(&self) -> char {
        match self {
            Outcome::Passed => '.',
            Outcome::Failed { .. } => 'F',
            Outcome::Blocked { .. } => 'b',
            Outcome::NotApplicable { .. } => '-',
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed { .. } => "failed",
            Outcome::Blocked { .. } => "blocked",
            Outcome::NotApplicable { .. } => "not applicable",
        }
    }
}

/// One thing that was tested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// What it is about.
    pub group: Group,
    /// What is tested: the line of the group's table.
    pub line: String,
    /// At which dtype, or under which scheduler: the column of the group's table. Empty where there is
    /// only one.
    pub column: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What of the op table its kernels are made of.
    pub uses: Pieces,
}

impl Row {
    /// Line and column.
    pub fn name(&self) -> String {
        match self.column.as_str() {
            "" => self.line.clone(),
            column => format!("{} {column}", self.line),
        }
    }
}

/// How many rows ended how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Those that passed.
    pub passed: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that failed because another one does.
    pub blocked: u64,
    /// Those that do not apply.
    pub skipped: u64,
}

impl Counts {
    fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Counts {
        let mut counts = Counts::default();
        for row in rows {
            *match row.outcome {
                Outcome::Passed => &mut counts.passed,
                Outcome::Failed { .. } => &mut counts.failed,
                Outcome::Blocked { .. } => &mut counts.blocked,
                Outcome::NotApplicable { .. } => &mut counts.skipped,
            } += 1;
        }
        counts
    }
}

/// What the suite found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The backend.
    pub device: String,
    /// Rows that passed; all of fuzzing is one.
    pub passed: u64,
    /// Rows that failed; each failing program of fuzzing is one.
    pub failed: u64,
    /// Rows that failed only because another one does.
    pub blocked: u64,
    /// Rows that do not apply: all, where the backend is not available.
    pub skipped: u64,
    /// Programs that were fuzzed.
    pub programs: u64,
    /// Programs that were not, since they ask for more than the backend can do.
    pub programs_skipped: u64,
    /// What failed.
    pub failures: Vec<Failure>,
    /// Everything that was tested.
    pub rows: Vec<Row>,
}

/// Something that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The row, or the program's seed.
    pub name: String,
    /// What is wrong, and which stage is to blame.
    pub message: String,
    /// The smallest failing program, if it could be written.
    pub file: Option<PathBuf>,
}

impl Report {
    pub(crate) fn new(device: &str, rows: Vec<Row>) -> Report {
        let counts = Counts::of(rows.iter());
        let failure = |row: &Row| match &row.outcome {
            Outcome::Failed { message, file } => Some(Failure {
                name: row.name(),
                message: message.clone(),
                file: file.clone(),
            }),
            _ => None,
        };
        Report {
            device: device.to_owned(),
            passed: counts.passed,
            failed: counts.failed,
            blocked: counts.blocked,
            skipped: counts.skipped,
            programs: 0,
            programs_skipped: 0,
            failures: rows.iter().filter_map(failure).collect(),
            rows,
        }
    }

    /// The row of that name.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name() == name)
    }

    /// How the rows of a group ended.
    pub fn counts(&self, group: Group) -> Counts {
        Counts::of(self.rows.iter().filter(|row| row.group == group))
    }

    /// A table for each group that has rows.
    pub fn tables(&self) -> Vec<Table> {
        let tables = Group::ALL.into_iter().map(|group| self.table(group));
        tables.filter(|table| !table.lines.is_empty()).collect()
    }

    fn table(&self, group: Group) -> Table {
        let mut table = Table {
            group,
            columns: Vec::new(),
            lines: Vec::new(),
        };
        for row in self.rows.iter().filter(|row| row.group == group) {
            let known = table.columns.iter().position(|name| *name == row.column);
            let column = known.unwrap_or_else(|| {
                table.columns.push(row.column.clone());
                table.columns.len() - 1
            });
            let known = table.lines.iter().position(|(name, _)| *name == row.line);
            let line = known.unwrap_or_else(|| {
                table.lines.push((row.line.clone(), Vec::new()));
                table.lines.len() - 1
            });
            let marks = &mut table.lines[line].1;
            if marks.len() <= column {
                marks.resize(column + 1, None);
            }
            marks[column] = Some(row.outcome.mark());
        }
        table
    }
}

/// The rows of a group at a glance: a mark for each ([`Outcome::mark`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// What it is about.
    pub group: Group,
    /// Dtypes or schedulers; one without a name where there is only one.
    pub columns: Vec<String>,
    /// What is tested, with its marks by column; `None` where there is no such row.
    pub lines: Vec<(String, Vec<Option<char>>)>,
}

impl Table {
    /// Whether there is nothing but passed rows in it.
    pub fn is_plain(&self) -> bool {
        let mut marks = self.lines.iter().flat_map(|(_, marks)| marks);
        marks.all(|mark| mark.is_none_or(|mark| mark == Outcome::Passed.mark()))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.lines.iter().map(|(name, _)| name.chars().count());
        let width = names.chain([self.group.name().len()]).max().unwrap_or(0);
        write!(f, "{:width$}", self.group.name())?;
        for column in &self.columns {
            write!(f, "  {column}")?;
        }
        writeln!(f)?;
        for (name, marks) in &self.lines {
            let mut line = format!("{name:width$}");
            for (column, mark) in self.columns.iter().zip(marks) {
                let width = column.chars().count().max(1);
                let mark = mark.unwrap_or(' ');
                line += &format!("  {mark:width$}");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
