"""A kernel that its user gave as text: what is written around it, so that a runtime can call it.

A runtime gives the buffers of a plan in their order, `places` says which of them each argument is: outputs
first, then inputs. So the head of a kernel for a GPU is written anew, with the parameters of a launch, and
its own names stand for them in its first lines; C and LLVM get a function that calls the kernel. The user's
own lines keep their numbers in what a compiler says of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..codegen.direct_kernels import LANGUAGES, Language
from ..ir.own import SourceText

_ATTRIBUTES = r"(?:__(?:launch_bounds|cluster_dims|block_size)__\s*\([^)]*\)\s*)*"

#: Language → how a function begins that can be called, up to its first parameter; group 1 is its name.
_HEADS = {
    "c": re.compile(r"^[ \t]*(?!static\b)(?:extern\s+)?void\s+(\w+)\s*\(", re.MULTILINE),
    "llvm": re.compile(r"^define\s+[^@\n]*@([\w.]+)\(", re.MULTILINE),
    "opencl": re.compile(
        r"\b(?:__kernel|kernel)\b[^;{}()]*(?:\(\([^;{}]*?\)\)[^;{}()]*)?\bvoid\s+(\w+)\s*\("),
    "cuda": re.compile(
        rf"__global__\s+{_ATTRIBUTES}void\s+{_ATTRIBUTES}(\w+)\s*\(|"
        r"void\s+__global__\s+(\w+)\s*\("),
    "metal": re.compile(r"\bkernel\s+void\s+(\w+)\s*\("),
}  # fmt: skip


def _functions_in(language: str) -> Callable[[str], list[str]]:
    """Those of a text that may be the kernel."""
    return lambda source: list(dict.fromkeys([name for name, _ in _heads(source, language)]))


LANGUAGES.update({
    language: Language(suffix, device, _functions_in(language))
    for language, suffix, device in (
        ("c", "c", "CLANG"), ("llvm", "ll", "CPU"), ("opencl", "cl", "CL"), ("cuda", "cu", "CUDA"),
        ("metal", "metal", "METAL"),
    )
})  # fmt: skip


def _heads(source: str, language: str) -> list[tuple[str, re.Match[str]]]:
    plain = source if language == "llvm" else _without_comments(source)
    return [
        (next(filter(None, head.groups())), head)
        for head in _HEADS[language].finditer(plain)
        if not re.search(r"\btemplate\s*<[^;{}]*>[\s\w]*$", plain[: head.start()])
    ]


def _without_comments(source: str) -> str:
    """The text with spaces in place of comments: each letter stays where it is."""
    return re.sub(
        r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/',
        lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0]),
        source,
        flags=re.DOTALL,
    )


def text_around(text: SourceText, places: Sequence[int]) -> str:
    """The whole text for a device."""
    return _AROUND[text.language](text, places)


# *** on a processor: a function that calls the kernel


def _c_entry(text: SourceText, places: Sequence[int]) -> str:
    """A function that calls the kernel, once for each place of its grid that this piece has."""
    arguments = [f"bufs[{place}]" for place in places]
    head = f"\nvoid {text.function}_entry(void** bufs, long long* vals, int piece, int pieces) {{\n"
    if text.grid is None:
        return f"{text.source}{head}  {text.function}({', '.join(arguments)});\n}}\n"
    total, where = math.prod(text.grid), ["i"]
    if len(text.grid) > 1:
        where = [f"i/{math.prod(text.grid[:axis])}%{size}" for axis, size in enumerate(text.grid)]
    call = f"{text.function}({', '.join([*arguments, *where])});"
    loop = f"for (long long i = {total}LL*piece/pieces; i < {total}LL*(piece+1)/pieces; i++) {call}"
    return f"{text.source}{head}  {loop}\n}}\n"


def _llvm_entry(text: SourceText, places: Sequence[int]) -> str:
    """The same in LLVM; a place on an axis is an i64."""
    lines = []
    for place in sorted(set(places)):
        lines.append(f"  %lazygrad.at{place} = getelementptr inbounds ptr, ptr %bufs, i64 {place}")
        lines.append(f"  %lazygrad.buf{place} = load ptr, ptr %lazygrad.at{place}")
    arguments = [f"ptr %lazygrad.buf{place}" for place in places]
    head = f"\ndefine void @{text.function}_entry(ptr %bufs, ptr %vals, i32 %piece, i32 %pieces) {{\nentry:"
    if text.grid is None:
        lines += [f"  call void @{text.function}({', '.join(arguments)})", "  ret void", "}", ""]
        return "\n".join([text.source + head, *lines])
    total = math.prod(text.grid)
    lines += [
        "  %lazygrad.piece = sext i32 %piece to i64",
        "  %lazygrad.pieces = sext i32 %pieces to i64",
        "  %lazygrad.after = add i64 %lazygrad.piece, 1",
        f"  %lazygrad.first = mul i64 %lazygrad.piece, {total}",
        f"  %lazygrad.last = mul i64 %lazygrad.after, {total}",
        "  %lazygrad.begin = sdiv i64 %lazygrad.first, %lazygrad.pieces",
        "  %lazygrad.end = sdiv i64 %lazygrad.last, %lazygrad.pieces",
        "  br label %lazygrad.test",
        "lazygrad.test:",
        "  %lazygrad.i = phi i64 [ %lazygrad.begin, %entry ], [ %lazygrad.next, %lazygrad.body ]",
        "  %lazygrad.more = icmp slt i64 %lazygrad.i, %lazygrad.end",
        "  br i1 %lazygrad.more, label %lazygrad.body, label %lazygrad.done",
        "lazygrad.body:",
    ]
    for axis, size in enumerate(text.grid):
        before = math.prod(text.grid[:axis])
        lines.append(f"  %lazygrad.over{axis} = sdiv i64 %lazygrad.i, {before}")
        lines.append(f"  %lazygrad.place{axis} = srem i64 %lazygrad.over{axis}, {size}")
    arguments += [f"i64 %lazygrad.place{axis}" for axis in range(len(text.grid))]
    lines += [
        f"  call void @{text.function}({', '.join(arguments)})",
        "  %lazygrad.next = add i64 %lazygrad.i, 1",
        "  br label %lazygrad.test",
        "lazygrad.done:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join([text.source + head, *lines])


# *** in a launch: the kernel's head, written anew


class _Head(NamedTuple):
    """A kernel's head. Its text is `source[begin:parameters]`, the parameters, and on from `body`, which is
    behind the brace and on the line `line`.
    """

    begin: int
    parameters: int
    listed: list[str]
    body: int
    line: int


def _head(text: SourceText) -> _Head:
    source = _without_comments(text.source)
    head = next(head for name, head in _heads(text.source, text.language) if name == text.function)
    depth, end, begins = 1, head.end(), [head.end()]
    while depth and end < len(source):
        letter = source[end]
        depth += (letter in "([{") - (letter in ")]}")
        end += 1
        if letter == "," and depth == 1:
            begins.append(end)
    brace = source.find("{", end)
    if depth or brace < 0:
        raise ValueError(f"kernel {text.function} has no body")
    listed = [source[a : b - 1] for a, b in zip(begins, [*begins[1:], end], strict=True)]
    return _Head(head.start(), head.end(), listed, brace + 1, source[: brace + 1].count("\n") + 1)


def _launched(
    text: SourceText, head: _Head, before: str, parameters: Sequence[str], named: Sequence[str]
) -> str:
    """The text with other parameters; `named` are the declarations of its own names."""
    source = text.source
    start = (
        f"{source[: head.begin]}\n{before}{source[head.begin : head.parameters]}{', '.join(parameters)}) {{"
    )
    return f"{start}\n{' '.join(named)}\n#line {head.line}\n{source[head.body :]}"


def _wrong(text: SourceText, places: Sequence[int], what: str, head: _Head) -> ValueError:
    listed = ", ".join(" ".join(parameter.split()) for parameter in head.listed)
    return ValueError(f"kernel {text.function} takes {len(places)} {what}, outputs first, not ({listed})")


_OPENCL_POINTER = re.compile(r"\s*(?:__global|global)\s+(?:const\s+)?(.+?)\s*(?:const\s*)?\*\s*"
                             r"(?:(?:__restrict|restrict|const)\s+)*(\w+)\s*")  # fmt: skip
_CUDA_POINTER = re.compile(r"\s*(?:const\s+)?([\w:\s]+?)\s*(?:\bconst\s*)?\*\s*"
                           r"(?:(?:__restrict__|__restrict|const)\s*)*\b(\w+)\s*")  # fmt: skip


def _with_pointers(pointer: re.Pattern[str], space: str, what: str, before: str) -> Callable[..., str]:
    """Kernels that take nothing but pointers, of which the memory is `space`."""

    def rendered(text: SourceText, places: Sequence[int]) -> str:
        head = _head(text)
        found = [pointer.fullmatch(parameter) for parameter in head.listed]
        if len(found) != len(places) or not all(found):
            raise _wrong(text, places, what, head)
        pairs = [(place, each) for place, each in zip(places, found, strict=True) if each is not None]
        kinds = {place: f"{space}{each[1]}*" for place, each in pairs}
        taken = [f"{kinds[place]} lazygrad{place}" for place in sorted(kinds)]
        named = [
            f"{' '.join(each[0].split())} = ({space}{each[1]}*)lazygrad{place};" for place, each in pairs
        ]
        return _launched(text, head, before, taken, named)

    return rendered


_METAL_POINTER = re.compile(
    r"""\s* (?:(const)\s+)? (device|constant) \s+ (?:(const)\s+)? ([\w:\s]+?) \s* (?:const\s*)? ([*&]) \s*
    (?:(?:__restrict|const)\s+)* (\w+) \s* (?:\[\[ \s* buffer \s* \( \s* (\d+) \s* \) \s* \]\] \s*)?""",
    re.VERBOSE,
)


def _metal(text: SourceText, places: Sequence[int]) -> str:
    """Pointers to device memory, in the order of their [[buffer(n)]]; what says where a thread is stays."""
    head = _head(text)
    found = [_METAL_POINTER.fullmatch(parameter) for parameter in head.listed]
    pointers = [each for each in found if each is not None]
    others = [parameter for parameter, each in zip(head.listed, found, strict=True) if each is None]
    given = [int(each[7]) for each in pointers if each[7] is not None]
    numbered = not given or sorted(given) == list(range(len(pointers)))
    memory = [parameter for parameter in others if re.search(r"[*&]", parameter)]
    if len(pointers) != len(places) or not numbered or memory:
        raise _wrong(text, places, "pointers to device memory, buffer(0) to the last", head)
    if given:
        pointers.sort(key=lambda each: int(each[7]))
    pairs = list(zip(places, pointers, strict=True))
    writable = {place for place, each in pairs if each[2] == "device"}
    taken, named = {}, []
    for place, each in pairs:
        space = "device" if place in writable else "constant"
        taken[place] = f"{space} {each[4]}* lazygrad{place} [[buffer({place})]]"
        kind = f"{space} {'const ' if each[1] or each[3] else ''}{each[4]}"
        value = f"({kind}*)lazygrad{place}"
        named.append(f"{kind}{each[5]} {each[6]} = {'*' if each[5] == '&' else ''}{value};")
    more = [" ".join(each.split()) for each in others]
    return _launched(text, head, "", [*[taken[place] for place in sorted(taken)], *more], named)


_AROUND: dict[str, Callable[[SourceText, Sequence[int]], str]] = {
    "c": _c_entry,
    "llvm": _llvm_entry,
    "opencl": _with_pointers(_OPENCL_POINTER, "__global ", "pointers to __global memory", ""),
    "cuda": _with_pointers(_CUDA_POINTER, "", "pointers", 'extern "C" '),
    "metal": _metal,
}
