//! Running program texts in tests.
#![allow(dead_code, reason = "each test file uses its own part")]

use loopwright_graph::{Array, Graph, NodeId, evaluate, parse};
use loopwright_ops::{DType, Scalar};
use loopwright_text::Source;

/// The graph of a program without its header; a refusal fails the test with the rendered error.
pub fn program(body: &str) -> Graph {
    let source = Source::new("test.lw", format!("loopwright program 1\n{body}"));
    match parse(&source) {
        Ok(graph) => graph,
        Err(error) => panic!("{}\nin\n{body}", error.render(&source)),
    }
}

/// The rendered error of a program without its header.
pub fn refused(body: &str) -> String {
    let source = Source::new("test.lw", format!("loopwright program 1\n{body}"));
    match parse(&source) {
        Ok(graph) => panic!("accepted, although it is wrong:\n{body}\nas\n{graph}"),
        Err(error) => error.render(&source),
    }
}

/// What a program gives for these inputs, by name.
pub struct Run {
    results: Vec<(String, Array)>,
}

impl Run {
    pub fn array(&self, name: &str) -> &Array {
        let found = self.results.iter().find(|(found, _)| found == name);
        match found {
            Some((_, array)) => array,
            None => panic!("the program has no result `{name}`"),
        }
    }

    pub fn values(&self, name: &str) -> Vec<f64> {
        self.array(name).to_f64()
    }

    pub fn shape(&self, name: &str) -> Vec<usize> {
        self.array(name).shape().to_vec()
    }
}

/// Evaluates a graph with sizes given by name; inputs not given are filled by `seeded`.
pub fn run(graph: &Graph, sizes: &[(&str, i64)], inputs: &[(&str, Vec<f64>)]) -> Run {
    let binding = graph.bind(sizes).expect("the sizes fit");
    let arrays: Vec<(NodeId, Array)> = graph
        .parameters()
        .enumerate()
        .map(|(at, id)| {
            let node = graph.node(id);
            let shape: Vec<usize> = binding
                .shape(graph, id)
                .into_iter()
                .map(|size| size as usize)
                .collect();
            let given = inputs.iter().find(|(name, _)| *name == node.name);
            let array = match given {
                Some((_, values)) => Array::from_f64(node.dtype, &shape, values),
                None => Ok(seeded(node.dtype, &shape, at as u64)),
            };
            (id, array.expect("the values fit the input's shape"))
        })
        .collect();
    Run {
        results: evaluate(graph, &binding, &arrays).expect("the program evaluates"),
    }
}

/// Runs a program text without header.
pub fn run_text(body: &str, inputs: &[(&str, Vec<f64>)]) -> Run {
    run(&program(body), &[], inputs)
}

/// Small numbers that are exact in every float dtype of at least 16 bits.
pub fn seeded(dtype: DType, shape: &[usize], seed: u64) -> Array {
    let count: usize = shape.iter().product();
    let mut random = Random(seed + 1);
    let values: Vec<Scalar> = (0..count)
        .map(|_| {
            let value = random.below(33) as f64;
            match dtype {
                DType::Bool => Scalar::bool(value < 11.0),
                dtype if dtype.is_float() => Scalar::from_f64(dtype, value / 16.0 - 1.0),
                dtype => Scalar::from_f64(dtype, value),
            }
        })
        .collect();
    Array::from_scalars(dtype, shape, &values).expect("as many values as elements")
}

/// A small generator of numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Numbers counting from 0.
pub fn counting(count: usize) -> Vec<f64> {
    (0..count).map(|at| at as f64).collect()
}

/// The text of every example program, by file name.
pub fn examples() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/programs");
    let mut examples: Vec<(String, String)> = std::fs::read_dir(folder)
        .expect("the examples are beside the crates")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "lw"))
        .map(|path| {
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            let text = std::fs::read_to_string(&path).expect("an example can be read");
            (name.unwrap_or_default(), text)
        })
        .collect();
    examples.sort();
    assert!(examples.len() >= 12, "all the examples are found");
    examples
}
