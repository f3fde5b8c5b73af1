"""Words from a picture: PP-OCRv4's networks, two ONNX files, find lines of text and read them.

    pip install --no-deps rapidocr-onnxruntime && pip install "lazygrad[onnx]" pillow scipy
    python examples/ocr.py receipt.png
    python examples/ocr.py                       # a picture that the example draws

Lines that lie level are read, from the top down; turned text is not.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lazygrad import Tensor

#: From so much on a place is taken for text, and a line for found (as PaddleOCR sets them).
IS_TEXT, IS_LINE = 0.3, 0.5
#: The networks shrink the lines that they find: a box grows by this share of its area over its outline.
GROWTH = 1.6
#: What the reader was trained on: lines 48 high. Widths are multiples of STEP, so that few captures arise.
HEIGHT, STEP = 48, 64
TEXT = ["lazygrad reads pictures", "Total: 42.50 EUR", "Thank you!"]


class Line(NamedTuple):
    """A line that was read: where (left, top, right, bottom in pixels), its words, how sure they are."""

    box: tuple[int, int, int, int]
    text: str
    certainty: float


class Reader:
    """The networks that find and read lines."""

    def __init__(self, folder: Path) -> None:
        import onnx

        from lazygrad.nn.onnx import OnnxRunner

        self.finder = OnnxRunner(folder / "ch_PP-OCRv4_det_infer.onnx")
        self.reader = OnnxRunner(folder / "ch_PP-OCRv4_rec_infer.onnx")
        stated = onnx.load(folder / "ch_PP-OCRv4_rec_infer.onnx").metadata_props
        letters = next(each.value for each in stated if each.key == "character").splitlines()
        self.letters = ["", *letters, " "]  # the first stands for nothing (CTC's blank)

    def read(self, picture: Any) -> list[Line]:
        """The lines of a picture (of PIL), from the top down."""
        lines = []
        for box in self.find(picture):
            text, certainty = self.words(picture.crop(box))
            if text and certainty >= IS_LINE:
                lines.append(Line(box, text, certainty))
        return lines

    def find(self, picture: Any) -> list[tuple[int, int, int, int]]:
        """The boxes of lines: each place has a chance to be text, and what touches is a line."""
        from scipy import ndimage

        width, height = (max(32, round(side / 32) * 32) for side in picture.size)
        chances = self._run(self.finder, picture.resize((width, height)))[0, 0]
        labels, _ = ndimage.label(chances > IS_TEXT, structure=np.ones((3, 3)))
        boxes = []
        for number, (rows, columns) in enumerate(ndimage.find_objects(labels), 1):
            here = labels[rows, columns] == number
            high, wide = here.shape
            if min(high, wide) < 3 or chances[rows, columns][here].mean() < IS_LINE:
                continue
            grow = GROWTH * high * wide / (2 * (high + wide))
            scale = picture.size[0] / width, picture.size[1] / height
            boxes.append(
                (
                    max(0, round((columns.start - grow) * scale[0])),
                    max(0, round((rows.start - grow) * scale[1])),
                    min(picture.size[0], round((columns.stop + grow) * scale[0])),
                    min(picture.size[1], round((rows.stop + grow) * scale[1])),
                )
            )
        return sorted(boxes, key=lambda box: (box[1], box[0]))

    def words(self, line: Any) -> tuple[str, float]:
        """The text of one line, and the mean certainty of its letters: the likeliest letter of each step."""
        width = max(1, round(line.size[0] * HEIGHT / line.size[1]))
        page = line.resize((width, HEIGHT))
        values = np.zeros((1, 3, HEIGHT, -(-width // STEP) * STEP), np.float32)
        values[..., :width] = _pixels(page)
        chances = next(iter(self.reader({"x": Tensor(values)}).values())).numpy()[0]
        best = chances.argmax(-1)
        kept = [step for step, n in enumerate(best) if n != 0 and (step == 0 or n != best[step - 1])]
        certainty = float(np.mean([chances[step, best[step]] for step in kept])) if kept else 0.0
        return "".join(self.letters[best[step]] for step in kept), certainty

    @staticmethod
    def _run(network: Any, picture: Any) -> Any:
        return next(iter(network({"x": Tensor(_pixels(picture))}).values())).numpy()


def _pixels(picture: Any) -> Any:
    """A picture as the networks take it: float32 (1, 3, height, width) from -1 to 1, blue first."""
    values = np.asarray(picture.convert("RGB"), np.float32)[..., ::-1] / 127.5 - 1
    return np.ascontiguousarray(values.transpose(2, 0, 1)[None])


def drawn(lines: list[str]) -> Any:
    """A picture of these lines, black on white."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (480, 40 + 60 * len(lines)), "white")
    for number, line in enumerate(lines):
        font = ImageFont.load_default(28)
        ImageDraw.Draw(picture).text((30, 30 + 60 * number), line, "black", font)
    return picture


def weights() -> Path:
    """The folder in the package that brings the networks."""
    found = importlib.util.find_spec("rapidocr_onnxruntime")
    if found is None or found.origin is None:
        sys.exit("the networks come in a package: pip install --no-deps rapidocr-onnxruntime")
    return Path(found.origin).parent / "models"


def main() -> None:
    parser = argparse.ArgumentParser(description="Words from a picture.")
    parser.add_argument("picture", nargs="?", type=Path, help="a file; the example draws one if not given")
    parser.add_argument(
        "--boxes", action="store_true", help="show where each line is, and how sure it is read"
    )
    arguments = parser.parse_args()
    folder = weights()
    for package in ("PIL", "onnx", "scipy"):
        if importlib.util.find_spec(package) is None:
            sys.exit(f'{package} is missing: pip install "lazygrad[onnx]" pillow scipy')
    from PIL import Image

    picture = drawn(TEXT) if arguments.picture is None else Image.open(arguments.picture)
    reader = Reader(folder)
    begin = time.perf_counter()
    for line in reader.read(picture.convert("RGB")):
        place = f"{line.box}  {line.certainty:.2f}  " if arguments.boxes else ""
        print(f"{place}{line.text}")
    print(f"{time.perf_counter() - begin:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
