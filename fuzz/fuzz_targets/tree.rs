//! Any text as loop trees of a program chosen by its first byte: an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopwright_conformance::generate::random_case;
use loopwright_conformance::mutate::{Form, read};

fuzz_target!(|input: (u8, &str)| {
    let (seed, text) = input;
    let graph = random_case(u64::from(seed)).graph.with_stores();
    read(Form::Tree, text, &graph);
});
