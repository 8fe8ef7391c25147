//! From kernel IR to the library's calls.
//!
//! Every value gets a variable of its own, which the compiler takes apart again; ops that are not an operator of the
//! compiler's become small functions that are copied where they are called. Signed overflow wraps
//! (`-fwrapv`). Narrow floats are held as their bits, `bool` as a byte of 0 or 1, and a vector of `bool` that a
//! comparison gave as a mask.

mod code;
mod compare;
mod convert;
mod function;
mod instruction;
mod memory;
mod parallel;
mod scalar_ops;
mod types;
mod uses;
mod vector_ops;

use crate::context::Context;
use crate::ffi::{Binary, FuncKind, Place, Ty, Val, types as basic};
use crate::level::Level;
use code::{Code, Shared};
use function::{Home, Signature, Writer};
use loopwright_arena::TiVec;
use loopwright_kernel::{Function, FunctionId, FunctionKind, Module, Type, mark_callers};
use loopwright_ops::DType;
use rustc_hash::FxHashMap;
use types::Types;
use uses::{Uses, uses};

/// Why a function cannot be lowered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal(pub(crate) String);

/// A kernel's entry point.
pub(crate) struct EntryPoint {
    /// The kernel's name in the module.
    pub(crate) kernel: String,
    /// What the entry point is called in the code.
    pub(crate) symbol: String,
}

/// A module that was not validated.
fn mistyped(expected: &str) -> Refusal {
    Refusal(format!(
        "there must be {expected}; the module must be validated first"
    ))
}

/// A name of letters, digits and underlines that the library takes.
fn identifier(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect()
}

/// Describes a validated module to `context`. `Err` names the function that is refused.
pub(crate) fn lower(
    module: &Module,
    context: &Context,
    level: Level,
) -> Result<Vec<EntryPoint>, (String, Refusal)> {
    let mut shared = Shared::new(context, level);
    let all_uses: TiVec<FunctionId, Uses> = module
        .functions
        .iter()
        .map(|function| uses(function, is_kernel(function)))
        .collect();
    for (function, uses) in module.functions.iter().zip(&all_uses) {
        if let Some(what) = uses.group {
            let reason = format!(
                "it uses {what}, which needs the work-items of a group to run together; \
                 split the kernel at its barriers first"
            );
            return Err((function.name.clone(), Refusal(reason)));
        }
    }
    let in_module = |refusal| {
        (
            module
                .functions
                .first()
                .map_or_else(String::new, |f| f.name.clone()),
            refusal,
        )
    };
    let mut types = Types::new(module, &mut shared).map_err(in_module)?;
    let asks = all_uses.iter().map(|uses| uses.work_items).collect();
    let work_items = mark_callers(asks, all_uses.iter().map(|uses| uses.calls.as_slice()));

    // All functions are declared before one is written: calls go both ways.
    let mut signatures = TiVec::with_capacity(module.functions.len());
    let mut names: TiVec<FunctionId, _> = TiVec::with_capacity(module.functions.len());
    for (at, function) in module.functions.iter_enumerated() {
        let refused = |refusal| (function.name.clone(), refusal);
        let kind = if is_kernel(function) { "kernel" } else { "fn" };
        let name = format!("lw_{kind}{}_{}", at.0, identifier(&function.name));
        let runtime = !all_uses[at].captures.is_empty();
        let signature = declare(
            function,
            &name,
            work_items[at],
            runtime,
            &mut types,
            &mut shared,
        );
        signatures.push(signature.map_err(refused)?);
        names.push(name);
    }
    let mut entries = Vec::new();
    for (at, function) in module.functions.iter_enumerated() {
        let refused = |refusal| (function.name.clone(), refusal);
        let signature = &signatures[at];
        let mut writer = Writer {
            code: Code::new(&mut shared, signature.function),
            types: &mut types,
            function,
            uses: &all_uses[at],
            signatures: &signatures,
            name: &names[at],
            homes: vec![Home::Nowhere; function.values.len()].into(),
            item: None,
            runtime: None,
            loops: Vec::new(),
            parallels: 0,
            inside_parallel: false,
            names: FxHashMap::default(),
        };
        writer.write(signature).map_err(refused)?;
        if is_kernel(function) {
            let symbol = format!("{}_entry", names[at]);
            entry(function, signature, &symbol, &mut types, &mut shared).map_err(refused)?;
            entries.push(EntryPoint {
                kernel: function.name.clone(),
                symbol,
            });
        }
    }
    Ok(entries)
}

fn is_kernel(function: &Function) -> bool {
    matches!(function.kind, FunctionKind::Kernel { .. })
}

fn declare(
    function: &Function,
    name: &str,
    work_items: bool,
    runtime: bool,
    types: &mut Types,
    shared: &mut Shared<'_>,
) -> Result<Signature, Refusal> {
    let context = shared.context;
    let mut params: Vec<(Ty, String)> = Vec::with_capacity(function.params.len() + 2);
    for param in &function.params {
        let info = &function.values[param.value];
        let ty = types.value(&info.ty, shared)?;
        params.push((shared.parameter(ty), info.name.clone()));
    }
    if work_items {
        params.push((types.item.pointer, "item".to_owned()));
    }
    if runtime {
        params.push((types.runtime.pointer, "rt".to_owned()));
    }
    let result = match &function.result {
        Some(ty) => types.value(ty, shared)?,
        None => context.basic(basic::VOID),
    };
    if shared.is_large(result) {
        return Err(Refusal(
            "it gives a vector that is larger than a register; let it store the vector instead"
                .to_owned(),
        ));
    }
    let params: Vec<(Ty, &str)> = params
        .iter()
        .map(|(ty, name)| (*ty, name.as_str()))
        .collect();
    let (made, places) = context.function(FuncKind::Internal, result, name, &params);
    Ok(Signature {
        function: made,
        params: places,
        work_items,
        runtime,
    })
}

/// Writes the function that a kernel is entered through: `void f(void **args, lw_runtime *rt)`, as
/// [`loopwright_native::Entry`] says.
fn entry(
    function: &Function,
    signature: &Signature,
    symbol: &str,
    types: &mut Types,
    shared: &mut Shared<'_>,
) -> Result<(), Refusal> {
    let context = shared.context;
    let untyped = context.basic(basic::VOID_PTR);
    let params = [
        (context.pointer(untyped), "args"),
        (types.runtime.pointer, "rt"),
    ];
    let void = context.basic(basic::VOID);
    let (made, places) = context.function(FuncKind::Exported, void, symbol, &params);
    let [args, runtime] = [places[0], places[1]].map(|place| context.value(place));
    let mut code = Code::new(shared, made);
    let mut arguments = Vec::with_capacity(function.params.len() + 2);
    for (at, param) in function.params.iter().enumerate() {
        let ty = function.ty(param.value);
        let at = code.integer(DType::I64, at as i64);
        let pointer = context.value(context.element(args, at));
        let value_type = types.value(ty, code.shared)?;
        arguments.push(match ty {
            Type::Pointer(..) => context.cast(pointer, value_type),
            _ => {
                let place = context.cast(pointer, context.pointer(value_type));
                context.value(context.pointee(place))
            }
        });
    }
    if !signature.work_items {
        arguments.extend(signature.runtime.then_some(runtime));
        let call = context.call(signature.function, &arguments);
        context.evaluate(code.block, call);
    } else {
        each_work_item(&mut code, types, runtime, |code, item| {
            arguments.push(context.address(item));
            arguments.extend(signature.runtime.then_some(runtime));
            let call = context.call(signature.function, &arguments);
            context.evaluate(code.block, call);
        });
    }
    context.give(code.block, None);
    Ok(())
}

/// Runs `body` for every work-item of the grid, the first axis innermost.
fn each_work_item<'a>(
    code: &mut Code<'_, 'a>,
    types: &Types,
    runtime: Val,
    body: impl FnOnce(&mut Code<'_, 'a>, Place),
) {
    let context = code.context();
    let fields = &types.item;
    let item = context.local(code.function, fields.ty, "item");
    let index = code.shared.scalar(DType::I64);
    let numbers = [0, 1, 2].map(|axis| code.integer(DType::I64, axis));
    let in_item = |field, axis| context.element(context.value(context.member(item, field)), axis);
    let mut sizes = Vec::with_capacity(3);
    for axis in numbers {
        let of_runtime = |field| {
            let axes = context.value(context.pointee_member(runtime, field));
            context.value(context.element(axes, axis))
        };
        let global = code.keep(index, of_runtime(types.runtime.global_size));
        let local = code.keep(index, of_runtime(types.runtime.local_size));
        let groups = context.binary(Binary::Div, index, global, local);
        code.assign(in_item(fields.global_size, axis), global);
        code.assign(in_item(fields.local_size, axis), local);
        code.assign(in_item(fields.group_count, axis), groups);
        sizes.push((global, local));
    }
    let [zero, one, _] = numbers;
    code.count("z", [zero, sizes[2].0, one], |code, z| {
        code.count("y", [zero, sizes[1].0, one], |code, y| {
            code.count("x", [zero, sizes[0].0, one], |code, x| {
                for ((axis, id), (_, local)) in numbers.into_iter().zip([x, y, z]).zip(&sizes) {
                    let inside = context.binary(Binary::Rem, index, id, *local);
                    let group = context.binary(Binary::Div, index, id, *local);
                    code.assign(in_item(fields.global_id, axis), id);
                    code.assign(in_item(fields.local_id, axis), inside);
                    code.assign(in_item(fields.group_id, axis), group);
                }
                body(code, item);
            });
        });
    });
}
