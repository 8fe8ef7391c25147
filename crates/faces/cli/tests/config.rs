//! Settings: the command line over the environment over one file over the defaults.

mod sandbox;

use sandbox::{Sandbox, has_compiler};
use serde_json::{Value, json};

const HELP: &str = " help: `loopwright help config` describes every option\n";

fn setting(document: &Value, name: &str) -> (Value, Value) {
    let entry = &document["settings"][name];
    (entry["value"].clone(), entry["from"].clone())
}

#[test]
fn config_says_where_every_value_comes_from() {
    let sandbox = Sandbox::new().with_variable("LOOPWRIGHT_QUEUE", "7");
    sandbox.file("loopwright.toml", "# Three.\nthreads = 3\nqueue = 9\n");
    let document = sandbox.json(&["config", "-o", "devices=2", "--json"]);
    assert_eq!(document["file"], "loopwright.toml");
    let expected = [
        ("devices", json!(2), json!({ "source": "command line" })),
        (
            "queue",
            json!(7),
            json!({ "source": "environment", "variable": "LOOPWRIGHT_QUEUE" }),
        ),
        (
            "threads",
            json!(3),
            json!({ "source": "file", "path": "loopwright.toml", "line": 2 }),
        ),
        (
            "pool_cap",
            json!(1u64 << 40),
            json!({ "source": "default" }),
        ),
        ("device", json!("auto"), json!({ "source": "default" })),
        ("strict", json!(false), json!({ "source": "default" })),
        ("trace", Value::Null, json!({ "source": "default" })),
    ];
    for (name, value, from) in expected {
        assert_eq!(setting(&document, name), (value, from), "{name}");
    }
    let text = sandbox.succeed(&["config", "-o", "devices=2"]);
    let has = |words: &[&str]| {
        let mut lines = text.lines();
        lines.any(|line| line.split_whitespace().eq(words.iter().copied()))
    };
    for words in [
        &["option", "value", "from"][..],
        &["threads", "3", "loopwright.toml:2"],
        &["devices", "2", "command", "line"],
        &["queue", "7", "LOOPWRIGHT_QUEUE"],
        &["pool_cap", "1TiB", "default"],
        &["streams", "(the", "device", "decides)", "default"],
        &["file:", "loopwright.toml"],
    ] {
        assert!(has(words), "no line {words:?} in:\n{text}");
    }
}

#[test]
fn one_file_is_read_the_first_that_is_found() {
    let sandbox = Sandbox::new();
    let read = |sandbox: &Sandbox, arguments: &[&str]| {
        let mut all = vec!["config", "--json"];
        all.extend(arguments);
        let document = sandbox.json(&all);
        let (threads, _) = setting(&document, "threads");
        let (queue, _) = setting(&document, "queue");
        (document["file"].clone(), threads, queue)
    };
    assert_eq!(read(&sandbox, &[]).0, Value::Null);
    let folder = sandbox.path("personal/loopwright");
    std::fs::create_dir_all(&folder).expect("the directory is ours");
    sandbox.file(
        "personal/loopwright/config.toml",
        "threads = 1\nqueue = 5\n",
    );
    let personal = folder.join("config.toml").display().to_string();
    assert_eq!(read(&sandbox, &[]), (json!(personal), json!(1), json!(5)));
    // Files are not combined: the personal one says nothing any more.
    sandbox.file("loopwright.toml", "threads = 2\n");
    let here = (json!("loopwright.toml"), json!(2), json!(1024));
    assert_eq!(read(&sandbox, &[]), here);
    sandbox.file("named.toml", "threads = 3\n");
    let sandbox = sandbox.with_variable("LOOPWRIGHT_CONFIG", "named.toml");
    let named = (json!("named.toml"), json!(3), json!(1024));
    assert_eq!(read(&sandbox, &[]), named);
    sandbox.file("asked.toml", "threads = 4\n");
    let asked = (json!("asked.toml"), json!(4), json!(1024));
    assert_eq!(read(&sandbox, &["--config", "asked.toml"]), asked);
    assert_eq!(
        sandbox.fail(1, &["config", "--config", "none.toml"]),
        format!("error: cannot read the configuration none.toml: there is no such file\n{HELP}")
    );
}

#[test]
fn a_wrong_command_line_is_told_apart_from_a_wrong_environment_or_file() {
    assert_eq!(
        Sandbox::new().fail(2, &["devices", "-o", "thread=4"]),
        format!("error: there is no option `thread`; did you mean `threads`?\n{HELP}")
    );
    assert_eq!(
        Sandbox::new().fail(2, &["devices", "--option", "threads=0"]),
        format!("error: option `threads` is `0`; it takes an integer from 1 to 4096\n{HELP}")
    );
    let sandbox = Sandbox::new().with_variable("LOOPWRIGHT_THREADS", "many");
    assert_eq!(
        sandbox.fail(1, &["devices"]),
        format!("error: LOOPWRIGHT_THREADS is `many`; it takes an integer from 1 to 4096\n{HELP}")
    );
    let sandbox = Sandbox::new().with_variable("LOOPWRIGHT_THREDS", "4");
    assert_eq!(
        sandbox.fail(1, &["devices"]),
        format!(
            "error: the environment sets LOOPWRIGHT_THREDS, which nothing reads; did you mean \
             LOOPWRIGHT_THREADS?\n{HELP}"
        )
    );
    let sandbox = Sandbox::new();
    sandbox.file("loopwright.toml", "strict = true\nthread = 4\n");
    assert_eq!(
        sandbox.fail(1, &["devices"]),
        format!(
            "error: loopwright.toml:2: there is no option `thread`; did you mean `threads`?\n{HELP}"
        )
    );
    let told = Sandbox::new().fail(2, &["devices", "-o", "threads"]);
    assert!(
        told.contains("expected NAME=VALUE, for example threads=4"),
        "{told}"
    );
}

#[cfg(unix)]
#[test]
fn a_file_that_everybody_may_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    sandbox.file("loopwright.toml", "cache_dir = \"code\"\n");
    let mode = PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(sandbox.path("loopwright.toml"), mode).expect("the file is ours");
    let told = sandbox.fail(1, &["devices"]);
    assert!(
        told.contains("everybody may write to it (mode 666)"),
        "{told}"
    );
}

#[test]
fn options_stand_before_and_after_the_verb() {
    let sandbox = Sandbox::new();
    let document = sandbox.json(&["-o", "threads=2", "config", "-o", "devices=3", "--json"]);
    assert_eq!(setting(&document, "threads").0, 2);
    assert_eq!(setting(&document, "devices").0, 3);
    assert_eq!(
        sandbox.fail(2, &["-o", "threads=2", "config", "-o", "threads=3"]),
        format!("error: option `threads` is given twice on the command line\n{HELP}")
    );
    assert_eq!(
        sandbox.fail(2, &["--config", "a", "config", "--config", "b"]),
        "error: `--config` is given twice\n"
    );
}

fn program(sandbox: Sandbox) -> Sandbox {
    sandbox.program("p.lw", "input a: f32[i=4]\noutput b = a * 2.0\n");
    sandbox
}

#[test]
fn the_device_is_a_setting() {
    let sandbox = program(Sandbox::new().with_variable("LOOPWRIGHT_DEVICE", "interp"));
    let document = sandbox.json(&["run", "p.lw", "--json"]);
    assert_eq!(document["device"], "interp");
    assert_eq!(document["why"], "as asked by LOOPWRIGHT_DEVICE");
    if has_compiler() {
        let document = sandbox.json(&["run", "p.lw", "--device", "cc", "--json"]);
        assert_eq!(document["device"], "cc");
        assert_eq!(document["why"], "as asked");
    }
    let sandbox = program(Sandbox::new().with_variable("LOOPWRIGHT_DEVICE", "nvidia"));
    let told = sandbox.fail(1, &["run", "p.lw"]);
    let start = "error: there is no device `nvidia`, which LOOPWRIGHT_DEVICE asks for\n help: ";
    assert!(told.starts_with(start), "{told}");
    sandbox.succeed(&["run", "p.lw", "--device", "auto"]);
}

#[cfg(unix)]
#[test]
fn auto_does_not_pass_over_a_broken_device() {
    let broken = Sandbox::new()
        .with_variable("LOOPWRIGHT_X86_LEVEL", "none")
        .with_variable("LOOPWRIGHT_CC", "false");
    let sandbox = program(broken);
    let told = sandbox.fail(1, &["run", "p.lw"]);
    assert!(told.starts_with("error: device `cc` is broken: "), "{told}");
    assert!(told.contains("`--device interp` does without it"), "{told}");
    sandbox.succeed(&["run", "p.lw", "--device", "interp"]);
}

#[test]
fn flags_are_short_for_options() {
    let sandbox = program(Sandbox::new());
    assert_eq!(
        sandbox.fail(2, &["run", "p.lw", "--device", "interp", "-o", "device=cc"]),
        format!("error: option `device` is given twice on the command line\n{HELP}")
    );
    assert_eq!(
        sandbox.fail(2, &["run", "p.lw", "--strict", "-o", "strict=false"]),
        format!("error: option `strict` is given twice on the command line\n{HELP}")
    );
}

#[test]
fn strict_is_a_setting() {
    if !has_compiler() {
        return;
    }
    // What tells the two apart is the code's name in the cache: strict code calls the library's `exp`.
    let sandbox = Sandbox::new();
    sandbox.program("p.lw", "input a: f32[i=4]\noutput b = exp(a)\n");
    sandbox.succeed(&["run", "p.lw", "--device", "cc", "--strict"]);
    let run = |arguments: &[&str]| {
        let mut all = vec!["run", "p.lw", "--device", "cc", "--json"];
        all.extend(arguments);
        sandbox.json(&all)["from_cache"].clone()
    };
    assert_eq!(run(&["-o", "strict=true"]), true);
    assert_eq!(run(&[]), false);
}

#[test]
fn the_number_of_threads_is_a_setting() {
    let threads = |sandbox: Sandbox, arguments: &[&str]| {
        let mut all = vec!["devices", "--json"];
        all.extend(arguments);
        sandbox.json(&all)["devices"][0]["threads"].clone()
    };
    let set = || Sandbox::new().with_variable("LOOPWRIGHT_THREADS", "3");
    assert_eq!(threads(set(), &[]), 3);
    assert_eq!(threads(set(), &["-o", "threads=2"]), 2);
}

#[test]
fn the_cache_is_a_setting() {
    let sandbox = Sandbox::new();
    let listed = |arguments: &[&str]| {
        let mut all = vec!["cache", "list", "--json"];
        all.extend(arguments);
        sandbox.json(&all)["directory"].clone()
    };
    let own = sandbox.path("cache").display().to_string();
    assert_eq!(listed(&[]), own);
    assert_eq!(listed(&["-o", "cache_dir=elsewhere"]), "elsewhere");
}
