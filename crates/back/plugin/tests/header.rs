//! The C header is what `abi.rs` says, and compilers take it.

use std::path::{Path, PathBuf};
use std::process::Command;

const HEADING: &str = "\
/* The border between Loopwright and a plug-in that brings a backend. A plug-in is a shared library with one
 * symbol, loopwright_plugin, declared at the end of this file.
 *
 * Generated from crates/back/plugin/src/abi.rs; do not edit. */

#ifndef LW_PLUGIN_H
#define LW_PLUGIN_H";

const ENTRY: &str = "\
#if defined(_WIN32)
#define LW_EXPORT __declspec(dllexport)
#else
#define LW_EXPORT __attribute__((visibility(\"default\")))
#endif

#ifdef __cplusplus
extern \"C\" {
#endif

// The one symbol of a plug-in: says who it is. Gives null where it does not go with a host of that version.
LW_EXPORT const lw_plugin *loopwright_plugin(uint32_t abi_version, const lw_host *host);

#ifdef __cplusplus
}
#endif

#endif
";

/// What the types of `abi.rs` are called in C.
const NAMES: &[(&str, &str)] = &[
    ("Text", "lw_text"),
    ("Writer", "lw_writer"),
    ("Task", "lw_task"),
    ("ParallelFor", "lw_parallel_for"),
    ("HostTable", "lw_host"),
    ("Runtime", "lw_runtime"),
    ("Kernel", "lw_kernel"),
    ("Program", "lw_program"),
    ("Options", "lw_options"),
    ("Argument", "lw_argument"),
    ("Code", "lw_code"),
    ("CapabilityTable", "lw_capabilities"),
    ("OpAccuracy", "lw_op_accuracy"),
    ("Device", "lw_device"),
    ("DeviceMemory", "lw_memory"),
    ("Launch", "lw_launch"),
    ("DeviceLimits", "lw_device_limits"),
    ("LaunchArgument", "lw_launch_argument"),
    ("LaunchCall", "lw_launch_call"),
    ("DeviceTable", "lw_device_table"),
    ("TargetTable", "lw_target"),
    ("PluginTable", "lw_plugin"),
    ("Entry", "lw_entry"),
];

fn crate_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn generated() -> String {
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        header: Some(HEADING.to_owned()),
        trailer: Some(ENTRY.to_owned()),
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        no_includes: true,
        cpp_compat: true,
        usize_is_size_t: true,
        documentation_style: cbindgen::DocumentationStyle::C99,
        style: cbindgen::Style::Type,
        line_length: 100,
        tab_width: 4,
        ..cbindgen::Config::default()
    };
    for (rust, c) in NAMES {
        let (rust, c) = ((*rust).to_owned(), (*c).to_owned());
        config.export.include.push(rust.clone());
        config.export.rename.insert(rust, c);
    }
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(crate_file("src/abi.rs"))
        .generate()
        .expect("the header can be generated");
    let mut text = Vec::new();
    bindings.write(&mut text);
    String::from_utf8(text).expect("the header is text")
}

#[test]
fn the_header_is_what_the_source_says() {
    let path = crate_file("include/loopwright_plugin.h");
    let generated = generated();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, generated).expect("the header can be written");
        return;
    }
    let shipped = std::fs::read_to_string(&path).expect("the header is there");
    assert_eq!(
        shipped, generated,
        "the header (left) is not what the source says (right); BLESS=1 writes it anew"
    );
}

/// As C99 and as C++, without a warning.
#[test]
fn compilers_take_the_header() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let header = directory.path().join("loopwright_plugin.h");
    std::fs::write(header, generated()).expect("the directory is ours");
    let languages = [
        ("cc", "c", "-std=c99"),
        ("cc", "c", "-std=c11"),
        ("c++", "cc", "-std=c++11"),
    ];
    for (compiler, suffix, standard) in languages {
        let source = directory.path().join(format!("use.{suffix}"));
        let text = "#include \"loopwright_plugin.h\"\n#include \"loopwright_plugin.h\"\n\
                    int version(void) { return LW_ABI_VERSION; }\n";
        std::fs::write(&source, text).expect("the directory is ours");
        let output = Command::new(compiler)
            .args([standard, "-Wall", "-Wextra", "-pedantic", "-Werror"])
            .arg("-fsyntax-only")
            .arg(&source)
            .output();
        match output {
            Ok(output) => assert!(
                output.status.success(),
                "{compiler} {standard}: {}",
                String::from_utf8_lossy(&output.stderr)
            ),
            Err(error) if std::env::var_os("CI").is_none() => {
                eprintln!("SKIP: {compiler} does not start: {error}");
            }
            Err(error) => panic!("CI must have {compiler}: {error}"),
        }
    }
}
