"""Writes the pages that come from the code: `python docs/generate.py`; with names, only those: `... tensor`.

tensor       docs/tensor/: every public method of Tensor, a page for each family and one of contents
coverage     docs/coverage.md: what each method takes, its gradient and tests
names        docs/pytorch_names.md, docs/tinygrad_names.md: each of their names: there, or why not
dtypes       docs/dtypes.md: what two dtypes give together
measurements docs/internals/measurements.md: what was measured on which processor, from bench/results/
devices      docs/devices.md: the tables of what computes where; it runs every device, and takes minutes
face         lazygrad/tensor/face.pyi: Tensor for type checkers and editors, with all methods of the families

Each is a file of docs/writers/. tests/tensor/test_generated_docs.py says when a page is not what they write.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]  # the checkout's, wherever this is run

from writers import coverage, devices, face, measurements, mixing, tensor, tinygrad_names, torch_names  # noqa: E402

#: A name → what gives the files that it writes, and their text.
WRITERS: dict[str, Callable[[], dict[str, str]]] = {
    "tensor": lambda: {f"docs/tensor/{name}": text for name, text in tensor.tensor_pages().items()},
    "coverage": lambda: {"docs/coverage.md": coverage.coverage_page()},
    "names": lambda: {
        "docs/pytorch_names.md": torch_names.page(),
        "docs/tinygrad_names.md": tinygrad_names.page(),
    },
    "dtypes": lambda: {"docs/dtypes.md": mixing.mixing_page()},
    "measurements": lambda: {"docs/internals/measurements.md": measurements.page()},
    "devices": lambda: {"docs/devices.md": devices.page()},
    "face": lambda: {"lazygrad/tensor/face.pyi": face.face_stub()},
}


def write(name: str) -> None:
    files = WRITERS[name]()
    if name == "tensor":  # the folder holds nothing else: a family that is no more takes its page along
        for old in (ROOT / "docs" / "tensor").glob("*.md"):
            old.unlink()
    for file, text in files.items():
        (ROOT / file).parent.mkdir(exist_ok=True)
        (ROOT / file).write_text(text, "utf-8")
        print(file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the generated pages anew.")
    each_of = f"{', '.join(WRITERS)}; all if none is given"
    parser.add_argument("names", nargs="*", metavar="NAME", help=each_of)
    asked = parser.parse_args().names
    for each in asked:
        if each not in WRITERS:
            parser.error(f"nothing is written by the name {each!r}: {', '.join(WRITERS)}")
    for each in asked or WRITERS:
        write(each)
