"""Products with weights, and attention."""

from __future__ import annotations

from ...shape import shape_text
from ...tensor import Tensor
from ...tensor.signatures import Numbers


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weightᵀ + bias: weights are (out, in), or (in,).

    >>> nn.functional.linear(Tensor([[1.0, 2.0]]), Tensor([[1.0, 1.0]])).tolist()
    [[3.0]]
    """
    if weight.ndim == 1:
        product = input.dot(weight)
        return product if bias is None else product + bias
    return input.linear(weight.transpose(-1, -2), bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1ᵀ · weight[k] · x2 + bias[k] for each k; weights are (out, in1, in2).

    >>> one, two = Tensor([[1.0]]), Tensor([[2.0]])
    >>> nn.functional.bilinear(one, two, Tensor([[[3.0]]])).tolist()
    [[6.0]]
    """
    if weight.ndim != 3 or input1.shape[-1] != weight.shape[1] or input2.shape[-1] != weight.shape[2]:
        shapes = f"{shape_text(input1.shape)}, {shape_text(input2.shape)} and {shape_text(weight.shape)}"
        raise ValueError(f"bilinear takes (..., n), (..., m) and weights (out, n, m), not {shapes}")
    result = Tensor.einsum("...i,kij,...j->...k", input1, weight, input2)
    return result if bias is None else result + bias


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    generator: Numbers | None = None,
) -> Tensor:
    """softmax(query @ keyᵀ · scale + mask) @ value; see `Tensor.scaled_dot_product_attention`.

    >>> one = Tensor([[1.0]])
    >>> nn.functional.scaled_dot_product_attention(one, one, one).tolist()
    [[1.0]]
    """
    options = (attn_mask, dropout_p, is_causal, enable_gqa, scale)
    return query.scaled_dot_product_attention(key, value, *options, generator=generator)
