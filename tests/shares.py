"""Which tests a run plays.

Quick ones run by default; of rows that are many of a kind a share does, and the others are slow. Of slow ones
a run with `-m slow` plays one in so many of each kind. All of it is drawn by lot: a digest of a test's id and
of FUZZ_SEED, which `.ci/run` takes from the commit, so that others are drawn each time, and in
time all. EXHAUSTIVE=1 plays every slow one. `--share I/N` plays the I-th of N parts of what is left;
FUZZ_SEED has no say in which tests a part has.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest

# ---- what runs by default ----


def _listed() -> dict[str, int]:
    """file::function → of how many of its rows one runs by default; 0: none, they are slow.

    The list is of what `pytest --durations=0` tells on a Zen 3 with nothing else to do. Slow is what takes
    more than a second. Of tables that take more than two a share is drawn: their rows take the same path with
    other values. A row that is always to run is a test of its own.
    """
    lines = Path(__file__).with_name("slow_tests.txt").read_text(encoding="utf-8").splitlines()
    found = [line.partition(" 1/") for line in lines]
    return {name: int(number or 0) for name, _, number in found}


LISTED = _listed()

#: The suites that run on other devices too, one in so many of their tests by default (`default_device`).
ON_OTHERS = ("tests/nn/test_layers.py", "tests/tensor/test_indexing.py", "tests/tensor/test_methods.py")
ON_OTHERS += ("tests/tensor/test_random.py", "tests/tensor/test_sorting.py", "tests/tensor/test_torch.py")
SHARES_ON = {"CL": 48, "CUDA": 96, "METAL": 192, "WEBGPU": 48, "AARCH64": 48}
#: And of the tests of lazygrad/codegen on devices where a kernel takes a process of a compiler or a linker.
SHARES_OF_CODEGEN = {"CLANG": 6, "AARCH64": 2}

# ---- slow tests, of which a run plays one in so many ----

#: Files and tests with hundreds of slow rows of a kind.
MANY_SLOW = (
    "tests/codegen/test_contraction.py::test_many",
    "tests/codegen/test_random.py::test_many",
    "tests/codegen/test_random_opts.py::test_many",
    "tests/codegen/test_tensor_core.py::test_many",
    "tests/codegen/test_transcendental.py::test_every_float32",
    "tests/commands/test_every_kind.py",
    "tests/linalg/test_calls_beside_torch.py",
    "tests/nn/test_every_module.py",
    "tests/renderer/test_exact.py",
    "tests/simplify/test_algebra.py",
    "tests/tensor/test_second_order.py",
    "tests/torch/test_op_info.py",
)
EVERY_DEVICE = "tests/device/test_every_device.py"

#: One in so many of a kind of slow tests, besides `--share`. METAL takes a process of a compiler for each
#: kernel, and threads for its threads.
ALL, ROWS, DEVICES, METAL = 1, 2, 4, 12


def lot(*parts: object) -> int:
    """A number that looks drawn at random, the same in every process."""
    digest = hashlib.blake2b(" ".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def one_in(item: pytest.Item, seed: str) -> int:
    """Of how many tests like this one a run plays one, if it is slow; 0 for a quick one."""
    given = getattr(item, "callspec", None)
    params = given.params if given else {}
    name, device = item.nodeid.split("[")[0], params.get("default_device")
    in_processes = [SHARES_OF_CODEGEN.get(str(each), 1) for each in params.values()]
    marked = item.get_closest_marker("slow") is not None
    default = SHARES_ON.get(device) or LISTED.get(name) or 1
    if "/codegen/" in item.nodeid:
        default *= max(in_processes, default=1)
    many = bool(given) and marked and item.nodeid.startswith(MANY_SLOW)
    if many or lot(item.nodeid, seed) % default:
        if given and (device in SHARES_ON or item.nodeid.startswith(EVERY_DEVICE)):
            return METAL if device == "METAL" else DEVICES
        return ROWS
    return ALL if marked or is_listed(item) else 0


def left_out(items: list[pytest.Item], share: str | None, played: str | None) -> list[pytest.Item]:
    """The tests that the lots leave out; those that are slow are marked so.

    share   I/N: the I-th of N parts is left in
    played  a file with the ids of tests that are left out
    """
    seed, exhaustive = os.environ.get("FUZZ_SEED", "0"), os.environ.get("EXHAUSTIVE", "0") != "0"
    part, parts = _part(share or "0/1")
    before = set(Path(played).read_text(encoding="utf-8").splitlines()) if played else set[str]()
    found = []
    for item in items:
        number = one_in(item, seed)
        if number:
            item.add_marker(pytest.mark.slow)
        drawn = exhaustive or not number or lot("slow", item.nodeid, seed) % number == 0
        if not drawn or lot("share", item.nodeid) % parts != part or item.nodeid in before:
            found.append(item)
    return found


def _part(share: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)/(\d+)", share)
    if found is None or int(found[1]) >= int(found[2]):
        raise pytest.UsageError(f"--share {share} is not I/N, a part I of N that is below N: --share 0/10")
    return int(found[1]), int(found[2])


def is_listed(item: pytest.Item) -> bool:
    """Whether a test is in the list of slow ones."""
    return LISTED.get(item.nodeid.split("[")[0]) == 0
