"""A kernel that its user gave as text: what is written around it, so that a runtime can call it.

A runtime gives the buffers of a plan in their order, `places` says which of them each argument is: outputs
first, then inputs. The user's own lines keep their numbers in what a compiler says of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ..ir.own import SourceText

#: language → the suffix of the renderer whose device takes it
SUFFIXES = {"c": "c", "llvm": "ll", "opencl": "cl", "cuda": "cu", "metal": "metal"}
#: language → how a function of it begins that can be called
_HEADS = {
    "c": re.compile(r"^[ \t]*(?!static\b)(?:extern\s+)?void\s+(\w+)\s*\(", re.MULTILINE),
    "llvm": re.compile(r"^define\s+[^@\n]*@([\w.]+)\(", re.MULTILINE),
    "opencl": re.compile(
        r"\b(?:__kernel|kernel)\b[^;{}()]*(?:\(\([^;{}]*?\)\)[^;{}()]*)?\bvoid\s+(\w+)\s*\("
    ),
    "cuda": re.compile(r"__global__\s[^;{}]*?\bvoid\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\("),
    "metal": re.compile(r"\bkernel\s+void\s+(\w+)\s*\("),
}


def functions_in(source: str, language: str) -> list[str]:
    """The functions of a text that may be the kernel."""
    return list(dict.fromkeys(_HEADS[language].findall(source)))


def text_around(text: SourceText, places: Sequence[int]) -> str:
    """The whole text for a device."""
    if text.language == "c":
        return text.source + _c_entry(text, places)
    if text.language == "llvm":
        return text.source + _llvm_entry(text, places)
    if text.language == "opencl":
        return _opencl(text, places)
    raise NotImplementedError(f"running kernels in {text.language} is not there yet")


def _c_entry(text: SourceText, places: Sequence[int]) -> str:
    """A function that calls the kernel, once for each place of its grid that this piece has."""
    arguments = [f"bufs[{place}]" for place in places]
    head = f"\nvoid {text.function}_entry(void** bufs, long long* vals, int piece, int pieces) {{\n"
    if text.grid is None:
        return f"{head}  {text.function}({', '.join(arguments)});\n}}\n"
    total, where = math.prod(text.grid), ["i"]
    if len(text.grid) > 1:
        where = [f"i/{math.prod(text.grid[:axis])}%{size}" for axis, size in enumerate(text.grid)]
    call = f"{text.function}({', '.join([*arguments, *where])});"
    loop = f"for (long long i = {total}LL*piece/pieces; i < {total}LL*(piece+1)/pieces; i++) {call}"
    return f"{head}  {loop}\n}}\n"


def _llvm_entry(text: SourceText, places: Sequence[int]) -> str:
    if text.grid is not None:
        raise NotImplementedError("a grid for a kernel in llvm is not there yet: loop inside of it")
    lines = []
    for place in sorted(set(places)):
        lines.append(f"  %lazygrad.at{place} = getelementptr inbounds ptr, ptr %bufs, i64 {place}")
        lines.append(f"  %lazygrad.buf{place} = load ptr, ptr %lazygrad.at{place}")
    arguments = ", ".join(f"ptr %lazygrad.buf{place}" for place in places)
    head = f"\ndefine void @{text.function}_entry(ptr %bufs, ptr %vals, i32 %piece, i32 %pieces) {{"
    call = f"  call void @{text.function}({arguments})"
    return "\n".join([head, *lines, call, "  ret void", "}", ""])


_POINTER = re.compile(r"\s*(?:__global|global)\s+(?:const\s+)?(.+?)\s*(?:const\s*)?\*\s*"
                      r"(?:(?:__restrict|restrict|const)\s+)*(\w+)\s*")  # fmt: skip


def _opencl(text: SourceText, places: Sequence[int]) -> str:
    """The kernel on the plan's buffers; its own names stand for them in its first lines."""
    source = text.source
    head = next(h for h in _HEADS["opencl"].finditer(source) if h[1] == text.function)
    depth, end = 1, head.end()
    while depth and end < len(source):
        depth += {"(": 1, ")": -1}.get(source[end], 0)
        end += 1
    brace = source.find("{", end)
    parameters = source[head.end() : end - 1].split(",")
    found = [_POINTER.fullmatch(parameter) for parameter in parameters]
    if brace < 0 or len(found) != len(places) or not all(found):
        raise ValueError(
            f"kernel {text.function} takes {len(places)} pointers to __global memory, outputs first, "
            f"not ({', '.join(map(str.strip, parameters))})"
        )
    kinds = {place: pointer[1] for place, pointer in zip(places, found, strict=True) if pointer}
    taken = ", ".join(f"__global {kinds[place]}* lazygrad{place}" for place in sorted(kinds))
    named = " ".join(
        f"__global {pointer[1]}* {pointer[2]} = (__global {pointer[1]}*)lazygrad{place};"
        for place, pointer in zip(places, found, strict=True)
        if pointer
    )
    before = source[: head.start()]
    line = source[: brace + 1].count("\n") + 1
    return (
        f"{before}\n__kernel void {text.function}({taken}) {{\n{named}\n#line {line}\n{source[brace + 1 :]}"
    )
