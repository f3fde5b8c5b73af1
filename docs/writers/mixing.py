"""docs/dtypes.md: what two dtypes give together, asked of an addition of tensors."""

from __future__ import annotations

from lazygrad import Tensor, dtypes

_INTS = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64"
NAMES = f"{_INTS} fp8e4m3 fp8e5m2 float16 bfloat16 float32 float64".split()
SHORT = {"int": "i", "uint": "u", "float": "f", "bfloat": "bf"}

TOP = """# Dtypes

Written by `python docs/generate.py dtypes`.

An argument that is a dtype can be `lazygrad.float32` (or `dtypes.float32`), a string (`"float32"`), a Python
type (`bool`, or `int` and `float` for the default integer and float), a dtype of numpy (`np.float32`,
`np.dtype("float32")`), of ml_dtypes or of PyTorch.

```python
import numpy as np
import lazygrad
from lazygrad import Tensor

x = Tensor([1, 2, 3], dtype=np.int8)
print(x.dtype, x.cast(float).dtype, x.to("bfloat16").dtype, (x / 2).dtype, (x + 1.5).dtype)
```

```text
dtypes.char dtypes.float dtypes.bfloat16 dtypes.float dtypes.float
```

## Two tensors

The dtype of `a + b`, and of all elementwise operations. The rules are those of JAX (its type promotion,
JEP 9407). i32 stands for int32, u8 for uint8, f16 for float16, bf16 for bfloat16, e4m3 and e5m2 for the 8-bit
floats.
"""

MIDDLE = """
## A tensor and a Python number

A number takes the dtype of the tensor if that is of the same or a higher kind (bool, integer, float),
otherwise the default dtype of its own kind. So it never makes a tensor wider.
"""

END = """
JAX does not mix 8-bit floats with others, PyTorch refuses uint64 beside a signed integer, and numpy
makes float64 of int32 with float32. Where PyTorch promotes two dtypes, the result here is the same.

## The results of operations

| operation | dtype of the result |
|---|---|
| `/`, `mean` | the default float for integers and bools; floats keep their dtype |
| `//`, `%`, `**` | the promoted dtype; bools count as int32 |
| `<<`, `>>` | the promoted dtype. A shift by the width or more gives 0 (`>>` of a negative number: -1) |
| `<`, `==` | bool. Operands are compared in their promoted dtype; integers are compared exactly, \
also uint64 with signed ones |
| `+` of bools | bool (or); `-` of bools is an error |
| `sum`, `prod`, `cumsum` of narrow integers and bools | int32, or uint32 for unsigned ones; \
64-bit integers keep their dtype |
| `sum`, `prod`, `cumsum` of narrow floats | unchanged; accumulated in float32 and rounded once |
| `@` | as `sum`: int32 or uint32 for narrow integers, so that int8 does not \
overflow (PyTorch and JAX keep int8) |
| `max`, `min` | unchanged |
| indices: `argmax`, the second result of `sort` and `topk`, `randperm` | the default int, or int32 or int64 \
if that is too narrow |
"""


def short(name: str) -> str:
    """`bf16` of `bfloat16`."""
    if name == "bool":
        return name
    if name.startswith("fp8"):
        return name[3:]
    kind = name.rstrip("0123456789")
    return SHORT[kind] + name[len(kind) :]


def _name(tensor: Tensor) -> str:
    return next(name for name in NAMES if getattr(dtypes, name) is tensor.dtype)


def mixing_page() -> str:
    """The page."""
    tensors = {name: Tensor.ones(1, dtype=name) for name in NAMES}
    lines = ["|  | " + " | ".join(map(short, NAMES)) + " |", "|---" * (len(NAMES) + 1) + "|"]
    for name, a in tensors.items():
        cells = [short(_name(a + b)) for b in tensors.values()]
        lines.append(f"| **{short(name)}** | " + " | ".join(cells) + " |")
    numbers = [("True", True), ("1", 1), ("1.0", 1.0)]
    beside = ["|  | " + " | ".join(map(short, NAMES)) + " |", "|---" * (len(NAMES) + 1) + "|"]
    for text, number in numbers:
        cells = [short(_name(a + number)) for a in tensors.values()]
        beside.append(f"| **{text}** | " + " | ".join(cells) + " |")
    return "\n".join([TOP, *lines, MIDDLE, *beside, END])
