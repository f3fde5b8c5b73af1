"""Locks, interrupts and the ends of objects: `lazygrad/locks.py`."""

from __future__ import annotations

import ast
import gc
from collections import deque

from lazygrad.locks import WeakKeys, left_to
from tests.helpers import ROOT


class Thing:
    ended: deque[Thing] = deque()
    __del__ = left_to(ended)


def test_an_object_is_left_to_the_queue_at_its_end_once():
    Thing().name = "first"
    circle = Thing()
    circle.name, circle.itself = "second", circle
    del circle
    gc.collect()
    assert [thing.name for thing in Thing.ended] == ["first", "second"]
    del Thing.ended[0].name
    Thing.ended[1].itself = None
    Thing.ended.clear()
    assert not Thing.ended


def test_weak_keys_forget_the_dead():
    class Key:
        pass

    known: WeakKeys[Key, int] = WeakKeys()
    kept, gone = Key(), Key()
    assert (known.put(kept, 1), known.put(kept, 2), known.put(gone, 3)) == (1, 1, 3)
    assert known.get(gone) == 3
    del gone
    known.set(kept, 5)
    assert known.get(kept) == 5
    known.set(kept, 1)
    other = Key()
    assert known.get(other) is None
    known.put(other, 4)
    assert (known.get(kept), known.get(other), len(known._values)) == (1, 4, 2)


def test_nothing_written_in_python_runs_at_an_objects_end():
    """Python drops a KeyboardInterrupt there. A callback of a weak reference is a method of C's."""
    found = []
    for path in sorted((ROOT / "lazygrad").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            ends = isinstance(node, ast.FunctionDef) and node.name == "__del__"
            name = getattr(node, "attr", getattr(node, "id", ""))
            if ends or name in (
                "WeakKeyDictionary",
                "WeakValueDictionary",
                "WeakSet",
                "WeakMethod",
                "finalize",
            ):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not found
