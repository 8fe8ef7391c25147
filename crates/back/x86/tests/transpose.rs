//! Copies that exchange dimensions, in blocks where they can be.

use loopwright_backend::{Argument, CompileOptions, Describe, KernelBackend};
use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Module, Space};
use loopwright_ops::{DType, Scalar};
use loopwright_x86::{Level, X86};

/// Rows and columns, the first row and column that are copied, and how many of each.
struct Copy {
    rows: i64,
    columns: i64,
    first: (i64, i64),
    count: (i64, i64),
    /// Whether the loop over columns is the outer one.
    columns_outside: bool,
    /// Whether the length of a row is known only when the kernel runs.
    symbolic: bool,
}

/// `y[column][row] = x[row][column]` as a kernel.
fn kernel(copy: &Copy) -> Module {
    let mut b = Builder::new("turn", FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::Read, true);
    let y = b.param_ptr(DType::F32, Space::Global, "y", Access::Write, true);
    let length = b.param_scalar(DType::I64, "length");
    let width = match copy.symbolic {
        true => length,
        false => b.const_i64(copy.columns),
    };
    let height = b.const_i64(copy.rows);
    let one = b.const_i64(1);
    let bounds =
        |b: &mut Builder, first: i64, count: i64| (b.const_i64(first), b.const_i64(first + count));
    let (row_start, row_end) = bounds(&mut b, copy.first.0, copy.count.0);
    let (column_start, column_end) = bounds(&mut b, copy.first.1, copy.count.1);
    let kind = LoopKind::Serial;
    let (row, column) = if copy.columns_outside {
        let column = b.begin_for(column_start, column_end, one, kind, "column");
        (b.begin_for(row_start, row_end, one, kind, "row"), column)
    } else {
        let row = b.begin_for(row_start, row_end, one, kind, "row");
        (
            row,
            b.begin_for(column_start, column_end, one, kind, "column"),
        )
    };
    use loopwright_ops::Op;
    let before = b.map(Op::Mul, &[row, width]);
    let from = b.map(Op::Add, &[before, column]);
    let value = b.load(x, from);
    let before = b.map(Op::Mul, &[column, height]);
    let to = b.map(Op::Add, &[before, row]);
    b.store(y, to, value);
    b.end_block();
    b.end_block();
    Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    }
}

#[test]
fn every_element_gets_where_it_belongs() {
    let mut blocks = 0;
    for level in Level::ALL {
        let backend = X86::new().at(level);
        if let Err(why) = backend.availability() {
            println!("skipped: {why}");
            continue;
        }
        for (columns_outside, symbolic) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            for (first, count) in [
                ((0, 0), (32, 48)),
                ((5, 3), (16, 32)),
                ((0, 0), (31, 48)),
                ((1, 0), (16, 17)),
            ] {
                let copy = Copy {
                    rows: 40,
                    columns: 50,
                    first,
                    count,
                    columns_outside,
                    symbolic,
                };
                let module = kernel(&copy);
                let options = CompileOptions::default();
                let executable = backend.compile(&module, &options).expect("it compiles");
                blocks += u32::from(executable.code().contains("vshuff32x4"));
                let x: Vec<f32> = (0..copy.rows * copy.columns).map(|at| at as f32).collect();
                let mut y = vec![-1f32; x.len()];
                let mut arguments = [
                    Argument::Read(bytemuck::cast_slice(&x)),
                    Argument::Write(bytemuck::cast_slice_mut(&mut y)),
                    Argument::Scalar(Scalar::i64(copy.columns)),
                ];
                // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
                unsafe { executable.run("turn", &mut arguments) }.expect("it runs");
                for row in 0..copy.rows {
                    for column in 0..copy.columns {
                        let copied = (first.0..first.0 + count.0).contains(&row)
                            && (first.1..first.1 + count.1).contains(&column);
                        let expected = match copied {
                            true => x[(row * copy.columns + column) as usize],
                            false => -1.0,
                        };
                        let got = y[(column * copy.rows + row) as usize];
                        assert_eq!(got, expected, "{level}: row {row}, column {column}");
                    }
                }
            }
        }
    }
    if X86::new().level() == Ok(Level::Avx512) {
        assert_eq!(
            blocks, 8,
            "kernels whose loops are multiples of a block are copied in blocks"
        );
    }
}

/// `y[block][channel][window][column] = x[row][channel][window]`, with `row` the column of a block of 48: as the weights of a
/// convolution are packed.
fn weights(rows: i64, channels: i64, window: i64) -> Module {
    let mut b = Builder::new("pack", FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::Read, true);
    let y = b.param_ptr(DType::F32, Space::Global, "y", Access::Write, true);
    use loopwright_ops::Op;
    let (zero, one, block) = (b.const_i64(0), b.const_i64(1), b.const_i64(48));
    let all = b.const_i64(rows);
    let (channels, window) = (b.const_i64(channels), b.const_i64(window));
    let depth = b.map(Op::Mul, &[channels, window]);
    let kind = LoopKind::Serial;
    let start = b.begin_for(zero, all, block, kind, "block");
    let end = b.map(Op::Add, &[start, block]);
    let channel = b.begin_for(zero, channels, one, kind, "channel");
    let place = b.begin_for(zero, window, one, kind, "place");
    let row = b.begin_for(start, end, one, kind, "row");
    let before = b.map(Op::Mul, &[channel, window]);
    let deep = b.map(Op::Add, &[before, place]);
    let before = b.map(Op::Mul, &[row, depth]);
    let from = b.map(Op::Add, &[before, deep]);
    let value = b.load(x, from);
    let column = b.map(Op::Sub, &[row, start]);
    let of_block = b.map(Op::Mul, &[start, depth]);
    let of_depth = b.map(Op::Mul, &[deep, block]);
    let to = b.map(Op::Add, &[of_block, of_depth]);
    let to = b.map(Op::Add, &[to, column]);
    b.store(y, to, value);
    for _ in 0..4 {
        b.end_block();
    }
    Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    }
}

#[test]
fn loops_through_one_piece_are_one_dimension() {
    let rows = 96;
    // Together 144 elements, which are blocks, and 45, which are not.
    for (channels, window, in_blocks) in [(16i64, 9i64, true), (5, 9, false)] {
        for level in Level::ALL {
            let backend = X86::new().at(level);
            if let Err(why) = backend.availability() {
                println!("skipped: {why}");
                continue;
            }
            let module = weights(rows, channels, window);
            let options = CompileOptions::default();
            let executable = backend.compile(&module, &options).expect("it compiles");
            let depth = channels * window;
            let x: Vec<f32> = (0..rows * depth).map(|at| at as f32).collect();
            let mut y = vec![-1f32; x.len()];
            let mut arguments = [
                Argument::Read(bytemuck::cast_slice(&x)),
                Argument::Write(bytemuck::cast_slice_mut(&mut y)),
            ];
            // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
            unsafe { executable.run("pack", &mut arguments) }.expect("it runs");
            for row in 0..rows {
                for deep in 0..depth {
                    let to = row / 48 * 48 * depth + deep * 48 + row % 48;
                    let expected = x[(row * depth + deep) as usize];
                    assert_eq!(y[to as usize], expected, "{level}: row {row}, {deep}");
                }
            }
            let found = executable.code().contains("vshuff32x4");
            assert_eq!(found, in_blocks && level == Level::Avx512, "{level}");
        }
    }
}
