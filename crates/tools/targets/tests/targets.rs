//! Every program becomes code for machines of all kinds.

use loopwright_targets::{Corpus, SweepOptions, sweep};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many machines a run of the tests tries, others every time.
const MACHINES: u64 = 20;

/// A seed that was not tried before; the one that `LOOPWRIGHT_TARGETS_SEED` names where it is set.
fn fresh_seed() -> u64 {
    if let Ok(seed) = std::env::var("LOOPWRIGHT_TARGETS_SEED") {
        return seed.parse().expect("a seed is a number");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("it is after 1970").as_secs() * MACHINES
}

#[test]
fn every_program_becomes_code_for_a_fresh_sample_of_machines() {
    let corpus = Corpus::complete().expect("every network can be traced");
    let options = SweepOptions {
        seed: fresh_seed(),
        targets: MACHINES,
        interpreted: 4,
        threads: 2,
        ..SweepOptions::default()
    };
    let report = sweep(&corpus, &options, &|_| ());
    let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
    assert!(
        failures.is_empty(),
        "{} failures; `loopwright check --targets {MACHINES} --seed {}` finds them again:\n{}",
        failures.len(),
        options.seed,
        failures.join("\n")
    );
    assert_eq!(report.targets, MACHINES);
    assert!(report.programs > MACHINES * corpus.entries.len() as u64);
    assert!(report.written > 5 * report.programs);
    assert!(report.interpreted > 0);
}

/// The corpus is what it says: every kind of network, forward and as a training step.
#[test]
fn the_corpus_has_every_kind_of_network() {
    let corpus = Corpus::complete().expect("every network can be traced");
    let kinds = [
        "MLP",
        "CNN",
        "UNet",
        "ViT",
        "decoder",
        "LSTM",
        "selective scan",
        "mixture of experts",
        "VAE",
    ];
    for kind in kinds {
        let of_kind = corpus.clone().named(&format!("network {kind} "));
        let has = |part: &str| {
            of_kind
                .entries
                .iter()
                .any(|entry| entry.name.ends_with(part))
        };
        for part in ["forward", "forward, any batch", "training step"] {
            assert!(has(part), "{kind} has no {part}");
        }
        let small = format!("network small {kind} ");
        let mut interpreted = corpus.interpreted.iter();
        assert!(
            interpreted.any(|entry| entry.name.starts_with(&small)),
            "{kind} is interpreted"
        );
    }
    let symbolic = corpus
        .entries
        .iter()
        .filter(|entry| entry.graph.integers().next().is_some());
    assert!(symbolic.count() > 10, "some sizes are symbols");
}
