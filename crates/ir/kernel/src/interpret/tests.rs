//! What the text form cannot say: arguments, budgets, layouts, and that shortcuts are none.

use super::{Grid, InterpretError, Layout, Program, interpret};
use crate::argument::Argument;
use crate::ir::{
    Access, Function, FunctionId, FunctionKind, Inst, Module, Space, Stmt, StructId, StructType,
    Type, Value,
};
use loopwright_ops::{DType, Op, Scalar, evaluate};

const KERNEL: FunctionKind = FunctionKind::Kernel { group: None };

fn module(functions: Vec<Function>) -> Module {
    Module {
        functions: functions.into(),
        ..Module::default()
    }
}

/// `k(a, n)`: stores `n` to `a[0]`.
fn store_kernel() -> Function {
    let mut function = Function::new("k", KERNEL);
    let ptr = function.param(
        Type::INDEX.pointer(Space::Global),
        "a",
        Access::Write,
        false,
    );
    let n = function.param(Type::INDEX, "n", Access::Read, false);
    let zero = function.value(Type::INDEX, "");
    function.body = vec![
        Stmt::Let(zero, Inst::Const(Scalar::i64(0))),
        Stmt::Store {
            ptr,
            index: zero,
            value: n,
        },
    ];
    function
}

fn message(result: Result<(), InterpretError>) -> String {
    result.expect_err("the call is wrong").to_string()
}

#[test]
fn arguments_are_checked() {
    let module = module(vec![store_kernel()]);
    let mut bytes = [0; 8];
    let grid = Grid::default();
    let n = || Argument::Scalar(Scalar::i64(1));
    assert_eq!(
        message(interpret(&module, "none", &mut [], grid)),
        "the module has no kernel `none`"
    );
    assert_eq!(
        message(interpret(&module, "k", &mut [n()], grid)),
        "kernel `k` takes 2 arguments, not 1"
    );
    assert_eq!(
        message(interpret(&module, "k", &mut [n(), n()], grid)),
        "kernel `k` takes a buffer for `a`, not a scalar of i64"
    );
    let wrong = Argument::Scalar(Scalar::f32(1.0));
    assert_eq!(
        message(interpret(
            &module,
            "k",
            &mut [Argument::Write(&mut bytes), wrong],
            grid
        )),
        "kernel `k` takes a scalar of i64 for `n`, not a scalar of f32"
    );
    assert_eq!(
        message(interpret(
            &module,
            "k",
            &mut [Argument::Read(&bytes), n()],
            grid
        )),
        "`k` writes through `a` to an argument that is only read"
    );
    let empty = Grid {
        global: [0, 1, 1],
        ..grid
    };
    assert_eq!(
        interpret(&module, "k", &mut [Argument::Write(&mut []), n()], empty),
        Ok(())
    );
}

#[test]
fn steps_are_counted() {
    let module = module(vec![store_kernel()]);
    let program = Program::new(&module).expect("the module is valid");
    let mut bytes = [0; 8];
    for (steps, enough) in [(2, false), (3, true)] {
        let mut args = [
            Argument::Write(&mut bytes),
            Argument::Scalar(Scalar::i64(7)),
        ];
        let result = program.run("k", &mut args, Grid::default(), Some(steps));
        assert_eq!(result.is_ok(), enough, "{steps} steps: {result:?}");
    }
    assert_eq!(i64::from_le_bytes(bytes), 7);
}

#[test]
fn memory_of_a_function_goes_with_it() {
    // device f() -> ptr { return alloc }, and a kernel that loads through what it gets.
    let pointer = Type::INDEX.pointer(Space::Private);
    let mut device = Function::new("f", FunctionKind::Device);
    device.result = Some(pointer.clone());
    let alloc = device.value(pointer.clone(), "mine");
    let inst = Inst::Alloc {
        space: Space::Private,
        ty: Type::INDEX,
        count: 1,
    };
    device.body = vec![Stmt::Let(alloc, inst), Stmt::Return(Some(alloc))];
    let mut kernel = Function::new("k", KERNEL);
    let ptr = kernel.value(pointer, "p");
    let index = kernel.value(Type::INDEX, "");
    let loaded = kernel.value(Type::INDEX, "");
    kernel.body = vec![
        Stmt::Let(ptr, Inst::Call(FunctionId(1), vec![])),
        Stmt::Let(index, Inst::Const(Scalar::i64(0))),
        Stmt::Let(loaded, Inst::Load { ptr, index }),
    ];
    let module = module(vec![kernel, device]);
    assert_eq!(
        message(interpret(&module, "k", &mut [], Grid::default())),
        "`k` uses `p`, which points at memory that is gone"
    );
}

#[test]
fn calls_without_end_are_stopped() {
    let mut device = Function::new("f", FunctionKind::Device);
    device.body = vec![Stmt::Call(FunctionId(1), vec![])];
    let mut kernel = Function::new("k", KERNEL);
    kernel.body = vec![Stmt::Call(FunctionId(1), vec![])];
    let error = interpret(&module(vec![kernel, device]), "k", &mut [], Grid::default());
    assert!(
        matches!(error, Err(InterpretError::Depth { .. })),
        "{error:?}"
    );
}

#[test]
fn what_the_validator_refuses_is_an_error() {
    let mut kernel = store_kernel();
    let half = kernel.value(Type::Scalar(DType::F16), "h");
    let bad = [
        Stmt::Let(half, Inst::Const(Scalar::f32(1.0))),
        Stmt::Let(
            half,
            Inst::Map(Op::Add, [half, Value(1)].into_iter().collect()),
        ),
        Stmt::Let(half, Inst::Map(Op::Add, [half].into_iter().collect())),
        Stmt::Let(half, Inst::Extract(half, 1)),
        Stmt::Let(half, Inst::Splat(Value(99))),
        Stmt::Let(Value(99), Inst::Const(Scalar::f32(1.0))),
        Stmt::Store {
            ptr: Value(0),
            index: Value(1),
            value: half,
        },
        Stmt::Call(FunctionId(9), vec![]),
        Stmt::Break,
        Stmt::Return(Some(half)),
    ];
    for stmt in bad {
        let mut kernel = kernel.clone();
        kernel.body = vec![stmt.clone()];
        let result = Program::new(&module(vec![kernel]));
        assert!(
            matches!(result, Err(InterpretError::Malformed { .. })),
            "{stmt:?}"
        );
    }
}

#[test]
fn shortcuts_agree_with_the_op_table() {
    let f32s = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-45,
        f32::INFINITY,
        f32::NAN,
    ];
    let f64s = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        f64::MAX,
        5e-324,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let i64s = [0, 1, -1, 7, i64::MAX, i64::MIN, 1 << 40];
    let mut scalars: Vec<Scalar> = f32s.map(Scalar::f32).to_vec();
    scalars.extend(f64s.map(Scalar::f64));
    scalars.extend(i64s.map(Scalar::i64));
    for &a in &scalars {
        for &b in scalars.iter().filter(|b| b.dtype() == a.dtype()) {
            for op in [Op::Add, Op::Sub, Op::Mul, Op::Lt, Op::Le, Op::Eq, Op::Ne] {
                let expected = evaluate(op, &[a, b]).expect("the op takes the dtype");
                assert_eq!(
                    computed(op, a, b, expected.dtype()),
                    expected,
                    "{op} {a} {b}"
                );
            }
        }
    }
}

/// An op's value as a kernel computes it.
fn computed(op: Op, a: Scalar, b: Scalar, result: DType) -> Scalar {
    let mut kernel = Function::new("k", KERNEL);
    let pointer = Type::Scalar(result).pointer(Space::Global);
    let ptr = kernel.param(pointer, "out", Access::Write, false);
    let [x, y] =
        ["x", "y"].map(|name| kernel.param(Type::Scalar(a.dtype()), name, Access::Read, false));
    let index = kernel.value(Type::INDEX, "");
    let value = kernel.value(Type::Scalar(result), "");
    kernel.body = vec![
        Stmt::Let(index, Inst::Const(Scalar::i64(0))),
        Stmt::Let(value, Inst::Map(op, [x, y].into_iter().collect())),
        Stmt::Store { ptr, index, value },
    ];
    let mut bytes = vec![0; result.bytes()];
    let mut args = [
        Argument::Write(&mut bytes),
        Argument::Scalar(a),
        Argument::Scalar(b),
    ];
    interpret(&module(vec![kernel]), "k", &mut args, Grid::default()).expect("the kernel is valid");
    Scalar::read(result, &bytes)
}

#[test]
fn layouts() {
    let field = |name: &str, ty: Type| (name.to_owned(), ty);
    let scalar = Type::Scalar;
    let module = Module {
        structs: vec![
            StructType {
                name: "Inner".into(),
                fields: vec![
                    field("a", scalar(DType::U8)),
                    field("b", scalar(DType::F64)),
                ],
            },
            StructType {
                name: "Outer".into(),
                fields: vec![
                    field("c", scalar(DType::I16)),
                    field("d", Type::Array(Box::new(Type::Struct(StructId(0))), 3)),
                    field("e", Type::Vector(DType::F32, 3)),
                    field("f", scalar(DType::Bool)),
                ],
            },
            StructType {
                name: "Endless".into(),
                fields: vec![field("g", Type::Struct(StructId(2)))],
            },
        ]
        .into(),
        ..Module::default()
    };
    let layout = |ty: Type| Layout::of(&module, &ty).map(|layout| (layout.size, layout.align));
    assert_eq!(layout(scalar(DType::BF16)), Some((2, 2)));
    assert_eq!(layout(Type::Vector(DType::F32, 3)), Some((16, 16)));
    assert_eq!(layout(Type::Struct(StructId(0))), Some((16, 8)));
    assert_eq!(layout(Type::Struct(StructId(1))), Some((96, 16)));
    assert_eq!(layout(Type::Struct(StructId(2))), None);
    let offsets: Vec<_> = (0..4)
        .map(|at| Layout::field_offset(&module, &module.structs[StructId(1)].fields, at))
        .collect();
    assert_eq!(offsets, [Some(0), Some(8), Some(64), Some(80)]);
}
