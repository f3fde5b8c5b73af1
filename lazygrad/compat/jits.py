"""What older scripts ask of a jit: the list of what it captured, its memory, what wraps it as a method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.actions import Action
from ..engine.replay import Replay
from ..jit import TinyJit
from ..jit.captured import Captured
from ..tensor import Tensor
from .pickled_jits import reduce_jit
from .running import BufferCopy, CompiledRunner

_jit_init = TinyJit.__init__


def init_jit(
    self: TinyJit[..., Any],
    fxn: Callable[..., Any],
    captured: None = None,
    prune: bool = False,
    optimize: bool = False,
) -> None:
    """A TinyJit; what would make it run less (`prune`, `optimize`) changes no result."""
    _jit_init(self, fxn)


def jit_cache(jit: TinyJit[..., Any] | Captured) -> list[Action]:
    """What was captured, in order: an action for each kernel and copy."""
    captured = jit.captured if isinstance(jit, TinyJit) else jit
    if captured is None:
        return []
    return [action for batch in captured.replay.batches for action in batch.actions]


def program_of(action: Action) -> CompiledRunner | BufferCopy:
    """What an action runs."""
    if action.runner is not None:
        return CompiledRunner.of(action.runner, action.device)
    return BufferCopy(action.bufs[0].nbytes, action.device, action.bufs[-1].device)


# *** the memory of what is between a call's arguments and its results


def free_intermediates(captured: Captured) -> None:
    """Give the memory back that only a call in progress needs; the next call takes it again."""
    replay = captured.replay
    held = [buffer for buffer in replay.buffers.values() if buffer.base in replay.passing]
    for buffer in held:
        if buffer.base is not buffer:
            buffer.deallocate()
    for base in replay.passing:
        base.deallocate()

    def results(*args: Any) -> list[Tensor]:
        vars(captured).pop("results", None)
        _take_again(replay)
        return captured.results(*args)

    vars(captured)["results"] = results


def _take_again(replay: Replay) -> None:
    for base in replay.passing:
        base.ensure_allocated()
    for place, buffer in replay.buffers.items():
        if buffer.base in replay.passing:
            replay._set(place, buffer.ensure_allocated()._buf)


def keep_plan(captured: Captured) -> None:
    """Values that are not needed at once share memory since the capture: there is nothing to plan anew."""


#: class → name → what it gets.
ADDED: dict[type, dict[str, Any]] = {
    TinyJit: {
        "__init__": init_jit,
        "jit_cache": property(jit_cache),
        "cnt": property(lambda jit: jit._run.__self__.calls),
        "__reduce__": reduce_jit,
        "__copy__": lambda jit: TinyJit(jit.fxn),
        "func": property(lambda jit: jit.__call__),  # of a method, as functools.partial has it
    },
    Captured: {
        "jit_cache": property(jit_cache),
        "free_intermediates": free_intermediates,
        "replan_buffers_memory_layout": keep_plan,
    },
    Action: {"prg": property(program_of)},
}
