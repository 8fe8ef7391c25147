//! Texts that are almost right: what parsers must refuse politely.
//!
//! [`Samples`] holds texts of all four forms, written from random programs. [`mutated`] damages one.
//! [`read`] reads a text as its form and goes on with what could be read: a graph is written out and
//! read back, and lowered; a schedule is turned into a tree. Whatever the text, nothing may panic.

use crate::generate::random_case;
use crate::rng::Rng;
use loopwright_graph::Graph;
use loopwright_looptree::{Plan, Target, parse_schedule, parse_tree, print_schedule, print_tree};
use loopwright_lower::lower;
use loopwright_scheduler::default_schedule;
use loopwright_text::Source;

/// A text form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// Programs.
    Graph,
    /// Schedules of a program.
    Schedule,
    /// Loop trees of a program.
    Tree,
    /// Kernels.
    Kernel,
}

impl Form {
    /// Every form.
    pub const ALL: [Form; 4] = [Form::Graph, Form::Schedule, Form::Tree, Form::Kernel];
}

/// A text with the program it belongs to.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its form.
    pub form: Form,
    /// The text.
    pub text: String,
    /// The program, with stores, for schedules; with its schedule's changes made, for trees.
    pub graph: Graph,
}

/// Texts to damage.
#[derive(Clone, Debug)]
pub struct Samples {
    samples: Vec<Sample>,
}

impl Samples {
    /// The texts of so many random programs.
    pub fn new(programs: u64) -> Samples {
        let mut samples = Vec::new();
        for seed in 0..programs {
            let case = random_case(seed);
            let graph = case.graph.clone().with_stores();
            let schedule = case
                .schedule
                .or_else(|| default_schedule(&graph, &Target::SCALAR).ok());
            let mut add = |form: Form, text: String, graph: &Graph| {
                samples.push(Sample {
                    form,
                    text,
                    graph: graph.clone(),
                });
            };
            add(Form::Graph, loopwright_graph::print(&case.graph), &graph);
            let Some(schedule) = schedule else {
                continue;
            };
            let Ok(edited) = schedule.edited(&graph) else {
                continue;
            };
            add(Form::Schedule, print_schedule(&edited, &schedule), &graph);
            let plan = Plan::new(graph.clone(), schedule);
            if let Ok(plan) = plan
                && let Ok(mut lowered) = lower(&plan, "program")
            {
                lowered.module.compact();
                let edited = plan.graph();
                add(Form::Tree, print_tree(edited, plan.tree()), edited);
                let text = loopwright_kernel::print(&lowered.module);
                add(Form::Kernel, text, &graph);
            }
        }
        Samples { samples }
    }

    /// A sample of a form, if there is one.
    pub fn pick(&self, rng: &mut Rng, form: Form) -> Option<&Sample> {
        let mut of_form = self.samples.iter().filter(|sample| sample.form == form);
        let count = of_form.clone().count();
        of_form.nth(rng.below(count))
    }
}

/// Pieces that mean something in one of the forms, and some that mean nothing anywhere.
const PIECES: &[&str] = &[
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "99999999999999999999999999",
    "1e999",
    "0x",
    "nan",
    "-inf",
    ".5",
    "(",
    ")",
    "((((((((",
    "[",
    "]",
    "{",
    "}",
    "{{{{{{{{",
    ",",
    ":",
    ";",
    "=",
    "==",
    "->",
    "..",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "%0",
    "%99999999999",
    "@",
    "@x",
    "'",
    "\"",
    "\"a b\"",
    "\n",
    "\t",
    "\0",
    "#",
    "é",
    "𝕏",
    "if",
    "else",
    "index",
    "size",
    "dim",
    "input",
    "output",
    "state",
    "update",
    "const",
    "sum",
    "for",
    "share=",
    "layout=[",
    "copy",
    "stage",
    "over",
    "lanes",
    "blocks",
    "prefetch",
    "vectorize",
    "parallel",
    "loopwright",
    "program",
    "kernel",
    "f32",
    "bool",
    "f32x4",
    "ptr<global, f32>",
    "load",
    "store",
    "alloc",
    "build",
    "shuffle",
    "while",
    "return",
    "x",
    "[i, j]",
    "**",
    "<=",
    "!=",
];

/// The text with one to four random changes. `other` is spliced in now and then.
pub fn mutated(rng: &mut Rng, text: &str, other: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..rng.range(1, 4) {
        let (start, end) = span(rng, &text);
        match rng.below(8) {
            0 => text.replace_range(start..end, ""),
            1 => text.insert_str(start, PIECES[rng.below(PIECES.len())]),
            2 => text.replace_range(start..end, PIECES[rng.below(PIECES.len())]),
            3 => {
                let piece = text[start..end].to_owned();
                text.insert_str(end, &piece);
            }
            4 => {
                let piece = text[start..end].to_owned();
                text.replace_range(start..end, "");
                let at = boundary(&text, rng.below(text.len() + 1));
                text.insert_str(at, &piece);
            }
            5 => {
                let (from, to) = span(rng, other);
                text.replace_range(start..end, &other[from..to]);
            }
            6 => text.truncate(start),
            _ => {
                let character = char::from_u32(rng.range(0, 0x17f) as u32).unwrap_or('?');
                text.insert(start, character);
            }
        }
    }
    text
}

/// A stretch of a text, most often a short one.
fn span(rng: &mut Rng, text: &str) -> (usize, usize) {
    let start = boundary(text, rng.below(text.len() + 1));
    let length = if rng.chance(80) {
        rng.below(8)
    } else {
        rng.below(text.len() + 1)
    };
    (
        start,
        boundary(text, (start + length).min(text.len())).max(start),
    )
}

/// The nearest place at or before a byte at which a character starts.
fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Reads a text as its form and uses what was read. Gives whether it could be read.
///
/// # Panics
/// If a part of Loopwright does: that is what is looked for. Also if what was read is not what is read
/// after it was written out.
pub fn read(form: Form, text: &str, graph: &Graph) -> bool {
    let source = Source::new("mutated", text);
    // An error must be printable too.
    let readable = |error: loopwright_text::Diagnostic| {
        assert!(!error.render(&source).is_empty(), "an error says something");
        false
    };
    match form {
        Form::Graph => match loopwright_graph::parse(&source) {
            Ok(graph) => {
                use_graph(&graph);
                true
            }
            Err(error) => readable(error),
        },
        Form::Schedule => match parse_schedule(&source, graph) {
            Ok(schedule) => {
                let edited = schedule.edited(graph);
                let edited = edited.expect("a schedule's changes are made while it is read");
                let again = Source::new("again", print_schedule(&edited, &schedule));
                assert_eq!(parse_schedule(&again, graph).as_ref(), Ok(&schedule));
                if let Ok(plan) = Plan::new(graph.clone(), schedule) {
                    let _ = lower(&plan, "program");
                }
                true
            }
            Err(error) => readable(error),
        },
        Form::Tree => match parse_tree(&source, graph) {
            Ok(tree) => {
                let again = Source::new("again", print_tree(graph, &tree));
                assert_eq!(parse_tree(&again, graph).as_ref(), Ok(&tree));
                true
            }
            Err(error) => readable(error),
        },
        Form::Kernel => match loopwright_kernel::parse(&source) {
            Ok(mut module) => {
                module.compact();
                let again = Source::new("again", loopwright_kernel::print(&module));
                assert_eq!(loopwright_kernel::parse(&again).as_ref(), Ok(&module));
                true
            }
            Err(error) => readable(error),
        },
    }
}

fn use_graph(graph: &Graph) {
    let again = Source::new("again", loopwright_graph::print(graph));
    match loopwright_graph::parse(&again) {
        Ok(back) => assert_eq!(back, *graph, "in\n{}", again.text()),
        Err(error) => panic!("what was written cannot be read: {}", error.render(&again)),
    }
    let graph = graph.clone().with_stores();
    let _ = graph.bind(&[]);
    if let Ok(schedule) = default_schedule(&graph, &Target::SCALAR)
        && let Ok(plan) = Plan::new(graph, schedule)
    {
        let _ = lower(&plan, "program");
    }
}
