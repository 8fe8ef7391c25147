//! A device's code on host memory: what is given is moved there, and the results back.

use crate::device::{Call, DeviceCode, DeviceError, MemoryAccess, Placeholder, PlainDevice, Slab};
use crate::error::BackendError;
use crate::kernel_backend::{Argument, Executable};
use loopwright_kernel::{Access, Function, FunctionKind, Module, Param, Space, Type};
use loopwright_ops::DType;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Weak};

/// Code of a device backend, with a device that can run it.
pub(crate) struct DeviceExecutable {
    code: Arc<dyn DeviceCode>,
    device: Option<Arc<dyn PlainDevice>>,
    /// What the kernels take, by their names.
    kernels: FxHashMap<String, Vec<Takes>>,
    /// Devices are handed the executable; this is how it hands on itself.
    this: Weak<DeviceExecutable>,
}

/// What a kernel's parameter takes.
enum Takes {
    Memory {
        name: String,
        written: bool,
    },
    Scalar {
        name: String,
        dtype: DType,
    },
    /// Something that no argument is.
    Other {
        name: String,
    },
}

/// What the kernels of a module take.
fn kernels(module: &Module) -> FxHashMap<String, Vec<Takes>> {
    let takes = |function: &Function, param: &Param| {
        let info = &function.values[param.value.0 as usize];
        let name = info.name.clone();
        match info.ty {
            Type::Scalar(dtype) => Takes::Scalar { name, dtype },
            Type::Pointer(Space::Global | Space::Constant, _) => Takes::Memory {
                name,
                written: param.access != Access::Read,
            },
            _ => Takes::Other { name },
        }
    };
    let kernels = module.functions.iter();
    let kernels = kernels.filter(|f| matches!(f.kind, FunctionKind::Kernel { .. }));
    kernels
        .map(|f| {
            let params = f.params.iter().map(|param| takes(f, param));
            (f.name.clone(), params.collect())
        })
        .collect()
}

/// Refuses arguments that a kernel does not take: a device sees memory and numbers, whatever they are.
fn check(takes: &[Takes], arguments: &[Argument<'_>]) -> Result<(), String> {
    if takes.len() != arguments.len() {
        let (takes, got) = (takes.len(), arguments.len());
        return Err(format!("it takes {takes} arguments, not {got}"));
    }
    for (takes, argument) in takes.iter().zip(arguments) {
        match (takes, argument) {
            (
                Takes::Memory {
                    name,
                    written: true,
                },
                Argument::Read(_),
            ) => {
                return Err(format!("`{name}` is written, and memory to read is given"));
            }
            (Takes::Memory { name, .. }, Argument::Scalar(scalar)) => {
                return Err(format!(
                    "`{name}` is memory, and {} is given",
                    scalar.dtype()
                ));
            }
            (Takes::Memory { .. }, _) => {}
            (Takes::Scalar { dtype, .. }, Argument::Scalar(scalar)) if scalar.dtype() == *dtype => {
            }
            (Takes::Scalar { name, dtype }, Argument::Scalar(scalar)) => {
                let got = scalar.dtype();
                return Err(format!("`{name}` is {dtype}, and {got} is given"));
            }
            (Takes::Scalar { name, dtype }, _) => {
                return Err(format!("`{name}` is {dtype}, and memory is given"));
            }
            (Takes::Other { name }, _) => {
                return Err(format!("`{name}` is neither memory nor a number"));
            }
        }
    }
    Ok(())
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
        let mut placeholders = Vec::with_capacity(arguments.len());
        for argument in &*arguments {
            placeholders.push(match argument {
                Argument::Read(bytes) => upload(device, bytes, MemoryAccess::Read, &mut slabs)?,
                Argument::Write(bytes) => upload(device, bytes, MemoryAccess::Write, &mut slabs)?,
                Argument::Shared(cells) => {
                    let bytes: Vec<u8> = cells.iter().map(std::cell::Cell::get).collect();
                    upload(device, &bytes, MemoryAccess::Shared, &mut slabs)?
                }
                Argument::Scalar(scalar) if scalar.dtype() == DType::I64 => {
                    Placeholder::Integer(scalar.bits() as i64)
                }
                Argument::Scalar(scalar) => {
                    return Err(DeviceError::Other(format!(
                        "devices take memory and i64 as arguments, not {}",
                        scalar.dtype()
                    )));
                }
            });
        }
        let this: Arc<dyn Executable> = self
            .this
            .upgrade()
            .expect("it is running, so somebody holds it");
        let launch = device.prepare(&this, kernel, slabs.clone(), &placeholders)?;
        let call = Call {
            statics: &[],
            merge: None,
        };
        // SAFETY: the slabs were made here, and nobody else has them.
        unsafe { launch.run(&call) }?;
        for (argument, placeholder) in arguments.iter_mut().zip(&placeholders) {
            let Placeholder::Memory { slab, .. } = placeholder else {
                continue;
            };
            let slab = &slabs[*slab];
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
                Argument::Read(_) | Argument::Scalar(_) => {}
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
) -> Result<Placeholder, DeviceError> {
    let slab = device.allocate(bytes.len())?;
    // SAFETY: the slab is new: nobody else has it, and it is as long as was asked for.
    unsafe { slab.write(0, bytes) }?;
    slabs.push(slab);
    Ok(Placeholder::Memory {
        slab: slabs.len() - 1,
        offset: 0,
        bytes: bytes.len(),
        access,
    })
}

impl Executable for DeviceExecutable {
    fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        let failed = |reason: String| BackendError::Run {
            kernel: kernel.to_owned(),
            reason,
        };
        let takes = self.kernels.get(kernel);
        let takes = takes.ok_or_else(|| "the code has no kernel of that name".to_owned());
        takes
            .and_then(|takes| check(takes, arguments))
            .map_err(|reason| BackendError::Call {
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
