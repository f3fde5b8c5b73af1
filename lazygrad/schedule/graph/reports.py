"""Where the CHECKs of a kernel report, and whose indices they check."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from ...device.reports import ReportBuffer
from ...ir.reports import WORDS


class Site(NamedTuple):
    """The user's call that an index comes from."""

    name: str
    line: str


class Reports:
    """The memory of one kernel's reports: another for each device and thread, so that who finds a bad index
    is who asked for it.

    sites  the Site of each CHECK, None where it is not known
    """

    __slots__ = ("_memory", "sites")

    def __init__(self, sites: tuple[Any, ...]) -> None:
        self.sites = sites
        self._memory: dict[tuple[str, int], ReportBuffer] = {}

    def memory(self, device: str) -> ReportBuffer:
        """Of this thread, on a device."""
        key = device, threading.get_ident()
        found = self._memory.get(key)
        if found is None:
            found = self._memory[key] = ReportBuffer(device, WORDS * len(self.sites), self.sites)
        return found
