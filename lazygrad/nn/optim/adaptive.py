"""Optimizers that divide by the size of earlier gradients, without a mean of these: RMSprop, Adagrad, ..."""

from __future__ import annotations

from typing import Any, Unpack

from ...dtype import dtypes, least_upper_dtype
from ...tensor import Tensor
from .optimizer import Common, Optimizer, Params, common, not_negative


class RMSprop(Optimizer):
    """The gradient divided by the root of its mean square (Hinton 2012).

        v = alpha · v + (1 - alpha) · g²               (centered: less the square of the mean gradient a)
        b = momentum · b + g / (√v + eps)              p = p - lr · b

    >>> nn.optim.RMSprop([Tensor([3.0], requires_grad=True)], lr=0.5).lr.item()
    0.5
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        **more: Unpack[Common],
    ) -> None:
        super().__init__(
            params,
            lr,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
            **common(more),
        )

    def _remember(self) -> None:
        self.v = self._moments()
        self.a = self._moments() if any(group["centered"] for group in self.param_groups) else []
        self.b = self._moments() if any(group["momentum"] for group in self.param_groups) else []

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        alpha = options["alpha"]
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        v = alpha * self.v[i] + (1.0 - alpha) * (g * g)
        self._write(self.v[i], v)
        if options["centered"]:
            a = alpha * self.a[i] + (1.0 - alpha) * g
            self._write(self.a[i], a)
            v = v - a * a
        move = g / (v.sqrt() + options["eps"])
        if isinstance(options["momentum"], Tensor) or options["momentum"]:
            move = options["momentum"] * self.b[i] + move
            self._write(self.b[i], move)
        return p - lr * move


class Adagrad(Optimizer):
    """The gradient divided by the root of the sum of all squares until now (Duchi, Hazan, Singer 2011).

        v = v + g²        p = p - lr / (1 + (t - 1) · lr_decay) · g / (√v + eps)

    >>> nn.optim.Adagrad([Tensor([3.0], requires_grad=True)], lr=0.5).lr.item()
    0.5
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.01,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        **more: Unpack[Common],
    ) -> None:
        not_negative("initial_accumulator_value", initial_accumulator_value)
        self.initial_accumulator_value = initial_accumulator_value
        super().__init__(params, lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps, **common(more))

    def _remember(self) -> None:
        self.v, self.t = self._moments(self.initial_accumulator_value), self._number(0.0)

    def _begin(self) -> None:
        self._write(self.t, self.t + 1.0)

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        v = self.v[i] + g * g
        self._write(self.v[i], v)
        rate = lr / (1.0 + (self.t - 1.0) * options["lr_decay"]) if options["lr_decay"] else lr
        return p - rate * g / (v.sqrt() + options["eps"])


class Adadelta(Optimizer):
    """The gradient in units of the steps taken before (Zeiler 2012).

        v = rho · v + (1 - rho) · g²        d = √(u + eps) / √(v + eps) · g
        u = rho · u + (1 - rho) · d²        p = p - lr · d

    >>> nn.optim.Adadelta([Tensor([3.0], requires_grad=True)]).lr.item()
    1.0
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        **more: Unpack[Common],
    ) -> None:
        super().__init__(params, lr, rho=rho, eps=eps, weight_decay=weight_decay, **common(more))

    def _remember(self) -> None:
        self.v, self.u = self._moments(), self._moments()

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        rho, eps = options["rho"], options["eps"]
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        v = rho * self.v[i] + (1.0 - rho) * (g * g)
        d = (self.u[i] + eps).sqrt() / (v + eps).sqrt() * g
        self._write(self.v[i], v)
        self._write(self.u[i], rho * self.u[i] + (1.0 - rho) * (d * d))
        return p - lr * d


class Adafactor(Optimizer):
    """Adam without the memory: a mean square for each row and each column (Shazeer, Stern 2018, Alg. 4, 5).

        b = 1 - t^beta2_decay                              s = g² + eps₁
        r = b · r + (1 - b) · mean over columns of s       c = b · c + (1 - b) · mean over rows of s
        v = r · c / mean of r                              (of vectors v = b · v + (1 - b) · s)
        u = g / √v                                         its root mean square is limited to d
        p = p - lr · weight_decay · p - max(eps₂, rms(p)) · min(lr, 1 / √t) · u

    Rows and columns are the last two axes. eps is (eps₁, eps₂); None for eps₁ is the paper's 1e-30.

    >>> weight = Tensor([[4.0, -4.0]], requires_grad=True)
    >>> optimizer = nn.optim.Adafactor([weight], lr=0.25)
    >>> with Tensor.train():
    ...     _ = (weight * weight).sum().backward()
    ...     optimizer.step()
    >>> weight.tolist()
    [[3.0, -3.0]]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.01,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        **more: Unpack[Common],
    ) -> None:
        if beta2_decay > 0:
            raise ValueError(f"beta2_decay must be at most 0, not {beta2_decay!r}")
        if not d >= 1:
            raise ValueError(f"d, the largest root mean square of a step, must be at least 1, not {d!r}")
        least, floor = 1e-30 if eps[0] is None else eps[0], eps[1]
        super().__init__(
            params,
            lr,
            beta2_decay=beta2_decay,
            eps=(least, floor),
            d=d,
            weight_decay=weight_decay,
            **common(more),
        )

    def _remember(self) -> None:
        self.t = self._number(0.0)
        self.r = [self._mean_square(p, -1) for p in self.params]
        self.c = [self._mean_square(p, -2) for p in self.params if p.ndim > 1]
        #: which of `c` belongs to a parameter: vectors have none
        self._column = [sum(q.ndim > 1 for q in self.params[:i]) for i in range(len(self.params))]

    def _mean_square(self, p: Tensor, axis: int) -> Tensor:
        """Memory for the mean squares over an axis of a matrix; for each square of a vector."""
        shape = list(p.shape)
        if p.ndim > 1:
            shape[axis] = 1
        return self._memory(*shape, dtype=p.dtype)

    def _begin(self) -> None:
        self._write(self.t, self.t + 1.0)

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        least, floor = options["eps"]
        wide = least_upper_dtype(p.dtype, dtypes.float32)
        weights, g = p.cast(wide), g.cast(wide)
        fresh = self.t ** options["beta2_decay"]  # 1 - b
        squares = g * g + least
        if p.ndim > 1:
            c = self.c[self._column[i]]
            rows = _towards(self.r[i], squares.mean(-1, keepdim=True), fresh)
            columns = _towards(c, squares.mean(-2, keepdim=True), fresh)
            self._write(self.r[i], rows)
            self._write(c, columns)
            v = rows / rows.mean(-2, keepdim=True) * columns
        else:
            v = _towards(self.r[i], squares, fresh)
            self._write(self.r[i], v)
        u = g / v.sqrt()
        u = u / (u.square().mean().sqrt() / options["d"]).maximum(1.0)
        rate = weights.square().mean().sqrt().maximum(floor) * lr.minimum(1.0 / self.t.sqrt())
        kept = weights - lr * options["weight_decay"] * weights if options["weight_decay"] else weights
        return kept - rate * u


def _towards(mean: Tensor, value: Tensor, share: Tensor) -> Tensor:
    """A running mean that takes a share of a new value: all of it in the first step."""
    return mean + share * (value - mean)


class Rprop(Optimizer):
    """Only the signs of the gradient count, for whole batches (Riedmiller, Braun 1993; without backtracking).

        s = s · η₊ where the sign stays, s · η₋ where it changes     within step_sizes; at first lr
        p = p - sign(g) · s                                          where it changes, g counts as 0

    etas        (η₋, η₊)
    step_sizes  the least and the greatest s

    >>> weight = Tensor([3.0], requires_grad=True)
    >>> optimizer = nn.optim.Rprop([weight], lr=0.5)
    >>> with Tensor.train():
    ...     _ = (weight * weight).sum().backward()
    ...     optimizer.step()
    >>> weight.tolist()
    [2.5]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.01,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        **more: Unpack[Common],
    ) -> None:
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"etas must be a number in (0, 1) and one above 1, not {etas!r}")
        if not 0 < step_sizes[0] <= step_sizes[1]:
            raise ValueError(f"step_sizes must be positive, the smaller one first, not {step_sizes!r}")
        super().__init__(params, lr, etas=etas, step_sizes=step_sizes, **common(more))

    def _remember(self) -> None:
        self.last = self._moments()
        self.s = self._moments()  # 0: no step was made

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        (shrinks, grows), (least, most) = options["etas"], options["step_sizes"]
        same = g * self.last[i]
        s = (self.s[i] == 0).where(lr, self.s[i])
        s = ((same > 0).where(s * grows, (same < 0).where(s * shrinks, s))).clamp(least, most)
        g = (same < 0).where(0.0, g)
        self._write(self.s[i], s)
        self._write(self.last[i], g)
        return p - g.sign() * s
