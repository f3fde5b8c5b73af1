"""Which mutants there are, and which are drawn. What a mutant changes is cosmic-ray's: an operator of another
kind, a number one more or less, a condition negated, a loop without iterations, a decorator left out.

A position is drawn first (a file by its lines, then a position in it), then one of its changes: else nearly
all mutants would be arithmetic operators, each of which can become eleven others.
"""

from __future__ import annotations

import ast
import difflib
import functools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

Span = tuple[tuple[int, int], tuple[int, int]]  # (line, column) of the first character, and behind the last

#: Comparisons of objects that are alone of their value, such as Ops.ADD, answer the same with both.
SAME = {(a, b) for pair in (("Is", "Eq"), ("IsNot", "NotEq")) for a, b in (pair, pair[::-1])}
#: Nodes of parso that nothing changes, and operators that are none.
UNCHANGED = {"name", "string", "newline", "endmarker", "fstring_start", "fstring_string", "fstring_end"}
PUNCTUATION = {"", "(", ")", "[", "]", "{", "}", ",", ".", ":", "=", ";", "->", ":="}
#: Decorators that change how long something takes, or what a type checker says.
WITHOUT_MEANING = {"cache", "lru_cache", "overload", "override", "final", "runtime_checkable"}
#: Methods that are read by people.
SHOWN = {"__repr__", "__str__"}


class Mutant(NamedTuple):
    """The `occurrence`-th change that an operator of cosmic-ray can make in a file."""

    file: str
    line: int
    operator: str
    occurrence: int

    @property
    def name(self) -> str:
        return ":".join(map(str, self))


def named(text: str) -> Mutant:
    """The mutant of this name; ValueError for another text."""
    words = text.rsplit(":", 3)
    if len(words) != 4 or not (words[1].isdecimal() and words[3].isdecimal()):
        raise ValueError(f"{text} names no mutant: write FILE:LINE:OPERATOR:NUMBER, as a report shows it")
    return Mutant(words[0], int(words[1]), words[2], int(words[3]))


@functools.cache
def _operators() -> dict[str, Any]:
    """cosmic-ray's operators that need no arguments, by name."""
    from cosmic_ray.operators.provider import OperatorProvider

    found = {name: operator for name, operator in _items(OperatorProvider()) if not operator.arguments()}
    return {name: operator() for name, operator in found.items() if not _changes_nothing(name)}


@functools.cache
def _operators_of(node_type: str) -> list[tuple[str, Any]]:
    """Those that may change a node of parso of this type: there are two hundred, which would take minutes."""
    only = {"Binary": ("operator",), "Comparison": ("comparison",), "Unary": ("factor", "not_test")}
    kinds = {f"Replace{name}Operator": types for name, types in only.items()}
    rows = _operators().items()
    return [
        (name, each) for name, each in rows if node_type in kinds.get(name.partition("_")[0], (node_type,))
    ]


def _items(provider: Any) -> Iterator[tuple[str, Any]]:
    for name in provider:
        yield name, provider[name]


def _changes_nothing(name: str) -> bool:
    kind, _, pair = name.partition("_")
    return kind == "ReplaceComparisonOperator" and tuple(pair.split("_")) in SAME


def mutated(source: str, mutant: Mutant) -> str | None:
    """The changed source, None where there is no such change."""
    from cosmic_ray.mutating import mutate_code

    operator = _operators().get(mutant.operator)
    found: str | None = mutate_code(source, operator, mutant.occurrence) if operator else None
    return found


def difference(source: str, mutant: Mutant) -> str:
    """The change as a unified diff."""
    changed = (mutated(source, mutant) or source).splitlines()
    lines = difflib.unified_diff(source.splitlines(), changed, mutant.file, "mutant", lineterm="", n=2)
    return "\n".join(lines)


def draw(root: Path, folders: list[str], count: int, seed: int) -> list[Mutant]:
    """So many mutants of the files in these folders; the first of them are what a smaller count draws."""
    paths = [path for folder in folders for path in sorted((root / folder).rglob("*.py"))]
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    paths = [path for path in paths if lines[path]]
    left: dict[Path, list[list[Mutant]]] = {}
    lot, found = random.Random(seed), list[Mutant]()
    while paths and len(found) < count:
        (path,) = lot.choices(paths, [lines[each] for each in paths])
        if path not in left:
            left[path] = positions(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        if not left[path]:
            paths.remove(path)
            continue
        changes = left[path].pop(lot.randrange(len(left[path])))
        lot.shuffle(changes)
        source = path.read_text(encoding="utf-8")
        found += next(([each] for each in changes if _says_something_else(source, each)), [])
    return found


def _says_something_else(source: str, mutant: Mutant) -> bool:
    """Whether the change is Python, and another program."""
    try:
        return ast.dump(ast.parse(mutated(source, mutant) or source)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def positions(file: str, source: str) -> list[list[Mutant]]:
    """For each position of a source that a change can be made at, the changes."""
    from cosmic_ray.ast import ast_nodes, get_ast

    found: dict[Span, list[Mutant]] = {}
    left_out = meaningless(source)
    counts = dict.fromkeys(_operators(), 0)
    for node in ast_nodes(get_ast(source)):
        if node.type in UNCHANGED or getattr(node, "value", "x") in PUNCTUATION:
            continue
        for name, operator in _operators_of(node.type):
            for start, end in operator.mutation_positions(node):
                if not any(first <= start and end <= last for first, last in left_out):
                    found.setdefault((start, end), []).append(Mutant(file, start[0], name, counts[name]))
                counts[name] += 1
    return [found[span] for span in sorted(found)]


# *** where a change would mean nothing


def meaningless(source: str) -> list[Span]:
    """What a type checker or a person reads: annotations, names of types, blocks of TYPE_CHECKING, what is
    raised, the messages of assertions, __repr__ and __str__, decorators of memos and of types.
    """
    lines = source.splitlines()
    found: list[ast.AST] = []
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += [node] if node.name in SHOWN else []
            found += [each for each in node.decorator_list if _name(each) in WITHOUT_MEANING]
            found += [node.returns] if node.returns else []
        elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
            found.append(node.annotation)
        elif isinstance(node, ast.Raise):
            found.append(node)
        elif isinstance(node, ast.Assert) and node.msg:
            found.append(node.msg)
        elif isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING":
            found += [node.test, *node.body]
        elif isinstance(node, ast.Call) and _name(node.func) in ("cast", "TypeVar", "NewType"):
            found.append(node)
    found += [each.value for each in tree.body if isinstance(each, ast.Assign) and _is_type(each)]
    return [_span(node, lines) for node in found]


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        return _name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_type(node: ast.Assign) -> bool:
    """`Name = A | B`, `Name = Callable[[int], str]`."""
    name = _name(node.targets[0])
    titled = name.lstrip("_")[:1].isupper() and not name.isupper()
    union = isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
    return titled and (union or isinstance(node.value, ast.Subscript))


def _span(node: Any, lines: list[str]) -> Span:
    """Columns as characters, which `ast` counts in bytes; a decorator with its @."""

    def column(line: int, offset: int) -> int:
        return len(lines[line - 1].encode()[:offset].decode())

    first, last = column(node.lineno, node.col_offset), column(node.end_lineno, node.end_col_offset)
    at = lines[node.lineno - 1][:first].rstrip().endswith("@")
    end = (node.end_lineno + 1, 0) if at else (node.end_lineno, last)  # parso's decorator has its newline
    return (node.lineno, 0 if at else first), end


# *** where a line is


def lines_of_statement(source: str, line: int) -> range:
    """Those of the statement that a line belongs to; of one with a body, those before it."""
    best = range(line, line + 1)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            body = getattr(node, "body", None)
            if body and line < body[0].lineno:
                best = range(node.lineno, body[0].lineno)
            elif not body:
                best = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return best


def runs_at_import(source: str, line: int) -> bool:
    """Whether the line is outside of all functions: a constant, a table, a head of a function or class."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return not any(
        node.body[0].lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, kinds)
    )
