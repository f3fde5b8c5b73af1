"""`python -m lazygrad.compat script.py` runs a script that was written for `tinygrad`, unchanged."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence

from .aliases import install


def main(argv: Sequence[str] | None = None) -> None:
    """Run the script as `python script.py` would: its words are its own, its exceptions its own."""
    parser = argparse.ArgumentParser(
        "python -m lazygrad.compat", description="Run a script that was written for tinygrad, unchanged."
    )
    parser.add_argument("script", help="the script; what follows is its own")
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if not os.path.isfile(given.script):
        parser.error(f"there is no script {given.script!r}")
    install()
    sys.argv = [given.script, *given.words]
    sys.path[0] = os.path.dirname(os.path.abspath(given.script))
    runpy.run_path(given.script, run_name="__main__")


if __name__ == "__main__":
    main()
