"""What `autocast` does to methods: which compute in its narrow float, and which in float32.

The two lists are PyTorch's (its documentation of torch.amp), and all reductions of floats are in the second.
A method of neither computes in what it is given. Attention is made of a product, a softmax and a product.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..dtype import DType, dtypes
from .modes import mode

_NARROW = """
    addbmm addmm addmv addr baddbmm bmm chain_matmul conv2d conv_transpose2d dot einsum inner linear matmul mm
    mv tensordot __matmul__ __rmatmul__
"""
_WIDE = """
    acos asin cosh sinh tan exp expm1 log log10 log1p log2 pow reciprocal rsqrt erfinv __pow__ __rpow__
    softmax log_softmax softmin softplus logsumexp logcumsumexp
    layernorm rms_norm group_norm instance_norm batchnorm local_response_norm normalize renorm
    norm vector_norm matrix_norm dist cdist cosine_similarity pairwise_distance
    sum prod mean var std var_mean std_mean nansum nanmean cumsum cumprod
    cross_entropy nll_loss sparse_categorical_crossentropy binary_crossentropy binary_crossentropy_logits
    multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss ctc_loss mse_loss l1_loss
    smooth_l1_loss huber_loss kl_div poisson_nll_loss gaussian_nll_loss soft_margin_loss hinge_embedding_loss
    margin_ranking_loss cosine_embedding_loss triplet_margin_loss
"""
NARROW, WIDE = frozenset(_NARROW.split()), frozenset(_WIDE.split())


def autocasting(function: Callable[..., Any]) -> Callable[..., Any]:
    """The method, made to ask for `autocast` where one of the lists names it."""
    name = function.__name__
    if name not in NARROW and name not in WIDE:
        return function
    narrow = name in NARROW

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        wanted = mode.autocast
        if wanted is None:
            return function(*args, **kwargs)
        to = wanted if narrow else dtypes.float32
        mode.autocast = None  # what the method is made of computes in the same
        try:
            moved = {key: _cast(value, to) for key, value in kwargs.items()}
            return function(*[_cast(value, to) for value in args], **moved)
        finally:
            mode.autocast = wanted

    return wrapper


def _cast(value: Any, to: DType) -> Any:
    """A tensor of floats of at most 32 bits in a dtype; other values as they are."""
    if hasattr(value, "_uop_or_call"):
        floats = dtypes.is_float(value.dtype) and value.dtype is not dtypes.float64
        return value.cast(to) if floats else value
    if type(value) in (list, tuple):
        return type(value)([_cast(part, to) for part in value])
    return value
