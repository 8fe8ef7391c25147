//! The validator: what stands between every producer of kernels and every consumer.
//!
//! One walk over each function, with one small record per value; no rule looks further than that,
//! so that validation takes time linear in the module's size. What a consumer may rely on is what
//! [`Fault`] lists.

mod calls;
mod error;
mod inst;
mod stmt;
mod types;

pub use error::{Fault, Place, ValidationError};

use crate::ir::{
    Access, Function, FunctionId, FunctionKind, Module, Space, Stmt, StructId, Type, Value,
};
use crate::text::{statement_line, type_text, value_label};
use loopwright_arena::TiVec;
use loopwright_ops::{DType, Scalar};
use rustc_hash::FxHashSet;

/// Checks that the module obeys every rule of the IR.
pub fn validate(module: &Module) -> Result<(), ValidationError> {
    types::structs(module)?;
    signatures(module)?;
    let mut graph = calls::CallGraph::new(module);
    for id in module.functions.keys() {
        FunctionValidator::new(module, id, &mut graph).run()?;
    }
    graph.check()
}

type Check<T = ()> = Result<T, Box<Fault>>;

/// Checks what calls rely on: that parameters exist and have types.
fn signatures(module: &Module) -> Result<(), ValidationError> {
    let mut names = FxHashSet::default();
    for (id, function) in module.functions.iter_enumerated() {
        let checked = if names.insert(function.name.as_str()) {
            signature(module, function)
        } else {
            Err(Box::new(Fault::DuplicateName {
                what: "function",
                name: function.name.clone(),
            }))
        };
        checked.map_err(|fault| at_function(module, id, fault))?;
    }
    Ok(())
}

fn signature(module: &Module, function: &Function) -> Check {
    for param in &function.params {
        let Some(info) = function.values.get(param.value) else {
            return Err(Box::new(Fault::NoSuchValue(param.value.0)));
        };
        if let (FunctionKind::Kernel { .. }, Type::Pointer(Space::Private, _) | Type::Tile(_)) =
            (function.kind, &info.ty)
        {
            return Err(Box::new(Fault::TypeNotAllowed {
                ty: type_text(module, &info.ty),
                why: "the host has no private memory and no tiles to give to a kernel",
            }));
        }
    }
    if let Some(result) = &function.result {
        if let FunctionKind::Kernel { .. } = function.kind {
            return Err(Box::new(Fault::KernelResult {
                got: type_text(module, result),
            }));
        }
        types::value_type(module, result)?;
    }
    match function.kind {
        FunctionKind::Kernel { group: Some(group) } if group.contains(&0) => {
            Err(Box::new(Fault::EmptyGroup))
        }
        _ => Ok(()),
    }
}

fn at_struct(module: &Module, id: StructId, fault: Box<Fault>) -> ValidationError {
    ValidationError {
        place: Place {
            declared_struct: Some(id),
            ..Place::default()
        },
        item: format!("struct `{}`", module.structs[id].name),
        statement: None,
        fault,
    }
}

fn at_function(module: &Module, id: FunctionId, fault: Box<Fault>) -> ValidationError {
    ValidationError {
        place: Place {
            function: Some(id),
            ..Place::default()
        },
        item: format!("@{}", module.functions[id].name),
        statement: None,
        fault,
    }
}

/// What is known of a value during the walk.
#[derive(Clone, Copy)]
struct Known {
    state: State,
    /// For pointers: the parameter they were made from, as an index into the parameters.
    root: Option<u32>,
    /// For constants: what they are.
    constant: Option<Scalar>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Undefined,
    Visible,
    Gone,
}

/// What a loop means to the statements in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Region {
    /// The body of a loop whose iterations follow one another.
    Ordered,
    /// The body of a loop whose iterations are independent.
    Independent,
    /// The head of a `while`.
    Head,
}

struct FunctionValidator<'a, 'g> {
    module: &'a Module,
    id: FunctionId,
    function: &'a Function,
    graph: &'g mut calls::CallGraph<'a>,
    known: TiVec<Value, Known>,
    /// The values defined in the open blocks, innermost last.
    visible: Vec<Value>,
    /// The loops around the statement, innermost last.
    regions: Vec<Region>,
    /// How many of them have independent iterations.
    independent: u32,
    /// How many statements were seen.
    seen: u32,
    /// The statement under the walk, and its number.
    current: Option<(u32, &'a Stmt)>,
}

impl<'a, 'g> FunctionValidator<'a, 'g> {
    fn new(
        module: &'a Module,
        id: FunctionId,
        graph: &'g mut calls::CallGraph<'a>,
    ) -> FunctionValidator<'a, 'g> {
        let function = &module.functions[id];
        let unknown = Known {
            state: State::Undefined,
            root: None,
            constant: None,
        };
        FunctionValidator {
            module,
            id,
            function,
            graph,
            known: vec![unknown; function.values.len()].into(),
            visible: Vec::new(),
            regions: Vec::new(),
            independent: 0,
            seen: 0,
            current: None,
        }
    }

    fn run(mut self) -> Result<(), ValidationError> {
        match self.walk() {
            Ok(()) => Ok(()),
            Err(fault) => Err(self.error(fault)),
        }
    }

    fn walk(&mut self) -> Check {
        let function = self.function;
        for (index, param) in function.params.iter().enumerate() {
            self.define(param.value)?;
            self.known[param.value].root = Some(index as u32);
        }
        self.statements(&function.body)?;
        self.current = None;
        // Values that nothing defines are no error, but consumers that look at them rely on their
        // types all the same.
        for (info, known) in function.values.iter().zip(&self.known) {
            if known.state == State::Undefined {
                types::value_type(self.module, &info.ty)?;
            }
        }
        match &function.result {
            Some(result) if !stmt::always_returns(&function.body) => {
                Err(Box::new(Fault::MissingReturn {
                    expected: self.show(result),
                }))
            }
            _ => Ok(()),
        }
    }

    fn error(&self, fault: Box<Fault>) -> ValidationError {
        let mut error = at_function(self.module, self.id, fault);
        if let Some((index, stmt)) = self.current {
            error.place.statement = Some(index);
            error.statement = Some(statement_line(self.module, self.function, stmt));
        }
        error
    }

    // Values.

    fn define(&mut self, value: Value) -> Check {
        let function = self.function;
        if let Some(info) = function.values.get(value) {
            types::value_type(self.module, &info.ty)?;
        }
        match self.known.get_mut(value) {
            None => Err(Box::new(Fault::NoSuchValue(value.0))),
            Some(known) if known.state != State::Undefined => Err(Box::new(Fault::Redefined {
                value: value_label(function, value),
            })),
            Some(known) => {
                known.state = State::Visible;
                self.visible.push(value);
                Ok(())
            }
        }
    }

    /// The type of a value that is used here.
    fn used(&self, value: Value) -> Check<&'a Type> {
        match self.known.get(value).map(|known| known.state) {
            Some(State::Visible) => Ok(&self.function.values[value].ty),
            Some(State::Undefined) => Err(Box::new(Fault::Undefined {
                value: self.label(value),
            })),
            Some(State::Gone) => Err(Box::new(Fault::OutOfScope {
                value: self.label(value),
            })),
            None => Err(Box::new(Fault::NoSuchValue(value.0))),
        }
    }

    fn label(&self, value: Value) -> String {
        value_label(self.function, value)
    }

    fn show(&self, ty: &Type) -> String {
        type_text(self.module, ty)
    }

    // Types.

    /// The fault of a value that is not what it must be.
    fn mismatch(&self, what: &str, value: Value, expected: impl Into<String>) -> Box<Fault> {
        let got = match self.function.values.get(value) {
            Some(info) => self.show(&info.ty),
            None => String::new(),
        };
        Box::new(Fault::Type {
            what: format!("{what} {}", self.label(value)),
            expected: expected.into(),
            got,
        })
    }

    /// A use of exactly this type.
    fn expect(&self, what: &str, value: Value, expected: &Type) -> Check {
        if self.used(value)? == expected {
            Ok(())
        } else {
            Err(self.mismatch(what, value, self.show(expected)))
        }
    }

    /// A use as an index, stride or bound.
    fn expect_index(&self, what: &str, value: Value) -> Check {
        self.expect(what, value, &Type::INDEX)
    }

    fn expect_condition(&self, value: Value) -> Check {
        self.expect("the condition", value, &Type::Scalar(DType::Bool))
    }

    /// A use as a scalar or vector: its dtype and lanes.
    fn expect_element(&self, what: &str, value: Value) -> Check<(DType, u32)> {
        match self.used(value)? {
            Type::Scalar(dtype) => Ok((*dtype, 1)),
            Type::Vector(dtype, lanes) => Ok((*dtype, *lanes)),
            _ => Err(self.mismatch(what, value, "a scalar or vector")),
        }
    }

    fn expect_scalar(&self, what: &str, value: Value) -> Check<DType> {
        match self.used(value)? {
            Type::Scalar(dtype) => Ok(*dtype),
            _ => Err(self.mismatch(what, value, "a scalar")),
        }
    }

    fn expect_vector(&self, what: &str, value: Value) -> Check<(DType, u32)> {
        match self.used(value)? {
            Type::Vector(dtype, lanes) => Ok((*dtype, *lanes)),
            _ => Err(self.mismatch(what, value, "a vector")),
        }
    }

    fn expect_pointer(&self, what: &str, value: Value) -> Check<(Space, &'a Type)> {
        match self.used(value)? {
            Type::Pointer(space, pointee) => Ok((*space, pointee)),
            _ => Err(self.mismatch(what, value, "a pointer")),
        }
    }

    // Access.

    /// The access of the parameter that a pointer comes from.
    fn access(&self, ptr: Value) -> Option<(Access, Value)> {
        let root = self.known.get(ptr)?.root?;
        let param = self.function.params.get(root as usize)?;
        Some((param.access, param.value))
    }

    fn expect_readable(&self, ptr: Value) -> Check {
        match self.access(ptr) {
            Some((Access::Write, param)) => Err(Box::new(Fault::NotReadable {
                value: self.label(ptr),
                param: self.label(param),
            })),
            _ => Ok(()),
        }
    }

    fn expect_writable(&self, ptr: Value) -> Check {
        let (space, _) = self.expect_pointer("the pointer", ptr)?;
        let why = match self.access(ptr) {
            _ if space == Space::Constant => "constant space is only read".to_owned(),
            Some((Access::Read, param)) => {
                format!("the parameter {} is declared `read`", self.label(param))
            }
            _ => return Ok(()),
        };
        Err(Box::new(Fault::NotWritable {
            value: self.label(ptr),
            why,
        }))
    }
}
