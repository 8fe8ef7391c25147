//! What the host lends to a device stays lent.

use loopwright_graph::Array;
use loopwright_runtime::Context;

fn lend(context: &Context, mut array: Array) {
    let _ = context.with_host("x", array);
    array.bytes_mut()[0] = 1;
}

fn main() {
    let _ = lend;
}
