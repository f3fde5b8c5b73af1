"""MEMORY_BUDGET: values are computed again where memory is short, and no number changes."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from bench.gpt import gpt
from lazygrad import Context, Tensor, TinyJit, checkpoint, nn
from lazygrad.device import GlobalCounters
from lazygrad.dtype import dtypes
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.memo import forget_all
from lazygrad.nn.optim import AdamW
from lazygrad.schedule import kernelize, stored
from lazygrad.schedule.budget import budget_report
from lazygrad.schedule.budget.again import operations
from lazygrad.schedule.budget.runs import Runs
from lazygrad.schedule.kernels.template import KernelTemplate, Leaf, Memory, Output, Part, Template
from lazygrad.schedule.plan import PLAN, Job, pass_observers
from lazygrad.target import Target
from tests.fuzz.harness import fuzzed
from tests.fuzz.writes import Player, programs
from tests.helpers import peak_of

WIDTH = 64
BYTES = WIDTH * WIDTH * 4


@pytest.fixture(autouse=True)
def nothing_is_planned():
    forget_all()
    budget_report._said.clear()


@contextmanager
def plans() -> Iterator[list[Template]]:
    """What the pass makes inside."""
    made: list[Template] = []

    def see(step, before, after) -> None:
        if step.name == "keep to budget":
            made.append(after)

    pass_observers.append(see)
    try:
        yield made
    finally:
        pass_observers.remove(see)


def square(seed: int, scale: float = 1.0) -> Tensor:
    values = np.random.default_rng(seed).normal(size=(WIDTH, WIDTH)) * scale
    return Tensor(values.astype(np.float32)).realize()


def gradients(
    layers: int = 6,
    wrap: Callable = lambda layer, *given: layer(*given),
    layer: Callable = lambda y, w: y + (y @ w).gelu(),
) -> list[Tensor]:
    """Of the weights of a chain of layers, nothing computed yet."""
    x, weights = square(0), [square(seed, 0.1).requires_grad_() for seed in range(1, layers + 1)]
    for w in weights:
        x = wrap(layer, x, w)
    return x.square().mean().gradient(*weights)


def same(one: list[Tensor], other: list[Tensor]) -> None:
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a.numpy(), b.numpy())


# ---- templates

X, Y, PART = map(Leaf, range(3))


def template(
    *kernels: tuple[int, list], results: list[int], writes: dict[int, Memory | int] | None = None
) -> Template:
    """Kernels as (elements of the output, what is read: numbers of kernels, or names of leaves)."""
    leaves = {"x": X, "y": Y, "part": PART}
    made = []
    outputs: list[Output] = []
    for number, (size, reads) in enumerate(kernels):
        into = (writes or {}).get(number)
        outputs.append(Output(outputs[into] if isinstance(into, int) else into, "CPU", size, dtypes.float))
        value = UOp.const(dtypes.float, float(number))
        memory = UOp(Ops.DEFINE_GLOBAL, dtypes.float.ptr(size), (), 0)
        ast = UOp.sink(UOp(Ops.STORE, dtypes.void, (memory, value, value)))
        inputs = [leaves[read] if isinstance(read, str) else outputs[read] for read in reads]
        made.append(KernelTemplate(ast, outputs[-1:], inputs, [], ()))
    return Template(made, [(n, outputs[kernel]) for n, kernel in enumerate(results)])


def numbers(made: Template) -> list[int]:
    """The kernels in their order, each by the number it had."""
    return [int(kernel.ast.src[0].src[1].arg) for kernel in made.kernels]


def kept(made: Template, budget: int) -> Template:
    step = next(step for step in PLAN if step.name == "keep to budget")
    return step.on(made, Job(budget=budget, views=frozenset({2}), target=Target("")))


def test_what_is_read_late_is_computed_again():
    """Of 0, read early and late, only the early part is kept over 2."""
    given_plan = template((100, ["x"]), (1, [0]), (100, ["x", 1]), (1, [2]), (1, [3, 0]), results=[4])
    made = kept(given_plan, 700)
    assert numbers(made) == [0, 1, 2, 3, 0, 4]
    assert made.before[5] == [3, 4]
    assert made.kernels[4].inputs == [X]
    assert made.results == given_plan.results
    assert (made.rematerialized.before, made.rematerialized.after, made.rematerialized.again) == (964, 516, 1)
    assert kept(given_plan, 964) is given_plan
    assert kept(given_plan, 0) is given_plan


WRITTEN = [(100, ["x"]), (1, [0]), (100, ["y", 1]), (1, [2]), (1, [3, 0])]


@pytest.mark.parametrize(
    ("into", "again"),
    [
        (X, False),
        (Y, True),
        (PART, False),
        (Part(X, 1, 0, dtypes.float), False),
    ],
    ids=["what it reads", "other memory", "perhaps a part of it", "a part of it"],
)
def test_a_kernel_whose_input_is_written_is_not_run_again(into, again):
    made = kept(template(*WRITTEN, results=[4], writes={3: into}), 700)
    assert numbers(made) == ([0, 1, 2, 3, 0, 4] if again else [0, 1, 2, 3, 4])
    assert bool(made.rematerialized.largest) != again


def test_a_write_behind_waits_for_the_second_run():
    """The last kernel writes what kernel 0 reads: it waits for the second run of 0."""
    made = kept(template(*WRITTEN, (1, [1]), results=[4, 5], writes={5: X}), 700)
    assert numbers(made) == [0, 1, 2, 3, 0, 4, 5]
    assert made.kernels[6].after == made.kernels[4].outputs


def test_memory_that_is_written_in_place_stays():
    """Kernel 1 writes the memory that 0 made; so 0 is not run again for what reads that."""
    made = kept(template(*WRITTEN, results=[4], writes={1: 0}), 700)
    assert len(made.kernels) == 5


@pytest.mark.parametrize("change", ["sites", "length", "after_readers_of", "op"])
def test_kernels_that_do_more_than_make_memory_are_left_alone(change):
    given_plan = template(*WRITTEN, results=[4])
    kernel = given_plan.kernels[0]
    if change == "sites":
        kernel = replace(kernel, sites=(3,))
    elif change == "length":
        kernel.outputs[0].length = UOp.const(dtypes.index, 100)
    elif change == "after_readers_of":
        kernel = replace(kernel, after_readers_of=[3])
    else:
        copied = UOp(Ops.COPY, dtypes.float, (kernel.ast.src[0].src[0], UOp(Ops.DEVICE, arg="CPU")), 100)
        kernel = replace(kernel, ast=copied)
    given_plan.kernels[0] = kernel
    assert len(kept(given_plan, 700).kernels) == 5


def test_what_a_second_run_needs_is_computed_again_too():
    """5 reads 1 late, 1 is made of 0, and 0 is as long as 1: neither is there over 3."""
    given_plan = template(
        (100, ["x"]), (100, [0]), (1, [1]), (200, [2]), (1, [3]), (1, [4, 1]), results=[5]
    )  # fmt: skip
    made = kept(given_plan, 900)
    assert numbers(made) == [0, 1, 2, 3, 4, 0, 1, 5]
    assert made.kernels[6].inputs == made.kernels[5].outputs
    assert made.rematerialized.again == 2


@fuzzed(quick=40, sweep=2000)
@given(st.data())
def test_what_is_reckoned_is_what_is_used(data):
    """Whatever is added: each run reads what it read, and the bytes are those counted anew."""
    kernels: list[tuple[int, list]] = []
    for number in range(data.draw(st.integers(4, 12))):
        reads = data.draw(st.lists(st.sampled_from(["x", "y", *range(number)]), max_size=3, unique=True))
        kernels.append((data.draw(st.integers(1, 90)), reads))
    results = data.draw(st.lists(st.integers(0, len(kernels) - 1), min_size=1, max_size=2, unique=True))
    given_plan = template(*kernels, results=sorted({*results, len(kernels) - 1}))
    budget = data.draw(st.integers(1, 3000))
    made = kept(given_plan, budget)
    names = numbers(made)
    for at, kernel in enumerate(made.kernels):
        first = given_plan.kernels
        reads = [
            first[names[made.maker_of[read]]].outputs[0] if isinstance(read, Output) else read
            for read in kernel.inputs
        ]
        assert reads == first[names[at]].inputs
        assert all(number < at for number in made.before[at])
    assert made.results == given_plan.results
    if made.rematerialized is not None:
        counted = Runs(made, {2}, Target("")).most_needed()
        assert made.rematerialized.after == counted <= made.rematerialized.before
        assert (counted <= budget) == (not made.rematerialized.largest)
        assert made.rematerialized.again == len(made.kernels) - len(kernels)


# ---- numbers and bytes


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("values", [17, 15, 13, 12])
def test_gradients_are_the_same_in_less_memory(values):
    plain = gradients()
    peak = peak_of(lambda: Tensor.realize(*plain))
    assert peak == 19 * BYTES
    spare = gradients()
    with Context(MEMORY_BUDGET=values * BYTES, POISON=1):
        assert peak_of(lambda: Tensor.realize(*spare)) <= values * BYTES
    same(plain, spare)


@pytest.mark.usefixtures("undisturbed")
def test_a_captured_step_needs_no_more():
    """Forward, backward and AdamW as one capture: the same numbers, in less memory."""

    def train(budget: int) -> tuple[list[np.ndarray], int]:
        weights = [square(seed, 0.1).requires_grad_() for seed in range(1, 7)]
        optimizer = AdamW(weights, lr=0.01)

        @TinyJit
        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            for w in weights:
                x = x + (x @ w).gelu()
            loss = x.square().mean()
            loss.backward()
            optimizer.step()
            return loss.realize()

        losses, inputs = [], [square(seed) for seed in range(5)]
        with Context(MEMORY_BUDGET=budget), Tensor.train():
            for x in inputs[:3]:
                losses.append(step(x).numpy())
            peak = peak_of(lambda: losses.extend(step(x).numpy() for x in inputs[3:]))
            gc.collect()
            whole = GlobalCounters.mem_used + peak
        return losses + [w.numpy() for w in weights], whole

    before = GlobalCounters.mem_used
    plain, whole = train(0)
    gc.collect()
    assert GlobalCounters.mem_used <= before + BYTES
    spare, less = train(14 * BYTES)
    assert less < whole
    assert all(np.array_equal(a, b) for a, b in zip(plain, spare, strict=True))


@pytest.mark.choice
def test_an_optimizer_step_in_the_same_plan_keeps_its_numbers():
    """Weights are overwritten in the plan that reads them for values which are computed again."""

    def train(budget: int) -> tuple[list[np.ndarray], int]:
        weights = [square(seed, 0.1).requires_grad_() for seed in range(1, 7)]
        optimizer = AdamW(weights, lr=0.01)
        again = 0
        with Context(MEMORY_BUDGET=budget, POISON=1), Tensor.train(), plans() as made:
            for seed in range(2):
                optimizer.zero_grad()
                x = square(seed)
                for w in weights:
                    x = x + (x @ w).gelu()
                x.square().mean().backward()
                optimizer.step()
            again = sum(plan.rematerialized.again for plan in made if plan.rematerialized is not None)
        return [w.numpy() for w in weights], again

    plain, none = train(0)
    for values in (16, 14):
        spare, again = train(values * BYTES)
        assert none == 0 < again
        assert all(np.array_equal(a, b) for a, b in zip(plain, spare, strict=True))


@pytest.mark.slow
def test_a_training_step_of_a_gpt_keeps_its_budget(capsys):
    """Forward, gradients and AdamW in one plan: fewer bytes at once, and the same numbers."""

    def first_step(budget: int) -> tuple[list[np.ndarray], int]:
        Tensor.manual_seed(0)
        network = gpt(nn, layers=3, width=32, tokens=64, vocabulary=100)
        weights = list(network.parameters())
        optimizer = AdamW(weights, lr=0.01)
        ids = Tensor.arange(64).realize()

        def step() -> None:
            loss = nn.functional.cross_entropy(network(ids.unsqueeze(0))[0], ids)
            loss.backward()
            optimizer.step()

        with Context(MEMORY_BUDGET=budget, DEBUG=1):
            peak = peak_of(step)
        return [w.numpy() for w in weights], peak

    plain, whole = first_step(0)
    spare, less = first_step(whole * 17 // 20)
    assert less < whole * 9 // 10  # what is not of this plan, as its inputs' copies, is not counted in it
    assert all(np.array_equal(a, b) for a, b in zip(plain, spare, strict=True))
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("MEMORY_BUDGET: peak")]
    assert " values computed again, " in said[-1]


def test_dropout_draws_the_same_numbers():
    found = []
    for budget in (0, 14 * BYTES):
        Tensor.manual_seed(3)
        with Context(MEMORY_BUDGET=budget), Tensor.train(), plans() as made:
            found.append(gradients(wrap=lambda layer, x, w: layer(x, w).dropout(0.5)))
            Tensor.realize(*found[-1])
    assert made[-1].rematerialized.again > 0
    same(*found)


@pytest.mark.choice
def test_a_plan_is_not_used_for_another_budget():
    counts = []
    for budget in (14 * BYTES, 0, 14 * BYTES, 13 * BYTES):
        found = gradients()
        with Context(MEMORY_BUDGET=budget), plans() as made:
            Tensor.realize(*found)
        counts.append([plan.rematerialized is not None for plan in made])
    assert counts == [[True], [False], [], [True]]


def test_checks_agree():
    def compute(**flags: int) -> np.ndarray:
        values = [Tensor(np.arange(64, dtype=np.float32).reshape(8, 8) / 64).realize()]
        for _ in range(5):
            values.append((values[-1] @ values[0]).sin())
        end = values[-1]
        for value in reversed(values):
            end = (end @ value).sin()
        with Context(**flags):
            return end.numpy()

    with plans() as made:
        spare = compute(MEMORY_BUDGET=5 * 256, CHECK=1)
    assert made[-1].rematerialized.again > 0
    assert np.array_equal(spare, compute())


def test_each_device_has_the_budget():
    """Two devices with half of the rows each."""
    found = []
    for budget in (0, 10 * BYTES // 2):
        x = square(0).shard(("CPU", "CPU:1"), axis=0)
        weights = [square(seed, 0.1).shard(("CPU", "CPU:1")).requires_grad_() for seed in range(1, 4)]
        with Context(MEMORY_BUDGET=budget), plans() as made, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for w in weights:
                x = x + (x @ w).gelu()
            found.append(x.square().mean().gradient(weights[0]))
            Tensor.realize(*found[-1])
    assert made[-1].rematerialized.again > 0
    same(*found)


# ---- random programs


def steps(most: int) -> st.SearchStrategy[list[tuple[str, int, int]]]:
    kinds = st.sampled_from(["sin", "add", "product", "sum", "write", "write part", "hold"])
    return st.lists(st.tuples(kinds, st.integers(0, 7), st.integers(0, 7)), min_size=4, max_size=most)


def play(made: list[tuple[str, int, int]], at_once: bool) -> list[np.ndarray]:
    """Values of each other and of two memories, which are written in between; read again from the last to the
    first, as a backward pass does; computed one after another or at once."""
    rng = np.random.default_rng(0)
    memories = [
        Tensor(rng.normal(size=(4, 4)).astype(np.float32), device="PYTHON").realize() for _ in range(2)
    ]
    values, held = [memories[0] * 2], []
    for kind, i, j in made:
        one, other = values[-1 - i % len(values)], [*memories, *values][j % (len(values) + 2)]
        if kind == "sin":
            values.append((one + memories[j % 2]).sin())
        elif kind == "add":
            values.append(one * 0.5 + other * 0.25)
        elif kind == "product":
            values.append((one @ other).sin())
        elif kind == "sum":
            values.append((other - one.sum(0)).sin())
        elif kind == "write":
            memories[j % 2].assign(one)
        elif kind == "write part":
            memories[j % 2][1:3] = memories[i % 2][:2] * 2
        else:
            held.append(one)
    end = memories[0] * 1
    for value in reversed(values):
        end = (end @ value).sin() + value * 0.5
    read = [end, *memories, *held]
    del values, one, other
    if at_once:
        Tensor.realize(*read)
    return [tensor.numpy() for tensor in read]


@fuzzed(quick=60, sweep=3000, share=500)
@given(steps(12), st.floats(0.05, 1.0), st.booleans(), st.booleans())
def test_no_number_changes(made, share, at_once, fuse):
    forget_all()
    flags = {"FUSE": int(fuse), "POISON": 1}
    with Context(**flags), plans() as plain:
        expected = play(made, at_once)
    needed = max([Runs(plan, (), Target("")).most_needed() for plan in plain], default=0)
    with Context(**flags, MEMORY_BUDGET=int(needed * share)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with plans() as spare:
            found = play(made, at_once)
    event(f"again: {any(plan.rematerialized is not None and plan.rematerialized.again for plan in spare)}")
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


@fuzzed(quick=30, sweep=1000)
@given(programs(10))
def test_random_programs_that_write_in_place(program):
    """With no room at all, everything is computed again that may be."""
    with Context(POISON=1, FUSE=0, MEMORY_BUDGET=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Player("PYTHON", program.shapes).play(program)


# ---- what is said


@pytest.mark.choice
def test_it_says_what_it_did(capsys):
    with Context(MEMORY_BUDGET=14 * BYTES, DEBUG=1):
        Tensor.realize(*gradients())
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("MEMORY_BUDGET"))
    assert line.startswith("MEMORY_BUDGET: peak 0.311 -> 0.2")
    assert " values computed again, " in line
    assert line.endswith(" % more operations")


@pytest.mark.choice
def test_a_budget_out_of_reach_warns_once():
    with Context(MEMORY_BUDGET=3 * BYTES, TRACEMETA=2), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            Tensor.realize(*gradients())
            forget_all()
    (warning,) = [w for w in caught if "MEMORY_BUDGET" in str(w.message)]
    text = str(warning.message)
    assert text.startswith("MEMORY_BUDGET=0.0492MB cannot be kept: with ")
    assert "(without a budget 0.311 MB); the largest values there: 0.0164 MB of " in text
    assert "test_rematerialize.py:" in text
    assert text.endswith(
        "compute less at once (a smaller batch, or parts of it one after another), or allow more"
    )
    assert warning.filename == __file__


def test_a_plan_from_disk_says_it_too(tmp_path, monkeypatch, capsys):
    flags = {"CACHEDB": str(tmp_path / "private" / "cache.db"), "CACHELEVEL": 2, "CHECK": 0, "DEBUG": 1}
    monkeypatch.setattr(kernelize, "stored_plan", stored.stored_plan)
    said = []
    for time in range(2):
        found = gradients(3)
        if time:  # the second is not planned
            monkeypatch.setattr(kernelize, "plan", None)
        with Context(MEMORY_BUDGET=3 * BYTES, **flags), pytest.warns(RuntimeWarning, match="cannot be kept"):
            found[0].kernelize(*found[1:])
        lines = capsys.readouterr().out.splitlines()
        said.append([line for line in lines if line.startswith("MEMORY_BUDGET")])
        forget_all()
        budget_report._said.clear()
    assert said[0] == said[1] != []


def test_a_second_run_says_why():
    with Context(MEMORY_BUDGET=14 * BYTES), plans() as made:
        Tensor.realize(*gradients())
    reasons = [end.reason for kernel in made[-1].kernels for end in kernel.boundaries]
    assert (
        reasons.count("it is computed again rather than kept (MEMORY_BUDGET)")
        >= made[-1].rematerialized.again
        > 0
    )


def test_operations_are_counted():
    with plans() as made:
        (square(1) @ square(2)).sin().realize()
    assert sum(operations(kernel.ast) for kernel in made[-1].kernels) >= 2 * WIDTH**3


# ---- checkpoints


def said_of_checkpoints(capsys) -> list[str]:
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("CHECKPOINT")]


@pytest.mark.choice
def test_a_checkpoint_says_what_it_did(capsys):
    """What it did, beside the plan of the same step without it."""
    steps = [gradients(), gradients(wrap=checkpoint)]
    with plans() as made:
        for step in steps:
            Tensor.realize(*step)
    plain, again = made
    before, after = (Runs(made, (), Target("")).most_needed() / 1e6 for made in (plain, again))
    work, total = (sum(operations(kernel.ast) for kernel in made.kernels) for made in (plain, again))
    forget_all()
    with Context(DEBUG=1):
        Tensor.realize(*gradients())
        Tensor.realize(*gradients(wrap=checkpoint))
    assert after < before
    assert said_of_checkpoints(capsys) == [
        f"CHECKPOINT: peak {before:.3g} -> {after:.3g} MB; {len(again.kernels) - len(plain.kernels)} kernels "
        f"and {100 * (total - work) / work:.0f} % operations more"
    ]


@pytest.mark.choice
def test_a_checkpoint_that_saves_nothing_is_not_done(capsys):
    """Nor from the fourth time on, when the launches of a graph are known."""

    def layer(y: Tensor, w: Tensor) -> Tensor:
        return (y @ w).tanh()

    alone = gradients(layer=layer)
    Tensor.realize(*alone)
    count = GlobalCounters.kernel_count
    Tensor.realize(*gradients(layer=layer))
    kernels = GlobalCounters.kernel_count - count
    with Context(DEBUG=1):
        for _ in range(6):
            count = GlobalCounters.kernel_count
            again = gradients(layer=layer, wrap=checkpoint)
            Tensor.realize(*again)
            assert GlobalCounters.kernel_count - count == kernels
            same(again, alone)
    (said,) = said_of_checkpoints(capsys)
    assert said.endswith("nothing is computed again, since that saves no memory")


def test_beside_a_budget_a_checkpoint_says_what_it_did_alone(capsys):
    said = []
    for budget in (0, 14 * BYTES):
        forget_all()
        with Context(DEBUG=1, MEMORY_BUDGET=budget):
            Tensor.realize(*gradients(wrap=checkpoint))
        said.append(said_of_checkpoints(capsys))
    assert said[0] == said[1] != []


def test_a_second_derivative_through_a_checkpoint_is_planned_beside_the_plain_one(capsys):
    x = square(0).requires_grad_()
    (slope,) = checkpoint(lambda x: (x.exp().sin() * x).tanh(), x).sum().gradient(x)
    with Context(DEBUG=1):
        slope.square().sum().gradient(x)[0].realize()
    assert len(said_of_checkpoints(capsys)) == 1
