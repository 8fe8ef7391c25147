//! Starting a kernel: its arguments and its grid.

use super::machine::Machine;
use super::memory::{Region, RegionId};
use super::{Grid, InterpretError, Program};
use crate::argument::Argument;
use crate::ir::{FunctionId, FunctionKind, Space, Type};

/// Runs a kernel over a grid.
pub(super) fn run(
    program: &Program,
    kernel: &str,
    args: &mut [Argument<'_>],
    grid: Grid,
    steps: u64,
) -> Result<(), InterpretError> {
    let number = program
        .functions
        .iter()
        .zip(&program.kernels)
        .position(|(function, (kind, _))| {
            function.name == kernel && matches!(kind, FunctionKind::Kernel { .. })
        })
        .map(FunctionId::from)
        .ok_or_else(|| InterpretError::NoKernel {
            name: kernel.to_owned(),
        })?;
    let (kind, params) = &program.kernels[number];
    let group = match kind {
        FunctionKind::Kernel { group } => *group,
        FunctionKind::Device => None,
    };
    check_grid(kernel, grid, group)?;

    let mut locals: Vec<u64> = program.locals.iter().map(|site| site.bytes).collect();
    let (arguments, initial) = bind(kernel, params, args, &mut locals)?;
    let mut machine = Machine {
        program,
        arguments,
        group: Vec::new(),
        grid,
        group_id: [0; 3],
        steps,
        limit: steps,
    };
    let groups = [0, 1, 2].map(|axis| grid.global[axis] / grid.local[axis]);
    for z in 0..groups[2] {
        for y in 0..groups[1] {
            for x in 0..groups[0] {
                machine.group_id = [x, y, z];
                machine.group.clear();
                for &bytes in &locals {
                    machine.group.push(Region::Own(machine.own(number, bytes)?));
                }
                machine.run_group(number, &initial)?;
            }
        }
    }
    Ok(())
}

fn check_grid(kernel: &str, grid: Grid, group: Option<[u32; 3]>) -> Result<(), InterpretError> {
    let refuse = |reason: String| {
        Err(InterpretError::Grid {
            kernel: kernel.to_owned(),
            global: grid.global,
            local: grid.local,
            reason,
        })
    };
    if grid.local.contains(&0) {
        return refuse("a group has at least one work-item".into());
    }
    if (0..3).any(|axis| !grid.global[axis].is_multiple_of(grid.local[axis])) {
        return refuse("the groups do not fill it".into());
    }
    match group {
        Some(group) if group.map(u64::from) != grid.local => {
            refuse(format!("the kernel insists on groups of {group:?}"))
        }
        _ => Ok(()),
    }
}

/// The buffers as regions, and the bits each parameter's slots begin with. Local parameters become
/// regions of the work-group behind the local allocs.
type Bound<'a> = (Vec<Region<'a>>, Vec<[u64; 2]>);

fn bind<'a>(
    kernel: &str,
    params: &[(String, Type)],
    args: &'a mut [Argument<'_>],
    locals: &mut Vec<u64>,
) -> Result<Bound<'a>, InterpretError> {
    if params.len() != args.len() {
        return Err(InterpretError::ArgumentCount {
            kernel: kernel.to_owned(),
            expected: params.len(),
            got: args.len(),
        });
    }
    let mut regions = Vec::new();
    let mut initial = Vec::new();
    for ((name, ty), arg) in params.iter().zip(args) {
        let expected = match ty {
            Type::Scalar(dtype) => format!("a scalar of {dtype}"),
            Type::Pointer(Space::Local, _) => "local memory".to_owned(),
            Type::Pointer(..) => "a buffer".to_owned(),
            other => format!("{other:?}, which the host cannot give,"),
        };
        let mut buffer = |region| {
            regions.push(region);
            RegionId::Argument(regions.len() as u32 - 1).bits()
        };
        let got = match (ty, arg) {
            (Type::Scalar(dtype), Argument::Scalar(scalar)) if scalar.dtype() == *dtype => {
                initial.push([scalar.bits(), 0]);
                continue;
            }
            (Type::Pointer(Space::Global | Space::Constant, _), Argument::Read(bytes)) => {
                initial.push([buffer(Region::Read(bytes)), 0]);
                continue;
            }
            (Type::Pointer(Space::Global | Space::Constant, _), Argument::Write(bytes)) => {
                initial.push([buffer(Region::Write(bytes)), 0]);
                continue;
            }
            (Type::Pointer(Space::Global | Space::Constant, _), Argument::Shared(cells)) => {
                initial.push([buffer(Region::Shared(cells)), 0]);
                continue;
            }
            (Type::Pointer(Space::Local, _), Argument::Local(bytes)) => {
                locals.push(*bytes);
                initial.push([RegionId::Group(locals.len() as u32 - 1).bits(), 0]);
                continue;
            }
            (_, Argument::Scalar(scalar)) => format!("a scalar of {}", scalar.dtype()),
            (_, Argument::Read(_) | Argument::Write(_) | Argument::Shared(_)) => {
                "a buffer".to_owned()
            }
            (_, Argument::Local(_)) => "local memory".to_owned(),
        };
        return Err(InterpretError::Argument {
            kernel: kernel.to_owned(),
            param: name.clone(),
            expected,
            got,
        });
    }
    Ok((regions, initial))
}
