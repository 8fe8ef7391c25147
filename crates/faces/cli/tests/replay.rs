//! Schedule files from the command line, on the program they were made for and on another.

mod sandbox;

use sandbox::Sandbox;

const PROGRAM: &str = "size N = 12
input a: f32[i=N, k=N]
input b: f32[k, j=N]
product = sum[k](a * b)
output y = exp(product)
";

const SCHEDULE: &str = "product: i/4, j, k, i
y: i/4, i, j
";

fn product() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("p.lw", PROGRAM);
    sandbox.program("total.lw", &PROGRAM.replace("product", "total"));
    sandbox.file("p.sched", &format!("loopwright schedule 1\n{SCHEDULE}"));
    sandbox
}

/// What a run that succeeds prints, and what it says besides.
fn said(sandbox: &Sandbox, arguments: &[&str]) -> (String, String) {
    let output = sandbox.command(arguments).output();
    let output = output.expect("the binary was built");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{arguments:?}:\n{errors}");
    (out, errors)
}

/// The arguments for a program with a schedule.
fn with<'a>(verb: &'a str, program: &'a str, schedule: &'a str) -> Vec<&'a str> {
    vec![verb, program, "--device", "interp", "--schedule", schedule]
}

#[test]
fn a_file_that_fits_is_used_as_it_is() {
    let sandbox = product();
    let mut dump = with("dump", "p.lw", "p.sched");
    dump.extend(["--stage", "schedule"]);
    let expected = format!("loopwright schedule 1\n{SCHEDULE}");
    assert_eq!(sandbox.succeed(&dump), expected);
}

#[test]
fn a_schedule_line_that_does_not_fit_is_an_error_at_its_line() {
    let sandbox = product();
    let refused = "\
error: the program has no node `product`
  --> p.sched:2:1
  |
2 | product: i/4, j, k, i
  | ^^^^^^^
  = help: nodes without a name are written `%3`; `dump --stage graph` shows them; `--replay` leaves out what does not fit; `loopwright dump total.lw --stage schedule` prints a schedule that does
";
    for verb in ["run", "dump"] {
        let mut arguments = with(verb, "total.lw", "p.sched");
        if verb == "dump" {
            arguments.extend(["--stage", "schedule"]);
        }
        assert_eq!(sandbox.fail(1, &arguments), refused);
    }
    // Each of several lines, whatever is wrong with it, and none of a file that fits.
    let wrong = [
        (
            "product: i/4, i/8, j, k, i\ny: i, j\n",
            "must have falling steps",
            "p.sched:2:1",
        ),
        (
            "product: i, j\ny: i, j\n",
            "needs a last loop over `k`",
            "p.sched:2:1",
        ),
        (
            "product: i, j, k parallel\ny: i, j\n",
            "cannot be parallel",
            "p.sched:2:1",
        ),
        (
            "product: i, j, k\nproduct: i, j, k\ny: i, j\n",
            "stands twice",
            "p.sched:3:1",
        ),
        ("y: i, j\n", "`product` has no line", "p.sched:1:1"),
    ];
    for (lines, message, place) in wrong {
        sandbox.file("p.sched", &format!("loopwright schedule 1\n{lines}"));
        let said = sandbox.fail(1, &with("run", "p.lw", "p.sched"));
        assert!(said.contains(message) && said.contains(place), "{said}");
    }
}

#[test]
fn what_no_longer_fits_is_said_and_the_rest_is_used_when_asked() {
    let sandbox = product();
    let notes = "\
note: p.sched:1: `total` has no line: plain loops
note: p.sched:2: left out: the program has no node `product`
";
    let mut dump = with("dump", "total.lw", "p.sched");
    dump.extend(["--replay", "--stage", "schedule"]);
    let (schedule, errors) = said(&sandbox, &dump);
    assert_eq!(errors, notes);
    assert_eq!(
        schedule,
        "loopwright schedule 1\ntotal: share=0, i, j, k\ny: i/4, i, j\n"
    );
    let mut run = with("run", "total.lw", "p.sched");
    run.extend(["--replay", "--verify"]);
    let (_, errors) = said(&sandbox, &run);
    assert_eq!(errors, notes);
    // The document on stdout stays one.
    run.push("--json");
    let (document, errors) = said(&sandbox, &run);
    assert_eq!(errors, notes);
    let document: serde_json::Value =
        serde_json::from_str(&document).unwrap_or_else(|error| panic!("{error}:\n{document}"));
    assert_eq!(document["verified"], true);
    // What is printed fits.
    sandbox.file("new.sched", &schedule);
    sandbox.succeed(&with("run", "total.lw", "new.sched"));
}

#[test]
fn the_device_that_a_file_was_made_for() {
    let sandbox = product();
    let errors = |device: &str| {
        let text = format!("loopwright schedule 1\ndevice \"{device}\"\ngave \"1 ms\"\n{SCHEDULE}");
        sandbox.file("p.sched", &text);
        said(&sandbox, &with("run", "p.lw", "p.sched")).1
    };
    assert_eq!(errors("interp"), "");
    assert_eq!(errors("interp, 1 thread"), "");
    let other = "note: the schedule was made for cc on Some Processor, and this is interp";
    let said = errors("cc on Some Processor");
    assert!(said.starts_with(other), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let other = "note: the schedule was made for interpreter, and this is interp";
    let said = errors("interpreter");
    assert!(said.starts_with(other), "{said}");
}

#[test]
fn a_syntax_error_is_one() {
    let sandbox = product();
    sandbox.file("p.sched", "loopwright schedule 1\nproduct: i j\n");
    assert_eq!(
        sandbox.fail(1, &with("run", "p.lw", "p.sched")),
        "\
error: `j` is not an annotation
  --> p.sched:2:12
  |
2 | product: i j
  |            ^
  = help: a loop is serial, parallel, vectorize, unroll, block, thread, warp, tile or prefetch
"
    );
}

#[test]
fn the_schedule_that_tune_kept_is_used_and_said() {
    let sandbox = product();
    let work = loopwright_tune::Work {
        program: format!("loopwright program 1\n{PROGRAM}"),
        sizes: Vec::new(),
        device: "interp".to_owned(),
        strict: false,
        fallback: None,
        seed: 0,
    };
    let key = loopwright_tune::ScheduleKey::of(&work).expect("the program is one");
    let store = loopwright_tune::ScheduleStore::open(&sandbox.path("cache"));
    let text = format!("loopwright schedule 1\n{SCHEDULE}");
    store
        .and_then(|store| store.put(&key, "a test", &text))
        .expect("the directory is ours");
    let dump = |sizes: &[&str]| {
        let mut arguments = vec!["dump", "p.lw", "--device", "interp", "--stage", "schedule"];
        arguments.extend(sizes);
        said(&sandbox, &arguments)
    };
    let (schedule, errors) = dump(&[]);
    assert_eq!(schedule, text);
    assert!(
        errors.starts_with("note: the schedule that `tune` found is used"),
        "{errors}"
    );
    // It is for those sizes only.
    let (schedule, errors) = dump(&["--set", "N=13"]);
    assert_ne!(schedule, text);
    assert_eq!(errors, "");
}
