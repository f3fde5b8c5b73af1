"""Where in a plan ranks begin to send: early, so that kernels which do not need the result run meanwhile.

    kernel a, send a, kernel b (reads a'), kernel c        kernel a, send a, kernel c, kernel b (reads a')

A COLLECTIVE begins as soon as what it sends is there. Kernels that need its result come after those that do
not. So that values in between do not pile up, no more than AHEAD are under way: before another one begins,
what needs the oldest runs; and no kernel runs that came behind so many COLLECTIVEs which have not begun.
(Rajbhandari et al. 2020, "ZeRO", fetch the weights of the next layer likewise.) The order of the COLLECTIVEs
among themselves stays, as on all ranks.
"""

from __future__ import annotations

from ...ir.ops import Ops
from .template import Output, Template

#: So many are under way at once: one that a kernel will need next, and one behind it.
AHEAD = 2


def begin_early(template: Template) -> Template:
    """The same kernels, where COLLECTIVEs begin early and are needed late."""
    if not template.sends:
        return template
    order = _Overlap(template).order()
    return template if order == list(range(len(order))) else template.ordered(order)


class _Overlap:
    """One walk through a plan.

    needs   kernel → the kernels that it waits for     reads   the same without the COLLECTIVE before its own
    unsent  COLLECTIVEs that have not begun
    flying  those that have, and that nothing has needed yet
    """

    def __init__(self, template: Template) -> None:
        kernels = template.kernels
        self.sends = [kernel.ast.op is Ops.COLLECTIVE for kernel in kernels]
        self.needs = [set(before) for before in template.before]
        self.reads = [
            {template.maker_of[sent] for sent in kernel.inputs[:1] if isinstance(sent, Output)}
            if sends
            else needs
            for kernel, sends, needs in zip(kernels, self.sends, self.needs, strict=True)
        ]
        self.readers: list[set[int]] = [set() for _ in kernels]
        for number, reads in enumerate(self.reads):
            for earlier in reads:
                self.readers[earlier].add(number)
        self.waiting = list(range(len(kernels)))
        self.unsent = [number for number in self.waiting if self.sends[number]]
        self.done: dict[int, None] = {}
        self.flying: list[int] = []

    def order(self) -> list[int]:
        """The kernels in their new order."""
        while self.waiting:
            number = self._next()
            self.waiting.remove(number)
            self.done[number] = None
            self.flying = [flying for flying in self.flying if flying not in self.reads[number]]
            if self.sends[number]:
                self.flying.append(number)
                self.unsent.remove(number)
        return list(self.done)

    def _next(self) -> int:
        ready = [number for number in self.waiting if all(need in self.done for need in self.needs[number])]
        send = next((number for number in ready if self.sends[number]), None)
        while send is not None and len(self.flying) >= AHEAD and not self._is_needed(self.flying[0]):
            self.flying.pop(0)
        if send is not None and len(self.flying) < AHEAD:
            return send
        held = self.flying if send is None else self.flying[1:]
        kernels = [number for number in ready if not self.sends[number]]
        end = self.unsent[AHEAD - 1] if len(self.unsent) >= AHEAD else len(self.sends)
        oldest = set(self.flying).difference(held)  # what needs it has to run
        near = (n for n in kernels if n < end or not oldest.isdisjoint(self.reads[n]))
        free = (n for n in near if not self.reads[n].intersection(held))
        found = next(free, None)
        if found is None:
            found = send if send is not None else kernels[0]
        return found

    def _is_needed(self, number: int) -> bool:
        return any(reader not in self.done for reader in self.readers[number])
