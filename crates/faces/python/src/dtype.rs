//! Element types, under the names of the Array API; complex numbers are pairs.

use crate::interrupts::Attempt;
use loopwright_ops::{DType, Kind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The type of an array's elements.
#[pyclass(
    name = "DType",
    module = "loopwright",
    frozen,
    eq,
    hash,
    from_py_object
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PyDType {
    /// The elements' type, or that of each part.
    pub(crate) part: DType,
    /// Whether elements are pairs, the real part first.
    pub(crate) complex: bool,
}

/// All of them, with their names.
pub(crate) const ALL: [(&str, PyDType); 17] = [
    ("bool", PyDType::real(DType::Bool)),
    ("int8", PyDType::real(DType::I8)),
    ("int16", PyDType::real(DType::I16)),
    ("int32", PyDType::real(DType::I32)),
    ("int64", PyDType::real(DType::I64)),
    ("uint8", PyDType::real(DType::U8)),
    ("uint16", PyDType::real(DType::U16)),
    ("uint32", PyDType::real(DType::U32)),
    ("uint64", PyDType::real(DType::U64)),
    ("float8_e4m3fn", PyDType::real(DType::F8E4M3)),
    ("float8_e5m2", PyDType::real(DType::F8E5M2)),
    ("float16", PyDType::real(DType::F16)),
    ("bfloat16", PyDType::real(DType::BF16)),
    ("float32", PyDType::real(DType::F32)),
    ("float64", PyDType::real(DType::F64)),
    ("complex64", PyDType::pair(DType::F32)),
    ("complex128", PyDType::pair(DType::F64)),
];

/// Names of programs that are numpy's for another dtype: ours count bits, numpy's bytes.
const AMBIGUOUS: [(&str, &str, &str); 3] = [
    ("i8", "int8", "int64"),
    ("u8", "uint8", "uint64"),
    ("f16", "float16", "longdouble"),
];

/// What Python floats may become by default.
const DEFAULTS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// Which of them it is now.
static DEFAULT: AtomicUsize = AtomicUsize::new(0);

/// The dtype of Python floats, of quotients of integers and of new arrays for which no dtype is given.
pub(crate) fn float() -> DType {
    DEFAULTS[DEFAULT.load(Ordering::Relaxed)]
}

/// What integers are where nothing is said.
pub(crate) const INT: DType = DType::I64;

impl PyDType {
    pub(crate) const fn real(part: DType) -> PyDType {
        PyDType {
            part,
            complex: false,
        }
    }

    pub(crate) const fn pair(part: DType) -> PyDType {
        PyDType {
            part,
            complex: true,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        let found = ALL.iter().find(|(_, dtype)| *dtype == self);
        found.map_or("?", |(name, _)| name)
    }

    pub(crate) fn from_name(name: &str) -> Option<PyDType> {
        let found = ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, dtype)| *dtype)
    }

    pub(crate) fn is_float(self) -> bool {
        !self.complex && self.part.is_float()
    }

    /// A dtype, its name, or one of Python's number types. Names that numpy reads in another way are refused.
    pub(crate) fn of_any(object: &Bound<'_, PyAny>) -> PyResult<PyDType> {
        let name = object.cast::<PyString>().ok();
        let name = name.and_then(|name| name.to_str().ok());
        match AMBIGUOUS.iter().find(|(short, ..)| Some(*short) == name) {
            Some((short, ours, numpys)) => Err(PyTypeError::new_err(format!(
                "the dtype {short} is {ours} in programs and {numpys} in numpy; give it by its full name"
            ))),
            None => PyDType::of_program(object),
        }
    }

    /// The same where names are those of programs.
    pub(crate) fn of_program(object: &Bound<'_, PyAny>) -> PyResult<PyDType> {
        if let Ok(dtype) = object.extract::<PyDType>() {
            return Ok(dtype);
        }
        // Types of Python, numpy's dtypes and scalar types, and those of whoever else gives them a name.
        let named = |attribute| object.getattr(attribute).attempt(object.py());
        let name = match object.cast::<PyString>() {
            Ok(name) => name.to_str()?.to_owned(),
            Err(_) => match (named("name")?, named("__name__")?) {
                (Ok(name), _) | (_, Ok(name)) => name.extract::<String>()?,
                _ => object.str()?.to_string(),
            },
        };
        let name = match name.as_str() {
            "int" => "int64",
            "float" => PyDType::real(float()).name(),
            "complex" if float() == DType::F64 => "complex128",
            "complex" => "complex64",
            "bool_" => "bool",
            // `torch.float32`, whose string names its module.
            other => other.rsplit_once('.').map_or(other, |(_, last)| last),
        };
        let known = PyDType::from_name(name);
        // The names in programs and schedules: `f32`.
        let known = known.or_else(|| name.parse().ok().map(PyDType::real));
        known.ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            PyTypeError::new_err(format!("there is no dtype {name}; there are {names}"))
        })
    }
}

#[pymethods]
impl PyDType {
    /// Its name.
    #[getter(name)]
    fn py_name(&self) -> &'static str {
        self.name()
    }

    /// Bytes of an element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.part.bytes() * if self.complex { 2 } else { 1 }
    }

    /// `bool`, `signed integer`, `unsigned integer`, `real floating` or `complex floating`.
    #[getter]
    fn kind(&self) -> &'static str {
        match (self.complex, self.part.kind()) {
            (true, _) => "complex floating",
            (_, Kind::Bool) => "bool",
            (_, Kind::Signed) => "signed integer",
            (_, Kind::Unsigned) => "unsigned integer",
            (_, Kind::Float) => "real floating",
        }
    }

    fn __repr__(&self) -> String {
        format!("loopwright.{}", self.name())
    }

    fn __str__(&self) -> &'static str {
        self.name()
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (&'static str,))> {
        let find = py.import("loopwright._core")?.getattr("dtype")?;
        Ok((find.unbind(), (self.name(),)))
    }
}

/// The dtype that Python floats, quotients of integers and new arrays have where none is given.
#[pyfunction]
pub(crate) fn default_dtype() -> PyDType {
    PyDType::real(float())
}

/// Changes that dtype, for all threads.
#[pyfunction]
pub(crate) fn set_default_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<()> {
    let dtype = PyDType::of_any(dtype)?;
    let place = DEFAULTS.iter().position(|known| *known == dtype.part);
    match place {
        Some(place) if !dtype.complex => {
            DEFAULT.store(place, Ordering::Relaxed);
            Ok(())
        }
        _ => Err(PyTypeError::new_err(format!(
            "set_default_dtype: the default is float32, float64, float16 or bfloat16, not {}",
            dtype.name()
        ))),
    }
}

/// The dtype of that name, or that a type of Python or numpy stands for.
#[pyfunction]
pub(crate) fn dtype(object: &Bound<'_, PyAny>) -> PyResult<PyDType> {
    PyDType::of_any(object)
}
