//! Compile, link, run.

use crate::support::*;
use loopwright_runtime::{BatchProgram, CodeOptions, LinkOptions, RuntimeOptions};
use std::num::NonZero;

const DOUBLE: &str = "
size N = 4
input x: f32[i=N]
output y = x * 2
";

everywhere! {
    fn line_06_one_code_many_contexts(place) {
        let device = place.device();
        let code = compile(&device, "double", DOUBLE);
        let before = device.compiler().compile_count();
        let stream = device.stream().expect("a stream");
        let other = device.stream().expect("a stream");
        let routines: Vec<_> = [&stream, &stream, &other]
            .map(|stream| link(&stream.context(), &code))
            .into();
        for (at, routine) in routines.iter().enumerate() {
            let at = at as f32;
            write(routine.context(), "x", &[at, at + 1., at + 2., at + 3.]);
            routine.schedule(&[]).expect("scheduled");
        }
        for (at, routine) in routines.iter().enumerate() {
            let at = at as f64;
            let expected: Vec<f64> = (0..4).map(|i| 2. * (at + f64::from(i))).collect();
            assert_eq!(read(routine.context(), "y"), expected);
        }
        assert_eq!(device.compiler().compile_count(), before, "compiled once");
    }

    fn line_07_the_parent_is_unchanged(place) {
        let device = place.device();
        let root = device.stream().expect("a stream").context();
        let first = link(&root, &compile(&device, "double", DOUBLE));
        assert!(root.nodes().is_empty());
        let child = first.context();
        let names = |context: &loopwright_runtime::Context| -> Vec<String> {
            context.nodes().into_iter().map(|node| node.name).collect()
        };
        assert_eq!(names(child), ["x", "y"]);
        let next = "size N = 4\ninput y: f32[i=N]\noutput z = y + 1";
        let second = link(child, &compile(&device, "next", next));
        assert_eq!(names(child), ["x", "y"]);
        assert_eq!(names(second.context()), ["x", "y", "z"]);
    }

    fn line_08_what_must_be_there_is_asked_for_by_name(place) {
        let device = place.device();
        let code = compile(&device, "double", DOUBLE);
        let context = device.stream().expect("a stream").context();
        let options = LinkOptions { prior: &["x"], ..LinkOptions::default() };
        assert_eq!(
            message(context.link(&code, &options)),
            "cannot link `double`: `x` must come from the context, which does not have it"
        );
        let maker = compile(&device, "maker", "size N = 4\noutput x = f32(i) + 0 * f32(N)\ndim i = N");
        let made = link(&context, &maker);
        let routine = made.context().link(&code, &options).expect("x is there");
        made.schedule(&[]).expect("scheduled");
        routine.schedule(&[]).expect("scheduled");
        assert_eq!(read(routine.context(), "y"), [0., 2., 4., 6.]);
    }

    fn line_09_related_contexts_share_buffers(place) {
        let device = place.device();
        let code = compile(&device, "double", DOUBLE);
        let context = device.stream().expect("a stream").context();
        let first = link(&context, &code);
        let used = device.memory().used;
        let again = link(first.context(), &code);
        assert_eq!(device.memory().used, used, "nothing is new");
        let loc = |routine: &loopwright_runtime::Routine, name: &str| {
            routine.context().node(name).expect("it is there").loc
        };
        assert_eq!(loc(&first, "x"), loc(&again, "x"));
        assert_eq!(loc(&first, "y"), loc(&again, "y"));
        let next = "size N = 4\ninput y: f32[i=N]\noutput z = y + 1";
        let next = link(first.context(), &compile(&device, "next", next));
        assert_eq!(device.memory().used, used + 16, "only `z` is new");
        write(first.context(), "x", &[1., 2., 3., 4.]);
        first.schedule(&[]).expect("scheduled");
        next.schedule(&[]).expect("scheduled");
        assert_eq!(read(next.context(), "z"), [3., 5., 7., 9.]);
        // A sibling has memory of its own.
        let sibling = link(&context, &code);
        assert_ne!(loc(&first, "x").pool, loc(&sibling, "x").pool);
    }

    fn line_09_a_node_of_another_shape_is_refused(place) {
        let device = place.device();
        let code = compile(&device, "double", DOUBLE);
        let first = link(&device.stream().expect("a stream").context(), &code);
        let larger = LinkOptions { sizes: &[("N", 5)], ..LinkOptions::default() };
        assert_eq!(
            message(first.context().link(&code, &larger)),
            "cannot link `double`: it has `x` as f32[5], and the context has it as f32[4] (from `double`)"
        );
    }

    fn line_10_compiled_ahead_or_at_link_gives_equal_results(place) {
        let text = "
size M = 3, K = 5
input a: f32[i=M, k=K]
input b: f32[k]
output c = sum[k](a * b)
";
        let device = place.device();
        let mut results = Vec::new();
        for ahead in [true, false] {
            let options = CodeOptions { ahead, ..CodeOptions::default() };
            let code = device.compile("product", &program(text), &options).expect("compiled");
            assert_eq!(code.program().is_some(), ahead);
            for sizes in [[3i64, 5], [2, 7]] {
                let sizes = [("M", sizes[0]), ("K", sizes[1])];
                let options = LinkOptions { sizes: &sizes, ..LinkOptions::default() };
                let context = device.stream().expect("a stream").context();
                let routine = context.link(&code, &options).expect("linked");
                let (m, k) = (sizes[0].1 as usize, sizes[1].1 as usize);
                let values = |count: usize| -> Vec<f32> {
                    (0..count).map(|at| (at as f32 * 0.37).sin()).collect()
                };
                write(routine.context(), "a", &values(m * k));
                write(routine.context(), "b", &values(k));
                routine.schedule(&[]).expect("scheduled");
                results.push(read_array(routine.context(), "c"));
            }
        }
        assert_eq!(results[0], results[2]);
        assert_eq!(results[1], results[3]);
        assert_eq!(results[1].len(), 2);
    }

    fn line_10_code_is_kept_on_disk(place) {
        let kept = tempfile::tempdir().expect("a temporary directory");
        let mut options = place.options();
        options.compile.cache = Some(kept.path().join("cache"));
        let compiled = |text: &str| {
            let device = place.runtime_with(options.clone())
                .device(place.backend)
                .expect("available");
            let code = compile(&device, "kept", text);
            let routine = link(&device.stream().expect("a stream").context(), &code);
            write(routine.context(), "x", &[1., 2., 3., 4.]);
            routine.schedule(&[]).expect("scheduled");
            let program = code.program().expect("compiled ahead");
            (program.executable().from_cache(), read(routine.context(), "y"))
        };
        // What needs no compiler keeps nothing.
        let keeps = place.keeps_code();
        assert_eq!(compiled(DOUBLE), (false, vec![2., 4., 6., 8.]));
        assert_eq!(compiled(DOUBLE), (keeps, vec![2., 4., 6., 8.]), "another runtime finds it");
        let other = DOUBLE.replace("* 2", "* 3");
        assert_eq!(compiled(&other), (false, vec![3., 6., 9., 12.]), "and nothing else");
    }

    fn line_11_a_batch_is_one_module(place) {
        let device = place.device();
        let texts = [
            ("first", "size N = 4\ninput x: f32[i=N]\noutput h = x + 1"),
            ("left_out", "size N = 4\ninput h: f32[i=N]\noutput lost = h * 0"),
            ("second", "size N = 4\ninput h: f32[i=N]\noutput y = h * h"),
        ];
        let graphs = texts.map(|(_, text)| program(text));
        let programs: Vec<BatchProgram<'_>> = texts
            .iter()
            .zip(&graphs)
            .map(|((name, _), graph)| BatchProgram { name, graph, options: CodeOptions::default() })
            .collect();
        let before = device.compiler().compile_count();
        let batch = device
            .compile_batch(&programs, |name| name != "left_out")
            .expect("compiled");
        assert_eq!(device.compiler().compile_count(), before + 1, "one module");
        let context = device.stream().expect("a stream").context();
        let (last, routines) = context
            .link_batch(&batch, &LinkOptions::default())
            .expect("linked");
        let [Some(first), None, Some(second)] = &routines[..] else {
            panic!("the middle one is left out: {routines:?}");
        };
        assert_eq!((first.name(), second.name()), ("first", "second"));
        let names: Vec<String> = last.nodes().into_iter().map(|node| node.name).collect();
        assert_eq!(names, ["h", "x", "y"]);
        assert!(first.context().node("y").is_none(), "every routine keeps its own context");
        write(&last, "x", &[0., 1., 2., 3.]);
        first.schedule(&[]).expect("scheduled");
        second.schedule(&[]).expect("scheduled");
        assert_eq!(read(&last, "y"), [1., 4., 9., 16.]);
        assert_eq!(read(&last, "h"), [1., 2., 3., 4.], "its own buffers, too");
    }

    fn line_11_two_programs_of_a_batch_cannot_have_one_name(place) {
        let device = place.device();
        let graph = program(DOUBLE);
        let twin = || BatchProgram { name: "twin", graph: &graph, options: CodeOptions::default() };
        let error = message(device.compile_batch(&[twin(), twin()], |_| true));
        assert!(error.contains("twin"), "{error}");
    }

    fn line_12_statics_are_captured_when_scheduled(place) {
        let text = "
static batch in 0 .. 4
input x: f32[row=4, i=3]
state log: f32[row]
update log = select(row == batch, sum[i](x[batch, i]) + log, log)
";
        let device = place.device();
        let context = device.stream().expect("a stream").context();
        let routine = link(&context, &compile(&device, "rows", text));
        let statics: Vec<_> = routine.statics().collect();
        assert_eq!(statics, [("batch", 0..4)]);
        let values: Vec<f32> = (0..12).map(|at| at as f32).collect();
        write(routine.context(), "x", &values);
        routine.context().zero("log").expect("zeroed");
        let mut batch = 3;
        while batch >= 0 {
            routine.schedule(&[("batch", batch)]).expect("scheduled");
            batch -= 1; // what was scheduled has its value
        }
        assert_eq!(read(routine.context(), "log"), [3., 12., 21., 30.]);
        for value in [-1, 4, i64::MAX, i64::MIN] {
            assert_eq!(
                message(routine.schedule(&[("batch", value)])),
                format!("routine `rows`: `batch` is {value}, outside of its range 0 .. 4")
            );
        }
        assert_eq!(
            message(routine.schedule(&[])),
            "routine `rows`: `batch` is not bound; it takes a value in 0 .. 4"
        );
        assert_eq!(
            message(routine.schedule(&[("batch", 1), ("bach", 1)])),
            "routine `rows` has no static symbol `bach`; it has [batch]"
        );
        assert_eq!(read(routine.context(), "log"), [3., 12., 21., 30.], "nothing ran");
    }

    fn line_13_a_full_queue_drains_and_drops_nothing(place) {
        let options = RuntimeOptions {
            queue: NonZero::new(2).expect("not zero"),
            ..place.options()
        };
        let device = place.runtime_with(options)
            .device(place.backend)
            .expect("available");
        let context = device.stream().expect("a stream").context();
        let count = "state n: i64[]\nupdate n = n + 1";
        let routine = link(&context, &compile(&device, "count", count));
        routine.context().zero("n").expect("zeroed");
        for _ in 0..500 {
            routine.schedule(&[]).expect("scheduled");
        }
        assert_eq!(read(routine.context(), "n"), [500.]);
    }

    fn line_14_a_stream_runs_in_order(place) {
        let device = place.device();
        let context = device.stream().expect("a stream").context();
        let add = link(&context, &compile(&device, "add", "state n: i64[]\nupdate n = n + 3"));
        let twice = link(add.context(), &compile(&device, "twice", "state n: i64[]\nupdate n = n * 2"));
        add.context().zero("n").expect("zeroed");
        let mut expected = 0i64;
        for at in 0..40 {
            if at % 3 == 0 {
                twice.schedule(&[]).expect("scheduled");
                expected = expected.wrapping_mul(2);
            } else {
                add.schedule(&[]).expect("scheduled");
                expected += 3;
            }
        }
        assert_eq!(read_array(twice.context(), "n").get_flat(0).as_i64(), Some(expected));
    }

    fn line_16_what_nothing_wrote_is_refused_by_name(place) {
        let device = place.device();
        let context = device.stream().expect("a stream").context();
        let routine = link(&context, &compile(&device, "double", DOUBLE));
        assert_eq!(
            message(routine.schedule(&[])),
            "routine `double` reads `x`, which nothing has written yet; write it first"
        );
        write(routine.context(), "x", &[1., 2., 3., 4.]);
        routine.run(&[]).expect("now it runs");
        let state = link(&context, &compile(&device, "count", "state n: i64[]\nupdate n = n + 1"));
        let error = message(state.schedule(&[]));
        assert!(error.contains("reads `n`"), "{error}");
        // A state that is only written needs no value before.
        let set = link(&context, &compile(&device, "set", "state n: i64[]\nupdate n = 7"));
        set.run(&[]).expect("it reads nothing");
        assert_eq!(read(set.context(), "n"), [7.]);
    }
}
