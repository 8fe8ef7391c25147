//! A device backend: memory that the host cannot address, and a processor that runs what is loaded.
//!
//! Both are simulated in this process: memory is slabs with numbers behind a lock, the processor an interpreter.
//!
//! `cargo run -p loopwright-example-backends --bin far -- devices`
use loopwright::backend::*;
use loopwright::kernel::interpret::Program;
use loopwright::kernel::{FunctionId, Module};
use loopwright::ops::Scalar;
use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of the device's memory.
const MEMORY: usize = 1 << 30;

register_backend!(-20, || Backend::device_backend(Far::default()));

#[derive(Default)]
struct Far {
    board: Arc<Board>,
}

impl Describe for Far {
    fn name(&self) -> &str {
        "far"
    }
    fn hardware(&self) -> Hardware {
        Hardware::Accelerator
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_buffer: Some(MEMORY as u64),
            ..Capabilities::without_groups()
        }
    }
}

impl DeviceBackend for Far {
    fn compile(
        &self,
        module: &Module,
        _: &CompileOptions,
    ) -> Result<Arc<dyn DeviceCode>, BackendError> {
        let image = Program::new(module).map_err(|error| BackendError::Unsupported {
            backend: self.name().to_owned(),
            kernel: module.functions[FunctionId(0)].name.clone(),
            reason: error.to_string(),
        })?;
        Ok(Arc::new(FarCode {
            image: Arc::new(image),
            text: module.to_string(),
        }))
    }
    fn devices(&self) -> Vec<Arc<dyn PlainDevice>> {
        vec![Arc::new(FarDevice(Arc::clone(&self.board)))]
    }
}

/// What the compiler makes and the device loads.
struct FarCode {
    image: Arc<Program>,
    text: String,
}

impl DeviceCode for FarCode {
    fn code(&self) -> String {
        self.text.clone()
    }
}

/// The hardware. Whoever has the lock has the bus.
#[derive(Default)]
struct Board(Mutex<Slabs>);

#[derive(Default)]
struct Slabs {
    made: u64,
    memory: BTreeMap<u64, Vec<u8>>,
}

impl Board {
    fn bus(&self) -> MutexGuard<'_, Slabs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the host has of the device: the end of a cable.
struct FarDevice(Arc<Board>);

impl PlainDevice for FarDevice {
    fn limits(&self) -> Limits {
        Limits {
            description: "a board at the end of a cable".to_owned(),
            memory: Some(MEMORY as u64),
            threads: 1,
            streams: 1,
            host_memory: false,
        }
    }
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Slab>, DeviceError> {
        let mut slabs = self.0.bus();
        let used: usize = slabs.memory.values().map(Vec::len).sum();
        if bytes > MEMORY - used {
            return Err(DeviceError::OutOfMemory { bytes });
        }
        slabs.made += 1;
        let number = slabs.made;
        slabs.memory.insert(number, vec![0; bytes]);
        let board = Arc::clone(&self.0);
        Ok(Arc::new(FarSlab {
            board,
            number,
            bytes,
        }))
    }
    fn prepare(
        &self,
        code: &Arc<dyn Executable>,
        kernel: &str,
        slabs: Vec<Arc<dyn Slab>>,
        arguments: &[LaunchArgument<SlabRange>],
    ) -> Result<Box<dyn Launch>, DeviceError> {
        let code = code.device_code().map(|code| &**code as &dyn Any);
        let code = code.and_then(|code| code.downcast_ref::<FarCode>());
        let code = code.ok_or_else(|| DeviceError::Other("the code is not for `far`".into()))?;
        // Every argument is looked at once, here, and not in each call.
        let mut given = Vec::with_capacity(arguments.len());
        for (at, argument) in arguments.iter().enumerate() {
            given.push(argument.try_map(|range| {
                let slab = number(&slabs[range.slab], &self.0, at)?;
                Ok::<_, DeviceError>((slab, range.offset, range.bytes))
            })?);
        }
        Ok(Box::new(FarLaunch {
            board: Arc::clone(&self.0),
            image: Arc::clone(&code.image),
            kernel: kernel.to_owned(),
            given,
            _slabs: slabs,
        }))
    }
}

/// A slab's number, if it is of this board.
fn number(slab: &Arc<dyn Slab>, board: &Arc<Board>, argument: usize) -> Result<u64, DeviceError> {
    let own = (&**slab as &dyn Any).downcast_ref::<FarSlab>();
    let own = own.filter(|slab| Arc::ptr_eq(&slab.board, board));
    own.map(|slab| slab.number)
        .ok_or(DeviceError::Foreign { argument })
}

/// A piece of the device's memory: a number, and no address.
struct FarSlab {
    board: Arc<Board>,
    number: u64,
    bytes: usize,
}

impl Slab for FarSlab {
    fn bytes(&self) -> usize {
        self.bytes
    }
    unsafe fn write(&self, offset: usize, from: &[u8]) -> Result<(), DeviceError> {
        let mut slabs = self.board.bus();
        let memory = slabs
            .memory
            .get_mut(&self.number)
            .expect("it is freed on drop");
        memory[offset..offset + from.len()].copy_from_slice(from);
        Ok(())
    }
    unsafe fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), DeviceError> {
        let slabs = self.board.bus();
        to.copy_from_slice(&slabs.memory[&self.number][offset..offset + to.len()]);
        Ok(())
    }
    fn address(&self) -> Option<*mut u8> {
        None
    }
}

impl Drop for FarSlab {
    fn drop(&mut self) {
        self.board.bus().memory.remove(&self.number);
    }
}

/// A kernel with its arguments, as the device knows them.
struct FarLaunch {
    board: Arc<Board>,
    image: Arc<Program>,
    kernel: String,
    /// Memory by slab, offset and bytes.
    given: Vec<LaunchArgument<(u64, usize, usize)>>,
    /// Keeps the memory there.
    _slabs: Vec<Arc<dyn Slab>>,
}

impl Launch for FarLaunch {
    unsafe fn run(&self, call: &Call<'_>) -> Result<(), DeviceError> {
        let mut slabs = self.board.bus();
        // The processor sees all of the memory, and arguments may lie in one slab.
        let memory: BTreeMap<u64, &[Cell<u8>]> = slabs
            .memory
            .iter_mut()
            .map(|(number, slab)| (*number, Cell::from_mut(&mut slab[..]).as_slice_of_cells()))
            .collect();
        let view = |slab, offset, bytes| Argument::Shared(&memory[&slab][offset..offset + bytes]);
        let mut arguments = Vec::with_capacity(self.given.len());
        for (argument, given) in self.given.iter().enumerate() {
            arguments.push(match *given {
                LaunchArgument::Memory((slab, offset, bytes)) => view(slab, offset, bytes),
                LaunchArgument::Integer(value) => Argument::Scalar(Scalar::i64(value)),
                LaunchArgument::Static(at) => Argument::Scalar(Scalar::i64(call.statics[at])),
                LaunchArgument::Merge { bytes } => {
                    let found = call.merge.ok_or(DeviceError::Foreign { argument })?;
                    view(number(found.0, &self.board, argument)?, found.1, bytes)
                }
            });
        }
        let grid = self.image.one_group(&self.kernel);
        let ran = self.image.run(&self.kernel, &mut arguments, grid, None);
        ran.map_err(|error| {
            DeviceError::Backend(BackendError::Run {
                kernel: self.kernel.clone(),
                reason: error.to_string(),
            })
        })
    }
}

loopwright_cli::main!();
