"""State-space layers: linear recurrences over a sequence, h' = A h + B x and y = C h, in `Tensor.scan`.

`S4D` has the same diagonal A at all times (Gu et al. 2022); in `Mamba` B, C and the step depend on the input
(Gu & Dao 2023). Weights have the names of the authors' implementations, so that their files load.
"""

from __future__ import annotations

import math
from typing import Any

from ..device import Devices
from ..shape import shape_text
from ..tensor import Tensor
from ..tensor.signatures import DTypeLike, Numbers
from .convolution import Conv1d
from .layers import Linear
from .module import Module
from .parameters import count, need_tensors, parameter

#: Between which steps a layer begins, evenly in their logarithms, and the least one (Gu & Dao 2023, 3.6).
STEP_MIN, STEP_MAX, STEP_FLOOR = 1e-3, 1e-1, 1e-4


def selective_scan(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    delta_bias: Tensor | None = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
) -> Any:
    """The recurrence of Mamba (Gu & Dao 2023, algorithm 2), over the last axis of `u`:

        h_t = exp(delta_t A) h_(t-1) + delta_t B_t u_t,    y_t = C_t h_t + D u_t,    h_(-1) = 0

    u, delta    (batch, dim, length)         A  (dim, state), negative         B, C  (batch, state, length)
    D           (dim,), or None for 0        z  (batch, dim, length): the result is y · silu(z)
    delta_bias  (dim,), added to delta; with `delta_softplus` the step is the softplus of it

    Gives y (batch, dim, length); with `return_last_state` also h after the last step, (batch, dim, state).

    >>> u = Tensor.ones(1, 2, 3)
    >>> nn.selective_scan(u, u, Tensor([[0.0], [0.0]]), Tensor.ones(1, 1, 3), Tensor.ones(1, 1, 3)).tolist()
    [[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]]
    """
    for name, value in (("u", u), ("delta", delta), ("A", A), ("B", B), ("C", C)):
        if not isinstance(value, Tensor):
            raise TypeError(f"selective_scan: {name} must be a Tensor, not {value!r}")
    if u.ndim != 3 or A.ndim != 2:
        raise ValueError(
            "selective_scan needs u of shape (batch, dim, length) and A of shape (dim, state), "
            f"not {shape_text(u.shape)} and {shape_text(A.shape)}"
        )
    batch, dim, length = u.shape
    state = A.shape[1]
    wanted: list[tuple[str, Tensor | None, tuple[Any, ...]]] = [
        ("delta", delta, (batch, dim, length)), ("A", A, (dim, state)),
        ("B", B, (batch, state, length)), ("C", C, (batch, state, length)),
        ("D", D, (dim,)), ("z", z, (batch, dim, length)), ("delta_bias", delta_bias, (dim,)),
    ]  # fmt: skip
    for name, given, shape in wanted:
        if given is not None and given.shape != shape:
            raise ValueError(
                f"selective_scan needs {name} of shape {shape_text(shape)}, not {shape_text(given.shape)}"
            )
    if delta_bias is not None:
        delta = delta + delta_bias.unsqueeze(1)
    if delta_softplus:
        delta = delta.softplus()

    def step(h: Tensor, given: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        step, entering, b, c = given
        h = (step.unsqueeze(2) * A).exp() * h + entering.unsqueeze(2) * b.unsqueeze(1)
        return h, (h * c.unsqueeze(1)).sum(2)

    begin = Tensor.zeros(batch, dim, state, dtype=u.dtype, device=u.device)
    walked = tuple([x.permute(2, 0, 1).contiguous() for x in (delta, delta * u, B, C)])
    last, outputs = Tensor.scan(step, begin, walked)
    y = outputs.permute(1, 2, 0)
    if D is not None:
        y = y + u * D.unsqueeze(1)
    if z is not None:
        y = y * z.silu()
    return (y, last) if return_last_state else y


class Mamba(Module):
    """A block with a selective state space (Gu & Dao 2023, figure 3): (batch, length, d_model) → the same.

    d_state  the size of the state of each channel         d_conv  the width of the causal convolution
    expand   channels inside are `expand · d_model`        dt_rank  the rank of what gives the steps

    in_proj, conv1d, x_proj, dt_proj, out_proj, A_log (channels, d_state), D (channels,)

    >>> nn.Mamba(4, d_state=3)(Tensor.ones(2, 5, 4)).shape
    (2, 5, 4)
    """

    def __init__(
        self,
        d_model: int,
        d_state: int = 16,
        d_conv: int = 4,
        expand: int = 2,
        dt_rank: int | None = None,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        self.d_model, self.d_state = count("d_model", d_model), count("d_state", d_state)
        self.d_conv, self.d_inner = count("d_conv", d_conv), count("expand", expand) * d_model
        rank = self.dt_rank = math.ceil(d_model / 16) if dt_rank is None else count("dt_rank", dt_rank)
        placement: Any = {"device": device, "dtype": dtype}
        made: Any = {**placement, "generator": generator}
        inner = self.d_inner
        self.in_proj = Linear(d_model, 2 * inner, bias=False, **made)
        self.conv1d = Conv1d(inner, inner, d_conv, padding=d_conv - 1, groups=inner, **made)
        self.x_proj = Linear(inner, rank + 2 * d_state, bias=False, **made)
        self.dt_proj = Linear(rank, inner, **made)
        self.dt_proj.weight = parameter(
            Tensor.uniform(inner, rank, low=-(rank**-0.5), high=rank**-0.5, **made)
        )
        step = _steps(inner, made).maximum(STEP_FLOOR)
        self.dt_proj.bias = parameter(step + (1 - (-step).exp()).log())  # softplus of it is the step
        rates = Tensor.arange(1, d_state + 1, **placement).log()
        self.A_log = parameter(rates.unsqueeze(0).expand(inner, d_state))
        self.D = parameter(Tensor.ones(inner, **placement))
        self.out_proj = Linear(inner, d_model, bias=False, **made)

    def __call__(self, x: Tensor) -> Tensor:
        _need_sequence(self, x, self.d_model)
        u, z = self.in_proj(x).transpose(1, 2).chunk(2, 1)
        u = self.conv1d(u)[:, :, : x.shape[1]].silu()  # what is to the right of a step is cut off
        low, B, C = self.x_proj(u.transpose(1, 2)).split([self.dt_rank, self.d_state, self.d_state], 2)
        delta = low.dot(self.dt_proj.weight.transpose(0, 1)).transpose(1, 2)
        y = selective_scan(
            u,
            delta,
            -self.A_log.exp(),
            B.transpose(1, 2),
            C.transpose(1, 2),
            self.D,
            z,
            self.dt_proj.bias,
            True,
        )
        return self.out_proj(y.transpose(1, 2))


class S4D(Module):
    """A diagonal state space for each channel (Gu et al. 2022): (batch, length, d_model) → the same.

        h_t = e^(dt A) h_(t-1) + (e^(dt A) - 1)/A u_t,    y_t = 2 Re(C h_t) + D u_t

    with complex A, C and h: of `d_state` conjugate numbers, one of each pair. A begins as -1/2 + i pi n.

    log_dt (d_model,), log_A_real and A_imag (d_model, d_state/2), C (d_model, d_state/2, 2), D (d_model,)

    >>> nn.S4D(4, d_state=6)(Tensor.ones(2, 5, 4)).shape
    (2, 5, 4)
    """

    def __init__(
        self,
        d_model: int,
        d_state: int = 64,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        self.d_model, self.d_state = count("d_model", d_model), count("d_state", d_state, 2)
        if d_state % 2:
            raise ValueError(f"d_state must be even, half of it conjugates of the other, not {d_state}")
        placement: Any = {"device": device, "dtype": dtype}
        made: Any = {**placement, "generator": generator}
        pairs = d_state // 2
        self.log_dt = parameter(_steps(d_model, made).log())
        self.log_A_real = parameter(Tensor.full((d_model, pairs), math.log(0.5), **placement))
        frequencies = Tensor.arange(pairs, **placement) * math.pi
        self.A_imag = parameter(frequencies.unsqueeze(0).expand(d_model, pairs))
        self.C = parameter(Tensor.randn(d_model, pairs, 2, **made) * 0.5**0.5)
        self.D = parameter(Tensor.randn(d_model, **made))

    def __call__(self, x: Tensor) -> Tensor:
        _need_sequence(self, x, self.d_model)
        dt = self.log_dt.exp().unsqueeze(1)
        real, imag = -self.log_A_real.exp(), self.A_imag
        size = (dt * real).exp()
        keep = (size * (dt * imag).cos(), size * (dt * imag).sin())
        # e^(a + ib) - 1 without cancellation, which short steps would suffer from
        half = (dt * imag / 2).sin()
        less = (dt * real).expm1() * (dt * imag).cos() - 2 * half * half
        # what enters is multiplied by (e^(dt A) - 1)/A on the way out: the state is linear in it
        norm = real.square() + imag.square()
        enter = (less * real + keep[1] * imag) / norm, (keep[1] * real - less * imag) / norm
        leave = self.C[:, :, 0], self.C[:, :, 1]
        out = 2 * (leave[0] * enter[0] - leave[1] * enter[1]), 2 * (leave[0] * enter[1] + leave[1] * enter[0])

        def step(h: tuple[Tensor, Tensor], u: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
            h = (
                keep[0] * h[0] - keep[1] * h[1] + u.unsqueeze(2),
                keep[0] * h[1] + keep[1] * h[0],
            )
            return h, (out[0] * h[0] - out[1] * h[1]).sum(2)

        begin = Tensor.zeros(x.shape[0], self.d_model, self.d_state // 2, dtype=x.dtype, device=x.device)
        _, outputs = Tensor.scan(step, (begin, begin), x.transpose(0, 1).contiguous())
        y: Tensor = outputs.transpose(0, 1) + x * self.D
        return y


def _steps(number: int, made: Any) -> Tensor:
    """Steps between STEP_MIN and STEP_MAX, their logarithms uniform."""
    return Tensor.uniform(number, low=math.log(STEP_MIN), high=math.log(STEP_MAX), **made).exp()


def _need_sequence(layer: Any, x: Tensor, width: int) -> None:
    need_tensors(layer, x)
    if x.ndim != 3 or x.shape[2] != width:
        raise ValueError(
            f"{type(layer).__name__}({width}) needs shape (batch, length, {width}), not {shape_text(x.shape)}"
        )
