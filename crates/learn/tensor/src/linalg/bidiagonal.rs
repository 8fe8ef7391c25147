//! Singular values and vectors: a bidiagonal matrix, and rotations from both sides that
//! make it diagonal (Golub and Kahan's iteration).

use super::blocks;
use super::host::{largest, scale_of};
use super::reflect::{Bidiagonal, bidiagonal};
use super::rotate::{Columns, rotation_of};

/// How many sweeps there are for one value, at most; two are usual.
const SWEEPS: usize = 60;

/// So many sweeps in vain, and what is small beside the whole matrix is taken for zero, too.
const PATIENCE: usize = 10;

/// Left vectors as columns, singular values, descending, and right vectors as columns, of a matrix with at least
/// as many rows as columns; NaN where the iteration does not come to an end.
pub(super) fn svd(a: &[f64], columns: usize) -> [Vec<f64>; 3] {
    if a.len() == columns * columns {
        return of_square(a, columns);
    }
    let [q, r] = blocks::qr(a, columns, columns);
    let [u, values, v] = of_square(&r, columns);
    [blocks::product(&q, &u, columns), values, v]
}

/// The singular values alone.
pub(super) fn singular_values(a: &[f64], columns: usize) -> Vec<f64> {
    let solved = match a.len() == columns * columns {
        true => solved(a, columns, false),
        false => solved(&blocks::qr(a, columns, 0)[1], columns, false),
    };
    match solved {
        (Some(iteration), scale) => iteration.values(&iteration.order(), scale),
        (None, _) => vec![f64::NAN; columns],
    }
}

fn of_square(a: &[f64], size: usize) -> [Vec<f64>; 3] {
    let (iteration, scale) = solved(a, size, true);
    let Some(iteration) = iteration else {
        return [size * size, size, size * size].map(|count| vec![f64::NAN; count]);
    };
    let order = iteration.order();
    let values = iteration.values(&order, scale);
    let Iteration {
        diagonal,
        places,
        sides: [u, v],
        ..
    } = iteration;
    let signs = order.iter().map(|at| 1f64.copysign(diagonal[*at]));
    let signs: Vec<f64> = signs.collect();
    let order: Vec<usize> = order.iter().map(|at| places[*at]).collect();
    let ones = vec![1.0; size];
    [
        u.into_matrix(&order, &signs),
        values,
        v.into_matrix(&order, &ones),
    ]
}

/// The iteration at its end, for a square matrix divided by a number, which is given, too.
fn solved(a: &[f64], size: usize, with_vectors: bool) -> (Option<Iteration>, f64) {
    let scale = scale_of(a);
    let scaled = a.iter().map(|x| x / scale).collect();
    let Bidiagonal {
        left,
        right,
        diagonal,
        above,
    } = bidiagonal(scaled, size);
    let mut iteration = Iteration {
        diagonal,
        above,
        places: (0..size).collect(),
        turned: vec![false; size],
        sides: [left, right].map(|reflections| match with_vectors {
            true => Columns::of_reflections(size, &reflections),
            false => Columns::none(),
        }),
    };
    (iteration.run().then_some(iteration), scale)
}

/// Which side rotations of rows or columns belong to.
#[derive(Clone, Copy)]
enum Of {
    Rows,
    Columns,
}

struct Iteration {
    diagonal: Vec<f64>,
    above: Vec<f64>,
    /// The columns of both sides that belong to the places of the diagonal.
    places: Vec<usize>,
    /// Whether it is the transposed matrix that is worked on, at each place: both sides have changed roles.
    turned: Vec<bool>,
    sides: [Columns; 2],
}

impl Iteration {
    /// The places of values in descending order.
    fn order(&self) -> Vec<usize> {
        let size = |at: &usize| self.diagonal[*at].abs();
        let mut order: Vec<usize> = (0..self.diagonal.len()).collect();
        order.sort_by(|a, b| size(b).total_cmp(&size(a)));
        order
    }

    fn values(&self, order: &[usize], scale: f64) -> Vec<f64> {
        let values = order.iter().map(|at| self.diagonal[*at].abs() * scale);
        values.collect()
    }

    /// Makes the matrix diagonal; whether that has come to an end.
    fn run(&mut self) -> bool {
        let whole = largest(&self.diagonal).max(largest(&self.above));
        let mut open = vec![(0, self.diagonal.len() - 1)];
        while let Some((mut first, mut last)) = open.pop() {
            // Small values are found at the end, so it begins with large ones. Turned round both ways and
            // transposed, the matrix is of the same form.
            if self.diagonal[last].abs() > self.diagonal[first].abs() {
                self.diagonal[first..=last].reverse();
                self.above[first..last].reverse();
                self.places[first..=last].reverse();
                for turned in &mut self.turned[first..=last] {
                    *turned = !*turned;
                }
            }
            let mut sweeps = 0;
            while first < last {
                let nothing = if sweeps < PATIENCE {
                    0.0
                } else {
                    whole * f64::EPSILON
                };
                let split = (first..last).rev().find(|at| self.is_split(*at, nothing));
                if let Some(at) = split {
                    self.above[at] = 0.0;
                    if at + 1 == last {
                        last = at;
                    } else {
                        open.push((first, at));
                        first = at + 1;
                    }
                    sweeps = 0;
                    continue;
                }
                if sweeps == SWEEPS {
                    return false;
                }
                sweeps += 1;
                let block =
                    largest(&self.diagonal[first..=last]).max(largest(&self.above[first..last]));
                let is_nothing =
                    |at: &usize| self.diagonal[*at].abs() <= 0.5 * f64::EPSILON * block;
                match (first..=last).rev().find(is_nothing) {
                    Some(at) if at == last => self.clear_column(first, last),
                    Some(at) => self.clear_row(at, last),
                    None => self.sweep(first, last),
                }
            }
        }
        true
    }

    /// Whether an element above the diagonal is as good as zero.
    fn is_split(&self, at: usize, nothing: f64) -> bool {
        let near = self.diagonal[at].abs() + self.diagonal[at + 1].abs();
        self.above[at].abs() <= (0.5 * f64::EPSILON * near).max(nothing)
    }

    fn rotate(&mut self, of: Of, first: usize, second: usize, (cos, sin): (f64, f64)) {
        let side = match of {
            Of::Rows => self.turned[first] as usize,
            Of::Columns => !self.turned[first] as usize,
        };
        self.sides[side].rotate(self.places[first], self.places[second], cos, sin);
    }

    /// A zero on the diagonal clears the rest of its row, by rotations with all rows below.
    fn clear_row(&mut self, at: usize, last: usize) {
        self.diagonal[at] = 0.0;
        let mut bulge = std::mem::take(&mut self.above[at]);
        for row in at + 1..=last {
            let (cos, sin, length) = rotation_of(self.diagonal[row], bulge);
            self.diagonal[row] = length;
            if row < last {
                bulge = -sin * self.above[row];
                self.above[row] *= cos;
            }
            self.rotate(Of::Rows, row, at, (cos, sin));
        }
    }

    /// A zero at the end of the diagonal clears its column, by rotations with all columns before.
    fn clear_column(&mut self, first: usize, last: usize) {
        self.diagonal[last] = 0.0;
        let mut bulge = std::mem::take(&mut self.above[last - 1]);
        for column in (first..last).rev() {
            let (cos, sin, length) = rotation_of(self.diagonal[column], bulge);
            self.diagonal[column] = length;
            if column > first {
                bulge = -sin * self.above[column - 1];
                self.above[column - 1] *= cos;
            }
            self.rotate(Of::Columns, column, last, (cos, sin));
        }
    }

    /// One step of the iteration: a rotation that the shift asks for, and those that put right what it spoils.
    fn sweep(&mut self, first: usize, last: usize) {
        let head = self.diagonal[first];
        let shift = smaller_value(
            self.diagonal[last - 1],
            self.above[last - 1],
            self.diagonal[last],
        );
        let part = shift / head;
        // A shift that is nothing beside the first element would be lost in rounding.
        let (mut x, mut bulge) = match part * part < f64::EPSILON {
            true => (head, self.above[first]),
            false => (
                (head.abs() - shift) * (1f64.copysign(head) + part),
                self.above[first],
            ),
        };
        for at in first..last {
            let (cos, sin, length) = rotation_of(x, bulge);
            if at > first {
                self.above[at - 1] = length;
            }
            let (own, above, next) = (self.diagonal[at], self.above[at], self.diagonal[at + 1]);
            x = cos * own + sin * above;
            let above = cos * above - sin * own;
            bulge = sin * next;
            let next = cos * next;
            self.rotate(Of::Columns, at, at + 1, (cos, sin));
            let (cos, sin, length) = rotation_of(x, bulge);
            self.diagonal[at] = length;
            x = cos * above + sin * next;
            self.above[at] = x;
            self.diagonal[at + 1] = cos * next - sin * above;
            if at + 1 < last {
                bulge = sin * self.above[at + 1];
                self.above[at + 1] *= cos;
            }
            self.rotate(Of::Rows, at, at + 1, (cos, sin));
        }
    }
}

/// The smaller singular value of `[[a, b], [0, c]]`: the sum and the difference of both are lengths.
fn smaller_value(a: f64, b: f64, c: f64) -> f64 {
    let (a, c) = (a.abs(), c.abs());
    let larger = 0.5 * ((a + c).hypot(b) + (a - c).hypot(b));
    if larger == 0.0 {
        0.0
    } else {
        a.min(c) * (a.max(c) / larger)
    }
}
