"""What a request may hold: every field refuses what it is not, by its name; no body does more than that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad.serving.errors import ApiError
from lazygrad.serving.requests import CHAT, COMPLETION, anything, parse_chat, parse_completion, parse_json

PLAIN = {
    parse_completion: {"model": "m", "prompt": "a"},
    parse_chat: {"model": "m", "messages": [{"role": "user", "content": "a"}]},
}
FIELDS = [(parse_completion, COMPLETION), (parse_chat, CHAT)]
CHECKED = [
    pytest.param(parse, name, id=f"{parse.__name__}-{name}")
    for parse, fields in FIELDS
    for name, field in fields.items()
    if field.check is not anything
]
#: One value of each type; a field takes some of them and refuses the others.
VALUES: list[Any] = [True, 10**30, -1.5, "", [], {}, [None], {"a": 1}, [[]], [{}], [1.5], "\ud800"]


def error_of(parse: Any, body: Any) -> ApiError | None:
    """The refusal of a body; None for one that is taken."""
    try:
        parse(body)
    except ApiError as error:
        return error
    return None


def refused(parse: Any, **fields: Any) -> ApiError:
    error = error_of(parse, PLAIN[parse] | fields)
    assert error is not None
    assert error.status == 400
    return error


@pytest.mark.parametrize(("parse", "name"), CHECKED)
def test_each_field_refuses_what_it_is_not(parse, name):
    errors = [error_of(parse, PLAIN[parse] | {"stream": True} | {name: value}) for value in VALUES]
    found = [error for error in errors if error is not None]
    assert len(found) >= 6
    assert {error.status for error in found} == {400}
    assert all(error.param.startswith(name) and f"'{error.param}" in error.message for error in found)


@pytest.mark.parametrize(("parse", "fields"), FIELDS)
def test_null_is_as_if_the_field_was_not_there(parse, fields):
    nulls = {name: None for name in fields if name not in PLAIN[parse]}
    assert parse(PLAIN[parse] | nulls) == parse(PLAIN[parse])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temperature": "warm"}, "'temperature' must be a number from 0 to 2, not a string"),
        ({"temperature": 2.5}, "'temperature' must be a number from 0 to 2, not 2.5"),
        ({"temperature": True}, "'temperature' must be a number from 0 to 2, not a boolean"),
        ({"n": 0}, "'n' must be a whole number from 1 to 16, not 0"),
        ({"n": 1.0}, "'n' must be a whole number from 1 to 16, not a number"),
        ({"max_tokens": 0}, "'max_tokens' must be a whole number from 1 to"),
        ({"stop": ["a"] * 5}, "'stop' must be at most 4 texts, not 5"),
        ({"stop": ""}, "'stop' must be texts of 1 to 512 characters, not one of 0"),
        ({"stop": [1]}, "'stop' must be a string or an array of strings"),
        ({"stream": 1}, "'stream' must be true or false, not a whole number"),
        ({"stream_options": {"include_usage": True}}, "'stream_options' is for streams"),
        ({"stream": True, "stream_options": {"x": 1}}, "'stream_options' has no field 'x'"),
        ({"model": None}, "'model' is missing"),
        ({"messages": None}, "'messages' is missing"),
        ({"messages": []}, "'messages' must be 1 to 4096 messages, not 0"),
        ({"messages": ["a"]}, "'messages[0]' must be an object, not a string"),
        ({"messages": [{"role": "king", "content": ""}]}, "'messages[0].role' must be one of system"),
        ({"messages": [{"role": "user"}]}, "'messages[0].content' must be a string, not null"),
        ({"messages": [{"role": "tool", "content": ""}]}, "does not support tools"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "reads text only, and 'messages[0].content[0]' is of type 'image_url'",
        ),
        ({"logprobs": True}, "this server does not support 'logprobs'"),
        ({"tools": [{"type": "function"}]}, "this server does not support 'tools'"),
        ({"logit_bias": {"1": 2}}, "this server does not support 'logit_bias'"),
        ({"response_format": {"type": "json_object"}}, "this server answers in plain text"),
        ({"temprature": 1}, "there is no field 'temprature' in this request"),
    ],
)
def test_what_is_said(fields, message):
    assert message in refused(parse_chat, **fields).message


def test_what_asks_for_nothing_is_taken():
    nothing = {"logprobs": False, "tools": [], "logit_bias": {}, "response_format": {"type": "text"}}
    assert parse_chat(PLAIN[parse_chat] | nothing | {"user": "me", "store": True}).n == 1
    assert parse_completion(PLAIN[parse_completion] | {"best_of": 1, "suffix": ""}).max_tokens == 16


def test_echo_is_for_texts():
    assert refused(parse_completion, prompt=[1], echo=True).param == "echo"


def test_of_two_lengths_the_newer_name_holds():
    assert parse_chat(PLAIN[parse_chat] | {"max_tokens": 5, "max_completion_tokens": 7}).max_tokens == 7


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(("parse", "fields"), FIELDS)
@given(data=st.data())
def test_no_value_does_more_than_to_be_refused(parse, fields, data):
    names = st.sampled_from([*fields, "another"])
    body = PLAIN[parse] | data.draw(st.dictionaries(names, ANY, max_size=3))
    error = error_of(parse, body)
    assert error is None or error.status == 400
    json.dumps(error and error.body()).encode()


@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_body_does_more_than_to_be_refused(body):
    error = error_of(parse_json, body)
    assert error.status == 400 if error else isinstance(parse_json(body), dict)
