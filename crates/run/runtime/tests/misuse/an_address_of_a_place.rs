//! A place is a pool and an offset; addresses stay with the device.

use loopwright_runtime::{Context, Loc};

fn address(loc: Loc) -> *mut u8 {
    loc.address
}

fn memory(context: &Context) {
    let _ = context.memory;
}

fn main() {
    let _ = (address, memory);
}
