"""`torch.nn.utils` on lazygrad's modules: gradients and parameters together, `rnn` for sequences of different
lengths, `parametrizations` for weights that are computed from others."""

from __future__ import annotations

from collections.abc import Iterable

from ...shape import shape_text
from ...tensor import Tensor
from ..optim.gradients import clip_grad_norm_ as clip_grad_norm_
from ..optim.gradients import clip_grad_value_ as clip_grad_value_
from ..optim.gradients import get_total_norm as get_total_norm
from . import parametrizations as parametrizations
from . import parametrize as parametrize
from . import rnn as rnn

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "rnn",
    "vector_to_parameters",
]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All numbers of the parameters, one after another, as one line that gradients flow through.

    >>> nn.utils.parameters_to_vector([Tensor([[1.0, 2.0]]), Tensor([3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    lines = [parameter.reshape(-1) for parameter in parameters]
    if not lines:
        raise ValueError("parameters_to_vector takes one parameter at least")
    return lines[0].cat(*lines[1:])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write a line of numbers, as `parameters_to_vector` gives it, into the parameters, in place.

    >>> weight = Tensor([0.0, 0.0])
    >>> nn.utils.vector_to_parameters(Tensor([1.0, 2.0]), [weight])
    >>> weight.tolist()
    [1.0, 2.0]
    """
    targets = list(parameters)
    sizes = [target._static_numel() for target in targets]
    if not isinstance(vec, Tensor) or vec.ndim != 1 or vec.shape[0] != sum(sizes):
        given = f"shape {shape_text(vec.shape)}" if isinstance(vec, Tensor) else f"{vec!r}"
        raise ValueError(f"vector_to_parameters takes a line of {sum(sizes)} numbers, not {given}")
    begin = 0
    for target, size in zip(targets, sizes, strict=True):
        part = vec.detach()[begin : begin + size].reshape(target.shape)
        target.assign(part.cast(target.dtype))
        begin += size
