"""Writing, reading, devices, gradients and modes by wrong arguments."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.device import DeviceError
from tests.tensor.wrong import AWAY, FOUR, GROWN, INTS, LINE, SCALAR, M, Row, check, ids

ROWS: list[Row] = [
    ("assign", lambda: LINE.assign(FOUR), ValueError, "assign needs shape (3,), not (4,)"),
    (
        "assign",
        lambda: LINE.assign(INTS),
        TypeError,
        "assign needs a value of dtypes.float, not dtypes.int; cast it first",
    ),
    (
        "assign",
        lambda: LINE.assign(AWAY),
        ValueError,
        "assign needs a value on CPU, not on PYTHON; move it with .to('CPU')",
    ),
    ("assign", lambda: LINE.assign("a"), TypeError, "cannot make a Tensor from 'a'"),
    (
        "backward",
        lambda: LINE.backward(),
        RuntimeError,
        "backward() on a tensor that requires no gradient: no tensor it depends on has",
    ),
    (
        "backward",
        lambda: M.requires_grad_().backward(),
        ValueError,
        "backward() of a tensor of shape (2, 3) needs gradient=, of that shape",
    ),
    ("backward", lambda: GROWN.backward(FOUR), ValueError, "gradient= has shape (4,), this tensor (3,)"),
    ("bitcast", lambda: LINE.bitcast("int23"), TypeError, "'int23' is not a dtype; did you mean 'int32'?"),
    (
        "bitcast",
        lambda: Tensor([1, 2, 3], dtype="uint8").bitcast("int32"),
        ValueError,
        "bitcast from dtypes.uchar to dtypes.int, of 4 bytes, needs a last axis whose",
    ),
    (
        "bitcast",
        lambda: Tensor(1.0).bitcast("int8"),
        ValueError,
        "bitcast from dtypes.float to dtypes.char, of 1 bytes, needs a last axis whose",
    ),
    ("cast", lambda: LINE.cast("flaot32"), TypeError, "'flaot32' is not a dtype; did you mean 'float32'?"),
    (
        "cast",
        lambda: LINE.cast(None),
        TypeError,
        "None is not a dtype; known: bool, char, uchar, short, ushort, int, uint,",
    ),
    (
        "cast",
        lambda: LINE.cast(list),
        TypeError,
        "<class 'list'> is not a dtype; known: bool, char, uchar, short, ushort, int,",
    ),
    (
        "contiguous",
        lambda: LINE.contiguous(3),
        TypeError,
        "contiguous takes no arguments; 1 was given in order",
    ),
    (
        "from_dlpack",
        lambda: Tensor.from_dlpack(3),
        TypeError,
        "from_dlpack takes an object with __dlpack__, such as an array, not 3",
    ),
    ("from_jax", lambda: Tensor.from_jax(3), TypeError, "from_jax takes an array of JAX, not 3"),
    (
        "from_numpy",
        lambda: Tensor.from_numpy("a"),
        TypeError,
        "from_numpy takes a numpy array, not 'a'; Tensor() takes numbers and lists",
    ),
    ("from_torch", lambda: Tensor.from_torch(3), TypeError, "from_torch takes a tensor of PyTorch, not 3"),
    (
        "from_numpy",
        lambda: Tensor.from_numpy([1]),
        TypeError,
        "from_numpy takes a numpy array, not [1]; Tensor() takes numbers and lists",
    ),
    (
        "gradient",
        lambda: LINE.gradient(LINE),
        ValueError,
        "the gradient of a tensor of shape (3,) needs gradient=, of that shape",
    ),
    (
        "gradient",
        lambda: SCALAR.gradient(FOUR),
        ValueError,
        "the result does not depend (differentiably) on the tensor of shape (4,)",
    ),
    (
        "gradient",
        lambda: SCALAR.gradient(LINE, gradient=FOUR),
        ValueError,
        "gradient= has shape (4,), this tensor ()",
    ),
    (
        "inference_mode",
        lambda: Tensor.inference_mode("a"),
        TypeError,
        "inference_mode takes no arguments but a function that it decorates, not 'a'",
    ),
    ("item", lambda: LINE.item(), ValueError, "item() needs one element, this tensor has shape (3,)"),
    ("kernelize", lambda: LINE.kernelize(3), TypeError, "kernelize: each of others must be a Tensor, not 3"),
    (
        "kernels",
        lambda: LINE.kernels(target="cudaa"),
        ValueError,
        "'cudaa' is not a target. Did you mean cuda? There are c, cl, cuda, llvm,",
    ),
    ("kernels", lambda: LINE.kernels(3), TypeError, "kernels: each of others must be a Tensor, not 3"),
    (
        "no_grad",
        lambda: Tensor.no_grad(3),
        TypeError,
        "no_grad takes no arguments but a function that it decorates, not 3",
    ),
    ("numpy", lambda: LINE.numpy(3), TypeError, "numpy takes no arguments; 1 was given in order"),
    ("realize", lambda: LINE.realize("a"), TypeError, "realize: each of others must be a Tensor, not 'a'"),
    ("replace", lambda: LINE.replace(FOUR), ValueError, "replace needs shape (3,), not (4,)"),
    (
        "requires_grad_",
        lambda: INTS.requires_grad_(),
        TypeError,
        "only float tensors have gradients, not dtypes.int",
    ),
    (
        "requires_grad_",
        lambda: LINE.requires_grad_("yes"),
        TypeError,
        "requires_grad_: value must be True or False, not 'yes'",
    ),
    ("schedule", lambda: LINE.schedule("a"), TypeError, "schedule: each of others must be a Tensor, not 'a'"),
    (
        "schedule_with_vars",
        lambda: LINE.schedule_with_vars("a"),
        TypeError,
        "schedule_with_vars: each of others must be a Tensor, not 'a'",
    ),
    ("shard", lambda: M.shard(()), ValueError, "a tensor must be on at least one device, not on ()"),
    (
        "shard_",
        lambda: LINE.shard_(3),
        TypeError,
        "devices must be a string, a sequence of strings or a Mesh, not 3",
    ),
    ("shard_like", lambda: LINE.shard_like(3), TypeError, "shard_like: other must be a Tensor, not 3"),
    (
        "shard",
        lambda: M.shard(("GPU",)),
        DeviceError,
        "'GPU' is not a device. Did you mean WEBGPU? Known: CL, CLANG, CPU, CUDA,",
    ),
    ("size", lambda: M.size(2), IndexError, "a tensor of shape (2, 3) has no axis 2"),
    ("test", lambda: Tensor.test(3), TypeError, "the mode of training must be True or False, not 3"),
    (
        "to",
        lambda: LINE.to("CPUU"),
        DeviceError,
        "'CPUU' is not a device. Did you mean CPU? Known: CL, CLANG, CPU, CUDA, DISK,",
    ),
    ("to", lambda: LINE.to(3), TypeError, "a device must be named by a string such as 'CPU', not 3"),
    ("cuda", lambda: LINE.cuda(1.5), TypeError, "cuda: device must be an int or a string, not 1.5"),
    (
        "to_",
        lambda: LINE.to_("GPU"),
        DeviceError,
        "'GPU' is not a device. Did you mean WEBGPU? Known: CL, CLANG, CPU, CUDA,",
    ),
    ("train", lambda: Tensor.train("a"), TypeError, "the mode of training must be True or False, not 'a'"),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
