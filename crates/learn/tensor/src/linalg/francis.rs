//! Eigenvalues and eigenvectors of real matrices: a Hessenberg matrix by reflections, Francis' QR iteration with
//! double shifts, and substitution (the method of EISPACK's `orthes` and `hqr2`).

use super::complex::{C, LATE, Square, is_negligible};

/// So many iterations for one eigenvalue or pair, at most; two are usual.
const ITERATIONS: usize = 60;

/// The eigenvalues, and vectors: a column for a real value, two for a pair, its real and its imaginary part.
pub(super) struct Solved {
    pub(super) values: Vec<C>,
    columns: Vec<f64>,
}

impl Solved {
    /// The eigenvectors as columns.
    pub(super) fn vectors(&self, size: usize) -> Square {
        let mut made = Square::zeros(size);
        let mut column = 0;
        while column < size {
            let pair = self.values[column].im != 0.0 && column + 1 < size;
            for row in 0..size {
                let re = self.columns[row * size + column];
                if pair {
                    let im = self.columns[row * size + column + 1];
                    *made.at_mut(row, column) = C::new(re, im);
                    *made.at_mut(row, column + 1) = C::new(re, -im);
                } else {
                    *made.at_mut(row, column) = C::new(re, 0.0);
                }
            }
            column += if pair { 2 } else { 1 };
        }
        made
    }
}

/// Solves a square matrix, row by row; `None` where the iteration does not come to an end.
pub(super) fn solve(matrix: Vec<f64>, size: usize, with_vectors: bool) -> Option<Solved> {
    let mut work = Work {
        size,
        h: matrix,
        v: vec![0.0; if with_vectors { size * size } else { 0 }],
        values: vec![C::ZERO; size],
        with_vectors,
    };
    work.reduce();
    work.iterate()?;
    if with_vectors {
        work.substitute();
    }
    Some(Solved {
        values: work.values,
        columns: work.v,
    })
}

struct Work {
    size: usize,
    h: Vec<f64>,
    v: Vec<f64>,
    values: Vec<C>,
    with_vectors: bool,
}

impl Work {
    fn at(&self, row: usize, column: usize) -> f64 {
        self.h[row * self.size + column]
    }

    fn set(&mut self, row: usize, column: usize, value: f64) {
        self.h[row * self.size + column] = value;
    }

    /// Zeros below the diagonal under the main one, by reflections, which are gathered in `v`.
    fn reduce(&mut self) {
        let size = self.size;
        if self.with_vectors {
            for at in 0..size {
                self.v[at * size + at] = 1.0;
            }
        }
        for step in 1..size.saturating_sub(1) {
            let mut vector: Vec<f64> = (step..size).map(|row| self.at(row, step - 1)).collect();
            if vector[1..].iter().all(|x| *x == 0.0) {
                continue;
            }
            let (scale, length) = super::reflect::reflect(&mut vector);
            for column in step - 1..size {
                let rows = vector.iter().zip(step..);
                let along: f64 = rows.map(|(x, row)| x * self.at(row, column)).sum();
                for (x, row) in vector.iter().zip(step..) {
                    self.h[row * size + column] -= scale * along * x;
                }
            }
            let turn = |m: &mut [f64]| {
                for row in m.chunks_exact_mut(size) {
                    let columns = vector.iter().zip(&row[step..]);
                    let along: f64 = columns.map(|(x, y)| x * y).sum();
                    for (x, y) in vector.iter().zip(&mut row[step..]) {
                        *y -= scale * along * x;
                    }
                }
            };
            turn(&mut self.h);
            turn(&mut self.v);
            self.set(step, step - 1, length);
            for row in step + 1..size {
                self.set(row, step - 1, 0.0);
            }
        }
    }

    fn norm(&self) -> f64 {
        let rows = 0..self.size;
        rows.flat_map(|row| (row.saturating_sub(1)..self.size).map(move |column| (row, column)))
            .map(|(row, column)| self.at(row, column).abs())
            .sum()
    }

    /// Where the matrix falls apart above a row. After many iterations what is small beside the whole matrix is taken for 0.
    fn split(&mut self, last: usize, norm: f64, is_late: bool) -> usize {
        let mut first = last;
        while first > 0 {
            let at = |row: usize, column: usize| self.at(row, column).abs();
            let block = [
                [at(first - 1, first - 1), at(first - 1, first)],
                [at(first, first - 1), at(first, first)],
            ];
            let apart = (self.at(first - 1, first - 1) - self.at(first, first)).abs();
            if is_negligible(block, apart, norm, is_late) {
                self.set(first, first - 1, 0.0);
                break;
            }
            first -= 1;
        }
        first
    }

    /// Makes the matrix a triangle with blocks of two rows for pairs of complex eigenvalues.
    fn iterate(&mut self) -> Option<()> {
        let norm = self.norm();
        let mut open = self.size;
        let (mut count, mut shifted) = (0, 0.0);
        while open > 0 {
            let last = open - 1;
            let first = self.split(last, norm, count > LATE);
            if first == last {
                let value = self.at(last, last) + shifted;
                self.set(last, last, value);
                self.values[last] = C::new(value, 0.0);
                open -= 1;
                count = 0;
            } else if first + 1 == last {
                self.pair(last, shifted);
                open -= 2;
                count = 0;
            } else {
                if count == ITERATIONS {
                    return None;
                }
                self.double_shift(first, last, &mut count, &mut shifted);
            }
        }
        Some(())
    }

    /// The two eigenvalues of the rows and columns up to `last`; real ones are separated.
    fn pair(&mut self, last: usize, shifted: f64) {
        let size = self.size;
        let (below, above) = (self.at(last, last - 1), self.at(last - 1, last));
        let half = (self.at(last - 1, last - 1) - self.at(last, last)) / 2.0;
        // Divided by what is about as large as the root: squares of small elements are not 0.
        let unit = half.abs().max(below.abs().sqrt() * above.abs().sqrt());
        let unit = super::host::power_below(unit).max(f64::MIN_POSITIVE);
        let product = (below / unit) * (above / unit);
        let square = (half / unit) * (half / unit) + product;
        let root = square.abs().sqrt() * unit;
        for at in [last - 1, last] {
            let value = self.at(at, at) + shifted;
            self.set(at, at, value);
        }
        let x = self.at(last, last);
        if square < 0.0 {
            self.values[last - 1] = C::new(x + half, root);
            self.values[last] = C::new(x + half, -root);
            return;
        }
        let far = half + root.copysign(half);
        self.values[last - 1] = C::new(x + far, 0.0);
        let other = if far == 0.0 {
            x
        } else {
            x - product / (far / unit) * unit
        };
        self.values[last] = C::new(other, 0.0);
        let length = below.hypot(far);
        let (sin, cos) = match length == 0.0 {
            true => (0.0, 1.0),
            false => (below / length, far / length),
        };
        for column in last - 1..size {
            let (above, own) = (self.at(last - 1, column), self.at(last, column));
            self.set(last - 1, column, cos * above + sin * own);
            self.set(last, column, cos * own - sin * above);
        }
        let turn = |m: &mut [f64], rows: usize| {
            for row in m.chunks_exact_mut(size).take(rows) {
                let (left, own) = (row[last - 1], row[last]);
                row[last - 1] = cos * left + sin * own;
                row[last] = cos * own - sin * left;
            }
        };
        turn(&mut self.h, last + 1);
        turn(&mut self.v, size);
        self.set(last, last - 1, 0.0);
    }

    /// One iteration with two shifts at once, in real arithmetic.
    fn double_shift(&mut self, first: usize, last: usize, count: &mut usize, shifted: &mut f64) {
        let mut x = self.at(last, last);
        let mut y = self.at(last - 1, last - 1);
        let mut w = self.at(last, last - 1) * self.at(last - 1, last);
        if *count == 10 || *count == 40 {
            // Wilkinson's shift out of a cycle.
            *shifted += x;
            for at in 0..=last {
                let less = self.at(at, at) - x;
                self.set(at, at, less);
            }
            let step = self.at(last, last - 1).abs() + self.at(last - 1, last - 2).abs();
            (x, y) = (0.75 * step, 0.75 * step);
            w = -0.4375 * step * step;
        } else if *count == 30 {
            let half = (y - x) / 2.0;
            let square = half * half + w;
            if square > 0.0 {
                let root = square.sqrt().copysign(y - x);
                let step = x - w / ((y - x) / 2.0 + root);
                for at in 0..=last {
                    let less = self.at(at, at) - step;
                    self.set(at, at, less);
                }
                *shifted += step;
                (x, y, w) = (0.964, 0.964, 0.964);
            }
        }
        *count += 1;
        // The first column of the product of both shifted matrices; two small elements in a row cut it short.
        let mut start = last - 2;
        let mut head;
        loop {
            let z = self.at(start, start);
            let (r, s) = (x - z, y - z);
            let p = (r * s - w) / self.at(start + 1, start) + self.at(start, start + 1);
            let q = self.at(start + 1, start + 1) - z - r - s;
            let r = self.at(start + 2, start + 1);
            let sum = p.abs() + q.abs() + r.abs();
            head = [p / sum, q / sum, r / sum];
            if start == first {
                break;
            }
            let left = self.at(start, start - 1).abs() * (head[1].abs() + head[2].abs());
            let around =
                self.at(start - 1, start - 1).abs() + z.abs() + self.at(start + 1, start + 1).abs();
            if left < f64::EPSILON * head[0].abs() * around {
                break;
            }
            start -= 1;
        }
        for row in start + 2..=last {
            self.set(row, row - 2, 0.0);
            if row > start + 2 {
                self.set(row, row - 3, 0.0);
            }
        }
        self.chase(first, start, last, head);
    }

    /// Pushes the bulge that the shifts make out of the matrix.
    fn chase(&mut self, first: usize, start: usize, last: usize, head: [f64; 3]) {
        let size = self.size;
        let [mut p, mut q, mut r] = head;
        for k in start..last {
            let three = k + 1 != last;
            let mut sum = 0.0;
            if k != start {
                p = self.at(k, k - 1);
                q = self.at(k + 1, k - 1);
                r = if three { self.at(k + 2, k - 1) } else { 0.0 };
                sum = p.abs() + q.abs() + r.abs();
                if sum == 0.0 {
                    continue;
                }
                (p, q, r) = (p / sum, q / sum, r / sum);
            }
            let length = (p * p + q * q + r * r).sqrt().copysign(p);
            if length == 0.0 {
                continue;
            }
            if k != start {
                self.set(k, k - 1, -length * sum);
            } else if first != start {
                let turned = -self.at(k, k - 1);
                self.set(k, k - 1, turned);
            }
            p += length;
            let (x, y, z) = (p / length, q / length, r / length);
            (q, r) = (q / p, r / p);
            for column in k..size {
                let mut along = self.at(k, column) + q * self.at(k + 1, column);
                if three {
                    along += r * self.at(k + 2, column);
                    self.h[(k + 2) * size + column] -= along * z;
                }
                self.h[k * size + column] -= along * x;
                self.h[(k + 1) * size + column] -= along * y;
            }
            let turn = |m: &mut [f64], rows: usize| {
                for row in m.chunks_exact_mut(size).take(rows) {
                    let mut along = x * row[k] + y * row[k + 1];
                    if three {
                        along += z * row[k + 2];
                        row[k + 2] -= along * r;
                    }
                    row[k] -= along;
                    row[k + 1] -= along * q;
                }
            };
            turn(&mut self.h, (last + 1).min(k + 4));
            turn(&mut self.v, size);
        }
    }

    /// The vectors of the triangle with blocks, by substitution, turned by `v`.
    fn substitute(&mut self) {
        let norm = self.norm();
        if norm == 0.0 {
            return;
        }
        let size = self.size;
        let small = (f64::EPSILON * norm).max(f64::MIN_POSITIVE / f64::EPSILON);
        let mut columns = vec![0.0; size * size];
        let mut last = size;
        while last > 0 {
            let at = last - 1;
            let value = self.values[at];
            let width = if value.im == 0.0 { 1 } else { 2 };
            // Of a pair, that with the positive imaginary part, which comes first.
            let value = if width == 2 { value.conj() } else { value };
            let vector = self.vector(at, value, small);
            for row in 0..size {
                let sum = (0..=at).fold(C::ZERO, |sum, k| {
                    sum + vector[k].times(self.v[row * size + k])
                });
                columns[row * size + at + 1 - width] = sum.re;
                if width == 2 {
                    columns[row * size + at] = sum.im;
                }
            }
            last -= width;
        }
        self.v = columns;
    }

    /// The vector of the triangle for the value whose block ends at a row.
    fn vector(&self, last: usize, value: C, small: f64) -> Vec<C> {
        let real = |row: usize, column: usize| C::new(self.at(row, column), 0.0);
        let mut x = vec![C::ZERO; last + 1];
        let mut row = last;
        if value.im == 0.0 {
            x[last] = C::ONE;
        } else {
            // (h[l-1][l-1] - value) x[l-1] + h[l-1][l] x[l] = 0, or the same by the row below.
            let (above, below) = (self.at(last - 1, last), self.at(last, last - 1));
            if above.abs() > below.abs() {
                x[last - 1] = C::ONE;
                x[last] = (value - real(last - 1, last - 1)).times(1.0 / above);
            } else {
                x[last] = C::ONE;
                x[last - 1] = (value - real(last, last)).times(1.0 / below);
            }
            row -= 1;
        }
        while row > 0 {
            row -= 1;
            let sum = |row: usize, from: usize, x: &[C]| {
                (from..=last).fold(C::ZERO, |sum, k| sum + x[k].times(self.at(row, k)))
            };
            if self.values[row].im == 0.0 {
                let mut under = real(row, row) - value;
                if under.abs() < small {
                    under = C::new(small, 0.0);
                }
                x[row] = -sum(row, row + 1, &x).over(under);
            } else {
                // A block of two rows: two equations.
                row -= 1;
                let (a, b) = (real(row, row) - value, real(row, row + 1));
                let (c, d) = (real(row + 1, row), real(row + 1, row + 1) - value);
                let (first, second) = (-sum(row, row + 2, &x), -sum(row + 1, row + 2, &x));
                let mut under = a * d - b * c;
                if under.abs() < small * small {
                    under = C::new(small * small, 0.0);
                }
                x[row] = (first * d - b * second).over(under);
                x[row + 1] = (a * second - c * first).over(under);
            }
            let largest = x[row..].iter().fold(0.0f64, |most, x| most.max(x.abs()));
            if largest > 1e100 {
                for x in &mut x[row..] {
                    *x = x.times(1.0 / largest);
                }
            }
        }
        x
    }
}
