"""Recurrent layers: cells that take one step, and layers of cells that take a whole sequence.

Weights have PyTorch's names and order of gates: input, forget, cell, output (LSTM); reset, update, new (GRU).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..device import Devices
from ..shape import shape_text
from ..tensor import Function, Tensor
from ..tensor.signatures import DTypeLike, Numbers
from .module import Module
from .packed import PackedSequence
from .parameters import count, need_tensors, probability, uniform

State = Any  # a Tensor, or (h, c)
#: (what the input gives, what the state gives, state) → the next state.
Step = Callable[[Tensor, Tensor, State], State]


class _Gate(Function):
    """The sigmoid of a gate, with the slope y (1 - y), as PyTorch's: a turn of the gradient is short."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.sigmoid()
        self.save_for_backward(y)
        return y

    def backward(self, grad: Tensor) -> Tensor:
        y: Tensor = self.saved_tensors[0]
        return grad * (y * (1.0 - y))


def _gate(x: Tensor) -> Tensor:
    return _Gate.apply(x)  # type: ignore[no-any-return]


def _rnn(activation: Callable[[Tensor], Tensor]) -> Step:
    return lambda x, h, state: activation(x + h)


def _lstm(x: Tensor, h: Tensor, state: State) -> State:
    """Hochreiter, Schmidhuber 1997, with a forget gate."""
    enter, forget, cell, leave = (x + h).chunk(4, -1)
    c = _gate(forget) * state[1] + _gate(enter) * cell.tanh()
    return _gate(leave) * c.tanh(), c


def _gru(x: Tensor, h: Tensor, state: State) -> State:
    """Cho et al. 2014; the reset gate stands behind the product with the state, as in PyTorch."""
    (xr, xz, xn), (hr, hz, hn) = x.chunk(3, -1), h.chunk(3, -1)
    update = _gate(xz + hz)
    return (1.0 - update) * (xn + _gate(xr + hr) * hn).tanh() + update * state


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": Tensor.tanh, "relu": Tensor.relu}


def _activation(name: str) -> Callable[[Tensor], Tensor]:
    if name not in _ACTIVATIONS:
        raise ValueError(f"nonlinearity must be tanh or relu, not {name!r}")
    return _ACTIVATIONS[name]


def _projected(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return x.linear(weight.transpose(0, 1), bias)


# *** one step


class _Cell(Module):
    """The weights of a cell, and its step."""

    gates = 1
    has_cell = False  # whether the state is (h, c)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        self.input_size, self.hidden_size = (
            count("input_size", input_size),
            count("hidden_size", hidden_size),
        )
        lines = self.gates * hidden_size
        made: Any = {"fan_in": hidden_size, "device": device, "dtype": dtype, "generator": generator}
        self.weight_ih = uniform(lines, input_size, **made)
        self.weight_hh = uniform(lines, hidden_size, **made)
        self.bias_ih = uniform(lines, **made) if bias else None
        self.bias_hh = uniform(lines, **made) if bias else None

    def _step(self) -> Step:
        raise NotImplementedError(f"{type(self).__name__} does not say how it steps")

    def __call__(self, x: Tensor, state: State = None) -> State:
        need_tensors(self, x)
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__}({self.input_size}, {self.hidden_size}) needs shape "
                f"(batch, {self.input_size}), not {shape_text(x.shape)}"
            )
        if state is None:
            zeros = Tensor.zeros(*x.shape[:-1], self.hidden_size, dtype=x.dtype, device=x.device)
            state = (zeros, zeros) if self.has_cell else zeros
        if self.has_cell and not (isinstance(state, (tuple, list)) and len(state) == 2):
            raise TypeError(f"{type(self).__name__} takes a state (h, c), not {type(state).__name__}")
        wanted = (*x.shape[:-1], self.hidden_size)
        for part in state if self.has_cell else (state,):
            need_tensors(self, part)
            if part.shape != wanted:
                raise ValueError(
                    f"{type(self).__name__} needs a state of shape {shape_text(wanted)}, "
                    f"not {shape_text(part.shape)}"
                )
        hidden = state[0] if self.has_cell else state
        given = _projected(x, self.weight_ih, self.bias_ih)
        return self._step()(given, _projected(hidden, self.weight_hh, self.bias_hh), state)


class RNNCell(_Cell):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it.

    x  (batch, input_size) or (input_size,)      h  (batch, hidden_size), zeros if not given
    weight_ih  (hidden_size, input_size)         weight_hh  (hidden_size, hidden_size)

    >>> nn.RNNCell(3, 5)(Tensor.ones(2, 3)).shape
    (2, 5)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device=device, dtype=dtype, generator=generator)
        _activation(nonlinearity)
        self.nonlinearity = nonlinearity

    def _step(self) -> Step:
        return _rnn(_activation(self.nonlinearity))


class LSTMCell(_Cell):
    """One step of an LSTM: x and (h, c) → (h', c').

    weight_ih  (4·hidden_size, input_size)      weight_hh  (4·hidden_size, hidden_size)

    >>> h, c = nn.LSTMCell(3, 5)(Tensor.ones(2, 3))
    >>> h.shape, c.shape
    ((2, 5), (2, 5))
    """

    gates, has_cell = 4, True

    def _step(self) -> Step:
        return _lstm


class GRUCell(_Cell):
    """One step of a GRU: x and h → h'.

    weight_ih  (3·hidden_size, input_size)      weight_hh  (3·hidden_size, hidden_size)

    >>> nn.GRUCell(3, 5)(Tensor.ones(2, 3)).shape
    (2, 5)
    """

    gates = 3

    def _step(self) -> Step:
        return _gru


# *** sequences


class _Recurrent(Module):
    """Layers of cells over a sequence."""

    gates = 1
    has_cell = False
    adds_gates = True  # whether a step needs only the sum of what the input and the state give

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        self.input_size, self.hidden_size = (
            count("input_size", input_size),
            count("hidden_size", hidden_size),
        )
        self.num_layers, self.bias = count("num_layers", num_layers), bias
        probability("dropout", dropout)
        if proj_size and not (self.has_cell and 0 < proj_size < hidden_size):
            raise ValueError(f"proj_size is for LSTM, and smaller than its hidden_size, not {proj_size}")
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        self.proj_size, self.generator = proj_size, generator
        lines, out = self.gates * hidden_size, proj_size or hidden_size
        made: Any = {"fan_in": hidden_size, "device": device, "dtype": dtype, "generator": generator}
        for layer in range(num_layers):
            for end in self._directions():
                width = input_size if layer == 0 else out * len(self._directions())
                own = {
                    "weight_ih": uniform(lines, width, **made),
                    "weight_hh": uniform(lines, out, **made),
                }
                if bias:
                    own["bias_ih"] = uniform(lines, **made)
                    own["bias_hh"] = uniform(lines, **made)
                if proj_size:
                    own["weight_hr"] = uniform(proj_size, hidden_size, **made)
                for name, tensor in own.items():
                    setattr(self, f"{name}_l{layer}{end}", tensor)

    def _directions(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def _step(self) -> Step:
        raise NotImplementedError(f"{type(self).__name__} does not say how it steps")

    def __call__(self, x: Any, state: State = None) -> tuple[Any, State]:
        """(what the last layer gave at each time, the last state of each layer and direction).

        x      (length, batch, input_size), (batch, length, input_size) with `batch_first`, or without batch;
               or a `PackedSequence`: the first result then is one too, and states are those at the ends of
               the sequences
        state  (layers · directions, batch, hidden_size), for LSTM a pair of these; zeros if not given
        """
        if isinstance(x, PackedSequence):
            return self._packed(x, state)
        need_tensors(self, x)
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            where = "(batch, length, " if self.batch_first else "(length, batch, "
            raise ValueError(
                f"{type(self).__name__}({self.input_size}, {self.hidden_size}) needs shape "
                f"{where}{self.input_size}), not {shape_text(x.shape)}"
            )
        alone = x.ndim == 2
        if alone:
            x = x.unsqueeze(1)
            if state is not None:
                state = tuple(s.unsqueeze(1) for s in state) if self.has_cell else state.unsqueeze(1)
        elif self.batch_first:
            x = x.transpose(0, 1)
        x, end_state = self._layers(x, state, None)
        if alone:
            x = x.squeeze(1)
            end_state = tuple(s.squeeze(1) for s in end_state) if self.has_cell else end_state.squeeze(1)
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, end_state

    def _packed(self, given: PackedSequence, state: State) -> tuple[PackedSequence, State]:
        need_tensors(self, given.data)
        if given.data.ndim != 2 or given.data.shape[1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__}({self.input_size}, {self.hidden_size}) needs packed data of shape "
                f"(steps, {self.input_size}), not {shape_text(given.data.shape)}"
            )
        order = given.order
        length = len(order.sizes)
        padded = order.padded(given.data, length)
        outputs, end_state = self._layers(padded, state, order.inside(length, padded))
        return given.of(order.packed(outputs, False)), end_state

    def _layers(self, x: Tensor, state: State, inside: Tensor | None) -> tuple[Tensor, State]:
        """Of (length, batch, input_size); a state stays as it is where `inside` (length, batch) is False."""
        states = self._initial(x, state)
        last: list[State] = []
        for layer in range(self.num_layers):
            ways = []
            for direction, end in enumerate(self._directions()):
                begin = states[layer * len(self._directions()) + direction]
                outputs, final = self._run(x, begin, f"_l{layer}{end}", bool(end), inside)
                ways.append(outputs)
                last.append(final)
            x = ways[0] if len(ways) == 1 else ways[0].cat(ways[1], dim=-1)
            if self.dropout and layer + 1 < self.num_layers:
                x = x.dropout(self.dropout, generator=self.generator)
        finals = [Tensor.stack(*parts) for parts in zip(*last, strict=True)] if self.has_cell else None
        return x, tuple(finals) if finals is not None else Tensor.stack(*last)

    def _initial(self, x: Tensor, state: State) -> list[State]:
        """The first state of each layer and direction."""
        number, batch = self.num_layers * len(self._directions()), x.shape[1]
        widths = (self.proj_size or self.hidden_size, self.hidden_size)[: 2 if self.has_cell else 1]
        if state is None:
            zeros = tuple([Tensor.zeros(batch, w, dtype=x.dtype, device=x.device) for w in widths])
            return [zeros if self.has_cell else zeros[0]] * number
        given = list(state) if self.has_cell else [state]
        for tensor, width in zip(given, widths, strict=True):
            if tensor.shape != (number, batch, width):
                raise ValueError(
                    f"{type(self).__name__} needs a state of shape ({number}, {batch}, {width}), "
                    f"not {shape_text(tensor.shape)}"
                )
        return [tuple(t[i] for t in given) if self.has_cell else given[0][i] for i in range(number)]

    def _run(
        self, x: Tensor, state: State, end: str, backwards: bool, inside: Tensor | None
    ) -> tuple[Tensor, State]:
        """One layer in one direction: what it gave at each time, and its last state."""
        weight, bias = getattr(self, f"weight_hh{end}"), getattr(self, f"bias_hh{end}", None)
        before = getattr(self, f"bias_ih{end}", None)
        if self.adds_gates and before is not None and bias is not None:
            before, bias = before + bias, None
        # what the inputs give to the gates is one product for all times
        given = _projected(x, getattr(self, f"weight_ih{end}"), before).contiguous()
        onto = getattr(self, f"weight_hr{end}", None)
        cell, length = self._step(), x.shape[0]
        if not isinstance(length, int):
            raise NotImplementedError(f"{type(self).__name__} over a length that is symbolic: {length}")

        def step(state: State, given: Tensor) -> tuple[State, Tensor]:
            hidden = state[0] if self.has_cell else state
            state = cell(given, _projected(hidden, weight, bias), state)
            if onto is not None:
                state = (state[0].dot(onto.transpose(0, 1)), state[1])
            return state, state[0] if self.has_cell else state

        def inner_step(state: State, given: tuple[Tensor, Tensor]) -> tuple[State, Tensor]:
            made, output = step(state, given[0])
            if not self.has_cell:
                return given[1].where(made, state), output
            return tuple(given[1].where(new, old) for new, old in zip(made, state, strict=True)), output

        if inside is None:
            state, outputs = Tensor.scan(step, state, given, reverse=backwards)
        else:
            walked = (given, inside.unsqueeze(2).contiguous())
            state, outputs = Tensor.scan(inner_step, state, walked, reverse=backwards)
        return outputs, state


class RNN(_Recurrent):
    """Layers of h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it, over a sequence.

    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ..., and with `_reverse` where bidirectional

    >>> outputs, h = nn.RNN(3, 5, num_layers=2)(Tensor.ones(7, 2, 3))
    >>> outputs.shape, h.shape
    ((7, 2, 5), (2, 2, 5))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
            generator=generator,
        )
        _activation(nonlinearity)
        self.nonlinearity = nonlinearity

    def _step(self) -> Step:
        return _rnn(_activation(self.nonlinearity))


class LSTM(_Recurrent):
    """Layers of LSTM cells over a sequence; the state is (h, c).

    >>> outputs, (h, c) = nn.LSTM(3, 5, batch_first=True)(Tensor.ones(2, 7, 3))
    >>> outputs.shape, h.shape, c.shape
    ((2, 7, 5), (1, 2, 5), (1, 2, 5))
    """

    gates, has_cell = 4, True

    def _step(self) -> Step:
        return _lstm


class GRU(_Recurrent):
    """Layers of GRU cells over a sequence.

    >>> outputs, h = nn.GRU(3, 5, bidirectional=True)(Tensor.ones(7, 2, 3))
    >>> outputs.shape, h.shape
    ((7, 2, 10), (2, 2, 5))
    """

    gates, adds_gates = 3, False

    def _step(self) -> Step:
        return _gru
