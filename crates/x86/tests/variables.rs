//! Arrays of one element, which are kept in registers.

use loopwright_backend::{Argument, CompileOptions, Describe, KernelBackend};
use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Module, Space, Type};
use loopwright_ops::{DType, Op};
use loopwright_x86::{Level, X86};

/// A running product that is an index: what was read of it must not change when it is written.
#[test]
fn an_index_that_is_read_before_it_is_written() {
    let mut b = Builder::new("follow", FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::I64, Space::Global, "x", Access::Read, true);
    let y = b.param_ptr(DType::I64, Space::Global, "y", Access::Write, true);
    let running = b.alloc(Space::Private, Type::INDEX, 1, "running");
    let (zero, one, end) = (b.const_i64(0), b.const_i64(1), b.const_i64(6));
    b.store(running, zero, one);
    let i = b.begin_for(zero, end, one, LoopKind::Serial, "i");
    let factor = b.load(x, i);
    let before = b.load(running, zero);
    let product = b.map(Op::Mul, &[before, factor]);
    b.store(running, zero, product);
    let positive = b.map(Op::Ge, &[product, zero]);
    b.begin_if(positive);
    let found = b.load(x, product);
    b.store(y, i, found);
    b.end_block();
    b.end_block();
    let module = Module {
        structs: Vec::new(),
        functions: vec![b.finish()],
    };
    for level in Level::ALL {
        let backend = X86::new().at(level);
        if let Err(why) = backend.availability() {
            println!("skipped: {why}");
            continue;
        }
        let options = CompileOptions::default();
        let executable = backend.compile(&module, &options).expect("it compiles");
        let x = [1i64, 2, 1, 3, 1, 1, 7];
        let mut y = [-1i64; 6];
        let mut arguments = [
            Argument::Read(bytemuck::cast_slice(&x)),
            Argument::Write(bytemuck::cast_slice_mut(&mut y)),
        ];
        executable.run("follow", &mut arguments).expect("it runs");
        // Products 1, 2, 2, 6, 6, 6.
        assert_eq!(y, [2, 1, 1, 7, 7, 7], "{level}");
    }
}
