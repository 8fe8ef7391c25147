//! Errors that no text can have, because the parser resolves names first, and how errors read.

use loopwright_arena::TiVec;
use loopwright_kernel::valid::Fault;
use loopwright_kernel::{
    Function, FunctionId, FunctionKind, Inst, Module, Param, Stmt, StructId, StructType, Type,
    Value, ValueInfo, validate,
};
use loopwright_ops::{DType, Op, Scalar};
use smallvec::smallvec;

const KERNEL: FunctionKind = FunctionKind::Kernel { group: None };

fn fault(functions: Vec<Function>) -> Fault {
    let module = Module {
        functions: functions.into(),
        ..Module::default()
    };
    validate(&module)
        .expect_err("the module is invalid")
        .fault()
        .clone()
}

/// A kernel with three `i64` values that nothing defines.
fn kernel() -> Function {
    let mut function = Function::new("k", KERNEL);
    for name in ["a", "b", "b"] {
        function.value(Type::INDEX, name);
    }
    function
}

fn constant(value: u32) -> Stmt {
    Stmt::Let(Value(value), Inst::Const(Scalar::i64(1)))
}

fn negated(value: u32, operand: u32) -> Stmt {
    Stmt::Let(Value(value), Inst::Map(Op::Neg, smallvec![Value(operand)]))
}

#[test]
fn values_that_nothing_defines_are_no_error() {
    let module = Module {
        functions: vec![kernel()].into(),
        ..Module::default()
    };
    assert_eq!(validate(&module), Ok(()));
}

#[test]
fn values() {
    let mut function = kernel();
    function.body = vec![negated(0, 1)];
    let value = "%b'1".to_owned();
    assert_eq!(fault(vec![function]), Fault::Undefined { value });

    let mut function = kernel();
    function.body = vec![constant(0), constant(0)];
    let value = "%a".to_owned();
    assert_eq!(fault(vec![function]), Fault::Redefined { value });

    let mut function = kernel();
    function.values.push(ValueInfo {
        ty: Type::Scalar(DType::Bool),
        name: String::new(),
    });
    function.body = vec![
        Stmt::Let(Value(3), Inst::Const(Scalar::bool(true))),
        Stmt::If {
            cond: Value(3),
            then: vec![constant(0)],
            otherwise: Vec::new(),
        },
        negated(1, 0),
    ];
    let value = "%a".to_owned();
    assert_eq!(fault(vec![function]), Fault::OutOfScope { value });

    let mut function = kernel();
    function.body = vec![constant(9)];
    assert_eq!(fault(vec![function]), Fault::NoSuchValue(9));

    let mut function = kernel();
    function.body = vec![negated(0, 9)];
    assert_eq!(fault(vec![function]), Fault::NoSuchValue(9));

    let mut function = kernel();
    function.params.push(Param {
        value: Value(9),
        access: loopwright_kernel::Access::Read,
        noalias: false,
    });
    assert_eq!(fault(vec![function]), Fault::NoSuchValue(9));
}

#[test]
fn handles() {
    let mut function = kernel();
    function.body = vec![Stmt::Call(FunctionId(4), Vec::new())];
    assert_eq!(fault(vec![function]), Fault::NoSuchFunction(4));

    let mut function = kernel();
    function.values[Value(0)].ty =
        Type::Struct(StructId(3)).pointer(loopwright_kernel::Space::Global);
    assert_eq!(fault(vec![function]), Fault::NoSuchStruct(3));

    let mut function = kernel();
    function.values[Value(0)].ty = Type::Vector(DType::F32, 1);
    assert!(matches!(
        fault(vec![function]),
        Fault::TypeNotAllowed { .. }
    ));

    let (what, name) = ("function", "k".to_owned());
    assert_eq!(
        fault(vec![kernel(), kernel()]),
        Fault::DuplicateName { what, name }
    );
}

#[test]
fn structs() {
    let declared = StructType {
        name: "S".to_owned(),
        fields: vec![("a".to_owned(), Type::Struct(StructId(7)))],
    };
    let module = Module {
        structs: vec![declared].into(),
        functions: TiVec::new(),
    };
    let error = validate(&module).expect_err("the struct does not exist");
    assert_eq!(error.fault(), &Fault::NoSuchStruct(7));
    assert_eq!(error.item(), "struct `S`");
}

#[test]
fn errors_name_function_statement_and_values() {
    let mut function = kernel();
    function.values[Value(1)].ty = Type::Scalar(DType::F32);
    function.body = vec![constant(0), negated(1, 0)];
    let module = Module {
        functions: vec![function].into(),
        ..Module::default()
    };
    let error = validate(&module).expect_err("the types differ");
    assert_eq!(
        error.to_string(),
        "in @k, at `%b'1: f32 = neg %a`: the result %b'1 must be i64, not f32"
    );
    assert_eq!(error.place().statement, Some(1));
}
