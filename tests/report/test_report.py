"""DEBUG's rows: colours, names of different kernels, the roofline, and reasons."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest

from lazygrad import Context, Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.config import THREADS
from lazygrad.device import Device, GlobalCounters
from lazygrad.ir.args import AxisType
from lazygrad.programs.runners import clear_programs
from lazygrad.renderer.cstyle import MetalRenderer
from lazygrad.report import roofline, rows, terminal
from lazygrad.report.roofline import Roofline
from lazygrad.target import Memory, Target
from tests.helpers import PATIENCE, ROOT


@pytest.fixture
def colors(monkeypatch):
    monkeypatch.setattr(terminal, "use_color", lambda: True)


def shown(capsys, work, **flags) -> list[str]:
    Device["CPU"]  # opening it would be a line
    with Context(**{"DEBUG": 2, **flags}):
        work()
    return [line for line in capsys.readouterr().out.splitlines() if " empty " not in line]


def kernel(value: Tensor):
    (item,) = (i for i in value.schedule() if len(i.bufs) and "COPY" not in str(i.ast.op))
    return item


# ---- names ----


def test_sizes_have_the_colours_of_their_loops(colors):
    item = kernel(Tensor.empty(32, 8, 16).sum(1))
    opts = [Opt(OptOps.UPCAST, 1, 4), Opt(OptOps.LOCAL, 0, 8), Opt(OptOps.UNROLL, 0, 2)]
    spec = compile_kernel(item.ast, MetalRenderer(), opts)
    assert spec.name == "r_4_4_8_4_2_4"
    kinds = [
        AxisType.GLOBAL,
        AxisType.GLOBAL,
        AxisType.LOCAL,
        AxisType.REDUCE,
        AxisType.UNROLL,
        AxisType.UPCAST,
    ]
    assert list(spec.axes) == kinds
    blue, cyan, red, magenta, yellow = (f"\x1b[{n}m" for n in (34, 36, 31, 35, 33))
    line, end = "\x1b[90m_\x1b[0m", "\x1b[0m"
    parts = ["r", f"{blue}4{end}", f"{blue}4{end}", f"{cyan}8{end}"]
    parts += [f"{red}4{end}", f"{magenta}2{end}", f"{yellow}4{end}"]
    assert rows.colored_name(spec) == line.join(parts)


def test_loops_over_blocks_have_a_colour_and_so_has_every_kind(colors):
    item = kernel(Tensor.empty(32, 32).T.contiguous())
    spec = compile_kernel(item.ast, Device["CPU"].renderer, [Opt(OptOps.TILE, 0, 8)])
    assert AxisType.TILE in spec.axes
    assert "\x1b[96m" in rows.colored_name(spec)
    assert set(rows._OF_AXIS) == set(AxisType)


def test_without_locals_global_is_bright(colors):
    item = kernel(Tensor.empty(32) + 1)
    spec = compile_kernel(item.ast, MetalRenderer(), [Opt(OptOps.NOLOCALS)])
    assert "\x1b[94m32\x1b[0m" in rows.colored_name(spec)


def test_names_are_plain_where_colours_are_not_shown():
    item = kernel(Tensor.empty(32) + 1)
    assert rows.colored_name(compile_kernel(item.ast, MetalRenderer(), [])) == "E_32"


def test_another_kernel_of_the_same_name_gets_a_number(capsys, monkeypatch):
    monkeypatch.setattr(rows, "_shown", {})
    a, b = Tensor.empty(7, 19).realize(), Tensor.empty(7, 19).realize()  # whose kernels no other test shows

    def work() -> None:
        for value in (a + a, a * a, b + b):
            value.realize()

    names = [row[17:58].strip() for row in shown(capsys, work, NOOPT=1)]
    assert names == ["E_133", "E_133n1", "E_133"]


def test_heads_of_rows(capsys, colors):
    clear_programs()  # a kernel that has run is not the first of its rows
    a = Tensor([1.0, 2.0, 3.0, 4.0, 5.0])

    def work() -> None:
        for _ in range(2):
            (a - 7.25).realize()

    copy, first, again = shown(capsys, work, CACHELEVEL=1)
    assert copy.startswith("\x1b[33m*** CPU")
    assert "\x1b[33mcopy" in copy
    assert first.startswith("\x1b[32m*** CPU")
    assert again.startswith("*** CPU")


def on_a_terminal(script: str, **flags: str) -> str:
    """What a script prints to a terminal of its own."""
    pty = pytest.importorskip("pty")
    env = {name: text for name, text in os.environ.items() if name not in ("NO_COLOR", "DEBUG")}
    env |= {"PYTHONPATH": str(ROOT), "TERM": "xterm", **flags}
    main, side = pty.openpty()
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=side, env=env) as process:
        os.close(side)
        out = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:  # Linux says so when the other side is closed
                break
            if not part:
                break
            out += part
    os.close(main)
    assert process.returncode == 0
    return out.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")
def test_colours_on_a_terminal_only_and_never_with_no_color():
    script = "from lazygrad import Tensor; (Tensor.empty(4, 4) + 1).realize()"
    assert "\x1b[33mempty" in on_a_terminal(script, DEBUG="2")
    assert "\x1b[" not in on_a_terminal(script, DEBUG="2", NO_COLOR="1")


@pytest.mark.parametrize("style", ["", "classic"])
def test_what_the_encoding_lacks_is_a_question_mark(style, tmp_path):
    path = tmp_path / "script.py"
    script = """
        from lazygrad import Tensor, TinyJit
        def größe(x):
            return (x + 1).contiguous() * 2
        jitted = TinyJit(größe)
        for _ in range(3):
            print(jitted(Tensor([1.0])).tolist())
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    env |= {"DEBUG": "5", "TRACEMETA": "2", "DEBUG_STYLE": style}
    path.write_text(textwrap.dedent(script), encoding="utf-8")
    done = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0
    assert done.stderr.startswith("\nkernel ")  # the tables at the end, and no error
    assert "Error" not in done.stderr
    assert done.stdout.count("[4.0]") == 3
    assert ("?? STORE" in done.stdout) is (style == "classic")


# ---- the roofline ----


def test_the_share_is_that_of_what_binds():
    machine = Roofline(100e9, ((1 << 16, 200e9),), 10e9)
    assert machine.share(1.0, 50 * 10**9, 1 << 30) == "50% of 100.0 GFLOPS"
    assert machine.share(1.0, 10**9, 5 * 10**9) == "50% of 10.0 GB/s"
    assert machine.share(1e-6, 0, 1 << 16) == "33% of 200.0 GB/s"
    assert machine.share(0.0, 1, 1) == ""


def test_what_no_cache_holds_is_bound_by_memory():
    machine = Roofline(100e9, ((48 << 10, 200e9), (32 << 20, 100e9)), 40e9)
    held = 48 << 10, (48 << 10) + 1, 32 << 20, (32 << 20) + 1, 1 << 30
    assert [machine.bytes_per_second(touched) * 1e-9 for touched in held] == [200, 100, 100, 40, 40]


def test_a_core_has_caches_of_its_own_and_shares_the_last(monkeypatch):
    sizes: list[int] = []

    def run(device, ast, size):
        sizes.append(size)
        return 1e-9 * size

    monkeypatch.setattr(roofline, "_seconds", run)
    device = SimpleNamespace(target=Target("CPU", memory=Memory((48 << 10, 1 << 20, 32 << 20)), threads=2))
    with Context(THREADS=2):
        ops, caches, memory = roofline._measured(device)
    assert [held for held, _ in caches] == [96 << 10, 2 << 20, 32 << 20]
    assert sizes[:-1] == [touched // 12 for touched in (48 << 10, 1 << 20, 16 << 20, 6 * 32 << 20)]
    assert [rate for _, rate in caches] + [memory] == pytest.approx([12e9] * 4)
    assert ops > 0


@pytest.mark.usefixtures("undisturbed")
def test_a_roofline_is_measured_outside_of_all_books(capsys):
    roofline.forget()
    with Context(DEBUG=2, CACHELEVEL=0):
        Device["CPU"]
        capsys.readouterr()
        before = dict(vars(GlobalCounters))
        found = roofline.roofline("CPU")
        assert vars(GlobalCounters) == before
    assert capsys.readouterr().out == ""
    assert found is not None
    assert found.ops > 1e8
    assert all(rate >= found.memory > 1e8 for _, rate in found.caches)
    assert roofline.roofline("CPU") is found
    roofline.forget()


def test_a_roofline_is_that_of_as_many_threads(monkeypatch):
    roofline.forget()
    monkeypatch.setattr(roofline, "_measured", lambda device: [1e9 * THREADS.value, [[1 << 10, 1e9]], 1e9])
    with Context(CACHELEVEL=0, THREADS=1):
        assert roofline.roofline("CPU").ops == 1e9
    with Context(CACHELEVEL=0, THREADS=2):
        assert roofline.roofline("CPU").ops == 2e9
    roofline.forget()


def test_where_nothing_runs_there_is_no_roofline(capsys):
    assert roofline.roofline("NULL") is None
    assert roofline.roofline("NPY") is None
    (row,) = shown(capsys, lambda: (Tensor.empty(4, device="NULL") + 1).realize())
    assert row.endswith("['__add__']")


def test_the_best_of_several_processes_is_kept(monkeypatch):
    kept: dict[str, object] = {}
    monkeypatch.setattr(roofline, "diskcache_get", lambda table, key: kept.get(table))
    monkeypatch.setattr(roofline, "diskcache_put", lambda table, key, value: kept.update({table: value}))
    found = iter([[9e9, [[10, 2e9]], 5e8], [8e9, [[10, 3e9]], 4e8], *[[1e9, [[10, 1e9]], 1e8]] * 9])
    monkeypatch.setattr(roofline, "_measured", lambda device: next(found))
    seen = []
    for _ in range(roofline.TIMES + 2):  # each a process
        roofline.forget()
        seen.append(roofline.roofline("CPU"))
    assert seen == [
        Roofline(9e9, ((10, 2e9),), 5e8),
        *[Roofline(9e9, ((10, 3e9),), 5e8)] * (roofline.TIMES + 1),
    ]
    assert len(list(found)) == 11 - roofline.TIMES
    roofline.forget()


def test_a_kernel_that_exceeds_the_peak_has_it_measured_once_more(monkeypatch):
    kept: dict[str, object] = {roofline.TABLE: [roofline.TIMES, [1e9, [[10, 1e9]], 1e9]]}
    monkeypatch.setattr(roofline, "diskcache_get", lambda table, key: kept.get(table))
    monkeypatch.setattr(roofline, "diskcache_put", lambda table, key, value: kept.update({table: value}))
    found = iter([[4e9, [[10, 1e9]], 1e9]])
    monkeypatch.setattr(roofline, "_measured", lambda device: next(found))
    roofline.forget()
    assert roofline.reached("CPU", 1.0, 10**9, 0) == "100% of 1.0 GFLOPS"
    assert roofline.reached("CPU", 0.5, 10**9, 0) == "50% of 4.0 GFLOPS"
    assert roofline.reached("CPU", 0.1, 10**9, 0) == "250% of 4.0 GFLOPS"  # once in a process
    assert kept[roofline.TABLE] == [roofline.TIMES + 1, [4e9, [[10, 1e9]], 1e9]]
    roofline.forget()


def test_below_debug_2_nothing_is_measured(monkeypatch):
    monkeypatch.setattr(roofline, "_measured", lambda device: pytest.fail("measured"))
    roofline.forget()
    with Context(DEBUG=1, CACHELEVEL=0):
        (Tensor.empty(4, 4) + 1).realize()
    roofline.forget()


# ---- reasons ----


def test_debug_3_says_why_a_kernel_ends_and_where(capsys):
    x = Tensor.empty(64, 64).realize()

    def work() -> None:
        y = (x.sum(0) + 1).contiguous()  # this line
        (y * y.sum()).realize()

    out = "\n".join(shown(capsys, work, DEBUG=3))
    place = re.escape(f"{__file__}:{work.__code__.co_firstlineno + 1}")
    trip = r"[\d,]+ bytes, read by \d kernels?"
    asked = rf"stores 64 dtypes\.float: contiguous is asked for; {trip} \(contiguous, {place}\)"
    assert re.search(asked, out)
    assert re.search(r"stores 64 dtypes\.float: it is a result; 256 bytes \(__mul__, ", out)


def test_debug_3_says_why_opts_are_refused(capsys):
    x = Tensor.empty(64, 64).realize()
    out = shown(capsys, lambda: (x + 1).realize(), DEBUG=3)
    assert "  refused LOCAL at axis 0: CPU has no workgroups" in out
    assert "  refused UNROLL: there is no reduce axis" in out
    assert not any("refused" in line for line in shown(capsys, lambda: (x + 2).realize(), DEBUG=3, NOOPT=1))


def test_a_training_step_at_the_highest_level(capsys):
    from lazygrad import nn

    layer = nn.Linear(8, 4)
    optimizer = nn.optim.Adam(nn.state.get_parameters(layer))

    def work() -> None:
        with Tensor.train():
            loss = layer(Tensor.rand(16, 8)).relu().square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            order = loss.reshape(1).sort()[1]  # a kernel that is no loop nest
            assert order.tolist() == [0]

    out = "\n".join(shown(capsys, work, DEBUG=7, CACHELEVEL=0))
    for text in (
        "stores ",
        "opts [",
        "refused ",
        "UOp(Ops.SINK",
        "after lower",
        "after vectorize",
        "Ops.STORE  ",
        "define ",
        ".globl",
    ):
        assert text in out
