"""BEAM: kernels are timed in a child that may crash or hang, what is found is right, kept, and resumed."""

from __future__ import annotations

import dataclasses
import os
import re

import numpy as np
import pytest

from lazygrad import Context, Device, Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.config import BEAM, NOOPT, ContextVar
from lazygrad.dtype import dtypes
from lazygrad.programs import runners
from lazygrad.programs.runners import clear_programs, get_runner
from lazygrad.tuning import beam, trials
from lazygrad.tuning.time_kernels import example
from lazygrad.tuning.trials import TrialError, Trials, trials_on
from tests.helpers import PATIENCE, needs

from .keys import key_of


@pytest.fixture(autouse=True)
def own_cache(tmp_path):
    clear_programs()
    with Context(CACHEDB=str(tmp_path / "private" / "cache.db"), BEAM_TIMEOUT_SEC=PATIENCE):
        yield
    clear_programs()


def row_sums():
    """A kernel of 15 rows of 64: on any processor its usual Opts are one, as the rows are odd."""
    [kernel] = Tensor.arange(960).reshape(15, 64).cast("float").realize().sum(1).kernels()
    return kernel


def program(ast, opts=()):
    return compile_kernel(ast, Device["CPU"].renderer, opts)


MEMORY = [("float", 15), ("float", 960)]

# *** the child


@pytest.fixture(scope="module")
def child():
    found = Trials("CPU")
    yield found
    found.close()


def test_a_program_is_timed_and_its_results_come_back(child):
    spec = program(row_sums().ast)
    assert 0 < child.time(spec, MEMORY, (), PATIENCE, None) < 1
    [got] = child.outputs(spec, MEMORY, (), PATIENCE)
    rows = example(dtypes.float, 960, 1).reshape(15, 64)
    np.testing.assert_allclose(np.frombuffer(got, np.float32), rows.sum(1), rtol=1e-4, atol=1e-4)


def broken(statement: str):
    """The program with something else at its beginning."""
    spec = program(row_sums().ast)
    text, count = re.subn(r"entry:\n", f"entry:\n{statement}\n", spec.src, count=1)
    assert count == 1
    return dataclasses.replace(spec, src=text)


def test_a_candidate_that_crashes_loses_only_itself(child):
    crash = broken("  call void @llvm.trap()")
    crash = dataclasses.replace(crash, src=crash.src + "\ndeclare void @llvm.trap()\n")
    with pytest.raises(TrialError, match="ends its process"):
        child.time(crash, MEMORY, (), PATIENCE, None)
    assert child.time(program(row_sums().ast), MEMORY, (), PATIENCE, None) > 0


def test_a_candidate_that_hangs_loses_only_itself(child):
    child.time(program(row_sums().ast), MEMORY, (), PATIENCE, None)  # so that it has started
    hang = broken("  call void @forever()")
    spin = "\ndefine void @forever() noinline {\nentry:\n  br label %again\nagain:\n  br label %again\n}\n"
    hang = dataclasses.replace(hang, src=hang.src + spin)
    with pytest.raises(TrialError, match=r"takes more than 0\.5 s"):
        child.time(hang, MEMORY, (), 0.5, None)
    assert child.time(program(row_sums().ast), MEMORY, (), PATIENCE, None) > 0


def test_a_candidate_that_is_refused_says_why(child):
    spec = dataclasses.replace(program(row_sums().ast), src="this is no program")
    with pytest.raises(TrialError, match="CompileError: LLVM refuses this kernel"):
        child.time(spec, MEMORY, (), PATIENCE, None)


def test_after_ctrl_c_the_next_answer_is_its_own(child, monkeypatch):
    def interrupted(stream):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trials.pickle, "load", interrupted)
        with pytest.raises(KeyboardInterrupt):
            child.time(program(row_sums().ast), MEMORY, (), PATIENCE, None)
    assert child.time(program(row_sums().ast), MEMORY, (), PATIENCE, None) > 0


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "half", "bfloat16", "fp8e4m3", "double"]
)
def test_examples_are_ordinary_numbers(dtype):
    dtype = getattr(dtypes, dtype)
    values = example(dtype, 100, 3)
    assert values.itemsize == dtype.itemsize
    assert len(set(values.tolist())) > 1
    assert (values == example(dtype, 100, 3)).all()


# *** the search, with made-up times


OUTPUTS = Trials.outputs


@pytest.fixture
def made_up(monkeypatch):
    """Times by the number of Opts, the last of them the best; `asked` lists what was timed."""
    asked: list[tuple[Opt, ...]] = []

    def time(self, spec, memory, values, limit, best):
        asked.append(spec.applied_opts)
        return 1.0 / (1 + min(len(set(spec.applied_opts)), 2))

    monkeypatch.setattr(Trials, "time", time)
    monkeypatch.setattr(Trials, "outputs", lambda self, spec, memory, values, limit: [bytes(60)])
    return asked


def tune(width=1):
    return beam.tune(Device["CPU"], row_sums().ast, width)


@pytest.mark.choice
def test_what_is_found_is_kept(made_up):
    first = tune()
    assert first.seconds < first.usual_seconds
    assert first.opts != first.usual
    assert first.tried > 1
    made_up.clear()
    assert tune() == first
    assert made_up == []
    assert tune(width=2).seconds <= first.seconds  # another search


def test_a_search_that_keeps_the_order_tries_nothing_else(made_up, monkeypatch):
    ast, tried = row_sums().ast, []
    lists = [(Opt(OptOps.UPCAST, 0, 3),), (Opt(OptOps.UNROLL, 0, 8),), (Opt(OptOps.UNROLL, 0, 16),)]

    def search(loops, target, start, width, predicted, measured, on_round):
        tried.extend(opts for opts in (*start, *lists) if predicted(opts) is not None)
        return []

    monkeypatch.setattr(beam, "search", search)
    monkeypatch.setattr(beam, "PROMISING", 1e6)
    monkeypatch.setattr(Trials, "outputs", OUTPUTS)
    usual = key_of(ast, program(ast, beam.tune(Device["CPU"], ast, 1, keep_order=True).usual))
    assert {key_of(ast, program(ast, opts)) for opts in tried} == {usual}
    assert not set(lists[1:]) <= set(tried)  # at most one of the two has the usual key


def test_a_search_that_was_stopped_goes_on(made_up, monkeypatch):
    count = 0
    time = Trials.time

    def stopped(self, *given):
        nonlocal count
        count += 1
        if count == 5:
            raise KeyboardInterrupt
        return time(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Trials, "time", stopped)
        with pytest.raises(KeyboardInterrupt):
            tune()
    before = [opts for opts in made_up if opts != made_up[0]]
    assert before
    made_up.clear()
    found = tune()
    rounds = made_up[: -(1 + beam.FINALISTS) * beam.AGAIN]
    assert not set(before) & set(rounds)
    assert found.opts


def test_what_computes_something_else_is_not_taken(made_up, monkeypatch):
    def outputs(self, spec, memory, values, limit):
        wrong = bool(spec.applied_opts)
        return [np.full(15, 1.0 if wrong else 0.0, np.float32).tobytes()]

    monkeypatch.setattr(Trials, "outputs", outputs)
    found = tune()
    assert found.opts == found.usual


@pytest.mark.choice
def test_plain_loops_that_take_too_long_are_not_waited_for(made_up, monkeypatch):
    def outputs(self, spec, memory, values, limit):
        if not spec.applied_opts:
            raise TrialError("takes more than 10 s")
        return [bytes(60)]

    monkeypatch.setattr(Trials, "outputs", outputs)
    assert tune().opts != tune().usual


def test_a_kernel_without_an_answer_keeps_its_opts(monkeypatch, capsys):
    def time(self, *given):
        raise TrialError("ends its process (-11)")

    monkeypatch.setattr(Trials, "time", time)
    found = tune()
    assert found.opts == found.usual
    assert found.note == "not searched: ends its process (-11)"
    with Context(BEAM=1, DEBUG=2):
        assert get_runner("CPU", row_sums().ast).spec.applied_opts == found.usual
    assert "not searched: ends its process (-11)\n" in capsys.readouterr().out


def test_a_child_imports_nothing_from_the_folder_it_runs_in(tmp_path, monkeypatch):
    """Nor from one that this process names relative to where it ran before."""
    for name in ("pickle", "faulthandler", "numpy", "sitecustomize", "lazygrad"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'a').write({name!r})")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trials.sys, "path", ["", ".", *trials.sys.path])
    monkeypatch.setenv("PYTHONPATH", os.pathsep)
    child = Trials("CPU")
    try:
        assert child.time(program(row_sums().ast), MEMORY, (), PATIENCE, None) > 0
    finally:
        child.close()
    assert not (tmp_path / "executed").exists()


def test_where_no_process_can_be_started_nothing_is_searched(monkeypatch):
    monkeypatch.setattr(trials.sys, "executable", "")
    monkeypatch.setattr(trials, "_open", {})
    assert "there is no Python program" in tune().note
    monkeypatch.setattr(trials.sys, "executable", "/nowhere/python")
    assert tune().note.startswith("not searched: no process can be started to time it in (")
    with Context(BEAM=1):
        assert Tensor([1.0, 2.0]).sum().item() == 3


def test_a_device_without_times_ends_a_search(monkeypatch):
    monkeypatch.setattr(Trials, "time", lambda self, *given: 0.0)
    found = beam.tune(Device["NULL"], row_sums().ast, 1)
    assert found.opts == found.usual


@pytest.mark.slow
@pytest.mark.parametrize(
    "device", [pytest.param("CL", marks=needs("cl")), pytest.param("WEBGPU", marks=needs("webgpu"))]
)
def test_a_grid_is_searched_too(device):
    """Workgroups and what their threads share are among what is tried; the result stays the same."""
    x = Tensor.arange(4096, device=device).reshape(16, 256).cast("float").realize()
    [kernel] = x.sum(1).kernels()
    with Context(BEAM_TIMEOUT_SEC=PATIENCE):
        found = beam.tune(Device[device], kernel.ast, 1)
    assert found.tried > 5
    assert 0 < found.seconds <= found.usual_seconds
    with Context(BEAM=1):
        np.testing.assert_array_equal(x.sum(1).numpy(), np.arange(4096).reshape(16, 256).sum(1))


def test_a_list_that_breaks_the_compiler_loses_only_itself(made_up, monkeypatch, capsys):
    compile = beam.compile_kernel

    def breaking(ast, renderer, opts):
        if len(opts) > 1:
            raise IndexError("a mistake of ours")
        return compile(ast, renderer, opts)

    monkeypatch.setattr(beam, "compile_kernel", breaking)
    with Context(DEBUG=2):
        assert tune().seconds > 0
    assert "IndexError: a mistake of ours" in capsys.readouterr().out


def test_a_sort_is_not_searched():
    kernels = Tensor([3, 1, 2]).sort()[1].kernels()
    sort = next(kernel for kernel in kernels if "sort" in kernel.name)
    assert beam.tune(Device["CPU"], sort.ast, 1).note == "a sort has no loops to change"
    with Context(BEAM=1):
        assert get_runner("CPU", sort.ast)


def test_opts_that_no_longer_fit_are_searched_anew(made_up, monkeypatch):
    kept = {"opts": "[Opt(OptOps.UPCAST, 0, 7)]", "usual": "[]", "seconds": 1, "usual_seconds": 1, "tried": 1}
    monkeypatch.setattr(beam, "diskcache_get", lambda table, key: kept if "width" in table else None)
    tune()
    assert made_up


# *** in a run


@pytest.mark.choice
def test_programs_are_kept_apart_by_beam_and_noopt(made_up):
    assert {BEAM, NOOPT} <= set(ContextVar.of_code)
    ast = row_sums().ast
    opts = {}
    for flags in ({}, {"BEAM": 1}, {"NOOPT": 1}, {"NOOPT": 1, "BEAM": 1}):
        with Context(**flags):
            opts[str(flags)] = get_runner("CPU", ast).spec.applied_opts
            assert get_runner("CPU", ast) is get_runner("CPU", ast)
    assert len({key[2] for key in runners.method_cache if key[1] is ast}) == 4
    usual, beam, none, both = opts.values()
    assert usual
    assert beam not in (usual, ())
    assert none == both == ()


def test_beam_gives_the_same_numbers_and_is_quiet_in_a_pipe(capfd):
    x = Tensor.arange(96).reshape(8, 12).cast("float").realize()
    with Context(BEAM=1):
        np.testing.assert_array_equal((x * 2).sum(0).numpy(), x.numpy().sum(0) * 2)
    out, err = capfd.readouterr()
    assert out == err == ""


def test_debug_shows_the_rounds(made_up, capsys):
    with Context(DEBUG=2):
        tune()
    assert re.search(r"^ +\d+\.\d\ds: from +[12] -> +1 actions \[", capsys.readouterr().out, re.MULTILINE)


def test_the_child_is_shared_by_what_has_as_many_threads():
    with Context(THREADS=1):
        alone = trials_on("CPU")
        assert trials_on("CPU") is alone
    with Context(THREADS=2):
        assert trials_on("CPU") is not alone


def test_what_is_found_holds_for_as_many_threads(made_up):
    with Context(THREADS=1):
        tune()
    made_up.clear()
    with Context(THREADS=2):
        tune()
    assert made_up


@pytest.mark.choice
def test_nests_are_not_searched():
    """Kernels that do not wait for each other: each nest has the Opts that are chosen for it."""
    first, second = (Tensor.empty(*shape).realize() for shape in ((4, 5), (70,)))
    (kernel,) = first.sum(1).schedule(second * 2)
    found = beam.tune(Device["CPU"], kernel.ast, 2)
    assert (found.name, found.opts) == ("r_4_5_and_E_70", ())
    with Context(BEAM=1):
        assert beam.searched(Device["CPU"], kernel.ast) is None
