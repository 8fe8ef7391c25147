//! The compiler and what it keeps in the cache: hits, damage, races, refusals and failures.
#![cfg(unix)]

mod harness;

use harness::{Buffer, backend};
use loopwright_backend::{
    Argument, BackendError, CompileOptions, Describe, Executable, KernelBackend,
};
use loopwright_cc::{CcBackend, Settings};
use loopwright_files::cache::{clear, entries};
use loopwright_kernel::{Access, Builder, FunctionKind, Module, Space};
use loopwright_ops::DType;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A module whose kernel `fill` writes `value` to the first element.
fn module(value: i64) -> Module {
    let mut b = Builder::new("fill", FunctionKind::Kernel { group: None });
    let p = b.param_ptr(DType::I64, Space::Global, "p", Access::Write, true);
    let (zero, value) = (b.const_i64(0), b.const_i64(value));
    b.store(p, zero, value);
    Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    }
}

fn filled(executable: &dyn Executable) -> i64 {
    let mut out = Buffer::zeroed(DType::I64, 1);
    // SAFETY: the kernel writes one element.
    unsafe { executable.run("fill", &mut [Argument::Write(out.bytes_mut())]) }
        .expect("the call fits");
    out.values(DType::I64)[0].as_i64().expect("an integer")
}

fn cached(directory: &Path) -> CompileOptions {
    CompileOptions {
        strict: false,
        cache: Some(directory.to_owned()),
        ..CompileOptions::default()
    }
}

fn with_extension(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory.join("cc"))
        .expect("the cache is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

/// A directory in which a new one is made for the cache.
fn fresh() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cache = directory.path().join("cache");
    (directory, cache)
}

#[test]
fn the_second_compilation_is_a_hit() {
    let Some(backend) = backend() else { return };
    let (_guard, cache) = fresh();
    let options = cached(&cache);
    let first = backend.compile(&module(41), &options).expect("it compiles");
    assert!(!first.from_cache());
    assert_eq!(filled(&*first), 41);
    let mode = fs::metadata(cache.join("cc"))
        .expect("the directory")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);

    // Another backend, as another process would have.
    let second = CcBackend::from_env()
        .compile(&module(41), &options)
        .expect("it is there");
    assert!(second.from_cache());
    assert_eq!(filled(&*second), 41);
    let log = first.log().expect("a compiler ran");
    assert!(
        log.contains(" -shared ") && log.contains("module.c"),
        "{log}"
    );
    assert_eq!(second.log(), Some(log), "the cache keeps it");
    // Anything that matters makes another key.
    let other = backend.compile(&module(42), &options).expect("it compiles");
    assert!(!other.from_cache());
    // Nothing in it is rounded otherwise in strict mode, so that its text is the same.
    let strict = CompileOptions {
        strict: true,
        ..options.clone()
    };
    let same = backend.compile(&module(41), &strict).expect("it is there");
    assert!(same.from_cache());

    let listed = entries(&cache).expect("the cache can be read");
    assert_eq!(listed.len(), 2);
    assert!(
        listed
            .iter()
            .all(|entry| entry.backend == "cc" && entry.kernels == ["fill"] && entry.bytes > 1000)
    );
    let cleared = clear(&cache).expect("the cache can be cleared");
    assert_eq!(cleared.count, 2);
    assert_eq!(
        cleared.bytes,
        listed.iter().map(|entry| entry.bytes).sum::<u64>()
    );
    assert!(entries(&cache).expect("the cache can be read").is_empty());
    // What was loaded still runs.
    assert_eq!(filled(&*second), 41);
}

#[test]
fn there_need_be_no_cache_to_list_or_clear() {
    let (_guard, cache) = fresh();
    assert!(entries(&cache).expect("none").is_empty());
    assert_eq!(clear(&cache).expect("none").count, 0);
}

#[test]
fn damaged_entries_are_made_again() {
    let Some(backend) = backend() else { return };
    let (_guard, cache) = fresh();
    let options = cached(&cache);
    drop(backend.compile(&module(7), &options).expect("it compiles"));
    let library = with_extension(&cache, "so").remove(0);
    let meta = with_extension(&cache, "meta").remove(0);
    let whole = fs::read(&library).expect("the library");
    let damages: [&dyn Fn(); 4] = [
        &|| fs::write(&library, &whole[..whole.len() / 2]).expect("truncated"),
        &|| {
            let mut bytes = whole.clone();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&library, bytes).expect("one bit flipped");
        },
        &|| fs::write(&meta, "something else\n").expect("overwritten"),
        &|| fs::remove_file(&library).expect("removed"),
    ];
    for damage in damages {
        damage();
        let again = backend.compile(&module(7), &options).expect("it compiles");
        assert!(!again.from_cache());
        assert_eq!(filled(&*again), 7);
        drop(again);
        assert!(
            backend
                .compile(&module(7), &options)
                .expect("it is there")
                .from_cache()
        );
    }
}

#[test]
fn several_at_once_agree() {
    let Some(_) = backend() else { return };
    let (_guard, cache) = fresh();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let backend = CcBackend::from_env();
                for value in 0..3 {
                    let executable = backend
                        .compile(&module(value), &cached(&cache))
                        .expect("it compiles");
                    assert_eq!(filled(&*executable), value);
                }
            });
        }
    });
    assert_eq!(entries(&cache).expect("the cache can be read").len(), 3);
    assert!(
        fs::read_dir(cache.join("cc"))
            .expect("the directory")
            .all(|entry| !entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .starts_with(".new-")),
        "nothing half-written is left"
    );
}

#[test]
fn a_cache_that_others_can_write_to_is_not_used_and_nothing_fails() {
    let Some(backend) = backend() else { return };
    let (_guard, cache) = fresh();
    fs::create_dir_all(cache.join("cc")).expect("the directory");
    for (path, mode) in [(cache.join("cc"), 0o777), (cache.clone(), 0o775)] {
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o700)).expect("own directory");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("own directory");
        for _ in 0..2 {
            let code = backend.compile(&module(1), &cached(&cache));
            assert!(!code.expect("it is made").from_cache(), "nothing is kept");
        }
        let kept = fs::read_dir(cache.join("cc")).expect("the directory");
        assert_eq!(kept.count(), 0, "nothing is put there");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("own directory");
    }
}

#[test]
fn a_cache_that_cannot_be_written_makes_nothing_fail() {
    let Some(backend) = backend() else { return };
    let (_guard, cache) = fresh();
    // A file in the place of the directory, and one in the place of the backend's part.
    fs::write(&cache, b"").expect("room");
    let code = backend.compile(&module(1), &cached(&cache));
    assert!(!code.expect("it is made").from_cache());
    fs::remove_file(&cache).expect("it is ours");
    fs::create_dir(&cache).expect("room");
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o700)).expect("own directory");
    fs::write(cache.join("cc"), b"").expect("room");
    let code = backend.compile(&module(1), &cached(&cache));
    assert!(!code.expect("it is made").from_cache());
}

#[test]
fn a_missing_compiler_is_unavailable() {
    let settings = Settings {
        compiler: "/nowhere/cc".to_owned(),
        ..Settings::default()
    };
    let backend = CcBackend::new(settings);
    let why = backend.availability().expect_err("there is none");
    assert!(why.reason.contains("/nowhere/cc"), "{why}");
    let error = backend
        .compile(&module(1), &CompileOptions::default())
        .err()
        .expect("no compiler");
    assert!(
        error
            .to_string()
            .starts_with("backend `cc` is not available: the C compiler"),
        "{error}"
    );
}

/// A compiler that says what a script wants, in a directory of its own.
fn scripted(script: &str, timeout: Duration) -> (tempfile::TempDir, CcBackend) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("fake-cc");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("the script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("own file");
    let compiler = path.display().to_string();
    let settings = Settings {
        compiler,
        timeout,
        ..Settings::default()
    };
    (directory, CcBackend::new(settings))
}

#[test]
fn a_compiler_that_does_not_work_is_unavailable() {
    let (_guard, backend) = scripted("echo out of order; exit 3", Duration::from_secs(60));
    let why = backend.availability().expect_err("it does not work");
    assert!(why.reason.contains("out of order"), "{why}");
}

#[test]
fn a_compiler_that_fails_shows_its_log_and_the_line() {
    let script = "case \" $* \" in *\" -E \"*) echo fake version 1; exit 0;; esac\n\
                  for file; do case \"$file\" in *.c) echo \"$file:1:4: error: no such comment\";; esac; done\n\
                  exit 1";
    let (_guard, backend) = scripted(script, Duration::from_secs(60));
    let error = backend
        .compile(&module(1), &CompileOptions::default())
        .err()
        .expect("it fails");
    let BackendError::Compiler {
        source_path, log, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert!(log.contains("error: no such comment"), "{log}");
    assert!(
        log.contains("line 1 of the source: // C by Loopwright"),
        "{log}"
    );
    let kept = fs::read_to_string(source_path).expect("the source was kept");
    assert!(kept.contains("lw_kernel_fill"));
    fs::remove_dir_all(Path::new(source_path).parent().expect("a directory")).expect("tidied up");
}

#[test]
fn a_compiler_that_hangs_is_killed() {
    let script = "case \" $* \" in *\" -E \"*) echo fake version 1; exit 0;; esac\nsleep 1000";
    let (_guard, backend) = scripted(script, Duration::from_secs(1));
    let error = backend
        .compile(&module(1), &CompileOptions::default())
        .err()
        .expect("it hangs");
    let BackendError::Compiler {
        source_path, log, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert!(log.contains("was killed after 1 seconds"), "{log}");
    fs::remove_dir_all(Path::new(source_path).parent().expect("a directory")).expect("tidied up");
}

#[test]
fn flags_of_the_user_reach_a_real_compiler() {
    let Some(_) = backend() else { return };
    let settings = Settings {
        flags: vec!["-Dvoid=nonsense".to_owned()],
        ..Settings::from_env()
    };
    let backend = CcBackend::new(settings);
    let error = backend
        .compile(&module(1), &CompileOptions::default())
        .err()
        .expect("it fails");
    let BackendError::Compiler {
        source_path, log, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert!(log.contains("error:"), "{log}");
    fs::remove_dir_all(Path::new(source_path).parent().expect("a directory")).expect("tidied up");
}
