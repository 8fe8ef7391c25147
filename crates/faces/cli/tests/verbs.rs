//! What the verbs do and print, and the keys that scripts rely on.

mod sandbox;

use loopwright::ops::DType;
use sandbox::{Sandbox, has_compiler};
use serde_json::{Value, json};
use std::io::Read;
use std::process::Stdio;

const PRODUCT: &str = "\
size M = 2, N = 3
input a: f32[i=M, k=2]
input b: f32[k, j=N]
output c = sum[k](a * b)
";

fn product() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("product.lw", PRODUCT);
    sandbox
}

fn keys(value: &Value) -> Vec<&str> {
    let members = value.as_object().expect("an object");
    members.keys().map(String::as_str).collect()
}

#[test]
fn devices_are_listed_with_their_limits() {
    let document = Sandbox::new().json(&["devices", "--json"]);
    let devices = document["devices"].as_array().expect("a list");
    let names: Vec<&Value> = devices.iter().map(|device| &device["name"]).collect();
    assert_eq!(names, ["x86", "cc", "gccjit", "interp", "manycore", "null"]);
    for device in devices {
        for key in [
            "backend",
            "kind",
            "level",
            "available",
            "threads",
            "vector_bytes",
        ] {
            assert!(!device[key].is_null(), "{key} is missing: {device}");
        }
        assert!(device["capabilities"]["dtypes"].is_array(), "{device}");
    }
    assert_eq!(devices[3]["available"], true, "the interpreter always is");
    assert_eq!(devices[4]["kind"], "accelerator");
    assert_eq!(devices[4]["level"], "device");
    assert_eq!(devices[4]["host_memory"], false);
    assert_eq!(devices[5]["capabilities"]["computes"], false);
}

#[cfg(unix)]
#[test]
fn only_the_device_that_is_used_looks_for_its_compiler() {
    use std::os::unix::fs::PermissionsExt as _;

    let sandbox = product();
    let started = sandbox.path("started");
    sandbox.file(
        "compiler",
        &format!("#!/bin/sh\n: > '{}'\nexit 1\n", started.display()),
    );
    let compiler = sandbox.path("compiler");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&compiler, executable).expect("the sandbox's own file");
    let compiler = compiler.to_str().expect("a path of the sandbox").to_owned();
    let sandbox = sandbox.with_variable("LOOPWRIGHT_CC", &compiler);
    sandbox.succeed(&["run", "--device", "interp", "product.lw"]);
    assert!(
        !started.exists(),
        "a run on `interp` started the C compiler"
    );
    sandbox.succeed(&["devices"]);
    assert!(started.exists(), "`devices` asks every backend");
}

#[test]
fn a_missing_device_says_why() {
    let sandbox = Sandbox::new().with_variable("LOOPWRIGHT_CC", "/nonexistent");
    let document = sandbox.json(&["devices", "--json"]);
    let cc = &document["devices"][1];
    assert_eq!(cc["available"], false);
    assert_eq!(cc["reason"], "the C compiler `/nonexistent` was not found");
    let text = sandbox.succeed(&["devices"]);
    assert!(
        text.contains("cc        cpu          not available: the C compiler"),
        "{text}"
    );
}

#[test]
fn run_reads_and_writes_arrays() {
    let sandbox = product();
    sandbox.array("a.npy", DType::F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    sandbox.array(
        "b.npy",
        DType::F32,
        &[2, 3],
        &[1.0, 0.0, 1.0, 0.0, 1.0, 1.0],
    );
    let arguments = [
        "run",
        "product.lw",
        "--device",
        "interp",
        "--in",
        "a=a.npy",
        "--in",
        "b=b.npy",
        "--out",
        "c=c.npy",
    ];
    let text = sandbox.succeed(&arguments);
    assert_eq!(
        sandbox.values("c.npy", DType::F32),
        (vec![2, 3], vec![1.0, 2.0, 3.0, 3.0, 4.0, 7.0])
    );
    for line in [
        "product.lw",
        "  device     interp (as asked)",
        "  sizes      M=2 N=3",
        "  inputs     a  f32[2, 2]  from a.npy",
        "             b  f32[2, 3]  from b.npy",
        "c  f32[2, 3]  min 1  max 7  mean 3.3333",
        "  [[1.0 2.0 3.0]",
        "   [3.0 4.0 7.0]]",
        "  written to c.npy",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "no line `{line}` in:\n{text}"
        );
    }
    let left: Vec<_> = std::fs::read_dir(sandbox.path(""))
        .expect("our directory")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name.to_string_lossy().starts_with('.'))
        .collect();
    assert!(left.is_empty(), "temporary files are left: {left:?}");
}

#[test]
fn run_prints_the_documents_keys() {
    let document = product().json(&["run", "product.lw", "--device", "interp", "--json"]);
    assert_eq!(
        keys(&document),
        [
            "best_ms",
            "compile_ms",
            "device",
            "from_cache",
            "gbytes_per_second",
            "gflops",
            "inputs",
            "ms",
            "outputs",
            "program",
            "runs",
            "schedule",
            "sizes",
            "skipped",
            "why"
        ]
    );
    let output = &document["outputs"]["c"];
    assert_eq!(output["shape"], json!([2, 3]));
    assert_eq!(output["dtype"], "f32");
    assert_eq!(output["kind"], "output");
    assert!(output["min"].as_f64() <= output["max"].as_f64());
    assert!(document["ms"].is_f64());
    assert_eq!(document["device"], "interp");
    assert_eq!(document["sizes"], json!({ "M": 2, "N": 3 }));
    assert_eq!(
        document["inputs"]["a"],
        json!({ "dtype": "f32", "kind": "input", "random": true, "seed": 0, "shape": [2, 2] })
    );
}

#[test]
fn random_inputs_are_announced_and_repeatable() {
    let sandbox = product();
    let text = sandbox.succeed(&["run", "product.lw", "--device", "interp", "--seed", "7"]);
    assert!(text.contains("a  f32[2, 2]  random, seed 7"), "{text}");
    let output = |seed: &str| {
        let arguments = [
            "run",
            "product.lw",
            "--device",
            "interp",
            "--json",
            "--seed",
            seed,
        ];
        sandbox.json(&arguments)["outputs"].clone()
    };
    assert_eq!(output("7"), output("7"));
    assert_ne!(output("7"), output("8"));
}

#[test]
fn indices_stay_inside_their_table() {
    let sandbox = Sandbox::new();
    let lines = "input table: f32[v=3]\ninput ids: i64[t=200]\noutput x = table[ids] else 9\n";
    sandbox.program("lookup.lw", lines);
    let document = sandbox.json(&["run", "lookup.lw", "--device", "interp", "--json"]);
    let largest = document["outputs"]["x"]["max"].as_f64();
    assert!(largest < Some(1.0), "an index left the table: {document}");
}

#[test]
fn sizes_can_be_set() {
    let arguments = [
        "run",
        "product.lw",
        "--device",
        "interp",
        "--json",
        "--set",
        "M=5",
    ];
    let document = product().json(&arguments);
    assert_eq!(document["outputs"]["c"]["shape"], json!([5, 3]));
    let arguments = ["run", "product.lw", "--device", "interp", "--set", "M=0"];
    let text = product().succeed(&arguments);
    assert!(text.contains("c  f32[0, 3]  no values\n  []"), "{text}");
}

#[test]
fn states_carry_over_and_are_results() {
    let sandbox = Sandbox::new();
    sandbox.program(
        "count.lw",
        "state n: i32[i=2]\nupdate n = n + 1\noutput twice = n * 2\n",
    );
    sandbox.array("n.npy", DType::I32, &[2], &[10.0, 20.0]);
    let document = sandbox.json(&[
        "run",
        "count.lw",
        "--device",
        "interp",
        "--json",
        "--repeat",
        "3",
        "--in",
        "n=n.npy",
        "--out",
        "n=after.npy",
        "--out",
        "twice=twice.npy",
    ]);
    assert_eq!(sandbox.values("after.npy", DType::I32).1, [13.0, 23.0]);
    assert_eq!(sandbox.values("twice.npy", DType::I32).1, [24.0, 44.0]);
    assert_eq!(document["runs"], 3);
    assert_eq!(document["outputs"]["n"]["kind"], "state");
    assert_eq!(document["outputs"]["n"]["max"], 23);
    assert_eq!(document["outputs"]["twice"]["kind"], "output");
}

#[test]
fn a_scalar_is_shown_on_one_line() {
    let sandbox = Sandbox::new();
    sandbox.program(
        "p.lw",
        "const x: i32[i=3] = [1, 2, 4]\noutput total = sum[i](x)\n",
    );
    let text = sandbox.succeed(&["run", "p.lw", "--device", "interp"]);
    assert!(text.ends_with("\ntotal  i32  7\n"), "{text}");
}

#[test]
fn auto_says_what_it_skipped() {
    let sandbox = product()
        .with_variable("LOOPWRIGHT_X86_LEVEL", "none")
        .with_variable("LOOPWRIGHT_CC", "/nonexistent")
        .with_variable("LOOPWRIGHT_GCCJIT", "/nonexistent");
    let text = sandbox.succeed(&["run", "product.lw"]);
    let expected = "interp (auto: x86 is not available: LOOPWRIGHT_X86_LEVEL is `none`; \
         cc is not available: the C compiler `/nonexistent` was not found; gccjit is";
    assert!(text.contains(expected), "{text}");
    let document = sandbox.json(&["run", "product.lw", "--json"]);
    assert_eq!(document["device"], "interp");
    let skipped = document["skipped"].as_array().expect("a list");
    assert_eq!(skipped[0]["device"], "x86");
    assert_eq!(
        skipped[1],
        json!({ "device": "cc", "reason": "the C compiler `/nonexistent` was not found" })
    );
    assert_eq!(skipped[2]["device"], "gccjit");
}

#[test]
fn every_stage_can_be_dumped() {
    let sandbox = product();
    let stage = |stage: &str| {
        sandbox.succeed(&["dump", "product.lw", "--device", "interp", "--stage", stage])
    };
    assert!(stage("graph").contains("input a: f32[i, k]"));
    assert_eq!(
        stage("schedule").lines().next(),
        Some("loopwright schedule 1")
    );
    assert!(stage("tree").contains("for k"), "{}", stage("tree"));
    assert!(stage("kernel").contains("kernel @program("));
    assert!(
        stage("code").contains("kernel @program("),
        "the interpreter's code is the kernel"
    );
    let unoptimised = sandbox.succeed(&[
        "dump",
        "product.lw",
        "--device",
        "interp",
        "--stage",
        "kernel",
        "--unoptimised",
    ]);
    assert!(unoptimised.contains("kernel @program("));
    assert_ne!(unoptimised, stage("kernel"), "some pass does something");
}

#[test]
fn a_dumped_graph_is_a_program() {
    let sandbox = product();
    let graph = sandbox.succeed(&["dump", "product.lw", "--stage", "graph"]);
    sandbox.file("again.lw", &graph);
    assert_eq!(
        sandbox.succeed(&["dump", "again.lw", "--stage", "graph"]),
        graph
    );
}

#[test]
fn a_dumped_schedule_can_be_run() {
    let sandbox = product();
    let dump = [
        "dump",
        "product.lw",
        "--device",
        "interp",
        "--stage",
        "schedule",
    ];
    sandbox.file("s.lws", &sandbox.succeed(&dump));
    let run = ["run", "product.lw", "--device", "interp", "--json"];
    let scheduled = [&run[..], &["--schedule", "s.lws"]].concat();
    assert_eq!(
        sandbox.json(&scheduled)["outputs"],
        sandbox.json(&run)["outputs"]
    );
}

#[test]
fn a_tree_has_its_sizes() {
    let sandbox = Sandbox::new();
    sandbox.program("p.lw", "size M\ninput a: f32[i=M]\noutput b = a + 1.0\n");
    sandbox.file("s.lws", "loopwright schedule 1\nb: i/4, i\n");
    let tree = |more: &[&str]| {
        let arguments = ["dump", "p.lw", "--device", "interp", "--stage", "tree"];
        sandbox.succeed(&[&arguments[..], &["--schedule", "s.lws"], more].concat())
    };
    assert_eq!(
        tree(&[]),
        "\
loopwright tree 1
for i/4 {          # M in steps of 4
  for i {          # 4 times
    b              # f32[i] -> output `b`, M elements
  }
}
"
    );
    assert_eq!(
        tree(&["--set", "M=10"]),
        "\
loopwright tree 1
for i/4 {          # 3 times, the last shorter
  for i {          # 4 times
    b              # f32[i] -> output `b`, 40 B
  }
}
"
    );
}

#[test]
fn a_plan_counts_all_memory() {
    let sandbox = product();
    let arguments = [
        "dump",
        "product.lw",
        "--device",
        "interp",
        "--stage",
        "plan",
    ];
    let plan = sandbox.succeed(&[&arguments[..], &["--set", "M=1000"]].concat());
    let has = |words: &[&str]| {
        plan.lines().any(|line| {
            let found: Vec<&str> = line.split_whitespace().collect();
            found.starts_with(words)
        })
    };
    // Arrays start at multiples of 64.
    for words in [
        &["pool", "0:", "20064", "bytes", "(19.6", "KiB)"][..],
        &["0", "7.8", "KiB", "input", "a", "f32[1000,", "2]"],
        &["8000", "24", "B", "input", "b", "f32[2,", "3]"],
        &["8064", "11.7", "KiB", "output", "c", "f32[1000,", "3]"],
        &["c", "on", "device", "an", "output"],
        &["arrays:", "20024", "bytes"],
        &["peak:", "20064", "bytes"],
    ] {
        assert!(has(words), "no line {words:?} in:\n{plan}");
    }
}

#[test]
fn doctor_says_what_is_missing() {
    let sandbox = Sandbox::new()
        .with_variable("LOOPWRIGHT_X86_LEVEL", "none")
        .with_variable("LOOPWRIGHT_CC", "/nonexistent")
        .with_variable("LOOPWRIGHT_GCCJIT", "/nonexistent");
    let document = sandbox.json(&["doctor", "--json"]);
    let checks = document["checks"].as_array().expect("a list");
    let compiler = checks.iter().find(|check| check["name"] == "C compiler");
    let compiler = compiler.expect("the compiler is looked for");
    assert_eq!(compiler["ok"], false);
    assert_eq!(
        compiler["found"],
        "the C compiler `/nonexistent` was not found"
    );
    assert!(compiler["help"].is_string() && compiler["gives"].is_string());
    assert_eq!(document["devices"], json!(["interp"]));
    let text = sandbox.succeed(&["doctor"]);
    assert!(text.contains("missing  C compiler"), "{text}");
    assert!(text.contains("missing  libgccjit"), "{text}");
    assert!(text.contains("made at the first need"), "{text}");
}

#[test]
fn the_cache_keeps_and_forgets() {
    let sandbox = product();
    assert_eq!(
        sandbox.json(&["cache", "list", "--json"])["entries"],
        json!([])
    );
    if !has_compiler() {
        return;
    }
    let run = || sandbox.json(&["run", "product.lw", "--device", "cc", "--json"]);
    let first = run();
    assert_eq!(first["from_cache"], false);
    let second = run();
    assert_eq!(second["from_cache"], true);
    assert_eq!(first["outputs"], second["outputs"]);
    let listed = sandbox.json(&["cache", "list", "--json"]);
    let entry = &listed["entries"][0];
    assert_eq!(entry["kernels"], json!(["program"]));
    assert_eq!(entry["backend"], "cc");
    for key in ["key", "bytes", "created"] {
        assert!(!entry[key].is_null(), "{key} is missing: {entry}");
    }
    assert_eq!(sandbox.json(&["cache", "clear", "--json"])["removed"], 1);
    assert_eq!(
        sandbox.json(&["cache", "list", "--json"])["entries"],
        json!([])
    );
    assert_eq!(run()["from_cache"], false);
}

#[cfg(target_os = "linux")]
#[test]
fn the_cache_is_one_for_all_backends() {
    if !has_compiler() {
        return;
    }
    let sandbox = product();
    for device in ["cc", "manycore"] {
        let run = || sandbox.json(&["run", "product.lw", "--device", device, "--json"]);
        assert_eq!(run()["from_cache"], false, "{device}");
        assert_eq!(run()["from_cache"], true, "{device}");
    }
    let listed = sandbox.json(&["cache", "list", "--json"]);
    let entries = listed["entries"].as_array().expect("a list");
    let mut found: Vec<_> = entries
        .iter()
        .map(|entry| format!("{} {}", entry["backend"], entry["kernels"]))
        .collect();
    found.sort();
    let program = r#""manycore" ["program"]"#;
    let firmware = r#""manycore" []"#;
    assert_eq!(found, [r#""cc" ["program"]"#, program, firmware]);
    let text = sandbox.succeed(&["cache", "list"]);
    let first = |line: &str| line.split(' ').next().map(str::to_owned);
    let mut shown: Vec<_> = text.lines().filter_map(first).collect();
    shown.sort();
    assert_eq!(
        shown,
        ["3", "backend", "cc", "manycore", "manycore"],
        "{text}"
    );
    assert_eq!(sandbox.json(&["cache", "clear", "--json"])["removed"], 3);
    assert!(
        sandbox
            .succeed(&["cache", "list"])
            .starts_with("nothing is kept in")
    );
}

#[cfg(unix)]
#[test]
fn the_cache_is_private() {
    use std::os::unix::fs::PermissionsExt;
    if !has_compiler() {
        return;
    }
    let sandbox = product();
    sandbox.succeed(&["run", "product.lw", "--device", "cc"]);
    let data = std::fs::metadata(sandbox.path("cache")).expect("the cache was made");
    assert_eq!(data.permissions().mode() & 0o777, 0o700);
}

#[test]
fn both_devices_agree() {
    if !has_compiler() {
        return;
    }
    let sandbox = product();
    let outputs = |device: &str| {
        let arguments = [
            "run",
            "product.lw",
            "--device",
            device,
            "--strict",
            "--json",
        ];
        sandbox.json(&arguments)["outputs"].clone()
    };
    assert_eq!(outputs("cc"), outputs("interp"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let sandbox = product();
    let mut child = sandbox
        .command(&[
            "dump",
            "product.lw",
            "--device",
            "interp",
            "--stage",
            "kernel",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    drop(child.stdout.take());
    let mut errors = String::new();
    let mut stderr = child.stderr.take().expect("stderr is piped");
    stderr.read_to_string(&mut errors).expect("errors are text");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(errors, "");
}

#[test]
fn nothing_is_painted_into_a_pipe() {
    let sandbox = product();
    let text = sandbox.succeed(&["run", "product.lw", "--device", "interp"]);
    let errors = sandbox.fail(1, &["run", "none.lw"]);
    assert!(!text.contains('\x1b') && !errors.contains('\x1b'));
}
