//! Small programs, one for each thing that a backend must be able to run.
//!
//! Each is run with its default schedule, the plainest one and a few random ones, over a few sets of
//! sizes, and compared with the reference evaluator.

use crate::generate::{Arithmetic, Case, plain_schedule, random_array, random_schedule};
use crate::rng::Rng;
use loopwright_graph::{Graph, parse};
use loopwright_text::Source;

/// A program that shows one feature.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Its name, an identifier.
    pub name: &'static str,
    /// The program, without its first line.
    pub program: &'static str,
    /// Values for its sizes, for each run.
    pub sizes: &'static [&'static [(&'static str, i64)]],
}

/// Every feature.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "matrix_product",
        program: "size M\nsize K\ninput a: f32[i=M, k=K]\ninput b: f32[k, j=19]\noutput c = sum[k](a * b)\n",
        sizes: &[
            &[("M", 13), ("K", 7)],
            &[("M", 1), ("K", 0)],
            &[("M", 0), ("K", 3)],
            &[("M", 16), ("K", 16)],
        ],
    },
    Feature {
        name: "broadcast",
        program: "input a: f64[i=5]\ninput b: f64[j=4]\ninput c: f64\noutput outer = a * b + c\n",
        sizes: &[&[]],
    },
    Feature {
        name: "reductions",
        program: "size N\ninput x: i32[i=N, j=6, k=3]\noutput s = sum[j](x)\noutput p = prod[i, k](x)\noutput a = max[i, j, k](x)\noutput b = min[k](x)\noutput y = any[j](x > 0)\noutput z = all[i](x > 0)\n",
        sizes: &[&[("N", 5)], &[("N", 1)], &[("N", 0)]],
    },
    Feature {
        name: "accumulators",
        program: "input h: f16[i=9, j=5]\ninput q: u8[i, j]\noutput wide = sum[j](h)\noutput own = sum[j, acc=f16](h)\noutput bytes = sum[i, acc=i64](q)\noutput double = prod[i, j, acc=f64](h)\n",
        sizes: &[&[]],
    },
    Feature {
        name: "arg_reductions",
        program: "size N\ninput x: f32[i=3, j=N]\noutput a = argmax[j](x)\noutput b = argmin[i](x)\n",
        sizes: &[&[("N", 7)], &[("N", 1)], &[("N", 0)]],
    },
    Feature {
        name: "scans",
        program: "size N\ninput x: f32[i=3, j=N]\noutput a = cumsum[j](x)\noutput b = scan_max[j, reverse](x)\noutput c = scan_prod[i, exclusive](x)\noutput d = scan_min[j, exclusive, reverse](x)\n",
        sizes: &[&[("N", 6)], &[("N", 1)], &[("N", 0)]],
    },
    Feature {
        name: "sorting",
        program: "size N\ninput x: f32[i=3, j=N]\noutput up = sort[j](x)\noutput down = sort[j, desc](x)\noutput order = argsort[j](x)\noutput back = argsort[i, desc](x)\n",
        sizes: &[&[("N", 9)], &[("N", 1)], &[("N", 0)]],
    },
    Feature {
        name: "gather",
        program: "input table: f32[v=5, c=3]\ninput ids: i32[t=6]\noutput rows = table[ids, c] else -1\n",
        sizes: &[&[]],
    },
    Feature {
        name: "scatter",
        program: "input base: i32[v=5, c=3]\ninput ids: i8[t=7]\ninput x: i32[t, c]\noutput set = scatter[v, set](base, ids, x)\noutput add = scatter[v, sum](base, ids, x)\noutput most = scatter[v, max](base, ids, x)\n",
        sizes: &[&[]],
    },
    Feature {
        name: "padding",
        program: "size N\ninput x: f32[i=N, j=4]\ndim p = N + 3\ndim q = 7\npadded[p, q] = x[p - 1, q - 2] else 9\noutput y = exp(padded)\n",
        sizes: &[&[("N", 5)], &[("N", 0)]],
    },
    Feature {
        name: "convolution",
        program: "size N\ninput x: f32[c=2, h=N]\ninput w: f32[o=3, c, k=3]\ndim y = (N + 1) // 2\noutput z = sum[c, k](w * (x[c, 2*y + k - 1] else 0))\n",
        sizes: &[&[("N", 9)], &[("N", 2)], &[("N", 0)]],
    },
    Feature {
        name: "pooling",
        program: "input x: f32[h=8, w=8]\ndim a = 2\ndim b = 2\noutput most = max[a, b](x[2*y + a, 2*z + b])\n",
        sizes: &[&[]],
    },
    Feature {
        name: "concatenation",
        program: "size N\ninput a: i64[x=N, c=2]\ninput b: i64[y=4, c]\noutput z = concat[z: x, y](a, b)\n",
        sizes: &[&[("N", 3)], &[("N", 0)]],
    },
    Feature {
        name: "views_of_views",
        program: "size N\ninput x: f32[i=N, j=4]\nflipped[i, j] = x[N - 1 - i, j]\nmoved[i, j] = flipped[i - 1, j] else 2\nodd[i, j] = moved[i, j] if i % 2 == 1 else 3\nturned[j, i] = odd[i, j]\noutput y = turned + 1\n",
        sizes: &[&[("N", 7)], &[("N", 1)], &[("N", 0)]],
    },
    Feature {
        name: "reshapes",
        program: "input x: i32[i=6, j=4]\ndim f = 24\nflat[f] = x[f // 4, f % 4]\ndim a = 8\ndim b = 3\nback[a, b] = flat[3*a + b]\noutput y = back * 2\n",
        sizes: &[&[]],
    },
    Feature {
        name: "indices_and_sizes",
        program: "size N\ninput x: i64[i=N]\noutput y = x + index[i] * size(2*N + 1)\noutput n = size(N)\n",
        sizes: &[&[("N", 5)], &[("N", 0)]],
    },
    Feature {
        name: "constants",
        program: "input x: f32[i=4]\nconst w: f32[i] = [0.5, -1.5, inf, nan]\noutput y = x * w + 1.25\noutput only = w\n",
        sizes: &[&[]],
    },
    Feature {
        name: "random_numbers",
        program: "input seed: u64\noutput bits = random[i=4, j=3](seed)\noutput u = uniform[i, j](seed)\n",
        sizes: &[&[]],
    },
    Feature {
        name: "random_numbers_by_counter",
        program: "size N\ninput seed: i32\ndim i = N, j = 3\ncounter = i * size(j) + j\noutput bits = random_bits(seed, counter)\noutput a = uniform[f64](seed, counter)\noutput b = uniform[f16](seed, -counter)\noutput c = uniform[bf16](seed, counter)\n",
        sizes: &[&[("N", 9)], &[("N", 1)], &[("N", 0)]],
    },
    Feature {
        name: "normal_numbers",
        program: "size N\ninput seed: u64\noutput a = normal[i=N](seed)\noutput b = normal[f64](seed, index[i, u8])\noutput c = normal[i, f16](seed)\n",
        sizes: &[&[("N", 13)], &[("N", 0)]],
    },
    Feature {
        name: "one_hot_contraction",
        program: "size N\ninput x: f32[k=N, d=3]\ninput t: i64[i=5]\noutput y = sum[k](select(k == t, x, 0))\noutput z = sum[k](i64(k == t) * i64(x))\n",
        sizes: &[&[("N", 6)], &[("N", 1)], &[("N", 0)]],
    },
    Feature {
        name: "casts",
        program: "input x: f32[i=9]\noutput a = i8(x)\noutput b = u16(x)\noutput c = bf16(x)\noutput d = f8e4m3(x)\noutput e = bool(x)\noutput f = f64(i32(x))\noutput g = bitcast[u32](x)\n",
        sizes: &[&[]],
    },
    Feature {
        name: "states",
        program: "state a: f32[i=8]\nstate b: f32[i]\nstate n: i64\noutput before = a\nupdate a = b\nupdate b = a\nupdate n = n + 1\n",
        sizes: &[&[]],
    },
    Feature {
        name: "shifted_state",
        program: "state line: i32[i=8]\ninput next: i32\noutput oldest = line[0]\nupdate line = select(index[i] == 7, next, line[i + 1] else 0)\n",
        sizes: &[&[]],
    },
    Feature {
        name: "softmax",
        program: "size N\ninput x: f32[i=5, j=N]\ntop = max[j](x)\ne = exp(x - top)\noutput y = e / sum[j](e)\n",
        sizes: &[&[("N", 11)], &[("N", 1)], &[("N", 0)]],
    },
    Feature {
        name: "empty_and_single",
        program: "size N\ninput x: f32[i=N, j=1]\noutput y = x * 2 + 1\noutput s = sum[i, j](x)\noutput m = max[i](x)\n",
        sizes: &[&[("N", 0)], &[("N", 1)], &[("N", 2)]],
    },
];

/// The feature of that name.
pub fn feature(name: &str) -> Option<&'static Feature> {
    FEATURES.iter().find(|feature| feature.name == name)
}

/// How many random schedules each program is run with, for each set of sizes.
const SCHEDULES: usize = 3;

/// A program of this crate, without its first line.
pub(crate) fn parsed(name: &str, program: &str) -> Graph {
    let source = Source::new(name, format!("loopwright program 1\n{program}"));
    parse(&source).unwrap_or_else(|error| {
        panic!(
            "a program of the suite is a program: {}",
            error.render(&source)
        )
    })
}

/// One run of a program at these sizes, with inputs that a seed gives and no schedule.
pub(crate) fn sized_inputs(
    graph: &Graph,
    seed: u64,
    sizes: &[(&str, i64)],
    arithmetic: Arithmetic,
) -> Case {
    let mut rng = Rng::new(seed);
    let binding = graph
        .bind(sizes)
        .unwrap_or_else(|error| panic!("the sizes of the suite fit its programs: {error}"));
    let inputs = graph
        .parameters()
        .map(|node| {
            let shape = binding.shape(graph, node);
            let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
            let array = random_array(&mut rng, graph.node(node).dtype, &shape, arithmetic);
            (node, array)
        })
        .collect();
    let sizes = sizes.iter();
    Case {
        graph: graph.clone(),
        schedule: None,
        sizes: sizes
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        inputs,
        arithmetic,
    }
}

impl Feature {
    /// The cases it is made of.
    pub fn cases(&self) -> Vec<Case> {
        let graph = parsed(self.name, self.program);
        let stored = graph.clone().with_stores();
        let arithmetic = Arithmetic::Strict;
        let mut cases = Vec::new();
        for (run, sizes) in self.sizes.iter().enumerate() {
            let case = sized_inputs(&graph, run as u64, sizes, arithmetic);
            let binding = graph
                .bind(sizes)
                .unwrap_or_else(|error| panic!("a feature's sizes fit: {error}"));
            let mut rng = Rng::new(run as u64);
            let mut schedules = vec![None, Some(plain_schedule(&stored))];
            for _ in 0..SCHEDULES {
                schedules.push(Some(random_schedule(
                    &mut rng, &stored, &binding, arithmetic,
                )));
            }
            cases.extend(schedules.into_iter().map(|schedule| Case {
                schedule,
                ..case.clone()
            }));
        }
        cases
    }
}
