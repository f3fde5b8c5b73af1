"""Decisions are answered as predicted, at random, or as OPTS says."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Context, Tensor, TinyJit
from lazygrad.decisions import DECISIONS, Decided, decide, observers, yes_or_no
from lazygrad.programs.runners import clear_programs
from tests.helpers import outputs_of_processes

A = np.random.default_rng(0).standard_normal((33, 40)).astype(np.float32)


def asked_of(program) -> list[Decided]:
    """The decisions that a program asks for, none of whose kernels is there yet."""
    clear_programs()
    found: list[Decided] = []
    observers.append(found.append)
    try:
        with Context(CACHELEVEL=0):
            program()
    finally:
        observers.remove(found.append)
    return found


def opts_of(program) -> list:
    return [each.answer for each in asked_of(program) if each.name == "opts"]


def softmax() -> np.ndarray:
    return Tensor(A, device="CPU").softmax(1).numpy()


def test_without_the_flag_every_answer_is_the_predicted_one():
    with Context(OPTS=""):
        found = asked_of(softmax)
    assert found
    assert all(each.answer == each.predicted for each in found)
    assert {each.name for each in found} <= set(DECISIONS)


def test_seeds_give_other_answers_and_the_same_numbers():
    lists = set()
    with Context(OPTS=""):
        expected = softmax()
    for seed in range(8):
        with Context(OPTS=f"random:{seed}"):
            np.testing.assert_allclose(softmax(), expected, rtol=1e-5)
            lists.add(repr(opts_of(softmax)))
    assert len(lists) > 3


def test_an_answer_is_the_same_in_every_process():
    script = """
from lazygrad import Context, Tensor
from lazygrad.decisions import observers
found = []
observers.append(lambda each: found.append((each.name, each.structure, each.answer)))
with Context(CACHELEVEL=0, OPTS="random:3"):
    Tensor.ones(33, 40, device="CPU").contiguous().softmax(1).realize()
print(found)
"""
    (found,) = outputs_of_processes(script)
    assert found != "[]\n"


def test_a_jit_and_a_loop_agree_to_the_bit():
    def step(x):
        return (x.softmax(1) @ x.T).sum(0).realize()

    with Context(OPTS="random:5"):
        x = Tensor(A, device="CPU").realize()
        loop = [step((x * n).realize()).numpy() for n in (1.0, 2.0, 3.0, 4.0)]
        jitted = TinyJit(step)
        replayed = [jitted((x * n).realize()).numpy() for n in (1.0, 2.0, 3.0, 4.0)]
    plain = [step((x * n).realize()).numpy() for n in (1.0, 2.0, 3.0, 4.0)]
    np.testing.assert_allclose(loop, plain, rtol=1e-4)
    np.testing.assert_array_equal(loop, replayed)


def test_one_answer_can_be_given():
    with Context(OPTS=""):
        expected, (each, *_) = softmax(), (each for each in asked_of(softmax) if each.name == "opts")
    with Context(OPTS=f"opts@{each.structure}=[]"):
        assert [] in opts_of(softmax)
        np.testing.assert_allclose(softmax(), expected, rtol=1e-5)


def test_of_two_answers_either_can_be_given():
    name = next(iter(DECISIONS))

    def answered(value: str) -> bool:
        with Context(OPTS=value):
            return yes_or_no(name, lambda: "0f", True, lambda: True)

    assert answered(f"{name}@0f=no") is False
    assert answered(f"{name}@0f=yes") is True
    assert answered(f"{name}@0e=no") is True
    with pytest.raises(ValueError, match=f"OPTS answers {name}@0f with 'maybe', which is not legal here"):
        answered(f"{name}@0f=maybe")


@pytest.mark.parametrize("text", ["random", "random:", "random:x", "beam", "opts=3", "random:1;random:2"])
def test_what_is_no_answer_is_refused(text):
    with pytest.raises(
        ValueError, match=r"OPTS must be empty, or random:SEED, as random:1, or NAME@STRUCTURE"
    ):
        Context(OPTS=text)


def test_a_decision_that_is_none_is_refused():
    with (
        Context(OPTS="random:1:loops"),
        pytest.raises(ValueError, match="loops is no decision; there are opts"),
    ):
        decide("opts", lambda: "0", 1, lambda rng: [2])


def test_debug_says_that_answers_are_random(capsys):
    seed = 20_261_203  # of no other test: it is said once for each value
    with Context(CACHELEVEL=0, OPTS=f"random:{seed}", DEBUG=1):
        softmax()
    said = f"OPTS=random:{seed}: decisions are answered at random, among the legal answers"
    out, err = capsys.readouterr()
    assert said in err
    assert said not in out, "there stand rows"
