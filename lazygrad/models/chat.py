"""Chat templates: jinja2 programs that come with a model and write a conversation as one text.

They are other people's programs, so they run in jinja2's sandbox, which gives them no way to Python's own
objects, and no file, and within bounds (`template_limits.py`). What templates are written for is there:
`raise_exception`, `strftime_now`, a filter `tojson` that leaves letters as they are, the tag `generation`
around what the assistant says, and the tokens that begin and end a text.
"""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from .template_limits import (
    SHOWN,
    TemplateRefused,
    joined,
    limited,
    limited_filter,
    made,
    price_binary,
    price_call,
    rendered,
)

__all__ = ["ChatTemplate", "TemplateRefused"]


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
        values = self.variables | variables
        values |= {"messages": list(messages), "tools": list(tools) if tools else None}
        values["add_generation_prompt"] = add_generation_prompt
        try:
            with limited(self.source, values):
                if self._compiled is None:
                    self._compiled = _environment()().from_string(self.source)
                return str(self._compiled.render(**values))
        except TemplateRefused:
            raise
        except jinja2.TemplateSyntaxError as error:
            raise _refused("is not a jinja2 template", error) from error
        except (RecursionError, MemoryError) as error:
            raise _refused("does not end", error) from error
        except Exception as error:  # whatever somebody else's program runs into
            raise _refused("fails on these messages", error) from error


def _refused(what: str, error: Exception) -> TemplateRefused:
    return TemplateRefused(f"the model's chat template {what}: {str(error)[:SHOWN] or type(error).__name__}")


@functools.cache
def _environment() -> Any:
    """jinja2's sandbox, in which every operation has its bounds."""
    from jinja2 import compiler, filters, nodes
    from jinja2.ext import Extension, LoopControlExtension
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):  # type: ignore[misc]
        """`{% generation %}` around what the assistant says: here just that. Trainers make masks by it."""

        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    class Code(compiler.CodeGenerator):  # type: ignore[misc]
        """Python code in which what has no hook in jinja2 is weighed too: lists, slices, `~`."""

        def _made(self, visit: Any, node: Any, frame: Any) -> None:
            self.write("environment.made(")
            visit(node, frame)
            self.write(")")

        def visit_List(self, node: Any, frame: Any) -> None:
            self._made(super().visit_List, node, frame)

        def visit_Dict(self, node: Any, frame: Any) -> None:
            self._made(super().visit_Dict, node, frame)

        def visit_Tuple(self, node: Any, frame: Any) -> None:
            if node.ctx == "load":
                self._made(super().visit_Tuple, node, frame)
            else:
                super().visit_Tuple(node, frame)

        def visit_Getitem(self, node: Any, frame: Any) -> None:
            if isinstance(node.arg, nodes.Slice):
                self._made(super().visit_Getitem, node, frame)
            else:
                super().visit_Getitem(node, frame)

        def visit_Concat(self, node: Any, frame: Any) -> None:
            self.write("environment.concat((")
            for each in node.nodes:
                self.visit(each, frame)
                self.write(", ")
            self.write("))")

    class Sandbox(ImmutableSandboxedEnvironment):  # type: ignore[misc]
        code_generator_class = Code
        intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)
        concat = staticmethod(joined)
        made = staticmethod(made)

        def __init__(self) -> None:
            own = [Generation, LoopControlExtension]
            super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=own, finalize=rendered)
            known = {**filters.FILTERS, "tojson": _to_json}
            self.filters: Any = {name: limited_filter(name, run) for name, run in known.items()}
            self.globals["raise_exception"] = _raise_exception
            self.globals["strftime_now"] = _strftime_now
            del self.globals["lipsum"]  # long texts of no meaning

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            price_binary(operator, left, right)
            return made(super().call_binop(context, operator, left, right))

        def call(__self, __context: Any, __called: Any, *values: Any, **named: Any) -> Any:
            price_call(__called, values, named)
            return made(super().call(__context, __called, *values, **named))

    return Sandbox


def _to_json(value: Any, indent: int | None = None, ensure_ascii: bool = False, **options: Any) -> str:
    """JSON with letters as they are: jinja2's own filter escapes < and > for web pages."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _raise_exception(message: str) -> None:
    raise TemplateRefused(f"the model's chat template refuses the messages: {str(message)[:SHOWN]}")


def _strftime_now(form: str) -> str:
    return datetime.datetime.now().strftime(form)
