//! A program in parts computes what the program computes, however it is cut and delegated.

use loopwright_conformance::Rng;
use loopwright_conformance::features::FEATURES;
use loopwright_conformance::generate::{Arithmetic, Case, random_case};
use loopwright_graph::{Array, Binding, NodeOp, evaluate};
use loopwright_kernel::Argument;
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::{Access, FunctionId, Module, validate};
use loopwright_looptree::{
    Plan, Target, parse_schedule, parse_tree, parts_by_delegate, print_tree,
};
use loopwright_lower::{KernelParam, Lowered, lower, lower_parts};
use loopwright_ops::{DType, Scalar, same_value};
use loopwright_scheduler::{Order, schedule};
use loopwright_text::Source;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A case with what the reference evaluator makes of it.
struct Expected<'c> {
    case: &'c Case,
    plan: Plan,
    binding: Binding,
    results: Vec<(String, Array)>,
}

impl<'c> Expected<'c> {
    fn new(case: &'c Case) -> Expected<'c> {
        let binding = case.graph.bind(&case.sizes()).expect("the sizes fit");
        let results = evaluate(&case.graph, &binding, &case.inputs).expect("the case is a program");
        let program = case.graph.clone().with_stores();
        let plan = match &case.schedule {
            Some(given) => Plan::new(program, given.clone()).expect("the schedule is legal"),
            None => {
                let made = schedule(program, &Target::SCALAR, Order::Free);
                made.expect("it has a schedule").plan
            }
        };
        let binding = plan.graph().bind(&case.sizes()).expect("the sizes fit");
        Expected {
            case,
            plan,
            binding,
            results,
        }
    }

    /// What a parameter holds before anything runs; nothing useful where nothing is given.
    fn initial(&self, param: KernelParam, scratch: &Lowered) -> Vec<u8> {
        let (graph, binding) = (self.plan.graph(), &self.binding);
        let garbage = |dtype: DType, elements: i64| vec![0xa5; elements as usize * dtype.bytes()];
        match param {
            KernelParam::Parameter(node) => {
                let given = self.case.inputs.iter().find(|(given, _)| *given == node);
                given.expect("every parameter is given").1.bytes().to_vec()
            }
            KernelParam::Constant(node) => {
                let NodeOp::Constant(values) = &graph.node(node).op else {
                    panic!("a constant is one");
                };
                let mut bytes = garbage(graph.node(node).dtype, values.len() as i64);
                let width = graph.node(node).dtype.bytes();
                for (value, place) in values.iter().zip(bytes.chunks_mut(width)) {
                    value.write(place);
                }
                bytes
            }
            KernelParam::Output(at) => {
                let node = graph.outputs()[at as usize].node;
                let elements = binding.elements(graph, node);
                garbage(graph.node(node).dtype, elements)
            }
            KernelParam::Scratch(at) => {
                let scratch = &scratch.scratch[at as usize];
                let value = |symbol| Some(binding.value(symbol));
                let elements = scratch.elements.evaluate(&value).expect("sizes are bound");
                garbage(scratch.dtype, elements.max(0))
            }
            KernelParam::Size(_) | KernelParam::Log => panic!("{param:?} is no memory"),
        }
    }

    /// Runs parts one after the other on memory that they share, and compares what they leave.
    fn check(&self, parts: &[Lowered], modules: &[Module]) -> Result<(), String> {
        let mut memory: HashMap<KernelParam, Vec<u8>> = HashMap::new();
        for (part, module) in parts.iter().zip(modules) {
            for param in &part.params {
                if !matches!(param, KernelParam::Size(_)) {
                    let initial = || self.initial(*param, part);
                    memory.entry(*param).or_insert_with(initial);
                }
            }
            let mut taken: Vec<Option<Vec<u8>>> = part
                .params
                .iter()
                .map(|param| memory.remove(param))
                .collect();
            let kernel = &module.functions[FunctionId(0)];
            let params = part.params.iter().zip(&kernel.params).zip(&mut taken);
            let mut arguments: Vec<Argument<'_>> = params
                .map(|((param, declared), bytes)| match (param, bytes) {
                    (KernelParam::Size(symbol), _) => {
                        Argument::Scalar(Scalar::i64(self.binding.value(*symbol)))
                    }
                    (_, Some(bytes)) => match declared.access {
                        Access::Read => Argument::Read(bytes),
                        Access::Write | Access::ReadWrite => Argument::Write(bytes),
                    },
                    (_, None) => panic!("{param:?} stands twice among the parameters"),
                })
                .collect();
            interpret(module, &kernel.name, &mut arguments, Grid::default())
                .map_err(|error| format!("{}: {error}", kernel.name))?;
            drop(arguments);
            for (param, bytes) in part.params.iter().zip(taken) {
                memory.extend(bytes.map(|bytes| (*param, bytes)));
            }
        }
        let graph = self.plan.graph();
        let outputs = (0..graph.outputs().len()).map(|at| KernelParam::Output(at as u32));
        let updates = graph.updates().iter();
        let states = updates.map(|update| KernelParam::Parameter(update.state));
        for ((name, expected), param) in self.results.iter().zip(outputs.chain(states)) {
            // What has no elements may be no part's parameter.
            let got = memory.get(&param).map_or(&[][..], Vec::as_slice);
            if got.len() != expected.bytes().len() {
                return Err(format!("`{name}` has {} bytes", got.len()));
            }
            let dtype = expected.dtype();
            let elements = got.chunks_exact(dtype.bytes()).zip(expected.iter());
            for (at, (bytes, wanted)) in elements.enumerate() {
                let got = Scalar::read(dtype, bytes);
                if !agree(wanted, got, self.case.arithmetic) {
                    return Err(format!("`{name}` at {at} is {got}, not {wanted}"));
                }
            }
        }
        Ok(())
    }

    /// Lowers a program in parts, and checks the parts and what they compute.
    fn check_parts(&self, plan: &Plan, parts: &[Range<usize>]) -> Result<usize, String> {
        let lowered = lower_parts(plan, "p", parts).map_err(|e| e.to_string())?;
        if lowered.len() != parts.len() {
            return Err(format!("{} parts became {}", parts.len(), lowered.len()));
        }
        let mut modules: Vec<Module> = Vec::new();
        for (at, part) in lowered.iter().enumerate() {
            let wrong = |what: String| Err(format!("part {at}: {what}\n{}", part.module));
            if let Err(error) = validate(&part.module) {
                return wrong(error.to_string());
            }
            let [kernel] = part.module.functions.raw.as_slice() else {
                return wrong("it is not one kernel".to_owned());
            };
            if part.params.len() != kernel.params.len() {
                return wrong(format!("its parameters are {:?}", part.params));
            }
            if part.scratch != lowered[0].scratch {
                return wrong("it has scratch memory of its own".to_owned());
            }
            let mut compacted = part.module.clone();
            compacted.compact();
            if parts.len() > 1 && compacted != part.module {
                return wrong("its values are not in order".to_owned());
            }
            modules.push(compacted);
        }
        self.check(&lowered, &modules)?;
        for module in &mut modules {
            Pipeline::standard().run(module, &mut |_, _| {});
        }
        let after_passes = |error| format!("after the passes: {error}");
        self.check(&lowered, &modules).map_err(after_passes)?;
        Ok(lowered.first().map_or(0, |part| part.scratch.len()))
    }

    /// Checks every root subtree as a part of its own, then groups of them; gives how many results
    /// went to memory because of that.
    fn check_groupings(&self, rng: &mut Rng) -> Result<usize, String> {
        let plan = &self.plan;
        let roots = plan.tree().roots().len();
        let whole = lower(plan, "p").map_err(|e| e.to_string())?;
        let all = std::iter::once(0..roots).collect::<Vec<_>>();
        let one = lower_parts(plan, "p", &all);
        if one.as_deref() != Ok(std::slice::from_ref(&whole)) {
            return Err("one part is not the whole".to_owned());
        }
        let single: Vec<Range<usize>> = (0..roots).map(|at| at..at + 1).collect();
        let scratch = self.check_parts(plan, &single)?;
        for _ in 0..2 {
            let mut parts: Vec<Range<usize>> = Vec::new();
            for at in 0..roots {
                match parts.last_mut() {
                    Some(last) if rng.chance(50) => last.end = at + 1,
                    _ => parts.push(at..at + 1),
                }
            }
            let checked = self.check_parts(plan, &parts);
            checked.map_err(|error| format!("{parts:?}: {error}"))?;
        }
        Ok(scratch.saturating_sub(whole.scratch.len()))
    }

    /// Hands random steps to other backends: all texts are read back, and the parts compute the same.
    fn check_delegates(&self, rng: &mut Rng) -> Result<usize, String> {
        let mut schedule = self.plan.schedule().clone();
        let mut delegate = None;
        for step in &mut schedule.steps {
            if rng.chance(40) {
                let name = rng.pick(&["", "interp", "gpu.one", "my-backend", "a \"b\"\\\n", "2nd"]);
                delegate = (!name.is_empty()).then(|| (*name).into());
            }
            step.delegate.clone_from(&delegate);
        }
        let program = Arc::clone(self.plan.program());
        let plan = Plan::new(program, schedule).expect("the schedule is legal");
        let (graph, tree, schedule) = (plan.graph(), plan.tree(), plan.schedule());
        let text = Source::new("schedule", plan.to_string());
        if parse_schedule(&text, plan.program()).as_ref() != Ok(schedule) {
            return Err(format!("it is read as something else:\n{}", text.text()));
        }
        let text = Source::new("tree", print_tree(graph, tree));
        if parse_tree(&text, graph).as_ref() != Ok(tree) {
            return Err(format!("it is read as something else:\n{}", text.text()));
        }
        for step in &schedule.steps {
            let place = tree.find(step.node).expect("every step has a leaf");
            if tree.delegate(place) != step.delegate.as_deref() {
                return Err(format!("a step changed hands:\n{}", text.text()));
            }
        }
        let parts = parts_by_delegate(tree).into_iter();
        let parts: Vec<Range<usize>> = parts.map(|(roots, _)| roots).collect();
        self.check_parts(&plan, &parts)
            .map_err(|error| format!("{error}\n{}", text.text()))?;
        Ok(parts.len())
    }
}

/// As the oracle compares: bit for bit, and as numbers where the order of additions is free.
fn agree(expected: Scalar, got: Scalar, arithmetic: Arithmetic) -> bool {
    let numbers = arithmetic == Arithmetic::Whole && expected.dtype().is_float();
    same_value(expected, got) || numbers && expected.to_f64() == got.to_f64()
}

#[test]
fn features_in_parts_agree_with_the_reference() {
    for feature in FEATURES {
        let mut rng = Rng::new(4);
        for (at, case) in feature.cases().iter().enumerate() {
            let expected = Expected::new(case);
            let checked = expected.check_groupings(&mut rng);
            checked
                .and_then(|_| expected.check_delegates(&mut rng))
                .unwrap_or_else(|error| panic!("{} {at}: {error}", feature.name));
        }
    }
}

#[test]
fn random_programs_in_parts_agree_with_the_reference() {
    let (mut crossing, mut parts) = (0, 0);
    for seed in 3_000_000..3_001_500 {
        let mut rng = Rng::new(seed);
        let case = random_case(seed);
        let expected = Expected::new(&case);
        let failed = |error: String| -> usize { panic!("program {seed}: {error}\n{}", case.graph) };
        crossing += expected.check_groupings(&mut rng).unwrap_or_else(failed);
        parts += expected.check_delegates(&mut rng).unwrap_or_else(failed);
    }
    // The programs do have what this is about.
    assert!(
        crossing > 1000 && parts > 2000,
        "{crossing} results cross, {parts} parts"
    );
}
