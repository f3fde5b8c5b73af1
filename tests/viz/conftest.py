"""A recording of a small network, and one browser for all tests of the viewer's page."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, nn
from lazygrad.memo import forget_all
from lazygrad.viz.details import add_details
from lazygrad.viz.planning import add_plans
from lazygrad.viz.server import Server
from lazygrad.viz.session import Session
from tests.choices import pinned
from tests.exporting.browser import Shown, chromium, playwright


class Block(nn.Module):
    def __init__(self) -> None:
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(self.up(self.norm(x)).relu())


class Network(nn.Module):
    def __init__(self) -> None:
        self.blocks, self.head = [Block(), Block()], nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


@pytest.fixture(scope="session")
def recorded() -> dict[str, Any]:
    """What two calls of a network do, one of them planned; its kernels with all there is to see of them. They
    are the same on every machine: tests of a choice look at them.
    """
    with pytest.MonkeyPatch.context() as monkeypatch, pinned(monkeypatch):
        model = Network()
        for value in nn.state.get_state_dict(model).values():
            value.realize()
        session = Session()
        x = np.arange(32, dtype=np.float32).reshape(4, 8)
        with session.recording():
            for _ in range(2):
                model(Tensor(x)).softmax().tolist()
        rows = session.rows()
        add_plans(rows, session, 60)
        add_details(rows, list(session.kernels), 60)
        return rows


@pytest.fixture(scope="session")
def replayed() -> dict[str, Any]:
    """What a jit of four kernels does that is captured and replayed twice, with an arena, and with a tensor
    that is kept after its last use.
    """
    x = Tensor(np.arange(8192, dtype=np.float32)).realize()

    @TinyJit
    def chained(x: Tensor) -> Tensor:
        for _ in range(4):
            x = (x + 1).contiguous()
        return x.realize()

    chained(x)
    forget_all()
    session = Session()
    with session.recording():
        kept = (x * 3).realize()
        (kept + 1).realize()
        for _ in range(3):
            chained(x)
    rows = session.rows()
    add_details(rows, list(session.kernels), 60)
    return rows


@contextlib.contextmanager
def serving(recording: dict[str, Any], *logs: Any) -> Iterator[str]:
    """The address of a recording's page."""
    server = Server(recording, 0, list(logs))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.url
    finally:
        server.stop()
        thread.join()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with playwright() as started, chromium(started) as opened:
        yield opened


@pytest.fixture
def shown(browser):
    """Shows a recording; nothing may be wrong on its page."""
    with contextlib.ExitStack() as stack:
        pages: list[Shown] = []

        def show(recording: dict[str, Any], *logs: Any, view: str = "", size: tuple[int, int] = (1280, 800)):
            made = Shown(
                browser, stack.enter_context(serving(recording, *logs)) + (f"#{view}" if view else "")
            )
            made.page.set_viewport_size({"width": size[0], "height": size[1]})
            made.page.wait_for_function(
                "() => globalThis.viewer && document.querySelector('#status').textContent.includes(' in ')"
            )
            pages.append(made)
            return made

        yield show
        for each in pages:
            assert each.errors == []
            each.page.close()
