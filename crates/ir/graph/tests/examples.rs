//! The example programs: each parses, evaluates and survives being written out and read back.

mod support;

use loopwright_graph::{Graph, parse, print};
use loopwright_text::Source;
use support::{Random, counting, examples, run};

fn example(name: &str) -> Graph {
    let examples = examples();
    let (_, text) = examples
        .iter()
        .find(|(found, _)| found == name)
        .expect("the example exists");
    read(name, text)
}

fn read(name: &str, text: &str) -> Graph {
    let source = Source::new(name, text);
    match parse(&source) {
        Ok(graph) => graph,
        Err(error) => panic!("{}", error.render(&source)),
    }
}

#[test]
fn every_example_survives_being_written_and_read() {
    for (name, text) in examples() {
        let graph = read(&name, &text);
        let printed = print(&graph);
        assert_eq!(read(&name, &printed), graph, "{name}:\n{printed}");
        assert_eq!(print(&read(&name, &printed)), printed, "{name}");
    }
}

#[test]
fn every_example_evaluates() {
    for (name, text) in examples() {
        let graph = read(&name, &text);
        let binding = graph.bind(&[]).expect("every size has a default");
        let elements: i64 = graph
            .node_ids()
            .map(|node| binding.elements(&graph, node))
            .sum();
        assert!(
            elements <= 2_000_000,
            "{name} has {elements} elements in all"
        );
        let run = run(&graph, &[], &[]);
        for output in graph.outputs() {
            assert!(
                !run.array(&output.name).is_empty(),
                "{name}: {}",
                output.name
            );
        }
    }
}

#[test]
fn matmul_is_the_product() {
    let graph = example("matmul.lw");
    let run = run(
        &graph,
        &[("M", 2), ("N", 2), ("K", 3)],
        &[("A", counting(6)), ("B", counting(6))],
    );
    // [0 1 2; 3 4 5] times [0 1; 2 3; 4 5]
    assert_eq!(run.values("C"), [10.0, 13.0, 28.0, 40.0]);
}

#[test]
fn attention_sees_the_past_only() {
    let graph = example("attention.lw");
    // All scores equal: position q averages the values of positions 0 to q.
    let inputs = [
        ("query", vec![0.0; 4 * 3]),
        ("key", vec![0.0; 4 * 3]),
        ("value", [0.0, 6.0, 12.0].repeat(4)),
    ];
    let run = run(&graph, &[("T", 3), ("D", 1)], &inputs);
    assert_eq!(run.values("context"), [0.0, 3.0, 6.0].repeat(4));
}

#[test]
fn softmax_is_a_distribution() {
    let run = run(
        &example("softmax.lw"),
        &[("ROWS", 1), ("COLUMNS", 2)],
        &[("x", vec![1000.0, 1000.0])],
    );
    assert_eq!(run.values("softmax"), [0.5, 0.5]);
    let log = run.values("log_softmax")[0];
    assert!((log + std::f64::consts::LN_2).abs() < 1e-6, "{log}");
}

#[test]
fn layernorm_has_mean_zero_and_variance_one() {
    let run = run(
        &example("layernorm.lw"),
        &[("ROWS", 1), ("FEATURES", 2)],
        &[
            ("x", vec![3.0, 7.0]),
            ("gain", vec![1.0; 2]),
            ("shift", vec![0.5; 2]),
        ],
    );
    assert_eq!(run.values("y"), [-0.5, 1.5]);
}

#[test]
fn lstm_with_zero_weights_halves_its_memory() {
    let sizes = [("BATCH", 1), ("INPUT", 1), ("HIDDEN", 1)];
    let inputs = [
        ("x", vec![1.0]),
        ("weight_x", vec![0.0; 4]),
        ("weight_h", vec![0.0; 4]),
        ("bias", vec![0.0; 4]),
        ("hidden", vec![1.0]),
        ("memory", vec![4.0]),
    ];
    let run = run(&example("lstm_cell.lw"), &sizes, &inputs);
    assert_eq!(run.values("memory"), [2.0]);
    let expected = 0.5 * 2f64.tanh();
    assert!((run.values("hidden")[0] - expected).abs() < 1e-6);
}

#[test]
fn kmeans_moves_centres_to_their_points() {
    let inputs = [
        ("point", vec![0.0, 0.0, 2.0, 0.0, 10.0, 10.0]),
        ("centre", vec![1.0, 1.0, 9.0, 9.0, -50.0, -50.0]),
    ];
    let run = run(
        &example("kmeans_step.lw"),
        &[("POINTS", 3), ("CENTRES", 3)],
        &inputs,
    );
    assert_eq!(run.values("nearest"), [0.0, 0.0, 1.0]);
    assert_eq!(run.values("centre"), [1.0, 0.0, 10.0, 10.0, -50.0, -50.0]);
    assert_eq!(run.values("inertia"), [6.0]);
}

#[test]
fn heat_flows_to_the_neighbours() {
    let mut plate = vec![0.0; 9];
    plate[4] = 10.0;
    let run = run(
        &example("heat.lw"),
        &[("H", 3), ("W", 3)],
        &[("plate", plate)],
    );
    let next = run.values("plate");
    for (at, expected) in [0.0, 2.0, 0.0, 2.0, 2.0, 2.0, 0.0, 2.0, 0.0]
        .into_iter()
        .enumerate()
    {
        assert!(
            (next[at] - expected).abs() < 1e-6,
            "cell {at} is {}",
            next[at]
        );
    }
}

#[test]
fn a_blinker_blinks() {
    let mut cells = vec![0.0; 25];
    cells[11..14].fill(1.0);
    let run = run(
        &example("life.lw"),
        &[("H", 5), ("W", 5)],
        &[("alive", cells)],
    );
    let mut expected = vec![0.0; 25];
    for row in 1..4 {
        expected[row * 5 + 2] = 1.0;
    }
    assert_eq!(run.values("alive"), expected);
    assert_eq!(run.values("population"), [3.0]);
}

#[test]
fn histogram_counts() {
    let run = run(
        &example("histogram.lw"),
        &[("VALUES", 5), ("BINS", 4)],
        &[("x", vec![0.1, 0.3, 0.3, 0.9, 7.0])],
    );
    assert_eq!(run.values("counts"), [1.0, 2.0, 0.0, 1.0]);
    assert_eq!(run.values("median_bin"), [1.0]);
}

#[test]
fn the_first_fft_stage_is_sums_and_differences() {
    let run = run(
        &example("fft_stage.lw"),
        &[("BLOCKS", 2), ("HALF", 1)],
        &[("re", vec![1.0, 2.0, 3.0, 5.0]), ("im", vec![0.0; 4])],
    );
    assert_eq!(run.values("out_re"), [3.0, -1.0, 8.0, -2.0]);
}

#[test]
fn sorting_ranks_and_picks() {
    let run = run(
        &example("sort.lw"),
        &[("ROWS", 1), ("COLUMNS", 3)],
        &[("x", vec![5.0, -1.0, 2.0])],
    );
    assert_eq!(run.values("ascending"), [-1.0, 2.0, 5.0]);
    assert_eq!(run.values("order"), [1.0, 2.0, 0.0]);
    assert_eq!(run.values("best"), [5.0, 2.0, -1.0]);
    assert_eq!(run.values("rank"), [2.0, 0.0, 1.0]);
}

#[test]
fn padding_tokens_do_not_count() {
    let run = run(
        &example("embedding.lw"),
        &[("VOCABULARY", 2), ("T", 2), ("D", 1)],
        &[
            ("tokens", vec![0.0, 1.0, 1.0, -1.0, -1.0, -1.0, 0.0, -1.0]),
            ("table", vec![10.0, 20.0]),
        ],
    );
    // Position t adds sin(t) in the only place.
    let sine = 1f64.sin();
    let expected = [15.0 + sine / 2.0, 20.0, 0.0, 10.0];
    for (value, expected) in run.values("pooled").into_iter().zip(expected) {
        assert!((value - expected).abs() < 1e-5, "{value} is not {expected}");
    }
}

#[test]
fn random_numbers_look_random() {
    let run = run(&example("random.lw"), &[], &[("seed", vec![42.0])]);
    let near = |name: &str, expected: f64, by: f64| {
        let value = run.values(name)[0];
        assert!((value - expected).abs() < by, "{name} is {value}");
    };
    near("mean_even", 0.5, 0.02);
    near("mean_bell", 0.0, 0.06);
    near("variance", 1.0, 0.08);
    near("heads", 2000.0, 130.0);
    near("pi", std::f64::consts::PI, 0.1);
    near("mean_dice", 3.5, 0.11);
}

#[test]
fn a_training_step_lowers_the_loss() {
    let graph = example("mlp_step.lw");
    let first = run(&graph, &[], &[("rate", vec![0.05])]);
    let states: Vec<(&str, Vec<f64>)> = ["w1", "b1", "w2", "b2"]
        .into_iter()
        .map(|name| (name, first.values(name)))
        .chain([("rate", vec![0.05])])
        .collect();
    let second = run(&graph, &[], &states);
    let (before, after) = (first.values("loss")[0], second.values("loss")[0]);
    assert!(after < before, "the loss went from {before} to {after}");
}

/// Texts nobody would write: the parser answers each with a graph or an error, and never panics.
#[test]
fn no_text_makes_the_parser_panic() {
    let examples = examples();
    let texts: Vec<&[u8]> = examples.iter().map(|(_, text)| text.as_bytes()).collect();
    let mut random = Random(7);
    let pieces: [&[u8]; 24] = [
        b"[",
        b"]",
        b"(",
        b")",
        b"=",
        b"%",
        b"//",
        b" else 0",
        b" if ",
        b"-",
        b"9999999999999999999",
        b"\n",
        b"size ",
        b"dim ",
        b"inf",
        b"\"",
        b"%3",
        b"->",
        b":",
        b",",
        b"0x",
        b"1e",
        b"**",
        b"&",
    ];
    for round in 0..100_000 {
        let mut text = texts[random.below(texts.len())].to_vec();
        for _ in 0..1 + random.below(4) {
            let at = random.below(text.len());
            match random.below(6) {
                0 => {
                    text.remove(at);
                }
                1 => text.insert(at, (random.next() % 256) as u8),
                2 => text[at] = b' ' + (random.next() % 95) as u8,
                3 => {
                    let end = (at + random.below(40)).min(text.len());
                    text.drain(at..end);
                }
                4 => {
                    let piece = pieces[random.below(pieces.len())];
                    text.splice(at..at, piece.iter().copied());
                }
                _ => {
                    let other = texts[random.below(texts.len())];
                    let start = random.below(other.len());
                    let end = (start + random.below(40)).min(other.len());
                    text.splice(at..at, other[start..end].iter().copied());
                }
            }
            if text.is_empty() {
                break;
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let source = Source::new("mutated", text);
        match parse(&source) {
            // What is accepted must survive being written out, whatever it is.
            Ok(graph) if round % 16 == 0 => {
                let printed = Source::new("printed", print(&graph));
                match parse(&printed) {
                    Ok(again) => assert_eq!(again, graph, "{}", source.text()),
                    Err(error) => panic!("{}\n{}", source.text(), error.render(&printed)),
                }
            }
            Ok(_) => {}
            Err(error) => assert!(!error.render(&source).is_empty()),
        }
    }
}
