//! Matrix products whose sizes are known only when they run, at every tail of their tiles.

use loopwright_backend::{Argument, CompileOptions, Describe, KernelBackend};
use loopwright_graph::parse;
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::passes::Pipeline;
use loopwright_lower::{KernelParam, lower};
use loopwright_ops::Scalar;
use loopwright_scheduler::{Order, schedule};
use loopwright_text::Source;
use loopwright_x86::{Level, X86};

const PROGRAM: &str = "loopwright program 1
size M, N, K
input A: f32[i=M, k=K]
input B: f32[k, j=N]
output C = sum[k](A * B)
";

/// Small integers, which no order of sums rounds.
fn numbers(count: usize, period: usize) -> Vec<f32> {
    (0..count)
        .map(|at| (at % period) as f32 - (period / 2) as f32)
        .collect()
}

#[test]
fn products_are_those_of_the_interpreter_at_every_tail() {
    let source = Source::new("product.lw", PROGRAM);
    let graph = parse(&source).expect("the program is right").with_stores();
    for level in Level::ALL {
        let backend = X86::new().at(level);
        if let Err(why) = backend.availability() {
            println!("skipped: {why}");
            continue;
        }
        let made = schedule(graph.clone(), &backend.target(), Order::Free);
        let plan = made.expect("it has a schedule").plan;
        let mut lowered = lower(&plan, "program").expect("it has a kernel");
        Pipeline::standard().run(&mut lowered.module, &mut |_, _| {});
        // What is packed is never larger than this.
        let packed = vec![f32::NAN; 1 << 16];
        let mut scratch = vec![[packed.clone(), packed]; lowered.scratch.len()];
        let options = CompileOptions::default();
        let executable = backend
            .compile(&lowered.module, &options)
            .expect("it compiles");
        let mut sizes = Vec::new();
        for m in (0..=14).chain([23, 24, 25, 30]) {
            sizes.extend([(m, 64, 3), (m, 33, 2), (m, 129, 1)]);
        }
        for n in (0..=34).chain(47..=50).chain(63..=66).chain(127..=130) {
            sizes.extend([(6, n, 3), (13, n, 2)]);
        }
        for k in [0, 1, 2, 33, 70] {
            sizes.extend([(11, 64, k), (5, 96, k), (12, 20, k)]);
        }
        for (m, n, k) in sizes {
            let (a, b) = (numbers(m * k, 7), numbers(k * n, 5));
            let mut c = vec![77f32; m * n];
            let mut expected = c.clone();
            let mut args = Vec::new();
            let mut arguments = Vec::new();
            let mut inputs = [&a, &b].into_iter();
            let mut results = Some((&mut c, &mut expected));
            let mut values = [m, n, k].into_iter();
            let mut free = scratch.iter_mut();
            for param in &lowered.params {
                match param {
                    KernelParam::Parameter(_) => {
                        let input = inputs.next().expect("there are two inputs");
                        arguments.push(Argument::Read(bytemuck::cast_slice(input)));
                        args.push(Argument::Read(bytemuck::cast_slice(input)));
                    }
                    KernelParam::Output(_) => {
                        let (c, expected) = results.take().expect("there is one output");
                        arguments.push(Argument::Write(bytemuck::cast_slice_mut(c)));
                        args.push(Argument::Write(bytemuck::cast_slice_mut(expected)));
                    }
                    KernelParam::Scratch(_) => {
                        let [own, other] = free.next().expect("each has its number");
                        arguments.push(Argument::Write(bytemuck::cast_slice_mut(own)));
                        args.push(Argument::Write(bytemuck::cast_slice_mut(other)));
                    }
                    KernelParam::Size(_) => {
                        let value = values.next().expect("there are three sizes");
                        let size = Scalar::i64(value as i64);
                        arguments.push(Argument::Scalar(size));
                        args.push(Argument::Scalar(size));
                    }
                    other => panic!("the product has no parameter {other:?}"),
                }
            }
            // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
            unsafe { executable.run("program", &mut arguments) }.expect("it runs");
            interpret(&lowered.module, "program", &mut args, Grid::default())
                .unwrap_or_else(|error| panic!("{m}x{n}x{k}: {error}"));
            drop((arguments, args));
            assert_eq!(c, expected, "{level}: {m}x{n}x{k}");
            let product = (0..m * n).map(|at| {
                let (i, j) = (at / n, at % n);
                (0..k).map(|x| a[i * k + x] * b[x * n + j]).sum::<f32>()
            });
            assert!(product.eq(c.iter().copied()), "{level}: {m}x{n}x{k}");
        }
    }
}
