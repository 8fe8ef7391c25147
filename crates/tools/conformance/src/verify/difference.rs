//! What a user is told about a difference.

use crate::error::ConformanceError;
use crate::oracle::{Blame, Element};
use std::fmt;
use std::path::PathBuf;

/// A run that gave something else than it should have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Difference {
    /// The kernel.
    pub kernel: String,
    /// The device it ran on, by the name of its backend.
    pub device: String,
    /// The first rewrite of the program after which the difference appears.
    pub rewrite: Blame,
    /// What is wrong.
    pub message: String,
    /// The first element that differs, if that is what is wrong.
    pub element: Option<Box<Element>>,
    /// Whether the difference was there again when the program was run a second time.
    pub reproduced: bool,
    /// The program made small, and how to run it; or why it could not be written.
    pub replay: Result<Replay, ConformanceError>,
}

/// A failing program on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replay {
    /// The program.
    pub program: PathBuf,
    /// Its schedule, if it has one of its own.
    pub schedule: Option<PathBuf>,
    /// The values of its inputs and states, by name.
    pub inputs: Vec<(String, PathBuf)>,
    /// The command line that runs it again.
    pub command: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { kernel, device, .. } = self;
        writeln!(f, "kernel `{kernel}` on `{device}`: {}", self.message)?;
        match &self.rewrite {
            Blame::Backend if !self.reproduced => writeln!(
                f,
                "  the kernel is right, and so was the backend when it ran again: the difference \
                 depends on more than the inputs, such as memory that others write to"
            )?,
            Blame::Backend => writeln!(
                f,
                "  the kernel is right; it is wrong first after backend `{device}`"
            )?,
            rewrite => writeln!(f, "  it is wrong first after {rewrite}")?,
        }
        match &self.replay {
            Ok(replay) => {
                let what = if self.reproduced { "small " } else { "" };
                writeln!(f, "  a {what}program: {}", replay.program.display())?;
                write!(f, "  run it with: {}", replay.command)
            }
            Err(error) => write!(f, "  the program was not kept: {error}"),
        }
    }
}
