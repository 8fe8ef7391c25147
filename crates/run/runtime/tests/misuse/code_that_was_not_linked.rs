//! Code has no memory: it is linked before it is scheduled.

use loopwright_runtime::{Code, RuntimeError};

fn run(code: &Code) -> Result<(), RuntimeError> {
    code.schedule(&[])
}

fn main() {
    let _ = run;
}
