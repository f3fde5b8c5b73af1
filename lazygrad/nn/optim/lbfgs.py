"""L-BFGS: steps by an approximation of the second derivatives, from the last steps and their gradients.

The two loops of Nocedal and Wright (Numerical Optimization, 2006, algorithm 7.4) use vectors only in dot
products and sums. So the vectors stay in memory, and the loops run on the host over the numbers that the
products are (Chen, Wang, Zhou, Large-scale L-BFGS using MapReduce, 2014): a direction is two kernels,
whatever the history, and none is compiled anew as it grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...dtype import dtypes, least_upper_dtype
from ...tensor import Tensor, no_grad
from .line_search import Trial, strong_wolfe
from .optimizer import Optimizer, Params, check_training

#: Evaluations of one line search, at most.
MOST_TRIALS = 25
#: A step whose gradient changed by less than this, along it, teaches nothing.
LEAST_CURVATURE = 1e-10


class LBFGS(Optimizer):
    """Limited-memory BFGS (Liu, Nocedal 1989): for few parameters and losses without noise.

    max_iter          iterations of one `step`
    max_eval          evaluations of the loss in one `step`, 1.25 · max_iter if not given
    tolerance_grad    it is done where no element of the gradient is greater
    tolerance_change  and where the loss, or every parameter, changes by less
    history_size      so many steps are remembered: twice as many copies of the parameters
    line_search_fn    "strong_wolfe", or None: every step has the length `lr`

    `step` takes a closure, which computes the loss again, and needs to be called several times.

    >>> x = Tensor([-1.0, 2.0], requires_grad=True)
    >>> optimizer = nn.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     return ((x - Tensor([3.0, 4.0])).square() * Tensor([1.0, 9.0])).sum().backward()
    >>> with Tensor.train():
    ...     _ = optimizer.step(closure)
    >>> x.round(decimals=3).tolist()
    [3.0, 4.0]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"line_search_fn must be 'strong_wolfe' or None, not {line_search_fn!r}")
        if history_size < 1 or max_iter < 1:
            raise ValueError(
                f"history_size and max_iter must be at least 1, not {history_size} and {max_iter}"
            )
        self.history_size = history_size
        super().__init__(
            params,
            lr,
            max_iter=max_iter,
            max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
            tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change,
            line_search_fn=line_search_fn,
        )
        if len(self.param_groups) > 1:
            raise ValueError("LBFGS takes no groups: all parameters move together")

    def _remember(self) -> None:
        self._sizes = [p._static_numel() for p in self.params]
        size, wide = sum(self._sizes), least_upper_dtype(*(p.dtype for p in self.params), dtypes.float32)
        #: rows: the steps, then the changes of the gradient, each from its first place on in turns
        self.pairs = self._memory(2 * self.history_size, size, dtype=wide)
        #: (2 · history_size, 2 · history_size): the products of these rows
        self.products = self._memory(2 * self.history_size, 2 * self.history_size, dtype=wide)
        self.direction = self._memory(size, dtype=wide)
        self.last_grad = self._memory(size, dtype=wide)
        #: steps made, pairs kept, the length of the last step, and the scale of the first approximation
        self.counts = self._memory(4, dtype=wide)

    def schedule_step(self, only_if: Tensor | None = None) -> list[Tensor]:
        """Not for LBFGS: a step is no fixed computation."""
        raise NotImplementedError("LBFGS evaluates the loss several times: call step(closure)")

    def step(self, closure: Callable[[], Any] | None = None, only_if: Tensor | None = None) -> Any:
        """Up to `max_iter` iterations; the loss before them, as the closure gave it.

        closure  forgets the gradients, computes the loss, calls `backward()` and returns the loss
        """
        if closure is None:
            raise TypeError(
                "LBFGS.step takes a closure: it zeroes the gradients, calls backward, gives the loss"
            )
        if only_if is not None:
            raise NotImplementedError("LBFGS.step has no only_if")
        check_training(self)
        return _Step(self, closure).run()


class _Step:
    """One call of `step`: what it knows on the host."""

    def __init__(self, owner: LBFGS, closure: Callable[[], Any]) -> None:
        self.of, self.closure = owner, closure
        self.options: dict[str, Any] = owner.param_groups[0].options()
        self.evaluations = 0
        self.history = owner.history_size
        made, kept, self.length, self.scale = owner.counts.tolist()
        self.made, self.pairs = int(made), int(kept)
        self.products: list[list[float]] = owner.products.tolist()

    def run(self) -> Any:
        options, tolerance = self.options, self.options["tolerance_change"]
        first, grad = self._evaluated()
        value, sizes = first.item(), self._sizes_of(grad)
        rate = float(self.of.lr.item())
        for number in range(1, options["max_iter"] + 1):
            if sizes[0] <= options["tolerance_grad"]:
                break
            with no_grad():
                self._update_direction(grad)
                slope, reach = _numbers((self.of.direction * grad).sum(), self.of.direction.abs().max())
            self.made += 1
            self.length = min(1.0, 1.0 / sizes[1]) * rate if self.made == 1 else rate
            if slope > -tolerance:
                break
            before = value
            start = self._flat([p.detach() for p in self.of.params]).contiguous().realize()
            if options["line_search_fn"]:
                value, grad = self._searched(start, Trial(0.0, value, slope), grad, tolerance / reach)
            else:
                self._go(start, self.length)
                if number == options["max_iter"]:
                    break
                loss, grad = self._evaluated()
                value = loss.item()
            sizes = self._sizes_of(grad)
            if self.evaluations >= options["max_eval"]:
                break
            if reach * self.length <= tolerance or abs(value - before) < tolerance:
                break
        self.of.counts.assign(self._data([self.made, self.pairs, self.length, self.scale]))
        self.of.products.assign(self._data(self.products))
        Tensor.realize(self.of.counts, self.of.products)
        return first

    def _searched(self, start: Tensor, here: Trial, grad: Tensor, shortest: float) -> tuple[float, Tensor]:
        """The loss and the gradient a step further, its length by the strong Wolfe conditions."""
        grads = {0.0: grad}

        def evaluate(t: float) -> Trial:
            self._go(start, t)
            loss, found = self._evaluated()
            grads[t] = found
            return Trial(t, *_numbers(loss, (self.of.direction * found).sum()))

        found = strong_wolfe(evaluate, here, self.length, MOST_TRIALS, shortest)
        self.length = found.t
        self._go(start, found.t)
        return found.value, grads[found.t]

    def _evaluated(self) -> tuple[Tensor, Tensor]:
        """The loss, and the gradients of all parameters in one line."""
        self.evaluations += 1
        loss = self.closure()
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise TypeError(f"the closure of LBFGS returns the loss, a Tensor of one element, not {loss!r}")
        grad = self._flat(self.of._gradients()).contiguous()
        loss = loss.detach().cast(grad.dtype)
        Tensor.realize(loss, grad)
        return loss, grad

    def _flat(self, tensors: list[Tensor]) -> Tensor:
        with no_grad():
            wide = [t.reshape((-1,)).cast(self.of.direction.dtype) for t in tensors]
            return wide[0].cat(*wide[1:])

    def _sizes_of(self, grad: Tensor) -> list[float]:
        """The greatest element of a gradient by size, and the sum of the sizes."""
        with no_grad():
            return _numbers(grad.abs().max(), grad.abs().sum())

    def _go(self, start: Tensor, length: float) -> None:
        """Write the parameters: so far from where they were, along the direction."""
        with no_grad():
            there = start + self._data([length]) * self.of.direction
            parts = there.split(self.of._sizes)
            for p, part in zip(self.of.params, parts, strict=True):
                p.assign(part.reshape(p.shape).cast(p.dtype))
            Tensor.realize(*self.of.params)

    def _data(self, numbers: list[Any]) -> Tensor:
        """Numbers that arrive as data: others compile nothing new."""
        return Tensor(numbers, dtype=self.of.direction.dtype, device=self.of.device)

    def _update_direction(self, grad: Tensor) -> None:
        """Write the next direction, and remember the last step and what it changed in the gradient."""
        of = self.of
        if self.made == 0:
            of.direction.assign(-grad)
            of.last_grad.assign(grad)
            Tensor.realize(of.direction, of.last_grad)
            self.scale = 1.0
            return
        step, change = of.direction * self._data([self.length]), grad - of.last_grad
        (curvature,) = _numbers((step * change).sum())
        if curvature > LEAST_CURVATURE:
            self._keep(step, change, curvature)
        row = (of.pairs * grad).sum(1)
        of.last_grad.assign(grad)
        weights, of_grad = self._loops(row.tolist())
        made = (of.pairs * self._data(weights).reshape((-1, 1))).sum(0) + grad * self._data([of_grad])
        of.direction.assign(made)
        Tensor.realize(of.direction, of.last_grad)

    def _keep(self, step: Tensor, change: Tensor, curvature: float) -> None:
        """Write a pair where the oldest is, and its products with all others."""
        of, m = self.of, self.history
        place = self.pairs % m
        index = Tensor.arange(2 * m, device=of.device).reshape((-1, 1))
        at = Tensor([place], dtype=index.dtype, device=of.device)
        of.pairs.assign((index == at).where(step, (index == at + m).where(change, of.pairs)).contiguous())
        of.pairs.realize()
        rows = Tensor.stack((of.pairs * step).sum(1), (of.pairs * change).sum(1))
        for number, products in zip((place, place + m), rows.tolist(), strict=True):
            self.products[number] = products
            for other, product in enumerate(products):
                self.products[other][number] = product
        self.pairs += 1
        self.scale = curvature / self.products[place + m][place + m]

    def _loops(self, of_grad: list[float]) -> tuple[list[float], float]:
        """The direction as a sum: what each row of `pairs` counts in it, and the gradient.

        of_grad  the products of the rows with the gradient
        """
        m, kept = self.history, self.pairs
        order = [number % m for number in range(max(0, kept - m), kept)]  # from the oldest on
        weights, share = [0.0] * (2 * m), -1.0

        def product(row: int) -> float:
            """Of a row and the sum so far."""
            return math.fsum(map(float.__mul__, self.products[row], weights)) + share * of_grad[row]

        alphas = {}
        for place in reversed(order):
            alphas[place] = product(place) / self.products[place][place + m]
            weights[place + m] -= alphas[place]
        weights, share = [weight * self.scale for weight in weights], share * self.scale
        for place in order:
            beta = product(place + m) / self.products[place][place + m]
            weights[place] += alphas[place] - beta
        return weights, share


def _numbers(*values: Tensor) -> list[float]:
    """Several numbers, read at once."""
    read: list[float] = Tensor.stack(*(v.reshape(()) for v in values)).tolist()
    return read
