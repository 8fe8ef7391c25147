//! Random numbers and precision.

use crate::support::*;
use loopwright_graph::Array;
use loopwright_ops::{DType, Scalar};
use loopwright_runtime::{LinkOptions, RuntimeOptions};
use std::num::NonZero;

/// Threefry-2x32 with 20 rounds, written down a second time.
fn threefry(key: u64, counter: u64) -> u64 {
    const ROTATIONS: [u32; 8] = [13, 15, 26, 6, 17, 29, 16, 24];
    let halves = |word: u64| [word as u32, (word >> 32) as u32];
    let [k0, k1] = halves(key);
    let keys = [k0, k1, 0x1bd1_1bda ^ k0 ^ k1];
    let [mut x, mut y] = halves(counter);
    x = x.wrapping_add(keys[0]);
    y = y.wrapping_add(keys[1]);
    for round in 0..20 {
        x = x.wrapping_add(y);
        y = y.rotate_left(ROTATIONS[round % 8]) ^ x;
        if round % 4 == 3 {
            let group = round / 4 + 1;
            x = x.wrapping_add(keys[group % 3]);
            y = y
                .wrapping_add(keys[(group + 1) % 3])
                .wrapping_add(group as u32);
        }
    }
    u64::from(x) | u64::from(y) << 32
}

/// The results of a program for some inputs.
fn results(place: Place, text: &str, inputs: &[(&str, Array)]) -> Vec<(String, Array)> {
    let device = place.device();
    let code = compile(&device, "program", text);
    let routine = link(&device.stream().expect("a stream").context(), &code);
    for (name, array) in inputs {
        assert!(
            routine
                .context()
                .upload(name, array.clone())
                .expect("uploaded"),
            "{name}"
        );
    }
    routine.schedule(&[]).expect("scheduled");
    let outputs = code.graph().outputs().iter();
    outputs
        .map(|output| {
            (
                output.name.clone(),
                read_array(routine.context(), &output.name),
            )
        })
        .collect()
}

/// Compares with the reference, bit for bit; the runtime of a place is strict.
fn assert_reference(place: Place, text: &str, inputs: &[(&str, Array)]) {
    let graph = program(text);
    let binding = graph.bind(&[]).expect("bound");
    let got = results(place, text, inputs);
    for ((name, expected), (_, got)) in reference(&graph, &binding, inputs).iter().zip(&got) {
        assert_eq!(
            (got.dtype(), got.shape()),
            (expected.dtype(), expected.shape()),
            "{name}"
        );
        assert_eq!(
            got.bytes(),
            expected.bytes(),
            "{name} of{text}\n{got:?}\nand\n{expected:?}"
        );
    }
}

fn array(dtype: DType, values: &[f64]) -> Array {
    Array::from_f64(dtype, &[values.len()], values).expect("an array")
}

everywhere! {
    fn line_42_random_bits_are_the_generators(place) {
        // The published test vectors, in this order of words.
        assert_eq!(threefry(0, 0), 0x99ba_4efe_6b20_0159);
        assert_eq!(threefry(u64::MAX, u64::MAX), 0xbb00_2be7_1cb9_96fc);
        assert_eq!(threefry(0x0370_7344_1319_8a2e, 0x85a3_08d3_243f_6a88), 0x483d_f7a0_c492_3a9c);
        let text = "input seed: u64\noutput bits = random_bits(seed, i * 3 + 1)\ndim i = 1000";
        for seed in [0u64, 1, 0xfeed_beef_0123_4567, u64::MAX] {
            let seeds = Array::from_scalars(DType::U64, &[], &[Scalar::from_bits(DType::U64, seed)]);
            let got = results(place, text, &[("seed", seeds.expect("an array"))]);
            let bits: Vec<u64> = got[0].1.iter().map(|scalar| scalar.bits()).collect();
            let expected: Vec<u64> = (0..1000).map(|at| threefry(seed, at * 3 + 1)).collect();
            assert_eq!(bits, expected, "seed {seed}");
        }
    }

    fn line_42_numbers_follow_from_the_seed(place) {
        let text = "
input seed: u64
output u = uniform[i=64, j=5](seed)
output v = normal[i, j](seed)
output w = uniform[i, j, f16](seed)
";
        let seed = |seed: u64| {
            let array = Array::from_scalars(DType::U64, &[], &[Scalar::from_bits(DType::U64, seed)]);
            [("seed", array.expect("an array"))]
        };
        // The reference's bits, so equal on all backends and under both schedulers.
        assert_reference(place, text, &seed(42));
        assert_eq!(results(place, text, &seed(42)), results(place, text, &seed(42)), "again");
        for ((name, a), (_, b)) in results(place, text, &seed(42)).iter().zip(results(place, text, &seed(43))) {
            let same = a.iter().zip(b.iter()).filter(|(a, b)| a.bits() == b.bits()).count();
            // In f16 a few of 320 are equal by chance.
            assert!(same < 10, "{name}: {same} of {} are equal for another seed", a.len());
        }
    }

    fn line_42_streams_and_devices_draw_the_same(place) {
        let options = RuntimeOptions { devices: NonZero::new(2).expect("not zero"), ..place.options() };
        let runtime = place.runtime_with(options);
        let mut drawn: Vec<Array> = Vec::new();
        for ordinal in [0, 1] {
            let device = runtime.device(&format!("{}:{ordinal}", place.backend)).expect("available");
            let code = compile(&device, "draw", "size N = 100\ninput seed: u64\noutput u = uniform[i=N](seed)");
            for _ in 0..2 {
                let options = LinkOptions { sizes: &[("N", 100)], ..LinkOptions::default() };
                let routine = device.stream().expect("a stream").context().link(&code, &options).expect("linked");
                routine.context().write("seed", &[9u64]).expect("written");
                routine.schedule(&[]).expect("scheduled");
                drawn.push(read_array(routine.context(), "u"));
            }
        }
        assert!(drawn.windows(2).all(|pair| pair[0] == pair[1]), "all draw the same");
    }

    fn line_43_every_dtype_computes(place) {
        let values: Vec<f64> = (0..40).map(|at| f64::from(at) * 0.75 - 3.).collect();
        let others: Vec<f64> = (0..40).map(|at| f64::from((at * 7) % 11) * 0.5 - 1.).collect();
        for dtype in DType::ALL {
            let arithmetic = match dtype {
                // Bools have no sums.
                DType::Bool => "output sum = x | y\noutput product = x & y",
                _ => "output sum = x + y\noutput product = x * y\noutput total = sum[i](x * y)",
            };
            let text = format!("
input x: {dtype}[i=40]
input y: {dtype}[i]
input f: f32[i]
{arithmetic}
output up = f32(x)
output down = {dtype}(f)
output larger = max(x, y)
output less = x < y
");
            let inputs = [
                ("x", array(dtype, &values)),
                ("y", array(dtype, &others)),
                ("f", array(DType::F32, &values)),
            ];
            assert_reference(place, &text, &inputs);
        }
    }

    fn line_43_extreme_values_are_cast_alike(place) {
        let values = [0., -0., 1e-8, -1e-8, 0.5, 1.5, 2.5, 127.5, 128., -129., 255.5, 448., 464., 480., 57344., 65504., 65520.,
            1e6, 3e9, -3e9, 1e19, -1e19, 3e38, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        for dtype in DType::ALL {
            for wide in [DType::F32, DType::F64] {
                // A NaN may be any NaN, so only those that were none are compared.
                let text = format!("
input x: {wide}[i={}]
narrow = {dtype}(x)
back = {wide}(narrow)
output there = select(is_nan(back), {dtype}(0{wide}), narrow)
output again = select(is_nan(back), 0, back)
", values.len());
                assert_reference(place, &text, &[("x", array(wide, &values))]);
            }
        }
    }

    fn line_43_dtypes_are_inferred_in_both_directions(place) {
        // `x` and `y` are `f16` because of what comes after them, `z` because of what comes before.
        let text = "
input x[i=8]
input y[i]
state total: f16[i]
z = x * y
output halves = z / 2
update total = total + z
";
        let graph = program(text);
        for name in ["x", "y", "z", "halves"] {
            let node = graph.find(name).unwrap_or_else(|| panic!("`{name}`"));
            assert_eq!(graph.node(node).dtype, DType::F16, "{name}");
        }
        let values: Vec<f64> = (0..8).map(|at| f64::from(at) * 0.3).collect();
        let device = place.device();
        let routine = link(&device.stream().expect("a stream").context(), &compile(&device, "inferred", text));
        for name in ["x", "y", "total"] {
            assert_eq!(routine.context().node(name).expect("it is there").dtype, DType::F16);
            routine.context().upload(name, array(DType::F16, &values)).expect("uploaded");
        }
        routine.schedule(&[]).expect("scheduled");
        let inputs = ["x", "y", "total"].map(|name| (name, array(DType::F16, &values)));
        let binding = graph.bind(&[]).expect("bound");
        for (name, expected) in reference(&graph, &binding, &inputs) {
            assert_eq!(read_array(routine.context(), &name).bytes(), expected.bytes(), "{name}");
        }
        let refused = loopwright_graph::parse(&loopwright_text::Source::new(
            "test.lw", "loopwright program 1\ninput x[i=4]\noutput y = f32(x)".to_owned(),
        ));
        let error = refused.expect_err("nothing says what `x` is").message;
        assert!(error.contains("nothing determines the dtype of input `x`"), "{error}");
    }

    fn line_43_mixed_precision(place) {
        // 2049 cannot be told from 2048 in f16: a sum that ran in f16 would stop there.
        let text = "
input a: f16[i=3, k=4096]
input b: f16[k]
output narrow = sum[k](a * b)
output wide = sum[k](f32(a) * f32(b))
output wider = sum[k, acc=f64](f32(a) * f32(b))
";
        let ones = Array::from_f64(DType::F16, &[3, 4096], &[1.; 3 * 4096]).expect("an array");
        let inputs = [("a", ones), ("b", array(DType::F16, &[1.; 4096]))];
        let got = results(place, text, &inputs);
        let dtypes: Vec<DType> = got.iter().map(|(_, array)| array.dtype()).collect();
        assert_eq!(dtypes, [DType::F16, DType::F32, DType::F32]);
        for (name, array) in &got {
            assert_eq!(array.to_f64(), [4096.; 3], "{name}");
        }
        // An f16 product, accumulated in f32, into f32 weights.
        let text = "
input x: f16[row=4, k=8]
input w: f32[k, j=3]
output y = f16(sum[k](x * f16(w)))
output exact = sum[k](f32(x) * w)
";
        let values = |count: usize| -> Vec<f64> { (0..count).map(|at| (at as f64 * 0.37).sin()).collect() };
        let x = Array::from_f64(DType::F16, &[4, 8], &values(32)).expect("an array");
        let w = Array::from_f64(DType::F32, &[8, 3], &values(24)).expect("an array");
        let graph = program(text);
        let inputs = [("x", x), ("w", w)];
        let expected = reference(&graph, &graph.bind(&[]).expect("bound"), &inputs);
        // A schedule may fold in another order, so these are close, not equal.
        for ((name, expected), (_, got)) in expected.iter().zip(results(place, text, &inputs)) {
            assert_eq!(got.dtype(), expected.dtype());
            for (got, expected) in got.to_f64().iter().zip(expected.to_f64()) {
                let tolerance = if name == "y" { 2e-3 } else { 1e-6 };
                assert!((got - expected).abs() <= tolerance * expected.abs().max(1.), "{name}: {got} and {expected}");
            }
        }
    }
}
