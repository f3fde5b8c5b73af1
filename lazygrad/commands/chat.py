"""A conversation in the terminal: what is typed is answered word by word, until Ctrl-D."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..models import LanguageModel, Sampling, Session, Tokenizer

#: Tokens of the context that a conversation leaves free for the next answer, if it can.
ROOM = 64
#: What a terminal would obey and not show: control characters but for tab and newline.
UNSEEN = {code: "\ufffd" for code in [*range(32), *range(127, 160)] if code not in (9, 10)}

HELP = "/reset starts a new conversation, /exit or Ctrl-D quits, Ctrl-C stops an answer"


@dataclass
class Statistics:
    """How quick an answer was: seconds to the first token, and tokens with the seconds behind it."""

    prompt: int = 0
    tokens: int = 0
    first_s: float = 0.0
    rest_s: float = 0.0

    def __str__(self) -> str:
        rate = (
            f", {(self.tokens - 1) / self.rest_s:.1f} tokens/s" if self.tokens > 1 and self.rest_s > 0 else ""
        )
        return f"[{self.prompt} tokens in, first after {self.first_s:.2f} s; {self.tokens} out{rate}]"


class Stop:
    """Within `with Stop() as stop:` a Ctrl-C sets `stop.requested`; the next one is as ever.

    A step of the model is not torn apart by the first.
    """

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> Stop:
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, number: int, frame: Any) -> None:
        self.requested = True
        signal.signal(signal.SIGINT, self._before)

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


class Chat:
    """A model, the conversation so far, and how it answers.

    max_tokens  of an answer at most; as the context allows if None
    context     the most tokens of a conversation; the model's limit if None
    stats       whether a line about its speed goes to stderr after each answer
    """

    def __init__(
        self,
        model: LanguageModel,
        system: str | None = None,
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        context: int | None = None,
        stats: bool = False,
    ) -> None:
        if model.tokenizer is None:
            raise ValueError("this model has no tokenizer among its files, so it cannot read or write text")
        self.tokenizer: Tokenizer = model.tokenizer
        self.system, self.max_tokens, self.stats = system, max_tokens, stats
        self.sampling = sampling or Sampling()
        self.session = Session(model, slots=1, context=context)
        self.messages: list[dict[str, str]] = []
        self.reset()

    def reset(self) -> None:
        """Forget the conversation; the system's message stays."""
        self.messages = [{"role": "system", "content": self.system}] if self.system else []

    def ask(self, text: str) -> bool:
        """Print the answer to a message, and remember both. Whether it came to its end.

        ValueError, and a conversation as it was, where the message alone is longer than the context.
        """
        before = list(self.messages)
        self.messages.append({"role": "user", "content": text})
        said: list[str] = []
        try:
            prompt = self._prompt()
            whole = self.write(prompt, said)
        except ValueError:
            self.messages = before
            raise
        self.messages.append({"role": "assistant", "content": "".join(said)})
        return whole

    def write(self, prompt: Sequence[int], said: list[str] | None = None) -> bool:
        """Print what follows a prompt, as it comes. Whether it came to its end: Ctrl-C stops it."""
        statistics = Statistics(prompt=len(prompt))
        handle = self.session.add(prompt, self.sampling, self.max_tokens)
        begin = last = time.perf_counter()
        with Stop() as stop:
            try:
                while self.session.busy and not stop.requested:
                    for event in self.session.step():
                        if event.error is not None:
                            raise event.error
                        last = time.perf_counter()
                        statistics.tokens += 1
                        statistics.first_s = statistics.first_s or last - begin
                        show(event.piece)
                        if said is not None:
                            said.append(event.piece)
            finally:
                self.session.cancel(handle)
        statistics.rest_s = last - begin - statistics.first_s
        print(flush=True)
        if self.stats:
            print(statistics, file=sys.stderr, flush=True)
        return not stop.requested

    def _prompt(self) -> list[int]:
        """The conversation as tokens; its first turns are left out where it is longer than the context."""
        fixed = 1 if self.system else 0
        left_out = 0
        while True:
            tokens = self.tokenizer.encode(self.tokenizer.chat(self.messages), special=False)
            room = self.session.context - len(tokens)
            if room >= min(ROOM, self.session.context // 4) or len(self.messages) == fixed + 1:
                break
            del self.messages[fixed : fixed + 2]
            left_out += 2
        if left_out:
            said = (
                f"[the conversation is longer than the context: its first {left_out} messages are left out]"
            )
            print(said, file=sys.stderr)
        return tokens


def show(text: str) -> None:
    """Print a piece of an answer. A terminal gets no control characters: models repeat what they read."""
    print(text.translate(UNSEEN) if sys.stdout.isatty() else text, end="", flush=True)


def typed(prompt: str) -> Iterator[str]:
    """The lines that are typed, without empty ones, until the end of input. Ctrl-C drops the line."""
    sees = sys.stdin.isatty()
    while True:
        try:
            line = input(prompt if sees else "").strip()
        except EOFError:
            if sees:
                print()
            return
        except KeyboardInterrupt:
            print(f"\n({HELP})")
            continue
        if line:
            yield line


def converse(chat: Chat) -> None:
    """Answer what is typed until /exit or the end of input."""
    if sys.stdin.isatty():
        print(f"({HELP})")
    for line in typed("> "):
        if line == "/exit":
            return
        if line == "/reset":
            chat.reset()
            continue
        if line.startswith("/"):
            print(f"no command {line.split()[0]!r}: {HELP}")
            continue
        with contextlib.suppress(KeyboardInterrupt):  # the second one, while the first is being obeyed
            try:
                chat.ask(line)
            except ValueError as error:
                print(f"[{error}]", file=sys.stderr)
