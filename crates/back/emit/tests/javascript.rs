//! What the JavaScript of the example means: kernels compared with the interpreter, and the conformance suite, by `node`.

// The example's files, as a module.
#[path = "../examples/javascript/mod.rs"]
mod javascript;

use javascript::backend::Node;
use javascript::dialect::JavaScript;
use loopwright_backend::{Argument, Backend, CompileOptions, Describe, KernelBackend};
use loopwright_emit::emit;
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::{Module, parse};
use loopwright_ops::Scalar;
use loopwright_text::Source;
use std::cell::Cell;

/// Whether `node` is there, or a line that says what is not run, and why.
fn available(what: &str) -> bool {
    let available = Node.availability();
    if let Err(why) = &available {
        eprintln!("SKIP: {what}: {why}");
    }
    available.is_ok()
}

fn backend() -> Option<Backend> {
    available("conformance").then(|| Backend::kernel_backend(Node))
}

mod conformance {
    loopwright_conformance::conformance_tests!(super::backend());
}

fn module(text: &str) -> Module {
    let source = Source::new("kernels", format!("loopwright kernel 1\n\n{text}"));
    parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)))
}

/// A small deterministic mixture of bits.
fn mixed(words: u64) -> Vec<u8> {
    let mixed = |word: u64| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
    (1..=words)
        .flat_map(|word| mixed(word).to_le_bytes())
        .collect()
}

fn floats(count: u16) -> Vec<u8> {
    let values = (0..count).map(|at| f32::from(at) * 0.37 - 3.0);
    values.flat_map(f32::to_le_bytes).collect()
}

/// What a kernel is about, the memory that it is run on, and its text.
type Case = (&'static str, fn() -> Vec<u8>, &'static str);

const KERNELS: &[Case] = &[
    (
        "loops, conditions and private memory",
        || floats(64),
        "
kernel @k(%p: readwrite ptr<global, f32>, %n: i64) {
  %zero: i64 = const 0
  %one: i64 = const 1
  %three: i64 = const 3
  %sum: ptr<private, f32> = alloc private f32 x 1
  %last: ptr<private, f32> = alloc private f32 x 4
  %nothing: f32 = const 0.1
  store %sum[%zero], %nothing
  for %i: i64 = %zero .. %n step %three serial {
    %x: f32 = load %p[%i]
    %before: f32 = load %sum[%zero]
    %after: f32 = add %before, %x
    store %sum[%zero], %after
    %slot: i64 = and %i, %three
    store %last[%slot], %after
    %back: f32 = load %last[%slot]
    %limit: f32 = const 30.5
    %over: bool = gt %back, %limit
    if %over {
      break
    } else {
      %size: f32 = abs %back
      %root: f32 = sqrt %size
      store %p[%i], %root
    }
  }
  %count: ptr<private, i64> = alloc private i64 x 1
  store %count[%zero], %zero
  while {
    %now: i64 = load %count[%zero]
    %more: bool = lt %now, %three
  } cond %more {
    %at: i64 = load %count[%zero]
    %next: i64 = add %at, %one
    store %count[%zero], %next
    %value: f32 = load %p[%next]
    %twice: f32 = mul_add %value, %value, %value
    store %p[%at], %twice
  }
}
",
    ),
    (
        "integers that wrap",
        || mixed(16),
        "
kernel @k(%p: readwrite ptr<global, i64>, %n: i64) {
  %zero: i64 = const 0
  %one: i64 = const 1
  %five: i64 = const -5
  for %i: i64 = %one .. %n step %one serial {
    %before: i64 = sub %i, %one
    %a: i64 = load %p[%before]
    %b: i64 = load %p[%i]
    %product: i64 = mul %a, %b
    %sum: i64 = mul_add %product, %b, %five
    %quotient: i64 = floor_div %sum, %five
    %low: i32 = cast %b
    %small: i8 = cast %a
    %square: i32 = mul %low, %low
    %tiny: i8 = mul %small, %small
    %unsigned: u32 = bitcast %square
    %shifted: u32 = shr %unsigned, %unsigned
    %two: u32 = const 4294967295
    %rest: u32 = rem %unsigned, %two
    %either: u32 = or %rest, %shifted
    %wide: i64 = cast %either
    %narrow: i64 = cast %tiny
    %mixed: i64 = xor %quotient, %wide
    %all: i64 = add %mixed, %narrow
    store %p[%before], %all
  }
}
",
    ),
    (
        "structs, and pointers that are handed on",
        || mixed(24),
        "
struct Pair { flag: i8, values: array<i32, 3> }

device fn @swap(%p: readwrite ptr<global, i32>, %x: i32) -> i32 {
  %zero: i64 = const 0
  %old: i32 = load %p[%zero]
  store %p[%zero], %x
  return %old
}

kernel @k(%p: readwrite ptr<global, Pair>, %n: i64) {
  %zero: i64 = const 0
  %one: i64 = const 1
  %two: i64 = const 2
  for %i: i64 = %zero .. %n step %one serial {
    %pair: ptr<global, Pair> = offset %p[%i]
    %flag: ptr<global, i8> = field %pair, flag
    %values: ptr<global, array<i32, 3>> = field %pair, values
    %first: ptr<global, i32> = elements %values
    %third: ptr<global, i32> = offset %first[%two]
    %seen: i8 = load %flag[%zero]
    %wide: i32 = cast %seen
    %old: i32 = call @swap(%third, %wide)
    store %first[%one], %old
    %old'1: i32 = call @swap(%first, %old)
    %low: i8 = cast %old'1
    store %flag[%zero], %low
  }
}
",
    ),
    (
        "doubles, and every way from one kind of number to another",
        || mixed(16),
        "
kernel @k(%p: readwrite ptr<global, i64>, %n: i64) {
  %zero: i64 = const 0
  %one: i64 = const 1
  for %i: i64 = %zero .. %n step %one serial {
    %a: i64 = load %p[%i]
    %single: f32 = cast %a
    %double: f64 = cast %a
    %wide: f64 = cast %single
    %difference: f64 = sub %double, %wide
    %whole: i64 = cast %difference
    %bits: i64 = bitcast %wide
    %small: u8 = cast %difference
    %byte: i64 = cast %small
    %negative: bool = lt %a, %zero
    %chosen: i64 = select %negative, %whole, %bits
    %truth: i64 = cast %negative
    %sum: i64 = add %chosen, %byte
    %all: i64 = add %sum, %truth
    store %p[%i], %all
  }
}
",
    ),
];

/// Bytes that are aligned for every dtype.
fn aligned(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8);
    words
        .map(|word| u64::from_le_bytes(word.try_into().expect("it has eight bytes")))
        .collect()
}

fn bytes(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: eight bytes for each word, all initialised, and any bytes make a word.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 8) }
}

/// Runs the kernel `k` of a module on a copy of the memory, by `node` and by the interpreter.
fn agrees(what: &str, module: &Module, memory: &[u8], n: i64) {
    let (mut expected, mut got) = (aligned(memory), aligned(memory));
    let mut arguments = [
        Argument::Write(bytes(&mut expected)),
        Argument::Scalar(Scalar::i64(n)),
    ];
    interpret(module, "k", &mut arguments, Grid::default())
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let code = Node.compile(module, &CompileOptions::default());
    let code = code.unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut arguments = [
        Argument::Write(bytes(&mut got)),
        Argument::Scalar(Scalar::i64(n)),
    ];
    // SAFETY: the interpreter has seen that the kernel stays within its arguments.
    unsafe { code.run("k", &mut arguments) }
        .unwrap_or_else(|error| panic!("{what}: {error}\n{}", code.code()));
    assert_eq!(expected, got, "{what}:\n{}", code.code());
}

#[test]
fn kernels_mean_what_the_interpreter_says() {
    if !available(&format!("{} kernels", KERNELS.len())) {
        return;
    }
    for (what, memory, text) in KERNELS {
        agrees(what, &module(text), &memory(), 8);
    }
    println!("{} kernels agree with the interpreter", KERNELS.len());
}

/// What is written through one pointer is read through another to the same memory.
#[test]
fn arguments_may_overlap() {
    if !available("arguments that overlap") {
        return;
    }
    let module = module(
        "
kernel @k(%p: readwrite ptr<global, i32>, %q: readwrite ptr<global, i32>, %n: i64) {
  %zero: i64 = const 0
  %one: i64 = const 1
  for %i: i64 = %zero .. %n step %one serial {
    %a: i32 = load %q[%i]
    %b: i32 = add %a, %a
    store %p[%i], %b
  }
}
",
    );
    let code = Node.compile(&module, &CompileOptions::default());
    let code = code.unwrap_or_else(|error| panic!("{error}"));
    let mut words = aligned(&mixed(8));
    let mut expected: Vec<i32> = bytes(&mut words)
        .chunks_exact(4)
        .map(|word| i32::from_le_bytes(word.try_into().expect("it has four bytes")))
        .collect();
    for at in 0..10 {
        expected[at + 1] = expected[at].wrapping_mul(2);
    }
    let cells = Cell::from_mut(bytes(&mut words)).as_slice_of_cells();
    let mut arguments = [
        Argument::Shared(&cells[4..44]),
        Argument::Shared(&cells[..40]),
        Argument::Scalar(Scalar::i64(10)),
    ];
    // SAFETY: the kernel reads and writes ten elements of each.
    unsafe { code.run("k", &mut arguments) }.unwrap_or_else(|error| panic!("{error}"));
    let got: Vec<i32> = bytes(&mut words)
        .chunks_exact(4)
        .map(|word| i32::from_le_bytes(word.try_into().expect("it has four bytes")))
        .collect();
    assert_eq!(got, expected);
}

/// What fails in the text is an error with the engine's words, and the next call works.
#[test]
fn a_failure_has_words() {
    if !available("a failure") {
        return;
    }
    let (_, memory, text) = KERNELS[0];
    let module = module(text);
    let code = Node.compile(&module, &CompileOptions::default());
    let code = code.unwrap_or_else(|error| panic!("{error}"));
    let mut words = aligned(&memory());
    let mut short = [
        Argument::Write(&mut bytes(&mut words)[..8]),
        Argument::Scalar(Scalar::i64(8)),
    ];
    // SAFETY: an accessor of a view checks its bounds.
    let failed = unsafe { code.run("k", &mut short) };
    let message = failed
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(message.contains("RangeError"), "{message}");
    agrees("after a failure", &module, &memory(), 8);
}

/// What the dialect cannot say is refused, with the reason.
#[test]
fn refusals() {
    let refusal = |text: &str| match emit(&module(text), &JavaScript) {
        Err(refusal) => refusal.to_string(),
        Ok(emitted) => panic!("it should be refused, but became\n{}", emitted.source),
    };
    let half = refusal(
        "kernel @h(%p: readwrite ptr<global, f16>, %n: i64) {\n  %x: f16 = load %p[%n]\n  store %p[%n], %x\n}\n",
    );
    assert!(half.contains("no floats narrower than f32"), "{half}");
    let wave = refusal(
        "kernel @s(%p: readwrite ptr<global, f32>, %n: i64) {\n  %x: f32 = load %p[%n]\n  %y: f32 = sin %x\n  store %p[%n], %y\n}\n",
    );
    assert!(wave.contains("other last bits"), "{wave}");
    let lanes = refusal(
        "kernel @v(%p: readwrite ptr<global, f32>, %n: i64) {\n  %x: f32x4 = load %p[%n]\n  store %p[%n], %x\n}\n",
    );
    assert!(lanes.contains("it has vectors"), "{lanes}");
}
