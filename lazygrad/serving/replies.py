"""What clients get: the JSON objects of OpenAI's protocol, whole and in pieces."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from .requests import Ask

#: What ends a stream of events.
DONE = b"data: [DONE]\n\n"
#: A comment in a stream, which clients pass over: that nobody between takes a long silence for the end.
STILL_THERE = b": still computing\n\n"


def to_bytes(value: Any) -> bytes:
    """JSON as UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def event(value: Any) -> bytes:
    """One event of a stream."""
    return b"data: " + to_bytes(value) + b"\n\n"


class Reply:
    """The objects of one answer, which have its name and time in common.

    ask            what was asked for             prompt_tokens  how many there were, all prompts together
    """

    def __init__(self, ask: Ask, prompt_tokens: int) -> None:
        self.ask, self.prompt_tokens, self.created = ask, prompt_tokens, int(time.time())
        self.name = f"{'chatcmpl' if ask.is_chat else 'cmpl'}-{uuid.uuid4().hex}"
        self.tokens = 0  #: how many were generated

    def usage(self) -> dict[str, int]:
        """How many tokens went in and came out."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.tokens,
            "total_tokens": self.prompt_tokens + self.tokens,
        }

    def whole(self, texts: list[str], reasons: list[str]) -> dict[str, Any]:
        """The whole answer, a text and the reason of its end for each choice."""
        choices = [
            self._choice(number, {"role": "assistant", "content": text}, text, reason, "message")
            for number, (text, reason) in enumerate(zip(texts, reasons, strict=True))
        ]
        return {**self._head(chunk=False), "choices": choices, "usage": self.usage()}

    def begin(self, choice: int) -> bytes:
        """The first event of a choice in a stream: who speaks. A completion has none."""
        if not self.ask.is_chat:
            return b""
        return self._chunk([self._choice(choice, {"role": "assistant", "content": ""}, "", None, "delta")])

    def piece(self, choice: int, text: str) -> bytes:
        """More text of a choice."""
        return self._chunk([self._choice(choice, {"content": text}, text, None, "delta")])

    def end(self, choice: int, reason: str) -> bytes:
        """The last event of a choice."""
        return self._chunk([self._choice(choice, {}, "", reason, "delta")])

    def last(self) -> bytes:
        """What ends the stream, with the number of tokens where it was asked for."""
        if not self.ask.include_usage:
            return DONE
        return event({**self._head(chunk=True), "choices": [], "usage": self.usage()}) + DONE

    def _chunk(self, choices: list[dict[str, Any]]) -> bytes:
        more = {"usage": None} if self.ask.include_usage else {}
        return event({**self._head(chunk=True), "choices": choices, **more})

    def _head(self, chunk: bool) -> dict[str, Any]:
        kind = "text_completion"
        if self.ask.is_chat:
            kind = "chat.completion.chunk" if chunk else "chat.completion"
        return {"id": self.name, "object": kind, "created": self.created, "model": self.ask.model}

    def _choice(
        self, number: int, message: dict[str, Any], text: str, reason: str | None, key: str
    ) -> dict[str, Any]:
        own = {key: message} if self.ask.is_chat else {"text": text}
        return {"index": number, **own, "logprobs": None, "finish_reason": reason}


def model_object(name: str, created: int) -> dict[str, Any]:
    """A model in the list of models."""
    return {"id": name, "object": "model", "created": created, "owned_by": "lazygrad"}
