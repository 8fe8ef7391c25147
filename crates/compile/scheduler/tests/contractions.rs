//! The schedules that contractions and what is around them get by themselves.

use loopwright_graph::parse;
use loopwright_looptree::Target;
use loopwright_scheduler::{Order, schedule};
use loopwright_text::Source;

const MACHINE: Target = Target {
    vector_bytes: 64,
    vector_registers: 32,
    l1_bytes: 48 << 10,
    l2_bytes: 1280 << 10,
    ..Target::SCALAR
};

/// The schedule's lines that are not edits.
fn steps(program: &str) -> Vec<String> {
    steps_for(&MACHINE, program)
}

fn steps_for(machine: &Target, program: &str) -> Vec<String> {
    let program = format!("loopwright program 1\n{program}");
    let graph = parse(&Source::new("program.lw", program.as_str())).expect("the program is right");
    let explained = schedule(graph.with_stores(), machine, Order::Free).expect("it has a schedule");
    let text = explained.plan.to_string();
    let lines = text.lines().filter(|line| line.contains(": "));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_tile_has_as_many_vectors_and_rows_as_leave_the_smallest_rest() {
    let product = |m: i64, n: i64| {
        steps(&format!(
            "input A: f32[i={m}, k=64]\ninput B: f32[k, j={n}]\noutput C = sum[k](A * B)\n"
        ))
    };
    assert_eq!(
        product(128, 128),
        ["C: j/64, i/6, k, i unroll, j/16 unroll, j vectorize"]
    );
    // All of a row in one tile needs no loop around it.
    assert_eq!(
        product(96, 64),
        ["C: i/6, k, i unroll, j/16 unroll, j vectorize"]
    );
    assert_eq!(
        product(96, 48),
        ["C: i/8, k, i unroll, j/16 unroll, j vectorize"]
    );
}

#[test]
fn what_follows_a_tile_takes_it_from_registers() {
    let program = "input A: f32[i=96, k=64]\ninput B: f32[k, j=128]\ninput bias: f32[j]\n\
                   sums = sum[k](A * B)\noutput C = max(sums + bias, 0)\n";
    assert_eq!(
        steps(program),
        [
            "sums: j/64, i/6, k, i unroll, j/16 unroll, j vectorize",
            "C: j/64, i/6, i unroll, j/16 unroll, j vectorize",
        ]
    );
}

#[test]
fn weights_take_their_gradients_from_registers() {
    let program = |second: &str| {
        steps(&format!(
            "input x: f32[b=64, i=96]\ninput d: f32[b, j=64]\n\
             state w: f32[i, j]\nstate v: f32[i, j]\n\
             dw = sum[b](x * d)\ndv = sum[b]({second})\n\
             update w = w - dw\nupdate v = v - dv\n"
        ))
    };
    let tile = "i/6, b, i unroll, j/16 unroll, j vectorize";
    let from_registers = "i/6, i unroll, j/16 unroll, j vectorize";
    let found = program("x * d");
    let [dw, w, dv, v] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!([dw, dv], [&format!("dw: {tile}"), &format!("dv: {tile}")]);
    assert!(w.ends_with(from_registers), "{w}");
    assert!(v.ends_with(from_registers), "{v}");
    // A gradient that reads the weights as they were before comes before they change.
    let found = program("x * d * w");
    let names: Vec<&str> = found
        .iter()
        .filter_map(|step| Some(step.split_once(':')?.0))
        .collect();
    let [first, second, w, v] = names[..] else {
        panic!("{found:?}");
    };
    assert_eq!([first, second], ["dv", "dw"], "{found:?}");
    assert!(w.starts_with('%') && v.starts_with('%'), "{found:?}");
}

#[test]
fn a_deep_product_is_folded_in_blocks_of_a_panel() {
    let program = "input A: f32[i=384, k=8192]\ninput B: f32[k, j=256]\noutput C = sum[k](A * B)\n";
    assert_eq!(
        steps(program),
        [
            "panel1: layout=[j/64, k, j], j/64, k/2048, k, j/16 unroll, j vectorize",
            "C: j/64, k/2048, i/6, k, i unroll, j/16 unroll, j vectorize",
        ]
    );
}

#[test]
fn a_panel_that_crowds_out_all_else_is_folded_in_blocks_of_the_first_cache() {
    // 864 KiB of a panel, 162 KiB of the image: a block of 16 channels is 27 KiB.
    let found = convolution((512, 512), 7, 3, 1);
    assert_eq!(
        found[1..],
        [
            "panel1: layout=[o/48, c, ky, kx, o], o/48, c/16, c, ky, kx, o",
            "%4: layout=[y, x, o], o/48, c/16, y, x/7, c, ky, kx, x unroll, o/16 unroll, o vectorize",
            "Y: o/48, y, x/7, x unroll, o/16 unroll, o vectorize",
        ]
    );
    // Here the image alone needs most of the second cache.
    let found = convolution((64, 128), 56, 3, 1);
    assert!(!found[1].contains("c/"), "{found:#?}");
    // And here there is room for all.
    let found =
        steps("input A: f32[i=128, k=768]\ninput B: f32[k, j=3072]\noutput C = sum[k](A * B)\n");
    assert!(!found[0].contains("k/"), "{found:#?}");
}

#[test]
fn panels_are_so_narrow_that_each_thread_has_one() {
    // 512 channels are 11 panels of 48, but 16 of 32.
    let machine = Target {
        threads: 16,
        ..MACHINE
    };
    let program = convolution_program((512, 512), 7, 3, 1);
    let found = steps_for(&machine, &program);
    let tile = "o/32 parallel, c/32, y, x/7, c, ky, kx, x unroll, o/16 unroll, o vectorize";
    assert!(found[2].ends_with(tile), "{found:#?}");
    // Two threads have enough panels of 48.
    let machine = Target {
        threads: 2,
        ..MACHINE
    };
    let found = steps_for(&machine, &program);
    assert!(found[2].contains("o/48 parallel, c/16, y"), "{found:#?}");
}

#[test]
fn threads_copy_whole_blocks_of_a_panel() {
    let machine = Target {
        threads: 16,
        ..MACHINE
    };
    let found = steps_for(&machine, &convolution_program((256, 256), 14, 3, 1));
    let panel = "o/64 parallel, c/16 parallel, c, ky, kx, o";
    assert!(found[1].ends_with(panel), "{found:#?}");
}

#[test]
fn vectors_of_a_convolution_lie_along_the_dimension_that_fills_them() {
    let program = "dim y = 56, x = 56\ninput W: f32[o=64, c=64, ky=3, kx=3]\n\
                   input X: f32[c, iy=58, ix=58]\n\
                   Y[o, y, x] = sum[c, ky, kx](W * X[c, y + ky, x + kx])\noutput Y\n";
    let found = steps(program);
    assert!(
        found[1].contains("y, x/6, c, ky, kx, x unroll, o/16 unroll, o vectorize"),
        "{found:#?}"
    );
    // Twice as wide, the rows fill vectors.
    let found = steps(
        &program
            .replace("x = 56", "x = 64")
            .replace("ix=58", "ix=66"),
    );
    assert!(found[0].ends_with("x/16 unroll, x vectorize"), "{found:#?}");
}

/// The schedule's lines of a padded convolution of square images, with what follows it.
fn convolution(channels: (i64, i64), image: i64, kernel: i64, stride: i64) -> Vec<String> {
    steps(&convolution_program(channels, image, kernel, stride))
}

fn convolution_program(channels: (i64, i64), image: i64, kernel: i64, stride: i64) -> String {
    let ((from, to), size) = (channels, image / stride);
    let pad = kernel / 2;
    format!(
        "dim y = {size}, x = {size}\ninput X: f32[c={from}, row={image}, col={image}]\n\
         input W: f32[o={to}, c, ky={kernel}, kx={kernel}]\n\
         seen = X[c, y*{stride} + ky - {pad}, x*{stride} + kx - {pad}] else 0\n\
         S[o, y, x] = sum[c, ky, kx](W * seen)\noutput Y = max(S, 0)\n"
    )
}

/// Fails where the sums of a convolution are not a tile of some rows along `x` and vectors of packed channels.
fn expect_channels_in_lanes(found: &[String], rows: i64) {
    let tile = format!("y, x/{rows}, c, ky, kx, x unroll, o/16 unroll, o vectorize");
    let whole_row = format!("y, x/{rows}, x unroll, o/16 unroll, o vectorize");
    let has = |start: &str, end: &str| {
        let mut lines = found.iter();
        lines.any(|line| line.starts_with(start) && line.ends_with(end))
    };
    assert!(has("panel", ", o"), "no packed channels: {found:#?}");
    assert!(has("%4: ", &tile), "no {tile}: {found:#?}");
    assert!(has("Y: ", &whole_row), "no {whole_row}: {found:#?}");
}

#[test]
fn a_stem_with_a_stride_has_its_channels_in_lanes() {
    // Only 147 elements are folded, and rows of 112 would fill vectors, but every other element of a row is read.
    expect_channels_in_lanes(&convolution((3, 64), 224, 7, 2), 6);
}

#[test]
fn a_shortcut_with_a_stride_has_its_channels_in_lanes() {
    expect_channels_in_lanes(&convolution((64, 128), 56, 1, 2), 6);
}

#[test]
fn a_convolution_to_rows_shorter_than_vectors_has_its_channels_in_lanes() {
    expect_channels_in_lanes(&convolution((512, 512), 7, 3, 1), 7);
    expect_channels_in_lanes(&convolution((256, 512), 14, 3, 2), 7);
}

/// Two convolutions, each with a scale and a shift that are computed for each channel, and a pooling between them. `size` is the
/// image's height and width, `pooled` what the pooling leaves of it.
fn two_convolutions(size: i64, pooled: i64) -> Vec<String> {
    steps(&format!(
        "dim y = {size}, x = {size}, v = {pooled}, u = {pooled}\n\
         input X: f32[c=64, row={size}, col={size}]\n\
         input W: f32[o=64, c, ky=3, kx=3]\ninput mean: f32[o]\ninput var: f32[o]\n\
         input beta: f32[o]\n\
         seen = X[c, y + ky - 1, x + kx - 1] else 0\n\
         S[o, y, x] = sum[c, ky, kx](W * seen)\n\
         bent = max((S - mean) * rsqrt(var + 1e-5) + beta, 0)\n\
         framed = bent[o, v*2 + ky - 1, u*2 + kx - 1] else -inf\n\
         pool[o, v, u] = max[ky, kx](framed)\n\
         input V: f32[p=64, o, ky, kx]\n\
         again = pool[o, v + ky - 1, u + kx - 1] else 0\n\
         T[p, v, u] = sum[o, ky, kx](V * again)\noutput Y = max(T, 0)\n"
    ))
}

#[test]
fn between_convolutions_with_channels_in_lanes_all_has_channels_in_lanes() {
    let found = two_convolutions(56, 28);
    let line = |start: &str| {
        let mut lines = found.iter();
        let line = lines.find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("no step `{start}`: {found:#?}"))
    };
    // The scale of each channel comes before the convolution, so that what scales the tile takes it from registers.
    assert_eq!(
        line("bent"),
        "bent: layout=[y, x, o], y, x/6, x unroll, o/16 unroll, o vectorize",
        "{found:#?}"
    );
    for layout in ["_y, ", "_v, "] {
        let is_padded = |line: &&String| line.starts_with("padded") && line.contains(layout);
        let padded = found.iter().find(is_padded);
        let padded = padded.unwrap_or_else(|| panic!("nothing is padded: {found:#?}"));
        assert!(padded.contains(", o], "), "{found:#?}");
        assert!(padded.ends_with("o/16, o vectorize"), "{found:#?}");
    }
    let pool = found
        .iter()
        .find(|line| line.contains(": layout=[v, u, o], v, u, ky, kx, "));
    let pool = pool.unwrap_or_else(|| panic!("the pooling has no channels in lanes: {found:#?}"));
    assert!(pool.ends_with("o/16 unroll, o vectorize"), "{found:#?}");
}

#[test]
fn what_a_convolution_reads_along_rows_lies_in_rows() {
    // Rows of 32 fill vectors, so that the second convolution has those along them.
    let found = two_convolutions(56, 32);
    let last = found.last().expect("there are steps");
    assert!(last.ends_with("u vectorize"), "{found:#?}");
    let is_padded = |line: &&String| line.starts_with("padded") && line.contains("_v, ");
    let padded = found.iter().find(is_padded);
    let padded = padded.unwrap_or_else(|| panic!("nothing is padded: {found:#?}"));
    assert!(!padded.contains("layout"), "{found:#?}");
}

#[test]
fn attention_holds_some_rows_of_its_scores() {
    let program = "input query: f32[head=8, q=512, d=64]\ninput key: f32[head, k=512, d]\n\
                   input value: f32[head, k, e=64]\nscores = sum[d](query * key) / 8\n\
                   weights = exp(scores - max[k](scores))\nshares = weights / sum[k](weights)\n\
                   output Y = sum[k](shares * value)\n";
    let found = steps(program);
    let (panel, rest) = found.split_first().expect("there are steps");
    assert!(panel.starts_with("panel1: "), "{found:#?}");
    for line in rest {
        assert!(line.contains(": head, q/24, "), "{found:#?}");
    }
}

#[test]
fn what_is_compared_is_kept_and_the_mask_lies_in_lanes() {
    let program = "input x: f32[i=64, j=128]\ninput y: f32[i, j]\n\
                   near = x * x + y * y <= 4.0\n\
                   output a = select(near, x + y, x)\noutput b = select(near, x - y, y)\n";
    let found = steps(program);
    let [length, a, b] = &found[..] else {
        panic!("{found:?}");
    };
    // A name of its own has what the program does not call anything.
    assert!(length.starts_with('%'), "{found:?}");
    for step in [length, a, b] {
        assert!(step.ends_with("i, j/16, j vectorize"), "{found:?}");
    }
}
