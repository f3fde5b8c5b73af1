"""The server, asked by the client that people use, and by clients that nobody wants."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest

from lazygrad.serving import app, connections
from lazygrad.serving import server as server_module
from lazygrad.serving.app import Limits
from tests.helpers import PATIENCE, needs, require
from tests.serving.toy import Toy, serving

pytestmark = needs("openai", "starlette", "uvicorn")


@pytest.fixture
def toy():
    return Toy()


@pytest.fixture
def server(toy):
    with serving(toy, slots=3, waiting=3) as server:
        yield server


@pytest.fixture(scope="module")
def shared():
    """A server for tests that leave nothing behind."""
    with serving(Toy()) as server:
        yield server


def client_of(server: Any, key: str = "any", kind: str = "OpenAI") -> Any:
    return getattr(require("openai"), kind)(
        base_url=server.url, api_key=key, max_retries=0, timeout=PATIENCE, http_client=None
    )


@pytest.fixture
def client(server):
    with client_of(server) as client:
        yield client


@pytest.fixture
def asker(shared):
    with client_of(shared) as client:
        yield client


def say(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def post(
    server: Any, body: bytes, path: str = "/chat/completions", **headers: str
) -> tuple[int, dict[str, Any]]:
    """The status and the JSON of a request that no client would send."""
    sent = {
        "Content-Type": "application/json",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    request = urllib.request.Request(server.url + path, body, sent)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@contextlib.contextmanager
def connection(server: Any, head: str = "", body: bytes = b"", receives: int = 0):
    """A client that speaks by hand."""
    with socket.socket() as sock:
        if receives:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        sock.settimeout(PATIENCE)
        sock.connect(("127.0.0.1", server.port))
        if head:
            sock.sendall(f"{head}\r\nHost: localhost\r\n".encode() + b"\r\n" * (not body))
        if body:
            sock.sendall(b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        yield sock


def until_closed(sock: socket.socket) -> bytes:
    """What comes until the server closes; a connection that is cut is closed too."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := sock.recv(65536):
            found += part
    return found


# ---- answers ----


def test_the_models(asker):
    [model] = asker.models.list()
    assert (model.id, model.object, model.owned_by) == ("toy", "model", "lazygrad")
    assert asker.models.retrieve("toy").id == "toy"


def test_a_completion(asker):
    answer = asker.completions.create(model="toy", prompt="abc", max_tokens=10)
    [choice] = answer.choices
    assert (choice.text, choice.finish_reason, choice.index) == ("ABC", "stop", 0)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (
        3,
        4,
        7,
    )
    assert answer.object == "text_completion"


def test_a_completion_has_16_tokens_unless_told(asker):
    [choice] = asker.completions.create(model="toy", prompt="forever").choices
    assert (choice.text, choice.finish_reason) == ("la " * 16, "length")


@pytest.mark.parametrize("prompt", [[97, 98], ["ab"], [[97, 98]]])
def test_prompts_in_other_forms(prompt, asker):
    assert asker.completions.create(model="toy", prompt=prompt).choices[0].text == "AB"


def test_several_prompts_and_choices(client, toy):
    answer = client.completions.create(model="toy", prompt=["ab", "cd"], n=2, seed=7, echo=True)
    assert [choice.text for choice in answer.choices] == ["abAB", "abAB", "cdCD", "cdCD"]
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert [row["sampling"].seed for row in toy.added] == [7, 8, 7, 8]
    assert answer.usage.prompt_tokens == 4


def test_a_chat(client):
    messages = [{"role": "developer", "content": "Be loud."}, *say("hello")]
    answer = client.chat.completions.create(model="toy", messages=messages)
    [choice] = answer.choices
    assert (choice.message.role, choice.message.content) == ("assistant", "HELLO")
    assert choice.finish_reason == "stop"
    assert answer.object == "chat.completion"


def test_a_message_in_parts(client):
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    answer = client.chat.completions.create(model="toy", messages=[{"role": "user", "content": parts}])
    assert answer.choices[0].message.content == "AB"


def test_how_tokens_are_chosen(client, toy):
    client.chat.completions.create(
        model="toy", messages=say("abc"), temperature=0.5, top_p=0.25, seed=3, presence_penalty=1,
        frequency_penalty=-1, stop=["C", "D"], max_completion_tokens=9, user="me",
        extra_body={"top_k": 4, "min_p": 0.125, "repetition_penalty": 1.5},
    )  # fmt: skip
    [row] = toy.added
    sampling = row["sampling"]
    assert (sampling.temperature, sampling.top_p, sampling.seed) == (0.5, 0.25, 3)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (1, -1)
    assert (sampling.top_k, sampling.min_p, sampling.repetition_penalty) == (4, 0.125, 1.5)
    assert (row["max_tokens"], row["stop"]) == (9, ("C", "D"))


def test_a_chat_may_be_as_long_as_the_context(client, toy):
    client.chat.completions.create(model="toy", messages=say("abc"))
    assert toy.added[0]["max_tokens"] == toy.context - 3


def test_the_server_may_allow_less(toy):
    with serving(toy, limits=Limits(tokens=5)) as server, client_of(server) as client:
        answer = client.chat.completions.create(model="toy", messages=say("forever"), max_tokens=100)
        assert answer.usage.completion_tokens == 5


# ---- streams ----


def test_a_streamed_chat(client, toy):
    toy.hold()
    stream = client.chat.completions.create(
        model="toy", messages=say("abc"), stream=True, stream_options={"include_usage": True}
    )
    toy.allow(1)
    chunks = [next(stream), next(stream)]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[1].choices[0].delta.content == "A"
    toy.allow()
    chunks += list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "ABC"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == 7
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_streamed_completion_with_choices(client):
    texts = ["", ""]
    for chunk in client.completions.create(model="toy", prompt="abc", n=2, stream=True):
        [choice] = chunk.choices
        texts[choice.index] += choice.text
        assert chunk.usage is None
    assert texts == ["ABC", "ABC"]


def test_a_stream_as_it_goes_over_the_wire(shared):
    body = json.dumps({"model": "toy", "prompt": "a", "stream": True}).encode()
    with connection(shared, "POST /v1/completions HTTP/1.0", body) as sock:
        head, _, text = until_closed(sock).partition(b"\r\n\r\n")
    assert b"content-type: text/event-stream" in head
    first, second, done, rest = text.decode().split("\n\n")
    assert json.loads(first.removeprefix("data: "))["choices"][0]["text"] == "A"
    assert json.loads(second.removeprefix("data: "))["choices"][0]["finish_reason"] == "stop"
    assert (done, rest) == ("data: [DONE]", "")


def test_a_stream_that_is_silent_shows_that_it_is_there(toy):
    toy.hold()
    with serving(toy, limits=Limits(quiet_s=0.01)) as server:
        body = json.dumps({"model": "toy", "messages": say("a"), "stream": True}).encode()
        with connection(server, "POST /v1/chat/completions HTTP/1.0", body) as sock:
            found = b""
            while found.count(b": still computing\n\n") < 2:
                found += sock.recv(65536)
            toy.allow()
            assert b'"content":"A"' in until_closed(sock)


# ---- several at once ----


def test_requests_that_come_together_share_steps(server, toy):
    async def ask() -> list[str]:
        async with client_of(server, kind="AsyncOpenAI") as client:
            asked = [
                asyncio.create_task(client.chat.completions.create(model="toy", messages=say(text)))
                for text in ("one", "two", "three")
            ]
            await asyncio.to_thread(toy.until, lambda: len(toy.added) >= 1)
            toy.allow(1)
            await asyncio.to_thread(toy.until, lambda: len(toy.steps) == 1)
            while server.engine.state()["active"] + server.engine.state()["waiting"] < 3:
                await asyncio.sleep(0.01)
            toy.allow()
            return [answer.choices[0].message.content for answer in await asyncio.gather(*asked)]

    toy.hold()
    assert asyncio.run(ask()) == ["ONE", "TWO", "THREE"]
    assert {0, 1, 2} in toy.steps
    assert len(toy.steps) < len("one two three")  # one behind the other would take one for each letter


def test_async_streams_of_several(server, toy):
    async def read(client: Any, text: str) -> str:
        stream = await client.chat.completions.create(model="toy", messages=say(text), stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def ask() -> list[str]:
        async with client_of(server, kind="AsyncOpenAI") as client:
            return await asyncio.gather(*(read(client, f"text {number}") for number in range(6)))

    assert asyncio.run(ask()) == [f"TEXT {number}" for number in range(6)]


def test_too_many_are_told_to_come_back(server, toy):
    openai = require("openai")
    toy.hold()
    with client_of(server) as client, contextlib.ExitStack() as streams:
        body = json.dumps({"model": "toy", "prompt": "abc", "n": 6}).encode()
        streams.enter_context(connection(server, "POST /v1/completions HTTP/1.1", body))
        toy.until(lambda: len(toy.running) == 3)
        with pytest.raises(openai.RateLimitError, match="try again in") as refused:
            client.completions.create(model="toy", prompt="abc")
        assert int(refused.value.response.headers["retry-after"]) >= 1
        assert refused.value.body["type"] == "rate_limit_error"
        toy.allow()


# ---- clients that leave, and those that do not read ----


def test_a_client_that_leaves_its_stream_frees_its_place(client, server, toy):
    toy.hold()
    stream = client.chat.completions.create(model="toy", messages=say("forever"), stream=True)
    toy.allow(3)
    next(stream)
    stream.close()
    toy.allow(900)
    toy.until(lambda: toy.cancelled)
    assert len(toy.steps) < 900
    assert toy.running == set()
    toy.allow()
    assert client.completions.create(model="toy", prompt="ab").choices[0].text == "AB"


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_is_killed_frees_its_place(stream, server, toy):
    toy.hold()
    body = json.dumps({"model": "toy", "messages": say("forever"), "stream": stream}).encode()
    with connection(server, "POST /v1/chat/completions HTTP/1.1", body):
        toy.until(lambda: toy.running)
    toy.allow(1)
    toy.until(lambda: toy._allowed == 0)
    while not server.engine.state().get("cancelled") and len(toy.steps) < 900:
        toy.allow(1)
    toy.allow(1)
    toy.until(lambda: toy.cancelled)


def test_a_client_that_leaves_while_it_waits(server, toy):
    toy.hold()
    with client_of(server) as client:
        body = json.dumps({"model": "toy", "prompt": "abc", "n": 3}).encode()
        with connection(server, "POST /v1/completions HTTP/1.1", body) as sock:
            toy.until(lambda: len(toy.running) == 3)
            later = json.dumps({"model": "toy", "messages": say("gone")}).encode()
            with connection(server, "POST /v1/chat/completions HTTP/1.1", later):
                until(lambda: server.engine.state()["waiting"] == 1)
            until(lambda: server.engine._leaving)
            toy.allow()
            assert b"200 OK" in sock.recv(65536)
        assert client.completions.create(model="toy", prompt="next").choices[0].text == "NEXT"
    assert [row["text"] for row in toy.added] == ["abc", "abc", "abc", "next"]


@contextlib.contextmanager
def at_a_pace(toy):
    """Steps are not so quick that the server itself could not follow."""
    done = threading.Event()

    def pace() -> None:
        while not done.wait(0.01):
            toy.allow(20)

    toy.hold()
    thread = threading.Thread(target=pace)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        toy.allow()


@pytest.mark.parametrize("reads_at_last", [True, False])
def test_a_client_that_does_not_read_holds_up_nobody_and_is_cut_off(reads_at_last, toy, monkeypatch):
    monkeypatch.setattr(app, "DROP_S", PATIENCE if reads_at_last else 0.01)
    toy.context = 1_000_000
    body = json.dumps({"model": "toy", "messages": say("forever!"), "stream": True}).encode()
    head = "POST /v1/chat/completions HTTP/1.0"
    with (
        serving(toy, slots=3, waiting=3, unread=200) as server,
        client_of(server) as client,
        connection(server, head, body, receives=65536) as slow,
        at_a_pace(toy),
    ):
        for text in ("one", "two"):
            assert client.completions.create(model="toy", prompt=text).choices[0].text == text.upper()
        toy.until(lambda: toy.cancelled)
        assert server.engine.state()["dropped"] == 1
        client.close()
        if not reads_at_last:
            until(lambda: not server._server.server_state.connections)
        found = until_closed(slow)
        assert not reads_at_last or b"the client reads too slowly" in found
        assert b"[DONE]" not in found


def test_a_client_that_says_half_of_what_it_wants(toy, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_S", 0.05)
    with serving(toy, limits=Limits(body_s=0.05)) as server:
        for head in ("", "POST /v1/chat/comp"):
            with connection(server) as sock:
                sock.sendall(head.encode())
                assert until_closed(sock) == b""
        monkeypatch.setattr(connections, "HEAD_S", PATIENCE)
        with connection(server) as sock:
            sock.sendall(
                b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            )
            sock.sendall(b"Content-Length: 100\r\n\r\n{")
            assert b"408" in until_closed(sock).splitlines()[0]


def test_a_client_that_takes_no_answer_is_cut_off(toy, monkeypatch):
    monkeypatch.setattr(connections, "TAKE_S", 0.05)
    toy.name = "x" * 30_000_000
    with serving(toy) as server, connection(server, "GET /v1/models HTTP/1.1", receives=65536) as sock:
        sock.recv(1)
        until(lambda: not server._server.server_state.connections)
        assert len(until_closed(sock)) < 30_000_000


def until(holds: Any) -> None:
    """For what changes without telling."""
    pause = threading.Event()
    while not holds():
        pause.wait(0.01)


# ---- what is refused ----


def test_a_model_that_is_not_there(asker):
    openai = require("openai")
    with pytest.raises(openai.NotFoundError, match="'gpt-4' does not exist here; there is 'toy'") as refused:
        asker.chat.completions.create(model="gpt-4", messages=say("a"))
    assert refused.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError):
        asker.models.retrieve("a/b")


def test_a_prompt_that_is_too_long(asker):
    openai = require("openai")
    with pytest.raises(openai.BadRequestError, match="the context of this model is 1000 tokens") as refused:
        asker.chat.completions.create(model="toy", messages=say("a" * 1000))
    assert refused.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError, match="998 of the prompt with 3 of the answer are more"):
        asker.completions.create(model="toy", prompt="a" * 998, max_tokens=3)
    assert asker.completions.create(model="toy", prompt="a" * 998, max_tokens=2).choices[0].text == "AA"


def test_more_answers_than_there_is_ever_room_for(client):
    openai = require("openai")
    with pytest.raises(
        openai.BadRequestError, match="3 prompts with 3 answers each are more than"
    ) as refused:
        client.completions.create(model="toy", prompt=["a", "b", "c"], n=3)
    assert refused.value.code == "too_many_answers"


def test_what_the_model_refuses(asker):
    openai = require("openai")
    with pytest.raises(openai.BadRequestError, match="chat template refuses"):
        asker.chat.completions.create(model="toy", messages=say("refused"))
    with pytest.raises(openai.BadRequestError, match="token 300 is not one of the 256"):
        asker.completions.create(model="toy", prompt=[300])
    with pytest.raises(openai.BadRequestError, match="the prompt is empty"):
        asker.completions.create(model="toy", prompt="")
    with pytest.raises(openai.BadRequestError, match="the prompt is bad"):
        asker.completions.create(model="toy", prompt="badly", stream=True)


def test_a_step_that_fails(client, toy, capsys):
    openai = require("openai")
    toy.fault = RuntimeError("no memory")
    with pytest.raises(openai.InternalServerError, match="no memory"):
        client.completions.create(model="toy", prompt="abc")
    toy.hold()
    stream = client.completions.create(model="toy", prompt="abc", stream=True)
    toy.allow(1)
    assert next(stream).choices[0].text == "A"
    toy.fault = RuntimeError("no memory")
    toy.allow()
    with pytest.raises(openai.APIError, match="no memory"):
        list(stream)
    assert client.completions.create(model="toy", prompt="abc").choices[0].text == "ABC"
    assert "RuntimeError: no memory" in capsys.readouterr().err


def test_a_body_that_is_too_large(toy):
    with serving(toy, limits=Limits(body_bytes=1000)) as server:
        status, answer = post(server, b" " * 1001)
        assert (status, answer["error"]["code"]) == (413, "body_too_large")
        with connection(server) as sock:  # one that does not say its size
            sock.sendall(
                b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            )
            sock.sendall(b"Transfer-Encoding: chunked\r\n\r\n" + b"200\r\n" + b" " * 512 + b"\r\n")
            sock.sendall(b"200\r\n" + b" " * 512 + b"\r\n")
            assert b"413" in sock.recv(65536).splitlines()[0]
        status, answer = post(server, b'{"model": "toy", "prompt": "ab"}', "/completions")
        assert (status, answer["choices"][0]["text"]) == (200, "AB")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON"),
        (b"{", "the body is not JSON"),
        (b'{"model": "toy"', "the body is not JSON"),
        (b"[1]", "must be a JSON object, not an array"),
        (b"null", "must be a JSON object, not null"),
        (b"\xff\xfe{}", "is not UTF-8"),
        (b'{"model": NaN}', "NaN is not a JSON number"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"n": ' + b"9" * 5000 + b"}", "the body is not JSON"),
    ],
)  # fmt: skip
def test_bodies_that_are_not_json(body, message, shared):
    status, answer = post(shared, body)
    assert status == 400
    assert message in answer["error"]["message"]
    assert answer["error"]["type"] == "invalid_request_error"


def test_a_body_of_another_type(shared):
    status, answer = post(
        shared, b'{"model": "toy", "prompt": "ab"}', "/completions", Content_Type="text/plain"
    )
    assert status == 415
    assert "application/json, not 'text/plain'" in answer["error"]["message"]


def test_places_that_are_not_there(shared):
    status, answer = post(shared, b"{}", "/embeddings")
    assert (status, answer["error"]["message"]) == (404, "there is no /v1/embeddings")
    status, answer = post(shared, b"{}", "/models")
    assert (status, answer["error"]["message"]) == (405, "POST is not possible here")


def test_the_state_of_the_server(server, client):
    client.completions.create(model="toy", prompt="abc")
    with urllib.request.urlopen(server.url.replace("/v1", "/health"), timeout=PATIENCE) as answer:
        state = json.load(answer)
    assert (state["status"], state["model"], state["slots"], state["requests"], state["tokens"]) == (
        "ok", "toy", 3, 1, 4,
    )  # fmt: skip


# ---- keys and names ----


def test_a_key(toy):
    openai = require("openai")
    with serving(toy, key="secret") as server:
        for wrong in ("Secret", "secre", "secret2", "gehéim"):
            status, answer = post(server, b"{}", Authorization=f"Bearer {wrong}")
            assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
        assert post(server, b"{}")[1]["error"]["message"].startswith("a key is needed")
        assert post(server, b"{}", Authorization="Basic secret")[0] == 401
        with client_of(server, "wrong") as client, pytest.raises(openai.AuthenticationError):
            client.models.list()
        with client_of(server, "secret") as client:
            assert client.completions.create(model="toy", prompt="ab").choices[0].text == "AB"


def test_another_name_that_leads_to_this_machine_is_refused(shared):
    status, answer = post(shared, b"{}", Host="evil.example:8000")
    assert (status, answer["error"]["code"]) == (403, "wrong_host")
    for name in ("localhost:1", "127.0.0.1", "[::1]:8000"):
        assert post(shared, b"{}", Host=name)[0] == 400


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/v1/models/toy", "/nowhere", "/v1/completions"])
def test_whatever_another_name_asks_for_is_refused(shared, path):
    for name in ("evil.example", "127.0.0.1.evil.example", "evil.example:8000", ""):
        with connection(shared) as sock:
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            found = until_closed(sock)
        assert found.startswith(b"HTTP/1.1 403"), found
        assert b"wrong_host" in found


def test_without_its_libraries_it_says_how_to_get_them(toy, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(
        ModuleNotFoundError, match=r'the server needs uvicorn: pip install "lazygrad\[serve\]"'
    ):
        server_module.Server(toy, port=0)


# ---- the end ----


def test_ending_lets_answers_finish_and_refuses_new_ones(toy):
    openai = require("openai")
    toy.hold()
    with serving(toy) as server, client_of(server) as client:
        stream = client.completions.create(model="toy", prompt="abc", stream=True)
        toy.allow(1)
        assert next(stream).choices[0].text == "A"
        server.stop()
        until(lambda: server.engine._closed)
        with pytest.raises((openai.APIConnectionError, openai.InternalServerError)):
            client.completions.create(model="toy", prompt="abc")
        toy.allow()
        assert "".join(chunk.choices[0].text for chunk in stream) == "BC"


def test_ending_cuts_a_stream_that_does_not_end(toy, monkeypatch):
    openai = require("openai")
    monkeypatch.setattr(server_module, "CUT_S", PATIENCE)
    toy.hold()
    with serving(toy, grace_s=0.05) as server, client_of(server) as client:
        stream = client.chat.completions.create(model="toy", messages=say("forever"), stream=True)
        toy.allow(1)
        next(stream)
        server.stop()
        until(lambda: server.engine._stopping)
        toy.allow(1)
        with pytest.raises(openai.APIError, match="the server is shutting down"):
            list(stream)
