//! The thread that compiles and measures.

use super::{Bench, Measurement, News, Report};
use crate::history::Version;
use loopwright::looptree::Plan;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A plan to compile, and perhaps to measure.
pub(crate) struct Request {
    pub(crate) version: Version,
    pub(crate) plan: Plan,
    pub(crate) measure: bool,
}

/// The time that runs of a plan are repeated for.
const LONGEST: Duration = Duration::from_millis(250);

/// Runs after which the middle one says enough.
const MOST_RUNS: usize = 101;

const NAME: &str = "loopwright-measure";

/// Whether the caller is the thread that compiles and measures.
pub(crate) fn is_worker() -> bool {
    thread::current().name() == Some(NAME)
}

/// The other end of the thread. It is not waited for when this goes: a kernel may run for long.
pub(crate) struct Worker {
    requests: Sender<Request>,
    reports: Receiver<Report>,
}

impl Worker {
    /// Starts the thread.
    pub(crate) fn start(bench: impl Bench + 'static) -> std::io::Result<Worker> {
        let (requests, incoming) = channel();
        let (outgoing, reports) = channel();
        let bench = Box::new(bench);
        thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || serve(bench, &incoming, &outgoing))?;
        Ok(Worker { requests, reports })
    }

    /// Asks for a plan; what was asked for before is left as soon as that can be.
    pub(crate) fn ask(&self, request: Request) {
        // Where the thread has ended there are no reports, which says enough.
        let _ = self.requests.send(request);
    }

    /// What became known since the last call.
    pub(crate) fn news(&self) -> impl Iterator<Item = Report> + '_ {
        self.reports.try_iter()
    }
}

/// Requests, of which only the newest counts.
struct Queue<'a> {
    requests: &'a Receiver<Request>,
    newest: Option<Request>,
}

impl Queue<'_> {
    /// Whether there is something newer to do.
    fn waits(&mut self) -> bool {
        loop {
            match self.requests.try_recv() {
                Ok(request) => self.newest = Some(request),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => {
                    return self.newest.is_some();
                }
            }
        }
    }

    /// The newest request; `None` where there will be none.
    fn next(&mut self) -> Option<Request> {
        if !self.waits() {
            self.newest = self.requests.recv().ok();
            self.waits();
        }
        self.newest.take()
    }
}

fn serve(mut bench: Box<dyn Bench>, requests: &Receiver<Request>, reports: &Sender<Report>) {
    let mut queue = Queue {
        requests,
        newest: None,
    };
    while let Some(request) = queue.next() {
        let version = request.version;
        let tell = |news| reports.send(Report { version, news }).is_ok();
        let told = &mut |news| {
            // Nobody listens any more when the editor has ended, and then nothing comes either.
            let _ = tell(news);
        };
        // A mistake of ours in one schedule's code must not end the session.
        let done = catch_unwind(AssertUnwindSafe(|| {
            handle(&mut *bench, &request, &mut queue, told)
        }));
        let last = match done {
            Ok(Ok(news)) => news,
            Ok(Err(reason)) => News::Failed(reason),
            Err(panic) => {
                let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
                let said = said.unwrap_or_else(|| "a panic without a message".to_owned());
                News::Failed(format!(
                    "internal error: {said}; this is a mistake in Loopwright, please report it"
                ))
            }
        };
        if !tell(last) {
            return;
        }
    }
}

/// Does what is asked for; the last news come back.
fn handle(
    bench: &mut dyn Bench,
    request: &Request,
    queue: &mut Queue<'_>,
    tell: &mut dyn FnMut(News),
) -> Result<News, String> {
    tell(News::Compiling);
    let compiled = News::Compiled(bench.compile(&request.plan)?);
    if !request.measure {
        return Ok(compiled);
    }
    tell(compiled);
    if queue.waits() {
        return Ok(News::Dropped);
    }
    tell(News::Running);
    let measured = measure(bench, &request.plan, queue)?;
    Ok(measured.map_or(News::Dropped, News::Measured))
}

/// How fast it runs; `None` where something newer is waiting.
fn measure(
    bench: &mut dyn Bench,
    plan: &Plan,
    queue: &mut Queue<'_>,
) -> Result<Option<Measurement>, String> {
    let clock = Instant::now();
    // The first run brings code and arrays into the caches; it counts only where it is the only one.
    let first = bench.run()?;
    let mut times = Vec::new();
    while clock.elapsed() < LONGEST && times.len() < MOST_RUNS {
        if queue.waits() {
            return Ok(None);
        }
        times.push(bench.run()?);
    }
    times.sort_by(f64::total_cmp);
    let middle = times.get(times.len() / 2).copied().unwrap_or(first);
    Ok(Some(bench.judge(plan, middle)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Compiled;
    use crate::testing;
    use std::sync::mpsc;

    /// Compiles when it is told to; the number of compilations is the code.
    struct Slow {
        go: mpsc::Receiver<()>,
        compiled: usize,
    }

    impl Bench for Slow {
        fn compile(&mut self, _: &Plan) -> Result<Compiled, String> {
            self.go.recv().map_err(|error| error.to_string())?;
            self.compiled += 1;
            match self.compiled {
                2 => panic!("a broken invariant"),
                number => Ok(Compiled {
                    kernel: String::new(),
                    code: number.to_string(),
                    notes: Vec::new(),
                }),
            }
        }

        fn run(&mut self) -> Result<f64, String> {
            Ok(0.5)
        }

        fn judge(&mut self, _: &Plan, seconds: f64) -> Measurement {
            Measurement {
                seconds,
                flops_per_second: 0.0,
                bytes_per_second: 0.0,
                share: 0.0,
            }
        }
    }

    #[test]
    fn the_newest_plan_counts_and_a_panic_is_a_report() {
        let (go, wait) = mpsc::channel();
        let worker = Worker::start(Slow {
            go: wait,
            compiled: 0,
        });
        let worker = worker.expect("a thread can be started");
        let plan = testing::matmul();
        let ask = |version| {
            worker.ask(Request {
                version: Version(version),
                plan: plan.clone(),
                measure: true,
            });
        };
        let next = || worker.reports.recv().expect("the thread reports");
        ask(1);
        let begun = next();
        assert_eq!((begun.version, begun.news), (Version(1), News::Compiling));
        // While the first compiles two more are wanted: the first is not run, the second never begun.
        ask(2);
        ask(3);
        let press = || go.send(()).expect("the thread waits");
        press();
        assert!(matches!(next().news, News::Compiled(_)));
        assert_eq!(next().news, News::Dropped);
        let begun = next();
        assert_eq!((begun.version, begun.news), (Version(3), News::Compiling));
        press();
        let News::Failed(reason) = next().news else {
            panic!("a panic is a failure");
        };
        assert!(reason.contains("a broken invariant"), "{reason}");
        // The session goes on.
        ask(4);
        press();
        assert_eq!(next().news, News::Compiling);
        assert!(matches!(next().news, News::Compiled(Compiled { code, .. }) if code == "3"));
        assert_eq!(next().news, News::Running);
        assert!(matches!(next().news, News::Measured(m) if m.seconds == 0.5));
    }
}
