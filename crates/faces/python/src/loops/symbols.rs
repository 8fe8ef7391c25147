//! Index expressions: exact 64-bit integers over symbols.
//!
//! In Python a symbol is its name: `symbols("i")` is the same wherever it is made. A graph has symbols of its
//! own; expressions are taken from one to the other by name.

use super::errors;
use crate::interrupts::Attempt;
use loopwright_arena::TiVec;
use loopwright_symbolic::{
    Bounds, Cmp, Equation, Error, Expr, Range, Symbol, affine, differentiate, differentiate_within,
    intercept, isolate, unify,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{LazyLock, Mutex, PoisonError};

#[derive(Default)]
struct Names {
    names: TiVec<Symbol, String>,
    numbers: HashMap<String, Symbol>,
}

static NAMES: LazyLock<Mutex<Names>> = LazyLock::new(Mutex::default);

/// The symbol of a name.
pub(super) fn symbol(name: &str) -> Symbol {
    let mut known = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(symbol) = known.numbers.get(name) {
        return *symbol;
    }
    let symbol = known.names.push_and_get_key(name.to_owned());
    known.numbers.insert(name.to_owned(), symbol);
    symbol
}

/// The name of a symbol.
pub(super) fn name_of(symbol: Symbol) -> String {
    let known = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let name = known.names.get(symbol);
    name.cloned().unwrap_or_else(|| format!("s{}", symbol.0))
}

fn failed(error: Error) -> PyErr {
    let message = error.display(&name_of).to_string();
    errors::symbolic(&error, message)
}

/// A 64-bit integer expression over symbols: `+ - * // %`, comparisons, `min` and `max`. It is kept in a canonical
/// form, so that equal expressions are mostly equal as they stand.
///
/// `==` and `!=` ask whether two expressions are the same and answer at once; `eq` and `ne` make expressions, as `<`,
/// `<=`, `>` and `>=` do.
#[pyclass(name = "Expr", module = "loopwright.loops", frozen, from_py_object)]
#[derive(Clone)]
pub(super) struct PyExpr {
    pub(super) expr: Expr,
    /// Its symbols in the order in which they were written, which decides the order of a view's dimensions.
    pub(super) order: Vec<Symbol>,
}

/// What can stand beside an expression: another one, or an integer.
pub(super) struct Operand(pub(super) PyExpr);

impl<'py> FromPyObject<'_, 'py> for Operand {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<Operand> {
        if let Ok(expr) = obj.cast::<PyExpr>() {
            return Ok(Operand(expr.get().clone()));
        }
        match obj.extract::<i64>().attempt(obj.py())? {
            Ok(value) => Ok(Operand(PyExpr::constant(value))),
            Err(_) => Err(PyTypeError::new_err(format!(
                "{} is no index expression: symbols, integers and what is made of them are",
                obj.repr()?
            ))),
        }
    }
}

/// A symbol, given as an expression that is nothing but one, or by its name.
pub(super) fn symbol_of(obj: &Bound<'_, PyAny>) -> PyResult<Symbol> {
    if let Ok(name) = obj.cast::<PyString>() {
        return Ok(symbol(&name.to_string_lossy()));
    }
    let expr = obj.cast::<PyExpr>().ok().map(|expr| expr.get().clone());
    expr.and_then(|expr| expr.expr.as_symbol()).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "a symbol or its name is needed, not {}",
            obj.str()
                .or_later(obj.py())
                .map_or_else(String::new, |text| text.to_string())
        ))
    })
}

/// Ranges by symbol: `{i: 8}` is 0 to 7, `{i: (2, 5)}` is 2 to 5, and `None` for an end is no bound.
fn bounds_of(given: Option<&Bound<'_, PyDict>>) -> PyResult<Bounds> {
    let mut bounds = Bounds::new();
    for (key, value) in given.into_iter().flatten() {
        let py = value.py();
        let range = match value.extract::<(Option<i64>, Option<i64>)>().attempt(py)? {
            Ok((lo, hi)) => Range { lo, hi },
            Err(_) => Range::extent(value.extract::<i64>().attempt(py)?.map_err(|_| {
                PyTypeError::new_err(
                    "a bound is an extent, or a pair of the least and the largest value",
                )
            })?),
        };
        bounds.insert(symbol_of(&key)?, range);
    }
    Ok(bounds)
}

impl PyExpr {
    pub(super) fn constant(value: i64) -> PyExpr {
        PyExpr::of(Expr::constant(value))
    }

    pub(super) fn named(name: &str) -> PyExpr {
        PyExpr::of(Expr::symbol(symbol(name)))
    }

    /// An expression whose symbols were written in no particular order.
    pub(super) fn of(expr: Expr) -> PyExpr {
        PyExpr {
            order: expr.symbols().into_iter().collect(),
            expr,
        }
    }

    fn join(&self, other: &PyExpr, expr: Result<Expr, Error>) -> PyResult<PyExpr> {
        let expr = expr.map_err(failed)?;
        let mut order = self.order.clone();
        order.extend(
            other
                .order
                .iter()
                .filter(|symbol| !self.order.contains(symbol)),
        );
        Ok(PyExpr { expr, order })
    }

    fn compared(&self, cmp: Cmp, other: &PyExpr, swapped: bool) -> PyResult<PyExpr> {
        let (a, b) = match swapped {
            false => (&self.expr, &other.expr),
            true => (&other.expr, &self.expr),
        };
        self.join(other, Expr::compare(cmp, a, b))
    }
}

#[pymethods]
impl PyExpr {
    fn __add__(&self, other: Operand) -> PyResult<PyExpr> {
        self.join(&other.0, self.expr.add(&other.0.expr))
    }

    fn __radd__(&self, other: Operand) -> PyResult<PyExpr> {
        other.0.join(self, other.0.expr.add(&self.expr))
    }

    fn __sub__(&self, other: Operand) -> PyResult<PyExpr> {
        self.join(&other.0, self.expr.sub(&other.0.expr))
    }

    fn __rsub__(&self, other: Operand) -> PyResult<PyExpr> {
        other.0.join(self, other.0.expr.sub(&self.expr))
    }

    fn __mul__(&self, other: Operand) -> PyResult<PyExpr> {
        self.join(&other.0, self.expr.mul(&other.0.expr))
    }

    fn __rmul__(&self, other: Operand) -> PyResult<PyExpr> {
        other.0.join(self, other.0.expr.mul(&self.expr))
    }

    fn __floordiv__(&self, other: Operand) -> PyResult<PyExpr> {
        self.join(&other.0, self.expr.floor_div(&other.0.expr))
    }

    fn __rfloordiv__(&self, other: Operand) -> PyResult<PyExpr> {
        other.0.join(self, other.0.expr.floor_div(&self.expr))
    }

    fn __mod__(&self, other: Operand) -> PyResult<PyExpr> {
        self.join(&other.0, self.expr.modulo(&other.0.expr))
    }

    fn __rmod__(&self, other: Operand) -> PyResult<PyExpr> {
        other.0.join(self, other.0.expr.modulo(&self.expr))
    }

    fn __neg__(&self) -> PyResult<PyExpr> {
        self.join(self, self.expr.neg())
    }

    /// The quotient rounded up.
    fn ceil_div(&self, other: Operand) -> PyResult<PyExpr> {
        self.join(&other.0, self.expr.ceil_div(&other.0.expr))
    }

    /// The smaller of two.
    fn min(&self, other: Operand) -> PyResult<PyExpr> {
        self.join(&other.0, Expr::min(&self.expr, &other.0.expr))
    }

    /// The larger of two.
    fn max(&self, other: Operand) -> PyResult<PyExpr> {
        self.join(&other.0, Expr::max(&self.expr, &other.0.expr))
    }

    /// 1 where both are equal, else 0.
    fn eq(&self, other: Operand) -> PyResult<PyExpr> {
        self.compared(Cmp::Eq, &other.0, false)
    }

    /// 1 where they differ, else 0.
    fn ne(&self, other: Operand) -> PyResult<PyExpr> {
        self.compared(Cmp::Ne, &other.0, false)
    }

    fn __richcmp__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(Operand(other)) = other.extract::<Operand>().attempt(py)? else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let (cmp, swapped) = match op {
            CompareOp::Eq => {
                return Ok((self.expr == other.expr)
                    .into_pyobject(py)?
                    .to_owned()
                    .into_any());
            }
            CompareOp::Ne => {
                return Ok((self.expr != other.expr)
                    .into_pyobject(py)?
                    .to_owned()
                    .into_any());
            }
            CompareOp::Lt => (Cmp::Lt, false),
            CompareOp::Le => (Cmp::Le, false),
            CompareOp::Gt => (Cmp::Lt, true),
            CompareOp::Ge => (Cmp::Le, true),
        };
        let compared = self.compared(cmp, &other, swapped)?;
        Ok(compared.into_pyobject(py)?.into_any())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.expr.hash(&mut hasher);
        hasher.finish()
    }

    fn __bool__(&self) -> PyResult<bool> {
        self.expr.as_const().map(|value| value != 0).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "`{}` has no truth value before its symbols have values; give each condition by itself",
                self.__str__()
            ))
        })
    }

    fn __index__(&self) -> PyResult<i64> {
        self.expr
            .as_const()
            .ok_or_else(|| PyTypeError::new_err(format!("`{}` is not a number", self.__str__())))
    }

    fn __str__(&self) -> String {
        self.expr.display(&name_of).to_string()
    }

    fn __repr__(&self) -> String {
        self.__str__()
    }

    /// The symbol's name; `None` for what is more than a symbol.
    #[getter]
    fn name(&self) -> Option<String> {
        self.expr.as_symbol().map(name_of)
    }

    /// The number, if it is one; else `None`.
    #[getter]
    fn value(&self) -> Option<i64> {
        self.expr.as_const()
    }

    /// Its symbols, in the order in which they were written.
    #[getter]
    fn symbols(&self) -> Vec<PyExpr> {
        let used = |symbol: &&Symbol| self.expr.contains(**symbol);
        let symbols = self.order.iter().filter(used);
        symbols
            .map(|symbol| PyExpr::of(Expr::symbol(*symbol)))
            .collect()
    }

    /// The value where symbols have these values: `e.evaluate(i=3)` or `e.evaluate({i: 3})`.
    #[pyo3(signature = (values=None, **named))]
    fn evaluate(
        &self,
        values: Option<&Bound<'_, PyDict>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<i64> {
        let mut given = HashMap::new();
        for (key, value) in values
            .into_iter()
            .flatten()
            .chain(named.into_iter().flatten())
        {
            given.insert(symbol_of(&key)?, value.extract::<i64>()?);
        }
        self.expr
            .evaluate(&|symbol| given.get(&symbol).copied())
            .map_err(failed)
    }

    /// The expression with others in the places of symbols.
    #[pyo3(signature = (values=None, **named))]
    fn substitute(
        &self,
        values: Option<&Bound<'_, PyDict>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyExpr> {
        let mut given = HashMap::new();
        for (key, value) in values
            .into_iter()
            .flatten()
            .chain(named.into_iter().flatten())
        {
            given.insert(symbol_of(&key)?, value.extract::<Operand>()?.0.expr);
        }
        let expr = self.expr.substitute(&|symbol| given.get(&symbol).cloned());
        Ok(PyExpr::of(expr.map_err(failed)?))
    }

    /// The expression in its simplest form where symbols lie within bounds: `{i: 8}` says 0 to 7, `{i: (2, 5)}` 2 to 5.
    #[pyo3(signature = (bounds=None))]
    fn simplify(&self, bounds: Option<&Bound<'_, PyDict>>) -> PyResult<PyExpr> {
        let expr = self.expr.simplify(&bounds_of(bounds)?);
        Ok(PyExpr {
            expr,
            order: self.order.clone(),
        })
    }

    /// The least and the largest value it can have; `None` for an end that is not known.
    #[pyo3(signature = (bounds=None))]
    fn range(&self, bounds: Option<&Bound<'_, PyDict>>) -> PyResult<(Option<i64>, Option<i64>)> {
        let range = self.expr.range(&bounds_of(bounds)?);
        Ok((range.lo, range.hi))
    }

    /// What it grows by when a symbol grows by one. Within bounds, what is linear there counts as such.
    #[pyo3(signature = (symbol, bounds=None))]
    fn differentiate(
        &self,
        symbol: &Bound<'_, PyAny>,
        bounds: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyExpr> {
        let symbol = symbol_of(symbol)?;
        let found = match bounds {
            Some(_) => differentiate_within(&self.expr, symbol, &bounds_of(bounds)?),
            None => differentiate(&self.expr, symbol),
        };
        found.map(PyExpr::of).map_err(failed)
    }

    /// Its value where a symbol is 0.
    fn intercept(&self, symbol: &Bound<'_, PyAny>) -> PyResult<PyExpr> {
        let found = intercept(&self.expr, symbol_of(symbol)?);
        found.map(PyExpr::of).map_err(failed)
    }

    /// The coefficient of each symbol and the rest; `None` where it is not linear in them.
    #[pyo3(signature = (*symbols))]
    fn affine<'py>(
        &self,
        symbols: &Bound<'py, PyTuple>,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyDict>, PyExpr)>> {
        let symbols: Vec<Symbol> = symbols
            .iter()
            .map(|given| symbol_of(&given))
            .collect::<PyResult<_>>()?;
        let Some(form) = affine(&self.expr, &symbols) else {
            return Ok(None);
        };
        let coefficients = PyDict::new(py);
        for symbol in symbols {
            let coefficient = form.coefficients.get(&symbol).cloned();
            let coefficient = coefficient.unwrap_or_else(|| Expr::constant(0));
            coefficients.set_item(PyExpr::of(Expr::symbol(symbol)), PyExpr::of(coefficient))?;
        }
        let rest = PyExpr::of(form.constant);
        Ok(Some((coefficients, rest)))
    }
}

/// Symbols by their names: `i, j = symbols("i j")`, and one alone for one name.
#[pyfunction]
#[pyo3(name = "symbols")]
fn make_symbols<'py>(names: &str, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    let names: Vec<&str> = names
        .split(|c: char| c == ',' || c.is_whitespace())
        .filter(|name| !name.is_empty())
        .collect();
    match names.as_slice() {
        [] => Err(PyValueError::new_err("a symbol needs a name")),
        [only] => Ok(PyExpr::named(only).into_pyobject(py)?.into_any()),
        names => {
            let symbols = names.iter().map(|name| PyExpr::named(name));
            Ok(PyTuple::new(py, symbols.collect::<Vec<_>>())?.into_any())
        }
    }
}

/// The value of a symbol for which two expressions are equal.
#[pyfunction]
#[pyo3(name = "isolate")]
fn isolate_symbol(lhs: Operand, rhs: Operand, symbol: &Bound<'_, PyAny>) -> PyResult<PyExpr> {
    let found = isolate(&lhs.0.expr, &rhs.0.expr, symbol_of(symbol)?);
    found.map(PyExpr::of).map_err(failed)
}

/// Solves equations for the symbols in them. Each is a pair, or a triple with a word for where it comes from, which an
/// error then says.
#[pyfunction]
#[pyo3(name = "unify")]
fn unify_equations<'py>(
    equations: Vec<Bound<'py, PyTuple>>,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Vec::with_capacity(equations.len());
    for (at, equation) in equations.iter().enumerate() {
        let side = |place: usize| equation.get_item(place)?.extract::<Operand>();
        let (lhs, rhs) = (side(0)?.0, side(1)?.0);
        let origin = match equation.len() {
            3 => equation.get_item(2)?.str()?.to_string(),
            _ => format!("equation {}", at + 1),
        };
        given.push(Equation::new(lhs.expr, rhs.expr, origin));
    }
    let solution = unify(&given).map_err(|contradiction| {
        let message = contradiction.display(&name_of, &String::clone).to_string();
        PyValueError::new_err(message)
    })?;
    let found = PyDict::new(py);
    for (symbol, value) in solution.iter() {
        found.set_item(PyExpr::of(Expr::symbol(symbol)), PyExpr::of(value.clone()))?;
    }
    Ok(found)
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyExpr>()?;
    module.add_function(wrap_pyfunction!(make_symbols, module)?)?;
    module.add_function(wrap_pyfunction!(isolate_symbol, module)?)?;
    module.add_function(wrap_pyfunction!(unify_equations, module)?)
}
