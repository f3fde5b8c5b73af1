"""What a client asks for: the JSON of a request, checked field by field, with OpenAI's names and limits.

A field is a row of a table: what it may be, and what it is where it is not given. What OpenAI knows and
this server cannot do is refused, and not ignored: a client that asks for it would take the answer for what
it is not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .errors import ApiError

#: The most answers to one prompt, prompts in one request, stop texts, and characters of one of those.
MOST_CHOICES, MOST_PROMPTS, MOST_STOPS, LONGEST_STOP = 16, 64, 4, 512
#: How many messages a conversation may have.
MOST_MESSAGES = 4096
ROLES = ("system", "developer", "user", "assistant")

Check = Callable[[str, Any], Any]


@dataclass(frozen=True)
class Ask:
    """A request that is right in itself; what the model says to it (its length) is still to be seen.

    prompts     one or more texts or lists of tokens, of a completion        sampling  what the client said of
    messages    the conversation, of a chat completion                                 how tokens are chosen
    """

    model: str
    prompts: tuple[str | list[int], ...] = ()
    messages: tuple[dict[str, str], ...] = ()
    n: int = 1
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stream: bool = False
    include_usage: bool = False
    echo: bool = False
    sampling: dict[str, Any] = field(default_factory=dict)

    @property
    def is_chat(self) -> bool:
        """Whether it is a conversation."""
        return bool(self.messages)


def parse_json(body: bytes) -> dict[str, Any]:
    """The object that a body holds; ApiError 400 where it holds something else."""
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise ApiError(400, f"the body is not UTF-8: {error}") from None
    except RecursionError:
        raise ApiError(400, "the body is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:
        raise ApiError(400, f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ApiError(400, f"the body must be a JSON object, not {_kind(found)}")
    return found


def parse_completion(body: dict[str, Any]) -> Ask:
    """The request of `/v1/completions`."""
    values = _checked(body, COMPLETION)
    if values["echo"] and not all(isinstance(prompt, str) for prompt in values["prompt"]):
        raise ApiError(400, "'echo' is for prompts that are texts", "echo", "unsupported_parameter")
    return _ask(values, prompts=values["prompt"], echo=values["echo"], max_tokens=values["max_tokens"])


def parse_chat(body: dict[str, Any]) -> Ask:
    """The request of `/v1/chat/completions`."""
    values = _checked(body, CHAT)
    longest = values["max_completion_tokens"]
    if longest is None:
        longest = values["max_tokens"]
    return _ask(values, messages=values["messages"], max_tokens=longest)


def _ask(values: dict[str, Any], **own: Any) -> Ask:
    options = values["stream_options"]
    if options is not None and not values["stream"]:
        raise ApiError(400, "'stream_options' is for streams: set 'stream' to true", "stream_options")
    sampling = {name: values[name] for name in SAMPLING if values[name] is not None}
    return Ask(
        values["model"],
        n=values["n"],
        stop=values["stop"],
        stream=values["stream"],
        include_usage=bool(options and options["include_usage"]),
        sampling=sampling,
        **own,
    )


# ---- kinds of fields ----


def _kind(value: Any) -> str:
    names = {bool: "a boolean", int: "a whole number", float: "a number", str: "a string", list: "an array"}
    return "null" if value is None else names.get(type(value), "an object")


def _wrong(name: str, wanted: str, value: Any) -> ApiError:
    return ApiError(400, f"{name!r} must be {wanted}, not {_kind(value)}", name, "invalid_type")


def _out_of_range(name: str, wanted: str, value: Any) -> ApiError:
    return ApiError(400, f"{name!r} must be {wanted}, not {value}", name, "invalid_value")


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


def number(least: float, most: float) -> Check:
    """A number between two, both included."""
    wanted = f"a number from {least:g} to {most:g}"

    def check(name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong(name, wanted, value)
        if not least <= value <= most:
            raise _out_of_range(name, wanted, value)
        return float(value)

    return check


def whole(least: int, most: int) -> Check:
    """A whole number between two, both included."""
    wanted = f"a whole number from {least} to {most}"

    def check(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _wrong(name, wanted, value)
        if not least <= value <= most:
            raise _out_of_range(name, wanted, value)
        return value

    return check


def boolean(name: str, value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise _wrong(name, "true or false", value)
    return value


def string(name: str, value: Any) -> str:
    """A text; one that is not Unicode (half of a surrogate pair) is refused."""
    if not isinstance(value, str):
        raise _wrong(name, "a string", value)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ApiError(400, f"{name!r} has half of a surrogate pair in it", name, "invalid_value") from None
    return value


def model_name(name: str, value: Any) -> str:
    """The name of a model."""
    return string(name, value)


def only(*allowed: Any) -> Check:
    """What this server cannot do, but for the values that ask for nothing."""

    def check(name: str, value: Any) -> Any:
        if not any(value == each and type(value) is type(each) for each in allowed):
            raise ApiError(400, f"this server does not support {name!r}", name, "unsupported_parameter")
        return value

    return check


def response_format(name: str, value: Any) -> Any:
    """Plain text only."""
    if not isinstance(value, dict):
        raise _wrong(name, "an object", value)
    if value.get("type") != "text":
        message = f"this server answers in plain text: {name!r} can only be {{'type': 'text'}}"
        raise ApiError(400, message, name, "unsupported_parameter")
    return value


def anything(name: str, value: Any) -> Any:
    """What changes no answer."""
    return value


def stops(name: str, value: Any) -> tuple[str, ...]:
    """A text or a few, none of them empty."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _wrong(name, "a string or an array of strings", value)
    if len(value) > MOST_STOPS:
        raise _out_of_range(name, f"at most {MOST_STOPS} texts", len(value))
    for text in value:
        if not 0 < len(string(name, text)) <= LONGEST_STOP:
            raise _out_of_range(name, f"texts of 1 to {LONGEST_STOP} characters", f"one of {len(text)}")
    return tuple(value)


def stream_options(name: str, value: Any) -> dict[str, bool]:
    """Whether the number of tokens is sent at the end."""
    if not isinstance(value, dict):
        raise _wrong(name, "an object", value)
    for key in value:
        if key not in ("include_usage", "include_obfuscation"):
            raise ApiError(400, f"{name!r} has no field {key!r}", name, "unknown_parameter")
    usage = value.get("include_usage", False)
    return {"include_usage": boolean(f"{name}.include_usage", usage)}


def prompts(name: str, value: Any) -> tuple[str | list[int], ...]:
    """A text, a list of tokens, or several of either."""
    if isinstance(value, str) or (isinstance(value, list) and value and type(value[0]) is int):
        value = [value]
    if not isinstance(value, list) or not value:
        raise _wrong(name, "a string, an array of tokens, or a filled array of these", value)
    if len(value) > MOST_PROMPTS:
        raise _out_of_range(name, f"at most {MOST_PROMPTS} prompts", len(value))
    return tuple(_prompt(name, each) for each in value)


def _prompt(name: str, value: Any) -> str | list[int]:
    if isinstance(value, list):
        if not value or not all(type(token) is int for token in value):
            raise _wrong(name, "an array of tokens that are whole numbers, at least one", value)
        return value
    return string(name, value)


def messages(name: str, value: Any) -> tuple[dict[str, str], ...]:
    """A conversation: objects with a role and a content."""
    if not isinstance(value, list):
        raise _wrong(name, "an array of messages", value)
    if not 0 < len(value) <= MOST_MESSAGES:
        raise _out_of_range(name, f"1 to {MOST_MESSAGES} messages", len(value))
    return tuple(_message(f"{name}[{number}]", each) for number, each in enumerate(value))


def _message(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _wrong(name, "an object", value)
    role = value.get("role")
    if role in ("tool", "function") or value.get("tool_calls") or value.get("function_call"):
        raise ApiError(400, "this server does not support tools", name, "unsupported_parameter")
    if not isinstance(role, str) or role not in ROLES:
        shown = repr(role) if isinstance(role, str) else _kind(role)
        raise ApiError(400, f"'{name}.role' must be one of {', '.join(ROLES)}, not {shown}", f"{name}.role")
    return {"role": "system" if role == "developer" else role, "content": _content(name, value)}


def _content(name: str, message: dict[str, Any]) -> str:
    """The text of a message, of which parts are joined."""
    name, value = f"{name}.content", message.get("content")
    if not isinstance(value, list):
        return string(name, value)
    texts = []
    for number, part in enumerate(value):
        inner = f"{name}[{number}]"
        if not isinstance(part, dict):
            raise _wrong(inner, "an object", part)
        if part.get("type") != "text":
            message_text = f"this server reads text only, and {inner!r} is of type {part.get('type')!r}"
            raise ApiError(400, message_text, inner, "unsupported_parameter")
        texts.append(string(f"{inner}.text", part.get("text")))
    return "".join(texts)


# ---- the fields ----


class Field(NamedTuple):
    """A field of a request: how its value is checked, and what it is where it is missing or null."""

    check: Check
    default: Any = None
    required: bool = False


#: Fields that say how tokens are chosen, in OpenAI's names; the last three in those of other servers.
SAMPLING = {
    "temperature": Field(number(0, 2)),
    "top_p": Field(number(0, 1)),
    "presence_penalty": Field(number(-2, 2)),
    "frequency_penalty": Field(number(-2, 2)),
    "seed": Field(whole(-(2**63), 2**63 - 1)),
    "top_k": Field(whole(0, 2**31 - 1)),
    "min_p": Field(number(0, 1)),
    "repetition_penalty": Field(number(0.01, 10)),
}
#: What changes no answer: who asks, and how OpenAI keeps and routes it.
_NO_EFFECT = (
    "user",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prediction",
)
_COMMON = {
    "model": Field(model_name, required=True),
    "n": Field(whole(1, MOST_CHOICES), 1),
    "stop": Field(stops, ()),
    "stream": Field(boolean, False),
    "stream_options": Field(stream_options),
    **SAMPLING,
    "logit_bias": Field(only({})),
    **{name: Field(anything) for name in _NO_EFFECT},
}
_LENGTH = whole(1, 2**31 - 1)
#: `/v1/completions`. Its answer is 16 tokens long unless told, as OpenAI's is.
COMPLETION = {
    **_COMMON,
    "prompt": Field(prompts, required=True),
    "max_tokens": Field(_LENGTH, 16),
    "echo": Field(boolean, False),
    "logprobs": Field(only()),
    "best_of": Field(only(1)),
    "suffix": Field(only("")),
}
#: `/v1/chat/completions`. Its answer is as long as the model's context allows unless told.
CHAT = {
    **_COMMON,
    "messages": Field(messages, required=True),
    "max_tokens": Field(_LENGTH),
    "max_completion_tokens": Field(_LENGTH),
    "response_format": Field(response_format),
    "logprobs": Field(only(False)),
    "top_logprobs": Field(only(0)),
    "tools": Field(only([])),
    "tool_choice": Field(only("none", "auto")),
    "parallel_tool_calls": Field(anything),
    "functions": Field(only([])),
    "function_call": Field(only("none", "auto")),
    "modalities": Field(only(["text"])),
    "audio": Field(only()),
    "reasoning_effort": Field(only("none")),
    "verbosity": Field(only("medium")),
    "web_search_options": Field(only()),
}


def _checked(body: dict[str, Any], fields: dict[str, Field]) -> dict[str, Any]:
    """Every field of the table, with its value or its default."""
    unknown = [name for name in body if name not in fields]
    if unknown:
        shown = string("a field's name", unknown[0])[:80]
        raise ApiError(400, f"there is no field {shown!r} in this request", shown, "unknown_parameter")
    values = {}
    for name, field_ in fields.items():
        value = body.get(name)
        if value is None and field_.required:
            raise ApiError(400, f"{name!r} is missing", name, "missing_required_parameter")
        values[name] = field_.default if value is None else field_.check(name, value)
    return values
