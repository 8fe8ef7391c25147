//! A device's memory has no guard of its own: who uses it says that nobody else does.

use loopwright_runtime::{Call, Launch, Slab};

fn write(slab: &dyn Slab) {
    let _ = slab.write(0, &[1, 2, 3]);
}

fn read(slab: &dyn Slab, to: &mut [u8]) {
    let _ = slab.read(0, to);
}

fn launch(launch: &dyn Launch, call: &Call<'_>) {
    let _ = launch.run(call);
}

fn main() {
    let _ = (write, read, launch);
}
