"""Optimisers: how parameters follow gradients, and how fast.

All of them work in functions made by ``jit``: moments and counters are variables, which are updated in place with the
parameters. The formulas are PyTorch's.

>>> import loopwright as lw
>>> from loopwright import nn, optim
>>> w = lw.Variable(4.0)
>>> sgd = optim.Sgd(0.25)
>>> loss, gradients = nn.value_and_grad([w], lambda: w * w)()
>>> sgd.update(gradients)
>>> float(w)
2.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _core
from ._core import Array, Clip, Schedule, Variable
from .nn._module import Gradients, entries_of, parameters_of, value_and_grad

__all__ = [
    "Accumulate",
    "Adam",
    "Average",
    "Clip",
    "Lion",
    "LossScale",
    "Optimizer",
    "Schedule",
    "Sgd",
    "clip_by_norm",
    "clip_by_value",
]

Rate = float | Schedule


class Optimizer:
    """What changes parameters by gradients."""

    _optimizer: _core.Optimizer

    def __init__(self, optimizer: _core.Optimizer) -> None:
        self._optimizer = optimizer

    def update(self, gradients: Gradients) -> None:
        """Changes the parameters that gradients belong to, as ``nn.value_and_grad`` gave them."""
        if not isinstance(gradients, Gradients):
            raise TypeError(
                f"{type(gradients).__name__} does not say which parameters the gradients are of; "
                "`apply(model, gradients)` does"
            )
        self.apply(gradients.variables, gradients)

    def apply(self, model: Any, gradients: Mapping[str, Array] | Iterable[Array]) -> None:
        """Changes the parameters of a module by gradients, by name or in the order of ``parameters()``."""
        parameters = parameters_of(model)
        if isinstance(gradients, Mapping):
            missing = [name for name in parameters if name not in gradients]
            unknown = [name for name in gradients if name not in parameters]
            if missing or unknown:
                wrong = [f"there is no gradient of `{name}`" for name in missing]
                wrong += [f"there is no parameter `{name}`" for name in unknown]
                raise ValueError("; ".join(wrong))
            gradients = [gradients[name] for name in parameters]
        self._optimizer.apply(list(parameters.values()), list(gradients))

    def step(self, model: Any, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Changes the parameters of a module by the gradients of what a function gives, and gives that.

        The function gives a loss, or a tuple that begins with one.

        >>> import loopwright as lw
        >>> from loopwright import optim
        >>> w = lw.Variable(4.0)
        >>> float(optim.Sgd(0.25).step([w], lambda: w * w)), float(w)
        (16.0, 2.0)
        """
        value, gradients = value_and_grad(model, function, optimizer=self)(*arguments, **named)
        self.update(gradients)
        return value

    def scaled(self, loss: Array) -> Array:
        """The loss as gradients are to be taken of it."""
        return self._optimizer.scaled(loss)

    def state(self, model: Any) -> dict[str, Variable]:
        """The variables that the optimiser keeps for a module, by name: what a checkpoint keeps of it."""
        entries = entries_of(model).items()
        named = [(name, variable) for name, variable in entries if _is_parameter(variable)]
        return dict(self._optimizer.variables(named))


def _is_parameter(variable: Variable) -> bool:
    return not isinstance(variable, _core.State) and variable.dtype.kind == "real floating"


class Sgd(Optimizer):
    """Stochastic gradient descent, with momentum if wanted.

    Decay of weights is added to the gradient, before momentum; the first momentum is the first gradient.
    """

    def __init__(
        self,
        rate: Rate,
        *,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        clip: Clip | None = None,
    ) -> None:
        super().__init__(_core.Optimizer.sgd(rate, momentum, nesterov, weight_decay, clip))


class Adam(Optimizer):
    """Adam, and with ``decay`` AdamW: parameters are also drawn towards zero, apart from the gradients."""

    def __init__(
        self,
        rate: Rate,
        *,
        decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        clip: Clip | None = None,
    ) -> None:
        super().__init__(_core.Optimizer.adam(rate, betas, epsilon, decay, clip))


class Lion(Optimizer):
    """Lion: steps of one size in the direction of a mean of gradients, with decoupled decay of weights."""

    def __init__(
        self,
        rate: Rate,
        decay: float = 0.0,
        *,
        betas: tuple[float, float] = (0.9, 0.99),
        clip: Clip | None = None,
    ) -> None:
        super().__init__(_core.Optimizer.lion(rate, decay, betas, clip))


class Accumulate(Optimizer):
    """Uses the mean of the gradients of every so many steps: as a larger batch would be."""

    def __init__(self, optimizer: Optimizer, steps: int) -> None:
        super().__init__(_core.Optimizer.accumulate(optimizer._optimizer, steps))


class LossScale(Optimizer):
    """Scales the loss up before gradients are taken, so that small ones are not lost in narrow floats.

    A step in which one overflows is left out and the scale halved; after 2,000 good ones it is doubled. Gradients
    come from ``step``, or from ``nn.value_and_grad(.., optimizer=..)``.
    """

    def __init__(self, optimizer: Optimizer, scale: float = 65_536.0) -> None:
        super().__init__(_core.Optimizer.loss_scale(optimizer._optimizer, scale))

    @property
    def scale(self) -> Array:
        """The scale at this point."""
        return self._optimizer.scale()


class Average:
    """A running average of parameters, which is often better than where they are.

    >>> import loopwright as lw
    >>> from loopwright import optim
    >>> w = lw.Variable(0.0)
    >>> average = optim.Average([w], decay=0.5)
    >>> w.set(1.0)
    >>> average.update()
    >>> average.swap()
    >>> float(w)
    0.5
    """

    def __init__(self, model: Any, decay: float = 0.999) -> None:
        self._average = _core.Average(list(parameters_of(model).values()), decay)

    def update(self) -> None:
        """Moves the average towards the parameters."""
        self._average.update()

    def swap(self) -> None:
        """Puts the averages in the parameters' place, and those in the averages'."""
        self._average.swap()


def _clipped(gradients: Any, clip: Clip) -> Any:
    if isinstance(gradients, Mapping):
        cut = dict(zip(gradients, clip.apply(list(gradients.values())), strict=True))
        return Gradients(cut, gradients.variables) if isinstance(gradients, Gradients) else cut
    return clip.apply(list(gradients))


def clip_by_value(gradients: Any, bound: float) -> Any:
    """Gradients cut off at a bound in either direction: of a dict, or of a list."""
    return _clipped(gradients, Clip.value(bound))


def clip_by_norm(gradients: Any, bound: float) -> Any:
    """Gradients scaled down together where their length as one vector is above a bound.

    >>> import loopwright as lw
    >>> from loopwright import optim
    >>> [round(x, 3) for x in optim.clip_by_norm([lw.asarray([3.0, 4.0])], 1.0)[0].tolist()]
    [0.6, 0.8]
    """
    return _clipped(gradients, Clip.norm(bound))
