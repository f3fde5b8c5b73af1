"""`tinygrad` is lazygrad within a test that asks for it."""

from __future__ import annotations

from tests.compat.conftest import installed

__all__ = ["installed"]
