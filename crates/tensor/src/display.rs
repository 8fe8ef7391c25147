//! Tensors for people.

use crate::node::Tensor;
use loopwright_chart::Boxed;
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
