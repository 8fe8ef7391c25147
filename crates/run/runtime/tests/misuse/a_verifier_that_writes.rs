//! Who checks a run looks at memory, and leaves it alone.

use loopwright_runtime::Run;

fn mend(run: &Run<'_>) {
    run.after[0][0] = 0;
}

fn main() {
    let _ = mend;
}
