"""Several sequences on one cache: each gets what it would get alone, and ends as it was told."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import models
from lazygrad.models import Sampling, Session
from lazygrad.models.session import _until_stop
from tests.helpers import needs
from tests.models import tiny_decoder as tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return models.load(tiny.folder(tmp_path_factory.mktemp("tiny") / "llama"))


@pytest.fixture(scope="module")
def speaking(tmp_path_factory):
    """A model with a vocabulary."""
    return models.load(tiny.folder(tmp_path_factory.mktemp("tiny") / "words", tokenizer=True))


def greedy(prompt: list[int], count: int) -> list[int]:
    """The tokens of the plain reference, which goes on behind one that ends a text."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(tiny.reference(tiny.CONFIG, tiny.weights(), tokens)[-1].argmax()))
    return tokens[len(prompt) :]


def played(session: Session) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    while session.busy:
        for event in session.step():
            found.setdefault(event.handle, []).append(event.token)
    return found


@pytest.mark.parametrize(("slots", "piece"), [(1, 256), (3, 4), (4, 256)])
def test_each_sequence_is_as_if_alone(model, slots, piece):
    prompts = [[5, 9, 3], [7], [8, 1, 30, 4, 50, 6, 6, 21, 9], [5, 9, 12]]
    session = Session(model, slots=slots, piece=piece)
    handles = [session.add(prompt, max_tokens=3 + i) for i, prompt in enumerate(prompts)]
    found = played(session)
    for i, (handle, prompt) in enumerate(zip(handles, prompts, strict=True)):
        assert found[handle] == greedy(prompt, 3 + i)


def test_one_that_comes_later_joins(model):
    session = Session(model, slots=2)
    first = session.add([5, 9, 3], max_tokens=6)
    events = session.step() + session.step()
    second = session.add([7, 7], max_tokens=3)
    while session.busy:
        events += session.step()
    assert [event.token for event in events if event.handle == first] == greedy([5, 9, 3], 6)
    assert [event.token for event in events if event.handle == second] == greedy([7, 7], 3)


def test_a_prompt_that_begins_alike_is_not_read_again(model):
    session = Session(model, slots=2, piece=4)
    prompt = [5, 9, 3, 8, 8, 1, 40, 7, 2]
    first, _ = session.add(prompt, max_tokens=2), session.add([1, 2, 3], max_tokens=2)
    answer = played(session)[first]
    longer = [*prompt, *answer, 11]
    handle = session.add(longer, max_tokens=2)
    session._seat()
    (sequence,) = [slot.sequence for slot in session._slots if slot.sequence]
    assert sequence.read == len(prompt) + 1  # the last token of an answer was never read
    assert played(session)[handle] == greedy(longer, 2)


def test_reasons_to_end(model):
    session = Session(model)
    (first, second, third) = greedy([5, 9, 3], 3)
    assert len({first, second, third}) == 3
    session.add([5, 9, 3], max_tokens=2)
    assert [session.step()[0].finished for _ in range(2)] == [None, "length"]
    session.add([5, 9, 3], max_tokens=9, stop=[second])
    events = session.step() + session.step()
    assert [(event.token, event.finished) for event in events] == [(first, None), (second, "stop")]
    assert not session.busy


def test_the_context_ends_a_text(model):
    session = Session(model, context=5)
    session.add([5, 9, 3])
    events = [event for _ in range(2) for event in session.step()]
    assert [event.finished for event in events] == [None, "length"]
    with pytest.raises(ValueError, match="the prompt has 5 tokens; the context of 5 needs room for one more"):
        session.add([1, 2, 3, 4, 5])


def test_cancelled_ones_say_nothing_more_and_free_their_slot(model):
    session = Session(model, slots=1)
    first, second, third = (session.add([number, 9, 3], max_tokens=4) for number in (5, 6, 7))
    session.step()
    session.cancel(first)
    session.cancel(second)  # it was waiting
    session.cancel(99)  # nobody
    found = played(session)
    assert list(found) == [third]
    assert found[third] == greedy([7, 9, 3], 4)


def test_one_that_fails_ends_alone(model, monkeypatch):
    """Its numbers are NaN, say; in the third step."""
    session = Session(model, slots=2)
    first, second = session.add([5, 9, 3], max_tokens=4), session.add([7, 7], max_tokens=4)
    sampler = session._waiting[0].sampler
    choose, calls = sampler.choose, []

    def broken(logits):
        calls.append(logits)
        return choose(logits if len(calls) < 3 else np.full_like(logits, np.nan))

    monkeypatch.setattr(sampler, "choose", broken)
    events = []
    while session.busy:
        events += session.step()
    mine = [event for event in events if event.handle == first]
    assert [event.token for event in mine] == [*greedy([5, 9, 3], 2), None]
    assert mine[-1].finished == "error"
    assert isinstance(mine[-1].error, ArithmeticError)
    assert [event.token for event in events if event.handle == second] == greedy([7, 7], 4)
    handle = session.add([5, 9, 3], max_tokens=4)  # the slot is as good as new
    assert played(session)[handle] == greedy([5, 9, 3], 4)


@pytest.mark.parametrize("when", ["reading", "decoding"])
def test_one_for_which_there_is_no_memory_ends_alone(model, monkeypatch, when):
    session = Session(model, slots=2)
    first, second = session.add([5, 9, 3], max_tokens=3), session.add([7, 7], max_tokens=3)
    events = [event for _ in range(2) for event in session.step()] if when == "decoding" else []
    reserve, failures = session._stepper.reserve, [MemoryError("full")]

    def once(length):
        if failures:
            raise failures.pop()
        reserve(length)

    monkeypatch.setattr(session._stepper, "reserve", once)
    while session.busy:
        events += session.step()
    assert [event.handle for event in events if event.error is not None] == [first]
    assert [event.token for event in events if event.handle == second] == greedy([7, 7], 3)


def test_generate_raises_what_went_wrong(model, monkeypatch):
    monkeypatch.setattr("lazygrad.models.sampling.Sampler.choose", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        list(model.generate([5, 9, 3], max_tokens=3))


def test_seeds_make_sequences_the_same(model):
    def run(slots: int) -> list[int]:
        session = Session(model, slots=slots)
        if slots > 1:
            session.add([9, 9], Sampling(temperature=1.0), max_tokens=8)
        handle = session.add([5, 9, 3], Sampling(temperature=1.0, top_k=20, seed=4), max_tokens=8)
        return played(session)[handle]

    assert run(1) == run(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda session: session.add([]), "the prompt is empty"),
        (lambda session: session.add([64]), "token 64 of the prompt is none of the 64 that the model has"),
        (lambda session: session.add([-1]), "token -1 of the prompt"),
        (lambda session: session.add("hello"), "this model has no tokenizer: give the prompt as tokens"),
        (
            lambda session: session.add([1], max_tokens=0),
            "max_tokens must be a whole number of at least 1, or None, not 0",
        ),
        (lambda session: session.add([1], stop=["x"]), "stop words need one"),
        (lambda session: session.add([1], stop=[""]), "stop holds texts that are not empty, and tokens"),
        (lambda session: session.add([1], stop=[1.5]), "stop holds texts that are not empty, and tokens"),
        (
            lambda session: Session(session.model, slots=0),
            "slots must be a whole number of at least 1, not 0",
        ),
        (
            lambda session: Session(session.model, piece=-1),
            "piece must be a whole number of at least 1, not -1",
        ),
    ],
    ids=range(10),
)
def test_what_is_refused(model, call, message):
    session = Session(model, slots=1)
    with pytest.raises(ValueError, match=message):
        call(session)
    assert not session.busy


# ---- texts ----


def text_of(model, steps=12, **options):
    return "".join(model.generate("the a", max_tokens=steps, **options))


@needs("tokenizers")
def test_generate_streams_the_text_of_the_tokens(speaking):
    prompt = speaking.tokenizer.encode("the a")
    tokens = greedy(prompt, 12)
    ends = [i for i, token in enumerate(tokens) if token == 2]  # its config names the token that ends a text
    expected = speaking.tokenizer.decode(tokens[: ends[0]] if ends else tokens)
    assert text_of(speaking) == expected
    assert text_of(speaking) == expected  # the cache holds the prompt now
    assert "".join(speaking.generate(prompt, max_tokens=12)) == expected


def test_weights_that_change_after_a_capture(tmp_path):
    model = models.load(tiny.folder(tmp_path / "model"))
    head = model.decoder.head

    def first() -> int:
        session = model._session or Session(model, slots=1)
        model._session = session
        session.add([5, 9, 3], max_tokens=1)
        return session.step()[0].token

    before = first()
    head.weight.assign(-head.weight).realize()
    written = first()
    assert written != before
    head.weight = (-head.weight).realize()
    model.reset()
    assert first() == before


@needs("tokenizers")
def test_a_text_ends_before_a_stop_word(speaking):
    whole = text_of(speaking)
    word = whole[3:6]
    assert text_of(speaking, stop=[word]) == whole[: whole.index(word)]


@needs("tokenizers")
def test_a_text_that_is_left_frees_the_model(speaking):
    pieces = speaking.generate("the a", max_tokens=12)
    next(pieces)
    pieces.close()
    assert text_of(speaking) == "".join(speaking.generate("the a", max_tokens=12))


@pytest.mark.parametrize(
    ("text", "words", "is_end", "expected"),
    [
        ("abc", (), False, ("abc", "", False)),
        ("abcSTOPd", ("STOP",), False, ("abc", "", True)),
        ("abcST", ("STOP",), False, ("abc", "ST", False)),
        ("abcST", ("STOP",), True, ("abcST", "", False)),
        ("aSTb", ("STOP", "b"), False, ("aST", "", True)),
        ("xaab", ("ab", "aa"), False, ("x", "", True)),
        ("a\n", ("\n\n", "\nUser"), False, ("a", "\n", False)),
    ],
)
def test_text_that_may_begin_a_stop_word_is_held_back(text, words, is_end, expected):
    assert _until_stop(text, words, is_end) == expected


def test_logits_are_not_shared_between_steps(model):
    """What one step gave is not overwritten by the next."""
    from lazygrad.models.stepping import Stepper

    stepper = Stepper(model.decoder, slots=1, piece=8)
    first = stepper.read(0, [5, 9, 3], 0)
    kept = first.copy()
    stepper.decode([7], [3], 4)
    stepper.decode([8], [4], 5)
    assert np.array_equal(first, kept)
