//! A matrix product from the graph to the interpreter.

use loopwright_graph::{DimId, Graph, GraphBuilder};
use loopwright_kernel::Argument;
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::passes::Pipeline;
use loopwright_looptree::{Target, print_tree};
use loopwright_lower::lower;
use loopwright_ops::{DType, Op, ReduceOp};
use loopwright_scheduler::{Order, schedule};
use loopwright_symbolic::Expr;

const WIDE: Target = Target {
    vector_bytes: 64,
    vector_registers: 32,
    ..Target::SCALAR
};

fn matmul(sizes: [i64; 3]) -> Graph {
    let mut b = GraphBuilder::new();
    let dims: Vec<DimId> = ["i", "k", "j"]
        .iter()
        .zip(sizes)
        .map(|(name, size)| {
            let dim = b.dim(name).unwrap();
            b.set_size(dim, Expr::constant(size), "the test");
            dim
        })
        .collect();
    let a = b.input("A", DType::F32, &[dims[0], dims[1]]).unwrap();
    let c = b.input("B", DType::F32, &[dims[1], dims[2]]).unwrap();
    let product = b.map(Op::Mul, &[a, c]).unwrap();
    let sum = b.reduce(ReduceOp::Sum, product, &[dims[1]], None).unwrap();
    b.output("C", sum).unwrap();
    b.finish().unwrap()
}

#[test]
fn tiled_products_equal_plain_ones_at_all_tails() {
    for sizes in [
        [1, 1, 1],
        [8, 3, 48],
        [9, 5, 50],
        [16, 2, 112],
        [3, 4, 7],
        [0, 3, 5],
        [5, 0, 64],
    ] {
        let graph = matmul(sizes).with_stores();
        let plan = schedule(graph, &WIDE, Order::Free).unwrap().plan;
        let lowered = lower(&plan, "program").unwrap();
        loopwright_kernel::validate(&lowered.module)
            .unwrap_or_else(|e| panic!("{e}\n{}", lowered.module));
        let mut module = lowered.module.clone();
        Pipeline::standard().run(&mut module, &mut |name, module| {
            loopwright_kernel::validate(module).unwrap_or_else(|e| panic!("{name}: {e}\n{module}"));
        });
        if std::env::var("SHOW").is_ok() {
            println!(
                "{}\n{}\n{}",
                print_tree(plan.graph(), plan.tree()),
                lowered.module,
                module
            );
        }
        let [m, k, n] = sizes.map(|size| size as usize);
        let a: Vec<f32> = (0..m * k).map(|i| (i % 7) as f32 - 3.0).collect();
        let b: Vec<f32> = (0..k * n).map(|i| (i % 5) as f32 - 2.0).collect();
        let bytes = |x: &[f32]| x.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        for module in [&lowered.module, &module] {
            let mut c = vec![0u8; m * n * 4];
            let (a_bytes, b_bytes) = (bytes(&a), bytes(&b));
            let mut args = [
                Argument::Read(&a_bytes),
                Argument::Read(&b_bytes),
                Argument::Write(&mut c),
            ];
            interpret(module, "program", &mut args, Grid::default())
                .unwrap_or_else(|e| panic!("{sizes:?}: {e}\n{module}"));
            for i in 0..m {
                for j in 0..n {
                    let at = (i * n + j) * 4;
                    let got = f32::from_le_bytes(c[at..at + 4].try_into().unwrap());
                    let want: f32 = (0..k).map(|x| a[i * k + x] * b[x * n + j]).sum();
                    assert_eq!(got, want, "{sizes:?} at {i},{j}");
                }
            }
        }
    }
}
