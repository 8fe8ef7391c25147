//! `dump --out`: every stage of a program as files of a directory.

use crate::arguments::{ProgramOptions, Stage};
use crate::device::Chosen;
use crate::failure::Failure;
use crate::files::write_text;
use crate::program::Opened;
use crate::terminal::{Shown as _, Terminal};
use crate::verbs::dump::{code_text, tree_text};
use crate::verbs::dump_plan::plan_text;
use loopwright::cc::{self, CcBackend};
use loopwright::compile::Program;
use loopwright::graph::{GraphError, print};
use loopwright::kernel::Module;
use loopwright::kernel::passes::Pipeline;
use std::path::{Path, PathBuf};

const UNOPTIMISED: &str = "kernel-unoptimised.txt";
const PLAN: &str = "plan.txt";
const COMPILER_LOG: &str = "compiler.log";

/// The file that a stage is written to.
pub(super) fn file_name(stage: Stage, unoptimised: bool, device: &Chosen) -> String {
    match stage {
        Stage::Graph => "graph.lw".to_owned(),
        Stage::Schedule => "schedule.sched".to_owned(),
        Stage::Tree => "tree.txt".to_owned(),
        Stage::Kernel if unoptimised => UNOPTIMISED.to_owned(),
        Stage::Kernel => "kernel.txt".to_owned(),
        Stage::Code => match device.backend().name() {
            cc::NAME => "code.c".to_owned(),
            _ => "code.txt".to_owned(),
        },
        Stage::Plan => PLAN.to_owned(),
    }
}

/// The directory. Files in it are written as a whole or not at all.
pub(super) struct Folder<'o> {
    directory: &'o Path,
    /// What was read, by its real path, so that it is not written over.
    sources: Vec<PathBuf>,
}

impl<'o> Folder<'o> {
    /// Makes the directory if it is not there.
    pub(super) fn new(
        directory: &'o Path,
        program: &ProgramOptions,
    ) -> Result<Folder<'o>, Failure> {
        std::fs::create_dir_all(directory).map_err(|error| match directory.exists() {
            true => Failure::new(format!("{} is not a directory", directory.shown())),
            false => Failure::file("make", directory, &error),
        })?;
        let sources = [Some(&program.program), program.schedule.as_ref()];
        let sources = sources.into_iter().flatten();
        Ok(Folder {
            directory,
            sources: sources
                .filter_map(|path| path.canonicalize().ok())
                .collect(),
        })
    }

    /// Writes one file, over an earlier one of that name, and says so.
    pub(super) fn write(
        &self,
        name: &str,
        text: &str,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        let path = self.directory.join(name);
        if self.is_source(&path) {
            return Err(Failure::new(format!(
                "cannot write {}: it is what the program is read from",
                path.shown()
            ))
            .help("choose another directory"));
        }
        write_text(&path, text)?;
        terminal.line(format!("wrote {}", path.shown()))
    }

    fn is_source(&self, path: &Path) -> bool {
        let real = path.canonicalize();
        real.is_ok_and(|real| self.sources.contains(&real))
    }

    /// Writes every stage. Those before a failure are written: they are what it is looked for in.
    pub(super) fn write_all(
        &self,
        opened: &Opened<'_>,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        self.forget()?;
        let name = |stage: Stage| file_name(stage, false, &opened.device);
        self.write(&name(Stage::Graph), &print(&opened.graph), terminal)?;
        let kernels = opened.kernels()?;
        let schedule = kernels.plan.to_string();
        self.write(&name(Stage::Schedule), &schedule, terminal)?;
        let tree = tree_text(opened, &kernels)?;
        self.write(&name(Stage::Tree), &tree, terminal)?;
        let lowered = kernels.unoptimised()?;
        self.write(UNOPTIMISED, &loopwright::kernel::print(&lowered), terminal)?;
        for (name, text) in after_passes(&lowered) {
            self.write(&name, &text, terminal)?;
        }
        let kernel = loopwright::kernel::print(&kernels.module());
        self.write(&name(Stage::Kernel), &kernel, terminal)?;
        let compiled = match opened.compile() {
            Ok(compiled) => compiled,
            Err(failure) => {
                let log = format!("{}{}\n", compiler_in_words(opened), failure.text());
                self.write(COMPILER_LOG, &log, terminal)?;
                return Err(failure);
            }
        };
        let program = compiled.program();
        self.write(&name(Stage::Code), &code_text(program), terminal)?;
        self.write(COMPILER_LOG, &compiler_log(opened, program), terminal)?;
        match opened.sizes() {
            Ok(_) => self.write(PLAN, &plan_text(opened, &compiled)?, terminal),
            // The code is the same for all sizes, the memory is not.
            Err(error @ GraphError::Unbound { .. }) => terminal.line(format!("no {PLAN}: {error}")),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what an earlier dump has written, so that no file is about another program.
    fn forget(&self) -> Result<(), Failure> {
        let mut names: Vec<String> = [
            "graph.lw",
            "schedule.sched",
            "tree.txt",
            UNOPTIMISED,
            "kernel.txt",
            "code.c",
            "code.txt",
            COMPILER_LOG,
            PLAN,
        ]
        .map(str::to_owned)
        .to_vec();
        let passes = Pipeline::standard();
        let passes = passes.names().iter().enumerate();
        names.extend(passes.map(|(at, pass)| pass_file(at, pass)));
        for name in names {
            let path = self.directory.join(name);
            // What a person has put there in the place of a file, such as a link, stays and is written to.
            let regular = path.symlink_metadata().is_ok_and(|data| data.is_file());
            if !regular || self.is_source(&path) {
                continue;
            }
            match std::fs::remove_file(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Failure::file("replace", &path, &error)),
            }
        }
        Ok(())
    }
}

fn pass_file(at: usize, pass: &str) -> String {
    format!("kernel-{:02}-{pass}.txt", at + 1)
}

/// The kernel after each pass that changes something, with the name of its file.
fn after_passes(lowered: &Module) -> Vec<(String, String)> {
    // Passes leave the numbers of values as they fall; the normal form shows what really changes.
    let shown = |module: &Module| {
        let mut module = module.clone();
        module.compact();
        loopwright::kernel::print(&module)
    };
    let mut before = shown(lowered);
    let mut found = Vec::new();
    let mut at = 0;
    Pipeline::standard().run(&mut lowered.clone(), &mut |pass, module| {
        let after = shown(module);
        if after != before {
            found.push((pass_file(at, pass), after.clone()));
            before = after;
        }
        at += 1;
    });
    found
}

/// What there is to say about how the code was compiled.
fn compiler_log(opened: &Opened<'_>, program: &Program) -> String {
    let mut log = compiler_in_words(opened);
    let executable = program.executable();
    if executable.from_cache() {
        log += "the code came from the cache; no compiler ran\n";
    }
    if let Some(said) = executable.log() {
        log += said;
        if !log.ends_with('\n') {
            log.push('\n');
        }
    }
    log
}

/// The device, and the compiler it uses where it uses one.
fn compiler_in_words(opened: &Opened<'_>) -> String {
    let device = opened.device.name();
    let compiler = match opened.device.backend().name() {
        cc::NAME => match CcBackend::from_env().compiler() {
            Ok(compiler) => format!(
                "compiler: {}, {}\n",
                compiler.path.shown(),
                compiler.version
            ),
            Err(why) => format!("compiler: {why}\n"),
        },
        _ => "compiler: none\n".to_owned(),
    };
    format!("device: {device}\n{compiler}")
}
