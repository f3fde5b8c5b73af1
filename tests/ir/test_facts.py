"""What nodes remember is declared in lazygrad/ir/facts.py: each key, its owner, and who else writes it.

mypy checks the types, and the keys of subscripts, but lets `in` and `get` ask for any. Here all keys are
checked, that no declaration is left over, and who writes what.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from lazygrad.ir.facts import NodeFacts
from tests.helpers import ROOT

PACKAGE = ROOT / "lazygrad"


class Declaration(NamedTuple):
    """What stands in facts.py under a key."""

    owner: str
    others: set[str]


class Use(NamedTuple):
    """A place where a fact is read or written. The key is None where the source does not say it."""

    key: str | None
    writes: bool
    line: int


# ---- reading the declarations ----


def declarations(source: str) -> dict[str, Declaration]:
    """Of each key what the text under it says: `OWNER (OTHER, ...): MEANING.`"""
    [body] = [node.body for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    found: dict[str, Declaration] = {}
    for key, text in zip(body, [*body[1:], None], strict=True):
        if isinstance(key, ast.AnnAssign):
            name = ast.unparse(key.target)
            words = " ".join(ast.literal_eval(text.value).split()) if isinstance(text, ast.Expr) else ""
            match = re.fullmatch(r"([\w/]+)(?: \(([\w/, ]+)\))?: .+\.", words)
            assert match, f"{name} needs a text under it: OWNER (OTHER, ...): MEANING."
            assert name not in found, f"{name} is declared twice"
            found[name] = Declaration(match[1], set(match[2].split(", ")) if match[2] else set())
    return found


# ---- reading the uses ----


def uses(source: str) -> Iterator[Use]:
    """Every use of `x.facts` as a dict, and of a local name that was given it; every call of `noted`."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not _is_told_the_key(node)]
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "noted":
            yield _keyed(node.args[1], True)
        if isinstance(node, ast.Attribute) and node.attr == "facts":
            yield from _uses_of(node, parents)
            above = parents[node]
            if isinstance(above, ast.Assign) and above.value is node:
                names = {ast.unparse(target) for target in above.targets}
                for other in ast.walk(_function_around(node, parents)):
                    if isinstance(other, ast.Name) and other.id in names:
                        yield from _uses_of(other, parents)


def _is_told_the_key(node: ast.stmt) -> bool:
    """Whether a function works on any fact, as `noted` does: who calls it says which."""
    return isinstance(node, ast.FunctionDef) and "key" in [arg.arg for arg in node.args.args]


def _function_around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST:
    while node in parents and not isinstance(node, ast.FunctionDef):
        node = parents[node]
    return node


def _uses_of(facts: ast.expr, parents: dict[ast.AST, ast.AST]) -> Iterator[Use]:
    above = parents[facts]
    if isinstance(above, ast.Subscript) and above.value is facts:
        yield _keyed(above.slice, not isinstance(above.ctx, ast.Load))
    elif isinstance(above, ast.Compare) and isinstance(above.ops[0], ast.In | ast.NotIn):
        yield _keyed(above.left, False)
    elif isinstance(above, ast.Attribute) and hasattr(dict, above.attr):
        call = parents[above]
        if not isinstance(call, ast.Call) or above.attr not in ("get", "pop", "setdefault"):
            yield Use(None, True, facts.lineno)
            return
        if above.attr != "get":
            yield _keyed(call.args[0], True)
        if not isinstance(parents[call], ast.Expr):  # what it returns is wanted
            yield _keyed(call.args[0], False)
    elif isinstance(above, ast.Assign) and facts in above.targets:
        made = [node for node in ast.walk(above.value) if isinstance(node, ast.Dict)]
        yield from [_keyed(key, True) for node in made for key in node.keys]


def _keyed(key: ast.expr, writes: bool) -> Use:
    return Use(key.value if isinstance(key, ast.Constant) else None, writes, key.lineno)


# ---- the tests ----


@pytest.fixture(scope="session")
def declared() -> dict[str, Declaration]:
    return declarations((PACKAGE / "ir" / "facts.py").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def used() -> list[tuple[str, Use]]:
    """Every use in the package, with the module that it stands in."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if ".facts" in source:
            module = path.relative_to(PACKAGE).with_suffix("").as_posix()
            found += [(module, use) for use in uses(source)]
    return found


def test_every_key_is_said_and_declared(declared, used):
    assert set(declared) == set(NodeFacts.__annotations__)
    unknown = [f"{name}, line {use.line}: {use.key}" for name, use in used if use.key not in declared]
    assert not unknown, "\n".join(["declare these in lazygrad/ir/facts.py, or say which key:", *unknown])


def test_every_declared_key_is_read(declared, used):
    assert set(declared) == {use.key for _, use in used if not use.writes}


def test_owners_write_their_keys_and_who_else_does_is_named(declared, used):
    writers: dict[str | None, set[str]] = {}
    for name, use in used:
        if use.writes:
            writers.setdefault(use.key, set()).add(name)
    assert {key: {owner, *others} for key, (owner, others) in declared.items()} == writers


# ---- tests of the checker ----


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("node.facts['a']", {("a", False)}),
        ("f(s.src[0].facts.get('a', 1))", {("a", False)}),
        ("'a' not in node.facts", {("a", False)}),
        ("node.facts['a'] = 1", {("a", True)}),
        ("del node.facts['a']", {("a", True)}),
        ("node.facts.pop('a')", {("a", True)}),
        ("x = node.facts.pop('a')", {("a", True), ("a", False)}),
        ("node.facts.setdefault('a', 1)", {("a", True)}),
        ("node.facts.setdefault('a', []).append(1)", {("a", True), ("a", False)}),
        ("node.facts = {} if x else {'a': x}", {("a", True)}),
        ("noted(node, 'a', work)", {("a", True)}),
        ("noted(node, name, work)", {(None, True)}),
        ("node.facts[name]", {(None, False)}),
        ("node.facts.update(x)", {(None, True)}),
        ("def f(node):\n    known = node.facts\n    return known['a']", {("a", False)}),
        ("plan.facts.sums", set()),
        ("known['a']", set()),
        ("def f(n):\n    x = n.facts\ndef g():\n    x['a']", set()),
    ],
)
def test_uses_are_found(source, expected):
    assert {(key, writes) for key, writes, _ in uses(source)} == expected


def test_a_declaration_is_read():
    source = 'class N(TypedDict):\n    """All."""\n    a: int\n    """ir/x (b, c/d): one\n    thing."""\n'
    assert declarations(source) == {"a": Declaration("ir/x", {"b", "c/d"})}
    with pytest.raises(AssertionError, match="b needs a text under it"):
        declarations(source + "    b: int\n")
