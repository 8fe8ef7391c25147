//! The interface for agents, used by two small ones.

use loopwright_graph::parse;
use loopwright_interp as _;
use loopwright_looptree::{Plan, Target, parse_schedule};
use loopwright_text::Source;
use loopwright_tune::agent::{Session, Step};
use loopwright_tune::{Bench, CostModel, FEATURES, Measure, Outcome, Timing, Trial, Version, Work};
use std::sync::{Arc, Mutex};

const PROGRAM: &str = "loopwright program 1
input A: f32[i=48, k=40]
input B: f32[k, j=64]
C = sum[k](A * B)
output D = max(C, 0)
";

const SCHEDULE: &str = "loopwright schedule 1\nC: i, j, k\nD: i, j\n";

const MACHINE: Target = Target {
    vector_bytes: 32,
    vector_registers: 16,
    ..Target::SCALAR
};

fn plan() -> Plan {
    let source = Source::new("p.lw", PROGRAM);
    let graph = parse(&source).expect("a program").with_stores();
    let schedule = parse_schedule(&Source::new("p.sched", SCHEDULE), &graph);
    Plan::new(graph, schedule.expect("a schedule")).expect("it fits")
}

fn predicted() -> Session {
    let plan = plan();
    let binding = Arc::new(plan.program().bind(&[]).expect("sizes"));
    Session::predicted(plan, binding, Arc::new(CostModel::new(MACHINE)))
}

fn work() -> Work {
    Work {
        program: PROGRAM.to_owned(),
        sizes: Vec::new(),
        device: "interp".to_owned(),
        strict: false,
        fallback: None,
        seed: 1,
    }
}

/// A random agent: whatever it does can be undone and done again.
#[test]
fn a_random_agent_walks_there_and_back() {
    let mut state = 11u64;
    let mut session = predicted();
    let mut texts = vec![session.plan().to_string()];
    while texts.len() < 25 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let actions = session.actions();
        let action = &actions[(state >> 33) as usize % actions.len()];
        let step = session.apply(action).expect("what is listed is legal");
        assert_eq!(step.reward, session.reward());
        texts.push(session.plan().to_string());
    }
    let path: Vec<String> = session.path().map(str::to_owned).collect();
    assert_eq!(path.len(), 24);
    for text in texts.iter().rev().skip(1) {
        assert!(session.undo());
        assert_eq!(&session.plan().to_string(), text);
    }
    assert!(!session.undo(), "at the start there is nothing to undo");
    for text in &texts[1..] {
        assert!(session.redo());
        assert_eq!(&session.plan().to_string(), text);
    }
    assert!(!session.redo());
    assert_eq!(session.path().collect::<Vec<_>>(), path);
}

/// A greedy agent: the best action at each step, as the model sees it.
#[test]
fn a_greedy_agent_gets_ahead() {
    let mut session = predicted();
    for _ in 0..6 {
        let here = session.reward().expect("the model knows it");
        let mut best = None;
        for action in session.actions() {
            let step = session.apply(&action).expect("what is listed is legal");
            let better = |(reward, _): &(f64, _)| step.reward > Some(*reward);
            if step.reward > Some(here + 1e-9) && best.as_ref().is_none_or(better) {
                best = step.reward.map(|reward| (reward, action));
            }
            session.undo();
        }
        let Some((_, action)) = best else { break };
        session.apply(&action).expect("it was legal before");
    }
    let reward = session.reward().expect("the model knows it");
    assert!(
        reward > 1.0,
        "more than twice as fast as three plain loops, not 2^{reward}"
    );
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut session = predicted();
    let source = |text: &str| Source::new("edit", text);
    let read = |text: &str| {
        loopwright_looptree::parse_mutation(&source(text), session.plan().graph())
            .expect("a mutation")
    };
    let [split, parallel] = [read("split C j 16"), read("annotate C k parallel")];
    let before = session.plan().to_string();
    let refused = session.apply_all(&[split.clone(), parallel]);
    assert!(refused.is_err(), "the sum's loop cannot be parallel");
    assert_eq!(
        session.plan().to_string(),
        before,
        "not even the first is done"
    );
    session.apply(&split).expect("alone it is fine");
    session.undo();
    assert!(session.redo());
    session.undo();
    session.apply(&split).expect("still fine");
    assert!(
        !session.redo(),
        "what was undone is forgotten after another action"
    );
}

/// Features are finite, named, and say what they should of loops that are known.
#[test]
fn features_describe_loops() {
    let mut session = predicted();
    let graph = Arc::clone(session.plan().graph());
    let mutation =
        loopwright_looptree::parse_mutation(&Source::new("edit", "split C j 16"), &graph);
    session
        .apply(&mutation.expect("a mutation"))
        .expect("legal");
    let at = |name: &str| {
        let found = FEATURES.iter().position(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("there is no feature `{name}`"))
    };
    let features = session.features();
    assert_eq!(features.len(), 6, "i, j/16, j, k of C and i, j of D");
    for line in &features {
        assert!(
            line.values.iter().all(|value| value.is_finite()),
            "{line:?}"
        );
    }
    let of = |line: usize, name: &str| features[line].values[at(name)];
    assert_eq!(of(1, "step"), 4.0, "j/16");
    assert_eq!(of(1, "rounds"), 2.0, "64 / 16");
    assert_eq!(of(3, "carried"), 1.0, "k");
    assert_eq!(
        (of(3, "reads_next"), of(3, "reads_far")),
        (1.0, 1.0),
        "A along k, B across"
    );
    assert_eq!((of(2, "writes_next"), of(3, "writes_stay")), (1.0, 1.0));
    assert_eq!(of(3, "flops"), (1.0f64 + 2.0).log2(), "a product and a sum");
    // One round of j/16: a row of A, 40 rows of 16 of B, 16 of C.
    assert_eq!(
        of(1, "footprint"),
        (1.0f64 + 4.0 * (40.0 + 640.0 + 16.0)).log2()
    );
}

/// Measured on the interpreter: every plan is checked, and rewards are numbers.
#[test]
fn rewards_are_measured_and_checked() {
    let plan = plan();
    let binding = Arc::new(plan.program().bind(&[]).expect("sizes"));
    let bench = Bench::with_reference(work()).expect("the interpreter is there");
    let mut session = Session::measured(plan, binding, Box::new(bench));
    let actions = session.actions();
    let Step { reward, outcome } = session.apply(&actions[0]).expect("legal");
    assert!(reward.is_some_and(f64::is_finite), "{outcome:?}");
    assert!(
        matches!(outcome, Some(Outcome::Time(Timing { samples: 3.., .. }))),
        "{outcome:?}"
    );
}

#[test]
fn a_bench_refuses_what_does_not_compile() {
    let mut bench = Bench::with_reference(work()).expect("the interpreter is there");
    let outcome = bench.measure(&Trial::of("loopwright schedule 1\nC: i, j, k\n"));
    assert!(
        matches!(&outcome, Outcome::Refused(why) if why.contains("`D`")),
        "{outcome:?}"
    );
    let outcome = bench.measure(&Trial::of("loopwright schedule 1\nC: i j k\n"));
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    let outcome = bench.measure(&Trial {
        version: Version::Default,
        ..Trial::of("")
    });
    assert!(matches!(outcome, Outcome::Time(_)), "{outcome:?}");
}

/// What an agent is given to measure with can be anything.
#[test]
fn the_start_is_the_rival() {
    struct Ear(Arc<Mutex<Vec<Trial>>>);
    impl Measure for Ear {
        fn measure(&mut self, trial: &Trial) -> Outcome {
            self.0.lock().expect("one thread").push(trial.clone());
            Outcome::Time(Timing {
                seconds: 1.0,
                rival: Some(4.0),
                samples: 3,
                wins: 1.0,
            })
        }
    }
    let heard = Arc::default();
    let plan = plan();
    let binding = Arc::new(plan.program().bind(&[]).expect("sizes"));
    let mut session = Session::measured(plan, binding, Box::new(Ear(Arc::clone(&heard))));
    let action = session.actions().remove(0);
    let step = session.apply(&action).expect("legal");
    assert_eq!(step.reward, Some(2.0), "four times as fast");
    let heard = heard.lock().expect("one thread");
    assert_eq!(heard[0].rival, Some(Version::Schedule(SCHEDULE.to_owned())));
}
