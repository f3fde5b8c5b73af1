"""Looking on while a kernel is compiled: `record` makes a Recording, `pages` turns one into pages of text.

Recording subscribes to the observer hook of the rewrite engine; no stage of the compiler knows of it, so
looking changes nothing. What shows a Recording (`walk` in a terminal) only reads it.
"""

from .pages import Page, pages, plain
from .record import Form, Recording, Rewrite, record

__all__ = ["Form", "Page", "Recording", "Rewrite", "pages", "plain", "record"]
