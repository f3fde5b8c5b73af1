"""A first `x + 1` stays on the path that docs/tour.md follows, and meets nothing that is not for it.

Visited is what runs from the call to the first result, on a processor, with one thread and without caches
(`python -m bench house --list "x + 1"`). A pass with nothing to do must not be entered: the lists of passes
say when (`when` in schedule/plan.py; `asks` and `targets` in codegen/passes.py).
"""

from __future__ import annotations

import functools
import platform
import re

import pytest

from bench.house import PACKAGE, X86, visits
from tests.helpers import ROOT

pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in X86, reason="the path is that of code for x86-64"
)

#: The stages that the tour lists file by file.
STAGES = ("ir", "simplify", "shape", "schedule", "codegen", "renderer", "engine", "programs")
#: What the core never imports, and the languages of other devices.
EXTENSIONS = ("direct", "gpu", "oracle", "sharding", "tuning", "renderer/cstyle", "renderer/python")
#: Modules for ranks, growing sizes, memory budgets, other cores and GPUs.
OTHERS = (
    "codegen/aligned_chunks.py",
    "codegen/linearizing/prefetch.py",
    "codegen/linearizing/tile_prefetch.py",
    "codegen/lowering/disjoint_stores.py",
    "codegen/nests.py",
    "codegen/opt/grids.py",
    "device/mesh.py",
    "device/world.py",
    "engine/collectives.py",
    "engine/growing.py",
    "engine/growing_lists.py",
    "schedule/budget",
    "schedule/horizontal_fusion",
    "schedule/kernels/order.py",
    "schedule/kernels/overlap.py",
    "schedule/keys/growth.py",
    "schedule/keys/lifted_sizes.py",
    "tensor/sized_recipes.py",
)


@functools.cache
def visited(program: str) -> frozenset[str]:
    """The files that run, by their paths in the package; tables of rules belong to the file that has them."""
    files = {file.partition(":")[0] for file, _, _ in visits(program)}
    return frozenset(file.removeprefix("lazygrad/") for file in files)


def within(file: str, places: tuple[str, ...]) -> bool:
    return any(file == place or file.startswith(f"{place}/") for place in places)


def path_of_the_tour() -> list[str]:
    """The files that docs/tour.md lists: a folder and names, a line each."""
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    found = re.search(r"^## The files of the path$.*?^```text\n(.*?)^```$", text, re.M | re.S)
    assert found, "docs/tour.md has no heading `The files of the path` with a list under it"
    return [f"{line.split()[0]}/{name}.py" for line in found[1].splitlines() for name in line.split()[1:]]


def test_the_list_names_each_file_once_and_all_are_there() -> None:
    path = path_of_the_tour()
    assert len(set(path)) == len(path)
    assert [file for file in path if not (PACKAGE / file).is_file()] == []


def test_a_first_addition_visits_the_files_of_the_tour() -> None:
    stages = {file for file in visited("x + 1") if within(file, STAGES)}
    assert stages == set(path_of_the_tour())


def test_a_first_addition_meets_no_extension_and_nothing_for_several_devices_or_sizes() -> None:
    assert [file for file in sorted(visited("x + 1")) if within(file, EXTENSIONS + OTHERS)] == []
    assert [place for place in (*EXTENSIONS, *OTHERS) if not (PACKAGE / place).exists()] == []


@pytest.mark.parametrize("program", ["softmax", "matmul"])
def test_reductions_meet_only_who_proposes_kernels_in_one_pass(program: str) -> None:
    met = {file for file in visited(program) if within(file, EXTENSIONS + OTHERS)}
    assert {file for file in met if not within(file, ("direct/one_pass",))} == set()
