"""docs/dtypes.md: what two dtypes give together, asked of an addition of tensors."""

from __future__ import annotations

from lazygrad import Tensor, dtypes

_INTS = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64"
NAMES = f"{_INTS} fp8e4m3 fp8e5m2 float16 bfloat16 float32 float64".split()
SHORT = {"int": "i", "uint": "u", "float": "f", "bfloat": "bf"}

TOP = """# Dtypes

Written by `python docs/generate.py dtypes`.

Wherever a dtype is taken it may be said as `lazygrad.float32` (or `dtypes.float32`), as a string
(`"float32"`), as one of Python's (`bool`, `int` and `float` are the default ones), of numpy's (`np.float32`,
`np.dtype("float32")`), of ml_dtypes' or of PyTorch's.

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

## What two tensors give

The dtype of `a + b`, and of all that computes element by element: as in JAX (its type promotion, JEP 9407).
i32 stands for int32, u8 for uint8, f16 for float16, bf16 for bfloat16, e4m3 and e5m2 for floats of 8 bits.
"""

MIDDLE = """
## A tensor and a number of Python

A number takes the dtype of the tensor where that can hold its kind; else the default dtype of its kind. It
never makes a tensor wider.
"""

END = """
JAX does not mix the floats of 8 bits with others, PyTorch refuses uint64 beside a signed integer, and numpy
makes float64 of int32 with float32. Where PyTorch promotes two dtypes, the result here is the same.

## What operations give

| operation | dtype of the result |
|---|---|
| `/`, `mean` of integers and bools | the default float; of floats their own |
| `//`, `%`, `**` | that of the mix; bools count as int32 |
| `<<`, `>>` | that of the mix; a shift by the width or more gives 0, `>>` of a negative number -1 |
| `<`, `==` | bool. Operands are compared in the dtype of their mix; integers exactly, \
uint64 with signed ones too |
| `+` of bools | bool (or); `-` of bools is an error |
| `sum`, `prod`, `cumsum` of narrow integers and bools | int32, or uint32 of unsigned ones; 64 bits stay |
| `sum`, `prod`, `cumsum` of narrow floats | their own, accumulated in float32 and rounded once |
| `@` | as a sum: of narrow integers int32 or uint32, so that int8 does not \
overflow (PyTorch and JAX keep int8) |
| `max`, `min` | the tensor's own |
| places: `argmax`, the second of `sort` and `topk`, `randperm` | the default int, or int32 or int64 where \
that is too narrow |
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
