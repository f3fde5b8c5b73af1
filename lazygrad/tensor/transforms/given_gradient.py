"""The gradient of a kernel that its user wrote: what the user gives, or an error that says how to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..face import Tensor
from .function import Function

#: (gradient of the result, the result, the kernel's arguments) → the gradient of each argument, or None
Gradient = Callable[..., Any]


def with_gradient(name: str, run: Callable[..., Any], gradient: Gradient | None) -> type[Function]:
    """A Function that runs `run(args, kwargs)`, which gives a tensor or a tuple of them.

    gradient  takes the gradient of the result (a tuple, where there are several), the result, and the
              arguments, and gives the gradient of each argument or None; None raises where it is asked for
    """

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = run(args, kwargs)
        results = result if isinstance(result, tuple) else (result,)
        self.is_tuple, self.count = isinstance(result, tuple), len(results)
        self.others = [None if isinstance(a, Tensor) else a for a in args]
        self.positions = [n for n, a in enumerate(args) if isinstance(a, Tensor)]
        self.save_for_backward(*results, *[a for a in args if isinstance(a, Tensor)])
        return result

    def backward(self: Any, *grads: Tensor) -> Any:
        if gradient is None:
            raise NotImplementedError(
                f"kernel {name} has no gradient: give one, or call it with x.detach(). A kernel under "
                f"@kernel takes it under @{name}.gradient, a text as gradient="
            )
        results, tensors = self.saved_tensors[: self.count], self.saved_tensors[self.count :]
        args = list(self.others)
        for place, tensor in zip(self.positions, tensors, strict=True):
            args[place] = tensor
        if not self.is_tuple:
            return gradient(grads[0], results[0], *args)
        return gradient(grads, results, *args)

    return type(name, (Function,), {"forward": forward, "backward": backward})
