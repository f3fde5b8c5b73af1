"""A tensor meets Python and its neighbours: numbers, iteration, numpy, and DLPack both ways."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from tests.helpers import needs, require


def test_one_element_is_a_number():
    assert float(Tensor(2.5)) == 2.5
    assert int(Tensor([2.7])) == 2
    assert complex(Tensor(1.5)) == 1.5
    assert bool(Tensor([[3]])) is True
    assert bool(Tensor(0.0)) is False
    assert f"{Tensor(3.14159):.3f} {Tensor(7):03d}" == "3.142 007"
    assert [10, 20, 30][Tensor(1)] == 20
    assert list(range(Tensor(3))) == [0, 1, 2]


MANY = Tensor([[1, 2], [3, 4]])
REFUSED = [
    (lambda: float(MANY), ValueError, r"one element.*\(2, 2\)"),
    (lambda: int(MANY), ValueError, r"one element.*\(2, 2\)"),
    (lambda: bool(MANY), ValueError, r"truth value of a tensor of shape \(2, 2\) is ambiguous"),
    (lambda: f"{MANY:.3f}", ValueError, r"one element.*\(2, 2\)"),
    (lambda: [0][Tensor(0.0)], TypeError, "only an integer tensor is an index"),
    (lambda: len(Tensor(1)), TypeError, "0-d"),
    (lambda: iter(Tensor(1)), TypeError, "iteration over a 0-d tensor"),
]


@pytest.mark.parametrize(("ask", "kind", "text"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_number_says_so(ask, kind, text):
    with pytest.raises(kind, match=text):
        ask()


def test_length_and_iteration():
    assert len(MANY) == 2
    assert [row.tolist() for row in MANY] == [[1, 2], [3, 4]]
    assert 3 in MANY
    assert 5 not in MANY
    assert f"{MANY}" == repr(MANY)


def test_numpy_sees_the_memory_and_may_not_write_it():
    seen = np.asarray(MANY)
    assert seen.tolist() == [[1, 2], [3, 4]]
    assert not seen.flags.writeable
    assert np.shares_memory(seen, np.asarray(MANY))
    assert np.asarray(MANY, dtype=np.float64).dtype == np.float64
    own = MANY.numpy()
    own[0, 0] = 100
    assert MANY.tolist() == [[1, 2], [3, 4]]


def test_memory_that_may_only_be_read_is_not_written(tmp_path):
    text = b"hello"
    for write in (lambda t: t.assign(t * 0), lambda t: t.__setitem__(1, 7), lambda t: t.__iadd__(1)):
        tensor = Tensor.from_numpy(np.frombuffer(text, dtype=np.uint8))
        write(tensor)
        assert tensor.tolist() != list(text)
    assert text == bytes([104, 101, 108, 108, 111])
    (tmp_path / "zeros").write_bytes(bytes(4096))
    mapped = np.memmap(tmp_path / "zeros", mode="r", dtype=np.uint8)
    tensor = Tensor.from_numpy(mapped)
    tensor += 1
    assert (tensor.sum().item(), mapped.sum()) == (4096, 0)


def test_numpy_shares_both_ways():
    array = np.arange(3.0)
    t = Tensor.from_numpy(array)
    array[0] = 9.0
    assert t.tolist() == [9.0, 1.0, 2.0]
    t.assign(t + 1).realize()
    assert array.tolist() == [10.0, 2.0, 3.0]
    assert Tensor.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="contiguous"):
        Tensor.from_dlpack(np.arange(6).reshape(2, 3).T)


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
@needs("torch")
def test_torch_takes_the_memory(device):
    torch = require("torch")
    t = Tensor([1.0, 2.0, 3.0], device=device).realize()
    seen = torch.from_dlpack(t)
    seen[0] = 50.0
    assert t.tolist() == [50.0, 2.0, 3.0]
    t.assign(t * 2).realize()  # what others see is never overwritten
    assert t.tolist() == [100.0, 4.0, 6.0]
    assert seen.tolist() == [50.0, 2.0, 3.0]


@needs("torch")
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float16", "float64"])
def test_torch_takes_every_dtype_that_it_has(dtype):
    t = Tensor([[0, 1], [1, 0]]).cast(dtype)
    seen = require("torch").from_dlpack(t)
    assert str(seen.dtype) == f"torch.{dtype}"
    assert seen.tolist() == t.tolist()


@needs("torch")
def test_torch_takes_views_and_corners():
    torch = require("torch")
    t = Tensor([[1, 2], [3, 4]]).realize()
    assert torch.from_dlpack(t.T).tolist() == [[1, 3], [2, 4]]
    assert torch.from_dlpack(t[1]).tolist() == [3, 4]
    assert torch.from_dlpack(Tensor(1.5)).item() == 1.5
    assert torch.from_dlpack(Tensor([])).tolist() == []
    with pytest.raises(BufferError, match="fp8e4m3 is not supported; cast it first"):
        torch.from_dlpack(Tensor([1.0]).cast(dtypes.fp8e4m3))


@needs("torch")
def test_memory_of_torch():
    torch = require("torch")
    x = torch.arange(6).reshape(2, 3)
    t = Tensor.from_dlpack(x)
    x[0, 0] = 100
    assert t.tolist() == [[100, 1, 2], [3, 4, 5]]
    assert (t + 1).tolist() == [[101, 2, 3], [4, 5, 6]]
    assert Tensor.from_dlpack(torch.tensor(3.0)).item() == 3.0
    assert Tensor.from_dlpack(torch.zeros(0, 3)).shape == (0, 3)
    assert Tensor(x).tolist() == x.tolist()


@pytest.mark.filterwarnings("error")
def test_integers_of_a_list_are_exact():
    big = [2**64 - 1, 0, 2**63 + 1]
    assert Tensor(big, dtype=dtypes.uint64).tolist() == big
    assert Tensor([[2**63 + 1], [1.5]], dtype=dtypes.uint64).tolist() == [[2**63 + 1], [1]]
    number = 2**60 + 2**36 + 1  # float64 drops the one, and float32 then rounds a tie
    for made in (Tensor([number], dtype="float32"), Tensor([number, 0.5]), Tensor(number, dtype="float32")):
        assert made.flatten().tolist()[0] == 2.0**60 + 2.0**37


@pytest.mark.filterwarnings("error")
def test_narrow_floats_are_rounded_once():
    number = 1 + 2**-8 + 2**-40  # float32 drops the last part, and leaves a tie
    wanted = 1 + 2**-7
    assert Tensor([number], dtype="bfloat16").item() == Tensor(number, dtype="bfloat16").item() == wanted
    assert Tensor(np.array([number]), dtype="bfloat16").item() == wanted
    assert Tensor(np.array([2**33 + 2**25 + 1]), dtype="bfloat16").item() == 2**33 + 2**26
    assert Tensor([1e300, -1e300], dtype="bfloat16").tolist() == [np.inf, -np.inf]


def test_arrays_of_the_types_that_numpy_lacks():
    for name, dtype in (("bfloat16", dtypes.bfloat16), ("float8_e5m2", dtypes.fp8e5m2)):
        array = np.array([[1.5, -0.25], [4.0, 0.0]]).astype(getattr(ml_dtypes, name))
        assert (Tensor(array).dtype, Tensor(array).tolist()) == (dtype, [[1.5, -0.25], [4.0, 0.0]])
        assert (Tensor([2.0], dtype=dtype) * array[0]).tolist() == [3.0, -0.5]


def test_a_memoryview_says_what_it_holds():
    assert Tensor(memoryview(np.array([1.5, 2.0]))).tolist() == [1.5, 2.0]
    assert Tensor(memoryview(b"abcd")[::2]).tolist() == [97, 99]
    assert Tensor(memoryview(np.arange(6, dtype=np.int16).reshape(2, 3))).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("dtype", [">i4", ">f8", "<u2", "?"])
def test_arrays_of_unusual_layout(dtype):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    for view in (
        array,
        array.T,
        array[::-1, ::-2],
        np.broadcast_to(array, (2, 2, 3)),
        array[1, 1],
        array[:, :0],
    ):
        assert Tensor(view).tolist() == view.tolist()
        assert (Tensor(1.5, dtype="float64") * view).tolist() == (1.5 * view).tolist()


def test_numbers_that_do_not_fit_where_they_are_put():
    t = Tensor([1, 2], dtype=dtypes.uint8)
    for put in (
        lambda: t.__setitem__(0, 300),
        lambda: t.masked_fill(t > 1, -1),
        lambda: (t > 1).where(256, t),
        lambda: (t > 1).where(2**40, 0),
        lambda: Tensor(300, dtype="uint8"),
        lambda: t.full_like(-1),
        lambda: t.fill_(256),
        lambda: t.pad((1, 1), value=-1),
        lambda: t.__iadd__(np.int64(256)),
    ):
        with pytest.raises(OverflowError, match="does not fit into"):
            put()
    assert t.tolist() == [1, 2]


def test_lists_of_arrays():
    rows = [np.array([1, 2], np.int16), np.array([3, 4], np.int16)]
    assert (Tensor(rows).tolist(), Tensor(rows).dtype) == ([[1, 2], [3, 4]], dtypes.int16)
    assert Tensor([np.array(1.5), 2], dtype=dtypes.float16).tolist() == [1.5, 2.0]
    with pytest.raises(ValueError, match="arrays in a list must have the same shape"):
        Tensor([np.zeros(2), np.zeros(3)])
