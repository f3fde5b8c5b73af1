"""What a notebook shows: a schedule as a picture that nothing was run for, a progress bar that is updated."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor
from lazygrad.device import GlobalCounters
from tests.examples.test_notebook import shown
from tests.helpers import ROOT, needs, require


def made() -> dict[str, Tensor | list[Tensor]]:
    x = Tensor(np.ones((4, 8), np.float32)).realize()
    y = (x * 2).sum(1)
    return {"a": y.contiguous().exp(), "b": [y.max(), x]}


def test_a_schedule_is_shown_and_nothing_runs() -> None:
    before = GlobalCounters.kernel_count
    values = made()
    ran = GlobalCounters.kernel_count
    found = lazygrad.viz.show(values)
    assert GlobalCounters.kernel_count == ran == before + 1  # the copy in `made`
    lines = repr(found).splitlines()
    kernels = found.recording["kernels"]
    assert lines[0] == f"{len(kernels)} kernels and copies, none of which has run"
    assert len(lines) == len(found.recording["items"]) + 2
    tree = ElementTree.fromstring(found._repr_svg_())
    boxes = [element for element in tree.iter() if element.tag.endswith("rect")]
    assert len(boxes) == len(found.recording["items"]) >= 2
    assert values["a"].tolist() == [pytest.approx(np.exp(16.0))] * 4


def test_what_is_computed_has_no_picture() -> None:
    found = lazygrad.viz.show(Tensor([1.0]).realize())
    assert (repr(found), found._repr_svg_()) == ("nothing is left to compute", None)


def test_what_has_no_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="was given int, list"):
        lazygrad.viz.show(3, [])


CELLS = (
    "import lazygrad\nx = lazygrad.Tensor.rand(8, 8)\nlazygrad.viz.show((x @ x).sum())",
    "from lazygrad.progress import tqdm\nfor _ in tqdm(range(4), desc='<b>'): pass",
    "with tqdm(total=2) as bar:\n    bar.update(2, close=True)",
    "for _ in tqdm(iter(range(3))): pass",
)


@pytest.mark.slow
@needs("nbclient", "ipykernel")
def test_in_a_notebook(monkeypatch, tmp_path) -> None:
    nbclient = require("nbclient")
    import nbformat

    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=170, resources={"metadata": {"path": str(tmp_path)}}).execute()
    schedule, bar, closed, endless = [shown(cell) for cell in notebook.cells]
    assert ElementTree.fromstring(schedule["image/svg+xml"]).tag.endswith("svg")
    assert "none of which has run" in schedule["text/plain"]
    assert len(notebook.cells[1].outputs) == 1  # displayed once and updated; nothing on stderr
    assert bar["text/html"].startswith(
        '<div><progress value="4" max="4"></progress> <code>&lt;b&gt;: 100%| 4/4 ['
    )
    assert bar["text/plain"].startswith("<b>: 100%|")
    assert '<progress value="2" max="2">' in closed["text/html"]
    assert "<progress></progress> <code>3it [" in endless["text/html"]
