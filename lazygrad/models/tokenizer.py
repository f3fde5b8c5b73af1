"""Text to tokens and back, by the model's own vocabulary, and conversations to text by its chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .chat import ChatTemplate

#: What a decoder gives for bytes that are no text (yet).
REPLACEMENT = "\ufffd"


class Tokenizer:
    """Text to tokens and back.

    inner      a `tokenizers.Tokenizer`
    eos_ids    the tokens that end a text
    bos_id     the token that begins one, or None
    add_bos    whether `encode` puts bos_id in front where the inner tokenizer does not
    template   the chat template, or None
    """

    def __init__(
        self,
        inner: Any,
        eos_ids: Sequence[int] = (),
        bos_id: int | None = None,
        add_bos: bool = False,
        template: ChatTemplate | None = None,
    ) -> None:
        self.inner, self.eos_ids, self.bos_id = inner, frozenset(eos_ids), bos_id
        self.add_bos, self.template = add_bos, template

    @property
    def vocab_size(self) -> int:
        """How many tokens there are, with those that were added to the vocabulary."""
        return int(self.inner.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str, special: bool = True) -> list[int]:
        """The tokens of a text.

        special  whether what begins a text is put in front, as the model wants it; texts of `chat` hold it
                 already. Special tokens that are written out in the text are read as such in both cases.
        """
        if not isinstance(text, str):
            raise TypeError(f"encode takes a text, not {type(text).__name__}")
        ids = list(self.inner.encode(text, add_special_tokens=special).ids)
        if special and self.add_bos and self.bos_id is not None and ids[:1] != [self.bos_id]:
            ids.insert(0, self.bos_id)
        return ids

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        """The text of tokens.

        special  whether special tokens are written out
        """
        return str(self.inner.decode(list(ids), skip_special_tokens=not special))

    def decode_stream(self, prompt: Sequence[int] = ()) -> TextStream:
        """What turns tokens into text one by one.

        prompt  tokens before the first; their text is not given back
        """
        return TextStream(self, prompt)

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> str:
        """A conversation as the text that the model knows such from: `encode(text, special=False)` it.

        messages   {"role": "user", "content": "..."} and so on
        tools      descriptions of functions, in OpenAI's form
        variables  others that the template asks for

        ValueError where the model has no template, or the template refuses the messages.
        """
        if self.template is None:
            raise ValueError("this model has no chat template; write the prompt as one text")
        return self.template.render(messages, tools, add_generation_prompt, **variables)


class TextStream:
    """Text of tokens that come one by one: what is complete is given at once, half a character is held back.

    Tokens of a word may be written otherwise alone than behind others (a space in front, for one), so a few
    tokens are always decoded together with those before.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int] = ()) -> None:
        self.tokenizer = tokenizer
        self.ids = list(prompt[-6:])  # enough for a character of four bytes and what stands before it
        self.begin, self.read = 0, len(self.ids)

    def push(self, token: int) -> str:
        """The text that is complete with this token."""
        self.ids.append(token)
        before = self.tokenizer.decode(self.ids[self.begin : self.read])
        text = self.tokenizer.decode(self.ids[self.begin :])
        if text.endswith(REPLACEMENT) or len(text) <= len(before):
            if len(self.ids) - self.read < 8:  # no character has so many bytes: these are no text
                return ""
        self.begin, self.read = self.read, len(self.ids)
        if self.begin > 256:  # what was given is not kept
            self.ids = self.ids[self.begin :]
            self.begin, self.read = 0, self.read - self.begin
        return text[len(before) :]

    def end(self) -> str:
        """What was held back, though it is no complete character."""
        before = self.tokenizer.decode(self.ids[self.begin : self.read])
        text = self.tokenizer.decode(self.ids[self.begin :])
        self.begin = self.read = len(self.ids)
        return text[len(before) :]
