"""A headless Chromium with WebGPU on the CPU (SwiftShader), and folders served to it."""

from __future__ import annotations

import contextlib
import functools
import http.server
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tests.helpers import require

WEBGPU = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
WITHOUT_WEBGPU = ("--disable-features=WebGPU", "--disable-gpu")
#: Milliseconds after which a page is taken to hang: nobody knows how slow a busy machine is.
PATIENCE = 300_000


class Remote:
    """An object of playwright, which lives in a thread of its own: an event loop runs there all the time, and
    in its thread other tests could run none.
    """

    def __init__(self, thread: ThreadPoolExecutor, target: Any) -> None:
        self._thread, self._target = thread, target

    def __getattr__(self, name: str) -> Any:
        return self._given(self._thread.submit(getattr, self._target, name).result())

    def _given(self, value: Any) -> Any:
        if callable(value):
            return lambda *args, **more: self._given(self._thread.submit(value, *args, **more).result())
        return Remote(self._thread, value) if type(value).__module__.startswith("playwright") else value


@contextlib.contextmanager
def playwright() -> Iterator[Any]:
    module = require("playwright")
    with ThreadPoolExecutor(1, "playwright") as thread:
        started = thread.submit(lambda: module.sync_playwright().start()).result()
        try:
            yield Remote(thread, started)
        finally:
            thread.submit(started.stop).result()


@contextlib.contextmanager
def chromium(playwright: Any, *flags: str) -> Iterator[Any]:
    """Debian's browser. The sandbox needs what containers do not have, and never works for root."""
    path = require("chromium")
    browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", *flags])
    try:
        yield browser
    finally:
        browser.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@contextlib.contextmanager
def served(folder: Any) -> Iterator[str]:
    """The address under which a folder is served on this machine."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class Shown:
    """A page in the browser. `errors`: what the console and the page had to say."""

    def __init__(self, browser: Any, address: str) -> None:
        self.page = browser.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.errors: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(address)

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def text(self, selector: str) -> str:
        found: str = self.page.text_content(selector)
        return found

    def until(self, selector: str, text: str) -> str:
        """Wait until an element has this text somewhere; all of its text then."""
        self.page.wait_for_function(
            "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)",
            arg=[selector, text],
        )
        return self.text(selector)

    def ready(self) -> Shown:
        self.page.wait_for_function(
            "() => /Ready|cannot/.test(document.querySelector('#status').textContent)"
        )
        assert self.text("#status") == "Ready.", self.text("#error")
        return self


#: Runs the page's model on several inputs, which come as plain numbers; results go as hexadecimal bytes.
RUN = """async ([calls, seed]) => {
  const { arrayOf } = await import("./runtime.js");
  const model = globalThis.model;
  if (seed !== null) model.manualSeed(seed);
  const found = [];
  for (const call of calls) {
    const given = {};
    for (const { name, dtype } of model.inputs) {
      if (!(name in call)) continue;
      const kind = arrayOf(dtype);
      given[name] = kind.BYTES_PER_ELEMENT === 8 ? kind.from(call[name], BigInt)
        : kind.from(call[name]);
    }
    for (const { name } of model.variables) given[name] = call[name];
    try {
      const outputs = await model.run(given);
      const row = {};
      for (const [name, { data, shape, dtype }] of Object.entries(outputs)) {
        const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
        let text = "";
        for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
        row[name] = [dtype, shape, text];
      }
      found.push(row);
    } catch (error) {
      found.push(error.message);
    }
  }
  return found;
}"""


class Exported:
    """A function as a page that is shown: `run(x=..., n=3)` gives its results as arrays, by name."""

    def __init__(self, browser: Any, address: str) -> None:
        self.shown = Shown(browser, address).ready()

    def runs(self, *calls: dict[str, Any], seed: int | None = None) -> list[Any]:
        given = [{name: _plain(value) for name, value in call.items()} for call in calls]
        found = self.shown.page.evaluate(RUN, [given, seed])
        return [
            row if isinstance(row, str) else {name: _array(*each) for name, each in row.items()}
            for row in found
        ]

    def run(self, **call: Any) -> Any:
        (found,) = self.runs(call)
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, int):
        return value
    flat = np.asarray(value).ravel()
    if flat.dtype.kind in "iu" and flat.itemsize == 8:
        return [str(number) for number in flat]
    return [float(number) if flat.dtype.kind == "f" else int(number) for number in flat]


def _array(dtype: str, shape: list[int], text: str) -> np.ndarray:
    """What came from the browser; of bfloat16 the bits."""
    kind = {"bfloat16": "uint16", "fp8e4m3": "uint8", "fp8e5m2": "uint8"}.get(dtype, dtype)
    return np.frombuffer(bytes.fromhex(text), kind).reshape(shape)
