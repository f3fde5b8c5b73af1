"""PyTorch's free functions, `torch.add`, on lazygrad's Tensors: the same names, with the same arguments.

    from lazygrad import functional as F
    F.column_stack([a, b]), F.max(x, 1).indices, F.hann_window(400)

Every method of Tensor is here as a function (its class methods too: `F.zeros`), and every function of
`nn.functional`. In the files beside this one are those that no method is, or that PyTorch orders or answers
otherwise than the method does.
"""

from __future__ import annotations

from typing import Any

from ..nn import functional as layers
from ..tensor import Tensor
from ..tensor.as_functions import function_of
from ..tensor.trace import check_functions
from .answers import cummax as cummax
from .answers import cummin as cummin
from .answers import embedding as embedding
from .answers import max as max
from .answers import min as min
from .answers import polygamma as polygamma
from .answers import pow as pow
from .answers import svd as svd
from .index_functions import constant_pad_nd as constant_pad_nd
from .index_functions import pdist as pdist
from .index_functions import unravel_index as unravel_index
from .lists import atleast_1d as atleast_1d
from .lists import atleast_2d as atleast_2d
from .lists import atleast_3d as atleast_3d
from .lists import broadcast_shapes as broadcast_shapes
from .lists import broadcast_tensors as broadcast_tensors
from .low_rank import pca_lowrank as pca_lowrank
from .low_rank import svd_lowrank as svd_lowrank
from .making import as_tensor as as_tensor
from .making import asarray as asarray
from .making import frombuffer as frombuffer
from .making import range as range
from .making import scalar_tensor as scalar_tensor
from .pairs import angle as angle
from .pairs import complex as complex
from .pairs import conj as conj
from .pairs import conj_physical as conj_physical
from .pairs import imag as imag
from .pairs import polar as polar
from .pairs import real as real
from .pairs import view_as_complex as view_as_complex
from .pairs import view_as_real as view_as_real
from .random_state import get_rng_state as get_rng_state
from .random_state import initial_seed as initial_seed
from .random_state import set_rng_state as set_rng_state
from .settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from .settings import get_default_device as get_default_device
from .settings import get_default_dtype as get_default_dtype
from .settings import get_float32_matmul_precision as get_float32_matmul_precision
from .settings import get_num_threads as get_num_threads
from .settings import is_complex as is_complex
from .settings import is_grad_enabled as is_grad_enabled
from .settings import is_inference_mode_enabled as is_inference_mode_enabled
from .settings import set_default_device as set_default_device
from .settings import set_default_dtype as set_default_dtype
from .settings import set_float32_matmul_precision as set_float32_matmul_precision
from .settings import set_num_threads as set_num_threads
from .settings import use_deterministic_algorithms as use_deterministic_algorithms
from .type_promotion import can_cast as can_cast
from .type_promotion import is_tensor as is_tensor
from .type_promotion import promote_types as promote_types
from .type_promotion import result_type as result_type
from .windows import bartlett_window as bartlett_window
from .windows import blackman_window as blackman_window
from .windows import hamming_window as hamming_window
from .windows import hann_window as hann_window
from .windows import kaiser_window as kaiser_window

check_functions(globals())
_HELPERS = ("check_functions", "function_of")


def __getattr__(name: str) -> Any:
    """A method of Tensor as a function, or one of `nn.functional`; made when it is first asked for."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    member = vars(Tensor).get(name)
    if isinstance(member, (classmethod, staticmethod)):
        found = getattr(Tensor, name)
    elif callable(member):
        found = function_of(member)
        found.__name__ = name
    elif callable(getattr(layers, name, None)) and name not in _HELPERS:
        found = getattr(layers, name)
    else:
        import difflib

        near = difflib.get_close_matches(name, __dir__(), 3, 0.6)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; docs/pytorch_names.md lists PyTorch's"
        raise AttributeError(f"functional has no {name!r}{hint}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    own = {name for space in (globals(), vars(layers)) for name, found in space.items() if callable(found)}
    methods = {name for name in vars(Tensor) if callable(getattr(Tensor, name))}
    return sorted(name for name in (own | methods) - {*_HELPERS, "Any", "Tensor"} if not name.startswith("_"))
