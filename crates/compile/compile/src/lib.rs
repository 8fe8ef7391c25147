//! From a graph to a program that runs.
//!
//! A [`Compiler`] takes graphs to [`Program`]s for one [backend](loopwright_backend::Backend), each only once: it schedules a graph
//! or checks the schedule that it is given, lowers it, runs the passes on the [`Kernels`] that it becomes, hands some of them to other backends
//! where a schedule delegates them, and packs scratch memory ([`pack()`]). It knows backends by their traits alone.
//!
//! A program runs at any sizes. [`Program::bind`] gives it sizes, a [`Bound`] memory: memory that is given is used in
//! place, without a copy. Programs that are compiled together ([`Compiler::compile_batch`]) share one run of the backend's
//! compiler. A program can log what it stores ([`Compiler::logging`]).
//!
//! ```
//! # use loopwright_interp as _;
//! use loopwright_backend::{CompileOptions, backends};
//! use loopwright_compile::Compiler;
//! use loopwright_graph::{Array, parse};
//! use loopwright_ops::DType;
//! use loopwright_text::Source;
//!
//! let source = Source::new("twice.lw", "loopwright program 1\nsize N\ninput x: f32[i=N]\noutput y = x + x\n");
//! let graph = parse(&source).map_err(|error| error.render(&source))?;
//! let interp = backends().into_iter().find(|backend| backend.name() == "interp");
//! let compiler = Compiler::new(interp.ok_or("it is linked")?, CompileOptions::default());
//!
//! let program = compiler.compile(&graph, None)?;
//! let mut run = program.bind(&[("N", 3)])?;
//! run.give("x", Array::from_f64(DType::F32, &[3], &[1.0, 2.0, 3.0])?)?;
//! run.run()?;
//! assert_eq!(run.array("y").ok_or("it is an output")?.to_f64(), [2.0, 4.0, 6.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bound;
mod compiler;
mod kernels;
mod launches;
mod pack;
mod program;
mod recent;
mod spill;
mod store_log;

pub use bound::{Bound, Element, Pending};
pub use compiler::{BatchEntry, Compiler};
pub use kernels::{KERNEL, Kernels, Plainer};
pub use loopwright_kernel::passes::log_stores::StoreSite;
pub use pack::{Packed, Request, pack};
pub use program::{Program, ProgramError};
pub use recent::{RECENT_PROGRAMS, Recent};
pub use store_log::{LOG_RECORDS, LogRecord, StoreLog, clear_log, log_header, log_words};
