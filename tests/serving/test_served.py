"""The server on a real model, a small one with random weights: answers are those of the model alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from lazygrad import models
from lazygrad.models import Sampling
from lazygrad.serving.app import Limits
from lazygrad.serving.served import ServedModel
from tests.helpers import PATIENCE, needs, require
from tests.models import tiny_decoder as tiny
from tests.serving.toy import serving

pytestmark = needs("openai", "starlette", "uvicorn", "tokenizers", "jinja2")
TEMPLATE = "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tiny.folder(tmp_path_factory.mktemp("tiny") / "words", tokenizer=True)
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    return models.load(folder)


@pytest.fixture(scope="module")
def server(model):
    served = ServedModel(model, "tiny", slots=3, context=128, defaults={"temperature": 0.0})
    with serving(served, slots=3, grace_s=1.0, limits=Limits()) as server:
        yield server


@pytest.fixture
def client(server):
    with require("openai").OpenAI(
        base_url=server.url, api_key="any", max_retries=0, timeout=PATIENCE
    ) as client:
        yield client


def alone(model: Any, prompt: str, **how: Any) -> str:
    return "".join(model.generate(prompt, **how))


def test_a_completion_is_what_the_model_generates(client, model):
    answer = client.completions.create(model="tiny", prompt="the cat", max_tokens=12)
    assert answer.choices[0].text == alone(model, "the cat", max_tokens=12)
    assert answer.usage.prompt_tokens == len(model.tokenizer.encode("the cat"))
    assert answer.usage.completion_tokens <= 12


def test_a_seed(client, model):
    answer = client.completions.create(
        model="tiny", prompt="the cat", max_tokens=12, n=2, seed=5, temperature=1.5
    )
    expected = [alone(model, "the cat", max_tokens=12, sampling=Sampling(1.5, seed=seed)) for seed in (5, 6)]
    assert [choice.text for choice in answer.choices] == expected
    assert expected[0] != expected[1]


def test_a_chat_is_written_by_the_models_template(client, model):
    messages = [{"role": "system", "content": "be"}, {"role": "user", "content": "a cat"}]
    answer = client.chat.completions.create(model="tiny", messages=messages, max_tokens=8)
    tokens = model.tokenizer.encode("system be user a cat ", special=False)
    assert answer.choices[0].message.content == alone(model, tokens, max_tokens=8)


PROMPTS = ["the", "a cat", "what is the", "who", "th, th, th"]


def test_answers_that_share_steps_are_what_each_is_alone(server, client, model):
    answer = client.completions.create(model="tiny", prompt=PROMPTS, max_tokens=20)
    assert [choice.text for choice in answer.choices] == [
        alone(model, each, max_tokens=20) for each in PROMPTS
    ]
    assert server.engine.counts["most_together"] == 3


def test_streams_of_several_at_once_are_what_each_is_alone(server, model):
    async def read(client: Any, prompt: str) -> str:
        stream = await client.completions.create(model="tiny", prompt=prompt, max_tokens=20, stream=True)
        return "".join([chunk.choices[0].text async for chunk in stream])

    async def ask() -> list[str]:
        async with require("openai").AsyncOpenAI(
            base_url=server.url, api_key="any", max_retries=0, timeout=PATIENCE
        ) as client:
            return await asyncio.gather(*(read(client, prompt) for prompt in PROMPTS))

    assert asyncio.run(ask()) == [alone(model, prompt, max_tokens=20) for prompt in PROMPTS]


def test_a_stop_word_is_not_in_the_text(client, model):
    whole = alone(model, "the cat", max_tokens=30)
    stop = whole[3:5]
    answer = client.completions.create(model="tiny", prompt="the cat", max_tokens=30, stop=stop)
    assert answer.choices[0].text == whole[: whole.index(stop)]
    assert answer.choices[0].finish_reason == "stop"


def test_the_context_of_the_server(client):
    openai = require("openai")
    with pytest.raises(openai.BadRequestError, match="the context of this model is 128 tokens"):
        client.completions.create(model="tiny", prompt="the cat", max_tokens=128)
    with pytest.raises(openai.BadRequestError, match="token 64 is not one of the 64 of this model"):
        client.completions.create(model="tiny", prompt=[64])


def test_a_model_without_a_vocabulary_or_a_template(tmp_path, model, monkeypatch):
    mute = models.load(tiny.folder(tmp_path / "mute"))
    with pytest.raises(ValueError, match="mute has no tokenizer"):
        ServedModel(mute, "mute")
    monkeypatch.setattr(model.tokenizer, "template", None)
    with pytest.raises(ValueError, match="no chat template"):
        ServedModel(model, "tiny").chat_tokens([{"role": "user", "content": "a"}])


def test_openais_temperature_holds_where_none_is_given(model):
    assert ServedModel(model, "tiny").sampling() == Sampling(temperature=1.0)
    assert ServedModel(model, "tiny", defaults={"top_k": 5}).sampling(temperature=0.5) == Sampling(0.5, 5)
