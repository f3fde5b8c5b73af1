"""In which order a kernel adds up its float sums: a key that is read off its linear program (form 7).

    program A    for r in 0..64:  acc0 += x[4*r:+4];  ...  out = (acc0.0 + acc0.2) + (acc0.1 + acc0.3)
    program B    the same for four rows of x at once, in pieces for two cores, from a copy of x
    program C    for r in 0..256: acc0 += x[r];       ...  out = acc0

A and B have one key, since each of their sums adds the same terms in the same order; C has another. Programs
of one kernel with equal keys compute equal bits. The key follows from what the program does, whichever Opts
made it: each output element is an expression whose leaves are addresses in the inputs, with loops of which
one knows by how much a turn moves each leaf, and it does not matter

- where in the outputs an element lies, and what is computed beside it: leaves are counted from the first one
  that moves alike. Where elements of one output have several orders, the key says which have which;
- whether terms in a row are written out or counted by a loop, or by a loop in a loop;
- what is copied to other memory before it is read;
- which terms are left out, as they are zero: a sum that starts from zero has the same bits with them.

MULACC, which rounds once, is another term than a product that is added. What these expressions cannot say
has the program itself as its key, which is equal to no other one's: an access whose step differs from turn to
turn, memory that one turn leaves to the next, a copy of which one LOAD reads what several STOREs wrote,
threads that meet.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.uop import UOp
from .orders import Orders
from .runs import digest
from .values import Unknown, stored_values


def order_key(program: Sequence[UOp]) -> str:
    """The key of all float sums of a linear program: equal for programs of one kernel only if their results
    are equal to the bit.
    """
    try:
        return Orders().key(stored_values(program))
    except Unknown:
        return _text_key(program)


def _text_key(program: Sequence[UOp]) -> str:
    number = {step: address for address, step in enumerate(program)}
    rows = [(s.op.name, repr(s.dtype), [number.get(a, -1) for a in s.src], repr(s.arg)) for s in program]
    return "program " + digest(rows)
