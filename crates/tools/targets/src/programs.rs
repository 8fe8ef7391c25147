//! Programs from text with random sizes: the shapes of work that schedules are made of.

use crate::corpus::Entry;
use loopwright_conformance::Rng;

/// Sizes of dimensions as networks have them, with their neighbours: blocks and tiles end somewhere in between. Now and
/// then there is nothing at all.
const LARGE: [i64; 25] = [
    0, 1, 3, 8, 17, 33, 48, 64, 96, 100, 127, 128, 192, 256, 257, 384, 512, 513, 768, 1000, 1024,
    1536, 2048, 3072, 4096,
];

/// Sizes that an interpreter can run through, with the lengths of vectors and tiles among them.
const SMALL: [i64; 12] = [1, 2, 3, 5, 8, 13, 16, 17, 24, 31, 33, 40];

/// What draws the sizes and details of a program.
struct Draw<'a> {
    rng: &'a mut Rng,
    sizes: &'static [i64],
    /// Whether some sizes are symbols, whose values are given with the run.
    symbolic: bool,
    symbols: Vec<String>,
}

impl Draw<'_> {
    /// A size.
    fn size(&mut self) -> String {
        if self.symbolic && self.rng.chance(40) {
            let name = format!("N{}", self.symbols.len());
            let default = self.number();
            self.symbols.push(match self.rng.chance(50) {
                true => format!("size {name} = {default}\n"),
                false => format!("size {name}\n"),
            });
            return name;
        }
        self.number().to_string()
    }

    fn is_large(&self) -> bool {
        self.sizes.len() == LARGE.len()
    }

    fn number(&mut self) -> i64 {
        *self.rng.pick(self.sizes)
    }

    fn dtype(&mut self) -> &'static str {
        let dtypes: [&'static str; 6] = ["f32", "f32", "f32", "f64", "bf16", "f16"];
        dtypes[self.rng.below(dtypes.len())]
    }
}

/// A kind of program: its name, and its text for what is drawn.
type Kind = (&'static str, fn(&mut Draw<'_>) -> String);

const KINDS: [Kind; 22] = [
    ("chain", chain),
    ("softmax of a product", softmax),
    ("classes", classes),
    ("attention", attention),
    ("narrow product", narrow_product),
    ("convolution", convolution),
    ("pool", pool),
    ("column sums", column_sums),
    ("row sums", row_sums),
    ("normalisation", normalisation),
    ("gated product", gated),
    ("batched product", batched),
    ("scan of products", scanned),
    ("gather and product", gathered),
    ("update", update),
    ("product over two dimensions", product_over_two),
    ("product of three factors", three_factors),
    ("permuted operand of two products", permuted_operand),
    ("narrow factors read again", narrow_factors_read_again),
    ("narrow product read again", narrow_product_read_again),
    ("narrow products of all forms", narrow_products_of_all_forms),
    ("sorted rows", sorted_rows),
];

/// How many kinds of programs there are.
pub(crate) const KIND_COUNT: usize = KINDS.len();

/// So many programs that a seed names, as large as real ones.
pub fn random_programs(seed: u64, count: usize) -> Vec<Entry> {
    drawn(seed, count, &LARGE, true)
}

/// The same of sizes that an interpreter can run through, all of them numbers.
pub fn small_programs(seed: u64, count: usize) -> Vec<Entry> {
    drawn(seed, count, &SMALL, false)
}

fn drawn(seed: u64, count: usize, sizes: &'static [i64], symbolic: bool) -> Vec<Entry> {
    let rng = &mut Rng::new(seed);
    // Every kind comes up before one comes up again.
    let first = rng.below(KINDS.len());
    let kinds = KINDS.iter().cycle().skip(first).take(count);
    kinds
        .map(|(name, write)| {
            let mut draw = Draw {
                rng,
                sizes,
                symbolic,
                symbols: Vec::new(),
            };
            let text = write(&mut draw);
            let text = format!("{}{text}", draw.symbols.concat());
            Entry::parsed(format!("{name} of seed {seed}"), &text)
        })
        .collect()
}

/// Two to four products in a row.
fn chain(draw: &mut Draw<'_>) -> String {
    let dtype = draw.dtype();
    let mut text = format!("input x0: {dtype}[i={}, k0={}]\n", draw.size(), draw.size());
    let count = draw.rng.range(2, 4);
    for at in 0..count {
        let (to, size) = (at + 1, draw.size());
        text += &format!(
            "input w{at}: {dtype}[k{at}, k{to}={size}]\nx{to} = sum[k{at}](x{at} * w{at})\n"
        );
    }
    text + &format!("output y = x{count}\n")
}

/// `softmax(x @ w) @ v`.
fn softmax(draw: &mut Draw<'_>) -> String {
    format!(
        "input x: f32[i={}, k={}]\ninput w: f32[k, j={}]\ninput v: f32[j, l={}]\n\
         scores = sum[k](x * w)\nraised = exp(scores - max[j](scores))\n\
         output y = sum[j](raised / sum[j](raised) * v)\n",
        draw.size(),
        draw.size(),
        draw.size(),
        draw.size()
    )
}

/// The scores of classes and the loss that follows.
fn classes(draw: &mut Draw<'_>) -> String {
    format!(
        "input x: f32[i={}, k={}]\ninput w: f32[k, c={}]\ninput b: f32[c]\n\
         scores = sum[k](x * w) + b\nmost = max[c](scores)\n\
         each = log(sum[c](exp(scores - most))) + most\noutput loss = mean[i](each)\n\
         output best = argmax[c](scores)\n",
        draw.size(),
        draw.size(),
        draw.size()
    )
}

/// Attention in heads, with or without a mask.
fn attention(draw: &mut Draw<'_>) -> String {
    let (s, t) = (draw.size(), draw.size());
    let scores = match draw.rng.chance(50) {
        true => "select(t <= s, sum[d](q * key) * 0.125, -inf)",
        false => "sum[d](q * key) * 0.125",
    };
    let heads = draw.rng.range(1, 12);
    format!(
        "input q: f32[h={heads}, s={s}, d={}]\ninput key: f32[h, t={t}, d]\ninput v: f32[h, t, e={}]\n\
         scores = {scores}\nweights = exp(scores - max[t](scores))\n\
         output y = sum[t](weights / sum[t](weights) * v)\n",
        draw.size(),
        draw.size()
    )
}

/// A product of narrow numbers, in whole tiles of a matrix unit or not.
fn narrow_product(draw: &mut Draw<'_>) -> String {
    let (narrow, wide) = *draw.rng.pick(&[
        ("bf16", "f32"),
        ("i8", "i32"),
        ("u8", "i32"),
        ("f16", "f32"),
    ]);
    let most = match draw.is_large() {
        true => 12,
        false => 1,
    };
    let mut size = || match draw.rng.chance(70) {
        true => draw.rng.range(1, most) * 64,
        false => draw.rng.range(1, most * 60),
    };
    let (i, k, j, b) = (size(), size(), size(), size() % 4 + 1);
    format!(
        "input a: {narrow}[b={b}, i={i}, k={k}]\ninput w: {narrow}[k, j={j}]\n\
         output y = sum[k]({wide}(a) * {wide}(w))\n"
    )
}

/// What a matrix unit multiplies and adds in, and sizes that are whole tiles of all of them.
struct NarrowDraw {
    narrow: &'static str,
    wide: &'static str,
    rows: i64,
    depth: i64,
    cols: i64,
}

impl Draw<'_> {
    fn narrow(&mut self) -> NarrowDraw {
        let (narrow, wide) = *self
            .rng
            .pick(&[("bf16", "f32"), ("i8", "i32"), ("u8", "i32")]);
        // Half a tile of rows in the small programs: an interpreter runs through them.
        let (most, tiles) = match self.is_large() {
            true => (12, 64),
            false => (1, 32),
        };
        NarrowDraw {
            narrow,
            wide,
            rows: self.rng.range(1, most) * tiles,
            depth: self.rng.range(1, most) * 192,
            cols: self.rng.range(1, most) * tiles,
        }
    }
}

/// Widened factors that more than a product needs: another product, and the caller.
fn narrow_factors_read_again(draw: &mut Draw<'_>) -> String {
    let NarrowDraw {
        narrow,
        wide,
        rows,
        depth,
        cols,
    } = draw.narrow();
    format!(
        "input a: {narrow}[i={rows}, k={depth}]\ninput w: {narrow}[k, j={cols}]\ninput v: {narrow}[k, j]\n\
         shared = {wide}(a)\noutput y = sum[k](shared * {wide}(w))\noutput z = sum[k](shared * {wide}(v))\n\
         input b: {narrow}[i, k]\ninput u: {narrow}[k, j]\n\
         result = {wide}(b)\noutput result\noutput x = sum[k](result * {wide}(u))\n"
    )
}

/// Products of narrow numbers that more than a sum needs: another reduction, and the caller.
fn narrow_product_read_again(draw: &mut Draw<'_>) -> String {
    let NarrowDraw {
        narrow,
        wide,
        rows,
        depth,
        cols,
    } = draw.narrow();
    format!(
        "input a: {narrow}[i={rows}, k={depth}]\ninput w: {narrow}[k, j={cols}]\n\
         shared = {wide}(a) * {wide}(w)\noutput most = max[k](shared)\noutput y = sum[k](shared)\n\
         input b: {narrow}[i, k]\ninput u: {narrow}[k, j]\n\
         result = {wide}(b) * {wide}(u)\noutput result\noutput x = sum[k](result)\n"
    )
}

/// Narrow products next to one that a matrix unit has: factors that lie along one dimension only, numbers of two kinds,
/// and what is no product.
fn narrow_products_of_all_forms(draw: &mut Draw<'_>) -> String {
    let NarrowDraw {
        narrow,
        wide,
        rows,
        depth,
        cols,
    } = draw.narrow();
    let other = match narrow {
        "i8" => "u8",
        "u8" => "i8",
        _ => "f16",
    };
    format!(
        "input a: {narrow}[i={rows}, k={depth}]\ninput w: {narrow}[k, j={cols}]\n\
         input r: {narrow}[i]\ninput c: {narrow}[j]\ninput m: {other}[k, j]\n\
         output product = sum[k]({wide}(a) * {wide}(w))\n\
         output of_rows = sum[k]({wide}(r) * {wide}(w))\noutput of_cols = sum[k]({wide}(a) * {wide}(c))\n\
         output mixed = sum[k]({wide}(a) * {wide}(m))\noutput most = sum[k](max({wide}(a), {wide}(w)))\n"
    )
}

/// A convolution with a stride, a frame and groups.
fn convolution(draw: &mut Draw<'_>) -> String {
    let (stride, window) = (draw.rng.range(1, 3), draw.rng.range(1, 5));
    let (frame, batch) = (draw.rng.range(0, 2), draw.rng.range(1, 3));
    let (most_side, counts): (i64, &[i64]) = match draw.is_large() {
        true => (57, &[1, 2, 3, 8, 16, 33, 64]),
        false => (window + 5, &[1, 2, 3, 9]),
    };
    let side = draw.rng.range(window + 2, most_side);
    let groups = *draw.rng.pick(&counts[..counts.len() / 2]);
    let (channels, outs) = (*draw.rng.pick(counts), *draw.rng.pick(counts));
    let placed = (side + 2 * frame - window) / stride + 1;
    format!(
        "dim y = {placed}, x = {placed}\n\
         input image: f32[n={batch}, g={groups}, c={channels}, r={side}, q={side}]\n\
         input w: f32[g, o={outs}, c, v={window}, u={window}]\n\
         seen = image[n, g, c, y*{stride} + v - {frame}, x*{stride} + u - {frame}] else 0\n\
         sums[n, g, o, y, x] = sum[c, v, u](seen * w)\noutput out = max(sums, 0)\n"
    )
}

/// Windows that a maximum is taken of.
fn pool(draw: &mut Draw<'_>) -> String {
    let (stride, window) = (draw.rng.range(1, 3), draw.rng.range(2, 4));
    let side = draw.rng.range(window + 1, 60);
    let placed = (side - window) / stride + 1;
    format!(
        "dim y = {placed}, x = {placed}, v = {window}, u = {window}\n\
         input image: f32[c={}, r={side}, q={side}]\n\
         seen = image[c, y*{stride} + v, x*{stride} + u]\n\
         most[c, y, x] = max[v, u](seen)\noutput out = most\n",
        draw.size()
    )
}

/// Sums along the first of two dimensions, of up to millions of rows.
fn column_sums(draw: &mut Draw<'_>) -> String {
    let rows = match draw.is_large() && draw.rng.chance(40) {
        true => draw.rng.range(1 << 16, 1 << 23).to_string(),
        false => draw.size(),
    };
    let (dtype, fold) = (draw.dtype(), *draw.rng.pick(&["sum", "max", "prod"]));
    format!(
        "input x: {dtype}[i={rows}, j={}]\noutput y = {fold}[i](x)\noutput z = sum[i](x * x)\n",
        draw.size()
    )
}

/// Reductions along the dimension that lies contiguous.
fn row_sums(draw: &mut Draw<'_>) -> String {
    let dtype = draw.rng.pick(&["f32", "f64", "i32", "i64", "bf16", "u8"]);
    format!(
        "input x: {dtype}[h={}, i={}, j={}]\noutput y = sum[j](x)\noutput all = max[h, i, j](x)\n",
        draw.rng.range(1, 4),
        draw.size(),
        draw.size()
    )
}

/// A normalisation between two products.
fn normalisation(draw: &mut Draw<'_>) -> String {
    format!(
        "input x: f32[i={}, k={}]\ninput w: f32[k, j={}]\ninput v: f32[j, l={}]\ninput g: f32[j]\n\
         h = sum[k](x * w)\nm = mean[j](h)\ns = mean[j]((h - m) * (h - m))\n\
         n = (h - m) * rsqrt(s + 1e-5) * g\noutput y = sum[j](n * v)\n",
        draw.size(),
        draw.size(),
        draw.size(),
        draw.size()
    )
}

/// Two products of one input, one of them the gate of the other.
fn gated(draw: &mut Draw<'_>) -> String {
    let dtype = draw.dtype();
    format!(
        "input x: {dtype}[i={}, k={}]\ninput w: {dtype}[k, j={}]\ninput u: {dtype}[k, j]\n\
         input v: {dtype}[j, l={}]\ngate = sum[k](x * w)\nup = sum[k](x * u)\n\
         output y = sum[j](gate / (1 + exp(-gate)) * up * v)\n",
        draw.size(),
        draw.size(),
        draw.size(),
        draw.size()
    )
}

/// Products in batches, one factor turned.
fn batched(draw: &mut Draw<'_>) -> String {
    let (dtype, batch) = (draw.dtype(), draw.rng.range(1, 33));
    format!(
        "input a: {dtype}[b={batch}, i={}, k={}]\ninput c: {dtype}[b, j={}, k]\n\
         p[b, i, j] = sum[k](a * c)\noutput y = p + max[j](p)\n",
        draw.size(),
        draw.size(),
        draw.size()
    )
}

/// Running sums of a product.
fn scanned(draw: &mut Draw<'_>) -> String {
    format!(
        "input x: f32[t={}, k={}]\ninput w: f32[k, j={}]\n\
         h = sum[k](x * w)\nc = cumsum[t](h)\noutput y = exp(c - scan_max[t](h))\n",
        draw.size(),
        draw.size(),
        draw.size()
    )
}

/// Rows of a table that a product reads.
fn gathered(draw: &mut Draw<'_>) -> String {
    let rows = match draw.is_large() {
        true => 50_257,
        false => 37,
    };
    format!(
        "input table: f32[v={rows}, k={}]\ninput ids: i32[t={}]\ninput w: f32[k, j={}]\n\
         rows = table[ids, k] else 0\nh = sum[k](rows * w)\n\
         output scores = sum[k](rows * table)\noutput y = tanh(h)\n",
        draw.size(),
        draw.size(),
        draw.size()
    )
}

/// Weights that follow the gradient of a product.
fn update(draw: &mut Draw<'_>) -> String {
    format!(
        "input x: f32[i={}, k={}]\ninput d: f32[i, j={}]\nstate w: f32[k, j]\nstate m: f32[k, j]\n\
         g = sum[i](x * d)\nnew = m * 0.9 + g\nupdate m = new\nupdate w = w - new * 0.01\n\
         output norm = sum[k, j](g * g)\n",
        draw.size(),
        draw.size(),
        draw.size()
    )
}

/// A product that is summed over two dimensions, both of any size.
fn product_over_two(draw: &mut Draw<'_>) -> String {
    let dtype = draw.dtype();
    format!(
        "input a: {dtype}[i={}, k={}, l={}]\ninput b: {dtype}[k, l, j={}]\n\
         output y = sum[k, l](a * b)\n",
        draw.size(),
        draw.size(),
        draw.size(),
        draw.size()
    )
}

/// A product of three factors in one sum: none of them has all of its dimensions.
fn three_factors(draw: &mut Draw<'_>) -> String {
    let dtype = draw.dtype();
    format!(
        "input a: {dtype}[i={}, k={}]\ninput b: {dtype}[k, l={}]\ninput c: {dtype}[l, j={}]\n\
         output y = sum[k, l](a * b * c)\n",
        draw.size(),
        draw.size(),
        draw.size(),
        draw.size()
    )
}

/// Two products that read one factor through a view.
fn permuted_operand(draw: &mut Draw<'_>) -> String {
    let dtype = draw.dtype();
    format!(
        "input a: {dtype}[i={}, k={}]\ninput c: {dtype}[h={}, k]\ninput w: {dtype}[j={}, k]\n\
         permuted[k, j] = w\noutput y = sum[k](a * permuted)\noutput z = sum[k](c * permuted)\n",
        draw.size(),
        draw.size(),
        draw.size(),
        draw.size()
    )
}

/// Rows that are sorted, and what is made of them element by element.
fn sorted_rows(draw: &mut Draw<'_>) -> String {
    format!(
        "input x: f32[h={}, i={}, j={}]\nup = sort[j](x * 2)\noutput y = up - 1\n\
         output order = argsort[j, desc](x)\n",
        draw.rng.range(1, 4),
        draw.size(),
        draw.size()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_program_is_one_at_all_sizes() {
        for seed in 0..60 {
            let programs = random_programs(seed, KINDS.len());
            assert_eq!(programs.len(), KINDS.len());
            assert_eq!(small_programs(seed, 3).len(), 3);
        }
    }
}
