//! No pass changes a value: random kernels give the same on the interpreter before and after.

mod generate;

use crate::Argument;

use super::{BROKEN, NAMES, Pipeline, by_name};
use crate::interpret::{Grid, InterpretError, Program};
use crate::ir::Module;
use crate::text::print;
use crate::valid::validate;
use generate::{DTYPES, ELEMENTS, Kernel, Random, SHOWN, generate};
use loopwright_ops::{DType, Scalar, same_value};

/// Kernels that are tried; more with `LOOPWRIGHT_KERNELS=100000`.
fn kernel_count() -> u64 {
    std::env::var("LOOPWRIGHT_KERNELS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(2000)
}

/// The contents of every buffer after a run.
fn outcome(
    kernel: &Kernel,
    module: &Module,
    seed: u64,
) -> Result<Vec<Vec<Scalar>>, InterpretError> {
    let mut random = Random::new(seed);
    let mut buffers: Vec<(DType, Vec<u8>)> = kernel
        .buffers
        .iter()
        .map(|&dtype| {
            let mut bytes = vec![0; dtype.bytes() * ELEMENTS as usize];
            for element in bytes.chunks_exact_mut(dtype.bytes()) {
                random.scalar(dtype).write(element);
            }
            (dtype, bytes)
        })
        .collect();
    for dtype in DTYPES {
        buffers.push((dtype, vec![0; dtype.bytes() * SHOWN as usize]));
    }
    let mut args: Vec<Argument<'_>> = buffers
        .iter_mut()
        .map(|(_, bytes)| Argument::Write(bytes))
        .collect();
    args.push(Argument::Scalar(Scalar::i64(random.below(4) as i64)));
    Program::new(module)?.run("fuzzed", &mut args, Grid::default(), Some(10_000_000))?;
    drop(args);
    Ok(buffers
        .into_iter()
        .map(|(dtype, bytes)| {
            let elements = bytes.chunks_exact(dtype.bytes());
            elements.map(|bytes| Scalar::read(dtype, bytes)).collect()
        })
        .collect())
}

/// The first buffer and element that differ.
fn difference(before: &[Vec<Scalar>], after: &[Vec<Scalar>]) -> Option<String> {
    for (buffer, (left, right)) in before.iter().zip(after).enumerate() {
        for (element, (&left, &right)) in left.iter().zip(right).enumerate() {
            if !same_value(left, right) {
                return Some(format!(
                    "element {element} of buffer {buffer} was {left} and is {right}"
                ));
            }
        }
    }
    None
}

/// What a change to the module does to its results, if anything.
fn changed(kernel: &Kernel, after: &Module, seed: u64) -> Option<String> {
    let before = match outcome(kernel, &kernel.module, seed) {
        Ok(before) => before,
        Err(error) => panic!(
            "kernel {seed} fails before any pass: {error}\n{}",
            print(&kernel.module)
        ),
    };
    match outcome(kernel, after, seed) {
        Ok(after) => difference(&before, &after),
        Err(error) => Some(error.to_string()),
    }
}

fn check(kernel: &Kernel, after: &Module, seed: u64, pass: &str) {
    if let Err(error) = validate(after) {
        panic!(
            "{pass} makes kernel {seed} invalid: {error}\n{}\nbecomes\n{}",
            print(&kernel.module),
            print(after)
        );
    }
    if let Some(difference) = changed(kernel, after, seed) {
        panic!(
            "{pass} changes kernel {seed}: {difference}\n{}\nbecomes\n{}",
            print(&kernel.module),
            print(after)
        );
    }
}

#[test]
fn generated_kernels_are_valid() {
    for seed in 0..500 {
        let kernel = generate(seed);
        if let Err(error) = validate(&kernel.module) {
            panic!("kernel {seed}: {error}\n{}", print(&kernel.module));
        }
    }
}

#[test]
fn each_pass_keeps_every_value() {
    for seed in 0..kernel_count() {
        let kernel = generate(seed);
        let name = NAMES[seed as usize % NAMES.len()];
        let pass = by_name(name).expect("every listed pass exists");
        let mut module = kernel.module.clone();
        pass(&mut module);
        check(&kernel, &module, seed, name);
    }
}

#[test]
fn the_standard_pipeline_keeps_every_value() {
    for seed in 0..kernel_count() {
        let kernel = generate(seed);
        let mut module = kernel.module.clone();
        Pipeline::standard().run(&mut module, &mut |name, module| {
            check(&kernel, module, seed, name);
        });
        check(&kernel, &module, seed, "the end of the pipeline");
    }
}

#[test]
fn passes_in_any_order_keep_every_value() {
    for seed in 0..kernel_count() {
        let kernel = generate(seed);
        let mut random = Random::new(seed ^ 0xdead);
        let mut module = kernel.module.clone();
        let mut names = Vec::new();
        for _ in 0..6 {
            let name = NAMES[random.below(NAMES.len() as u64) as usize];
            names.push(name);
            by_name(name).expect("every listed pass exists")(&mut module);
        }
        check(&kernel, &module, seed, &names.join(", "));
    }
}

#[test]
fn a_broken_pass_is_caught() {
    for name in BROKEN {
        let pipeline = Pipeline::with_broken(name).expect("every broken pass exists");
        let caught = (0..200).find(|&seed| {
            let kernel = generate(seed);
            let mut module = kernel.module.clone();
            pipeline.run(&mut module, &mut |_, _| ());
            changed(&kernel, &module, seed).is_some()
        });
        assert!(
            caught.is_some(),
            "no kernel of 200 shows that `{name}` is wrong"
        );
    }
}
