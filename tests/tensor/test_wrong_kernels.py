"""Kernels given as text, called wrongly."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.device import DeviceError
from tests.tensor.wrong import AWAY, LINE, Row, check, ids

F = "define void @f(ptr %out, ptr %x) { ret void }"
TWO = "define void @f(ptr %x) { ret void }\ndefine void @g(ptr %x) { ret void }"


def run(source: object = F, language: str | None = "llvm", outputs: object = LINE, **more: object) -> object:
    return Tensor.custom_kernel(source, language, outputs, **{"inputs": [LINE], **more})


ROWS: list[Row] = [
    (
        "custom_kernel",
        lambda: run(language="fortran"),
        ValueError,
        "c, llvm, opencl, cuda, metal, not 'fortran'",
    ),
    ("custom_kernel", lambda: run(language="c"), DeviceError, "runs on device CLANG, and the tensors are on"),
    ("custom_kernel", lambda: run(language="c"), DeviceError, "which takes llvm: add a text for it"),
    (
        "custom_kernel",
        lambda: run(language="wgsl"),
        NotImplementedError,
        "kernels in wgsl are not implemented yet",
    ),
    ("custom_kernel", lambda: run({"llvm": F}), TypeError, "leave language out"),
    ("custom_kernel", lambda: run(language=None), TypeError, "say the language: one of c, llvm"),
    ("custom_kernel", lambda: run(outputs=None), TypeError, "say what it makes"),
    ("custom_kernel", lambda: run({}, None), ValueError, "there is no text"),
    ("custom_kernel", lambda: run(grid={"c": 2}), ValueError, "grid is said for 'c'"),
    ("custom_kernel", lambda: run(group=2), ValueError, "a kernel in llvm has no workgroups"),
    (
        "custom_kernel",
        lambda: run(source="int x;"),
        ValueError,
        "no function of the text can be started by llvm",
    ),
    ("custom_kernel", lambda: run(source=TWO), ValueError, "several functions: say name= one of f, g"),
    ("custom_kernel", lambda: run(name="h"), ValueError, "the text has no function h, but f"),
    ("custom_kernel", lambda: run(outputs=3), TypeError, "an output must be (shape, dtype) or a tensor"),
    ("custom_kernel", lambda: run(outputs=((0,), "float")), ValueError, "known sizes other than 0"),
    ("custom_kernel", lambda: run(outputs=((2,), "real")), (TypeError, ValueError), "real"),  # type: ignore[list-item]
    ("custom_kernel", lambda: run(grid=0), ValueError, "one to three sizes above 0, not 0"),
    ("custom_kernel", lambda: run(group=(1, 2, 3, 4)), ValueError, "one to three sizes above 0"),
    (
        "custom_kernel",
        lambda: run(inputs=[1.0]),
        TypeError,
        "inputs must be a sequence of Tensors, not [1.0]",
    ),
    ("custom_kernel", lambda: run(inputs=[LINE, AWAY]), ValueError, "inputs is on PYTHON"),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_wrong(row: Row) -> None:
    check(row)
