"""TinyJit and what is written: state, caches, gradients, random numbers; who reads the old contents."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, JitError, Tensor, TinyJit, Variable, nn
from lazygrad.nn.optim import SGD, AdamW
from lazygrad.nn.state import get_parameters
from lazygrad.tensor.random import sampling
from tests.jit.jit_support import arrays, as_eager, captures, check_equal, numbers, training_step

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

# ---- tensors assigned inside ----


def test_a_state_that_is_assigned():
    def make():
        state = numbers(4)

        def f(x):
            state.assign(state * 0.5 + x)
            return state + 1, state.sum()

        return f

    as_eager(make, [lambda n=n: (numbers(4, seed=n),) for n in range(8)])


ARGUMENTS = {
    "not computed": lambda a: Tensor([1, 2]),
    "computed when it is read": lambda a: a + 0,
    "joined": lambda a: a[:1].cat(a[1:]),
    "a new value of memory": lambda a: a.roll(0, 0),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_an_argument_that_is_written_is_written_in_each_call(kind):
    a = Tensor([1, 2]).realize()
    x = ARGUMENTS[kind](a)
    f = TinyJit(lambda x: (x.add_(1), x * 10)[1])
    for n in range(1, 6):
        assert (f(x).tolist(), x.tolist()) == ([10 + 10 * n, 20 + 10 * n], [1 + n, 2 + n])
    assert a.tolist() == [1, 2]


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_an_argument_that_was_only_read_is_written_by_a_replay(kind):
    f = TinyJit(lambda x: (x.add_(1), x * 10)[1])
    for _ in range(3):
        f(Tensor([0, 0]).realize())
    a = Tensor([1, 2]).realize()
    x, beside = ARGUMENTS[kind](a), ARGUMENTS[kind](a)
    assert x.tolist() == [1, 2]  # which computes it, and gives it no memory to be written
    assert (f(x).tolist(), x.tolist()) == ([20, 30], [2, 3])
    assert (a.tolist(), beside.tolist()) == ([1, 2], [1, 2])


def test_a_value_of_memory_that_a_capture_saw_keeps_what_it_read():
    x = Tensor([1, 2]).realize()
    y = x.roll(0, 0)
    value = y.reshape(2, 1)
    f = TinyJit(lambda y: (y.add_(1), y * 10)[1])
    for _ in range(4):
        f(y)
    x += 5
    x += 5
    assert (value.tolist(), x.tolist(), y.tolist()) == ([[1], [2]], [11, 12], [5, 6])


def test_a_state_that_is_spread_is_written_once():
    state = Tensor.zeros(1, 2).contiguous().realize()

    @TinyJit
    def f(x):
        state.add_(1)
        return state + x

    ones = Tensor.ones(3, 2).contiguous().realize()
    for n in range(1, 6):
        assert (f(ones).tolist(), state.tolist()) == ([[n + 1.0] * 2] * 3, [[n] * 2])


def test_the_state_is_seen_outside_after_each_call():
    state = Tensor.zeros(3).contiguous().realize()
    view = state[1:]
    f = TinyJit(lambda x: (state.assign(state + x), x + 1)[1])
    for call in range(6):
        f(Tensor([1.0, 2.0, 3.0]))
        assert state.tolist() == [call + 1.0, 2.0 * call + 2, 3.0 * call + 3]
        assert view.tolist() == [2.0 * call + 2, 3.0 * call + 3]


def test_values_recorded_before_a_call_keep_what_they_read():
    state = Tensor.zeros(3).contiguous().realize()
    f = TinyJit(lambda x: (state.assign(state + x), x + 1)[1])
    before = []
    for _ in range(7):
        before.append((state * 10, state.flip(0) + 1, state.clone()))
        f(Tensor([1.0, 2.0, 3.0]))
    for call, (ten, flipped, clone) in enumerate(before):
        assert ten.tolist() == [10.0 * call, 20.0 * call, 30.0 * call]
        assert flipped.tolist() == [3.0 * call + 1, 2.0 * call + 1, call + 1.0]
        assert clone.tolist() == [1.0 * call, 2.0 * call, 3.0 * call]


def test_arrays_of_the_state_keep_what_they_show():
    state = Tensor.zeros(3).contiguous().realize()
    f = TinyJit(lambda x: (state.assign(state + x), x + 1)[1])
    views, copies = [], []
    for _ in range(7):
        views.append(np.asarray(state))
        copies.append(state.numpy())
        f(Tensor([1.0, 2.0, 3.0]))
    for call in range(7):
        assert views[call].tolist() == copies[call].tolist() == [1.0 * call, 2.0 * call, 3.0 * call]
    assert state.tolist() == [7.0, 14.0, 21.0]


def test_a_state_that_shares_its_node_with_another_tensor():
    a = Tensor.zeros(3).contiguous().realize()
    b = Tensor(a)
    c = a.detach()  # a view
    f = TinyJit(lambda x: (a.assign(a + x), x + 1)[1])
    for _ in range(5):
        f(Tensor([1.0, 1.0, 1.0]))
    assert a.tolist() == c.tolist() == [5.0] * 3
    assert b.tolist() == ([0.0] * 3 if b._storage is not a._storage else [5.0] * 3)


def test_a_state_that_is_written_outside_between_calls():
    state = Tensor.zeros(3).contiguous().realize()
    f = TinyJit(lambda x: (state.assign(state + x), state.sum())[1])
    total = 0.0
    for call in range(8):
        if call % 2:
            state.assign(state * 0 + call)  # lazily
            total = 3.0 * call
        total += 3.0
        assert f(Tensor([1.0, 1.0, 1.0])).item() == total
    assert captures(f) == 1


def test_a_write_after_the_result():
    """The result reads the state before the write that follows."""

    def make():
        state = numbers(4)

        def f(x):
            before = state * 2
            state.assign(state + x)
            return before, state * 3

        return f

    as_eager(make, [lambda n=n: (numbers(4, seed=n),) for n in range(6)])


def test_writes_that_nobody_asks_for_happen():
    """Eager writes are lazy; at the end of a captured call they are done."""
    state = Tensor.zeros(2).contiguous().realize()

    @TinyJit
    def f(x):
        state.assign(state + x)
        state[0] = 7

    for call in range(6):
        f(Tensor([1.0, 1.0]))
        assert state.tolist() == [7.0, call + 1.0]


def test_a_cache_that_is_written_at_a_position():
    class Attention:
        def __init__(self):
            self.cache = Tensor.zeros(2, 8, 3).contiguous().realize()

        def __call__(self, x, pos):
            self.cache[:, pos : pos + 1] = x
            return self.cache[:, : pos + 1].sum(1)

    def run(wrap: Any) -> list[Any]:
        model = Attention()
        f = wrap(model)
        pos = Variable("pos", 0, 7)
        results = [f(numbers(2, 1, 3, seed=p), pos.bind(p)) for p in (0, 1, 2, 3, 4, 7)]
        found = [r.numpy() for r in results] + [model.cache.numpy()]
        if isinstance(f, TinyJit):
            assert captures(f) == 1
        return found

    check_equal(run(TinyJit), run(lambda f: f))


def test_a_cache_at_a_python_position():
    """Each position is another capture, until it runs without."""
    cache = Tensor.zeros(8, 3).contiguous().realize()

    def write(x, pos):
        cache[pos] = x
        return cache.sum()

    f = TinyJit(write)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for pos in range(8):
            f(numbers(3, seed=pos), pos)
    assert "argument `pos` differs" in str(found[0].message)
    for pos in range(8):
        np.testing.assert_array_equal(cache.numpy()[pos], numbers(3, seed=pos).numpy())


def test_a_cache_made_in_the_first_call():
    class Model:
        def __init__(self):
            self.cache = None

        def __call__(self, x):
            if self.cache is None:
                self.cache = Tensor.zeros(3).contiguous().realize()
            self.cache.assign(self.cache + x)
            return self.cache * 2

    model = Model()
    f = TinyJit(model)
    for call in range(6):
        assert f(Tensor([1.0, 2.0, 3.0])).tolist() == [2.0 * (call + 1), 4.0 * (call + 1), 6.0 * (call + 1)]


def test_memory_that_begins_with_zeros_inside():
    def make():
        def f(x):
            scratch = Tensor.zeros(4).contiguous()
            scratch[1:3] = x
            empty = Tensor.empty(2)
            return scratch + 1, empty + x

        return f

    as_eager(make, [lambda n=n: (numbers(2, seed=n),) for n in range(6)])


# ---- training ----


class Net:
    def __init__(self) -> None:
        self.l1, self.l2 = nn.Linear(4, 8), nn.Linear(8, 2)

    def __call__(self, x):
        return self.l2(self.l1(x).relu())


@pytest.mark.choice
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda params: SGD(params, lr=0.1),
        lambda params: SGD(params, lr=0.1, momentum=0.9, nesterov=True),
        lambda params: AdamW(params, lr=0.01),
    ],
    ids=["sgd", "momentum", "adamw"],
)
def test_training_is_equal_to_the_bit(optimizer):
    def run(wrap: Any) -> list[Any]:
        Tensor.manual_seed(1)
        net = Net()
        opt = optimizer(get_parameters(net))
        step = wrap(training_step(opt, lambda x, y: ((net(x) - y) ** 2).mean()))
        found: list[Any] = []
        with Tensor.train():
            for n in range(8):
                opt.lr = 0.1 / (n + 1)
                found.append(step(numbers(5, 4, seed=n), numbers(5, 2, seed=n + 50)))
                found.append(net.l1.weight.grad)  # a gradient that is looked at outside
                found.append(net.l1.weight.numpy())
        if isinstance(step, TinyJit):
            assert captures(step) == 1
            assert step.captured.kernels > 3
        return arrays(found)

    check_equal(run(TinyJit), run(lambda f: f))


def test_gradients_that_are_added_up():
    """Two calls without zero_grad: the second adds to the gradients of the first."""

    def run(wrap: Any) -> list[Any]:
        Tensor.manual_seed(1)
        net = Net()

        def accumulate(x):
            loss = net(x).square().mean()
            loss.backward()
            return loss

        accumulate = wrap(accumulate)
        found = []
        for n in range(9):
            if n % 3 == 0:
                for p in get_parameters(net):
                    p.grad = None
            found += [accumulate(numbers(3, 4, seed=n)), net.l2.weight.grad]
        return arrays(found)

    check_equal(run(TinyJit), run(lambda f: f), rtol=1e-6)


def test_gradients_of_an_argument():
    def run(wrap: Any) -> list[Any]:
        def f(x):
            (x * x).sum().backward()
            return x.sum()

        f = wrap(f)
        found: list[Any] = []
        for n in range(5):
            x = numbers(3, seed=n).requires_grad_()
            found += [f(x), x.grad]
        return arrays(found)

    check_equal(run(TinyJit), run(lambda f: f))


def test_gradients_that_are_cleared_inside():
    w = numbers(3).requires_grad_()

    @TinyJit
    def f(x):
        (w * x).sum().backward()
        norm = (w.grad * w.grad).sum()
        w.grad = None
        return norm

    for n in range(5):
        x = numbers(3, seed=n)
        assert f(x).item() == pytest.approx((x.numpy() ** 2).sum(), rel=1e-5)
        assert w.grad is None


def test_an_evaluation_between_training_steps():
    def run(wrap: Any) -> list[Any]:
        Tensor.manual_seed(1)
        net = Net()
        opt = SGD(get_parameters(net), lr=0.1)
        step = wrap(training_step(opt, lambda x: net(x).square().mean()))
        evaluate = wrap(lambda x: net(x).sum())
        found = []
        for n in range(8):
            with Tensor.train():
                found.append(step(numbers(5, 4, seed=n)))
            found.append(evaluate(numbers(5, 4, seed=99)))
        return arrays(found)

    check_equal(run(TinyJit), run(lambda f: f))


def test_load_state_dict_between_calls():
    from lazygrad.nn.state import get_state_dict, load_state_dict

    net = Net()
    f = TinyJit(net)
    x = numbers(3, 4)
    for _ in range(3):
        f(x)
    other = Net()
    load_state_dict(net, get_state_dict(other))
    np.testing.assert_allclose(f(x).numpy(), other(x).numpy(), rtol=1e-5, atol=1e-6)
    assert captures(f) == 1


# ---- random numbers ----


@pytest.mark.parametrize("draws", [1, 3])
def test_random_numbers_are_the_eager_ones(draws):
    def make():
        def f(x):
            return [x + Tensor.rand(4) for _ in range(draws)], Tensor.randint(3, low=0, high=100)

        return f

    as_eager(make, [lambda n=n: (numbers(4, seed=n),) for n in range(6)])


def test_random_numbers_outside_go_on():
    def run(wrap: Any) -> list[Any]:
        Tensor.manual_seed(5)
        f = wrap(lambda x: x + Tensor.randn(4))
        found = []
        for n in range(6):
            found += [f(numbers(4)), Tensor.rand(3)]
            if n == 4:
                Tensor.manual_seed(9)
        return [*arrays(found), sampling.get_state()]

    check_equal(run(TinyJit), run(lambda f: f))


def test_dropout_in_training():
    def run(wrap: Any) -> list[Any]:
        Tensor.manual_seed(5)
        w = numbers(4, 4)
        f = wrap(lambda x: (x @ w).dropout(0.5))
        with Tensor.train():
            return arrays([f(numbers(8, 4, seed=n)) for n in range(6)])

    found = run(TinyJit)
    check_equal(found, run(lambda f: f))
    assert not np.array_equal(found[3] == 0, found[4] == 0)


def test_a_seed_set_inside_gives_the_same_numbers_each_time():
    def run(wrap: Any) -> list[Any]:
        def f(x):
            Tensor.manual_seed(3)
            return x + Tensor.rand(4)

        f = wrap(f)
        found = []
        for n in range(5):
            found += [f(numbers(4, seed=n)), Tensor.rand(2)]
        return arrays(found)

    check_equal(run(TinyJit), run(lambda f: f))


def test_numbers_that_do_not_count_outside():
    def run(wrap: Any) -> list[Any]:
        Tensor.manual_seed(5)

        def f(x):
            a = Tensor.rand(4)
            with sampling.fork_random():
                b = Tensor.rand(4)
            return x + a, b, Tensor.rand(4)

        f = wrap(f)
        return [*arrays([f(numbers(4, seed=n)) for n in range(6)]), sampling.get_state()]

    check_equal(run(TinyJit), run(lambda f: f))


def test_a_seed_set_after_drawing_from_it_is_refused():
    Tensor.manual_seed(0)

    def f(x):
        a = Tensor.rand(4)
        Tensor.manual_seed(0)
        return x + a + Tensor.rand(4)

    f = TinyJit(f)
    Tensor.manual_seed(0)
    f(numbers(4))
    Tensor.manual_seed(0)
    with pytest.raises(JitError, match="sets the seed they began with"):
        f(numbers(4))


# ---- memory ----


LONG = {"marks": pytest.mark.slow}


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize(
    ("jitted", "steps"),
    [(True, 1000), (False, 100), pytest.param(True, 10_000, **LONG), pytest.param(False, 4000, **LONG)],
)
def test_memory_is_steady(jitted, steps):
    """A training step with and without a jit: neither nodes, nor objects, nor memory of tensors grow."""
    from lazygrad.device import GlobalCounters
    from lazygrad.ir.uop import live_nodes

    net = Net()
    opt = SGD(get_parameters(net), lr=0.01)

    def step(x):
        opt.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        opt.step()
        return loss.realize()

    call = TinyJit(step) if jitted else step
    x = numbers(5, 4)
    with Tensor.train():
        for _ in range(20):
            call(x)
        gc.collect()
        nodes, objects, used = live_nodes(), len(gc.get_objects()), GlobalCounters.mem_used
        for _ in range(steps):
            call(x)
        gc.collect()
        assert live_nodes() <= nodes + 10
        assert len(gc.get_objects()) < objects + 300
        assert used >= GlobalCounters.mem_used


def test_lists_of_kernels_with_a_check():
    """CHECK=1 looks at every kernel, and a captured list runs one by one."""
    f = TinyJit(lambda x: (x + 1).sum())
    with Context(CHECK=1):
        for n in range(4):
            assert f(Tensor([1.0, float(n)])).item() == n + 3.0


def test_an_argument_that_was_made_of_a_broadcast_value_is_its_own():
    x = Tensor([[0, 0], [0, 0]]).assign(Tensor([[1, 2]]).realize())
    look = TinyJit(lambda x: x * 2)
    for _ in range(3):
        look(x)
    x += 1
    assert look(x).tolist() == [[4, 6], [4, 6]]


# ---- who looks at the memory that a replay writes ----


def add_to(state):
    """A jit that adds to a tensor from outside, past its captures."""
    step = TinyJit(lambda x: (state.assign(state + x), None)[1])
    for _ in range(4):
        step(Tensor([1.0]))
    return step


def test_what_was_recorded_between_replays_reads_the_memory_as_it_was():
    state = Tensor([0.0]).realize()
    step = add_to(state)
    doubled = []
    for call in range(6):
        if call % 2:
            doubled.append(state * 2)
        step(Tensor([1.0]))
    assert [t.item() for t in doubled] == [10.0, 14.0, 18.0]
    assert state.item() == 10.0


def test_a_node_that_is_held_over_a_replay_has_lost_its_value():
    state = Tensor([0.0]).realize()
    step = add_to(state)
    node = state.uop
    step(Tensor([1.0]))
    with pytest.raises(RuntimeError, match="is gone"):
        Tensor(node).tolist()
    assert state.item() == 5.0


def test_replays_that_nobody_looks_at_make_no_versions():
    """The node stays, and so do the values that are read: the host's reading keeps no node."""
    state = Tensor([0.0]).realize()
    step = add_to(state)
    step(Tensor([1.0]))
    version = state._storage.version
    for call in range(5):
        step(Tensor([1.0]))
        assert state.item() == 6.0 + call
    assert state._storage.version is version


def test_views_see_what_a_replay_writes():
    state = Tensor([0.0, 0.0]).realize()
    step = add_to(state)
    first, apart = state[0], state.detach()
    for call in range(3):
        step(Tensor([1.0]))
        assert first.item() == apart.tolist()[1] == 5.0 + call


def test_a_parameter_of_a_layer_is_written_in_place():
    """Its node is marked as its own, for gradients; that is no reader of the memory."""
    layer = nn.Linear(3, 3)
    optimizer = SGD([layer.weight, layer.bias], lr=0.1)

    @TinyJit
    def step(x):
        optimizer.zero_grad()
        loss = layer(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    with Tensor.train():
        for _ in range(4):
            step(numbers(2, 3))
        weight, bias = layer.weight._storage.version, layer.bias._storage.version
        losses = [step(numbers(2, 3)).item() for _ in range(3)]
    assert losses == sorted(losses, reverse=True)
    assert layer.weight._storage.version is weight
    assert layer.bias._storage.version is bias
