"""The tests in tinygrad's source distribution, run on lazygrad: how many of each file pass.

    pip download --no-deps --no-binary :all: tinygrad==0.11.0     # unpack it: FOLDER has the folder test
    python -m bench public_tests FOLDER [FILE ...] [--all] [--failures] [-k NAMES] [--limit SECONDS]

Nothing of that distribution is imported but the files in `test/`: `import tinygrad` is `lazygrad.compat`, as
for any script. What the tests import from files that the distribution does not have (`test.helpers`) is in
`stand_ins`, by its meaning. A test that takes longer than the limit is a failure. One that uses a name which
is not served (docs/compat.md), or a model of the folders `extra` and `examples`, has a column of its own.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import json
import os
import signal
import subprocess
import sys
import tempfile
import types
import unittest
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

#: The files about tensors, layers, training, jits, symbolic shapes, dtypes: what a script meets.
FILES = [
    *["tensor", "ops", "nn", "optim", "jit", "jit_cases", "symbolic_jit", "symbolic_ops", "tensor_variable"],
    *["gradient", "dtype", "dtype_alu", "randomness", "setitem", "assign", "multitensor", "tensor_data"],
    *["to_numpy", "sample", "tiny", "rearrange_einops", "conv", "specific_conv", "interop", "edgecases"],
    *["linalg", "winograd", "pickle", "softmax_fusion", "const_folding", "arange", "subbuffer", "zero_copy"],
    *["transcendental", "fuzz_shape_ops", "method_cache", "stunning", "opt_gemm", "net_speed"],
]
#: The outcome of a test that uses a name which `lazygrad.compat` does not serve.
NOT_SERVED = "not served:"


class Result(NamedTuple):
    """One test: which, what became of it (passed, failed, skipped), and why."""

    test: str
    outcome: str
    reason: str


# *** in the process that runs one file


def stand_ins(folder: Path) -> dict[str, types.ModuleType]:
    """`test`, and the modules in it that tests import but the distribution does not have."""
    import numpy as np
    from tinygrad import Device, dtypes
    from tinygrad.device import is_dtype_supported
    from tinygrad.dtype import _to_np_dtype
    from tinygrad.ops import Ops

    def assert_jit_cache_len(fxn: Any, expected: int) -> None:
        """How many kernels a jit has is the planner's matter, but for whether it has any."""
        assert bool(fxn.jit_cache) == bool(expected), f"{len(fxn.jit_cache)} captured, {expected} expected"

    def rand_for_dtype(dtype: Any, size: int) -> Any:
        """Values that every other dtype holds, nearly: numpy casts them, and what it makes of others C says.

        Bytes are up to 127, and bfloat16 has each of them.
        """
        random = np.random.default_rng(size)
        if dtypes.is_float(dtype):
            return random.normal(0, 4, size).astype(_to_np_dtype(dtype) or np.float32)
        if dtype == dtypes.bool:
            return random.integers(0, 2, size).astype(bool)
        return random.integers(0 if dtypes.is_unsigned(dtype) else -128, 128, size).astype(
            _to_np_dtype(dtype)
        )

    def assert_same(tensor: Any, dtype: Any, target: Any, tolerance: float | None = None) -> None:
        assert tensor.dtype == dtype, f"{tensor.dtype} is not {dtype}"
        digits = {dtypes.float16: 1e-3, dtypes.bfloat16: 1e-2, dtypes.fp8e4m3: 1e-1, dtypes.fp8e5m2: 2e-1}
        limit = digits.get(dtype, 1e-4 if dtypes.is_float(dtype) else 0) if tolerance is None else tolerance
        np.testing.assert_allclose(tensor.numpy(), target, rtol=limit, atol=limit and 1e-6)

    def check_schedule(tensor: Any, allowed: int, *_: Any, **__: Any) -> list[Any]:
        """The schedule of a tensor, which has so many kernels. (test_schedule needs names not served.)"""
        schedule: list[Any] = tensor.schedule()
        kernels = [item for item in schedule if item.ast.op is Ops.SINK]
        assert len(kernels) == allowed, f"{len(kernels)} kernels, {allowed} expected"
        return schedule

    kinds = list(dtypes.fields().values())
    supported = [dtype for dtype in kinds if is_dtype_supported(dtype)]
    made: dict[str, dict[str, Any]] = {
        "test": {"__path__": [str(folder)]},
        "test.unit": {"__path__": [str(folder / "unit")]},
        "test.test_schedule": {"check_schedule": check_schedule},
        "test.helpers": {
            "REAL_DEV": Device.DEFAULT,
            "assert_jit_cache_len": assert_jit_cache_len,
            "not_support_multi_device": lambda: False,
            "rand_for_dtype": rand_for_dtype,
        },
        "test.unit.test_dtype_spec": {
            "_assert_eq": assert_same,
            "core_dtypes": kinds,
            "dtype_ints": [dtype for dtype in supported if dtypes.is_int(dtype)],
            "dtype_floats": [dtype for dtype in supported if dtypes.is_float(dtype)],
            "FP8E4M3_MAX": 448.0,
            "FP8E5M2_MAX": 57344.0,
        },
    }
    modules = {}
    for name, values in made.items():
        modules[name] = types.ModuleType(name)
        vars(modules[name]).update(values)
    return modules


class NotServed:
    """A name that is not served, or of a folder beside `test/`: a test that uses it is counted apart."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise unittest.SkipTest(f"{NOT_SERVED} {self._name}")

    __call__ = __iter__ = __bool__ = __eq__ = __mro_entries__ = _refuse
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()


class NotServedFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Lets every import of the tests succeed, so that one name does not hide the tests that do without it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] in ("tinygrad", "extra", "examples") and name not in served():
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module)["__getattr__"] = missing(module.__name__)


def served() -> set[str]:
    from lazygrad.compat import aliases

    return {f"tinygrad.{path}".rstrip(".") for path in aliases.MODULES}


def missing(module: str) -> Any:
    def attribute(name: str) -> NotServed:
        if name.startswith("__"):
            raise AttributeError(name)
        return NotServed(f"{module}.{name}")

    return attribute


class Recorder:
    """What pytest is to write down, and how long a test may take."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.limit = path, limit

    def write(self, test: str, outcome: str, reason: object) -> None:
        with self.path.open("a") as out:
            print(json.dumps([test.split("::", 1)[-1], outcome, str(reason or "")]), file=out)

    def pytest_runtest_logreport(self, report: Any) -> None:
        reason = report.longrepr
        if report.skipped:
            said = str(reason[-1] if isinstance(reason, tuple) else reason)
            self.write(report.nodeid, NOT_SERVED if NOT_SERVED in said else "skipped", said)
        elif report.failed or report.when == "call":
            self.write(report.nodeid, report.outcome, reason)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.write("(import)", "failed", report.longrepr)
        elif report.skipped:
            said = str(report.longrepr[-1])
            self.write("(file)", NOT_SERVED if NOT_SERVED in said else "skipped", said)

    def pytest_runtest_setup(self, item: Any) -> None:
        def late(*_: Any) -> None:
            raise TimeoutError(f"longer than {self.limit} s")

        signal.signal(signal.SIGALRM, late)
        signal.alarm(self.limit)

    def pytest_runtest_teardown(self) -> None:
        signal.alarm(0)


def run_here(file: Path, record: Path, limit: int, only: str) -> int:
    """One file of tests in this process, with `tinygrad` as `lazygrad.compat` serves it."""
    import pytest

    from lazygrad.compat import aliases

    aliases.install()
    vars(aliases)["_missing"] = missing
    sys.meta_path.insert(0, NotServedFinder())
    sys.modules.update(stand_ins(file.parent))
    options = [
        "-q",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--import-mode=importlib",
        "-c",
        os.devnull,
    ]
    chosen = ["-k", only] if only else []
    return int(
        pytest.main([*options, *chosen, "--rootdir", str(file.parent), str(file)], [Recorder(record, limit)])
    )


# *** in the process that counts

#: `tinygrad.py` for the programs that tests start: the module that `lazygrad.compat` serves takes its place.
FOR_PROGRAMS = """import sys
from lazygrad.compat import aliases
aliases.install()
del sys.modules["tinygrad"]
import tinygrad
"""


def results(file: Path, limit: int, only: str = "") -> list[Result]:
    """What became of every test of a file, run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "results")
        words = [sys.executable, "-m", "bench.public_tests", "--record", str(record), "--limit", str(limit)]
        Path(folder, "tinygrad.py").write_text(FOR_PROGRAMS)
        paths = [str(Path(__file__).resolve().parents[1]), folder, os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        ended = subprocess.run(
            [*words, "-k", only, str(file)], capture_output=True, text=True, env=environment
        )
        lines = record.read_text().splitlines() if record.exists() else []
        found = [Result(*json.loads(line)) for line in lines]
    if ended.returncode not in (0, 1, 2, 5):
        found.append(Result("(process)", "failed", ended.stderr[-2000:] or ended.stdout[-2000:]))
    return found


def row(name: str, counts: Counter[str]) -> str:
    outcomes = ("passed", "failed", "skipped", NOT_SERVED)
    return "| " + " | ".join([name, *(str(counts[outcome]) for outcome in outcomes)]) + " |"


def short(reason: str) -> str:
    """The line of pytest's report that says what was raised."""
    raised = [line[1:].strip() for line in reason.splitlines() if line.startswith("E ")]
    return (raised or reason.strip().splitlines()[-1:] or [""])[0][:200]


def chosen_files(folder: Path, names: list[str], everything: bool) -> Iterator[Path]:
    tests = folder / "test" if (folder / "test").is_dir() else folder
    if everything:
        names = sorted(path.name for path in tests.glob("test_*.py"))
    for name in names or [f"test_{each}.py" for each in FILES]:
        path = tests / name
        if path.is_file():
            yield path
        elif names:
            raise SystemExit(f"there is no {path}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "python -m bench public_tests", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("folder", type=Path, help="the unpacked source distribution, or its folder test")
    parser.add_argument(
        "files", nargs="*", help="names of files in it; without any, those a script's names are in"
    )
    parser.add_argument("--all", action="store_true", help="all files that it has")
    parser.add_argument(
        "--failures", action="store_true", help="print what failed, with the last line of why"
    )
    parser.add_argument("--limit", type=int, default=60, help="seconds that one test may take (60)")
    parser.add_argument("-k", dest="only", default="", help="only tests of such names, as pytest takes them")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_intermixed_args(argv)
    if given.record:
        return run_here(given.folder, given.record, given.limit, given.only)
    print("| file | pass | fail | skip | not served |\n|---|---|---|---|---|", flush=True)
    total: Counter[str] = Counter()
    for path in chosen_files(given.folder, given.files, given.all):
        found = results(path, given.limit, given.only)
        counts = Counter(result.outcome for result in found)
        total += counts
        print(row(path.name, counts), flush=True)
        for result in found:
            if given.failures and result.outcome in ("failed", NOT_SERVED):
                print(f"    {result.test}: {short(result.reason)}")
    print(row("all", total))
    return 0


if __name__ == "__main__":
    sys.exit(main())
