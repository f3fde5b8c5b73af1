"""What a person types: `Tensor`, one file per family of methods."""

from . import capturing  # noqa: F401  tells the jit what tensors are
from .base import TensorBase, kernels
from .function import Function
from .holders import memory
from .modes import enable_grad, no_grad
from .names import NamesMixin, take_either_name
from .neural import NeuralMixin
from .trace import trace_methods

__all__ = ["Function", "Tensor", "enable_grad", "kernels", "memory", "no_grad"]


class Tensor(NeuralMixin, NamesMixin):
    __doc__ = TensorBase.__doc__


take_either_name(Tensor)
trace_methods(Tensor)
