"""Several sequences that are generated together, on one cache.

session = Session(model, slots=4)
handle = session.add(prompt_ids, Sampling(temperature=0.7), max_tokens=100, stop=["\\n\\n"])
while session.busy:
    for event in session.step():
        print(event.piece, end="")
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from .decoder import Decoder
from .sampling import Sampler, Sampling
from .stepping import Stepper, power_of_two
from .tokenizer import TextStream, Tokenizer

#: For how many tokens of its answer a prompt has the cache grow at once.
ROOM = 128


class Event(NamedTuple):
    """What one step brought to one sequence.

    handle    which sequence, as `add` gave it
    token     the token that was chosen; None where there is none
    piece     the text that is complete now; may be empty
    finished  None while it goes on; "stop" after a stop word or a token that ends a text, "length" after
              `max_tokens` or at the end of the context, "error" where it failed
    error     what it failed with; the other sequences go on
    """

    handle: int
    token: int | None
    piece: str
    finished: str | None
    error: Exception | None = None


class Model(Protocol):
    """What a session needs of a LanguageModel."""

    decoder: Decoder
    tokenizer: Tokenizer | None


@dataclass
class Running:
    """One sequence on its way.

    tokens  the prompt, and what was generated      prompt  how many of them are the prompt
    read    how many of them the cache holds        limit   how many are generated at most
    pending  text that may be the begin of a stop word
    """

    handle: int
    tokens: list[int]
    prompt: int
    limit: int
    sampler: Sampler
    words: tuple[str, ...]
    ends: frozenset[int]
    stream: TextStream | None
    read: int = 0
    pending: str = ""

    @property
    def is_reading(self) -> bool:
        """Whether more than the token that was generated last is still to be read."""
        return self.read < len(self.tokens) - 1 or len(self.tokens) == self.prompt


@dataclass
class Slot:
    """A row of the cache: the sequence it has now, and the tokens whose keys and values it holds."""

    sequence: Running | None = None
    tokens: list[int] = field(default_factory=list)


class Session:
    """Sequences at different positions, decoded together in one captured step.

    model    a LanguageModel
    slots    how many are decoded at once; others wait in the order they came
    context  the most tokens of one sequence, prompt and answer; the model's own limit if not given
    piece    how many tokens of a prompt are read between two steps of decoding

    `step` is for one thread; `add`, `cancel` and `busy` may be called by others meanwhile. A sequence takes a
    slot whose last sequence begins alike where there is one, and does not read that part again.
    """

    def __init__(self, model: Model, slots: int = 4, context: int | None = None, piece: int = 128) -> None:
        for name, value in (
            ("slots", slots),
            ("piece", piece),
            ("context", 1 if context is None else context),
        ):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
        self.model, self.tokenizer = model, model.tokenizer
        longest = model.decoder.description.context
        self.context = longest if context is None else min(context, longest)
        self._stepper = Stepper(model.decoder, slots, piece)
        self._slots = [Slot() for _ in range(slots)]
        self._waiting: deque[Running] = deque()
        self._live: set[int] = set()
        self._next = 0
        self._lock = threading.Lock()

    # ---- what others call ----

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
        tokens = self._tokens(prompt)
        room = self.context - len(tokens)
        if room < 1:
            raise ValueError(
                f"the prompt has {len(tokens)} tokens; the context of {self.context} needs room for one more"
            )
        if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens < 1):
            raise ValueError(f"max_tokens must be a whole number of at least 1, or None, not {max_tokens!r}")
        words, ends = _stops(stop)
        if words and self.tokenizer is None:
            raise ValueError("this model has no tokenizer: stop words need one; stop at tokens instead")
        known = self.tokenizer.eos_ids if self.tokenizer is not None else frozenset()
        with self._lock:
            handle = self._next
            self._next += 1
            sequence = Running(
                handle,
                tokens,
                len(tokens),
                room if max_tokens is None else min(max_tokens, room),
                Sampler(sampling or Sampling(), tokens),
                words,
                ends | known,
                self.tokenizer.decode_stream(tokens) if self.tokenizer is not None else None,
            )
            self._waiting.append(sequence)
            self._live.add(handle)
        return handle

    def cancel(self, handle: int) -> None:
        """End a sequence without an event. One that is not there any more is no error."""
        with self._lock:
            self._live.discard(handle)

    @property
    def busy(self) -> bool:
        """Whether a sequence is waiting, being read or being decoded."""
        return bool(self._live)

    def step(self) -> list[Event]:
        """Read a piece of one prompt, and decode one token of every sequence whose prompt was read before.

        What fails for one sequence alone (its prompt has no room in memory, its numbers are NaN) ends that
        sequence, with an event that says so. What a step raises has failed for all.
        """
        self._seat()
        decoding = [slot for slot in self._slots if slot.sequence and not slot.sequence.is_reading]
        events = self._decode(decoding) if decoding else []
        reading = [slot for slot in self._slots if slot.sequence and slot.sequence.is_reading]
        if reading:
            first = min(reading, key=lambda slot: slot.sequence.handle if slot.sequence else 0)
            try:
                events += self._read(first)
            except Exception as error:
                events.append(self._failed(first, error))
                first.tokens = []  # what was written of it nobody knows
        return [event for event in events if event.finished or event.handle in self._live]

    # ---- prompts ----

    def _tokens(self, prompt: str | Sequence[int]) -> list[int]:
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise ValueError("this model has no tokenizer: give the prompt as tokens")
            tokens = self.tokenizer.encode(prompt)
        else:
            tokens = [int(token) for token in prompt]
        if not tokens:
            raise ValueError("the prompt is empty: a model needs at least one token to continue")
        count = self.model.decoder.embedding.shape[0]
        unknown = [token for token in tokens if not 0 <= token < count]
        if unknown:
            raise ValueError(f"token {unknown[0]} of the prompt is none of the {count} that the model has")
        return tokens

    def _seat(self) -> None:
        """Free the slots of what was cancelled, and give free ones to those that wait."""
        with self._lock:
            for slot in self._slots:
                if slot.sequence is not None and slot.sequence.handle not in self._live:
                    slot.sequence = None
            self._waiting = deque(each for each in self._waiting if each.handle in self._live)
            free = [slot for slot in self._slots if slot.sequence is None]
            while free and self._waiting:
                sequence = self._waiting.popleft()
                slot = max(
                    free, key=lambda slot: _shared(slot.tokens, sequence.tokens)
                )  # the first of equals
                free.remove(slot)
                sequence.read = min(_shared(slot.tokens, sequence.tokens), len(sequence.tokens) - 1)
                slot.sequence, slot.tokens = sequence, sequence.tokens[: sequence.read]

    def _read(self, slot: Slot) -> list[Event]:
        """Read the next piece of a prompt; behind its end comes the first token."""
        sequence = slot.sequence
        assert sequence is not None  # the caller chose it
        piece = sequence.tokens[sequence.read : sequence.read + self._stepper.sizes[-1]]
        end = sequence.read + len(piece)
        whole = end == len(sequence.tokens)
        self._stepper.reserve(len(sequence.tokens) + min(sequence.limit, ROOM))
        logits = self._stepper.read(self._slots.index(slot), piece, sequence.read)
        sequence.read = end
        slot.tokens = sequence.tokens[:end]
        return [self._sample(slot, logits)] if whole else []

    # ---- tokens ----

    def _decode(self, decoding: list[Slot]) -> list[Event]:
        """The next token of all sequences that are read.

        The rows are the first ones, a power of two of them. Those that have nothing to decode write where
        what they read next will be written.
        """
        slots = self._slots
        last = max(slots.index(slot) for slot in decoding)
        rows = min(power_of_two(last + 1), len(slots))
        tokens, starts, reach = [], [], 1
        cache = self._stepper.cache
        room = cache.length if cache is not None else 1
        for slot in slots[:rows]:
            sequence = slot.sequence
            if sequence is not None and not sequence.is_reading:
                tokens.append(sequence.tokens[-1])
                starts.append(sequence.read)
                reach = max(reach, sequence.read + 1)
            else:
                del slot.tokens[room - 1 :]
                tokens.append(0)
                starts.append(len(slot.tokens))
        try:
            self._stepper.reserve(reach)
        except Exception as error:  # no memory for the longest: the others need no more than there is
            longest = max(decoding, key=lambda slot: slot.sequence.read if slot.sequence else 0)
            return [self._failed(longest, error)]
        logits = self._stepper.decode(tokens, starts, reach)
        events = []
        for slot, line in zip(slots[:rows], logits, strict=True):
            if slot in decoding and slot.sequence is not None:
                slot.tokens.append(slot.sequence.tokens[-1])
                slot.sequence.read += 1
                events.append(self._sample(slot, line))
        return events

    def _sample(self, slot: Slot, logits: np.ndarray) -> Event:
        """The next token of a sequence; where there is none, its end."""
        try:
            return self._choose(slot, logits)
        except Exception as error:
            return self._failed(slot, error)

    def _failed(self, slot: Slot, error: Exception) -> Event:
        """End one sequence, which failed; the others go on."""
        sequence = slot.sequence
        assert sequence is not None  # the caller has it
        with self._lock:
            self._live.discard(sequence.handle)
            slot.sequence = None
        return Event(sequence.handle, None, "", "error", error)

    def _choose(self, slot: Slot, logits: np.ndarray) -> Event:
        """Choose a token, and see whether the sequence ends with it."""
        sequence = slot.sequence
        assert sequence is not None  # the caller has it
        token = sequence.sampler.choose(logits)
        sequence.tokens.append(token)
        finished = None
        piece = ""
        if token in sequence.ends:
            finished = "stop"
        else:
            piece = "" if sequence.stream is None else sequence.stream.push(token)
            if len(sequence.tokens) - sequence.prompt >= sequence.limit:
                finished = "length"
        if finished and sequence.stream is not None:
            piece += sequence.stream.end()
        piece, sequence.pending, stopped = _until_stop(
            sequence.pending + piece, sequence.words, bool(finished)
        )
        finished = "stop" if stopped else finished
        if finished:
            with self._lock:
                self._live.discard(sequence.handle)
                slot.sequence = None
        return Event(sequence.handle, token, piece, finished)


def _stops(stop: Sequence[str | int]) -> tuple[tuple[str, ...], frozenset[int]]:
    """Stop words and stop tokens."""
    if isinstance(stop, str):
        stop = [stop]
    words = tuple(each for each in stop if isinstance(each, str))
    ends = frozenset(each for each in stop if isinstance(each, int) and not isinstance(each, bool))
    if len(words) + len(set(ends)) < len(set(stop)) or "" in words:
        raise ValueError(f"stop holds texts that are not empty, and tokens, not {stop!r}")
    return words, ends


def _shared(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two sequences begin with alike."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _until_stop(text: str, words: Sequence[str], is_end: bool) -> tuple[str, str, bool]:
    """(what may be given, what is held back, whether a stop word came).

    Held back is what may be the begin of a stop word, unless it is the end.
    """
    found = [place for place in (text.find(word) for word in words) if place >= 0]
    if found:
        return text[: min(found)], "", True
    if is_end:
        return text, "", False
    longest = max((len(word) - 1 for word in words), default=0)
    for size in range(min(longest, len(text)), 0, -1):
        if any(word.startswith(text[-size:]) for word in words):
            return text[:-size], text[-size:], False
    return text, "", False
