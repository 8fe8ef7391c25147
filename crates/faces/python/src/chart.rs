//! Curves to look at.

use loopwright_formats::chart::{LineChart, TerminalOptions, sparkline};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Curves over a common axis: training curves, say. A notebook shows it as a picture, `print` as text.
///
/// >>> from loopwright import Chart
/// >>> chart = Chart("loss", across="step").values("train", [2.0, 1.0, 0.5])
/// >>> chart.svg().startswith("<svg")
/// True
#[pyclass(name = "Chart", module = "loopwright", frozen)]
pub(crate) struct PyChart(LineChart);

#[pymethods]
impl PyChart {
    /// A chart without curves, with what the axes count.
    #[new]
    #[pyo3(signature = (title="", *, across="", up="", logarithmic=false))]
    fn new(title: &str, across: &str, up: &str, logarithmic: bool) -> PyChart {
        let chart = LineChart::new(title).axes(across, up);
        PyChart(match logarithmic {
            true => chart.logarithmic(),
            false => chart,
        })
    }

    /// The same with a curve through these points.
    fn points(&self, name: &str, points: Vec<(f64, f64)>) -> PyChart {
        PyChart(self.0.clone().points(name, &points))
    }

    /// The same with a curve through these values, one step apart, from 0 on.
    fn values(&self, name: &str, values: Vec<f64>) -> PyChart {
        PyChart(self.0.clone().values(name, &values))
    }

    /// The chart as an SVG picture.
    fn svg(&self) -> String {
        self.0.svg()
    }

    /// The chart for a terminal.
    #[pyo3(signature = (width=80, height=12, *, colour=false, ascii=false))]
    fn terminal(&self, width: usize, height: usize, colour: bool, ascii: bool) -> String {
        let options = TerminalOptions {
            width,
            height,
            colour,
            ascii,
        };
        self.0.terminal(&options)
    }

    /// Writes the picture to a file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let svg = self.0.svg();
        Ok(py.detach(|| loopwright_files::write(&path, svg.as_bytes()))?)
    }

    fn _repr_svg_(&self) -> String {
        self.0.svg()
    }

    fn __str__(&self) -> String {
        self.0.terminal(&TerminalOptions::default())
    }
}

/// A curve in one line of text.
///
/// >>> import loopwright as lw
/// >>> lw.sparkline([1.0, 2.0, 4.0, 8.0], 4)
/// '▁▂▄█'
#[pyfunction]
#[pyo3(name = "sparkline", signature = (values, width=40))]
fn py_sparkline(values: Vec<f64>, width: usize) -> String {
    sparkline(&values, width)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyChart>()?;
    module.add_function(wrap_pyfunction!(py_sparkline, module)?)
}
