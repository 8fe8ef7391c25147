//! Tensors from numbers.

use super::{failure, refuse_shape};
use crate::buffer::{Buffer, Exclusive};
use crate::error::{ErrorKind, TensorError};
use crate::node::{Kind, Tensor, program_order};
use crate::session::Session;
use crate::shape::{Axis, IntoShape, Shape};
use loopwright_graph::Array;
use loopwright_ops::{DType, Kind as DTypeKind, Scalar};
use loopwright_symbolic::Expr;
use rustc_hash::FxHashMap;
use std::panic::Location;
use std::sync::Arc;

/// A Rust type that is a dtype.
pub trait Element: bytemuck::NoUninit + bytemuck::AnyBitPattern {
    /// The dtype.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident,)*) => {
        $(impl Element for $type { const DTYPE: DType = DType::$dtype; })*
    };
}

elements! {
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f32 => F32, f64 => F64,
}

/// A plain number beside a tensor: it takes the tensor's dtype.
pub trait IntoScalar: Copy {
    /// The number in a dtype, or `None` if the dtype cannot hold it.
    fn into_scalar(self, dtype: DType) -> Option<Scalar>;
    /// The dtype it has where nothing else says one.
    fn own_dtype() -> DType;
    /// The number for a message.
    fn text(self) -> String;
}

macro_rules! float_scalars {
    ($($type:ty => $dtype:ident,)*) => {
        $(impl IntoScalar for $type {
            fn into_scalar(self, dtype: DType) -> Option<Scalar> {
                let value = f64::from(self);
                // A fraction never becomes an integer by itself.
                let fits = dtype.is_float() || (dtype.is_int() && value.fract() == 0.0 && fits(value as i128, dtype));
                fits.then(|| Scalar::from_f64(dtype, value))
            }

            fn own_dtype() -> DType {
                DType::$dtype
            }

            fn text(self) -> String {
                self.to_string()
            }
        })*
    };
}

macro_rules! int_scalars {
    ($($type:ty => $dtype:ident,)*) => {
        $(impl IntoScalar for $type {
            fn into_scalar(self, dtype: DType) -> Option<Scalar> {
                let value = self as i128;
                let fits = dtype.is_float() || (dtype.is_int() && fits(value, dtype));
                fits.then(|| match dtype.is_float() {
                    true => Scalar::from_f64(dtype, self as f64),
                    false => Scalar::from_bits(dtype, self as u64),
                })
            }

            fn own_dtype() -> DType {
                DType::$dtype
            }

            fn text(self) -> String {
                self.to_string()
            }
        })*
    };
}

float_scalars! { f32 => F32, f64 => F32, }
int_scalars! {
    i8 => I8, i16 => I16, i32 => I64, i64 => I64, isize => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64, usize => I64,
}

impl IntoScalar for bool {
    fn into_scalar(self, dtype: DType) -> Option<Scalar> {
        (dtype == DType::Bool).then(|| Scalar::bool(self))
    }

    fn own_dtype() -> DType {
        DType::Bool
    }

    fn text(self) -> String {
        self.to_string()
    }
}

fn fits(value: i128, dtype: DType) -> bool {
    let bits = dtype.bits();
    let (low, high) = match dtype.kind() {
        DTypeKind::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        _ => (0, (1i128 << bits) - 1),
    };
    (low..=high).contains(&value)
}

impl Tensor {
    /// An array as a tensor.
    #[track_caller]
    pub fn of(array: impl Into<Arc<Array>>) -> Tensor {
        let array = array.into();
        let shape = array.shape().into_shape();
        Tensor::of_buffer(Buffer::of_array(array), shape)
    }

    /// Elements in row-major order, with a shape.
    ///
    /// ```
    /// use loopwright_tensor::Tensor;
    ///
    /// let x = Tensor::new(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// let named = Tensor::new(&[1i64, 2, 3], [("batch", 3)]);
    /// assert_eq!(x.shape().to_string(), "[2, 2]");
    /// assert_eq!(named.shape().to_string(), "[batch 3]");
    /// ```
    #[track_caller]
    pub fn new<T: Element>(elements: &[T], shape: impl IntoShape) -> Tensor {
        let shape = shape.into_shape();
        let Some(sizes) = shape.known() else {
            let error = refuse_shape("new", &shape, "the size of given elements is known");
            return Tensor::of_error(error);
        };
        if let Some(name) = shape.repeated_name() {
            let reason = format!("two axes are called `{name}`");
            return Tensor::of_error(refuse_shape("new", &shape, reason));
        }
        match Array::from_bytes(T::DTYPE, &sizes, bytemuck::cast_slice(elements)) {
            Ok(array) => Tensor::of_buffer(Buffer::of_array(array), shape),
            Err(_) => {
                let reason = format!(
                    "it has room for {}, and {} elements are given",
                    counted(&shape),
                    elements.len()
                );
                Tensor::of_error(refuse_shape("new", &shape, reason))
            }
        }
    }

    /// One number, without axes.
    #[track_caller]
    pub fn scalar<T: IntoScalar>(value: T) -> Tensor {
        let dtype = T::own_dtype();
        match value.into_scalar(dtype) {
            Some(value) => Tensor::constant(value),
            None => Tensor::constant(Scalar::zero(dtype)),
        }
    }

    /// One value of a dtype, without axes.
    #[track_caller]
    pub fn constant(value: Scalar) -> Tensor {
        Tensor::make(Kind::Constant(value), &[], Shape::scalar(), value.dtype())
    }

    /// The same value everywhere.
    #[track_caller]
    pub fn full<T: IntoScalar>(shape: impl IntoShape, value: T, dtype: DType) -> Tensor {
        match value.into_scalar(dtype) {
            Some(value) => Tensor::constant(value).broadcast_to(shape),
            None => Tensor::failed(ErrorKind::Argument {
                op: "full".to_owned(),
                reason: format!("{} is not a value of {dtype}", value.text()),
            }),
        }
    }

    /// Zeros.
    #[track_caller]
    pub fn zeros(shape: impl IntoShape, dtype: DType) -> Tensor {
        Tensor::constant(Scalar::zero(dtype)).broadcast_to(shape)
    }

    /// Ones.
    #[track_caller]
    pub fn ones(shape: impl IntoShape, dtype: DType) -> Tensor {
        Tensor::constant(Scalar::one(dtype)).broadcast_to(shape)
    }

    /// As many zeros as another tensor has elements, with its shape and dtype.
    #[track_caller]
    pub fn zeros_like(&self) -> Tensor {
        failure(&[self]).unwrap_or_else(|| Tensor::zeros(self.shape(), self.dtype()))
    }

    /// As many ones as another tensor has elements, with its shape and dtype.
    #[track_caller]
    pub fn ones_like(&self) -> Tensor {
        failure(&[self]).unwrap_or_else(|| Tensor::ones(self.shape(), self.dtype()))
    }

    /// The index along an axis: 0, 1, 2, .. (`i64`).
    #[track_caller]
    pub fn index(axis: Axis) -> Tensor {
        Tensor::make(Kind::Index, &[], Shape::new([axis]), DType::I64)
    }

    /// `start`, `start + step`, .. up to `end`, which is left out (`i64`).
    #[track_caller]
    pub fn arange(start: i64, end: i64, step: i64) -> Tensor {
        if step == 0 {
            return Tensor::failed(ErrorKind::Argument {
                op: "arange".to_owned(),
                reason: "the step is 0".to_owned(),
            });
        }
        let span = i128::from(end) - i128::from(start);
        let (far, stride) = (span.unsigned_abs(), u128::from(step.unsigned_abs()));
        let towards = span.signum() == i128::from(step).signum();
        let count = if towards { far.div_ceil(stride) } else { 0 };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Tensor::index(Axis::of(count)) * step + start
    }

    /// `count` numbers from `start` to `end`, both included (`f32`).
    #[track_caller]
    pub fn linspace(start: f64, end: f64, count: usize) -> Tensor {
        let steps = count.saturating_sub(1).max(1) as f64;
        let at = Tensor::index(Axis::of(count)).cast(DType::F64);
        ((at.clone() * end + (-at + steps) * start) / steps).cast(DType::F32)
    }

    /// Ones on the diagonal, zeros elsewhere.
    #[track_caller]
    pub fn eye(size: usize, dtype: DType) -> Tensor {
        let row = Tensor::index(Axis::of(size));
        row.unsqueeze(1).eq(&row).cast(dtype)
    }

    /// The place of every element of a shape in row-major order (`i64`).
    #[track_caller]
    pub fn numbered(shape: impl IntoShape) -> Tensor {
        let shape = shape.into_shape();
        let mut number = Tensor::constant(Scalar::i64(0));
        for (at, axis) in shape.axes().iter().enumerate() {
            let index = Tensor::index(axis.clone());
            let places = (0..shape.rank())
                .map(|place| (place == at).then_some(0))
                .collect();
            let size = Tensor::size_value(&crate::size::resolve(&axis.size));
            number = number * size + index.spread(&shape, &places);
        }
        number.broadcast_to(shape)
    }

    /// A size as a number (`i64`): it may still be unknown.
    #[track_caller]
    pub fn size_value(size: &Expr) -> Tensor {
        match size.as_const() {
            Some(size) => Tensor::constant(Scalar::i64(size)),
            None => Tensor::make(Kind::Size(size.clone()), &[], Shape::scalar(), DType::I64),
        }
    }

    /// Computes the value now, if it is not there yet.
    ///
    /// # Errors
    /// The first mistake that the tensor is made of, or what the compiler or the device says.
    #[track_caller]
    pub fn realize(&self) -> Result<(), TensorError> {
        realize(std::slice::from_ref(self))
    }

    /// The value, computed now if it is not there yet.
    ///
    /// # Errors
    /// As [`Tensor::realize`].
    #[track_caller]
    pub fn array(&self) -> Result<Arc<Array>, TensorError> {
        self.realize()?;
        let value = self.node.value.get().expect("it has been computed");
        value
            .array()
            .map_err(|error| TensorError::new(error.into()))
    }

    /// The value in memory of the host, computed now if it is not there yet; not copied where it lies there already, and is
    /// not small. Holding it keeps it from being written again.
    ///
    /// # Errors
    /// As [`Tensor::realize`].
    #[track_caller]
    pub fn lent(&self) -> Result<Arc<Array>, TensorError> {
        self.realize()?;
        let value = self.node.value.get().expect("it has been computed");
        value.lent().map_err(|error| TensorError::new(error.into()))
    }

    /// Where its value lies in memory of the host, for someone who writes it there; nothing where it has not been computed, lies
    /// elsewhere or in several places, is small, or where anything else holds it: other tensors, formulas, arrays that
    /// were lent, work that is not done yet.
    pub fn exclusive(&self) -> Option<Exclusive> {
        match Arc::strong_count(&self.node) {
            1 => self.node.value.get()?.exclusive(),
            _ => None,
        }
    }

    /// Whether its value is memory that was given and is somebody else's ([`Array::foreign`]).
    pub fn is_foreign(&self) -> bool {
        let value = self.node.value.get();
        let on_host = value.and_then(Buffer::on_host);
        on_host.is_some_and(|array| array.is_foreign())
    }

    /// Whether its value is there, and need not be computed.
    pub fn is_computed(&self) -> bool {
        self.node.value.get().is_some()
    }

    /// A tensor of the same value that does not know what it was computed from, so that it can go; nothing if the value is
    /// not there yet. There are no gradients through it.
    #[track_caller]
    pub fn detached(&self) -> Option<Tensor> {
        let value = self.node.value.get()?;
        Some(match self.node.kind {
            Kind::Data => self.clone(),
            _ => Tensor::of_buffer(value.clone(), self.shape().clone()),
        })
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::realize`]; [`ErrorKind::Expected`] where the elements are of another type.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, TensorError> {
        self.check()?;
        if self.dtype() != T::DTYPE {
            return Err(TensorError::new(ErrorKind::Expected {
                op: "to_vec".to_owned(),
                expected: format!("a tensor of {}", T::DTYPE),
                got: self.dtype(),
            }));
        }
        Ok(bytemuck::cast_slice(self.array()?.bytes()).to_vec())
    }

    /// The elements in row-major order, whatever their dtype.
    ///
    /// # Errors
    /// As [`Tensor::realize`].
    #[track_caller]
    pub fn to_f64(&self) -> Result<Vec<f64>, TensorError> {
        Ok(self.array()?.to_f64())
    }

    /// The only element.
    ///
    /// # Errors
    /// As [`Tensor::realize`]; [`ErrorKind::Shape`] where there are more or none.
    #[track_caller]
    pub fn item(&self) -> Result<f64, TensorError> {
        self.check()?;
        match self.to_f64()?[..] {
            [item] => Ok(item),
            ref items => {
                let reason = format!(
                    "it has {}, and the only one is asked for; take one with `.at(..)`, or fold them",
                    super::counted(items.len(), "element")
                );
                Err(refuse_shape("item", self.shape(), reason))
            }
        }
    }

    /// The sizes of its axes.
    ///
    /// # Errors
    /// [`ErrorKind::Undetermined`] where one is not known yet; the mistake that it is made of.
    #[track_caller]
    pub fn sizes(&self) -> Result<Vec<usize>, TensorError> {
        self.check()?;
        let sizes = crate::program::concrete_shape(self)?;
        Ok(sizes.into_iter().map(|size| size as usize).collect())
    }
}

/// Computes several tensors in one program.
///
/// # Errors
/// As [`Tensor::realize`].
#[track_caller]
pub fn realize(tensors: &[Tensor]) -> Result<(), TensorError> {
    let place = Location::caller();
    if tensors
        .iter()
        .all(|tensor| tensor.node.value.get().is_some())
    {
        return Ok(());
    }
    let session = Session::current().map_err(|error| TensorError::at(error.into(), place))?;
    session.realize(tensors, place)
}

/// Computes several tensors in one program, and with them whatever they are computed from that someone else holds, too:
/// it is likely to be asked for next, and is computed once so. Views are not kept.
///
/// # Errors
/// As [`Tensor::realize`].
#[track_caller]
pub fn realize_with_held(tensors: &[Tensor]) -> Result<(), TensorError> {
    let place = Location::caller();
    let mut wanted: Vec<Tensor> = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        tensor.check()?;
        if !tensor.is_computed() {
            wanted.push(tensor.clone());
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    wanted.extend(held_elsewhere(&wanted));
    let session = Session::current().map_err(|error| TensorError::at(error.into(), place))?;
    session.realize(&wanted, place)
}

/// What tensors are computed from that is held by someone beside them.
fn held_elsewhere(tensors: &[Tensor]) -> Vec<Tensor> {
    let order = program_order(tensors);
    let mut uses: FxHashMap<u64, usize> = FxHashMap::default();
    for tensor in &order {
        for input in &tensor.node.inputs {
            *uses.entry(input.node.id).or_default() += 1;
        }
    }
    let is_held = |tensor: &&Tensor| {
        let is_work = !matches!(
            tensor.node.kind,
            Kind::View(_) | Kind::Constant(_) | Kind::Index | Kind::Size(_) | Kind::Marked(_)
        );
        let inside = uses.get(&tensor.node.id).copied().unwrap_or(0);
        // One is the order's own; the wanted ones are held by the list of them.
        is_work && !tensor.is_computed() && Arc::strong_count(&tensor.node) > inside + 1
    };
    let is_wanted = |tensor: &&Tensor| !tensors.iter().any(|other| other.same(tensor));
    order
        .iter()
        .filter(is_wanted)
        .filter(is_held)
        .cloned()
        .collect()
}

fn counted(shape: &Shape) -> String {
    match shape.elements() {
        Some(1) => "1 element".to_owned(),
        Some(count) => format!("{count} elements"),
        None => "more elements than can be counted".to_owned(),
    }
}

impl<T: IntoScalar> From<T> for Tensor {
    #[track_caller]
    fn from(value: T) -> Tensor {
        Tensor::scalar(value)
    }
}

/// Elements of a one-dimensional tensor.
impl<T: Element, const N: usize> From<[T; N]> for Tensor {
    #[track_caller]
    fn from(elements: [T; N]) -> Tensor {
        Tensor::new(&elements, [N])
    }
}

/// Rows of a two-dimensional tensor.
impl<T: Element, const N: usize, const M: usize> From<[[T; M]; N]> for Tensor {
    #[track_caller]
    fn from(rows: [[T; M]; N]) -> Tensor {
        Tensor::new(rows.as_flattened(), [N, M])
    }
}

/// Elements of a one-dimensional tensor.
impl<T: Element> From<Vec<T>> for Tensor {
    #[track_caller]
    fn from(elements: Vec<T>) -> Tensor {
        let count = elements.len();
        Tensor::new(&elements, [count])
    }
}
