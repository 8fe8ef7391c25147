"""The part of Loopwright that is written in Rust; written by stubs.py."""

import builtins
from collections.abc import Iterator
from typing import Any, ClassVar

MAX_AXES: int
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
    def abs(self, /) -> Array:
        """The absolute value."""
    def acos(self, /) -> Array:
        """The inverse cosine."""
    def acosh(self, /) -> Array:
        """The inverse hyperbolic cosine."""
    def all(self, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., **options: Any) -> Array:
        """Whether all elements are true."""
    def any(self, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., **options: Any) -> Array:
        """Whether any element is true."""
    def argmax(self, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., **options: Any) -> Array:
        """The index of the first largest element along an axis, or of all."""
    def argmin(self, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., **options: Any) -> Array:
        """The index of the first smallest element along an axis, or of all."""
    def argsort(self, /, *, axis: Any = ..., descending: Any = ..., stable: Any = ...) -> Array:
        """The indices that sort along an axis; equal elements stay in the order they had."""
    def asin(self, /) -> Array:
        """The inverse sine."""
    def asinh(self, /) -> Array:
        """The inverse hyperbolic sine."""
    def astype(self, dtype: Any, /, *, copy: Any = ...) -> Array:
        """Elements of another dtype."""
    def atan(self, /) -> Array:
        """The inverse tangent."""
    def atanh(self, /) -> Array:
        """The inverse hyperbolic tangent."""
    def broadcast_to(self, /, shape: Any) -> Array:
        """An array repeated along its axes of size 1 to a shape: a view, which is read-only."""
    def ceil(self, /) -> Array:
        """The smallest integer that is not below."""
    def clip(self, min: Any = ..., max: Any = ..., out: Any = ...) -> Array:
        """The elements within bounds: ``x.clip(0, 1)``."""
    def conj(self, /) -> Array:
        """The conjugate: the imaginary part with the other sign."""
    def cos(self, /) -> Array:
        """The cosine."""
    def cosh(self, /) -> Array:
        """The hyperbolic cosine."""
    def cumulative_prod(self, /, *, axis: Any = ..., dtype: Any = ..., include_initial: Any = ...) -> Array:
        """The products of all elements up to each one along an axis."""
    def cumulative_sum(self, /, *, axis: Any = ..., dtype: Any = ..., include_initial: Any = ...) -> Array:
        """The sums of all elements up to each one along an axis."""
    @property
    def device(self) -> Device:
        """The device that it is computed on."""
    @property
    def dtype(self) -> DType:
        """The type of its elements."""
    def exp(self, /) -> Array:
        """e to the power of the elements."""
    def expand_dims(self, /, axis: Any = ...) -> Array:
        """An array with a new axis of size 1 at a place."""
    def expm1(self, /) -> Array:
        """`exp(x) - 1`, precise near 0."""
    def flatten(self) -> Array:
        """A copy of all elements along one axis."""
    def flip(self, /, *, axis: Any = ...) -> Array:
        """The elements in reverse along axes."""
    def floor(self, /) -> Array:
        """The largest integer that is not above."""
    @property
    def is_computed(self) -> builtins.bool:
        """Whether its value is there."""
    def isfinite(self, /) -> Array:
        """Whether they are neither infinite nor NaN."""
    def isinf(self, /) -> Array:
        """Whether they are infinite."""
    def isnan(self, /) -> Array:
        """Whether they are not a number."""
    def item(self, /) -> Any:
        """The only element as a Python number."""
    def label(self, /, label: Any) -> Array:
        """The same elements under a name that schedules and loops can speak of."""
    def log(self, /) -> Array:
        """The natural logarithm."""
    def log10(self, /) -> Array:
        """The logarithm to base 10."""
    def log1p(self, /) -> Array:
        """`log(1 + x)`, precise near 0."""
    def log2(self, /) -> Array:
        """The logarithm to base 2."""
    def loops(self, /) -> Loops:
        """The loops that compute this array: what becomes of it, at every stage."""
    @property
    def mT(self) -> Array:
        """A stack of matrices, each the other way around."""
    def matmul(self, x2: Any, /) -> Array:
        """The product of matrices; one axis alone is a vector, axes before two are a batch."""
    def max(self, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., **options: Any) -> Array:
        """The largest element along axes; NaN if there is one."""
    def maximum(self, x2: Any, /) -> Array:
        """The larger one; NaN if either is NaN."""
    def mean(self, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., **options: Any) -> Array:
        """The mean along axes."""
    def min(self, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., **options: Any) -> Array:
        """The smallest element along axes; NaN if there is one."""
    def minimum(self, x2: Any, /) -> Array:
        """The smaller one; NaN if either is NaN."""
    def moveaxis(self, source: Any, destination: Any, /) -> Array:
        """Axes moved to other places; the others stay in order."""
    def named(self, /, *names: Any) -> Array:
        """The same elements with names for the axes."""
    @property
    def names(self) -> tuple[str | None, ...]:
        """The names of its axes; `None` for one without."""
    @property
    def ndim(self) -> int:
        """How many axes it has."""
    def negative(self, /) -> Array:
        """The elements with the other sign."""
    def permute(self, *axes: Any) -> Array:
        """The axes in another order: ``x.permute(1, 0)``."""
    def pow(self, x2: Any, /) -> Array:
        """The first to the power of the second."""
    def prod(self, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., **options: Any) -> Array:
        """The product along axes."""
    def realize(self, /) -> Array:
        """Computes the value now, if it is not there yet, and gives the array back."""
    def reciprocal(self, /) -> Array:
        """1 divided by the elements."""
    def repeat(self, repeats: Any, /, *, axis: Any = ...) -> Array:
        """Every element several times, one after the other."""
    def reshape(self, *shape: Any, copy: Any = ...) -> Array:
        """The elements in another shape: ``x.reshape(2, -1)`` or ``x.reshape((2, -1))``."""
    def roll(self, /, shift: Any, *, axis: Any = ...) -> Array:
        """The elements moved along axes; what leaves at the end comes in at the front."""
    def round(self, /) -> Array:
        """The nearest integer, of two the even one."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its axes; `None` for one that is open in a function that is traced."""
    def sign(self, /) -> Array:
        """-1, 0 or 1; of a complex number `z / abs(z)`."""
    def sin(self, /) -> Array:
        """The sine."""
    def sinh(self, /) -> Array:
        """The hyperbolic sine."""
    @property
    def size(self) -> int:
        """How many elements it has; `None` where that is open."""
    def sort(self, /, *, axis: Any = ..., descending: Any = ..., stable: Any = ...) -> Array:
        """The elements in order along an axis, NaN last; in descending order first."""
    def sqrt(self, /) -> Array:
        """The square root."""
    def square(self, /) -> Array:
        """The square."""
    def squeeze(self, axis: Any = ...) -> Array:
        """Without axes of size 1: those that are named, or all."""
    def std(self, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., **options: Any) -> Array:
        """The standard deviation along axes, the root of the variance."""
    def sum(self, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., **options: Any) -> Array:
        """The sum along axes."""
    def tan(self, /) -> Array:
        """The tangent."""
    def tanh(self, /) -> Array:
        """The hyperbolic tangent."""
    def tile(self, repetitions: Any, /) -> Array:
        """The whole array several times along its axes."""
    def to_device(self, device: Any, /, *, stream: Any = ...) -> Array:
        """The array on another device."""
    def tolist(self, /) -> Any:
        """The elements as nested lists of Python numbers."""
    def transpose(self, *axes: Any) -> Array:
        """The axes in another order, or backwards where none is said."""
    def tril(self, /, *, k: Any = ...) -> Array:
        """Matrices with zeros above the `k`-th diagonal."""
    def triu(self, /, *, k: Any = ...) -> Array:
        """Matrices with zeros below the `k`-th diagonal."""
    def trunc(self, /) -> Array:
        """The elements without their fraction."""
    def unnamed(self, /) -> Array:
        """The same elements without names for the axes."""
    def var(self, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., **options: Any) -> Array:
        """The variance along axes: squares of distances to the mean, over the count less `correction`."""

class Average:
    """A running average of parameters, which is often better than where they are."""

    def __init__(self, variables: Any, decay: Any) -> None: ...
    def swap(self, /) -> None:
        """Puts the averages in the parameters' place, and those in the averages'."""
    def update(self, /) -> None:
        """Moves the average towards the parameters."""

class Chart:
    """Curves over a common axis: training curves, say. A notebook shows it as a picture, `print` as text."""

    def __init__(self, title: Any = ..., *, across: Any = ..., up: Any = ..., logarithmic: Any = ...) -> None: ...
    def __str__(self, /) -> str:
        """Return str(self)."""
    def _repr_svg_(self, /) -> Any:
        """"""
    def points(self, /, name: Any, points: Any) -> Chart:
        """The same with a curve through these points."""
    def save(self, /, path: Any) -> None:
        """Writes the picture to a file."""
    def svg(self, /) -> str:
        """The chart as an SVG picture."""
    def terminal(self, /, width: Any = ..., height: Any = ..., *, colour: Any = ..., ascii: Any = ...) -> str:
        """The chart for a terminal."""
    def values(self, /, name: Any, values: Any) -> Chart:
        """The same with a curve through these values, one step apart, from 0 on."""

class Clip:
    """How gradients are cut before they are used."""

    def __eq__(self, value: Any, /) -> Any:
        """Return self==value."""
    def __ge__(self, value: Any, /) -> Any:
        """Return self>=value."""
    def __gt__(self, value: Any, /) -> Any:
        """Return self>value."""
    def __le__(self, value: Any, /) -> Any:
        """Return self<=value."""
    def __lt__(self, value: Any, /) -> Any:
        """Return self<value."""
    def __ne__(self, value: Any, /) -> Any:
        """Return self!=value."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    def apply(self, /, gradients: Any) -> Any:
        """The gradients, cut."""
    @staticmethod
    def norm(bound: Any) -> Any: ...
    @staticmethod
    def value(bound: Any) -> Any: ...

class Corpus:
    """A text as tokens, a character each."""

    def __init__(self, text: Any) -> None: ...
    def __len__(self, /) -> int:
        """Return len(self)."""
    @property
    def characters(self) -> Any:
        """The characters that tokens stand for, token 0 first."""
    def decode(self, /, tokens: Any) -> Any:
        """The text of tokens."""
    def encode(self, /, text: Any) -> Any:
        """The tokens of a text."""
    @staticmethod
    def read(path: Any) -> Any: ...
    def split(self, /, share: Any) -> Any:
        """The first part of the text and the rest, with one vocabulary."""
    @property
    def tokens(self) -> Any:
        """The tokens."""
    def windows(self, /, length: Any) -> Any:
        """The set of all windows of this many tokens, each with those that follow."""

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

class DataParallel:
    """A training step on several streams."""

    def __init__(self, entries: Any, optimizer: Any, function: Any, streams: Any, device: Any) -> None: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call self as a function."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""

class Dataset:
    """A set of examples that can be had in batches: one array for each thing that an example is made of, with the examples along the first axis."""

    def __init__(self, source: Any) -> None: ...
    def __getitem__(self, key: Any, /) -> Any:
        """Return self[key]."""
    def __len__(self, /) -> int:
        """Return len(self)."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    def batch(self, /, indices: Any) -> list[Array]:
        """The examples at these indices, in their order; an index may come twice."""
    def map(self, /, function: Any) -> Dataset:
        """A set whose batches are changed on their way, by a function of a list of arrays that gives another one."""
    def select(self, /, indices: Any) -> Dataset:
        """The set of the examples at these indices."""

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

class Epoch:
    """The rest of an epoch of a loader."""

    def __iter__(self, /) -> Iterator[Any]:
        """Implement iter(self)."""
    def __next__(self, /) -> Any:
        """Implement next(self)."""

class Error(RuntimeError):
    """What the compiler or a device refuses, and what the other exceptions of Loopwright are."""


class Examples:
    """Inputs and what is to be learned of each: two arrays with the examples along the first axis."""

    def __init__(self, inputs: Any, targets: Any) -> None: ...
    def __iter__(self, /) -> Iterator[Any]:
        """Implement iter(self)."""
    def __len__(self, /) -> int:
        """Return len(self)."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    def dataset(self, /) -> Dataset:
        """The set of them: a batch is inputs and targets."""
    @property
    def inputs(self) -> Array:
        """The inputs."""
    def split(self, /, test_share: Any = ..., seed: Any = ...) -> tuple[Examples, Examples]:
        """Splits off a share of the examples for tests, the same share of every class: those to learn from, and those."""
    @property
    def targets(self) -> Array:
        """The class, the value or the values of each."""

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
    def loops(self, /, *arguments: Any, **named: Any) -> Loops:
        """The loops of the function's program for such arguments; it is compiled now if it has not been, and not run."""
    def reports(self, /) -> list[tuple[str, int, int, int]]:
        """Every time that the function was traced: why, and how many arrays, variables and updates it has."""

class Generator:
    """Keys one after the other. The count is a variable, so that a function made by `jit` draws new numbers in every call."""

    def __init__(self, seed: Any) -> None: ...
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    @property
    def count(self) -> Variable:
        """How many keys it has given: what a checkpoint keeps of it, beside the seed."""
    def key(self, /) -> Key:
        """The next key."""
    @property
    def seed(self) -> int:
        """Its seed."""

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


class ImageFolder(Dataset):
    """A set of pictures in folders, a folder for each class, which are read when they are asked for."""

    def __init__(self, path: Any) -> None: ...
    @property
    def classes(self) -> Any:
        """The names of the classes."""
    @property
    def files(self) -> Any:
        """The files and their classes."""

class Init:
    """How the first value of a parameter is chosen."""

    def __init__(self, name: Any) -> None: ...
    def __eq__(self, value: Any, /) -> Any:
        """Return self==value."""
    def __ge__(self, value: Any, /) -> Any:
        """Return self>=value."""
    def __gt__(self, value: Any, /) -> Any:
        """Return self>value."""
    def __le__(self, value: Any, /) -> Any:
        """Return self<=value."""
    def __lt__(self, value: Any, /) -> Any:
        """Return self<value."""
    def __ne__(self, value: Any, /) -> Any:
        """Return self!=value."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    def array(self, /, shape: Any, dtype: Any = ..., *, inputs: Any = ..., outputs: Any = ...) -> Any:
        """First values of a shape, where so many numbers flow into each result and each flows into so many."""
    @staticmethod
    def constant(value: Any) -> Any: ...
    @staticmethod
    def normal(mean: Any, deviation: Any) -> Any: ...
    @staticmethod
    def uniform(low: Any, high: Any) -> Any: ...

class Key:
    """What random numbers are made of: 64 bits, which may be known later."""

    def __init__(self, seed: Any) -> None: ...
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    def fold_in(self, /, number: Any) -> Key:
        """The key for a number: of a step, a layer, a device."""
    def of_shard(self, /) -> Key:
        """The key for the part that is worked on, in a step on several streams; elsewhere the same."""
    @property
    def seed(self) -> Array:
        """The seed (`uint64`)."""
    def split(self, /, count: Any = ...) -> list[Key]:
        """So many keys that have nothing to do with each other, nor with this one's numbers."""

class Layer:
    """A layer of the Rust API."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call self as a function."""
    @staticmethod
    def activation(name: Any, slope: Any) -> Any: ...
    def attend(self, /, x: Any, memory: Any = ..., mask: Any = ...) -> Any:
        """Attention of `x` to `memory`, or the likeness of `x` to an embedding's rows."""
    def attend_cached(self, /, x: Any, cache: Any) -> Any:
        """Attention of positions behind those in a cache, and the cache with them."""
    @staticmethod
    def attention(width: Any, heads: Any, shared_heads: Any, causal: Any, rope: Any) -> Any: ...
    @staticmethod
    def batch_norm(channels: Any, momentum: Any, epsilon: Any, place: Any) -> Any: ...
    @staticmethod
    def conv(outputs: Any, window: Any, inputs: Any, stride: Any, padding: Any, dilation: Any, groups: Any, init: Any, bias: Any, place: Any) -> Any: ...
    @staticmethod
    def conv_transpose(outputs: Any, window: Any, stride: Any, padding: Any, dilation: Any, groups: Any, output_padding: Any, bias: Any) -> Any: ...
    @staticmethod
    def dense(outputs: Any, inputs: Any, init: Any, bias: Any, dtype: Any, place: Any) -> Any: ...
    @staticmethod
    def dropout(rate: Any) -> Any: ...
    @staticmethod
    def embedding(things: Any, width: Any, init: Any) -> Any: ...
    def entries(self, /) -> list[tuple[str, Variable]]:
        """Names and variables of all parameters and states."""
    @staticmethod
    def feed_forward(width: Any, inside: Any, activation: Any) -> Any: ...
    @staticmethod
    def global_average(axes: Any) -> Any: ...
    @staticmethod
    def group_norm(groups: Any, channels: Any) -> Any: ...
    def key_value_cache(self, /, batch: Any, capacity: Any, dtype: Any) -> Any:
        """An empty cache of keys and values: `key`, `value` and `length`."""
    @staticmethod
    def layer_norm(width: Any, epsilon: Any, place: Any) -> Any: ...
    def part(self, /, name: Any) -> Layer:
        """A layer inside of this one."""
    @staticmethod
    def pool(largest: Any, window: Any, stride: Any, padding: Any, dilation: Any, count_include_pad: Any) -> Any: ...
    @staticmethod
    def recurrent(kind: Any, hidden: Any) -> Any: ...
    @staticmethod
    def rms_norm(width: Any, epsilon: Any, place: Any) -> Any: ...
    def steps(self, /, x: Any, start: Any = ...) -> Any:
        """The hidden states of all steps, and the last ones, of a recurrent layer."""
    @staticmethod
    def transformer_block(width: Any, heads: Any, shared_heads: Any, causal: Any, rope: Any, decoder: Any, dropout: Any) -> Any: ...
    def with_memory(self, /, x: Any, memory: Any = ...) -> Any:
        """What a block makes of a sequence and an encoder's memory."""

class Loader:
    """Deals out a set in batches, one epoch after the other, without an end."""

    def __init__(self, dataset: Any, batch: Any, *, shuffle: Any = ..., drop_last: Any = ..., prefetch: Any = ...) -> None: ...
    def __iter__(self, /) -> Iterator[Any]:
        """Implement iter(self)."""
    def __len__(self, /) -> int:
        """Return len(self)."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    @property
    def epoch(self) -> int:
        """The epoch, from 0."""
    @property
    def examples(self) -> int:
        """How many examples an epoch deals out."""
    def next_batch(self, /) -> list[Array] | None:
        """The next batch; `None`, once, at the end of an epoch, after which the next one begins."""
    @property
    def position(self) -> str:
        """Where the loader stands, as a text: what a checkpoint keeps."""
    def resume(self, /, position: Any) -> None:
        """Goes to a position: the batches that follow are exactly those that would have followed there."""

class Loops:
    """A compiled program over arrays: every stage of it as text, and how it runs."""

    def __repr__(self, /) -> str:
        """Return repr(self)."""
    def __str__(self, /) -> str:
        """Return str(self)."""
    @property
    def code(self) -> str:
        """The code that the device has made of it."""
    @property
    def graph(self) -> str:
        """The program in the language of `.lw` files: what schedules speak of."""
    @property
    def kernel(self) -> str:
        """The kernel that the device is given."""
    def mutate(self, /, text: Any) -> Loops:
        """Changes the schedule by one mutation that keeps every value, such as `split c k 8`, and gives the loops that the program has then."""
    @property
    def notes(self) -> list[str]:
        """What of the schedule was not carried out, and why; what was rewritten."""
    def reset(self, /) -> Loops:
        """Lets the program run by the schedule that was made for it again."""
    @property
    def schedule(self) -> str:
        """How it runs: the text of its schedule."""
    def set_schedule(self, /, text: Any) -> Loops:
        """Lets the program run by another schedule from now on, and gives the loops that it has then."""
    @property
    def tree(self) -> str:
        """The loops that follow from it."""

class Optimizer:
    """An optimiser of the Rust API."""

    @staticmethod
    def accumulate(optimizer: Any, steps: Any) -> Any: ...
    @staticmethod
    def adam(rate: Any, betas: Any, epsilon: Any, decay: Any, clip: Any) -> Any: ...
    def apply(self, /, variables: Any, gradients: Any) -> None:
        """Changes variables by their gradients, given in the same order."""
    @staticmethod
    def lion(rate: Any, decay: Any, betas: Any, clip: Any) -> Any: ...
    @staticmethod
    def loss_scale(optimizer: Any, scale: Any) -> Any: ...
    def scale(self, /) -> Any:
        """The scale of the loss at this point."""
    def scaled(self, /, loss: Any) -> Array:
        """The loss as gradients are to be taken of it."""
    @staticmethod
    def sgd(rate: Any, momentum: Any, nesterov: Any, weight_decay: Any, clip: Any) -> Any: ...
    def variables(self, /, named: Any) -> list[tuple[str, Variable]]:
        """The variables that it keeps itself for these, by name; made now if there are none yet."""

class Parameter(Variable):
    """A variable that is trained."""

    def __init__(self, value: Any, dtype: Any = ..., device: Any = ...) -> None: ...

class Reader:
    """A file of which nothing but the header is in memory."""

    def __init__(self, path: Any) -> None: ...
    def __contains__(self, key: Any, /) -> builtins.bool:
        """Return key in self."""
    def __getitem__(self, key: Any, /) -> Any:
        """Return self[key]."""
    def __len__(self, /) -> int:
        """Return len(self)."""
    @property
    def infos(self) -> dict[str, tuple[DType, list[int]]]:
        """Name, dtype and shape of all arrays."""
    def keys(self, /) -> list[str]:
        """The names of all arrays."""
    @property
    def metadata(self) -> dict[str, str]:
        """The strings beside them."""

class Schedule:
    """A learning rate as a function of the step, counted from 0. It is part of the compiled step: a rate that changes compiles nothing."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call self as a function."""
    def __eq__(self, value: Any, /) -> Any:
        """Return self==value."""
    def __ge__(self, value: Any, /) -> Any:
        """Return self>=value."""
    def __gt__(self, value: Any, /) -> Any:
        """Return self>value."""
    def __le__(self, value: Any, /) -> Any:
        """Return self<=value."""
    def __lt__(self, value: Any, /) -> Any:
        """Return self<value."""
    def __ne__(self, value: Any, /) -> Any:
        """Return self!=value."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    def after_warmup(self, /, steps: Any) -> Schedule:
        """This schedule after a number of steps that lead to its first rate."""
    @staticmethod
    def constant(rate: Any) -> Any: ...
    @staticmethod
    def cosine(from_: Any, to: Any, steps: Any) -> Any: ...
    @staticmethod
    def exponential(from_: Any, factor: Any) -> Any: ...
    @staticmethod
    def inverse_root(from_: Any, keep: Any) -> Any: ...
    @staticmethod
    def linear(from_: Any, to: Any, steps: Any) -> Any: ...
    def rate(self, /, step: Any) -> Array:
        """The rate at a step, which may be an array of one integer (`float32`)."""
    @staticmethod
    def steps(from_: Any, factor: Any, every: Any) -> Any: ...

class ScheduleError(Error):
    """A schedule does not fit the program, or would change a value."""


class ScheduleWarning(UserWarning):
    """A schedule that Loopwright chose was refused, and a plainer one is used: results are right, and may come slower."""


class State(Variable):
    """A variable that a module keeps and does not train: a running mean, a counter."""

    def __init__(self, value: Any, dtype: Any = ..., device: Any = ...) -> None: ...

class Table:
    """A table with named columns, each with values of one type: a CSV file."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return self[key]."""
    def __len__(self, /) -> int:
        """Return len(self)."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    def array(self, /, name: Any, dtype: Any = ...) -> Array:
        """A column of numbers or booleans, `[row]`."""
    def categories(self, /, name: Any) -> tuple[Array, list[str]]:
        """For each row which of the different values of a column it has, and those as texts, in their order."""
    def matrix(self, /, names: Any, dtype: Any = ...) -> Array:
        """Columns of numbers or booleans side by side, `[row, column]`."""
    @property
    def names(self) -> list[str]:
        """The names of the columns."""
    @staticmethod
    def parse(text: Any, *, name: Any = ..., header: Any = ..., delimiter: Any = ..., types: Any = ...) -> Any: ...
    @staticmethod
    def read(path: Any, *, header: Any = ..., delimiter: Any = ..., types: Any = ...) -> Any: ...

class TracedError(Error):
    """The value of an array was asked for where it is not known yet: in a function that is traced."""


class Variable(Array):
    """An array that keeps its place and changes its value: a parameter, a moment of an optimiser, a counter."""

    def __init__(self, value: Any, dtype: Any = ..., device: Any = ...) -> None: ...
    def __repr__(self, /) -> str:
        """Return repr(self)."""
    def freeze(self, /, frozen: Any = ...) -> None:
        """Leaves it out of training, or takes it in again. Functions that are compiled already stay as they are."""
    def get(self, /) -> Array:
        """The value at this point."""
    @property
    def id(self) -> int:
        """A number that no other variable has."""
    def set(self, /, value: Any) -> None:
        """Sets the value: at once, or in a function that is traced, when that is called."""
    @property
    def trained(self) -> builtins.bool:
        """Whether it is trained as a part of a module: floats that are no state, and not frozen."""
    @property
    def value(self) -> Any:
        """The value at this point."""

class WhileLoop:
    """A loop that runs as long as a condition on what it carries holds; its condition and its step are compiled once."""

    def __init__(self, condition: Any, step: Any, name: Any = ...) -> None: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call self as a function."""
    def __repr__(self, /) -> str:
        """Return repr(self)."""

def ArrayDataset(arrays: Any) -> Dataset:
    """Examples in memory: arrays that have the examples along their first axis."""

def _unpickle(bytes: Any, dtype: Any, shape: Any, names: Any, device: Any) -> Array:
    """An array of what it was pickled as; on the best device where its own is not here."""

def activation(name: Any, x: Any, number: Any) -> Array:
    """A function of every element by its name."""

def adaptive_pool(largest: Any, x: Any, parts: Any) -> Array:
    """Largest elements or means of as many parts along the last axes as are asked for."""

def arange(start: Any, stop: Any, step: Any, device: Any) -> Array:
    """The integers from one up to another, which is left out, in steps."""

def arg_reduce(largest: Any, x: Any, axis: Any, keepdims: Any) -> Array:
    """Where the largest or smallest element along an axis is, the first of equal ones; over all elements for `None`."""

def argsort(x: Any, axis: Any, descending: Any) -> Array:
    """Where the elements along an axis are in order; equal ones stay in theirs."""

def asarray(obj: Any, dtype: Any = ..., device: Any = ..., copy: Any = ...) -> Array:
    """An array of an array, a number, nested lists, or anything that shares its memory (the buffer protocol, DLPack)."""

def assign(variables: Any, values: Any) -> None:
    """Sets several variables, computing all values in one program; on a mistake none is changed."""

def binary(op: Any, a: Any, b: Any) -> Array:
    """A scalar op of two operands, arrays or Python numbers, which first meet in one dtype."""

def binary_cross_entropy(x: Any, target: Any) -> Array:
    """The cross entropy of two classes, from scores and targets between 0 and 1, without overflow."""

def bitcast(x: Any, dtype: Any) -> Array:
    """The same bits as elements of another dtype of the same size."""

def blobs(count: Any, centres: Any = ..., spread: Any = ..., seed: Any = ...) -> Examples:
    """Clouds of points around random centres: points, and which centre each is of."""

def broadcast_to(x: Any, shape: Any) -> Array:
    """The elements repeated to a shape: a view that cannot be written."""

def cast(x: Any, dtype: Any) -> Array:
    """Elements of another dtype."""

def checkpoint(function: Any, *arguments: Any) -> Any:
    """What a function gives, computed again where its gradient needs it, in place of being kept."""

def checkpoint_load(path: Any, named: Any, part: Any) -> dict[str, str]:
    """Puts the values of a file into variables, and gives the strings beside them."""

def checkpoint_load_as(path: Any, named: Any, stored: Any, unwanted: Any) -> dict[str, str]:
    """Puts the values of a file that another program wrote into variables."""

def checkpoint_read(path: Any) -> tuple[dict[str, Array], dict[str, str]]:
    """Reads a whole file: the arrays, and the strings beside them."""

def checkpoint_save(path: Any, named: Any, metadata: Any) -> None:
    """Writes the values of variables under their names, and strings beside them."""

def checkpoint_write(path: Any, arrays: Any, metadata: Any) -> None:
    """Writes arrays under their names, and strings beside them."""

def choose(condition: Any, a: Any, b: Any) -> Any:
    """One of two values by a single boolean; both are computed."""

def complex(re: Any, im: Any) -> Array:
    """Complex numbers of their parts."""

def complex_exp(x: Any) -> Array:
    """e to the power of complex numbers."""

def complex_log(x: Any) -> Array:
    """The natural logarithm of complex numbers."""

def concat(arrays: Any, axis: Any) -> Array:
    """Arrays one behind the other along an axis."""

def constant(shape: Any, value: Any, dtype: Any, device: Any) -> Array:
    """Zeros or ones: numbers that are a part of the program."""

def conv(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: Any, output_padding: Any) -> Array:
    """A convolution, or a transposed one."""

def copied(x: Any) -> Array:
    """The same elements in an array of their own."""

def cosine_distance(x: Any, target: Any) -> Array:
    """1 minus the cosine of the angle between vectors along the last axis. It is 1 where a vector is 0."""

def count(x: Any, axes: Any) -> Array:
    """How many elements are folded over axes, as a number of the program: a size may be open in a function that is traced."""

def cross_entropy(x: Any, target: Any) -> Array:
    """The negative logarithm of the probability of the label, from scores (`[.., classes]`) and labels (integers, without the axis of classes)."""

def cross_entropy_smoothed(scores: Any, labels: Any, smoothing: Any) -> Array:
    """As `cross_entropy`, where every label stands for a share of `smoothing`, from 0 to 1, of all classes alike."""

def current_device() -> Device:
    """The device that is used where nothing is said."""

def custom_gradient(function: Any, backward: Any, *arguments: Any) -> Array:
    """What a function of arrays gives, with a gradient of its own: `backward(arguments, value, gradient)` gives a gradient for each argument."""

def default_dtype() -> DType:
    """The dtype that Python floats, quotients of integers and new arrays have where none is given."""

def devices() -> list[Device]:
    """Every device that works here, the one that `auto` takes first."""

def diagonal(x: Any, offset: Any) -> Array:
    """A diagonal of the last two axes."""

def digits() -> Examples:
    """The handwritten digits: 1,797 images (`float32`, 8 by 8) of pixels from 0 to 1, and the digits that they show."""

def dtype(object: Any) -> DType:
    """The dtype of that name, or that a type of Python or numpy stands for."""

def einsum(formula: Any, *operands: Any) -> Array:
    """A formula of indices: `"ij, jk -> ik"`."""

def einsum_with(formula: Any, operands: Any, fold: Any, op: Any, sizes: Any) -> tuple[Array, dict[str, int]]:
    """An einsum with another fold and op, sizes that are said, and those that were found."""

def fft(x: Any, axis: Any, inverse: Any) -> Array:
    """The Fourier transform along an axis, or its inverse, divided by the count."""

def flip(x: Any, axes: Any) -> Array:
    """The axes backwards: a view."""

def full(shape: Any, value: Any, dtype: Any, device: Any) -> Array:
    """An array of one number."""

def global_pool(largest: Any, x: Any, spatial: Any) -> Array:
    """The largest element or the mean along all of the last axes."""

def hessian(function: Any, arguments: Any) -> Any:
    """The second derivatives of a function that gives one number: for each array of the arguments, a tree like them."""

def hinge(x: Any, target: Any) -> Array:
    """`max(0, 1 - score * target)` for targets of 1 and -1."""

def huber(x: Any, target: Any, bound: Any = ...) -> Array:
    """Squared for differences up to `bound`, which is above 0, in proportion to them beyond."""

def imag(x: Any) -> Array:
    """The imaginary parts."""

def irfft(x: Any, n: Any, axis: Any) -> Array:
    """The real elements whose transform has this first half."""

def is_training() -> builtins.bool:
    """Whether layers behave as in training on this thread."""

def jacobian(function: Any, arguments: Any, forward: Any) -> Any:
    """The derivative of every element that a function gives with respect to every element of its arguments: for each array of the result, a tree like the arguments."""

def jvp(function: Any, arguments: Any, directions: Any) -> tuple[Any, Any]:
    """What a function gives, and how much that changes as the arguments change in directions."""

def kl_divergence(x: Any, target: Any) -> Array:
    """How far a distribution is from a target, both along the last axis; the first as logarithms."""

def linalg_cholesky(x: Any) -> Array:
    """The lower Cholesky factor."""

def linalg_complement(x: Any) -> Array:
    """The columns that make those of an orthogonal matrix a square one."""

def linalg_det(x: Any) -> Array:
    """The determinant."""

def linalg_eig(x: Any) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of square matrices, real or complex."""

def linalg_eigh(x: Any) -> tuple[Array, Array]:
    """Eigenvalues, rising, and eigenvectors of symmetric matrices."""

def linalg_eigvals(x: Any) -> Array:
    """Eigenvalues of square matrices, real or complex."""

def linalg_eigvalsh(x: Any) -> Array:
    """Eigenvalues of symmetric matrices, rising."""

def linalg_inv(x: Any) -> Array:
    """The inverse."""

def linalg_on_host(x: Any) -> bool:
    """Whether the values of matrices are known, and they are large enough to be taken apart on the host."""

def linalg_qr(x: Any) -> tuple[Array, Array]:
    """An orthogonal and an upper triangular factor."""

def linalg_slogdet(x: Any) -> tuple[Array, Array]:
    """Sign and logarithm of the determinant."""

def linalg_solve(a: Any, b: Any) -> Array:
    """Solves `a x = b`."""

def linalg_svd(x: Any) -> tuple[Array, Array, Array]:
    """Left vectors, values, falling, and right vectors."""

def linalg_svdvals(x: Any) -> Array:
    """Singular values, falling."""

def linear(count: Any, features: Any, noise: Any = ..., seed: Any = ...) -> tuple[Examples, list[float], float]:
    """Examples of a linear function with random weights, those weights, and what is added."""

def loops_of(*arrays: Any) -> Loops:
    """The loops that compute arrays, all in one program, which is compiled now if it has not been, and not run."""

def map(op: Any, *operands: Any) -> Array:
    """A scalar op by its name on arrays of one dtype, which are repeated to one shape."""

def matmul(left: Any, right: Any) -> Array:
    """The matrix product of two arrays."""

def mean_absolute_error(x: Any, target: Any) -> Array:
    """The mean of absolute differences."""

def mean_squared_error(x: Any, target: Any) -> Array:
    """The mean of squared differences."""

def moons(count: Any, noise: Any = ..., seed: Any = ...) -> Examples:
    """Two half circles that reach into each other: points, and which moon each is of."""

def nll(x: Any, target: Any) -> Array:
    """The negative logarithm of the probability of the label, from logarithms of probabilities."""

def nonzero(x: Any) -> list[Array]:
    """For each axis, where the elements are that are not zero."""

def one_hot(x: Any, classes: Any, dtype: Any) -> Array:
    """1 at the place that each index names, along a new last axis, 0 elsewhere."""

def ops() -> list[tuple[str, int, str]]:
    """Name, operands and meaning of every scalar op."""

def over_axes(name: Any, x: Any, axes: Any) -> Array:
    """`softmax`, `log_softmax`, `logsumexp` or `norm` over axes, or all of them."""

def pad(x: Any, before: Any, after: Any, value: Any) -> Array:
    """With a border along each axis."""

def pad_by(x: Any, axis: Any, before: Any, after: Any, mode: Any) -> Array:
    """More elements at both ends of an axis, made of those that are there."""

def permute(x: Any, axes: Any) -> Array:
    """The axes in another order: a view."""

def pool(largest: Any, x: Any, window: Any, stride: Any, padding: Any, dilation: Any, count_include_pad: Any) -> Array:
    """The largest element or the mean of each window along the last axes."""

def random_bernoulli(key: Any, shape: Any, probability: Any) -> Array:
    """True with a probability (`bool`)."""

def random_bits(key: Any, shape: Any = ...) -> Array:
    """64 random bits for each element (`uint64`)."""

def random_categorical(key: Any, logits: Any, axis: Any) -> Array:
    """Indices (`int64`) along an axis of logits, drawn with the softmax's probabilities; the axis goes."""

def random_dropout(key: Any, x: Any, drop: Any) -> Array:
    """Keeps elements with a probability and divides them by it; the others are 0."""

def random_exponential(key: Any, shape: Any = ..., dtype: Any = ...) -> Array:
    """Numbers of the exponential distribution of mean 1."""

def random_gumbel(key: Any, shape: Any = ..., dtype: Any = ...) -> Array:
    """Numbers of the standard Gumbel distribution."""

def random_normal(key: Any, shape: Any = ..., dtype: Any = ...) -> Array:
    """Normally distributed numbers of mean 0 and variance 1."""

def random_permutation(key: Any, count: Any) -> Array:
    """The numbers from 0 to `count`, which is left out (`int64`), in random order."""

def random_randint(key: Any, shape: Any, low: Any, high: Any) -> Array:
    """Integers from `low` to `high`, which is left out (`int64`)."""

def random_shuffle(key: Any, x: Any, axis: Any) -> Array:
    """The elements of an array along an axis in random order, the same for all lines."""

def random_truncated_normal(key: Any, shape: Any, low: Any, high: Any, dtype: Any = ...) -> Array:
    """Normally distributed numbers within bounds."""

def random_uniform(key: Any, shape: Any = ..., dtype: Any = ...) -> Array:
    """Uniformly distributed numbers in [0, 1)."""

def read_idx(path: Any) -> Array:
    """Reads an array from an IDX file, plain or compressed by gzip."""

def read_images(paths: Any) -> Array:
    """Reads pictures of one size into one array, `[picture, height, width, channel]`."""

def read_npy(path: Any, dtype: Any = ...) -> Array:
    """Reads an array from an `.npy` file; `dtype` for those that numpy has no name for."""

def real(x: Any) -> Array:
    """The real parts."""

def realize(*arrays: Any) -> None:
    """Computes arrays, those of a device in one program. Each argument is an array, or a list, tuple, dict or other tree of arrays."""

def reduce(op: Any, x: Any, axes: Any, keepdims: Any) -> Array:
    """A fold over axes, or all of them."""

def repeat(x: Any, count: Any, axis: Any) -> Array:
    """Each element so many times along an axis."""

def repeat_at_most(most: Any, first: Any, condition: Any, step: Any) -> Any:
    """Repeats a step as long as a condition holds, at most so many times, as a part of the formula."""

def reshape(x: Any, shape: Any, copy: Any = ...) -> Array:
    """The elements in another shape; -1 for a size that follows. A view where the elements have strides in that shape, and otherwise a copy; with `copy` a copy in any case, or an error where it would be one."""

def result_type(*objects: Any) -> DType:
    """The dtype in which arrays, dtypes and numbers meet."""

def rfft(x: Any, axis: Any) -> Array:
    """The first half of the Fourier transform of real elements along an axis."""

def roll(x: Any, shift: Any, axis: Any) -> Array:
    """The elements moved along an axis; those that leave it come in at the other end."""

def rope(x: Any, position: Any, base: Any) -> Array:
    """Turns `[.., time, width]` by angles that grow with the position, from one on: an integer, or an array of one."""

def same_kind(*arguments: Any) -> builtins.bool:
    """Whether elements of one dtype may be written into an array of another, as in-place operators do."""

def scan(op: Any, x: Any, axis: Any, exclusive: Any, reverse: Any) -> Array:
    """The folds of all beginnings along an axis."""

def scan_along(step: Any, first: Any, xs: Any, axis: Any, compiled: Any) -> tuple[Any, Any]:
    """Steps along an axis: gives what is carried at the end, and all outputs along a new first axis."""

def scatter(x: Any, index: Any, updates: Any, axis: Any, combine: Any) -> Array:
    """The array with updates put in at indices along an axis, or combined with what is there."""

def scope_variable(variable: Any) -> None:
    """Says where `with` blocks keep their device."""

def seed(seed: Any, /) -> None:
    """Starts the first values over: networks that are made alike from here on start alike."""

def set_default_device(device: Any) -> None:
    """Makes a device the one that is used where nothing is said; `None` for the best there is."""

def set_default_dtype(dtype: Any) -> None:
    """Changes that dtype, for all threads."""

def set_mixed_precision(dtype: Any) -> DType | None:
    """Lets layers multiply in a narrower float, or as they are; gives what was said before."""

def set_training(training: Any) -> builtins.bool:
    """Lets layers behave as in training, or as in use; gives how they behaved before."""

def shares_cell(a: Any, b: Any) -> Array:
    """Whether arrays share elements, so that a write to one may be seen in another."""

def sort(x: Any, axis: Any, descending: Any) -> Array:
    """The elements along an axis in order."""

def sparkline(values: Any, width: Any = ...) -> str:
    """A curve in one line of text."""

def spirals(count: Any, arms: Any = ..., noise: Any = ..., seed: Any = ...) -> Examples:
    """Arms of a spiral: points, and which arm each is of."""

def squeeze(x: Any, axes: Any) -> Array:
    """Without axes of size 1: a view."""

def stack(arrays: Any, axis: Any) -> Array:
    """Arrays beside each other along a new axis."""

def stop_gradient(x: Any) -> Array:
    """The array as a constant: nothing flows back through it."""

def stratified(classes: Any, test_share: Any = ..., seed: Any = ...) -> tuple[list[int], list[int]]:
    """Indices of a training and a test set such that each class has the same share of the test set."""

def take(x: Any, index: Any, axis: Any) -> Array:
    """The elements at indices along an axis."""

def take_along(x: Any, index: Any, axis: Any) -> Array:
    """The elements at indices along an axis, each line with its own."""

def tile(x: Any, count: Any, axis: Any) -> Array:
    """The whole so many times along an axis."""

def topk(x: Any, count: Any, axis: Any) -> tuple[Array, Array]:
    """The largest elements along an axis, falling, and where they are."""

def train_digits(epochs: Any, batch: Any, seed: Any, rate: Any, checkpoint: Any, resume: Any, tell: Any, device: Any) -> dict[str, Any]:
    """Trains a small network on the handwritten digits: the run of `loopwright train digits`."""

def tril(x: Any, k: Any) -> Array:
    """Zeros above a diagonal of the last two axes."""

def triu(x: Any, k: Any) -> Array:
    """Zeros below a diagonal of the last two axes."""

def unsqueeze(x: Any, axis: Any) -> Array:
    """With an axis of size 1 more: a view."""

def value_and_gradients(function: Any, variables: Any, arguments: Any, named: Any, optimizer: Any = ...) -> tuple[Any, list[Array]]:
    """What a function gives, and the gradients of its loss with respect to variables."""

def vjp(function: Any, *arguments: Any) -> tuple[Any, Pullback]:
    """What a function gives, and a function from a gradient of that to gradients of the arguments."""

def vmap(function: Any, in_axes: Any, out_axes: Any, arguments: Any, named: Any) -> Any:
    """Calls a function for all examples along an axis of the arguments: `in_axes` is one axis for all of them (a place, a name, or `None`), or one for each; `out_axes` is where the axis goes in the results."""

def vocabulary(text: Any) -> str:
    """The different characters of a text, in the order of their code points."""

def waves(count: Any, length: Any, noise: Any = ..., seed: Any = ...) -> Examples:
    """Sine waves of random phase, and the same one step later."""

def where(condition: Any, a: Any, b: Any) -> Array:
    """Elements of one array where a condition is true, of another elsewhere."""

def window(x: Any, axis: Any, size: Any, stride: Any, dilation: Any, padding: Any, value: Any) -> Array:
    """Windows of an axis: places, and behind them what each shows."""

def write_npy(path: Any, x: Any) -> None:
    """Writes an array to an `.npy` file, which is there as a whole or not at all."""
