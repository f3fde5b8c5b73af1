"""The size and the shape of the code: figures that may fall, and of which only lines may rise.

    python -m bench house             the table
    python -m bench house --check     compare with bench/house.json: exits with 1 where more than lines rose
    python -m bench house --write     keep today's figures in bench/house.json
    python -m bench house --list NAME what a figure counts, one place a line

What is counted, from the source alone (`ast`, nothing is imported) but for the visits:

*core* is ir, simplify, shape, schedule, codegen, the LLVM and PYTHON renderers with what all renderers
share, engine and programs. *all* has the other renderers, target, device and runtime too, and every folder
to which code of the core has moved (`EXTENSIONS`): a moved line is not a removed one.

    lines             all lines of files; `code` leaves out blank lines, comments and docstrings
    files, functions  of files those with code, for the docstring of a folder is no file to read; a function
                      is a `def`, methods included
    visits            files and functions of lazygrad that run from a call of a program to its first
                      result, in a fresh process without a disk cache, for the first processors of x86-64,
                      one thread. Comprehensions are no functions: not all have frames from Python 3.12 on
    flat files        the most files in one folder of schedule/ or codegen/
    op tests          comparisons of an op in schedule/ and codegen/: `x.op is`, `x.op in`, `x.op ==`, and
                      each `case` of a `match` of an op
    constants         of policies, in schedule/, codegen/ and engine/: every number but 0, 1, -1 and 2 that
                      stands in a comparison, or in arithmetic inside of one, and every upper-case name of
                      a module that is one number or a tuple of numbers
    memo layers       the bounded tables that hold what a structure had before (`MEMO_LAYERS`)
    key encoders      modules that turn a graph or a call into a key (`KEY_ENCODERS`)
    growth learners   modules that learn how sizes follow from one size (`GROWTH_LEARNERS`)
    cost units        modules that price in a unit of their own (`COST_UNITS`)
    questions         to the interpreter: gc.get_referrers, get_referents, get_objects, collect, disable,
                      and sys.getrefcount, sys.setprofile, in all of lazygrad
    words to go       names of files, functions, classes and fields with a word that docs/glossary.md says
                      is gone

The last figures are in bench/house.json, and .ci/run compares with them. Lines, and those with code, may rise
by what the message of the commit that writes the file again itemises. Nothing else may: who needs one more
test of an op takes one away. What has fallen is allowed, and said; --write keeps it, so that it stays down,
and raises nothing but lines.
No figure depends on the processor: where code for x86-64 cannot run, visits are left out of the table and of
what is compared. Nor on the release of Python, but for one or two functions that are visited (`SLACK`).
"""

from __future__ import annotations

import argparse
import ast
import functools
import gc
import json
import os
import platform
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "lazygrad"
FIGURES = ROOT / "bench" / "house.json"
GLOSSARY = ROOT / "docs" / "glossary.md"

#: Folders and files of the core. Of renderer/: what all renderers share, LLVM's and the interpreter's.
CORE = ["ir", "simplify", "shape", "schedule", "codegen", "engine", "programs"]
CORE += [f"renderer/{name}" for name in ("llvmir", "python", "__init__.py", "texts.py", "scratch.py")]
CORE += [f"renderer/{name}" for name in ("alignment.py", "fetches.py")]
CORE += [f"renderer/{name}" for name in ("matrices.py",)]
#: Where the rest lies; a folder to which code of the core moves is added here.
EXTENSIONS = ["direct", "gpu", "oracle", "sharding", "renderer", "target", "device", "runtime"]
#: Whose policies are counted.
DECIDING = ["schedule", "codegen", "engine"]

MEMO_LAYERS = {
    "recipes of methods, gradients, draws and steps": "lazygrad.shape.recipe",
    "recipes of growing sizes that were asked for last": "lazygrad.tensor.sized_recipes",
    "launches, of graphs and of calls": "lazygrad.engine.launch_cache",
    "growing sizes of all": "lazygrad.schedule.keys.growth",
    "plans": "lazygrad.schedule.kernelize",
    "captures": "lazygrad.jit.stored",
}
KEY_ENCODERS = {
    "graphs that are planned": "lazygrad.schedule.keys.structure",
    "graphs that are launched": "lazygrad.engine.launch_cache",
    "graphs that are differentiated": "lazygrad.gradient.again",
    "signatures of methods and of steps": "lazygrad.tensor.recipes",
    "captured functions": "lazygrad.jit.structure",
    "kernels": "lazygrad.codegen.graph_rows",
}
GROWTH_LEARNERS = {
    "sizes of graphs, methods, launches and captures": "lazygrad.schedule.keys.growth",
}
COST_UNITS = {
    "operations": "lazygrad.schedule.place.placement",
    "cycles": "lazygrad.codegen.cost.cost_model",
    "seconds of a grid": "lazygrad.gpu.grid_time",
}

PROGRAMS = {
    "x + 1": "(Tensor([1.0, 2.0, 3.0]) + 1).tolist()",
    "softmax": "Tensor([[1.0, 2.0, 3.0]]).softmax().tolist()",
    "matmul": "(Tensor([[1.0, 2.0], [3.0, 4.0]]) @ Tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()",
    "attention": "x = Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]); x.scaled_dot_product_attention(x, x).tolist()",
}
#: The interpreter is asked by these names of gc and sys.
QUESTIONS = {
    *("get_referrers", "get_referents", "get_objects", "collect", "disable"),
    *("getrefcount", "setprofile"),
}
#: Numbers that say nothing about a policy.
PLAIN_NUMBERS = (0, 1, -1, 2)

Place = tuple[str, int, str]  # file, line, what stands there


def files_of(parts: list[str]) -> list[Path]:
    """The Python files of folders and files of the package."""
    found = []
    for part in parts:
        path = PACKAGE / part
        found += [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))
    return list(dict.fromkeys(found))


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


def nodes(parts: list[str]) -> Iterator[tuple[Path, ast.AST]]:
    for path in files_of(parts):
        for node in nodes_of(path):
            yield path, node


def _place(path: Path, node: ast.AST, what: str) -> Place:
    return path.relative_to(ROOT).as_posix(), getattr(node, "lineno", 1), what


# *** what is counted


def lines_of_code(path: Path) -> int:
    """Lines that are not empty, and no comment or docstring alone."""
    inside, silent = set[int](), set[int]()  # lines of strings, whatever they look like, and of docstrings
    for node in nodes_of(path):
        if isinstance(node, ast.Expr) and _is_text(node.value):
            silent.update(_lines_of(node))
        elif isinstance(node, ast.JoinedStr) or _is_text(node):
            inside.update(_lines_of(node))
    lines = enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
    code = {number for number, line in lines if line.strip() and not line.lstrip().startswith("#")}
    return len((code | inside) - silent)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _lines_of(node: ast.expr | ast.Expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def functions(parts: list[str]) -> list[Place]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [_place(path, node, node.name) for path, node in nodes(parts) if isinstance(node, kinds)]


def op_tests() -> list[Place]:
    """Comparisons and matches of an op."""

    def of_op(node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == "op"

    def named(node: ast.AST) -> bool:  # Ops.ADD, or a set with one
        return any(isinstance(n, ast.Name) and n.id == "Ops" for n in ast.walk(node))

    found = []
    for path, node in nodes(["schedule", "codegen"]):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(of_op, sides)) or (any(map(named, sides)) and "op" in map(_last_name, sides)):
                found.append(_place(path, node, ast.unparse(node)))
        elif isinstance(node, ast.Match) and (of_op(node.subject) or _last_name(node.subject) == "op"):
            found += [_place(path, case.pattern, f"case {ast.unparse(case.pattern)}") for case in node.cases]
    return found


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def constants() -> list[Place]:
    """Numbers that decide."""
    found: dict[tuple[str, int, int], Place] = {}

    def numbers(node: ast.AST) -> Iterator[ast.Constant]:
        """The numbers of one side of a comparison: alone, or as factors, divisors, terms."""
        if (
            isinstance(node, ast.Constant)
            and type(node.value) in (int, float)
            and node.value not in PLAIN_NUMBERS
        ):
            yield node
        elif isinstance(node, ast.BinOp):
            yield from numbers(node.left)
            yield from numbers(node.right)
        elif isinstance(node, ast.UnaryOp):
            yield from numbers(node.operand)

    for path in files_of(DECIDING):
        module = tree_of(path)
        for statement in module.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
                if (
                    names
                    and all(name.lstrip("_").isupper() for name in names)
                    and _is_number(statement.value)
                ):
                    place = _place(path, statement, ast.unparse(statement))
                    found[place[0], statement.lineno, -1] = place
        for node in nodes_of(path):
            if isinstance(node, ast.Compare) and not all(
                isinstance(op, ast.Is | ast.IsNot) for op in node.ops
            ):
                for side in (node.left, *node.comparators):
                    for number in numbers(side):
                        place = _place(path, number, ast.unparse(node))
                        found[place[0], number.lineno, number.col_offset] = place
    return list(found.values())


def _is_number(node: ast.AST) -> bool:
    """Whether an expression is numbers alone: 4, 1 << 20, 3 * 128, (2, 4)."""
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(_is_number, node.elts))
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    return isinstance(node, ast.UnaryOp) and _is_number(node.operand)


def questions() -> list[Place]:
    return [
        _place(path, node, ast.unparse(node))
        for path, node in nodes(["."])
        if isinstance(node, ast.Attribute)
        and node.attr in QUESTIONS
        and isinstance(node.value, ast.Name)
        and node.value.id in ("gc", "sys")
    ]


def flat_files() -> Counter[str]:
    """Files in each folder of schedule/ and codegen/, without its __init__."""
    paths = [path for path in files_of(["schedule", "codegen"]) if path.name != "__init__.py"]
    return Counter(path.parent.relative_to(PACKAGE).as_posix() for path in paths)


def words_to_go() -> tuple[list[str], dict[str, list[str]]]:
    """Of the glossary: the words, and for some of them phrases in which they are the field's own."""
    text = GLOSSARY.read_text(encoding="utf-8")
    section = re.search(r"^## Words that are gone$(.*?)(?=^## |\Z)", text, re.M | re.S)
    if section is None:
        raise ValueError(f"{GLOSSARY} has no section `Words that are gone`")
    words, own = [], {}
    for word, instead in re.findall(r"^\| `([^|`]+)` \| ([^|]*) \|$", section[1], re.M):
        words.append(word)
        own[word] = re.findall(r"`([^`]+)`", instead)
    return words, own


def names_with(words: list[str], own: dict[str, list[str]]) -> list[Place]:
    """Names of files, functions, classes and fields that have one of these words between underscores."""
    patterns = {word: re.compile(rf"(?:^|_){re.escape(word)}(?:_|$)") for word in words}
    found = []
    for path in files_of(["."]):
        defined: list[tuple[ast.AST, str]] = [(tree_of(path), path.stem)]
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                defined.append((node, node.name))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                defined.append((node, node.target.id))
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                defined.append((node, node.attr))
        for node, name in defined:
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
            for word, pattern in patterns.items():
                if pattern.search(
                    functools.reduce(lambda text, use: text.replace(use, ""), own[word], snake)
                ):
                    found.append(_place(path, node, f"{name}: {word}"))
    return found


def present(listed: dict[str, str]) -> list[Place]:
    """Those of a list whose module is still there."""
    paths = {what: ROOT / module.replace(".", "/") for what, module in listed.items()}
    return [
        (listed[what], 1, what)
        for what, path in paths.items()
        if path.with_suffix(".py").exists() or (path / "__init__.py").exists()
    ]


VISITS = """
import inspect, os, sys
from lazygrad import Tensor
import lazygrad
package, seen = os.path.dirname(lazygrad.__file__) + os.sep, {{}}
def watch(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(package) and code.co_flags & inspect.CO_NEWLOCALS:
        seen[code] = None
sys.setprofile(watch)
{program}
sys.setprofile(None)
for code in seen:
    print(code.co_filename[len(package):].partition(":")[0], code.co_firstlineno, code.co_qualname, sep="\\t")
"""


#: Where code for the processor that visits are counted for can run.
X86 = ("x86_64", "amd64")


def visits(program: str) -> list[Place]:
    """The functions of lazygrad that run, in the thread that asks, until the program has its result, without
    bodies of modules and classes. Those that are made of rules are in the file of the rules.
    """
    given = ("PATH", "HOME", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")  # no flag of lazygrad
    flags = {"DEV": "CPU", "CPU_TARGET": "x86-64", "CACHELEVEL": "0", "THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", VISITS.format(program=PROGRAMS[program])],
        env={name: os.environ[name] for name in given if name in os.environ}
        | flags
        | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return [
        (f"lazygrad/{file}", int(line), name) for file, line, name in rows if not _COMPREHENSION.search(name)
    ]


_COMPREHENSION = re.compile(r"<(listcomp|setcomp|dictcomp|genexpr)>$")


# *** the table


def _lines(parts: list[str]) -> Callable[[], dict[str, int]]:
    def count() -> dict[str, int]:
        paths = files_of(parts)
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
        code = list(map(lines_of_code, paths))
        return {
            "lines": lines,
            "code": sum(code),
            "files": sum(number > 0 for number in code),
            "functions": len(functions(parts)),
        }

    return count


def figures() -> dict[str, int]:
    """All figures, in the order of the docstring."""
    found: dict[str, int] = {}
    for name, count in (("core", _lines(CORE)), ("all", _lines(CORE + EXTENSIONS))):
        found |= {f"{name}: {key}": value for key, value in count().items()}
    for program in PROGRAMS if platform.machine().lower() in X86 else ():
        places = visits(program)
        found[f"{program} visits: files"] = len({file for file, _, _ in places})
        found[f"{program} visits: functions"] = len(places)
    found["flat files in one folder"] = max(flat_files().values())
    for name, places_of in LISTS.items():
        found[name] = len(places_of())
    return found


LISTS: dict[str, Callable[[], list[Place]]] = {
    "op tests": op_tests,
    "constants": constants,
    "memo layers": lambda: present(MEMO_LAYERS),
    "key encoders": lambda: present(KEY_ENCODERS),
    "growth learners": lambda: present(GROWTH_LEARNERS),
    "cost units": lambda: present(COST_UNITS),
    "questions": questions,
    "words to go": lambda: names_with(*words_to_go()),
}


#: The ends of the names of figures that may rise.
MAY_RISE = (": lines", ": code")
#: So many functions more may be visited: releases of Python differ by one.
SLACK = 2


def risen(before: dict[str, int], now: dict[str, int]) -> list[str]:
    """The figures that may not rise and have; and what the file lacks."""
    wrong = []
    for name, value in now.items():
        slack = SLACK if name.endswith("visits: functions") else 0
        if value > before.get(name, value) + slack and not name.endswith(MAY_RISE):
            wrong.append(f"{name}: {value}, was {before[name]}")
    return wrong + [f"{name} is not in {FIGURES.name}: --write it" for name in now if name not in before]


def kept(before: dict[str, int], now: dict[str, int]) -> dict[str, int]:
    """What --write keeps: today's figures, but the last ones of those that may not rise and have."""
    return {
        name: value if name.endswith(MAY_RISE) else min(value, before.get(name, value))
        for name, value in now.items()
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "python -m bench house", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 where a figure has risen that may not"
    )
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {FIGURES.name}")
    parser.add_argument("--list", choices=[*LISTS, *PROGRAMS], help="what a figure counts")
    given = parser.parse_args(arguments)
    if given.list:
        places = LISTS[given.list]() if given.list in LISTS else visits(given.list)
        for file, line, what in sorted(places):
            print(f"{file}:{line}  {what}")
        print(len(places))
        return 0
    collects = gc.isenabled()
    gc.disable()  # which would walk through the million nodes of all files again and again
    try:
        now = figures()
    finally:
        if collects:
            gc.enable()
    before = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    for name, value in now.items():
        print(f"{name:28} {value:7,}  {value - before.get(name, value):+d}".removesuffix("  +0"))
    if given.write:
        FIGURES.write_text(json.dumps(kept(before, now), indent=1) + "\n", encoding="utf-8")
    if not given.check:
        return 0
    wrong = risen(before, now)
    for line in wrong:
        print(f"risen: {line}", file=sys.stderr)
    if fallen := [name for name, value in now.items() if value < before.get(name, value)]:
        print(f"fallen, and not kept yet (--write): {', '.join(fallen)}")
    if grown := [name for name in now if name.endswith(MAY_RISE) and now[name] > before.get(name, now[name])]:
        print(f"grown, for what a message is to say (--write): {', '.join(grown)}")
    return 1 if wrong else 0
