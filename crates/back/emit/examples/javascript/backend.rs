//! A kernel backend around the dialect: kernels as JavaScript, run by `node`.

use super::dialect::{JavaScript, view};
use loopwright_backend::*;
use loopwright_emit::{EmitError, Emitted, emit};
use loopwright_kernel::{FunctionKind, Module};
use loopwright_ops::{DType, Op};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// The program that `node` runs: it is sent kernels and their arguments.
const HOST: &str = include_str!("host.js");

/// Bytes of the longest array: lengths are 32 bits on the way.
const LONGEST: u64 = 1 << 30;

/// Runs kernels with `node`.
pub struct Node;

impl Describe for Node {
    fn name(&self) -> &str {
        "node"
    }

    fn availability(&self) -> Result<(), Unavailable> {
        let version = Command::new("node").arg("--version").output();
        match version {
            Ok(output) if output.status.success() => Ok(()),
            Ok(_) | Err(_) => Err(Unavailable {
                reason: "`node` does not run".to_owned(),
                help: "install Node.js 16 or later".to_owned(),
                broken: false,
            }),
        }
    }

    /// What the dialect refuses.
    fn capabilities(&self) -> Capabilities {
        let narrow = [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16];
        let dtypes = DType::ALL.into_iter();
        let library = Op::ALL.iter().copied();
        Capabilities {
            dtypes: dtypes.filter(|dtype| !narrow.contains(dtype)).collect(),
            missing_ops: library
                .filter(|op| op.library_function().is_some())
                .collect(),
            vector_lanes: 1,
            atomics: false,
            matrix_tiles: false,
            max_buffer: Some(LONGEST),
            ..Capabilities::without_groups()
        }
    }
}

impl KernelBackend for Node {
    fn compile(
        &self,
        module: &Module,
        _: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let unsupported = |kernel: &str, reason: String| BackendError::Unsupported {
            backend: self.name().to_owned(),
            kernel: kernel.to_owned(),
            reason,
        };
        let emitted = emit(module, &JavaScript).map_err(
            |EmitError::Unsupported {
                 function, reason, ..
             }| unsupported(&function, reason),
        )?;
        let mut signatures = BTreeMap::new();
        for function in &module.functions {
            if matches!(function.kind, FunctionKind::Kernel { .. }) {
                let signature = Signature::of(module, function);
                let signature = signature.map_err(|reason| unsupported(&function.name, reason))?;
                signatures.insert(function.name.clone(), signature);
            }
        }
        Ok(Arc::new(Program {
            emitted,
            signatures,
        }))
    }
}

struct Program {
    emitted: Emitted,
    signatures: BTreeMap<String, Signature>,
}

impl Executable for Program {
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        let wrong = |reason: String| BackendError::Call {
            kernel: kernel.to_owned(),
            reason,
        };
        let found = self.emitted.kernels.iter().find(|of| of.name == kernel);
        let (Some(found), Some(signature)) = (found, self.signatures.get(kernel)) else {
            return Err(wrong("the module has no kernel of that name".to_owned()));
        };
        signature.check(arguments).map_err(wrong)?;
        let mut memory = Stretches::of(arguments);
        let call = memory.call(&found.symbol, signature, arguments);
        let mut parts = vec![self.emitted.source.as_bytes(), call.as_bytes()];
        parts.extend(memory.parts.iter().map(|part| &part[..]));
        let failed = |reason: String| BackendError::Run {
            kernel: kernel.to_owned(),
            reason,
        };
        let answer = asked(&parts, memory.back.len());
        let answer = answer.map_err(|error| failed(format!("`node`: {error}")))?;
        let [said, back @ ..] = &answer[..] else {
            return Err(failed("`node` gave no answer".to_owned()));
        };
        if !said.is_empty() {
            return Err(failed(String::from_utf8_lossy(said).into_owned()));
        }
        for (part, bytes) in memory.back.iter().zip(back) {
            memory.parts[*part].clone_from(bytes);
        }
        memory.give_back(signature, arguments);
        Ok(())
    }

    fn code(&self) -> String {
        self.emitted.source.clone()
    }
}

/// The memory of a call. Arguments that overlap lie in one stretch, so that what is written to one is read from
/// the other.
#[derive(Default)]
struct Stretches {
    /// For each argument its part, and where it begins in it.
    places: Vec<(usize, usize)>,
    parts: Vec<Vec<u8>>,
    /// The parts that are written.
    back: Vec<usize>,
}

impl Stretches {
    fn of(arguments: &[Argument<'_>]) -> Stretches {
        let mut memory = Stretches {
            places: vec![(0, 0); arguments.len()],
            ..Stretches::default()
        };
        let mut ranges: Vec<(usize, usize, usize)> = Vec::new();
        for (at, argument) in arguments.iter().enumerate() {
            if let Given::Memory { start, bytes, .. } = argument.given() {
                ranges.push((start, bytes, at));
            }
        }
        ranges.sort_unstable();
        let (mut begin, mut end) = (0, 0);
        for (start, bytes, at) in ranges {
            if memory.parts.is_empty() || start >= end {
                memory.parts.push(Vec::new());
                (begin, end) = (start, start);
            }
            end = end.max(start + bytes);
            let part = memory.parts.len() - 1;
            memory.places[at] = (part, start - begin);
            memory.parts[part].resize(end - begin, 0);
            copy(
                &mut memory.parts[part][start - begin..][..bytes],
                &arguments[at],
            );
        }
        memory
    }

    /// What is to be called with which arguments, as JSON. Scalars become parts.
    fn call(&mut self, symbol: &str, signature: &Signature, arguments: &[Argument<'_>]) -> String {
        let mut args = Vec::with_capacity(arguments.len());
        for (at, (param, argument)) in signature.params.iter().zip(arguments).enumerate() {
            let (part, offset) = self.places[at];
            args.push(match argument {
                Argument::Scalar(scalar) => {
                    self.parts.push(scalar.bits().to_le_bytes().to_vec());
                    let part = self.parts.len() - 1;
                    let dtype = view(scalar.dtype()).unwrap_or_default();
                    format!(r#"{{"part": {part}, "dtype": "{dtype}"}}"#)
                }
                Argument::Read(_)
                | Argument::Write(_)
                | Argument::Shared(_)
                | Argument::Local(_) => {
                    if let Takes::Buffer { written: true, .. } = param.takes
                        && !self.back.contains(&part)
                    {
                        self.back.push(part);
                    }
                    let bytes = memory_of(argument);
                    format!(r#"{{"part": {part}, "at": {offset}, "bytes": {bytes}}}"#)
                }
            });
        }
        let (args, size, back) = (args.join(", "), signature.group, &self.back);
        format!(r#"{{"symbol": "{symbol}", "size": {size:?}, "back": {back:?}, "args": [{args}]}}"#)
    }

    /// Copies what the kernel wrote into the arguments.
    fn give_back(&self, signature: &Signature, arguments: &mut [Argument<'_>]) {
        for (at, (param, argument)) in signature.params.iter().zip(arguments).enumerate() {
            let Takes::Buffer { written: true, .. } = param.takes else {
                continue;
            };
            let (part, offset) = self.places[at];
            let written = &self.parts[part][offset..][..memory_of(argument)];
            match argument {
                Argument::Write(bytes) => bytes.copy_from_slice(written),
                Argument::Shared(cells) => {
                    cells
                        .iter()
                        .zip(written)
                        .for_each(|(cell, byte)| cell.set(*byte));
                }
                // The signature has seen that these are not written.
                Argument::Read(_) | Argument::Scalar(_) | Argument::Local(_) => {}
            }
        }
    }
}

/// Bytes of an argument's memory.
fn memory_of(argument: &Argument<'_>) -> usize {
    match argument.given() {
        Given::Memory { bytes, .. } => bytes,
        Given::Scalar(_) | Given::Local => 0,
    }
}

fn copy(to: &mut [u8], argument: &Argument<'_>) {
    match argument {
        Argument::Read(bytes) => to.copy_from_slice(bytes),
        Argument::Write(bytes) => to.copy_from_slice(bytes),
        Argument::Shared(cells) => to
            .iter_mut()
            .zip(*cells)
            .for_each(|(to, cell)| *to = cell.get()),
        Argument::Scalar(_) | Argument::Local(_) => {}
    }
}

/// The process that runs kernels, one after the other; begun with the first. It ends when this one does, which closes its
/// input. A kernel that does not end is not cut short.
static NODE: Mutex<Option<Child>> = Mutex::new(None);

/// Sends the parts of a request, and gives what is answered: what went wrong, and so many parts that were written.
fn asked(parts: &[&[u8]], back: usize) -> Result<Vec<Vec<u8>>, Error> {
    let mut node = NODE.lock().unwrap_or_else(PoisonError::into_inner);
    // Taken out: a process that has failed is not asked again.
    let mut child = match node.take() {
        Some(child) => child,
        None => Command::new("node")
            .args(["-e", HOST])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?,
    };
    let answer = exchange(&mut child, parts, back);
    match answer {
        Ok(_) => *node = Some(child),
        // It may have ended by itself, which is why there is no answer.
        Err(_) => drop((child.kill(), child.wait())),
    }
    answer
}

fn exchange(child: &mut Child, parts: &[&[u8]], back: usize) -> Result<Vec<Vec<u8>>, Error> {
    let closed = || Error::from(ErrorKind::BrokenPipe);
    let input = child.stdin.as_mut().ok_or_else(closed)?;
    let length = |length: usize| u32::try_from(length).map_err(Error::other);
    input.write_all(&length(parts.len())?.to_le_bytes())?;
    for part in parts {
        input.write_all(&length(part.len())?.to_le_bytes())?;
        input.write_all(part)?;
    }
    input.flush()?;
    let output = child.stdout.as_mut().ok_or_else(closed)?;
    let mut answer = Vec::with_capacity(back + 1);
    while answer.len() <= back {
        let mut length = [0; 4];
        output.read_exact(&mut length)?;
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        output.read_exact(&mut bytes)?;
        let failed = answer.is_empty() && !bytes.is_empty();
        answer.push(bytes);
        if failed {
            break;
        }
    }
    Ok(answer)
}
