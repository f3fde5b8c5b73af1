"""What `explain` records and shows: every form, each rewrite with its rule, by keys or as plain text."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lazygrad import Context, Tensor
from lazygrad.__main__ import main
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.dtype import dtypes
from lazygrad.ir import Ops, UOp
from lazygrad.renderer.cstyle import CStyleRenderer, MetalRenderer
from lazygrad.viz import Form, Page, Recording, Rewrite, pages, plain, record
from lazygrad.viz.pages import rewrite_lines
from lazygrad.viz.record import PlanningRecorder
from lazygrad.viz.walk import frame, walk
from tests.helpers import PATIENCE, ROOT

DOT = """
    from lazygrad import Tensor
    a, b = Tensor([1.0, 2.0, 3.0, 4.0]), Tensor([5.0, 6.0, 7.0, 8.0])
    print((a * b).sum().item())
    print("not reached")
"""


def kernel(value: Tensor) -> UOp:
    return value.schedule()[-1].ast


def dot() -> Recording:
    a = Tensor.empty(8).realize()
    return record(kernel((a * a).sum().exp2()), CStyleRenderer(), [Opt(OptOps.UNROLL, 0, 4)])


def command(tmp_path: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(script))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "DEV": "CPU"}
    line = [sys.executable, "-m", "lazygrad", "explain", str(path), *words]
    return subprocess.run(line, capture_output=True, text=True, env=env, timeout=PATIENCE)


# ---- recording ----


def test_every_form_is_recorded_in_order():
    forms = dot().forms
    assert [form.name for form in forms] == [
        "schedule", "lower", "apply opts", "vectorize", "choose widths", "decompose", "linearize", "render",
    ]  # fmt: skip
    assert [form.number for form in forms] == [2, 3, 4, 5, 5, 6, 7, 8]
    assert "void r_2_4(" in str(forms[-1].value)
    assert [form.promise for form in forms if form.name == "linearize"] == [
        "a list in the order of writing; every loop is closed"
    ]


def test_a_rewrite_names_its_rule_and_where_it_is_written():
    forms = {form.name: form for form in dot().forms}
    (opt,) = forms["apply opts"].rewrites
    assert opt.rule == "Opt(op=OptOps.UNROLL, axis=0, amount=4)"
    (rewritten,) = (step for step in forms["decompose"].rewrites if step.before.op is Ops.EXP2)
    file, line = rewritten.location.rsplit(":", 1)
    assert file == "lazygrad/codegen/legalizing/decompose.py"
    source = (ROOT / file).read_text(encoding="utf-8").splitlines()
    assert rewritten.rule == source[int(line) - 1].strip().rstrip(",")
    assert "from_arithmetic" in rewritten.rule


def test_recording_changes_nothing():
    from lazygrad.codegen.compile import compile_kernel

    ast = kernel(Tensor.empty(16, 8).realize().sum(1))
    plain_spec = compile_kernel(ast, MetalRenderer())
    assert record(ast, MetalRenderer()).forms[-1].value == plain_spec.src


def test_a_kernel_that_sorts_is_recorded_too():
    forms = record(kernel(Tensor.empty(32).realize().sort()[1]), CStyleRenderer()).forms
    assert [form.promise for form in forms if form.name == "linearize"] == [
        "counted loops that sort by digits, or the steps of a routine or of a user's kernel"
    ]


def planned(value: Tensor) -> PlanningRecorder:
    """What is recorded of the plan of a value."""
    planning = PlanningRecorder()
    with planning.recording():
        value.kernelize()
    return planning


@pytest.mark.choice
def test_passes_of_planning_that_changed_something_are_recorded():
    x = Tensor.empty(4, 5).realize()
    names = [form.name for form in planned(x + 1).forms]
    assert names == ["place", "choose memory", "build kernels"]
    value = x.detach().sum(1).sum(0)
    planning = planned(value)
    assert [form.name for form in planning.forms] == ["make plain", *names]
    assert planning.requested[0].op is Ops.REDUCE_AXIS
    rules = {step.by: (step.rule, step.location) for step in planning.forms[0].rewrites}
    rule, place = rules["sums of sums"]
    file, line = place.rsplit(":", 1)
    assert file == "lazygrad/schedule/rewrite/reduces.py"
    assert rule in (ROOT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    shown = "\n".join(plain(record(kernel(value), CStyleRenderer(), [], planning.requested, planning.forms)))
    assert "== make plain, rewrite 1 of 2: (UPat(Ops.DETACH, src=(x,)), x)" in shown
    assert "REDUCE_AXIS: it is a result" in shown


def test_what_nobody_records_leaves_no_observer():
    from lazygrad.schedule.plan import pass_observers

    planned(Tensor.empty(3).realize() * 2)
    assert pass_observers == []


# ---- pages ----


def test_plain_text(golden):
    text = "\n".join(plain(dot()))
    assert golden(re.sub(r"(\.py):\d+", r"\1:N", text))


@pytest.mark.choice
def test_a_kernel_that_counts_its_elements_is_told():
    assert any("Ops.IOTA" in line for line in plain(record(kernel(Tensor.rand(4)), CStyleRenderer())))


def test_what_changes_is_marked_and_the_rest_is_one_line():
    x = UOp(Ops.DEFINE_VAR, dtypes.int, (), ("x", 0, 9))
    y = UOp(Ops.DEFINE_VAR, dtypes.int, (), ("y", 0, 9))
    kept = x * y + x
    step = Rewrite("fold", "x + x -> x * 2", "here:1", kept + kept, kept * 2)
    assert rewrite_lines(step) == [
        ("-", "Ops.ADD dtypes.int"),
        (" ", "  x * y + x"),
        (" ", "  x * y + x"),
        ("+", "Ops.MUL dtypes.int"),
        (" ", "  x * y + x"),
        ("+", "  2"),
    ]


def test_equal_rewrites_are_told_once_with_their_count():
    x = UOp(Ops.DEFINE_VAR, dtypes.int, (), ("x", 0, 9))
    step = Rewrite("fold", "x + 0", "here:1", x + 0, x)
    shown = pages(Recording("k", "t", (Form(6, "legalize", "so", "text", (step, step, step)),)))
    assert shown[0].heading == "legalize, rewrite 1 of 1, 3 times: x + 0   (here:1)"
    assert len(shown) == 2


def test_large_forms_are_cut_unless_all_is_asked_for():
    big = Recording("k", "t", (Form(8, "render", "so", "\n".join(map(str, range(1000)))),))
    (page,) = pages(big)
    assert len(page.lines) == 81
    assert page.lines[40] == (" ", "... 920 more lines (--full shows them)")
    (whole,) = pages(big, full=True)
    assert len(whole.lines) == 1000


def test_a_kernel_of_thousands_of_nodes_stays_usable():
    x = Tensor.empty(4).realize()
    y = x
    for n in range(400):
        y = (y * x + n).sin() if n % 40 == 0 else y * x + n
    assert len(list(plain(record(kernel(y), CStyleRenderer())))) < 40_000


# ---- walking ----

STEPS = [Page(f"step {n}", tuple((" ", f"line {m}") for m in range(20)), n // 2) for n in range(6)]


@pytest.mark.parametrize(
    ("keys", "at"),
    [
        ("", 0), ("n", 1), ("nnp", 1), ("p", 0), (["\x1b[C", "\x1b[C", "\x1b[D"], 1), ("nnnnnnnnn", 5),
        ("N", 1), ("NN", 3), ("NNP", 1), ("G", 5), ("Gg", 0), ("nqnn", 1), ("jjjx", 0),
    ],
)  # fmt: skip
def test_keys_walk_forwards_and_backwards(keys, at):
    shown: list[str] = []
    assert walk(STEPS, keys, shown.append, lambda: (80, 24), colors=False) == at
    assert f"[{at + 1}/6] step {at}" in shown[-1]


def test_a_frame_fits_the_terminal_and_scrolls():
    text = frame(STEPS, 0, 3, 20, 10, colors=False)
    lines = text.removeprefix("\x1b[H\x1b[2J").split("\n")
    assert len(lines) == 10
    assert all(len(line) <= 20 for line in lines)
    assert lines[2:8] == [f"  line {n}" for n in range(3, 9)]
    assert lines[8] == "11 more lines below"
    shown: list[str] = []
    walk(STEPS, "j" * 50, shown.append, lambda: (80, 10), colors=False)
    assert "line 19" in shown[-1]


def test_marks_have_colours():
    page = Page("h", (("-", "old"), ("+", "new"), (" ", "same")), 0)
    text = frame([page], 0, 0, 80, 24, colors=True)
    assert "\x1b[31m- old\x1b[0m" in text
    assert "\x1b[32m+ new\x1b[0m" in text


# ---- the command ----


def test_a_script_is_explained_in_a_pipe(tmp_path):
    done = command(tmp_path, DOT, "--full")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kernel r_4 for LLVMRenderer(")
    for heading in (
        "== form 1, after tensor graph: what was asked for",
        "== form 2, after schedule: ",
        "== form 3, after lower: ",
        "== form 7, after linearize: ",
        "== form 8, after render: ",
    ):
        assert heading in done.stdout
    assert re.search(
        r"== lower, rewrite 1 of \d+: \w+ +\(lazygrad/codegen/lowering/lower\.py:\d+\)", done.stdout
    )
    assert "define internal void @r_4(" in done.stdout
    assert "not reached" not in done.stderr  # the script ends where its kernel has run


def test_in_brief_it_fits_a_screen_or_two(tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text(
        "from lazygrad import Tensor\nTensor.randn(64, 64).matmul(Tensor.randn(64, 64)).softmax().tolist()"
    )
    assert main(["explain", str(path), "--plain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 140
    assert max(map(len, lines[1:-2])) <= 140
    headings = [line for line in lines if line.startswith("== form ")]
    numbers = [int(line.split()[2].rstrip(",")) for line in headings]
    assert numbers == sorted(numbers)
    assert {5, 6, 7, 8} <= set(numbers)
    assert any("rewrites)" in line for line in headings)
    assert not any(", rewrite 1 of " in line for line in lines)
    assert lines[-1] == "--full shows every rewrite with its rule, and all lines"


def test_another_kernel_is_chosen_by_number(tmp_path):
    script = """
        from lazygrad import Tensor
        x = Tensor.empty(4).realize()
        for n in range(3):
            (x + 1.0).realize()
        (x * x).realize()
    """
    assert "val0 * val0" in command(tmp_path, script, "--kernel", "2", "--plain").stdout
    done = command(tmp_path, script, "--kernel", "3")
    assert done.returncode == 1
    assert re.search(r"lazygrad explain: .*script\.py runs only 2 different kernels", done.stderr)


def test_a_script_without_kernels(tmp_path):
    done = command(tmp_path, "print(1)")
    assert done.returncode == 1
    assert re.search(r"lazygrad explain: .*script\.py runs no kernel", done.stderr)


def test_a_script_that_fails_shows_its_lines(tmp_path):
    done = command(tmp_path, "x = 1\nx.oops\n")
    assert done.returncode == 1
    assert "line 2" in done.stderr
    assert "oops" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")
def test_on_a_terminal_keys_walk(tmp_path):
    pty = pytest.importorskip("pty")
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(DOT))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "DEV": "CPU", "TERM": "xterm"}
    env.pop("NO_COLOR", None)
    main, side = pty.openpty()
    line = [sys.executable, "-m", "lazygrad", "explain", str(path)]
    with subprocess.Popen(line, stdin=side, stdout=side, stderr=side, env=env) as process:
        os.close(side)
        out, keys = "", iter(("n", "n", "p", "\x1b[C", "G", "q"))
        while True:
            try:
                part = os.read(main, 1 << 16)
            except OSError:
                break
            if not part:
                break
            out += part.decode(errors="ignore")
            if out.endswith("q quit"):
                os.write(main, next(keys).encode())
        os.close(main)
    assert process.returncode == 0
    seen = re.findall(r"\[(\d+)/(\d+)\]", out)
    last = int(seen[0][1])
    assert [int(at) for at, _ in seen] == [1, 2, 3, 2, 3, last]
    assert out.endswith("\x1b[?25h\x1b[?1049l")


CHOICE = """
    from lazygrad import Tensor
    a = Tensor.empty(8, 4).realize()
    (a + 1).realize()
    (a.exp() * 2).sum(1).realize()
"""


@pytest.mark.choice
@pytest.mark.parametrize("word", ["sum", "script.py:5", "(8)", "r_8_4", "exp"])
def test_a_kernel_is_chosen_by_a_word(tmp_path, word, capsys):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(CHOICE))
    with Context(NOOPT=1):
        assert main(["explain", str(path), "--plain", "--kernel", word]) == 0
    assert re.match(r"kernel r_8_4(n\d+)? ", capsys.readouterr().out)


@pytest.mark.choice
def test_a_word_that_means_no_kernel(tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(CHOICE))
    assert main(["explain", str(path), "--kernel", "softmax"]) == 1
    assert re.search(r"runs no kernel softmax; it runs E_\w+, r_\w+", capsys.readouterr().err)
    assert main(["explain", str(path), "--kernel", "0"]) == 2


def test_a_script_that_goes_on_for_ever_is_ended(tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text(
        "from lazygrad import Tensor\na = Tensor.empty(8).realize()\nwhile True: (a + 1).realize()\n"
    )
    assert main(["explain", str(path), "--kernel", "2", "--seconds", "0.5"]) == 1
    assert "ran only 1 different kernels in 0.5 s" in capsys.readouterr().err
