"""A renderer is a table of rows: which row made a line can be asked, and a dialect's own rows come first."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lazygrad.dtype import dtypes
from lazygrad.ir import Ops, observe
from lazygrad.renderer.cstyle import CStyleRenderer, CUDARenderer, MetalRenderer, OpenCLRenderer, dialects
from lazygrad.renderer.cstyle.text import without_parentheses
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.renderer.python import PythonRenderer

from .support import add_program, dot_program

RENDERERS = [LLVMRenderer(), CStyleRenderer(), CUDARenderer("sm_80"), MetalRenderer(), PythonRenderer()]


@pytest.mark.parametrize("renderer", RENDERERS, ids=lambda r: r.suffix)
@pytest.mark.parametrize("program", [lambda: add_program(16, 4), lambda: dot_program(4)], ids=["add", "dot"])
def test_every_line_has_its_row(renderer, program) -> None:
    events: list[tuple[str, str, str]] = []
    with observe(lambda name, place, node, text: events.append((name, place, text))):
        text = renderer.render("k", program())
    assert text == renderer.render("k", program())
    assert all(name == "render" and "/renderer/" in place for name, place, _ in events)
    told = {line for _, _, lines in events for line in lines.splitlines()}
    body = [line for line in text.partition("_entry(")[0].splitlines()[1:] if line.startswith(" ")]
    missed = [line for line in body if line not in told]
    # What stands around the nodes, and what is known when a loop ends.
    assert all(any(word in line for word in ("= phi", "ret void", "size_", "outside_")) for line in missed)
    assert len(body) > len(missed) + 3


def test_rows_of_a_dialect_stand_before_the_common_ones() -> None:
    common = set(dialects.COMMON)
    for dialect in (dialects.C, dialects.OPENCL, dialects.CUDA, dialects.METAL):
        shared = [row in common for row in dialect.rows]
        assert shared[-1]
        assert not shared[0]
        assert all(a <= b for a, b in pairwise(shared))


def test_a_row_that_differs_is_told() -> None:
    places: dict[str, str] = {}

    def watch(name, place, node, text):
        if node.op is Ops.LOAD:
            places[text.strip()] = place.rpartition("/")[2].partition(":")[0]

    with observe(watch):
        OpenCLRenderer().render("k", add_program(16, 4))
        OpenCLRenderer().render("k", add_program(16, 1))
    assert {place for line, place in places.items() if "vload4" in line} == {"dialects.py"}
    assert {place for line, place in places.items() if "vload4" not in line} == {"memory.py"}


def test_supports_is_what_the_table_says() -> None:
    metal, c = MetalRenderer(), CStyleRenderer()
    for op, dtype in ((Ops.XOR, dtypes.bool), (Ops.RECIP, dtypes.float32), (Ops.LOAD, dtypes.float16)):
        assert metal.supports(op, dtype)
        assert c.supports(op, dtype)
    assert metal.supports(Ops.SQRT, dtypes.float16)
    assert not c.supports(Ops.SQRT, dtypes.float16)
    for op, dtype in ((Ops.SHL, dtypes.bool), (Ops.RECIP, dtypes.int32), (Ops.RECIP, dtypes.bool)):
        assert not metal.supports(op, dtype)
        assert not c.supports(op, dtype)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("(a+b)", "a+b"), ("(a)+(b)", "(a)+(b)"), ("a", "a"), ("((a))", "(a)"), ("f(a)", "f(a)")],
)
def test_parentheses_around_all_of_an_expression(text, expected):
    assert without_parentheses(text) == expected
