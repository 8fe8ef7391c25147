//! Every op, cast and bitcast, on every dtype, scalar and vector, against the oracle, bit for bit.

mod harness;

use harness::{Buffer, backend, combinations, compile, edge_values};
use loopwright_backend::Argument;
use loopwright_gccjit::GccJit;
use loopwright_kernel::{Access, Builder, Function, FunctionKind, LoopKind, Space, Value};
use loopwright_ops::{
    DType, Op, ReduceOp, Scalar, bitcast, can_bitcast, cast, evaluate, same_value,
};

/// Scalars, and vectors of one register or less, and of one or more.
const LANES: [u32; 3] = [1, 4, 16];

/// The lanes that ops on a dtype are tried with: those for which there are different instructions.
fn lanes_of(dtype: DType) -> &'static [u32] {
    match dtype {
        DType::F16 => &[1, 8, 16],
        _ if dtype.bits() < 32 => &[1, 16],
        _ => &LANES,
    }
}

/// A kernel `out[i] = f(in0[i], …)` on vectors of `lanes` lanes.
fn elementwise(
    name: String,
    inputs: &[DType],
    output: DType,
    lanes: u32,
    f: impl FnOnce(&mut Builder, &[Value]) -> Value,
) -> Function {
    let mut b = Builder::new(name, FunctionKind::Kernel { group: None });
    let out = b.param_ptr(output, Space::Global, "out", Access::Write, true);
    let pointers: Vec<Value> = inputs
        .iter()
        .map(|&dtype| b.param_ptr(dtype, Space::Global, "in", Access::Read, false))
        .collect();
    let n = b.param_scalar(DType::I64, "n");
    let (zero, step) = (b.const_i64(0), b.const_i64(lanes.into()));
    b.for_loop(zero, n, step, LoopKind::Serial, "i", |b, i| {
        let values: Vec<Value> = pointers
            .iter()
            .map(|&pointer| {
                if lanes == 1 {
                    b.load(pointer, i)
                } else {
                    b.load_vector(pointer, i, lanes)
                }
            })
            .collect();
        let result = f(b, &values);
        b.store(out, i, result);
    });
    b.finish()
}

/// One kernel with what it should compute.
struct Case {
    name: String,
    columns: Vec<Vec<Scalar>>,
    output: DType,
    expected: Vec<Scalar>,
}

/// Compiles and compares. `modes` are the values of `strict` to try.
fn check(functions: Vec<Function>, cases: &[Case], modes: &[bool]) {
    let Some(backend) = backend() else { return };
    check_on(&backend, functions, cases, modes);
}

fn check_on(backend: &GccJit, functions: Vec<Function>, cases: &[Case], modes: &[bool]) {
    for &strict in modes {
        let executable = compile(backend, functions.clone(), strict);
        let mut failures = Vec::new();
        for case in cases {
            let inputs: Vec<Buffer> = case.columns.iter().map(|c| Buffer::of(c)).collect();
            let rows = case.columns[0].len();
            let mut out = Buffer::zeroed(case.output, case.expected.len());
            let mut arguments = vec![Argument::Write(out.bytes_mut())];
            arguments.extend(inputs.iter().map(|input| Argument::Read(input.bytes())));
            arguments.push(Argument::Scalar(Scalar::i64(rows as i64)));
            executable
                .run(&case.name, &mut arguments)
                .expect("the call fits");
            let got = out.values(case.output);
            let raw = out.bytes();
            let wrong = (0..got.len()).find(|&row| {
                // A bool must be stored as 0 or 1.
                !same_value(got[row], case.expected[row])
                    || case.output == DType::Bool && raw[row] > 1
            });
            if let Some(row) = wrong {
                let operands: Vec<String> = case
                    .columns
                    .iter()
                    .filter_map(|column| column.get(row))
                    .map(|value| format!("{value} ({:#x})", value.bits()))
                    .collect();
                failures.push(format!(
                    "{}({}) gave {} ({:#x}), expected {} ({:#x}), strict {strict}",
                    case.name,
                    operands.join(", "),
                    got[row],
                    got[row].bits(),
                    case.expected[row],
                    case.expected[row].bits(),
                ));
            }
        }
        assert!(
            failures.is_empty(),
            "{} kernels differ:\n{}",
            failures.len(),
            failures.join("\n")
        );
    }
}

fn expected(op: Op, columns: &[Vec<Scalar>]) -> Vec<Scalar> {
    (0..columns[0].len())
        .map(|row| {
            let operands: Vec<Scalar> = columns.iter().map(|column| column[row]).collect();
            evaluate(op, &operands).expect("the operands fit")
        })
        .collect()
}

fn check_ops(dtypes: &[DType]) {
    if let Some(backend) = backend() {
        check_ops_on(&backend, dtypes);
    }
}

fn check_ops_on(backend: &GccJit, dtypes: &[DType]) {
    let (mut functions, mut cases) = (Vec::new(), Vec::new());
    for &dtype in dtypes {
        let values = edge_values(dtype);
        for &op in Op::ALL {
            let mut inputs = vec![dtype; op.arity()];
            if op == Op::Select {
                inputs[0] = DType::Bool;
            }
            let Ok(output) = op.result_dtype(&inputs) else {
                continue;
            };
            let mut lists: Vec<Vec<Scalar>> = inputs
                .iter()
                .map(|&input| {
                    if input == dtype {
                        values.clone()
                    } else {
                        edge_values(input)
                    }
                })
                .collect();
            if op == Op::MulAdd {
                // All of three would be too many: every second, differently for each operand.
                for (skip, list) in lists.iter_mut().enumerate() {
                    *list = list.iter().copied().skip(skip % 2).step_by(2).collect();
                }
            }
            let columns = combinations(&lists, 16);
            let expected = expected(op, &columns);
            for &lanes in lanes_of(dtype) {
                let name = format!("{op}_{dtype}x{lanes}");
                functions.push(elementwise(
                    name.clone(),
                    &inputs,
                    output,
                    lanes,
                    |b, values| b.map(op, values),
                ));
                cases.push(Case {
                    name,
                    columns: columns.clone(),
                    output,
                    expected: expected.clone(),
                });
            }
        }
    }
    assert!(!cases.is_empty());
    check_on(backend, functions, &cases, &[true]);
}

/// What later processors have instructions for is done without.
#[test]
fn ops_with_fewer_instructions() {
    for level in [1, 3] {
        if let Some(backend) = backend() {
            let backend = backend.with_instructions(level);
            check_ops_on(&backend, &[DType::F32, DType::F16, DType::I16]);
        }
    }
}

#[test]
fn ops_on_bool_and_small_integers() {
    check_ops(&[DType::Bool, DType::I8, DType::U8, DType::I16, DType::U16]);
}

#[test]
fn ops_on_large_integers() {
    check_ops(&[DType::I32, DType::U32, DType::I64, DType::U64]);
}

#[test]
fn ops_on_floats() {
    check_ops(&[DType::F32, DType::F64]);
}

#[test]
fn ops_on_narrow_floats() {
    check_ops(&[DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2]);
}

#[test]
fn casts_and_bitcasts() {
    let (mut functions, mut cases) = (Vec::new(), Vec::new());
    for from in DType::ALL {
        let mut values = edge_values(from);
        if from.bits() == 8 && from != DType::Bool {
            values = (0..256).map(|bits| Scalar::from_bits(from, bits)).collect();
        }
        for to in DType::ALL {
            let columns = combinations(&[values.clone()], 16);
            for &lanes in lanes_of(from) {
                let name = format!("cast_{from}_{to}x{lanes}");
                functions.push(elementwise(name.clone(), &[from], to, lanes, |b, v| {
                    b.cast(to, v[0])
                }));
                cases.push(Case {
                    name,
                    columns: columns.clone(),
                    output: to,
                    expected: columns[0].iter().map(|&value| cast(value, to)).collect(),
                });
                if can_bitcast(from, to) {
                    let name = format!("bitcast_{from}_{to}x{lanes}");
                    functions.push(elementwise(name.clone(), &[from], to, lanes, |b, v| {
                        b.bitcast(to, v[0])
                    }));
                    cases.push(Case {
                        name,
                        columns: columns.clone(),
                        output: to,
                        expected: columns[0]
                            .iter()
                            .map(|&value| bitcast(value, to).expect("as wide"))
                            .collect(),
                    });
                }
            }
        }
    }
    check(functions, &cases, &[true]);
}

/// Moving a narrow float, whatever its bits, changes none of them.
#[test]
fn narrow_floats_move_bit_for_bit() {
    let Some(backend) = backend() else { return };
    let every = |dtype: DType| -> Vec<Scalar> {
        (0..1u64 << dtype.bits())
            .map(|bits| Scalar::from_bits(dtype, bits))
            .collect()
    };
    for dtype in [DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2] {
        let executable = compile(
            &backend,
            vec![
                elementwise("scalar".into(), &[dtype], dtype, 1, |b, v| {
                    b.map(Op::Copy, v)
                }),
                elementwise("vector".into(), &[dtype], dtype, 16, |b, v| {
                    b.map(Op::Copy, v)
                }),
                elementwise("widened".into(), &[dtype], DType::F32, 16, |b, v| {
                    b.cast(DType::F32, v[0])
                }),
                elementwise("rounded".into(), &[dtype], dtype, 16, |b, v| {
                    let wide = b.cast(DType::F32, v[0]);
                    b.cast(dtype, wide)
                }),
            ],
            true,
        );
        let values = every(dtype);
        let input = Buffer::of(&values);
        let run = |kernel: &str, to: DType| {
            let mut out = Buffer::zeroed(to, values.len());
            executable
                .run(
                    kernel,
                    &mut [
                        Argument::Write(out.bytes_mut()),
                        Argument::Read(input.bytes()),
                        Argument::Scalar(Scalar::i64(values.len() as i64)),
                    ],
                )
                .expect("the call fits");
            out.values(to)
        };
        assert_eq!(run("scalar", dtype), values);
        assert_eq!(run("vector", dtype), values);
        for (value, got) in values.iter().zip(run("widened", DType::F32)) {
            assert!(
                same_value(got, cast(*value, DType::F32)),
                "{dtype} {:#x}",
                value.bits()
            );
        }
        for (value, got) in values.iter().zip(run("rounded", dtype)) {
            assert!(
                same_value(got, *value),
                "{dtype} {:#x} became {:#x}",
                value.bits(),
                got.bits()
            );
        }
    }
}

/// Splat, build, extract, insert, shuffle and reductions over lanes.
#[test]
fn lanes_are_moved_and_reduced() {
    let (mut functions, mut cases) = (Vec::new(), Vec::new());
    for dtype in DType::ALL {
        let columns = combinations(&[edge_values(dtype)], 16);
        let input = &columns[0];
        for lanes in [2u32, 4, 8, 16] {
            let groups = input.chunks(lanes as usize);
            let mut add = |name: &str,
                           f: &mut dyn FnMut(&mut Builder, Value) -> Value,
                           expect: &dyn Fn(&[Scalar]) -> Vec<Scalar>| {
                let name = format!("{name}_{dtype}x{lanes}");
                functions.push(elementwise(name.clone(), &[dtype], dtype, lanes, |b, v| {
                    f(b, v[0])
                }));
                cases.push(Case {
                    name,
                    columns: columns.clone(),
                    output: dtype,
                    expected: groups.clone().flat_map(expect).collect(),
                });
            };
            let last = lanes as usize - 1;
            add(
                "splat",
                &mut |b, v| {
                    let lane = b.extract(v, lanes - 1);
                    b.splat(lane, lanes)
                },
                &|group| vec![group[last]; group.len()],
            );
            add(
                "reverse",
                &mut |b, v| {
                    let scalars: Vec<Value> =
                        (0..lanes).rev().map(|lane| b.extract(v, lane)).collect();
                    b.build(&scalars)
                },
                &|group| group.iter().rev().copied().collect(),
            );
            add(
                "rotate",
                &mut |b, v| {
                    let picks: Vec<u32> = (0..lanes)
                        .map(|lane| (lane + 1) % lanes + lane % 2 * lanes)
                        .collect();
                    b.shuffle(v, v, &picks)
                },
                &|group| {
                    (0..group.len())
                        .map(|lane| group[(lane + 1) % group.len()])
                        .collect()
                },
            );
            add(
                "insert",
                &mut |b, v| {
                    let first = b.extract(v, 0);
                    b.insert(v, lanes - 1, first)
                },
                &|group| {
                    let mut group = group.to_vec();
                    group[last] = group[0];
                    group
                },
            );
            for op in ReduceOp::ALL {
                if !op.allows(dtype) {
                    continue;
                }
                add(
                    &format!("reduce_{op}"),
                    &mut |b, v| {
                        let reduced = b.reduce_lanes(op, v);
                        b.splat(reduced, lanes)
                    },
                    &|group| {
                        let all = group[1..].iter().fold(group[0], |sum, &value| {
                            evaluate(op.combine(), &[sum, value]).expect("the operands fit")
                        });
                        vec![all; group.len()]
                    },
                );
            }
        }
    }
    check(functions, &cases, &[true]);
}

/// Conditions of one width choose between values of another, and conditions combine.
#[test]
fn masks_of_all_widths_meet() {
    let (mut functions, mut cases) = (Vec::new(), Vec::new());
    let dtypes = [
        DType::I8,
        DType::U16,
        DType::F16,
        DType::F32,
        DType::I64,
        DType::F64,
        DType::Bool,
    ];
    for compared in dtypes {
        for chosen in dtypes {
            for lanes in [4u32, 8, 16] {
                let columns = combinations(
                    &[
                        edge_values(compared),
                        edge_values(compared),
                        edge_values(chosen),
                    ],
                    16,
                );
                let name = format!("choose_{compared}_{chosen}x{lanes}");
                let inputs = [compared, compared, chosen];
                functions.push(elementwise(name.clone(), &inputs, chosen, lanes, |b, v| {
                    let less = b.map(Op::Lt, &[v[0], v[1]]);
                    let zero = b.constant_vector(Scalar::zero(chosen), lanes);
                    let positive = b.map(Op::Ne, &[v[2], zero]);
                    let neither = b.map(Op::Or, &[less, positive]);
                    let neither = b.map(Op::Not, &[neither]);
                    let both = b.map(Op::And, &[less, positive]);
                    let some = b.map(Op::Or, &[both, neither]);
                    let one = b.constant_vector(Scalar::one(chosen), lanes);
                    b.map(Op::Select, &[some, v[2], one])
                }));
                let expected = (0..columns[0].len())
                    .map(|row| {
                        let truth = |op, a, b| evaluate(op, &[a, b]).expect("fits").is_true();
                        let less = truth(Op::Lt, columns[0][row], columns[1][row]);
                        let positive = truth(Op::Ne, columns[2][row], Scalar::zero(chosen));
                        if less == positive {
                            columns[2][row]
                        } else {
                            Scalar::one(chosen)
                        }
                    })
                    .collect();
                cases.push(Case {
                    name,
                    columns,
                    output: chosen,
                    expected,
                });
            }
        }
    }
    check(functions, &cases, &[true]);
}

/// Constants come out as they went in, all patterns of bits included.
#[test]
fn constants_keep_their_bits() {
    let Some(backend) = backend() else { return };
    let mut functions = Vec::new();
    for dtype in DType::ALL {
        let mut b = Builder::new(
            format!("constants_{dtype}"),
            FunctionKind::Kernel { group: None },
        );
        let out = b.param_ptr(dtype, Space::Global, "out", Access::Write, true);
        for (position, value) in constants(dtype).into_iter().enumerate() {
            let index = b.const_i64(position as i64);
            let value = b.constant(value);
            b.store(out, index, value);
        }
        functions.push(b.finish());
    }
    let executable = compile(&backend, functions, true);
    for dtype in DType::ALL {
        let expected = constants(dtype);
        let mut out = Buffer::zeroed(dtype, expected.len());
        executable
            .run(
                &format!("constants_{dtype}"),
                &mut [Argument::Write(out.bytes_mut())],
            )
            .expect("the call fits");
        assert_eq!(out.values(dtype), expected, "{dtype}");
    }
}

fn constants(dtype: DType) -> Vec<Scalar> {
    let mut values = edge_values(dtype);
    if dtype.is_float() {
        let nan = Scalar::nan(dtype).expect("a float has NaN").bits();
        let sign = 1 << (dtype.bits() - 1);
        values.push(Scalar::from_bits(dtype, nan | sign));
    }
    if matches!(dtype, DType::F32 | DType::F64) {
        values.push(Scalar::from_bits(
            dtype,
            Scalar::nan(dtype).expect("a float has NaN").bits() | 5,
        ));
    }
    // A walk through all patterns.
    values.extend(
        (1..200u64).map(|n| Scalar::from_bits(dtype, n.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
    );
    values
}
