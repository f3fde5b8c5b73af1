"""Generators: a stream of their own, the same numbers wherever they are drawn, and a place in files."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Generator, Tensor, TinyJit, nn
from lazygrad.nn.state import get_state_dict


@pytest.fixture(autouse=True)
def _seeded() -> None:
    Tensor.manual_seed(5)


def test_a_generator_gives_the_numbers_of_its_seed() -> None:
    Tensor.manual_seed(42)
    wanted = Tensor.rand(5).tolist(), Tensor.randn(3).tolist(), Tensor.randint(4).tolist()
    g = Generator(42)
    found = [make(generator=g).tolist() for make in (lambda **k: Tensor.rand(5, **k),)]
    found += [Tensor.randn(3, generator=g).tolist(), Tensor.randint(4, generator=g).tolist()]
    assert tuple(found) == wanted


def test_streams_do_not_move_each_other() -> None:
    Tensor.manual_seed(1)
    alone = Tensor.rand(3).tolist()
    Tensor.manual_seed(1)
    one, other = Generator(7), Generator(7)
    first = Tensor.rand(3, generator=one).tolist()
    assert Tensor.rand(3).tolist() == alone
    assert Tensor.rand(3, generator=other).tolist() == first
    assert Tensor.rand(3, generator=one).tolist() != first
    assert Tensor.rand(3, generator=Generator(7 + (1 << 32))).tolist() != first


def test_numbers_do_not_depend_on_order_place_or_pieces() -> None:
    g = Generator(3)
    whole = Tensor.rand(6, generator=g).tolist()
    g.manual_seed(3)
    first, second = Tensor.rand(2, generator=g), Tensor.rand(4, generator=g)
    late = second.tolist()
    assert first.tolist() + late == whole
    assert Tensor.rand(6, generator=Generator(3), device="PYTHON").tolist() == whole
    assert Tensor.rand(6, generator=Generator(3, device="PYTHON")).tolist() == whole


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: Tensor.rand(3, generator=g),
        lambda g: Tensor.randn(3, generator=g),
        lambda g: Tensor.randint(3, high=1000, generator=g),
        lambda g: Tensor.randperm(9, generator=g),
        lambda g: Tensor.uniform(3, generator=g),
        lambda g: Tensor.normal(3, generator=g),
        lambda g: Tensor.scaled_uniform(3, generator=g),
        lambda g: Tensor.glorot_uniform(3, 2, generator=g),
        lambda g: Tensor.kaiming_uniform(3, 2, generator=g),
        lambda g: Tensor.kaiming_normal(3, 2, generator=g),
        lambda g: Tensor.ones(3).rand_like(generator=g),
        lambda g: Tensor.ones(3).randn_like(generator=g),
        lambda g: Tensor.ones(3).randint_like(1000, generator=g),
        lambda g: Tensor.full((40,), 0.5).bernoulli(generator=g),
        lambda g: Tensor.ones(90).multinomial(4, replacement=True, generator=g),
        lambda g: Tensor.ones(90).multinomial(4, generator=g),
        lambda g: Tensor.exponential(3, generator=g),
        lambda g: Tensor.laplace(3, generator=g),
        lambda g: Tensor.cauchy(3, generator=g),
        lambda g: Tensor.log_normal(3, generator=g),
        lambda g: Tensor.geometric(9, p=0.1, generator=g),
        lambda g: Tensor.truncated_normal(3, generator=g),
        lambda g: Tensor.gamma(3, generator=g),
        lambda g: Tensor.beta(3, generator=g),
        lambda g: Tensor.full((9,), 3.0).poisson(generator=g),
        lambda g: Tensor.ones(3).dirichlet(generator=g),
        lambda g: Tensor.full((9,), 9.0).binomial(0.5, 9, generator=g),
        lambda g: Tensor.zeros(3).uniform_(generator=g),
        lambda g: Tensor.zeros(3).normal_(generator=g),
        lambda g: Tensor.zeros(3).exponential_(generator=g),
        lambda g: Tensor.zeros(40).bernoulli_(generator=g),
        lambda g: Tensor.ones(50).dropout(training=True, generator=g),
        lambda g: Tensor.ones(1, 50, 2).dropout1d(training=True, generator=g),
        lambda g: Tensor.ones(50).alpha_dropout(training=True, generator=g),
        lambda g: Tensor.ones(1, 50, 2).feature_alpha_dropout(training=True, generator=g),
        lambda g: Tensor.ones(50).gumbel_softmax(generator=g),
        lambda g: (-Tensor.ones(5)).rrelu(training=True, generator=g),
        lambda g: nn.init.xavier_normal_(Tensor.empty(3, 2), generator=g),
        lambda g: nn.init.xavier_uniform_(Tensor.empty(3, 2), generator=g),
        lambda g: nn.init.kaiming_normal_(Tensor.empty(3, 2), generator=g),
        lambda g: nn.init.kaiming_uniform_(Tensor.empty(3, 2), generator=g),
        lambda g: nn.init.trunc_normal_(Tensor.empty(3), generator=g),
        lambda g: nn.init.orthogonal_(Tensor.empty(3, 2), generator=g),
        lambda g: nn.init.sparse_(Tensor.empty(30, 2), 0.5, generator=g),
    ],
)
def test_every_random_function_takes_a_generator(draw: Any) -> None:
    g, state = Generator(11), lazygrad.Tensor.rand
    Tensor.manual_seed(1)
    first = draw(g).tolist()
    later = draw(g).tolist()
    assert (
        state(1).tolist() == (Tensor.manual_seed(1), state(1).tolist())[1]
    )  # the other stream has not moved
    Tensor.manual_seed(2)
    assert draw(Generator(11)).tolist() == first
    assert later != first


def test_within_a_generator_all_is_drawn_from_it() -> None:
    with Generator(1) as g:
        first = nn.Linear(3, 2)
        with Generator(2):
            inner = Tensor.rand(2).tolist()
        more = Tensor.ones(50).dropout(0.5, training=True).tolist()
    with g.manual_seed(1):
        assert nn.Linear(3, 2).weight.tolist() == first.weight.tolist()
        assert Tensor.ones(50).dropout(0.5, training=True).tolist() == more
    assert Tensor.rand(2, generator=Generator(2)).tolist() == inner


def test_states_are_read_and_set() -> None:
    g = Generator(9)
    Tensor.rand(5, generator=g)
    state = g.get_state()
    assert state.tolist() == [9, 5]
    wanted = Tensor.rand(3, generator=g).tolist()
    assert Tensor.rand(3, generator=g.set_state(state)).tolist() == wanted
    assert Tensor.rand(3, generator=Generator(0).set_state(state)).tolist() == wanted
    assert (Generator(9).initial_seed(), g.initial_seed()) == (9, 9)
    new = g.seed()
    assert g.initial_seed() == new
    with pytest.raises(TypeError, match="what get_state gives"):
        g.set_state(Tensor([1, 2]))
    with pytest.raises(TypeError, match=r"a seed must be an int, not 1\.5"):
        g.manual_seed(1.5)  # type: ignore[arg-type]


def test_split_gives_streams_of_their_own() -> None:
    made = Generator(4).split(3)
    values = [Tensor.rand(4, generator=g).tolist() for g in made]
    assert len({tuple(v) for v in values}) == 3
    again = Generator(4)
    assert [Tensor.rand(4, generator=g).tolist() for g in again.split(3)] == values
    assert Tensor.rand(4, generator=again.split(1)[0]).tolist() not in values
    assert "split from another" in repr(made[0])
    with pytest.raises(ValueError, match="at least 1, not 0"):
        again.split(0)


def test_a_captured_function_draws_what_it_would_draw() -> None:
    def step(g: Generator, x: Tensor) -> Tensor:
        return (x + Tensor.rand(4, generator=g) + Tensor.randn(4, generator=g)).realize()

    x = Tensor.zeros(4).contiguous().realize()
    plain, captured = Generator(6), Generator(6)
    jitted = TinyJit(lambda x: step(captured, x))
    for _ in range(6):
        assert jitted(x).tolist() == step(plain, x).tolist()
    assert captured.get_state().tolist() == plain.get_state().tolist()


def test_a_jit_notices_another_generator_around_it() -> None:
    jitted = TinyJit(lambda x: (x + Tensor.rand(4)).realize())
    x = Tensor.zeros(4).contiguous().realize()
    for seed in (1, 1, 1, 2, 1):
        with Generator(seed):
            assert jitted(x).tolist() == Tensor.rand(4, generator=Generator(seed)).tolist()


def test_a_generator_is_saved_with_a_run(tmp_path: Any) -> None:
    g = Generator(8)
    layer = nn.Linear(2, 2)
    state = nn.TrainingState(model=layer, generator=g)
    assert list(get_state_dict(g)) == ["key", "counter"]
    Tensor.rand(3, generator=g)
    state.save(tmp_path / "run")
    wanted = Tensor.rand(3, generator=g).tolist()
    assert state.resume(tmp_path / "run")
    assert Tensor.rand(3, generator=g).tolist() == wanted


def test_generators_copy_and_pickle() -> None:
    g = Generator(8)
    Tensor.rand(3, generator=g)
    others = copy.deepcopy(g), pickle.loads(pickle.dumps(g))
    wanted = Tensor.rand(3, generator=g).tolist()
    assert [Tensor.rand(3, generator=other).tolist() for other in others] == [wanted, wanted]


def test_examples_of_vmap_draw_different_numbers() -> None:
    g = Generator(3)
    mapped = lazygrad.vmap(lambda x: x + Tensor.rand(2, generator=g), randomness="different")(
        Tensor.zeros(4, 2)
    )
    assert np.allclose(mapped.numpy(), Tensor.rand(4, 2, generator=Generator(3)).numpy())


def test_many_draws_make_no_endless_graph() -> None:
    g = Generator(3)
    for _ in range(300):
        Tensor.rand(1, generator=g)
    assert g.get_state().tolist() == [3, 300]
