//! Programs that several backends run, each its part.
//!
//! A schedule can hand a subtree of the loop tree to another backend. The program then is lowered in parts,
//! each a kernel of its own that its backend compiles; what one part computes and another reads lies in
//! scratch memory. To everybody above it is one program: [`Delegated`] runs the parts one after the other.

use crate::kernels::{Kernels, Passes, validate};
use crate::program::ProgramError;
use loopwright_backend::{
    Argument, Backend, BackendError, CompileOptions, CompileUnit, Executable, KernelLaunch, Level,
    stage,
};
use loopwright_graph::{Graph, NodeId, NodeOp};
use loopwright_kernel::{
    Access, Function, FunctionId, FunctionKind, Module, Param, Space, Stmt, Type, ValueInfo,
};
use loopwright_looptree::{Plan, is_given, parts_by_delegate};
use loopwright_lower::{KernelParam, Scratch, lower_parts};
use loopwright_ops::DType;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Lowers a program whose schedule delegates parts of it to other backends.
pub(crate) fn lower_delegated(
    plan: Plan,
    name: &str,
    passes: Passes<'_>,
) -> Result<Kernels, ProgramError> {
    let ranges = parts_by_delegate(plan.tree());
    let roots: Vec<Range<usize>> = ranges.iter().map(|(roots, _)| roots.clone()).collect();
    let lowered = stage("lower", || lower_parts(&plan, name, &roots))?;
    let scratch = lowered.first().map(|part| part.scratch.clone());
    let mut scratch = scratch.unwrap_or_default();
    let mut launches = Vec::with_capacity(lowered.len());
    let mut notes = Vec::new();
    for (at, (part, (_, backend))) in lowered.into_iter().zip(ranges).enumerate() {
        notes.extend(part.notes);
        let (mut launch, spilled) = passes.run(part.module, part.params, scratch.len())?;
        // Also where there is one part alone: the program's own name is that of the whole.
        launch.module.functions[FunctionId(0)].name = format!("{name}_{at}");
        launch.backend = backend;
        scratch.extend(spilled);
        launches.push(launch);
    }
    let params = all_params(plan.graph(), &scratch);
    // A result is there from the first part that has it to the last.
    let scratch_live = (0..scratch.len() as u32).map(|number| {
        let has = |launch: &KernelLaunch| launch.params.contains(&KernelParam::Scratch(number));
        let first = launches.iter().position(has).unwrap_or(0);
        let end = launches.iter().rposition(has);
        first as u32..end.map_or(0, |last| last as u32 + 1)
    });
    let kernels = Kernels {
        name: name.to_owned(),
        reasons: FxHashMap::default(),
        plainer: None,
        notes,
        scratch_live: scratch_live.collect(),
        params,
        scratch,
        launches,
        plan,
        log_sites: Vec::new(),
    };
    validate(&kernels.module(), "joining parts")?;
    Ok(kernels)
}

/// What a program takes, whether or not a part uses it: as where it is one kernel.
fn all_params(graph: &Graph, scratch: &[Scratch]) -> Vec<KernelParam> {
    let constants = graph.node_ids().filter(|node| {
        matches!(graph.node(*node).op, NodeOp::Constant(_)) && is_given(graph, *node)
    });
    let outputs = 0..graph.outputs().len() as u32;
    let scratch = 0..scratch.len() as u32;
    let sizes = graph.integers().map(|(symbol, ..)| symbol);
    let arrays = graph.parameters().map(KernelParam::Parameter);
    arrays
        .chain(constants.map(KernelParam::Constant))
        .chain(outputs.map(KernelParam::Output))
        .chain(scratch.map(KernelParam::Scratch))
        .chain(sizes.map(KernelParam::Size))
        .collect()
}

/// A kernel that calls the parts, one after the other: what the whole means.
pub(crate) fn joined(
    graph: &Graph,
    launches: &[KernelLaunch],
    params: &[KernelParam],
    name: &str,
) -> Module {
    let mut whole = Function::new(name, FunctionKind::Kernel { group: None });
    let mut values = Vec::with_capacity(params.len());
    for wanted in params {
        // Declared as in the parts that have it: written if any of them writes it.
        let declared = launches.iter().flat_map(|part| {
            let at = part.params.iter().position(|param| param == wanted)?;
            let function = &part.module.functions[FunctionId(0)];
            let param = &function.params[at];
            Some((param, &function.values[param.value]))
        });
        let declared: Vec<_> = declared.collect();
        let Some((first, info)) = declared.first() else {
            let (ty, name) = unused(graph, *wanted);
            values.push(whole.param(ty, name, Access::Read, true));
            continue;
        };
        let same = |(param, _): &(&Param, &ValueInfo)| param.access == first.access;
        let access = match declared.iter().all(same) {
            true => first.access,
            false => Access::ReadWrite,
        };
        let noalias = declared.iter().all(|(param, _)| param.noalias);
        values.push(whole.param(info.ty.clone(), info.name.clone(), access, noalias));
    }
    for (at, part) in launches.iter().enumerate() {
        let given = part.params.iter().map(|param| {
            let at = params.iter().position(|known| known == param);
            values[at.expect("all parameters of parts are listed")]
        });
        whole
            .body
            .push(Stmt::Call(FunctionId(at as u32 + 1), given.collect()));
    }
    let mut module = Module {
        functions: vec![whole].into(),
        ..Module::default()
    };
    for part in launches {
        let mut called = part.module.clone();
        called.functions[FunctionId(0)].kind = FunctionKind::Device;
        module.append(called);
    }
    module
}

/// Type and name of a parameter that no part uses.
fn unused(graph: &Graph, param: KernelParam) -> (Type, String) {
    let array = |node: NodeId, name: &str| {
        let element = Type::Scalar(graph.node(node).dtype);
        (element.pointer(Space::Global), name.to_owned())
    };
    match param {
        KernelParam::Parameter(node) | KernelParam::Constant(node) => {
            array(node, &graph.node(node).name)
        }
        KernelParam::Output(number) => {
            let output = &graph.outputs()[number as usize];
            array(output.node, &output.name)
        }
        KernelParam::Size(symbol) => (Type::INDEX, graph.symbol_name(symbol)),
        KernelParam::Scratch(_) | KernelParam::Log => {
            let byte = Type::Scalar(DType::U8);
            (byte.pointer(Space::Global), "unused".to_owned())
        }
    }
}

/// Has every part compiled by its backend, all parts of one backend together.
pub(crate) fn compile_delegated(
    own: &Backend,
    find: &dyn Fn(&str) -> Option<Backend>,
    kernels: &Kernels,
    options: &CompileOptions,
) -> Result<Arc<dyn Executable>, ProgramError> {
    let refuse = |reason: String| ProgramError::Delegate {
        program: kernels.name.clone(),
        reason,
    };
    if own.level() != Level::Kernel {
        return Err(refuse(format!(
            "`{}` is a {} backend; only one that takes kernels and works in host memory can hand parts of \
             a program on",
            own.name(),
            own.level()
        )));
    }
    let units: Vec<CompileUnit<'_>> = kernels.units().collect();
    let mut executables: Vec<Option<Arc<dyn Executable>>> = vec![None; units.len()];
    for at in 0..units.len() {
        if executables[at].is_some() {
            continue;
        }
        let name = &units[at].launch.backend;
        let backend = match name {
            None => own.clone(),
            Some(name) => delegate(find, name).map_err(refuse)?,
        };
        let same = |other: &usize| units[*other].launch.backend == *name;
        let same: Vec<usize> = (at..units.len()).filter(same).collect();
        let together: Vec<CompileUnit<'_>> = same.iter().map(|other| units[*other]).collect();
        let compiled = backend.compile(&together, options)?;
        for (other, executable) in same.into_iter().zip(compiled) {
            executables[other] = Some(executable);
        }
    }
    let parts = kernels
        .launches
        .iter()
        .zip(executables)
        .map(|(part, code)| {
            let place = |param: &KernelParam| {
                let at = kernels.params.iter().position(|known| known == param);
                at.expect("all parameters of parts are listed")
            };
            CompiledPart {
                backend: part.backend.as_deref().unwrap_or(own.name()).to_owned(),
                kernel: part.kernel().to_owned(),
                code: code.expect("every part was compiled"),
                places: part.params.iter().map(place).collect(),
            }
        });
    Ok(Arc::new(Delegated {
        name: kernels.name.clone(),
        takes: kernels.params.len(),
        parts: parts.collect(),
    }))
}

/// The backend that a part is handed to.
fn delegate(find: &dyn Fn(&str) -> Option<Backend>, name: &str) -> Result<Backend, String> {
    let Some(backend) = find(name) else {
        return Err(format!(
            "there is no backend `{name}` to hand a part to; `loopwright devices` lists what there is"
        ));
    };
    if let Err(why) = backend.availability() {
        return Err(format!(
            "`{name}`, which has a part, is not available: {why}"
        ));
    }
    match backend.level() {
        Level::Loop => Err(format!(
            "`{name}` takes whole programs as loop trees; parts are handed on as kernels"
        )),
        Level::Kernel | Level::Device => Ok(backend),
    }
}

/// Roots of the tree that a backend refuses, each with the reason.
pub(crate) fn refused_roots(
    backend: &Backend,
    plan: &Plan,
    passes: Passes<'_>,
    options: &CompileOptions,
) -> Result<Vec<(usize, String)>, ProgramError> {
    let tree = plan.tree();
    let roots: Vec<Range<usize>> = (0..tree.roots().len()).map(|at| at..at + 1).collect();
    let mut refused = Vec::new();
    for (root, part) in lower_parts(plan, "part", &roots)?.into_iter().enumerate() {
        if tree.delegate(tree.roots()[root]).is_some() {
            continue;
        }
        let (launch, _) = passes.run(part.module, part.params, part.scratch.len())?;
        let launch = &launch;
        match backend.compile(&[CompileUnit { launch, plan }], options) {
            Ok(_) => {}
            Err(BackendError::Unsupported { reason, .. }) => refused.push((root, reason)),
            Err(other) => return Err(other.into()),
        }
    }
    Ok(refused)
}

/// A program in parts, compiled.
struct Delegated {
    name: String,
    /// How many arguments it takes.
    takes: usize,
    parts: Vec<CompiledPart>,
}

struct CompiledPart {
    backend: String,
    kernel: String,
    code: Arc<dyn Executable>,
    /// Which of the program's arguments the part takes, in order.
    places: Vec<usize>,
}

impl Executable for Delegated {
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        let wrong = |reason: String| BackendError::Call {
            kernel: kernel.to_owned(),
            reason,
        };
        if kernel != self.name {
            return Err(wrong("the code has no kernel of that name".to_owned()));
        }
        if arguments.len() != self.takes {
            let (takes, got) = (self.takes, arguments.len());
            return Err(wrong(format!("it takes {takes} arguments, not {got}")));
        }
        for part in &self.parts {
            let mut all: Vec<Option<&mut Argument<'_>>> = arguments.iter_mut().map(Some).collect();
            let mut given: Vec<Argument<'_>> = part
                .places
                .iter()
                .map(|place| {
                    let argument = all[*place].take();
                    let argument = argument.expect("a kernel has each parameter once");
                    argument.reborrow()
                })
                .collect();
            // SAFETY: each part is lowered from the same graph, and is given the same memory.
            unsafe { part.code.run(&part.kernel, &mut given) }?;
        }
        Ok(())
    }

    fn code(&self) -> String {
        let mut text = String::new();
        // Parts of one backend are one executable, whose code is printed once.
        let mut shown: Vec<&Arc<dyn Executable>> = Vec::new();
        for part in &self.parts {
            text += &format!("// {} runs {}\n", part.backend, part.kernel);
            if !shown.iter().any(|known| Arc::ptr_eq(known, &part.code)) {
                text += &part.code.code();
                text += "\n";
                shown.push(&part.code);
            }
        }
        text
    }

    fn from_cache(&self) -> bool {
        self.parts.iter().any(|part| part.code.from_cache())
    }
}
