//! Changing schedules: what each mutation makes, what is refused and why, and where cursors go.

use loopwright_graph::{Graph, NodeId, parse};
use loopwright_looptree::{
    Annotation, Cursor, LoopName, LoopTree, Mutated, Mutation, Schedule, for_sharers, legal,
    mutate, parse_mutation, parse_schedule, print_mutation, print_schedule, print_tree,
    reassociated,
};
use loopwright_text::Source;

const PRODUCT: &str = "
loopwright program 1
size N
input A: f32[i=100, k=20]
input B: f32[k, j=N]
input bias: f32[j]
C = sum[k](A * B)
E = C + bias
output D = max(E, 0)
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

fn mutation(graph: &Graph, line: &str) -> Mutation {
    let source = Source::new("test", line);
    parse_mutation(&source, graph).unwrap_or_else(|error| panic!("{}", error.render(&source)))
}

fn lines(graph: &Graph, schedule: &Schedule) -> String {
    let text = print_schedule(graph, schedule);
    text.split_once('\n').unwrap().1.trim_end().to_owned()
}

fn change(graph: &Graph, before: &str, line: &str) -> Mutated {
    let schedule = schedule(graph, before);
    let mutated = mutate(graph, &schedule, &mutation(graph, line));
    mutated.unwrap_or_else(|error| panic!("`{line}`: {error}"))
}

/// The lines of the schedule after a change.
fn after(graph: &Graph, before: &str, line: &str) -> String {
    lines(graph, &change(graph, before, line).schedule)
}

/// Why a change is refused.
fn refused(graph: &Graph, before: &str, line: &str) -> String {
    let schedule = schedule(graph, before);
    match mutate(graph, &schedule, &mutation(graph, line)) {
        Ok(mutated) => panic!("`{line}` gives\n{}", lines(graph, &mutated.schedule)),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_split_makes_an_outer_and_an_inner_loop() {
    let graph = graph(PRODUCT);
    let before = "C: i, j, k\nD: i, j";
    assert_eq!(
        after(&graph, before, "split C i 8"),
        "C: i/8, i, j, k\nD: i, j"
    );
    // 8 does not divide N, of which nothing is known.
    assert_eq!(
        after(&graph, before, "split D j 8"),
        "C: i, j, k\nD: i, j/8, j"
    );
    let blocked = "C: i/8, j, k, i\nD: i, j";
    let twice = after(&graph, blocked, "split C i/8 4");
    assert_eq!(twice, "C: i/32, i/8, j, k, i\nD: i, j");
    let inner = after(&graph, blocked, "split C i 3");
    assert_eq!(inner, "C: i/8, j, k, i/3, i\nD: i, j");
}

#[test]
fn nested_tails_come_of_splits() {
    let graph = graph("loopwright program 1\ninput x: f32[i=405]\noutput y = x + 1\n");
    let mut now = schedule(&graph, "y: i");
    for line in ["split y i 39", "split y i 9", "split y i 2"] {
        now = mutate(&graph, &now, &mutation(&graph, line))
            .unwrap()
            .schedule;
    }
    assert_eq!(lines(&graph, &now), "y: i/39, i/9, i/2, i");
}

#[test]
fn a_split_gives_threads_the_outer_and_lanes_the_inner_loop() {
    let graph = graph(PRODUCT);
    let before = "C: i parallel, k, j vectorize\nD: i, j unroll";
    let threads = after(&graph, before, "split C i 4");
    assert!(
        threads.starts_with("C: i/4 parallel, i, k, j vectorize"),
        "{threads}"
    );
    let lanes = after(&graph, before, "split C j 4");
    assert!(
        lanes.starts_with("C: i parallel, k, j/4, j vectorize"),
        "{lanes}"
    );
    let copies = after(&graph, before, "split D j 4");
    assert!(copies.ends_with("D: i, j/4, j unroll"), "{copies}");
    for (split, merge) in [
        ("split C i 4", "merge C i/4"),
        ("split C j 4", "merge C j/4"),
        ("split D j 4", "merge D j/4"),
    ] {
        assert_eq!(
            after(&graph, &after(&graph, before, split), merge),
            before,
            "{merge} undoes {split}"
        );
    }
}

#[test]
fn splits_that_make_no_two_loops_are_refused() {
    let graph = graph(PRODUCT);
    let before = "C: i/8, j, k, i\nD: i, j";
    for (line, expected) in [
        (
            "split C k 1",
            "the loop `k` of `C` cannot be split by 1: the inner loop needs two rounds or more, else there is only one loop",
        ),
        (
            "split C k -4",
            "the loop `k` of `C` cannot be split by -4: the inner loop needs two rounds or more, else there is only one loop",
        ),
        (
            "split C k 20",
            "the loop `k` of `C` cannot be split by 20: it runs 20 times, all of them in one round of the outer loop; take 2 to 19",
        ),
        (
            "split C i 8",
            "the loop `i` of `C` cannot be split by 8: it runs 8 times, all of them in one round of the outer loop; take 2 to 7",
        ),
        (
            "split C i/8 9223372036854775807",
            "the loop `i/8` of `C` cannot be split by 9223372036854775807: the outer loop's step does not fit 64 bits",
        ),
        (
            "split C i/4 2",
            "`C` has no loop `i/4`; its loops: i/8, j, k, i",
        ),
        (
            "split E i 2",
            "`E` is not a step of the schedule; `store E` makes an inline node one",
        ),
    ] {
        assert_eq!(refused(&graph, before, line), expected);
    }
    let small = self::graph("loopwright program 1\ninput x: f32[i=2]\noutput y = x + 1\n");
    assert_eq!(
        refused(&small, "y: i", "split y i 2"),
        "the loop `i` of `y` cannot be split by 2: it runs 2 times, which is too few for two loops"
    );
}

#[test]
fn merging_joins_with_the_next_loop_over_the_dimension() {
    let graph = graph(PRODUCT);
    let before = "C: i/32, j, i/8, k, i\nD: i, j";
    assert_eq!(
        after(&graph, before, "merge C i/32"),
        "C: i/8, j, k, i\nD: i, j"
    );
    assert_eq!(
        after(&graph, before, "merge C i/8"),
        "C: i/32, j, i, k\nD: i, j"
    );
    assert_eq!(
        refused(&graph, before, "merge C i"),
        "`C` has no other loop over `i` inside `i` that it could be merged with"
    );
}

#[test]
fn loops_change_places_but_for_those_of_one_dimension() {
    let graph = graph(PRODUCT);
    let before = "C: i/8, i, j, k\nD: i, j";
    assert_eq!(
        after(&graph, before, "swap C i j"),
        "C: i/8, j, i, k\nD: i, j"
    );
    assert_eq!(
        refused(&graph, before, "swap C i/8 i"),
        "the loop `i` of `C` cannot come before `i/8`: the inner one runs over a block of the outer"
    );
    assert_eq!(
        refused(&graph, before, "swap C i/8 k"),
        "the loop `k` of `C` is not the one right inside `i/8`; `reorder` moves loops further"
    );
    assert_eq!(
        after(&graph, before, "reorder C k, i/8, j, i"),
        "C: k, i/8, j, i\nD: i, j"
    );
    assert_eq!(
        refused(&graph, before, "reorder C k, i, j, i/8"),
        "the loop `i` of `C` cannot come before `i/8`: the inner one runs over a block of the outer"
    );
    assert_eq!(
        refused(&graph, before, "reorder C k, i, j"),
        "`k, i, j` does not name each loop of `C` once; its loops: i/8, i, j, k"
    );
    assert_eq!(
        refused(&graph, before, "reorder C i/8, i, j, k"),
        "`C` stays as it is: its loops are in that order"
    );
}

#[test]
fn a_tail_then_a_swap() {
    let graph = graph(PRODUCT);
    let split = after(&graph, "C: i, j, k\nD: i, j", "split C i 7");
    let swapped = after(&graph, &split, "swap C i j");
    assert_eq!(swapped, "C: i/7, j, i, k\nD: i, j");
}

#[test]
fn fusing_raises_and_lowers_what_is_shared() {
    let graph = graph(PRODUCT);
    let full = "C: i, j, k\nD: i, j";
    let half = after(&graph, full, "unfuse D");
    assert_eq!(half, "C: i, j, k\nD: share=1, i, j");
    let apart = after(&graph, &half, "unfuse D");
    assert_eq!(apart, "C: i, j, k\nD: share=0, i, j");
    assert_eq!(
        refused(&graph, &apart, "unfuse D"),
        "`D` shares no loop with the step before it"
    );
    assert_eq!(after(&graph, &apart, "fuse D"), half);
    let again = change(&graph, &half, "fuse D").schedule;
    let tree = |schedule| print_tree(&graph, &LoopTree::new(&graph, schedule).unwrap());
    assert_eq!(tree(&again), tree(&schedule(&graph, full)));
}

#[test]
fn what_stands_against_fusing_is_named() {
    let graph = graph(PRODUCT);
    for (before, line, expected) in [
        (
            "C: i, j, k\nD: i, j",
            "fuse D",
            "`D` cannot share a further loop: all its loops are shared with `C`",
        ),
        (
            "C: i, j, k\nD: i, j",
            "fuse C",
            "`C` cannot share a further loop: it is the first step",
        ),
        (
            "C: i, k, j\nD: i, j",
            "fuse D",
            "`D` cannot share a further loop: its next loop is `j` (serial), and that of `C`, the step before it, is `k` (serial); make them equal first",
        ),
        (
            "C: i parallel, j, k\nD: i, j",
            "fuse D",
            "`D` cannot share a further loop: its next loop is `i` (serial), and that of `C`, the step before it, is `i` (parallel); make them equal first",
        ),
        (
            "C: i, j, k\nD: delegate=interp, i, j",
            "fuse D",
            "`D` cannot share a further loop: `C`, the step before it, runs on another backend",
        ),
    ] {
        assert_eq!(refused(&graph, before, line), expected);
    }
    let softmax = self::graph(
        "loopwright program 1\ninput x: f32[i=4, k=5]\ns = sum[k](x)\noutput y = x / s\n",
    );
    assert_eq!(
        refused(&softmax, "s: k, i\ny: k, i", "fuse y"),
        "`y` cannot share the loop `k` with `s`: it reads `s`, whose values are final only after the loop"
    );
    let shifted = self::graph(
        "loopwright program 1\ninput x: f32[i=6]\na = exp(x)\nb[i] = a[i - 1] else 0\noutput y = a + b\n",
    );
    assert_eq!(
        refused(&shifted, "a: i\ny: i", "fuse y"),
        "`y` cannot share the loop `i` with `a`: it reads `a` at other places of `i` than its own"
    );
    let state = self::graph(
        "loopwright program 1\nstate x: f32[i=8]\nleft = x[i - 1] else 0\nnext = x + left\nupdate x = next\n",
    );
    assert_eq!(
        refused(&state, "next: i\n%3: i", "fuse %3"),
        "`%3` cannot share the loop `i` with `next`: it overwrites state `x`, which `next` reads at other places of `i`"
    );
}

#[test]
fn steps_move_as_far_as_dependences_allow() {
    let graph = graph(
        "loopwright program 1\ninput x: f32[i=6]\na = exp(x)\nb = sin(x)\noutput c = a * b\n",
    );
    let before = "a: i\nb: i\nc: i";
    assert_eq!(after(&graph, before, "move b before a"), "b: i\na: i\nc: i");
    assert_eq!(after(&graph, before, "move a after b"), "b: i\na: i\nc: i");
    assert_eq!(
        refused(&graph, before, "move c before b"),
        "`move c before b` is refused: `b` is computed after `c`, which reads it"
    );
    assert_eq!(
        refused(&graph, before, "move a after c"),
        "`move a after c` is refused: `a` is computed after `c`, which reads it"
    );
    assert_eq!(
        refused(&graph, before, "move b after a"),
        "`b` stays as it is: it stands there already"
    );
    let state = self::graph(
        "loopwright program 1\nstate x: f32[i=8]\nleft = x[i - 1] else 0\nnext = x + left\nupdate x = next\noutput y = left + 1\n",
    );
    let write = state.node_name(state.updates()[0].value);
    let before = format!("next: i\ny: i\n{write}: i");
    let line = format!("move {write} before y");
    let error = refused(&state, &before, &line);
    let expected = "is refused: state `x` is overwritten before `y` has read its old value";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn nodes_become_inline_and_steps_again() {
    let graph = graph(PRODUCT);
    let stored = "C: i, j, k\nE: i, j\nD: i, j";
    let inline = after(&graph, stored, "inline E");
    assert_eq!(inline, "C: i, j, k\nD: i, j");
    assert_eq!(after(&graph, &inline, "store E"), stored);
    let with_loops = after(&graph, &inline, "store E: j/8 parallel, i, j unroll");
    assert_eq!(
        with_loops,
        "C: i, j, k\nE: j/8 parallel, i, j unroll\nD: i, j"
    );
    let tiled = after(&graph, "C: i, j, k\nD: i/8, j, i", "store E");
    assert_eq!(tiled, "C: i, j, k\nE: i/8, j, i\nD: i/8, j, i");
    for (line, expected) in [
        (
            "inline C",
            "`C` cannot be inline: one element of it takes many others, so it is computed once and kept",
        ),
        (
            "inline D",
            "`D` cannot be inline: it is a result of the program, which has its memory",
        ),
        ("store C", "`C` cannot become a step: it is one already"),
        (
            "store A",
            "`A` cannot become a step: it is given from outside and in memory already",
        ),
        (
            "store E: i",
            "`store E: i` is refused: `E` needs a last loop over `j` with step 1",
        ),
    ] {
        assert_eq!(refused(&graph, &inline, line), expected);
    }
}

#[test]
fn a_state_that_is_overwritten_in_between_keeps_its_reader_stored() {
    let graph = graph(
        "loopwright program 1\nstate x: f32[i=8]\nold = x * 2\nupdate x = x + 1\noutput y = old + 1\n",
    );
    let update = graph.node_name(graph.updates()[0].value);
    let before = format!("old: i\n{update}: i\ny: i");
    let error = refused(&graph, &before, "inline old");
    assert!(
        error.starts_with("`inline old` is refused: state `x` is overwritten before `y`"),
        "{error}"
    );
}

#[test]
fn annotations_are_set_where_they_are_legal() {
    let graph = graph(PRODUCT);
    let before = "C: i, j, k\nD: i, j";
    assert_eq!(
        after(&graph, before, "annotate C i parallel"),
        "C: i parallel, j, k\nD: i, j"
    );
    assert_eq!(
        after(&graph, before, "annotate C k unroll"),
        "C: i, j, k unroll\nD: i, j"
    );
    assert_eq!(
        after(
            &graph,
            "C: i, j vectorize, k\nD: i, j",
            "annotate C j serial"
        ),
        before
    );
    assert_eq!(
        refused(&graph, before, "annotate C k parallel"),
        "`annotate C k parallel` is refused: the loop of `C` over `k` cannot be parallel: each iteration needs the one before"
    );
    assert_eq!(
        refused(&graph, before, "annotate C k serial"),
        "`C` stays as it is: its loop `k` is serial already"
    );
}

#[test]
fn steps_are_delegated_and_taken_back() {
    let graph = graph(PRODUCT);
    let before = "C: i, j, k\nD: i, j";
    let handed = after(&graph, before, "delegate D \"my-backend\"");
    assert_eq!(handed, "C: i, j, k\nD: delegate=\"my-backend\", i, j");
    assert_eq!(after(&graph, &handed, "undelegate D"), before);
    assert_eq!(
        refused(&graph, before, "undelegate D"),
        "`D` stays as it is: it is not delegated"
    );
    assert_eq!(
        refused(&graph, &handed, "delegate D \"my-backend\""),
        "`D` stays as it is: it is delegated to `my-backend` already"
    );
}

#[test]
fn a_shared_loop_changes_for_all_who_share_it() {
    let graph = graph(PRODUCT);
    let mut now = schedule(&graph, "C: i, j, k\nD: i, j");
    let split = mutation(&graph, "split D i 8");
    let all = for_sharers(&graph, &now, &split).unwrap();
    let texts: Vec<String> = all
        .iter()
        .map(|each| print_mutation(&graph, each))
        .collect();
    assert_eq!(texts, ["split C i 8", "split D i 8"]);
    for each in &all {
        now = mutate(&graph, &now, each).unwrap().schedule;
    }
    assert_eq!(lines(&graph, &now), "C: i/8, i, j, k\nD: i/8, i, j");
    assert_eq!(LoopTree::new(&graph, &now).unwrap().roots().len(), 1);
    let own = mutation(&graph, "annotate C k unroll");
    assert_eq!(for_sharers(&graph, &now, &own), Ok(vec![own.clone()]));
}

#[test]
fn what_may_be_shared_is_split_and_merged_with_the_loops() {
    let graph = graph(PRODUCT);
    let before = "C: i, j, k\nD: share=1, i, j";
    let outer = after(&graph, before, "split D i 8");
    assert_eq!(outer, "C: i, j, k\nD: share=2, i/8, i, j");
    assert_eq!(after(&graph, &outer, "merge D i/8"), before);
    let inner = after(&graph, before, "split D j 8");
    assert_eq!(inner, "C: i, j, k\nD: share=1, i, j/8, j");
    assert_eq!(after(&graph, &inner, "merge D j/8"), before);
    let mut now = schedule(&graph, before);
    for each in for_sharers(&graph, &now, &mutation(&graph, "split C i 8")).unwrap() {
        now = mutate(&graph, &now, &each).unwrap().schedule;
    }
    assert_eq!(
        print_tree(&graph, &LoopTree::new(&graph, &now).unwrap()),
        "loopwright tree 1\nfor i/8 {\n  for i {\n    for j {\n      for k {\n        C\n      }\n    }\n    for j {\n      D\n    }\n  }\n}\n"
    );
}

#[test]
fn another_order_of_folding_floats_is_said() {
    let graph = graph(
        "loopwright program 1\ninput x: f32[i=4, k=20, l=30]\ninput n: i32[k, l]\ns = sum[k, l](x)\nm = sum[k, l](n)\noutput y = s + f32(m)\n",
    );
    let before = "s: i, k, l\nm: k, l\ny: i";
    let says = |before: &str, line: &str| {
        let mutated = change(&graph, before, line);
        let nodes = reassociated(&graph, &mutated.schedule);
        let names: Vec<String> = nodes.iter().map(|node| graph.node_name(*node)).collect();
        (mutated.reassociates, names.join(", "))
    };
    let other = (true, "s".to_owned());
    let same = (false, String::new());
    assert_eq!(says(before, "swap s k l"), other);
    assert_eq!(says(before, "swap s i k"), same);
    assert_eq!(says(before, "swap m k l"), same);
    // A block and the rest of it: the same elements one after the other.
    assert_eq!(says(before, "split s k 8"), same);
    let blocked = "s: i, k/8, k, l\nm: k, l\ny: i";
    assert_eq!(says(blocked, "swap s k l"), other);
    // Back in the program's order: another one than before.
    assert_eq!(
        says("s: i, l, k\nm: k, l\ny: i", "swap s l k"),
        (true, String::new())
    );
    assert_eq!(
        says("s: i, l, k\nm: k, l\ny: i", "split s i 2"),
        (false, "s".to_owned())
    );
}

#[test]
fn cursors_follow_their_loops() {
    let graph = graph(PRODUCT);
    let node = |name: &str| graph.find(name).unwrap();
    let before = "C: i, j, k\nE: i, j\nD: i, j";
    let depths = |before: &str, line: &str, name: &str| {
        let mutated = change(&graph, before, line);
        let loops = schedule(&graph, before)
            .step(node(name))
            .unwrap()
            .loops
            .len();
        let follow = |depth| {
            let node = node(name);
            let found = mutated.follow(Cursor { node, depth })?;
            assert_eq!(found.node, node);
            Some(found.depth)
        };
        assert_eq!(follow(loops + 1), None, "there is no such place");
        (0..=loops).map(follow).collect::<Vec<_>>()
    };
    let all = |depths: &[usize]| depths.iter().copied().map(Some).collect::<Vec<_>>();
    assert_eq!(depths(before, "split C j 4", "C"), all(&[0, 1, 3, 4]));
    assert_eq!(depths(before, "split C j 4", "D"), all(&[0, 1, 2]));
    assert_eq!(depths(before, "swap C j k", "C"), all(&[0, 2, 1, 3]));
    assert_eq!(depths(before, "reorder C k, i, j", "C"), all(&[1, 2, 0, 3]));
    let blocked = "C: i/8, j, i, k\nD: i, j";
    assert_eq!(depths(blocked, "merge C i/8", "C"), all(&[0, 1, 0, 2, 3]));
    assert_eq!(depths(before, "inline E", "E"), [None, None, None]);
    assert_eq!(depths(before, "unfuse D", "D"), all(&[0, 1, 2]));
}

#[test]
fn a_cursor_visits_every_place_forth_and_back() {
    let graph = graph(PRODUCT);
    let schedule = schedule(
        &graph,
        "C: i/4, j, k, i\nE: i/4, j, i\nD: share=1, i/4, j, i",
    );
    let tree = LoopTree::new(&graph, &schedule).unwrap();
    let mut places = Vec::new();
    tree.walk(&mut |place, _| places.push(place));
    let mut at = Cursor::at(&tree, tree.roots()[0]);
    let mut cursors = Vec::new();
    while let Some(cursor) = at {
        cursors.push(cursor);
        at = cursor.next(&tree);
    }
    let visited: Vec<_> = cursors
        .iter()
        .map(|cursor| cursor.place(&tree).unwrap())
        .collect();
    assert_eq!(visited, places);
    for pair in cursors.windows(2) {
        assert_eq!(pair[1].previous(&tree), Some(pair[0]));
    }
    assert_eq!(cursors[0].previous(&tree), None);
}

#[test]
fn every_form_is_written_and_read_back() {
    let graph = graph(PRODUCT);
    for line in [
        "split C i/64 8",
        "split %3 i 8",
        "merge C i/8",
        "swap C i/8 j",
        "reorder C k, i/8, j, i",
        "fuse D",
        "unfuse D",
        "move D before C",
        "move C after %3",
        "inline E",
        "store E",
        "store E: i/8 parallel, j, i unroll",
        "annotate C i/8 parallel",
        "annotate C i serial",
        "delegate D interp",
        "delegate D \"my-backend\"",
        "undelegate D",
    ] {
        let read = mutation(&graph, line);
        let written = print_mutation(&graph, &read);
        assert_eq!(mutation(&graph, &written), read);
        if !line.contains('%') {
            assert_eq!(written, line);
        }
    }
}

#[test]
fn texts_that_are_no_mutation_are_refused() {
    let graph = graph(PRODUCT);
    for (line, expected) in [
        ("widen C i", "`widen` is not a change of a schedule"),
        ("split X i 8", "the program has no node `X`"),
        ("split %77 i 8", "the program has no node `%77`"),
        ("split C z 8", "the program has no dimension `z`"),
        ("split C i", "expected the factor of a split"),
        ("move C under D", "expected `before` or `after`"),
        ("annotate C i quickly", "`quickly` is not an annotation"),
        ("fuse D\nfuse D", "expected the end: a change is one line"),
        ("", "expected a change"),
    ] {
        let source = Source::new("test", line);
        let error = parse_mutation(&source, &graph).unwrap_err().render(&source);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_mutation_of_another_program_is_refused() {
    let graph = graph(PRODUCT);
    let schedule = schedule(&graph, "C: i, j, k\nD: i, j");
    let node = graph.find("C").unwrap();
    let dim = loopwright_graph::DimId(77);
    let foreign = [
        Mutation::Fuse { node: NodeId(77) },
        Mutation::MoveBefore {
            node,
            other: NodeId(77),
        },
        Mutation::Merge {
            node,
            name: LoopName { dim, step: 1 },
        },
    ];
    for mutation in foreign {
        let error = mutate(&graph, &schedule, &mutation).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the mutation names a node or a dimension that the program does not have"
        );
        assert!(for_sharers(&graph, &schedule, &mutation).is_err());
    }
}

#[test]
fn the_legal_mutations_are_listed() {
    let graph = graph(PRODUCT);
    let schedule = schedule(&graph, "C: i, j, k\nD: i, j");
    let found = legal(&graph, &schedule);
    let texts: Vec<String> = found
        .iter()
        .map(|mutation| print_mutation(&graph, mutation))
        .collect();
    for line in [
        "split C i 64",
        "split C k 16",
        "split D j 128",
        "swap C i j",
        "swap C j k",
        "annotate C i parallel",
        "annotate C j vectorize",
        "annotate C k unroll",
        "unfuse D",
        "store E",
    ] {
        assert!(texts.iter().any(|text| text == line), "{line}: {texts:?}");
    }
    for line in [
        "split C k 32",
        "annotate C k parallel",
        "annotate C i serial",
        "annotate C j unroll",
        "fuse D",
        "inline C",
        "move D before C",
        "undelegate C",
    ] {
        assert!(texts.iter().all(|text| text != line), "{line}: {texts:?}");
    }
    for mutation in &found {
        mutate(&graph, &schedule, mutation)
            .unwrap_or_else(|error| panic!("{}: {error}", print_mutation(&graph, mutation)));
    }
    let unrolled = found.iter().any(|mutation| {
        matches!(mutation, Mutation::Annotate { annotation, .. } if *annotation == Annotation::Unroll)
    });
    assert!(unrolled);
}

/// The cells of a row of a table, without their marks.
fn cells(row: &str) -> Vec<&str> {
    let cells = row.trim().trim_matches('|').split(" | ");
    cells.map(|cell| cell.trim().trim_matches('`')).collect()
}

#[test]
fn the_changes_that_the_docs_show_are_made() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/schedules.md");
    let page = std::fs::read_to_string(page).expect("the page on schedules is there");
    let program = page
        .split("```")
        .find_map(|block| block.strip_prefix("lw\n"));
    let program = program.expect("the page begins with a program");
    let graph = graph(&format!("loopwright program 1\n{program}"));
    let (_, table) = page
        .split_once("| mutation | from | to |\n| --- | --- | --- |\n")
        .expect("the page has a table of mutations");
    let mut rows = 0;
    for row in table.lines().take_while(|line| line.starts_with('|')) {
        let [line, from, to] = cells(row)[..] else {
            panic!("a row has three cells: {row}");
        };
        let steps = |own: &str| {
            let name = own.split(':').next();
            let mut steps = vec!["sums: i, j, k", own, "C: i, j"];
            // The step of the row in place of the first schedule's.
            if name == Some("sums") {
                steps.remove(0);
            } else if name == Some("C") {
                steps.pop();
            } else if own == "-" {
                steps.remove(1);
            }
            steps.join("\n")
        };
        assert_eq!(after(&graph, &steps(from), line), steps(to), "{row}");
        rows += 1;
    }
    assert!(rows >= 13, "the table has {rows} rows");
    for (before, line, expected) in [
        (
            "sums: i, j, k\nC: i, j",
            "split sums k 1",
            "the loop `k` of `sums` cannot be split by 1: ",
        ),
        (
            "sums: i/8, i, j, k\nC: i, j",
            "swap sums i/8 i",
            "the loop `i` of `sums` cannot come before `i/8`: ",
        ),
        (
            "sums: i, j, k\nC: i, j",
            "fuse C",
            "`C` cannot share a further loop: ",
        ),
        (
            "sums: i, j, k\nC: i, j",
            "move C before sums",
            "`move C before sums` is refused: `sums` is computed after `C`, which reads it",
        ),
        (
            "sums: i, j, k\nC: i, j",
            "annotate sums k parallel",
            "`annotate sums k parallel` is refused: ",
        ),
        (
            "sums: i, j, k\nC: i, j",
            "inline sums",
            "`sums` cannot be inline: ",
        ),
    ] {
        assert!(page.contains(expected), "the page has no {expected}");
        let message = refused(&graph, before, line);
        assert!(message.starts_with(expected), "{message}");
    }
}
