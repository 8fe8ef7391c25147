//! Views of values: everything that only moves elements.

use super::build::{Build, settled};
use super::errors;
use super::graph::PyGraph;
use super::symbols::{Operand, PyExpr};
use super::value::PyValue;
use loopwright_graph::{DimId, NodeId, View};
use loopwright_ops::{DType, Op, Scalar};
use loopwright_symbolic::Expr;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// Views of a value along one dimension, all others as they are.
fn replace_dim(
    build: &mut Build<'_>,
    node: NodeId,
    from: DimId,
    to: DimId,
    index: Expr,
    outside: Option<Scalar>,
) -> PyResult<NodeId> {
    let old = build.builder.node(node).dims.to_vec();
    let dims: Vec<DimId> = old
        .iter()
        .map(|dim| if *dim == from { to } else { *dim })
        .collect();
    let map = old.iter().map(|dim| match *dim == from {
        true => index.clone(),
        false => Expr::symbol(build.builder.index_symbol(*dim)),
    });
    let view = View {
        map: map.collect(),
        constraints: Vec::new(),
        outside,
    };
    build.builder.view(node, &dims, view).map_err(errors::graph)
}

/// Arrays behind each other along a new dimension.
pub(super) fn concat(
    graph: &Bound<'_, PyGraph>,
    values: &[Bound<'_, PyAny>],
    along: &[Bound<'_, PyAny>],
    to: &Bound<'_, PyAny>,
) -> PyResult<PyValue> {
    if values.is_empty() || values.len() != along.len() {
        return Err(PyValueError::new_err(
            "`concat` takes values and the dimension of each that it runs along, or one for all",
        ));
    }
    let mut nodes = Vec::with_capacity(values.len());
    for value in values {
        let value = value.cast::<PyValue>()?;
        value.get().check(graph.get(), graph.py())?;
        nodes.push(value.get().node);
    }
    let node = graph.get().build(graph.py(), |build| {
        let to = build.dim(to)?;
        let here = Expr::symbol(build.builder.index_symbol(to));
        let mut offset = Expr::constant(0);
        let mut parts = Vec::with_capacity(nodes.len());
        for (node, along) in nodes.iter().zip(along) {
            let dim = build.dim(along)?;
            let index = here.sub(&offset).map_err(too_large)?;
            let zero = Scalar::zero(build.builder.node(*node).dtype);
            if !build.builder.node(*node).dims.contains(&dim) {
                return Err(PyValueError::new_err(format!(
                    "an operand of `concat` has no dimension `{}`; its dimensions are [{}]",
                    build.builder.dim_name(dim),
                    build.builder.dim_list(&build.builder.node(*node).dims)
                )));
            }
            let part = replace_dim(build, *node, dim, to, index, Some(zero))?;
            offset = offset.add(&build.builder.size_of(dim)).map_err(too_large)?;
            parts.push((part, offset.clone()));
        }
        build.claim(to, offset, "the operands of `concat`");
        let mut dims = build.builder.node(parts[0].0).dims.to_vec();
        let mut rest = parts.into_iter().rev();
        let Some((mut result, _)) = rest.next() else {
            return Err(PyValueError::new_err("`concat` has at least one operand"));
        };
        for (part, end) in rest {
            let builder = &mut *build.builder;
            let index = builder.index(to, DType::I64).map_err(errors::graph)?;
            let end = builder.size_value(end).map_err(errors::graph)?;
            let before = builder.map(Op::Lt, &[index, end]).map_err(errors::graph)?;
            result = builder
                .map(Op::Select, &[before, part, result])
                .map_err(errors::graph)?;
        }
        for dim in build.builder.node(result).dims.clone() {
            if !dims.contains(&dim) {
                dims.push(dim);
            }
        }
        match build.builder.node(result).dims.as_slice() == dims {
            true => Ok(result),
            false => build.builder.layout(result, &dims).map_err(errors::graph),
        }
    })?;
    Ok(PyValue::new(graph, node))
}

pub(super) fn too_large(error: loopwright_symbolic::Error) -> PyErr {
    errors::symbolic(&error, error.to_string())
}

/// The dimension that a view gives a new name.
fn fresh(build: &mut Build<'_>, dim: DimId, to: Option<&Bound<'_, PyAny>>) -> PyResult<DimId> {
    match to {
        Some(to) => build.dim(to),
        None => {
            let name = build.free_name(build.builder.dim_name(dim));
            build.builder.dim(&name).map_err(errors::graph)
        }
    }
}

impl PyValue {
    fn view_at(
        &self,
        items: &[Bound<'_, PyAny>],
        outside: Option<Scalar>,
        conditions: &[PyExpr],
        dims: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        let looked_up = items
            .iter()
            .position(|item| item.is_instance_of::<PyValue>());
        if let Some(index) = looked_up.and_then(|at| items[at].cast::<PyValue>().ok()) {
            index.get().check(self.graph.bind(py).get(), py)?;
        }
        let dims = settled(dims)?;
        self.built(py, |build| {
            let said = build.dims(dims.as_ref(), "a view")?;
            let own = build.builder.node(self.node).dims.to_vec();
            let mut found = Vec::new();
            let mut map = Vec::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                if looked_up == Some(at) {
                    let Some(axis) = own.get(at) else { break };
                    map.push(Expr::symbol(build.builder.index_symbol(*axis)));
                    found.push(*axis);
                    continue;
                }
                let expr = match item.cast::<PyString>() {
                    Ok(name) => PyExpr::named(&name.to_string_lossy()),
                    Err(_) if item.is_instance_of::<PyValue>() => {
                        return Err(PyTypeError::new_err("one dimension is looked up at a time"));
                    }
                    Err(_) => item.extract::<Operand>()?.0,
                };
                map.push(build.index(&expr, &mut found)?);
            }
            let mut constraints = Vec::new();
            for condition in conditions {
                constraints.push(build.index(condition, &mut found)?);
            }
            let over = match dims {
                Some(_) => said,
                None => found,
            };
            let view = View {
                map: map.into_iter().collect(),
                constraints,
                outside,
            };
            let plain = looked_up.is_some() && over == own;
            let node = match plain {
                true => self.node,
                false => build
                    .builder
                    .view(self.node, &over, view)
                    .map_err(errors::graph)?,
            };
            let Some(at) = looked_up else {
                return Ok(node);
            };
            let index = items[at].cast::<PyValue>()?.get();
            build
                .builder
                .gather(node, index.node, own[at], outside)
                .map_err(errors::graph)
        })
    }
}

#[pymethods]
impl PyValue {
    /// A view: for each dimension, an index expression over the dimensions of the result, which come in the order in
    /// which they occur, or as `dims` says (names, or a mapping to sizes). `outside` is the value where an index leaves
    /// the array or one of the conditions `where` does not hold; without it, it never does, which is checked. An index
    /// that is a value looks its elements up.
    #[pyo3(signature = (*index, outside=None, r#where=None, dims=None))]
    fn at(
        &self,
        index: &Bound<'_, PyTuple>,
        outside: Option<&Bound<'_, PyAny>>,
        r#where: Option<&Bound<'_, PyAny>>,
        dims: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        let mut conditions = Vec::new();
        if let Some(given) = r#where {
            match given.cast::<PyExpr>() {
                Ok(one) => conditions.push(one.get().clone()),
                Err(_) => {
                    for item in given.try_iter()? {
                        conditions.push(item?.extract::<Operand>()?.0);
                    }
                }
            }
        }
        let items: Vec<Bound<'_, PyAny>> = index.iter().collect();
        let outside = self.outside(outside, py)?;
        self.view_at(&items, outside, &conditions, dims, py)
    }

    /// A view that never leaves the array: `x[2*o + k]`, `x[i, 0]`.
    fn __getitem__(&self, index: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<PyValue> {
        let items: Vec<Bound<'_, PyAny>> = match index.cast::<PyTuple>() {
            Ok(items) => items.iter().collect(),
            Err(_) => vec![index.clone()],
        };
        self.view_at(&items, None, &[], None, py)
    }

    /// The dimensions in another order; those it does not have repeat it.
    #[pyo3(signature = (*dims))]
    fn transpose(&self, dims: &Bound<'_, PyTuple>, py: Python<'_>) -> PyResult<PyValue> {
        let items = dims.iter().map(|item| settled(Some(&item)));
        let items: Vec<Option<Bound<'_, PyAny>>> = items.collect::<PyResult<_>>()?;
        self.built(py, |build| {
            let mut order = Vec::new();
            for item in &items {
                order.extend(build.dims(item.as_ref(), "a layout")?);
            }
            build
                .builder
                .layout(self.node, &order)
                .map_err(errors::graph)
        })
    }

    /// The value with more around it along a dimension, which gets a new name. `value` stands there.
    #[pyo3(signature = (dim, before, after, value, to=None))]
    fn pad(
        &self,
        dim: &Bound<'_, PyAny>,
        before: i64,
        after: i64,
        value: &Bound<'_, PyAny>,
        to: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        let (dim, outside) = (self.one(dim)?, self.outside(Some(value), py)?);
        self.built(py, |build| {
            let to = fresh(build, dim, to)?;
            let index = build.builder.index_symbol(to);
            let index = Expr::symbol(index)
                .sub(&Expr::constant(before))
                .map_err(too_large)?;
            let size = build
                .builder
                .size_of(dim)
                .add(&Expr::constant(before.saturating_add(after)));
            build.claim(to, size.map_err(too_large)?, "a pad");
            replace_dim(build, self.node, dim, to, index, outside)
        })
    }

    /// Every `step`th element from `start` up to `stop`, along a dimension, which gets a new name.
    #[pyo3(signature = (dim, start, stop, step=1, to=None))]
    fn slice(
        &self,
        dim: &Bound<'_, PyAny>,
        start: Operand,
        stop: Operand,
        step: i64,
        to: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        let dim = self.one(dim)?;
        if step < 1 {
            return Err(PyValueError::new_err(
                "a slice has a step of 1 or more; `flip` turns",
            ));
        }
        self.built(py, |build| {
            let to = fresh(build, dim, to)?;
            let mut none = Vec::new();
            let (start, stop) = (
                build.index(&start.0, &mut none)?,
                build.index(&stop.0, &mut none)?,
            );
            let here = Expr::symbol(build.builder.index_symbol(to));
            let index = here
                .mul(&Expr::constant(step))
                .and_then(|index| index.add(&start));
            let size = stop
                .sub(&start)
                .and_then(|length| length.ceil_div(&Expr::constant(step)));
            build.claim(to, size.map_err(too_large)?, "a slice");
            replace_dim(build, self.node, dim, to, index.map_err(too_large)?, None)
        })
    }

    /// The elements in the opposite order along dimensions.
    #[pyo3(signature = (*dims))]
    fn flip(&self, dims: &Bound<'_, PyTuple>, py: Python<'_>) -> PyResult<PyValue> {
        let over = self.over(dims)?;
        self.built(py, |build| {
            let mut node = self.node;
            for dim in over {
                let here = Expr::symbol(build.builder.index_symbol(dim));
                let last = build.builder.size_of(dim).sub(&Expr::constant(1));
                let index = last.and_then(|last| last.sub(&here)).map_err(too_large)?;
                node = replace_dim(build, node, dim, dim, index, None)?;
            }
            Ok(node)
        })
    }

    /// Several dimensions as one, the last of them the fastest.
    #[pyo3(signature = (*dims, to))]
    fn flatten(
        &self,
        dims: &Bound<'_, PyTuple>,
        to: &Bound<'_, PyAny>,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        let over = self.over(dims)?;
        if over.is_empty() {
            return Err(PyValueError::new_err(
                "`flatten` needs the dimensions that become one",
            ));
        }
        self.built(py, |build| {
            let to = build.dim(to)?;
            let own = build.builder.node(self.node).dims.to_vec();
            let mut rest = Expr::symbol(build.builder.index_symbol(to));
            let mut size = Expr::constant(1);
            let mut indices = Vec::new();
            for (at, dim) in over.iter().enumerate().rev() {
                let extent = build.builder.size_of(*dim);
                size = size.mul(&extent).map_err(too_large)?;
                let index = match at {
                    0 => rest.clone(),
                    _ => rest.modulo(&extent).map_err(too_large)?,
                };
                rest = rest.floor_div(&extent).map_err(too_large)?;
                indices.push((*dim, index));
            }
            build.claim(to, size, "a flattened value");
            let mut result = Vec::new();
            for dim in &own {
                match over.contains(dim) {
                    false => result.push(*dim),
                    true if !result.contains(&to) => result.push(to),
                    true => {}
                }
            }
            let map = own.iter().map(|dim| {
                let index = indices.iter().find(|(found, _)| found == dim);
                index.map_or_else(
                    || Expr::symbol(build.builder.index_symbol(*dim)),
                    |(_, index)| index.clone(),
                )
            });
            let view = View {
                map: map.collect(),
                constraints: Vec::new(),
                outside: None,
            };
            build
                .builder
                .view(self.node, &result, view)
                .map_err(errors::graph)
        })
    }

    /// One dimension as two: blocks of `size` elements. What does not fill a block is left out.
    fn split(
        &self,
        dim: &Bound<'_, PyAny>,
        outer: &Bound<'_, PyAny>,
        inner: &Bound<'_, PyAny>,
        size: i64,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        let dim = self.one(dim)?;
        if size < 1 {
            return Err(PyValueError::new_err("a block has 1 element or more"));
        }
        self.built(py, |build| {
            let (outer, inner) = (build.dim(outer)?, build.dim(inner)?);
            let block = Expr::constant(size);
            build.claim(inner, block.clone(), "a split");
            let blocks = build
                .builder
                .size_of(dim)
                .floor_div(&block)
                .map_err(too_large)?;
            build.claim(outer, blocks, "a split");
            let (at, inside) = (
                build.builder.index_symbol(outer),
                build.builder.index_symbol(inner),
            );
            let index = Expr::symbol(at)
                .mul(&block)
                .and_then(|at| at.add(&Expr::symbol(inside)));
            let index = index.map_err(too_large)?;
            let own = build.builder.node(self.node).dims.to_vec();
            let mut result = Vec::new();
            let mut map = Vec::new();
            for other in own {
                if other == dim {
                    result.extend([outer, inner]);
                    map.push(index.clone());
                } else {
                    result.push(other);
                    map.push(Expr::symbol(build.builder.index_symbol(other)));
                }
            }
            let view = View {
                map: map.into_iter().collect(),
                constraints: Vec::new(),
                outside: None,
            };
            build
                .builder
                .view(self.node, &result, view)
                .map_err(errors::graph)
        })
    }

    /// Windows along a dimension: `places` and `taps` stand for it, at `stride*place + dilation*tap - before`. With
    /// `outside` they may leave the array; then the size of `places` must be said somewhere.
    #[pyo3(signature = (dim, places, taps, stride=1, dilation=1, before=0, outside=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the words of a convolution, all but three by name"
    )]
    fn window(
        &self,
        dim: &Bound<'_, PyAny>,
        places: &Bound<'_, PyAny>,
        taps: &Bound<'_, PyAny>,
        stride: i64,
        dilation: i64,
        before: i64,
        outside: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyValue> {
        let (dim, outside) = (self.one(dim)?, self.outside(outside, py)?);
        self.built(py, |build| {
            let (places, taps) = (build.dim(places)?, build.dim(taps)?);
            let symbol = |dim| Expr::symbol(build.builder.index_symbol(dim));
            let place = symbol(places).mul(&Expr::constant(stride));
            let tap = symbol(taps).mul(&Expr::constant(dilation));
            let index = place.and_then(|place| place.add(&tap?)?.sub(&Expr::constant(before)));
            let index = index.map_err(too_large)?;
            let own = build.builder.node(self.node).dims.to_vec();
            let mut result = Vec::new();
            for other in &own {
                match *other == dim {
                    true => result.extend([places, taps]),
                    false => result.push(*other),
                }
            }
            let map = own.iter().map(|other| match *other == dim {
                true => index.clone(),
                false => Expr::symbol(build.builder.index_symbol(*other)),
            });
            let view = View {
                map: map.collect(),
                constraints: Vec::new(),
                outside,
            };
            build
                .builder
                .view(self.node, &result, view)
                .map_err(errors::graph)
        })
    }
}
