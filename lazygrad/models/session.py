"""Several sequences that are generated together, on one cache.

session = Session(model, slots=4)
handle = session.add(prompt_ids, Sampling(temperature=0.7), max_tokens=100, stop=["\\n\\n"])
while session.busy:
    for event in session.step():
        print(event.piece, end="")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .sampling import Sampling


class Event(NamedTuple):
    """What one step brought to one sequence.

    handle    which sequence, as `add` gave it
    token     the token that was chosen, or None where only text that was held back comes
    piece     the text that is complete now; may be empty
    finished  None while it goes on; "stop" after a stop word or a token that ends a text, "length" after
              `max_tokens` or at the end of the context
    """

    handle: int
    token: int | None
    piece: str
    finished: str | None


class Session:
    """Sequences at different positions, decoded together in one captured step.

    model    a LanguageModel
    slots    how many are decoded at once; others wait in the order they came
    context  the most tokens of one sequence, prompt and answer; the model's own limit if not given
    piece    how many tokens of a prompt are read between two steps of decoding

    Not for several threads at once.
    """

    def __init__(self, model: Any, slots: int = 4, context: int | None = None, piece: int = 256) -> None:
        raise NotImplementedError("the session is being written")

    def add(
        self,
        prompt: str | Sequence[int],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str | int] = (),
    ) -> int:
        """A new sequence: its handle, which events name.

        prompt      tokens, or a text
        max_tokens  how many are generated at most; up to the end of the context if None
        stop        texts, and tokens, at which it ends; they are not part of the pieces

        ValueError for an empty prompt, or one that leaves no room in the context.
        """
        raise NotImplementedError("the session is being written")

    def step(self) -> list[Event]:
        """Read a piece of one waiting prompt, and decode one token of every sequence that is read."""
        raise NotImplementedError("the session is being written")

    def cancel(self, handle: int) -> None:
        """End a sequence without an event. One that is not there any more is no error."""
        raise NotImplementedError("the session is being written")

    @property
    def busy(self) -> bool:
        """Whether a sequence is waiting, being read or being decoded."""
        raise NotImplementedError("the session is being written")
