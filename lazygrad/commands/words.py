"""Kinds of words that several commands take."""

from __future__ import annotations

import argparse

#: How a command's help says by what kernels are chosen.
KERNEL = "its name as in DEBUG=2, the shape of its result, a method, or a line (script.py:12)"


def seconds(text: str) -> float:
    """A duration of more than 0 seconds."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return found


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)
