"""Values shown: in notebooks (`_repr_html_`), and in repr where `set_printoptions` says so."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, TinyJit
from lazygrad.device import GlobalCounters
from lazygrad.tensor.pictures import image_shape, pixels, png


def decoded(file: bytes) -> Any:
    """The pixels of a PNG without filters, by the standard and not by our writer."""
    assert file[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, place = {}, 8
    while place < len(file):
        (size,) = struct.unpack(">I", file[place : place + 4])
        kind, data = file[place + 4 : place + 8], file[place + 8 : place + 8 + size]
        assert struct.unpack(">I", file[place + 8 + size : place + 12 + size])[0] == zlib.crc32(kind + data)
        chunks[kind] = data
        place += 12 + size
    columns, rows, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    numbers = {0: 1, 2: 3, 6: 4}[colour]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(rows, 1 + columns * numbers)
    assert depth == 8
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(rows, columns, numbers)


def picture_in(html: str) -> Any:
    found = re.search(r'src="data:image/png;base64,([^"]+)"', html)
    return decoded(base64.b64decode(found[1])) if found else None


def test_repr_is_the_documents_form_unless_values_are_asked_for() -> None:
    x = Tensor([[1.5, 2.0], [3.0, 4.0]]) * 2
    before = GlobalCounters.kernel_count
    assert repr(x) == "<Tensor <UOp CPU (2, 2) float (<Ops.MUL: 48>, None)> on CPU with grad None>"
    assert GlobalCounters.kernel_count == before
    with lazygrad.printoptions(values=True):
        assert repr(x) == "Tensor([[3., 4.],\n        [6., 8.]], dtype=float, device=CPU)"
    assert repr(x).startswith("<Tensor")


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (Tensor(3), "Tensor(3, dtype=int, device=CPU)"),
        (Tensor([True, False]), "Tensor([ True, False], dtype=bool, device=CPU)"),
        (Tensor.zeros(0, 2), "Tensor([], shape=(0, 2), dtype=float, device=CPU)"),
        (Tensor([1.0], dtype="bfloat16"), "Tensor([1.], dtype=bfloat16, device=CPU)"),
        (Tensor([1.0], requires_grad=True), "Tensor([1.], dtype=float, device=CPU, requires_grad=True)"),
        (Tensor([np.nan, np.inf]), "Tensor([nan, inf], dtype=float, device=CPU)"),
        (Tensor([1, 2]).shard(("CPU", "CPU:1"), 0), "Tensor([1, 2], dtype=int, device=(CPU, CPU:1))"),
    ],
)
def test_values_in_repr(tensor: Tensor, text: str) -> None:
    with lazygrad.printoptions(values=True):
        assert repr(tensor) == text


def test_of_many_elements_the_edges_are_shown() -> None:
    with lazygrad.printoptions(values=True, edgeitems=2):
        text = repr(Tensor.arange(10000).reshape(100, 100))
    rows = ["[   0,    1, ...,   98,   99]", "[ 100,  101, ...,  198,  199]", "..."]
    rows += ["[9800, 9801, ..., 9898, 9899]", "[9900, 9901, ..., 9998, 9999]"]
    inner = ",\n        ".join(rows)
    assert text == f"Tensor([{inner}], shape=(100, 100), dtype=int, device=CPU)"
    with lazygrad.printoptions(values=True, threshold=5, precision=1, edgeitems=1):
        assert repr(Tensor([1.25] * 6)) == "Tensor([1.2, ..., 1.2], shape=(6,), dtype=float, device=CPU)"


@pytest.mark.parametrize("shape", [(2000,), (7, 500), (3, 9, 60), (1, 1, 2000)])
def test_edges_are_those_that_numpy_prints(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape)
    with lazygrad.printoptions(values=True, linewidth=200):
        text = repr(Tensor(array))
    wanted = np.array2string(array, separator=", ", prefix="Tensor(", threshold=1000, max_line_width=200)
    assert text.startswith(f"Tensor({wanted}, shape=")


def test_a_file_is_shown(tmp_path: Any) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(200)) * 10)
    with lazygrad.printoptions(values=True):
        assert repr(Tensor(path)).startswith("Tensor([  0,   1,   2, ..., 197, 198, 199], shape=(2000,)")


def test_in_a_capture_nothing_is_computed_to_be_looked_at() -> None:
    seen = []

    @TinyJit
    def step(x: Tensor) -> Tensor:
        y = x + 1
        with lazygrad.printoptions(values=True):
            seen.append(repr(y))
        seen.append(y._repr_html_())
        return (y * 2).realize()

    for n in range(4):
        assert step(Tensor([float(n)]).realize()).tolist() == [2.0 * (n + 1)]
    assert any("a jit captures" in text for text in seen)


def test_html_has_shape_dtype_device_and_values() -> None:
    html = Tensor([[1.0, 2.0]], requires_grad=True)._repr_html_()
    assert "(1, 2) · dtypes.float · CPU · requires_grad" in html
    assert html.endswith("<pre>[[1., 2.]]</pre>")


def test_html_escapes_all_text(tmp_path: Any) -> None:
    path = tmp_path / "<b>&\"'"
    path.write_bytes(b"ab")

    class Mine(Tensor): ...

    Mine.__name__ = "<script>"
    shown = Tensor(path)._repr_html_() + Mine([1])._repr_html_()
    assert "&lt;b&gt;&amp;&quot;&#x27;" in shown
    assert "<script>" not in shown
    assert shown.count("<b>") == 2  # ours, around the names of the classes


def test_a_tensor_that_cannot_be_computed_is_shown_with_the_reason(tmp_path: Any) -> None:
    path = tmp_path / "gone"
    path.write_bytes(b"abcd")
    tensor = Tensor(path)
    path.unlink()
    assert "its values cannot be computed: " in tensor._repr_html_()
    with lazygrad.printoptions(values=True):
        assert repr(tensor).startswith("<Tensor (4,) dtypes.uchar: ")


@pytest.mark.parametrize("kind", ["grey", "rgb", "rgba", "channels first", "one channel", "floats"])
def test_images_are_pictures(kind: str) -> None:
    rng = np.random.default_rng(0)
    grey = rng.integers(0, 256, (9, 12), np.uint8)
    colours = rng.integers(0, 256, (9, 12, 4), np.uint8)
    given, wanted = {
        "grey": (grey, grey[..., None]),
        "rgb": (colours[..., :3], colours[..., :3]),
        "rgba": (colours, colours),
        "channels first": (colours[..., :3].transpose(2, 0, 1), colours[..., :3]),
        "one channel": (grey[None], grey[..., None]),
        "floats": ((grey / 255).astype(np.float32), grey[..., None]),
    }[kind]
    found = picture_in(Tensor(np.ascontiguousarray(given))._repr_html_())
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    "array",
    [np.full((9, 9), 2.0), np.full((9, 9), np.nan), np.zeros((9, 9), np.int32), np.zeros((2, 9), np.uint8)],
)
def test_what_is_no_image_has_no_picture(array: Any) -> None:
    assert "<img" not in Tensor(array)._repr_html_()


def test_a_large_image_is_drawn_with_fewer_pixels() -> None:
    assert pixels(np.zeros((5000, 2100), np.uint8)).shape == (1000, 420, 1)
    assert image_shape((8, 8, 8, 3)) is None
    assert decoded(png(np.full((8, 9, 3), 7, np.uint8))).tolist() == [[[7] * 3] * 9] * 8


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"values": 1}, TypeError, "values must be True or False, not 1"),
        ({"precision": -1}, ValueError, "precision must be at least 0, not -1"),
        ({"edgeitems": 0}, ValueError, "edgeitems must be at least 1, not 0"),
        ({"linewidth": "wide"}, TypeError, "linewidth must be a whole number, not 'wide'"),
        ({"threshold": True}, TypeError, "threshold must be a whole number, not True"),
    ],
)
def test_wrong_options_are_named(wrong: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lazygrad.set_printoptions(**wrong)
