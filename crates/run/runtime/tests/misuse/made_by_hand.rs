//! Streams come from devices, contexts from streams, routines from links: none has a field to fill.

use loopwright_runtime::{Context, Routine, Stream};

fn main() {
    let _ = Stream { by: "hand" };
    let _ = Context { by: "hand" };
    let _ = Routine { by: "hand" };
}
