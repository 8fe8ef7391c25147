//! Random programs that keep many arrays private to an iteration, from some kilobytes to more than any stack has.
//!
//! A short seeded run is a test. A long one: `LOOPWRIGHT_CASES=300 LOOPWRIGHT_SEED=7 cargo test -p loopwright-conformance --test
//! large_private -- --nocapture`.

use loopwright_backend::{Backend, CompileOptions, backends};
use loopwright_compile::Compiler;
use loopwright_conformance::Rng;
use loopwright_graph::{Array, Graph, evaluate, parse};
use loopwright_looptree::parse_schedule;
use loopwright_ops::{DType, same_value};
use loopwright_text::Source;
use std::fmt::Write as _;
use {loopwright_cc as _, loopwright_gccjit as _, loopwright_interp as _, loopwright_x86 as _};

fn number(variable: &str, default: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

/// A program with its schedule, and what its arrays take in an iteration of the outer loop.
struct Drawn {
    program: String,
    /// Steps and their loops inside of the outer one, in order.
    steps: Vec<(String, String)>,
    bytes: usize,
}

/// Rows that are made of earlier rows and of the input, all inside of one loop over `i`: each lives from where it is computed to
/// the last row that reads it. Integers wrap, so that every order of additions gives the same.
fn draw(rng: &mut Rng) -> Drawn {
    let dtype = ["i32", "i64", "i16"][rng.below(3)];
    let element = [4, 8, 2][["i32", "i64", "i16"]
        .iter()
        .position(|d| *d == dtype)
        .unwrap_or(0)];
    let width = [64, 257, 1000, 4096, 16_384, 70_001][rng.below(6)];
    // Up to some 6 MB, which is more than a thread's stack, and no more work than a test can wait for.
    let most = (6 << 20) / (width * element);
    let rows = 1 + rng.below(most.clamp(1, 90));
    let outer = 1 + rng.below(5);
    let mut program = format!("input x: {dtype}[i={outer}, j={width}]\n");
    let mut steps = Vec::new();
    let annotation = ["", " parallel"][rng.below(2)];
    let inner = ["j", "j/8, j unroll", "j/16, j vectorize"][rng.below(3)];
    for row in 0..rows {
        let operand = |rng: &mut Rng| match row {
            0 => "x".to_owned(),
            _ if rng.below(4) == 0 => "x".to_owned(),
            // Mostly near, sometimes from far back, so that live ranges are short and long.
            _ if rng.below(3) == 0 => format!("r{}", rng.below(row)),
            _ => format!("r{}", row - 1),
        };
        let (a, b) = (operand(rng), operand(rng));
        let op = ["+", "-", "*"][rng.below(3)];
        // Reversed and summed rows have to be there as a whole: they cannot be computed where they are read.
        let line = match rng.below(5) {
            0 => format!("{a}[i, {width} - 1 - j] {op} {b} + {row}"),
            1 => {
                let _ = writeln!(program, "s{row} = sum[j]({b})");
                steps.push((format!("s{row}"), format!("i{annotation}, j")));
                format!("{a} {op} s{row} + {row}")
            }
            _ => format!("{a} {op} {b} + {row}"),
        };
        let _ = writeln!(program, "r{row} = {line}");
        steps.push((format!("r{row}"), format!("i{annotation}, {inner}")));
    }
    let last = format!("r{}", rows - 1);
    let all: Vec<String> = (0..rows)
        .filter(|_| rng.below(3) == 0)
        .map(|row| format!("r{row}"))
        .collect();
    let all = all.iter().fold(last, |sum, row| format!("{sum} + {row}"));
    let _ = writeln!(program, "output y = {all}");
    steps.push(("y".to_owned(), format!("i{annotation}, {inner}")));
    Drawn {
        program,
        steps,
        bytes: rows * width * element,
    }
}

/// The schedule of those steps that are left: what nothing reads, and what is the same as another, is not.
fn schedule(graph: &Graph, steps: &[(String, String)]) -> String {
    let stored = graph.clone().with_stores();
    let left = steps.iter().filter(|(name, _)| stored.find(name).is_some());
    let lines = left.enumerate().map(|(at, (name, loops))| match at {
        0 => format!("{name}: {loops}\n"),
        _ => format!("{name}: share=1, {loops}\n"),
    });
    lines.collect()
}

fn parsed(text: &str) -> Graph {
    let source = Source::new("program.lw", format!("loopwright program 1\n{text}"));
    parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)))
}

/// The backends that run compiled code; what is missing is printed, and where `CI` is set nothing is.
fn compiling() -> Vec<Backend> {
    let compiling = backends().into_iter();
    let compiling = compiling.filter(|backend| ["x86", "cc", "gccjit"].contains(&backend.name()));
    compiling
        .filter(|backend| match backend.availability() {
            Ok(()) => true,
            Err(why) => {
                assert!(
                    std::env::var_os("CI").is_none(),
                    "{}: {why}",
                    backend.name()
                );
                eprintln!("SKIP: {}: {why}", backend.name());
                false
            }
        })
        .collect()
}

/// Runs a program on a thread with a small stack, and compares every element with the reference.
fn check(
    backend: &Backend,
    graph: &Graph,
    schedule: Option<&str>,
    (x, expected): (&Array, &Array),
) {
    let stored = graph.clone().with_stores();
    let schedule = schedule.map(|text| {
        let source = Source::new("schedule", format!("loopwright schedule 1\n{text}"));
        parse_schedule(&source, &stored).unwrap_or_else(|error| panic!("{}", error.render(&source)))
    });
    let run = || {
        let compiler = Compiler::new(backend.clone(), CompileOptions::default());
        let compiled = compiler.compile(graph, schedule.as_ref());
        let compiled = compiled.unwrap_or_else(|error| panic!("{}: {error}", backend.name()));
        let mut bound = compiled.bind(&[]).unwrap_or_else(|error| panic!("{error}"));
        bound
            .give("x", x.clone())
            .unwrap_or_else(|error| panic!("{error}"));
        bound
            .run()
            .unwrap_or_else(|error| panic!("{}: {error}", backend.name()));
        let y = bound.array("y").expect("it has run");
        for (at, (found, expected)) in y.iter().zip(expected.iter()).enumerate() {
            let same = same_value(found, expected);
            assert!(
                same,
                "element {at} on {}: {found} and not {expected}",
                backend.name()
            );
        }
    };
    std::thread::scope(|scope| {
        // A quarter of what threads commonly have.
        let small = std::thread::Builder::new().stack_size(512 << 10);
        let running = small.spawn_scoped(scope, run).expect("a thread");
        running
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn private_arrays_of_any_size_and_life_hold_the_same_values_on_every_compiling_backend() {
    let (cases, seed) = (number("LOOPWRIGHT_CASES", 6), number("LOOPWRIGHT_SEED", 1));
    let backends = compiling();
    let mut largest = 0;
    for case in 0..cases {
        let mut rng = Rng::new(seed.wrapping_mul(1 << 32).wrapping_add(case));
        let drawn = draw(&mut rng);
        largest = largest.max(drawn.bytes);
        let graph = parsed(&drawn.program);
        let binding = graph.bind(&[]).unwrap_or_else(|error| panic!("{error}"));
        let input = graph.find("x").expect("an input");
        let shape: Vec<usize> = binding
            .shape(&graph, input)
            .iter()
            .map(|size| *size as usize)
            .collect();
        let count: usize = shape.iter().product();
        let values: Vec<f64> = (0..count)
            .map(|at| ((at * 7919 + 13) % 101) as f64 - 50.0)
            .collect();
        let dtype: DType = graph.node(input).dtype;
        let x = Array::from_f64(dtype, &shape, &values).expect("an array");
        let expected =
            evaluate(&graph, &binding, &[(input, x.clone())]).expect("the reference can do it");
        let (_, expected) = expected.first().expect("one output");
        let schedule = schedule(&graph, &drawn.steps);
        for backend in &backends {
            // One backend's schedule of our own choice, too.
            for given in [Some(schedule.as_str()), None] {
                let told = format!("seed {seed}, case {case}:\n{}\n{}", drawn.program, schedule);
                let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    check(backend, &graph, given, (&x, expected));
                }));
                if let Err(panic) = checked {
                    eprintln!("{told}");
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
    println!("{cases} programs, up to {largest} bytes of private arrays");
    assert!(
        cases < 6 || largest > 1 << 20,
        "some are larger than a frame: {largest}"
    );
}
