//! The memory of one run.

use loopwright_graph::{Array, Binding, Graph, NodeId, NodeOp};
use loopwright_lower::{KernelParam, Scratch};
use loopwright_ops::Scalar;

/// What memory holds before anything is written: no number that a program is likely to compute.
const GARBAGE: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// Words behind every array that nothing may write to.
const GUARD: usize = 2;

/// An array with guards, aligned for every dtype.
#[derive(Clone, PartialEq, Debug)]
struct Buffer {
    words: Vec<u64>,
    bytes: usize,
    writable: bool,
}

impl Buffer {
    fn new(bytes: usize, writable: bool) -> Buffer {
        Buffer {
            words: vec![GARBAGE; bytes.div_ceil(8) + GUARD],
            bytes,
            writable,
        }
    }

    fn holding(bytes: &[u8], writable: bool) -> Buffer {
        let mut buffer = Buffer::new(bytes.len(), writable);
        buffer.bytes_mut().copy_from_slice(bytes);
        buffer
    }

    fn all_mut(&mut self) -> &mut [u8] {
        let (start, length) = (self.words.as_mut_ptr().cast(), self.words.len() * 8);
        // SAFETY: the words are initialised, exclusively borrowed, and any bytes are valid words.
        unsafe { std::slice::from_raw_parts_mut(start, length) }
    }

    fn all(&self) -> &[u8] {
        let (start, length) = (self.words.as_ptr().cast(), self.words.len() * 8);
        // SAFETY: the words are initialised and borrowed, and a byte needs no alignment.
        unsafe { std::slice::from_raw_parts(start, length) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.bytes;
        &mut self.all_mut()[..bytes]
    }

    fn bytes(&self) -> &[u8] {
        &self.all()[..self.bytes]
    }
}

#[derive(Clone, PartialEq)]
enum Held {
    Buffer(Buffer),
    Scalar(Scalar),
}

/// One argument of a kernel.
pub(super) enum Slot<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
    Scalar(Scalar),
}

/// The arguments of a kernel, one for each of its parameters.
#[derive(Clone, PartialEq)]
pub(super) struct Memory {
    held: Vec<Held>,
}

impl Memory {
    pub(super) fn new(
        graph: &Graph,
        binding: &Binding,
        params: &[KernelParam],
        scratch: &[Scratch],
        inputs: &[(NodeId, Array)],
    ) -> Memory {
        let bytes =
            |node: NodeId| binding.elements(graph, node) as usize * graph.node(node).dtype.bytes();
        let held = params.iter().map(|param| match param {
            KernelParam::Parameter(node) => {
                let updated = graph.updates().iter().any(|update| update.state == *node);
                let given = inputs.iter().find(|(given, _)| given == node);
                Held::Buffer(match given {
                    Some((_, array)) => Buffer::holding(array.bytes(), updated),
                    None => Buffer::new(bytes(*node), updated),
                })
            }
            KernelParam::Constant(node) => {
                let mut buffer = Buffer::new(bytes(*node), false);
                if let NodeOp::Constant(values) = &graph.node(*node).op {
                    let width = graph.node(*node).dtype.bytes();
                    for (value, place) in values.iter().zip(buffer.bytes_mut().chunks_mut(width)) {
                        value.write(place);
                    }
                }
                Held::Buffer(buffer)
            }
            KernelParam::Output(at) => {
                let node = graph.outputs()[*at as usize].node;
                Held::Buffer(Buffer::new(bytes(node), true))
            }
            KernelParam::Scratch(at) => {
                let scratch = &scratch[*at as usize];
                let elements = scratch
                    .elements
                    .evaluate(&|symbol| Some(binding.value(symbol)));
                let elements = elements.unwrap_or(0).max(0) as usize;
                Held::Buffer(Buffer::new(elements * scratch.dtype.bytes(), true))
            }
            // A log without room for records: what is logged is not looked at here.
            KernelParam::Log => {
                let header = vec![0; loopwright_compile::log_words(0) * 8];
                Held::Buffer(Buffer::holding(&header, true))
            }
            KernelParam::Size(symbol) => Held::Scalar(Scalar::i64(binding.value(*symbol))),
        });
        Memory {
            held: held.collect(),
        }
    }

    pub(super) fn slots(&mut self) -> impl Iterator<Item = Slot<'_>> {
        self.held.iter_mut().map(|held| match held {
            Held::Buffer(buffer) => {
                if buffer.writable {
                    Slot::Write(buffer.bytes_mut())
                } else {
                    Slot::Read(buffer.bytes())
                }
            }
            Held::Scalar(scalar) => Slot::Scalar(*scalar),
        })
    }

    /// Whether nothing was written behind the end of an array.
    pub(super) fn check_guards(&self) -> Result<(), String> {
        for (at, held) in self.held.iter().enumerate() {
            if let Held::Buffer(buffer) = held
                && buffer.all()[buffer.bytes..]
                    .iter()
                    .any(|byte| *byte != GARBAGE as u8)
            {
                return Err(format!(
                    "something was written behind the end of argument {at}"
                ));
            }
        }
        Ok(())
    }

    /// The bytes of the results: the outputs', then the updated states'.
    pub(super) fn results(&self, graph: &Graph, params: &[KernelParam]) -> Vec<&[u8]> {
        let places = result_places(graph, params).into_iter();
        let bytes = places.map(|place| match place.map(|at| &self.held[at]) {
            Some(Held::Buffer(buffer)) => buffer.bytes(),
            _ => &[],
        });
        bytes.collect()
    }
}

/// Which parameters of a kernel the results are: the outputs, then the updated states.
pub(super) fn result_places(graph: &Graph, params: &[KernelParam]) -> Vec<Option<usize>> {
    let outputs = (0..graph.outputs().len()).map(|at| KernelParam::Output(at as u32));
    let updates = graph.updates().iter();
    let states = updates.map(|update| KernelParam::Parameter(update.state));
    let wanted = outputs.chain(states);
    let place = |wanted: KernelParam| params.iter().position(|param| *param == wanted);
    wanted.map(place).collect()
}
