"""Takes the pictures of docs/viz.md, of the script that stands there: `python docs/pictures.py`.

It needs Chromium, playwright and pillow (which comes with matplotlib). The script runs
twice, so that there are two learning curves.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402

from lazygrad.viz.files import read_recording  # noqa: E402
from lazygrad.viz.server import Server  # noqa: E402
from tests.exporting.browser import Shown, chromium, playwright  # noqa: E402

FOLDER = ROOT / "docs" / "viz"
#: A picture → the view that it is of.
PICTURES = {
    **{view: view for view in ("schedule", "planning", "tensors", "kernels")},
    "texts": "kernels",
    **{view: view for view in ("timeline", "memory", "training")},
}
#: Milliseconds in which a picture that is asked for is surely drawn.
DRAWN = 1500
COLORS = 48
#: What is there when a view is, where that takes longer than its picture.
READY = {"planning": "#plan-step-text", "kernels": "#text-loops button"}
#: What is clicked before a picture is taken.
FIRST = {
    "schedule": "(() => { const v = viewer.views.schedule.view, known = viewer.recording.without; "
    "const looked = ({ item }) => item.without?.length === 1 && known[item.without[0]]?.cycles; "
    "v.select(v.nodes.findIndex(looked)); })()",
    "planning": "document.querySelector('#plan-form-next').click()",
    "texts": "(() => { const choice = document.querySelector('#target'); choice.value = 'c'; "
    "choice.dispatchEvent(new Event('change')); "
    "[...document.querySelectorAll('#text-loops button')].at(-1).click(); "
    "document.querySelector('#target').scrollIntoView(); })()",
    "tensors": "(async () => { const v = viewer.views.tensors.view; for (let n = 0; n < 2; n++) { "
    "v.onopen(v.nodes.find((node) => node.group && node.id.startsWith('layer'))); "
    "await new Promise((done) => setTimeout(done, 400)); } v.fit(); })()",
    "kernels": "document.querySelector('#roofline').scrollIntoView()",
    "timeline": "0",
    "memory": "0",
    "training": "0",
}


def recorded(folder: str) -> tuple[str, list[Path]]:
    """The recording of the page's script, and the logs of two runs of it."""
    page = (ROOT / "docs" / "viz.md").read_text(encoding="utf-8")
    script = re.search(r'"script.py"\)\.write_text\("""(.*?)"""\)', page, re.DOTALL)
    assert script is not None
    logs = []
    for name, change in (("first", ""), ("second", "lr=0.001")):
        text = script[1].replace("run.jsonl", f"{name}.jsonl")
        (Path(folder) / "script.py").write_text(text.replace("lr=0.003", change or "lr=0.003"))
        words = [sys.executable, "-m", "lazygrad", "viz", "script.py", "--save", f"{name}.json.gz"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run([*words, "--seconds", "60"], cwd=folder, check=True, env=environment)
        logs.append(Path(folder) / f"{name}.jsonl")
    return f"{folder}/first.json.gz", logs


def small(picture: bytes, name: str) -> None:
    """Write a picture with as few colours as do."""
    with Image.open(io.BytesIO(picture)) as whole:
        whole.convert("RGB").quantize(COLORS).save(FOLDER / name, optimize=True)


def take(recording: str, logs: list[Path]) -> None:
    server = Server(read_recording(recording), 0, logs)
    thread = threading.Thread(target=server.run)
    thread.start()
    FOLDER.mkdir(exist_ok=True)
    try:
        with playwright() as started, chromium(started) as browser:
            page = Shown(browser, server.url).page
            page.set_viewport_size({"width": 1180, "height": 700})
            for name, view in PICTURES.items():
                page.click(f"#tab-{view}")
                page.wait_for_selector(READY.get(view, f"#view-{view}"))
                page.wait_for_timeout(DRAWN)
                page.evaluate(FIRST[name])
                page.wait_for_timeout(DRAWN)
                small(page.screenshot(), f"{name}.png")
                if view == "memory":
                    part = page.locator("#arenas .stage")
                    part.scroll_into_view_if_needed()
                    page.wait_for_timeout(DRAWN)
                    small(part.screenshot(), "arena.png")
            page.emulate_media(color_scheme="dark")
            page.set_viewport_size({"width": 390, "height": 700})
            page.click("#tab-schedule")
            page.wait_for_timeout(DRAWN)
            page.evaluate("viewer.views.schedule.view.fit()")
            page.wait_for_timeout(DRAWN)
            small(page.screenshot(), "phone.png")
    finally:
        server.stop()
        thread.join()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        take(*recorded(folder))
