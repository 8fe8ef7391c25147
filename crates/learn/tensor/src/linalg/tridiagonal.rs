//! Eigenvalues and eigenvectors of symmetric matrices: a tridiagonal matrix, and rotations that make it
//! diagonal (the implicit QR iteration with Wilkinson's shifts).

use super::host::{largest, scale_of};
use super::reflect::tridiagonal;
use super::rotate::{Columns, rotation_of};

/// How many sweeps there are for one value, at most; two are usual.
const SWEEPS: usize = 60;

/// So many sweeps in vain, and what is small beside the whole matrix is taken for zero, too.
const PATIENCE: usize = 10;

/// The eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns; NaN where the iteration
/// does not come to an end.
pub(super) fn eigh(a: &[f64], size: usize) -> [Vec<f64>; 2] {
    let (iteration, scale) = solved(a, size, true);
    let Some(iteration) = iteration else {
        return [size, size * size].map(|count| vec![f64::NAN; count]);
    };
    let order = iteration.order();
    let values = order.iter().map(|at| iteration.diagonal[*at] * scale);
    let values = values.collect();
    let order: Vec<usize> = order.iter().map(|at| iteration.places[*at]).collect();
    let vectors = iteration.columns.into_matrix(&order, &vec![1.0; size]);
    [values, vectors]
}

/// The eigenvalues alone.
pub(super) fn eigenvalues(a: &[f64], size: usize) -> Vec<f64> {
    let (iteration, scale) = solved(a, size, false);
    let Some(iteration) = iteration else {
        return vec![f64::NAN; size];
    };
    let order = iteration.order();
    let values = order.iter().map(|at| iteration.diagonal[*at] * scale);
    values.collect()
}

/// The iteration at its end, for the matrix divided by a number, which is given, too.
fn solved(a: &[f64], size: usize, with_vectors: bool) -> (Option<Iteration>, f64) {
    let scale = scale_of(a);
    let mut whole = vec![0.0; size * size];
    for i in 0..size {
        for j in i..size {
            whole[i * size + j] = 0.5 * (a[i * size + j] / scale) + 0.5 * (a[j * size + i] / scale);
        }
    }
    let (reflections, diagonal, beside) = tridiagonal(whole, size);
    let mut iteration = Iteration {
        diagonal,
        beside,
        places: (0..size).collect(),
        columns: match with_vectors {
            true => Columns::of_reflections(size, &reflections),
            false => Columns::none(),
        },
    };
    (iteration.run().then_some(iteration), scale)
}

struct Iteration {
    diagonal: Vec<f64>,
    beside: Vec<f64>,
    /// The columns that belong to the places of the diagonal.
    places: Vec<usize>,
    columns: Columns,
}

impl Iteration {
    /// The places of values in ascending order.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.diagonal.len()).collect();
        order.sort_by(|a, b| self.diagonal[*a].total_cmp(&self.diagonal[*b]));
        order
    }

    /// Makes the matrix diagonal; whether that has come to an end.
    fn run(&mut self) -> bool {
        let whole = largest(&self.diagonal).max(largest(&self.beside));
        let mut open = vec![(0, self.diagonal.len() - 1)];
        while let Some((first, mut last)) = open.pop() {
            // Small values are found at the end, so it begins with large ones.
            if self.diagonal[last].abs() > self.diagonal[first].abs() {
                self.diagonal[first..=last].reverse();
                self.beside[first..last].reverse();
                self.places[first..=last].reverse();
            }
            let mut first = first;
            let mut sweeps = 0;
            while first < last {
                let nothing = if sweeps < PATIENCE {
                    0.0
                } else {
                    whole * f64::EPSILON
                };
                let split = (first..last).rev().find(|at| self.is_split(*at, nothing));
                match split {
                    Some(at) => {
                        self.beside[at] = 0.0;
                        if at + 1 == last {
                            last = at;
                        } else {
                            open.push((first, at));
                            first = at + 1;
                        }
                        sweeps = 0;
                    }
                    None if sweeps == SWEEPS => return false,
                    None => {
                        self.sweep(first, last);
                        sweeps += 1;
                    }
                }
            }
        }
        true
    }

    /// Whether an element beside the diagonal is as good as zero.
    fn is_split(&self, at: usize, nothing: f64) -> bool {
        let near = self.diagonal[at].abs() + self.diagonal[at + 1].abs();
        self.beside[at].abs() <= (0.5 * f64::EPSILON * near).max(nothing)
    }

    /// One step of the iteration: a rotation that the shift asks for, and those that put right what it spoils.
    fn sweep(&mut self, first: usize, last: usize) {
        let (diagonal, beside) = (&mut self.diagonal, &mut self.beside);
        let half = 0.5 * (diagonal[last - 1] - diagonal[last]);
        let side = beside[last - 1];
        let shift = diagonal[last] - side * (side / (half + half.hypot(side).copysign(half)));
        let (mut x, mut bulge) = (diagonal[first] - shift, beside[first]);
        for at in first..last {
            let (cos, sin, length) = rotation_of(x, bulge);
            if at > first {
                beside[at - 1] = length;
            }
            let (upper, lower, side) = (diagonal[at], diagonal[at + 1], beside[at]);
            // The pair's diagonal changes by as much in both places.
            let along = sin * (lower - upper) + 2.0 * cos * side;
            let change = sin * along;
            diagonal[at] = upper + change;
            diagonal[at + 1] = lower - change;
            beside[at] = cos * along - side;
            x = beside[at];
            if at + 1 < last {
                bulge = sin * beside[at + 1];
                beside[at + 1] *= cos;
            }
            self.columns
                .rotate(self.places[at], self.places[at + 1], cos, sin);
        }
    }
}
