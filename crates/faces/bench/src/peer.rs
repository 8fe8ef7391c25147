//! Peers: other systems, each in a process and a Python environment of its own.

use crate::BenchError;
use crate::race::Racer;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// What can go wrong with a peer.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// A peer that is not known.
    #[error("unknown peer `{0}`; this suite knows [{1}]")]
    Unknown(String, String),
    /// The environment could not be made.
    #[error("cannot prepare peer `{peer}`: {reason}")]
    Environment {
        /// The peer.
        peer: String,
        /// What happened.
        reason: String,
    },
    /// The peer died or answered something else.
    #[error("peer `{peer}` failed: {reason}")]
    Failed {
        /// The peer.
        peer: String,
        /// What happened.
        reason: String,
    },
}

/// A peer's packages, pinned, and the script that drives it.
struct Recipe {
    name: &'static str,
    /// The environment's name, which two ways to use one library share.
    environment: &'static str,
    packages: &'static [&'static str],
    script: &'static str,
}

/// A peer's script: the protocol, then what is the peer's own.
macro_rules! script {
    ($own:literal) => {
        concat!(include_str!("peers/serve.py"), "\n", include_str!($own))
    };
}

/// In the order of the tables.
const RECIPES: &[Recipe] = &[
    Recipe {
        name: "numpy",
        environment: "numpy",
        packages: &["numpy==2.4.6"],
        script: script!("peers/numpy.py"),
    },
    Recipe {
        name: "torch",
        environment: "torch",
        packages: TORCH,
        script: script!("peers/torch.py"),
    },
    Recipe {
        name: "torch-compile",
        environment: "torch",
        packages: TORCH,
        script: script!("peers/torch.py"),
    },
    Recipe {
        name: "jax",
        environment: "jax",
        packages: &["numpy==2.4.6", "jax==0.10.2", "jaxlib==0.10.2"],
        script: script!("peers/jax.py"),
    },
    Recipe {
        name: "onnxruntime",
        environment: "onnxruntime",
        packages: &["numpy==2.4.6", "onnx==1.23.2", "onnxruntime==1.31.1"],
        script: script!("peers/onnxruntime.py"),
    },
    Recipe {
        name: "tinygrad",
        environment: "tinygrad",
        packages: &["numpy<3", "tinygrad==0.14.0"],
        script: script!("peers/tinygrad.py"),
    },
    Recipe {
        name: "loop_tool",
        environment: "loop_tool",
        // numpy 1 is loop_tool's own limit.
        packages: &["numpy<2", "loop_tool==0.1.0"],
        script: script!("peers/loop_tool.py"),
    },
];

/// PyPI has only the build with CUDA, which does not load without NVIDIA's libraries: 5.4 GB in all.
const TORCH: &[&str] = &["numpy==2.4.6", "torch==2.15.0"];

/// The names of all peers, in the order of the tables.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    RECIPES.iter().map(|recipe| recipe.name)
}

/// Refuses a name that no peer has.
pub(crate) fn check_known(peer: &str) -> Result<(), PeerError> {
    recipe(peer).map(drop)
}

fn recipe(peer: &str) -> Result<&'static Recipe, PeerError> {
    let recipe = RECIPES.iter().find(|recipe| recipe.name == peer);
    recipe.ok_or_else(|| {
        let known: Vec<&str> = names().collect();
        PeerError::Unknown(peer.to_owned(), known.join(", "))
    })
}

/// Puts a script in the place of a peer's Python.
#[cfg(all(test, unix))]
pub(crate) fn pretend(peer: &str, folder: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let recipe = recipe(peer).expect("a known peer");
    let folder = folder.join(recipe.environment);
    let python = folder.join("env/bin/python");
    std::fs::create_dir_all(folder.join("env/bin")).expect("a folder");
    std::fs::write(folder.join("packages.txt"), recipe.packages.join("\n")).expect("a file");
    std::fs::write(&python, script).expect("a file");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&python, mode).expect("our own file");
}

/// A Python environment with a peer's packages.
pub struct Environment {
    recipe: &'static Recipe,
    folder: PathBuf,
}

impl Environment {
    /// The peer's environment below `folder`, made if it is not there; `say` hears about slow steps.
    pub fn prepare(
        peer: &str,
        folder: &Path,
        say: &dyn Fn(&str),
    ) -> Result<Environment, PeerError> {
        let recipe = recipe(peer)?;
        let problem = |reason: String| PeerError::Environment {
            peer: peer.to_owned(),
            reason,
        };
        let folder = folder.join(recipe.environment);
        let stamp = folder.join("packages.txt");
        let wanted = recipe.packages.join("\n");
        if std::fs::read_to_string(&stamp).ok().as_deref() != Some(wanted.as_str()) {
            say(&format!(
                "making a Python environment for {peer} ({})",
                recipe.packages.join(", ")
            ));
            std::fs::create_dir_all(&folder)
                .map_err(|error| problem(format!("cannot make {}: {error}", folder.display())))?;
            // What the packages before left there is not of these.
            let _ = std::fs::remove_dir_all(folder.join("compiled-once"));
            let env = folder.join("env");
            run(Command::new("python3")
                .arg("-m")
                .arg("venv")
                .arg("--clear")
                .arg(&env))
            .map_err(problem)?;
            let mut pip = Command::new(env.join("bin/python"));
            pip.args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ]);
            run(pip.args(recipe.packages)).map_err(problem)?;
            loopwright_files::write(&stamp, wanted.as_bytes())
                .map_err(|error| problem(format!("cannot write {}: {error}", stamp.display())))?;
        }
        Ok(Environment { recipe, folder })
    }

    /// The peer's name.
    pub fn name(&self) -> &'static str {
        self.recipe.name
    }

    /// Starts the peer, which may use so many threads.
    pub fn start(&self, threads: NonZero<usize>) -> Result<Peer, PeerError> {
        let name = self.recipe.name;
        let failed = |reason: String| PeerError::Failed {
            peer: name.to_owned(),
            reason,
        };
        let mut child = Command::new(self.folder.join("env/bin/python"))
            .args(["-c", self.recipe.script, name, &threads.to_string()])
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| failed(format!("cannot start it: {error}")))?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("its pipes are missing".to_owned()));
        };
        let mut peer = Peer {
            name,
            version: None,
            child,
            requests: Some(requests),
            answers: BufReader::new(answers),
        };
        // It says that it is ready, or why not.
        let ready = peer.answer()?;
        let version = ready.get("version").and_then(Value::as_str);
        peer.version = version.map(str::to_owned);
        Ok(peer)
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {shown}: {error}; is Python 3 installed?"))?;
    if output.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&output.stderr);
    Err(format!("{shown} failed:\n{}", log.trim_end()))
}

/// What a peer says to a piece of work.
#[derive(Clone, PartialEq, Debug)]
pub enum Prepared {
    /// It does it.
    Ready {
        /// The seconds its first run took, compilation included.
        first: f64,
    },
    /// It does not, and why.
    Cannot(String),
}

/// A running peer.
pub struct Peer {
    name: &'static str,
    version: Option<String>,
    child: Child,
    /// Closed to let it end.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The version of the library, if it says one.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Prepares a piece of work with the inputs in a folder.
    pub fn prepare(&mut self, work: &str, inputs: &Path) -> Result<Prepared, PeerError> {
        let answer = self.ask(&format!("prepare {work} {}", inputs.display()))?;
        if let Some(why) = answer.get("cannot").and_then(Value::as_str) {
            return Ok(Prepared::Cannot(why.to_owned()));
        }
        let first = self.number(&answer, "first")?;
        Ok(Prepared::Ready { first })
    }

    /// Runs the work so many times; gives the seconds of one, as the peer measured them.
    pub fn time(&mut self, runs: usize) -> Result<f64, PeerError> {
        let answer = self.ask(&format!("time {runs}"))?;
        self.number(&answer, "seconds")
    }

    /// Runs the work once more on the inputs and states that were given, and writes its results beside them.
    pub fn write_results(&mut self) -> Result<(), PeerError> {
        self.ask("result").map(drop)
    }

    fn ask(&mut self, request: &str) -> Result<Value, PeerError> {
        let sent = self.requests.as_mut().map_or(Ok(()), |requests| {
            writeln!(requests, "{request}")?;
            requests.flush()
        });
        sent.map_err(|error| self.failed(format!("it no longer listens: {error}")))?;
        self.answer()
    }

    fn number(&self, answer: &Value, field: &str) -> Result<f64, PeerError> {
        let number = answer.get(field).and_then(Value::as_f64);
        number.ok_or_else(|| self.failed(format!("it answered {answer}")))
    }

    /// The next line that is an answer.
    fn answer(&mut self) -> Result<Value, PeerError> {
        let mut line = String::new();
        loop {
            line.clear();
            match self.answers.read_line(&mut line) {
                Ok(0) => return Err(self.failed("it stopped".to_owned())),
                Err(error) => return Err(self.failed(error.to_string())),
                Ok(_) => {}
            }
            // A peer's own chatter, such as a compiler's progress, is passed over.
            let Ok(answer @ Value::Object(_)) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            return match answer.get("problem").and_then(Value::as_str) {
                Some(problem) => Err(self.failed(problem.to_owned())),
                None => Ok(answer),
            };
        }
    }

    fn failed(&self, reason: String) -> PeerError {
        PeerError::Failed {
            peer: self.name.to_owned(),
            reason,
        }
    }
}

impl Racer for Peer {
    fn name(&self) -> &str {
        self.name
    }

    fn time(&mut self, runs: usize) -> Result<f64, BenchError> {
        Ok(Peer::time(self, runs)?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Without requests it ends by itself and cleans up; a peer that does not is not waited for.
        drop(self.requests.take());
        let patience = Instant::now() + Duration::from_secs(2);
        while Instant::now() < patience {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        // It may end at this moment; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
