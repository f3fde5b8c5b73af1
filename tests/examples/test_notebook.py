"""The notebook runs headless, and its cells show what a reader should see."""

from __future__ import annotations

import base64
import os
from typing import Any

import pytest

from tests.helpers import ROOT, needs, require

NOTEBOOK = ROOT / "examples" / "first_hour.ipynb"


def shown(cell: Any) -> dict[str, str]:
    """What a cell shows, by kind: printed text under "stdout"."""
    found: dict[str, str] = {}
    for output in cell.get("outputs", []):
        assert output.output_type != "error", output
        if output.output_type == "stream":
            found[output.name] = found.get(output.name, "") + output.text
        else:
            found |= output.data
    return found


@pytest.mark.slow
@needs("nbclient", "ipykernel", "matplotlib")
def test_the_notebook_runs_and_shows_values(monkeypatch: Any, tmp_path: Any) -> None:
    nbclient = require("nbclient")
    import nbformat

    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=170, resources={"metadata": {"path": str(tmp_path)}}).execute()
    values, digit, model, table, curve, result = [
        shown(cell) for cell in notebook.cells if cell.cell_type == "code"
    ]
    assert "(2, 1) · dtypes.float · CPU" in values["text/html"]
    assert "<pre>[[1. ],\n [2.5]]</pre>" in values["text/html"]
    assert '<img alt="the tensor as an image"' in digit["text/html"]
    assert model["text/plain"].startswith("Sequential(\n  (0): Flatten(start_dim=1, end_dim=-1)\n")
    assert "2,410 parameters" in table["text/plain"]
    assert base64.b64decode(curve["image/png"]).startswith(b"\x89PNG")
    assert result["stdout"] == "more than 90 % are read right: True\n"
