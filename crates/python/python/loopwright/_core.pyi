"""The part of Loopwright that is written in Rust; written by stubs.py."""

import builtins
from collections.abc import Iterator
from typing import Any, ClassVar

MAX_AXES: int
MAX_JACOBI: int
MAX_MATRIX: int
__version__: str
bfloat16: DType
bool: DType
complex128: DType
complex64: DType
float16: DType
float32: DType
float64: DType
float8_e4m3fn: DType
float8_e5m2: DType
int16: DType
int32: DType
int64: DType
int8: DType
uint16: DType
uint32: DType
uint64: DType
uint8: DType

class Array:
    """An n-dimensional array."""

    @property
    def T(self) -> Array:
        """A matrix the other way around."""
    def __abs__(self, /) -> Array:
        """abs(self)"""
    def __add__(self, value: Any, /) -> Array:
        """Return self+value."""
    def __and__(self, value: Any, /) -> Array:
        """Return self&value."""
    def __array__(self, /, dtype: Any = ..., *, copy: Any = ...) -> Any:
        """"""
    def __array_namespace__(self, /, *, api_version: Any = ...) -> Any:
        """"""
    __array_priority__: ClassVar[float]
    def __bool__(self, /) -> builtins.bool:
        """True if self else False"""
    def __complex__(self, /) -> complex:
        """"""
    def __contains__(self, key: Any, /) -> builtins.bool:
        """Return key in self."""
    def __copy__(self, /) -> Array:
        """"""
    def __deepcopy__(self, /, _memo: Any) -> Array:
        """"""
    def __delitem__(self, key: Any, /) -> None:
        """Delete self[key]."""
    def __dlpack__(self, /, *, stream: Any = ..., max_version: Any = ..., dl_device: Any = ..., copy: Any = ...) -> Any:
        """"""
    def __dlpack_device__(self, /) -> tuple[int, int]:
        """"""
    def __eq__(self, value: Any, /) -> Any:
        """Return self==value."""
    def __float__(self, /) -> float:
        """float(self)"""
    def __floordiv__(self, value: Any, /) -> Array:
        """Return self//value."""
    def __format__(self, /, format: Any) -> str:
        """Default object formatter."""
    def __ge__(self, value: Any, /) -> Array:
        """Return self>=value."""
    def __getitem__(self, key: Any, /) -> Array:
        """Return self[key]."""
    def __gt__(self, value: Any, /) -> Array:
        """Return self>value."""
    def __hash__(self, /) -> int:
        """Return hash(self)."""
    def __iadd__(self, value: Any, /) -> Array:
        """Return self+=value."""
    def __iand__(self, value: Any, /) -> Array:
        """Return self&=value."""
    def __ifloordiv__(self, value: Any, /) -> Array:
        """Return self//=value."""
    def __ilshift__(self, value: Any, /) -> Array:
        """Return self<<=value."""
    def __imatmul__(self, value: Any, /) -> Array:
        """Return self@=value."""
    def __imod__(self, value: Any, /) -> Array:
        """Return self%=value."""
    def __imul__(self, value: Any, /) -> Array:
        """Return self*=value."""
    def __index__(self, /) -> int:
        """Return self converted to an integer, if self is suitable for use as an index into a list."""
    def __int__(self, /) -> int:
        """int(self)"""
    def __invert__(self, /) -> Array:
        """~self"""
    def __ior__(self, value: Any, /) -> Array:
        """Return self|=value."""
    def __ipow__(self, value: Any, /) -> Array:
        """Return self**=value."""
    def __irshift__(self, value: Any, /) -> Array:
        """Return self>>=value."""
    def __isub__(self, value: Any, /) -> Array:
        """Return self-=value."""
    def __iter__(self, /) -> Iterator[Any]:
        """Implement iter(self)."""
    def __itruediv__(self, value: Any, /) -> Array:
        """Return self/=value."""
    def __ixor__(self, value: Any, /) -> Array:
        """Return self^=value."""
    def __le__(self, value: Any, /) -> Array:
        """Return self<=value."""
    def __len__(self, /) -> int:
        """Return len(self)."""
    def __lshift__(self, value: Any, /) -> Array:
        """Return self<<value."""
    def __lt__(self, value: Any, /) -> Array:
        """Return self<value."""
    def __matmul__(self, value: Any, /) -> Array:
        """Return self@value."""
    def __mod__(self, value: Any, /) -> Array:
        """Return self%value."""
    def __mul__(self, value: Any, /) -> Array:
        """Return self*value."""
    def __ne__(self, value: Any, /) -> Any:
        """Return self!=value."""
    def __neg__(self, /) -> Array:
        """-self"""
    def __or__(self, value: Any, /) -> Array:
        """Return self|value."""
    def __pos__(self, /) -> Array:
        """+self"""
    def __pow__(self, value: Any, mod: Any = ..., /) -> Array:
        """Return pow(self, value, mod)."""
    def __radd__(self, value: Any, /) -> Array:
        """Return value+self."""
    def __rand__(self, value: Any, /) -> Array:
        """Return value&self."""
    def __reduce__(self, /) -> Any:
        """Helper for pickle."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    def __rfloordiv__(self, value: Any, /) -> Array:
        """Return value//self."""
    def __rlshift__(self, value: Any, /) -> Array:
        """Return value<<self."""
    def __rmatmul__(self, value: Any, /) -> Array:
        """Return value@self."""
    def __rmod__(self, value: Any, /) -> Array:
        """Return value%self."""
    def __rmul__(self, value: Any, /) -> Array:
        """Return value*self."""
    def __ror__(self, value: Any, /) -> Array:
        """Return value|self."""
    def __rpow__(self, value: Any, mod: Any = ..., /) -> Array:
        """Return pow(value, self, mod)."""
    def __rrshift__(self, value: Any, /) -> Array:
        """Return value>>self."""
    def __rshift__(self, value: Any, /) -> Array:
        """Return self>>value."""
    def __rsub__(self, value: Any, /) -> Array:
        """Return value-self."""
    def __rtruediv__(self, value: Any, /) -> Array:
        """Return value/self."""
    def __rxor__(self, value: Any, /) -> Array:
        """Return value^self."""
    def __setitem__(self, key: Any, value: Any, /) -> None:
        """Set self[key] to value."""
    def __str__(self, /) -> str:
        """Return str(self)."""
    def __sub__(self, value: Any, /) -> Array:
        """Return self-value."""
    def __truediv__(self, value: Any, /) -> Array:
        """Return self/value."""
    def __xor__(self, value: Any, /) -> Array:
        """Return self^value."""
    def _repr_html_(self, /) -> str | None:
        """How notebooks show it."""
    @property
    def device(self) -> Device:
        """The device that it is computed on."""
    @property
    def dtype(self) -> DType:
        """The type of its elements."""
    @property
    def is_computed(self) -> builtins.bool:
        """Whether its value is there."""
    def item(self, /) -> Any:
        """The only element as a Python number."""
    def label(self, /, label: Any) -> Array:
        """The same elements under a name that schedules and loops can speak of."""
    @property
    def mT(self) -> Array:
        """A stack of matrices, each the other way around."""
    def named(self, /, *names: Any) -> Array:
        """The same elements with names for the axes."""
    @property
    def names(self) -> tuple[str | None, ...]:
        """The names of its axes; `None` for one without."""
    @property
    def ndim(self) -> int:
        """How many axes it has."""
    def realize(self, /) -> Array:
        """Computes the value now, if it is not there yet, and gives the array back."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its axes; `None` for one that is open in a function that is traced."""
    @property
    def size(self) -> int:
        """How many elements it has; `None` where that is open."""
    def to_device(self, device: Any, /, *, stream: Any = ...) -> Array:
        """The array on another device."""
    def tolist(self, /) -> Any:
        """The elements as nested lists of Python numbers."""
    def unnamed(self, /) -> Array:
        """The same elements without names for the axes."""

class DType:
    """The type of an array's elements."""

    def __eq__(self, value: Any, /) -> Any:
        """Return self==value."""
    def __ge__(self, value: Any, /) -> Any:
        """Return self>=value."""
    def __gt__(self, value: Any, /) -> Any:
        """Return self>value."""
    def __hash__(self, /) -> int:
        """Return hash(self)."""
    def __le__(self, value: Any, /) -> Any:
        """Return self<=value."""
    def __lt__(self, value: Any, /) -> Any:
        """Return self<value."""
    def __ne__(self, value: Any, /) -> Any:
        """Return self!=value."""
    def __reduce__(self, /) -> Any:
        """Helper for pickle."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    def __str__(self, /) -> str:
        """Return str(self)."""
    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
    @property
    def kind(self) -> str:
        """`bool`, `signed integer`, `unsigned integer`, `real floating` or `complex floating`."""
    @property
    def name(self) -> str:
        """Its name."""

class Device:
    """A device that arrays are computed on, with what has been compiled for it."""

    def __init__(self, name: Any) -> None: ...
    def __eq__(self, value: Any, /) -> Any:
        """Return self==value."""
    def __ge__(self, value: Any, /) -> Any:
        """Return self>=value."""
    def __gt__(self, value: Any, /) -> Any:
        """Return self>value."""
    def __hash__(self, /) -> int:
        """Return hash(self)."""
    def __le__(self, value: Any, /) -> Any:
        """Return self<=value."""
    def __lt__(self, value: Any, /) -> Any:
        """Return self<value."""
    def __ne__(self, value: Any, /) -> Any:
        """Return self!=value."""
    def __reduce__(self, /) -> Any:
        """Helper for pickle."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    def __str__(self, /) -> str:
        """Return str(self)."""
    def compilations(self, /) -> tuple[int, int]:
        """How many programs were compiled for it, and how often one was used again."""
    @property
    def description(self) -> str:
        """What it is, in words."""
    def memory(self, /) -> tuple[int, int]:
        """Bytes of its memory that are in use, and the most that were."""
    @property
    def name(self) -> str:
        """Its name."""
    def wait(self, /) -> None:
        """Waits until everything is done that was started on it."""

class Error(RuntimeError):
    """What the compiler or a device refuses, and what the other exceptions of Loopwright are."""


class Function:
    """A function that is compiled when it is first called with arguments of some shapes; made by `jit`."""

    def __init__(self, *arguments: Any) -> None: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call self as a function."""
    def __get__(self, instance: Any, owner: Any = ..., /) -> Any:
        """Return an attribute of instance, which is of type owner."""
    @property
    def __name__(self) -> Any:
        """Its name."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    @property
    def __wrapped__(self) -> Any:
        """The Python function."""
    def reports(self, /) -> list[tuple[str, int, int, int]]:
        """Every time that the function was traced: why, and how many arrays, variables and updates it has."""

class Gradient:
    """A function that gives the gradients of another; made by `grad` and `value_and_grad`."""

    def __init__(self, *arguments: Any) -> None: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call self as a function."""
    @property
    def __name__(self) -> Any:
        """"""
    @property
    def __wrapped__(self) -> Any:
        """"""

class GradientError(Error):
    """Something in the way has no derivative."""


class ScheduleError(Error):
    """A schedule does not fit the program, or would change a value."""


class TracedError(Error):
    """The value of an array was asked for where it is not known yet: in a function that is traced."""


def _unpickle(bytes: Any, dtype: Any, shape: Any, names: Any, device: Any) -> Array:
    """An array of what it was pickled as; on the best device where its own is not here."""

def arange(start: Any, stop: Any, step: Any, device: Any) -> Array:
    """The integers from one up to another, which is left out, in steps."""

def arg_reduce(largest: Any, x: Any, axis: Any, keepdims: Any) -> Array:
    """Where the largest or smallest element along an axis is, the first of equal ones; over all elements for `None`."""

def argsort(x: Any, axis: Any, descending: Any) -> Array:
    """Where the elements along an axis are in order; equal ones stay in theirs."""

def asarray(obj: Any, dtype: Any = ..., device: Any = ..., copy: Any = ...) -> Array:
    """An array of an array, a number, nested lists, or anything that shares its memory (the buffer protocol, DLPack)."""

def binary(op: Any, a: Any, b: Any) -> Array:
    """A scalar op of two operands, arrays or Python numbers, which first meet in one dtype."""

def bitcast(x: Any, dtype: Any) -> Array:
    """The same bits as elements of another dtype of the same size."""

def broadcast_to(x: Any, shape: Any) -> Array:
    """The elements repeated to a shape."""

def cast(x: Any, dtype: Any) -> Array:
    """Elements of another dtype."""

def checkpoint(function: Any, *arguments: Any) -> Any:
    """What a function gives, computed again where its gradient needs it, in place of being kept."""

def complex(re: Any, im: Any) -> Array:
    """Complex numbers of their parts."""

def concat(arrays: Any, axis: Any) -> Array:
    """Arrays one behind the other along an axis."""

def constant(shape: Any, value: Any, dtype: Any, device: Any) -> Array:
    """Zeros or ones: numbers that are a part of the program."""

def count(x: Any, axes: Any) -> Array:
    """How many elements are folded over axes, as a number of the program: a size may be open in a function that is traced."""

def current_device() -> Device:
    """The device that is used where nothing is said."""

def custom_gradient(function: Any, backward: Any, *arguments: Any) -> Array:
    """What a function of arrays gives, with a gradient of its own: `backward(arguments, value, gradient)` gives a gradient for each argument."""

def devices() -> list[Device]:
    """Every device that works here, the one that `auto` takes first."""

def diagonal(x: Any, offset: Any) -> Array:
    """A diagonal of the last two axes."""

def dtype(object: Any) -> DType:
    """The dtype of that name, or that a type of Python or numpy stands for."""

def einsum(formula: Any, *operands: Any) -> Array:
    """A formula of indices: `"ij, jk -> ik"`."""

def fft(x: Any, axis: Any, inverse: Any) -> Array:
    """The Fourier transform along an axis, or its inverse, divided by the count."""

def flip(x: Any, axes: Any) -> Array:
    """The axes backwards."""

def full(shape: Any, value: Any, dtype: Any, device: Any) -> Array:
    """An array of one number."""

def hessian(function: Any, x: Any) -> Array:
    """The second derivatives of a function that gives one number."""

def imag(x: Any) -> Array:
    """The imaginary parts."""

def irfft(x: Any, n: Any, axis: Any) -> Array:
    """The real elements whose transform has this first half."""

def jacobian(function: Any, x: Any, forward: Any) -> Array:
    """The derivative of every element that a function gives with respect to every element of its argument."""

def jvp(function: Any, arguments: Any, directions: Any) -> tuple[Any, Array]:
    """What a function gives, and how much that changes as the arguments change in directions."""

def linalg_cholesky(x: Any) -> Array:
    """The lower Cholesky factor."""

def linalg_det(x: Any) -> Array:
    """The determinant."""

def linalg_eigh(x: Any) -> tuple[Array, Array]:
    """Eigenvalues, rising, and eigenvectors of symmetric matrices."""

def linalg_inv(x: Any) -> Array:
    """The inverse."""

def linalg_qr(x: Any) -> tuple[Array, Array]:
    """An orthogonal and an upper triangular factor."""

def linalg_slogdet(x: Any) -> tuple[Array, Array]:
    """Sign and logarithm of the determinant."""

def linalg_solve(a: Any, b: Any) -> Array:
    """Solves `a x = b`."""

def linalg_solve_triangular(a: Any, b: Any, lower: Any) -> Array:
    """Solves `a x = b` for triangular `a`."""

def linalg_svd(x: Any) -> tuple[Array, Array, Array]:
    """Left vectors, values, falling, and right vectors."""

def map(op: Any, *operands: Any) -> Array:
    """A scalar op by its name on arrays of one dtype, which are repeated to one shape."""

def matmul(left: Any, right: Any) -> Array:
    """The matrix product of two arrays."""

def nonzero(x: Any) -> list[Array]:
    """For each axis, where the elements are that are not zero."""

def ops() -> list[tuple[str, int, str]]:
    """Name, operands and meaning of every scalar op."""

def pad(x: Any, before: Any, after: Any, value: Any) -> Array:
    """With a border along each axis."""

def permute(x: Any, axes: Any) -> Array:
    """The axes in another order."""

def real(x: Any) -> Array:
    """The real parts."""

def realize(arrays: Any) -> None:
    """Computes arrays, those of a device in one program."""

def reduce(op: Any, x: Any, axes: Any, keepdims: Any) -> Array:
    """A fold over axes, or all of them."""

def repeat(x: Any, count: Any, axis: Any) -> Array:
    """Each element so many times along an axis."""

def reshape(x: Any, shape: Any) -> Array:
    """The elements in another shape; -1 for a size that follows."""

def result_type(*objects: Any) -> DType:
    """The dtype in which arrays, dtypes and numbers meet."""

def rfft(x: Any, axis: Any) -> Array:
    """The first half of the Fourier transform of real elements along an axis."""

def roll(x: Any, shift: Any, axis: Any) -> Array:
    """The elements moved along an axis; those that leave it come in at the other end."""

def scan(op: Any, x: Any, axis: Any, exclusive: Any, reverse: Any) -> Array:
    """The folds of all beginnings along an axis."""

def scatter(x: Any, index: Any, updates: Any, axis: Any, combine: Any) -> Array:
    """The array with updates put in at indices along an axis, or combined with what is there."""

def scope_variable(variable: Any) -> None:
    """Says where `with` blocks keep their device."""

def set_default_device(device: Any) -> None:
    """Makes a device the one that is used where nothing is said; `None` for the best there is."""

def sort(x: Any, axis: Any, descending: Any) -> Array:
    """The elements along an axis in order."""

def squeeze(x: Any, axes: Any) -> Array:
    """Without axes of size 1."""

def stack(arrays: Any, axis: Any) -> Array:
    """Arrays beside each other along a new axis."""

def stop_gradient(x: Any) -> Array:
    """The array as a constant: nothing flows back through it."""

def take(x: Any, index: Any, axis: Any) -> Array:
    """The elements at indices along an axis."""

def take_along(x: Any, index: Any, axis: Any) -> Array:
    """The elements at indices along an axis, each line with its own."""

def tile(x: Any, count: Any, axis: Any) -> Array:
    """The whole so many times along an axis."""

def tril(x: Any, k: Any) -> Array:
    """Zeros above a diagonal of the last two axes."""

def triu(x: Any, k: Any) -> Array:
    """Zeros below a diagonal of the last two axes."""

def unsqueeze(x: Any, axis: Any) -> Array:
    """With an axis of size 1 more."""

def vjp(function: Any, *arguments: Any) -> tuple[Any, Pullback]:
    """What a function gives, and a function from a gradient of that to gradients of the arguments."""

def vmap(function: Any, in_axes: Any, out_axes: Any, arguments: Any, named: Any) -> Any:
    """Calls a function for all examples along an axis of the arguments: `in_axes` is one axis for all of them (a place, a name, or `None`), or one for each; `out_axes` is where the axis goes in the results."""

def where(condition: Any, a: Any, b: Any) -> Array:
    """Elements of one array where a condition is true, of another elsewhere."""
