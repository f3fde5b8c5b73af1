"""`python -m lazygrad demo`: a network learns to read digits, and the kernels of one step are shown."""

from __future__ import annotations

import argparse

from ..device import Device
from ..nn import demo
from .words import positive

HELP = "train a small network on real handwritten digits, and show the kernels of one training step"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.ArgumentDefaultsHelpFormatter
    parser.add_argument("--device", default=None, help="the device to run on, for example CPU or CLANG")
    parser.add_argument("--epochs", type=positive, default=demo.EPOCHS, help="passes over the training set")
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of the random numbers; the same seed gives the same result, bit for bit",
    )


def run(given: argparse.Namespace) -> int:
    if given.device is not None:
        Device.DEFAULT = given.device
    Device[Device.DEFAULT].check()
    demo.run(given.epochs, given.seed)
    return 0
