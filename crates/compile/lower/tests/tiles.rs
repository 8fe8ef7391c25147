//! Contractions in the tiles of a matrix unit, from the graph to the interpreter.

use loopwright_graph::{Graph, parse};
use loopwright_kernel::Argument;
use loopwright_kernel::Module;
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::passes::Pipeline;
use loopwright_looptree::{MatrixUnit, Target};
use loopwright_lower::{KernelParam, Lowered, lower};
use loopwright_ops::{DType, Scalar};
use loopwright_scheduler::{Order, schedule};
use loopwright_text::Source;

/// A machine with a matrix unit.
const UNIT: Target = Target {
    vector_bytes: 64,
    vector_registers: 32,
    matrix_unit: Some(MatrixUnit {
        rows: 16,
        row_bytes: 64,
        accumulators: 4,
    }),
    ..Target::SCALAR
};

fn graph(body: &str) -> Graph {
    let text = format!("loopwright program 1\n{body}\n");
    let source = Source::new("tiles.lw", text);
    let graph = parse(&source).unwrap_or_else(|error| panic!("{error:?}"));
    graph.with_stores()
}

fn lowered(graph: &Graph, target: &Target) -> (Graph, Lowered) {
    let plan = schedule(graph.clone(), target, Order::Free).unwrap().plan;
    let mut lowered = lower(&plan, "program").unwrap();
    let check = |name: &str, module: &Module| {
        loopwright_kernel::validate(module).unwrap_or_else(|e| panic!("{name}: {e}\n{module}"));
    };
    check("lower", &lowered.module);
    Pipeline::standard().run(&mut lowered.module, &mut |name, module| check(name, module));
    (Graph::clone(plan.graph()), lowered)
}

/// The bytes of integers from -2 to 2, or from 0 to 4.
fn whole(dtype: DType, count: usize, seed: usize) -> Vec<u8> {
    let least = if dtype == DType::U8 { 0 } else { -2 };
    let number = |at: usize| ((at + seed) * 7919 % 101 % 5) as i64 + least;
    let elements = (0..count).map(|at| Scalar::from_i64(dtype, number(at)));
    elements
        .flat_map(|scalar| scalar.bits().to_le_bytes()[..dtype.bytes()].to_vec())
        .collect()
}

/// Runs a program on numbers that no sum rounds, and gives the bytes of its output.
fn run(graph: &Graph, lowered: &Lowered) -> Vec<u8> {
    let elements = |node| {
        let dims = graph.node(node).dims.iter();
        let sizes = dims.map(|dim| graph.dim(*dim).size.as_const().unwrap() as usize);
        sizes.product::<usize>()
    };
    let mut memory: Vec<(bool, Vec<u64>, usize)> = Vec::new();
    for (at, param) in lowered.params.iter().enumerate() {
        let (write, bytes) = match param {
            KernelParam::Parameter(node) => {
                let dtype = graph.node(*node).dtype;
                (false, whole(dtype, elements(*node), at))
            }
            KernelParam::Output(number) => {
                let node = graph.outputs()[*number as usize].node;
                let bytes = elements(node) * graph.node(node).dtype.bytes();
                (true, vec![0; bytes])
            }
            KernelParam::Scratch(number) => {
                let scratch = &lowered.scratch[*number as usize];
                let count = scratch.elements.as_const().unwrap() as usize;
                (true, vec![0xa5; count * scratch.dtype.bytes()])
            }
            other => panic!("no such parameter is expected: {other:?}"),
        };
        // Words keep the memory aligned.
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(&bytes);
        memory.push((write, words, bytes.len()));
    }
    let mut arguments: Vec<Argument<'_>> = memory
        .iter_mut()
        .map(|(write, words, bytes)| {
            let all = &mut bytemuck::cast_slice_mut::<u64, u8>(words)[..*bytes];
            match write {
                true => Argument::Write(all),
                false => Argument::Read(all),
            }
        })
        .collect();
    interpret(&lowered.module, "program", &mut arguments, Grid::default()).unwrap();
    let output = lowered
        .params
        .iter()
        .position(|param| matches!(param, KernelParam::Output(0)))
        .unwrap();
    let (_, words, bytes) = &memory[output];
    bytemuck::cast_slice::<u64, u8>(words)[..*bytes].to_vec()
}

const PROGRAMS: [(&str, &str); 6] = [
    (
        "bf16, summed in f32 and rounded once",
        "input A: bf16[i=64, k=96]\ninput B: bf16[k, j=32]\n\
         output C = bf16(sum[k](f32(A) * f32(B)))",
    ),
    (
        "8-bit integers",
        "input A: i8[i=32, k=128]\ninput B: i8[k, j=64]\noutput C = sum[k](i32(A) * i32(B))",
    ),
    (
        "8-bit integers without a sign, the factors exchanged",
        "input A: u8[i=32, k=128]\ninput B: u8[k, j=64]\noutput C = sum[k](i32(B) * i32(A))",
    ),
    (
        "the right factor the other way round",
        "input A: bf16[i=32, k=64]\ninput B: bf16[j=32, k]\noutput C = sum[k](f32(A) * f32(B))",
    ),
    (
        "batches, the right factor the same for all",
        "input A: bf16[b=3, i=32, k=64]\ninput B: bf16[k, j=32]\n\
         output C = sum[k](f32(A) * f32(B))",
    ),
    (
        "batches of both, and what follows",
        "input A: bf16[b=2, i=32, k=64]\ninput B: bf16[b, k, j=32]\ninput x: f32[j]\n\
         output C = max(sum[k](f32(A) * f32(B)) + x, 0.0)",
    ),
];

#[test]
fn products_in_tiles_equal_plain_ones() {
    for (what, body) in PROGRAMS {
        let graph = graph(body);
        let (of_tiles, tiles) = lowered(&graph, &UNIT);
        let (of_plain, plain) = lowered(&graph, &Target::SCALAR);
        let text = tiles.module.to_string();
        assert!(text.contains("tile_mma"), "{what}:\n{text}");
        assert_eq!(tiles.notes, [] as [String; 0], "{what}");
        assert_eq!(run(&of_tiles, &tiles), run(&of_plain, &plain), "{what}");
    }
}

#[test]
fn what_is_not_whole_tiles_is_not_for_the_unit() {
    for (what, body) in [
        (
            "rows left over",
            "input A: bf16[i=40, k=64]\ninput B: bf16[k, j=32]\noutput C = sum[k](f32(A) * f32(B))",
        ),
        (
            "a size that is not known",
            "size N\ninput A: bf16[i=N, k=64]\ninput B: bf16[k, j=32]\n\
             output C = sum[k](f32(A) * f32(B))",
        ),
        (
            "f32",
            "input A: f32[i=32, k=64]\ninput B: f32[k, j=32]\noutput C = sum[k](A * B)",
        ),
        (
            "a sum that is rounded to bf16 at each step of the program",
            "input A: bf16[i=32, k=64]\ninput B: bf16[k, j=32]\noutput C = sum[k](A * B)",
        ),
        (
            "a largest product",
            "input A: bf16[i=32, k=64]\ninput B: bf16[k, j=32]\noutput C = max[k](f32(A) * f32(B))",
        ),
    ] {
        let (_, lowered) = lowered(&graph(body), &UNIT);
        let text = lowered.module.to_string();
        assert!(!text.contains("tile_mma"), "{what}:\n{text}");
    }
}

#[test]
fn an_order_that_is_kept_is_not_for_the_unit() {
    let graph = graph(PROGRAMS[0].1);
    let explained = schedule(graph, &UNIT, Order::Kept).unwrap();
    let schedule = explained.plan.schedule();
    let tiles = |step: &loopwright_looptree::NodeSchedule| {
        let mut loops = step.loops.iter();
        loops.any(|spec| spec.annotation == loopwright_looptree::Annotation::Tile)
    };
    assert!(!schedule.steps.iter().any(tiles));
}
