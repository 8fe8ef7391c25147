"""Modules: things with parameters, which are found by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import Array, DType, Generator, Variable

Variables = Mapping[str, Variable]


class Module:
    """Something with parameters: a layer, a network.

    Attributes that are variables, modules, or lists, tuples and dicts of them are found, in the order in which
    they were set, by their names joined by dots. ``Parameter`` and other variables of floats are trained,
    ``State`` is kept and not trained.

    >>> import loopwright as lw
    >>> from loopwright import nn
    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         self.hidden = [nn.Dense(8), nn.Dense(8)]
    ...         self.scale = nn.Parameter(1.0)
    ...         self.uses = nn.State(0)
    ...     def forward(self, x):
    ...         for layer in self.hidden:
    ...             x = lw.tanh(layer(x))
    ...         return x * self.scale
    >>> net = Net()
    >>> net(lw.ones((1, 2))).shape
    (1, 8)
    >>> list(net.parameters())
    ['hidden.0.weight', 'hidden.0.bias', 'hidden.1.weight', 'hidden.1.bias', 'scale']
    >>> net.count()
    97
    """

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.forward(*arguments, **named)

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """What the module makes of its arguments."""
        raise NotImplementedError(f"{type(self).__name__} has no method `forward`")

    def children(self) -> Iterator[tuple[str, Any]]:
        """The attributes that parameters are looked for in, by name."""
        yield from vars(self).items()

    def entries(self) -> dict[str, Variable]:
        """All parameters and states by name."""
        found: dict[str, Variable] = {}
        _collect("", self, found, ())
        return found

    def parameters(self) -> dict[str, Variable]:
        """The variables that are trained, by name: those that are not frozen, each once."""
        return _trained(self.entries())

    def states(self) -> dict[str, Variable]:
        """The variables that are kept and not trained, by name."""
        return {name: found for name, found in self.entries().items() if not found.trained}

    def state_dict(self) -> dict[str, Array]:
        """The values of all parameters and states at this point, by name."""
        return {name: variable.get() for name, variable in self.entries().items()}

    def load_state_dict(self, values: Mapping[str, Any], *, strict: bool = True) -> None:
        """Sets parameters and states by name: all of them, or none where something does not fit.

        Without ``strict``, names that are only on one side are left alone.
        """
        entries = self.entries()
        missing = [name for name in entries if name not in values]
        unexpected = [name for name in values if name not in entries]
        if strict and (missing or unexpected):
            lines = [f"  missing `{name}`" for name in missing]
            lines += [f"  unexpected `{name}`" for name in unexpected]
            raise ValueError("the values are not those of this module:\n" + "\n".join(lines))
        chosen = {name: entries[name] for name in entries if name in values}
        arrays = []
        for name, variable in chosen.items():
            value = _core.asarray(values[name])
            sizes = zip(variable.shape, value.shape, strict=False)
            fits = variable.ndim == value.ndim and all(a is None or a == b for a, b in sizes)
            if not fits or value.dtype != variable.dtype:
                raise ValueError(
                    f"`{name}` is {variable.dtype}{list(variable.shape)}, and "
                    f"{value.dtype}{list(value.shape)} was given"
                )
            arrays.append(value)
        _core.assign(list(chosen.values()), arrays)

    def freeze(self, frozen: bool = True) -> None:
        """Leaves all parameters out of training, or takes them in again."""
        for variable in self.entries().values():
            if not isinstance(variable, _core.State) and variable.dtype.kind == "real floating":
                variable.freeze(frozen)

    def count(self) -> int:
        """How many numbers are trained, as far as their shapes are known yet."""
        return sum(variable.size or 0 for variable in self.parameters().values())

    def __repr__(self) -> str:
        name = type(self).__name__
        rows = []
        for key, value in self.children():
            if isinstance(value, Module | Variable | list | tuple | dict):
                found: dict[str, Variable] = {}
                _collect("", value, found, ())
                if isinstance(value, Module) or found:
                    rows.append(f"  {key}: " + _shown(value).replace("\n", "\n  "))
        return f"{name}(\n" + "\n".join(rows) + "\n)" if rows else f"{name}()"


def _shown(value: Any) -> str:
    if isinstance(value, Variable):
        return f"{type(value).__name__}({value.dtype}{list(value.shape)})"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(part)}" for key, part in value.items()) + "}"
    return repr(value)


def _collect(name: str, value: Any, found: dict[str, Variable], inside: tuple[int, ...]) -> None:
    """Finds the variables of a value."""
    dot = f"{name}." if name else ""
    if isinstance(value, Variable):
        found[name] = value
    elif isinstance(value, _core.Layer):
        # What a layer keeps in Rust has the names of the layer itself.
        found.update((dot + key, variable) for key, variable in value.entries())
    elif isinstance(value, Generator):
        found[dot + "count"] = value.count
    elif isinstance(value, Module | list | tuple | dict):
        if id(value) in inside:
            raise ValueError(f"`{name}` contains itself, so its parameters have no names")
        inside = (*inside, id(value))
        if isinstance(value, Module):
            for key, part in value.children():
                here = name if isinstance(part, _core.Layer) else dot + key
                _collect(here, part, found, inside)
        elif isinstance(value, dict):
            for key, part in value.items():
                _collect(f"{dot}{key}", part, found, inside)
        else:
            for at, part in enumerate(value):
                _collect(f"{dot}{at}", part, found, inside)


def _trained(entries: Variables) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    seen: set[int] = set()
    for name, variable in entries.items():
        # One that stands in two places is trained once.
        if variable.trained and variable.id not in seen:
            seen.add(variable.id)
            found[name] = variable
    return found


def parameters_of(model: Any) -> dict[str, Variable]:
    """The variables that are trained: of a module, or of a dict, list or tuple of such things."""
    if isinstance(model, Module):
        return model.parameters()
    found: dict[str, Variable] = {}
    _collect("", model, found, ())
    if not found:
        raise TypeError(
            f"{type(model).__name__} has no variables; give a module, or a dict or list of variables"
        )
    return _trained(found)


def entries_of(model: Any) -> dict[str, Variable]:
    """All variables of a module, or of a dict, list or tuple of such things."""
    if isinstance(model, Module):
        return model.entries()
    found: dict[str, Variable] = {}
    _collect("", model, found, ())
    return found


class Sequential(Module):
    """Layers one after the other. Their parameters are called by their places.

    Functions of one array can stand between them.

    >>> import loopwright as lw
    >>> from loopwright import nn
    >>> net = nn.Sequential(nn.Dense(4), lw.tanh, nn.Dense(1))
    >>> net(lw.ones((2, 3))).shape
    (2, 1)
    >>> list(net.parameters())
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """

    def __init__(self, *layers: Callable[[Array], Array]) -> None:
        self.layers = list(layers)

    def then(self, layer: Callable[[Array], Array]) -> Sequential:
        """The same with one more layer."""
        return Sequential(*self.layers, layer)

    def children(self) -> Iterator[tuple[str, Any]]:
        yield from ((str(at), layer) for at, layer in enumerate(self.layers))

    def forward(self, x: Array) -> Array:
        for layer in self.layers:
            x = layer(x)
        return x

    def __getitem__(self, at: int) -> Any:
        return self.layers[at]

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)


class Gradients(dict[str, Array]):
    """Gradients by the names of parameters, with the variables that they belong to."""

    variables: dict[str, Variable]

    def __init__(self, gradients: Mapping[str, Array], variables: Variables) -> None:
        super().__init__(gradients)
        self.variables = dict(variables)


def value_and_grad(
    model: Any, function: Callable[..., Any], *, optimizer: Any = None
) -> Callable[..., tuple[Any, Gradients]]:
    """A function that gives what another one gives, a loss, and its gradients by the parameters of a model.

    ``model`` is a module, or a dict or list of variables. Where the function gives a tuple, the loss is the first
    of it. An ``optimizer`` that scales the loss, as ``LossScale`` does, is said here.

    >>> import loopwright as lw
    >>> from loopwright import nn
    >>> line = nn.Dense(1, bias=False, init=nn.Init("ones"))
    >>> x, y = lw.asarray([[1.0, 2.0]]), lw.asarray([[5.0]])
    >>> step = nn.value_and_grad(line, lambda x, y: nn.mean_squared_error(line(x), y))
    >>> loss, gradients = step(x, y)
    >>> float(loss), gradients["weight"].tolist()
    (4.0, [[-4.0, -8.0]])
    """

    def gradient(*arguments: Any, **named: Any) -> tuple[Any, Gradients]:
        variables = parameters_of(model)
        rust = None if optimizer is None else optimizer._optimizer
        value, found = _core.value_and_gradients(
            function, list(variables.values()), arguments, named, rust
        )
        return value, Gradients(dict(zip(variables, found, strict=True)), variables)

    return gradient


def grad(
    model: Any, function: Callable[..., Any], *, optimizer: Any = None
) -> Callable[..., Gradients]:
    """As ``value_and_grad``, with the gradients alone."""
    both = value_and_grad(model, function, optimizer=optimizer)

    def gradient(*arguments: Any, **named: Any) -> Gradients:
        return both(*arguments, **named)[1]

    return gradient


@contextmanager
def training() -> Iterator[None]:
    """A ``with`` block, or a decorator, in which layers behave as in training.

    Dropout drops, batch norms use the batch and update their running statistics.

    >>> from loopwright import nn
    >>> with nn.training():
    ...     nn.is_training()
    True
    >>> nn.is_training()
    False
    """
    before = _core.set_training(True)
    try:
        yield
    finally:
        _core.set_training(before)


@contextmanager
def inference() -> Iterator[None]:
    """A ``with`` block in which layers behave as in use, which is how they behave where nothing is said."""
    before = _core.set_training(False)
    try:
        yield
    finally:
        _core.set_training(before)


@contextmanager
def mixed_precision(dtype: DType | str) -> Iterator[None]:
    """A ``with`` block in which layers multiply ``float32`` matrices in ``bfloat16`` or ``float16``.

    Operands of matrix products and convolutions are rounded to it, and so are gradients on their way through them;
    products are summed up in ``float32``. Parameters, sums, norms, losses and optimisers stay as they are.
    ``optim.LossScale`` keeps gradients that are too small for ``float16``.
    """
    before = _core.set_mixed_precision(dtype)
    try:
        yield
    finally:
        _core.set_mixed_precision(before)


def data_parallel(
    model: Any,
    optimizer: Any,
    loss: Callable[..., Array],
    *,
    streams: int = 2,
    device: Any = None,
) -> _core.DataParallel:
    """A training step in which every stream computes the gradients of an equal part of the batch.

    ``loss`` is called with the arrays of a part, as in training. The optimiser uses the mean of the gradients. With a loss
    that is a mean over the batch, the weights become what they would be on one stream.

    >>> import loopwright as lw
    >>> from loopwright import nn, optim
    >>> nn.seed(3)
    >>> line = nn.Dense(1)
    >>> step = nn.data_parallel(
    ...     line, optim.Sgd(0.1), lambda x, y: nn.mean_squared_error(line(x), y), streams=2
    ... )
    >>> x = lw.reshape(lw.arange(8.0), (8, 1)) / 8
    >>> losses = [float(step(x, x * 2 + 1)) for _ in range(100)]
    >>> losses[-1] < 0.1 * losses[0]
    True
    """
    if streams < 1:
        raise ValueError(f"a step works on at least one stream, not {streams}")
    entries = list(entries_of(model).items())
    return _core.DataParallel(entries, optimizer._optimizer, loss, streams, device)
