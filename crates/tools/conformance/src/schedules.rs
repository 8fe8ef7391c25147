//! Small programs with schedules, one for each construct of schedules.
//!
//! Each has a schedule of its own, and runs over a few sets of sizes: those that the steps divide, those
//! that leave a tail, one and none.

use crate::features::{parsed, sized_inputs};
use crate::generate::{Arithmetic, Case};
use loopwright_looptree::parse_schedule;
use loopwright_text::Source;

/// A program and a schedule that show one construct.
#[derive(Clone, Copy, Debug)]
pub struct Construct {
    /// Its name, an identifier.
    pub name: &'static str,
    /// The program, without its first line.
    pub program: &'static str,
    /// The schedule, without its first line.
    pub schedule: &'static str,
    /// Values for its sizes, for each run.
    pub sizes: &'static [&'static [(&'static str, i64)]],
}

const POINTWISE: &str = "size N\ninput x: i32[i=N]\noutput y = x * 3 + 1\n";
const TABLE: &str = "size M\nsize N\ninput x: i32[i=M, j=N]\noutput y = x * 3 + 1\n";
const PRODUCT: &str =
    "size M\nsize K\ninput a: f32[i=M, k=K]\ninput b: f32[k, j=19]\noutput c = sum[k](a * b)\n";
const PRODUCT_OF_COPY: &str = "size M\nsize K\ninput a: f32[i=M, k=K]\ninput b: f32[k, j=19]\npanel = b + 1\n\
     output c = sum[k](a * panel)\n";
const CHAIN: &str =
    "size N\ninput x: i32[i=N, j=6]\nh = x * x + 1\ns = sum[j](h)\noutput y = h - s\n";

const ONE: &[&[(&str, i64)]] = &[
    &[("N", 0)],
    &[("N", 1)],
    &[("N", 7)],
    &[("N", 8)],
    &[("N", 21)],
];
const TWO: &[&[(&str, i64)]] = &[
    &[("M", 5), ("N", 7)],
    &[("M", 8), ("N", 16)],
    &[("M", 1), ("N", 3)],
    &[("M", 0), ("N", 4)],
];
const FOLDED: &[&[(&str, i64)]] = &[
    &[("M", 13), ("K", 7)],
    &[("M", 8), ("K", 16)],
    &[("M", 1), ("K", 0)],
    &[("M", 0), ("K", 3)],
];

/// Every construct.
pub const SCHEDULES: &[Construct] = &[
    Construct {
        name: "serial_loop",
        program: POINTWISE,
        schedule: "y: i\n",
        sizes: ONE,
    },
    Construct {
        name: "split_with_tail",
        program: POINTWISE,
        schedule: "y: i/4, i\n",
        sizes: ONE,
    },
    Construct {
        name: "nested_splits",
        program: POINTWISE,
        schedule: "y: i/8, i/3, i/2, i\n",
        sizes: ONE,
    },
    Construct {
        name: "reordered_loops",
        program: TABLE,
        schedule: "y: j, i\n",
        sizes: TWO,
    },
    Construct {
        name: "interleaved_splits",
        program: TABLE,
        schedule: "y: j/4, i/3, j, i\n",
        sizes: TWO,
    },
    Construct {
        name: "vectorize",
        program: TABLE,
        schedule: "y: i, j/8, j vectorize\n",
        sizes: TWO,
    },
    Construct {
        name: "vectorize_with_tail",
        program: POINTWISE,
        schedule: "y: i/4, i vectorize\n",
        sizes: ONE,
    },
    Construct {
        name: "vectorize_along_a_stride",
        program: TABLE,
        schedule: "y: j, i/4, i vectorize\n",
        sizes: TWO,
    },
    Construct {
        name: "vectorized_reduction",
        program: PRODUCT,
        schedule: "c: i, j, k/4, k vectorize\n",
        sizes: FOLDED,
    },
    Construct {
        name: "unroll",
        program: POINTWISE,
        schedule: "y: i/4, i unroll\n",
        sizes: ONE,
    },
    Construct {
        name: "unrolled_outer_loop",
        program: TABLE,
        schedule: "y: i/2, i unroll, j\n",
        sizes: TWO,
    },
    Construct {
        name: "parallel",
        program: TABLE,
        schedule: "y: i parallel, j\n",
        sizes: TWO,
    },
    Construct {
        name: "parallel_blocks",
        program: TABLE,
        schedule: "y: i/3 parallel, i, j/4, j vectorize\n",
        sizes: TWO,
    },
    Construct {
        name: "parallel_pair",
        program: TABLE,
        schedule: "y: i/3 parallel, j/4 parallel, i, j vectorize\n",
        sizes: TWO,
    },
    Construct {
        name: "parallel_tiles",
        program: PRODUCT,
        schedule: "c: j/8 parallel, i/4 parallel, k, i unroll, j vectorize\n",
        sizes: FOLDED,
    },
    Construct {
        name: "parallel_rows_behind_a_panel",
        program: PRODUCT_OF_COPY,
        schedule: "panel: j/8 parallel, k, j\nc: share=0, j/8 parallel, i/4 parallel, k, i unroll, j vectorize\n",
        sizes: FOLDED,
    },
    Construct {
        name: "reduction_outside",
        program: PRODUCT,
        schedule: "c: k, i, j\n",
        sizes: FOLDED,
    },
    Construct {
        name: "reduction_in_the_middle",
        program: PRODUCT,
        schedule: "c: i, k, j/8, j vectorize\n",
        sizes: FOLDED,
    },
    Construct {
        name: "split_reduction",
        program: PRODUCT,
        schedule: "c: k/4, i, j, k\n",
        sizes: FOLDED,
    },
    Construct {
        name: "register_tile",
        program: PRODUCT,
        schedule: "c: j/8, i/4, k, i unroll, j vectorize\n",
        sizes: FOLDED,
    },
    Construct {
        name: "inline",
        program: CHAIN,
        schedule: "s: i, j\ny: i, j\n",
        sizes: ONE,
    },
    Construct {
        name: "step_in_scratch",
        program: CHAIN,
        schedule: "h: i, j\ns: share=0, i, j\ny: share=0, i, j\n",
        sizes: ONE,
    },
    Construct {
        name: "shared_loops",
        program: CHAIN,
        schedule: "h: i, j\ns: share=1, i, j\ny: share=1, i, j\n",
        sizes: ONE,
    },
    Construct {
        name: "shared_blocks",
        program: CHAIN,
        schedule: "h: i/4, i, j\ns: share=1, i/4, i, j\ny: share=1, i/4, i, j\n",
        sizes: ONE,
    },
    Construct {
        name: "fused_elements",
        program: "size N\ninput x: i32[i=N]\nh = x * x\noutput y = h + 1\noutput z = h - 1\n",
        schedule: "h: i\ny: i\nz: i\n",
        sizes: ONE,
    },
    Construct {
        name: "scan_in_blocks",
        program: "size N\ninput x: i32[i=N, j=5]\noutput y = cumsum[i](x)\n",
        schedule: "y: j/2, i, j\n",
        sizes: ONE,
    },
    Construct {
        name: "state_read_before_it_is_written",
        program: "size N\nstate x: i32[i=N]\nleft = x[i - 1] else 0\nnext = x + left\nupdate x = next\n",
        schedule: "next: i\n%3: i\n",
        sizes: ONE,
    },
];

/// The construct of that name.
pub fn construct(name: &str) -> Option<&'static Construct> {
    SCHEDULES.iter().find(|construct| construct.name == name)
}

impl Construct {
    /// The cases it is made of.
    pub fn cases(&self) -> Vec<Case> {
        let graph = parsed(self.name, self.program);
        let stored = graph.clone().with_stores();
        let text = format!("loopwright schedule 1\n{}", self.schedule);
        let source = Source::new(self.name, text);
        let schedule = parse_schedule(&source, &stored)
            .unwrap_or_else(|error| panic!("a construct is a schedule: {}", error.render(&source)));
        // Folded in any order, and exact in any.
        let arithmetic = Arithmetic::Whole;
        let runs = self.sizes.iter().enumerate();
        runs.map(|(run, sizes)| Case {
            schedule: Some(schedule.clone()),
            ..sized_inputs(&graph, run as u64, sizes, arithmetic)
        })
        .collect()
    }
}
