//! A device's code on host memory: what is given is moved there, and the results back.

use crate::device::{Call, DeviceCode, DeviceError, PlainDevice, Slab};
use crate::error::BackendError;
use crate::kernel_backend::Executable;
use crate::launch_argument::{LaunchArgument, MemoryAccess, SlabRange};
use crate::signature::Signature;
use loopwright_kernel::{Argument, FunctionKind, Module};
use loopwright_ops::DType;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Weak};

/// Code of a device backend, with a device that can run it.
pub(crate) struct DeviceExecutable {
    code: Arc<dyn DeviceCode>,
    device: Option<Arc<dyn PlainDevice>>,
    /// What the kernels take, by their names.
    kernels: FxHashMap<String, Result<Signature, String>>,
    /// Devices are handed the executable; this is how it hands on itself.
    this: Weak<DeviceExecutable>,
}

/// What the kernels of a module take.
fn kernels(module: &Module) -> FxHashMap<String, Result<Signature, String>> {
    let kernels = module.functions.iter();
    let kernels = kernels.filter(|f| matches!(f.kind, FunctionKind::Kernel { .. }));
    kernels
        .map(|f| (f.name.clone(), Signature::of(module, f)))
        .collect()
}

impl DeviceExecutable {
    pub(crate) fn new(
        module: &Module,
        code: Arc<dyn DeviceCode>,
        device: Option<Arc<dyn PlainDevice>>,
    ) -> Arc<DeviceExecutable> {
        Arc::new_cyclic(|this| DeviceExecutable {
            code,
            device,
            kernels: kernels(module),
            this: Weak::clone(this),
        })
    }

    fn run_on(
        &self,
        device: &dyn PlainDevice,
        kernel: &str,
        arguments: &mut [Argument<'_>],
    ) -> Result<(), DeviceError> {
        let mut slabs: Vec<Arc<dyn Slab>> = Vec::new();
        let mut given = Vec::with_capacity(arguments.len());
        for argument in &*arguments {
            given.push(match argument {
                Argument::Read(bytes) => upload(device, bytes, MemoryAccess::Read, &mut slabs)?,
                Argument::Write(bytes) => upload(device, bytes, MemoryAccess::Write, &mut slabs)?,
                Argument::Shared(cells) => {
                    let bytes: Vec<u8> = cells.iter().map(std::cell::Cell::get).collect();
                    upload(device, &bytes, MemoryAccess::Shared, &mut slabs)?
                }
                Argument::Scalar(scalar) if scalar.dtype() == DType::I64 => {
                    LaunchArgument::Integer(scalar.bits() as i64)
                }
                Argument::Scalar(scalar) => {
                    return Err(DeviceError::Other(format!(
                        "devices take memory and i64 as arguments, not {}",
                        scalar.dtype()
                    )));
                }
                Argument::Local(_) => {
                    return Err(DeviceError::Other(
                        "devices take memory and i64 as arguments, not local memory".to_owned(),
                    ));
                }
            });
        }
        let this: Arc<dyn Executable> = self
            .this
            .upgrade()
            .expect("it is running, so somebody holds it");
        let launch = device.prepare(&this, kernel, slabs.clone(), &given)?;
        let call = Call {
            statics: &[],
            merge: None,
        };
        // SAFETY: the slabs were made here, and nobody else has them.
        unsafe { launch.run(&call) }?;
        for (argument, given) in arguments.iter_mut().zip(&given) {
            let LaunchArgument::Memory(range) = given else {
                continue;
            };
            let slab = &slabs[range.slab];
            match argument {
                // SAFETY: as above; the slab is as long as the argument.
                Argument::Write(bytes) => unsafe { slab.read(0, bytes) }?,
                Argument::Shared(cells) => {
                    let mut bytes = vec![0; cells.len()];
                    // SAFETY: as above.
                    unsafe { slab.read(0, &mut bytes) }?;
                    for (cell, byte) in cells.iter().zip(bytes) {
                        cell.set(byte);
                    }
                }
                Argument::Read(_) | Argument::Scalar(_) | Argument::Local(_) => {}
            }
        }
        Ok(())
    }
}

/// Moves bytes to a slab of their own.
fn upload(
    device: &dyn PlainDevice,
    bytes: &[u8],
    access: MemoryAccess,
    slabs: &mut Vec<Arc<dyn Slab>>,
) -> Result<LaunchArgument<SlabRange>, DeviceError> {
    let slab = device.allocate(bytes.len())?;
    // SAFETY: the slab is new: nobody else has it, and it is as long as was asked for.
    unsafe { slab.write(0, bytes) }?;
    slabs.push(slab);
    Ok(LaunchArgument::Memory(SlabRange {
        slab: slabs.len() - 1,
        offset: 0,
        bytes: bytes.len(),
        access,
    }))
}

impl Executable for DeviceExecutable {
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        let failed = |reason: String| BackendError::Run {
            kernel: kernel.to_owned(),
            reason,
        };
        // A device sees memory and numbers, whatever they are: what does not fit is refused here.
        let check = || {
            let signature = self.kernels.get(kernel);
            let signature = signature.ok_or("the code has no kernel of that name")?;
            let signature = signature.as_ref().map_err(Clone::clone)?;
            signature.check(arguments)
        };
        check().map_err(|reason: String| BackendError::Call {
            kernel: kernel.to_owned(),
            reason,
        })?;
        let Some(device) = &self.device else {
            return Err(failed("its backend has no device".to_owned()));
        };
        self.run_on(&**device, kernel, arguments)
            .map_err(|error| match error {
                DeviceError::Backend(error) => error,
                error => failed(error.to_string()),
            })
    }

    fn device_code(&self) -> Option<&Arc<dyn DeviceCode>> {
        Some(&self.code)
    }

    fn code(&self) -> String {
        self.code.code()
    }

    fn log(&self) -> Option<&str> {
        self.code.log()
    }

    fn from_cache(&self) -> bool {
        self.code.from_cache()
    }
}
