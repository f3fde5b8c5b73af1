"""Which lines belong to which loop, and which loop of machine code is hot."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.inspection.targets import TARGETS
from lazygrad.renderer import Renderer
from lazygrad.renderer.cstyle import CStyleRenderer
from lazygrad.viz.machine_code import hot_loop, machine_loops
from lazygrad.viz.program_lines import TextLoop, loops_of_text

#: Two loops, one in the other, as LLVM lays them out: the inner one's head is in the middle.
NESTED = """\
f:
	xorl	%eax, %eax
	jmp	.L1
.L4:
	incl	%eax
	cmpl	$8, %eax
	jge	.L5
.L1:
	xorl	%ecx, %ecx
	.p2align	4
.L2:
	vaddps	%ymm0, %ymm1, %ymm1
	vaddps	%ymm0, %ymm2, %ymm2
	incl	%ecx
	cmpl	$16, %ecx # 16 turns
	jl	.L2
	jmp	.L4
.L5:
	callq	f
	retq
""".splitlines()


def loop(name: str, around: int, turns: int) -> TextLoop:
    return TextLoop(name, f"0..{turns}", "LOOP", "", around, turns, 0, 0)


def test_the_loops_of_machine_code_nest():
    outer, inner = machine_loops(NESTED)
    assert [NESTED[n].split()[0] for n in inner.lines] == ["vaddps", "vaddps", "incl", "cmpl", "jl"]
    assert [NESTED[n].split()[0] for n in outer.own] == ["incl", "cmpl", "jge", "xorl", "jmp"]
    assert (outer.around, inner.around) == (-1, 0)


def test_the_hot_loop_is_where_most_is_executed():
    loops = [loop("a", -1, 8), loop("b", 0, 16)]
    hot = hot_loop(NESTED, machine_loops(NESTED, loops), loops)
    assert hot is not None
    assert hot["turns"] == [8, 16]
    assert hot["executed"] == [5 * 8 * 16, 5 * 8 * 16 + 5 * 8 + 4]
    assert hot["loop"] == 1


def test_what_a_compiler_made_otherwise_has_no_turns():
    loops = [loop("a", -1, 8)]  # the inner one is not in the program
    hot = hot_loop(NESTED, machine_loops(NESTED, loops), loops)
    assert hot is not None
    assert (hot["turns"], hot["executed"], hot["loop"]) == (None, None, -1)
    assert hot["instructions"] == 5
    assert hot_loop(NESTED[-3:], machine_loops(NESTED[-3:]), []) is None


@pytest.mark.parametrize(
    ("make", "begins", "ends"),
    [(CStyleRenderer, "for (int {}", "}"), (TARGETS["webgpu"][1], "for (var {}", "}")],
    ids=["c", "webgpu"],
)
def test_the_lines_of_loops(make: Callable[[], Renderer], begins: str, ends: str):
    ast = (Tensor.empty(64, 96).realize() @ Tensor.empty(96, 48).realize()).schedule()[-1].ast
    renderer = make()
    spec = compile_kernel(ast, renderer)
    lines = spec.src.splitlines()
    found = loops_of_text(spec, renderer)
    loops = [each for each in found if not each.is_launch]
    assert len(loops) == sum("for (" in line for line in lines)
    for each in loops:
        assert lines[each.first].strip().startswith(begins.format(each.name))
        assert lines[each.last].strip() == ends
        indent = lines[each.first].index("for")
        assert all(len(line) - len(line.lstrip()) > indent for line in lines[each.first + 1 : each.last])
    for each in found:
        if each.around >= 0:
            outer = found[each.around]
            assert outer.first < each.first <= each.last <= outer.last
