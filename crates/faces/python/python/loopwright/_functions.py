"""Functions of functions: compiled, differentiated, mapped over an axis."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from . import _core

__all__ = [
    "checkpoint",
    "custom_gradient",
    "grad",
    "hessian",
    "jacobian",
    "jit",
    "jvp",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
]

stop_gradient = _core.stop_gradient


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    dynamic: Sequence[tuple[int, int] | str] = (),
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Any:
    """A function that becomes one routine when it is first called with arguments of some shapes.

    It is called once with arrays that stand for its arguments; what it makes of them is compiled, and further calls with
    arguments of the same shapes and dtypes run that. Variables that it sets are updated in place. Arguments and results
    are arrays, numbers, and lists, tuples, dicts and data classes of such; anything else is a part of the program.

    ``dynamic`` names axes that may have any size, by argument and axis, ``(0, 0)``, or by their name, ``"batch"``: one
    program then serves all sizes. ``static_argnums`` and ``static_argnames`` are arguments that decide what the program
    is, such as a number of layers.

    >>> import loopwright as lw
    >>> @lw.jit
    ... def length(x):
    ...     return lw.sqrt(lw.sum(x * x))
    >>> float(length(lw.asarray([3.0, 4.0])))
    5.0
    >>> len(length.reports())  # traced once
    1
    """
    if function is None:
        return functools.partial(
            jit,
            name=name,
            dynamic=dynamic,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    numbers = [static_argnums] if isinstance(static_argnums, int) else list(static_argnums)
    names = [static_argnames] if isinstance(static_argnames, str) else list(static_argnames)
    return _core.Function(function, name, list(dynamic), numbers, names)


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Any:
    """A function that gives the gradient of one that gives a number.

    >>> import loopwright as lw
    >>> slope = lw.grad(lambda x: x * x * x)
    >>> float(slope(lw.asarray(2.0)))
    12.0
    >>> float(lw.grad(slope)(lw.asarray(2.0)))
    12.0
    """
    return _core.Gradient(function, argnums, False, has_aux)


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Any:
    """A function that gives what another gives, a number, and its gradient.

    With ``has_aux`` the function gives a pair of the number and anything else, which comes back beside the number.

    >>> import loopwright as lw
    >>> def loss(w, x):
    ...     return lw.sum((w * x) ** 2)
    >>> value, slope = lw.value_and_grad(loss)(lw.asarray([1.0, 2.0]), lw.asarray([3.0, 1.0]))
    >>> float(value), slope.tolist()
    (13.0, [18.0, 4.0])
    """
    return _core.Gradient(function, argnums, True, has_aux)


def vjp(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
    """What a function gives, and a function from a gradient of that to the gradients of the arguments.

    >>> import loopwright as lw
    >>> value, pull = lw.vjp(lambda x: x * x, lw.asarray([1.0, 2.0]))
    >>> pull(lw.asarray([1.0, 10.0]))[0].tolist()
    [2.0, 40.0]
    """
    return _core.vjp(function, *arguments)


def jvp(
    function: Callable[..., Any], arguments: Sequence[Any], directions: Sequence[Any]
) -> tuple[Any, Any]:
    """What a function gives, and how much that changes as the arguments change in directions.

    >>> import loopwright as lw
    >>> value, change = lw.jvp(lambda x: x * x, (lw.asarray([1.0, 2.0]),), (lw.asarray([1.0, 0.5]),))
    >>> change.tolist()
    [2.0, 2.0]
    """
    return _core.jvp(function, tuple(arguments), tuple(directions))


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function over one example as a function over many, along an axis of its arguments.

    ``in_axes`` is the axis of all arguments, or one for each positional argument: a place, a name, or ``None`` for an
    argument that is the same for all examples. ``out_axes`` is where the axis goes in what the function gives.

    >>> import loopwright as lw
    >>> dot = lambda a, b: lw.sum(a * b)
    >>> rows = lw.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> lw.vmap(dot, in_axes=(0, None))(rows, lw.asarray([1.0, 10.0])).tolist()
    [21.0, 43.0]
    """

    @functools.wraps(function)
    def mapped(*arguments: Any, **named: Any) -> Any:
        return _core.vmap(function, in_axes, out_axes, arguments, named or None)

    return mapped


def jacobian(function: Callable[..., Any], forward: bool = False) -> Callable[..., Any]:
    """A function that gives the derivative of each element of what another gives by each element of its arguments.

    Arguments and results may be trees (tuples, lists, dicts, ...) of arrays: for each array of the result there is a tree
    like the argument, or a tuple of such where there are several arguments.

    >>> import loopwright as lw
    >>> lw.jacobian(lambda x: x * x)(lw.asarray([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(function)
    def derivative(*arguments: Any) -> Any:
        return _core.jacobian(function, arguments, forward)

    return derivative


def hessian(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives the second derivatives of one that gives a number.

    Arguments may be trees of arrays: for each array there is a tree like the argument, or a tuple of such where there
    are several arguments.

    >>> import loopwright as lw
    >>> lw.hessian(lambda x: lw.sum(x * x * x))(lw.asarray([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """

    @functools.wraps(function)
    def derivative(*arguments: Any) -> Any:
        return _core.hessian(function, arguments)

    return derivative


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose inner values are computed again where gradients need them, in place of being kept.

    >>> import loopwright as lw
    >>> wave = lw.checkpoint(lambda x: lw.sin(lw.sin(x)))
    >>> round(float(lw.grad(wave)(lw.asarray(0.0))), 6)
    1.0
    """

    @functools.wraps(function)
    def again(*arguments: Any) -> Any:
        return _core.checkpoint(function, *arguments)

    return again


def custom_gradient(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a function of arrays a gradient of its own: ``backward(arguments, value, gradient)``.

    >>> import loopwright as lw
    >>> @lw.custom_gradient(lambda arguments, value, gradient: (gradient * 0.5,))
    ... def half_slope(x):
    ...     return x
    >>> float(lw.grad(half_slope)(lw.asarray(3.0)))
    0.5
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any) -> Any:
            return _core.custom_gradient(function, backward, *arguments)

        return call

    return decorate
