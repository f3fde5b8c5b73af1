"""Planning as a list of passes: what is asked for in, a template of kernels out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..codegen.price import Prices, prices_for
from ..device import Device, DeviceError, Target
from ..ir.device import device_of
from ..ir.uop import UOp
from .assemble import assemble
from .graph import Asked
from .memory import inner_outputs
from .offsets import share_places
from .placement import Placement
from .plain import plain
from .template import Template
from .versions import device_name
from .writes import Writes


def plan(asked: Asked, fuse: bool) -> Template:
    """Plan the kernels that compute what is asked for."""
    target, prices = _target_of(asked.roots)
    graph = plain(asked, target)
    placed = Placement(graph, target, prices, fuse).run()
    template = share_places(assemble(Writes(placed)))
    return replace(template, inner=inner_outputs(template.kernels, template.results))


def _target_of(roots: Sequence[UOp]) -> tuple[Target, Prices | None]:
    """What the kernels are for, and what operations cost there."""
    name = next((device_name(root) for root in roots if device_of(root) is not None), Device.DEFAULT)
    try:
        device = Device[name]
        return device.target, None if device.renderer is None else prices_for(device.renderer)
    except DeviceError:
        return Target(name), None  # it only holds data: whatever it cannot do fails when it is compiled
