"""Asking for an answer: the predicted one, unless OPTS says otherwise."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from ..config import DEBUG, OPTS, AnswersVar
from .table import DECISIONS

A = TypeVar("A")
#: Gives the other legal answers; of those that are endless it draws one.
Others = Callable[[random.Random], Iterable[A]]


class Decided(NamedTuple):
    """A decision that was asked for.

    name, structure    which: together they are another for each that can be answered apart
    predicted, answer  what is predicted to be fastest, and what was answered
    others             the other legal answers, of which `text_of` is what OPTS takes
    """

    name: str
    structure: str
    predicted: Any
    answer: Any
    others: Others[Any]


#: Called with each decision that is asked for: by whoever lists those of a program. A plan or a program that
#: is in a cache asks for nothing (`Context(CACHELEVEL=0)`).
observers: list[Callable[[Decided], None]] = []


class _Answers(NamedTuple):
    """What a value of OPTS says.

    seed, names   of `random`, None without it; the decisions that it is for, none for all
    given         (name, structure) → the answer as a text
    """

    seed: str | None
    names: frozenset[str]
    given: dict[tuple[str, str], str]


def decide(
    name: str,
    structure: Callable[[], str],
    predicted: A,
    others: Others[A],
    read: Callable[[str], A] | None = None,
) -> A:
    """The answer to a decision of DECISIONS: the predicted one, unless OPTS says otherwise.

    structure  gives a digest of what is asked about (`structure_of`); nothing else may tell one decision from
               another, so that all processes and all turns of a loop get one answer
    others     gives the other legal answers: see DEAREST
    read       makes an answer of its text, where the legal ones cannot be listed

    An answer that OPTS gives and that is not legal raises ValueError.
    """
    if only_predicted():
        return predicted
    return _answered(name, structure(), predicted, others, read)


def yes_or_no(
    name: str, structure: Callable[[], str], predicted: bool, may_differ: Callable[[], bool]
) -> bool:
    """The answer to a decision between two; `may_differ` says whether the other answer is legal."""
    if only_predicted():
        return predicted
    return _answered(name, structure(), predicted, lambda rng: [not predicted] if may_differ() else [], None)


def only_predicted() -> bool:
    """Whether every answer is the predicted one, and nobody looks on: nothing else need be worked out."""
    return not OPTS.value and not observers


def text_of(answer: Any) -> str:
    """An answer as OPTS takes it."""
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return repr(answer)


def _answered(
    name: str, structure: str, predicted: A, others: Others[A], read: Callable[[str], A] | None
) -> A:
    answer = predicted
    if OPTS.value:
        said = _said(OPTS.value)
        given = said.given.get((name, structure)) if said.given else None
        if given is not None:
            answer = _given(name, structure, given, predicted, others, read)
        elif said.seed is not None and (not said.names or name in said.names):
            if DEBUG >= 1:
                _tell(OPTS.value)
            answer = _drawn(said.seed, name, structure, predicted, others)
    for each in observers:
        each(Decided(name, structure, predicted, answer, others))
    return answer


def _drawn(seed: str, name: str, structure: str, predicted: A, others: Others[A]) -> A:
    """A legal answer that depends on the seed, the name and the structure alone."""
    rng = random.Random(f"{seed} {name} {structure}")
    if rng.random() < DECISIONS[name].predicted:
        return predicted
    found = list(others(rng))
    return rng.choice(found) if found else predicted


def _given(
    name: str,
    structure: str,
    text: str,
    predicted: A,
    others: Others[A],
    read: Callable[[str], A] | None,
) -> A:
    if read is not None:
        return read(text)
    legal = {text_of(each): each for each in (predicted, *others(random.Random(structure)))}
    if text not in legal:
        raise ValueError(
            f"OPTS answers {name}@{structure} with {text!r}, which is not legal here: "
            f"legal is {' or '.join(sorted(legal))}"
        )
    return legal[text]


@functools.lru_cache(256)
def _said(text: str) -> _Answers:
    seed, names, given = None, frozenset[str](), dict[tuple[str, str], str]()
    for part in text.split(";"):
        drawn = AnswersVar.RANDOM.fullmatch(part.strip())
        if drawn is not None:
            seed, names = drawn[1], frozenset(drawn[2].split(",") if drawn[2] else ())
            unknown = sorted(names - set(DECISIONS))
        else:
            one = AnswersVar.ANSWER.fullmatch(part.strip())
            assert one is not None  # the flag accepts nothing else
            given[one[1], one[2]] = one[3]
            unknown = [] if one[1] in DECISIONS else [one[1]]
        if unknown:
            raise ValueError(
                f"OPTS={text}: {', '.join(unknown)} is no decision; there are {', '.join(DECISIONS)}"
            )
    return _Answers(seed, names, given)


@functools.lru_cache(256)  # once for each
def _tell(text: str) -> None:
    print(f"OPTS={text}: decisions are answered at random, among the legal answers", file=sys.stderr)
