"""Optimizers: PyTorch's formulas, written in place.

A step is one `Tensor.realize` of everything that moves: parameters, their moments, and what the optimizer
counts. All of that, the learning rate too, is memory, so every step has the same graph: the second plans and
compiles nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..dtype import ConstType, dtypes, least_upper_dtype
from ..shape import shape_text
from ..tensor import Tensor, no_grad
from ..tensor.trace import called
from .layers import buffer


class Optimizer:
    """What all optimizers share.

    params  the Tensors to train, each once; `nn.state.get_parameters(model)` lists those of a model
    lr      the learning rate, a number or a 0-d Tensor; `opt.lr = 0.01` writes another into the same memory
    """

    def __init__(self, params: Iterable[Tensor], lr: float | Tensor) -> None:
        self.params = _checked(params)
        self.device = self.params[0].device
        # Beside the properties of the same names, so that a state dict has it as `lr`.
        vars(self)["lr"] = self._number(0.0)
        self.lr = lr
        Tensor.realize(*self.params, self.lr)

    @property
    def lr(self) -> Tensor:
        """The learning rate: memory that `step` reads."""
        rate: Tensor = vars(self)["lr"]
        return rate

    @lr.setter
    def lr(self, value: float | Tensor) -> None:
        if isinstance(value, Tensor):
            if value.numel() != 1:
                raise ValueError(f"a learning rate is one number, not shape {shape_text(value.shape)}")
            self.lr.assign(value.detach().reshape(()).to(self.device).cast(dtypes.float32))
        elif isinstance(value, (int, float)) and value >= 0:
            self.lr.assign(self._copied(value))
        else:
            raise ValueError(f"a learning rate is a number that is not negative, or a Tensor, not {value!r}")

    def _number(self, value: float) -> Tensor:
        """A number in memory of its own."""
        return buffer(Tensor.full((), value, dtype=dtypes.float32, device=self.device))

    def _copied(self, value: ConstType) -> Tensor:
        """A number that arrives as data, not as a constant of a kernel: another one compiles nothing new."""
        return Tensor([value], dtype=dtypes.float32, device=self.device).reshape(())

    def _moments(self) -> list[Tensor]:
        """Zeros in the shapes of the parameters; float32 where those are narrower."""
        return [
            buffer(
                Tensor.zeros(*p.shape, dtype=least_upper_dtype(p.dtype, dtypes.float32), device=self.device)
            )
            for p in self.params
        ]

    def zero_grad(self) -> None:
        """Forget the gradients: the next `backward` starts anew."""
        for param in self.params:
            param.grad = None

    def step(self) -> None:
        """Move the parameters once, by their gradients."""
        Tensor.realize(*self.schedule_step())

    def schedule_step(self) -> list[Tensor]:
        """Record a step: it runs when the returned tensors are realized, perhaps with others (the loss)."""
        if not Tensor.training:
            raise RuntimeError(
                f"{type(self).__name__}.step() outside training: put the loop into `with Tensor.train():`"
            )
        grads = self._gradients()
        with no_grad(), called(type(self).__name__):
            extra = self._step(grads)
        return [*self.params, *extra]

    def _gradients(self) -> list[Tensor]:
        missing = [i for i, param in enumerate(self.params) if param.grad is None]
        if len(missing) == len(self.params):
            raise RuntimeError("no parameter has a gradient: call loss.backward() before step()")
        if missing:
            shape = shape_text(self.params[missing[0]].shape)
            raise RuntimeError(
                f"{len(missing)} of {len(self.params)} parameters have no gradient, the first is number "
                f"{missing[0]}, of shape {shape}: the loss does not depend on them; leave them out"
            )
        return [param.grad for param in self.params if param.grad is not None]

    def _step(self, grads: Sequence[Tensor]) -> list[Tensor]:
        """Assign the new values of the parameters and of the optimizer's own state, and return the latter."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it steps")


def _checked(params: Iterable[Tensor]) -> list[Tensor]:
    """The parameters, if they can be trained."""
    if isinstance(params, Tensor):
        raise TypeError("an optimizer takes a list of tensors, not one tensor: put it in a list")
    found = list(params)
    if not found:
        raise ValueError("an optimizer needs at least one parameter")
    place: dict[int, int] = {}
    for i, param in enumerate(found):
        if not isinstance(param, Tensor):
            raise TypeError(f"parameter {i} is no Tensor but {param!r}")
        shape = shape_text(param.shape)
        if id(param) in place:
            raise ValueError(
                f"parameter {i}, of shape {shape}, is parameter {place[id(param)]} again; give each once"
            )
        place[id(param)] = i
        if not param.requires_grad:
            raise ValueError(
                f"parameter {i}, of shape {shape}, does not require a gradient: call requires_grad_() on it, "
                "or leave it out (nn.state.get_parameters(model) lists what can be trained)"
            )
        if param.device != found[0].device:
            raise ValueError(
                f"parameter {i} is on {param.device} and parameter 0 on {found[0].device}: "
                "make one optimizer for each device"
            )
    return found


def _rate(name: str, value: float, below: float = float("inf")) -> float:
    if not 0 <= value < below:
        limit = "is not negative" if below == float("inf") else f"is in [0, {below:g})"
        raise ValueError(f"{name} {limit}; it was given as {value!r}")
    return value


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum where that is not 0.

    g = grad + weight_decay · p
    b = momentum · b + (1 - dampening) · g             the first step takes b = g
    p = p - lr · (g + momentum · b if nesterov else b)
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float | Tensor = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        dampening: float = 0.0,
    ) -> None:
        super().__init__(params, lr)
        self.momentum, self.weight_decay = _rate("momentum", momentum), _rate("weight_decay", weight_decay)
        self.nesterov, self.dampening = nesterov, dampening
        if nesterov and (not momentum or dampening):
            raise ValueError("nesterov needs momentum, and no dampening")
        self.b = self._moments() if momentum else []
        #: what a gradient is multiplied by on its way into b: 1 in the first step
        self.intake = self._number(1.0)
        Tensor.realize(self.intake, *self.b)

    def _step(self, grads: Sequence[Tensor]) -> list[Tensor]:
        for i, (param, grad) in enumerate(zip(self.params, grads, strict=True)):
            move = grad + self.weight_decay * param if self.weight_decay else grad
            if self.momentum:
                b = self.momentum * self.b[i] + (self.intake * move if self.dampening else move)
                self.b[i].assign(b)
                move = move + self.momentum * b if self.nesterov else b
            param.assign((param - self.lr * move).cast(param.dtype))
        if self.momentum and self.dampening:
            self.intake.assign(self.intake * 0.0 + (1.0 - self.dampening))
        return [self.lr, self.intake, *self.b]


class Adam(Optimizer):
    """Adam (Kingma, Ba 2014).

        g = grad + weight_decay · p
        m = b1 · m + (1 - b1) · g                          c1 = 1 - b1ᵗ
        v = b2 · v + (1 - b2) · g²                         c2 = 1 - b2ᵗ
        p = p - lr · (m / c1) / (√(v / c2) + eps)

    c1 and c2 are what the weights in m and v have summed to until step t: averages of ones. Kept like that
    they are exact to float32's rounding, which 1 - b2ᵗ is not while b2ᵗ is close to 1.
    """

    #: whether the decay is a part of the gradient, or shrinks the parameter beside it
    decoupled = False

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float | Tensor = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr)
        self.b1, self.b2, self.eps = _rate("b1", b1, 1.0), _rate("b2", b2, 1.0), _rate("eps", eps)
        self.weight_decay = _rate("weight_decay", weight_decay)
        self.c1, self.c2 = self._number(0.0), self._number(0.0)
        self.m, self.v = self._moments(), self._moments()
        Tensor.realize(self.c1, self.c2, *self.m, *self.v)

    def _step(self, grads: Sequence[Tensor]) -> list[Tensor]:
        b1, b2 = self.b1, self.b2
        c1, c2 = b1 * self.c1 + (1.0 - b1), b2 * self.c2 + (1.0 - b2)
        for param, grad, m_before, v_before in zip(self.params, grads, self.m, self.v, strict=True):
            p = param
            if self.weight_decay:
                if self.decoupled:
                    p = p - self.lr * self.weight_decay * p
                else:
                    grad = grad + self.weight_decay * p
            m = b1 * m_before + (1.0 - b1) * grad
            v = b2 * v_before + (1.0 - b2) * (grad * grad)
            m_before.assign(m)
            v_before.assign(v)
            param.assign((p - self.lr * (m / c1) / ((v / c2).sqrt() + self.eps)).cast(param.dtype))
        self.c1.assign(c1)
        self.c2.assign(c2)
        return [self.lr, self.c1, self.c2, *self.m, *self.v]


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov, Hutter 2017): first p shrinks by lr · weight_decay."""

    decoupled = True

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float | Tensor = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay)
