//! What programs mean, in the words of the language: each test is one behaviour.

mod support;

use loopwright_graph::Graph;
use loopwright_ops::{DType, Op, Scalar, evaluate as apply, same_value};
use support::{counting, program, refused, run, run_text};

fn size_of(graph: &Graph, dim: &str) -> i64 {
    let dim = graph.find_dim(dim).expect("the dimension exists");
    graph.bind(&[]).expect("the sizes are numbers").size(dim)
}

#[test]
fn matrix_product_by_names() {
    let body = "
        input a: f64[i=2, k=3]
        input b: f64[k, j=2]
        output c = sum[k](a * b)
        d[j, i] = c
        output d";
    let run = run_text(body, &[("a", counting(6)), ("b", counting(6))]);
    assert_eq!(run.values("c"), [10.0, 13.0, 28.0, 40.0]);
    assert_eq!(run.values("d"), [10.0, 28.0, 13.0, 40.0]);
    assert_eq!(run.shape("d"), [2, 2]);
}

#[test]
fn no_shared_name_gives_the_outer_product() {
    let body = "
        input a: i32[i=2]
        input b: i32[j=3]
        output c = a * b + 1";
    let run = run_text(body, &[("a", vec![1.0, 2.0]), ("b", vec![1.0, 2.0, 3.0])]);
    assert_eq!(run.values("c"), [2.0, 3.0, 4.0, 3.0, 5.0, 7.0]);
    assert_eq!(run.shape("c"), [2, 3]);
}

/// Every op of the table on every dtype it takes, called by its name.
#[test]
fn every_op_of_the_table_is_callable() {
    for &op in Op::ALL {
        for dtype in DType::ALL {
            if !op.info().class.allows(dtype) {
                continue;
            }
            let values = [
                Scalar::one(dtype),
                Scalar::from_f64(dtype, 0.5),
                Scalar::one(dtype),
            ];
            let mut names = vec!["a", "b", "c"];
            names.truncate(op.arity());
            let mut operands = values[..op.arity()].to_vec();
            if op == Op::Select {
                names[0] = "true";
                operands[0] = Scalar::bool(true);
            }
            let body = format!(
                "input a: {dtype}\ninput b: {dtype}\ninput c: {dtype}\noutput y = {op}({})",
                names.join(", ")
            );
            let inputs: Vec<(&str, Vec<f64>)> = ["a", "b", "c"]
                .into_iter()
                .zip(values.map(|value| vec![value.to_f64()]))
                .collect();
            let got = run_text(&body, &inputs).array("y").get_flat(0);
            let expected = apply(op, &operands).expect("the operands are allowed");
            assert!(
                same_value(got, expected),
                "{op} on {dtype}: {got}, not {expected}"
            );
        }
    }
}

#[test]
fn reductions_over_one_several_and_all_dimensions() {
    let body = "
        input x: i32[i=2, j=3]
        output rows = sum[j](x)
        output columns = max[i](x)
        output product = prod[i, j](x + 1)
        output smallest = min[j, i](x)
        output some = any[i, j](x == 5)
        output every = all[j](x > 0)
        output place = argmax[j](x % 3)
        output least = argmin[i](-x)
        output running = cumsum[j](x)
        output backward = scan_sum[j, exclusive, reverse](x)
        output average = mean[i, j](f32(x))";
    let run = run_text(body, &[("x", counting(6))]);
    assert_eq!(run.values("rows"), [3.0, 12.0]);
    assert_eq!(run.values("columns"), [3.0, 4.0, 5.0]);
    assert_eq!(run.values("product"), [720.0]);
    assert_eq!(run.values("smallest"), [0.0]);
    assert_eq!(run.values("some"), [1.0]);
    assert_eq!(run.values("every"), [0.0, 1.0]);
    assert_eq!(run.values("place"), [2.0, 2.0]);
    assert_eq!(run.values("least"), [1.0, 1.0, 1.0]);
    assert_eq!(run.values("running"), [0.0, 1.0, 3.0, 3.0, 7.0, 12.0]);
    assert_eq!(run.values("backward"), [3.0, 2.0, 0.0, 9.0, 5.0, 0.0]);
    assert_eq!(run.values("average"), [2.5]);
    assert_eq!(run.array("place").dtype(), DType::I64);
}

#[test]
fn an_empty_reduction_is_the_identity() {
    let body = "
        input x: f32[i=0]
        output s = sum[i](x)
        output p = prod[i](x)
        output m = max[i](x)
        output a = argmax[i](x)";
    let run = run_text(body, &[]);
    assert_eq!(run.values("s"), [0.0]);
    assert_eq!(run.values("p"), [1.0]);
    assert_eq!(run.values("m"), [f64::NEG_INFINITY]);
    assert_eq!(run.values("a"), [0.0]);
}

#[test]
fn the_accumulator_is_the_one_asked_for() {
    let body = "
        input x: f32[i=3]
        output narrow = sum[i](x)
        output wide = sum[i, acc=f64](x)";
    let run = run_text(body, &[("x", vec![16_777_216.0, 1.0, 1.0])]);
    assert_eq!(run.values("narrow"), [16_777_216.0]);
    assert_eq!(run.values("wide"), [16_777_218.0]);
}

#[test]
fn ten_pads_stacked_then_pointwise() {
    let mut body = String::from("input p0: f32[d0=3]\n");
    for at in 1..=10 {
        body += &format!(
            "dim d{at} = d{prev} + 3\np{at} = p{prev}[d{at} - 1] else {at}\n",
            prev = at - 1
        );
    }
    body += "output y = p10 * 2 + 1";
    let run = run_text(&body, &[("p0", vec![100.0, 200.0, 300.0])]);
    let mut expected: Vec<f64> = vec![100.0, 200.0, 300.0];
    for at in 1..=10 {
        expected.insert(0, f64::from(at));
        expected.extend([f64::from(at); 2]);
    }
    let expected: Vec<f64> = expected
        .into_iter()
        .map(|value| value * 2.0 + 1.0)
        .collect();
    assert_eq!(run.values("y"), expected);
}

#[test]
fn padding_is_asymmetric_in_several_dimensions_with_any_value() {
    let body = "
        input x: i8[i=1, j=2]
        dim r = 2, c = 4
        output y = -(x[r, c - 1] else -7)";
    let run = run_text(body, &[("x", vec![1.0, 2.0])]);
    assert_eq!(run.values("y"), [7.0, -1.0, -2.0, 7.0, 7.0, 7.0, 7.0, 7.0]);
}

#[test]
fn conditions_leave_elements_out() {
    let body = "
        input x: f32[i=4]
        output y = x[i] if i % 2 == 0, i > 0 else -inf";
    let run = run_text(body, &[("x", counting(4))]);
    let out = f64::NEG_INFINITY;
    assert_eq!(run.values("y"), [out, out, 2.0, out]);
}

#[test]
fn concatenation_in_one_and_two_dimensions() {
    let body = "
        input a: i32[x=2]
        input b: i32[y=3]
        input c: i32[x]
        output one = concat[z: x, y, x](a, b, c)
        input m: i32[r=2, x]
        input n: i32[r, y]
        output two = concat[w: x, y](m, n)";
    let inputs = [
        ("a", vec![1.0, 2.0]),
        ("b", vec![3.0, 4.0, 5.0]),
        ("c", vec![6.0, 7.0]),
        ("m", vec![1.0, 2.0, 3.0, 4.0]),
        ("n", counting(6)),
    ];
    let run = run_text(body, &inputs);
    assert_eq!(run.values("one"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(run.shape("two"), [2, 5]);
    assert_eq!(
        run.values("two"),
        [1.0, 2.0, 0.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0, 5.0]
    );
}

#[test]
fn convolution_in_one_dimension_with_stride_and_dilation() {
    let body = "
        input x: i32[n=9]
        input w: i32[k=3]
        output plain = sum[k](x[y + k] * w)
        output strided = sum[k](x[s*2 + k] * w)
        output dilated = sum[k](x[d + k*3] * w)
        dim p = n
        output same = sum[k]((x[p + k - 1] else 0) * w)";
    let run = run_text(body, &[("x", counting(9)), ("w", vec![1.0, 10.0, 100.0])]);
    assert_eq!(
        run.values("plain"),
        [210.0, 321.0, 432.0, 543.0, 654.0, 765.0, 876.0]
    );
    assert_eq!(run.values("strided"), [210.0, 432.0, 654.0, 876.0]);
    assert_eq!(run.values("dilated"), [630.0, 741.0, 852.0]);
    assert_eq!(run.values("same")[..2], [100.0, 210.0]);
    assert_eq!(run.values("same")[8], 87.0);
}

/// The same sums written as plain loops.
#[test]
fn convolution_in_two_dimensions_grouped_and_depthwise() {
    let body = "
        input x: i64[g=2, c=2, h=6, w=7]
        input weight: i64[g, f=3, c, ky=3, kx=2]
        output grouped = sum[c, ky, kx](x[g, c, y*2 + ky, z + kx] * weight)
        input depth: i64[g, c, ky, kx]
        output depthwise = sum[ky, kx](x[g, c, y*2 + ky, z + kx] * depth)";
    let graph = program(body);
    let (x, weight, depth) = (counting(168), counting(72), counting(24));
    let inputs = [
        ("x", x.clone()),
        ("weight", weight.clone()),
        ("depth", depth.clone()),
    ];
    let run = run(&graph, &[], &inputs);
    assert_eq!(run.shape("grouped"), [2, 2, 6, 3]);
    let at = |g: usize, c: usize, h: usize, w: usize| x[((g * 2 + c) * 6 + h) * 7 + w];
    for g in 0..2 {
        for y in 0..2 {
            for z in 0..6 {
                for f in 0..3 {
                    let mut sum = 0.0;
                    for (c, ky, kx) in (0..12).map(|n| (n / 6, n / 2 % 3, n % 2)) {
                        let tap = weight[(((g * 3 + f) * 2 + c) * 3 + ky) * 2 + kx];
                        sum += at(g, c, y * 2 + ky, z + kx) * tap;
                    }
                    assert_eq!(run.array("grouped").get(&[g, y, z, f]).to_f64(), sum);
                }
                for c in 0..2 {
                    let mut sum = 0.0;
                    for (ky, kx) in (0..6).map(|n| (n / 2, n % 2)) {
                        let tap = depth[((g * 2 + c) * 3 + ky) * 2 + kx];
                        sum += at(g, c, y * 2 + ky, z + kx) * tap;
                    }
                    assert_eq!(run.array("depthwise").get(&[g, c, y, z]).to_f64(), sum);
                }
            }
        }
    }
}

#[test]
fn pooling_is_a_view_and_a_reduction() {
    let body = "
        input x: f32[h=4, w=4]
        dim ky = 2, kx = 2
        output largest = max[ky, kx](x[y*2 + ky, z*2 + kx])
        output average = mean[ky, kx](x[y*2 + ky, z*2 + kx])";
    let run = run_text(body, &[("x", counting(16))]);
    assert_eq!(run.values("largest"), [5.0, 7.0, 13.0, 15.0]);
    assert_eq!(run.values("average"), [2.5, 4.5, 10.5, 12.5]);
}

#[test]
fn transpose_flatten_split_slice_flip() {
    let body = "
        input x: i32[i=2, j=3]
        turned[j, i] = x
        output turned
        dim z = 6
        flat = x[z // 3, z % 3]
        output flat
        dim a = 3, b = 2
        output split = flat[a*2 + b]
        dim s = 2
        output slice = x[i, s + 1]
        output flip = x[i, 2 - f]
        output flip_by_size = x[size(i) - 1 - r, j]
        output row = x[1, j]
        output element = x[1, 2]";
    let run = run_text(body, &[("x", counting(6))]);
    assert_eq!(run.values("turned"), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(run.values("flat"), counting(6));
    assert_eq!(run.shape("split"), [3, 2]);
    assert_eq!(run.values("slice"), [1.0, 2.0, 4.0, 5.0]);
    assert_eq!(run.values("flip"), [2.0, 1.0, 0.0, 5.0, 4.0, 3.0]);
    assert_eq!(run.values("flip_by_size"), [3.0, 4.0, 5.0, 0.0, 1.0, 2.0]);
    assert_eq!(run.values("row"), [3.0, 4.0, 5.0]);
    assert_eq!(run.values("element"), [5.0]);
}

#[test]
fn a_view_of_a_view_of_a_view() {
    let body = "
        input x: i32[i=8]
        dim p = 12
        output y = (x[7 - f] else 0)[q*2][p - 4] else -1";
    let run = run_text(&format!("dim f = 8\n{body}"), &[("x", counting(8))]);
    // Flipped: 7..0; every other one: 7 5 3 1; four pads in front and behind.
    let mut expected = vec![-1.0; 12];
    expected[4..8].copy_from_slice(&[7.0, 5.0, 3.0, 1.0]);
    assert_eq!(run.values("y"), expected);
}

#[test]
fn sizes_follow_from_either_side() {
    // Output 8 with kernel 3 gives input 10, and 17 with stride 2.
    let graph = program("dim y = 8, k = 3\ninput x: f32[n]\noutput o = x[y + k]");
    assert_eq!(size_of(&graph, "n"), 10);
    let graph = program("dim y = 8, k = 3\ninput x: f32[n]\noutput o = x[y*2 + k]");
    assert_eq!(size_of(&graph, "n"), 17);
    // And back.
    let graph = program("dim k = 3\ninput x: f32[n=10]\noutput o = x[y + k]");
    assert_eq!(size_of(&graph, "y"), 8);
    let graph = program("dim k = 3\ninput x: f32[n=17]\noutput o = x[y*2 + k]");
    assert_eq!(size_of(&graph, "y"), 8);
    // A flip keeps the size, from either side.
    let graph = program("input x: f32[n=5]\noutput o = x[4 - f]");
    assert_eq!(size_of(&graph, "f"), 5);
}

#[test]
fn sizes_may_stay_symbols() {
    let graph = program(
        "size N = 17
        dim k = 3
        input x: f32[n=N]
        output o = sum[k](x[y*2 + k])
        output f = x[size(n) - 1 - r]
        output t = x[half*2 + 1]
        dim half = N // 2
        output m = size(y) * 2 + N",
    );
    for (n, outputs) in [(17, 8), (18, 8), (19, 9), (3, 1)] {
        let values = vec![1.0; n as usize];
        let run = run(&graph, &[("N", n)], &[("x", values)]);
        assert_eq!(run.shape("o"), [outputs], "N = {n}");
        assert_eq!(run.shape("f"), [n as usize]);
        assert_eq!(run.values("m"), [outputs as f64 * 2.0 + n as f64]);
    }
    let error = graph.bind(&[("N", 0)]).expect_err("no window fits");
    assert!(error.to_string().contains("negative size"), "{error}");
}

#[test]
fn convolutions_chain_through_views() {
    let body = "
        input x: i32[n=12]
        input w: i32[k=3]
        first = sum[k](x[y + k] * w)
        second = sum[k2](first[z*2 + k2] * w[k2])
        output second";
    let graph = program(body);
    assert_eq!((size_of(&graph, "y"), size_of(&graph, "z")), (10, 4));
    let run = run(&graph, &[], &[("x", counting(12)), ("w", vec![1.0; 3])]);
    assert_eq!(run.values("second"), [18.0, 36.0, 54.0, 72.0]);
}

#[test]
fn lookups() {
    let body = "
        input table: f32[v=3, d=2]
        input t: i32[n=4]
        output rows = table[t, d] else -1
        output shifted = table[t + 1, d]
        output renamed = table[t, 1 - e]
        input index: u64[d]
        output both = table[\"index\", d]";
    let body = body.replace("input index", "input \"index\"");
    let inputs = [
        ("table", counting(6)),
        ("t", vec![2.0, 0.0, 3.0, -1.0]),
        ("index", vec![1.0, 2.0]),
    ];
    let run = run_text(&body, &inputs);
    assert_eq!(
        run.values("rows"),
        [4.0, 5.0, 0.0, 1.0, -1.0, -1.0, -1.0, -1.0]
    );
    assert_eq!(
        run.values("shifted"),
        [0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0]
    );
    assert_eq!(
        run.values("renamed"),
        [5.0, 4.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    );
    assert_eq!(run.values("both"), [2.0, 5.0]);
}

#[test]
fn scatters_combine_in_order() {
    let body = "
        input base: i32[b=3]
        input at: i64[n=4]
        input value: i32[n]
        output set = scatter[b, set](base, at, value)
        output sum = scatter[b, sum](base, at, value)
        output max = scatter[b, max](base, at, value)";
    let inputs = [
        ("base", vec![10.0, 20.0, 30.0]),
        ("at", vec![0.0, 0.0, 2.0, 5.0]),
        ("value", vec![3.0, 4.0, 50.0, 6.0]),
    ];
    let run = run_text(body, &inputs);
    assert_eq!(run.values("set"), [4.0, 20.0, 50.0]);
    assert_eq!(run.values("sum"), [17.0, 20.0, 80.0]);
    assert_eq!(run.values("max"), [10.0, 20.0, 50.0]);
}

#[test]
fn sorting_puts_nan_last_and_first() {
    let body = "
        input x: f32[k=4]
        output up = argsort[k](x)
        output down = argsort[k, desc](x)
        output sorted = sort[k, desc](x)
        output two = topk[k -> j=2](x)";
    let run = run_text(body, &[("x", vec![1.0, f64::NAN, 2.0, 1.0])]);
    assert_eq!(run.values("up"), [0.0, 3.0, 2.0, 1.0]);
    assert_eq!(run.values("down"), [1.0, 2.0, 0.0, 3.0]);
    assert!(run.values("two")[0].is_nan());
    assert_eq!(run.values("two")[1], 2.0);
}

#[test]
fn literals_take_the_dtype_beside_them() {
    let body = "
        input h: f16[i=1]
        input n: u8[i]
        output a = h * 0.1 + 1
        output b = 2 - n
        output c = max(0, -h)
        output d = h > 1 / 2
        output e = 7
        output f = 1.5
        output g = 3u8 + n
        output k = select(n > 1, sqrt(2) / 2, h)
        output l = f64(0.1)";
    let run = run_text(body, &[("h", vec![0.75]), ("n", vec![3.0])]);
    let dtypes = ["a", "b", "c", "d", "e", "f", "g", "k", "l"].map(|name| run.array(name).dtype());
    use DType::{Bool, F16, F32, F64, I64, U8};
    assert_eq!(dtypes, [F16, U8, F16, Bool, I64, F32, U8, F16, F64]);
    assert_eq!(run.values("b"), [255.0]);
    assert_eq!(run.values("d"), [1.0]);
    assert_eq!(run.values("l"), [0.1]);
}

#[test]
fn operators_group_as_usual() {
    let body = "
        input x: i64
        output a = 1 + 2 * x ** 2
        output b = -x ** 2
        output c = x - 1 - 1
        output d = 2 ** x ** 0
        output e = x + 1 << 1 == 8 & true
        output f = 7 // x * x + 7 % x
        output g = !(x == 3) | x >= 3
        output h = -7 / x
        output k = -7 // x";
    let run = run_text(body, &[("x", vec![3.0])]);
    let value = |name: &str| run.values(name)[0];
    assert_eq!(value("a"), 19.0);
    assert_eq!(value("b"), -9.0);
    assert_eq!(value("c"), 1.0);
    assert_eq!(value("d"), 2.0);
    assert_eq!(value("e"), 1.0);
    assert_eq!(value("f"), 7.0);
    assert_eq!(value("g"), 1.0);
    assert_eq!(value("h"), -2.0);
    assert_eq!(value("k"), -3.0);
}

#[test]
fn constants_in_lists() {
    let body = "
        const table: i8[r, c] = [[1, -2, 3],
                                 [4, 5, -128]]
        output table
        const half: f16 = 0.5
        output half
        output total = sum[r, c](i32(table))";
    let run = run_text(body, &[]);
    assert_eq!(run.shape("table"), [2, 3]);
    assert_eq!(run.values("table"), [1.0, -2.0, 3.0, 4.0, 5.0, -128.0]);
    assert_eq!(run.values("total"), [-117.0]);
}

#[test]
fn states_are_read_before_they_are_updated() {
    let body = "
        state a: i32[i=2]
        state b: i32[i]
        update a = b
        update b = a
        output sum = a + b";
    let run = run_text(body, &[("a", vec![1.0, 2.0]), ("b", vec![10.0, 20.0])]);
    assert_eq!(run.values("sum"), [11.0, 22.0]);
    assert_eq!(run.values("a"), [10.0, 20.0]);
    assert_eq!(run.values("b"), [1.0, 2.0]);
}

#[test]
fn random_bits_are_those_of_the_linear_index() {
    let body = "
        output bits = random[i=2, j=3](7)
        output share = uniform[i, j](7)
        output flat = random[n=6](7)";
    let run = run_text(body, &[]);
    assert!(run.array("bits").iter().eq(run.array("flat").iter()));
    let word = |bits: u64| Scalar::from_bits(DType::U64, bits);
    for (at, bits) in run.array("bits").iter().enumerate() {
        let expected = apply(Op::Threefry, &[word(7), word(at as u64)]);
        assert_eq!(Ok(bits), expected);
        let share = run.values("share")[at];
        assert_eq!(share, (bits.bits() >> 40) as f64 / f64::from(1 << 24));
    }
}

#[test]
fn bits_are_kept_by_bitcast() {
    let run = run_text(
        "input x: f32\noutput y = bitcast[u32](x)",
        &[("x", vec![1.0])],
    );
    assert_eq!(run.array("y").get_flat(0).bits(), 0x3f80_0000);
}

/// Contradicting claims are shown with both of their places.
#[test]
fn contradictions_show_both_places() {
    let error = refused("input a: f32[i=8]\ninput b: f32[i=9]\noutput c = a + b");
    assert!(
        error.contains("the size of `i` is contradicted: it is 8, but 9"),
        "{error}"
    );
    assert!(error.contains("2 | input a: f32[i=8]"), "{error}");
    assert!(error.contains("3 | input b: f32[i=9]"), "{error}");
}

#[test]
fn a_divisor_that_is_zero_is_refused_when_the_sizes_are_known() {
    let graph = support::program(
        "size N = 4, M = 2\ninput x: f32[i=8]\ndim j = M\noutput y = x[j % N] else 0",
    );
    assert!(graph.bind(&[]).is_ok());
    let error = graph.bind(&[("N", 0)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`y` divides by N, which is 0 with the sizes given"
    );
    // Nothing is computed where the view is empty.
    assert!(graph.bind(&[("N", 0), ("M", 0)]).is_ok());
}
