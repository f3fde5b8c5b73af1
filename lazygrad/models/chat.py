"""Chat templates: jinja2 programs that come with a model and write a conversation as one text.

They are other people's programs, so they run in jinja2's sandbox, which gives them no way to Python's own
objects, and no file. What templates are written for is there: `raise_exception`, `strftime_now`, a filter
`tojson` that leaves letters as they are, and the tokens that begin and end a text.
"""

from __future__ import annotations

import datetime
import json
import sys
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

#: How long a template may take; those of known models take milliseconds.
SECONDS = 5.0


class TemplateRefused(ValueError):
    """A chat template that cannot be used, or that refuses the messages."""


class ChatTemplate:
    """A template of a model's file.

    source     the jinja2 text
    variables  what it may name beside the messages: bos_token, eos_token and others, texts
    """

    def __init__(self, source: str, variables: Mapping[str, Any] | None = None) -> None:
        self.source, self.variables = source, dict(variables or {})
        self._compiled: Any = None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> str:
        """The text of a conversation. TemplateRefused says why there is none."""
        import jinja2

        for message in messages:
            if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
                raise TypeError(f'a message is {{"role": ..., "content": ...}}, not {message!r}')
        if self._compiled is None:
            self._compiled = _compiled(self.source)
        values = self.variables | variables
        values |= {"messages": list(messages), "tools": list(tools) if tools else None}
        values["add_generation_prompt"] = add_generation_prompt
        try:
            with _deadline(SECONDS):
                return str(self._compiled.render(**values))
        except TemplateRefused:
            raise
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise TemplateRefused(f"the model's chat template fails on these messages: {error}") from error
        except (RecursionError, MemoryError, OverflowError) as error:
            raise TemplateRefused(f"the model's chat template does not end: {error}") from error


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Within the block, Python code that is called is interrupted after some seconds.

    Only loops need that: whoever traces this thread already, a debugger, is not disturbed.
    """
    outer, end = sys.gettrace(), time.monotonic() + seconds

    def trace(frame: types.FrameType, event: str, arg: Any) -> Any:
        if time.monotonic() > end:
            raise TemplateRefused(f"the model's chat template does not end within {seconds:g} seconds")
        return trace

    if outer is None:
        sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(outer)


def _compiled(source: str) -> Any:
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    try:
        return environment.from_string(source)
    except jinja2.TemplateError as error:
        raise TemplateRefused(f"the model's chat template is not a jinja2 template: {error}") from error


def _to_json(value: Any, indent: int | None = None, ensure_ascii: bool = False, **options: Any) -> str:
    """JSON with letters as they are: jinja2's own filter escapes < and > for web pages."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _raise_exception(message: str) -> None:
    raise TemplateRefused(f"the model's chat template refuses the messages: {message}")


def _strftime_now(form: str) -> str:
    return datetime.datetime.now().strftime(form)
