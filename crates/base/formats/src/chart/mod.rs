//! What people look at: arrays as aligned boxes, curves in the terminal and as SVG, heat maps as pictures.
//!
//! ```
//! use loopwright_formats::chart::Boxed;
//! use loopwright_array::Array;
//! use loopwright_ops::DType;
//!
//! let array = Array::from_f64(DType::F32, &[2, 3], &[1.0, -0.25, 3.5, 10.0, f64::NAN, 0.0])?;
//! assert_eq!(Boxed::new(&array).names(&["batch", "feature"]).to_string(), "\
//! f32[batch 2, feature 3]
//! ┌─────────────────────┐
//! │  1.00  -0.25   3.50 │
//! │ 10.00    nan   0.00 │
//! └─────────────────────┘");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```
//! use loopwright_formats::chart::{LineChart, TerminalOptions, sparkline};
//!
//! let loss: Vec<f64> = (0..100).map(|step| 2.0 * (-f64::from(step) / 20.0).exp()).collect();
//! let chart = LineChart::new("loss").values("train", &loss).axes("step", "");
//! println!("{}", chart.terminal(&TerminalOptions::default()));
//! let svg = chart.svg();
//! assert!(svg.starts_with("<svg"));
//! assert_eq!(sparkline(&loss, 8), "█▅▃▂▁▁▁▁");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`Boxed`] prints an array of any dtype and number of dimensions, shortened where it is long, with the names and sizes of its
//!   dimensions.
//! - [`LineChart`] draws curves, to a terminal ([`LineChart::terminal`]: with dots of braille, in colour or not, or in plain ASCII)
//!   or to a file ([`LineChart::svg`]).
//! - [`HeatMap`] turns an array into a picture, with points on it where there are some: what a decision boundary looks like. The same
//!   in the terminal is [`HeatMap::terminal`].
//! - [`sparkline`] is a curve in one line of text, for progress bars.
//! - [`Svg`] is what all SVG pictures of the project are drawn with.

mod boxes;
mod canvas;
mod heat;
mod heat_terminal;
mod line;
mod number;
mod scale;
mod spark;
mod svg;
mod svg_chart;
mod terminal;

pub use boxes::{BoxOptions, Boxed};
pub use heat::{HeatError, HeatMap, Palette};
pub use line::LineChart;
pub use spark::{sparkline, sparkline_ascii};
pub use svg::{COLOURS, Svg};
pub use terminal::TerminalOptions;
