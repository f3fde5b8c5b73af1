"""Chat templates: what they may use, and what they may not do."""

from __future__ import annotations

import datetime

import pytest

from lazygrad.models import template_limits
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
    monkeypatch.setattr(template_limits, "SECONDS", 0.05)
    loops = "".join("{% for x in range(90000) %}" for _ in range(4)) + "{% endfor %}" * 4
    with pytest.raises(TemplateRefused, match=r"does not end within 0.05 seconds"):
        render(loops)


def test_what_the_assistant_says_may_be_marked():
    source = (
        "{% set x = 1 %}{% generation %}{% set x = 2 %}<{{ messages[0].content }}>{% endgeneration %}{{ x }}"
    )
    assert render(source) == "<Hi <you>>1"
    nested = "{% for m in messages %}{% generation %}{{ m.role }}{% break %}{% endgeneration %}{% endfor %}"
    assert render(nested) == "user"
    with pytest.raises(TemplateRefused, match="is not a jinja2 template"):
        render("{% generation %}")


GROWING = "{% set n = namespace(x=START) %}{% for i in range(200) %}{% set n.x = STEP %}{% endfor %}{{ n.x }}"


def growing(start: str, step: str) -> str:
    return GROWING.replace("START", start).replace("STEP", step)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% set a=9 %}{% set b=a**a %}{{ b**b }}", "a number of more than 256 bits"),
        ("{{ 9 ** 9 ** 9 }}", "a number of more than 256 bits"),
        (growing("3", "n.x * n.x"), "a number of more than 256 bits"),
        ("{{ ('9' * 4000) | int }}", "a number of more than 256 bits"),
        ("{{ 5 | round(-1000000000) }}", "rounds to -1000000000 digits"),
        ("{{ 'x' * 10 ** 12 }}", "a value of"),
        ("{{ 1000000000000 * 'x' }}", "a value of"),
        ("{{ [0] * 10 ** 9 }}", "a value of"),
        (growing("'x'", "n.x + n.x"), "a value of more than"),
        (growing("'x'", "n.x ~ n.x"), "a value of"),
        (growing("'xx'", "n.x.replace('x', n.x)"), "a value of"),
        (growing("'xx'", "n.x | replace('x', n.x)"), "a value of"),
        (growing("'xx'", "n.x.join(n.x)"), "a value of"),
        (growing("'xx'", "n.x | join(n.x)"), "a value of"),
        (growing("'xx'", "'%s%s' % (n.x, n.x)"), "a value of"),
        (growing("'xx'", "'%s%s' | format(n.x, n.x)"), "a value of"),
        (growing("'xx'", "'{0}{0}'.format(n.x)"), "a value of"),
        (growing("[1]", "[n.x, n.x]"), "a value of more than"),
        (growing("[1]", "{1: n.x, 2: n.x}"), "a value of more than"),
        (growing("(1,)", "(n.x, n.x)"), "a value of more than"),
        (growing("1", "[n.x]"), "more than 100 levels deep"),
        ("{{ {" + "(" * 120 + "1" + ",)" * 120 + ": 1} }}", "levels deep|does not end|fails"),
        ("{{ '%1000000000d' % 1 }}", "a value of"),
        ("{{ '%*d' % (1000000000, 1) }}", "a value of"),
        ("{{ '{:1000000000}'.format(1) }}", "a value of"),
        ("{{ '{:{}}'.format(1, 1000000000) }}", "a value of"),
        ("{{ '{a:9999999999}'.format_map({'a': 1}) }}", "a value of"),
        ("{{ 'x'.ljust(10 ** 10) }}", "a value of"),
        ("{{ 'x'.zfill(10 ** 10) }}", "a value of"),
        ("{{ '\\t'.expandtabs(10 ** 10) }}", "a value of"),
        ("{{ 'x' | center(10000000000) }}", "a value of"),
        ("{{ 'x' | indent(10000000000, true) }}", "a value of"),
        ("{{ [1] | batch(10000000000, 0) | list }}", "a value of"),
        ("{{ [1] | slice(10000000000) | list }}", "a value of"),
        ("{{ messages | tojson(indent=10 ** 10) }}", "indents by more than 64 columns"),
        ("{{ [1, 2] | tojson(separators=('x' * 1000, ':')) }}", "indents by more than 64 columns"),
        ("{{ (1).to_bytes(10 ** 10, 'big') }}", "calls to_bytes of a int"),
        ("{{ 'x'.encode() }}", "calls encode of a text"),
        ("{{ lipsum(10 ** 6) }}", "fails on these messages"),
        ("{{ 'x' | urlize }}", "the filter urlize, which is not there"),
        ("{% set x %}" + "{{ 'x' * 1000000 }}" * 3 + "{% endset %}", "a value of"),
        ("{% for a in range(9999) %}{% set x = ('x' * 100000) ~ a %}{% endfor %}", "makes more than"),
        ("{% for a in range(99999) %}{{ 'x' * 10000 }}{% endfor %}", "a value of"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "does not end"),
        ("{{ " + "-" * 5000 + "1 }}", "does not end"),
        (
            "{% for x in [1] %}" * 22 + "{% endfor %}" * 22,
            "fails on these messages: too many statically nested",
        ),
        ("{{ " + " + ".join(["1"] * 1000) + " }}", "fails on these messages|does not end"),
        ("{{ (range(2000) | map('string') | list) * 8 | sum(start=[]) }}", "fails on these messages"),
    ],
)
def test_what_would_never_end_or_fill_the_memory_is_refused(source, message):
    with pytest.raises(TemplateRefused, match=message):
        render(source)


def test_texts_of_any_length_have_room():
    long = [{"role": "user", "content": "word\n" * 20_000}]
    source = (
        "{{ messages[0].content | trim | replace('word', 'words') }}{{ messages[0].content.split('\n')[0] }}"
    )
    assert len(render(source, long)) == 6 * 20_000 - 1 + 4
    turns = "{% for m in messages %}{% set n.x = n.x ~ m.content %}{% endfor %}"
    said = "{% set n = namespace(x='') %}" + turns + "{{ n.x }}"
    assert len(render(said, [{"role": "user", "content": "x" * 1000}] * 300)) == 300_000


def test_messages_have_roles():
    with pytest.raises(TypeError, match="a message is"):
        render("", messages=["Hi"])
