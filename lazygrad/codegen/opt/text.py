"""Opts from their printed form, without running it: `[Opt(op=OptOps.UPCAST, axis=0, amount=4)]`."""

from __future__ import annotations

import ast

from .moves.actions import Opt, OptOps

#: A list of as many Opts as fit has a tenth of this; Python's parser takes seconds for texts of megabytes.
MOST_TEXT = 100_000


def parse_opts(text: str) -> list[Opt]:
    """The Opts that `repr` of a list, of a tuple or of one Opt printed; other text raises ValueError.

    Fields may be named or in their order: `Opt(OptOps.UPCAST, 0, 4)`.
    """
    if len(text) > MOST_TEXT:
        raise ValueError(f"{text[:200]!r}... of {len(text)} characters is not a list of Opts")
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
        parts = parsed.elts if isinstance(parsed, (ast.List, ast.Tuple)) else [parsed]
        return [_opt(part) for part in parts]
    except (SyntaxError, RecursionError, MemoryError) as error:  # the latter two: nested too deeply
        raise ValueError(f"{text[:200]!r} is not a list of Opts: {error}") from None


def _opt(node: ast.expr) -> Opt:
    text = ast.unparse(node)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Opt"):
        raise ValueError(f"{text} is not an Opt: write Opt(OptOps.UPCAST, axis, amount)")
    fields = {}
    for name, value in zip(Opt._fields, node.args, strict=False):
        fields[name] = value
    for keyword in node.keywords:
        if keyword.arg not in Opt._fields or keyword.arg in fields:
            raise ValueError(f"{text}: an Opt has one each of {', '.join(Opt._fields)}")
        fields[keyword.arg] = keyword.value
    if len(node.args) > len(Opt._fields) or "op" not in fields:
        raise ValueError(f"{text}: an Opt has one each of {', '.join(Opt._fields)}")
    op = _kind(fields.pop("op"))
    return Opt(op, **{name: _number(name, value) for name, value in fields.items()})


def _kind(node: ast.expr) -> OptOps:
    text = ast.unparse(node)
    name = text.removeprefix("OptOps.")
    if name not in OptOps.__members__:
        import difflib

        near = difflib.get_close_matches(name, OptOps.__members__, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(OptOps.__members__)}"
        raise ValueError(f"{text} is not a kind of Opt: {hint}")
    return OptOps[name]


def _number(name: str, node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):  # the latter: a set of lists
        value = ...
    if value is not None and type(value) is not int:
        raise ValueError(f"{name} of an Opt must be a whole number, not {ast.unparse(node)}")
    return value
