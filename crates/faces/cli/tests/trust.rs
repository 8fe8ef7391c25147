//! What comes from outside cannot hurt: the places that files are written to, other people's projects, names with bytes
//! that a terminal obeys, and odd values of every option.
//!
//! Longer runs of the random parts: `LOOPWRIGHT_CASES=5000 LOOPWRIGHT_SEED=7 cargo test -p loopwright-cli --test trust`.
#![cfg(unix)]

mod sandbox;

use sandbox::Sandbox;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "size M = 2, N = 3\ninput A: f32[i=M, j=N]\noutput C = A + 1\n";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("add.lw", PROGRAM);
    sandbox
}

const RUN: [&str; 4] = ["run", "add.lw", "--device", "interp"];

fn run_with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut all = RUN.to_vec();
    all.extend(more);
    all
}

/// How a command ends; one that does not is killed, and a failure.
#[track_caller]
fn ended(mut command: Command) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    let read = |mut pipe: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            bytes
        })
    };
    let stdout = read(Box::new(child.stdout.take().expect("a pipe")));
    let stderr = read(Box::new(child.stderr.take().expect("a pipe")));
    let end = Instant::now() + Duration::from_secs(120);
    let status = loop {
        match child.try_wait().expect("it is our child") {
            Some(status) => break status,
            None if Instant::now() > end => {
                let _ = child.kill();
                let _ = child.wait();
                panic!("it does not end: {command:?}");
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    Output {
        status,
        stdout: stdout.join().expect("it reads"),
        stderr: stderr.join().expect("it reads"),
    }
}

fn number(variable: &str, default: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

/// Numbers that look random and are the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % limit as u64) as usize
    }
}

// Files.

#[test]
fn outputs_go_through_links_keep_modes_and_leave_devices_alone() {
    let sandbox = sandbox();
    sandbox.file("real.npy", "old");
    let real = sandbox.path("real.npy");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    symlink("real.npy", sandbox.path("link.npy")).expect("a link");
    symlink("/dev/null", sandbox.path("null")).expect("a link");
    sandbox.succeed(&run_with(&["--out", "C=link.npy", "--trace", "null"]));
    assert!(
        sandbox
            .path("link.npy")
            .symlink_metadata()
            .expect("there")
            .is_symlink()
    );
    let data = real.metadata().expect("it is there");
    assert_eq!(data.permissions().mode() & 0o777, 0o600);
    assert_eq!(
        sandbox.values("real.npy", loopwright::ops::DType::F32).0,
        [2, 3]
    );
    sandbox.succeed(&run_with(&["--out", "C=null"]));
    let null = sandbox.path("null");
    assert!(null.symlink_metadata().expect("there").is_symlink());
    assert!(null.metadata().expect("there").file_type().is_char_device());
    let said = sandbox.fail(1, &run_with(&["--out", "C=."]));
    assert!(said.contains("it is a directory"), "{said}");
}

#[test]
fn every_command_that_writes_follows_a_link_and_leaves_it() {
    let sandbox = sandbox();
    let commands: [(&str, Vec<&str>); 4] = [
        (
            "plot.svg",
            vec![
                "train", "digits", "--device", "x86", "--epochs", "1", "--plot", "plot.svg",
            ],
        ),
        (
            "kept.safetensors",
            vec![
                "train",
                "digits",
                "--device",
                "x86",
                "--epochs",
                "1",
                "--checkpoint",
                "kept.safetensors",
            ],
        ),
        (
            "out/tree.txt",
            vec!["dump", "add.lw", "--device", "interp", "--out", "out"],
        ),
        ("trace.json", run_with(&["--trace", "trace.json"])),
    ];
    std::fs::create_dir(sandbox.path("out")).expect("room");
    std::fs::create_dir(sandbox.path("elsewhere")).expect("room");
    let has_x86 = sandbox.json(&["devices", "--json"])["devices"]
        .as_array()
        .expect("a list")
        .iter()
        .any(|device| device["name"] == "x86" && device["available"] == true);
    for (at, (file, mut command)) in commands.into_iter().enumerate() {
        if !has_x86 && command.contains(&"x86") {
            command.retain(|word| *word != "--device" && *word != "x86");
        }
        let target = sandbox.path(&format!("elsewhere/{at}"));
        symlink(&target, sandbox.path(file)).expect("a link");
        sandbox.succeed(&command);
        let link = sandbox.path(file).symlink_metadata().expect("it is there");
        assert!(link.is_symlink(), "{command:?}");
        assert!(
            target.metadata().expect("it was made").len() > 0,
            "{command:?}"
        );
    }
}

#[test]
fn a_dash_is_the_standard_output_and_people_are_told_on_the_other() {
    let sandbox = sandbox();
    let output = ended(sandbox.command(&run_with(&["--out", "C=-"])));
    assert!(output.status.success());
    let mut bytes = output.stdout.as_slice();
    let header = loopwright::npy::Header::read(&mut bytes).expect("an array and nothing else");
    assert_eq!(header.shape, [2, 3]);
    assert_eq!(bytes.len(), 24);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("add.lw") && text.contains("C  f32"), "{text}");
    assert!(!sandbox.path("-").exists());
    let said = sandbox.fail(2, &["train", "digits", "--checkpoint", "-"]);
    assert!(said.contains("needs a file"), "{said}");
}

#[test]
fn a_fifo_is_written_to() {
    let sandbox = sandbox();
    let fifo = sandbox.path("pipe");
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    );
    made.expect("a FIFO");
    let mut end = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&fifo)
        .expect("a FIFO");
    sandbox.succeed(&run_with(&["--out", "C=pipe"]));
    let mut start = [0; 6];
    end.read_exact(&mut start).expect("it was written to");
    assert_eq!(&start, b"\x93NUMPY");
    assert!(fifo.metadata().expect("there").file_type().is_fifo());
}

#[test]
fn a_command_that_would_lose_one_of_its_files_to_another_is_refused() {
    let sandbox = sandbox();
    sandbox.program(
        "two.lw",
        "input A: f32[i=2]\noutput C = A + 1\noutput D = A * 2\n",
    );
    let program = std::fs::read(sandbox.path("two.lw")).expect("it is there");
    std::fs::create_dir(sandbox.path("sub")).expect("room");
    symlink("x.npy", sandbox.path("link.npy")).expect("a link");
    let run = ["run", "two.lw", "--device", "interp"];
    let pairs: [(&[&str], &str); 9] = [
        (
            &["--out", "C=x.npy", "--out", "D=x.npy"],
            "both write to x.npy",
        ),
        (
            &["--out", "C=x.npy", "--out", "D=sub/../x.npy"],
            "both write to",
        ),
        (
            &["--out", "C=x.npy", "--out", "D=link.npy"],
            "both write to",
        ),
        (
            &["--out", "C=x.npy", "--trace", "x.npy"],
            "`--out C` and `--trace` both",
        ),
        (
            &["--out", "C=-", "--out", "D=-"],
            "both write to the standard output",
        ),
        (
            &["--out", "C=-", "--trace", "/dev/stdout"],
            "both write to the standard output",
        ),
        (
            &["--out", "C=two.lw"],
            "would replace the program itself, two.lw",
        ),
        (&["--trace", "./two.lw"], "would replace the program itself"),
        (
            &["--out", "C=-", "--out", "D=/dev/stdout"],
            "both write to the standard output",
        ),
    ];
    for (options, reason) in pairs {
        let said = sandbox.fail(2, &[&run[..], options].concat());
        assert!(said.contains(reason), "{options:?}: {said}");
        assert!(!sandbox.path("x.npy").exists(), "{options:?}");
    }
    // With JSON there is no room for anything else on the standard output.
    let output = ended(sandbox.command(&[&run[..], &["--out", "C=-", "--json"]].concat()));
    assert_eq!(output.status.code(), Some(2));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let message = document["error"]["message"].as_str().expect("a text");
    assert!(
        message.contains("both write to the standard output"),
        "{message}"
    );
    let train = ["train", "digits", "--checkpoint", "kept", "--plot", "kept"];
    let said = sandbox.fail(2, &train);
    assert!(
        said.contains("`--checkpoint` and `--plot` both write to kept"),
        "{said}"
    );
    let tune = [
        "tune",
        "two.lw",
        "--device",
        "interp",
        "--seconds",
        "1",
        "--out",
        "two.lw",
    ];
    let said = sandbox.fail(2, &tune);
    assert!(said.contains("would replace the program itself"), "{said}");
    assert_eq!(
        std::fs::read(sandbox.path("two.lw")).expect("it is there"),
        program
    );
    // A device keeps nothing that could be lost.
    sandbox.succeed(&[&run[..], &["--out", "C=/dev/null", "--out", "D=/dev/null"]].concat());
}

// Projects.

/// A plug-in that leaves a trace of having been loaded cannot be built everywhere; a file that is no library is enough: it
/// is opened, and refused, only where it is used.
const PROJECT: &str = "plugin = \"theirs.so\"\n";

#[test]
fn a_project_names_no_code_caches_or_outputs_until_it_is_allowed() {
    let sandbox = sandbox();
    sandbox.file("theirs.so", "not a library");
    sandbox.file(
        "loopwright.toml",
        "plugin = \"theirs.so\"\nplugins = \"theirs\"\ntrace = \"t.json\"\nthreads = 1\n",
    );
    std::fs::create_dir(sandbox.path("theirs")).expect("room");
    let output = ended(sandbox.command(&run_with(&[])));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("`plugin`, `plugins`, `trace` of loopwright.toml are ignored")
            && said.contains("`loopwright allow`"),
        "{said}"
    );
    assert!(!sandbox.path("t.json").exists());
    // What names no paths counts.
    let output = ended(sandbox.command(&["config", "--json"]));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["settings"]["threads"]["value"], 1);
    assert_eq!(document["settings"]["trace"]["from"]["source"], "default");
    assert_eq!(
        document["ignored"],
        serde_json::json!(["plugin", "plugins", "trace"])
    );

    let said = sandbox.succeed(&["allow"]);
    assert!(
        said.contains("loopwright.toml is allowed as it is now"),
        "{said}"
    );
    let said = sandbox.fail(1, &run_with(&[]));
    assert!(said.contains("theirs.so"), "now it is loaded: {said}");

    // Another content is another question.
    sandbox.file("loopwright.toml", "trace = \"t.json\"\n");
    let output = ended(sandbox.command(&run_with(&[])));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`trace`"));
    sandbox.succeed(&["allow", "."]);
    sandbox.succeed(&run_with(&[]));
    assert!(sandbox.path("t.json").exists());
    sandbox.succeed(&["deny"]);
    let output = ended(sandbox.command(&run_with(&[])));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`trace`"));
}

#[test]
fn what_the_user_names_is_trusted() {
    let sandbox = sandbox();
    sandbox.file("theirs.so", "not a library");
    sandbox.file("loopwright.toml", PROJECT);
    let said = sandbox.fail(1, &run_with(&["--config", "loopwright.toml"]));
    assert!(said.contains("theirs.so"), "{said}");
    let said = sandbox.fail(1, &run_with(&["--plugin", "theirs.so"]));
    assert!(said.contains("theirs.so"), "{said}");
    let personal = sandbox.path("personal/loopwright");
    std::fs::create_dir_all(&personal).expect("room");
    std::fs::rename(
        sandbox.path("loopwright.toml"),
        personal.join("config.toml"),
    )
    .expect("room");
    std::fs::rename(sandbox.path("theirs.so"), personal.join("theirs.so")).expect("room");
    let said = sandbox.fail(1, &run_with(&[]));
    assert!(said.contains("theirs.so"), "{said}");
}

#[test]
fn a_file_that_anybody_could_have_put_there_counts_for_nothing() {
    let sandbox = sandbox();
    sandbox.file("loopwright.toml", "device = \"null\"\n");
    let folder = sandbox.path(".");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o1777)).expect("ours");
    let output = ended(sandbox.command(&["run", "add.lw", "--json"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("`device` of loopwright.toml is ignored: everybody may write"),
        "{said}"
    );
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_ne!(document["device"], "null");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).expect("ours");
}

#[test]
fn the_worker_of_a_search_trusts_a_project_no_more_than_the_search() {
    let sandbox = sandbox();
    sandbox.file("theirs.so", "not a library");
    sandbox.file("loopwright.toml", PROJECT);
    let tune = [
        "tune",
        "add.lw",
        "--device",
        "interp",
        "--seconds",
        "1",
        "--json",
    ];
    let output = ended(sandbox.command(&tune));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        !said.contains("theirs.so"),
        "the worker has loaded it: {said}"
    );
}

#[test]
fn any_option_of_any_file_is_trusted_as_its_place_and_kind_ask() {
    let cases = number("LOOPWRIGHT_CASES", 12);
    let seed = number("LOOPWRIGHT_SEED", 1);
    let lines = [
        ("device = \"interp\"", false),
        ("threads = 2", false),
        ("strict = true", false),
        ("math = \"fast\"", false),
        ("queue = 9", false),
        ("cache_dir = \"c\"", true),
        ("plugins = \"p\"", true),
        ("plugin = \"p.so\"", true),
        ("trace = \"t\"", true),
    ];
    for case in 0..cases {
        let mut random = Random(seed.wrapping_mul(1 << 32).wrapping_add(case));
        let sandbox = Sandbox::new();
        let chosen: Vec<&(&str, bool)> = lines.iter().filter(|_| random.below(2) == 0).collect();
        let mut text: String = chosen.iter().map(|(line, _)| format!("{line}\n")).collect();
        // Comments and blanks change nothing.
        for _ in 0..random.below(3) {
            text.insert_str(0, ["\n", "# \u{202e}\n", "\t\n"][random.below(3)]);
        }
        sandbox.file("real.toml", &text);
        match random.below(2) {
            0 => std::fs::rename(sandbox.path("real.toml"), sandbox.path("loopwright.toml")),
            _ => symlink("real.toml", sandbox.path("loopwright.toml")),
        }
        .expect("room");
        let allowed = random.below(3) == 0;
        if allowed {
            sandbox.succeed(&["allow"]);
        }
        let mut command = sandbox.command(&["config", "--json"]);
        command.env_remove("LOOPWRIGHT_CACHE_DIR");
        let output = ended(command);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let told = format!("seed {seed}, case {case}, allowed {allowed}:\n{text}{document:#}");
        for (line, path) in &lines {
            let key = line.split_once(" = ").expect("a line").0;
            let from_file = document["settings"][key]["from"]["source"] == "file";
            let there = chosen.iter().any(|(other, _)| other == line);
            assert_eq!(from_file, there && (allowed || !path), "{key}: {told}");
        }
    }
}

#[test]
fn a_configuration_that_is_no_file_does_not_hold_up_a_command() {
    let sandbox = sandbox();
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        sandbox.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    );
    made.expect("a FIFO");
    let output = ended(sandbox.command(&["config", "--config", "pipe"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("it is a FIFO or a socket, not a regular file"),
        "{said}"
    );
    std::fs::rename(sandbox.path("pipe"), sandbox.path("loopwright.toml")).expect("room");
    assert_eq!(ended(sandbox.command(&["config"])).status.code(), Some(1));
    std::fs::remove_file(sandbox.path("loopwright.toml")).expect("ours");
    for odd in [".", "/dev/zero", "/nonexistent/file"] {
        let output = ended(sandbox.command(&["config", "--config", odd]));
        assert_eq!(output.status.code(), Some(1), "{odd}");
    }
    assert_eq!(
        ended(sandbox.command(&["config", "--config", "/dev/null"]))
            .status
            .code(),
        Some(0)
    );
}

#[test]
fn a_relative_home_is_no_home() {
    let sandbox = sandbox();
    let mut command = sandbox.command(&["config", "--json"]);
    command
        .env("HOME", "relative")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("LOOPWRIGHT_CACHE_DIR");
    let output = ended(command);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        document["settings"]["cache_dir"]["value"],
        serde_json::Value::Null
    );
}

// Caches and temporary folders.

#[test]
fn a_cache_that_cannot_be_used_costs_one_warning_and_no_result() {
    if !sandbox::has_compiler() {
        return;
    }
    let sandbox = sandbox();
    sandbox.file("taken", "");
    let mut command = sandbox.command(&["run", "add.lw", "--device", "cc", "--repeat", "2"]);
    command.env("LOOPWRIGHT_CACHE_DIR", sandbox.path("taken"));
    let output = ended(command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(
        said.matches("warning: compiled code is not kept").count(),
        1,
        "{said}"
    );
}

/// What can be where a folder is named. Gives the path that is named.
fn folder_in_some_state(
    random: &mut Random,
    sandbox: &Sandbox,
    name: &str,
) -> (String, std::path::PathBuf) {
    let path = sandbox.path(name);
    let states = [
        "missing",
        "missing parent",
        "file",
        "dangling link",
        "loop of links",
        "link to a folder",
        "closed folder",
        "read-only folder",
        "folder for all",
        "strange entries",
        "files for folders",
        "device",
        "pipe",
        "very long name",
        "relative",
        "empty name",
    ];
    let state = states[random.below(states.len())];
    let make = |path: &Path, mode: u32| {
        std::fs::create_dir_all(path).expect("the sandbox is ours");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    };
    let path = match state {
        "missing parent" => path.join("a/b/c"),
        "file" => {
            std::fs::write(&path, "a file").expect("ours");
            path
        }
        "dangling link" => {
            symlink("nowhere/at/all", &path).expect("a link");
            path
        }
        "loop of links" => {
            symlink(&path, &path).expect("a link");
            path
        }
        "link to a folder" => {
            make(&sandbox.path("elsewhere"), 0o700);
            symlink("elsewhere", &path).expect("a link");
            path
        }
        "closed folder" => {
            make(&path, 0o000);
            path
        }
        "read-only folder" => {
            make(&path, 0o500);
            path
        }
        "folder for all" => {
            make(&path, 0o777);
            path
        }
        "strange entries" => {
            for entry in [
                "cc/.meta",
                "cc/x.meta/y",
                "manycore/0.so",
                "schedules/..x",
                "\u{1b}[31m/cc",
            ] {
                make(&path.join(entry), 0o700);
            }
            path
        }
        "files for folders" => {
            make(&path, 0o700);
            for entry in ["cc", "manycore", "schedules", "gccjit", "x86"] {
                std::fs::write(path.join(entry), "a file").expect("ours");
            }
            path
        }
        "device" => {
            std::path::PathBuf::from(["/dev/null", "/dev/full", "/proc/self"][random.below(3)])
        }
        "pipe" => {
            let made = Command::new("mkfifo").arg(&path).status();
            assert!(made.is_ok_and(|status| status.success()), "a pipe");
            path
        }
        "very long name" => path.join("n".repeat([255, 256, 5000][random.below(3)])),
        "relative" => std::path::PathBuf::from(["here", ".", "../..", "~"][random.below(4)]),
        "empty name" => std::path::PathBuf::new(),
        _ => path,
    };
    (state.to_owned(), path)
}

/// A cache is a help: whatever is at its place, and whatever happens to it meanwhile, a run gives its result. Where the folder for
/// temporary files cannot be used, a run that needs it says so, naming the folder.
#[test]
fn any_state_of_caches_and_temporary_folders_gives_the_result_or_names_the_folder() {
    let cases = number("LOOPWRIGHT_CASES", 12);
    let seed = number("LOOPWRIGHT_SEED", 1);
    let devices: &[&str] = match sandbox::has_compiler() {
        true => &["cc", "cc", "manycore", "x86", "interp"],
        false => &["x86", "interp"],
    };
    for case in 0..cases {
        let mut random = Random(seed.wrapping_mul(1 << 32).wrapping_add(case));
        let sandbox = sandbox();
        let device = devices[random.below(devices.len())];
        let mut command = sandbox.command(&[
            "run", "add.lw", "--device", device, "--repeat", "3", "--json",
        ]);
        let (state, cache) = folder_in_some_state(&mut random, &sandbox, "cache");
        command.env("LOOPWRIGHT_CACHE_DIR", &cache);
        let temporary = (random.below(3) == 0)
            .then(|| folder_in_some_state(&mut random, &sandbox, "temporary"));
        if let Some((_, folder)) = &temporary {
            command.env("TMPDIR", folder);
        }
        let told =
            format!("seed {seed}, case {case}: {device}, cache: {state}, temporary: {temporary:?}");
        // Sometimes the cache goes while it is used.
        let removed = random.below(4) == 0 && cache.starts_with(sandbox.path("cache"));
        let done = std::sync::atomic::AtomicBool::new(false);
        let output = std::thread::scope(|scope| {
            scope.spawn(|| {
                while removed && !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = std::fs::remove_dir_all(&cache);
                }
            });
            let output = ended(command);
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            output
        });
        check_shown(&output, &told);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "{told}: {said}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{told}: {error}: {said}"));
        match (output.status.code(), &temporary) {
            (Some(0), _) => assert_eq!(document["outputs"]["C"]["kind"], "output", "{told}"),
            (Some(1), Some((_, folder))) => {
                let message = document["error"]["message"].as_str().expect("a message");
                let shown = folder.display().to_string();
                let names = message.contains("TMPDIR") || message.contains(&shown);
                assert!(names, "{told}: {message}");
            }
            other => panic!("{told}: {other:?}: {said}\n{document:#}"),
        }
    }
}

/// Where no file may be written, what needs none works, and what needs one ends in words.
#[test]
fn a_cache_with_a_fifo_or_a_device_in_the_place_of_a_file_holds_up_nothing() {
    if !sandbox::has_compiler() {
        return;
    }
    let sandbox = sandbox();
    let run = ["run", "add.lw", "--device", "cc", "--json"];
    sandbox.succeed(&run);
    let mut folders = vec![sandbox.path("cache")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    assert!(!files.is_empty());
    for (at, path) in files.iter().enumerate() {
        std::fs::remove_file(path).expect("our own file");
        match at % 2 {
            0 => {
                let made = Command::new("mkfifo").arg(path).status();
                assert!(made.expect("every Unix has it").success());
            }
            _ => symlink("/dev/zero", path).expect("room"),
        }
        let output = ended(sandbox.command(&run));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", path.display());
    }
}

#[test]
fn the_compiler_has_its_temporary_files_in_a_folder_that_is_removed() {
    if !sandbox::has_compiler() {
        return;
    }
    let sandbox = sandbox();
    sandbox.file(
        "cc",
        "#!/bin/sh\necho \"$TMPDIR\" >> places\nexec cc \"$@\"\n",
    );
    let compiler = sandbox.path("cc");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&compiler, mode).expect("our own file");
    let mut command = sandbox.command(&["run", "add.lw", "--device", "cc"]);
    command.env("CC", &compiler);
    let output = ended(command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let places = std::fs::read_to_string(sandbox.path("places")).expect("it was called");
    let last = places.lines().last().expect("it was called");
    assert!(last.contains("loopwright-scratch-cc-"), "{places}");
    assert!(!Path::new(last).exists(), "{places}");
}

#[test]
fn a_limit_to_the_size_of_files_ends_no_run_that_writes_none() {
    let mut random = Random(number("LOOPWRIGHT_SEED", 1));
    for device in ["interp", "x86", "cc"] {
        if device == "cc" && !sandbox::has_compiler() {
            continue;
        }
        let sandbox = sandbox();
        let plain = sandbox.command(&["run", "add.lw", "--device", device, "--json"]);
        let mut command = Command::new("sh");
        let blocks = [0, 1, 8][random.below(3)];
        command
            .arg("-c")
            .arg(format!("ulimit -f {blocks}; exec \"$0\" \"$@\""));
        command.arg(plain.get_program()).args(plain.get_args());
        command.current_dir(sandbox.path("")).stdin(Stdio::null());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let output = ended(command);
        let said = String::from_utf8_lossy(&output.stderr);
        let told = format!("{device}, {blocks} blocks: {said}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{told}: {error}"));
        match device {
            "cc" => assert!(
                document["error"]["message"].is_string() || output.status.success(),
                "{told}"
            ),
            _ => assert!(output.status.success(), "{told}"),
        }
    }
}

#[test]
fn a_missing_folder_for_temporary_files_is_named() {
    if !sandbox::has_compiler() {
        return;
    }
    let sandbox = sandbox();
    let missing = sandbox.path("missing");
    let mut command = sandbox.command(&["run", "add.lw", "--device", "cc"]);
    command.env("TMPDIR", &missing);
    let output = ended(command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let wanted = format!("TMPDIR={} does not exist", missing.display());
    assert!(said.contains(&wanted), "{said}");
    assert!(!said.contains("does not work"), "{said}");
}

// Terminals.

/// Nothing that a terminal obeys, but for line feeds and tabs.
#[track_caller]
fn check_shown(output: &Output, told: &str) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(bytes);
        let obeyed = |c: char| loopwright::text::is_obeyed(c) && c != '\n' && c != '\t';
        let found = text.chars().find(|c| obeyed(*c));
        assert_eq!(found, None, "{told}: {}", text.escape_debug());
    }
}

#[test]
fn names_with_bytes_that_a_terminal_obeys_are_shown_and_not_sent() {
    let sandbox = sandbox();
    let cases = number("LOOPWRIGHT_CASES", 12);
    let seed = number("LOOPWRIGHT_SEED", 1);
    let parts = [
        "\x1b[2J",
        "\x1b]0;title\x07",
        "\u{9b}31m",
        "\x07",
        "\x08",
        "\r",
        "\u{202e}",
        "\u{2066}",
        "\u{200f}",
        "\u{feff}",
        "\x7f",
        "\n",
        "\t",
        "a",
        "ä",
        "\u{fdd0}",
        "\u{e0041}",
    ];
    let many = "n".repeat(70_000);
    for case in 0..cases {
        let mut random = Random(seed.wrapping_mul(1 << 32).wrapping_add(case));
        let mut name = String::from("n");
        for _ in 0..1 + random.below(5) {
            name.push_str(parts[random.below(parts.len())]);
        }
        let told = format!("seed {seed}, case {case}, name {}", name.escape_debug());
        let file = format!("{name}.lw");
        let output_file = format!("C={name}.npy");
        let wrong = format!("loopwright program 1\noutput {name}\n");
        let long =
            format!("loopwright program 1\ninput {many}: f32[i=2]\noutput {name}y = {many}\n");
        let good = format!("loopwright program 1\n{PROGRAM}");
        let texts = [wrong.as_str(), long.as_str(), good.as_str()];
        std::fs::write(sandbox.path(&file), texts[random.below(texts.len())]).expect("room");
        let commands: [Vec<&str>; 8] = [
            vec!["run", &file, "--device", "interp"],
            vec!["run", &file, "--device", "interp", "--json"],
            vec!["run", "add.lw", "--device", "interp", "--out", &output_file],
            vec!["dump", &file, "--device", "interp", "--stage", "tree"],
            vec!["run", &file, "--device", &name],
            vec!["run", "add.lw", "--device", "interp", "--set", &name],
            vec!["config", "--config", &file],
            vec![&name],
        ];
        let command = &commands[random.below(commands.len())];
        let output = ended(sandbox.command(command));
        check_shown(&output, &format!("{told}, {command:?}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("internal error"), "{told}: {said}");
    }
}

#[test]
fn a_name_of_70_000_characters_is_printed() {
    let sandbox = Sandbox::new();
    let name = "n".repeat(70_000);
    sandbox.program(
        "long.lw",
        &format!("input {name}: f32[i=2]\noutput y = {name} + 1\n"),
    );
    for command in [
        vec!["run", "long.lw", "--device", "interp"],
        vec!["dump", "long.lw", "--device", "interp", "--stage", "tree"],
        vec!["dump", "long.lw", "--device", "interp", "--stage", "plan"],
    ] {
        let output = ended(sandbox.command(&command));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {said}");
    }
}

// Values.

#[test]
fn values_that_make_no_sense_are_refused_by_name() {
    let sandbox = sandbox();
    for rate in ["nan", "inf", "-inf", "-1", "0", "1e-60", "1e60", "fast"] {
        let said = sandbox.fail(2, &["train", "digits", &format!("--rate={rate}")]);
        assert!(said.contains("--rate"), "{said}");
    }
    let said = sandbox.fail(2, &run_with(&["--set", "M=3", "--set", "M=4"]));
    assert!(
        said.contains("`--set M=...` is given twice, as 3 and as 4"),
        "{said}"
    );
    let said = sandbox.fail(2, &run_with(&["--fallback", "nosuch"]));
    assert!(
        said.contains("there is no backend `nosuch` to fall back to") && said.contains("interp"),
        "{said}"
    );
}

#[test]
fn a_run_that_is_told_to_end_has_the_exit_code_of_the_signal() {
    use rustix::process::{Pid, Signal, kill_process};
    let sandbox = sandbox();
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let train = [
            "train", "digits", "--epochs", "4000000", "--device", "interp",
        ];
        let mut command = sandbox.command(&train);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary was built");
        // It heeds signals once it has said what it does.
        let mut first = [0; 1];
        let output = child.stdout.as_mut().expect("a pipe");
        output.read_exact(&mut first).expect("it says something");
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let mut drained = child.stdout.take().expect("a pipe");
        std::thread::spawn(move || std::io::copy(&mut drained, &mut std::io::sink()));
        let status = child.wait().expect("it is our child");
        assert_eq!(status.code(), Some(code), "{status}");
    }
}

/// A verb with what keeps it short.
const VERBS: [(&str, &[&str]); 12] = [
    ("devices", &[]),
    ("run", &["--device", "interp"]),
    ("dump", &["--device", "interp", "--stage", "graph"]),
    ("tune", &["--device", "interp", "--seconds", "1"]),
    ("train", &["--device", "nosuch"]),
    (
        "check",
        &["--device", "interp", "--seconds", "0", "--only", "errors"],
    ),
    ("doctor", &[]),
    ("cache", &[]),
    ("bench", &["--only", "no-such-row", "--against", "none"]),
    ("config", &[]),
    ("allow", &[]),
    ("deny", &[]),
];

const VALUES: [&str; 24] = [
    "",
    " ",
    "-1",
    "0",
    "1",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "4294967296",
    "18446744073709551616",
    "-9223372036854775808",
    "\x1b[2J",
    "a\u{202e}b",
    "=",
    "M=",
    "M=3",
    "M=-1",
    "M=9223372036854775807",
    "A=add.lw",
    "add.lw",
    "nosuch/file",
    ".",
    "link",
];

/// The options of a verb that take a value, as its help lists them.
fn options_of(sandbox: &Sandbox, verb: &str) -> Vec<String> {
    let help = sandbox.succeed(&[verb, "--help"]);
    let words = help.split_whitespace().collect::<Vec<_>>();
    let mut found: Vec<String> = words
        .windows(2)
        .filter(|pair| pair[0].starts_with("--") && pair[1].starts_with('<'))
        .map(|pair| pair[0].to_owned())
        .collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn any_odd_value_of_any_option_is_used_or_refused_in_words() {
    let cases = number("LOOPWRIGHT_CASES", 30);
    let seed = number("LOOPWRIGHT_SEED", 1);
    let sandbox = sandbox();
    symlink("nowhere", sandbox.path("link")).expect("a link");
    let long = "v".repeat(70_000);
    let verbs: Vec<(&str, &[&str], Vec<String>)> = VERBS
        .into_iter()
        .map(|(verb, base)| (verb, base, options_of(&sandbox, verb)))
        .collect();
    for case in 0..cases {
        let mut random = Random(seed.wrapping_mul(1 << 32).wrapping_add(case));
        let (verb, base, options) = &verbs[random.below(verbs.len())];
        let mut command = vec![(*verb).to_owned()];
        match *verb {
            "run" | "dump" | "tune" => command.push("add.lw".to_owned()),
            "train" => command.push("digits".to_owned()),
            "cache" => command.push("list".to_owned()),
            _ => {}
        }
        let mut said: Vec<String> = Vec::new();
        for _ in 0..1 + random.below(2) {
            let known = ["--config".to_owned(), "--option".to_owned()];
            let options = if options.is_empty() {
                &known[..]
            } else {
                options
            };
            let option = options[random.below(options.len())].clone();
            let value = match random.below(VALUES.len() + 1) {
                at if at < VALUES.len() => VALUES[at],
                _ => long.as_str(),
            };
            command.push(format!("{option}={value}"));
            said.push(option);
        }
        for pair in base.chunks(2) {
            if !said.iter().any(|option| option == pair[0]) {
                command.extend(pair.iter().map(|word| (*word).to_owned()));
            }
        }
        let json = random.below(3) == 0 && *verb != "dump";
        if json {
            command.push("--json".to_owned());
        }
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let output = ended(sandbox.command(&words));
        let shown: Vec<String> = words
            .iter()
            .map(|word| word.chars().take(60).collect())
            .collect();
        let told = format!("seed {seed}, case {case}: {shown:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            matches!(output.status.code(), Some(0..=2)),
            "{told}: {}\n{said}",
            output.status
        );
        assert!(!said.contains("internal error"), "{told}: {said}");
        check_shown(&output, &told);
        if json {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let document: Result<serde_json::Value, _> = serde_json::from_str(&text);
            let document =
                document.unwrap_or_else(|error| panic!("{told}: {error}\n{text}\n{said}"));
            let failed = output.status.code() != Some(0);
            if failed && *verb != "check" {
                assert!(document["error"]["message"].is_string(), "{told}: {text}");
            }
        }
    }
    assert!(
        Path::new("/dev/null")
            .metadata()
            .expect("there")
            .file_type()
            .is_char_device()
    );
}

#[test]
fn errors_under_json_are_json() {
    let sandbox = sandbox();
    sandbox.program("wrong.lw", "output C = nothing\n");
    for (code, kind, command) in [
        (1, "failure", vec!["run", "wrong.lw", "--json"]),
        (1, "failure", vec!["run", "missing.lw", "--json"]),
        (
            2,
            "usage",
            vec!["run", "add.lw", "--device", "nosuch", "--json"],
        ),
        (2, "usage", vec!["run", "add.lw", "--nosuch", "--json"]),
        (
            2,
            "usage",
            vec!["train", "digits", "--json", "--rate", "nan"],
        ),
        (
            1,
            "failure",
            vec!["config", "--json", "--config", "missing.toml"],
        ),
    ] {
        let output = ended(sandbox.command(&command));
        assert_eq!(output.status.code(), Some(code), "{command:?}");
        assert!(output.stderr.is_empty(), "{command:?}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(document["error"]["kind"], kind, "{command:?}");
        let message = document["error"]["message"].as_str().expect("a text");
        assert!(
            !message.is_empty() && !message.starts_with("error"),
            "{message}"
        );
    }
}
