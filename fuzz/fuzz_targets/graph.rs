//! Any text as programs: an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopwright_conformance::generate::random_case;
use loopwright_conformance::mutate::{Form, read};

fuzz_target!(|text: &str| {
    // This form belongs to no program.
    let graph = random_case(0).graph;
    read(Form::Graph, text, &graph);
});
