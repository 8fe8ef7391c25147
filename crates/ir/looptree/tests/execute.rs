//! Executing trees: every program gives what the reference evaluator gives, whatever its loops are.

use loopwright_arena::TiVec;
use loopwright_graph::{Array, Graph, NodeId, evaluate as reference, parse};
use loopwright_looptree::{
    Arithmetic, ExecuteError, LoopTree, NodeMemory, Target, execute, execute_part, parse_schedule,
    parse_tree, print_tree,
};
use loopwright_ops::{DType, Op, OpError, Scalar, cast, evaluate, same_value};
use loopwright_scheduler::default_schedule;
use loopwright_text::Source;

/// The arrays of parameters and results, by node.
#[derive(Clone)]
struct Memory {
    arrays: TiVec<NodeId, Option<Array>>,
    /// By node: the state that it is the new value of.
    states: TiVec<NodeId, Option<NodeId>>,
}

impl Memory {
    fn home(&self, node: NodeId) -> NodeId {
        self.states[node].unwrap_or(node)
    }

    fn get(&self, node: NodeId) -> &Array {
        let array = &self.arrays[self.home(node)];
        array.as_ref().expect("a result has memory")
    }
}

impl NodeMemory for Memory {
    fn bytes(&self, node: NodeId) -> Option<&[u8]> {
        Some(self.arrays[self.home(node)].as_ref()?.bytes())
    }

    fn bytes_mut(&mut self, node: NodeId) -> Option<&mut [u8]> {
        let home = self.home(node);
        Some(self.arrays[home].as_mut()?.bytes_mut())
    }
}

/// A program with sizes.
struct Program {
    graph: Graph,
    sizes: Vec<(&'static str, i64)>,
}

impl Program {
    fn new(text: &str, sizes: &[(&'static str, i64)]) -> Program {
        let source = Source::new("test.lw", format!("loopwright program 1\n{text}"));
        let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
        Program {
            graph: graph.with_stores(),
            sizes: sizes.to_vec(),
        }
    }

    fn tree(&self, lines: &str) -> LoopTree {
        let source = Source::new("test.sched", format!("loopwright schedule 1\n{lines}\n"));
        let schedule = parse_schedule(&source, &self.graph)
            .unwrap_or_else(|error| panic!("{}", error.render(&source)));
        LoopTree::new(&self.graph, &schedule).unwrap_or_else(|error| panic!("{lines}: {error}"))
    }

    fn binding(&self) -> loopwright_graph::Binding {
        self.graph.bind(&self.sizes).expect("all sizes are given")
    }

    fn array(&self, node: NodeId, element: impl Fn(usize) -> Scalar) -> Array {
        let shape = self.binding().shape(&self.graph, node);
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let values: Vec<Scalar> = (0..shape.iter().product()).map(element).collect();
        Array::from_scalars(self.graph.node(node).dtype, &shape, &values).expect("it fits")
    }

    /// Values that repeat, change their sign and are not whole, with a NaN among them.
    fn inputs(&self) -> Vec<(NodeId, Array)> {
        let inputs = self.graph.parameters().map(|node| {
            let dtype = self.graph.node(node).dtype;
            let array = self.array(node, |at| match at % 23 {
                13 => Scalar::nan(dtype).unwrap_or(Scalar::zero(dtype)),
                rest => cast(Scalar::f64((rest * 7 % 11) as f64 * 0.75 - 3.0), dtype),
            });
            (node, array)
        });
        inputs.collect()
    }

    /// The inputs, and results that hold nothing of use yet.
    fn memory(&self) -> Memory {
        let nodes = self.graph.node_ids().count();
        let mut memory = Memory {
            arrays: vec![None; nodes].into(),
            states: vec![None; nodes].into(),
        };
        for (node, array) in self.inputs() {
            memory.arrays[node] = Some(array);
        }
        for output in self.graph.outputs() {
            memory.arrays[output.node] = Some(self.garbage(output.node));
        }
        for update in self.graph.updates() {
            memory.states[update.value] = Some(update.state);
        }
        memory
    }

    fn garbage(&self, node: NodeId) -> Array {
        let mut array = self.array(node, |_| Scalar::zero(self.graph.node(node).dtype));
        array.bytes_mut().fill(0xa5);
        array
    }

    fn results(&self) -> Vec<NodeId> {
        let outputs = self.graph.outputs().iter().map(|output| output.node);
        let updates = self.graph.updates().iter().map(|update| update.value);
        outputs.chain(updates).collect()
    }

    fn check_results(&self, memory: &Memory, what: &str) {
        let expected = reference(&self.graph, &self.binding(), &self.inputs())
            .unwrap_or_else(|error| panic!("{error}"));
        for ((name, expected), node) in expected.iter().zip(self.results()) {
            let got = memory.get(node);
            let alike = |(expected, got)| same_value(expected, got);
            let same = expected.iter().zip(got.iter()).all(alike);
            assert!(
                same,
                "`{name}` under\n{what}\nexpected {expected:?}\ngot {got:?}"
            );
        }
    }

    fn check_tree(&self, tree: &LoopTree) {
        let mut memory = self.memory();
        execute(&self.graph, tree, &self.binding(), &mut memory, evaluate)
            .unwrap_or_else(|error| panic!("{error}\n{}", print_tree(&self.graph, tree)));
        self.check_results(&memory, &print_tree(&self.graph, tree));
    }

    /// Checks the program under these schedules and under default ones.
    fn check(&self, schedules: &[&str]) {
        for lines in schedules {
            self.check_tree(&self.tree(lines));
        }
        let wide = Target {
            vector_bytes: 32,
            vector_registers: 16,
            ..Target::SCALAR
        };
        for target in [Target::SCALAR, wide] {
            let schedule = default_schedule(&self.graph, &target).expect("every graph has one");
            let tree = LoopTree::new(&self.graph, &schedule).expect("the default is legal");
            self.check_tree(&tree);
        }
    }
}

const MATMUL: &str = "
size N
input A: f32[i=12, k=20]
input B: f32[k, j=N]
input bias: f32[j]
C = sum[k](A * B)
output D = max(C + bias, 0)
";

#[test]
fn a_matrix_product_under_many_schedules() {
    let schedules = [
        "C: i, j, k\nD: i, j",
        "C: k, i, j\nD: j, i",
        "C: i, j, k\nD: share=0, i, j",
        "C: i/5, j/4, k, i, j\nD: i/5, j/4, i, j",
        "C: i/5 parallel, j/4 parallel, k/7, k, i unroll, j vectorize\nD: i/5 parallel, j/4 parallel, i, j vectorize",
        "C: k/8, i/7, i/2, j/3, k, i, j\nD: i/7 parallel, i/2, i, j",
        "C: i/100, j/100 parallel, k/100, i, j, k\nD: i/100, j, i",
    ];
    for n in [1, 11, 16] {
        Program::new(MATMUL, &[("N", n)]).check(&schedules);
    }
    Program::new(MATMUL, &[("N", 0)]).check(&schedules);
}

#[test]
fn reductions_fold_in_their_dtype_and_start_from_the_identity() {
    let program = "size N
input h: f16[i=N, j=5]
input q: u8[i, j]
output wide = sum[j](h)
output own = sum[i, j, acc=f16](h)
output bytes = sum[i, acc=i64](q)
output most = max[i](h)
output some = any[j](h > 0)
";
    for n in [0, 1, 9] {
        Program::new(program, &[("N", n)]).check(&[
            "wide: i, j\nown: i, j\nbytes: j, i\nmost: j, i\nsome: i, j",
            "wide: i/2, j/3, i, j\nown: i/4, i, j\nbytes: i/2, j, i\nmost: i, j parallel\nsome: j/2, i parallel, j",
        ]);
    }
}

#[test]
fn extremes_and_scans() {
    let program = "size N
input x: f32[i=3, j=N]
output a = argmax[j](x)
output b = argmin[i](x)
output c = cumsum[j](x)
output d = scan_max[j, reverse](x)
output e = scan_prod[i, exclusive](x)
output f = scan_min[j, exclusive, reverse](x)
";
    for n in [0, 1, 37] {
        Program::new(program, &[("N", n)]).check(&[
            "a: i, j\nb: i, j\nc: i, j\nd: i, j\ne: i, j\nf: i, j",
            "a: j/5, i parallel, j\nb: j/4 parallel, i, j\nc: j/3, i, j\nd: j/3, i parallel, j\ne: j parallel, i\nf: j/10, j/4, i, j unroll",
        ]);
    }
}

#[test]
fn rows_are_sorted_and_scattered() {
    let program = "input x: f32[i=3, j=29]
input base: i32[v=5, c=3]
input ids: i8[t=7]
input y: i32[t, c]
output up = sort[j](x * 2)
output down = argsort[j, desc](x)
output set = scatter[v, set](base + 1, ids, y)
output add = scatter[v, sum](base, ids * 1, y * y)
output rows = base[ids, c] else -1
";
    Program::new(program, &[]).check(&[
        "up: i\ndown: i\nset:\nadd:\nrows: t, c",
        "up: i/2 parallel, i\ndown: i parallel\nadd:\nset:\nrows: c, t/3, t vectorize",
    ]);
}

#[test]
fn views_are_followed_and_guarded() {
    let program = "size N
static s in 0 .. 4
input x: f32[i=N, j=4]
const w: f32[j] = [0.5, -1.5, inf, 2]
flipped[i, j] = x[N - 1 - i, j]
moved[i, j] = flipped[i - 1, j] else 2
odd[i, j] = moved[i, j] if i % 2 == 1 else 3
scaled = odd * w
turned[j, i] = scaled[i, j]
picked[i] = x[i, s]
output turned
output column = picked + f32(index[i] * size(2*N + s))
";
    for (n, s) in [(7, 0), (7, 3), (1, 2), (0, 1)] {
        Program::new(program, &[("N", n), ("s", s)]).check(&[
            "turned: j, i\ncolumn: i",
            "flipped: i, j\nmoved: i, j\nodd: i, j\nturned: j, i\ncolumn: i",
            "moved: i/3, j/2, i, j\nturned: i/3, j/2, i, j vectorize\ncolumn: i/2 parallel, i",
        ]);
    }
}

#[test]
fn states_are_read_before_they_are_overwritten() {
    let swap = "state a: f32[i=8]\nstate b: f32[i]\nstate n: i64\noutput before = a\nupdate a = b\nupdate b = a\nupdate n = n + 1\n";
    Program::new(swap, &[]).check(&[]);
    let line = "state line: i32[i=8]\ninput next: i32\noutput oldest = line[0]\nupdate line = select(index[i] == 7, next, line[i + 1] else 0)\n";
    Program::new(line, &[]).check(&[]);
    // Read and overwritten in the same round.
    let step = Program::new(
        "state w: f32[i=9]\ninput g: f32[i]\nupdate w = w - g\n",
        &[],
    );
    let store = step.graph.node_name(step.graph.updates()[0].value);
    for loops in [
        "i",
        "i parallel",
        "i/4, i vectorize",
        "i/2 parallel, i unroll",
    ] {
        step.check(&[&format!("{store}: {loops}")]);
    }
}

#[test]
fn random_numbers_and_casts() {
    let program = "input seed: u64
input x: f32[n=9]
output bits = random[i=4, j=3](seed)
output u = uniform[i, j](seed)
output bell = normal[i, f16](seed)
output a = i8(x)
output c = f8e4m3(x)
output g = bitcast[u32](x)
";
    Program::new(program, &[]).check(&[]);
}

#[test]
fn a_value_that_is_read_twice_is_computed_once() {
    // 2^60 additions if every reader computed its own.
    let doubled: String = (0..60)
        .map(|at| format!("x{} = x{at} + x{at}\n", at + 1))
        .collect();
    let text = format!("input x0: i64[i=2]\n{doubled}output y = x60 + 1\n");
    let program = Program::new(&text, &[]);
    let mut additions = 0;
    let counting = |op: Op, operands: &[Scalar]| {
        additions += 1;
        evaluate(op, operands)
    };
    let (tree, mut memory) = (program.tree("y: i"), program.memory());
    execute(
        &program.graph,
        &tree,
        &program.binding(),
        &mut memory,
        counting,
    )
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(additions, 2 * 61);
    program.check_results(&memory, "y: i");
}

#[test]
fn loops_run_in_the_order_of_the_tree() {
    let program = Program::new("input x: i64[i=7]\noutput y = -x\n", &[]);
    let visited = |loops: &str| {
        let mut memory = program.memory();
        let x = program.graph.find("x").expect("an input");
        let counted = program.array(x, |at| Scalar::i64(at as i64));
        memory.arrays[x] = Some(counted);
        let mut seen = Vec::new();
        let tree = program.tree(&format!("y: {loops}"));
        let noting = |op: Op, operands: &[Scalar]| {
            seen.extend(operands[0].as_i64());
            evaluate(op, operands)
        };
        execute(
            &program.graph,
            &tree,
            &program.binding(),
            &mut memory,
            noting,
        )
        .unwrap_or_else(|error| panic!("{error}"));
        seen
    };
    assert_eq!(visited("i"), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(visited("i/3 vectorize, i unroll"), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(visited("i/3 parallel, i"), [6, 3, 4, 5, 0, 1, 2]);
    assert_eq!(visited("i/3, i parallel"), [2, 1, 0, 5, 4, 3, 6]);
}

#[test]
fn subtrees_run_apart_on_the_callers_memory() {
    let program = Program::new(
        "input x: f32[i=6, j=5]\na = exp(x)\ns = sum[j](a)\noutput y = a / s\n",
        &[],
    );
    let tree = program.tree("a: i, j\ns: share=0, i, j\ny: share=0, j, i");
    let (graph, binding) = (&program.graph, program.binding());
    let mut memory = program.memory();
    let alone = |memory: &mut Memory, at: usize| {
        let roots = &tree.roots()[at..=at];
        execute_part(graph, &tree, roots, &binding, memory, evaluate).map_err(|e| e.to_string())
    };
    assert_eq!(
        alone(&mut memory, 0),
        Ok(()),
        "what nobody reads is held inside"
    );
    assert_eq!(
        alone(&mut memory, 1),
        Err("no memory is given for `a`".to_owned())
    );
    for name in ["a", "s"] {
        let node = graph.find(name).expect("a node");
        memory.arrays[node] = Some(program.garbage(node));
    }
    for at in 0..3 {
        assert_eq!(alone(&mut memory, at), Ok(()));
    }
    program.check_results(&memory, "three parts");
}

/// Arithmetic with casts of its own.
struct Counting {
    casts: usize,
}

impl Arithmetic for &mut Counting {
    type Error = OpError;

    fn map(&mut self, op: Op, operands: &[Scalar]) -> Result<Scalar, OpError> {
        evaluate(op, operands)
    }

    fn cast(&mut self, value: Scalar, to: DType) -> Result<Scalar, OpError> {
        self.casts += 1;
        Ok(cast(value, to))
    }
}

#[test]
fn casts_are_the_callers() {
    let program = Program::new("input x: f16[i=3, j=4]\noutput y = sum[j](x)\n", &[]);
    let (tree, mut memory) = (program.tree("y: i, j"), program.memory());
    let mut counting = Counting { casts: 0 };
    execute(
        &program.graph,
        &tree,
        &program.binding(),
        &mut memory,
        &mut counting,
    )
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(counting.casts, 12 + 3, "every element, and every result");
    program.check_results(&memory, "y: i, j");
}

fn failure(
    program: &Program,
    tree: &LoopTree,
    memory: &mut Memory,
    arithmetic: impl Arithmetic,
) -> String {
    let run = execute(&program.graph, tree, &program.binding(), memory, arithmetic);
    run.expect_err("it does not run").to_string()
}

#[test]
fn what_the_arithmetic_refuses_names_the_node() {
    let program = Program::new("input x: f32[i=4]\na = x * 2\noutput y = sqrt(a)\n", &[]);
    let tree = program.tree("a: i\ny: i");
    let refusing = |op: Op, operands: &[Scalar]| match op {
        Op::Sqrt => Err(format!("no `{op}` here")),
        op => evaluate(op, operands).map_err(|error| error.to_string()),
    };
    let mut memory = program.memory();
    let run = execute(
        &program.graph,
        &tree,
        &program.binding(),
        &mut memory,
        refusing,
    );
    let expected = ExecuteError::Arithmetic {
        node: "y".to_owned(),
        error: "no `sqrt` here".to_owned(),
    };
    assert_eq!(run, Err(expected));
    let wrong = |_: Op, _: &[Scalar]| Ok::<_, OpError>(Scalar::i64(1));
    assert_eq!(
        failure(&program, &tree, &mut memory, wrong),
        "`a`: the arithmetic gives i64 where f32 is computed"
    );
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    let program = Program::new("input x: f32[i=4]\noutput y = x * 2\n", &[]);
    let tree = program.tree("y: i");
    let place = |name: &str| program.graph.find(name).expect("a node");
    let short = Array::zeros(DType::F32, &[3]).expect("it fits");
    let mut memory = program.memory();
    memory.arrays[place("x")] = None;
    assert_eq!(
        failure(&program, &tree, &mut memory, evaluate),
        "no memory is given for `x`"
    );
    memory.arrays[place("x")] = Some(short.clone());
    assert_eq!(
        failure(&program, &tree, &mut memory, evaluate),
        "`x` has 16 bytes, and memory of 12 bytes is given"
    );
    let mut memory = program.memory();
    memory.arrays[place("y")] = Some(short);
    assert_eq!(
        failure(&program, &tree, &mut memory, evaluate),
        "`y` has 16 bytes, and memory of 12 bytes is given"
    );
}

#[test]
fn a_step_that_cannot_be_held_is_refused() {
    let program = Program::new(
        "dim i = 1073741824, j = 536870912\na = index[i] + index[j]\noutput s = sum[i, j](a)\n",
        &[],
    );
    let tree = program.tree("a: i, j\ns: share=0, i, j");
    assert_eq!(
        failure(&program, &tree, &mut program.memory(), evaluate),
        "there is no memory to hold `a`"
    );
}

#[test]
fn results_without_memory_are_refused() {
    let program = Program::new(
        "state w: f32[i=4]\noutput y = w * 2\nupdate w = w + 1\n",
        &[],
    );
    let schedule = default_schedule(&program.graph, &Target::SCALAR).expect("it has one");
    let tree = LoopTree::new(&program.graph, &schedule).expect("the default is legal");
    for node in program.results() {
        let mut memory = program.memory();
        // A state is there to be read, and its new value has nowhere to go.
        memory.states[node] = None;
        memory.arrays[node] = None;
        assert_eq!(
            failure(&program, &tree, &mut memory, evaluate),
            format!("no memory is given for `{}`", program.graph.node_name(node))
        );
    }
}

#[test]
fn a_step_that_runs_twice_folds_from_the_identity_twice() {
    let program = Program::new(
        "input x: f32[i=4]\noutput s = sum[i](x)\noutput c = cumsum[i](x)\ninput z: f32[k=3]\noutput y = z * 2\n",
        &[],
    );
    let text = "loopwright tree 1\nfor k {\nfor i {\ns\n}\nfor i {\nc\n}\ny\n}\n";
    let source = Source::new("test.tree", text);
    let tree = parse_tree(&source, &program.graph)
        .unwrap_or_else(|error| panic!("{}", error.render(&source)));
    program.check_tree(&tree);
}

#[test]
fn a_tree_that_does_not_compute_the_program_is_refused() {
    let program = Program::new(
        "input x: f32[i=4, j=3]\na = x * 2\ns = sum[j](a)\noutput y = a / s\n",
        &[],
    );
    let complaint = |body: &str| {
        let lines = body.replace("{ ", "{\n").replace(" }", "\n}");
        let source = Source::new("test.tree", format!("loopwright tree 1\n{lines}\n"));
        let tree = parse_tree(&source, &program.graph)
            .unwrap_or_else(|error| panic!("{}", error.render(&source)));
        let message = failure(&program, &tree, &mut program.memory(), evaluate);
        let start = "the tree does not compute the program: ";
        message.strip_prefix(start).unwrap_or(&message).to_owned()
    };
    for (body, expected) in [
        (
            "for i { for j { y } }\nfor i { for j { s } }",
            "`s` is read before it is computed",
        ),
        (
            "for i { for j { y } }",
            "`s` has no leaf, and cannot be computed where it is read",
        ),
        (
            "for i { s }",
            "`a` is computed outside the loops over its dimensions",
        ),
        (
            "for j { for i/2 { s } }\nfor i { for j { y } }",
            "`s` is read before it is computed",
        ),
        (
            "for i { for j { x } }",
            "`x` is given from outside, and has a leaf",
        ),
    ] {
        assert_eq!(complaint(body), expected, "{body}");
    }
}
