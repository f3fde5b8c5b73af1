"""The capture of a function with example arguments, and why it cannot be had."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..codegen.direct_kernels import record_of
from ..config import Context
from ..ir.loop import LoopPlan
from ..jit.captured import Captured
from ..jit.errors import Changed, JitError, Mismatch
from ..jit.specs import Call
from ..jit.tinyjit import TinyJit

#: A TinyJit captures in its second call; in the third where memory moved in the second.
CALLS = 3


def captured_with(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Captured, Call]:
    """A capture that fits these arguments, and what the arguments hold. One that `fn` has is taken first.

    Another function is called, at most three times, as a TinyJit of it would be.
    """
    jitted: TinyJit[..., Any] = fn if isinstance(fn, TinyJit) else TinyJit(fn)
    found = _fitting(jitted, args, kwargs)
    with Context(JIT=1, SCAN=0):
        for _ in range(CALLS):
            if found is not None:
                break
            jitted(*args, **kwargs)
            found = _fitting(jitted, args, kwargs)
    if found is None:
        raise JitError(
            f"{jitted!r} could not be captured with these arguments: it changes what it is given or sees "
            "besides tensors; DEBUG=1 says why a TinyJit captures again"
        )
    refuse_training(found[0].trains)
    _require_own_memory(*found)
    return found


def refuse_training(trains: str) -> None:
    """Raise where a model that trains would be written: what its calls drop and count is not its function.

    trains  the class of the module
    """
    if trains:
        raise ValueError(
            f"the model is in training mode (its {trains} is called so): call model.eval() before the "
            "export, and leave `with Tensor.train()`; a training step, which makes gradients, may be exported"
        )


def _fitting(
    jitted: TinyJit[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Captured, Call] | None:
    for captured in jitted.captures:
        call = Call()
        try:
            captured.match(tuple(args), dict(kwargs), call)
        except (Changed, Mismatch):
            continue
        return captured, call
    return None


def _require_own_memory(captured: Captured, call: Call) -> None:
    """Raise where a file could not say what the capture does."""
    if captured.devices > 1:
        raise NotImplementedError("exporting a function that works on several devices is not supported")
    if captured.ties or captured.pins:
        raise ValueError(
            "an example argument shares memory with another one, or with a tensor that the function also "
            "uses: pass a copy, such as x.clone()"
        )
    for gradient in captured.gradients:
        if gradient.number is not None or gradient.reads is not None:
            raise NotImplementedError(
                "an exported function cannot set gradients outside of it: return what Tensor.gradient gives, "
                "or call zero_grad() inside"
            )
    if any(action.kind == "copy" for batch in captured.replay.batches for action in batch.actions):
        raise NotImplementedError(
            "exporting a function that copies between devices or joins memory of them is not supported"
        )
    if any(
        record_of(action.item.ast, LoopPlan) for batch in captured.replay.batches for action in batch.actions
    ):
        raise NotImplementedError(
            "exporting a capture with a loop (Tensor.scan) is not supported: capture it under Context(SCAN=0)"
        )
    if captured.limits:
        raise NotImplementedError(
            "exporting a function that slices or pads by a Variable, and not all of its values fit, is not "
            f"supported: give {', '.join(sorted(captured.limits.names))} narrower bounds"
        )
    if captured.draws.final is not None:
        raise NotImplementedError(
            "exporting a function that sets the seed of the random numbers is not supported"
        )
