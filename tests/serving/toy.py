"""A model without tensors, whose steps a test can hold: its answer is the prompt in capitals.

A prompt that begins with "forever" is answered with "la la la ..." as long as is allowed, "forever!" with
pieces that are long themselves, and "nan" fails.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lazygrad.models import Event, Sampling
from lazygrad.serving.app import Limits
from lazygrad.serving.server import Server
from tests.helpers import PATIENCE


class Toy:
    """What a server serves, and what a test sees of it."""

    name, context = "toy", 1000

    def __init__(self) -> None:
        self.changed = threading.Condition()  #: notified whenever something below changes
        self.steps: list[set[int]] = []  #: the sequences of each step
        self.added: list[dict[str, Any]] = []
        self.cancelled: list[int] = []
        self.running: set[int] = set()
        self.batches = 0
        self.fault: Exception | None = None  #: what the next step raises
        self._allowed: float = float("inf")  # steps that may be taken

    # ---- for the server ----

    def batch(self) -> ToyBatch:
        self.batches += 1
        return ToyBatch(self)

    def tokens(self, prompt: str | list[int]) -> list[int]:
        found = list(prompt.encode()) if isinstance(prompt, str) else prompt
        if not found or max(found) > 255:
            raise ValueError(
                "the prompt is empty" if not found else f"token {max(found)} is not one of the 256"
            )
        return found

    def chat_tokens(self, messages: Sequence[dict[str, str]]) -> list[int]:
        if messages[0]["content"] == "refused":
            raise ValueError("the model's chat template refuses the messages")
        return self.tokens(messages[-1]["content"])

    def sampling(self, **settings: Any) -> Sampling:
        return Sampling(**settings)

    # ---- for tests ----

    def hold(self) -> None:
        """Take no step until `allow`."""
        self.allow(0)

    def allow(self, steps: float = float("inf")) -> None:
        """Take so many more steps."""
        with self.changed:
            self._allowed = steps
            self.changed.notify_all()

    def until(self, holds: Callable[[], object]) -> None:
        """Wait until this holds of the fields above."""
        with self.changed:
            assert self.changed.wait_for(holds, PATIENCE)

    def note(self, **changes: Any) -> None:
        with self.changed:
            for name, value in changes.items():
                getattr(self, name).append(value)
            self.changed.notify_all()


class ToyBatch:
    def __init__(self, toy: Toy) -> None:
        self.toy, self.texts, self.names = toy, dict[int, Iterator[Event]](), itertools.count()
        toy.running.clear()

    def add(self, prompt: Sequence[int], sampling: Any, max_tokens: int, stop: Sequence[str]) -> int:
        name = next(self.names)
        text = bytes(prompt).decode()
        if text == "badly":
            raise ValueError("the prompt is bad")
        if text == "worse":
            raise KeyError("worse")
        self.texts[name] = events(name, text, max_tokens, stop)
        self.toy.running.add(name)
        self.toy.note(added={"text": text, "sampling": sampling, "max_tokens": max_tokens, "stop": stop})
        return name

    def step(self) -> list[Event]:
        toy = self.toy
        toy.until(lambda: toy._allowed > 0)
        toy._allowed -= 1
        if toy.fault is not None:
            fault, toy.fault = toy.fault, None
            raise fault
        toy.note(steps=set(self.texts))
        found = [self.next(name) for name in self.texts]
        for event in found:
            if event.finished:
                del self.texts[event.handle]
                toy.running.discard(event.handle)
        return found

    def next(self, name: int) -> Event:
        try:
            return next(self.texts[name])
        except ArithmeticError as error:
            return Event(name, None, "", "error", error)

    def cancel(self, handle: int) -> None:
        self.texts.pop(handle, None)
        self.toy.running.discard(handle)
        self.toy.note(cancelled=handle)


def events(name: int, text: str, max_tokens: int, stop: Sequence[str]) -> Iterator[Event]:
    """What a session says of one sequence."""
    words = iter(text.upper())
    if text.startswith("forever"):
        words = itertools.repeat("la " * (1000 if text == "forever!" else 1))
    if text == "nan":
        raise ArithmeticError("NaN")
    for _ in range(max_tokens):
        word = next(words, None)
        if word is None or word in stop:
            yield Event(name, 0, "", "stop")
        yield Event(name, 1, str(word), None)
    yield Event(name, None, "", "length")


@contextlib.contextmanager
def serving(model: Any, **options: Any) -> Iterator[Server]:
    """A server of a toy or of a real model on a free port, in a thread."""
    options = {"limits": Limits(quiet_s=0.1), "grace_s": PATIENCE} | options
    server = Server(model, port=0, **options)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.engine.stop()
        if isinstance(model, Toy):
            model.allow()
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()
