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
        assert!(elements <= 2_000_000, "{name} has {elements} elements in all");
        let run = run(&graph, &[], &[]);
        for output in graph.outputs() {
            assert!(!run.array(&output.name).is_empty(), "{name}: {}", output.name);
        }
    }
}
