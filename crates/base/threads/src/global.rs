//! The fork-join pool of the process.

use crate::error::ThreadsError;
use crate::fork::ProcessMutex;
use crate::fork_join::{ForkJoin, MOST_THREADS, Pinning, refuse_too_many};
use std::ffi::OsStr;
use std::num::NonZero;
use std::sync::OnceLock;

/// The pool, or why there is none, from its first use on.
static GLOBAL: OnceLock<Result<ForkJoin, ThreadsError>> = OnceLock::new();

/// How many threads it is to have, if somebody said. Locked while the pool is made, so that what is said
/// is either heeded or refused. A fork waits until the pool is made, so that a child finds it made or not begun.
static CONFIGURED: ProcessMutex<Option<NonZero<usize>>> = ProcessMutex::new(None);

impl ForkJoin {
    /// The pool of the process, made on first use: as many threads as
    /// [`configure`](ForkJoin::configure) said, or else as `LOOPWRIGHT_THREADS` says, which is read once,
    /// or else as there are cores. They are not pinned: other processes of the same kind would pin
    /// theirs to the same cores.
    ///
    /// # Errors
    /// [`ThreadsError::Threads`] where `LOOPWRIGHT_THREADS` is no number of threads,
    /// [`ThreadsError::Thread`] where a thread cannot be started; then the same error at every use.
    pub fn global() -> Result<&'static ForkJoin, ThreadsError> {
        let pool = match GLOBAL.get() {
            Some(pool) => pool,
            None => {
                let configured = CONFIGURED.lock();
                GLOBAL.get_or_init(|| new_pool(*configured))
            }
        };
        match pool {
            Ok(pool) if !pool.has_workers() => in_child(),
            pool => pool.as_ref().map_err(ThreadsError::clone),
        }
    }

    /// Sets how many threads the pool of the process has, before its first use. It wins over
    /// `LOOPWRIGHT_THREADS`; said twice, the later one counts. No thread is started yet.
    ///
    /// # Errors
    /// [`ThreadsError::TooManyThreads`] where no pool can be that large,
    /// [`ThreadsError::AlreadyStarted`] where the pool was used before and has another size; where it
    /// could not be made, why.
    pub fn configure(threads: NonZero<usize>) -> Result<(), ThreadsError> {
        refuse_too_many(threads)?;
        let mut configured = CONFIGURED.lock();
        match GLOBAL.get() {
            None => *configured = Some(threads),
            Some(Err(error)) => return Err(error.clone()),
            Some(Ok(pool)) if pool.threads() == threads => {}
            Some(Ok(pool)) => {
                return Err(ThreadsError::AlreadyStarted {
                    threads: pool.threads().get(),
                    wanted: threads.get(),
                });
            }
        }
        Ok(())
    }
}

fn new_pool(configured: Option<NonZero<usize>>) -> Result<ForkJoin, ThreadsError> {
    let threads = match configured {
        Some(threads) => threads,
        None => threads(std::env::var_os("LOOPWRIGHT_THREADS").as_deref())?,
    };
    ForkJoin::new(threads, Pinning::Free)
}

/// The pool of a process that was forked from one with a pool; one for each such process.
fn in_child() -> Result<&'static ForkJoin, ThreadsError> {
    static POOL: ProcessMutex<Option<&'static ForkJoin>> = ProcessMutex::new(None);
    let configured = *CONFIGURED.lock();
    let mut pool = POOL.lock();
    match *pool {
        Some(pool) if pool.has_workers() => Ok(pool),
        // Kept as long as the process, as the first one is.
        _ => Ok(*pool.insert(Box::leak(Box::new(new_pool(configured)?)))),
    }
}

/// How many threads the pool has, given the environment's wish.
fn threads(wish: Option<&OsStr>) -> Result<NonZero<usize>, ThreadsError> {
    let Some(wish) = wish else {
        // Where the system does not say, one is right everywhere.
        return Ok(std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN));
    };
    wish.to_str()
        .and_then(|wish| wish.trim().parse::<NonZero<usize>>().ok())
        .filter(|threads| threads.get() <= MOST_THREADS)
        .ok_or_else(|| ThreadsError::Threads {
            value: wish.to_string_lossy().into_owned(),
            most: MOST_THREADS,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_sets_the_number_of_threads() {
        let read = |wish: &str| threads(Some(OsStr::new(wish))).map(NonZero::get);
        assert_eq!(read("1").ok(), Some(1));
        assert_eq!(read(" 12 ").ok(), Some(12));
        assert_eq!(read("4096").ok(), Some(4096));
        assert!(threads(None).is_ok_and(|threads| threads.get() >= 1));
    }

    #[test]
    fn a_wrong_number_of_threads_is_refused_by_name() {
        for wish in ["", "0", "-1", "many", "1.5", "4097", "99999999999999999999"] {
            let error = threads(Some(OsStr::new(wish))).expect_err(wish).to_string();
            assert_eq!(
                error,
                format!("LOOPWRIGHT_THREADS is `{wish}`; it takes a number from 1 to 4096")
            );
        }
    }
}
