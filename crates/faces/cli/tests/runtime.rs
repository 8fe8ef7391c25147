//! What `run`, `dump` and `devices` show of the runtime: plans, traces, verified runs, logs of stores.

mod sandbox;

use loopwright::ops::DType;
use sandbox::{Sandbox, has_compiler};
use serde_json::{Value, json};

/// Two results, one of which has the name of a state.
const COUNT: &str = "\
state n: i32[i=2]
output n = n * 2
output sum = sum[i](n)
update n = n + 1
";

/// Every device and scheduler that there is here.
fn ways() -> Vec<[&'static str; 4]> {
    let devices: &[&str] = match has_compiler() {
        true => &["interp", "cc"],
        false => &["interp"],
    };
    let mut ways = Vec::new();
    for device in devices {
        for scheduler in ["scheduler=sync", "scheduler=threads"] {
            ways.push(["--device", device, "-o", scheduler]);
        }
    }
    ways
}

fn count() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("count.lw", COUNT);
    sandbox.array("n.npy", DType::I32, &[2], &[10.0, 20.0]);
    sandbox
}

fn run<'a>(way: &[&'a str], further: &[&'a str]) -> Vec<&'a str> {
    let run = ["run", "count.lw", "--in", "n=n.npy"];
    [&run[..], way, further].concat()
}

fn trace(sandbox: &Sandbox, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(sandbox.path(name)).expect("the trace was written");
    let trace: Value = serde_json::from_str(&text).expect("a trace is JSON");
    trace["traceEvents"].as_array().expect("a list").clone()
}

#[test]
fn every_device_and_scheduler_gives_the_same() {
    for way in ways() {
        let sandbox = count();
        let further = ["--repeat", "3", "--json", "--out", "n=double.npy"];
        let document = sandbox.json(&run(&way, &further));
        let outputs = &document["outputs"];
        assert_eq!(outputs["n"]["kind"], "output", "{way:?}");
        assert_eq!(outputs["n"]["max"], 44, "{way:?}");
        assert_eq!(outputs["n (state)"]["max"], 23, "{way:?}");
        assert_eq!(outputs["sum"]["max"], 34, "{way:?}");
        // The name is the output's.
        assert_eq!(sandbox.values("double.npy", DType::I32).1, [24.0, 44.0]);
    }
}

#[test]
fn random_numbers_of_programs_have_the_same_bits_on_every_device() {
    let mut devices = vec!["interp"];
    if cfg!(target_arch = "x86_64") {
        devices.push("x86");
    }
    if has_compiler() {
        devices.push("cc");
    }
    let names = ["single", "double", "half", "summed"];
    let sandbox = Sandbox::new();
    sandbox.program(
        "random.lw",
        "output single = normal[i=4001](7)\noutput double = normal[f64](8, i)\n\
         output half = normal[f16](9, i)\noutput summed = normal[f64](10, i) + 1\n",
    );
    let mut first: Option<Vec<Vec<u8>>> = None;
    for device in devices {
        let outs = names.map(|name| format!("{name}={name}.npy"));
        let mut arguments = vec!["run", "random.lw", "--device", device];
        for out in &outs {
            arguments.extend(["--out", out.as_str()]);
        }
        sandbox.succeed(&arguments);
        let files = names.map(|name| std::fs::read(sandbox.path(&format!("{name}.npy"))));
        let files: Vec<Vec<u8>> = files
            .into_iter()
            .map(|file| file.expect("written"))
            .collect();
        let expected = first.get_or_insert_with(|| files.clone());
        for ((name, found), expected) in names.iter().zip(&files).zip(expected) {
            assert!(found == expected, "{name} on {device}");
        }
    }
}

#[test]
fn an_output_with_the_name_of_a_state_can_be_scheduled() {
    let sandbox = count();
    let way = ["--device", "interp"];
    let dump = [&["dump", "count.lw", "--stage", "schedule"], &way[..]].concat();
    sandbox.file("s.sched", &sandbox.succeed(&dump));
    let outputs = |further: &[&str]| {
        let further = [&["--json"], further].concat();
        sandbox.json(&run(&way, &further))["outputs"].clone()
    };
    assert_eq!(outputs(&["--schedule", "s.sched"]), outputs(&[]));
}

#[test]
fn statics_are_bound_when_the_run_is_scheduled() {
    let sandbox = Sandbox::new();
    sandbox.program(
        "row.lw",
        "size N = 3\nstatic at in 0 .. N\nconst x: i32[r=3, i=2] = [1, 2, 3, 4, 5, 6]\n\
         output row = x[at, i] else 0\n",
    );
    for way in ways() {
        let arguments = |at: &'static str| [&["run", "row.lw", "--set", at], &way[..]].concat();
        let text = sandbox.succeed(&arguments("at=1"));
        assert!(text.contains("  sizes      N=3 at=1\n"), "{text}");
        assert!(text.ends_with("\n  [3 4]\n"), "{text}");
        let told = sandbox.fail(1, &arguments("at=3"));
        assert!(
            told.contains("`at` is 3, outside its range 0 .. 3"),
            "{told}"
        );
    }
}

#[test]
fn what_another_stream_would_give_is_an_input() {
    let sandbox = Sandbox::new();
    sandbox.program(
        "merge.lw",
        "input x: i32[i=2]\ninput x.merge: i32[i]\noutput y = x + x.merge\n",
    );
    sandbox.array("x.npy", DType::I32, &[2], &[1.0, 2.0]);
    sandbox.array("m.npy", DType::I32, &[2], &[30.0, 40.0]);
    for way in ways() {
        let inputs = [
            "run",
            "merge.lw",
            "--in",
            "x=x.npy",
            "--in",
            "x.merge=m.npy",
        ];
        let text = sandbox.succeed(&[&inputs[..], &way].concat());
        assert!(text.ends_with("\n  [31 42]\n"), "{text}");
    }
}

#[test]
fn a_trace_has_a_track_for_every_stream() {
    for way in ways() {
        let sandbox = count();
        let text = sandbox.succeed(&run(&way, &["--trace", "t.json", "--repeat", "2"]));
        let told = "\ntrace written to t.json; open it at ui.perfetto.dev\n";
        assert!(text.ends_with(told), "{text}");
        let events = trace(&sandbox, "t.json");
        let track = |name: &str| {
            let mut names = events.iter().filter(|event| event["name"] == "thread_name");
            let found = names.find(|event| event["args"]["name"] == name);
            found.unwrap_or_else(|| panic!("no track {name}: {events:?}"))["tid"].clone()
        };
        let stream = format!("{}:0.0", way[1]);
        let spans = |track: &Value, kind: &str| -> Vec<String> {
            let spans = events.iter().filter(|event| event["ph"] == "X");
            spans
                .filter(|event| event["tid"] == *track && event["cat"] == kind)
                .map(|event| event["name"].as_str().expect("a name").to_owned())
                .collect()
        };
        let (host, stream) = (track("host (main)"), track(&stream));
        assert_eq!(spans(&stream, "launch"), ["count", "count"], "{way:?}");
        let copies = spans(&stream, "copy");
        let expected = ["n from host", "n.out to host", "sum to host", "n to host"];
        assert_eq!(copies, expected, "{way:?}");
        assert_eq!(spans(&host, "enqueue").len(), 2 + expected.len(), "{way:?}");
        assert!(!spans(&host, "wait").is_empty(), "{way:?}");
        let tracks = events.iter().filter(|event| event["ph"] == "M").count();
        assert_eq!(tracks, 2, "one stream, one thread that schedules: {way:?}");
    }
}

#[test]
fn a_trace_is_a_setting_and_part_of_the_document() {
    let sandbox = count().with_variable("LOOPWRIGHT_TRACE", "t.json");
    let way = ["--device", "interp"];
    let document = sandbox.json(&run(&way, &["--json"]));
    assert_eq!(document["trace"], "t.json");
    assert!(!trace(&sandbox, "t.json").is_empty());
    let told = sandbox.fail(2, &run(&way, &["--trace", "a", "-o", "trace=b"]));
    assert!(
        told.starts_with("error: option `trace` is given twice"),
        "{told}"
    );
    assert_eq!(
        sandbox.fail(1, &run(&way, &["--trace", "nodir/t.json"])),
        "error: cannot write nodir/t.json: there is no directory nodir\n"
    );
}

#[test]
fn a_run_that_fails_leaves_its_trace() {
    let sandbox = Sandbox::new();
    sandbox.program(
        "p.lw",
        "input a: f32[i=2]\ninput b: f32[i]\noutput c = a + b\n",
    );
    sandbox.array("b.npy", DType::F32, &[3], &[0.0; 3]);
    let arguments = ["run", "p.lw", "--device", "interp", "--trace", "t.json"];
    let told = sandbox.fail(1, &[&arguments[..], &["--in", "b=b.npy"]].concat());
    assert_eq!(
        told,
        "note: trace written to t.json; open it at ui.perfetto.dev\n\
         error: input `b` needs f32[2], and b.npy holds f32[3]\n"
    );
    let copied = |event: &Value| event["name"] == "a from host on interp:0.0";
    assert!(trace(&sandbox, "t.json").iter().any(copied));
}

#[test]
fn a_right_run_is_verified_and_says_so() {
    let verified =
        |agrees: &str| format!("\n  verified   {agrees} with the interpreter and the reference\n");
    for way in ways() {
        let sandbox = count();
        let text = sandbox.succeed(&run(&way, &["--verify"]));
        assert!(text.contains(&verified("the run agrees")), "{text}");
        let text = sandbox.succeed(&run(&way, &["--verify", "--repeat", "2"]));
        assert!(text.contains(&verified("all 2 runs agree")), "{text}");
        let plain = sandbox.succeed(&run(&way, &[]));
        assert!(!plain.contains("verified"), "{plain}");
        let sandbox = sandbox.with_variable("LOOPWRIGHT_VERIFY", "1");
        let document = sandbox.json(&run(&way, &["--json"]));
        assert_eq!(document["verified"], true);
        assert!(!sandbox.path("loopwright-failures").exists());
    }
}

/// Roundings that are free in these programs raise no alarm, whatever the inputs.
#[test]
fn every_example_is_verified() {
    let device = if has_compiler() { "cc" } else { "interp" };
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/programs");
    let sandbox = Sandbox::new();
    let mut verified = 0;
    for entry in std::fs::read_dir(examples).expect("the examples are there") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|extension| extension != "lw") {
            continue;
        }
        let path = path.to_str().expect("a name in UTF-8");
        for seed in ["1", "2"] {
            let arguments = [
                "run", path, "--device", device, "--seed", seed, "--verify", "--json",
            ];
            assert_eq!(sandbox.json(&arguments)["verified"], true, "{path}");
            verified += 1;
        }
    }
    assert!(verified >= 36, "{verified} runs");
}

#[test]
fn a_wrong_run_is_told_with_a_program_that_shows_it() {
    if !has_compiler() {
        return;
    }
    // A compiler that gets square roots wrong.
    let wrong = "-D__builtin_sqrtf(x)=(x)";
    let sandbox = Sandbox::new().with_variable("LOOPWRIGHT_CFLAGS", wrong);
    sandbox.program("root.lw", "input a: f32[i=4]\noutput b = sqrt(a) + 1.0\n");
    sandbox.array("a.npy", DType::F32, &[4], &[4.0, 9.0, 16.0, 25.0]);
    let arguments = ["run", "root.lw", "--device", "cc", "--in", "a=a.npy"];
    sandbox.succeed(&arguments);
    let output = sandbox
        .command(&[&arguments[..], &["--verify"]].concat())
        .output()
        .expect("the binary was built");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).expect("errors are text");
    for words in [
        "error: device `cc:0`, stream `cc:0.0`: `root` failed: ",
        "`b`[0] of f32[4]: expected 3",
        "it is wrong first after backend `cc`",
        "a small program: loopwright-failures/verify-",
        "run it with: LOOPWRIGHT_VERIFY=1 loopwright run ",
    ] {
        assert!(told.contains(words), "no `{words}` in:\n{told}");
    }
    // What it says to run shows it again.
    let (_, command) = told.split_once("loopwright run ").expect("a command");
    let again: Vec<&str> = command.split_whitespace().collect();
    let again = [&["run"], &again[..], &["--verify"]].concat();
    let output = sandbox.command(&again).output();
    assert_eq!(output.expect("it was built").status.code(), Some(1));
}

#[test]
fn stores_are_logged_with_old_and_new_values() {
    for way in ways() {
        let sandbox = count();
        let document = sandbox.json(&run(&way, &["--log-stores", "--json", "--repeat", "2"]));
        let records = document["stores"]["records"].as_array().expect("a list");
        assert_eq!(document["stores"]["missed"], 0);
        let mut stores: Vec<(String, i64, String, String)> = records
            .iter()
            .map(|record| {
                assert_eq!(record["kernel"], "count");
                let text = |key: &str| record[key].as_str().expect("a text").to_owned();
                let index = record["index"].as_i64().expect("an index");
                (text("array"), index, text("old"), text("new"))
            })
            .filter(|(array, ..)| array.starts_with('n'))
            .collect();
        stores.sort();
        let store = |array: &str, index, old: &str, new: &str| {
            (array.to_owned(), index, old.to_owned(), new.to_owned())
        };
        assert_eq!(
            stores,
            [
                store("n", 0, "20", "22"),
                store("n", 1, "40", "42"),
                store("n (state)", 0, "11", "12"),
                store("n (state)", 1, "21", "22"),
            ],
            "{way:?}"
        );
        let text = sandbox.succeed(&run(&way, &["--log-stores"]));
        let has = |words: &[&str]| {
            let mut lines = text.lines();
            lines.any(|line| line.split_whitespace().eq(words.iter().copied()))
        };
        for words in [
            &["kernel", "array", "index", "old", "new"][..],
            &["count", "n", "[1]", "0", "40"],
            &["count", "n", "(state)", "[1]", "20", "21"],
        ] {
            assert!(has(words), "no line {words:?} in:\n{text}");
        }
    }
}

#[test]
fn only_the_first_stores_are_shown() {
    let sandbox = Sandbox::new().with_variable("LOOPWRIGHT_LOG_STORES", "1");
    sandbox.program("p.lw", "dim i = 60\noutput x = i * 2\n");
    let run = ["run", "p.lw", "--device", "interp"];
    let text = sandbox.succeed(&run);
    assert!(text.contains("\n60 stores in the last run\n"), "{text}");
    assert!(
        text.ends_with("  p       x      [49]     0   98\n  ... and 10 more; `--json` lists all\n"),
        "{text}"
    );
    let document = sandbox.json(&[&run[..], &["--json"]].concat());
    let records = document["stores"]["records"].as_array();
    assert_eq!(records.map(Vec::len), Some(60));
}

#[test]
fn a_kernel_that_logs_can_be_dumped() {
    let sandbox = count();
    for stage in ["kernel", "code"] {
        let dump = ["dump", "count.lw", "--device", "interp", "--stage", stage];
        assert!(!sandbox.succeed(&dump).contains("%log"));
        let logging = sandbox.succeed(&[&dump[..], &["-o", "log_stores=true"]].concat());
        assert!(logging.contains("%log: "), "{stage}:\n{logging}");
    }
}

#[test]
fn several_devices_have_numbers() {
    let sandbox = count();
    let document = sandbox.json(&["devices", "-o", "devices=2", "-o", "streams=3", "--json"]);
    let devices = document["devices"].as_array().expect("a list");
    let names: Vec<&Value> = devices.iter().map(|device| &device["name"]).collect();
    // The accelerator has as many as it has; backends in host memory show what is asked for.
    for name in ["cc:0", "cc:1", "interp:0", "interp:1", "manycore"] {
        assert!(
            names.contains(&&json!(name)),
            "{name} is not among {names:?}"
        );
    }
    let second = devices.iter().find(|device| device["name"] == "interp:1");
    let second = second.expect("it is listed");
    assert_eq!(second["backend"], "interp");
    assert_eq!(second["ordinal"], 1);
    assert_eq!(second["streams"], 3);
    assert_eq!(second["scheduler"], "threads");
    let way = ["--device", "interp:1", "-o", "devices=2"];
    let text = sandbox.succeed(&run(&way, &[]));
    assert!(
        text.contains("\n  device     interp:1 (as asked)\n"),
        "{text}"
    );
    assert_eq!(
        sandbox.fail(2, &run(&["--device", "interp:1"], &[])),
        "error: there is no device `interp:1`\n \
         help: `interp` has one device, `interp:0`; `-o devices=N` shows more\n"
    );
}

#[cfg(unix)]
#[test]
fn a_broken_device_is_told_apart_from_a_missing_one() {
    let with_compiler = |command: &str| {
        let sandbox = Sandbox::new().with_variable("LOOPWRIGHT_X86_LEVEL", "none");
        sandbox.with_variable("LOOPWRIGHT_CC", command)
    };
    let broken = with_compiler("false");
    let text = broken.succeed(&["devices"]);
    assert!(
        text.contains("cc        cpu          broken: the C compiler"),
        "{text}"
    );
    assert!(!text.contains("what `auto` takes"), "{text}");
    let document = broken.json(&["devices", "--json"]);
    assert_eq!(document["devices"][1]["broken"], true);
    let missing = with_compiler("/nonexistent");
    let document = missing.json(&["devices", "--json"]);
    assert_eq!(document["devices"][1]["broken"], false);
    let devices = document["devices"].as_array().expect("a list");
    let is_auto = |device: &Value| device["auto"] == json!(true);
    // That of GCC's library, where it is installed.
    assert!(devices.iter().position(is_auto) >= Some(2), "{document}");
    let level = Sandbox::new().with_variable("LOOPWRIGHT_X86_LEVEL", "avx9");
    let document = level.json(&["devices", "--json"]);
    assert_eq!(document["devices"][0]["broken"], true);
    let reason = document["devices"][0]["reason"].as_str().expect("a reason");
    assert_eq!(reason, "LOOPWRIGHT_X86_LEVEL: there is no level `avx9`");
}

/// What a plan says of a program whose steps need their scratch memory one after the other.
fn plan(further: &[&str]) -> String {
    let sandbox = Sandbox::new();
    sandbox.program(
        "steps.lw",
        "size N = 1000\ninput x: f32[i=N]\nconst w: f32[k=3] = [0.25, 0.5, 0.25]\na = sqrt(abs(x))\n\
         b = a * a[N - 1 - i]\nc = b + b[N - 1 - i]\noutput y = sum[k](w * (c[i + k] else 0))\n",
    );
    sandbox.file(
        "steps.sched",
        "loopwright schedule 1\na: i\nb: i\nc: i\ny: i, k\n",
    );
    let dump = ["dump", "steps.lw", "--device", "interp", "--stage", "plan"];
    sandbox.succeed(&[&dump[..], &["--schedule", "steps.sched"], further].concat())
}

#[test]
fn a_plan_shows_what_lies_where_and_why() {
    assert_eq!(
        plan(&[]),
        "\
pool 0: 16096 bytes (15.7 KiB)
  offset     size  use      name      array
       0  3.9 KiB  input    x         f32[1000]
    4032  3.9 KiB  output   y         f32[1000]
    8064  3.9 KiB  scratch  a_memory  f32[1000]  in statements 5 to 6, shares bytes with c_memory
    8064  3.9 KiB  scratch  c_memory  f32[1000]  in statements 7 to 8, shares bytes with a_memory
   12096  3.9 KiB  scratch  b_memory  f32[1000]  in statements 6 to 7

pool 1: 12 bytes
  offset  size  use       name  array
       0  12 B  constant  w     f32[3]

stack of each thread: at most 8 bytes
  size  name       array
   4 B  y_running  f32[1]
   4 B  chosen     f32[1]

where values live:
  name  mode       because
  y     on device  an output
  x     on device  an input
  w     constant   a constant
  a     local      a step of the schedule
  b     local      a step of the schedule
  c     local      a step of the schedule

arrays: 8000 bytes (7.8 KiB)
scratch: 12000 bytes (11.7 KiB), in 8000 bytes (7.8 KiB) that it shares
constants: 12 bytes, once on a device
peak: 16108 bytes (15.7 KiB) in 2 pools, and at most 8 bytes on the stack of each thread
"
    );
}

#[test]
fn pools_end_at_the_cap() {
    let text = plan(&["-o", "pool_cap=9000"]);
    let pools = text.lines().filter(|line| line.starts_with("pool "));
    assert_eq!(pools.count(), 3, "{text}");
    let peak = "peak: 16108 bytes";
    assert!(
        !text.contains(peak) && text.contains("in 3 pools"),
        "{text}"
    );
}

#[test]
fn an_array_over_the_cap_is_shown_and_told() {
    let text = plan(&["-o", "pool_cap=64"]);
    let told = "it cannot run like this: `x` needs 4000 bytes, and a pool holds at most 64; raise `pool_cap`\n";
    assert!(text.ends_with(told), "{text}");
    assert!(text.contains("pool 0: 16096 bytes"), "{text}");
}
