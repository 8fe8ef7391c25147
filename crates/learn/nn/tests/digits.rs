//! The run that `loopwright train digits` does.

use loopwright_interp as _;
use loopwright_nn::train::{Event, Options, TrainError, digits};
use loopwright_tensor::Session;
use loopwright_x86 as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn session() -> Session {
    Session::new("auto").expect("there is a device")
}

fn options(file: &Path) -> Options {
    Options {
        epochs: 3,
        checkpoint: Some(file.to_owned()),
        ..Options::default()
    }
}

#[test]
fn digits_are_learned_and_compiled_once() {
    let session = session();
    let mut compiled = None;
    let report = digits(&session, &Options::default(), &mut |event| {
        if let Event::Compiled { .. } = event {
            compiled = Some(session.compilations().compiled);
        }
    });
    let report = report.unwrap();
    assert!(report.accuracy >= 0.97, "{report:?}");
    assert!(!report.stopped);
    assert_eq!(report.history.len(), 30);
    // Nothing after the first step.
    assert_eq!(compiled, Some(report.compiled));
}

#[test]
fn a_run_that_is_stopped_and_taken_up_again_ends_at_the_same_weights() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.safetensors");
    digits(&session(), &options(&whole), &mut |_| {}).unwrap();

    // In the middle of an epoch, and once more.
    let parts = folder.path().join("parts.safetensors");
    for (at, resume) in [(20, false), (70, true)] {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Options {
            stop: Arc::clone(&stop),
            resume,
            ..options(&parts)
        };
        let report = digits(&session(), &stopping, &mut |event| {
            if let Event::Step { done } = event {
                stop.store(*done >= at, Ordering::Relaxed);
            }
        });
        assert!(report.unwrap().stopped);
    }
    let rest = Options {
        resume: true,
        ..options(&parts)
    };
    let report = digits(&session(), &rest, &mut |_| {}).unwrap();
    assert!(!report.stopped);
    assert_eq!(
        std::fs::read(&whole).unwrap(),
        std::fs::read(&parts).unwrap()
    );
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.safetensors");
    let short = Options {
        epochs: 1,
        ..options(&file)
    };
    digits(&session(), &short, &mut |_| {}).unwrap();
    let other = Options {
        seed: 5,
        resume: true,
        ..short.clone()
    };
    let error = digits(&session(), &other, &mut |_| {}).unwrap_err();
    assert!(
        matches!(error, TrainError::OtherRun { what: "seed", .. }),
        "{error}"
    );

    std::fs::write(&file, b"nothing of the kind").unwrap();
    let again = Options {
        resume: true,
        ..short
    };
    let error = digits(&session(), &again, &mut |_| {}).unwrap_err();
    assert!(matches!(error, TrainError::Checkpoint(_)), "{error}");
}
