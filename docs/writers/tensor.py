"""docs/tensor/: a page for each family of methods, from signatures and docstrings; one of contents."""

from __future__ import annotations

import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

from lazygrad import Tensor
from lazygrad.tensor import in_place

from .families import FAMILIES, INTRODUCTIONS, Family
from .methods import methods, methods_of
from .signatures import parameter_list

WRITTEN = "Written by `python docs/generate.py` from the docstrings, whose examples run as tests."


def tensor_pages() -> dict[str, str]:
    """The name of each file of docs/tensor/, and its text."""
    covered = [f"lazygrad.tensor.{module}" for family in FAMILIES for module in family.sections.values()]
    lost = {function.__module__ for function, _ in methods().values()} - set(covered)
    if lost:
        raise ValueError(f"no page of docs/writers/families.py has the methods of {', '.join(sorted(lost))}")
    return {"README.md": contents_page(), **{f"{f.page}.md": family_page(f) for f in FAMILIES}}


# ---- where a method stands ----


def anchor(heading: str) -> str:
    """What GitHub calls a heading in an address."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def methods_in_place() -> list[str]:
    return [f"{name}_" for name in (*in_place.IN_PLACE.split(), *in_place.LOOKS.split())]


def addresses() -> dict[str, str]:
    """Every public name of a method, other names included → the place that says what it does."""
    found = {}
    for family in FAMILIES:
        for heading, module in family.sections.items():
            for name, (_, others) in methods_of(module).items():
                found.update(dict.fromkeys([name, *others], f"{family.page}.md#{anchor(name)}"))
            if module == "in_place":
                found.update(dict.fromkeys(methods_in_place(), f"{family.page}.md#{anchor(heading)}"))
    return found


def _row(links: Iterable[str]) -> list[str]:
    """Links, with commas, in lines of a readable width."""
    return textwrap.wrap(", ".join(links), 118, break_long_words=False, break_on_hyphens=False)


# ---- the contents ----


def contents_page() -> str:
    lines = [
        "# The methods of Tensor",
        "",
        WRITTEN,
        "An argument `dim` may be given as `axis`, `keepdim` as `keepdims`, and the reverse: type checkers",
        "know it from `lazygrad/tensor/face.pyi`. [Coverage](../coverage.md) has the dtypes and",
        "gradients of each. [Every name](#every-name) is listed below the families.",
        "",
    ]
    for family in FAMILIES:
        lines += [f"## [{family.title}]({family.page}.md)", "", family.sentence, ""]
        names = [name for module in family.sections.values() for name in methods_of(module)]
        lines += [*_row(f"[{name}]({family.page}.md#{anchor(name)})" for name in names), ""]
    lines += ["## Every name", "", "With an underscore at its end a method writes in place.", ""]
    where = addresses()
    for letter, names in itertools.groupby(sorted(where, key=str.lower), lambda name: name[0].lower()):
        first, *rest = _row(f"[{name}]({where[name]})" for name in names)
        lines += [f"**{letter}**: {first}", *rest, ""]
    return "\n".join(lines).rstrip() + "\n"


# ---- a family ----


def family_page(family: Family) -> str:
    lines = [f"# {family.title}", "", family.sentence, ""]
    lines += [f"{WRITTEN} [All methods](README.md)", ""]
    for heading, module in family.sections.items():
        first, *rest = _row(f"[{name}](#{anchor(name)})" for name in methods_of(module)) or ["names with `_`"]
        lines += [f"- [{heading}](#{anchor(heading)}): {first}", *(f"  {line}" for line in rest)]
    lines.append("")
    for heading, module in family.sections.items():
        text = INTRODUCTIONS.get(module) or inspect.getdoc(sys.modules[f"lazygrad.tensor.{module}"]) or ""
        lines += [f"## {heading}", "", *_prose(text), ""]
        for name, (function, others) in methods_of(module).items():
            lines += _method(name, function, others)
        if module == "in_place":
            lines += [*_row(f"`{name}`" for name in methods_in_place()), ""]
    return "\n".join(lines).rstrip() + "\n"


def _method(name: str, function: Any, others: list[str]) -> list[str]:
    lines = [f"### {name}", "", "```", f"{_kind_of(name)}{name}{_signature(function)}", "```", ""]
    lines += [*_prose(inspect.getdoc(function) or ""), ""]
    if others:
        lines += [f"Also {', '.join(f'`{o}`' for o in others)}.", ""]
    return lines


def _kind_of(name: str) -> str:
    member = inspect.getattr_static(Tensor, name)
    return "Tensor." if isinstance(member, (classmethod, staticmethod)) else "x."


def _signature(function: Any) -> str:
    found = inspect.signature(function)
    shown = [p for p in found.parameters.values() if p.name not in ("self", "cls")]
    text = parameter_list(shown, lambda p: "" if p.default is p.empty else f"={p.default!r}")
    result = str(found.return_annotation)
    return f"({text}) -> {result}" if result != "<class 'inspect._empty'>" else f"({text})"


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
