//! Products of tiles in the registers of a matrix unit: the code that is written. What it computes is compared by the suite
//! of conformance, on machines that have such a unit.

use loopwright_backend::{CompileOptions, Describe, KernelBackend};
use loopwright_graph::{Graph, parse};
use loopwright_kernel::Module;
use loopwright_kernel::passes::Pipeline;
use loopwright_lower::lower;
use loopwright_scheduler::{Order, schedule};
use loopwright_text::Source;
use loopwright_x86::{Level, X86};

fn graph(body: &str) -> Graph {
    let source = Source::new("tiles.lw", format!("loopwright program 1\n{body}\n"));
    parse(&source).unwrap_or_else(|error| panic!("{error:?}"))
}

/// A product of matrices of these sizes.
fn product(dtype: &str, sum: &str, [i, k, j]: [u32; 3]) -> Graph {
    graph(&format!(
        "input A: {dtype}[i={i}, k={k}]\ninput B: {dtype}[k, j={j}]\n\
         output C = sum[k]({sum}(A) * {sum}(B))"
    ))
}

/// The kernel that the schedule for a machine with a matrix unit gives.
fn kernel(graph: &Graph, backend: &X86) -> Module {
    let graph = graph.clone().with_stores();
    let made = schedule(graph, &backend.target(), Order::Free).unwrap();
    let mut module = lower(&made.plan, "program").unwrap().module;
    Pipeline::standard().run(&mut module, &mut |_, _| {});
    module
}

#[test]
fn a_product_of_tiles_is_one_instruction() {
    let backend = X86::new().with_matrix_unit();
    if backend.level() != Ok(Level::Avx512) {
        println!("skipped: schedules for a matrix unit are made of vectors of 64 bytes");
        return;
    }
    for (dtype, sum, dot) in [
        ("bf16", "f32", "tdpbf16ps"),
        ("i8", "i32", "tdpbssd"),
        ("u8", "i32", "tdpbuud"),
    ] {
        let module = kernel(&product(dtype, sum, [512, 1024, 512]), &backend);
        let compiled = backend
            .compile(&module, &CompileOptions::default())
            .unwrap();
        let code = compiled.code();
        if std::env::var("SHOW").is_ok() {
            println!("{code}");
        }
        let count = |what: &str| code.matches(what).count();
        // A block of two by two tiles, for which two and two are read.
        assert_eq!(count(dot), 4, "{code}");
        assert_eq!(count("tileloadd"), 4, "{code}");
        assert_eq!(count("tilestored"), 4, "{code}");
        assert_eq!(count("ldtilecfg"), count("tilerelease"), "{code}");
        let strict = CompileOptions {
            strict: true,
            ..CompileOptions::default()
        };
        let compiled = backend.compile(&module, &strict).unwrap();
        assert!(!compiled.code().contains("tdp"), "{}", compiled.code());
    }
}
