"""Tensors, alone and in containers, and what is said of them."""

from __future__ import annotations

import collections
import weakref
from typing import Any

from lazygrad import Tensor
from tests.fuzz.state.kinds import Config, kind, state


def small(number: float) -> Tensor:
    return Tensor([number, 2.0]).realize()


@kind
def a_tensor():
    held = small(1.0)

    def replace(number):
        nonlocal held
        held = small(number)

    return state(
        lambda: held.sum(),
        replace,
        lambda n: held.assign(small(n)),
        lambda n: held.replace(small(n)),
        lambda n: held.__setitem__(0, n),
        lambda n: held.assign(small(n)).realize(),
    )


@kind
def tensors_in_containers():
    held: Any = {"a": [small(1.0)], "b": collections.deque([small(1.0)]), "c": (small(1.0),)}
    config = Config()
    config.inner.more["t"] = small(1.0)

    def read():
        more = config.inner.more
        return held["a"][-1].sum() + held["b"][0].sum() + held["c"][0].sum() + more["t"].sum()

    return state(
        read,
        lambda n: held["a"].append(small(n)),
        lambda n: held["b"].appendleft(small(n)),
        lambda n: held["c"][0].assign(small(n)),
        lambda n: held["b"].__setitem__(0, small(n)),
        lambda n: held.__setitem__("c", (small(n),)),
        lambda n: config.inner.more.__setitem__("t", small(n)),
    )


@kind
def a_tensor_and_what_is_said_of_it():
    held = small(1.0)

    def read():
        scale = 2.0 if held.requires_grad else 3.0
        gradient = 0.0 if held.grad is None else held.grad.sum()
        return held.detach().sum() * scale + gradient

    def gradient(number):
        held.grad = small(number)

    return state(
        read,
        gradient,
        lambda n: setattr(held, "grad", None),
        lambda n: held.requires_grad_(not held.requires_grad),
    )


@kind
def a_tensor_of_another_shape():
    held = small(1.0)

    def replace(number):
        nonlocal held
        held = Tensor([number] * (1 + int(number) % 4)).realize()

    return state(lambda: held.sum() * held.shape[0], replace)


@kind
def a_tensor_by_weak_reference():
    tensors = [small(1.0)]
    weak = [weakref.ref(tensors[0])]

    def change(number):
        tensors[0] = small(number)
        weak[0] = weakref.ref(tensors[0])

    return state(lambda: weak[0]().sum(), change, lambda n: tensors[0].assign(small(n)))
