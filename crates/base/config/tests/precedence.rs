//! The command line over the environment over the file over the defaults, for every option.

use loopwright_config::{Key, Math, Origin, Scheduler, Settings, Sources};
use std::path::PathBuf;

/// Three different values of an option: for the command line, the environment and the file.
fn samples(key: Key) -> [&'static str; 3] {
    match key {
        Key::Device | Key::Fallback => ["cc", "interp", "other"],
        // There are two, and what counts is which source is taken.
        Key::Scheduler => ["sync", "threads", "sync"],
        Key::Math => ["fast", "accurate", "fast"],
        Key::Threads => ["2", "3", "4096"],
        Key::Devices => ["2", "3", "64"],
        Key::Streams => ["5", "6", "7"],
        Key::PoolCap => ["64MiB", "1KiB", "3TiB"],
        Key::Queue => ["8", "9", "10"],
        Key::CacheDir => ["/command", "/environment", "/file"],
        Key::Plugins => ["/command:/other", "/environment", "/file:/other"],
        Key::Plugin => ["/command.so", "/environment.so:/b.so", "/file.so"],
        Key::Strict | Key::Verify | Key::LogStores => ["true", "false", "true"],
        Key::Trace => ["/command.json", "/environment.json", "/file.json"],
    }
}

/// A value as it stands in a file of TOML.
fn in_file(key: Key, text: &str) -> String {
    match key {
        Key::Device | Key::Fallback | Key::Scheduler | Key::Math | Key::PoolCap => {
            format!("\"{text}\"")
        }
        Key::CacheDir | Key::Plugins | Key::Plugin | Key::Trace => {
            format!("\"{text}\"")
        }
        Key::Threads | Key::Devices | Key::Streams | Key::Queue => text.to_owned(),
        Key::Strict | Key::Verify | Key::LogStores => text.to_owned(),
    }
}

fn defaults() -> Settings {
    Settings::load(&Sources::default()).expect("nothing is said")
}

#[test]
fn the_strongest_source_wins_for_every_option() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("settings.toml");
    for key in Key::ALL {
        let [command_line, environment, file] = samples(*key);
        let text = format!("# A comment.\n\n{} = {}\n", key.name(), in_file(*key, file));
        std::fs::write(&path, text).expect("the directory is ours");
        for sources in 0..8 {
            let given = |bit: i32| sources & bit != 0;
            let mut all = Sources::default();
            let mut expected = (
                defaults().value(*key).map(ToString::to_string),
                Origin::Default,
            );
            if given(1) {
                all.file = Some(path.clone());
                let origin = Origin::File {
                    path: path.clone(),
                    line: 3,
                };
                expected = (Some(file.to_owned()), origin);
            }
            if given(2) {
                let variable = key.variable();
                all.environment = vec![(variable.clone().into(), environment.into())];
                expected = (Some(environment.to_owned()), Origin::Environment(variable));
            }
            if given(4) {
                all.command_line = vec![(key.name().to_owned(), command_line.to_owned())];
                expected = (Some(command_line.to_owned()), Origin::CommandLine);
            }
            let settings = Settings::load(&all).expect("all values are right");
            let found = (
                settings.value(*key).map(ToString::to_string),
                settings.origin(*key).clone(),
            );
            assert_eq!(found, expected, "{key:?} with the sources {sources:03b}");
            // Nothing else is touched.
            for other in Key::ALL.iter().filter(|other| *other != key) {
                assert_eq!(*settings.origin(*other), Origin::Default, "{other:?}");
            }
        }
    }
}

#[test]
fn defaults_are_what_the_docs_say() {
    let settings = defaults();
    assert_eq!(settings.device(), "auto");
    assert_eq!(settings.scheduler(), None);
    assert_eq!(settings.fallback(), None);
    assert!((1..=4096).contains(&settings.threads().get()));
    assert_eq!(settings.devices().get(), 1);
    assert_eq!(settings.streams(), None);
    assert_eq!(settings.pool_cap(), 1 << 40);
    assert_eq!(settings.queue().get(), 1024);
    assert_eq!(settings.cache_dir(), None, "there is no home");
    assert_eq!(settings.math(), Math::Accurate);
    assert!(!settings.strict() && !settings.verify() && !settings.log_stores());
    assert_eq!(settings.trace(), None);
    assert_eq!(settings.file(), None);
}

#[test]
fn getters_give_what_is_set() {
    let said = Key::ALL.iter().map(|key| {
        let [value, ..] = samples(*key);
        (key.name().to_owned(), value.to_owned())
    });
    let settings = Settings::load(&Sources {
        command_line: said.collect(),
        ..Sources::default()
    });
    let settings = settings.expect("all values are right");
    assert_eq!(settings.device(), "cc");
    assert_eq!(settings.fallback(), Some("cc"));
    assert_eq!(settings.scheduler(), Some(Scheduler::Sync));
    assert_eq!(settings.threads().get(), 2);
    assert_eq!(settings.devices().get(), 2);
    assert_eq!(settings.streams().map(usize::from), Some(5));
    assert_eq!(settings.pool_cap(), 64 << 20);
    assert_eq!(settings.queue().get(), 8);
    assert_eq!(settings.cache_dir(), Some("/command".as_ref()));
    assert_eq!(settings.math(), Math::Fast);
    assert!(settings.strict() && settings.verify() && settings.log_stores());
    assert_eq!(settings.trace(), Some("/command.json".as_ref()));
    let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(settings.plugins(), paths(&["/command", "/other"]));
    assert_eq!(settings.plugin(), paths(&["/command.so"]));
}

#[test]
fn plug_ins_in_a_file_are_relative_to_the_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("settings.toml");
    std::fs::write(&path, "plugin = \"a.so:/b.so:c/d.so\"\n").expect("the directory is ours");
    let settings = Settings::load(&Sources {
        file: Some(path),
        ..Sources::default()
    });
    let settings = settings.expect("the file is right");
    let here = directory.path();
    let expected = [here.join("a.so"), "/b.so".into(), here.join("c/d.so")];
    assert_eq!(settings.plugin(), expected);
}

#[test]
fn the_directory_of_plug_ins_is_found_if_it_is_there() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let found = || {
        let settings = Settings::load(&Sources {
            environment: vec![("HOME".into(), home.path().into())],
            ..Sources::default()
        });
        settings.expect("all values are right").plugins()
    };
    assert_eq!(found(), Vec::<PathBuf>::new());
    let own = home.path().join(".local/share/loopwright/plugins");
    std::fs::create_dir_all(&own).expect("the directory is ours");
    assert_eq!(found(), [own]);
}

/// Where the cache is with these variables.
fn cache(variables: &[(&str, &str)]) -> Option<PathBuf> {
    let environment = variables.iter();
    let environment = environment.map(|(name, value)| (name.into(), value.into()));
    let settings = Settings::load(&Sources {
        environment: environment.collect(),
        ..Sources::default()
    });
    let settings = settings.expect("all values are right");
    settings.cache_dir().map(PathBuf::from)
}

#[test]
fn the_most_specific_variable_says_where_the_cache_is() {
    let home = ("HOME", "/home/me");
    let shared = ("XDG_CACHE_HOME", "/caches");
    let own = ("LOOPWRIGHT_CACHE_DIR", "here");
    assert_eq!(cache(&[]), None);
    assert_eq!(cache(&[home]), Some("/home/me/.cache/loopwright".into()));
    assert_eq!(cache(&[home, shared]), Some("/caches/loopwright".into()));
    assert_eq!(cache(&[home, shared, own]), Some("here".into()));
    let relative = ("XDG_CACHE_HOME", "caches");
    assert_eq!(
        cache(&[home, relative]),
        Some("/home/me/.cache/loopwright".into())
    );
    let empty = ("LOOPWRIGHT_CACHE_DIR", "");
    assert_eq!(
        cache(&[home, empty]),
        Some("/home/me/.cache/loopwright".into()),
        "an empty variable counts as not set"
    );
}

#[cfg(unix)]
#[test]
fn paths_need_not_be_text() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let odd = OsString::from_vec(b"/caches/\xff".to_vec());
    let settings = Settings::load(&Sources {
        environment: vec![("LOOPWRIGHT_CACHE_DIR".into(), odd.clone())],
        ..Sources::default()
    });
    let settings = settings.expect("it is a path");
    assert_eq!(settings.cache_dir(), Some(odd.as_ref()));
}

#[test]
fn paths_in_the_file_are_relative_to_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("settings.toml");
    std::fs::write(&path, "cache_dir = \"cache\"\ntrace = \"/trace.json\"\n")
        .expect("the directory is ours");
    let settings = Settings::load(&Sources {
        file: Some(path.clone()),
        ..Sources::default()
    });
    let settings = settings.expect("all values are right");
    assert_eq!(
        settings.cache_dir(),
        Some(directory.path().join("cache").as_ref())
    );
    assert_eq!(settings.trace(), Some("/trace.json".as_ref()));
    assert_eq!(settings.file(), Some(path.as_ref()));
}

#[test]
fn other_variables_are_left_alone() {
    let others = loopwright_config::OTHER_VARIABLES;
    let ours = others.iter().map(|(name, _)| ((*name).into(), "x".into()));
    let foreign = [("PATH", "/bin"), ("loopwright_x", "1"), ("LOOPWRIGHT", "1")];
    let foreign = foreign.map(|(name, value)| (name.into(), value.into()));
    let settings = Settings::load(&Sources {
        environment: ours.chain(foreign).collect(),
        ..Sources::default()
    });
    assert_eq!(settings, Ok(defaults()));
}
