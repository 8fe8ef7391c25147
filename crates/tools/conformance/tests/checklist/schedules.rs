//! Lines 13 to 22, 35 and 36: schedules and their changes.
//!
//! What computes is a row of the kit, so that it runs on every backend; here it runs on every one that computes.

use crate::on_every_backend;
use loopwright_conformance::Group;
use loopwright_conformance::changes::CHANGES;
use loopwright_conformance::suite::assert_row;
use loopwright_looptree::{
    Cursor, Plan, maximise_reuse, parse_mutation, parse_schedule, print_tree, unroll_inner,
};
use loopwright_text::Source;

/// The rows of the kit that show a line.
const ROWS: [(u32, &[&str]); 10] = [
    (13, &["split_with_tail_then_swap"]),
    (
        14,
        &["tails_three_levels_deep", "symbolic_tails_three_deep"],
    ),
    (15, &["merge_undoes_split"]),
    (16, &["packing", "packing_in_an_inner_loop", "padding"]),
    (17, &["more_and_less_reuse"]),
    (18, &["steps_in_another_order"]),
    (19, &["layout_of_an_intermediate"]),
    (20, &["annotations"]),
    (21, &["loops_added_and_removed"]),
    (22, &["staged_lanes", "staged_blocks", "stages_of_a_stage"]),
];

#[test]
fn lines_13_to_22_changes_keep_the_values() {
    on_every_backend(|backend| {
        for (line, rows) in ROWS {
            for row in rows {
                println!("line {line}: {row} on {}", backend.name());
                assert_row(backend.clone(), Group::Schedules, row);
            }
        }
    });
}

fn plan(program: &str, schedule: &str) -> Plan {
    let program = crate::program(program).with_stores();
    let source = Source::new("schedule", format!("loopwright schedule 1\n{schedule}"));
    let schedule = parse_schedule(&source, &program)
        .unwrap_or_else(|error| panic!("{}", error.render(&source)));
    Plan::new(program, schedule).unwrap_or_else(|error| panic!("{error}"))
}

fn changed(plan: &Plan, line: &str) -> Result<Plan, String> {
    let source = Source::new("change", line);
    let mutation = parse_mutation(&source, plan.graph())
        .unwrap_or_else(|error| panic!("{}", error.render(&source)));
    match plan.mutate(&mutation) {
        Ok(changed) => Ok(changed.plan),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn line_15_merge_undoes_split() {
    let row = CHANGES.iter().find(|row| row.name == "merge_undoes_split");
    let plans = row.expect("the kit has the row").plans();
    assert_ne!(plans[0].to_string(), plans[1].to_string());
    assert_eq!(plans[0].to_string(), plans[2].to_string());
}

#[test]
fn line_18_an_illegal_order_is_refused_with_the_dependence() {
    let plan = plan(
        "input x: i32[i=8]\na = x + 1\noutput y = a * a\n",
        "a: i\ny: i\n",
    );
    let refused = changed(&plan, "move y before a").expect_err("`y` reads `a`");
    assert_eq!(
        refused,
        "`move y before a` is refused: `a` is computed after `y`, which reads it"
    );
}

const CHAIN: &str = "input x: i32[i=8, j=6]\nh = x * x + 1\ns = sum[j](h)\noutput y = h - s\n";

#[test]
fn line_35_next_and_previous_visit_every_place_and_cursors_follow() {
    let plan = plan(CHAIN, "h: i, j\ns: i, j\ny: i, j\n");
    let tree = plan.tree();
    let mut cursor = Cursor::at(tree, tree.roots()[0]).expect("there is a first place");
    let mut places = vec![cursor.place(tree).expect("a cursor has a place")];
    while let Some(next) = cursor.next(tree) {
        assert_eq!(
            next.previous(tree).and_then(|back| back.place(tree)),
            cursor.place(tree)
        );
        cursor = next;
        places.push(cursor.place(tree).expect("a cursor has a place"));
    }
    let mut all = Vec::new();
    tree.walk(&mut |place, _| all.push(place));
    assert_eq!(places, all);

    let h = plan.graph().find("h").expect("there is an `h`");
    let source = Source::new("change", "split h i 4");
    let split = parse_mutation(&source, plan.graph()).expect("it is a change");
    let split = plan.mutate(&split).expect("it is legal");
    // The loop over `j` was the second and is the third.
    let followed = split.follow(Cursor { node: h, depth: 1 });
    assert_eq!(followed, Some(Cursor { node: h, depth: 2 }));
}

#[test]
fn line_36_presets() {
    on_every_backend(|backend| {
        for row in ["reuse_maximised", "inner_loops_unrolled"] {
            assert_row(backend.clone(), Group::Schedules, row);
        }
    });
    let apart = plan(
        CHAIN,
        "h: share=0, j, i\ns: share=0, i, j\ny: share=0, i, j\n",
    );
    let reused = maximise_reuse(&apart);
    assert_eq!(
        print_tree(reused.graph(), reused.tree()),
        "loopwright tree 1\nfor j {\n  for i {\n    h\n    s\n  }\n}\nfor i {\n  for j {\n    y\n  }\n}\n"
    );
    let fused = plan(CHAIN, "h: i, j\ns: i, j\ny: i, j\n");
    let unrolled = unroll_inner(&fused);
    assert_eq!(
        unrolled.to_string(),
        "loopwright schedule 1\nh: i, j unroll\ns: i, j unroll\ny: i, j unroll\n"
    );
}
