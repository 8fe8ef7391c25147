//! Fuzzing finds nothing on the backends, and finds a pass that is broken.

mod support;

use loopwright_backend::Backend;
use loopwright_conformance::generate::random_case;
use loopwright_conformance::oracle::{Blame, Oracle};
use loopwright_conformance::shrink::{shrink, write_failure};
use loopwright_conformance::{CheckOptions, check};
use loopwright_graph::parse;
use loopwright_interp::Interp;
use loopwright_kernel::passes::{BROKEN, Pipeline};
use loopwright_text::Source;

fn assert_clean(backend: Backend, programs: u64, seed: u64) {
    let oracle = Oracle::new(backend);
    let mut failures = Vec::new();
    let seeds: Vec<u64> = (seed..seed + programs).collect();
    for batch in seeds.chunks(32) {
        let mut ready = Vec::new();
        for seed in batch {
            match oracle.prepare(&random_case(*seed)) {
                Ok(prepared) => ready.push((*seed, prepared)),
                Err(mismatch) => failures.push(format!("program {seed}: {mismatch}")),
            }
        }
        let (seeds, ready): (Vec<u64>, Vec<_>) = ready.into_iter().unzip();
        for (seed, result) in seeds.into_iter().zip(oracle.check_batch(&ready)) {
            if let Err(mismatch) = result {
                failures.push(format!("program {seed}: {mismatch}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn interp_agrees_with_the_reference() {
    assert_clean(Backend::kernel_backend(Interp), 2000, 1_000_000);
}

#[test]
fn cc_agrees_with_the_reference() {
    if let Some(backend) = support::cc("1") {
        assert_clean(backend, 320, 2_000_000);
    }
}

#[test]
fn broken_passes_are_found_named_and_shrunk() {
    for name in BROKEN {
        let pipeline = Pipeline::with_broken(name).expect("it is one of the broken passes");
        let oracle = Oracle::new(Backend::kernel_backend(Interp)).with_pipeline(pipeline);
        let found = (0..2000).find_map(|seed| {
            let case = random_case(seed);
            let mismatch = oracle.prepare(&case).err()?;
            Some((case, mismatch))
        });
        let (case, mismatch) = found.unwrap_or_else(|| panic!("`{name}` was not found"));
        assert_eq!(
            mismatch.blame,
            Blame::Pass((*name).to_owned()),
            "{mismatch}"
        );
        let small = shrink(&oracle, &case, &mismatch, 600);
        assert_eq!(small.mismatch.blame, mismatch.blame);
        let nodes = small.case.computing_nodes();
        assert!(
            nodes <= 6,
            "`{name}` is shrunk to {nodes} nodes:\n{}",
            small.case.graph
        );

        let directory = tempfile::tempdir().expect("there is room for a directory");
        let path = write_failure(directory.path(), "broken", "interp", &small)
            .expect("the directory can be written to");
        let text = std::fs::read_to_string(&path).expect("the file was written");
        assert!(
            text.contains(&format!("# pass `{name}` is to blame: ")),
            "{text}"
        );
        let source = Source::new("broken.lw", text);
        let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
        assert_eq!(graph, small.case.graph);
    }
}

#[test]
fn a_seed_names_a_case() {
    for seed in [0, 7, 12345] {
        assert_eq!(random_case(seed), random_case(seed));
    }
}

/// The generator reaches every kind of node, every op and every dtype.
#[test]
fn programs_have_everything() {
    use loopwright_graph::NodeOp;
    use loopwright_ops::{DType, Op};
    use std::collections::BTreeSet;
    let (mut ops, mut dtypes, mut kinds) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut symbolic, mut empty, mut updates) = (0, 0, 0);
    for seed in 0..3000 {
        let case = random_case(seed);
        let graph = &case.graph;
        symbolic += usize::from(!case.sizes.is_empty());
        updates += graph.updates().len();
        for (_, array) in &case.inputs {
            empty += usize::from(array.is_empty());
        }
        for node in graph.node_ids() {
            let parts = graph.node(node);
            dtypes.insert(parts.dtype);
            if let NodeOp::Map(op) = parts.op {
                ops.insert(op);
            }
            let kind = format!("{:?}", parts.op);
            let kind = kind.split([' ', '(']).next().unwrap_or_default().to_owned();
            kinds.insert(kind);
        }
    }
    let missing: Vec<&Op> = Op::ALL.iter().filter(|op| !ops.contains(op)).collect();
    assert!(missing.is_empty(), "no program has {missing:?}");
    assert_eq!(dtypes.len(), DType::ALL.len());
    assert_eq!(kinds.len(), 16, "{kinds:?}");
    assert!(symbolic > 500 && empty > 20 && updates > 300);
}

#[test]
fn a_backend_that_is_wrong_fails_the_check() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let options = CheckOptions {
        seconds: 600,
        programs: Some(64),
        threads: 2,
        failure_dir: directory.path().to_owned(),
        ..CheckOptions::default()
    };
    let report = check(Backend::kernel_backend(wrong::Wrong), &options);
    let failures = &report.failures;
    assert!(report.programs >= 32, "{}", report.programs);
    assert!(
        !failures
            .iter()
            .any(|failure| failure.name.starts_with("mul")),
        "{failures:?}"
    );
    let fuzzed = failures.iter().find(|failure| failure.file.is_some());
    let fuzzed = fuzzed.unwrap_or_else(|| panic!("fuzzing fails too: {failures:?}"));
    assert!(
        fuzzed.message.starts_with("the backend is to blame"),
        "{}",
        fuzzed.message
    );

    let report = check(Backend::kernel_backend(Interp), &options);
    assert_eq!(
        (report.failed, report.blocked, report.programs),
        (0, 0, 64),
        "{:?}",
        report.failures
    );
    assert!(report.passed > 1000, "{}", report.passed);
}

/// An interpreter that adds where it should multiply, but only deep inside of loops, where no row of ops
/// looks.
mod wrong {
    use loopwright_backend::{BackendError, CompileOptions, Describe, Executable, KernelBackend};
    use loopwright_interp::Interp;
    use loopwright_kernel::{Block, Function, Inst, Module, Stmt, Type};
    use loopwright_ops::Op;
    use std::sync::Arc;

    pub struct Wrong;

    impl Describe for Wrong {
        fn name(&self) -> &str {
            "wrong"
        }
    }

    impl KernelBackend for Wrong {
        fn compile(
            &self,
            module: &Module,
            options: &CompileOptions,
        ) -> Result<Arc<dyn Executable>, BackendError> {
            let mut module = module.clone();
            for function in &mut module.functions {
                let mut body = std::mem::take(&mut function.body);
                add_for_mul(function, &mut body, 0);
                function.body = body;
            }
            Interp.compile(&module, options)
        }
    }

    fn add_for_mul(function: &Function, block: &mut Block, depth: u32) {
        for stmt in block {
            if let Stmt::Let(value, Inst::Map(op @ Op::Mul, _)) = stmt
                && depth >= 2
                && *function.ty(*value) != Type::INDEX
            {
                *op = Op::Add;
            }
            let inner = depth + u32::from(matches!(stmt, Stmt::For { .. }));
            for block in stmt.blocks_mut().into_iter().flatten() {
                add_for_mul(function, block, inner);
            }
        }
    }
}
