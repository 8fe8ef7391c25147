//! Static symbols are integers.

use loopwright_runtime::Routine;

fn run(routine: &Routine) {
    let _ = routine.schedule(&[("batch", 0.5)]);
}

fn main() {
    let _ = run;
}
