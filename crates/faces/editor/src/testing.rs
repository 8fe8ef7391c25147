//! Programs and sessions for tests.

use crate::editor::{Editor, Effect, Setting};
use loopwright::backend::Target;
use loopwright::graph::parse;
use loopwright::looptree::Plan;
use loopwright::looptree::parse_schedule;
use loopwright::text::Source;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::path::PathBuf;
use std::sync::Arc;

/// The plan of a program and a schedule; the header lines are added.
pub(crate) fn plan(program: &str, schedule: &str) -> Plan {
    let source = Source::new("test.lw", format!("loopwright program 1\n{program}"));
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    let graph = graph.with_stores();
    let source = Source::new("test.sched", format!("loopwright schedule 1\n{schedule}"));
    let schedule = parse_schedule(&source, &graph);
    let schedule = schedule.unwrap_or_else(|error| panic!("{}", error.render(&source)));
    Plan::new(Arc::new(graph), schedule).expect("the schedule fits")
}

/// A matrix product in three plain loops.
pub(crate) fn matmul() -> Plan {
    plan(
        "size M = 96, N = 80, K = 64\n\
         input A: f32[i=M, k=K]\n\
         input B: f32[k, j=N]\n\
         output C = sum[k](A * B)\n",
        "C: i, j, k\n",
    )
}

/// A matrix product and what follows it, fused.
pub(crate) fn relu() -> Plan {
    plan(
        "size M = 96, N = 80, K = 64\n\
         input A: f32[i=M, k=K]\n\
         input B: f32[k, j=N]\n\
         input bias: f32[j]\n\
         sums = sum[k](A * B)\n\
         output C = max(sums + bias, 0)\n",
        "sums: i, j, k\nC: i, j\n",
    )
}

/// A session.
pub(crate) fn editor(plan: Plan) -> Editor {
    let setting = Setting {
        program: "test.lw".to_owned(),
        backend: "interp".to_owned(),
        device: "interp".to_owned(),
        target: Target::SCALAR,
        sizes: Vec::new(),
        binding: plan.program().bind(&[]).expect("all sizes have defaults"),
        strict: false,
        backends: vec!["cc".to_owned(), "null".to_owned()],
        file: PathBuf::from("test.sched"),
    };
    Editor::new(setting, plan)
}

/// The event of a key.
pub(crate) fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

impl Editor {
    /// Presses the keys of these letters; `⏎` is Enter, `⎋` Escape, `⇥` Tab, and arrows are arrows.
    pub(crate) fn type_keys(&mut self, letters: &str) {
        for letter in letters.chars() {
            self.key(key(match letter {
                '⏎' => KeyCode::Enter,
                '⎋' => KeyCode::Esc,
                '⇥' => KeyCode::Tab,
                '↑' => KeyCode::Up,
                '↓' => KeyCode::Down,
                '←' => KeyCode::Left,
                '→' => KeyCode::Right,
                letter => KeyCode::Char(letter),
            }));
        }
    }

    /// The schedule's text without its header.
    pub(crate) fn schedule(&self) -> &str {
        let (_, steps) = self.scene.schedule.split_once('\n').expect("a header");
        steps
    }

    /// What was said last.
    pub(crate) fn said(&self) -> &str {
        self.message.as_ref().map_or("", |message| &message.text)
    }

    /// What the line of the cursor says.
    pub(crate) fn at(&self) -> &str {
        let row = self.row().expect("the cursor is at a line");
        &self.scene.rows[row].name
    }

    /// Whether the session was to end since effects were taken last.
    pub(crate) fn quits(&mut self) -> bool {
        let effects = self.take_effects();
        effects.iter().any(|effect| matches!(effect, Effect::Quit))
    }
}
