"""Functions: defaults, partials, caches, closures of classes, copies."""

from __future__ import annotations

import copy
import functools
import operator

from tests.fuzz.state.kinds import Config, kind, state


@kind
def default_arguments():
    held = [1.0]

    def inner(x=held, *, more={"a": 1.0}):  # noqa: B006
        return x[0] + more["a"]

    return state(
        lambda: inner(),
        lambda n: held.__setitem__(0, n),
        lambda n: inner.__kwdefaults__["more"].__setitem__("a", n),
    )


@kind
def a_partial():
    held = [1.0]
    made = functools.partial(lambda a, b, c: a[0] + b + c, held, b=1.0)
    scaled = functools.partial(operator.mul, 2.0)

    def change(number):
        nonlocal scaled
        scaled = functools.partial(operator.mul, number)

    return state(
        lambda: made(c=1.0) + scaled(3.0),
        change,
        lambda n: held.__setitem__(0, n),
        lambda n: made.keywords.__setitem__("b", n),
    )


@kind
def a_cached_function():
    value = 1.0

    @functools.lru_cache
    def cached(name):
        return value + len(name)

    def change(number):
        nonlocal value
        value = number
        cached.cache_clear()

    return state(lambda: cached("a"), change)


@kind
def an_attribute_of_a_function():
    def inner():
        return inner.rate

    inner.rate = 1.0
    return state(lambda: inner() + inner.rate, lambda n: setattr(inner, "rate", n))


@kind
def a_method_of_a_class_with_a_closure():
    value = 1.0

    class Local:
        def __call__(self):
            return value

        def __getitem__(self, key):
            return value * key

    held = [Local()]

    def change(number):
        nonlocal value
        value = number

    return state(lambda: held[0]() + held[0][2], change)


@kind
def a_function_that_is_replaced():
    table = {"f": lambda: 1.0}
    config = Config()

    def change(number):
        table["f"] = lambda: number

    return state(
        lambda: table["f"]() + config.method(), change, lambda n: setattr(config, "method", lambda: n)
    )


@kind
def a_generator_function():
    held = [1.0, 2.0]

    def each():
        for value in held:
            yield value * 2

    return state(lambda: sum(each()) + max(v for v in each()), held.append, lambda n: held.__setitem__(0, n))


@kind
def copies():
    held = Config()

    def read():
        shallow, deep = copy.copy(held), copy.deepcopy(held.inner)
        return shallow.scale + deep.depth

    return state(read, lambda n: setattr(held, "scale", n), lambda n: setattr(held.inner, "depth", n))
