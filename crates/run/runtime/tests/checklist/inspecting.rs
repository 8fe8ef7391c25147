//! Looking inside: shared subexpressions, stages in files, logs of stores and of compilers, second opinions.

use crate::support::*;
use loopwright_compile::Kernels;
use loopwright_kernel::passes::Pipeline;
use loopwright_looptree::{parse_schedule, print_schedule, print_tree};
use loopwright_runtime::{CodeOptions, LinkOptions, Run, RuntimeOptions, Span, SpanKind, Verify};
use loopwright_text::Source;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often an instruction stands in the text of a kernel.
fn count(kernel: &str, instruction: &str) -> usize {
    kernel.matches(&format!("= {instruction} ")).count()
}

everywhere! {
    fn line_25_a_subexpression_is_computed_once(place) {
        // Within one statement and across two.
        let text = "
input x: f32
input k: f32
output a = exp(x * k) + exp(x * k) * 2
output b = exp(x * k) - 1
";
        let device = place.device();
        let code = compile(&device, "repeats", text);
        let kernel = code.program().expect("compiled ahead").module().to_string();
        assert_eq!((count(&kernel, "exp"), count(&kernel, "mul")), (1, 2), "{kernel}");
        let routine = link(&device.stream().expect("a stream").context(), &code);
        write(routine.context(), "x", &[0.5]);
        write(routine.context(), "k", &[3.]);
        routine.schedule(&[]).expect("scheduled");
        let e = 1.5f32.exp();
        assert_eq!(read(routine.context(), "a"), [f64::from(e + e * 2.)]);
        assert_eq!(read(routine.context(), "b"), [f64::from(e - 1.)]);
    }

    fn line_25_nothing_is_shared_across_a_write(place) {
        // Every read of a state sees the value from before, wherever the new one is written.
        let text = "
state n: i64[i=6]
output squares = n * n + 1
update n = n * n + 1
output reversed = n[5 - i] * n[5 - i] + 1
";
        let device = place.device();
        let before = link(&device.stream().expect("a stream").context(), &compile(&device, "step", text));
        // The same subexpression behind the write, in another routine.
        let after = "input n: i64[i=6]\noutput later = n * n + 1";
        let after = link(before.context(), &compile(&device, "after", after));
        let values: Vec<i64> = (1..=6).collect();
        before.context().write("n", &values).expect("written");
        let next = |values: &[i64]| -> Vec<i64> { values.iter().map(|n| n * n + 1).collect() };
        let as_f64 = |values: &[i64]| -> Vec<f64> { values.iter().map(|n| *n as f64).collect() };
        let mut now = values;
        for _ in 0..3 {
            before.schedule(&[]).expect("scheduled");
            after.schedule(&[]).expect("scheduled");
            let squares = next(&now);
            let reversed: Vec<i64> = squares.iter().rev().copied().collect();
            assert_eq!(read(after.context(), "squares"), as_f64(&squares));
            assert_eq!(read(after.context(), "reversed"), as_f64(&reversed));
            assert_eq!(read(after.context(), "n"), as_f64(&squares));
            assert_eq!(read(after.context(), "later"), as_f64(&next(&squares)));
            now = squares;
        }
    }

    fn line_38_every_stage_can_be_written_out(place) {
        // `loopwright dump --out` writes these; its own tests are in crates/faces/cli/tests.
        let text = "
size N = 40
input x: f32[i=N]
s = sum[i](x)
output y = x / s
";
        let device = place.device();
        let code = compile(&device, "normalise", text);
        let done = code.program().expect("compiled ahead");
        let target = device.backend().target();
        let kernels = Kernels::new(&program(text), None, &target, &Pipeline::standard());
        let kernels = kernels.expect("it becomes kernels");
        assert_eq!(kernels.plan.program().to_string(), done.plan().program().to_string());
        let before = kernels.unoptimised().expect("it was lowered before").to_string();
        let after = done.module().to_string();
        assert_ne!(before, after, "the passes do something");
        let mut files = vec![
            ("graph.lw", code.graph().to_string(), "output y"),
            ("schedule.lws", print_schedule(done.graph(), done.schedule()), "loopwright schedule 1"),
            ("tree.lwt", print_tree(done.graph(), done.tree()), "loopwright tree 1"),
            ("lowered.lwk", before, "kernel @program"),
            ("kernel.lwk", after, "kernel @program"),
            ("code", done.code(), "program"),
        ];
        let log = done.executable().log();
        if place.runs_a_compiler() {
            let log = log.expect("where a compiler ran, its log is kept");
            files.push(("log", log.to_owned(), "module.c"));
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, content, expected) in files {
            let path = directory.path().join(name);
            std::fs::write(&path, &content).expect("written");
            assert!(content.contains(expected), "{name} has `{expected}`:\n{content}");
        }
        // What was written can be read again.
        let kernel = std::fs::read_to_string(directory.path().join("kernel.lwk")).expect("read");
        let kernel = loopwright_kernel::parse(&loopwright_text::Source::new("kernel.lwk", kernel));
        assert_eq!(kernel.expect("a kernel"), *done.module());
    }

    fn line_39_kernels_log_what_they_store(place) {
        let options = RuntimeOptions { log_stores: true, ..place.options() };
        let device = place.runtime_with(options).device(place.backend).expect("available");
        let text = "
input x: f32[i=5]
state n: i32[j=3]
output y = x * x
update n = n + 10
";
        let code = compile(&device, "step", text);
        let routine = link(&device.stream().expect("a stream").context(), &code);
        write(routine.context(), "x", &[1., 2., 3., 4., 5.]);
        routine.context().write("n", &[7i32, 8, 9]).expect("written");
        let sites = code.program().expect("compiled ahead").log_sites();
        let stores = || {
            let (records, missed) = routine.stores().expect("it runs");
            assert_eq!(missed, 0);
            let mut stores: Vec<_> = records
                .iter()
                .map(|record| {
                    let buffer = sites[record.site].buffer.as_str();
                    (buffer, record.index, record.old.to_f64(), record.new.to_f64())
                })
                .filter(|(buffer, ..)| ["n", "y"].contains(buffer))
                .collect();
            stores.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
            stores
        };
        assert_eq!(stores(), [], "nothing ran");
        // The same on every backend: which element, what was there, what is there now.
        routine.schedule(&[]).expect("scheduled");
        assert_eq!(stores(), [
            ("n", 0, 7., 17.), ("n", 1, 8., 18.), ("n", 2, 9., 19.),
            ("y", 0, 0., 1.), ("y", 1, 0., 4.), ("y", 2, 0., 9.), ("y", 3, 0., 16.), ("y", 4, 0., 25.),
        ]);
        // The log is that of the last run.
        write(routine.context(), "x", &[0.; 5]);
        routine.schedule(&[]).expect("scheduled");
        assert_eq!(stores(), [
            ("n", 0, 17., 27.), ("n", 1, 18., 28.), ("n", 2, 19., 29.),
            ("y", 0, 1., 0.), ("y", 1, 4., 0.), ("y", 2, 9., 0.), ("y", 3, 16., 0.), ("y", 4, 25., 0.),
        ]);
    }

    fn line_39_what_there_is_no_room_for_is_counted(place) {
        let options = RuntimeOptions { log_stores: true, ..place.options() };
        let device = place.runtime_with(options).device(place.backend).expect("available");
        let code = compile(&device, "fill", "dim i = 70000\noutput y = index[i, i32]");
        let routine = link(&device.stream().expect("a stream").context(), &code);
        routine.schedule(&[]).expect("scheduled");
        let (records, missed) = routine.stores().expect("it runs");
        assert_eq!(records.len() as u64 + missed, 70_000);
        assert_eq!(records.len(), 1 << 16);
    }

    fn line_39_without_logging_there_is_no_log(place) {
        let device = place.device();
        let routine = link(&device.stream().expect("a stream").context(), &compile(&device, "one", "output y = 1"));
        routine.schedule(&[]).expect("scheduled");
        assert_eq!(routine.stores().expect("it runs"), (Vec::new(), 0));
    }

    fn everything_that_happens_can_be_recorded(place) {
        let options = RuntimeOptions { trace: true, ..place.options() };
        let runtime = place.runtime_with(options);
        let device = runtime.device(place.backend).expect("available");
        let [a, b] = [(); 2].map(|()| device.stream().expect("a stream"));
        let code = compile(&device, "count", "state n: i64[]\nupdate n = n + 1");
        let [from, to] = [&a, &b].map(|stream| link(&stream.context(), &code));
        from.context().zero("n").expect("zeroed");
        for _ in 0..3 {
            from.schedule(&[]).expect("scheduled");
        }
        to.context().copy_from("n", from.context()).expect("scheduled");
        assert_eq!(read(to.context(), "n"), [3.]);
        let trace = runtime.trace().expect("it records");
        let spans = trace.spans();
        let on = |track: &str, kind: SpanKind| -> Vec<String> {
            let found = spans.iter().filter(|span| &*span.track == track && span.kind == kind);
            found.map(|span| span.name.clone()).collect()
        };
        assert_eq!(on(a.name(), SpanKind::Launch), ["count"; 3]);
        assert_eq!(on(a.name(), SpanKind::Copy), ["n to zero"]);
        assert_eq!(on(b.name(), SpanKind::Launch), [""; 0]);
        assert_eq!(on(b.name(), SpanKind::Copy), ["n from device", "n to host"]);
        let enqueued = spans.iter().filter(|span| span.kind == SpanKind::Enqueue);
        assert_eq!(enqueued.count(), 6, "{spans:?}");
        // A stream does one thing at a time.
        for stream in [&a, &b] {
            let mut own: Vec<_> = spans.iter().filter(|span| *span.track == *stream.name()).collect();
            own.sort_by_key(|span| span.start);
            assert!(own.windows(2).all(|pair| pair[0].start + pair[0].duration <= pair[1].start), "{own:?}");
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("trace.json");
        trace.write(&path).expect("written");
        let written = std::fs::read_to_string(&path).expect("read");
        let written: serde_json::Value = serde_json::from_str(&written).expect("it is JSON");
        let events = written["traceEvents"].as_array().expect("a list");
        let tracks: Vec<&str> = events
            .iter()
            .filter(|event| event["ph"] == "M")
            .filter_map(|event| event["args"]["name"].as_str())
            .collect();
        assert!(tracks.contains(&a.name()) && tracks.contains(&b.name()), "{tracks:?}");
        assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), spans.len());
        assert!(message(trace.write(&directory.path().join("no/such/place"))).starts_with("cannot write "));
    }

    fn a_trace_has_a_lane_for_every_thread_of_a_parallel_loop(place) {
        const RUNS: usize = 3;
        let options = RuntimeOptions { trace: true, ..place.options() };
        let runtime = place.runtime_with(options);
        let device = runtime.device(place.backend).expect("available");
        let graph = program("input x: i64[i=1000]\noutput y = x * 2");
        let stored = graph.clone().with_stores();
        let schedule = Source::new("schedule", "loopwright schedule 1\ny: i parallel\n");
        let schedule = parse_schedule(&schedule, &stored).expect("a schedule");
        let options = CodeOptions { schedule: Some(schedule), ..CodeOptions::default() };
        let code = device.compile("double", &graph, &options).expect("compiled");
        let stream = device.stream().expect("a stream");
        let routine = link(&stream.context(), &code);
        routine.context().write("x", &vec![1i64; 1000]).expect("written");
        for _ in 0..RUNS {
            routine.schedule(&[]).expect("scheduled");
        }
        assert_eq!(read(routine.context(), "y"), [2.; 1000]);
        let spans = runtime.trace().expect("it records").spans();
        let parts: Vec<&Span> = spans.iter().filter(|span| span.kind == SpanKind::Iterations).collect();
        if !place.has_loops_on_the_pool() {
            assert_eq!(parts.len(), 0, "{parts:?}");
            return;
        }
        // Every iteration once in every run, in a lane of who ran it, within the launch.
        let mut times = vec![0; 1000];
        let caller = format!("{} loop-0", stream.name());
        for part in &parts {
            let range = part.name.strip_prefix("double ").and_then(|range| range.split_once(".."));
            let (start, end) = range.expect("the kernel's name and the iterations");
            let iterations = start.parse::<usize>().expect("a number")..end.parse().expect("a number");
            times[iterations].iter_mut().for_each(|times| *times += 1);
            assert!(*part.track == *caller || part.track.starts_with("loop-"), "{part:?}");
            let within = |launch: &&Span| {
                launch.start <= part.start && part.start + part.duration <= launch.start + launch.duration
            };
            let mut launches = spans.iter().filter(|span| span.kind == SpanKind::Launch);
            assert!(launches.any(|launch| within(&launch)), "{part:?} in {spans:?}");
        }
        assert_eq!(times, [RUNS; 1000]);
        assert!(parts.iter().any(|part| *part.track == *caller), "{parts:?}");
        // A lane has one thing at a time.
        for lane in parts.iter().map(|part| &part.track) {
            let mut own: Vec<_> = parts.iter().filter(|part| part.track == *lane).collect();
            own.sort_by_key(|part| part.start);
            assert!(own.windows(2).all(|pair| pair[0].start + pair[0].duration <= pair[1].start), "{own:?}");
        }
    }

    fn a_trace_has_compilations_with_their_stages_also_at_link_time(place) {
        let options = RuntimeOptions { trace: true, ..place.options() };
        let runtime = place.runtime_with(options);
        let device = runtime.device(place.backend).expect("available");
        let graph = program("size N\ninput x: i64[i=N]\noutput y = x * 3 + 1");
        let compiled = || -> Vec<Span> {
            let spans = runtime.trace().expect("it records").spans();
            spans.into_iter().filter(|span| span.kind == SpanKind::Compile).collect()
        };
        let options = CodeOptions { ahead: false, ..CodeOptions::default() };
        let code = device.compile("later", &graph, &options).expect("kept for later");
        assert_eq!(compiled().len(), 0, "nothing is compiled yet");
        let context = device.stream().expect("a stream").context();
        let options = LinkOptions { sizes: &[("N", 5)], ..LinkOptions::default() };
        context.link(&code, &options).expect("linked");
        let at_link = compiled();
        device.compile("ahead", &graph, &CodeOptions::default()).expect("compiled");
        let ahead = compiled().split_off(at_link.len());
        for (name, spans) in [("later", at_link), ("ahead", ahead)] {
            let (whole, stages) = spans.split_last().expect("it is on the record");
            assert_eq!(whole.name, name);
            let names: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
            let expected = ["rewrite", "schedule", "lower", "optimise", "generate code"];
            assert_eq!(names, expected.map(|stage| format!("{name}: {stage}")));
            for stage in stages {
                assert_eq!(stage.track, whole.track);
                assert!(whole.start <= stage.start, "{spans:?}");
                assert!(stage.start + stage.duration <= whole.start + whole.duration, "{spans:?}");
            }
        }
    }

    fn every_run_can_be_checked(place) {
        let witness = Arc::new(Witness::default());
        let options = RuntimeOptions {
            verify: Some(Arc::clone(&witness) as Arc<dyn Verify>),
            ..place.options()
        };
        let device = place.runtime_with(options).device(place.backend).expect("available");
        let text = "static at in 0 .. 4\ninput x: i64[i=4]\nstate n: i64[]\nupdate n = n + x[at]";
        let code = compile(&device, "pick", text);
        let stream = device.stream().expect("a stream");
        let routine = link(&stream.context(), &code);
        routine.context().write("x", &[1i64, 10, 100, 1000]).expect("written");
        routine.context().zero("n").expect("zeroed");
        for at in 0..4 {
            routine.schedule(&[("at", at)]).expect("scheduled");
        }
        assert_eq!(read(routine.context(), "n"), [1111.]);
        assert_eq!(witness.runs.load(Ordering::Relaxed), 4, "transfers are no runs");
        // It sees the memory before and after, and its word counts.
        routine.context().write("n", &[-1i64]).expect("written");
        let scheduled = routine.schedule(&[("at", 0)]);
        let error = match scheduled {
            Err(error) => error.to_string(),
            Ok(()) => message(stream.wait()),
        };
        assert_eq!(
            error,
            format!("device `{}`, stream `{}`: `pick` failed: `n` was -1 and is 0", device.name(), stream.name())
        );
        assert_eq!(message(routine.context().read("n")), error);
    }
}

/// Counts runs of a program, and does not like a negative `n`.
#[derive(Debug, Default)]
struct Witness {
    runs: AtomicUsize,
}

impl Verify for Witness {
    fn check(&self, run: &Run<'_>) -> Result<(), String> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let graph = run.program.graph();
        assert_eq!(run.before.len(), run.program.params().len());
        assert_eq!(run.after.len(), run.program.params().len());
        let number = |bytes: &[u8]| i64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        let place = run.program.params().iter().position(|param| {
            matches!(param, loopwright_lower::KernelParam::Parameter(node) if graph.node(*node).name == "n")
        });
        let place = place.expect("`n` is a parameter");
        let (before, after) = (number(run.before[place]), number(run.after[place]));
        match before < 0 {
            false => Ok(()),
            true => Err(format!("`n` was {before} and is {after}")),
        }
    }
}

#[cfg(unix)]
mod line_41_a_compiler_that_fails_shows_its_log {
    use crate::support::*;
    use loopwright_backend::Backend;
    use loopwright_cc::{CcBackend, Settings};
    use loopwright_runtime::{CodeOptions, LinkOptions, Runtime, Scheduler};
    use std::os::unix::fs::PermissionsExt;

    /// A compiler that tells its version, and refuses every source.
    const SCRIPT: &str = "#!/bin/sh
case \" $* \" in *\" -E \"*) echo fake version 1; exit 0;; esac
for file; do case \"$file\" in *.c) echo \"$file:1:4: error: I do not like it\";; esac; done
exit 1
";

    fn test(scheduler: Scheduler) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("fake-cc");
        std::fs::write(&path, SCRIPT).expect("the script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("own file");
        let settings = Settings {
            compiler: path.display().to_string(),
            ..Settings::default()
        };
        let place = Place {
            backend: "cc",
            scheduler,
        };
        let mut runtime = Runtime::empty(place.options());
        runtime.add_backend(Backend::kernel_backend(CcBackend::new(settings)));
        let device = runtime.device("cc").expect("it has a version");
        let graph = program("size N = 4\ninput x: f32[i=N]\noutput y = x + 41");
        // When it is compiled, ahead or at the link.
        let ahead = message(device.compile("next", &graph, &CodeOptions::default()));
        let options = CodeOptions {
            ahead: false,
            ..CodeOptions::default()
        };
        let late = device.compile("next", &graph, &options);
        let late = late.expect("nothing is compiled yet");
        let context = device.stream().expect("a stream").context();
        let late = message(context.link(&late, &LinkOptions::default()));
        for error in [ahead, late] {
            assert!(error.starts_with("`next`: "), "{error}");
            assert!(error.contains("fake-cc"), "{error}");
            assert!(error.contains("error: I do not like it"), "{error}");
            assert!(error.contains("line 1 of the source"), "{error}");
            tidy(&error);
        }
    }

    /// Removes the source that is kept for people to look at.
    fn tidy(error: &str) {
        let words = error.split([' ', ':', '\n']);
        let source = words
            .filter(|word| word.ends_with("module.c"))
            .find_map(|word| {
                std::path::Path::new(word)
                    .parent()
                    .filter(|path| path.is_dir())
            });
        let source = source.unwrap_or_else(|| panic!("the source is named and kept: {error}"));
        std::fs::remove_dir_all(source).expect("tidied up");
    }

    #[test]
    fn sync() {
        test(Scheduler::Sync);
    }

    #[test]
    fn threads() {
        test(Scheduler::Threads);
    }
}
