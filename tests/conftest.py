"""What holds for every test: drivers that may be missing, golden texts, and a clean state before and after.

How to run them, beyond plain `pytest`, which takes all cores:
    pytest -n 0 --pdb         in one process, for a debugger
    pytest -m slow            the slow sweeps; EXHAUSTIVE=1 plays whole what they take a share of
    pytest --share 3/10       a tenth of the tests
    pytest --shuffle 7        in another order
    pytest --update-golden    rewrites the files in tests/golden/; read the difference
    LAZYGRAD_REQUIRE=clang,torch pytest    fails where it would skip for want of these
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests import helpers, shares
from tests.choices import pinned

# The same examples in every run, so that a failure repeats; `--hypothesis-profile=explore` looks further. How
# long it takes to draw them is no failure: it depends on what else the machine does.
SLOW_IS_FINE = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile(
    "lazygrad", deadline=None, derandomize=True, database=None, suppress_health_check=SLOW_IS_FINE
)
hypothesis.settings.register_profile(
    "explore", deadline=None, max_examples=2000, print_blob=True, suppress_health_check=SLOW_IS_FINE
)
hypothesis.settings.load_profile("lazygrad")


#: What the devices need on which suites run too; CUDA is emulated there, and races are looked for; METAL is
#: emulated too.
NEEDED_BY = {"AARCH64": ("aarch64",), "CL": ("cl",), "CUDA": ("g++", "nvrtc"), "WEBGPU": ("webgpu",)}
NEEDED_BY["METAL"] = ("g++",)
#: What of them some refuse by name: a test that asks for it ends there.
REFUSED = {
    "METAL": ("float64 on a device that has none",),
    "WEBGPU": ("float64 on a device that has none", "WEBGPU ends loops after"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files in tests/golden/")
    parser.addoption("--shuffle", metavar="SEED", help="run the tests in the random order of this seed")
    parser.addoption("--share", metavar="I/N", help="run the I-th of N parts of the tests, from 0")
    parser.addoption("--played-to", metavar="FILE", help="write the ids of the tests that did not skip")
    parser.addoption("--but-for", metavar="FILE", help="leave out the tests whose ids this file lists")


def pytest_configure(config: pytest.Config) -> None:
    """Check LAZYGRAD_REQUIRE; give the run, worker processes included, a disk cache and a key of its own."""
    helpers.required_drivers()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's background job starts
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        directory = tempfile.mkdtemp(prefix="lazygrad-tests-")
        os.environ["CACHEDB"] = os.path.join(directory, "cache.db")
        os.environ["XDG_STATE_HOME"] = os.path.join(directory, "state")
        config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))


class ShownAtOnce:
    """Tells of a failure when it happens, in short: a run that is cut off must not hide it."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self.terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.terminal.ensure_newline()
            self.terminal.write_line(f"FAILED {report.nodeid} ({report.when})", red=True)
            lines = report.longreprtext.splitlines()
            for line in [line for line in lines if line.startswith("E ")][:30] or lines[-30:]:
                self.terminal.write_line(line)


class Played:
    """Writes down which tests did more than skip in this run: `--but-for` leaves them out of another."""

    def __init__(self, file: Path) -> None:
        self.file, self.ids = file, set[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and not report.skipped:
            self.ids.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.file.write_text("".join(f"{each}\n" for each in sorted(self.ids)), encoding="utf-8")


class EmulatedKernels:
    """Tells at the end what the emulation of CUDA has executed in all processes of the run, if anything."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def pytest_testnodedown(self, node: Any) -> None:
        self.counts.update(getattr(node, "workeroutput", {}).get("emulated", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        found = self.counts + Counter(emulated_counts())
        if found:
            kernels, launches, checked, accesses, reports = (
                f"{found[each]:,}" for each in ("kernels", "launches", "checked", "accesses", "reports")
            )
            terminalreporter.write_line(
                f"CUDA on the CPU: {kernels} kernels in {launches} launches; in {checked} of them {accesses}"
                f" accesses were checked for races and bounds; {reports} had something to report, each"
                " asked for by its test or failing it"
            )


def emulated_counts() -> dict[str, int]:
    machine = sys.modules.get("tests.runtime.emulated_cuda.machine")
    return machine.counts() if machine else {}


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["emulated"] = emulated_counts()


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        session.config.pluginmanager.register(ShownAtOnce(terminal))
        if file := session.config.getoption("--played-to"):
            session.config.pluginmanager.register(Played(Path(file)))
        session.config.pluginmanager.register(EmulatedKernels())


def pytest_report_header(config: pytest.Config) -> str:
    seed = config.getoption("--shuffle")
    return f"shuffled: --shuffle={seed} repeats this order" if seed else ""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The suites of operations run on other devices too: a share of them always, a share of the others among
    the slow tests.
    """
    if metafunc.definition.path.relative_to(helpers.ROOT).as_posix() in shares.ON_OTHERS:
        metafunc.fixturenames.append("default_device")
        marks = {name: [helpers.needs(*NEEDED_BY[name])] for name in shares.SHARES_ON}
        devices = [pytest.param("", id="here")]
        devices += [pytest.param(name, id=f"on {name}", marks=mark) for name, mark in marks.items()]
        metafunc.parametrize("default_device", devices, indirect=True)


@pytest.hookimpl(tryfirst=True)  # before the marks are asked for
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = shares.left_out(items, config.getoption("--share"), config.getoption("--but-for"))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        others = set(left_out)
        items[:] = [item for item in items if item not in others]
    if seed := config.getoption("--shuffle"):
        random.Random(seed).shuffle(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """No garbage is looked for while modules and the tests in them are made: they stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        leave_out_what_stays()
        gc.enable()


#: How many modules there were when all that was there was left out; with so many more it is done again.
modules_left_out, MANY_MODULES = 0, 300


def leave_out_what_stays() -> None:
    """No garbage is looked for among modules, nor among tests, from here on: it took 0.3 s, and hundreds of
    tests ask for it.
    """
    global modules_left_out
    modules_left_out = len(sys.modules)
    gc.collect()
    gc.freeze()


tests_begun = itertools.count(1)


@pytest.fixture
def undisturbed() -> None:
    """For tests that count memory or nodes: what earlier tests left is gone before."""
    gc.collect()
    gc.disable()  # in a slow one too


@pytest.fixture(autouse=True)
def garbage_is_collected_between_tests(request: pytest.FixtureRequest) -> None:
    """And nowhere else: in the middle of one that of another would be freed, and counted. But for slow ones,
    whose own is too much to be kept.

    What a test left is young, so that finding it takes no time; what is older is looked through now and then.
    (tests/engine/test_garbage.py has it collected everywhere.)
    """
    slow = request.node.get_closest_marker("slow") is not None and not shares.is_listed(request.node)
    gc.disable()
    number = next(tests_begun)
    if len(sys.modules) - modules_left_out > MANY_MODULES:  # as a test has imported PyTorch's compiler
        leave_out_what_stays()
    gc.collect(2 if number % 200 == 0 else 1 if number % 10 == 0 else 0)
    if slow:
        gc.enable()


@pytest.fixture(autouse=True)
def nothing_writes_into_python():
    """CPython keeps one object for each byte: who writes into the memory of a `bytes` changes it for all."""
    yield
    assert all(bytes([n])[0] == n and ord(chr(n)) == n for n in range(256)), "a byte's own object was written"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    try:
        yield
    except NotImplementedError as error:
        given = getattr(item, "callspec", None)
        device = given.params.get("default_device") if given else None
        if not any(text in str(error) for text in REFUSED.get(device, ())):
            raise


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for driver in mark.args:
            helpers.require(driver)


@pytest.fixture
def one_pass_always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reductions that depend on each other are done in one pass wherever a rule says how, as if every
    prediction said that it pays.
    """
    from lazygrad import Context
    from lazygrad.direct.one_pass import operands as one_pass
    from lazygrad.direct.one_pass.nested_sums import NestedSums
    from lazygrad.schedule.rewrite import moments

    monkeypatch.setattr(one_pass, "pays_of_rows", lambda parts, target: True)
    monkeypatch.setattr(NestedSums, "_pays", lambda self, family: True)
    monkeypatch.setattr(moments, "pays", lambda nbytes, target: True)
    with Context(CACHELEVEL=0):
        yield


@pytest.fixture(autouse=True)
def same_choices_everywhere(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test with the mark `choice` runs as on one processor, without OPTS: tests/choices.py says how."""
    if request.node.get_closest_marker("choice") is None:
        yield
        return
    with pytest.MonkeyPatch.context() as monkeypatch, pinned(monkeypatch):
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> helpers.Golden:
    """`assert golden(text)`: the text is that of tests/golden/<module>/<test name>.txt."""
    classes_and_name = ".".join(request.node.nodeid.split("::", 1)[1].split("::"))
    return helpers.Golden(
        helpers.golden_stem(request.path, classes_and_name), request.config.getoption("--update-golden")
    )


@pytest.fixture(autouse=True)
def same_state_after(request: pytest.FixtureRequest) -> Iterator[None]:
    """Flags and kinds of devices are after each test what they were before it, and random numbers begin anew
    with each, the same in every run: so order never matters. The compile thread has nothing left to do of it.
    Plans that others left on disk are not looked up (tests/schedule/test_stored.py has a disk of its own).
    """
    planning = sys.modules.get("lazygrad.schedule.kernelize")
    if planning:
        planning.stored_plan = lambda asked, key, numbers: None
    config = sys.modules.get("lazygrad.config")
    rng = sys.modules.get("lazygrad.tensor.random.sampling")
    seed = zlib.crc32(request.node.nodeid.encode())
    if rng:  # else a process begins with a seed of its own
        rng.set_state((seed, 0))
    for generator in generators_of_tests(len(sys.modules)):
        generator.bit_generator.state = type(generator.bit_generator)(seed).state
    flags = {flag: flag.value for flag in config.ContextVar.all.values()} if config else {}
    with config.Context() if config else contextlib.nullcontext():
        yield
    compiling = sys.modules.get("lazygrad.programs.background")
    thread = compiling.background._thread if compiling else None
    if thread is not None:
        thread.wait()
    for flag, value in flags.items():
        flag.set_default(value)
    if config and flags:
        for name in set(config.ContextVar.all) - {flag.name for flag in flags}:
            del config.ContextVar.all[name]  # a flag that a test has made
    memo = sys.modules.get("lazygrad.memo")
    if memo:
        memo.forget_all()  # else a number that was another in another test is an argument
    device = sys.modules.get("lazygrad.device")
    if device:
        forget_devices_of_tests(device.Device)


@functools.lru_cache(1)
def generators_of_tests(modules: int) -> list[Any]:
    """numpy's generators that modules of tests hold, of so many modules that are loaded."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return []
    # a copy: a thread that a test has left may import something meanwhile
    held = [vars(module) for name, module in sys.modules.copy().items() if name.startswith("tests.")]
    found = [value for names in held for value in names.values()]
    return list({id(value): value for value in found if isinstance(value, numpy.random.Generator)}.values())


def forget_devices_of_tests(devices: Any) -> None:
    for kind in list(devices._registered):
        devices.unregister(kind)
    known = devices.known()
    for name in [name for name in devices.opened() if name.partition(":")[0] not in known]:
        del devices._open[name]
        devices._canonical.clear()


@pytest.fixture(autouse=True)  # else pytest leaves out a name that pytest_generate_tests adds
def default_device(request: pytest.FixtureRequest, same_state_after: None) -> Iterator[None]:
    """The device of tensors that name none, while a test runs; "" leaves it as it is."""
    config, name = sys.modules.get("lazygrad.config"), getattr(request, "param", "")
    with contextlib.ExitStack() as stack:
        if name == "AARCH64":
            from tests import aarch64

            stack.enter_context(aarch64.registered())
        if name == "CUDA":
            from tests.runtime.emulated_cuda.fixture import emulated

            driver = stack.enter_context(emulated())
            driver.checked = True
        if name == "METAL":
            from tests.runtime import emulated_metal

            stack.enter_context(emulated_metal.emulated())
        if config and name:
            stack.enter_context(config.Context(DEV=name))
        yield
        assert name != "CUDA" or not driver.reports


@pytest.fixture(autouse=True, scope="session")
def offline() -> Iterator[None]:
    """Tests reach this machine only: a connection to any other fails at the line that asked for it."""
    connect = socket.socket.connect

    def connect_here(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            raise OSError(f"tests are offline, and this one connects to {address[0]}")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect_here)
        yield
