//! Deriving trees, walking them, and what follows from them.

use loopwright_graph::{Graph, parse};
use loopwright_looptree::{
    Annotation, LoopTree, Schedule, ScheduleError, Storage, Stride, Target, TreeNode, accesses,
    allocations, bytes_moved, costs, flops, parse_schedule, parse_tree, print_schedule, print_tree,
};
use loopwright_scheduler::default_schedule;
use loopwright_symbolic::Expr;
use loopwright_text::Source;

const MATMUL: &str = "
loopwright program 1
size N
input A: f32[i=12, k=20]
input B: f32[k, j=N]
input bias: f32[j]
C = sum[k](A * B)
output D = max(C + bias, 0)
";

fn graph(text: &str) -> Graph {
    let source = Source::new("test.lw", text);
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    graph.with_stores()
}

fn schedule(graph: &Graph, lines: &str) -> Schedule {
    let source = Source::new("test", format!("loopwright schedule 1\n{lines}\n"));
    parse_schedule(&source, graph).unwrap_or_else(|error| panic!("{}", error.render(&source)))
}

fn tree(graph: &Graph, lines: &str) -> Result<LoopTree, ScheduleError> {
    LoopTree::new(graph, &schedule(graph, lines))
}

fn body(text: &str) -> &str {
    text.split_once('\n').unwrap().1
}

#[test]
fn equal_outer_loops_are_shared() {
    let graph = graph(MATMUL);
    let fused = tree(&graph, "C: i, j, k\nD: i, j").unwrap();
    let expected = "for i {\n  for j {\n    for k {\n      C\n    }\n    D\n  }\n}\n";
    assert_eq!(body(&print_tree(&graph, &fused)), expected);
    let apart = tree(&graph, "C: i, j, k\nD: share=0, i, j").unwrap();
    assert_eq!(apart.roots().len(), 2);
    let half = tree(&graph, "C: i, j, k\nD: share=1, i, j").unwrap();
    assert_eq!(half.roots().len(), 1);
    assert_eq!(half.children(half.roots()[0]).len(), 2);
}

#[test]
fn a_reader_never_shares_the_loop_that_folds() {
    let graph =
        graph("loopwright program 1\ninput x: f32[i=4, k=5]\ns = sum[k](x)\noutput y = x / s\n");
    let tree = tree(&graph, "s: k, i\ny: k, i").unwrap();
    assert_eq!(tree.roots().len(), 2, "{}", print_tree(&graph, &tree));
}

#[test]
fn a_reader_through_a_shifted_view_does_not_share() {
    let graph = graph(
        "loopwright program 1\ninput x: f32[i=6]\na = exp(x)\nb[i] = a[i - 1] else 0\noutput y = a + b\n",
    );
    let tree = tree(&graph, "a: i\ny: i").unwrap();
    assert_eq!(tree.roots().len(), 2, "{}", print_tree(&graph, &tree));
}

#[test]
fn walking_visits_every_place_once_in_order() {
    let graph = graph(MATMUL);
    let tree = tree(&graph, "C: i/4, j, k, i\nD: i/4, j, i").unwrap();
    let mut seen = Vec::new();
    tree.walk(&mut |place, depth| {
        assert_eq!(tree.ancestors(place).len(), depth);
        for child in tree.children(place) {
            assert_eq!(tree.parent(*child), Some(place));
        }
        seen.push(place);
    });
    let mut sorted = seen.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), tree.len());
    assert_eq!(seen, sorted, "outer before inner, first to last");
}

#[test]
fn find_and_lowest_common_ancestor() {
    let graph = graph(MATMUL);
    let tree = tree(&graph, "C: i, j, k\nD: i, j").unwrap();
    let c = tree.find(graph.find("C").unwrap()).unwrap();
    let d = tree.find(graph.outputs()[0].node).unwrap();
    let common = tree.lowest_common_ancestor(c, d).unwrap();
    assert_eq!(graph.dim(tree.spec(common).unwrap().dim).name, "j");
    assert_eq!(tree.lowest_common_ancestor(c, c), tree.parent(c));
    assert_eq!(tree.find(graph.find("A").unwrap()), None);
    let k = tree.parent(c).unwrap();
    assert!(!tree.trivially_parallel(&graph, k));
    assert!(tree.trivially_parallel(&graph, common));
}

#[test]
fn allocations_shrink_to_the_scope_that_needs_them() {
    let graph = graph(MATMUL);
    let held = |lines: &str| {
        let schedule = schedule(&graph, lines);
        let tree = LoopTree::new(&graph, &schedule).unwrap();
        let found = allocations(&graph, &schedule, &tree).unwrap();
        let c = &found[&graph.find("C").unwrap()];
        (c.extents.to_vec(), c.storage)
    };
    let n = graph.dim(graph.find_dim("j").unwrap()).size.clone();
    let constant = Expr::constant;
    assert_eq!(
        held("C: i, j, k\nD: i, j"),
        (vec![constant(1), constant(1)], Storage::Private)
    );
    assert_eq!(
        held("C: i, k, j\nD: i, j"),
        (vec![constant(1), n.clone()], Storage::Scratch)
    );
    assert_eq!(
        held("C: k, i, j\nD: i, j"),
        (vec![constant(12), n], Storage::Scratch)
    );
    assert_eq!(
        held("C: i/4, j/8, k, i, j\nD: i/4, j/8, i, j"),
        (vec![constant(4), constant(8)], Storage::Private)
    );
}

#[test]
fn what_is_not_scheduled_allocates_nothing() {
    let graph = graph(
        "loopwright program 1\ninput x: f32[i=8]\np = x[j - 2] else 1\ndim j = 12\noutput y = p * 2\n",
    );
    let schedule = default_schedule(&graph, &Target::SCALAR).unwrap();
    let tree = LoopTree::new(&graph, &schedule).unwrap();
    let found = allocations(&graph, &schedule, &tree).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[&graph.outputs()[0].node].storage, Storage::Output(0));
}

#[test]
fn threads_do_not_share_scratch_memory() {
    let graph = graph(
        "loopwright program 1\ninput x: f32[i=4, j=9000]\na = exp(x)\ns = sum[j](a)\noutput y = a / s\n",
    );
    let extents = |lines: &str| {
        let schedule = schedule(&graph, lines);
        let tree = LoopTree::new(&graph, &schedule).unwrap();
        let found = allocations(&graph, &schedule, &tree).unwrap();
        found[&graph.find("a").unwrap()].extents.to_vec()
    };
    let serial = extents("a: i, j\ns: i, j\ny: i, j");
    assert_eq!(serial, [Expr::constant(1), Expr::constant(9000)]);
    let parallel = extents("a: i parallel, j\ns: i parallel, j\ny: i parallel, j");
    assert_eq!(parallel, [Expr::constant(4), Expr::constant(9000)]);
}

#[test]
fn long_programs_do_not_fill_the_stack() {
    // 60 running sums of 8 KiB each, forwards and backwards: none shares a loop with the next.
    let mut text = "loopwright program 1\ninput s0: f32[i=2048]\n".to_owned();
    for at in 1..=60 {
        let direction = if at % 2 == 0 { ", reverse" } else { "" };
        text += &format!("s{at} = scan_sum[i{direction}](s{})\n", at - 1);
    }
    text += "output y = s60 * 2\n";
    let graph = graph(&text);
    let schedule = default_schedule(&graph, &Target::SCALAR).unwrap();
    let tree = LoopTree::new(&graph, &schedule).unwrap();
    let found = allocations(&graph, &schedule, &tree).unwrap();
    let private = found
        .values()
        .filter(|found| found.storage == Storage::Private);
    let bytes = private.map(|found| found.elements().unwrap().as_const().unwrap() * 4);
    let bytes: i64 = bytes.sum();
    assert!(bytes <= 256 << 10, "{bytes}");
}

#[test]
fn strides_intercepts_and_bounds_of_an_access() {
    let graph = graph(
        "loopwright program 1\n\
         input X: f32[a=20, b=30]\n\
         dim y = 8, ky = 3, x = 10\n\
         W[y, ky, x] = X[y*2 + ky, x*3 + 1]\n\
         output S = sum[ky](W)\n",
    );
    let node = graph.outputs()[0].node;
    let found = accesses(&graph, node, &|n| n == node).unwrap();
    assert_eq!(found.len(), 1);
    let access = &found[0];
    let step = |dim: &str| {
        let symbol = graph.dim(graph.find_dim(dim).unwrap()).index;
        access
            .step(&graph, symbol)
            .unwrap()
            .unwrap()
            .as_const()
            .unwrap()
    };
    assert_eq!((step("y"), step("ky"), step("x")), (60, 30, 3));
    assert_eq!(
        access.intercept(&graph).unwrap().unwrap().as_const(),
        Some(1)
    );
    let ranges = access.ranges(&graph);
    assert_eq!((ranges[0].lo, ranges[0].hi), (Some(0), Some(16)));
    assert_eq!((ranges[1].lo, ranges[1].hi), (Some(1), Some(28)));
    let symbol = graph.dim(graph.find_dim("x").unwrap()).index;
    assert_eq!(access.stride(symbol), Stride::Other);
}

#[test]
fn costs_of_a_matrix_product() {
    let graph = graph(MATMUL);
    let schedule = schedule(&graph, "C: i, j, k\nD: i, j");
    let tree = LoopTree::new(&graph, &schedule).unwrap();
    let found = allocations(&graph, &schedule, &tree).unwrap();
    let costs = costs(&graph, &schedule, &found).unwrap();
    let at = |expr: Expr| expr.evaluate(&|_| Some(10)).unwrap();
    // C: a multiplication and an addition each; D: an addition and a maximum each.
    assert_eq!(
        at(flops(&graph, &costs).unwrap()),
        2 * 12 * 20 * 10 + 2 * 12 * 10
    );
    // A, B and bias are read once, D is written once; C stays in a register.
    let elements = 12 * 20 + 20 * 10 + 10 + 12 * 10;
    assert_eq!(at(bytes_moved(&graph, &costs).unwrap()), 4 * elements);
}

#[test]
fn text_forms_round_trip() {
    let graph = graph(MATMUL);
    let target = Target {
        vector_bytes: 32,
        vector_registers: 16,
        ..Target::SCALAR
    };
    let lines =
        "C: i/5 parallel, j, k/7, k, i unroll\nD: share=1, i/5 parallel, i, j/3, j vectorize";
    let by_hand = schedule(&graph, lines);
    assert_eq!(body(&print_schedule(&graph, &by_hand)).trim_end(), lines);
    let schedule = default_schedule(&graph, &target).unwrap();
    let text = print_schedule(&graph, &schedule);
    assert_eq!(
        parse_schedule(&Source::new("s", text), &graph).unwrap(),
        schedule
    );
    let tree = LoopTree::new(&graph, &schedule).unwrap();
    let text = print_tree(&graph, &tree);
    assert_eq!(parse_tree(&Source::new("t", text), &graph).unwrap(), tree);
    let vectorized = |tree: &LoopTree| {
        let mut count = 0;
        tree.walk(&mut |place, _| {
            if let TreeNode::Loop { spec, .. } = tree.node(place) {
                count += usize::from(spec.annotation == Annotation::Vectorize);
            }
        });
        count
    };
    assert_eq!(vectorized(&tree), 2);
}

#[test]
fn schedules_that_do_not_fit_say_why() {
    let graph = graph(MATMUL);
    let complaint = |lines: &str| tree(&graph, lines).unwrap_err().to_string();
    for (lines, expected) in [
        (
            "C: i, j, k\nC: i, j, k\nD: i, j",
            "`C` stands twice in the schedule",
        ),
        (
            "C: i, j\nD: i, j",
            "`C` needs a last loop over `k` with step 1",
        ),
        (
            "C: i, j, k\nD: i, k parallel, j",
            "`D` cannot run in a loop over `k`, which it does not have: several iterations would write the result at the same time",
        ),
        (
            "C: i, j, k parallel\nD: i, j",
            "the loop of `C` over `k` cannot be parallel: each iteration needs the one before",
        ),
        (
            "C: i, i/4, j, k\nD: i, j",
            "the loops of `C` over `i` must have falling steps, outermost first",
        ),
        (
            "D: i, j\nC: i, j, k",
            "`C` is computed after `D`, which reads it",
        ),
        (
            "D: i, j",
            "`C` is not in the schedule, but it cannot be computed where it is read",
        ),
        (
            "C: i, j, k",
            "`D` is not in the schedule, but it is a result of the program",
        ),
        (
            "A: i, k\nC: i, j, k\nD: i, j",
            "`A` is given from outside and has no loops; remove it from the schedule",
        ),
    ] {
        let got = complaint(lines);
        assert_eq!(got, expected, "{lines}");
    }
    let source = Source::new("s", "loopwright schedule 1\nC: i/0, j, k\n");
    let error = parse_schedule(&source, &graph).unwrap_err().render(&source);
    assert!(error.contains("a loop's step is at least 1"), "{error}");
    let source = Source::new("s", "loopwright schedule 1\nC: i sideways\n");
    let error = parse_schedule(&source, &graph).unwrap_err().render(&source);
    assert!(
        error.contains(
            "a loop is serial, parallel, vectorize, unroll, block, thread, warp, tile or prefetch"
        ),
        "{error}"
    );
}

#[test]
fn states_are_not_overwritten_before_they_are_read() {
    let graph = graph(
        "loopwright program 1\nstate a: f32[i=4]\nstate b: f32[i]\nupdate a = b\nupdate b = a\n",
    );
    let schedule = default_schedule(&graph, &Target::SCALAR).unwrap();
    LoopTree::new(&graph, &schedule).unwrap();
    let mut late = schedule.clone();
    // Dropping the copies that keep the old values makes one update see the other's result.
    late.steps.retain(|step| {
        graph
            .updates()
            .iter()
            .any(|update| update.value == step.node)
    });
    let error = LoopTree::new(&graph, &late).unwrap_err().to_string();
    assert!(error.contains("is overwritten before"), "{error}");
}
