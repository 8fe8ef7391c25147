//! Signals end commands in the middle of long work: with the exit code that a shell gives, and with nothing left behind.
#![cfg(unix)]

mod sandbox;

use sandbox::Sandbox;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// More than 10^13 sines, which take hours, and no memory to speak of.
const LONG_KERNEL: &str = "\
size N = 30000
input a: f32[i=N]
input b: f32[j=N]
input c: f32[k=N]
output x = sum[i, j, k](sin(a * b + c))
";

/// A process that is ended whatever happens.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Started {
    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.0.id().to_string()])
            .status();
        assert!(sent.is_ok_and(|status| status.success()), "kill works");
    }

    /// Its end, which must come long before that of its work.
    fn ended(&mut self) -> ExitStatus {
        let from = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().expect("it is a child") {
                return status;
            }
            assert!(
                from.elapsed() < Duration::from_secs(60),
                "it goes on after the signal"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until it has used the processor for so long: it is then inside of what takes long.
    fn has_worked(&mut self, seconds: f64) {
        let from = Instant::now();
        while processor_seconds(self.0.id()) < seconds {
            assert!(
                self.0.try_wait().expect("it is a child").is_none(),
                "its work is not long enough"
            );
            assert!(from.elapsed() < Duration::from_secs(120), "it never works");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What a process has used of the processor.
fn processor_seconds(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Behind the name, which may have blanks in it.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

fn start(sandbox: &Sandbox, arguments: &[&str]) -> Started {
    let mut command = sandbox.command(arguments);
    let command = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("TMPDIR", sandbox.path("temporary"));
    Started(command.spawn().expect("the binary was built"))
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("temporary")).expect("the directory is ours");
    sandbox
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

#[test]
fn a_signal_ends_a_run_in_the_middle_of_a_kernel() {
    let sandbox = sandbox();
    sandbox.program("long.lw", LONG_KERNEL);
    for (device, scheduler) in [
        ("x86", "sync"),
        ("x86", "threads"),
        ("cc", "sync"),
        ("interp", "sync"),
    ] {
        for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
            let arguments = ["run", "long.lw", "--device", device, "--out", "x=x.npy"];
            let mut command = sandbox.command(&arguments);
            let command = command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .env("TMPDIR", sandbox.path("temporary"))
                .env("LOOPWRIGHT_SCHEDULER", scheduler);
            let mut run = Started(command.spawn().expect("the binary was built"));
            run.has_worked(2.0);
            run.signal(signal);
            let status = run.ended();
            assert_eq!(status.code(), Some(code), "{device}, {scheduler}: {status}");
            assert!(!sandbox.path("x.npy").exists(), "half a result is written");
            assert!(is_empty(&sandbox.path("temporary")), "{device}");
        }
    }
}

#[test]
fn a_signal_ends_a_compilation() {
    let sandbox = sandbox();
    let mut lines = String::from("size N = 41\ninput x0: f32[i=N, j=N]\n");
    for step in 1..8000 {
        // A reduction every time: these cannot become one loop.
        let _ = writeln!(
            lines,
            "m{step} = max[j](x{})\nx{step} = tanh(x{} - m{step})",
            step - 1,
            step - 1
        );
    }
    lines.push_str("output y = sum[i, j](x7999)\n");
    sandbox.program("long.lw", &lines);
    let stages: [&[&str]; 2] = [
        &["run", "long.lw", "--device", "x86"],
        &["dump", "long.lw", "--device", "x86", "--stage", "code"],
    ];
    for arguments in stages {
        let mut command = start(&sandbox, arguments);
        command.has_worked(1.5);
        command.signal("-INT");
        let status = command.ended();
        assert_eq!(status.code(), Some(130), "{arguments:?}: {status}");
        assert!(is_empty(&sandbox.path("temporary")), "{arguments:?}");
    }
}

#[test]
fn a_signal_ends_the_c_compiler_with_the_command() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = sandbox();
    sandbox.program("p.lw", "input a: f32[i=3]\noutput b = a + 1.0\n");
    // It says who it is, and then tells its number instead of compiling.
    let script = "#!/bin/sh\ncase \"$*\" in *module.c*) echo $$ > compiler; exec sleep 600;; esac\nexec cc \"$@\"\n";
    sandbox.file("slow", script);
    let slow = sandbox.path("slow");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&slow, executable).expect("the file is ours");
    let mut command = sandbox.command(&["run", "p.lw", "--device", "cc"]);
    let command = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("TMPDIR", sandbox.path("temporary"))
        .env("LOOPWRIGHT_CC", &slow);
    let mut run = Started(command.spawn().expect("the binary was built"));
    let from = Instant::now();
    let compiler = loop {
        let text = std::fs::read_to_string(sandbox.path("compiler")).unwrap_or_default();
        if let Ok(number) = text.trim().parse::<u32>() {
            break number;
        }
        assert!(from.elapsed() < Duration::from_secs(60), "nothing compiles");
        std::thread::sleep(Duration::from_millis(20));
    };
    run.signal("-INT");
    assert_eq!(run.ended().code(), Some(130));
    assert!(
        !Path::new(&format!("/proc/{compiler}")).exists(),
        "the compiler is left"
    );
    assert!(is_empty(&sandbox.path("temporary")), "a folder is left");
}

#[test]
fn a_signal_ends_a_check_and_a_benchmark() {
    let sandbox = sandbox();
    for arguments in [
        &["check", "--device", "x86"][..],
        &["bench", "--against", "none"][..],
    ] {
        let mut command = sandbox.command(arguments);
        let command = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .env("TMPDIR", sandbox.path("temporary"));
        let mut child = Started(command.spawn().expect("the binary was built"));
        // Read, so that it does not wait for somebody to.
        let output = child.0.stdout.take().expect("it was asked for");
        let reader = std::thread::spawn(move || BufReader::new(output).lines().count());
        child.has_worked(0.5);
        child.signal("-INT");
        let status = child.ended();
        assert_eq!(status.code(), Some(130), "{arguments:?}: {status}");
        reader.join().expect("it only reads");
    }
}
