"""A language model as the server sees it: texts to tokens, settings to Sampling, sequences to a Session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..models import LanguageModel, Sampling, Session, Tokenizer


class ServedModel:
    """A LanguageModel that clients can ask.

    name      what clients call it                       slots     how many sequences are decoded together
    defaults  settings that hold where a client says     context   the most tokens of one, prompt and answer;
              nothing, over OpenAI's (temperature 1)               the model's own limit if not given
    """

    def __init__(
        self,
        model: LanguageModel,
        name: str,
        slots: int = 4,
        context: int | None = None,
        defaults: dict[str, Any] | None = None,
    ) -> None:
        if model.tokenizer is None:
            raise ValueError(f"{name} has no tokenizer among its files, so it cannot read or write text")
        self.model, self.name, self.slots = model, name, slots
        self.tokenizer: Tokenizer = model.tokenizer
        own = int(model.config.context)
        self.context = min(context or own, own)
        self.defaults = {"temperature": 1.0, **(defaults or {})}

    def batch(self) -> Session:
        """A new Session."""
        return Session(self.model, slots=self.slots, context=self.context)

    def tokens(self, prompt: str | list[int]) -> list[int]:
        """The tokens of a prompt; ValueError for none, and for one that the vocabulary has not."""
        if isinstance(prompt, str):
            prompt = self.tokenizer.encode(prompt)
        if not prompt:
            raise ValueError("the prompt is empty")
        size = self.tokenizer.vocab_size
        wrong = next((token for token in prompt if not 0 <= token < size), None)
        if wrong is not None:
            raise ValueError(f"token {wrong} is not one of the {size} of this model")
        return prompt

    def chat_tokens(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """The tokens of a conversation, up to where the assistant speaks."""
        return self.tokenizer.encode(self.tokenizer.chat(messages), special=False)

    def sampling(self, **settings: Any) -> Sampling:
        """How tokens are chosen: what the client said, else the defaults."""
        return Sampling(**{**self.defaults, **settings})
