//! Damaged texts: every parser refuses them with an error, and none panics.

use loopwright_conformance::Rng;
use loopwright_conformance::mutate::{Form, Samples, mutated, read};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Mutations of each form: a million in all, or as many as `LOOPWRIGHT_MUTATIONS` asks for.
fn mutations() -> u64 {
    let asked = std::env::var("LOOPWRIGHT_MUTATIONS").ok();
    asked
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000)
        / Form::ALL.len() as u64
}

fn assert_polite(form: Form, seed: u64) {
    let samples = Samples::new(60);
    let mut rng = Rng::new(seed);
    let mut readable = 0;
    for _ in 0..mutations() {
        let sample = samples
            .pick(&mut rng, form)
            .expect("there are samples of every form");
        let other = samples
            .pick(&mut rng, form)
            .expect("there are samples of every form");
        let text = mutated(&mut rng, &sample.text, &other.text);
        let outcome = catch_unwind(AssertUnwindSafe(|| read(form, &text, &sample.graph)));
        match outcome {
            Ok(read) => readable += u64::from(read),
            Err(_) => panic!(
                "{form:?} panics, as said above, on\n{text}\n\nof\n{}",
                sample.graph
            ),
        }
    }
    // Damage that is always fatal would only test the first line of a parser.
    assert!(
        readable > mutations() / 100,
        "{readable} of {} could be read",
        mutations()
    );
}

#[test]
fn graphs() {
    assert_polite(Form::Graph, 1);
}

#[test]
fn schedules() {
    assert_polite(Form::Schedule, 2);
}

#[test]
fn trees() {
    assert_polite(Form::Tree, 3);
}

#[test]
fn kernels() {
    assert_polite(Form::Kernel, 4);
}

#[test]
fn what_nobody_would_write() {
    let samples = Samples::new(1);
    let mut rng = Rng::new(0);
    let graph = &samples
        .pick(&mut rng, Form::Graph)
        .expect("there is one")
        .graph;
    let deep = "(".repeat(100_000);
    let header = "loopwright program 1\n";
    for form in Form::ALL {
        for text in [
            "",
            "\0",
            "loopwright",
            "loopwright program",
            "\u{feff}",
            &deep,
        ] {
            read(form, text, graph);
        }
    }
    read(Form::Graph, &format!("{header}output x = {deep}1"), graph);
    read(
        Form::Graph,
        &format!("{header}output x = {}1.0", "-".repeat(100_000)),
        graph,
    );
    read(
        Form::Graph,
        &format!("{header}output x = {}", "1 + ".repeat(50_000)),
        graph,
    );
    read(
        Form::Tree,
        &format!("loopwright tree 1\n{}", "for d1 {\n".repeat(50_000)),
        graph,
    );
    read(
        Form::Kernel,
        &format!(
            "loopwright kernel 1\nkernel @k() {{{}",
            "if %0 {".repeat(50_000)
        ),
        graph,
    );
}
