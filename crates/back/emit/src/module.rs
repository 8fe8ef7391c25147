//! A whole module: prelude, structs, functions, entry points.

use crate::EmitError;
use crate::dialect::{Declared, Dialect, EntryKernel, Linkage, Refusal, Structs};
use crate::expression::Shape;
use crate::function::{Signature, write_function};
use crate::names::{Names, identifier};
use crate::pieces::Pieces;
use crate::uses::{Uses, uses};
use loopwright_arena::TiVec;
use loopwright_kernel::{
    Access, Function, FunctionId, FunctionKind, Module, StructId, mark_callers,
};
use std::fmt::Write;

/// The text of a module and what one needs to build and call it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Emitted {
    /// The text.
    pub source: String,
    /// Its entry points, in the module's order.
    pub kernels: Vec<EmittedKernel>,
    /// The functions of the mathematics library it calls, sorted. A compiler must not replace them by
    /// its own idea of them.
    pub math: Vec<&'static str>,
}

/// An entry point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmittedKernel {
    /// The kernel's name in the module.
    pub name: String,
    /// The entry point's name in the text.
    pub symbol: String,
}

/// Writes a validated module. Takes time linear in its size.
pub fn emit(module: &Module, dialect: &dyn Dialect) -> Result<Emitted, EmitError> {
    let refused = |function: &str, Refusal(reason): Refusal| EmitError::Unsupported {
        dialect: dialect.name(),
        function: function.to_owned(),
        reason,
    };
    let reserved = |word: &str| dialect.is_reserved(word);
    let mut pieces = Pieces::default();
    let mut names = Names::default();
    let structs: TiVec<StructId, String> = module
        .structs
        .iter()
        .map(|ty| names.fresh(&format!("{}_t", identifier(&ty.name)), |_| false))
        .collect();

    let fields: TiVec<StructId, Vec<String>> = module
        .structs
        .iter()
        .map(|ty| {
            let mut fields = Names::default();
            ty.fields
                .iter()
                .map(|(field, _)| fields.fresh(field, reserved))
                .collect()
        })
        .collect();

    let types = Structs {
        module,
        names: &structs,
        fields: &fields,
    };
    // Structs first: they may be named by every function.
    let mut declarations = String::new();
    for (id, ty) in module.structs.iter_enumerated() {
        let text = dialect
            .structure(id, types, &mut pieces)
            .map_err(|refusal| refused(&ty.name, refusal))?;
        declarations.push_str(&text);
    }
    let uses: TiVec<FunctionId, Uses> = module
        .functions
        .iter()
        .map(|function| {
            let kernel = matches!(function.kind, FunctionKind::Kernel { .. });
            uses(function, kernel && dialect.parallel_loops())
        })
        .collect();
    let asks = uses.iter().map(|uses| uses.work_items).collect();
    let work_items = mark_callers(asks, uses.iter().map(|uses| uses.calls.as_slice()));
    if !dialect.supports_groups() {
        for (function, uses) in module.functions.iter().zip(&uses) {
            if let Some(what) = uses.group {
                let reason = format!(
                    "it uses {what}, which needs the work-items of a group to run together; \
                     split the kernel at its barriers first"
                );
                return Err(refused(&function.name, Refusal(reason)));
            }
        }
    }
    let signatures: TiVec<FunctionId, Signature> = module
        .functions
        .iter()
        .zip(&uses)
        .zip(&work_items)
        .map(|((function, uses), &work_items)| {
            let prefix = match function.kind {
                FunctionKind::Kernel { .. } => "kernel",
                FunctionKind::Device => "fn",
            };
            Signature {
                name: names.fresh(&format!("{prefix}_{}", function.name), reserved),
                work_items: work_items && !dialect.built_in_work_items(),
                runtime: !uses.captures.is_empty(),
            }
        })
        .collect();

    let mut prototypes = String::new();
    let mut bodies = String::new();
    let mut kernels = Vec::new();
    for (id, function) in module.functions.iter_enumerated() {
        let written = write_function(
            function,
            &uses[id],
            dialect,
            types,
            &signatures,
            id,
            &mut pieces,
        )
        .map_err(|refusal| refused(&function.name, refusal))?;
        if let Some(prototype) = dialect.prototype(&written.header) {
            let _ = writeln!(prototypes, "{prototype}");
        }
        bodies.push_str(&written.text);
        if let FunctionKind::Kernel { .. } = function.kind {
            let signature = &signatures[id];
            let symbol = names.fresh(&format!("lw_kernel_{}", function.name), |_| false);
            let entry = entry(dialect, function, signature, &symbol, types, &mut pieces)
                .map_err(|refusal| refused(&function.name, refusal))?;
            bodies.push_str(&entry);
            bodies.push('\n');
            kernels.push(EmittedKernel {
                name: function.name.clone(),
                symbol,
            });
        }
    }

    let mut source = String::with_capacity(
        pieces.text().len() + declarations.len() + prototypes.len() + bodies.len() + 1024,
    );
    let _ = writeln!(source, "{}", dialect.title());
    source.push_str(&dialect.header());
    for part in [pieces.text(), &declarations, &prototypes, &bodies] {
        if !part.is_empty() {
            source.push('\n');
            source.push_str(part);
        }
    }
    while source.ends_with("\n\n") {
        source.pop();
    }
    Ok(Emitted {
        source,
        kernels,
        math: pieces.math_functions().collect(),
    })
}

/// The entry point of a kernel.
fn entry(
    dialect: &dyn Dialect,
    function: &Function,
    signature: &Signature,
    symbol: &str,
    structs: Structs<'_>,
    pieces: &mut Pieces,
) -> Result<String, Refusal> {
    let params = function.params.iter().map(|param| Declared {
        ty: function.ty(param.value),
        name: &function.values[param.value].name,
        shape: Shape::Plain,
        constant: param.access == Access::Read,
        noalias: param.noalias,
        structs,
    });
    let params: Vec<Declared<'_>> = params.collect();
    dialect.entry(
        &EntryKernel {
            symbol,
            body: &signature.name,
            params: &params,
            work_items: signature.work_items,
            runtime: signature.runtime,
        },
        pieces,
    )
}

/// How an internal function is linked: kernels stay functions of their own, because compilers forget
/// which pointers do not alias when they inline.
pub(crate) fn linkage(function: &Function) -> Linkage {
    match function.kind {
        FunctionKind::Kernel { .. } => Linkage::Separate,
        FunctionKind::Device => Linkage::Internal,
    }
}
