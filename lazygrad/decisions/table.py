"""Every decision that a prediction makes: its name, what is asked, and which answers are legal.

A decision changes how fast a program is and never what it means; sums of floats may be rounded otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

#: An answer is legal up to so many times the predicted price of the predicted answer.
DEAREST = 16.0


class Decision(NamedTuple):
    """One kind of decision.

    name     what OPTS and observers call it
    asks     the question, in a sentence
    answers  the legal ones, in words
    endless  whether they are too many to be listed: one is drawn
    """

    name: str
    asks: str
    answers: str
    endless: bool = False


_ROWS = [
    Decision(
        "opts",
        "How are the loops of a kernel split, ordered, and shared out among lanes, registers and threads?",
        "a list of Opts that the kernel takes, as `[Opt(op=OptOps.UPCAST, axis=0, amount=4)]`",
        endless=True,
    ),
]

#: name → the decision
DECISIONS: dict[str, Decision] = {row.name: row for row in _ROWS}
