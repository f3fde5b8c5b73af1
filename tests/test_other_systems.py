"""On Windows and macOS lazygrad computes, trains, loads and saves without what only Linux or Unix has.

As far as that can be seen here: see tests/other_system.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT, needs, require

#: What lazygrad's native code calls of Windows, over this system's.
WINDOWS_FUNCTIONS = """
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
static pthread_key_t keys[8];
static unsigned count;
unsigned FlsAlloc(void (*freed)(void*)) { return pthread_key_create(&keys[count], freed) ? ~0u : count++; }
void* FlsGetValue(unsigned n) { return pthread_getspecific(keys[n]); }
int FlsSetValue(unsigned n, void* value) { return pthread_setspecific(keys[n], value) == 0; }
void* _aligned_malloc(size_t size, size_t alignment) {
  void* found;
  return posix_memalign(&found, alignment, size) ? 0 : found;
}
void _aligned_free(void* memory) { free(memory); }
int SwitchToThread(void) { return sched_yield() == 0; }
"""

PROGRAM = """
import sys

from tests.other_system import become

asked = become(*sys.argv[1:])

import numpy as np
import lazygrad
from lazygrad import Tensor, TinyJit, nn
from lazygrad.device import Device

assert lazygrad.Device.DEFAULT == "CPU"
assert {"sys", "os", "mmap"} <= asked, asked

from lazygrad.runtime import _llvm, _scratch

assert ("FlsGetValue" in _scratch.LLVM) == (sys.argv[1] == "win32")
compiled = []
compile_one = _llvm.CodeGenerator.compile
_llvm.CodeGenerator.compile = lambda self, source: compiled.append(source) or compile_one(self, source)

# computing, of products large enough that tiles are kept in memory of their threads
a, b = (np.random.default_rng(n).integers(-4, 5, (40, 4000)).astype(np.float32) for n in range(2))
product = Tensor(a) @ Tensor(b).T
assert any(_scratch.bytes_wanted(each.source) for each in product.kernels())
assert (product.numpy() == a @ b.T).all()
assert (Tensor([1.0, 2.0]) + 1).tolist() == [2.0, 3.0]
assert Tensor.ones(3_000_000).contiguous().sum().item() == 3e6  # memory in pages of its own


@TinyJit
def step(x):
    return (x * 2 + 1).sum().realize()


assert [step(Tensor([float(n), 1.0])).item() for n in range(5)] == [4.0, 6.0, 8.0, 10.0, 12.0]

# training
model = nn.Linear(4, 1)
optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.05)
x, y = Tensor(a[:16, :4]), Tensor(a[:16, :1] * 3)
losses = []
with Tensor.train():
    for _ in range(5):
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
assert losses[-1] < losses[0]

# files
nn.state.safe_save(nn.state.get_state_dict(model), "model.safetensors")
again = nn.Linear(4, 1)
nn.state.load_state_dict(again, nn.state.safe_load("model.safetensors"))
assert again(x).tolist() == model(x).tolist()
Tensor([1, 2, 3]).to("DISK:numbers").realize()

# threads, whose memory the system gives back when they end
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(4) as threads:
    found = list(threads.map(lambda n: (Tensor(a + n) @ Tensor(b).T).numpy(), range(8)))
assert all((each == (a + n) @ b.T).all() for n, each in enumerate(found))
print(len(compiled))
"""

#: All of a package's, but for a package in it that has a test of its own.
EVERY_MODULE = """
import importlib
import pkgutil
import sys

from tests.other_system import become

become(*sys.argv[1:])

def import_all(package):
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, package + "."):
        if not module.name.endswith("__main__") and module.name != BUT_FOR:
            importlib.import_module(module.name)
            if module.ispkg:
                import_all(module.name)


import_all(PACKAGE)
print(len([name for name in sys.modules if name.startswith(PACKAGE + ".")]))
"""


@pytest.fixture(scope="module")
def windows_functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("windows")
    source, library = folder / "functions.c", folder / "functions.so"
    source.write_text(WINDOWS_FUNCTIONS)
    command = [require("clang"), "-shared", "-fPIC", "-o", str(library), str(source), "-lpthread"]
    subprocess.run(command, check=True)
    return library


def child(system: str, program: str, folder: Path, library: Path) -> str:
    """What the program prints, as on the other system."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CACHEDB": str(folder / "cache" / "cache.db")}
    environment |= {"XDG_STATE_HOME": str(folder / "state"), "CACHELEVEL": "2", "DEBUG": "0"}
    command = [sys.executable, "-c", program, system, str(library)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@needs("clang")
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_computing_training_files_and_cache(system: str, tmp_path: Path, windows_functions: Path) -> None:
    assert int(child(system, PROGRAM, tmp_path, windows_functions)) > 10
    if system == "win32":  # it is in the disk cache
        assert int(child(system, PROGRAM, tmp_path, windows_functions)) == 0


@needs("clang")
@pytest.mark.parametrize(
    ("package", "but_for", "modules"),
    [
        ("lazygrad", "lazygrad.torch", 500),
        pytest.param("lazygrad.torch", "", 20, marks=needs("torch")),
    ],
)
def test_every_module_can_be_imported(
    package: str, but_for: str, modules: int, tmp_path: Path, windows_functions: Path
) -> None:
    program = f"PACKAGE, BUT_FOR = {package!r}, {but_for!r}\n{EVERY_MODULE}"
    assert int(child("win32", program, tmp_path, windows_functions)) > modules
