"""The routes of the server: a request is read within limits, checked, computed by the engine, and answered.

Whatever waits for a client waits here, in a task of that client; the engine never does. A client that
leaves is noticed while its request waits or is computed, and gives its place in the batch back.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .engine import Batch, End, Engine, Event, Failed, Row, Ticket, Token
from .errors import ApiError
from .replies import STILL_THERE, Reply, event, model_object, to_bytes
from .requests import Ask, parse_chat, parse_completion, parse_json

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

#: Names of this machine, for a server that only this machine should reach.
LOOPBACK = ("localhost", "127.0.0.1", "::1")
#: How long a client that was dropped may take to read why.
DROP_S = 1.0


class Served(Protocol):
    """A model as the server sees it."""

    name: str  #: what clients call it
    context: int  #: how many tokens a prompt and its answer may have together

    def batch(self) -> Batch:
        """A new batch of sequences, with as many places as the engine has slots."""

    def tokens(self, prompt: str | list[int]) -> list[int]:
        """The tokens of a prompt; ValueError where there is none such."""

    def chat_tokens(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """The tokens of a conversation, up to where the assistant speaks; ValueError for none such."""

    def sampling(self, **settings: Any) -> Any:
        """How tokens are chosen, of what a client set; ValueError for what makes no sense."""


@dataclass(frozen=True)
class Limits:
    """What one client may ask of the server.

    body_bytes    of a request                       body_s   in which it must have come
    tokens        an answer may have, if not None    quiet_s  after which a stream sends a sign of life
                                                     write_s  in which a client must take what it is sent
    """

    body_bytes: int = 1 << 20
    body_s: float = 30.0
    tokens: int | None = None
    quiet_s: float = 15.0
    write_s: float = 60.0


class Api:
    """OpenAI's protocol for one model.

    key    what clients must send as `Authorization: Bearer KEY`, if not None
    hosts  the names by which the server may be called, if not None: a page in a browser that has another name
           lead to this machine must not reach it
    """

    def __init__(
        self,
        model: Served,
        engine: Engine,
        limits: Limits | None = None,
        key: str | None = None,
        hosts: Sequence[str] | None = None,
    ) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self.model, self.engine, self.limits = model, engine, limits or Limits()
        self.key, self.hosts = key, hosts
        self.created = int(time.time())
        # Texts become tokens on a thread of their own, so that a long one does not hold up streams.
        self._tokenizing = ThreadPoolExecutor(1, "lazygrad tokenizer")

    def app(self) -> Any:
        """The ASGI application."""
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route

        async def status(request: Any) -> Any:
            return Json(200, {"status": "ok", "model": self.model.name, **self.engine.state()})

        async def models(request: Any) -> Any:
            self._admit(request)
            return Json(200, {"object": "list", "data": [model_object(self.model.name, self.created)]})

        async def model(request: Any) -> Any:
            self._admit(request)
            self._check_name(request.path_params["name"])
            return Json(200, model_object(self.model.name, self.created))

        async def completions(request: Any) -> Any:
            self._admit(request)
            return await self._answer(request, parse_completion)

        async def chat(request: Any) -> Any:
            self._admit(request)
            return await self._answer(request, parse_chat)

        async def api_error(request: Any, error: Any) -> Any:
            return Json.of(error)

        async def http_error(request: Any, error: Any) -> Any:
            texts = {404: f"there is no {request.url.path}", 405: f"{request.method} is not possible here"}
            found = ApiError(error.status_code, texts.get(error.status_code, str(error.detail)))
            return Json(found.status, found.body(), dict(error.headers or {}))

        async def bug(request: Any, error: Any) -> Any:
            found = ApiError(500, f"an error of the server: {type(error).__name__}", code="internal_error")
            return Json.of(found)

        routes = [
            Route("/health", status),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", model),
            Route("/v1/completions", completions, methods=["POST"]),
            Route("/v1/chat/completions", chat, methods=["POST"]),
        ]
        handlers = {ApiError: api_error, HTTPException: http_error, Exception: bug}
        inner = Starlette(routes=routes, exception_handlers=handlers)

        async def of_this_machine(scope: dict[str, Any], receive: Receive, send: Send) -> None:
            error = self._wrong_host(dict(scope["headers"]).get(b"host", b""))
            await (inner(scope, receive, send) if error is None else Json.of(error).send(send))

        return of_this_machine

    # ---- who may ----

    def _wrong_host(self, header: bytes) -> ApiError | None:
        """What is said to a request that names another machine, whatever it asks for."""
        name = _host(header.decode("latin-1"))
        if self.hosts is None or name in self.hosts:
            return None
        said = f"this server answers to {', '.join(self.hosts)}, not to {name!r}"
        return ApiError(403, said, code="wrong_host")

    def _admit(self, request: Any) -> None:
        """ApiError where this client has no key."""
        if self.key is None:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode("utf-8"), self.key.encode("utf-8"))
        if scheme.lower() != "bearer" or not right:
            text = "the key is wrong" if given else "a key is needed: send 'Authorization: Bearer KEY'"
            raise ApiError(401, text, code="invalid_api_key", www_authenticate="Bearer")

    def _check_name(self, name: str) -> None:
        if name != self.model.name:
            text = f"the model {name[:200]!r} does not exist here; there is {self.model.name!r}"
            raise ApiError(404, text, "model", "model_not_found")

    # ---- an answer ----

    async def _answer(self, request: Any, parse: Callable[[dict[str, Any]], Ask]) -> Any:
        import asyncio

        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # what a page in a browser may not send to other hosts unasked
            raise ApiError(415, f"the body must be of type application/json, not {kind[:80] or 'none'!r}")
        ask = parse(parse_json(await self._body(request)))
        self._check_name(ask.model)
        self.engine.require_room(self._count(ask))
        loop = asyncio.get_running_loop()
        prompts = await loop.run_in_executor(self._tokenizing, self._prompts, ask)
        rows = self._rows(ask, prompts)
        reading = Reading(loop)
        reading.ticket = self.engine.submit(rows, reading.notify, request.client and request.client.host)
        reply = Reply(ask, sum(map(len, prompts)))
        answering = self._stream if ask.stream else self._collect
        return Answer(lambda send: answering(send, reading, reply), reading, self.engine)

    async def _body(self, request: Any) -> bytes:
        import asyncio

        from starlette.requests import ClientDisconnect

        most = self.limits.body_bytes
        too_large = ApiError(413, f"the body is larger than {most} bytes", code="body_too_large")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > most:
            raise too_large
        found = bytearray()
        try:
            async with asyncio.timeout(self.limits.body_s):
                async for part in request.stream():
                    found += part
                    if len(found) > most:
                        raise too_large
        except TimeoutError:
            text = f"the body did not come within {self.limits.body_s:g} s"
            raise ApiError(408, text, code="body_too_slow", connection="close") from None
        except ClientDisconnect:
            raise ApiError(400, "the client disconnected before its request was complete") from None
        return bytes(found)

    def _count(self, ask: Ask) -> int:
        """How many answers are wanted; ApiError 400 where they are more than there can ever be room for."""
        prompts = max(len(ask.prompts), 1)
        if prompts * ask.n > self.engine.slots + self.engine.most_waiting:
            text = f"{prompts} prompts with {ask.n} answers each are more than this server takes at once"
            raise ApiError(400, text, "n", "too_many_answers")
        return prompts * ask.n

    def _prompts(self, ask: Ask) -> list[list[int]]:
        """The tokens of every prompt."""
        name = "messages" if ask.is_chat else "prompt"
        try:
            if ask.is_chat:
                return [self.model.chat_tokens(ask.messages)]
            return [self.model.tokens(prompt) for prompt in ask.prompts]
        except ValueError as error:
            raise ApiError(400, str(error), name) from None

    def _rows(self, ask: Ask, prompts: list[list[int]]) -> list[Row]:
        """Every answer that is wanted: `n` for each prompt. ApiError 400 where there is no room for one."""
        context = self.model.context
        rows = []
        for prompt in prompts:
            room = context - len(prompt)
            wanted = room if ask.max_tokens is None else ask.max_tokens
            if room < 1 or wanted > room:
                text = (
                    f"the context of this model is {context} tokens, and {len(prompt)} of the prompt "
                    f"with {max(wanted, 1)} of the answer are more"
                )
                raise ApiError(400, text, "messages" if ask.is_chat else "prompt", "context_length_exceeded")
            if self.limits.tokens is not None:
                wanted = min(wanted, self.limits.tokens)
            for number in range(ask.n):
                rows.append(Row(prompt, self._sampling(ask, number), wanted, ask.stop))
        return rows

    def _sampling(self, ask: Ask, number: int) -> Any:
        settings = dict(ask.sampling)
        if "seed" in settings:  # the choices of one request differ; the same request gives the same ones
            settings["seed"] = (settings["seed"] + number) % 2**64
        try:
            return self.model.sampling(**settings)
        except ValueError as error:
            raise ApiError(400, str(error)) from None

    async def _collect(self, send: Send, reading: Reading, reply: Reply) -> None:
        texts = _echoes(reply.ask)
        reasons = [""] * len(texts)
        while not reading.ended:
            for happened in await reading.more():
                if isinstance(happened, Failed):
                    return await Json.of(happened.error).send(send)
                if isinstance(happened, Token):
                    texts[happened.row] += happened.piece
                    reply.tokens += happened.token is not None
                else:
                    reasons[happened.row] = happened.reason
        return await Json(200, reply.whole(texts, reasons)).send(send)

    async def _stream(self, send: Send, reading: Reading, reply: Reply) -> None:
        """Events as they come; the status goes out with the first, so that an error before it has its own."""
        happened = await reading.more(self.limits.quiet_s)
        if happened and isinstance(happened[0], Failed):
            return await Json.of(happened[0].error).send(send)
        await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
        firsts = [
            reply.begin(row) + (reply.piece(row, text) if text else b"")
            for row, text in enumerate(_echoes(reply.ask))
        ]
        await self._write(send, b"".join(firsts))
        while True:
            await self._write(send, _events(happened, reply) or STILL_THERE)
            if reading.ended:
                break
            happened = await reading.more(self.limits.quiet_s)
        failed = isinstance(happened[-1], Failed)
        return await self._write(send, b"" if failed else reply.last(), last=True)

    async def _write(self, send: Send, data: bytes, last: bool = False) -> None:
        """A part of a stream. TimeoutError where the client has taken nothing for too long."""
        import asyncio

        async with asyncio.timeout(self.limits.write_s):
            await send({"type": "http.response.body", "body": data, "more_body": not last})


class Reading:
    """What a task of the loop reads of a ticket: `more()` waits until something has happened."""

    ticket: Ticket  #: set as soon as the engine has it

    def __init__(self, loop: Any) -> None:
        import asyncio

        self._loop, self._changed = loop, asyncio.Event()
        self._ends = 0
        self.dropped = asyncio.Event()  #: set when the engine has given the client up
        self.ended = False  #: whether the last event was read

    def notify(self) -> None:
        """On the engine's thread: there is something to take."""
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # the loop has ended, and with it everyone who could read
            return

    def _wake(self) -> None:
        self._changed.set()
        if self.ticket.dropped:
            self.dropped.set()

    async def more(self, seconds: float | None = None) -> list[Event]:
        """What happened since the last call; an empty list where that was nothing for so long."""
        import asyncio

        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return []
        self._changed.clear()
        found = self.ticket.take()
        self._ends += sum(isinstance(each, End) for each in found)
        failed = any(isinstance(each, Failed) for each in found)
        self.ended = failed or self._ends == len(self.ticket.rows)
        return found


class Answer:
    """An ASGI response: an answer is written while its client is there, and given up when it is not."""

    def __init__(self, write: Callable[[Send], Awaitable[None]], reading: Reading, engine: Engine) -> None:
        self.write, self.reading, self.engine = write, reading, engine

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        import asyncio

        writing = asyncio.ensure_future(self.write(send))
        leaving = asyncio.ensure_future(_until_gone(receive))
        dropping = asyncio.ensure_future(self.reading.dropped.wait())
        try:
            await asyncio.wait({writing, leaving, dropping}, return_when=asyncio.FIRST_COMPLETED)
            if dropping.done() and not writing.done():
                # It may still take the error, if it reads at all.
                await asyncio.wait({writing, leaving}, timeout=DROP_S, return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                try:
                    return writing.result()
                except TimeoutError:
                    pass
            if not leaving.done():  # it does not read: what is still to be sent would stay for ever
                scope["state"]["abort"]()
                await leaving
        finally:
            self.engine.cancel(self.reading.ticket)
            for task in (writing, leaving, dropping):
                task.cancel()
            await asyncio.gather(writing, leaving, dropping, return_exceptions=True)


class Json:
    """An ASGI response that is a JSON object."""

    def __init__(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        self.status, self.body, self.headers = status, to_bytes(value), headers or {}

    @classmethod
    def of(cls, error: ApiError) -> Json:
        """An error as clients know it."""
        return cls(error.status, error.body(), error.headers)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await self.send(send)

    async def send(self, send: Send) -> None:
        """Write it."""
        headers = {"content-type": "application/json", "content-length": str(len(self.body)), **self.headers}
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": pairs})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # a proxy that collects would hold the stream back
]


async def _until_gone(receive: Receive) -> None:
    """Wait until the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _events(happened: list[Event], reply: Reply) -> bytes:
    """What happened as events of a stream; pieces of a row that stand side by side are one."""
    found, row, text = b"", -1, ""
    for each in happened:
        if text and not (isinstance(each, Token) and each.row == row):
            found += reply.piece(row, text)
            text = ""
        if isinstance(each, Token):
            row, text = each.row, text + each.piece
            reply.tokens += each.token is not None
        elif isinstance(each, End):
            found += reply.end(each.row, each.reason)
        else:
            found += event(each.error.body())
    return found + (reply.piece(row, text) if text else b"")


def _echoes(ask: Ask) -> list[str]:
    """What each choice begins with: nothing, or its prompt where that is asked for."""
    prompts = [""] if ask.is_chat else ask.prompts
    return [str(prompt) if ask.echo else "" for prompt in prompts for _ in range(ask.n)]


def _host(header: str) -> str:
    """The name in a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()
