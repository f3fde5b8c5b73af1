"""Programs on disk: keys that all processes agree on, records that say all of a program, second processes."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from lazygrad import Device, Tensor, Variable, dtypes, structure
from lazygrad.codegen import own_source, records, stage_times
from lazygrad.config import Context, ContextVar
from lazygrad.device import CompiledDevice, Compiler
from lazygrad.inspection.targets import TARGETS, find_target
from lazygrad.memo import forget_all
from lazygrad.nn import Conv2d, Linear, optim, state
from lazygrad.programs import runners
from lazygrad.programs.runners import clear_programs, get_runner
from lazygrad.runtime import _cache
from tests.helpers import ROOT, needs, outputs_of_processes


@pytest.fixture(autouse=True)
def own_cache(tmp_path):
    """Each test begins with an empty disk and nothing in memory."""
    clear_programs()
    with Context(CACHEDB=str(tmp_path / "private" / "cache.db"), CACHELEVEL=2):
        yield
    clear_programs()


def asts_of(*tensors: Tensor) -> list:
    """The kernels that would compute these."""
    return [item.ast for item in Tensor.schedule(*tensors) if item.ast.op.name == "SINK"]


def ast_of(tensor: Tensor):
    (found,) = asts_of(tensor)
    return found


def ones(*shape, dtype=dtypes.float32) -> Tensor:
    return Tensor.ones(*shape, dtype=dtype).contiguous().realize()


def many_kernels() -> list:
    """A convolution, its gradients, an optimizer, indexing, sorting, symbolic sizes."""
    layer, head = Conv2d(1, 4, 3), Linear(36, 10)
    optimizer = optim.Adam(state.get_parameters([layer, head]))
    with Tensor.train():
        images = Tensor.rand(8, 1, 8, 8)
        scores = head(layer(images).relu().max_pool2d().flatten(1))
        loss = scores.sparse_categorical_crossentropy(Tensor.arange(8)).backward()
        found = asts_of(loss, *optimizer.schedule_step())
    found += asts_of(Tensor.rand(10)[Tensor([1, 5])], Tensor.full((3, 3), float("nan")).tril().sum(0) * -0.0)
    length = Variable("length", 1, 10).bind(4)
    return found + asts_of(Tensor.rand(10)[:length].exp().sum(), Tensor.rand(10)[:length].softmax())


def compiled() -> bool:
    """Whether anything was lowered since the times were cleared."""
    return "lower" in stage_times


# *** keys


DIGEST = """
from lazygrad import Tensor
from lazygrad import structure
Tensor.manual_seed(0)
x = (Tensor.rand(4, 8).pad(((0, 0), (1, 2))) @ Tensor.rand(11, 3)).softmax().max(0)
for item in x.schedule():
    print(structure.digest(item.ast))
"""


def test_processes_agree_on_digests():
    assert len(outputs_of_processes(DIGEST)) == 1


@pytest.mark.choice
def test_digests_tell_kernels_apart():
    x, y = ones(4, 6), ones(6, 4)
    kernels = [
        x + 1,
        x + 2,
        x * 0.0,
        x * -0.0,
        x * float("nan"),
        x.T + 1,
        x.flip(0) + 1,
        x.pad(((1, 0), (0, 0))) + 1,
    ]
    kernels += [x.sum(0), x.sum(1), x.max(0), x.cast(dtypes.int32), x.cast(dtypes.int64), y + 1, x + y.T]
    kernels += [x[:3] + 1, x[:, 1:] + 1, ones(4, 6, dtype=dtypes.float64) + 1]
    digests = []
    for kernel in kernels:
        forget_all()  # else a constant that differs from the one before becomes an argument
        digests.append(structure.digest(ast_of(kernel.contiguous())))
    assert len(set(digests)) == len(digests)


def test_a_kernel_met_again_has_the_same_digest():
    assert structure.digest(ast_of(ones(3, 4) + 1)) == structure.digest(ast_of(ones(3, 4) + 1))


def test_every_target_has_a_text():
    for name, (kind, _) in TARGETS.items():
        target = find_target(name).renderer.target
        other = dataclasses.replace(target, max_ops=1)
        assert structure.target_text(target) != structure.target_text(other), kind


def test_what_only_this_process_knows_has_no_digest():
    with pytest.raises(structure.Unlasting):
        structure.lasting_text(object())


def test_every_kernel_has_a_key():
    for ast in many_kernels():
        assert runners._lasting_key(Device["CPU"], ast) is not None, ast


@pytest.mark.choice
def test_keys_hold_flags_compiler_and_target(monkeypatch):
    device, ast = Device["CPU"], ast_of(ones(4) + 1)
    keys = {runners._lasting_key(device, ast)}
    for flag in ContextVar.of_code:
        text = "random:1" if flag.name == "OPTS" else "webgpu"
        with Context(**{flag.name: text if flag.value == "" else 1 - flag.value}):
            keys.add(runners._lasting_key(device, ast))
    monkeypatch.setattr(type(device.compiler), "version", lambda self: "another")
    keys.add(runners._lasting_key(device, ast))
    narrow = dataclasses.replace(device.target, vector_bytes=8)
    with monkeypatch.context() as patch:
        patch.setattr(device.renderer, "target", narrow)
        keys.add(runners._lasting_key(device, ast))
    monkeypatch.setattr(runners, "own_source", lambda: "another")
    keys.add(runners._lasting_key(device, ast))
    assert len(keys) == 4 + len(ContextVar.of_code)


def test_an_edited_file_is_another_source(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    file = tmp_path / "inner" / "one.py"
    file.write_text("x = 1\n")
    first = own_source.source_digest(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(own_source.Path, "read_bytes", lambda self: pytest.fail("it is known"))
        assert own_source.source_digest(tmp_path) == first
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_text("x = 2\n")
    os.utime(file, ns=times)
    second = own_source.source_digest(tmp_path)
    (tmp_path / "two.py").write_text("")
    assert len({first, second, own_source.source_digest(tmp_path)}) == 3


@pytest.mark.parametrize("device", ["CPU", "PYTHON", pytest.param("CLANG", marks=needs("clang"))])
def test_compilers_say_what_their_binaries_depend_on(device):
    opened = Device[device]
    assert opened.compiler.version()
    assert opened.compiler.version() == opened.compiler.version()


def test_a_compiler_that_does_not_say_keeps_nothing():
    device = Device["CPU"]
    plain = CompiledDevice("CPU", device.allocator, device.renderer, Compiler())
    assert runners._lasting_key(plain, ast_of(ones(4) + 1)) is None


# *** records


def test_a_record_says_all_of_a_program():
    for ast in many_kernels():
        spec = get_runner("CPU", ast).spec
        record = json.loads(json.dumps(records.record_of(spec, b""), default=bytes.decode))
        record = {**record, "src": record["src"].encode()}
        again, lib = records.spec_of({**record, "lib": b"code"})
        assert again == dataclasses.replace(spec, uops=())
        assert lib == b"code"


# *** what comes from disk


def forget_memory() -> None:
    clear_programs()
    stage_times.clear()


@pytest.mark.parametrize("device", ["CPU", "PYTHON", pytest.param("CLANG", marks=needs("clang"))])
def test_nothing_is_lowered_again(device):
    x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4), device=device).realize()
    expected = (x * 2 + 1).sum(1).tolist()
    forget_memory()
    assert (x * 2 + 1).sum(1).tolist() == expected
    assert not compiled()


def test_symbolic_sizes():
    x = Tensor(np.arange(10, dtype=np.float32)).realize()
    for size in (3, 7):
        length = Variable("length", 1, 10).bind(size)
        assert (x[:length] * 2).sum().item() == float(sum(range(size)) * 2)
        forget_memory()


@pytest.mark.parametrize("level", [0, 1])
def test_lower_levels_keep_no_programs(level):
    x = ones(4)
    with Context(CACHELEVEL=level):
        (x + 1).realize()
    forget_memory()
    (x + 1).realize()
    assert compiled()


def test_check_looks_at_every_form():
    x = ones(4)
    with Context(CHECK=1):
        (x + 1).realize()
        forget_memory()
        (x + 1).realize()
        assert compiled()


def test_a_damaged_binary_is_compiled_again():
    x = ones(4)
    (x + 1).realize()
    path = ContextVar.all["CACHEDB"].value
    with contextlib.closing(sqlite3.connect(path)) as other:
        rows = other.execute(f"SELECT rowid, value FROM entries{_cache.VERSION}").fetchall()
        for row, value in rows:
            broken = value[:-300] + bytes(300)
            other.execute(f"UPDATE entries{_cache.VERSION} SET value=? WHERE rowid=?", (broken, row))
        other.commit()
    forget_memory()
    assert (x + 1).tolist() == [2, 2, 2, 2]
    assert compiled()


def test_debug_shows_the_linear_program(capsys):
    x = ones(4)
    (x + 1).realize()
    forget_memory()
    with Context(DEBUG=5):
        (x + 1).realize()
    assert "0 Ops.DEFINE_GLOBAL" in capsys.readouterr().out


SECOND = """
from lazygrad import Tensor, nn
from lazygrad.codegen import stage_times
Tensor.manual_seed(3)
layer = nn.Linear(8, 4)
optimizer = nn.optim.Adam(nn.state.get_parameters(layer))
with Tensor.train():
    for _ in range(2):
        loss = layer(Tensor.rand(5, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item().hex(), sorted(set(stage_times) & {"lower", "compile"}))
"""


def test_a_second_process_compiles_nothing():
    environment = {**os.environ, "CACHEDB": ContextVar.all["CACHEDB"].value, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SECOND]
    outputs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)
    ]
    (first, loss), (second, again) = [
        (out.stdout.partition(" ")[2], out.stdout.split()[0]) for out in outputs
    ]
    assert first == "['compile', 'lower']\n"
    assert second == "[]\n"
    assert loss == again
    assert outputs[1].stderr == ""
