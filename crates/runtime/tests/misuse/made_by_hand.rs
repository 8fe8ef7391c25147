//! Streams come from devices, contexts from streams, routines from links.

use loopwright_runtime::{Context, Routine, Stream};

fn main() {
    let _ = Stream {};
    let _ = Context {};
    let _ = Routine {};
}
