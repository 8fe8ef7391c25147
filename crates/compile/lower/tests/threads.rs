//! Parallel loops: those right inside each other are one, and their shorter last rounds are rounds like the others.

use loopwright_graph::parse;
use loopwright_kernel::Argument;
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::{Module, validate};
use loopwright_looptree::{Plan, parse_schedule};
use loopwright_lower::{Lowered, lower};
use loopwright_ops::Scalar;
use loopwright_text::Source;

const CONSTANT: &str = "input A: f32[i=37, k=5]\ninput B: f32[k, j=50]\noutput C = sum[k](A * B)\n";
const SYMBOLIC: &str =
    "size M = 64, N = 64\ninput A: f32[i=M, k=5]\ninput B: f32[k, j=N]\noutput C = sum[k](A * B)\n";

fn lowered(program: &str, steps: &str) -> Lowered {
    let program = format!("loopwright program 1\n{program}");
    let graph = parse(&Source::new("program.lw", program.as_str()))
        .expect("the program is right")
        .with_stores();
    let text = format!("loopwright schedule 1\n{steps}");
    let schedule = parse_schedule(&Source::new("program.sched", text.as_str()), &graph)
        .expect("the schedule is right");
    let plan = Plan::new(graph, schedule).expect("the schedule fits");
    let lowered = lower(&plan, "program").expect("it has a kernel");
    validate(&lowered.module).unwrap_or_else(|error| panic!("{error}\n{}", lowered.module));
    lowered
}

/// What the kernel makes of small integers, which no order of sums rounds, and what it should.
fn product(module: &Module, sizes: &[Scalar], [m, n]: [usize; 2]) -> (Vec<f32>, Vec<f32>) {
    let a: Vec<f32> = (0..m * 5).map(|i| (i % 7) as f32 - 3.0).collect();
    let b: Vec<f32> = (0..5 * n).map(|i| (i % 11) as f32 - 2.0).collect();
    let bytes = |x: &[f32]| x.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let (a_bytes, b_bytes) = (bytes(&a), bytes(&b));
    let mut c = bytes(&vec![77.0; m * n]);
    let mut args = vec![
        Argument::Read(&a_bytes),
        Argument::Read(&b_bytes),
        Argument::Write(&mut c),
    ];
    args.extend(sizes.iter().map(|size| Argument::Scalar(*size)));
    interpret(module, "program", &mut args, Grid::default())
        .unwrap_or_else(|error| panic!("{error}\n{module}"));
    drop(args);
    let got = c
        .chunks(4)
        .map(|at| f32::from_le_bytes([at[0], at[1], at[2], at[3]]));
    let want = (0..m * n).map(|at| {
        let (i, j) = (at / n, at % n);
        (0..5).map(|x| a[i * 5 + x] * b[x * n + j]).sum()
    });
    (got.collect(), want.collect())
}

/// How many parallel loops a kernel has.
fn parallel_loops(module: &Module) -> usize {
    module.to_string().matches(" parallel {").count()
}

const SCHEDULES: [&str; 8] = [
    "C: i parallel, j parallel, k\n",
    "C: j/16 parallel, i/6 parallel, k, i unroll, j vectorize\n",
    "C: j/16 parallel, i/6 parallel, k, i, j\n",
    "C: i/6 parallel, k, i unroll, j/16, j vectorize\n",
    // More than there are elements.
    "C: i/64 parallel, j/16 parallel, k, i unroll, j vectorize\n",
    "C: j/100 parallel, i parallel, j/16 parallel, k, j vectorize\n",
    // Along one dimension.
    "C: j/25 parallel, j/5 parallel, i parallel, k, j\n",
    "C: j/32 parallel, j/4 parallel, i, k, j\n",
];

#[test]
fn every_round_of_all_loops_runs_once() {
    for steps in SCHEDULES {
        let lowered = lowered(CONSTANT, steps);
        let mut optimised = lowered.module.clone();
        Pipeline::standard().run(&mut optimised, &mut |_, _| ());
        for module in [&lowered.module, &optimised] {
            let (got, want) = product(module, &[], [37, 50]);
            assert_eq!(got, want, "{steps}{module}");
        }
    }
}

#[test]
fn sizes_need_not_be_known() {
    for steps in SCHEDULES {
        let lowered = lowered(SYMBOLIC, steps);
        let mut optimised = lowered.module.clone();
        Pipeline::standard().run(&mut optimised, &mut |_, _| ());
        for [m, n] in [[37, 50], [6, 16], [5, 15], [1, 1], [0, 3], [3, 0]] {
            let sizes = [m, n].map(|size| Scalar::i64(size as i64));
            for module in [&lowered.module, &optimised] {
                let (got, want) = product(module, &sizes, [m, n]);
                assert_eq!(got, want, "{m}x{n} with\n{steps}{module}");
            }
        }
    }
}

#[test]
fn loops_right_inside_each_other_are_one_and_have_no_code_behind_them() {
    let pair = "C: j/16 parallel, i/6 parallel, k, i unroll, j vectorize\n";
    let module = lowered(CONSTANT, pair).module;
    let text = module.to_string();
    assert_eq!(parallel_loops(&module), 1, "{text}");
    // 4 rounds of `j`, the last shorter, with 7 of `i` each.
    assert!(text.contains("%round: i64"), "{text}");
    let behind = text.rsplit_once("\n  }\n").map_or("", |(_, behind)| behind);
    assert_eq!(behind.trim(), "}", "nothing follows the loop:\n{text}");
    // How much the inner loop covers depends on the round of the outer one.
    let uneven = lowered(CONSTANT, "C: j/32 parallel, j/4 parallel, i, k, j\n").module;
    assert_eq!(parallel_loops(&uneven), 2, "{uneven}");
}
