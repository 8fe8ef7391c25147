use super::*;
use crate::keys::SECTIONS;
use crate::measure::News;
use crate::testing::{editor, key, matmul, plan, relu};
use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;

/// A session, and the lines of its schedule after some keys.
#[track_caller]
fn becomes(plan: Plan, keys: &str, expected: &str) -> Editor {
    let mut editor = editor(plan);
    editor.type_keys(keys);
    assert_eq!(
        editor.schedule(),
        expected,
        "after {keys}: {}",
        editor.said()
    );
    editor
}

/// The message after keys that are refused.
#[track_caller]
fn refused(plan: Plan, keys: &str) -> String {
    let mut editor = editor(plan);
    let before = editor.schedule().to_owned();
    editor.type_keys(keys);
    let message = editor.message.clone().expect("something is said");
    assert_eq!(message.tone, Tone::Refusal, "{}", message.text);
    assert_eq!(editor.schedule(), before, "what is refused changes nothing");
    assert_eq!(editor.reach(), (0, 0));
    message.text
}

fn measured(seconds: f64) -> Measurement {
    Measurement {
        seconds,
        flops_per_second: 1e9 / seconds,
        bytes_per_second: 1e8 / seconds,
        share: 0.1 / seconds,
    }
}

fn compiled(code: &str) -> News {
    News::Compiled(Compiled {
        kernel: format!("kernel of {code}"),
        code: code.to_owned(),
        notes: Vec::new(),
    })
}

/// Whether a key did what the table says of its action.
fn check(action: Action, press: &dyn Fn(&mut Editor)) {
    // Where most keys have something to do: at the loop `j` of two fused steps.
    let mut at = editor(relu());
    at.type_keys("j");
    at.take_effects();
    let pressed = |mut editor: Editor| {
        press(&mut editor);
        editor
    };
    let prompt = |editor: &Editor| match &editor.mode {
        Mode::Prompt(prompt) => prompt.title.clone(),
        other => panic!("{action:?} asks nothing: {other:?}"),
    };
    let menu = |editor: &Editor| match &editor.mode {
        Mode::Menu(menu) => menu.title.clone(),
        other => panic!("{action:?} shows no list: {other:?}"),
    };
    let plain = "sums: i, j, k\nC: i, j\n";
    match action {
        Action::Up => assert_eq!(pressed(at).at(), "i"),
        Action::Down => assert_eq!(pressed(at).at(), "k"),
        Action::Around => assert_eq!(pressed(at).at(), "i"),
        Action::Inside => assert_eq!(pressed(at).at(), "k"),
        Action::First => assert_eq!(pressed(at).at(), "i"),
        Action::Last => assert_eq!(pressed(at).at(), "C"),
        Action::PageUp => {
            at.type_keys("G");
            at.fit(false, 2, 0);
            assert_eq!(pressed(at).row(), Some(2));
        }
        Action::PageDown => {
            at.fit(false, 2, 0);
            assert_eq!(pressed(at).row(), Some(3));
        }
        Action::Split => assert_eq!(prompt(&pressed(at)), "split j by"),
        Action::Merge => {
            at.type_keys("s16⏎");
            assert_eq!(at.schedule(), "sums: i, j/16, j, k\nC: i, j/16, j\n");
            assert_eq!(pressed(at).schedule(), plain);
        }
        Action::SwapOut => assert_eq!(pressed(at).schedule(), "sums: j, i, k\nC: j, i\n"),
        Action::SwapIn => {
            at.type_keys("k");
            assert_eq!(pressed(at).schedule(), "sums: j, i, k\nC: j, i\n");
        }
        Action::Parallel | Action::Vectorize | Action::Unroll => {
            let name = format!("{action:?}").to_lowercase();
            let once = pressed(at);
            let expected = format!("sums: i, j {name}, k\nC: i, j {name}\n");
            assert_eq!(once.schedule(), expected);
            assert_eq!(pressed(once).schedule(), plain);
        }
        Action::Annotate => assert_eq!(menu(&pressed(at)), "how the loop j runs"),
        Action::Fuse => {
            at.type_keys("Guu");
            assert_eq!(at.schedule(), "sums: i, j, k\nC: share=0, i, j\n");
            assert_eq!(pressed(at).schedule(), "sums: i, j, k\nC: share=1, i, j\n");
        }
        Action::Unfuse => {
            at.type_keys("G");
            assert_eq!(pressed(at).schedule(), "sums: i, j, k\nC: share=1, i, j\n");
        }
        Action::InlineOrStore => assert_eq!(
            pressed(at).schedule(),
            "%3: i, j, k\nsums: i, j, k\nC: i, j\n",
            "what `sums` computes inline is the product"
        ),
        Action::MoveDown | Action::MoveUp => {
            let two = "input x: f32[i=8]\noutput a = x + 1\noutput b = x * 2\n";
            let mut two = editor(plan(two, "a: i\nb: share=0, i\n"));
            if action == Action::MoveUp {
                two.type_keys("G");
            }
            let moved = pressed(two);
            assert!(moved.schedule().starts_with("b:"), "{}", moved.said());
        }
        Action::Delegate => assert_eq!(menu(&pressed(at)), "the backend that runs it"),
        Action::Legal => assert_eq!(menu(&pressed(at)), "legal changes"),
        Action::Command => assert_eq!(prompt(&pressed(at)), ":"),
        Action::Undo => {
            at.type_keys("p");
            assert_eq!(pressed(at).schedule(), plain);
        }
        Action::Redo => {
            at.type_keys("pz");
            let again = pressed(at);
            assert_eq!(
                again.schedule(),
                "sums: i, j parallel, k\nC: i, j parallel\n"
            );
        }
        Action::Best => {
            let report = |editor: &mut Editor, seconds| {
                let version = editor.version();
                editor.report(Report {
                    version,
                    news: News::Measured(measured(seconds)),
                });
            };
            report(&mut at, 1.0);
            at.type_keys("p");
            report(&mut at, 2.0);
            let best = pressed(at);
            assert_eq!(best.schedule(), plain);
            assert_eq!(best.reach(), (2, 0), "it can be undone");
            assert_eq!(best.measurement(), Some((measured(1.0), true)));
        }
        Action::OtherSide => {
            at.fit(false, 5, 0);
            let pane = pressed(at);
            assert_eq!((pane.side, pane.tab), (Side::Pane, Tab::Code));
            let mut tree = pressed(pane);
            assert_eq!(tree.side, Side::Tree);
            tree.fit(true, 5, 5);
            assert_eq!(pressed(tree).tab, Tab::Kernel);
        }
        Action::Show(tab) => {
            let shown = pressed(at);
            assert_eq!((shown.side, shown.tab), (Side::Pane, tab));
        }
        Action::Measure => {
            let effects = pressed(at).take_effects();
            assert!(matches!(
                effects.as_slice(),
                [Effect::Compile { measure: true, .. }]
            ));
        }
        Action::Live => {
            let mut off = pressed(at);
            off.type_keys("p");
            let effects = off.take_effects();
            assert!(matches!(
                effects.as_slice(),
                [Effect::Compile { measure: false, .. }]
            ));
            let effects = pressed(off).take_effects();
            assert!(matches!(
                effects.as_slice(),
                [Effect::Compile { measure: true, .. }]
            ));
        }
        Action::Save => assert_eq!(prompt(&pressed(at)), "save as"),
        Action::Load => assert_eq!(prompt(&pressed(at)), "open"),
        Action::Help => assert_eq!(pressed(at).mode, Mode::Help(0)),
        Action::Quit => {
            assert!(pressed(at).quits());
            let mut unsaved = editor(relu());
            unsaved.type_keys("p");
            let mut unsaved = pressed(unsaved);
            assert_eq!(unsaved.mode, Mode::ConfirmQuit);
            assert!(!unsaved.quits());
        }
    }
}

#[test]
fn every_key_does_what_the_table_says() {
    for section in SECTIONS {
        for binding in section.bindings {
            for key in binding.keys {
                check(binding.action, &|editor| editor.key(key.event()));
            }
        }
    }
}

#[test]
fn the_cursor_follows_its_loop() {
    let mut editor = becomes(matmul(), "jj<", "C: i, k, j\n");
    assert_eq!((editor.at(), editor.row()), ("k", Some(1)));
    editor.type_keys("<");
    assert_eq!((editor.at(), editor.row()), ("k", Some(0)));
    editor.type_keys("s8⏎");
    assert_eq!(editor.schedule(), "C: k/8, k, i, j\n");
    assert_eq!(editor.at(), "k/8");
    editor.type_keys("zz");
    assert_eq!((editor.at(), editor.schedule()), ("k", "C: i, k, j\n"));
}

#[test]
fn a_split_takes_its_factor_from_the_line_or_the_list() {
    becomes(matmul(), "js16⏎", "C: i, j/16, j, k\n");
    becomes(matmul(), "js⇥⇥⏎", "C: i, j/4, j, k\n");
    becomes(matmul(), "js3⇥⏎", "C: i, j/32, j, k\n");
    let editor = becomes(matmul(), "jssix⏎", "C: i, j, k\n");
    let Mode::Prompt(prompt) = &editor.mode else {
        panic!("the question stays: {:?}", editor.mode);
    };
    let (letters, why) = prompt.error.clone().expect("it is wrong");
    assert_eq!(
        (letters, why.as_str()),
        (0..3, "a factor is an integer, for example 16")
    );
    let why = refused(matmul(), "js1⏎");
    assert!(why.contains("cannot be split by 1"), "{why}");
    becomes(matmul(), "js16⎋", "C: i, j, k\n");
}

#[test]
fn a_shared_loop_is_changed_for_all_its_steps() {
    let editor = becomes(relu(), "s8⏎", "sums: i/8, i, j, k\nC: i/8, i, j\n");
    assert_eq!(editor.said(), "split sums i 8, and so for C");
    let mut editor = becomes(relu(), "p", "sums: i parallel, j, k\nC: i parallel, j\n");
    editor.type_keys("z");
    assert_eq!(editor.schedule(), "sums: i, j, k\nC: i, j\n");
    assert_eq!(
        editor.said(),
        "undone: annotate sums i parallel, and so for C"
    );
    // The command line takes it as it stands.
    becomes(relu(), ":split sums i 8⏎", "sums: i/8, i, j, k\nC: i, j\n");
}

#[test]
fn what_cannot_be_done_for_all_is_done_for_none() {
    let why = refused(relu(), "j>");
    assert!(why.contains("steps that share the loop"), "{why}");
}

#[test]
fn refusals_name_the_dependence() {
    let why = refused(matmul(), "jjp");
    assert!(why.contains("each iteration needs the one before"), "{why}");
    let why = refused(relu(), "Gf");
    assert!(why.contains("cannot share a further loop"), "{why}");
    let why = refused(relu(), "GK");
    assert!(why.contains("`sums` is computed after `C`"), "{why}");
    let why = refused(relu(), "Gs");
    assert!(why.contains("is a step and no loop"), "{why}");
    let why = refused(matmul(), "<");
    assert_eq!(why, "`i` is the outermost loop");
    let why = refused(matmul(), "jj>");
    assert_eq!(why, "`k` is the innermost loop");
    let why = refused(matmul(), "J");
    assert_eq!(why, "there is no step beyond it");
}

#[test]
fn merging_works_from_both_loops() {
    becomes(matmul(), "s8⏎m", "C: i, j, k\n");
    becomes(matmul(), "s8⏎↓m", "C: i, j, k\n");
    let why = refused(matmul(), "m");
    assert!(why.contains("no other loop over `i`"), "{why}");
}

#[test]
fn a_command_that_is_wrong_is_underlined() {
    let mut editor = becomes(matmul(), ":split C x 8⏎", "C: i, j, k\n");
    let Mode::Prompt(prompt) = &editor.mode else {
        panic!("the question stays: {:?}", editor.mode);
    };
    let (letters, why) = prompt.error.clone().expect("it is wrong");
    assert_eq!(letters, 8..9);
    assert!(why.contains("no dimension `x`"), "{why}");
    // It is put right and goes on.
    editor.type_keys("←←←");
    editor.key(key(KeyCode::Backspace));
    editor.type_keys("→");
    editor.key(key(KeyCode::Backspace));
    editor.type_keys("i⏎");
    let Mode::Prompt(prompt) = &editor.mode else {
        panic!("`{}`", editor.said());
    };
    assert!(prompt.error.is_some(), "`split Ci 8` lacks a loop");
    editor.type_keys("⎋:split C i 8⏎");
    assert_eq!(editor.schedule(), "C: i/8, i, j, k\n");
    // What was typed before is offered first.
    editor.type_keys("z:⇥⏎");
    assert_eq!(editor.schedule(), "C: i/8, i, j, k\n");
    editor.paste("nothing is typed into the tree");
    editor.type_keys("z:");
    editor.paste("swap C i j\n");
    editor.type_keys("⏎");
    assert_eq!(editor.schedule(), "C: j, i, k\n");
}

#[test]
fn the_list_has_every_legal_change_of_the_place() {
    let mut editor = editor(relu());
    editor.type_keys("jl");
    let Mode::Menu(menu) = &editor.mode else {
        panic!("a list is shown");
    };
    let texts: Vec<&str> = menu.shown().iter().map(|item| item.text.as_str()).collect();
    assert!(texts.contains(&"split sums j 16"), "{texts:?}");
    assert!(texts.contains(&"swap sums i j"), "{texts:?}");
    assert!(!texts.contains(&"split sums i 16"), "{texts:?}");
    let count = texts.len();
    editor.type_keys("⇥");
    let Mode::Menu(menu) = &editor.mode else {
        panic!("the list stays");
    };
    assert!(menu.shown().len() > count);
    assert_eq!(menu.shown().len(), editor.plan().legal().len());
    editor.type_keys("⇥split 16⏎");
    assert_eq!(editor.schedule(), "sums: i, j/16, j, k\nC: i, j/16, j\n");
}

#[test]
fn every_legal_change_can_be_chosen() {
    let legal = relu().legal();
    assert!(legal.len() > 20);
    for mutation in legal {
        let mut editor = editor(relu());
        editor.change(&mutation);
        let why = editor.message.clone().expect("something is said");
        // Done for all that share the loop, a swap may find another loop inside; it says so.
        if why.tone == Tone::Refusal {
            assert!(
                why.text.contains("share the loop"),
                "{mutation:?}: {}",
                why.text
            );
            editor.apply(std::slice::from_ref(&mutation));
            assert_eq!(editor.reach(), (1, 0), "{mutation:?}: {}", editor.said());
        }
    }
}

#[test]
fn annotations_are_chosen_from_a_list() {
    becomes(matmul(), "aunr⏎", "C: i unroll, j, k\n");
    becomes(matmul(), "a↓⏎", "C: i parallel, j, k\n");
    let editor = becomes(matmul(), "pap⎋", "C: i parallel, j, k\n");
    assert_eq!(editor.mode, Mode::Tree);
    let mut editor = becomes(matmul(), "pa", "C: i parallel, j, k\n");
    let Mode::Menu(menu) = &editor.mode else {
        panic!("a list is shown");
    };
    assert_eq!(menu.marked(), 1, "the one it has is marked");
    editor.type_keys("↑⏎");
    assert_eq!(editor.schedule(), "C: i, j, k\n");
}

#[test]
fn steps_are_stored_and_inlined() {
    let chain = "input x: f32[i=8]\nt = x + 1\noutput y = t * 2\n";
    let mut editor = becomes(plan(chain, "t: i\ny: i\n"), "→i", "y: i\n");
    assert_eq!(editor.at(), "y", "the cursor stays on its line");
    editor.type_keys("i");
    assert_eq!(editor.schedule(), "t: i\ny: i\n", "{}", editor.said());
    // Where there is more than one thing to do, a list asks.
    let long = "input x: f32[i=8]\nt = x + 1\nu = t * 3\noutput y = u * 2\n";
    let mut editor = becomes(plan(long, "y: i\n"), "i", "y: i\n");
    let Mode::Menu(menu) = &editor.mode else {
        panic!("{:?}: {}", editor.mode, editor.said());
    };
    let texts: Vec<&str> = menu.shown().iter().map(|item| item.text.as_str()).collect();
    assert_eq!(texts, ["store t", "store u"]);
    editor.type_keys("↓⏎");
    assert_eq!(editor.schedule(), "u: i\ny: i\n", "{}", editor.said());
    let why = refused(plan(chain, "y: i\n"), ":inline y⏎");
    assert!(why.contains("cannot be inline"), "{why}");
}

#[test]
fn a_loops_steps_are_delegated_together() {
    let both = "sums: delegate=cc, i, j, k\nC: delegate=cc, i, j\n";
    let mut editor = becomes(relu(), "dcc⏎", both);
    editor.type_keys("down⏎");
    assert_eq!(
        editor.schedule(),
        "sums: i, j, k\nC: i, j\n",
        "{}",
        editor.said()
    );
    let before = editor.reach();
    editor.type_keys("down⏎");
    assert_eq!((editor.said(), editor.reach()), ("own: as it is", before));
    becomes(relu(), "Gdnull⏎", "sums: i, j, k\nC: delegate=null, i, j\n");
}

#[test]
fn several_steps_move_together() {
    let three = "input x: f32[i=8]\noutput a = x + 1\noutput b = x * 2\noutput c = x - 1\n";
    let schedule = "a: i\nb: share=0, i\nc: i\n";
    let moved = becomes(plan(three, schedule), "jjK", "b: share=0, i\nc: i\na: i\n");
    assert_eq!(moved.at(), "i");
}

#[test]
fn strict_mode_keeps_the_order_of_sums() {
    let mut editor = editor(matmul());
    editor.type_keys("jjs8⏎<<");
    assert_eq!(editor.schedule(), "C: k/8, i, j, k\n", "{}", editor.said());
    let product = "input A: f32[i=8, k=8, l=8]\noutput C = sum[k, l](A)\n";
    let mut plain = self::editor(plan(product, "C: i, k, l\n"));
    plain.type_keys("j>");
    assert!(
        plain.said().contains("round differently"),
        "{}",
        plain.said()
    );
    let mut strict = self::editor(plan(product, "C: i, k, l\n"));
    strict.setting.strict = true;
    strict.type_keys("j>");
    assert_eq!(strict.schedule(), "C: i, k, l\n");
    assert!(strict.said().contains("strict mode"), "{}", strict.said());
}

#[test]
fn undo_and_redo_go_back_and_forth() {
    let mut editor = becomes(matmul(), "pjv", "C: i parallel, j vectorize, k\n");
    assert_eq!(editor.reach(), (2, 0));
    editor.type_keys("zz");
    assert_eq!(
        (editor.schedule(), editor.reach()),
        ("C: i, j, k\n", (0, 2))
    );
    assert!(editor.is_saved(), "it is the plan that was opened");
    editor.type_keys("z");
    assert_eq!(editor.said(), "nothing to undo");
    editor.type_keys("y");
    assert_eq!(editor.schedule(), "C: i parallel, j, k\n");
    editor.type_keys("r");
    assert_eq!(
        editor.reach(),
        (2, 0),
        "another change forgets what was undone"
    );
    editor.type_keys("y");
    assert_eq!(editor.said(), "nothing to redo");
}

#[test]
fn results_are_kept_by_plan_and_old_ones_are_stale() {
    let mut editor = editor(matmul());
    let report = |editor: &mut Editor, news| {
        let version = editor.version();
        editor.report(Report { version, news });
    };
    assert_eq!(editor.measurement(), None);
    report(&mut editor, News::Compiling);
    assert_eq!(editor.busy(), Some(Busy::Compiling));
    report(&mut editor, compiled("one"));
    report(&mut editor, News::Measured(measured(2.0)));
    assert_eq!(editor.busy(), None);
    assert_eq!(editor.measurement(), Some((measured(2.0), true)));
    assert_eq!(editor.pane_text(), ("one", true));
    editor.take_effects();
    editor.type_keys("p");
    assert_eq!(editor.measurement(), Some((measured(2.0), false)));
    assert_eq!(editor.pane_text(), ("one", false));
    report(&mut editor, News::Failed("no compiler".to_owned()));
    assert_eq!(editor.said(), "no compiler");
    assert_eq!(editor.pane_text(), ("no compiler", true));
    editor.take_effects();
    editor.type_keys("z");
    assert_eq!(editor.measurement(), Some((measured(2.0), true)));
    assert!(
        editor.take_effects().is_empty(),
        "all is known of this plan"
    );
    // News of another plan than the one shown are kept for it.
    editor.type_keys("y");
    let old = Version(0);
    editor.report(Report {
        version: old,
        news: News::Measured(measured(1.0)),
    });
    assert_eq!(editor.measurement(), Some((measured(1.0), false)));
    assert_eq!(editor.best, Some((old, measured(1.0))));
}

#[test]
fn a_schedule_is_saved_and_opened() {
    let mut editor = becomes(matmul(), "p", "C: i parallel, j, k\n");
    editor.take_effects();
    editor.type_keys("w⏎");
    let effects = editor.take_effects();
    let [
        Effect::Save {
            path,
            text,
            overwrite: false,
        },
    ] = effects.as_slice()
    else {
        panic!("{effects:?}");
    };
    assert_eq!(path, &PathBuf::from("test.sched"));
    assert_eq!(
        text,
        "loopwright schedule 1\ndevice \"interp\"\nC: i parallel, j, k\n"
    );
    editor.saved(Saved::Exists(path.clone()));
    assert!(!editor.is_saved());
    editor.type_keys("n");
    assert_eq!((editor.said(), &editor.mode), ("not saved", &Mode::Tree));
    editor.saved(Saved::Exists(path.clone()));
    editor.type_keys("y");
    let effects = editor.take_effects();
    assert!(matches!(
        effects.as_slice(),
        [Effect::Save {
            overwrite: true,
            ..
        }]
    ));
    editor.saved(Saved::Written(path.clone()));
    assert!(editor.is_saved());
    assert_eq!(editor.said(), "saved to test.sched");
    // What is ours is written again without asking.
    editor.type_keys("pw⏎");
    assert!(editor.take_effects().iter().any(|effect| matches!(
        effect,
        Effect::Save {
            overwrite: true,
            ..
        }
    )));
    editor.type_keys("oother.sched⏎");
    let effects = editor.take_effects();
    let [Effect::Load { path }] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    editor.loaded(path.clone(), Err("other.sched:2:1: no node `D`".to_owned()));
    assert_eq!(editor.said(), "other.sched:2:1: no node `D`");
    editor.loaded(
        path.clone(),
        Ok(Loaded {
            plan: matmul(),
            left_out: Vec::new(),
        }),
    );
    assert!(editor.is_saved());
    editor.type_keys("z");
    assert_eq!(editor.schedule(), "C: i, j, k\n", "opening is undone, too");
    assert!(!editor.is_saved());
}

#[test]
fn a_file_says_what_it_gave_and_what_does_not_fit() {
    let mut editor = editor(matmul());
    let version = editor.version();
    editor.report(Report {
        version,
        news: News::Measured(measured(2.0)),
    });
    editor.take_effects();
    editor.type_keys("w⏎");
    let effects = editor.take_effects();
    let [Effect::Save { text, .. }] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    let expected = "gave \"2.00 s, 0.50 GFLOP/s, 5.0 % of the roofline\"\n";
    assert!(text.contains(expected), "{text}");
    editor.loaded(
        PathBuf::from("old.sched"),
        Ok(Loaded {
            plan: matmul(),
            left_out: vec!["old.sched:3: there is no node `D`".to_owned()],
        }),
    );
    assert!(
        editor.said().contains("there is no node `D`"),
        "{}",
        editor.said()
    );
    assert!(!editor.is_saved(), "the file is not what is shown");
}

#[test]
fn leaving_asks_where_something_is_not_saved() {
    let mut editor = becomes(matmul(), "pq", "C: i parallel, j, k\n");
    editor.type_keys("⎋");
    assert_eq!(editor.mode, Mode::Tree);
    assert!(!editor.quits());
    editor.type_keys("qw");
    assert!(matches!(editor.mode, Mode::Prompt(_)), "saving is offered");
    editor.type_keys("⎋qq");
    assert!(editor.quits());
}

#[test]
fn the_mouse_selects_drags_and_scrolls() {
    let mut editor = editor(matmul());
    let screen = Rect::new(0, 0, 80, 24);
    let event = |kind, column, row| MouseEvent {
        kind,
        column,
        row,
        modifiers: ratatui::crossterm::event::KeyModifiers::NONE,
    };
    let send = |editor: &mut Editor, kind, row| {
        let layout = crate::view::prepare(screen, editor).expect("there is room");
        editor.mouse(event(kind, 5, row), &layout);
    };
    let (down, up) = (
        MouseEventKind::Down(MouseButton::Left),
        MouseEventKind::Up(MouseButton::Left),
    );
    let drag = MouseEventKind::Drag(MouseButton::Left);
    // The tree begins below the title and the heads.
    send(&mut editor, down, 4);
    send(&mut editor, up, 4);
    assert_eq!((editor.at(), editor.reach()), ("k", (0, 0)));
    // `k` onto `i`.
    send(&mut editor, down, 4);
    send(&mut editor, drag, 3);
    send(&mut editor, drag, 2);
    assert_eq!(editor.drag, Some(Drag { from: 2, to: 0 }));
    send(&mut editor, up, 2);
    assert_eq!(editor.schedule(), "C: k, i, j\n", "{}", editor.said());
    assert_eq!((editor.at(), editor.drag), ("k", None));
    // A loop onto a step.
    send(&mut editor, down, 2);
    send(&mut editor, drag, 5);
    send(&mut editor, up, 5);
    assert_eq!(
        editor.said(),
        "a loop is dragged onto a loop, a step onto a step"
    );
    // A line of a list.
    editor.type_keys("a");
    let layout = crate::view::prepare(screen, &mut editor).expect("there is room");
    let list = layout.menu.expect("a list is shown");
    let click = event(down, list.lines.x + 1, list.lines.y + 3);
    editor.mouse(click, &layout);
    assert_eq!(
        editor.schedule(),
        "C: k unroll, i, j\n",
        "{}",
        editor.said()
    );
    // The wheel scrolls what it is over.
    editor.type_keys("2");
    let version = editor.version();
    editor.report(Report {
        version,
        news: compiled(&"line\n".repeat(100)),
    });
    send(&mut editor, MouseEventKind::ScrollDown, 10);
    assert_eq!(editor.pane_scroll, 3);
    // A tab is clicked on.
    let layout = crate::view::prepare(screen, &mut editor).expect("there is room");
    editor.mouse(event(down, 25, 1), &layout);
    assert_eq!(editor.tab, Tab::Schedule);
}

#[test]
fn loops_are_dragged_for_all_that_share_them() {
    let mut editor = editor(relu());
    editor.drop_onto(1, 0);
    assert_eq!(
        editor.schedule(),
        "sums: j, i, k\nC: j, i\n",
        "{}",
        editor.said()
    );
    // Rows: i, j, k, sums, C of the fused nest.
    let mut editor = self::editor(relu());
    editor.drop_onto(4, 3);
    assert!(
        editor.said().contains("`sums` is computed after `C`"),
        "{}",
        editor.said()
    );
}

#[test]
fn a_long_tree_scrolls_to_the_cursor() {
    let names: String = (0..40)
        .map(|at| format!("output o{at} = x + {at}\n"))
        .collect();
    let steps: String = (0..40).map(|at| format!("o{at}: share=0, i\n")).collect();
    let mut editor = editor(plan(&format!("input x: f32[i=8]\n{names}"), &steps));
    editor.fit(false, 10, 0);
    editor.type_keys("G");
    editor.fit(false, 10, 0);
    assert_eq!(editor.tree_scroll, 70);
    editor.type_keys("k");
    editor.fit(false, 10, 0);
    assert_eq!(editor.tree_scroll, 70, "the cursor is in sight");
    editor.type_keys("g");
    editor.fit(false, 10, 0);
    assert_eq!(editor.tree_scroll, 0);
}
