"""Names: cells of closures, globals, modules, the environment."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

from tests.fuzz.state.kinds import kind, state


@kind
def a_cell():
    value = 1.0

    def change(number):
        nonlocal value
        value = number

    return state(lambda: value, change)


@kind
def a_cell_that_changes_its_type():
    value: Any = 1

    def change(number):
        nonlocal value
        value = type(number) is float and int(number)

    def other(number):
        nonlocal value
        value = None if value is False else False

    return state(lambda: float(value or 0), change, other)


@kind
def a_closure_of_closures():
    value = 1.0

    def outer():
        def inner():
            return value

        return inner

    reads = outer()

    def change(number):
        nonlocal value
        value = number

    return state(lambda: reads() + outer()(), change)


GLOBAL = 1.0


@kind
def a_global():
    def change(number):
        global GLOBAL
        GLOBAL = number

    change(1.0)
    return state(lambda: GLOBAL, change)


@kind
def a_global_by_globals():
    state_of_global = a_global()
    return state(lambda: globals()["GLOBAL"], *state_of_global.changes)


@kind
def a_module_attribute():
    module = types.ModuleType("fuzzed_module")
    module.rate = 1.0
    sys.modules["fuzzed_module"] = module

    def read():
        import fuzzed_module

        return fuzzed_module.rate + module.rate

    return state(read, lambda n: setattr(module, "rate", n))


@kind
def a_module_attribute_by_import_from():
    module = types.ModuleType("fuzzed_module")
    module.rate = 1.0
    sys.modules["fuzzed_module"] = module

    def read():
        from fuzzed_module import rate

        return rate

    return state(read, lambda n: setattr(module, "rate", n))


@kind
def an_environment_variable():
    def change(number):
        os.environ["FUZZED_RATE"] = str(number)

    change(1.0)
    ways = [lambda: float(os.environ["FUZZED_RATE"]), lambda: float(os.getenv("FUZZED_RATE", "0"))]
    environ = os.environ
    ways += [lambda: float(environ.get("FUZZED_RATE", 2.0)), lambda: float(os.environ.copy()["FUZZED_RATE"])]
    return state(lambda: sum(way() for way in ways), change, lambda n: os.environ.pop("FUZZED_OTHER", None))
