"""Tensors to PyTorch and JAX and back: on the same memory, each dtype, what is copied and what is refused."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, dtypes
from tests.helpers import needs, require

BOTH = """
    bool int8 int16 int32 uint8 uint16 uint32 float16 float32 bfloat16 float8_e4m3fn float8_e5m2
"""


def address(x: Tensor) -> int:
    return int(x._host_array().__array_interface__["data"][0])


@needs("torch")
@pytest.mark.parametrize("name", [*BOTH.split(), "int64", "uint64", "float64"])
def test_pytorchs_dtypes_share_memory_both_ways(name: str) -> None:
    torch = require("torch")
    theirs = torch.tensor([1.0, 0.0, 3.0]).to(getattr(torch, name))
    ours = Tensor.from_torch(theirs)
    back = ours.to_torch()
    assert back.dtype is theirs.dtype
    assert back.data_ptr() == theirs.data_ptr() == address(ours)
    assert ours.dtype is lazygrad.zeros(1, dtype=theirs.dtype).dtype
    assert ours.cast("float32").tolist() == theirs.float().tolist()


@needs("torch")
def test_a_write_through_either_is_seen_by_both() -> None:
    torch = require("torch")
    theirs = torch.zeros(2, 3)
    ours = Tensor.from_torch(theirs.T)
    assert ours.shape == (3, 2)
    theirs[1, 2] = 5
    assert ours.tolist() == [[0, 0], [0, 0], [0, 5]]
    ours[0, 0] = 7
    ours.realize()
    assert theirs[0, 0] == 7


@needs("torch")
def test_an_equal_value_keeps_its_numbers_when_pytorch_writes() -> None:
    value = Tensor([1.0, 2.0])
    copied = value.clone()
    value.to_torch()[0] = 5
    assert (value.tolist(), copied.tolist()) == ([5, 2], [1, 2])


@needs("torch")
def test_parts_and_turned_tensors_share_memory_with_pytorch() -> None:
    value = Tensor.arange(6).reshape(2, 3).contiguous().realize()
    value += 1
    value[1].to_torch()[0] = 0
    value.T.to_torch()[2, 0] = 9
    assert value.tolist() == [[1, 2, 9], [0, 5, 6]]
    assert value[:, ::2].to_torch().tolist() == [[1, 9], [0, 6]]


@needs("torch")
def test_pytorchs_views_without_holes_are_shared_and_others_are_copied() -> None:
    torch = require("torch")
    x = torch.arange(24.0).reshape(2, 3, 4)
    shared = [x.permute(2, 0, 1), x[1], x[1:, :1], torch.tensor(2.0), torch.ones(0, 3)]
    shared += [torch.ones(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)]
    copied = [x[:, :, ::2], x[:1].expand(5, 3, 4), torch.ones(2, dtype=torch.complex64).conj().imag]
    for theirs in shared + copied:
        assert np.array_equal(Tensor.from_torch(theirs).numpy(), theirs.resolve_neg().numpy())
        assert np.array_equal(Tensor.from_torch(theirs, copy=True).numpy(), theirs.resolve_neg().numpy())
    for theirs in shared:
        Tensor.from_torch(theirs, copy=False)
    for theirs in copied:
        with pytest.raises(ValueError, match=r"strides \(.*\) is copied; copy=False cannot be"):
            Tensor.from_torch(theirs, copy=False)


@needs("torch")
def test_what_pytorch_has_and_lazygrad_has_not() -> None:
    torch = require("torch")
    with pytest.raises(NotImplementedError, match="no complex numbers: it takes no complex64"):
        Tensor.from_torch(torch.ones(2, dtype=torch.complex64))
    with pytest.raises(NotImplementedError, match=r"layout torch\.sparse_coo; use x\.to_dense"):
        Tensor.from_torch(torch.ones(2).to_sparse())
    with pytest.raises(TypeError, match="from_torch takes a tensor of PyTorch, not"):
        Tensor.from_torch(np.ones(2))
    trained = torch.ones(2, requires_grad=True)
    assert not Tensor.from_torch(trained).requires_grad
    assert not Tensor.ones(2, requires_grad=True).to_torch().requires_grad


@needs("torch")
def test_memory_that_may_only_be_read_is_copied_for_who_may_write() -> None:
    torch = require("torch")
    text = b"abcd"
    ours = Tensor.from_numpy(np.frombuffer(text, np.uint8))
    theirs = torch.from_dlpack(ours)
    theirs[0] = 0
    assert (text, bytes(ours.data())) == (b"abcd", b"abcd")
    with pytest.raises(BufferError, match="may only be read, so it is copied; copy=False cannot be"):
        ours.__dlpack__(copy=False)


@needs("torch")
def test_memory_lives_as_long_as_any_that_sees_it() -> None:
    torch = require("torch")
    for size in (3, 5000):
        ours = Tensor.from_torch(torch.arange(float(size)))  # the producer dies here
        theirs = (Tensor.arange(float(size)) + 1).to_torch()
        for _ in range(3):
            gc.collect()
            for _ in range(4):
                torch.full((size,), -1.0)
                Tensor.full((size,), -1.0).contiguous().realize()
            assert (ours.sum().item(), theirs.sum().item()) == (size * (size - 1) / 2, size * (size + 1) / 2)


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match="needs JAX, which is not installed: pip install jax"):
        Tensor([1.0]).to_jax()


@needs("jax")
@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH.split())
def test_jaxs_dtypes_share_memory(name: str) -> None:
    jax = require("jax")
    theirs = jax.numpy.array([1.0, 0.0, 3.0]).astype(name)
    ours = lazygrad.from_jax(theirs)
    assert address(ours) == theirs.unsafe_buffer_pointer()
    assert ours.cast("float32").tolist() == theirs.astype("float32").tolist()
    back = lazygrad.to_jax(ours)
    assert (back.dtype, back.tolist()) == (theirs.dtype, theirs.tolist())
    assert Tensor.from_jax(theirs, copy=True).tolist() == ours.tolist()


@needs("jax")
@pytest.mark.slow
def test_jaxs_arrays_keep_their_values() -> None:
    jax = require("jax")
    theirs = jax.numpy.arange(4.0)
    ours = Tensor.from_jax(theirs)
    ours[0] = 9
    assert (ours.tolist(), theirs.tolist()) == ([9, 1, 2, 3], [0, 1, 2, 3])
    made = (Tensor.arange(1000.0) + 1).realize()
    given, also = made.to_jax(), jax.dlpack.from_dlpack(made)
    assert given.unsafe_buffer_pointer() == also.unsafe_buffer_pointer() == address(made)
    made[0] = 9
    made.realize()
    assert (made[0].item(), given[0].item(), also[0].item()) == (9, 1, 1)
    total = given.sum()
    del made, also
    for _ in range(3):
        gc.collect()
        Tensor.full((1000,), -1.0).contiguous().realize()
        assert given.sum() == total == 500500


@needs("jax")
@pytest.mark.slow
def test_what_jax_has_and_lazygrad_has_not() -> None:
    jax = require("jax")
    jnp = jax.numpy
    with pytest.raises(TypeError, match=r"JAX has dtypes\.double after .* only"):
        Tensor([1.0], dtype=dtypes.float64).to_jax()
    with pytest.raises(NotImplementedError, match="no complex numbers: it takes no complex64"):
        Tensor.from_jax(jnp.ones(2, jnp.complex64))
    with pytest.raises(NotImplementedError, match="no dtype like int4"):
        Tensor.from_jax(jnp.ones(2, jnp.int4))
    with pytest.raises(TypeError, match="from_jax takes an array of JAX, not"):
        Tensor.from_jax(np.ones(2))

    def traced(x: Any) -> Any:
        return Tensor.from_jax(x).numpy()

    with pytest.raises(TypeError, match="there are no values; call it outside"):
        jax.jit(traced)(jnp.ones(2))
