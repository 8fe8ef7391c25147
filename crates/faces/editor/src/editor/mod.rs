//! The editor's state: what is shown, and what keys, the mouse and news do to it. It knows no terminal, no
//! file and no device; what it wants from them it says as [`Effect`]s.

mod answers;
mod changes;
mod mouse;
#[cfg(test)]
mod tests;

use crate::history::{History, Version};
use crate::keys::{self, Action};
use crate::measure::{Compiled, Measurement, News, Report};
use crate::menu::Menu;
use crate::pane::{Sought, Tab};
use crate::prompt::{Prompt, Purpose};
use crate::scene::Scene;
use crate::units;
use loopwright::backend::Target;
use loopwright::graph::Binding;
use loopwright::looptree::Plan;
use loopwright::looptree::{Cursor, ScheduleFile, print_schedule_file};
use mouse::Drag;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind};
use rustc_hash::FxHashMap;
use std::path::PathBuf;

/// What does not change during a session.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The program's file, as it was named.
    pub(crate) program: String,
    /// The name of the backend that schedules are made for.
    pub(crate) backend: String,
    /// The device's name.
    pub(crate) device: String,
    pub(crate) target: Target,
    /// The values of sizes that were given.
    pub(crate) sizes: Vec<(String, i64)>,
    /// The values of all sizes of the program.
    pub(crate) binding: Binding,
    /// Whether every rounding stays where it is.
    pub(crate) strict: bool,
    /// The backends that steps can be handed to.
    pub(crate) backends: Vec<String>,
    /// Where the schedule is saved if nothing else is said.
    pub(crate) file: PathBuf,
}

/// What the keyboard talks to.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Mode {
    /// The tree.
    Tree,
    /// A question that wants a line of text.
    Prompt(Prompt),
    /// A list.
    Menu(Menu),
    /// The help page, from this line on.
    Help(usize),
    /// Whether to leave without saving.
    ConfirmQuit,
    /// Whether to write over a file.
    ConfirmOverwrite(PathBuf),
}

/// How a message is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tone {
    /// Something was done.
    Done,
    /// Something to know.
    Note,
    /// Something cannot be done.
    Refusal,
}

/// What the last action gave, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub(crate) tone: Tone,
    pub(crate) text: String,
}

/// What is known about a version of the plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finding {
    pub(crate) compiled: Option<Compiled>,
    pub(crate) measured: Option<Measurement>,
    /// Why it cannot be compiled or run.
    pub(crate) failure: Option<String>,
}

/// What the measuring thread is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Busy {
    Compiling,
    Running,
}

/// What the state wants from the world.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// A plan is to be compiled, and perhaps measured.
    Compile {
        version: Version,
        plan: Plan,
        measure: bool,
    },
    /// A text is to be written to a file.
    Save {
        path: PathBuf,
        text: String,
        overwrite: bool,
    },
    /// A schedule file is to be read.
    Load { path: PathBuf },
    /// The session ends.
    Quit,
}

/// What became of a file that was to be written.
#[derive(Debug)]
pub(crate) enum Saved {
    /// It is there, under this name.
    Written(PathBuf),
    /// There is one already.
    Exists(PathBuf),
    /// It is not, and why.
    Failed(String),
}

/// A schedule that was read.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) plan: Plan,
    /// What of the file does not fit the program.
    pub(crate) left_out: Vec<String>,
}

/// Which side is shown where there is room for one only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Tree,
    Pane,
}

/// The state.
pub(crate) struct Editor {
    pub(crate) setting: Setting,
    history: History,
    pub(crate) cursor: Cursor,
    pub(crate) scene: Scene,
    pub(crate) mode: Mode,
    pub(crate) message: Option<Message>,
    pub(crate) tab: Tab,
    pub(crate) side: Side,
    /// Whether there is room for tree and pane side by side.
    both: bool,
    /// The first line of the tree that is shown.
    pub(crate) tree_scroll: usize,
    /// The first line of the pane that is shown.
    pub(crate) pane_scroll: usize,
    /// Lines of the tree, and of the pane, that there is room for.
    page: (usize, usize),
    /// Whether the pane is to be scrolled to what is about the place of the cursor.
    follow: bool,
    /// Whether the tree is to be scrolled to the cursor.
    reveal: bool,
    pub(crate) live: bool,
    findings: FxHashMap<Version, Finding>,
    /// What was compiled last and what was measured last, of whatever version.
    latest: Finding,
    pub(crate) best: Option<(Version, Measurement)>,
    busy: Option<(Version, Busy)>,
    saved: Version,
    file: PathBuf,
    commands: Vec<String>,
    pub(crate) drag: Option<Drag>,
    effects: Vec<Effect>,
}

impl Editor {
    /// A session with a plan.
    pub(crate) fn new(setting: Setting, plan: Plan) -> Editor {
        let first = plan.tree().roots().first();
        let cursor = first.and_then(|root| Cursor::at(plan.tree(), *root));
        let scene = Scene::new(&plan, &setting.target, &setting.sizes);
        // A program without a step has no line for a cursor; it is at a place that is not there.
        let cursor = cursor.unwrap_or(Cursor {
            node: loopwright::graph::NodeId(0),
            depth: 0,
        });
        let mut editor = Editor {
            file: setting.file.clone(),
            setting,
            history: History::new(plan, cursor),
            cursor,
            scene,
            mode: Mode::Tree,
            message: None,
            tab: Tab::Code,
            side: Side::Tree,
            both: false,
            tree_scroll: 0,
            pane_scroll: 0,
            follow: false,
            page: (1, 1),
            reveal: true,
            live: true,
            findings: FxHashMap::default(),
            latest: Finding::default(),
            best: None,
            busy: None,
            saved: Version(0),
            commands: Vec::new(),
            drag: None,
            effects: Vec::new(),
        };
        editor.say(Tone::Note, "? shows all keys");
        editor.ask_for_code(true);
        editor
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.history.now().plan
    }

    pub(crate) fn version(&self) -> Version {
        self.history.now().version
    }

    /// How many changes can be undone, and redone.
    pub(crate) fn reach(&self) -> (usize, usize) {
        self.history.reach()
    }

    pub(crate) fn is_saved(&self) -> bool {
        self.saved == self.version()
    }

    /// The file that the schedule was saved to or read from, or would be.
    pub(crate) fn file(&self) -> &PathBuf {
        &self.file
    }

    /// The number of the line that the cursor is at.
    pub(crate) fn row(&self) -> Option<usize> {
        let place = self.cursor.place(self.plan().tree())?;
        self.scene.row_of(place)
    }

    /// What is known about the plan that is shown.
    pub(crate) fn finding(&self) -> Option<&Finding> {
        self.findings.get(&self.version())
    }

    /// What of the plan that is shown was not carried out, and why.
    pub(crate) fn notes(&self) -> &[String] {
        let compiled = self.finding().and_then(|found| found.compiled.as_ref());
        compiled.map_or(&[], |compiled| &compiled.notes)
    }

    /// What the measuring thread does for the plan that is shown.
    pub(crate) fn busy(&self) -> Option<Busy> {
        let (version, busy) = self.busy?;
        (version == self.version()).then_some(busy)
    }

    /// The newest measurement, and whether it is of the plan that is shown.
    pub(crate) fn measurement(&self) -> Option<(Measurement, bool)> {
        let own = self.finding().and_then(|finding| finding.measured);
        let own = own.map(|measured| (measured, true));
        own.or(self.latest.measured.map(|measured| (measured, false)))
    }

    /// What the pane shows, and whether it is of the plan that is shown.
    pub(crate) fn pane_text(&self) -> (&str, bool) {
        let compiled = |part: fn(&Compiled) -> &str| {
            let own = self.finding();
            if let Some(compiled) = own.and_then(|finding| finding.compiled.as_ref()) {
                return (part(compiled), true);
            }
            if let Some(failure) = own.and_then(|finding| finding.failure.as_deref()) {
                return (failure, true);
            }
            let latest = self.latest.compiled.as_ref();
            (latest.map_or("", part), false)
        };
        match self.tab {
            Tab::Code => compiled(|compiled| &compiled.code),
            Tab::Kernel => compiled(|compiled| &compiled.kernel),
            Tab::Schedule => (&self.scene.schedule, true),
            Tab::Estimate => (&self.scene.estimate, true),
        }
    }

    /// The line of the pane that is about the place of the cursor.
    fn line_of_cursor(&self) -> Option<usize> {
        let row = self.row()?;
        let rows = &self.scene.rows;
        let dim = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
        let own = rows.get(row)?;
        let of_dim = dim(&own.name);
        let place = match own.is_loop() {
            true => {
                let before = rows[..row].iter();
                let before = before.filter(|other| other.is_loop() && dim(&other.name) == of_dim);
                Sought::Loop {
                    dim: &of_dim,
                    nth: before.count(),
                }
            }
            false => Sought::Step(&own.name),
        };
        self.tab.line_of(self.pane_text().0, place)
    }

    /// What the world is asked for since the last call.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Takes note of the room there is: whether for both sides, and for how many lines of each.
    pub(crate) fn fit(&mut self, both: bool, tree: usize, pane: usize) {
        self.both = both;
        self.page = (tree.max(1), pane.max(1));
        let page = self.page.0;
        if self.reveal {
            self.reveal = false;
            let row = self.row().unwrap_or(0);
            self.tree_scroll = self.tree_scroll.clamp((row + 1).saturating_sub(page), row);
        }
        let last = self.scene.rows.len().saturating_sub(page);
        self.tree_scroll = self.tree_scroll.min(last);
        if std::mem::take(&mut self.follow)
            && both
            && let Some(line) = self.line_of_cursor()
        {
            // With what is before it in sight.
            self.pane_scroll = line.saturating_sub(self.page.1 / 3);
        }
        let lines = self.pane_text().0.lines().count();
        self.pane_scroll = self.pane_scroll.min(lines.saturating_sub(self.page.1));
    }

    /// Does what a key does.
    pub(crate) fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        match &mut self.mode {
            Mode::Tree => {
                if let Some(action) = keys::action(key) {
                    self.perform(action);
                }
            }
            Mode::Prompt(_) => self.prompt_key(key),
            Mode::Menu(_) => self.menu_key(key),
            Mode::Help(from) => match key.code {
                KeyCode::Down | KeyCode::Char('j') => *from += 1,
                KeyCode::Up | KeyCode::Char('k') => *from = from.saturating_sub(1),
                KeyCode::PageDown | KeyCode::Char(' ') => *from += 10,
                KeyCode::PageUp => *from = from.saturating_sub(10),
                _ => self.mode = Mode::Tree,
            },
            Mode::ConfirmQuit => match key.code {
                KeyCode::Char('y' | 'q') => self.effects.push(Effect::Quit),
                KeyCode::Char('w') => {
                    self.mode = Mode::Tree;
                    self.perform(Action::Save);
                }
                _ => self.mode = Mode::Tree,
            },
            Mode::ConfirmOverwrite(path) => {
                let path = std::mem::take(path);
                self.mode = Mode::Tree;
                if key.code == KeyCode::Char('y') {
                    self.save(path, true);
                } else {
                    self.say(Tone::Note, "not saved");
                }
            }
        }
    }

    /// Takes in text that was pasted.
    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.mode {
            Mode::Prompt(prompt) => prompt.paste(text),
            Mode::Menu(menu) => menu.filter.insert(text),
            _ => {}
        }
    }

    /// Does what an action says.
    pub(crate) fn perform(&mut self, action: Action) {
        let row = self.row().unwrap_or(0);
        let page = self.page.0;
        match action {
            Action::Up => self.go_to_row(row.saturating_sub(1)),
            Action::Down => self.go_to_row(row + 1),
            Action::Around => self.go_around(),
            Action::Inside => self.go_inside(),
            Action::First => self.go_to_row(0),
            Action::Last => self.go_to_row(usize::MAX),
            Action::PageUp if self.pane_is_shown() => self.scroll_pane(-(self.page.1 as isize)),
            Action::PageDown if self.pane_is_shown() => self.scroll_pane(self.page.1 as isize),
            Action::PageUp => self.go_to_row(row.saturating_sub(page)),
            Action::PageDown => self.go_to_row(row + page),
            Action::Split => self.ask_factor(),
            Action::Merge => self.merge(),
            Action::SwapOut => self.swap_out(),
            Action::SwapIn => self.swap_in(),
            Action::Fuse => self.fuse(),
            Action::Unfuse => self.unfuse(),
            Action::InlineOrStore => self.inline_or_store(),
            Action::Annotate => self.choose_annotation(),
            Action::Parallel => self.toggle(loopwright::looptree::Annotation::Parallel),
            Action::Vectorize => self.toggle(loopwright::looptree::Annotation::Vectorize),
            Action::Unroll => self.toggle(loopwright::looptree::Annotation::Unroll),
            Action::MoveDown => self.move_down(),
            Action::MoveUp => self.move_up(),
            Action::Delegate => self.choose_delegate(),
            Action::Legal => self.choose_legal(),
            Action::Command => self.ask_command(),
            Action::Undo => self.travel(History::undo, "undone", "nothing to undo"),
            Action::Redo => self.travel(History::redo, "done again", "nothing to redo"),
            Action::Save => {
                let file = self.file.display().to_string();
                self.mode = Mode::Prompt(Prompt::new(Purpose::Save, "save as", &file));
            }
            Action::Load => {
                let prompt = Prompt::new(Purpose::Load, "open", "");
                let file = self.file.display().to_string();
                self.mode = Mode::Prompt(prompt.with_suggestions(vec![file]));
            }
            Action::Measure => {
                self.ask_for_code(true);
                self.say(Tone::Note, "measuring");
            }
            Action::Live => {
                self.live = !self.live;
                let text = match self.live {
                    true => "every change is measured",
                    false => "changes are compiled and not measured; t measures",
                };
                self.say(Tone::Note, text);
                if self.live && self.finding().is_none_or(|found| found.measured.is_none()) {
                    self.ask_for_code(true);
                }
            }
            Action::Best => self.go_to_best(),
            Action::OtherSide => match (self.both, self.side) {
                (true, _) => self.show(self.tab.next()),
                (false, Side::Tree) => self.side = Side::Pane,
                (false, Side::Pane) => self.side = Side::Tree,
            },
            Action::Show(tab) => self.show(tab),
            Action::Help => self.mode = Mode::Help(0),
            Action::Quit if self.is_saved() => self.effects.push(Effect::Quit),
            Action::Quit => self.mode = Mode::ConfirmQuit,
        }
    }

    fn show(&mut self, tab: Tab) {
        if self.tab != tab {
            self.tab = tab;
            self.pane_scroll = 0;
        }
        self.side = Side::Pane;
    }

    fn pane_is_shown(&self) -> bool {
        self.both || self.side == Side::Pane
    }

    fn scroll_pane(&mut self, by: isize) {
        // How far it can go is settled by `fit`, where the room is known.
        self.pane_scroll = self.pane_scroll.saturating_add_signed(by);
    }

    /// Moves the cursor to a line, or to the last where there are not so many.
    fn go_to_row(&mut self, row: usize) {
        let last = self.scene.rows.len().saturating_sub(1);
        if let Some(row) = self.scene.rows.get(row.min(last))
            && let Some(cursor) = Cursor::at(self.plan().tree(), row.place)
        {
            self.cursor = cursor;
            self.reveal = true;
            self.follow = true;
            // Where only the code is shown the cursor would move unseen.
            self.side = Side::Tree;
        }
    }

    fn go_around(&mut self) {
        let tree = self.plan().tree();
        let around = self.cursor.place(tree).and_then(|place| tree.parent(place));
        if let Some(row) = around.and_then(|around| self.scene.row_of(around)) {
            self.go_to_row(row);
        }
    }

    fn go_inside(&mut self) {
        let tree = self.plan().tree();
        let place = self.cursor.place(tree);
        let inside = place.and_then(|place| tree.children(place).first());
        if let Some(row) = inside.and_then(|inside| self.scene.row_of(*inside)) {
            self.go_to_row(row);
        }
    }

    fn travel(&mut self, by: fn(&mut History) -> Option<String>, done: &str, nothing: &str) {
        let left = self.cursor;
        match by(&mut self.history) {
            Some(what) => {
                self.arrive(Some(left));
                self.say(Tone::Done, format!("{done}: {what}"));
            }
            None => self.say(Tone::Refusal, nothing),
        }
    }

    fn go_to_best(&mut self) {
        let Some((version, _)) = self.best else {
            return self.say(Tone::Refusal, "nothing is measured yet");
        };
        if version == self.version() {
            return self.say(Tone::Note, "this is the fastest so far");
        }
        match self.history.find(version) {
            Some(entry) => {
                let (plan, cursor) = (entry.plan.clone(), entry.cursor);
                let known = self.findings.get(&version).cloned();
                self.history.leave(self.cursor);
                self.history
                    .push(plan, cursor, "back to the fastest".to_owned());
                let now = self.version();
                self.findings.extend(known.map(|known| (now, known)));
                self.arrive(None);
                self.say(Tone::Done, "back to the fastest so far");
            }
            None => self.say(
                Tone::Refusal,
                "the fastest was undone, and other changes were made since",
            ),
        }
    }

    /// Shows the plan that the history is at now. The cursor stays at the place it was at, if that is there.
    fn arrive(&mut self, stay: Option<Cursor>) {
        let entry = self.history.now();
        let (plan, kept) = (entry.plan.clone(), entry.cursor);
        self.scene = Scene::new(&plan, &self.setting.target, &self.setting.sizes);
        let there = |cursor: &Cursor| cursor.place(plan.tree()).is_some();
        let cursor = Some(kept).filter(there).or(stay.filter(there));
        match cursor {
            Some(cursor) => self.cursor = cursor,
            None => self.go_to_row(0),
        }
        self.reveal = true;
        self.drag = None;
        let known = self.finding();
        let compiled = known.is_some_and(|found| found.compiled.is_some());
        let measured = known.is_some_and(|found| found.measured.is_some());
        if !compiled || (self.live && !measured) {
            self.ask_for_code(self.live);
        }
    }

    fn ask_for_code(&mut self, measure: bool) {
        let entry = self.history.now();
        self.effects.push(Effect::Compile {
            version: entry.version,
            plan: entry.plan.clone(),
            measure,
        });
    }

    fn save(&mut self, path: PathBuf, overwrite: bool) {
        self.effects.push(Effect::Save {
            // What was saved or read before may be written again.
            overwrite: overwrite || (path == self.file && self.file_is_ours()),
            path,
            text: self.file_text(),
        });
    }

    /// The schedule's file: what it was made for, what it gave, and the schedule.
    fn file_text(&self) -> String {
        let plan = self.plan();
        let measured = self.finding().and_then(|found| found.measured);
        let file = ScheduleFile {
            device: Some(self.setting.backend.clone()),
            gave: measured.map(|measured| {
                format!(
                    "{}, {} GFLOP/s, {} of the roofline",
                    units::seconds(measured.seconds),
                    units::giga(measured.flops_per_second),
                    units::percent(measured.share)
                )
            }),
            schedule: plan.schedule().clone(),
        };
        print_schedule_file(plan.graph(), &file)
    }

    /// Whether the file was written or read in this session.
    fn file_is_ours(&self) -> bool {
        self.saved != Version(0) || self.file != self.setting.file
    }

    /// Takes note of what became of a file.
    pub(crate) fn saved(&mut self, saved: Saved) {
        match saved {
            Saved::Written(path) => {
                self.saved = self.version();
                self.say(Tone::Done, format!("saved to {}", path.display()));
                self.file = path;
            }
            Saved::Exists(path) => self.mode = Mode::ConfirmOverwrite(path),
            Saved::Failed(reason) => self.say(Tone::Refusal, reason),
        }
    }

    /// Takes in a schedule that was read, or why there is none.
    pub(crate) fn loaded(&mut self, path: PathBuf, loaded: Result<Loaded, String>) {
        match loaded {
            Ok(Loaded { plan, left_out }) => {
                self.set_plan(plan, None, format!("open {}", path.display()));
                let opened = format!("opened {}", path.display());
                if left_out.is_empty() {
                    self.say(Tone::Done, opened);
                    self.saved = self.version();
                } else {
                    let text = format!("{opened}, of which not all fits: {}", left_out.join("; "));
                    self.say(Tone::Refusal, text);
                }
                self.file = path;
            }
            Err(reason) => self.say(Tone::Refusal, reason),
        }
    }

    /// Makes a plan the one that is shown.
    fn set_plan(&mut self, plan: Plan, cursor: Option<Cursor>, what: String) {
        let row = self.row().unwrap_or(0);
        self.history.leave(self.cursor);
        self.history.push(plan, cursor.unwrap_or(self.cursor), what);
        let lost = cursor.is_none();
        self.arrive(None);
        if lost {
            // What the cursor was at is gone: it stays on its line.
            self.go_to_row(row);
            self.history.leave(self.cursor);
        }
    }

    /// Takes in news of the measuring thread.
    pub(crate) fn report(&mut self, report: Report) {
        let Report { version, news } = report;
        let shown = version == self.version();
        let finding = self.findings.entry(version).or_default();
        self.busy = None;
        match news {
            News::Compiling => self.busy = Some((version, Busy::Compiling)),
            News::Running => self.busy = Some((version, Busy::Running)),
            News::Compiled(compiled) => {
                self.latest.compiled = Some(compiled.clone());
                finding.compiled = Some(compiled);
                finding.failure = None;
            }
            News::Measured(measured) => {
                finding.measured = Some(measured);
                self.latest.measured = Some(measured);
                let slower = |(_, best): &(Version, Measurement)| best.seconds > measured.seconds;
                if self.best.as_ref().is_none_or(slower) {
                    self.best = Some((version, measured));
                }
            }
            News::Failed(reason) => {
                finding.failure = Some(reason.clone());
                if shown {
                    self.say(Tone::Refusal, reason);
                }
            }
            News::Dropped => {}
        }
    }

    fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.message = Some(Message {
            tone,
            text: text.into(),
        });
    }
}
