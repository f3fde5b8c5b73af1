"""Elementwise graphs on arrays: the value of every op of `ir.ops` for millions of inputs at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from lazygrad.dtype import DType, numpy_name
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp


def leaf(name: str, dtype: DType) -> UOp:
    """An input of a graph."""
    return UOp(Ops.LOAD, dtype, (), name)


def evaluate(root: UOp, inputs: dict[UOp, np.ndarray]) -> np.ndarray:
    """The array a graph gives for arrays of inputs; rounding and wrapping are those of each node's dtype."""
    nodes = root.toposort()
    last_use = {s: i for i, node in enumerate(nodes) for s in node.src}
    values: dict[UOp, Any] = dict(inputs)
    with np.errstate(all="ignore"):
        for i, node in enumerate(nodes):
            if node in inputs or (node.op not in _OPS and node.op is not Ops.CONST):
                continue  # an input, or an address below one
            kind = np.dtype(numpy_name(node.dtype))
            if node.op is Ops.CONST:
                values[node] = kind.type(node.arg)
                continue
            sources = [values[s] for s in node.src]
            values[node] = np.asarray(_OPS[node.op](*sources, dtype=kind)).astype(kind, copy=False)
            for s in set(node.src):
                if last_use[s] == i and s not in inputs:
                    del values[s]
    return np.asarray(values[root])


def _plain(function: Any) -> Any:
    return lambda *values, dtype: function(*values)


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    x = np.asarray(x)
    if x.dtype.kind == "f" and dtype.kind in "iu":
        info = np.iinfo(dtype)
        inside = (x >= float(info.min)) & (x < float(info.max + 1))
        value = np.where(inside, x, 0).astype(dtype)
        value = np.where(~inside & (x > 0), dtype.type(info.max), value)
        return np.where(~inside & (x < 0), dtype.type(info.min), value)
    return x != 0 if dtype.kind == "b" else x.astype(dtype)


def _bits_of(dtype: np.dtype[Any]) -> int:
    return dtype.itemsize * 8


def _shift(function: Any) -> Any:
    def shifted(x: Any, amount: Any, dtype: np.dtype[Any]) -> Any:
        assert np.all((amount >= 0) & (amount < _bits_of(dtype))), "legal code shifts within the width"
        return function(x, amount)

    return shifted


def _divide(function: Any) -> Any:
    def divided(x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
        assert np.all(np.asarray(x) >= 0), "legal code divides what is not negative"
        assert np.all(np.asarray(y) > 0), "legal code divides by what is positive"
        return function(x, y)

    return divided


def _multiply_add(a: Any, b: Any, c: Any, dtype: np.dtype[Any]) -> Any:
    """One rounding: exact for float32, the float64 sum rounded to odd; for float64 rarely two."""
    if dtype.kind != "f":
        return a * b + c
    wide = np.float64 if dtype == np.float32 else np.longdouble
    p, c = np.asarray(a, wide) * np.asarray(b, wide), np.asarray(c, wide)
    total = np.asarray(p + c)
    back = total - p
    error = (p - (total - back)) + (c - back)
    if dtype == np.float64:
        return total
    bits = np.atleast_1d(total).view(np.int64)
    away = np.where((error > 0) == (total > 0), 0, -1)  # round toward zero, then set the last bit
    odd = np.where((error != 0) & np.isfinite(total), (bits + away) | 1, bits).view(np.float64)
    return odd.reshape(np.shape(total)).astype(np.float32)


def _extremum(less: Any) -> Any:
    def extremum(x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
        chosen = np.where(less(x, y), y, x)
        return np.where(y != y, y, chosen) if dtype.kind == "f" else chosen

    return extremum


_OPS: dict[Ops, Any] = {
    Ops.ADD: _plain(np.add),
    Ops.SUB: _plain(np.subtract),
    Ops.MUL: _plain(np.multiply),
    Ops.FDIV: _plain(np.true_divide),
    Ops.FMOD: _plain(np.fmod),
    Ops.NEG: _plain(np.negative),
    Ops.SQRT: _plain(np.sqrt),
    Ops.TRUNC: _plain(np.trunc),
    Ops.RECIP: lambda x, dtype: dtype.type(1) / x,
    Ops.MAX: _extremum(lambda x, y: x < y),
    Ops.MIN: _extremum(lambda x, y: y < x),
    Ops.MULACC: _multiply_add,
    Ops.CMPLT: _plain(np.less),
    Ops.CMPLE: _plain(np.less_equal),
    Ops.CMPEQ: _plain(np.equal),
    Ops.CMPNE: _plain(np.not_equal),
    Ops.AND: _plain(np.bitwise_and),
    Ops.OR: _plain(np.bitwise_or),
    Ops.XOR: _plain(np.bitwise_xor),
    Ops.WHERE: _plain(np.where),
    Ops.LDEXP: lambda n, x, dtype: np.ldexp(x, n),
    Ops.SHL: _shift(np.left_shift),
    Ops.SHR: _shift(np.right_shift),
    Ops.IDIV: _divide(np.floor_divide),
    Ops.MOD: _divide(np.remainder),
    Ops.CAST: _cast,
    Ops.BITCAST: lambda x, dtype: np.asarray(x).view(dtype),
}
