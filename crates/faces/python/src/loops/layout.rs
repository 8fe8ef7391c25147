//! Where the boxes of a graph's picture go: in layers from top to bottom, few crossings, short lines.

/// So often are the layers put in order, down and up.
const SWEEPS: usize = 12;

/// Pixels between boxes beside each other and between layers.
const GAP: (f64, f64) = (26.0, 38.0);

/// Pixels around it all.
const MARGIN: f64 = 12.0;

/// Boxes and lines that have places.
pub(super) struct Arranged {
    /// The middle of each box.
    pub(super) centres: Vec<(f64, f64)>,
    /// For each edge, the points that its line goes through.
    pub(super) routes: Vec<Vec<(f64, f64)>>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Boxes, and points that long lines go through, in layers.
struct Layers {
    /// By item: its width; boxes first, then points.
    widths: Vec<f64>,
    rows: Vec<Vec<usize>>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    x: Vec<f64>,
}

/// Arranges boxes of these sizes. Each edge goes from a box to a later one.
pub(super) fn arrange(sizes: &[(f64, f64)], edges: &[(usize, usize)]) -> Arranged {
    let count = sizes.len();
    let mut level = vec![0usize; count];
    // Edges go forward in a graph that is in order; as many rounds as boxes settle any other.
    for _ in 0..count.max(1) {
        let mut settled = true;
        for (from, to) in edges {
            if level[*to] <= level[*from] && level[*from] < count {
                level[*to] = level[*from] + 1;
                settled = false;
            }
        }
        if settled {
            break;
        }
    }
    // A box that nothing is above comes right above its first reader.
    for at in 0..count {
        if edges.iter().all(|(_, to)| *to != at) {
            let first = edges
                .iter()
                .filter(|(from, _)| *from == at)
                .map(|(_, to)| level[*to])
                .min();
            level[at] = first.map_or(level[at], |first| first.saturating_sub(1));
        }
    }
    let height = level.iter().max().map_or(0, |last| last + 1);
    let mut layers = Layers {
        widths: sizes.iter().map(|(wide, _)| *wide).collect(),
        rows: vec![Vec::new(); height],
        above: vec![Vec::new(); count],
        below: vec![Vec::new(); count],
        x: Vec::new(),
    };
    for (at, level) in level.iter().enumerate() {
        layers.rows[*level].push(at);
    }
    let mut chains = Vec::with_capacity(edges.len());
    for (from, to) in edges {
        let mut chain = vec![*from];
        for between in level[*from] + 1..level[*to] {
            let point = layers.widths.len();
            layers.widths.push(4.0);
            layers.above.push(Vec::new());
            layers.below.push(Vec::new());
            layers.rows[between].push(point);
            chain.push(point);
        }
        chain.push(*to);
        for pair in chain.windows(2) {
            layers.below[pair[0]].push(pair[1]);
            layers.above[pair[1]].push(pair[0]);
        }
        chains.push(chain);
    }
    layers.place();
    let mut top = MARGIN;
    let mut rows = Vec::with_capacity(height);
    for row in &layers.rows {
        let high = row
            .iter()
            .filter_map(|at| sizes.get(*at))
            .map(|(_, high)| *high)
            .fold(10.0, f64::max);
        rows.push((top, high));
        top += high + GAP.1;
    }
    let mut row_of = vec![0; layers.widths.len()];
    for (number, row) in layers.rows.iter().enumerate() {
        for at in row {
            row_of[*at] = number;
        }
    }
    let middle = |at: usize| {
        let (top, high) = rows[row_of[at]];
        (layers.x[at], top + high / 2.0)
    };
    let right = (0..layers.widths.len()).map(|at| layers.x[at] + layers.widths[at] / 2.0);
    let width = right.fold(0.0, f64::max) + MARGIN;
    let routes = chains.iter().map(|chain| {
        let mut points = Vec::new();
        let last = chain.len() - 1;
        for (place, at) in chain.iter().enumerate() {
            let (x, y) = middle(*at);
            match sizes.get(*at) {
                Some((_, high)) if place == 0 => points.push((x, y + high / 2.0)),
                Some((_, high)) if place == last => points.push((x, y - high / 2.0)),
                _ => {
                    // A long line goes straight down past the boxes of a layer.
                    let (top, high) = rows[row_of[*at]];
                    points.extend([(x, top), (x, top + high)]);
                }
            }
        }
        points
    });
    Arranged {
        routes: routes.collect(),
        centres: (0..count).map(middle).collect(),
        width,
        height: (top - GAP.1 + MARGIN).max(2.0 * MARGIN),
    }
}

impl Layers {
    /// Puts each layer in an order in which lines cross little, then each box near what it is joined to.
    fn place(&mut self) {
        let count = self.widths.len();
        self.x = vec![0.0; count];
        for row in 0..self.rows.len() {
            self.pack(row, None);
        }
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let order: Vec<usize> = match down {
                true => (0..self.rows.len()).collect(),
                false => (0..self.rows.len()).rev().collect(),
            };
            for row in order {
                let wanted = self.wanted(row, down);
                let mut items: Vec<(f64, usize)> = wanted
                    .iter()
                    .copied()
                    .zip(self.rows[row].iter().copied())
                    .collect();
                items.sort_by(|a, b| a.0.total_cmp(&b.0));
                self.rows[row] = items.iter().map(|(_, at)| *at).collect();
                let wanted: Vec<f64> = items.iter().map(|(x, _)| *x).collect();
                self.pack(row, Some(&wanted));
            }
        }
        let left = (0..count)
            .map(|at| self.x[at] - self.widths[at] / 2.0)
            .fold(f64::INFINITY, f64::min);
        for x in &mut self.x {
            *x += MARGIN - if left.is_finite() { left } else { 0.0 };
        }
    }

    /// Where the items of a row would like to be: in the middle of what they are joined to.
    fn wanted(&self, row: usize, down: bool) -> Vec<f64> {
        let near = |at: usize| match down {
            true => &self.above[at],
            false => &self.below[at],
        };
        let wish = |at: &usize| match near(*at).as_slice() {
            [] => self.x[*at],
            joined => joined.iter().map(|other| self.x[*other]).sum::<f64>() / joined.len() as f64,
        };
        self.rows[row].iter().map(wish).collect()
    }

    /// Puts a row's items as near to where they want to be as their widths let them.
    fn pack(&mut self, row: usize, wanted: Option<&[f64]>) {
        let items = self.rows[row].clone();
        let apart = |a: usize, b: usize| (self.widths[a] + self.widths[b]) / 2.0 + GAP.0;
        let mut right: Vec<f64> = Vec::with_capacity(items.len());
        for (place, at) in items.iter().enumerate() {
            let wish = wanted.map_or(0.0, |wanted| wanted[place]);
            let least = match place {
                0 => f64::NEG_INFINITY,
                _ => right[place - 1] + apart(items[place - 1], *at),
            };
            right.push(wish.max(least));
        }
        let mut left = right.clone();
        for place in (0..items.len()).rev() {
            let wish = wanted.map_or(0.0, |wanted| wanted[place]);
            let most = match items.get(place + 1) {
                Some(next) => left[place + 1] - apart(items[place], *next),
                None => f64::INFINITY,
            };
            left[place] = wish.min(most);
        }
        // Halfway between packing from both sides keeps the order and the distances.
        for (place, at) in items.iter().enumerate() {
            self.x[*at] = (right[place] + left[place]) / 2.0;
        }
    }
}
