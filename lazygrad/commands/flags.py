"""`python -m lazygrad flags`: every flag with its value here; as a page it is docs/env_vars.md."""

from __future__ import annotations

import argparse

from ..config import ContextVar

HELP = "list every flag, what it does, and its value in this environment"

_HEAD = """\
# Flags

Every flag is an environment variable, and can be set for a block of code in one thread:
`with Context(DEBUG=2, NOOPT=1): ...`. An empty variable is the default. `CPU=1`, `CLANG=1` and the like
choose the default device as `DEV=CPU` does. This page is what `python -m lazygrad flags --markdown` prints;
without `--markdown` it shows what each flag is in your environment. [debug.md](debug.md) shows what `DEBUG`
prints.

| flag | default | what it does |
|---|---|---|
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--markdown", action="store_true", help="print the page of the documentation")


def run(given: argparse.Namespace) -> int:
    print(markdown() if given.markdown else _table())
    return 0


def markdown() -> str:
    """The page: a row for each flag, by name."""
    rows = []
    for name, flag in sorted(ContextVar.all.items()):
        default = f"`{flag.default}`" if flag.default_text == str(flag.default) else flag.default_text
        rows.append(f"| `{name}` | {'' if flag.default == '' else default} | {flag.doc} |")
    return _HEAD + "\n".join(rows)


def _table() -> str:
    flags = sorted(ContextVar.all.items())
    widths = max(len(name) for name, _ in flags), max(len(str(flag.value)) for _, flag in flags)
    return "\n".join(f"{name:{widths[0]}}  {flag.value!s:{widths[1]}}  {flag.doc}" for name, flag in flags)
