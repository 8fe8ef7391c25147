//! Compiling once, linking often, and what is kept between runs.

use super::bench::{Bench, Stop, ensure, given, link, refused, write};
use crate::features::parsed;
use loopwright_backend::{CompileOptions, Level};
use loopwright_compile::{Compiler, Kernels};
use loopwright_kernel::passes::Pipeline;
use loopwright_looptree::{Mutation, Plan, parse_schedule};
use loopwright_runtime::{BatchProgram, CodeOptions, LinkOptions, RuntimeOptions};
use loopwright_text::Source;

/// A routine that is linked in another one's context finds its arrays there by name.
pub(super) fn children_share_arrays(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let root = device.stream()?.context();
    let make = bench.compile(&device, "make", "input x: i64[i=9]\noutput h = x * x\n")?;
    let take = bench.compile(&device, "take", "input h: i64[i=9]\noutput y = h + 1\n")?;
    let made = link(&root, &make)?;
    let before = device.memory().used;
    let taken = link(made.context(), &take)?;
    ensure(device.memory().used == before + 72, || {
        "only `y` is new, and it has 72 bytes".to_owned()
    })?;
    ensure(root.nodes().is_empty(), || {
        "linking changed the context it was done in".to_owned()
    })?;
    let places = [made.context(), taken.context()].map(|context| context.node("h"));
    ensure(
        places[0].is_some()
            && places[0].as_ref().map(|h| h.loc) == places[1].as_ref().map(|h| h.loc),
        || format!("`h` is in two places: {places:?}"),
    )?;
    let x: Vec<i64> = (0..9).collect();
    write(made.context(), "x", &x)?;
    made.schedule(&[])?;
    taken.schedule(&[])?;
    given(taken.context(), "x", &x)?;
    let y: Vec<i64> = x.iter().map(|x| x * x + 1).collect();
    bench.computed(taken.context(), "y", &y)
}

/// Linking the same code again in the context that it gave takes nothing, and both routines are one.
pub(super) fn linked_twice_is_linked_once(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let code = bench.compile(&device, "count", "state n: i64[i=3]\nupdate n = n + 1\n")?;
    let first = link(&device.stream()?.context(), &code)?;
    let used = device.memory().used;
    let again = link(first.context(), &code)?;
    ensure(device.memory().used == used, || {
        "the second link takes memory".to_owned()
    })?;
    write(first.context(), "n", &[0, 10, 20])?;
    for routine in [&first, &again, &first] {
        routine.schedule(&[])?;
    }
    bench.computed(again.context(), "n", &[3, 13, 23])?;
    // Another context of the same code has memory of its own.
    let other = link(&device.stream()?.context(), &code)?;
    write(other.context(), "n", &[7; 3])?;
    other.run(&[])?;
    bench.computed(first.context(), "n", &[3, 13, 23])?;
    bench.computed(other.context(), "n", &[8; 3])
}

/// A state has the value that the run before left there.
pub(super) fn states_persist(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let text =
        "state a: i64[i=4]\nstate b: i64[i]\noutput before = a\nupdate a = b\nupdate b = a + b\n";
    let routine = bench.routine(&device, "fibonacci", text)?;
    write(routine.context(), "a", &[0; 4])?;
    write(routine.context(), "b", &[1; 4])?;
    for _ in 0..10 {
        routine.schedule(&[])?;
    }
    bench.computed(routine.context(), "before", &[34; 4])?;
    bench.computed(routine.context(), "a", &[55; 4])?;
    bench.computed(routine.context(), "b", &[89; 4])
}

/// A static symbol has the value from when the routine was scheduled.
pub(super) fn statics_are_captured(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let text = "static at in 0 .. 4\ninput x: i64[row=4, i=3]\nstate n: i64[i]\nupdate n = n * 10 + x[at, i]\n";
    let routine = bench.routine(&device, "row", text)?;
    let x: Vec<i64> = (0..4).flat_map(|row| [row, row + 1, row + 2]).collect();
    write(routine.context(), "x", &x)?;
    routine.context().zero("n")?;
    for at in [3, 0, 2, 1] {
        routine.schedule(&[("at", at)])?;
    }
    bench.computed(routine.context(), "n", &[3021, 4132, 5243])?;
    for at in [-1, 4] {
        let message = refused(
            routine.schedule(&[("at", at)]),
            "a value outside of its range",
        )?;
        ensure(message.contains("`at`"), || message.clone())?;
    }
    refused(routine.schedule(&[]), "a routine without its static symbol").map(drop)
}

/// One compiled program runs at any sizes.
pub(super) fn several_sizes_from_one_compile(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let text = "size M, N\ninput x: i64[i=M, j=N]\noutput y = sum[j](x) + i\n";
    let code = bench.compile(&device, "rows", text)?;
    let compiled = device.compiler().compile_count();
    for (rows, columns) in [(1, 1), (3, 5), (0, 4), (6, 0), (17, 33)] {
        let sizes = [("M", rows), ("N", columns)];
        let options = LinkOptions {
            sizes: &sizes,
            ..LinkOptions::default()
        };
        let routine = device.stream()?.context().link(&code, &options)?;
        let x: Vec<i64> = (0..rows * columns).collect();
        write(routine.context(), "x", &x)?;
        routine.run(&[])?;
        let sum = |row: i64| (row * columns..(row + 1) * columns).sum::<i64>() + row;
        let expected: Vec<i64> = (0..rows).map(sum).collect();
        bench.computed(routine.context(), "y", &expected)?;
    }
    ensure(device.compiler().compile_count() == compiled, || {
        "other sizes were compiled anew".to_owned()
    })
}

/// Programs of a batch are compiled in one go, each with its own kernel.
pub(super) fn batches_compile_together(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let texts = [
        ("first", "size N = 4\ninput x: i64[i=N]\noutput h = x + 1\n"),
        (
            "second",
            "size N = 4\ninput h: i64[i=N]\noutput y = h * h\n",
        ),
        (
            "third",
            "size N = 4\ninput y: i64[i=N]\nstate n: i64[i]\nupdate n = n + y\n",
        ),
    ];
    let graphs = texts.map(|(name, text)| parsed(name, text));
    for graph in &graphs {
        bench.note(graph)?;
    }
    let programs = texts.iter().zip(&graphs);
    let programs: Vec<BatchProgram<'_>> = programs
        .map(|((name, _), graph)| BatchProgram {
            name,
            graph,
            options: CodeOptions::default(),
        })
        .collect();
    let before = device.compiler().compile_count();
    let batch = device.compile_batch(&programs, |_| true)?;
    let runs = device.compiler().compile_count() - before;
    ensure(runs == 1, || {
        format!("a batch of three is compiled in {runs} runs")
    })?;
    let context = device.stream()?.context();
    let (context, routines) = context.link_batch(&batch, &LinkOptions::default())?;
    write(&context, "x", &[0, 1, 2, 3])?;
    context.zero("n")?;
    for _ in 0..2 {
        for routine in routines.iter().flatten() {
            routine.schedule(&[])?;
        }
    }
    bench.computed(&context, "h", &[1, 2, 3, 4])?;
    bench.computed(&context, "n", &[2, 8, 18, 32])
}

/// A subtree of the loops can be handed to a backend by its name: here to the same one again.
pub(super) fn parts_are_delegated(bench: &Bench<'_>) -> Result<(), Stop> {
    if bench.backend.level() != Level::Kernel {
        let why = "only a backend that takes kernels and works in host memory hands parts on";
        return Err(Stop::NotApplicable(why.to_owned()));
    }
    let text = "size N\ninput x: i64[i=N, j=5]\nh = x * x\ns = sum[j](h)\noutput y = h - s\n";
    let graph = parsed("parts", text);
    let steps = "h: i, j\ns: i, j\ny: i, j\n";
    let source = Source::new("parts", format!("loopwright schedule 1\n{steps}"));
    let program = graph.clone().with_stores();
    let schedule = parse_schedule(&source, &program)
        .unwrap_or_else(|error| panic!("it is a schedule: {}", error.render(&source)));
    let s = program.find("s").expect("it has an `s`");
    let delegate = Mutation::Delegate {
        node: s,
        backend: "another".into(),
    };
    let plan = Plan::new(program, schedule).expect("it is a plan");
    let plan = plan
        .mutate(&delegate)
        .expect("any step can be delegated")
        .plan;
    let schedule = plan.schedule().clone();
    let target = bench.backend.target();
    let kernels = Kernels::new(&graph, Some(&schedule), &target, &Pipeline::standard())?;
    for launch in &kernels.launches {
        bench.note_module(&launch.module)?;
    }
    ensure(kernels.launches.len() == 3, || {
        let launches = kernels.launches.len();
        format!("there are {launches} launches, and should be 3")
    })?;
    let another = bench.backend.clone();
    let compiler = Compiler::new(bench.backend.clone(), CompileOptions::default())
        .with_delegates(move |name| (name == "another").then(|| another.clone()));
    let program = compiler.compile(&graph, Some(&schedule))?;
    for rows in [0, 1, 6] {
        let x: Vec<i64> = (0..rows * 5).collect();
        let mut y = vec![0i64; x.len()];
        let mut bound = program.bind(&[("N", rows)])?;
        bound.input_slice("x", &x)?;
        bound.output_slice("y", &mut y)?;
        bound.run()?;
        drop(bound);
        let expected: Vec<i64> = x
            .chunks(5)
            .flat_map(|row| {
                let sum: i64 = row.iter().map(|x| x * x).sum();
                row.iter().map(move |x| x * x - sum)
            })
            .collect();
        ensure(!bench.computes || y == expected, || {
            format!("`y` is {y:?}, and should be {expected:?}")
        })?;
    }
    Ok(())
}

/// A schedule that is set for a program applies to later identical programs, and to no others.
pub(super) fn schedules_are_set(bench: &Bench<'_>) -> Result<(), Stop> {
    let text = "size N\ninput x: i64[i=N, j=5]\ns = sum[j](x * x)\noutput y = s + 1\n";
    let (graph, other) = (
        parsed("set", text),
        parsed("other", &text.replace("+ 1", "- 1")),
    );
    let source = Source::new(
        "set",
        "loopwright schedule 1\ns: j, i/2, i\ny: share=0, i/3, i\n",
    );
    let program = graph.clone().with_stores();
    let schedule = parse_schedule(&source, &program)
        .unwrap_or_else(|error| panic!("it is a schedule: {}", error.render(&source)));
    let target = bench.backend.target();
    let kernels = Kernels::new(&graph, Some(&schedule), &target, &Pipeline::standard())?;
    bench.note_module(&kernels.module())?;
    let compiler = Compiler::new(bench.backend.clone(), CompileOptions::default());
    compiler.set_schedule(&graph, Some(schedule.clone()))?;
    let compiled = compiler.compile(&parsed("again", text), None)?;
    ensure(*compiled.schedule() == schedule, || {
        "a program that is the same again gets another schedule".to_owned()
    })?;
    let others = compiler.compile(&other, None)?;
    ensure(*others.schedule() != schedule, || {
        "another program gets the schedule, too".to_owned()
    })?;
    for rows in [0, 1, 7] {
        let x: Vec<i64> = (0..rows * 5).collect();
        let mut y = vec![0i64; rows as usize];
        let mut bound = compiled.bind(&[("N", rows)])?;
        bound.input_slice("x", &x)?;
        bound.output_slice("y", &mut y)?;
        bound.run()?;
        drop(bound);
        let sum = |row: &[i64]| row.iter().map(|x| x * x).sum::<i64>() + 1;
        let expected: Vec<i64> = x.chunks(5).map(sum).collect();
        ensure(!bench.computes || y == expected, || {
            format!("`y` is {y:?}, and should be {expected:?}")
        })?;
    }
    Ok(())
}

/// A kernel can log what it stores: which element, what was there and what is there now.
pub(super) fn stores_are_logged(bench: &Bench<'_>) -> Result<(), Stop> {
    if bench.backend.level() == Level::Loop {
        let why = "stores are logged by kernels, and it takes loop trees";
        return Err(Stop::NotApplicable(why.to_owned()));
    }
    let options = RuntimeOptions {
        log_stores: true,
        ..bench.options()
    };
    let device = bench.runtime(options).device(bench.backend.name())?;
    let text = "state n: i64[i=3]\nupdate n = n + 10\n";
    let graph = parsed("step", text);
    let target = bench.backend.target();
    let kernels = Kernels::new(&graph, None, &target, &Pipeline::standard())?;
    bench.note_module(&kernels.logging()?.module())?;
    let code = device.compile("step", &graph, &CodeOptions::default())?;
    let routine = link(&device.stream()?.context(), &code)?;
    write(routine.context(), "n", &[7, 8, 9])?;
    routine.run(&[])?;
    let (records, missed) = routine.stores()?;
    let mut stores: Vec<(i64, Option<i64>, Option<i64>)> = records
        .iter()
        .map(|record| (record.index, record.old.as_i64(), record.new.as_i64()))
        .collect();
    stores.sort_unstable();
    let expected = [(0, 7, 17), (1, 8, 18), (2, 9, 19)];
    let expected = expected.map(|(at, old, new)| (at, Some(old), Some(new)));
    ensure(
        !bench.computes || (stores == expected && missed == 0),
        || format!("the log has {stores:?}, and {missed} more; it should have {expected:?}"),
    )
}
