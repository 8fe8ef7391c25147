//! Writes the code of many kernels into a folder: what `cargo xtask replay` compares.
//!
//! `corpus FOLDER [TEXT]` writes `FOLDER/EMITTER/TARGET/PROGRAM.EXTENSION` for every emitter in [`EMITTERS`] and every
//! target: for those in [`TARGETS`] every program under `examples/programs`, the features of the conformance suite and every
//! op at every dtype; for the random machines of [`SEEDS`] the whole corpus of this crate, complete networks among them, as
//! digests. Names with `TEXT` in them are written out there, too. Nothing depends on the machine it runs on, so two folders
//! differ only where the code that wrote them does.

use loopwright_backend::{CompileOptions, Target};
use loopwright_compile::Kernels;
use loopwright_conformance::features::FEATURES;
use loopwright_conformance::generate::plain_schedule;
use loopwright_emit::{C, C99, Dialect, emit};
use loopwright_gccjit::GccJit;
use loopwright_graph::{Graph, GraphBuilder, GraphError, parse};
use loopwright_kernel::Module;
use loopwright_kernel::passes::Pipeline;
use loopwright_looptree::Schedule;
use loopwright_ops::DType;
use loopwright_ops::reference::{Row, RowOp, rows};
use loopwright_symbolic::Expr;
use loopwright_targets::{Corpus, random_target};
use loopwright_text::Source;
use loopwright_x86::{Level, X86};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

/// Something that writes code without the machine the code is for.
struct Emitter {
    /// Its folder.
    name: &'static str,
    /// How its files end.
    extension: &'static str,
    /// The code of a module, or why there is none, which is written down in its place.
    write: fn(&Module) -> Result<String, String>,
}

/// Every emitter. A backend is added with a line here: its name, and a function from a module to text
/// that needs no hardware and says nothing of this machine.
const EMITTERS: &[Emitter] = &[
    Emitter {
        name: "kernel",
        extension: "lwk",
        write: |module| Ok(module.to_string()),
    },
    Emitter {
        name: "c",
        extension: "c",
        write: |module| dialect(&C, module),
    },
    Emitter {
        name: "c99",
        extension: "c",
        write: |module| dialect(&C99, module),
    },
    // What the library is told, for processors with AVX2 as every machine of ours has; nothing where the
    // library is missing.
    Emitter {
        name: "gccjit",
        extension: "c",
        write: |module| {
            // The library is loaded once.
            static BACKEND: LazyLock<GccJit> =
                LazyLock::new(|| GccJit::from_env().with_instructions(3));
            let described = BACKEND.description(module, &CompileOptions::default());
            described.map_err(|refusal| refusal.to_string())
        },
    },
    Emitter {
        name: "x86-sse",
        extension: "s",
        write: |module| machine_code(&X86::for_level(Level::Sse), module),
    },
    Emitter {
        name: "x86-avx2",
        extension: "s",
        write: |module| machine_code(&X86::for_level(Level::Avx2), module),
    },
    Emitter {
        name: "x86-avx512",
        extension: "s",
        write: |module| machine_code(&X86::for_level(Level::Avx512), module),
    },
    Emitter {
        name: "x86-amx",
        extension: "s",
        write: |module| {
            let unit = X86::for_level(Level::Avx512).with_matrix_unit();
            machine_code(&unit, module)
        },
    },
];

/// Disassembly and bytes.
fn machine_code(x86: &X86, module: &Module) -> Result<String, String> {
    let listing = x86.listing(module, &CompileOptions::default());
    listing.map_err(|refusal| refusal.to_string())
}

fn dialect(dialect: &dyn Dialect, module: &Module) -> Result<String, String> {
    match emit(module, dialect) {
        Ok(emitted) => Ok(emitted.source),
        Err(refusal) => Err(refusal.to_string()),
    }
}

/// What the default schedules are made for: never this machine.
const TARGETS: &[(&str, Target)] = &[
    ("scalar", Target::SCALAR),
    ("vector32", vectors(32, 16)),
    ("vector64", vectors(64, 32)),
];

/// The random machines, by their seeds.
const SEEDS: std::ops::Range<u64> = 20_261_116..20_261_128;

const fn vectors(vector_bytes: u32, vector_registers: u32) -> Target {
    Target {
        vector_bytes,
        vector_registers,
        threads: 8,
        ..Target::SCALAR
    }
}

/// A file of the corpus before it is written in some language: its name, and modules with a heading each.
type Programs = BTreeMap<String, Vec<(String, Module)>>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        return Err("usage: corpus FOLDER [TEXT]".into());
    };
    let whole = arguments
        .next()
        .map(|text| text.to_string_lossy().into_owned());
    for (target_name, target) in TARGETS {
        let mut programs = Programs::new();
        examples(target, &mut programs)?;
        features(target, &mut programs)?;
        ops(target, &mut programs)?;
        write(&folder, target_name, &programs, text)?;
    }
    let corpus = Corpus::complete()?;
    let seeds = Mutex::new(SEEDS);
    let work = || -> Result<(), String> {
        loop {
            let seed = seeds.lock().map_err(|error| error.to_string())?.next();
            let Some(seed) = seed else { return Ok(()) };
            let (name, target) = (format!("machine-{seed}"), random_target(seed));
            let programs = of_corpus(&corpus, &target)?;
            write(&folder, &name, &programs, |emitter, modules| {
                digests(emitter, &name, modules, whole.as_deref())
            })?;
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined
            .map(|ended| ended.unwrap_or_else(|_| Err("a thread panicked".to_owned())))
            .collect::<Result<Vec<()>, String>>()
    })?;
    Ok(())
}

/// Writes a target's programs in all languages.
fn write(
    folder: &Path,
    target: &str,
    programs: &Programs,
    text: impl Fn(&Emitter, &[(String, Module)]) -> String,
) -> Result<(), String> {
    for emitter in EMITTERS {
        let folder = folder.join(emitter.name).join(target);
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        for (name, modules) in programs {
            let path = folder.join(format!("{name}.{}", emitter.extension));
            std::fs::write(&path, text(emitter, modules))
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// The text of a file.
fn text(emitter: &Emitter, modules: &[(String, Module)]) -> String {
    let mut text = String::new();
    for (heading, module) in modules {
        let code = code(emitter, module);
        let _ = writeln!(text, "== {heading}\n{code}");
    }
    text
}

/// The same with a digest in the place of the code, unless it is asked for: networks have megabytes of it.
fn digests(
    emitter: &Emitter,
    target: &str,
    modules: &[(String, Module)],
    whole: Option<&str>,
) -> String {
    let mut text = String::new();
    for (heading, module) in modules {
        let code = code(emitter, module);
        let name = format!("{}/{target}/corpus: {heading}", emitter.name);
        let code = match whole.is_some_and(|part| name.contains(part)) {
            true => code,
            false => format!("{} bytes, {}\n", code.len(), blake3::hash(code.as_bytes())),
        };
        let _ = writeln!(text, "== {heading}\n{code}");
    }
    text
}

fn code(emitter: &Emitter, module: &Module) -> String {
    (emitter.write)(module).unwrap_or_else(|reason| format!("not written: {reason}\n"))
}

/// The whole corpus of this crate as one file, with default schedules.
fn of_corpus(corpus: &Corpus, target: &Target) -> Result<Programs, String> {
    let entries = corpus.entries.iter().chain(&corpus.interpreted);
    let modules = entries.map(|entry| {
        let module = compiled(&entry.name, &entry.graph, None, target)?;
        Ok((entry.name.clone(), module))
    });
    let modules = modules.collect::<Result<_, String>>()?;
    Ok(Programs::from([("corpus".to_owned(), modules)]))
}

/// The programs of this project's `examples` folder.
fn examples(target: &Target, programs: &mut Programs) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/programs");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "lw"));
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let modules = scheduled(&name, std::fs::read_to_string(&path)?, target)?;
        programs.insert(format!("example.{name}"), modules);
    }
    Ok(())
}

/// The features that every backend must have.
fn features(target: &Target, programs: &mut Programs) -> Result<(), Box<dyn Error>> {
    for feature in FEATURES {
        let program = format!("loopwright program 1\n{}", feature.program);
        let modules = scheduled(feature.name, program, target)?;
        programs.insert(format!("feature.{}", feature.name), modules);
    }
    Ok(())
}

/// A program as its default schedule has it, and as the plainest one.
fn scheduled(
    name: &str,
    program: String,
    target: &Target,
) -> Result<Vec<(String, Module)>, Box<dyn Error>> {
    let source = Source::new(name, program);
    let graph = parse(&source).map_err(|error| error.render(&source))?;
    let plain = plain_schedule(&graph.clone().with_stores());
    Ok(vec![
        (
            "default schedule".to_owned(),
            compiled(name, &graph, None, target)?,
        ),
        (
            "plain schedule".to_owned(),
            compiled(name, &graph, Some(&plain), target)?,
        ),
    ])
}

/// The kernel of a program after all passes.
fn compiled(
    name: &str,
    graph: &Graph,
    schedule: Option<&Schedule>,
    target: &Target,
) -> Result<Module, String> {
    Kernels::new(graph, schedule, target, &Pipeline::standard())
        .map(|kernels| kernels.module().into_owned())
        .map_err(|error| format!("{name}: {error}"))
}

/// Every op at every dtype it has reference values for, a file for each op.
fn ops(target: &Target, programs: &mut Programs) -> Result<(), Box<dyn Error>> {
    let mut seen = BTreeSet::new();
    for row in rows() {
        let op = match row.op {
            RowOp::Op(op) => op.to_string(),
            RowOp::Cast(to) => format!("cast_to_{to}"),
            RowOp::Bitcast(to) => format!("bitcast_to_{to}"),
            RowOp::Reduce(op) => format!("reduce_{op}"),
            RowOp::Scan(op) => format!("scan_{op}"),
            RowOp::ArgMax => "argmax".to_owned(),
            RowOp::ArgMin => "argmin".to_owned(),
            RowOp::Sort => "sort".to_owned(),
            RowOp::ArgSort => "argsort".to_owned(),
        };
        let name = format!("{op} {}", row.dtype);
        if seen.insert(name.clone()) {
            let module = compiled(&name, &op_program(&row)?, None, target)?;
            let modules = programs.entry(format!("op.{op}")).or_default();
            modules.push((name, module));
        }
    }
    Ok(())
}

/// The program of an op: inputs over `N` elements, one output.
fn op_program(row: &Row) -> Result<Graph, GraphError> {
    let mut builder = GraphBuilder::new();
    let size = builder.size("N", None)?;
    let dim = builder.dim("i")?;
    builder.set_size(dim, Expr::symbol(size), "the corpus");
    let mut inputs = Vec::new();
    for (name, operand) in ["a", "b", "c"].into_iter().zip(&row.operands) {
        // `select` has a condition; all other operands have the row's dtype.
        let dtype: DType = operand.first().map_or(row.dtype, |value| value.dtype());
        inputs.push(builder.input(name, dtype, &[dim])?);
    }
    let node = match row.op {
        RowOp::Op(op) => builder.map(op, &inputs)?,
        RowOp::Cast(to) => builder.cast(inputs[0], to),
        RowOp::Bitcast(to) => builder.bitcast(inputs[0], to)?,
        RowOp::Reduce(op) => builder.reduce(op, inputs[0], &[dim], None)?,
        RowOp::Scan(op) => builder.scan(op, inputs[0], dim, None, false, false)?,
        RowOp::ArgMax => builder.arg_reduce(true, inputs[0], dim)?,
        RowOp::ArgMin => builder.arg_reduce(false, inputs[0], dim)?,
        RowOp::Sort => builder.sort(inputs[0], dim, false)?,
        RowOp::ArgSort => builder.arg_sort(inputs[0], dim, false)?,
    };
    builder.output("result", node)?;
    builder.finish()
}
