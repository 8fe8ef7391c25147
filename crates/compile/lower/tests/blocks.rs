//! Folded dimensions in blocks: running values that lie in memory between them and in registers inside.

use loopwright_graph::parse;
use loopwright_kernel::Argument;
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::{Module, validate};
use loopwright_looptree::{Plan, parse_schedule};
use loopwright_lower::{KernelParam, Lowered, lower};
use loopwright_text::Source;

fn lowered(program: &str, steps: &str) -> Lowered {
    let program = format!("loopwright program 1\n{program}");
    let graph = parse(&Source::new("program.lw", program.as_str()))
        .expect("the program is right")
        .with_stores();
    let text = format!("loopwright schedule 1\n{steps}");
    let schedule = parse_schedule(&Source::new("program.sched", text.as_str()), &graph)
        .expect("the schedule is right");
    let plan = Plan::new(graph, schedule).expect("the schedule fits");
    lower(&plan, "program").expect("it has a kernel")
}

/// Runs a kernel of a product of `A[i, k]` and `B[k, j]` with small integers, which no order of sums rounds.
fn product(module: &Module, lowered: &Lowered, [m, k, n]: [usize; 3]) -> (Vec<f32>, Vec<f32>) {
    let a: Vec<f32> = (0..m * k).map(|i| (i % 7) as f32 - 3.0).collect();
    let b: Vec<f32> = (0..k * n).map(|i| (i % 5) as f32 - 2.0).collect();
    let bytes = |x: &[f32]| x.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let (a_bytes, b_bytes) = (bytes(&a), bytes(&b));
    // What was in memory before does not matter.
    let mut c = bytes(&vec![77.0; m * n]);
    let mut scratch: Vec<Vec<u8>> = lowered
        .scratch
        .iter()
        .map(|scratch| {
            let elements = scratch.elements.as_const().expect("sizes are known");
            bytes(&vec![f32::NAN; elements as usize])
        })
        .collect();
    let mut free = scratch.iter_mut();
    let mut inputs = [&a_bytes, &b_bytes].into_iter();
    let mut result = Some(&mut c);
    let mut args: Vec<Argument<'_>> = lowered
        .params
        .iter()
        .map(|param| match param {
            KernelParam::Parameter(_) => {
                Argument::Read(inputs.next().expect("there are two inputs"))
            }
            KernelParam::Output(_) => Argument::Write(result.take().expect("there is one output")),
            KernelParam::Scratch(_) => Argument::Write(free.next().expect("each has its number")),
            other => panic!("the product has no parameter {other:?}"),
        })
        .collect();
    interpret(module, "program", &mut args, Grid::default())
        .unwrap_or_else(|error| panic!("{error}\n{module}"));
    drop(args);
    let got = c
        .chunks(4)
        .map(|at| f32::from_le_bytes([at[0], at[1], at[2], at[3]]));
    let want = (0..m * n).map(|at| {
        let (i, j) = (at / n, at % n);
        (0..k).map(|x| a[i * k + x] * b[x * n + j]).sum()
    });
    (got.collect(), want.collect())
}

#[test]
fn products_in_blocks_of_what_they_fold_are_right() {
    let sizes = [[13, 20, 37], [8, 16, 32], [1, 1, 1], [5, 33, 16]];
    let schedules = [
        // In the result's memory.
        "C: j/16, k/8, i/4, k, i unroll, j vectorize\n",
        "C: k/8, i, j/16, k unroll, j vectorize\n",
        "C: k/16, j, k/4, i, k\n",
        // In a private array, in an order of its own.
        "%3: layout=[j, i], j/16, k/8, i/4, k, i unroll, j unroll\nC: j/16, i, j\n",
        "%3: j/16, i/8, k/8, i/4, k, i unroll, j vectorize\nC: j/16, i/8, i, j\n",
        "%3: layout=[i/4, j, i], share=0, k/8, i, j, k\nC: share=0, i, j\n",
    ];
    for [m, k, n] in sizes {
        for steps in schedules {
            let whole = match steps.starts_with("C") {
                true => "output C = sum[k](A * B)",
                false => "output C = sum[k](A * B) + 0",
            };
            let program = format!("input A: f32[i={m}, k={k}]\ninput B: f32[k, j={n}]\n{whole}\n");
            let lowered = lowered(&program, steps);
            validate(&lowered.module).unwrap_or_else(|e| panic!("{e}\n{}", lowered.module));
            let mut optimised = lowered.module.clone();
            Pipeline::standard().run(&mut optimised, &mut |_, _| ());
            for module in [&lowered.module, &optimised] {
                let (got, want) = product(module, &lowered, [m, k, n]);
                assert_eq!(got, want, "{m}x{k}x{n} with\n{steps}{module}");
            }
        }
    }
}

#[test]
fn a_block_is_folded_in_registers() {
    let program = "input A: f32[i=512, k=64]\ninput B: f32[k, j=16]\noutput C = sum[k](A * B)\n";
    let mut lowered = lowered(program, "C: k/16, i/4, k, i unroll, j vectorize\n");
    Pipeline::standard().run(&mut lowered.module, &mut |_, _| ());
    let text = lowered.module.to_string();
    let variables = text.matches("alloc private f32x16 x 1").count();
    assert_eq!(variables, 4, "a variable for each row of the tile:\n{text}");
    // One load and one store of the result for each of them, none in the loop that folds.
    assert_eq!(text.matches("store %C[").count(), 4, "{text}");
    assert_eq!(text.matches("load %C[").count(), 4, "{text}");
}

#[test]
fn a_last_round_of_any_length_is_folded_in_registers() {
    let program = |sizes: &str, n: &str| {
        format!(
            "{sizes}\ninput A: f32[i=M, k=64]\ninput B: f32[k, j={n}]\noutput C = sum[k](A * B)\n"
        )
    };
    let count = |program: &str, steps: &str| {
        let text = lowered(program, steps).module.to_string();
        let variables = text.matches("alloc private f32x16 x 1").count();
        let arrays = text.matches("alloc private f32 x ").count();
        (variables, arrays)
    };
    let known = program("size M", "16");
    for steps in [
        "C: i/4, k, i unroll, j vectorize\n",
        "C: i/4 parallel, k, i unroll, j vectorize\n",
    ] {
        let rows = 4 + 3 + 2 + 1;
        assert_eq!(count(&known, steps), (rows, 0), "{steps}");
    }
    // Too many lengths for code of their own.
    let steps = "C: i/12, k, i unroll, j vectorize\n";
    assert_eq!(count(&known, steps), (12, 1));
    // Columns that are left over have no registers, whatever the number of rows is.
    let steps = "C: j/16, i/4, k, i unroll, j vectorize\n";
    let unknown = program("size M, N", "N");
    assert_eq!(count(&unknown, steps), (10, 2));
}

#[test]
fn nothing_folded_in_blocks_gives_zero() {
    let program = "size K = 8\ninput A: f32[i=8, k=K]\noutput C = sum[k](A)\n";
    let lowered = lowered(program, "C: k/16, i, k\n");
    for (k, want) in [(0i64, 0.0f32), (3, 3.0), (40, 40.0)] {
        let ones: Vec<u8> = (0..8 * k).flat_map(|_| 1.0f32.to_le_bytes()).collect();
        let mut c: Vec<u8> = (0..8).flat_map(|_| 77.0f32.to_le_bytes()).collect();
        let size = loopwright_ops::Scalar::i64(k);
        let mut args = [
            Argument::Read(&ones),
            Argument::Write(&mut c),
            Argument::Scalar(size),
        ];
        interpret(&lowered.module, "program", &mut args, Grid::default())
            .unwrap_or_else(|error| panic!("{error}\n{}", lowered.module));
        let got: Vec<f32> = c
            .chunks(4)
            .map(|at| f32::from_le_bytes([at[0], at[1], at[2], at[3]]))
            .collect();
        assert_eq!(got, [want; 8], "of {k} elements each");
    }
}
