//! The cost model: what it counts, checked by hand, and which of two schedules it prefers where that is
//! certain.

use loopwright_graph::{Graph, parse};
use loopwright_looptree::{LoopTree, Schedule, Target, costs, parse_schedule};
use loopwright_scheduler::{BoundBy, Estimate, StepEstimate, estimate};
use loopwright_text::Source;

/// One core with 64-byte vectors, an L1 of 32 KiB, an L2 of 1 MiB and an L3 of 16 MiB.
const WIDE: Target = Target {
    vector_bytes: 64,
    vector_registers: 32,
    ..Target::SCALAR
};

fn graph(text: &str) -> Graph {
    let source = Source::new("test.lw", format!("loopwright program 1\n{text}\n"));
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    graph.with_stores()
}

fn schedule(graph: &Graph, lines: &str) -> Schedule {
    let source = Source::new("test", format!("loopwright schedule 1\n{lines}\n"));
    parse_schedule(&source, graph).unwrap_or_else(|error| panic!("{}", error.render(&source)))
}

fn estimated(graph: &Graph, lines: &str, target: &Target) -> Estimate {
    let schedule = schedule(graph, lines);
    let tree = LoopTree::new(graph, &schedule).expect("the schedule is legal");
    estimate(graph, &schedule, &tree, target, &|_| None).expect("sizes are known")
}

fn only(graph: &Graph, lines: &str, target: &Target) -> StepEstimate {
    let found = estimated(graph, lines, target);
    assert_eq!(found.steps.len(), 1);
    found.steps[0].clone()
}

/// The first schedule is the faster one, by a factor at least.
#[track_caller]
fn faster(graph: &Graph, target: &Target, first: &str, second: &str, factor: f64) {
    let [a, b] = [first, second].map(|lines| estimated(graph, lines, target));
    assert!(
        a.seconds * factor < b.seconds,
        "`{first}` takes {:.3e} s and `{second}` {:.3e} s\n{}\n{}",
        a.seconds,
        b.seconds,
        reasons(graph, &a),
        reasons(graph, &b),
    );
}

fn reasons(graph: &Graph, found: &Estimate) -> String {
    let steps = found.steps.iter();
    steps
        .map(|step| format!("  {}: {}\n", graph.node_name(step.node), step.reason(graph)))
        .collect()
}

fn matmul(n: u32) -> Graph {
    graph(&format!(
        "input A: f32[i={n}, k={n}]\ninput B: f32[k, j={n}]\noutput C = sum[k](A * B)"
    ))
}

const MIB: f64 = 1024.0 * 1024.0;

#[test]
fn a_map_moves_each_array_once() {
    // 4 MiB each: x is read, y is fetched and written back. All of it is more than L2 and less than L3.
    let graph = graph("input x: f32[i=1024, j=1024]\noutput y = x * 2 + 1");
    let found = only(&graph, "y: i, j", &WIDE);
    assert_eq!(found.flops, 2.0 * MIB);
    assert_eq!(found.bytes, [8.0 * MIB, 12.0 * MIB, 12.0 * MIB, 0.0]);
    // Once more than L3, it comes from memory.
    let small = Target {
        l3_bytes: 8 << 20,
        ..WIDE
    };
    assert_eq!(only(&graph, "y: i, j", &small).bytes[3], 12.0 * MIB);
}

#[test]
fn what_fits_is_there_already() {
    let graph = graph("input x: f32[i=1000]\noutput y = x + 1");
    let found = only(&graph, "y: i", &WIDE);
    assert_eq!(found.bytes, [8000.0, 0.0, 0.0, 0.0]);
    assert_eq!(found.flops, 1000.0);
}

#[test]
fn a_column_takes_whole_lines() {
    // 16 bytes from row to row: a column touches all lines of x, and y is 4 columns of 128 KiB.
    let graph = graph("input x: f32[i=32768, j=4]\ny[j, i] = x\noutput y");
    let x = 0.5 * MIB;
    let y = 2.0 * 0.5 * MIB;
    // A column with its lines is more than L1 holds, and less than L2.
    let columns = only(&graph, "y: j, i", &WIDE);
    assert_eq!(columns.bytes, [1.0 * MIB, 4.0 * x + y, x + y, 0.0]);
    // Along the rows, each line comes once.
    let rows = only(&graph, "y: i, j", &WIDE);
    assert_eq!(rows.bytes, [1.0 * MIB, x + y, x + y, 0.0]);
}

#[test]
fn powers_of_two_compete_for_few_places() {
    // Of lines 128 KiB apart, L1 holds as many as it has ways. 16 rows of y are too many, 4 are not (see above).
    let near = graph("input x: f32[i=32768, j=16]\ny[j, i] = x\noutput y");
    let apart = graph("input x: f32[i=32784, j=16]\ny[j, i] = x\noutput y");
    let [near, apart] = [near, apart].map(|graph| only(&graph, "y: i, j", &WIDE).bytes[1]);
    assert!(near > 8.0 * apart, "{near} {apart}");
}

#[test]
fn a_matrix_product_reads_b_for_each_row() {
    // 256 x 256: a row of B and one of C fit into L1, B (256 KiB) does not. It comes from L2 for every row.
    let graph = matmul(256);
    let found = only(&graph, "C: i, k, j", &WIDE);
    assert_eq!(found.flops, 2.0 * 256.0 * 256.0 * 256.0);
    let (a, b, c) = (0.25 * MIB, 256.0 * 0.25 * MIB, 2.0 * 0.25 * MIB);
    assert_eq!(found.bytes[1..], [a + b + c, 0.0, 0.0]);
}

#[test]
fn a_register_tile_loads_each_operand_once_for_the_tile() {
    // For each k: 4 elements of A and 2 vectors of B for 8 vectors of C.
    let graph = matmul(256);
    let found = only(&graph, "C: i/4, j/32, k, i unroll, j vectorize", &WIDE);
    let rounds = 64.0 * 8.0 * 256.0;
    let results = 256.0 * 256.0 * 4.0;
    assert_eq!(found.bytes[0], rounds * (4.0 * 4.0 + 32.0 * 4.0) + results);
}

#[test]
fn operations_are_those_that_costs_counts() {
    let graph = graph(
        "size N = 100\ninput x: f32[i=N, j=37]\nm = max[j](x)\ne = exp(x - m)\n\
         output y = e / sum[j](e)",
    );
    let lines = "m: i/8, i, j\n%4: i, j\ny: i, j/16, j vectorize";
    let schedule = schedule(&graph, lines);
    let tree = LoopTree::new(&graph, &schedule).expect("the schedule is legal");
    let held = loopwright_looptree::allocations(&graph, &schedule, &tree).expect("they exist");
    let counted = costs(&graph, &schedule, &held).expect("they exist");
    let found = estimate(&graph, &schedule, &tree, &WIDE, &|_| None).expect("sizes are known");
    for (step, cost) in found.steps.iter().zip(&counted) {
        let flops = cost.flops.evaluate(&|_| Some(100)).expect("N is all");
        // Tails are means: the last digits may differ.
        let difference = (step.flops - flops as f64).abs();
        assert!(difference < 1e-6 * flops as f64, "{step:?} {flops}");
    }
}

#[test]
fn sizes_are_asked_for_then_defaults_then_typical() {
    let text = |size: &str| graph(&format!("size {size}\ninput x: f32[i=N]\noutput y = x + 1"));
    let unknown = text("N");
    let schedule = schedule(&unknown, "y: i");
    let tree = LoopTree::new(&unknown, &schedule).expect("the schedule is legal");
    let with = |sizes: &dyn Fn(loopwright_symbolic::Symbol) -> Option<i64>| {
        let found = estimate(&unknown, &schedule, &tree, &WIDE, sizes);
        found.expect("every symbol has a value").steps[0].flops
    };
    assert_eq!(with(&|_| Some(77)), 77.0);
    assert_eq!(with(&|_| None), 512.0);
    assert_eq!(only(&text("N = 9"), "y: i", &WIDE).flops, 9.0);
}

#[test]
fn rows_of_a_matrix_product_beat_dot_products() {
    let compiled = Target {
        c_compiler: true,
        ..WIDE
    };
    for n in [64, 256, 1024] {
        let graph = matmul(n);
        faster(
            &graph,
            &WIDE,
            "C: i, k, j/16, j vectorize",
            "C: i, j, k",
            2.0,
        );
        faster(&graph, &compiled, "C: i, k, j", "C: j, i, k", 2.0);
    }
}

#[test]
fn a_register_tile_beats_none() {
    for n in [64, 256] {
        let graph = matmul(n);
        let tile = "C: j/32, i/8, k, i unroll, j vectorize";
        faster(&graph, &WIDE, tile, "C: i, k, j/16, j vectorize", 1.5);
        faster(&graph, &WIDE, tile, "C: j/16, i, k, j vectorize", 2.0);
        // One that does not fit into the registers is no good.
        let large = "C: j/64, i/32, k, i unroll, j vectorize";
        faster(&graph, &WIDE, tile, large, 1.2);
    }
}

#[test]
fn vectors_along_the_rows_beat_vectors_down_the_columns() {
    let graph = graph("input x: f32[i=48, j=48]\ninput z: f32[i, j]\noutput y = x + z");
    let rows = "y: i, j/16, j vectorize";
    faster(&graph, &WIDE, rows, "y: i, j", 2.0);
    faster(&graph, &WIDE, rows, "y: j, i/16, i vectorize", 1.5);
}

#[test]
fn what_lowering_drops_is_scalar() {
    let graph = graph("input x: f32[i=512, j=512]\noutput y = x + 1");
    // 512 lanes are too many, blocks are no lanes.
    let plain = estimated(&graph, "y: i, j", &WIDE).seconds;
    assert_eq!(estimated(&graph, "y: i, j vectorize", &WIDE).seconds, plain);
    let blocks = estimated(&graph, "y: i, j/16 vectorize, j", &WIDE).seconds;
    let serial = estimated(&graph, "y: i, j/16, j", &WIDE).seconds;
    assert_eq!(blocks, serial);
}

#[test]
fn tiles_beat_rows_for_a_transpose() {
    let graph = graph("input x: f32[i=2048, j=2048]\ny[j, i] = x\noutput y");
    faster(&graph, &WIDE, "y: j/16, i/16, j, i", "y: j, i", 1.5);
    faster(&graph, &WIDE, "y: j/16, i/16, j, i", "y: i, j", 1.5);
}

#[test]
fn fusing_a_consumer_beats_a_second_pass() {
    let graph = graph(
        "input x: f32[i=2048, j=2048]\na = exp(x)\ns = sum[j](a)\noutput y = a + 1\noutput s",
    );
    let fused = "a: i, j/16, j vectorize\ns: i, j\ny: share=1, i, j/16, j vectorize";
    let apart = "a: i, j/16, j vectorize\ns: i, j\ny: share=0, i, j/16, j vectorize";
    faster(&graph, &WIDE, fused, apart, 1.01);
    let pair = self::graph("input x: f32[i=4096, j=1024]\na = x * 2\nb = a + 1\noutput c = b * b");
    let lines =
        |share: u32| format!("a: i, j/16, j vectorize\nc: share={share}, i, j/16, j vectorize");
    faster(&pair, &WIDE, &lines(2), &lines(0), 1.5);
    // A row in between stays in L1: not as good as a register, better than memory.
    faster(&pair, &WIDE, &lines(1), &lines(0), 1.5);
}

#[test]
fn sums_of_columns_run_along_the_rows() {
    let graph = graph("input x: f32[i=2048, j=2048]\noutput s = sum[i](x)");
    faster(&graph, &WIDE, "s: i, j", "s: j, i", 1.5);
    faster(&graph, &WIDE, "s: j/64, i, j vectorize", "s: j, i", 3.0);
}

#[test]
fn a_packed_copy_beats_columns_of_a_large_matrix() {
    // A copy of B in panels of 16 columns, as the product reads it: no power of two between its rows.
    let graph = graph(
        "input A: f32[i=512, k=2048]\ninput B: f32[k, j=2048]\nP = B + 0\noutput C = sum[k](A * P)",
    );
    let tile = "C: j/16, i/4, k, i unroll, j vectorize";
    let lines = |layout: &str| format!("P: share=0, {layout}k, j/16, j vectorize\n{tile}");
    faster(
        &graph,
        &WIDE,
        &lines("layout=[j/16, k, j], "),
        &lines(""),
        1.5,
    );
}

#[test]
fn independent_running_values_hide_the_latency() {
    let graph = graph("input x: f32[i=64, j=64]\noutput s = sum[j](x)");
    let one = only(&graph, "s: i, j", &WIDE);
    assert_eq!(one.bound, BoundBy::Latency);
    faster(&graph, &WIDE, "s: i/8, j, i unroll", "s: i, j", 2.0);
}

#[test]
fn threads_pay_for_large_work_only() {
    let threads = Target { threads: 4, ..WIDE };
    let large = matmul(256);
    faster(&large, &threads, "C: i parallel, k, j", "C: i, k, j", 3.0);
    let small = matmul(8);
    faster(&small, &threads, "C: i, k, j", "C: i parallel, k, j", 3.0);
    // Five rounds on four threads take two turns.
    let uneven = graph("input x: f32[i=5, j=1000000]\noutput y = exp(x)");
    let [one, four] = [WIDE, threads].map(|target| only(&uneven, "y: i parallel, j", &target));
    let speedup = one.seconds / four.seconds;
    assert!((2.4..=2.5).contains(&speedup), "{speedup}");
    // One thread starts nothing.
    let serial = only(&uneven, "y: i, j", &WIDE);
    assert_eq!(one.seconds, serial.seconds);
}

#[test]
fn expensive_operations_weigh_more() {
    let cheap = graph("input x: f32[i=4096]\noutput y = x + 1");
    let dear = graph("input x: f32[i=4096]\noutput y = tanh(x)");
    let [cheap, dear] = [cheap, dear].map(|graph| only(&graph, "y: i", &WIDE).seconds);
    assert!(dear > 5.0 * cheap, "{dear} {cheap}");
}

#[test]
fn computing_again_costs_again() {
    let graph =
        graph("input x: f32[k=64]\ninput w: f32[i=64, k]\ne = exp(x)\noutput y = sum[k](w * e)");
    faster(&graph, &WIDE, "e: k\ny: i, k", "y: i, k", 1.5);
}

#[test]
fn every_kind_of_step_has_an_estimate() {
    let graph = graph(
        "input x: f32[i=40, j=50]\ninput at: i64[n=30]\ninput u: f32[n, j]\n\
         sorted = sort[j](x)\nrunning = scan_sum[j](x)\nbest = argmax[j](x)\n\
         looked = x[at, j] else 0\nleft = x[i, j - 1] else 0\n\
         output sorted\noutput running\noutput best\noutput looked\noutput left",
    );
    let target = WIDE;
    let schedule = loopwright_scheduler::default_schedule(&graph, &target).expect("there is one");
    let tree = LoopTree::new(&graph, &schedule).expect("the default is legal");
    let found = estimate(&graph, &schedule, &tree, &target, &|_| None).expect("sizes are known");
    for step in &found.steps {
        assert!(step.seconds.is_finite() && step.seconds > 0.0, "{step:?}");
        assert!(step.bytes.iter().all(|bytes| bytes.is_finite()), "{step:?}");
        assert!(!step.reason(&graph).is_empty());
    }
    assert_eq!(found.steps.len(), schedule.steps.len());
}

#[test]
fn nothing_takes_no_time() {
    let graph = graph("input x: f32[i=0, j=50]\noutput y = x + 1");
    let found = only(&graph, "y: i, j", &WIDE);
    assert_eq!((found.flops, found.bytes), (0.0, [0.0; 4]));
    assert!(found.seconds.is_finite());
}

#[test]
fn reasons_name_what_holds_a_step_up() {
    let graph = graph("input x: f32[i=2048, j=2048]\ny[j, i] = x\noutput y");
    let columns = only(&graph, "y: j, i", &WIDE).reason(&graph);
    assert!(
        columns.starts_with("33.6 MB stored and loaded: "),
        "{columns}"
    );
    assert!(columns.ends_with("most of it of `x`"), "{columns}");
    let sums = self::graph("input x: f32[i=1000]\noutput s = sum[i](x)");
    let sums = only(&sums, "s: i", &WIDE).reason(&sums);
    assert!(
        sums.ends_with("each running value waits for the one before"),
        "{sums}"
    );
}

#[test]
fn a_large_program_is_estimated_step_by_step() {
    // A chain of 2,000 steps, each of which reads the one before twice: a walk that does not end at steps, or
    // that doubles, would not end.
    let mut text = "input x0: f32[i=64]\n".to_owned();
    for at in 1..2_000 {
        text += &format!("x{at} = x{} + x{}\n", at - 1, at - 1);
    }
    text += "output y = x1999 + x1999";
    let graph = graph(&text);
    let mut lines: String = (1..2_000)
        .map(|at| format!("x{at}: share=0, i\n"))
        .collect();
    lines += "y: share=0, i";
    let schedule = schedule(&graph, &lines);
    let tree = LoopTree::new(&graph, &schedule).expect("the schedule is legal");
    let found = estimate(&graph, &schedule, &tree, &WIDE, &|_| None).expect("sizes are known");
    let flops: f64 = found.steps.iter().map(|step| step.flops).sum();
    assert_eq!(flops, 2_000.0 * 64.0);
}
