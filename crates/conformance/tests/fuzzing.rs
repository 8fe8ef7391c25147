//! Fuzzing finds nothing on the backends, and finds a pass that is broken.

use loopwright_backend::KernelBackend;
use loopwright_cc::{CcBackend, Settings};
use loopwright_conformance::generate::random_case;
use loopwright_conformance::oracle::{Blame, Oracle};
use loopwright_conformance::shrink::{shrink, write_failure};
use loopwright_conformance::{CheckOptions, check};
use loopwright_graph::parse;
use loopwright_interp::Interp;
use loopwright_kernel::passes::{BROKEN, Pipeline};
use loopwright_text::Source;
use std::sync::Arc;

fn cc() -> Option<Arc<dyn KernelBackend>> {
    let settings = Settings {
        optimisation: "1".to_owned(),
        ..Settings::from_env()
    };
    let backend = CcBackend::new(settings);
    match backend.availability() {
        Ok(()) => Some(Arc::new(backend)),
        Err(why) if std::env::var_os("CI").is_none() => {
            eprintln!("SKIP: {why}");
            None
        }
        Err(why) => panic!("CI must have a C compiler: {why}"),
    }
}

fn assert_clean(backend: Arc<dyn KernelBackend>, programs: u64, seed: u64) {
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
    assert_clean(Arc::new(Interp), 2000, 1_000_000);
}

#[test]
fn cc_agrees_with_the_reference() {
    if let Some(backend) = cc() {
        assert_clean(backend, 320, 2_000_000);
    }
}

#[test]
fn broken_passes_are_found_named_and_shrunk() {
    for name in BROKEN {
        let pipeline = Pipeline::with_broken(name).expect("it is one of the broken passes");
        let oracle = Oracle::new(Arc::new(Interp)).with_pipeline(pipeline);
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
    let report = check(Arc::new(wrong::Wrong), &options);
    assert!(report.failed > 0 && report.programs >= 32, "{report:?}");
    let fuzzed = report
        .failures
        .iter()
        .find(|failure| failure.file.is_some());
    let fuzzed = fuzzed.unwrap_or_else(|| panic!("fuzzing fails too: {report:?}"));
    assert!(
        fuzzed.message.starts_with("the backend is to blame"),
        "{}",
        fuzzed.message
    );

    let report = check(Arc::new(Interp), &options);
    assert_eq!(
        (report.failed, report.skipped, report.programs),
        (0, 0, 64),
        "{report:?}"
    );
    assert!(report.passed > 1000, "{report:?}");
}

/// An interpreter that takes the smaller for the larger.
mod wrong {
    use loopwright_backend::{
        BackendError, CompileOptions, Executable, KernelBackend, Target, Unavailable,
    };
    use loopwright_interp::Interp;
    use loopwright_kernel::{Block, Inst, Module, Stmt};
    use loopwright_ops::Op;
    use std::sync::Arc;

    pub struct Wrong;

    impl KernelBackend for Wrong {
        fn name(&self) -> &'static str {
            "wrong"
        }

        fn availability(&self) -> Result<(), Unavailable> {
            Ok(())
        }

        fn target(&self) -> Target {
            Target::SCALAR
        }

        fn compile(
            &self,
            module: &Module,
            options: &CompileOptions,
        ) -> Result<Arc<dyn Executable>, BackendError> {
            let mut module = module.clone();
            for function in &mut module.functions {
                min_for_max(&mut function.body);
            }
            Interp.compile(&module, options)
        }
    }

    fn min_for_max(block: &mut Block) {
        for stmt in block {
            if let Stmt::Let(_, Inst::Map(op @ Op::Max, _)) = stmt {
                *op = Op::Min;
            }
            match stmt {
                Stmt::For { body, .. } => min_for_max(body),
                Stmt::If {
                    then, otherwise, ..
                } => {
                    min_for_max(then);
                    min_for_max(otherwise);
                }
                Stmt::While { head, body, .. } => {
                    min_for_max(head);
                    min_for_max(body);
                }
                _ => {}
            }
        }
    }
}
