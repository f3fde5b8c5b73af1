"""Chat templates: what they may use, and what they may not do."""

from __future__ import annotations

import datetime

import pytest

from lazygrad.models import chat
from lazygrad.models.chat import ChatTemplate, TemplateRefused
from tests.helpers import needs

pytestmark = needs("jinja2")

USER = [{"role": "user", "content": "Hi <you>"}]


def render(source, messages=USER, **options):
    return ChatTemplate(source, {"bos_token": "<s>"}).render(messages, **options)


def test_messages_tokens_and_the_prompt_for_an_answer():
    source = (
        "{{ bos_token }}{% for m in messages %}\n    {{ m['role'] }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}"
    )
    assert render(source) == "<s>    user: Hi <you>\nassistant:"
    assert render(source, add_generation_prompt=False) == "<s>    user: Hi <you>\n"


def test_what_templates_are_written_for():
    assert render("{{ strftime_now('%Y') }}") == str(datetime.datetime.now().year)
    assert render("{{ {'a': '<é>'} | tojson }}") == '{"a": "<é>"}'
    assert render("{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}") == "1"
    assert render("{{ tools[0].name }}{{ thinking }}", tools=[{"name": "f"}], thinking=True) == "fTrue"
    assert render("{{ tools is none }}") == "True"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ raise_exception('roles must alternate') }}", "refuses the messages: roles must alternate"),
        ("{{ messages[7].content }}", "fails on these messages"),
        ("{{ 1 // 0 }}", "fails on these messages"),
        ("{% for %}", "is not a jinja2 template"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "fails on these messages"),
        ("{{ messages.append(1) }}", "fails on these messages"),
        ("{{ range(10000000) | list }}", "fails on these messages"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "does not end"),
        ("{% include '/etc/passwd' %}", "fails on these messages"),
    ],
)
def test_what_is_refused(source, message):
    with pytest.raises(TemplateRefused, match=message):
        render(source)


def test_a_template_that_goes_on_for_ever_is_interrupted(monkeypatch):
    monkeypatch.setattr(chat, "SECONDS", 0.05)
    loops = "".join("{% for x in range(90000) %}" for _ in range(4)) + "{% endfor %}" * 4
    with pytest.raises(TemplateRefused, match=r"does not end within 0.05 seconds"):
        render(loops)


def test_messages_have_roles():
    with pytest.raises(TypeError, match="a message is"):
        render("", messages=["Hi"])
