//! Pools, modes, constants.

use crate::support::*;
use loopwright_runtime::{
    BatchProgram, CodeOptions, LinkOptions, Loc, Mode, Modes, PoolId, Provenance, RuntimeOptions,
    SetAt,
};
use std::num::NonZero;

const CHAIN: &str = "
size N = 100
input x: f32[i=N]
input w: f32[i]
h = x * w
output y = h + 1
output z = h - 1
";

everywhere! {
    fn line_17_a_buffer_is_a_pool_and_an_offset(place) {
        let device = place.device();
        let routine = link(&device.stream().expect("a stream").context(), &compile(&device, "chain", CHAIN));
        let locs: Vec<(String, Loc)> = routine
            .context()
            .nodes()
            .into_iter()
            .map(|node| (node.name, node.loc))
            .collect();
        let at = |offset| Loc { pool: PoolId(0), offset };
        // 400 bytes each, the next multiple of 64 is 448.
        let expected = [("w", at(448)), ("x", at(0)), ("y", at(896)), ("z", at(1344))];
        assert_eq!(locs, expected.map(|(name, loc)| (name.to_owned(), loc)));
    }

    fn line_18_locations_are_the_same_on_every_run(place) {
        let locations = || {
            let device = place.device();
            let root = device.stream().expect("a stream").context();
            let first = link(&root, &compile(&device, "chain", CHAIN));
            let next = "size N = 100\ninput y: f32[i=N]\noutput q = sum[i](y)\noutput r = y * 3";
            let second = link(first.context(), &compile(&device, "next", next));
            second.context().nodes()
        };
        assert_eq!(locations(), locations());
    }

    fn line_19_pools_are_segmented_at_a_cap(place) {
        let options = RuntimeOptions { pool_cap: 1000, ..place.options() };
        let device = place.runtime_with(options).device(place.backend).expect("available");
        let code = compile(&device, "chain", CHAIN);
        let context = device.stream().expect("a stream").context();
        let routine = link(&context, &code);
        let loc = |name: &str| routine.context().node(name).expect("it is there").loc;
        assert_eq!(loc("x"), Loc { pool: PoolId(0), offset: 0 });
        assert_eq!(loc("w"), Loc { pool: PoolId(0), offset: 448 });
        assert_eq!(loc("y"), Loc { pool: PoolId(1), offset: 0 });
        assert_eq!(loc("z"), Loc { pool: PoolId(1), offset: 448 });
        assert_eq!(device.memory().pools, 2);
        let larger = LinkOptions { sizes: &[("N", 251)], ..LinkOptions::default() };
        assert_eq!(
            message(context.link(&code, &larger)),
            "`x` needs 1004 bytes, and a pool holds at most 1000; raise `pool_cap`"
        );
    }

    fn line_18_the_plan_is_what_linking_does(place) {
        let text = "
size N = 100
const table: f32[k] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71]
input x: f32[i=N, j=N]
input at: i64[j]
state total: f32[i]
turned[j, i] = sort[j](x)
output y = turned + table[at]
update total = total + sum[j](x)
";
        let device = place.device();
        let code = compile(&device, "planned", text);
        for (sizes, cap) in [([("N", 100)], 1 << 30), ([("N", 64)], 40_000)] {
            let options = RuntimeOptions { pool_cap: cap, ..place.options() };
            let device = place.runtime_with(options).device(place.backend).expect("available");
            let plan = code.plan(&sizes, cap).expect("planned");
            let code = compile(&device, "planned", text);
            let options = LinkOptions { sizes: &sizes, ..LinkOptions::default() };
            let context = device.stream().expect("a stream").context();
            let routine = context.link(&code, &options).expect("linked");
            let mut arrays = 0;
            for entry in &plan.entries {
                assert!(entry.loc.offset.is_multiple_of(loopwright_runtime::ALIGNMENT), "{plan}");
                if let Some(node) = routine.context().node(&entry.name) {
                    assert_eq!((node.loc, node.bytes), (entry.loc, entry.bytes), "{plan}");
                    arrays += 1;
                }
            }
            assert_eq!(arrays, 4, "{plan}");
            assert_eq!(device.memory().used, plan.bytes(), "{plan}");
            assert_eq!(device.memory().pools, plan.pools.len(), "{plan}");
            assert!(plan.pools.iter().all(|bytes| *bytes <= cap), "{plan}");
        }
    }

    fn line_20_constants_are_on_a_device_once(place) {
        let text = "
const table: f32[i] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71]
input at: i64[j=3]
output y = table[at]
";
        let other = "
const primes: f32[k] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71]
input at: i64[j=3]
output z = primes[at] * 2
";
        let device = place.device();
        let first = link(&device.stream().expect("a stream").context(), &compile(&device, "look", text));
        let own = 128 + 12; // `at` and `y`, with the space between them
        let own = own - 64; // `at` is 24 bytes, `y` starts at 64
        assert_eq!(device.memory().used, own + 80);
        let second = link(&device.stream().expect("a stream").context(), &compile(&device, "look too", other));
        assert_eq!(device.memory().used, 2 * own + 80, "the same constants");
        drop(first);
        drop(second);
        assert_eq!(device.memory().used, 80, "they outlive the contexts");
        let again = link(&device.stream().expect("a stream").context(), &compile(&device, "look", text));
        again.context().write("at", &[0i64, 19, 4]).expect("written");
        again.schedule(&[]).expect("scheduled");
        assert_eq!(read(again.context(), "y"), [2., 71., 11.]);
        assert_eq!(device.memory().used, own + 80);
    }

    fn line_20_every_device_has_its_own_copy_of_constants(place) {
        let text = "
const table: f32[i] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71]
input at: i64[j=3]
output y = table[at]
";
        let options = RuntimeOptions {
            devices: NonZero::new(2).expect("not zero"),
            ..place.options()
        };
        let runtime = place.runtime_with(options);
        let [a, b] = [0, 1].map(|ordinal| {
            runtime.device(&format!("{}:{ordinal}", place.backend)).expect("available")
        });
        let code = compile(&a, "look", text);
        let first = link(&a.stream().expect("a stream").context(), &code);
        let alone = a.memory().used;
        assert_eq!(b.memory().used, 0, "nothing is on the other device");
        let second = link(&b.stream().expect("a stream").context(), &code);
        assert_eq!((a.memory().used, b.memory().used), (alone, alone), "each has its own");
        drop(first);
        assert_eq!((a.memory().used, b.memory().used), (80, alone));
        second.context().write("at", &[1i64, 0, 19]).expect("written");
        second.schedule(&[]).expect("scheduled");
        assert_eq!(read(second.context(), "y"), [3., 2., 71.]);
    }

    fn line_21_memory_outlives_the_contexts_it_came_from(place) {
        let device = place.device();
        let stream = device.stream().expect("a stream");
        let parent = link(&stream.context(), &compile(&device, "chain", CHAIN));
        write(parent.context(), "x", &[2.; 100]);
        write(parent.context(), "w", &[3.; 100]);
        parent.schedule(&[]).expect("scheduled");
        let next = "size N = 100\ninput y: f32[i=N]\noutput q = y * 3";
        let child = link(parent.context(), &compile(&device, "next", next));
        drop(parent);
        drop(stream);
        child.schedule(&[]).expect("what it reads is still there");
        assert_eq!(read(child.context(), "q"), [21.; 100]);
        let other = link(&device.stream().expect("a stream").context(), &compile(&device, "next", next));
        assert_eq!(read(child.context(), "y"), [7.; 100], "nobody got its memory");
        drop((child, other));
        assert_eq!(device.memory().used, 0);
    }

    fn line_21_dropping_a_context_frees_its_own_pools(place) {
        let device = place.device();
        let stream = device.stream().expect("a stream");
        let parent = link(&stream.context(), &compile(&device, "chain", CHAIN));
        let used = device.memory().used;
        let next = "size N = 100\ninput y: f32[i=N]\noutput q = y * 3";
        let child = link(parent.context(), &compile(&device, "next", next));
        let context = child.context().clone();
        assert_eq!(device.memory().used, used + 400);
        drop(child);
        assert_eq!(device.memory().used, used + 400, "a context holds its memory");
        drop(context);
        assert_eq!(device.memory().used, used, "nothing else is touched");
        assert_eq!(device.memory().peak, used + 400);
        drop(parent);
        assert_eq!(device.memory().used, 0);
        assert_eq!(device.memory().pools, 0);
    }

    fn line_21_work_in_flight_keeps_its_memory(place) {
        let device = place.device();
        let stream = device.stream().expect("a stream");
        let routine = link(&stream.context(), &compile(&device, "chain", CHAIN));
        write(routine.context(), "x", &[1.; 100]);
        write(routine.context(), "w", &[1.; 100]);
        for _ in 0..50 {
            routine.schedule(&[]).expect("scheduled");
        }
        drop(routine);
        stream.wait().expect("all of it ran");
        assert_eq!(device.memory().used, 0);
    }

    fn line_22_fresh_memory_is_zero(place) {
        let device = place.device();
        let stream = device.stream().expect("a stream");
        for _ in 0..3 {
            let routine = link(&stream.context(), &compile(&device, "chain", CHAIN));
            for name in ["x", "w", "y", "z"] {
                assert_eq!(read(routine.context(), name), [0.; 100], "{name}");
            }
            // Memory that is given back is not zero any more.
            write(routine.context(), "x", &[7.; 100]);
            write(routine.context(), "w", &[7.; 100]);
            routine.run(&[]).expect("it runs");
        }
    }

    fn line_22_memory_that_was_used_before_is_zero_again(place) {
        // Reading what nothing wrote need not look at the memory; reading it around a slice that was
        // written does.
        let device = place.device();
        for rows in [2i64, 3, 7, 50, 1000, 3, 7, 50, 2] {
            let text = "size R = 2\ninput x: f32[r=R, i=5]\noutput y = x + 1";
            let options = LinkOptions { sizes: &[("R", rows)], ..LinkOptions::default() };
            let context = device.stream().expect("a stream").context();
            let routine = context.link(&compile(&device, "next", text), &options).expect("linked");
            let row = routine.context().slice("row", "x", 1).expect("a slice");
            write(&row, "row", &[7.; 5]);
            let mut expected = vec![0.; rows as usize * 5];
            expected[5..10].fill(7.);
            assert_eq!(read(routine.context(), "x"), expected, "{rows} rows");
            // Leave something behind for the next round.
            write(routine.context(), "x", &vec![9.; rows as usize * 5]);
            routine.run(&[]).expect("it runs");
        }
        assert_eq!(device.memory().used, 0, "every round gave its memory back");
    }

    fn line_23_modes_are_inferred_and_say_why(place) {
        let device = place.device();
        let text = "
input x: f32[i=100]
const c: f32[k] = [1, 2, 3]
s = sum[i](x)
h = x * 2
output y = h + s + sum[k](c)
";
        let code = compile(&device, "modes", text);
        let mode = |name: &str| {
            let found = code.modes().iter().find(|node| node.node == name);
            let found = found.unwrap_or_else(|| panic!("`{name}` has a mode"));
            (found.mode, found.why.clone())
        };
        assert_eq!(mode("x"), (Mode::OnDevice, Provenance::Inferred("an input")));
        assert_eq!(mode("y"), (Mode::OnDevice, Provenance::Inferred("an output")));
        assert_eq!(mode("h").0, Mode::Virtual);
        assert_eq!(mode("s"), (Mode::Local, Provenance::Inferred("a step of the schedule")));
        assert_eq!(mode("c"), (Mode::Constant, Provenance::Inferred("a constant")));
    }

    fn line_23_modes_that_are_set_are_kept_or_refused(place) {
        let device = place.device();
        let graph = program(CHAIN);
        let compile = |modes: Modes| {
            device.compile("chain", &graph, &CodeOptions { modes, ..CodeOptions::default() })
        };
        let x: Vec<f32> = (0..100).map(|at| at as f32).collect();
        for mode in [Mode::Virtual, Mode::Local, Mode::OnDevice] {
            let code = compile(Modes::new().set("h", mode)).expect("compiled");
            let found = code.modes().iter().find(|node| node.node == "h").expect("a mode");
            assert_eq!(found.mode, mode);
            let Provenance::Set(SetAt::Rust(place)) = &found.why else {
                panic!("it was set here: {}", found.why);
            };
            assert!(place.file().ends_with("memory.rs"), "{place}");
            let routine = link(&device.stream().expect("a stream").context(), &code);
            assert_eq!(routine.context().node("h").is_some(), mode == Mode::OnDevice);
            write(routine.context(), "x", &x);
            write(routine.context(), "w", &[3.; 100]);
            routine.schedule(&[]).expect("scheduled");
            let expected: Vec<f64> = (0..100).map(|at| f64::from(at) * 3. - 1.).collect();
            assert_eq!(read(routine.context(), "z"), expected, "{mode}");
        }
        let error = message(compile(Modes::new().set("h", Mode::Virtual).set("h", Mode::OnDevice)));
        assert!(error.starts_with("`chain`: `h` is to be virtual (set at "), "{error}");
        assert_eq!(error.matches("memory.rs:").count(), 2, "both places: {error}");
        let elsewhere = SetAt::Other("notebook.py:7".into());
        let error = message(compile(Modes::new().set_at("y", Mode::Virtual, elsewhere)));
        assert!(error.contains("`y` cannot be virtual (set at notebook.py:7)"), "{error}");
        let error = message(compile(Modes::new().set("y", Mode::Virtual)));
        assert!(error.contains("`y` cannot be virtual (set at "), "{error}");
        assert!(error.contains("it is on device (an output)"), "{error}");
        let error = message(compile(Modes::new().set("x", Mode::Local)));
        assert!(error.contains("it is on device (an input)"), "{error}");
        let error = message(compile(Modes::new().set("nothing", Mode::Local)));
        assert!(error.contains("there is no node `nothing`"), "{error}");
        let sum = program("input x: f32[i=4]\ns = sum[i](x)\noutput y = s * x");
        let options = CodeOptions { modes: Modes::new().set("s", Mode::Virtual), ..CodeOptions::default() };
        let error = message(device.compile("sum", &sum, &options));
        assert!(error.contains("a reduction keeps a running value"), "{error}");
    }

    fn line_24_a_virtual_output_is_inlined_across_routines(place) {
        let device = place.device();
        let texts = [
            ("make", "size N = 6\ninput x: f32[i=N]\noutput h = x * x + f32(i)\noutput kept = x + 1"),
            ("use", "size N = 6\ninput h: f32[row=N]\ninput w: f32[row]\noutput y = sum[row](h * w)"),
        ];
        let graphs = texts.map(|(_, text)| program(text));
        let run = |modes: Modes| {
            let options = [
                CodeOptions { modes, ..CodeOptions::default() },
                CodeOptions::default(),
            ];
            let programs: Vec<BatchProgram<'_>> = texts
                .iter()
                .zip(&graphs)
                .zip(options)
                .map(|(((name, _), graph), options)| BatchProgram { name, graph, options })
                .collect();
            let batch = device.compile_batch(&programs, |_| true).expect("compiled");
            let context = device.stream().expect("a stream").context();
            let (context, routines) = context
                .link_batch(&batch, &LinkOptions::default())
                .expect("linked");
            write(&context, "x", &[1., 2., 3., 4., 5., 6.]);
            write(&context, "w", &[1., -1., 2., -2., 3., -3.]);
            for routine in routines.iter().flatten() {
                routine.schedule(&[]).expect("scheduled");
            }
            (context.node("h").is_some(), read(&context, "y"), read(&context, "kept"))
        };
        let (stored, y, kept) = run(Modes::new());
        assert!(stored);
        let (stored, inlined, still) = run(Modes::new().set("h", Mode::Virtual));
        assert!(!stored, "a virtual node has no buffer");
        assert_eq!(inlined, y);
        assert_eq!(still, kept);
    }

    fn line_24_what_cannot_be_inlined_is_materialised(place) {
        // A read at another index than the loop's, of something dear, is computed once and kept.
        let text = "
input x: f32[i=8]
run = cumsum[i](x)
output y = run[7 - i] + run
";
        let device = place.device();
        let code = compile(&device, "reverse", text);
        let mode = code.modes().iter().find(|node| node.node == "run").expect("a mode");
        assert_eq!(mode.mode, Mode::Local);
        let routine = link(&device.stream().expect("a stream").context(), &code);
        write(routine.context(), "x", &[1.; 8]);
        routine.schedule(&[]).expect("scheduled");
        assert_eq!(read(routine.context(), "y"), [9.; 8]);
    }

    fn line_24_reads_at_other_places_see_the_right_values(place) {
        // A virtual node is computed where it is read, at the index that it is read at: turned round,
        // along a diagonal, behind a gather, and outside of its range.
        let text = "
input x: f32[i=6]
input at: i64[j=5]
h = x * x + f32(i)
output back = h[5 - i]
output same = h[i // 2] + h[i % 2]
output looked = h[at]
output moved = h[i - 2] else -1
";
        let device = place.device();
        let mut results = Vec::new();
        for mode in [Mode::Virtual, Mode::Local, Mode::OnDevice] {
            let modes = Modes::new().set("h", mode);
            let options = CodeOptions { modes, ..CodeOptions::default() };
            let code = device.compile("places", &program(text), &options).expect("compiled");
            let routine = link(&device.stream().expect("a stream").context(), &code);
            assert_eq!(routine.context().node("h").is_some(), mode == Mode::OnDevice, "{mode}");
            write(routine.context(), "x", &[1., 2., 3., 4., 5., 6.]);
            routine.context().write("at", &[5i64, 0, 6, -1, 3]).expect("written");
            routine.schedule(&[]).expect("scheduled");
            results.push(["back", "same", "looked", "moved"].map(|name| read(routine.context(), name)));
        }
        let h = [1., 5., 11., 19., 29., 41.];
        assert_eq!(results[0][0], [41., 29., 19., 11., 5., 1.]);
        assert_eq!(results[0][1], [2., 6., 6., 10., 12., 16.]);
        assert_eq!(results[0][2], [h[5], h[0], 0., 0., h[3]]);
        assert_eq!(results[0][3], [-1., -1., h[0], h[1], h[2], h[3]]);
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0], results[2]);
    }

    fn line_24_a_scatter_is_materialised(place) {
        // Several updates meet in one place: no element can be computed on its own.
        let text = "
input at: i64[u=6]
input v: f32[u]
const zero: f32 = 0
start[b=4] = zero
counts = scatter[b, sum](start, at, v)
output y = counts * 2
output z = counts[3 - b]
";
        let device = place.device();
        let code = compile(&device, "count", text);
        let mode = code.modes().iter().find(|node| node.node == "counts").expect("a mode");
        assert_eq!(mode.mode, Mode::Local, "{}", mode.why);
        let routine = link(&device.stream().expect("a stream").context(), &code);
        routine.context().write("at", &[0i64, 2, 2, 9, 2, 0]).expect("written");
        write(routine.context(), "v", &[1., 10., 100., 5., 1000., 2.]);
        routine.schedule(&[]).expect("scheduled");
        assert_eq!(read(routine.context(), "y"), [6., 0., 2220., 0.]);
        assert_eq!(read(routine.context(), "z"), [0., 1110., 0., 3.]);
        // Asking for it is refused, and says why.
        let modes = Modes::new().set("counts", Mode::Virtual);
        let options = CodeOptions { modes, ..CodeOptions::default() };
        let error = message(device.compile("count", &program(text), &options));
        assert!(error.contains("`counts` cannot be virtual (set at "), "{error}");
        assert!(error.contains("a scatter writes where its indices say"), "{error}");
    }

    fn line_24_nothing_is_inlined_across_a_write(place) {
        // `x` changes between `make` and `reader`, who would compute `h` from the new one.
        let make = ("make", "input x: f32[i=4]\noutput h = x + 1\noutput kept = x");
        let step = ("make", "state x: f32[i=4]\noutput h = x + 1\nupdate x = x + 10");
        let bump = ("bump", "state x: f32[i=4]\nupdate x = x + 10");
        let reader = ("reader", "input h: f32[i=4]\noutput y = h * 2");
        let device = place.device();
        for texts in [&[make, bump, reader][..], &[step, reader]] {
            let graphs: Vec<_> = texts.iter().map(|(_, text)| program(text)).collect();
            let run = |modes: Modes| {
                let programs: Vec<BatchProgram<'_>> = texts
                    .iter()
                    .zip(&graphs)
                    .map(|((name, _), graph)| {
                        let modes = if *name == "make" { modes.clone() } else { Modes::new() };
                        BatchProgram { name, graph, options: CodeOptions { modes, ..CodeOptions::default() } }
                    })
                    .collect();
                let batch = device.compile_batch(&programs, |_| true)?;
                let context = device.stream()?.context();
                let (context, routines) = context.link_batch(&batch, &LinkOptions::default())?;
                write(&context, "x", &[1., 2., 3., 4.]);
                for routine in routines.iter().flatten() {
                    routine.schedule(&[])?;
                }
                Ok(read(&context, "y"))
            };
            assert_eq!(run(Modes::new()).expect("it runs"), [4., 6., 8., 10.]);
            let writer = texts[texts.len() - 2].0;
            assert_eq!(
                message(run(Modes::new().set("h", Mode::Virtual))),
                format!("`make`: `h` cannot be virtual: it is computed from `x`, which `{writer}` writes")
            );
        }
    }

    fn line_26_a_one_hot_contraction_is_a_guarded_gather(place) {
        let text = "
input table: f32[k=5, j=2]
input at: i64[i=4]
output y = sum[k](select(k == at, table, 0))
";
        let device = place.device();
        let code = compile(&device, "one hot", text);
        let gathers = code.program().expect("compiled ahead").graph();
        let gathers = gathers
            .node_ids()
            .filter(|node| {
                matches!(gathers.node(*node).op, loopwright_graph::NodeOp::Gather { .. })
            })
            .count();
        assert_eq!(gathers, 1);
        let routine = link(&device.stream().expect("a stream").context(), &code);
        let table: Vec<f32> = (0..10).map(|at| at as f32 + 1.).collect();
        write(routine.context(), "table", &table);
        routine.context().write("at", &[4i64, -1, 0, 5]).expect("written");
        routine.schedule(&[]).expect("scheduled");
        let y = read_array(routine.context(), "y");
        let rows: Vec<f64> = if y.shape() == [4, 2] { y.to_f64() } else {
            let y = y.to_f64();
            (0..4).flat_map(|i| [y[i], y[4 + i]]).collect()
        };
        assert_eq!(rows, [9., 10., 0., 0., 1., 2., 0., 0.]);
    }

    fn line_27_slices_need_not_be_aligned(place) {
        // Rows of 37 floats start at every fourth byte; kernels must not take them for aligned.
        let device = place.device();
        let stream = device.stream().expect("a stream");
        let whole = "input x: f32[r=5, i=37]\noutput total = sum[r, i](x)";
        let whole = link(&stream.context(), &compile(&device, "whole", whole));
        let values: Vec<f32> = (0..185).map(|at| at as f32).collect();
        write(whole.context(), "x", &values);
        let step = compile(&device, "step", "state row: f32[i=37]\noutput s = sum[i](row * row)\nupdate row = row * 2 + 1");
        for index in 0..5 {
            let sliced = whole.context().slice("row", "x", index).expect("a slice");
            let routine = link(&sliced, &step);
            routine.schedule(&[]).expect("scheduled");
            let expected: f64 = values[index * 37..][..37].iter().map(|x| f64::from(x * x)).sum();
            assert_eq!(read(routine.context(), "s"), [expected]);
        }
        let expected: Vec<f64> = values.iter().map(|x| f64::from(x * 2. + 1.)).collect();
        assert_eq!(read(whole.context(), "x"), expected);
    }

    fn line_27_a_leading_slice_is_a_view_in_both_directions(place) {
        let device = place.device();
        let stream = device.stream().expect("a stream");
        let all = "input x: f32[r=3, i=4]\noutput total = sum[r, i](x)";
        let all = link(&stream.context(), &compile(&device, "all", all));
        write(all.context(), "x", &[1.; 12]);
        let sliced = all.context().slice("row", "x", 1).expect("a slice");
        let used = device.memory().used;
        // Reading it.
        let read_row = "input row: f32[i=4]\noutput double = row * 2";
        let double = link(&sliced, &compile(&device, "double", read_row));
        assert_eq!(device.memory().used, used + 16, "no memory for the slice");
        double.schedule(&[]).expect("scheduled");
        assert_eq!(read(double.context(), "double"), [2.; 4]);
        // Writing it.
        let write_row = "state row: f32[i=4]\nupdate row = row + f32(i) * 10";
        link(&sliced, &compile(&device, "write", write_row)).schedule(&[]).expect("scheduled");
        all.schedule(&[]).expect("scheduled");
        assert_eq!(read(all.context(), "total"), [72.]);
        assert_eq!(
            read(all.context(), "x"),
            [1., 1., 1., 1., 1., 11., 21., 31., 1., 1., 1., 1.]
        );
        // Both at once would have a kernel write what it reads under another name.
        let both = "input x: f32[r=3, i=4]\nstate row: f32[i]\nupdate row = sum[r](x)";
        assert_eq!(
            message(sliced.link(&compile(&device, "both", both), &LinkOptions::default())),
            "cannot link `both`: it writes `row`, which shares memory with `x`, which it uses too"
        );
        assert_eq!(
            message(all.context().slice("row", "x", 3)),
            "cannot slice `x`: index 3 is outside of its first dimension, 0 .. 3"
        );
    }
}
