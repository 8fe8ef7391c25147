//! The functions that are computed, not called: at samples of all operands, in lanes and alone, with contraction
//! and without. The example `math` of the backend `x86` tries every operand there is.

mod harness;

use harness::{Buffer, backend};
use loopwright_backend::{Argument, CompileOptions, Executable, KernelBackend};
use loopwright_kernel::passes::expand_math::{Precision, expanded, expanded_with, ulps, ulps_with};
use loopwright_kernel::{Access, Builder, Function, FunctionKind, LoopKind, Module, Space};
use loopwright_ops::reference::ulp_distance;
use loopwright_ops::{DType, Op, Scalar, cast, evaluate};

const LANES: u32 = 16;

fn computed() -> impl Iterator<Item = Op> {
    let ops = Op::ALL.iter().copied();
    ops.filter(|op| ulps(*op).is_some())
}

/// `z[i] = op(x[i])`, or `op(x[i], y[i])`.
fn kernel(op: Op, dtype: DType, lanes: u32) -> Function {
    let kind = FunctionKind::Kernel { group: None };
    let mut b = Builder::new(format!("{op}_{lanes}"), kind);
    let names = ["x", "y"].into_iter().take(op.arity());
    let operands: Vec<_> = names
        .map(|name| b.param_ptr(dtype, Space::Global, name, Access::Read, true))
        .collect();
    let z = b.param_ptr(dtype, Space::Global, "z", Access::Write, true);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, step) = (b.const_i64(0), b.const_i64(lanes.into()));
    b.for_loop(zero, n, step, LoopKind::Serial, "i", |b, i| {
        let values = operands.iter().map(|operand| match lanes {
            1 => b.load(*operand, i),
            lanes => b.load_vector(*operand, i, lanes),
        });
        let values: Vec<_> = values.collect();
        let value = b.map(op, &values);
        b.store(z, i, value);
    });
    b.finish()
}

fn module(dtype: DType, lanes: &[u32]) -> Module {
    let kernels =
        computed().flat_map(|op| lanes.iter().map(move |lanes| kernel(op, dtype, *lanes)));
    Module {
        functions: kernels.collect(),
        ..Module::default()
    }
}

/// Some 100,000 operands: every exponent, the edges of every range that an expansion has, and others at random.
fn numbers() -> Vec<Scalar> {
    let mut bits: Vec<u32> = Vec::new();
    for top in 0..1 << 12 {
        bits.extend([0, 1, 0xf_ffff].map(|low| top << 20 | low));
    }
    let edges = [
        f32::MIN_POSITIVE,
        0.5,
        0.7,
        std::f32::consts::FRAC_1_SQRT_2,
        0.9,
        1.0,
        std::f32::consts::SQRT_2,
        2.0,
        3.93,
        4.0,
        8.0,
        9.01,
        10.0,
        10.06,
        10.1,
        17.33,
        30.0,
        80.0,
        87.33,
        88.38,
        88.72,
        89.0,
        89.416,
        89.5,
        103.97,
        104.0,
        120.0,
        126.0,
        127.5,
        128.0,
        129.0,
        149.5,
        152.0,
        6433.0,
        268_435_456.0,
        1.0 / 33_554_432.0,
        f32::INFINITY,
    ];
    for edge in edges {
        let middle = edge.to_bits();
        let near = (middle - 400)..=(middle + 400);
        bits.extend(near.flat_map(|bits| [bits, bits | 1 << 31]));
    }
    // Where `x / ln 2` and `2 x / ln 2` are rounded to another integer.
    for half in -300..260 {
        let middle = (half as f32 / 4.0 * std::f32::consts::LN_2).to_bits();
        bits.extend((0..12).map(|near| middle.wrapping_add(near).wrapping_sub(6)));
    }
    // Where sines and cosines are 0.
    for quarter in (0..4096).step_by(5) {
        let middle = (quarter as f64 * std::f64::consts::FRAC_PI_2) as f32;
        bits.extend((0..3).map(|near| middle.to_bits().wrapping_add(near).wrapping_sub(1)));
    }
    let mut state = 1u64;
    while !bits.len().is_multiple_of(LANES as usize) || bits.len() < 110_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        bits.push((state >> 32) as u32);
    }
    let scalar = |bits| Scalar::from_bits(DType::F32, u64::from(bits));
    bits.into_iter().map(scalar).collect()
}

/// Operands of functions of two: all pairs of special and a few other numbers, pairs that have moderate powers and angles, and
/// those of the operands of one.
fn pairs() -> [Vec<Scalar>; 2] {
    let special = [
        0.0,
        1.0,
        0.5,
        2.0,
        3.0,
        2.5,
        7.0,
        1e-45,
        1e-39,
        1e-20,
        1e20,
        8_388_607.0,
        8_388_609.0,
        16_777_215.0,
        16_777_218.0,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
    ];
    let special: Vec<f32> = special.iter().flat_map(|x| [*x, -*x]).collect();
    let [mut first, mut second] = [Vec::new(), Vec::new()];
    for x in &special {
        for y in &special {
            first.push(Scalar::f32(*x));
            second.push(Scalar::f32(*y));
        }
    }
    let mut state = 7u64;
    let mut moderate = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // From 2^-8 to 2^8.
        let exponent = 119 + (state >> 60) as u32;
        let bits = (state >> 32) as u32 & 0x807f_ffff | exponent << 23;
        Scalar::from_bits(DType::F32, bits.into())
    };
    for _ in 0..60_000 {
        first.push(moderate());
        second.push(moderate());
    }
    let numbers = numbers();
    first.extend(&numbers);
    second.extend(numbers.iter().rev());
    let whole = first.len() / LANES as usize * LANES as usize;
    [first, second].map(|mut operand| {
        operand.truncate(whole);
        operand
    })
}

/// What is wrong with the results of an op, in words.
fn first_wrong(
    operands: &[Vec<Scalar>],
    got: &[Scalar],
    expected: &[Scalar],
    ulps: u32,
) -> Option<String> {
    let negative = |value: Scalar| value.bits() >> (value.dtype().bits() - 1) != 0;
    let mut rows = got.iter().zip(expected).enumerate();
    rows.find_map(|(row, (got, expected))| {
        let near = ulp_distance(*got, *expected) <= ulps.into();
        let same_sign = expected.is_nan() || negative(*got) == negative(*expected);
        let of: Vec<String> = operands
            .iter()
            .map(|operand| operand[row].to_string())
            .collect();
        let of = of.join(", ");
        (!near || !same_sign).then(|| format!("of {of} is {got}, expected {expected}"))
    })
}

/// The results of an op computed in `dtype` and rounded to that of the operands.
fn rounded(op: Op, operands: &[Vec<Scalar>], dtype: DType) -> Vec<Scalar> {
    let row = |row: usize| {
        let operands: Vec<Scalar> = operands.iter().map(|operand| operand[row]).collect();
        let wide: Vec<Scalar> = operands.iter().map(|x| cast(*x, dtype)).collect();
        let exact = evaluate(op, &wide).expect("it takes floats");
        cast(exact, operands[0].dtype())
    };
    (0..operands[0].len()).map(row).collect()
}

fn run(executable: &dyn Executable, kernel: &str, operands: &[Vec<Scalar>]) -> Vec<Scalar> {
    let (dtype, count) = (operands[0][0].dtype(), operands[0].len());
    let held: Vec<Buffer> = operands.iter().map(|operand| Buffer::of(operand)).collect();
    let mut result = Buffer::zeroed(dtype, count);
    let mut arguments: Vec<Argument<'_>> = held
        .iter()
        .map(|operand| Argument::Read(operand.bytes()))
        .collect();
    arguments.push(Argument::Write(result.bytes_mut()));
    arguments.push(Argument::Scalar(Scalar::i64(count as i64)));
    // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
    let ran = unsafe { executable.run(kernel, &mut arguments) };
    ran.unwrap_or_else(|error| panic!("{kernel}: {error}"));
    result.values(dtype)
}

#[test]
fn functions_are_as_near_as_they_say() {
    let Some(backend) = backend() else { return };
    let (numbers, pairs) = ([numbers()], pairs());
    let module = module(DType::F32, &[1, 8, LANES]);
    let mut wrong = Vec::new();
    // Strict code contracts nothing, and calls what has not been written out before.
    let executables = [false, true].map(|strict| {
        let options = CompileOptions {
            strict,
            ..CompileOptions::default()
        };
        let executable = backend.compile(&expanded(&module), &options);
        (strict, executable.expect("it compiles"))
    });
    for op in computed() {
        let operands: &[Vec<Scalar>] = match op.arity() {
            1 => &numbers,
            _ => &pairs,
        };
        // The correctly rounded result, but for rounding twice.
        let expected = rounded(op, operands, DType::F64);
        for (strict, executable) in &executables {
            for lanes in [1, 8, LANES] {
                let got = run(&**executable, &format!("{op}_{lanes}"), operands);
                let ulps = ulps(op).unwrap_or_default();
                let first = first_wrong(operands, &got, &expected, ulps);
                wrong.extend(
                    first.map(|first| format!("{op} in {lanes} lanes, strict {strict}: {first}")),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The fast versions, where they promise something: between subnormal numbers and 2^127.
#[test]
fn fast_functions_are_as_near_as_they_say() {
    let Some(backend) = backend() else { return };
    let ordinary = |x: &Scalar| {
        let size = f32::from_bits(x.bits() as u32).abs();
        size == 0.0 || size >= f32::MIN_POSITIVE && size < 2f32.powi(127) || !size.is_finite()
    };
    let fast = |op: &Op| ulps_with(*op, Precision::Fast) != ulps(*op);
    let module = module(DType::F32, &[LANES]);
    let module = expanded_with(&module, Precision::Fast);
    let executable = backend.compile(&module, &CompileOptions::default());
    let executable = executable.expect("it compiles");
    let numbers = numbers();
    for op in computed().filter(fast) {
        let operands = vec![numbers.clone()];
        let got = run(&*executable, &format!("{op}_{LANES}"), &operands);
        let expected = rounded(op, &operands, DType::F64);
        let rows: Vec<usize> = (0..numbers.len())
            .filter(|row| ordinary(&numbers[*row]) && ordinary(&expected[*row]))
            .collect();
        let of =
            |values: &[Scalar]| -> Vec<Scalar> { rows.iter().map(|row| values[*row]).collect() };
        let ulps = ulps_with(op, Precision::Fast).unwrap_or_default();
        let wrong = first_wrong(&[of(&numbers)], &of(&got), &of(&expected), ulps);
        assert_eq!(wrong, None, "{op}");
    }
}

/// Narrow floats are computed in `f32`: at every operand, the result is the library's or the one next to it.
#[test]
fn narrow_floats_are_the_next_at_most() {
    let Some(backend) = backend() else { return };
    for dtype in [DType::F16, DType::BF16] {
        let numbers = (0..1 << 16).map(|bits| Scalar::from_bits(dtype, bits));
        let others = (0..1 << 16).map(|bits| Scalar::from_bits(dtype, bits * 40_503 % (1 << 16)));
        let both: [Vec<Scalar>; 2] = [numbers.collect(), others.collect()];
        let executable = backend
            .compile(&module(dtype, &[8]), &CompileOptions::default())
            .expect("it compiles");
        for op in computed() {
            let operands = &both[..op.arity()];
            let got = run(&*executable, &format!("{op}_8"), operands);
            let wrong = first_wrong(operands, &got, &rounded(op, operands, dtype), 1);
            assert_eq!(wrong, None, "{op} in {dtype}");
        }
    }
}

/// Strict mode promises the interpreter's bits, and the interpreter calls the library.
#[test]
fn strict_code_calls_the_library() {
    let Some(backend) = backend() else { return };
    let module = module(DType::F32, &[LANES]);
    for (strict, called) in [(true, true), (false, false)] {
        let options = CompileOptions {
            strict,
            ..CompileOptions::default()
        };
        let code = backend
            .compile(&module, &options)
            .expect("it compiles")
            .code();
        for op in computed() {
            let call = format!("{op}f(");
            assert_eq!(code.contains(&call), called, "`{call}` in {code}");
        }
    }
}
