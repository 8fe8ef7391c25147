//! Commands that documents name are there: tasks of xtask, verbs and flags of the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{Document, Wrong, documents, report, root};

/// Where the command line is declared.
const ARGUMENTS: &str = "crates/faces/cli/src/arguments.rs";

/// The fronts of text forms: `loopwright kernel 1` is no command.
const TEXT_FORMS: [&str; 4] = ["program", "schedule", "tree", "kernel"];

/// Flags that clap gives every command.
const OF_CLAP: [&str; 2] = ["help", "version"];

/// By command, the flags that it takes.
type Flags = BTreeMap<String, BTreeSet<String>>;

/// The verbs of the command line, from the declarations that clap derives it from.
fn verbs(source: &str) -> Flags {
    let structs = structs(source);
    let body = source
        .split_once("enum Verb {")
        .and_then(|(_, rest)| rest.split_once("\n}"))
        .map_or("", |(body, _)| body);
    let variants = body.lines().filter_map(|line| {
        let (name, rest) = line.trim().split_once('(')?;
        let options = rest.strip_suffix("),")?;
        let is_name = name.chars().all(char::is_alphanumeric);
        is_name.then(|| (kebab(name), flags_of(options, &structs)))
    });
    variants.collect()
}

/// A struct of options: its flags, and the types that it takes further ones from.
#[derive(Default)]
struct Options {
    flags: BTreeSet<String>,
    others: Vec<String>,
}

/// The structs and enums of options, by name.
fn structs(source: &str) -> BTreeMap<String, Options> {
    let mut found: BTreeMap<String, Options> = BTreeMap::new();
    let mut current: Option<String> = None;
    let mut attribute = String::new();
    for line in source.lines().map(str::trim_end) {
        let opened = line
            .strip_prefix("pub(crate) struct ")
            .or_else(|| line.strip_prefix("pub(crate) enum "));
        if let Some(name) = opened.and_then(|rest| rest.strip_suffix(" {")) {
            current = Some(name.to_owned());
            attribute.clear();
            continue;
        }
        if line == "}" {
            current = None;
        }
        let Some(name) = &current else { continue };
        let options = found.entry(name.clone()).or_default();
        let line = line.trim();
        if line.starts_with("///") {
            continue;
        }
        let field = line.strip_prefix("pub(crate) ").unwrap_or(line);
        let field = field
            .split_once(": ")
            .filter(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'));
        match field {
            Some((field, kind)) => {
                if attribute.contains("flatten") || attribute.contains("subcommand") {
                    options.others.push(kind.trim_end_matches(',').to_owned());
                } else if let Some((_, explicit)) = attribute.split_once("long = \"") {
                    let flag = explicit.split('"').next().unwrap_or_default();
                    options.flags.insert(flag.to_owned());
                } else if attribute.contains("long") {
                    options.flags.insert(field.replace('_', "-"));
                }
                attribute.clear();
            }
            None => match line.split_once('(') {
                // A variant of a subcommand: its flags are taken with the verb's.
                Some((variant, rest)) if rest.ends_with("),") && !variant.contains('#') => {
                    options.others.push(rest.trim_end_matches("),").to_owned());
                    attribute.clear();
                }
                _ => attribute.push_str(line),
            },
        }
    }
    found
}

fn flags_of(name: &str, structs: &BTreeMap<String, Options>) -> BTreeSet<String> {
    let Some(options) = structs.get(name) else {
        return BTreeSet::new();
    };
    let others = options.others.iter();
    let inherited = others.flat_map(|other| flags_of(other, structs));
    inherited.chain(options.flags.iter().cloned()).collect()
}

/// `TuneWorker` as `tune-worker`.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(c.to_lowercase());
    }
    text
}

/// The tasks of xtask with their flags, from its help.
fn tasks(help: &str) -> Flags {
    let lines = help.lines();
    let commands = lines.filter_map(|line| line.strip_prefix("  cargo xtask "));
    let tasks = commands.map(|line| {
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '-'));
        let name = words.next().unwrap_or_default().to_owned();
        let flags = words.filter_map(|word| word.strip_prefix("--"));
        (name, flags.map(str::to_owned).collect())
    });
    tasks.collect()
}

/// What follows a command's name in a text, up to the end of the command.
fn arguments(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        // A comment, the next command, or prose that goes on.
        if word.starts_with('#') || ["|", "&&", ">", "\\"].contains(&word) {
            break;
        }
        words.push(word.trim_end_matches(['`', ',', '.', ';', ':', ')']));
        if word.ends_with([',', ';', '`']) {
            break;
        }
    }
    words
}

/// What is wrong with a command, given the ones there are.
fn problem(program: &str, words: &[&str], known: &Flags) -> Option<String> {
    let (name, rest) = words.split_first()?;
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    if !is_name(name) || name.starts_with('-') || *name == "help" {
        return None;
    }
    let Some(flags) = known.get(*name) else {
        return Some(format!("`{program} {name}` is no command"));
    };
    rest.iter().find_map(|word| {
        let flag = word.strip_prefix("--")?.split('=').next()?;
        let is_known = flags.contains(flag) || OF_CLAP.contains(&flag) || !is_name(flag);
        (!is_known).then(|| format!("`{program} {name}` takes no `--{flag}`"))
    })
}

/// The commands of a text: what stands behind the name of a program.
fn commands<'t>(text: &'t str, program: &str) -> Option<Vec<&'t str>> {
    let (before, rest) = text.split_once(program)?;
    let begins = before.is_empty() || before.ends_with([' ', '`', '/', '$']);
    (begins && rest.starts_with(' ')).then(|| arguments(rest))
}

fn check(document: &Document, verbs: &Flags, tasks: &Flags) -> Vec<Wrong> {
    let code = document.lines.iter().filter(|line| line.is_code);
    let code = code.map(|line| (line.number, line.text.trim().to_owned()));
    let mut wrong = Vec::new();
    for (line, text) in code.chain(document.spans()) {
        // Commands of the command line begin a line; in other places the word is a name.
        let begin = text.trim_start_matches("$ ");
        let begin = begin.trim_start_matches("target/release/");
        let of_cli = commands(begin, "loopwright")
            .filter(|_| begin.starts_with("loopwright "))
            .filter(|words| words.first().is_some_and(|word| !TEXT_FORMS.contains(word)))
            .or_else(|| {
                let from_cargo = begin.starts_with("cargo run --release -- ");
                from_cargo.then(|| commands(begin, "--release --"))?
            });
        let problems = [
            of_cli.and_then(|words| problem("loopwright", &words, verbs)),
            commands(begin, "cargo xtask").and_then(|words| problem("cargo xtask", &words, tasks)),
        ];
        wrong.extend(problems.into_iter().flatten().map(|what| Wrong {
            document: document.name.clone(),
            line,
            what,
        }));
    }
    wrong
}

#[test]
fn commands_in_documents_are_there() {
    let source = fs::read_to_string(root().join(ARGUMENTS)).expect("the command line is there");
    let (verbs, tasks) = (verbs(&source), tasks(&crate::help()));
    assert!(
        verbs.len() > 10 && verbs["bench"].contains("against"),
        "{verbs:?}"
    );
    assert!(
        verbs["run"].contains("option") && verbs["cache"].contains("json"),
        "{verbs:?}"
    );
    assert!(tasks["test"].contains("fail-fast"), "{tasks:?}");
    let documents = documents();
    let wrong: Vec<Wrong> = documents
        .iter()
        .flat_map(|document| check(document, &verbs, &tasks))
        .collect();
    report(&wrong);
}

#[test]
fn a_wrong_command_is_reported() {
    let flags = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let verbs = Flags::from([("run".to_owned(), flags(&["seed"]))]);
    let tasks = Flags::from([("test".to_owned(), flags(&["only"]))]);
    let page = "`loopwright run FILE --seed 1`, `cargo xtask test --only fmt`\n\
                ```text\nloopwright run FILE --sed 1\n$ loopwright walk\nloopwright kernel 1\ncargo run --release -- walk\ncargo xtask tset\n```\n";
    let wrong = check(&Document::new("a.md", page), &verbs, &tasks);
    let wrong: Vec<String> = wrong.iter().map(Wrong::to_string).collect();
    let expected = [
        "a.md:3: `loopwright run` takes no `--sed`",
        "a.md:4: `loopwright walk` is no command",
        "a.md:6: `loopwright walk` is no command",
        "a.md:7: `cargo xtask tset` is no command",
    ];
    assert_eq!(wrong, expected);
}
