//! The process that measures: what a candidate can harm.

use super::protocol::{Reply, Request, read, write};
use super::{Bench, Trial};
use std::io;
use std::path::PathBuf;
use std::process::exit;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// Measures what it is told on the standard input, and answers on the standard output, until the input ends.
/// This is the whole of the program that [`super::Process`] starts.
///
/// When the input ends, so does the process, whatever it is doing: nobody waits for it any more.
///
/// # Errors
/// Pipes that break.
pub fn serve() -> io::Result<()> {
    let mut output = io::stdout().lock();
    let scratch: Arc<Mutex<Option<PathBuf>>> = Arc::default();
    let (send, requests) = mpsc::channel::<Request>();
    let to_remove = Arc::clone(&scratch);
    // A thread of its own reads: a candidate that never ends must not outlive whoever asked for it.
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(request)) = read(&mut input) {
            if send.send(request).is_err() {
                break;
            }
        }
        let scratch = to_remove
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(scratch) = scratch {
            // It may be gone already.
            let _ = std::fs::remove_dir_all(scratch);
        }
        exit(0);
    });
    let mut bench: Option<Bench> = None;
    for request in requests {
        match request {
            Request::Begin {
                work,
                expected,
                scratch: directory,
            } => {
                *scratch.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory);
                match Bench::new(work, expected) {
                    Ok(made) => {
                        bench = Some(made);
                        write(&mut output, &Reply::Ready)?;
                    }
                    Err(error) => write(&mut output, &Reply::Unable(error.to_string()))?,
                }
            }
            Request::Measure(trial) => match &mut bench {
                None => write(&mut output, &Reply::Unable("it has not begun".to_owned()))?,
                Some(bench) => measure(bench, &trial, &mut output)?,
            },
        }
    }
    Ok(())
}

fn measure(bench: &mut Bench, trial: &Trial, output: &mut impl io::Write) -> io::Result<()> {
    let mut broken = None;
    let outcome = bench.trial(trial, &mut |phase| {
        if let Err(error) = write(output, &Reply::Doing(phase)) {
            broken.get_or_insert(error);
        }
    });
    match broken {
        Some(error) => Err(error),
        None => write(output, &Reply::Done(outcome)),
    }
}
