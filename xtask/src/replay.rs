//! Shows every kernel whose generated code is not what another commit generates.
//!
//! Both trees build the example `corpus` of `targets` and run it; it writes the code of some thousand kernels, the
//! same ones each time. The other commit is checked out beside this tree, in a worktree of its own under the target
//! folder, with a target folder of its own, so that the next replay builds only what has changed since.

mod diff;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;

/// What [`print_help`](crate) says of this task.
pub(crate) const HELP: &str = "
  cargo xtask replay [--against REV] [--only TEXT]
        Shows every kernel whose generated code differs from that of REV, the last commit if none is named. With --only,
        just those with TEXT in their name: EMITTER/TARGET/PROGRAM: KERNEL. Kernels of random machines are compared by
        digests; with --only they are written out. Exits with 0 if nothing differs, 1 if
        something does.
";

/// The package with the example that writes the code of many kernels into a folder.
const PACKAGE: &str = "loopwright-targets";

/// Where the example is, the place it has now first.
const CORPUS: [&str; 2] = [
    "crates/tools/targets/examples/corpus.rs",
    "crates/targets/examples/corpus.rs",
];

/// Changes that are shown in full; the kernels with further ones are only named.
const SHOWN_CHANGES: usize = 20;

/// Lines of one change that are shown.
const SHOWN_LINES: usize = 24;

/// Names that are listed one by one; of more than so many only their folders are.
const SHOWN_NAMES: usize = 8;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    against: String,
    only: Option<String>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Options, Error> {
        let mut options = Options {
            against: "HEAD".to_owned(),
            only: None,
        };
        let mut arguments = arguments.iter();
        while let Some(flag) = arguments.next() {
            let mut value = || {
                let missing = || Error::Usage(format!("`{flag}` of `replay` needs a value"));
                arguments.next().cloned().ok_or_else(missing)
            };
            match flag.as_str() {
                "--against" => options.against = value()?,
                "--only" => options.only = Some(value()?),
                _ => {
                    return Err(Error::Usage(format!(
                        "`replay` takes `--against REV` and `--only TEXT`, not `{flag}`"
                    )));
                }
            }
        }
        Ok(options)
    }
}

/// Compares this tree with another commit. The status says whether something differs.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode, Error> {
    let commit = commit(workspace, &options.against)?;
    let folder = workspace.target.join("replay");
    make_folder(&folder)?;

    let other = Workspace {
        root: folder.join("tree"),
        target: folder.join("target"),
        ci: workspace.ci,
    };
    check_out(workspace, &other.root, &commit)?;
    let only = options.only.as_deref();
    let before = corpus(&other, &folder.join("before"), only)?;
    let now = corpus(workspace, &folder.join("now"), only)?;

    let comparison = Comparison::new(&before, &now, only);
    print!("{}", comparison.report(&options.against));
    Ok(match comparison.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The commit that a name stands for, if it can be replayed.
fn commit(workspace: &Workspace, revision: &str) -> Result<String, Error> {
    let name = format!("{revision}^{{commit}}");
    let commit = process::output_of(workspace.command("git").args([
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &name,
    ]))
    .ok_or_else(|| Error::Check(format!("git knows no commit `{revision}`")))?;
    let commit = commit.trim().to_owned();
    let has = |corpus: &&&str| {
        let file = format!("{commit}:{corpus}");
        process::succeeds(workspace.command("git").args(["cat-file", "-e", &file]))
    };
    match CORPUS.iter().find(has) {
        Some(_) => Ok(commit),
        None => Err(Error::Check(format!(
            "`{revision}` has no {}, so it cannot say what code it generates; \
             name a later commit with --against",
            CORPUS[0]
        ))),
    }
}

/// Makes `tree` a checkout of the commit, without touching any other: the one that is there is moved to it, which leaves
/// the files that are equal, and what was built from them, as they are.
fn check_out(workspace: &Workspace, tree: &Path, commit: &str) -> Result<(), Error> {
    let in_tree = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(tree).args(arguments);
        command
    };
    // A folder without its own `.git` would be taken for a part of the tree around it.
    if tree.join(".git").is_file()
        && process::succeeds(&mut in_tree(&[
            "checkout", "--quiet", "--force", "--detach", commit,
        ]))
    {
        return process::run(&mut in_tree(&["clean", "-d", "--force", "--quiet"]));
    }
    remove_folder(tree)?;
    // Where a target folder was deleted, git still knows the worktree that was in it.
    process::run(workspace.command("git").args(["worktree", "prune"]))?;
    process::run(
        workspace
            .command("git")
            .args(["worktree", "add", "--quiet", "--force", "--detach"])
            .arg(tree)
            .arg(commit),
    )
}

/// Builds a tree's corpus and runs it; gives the code of every kernel by its name.
fn corpus(
    workspace: &Workspace,
    folder: &Path,
    only: Option<&str>,
) -> Result<BTreeMap<String, String>, Error> {
    let build = [
        "build",
        "--quiet",
        "--release",
        "--package",
        PACKAGE,
        "--example",
        "corpus",
    ];
    process::run(&mut workspace.cargo(&build))?;
    remove_folder(folder)?;
    make_folder(folder)?;
    let name = format!("corpus{}", std::env::consts::EXE_SUFFIX);
    let binary = workspace.target.join("release").join("examples").join(name);
    process::run(workspace.command(binary).arg(folder).args(only))?;
    let mut kernels = BTreeMap::new();
    read(folder, "", &mut kernels)?;
    Ok(kernels)
}

/// Reads every file under a folder, and splits each into its kernels.
fn read(folder: &Path, prefix: &str, kernels: &mut BTreeMap<String, String>) -> Result<(), Error> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| Error::File { path, source }
    };
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        if path.is_dir() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            read(&path, &format!("{prefix}{name}/"), kernels)?;
        } else {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let text = fs::read_to_string(&path).map_err(failed(&path))?;
            split(&format!("{prefix}{name}"), &text, kernels);
        }
    }
    Ok(())
}

/// The kernels of one file: each begins with a line `== NAME`.
fn split(file: &str, text: &str, kernels: &mut BTreeMap<String, String>) {
    let mut code = None;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("== ") {
            code = Some(kernels.entry(format!("{file}: {heading}")).or_default());
        } else if let Some(code) = &mut code {
            code.push_str(line);
            code.push('\n');
        }
    }
}

fn make_folder(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|source| file(folder, source))
}

fn remove_folder(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(file(folder, source)),
        _ => Ok(()),
    }
}

fn file(path: &Path, source: std::io::Error) -> Error {
    Error::File {
        path: PathBuf::from(path),
        source,
    }
}

/// What two corpora do not have in common.
#[derive(Debug, Default)]
struct Comparison {
    /// The kernels that differ, those with the same change together.
    changes: Vec<Change>,
    added: Vec<String>,
    gone: Vec<String>,
    same: usize,
}

/// One change, and the kernels that it was made in.
#[derive(Debug)]
struct Change {
    /// The lines around it, of the first kernel.
    shown: Vec<String>,
    kernels: Vec<String>,
}

impl Comparison {
    fn new(
        before: &BTreeMap<String, String>,
        now: &BTreeMap<String, String>,
        only: Option<&str>,
    ) -> Comparison {
        let wanted = |name: &&String| only.is_none_or(|only| name.contains(only));
        let mut comparison = Comparison::default();
        let mut known: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        for name in before.keys().filter(wanted) {
            if !now.contains_key(name) {
                comparison.gone.push(name.clone());
            }
        }
        for (name, code) in now {
            if !wanted(&name) {
                continue;
            }
            match before.get(name) {
                None => comparison.added.push(name.clone()),
                Some(old) if old == code => comparison.same += 1,
                Some(old) => {
                    let shown = diff::unified(old, code);
                    let is_change = |line: &&String| line.starts_with(['-', '+']);
                    let change: Vec<String> = shown.iter().filter(is_change).cloned().collect();
                    let changes = &mut comparison.changes;
                    let at = *known.entry(change).or_insert_with(|| {
                        changes.push(Change {
                            shown,
                            kernels: Vec::new(),
                        });
                        changes.len() - 1
                    });
                    changes[at].kernels.push(name.clone());
                }
            }
        }
        comparison
    }

    fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.added.is_empty() && self.gone.is_empty()
    }

    fn differing(&self) -> usize {
        self.changes.iter().map(|change| change.kernels.len()).sum()
    }

    /// What is printed.
    fn report(&self, against: &str) -> String {
        let mut lines = Vec::new();
        let hidden = self.changes.iter().skip(SHOWN_CHANGES);
        for change in self.changes.iter().take(SHOWN_CHANGES) {
            let (first, others) = change
                .kernels
                .split_first()
                .expect("a change is a kernel's");
            lines.push(first.clone());
            let shown = change.shown.iter().take(SHOWN_LINES);
            lines.extend(shown.map(|line| format!("    {line}")));
            if let Some(more @ 1..) = change.shown.len().checked_sub(SHOWN_LINES) {
                lines.push(format!("    ... and {more} lines more"));
            }
            lines.extend(list("  the same in", others));
            lines.push(String::new());
        }
        let hidden: Vec<String> = hidden.flat_map(|c| c.kernels.iter().cloned()).collect();
        lines.extend(list("not shown, --only NAME shows them:", &hidden));
        lines.extend(list("added:", &self.added));
        lines.extend(list("gone:", &self.gone));
        lines.push(format!(
            "replay against {against}: {} kernels differ in {} ways, {} added, {} gone, {} are the same",
            self.differing(),
            self.changes.len(),
            self.added.len(),
            self.gone.len(),
            self.same
        ));
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// A line with names, or, where there are many, how many there are of each emitter and target.
fn list(title: &str, names: &[String]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    if names.len() <= SHOWN_NAMES {
        return Some(format!("{title} {}", names.join("; ")));
    }
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        *folders.entry(folder).or_default() += 1;
    }
    let folders: Vec<String> = folders
        .iter()
        .map(|(folder, count)| format!("{count} of {folder}"))
        .collect();
    Some(format!("{title} {}", folders.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = |(name, code): &(&str, &str)| ((*name).to_owned(), (*code).to_owned());
        of.iter().map(own).collect()
    }

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_have_defaults_and_say_what_is_wrong() {
        let options = Options::parse(&words("--only c99/ --against main~2")).expect("it is right");
        assert_eq!(options.against, "main~2");
        assert_eq!(options.only.as_deref(), Some("c99/"));
        assert_eq!(Options::parse(&[]).expect("none is needed").against, "HEAD");
        for wrong in ["--only", "--since x", "HEAD"] {
            let error = Options::parse(&words(wrong)).expect_err(wrong);
            assert!(matches!(error, Error::Usage(_)), "{error}");
        }
    }

    #[test]
    fn a_file_is_split_into_its_kernels() {
        let mut found = BTreeMap::new();
        split(
            "c/scalar/op.add",
            "== add f32\na\n\nb\n== add i8\nc\n",
            &mut found,
        );
        let expected = [
            ("c/scalar/op.add: add f32", "a\n\nb\n"),
            ("c/scalar/op.add: add i8", "c\n"),
        ];
        assert_eq!(found, kernels(&expected));
    }

    #[test]
    fn equal_corpora_differ_in_nothing() {
        let corpus = kernels(&[("c/a: k", "x\n"), ("c/b: k", "y\n")]);
        let comparison = Comparison::new(&corpus, &corpus, None);
        assert!(comparison.is_empty());
        assert_eq!(
            comparison.report("HEAD"),
            "replay against HEAD: 0 kernels differ in 0 ways, 0 added, 0 gone, 2 are the same\n"
        );
    }

    #[test]
    fn changes_additions_and_losses_are_told_apart() {
        let before = kernels(&[
            ("c/a: k", "1\nold\n2\n"),
            ("c/b: k", "3\nold\n"),
            ("c/c: k", ""),
        ]);
        let now = kernels(&[
            ("c/a: k", "1\nnew\n2\n"),
            ("c/b: k", "3\nnew\n"),
            ("c/d: k", ""),
        ]);
        let comparison = Comparison::new(&before, &now, None);
        assert!(!comparison.is_empty());
        let expected = "\
c/a: k
    @@ line 1
     1
    -old
    +new
     2
  the same in c/b: k

added: c/d: k
gone: c/c: k
replay against HEAD: 2 kernels differ in 1 ways, 1 added, 1 gone, 0 are the same
";
        assert_eq!(comparison.report("HEAD"), expected);
    }

    #[test]
    fn only_what_is_asked_for_is_compared() {
        let before = kernels(&[
            ("c/a: k", "old\n"),
            ("c99/a: k", "old\n"),
            ("c99/gone: k", ""),
        ]);
        let now = kernels(&[("c/a: k", "new\n"), ("c99/a: k", "old\n")]);
        assert!(!Comparison::new(&before, &now, Some("c/a")).is_empty());
        assert!(Comparison::new(&before, &now, Some("c99/a")).is_empty());
        assert_eq!(
            Comparison::new(&before, &now, Some("gone")).gone,
            ["c99/gone: k"]
        );
    }

    #[test]
    fn many_names_become_numbers() {
        let names: Vec<String> = (0..20)
            .map(|at| format!("c/{}/p{at}: k", ["scalar", "vector32"][at % 2]))
            .collect();
        let line = list("added:", &names).expect("there are names");
        assert_eq!(line, "added: 10 of c/scalar, 10 of c/vector32");
    }
}
