//! Factors of large matrices on the host, in blocks of columns: most of the work is products of blocks.

use super::host::{add_multiple, dot, scale_of, transposed};
use super::reflect::reflect;

/// How many columns a block has.
const BLOCK: usize = 48;

/// How many rows and columns of a product are summed beside each other.
const TILE: usize = 4;

/// `c -= a b`, where `c` has rows of its own length in memory, `a` has `inner` columns and `b` as many as are
/// changed.
fn subtract_product(c: &mut [f64], stride: usize, columns: usize, a: &[f64], b: &[f64]) {
    let inner = b.len() / columns.max(1);
    if inner == 0 {
        return;
    }
    let rows = a.len() / inner;
    let mut panel = vec![[0.0; TILE]; inner];
    for column in (0..columns).step_by(TILE) {
        let width = TILE.min(columns - column);
        for (line, from) in panel.iter_mut().zip(b.chunks_exact(columns)) {
            line[..width].copy_from_slice(&from[column..column + width]);
            line[width..].fill(0.0);
        }
        for row in (0..rows).step_by(TILE) {
            let height = TILE.min(rows - row);
            // Rows that are not there are the last one again, and are not written.
            let lines: [&[f64]; TILE] = std::array::from_fn(|at| {
                let at = row + at.min(height - 1);
                &a[at * inner..(at + 1) * inner]
            });
            let mut sums = [[0.0; TILE]; TILE];
            for (at, line) in panel.iter().enumerate() {
                for (sums, a) in sums.iter_mut().zip(&lines) {
                    for lane in 0..TILE {
                        sums[lane] += a[at] * line[lane];
                    }
                }
            }
            for (at, sums) in sums.iter().enumerate().take(height) {
                let from = (row + at) * stride + column;
                for (c, sum) in c[from..from + width].iter_mut().zip(sums) {
                    *c -= sum;
                }
            }
        }
    }
}

/// The product of a matrix and one with so many columns.
pub(super) fn product(a: &[f64], b: &[f64], columns: usize) -> Vec<f64> {
    let rows = a.len() / (b.len() / columns);
    let mut made = vec![0.0; rows * columns];
    subtract_product(&mut made, columns, columns, a, b);
    for x in &mut made {
        *x = -*x;
    }
    made
}

/// Some rows and columns of a matrix.
fn part(
    a: &[f64],
    stride: usize,
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
) -> Vec<f64> {
    let mut made = Vec::with_capacity(rows.len() * columns.len());
    for row in rows {
        made.extend_from_slice(&a[row * stride + columns.start..row * stride + columns.end]);
    }
    made
}

/// A row, and one below it, to be changed.
fn two_rows(a: &mut [f64], stride: usize, upper: usize, lower: usize) -> (&[f64], &mut [f64]) {
    let (above, below) = a.split_at_mut(lower * stride);
    (
        &above[upper * stride..(upper + 1) * stride],
        &mut below[..stride],
    )
}

/// A square matrix as `p l u`: both triangles in one matrix, `l` with ones on its diagonal, and the row that
/// each row was exchanged with.
pub(super) struct Lu {
    size: usize,
    both: Vec<f64>,
    exchanged: Vec<usize>,
}

impl Lu {
    /// Elimination with partial pivoting.
    pub(super) fn of(a: &[f64], size: usize) -> Lu {
        let mut both = a.to_vec();
        let mut exchanged = Vec::with_capacity(size);
        for start in (0..size).step_by(BLOCK) {
            let end = size.min(start + BLOCK);
            for step in start..end {
                let mut chosen = step;
                for row in step + 1..size {
                    if both[row * size + step].abs() > both[chosen * size + step].abs() {
                        chosen = row;
                    }
                }
                exchange(&mut both, size, step, chosen);
                exchanged.push(chosen);
                let pivot = both[step * size + step];
                if pivot == 0.0 {
                    continue;
                }
                for row in step + 1..size {
                    let (line, row) = two_rows(&mut both, size, step, row);
                    row[step] /= pivot;
                    let factor = -row[step];
                    add_multiple(&mut row[step + 1..end], factor, &line[step + 1..end]);
                }
            }
            for step in start..end {
                for row in step + 1..end {
                    let (line, row) = two_rows(&mut both, size, step, row);
                    let factor = -row[step];
                    add_multiple(&mut row[end..], factor, &line[end..]);
                }
            }
            if end < size {
                let lower = part(&both, size, end..size, start..end);
                let upper = part(&both, size, start..end, end..size);
                let rest = &mut both[end * size + end..];
                subtract_product(rest, size, size - end, &lower, &upper);
            }
        }
        Lu {
            size,
            both,
            exchanged,
        }
    }

    /// Makes columns `b` the `x` of `a x = b`.
    pub(super) fn solve(&self, b: &mut [f64]) {
        let columns = b.len() / self.size;
        for (row, other) in self.exchanged.iter().enumerate() {
            exchange(b, columns, row, *other);
        }
        substitute(&self.both, self.size, b, Triangle::UnitLower);
        substitute(&self.both, self.size, b, Triangle::Upper);
    }

    /// The pivots, and 1 or -1: whether rows were exchanged an even number of times.
    pub(super) fn pivots(&self) -> (Vec<f64>, f64) {
        let exchanges = self.exchanged.iter().enumerate();
        let odd = exchanges.filter(|(row, other)| row != *other).count() % 2 == 1;
        let pivots = (0..self.size).map(|at| self.both[at * (self.size + 1)]);
        (pivots.collect(), if odd { -1.0 } else { 1.0 })
    }
}

fn exchange(a: &mut [f64], stride: usize, row: usize, other: usize) {
    if row != other {
        let (above, below) = a.split_at_mut(row.max(other) * stride);
        let upper = row.min(other) * stride;
        above[upper..upper + stride].swap_with_slice(&mut below[..stride]);
    }
}

/// The part of a matrix that is looked at.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Triangle {
    Lower,
    /// With ones on the diagonal.
    UnitLower,
    Upper,
}

/// Makes columns `b` the `x` of `t x = b` for a triangle.
pub(super) fn substitute(t: &[f64], size: usize, b: &mut [f64], triangle: Triangle) {
    let columns = b.len() / size;
    let is_upper = triangle == Triangle::Upper;
    let blocks = size.div_ceil(BLOCK);
    for block in 0..blocks {
        let block = if is_upper { blocks - 1 - block } else { block };
        let (start, end) = (block * BLOCK, size.min((block + 1) * BLOCK));
        for step in start..end {
            let step = if is_upper {
                start + end - 1 - step
            } else {
                step
            };
            let from = if is_upper { step + 1..end } else { start..step };
            let (above, rest) = b.split_at_mut(step * columns);
            let (line, below) = rest.split_at_mut(columns);
            for other in from {
                let factor = -t[step * size + other];
                let known = match is_upper {
                    true => &below[(other - step - 1) * columns..(other - step) * columns],
                    false => &above[other * columns..(other + 1) * columns],
                };
                add_multiple(line, factor, known);
            }
            if triangle != Triangle::UnitLower {
                let pivot = t[step * (size + 1)];
                for x in line {
                    *x /= pivot;
                }
            }
        }
        let rows = if is_upper { 0..start } else { end..size };
        let factors = part(t, size, rows.clone(), start..end);
        let known = b[start * columns..end * columns].to_vec();
        let rest = &mut b[rows.start * columns..rows.end * columns];
        subtract_product(rest, columns, columns, &factors, &known);
    }
}

/// The lower triangle `l` with `l lᵀ = a`; NaN where the matrix is not positive definite. Only the lower triangle
/// of `a` is looked at.
pub(super) fn cholesky(a: &[f64], size: usize) -> Vec<f64> {
    let mut l = a.to_vec();
    for start in (0..size).step_by(BLOCK) {
        let end = size.min(start + BLOCK);
        for row in start..size {
            for column in start..end.min(row) {
                let (line, own) = two_rows(&mut l, size, column, row);
                let less = dot(&own[start..column], &line[start..column]);
                own[column] = (own[column] - less) / line[column];
            }
            if row < end {
                let own = &mut l[row * size..(row + 1) * size];
                let less = dot(&own[start..row], &own[start..row]);
                own[row] = (own[row] - less).sqrt();
            }
        }
        // Of the rest, only what is not above the diagonal, in blocks of rows.
        for from in (end..size).step_by(BLOCK) {
            let to = size.min(from + BLOCK);
            let own = part(&l, size, from..to, start..end);
            let all = part(&l, size, end..to, start..end);
            let all = transposed(&all, to - end, end - start);
            let rest = &mut l[from * size + end..];
            subtract_product(rest, size, to - end, &own, &all);
        }
    }
    for row in 0..size {
        l[row * size + row + 1..(row + 1) * size].fill(0.0);
    }
    l
}

/// Reflections of one block of columns: `1 - v t vᵀ` is their product.
struct Panel {
    /// The row that they begin with, which is that of the first column, too.
    start: usize,
    /// The vectors as columns.
    vectors: Vec<f64>,
    /// The vectors as rows.
    turned: Vec<f64>,
    t: Vec<f64>,
    count: usize,
}

impl Panel {
    /// Takes the columns of a block to an upper triangle.
    fn of(a: &mut [f64], columns: usize, start: usize, end: usize) -> Panel {
        let (rows, count) = (a.len() / columns, end - start);
        let height = rows - start;
        let mut lines = transposed(&part(a, columns, start..rows, start..end), height, count);
        let mut turned = vec![0.0; count * height];
        let mut t = vec![0.0; count * count];
        for step in 0..count {
            let own = &mut turned[step * height + step..(step + 1) * height];
            own.copy_from_slice(&lines[step * height + step..(step + 1) * height]);
            let (scale, length) = reflect(own);
            lines[step * height + step] = length;
            lines[step * height + step + 1..(step + 1) * height].fill(0.0);
            for other in step + 1..count {
                let other = &mut lines[other * height + step..(other + 1) * height];
                let along = scale * dot(own, other);
                add_multiple(other, -along, own);
            }
            // The column of `t`: minus the scale times what is there, times the products with all vectors before.
            let along: Vec<f64> = (0..step)
                .map(|before| {
                    let before = &turned[before * height..(before + 1) * height];
                    dot(before, &turned[step * height..(step + 1) * height])
                })
                .collect();
            for row in 0..step {
                let sum = dot(&t[row * count + row..row * count + step], &along[row..]);
                t[row * count + step] = -scale * sum;
            }
            t[step * count + step] = scale;
        }
        for (row, line) in transposed(&lines, count, height)
            .chunks_exact(count)
            .enumerate()
        {
            let from = (start + row) * columns + start;
            a[from..from + count].copy_from_slice(line);
        }
        let vectors = transposed(&turned, count, height);
        Panel {
            start,
            vectors,
            turned,
            t,
            count,
        }
    }

    /// Takes columns from `first` on to their reflections; in the other order if `back`.
    fn apply(&self, c: &mut [f64], columns: usize, first: usize, back: bool) {
        let (rows, width, count) = (c.len() / columns, columns - first, self.count);
        if width == 0 {
            return;
        }
        let own = part(c, columns, self.start..rows, first..columns);
        // Both products are subtracted from zeros, so that the signs are right again.
        let mut along = vec![0.0; count * width];
        subtract_product(&mut along, width, width, &self.turned, &own);
        let mut turned = vec![0.0; count * width];
        let t = match back {
            true => transposed(&self.t, count, count),
            false => self.t.clone(),
        };
        subtract_product(&mut turned, width, width, &t, &along);
        let from = self.start * columns + first;
        subtract_product(&mut c[from..], columns, width, &self.vectors, &turned);
    }
}

/// `q` with orthonormal columns, as many as are wanted (none, or at least as many as `a` has), and an upper triangle `r` with as many rows as `a` has
/// columns, whose diagonal is not negative. There are at least as many rows as columns.
pub(super) fn qr(a: &[f64], columns: usize, wanted: usize) -> [Vec<f64>; 2] {
    let rows = a.len() / columns;
    let scale = scale_of(a);
    let mut rest: Vec<f64> = a.iter().map(|x| x / scale).collect();
    let mut panels = Vec::new();
    for start in (0..columns).step_by(BLOCK) {
        let end = columns.min(start + BLOCK);
        let panel = Panel::of(&mut rest, columns, start, end);
        panel.apply(&mut rest, columns, end, true);
        panels.push(panel);
    }
    let mut q = vec![0.0; rows * wanted];
    for at in 0..wanted {
        q[at * (wanted + 1)] = 1.0;
    }
    for panel in panels.iter().rev().take_while(|_| wanted > 0) {
        panel.apply(&mut q, wanted, panel.start, false);
    }
    rest.truncate(columns * columns);
    let mut r = rest;
    for row in 0..columns {
        let line = &mut r[row * columns..(row + 1) * columns];
        line[..row].fill(0.0);
        if line[row] < 0.0 {
            for x in &mut line[row..] {
                *x = -*x;
            }
            for line in q.chunks_exact_mut(wanted.max(1)) {
                line[row] = -line[row];
            }
        }
        for x in line {
            *x *= scale;
        }
    }
    [q, r]
}
