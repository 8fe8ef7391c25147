//! A program with sizes and memory, ready to run.

use crate::pack::pack;
use crate::program::{Program, ProgramError};
use crate::store_log::{LOG_RECORDS, StoreLog, clear_log, log_words};
use loopwright_backend::Argument;
use loopwright_graph::{Array, Binding, NodeId, NodeOp};
use loopwright_lower::KernelParam;
use loopwright_ops::{DType, Scalar};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// A Rust type that is a dtype: slices of it can be bound without a copy.
pub trait Element: bytemuck::Pod {
    /// The dtype.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident,)*) => {
        $(impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        })*
    };
}

elements! {
    i8 => I8,
    i16 => I16,
    i32 => I32,
    i64 => I64,
    u8 => U8,
    u16 => U16,
    u32 => U32,
    u64 => U64,
    f32 => F32,
    f64 => F64,
}

/// A program with sizes and memory. Memory that is given is used where it lies, without a copy;
/// outputs for which none is given, and scratch memory, are made at the first run and kept.
pub struct Bound<'m> {
    program: Arc<Program>,
    binding: Binding,
    /// By the kernel's parameters.
    slots: Vec<Slot<'m>>,
    /// Made at the first run.
    scratch: Option<ScratchMemory>,
    stale: bool,
}

/// All scratch memory in one piece.
struct ScratchMemory {
    bytes: Array,
    /// Where in it each lies, by number.
    places: Vec<Range<usize>>,
}

/// Scratch memory begins at multiples of this, as arrays do.
const ALIGNMENT: u64 = 64;

enum Slot<'m> {
    Empty,
    Read(&'m [u8]),
    Write(&'m mut [u8]),
    Owned(Array),
}

impl<'m> Bound<'m> {
    pub(crate) fn new(program: Arc<Program>, binding: Binding) -> Bound<'m> {
        let slots = program.params().iter().map(|_| Slot::Empty).collect();
        Bound {
            program,
            binding,
            slots,
            scratch: None,
            stale: true,
        }
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The sizes.
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// Binds memory that is only read to an input. Booleans that are neither 0 nor 1 are normalised in a copy.
    pub fn input(&mut self, name: &str, bytes: &'m [u8]) -> Result<&mut Self, ProgramError> {
        let at = self.parameter(name, false)?;
        let dtype = self.check(at, name, bytes)?;
        if dtype.holds_only_values(bytes) {
            return self.put(at, Slot::Read(bytes));
        }
        let node = self.parameter_node(at);
        let shape = self.binding.shape(self.program.graph(), node);
        let sizes: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let array = Array::from_bytes(dtype, &sizes, bytes);
        let array = array.map_err(|_| ProgramError::OutOfMemory {
            name: name.to_owned(),
            bytes: bytes.len() as u128,
        })?;
        self.put(at, Slot::Owned(array))
    }

    /// Binds a slice that is only read to an input of the same dtype.
    pub fn input_slice<T: Element>(
        &mut self,
        name: &str,
        elements: &'m [T],
    ) -> Result<&mut Self, ProgramError> {
        let at = self.parameter(name, false)?;
        self.check_dtype::<T>(at, name)?;
        self.input(name, bytemuck::cast_slice(elements))
    }

    /// Binds a slice to a state of the same dtype; see [`Bound::state`].
    pub fn state_slice<T: Element>(
        &mut self,
        name: &str,
        elements: &'m mut [T],
    ) -> Result<&mut Self, ProgramError> {
        let at = self.parameter(name, true)?;
        self.check_dtype::<T>(at, name)?;
        self.state(name, bytemuck::cast_slice_mut(elements))
    }

    /// Binds a slice that an output of the same dtype is written to.
    pub fn output_slice<T: Element>(
        &mut self,
        name: &str,
        elements: &'m mut [T],
    ) -> Result<&mut Self, ProgramError> {
        let at = self.output_slot(name)?;
        self.check_dtype::<T>(at, name)?;
        self.output(name, bytemuck::cast_slice_mut(elements))
    }

    fn check_dtype<T: Element>(&self, at: usize, name: &str) -> Result<(), ProgramError> {
        let node = self.parameter_node(at);
        let dtype = self.program.graph().node(node).dtype;
        if T::DTYPE == dtype {
            return Ok(());
        }
        Err(ProgramError::Memory {
            name: name.to_owned(),
            expected: describe(dtype, &self.binding.shape(self.program.graph(), node)),
            got: format!("a slice of {} is", T::DTYPE),
        })
    }

    /// Binds memory that is read, and written if the program updates it, to a state.
    pub fn state(&mut self, name: &str, bytes: &'m mut [u8]) -> Result<&mut Self, ProgramError> {
        let at = self.parameter(name, true)?;
        self.check(at, name, bytes)?.normalise(bytes);
        self.put(at, Slot::Write(bytes))
    }

    /// Hands an array over to an input or a state.
    pub fn give(&mut self, name: &str, mut array: Array) -> Result<&mut Self, ProgramError> {
        let at = self
            .parameter(name, false)
            .or_else(|_| self.parameter(name, true))?;
        let node = self.parameter_node(at);
        let expected = self.binding.shape(self.program.graph(), node);
        let dtype = self.program.graph().node(node).dtype;
        let shape: Vec<i64> = array.shape().iter().map(|size| *size as i64).collect();
        if array.dtype() != dtype || shape != expected {
            return Err(ProgramError::Memory {
                name: name.to_owned(),
                expected: describe(dtype, &expected),
                got: format!("{} is", describe(array.dtype(), &shape)),
            });
        }
        array.normalise();
        self.put(at, Slot::Owned(array))
    }

    /// Binds memory that an output is written to.
    pub fn output(&mut self, name: &str, bytes: &'m mut [u8]) -> Result<&mut Self, ProgramError> {
        let at = self.output_slot(name)?;
        self.check(at, name, bytes)?.normalise(bytes);
        self.put(at, Slot::Write(bytes))
    }

    /// Runs the program, whether or not anything has changed since the last run.
    pub fn run(&mut self) -> Result<(), ProgramError> {
        self.fill()?;
        let scratch = match &mut self.scratch {
            Some(scratch) => scratch,
            none => none.insert(scratch_memory(&self.program, &self.binding)?),
        };
        let cells = Cell::from_mut(scratch.bytes.bytes_mut()).as_slice_of_cells();
        let mut constants = self.program.constants().iter();
        let mut arguments: SmallVec<[Argument<'_>; 16]> = SmallVec::new();
        for (param, slot) in self.program.params().iter().zip(&mut self.slots) {
            arguments.push(match (param, slot) {
                (KernelParam::Size(symbol), _) => {
                    Argument::Scalar(Scalar::i64(self.binding.value(*symbol)))
                }
                (KernelParam::Constant(_), _) => {
                    Argument::Read(constants.next().map_or(&[][..], Vec::as_slice))
                }
                (KernelParam::Scratch(number), _) => {
                    Argument::Shared(&cells[scratch.places[*number as usize].clone()])
                }
                (KernelParam::Log, Slot::Owned(array)) => {
                    let bytes = array.bytes_mut();
                    clear_log(bytemuck::cast_slice_mut(bytes));
                    Argument::Write(bytes)
                }
                (_, Slot::Read(bytes)) => Argument::Read(bytes),
                (_, Slot::Write(bytes)) => Argument::Write(bytes),
                (_, Slot::Owned(array)) => Argument::Write(array.bytes_mut()),
                // `fill` leaves nothing empty.
                (_, Slot::Empty) => Argument::Read(&[]),
            });
        }
        let program = &self.program;
        // SAFETY: the kernel was lowered from the graph that the sizes were bound for, and each argument was checked to be as long
        // as they say, to be aligned, and to hold values of its dtype.
        unsafe { program.executable().run(program.kernel(), &mut arguments) }?;
        self.stale = false;
        Ok(())
    }

    /// Runs the program unless nothing was bound since the last run.
    pub fn ensure(&mut self) -> Result<(), ProgramError> {
        if self.stale { self.run() } else { Ok(()) }
    }

    /// An output's or state's values after a run, if its memory is the program's own.
    pub fn array(&self, name: &str) -> Option<&Array> {
        let at = self
            .output_slot(name)
            .or_else(|_| self.parameter(name, true))
            .ok()?;
        match &self.slots[at] {
            Slot::Owned(array) => Some(array),
            _ => None,
        }
    }

    /// What the last run stored, if the program logs that ([`crate::Compiler::logging`]).
    pub fn log(&self) -> Option<StoreLog> {
        let params = self.program.params();
        let at = params.iter().position(|param| *param == KernelParam::Log)?;
        match &self.slots[at] {
            Slot::Owned(array) => Some(StoreLog::decode(
                bytemuck::cast_slice(array.bytes()),
                self.program.log_sites(),
            )),
            // Not run yet.
            _ => Some(StoreLog::default()),
        }
    }

    /// Takes an output's or state's values out; the next run makes new memory for an output.
    pub fn take(&mut self, name: &str) -> Option<Array> {
        let at = self
            .output_slot(name)
            .or_else(|_| self.parameter(name, true))
            .ok()?;
        match std::mem::replace(&mut self.slots[at], Slot::Empty) {
            Slot::Owned(array) => Some(array),
            other => {
                self.slots[at] = other;
                None
            }
        }
    }

    fn put(&mut self, at: usize, slot: Slot<'m>) -> Result<&mut Self, ProgramError> {
        self.slots[at] = slot;
        self.stale = true;
        Ok(self)
    }

    fn parameter_node(&self, at: usize) -> NodeId {
        match self.program.params()[at] {
            KernelParam::Parameter(node) | KernelParam::Constant(node) => node,
            KernelParam::Output(at) => self.program.graph().outputs()[at as usize].node,
            KernelParam::Scratch(_) | KernelParam::Size(_) | KernelParam::Log => NodeId(0),
        }
    }

    fn parameter(&self, name: &str, state: bool) -> Result<usize, ProgramError> {
        let graph = self.program.graph();
        let fits = |node: NodeId| matches!(graph.node(node).op, NodeOp::State) == state;
        let found = self.program.params().iter().position(|param| {
            matches!(param, KernelParam::Parameter(node)
                if fits(*node) && graph.node(*node).name == name)
        });
        found.ok_or_else(|| ProgramError::NoSuchArray {
            what: if state { "state" } else { "input" },
            name: name.to_owned(),
            known: list(
                graph
                    .parameters()
                    .filter(|node| fits(*node))
                    .map(|node| graph.node_name(node)),
            ),
        })
    }

    fn output_slot(&self, name: &str) -> Result<usize, ProgramError> {
        let outputs = self.program.graph().outputs();
        let found = self.program.params().iter().position(
            |param| matches!(param, KernelParam::Output(at) if outputs[*at as usize].name == name),
        );
        found.ok_or_else(|| ProgramError::NoSuchArray {
            what: "output",
            name: name.to_owned(),
            known: list(outputs.iter().map(|output| output.name.clone())),
        })
    }

    /// Checks length and alignment of memory from outside, and gives its dtype.
    fn check(&self, at: usize, name: &str, bytes: &[u8]) -> Result<DType, ProgramError> {
        let node = self.parameter_node(at);
        let dtype = self.program.graph().node(node).dtype;
        let shape = self.binding.shape(self.program.graph(), node);
        let expected = shape.iter().product::<i64>() as usize * dtype.bytes();
        let complaint = if bytes.len() != expected {
            Some(format!("{} bytes are", bytes.len()))
        } else if expected > 0 && !bytes.as_ptr().addr().is_multiple_of(dtype.bytes()) {
            Some("memory that is not aligned for it is".to_owned())
        } else {
            None
        };
        match complaint {
            None => Ok(dtype),
            Some(got) => Err(ProgramError::Memory {
                name: name.to_owned(),
                expected: format!("{} ({expected} bytes)", describe(dtype, &shape)),
                got,
            }),
        }
    }

    /// Makes the memory that is missing.
    fn fill(&mut self) -> Result<(), ProgramError> {
        let graph = self.program.graph();
        for (at, param) in self.program.params().iter().enumerate() {
            if !matches!(self.slots[at], Slot::Empty) {
                continue;
            }
            let (name, dtype, shape) = match param {
                KernelParam::Size(_) | KernelParam::Constant(_) | KernelParam::Scratch(_) => {
                    continue;
                }
                KernelParam::Parameter(node) => {
                    let parts = graph.node(*node);
                    let shape = self.binding.shape(graph, *node);
                    return Err(ProgramError::Missing {
                        what: if matches!(parts.op, NodeOp::State) {
                            "state"
                        } else {
                            "input"
                        },
                        name: parts.name.clone(),
                        expected: describe(parts.dtype, &shape),
                    });
                }
                KernelParam::Log => {
                    let words = log_words(LOG_RECORDS) as i64;
                    ("the log of stores".to_owned(), DType::U64, vec![words])
                }
                KernelParam::Output(at) => {
                    let output = &graph.outputs()[*at as usize];
                    let shape = self.binding.shape(graph, output.node);
                    (output.name.clone(), graph.node(output.node).dtype, shape)
                }
            };
            let sizes: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
            let array = Array::zeros(dtype, &sizes).map_err(|_| {
                let elements: u128 = shape.iter().map(|size| *size as u128).product();
                ProgramError::OutOfMemory {
                    name,
                    bytes: elements * dtype.bytes() as u128,
                }
            })?;
            self.slots[at] = Slot::Owned(array);
        }
        Ok(())
    }
}

/// The scratch memory of a program at these sizes, in one piece: what is not used at the same time lies
/// in the same place.
fn scratch_memory(program: &Program, binding: &Binding) -> Result<ScratchMemory, ProgramError> {
    let requests = program.scratch_requests(binding, ALIGNMENT);
    let requests = requests.map_err(|scratch| ProgramError::OutOfMemory {
        name: scratch.name.clone(),
        bytes: u128::from(u64::MAX),
    })?;
    let packed = pack(&requests);
    let bytes = usize::try_from(packed.bytes)
        .ok()
        .and_then(|bytes| Array::zeros(DType::U8, &[bytes]).ok())
        .ok_or_else(|| ProgramError::OutOfMemory {
            name: match program.scratch() {
                [only] => only.name.clone(),
                _ => "scratch memory".to_owned(),
            },
            bytes: u128::from(packed.bytes),
        })?;
    let places = packed
        .offsets
        .iter()
        .zip(&requests)
        .map(|(offset, request)| {
            // All of it lies within what was allocated: nothing is lost.
            *offset as usize..(*offset + request.bytes) as usize
        });
    Ok(ScratchMemory {
        places: places.collect(),
        bytes,
    })
}

impl Bound<'static> {
    /// Runs in the background; [`Pending::wait`] gives the program back.
    pub fn start(mut self) -> Pending {
        let handle = std::thread::spawn(move || {
            let result = self.run();
            (self, result)
        });
        Pending { handle }
    }
}

/// A run in the background.
pub struct Pending {
    handle: std::thread::JoinHandle<(Bound<'static>, Result<(), ProgramError>)>,
}

impl Pending {
    /// Whether the run has ended.
    pub fn is_done(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits for the end of the run.
    pub fn wait(self) -> Result<Bound<'static>, ProgramError> {
        match self.handle.join() {
            Ok((bound, result)) => result.map(|()| bound),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn describe(dtype: DType, shape: &[i64]) -> String {
    format!("{dtype}[{}]", list(shape.iter().map(i64::to_string)))
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
