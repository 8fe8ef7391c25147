//! What is loaded, and what is refused with which words.
#![cfg(unix)]

mod build;

use build::{directory, example_c_with_first_header, has_compiler, liar, parrot};
use loopwright_backend::{Backend, CompileOptions, Level};
use loopwright_compile::Compiler;
use loopwright_graph::parse;
use loopwright_plugin::{Plugin, PluginError, load, load_all, scan};
use loopwright_text::Source;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

/// Why a plug-in is refused. The message must name the file.
fn refused(path: &Path) -> PluginError {
    let error = match load(path) {
        Ok(plugin) => panic!("{} was loaded: {plugin:?}", path.display()),
        Err(error) => error,
    };
    let message = error.to_string();
    assert!(
        message.contains(&*path.to_string_lossy()),
        "the message names the file: {message}"
    );
    assert_eq!(error.path(), path);
    error
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

#[test]
fn tables_that_cannot_be_are_refused() {
    if !has_compiler() {
        return;
    }
    let directory = directory();
    let cases = [
        ("wrong_version", "has ABI version 77, and this host has 1"),
        ("small_struct", "its table has 24 bytes"),
        ("null_function", "it has no function `run`"),
        ("garbage_name", "its name is \"Gerät!\""),
        ("garbage_text", "its description is not UTF-8"),
        ("garbage_dtypes", "it has dtypes that are none"),
        ("garbage_lanes", "its vectors have 0 lanes"),
        ("garbage_sizes", "which cannot be"),
        ("device_small", "its table of devices has 16 bytes"),
        (
            "device_null",
            "its table of devices has no function `allocate`",
        ),
        ("device_form", "it has devices and wants whole programs"),
        ("no_table", "it gives no table"),
        ("no_symbol", "without the symbol `loopwright_plugin`"),
    ];
    for (name, expected) in cases {
        let message = refused(&liar(directory.path(), name)).to_string();
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn files_that_are_no_libraries_are_refused() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    let message = refused(&at("absent.so")).to_string();
    assert!(message.contains("it is not there"), "{message}");
    let message = refused(directory.path()).to_string();
    assert!(message.contains("it is a directory"), "{message}");
    let message = refused(Path::new("/dev/zero")).to_string();
    assert!(message.contains("it is not a regular file"), "{message}");

    fs::write(at("text.so"), "not a library\n").expect("the directory is ours");
    set_mode(&at("text.so"), 0o644);
    let error = refused(&at("text.so"));
    assert!(matches!(error, PluginError::Library { .. }), "{error}");
    assert!(!error.to_string().contains("/proc/"), "{error}");
    fs::write(at("empty.so"), "").expect("the directory is ours");
    set_mode(&at("empty.so"), 0o644);
    let error = refused(&at("empty.so"));
    assert!(matches!(error, PluginError::Library { .. }), "{error}");
}

/// Files that somebody else could have put there. Nothing of them is loaded, so that they are no libraries does
/// not show.
#[test]
fn files_that_others_could_change_are_refused() {
    let directory = directory();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).expect("the directory is ours");
    set_mode(&inner, 0o755);
    let file = inner.join("plugin.so");
    fs::write(&file, "nothing").expect("the directory is ours");
    set_mode(&file, 0o644);
    let trusted = |path: &Path| !matches!(refused(path), PluginError::Untrusted { .. });
    assert!(trusted(&file), "nobody else can write it");

    for mode in [0o666, 0o664, 0o646] {
        set_mode(&file, mode);
        let message = refused(&file).to_string();
        let expected = format!("may be written by others (mode {mode:o}); `chmod go-w` it");
        assert!(message.contains(&expected), "{message}");
    }
    set_mode(&file, 0o644);

    for mode in [0o777, 0o775] {
        set_mode(&inner, mode);
        let message = refused(&file).to_string();
        let expected = format!("the directory {} may be written", inner.display());
        assert!(message.contains(&expected), "{message}");
        // Through a link from a good place it is the same file.
        let link = directory.path().join("link.so");
        let _ = fs::remove_file(&link);
        symlink(&file, &link).expect("the directory is ours");
        let error = refused(&link);
        assert!(matches!(error, PluginError::Untrusted { .. }), "{error}");
    }
    set_mode(&inner, 0o1777);
    assert!(trusted(&file), "in a sticky directory nobody replaces it");
    set_mode(&inner, 0o755);

    // Only the administrator can make somebody else's files.
    let somebody = 54321;
    if chown(&file, Some(somebody), None).is_err() {
        eprintln!("SKIP: files of somebody else, which only root can make");
        return;
    }
    let message = refused(&file).to_string();
    assert!(
        message.contains("belongs to user 54321, who could change it"),
        "{message}"
    );
    chown(&file, Some(0), None).expect("we are the administrator");
    chown(&inner, Some(somebody), None).expect("we are the administrator");
    let message = refused(&file).to_string();
    assert!(
        message.contains("belongs to user 54321, who could put another file there"),
        "{message}"
    );
}

/// What a run of a small program says.
fn run(backend: &Backend) -> Result<(), String> {
    run_with(backend, CompileOptions::default())
}

fn run_with(backend: &Backend, options: CompileOptions) -> Result<(), String> {
    let text = "loopwright program 1\ninput x: f32[i=3]\noutput y = exp(x)\n";
    let source = Source::new("small.lw", text);
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    let compiler = Compiler::new(backend.clone(), options);
    let program = compiler.compile(&graph, None).map_err(|e| e.to_string())?;
    let mut bound = program.bind(&[]).map_err(|error| error.to_string())?;
    let x = [1.0f32, 2.0, 3.0];
    bound
        .input_slice("x", &x)
        .map_err(|error| error.to_string())?;
    bound.run().map_err(|error| error.to_string())
}

/// Plug-ins that break their word when they are used give errors that name them, and the process goes on.
#[test]
fn lies_at_run_time_are_errors() {
    if !has_compiler() {
        return;
    }
    let directory = directory();
    let cases = [
        ("no_code", "it says that it is done, and gives no code"),
        ("silent", "does not say why"),
        (
            "garbage_compile",
            "it gives the status 77, which is none; it says: all is well",
        ),
        ("garbage_run", "it gives the status 99, which is none"),
        (
            "garbage_error",
            "out of \u{fffd}\u{fffd} (it wrote text that is not UTF-8)",
        ),
    ];
    for (name, expected) in cases {
        let file = liar(directory.path(), name);
        let plugin = load(&file).unwrap_or_else(|error| panic!("{error}"));
        for _ in 0..2 {
            let message = run(plugin.backend()).expect_err(name);
            assert!(message.contains(expected), "{name}: {message}");
            assert!(message.contains(plugin.name()), "{name}: {message}");
            assert!(message.contains(&*file.to_string_lossy()), "{message}");
        }
    }

    let file = liar(directory.path(), "garbage_availability");
    let plugin = load(&file).unwrap_or_else(|error| panic!("{error}"));
    let why = plugin
        .backend()
        .availability()
        .expect_err("it says nonsense");
    assert!(why.broken, "{why}");
    for expected in ["garbage-availability", "the status 42, which is none"] {
        assert!(why.to_string().contains(expected), "{why}");
    }
}

/// The same of plug-ins that bring devices.
#[test]
fn lies_about_devices_are_errors() {
    if !has_compiler() {
        return;
    }
    let directory = directory();
    let cases = [
        ("device_honest", "there is nothing to launch"),
        ("device_many", "it has 4294967295 devices, which cannot be"),
        ("device_closed", "the lid is shut"),
        ("device_no_handle", "device 0 is open, and gives none"),
        (
            "device_no_memory",
            "bytes are allocated, and gives no memory",
        ),
        ("device_no_launch", "is prepared, and gives no launch"),
        (
            "device_garbage",
            "it gives the status 77, which is none; it says: perhaps",
        ),
    ];
    for (name, expected) in cases {
        let file = liar(directory.path(), name);
        let plugin = load(&file).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(plugin.backend().level(), Level::Device);
        for _ in 0..2 {
            let message = run(plugin.backend()).expect_err(name);
            assert!(message.contains(expected), "{name}: {message}");
            assert!(message.contains(&*file.to_string_lossy()), "{message}");
        }
        let devices = plugin.backend().devices().expect("it brings devices");
        let limits = devices[0].limits();
        assert!(
            !limits.description.is_empty() && limits.threads > 0,
            "{limits:?}"
        );
        if name == "device_honest" {
            assert_eq!(limits.description, "a device for tests");
            let error = devices[0].allocate(5000).err().expect("it has 4096 bytes");
            assert_eq!(
                error.to_string(),
                "out of memory: cannot allocate 5000 bytes"
            );
        }
    }
}

/// What a plug-in is given, in each form.
#[test]
fn programs_come_in_the_form_that_is_wanted() {
    use loopwright_plugin::abi::{LW_FORM_C, LW_FORM_C99, LW_FORM_KERNEL, LW_FORM_PROGRAM};
    if !has_compiler() {
        return;
    }
    let directory = directory();
    let c = [
        "schedule<>",
        "kernel<program>",
        "symbol<lw_kernel_program>",
        "math<expf>",
    ];
    let cases: [(u32, Level, &str, &[&str]); 4] = [
        (
            LW_FORM_KERNEL,
            Level::Kernel,
            "text<loopwright kernel 1\n",
            &["schedule<>", "kernel<program>", "symbol<>"],
        ),
        (LW_FORM_C, Level::Kernel, "text<// C by Loopwright", &c),
        (LW_FORM_C99, Level::Kernel, "text<// C99 by Loopwright", &c),
        (
            LW_FORM_PROGRAM,
            Level::Loop,
            "text<loopwright program 1\n",
            &[
                "schedule<loopwright schedule 1\n",
                "kernel<program>",
                "symbol<>",
            ],
        ),
    ];
    for (form, level, begin, parts) in cases {
        let plugin = load(&parrot(directory.path(), form));
        let plugin = plugin.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(plugin.backend().level(), level);
        for (strict, word) in [(true, "> strict"), (false, "> not strict")] {
            let options = CompileOptions {
                strict,
                ..CompileOptions::default()
            };
            let message = run_with(plugin.backend(), options).expect_err("it compiles nothing");
            let parts = parts.iter().chain([&begin, &word]);
            for part in parts {
                assert!(message.contains(part), "form {form}, {part}: {message}");
            }
        }
    }
}

/// What was built before anything was added to the table works as it did.
#[test]
fn plug_ins_of_the_first_header_load() {
    if !has_compiler() {
        return;
    }
    let directory = directory();
    let first = load(&example_c_with_first_header(directory.path()));
    let first = first.unwrap_or_else(|error| panic!("{error}"));
    let capabilities = first.backend().capabilities();
    assert!(capabilities.structs && capabilities.math.is_exact());
    assert_eq!(first.backend().level(), Level::Kernel);
    run(first.backend()).unwrap_or_else(|error| panic!("{error}"));
}

/// A plug-in that does not say that it is thread-safe is called by one thread at a time.
#[test]
fn plug_ins_take_turns() {
    if !has_compiler() {
        return;
    }
    let directory = directory();
    let plugin = load(&liar(directory.path(), "one_at_a_time"));
    let plugin = plugin.unwrap_or_else(|error| panic!("{error}"));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    run(plugin.backend()).unwrap_or_else(|error| panic!("{error}"));
                }
            });
        }
    });
}

fn names(plugins: &[Plugin]) -> Vec<&str> {
    plugins.iter().map(Plugin::name).collect()
}

#[test]
fn directories_are_searched_and_names_are_unique() {
    if !has_compiler() {
        return;
    }
    let place = directory();
    let honest = liar(place.path(), "honest");
    let same = liar(place.path(), "same_name");
    let version = liar(place.path(), "wrong_version");
    // What is no library by its name is passed over, and so is what lies deeper.
    fs::write(place.path().join("README"), "Plug-ins live here.").expect("the directory is ours");
    fs::create_dir(place.path().join("old")).expect("the directory is ours");
    fs::copy(&honest, place.path().join("old/older.so")).expect("the directory is ours");

    // One that is asked for is not loaded again from its directory.
    let absent = place.path().join("absent");
    let (plugins, problems) = load_all(
        &[place.path().to_owned(), absent.clone()],
        std::slice::from_ref(&honest),
    );
    assert_eq!(names(&plugins), ["honest"]);
    let told: Vec<(&Path, bool)> = problems
        .iter()
        .map(|problem| (problem.error.path(), problem.asked))
        .collect();
    let expected = [(&*same, false), (&*version, false), (&*absent, false)];
    assert_eq!(told, expected, "{problems:?}");
    let message = problems[0].to_string();
    let expected = format!(
        "the plug-in {} is called `honest`, and so is the plug-in {}",
        same.display(),
        honest.display()
    );
    assert_eq!(message, expected);

    let plugin = &plugins[0];
    assert_eq!(plugin.description(), "for tests");
    assert_eq!((plugin.priority(), plugin.path()), (0, &*honest));
    assert_eq!(plugin.backend().level(), Level::Kernel);
    assert_eq!(plugin.backend().capabilities().vector_lanes, 16);
    let message = run(plugin.backend()).expect_err("it runs nothing");
    assert!(message.contains("there is nothing to run"), "{message}");

    plugin.register().expect("the name is free");
    let known = loopwright_backend::backends();
    assert!(known.iter().any(|backend| backend.name() == "honest"));
    let error = plugin.register().expect_err("it is registered already");
    assert!(matches!(error, PluginError::NameTaken { .. }), "{error}");

    // All of it again: everything is there already, or wrong.
    let (plugins, errors) = scan(place.path());
    assert_eq!((plugins.len(), errors.len()), (0, 3), "{errors:?}");
    let (_, problems) = load_all(&[], std::slice::from_ref(&version));
    assert!(problems.len() == 1 && problems[0].asked, "{problems:?}");
    assert!(scan(&absent).1[0].to_string().contains("it is not there"));
}
