//! Recurrences: what depends on itself one step back runs as one loop, of any length, on every backend.

mod both;

use both::{compilers, graph, output};
use loopwright_compile::Kernels;
use loopwright_graph::{Array, Binding, Graph, NodeId, evaluate, parse, print};
use loopwright_kernel::passes::Pipeline;
use loopwright_looptree::{LoopTree, Target, parse_schedule, print_tree};
use loopwright_text::Source;

const LINEAR: &str = "size N
input a: f32[t=N, j=5]
input x: f32[t, j]
p[t, j] = previous[t, f32](h, 0.5)
h = a * 0.125 * p + x
output h
output last = sum[t](select(t == size(N - 1), h, 0))
";

const RECURRENT: &str = "size N
input x: f32[t=N, b=3, k=4]
input w: f32[j=4, k]
input first: f32[b, j]
p[t, b, j] = previous[t, f32](again, 0)
before = select(index[t] > 0, p, first)
h = tanh(x * 0.25 + sum[j](before * w * 0.0625))
again[t, b, j] = h[t, b, j]
output h
output doubled = h * 2
";

/// Two things are carried, each made of both, and something is made of them that nothing carries.
const GATES: &str = "size N
input x: f64[t=N, k=6]
input w: f64[j=6, k]
ph[t, j] = previous[t, f64](h_again, 0)
pc[t, k] = previous[t, f64](c, 1)
gate = x * 0.125 + sum[j](ph * w * 0.03125)
open = 1 / (1 + exp(-gate))
c = pc * open + tanh(gate)
h = tanh(c) * open
h_again[t, j] = h[t, j]
largest = max[k](h)
output h, c
output shifted = h - largest
";

/// Two recurrences, the second of which reads the first from its end.
const THERE_AND_BACK: &str = "size N
input x: f32[t=N, j=3]
p[t, j] = previous[t, f32](h, 0)
h = x * 0.5 + p * 0.5
turned[s, j] = h[N - 1 - s, j]
q[s, j] = previous[s, f32](g, 0)
g = q * 0.25 + turned
back[t, j] = g[N - 1 - t, j]
output back
";

const PROGRAMS: [&str; 4] = [LINEAR, RECURRENT, GATES, THERE_AND_BACK];

/// Waves for every input, at these sizes.
fn waves(graph: &Graph, binding: &Binding) -> Vec<(NodeId, Array)> {
    let wave = |node: NodeId| {
        let shape = binding.shape(graph, node).into_iter();
        let shape: Vec<usize> = shape.map(|size| size as usize).collect();
        let count = shape.iter().product::<usize>();
        let phase = f64::from(node.0);
        let values: Vec<f64> = (0..count)
            .map(|at| (at as f64 * 0.7 + phase).sin())
            .collect();
        let array = Array::from_f64(graph.node(node).dtype, &shape, &values);
        (node, array.expect("inputs are small"))
    };
    graph.parameters().map(wave).collect()
}

#[test]
fn recurrences_of_any_length_give_what_the_reference_gives() {
    for text in PROGRAMS {
        let graph = graph(text);
        for compiler in compilers() {
            let program = compiler.compile(&graph, None).expect("it compiles");
            for steps in [0, 1, 2, 3, 17, 70] {
                let sizes = [("N", steps)];
                let binding = graph.bind(&sizes).expect("the sizes fit");
                let given = waves(&graph, &binding);
                let mut bound = program.bind(&sizes).expect("the sizes fit");
                for (node, array) in &given {
                    let name = &graph.node(*node).name;
                    bound.give(name, array.clone()).expect("the array fits");
                }
                let expected = evaluate(&graph, &binding, &given).expect("it evaluates");
                for (name, array) in expected {
                    let got = output(&mut bound, &name);
                    for (got, want) in got.iter().zip(array.to_f64()) {
                        let near = (got - want).abs() <= 1e-6 * want.abs().max(1.0);
                        assert!(
                            near,
                            "`{name}` after {steps} steps: {got}, not {want}\n{text}"
                        );
                    }
                    assert_eq!(got.len(), array.to_f64().len());
                }
            }
        }
    }
}

#[test]
fn a_recurrence_is_one_loop_of_the_tree_and_no_part_of_it_is_parallel() {
    for (text, count) in [(LINEAR, 1), (RECURRENT, 1), (GATES, 1), (THERE_AND_BACK, 2)] {
        for threads in [1, 16] {
            let target = Target {
                vector_bytes: 32,
                vector_registers: 16,
                threads,
                ..Target::SCALAR
            };
            let kernels = Kernels::new(&graph(text), None, &target, &Pipeline::standard());
            let kernels = kernels.expect("it becomes kernels");
            let (graph, tree) = (kernels.plan.graph(), kernels.plan.tree());
            let mut sequential = 0;
            tree.walk(&mut |place, _| {
                if tree.is_sequential(place) {
                    sequential += 1;
                    assert!(!tree.trivially_parallel(graph, place));
                }
            });
            let shown = print_tree(graph, tree);
            assert_eq!(sequential, count, "{shown}");
        }
    }
}

/// The code of a recurrence does not grow with its steps: it is the same but for the trip count.
#[test]
fn the_kernel_of_a_recurrence_differs_only_in_the_trip_count() {
    for text in [LINEAR, RECURRENT, GATES] {
        let kernel = |steps: i64| {
            let text = text
                .replace("=N", &format!("={steps}"))
                .replace("size N\n", "");
            let text: String = text
                .lines()
                .filter(|line| !line.contains("last"))
                .map(|line| format!("{line}\n"))
                .collect();
            // Large enough to lie in scratch memory at any length.
            let text = text
                .replace("j=5", "j=320")
                .replace("k=4", "k=64")
                .replace("j=4", "j=64");
            let text = text.replace("k=6", "k=128").replace("j=6", "j=128");
            let kernels = Kernels::new(&graph(&text), None, &Target::SCALAR, &Pipeline::standard());
            let kernels = kernels.expect("it becomes kernels");
            let text = kernels.module().to_string();
            text.replace(&format!("const {steps}\n"), "const N\n")
        };
        let short = kernel(32);
        assert!(short.contains("const N\n"), "{short}");
        assert_eq!(short, kernel(1024));
        assert_eq!(short, kernel(100_000));
    }
}

#[test]
fn recurrences_are_read_back_as_they_are_printed() {
    for text in PROGRAMS {
        let graph = graph(text);
        let printed = print(&graph);
        let again = parse(&Source::new("again.lw", &printed)).expect("it is read back");
        assert_eq!(print(&again), printed);
        assert_eq!(again, graph);
    }
}

#[test]
fn a_schedule_that_tears_a_recurrence_apart_is_refused() {
    let graph = graph(LINEAR).with_stores();
    let refused = |steps: &str| {
        let text = format!("loopwright schedule 1\n{steps}");
        let source = Source::new("s.lws", &text);
        match parse_schedule(&source, &graph) {
            Ok(schedule) => match LoopTree::new(&graph, &schedule) {
                Ok(tree) => panic!("accepted:\n{}", print_tree(&graph, &tree)),
                Err(error) => error.to_string(),
            },
            Err(error) => error.render(&source),
        }
    };
    let parallel = refused("h: t parallel, j\nlast: j, t\n");
    assert!(
        parallel.contains("each iteration needs the one before"),
        "{parallel}"
    );
}
