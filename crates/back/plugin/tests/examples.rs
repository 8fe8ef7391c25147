//! The whole conformance suite on the two examples.
#![cfg(unix)]

mod build;

use loopwright_backend::Backend;
use loopwright_plugin::load;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Loads a plug-in once for all tests of this file.
fn loaded(slot: &'static OnceLock<Backend>, make: fn(&Path) -> PathBuf) -> Backend {
    let backend = slot.get_or_init(|| {
        // What is loaded stays loaded when its file is gone.
        let directory = build::directory();
        let plugin = load(&make(directory.path()));
        let plugin = plugin.unwrap_or_else(|error| panic!("{error}"));
        plugin.backend().clone()
    });
    backend.clone()
}

mod rust {
    use super::*;

    fn make() -> Option<Backend> {
        static BACKEND: OnceLock<Backend> = OnceLock::new();
        Some(loaded(&BACKEND, build::example_rust))
    }

    loopwright_conformance::conformance_tests!(make());
}

mod c {
    use super::*;

    fn make() -> Option<Backend> {
        static BACKEND: OnceLock<Backend> = OnceLock::new();
        build::has_compiler().then(|| loaded(&BACKEND, build::example_c))
    }

    loopwright_conformance::conformance_tests!(make());

    /// It is given C99, and shows it.
    #[test]
    fn the_source_is_shown() {
        use loopwright_backend::CompileOptions;
        use loopwright_compile::Compiler;
        let Some(backend) = make() else {
            return;
        };
        let text = "loopwright program 1\ninput x: f32[i=3]\noutput y = x + 1\n";
        let source = loopwright_text::Source::new("small.lw", text);
        let graph = loopwright_graph::parse(&source).expect("the program is right");
        let compiler = Compiler::new(backend, CompileOptions::default());
        let program = compiler.compile(&graph, None);
        let program = program.unwrap_or_else(|error| panic!("{error}"));
        let code = program.code();
        assert!(code.starts_with("// C99 by Loopwright"), "{code}");
    }

    /// The Makefile builds what the tests build.
    #[test]
    fn the_makefile_works() {
        if make().is_none() {
            return;
        }
        let directory = build::directory();
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/plugins/c");
        let output = std::process::Command::new("make")
            .arg("-C")
            .arg(example)
            .arg(format!("OUT={}", directory.path().display()))
            .output();
        match output {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{said}");
                assert!(directory.path().join("example_c.so").is_file());
            }
            Err(error) if std::env::var_os("CI").is_none() => {
                eprintln!("SKIP: make does not start: {error}");
            }
            Err(error) => panic!("CI must have make: {error}"),
        }
    }
}
