"""How tokens are chosen: what is left to draw from, with which probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad.models.sampling import Sampler, Sampling, distribution

LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.3], np.float32))


def left(**options: object) -> dict[int, float]:
    tokens, probabilities = distribution(LOGITS, Sampling(temperature=1.0, **options))  # type: ignore[arg-type]
    return {int(token): round(float(p), 4) for token, p in sorted(zip(tokens, probabilities, strict=True))}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {0: 0.1, 1: 0.4, 2: 0.2, 3: 0.3}),
        ({"top_k": 2}, {1: 0.5714, 3: 0.4286}),
        ({"top_k": 9}, {0: 0.1, 1: 0.4, 2: 0.2, 3: 0.3}),
        ({"top_p": 0.6}, {1: 0.5714, 3: 0.4286}),
        ({"top_p": 0.01}, {1: 1.0}),
        ({"min_p": 0.6}, {1: 0.5714, 3: 0.4286}),
        ({"min_p": 1.0}, {1: 1.0}),
        ({"top_k": 3, "top_p": 0.5}, {1: 0.5714, 3: 0.4286}),
    ],
    ids=str,
)
def test_what_may_be_drawn(options, expected):
    assert left(**options) == expected


def test_temperature_divides_logits():
    _, probabilities = distribution(np.array([0.0, 1.0]), Sampling(temperature=0.5))
    assert np.allclose(probabilities[1] / probabilities[0], np.exp(2.0))


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 5e-324},
        {"temperature": 5e-324, "top_p": 0.5},
        {"temperature": 5e-324, "top_p": 5e-324, "top_k": 3, "min_p": 1.0},
        {"temperature": 1.0, "top_p": 5e-324},
        {"temperature": 1e-300, "frequency_penalty": 1e308, "presence_penalty": -1e308},
        {"temperature": 1e308, "top_k": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("scale", [1.0, 1e30, 1e-30])
def test_settings_at_their_ends_still_draw_the_most_likely(options, scale):
    sampler = Sampler(Sampling(seed=0, **options))
    assert sampler.choose(LOGITS * np.float32(scale)) == 1


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_logit_may_be_infinite(temperature):
    sampler = Sampler(Sampling(temperature=temperature, top_p=0.9, seed=0))
    assert sampler.choose(np.array([1.0, np.inf, -np.inf])) == 1
    tiny = Sampler(Sampling(temperature=temperature, repetition_penalty=5e-324, seed=0), prompt=[2])
    assert tiny.choose(np.array([1.0, 2.0, 3.0])) == 2


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_no_numbers(temperature):
    sampler = Sampler(Sampling(temperature=temperature))
    with pytest.raises(
        ArithmeticError, match="the model gave NaN among its logits, so no token can be chosen"
    ):
        sampler.choose(np.array([1.0, np.nan, 2.0]))
    with pytest.raises(ArithmeticError, match="the model gave no logit above -inf"):
        sampler.choose(np.array([-np.inf, -np.inf]))


def test_greedy_takes_the_first_of_the_most_likely():
    assert Sampler(Sampling()).choose(np.array([0.0, 3.0, 3.0])) == 1


def test_draws_are_as_often_as_their_probability():
    sampler = Sampler(Sampling(temperature=1.0, seed=3))
    drawn = np.bincount([sampler.choose(LOGITS) for _ in range(4000)], minlength=4) / 4000
    assert np.abs(drawn - [0.1, 0.4, 0.2, 0.3]).max() < 0.03  # four deviations of the widest


def test_a_seed_draws_the_same_again():
    def run(seed: int | None) -> list[int]:
        sampler = Sampler(Sampling(temperature=1.0, seed=seed))
        return [sampler.choose(LOGITS) for _ in range(40)]

    assert run(7) == run(7)
    assert run(7) != run(8)
    assert run(None) != run(None)


def test_repetition_penalty_divides_positive_logits_and_multiplies_negative_ones():
    logits = np.array([2.0, 1.5, -1.0, -1.5])
    sampler = Sampler(Sampling(repetition_penalty=2.0), prompt=[0, 2])
    assert sampler._penalised(logits).tolist() == [1.0, 1.5, -2.0, -1.5]
    assert sampler.choose(logits) == 1
    assert sampler._penalised(logits).tolist() == [1.0, 0.75, -2.0, -1.5]
    assert logits.tolist() == [2.0, 1.5, -1.0, -1.5]


def test_frequency_and_presence_count_what_was_generated():
    sampler = Sampler(Sampling(frequency_penalty=0.5, presence_penalty=1.0), prompt=[1])
    logits = np.array([4.0, 1.0])
    assert [sampler.choose(logits) for _ in range(6)] == [0, 0, 0, 0, 0, 1]


def test_a_token_of_the_prompt_beyond_the_logits_is_no_error():
    assert Sampler(Sampling(repetition_penalty=2.0), prompt=[99]).choose(np.array([1.0, 0.0])) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1}, "temperature must be at least 0, not -1"),
        ({"temperature": float("nan")}, "temperature must be a finite number, not nan"),
        ({"temperature": "hot"}, "temperature must be a finite number, not 'hot'"),
        ({"top_k": -1}, "top_k must be a number of tokens, or 0 for all, not -1"),
        ({"top_p": 0.0}, "top_p must be a probability above 0 and at most 1, not 0.0"),
        ({"min_p": 1.5}, "min_p must be a share from 0 to 1, not 1.5"),
        ({"repetition_penalty": 0}, "repetition_penalty must be above 0"),
        ({"seed": -3}, "seed must be an integer of at least 0, or None, not -3"),
    ],
    ids=str,
)
def test_values_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**options)
