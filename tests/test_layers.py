"""Imports point one way: a module imports from its own layer and from those above it in docs/design.md.

The list there is for people and for this test. Imports inside functions would hide a cycle, so they are for
drivers and slow libraries only. Imports under `if TYPE_CHECKING:` never run, but whoever reads a file has to
know what its annotations name: they count as any others. Inside a folder its files and folders import each
other one way too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lazygrad.tensor import arguments
from tests.helpers import ROOT

# What may be imported inside a function: drivers, and libraries that may be missing or are slow to import,
DRIVERS = {"Foundation", "Metal", "cuda", "mpi4py", "nccl", "objc", "pyopencl", "wgpu"}
DRIVERS |= {"jinja2", "starlette", "tokenizers", "uvicorn"}
DRIVERS |= {
    "fractions",
    "jax",
    "llvmlite",
    "matplotlib",
    "numpy",
    "onnx",
    "platformdirs",
    "scipy",
    "sklearn",
    "torch",
    "tqdm",
    "IPython",
}
# and what of the standard library takes milliseconds to import, where only rare paths use it.
SLOW = {"argparse", "asyncio", "concurrent", "difflib", "getpass", "http", "importlib", "inspect"}
SLOW |= {"multiprocessing", "sqlite3", "subprocess", "tempfile", "urllib"}

CALLS = ("import_module", "__import__")  # import by a name that is computed
FINDS_BACKENDS = "device"  # the one layer that may import a module of the package by a computed name
FRONT_PAGE = "__init__"  # the layer of `import lazygrad` itself


class Import(NamedTuple):
    """One import, seen in the source of `module`."""

    module: str
    line: int
    target: str  # the full name of the module that is imported; "" where it is computed
    late: bool  # inside a function, or by a call of import_module


# ---- reading the list and the imports ----


def read_layers(design: str) -> list[str]:
    """The layers, lowest first: the first word of each line in the block under the heading "Layers"."""
    found = re.search(r"^#+ Layers$.*?^```\w*\n(.*?)^```$", design, re.MULTILINE | re.DOTALL)
    assert found, "docs/design.md has no heading `Layers` with a fenced list under it"
    return [line.split()[0] for line in found[1].splitlines() if line.strip()]


def module_name(path: Path, package: Path) -> str:
    names = [package.name, *path.relative_to(package).with_suffix("").parts]
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def imports_of(path: Path, package: Path, modules: set[str]) -> Iterator[Import]:
    """Every import in one file. `modules` says whether `b` in `from a import b` is a module or a name."""
    module = module_name(path, package)
    folder = module if path.name == "__init__.py" else module.rpartition(".")[0]

    text = path.read_text(encoding="utf-8")
    by_name = any(f"{name}(" in text for name in CALLS)  # else there is nothing to find in expressions
    # Nodes still to look at, and whether each stands inside a function.
    todo: list[tuple[ast.AST, bool]] = [(ast.parse(text, path.as_posix()), False)]
    while todo:
        node, late = todo.pop()
        if isinstance(node, ast.Import):
            yield from (Import(module, node.lineno, name.name, late) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                parents = folder.split(".")[: len(folder.split(".")) - node.level + 1]
                origin = ".".join([*parents, origin] if origin else parents)
            for name in node.names:
                inner = f"{origin}.{name.name}"
                yield Import(module, node.lineno, inner if inner in modules else origin, late)
        elif isinstance(node, ast.Call) and _callee(node) in CALLS:
            constant = node.args and isinstance(node.args[0], ast.Constant)
            yield Import(module, node.lineno, str(node.args[0].value) if constant else "", late=True)

        inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        children = ast.iter_child_nodes(node)
        todo += [(child, inside) for child in children if by_name or not isinstance(child, ast.expr)]


def _callee(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def project_imports(package: Path) -> list[Import]:
    paths = sorted([*package.rglob("*.py"), *package.rglob("*.pyi")])
    modules = {module_name(path, package) for path in paths}
    modules |= {
        module_name(path, package).rpartition(".")[0] for path in paths
    }  # a folder without __init__.py
    return [found for path in paths for found in imports_of(path, package, modules)]


# ---- judging them ----


def layer_of(module: str) -> str:
    """`lazygrad.codegen.opt.search` belongs to `codegen`; `lazygrad` itself is the front page."""
    return (module.split(".") + [FRONT_PAGE])[1]


def may_be_late(found: Import, layer: str) -> bool:
    """The front page may wait until a name is asked for; `device` finds a backend by its computed name."""
    return layer == FRONT_PAGE or (layer == FINDS_BACKENDS and not found.target)


def violations(imports: list[Import], layers: list[str], package: str) -> list[str]:
    rank = {layer: i for i, layer in enumerate(layers)}
    problems = []
    for found in imports:
        layer, where = layer_of(found.module), f"{found.module}, line {found.line}"
        target, top = found.target or "a computed name", found.target.split(".")[0]
        if layer not in rank:
            problems.append(
                f"{where}: {layer} is not in the list of layers; give it a place in docs/design.md"
            )
        elif found.late and top not in DRIVERS | SLOW and not may_be_late(found, layer):
            problems.append(
                f"{where}: imports {target} inside a function or by name: only for drivers, slow libraries"
            )
        elif top == package and layer_of(found.target) not in rank:
            problems.append(
                f"{where}: {layer_of(found.target)} is not in the list of layers; give it a place there"
            )
        elif top == package and rank[layer_of(found.target)] > rank[layer]:
            problems.append(
                f"{where}: {layer} must not import {found.target}, it stands later in the list of layers"
            )
    return problems


def cycle(imports: list[Import], package: str) -> list[str]:
    """Modules of which each imports the next and the last the first; empty where there are none."""
    targets: dict[str, set[str]] = {}
    for found in imports:
        if found.target.split(".")[0] == package:
            targets.setdefault(found.module, set()).add(found.target)
    # Take away modules that import no module still there; what stays leads into a cycle from everywhere.
    while done := {module for module, names in targets.items() if not names & targets.keys() - {module}}:
        targets = {module: names for module, names in targets.items() if module not in done}
    path = sorted(targets)[:1]
    while path and path[-1] not in path[:-1]:
        path.append(min(targets[path[-1]] & targets.keys() - {path[-1]}))
    return path[path.index(path[-1]) :] if path else []


def _within(module: str, place: str) -> bool:
    return f"{module}.".startswith(f"{place}.")


def between_entries(imports: list[Import], folder: str) -> list[Import]:
    """What the files and folders inside a folder, each as one, import of each other."""

    def entry(module: str) -> str:
        return ".".join([*module.split("."), "__init__"][: folder.count(".") + 2])

    inside = [found for found in imports if _within(found.module, folder) and _within(found.target, folder)]
    return [found._replace(module=entry(found.module), target=entry(found.target)) for found in inside]


def tangled(imports: list[Import], package: str) -> dict[str, list[str]]:
    """Folder → a circle of its files and folders, for those that have one."""
    folders = {found.module.rpartition(".")[0] for found in imports} - {"", package}
    circles = {folder: cycle(between_entries(imports, folder), package) for folder in sorted(folders)}
    return {folder: circle for folder, circle in circles.items() if circle}


# ---- the tests ----


@pytest.fixture(scope="session")
def imports() -> list[Import]:
    return project_imports(ROOT / "lazygrad")


@pytest.fixture(scope="session")
def layers() -> list[str]:
    return read_layers((ROOT / "docs" / "design.md").read_text(encoding="utf-8"))


def test_imports_point_one_way(imports, layers):
    problems = violations(imports, layers, "lazygrad")
    assert not problems, "\n".join(["", *problems])


def test_no_modules_import_each_other(imports):
    found = cycle(imports, "lazygrad")
    assert not found, " imports ".join(found)


def test_inside_a_folder_imports_point_one_way(imports):
    found = tangled(imports, "lazygrad")
    assert not found, found


def test_the_core_imports_no_extension(imports):
    core = {"ir", "simplify", "shape", "schedule", "codegen", "programs", "engine"}
    extensions = {"direct", "gpu", "oracle", "sharding", "tuning"}
    found = [
        x
        for x in imports
        if layer_of(x.module) in core
        and (layer_of(x.target) in extensions or x.target.startswith("lazygrad.renderer.cstyle"))
    ]
    assert not found, found


def test_folders_that_compute_are_known_where_errors_are_explained(layers):
    """What fails there is no fault of a method's arguments. In device/ it may be: it looks up names."""
    computing = set(layers[layers.index("renderer") : layers.index("nn")]) - {"device", "tensor"}
    assert computing == arguments.COMPUTING


# ---- tests of the checker, on small packages ----

LAYERS = ["low", "device", "middle", "high", "__init__", "__main__"]


def package(root: Path, files: dict[str, str]) -> list[Import]:
    """The imports of a package `lazygrad` with these files, given without their ending."""
    for name, source in files.items():
        path = root / "lazygrad" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return project_imports(root / "lazygrad")


def problems(root: Path, files: dict[str, str]) -> list[str]:
    return violations(package(root, files), LAYERS, "lazygrad")


def test_the_list_is_read_from_the_first_block_under_its_heading():
    design = (
        "# x\n```\nno\n```\n## Layers\n\nWords.\n\n```text\nlow   the lowest\nhigh\n```\n\n```\nno\n```\n"
    )
    assert read_layers(design) == ["low", "high"]
    with pytest.raises(AssertionError, match="no heading `Layers`"):
        read_layers("# something else")


@pytest.mark.parametrize(
    "source",
    [
        "import lazygrad.low",
        "from lazygrad.low import x",
        "from lazygrad import low, device",
        "from . import low",
        "from .low import x",
        "import os, numpy",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy\n    from .low import Low",
        "def f():\n    import numpy, cuda.bindings.driver\n    from llvmlite import binding",
        "def f():\n    import sqlite3",
        "def f():\n    return importlib.import_module('pyopencl')",
    ],
)
def test_legal_imports(tmp_path, source):
    assert problems(tmp_path, {"low": "", "device": "", "middle": source, "high": ""}) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import lazygrad.high", "line 1: middle must not import lazygrad.high"),
        ("from lazygrad.high import x", "middle must not import lazygrad.high"),
        ("from lazygrad import low, high", "middle must not import lazygrad.high"),
        ("from . import high", "middle must not import lazygrad.high"),
        ("from .high import x", "middle must not import lazygrad.high"),
        ("from lazygrad import Tensor", "middle must not import lazygrad,"),
        ("import lazygrad", "middle must not import lazygrad,"),
        ("if True:\n    from .high import x", "line 2: middle must not import lazygrad.high"),
        ("class A:\n    from .high import x", "line 2: middle must not import lazygrad.high"),
        ("if TYPE_CHECKING:\n    from .high import High", "line 2: middle must not import lazygrad.high"),
        ("if typing.TYPE_CHECKING:\n    import lazygrad.high", "middle must not import lazygrad.high"),
        (
            "if TYPE_CHECKING:\n    pass\nelse:\n    import lazygrad.high",
            "line 4: middle must not import lazygrad.high",
        ),
        ("def f():\n    from .low import x", "line 2: imports lazygrad.low inside a function"),
        (
            "class A:\n    async def f(self):\n        import lazygrad.low",
            "line 3: imports lazygrad.low inside",
        ),
        ("def f():\n    import json", "imports json inside a function or by name: only for drivers"),
        ("def f(n):\n    return importlib.import_module(n)", "imports a computed name inside a function"),
        ("import_module('lazygrad.high')", "imports lazygrad.high inside a function"),
        ("__import__('lazygrad.high')", "imports lazygrad.high inside a function"),
        ("from lazygrad import extra", "extra is not in the list of layers"),
    ],
)
def test_forbidden_imports(tmp_path, source, message):
    found = problems(tmp_path, {"low": "", "middle": source, "high": "", "extra": ""})
    assert len(found) == 1
    assert message in found[0]


def test_relative_imports_in_folders(tmp_path):
    inner = {"low": "", "middle/inner/a": "from ...low import x\nfrom ..b import y", "middle/b": ""}
    assert problems(tmp_path, inner) == []
    assert problems(tmp_path, {"middle/__init__": "from . import b\nfrom .inner.a import z"}) == []
    [found] = problems(tmp_path, {"middle/inner/a": "from ... import high", "high": ""})
    assert found.startswith("lazygrad.middle.inner.a, line 1: middle must not import lazygrad.high")


def test_device_finds_backends_by_name(tmp_path):
    assert problems(tmp_path, {"device": "def find(name):\n    return importlib.import_module(name)"}) == []
    assert len(problems(tmp_path, {"low": "", "device": "def find(name):\n    from .low import x"})) == 1


def test_the_front_page_imports_everything_but_the_command(tmp_path):
    below = {"low": "", "high": "", "__main__": "from lazygrad import Tensor"}
    lazy = "from lazygrad.high import x\ndef __getattr__(name):\n    from lazygrad import low"
    assert problems(tmp_path, {**below, "__init__": lazy}) == []
    assert len(problems(tmp_path, {**below, "__init__": "from lazygrad import __main__"})) == 1


def test_a_module_without_a_layer_is_reported(tmp_path):
    [found] = problems(tmp_path, {"drawer": "import os"})
    assert "drawer is not in the list of layers" in found


def test_cycles_are_found(tmp_path):
    ring = {"low/a": "from .b import x", "low/b": "from .c import x", "low/c": "import lazygrad.low.a"}
    chain = ["lazygrad.low.a", "lazygrad.low.b", "lazygrad.low.c", "lazygrad.low.a"]
    assert cycle(package(tmp_path, ring), "lazygrad") == chain
    assert cycle(package(tmp_path, {"low/c": "import os"}), "lazygrad") == []


def test_annotations_close_a_cycle(tmp_path):
    ring = {"low/a": "from .b import x", "low/b": "if TYPE_CHECKING:\n    from .a import y"}
    found = package(tmp_path, ring)
    assert cycle(found, "lazygrad") == ["lazygrad.low.a", "lazygrad.low.b", "lazygrad.low.a"]


def test_folders_inside_a_folder_import_one_way(tmp_path):
    one_way = {
        "low/a/x": "from ..b import y",
        "low/b": "from ..high.c import z\nfrom . import v",
        "high/c": "",
    }
    found = package(tmp_path, one_way | {"low/__init__": "import os"})
    assert tangled(found, "lazygrad") == {}
    both_ways = one_way | {"low/b": "from .a.z import y", "low/a/z": "import os"}
    found = package(tmp_path, both_ways)
    assert cycle(found, "lazygrad") == []
    assert tangled(found, "lazygrad") == {
        "lazygrad.low": ["lazygrad.low.a", "lazygrad.low.b", "lazygrad.low.a"]
    }
