//! Peers: other systems, each in a process and a Python environment of its own.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

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
    packages: &'static [&'static str],
    script: &'static str,
}

/// numpy 1 is loop_tool's own limit.
const RECIPES: &[Recipe] = &[Recipe {
    name: "loop_tool",
    packages: &["numpy<2", "loop_tool==0.1.0"],
    script: include_str!("peers/loop_tool.py"),
}];

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
        let recipe = RECIPES.iter().find(|recipe| recipe.name == peer);
        let recipe = recipe.ok_or_else(|| {
            let known: Vec<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
            PeerError::Unknown(peer.to_owned(), known.join(", "))
        })?;
        let problem = |reason: String| PeerError::Environment {
            peer: peer.to_owned(),
            reason,
        };
        let folder = folder.join(peer);
        let stamp = folder.join("packages.txt");
        let wanted = recipe.packages.join("\n");
        if std::fs::read_to_string(&stamp).ok().as_deref() != Some(wanted.as_str()) {
            say(&format!(
                "making a Python environment for {peer} ({})",
                recipe.packages.join(", ")
            ));
            std::fs::create_dir_all(&folder)
                .map_err(|error| problem(format!("cannot make {}: {error}", folder.display())))?;
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
            std::fs::write(&stamp, wanted)
                .map_err(|error| problem(format!("cannot write {}: {error}", stamp.display())))?;
        }
        Ok(Environment { recipe, folder })
    }

    /// Starts the peer.
    pub fn start(&self) -> Result<Peer, PeerError> {
        let name = self.recipe.name;
        let failed = |reason: String| PeerError::Failed {
            peer: name.to_owned(),
            reason,
        };
        let mut child = Command::new(self.folder.join("env/bin/python"))
            .args(["-c", self.recipe.script])
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
            child,
            requests,
            answers: BufReader::new(answers),
        };
        peer.answer("ready")?;
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

/// A running peer.
pub struct Peer {
    name: &'static str,
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Prepares a piece of work; gives the seconds its first run took, compilation included.
    pub fn prepare(&mut self, work: &str) -> Result<f64, PeerError> {
        self.ask(&format!("prepare {work}"), "first")
    }

    /// Runs the work once; gives the seconds it took, as the peer measured them.
    pub fn time(&mut self) -> Result<f64, PeerError> {
        self.ask("time", "seconds")
    }

    /// The largest error of the peer's own result, relative to the largest value.
    pub fn check(&mut self) -> Result<f64, PeerError> {
        self.ask("check", "error")
    }

    fn ask(&mut self, request: &str, field: &str) -> Result<f64, PeerError> {
        writeln!(self.requests, "{request}")
            .and_then(|()| self.requests.flush())
            .map_err(|error| self.failed(format!("it no longer listens: {error}")))?;
        let answer = self.answer(field)?;
        answer
            .as_f64()
            .ok_or_else(|| self.failed(format!("its `{field}` is no number")))
    }

    fn answer(&mut self, field: &str) -> Result<Value, PeerError> {
        let mut line = String::new();
        loop {
            line.clear();
            match self.answers.read_line(&mut line) {
                Ok(0) => return Err(self.failed("it stopped".to_owned())),
                Err(error) => return Err(self.failed(error.to_string())),
                Ok(_) => {}
            }
            // A peer's own chatter is passed over.
            if let Ok(answer) = serde_json::from_str::<Value>(&line) {
                return match answer.get(field) {
                    Some(value) => Ok(value.clone()),
                    None => Err(self.failed(format!("it answered {}", line.trim_end()))),
                };
            }
        }
    }

    fn failed(&self, reason: String) -> PeerError {
        PeerError::Failed {
            peer: self.name.to_owned(),
            reason,
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
