//! What the builder writes, as text.

use loopwright_kernel::{
    Access, Builder, Function, FunctionId, FunctionKind, LoopKind, Module, Space, Stmt, Type,
    Value, parse, print, validate,
};
use loopwright_ops::{DType, Op, ReduceOp, Scalar};
use loopwright_text::Source;

const KERNEL: FunctionKind = FunctionKind::Kernel { group: None };

fn module(function: Function) -> Module {
    Module {
        functions: vec![function].into(),
        ..Module::default()
    }
}

/// The text of a valid function, after checking that it reads back the same.
fn text(function: Function) -> String {
    let module = module(function);
    validate(&module).unwrap_or_else(|error| panic!("{error}\n{module}"));
    let printed = print(&module);
    let source = Source::new("built", printed.clone());
    let again = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    assert_eq!(again, module, "{printed}");
    printed
}

#[test]
fn control_flow() {
    let mut b = Builder::new("k", KERNEL);
    let p = b.param_ptr(DType::F32, Space::Global, "p", Access::ReadWrite, true);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, one) = (b.const_i64(0), b.const_i64(1));
    b.for_loop(zero, n, one, LoopKind::Parallel, "i", |b, i| {
        let x = b.load(p, i);
        let limit = b.constant(Scalar::f32(4.0));
        let small = b.map(Op::Lt, &[x, limit]);
        b.begin_if(small);
        b.store(p, i, limit);
        b.begin_else();
        b.begin_while();
        let y = b.load(p, i);
        let more = b.map(Op::Gt, &[y, limit]);
        b.name(more, "more");
        b.while_cond(more);
        let half = b.constant(Scalar::f32(0.5));
        let less = b.map(Op::Mul, &[y, half]);
        b.store(p, i, less);
        b.end_block();
        b.end_block();
    });
    let expected = "\
loopwright kernel 1

kernel @k(%p: readwrite noalias ptr<global, f32>, %n: i64) {
  %2: i64 = const 0
  %3: i64 = const 1
  for %i: i64 = %2 .. %n step %3 parallel {
    %5: f32 = load %p[%i]
    %6: f32 = const 4.0
    %7: bool = lt %5, %6
    if %7 {
      store %p[%i], %6
    } else {
      while {
        %8: f32 = load %p[%i]
        %more: bool = gt %8, %6
      } cond %more {
        %10: f32 = const 0.5
        %11: f32 = mul %8, %10
        store %p[%i], %11
      }
    }
  }
}
";
    assert_eq!(text(b.finish()), expected);
}

#[test]
fn constants_are_reused_while_visible() {
    let mut b = Builder::new("k", KERNEL);
    let condition = b.param_scalar(DType::Bool, "c");
    let outer = b.const_i64(7);
    b.begin_if(condition);
    assert_eq!(b.const_i64(7), outer);
    let inner = b.const_i64(8);
    assert_eq!(b.const_i64(8), inner);
    b.begin_else();
    let other = b.const_i64(8);
    assert_ne!(other, inner);
    b.end_block();
    assert_ne!(b.const_i64(8), other);
    // Equal numbers of two dtypes, and zeros of two signs, are different constants.
    let positive = b.constant(Scalar::f32(0.0));
    assert_ne!(b.constant(Scalar::f32(-0.0)), positive);
    text(b.finish());
}

#[test]
fn index_arithmetic_folds() {
    let mut b = Builder::new("k", KERNEL);
    let x = b.param_scalar(DType::I64, "x");
    let (zero, one, minus, seven) = (
        b.const_i64(0),
        b.const_i64(1),
        b.const_i64(-1),
        b.const_i64(7),
    );
    assert_eq!(b.add_i64(x, zero), x);
    assert_eq!(b.add_i64(zero, x), x);
    assert_eq!(b.sub_i64(x, zero), x);
    assert_eq!(b.sub_i64(x, x), zero);
    assert_eq!(b.mul_i64(x, one), x);
    assert_eq!(b.mul_i64(one, x), x);
    assert_eq!(b.mul_i64(x, zero), zero);
    assert_eq!(b.floor_div_i64(x, one), x);
    assert_eq!(b.floor_div_i64(x, zero), zero);
    assert_eq!(b.mod_i64(x, one), zero);
    assert_eq!(b.mod_i64(x, minus), zero);
    assert_eq!(b.min_i64(x, x), x);
    assert_eq!(b.max_i64(zero, seven), seven);
    assert_eq!(b.min_i64(minus, seven), minus);
    let truth = b.lt_i64(zero, one);
    assert_eq!(b.known(truth), Some(Scalar::bool(true)));
    let truth = b.ge_i64(x, x);
    assert_eq!(b.known(truth), Some(Scalar::bool(true)));
    assert_eq!(b.and(truth, truth), truth);
    let sum = b.add_i64(x, seven);
    assert_eq!(b.known_i64(sum), None);
    text(b.finish());
}

/// Folding gives what the op table says.
#[test]
fn folding_agrees_with_the_op_table() {
    let numbers = [i64::MIN, -8, -7, -2, -1, 0, 1, 2, 3, 7, i64::MAX];
    for a in numbers {
        for c in numbers {
            let mut b = Builder::new("k", KERNEL);
            let (x, y) = (b.const_i64(a), b.const_i64(c));
            let folded = [
                (Op::Add, b.add_i64(x, y)),
                (Op::Sub, b.sub_i64(x, y)),
                (Op::Mul, b.mul_i64(x, y)),
                (Op::FloorDiv, b.floor_div_i64(x, y)),
                (Op::Mod, b.mod_i64(x, y)),
                (Op::Min, b.min_i64(x, y)),
                (Op::Max, b.max_i64(x, y)),
                (Op::Lt, b.lt_i64(x, y)),
                (Op::Ge, b.ge_i64(x, y)),
            ];
            for (op, value) in folded {
                let meant = loopwright_ops::evaluate(op, &[Scalar::i64(a), Scalar::i64(c)]);
                assert_eq!(b.known(value), meant.ok(), "{op} {a}, {c}");
            }
        }
    }
}

#[test]
fn vectors_of_one_lane_are_scalars() {
    let mut b = Builder::new("k", KERNEL);
    let p = b.param_ptr(DType::F32, Space::Global, "p", Access::Read, false);
    let zero = b.const_i64(0);
    let x = b.load_vector(p, zero, 1);
    assert_eq!(b.ty(x), &Type::Scalar(DType::F32));
    assert_eq!(b.splat(x, 1), x);
    assert_eq!(b.build(&[x]), x);
    assert_eq!(b.extract(x, 0), x);
    assert_eq!(b.reduce_lanes(ReduceOp::Sum, x), x);
    assert_eq!(b.cast(DType::F32, x), x);
    let v = b.load_vector(p, zero, 4);
    let w = b.splat(x, 4);
    let sum = b.map(Op::Add, &[v, w]);
    let narrow = b.cast(DType::F16, sum);
    let bits = b.bitcast(DType::U16, narrow);
    assert_eq!(b.ty(bits), &Type::Vector(DType::U16, 4));
    text(b.finish());
}

#[test]
fn compact_numbers_in_order_of_definition() {
    let mut b = Builder::new("k", KERNEL);
    let x = b.param_scalar(DType::I64, "x");
    let one = b.const_i64(1);
    let y = b.add_i64(x, one);
    b.name(y, "y");
    let mut function = b.finish();
    let expected = function.clone();
    // The same function with the values in another order and one that nothing defines.
    let renumber = |value: &mut Value| value.0 = 4 - value.0;
    let mut values = vec![expected.values[Value(0)].clone(); 5];
    for (index, info) in expected.values.iter().enumerate() {
        values[4 - index] = info.clone();
    }
    function.values = values.into();
    renumber(&mut function.params[0].value);
    for stmt in &mut function.body {
        stmt.operands_mut(&mut |operand| renumber(operand));
        if let Stmt::Let(value, _) = stmt {
            renumber(value);
        }
    }
    let printed = print(&module(function.clone()));
    function.compact();
    assert_eq!(function, expected);
    let again = parse(&Source::new("printed", printed)).expect("the text is valid");
    assert_eq!(again.functions[FunctionId(0)], expected);
}
