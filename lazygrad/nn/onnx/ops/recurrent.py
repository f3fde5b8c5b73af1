"""RNN, GRU and LSTM: gates in ONNX's order, both directions, sequences of different lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....tensor import Tensor
from ..table import op
from ..values import shape_of

#: (alpha, beta) that an activation has where none are given.
_DEFAULTS = {
    "leakyrelu": (0.01, 0.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, 0.0),
    "thresholdedrelu": (1.0, 0.0),
}
_DEFAULTS["affine"] = (1.0, 0.0)
_DEFAULTS["scaledtanh"] = (1.0, 1.0)

Activation = Callable[[Tensor], Tensor]


def _activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    key = name.lower()
    first, second = _DEFAULTS.get(key, (1.0, 1.0))
    a, b = first if alpha is None else alpha, second if beta is None else beta
    known: dict[str, Activation] = {
        "relu": Tensor.relu,
        "tanh": Tensor.tanh,
        "sigmoid": Tensor.sigmoid,
        "softsign": Tensor.softsign,
        "softplus": lambda x: x.softplus(),
        "affine": lambda x: x * a + b,
        "leakyrelu": lambda x: x.leaky_relu(a),
        "thresholdedrelu": lambda x: x.threshold(a, 0.0),
        "scaledtanh": lambda x: (x * b).tanh() * a,
        "hardsigmoid": lambda x: (x * a + b).clamp(0, 1),
        "elu": lambda x: x.elu(a),
    }
    if key not in known:
        raise NotImplementedError(f"the activation {name} of a recurrent layer is not supported")
    return known[key]


class _Layer:
    """The arguments of a recurrent node, taken apart for each direction."""

    def __init__(
        self, x: Tensor, w: Tensor, r: Tensor, options: dict[str, Any], defaults: Sequence[str]
    ) -> None:
        self.layout = options.get("layout", 0)
        self.x = x.permute(1, 0, 2) if self.layout else x  # (time, batch, features)
        self.directions = shape_of(w)[0]
        self.hidden = shape_of(r)[-1]
        self.clip = options.get("clip")
        self.backwards = [options.get("direction", "forward") == "reverse"]
        if self.directions == 2:
            self.backwards = [False, True]
        names = options.get("activations") or [*defaults] * self.directions
        alphas = [*(options.get("activation_alpha") or [])]
        betas = [*(options.get("activation_beta") or [])]
        self.activations = []
        for name in names:
            takes = name.lower() in _DEFAULTS
            alpha = alphas.pop(0) if takes and alphas else None
            beta = (
                betas.pop(0)
                if takes and betas and name.lower() in ("affine", "scaledtanh", "hardsigmoid")
                else None
            )
            self.activations.append(_activation(name, alpha, beta))
        self.each = len(defaults)

    def start(self, given: Tensor | None, number: int) -> Tensor:
        if given is None:
            return Tensor.zeros(shape_of(self.x)[1], self.hidden, dtype=self.x.dtype)
        return given[:, number] if self.layout else given[number]

    def functions(self, number: int) -> list[Activation]:
        return self.activations[number * self.each : (number + 1) * self.each]

    def clipped(self, x: Tensor) -> Tensor:
        return x if self.clip is None else x.clamp(-self.clip, self.clip)

    def run(
        self,
        number: int,
        lengths: Tensor | None,
        state: tuple[Tensor, ...],
        step: Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]],
        inputs: Tensor,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """All steps of one direction; a sequence that has ended keeps its state and gives zeros."""
        size = shape_of(inputs)[0]
        order = range(size - 1, -1, -1) if self.backwards[number] else range(size)
        found: dict[int, Tensor] = {}
        for time in order:
            new = step(inputs[time], state)
            if lengths is not None:
                goes_on = (lengths > time).reshape(-1, 1)
                new = tuple(goes_on.where(now, before) for now, before in zip(new, state, strict=True))
                found[time] = goes_on.where(new[0], 0.0)
            else:
                found[time] = new[0]
            state = new
        return Tensor.stack(*[found[time] for time in range(size)]), state

    def results(self, lines: list[Tensor], finals: list[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """Y (time, directions, batch, hidden), and each part of the last state (directions, batch,
        hidden).
        """
        y = Tensor.stack(*lines, dim=1)
        states = [Tensor.stack(*parts) for parts in zip(*finals, strict=True)]
        if self.layout:
            y = y.permute(2, 0, 1, 3)
            states = [state.permute(1, 0, 2) for state in states]
        return y, *states


def _bias(b: Tensor | None, number: int, gates: int, hidden: int) -> tuple[Any, Any]:
    """Those of the input's and of the state's products."""
    if b is None:
        return 0.0, 0.0
    return b[number, : gates * hidden], b[number, gates * hidden :]


@op("RNN")
def rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    outputs: int,
    **options: Any,
) -> Any:
    """h' = f(x Wᵀ + h Rᵀ + b)"""
    layer = _Layer(x, w, r, options, ["Tanh"])
    lines, finals = [], []
    for number in range(layer.directions):
        (f,) = layer.functions(number)
        of_input, of_state = _bias(b, number, 1, layer.hidden)
        inputs = layer.x.matmul(w[number].transpose(0, 1)) + of_input + of_state
        weight = r[number].transpose(0, 1)

        def step(
            now: Tensor, state: tuple[Tensor, ...], f: Any = f, weight: Tensor = weight
        ) -> tuple[Tensor, ...]:
            return (f(layer.clipped(now + state[0].matmul(weight))),)

        line, final = layer.run(number, sequence_lens, (layer.start(initial_h, number),), step, inputs)
        lines.append(line)
        finals.append(final)
    return layer.results(lines, finals)[:outputs]


@op("GRU")
def gru(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    linear_before_reset: int = 0,
    outputs: int,
    **options: Any,
) -> Any:
    """Gates z, r and the new h̃; h' = (1 - z) h̃ + z h."""
    layer = _Layer(x, w, r, options, ["Sigmoid", "Tanh"])
    size = layer.hidden
    lines, finals = [], []
    for number in range(layer.directions):
        f, g = layer.functions(number)
        of_input, of_state = _bias(b, number, 3, size)
        inputs = layer.x.matmul(w[number].transpose(0, 1)) + of_input
        gates, last = r[number, : 2 * size].transpose(0, 1), r[number, 2 * size :].transpose(0, 1)
        of_gates, of_last = (of_state[: 2 * size], of_state[2 * size :]) if b is not None else (0.0, 0.0)

        def step(
            now: Tensor,
            state: tuple[Tensor, ...],
            f: Any = f,
            g: Any = g,
            gates: Tensor = gates,
            last: Tensor = last,
            of_gates: Any = of_gates,
            of_last: Any = of_last,
        ) -> tuple[Tensor, ...]:
            (h,) = state
            both = f(layer.clipped(now[:, : 2 * size] + h.matmul(gates) + of_gates))
            z, reset = both[:, :size], both[:, size:]
            if linear_before_reset:
                new = now[:, 2 * size :] + reset * (h.matmul(last) + of_last)
            else:
                new = now[:, 2 * size :] + (reset * h).matmul(last) + of_last
            return ((1 - z) * g(layer.clipped(new)) + z * h,)

        line, final = layer.run(number, sequence_lens, (layer.start(initial_h, number),), step, inputs)
        lines.append(line)
        finals.append(final)
    return layer.results(lines, finals)[:outputs]


@op("LSTM")
def lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    p: Tensor | None = None,
    *,
    input_forget: int = 0,
    outputs: int,
    **options: Any,
) -> Any:
    """Gates i, o, f and the new c̃; c' = f c + i c̃, h' = o tanh(c'). `p` are weights of c in i, o and f."""
    layer = _Layer(x, w, r, options, ["Sigmoid", "Tanh", "Tanh"])
    size = layer.hidden
    lines, finals = [], []
    for number in range(layer.directions):
        f, g, h_of = layer.functions(number)
        of_input, of_state = _bias(b, number, 4, size)
        inputs = layer.x.matmul(w[number].transpose(0, 1)) + (of_input + of_state)
        weight = r[number].transpose(0, 1)
        peep = None if p is None else [p[number, part * size : (part + 1) * size] for part in range(3)]

        def step(
            now: Tensor,
            state: tuple[Tensor, ...],
            f: Any = f,
            g: Any = g,
            h_of: Any = h_of,
            weight: Tensor = weight,
            peep: Any = peep,
        ) -> tuple[Tensor, ...]:
            h, c = state
            parts = now + h.matmul(weight)
            i, o, forget, new = (parts[:, part * size : (part + 1) * size] for part in range(4))
            if peep is not None:
                i, forget = i + peep[0] * c, forget + peep[2] * c
            i = f(layer.clipped(i))
            forget = 1 - i if input_forget else f(layer.clipped(forget))
            c = forget * c + i * g(layer.clipped(new))
            o = o if peep is None else o + peep[1] * c
            return f(layer.clipped(o)) * h_of(c), c

        start = layer.start(initial_h, number), layer.start(initial_c, number)
        line, final = layer.run(number, sequence_lens, start, step, inputs)
        lines.append(line)
        finals.append(final)
    return layer.results(lines, finals)[:outputs]
