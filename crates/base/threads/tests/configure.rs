//! The size of the process's pool. One test, since the process has one pool.

use loopwright_threads::{ForkJoin, ThreadsError};
use std::num::NonZero;

fn threads(threads: usize) -> NonZero<usize> {
    NonZero::new(threads).expect("not zero")
}

#[test]
fn the_size_is_set_before_the_first_use_and_not_after() {
    let error = ForkJoin::configure(threads(4097)).expect_err("too many");
    assert_eq!(
        error.to_string(),
        "a fork-join pool of 4097 threads was asked for; it has at most 4096"
    );
    ForkJoin::configure(threads(5)).expect("the pool is not used yet");
    ForkJoin::configure(threads(3)).expect("the pool is not used yet");
    let pool = ForkJoin::global().expect("three threads can be had");
    assert_eq!(pool.threads(), threads(3), "the later one counts");
    ForkJoin::configure(threads(3)).expect("it has that size");
    let error = ForkJoin::configure(threads(2)).expect_err("the pool was used");
    assert!(
        matches!(
            error,
            ThreadsError::AlreadyStarted {
                threads: 3,
                wanted: 2
            }
        ),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        "the fork-join pool of the process already has 3 threads; \
         2 must be asked for before its first use"
    );
    let pool = ForkJoin::global().expect("the error changed nothing");
    assert_eq!(pool.threads(), threads(3));
}
