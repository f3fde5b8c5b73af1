"""The rows of `decompositions`, one by one: what an op becomes on a target that lacks it."""

from __future__ import annotations

import pytest

from lazygrad.codegen.legalizing.decompose import decompose, decompositions, refusals
from lazygrad.dtype import DType, dtypes
from lazygrad.ir.expression import render
from lazygrad.ir.ops import ELEMENTWISE, Ops
from lazygrad.ir.rewrite import observe
from lazygrad.ir.uop import UOp
from lazygrad.target import Target

from .numpy_graph import leaf


class Machine:
    """All ops and types but what a test says."""

    target = Target("TEST", vector_bytes=16)

    def __init__(self, *lacks: Ops) -> None:
        self.lacks = lacks

    def supports(self, op: Ops, dtype: DType) -> bool:
        return op not in self.lacks


X, Y, Z = (leaf(name, dtypes.int32) for name in "xyz")
U, V = (leaf(name, dtypes.uint8) for name in "uv")
A, B, C = (leaf(name, dtypes.float32) for name in "abc")
H = leaf("h", dtypes.float16)
P, Q = (leaf(name, dtypes.bool) for name in "pq")
NAMES = {node: name for name, node in zip("xyzuvabchpq", (X, Y, Z, U, V, A, B, C, H, P, Q), strict=True)}

ROWS = [
    # constants and choices
    (X.const_like(3) + X.const_like(4), "7"),
    (-X.const_like(3), "-3"),
    (UOp(Ops.WHERE, X.dtype, (P.const_like(True), X.const_like(3), X.const_like(4))), "3"),
    (P.where(X, X), "x"),
    (P.const_like(True).where(X, Y), "x"),
    (P.const_like(False).where(X, Y), "y"),
    (UOp(Ops.CHECK, P.dtype, (P, P.const_like(True), X)), "p"),  # nothing is to be reported
    # bools
    (P + Q, "(p|q)"),
    (P * Q, "(p&q)"),
    (P - Q, "(p^q)"),
    (P.maximum(Q), "(p|q)"),
    (-P, "(p!=True)"),
    (P < Q, "((p!=True)&q)"),
    (P <= Q, "((p!=True)|q)"),
    # arithmetic and comparisons
    (X - Y, "(x+(-y))"),
    (-X, "(0-x)"),
    (-A, "(-0.0-a)"),
    (X.maximum(Y), "((x<y)?y:x)"),
    (A.minimum(B), "(((b<a)|(b!=b))?b:a)"),
    (X <= Y, "((y<x)!=True)"),
    (A <= B, "((a<b)|(a==b))"),
    (X.eq(Y), "((x!=y)!=True)"),
    (X.ne(Y), "((x==y)^True)"),
    (A.alu(Ops.RECIP), "(1.0/a)"),
    (X.alu(Ops.TRUNC), "x"),
    (X.alu(Ops.MULACC, Y, Z), "((x*y)+z)"),
    (Z + X.alu(Ops.DP4A, Y, X.const_like(0)), "dp4a(x, y, z)"),
    (X.alu(Ops.DP4A, Y, X) + Z, "dp4a(x, y, (z+x))"),
    # casts
    (UOp(Ops.CAST, X.dtype, (X,)), "x"),
    (X.cast(dtypes.bool), "(x!=0)"),
    # whole numbers
    (X // X.const_like(8), "(x>>3)"),
    (X % X.const_like(8), "(x&7)"),
    (U // V, "((v==0)?0:(u//((v==0)?1:v)))"),
    (X // X.const_like(7), "(((x^(x>>31))//7)^(x>>31))"),
    (U << V, "((v<8)?(u<<(v&7)):0)"),
    (X >> Y, "(x>>((bits_as_uint(y)<32)?y:31))"),
    (X.alu(Ops.POW, X.const_like(3)), "(x*(x*x))"),
    # lanes
    (UOp(Ops.VECTORIZE, dtypes.int32.vec(2), (X.const_like(1), X.const_like(2))), "{1, 2}"),
    (UOp(Ops.GEP, dtypes.int32, (UOp(Ops.VECTORIZE, dtypes.int32.vec(2), (X, Y)),), (1,)), "y"),
]
#: What is too long for a line: the ops that are left.
LONG = [
    (A.alu(Ops.TRUNC), "AND BITCAST CAST CMPLT OR WHERE"),
    (A.cast(dtypes.uint8), "AND CAST CMPLE CMPLT WHERE"),
    (X.alu(Ops.DP4A, Y, Z), "ADD AND MUL SHL SHR"),
    (X // Y, "ADD BITCAST CMPEQ CMPNE IDIV MUL SHR SUB WHERE XOR"),
    (A.alu(Ops.EXP2), "ADD AND BITCAST CMPLT MUL SHL SHR SUB WHERE"),
    (H.alu(Ops.EXP2), "ADD AND BITCAST CAST CMPLT MUL SHL SHR SUB WHERE"),
    (X.const_like(2).alu(Ops.POW, X.const_like(3)), ""),
]


def machine_for(before: UOp) -> Machine:
    return Machine(Ops.LDEXP) if before.op is Ops.ADD else Machine(before.op, Ops.LDEXP)


@pytest.mark.parametrize(("before", "after"), ROWS, ids=[after for _, after in ROWS])
def test_an_op_that_the_target_lacks(before: UOp, after: str) -> None:
    assert render(decompose(before, machine_for(before)), NAMES) == after


@pytest.mark.parametrize(("before", "ops"), LONG, ids=[render(before, NAMES) for before, _ in LONG])
def test_the_ops_of_a_longer_form(before: UOp, ops: str) -> None:
    made = decompose(before, machine_for(before))
    found = {node.op.name for node in made.toposort() if node.op in ELEMENTWISE}
    assert " ".join(sorted(found)) == ops


@pytest.mark.parametrize("before", [b for b, _ in ROWS + LONG], ids=lambda before: render(before, NAMES))
def test_what_is_made_is_legal_as_it_stands(before: UOp) -> None:
    made = decompose(before, machine_for(before))
    assert decompose(made, machine_for(before)) is made


def test_every_row_is_shown_here() -> None:
    fired = set()
    with observe(lambda name, place, before, after: fired.add(place)):
        for before, _ in ROWS + LONG:
            decompose(before, machine_for(before))
        decompose(H.alu(Ops.FMOD, H), HalfLess())
    silent = [rule for rule in decompositions if rule.file_and_line() not in fired]
    assert [str(rule) for rule in silent if rule not in refusals.rules] == []


class HalfLess(Machine):
    """A target that computes in float32 alone."""

    def supports(self, op: Ops, dtype: DType) -> bool:
        return dtype is not dtypes.float16


def test_a_remainder_of_halves_is_taken_in_float32() -> None:
    assert render(decompose(H.alu(Ops.FMOD, H), HalfLess()), NAMES) == "half(fmod(float(h), float(h)))"


def test_what_has_no_other_form_is_refused() -> None:
    with pytest.raises(
        NotImplementedError, match=r"Ops\.SQRT of dtypes\.float is not supported on this target"
    ):
        decompose(A.alu(Ops.SQRT), Machine(Ops.SQRT))
    with pytest.raises(NotImplementedError, match=r"MULACC of dtypes\.float \(one rounding\)"):
        decompose(A.alu(Ops.MULACC, B, C), Machine(Ops.MULACC))
    with pytest.raises(
        NotImplementedError, match="IDIV of floats is not an op of kernels: use FDIV and TRUNC"
    ):
        decompose(UOp(Ops.IDIV, A.dtype, (A, B)), Machine())
    with pytest.raises(NotImplementedError, match=r"Ops\.CMPNE of dtypes\.float"):
        decompose(A.ne(B), Machine(Ops.CMPEQ, Ops.CMPNE))
