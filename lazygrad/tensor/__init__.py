"""What a person types: `Tensor`, one file per family of methods."""

from .base import TensorBase
from .computing import kernels
from .holders import memory
from .modes import enable_grad, no_grad
from .names import take_either_name
from .spellings import SpellingsMixin
from .trace import trace_methods
from .transforms.checkpoint import checkpoint
from .transforms.derivatives import grad, gradcheck, hessian, jacobian, jvp, value_and_grad, vjp, vmap
from .transforms.function import Function

__all__ = [
    "Function",
    "Tensor",
    "checkpoint",
    "enable_grad",
    "grad",
    "gradcheck",
    "hessian",
    "jacobian",
    "jvp",
    "kernels",
    "memory",
    "no_grad",
    "value_and_grad",
    "vjp",
    "vmap",
]


class Tensor(SpellingsMixin):
    __doc__ = TensorBase.__doc__


take_either_name(Tensor)
trace_methods(Tensor)
