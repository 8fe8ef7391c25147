//! Whole networks, as programs that are written here: the layers of ResNet-18, and a block of GPT-2 with its gradients.

use crate::work::{Counted, Fill, Work};
use std::fmt::Write as _;

/// The networks of the suite.
pub(crate) fn networks() -> [Work; 3] {
    let (resnet18, resnet18_flops) = resnet18();
    let block = Block::GPT2_SMALL;
    // For each example, two products of 512 by 2048.
    let lstm_flops = 32.0 * 2.0 * 2.0 * 512.0 * 2048.0;
    [
        Work {
            name: "ResNet-18 forward, 1x3x224x224".to_owned(),
            request: "resnet18",
            text: resnet18.into(),
            sizes: Vec::new(),
            fill: weights,
            counted: Counted::Step(resnet18_flops),
        },
        Work {
            name: "GPT-2 block, both ways, 128x768".to_owned(),
            request: "gpt2_block",
            text: block.program().into(),
            sizes: Vec::new(),
            fill: weights,
            counted: Counted::Step(block.flops()),
        },
        Work {
            name: "LSTM step, 32x512".to_owned(),
            request: "lstm_step",
            text: include_str!("lstm_step.lw").into(),
            sizes: Vec::new(),
            fill: weights,
            counted: Counted::Step(lstm_flops),
        },
    ]
}

/// What keeps values at about 1 through all layers: weights that get smaller the more of them are summed, and
/// factors and variances around 1.
fn weights(name: &str, shape: &[usize]) -> Fill {
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    match shape {
        // Convolutions, then layers whose weights have the outputs first, then those that have them last.
        [_, inner @ ..] if inner.len() == 3 => {
            Fill::Normal((2.0 / inner.iter().product::<usize>() as f64).sqrt())
        }
        [CLASSES, inputs] if name == "fc_w" => Fill::Normal((1.0 / *inputs as f64).sqrt()),
        [_, inputs] if ends(&["wx", "wh"]) => Fill::Normal((1.0 / *inputs as f64).sqrt()),
        [inputs, _] if ends(&["_w"]) => Fill::Normal((1.0 / *inputs as f64).sqrt()),
        [_] if ends(&["_var", "_gamma", "ln1_w", "ln2_w"]) => Fill::Uniform(0.5, 1.5),
        [_] => Fill::Normal(0.1),
        _ => Fill::Normal(1.0),
    }
}

/// What ResNet-18 tells apart.
const CLASSES: usize = 1000;

/// Channels and height and width of the stages, the stem's first.
const STAGES: [(usize, usize); 5] = [(64, 112), (64, 56), (128, 28), (256, 14), (512, 7)];

/// A program that is being written, and the operations on floats that it amounts to.
struct Writer {
    text: String,
    flops: f64,
}

/// A convolution with what follows it.
struct Conv<'a> {
    name: &'a str,
    /// What it reads.
    from: &'a str,
    /// The channels' dimension of what it reads, and how many there are.
    channels: (&'a str, usize),
    /// The channels' dimension of what it gives.
    out: &'a str,
    /// Of what it gives: one of [`STAGES`].
    stage: usize,
    /// Width and height of the window, 1, 3 or 7.
    window: usize,
    stride: usize,
}

impl Writer {
    /// Writes a convolution and its normalisation; the array's name.
    fn conv(&mut self, conv: &Conv<'_>) -> String {
        let Conv {
            name,
            from,
            channels: (channel, channels),
            out,
            stage,
            window,
            stride,
        } = *conv;
        let (outs, side) = STAGES[stage];
        let (y, x) = (format!("y{stage}"), format!("x{stage}"));
        let scaled = |place: &str| match stride {
            1 => place.to_owned(),
            stride => format!("{place}*{stride}"),
        };
        let text = &mut self.text;
        let (ky, kx, frame) = (format!("ky{window}"), format!("kx{window}"), window / 2);
        let _ = writeln!(
            text,
            "input {name}_w: f32[{out}={outs}, {channel}={channels}, {ky}={window}, {kx}={window}]\n\
             {name}_seen = {from}[{channel}, {} + {ky} - {frame}, {} + {kx} - {frame}] else 0\n\
             {name}_sum[{out}, {y}, {x}] = sum[{channel}, {ky}, {kx}]({name}_w * {name}_seen)",
            scaled(&y),
            scaled(&x),
        );
        for part in ["mean", "var", "gamma", "beta"] {
            let _ = writeln!(text, "input {name}_{part}: f32[{out}]");
        }
        let _ = writeln!(
            text,
            "{name} = ({name}_sum - {name}_mean) * ({name}_gamma * rsqrt({name}_var + 1e-5)) + {name}_beta"
        );
        self.flops += 2.0 * (outs * channels * window * window * side * side) as f64;
        name.to_owned()
    }
}

/// ResNet-18, forward, one image; and its operations on floats, those of convolutions and the last layer alone. The
/// normalisations are those of inference, with a mean and a variance that are given.
fn resnet18() -> (String, f64) {
    let mut program = Writer {
        text: "loopwright program 1\n\n# ResNet-18, forward.\n\n".to_owned(),
        flops: 0.0,
    };
    for (stage, (_, side)) in STAGES.iter().enumerate() {
        let _ = writeln!(program.text, "dim y{stage} = {side}, x{stage} = {side}");
    }
    program
        .text
        .push_str("input image: f32[colour=3, row=224, column=224]\n\n");
    let stem = program.conv(&Conv {
        name: "stem",
        from: "image",
        channels: ("colour", 3),
        out: "c1",
        stage: 0,
        window: 7,
        stride: 2,
    });
    let _ = writeln!(
        program.text,
        "stem_bent = max({stem}, 0)\n\
         stem_framed = stem_bent[c1, y1*2 + ky3 - 1, x1*2 + kx3 - 1] else -inf\n\
         dim ky3 = 3, kx3 = 3\n\
         pooled[c1, y1, x1] = max[ky3, kx3](stem_framed)"
    );
    let mut before = "pooled".to_owned();
    for stage in 1..STAGES.len() {
        let (channels, _) = STAGES[stage];
        // Between the two convolutions of a block the channels have another name.
        let (out, middle) = (format!("c{stage}"), format!("m{stage}"));
        for block in 0..2 {
            let name = format!("s{stage}b{block}");
            let _ = writeln!(program.text, "\n# Stage {stage}, block {block}.");
            let halves = stage > 1 && block == 0;
            let (stride, (from, from_channels)) = if halves {
                (2, (format!("c{}", stage - 1), STAGES[stage - 1].0))
            } else {
                (1, (out.clone(), channels))
            };
            let first = program.conv(&Conv {
                name: &format!("{name}_conv1"),
                from: &before,
                channels: (&from, from_channels),
                out: &middle,
                stage,
                window: 3,
                stride,
            });
            let _ = writeln!(program.text, "{name}_bent = max({first}, 0)");
            let second = program.conv(&Conv {
                name: &format!("{name}_conv2"),
                from: &format!("{name}_bent"),
                channels: (&middle, channels),
                out: &out,
                stage,
                window: 3,
                stride: 1,
            });
            let passed = if halves {
                program.conv(&Conv {
                    name: &format!("{name}_down"),
                    from: &before,
                    channels: (&from, from_channels),
                    out: &out,
                    stage,
                    window: 1,
                    stride,
                })
            } else {
                before
            };
            let _ = writeln!(program.text, "{name} = max({second} + {passed}, 0)");
            before = name;
        }
    }
    let _ = write!(
        program.text,
        "\n# The scores.\n\
         input fc_w: f32[class={CLASSES}, c4]\n\
         input fc_b: f32[class]\n\
         output scores = sum[c4](mean[y4, x4]({before}) * fc_w) + fc_b\n"
    );
    program.flops += 2.0 * (STAGES[4].0 * CLASSES) as f64;
    (program.text, program.flops)
}

/// A block of GPT-2: attention that sees only what came before, and a layer of four times the width.
struct Block {
    dtype: &'static str,
    positions: usize,
    heads: usize,
    /// The width of one head.
    head: usize,
}

impl Block {
    const GPT2_SMALL: Block = Block {
        dtype: "f32",
        positions: 128,
        heads: 12,
        head: 64,
    };

    /// Forward two operations for each weight and position, and four back. Attention is two products forward and four
    /// back, counted in full: those who leave out what lies ahead do less.
    fn flops(&self) -> f64 {
        let width = (self.heads * self.head) as f64;
        let positions = self.positions as f64;
        let weights = (3.0 + 1.0 + 4.0 + 4.0) * width * width;
        6.0 * weights * positions + 12.0 * positions * positions * width
    }

    /// The block forward, and the gradients of all that comes in, for a gradient `d_y` of what comes out.
    fn program(&self) -> String {
        let Block {
            dtype,
            positions,
            heads,
            head,
        } = self;
        let width = heads * head;
        let (three, four, two) = (3 * width, 4 * width, 2 * width);
        let scale = 1.0 / (*head as f64).sqrt();
        format!(
            "loopwright program 1

# A block of GPT-2: forward, and the gradients written out by hand.

input x: {dtype}[s={positions}, c={width}]
input ln1_w: {dtype}[c]
input ln1_b: {dtype}[c]
input attn_w: {dtype}[c, n={three}]
input attn_b: {dtype}[n]
input proj_w: {dtype}[e={width}, c]
input proj_b: {dtype}[c]
input ln2_w: {dtype}[c]
input ln2_b: {dtype}[c]
input fc_w: {dtype}[c, m={four}]
input fc_b: {dtype}[m]
input out_w: {dtype}[m, c]
input out_b: {dtype}[c]
input d_y: {dtype}[s, c]

dim h = {heads}, d = {head}, t = {positions}

# Forward: attention.
centred1 = x - mean[c](x)
inverse1 = rsqrt(mean[c](centred1 * centred1) + 1e-5)
normal1 = centred1 * inverse1
entering1 = normal1 * ln1_w + ln1_b
split = sum[c](entering1 * attn_w) + attn_b
query[h, s, d] = split[s, h*{head} + d]
key[h, t, d] = split[t, {width} + h*{head} + d]
value[h, t, d] = split[t, {two} + h*{head} + d]
scores = select(t <= s, sum[d](query * key) * {scale}, -inf)
weights = exp(scores - max[t](scores))
shares = weights / sum[t](weights)
found = sum[t](shares * value)
joined[s, e] = found[e // {head}, s, e % {head}]
middle = x + sum[e](joined * proj_w) + proj_b

# Forward: the wide layer, with gelu in its form with tanh.
centred2 = middle - mean[c](middle)
inverse2 = rsqrt(mean[c](centred2 * centred2) + 1e-5)
normal2 = centred2 * inverse2
entering2 = normal2 * ln2_w + ln2_b
hidden = sum[c](entering2 * fc_w) + fc_b
bent = tanh(0.7978845608 * (hidden + 0.044715 * hidden * hidden * hidden))
active = 0.5 * hidden * (1 + bent)
output y = middle + sum[m](active * out_w) + out_b

# Backward: the wide layer.
output d_out_b = sum[s](d_y)
output d_out_w = sum[s](active * d_y)
d_active = sum[c](d_y * out_w)
slope = 0.7978845608 * (1 + 0.134145 * hidden * hidden) * (1 - bent * bent)
d_hidden = d_active * 0.5 * (1 + bent + hidden * slope)
output d_fc_b = sum[s](d_hidden)
output d_fc_w = sum[s](entering2 * d_hidden)
d_entering2 = sum[m](d_hidden * fc_w)
output d_ln2_b = sum[s](d_entering2)
output d_ln2_w = sum[s](d_entering2 * normal2)
d_normal2 = d_entering2 * ln2_w
along2 = mean[c](d_normal2 * normal2)
d_middle = d_y + inverse2 * (d_normal2 - mean[c](d_normal2) - normal2 * along2)

# Backward: attention.
output d_proj_b = sum[s](d_middle)
output d_proj_w = sum[s](joined * d_middle)
d_joined = sum[c](d_middle * proj_w)
d_found[h, s, d] = d_joined[s, h*{head} + d]
d_value = sum[s](shares * d_found)
d_shares = sum[d](d_found * value)
d_scores = shares * (d_shares - sum[t](d_shares * shares)) * {scale}
d_query = sum[t](d_scores * key)
d_key = sum[s](d_scores * query)
from_query[s, a={width}] = d_query[a // {head}, s, a % {head}]
from_key[s, a] = d_key[a // {head}, s, a % {head}]
from_value[s, a] = d_value[a // {head}, s, a % {head}]
d_split = concat[n: a](from_query, from_key, from_value)
output d_attn_b = sum[s](d_split)
output d_attn_w = sum[s](entering1 * d_split)
d_entering1 = sum[n](d_split * attn_w)
output d_ln1_b = sum[s](d_entering1)
output d_ln1_w = sum[s](d_entering1 * normal1)
d_normal1 = d_entering1 * ln1_w
along1 = mean[c](d_normal1 * normal1)
output d_x = d_middle + inverse1 * (d_normal1 - mean[c](d_normal1) - normal1 * along1)
"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Ours;
    use crate::side::Side;
    use loopwright::backend::backends;
    use loopwright::graph::Array;

    /// A block so small that the interpreter runs it at once, in `f64`, so that differences tell gradients.
    const SMALL: Block = Block {
        dtype: "f64",
        positions: 5,
        heads: 2,
        head: 3,
    };

    #[test]
    fn the_gradients_of_the_block_are_its_differences() {
        let work = Work {
            text: SMALL.program().into(),
            name: "block".to_owned(),
            request: "gpt2_block",
            sizes: Vec::new(),
            fill: weights,
            counted: Counted::Step(1.0),
        };
        let graph = work.graph().expect("the program is right");
        let inputs = work.inputs(&graph).expect("inputs can be made");
        let interpreter = backends()
            .into_iter()
            .find(|backend| backend.name() == "interp")
            .expect("the interpreter is always there");
        let run = |inputs: &[(String, Array)]| {
            let mut side = Side::new(&work, &graph, inputs, &interpreter).expect("it runs");
            side.results().expect("it runs again")
        };
        let results = run(&inputs);
        let named = |name: &str| {
            let (_, array) = inputs.iter().find(|(input, _)| input == name).expect(name);
            array.to_f64()
        };
        let d_y = named("d_y");
        // What the gradients are of: the sum of `y * d_y`.
        let objective = |inputs: &[(String, Array)]| -> f64 {
            let y = run(inputs)["y"].to_f64();
            y.iter().zip(&d_y).map(|(y, d_y)| y * d_y).sum()
        };
        for (at, (name, array)) in inputs.iter().enumerate() {
            if name == "d_y" {
                continue;
            }
            let gradient = results[&format!("d_{name}")].to_f64();
            let values = array.to_f64();
            assert_eq!(gradient.len(), values.len(), "{name}");
            // The first, the last and one between.
            for place in [0, values.len() / 2, values.len() - 1] {
                let moved = |by: f64| {
                    let mut values = values.clone();
                    values[place] += by;
                    let moved = Array::from_f64(array.dtype(), array.shape(), &values);
                    let mut inputs = inputs.clone();
                    inputs[at].1 = moved.expect("the shape is the same");
                    objective(&inputs)
                };
                let step = 1e-5;
                let difference = (moved(step) - moved(-step)) / (2.0 * step);
                let error = (difference - gradient[place]).abs();
                assert!(
                    error < 1e-6 * (1.0 + difference.abs()),
                    "d_{name}[{place}] is {}, the difference says {difference}",
                    gradient[place]
                );
            }
        }
    }

    #[test]
    fn resnet_18_has_the_layers_and_the_work_that_are_published() {
        let (text, flops) = resnet18();
        let convolutions = text.matches("_mean: f32").count();
        assert_eq!(
            convolutions,
            1 + 16 + 3,
            "the stem, two for each block, three shortcuts"
        );
        // 1.8 billion multiply-adds.
        assert!((3.6e9..3.7e9).contains(&flops), "{flops}");
        // 11.7 million weights, the running means and variances apart.
        let [work, ..] = networks();
        let graph = work.graph().expect("the program is right");
        let binding = graph.bind(&[]).expect("every size is a number");
        let counted = graph.parameters().filter(|node| {
            let name = &graph.node(*node).name;
            name != "image" && !name.ends_with("_mean") && !name.ends_with("_var")
        });
        let weights: i64 = counted
            .map(|node| binding.shape(&graph, node).iter().product::<i64>())
            .sum();
        assert_eq!(weights, 11_689_512);
    }
}
