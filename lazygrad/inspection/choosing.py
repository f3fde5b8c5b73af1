"""Kernels chosen by what DEBUG=2 shows of them: name, shape, method, line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

#: `script.py:12`
_LINE = re.compile(r"(.+):(\d+)$")


def is_meant(wanted: str, name: str, shape: str, metadata: Sequence[Any]) -> bool:
    """Whether a word means a kernel.

    wanted    the kernel's name (`r_64_16`, or `r_64` for every name that begins with these sizes); the shape
              of what it writes (`(64, 16)`); a method or a line that it comes from (`softmax`, or
              `script.py:12`)
    metadata  of its schedule item
    """
    wanted = wanted.strip()
    # of several kernels with one name all but the first have a number behind it: r_8_4n1
    if wanted in (name, re.sub(r"n\d+$", "", name)) or name.startswith(f"{wanted}_"):
        return True
    if wanted.startswith("("):
        return _numbers(wanted) == _numbers(shape) and bool(shape)
    methods = {str(getattr(each, "name", each)) for each in metadata}
    if wanted in methods or f"__{wanted}__" in methods:
        return True
    found = _LINE.match(wanted)
    if found is None:
        return False
    file, number = found.groups()
    lines = [_LINE.match(getattr(each, "line", "")) for each in metadata]
    return any(m and m[2] == number and (m[1] == file or m[1].endswith(f"/{file}")) for m in lines)


def _numbers(shape: str) -> list[str]:
    """The sizes of a shape's text, without those of 1."""
    return [size for size in re.findall(r"[\w.+*]+", shape) if size != "1"]
