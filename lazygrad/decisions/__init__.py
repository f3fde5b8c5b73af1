"""The registry of decisions. What rests on a prediction is asked for here: schedule and codegen say what is
predicted to be fastest and what else is legal, and `decide` answers.

`OPTS=random:SEED` answers all of them at random, so that tests can show that no choice changes what a program
means; `OPTS=NAME@STRUCTURE=ANSWER` answers one, so that one can be measured beside the other.
"""

from .ask import Decided, decide, observers, only_predicted, text_of, yes_or_no
from .table import DEAREST, DECISIONS, Decision

__all__ = [
    "DEAREST",
    "DECISIONS",
    "Decided",
    "Decision",
    "decide",
    "observers",
    "only_predicted",
    "text_of",
    "yes_or_no",
]
