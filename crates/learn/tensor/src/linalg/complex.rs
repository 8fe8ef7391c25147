//! Complex numbers and square matrices of them on the host, and the eigenvalues of such: a Hessenberg matrix by
//! reflections, a triangle by QR iteration with single shifts, and its eigenvectors by substitution.

use std::ops::{Add, Mul, Neg, Sub};

/// A complex number.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct C {
    pub(super) re: f64,
    pub(super) im: f64,
}

impl C {
    pub(super) const ZERO: C = C::new(0.0, 0.0);
    pub(super) const ONE: C = C::new(1.0, 0.0);

    pub(super) const fn new(re: f64, im: f64) -> C {
        C { re, im }
    }

    pub(super) fn abs(self) -> f64 {
        self.re.hypot(self.im)
    }

    pub(super) fn squared(self) -> f64 {
        self.re * self.re + self.im * self.im
    }

    pub(super) fn conj(self) -> C {
        C::new(self.re, -self.im)
    }

    pub(super) fn times(self, factor: f64) -> C {
        C::new(self.re * factor, self.im * factor)
    }

    /// The quotient, by Smith's rule: nothing is squared that could overflow.
    pub(super) fn over(self, other: C) -> C {
        if other.re.abs() >= other.im.abs() {
            let ratio = other.im / other.re;
            let under = other.re + other.im * ratio;
            C::new(
                (self.re + self.im * ratio) / under,
                (self.im - self.re * ratio) / under,
            )
        } else {
            let ratio = other.re / other.im;
            let under = other.re * ratio + other.im;
            C::new(
                (self.re * ratio + self.im) / under,
                (self.im * ratio - self.re) / under,
            )
        }
    }

    pub(super) fn sqrt(self) -> C {
        let length = self.abs();
        let along = ((length + self.re.abs()) * 0.5).sqrt();
        if along == 0.0 {
            return C::ZERO;
        }
        let across = self.im.abs() / (2.0 * along);
        match self.re >= 0.0 {
            true => C::new(along, across.copysign(self.im)),
            false => C::new(across, along.copysign(self.im)),
        }
    }
}

impl Add for C {
    type Output = C;
    fn add(self, other: C) -> C {
        C::new(self.re + other.re, self.im + other.im)
    }
}

impl Sub for C {
    type Output = C;
    fn sub(self, other: C) -> C {
        C::new(self.re - other.re, self.im - other.im)
    }
}

impl Mul for C {
    type Output = C;
    fn mul(self, other: C) -> C {
        C::new(
            self.re * other.re - self.im * other.im,
            self.re * other.im + self.im * other.re,
        )
    }
}

impl Neg for C {
    type Output = C;
    fn neg(self) -> C {
        C::new(-self.re, -self.im)
    }
}

/// A square matrix, row by row.
#[derive(Clone, Debug)]
pub(super) struct Square {
    size: usize,
    elements: Vec<C>,
}

impl Square {
    pub(super) fn zeros(size: usize) -> Square {
        Square {
            size,
            elements: vec![C::ZERO; size * size],
        }
    }

    fn unit(size: usize) -> Square {
        let mut made = Square::zeros(size);
        for at in 0..size {
            *made.at_mut(at, at) = C::ONE;
        }
        made
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn elements(&self) -> &[C] {
        &self.elements
    }

    pub(super) fn at(&self, row: usize, column: usize) -> C {
        self.elements[row * self.size + column]
    }

    pub(super) fn at_mut(&mut self, row: usize, column: usize) -> &mut C {
        &mut self.elements[row * self.size + column]
    }
}

/// The eigenvalues of a matrix, and its eigenvectors as columns; `None` where the iteration does not come to an end.
pub(super) fn solve(matrix: Square, with_vectors: bool) -> Option<(Vec<C>, Square)> {
    let size = matrix.size();
    let (mut h, mut z) = hessenberg(matrix, with_vectors);
    triangular(&mut h, &mut z, with_vectors)?;
    let values = (0..size).map(|at| h.at(at, at)).collect();
    let vectors = match with_vectors {
        true => of_triangle(&h, &z),
        false => Square::zeros(0),
    };
    Some((values, vectors))
}

/// `h`, with zeros below the diagonal under the main one, and a unitary `z` with `z h zᴴ` the matrix.
fn hessenberg(mut a: Square, with_vectors: bool) -> (Square, Square) {
    let size = a.size();
    let mut z = Square::unit(if with_vectors { size } else { 0 });
    for step in 1..size.saturating_sub(1) {
        let largest = (step..size).fold(0.0f64, |most, row| most.max(a.at(row, step - 1).abs()));
        if largest == 0.0 || (step + 1..size).all(|row| a.at(row, step - 1) == C::ZERO) {
            continue;
        }
        let mut v: Vec<C> = (step..size)
            .map(|row| a.at(row, step - 1).times(1.0 / largest))
            .collect();
        let length = v.iter().map(|x| x.squared()).sum::<f64>().sqrt();
        let head = v[0].abs();
        let phase = match head == 0.0 {
            true => C::ONE,
            false => v[0].times(1.0 / head),
        };
        v[0] = v[0] + phase.times(length);
        let half = v.iter().map(|x| x.squared()).sum::<f64>() * 0.5;
        let from_left = |m: &mut Square, first: usize| {
            for column in first..size {
                let along = v
                    .iter()
                    .zip(step..)
                    .fold(C::ZERO, |sum, (v, row)| sum + v.conj() * m.at(row, column));
                let along = along.times(1.0 / half);
                for (v, row) in v.iter().zip(step..) {
                    *m.at_mut(row, column) = m.at(row, column) - *v * along;
                }
            }
        };
        let from_right = |m: &mut Square| {
            for row in 0..size {
                let along = v
                    .iter()
                    .zip(step..)
                    .fold(C::ZERO, |sum, (v, column)| sum + m.at(row, column) * *v);
                let along = along.times(1.0 / half);
                for (v, column) in v.iter().zip(step..) {
                    *m.at_mut(row, column) = m.at(row, column) - along * v.conj();
                }
            }
        };
        from_left(&mut a, step - 1);
        from_right(&mut a);
        if with_vectors {
            from_right(&mut z);
        }
        for row in step + 1..size {
            *a.at_mut(row, step - 1) = C::ZERO;
        }
    }
    (a, z)
}

/// So many sweeps for one eigenvalue, at most; two are usual.
const SWEEPS: usize = 60;

/// After so many sweeps for one eigenvalue, what is small beside the whole matrix is taken for 0.
pub(super) const LATE: usize = 40;

/// Whether the element below the diagonal is taken for 0: the absolute values of two rows and columns of a matrix whose
/// largest element is near 1, how far apart their diagonal elements are, and the norm of the matrix.
///
/// Small beside its neighbours is not enough in graded matrices: its product with the element above must be small, too
/// (the test of Ahues and Tisseur, as in LAPACK), or eigenvectors lose what is in small elements.
pub(super) fn is_negligible(
    [[upper, above], [below, lower]]: [[f64; 2]; 2],
    apart: f64,
    norm: f64,
    is_late: bool,
) -> bool {
    if below <= f64::MIN_POSITIVE / f64::EPSILON || is_late && below <= f64::EPSILON * norm {
        return true;
    }
    let near = match upper + lower {
        0.0 => norm,
        near => near,
    };
    if below > f64::EPSILON * near {
        return false;
    }
    let (larger, smaller) = (below.max(above), below.min(above));
    let (most, least) = (lower.max(apart), lower.min(apart));
    let sum = larger + most;
    smaller * (larger / sum)
        <= (f64::EPSILON * (least * (most / sum))).max(f64::MIN_POSITIVE / f64::EPSILON)
}

/// Makes a Hessenberg matrix a triangle by QR iteration.
fn triangular(h: &mut Square, z: &mut Square, with_vectors: bool) -> Option<()> {
    let size = h.size();
    let norm = (h.elements().iter()).fold(0.0f64, |most, x| most.max(x.re.abs() + x.im.abs()));
    let mut last = size;
    let mut sweeps = 0;
    while last > 1 {
        let end = last - 1;
        // Where the matrix falls apart.
        let mut first = end;
        while first > 0 {
            let at = |row: usize, column: usize| h.at(row, column).abs();
            let block = [
                [at(first - 1, first - 1), at(first - 1, first)],
                [at(first, first - 1), at(first, first)],
            ];
            let apart = (h.at(first - 1, first - 1) - h.at(first, first)).abs();
            if is_negligible(block, apart, norm, sweeps > LATE) {
                *h.at_mut(first, first - 1) = C::ZERO;
                break;
            }
            first -= 1;
        }
        if first == end {
            last -= 1;
            sweeps = 0;
            continue;
        }
        if sweeps == SWEEPS {
            return None;
        }
        sweeps += 1;
        let shift = match sweeps % 11 == 10 {
            // Out of a cycle.
            true => C::new(h.at(end, end - 1).abs() + h.at(end, end).abs(), 0.0),
            false => wilkinson(h, end),
        };
        sweep(h, z, first, end, shift, with_vectors);
    }
    Some(())
}

/// The eigenvalue of the last two rows and columns that is nearer to the last element.
fn wilkinson(h: &Square, end: usize) -> C {
    let (a, b) = (h.at(end - 1, end - 1), h.at(end - 1, end));
    let (c, d) = (h.at(end, end - 1), h.at(end, end));
    let half = (a - d).times(0.5);
    let root = (half * half + b * c).sqrt();
    let [plus, minus] = [half + root, half - root];
    let far = if plus.squared() >= minus.squared() {
        plus
    } else {
        minus
    };
    match far == C::ZERO {
        true => d,
        false => d - (b * c).over(far),
    }
}

/// One step: `h - shift` as a product of rotations and a triangle, and both the other way around.
fn sweep(h: &mut Square, z: &mut Square, first: usize, end: usize, shift: C, with_vectors: bool) {
    let size = h.size();
    for at in first..=end {
        *h.at_mut(at, at) = h.at(at, at) - shift;
    }
    let mut rotations = Vec::with_capacity(end - first);
    for at in first..end {
        let (x, y) = (h.at(at, at), h.at(at + 1, at));
        let length = x.abs().hypot(y.abs());
        let (c, s) = match length == 0.0 {
            true => (C::ONE, C::ZERO),
            false => (x.times(1.0 / length), y.times(1.0 / length)),
        };
        rotations.push((c, s));
        for column in at..size {
            let (x, y) = (h.at(at, column), h.at(at + 1, column));
            *h.at_mut(at, column) = c.conj() * x + s.conj() * y;
            *h.at_mut(at + 1, column) = c * y - s * x;
        }
    }
    for ((c, s), at) in rotations.into_iter().zip(first..) {
        let turn = |m: &mut Square, row: usize| {
            let (x, y) = (m.at(row, at), m.at(row, at + 1));
            *m.at_mut(row, at) = x * c + y * s;
            *m.at_mut(row, at + 1) = y * c.conj() - x * s.conj();
        };
        for row in 0..=(at + 1).min(end) {
            turn(h, row);
        }
        if with_vectors {
            for row in 0..size {
                turn(z, row);
            }
        }
    }
    for at in first..=end {
        *h.at_mut(at, at) = h.at(at, at) + shift;
    }
}

/// The eigenvectors of a triangle, by substitution, turned by `z`.
fn of_triangle(t: &Square, z: &Square) -> Square {
    let size = t.size();
    let norm = (t.elements().iter()).fold(0.0f64, |most, x| most.max(x.re.abs() + x.im.abs()));
    let least = (f64::EPSILON * norm).max(f64::MIN_POSITIVE / f64::EPSILON);
    let mut vectors = Square::zeros(size);
    for column in 0..size {
        let value = t.at(column, column);
        let mut x = vec![C::ZERO; size];
        x[column] = C::ONE;
        for row in (0..column).rev() {
            let sum = (row + 1..=column).fold(C::ZERO, |sum, k| sum + t.at(row, k) * x[k]);
            let mut under = t.at(row, row) - value;
            if under.abs() < least {
                under = C::new(least, 0.0);
            }
            x[row] = -sum.over(under);
            let size = x[row].abs();
            if size > 1e150 {
                for x in &mut x[row..=column] {
                    *x = x.times(1.0 / size);
                }
            }
        }
        for row in 0..size {
            let sum = (0..=column).fold(C::ZERO, |sum, k| sum + z.at(row, k) * x[k]);
            *vectors.at_mut(row, column) = sum;
        }
    }
    vectors
}
