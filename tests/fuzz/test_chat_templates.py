"""Chat templates of strangers: each gives a text, or is refused, in bounded time and memory."""

from __future__ import annotations

import re
import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad.models import template_limits
from lazygrad.models.chat import ChatTemplate, TemplateRefused
from tests.fuzz.files import MOST_GROWTH, changed, in_time, outcomes
from tests.fuzz.harness import fuzzed
from tests.helpers import needs

pytestmark = needs("jinja2")

MESSAGES = [{"role": "user", "content": "Hi, <you>\n"}, {"role": "assistant", "content": "x" * 300}]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"a": [1, 2.5, None, True]}}}]

# ---- programs that grow ----

LEAVES = r"""
n.x|n.y|n.x|n.y|i|0|1|-1|9|99999|2.5|1e300|none|true|''|'x'|'ab\n'|'\U0001f600'|'%s'|'%999d'|'{}'|'{0:>{1}}'
[]|[1]|{}|{'a': 1}|(1,)|messages|messages[0]|messages[1].content|tools|range(99)|namespace(a=1)|loop
"""
leaves = st.sampled_from(re.split(r"[|\n]", LEAVES.strip()))
#: What is written around one or two values.
WRITTEN = """
({0} + {1})  ({0} * {1})  ({0} ** {1})  ({0} ~ {1})  ({0} % {1})  ({0} - {1})  ({0} // {1})  ({0} / {1})
({0} == {1})  ({0} in {1})  ({0} < {1})  ({0} and {1})  (not {0})  (-{0})  ({0} if {1} else {0})  {0}({1})
[{0}, {1}]  [{0}]  ({0}, {1})  {{'a': {0}, 'b': {1}}}  {{{0}: {1}}}  {0}[{1}]  {0}[{1}:]  {0}[::-1]
{0}.join({1})
{0}.replace({1}, {0})  {0}.split({1})  {0}.rsplit({1})  {0}.ljust({1})  {0}.zfill({1})  {0}.format({1}, {0})
{0}.format_map({1})  {0}.expandtabs({1})  {0}.strip({1})  {0}.rfind({1})  {0}.get({1})  {0}.count({1})
{0}.index({1})  {0}.append({1})  {0}.to_bytes({1})  {0}.items()  {0}.splitlines()  {0}.title()  {0}.encode()
{0}.mro()  ({0} | tojson)  ({0} | string)  ({0} | int)  ({0} | int(0, {1}))  ({0} | float)  ({0} | abs)
({0} | sum)  ({0} | sum(start={1}))  ({0} | length)  ({0} | first)  ({0} | last)  ({0} | escape)
({0} | urlize)
({0} | upper)  ({0} | safe)  ({0} | wordcount)  ({0} | min)  ({0} | max)  ({0} | join({1}))
({0} | format({1}))
({0} | indent({1}))  ({0} | center({1}))  ({0} | tojson({1}))  ({0} | round({1}))  ({0} | trim({1}))
({0} | truncate({1}))  ({0} | default({1}))  ({0} | attr({1}))  ({0} | replace({1}, {0}))  ({0} | list)
({0} | batch({1}, 0) | list)  ({0} | slice({1}) | list)  ({0} | map('string') | list)
({0} | map('list') | list)
({0} | map(attribute={1}) | list)  ({0} | sort | list)  ({0} | unique | list)  ({0} | dictsort)
({0} | items | list)  ({0} | groupby({1}))  ({0} | reverse | list)  ({0} | select | list)
({0} | selectattr({1}) | list)  range({0})  raise_exception({0})  strftime_now({0})  m({0}, {1})
dict(a={0}, b={1})  cycler({0}, {1}).next()
"""
FORMS = re.split(r"  |\n", WRITTEN.strip())
expressions = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda form, first, second: form.format(first, second), st.sampled_from(FORMS), inner, inner
    ),
    max_leaves=6,
)
steps = st.tuples(st.sampled_from(["x", "y"]), expressions).map(
    lambda step: f"{{% set n.{step[0]} = {step[1]} %}}"
)
statements = st.one_of(
    steps,
    steps,
    expressions.map(lambda value: f"{{{{ {value} }}}}"),
    expressions.map(lambda value: f"{{% for i in {value} %}}{{{{ i }}}}{{% set n.x = i %}}{{% endfor %}}"),
    expressions.map(
        lambda value: f"{{% set c %}}{{{{ n.x }}}}{{{{ {value} }}}}{{% endset %}}{{% set n.x = c %}}"
    ),
    expressions.map(lambda value: f"{{% filter upper %}}{{{{ {value} }}}}{{% endfilter %}}"),
    expressions.map(lambda value: f"{{% generation %}}{{{{ {value} }}}}{{% endgeneration %}}"),
)
MACRO = "{% macro m(a, b) %}{{ a }}{{ b }}{{ varargs }}{% endmacro %}"


def program(begin: tuple[str, str], body: list[str], turns: int) -> str:
    first = f"{MACRO}{{% set n = namespace(x={begin[0]}, y={begin[1]}) %}}"
    return f"{first}{{% for i in range({turns}) %}}{''.join(body)}{{% endfor %}}{{{{ n.x }}}}"


programs = st.builds(
    program,
    st.tuples(leaves, leaves).filter(lambda both: not {"n.x", "n.y", "i", "loop"} & {*both}),
    st.lists(statements, min_size=1, max_size=3),
    st.sampled_from([1, 40, 40, 99999]),
)

# ---- texts that are damaged ----

CHAT = """{%- if messages[0].role == 'system' %}{% set rest = messages[1:] %}
{% else %}{% set rest = messages %}{% endif %}
{%- for m in rest if m.role != 'tool' %}{{ bos_token ~ m['role'] + '\\n' }}{% generation %}
{{ m.content.split('</t>')[-1] | trim }}{% endgeneration %}
{% if loop.last and not tools is none %}{{ tools | tojson(indent=2) }}{% endif %}
{%- endfor %}{% if add_generation_prompt %}{{ '<|im_start|>' }}{% endif %}"""
damaged = changed(CHAT.encode()).map(lambda data: data.decode("utf-8", "replace"))


@pytest.fixture(scope="module", autouse=True)
def impatient():
    """Programs that loop are many: none gets seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(template_limits, "SECONDS", 0.2)
        yield


def refused(source: str) -> str:
    try:
        found = ChatTemplate(source, {"bos_token": "<s>"}).render(MESSAGES, TOOLS)
    except TemplateRefused as error:
        return str(error)
    assert type(found) is str
    return "rendered"


@fuzzed(quick=150, sweep=10_000)
@given(st.one_of(programs, programs, programs, damaged))
def test_chat_templates(source):
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with in_time():
        said = refused(source)
    outcomes[said[:60]] += 1
    assert len(said) < 2000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MOST_GROWTH
