//! Lines 28, 29, 31 and 34: the life of a program.

use crate::{arrays, backends, counting, program, strict};
use loopwright_backend::CompileOptions;
use loopwright_compile::Compiler;
use loopwright_graph::{Array, Graph, parse, print};
use loopwright_looptree::{
    LoopTree, Target, parse_schedule, parse_tree, print_schedule, print_tree,
};
use loopwright_ops::DType;
use loopwright_scheduler::default_schedule;
use loopwright_text::Source;

const PRODUCT: &str =
    "size M = 4\ninput A: f32[i=M, k=3]\ninput B: f32[k, j=5]\noutput C = sum[k](A * B)\n";

#[test]
fn line_28_written_out_and_read_back() {
    // Views with constraints, nodes that nothing needs, states, constants.
    let text = "size N\ninput x: f32[i=N]\nunused = exp(x)\nconst w: f32[k] = [0.5, nan, -inf]\nodd[i] = x[N - 1 - i] if i % 2 == 1, i < 5 else -0.0\nstate s: f32[i]\nupdate s = s + odd\noutput y = max[k](odd * w)\n";
    let graph = program(text);
    assert!(graph.find("unused").is_none());
    let printed = print(&graph);
    assert!(printed.starts_with("loopwright program 1\n"), "{printed}");
    let back = |graph: &Graph| parse(&Source::new("printed", print(graph)));
    assert_eq!(back(&graph).as_ref(), Ok(&graph));
    let stored = graph.with_stores();
    assert_eq!(back(&stored).as_ref(), Ok(&stored));

    let schedule = default_schedule(&stored, &Target::SCALAR).expect("there is a schedule");
    let text = print_schedule(&stored, &schedule);
    assert!(text.starts_with("loopwright schedule 1\n"), "{text}");
    let read = parse_schedule(&Source::new("schedule", text), &stored);
    assert_eq!(read.as_ref(), Ok(&schedule));

    let tree = LoopTree::new(&stored, &schedule).expect("it is legal");
    let text = print_tree(&stored, &tree);
    assert!(text.starts_with("loopwright tree 1\n"), "{text}");
    assert_eq!(
        parse_tree(&Source::new("tree", text), &stored).as_ref(),
        Ok(&tree)
    );

    // A version that is not known is refused.
    let later = Source::new("later", printed.replace("program 1", "program 2"));
    assert!(parse(&later).is_err());
}

#[test]
fn line_29_compiled_once() {
    for backend in backends() {
        let compiler = Compiler::new(backend, CompileOptions::default());
        let compile = |text: &str| {
            let compiled = compiler.compile(&program(text), None);
            compiled.unwrap_or_else(|error| panic!("{error}"));
            compiler.compile_count()
        };
        assert_eq!(compile(PRODUCT), 1);
        assert_eq!(compile(PRODUCT), 1, "the same program again");
        let layout = PRODUCT.replace("B: f32[k, j=5]", "B: f32[j=5, k]");
        assert_eq!(compile(&layout), 2, "another layout");
        assert_eq!(compile(&PRODUCT.replace("f32", "f64")), 3, "another dtype");
        assert_eq!(compile(PRODUCT), 3, "the first one once more");

        let graph = program(PRODUCT);
        let stored = graph.clone().with_stores();
        let output = print_schedule(
            &stored,
            &default_schedule(&stored, &Target::SCALAR).expect("there is one"),
        );
        let name = output
            .lines()
            .nth(1)
            .and_then(|line| line.split(':').next());
        let text = format!(
            "loopwright schedule 1\n{}: j, k, i\n",
            name.expect("it has a step")
        );
        let schedule = parse_schedule(&Source::new("schedule", text), &stored);
        let schedule = schedule.unwrap_or_else(|error| panic!("{error:?}"));
        for _ in 0..2 {
            let compiled = compiler.compile(&graph, Some(&schedule));
            compiled.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(compiler.compile_count(), 4, "another schedule");
        }
    }
}

#[test]
fn line_31_external_memory() {
    let graph = program(PRODUCT);
    for backend in backends() {
        let compiler = Compiler::new(backend, strict());
        let program = compiler
            .compile(&graph, None)
            .unwrap_or_else(|error| panic!("{error}"));
        let inputs = arrays(
            &graph,
            &[],
            &[("A", &counting(0, 12)), ("B", &counting(0, 15))],
        );
        let others = arrays(&graph, &[], &[("A", &[0.0; 12]), ("B", &[0.0; 15])]);
        let mut output = Array::zeros(DType::F32, &[4, 5]).expect("it is small");
        let mut second = Array::zeros(DType::F32, &[4, 5]).expect("it is small");
        let address = output.bytes().as_ptr();
        {
            let mut bound = program.bind(&[]).unwrap_or_else(|error| panic!("{error}"));
            bound.input("A", inputs[0].1.bytes()).expect("it fits");
            bound.input("B", inputs[1].1.bytes()).expect("it fits");
            bound.output("C", output.bytes_mut()).expect("it fits");
            bound.run().unwrap_or_else(|error| panic!("{error}"));
            assert!(bound.array("C").is_none(), "the memory is the caller's");
            // Bound again: other inputs, other memory.
            bound.input("A", others[0].1.bytes()).expect("it fits");
            bound.output("C", second.bytes_mut()).expect("it fits");
            bound.ensure().unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(output.bytes().as_ptr(), address);
        assert_eq!(output.to_f64()[..5], [25.0, 28.0, 31.0, 34.0, 37.0]);
        assert_eq!(second.to_f64(), [0.0; 20]);

        // A run without change can be left out, or forced: a state shows which.
        let counter = crate::program("state n: i64\nupdate n = n + 1\n");
        let program = compiler
            .compile(&counter, None)
            .unwrap_or_else(|error| panic!("{error}"));
        let mut n = Array::zeros(DType::I64, &[]).expect("it is small");
        {
            let mut bound = program.bind(&[]).unwrap_or_else(|error| panic!("{error}"));
            bound.state("n", n.bytes_mut()).expect("it fits");
            bound.ensure().unwrap_or_else(|error| panic!("{error}"));
            bound.ensure().unwrap_or_else(|error| panic!("{error}"));
            bound.run().unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(
            n.to_f64(),
            [2.0],
            "once because it was needed, once by force"
        );
    }
}

#[test]
fn line_34_synchronous_or_not_and_the_code() {
    let graph = program(PRODUCT);
    for backend in backends() {
        let name = backend.name().to_owned();
        let compiler = Compiler::new(backend, strict());
        let program = compiler
            .compile(&graph, None)
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(!program.code().is_empty(), "{name} shows its code");
        let inputs = arrays(
            &graph,
            &[],
            &[("A", &counting(0, 12)), ("B", &counting(0, 15))],
        );
        let bind = || {
            let mut bound = program.bind(&[]).unwrap_or_else(|error| panic!("{error}"));
            for (node, array) in &inputs {
                bound
                    .give(&graph.node_name(*node), array.clone())
                    .expect("it fits");
            }
            bound
        };
        let mut now = bind();
        now.run().unwrap_or_else(|error| panic!("{error}"));
        let later = bind()
            .start()
            .wait()
            .unwrap_or_else(|error| panic!("{error}"));
        let (now, later) = (now.array("C"), later.array("C"));
        assert_eq!(
            now.expect("it has run").bytes(),
            later.expect("it has run").bytes()
        );
    }
}
