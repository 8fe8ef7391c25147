//! Every mistake a person can make, with the message they get.

use loopwright_config::{ConfigError, Key, Settings, Sources};
use std::path::PathBuf;

fn on_command_line(name: &str, value: &str) -> ConfigError {
    let sources = Sources {
        command_line: vec![(name.into(), value.into())],
        ..Sources::default()
    };
    let error = Settings::load(&sources).expect_err("the command line is wrong");
    assert!(error.is_usage(), "{error}");
    error
}

fn in_environment(name: &str, value: &str) -> ConfigError {
    let sources = Sources {
        environment: vec![(name.into(), value.into())],
        ..Sources::default()
    };
    let error = Settings::load(&sources).expect_err("the environment is wrong");
    assert!(!error.is_usage(), "{error}");
    error
}

/// What is said about a file of this text, with `FILE` for its path.
fn in_file(text: &[u8]) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("settings.toml");
    std::fs::write(&path, text).expect("the directory is ours");
    let sources = Sources {
        file: Some(path.clone()),
        ..Sources::default()
    };
    let error = match Settings::load(&sources) {
        Err(error) => error,
        Ok(_) => panic!("this is right: {}", String::from_utf8_lossy(text)),
    };
    assert!(!error.is_usage(), "{error}");
    let shown = path.display().to_string();
    error.to_string().replace(&shown, "FILE")
}

/// Wrong values as the command line and the environment say them, and what the option takes.
fn wrong(key: Key) -> (&'static [&'static str], &'static str) {
    const BYTES: &str = "bytes from 1 to 1024TiB, with or without a unit: B, KiB, MiB, GiB, TiB";
    match key {
        Key::Device => (&[" "], "a device's name"),
        Key::Fallback => (&[" "], "a backend's name"),
        Key::Scheduler => (&["async", "Sync", "sync,threads"], "`sync` or `threads`"),
        Key::Math => (&["Fast", "exact", "accurate fast"], "`accurate` or `fast`"),
        Key::Threads | Key::Streams => (
            &[
                "0",
                "-1",
                "+1",
                "many",
                "1.5",
                "4097",
                "99999999999999999999",
            ],
            "an integer from 1 to 4096",
        ),
        Key::Devices => (&["0", "65", "all"], "an integer from 1 to 64"),
        Key::PoolCap => (
            &[
                "0",
                "0MiB",
                "64MB",
                "1.5GiB",
                "1025TiB",
                "99999999999TiB",
                "MiB",
            ],
            BYTES,
        ),
        Key::Queue => (&["0", "1048577", "long"], "an integer from 1 to 1048576"),
        // A path is wrong only if it is empty, which for a variable means that it is not set.
        Key::CacheDir | Key::Trace => (&[], "a path"),
        Key::Plugins | Key::Plugin => (&[":", "/a:", "/a::/b"], "paths with `:` between them"),
        Key::Strict | Key::Verify | Key::LogStores => {
            (&["yes", "True", "2", "on"], "`true` or `false`")
        }
    }
}

#[test]
fn a_wrong_value_is_told_with_its_place_and_what_is_right() {
    for key in Key::ALL {
        let (values, allowed) = wrong(*key);
        for value in values {
            assert_eq!(
                on_command_line(key.name(), value).to_string(),
                format!("option `{}` is `{value}`; it takes {allowed}", key.name())
            );
            assert_eq!(
                in_environment(&key.variable(), value).to_string(),
                format!("{} is `{value}`; it takes {allowed}", key.variable())
            );
        }
        assert_eq!(
            on_command_line(key.name(), "").to_string(),
            format!("option `{}` is ``; it takes {allowed}", key.name())
        );
    }
}

#[test]
fn a_wrong_value_in_the_file_is_told_with_its_line() {
    for (text, message) in [
        (
            "\nthreads = 0\n",
            "FILE:2: `threads` is `0`; it takes an integer from 1 to 4096, without quotes",
        ),
        (
            "threads = \"4\"\n",
            "FILE:1: `threads` is `\"4\"`; it takes an integer from 1 to 4096, without quotes",
        ),
        (
            "plugin = [\"a.so\"]\n",
            "FILE:1: `plugin` is a list; it takes paths with `:` between them, in quotes",
        ),
        (
            "queue = -1\n",
            "FILE:1: `queue` is `-1`; it takes an integer from 1 to 1048576, without quotes",
        ),
        (
            "devices = 1.5\n",
            "FILE:1: `devices` is `1.5`; it takes an integer from 1 to 64, without quotes",
        ),
        (
            "streams = 99999999999999999999\n",
            "FILE:1: `streams` is `99999999999999999999`; it takes an integer from 1 to 4096, \
             without quotes",
        ),
        (
            "threads.most = 1\n",
            "FILE:1: `threads` is a table; it takes an integer from 1 to 4096, without quotes",
        ),
        (
            "pool_cap = \"64MB\"\n",
            "FILE:1: `pool_cap` is `\"64MB\"`; it takes bytes from 1 to 1024TiB, with or without a \
             unit: B, KiB, MiB, GiB, TiB; in quotes if it has a unit",
        ),
        (
            "strict = \"true\"\n",
            "FILE:1: `strict` is `\"true\"`; it takes `true` or `false`, without quotes",
        ),
        (
            "strict = true\nverify = 1\n",
            "FILE:2: `verify` is `1`; it takes `true` or `false`, without quotes",
        ),
        (
            "log_stores = [true]\n",
            "FILE:1: `log_stores` is a list; it takes `true` or `false`, without quotes",
        ),
        (
            "scheduler = \"fast\"\n",
            "FILE:1: `scheduler` is `\"fast\"`; it takes `sync` or `threads`, in quotes",
        ),
        (
            "device = 2026-01-01\n",
            "FILE:1: `device` is `2026-01-01`; it takes a device's name, in quotes",
        ),
        (
            "cache_dir = true\n",
            "FILE:1: `cache_dir` is `true`; it takes a path, in quotes",
        ),
        (
            "trace = \"\"\n",
            "FILE:1: `trace` is `\"\"`; it takes a path, in quotes",
        ),
    ] {
        assert_eq!(in_file(text.as_bytes()), message, "{text}");
    }
}

#[test]
fn an_unknown_name_is_an_error_everywhere() {
    const ALL: &str = "the options are device, scheduler, threads, devices, streams, pool_cap, queue, \
                       cache_dir, plugins, plugin, fallback, strict, math, verify, trace, log_stores";
    assert_eq!(
        on_command_line("thraeds", "4").to_string(),
        "there is no option `thraeds`; did you mean `threads`?"
    );
    assert_eq!(
        on_command_line("colour", "red").to_string(),
        format!("there is no option `colour`; {ALL}")
    );
    assert_eq!(
        in_environment("LOOPWRIGHT_THREAD", "4").to_string(),
        "the environment sets LOOPWRIGHT_THREAD, which nothing reads; did you mean \
         LOOPWRIGHT_THREADS?"
    );
    assert_eq!(
        in_environment("LOOPWRIGHT_CFLAG", "-g").to_string(),
        "the environment sets LOOPWRIGHT_CFLAG, which nothing reads; did you mean \
         LOOPWRIGHT_CFLAGS?"
    );
    assert_eq!(
        in_environment("LOOPWRIGHT_COLOUR", "red").to_string(),
        "the environment sets LOOPWRIGHT_COLOUR, which nothing reads; unset it"
    );
    assert_eq!(
        in_file(b"strict = true\n# Four.\nthread = 4\n"),
        "FILE:3: there is no option `thread`; did you mean `threads`?"
    );
    assert_eq!(
        in_file(b"colour = 'red'\n"),
        format!("FILE:1: there is no option `colour`; {ALL}")
    );
    assert_eq!(
        in_file(b"strict = true\n[runtime]\nthreads = 4\n"),
        "FILE:2: there is no table `runtime`; options stand on lines of their own, \
         `threads = 4`, without tables"
    );
}

#[test]
fn a_file_that_is_not_toml_is_told_with_the_line() {
    for (text, start) in [
        ("strict = true\nthreads =\n", "FILE:2: this is not TOML: "),
        (
            "threads = 4\nthreads = 5\n",
            "FILE:2: this is not TOML: duplicate key",
        ),
        ("device = cc\n", "FILE:1: this is not TOML: "),
    ] {
        let said = in_file(text.as_bytes());
        assert!(said.starts_with(start), "{text}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    assert_eq!(
        in_file(b"device = \"\xff\"\n"),
        "cannot read the configuration FILE: it is not a text file: byte 10 is not UTF-8"
    );
    assert_eq!(
        in_file(&vec![b'\n'; (1 << 20) + 1]),
        "cannot read the configuration FILE: it is too long for a configuration"
    );
}

#[test]
fn what_is_overridden_is_checked_too() {
    let sources = Sources {
        command_line: vec![("threads".into(), "4".into())],
        environment: vec![("LOOPWRIGHT_THREADS".into(), "many".into())],
        file: None,
    };
    let error = Settings::load(&sources).expect_err("the environment is wrong");
    assert_eq!(
        error.to_string(),
        "LOOPWRIGHT_THREADS is `many`; it takes an integer from 1 to 4096"
    );
}

#[test]
fn the_command_line_says_one_thing() {
    let sources = Sources {
        command_line: vec![
            ("threads".into(), "4".into()),
            ("threads".into(), "5".into()),
        ],
        ..Sources::default()
    };
    let error = Settings::load(&sources).expect_err("two values");
    assert!(error.is_usage());
    assert_eq!(
        error.to_string(),
        "option `threads` is given twice on the command line"
    );
}

fn unreadable(path: PathBuf) -> String {
    let sources = Sources {
        file: Some(path),
        ..Sources::default()
    };
    let error = Settings::load(&sources).expect_err("it cannot be read");
    error.to_string()
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    assert_eq!(
        unreadable("none.toml".into()),
        "cannot read the configuration none.toml: there is no such file"
    );
    let directory = tempfile::tempdir().expect("a temporary directory");
    let shown = directory.path().display().to_string();
    assert_eq!(
        unreadable(directory.path().to_owned()),
        format!("cannot read the configuration {shown}: it is a directory")
    );
}

#[cfg(unix)]
#[test]
fn a_file_that_everybody_may_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("settings.toml");
    std::fs::write(&path, "cache_dir = \"/tmp/code\"\n").expect("the directory is ours");
    let set = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode));
    set(0o646).expect("the file is ours");
    assert_eq!(
        unreadable(path.clone()),
        format!(
            "the configuration {} is not read: everybody may write to it (mode 646), and it may \
             name a directory that code is loaded from; `chmod o-w` it",
            path.display()
        )
    );
    set(0o664).expect("the file is ours");
    let sources = Sources {
        file: Some(path.clone()),
        ..Sources::default()
    };
    assert!(Settings::load(&sources).is_ok(), "a group is no everybody");
    // The idiom for no file at all.
    let none = Sources {
        file: Some("/dev/null".into()),
        ..Sources::default()
    };
    assert!(Settings::load(&none).is_ok());
}
