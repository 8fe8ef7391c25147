//! A directory with files in which the built binary runs, away from the person's own settings.

// Each test program uses some of this.
#![allow(dead_code)]

use loopwright::npy;
use loopwright::ops::{DType, Scalar};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The directory.
pub struct Sandbox {
    directory: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        Sandbox {
            directory: tempfile::tempdir().expect("a temporary directory"),
            variables: Vec::new(),
        }
    }

    /// Sets an environment variable for all runs.
    pub fn with_variable(mut self, name: &str, value: &str) -> Sandbox {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a program; the header line is added.
    pub fn program(&self, name: &str, lines: &str) {
        self.file(name, &format!("loopwright program 1\n{lines}"));
    }

    pub fn file(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("the directory is ours");
    }

    /// Writes an `.npy` file of these values.
    pub fn array(&self, name: &str, dtype: DType, shape: &[usize], values: &[f64]) {
        let mut bytes = vec![0; values.len() * dtype.bytes()];
        for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(dtype.bytes())) {
            Scalar::from_f64(dtype, *value).write(bytes);
        }
        let mut file = Vec::new();
        npy::write(&mut file, dtype, shape, &bytes).expect("values fit the shape");
        std::fs::write(self.path(name), file).expect("the directory is ours");
    }

    /// Reads an `.npy` file: shape and values.
    pub fn values(&self, name: &str, dtype: DType) -> (Vec<usize>, Vec<f64>) {
        let bytes = std::fs::read(self.path(name)).expect("the file was written");
        let mut reader = bytes.as_slice();
        let header = npy::Header::read(&mut reader).expect("a whole header");
        let elements = header.read_elements(&mut reader, dtype);
        let elements = elements.expect("all elements");
        let values = elements.chunks_exact(dtype.bytes());
        let values = values.map(|bytes| Scalar::read(dtype, bytes).to_f64());
        (header.shape, values.collect())
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loopwright"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let ours = name.to_string_lossy().starts_with("LOOPWRIGHT_");
            if ours || name == "CC" || name == "RUST_BACKTRACE" {
                command.env_remove(name);
            }
        }
        command
            .env("LOOPWRIGHT_CACHE_DIR", self.path("cache"))
            .env("XDG_CONFIG_HOME", self.path("personal"));
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output();
        output.expect("the binary was built")
    }

    /// What a run prints that succeeds.
    pub fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?} failed:\n{errors}"
        );
        assert_eq!(errors, "", "{arguments:?} complains");
        String::from_utf8(output.stdout).expect("output is text")
    }

    /// The document that a run prints that succeeds.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.succeed(arguments);
        match serde_json::from_str(&text) {
            Ok(value) => value,
            Err(error) => panic!("{arguments:?} does not print JSON: {error}\n{text}"),
        }
    }

    /// What a run complains that fails with this exit code, having printed nothing else.
    pub fn fail(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}:\n{errors}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
        errors
    }
}

/// Whether the machine has a C compiler, so that the device `cc` is available.
pub fn has_compiler() -> bool {
    let document = Sandbox::new().json(&["devices", "--json"]);
    let devices = document["devices"].as_array().expect("a list");
    devices
        .iter()
        .any(|device| device["name"] == "cc" && device["available"] == true)
}
