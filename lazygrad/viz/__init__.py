"""Looking on while a kernel is compiled: `record` makes a Recording, `pages` turns one into pages of text.

Recording subscribes to the observer hook of the rewrite engine; no stage of the compiler knows of it, so
looking changes nothing. What shows a Recording (`walk` in a terminal) only reads it.

Looking on while a script runs: a Session (session.py) listens, files.py writes it as a recording, and
server.py shows this on a page (page/), svg.py as a picture, schedule_text.py as text, timeline.py for
Perfetto. inline.py shows the schedule of a value inside of a notebook.
"""

from .inline import show
from .pages import Page, brief, pages, plain
from .record import Form, Recording, Rewrite, record

__all__ = ["Form", "Page", "Recording", "Rewrite", "brief", "pages", "plain", "record", "show"]
