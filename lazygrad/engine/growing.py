"""Plans for many sizes: their kernels are compiled before anything is bound to them."""

from __future__ import annotations

import threading

from ..config import DEBUG
from ..ir.ops import TRANSFERS
from ..programs.runners import get_runner, prepare
from ..report.terminal import show
from ..schedule.kernels.template import Template
from ..schedule.keys.growth import Growth


class _Latest(threading.local):
    """What this thread planned for many sizes last: the growth and its number."""

    planned: tuple[Growth, int] | None = None


latest = _Latest()


def make_ready(template: Template | Exception, growth: Growth, n: int) -> None:
    """Compile the kernels of a plan for many sizes, and say with DEBUG=1 that there is one, or why not.

    Whatever is wrong with a kernel is raised.
    """
    if isinstance(template, Exception):
        if DEBUG >= 1 and len(growth.known_sizes) == 3:
            why = (str(template) or type(template).__name__).splitlines()[0]
            show(f"GROWING sizes {_listed(growth)} and on have a plan each: {why}")
        return
    kernels = [
        (kernel.outputs[0].device, kernel.ast)
        for kernel in template.kernels
        if kernel.ast.op not in TRANSFERS
    ]
    if not growth.planned:
        prepare(kernels)
    for device, ast in kernels:
        get_runner(device, ast)
    latest.planned = growth, n
    if not growth.planned:
        growth.planned = True
        if DEBUG >= 1:
            count = len(template.kernels)
            what = "1 kernel is" if count == 1 else f"{count} kernels are"
            show(f"GROWING size: after {_listed(growth)}, {what} planned for {growth.least} to {growth.most}")


def _listed(growth: Growth) -> str:
    *others, last = growth.known_sizes
    return f"{', '.join(map(str, others))} and {last}"
