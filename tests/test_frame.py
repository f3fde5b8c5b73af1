"""The tests' own machinery: missing drivers skip or fail, golden texts compare, state comes back."""

from __future__ import annotations

import ast
import importlib
import itertools
import os
import re
import socket
import sys
import zlib

import pytest

from tests import helpers
from tests.helpers import GOLDEN, ROOT, Driver, Golden, golden_stem, needs, require
from tests.shares import LISTED

# ---- drivers ----


@pytest.fixture
def a_missing_driver(monkeypatch):
    """`ghost`: a driver that no machine has, and that nothing requires."""
    monkeypatch.setitem(helpers.DRIVERS, "ghost", Driver(lambda: None, "pip install ghost"))
    monkeypatch.setenv("LAZYGRAD_REQUIRE", "")


def test_a_missing_driver_skips_and_says_how_to_install_it(a_missing_driver):
    with pytest.raises(pytest.skip.Exception, match="ghost is missing: pip install ghost"):
        require("ghost")


def test_a_missing_driver_that_is_required_fails(a_missing_driver, monkeypatch):
    monkeypatch.setenv("LAZYGRAD_REQUIRE", "clang,ghost")
    with pytest.raises(pytest.fail.Exception, match=r"pip install ghost \(LAZYGRAD_REQUIRE names it\)"):
        require("ghost")


def test_a_driver_that_is_there_is_returned(monkeypatch):
    monkeypatch.setitem(helpers.DRIVERS, "os", Driver(lambda: os, ""))
    assert require("os") is os


def test_unknown_drivers_are_refused(monkeypatch):
    with pytest.raises(AssertionError, match="troch is not a driver"):
        needs("troch")
    monkeypatch.setenv("LAZYGRAD_REQUIRE", "clang,troch")
    with pytest.raises(pytest.UsageError, match="troch"):
        helpers.required_drivers()


@needs("clang")
def test_the_mark_lets_a_test_run_where_the_driver_is():
    assert os.access(require("clang"), os.X_OK)


def test_what_may_be_missing_is_asked_for_in_one_way():
    """By `needs` or `require`, which LAZYGRAD_REQUIRE makes failures; terminals are a part of the system."""
    files = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    assert {name for text in files for name in re.findall(r'importorskip\("([\w.]+)"', text)} == {"pty"}


#: What `pip install -e ".[test]"` brings, by the names that are imported, as far as files do at their tops.
INSTALLED = {"pytest", "numpy", "hypothesis", "scipy", "ml_dtypes", "safetensors"} | sys.stdlib_module_names


def test_files_import_at_their_top_what_every_environment_has():
    """A package that an oracle or an extra brings is asked for where it is used: else a whole file fails."""
    wrong = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            packages = {name.partition(".")[0] for name in names if name}
            wrong += [
                f"{path.name}: {name}" for name in packages - INSTALLED - {"lazygrad", "tests", "bench"}
            ]
    assert wrong == []


# ---- golden texts ----


def test_golden_compares_with_its_file(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    assert Golden(tmp_path / "a", update=False)("one\ntwo")
    with pytest.raises(AssertionError, match=r"(?s)--update-golden.*-two\n\+three"):
        Golden(tmp_path / "a", update=False)("one\nthree")


def test_golden_without_a_file_shows_the_text(tmp_path):
    with pytest.raises(AssertionError, match=r"(?s)a.txt does not exist.*some text"):
        Golden(tmp_path / "a", update=False)("some text")


def test_golden_updates_its_files(tmp_path):
    golden = Golden(tmp_path / "folder" / "a.b", update=True)
    assert golden("whole")
    assert golden("a part\n\n", "source")
    assert (tmp_path / "folder" / "a.b.txt").read_bytes() == b"whole\n"
    assert (tmp_path / "folder" / "a.b.source.txt").read_bytes() == b"a part\n"
    assert Golden(tmp_path / "folder" / "a.b", update=False)("whole")


def test_a_part_is_compared_once(tmp_path):
    golden = Golden(tmp_path / "a", update=True)
    assert golden("x")
    with pytest.raises(AssertionError, match="already"):
        golden("y")


def test_golden_files_are_named_after_their_test():
    test_file = ROOT / "tests" / "ir" / "test_text.py"
    assert golden_stem(test_file, "test_add[CPU-4 4]") == GOLDEN / "ir" / "test_text" / "test_add-CPU-4-4"


def test_the_fixture_knows_its_test(golden):
    assert golden.stem == GOLDEN / "test_frame" / "test_the_fixture_knows_its_test"


def test_every_golden_file_has_its_test():
    for path in GOLDEN.rglob("*.txt"):
        module = (ROOT / "tests" / path.parent.relative_to(GOLDEN)).with_suffix(".py")
        name = next(word for word in re.split(r"[^\w]", path.stem) if word.startswith("test_"))
        assert module.exists(), f"{path} belongs to no test module"
        assert f"def {name}(" in module.read_text(encoding="utf-8"), f"{path} belongs to no test; delete it"


# ---- state ----


def test_tests_are_offline():
    with socket.socket() as other, pytest.raises(OSError, match="tests are offline"):
        other.connect(("192.0.2.1", 80))  # an address that is kept for documentation


def test_tests_have_a_disk_cache_of_their_own():
    assert "lazygrad-tests-" in os.environ["CACHEDB"]


def test_flags_are_restored(request):
    from lazygrad import config
    from tests.conftest import same_state_after

    around = same_state_after.__wrapped__(request)
    next(around)
    before = config.DEBUG.value
    config.Context(DEBUG=before + 1).__enter__()
    config.NOOPT.set_default(1 - config.NOOPT.value)
    noopt = config.NOOPT.value
    assert next(around, "end") == "end"
    assert (config.DEBUG.value, config.NOOPT.value) == (before, 1 - noopt)


def test_devices_of_tests_are_forgotten():
    from lazygrad.device import Device
    from tests.conftest import forget_devices_of_tests

    Device.register("visitor", lambda name: type(Device["NPY"])(name))
    assert Device["visitor:2"].name == "VISITOR:2"
    forget_devices_of_tests(Device)
    assert "VISITOR" not in Device.known()
    assert "VISITOR:2" not in Device.opened()


def test_random_numbers_are_the_same_in_every_run(request):
    rng = importlib.import_module("lazygrad.tensor.random.sampling")
    assert rng.get_state() == (zlib.crc32(request.node.nodeid.encode()), 0)


#: What earlier tests change when what they left is collected.
COUNTED = re.compile(r"\b(mem_used|mem_peak|live_nodes|lazygrad\.memory|uop\.nodes)\b")


def test_tests_that_count_memory_are_undisturbed():
    """Garbage of other tests that is collected meanwhile would be counted too."""
    missing = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body if COUNTED.search(text) else ():
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                decorators = " ".join(ast.unparse(each) for each in node.decorator_list)
                if COUNTED.search(ast.unparse(node)) and "undisturbed" not in decorators:
                    missing.append(f"{path.name}: {node.name}")
    assert missing == []


# ---- which tests are slow ----


def test_the_list_of_slow_tests_names_tests_that_exist():
    for file, listed in itertools.groupby(sorted(LISTED), lambda line: line.partition("::")[0]):
        body = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
        found = {f"{file}::{node.name}" for node in body if hasattr(node, "name")}
        missing = set(listed) - found
        assert not missing, f"tests/slow_tests.txt names {sorted(missing)}, which are not there"
