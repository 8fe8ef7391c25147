//! Tensors for people.

use crate::error::TensorError;
use crate::node::Tensor;
use loopwright_formats::chart::{Boxed, LineChart, sparkline};
use std::fmt;

/// The value as an aligned box, shortened where it is long; computed now if it is not there yet. A tensor that
/// cannot be shows the reason.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.array() {
            Ok(array) => {
                let name =
                    |axis: &crate::shape::Axis| axis.name.as_deref().unwrap_or("").to_owned();
                let names: Vec<String> = self.shape().axes().iter().map(name).collect();
                write!(f, "{}", Boxed::new(&array).names(&names))
            }
            Err(error) => write!(f, "{self:?}: {error}"),
        }
    }
}

impl Tensor {
    /// The elements as a curve in one line of text, so many columns wide; several axes are read row by row.
    ///
    /// ```
    /// # use loopwright_x86 as _;
    /// use loopwright_tensor::Tensor;
    ///
    /// let wave = Tensor::linspace(0.0, 6.3, 40).sin();
    /// assert_eq!(wave.sparkline(10)?, "▅▇█▇▆▃▂▁▂▄");
    /// # Ok::<(), loopwright_tensor::TensorError>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong with the tensor.
    #[track_caller]
    pub fn sparkline(&self, width: usize) -> Result<String, TensorError> {
        Ok(sparkline(&self.to_f64()?, width))
    }

    /// A chart of the tensor: one curve along the only axis, or one for each row. It is drawn to a terminal with
    /// [`LineChart::terminal`] and to a picture with [`LineChart::svg`].
    ///
    /// # Errors
    /// What is wrong with the tensor, and [`ErrorKind::Shape`](crate::ErrorKind::Shape) unless it has one axis or two.
    #[track_caller]
    pub fn plot(&self, title: &str) -> Result<LineChart, TensorError> {
        let values = self.to_f64()?;
        let sizes = self.sizes()?;
        let name = |axis: usize| self.shape().axes()[axis].name.as_deref().unwrap_or("");
        match sizes[..] {
            [_] => Ok(LineChart::new(title).values("", &values).axes(name(0), "")),
            [rows, columns] => {
                let mut chart = LineChart::new(title).axes(name(1), "");
                for row in 0..rows {
                    let curve = &values[row * columns..(row + 1) * columns];
                    chart = chart.values(format!("{} {row}", name(0)).trim(), curve);
                }
                Ok(chart)
            }
            _ => Err(self.refusal("plot", "a curve has one axis, and several curves have two")),
        }
    }
}
