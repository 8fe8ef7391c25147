//! Building graphs: what Python says about dimensions, sizes and indices, in the graph's own symbols.

use super::errors;
use super::symbols::{self, PyExpr};
use loopwright_graph::{DimId, GraphBuilder, NodeId};
use loopwright_ops::DType;
use loopwright_symbolic::{Expr, Symbol};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::collections::HashMap;

/// What a symbol's name stands for in an expression.
enum Mode<'a> {
    /// In an index a dimension is where its loop stands; a new name is a new dimension. Those that occur are noted.
    Index(&'a mut Vec<DimId>),
    /// In a size a dimension is its size; a new name is a new size.
    Size,
}

/// Where the Python program stands, for errors about what was said there.
pub(crate) fn place(py: Python<'_>) -> String {
    let found = || -> PyResult<String> {
        let frame = py.import("sys")?.call_method1("_getframe", (0,))?;
        let file: String = frame.getattr("f_code")?.getattr("co_filename")?.extract()?;
        let line: u32 = frame.getattr("f_lineno")?.extract()?;
        let file = file.rsplit(['/', '\\']).next().unwrap_or(&file);
        Ok(format!(" at {file}:{line}"))
    };
    found().unwrap_or_default()
}

/// An expression of Python's in the graph's own symbols.
fn translate(builder: &mut GraphBuilder, given: &PyExpr, mode: &mut Mode<'_>) -> PyResult<Expr> {
    let mut put: HashMap<Symbol, Expr> = HashMap::new();
    for symbol in given
        .order
        .iter()
        .filter(|symbol| given.expr.contains(**symbol))
    {
        let name = symbols::name_of(*symbol);
        let own = match builder
            .find_size(&name)
            .or_else(|| builder.find_static(&name))
        {
            Some(size) => Expr::symbol(size),
            None => match (builder.find_dim(&name), &mut *mode) {
                (Some(dim), Mode::Size) => builder.size_of(dim),
                (None, Mode::Size) => {
                    Expr::symbol(builder.size(&name, None).map_err(errors::graph)?)
                }
                (found, Mode::Index(dims)) => {
                    let dim = match found {
                        Some(dim) => dim,
                        None => builder.dim(&name).map_err(errors::graph)?,
                    };
                    if !dims.contains(&dim) {
                        dims.push(dim);
                    }
                    Expr::symbol(builder.index_symbol(dim))
                }
            },
        };
        put.insert(*symbol, own);
    }
    let expr = given.expr.substitute(&|symbol| put.get(&symbol).cloned());
    expr.map_err(|error| errors::symbolic(&error, error.display(&symbols::name_of).to_string()))
}

/// A graph while it is built, with the place in the Python program for errors.
pub(super) struct Build<'a> {
    pub(super) builder: &'a mut GraphBuilder,
    pub(super) place: String,
}

impl Build<'_> {
    /// A size: an integer, an expression, or the name of a size or a dimension.
    pub(super) fn size(&mut self, given: &Bound<'_, PyAny>) -> PyResult<Expr> {
        if let Ok(name) = given.cast::<PyString>() {
            let named = PyExpr::named(&name.to_string_lossy());
            return translate(self.builder, &named, &mut Mode::Size);
        }
        let operand: symbols::Operand = given.extract()?;
        translate(self.builder, &operand.0, &mut Mode::Size)
    }

    /// An index expression, with the dimensions that occur in it.
    pub(super) fn index(&mut self, given: &PyExpr, dims: &mut Vec<DimId>) -> PyResult<Expr> {
        translate(self.builder, given, &mut Mode::Index(dims))
    }

    /// The value of an expression over sizes and at most one dimension alone.
    pub(super) fn value_of(&mut self, given: &PyExpr) -> PyResult<NodeId> {
        if let Some(symbol) = given.expr.as_symbol()
            && let Some(dim) = self.builder.find_dim(&symbols::name_of(symbol))
        {
            return self.builder.index(dim, DType::I64).map_err(errors::graph);
        }
        let size = translate(self.builder, given, &mut Mode::Size)?;
        self.builder.size_value(size).map_err(errors::graph)
    }

    /// A dimension by its name or symbol; a new one where there is none.
    pub(super) fn dim(&mut self, given: &Bound<'_, PyAny>) -> PyResult<DimId> {
        let name = dim_name(given)?;
        match self.builder.find_dim(&name) {
            Some(dim) => Ok(dim),
            None => self.builder.dim(&name).map_err(errors::graph),
        }
    }

    /// Says a dimension's size.
    pub(super) fn claim(&mut self, dim: DimId, size: Expr, who: &str) {
        let origin = format!("{who}{}", self.place);
        self.builder.set_size(dim, size, origin);
    }

    /// Dimensions, given as names, as pairs with sizes, or as a mapping to sizes.
    pub(super) fn dims(
        &mut self,
        given: Option<&Bound<'_, PyAny>>,
        who: &str,
    ) -> PyResult<Vec<DimId>> {
        let mut dims = Vec::new();
        let Some(given) = given else {
            return Ok(dims);
        };
        let mut add =
            |build: &mut Self, name: &Bound<'_, PyAny>, size: Option<Bound<'_, PyAny>>| {
                let dim = build.dim(name)?;
                if let Some(size) = size.filter(|size| !size.is_none()) {
                    let size = build.size(&size)?;
                    build.claim(dim, size, who);
                }
                dims.push(dim);
                PyResult::Ok(())
            };
        if let Ok(sizes) = given.cast::<PyDict>() {
            for (name, size) in sizes {
                add(self, &name, Some(size))?;
            }
        } else if let Ok(names) = given.cast::<PyString>() {
            let names = names.to_string_lossy().into_owned();
            for name in names.split([' ', ',']).filter(|name| !name.is_empty()) {
                add(self, PyString::new(given.py(), name).as_any(), None)?;
            }
        } else if given.is_instance_of::<PyExpr>() {
            add(self, given, None)?;
        } else {
            for item in given.try_iter()? {
                let item = item?;
                match item.cast::<PyTuple>() {
                    Ok(pair) if pair.len() == 2 => {
                        add(self, &pair.get_item(0)?, Some(pair.get_item(1)?))?
                    }
                    _ => add(self, &item, None)?,
                }
            }
        }
        Ok(dims)
    }

    /// A name that no size, dimension or node has: the old one with primes.
    pub(super) fn free_name(&self, old: &str) -> String {
        let mut name = format!("{old}'");
        while self.builder.find_dim(&name).is_some()
            || self.builder.find(&name).is_some()
            || self.builder.find_size(&name).is_some()
        {
            name.push('\'');
        }
        name
    }
}

pub(super) fn dim_name(given: &Bound<'_, PyAny>) -> PyResult<String> {
    match given.cast::<PyString>() {
        Ok(name) => Ok(name.to_string_lossy().into_owned()),
        Err(_) => symbols::symbol_of(given).map(symbols::name_of),
    }
}

/// What is said of dimensions as something that runs no code of Python's: while a graph is built, none may look at it.
pub(super) fn settled<'py>(
    given: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(given) = given else {
        return Ok(None);
    };
    let plain = given.is_instance_of::<PyDict>()
        || given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyExpr>();
    match plain {
        true => Ok(Some(given.clone())),
        false => {
            let items: Vec<Bound<'py, PyAny>> = given.try_iter()?.collect::<PyResult<_>>()?;
            Ok(Some(PyTuple::new(given.py(), items)?.into_any()))
        }
    }
}
