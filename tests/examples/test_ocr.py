"""The example that reads a picture: it reads what it draws; without the networks it says who brings them."""

from __future__ import annotations

import pytest

from tests.examples.test_encoder_examples import run
from tests.helpers import needs


@pytest.mark.slow
@needs("onnx", "pillow", "rapidocr-onnxruntime", "scipy")
def test_the_words_of_a_picture():
    printed, seconds = run("ocr.py")
    assert printed.splitlines() == ["lazygrad reads pictures", "Total: 42.50 EUR", "Thank you!"]
    assert seconds.endswith(" s\n")


@pytest.mark.slow
@needs("onnx", "pillow", "rapidocr-onnxruntime", "scipy")
def test_a_picture_of_a_file_with_places(tmp_path):
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("L", (320, 96), 255)
    ImageDraw.Draw(picture).text((20, 30), "INVOICE 1234", 0, ImageFont.load_default(30))
    picture.save(tmp_path / "a.png")
    printed, _ = run("ocr.py", tmp_path / "a.png", "--boxes")
    (line,) = printed.splitlines()
    assert line.endswith("INVOICE 1234")
    left, top, right, bottom = (int(word) for word in line.partition(")")[0].strip("(").split(","))
    assert 0 <= left < 30 < 200 < right <= 320
    assert 0 <= top < 40 < 50 < bottom <= 96


def test_without_the_networks():
    _, complaint = run("ocr.py", status=1, blocked="rapidocr_onnxruntime")
    assert "pip install --no-deps rapidocr-onnxruntime" in complaint
