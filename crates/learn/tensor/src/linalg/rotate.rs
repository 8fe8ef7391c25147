//! Columns that are rotated in pairs.

/// How many rows of a matrix lie beside each other.
const WIDE: usize = 8;

/// How many rotations wait, at most: what is read of them again for all rows should stay in a cache.
const WAITING: usize = 1 << 15;

/// A rotation of two columns, which become `cos * first + sin * second` and `cos * second - sin * first`.
#[derive(Clone, Copy)]
struct Rotation {
    cos: f64,
    sin: f64,
    first: u32,
    second: u32,
}

/// The cosine and sine of the rotation of `(x, y)` to `(r, 0)`, and `r`. Both are not large.
pub(super) fn rotation_of(x: f64, y: f64) -> (f64, f64, f64) {
    if y == 0.0 {
        return (1.0, 0.0, x);
    }
    let square = x * x + y * y;
    if square < SMALL_SQUARE {
        // Squares of small numbers are not precise, nor are lengths that are not normal numbers.
        let (cos, sin, length) = rotation_of(x * ENLARGED, y * ENLARGED);
        return (cos, sin, length / ENLARGED);
    }
    let length = square.sqrt();
    (x / length, y / length, length)
}

/// Smaller squares lose digits.
const SMALL_SQUARE: f64 = 1e-290;

/// 2 to the power of 600: squares of the smallest numbers become larger than that.
const ENLARGED: f64 = f64::from_bits((1023 + 600) << 52);

/// An orthogonal matrix whose columns are reflected and rotated.
///
/// Some rows at a time lie in memory column by column. Rows do not depend on each other, so that all that
/// happens to these few, which fit in a cache, is done at once.
pub(super) struct Columns {
    size: usize,
    /// For some rows at a time, the columns.
    strips: Vec<Vec<[f64; WIDE]>>,
    waiting: Vec<Rotation>,
}

impl Columns {
    /// The product of reflections `1 - scale v vᵀ`, in order. Each has zeros before its first element, which
    /// stands at the place that is given.
    pub(super) fn of_reflections(size: usize, reflections: &[(usize, f64, Vec<f64>)]) -> Columns {
        let strip = |from: usize| {
            let mut strip = vec![[0.0; WIDE]; size];
            for lane in 0..WIDE.min(size - from) {
                strip[from + lane][lane] = 1.0;
            }
            for (start, scale, vector) in reflections {
                let columns = &mut strip[*start..];
                let mut sums = [0.0; WIDE];
                for (column, x) in columns.iter().zip(vector) {
                    for lane in 0..WIDE {
                        sums[lane] += column[lane] * x;
                    }
                }
                for sum in &mut sums {
                    *sum *= scale;
                }
                for (column, x) in columns.iter_mut().zip(vector) {
                    for lane in 0..WIDE {
                        column[lane] -= sums[lane] * x;
                    }
                }
            }
            strip
        };
        Columns {
            size,
            strips: (0..size).step_by(WIDE).map(strip).collect(),
            waiting: Vec::new(),
        }
    }

    /// No matrix at all, where only values are asked for.
    pub(super) fn none() -> Columns {
        Columns {
            size: 0,
            strips: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Rotates two columns.
    pub(super) fn rotate(&mut self, first: usize, second: usize, cos: f64, sin: f64) {
        if self.size == 0 {
            return;
        }
        if self.waiting.len() == WAITING {
            self.settle();
        }
        self.waiting.push(Rotation {
            cos,
            sin,
            first: first as u32,
            second: second as u32,
        });
    }

    fn settle(&mut self) {
        let Some(start) = self.waiting.first() else {
            return;
        };
        for strip in &mut self.strips {
            // The second column of one rotation is mostly the first of the next, and stays in registers.
            let mut place = start.first as usize;
            let mut held = strip[place];
            for rotation in &self.waiting {
                let Rotation { cos, sin, .. } = *rotation;
                let (first, second) = (rotation.first as usize, rotation.second as usize);
                if first != place {
                    strip[place] = held;
                    held = strip[first];
                }
                let other = strip[second];
                let turned = &mut strip[first];
                for lane in 0..WIDE {
                    turned[lane] = cos * held[lane] + sin * other[lane];
                    held[lane] = cos * other[lane] - sin * held[lane];
                }
                place = second;
            }
            strip[place] = held;
        }
        self.waiting.clear();
    }

    /// The matrix with columns in an order, each times a number.
    pub(super) fn into_matrix(mut self, order: &[usize], signs: &[f64]) -> Vec<f64> {
        self.settle();
        let mut matrix = Vec::with_capacity(self.size * self.size);
        for row in 0..self.size {
            let (strip, lane) = (&self.strips[row / WIDE], row % WIDE);
            let columns = order.iter().zip(signs);
            matrix.extend(columns.map(|(at, sign)| strip[*at][lane] * sign));
        }
        matrix
    }
}
