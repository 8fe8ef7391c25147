//! Arrays as pictures.

use crate::image::ImageError;
use loopwright_array::{Array, ArrayError};
use loopwright_ops::DType;
use std::path::Path;

/// Colours for the values from the least to the most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Palette {
    /// From dark violet over green to yellow: even steps for the eye, also in grey.
    Violet,
    /// From blue over white to red: for values with a middle.
    BlueRed,
    /// From black to white.
    Grey,
}

impl Palette {
    /// The colours at equal distances; between them it is a straight line.
    fn stops(self) -> &'static [[u8; 3]] {
        match self {
            Palette::Violet => &[
                [68, 1, 84],
                [59, 82, 139],
                [33, 145, 140],
                [94, 201, 98],
                [253, 231, 37],
            ],
            Palette::BlueRed => &[
                [33, 102, 172],
                [146, 197, 222],
                [247, 247, 247],
                [244, 165, 130],
                [178, 24, 43],
            ],
            Palette::Grey => &[[0, 0, 0], [255, 255, 255]],
        }
    }

    /// The colour at a place from 0 to 1.
    fn at(self, place: f64) -> [u8; 3] {
        let stops = self.stops();
        let along = place.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
        let from = (along as usize).min(stops.len() - 2);
        let share = along - from as f64;
        let mix = |channel: usize| {
            let (a, b) = (stops[from][channel], stops[from + 1][channel]);
            (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u8
        };
        [mix(0), mix(1), mix(2)]
    }
}

/// What is not a number.
const NOTHING: [u8; 3] = [128, 128, 128];

/// The colours of points by class; they stand out on all palettes.
const POINTS: [[u8; 3]; 10] = [
    [9, 105, 218],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [140, 107, 177],
    [127, 127, 127],
    [160, 82, 45],
    [86, 180, 233],
    [60, 60, 60],
];

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum HeatError {
    /// An array that is no map.
    #[error(
        "a heat map is made of an array of two dimensions that is not empty, and this one is {dtype}{shape:?}"
    )]
    Shape {
        /// Its dtype.
        dtype: DType,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// Points or classes that do not go together.
    #[error(
        "points are [count, 2] with as many classes [count]; these are {points:?} and {classes:?}"
    )]
    Points {
        /// The shape of the points.
        points: Vec<usize>,
        /// The shape of the classes.
        classes: Vec<usize>,
    },
    /// No memory for the picture.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The picture cannot be written.
    #[error(transparent)]
    Image(#[from] ImageError),
}

/// A map of colours: an array of two dimensions as a picture, each value a square, and points on it.
///
/// Rows lie from the bottom to the top, as an axis has them: row 0 is the lowest. [`HeatMap::flipped`] is for pictures, whose first row is
/// the highest.
///
/// ```
/// use loopwright_formats::chart::{HeatMap, Palette};
/// use loopwright_array::Array;
/// use loopwright_ops::DType;
///
/// let values = Array::from_f64(DType::F32, &[1, 2], &[0.0, 1.0])?;
/// let picture = HeatMap::new(&values).palette(Palette::Grey).scale(2).picture()?;
/// assert_eq!(picture.shape(), [2, 4, 3]);
/// assert_eq!(picture.bytes()[..12], [0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HeatMap<'a> {
    values: &'a Array,
    palette: Palette,
    range: Option<(f64, f64)>,
    scale: usize,
    pub(crate) flipped: bool,
    points: Option<Points<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct Points<'a> {
    points: &'a Array,
    classes: &'a Array,
    across: (f64, f64),
    up: (f64, f64),
}

impl<'a> HeatMap<'a> {
    /// A map of `[row, column]`.
    pub fn new(values: &'a Array) -> HeatMap<'a> {
        HeatMap {
            values,
            palette: Palette::Violet,
            range: None,
            scale: 1,
            flipped: false,
            points: None,
        }
    }

    /// In other colours.
    pub fn palette(self, palette: Palette) -> HeatMap<'a> {
        HeatMap { palette, ..self }
    }

    /// With the colours for these values and what lies between; otherwise for the least and the most there are.
    pub fn range(self, least: f64, most: f64) -> HeatMap<'a> {
        let range = Some((least, most));
        HeatMap { range, ..self }
    }

    /// With each value a square of so many pixels a side, at least 1.
    pub fn scale(self, scale: usize) -> HeatMap<'a> {
        let scale = scale.max(1);
        HeatMap { scale, ..self }
    }

    /// With row 0 at the top.
    pub fn flipped(self) -> HeatMap<'a> {
        let flipped = true;
        HeatMap { flipped, ..self }
    }

    /// With points `[count, 2]` of classes `[count]` on it; the map reaches from the first to the second number of `across` and
    /// `up`. Points outside are left out.
    pub fn points(
        self,
        points: &'a Array,
        classes: &'a Array,
        across: (f64, f64),
        up: (f64, f64),
    ) -> HeatMap<'a> {
        let points = Some(Points {
            points,
            classes,
            across,
            up,
        });
        HeatMap { points, ..self }
    }

    /// The picture, `u8[height, width, 3]`.
    ///
    /// # Errors
    /// [`HeatError::Shape`], [`HeatError::Points`] and [`HeatError::Array`].
    pub fn picture(&self) -> Result<Array, HeatError> {
        let (rows, columns) = self.sizes()?;
        let colours = self.colours();
        let (height, width) = (
            rows.saturating_mul(self.scale),
            columns.saturating_mul(self.scale),
        );
        let mut picture = Array::zeros(DType::U8, &[height, width, 3])?;
        let bytes = picture.bytes_mut();
        for (y, line) in bytes.chunks_exact_mut(width * 3).enumerate() {
            let row = y / self.scale;
            let row = if self.flipped { row } else { rows - 1 - row };
            for (x, pixel) in line.chunks_exact_mut(3).enumerate() {
                let value = colours.values[row * columns + x / self.scale];
                pixel.copy_from_slice(&colours.of(value));
            }
        }
        self.draw(bytes, width, height)?;
        Ok(picture)
    }

    /// Writes the picture to a file, in the format of its extension.
    ///
    /// # Errors
    /// Those of [`HeatMap::picture`], and [`HeatError::Image`].
    pub fn write(&self, path: &Path) -> Result<(), HeatError> {
        Ok(crate::image::write(path, &self.picture()?)?)
    }

    /// Rows and columns, of which there is at least one.
    pub(crate) fn sizes(&self) -> Result<(usize, usize), HeatError> {
        match *self.values.shape() {
            [rows @ (1..), columns @ (1..)] => Ok((rows, columns)),
            _ => Err(HeatError::Shape {
                dtype: self.values.dtype(),
                shape: self.values.shape().to_vec(),
            }),
        }
    }

    /// The values and what colours they have.
    pub(crate) fn colours(&self) -> Colours {
        let values = self.values.to_f64();
        let (least, most) = self.range.unwrap_or_else(|| {
            let finite = || values.iter().copied().filter(|value| value.is_finite());
            (
                finite().fold(f64::INFINITY, f64::min),
                finite().fold(f64::NEG_INFINITY, f64::max),
            )
        });
        Colours {
            values,
            palette: self.palette,
            least,
            most,
        }
    }

    /// The points that are on the map: how far across and down, from 0 to 1, and the class.
    pub(crate) fn places(&self) -> Result<Vec<(f64, f64, usize)>, HeatError> {
        let Some(points) = &self.points else {
            return Ok(Vec::new());
        };
        let (places, classes) = (points.points, points.classes);
        let &[count, 2] = places.shape() else {
            return Err(mismatch(points));
        };
        if classes.shape() != [count] {
            return Err(mismatch(points));
        }
        let along = |value: f64, (from, to): (f64, f64)| (value - from) / (to - from);
        let pairs = places.to_f64();
        let pairs = pairs.chunks_exact(2).zip(classes.to_f64());
        let placed = pairs.map(|(point, class)| {
            let up = along(point[1], points.up);
            let down = if self.flipped { up } else { 1.0 - up };
            let class = (class as i64).rem_euclid(POINTS.len() as i64);
            (along(point[0], points.across), down, class as usize)
        });
        let inside =
            |(x, y, _): &(f64, f64, usize)| (0.0..=1.0).contains(x) && (0.0..=1.0).contains(y);
        Ok(placed.filter(inside).collect())
    }

    fn draw(&self, bytes: &mut [u8], width: usize, height: usize) -> Result<(), HeatError> {
        // A dot is about a hundredth of the picture, with a rim of white.
        let radius = (width.min(height) as f64 / 100.0).max(1.0);
        let rim = radius + (radius / 2.0).max(1.0);
        for (x, y, class) in self.places()? {
            let (x, y) = (x * width as f64, y * height as f64);
            let around = |at: f64, size: usize| {
                let (from, to) = (
                    (at - rim).floor().max(0.0),
                    (at + rim).ceil().min(size as f64),
                );
                from as usize..to as usize
            };
            for row in around(y, height) {
                for column in around(x, width) {
                    let distance = (column as f64 + 0.5 - x).hypot(row as f64 + 0.5 - y);
                    let colour = if distance <= radius {
                        POINTS[class]
                    } else if distance <= rim {
                        [255, 255, 255]
                    } else {
                        continue;
                    };
                    let at = (row * width + column) * 3;
                    bytes[at..at + 3].copy_from_slice(&colour);
                }
            }
        }
        Ok(())
    }
}

/// The values of a map, and what colours they have.
pub(crate) struct Colours {
    pub(crate) values: Vec<f64>,
    palette: Palette,
    least: f64,
    most: f64,
}

impl Colours {
    /// Where a value lies between the least and the most, from 0 to 1; nowhere if it is not a number.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let place = match self.most > self.least {
            true => (value - self.least) / (self.most - self.least),
            // All values are the same.
            false => 0.5,
        };
        (!value.is_nan()).then_some(place.clamp(0.0, 1.0))
    }

    pub(crate) fn of(&self, value: f64) -> [u8; 3] {
        match self.place(value) {
            Some(place) => self.palette.at(place),
            None => NOTHING,
        }
    }

    pub(crate) fn of_class(class: usize) -> [u8; 3] {
        POINTS[class % POINTS.len()]
    }
}

fn mismatch(points: &Points<'_>) -> HeatError {
    HeatError::Points {
        points: points.points.shape().to_vec(),
        classes: points.classes.shape().to_vec(),
    }
}
