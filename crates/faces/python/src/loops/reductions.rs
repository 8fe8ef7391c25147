//! Reductions of values, and what else looks at many elements for one: scans, sorts, gathers.

use super::errors;
use super::memory::dtype_of;
use super::value::PyValue;
use super::views::too_large;
use loopwright_ops::{Op, ReduceOp};
use loopwright_symbolic::Expr;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

fn reduction(name: &str) -> PyResult<ReduceOp> {
    ReduceOp::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = ReduceOp::ALL.iter().map(|op| op.name()).collect();
        PyValueError::new_err(format!(
            "there is no reduction `{name}`; there are {}",
            known.join(", ")
        ))
    })
}

impl PyValue {
    fn reduce(
        &self,
        op: ReduceOp,
        dims: &Bound<'_, PyTuple>,
        acc: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        let acc = acc.map(dtype_of).transpose()?;
        let over = self.over(dims)?;
        let node = self.graph.bind(py).get().step(|builder| {
            let over = match over.is_empty() {
                true => builder.node(self.node).dims.to_vec(),
                false => over,
            };
            builder.reduce(op, self.node, &over, acc)
        })?;
        Ok(self.with(py, node))
    }
}

#[pymethods]
impl PyValue {
    /// The sum over dimensions; over all of them where none is named. `acc` is the dtype of the running value.
    #[pyo3(signature = (*dims, acc=None))]
    fn sum(
        &self,
        dims: &Bound<'_, PyTuple>,
        acc: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        self.reduce(ReduceOp::Sum, dims, acc, py)
    }

    /// The product over dimensions.
    #[pyo3(signature = (*dims, acc=None))]
    fn prod(
        &self,
        dims: &Bound<'_, PyTuple>,
        acc: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        self.reduce(ReduceOp::Prod, dims, acc, py)
    }

    /// The largest over dimensions; `ops.max(a, b)` is the larger of two values.
    #[pyo3(signature = (*dims))]
    fn max(&self, dims: &Bound<'_, PyTuple>, py: Python<'_>) -> PyResult<PyValue> {
        self.reduce(ReduceOp::Max, dims, None, py)
    }

    /// The smallest over dimensions; `ops.min(a, b)` is the smaller of two values.
    #[pyo3(signature = (*dims))]
    fn min(&self, dims: &Bound<'_, PyTuple>, py: Python<'_>) -> PyResult<PyValue> {
        self.reduce(ReduceOp::Min, dims, None, py)
    }

    /// Whether any is true.
    #[pyo3(signature = (*dims))]
    fn any(&self, dims: &Bound<'_, PyTuple>, py: Python<'_>) -> PyResult<PyValue> {
        self.reduce(ReduceOp::Any, dims, None, py)
    }

    /// Whether all are true.
    #[pyo3(signature = (*dims))]
    fn all(&self, dims: &Bound<'_, PyTuple>, py: Python<'_>) -> PyResult<PyValue> {
        self.reduce(ReduceOp::All, dims, None, py)
    }

    /// The mean over dimensions of floats.
    #[pyo3(signature = (*dims))]
    fn mean(&self, dims: &Bound<'_, PyTuple>, py: Python<'_>) -> PyResult<PyValue> {
        let over = self.over(dims)?;
        self.built(py, |build| {
            let builder = &mut *build.builder;
            let dtype = builder.node(self.node).dtype;
            if !dtype.is_float() {
                return Err(PyTypeError::new_err(format!(
                    "`mean` needs a float dtype, not {dtype}"
                )));
            }
            let over = match over.is_empty() {
                true => builder.node(self.node).dims.to_vec(),
                false => over,
            };
            let mut count = Expr::constant(1);
            for dim in &over {
                count = count.mul(&builder.size_of(*dim)).map_err(too_large)?;
            }
            let sum = builder
                .reduce(ReduceOp::Sum, self.node, &over, None)
                .map_err(errors::graph)?;
            let count = builder.size_value(count).map_err(errors::graph)?;
            let count = builder.cast(count, dtype);
            builder.map(Op::Div, &[sum, count]).map_err(errors::graph)
        })
    }

    /// The first index of the largest element along a dimension.
    fn argmax(&self, dim: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<PyValue> {
        let dim = self.one(dim)?;
        self.built(py, |build| {
            build
                .builder
                .arg_reduce(true, self.node, dim)
                .map_err(errors::graph)
        })
    }

    /// The first index of the smallest element along a dimension.
    fn argmin(&self, dim: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<PyValue> {
        let dim = self.one(dim)?;
        self.built(py, |build| {
            build
                .builder
                .arg_reduce(false, self.node, dim)
                .map_err(errors::graph)
        })
    }

    /// The running reduction along a dimension: `x.scan("sum", "i")`.
    #[pyo3(signature = (op, dim, exclusive=false, reverse=false, acc=None))]
    fn scan(
        &self,
        op: &str,
        dim: &Bound<'_, PyAny>,
        exclusive: bool,
        reverse: bool,
        acc: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        let reduction = reduction(op)?;
        let (dim, acc) = (self.one(dim)?, acc.map(dtype_of).transpose()?);
        self.built(py, |build| {
            let made = build
                .builder
                .scan(reduction, self.node, dim, acc, exclusive, reverse);
            made.map_err(errors::graph)
        })
    }

    /// The elements in order along a dimension.
    #[pyo3(signature = (dim, descending=false))]
    fn sort(&self, dim: &Bound<'_, PyAny>, descending: bool, py: Python<'_>) -> PyResult<PyValue> {
        let dim = self.one(dim)?;
        self.built(py, |build| {
            build
                .builder
                .sort(self.node, dim, descending)
                .map_err(errors::graph)
        })
    }

    /// The indices that sort along a dimension.
    #[pyo3(signature = (dim, descending=false))]
    fn argsort(
        &self,
        dim: &Bound<'_, PyAny>,
        descending: bool,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        let dim = self.one(dim)?;
        self.built(py, |build| {
            build
                .builder
                .arg_sort(self.node, dim, descending)
                .map_err(errors::graph)
        })
    }

    /// The elements at `index` along a dimension; `outside` (zero) stands where an index is out of range.
    #[pyo3(signature = (dim, index, outside=None))]
    fn gather(
        &self,
        dim: &Bound<'_, PyAny>,
        index: &Bound<'_, PyValue>,
        outside: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        let (dim, outside) = (self.one(dim)?, self.outside(outside, py)?);
        index.get().check(self.graph.bind(py).get(), py)?;
        let index = index.get().node;
        self.built(py, |build| {
            build
                .builder
                .gather(self.node, index, dim, outside)
                .map_err(errors::graph)
        })
    }

    /// The value with `updates` put in at `index` along a dimension, or combined with what is there (`"sum"`, ..).
    #[pyo3(signature = (dim, index, updates, combine=None))]
    fn scatter(
        &self,
        dim: &Bound<'_, PyAny>,
        index: &Bound<'_, PyValue>,
        updates: &Bound<'_, PyValue>,
        combine: Option<&str>,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        let dim = self.one(dim)?;
        let combine = combine.map(reduction).transpose()?;
        for given in [index, updates] {
            given.get().check(self.graph.bind(py).get(), py)?;
        }
        let (index, updates) = (index.get().node, updates.get().node);
        self.built(py, |build| {
            build
                .builder
                .scatter(self.node, index, updates, dim, combine)
                .map_err(errors::graph)
        })
    }
}
