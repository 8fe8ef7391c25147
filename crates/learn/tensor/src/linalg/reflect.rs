//! Reductions by Householder's reflections.

use super::host::{add_multiple, dot, largest, power_below};

/// Where a reflection `1 - scale v vᵀ` begins, its scale and its vector.
pub(super) type Reflection = (usize, f64, Vec<f64>);

/// Makes a vector the one whose reflection takes it to a multiple of the first unit vector; with the scale of
/// the reflection and the multiple.
pub(super) fn reflect(x: &mut [f64]) -> (f64, f64) {
    let head = x[0];
    let power = power_below(largest(x));
    if power == 0.0 {
        // Other elements are near 1, and that is nothing beside them.
        x.fill(0.0);
        return (0.0, head);
    }
    for x in x.iter_mut() {
        *x /= power;
    }
    let rest = dot(&x[1..], &x[1..]);
    if rest == 0.0 {
        x.fill(0.0);
        return (0.0, head);
    }
    let length = (x[0] * x[0] + rest).sqrt().copysign(-x[0]);
    let first = x[0] - length;
    for x in &mut x[1..] {
        *x /= first;
    }
    let scale = -first / length;
    x[0] = 1.0;
    (scale, length * power)
}

/// A symmetric matrix as `q t qᵀ` with the reflections that `q` is the product of, and the diagonal and the
/// one beside it of `t`. Only the upper triangle of the matrix is looked at.
pub(super) fn tridiagonal(mut a: Vec<f64>, size: usize) -> (Vec<Reflection>, Vec<f64>, Vec<f64>) {
    let (mut diagonal, mut beside) = (Vec::with_capacity(size), Vec::with_capacity(size));
    let mut reflections: Vec<Reflection> = Vec::with_capacity(size);
    // What the reflection before takes away: the products of its vector with this one, both ways.
    let mut other = vec![0.0; size];
    let mut product = vec![0.0; size];
    for step in 0..size {
        let row = &mut a[step * size + step..(step + 1) * size];
        if let Some((start, _, vector)) = reflections.last() {
            let at = step - start;
            subtract_both(
                row,
                (vector[at], &vector[at..]),
                (other[step], &other[step..]),
            );
        }
        diagonal.push(row[0]);
        if step + 1 == size {
            break;
        }
        let mut vector = row[1..].to_vec();
        let (scale, length) = reflect(&mut vector);
        beside.push(length);
        // One pass: rows lose what the reflection before takes, and are multiplied by the new vector.
        let first = step + 1;
        product[first..].fill(0.0);
        for (at, i) in (first..size).enumerate() {
            let row = &mut a[i * size + i..(i + 1) * size];
            if let Some((start, _, before)) = reflections.last() {
                let own = i - start;
                subtract_both(row, (before[own], &before[own..]), (other[i], &other[i..]));
            }
            product[i] += dot(row, &vector[at..]);
            add_multiple(&mut product[i + 1..], vector[at], &row[1..]);
        }
        let along = 0.5 * scale * scale * dot(&product[first..], &vector);
        for ((other, product), x) in other[first..]
            .iter_mut()
            .zip(&product[first..])
            .zip(&vector)
        {
            *other = scale * product - along * x;
        }
        reflections.push((first, scale, vector));
    }
    (reflections, diagonal, beside)
}

/// A row of a symmetric matrix less the products of two vectors, both ways, each with its element of this row.
fn subtract_both(row: &mut [f64], (v, vector): (f64, &[f64]), (w, other): (f64, &[f64])) {
    for ((x, a), b) in row.iter_mut().zip(vector).zip(other) {
        *x -= v * b + w * a;
    }
}

/// What is left of a square matrix between reflections from both sides: the diagonal and the one above it.
pub(super) struct Bidiagonal {
    pub(super) left: Vec<Reflection>,
    pub(super) right: Vec<Reflection>,
    pub(super) diagonal: Vec<f64>,
    pub(super) above: Vec<f64>,
}

/// A square matrix as `u b vᵀ`.
pub(super) fn bidiagonal(mut a: Vec<f64>, size: usize) -> Bidiagonal {
    let mut made = Bidiagonal {
        left: Vec::with_capacity(size),
        right: Vec::with_capacity(size),
        diagonal: Vec::with_capacity(size),
        above: Vec::with_capacity(size),
    };
    let mut sums = vec![0.0; size];
    for step in 0..size {
        let mut column: Vec<f64> = (step..size).map(|i| a[i * size + step]).collect();
        let (scale, length) = reflect(&mut column);
        made.diagonal.push(length);
        let first = step + 1;
        if first == size {
            // A reflection of one element is none.
            break;
        }
        sums[first..].fill(0.0);
        for (x, i) in column.iter().zip(step..) {
            add_multiple(
                &mut sums[first..],
                scale * x,
                &a[i * size + first..(i + 1) * size],
            );
        }
        let row = &mut a[step * size + first..first * size];
        add_multiple(row, -column[0], &sums[first..]);
        let mut vector = row.to_vec();
        let (across, length) = reflect(&mut vector);
        made.above.push(length);
        for (x, i) in column[1..].iter().zip(first..) {
            let row = &mut a[i * size + first..(i + 1) * size];
            add_multiple(row, -x, &sums[first..]);
            let along = across * dot(row, &vector);
            add_multiple(row, -along, &vector);
        }
        made.left.push((step, scale, column));
        made.right.push((first, across, vector));
    }
    made
}
