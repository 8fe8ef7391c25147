//! Schedule files, and what is left of them when the program changes.

use loopwright_graph::{Graph, parse};
use loopwright_looptree::{
    Plan, Replayed, ScheduleFile, Target, parse_schedule, parse_schedule_file, print_schedule_file,
    replay,
};
use loopwright_scheduler::{Order, schedule};
use loopwright_text::Source;

const PROGRAM: &str = "
size M = 100, N = 64, K = 30
input A: f32[i=M, k=K]
input B: f32[k, j=N]
input bias: f32[j]
sums = sum[k](A * B)
shifted = sums + bias
output C = max(shifted, 0)
";

const SCHEDULE: &str = "sums: i/8 parallel, j/16, k, i unroll, j vectorize
C: i/8 parallel, j/16, i, j vectorize
";

/// A vector machine with two threads.
const TARGET: Target = Target {
    vector_bytes: 32,
    vector_registers: 16,
    threads: 2,
    ..Target::SCALAR
};

fn graph(text: &str) -> Graph {
    let source = Source::new("p.lw", format!("loopwright program 1\n{text}"));
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    graph.with_stores()
}

fn source(lines: &str) -> Source {
    Source::new("p.sched", format!("loopwright schedule 1\n{lines}"))
}

fn replayed(program: &str, lines: &str) -> Replayed {
    let source = source(lines);
    replay(&source, &graph(program)).unwrap_or_else(|error| panic!("{}", error.render(&source)))
}

/// The schedule's lines, and what is said, each behind the number of its line.
fn outcome(program: &str, lines: &str) -> (String, Vec<String>) {
    let replayed = replayed(program, lines);
    let source = source(lines);
    let said = replayed.left_out.iter().map(|said| {
        let (line, _) = source.position(said.labels[0].span.start);
        format!("{line}: {}", said.message)
    });
    let text = replayed.plan.to_string();
    let (_, body) = text.split_once('\n').expect("a first line");
    (body.to_owned(), said.collect())
}

#[track_caller]
fn check(program: &str, lines: &str, expected: &str, expected_said: &[&str]) {
    let (body, said) = outcome(program, lines);
    assert_eq!(said, expected_said);
    assert_eq!(body, expected);
}

fn changed(from: &str, to: &str) -> String {
    assert!(PROGRAM.contains(from), "the program has `{from}`");
    PROGRAM.replace(from, to)
}

#[test]
fn what_fits_is_used_as_it_is() {
    check(PROGRAM, SCHEDULE, SCHEDULE, &[]);
    // Sizes that the steps do not divide, or that a step covers.
    check(&changed("M = 100", "M = 3"), SCHEDULE, SCHEDULE, &[]);
    check(&changed("N = 64", "N = 16"), SCHEDULE, SCHEDULE, &[]);
    let program = PROGRAM.replace("i=M", "i=4").replace("j=N", "j=5");
    check(&program, SCHEDULE, SCHEDULE, &[]);
}

#[test]
fn the_plan_is_that_of_the_parser() {
    let lines = format!("copy panel = B for %3\npanel: layout=[k, j], j, k\n{SCHEDULE}");
    let graph = graph(PROGRAM);
    let replayed = replayed(PROGRAM, &lines);
    let parsed = parse_schedule(&source(&lines), &graph).expect("it fits");
    assert!(replayed.left_out.is_empty(), "{:?}", replayed.left_out);
    assert_eq!(replayed.plan.schedule(), &parsed);
    assert_eq!(replayed.file.schedule, parsed);
}

#[test]
fn a_node_with_another_name() {
    check(
        &PROGRAM.replace("sums", "product"),
        SCHEDULE,
        "product: share=0, i, j, k\nC: i/8 parallel, j/16, i, j vectorize\n",
        &[
            "1: `product` has no line: plain loops",
            "2: left out: the program has no node `sums`",
        ],
    );
}

#[test]
fn a_node_that_is_gone() {
    check(
        &changed("shifted = sums + bias\n", "").replace("max(shifted", "max(sums"),
        "sums: i, j, k\nshifted: i, j\nC: i, j\n",
        "sums: i, j, k\nC: i, j\n",
        &["3: left out: the program has no node `shifted`"],
    );
}

#[test]
fn new_nodes() {
    // A reduction and a result get loops; what can be inline is.
    let program = changed(
        "output C",
        "scaled = shifted * 2\ntop = max[j](scaled)\noutput C",
    )
    .replace("max(shifted, 0)", "max(shifted - top, 0)")
        + "output D = exp(sums)\n";
    check(
        &program,
        SCHEDULE,
        "sums: i/8 parallel, j/16, k, i unroll, j vectorize
top: share=0, i, j
C: i/8 parallel, j/16, i, j vectorize
D: share=0, i, j
",
        &[
            "1: `top` has no line: plain loops",
            "1: `D` has no line: plain loops",
        ],
    );
}

#[test]
fn a_line_that_nobody_needs_any_more() {
    // It could be inline now; as it fits, it stays a step.
    let program = changed("A: f32[i=M, k=K]", "A: f32[i=M, j=N]")
        .replace("input B: f32[k, j=N]\n", "")
        .replace("sum[k](A * B)", "A * 3");
    check(
        &program,
        "sums: i, j\ngone: i\nC: i, j\n",
        "sums: i, j\nC: i, j\n",
        &["3: left out: the program has no node `gone`"],
    );
}

#[test]
fn a_dimension_that_is_gone() {
    let program = changed("B: f32[k, j=N]", "B: f32[k]").replace("bias: f32[j]", "bias: f32[i]");
    check(
        &program,
        SCHEDULE,
        "sums: share=0, i, k\nC: share=0, i\n",
        &[
            "2: left out: the program has no dimension `j`",
            "2: `sums` gets plain loops",
            "3: left out: the program has no dimension `j`",
            "3: `C` gets plain loops",
        ],
    );
}

#[test]
fn a_dimension_that_a_node_no_longer_has() {
    // `sums` lost j, `C` has it through the bias, and `D` has no line.
    let program = changed("B: f32[k, j=N]", "B: f32[k]").replace("bias: f32[j]", "bias: f32[j=N]")
        + "output D = exp(sums)\n";
    check(
        &program,
        SCHEDULE,
        "sums: share=0, i, k
C: i/8 parallel, j/16, i, j vectorize
D: share=0, i
",
        &[
            "1: `D` has no line: plain loops",
            "2: left out: `sums` does not have the dimension `j`, and no step that has it runs in the same loop",
            "2: `sums` gets plain loops",
        ],
    );
}

#[test]
fn a_new_dimension() {
    let program = changed("A: f32[i=M,", "A: f32[b=3, i=M,");
    check(
        &program,
        SCHEDULE,
        "sums: share=0, b, i, j, k\nC: share=0, b, i, j\n",
        &[
            "2: left out: `sums` needs a last loop over `b` with step 1",
            "2: `sums` gets plain loops",
            "3: left out: `C` needs a last loop over `b` with step 1",
            "3: `C` gets plain loops",
        ],
    );
}

#[test]
fn a_parallel_loop_that_carries_now() {
    let program = PROGRAM
        .replace("sum[k](A * B)", "sum[i](A * B)")
        .replace("sums + bias", "sums + bias + A");
    check(
        &program,
        "sums: i parallel, k, j\nC: i, k, j\n",
        "sums: share=0, k, j, i\nC: i, k, j\n",
        &[
            "2: left out: the loop of `sums` over `i` cannot be parallel: each iteration needs the one before",
            "2: `sums` gets plain loops",
        ],
    );
}

#[test]
fn a_layout_that_does_not_fit() {
    // What is a result now lies as the caller says.
    let program = changed("sums = ", "output sums = ");
    check(
        &program,
        "sums: layout=[j, i], i, j, k\nC: share=0, i, j\n",
        "sums: share=0, i, j, k\nC: share=0, i, j\n",
        &[
            "2: left out: the layout of `sums`: it is a result of the program, which lies as the caller says",
            "2: `sums` gets plain loops",
        ],
    );
}

#[test]
fn an_order_that_is_not_one_any_more() {
    let lines = "top: i, k\nsums: i, j, k\nC: i, j\n";
    let before = changed("max(shifted, 0)", "max(shifted, top)")
        .replace("sums =", "top = max[k](A)\nsums =");
    check(&before, lines, lines, &[]);
    let after = changed("max(shifted, 0)", "max(shifted, top)")
        .replace("shifted =", "top = max[j](sums)\nshifted =");
    let lines = lines.replace("top: i, k", "top: i, j");
    check(
        &after,
        &lines,
        "sums: i, j, k\ntop: i, j\nC: i, j\n",
        &["3: moved: `sums` must run before `top`"],
    );
}

#[test]
fn stages_of_what_changed() {
    let lines = "stage part = sums over k lanes 8
part: i, j, part_folded, part_kept vectorize
part_main: i, j, part_kept
part_rest: i, j, part_rest
sums: i, j
C: i, j
";
    check(PROGRAM, lines, lines, &[]);
    let constant = PROGRAM.replace("k=K", "k=30");
    check(&constant, lines, lines, &[]);
    // The count divides the dimension: there is no rest, and `sums` folds the first stage.
    check(
        &PROGRAM.replace("k=K", "k=32"),
        lines,
        "stage part = sums over k lanes 8
part: i, j, part_folded, part_kept vectorize
sums: share=0, i, j, part_kept
C: i, j
",
        &[
            "4: left out: the program has no node `part_main`",
            "5: left out: the program has no node `part_rest`",
            "6: left out: `sums` needs a last loop over `part_kept` with step 1",
            "6: `sums` gets plain loops",
        ],
    );
    // The dimension is shorter than the stage, or gone: what the stage made goes with it.
    let lost = |why: &str, dim: &str| {
        vec![
            format!("2: left out: {why}"),
            "3: left out: `part` comes from a line that is left out".to_owned(),
            "4: left out: `part_main` comes from a line that is left out".to_owned(),
            "5: left out: `part_rest` comes from a line that is left out".to_owned(),
            format!("6: left out: `sums` needs a last loop over `{dim}` with step 1"),
            "6: `sums` gets plain loops".to_owned(),
        ]
    };
    let (body, said) = outcome(&PROGRAM.replace("k=K", "k=4"), lines);
    let why = "`sums` cannot be computed in stages of 8: `k` has 4 elements";
    assert_eq!(said, lost(why, "k"));
    assert_eq!(body, "sums: share=0, i, j, k\nC: i, j\n");
    let renamed = PROGRAM
        .replace("k=K", "l=K")
        .replace("[k, j=N]", "[l, j=N]")
        .replace("sum[k]", "sum[l]");
    let (body, said) = outcome(&renamed, lines);
    assert_eq!(said, lost("the program has no dimension `k`", "l"));
    assert_eq!(body, "sums: share=0, i, j, l\nC: i, j\n");
}

#[test]
fn a_copy_of_what_is_gone() {
    let lines = "copy panel = B for %3\npanel: j, k\nsums: i, j, k\nC: i, j\n";
    check(PROGRAM, lines, lines, &[]);
    check(
        &PROGRAM.replace('B', "W"),
        lines,
        "sums: i, j, k\nC: i, j\n",
        &[
            "2: left out: the program has no node `B`",
            "3: left out: `panel` comes from a line that is left out",
        ],
    );
    // Its reader is another node now.
    check(
        &changed("sums =", "twice = A + A\nsums =").replace("A * B", "twice * B"),
        lines,
        "sums: i, j, k\nC: i, j\n",
        &[
            "2: left out: `twice` does not read `B` itself",
            "3: left out: `panel` comes from a line that is left out",
        ],
    );
    // A node of the program that has the copy's name is not the copy.
    check(
        &changed("sums =", "panel = exp(B)\nsums =").replace("A * B", "A * panel"),
        "copy panel = B for %3\npanel: j, k\nsums: i, j, k\nC: i, j\n",
        "sums: i, j, k\nC: i, j\n",
        &[
            "2: left out: the program has a `panel` already; give another name",
            "3: left out: `panel` comes from a line that is left out",
        ],
    );
}

#[test]
fn nodes_that_were_counted_with_a_lost_change() {
    // The joined sum of a stage in another dtype is a node without a name.
    let program = PROGRAM.replace("f32[", "f16[");
    let numbered = graph(&program).node_ids().count();
    let lines = format!(
        "copy gone = D for C\ncopy panel = B for %3\nsums: i, j, k\n%{numbered}: j, k\nC: i, j\n"
    );
    check(
        &program,
        &lines,
        "copy panel = B for %3\nsums: i, j, k\nC: i, j\n",
        &[
            "2: left out: the program has no node `D`",
            &format!("5: left out: `%{numbered}` was counted with a line that is left out"),
        ],
    );
}

#[test]
fn padding_that_is_gone() {
    let before = "size N = 50\ninput x: f32[i=N]\nleft = x[i - 1] else 0\noutput y = x + left\n";
    let lines = "pad wide = left\nwide: wide_i\ny: share=0, i\n";
    check(before, lines, lines, &[]);
    let after = "size N = 50\ninput x: f32[i=N]\nleft = x * 2\noutput y = x + left\n";
    check(
        after,
        lines,
        "y: share=0, i\n",
        &[
            "2: left out: `left` is not padded: it is not a view",
            "3: left out: `wide` comes from a line that is left out",
        ],
    );
}

#[test]
fn a_step_computed_anew_stays_in_its_readers_loop() {
    let program = "size N = 64
input x: f32[i=N, k=32]
input w: f32[k]
scale = exp(w)
y = sum[k](x * scale)
output z = max[i](y)
";
    let lines = "scale: i, k\ny: i, k\ngone: i\n";
    check(
        program,
        lines,
        "scale: i, k\ny: i, k\nz: share=0, i\n",
        &[
            "1: `z` has no line: plain loops",
            "4: left out: the program has no node `gone`",
        ],
    );
}

#[test]
fn states_are_read_before_they_are_written() {
    let program = "size N = 8\nstate x: f32[i=N]\nleft = x[i - 1] else 0\nnext = x + left\nupdate x = next\noutput y = x * 2\n";
    // The new value reads its neighbours' old ones and needs memory of its own; `y` reads old ones, too.
    let stored = graph(program);
    let store = stored.node_name(stored.updates()[0].value);
    let next = "`next` has no line: plain loops";
    let (body, said) = outcome(program, &format!("{store}: i\ny: i\n"));
    assert_eq!(body, format!("next: share=0, i\ny: i\n{store}: i\n"));
    assert_eq!(
        said,
        [
            format!("1: {next}"),
            format!("3: moved: `y` must run before `{store}`")
        ]
    );
    // Without any line.
    let (body, said) = outcome(program, "");
    assert_eq!(
        body,
        format!("y: share=0, i\nnext: share=0, i\n{store}: share=0, i\n")
    );
    assert_eq!(said.len(), 3, "{said:?}");
}

#[test]
fn states_that_are_computed_from_each_other() {
    let program = "size N = 8\nstate x: f32[i=N]\nstate y: f32[i=N]\nupdate x = y\nupdate y = x\n";
    let graph = graph(program);
    let replayed = replay(&source(""), &graph).expect("an empty schedule is one");
    // One of them is kept before it is overwritten.
    assert_eq!(replayed.plan.schedule().steps.len(), 3);
    assert_eq!(replayed.left_out.len(), 3);
}

#[test]
fn syntax_errors_are_errors() {
    let graph = graph(PROGRAM);
    for (lines, place, message) in [
        (
            "gone: i\nC: i,, j\n",
            (3, 6),
            "expected a dimension's name, found `,`",
        ),
        ("C: i fast\n", (2, 6), "`fast` is not an annotation"),
        ("C: gone/0\n", (2, 9), "a loop's step is at least 1"),
        (
            "C: i, j\ncopy p = B for %3\n",
            (3, 1),
            "changes to the program come before the steps",
        ),
        (
            "C: i, j\ngave \"much\"\n",
            (3, 1),
            "`device` and `gave` come right behind the first line",
        ),
        (
            "gave \"much\"\ngave \"more\"\n",
            (3, 1),
            "a second line `gave`",
        ),
        (
            "device cc\n",
            (2, 8),
            "expected the device in quotes, found `cc`",
        ),
        (
            "stage p = gone over k lots 8\n",
            (2, 23),
            "expected `lanes` or `blocks`, found `lots`",
        ),
    ] {
        let source = source(lines);
        let error = replay(&source, &graph).expect_err(lines);
        let at = source.position(error.labels[0].span.start);
        assert_eq!((at, error.message.as_str()), (place, message), "{lines}");
    }
}

#[test]
fn the_head_of_a_file() {
    let graph = graph(PROGRAM);
    let file = ScheduleFile {
        device: Some("cc on Intel(R) Xeon(R) Processor @ 2.80GHz".to_owned()),
        gave: Some("2.41 ms, \"fast\", 62 % of the roofline".to_owned()),
        schedule: parse_schedule(&source(SCHEDULE), &graph).expect("it fits"),
    };
    let text = print_schedule_file(&graph, &file);
    assert_eq!(
        text,
        format!(
            "loopwright schedule 1
device \"cc on Intel(R) Xeon(R) Processor @ 2.80GHz\"
gave \"2.41 ms, \\\"fast\\\", 62 % of the roofline\"
{SCHEDULE}"
        )
    );
    let read = Source::new("p.sched", text.as_str());
    assert_eq!(parse_schedule_file(&read, &graph).as_ref(), Ok(&file));
    assert_eq!(parse_schedule(&read, &graph).as_ref(), Ok(&file.schedule));
    let replayed = replay(&read, &graph).expect("it fits");
    assert_eq!((replayed.file, replayed.left_out), (file, Vec::new()));
    let turned = "# a comment\ngave \"much\" # and more\n\ndevice \"cc\"\nC: i, j\n";
    let read = parse_schedule_file(&source(turned), &graph).expect("the order is free");
    assert_eq!(read.device.as_deref(), Some("cc"));
    assert_eq!(read.gave.as_deref(), Some("much"));
}

#[test]
fn nodes_may_have_the_words_of_the_head_as_names() {
    let program = "input x: f32[i=8]\ndevice = exp(x)\noutput gave = device * device\n";
    let lines = "device: i\ngave: i\n";
    check(program, lines, lines, &[]);
    let with_head = format!("device \"cc\"\n{lines}");
    let replayed = replayed(program, &with_head);
    assert_eq!(replayed.file.device.as_deref(), Some("cc"));
    assert_eq!(replayed.plan.schedule().steps.len(), 2);
}

/// Programs of all kinds.
const PROGRAMS: [&str; 10] = [
    PROGRAM,
    "input x: f32[i=7]\noutput y = exp(x)\n",
    "size N\ninput x: f32[i=N]\noutput total = sum[i](x)\noutput mean = sum[i](x) / 4\n",
    "size N = 40\ninput x: f32[i=N, j=N]\nm = max[j](x)\ne = exp(x - m)\noutput y = e / sum[j](e)\n",
    "size N = 50\ninput x: f32[i=N]\nleft = x[i - 1] else 0\noutput y = left + x\n",
    "size N = 33\ninput x: f16[i=N, k=100]\noutput y = sum[k](x * x)\n",
    "size N = 8\nstate x: f32[i=N]\nleft = x[i - 1] else 0\nupdate x = x + left\noutput y = x * 2\n",
    "size N = 8\nstate x: f32[i=N]\nstate y: f32[i=N]\nupdate x = y\nupdate y = x\n",
    "input x: f32[i=9, j=4]\noutput sorted = sort[j](x)\noutput best = argmax[j](x)\n",
    "input a: f32[i=64, k=64]\ninput b: f32[k, j=64]\ninput c: f32[j, l=64]\noutput y = sum[j](sum[k](a * b) * c)\n",
];

#[test]
fn the_schedule_that_is_made_fits_and_any_part_of_it_gives_a_plan() {
    for text in PROGRAMS {
        let graph = graph(text);
        for (target, order) in [
            (Target::SCALAR, Order::Free),
            (TARGET, Order::Free),
            (TARGET, Order::Kept),
        ] {
            let made = schedule(graph.clone(), &target, order)
                .expect("a schedule")
                .plan;
            let printed = made.to_string();
            let replayed = replay(&Source::new("p.sched", printed.as_str()), &graph);
            let replayed = replayed.expect("it is what was printed");
            assert!(
                replayed.left_out.is_empty(),
                "{text}{:?}",
                replayed.left_out
            );
            assert_eq!(replayed.plan.schedule(), made.schedule(), "{text}");
            // Without any one line, and without all from one on.
            let lines: Vec<&str> = printed.lines().collect();
            for at in 1..lines.len() {
                let without = [&lines[..at], &lines[at + 1..]].concat().join("\n");
                fits(&graph, &without);
                fits(&graph, &lines[..at].join("\n"));
            }
            // In the opposite order: changes cannot stand behind steps.
            if made.schedule().edits.is_empty() {
                let turned: Vec<&str> = lines[1..].iter().rev().copied().collect();
                fits(&graph, &format!("{}\n{}", lines[0], turned.join("\n")));
            }
        }
        // The schedules of all others: each is replayed into a plan, whatever is left of it.
        for other in PROGRAMS {
            let other = schedule(self::graph(other), &TARGET, Order::Free).expect("a schedule");
            fits(&graph, &other.plan.to_string());
        }
    }
}

#[test]
fn texts_with_pieces_missing_or_twice_never_panic() {
    let text = format!(
        "loopwright schedule 1\ndevice \"cc\"\ncopy panel = B for %3\nstage part = sums over k lanes 8\npanel: layout=[k, j], j, k\n{SCHEDULE}"
    );
    let graph = graph(PROGRAM);
    let pieces: Vec<&str> = text.split_inclusive([' ', '\n', ',', '/']).collect();
    let mut plans = 0;
    for at in 0..pieces.len() {
        let without = [&pieces[..at], &pieces[at + 1..]].concat().concat();
        let twice = [&pieces[..=at], &pieces[at..]].concat().concat();
        for text in [without, twice] {
            plans += u32::from(replay(&Source::new("p.sched", text), &graph).is_ok());
        }
    }
    assert!(plans > 10, "only {plans} could be read");
}

/// What is left of a schedule is a plan, and replaying that leaves nothing out.
#[track_caller]
fn fits(graph: &Graph, text: &str) {
    let source = Source::new("p.sched", text);
    let first = replay(&source, graph).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    let plan = Plan::new(graph.clone(), first.plan.schedule().clone());
    let again = plan.expect("it is a plan already").to_string();
    let second = replay(&Source::new("again", again.as_str()), graph).expect("it was printed");
    assert!(second.left_out.is_empty(), "{text}\n{:?}", second.left_out);
    assert_eq!(second.plan.schedule(), first.plan.schedule(), "{text}");
}
