"""The runtime through cuda-bindings itself, onto a libcuda of ours that is built with NVIDIA's header."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lazygrad.runtime._cuda_compiler import headers
from tests.helpers import PATIENCE, ROOT, needs

SHIM = Path(__file__).parent / "emulated_cuda" / "libcuda.cpp"

SCRIPT = """
import numpy as np
from lazygrad.device import Buffer, Device, DeviceError, copy_memory
from lazygrad.dtype import dtypes
from lazygrad import Variable
from lazygrad.renderer import ProgramSpec

gpu = Device["CUDA"]
gpu.check()
print(gpu.about(), gpu.target.launch.resident, gpu.allocator.largest)

def loaded(name, parameters, body, **more):
    text = f'extern "C" __global__ void {name}({parameters}) {{ {body} }}'
    spec = ProgramSpec(name, text, "CUDA", global_size=(2, 1, 1), local_size=(4, 1, 1), **more)
    return gpu.load(spec, gpu.compile(spec))

n = Variable("n", -100, 100)
add = loaded("add_n", "float* out, const float* in, int n", "out[0] = in[0]+n;", globals=2, vars=(n,))
a, b = (Buffer("CUDA", 8, dtypes.float32).allocate() for _ in range(2))
a.copyin(np.arange(8, dtype=np.float32))
print(add((b._buf, a._buf), (-5,), wait=True), b.numpy().tolist())
graph = gpu.graph([(add, (0, 1), (0,)), (add, (1, 0), (1,))])
for k in (1, 2):
    graph([b._buf, a._buf], [k, 10])
    print(b.numpy()[0], a.numpy()[0])
c = Buffer("CUDA:1", 8, dtypes.float32).allocate()
copy_memory(Device["CUDA:1"].allocator, c._buf, gpu.allocator, a._buf, 32)
copy_memory(gpu.allocator, b._buf, gpu.allocator, a._buf, 32)
print(c.numpy()[7], b.numpy()[7])
Device["CUDA"].synchronize()
loaded("fails", "float* out", "out[0] = 1;", globals=1)((a._buf,))
try:
    a.numpy()
except DeviceError as error:
    print(error)
print(c.numpy()[0])
"""


@needs("g++", "nvrtc")
@pytest.mark.skipif(sys.platform != "linux", reason="libcuda.so is Linux's name of it")
def test_through_the_real_bindings(tmp_path: Path) -> None:
    include = ["-I", headers()]
    built = [*include, "-o", str(tmp_path / "libcuda.so.1"), str(SHIM), "-ldl"]
    subprocess.run(["g++", "-shared", "-fPIC", "-O1", "-std=c++17", "-w", *built], check=True)
    environment = {"PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": str(tmp_path), "CACHELEVEL": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *lines, lost, last = done.stdout.splitlines()
    assert lines == [
        f"The shim, sm_80 {108 * 2048} {5 << 30}",
        f"0.00025 {[n - 5.0 for n in range(8)]}",
        "1.0 11.0",
        "13.0 23.0",
        "30.0 30.0",
    ]
    assert lost.startswith("CUDA is lost: CUDA_ERROR_ILLEGAL_ADDRESS (what went wrong); the last kernel")
    assert last == "23.0"
