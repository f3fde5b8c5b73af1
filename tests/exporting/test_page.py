"""`lazygrad.export` to a page: what is written, and what is refused. test_page_in_browser.py runs pages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import lazygrad
from lazygrad import Context, Tensor, TinyJit, Variable, nn
from lazygrad.jit.errors import JitError
from lazygrad.nn.state import safe_load
from tests.helpers import needs

FILES = {"index.html", "page.js", "runtime.js", "model.js", "kernels.wgsl", "weights.safetensors"}


def described(folder: Path) -> dict:
    """What model.js says of the model."""
    text = (folder / "model.js").read_text()
    return json.loads(re.search(r"^export const description = (\{.*?^\});$", text, re.M | re.S)[1])


def exported(folder: Path, fn, *args) -> dict:
    lazygrad.export(fn, args, f"{folder}/")
    return described(folder)


@pytest.mark.choice
def test_its_files(tmp_path, golden):
    w = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
    exported(tmp_path / "page", lambda x: x @ w + 1, Tensor([[1.0, 2.0]]))
    assert {file.name for file in (tmp_path / "page").iterdir()} == FILES
    assert golden((tmp_path / "page" / "model.js").read_text(), "model")
    assert golden((tmp_path / "page" / "kernels.wgsl").read_text(), "kernels")
    assert "TITLE" not in (tmp_path / "page" / "index.html").read_text()


def test_a_folder_that_is_there_and_one_without_weights(tmp_path):
    """What an earlier export left there is replaced."""
    w = Tensor([1.0, 2.0]).realize()
    lazygrad.export(lambda x: x * w, (Tensor([1.0, 2.0]),), tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == FILES
    lazygrad.export(lambda x: x * 2, (Tensor([1.0, 2.0]),), tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == FILES - {"weights.safetensors"}
    assert described(tmp_path)["weights"] == {"header": 0, "total": 0, "tensors": []}


def test_weights_have_the_names_of_the_model(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm(2))
    model.eval()
    found = exported(tmp_path, model, Tensor([[1.0, 2.0, 3.0]]))
    weights = safe_load(tmp_path / "weights.safetensors")
    assert weights["0.weight"].tolist() == model[0].weight.tolist()
    assert (
        weights.keys()
        == {row["name"] for row in found["weights"]["tensors"]}
        <= nn.state.get_state_dict(model).keys()
    )
    assert found["weights"]["total"] == (tmp_path / "weights.safetensors").stat().st_size


def test_arguments_and_results(tmp_path):
    def f(pair, n, rows):
        return {"sum": pair[0] + pair[1], "two": (rows[:n] * 2, rows.sum().bool())}

    n = Variable("n", 1, 9)
    found = exported(tmp_path, f, (Tensor([1, 2]), Tensor([3, 4])), n.bind(2), Tensor.arange(9, dtype="int8"))
    assert [(row["name"], row["label"], row["dtype"], row["shape"]) for row in found["inputs"]] == [
        ("pair_0", "pair[0]", "int32", [2]),
        ("pair_1", "pair[1]", "int32", [2]),
        ("rows", "rows", "int8", [9]),
    ]
    assert found["variables"] == [{"name": "n", "label": "n", "variable": "n", "low": 1, "high": 9}]
    assert [(row["name"], row["label"], row["dtype"], row["shape"]) for row in found["outputs"]] == [
        ("result_sum", "result['sum']", "int32", [2]),
        ("result_two_0", "result['two'][0]", "int8", [["n"]]),
        ("result_two_1", "result['two'][1]", "bool", []),
    ]


def test_one_value_in_two_places(tmp_path):
    def f(x):
        y = x + 1
        return y, (y, x + 1)

    found = exported(tmp_path, f, Tensor([1.0]))
    assert [row["name"] for row in found["outputs"]] == ["result_0", "result_1_0", "result_1_1"]
    assert len({row["buffer"] for row in found["outputs"]}) == 1


@pytest.mark.choice
def test_kernels_keep_to_the_limits_of_every_browser(tmp_path):
    """Where the CPU adds many tensors in one kernel, a page takes several, and plans for the CPU stay."""
    parts = [Tensor([float(n)]).realize() for n in range(20)]

    def add(*parts):
        return sum(parts[1:], parts[0])

    jitted = TinyJit(add)
    for _ in range(3):
        jitted(*parts)
    (alone,) = jitted.captures
    found = exported(tmp_path, jitted, *parts)
    assert alone.replay.kernels == 1
    assert len(found["kernels"]) > 1
    assert all(len(kernel["stored"]) <= 8 for kernel in found["kernels"])
    assert add(*parts).kernels()[-1].spec.globals == 21


def test_no_launch_has_a_buffer_both_ways(tmp_path):
    """WebGPU refuses it: what is read of memory that the same kernel writes is copied before."""
    cache = Tensor.ones(600, 2).contiguous().realize()

    def step(x):
        cache.assign(cache * 2 + x)
        return cache[:, :1] * cache[:, 1:]

    found = exported(tmp_path, step, Tensor([[1.0, 2.0]]).realize())
    copies = [step["copy"] for step in found["steps"] if "copy" in step]
    assert copies
    assert found["copied"] >= max(to + nbytes for _, _, nbytes, to in copies)
    for step in found["steps"]:
        if "kernel" in step:
            stored = found["kernels"][step["kernel"]]["stored"]
            ways = {(buffer, way) for (buffer, _, _), way in zip(step["bound"], stored, strict=True)}
            assert len({buffer for buffer, _ in ways}) == len(ways)
            assert all(begin % 256 == 0 and nbytes % 4 == 0 for _, begin, nbytes in step["bound"])


@pytest.mark.choice
def test_values_that_are_needed_inside_share_buffers(tmp_path):
    w = Tensor.ones(64, 64).contiguous().realize()

    def deep(x):
        for _ in range(6):
            x = x @ w
        return x

    found = exported(tmp_path, deep, Tensor.ones(64, 64).contiguous().realize())
    assert sum(buffer["kind"] == "inner" for buffer in found["buffers"]) == 2


def test_names_of_a_user_are_no_code(tmp_path):
    evil = "</script><b>'\"`\\\n\u2028"

    def f(d):
        return d[evil] + 1

    f.__name__ = evil
    found = exported(tmp_path, f, {evil: Tensor([1.0])})
    assert found["name"] == evil
    assert found["inputs"][0]["label"] == f"d[{evil!r}]"
    assert re.fullmatch(r"\w+", found["inputs"][0]["name"], re.ASCII)
    for file in ("index.html", "model.js"):
        text = (tmp_path / file).read_text()
        assert "</script><b>" not in text
        assert "\u2028" not in text or file == "index.html"


@pytest.mark.choice
def test_plan_for():
    x = [Tensor([1.0]).realize() for _ in range(12)]
    assert len(sum(x[1:], x[0]).kernels()) == 1
    with Context(PLAN_FOR="webgpu"):
        assert len(sum(x[1:], x[0]).kernels()) > 1
        assert sum(x[1:], x[0]).item() == 12.0
    with (
        Context(PLAN_FOR="abacus"),
        pytest.raises(
            ValueError,
            match="PLAN_FOR must be empty or one of cl, cuda, metal, webgpu, cuda:sm_90 or the like",
        ),
    ):
        (x[0] + 1).realize()


# ---- what is refused ----


def refused(tmp_path, fn, *args) -> str:
    with pytest.raises(NotImplementedError) as error:
        lazygrad.export(fn, args, f"{tmp_path}/page/")
    assert not (tmp_path / "page").exists()
    return str(error.value)


def test_float64(tmp_path):
    text = refused(tmp_path, lambda x: x + 1, Tensor([1.0], dtype="float64"))
    assert (
        text == "exporting to a page is not supported: x is float64, which WebGPU lacks; cast it to float32"
    )
    text = refused(tmp_path, lambda x: x.cast("float64") + 1, Tensor([1.0]))
    assert "result is float64, which WebGPU lacks" in text
    text = refused(tmp_path, lambda x: (x.cast("float64") / 3).cast("float32"), Tensor([1.0]))
    assert "float64 on a device that has none (WEBGPU); cast to float32" in text
    assert "(in __truediv__, cast)" in text


def test_more_than_a_binding_holds(tmp_path):
    x = Tensor.zeros((128 << 20) + 4, dtype="uint8").contiguous().realize()
    text = refused(tmp_path, lambda x: x.max(), x)
    assert "works on 134,217,732 bytes at once, and WebGPU binds 134,217,728" in text


@pytest.mark.choice
@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        ("kernels.MOST_BUFFERS", 2, "E_5_30_2 takes 3 buffers, and WebGPU binds 2 (in __add__"),
        (
            "kernels.MOST_BOUND",
            1000,
            "E_5_30_2 works on 1,200 bytes at once, and WebGPU binds 1,000 (in __add__",
        ),
        ("kernels.MOST_GROUPS", 1, "E_5_30_2 has 5 workgroups, and WebGPU launches 1 (in __add__"),
        ("write.MOST_BYTES", 1300, "a buffer would take 2,400 bytes, and WebGPU gives 1,300 at once"),
        ("write.MOST_BYTES", 2000, "the results together take 2,400 bytes, and WebGPU gives 2,000 at once"),
    ],
)
def test_limits(tmp_path, monkeypatch, limit, value, said):
    monkeypatch.setattr(f"lazygrad.exporting.page.{limit}", value)
    x, y, long = (Tensor.ones(size).contiguous().realize() for size in (300, 300, 600))
    functions = {"a buffer": lambda x, y: x + y + long[:300], "the results": lambda x, y: (x + y, x * y)}
    found = next(
        (function for start, function in functions.items() if said.startswith(start)), Tensor.__add__
    )
    assert said in refused(tmp_path, lambda x, y: found(x, y), x, y)


def test_several_devices(tmp_path):
    x = Tensor([1.0, 2.0, 3.0, 4.0]).shard(("CPU:1", "CPU:2"), 0).realize()
    assert "works on several devices" in refused(tmp_path, lambda x: x + 1, x)


@needs("clang")
def test_a_kernel_that_is_given_as_text(tmp_path):
    source = "void twice(float* out, const float* x) { out[0] = 2*x[0]; }"

    def twice(x):
        return Tensor.custom_kernel({"c": source}, outputs=x, inputs=[x])

    x = Tensor([1.0], device="CLANG")
    assert "the kernel twice is given as text" in refused(tmp_path, twice, x)


def test_a_function_that_computes_nothing(tmp_path):
    with pytest.raises(JitError, match=r"didn't JIT anything! .*<lambda> ran no kernel"):
        lazygrad.export(lambda x: None, (Tensor([1.0]),), f"{tmp_path}/page/")
