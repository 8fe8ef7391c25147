//! Random numbers by counter, against values computed here from the bits.

mod support;

use loopwright_graph::{GraphBuilder, evaluate};
use loopwright_ops::{DType, Op, Scalar, evaluate as apply};
use loopwright_symbolic::Expr;
use support::run_text;

/// Threefry of a seed and a counter, by the op's own meaning.
fn bits(seed: u64, counter: u64) -> u64 {
    let word = |bits: u64| Scalar::from_bits(DType::U64, bits);
    let value = apply(Op::Threefry, &[word(seed), word(counter)]).expect("two words are given");
    value.bits()
}

/// The fraction of the `digits` bits above `shift`.
fn fraction(bits: u64, shift: u32, digits: u32) -> f64 {
    ((bits >> shift) & ((1 << digits) - 1)) as f64 / (digits as f64).exp2()
}

#[test]
fn a_counter_is_any_integer_value() {
    let body = "
        input seed: i32
        dim i = 2, j = 3
        output given = random_bits(seed, i * size(j) + j)
        output counted = random[i, j](seed)
        output narrow = random_bits(u64(i64(seed)), index[j, u8])
        output negative = random_bits(3, -1i64)";
    let run = run_text(body, &[("seed", vec![-5.0])]);
    let seed = -5_i64 as u64;
    for (at, value) in run.array("given").iter().enumerate() {
        assert_eq!(value.bits(), bits(seed, at as u64), "element {at}");
    }
    assert!(run.array("given").iter().eq(run.array("counted").iter()));
    for (at, value) in run.array("narrow").iter().enumerate() {
        assert_eq!(value.bits(), bits(seed, at as u64), "element {at}");
    }
    assert_eq!(run.array("negative").get_flat(0).bits(), bits(3, u64::MAX));
}

#[test]
fn uniform_numbers_are_the_highest_bits_of_the_dtypes_precision() {
    let body = "
        dim n = 500
        output f8e5m2_ = uniform[f8e5m2](9, n)
        output f8e4m3_ = uniform[f8e4m3](9, n)
        output bf16_ = uniform[bf16](9, n)
        output f16_ = uniform[n, f16](9)
        output f32_ = uniform[f32](9, n)
        output plain = uniform(9, n)
        output f64_ = uniform[f64](9, n)";
    let run = run_text(body, &[]);
    let kinds = [
        ("f8e5m2_", DType::F8E5M2, 3),
        ("f8e4m3_", DType::F8E4M3, 4),
        ("bf16_", DType::BF16, 8),
        ("f16_", DType::F16, 11),
        ("f32_", DType::F32, 24),
        ("plain", DType::F32, 24),
        ("f64_", DType::F64, 53),
    ];
    for (name, dtype, digits) in kinds {
        assert_eq!(run.array(name).dtype(), dtype);
        for (at, value) in run.values(name).into_iter().enumerate() {
            let expected = fraction(bits(9, at as u64), 64 - digits, digits);
            assert_eq!(value, expected, "element {at} of {name}");
            assert!(
                (0.0..1.0).contains(&value),
                "element {at} of {name}: {value}"
            );
        }
    }
}

#[test]
fn normal_numbers_are_as_accurate_as_promised() {
    let body = "
        dim n = 4000
        output single = normal[n](1)
        output half = normal[f16](1, n)
        output double = normal[f64](1, n)";
    let run = run_text(body, &[]);
    let exact = |u: f64, v: f64| (-2.0 * (-u).ln_1p()).sqrt() * (std::f64::consts::TAU * v).cos();
    let (singles, doubles) = (run.values("single"), run.values("double"));
    let (mut sum, mut squares) = (0.0, 0.0);
    for at in 0..4000 {
        let first = bits(1, at as u64);
        let second = bits(1, first);
        let single = exact(fraction(first, 40, 24), fraction(first, 16, 24));
        let got = singles[at];
        assert!((got - single).abs() < 4e-6, "{at}: {got}, not {single}");
        let half = run.array("half").get_flat(at);
        assert_eq!(half, Scalar::from_f64(DType::F16, got), "{at}");
        let double = exact(fraction(first, 11, 53), fraction(second, 11, 53));
        let got = doubles[at];
        assert!((got - double).abs() < 2e-14, "{at}: {got}, not {double}");
        sum += got;
        squares += got * got;
    }
    // Within four standard errors of 0 and 1.
    assert!((sum / 4000.0).abs() < 0.064, "the mean is {}", sum / 4000.0);
    assert!(
        (squares / 4000.0 - 1.0).abs() < 0.09,
        "{}",
        squares / 4000.0
    );
}

#[test]
fn the_builder_makes_what_the_text_makes() {
    let mut builder = GraphBuilder::new();
    let dims = [("i", 2), ("j", 5)].map(|(name, size)| {
        let dim = builder.dim(name).expect("the name is free");
        builder.set_size(dim, Expr::constant(size), "the test");
        dim
    });
    let seed = builder.constant(Scalar::from_bits(DType::U64, 77));
    let counter = builder
        .linear_index(&dims)
        .expect("dimensions have indices");
    let normal = builder.normal(seed, counter, DType::BF16);
    let normal = normal.expect("bf16 is a float");
    builder.output("x", normal).expect("the name is free");
    let graph = builder.finish().expect("the graph is whole");
    let binding = graph.bind(&[]).expect("there are no sizes to give");
    let built = evaluate(&graph, &binding, &[]).expect("the graph evaluates");
    let text = run_text("output x = normal[i=2, j=5, bf16](77)", &[]);
    assert_eq!(&built[0].1, text.array("x"));

    let float = {
        let mut builder = GraphBuilder::new();
        let seed = builder.constant(Scalar::f32(1.0));
        builder.random_bits(seed, seed)
    };
    assert_eq!(
        float.expect_err("floats are no seeds").to_string(),
        "the seed of random numbers must be an integer dtype, not f32"
    );
}
