"""Python state that a captured function reads by any way is compared; what cannot be compared is refused.

tests/fuzz/test_jit.py has state of every kind in random programs; here is each way once.
"""

from __future__ import annotations

import collections
import io
import itertools
import logging
import os
import random
import threading
import time
import types
import warnings
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from lazygrad import JitError, Tensor, TinyJit, nn
from lazygrad.jit import asks_nothing
from lazygrad.jit.environment_specs import MAX_COMPARED_ITEMS
from tests.jit.jit_support import captures, numbers, runs

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


class Config:
    rate = 1.0

    def __init__(self) -> None:
        self.scale = 1.0


class Asked:
    def __init__(self) -> None:
        self._values = {"scale": 1.0}

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["_values"][name]


def check(read, change) -> None:
    """After each change the jit gives what the function gives, and between changes it replays."""
    f = TinyJit(lambda x: x * read())
    x = Tensor([3.0]).realize()
    for call in range(6):
        if call in (3, 5):
            change(call * 2.0)
        assert f(x).item() == 3.0 * read()
    assert captures(f) <= 3


@pytest.fixture
def config() -> Config:
    return Config()


def test_an_item_of_a_deque():
    held = collections.deque([1.0, 2.0])
    check(lambda: held[0], held.appendleft)


def test_vars_and_dict(config):
    check(lambda: vars(config)["scale"], lambda n: setattr(config, "scale", n))
    check(lambda: config.__dict__["scale"], lambda n: setattr(config, "scale", n))


def test_getattr_with_a_constant_name(config):
    check(lambda: getattr(config, "scale"), lambda n: setattr(config, "scale", n))  # noqa: B009
    check(lambda: getattr(config, "missing", 1.0), lambda n: setattr(config, "missing", n))


def test_a_custom_getattr():
    held = Asked()
    check(lambda: held.scale, lambda n: held._values.__setitem__("scale", n))


def test_an_object_that_a_local_variable_names(config):
    held = [config]

    def read():
        first = held[0]
        return first.scale

    check(read, lambda n: setattr(config, "scale", n))


def test_a_larger_array():
    held = np.arange(10_000.0)
    check(lambda: float(held[5000]), lambda n: held.__setitem__(5000, n))


def test_a_longer_list():
    held = [1.0] * 1000
    check(lambda: held[500], lambda n: held.__setitem__(500, n))


@pytest.mark.parametrize("other", [1.0, True])
def test_an_equal_number_of_another_type_in_a_longer_list(other):
    held: list[Any] = [1] * 100
    f = TinyJit(lambda x: x + Tensor(held[50]))
    for call in range(5):
        if call == 3:
            held[50] = other
        assert f(Tensor([1])).dtype is (Tensor([1]) + Tensor(held[50])).dtype


def test_memory_that_is_read_like_a_file():
    held = io.StringIO("1.0")
    check(lambda: float(held.getvalue()), lambda n: (held.seek(0), held.write(str(n))))


def test_a_method_that_a_library_calls():
    class Scaled(nn.Module):
        def __init__(self):
            self.config = Config()

        def forward(self, x):
            alias = self.config
            return x * alias.scale

    model = Scaled()
    f = TinyJit(lambda x: model(x))
    for call in range(6):
        model.config.scale = 1.0 + call // 3
        assert f(Tensor([2.0])).item() == 2.0 * model.config.scale


def test_a_method_whose_name_is_computed(config):
    config.chosen = "twice"
    Config.get_twice = lambda self: self.scale * 2
    try:
        check(lambda: getattr(config, "get_" + config.chosen)(), lambda n: setattr(config, "scale", n))
    finally:
        del Config.get_twice


def test_what_is_set_on_a_new_object_is_not_read():
    class Counted:
        def __init__(self, count=0):
            self.count = count

    held = [Counted()]
    f = TinyJit(lambda x: x * len([*held, Counted(2)]))
    for call in range(6):
        held[0].count = call
        assert f(Tensor([1.0])).item() == 2.0
    assert captures(f) == 1


def test_the_environment(monkeypatch):
    monkeypatch.setenv("RATE_OF_A_TEST", "1")
    for read in (
        lambda: float(os.environ["RATE_OF_A_TEST"]),
        lambda: float(os.getenv("RATE_OF_A_TEST", "0")),
    ):
        check(read, lambda n: monkeypatch.setenv("RATE_OF_A_TEST", str(n)))


def test_a_class_that_is_given_an_attribute_of_its_base(monkeypatch):
    class Derived(Config):
        pass

    held = Derived()
    check(lambda: held.rate, lambda n: setattr(Derived, "rate", n))


def test_an_attribute_that_an_argument_did_not_have():
    f = TinyJit(lambda x, options: x * 2 if hasattr(options, "double") else x * 3)
    options = types.SimpleNamespace(other=1)
    for call in range(6):
        if call == 3:
            options.double = True
        assert f(Tensor([1.0]), options).item() == (2.0 if call >= 3 else 3.0)


def test_containers_of_the_standard_library_as_arguments():
    f = TinyJit(lambda x, held: x * held[0] + held[1])
    for call in range(6):
        held = collections.deque([float(call // 3), Tensor([float(call)])])
        assert f(Tensor([3.0]), held).item() == 3.0 * (call // 3) + call
    assert captures(f) == 2


def test_a_gradient_that_the_function_only_reads():
    w = numbers(3).requires_grad_()
    f = TinyJit(lambda: (w.detach() - w.grad * 0.5).realize())
    for call in range(6):
        if call in (0, 3):
            w.grad = numbers(3, seed=call)
        np.testing.assert_array_equal(f().numpy(), w.numpy() - w.grad.numpy() * np.float32(0.5))


def test_whether_a_tensor_of_the_closure_requires_a_gradient():
    w = numbers(3)
    f = TinyJit(lambda x: x * 2 if w.requires_grad else x * 3)
    for call in range(6):
        w.requires_grad_(call >= 3)
        assert f(Tensor([1.0])).item() == (2.0 if call >= 3 else 3.0)


def test_options_of_a_layer_that_the_user_s_class_is_made_from():
    class Norm(nn.LayerNorm):
        pass

    norm, x = Norm(4), numbers(2, 4)
    f = TinyJit(lambda x: norm(x))
    for call in range(5):
        norm.eps = 1e-5 if call < 3 else 10.0
        np.testing.assert_allclose(f(x).numpy(), norm(x).numpy(), rtol=1e-5)


def test_objects_that_come_and_go_do_not_count():
    """Attributes that no code names may change, however often."""
    config = Config()
    f = TinyJit(lambda x: x * config.scale)
    for call in range(8):
        config.step = call
        config.history = [0] * call
        f(Tensor([1.0]))
    assert captures(f) == 1


# ---- what is refused ----

HELD = iter([1.0] * 100)
CLOCKS = [time.time]


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (random.random, r"Random.random\(\) draws a random number.*or use Tensor.rand"),
        (lambda: random.gauss(0, 1), r"test_jit_state.py:\d+: Random.gauss\(\) draws a random number"),
        (lambda: np.random.rand(), r"numpy.random draws a random number.*draw it outside and pass it"),
        (
            lambda: np.random.default_rng().random(),
            r"getrandbits\(\) draws a random|urandom\(\) draws a random",
        ),
        (
            lambda: datetime.now().microsecond,
            r"`datetime.now`\(\) reads a clock.*pass the time as an argument",
        ),
        (lambda: CLOCKS[0](), r"`CLOCKS`\[0\] is time\(\), which reads a clock"),
        (time.time, r"time\(\) reads a clock.*pass the time as an argument"),
        (lambda: next(HELD), r"`HELD` is an iterator \(a list_iterator\).*call next\(\) outside"),
        (lambda: len(open(__file__).read()), r"open\(\) reads a file or the disk.*read it outside"),  # noqa: SIM115
        (lambda: os.stat(__file__).st_size, r"stat\(\) reads a file or the disk"),
    ],
    ids=["random", "gauss", "numpy", "generator", "datetime", "clocks", "time", "next", "open", "stat"],
)
def test_what_no_later_call_could_know_is_refused(read, message):
    f = TinyJit(lambda x: x * float(read()))
    f(Tensor([1.0]))
    with pytest.raises(JitError, match=message):
        f(Tensor([1.0]))


def test_what_a_capture_did_not_run_or_another_thread_did_is_not_refused():
    table: dict[str, int] = {}
    go, done = threading.Lock(), threading.Lock()
    go.acquire(), done.acquire()

    def other():
        for _ in range(2):
            go.acquire()
            random.random(), time.time()
            done.release()

    @TinyJit
    def f(x):
        if "size" not in table:
            table["size"] = len(open(__file__).read())  # noqa: SIM115
        go.release()
        done.acquire()
        return x + 1

    threading.Thread(target=other, daemon=True).start()
    clock, draw = time.time, vars(random.Random).get("random")
    assert [f(Tensor([float(call)])).item() for call in range(4)] == [1.0, 2.0, 3.0, 4.0]
    assert time.time is clock
    assert vars(random.Random).get("random") is draw


def test_a_function_that_asks_nothing_is_captured_at_once_and_not_watched():
    calls = []

    @asks_nothing
    def f(x):
        calls.append(random.random())
        return x + 1

    run = TinyJit(f)
    assert [run(Tensor([float(i)])).item() for i in range(4)] == [1.0, 2.0, 3.0, 4.0]
    assert len(calls) == 1


def test_a_refusal_that_the_function_catches_is_raised_nevertheless():
    def read():
        try:
            return random.random()
        except Exception:
            return 1.0

    f = TinyJit(lambda x: x * read())
    f(Tensor([1.0]))
    with pytest.raises(JitError, match="draws a random number"):
        f(Tensor([1.0]))


def test_an_iterator_as_an_argument_is_refused():
    f = TinyJit(lambda x, each: x * next(each))
    each = itertools.count(1.0)
    f(Tensor([1.0]), each)
    with pytest.raises(JitError, match="argument `each` is an iterator"):
        f(Tensor([1.0]), each)


def test_what_is_too_large_to_compare_is_refused():
    array, items = np.zeros(1 << 18), [0.0] * (MAX_COMPARED_ITEMS + 1)
    for read, message in (
        (lambda: array[0], "`array` is a numpy array of 262144 elements, more than each call would compare"),
        (lambda: items[0], "`items` has 4097 items, more than each call would compare; make it a Tensor"),
    ):
        f = TinyJit(lambda x, read=read: x + float(read()))
        f(Tensor([1.0]))
        with pytest.raises(JitError, match=message):
            f(Tensor([1.0]))


def test_what_looks_at_clocks_for_others_is_no_part_of_the_function(capsys):
    """A log line, a warning, an import."""
    log = logging.getLogger("lazygrad.tests")

    @TinyJit
    def f(x):
        import colorsys  # noqa: F401

        log.warning("a line")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.warn("a warning", stacklevel=1)
        print("ran")
        return x + 1

    for call in range(4):
        assert f(Tensor([float(call)])).item() == call + 1.0
    assert runs(capsys) == 2
