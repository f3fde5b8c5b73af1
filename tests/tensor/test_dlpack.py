"""bfloat16 through DLPack, both ways, and from ml_dtypes; round() and math's functions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from tests.helpers import needs, require

VALUES = [1.5, -2.0, 3e38, 0.1]


@needs("torch")
def test_bfloat16_goes_to_pytorch_and_shares_memory() -> None:
    torch = require("torch")
    ours = Tensor([VALUES, VALUES], dtype="bfloat16")
    theirs = torch.from_dlpack(ours)
    assert theirs.dtype is torch.bfloat16
    assert theirs.shape == (2, 4)
    assert theirs.tolist() == ours.tolist()
    theirs[1, 0] = 7
    assert ours.tolist()[1][0] == 7.0
    assert torch.utils.dlpack.from_dlpack(ours.__dlpack__()).tolist() == ours.tolist()


@needs("torch")
def test_bfloat16_comes_from_pytorch_and_shares_memory() -> None:
    torch = require("torch")
    theirs = torch.tensor(VALUES, dtype=torch.bfloat16)
    ours = Tensor.from_dlpack(theirs)
    assert ours.dtype is dtypes.bfloat16
    assert ours.tolist() == theirs.tolist()
    theirs[0] = 4
    assert (ours + 1).tolist()[0] == 5.0
    assert Tensor.from_dlpack(torch.ones(2, 0, dtype=torch.bfloat16)).shape == (2, 0)
    with pytest.raises(TypeError, match="from_dlpack cannot take this memory"):
        Tensor.from_dlpack(torch.tensor(VALUES, dtype=torch.bfloat16, requires_grad=True))


@needs("ml_dtypes")
def test_arrays_of_ml_dtypes_are_taken() -> None:
    ml_dtypes = require("ml_dtypes")
    array = np.array(VALUES, ml_dtypes.bfloat16)
    for made in (Tensor.from_numpy(array), Tensor.from_dlpack(array), Tensor(array)):
        assert made.dtype is dtypes.bfloat16
        assert made.tolist() == array.astype(np.float32).tolist()
    assert np.asarray(Tensor(array), dtype=ml_dtypes.bfloat16).tolist() == array.tolist()


def test_floats_of_8_bits_are_refused() -> None:
    with pytest.raises(BufferError, match=r"export of dtypes\.fp8e4m3 is not supported; cast it first"):
        Tensor([1.0], dtype="fp8e4m3").__dlpack__()


def test_round_gives_a_tensor_and_maths_functions_an_int() -> None:
    x = Tensor([1.26, -2.5])
    assert round(x).tolist() == x.round().tolist() == [1.0, -2.0]
    assert np.allclose(round(x, 1).numpy(), [1.3, -2.5])
    assert round(Tensor([15]), -1).tolist() == [15]
    one = Tensor([-1.5])
    assert (math.floor(one), math.ceil(one), math.trunc(one)) == (-2, -1, -1)
    assert type(math.floor(Tensor(2.5))) is int
    with pytest.raises(ValueError, match="needs one element"):
        math.floor(x)
