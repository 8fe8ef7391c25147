//! A kernel may do anything to memory, and the validator does not show otherwise: who runs one, or lends it memory by
//! address, says that it stays within its arguments.

use loopwright_backend::{Argument, Executable, PreparedCall};
use loopwright_graph::Array;
use loopwright_ops::DType;

fn run(code: &dyn Executable, arguments: &mut [Argument<'_>]) {
    let _ = code.run("kernel", arguments);
}

fn call(prepared: &dyn PreparedCall) {
    let _ = prepared.call(&[], std::ptr::null());
}

fn lend(address: *const u8) {
    let _ = Array::foreign(DType::F32, &[1], address, Box::new(()));
}

fn main() {
    let _ = (run, call, lend);
}
