"""Functions of lazygrad tensors that are called with PyTorch's: graphs of `torch.compile`, and operators.

What is called is captured once for each way that its inputs can be, and for many sizes where sizes change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from ..tensor.random import sampling
from .aliases import without_looks
from .capture import Capture, Compute
from .graph import GraphFunction
from .memory import without_holes
from .sizes import Sizes, SymbolSizes, sources_of
from .table import is_random

#: Calls of what was captured for many sizes that are compared with PyTorch.
CHECKS = 2


class Replayed:
    """A function of lazygrad tensors that is called with PyTorch's, and numbers.

    function  gets lazygrad tensors in place of PyTorch's, and gives a list
    wanted    tensors like the results, where their strides are to be as PyTorch says; or nothing
    hands_on  for each result whether it may share the memory of an input; none do, without it
    given     what PyTorch says of the inputs: its guards hold their shapes, or say how they follow from
              symbolic numbers among the inputs; nothing, where shapes may be others in each call
    check     computes the same in PyTorch: what is captured for many sizes is compared with it
    """

    def __init__(
        self,
        function: Compute,
        wanted: Sequence[Any] = (),
        given: Sequence[Any] = (),
        check: Callable[..., Any] | None = None,
        hands_on: Sequence[bool] = (),
    ) -> None:
        self.function, self.wanted, self.given, self.check = function, wanted, given, check
        self.hands_on = hands_on
        self._captures: dict[Any, Capture] = {}
        self._lock = threading.Lock()
        self._last: Capture | None = None
        #: whether signs may be turned in one call and not in another: no guard holds those of gradients
        self.asks_signs = False
        self._guarded = bool(given) and all(map(_has_one_shape, given))
        self._sizes = SymbolSizes(sources_of(given))
        self._sized: list[Capture] = []
        #: how often what is captured for many sizes is still compared; -1: sizes are captured one by one
        self._checks = CHECKS if check is not None else -1

    @property
    def captures(self) -> int:
        """How often it was captured."""
        return len(self._captures) + len(self._sized)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        with self._lock:
            last = self._last
            if last is not None and last.fits(inputs) and not (self.asks_signs and _is_negated(inputs)):
                return last.call(inputs)
            given = [without_holes(x) if isinstance(x, torch.Tensor) else x for x in inputs]
            if self._checks >= 0 and not self._guarded:
                found = self._of_many_sizes(given)
                if found is not None:
                    return found
            key = tuple([_key(x) for x in given])
            capture = self._captures.get(key)
            if capture is None:
                with sampling.fork_random():
                    sampling.set_state((0, 0))
                    capture = Capture(self.function, given, self.wanted, hands_on=self.hands_on)
                self._captures[key] = capture
            if self._guarded and not _is_negated(inputs):
                self._last = capture  # memory of such an input has other signs, which is not asked again
            return capture.call(given)

    def _of_many_sizes(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The results by a capture for many sizes, from the second combination of sizes on; None without."""
        capture = next((each for each in self._sized if each.has_room(inputs)), None)
        if capture is None:
            self._sizes.note(inputs)
            if not (groups := self._sizes.groups()):
                return None
        try:
            if capture is None:
                sizes = Sizes(self.given, groups, inputs)
                capture = Capture(self.function, inputs, self.wanted, sizes)
                if capture.captured is None or capture.captured.read_values or not capture.has_room(inputs):
                    raise NotImplementedError("a graph that is another one for some sizes")
                self._sized.append(capture)
            found = capture.call(inputs)
        except IndexError:
            raise
        except Exception:  # whatever cannot be done with a symbolic size: each combination has a capture then
            self._checks, self._sized = -1, []
            return None
        if self._checks > 0 and self.check is not None:
            self._checks -= 1
            if not _close(found, self.check, inputs):
                self._checks, self._sized = -1, []
                return None
        return found


def _is_negated(inputs: Sequence[Any]) -> bool:
    """Whether PyTorch turns the signs of an input when it is read."""
    return any(isinstance(x, torch.Tensor) and x.is_neg() for x in inputs)


def _has_one_shape(said: Any) -> bool:
    """Whether an input is a tensor of the same shape in each call."""
    return isinstance(said, torch.Tensor) and all(isinstance(size, int) for size in said.shape)


def _close(found: Sequence[Any], check: Callable[..., Any], inputs: Sequence[Any]) -> bool:
    """Whether results differ by rounding only from what PyTorch computes."""
    try:
        expected = check(*inputs)
    except RuntimeError:  # an input lies otherwise than PyTorch's operations need
        return False
    wanted = expected if isinstance(expected, (list, tuple)) else [expected]
    for one, other in zip(found, wanted, strict=True):
        if not isinstance(other, torch.Tensor):
            if one != other:
                return False
        elif one.shape != other.shape or not torch.allclose(one, other, 1e-3, 1e-4, equal_nan=True):
            return False
    return True


def _key(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return type(x), repr(x)  # 0.0 and -0.0 are equal, and so are 1 and 1.0
    return (x.dtype, x.shape) if x.is_contiguous() else (x.dtype, x.shape, x.stride())


class CompiledGraph:
    """A graph of ATen operations that lazygrad runs: call it with tensors of PyTorch, and numbers.

    seen  of how many results, the first ones, it can be seen that they share memory; None: of all; 0: it is
          a backward pass
    """

    def __init__(self, module: fx.GraphModule, seen: int | None = None) -> None:
        (output,) = (node for node in module.graph.nodes if node.op == "output")
        self.is_one = not isinstance(output.args[0], (list, tuple))
        module, self.looks = without_looks(module, seen)
        self.function = GraphFunction(module)
        wanted = [_value_of(node) for node in self.function.outputs]
        given = [_value_of(node) for node in self.function.placeholders]
        draws = any(is_random(node.target) for node in self.function.nodes)  # other numbers than PyTorch's
        check = None if draws else module
        self.replayed = Replayed(self.function, wanted, given, check, self.function.hands_on)
        self.replayed.asks_signs = seen == 0

    def __call__(self, *inputs: Any) -> Any:
        found = self.replayed(inputs)
        if self.looks is not None:
            found = self.looks((*inputs, *found))
        return found[0] if self.is_one else tuple(found)


def _value_of(node: Any) -> Any:
    return node.meta.get("val") if isinstance(node, fx.Node) else None
