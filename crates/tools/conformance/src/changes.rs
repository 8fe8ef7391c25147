//! Small programs whose schedules are changed by mutations, one row for each thing that mutations are for.
//!
//! A row begins with a schedule. Each change is made to the plan before it, as an editor would make it, and every plan
//! on the way is run: a change must keep the values on every backend.

use crate::features::{parsed, sized_inputs};
use crate::generate::{Arithmetic, Case};
use loopwright_looptree::{Plan, maximise_reuse, parse_mutation, parse_schedule, unroll_inner};
use loopwright_text::Source;

/// A program, a schedule of it and changes to that.
#[derive(Clone, Copy, Debug)]
pub struct Changes {
    /// Its name, an identifier.
    pub name: &'static str,
    /// The program, without its first line.
    pub program: &'static str,
    /// The first schedule, without its first line.
    pub schedule: &'static str,
    /// The changes, one after the other.
    pub changes: &'static [Change],
    /// Values for its sizes, for each run.
    pub sizes: &'static [&'static [(&'static str, i64)]],
}

/// One change of a plan.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// A mutation, as it is written.
    Text(&'static str),
    /// A row of mutations that has a name.
    Preset(fn(&Plan) -> Plan),
}

use Change::{Preset, Text};

const TABLE: &str = "size M\nsize N\ninput x: i32[i=M, j=N]\noutput y = x * 3 + 1\n";
const PRODUCT: &str =
    "size M\nsize K\ninput a: f32[i=M, k=K]\ninput b: f32[k, j=19]\noutput c = sum[k](a * b)\n";
const CHAIN: &str =
    "size N\ninput x: i32[i=N, j=6]\nh = x * x + 1\ns = sum[j](h)\noutput y = h - s\n";
const WEIGHTED: &str = "size N\nsize K\ninput x: i32[i=N, k=K]\ninput w: i32[k]\nt = w * w + 1\noutput y = sum[k](x * t)\n";
const TURNED: &str =
    "size N\ninput x: i32[i=N, j=6]\nh = x * x + 1\nleft = h[i, 5 - j]\noutput y = h - left\n";
const FOLDS: &str = "size M\nsize K\ninput x: i32[i=M, k=K]\ninput z: f32[i, k]\noutput s = sum[k](x)\noutput m = max[k](x)\noutput p = prod[k](x)\noutput fs = sum[k](z)\noutput fm = max[k](z)\noutput fp = prod[k](z)\n";
const FOLD_LOOPS: &str = "s: i, k\nm: i, k\np: i, k\nfs: i, k\nfm: i, k\nfp: i, k\n";
const WINDOW: &str = "size N\ninput x: i32[i=N, j=5]\ndim o = N\npadded[o, j] = x[o - 1, j] else 7\noutput y = padded * 2\n";

const ONE: &[&[(&str, i64)]] = &[&[("N", 0)], &[("N", 1)], &[("N", 7)], &[("N", 16)]];
const TWO: &[&[(&str, i64)]] = &[
    &[("M", 5), ("N", 7)],
    &[("M", 8), ("N", 16)],
    &[("M", 0), ("N", 4)],
];
const FOLDED: &[&[(&str, i64)]] = &[
    &[("M", 5), ("K", 7)],
    &[("M", 3), ("K", 16)],
    &[("M", 2), ("K", 1)],
    &[("M", 1), ("K", 0)],
];
const WEIGHTS: &[&[(&str, i64)]] = &[
    &[("N", 5), ("K", 7)],
    &[("N", 0), ("K", 3)],
    &[("N", 3), ("K", 0)],
];

/// Every row.
pub const CHANGES: &[Changes] = &[
    Changes {
        name: "split_with_tail_then_swap",
        program: TABLE,
        schedule: "y: i, j\n",
        changes: &[
            Text("split y j 4"),
            Text("swap y i j/4"),
            Text("swap y i j"),
            Text("split y i 3"),
            Text("swap y j i/3"),
        ],
        sizes: TWO,
    },
    Changes {
        // 405 elements as 10 rounds and 15 elements, 4 and 3, 4 and 1, 2.
        name: "tails_three_levels_deep",
        program: "input x: i32[i=405]\noutput y = x * 3 + 1\n",
        schedule: "y: i/39, i/9, i/2, i\n",
        changes: &[
            Text("annotate y i vectorize"),
            Text("annotate y i/2 unroll"),
            Text("annotate y i/39 parallel"),
            Text("merge y i/9"),
        ],
        sizes: &[&[]],
    },
    Changes {
        name: "symbolic_tails_three_deep",
        program: "size N\ninput x: i32[i=N, j=3]\noutput y = x * 3 + 1\n",
        schedule: "y: i/39, j, i/9, i/2, i\n",
        changes: &[
            Text("annotate y i unroll"),
            Text("reorder y i/39, i/9, i/2, i, j"),
        ],
        sizes: &[&[("N", 405)], &[("N", 54)], &[("N", 8)], &[("N", 0)]],
    },
    Changes {
        name: "merge_undoes_split",
        program: TABLE,
        schedule: "y: i, j\n",
        changes: &[Text("split y j 4"), Text("merge y j/4")],
        sizes: TWO,
    },
    Changes {
        name: "packing",
        program: PRODUCT,
        schedule: "c: j/8, i, k, j\n",
        changes: &[
            Text("copy b for c as panel"),
            Text("layout panel [j/4, k, j]"),
            Text("annotate c j vectorize"),
            Text("compute panel at c i"),
            Text("remove panel i"),
            Text("copy a for c as row"),
            Text("compute row at c i"),
            Text("uncopy panel"),
            Text("uncopy row"),
        ],
        sizes: FOLDED,
    },
    Changes {
        name: "packing_in_an_inner_loop",
        program: PRODUCT,
        schedule: "c: i/3, j/8, k/4, i, k, j\n",
        changes: &[
            Text("copy b for c as panel"),
            Text("compute panel at c k/4"),
            Text("layout panel [j, k]"),
            Text("annotate panel i/3 parallel"),
            Text("annotate c i/3 parallel"),
        ],
        sizes: FOLDED,
    },
    Changes {
        name: "padding",
        program: WINDOW,
        schedule: "y: o, j\n",
        changes: &[
            Text("pad padded for y as wide"),
            Text("layout wide [j, wide_i]"),
            Text("annotate y j vectorize"),
        ],
        sizes: ONE,
    },
    Changes {
        name: "more_and_less_reuse",
        program: CHAIN,
        schedule: "h: i, j\ns: i, j\ny: i, j\n",
        changes: &[
            Text("unfuse s"),
            Text("unfuse y"),
            Text("fuse s"),
            Text("inline h"),
            Text("store h"),
            Text("fuse y"),
        ],
        sizes: ONE,
    },
    Changes {
        name: "steps_in_another_order",
        program: "size N\ninput x: i32[i=N]\na = x + 1\nb = x * 2\noutput y = a - b\noutput z = b + 1\n",
        schedule: "a: i\nb: i\ny: i\nz: i\n",
        changes: &[
            Text("move b before a"),
            Text("move z before y"),
            Text("move a after z"),
        ],
        sizes: ONE,
    },
    Changes {
        name: "layout_of_an_intermediate",
        program: TURNED,
        schedule: "h: i, j\ny: share=0, i, j\n",
        changes: &[
            Text("layout h [j, i]"),
            // Pieces that do not divide the one around them.
            Text("layout h [j/5, i, j/3, j]"),
            Text("layout h [j/4, i, j]"),
            Text("split y j 4"),
            Text("annotate y j vectorize"),
            Text("split h j 4"),
            Text("annotate h j vectorize"),
            Text("layout h"),
        ],
        sizes: ONE,
    },
    Changes {
        name: "annotations",
        program: TABLE,
        schedule: "y: i, j/8, j\n",
        changes: &[
            Text("annotate y j unroll"),
            Text("annotate y j vectorize"),
            Text("annotate y i parallel"),
            Text("annotate y j/8 prefetch"),
            Text("annotate y i block"),
            Text("annotate y j/8 thread"),
            Text("annotate y j warp"),
            Text("annotate y j tile"),
        ],
        sizes: TWO,
    },
    Changes {
        name: "loops_added_and_removed",
        program: WEIGHTED,
        schedule: "t: k\ny: i, k\n",
        changes: &[
            Text("add t 0: i"),
            Text("annotate t i parallel"),
            Text("annotate y i parallel"),
            Text("remove t i"),
            Text("compute t at y k"),
            Text("annotate y k unroll"),
        ],
        sizes: WEIGHTS,
    },
    Changes {
        name: "staged_lanes",
        program: FOLDS,
        schedule: FOLD_LOOPS,
        changes: &[
            Text("stage s k lanes 4 as s4"),
            Text("annotate s4 s4_kept vectorize"),
            Text("stage m k lanes 3 as m3"),
            Text("stage p k lanes 4 as p4"),
            Text("stage fs k lanes 4 as fs4"),
            Text("annotate fs4 fs4_kept vectorize"),
            Text("stage fm k lanes 2 as fm2"),
            Text("stage fp k lanes 5 as fp5"),
        ],
        sizes: FOLDED,
    },
    Changes {
        name: "staged_blocks",
        program: FOLDS,
        schedule: FOLD_LOOPS,
        changes: &[
            Text("stage s k blocks 4 as s4"),
            Text("swap s4 s4_folded s4_kept"),
            Text("annotate s4 s4_kept parallel"),
            Text("stage m k blocks 3 as m3"),
            Text("stage p k blocks 4 as p4"),
            Text("stage fs k blocks 8 as fs8"),
            Text("stage fm k blocks 2 as fm2"),
            Text("stage fp k blocks 5 as fp5"),
        ],
        sizes: FOLDED,
    },
    Changes {
        name: "stages_of_a_stage",
        program: "input x: i32[i=3, k=37]\noutput s = sum[k](x)\n",
        schedule: "s: i, k\n",
        changes: &[
            Text("stage s k blocks 10 as part"),
            Text("stage part part_folded lanes 4 as lane"),
            Text("annotate lane lane_kept vectorize"),
        ],
        sizes: &[&[]],
    },
    Changes {
        name: "reuse_maximised",
        program: CHAIN,
        schedule: "h: share=0, j, i\ns: share=0, i, j\ny: share=0, i, j\n",
        changes: &[Preset(maximise_reuse)],
        sizes: ONE,
    },
    Changes {
        name: "inner_loops_unrolled",
        program: CHAIN,
        schedule: "h: i, j/4, j\ns: i, j\ny: i, j\n",
        changes: &[Preset(unroll_inner)],
        sizes: ONE,
    },
];

impl Changes {
    /// The first plan, and that after each change.
    ///
    /// # Panics
    /// If a change is refused: then it is none that keeps the values.
    pub fn plans(&self) -> Vec<Plan> {
        let program = parsed(self.name, self.program).with_stores();
        let text = format!("loopwright schedule 1\n{}", self.schedule);
        let source = Source::new(self.name, text);
        let schedule = parse_schedule(&source, &program)
            .unwrap_or_else(|error| panic!("a row has a schedule: {}", error.render(&source)));
        let first = Plan::new(program, schedule);
        let mut plans = vec![first.unwrap_or_else(|error| panic!("`{}`: {error}", self.name))];
        for change in self.changes {
            let plan = &plans[plans.len() - 1];
            let next = match change {
                Change::Preset(preset) => preset(plan),
                Change::Text(text) => {
                    let source = Source::new(self.name, *text);
                    let mutation = parse_mutation(&source, plan.graph())
                        .unwrap_or_else(|error| panic!("`{text}`: {}", error.render(&source)));
                    let changed = plan.mutate(&mutation);
                    let changed = changed
                        .unwrap_or_else(|error| panic!("`{}`, `{text}`: {error}", self.name));
                    changed.plan
                }
            };
            plans.push(next);
        }
        plans
    }

    /// The cases it is made of: every plan at every size.
    pub fn cases(&self) -> Vec<Case> {
        let graph = parsed(self.name, self.program);
        let plans = self.plans();
        // Folded in any order, and exact in any.
        let arithmetic = Arithmetic::Whole;
        let mut cases = Vec::new();
        for (run, sizes) in self.sizes.iter().enumerate() {
            let case = sized_inputs(&graph, run as u64, sizes, arithmetic);
            cases.extend(plans.iter().map(|plan| Case {
                schedule: Some(plan.schedule().clone()),
                ..case.clone()
            }));
        }
        cases
    }
}
