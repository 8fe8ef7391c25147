//! Inputs and states that take their dtype from how they are used.

mod support;

use loopwright_ops::DType;
use support::{program, refused};

#[test]
fn a_dtype_follows_from_the_use() {
    let cases: [(&str, &[(&str, DType)]); 19] = [
        ("input x[i=4]\noutput y = x + 1f16", &[("x", DType::F16)]),
        (
            "input x\ninput y: i32\noutput z = 2 * x - y",
            &[("x", DType::I32)],
        ),
        // Through names, views, folds and other open inputs, in any order.
        (
            "input x[i=4]\na = x[i + 1] else 0\nb = sum[i](a * a)\ninput z\nc = b / z\noutput y = max(c, 1f64)",
            &[("x", DType::F64), ("z", DType::F64)],
        ),
        (
            "input x[i=4]\ninput y[i]\ninput z[i]\na = x + y\nb = y + z\noutput c = z * 1u8",
            &[("x", DType::U8), ("y", DType::U8), ("z", DType::U8)],
        ),
        // Comparisons tie their operands, not their result; conditions are bool.
        (
            "input x[i=4]\ninput m[i]\noutput y = select(m & (x < 1.5f32), 1, 2)",
            &[("x", DType::F32), ("m", DType::Bool)],
        ),
        ("input m[i=4]\noutput y = any[i](m)", &[("m", DType::Bool)]),
        (
            "input a[i=4]\ninput c\noutput y = select(c, a, 0f32)",
            &[("a", DType::F32), ("c", DType::Bool)],
        ),
        // A cast breaks the chain.
        (
            "input x[i=4]\noutput y = f32(x) + 1\noutput z = x << 1i16",
            &[("x", DType::I16)],
        ),
        // Indices and sizes are i64, also beside an index that is an array.
        (
            "size N = 4\ninput x[i=N]\noutput y = x + i * N",
            &[("x", DType::I64)],
        ),
        (
            "static s in 0 .. 3 = 0\ninput x\noutput y = x * s",
            &[("x", DType::I64)],
        ),
        (
            "input t[v=9]\ninput at[i=4]\noutput y = t[at + i] + 1f32",
            &[("t", DType::F32), ("at", DType::I64)],
        ),
        (
            "input x[i=4]\noutput y = x + index[i, u16]",
            &[("x", DType::U16)],
        ),
        // States and their new values.
        (
            "state w[i=4]\ninput g: f32[i]\nupdate w = w - 0.1 * g",
            &[("w", DType::F32)],
        ),
        (
            "state w: f64[i=4]\ninput g[i]\nupdate w = g",
            &[("g", DType::F64)],
        ),
        // What stands outside, constants, and functions with brackets.
        (
            "input m[i=4]\noutput y = m[i - 1] else false",
            &[("m", DType::Bool)],
        ),
        (
            "const c: i8[k] = [1, 2]\ninput x[k]\noutput y = sum[k](c * x)",
            &[("x", DType::I8)],
        ),
        (
            "input a[i=2]\ninput b[j=3]\ninput n: f32\noutput y = concat[z: i, j](a, b) * n",
            &[("a", DType::F32), ("b", DType::F32)],
        ),
        (
            "input a[i=2]\ninput b[k=9]\noutput y = scatter[i, sum](a, b, 0 * f32(b))\noutput z = b % 2i32",
            &[("a", DType::F32), ("b", DType::I32)],
        ),
        (
            "input x[i=4]\noutput y = x * uniform[i, f64](1u64) + x * f64(argmax[i](x))",
            &[("x", DType::F64)],
        ),
    ];
    for (body, expected) in &cases {
        let graph = program(body);
        for (name, dtype) in *expected {
            let node = graph.find(name).expect("the input exists");
            assert_eq!(graph.node(node).dtype, *dtype, "`{name}` of\n{body}");
        }
    }
}

#[test]
fn what_is_wrong_elsewhere_is_said_as_ever() {
    let error = refused("input x[i=4]\ninput a: f32\ninput b: i32\noutput y = x + 1u8, z = a + b");
    assert!(error.contains("this is i32; `f32(..)` casts it"), "{error}");
    let error = refused("input x[i=4]\noutput y = x + wat");
    assert!(error.contains("unknown name `wat`"), "{error}");
    let error = refused("input x[i=4]\noutput y = exp(x) + 1i32");
    assert!(error.contains("`exp`"), "{error}");
}
