"""Writes docs/tensor.md and docs/coverage.md from the code: `python docs/generate.py`.

tensor.md    every public method of Tensor, from its signature and docstring
coverage.md  what each takes and whether gradients flow, found by calling its example; which tests name it;
             and what PyTorch's Tensor has beyond it (needs PyTorch)

tests/tensor/test_generated_docs.py says when a page is no longer what this file writes.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from lazygrad import Tensor, dtypes  # noqa: E402  the checkout's, wherever this is run

# ---- what there is ----


def function_of(name: str) -> Any:
    """The function that a public name of Tensor stands for; None for properties and attributes."""
    member = inspect.getattr_static(Tensor, name)
    found = inspect.unwrap(getattr(member, "__func__", member))
    return found if inspect.isfunction(found) else None


@functools.cache
def methods() -> dict[str, tuple[Any, list[str]]]:
    """Name → (function, its other names), in order of the families and of the lines in a file."""
    groups: dict[Any, list[str]] = {}
    for name in dir(Tensor):
        if not name.startswith("_") and (function := function_of(name)) is not None:
            groups.setdefault(function, []).append(name)
    rows = {}
    for function, names in groups.items():
        own = function.__name__ if function.__name__ in names else names[0]
        rows[own] = (function, sorted(n for n in names if n != own))
    modules = list(dict.fromkeys(c.__module__ for c in reversed(Tensor.__mro__)))

    def place(item: tuple[str, tuple[Any, list[str]]]) -> tuple[int, int]:
        function = item[1][0]
        return modules.index(function.__module__), function.__code__.co_firstlineno

    return dict(sorted(rows.items(), key=place))


def kind_of(name: str) -> str:
    member = inspect.getattr_static(Tensor, name)
    return "Tensor." if isinstance(member, (classmethod, staticmethod)) else "x."


# ---- tensor.md ----


def tensor_page() -> str:
    lines = [
        "# The methods of Tensor",
        "",
        "Written by `python docs/generate.py` from the docstrings, whose examples run as tests. An",
        "argument `dim` may be given as `axis`, `keepdim` as `keepdims`, and the reverse. `docs/coverage.md`",
        "says which dtypes and gradients each has.",
        "",
    ]
    family = ""
    for name, (function, others) in methods().items():
        if function.__module__ != family:
            family = function.__module__
            text = inspect.getdoc(sys.modules[family]) or ""
            lines += [f"## {family.rpartition('.')[2]}", "", *_prose(text), ""]
        lines += [f"### {name}", "", "```", f"{kind_of(name)}{name}{_signature(function)}", "```", ""]
        lines += [*_prose(inspect.getdoc(function) or ""), ""]
        if others:
            lines += [f"Also {', '.join(f'`{o}`' for o in others)}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _signature(function: Any) -> str:
    found = inspect.signature(function)
    shown = [p for p in found.parameters.values() if p.name not in ("self", "cls")]
    text = ", ".join(_parameters(shown))
    result = str(found.return_annotation)
    return f"({text}) -> {result}" if result != "<class 'inspect._empty'>" else f"({text})"


def _parameters(shown: list[inspect.Parameter]) -> list[str]:
    made, star = [], False
    for p in shown:
        if p.kind is p.KEYWORD_ONLY and not star:
            made.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        made.append(text if p.default is p.empty else f"{text}={p.default!r}")
    return made


def _prose(text: str) -> list[str]:
    """A docstring as Markdown: examples and tables in fences."""
    made: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if block.lstrip().startswith(">>>"):
            made += ["```pycon", *lines, "```", ""]
        elif any(re.search(r"\S {2,}\S", line) or line.startswith(" ") for line in lines):
            made += ["```", *lines, "```", ""]
        else:
            made += [*lines, ""]
    return made[:-1]


# ---- coverage.md ----

KINDS = {
    "bool": ["bool"],
    "int": ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
    "float": ["float16", "bfloat16", "float32", "float64"],
    "fp8": ["fp8e4m3", "fp8e5m2"],
}


class _Casting(ast.NodeTransformer):
    """The first tensor that an example makes, in another dtype (and with gradients)."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.done = dtype, False

    def visit_Call(self, node: ast.Call) -> Any:
        made = isinstance(node.func, ast.Name) and node.func.id == "Tensor"
        created = isinstance(node.func, ast.Attribute) and ast.unparse(node.func) in (
            "Tensor.zeros",
            "Tensor.ones",
            "Tensor.full",
            "Tensor.eye",
        )
        if not self.done and (made or created):
            self.done = True
            return ast.parse(f"_as({ast.unparse(node)}, {self.dtype!r})", mode="eval").body
        return self.generic_visit(node)


def example_of(function: Any) -> ast.expr | None:
    """The tensor expression of a method's example, without what reads its value."""
    found = re.search(r">>> (.*)", inspect.getdoc(function) or "")
    if found is None:
        return None
    try:
        tree = ast.parse(found[1], mode="eval").body
    except SyntaxError:
        return None
    while True:
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.args:
            tree = tree.args[0]
        elif isinstance(tree, ast.ListComp):
            tree = tree.generators[0].iter
        elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute):
            if tree.func.attr not in ("tolist", "item", "numpy"):
                return tree
            tree = tree.func.value
        elif isinstance(tree, ast.Attribute):
            tree = tree.value
        else:
            return None


def tried(function: Any, dtype: str) -> tuple[str, str]:
    """Whether a method takes a dtype and gives a gradient: ("yes" or "", "yes", "no" or "")."""
    tree = example_of(function)
    if tree is None or function.__name__ not in ast.unparse(tree):
        return "?", "?"
    casting = _Casting(dtype)
    code = ast.unparse(casting.visit(ast.parse(ast.unparse(tree), mode="eval")))
    if not casting.done:
        return "?", "?"
    sources: list[Any] = []

    def _as(tensor: Any, name: str) -> Any:
        made = tensor.cast(name).detach()
        if dtypes.is_float(made.dtype):
            made.requires_grad_()
        sources.append(made)
        return made

    try:
        result = eval(code, {"Tensor": Tensor, "math": math, "_as": _as})
    except (TypeError, ValueError, OverflowError, IndexError, NotImplementedError):
        return "", ""
    results = result if isinstance(result, tuple) else (result,)
    floats = [r for r in results if isinstance(r, Tensor) and dtypes.is_float(r.dtype)]
    if not floats:
        return "yes", ""
    for r in floats:
        try:
            if r.requires_grad and r.sum().gradient(sources[0]):
                return "yes", "yes"
        except (ValueError, NotImplementedError):
            continue
    return "yes", "no"


def coverage_page() -> str:
    lines = [
        "# Coverage",
        "",
        "Written by `python docs/generate.py`. *Takes* are the kinds of dtypes that the example of the",
        "method can be called with (bool; int: int8 to int64 and uint8 to uint64; float: float16, bfloat16,",
        "float32, float64; fp8: e4m3 and e5m2); *gradient* is whether one flows back to its first tensor",
        "(– where the result is no float). *Tests* are files that call it; all examples run in",
        "tests/tensor/test_doctests.py.",
        "",
        "| method | takes | gradient | tests |",
        "|---|---|---|---|",
    ]
    texts = {
        p.stem.removeprefix("test_"): p.read_text("utf-8") for p in sorted(ROOT.glob("tests/*/test_*.py"))
    }
    texts |= {
        p.stem.removeprefix("test_"): p.read_text("utf-8") for p in sorted(ROOT.glob("tests/test_*.py"))
    }
    for name, (function, others) in methods().items():
        takes, gradient = [], "–"
        for kind, names in KINDS.items():
            answers = [tried(function, n) for n in names]
            if all(a == "yes" for a, _ in answers):
                takes.append(kind)
            if kind == "float":
                gradient = answers[2][1] or "–"
            if answers[0][0] == "?":
                takes, gradient = ["–"], "–"
                break
        called = re.compile(rf"[.\"'](?:{'|'.join(map(re.escape, [name, *others]))})[\"'(]")
        where = [stem for stem, text in texts.items() if called.search(text)]
        shown = ", ".join(where[:3]) + (", ..." if len(where) > 3 else "")
        lines.append(f"| {name} | {', '.join(takes) or 'none'} | {gradient} | {shown or 'doctests'} |")
    return "\n".join([*lines, "", *missing_lines()]).rstrip() + "\n"


#: Why PyTorch's methods are not there: the first row whose pattern fits.
REASONS = (
    (
        r"(sparse|coalesce|indices|values$|crow|ccol|col_indices|row_indices|to_dense|to_mkldnn|dense_dim|smm|sspaddmm|hspmm)",
        "sparse layouts do not exist here",
    ),
    (
        r"(dequant|is_quant|^q_|int_repr)",
        "no quantized tensors",
    ),
    (
        r"(complex|real|imag|conj|angle|polar|cfloat|cdouble|chalf|is_neg|resolve|eig$|view_as_c|geqrf|ormqr|orgqr)",
        "no complex dtypes: complex numbers are a trailing axis of 2 (`fft`)",
    ),
    (r"(names|rename|align|refine|has_names|named)", "named axes: use `rearrange` or plain numbers"),
    (
        r"(storage|data_ptr|is_set_to|set_$|stride|layout|pin|share_memory|record_stream|is_shared|resize|_version|untyped|has_resizeable)",
        "a lazy tensor has no strides or storage to look at",
    ),
    (
        r"(cuda|hip|ipu|xpu|mtia|hpu|xla|vulkan|metal|mps|is_cpu|is_meta|maia|get_device)",
        "devices are named: `to(device)`",
    ),
    (
        r"(hook|retain|grad_fn|grad_dtype|is_leaf|is_inference|output_nr|register|reinforce|backward_|retains_grad|is_distributed|module_load|volatile)",
        "the graph is not kept by hooks: `gradient` and `Function`",
    ),
    (r"(stft|istft)", "windowed transforms: `unfold` and `rfft`"),
    (r"_$", "in place: `x.assign(...)`, operators such as `+=`, or `x[...] =`"),
)


def missing_lines() -> list[str]:
    """What PyTorch's Tensor has and ours does not, by reason."""
    import torch

    names = [n for n in dir(torch.Tensor) if not n.startswith("_") and not hasattr(Tensor, n)]
    groups: dict[str, list[str]] = {reason: [] for _, reason in REASONS}
    rest: list[str] = []
    for name in names:
        reason = next((why for pattern, why in REASONS if re.search(pattern, name)), None)
        (rest if reason is None else groups[reason]).append(name)
    lines = ["## What PyTorch's Tensor has and this one does not", "", "| reason | names |", "|---|---|"]
    lines += [f"| {why} | {', '.join(found)} |" for why, found in groups.items() if found]
    return [*lines, f"| nobody has asked yet | {', '.join(rest)} |"]


PAGES = {"tensor.md": tensor_page, "coverage.md": coverage_page}

if __name__ == "__main__":
    for page, write in PAGES.items():
        (ROOT / "docs" / page).write_text(write(), "utf-8")
        print(f"docs/{page}")
