//! Which loops of the schedule that is made by itself run on several threads.

use loopwright_graph::{Graph, parse};
use loopwright_looptree::{Annotation, Edit, LoopTree, Schedule, Target, TreeNode, TreeRef};
use loopwright_scheduler::{Order, schedule};
use loopwright_text::Source;

fn machine(threads: u32) -> Target {
    Target {
        vector_bytes: 64,
        vector_registers: 32,
        threads,
        parallel_cycles: 2_000 + 500 * threads,
        ..Target::SCALAR
    }
}

fn graph(text: &str) -> Graph {
    let source = Source::new("p.lw", format!("loopwright program 1\n{text}"));
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    graph.with_stores()
}

fn scheduled(text: &str, threads: u32, order: Order) -> (Graph, LoopTree, Schedule) {
    let made = schedule(graph(text), &machine(threads), order).expect("it has a schedule");
    let plan = made.plan;
    (
        Graph::clone(plan.graph()),
        plan.tree().clone(),
        plan.schedule().clone(),
    )
}

/// For each outermost place, how many rounds threads share; 1 where it is not parallel.
fn shared_rounds(text: &str, threads: u32) -> Vec<i64> {
    let (graph, tree, _) = scheduled(text, threads, Order::Free);
    let rounds = |place: TreeRef| match tree.node(place) {
        TreeNode::Loop { spec, .. } if spec.annotation == Annotation::Parallel => {
            let size = graph
                .dim(spec.dim)
                .size
                .as_const()
                .expect("sizes are known");
            Some((size + spec.step - 1) / spec.step)
        }
        _ => None,
    };
    let roots = tree.roots().iter().map(|root| {
        let (mut all, mut next) = (1, Some(*root));
        while let Some((place, some)) = next.and_then(|place| Some((place, rounds(place)?))) {
            all *= some;
            next = match tree.children(place) {
                [only] => Some(*only),
                _ => None,
            };
        }
        all
    });
    roots.collect()
}

fn product(n: i64) -> String {
    format!("input A: f32[i={n}, k={n}]\ninput B: f32[k, j={n}]\noutput C = sum[k](A * B)\n")
}

const COLUMNS: &str = "input X: f32[i=4096, j=1024]\noutput Y = sum[i](X)\n";

#[test]
fn one_thread_has_no_parallel_loops() {
    let (_, tree, schedule) = scheduled(COLUMNS, 1, Order::Free);
    tree.walk(&mut |place, _| {
        let spec = tree.spec(place);
        assert!(spec.is_none_or(|spec| spec.annotation != Annotation::Parallel));
    });
    assert_eq!(schedule.edits, []);
}

#[test]
fn threads_share_tiles_where_there_are_few_panels() {
    // Two threads have four panels each, which they copy for themselves.
    let [panels] = shared_rounds(&product(512), 2)[..] else {
        panic!("the copies are made where they are read");
    };
    assert_eq!(panels, 8);
    // Sixteen make all copies first.
    let [copies, tiles] = shared_rounds(&product(512), 16)[..] else {
        panic!("the copies are made before");
    };
    assert!(copies >= 64, "{copies}");
    assert!(tiles >= 64, "{tiles}");
}

#[test]
fn every_thread_has_something_to_do() {
    let attention = "input query: f32[head=8, q=512, d=64]\ninput key: f32[head, k=512, d]\n\
        input value: f32[head, k, e=64]\nscores = sum[d](query * key) / 8\n\
        weights = exp(scores - max[k](scores))\nshares = weights / sum[k](weights)\n\
        output Y = sum[k](shares * value)\n";
    let convolution = "dim y = 14, x = 14\ninput W: f32[o=256, c=256, ky=3, kx=3]\n\
        input X: f32[c, iy=16, ix=16]\nY[o, y, x] = sum[c, ky, kx](W * X[c, y + ky, x + kx])\n\
        output Y\n";
    let columns = COLUMNS.to_owned();
    for text in [
        attention.to_owned(),
        convolution.to_owned(),
        columns,
        product(256),
    ] {
        for threads in [2, 3, 16] {
            let shared = shared_rounds(&text, threads);
            let most = shared.iter().copied().max().unwrap_or(0);
            assert!(
                most >= i64::from(threads),
                "{threads} threads share {shared:?} of\n{text}"
            );
        }
    }
}

#[test]
fn what_takes_a_microsecond_stays_on_one_thread() {
    for threads in [2, 16] {
        assert_eq!(shared_rounds(&product(16), threads), [1]);
        assert_eq!(
            shared_rounds("input x: f32[i=1000]\noutput y = x + 1\n", threads),
            [1]
        );
    }
}

/// A sort works on a row in memory of which there is one for all threads.
#[test]
fn sorted_rows_stay_on_one_thread() {
    let text =
        "input x: f32[i=4096, j=4096]\noutput up = sort[j](x)\noutput order = argsort[j](x)\n";
    let (_, _, schedule) = scheduled(text, 16, Order::Free);
    let mut loops = schedule.steps.iter().flat_map(|step| &step.loops);
    assert!(loops.all(|spec| spec.annotation == Annotation::Serial));
}

#[test]
fn sums_of_columns_have_the_same_parts_for_all_numbers_of_threads() {
    let edits = |threads| scheduled(COLUMNS, threads, Order::Free).2.edits;
    let [Edit::Stage { count, .. }] = &edits(2)[..] else {
        panic!("the rows are in blocks: {:?}", edits(2));
    };
    assert_eq!(*count, 4096 / 32);
    for threads in [3, 8, 16, 64] {
        assert_eq!(edits(threads), edits(2));
    }
    assert_eq!(shared_rounds(COLUMNS, 16)[0], 32);
}

#[test]
fn sums_that_keep_their_order_are_shared_by_columns() {
    let (_, tree, schedule) = scheduled(COLUMNS, 16, Order::Kept);
    assert_eq!(schedule.edits, []);
    let spec = tree.spec(tree.roots()[0]).expect("a loop");
    assert_eq!((spec.step, spec.annotation), (256, Annotation::Parallel));
}

#[test]
fn a_sum_that_threads_can_share_as_it_is_has_no_parts() {
    for text in [
        // Many rows, each with a sum.
        "input X: f32[i=4096, j=1024]\noutput Y = sum[j](X)\n",
        // Columns enough for everyone.
        "input X: f32[i=64, j=65536]\noutput Y = sum[i](X)\n",
        // Little to do.
        "input X: f32[i=64, j=64]\noutput Y = sum[i](X)\n",
    ] {
        let in_blocks = |edit: &Edit| matches!(edit, Edit::Stage { keep, .. } if *keep == loopwright_graph::Keep::Blocks);
        let edits = scheduled(text, 16, Order::Free).2.edits;
        assert!(!edits.iter().any(in_blocks), "{text}: {edits:?}");
    }
}
