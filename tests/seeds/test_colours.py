"""SEEDS 10: what colours say, and names that are met twice."""

from __future__ import annotations

import re

import pytest

from lazygrad import Context, Tensor, TinyJit
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.programs.runners import clear_programs, get_runner
from lazygrad.renderer.cstyle import MetalRenderer
from lazygrad.report import rows

BLUE, CYAN, RED, MAGENTA, YELLOW, GREEN, BRIGHT_BLUE, GREY = 34, 36, 31, 35, 33, 32, 94, 90


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr("lazygrad.report.terminal.use_color", lambda: True)


def colours(tensor: Tensor, *opts: Opt) -> list[tuple[str, int]]:
    """(size, colour) of each number in the name of the kernel on Metal."""
    spec = compile_kernel(tensor.schedule()[-1].ast, MetalRenderer(), list(opts))
    found = re.findall(r"\x1b\[(\d+)m(\d+)\x1b\[0m", rows.colored_name(spec))
    return [(size, int(colour)) for colour, size in found]


def squares() -> Tensor:
    return Tensor.empty(4, 4) + Tensor.empty(4, 4)


@pytest.mark.usefixtures("terminal")
def test_S95_colours_of_the_numbers():
    assert colours(squares()) == [("16", BLUE)]
    both = [Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.LOCAL, 0, 2)]
    assert colours(squares(), *both) == [("2", BLUE), ("2", CYAN), ("4", YELLOW)]
    rows = Tensor.empty(4, 8).realize().sum(1)
    assert colours(rows) == [("4", BLUE), ("8", RED)]
    assert colours(rows, Opt(OptOps.UNROLL, 0, 2)) == [("4", BLUE), ("4", RED), ("2", MAGENTA)]
    assert ("2", GREEN) in colours(rows, Opt(OptOps.GROUP, 0, 2))
    assert colours(squares(), Opt(OptOps.NOLOCALS)) == [("16", BRIGHT_BLUE)]


@pytest.mark.usefixtures("terminal")
def test_S95_separators_are_grey():
    spec = compile_kernel(Tensor.empty(4, 8).sum(1).schedule()[-1].ast, MetalRenderer(), [])
    assert rows.colored_name(spec).count(f"\x1b[{GREY}m_\x1b[0m") == 2


def test_S95_no_colours_in_a_pipe():
    spec = compile_kernel(squares().schedule()[-1].ast, MetalRenderer(), [])
    assert rows.colored_name(spec) == "E_16"


def test_S96_another_kernel_of_the_same_name_is_numbered(capsys):
    x = Tensor.empty(11, 13).realize()
    with Context(DEBUG=2, NOOPT=1):
        for work in (Tensor.sin, Tensor.sqrt, Tensor.sin):
            work(x).realize()
    first, other, again = re.findall(r"^\*\*\* CPU +\d+ (E_143\S*)", capsys.readouterr().out, re.M)
    assert first == again != other
    assert re.fullmatch(r"E_143(n\d+)?", first)
    assert re.fullmatch(r"E_143n\d+", other)
    (item,) = x.sqrt().schedule()
    assert get_runner("CPU", item.ast).spec.function_name.startswith("E_")


def heads(output: str) -> list[int | None]:
    """The colour of each row's head; None where it has none."""
    found = re.findall(r"^(?:\x1b\[(\d+)m)?\*\*\* ", output, re.M)
    return [int(colour) if colour else None for colour in found]


@pytest.mark.choice
@pytest.mark.usefixtures("terminal")
def test_S97_colours_of_the_heads(capsys):
    clear_programs()  # the first run of a kernel is green
    x = Tensor([1.0, 2.0, 3.0]).realize()
    with Context(DEBUG=2, CACHELEVEL=1):
        for _ in range(2):
            (x * 2.718281 + 0.577215).realize()
        Tensor([1.0]).realize()
    first, again, copy = heads(capsys.readouterr().out)
    assert (first, again, copy) == (GREEN, None, YELLOW)


@pytest.mark.usefixtures("terminal")
def test_S97_rows_of_the_jit(capsys):
    step = TinyJit(lambda x: (x + 1).realize())
    x = Tensor([1.0]).realize()
    for _ in range(2):
        step(x)
    with Context(DEBUG=2):
        step(x)
    assert heads(capsys.readouterr().out)[-1:] == [MAGENTA]


@pytest.mark.usefixtures("terminal")
def test_S97_slow_times_are_yellow():
    slow = rows.row("CPU", "E_4", 1, 0.02, 1, 1, 1, (), None)
    assert re.search(rf"\x1b\[{YELLOW}m +20\.00ms", slow)
    assert f"\x1b[{YELLOW}m" not in rows.row("CPU", "E_4", 1, 0.002, 1, 1, 1, (), None)
