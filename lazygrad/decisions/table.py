"""Every decision that a prediction makes: its name, what is asked, and which answers are legal.

A decision changes how fast a program is and never what it means; sums of floats may be rounded otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

#: An answer is legal up to so many times the predicted price of the predicted answer.
DEAREST = 16.0


class Decision(NamedTuple):
    """One kind of decision.

    name       what OPTS and observers call it
    asks       the question, in a sentence
    answers    the legal ones, in words
    predicted  the share of random answers that are the predicted one: larger where it is asked of every
               value, so that a program does not become ten times as many kernels
    """

    name: str
    asks: str
    answers: str
    predicted: float = 0.5


_ROWS = [
    Decision(
        "opts",
        "How are the loops of a kernel split, ordered, and shared out among lanes, registers and threads?",
        "a list of Opts that the kernel takes, as `[Opt(op=OptOps.UPCAST, axis=0, amount=4)]`",
        predicted=0.15,
    ),
    Decision(
        "thread_chunks",
        "Into how many chunks for the cores is a kernel cut that is written directly, as attention's?",
        "1, or as many as there are independent units of work, up to 16",
    ),
    Decision(
        "store",
        "Is a value stored, or computed again where it is used?",
        "yes, if it is no larger than all that the program reads and returns; no, if that recomputes little",
        predicted=0.85,
    ),
    Decision(
        "keep_row",
        "Is a row of a value kept in the kernel in which several loops need it, instead of computed by each?",
        "yes, where loops walk it alike and a cache holds it; no",
    ),
    Decision(
        "multi_output",
        "Does a kernel that computes a value anyway store it too, instead of a kernel of its own?",
        "yes, where nothing it waits for comes after; no",
    ),
    Decision(
        "sibling_output",
        "Does a kernel in the same loops store a value that it does not need (horizontal fusion)?",
        "yes, in a loop over time, or of one number beside another; no",
    ),
    Decision(
        "nests",
        "Do kernels that need nothing of each other become nests of loops of one (horizontal fusion)?",
        "yes, where both run in chunks for the cores or neither does; no",
    ),
    Decision(
        "following_nests",
        "Does a kernel become a nest of loops behind another one that it waits for, in one kernel?",
        "yes, where no chunk needs what another one makes; no",
    ),
    Decision(
        "one_pass",
        "Are reductions that depend on each other done in one pass over blocks, as attention's?",
        "yes, where the rule applies; no, if what is stored instead is not much",
    ),
    Decision(
        "nested_sums",
        "Do sums of products compute their terms again, as attention's gradients, instead of storing them?",
        "yes, where the rule applies; no, if what is stored instead is not much",
    ),
    Decision(
        "joined_sums",
        "Are sums of the same recomputed terms done by one kernel?",
        "yes; no",
    ),
    Decision(
        "moments",
        "Are long sums of distances from a mean done in one walk, of blocks about means of their own?",
        "yes, where there are blocks; no",
    ),
    Decision(
        "split_reduce",
        "Into how many parts is a reduction cut, which are combined afterwards?",
        "1 on a processor; numbers of parts whose results take less memory than what is reduced",
        predicted=0.75,
    ),
    Decision(
        "split_products",
        "Is a long sum of products cut into blocks that fit a cache, each a sum of its own?",
        "yes, where the blocks' results are no larger than the factors; no",
    ),
    Decision(
        "im2col",
        "Are overlapping windows stored in the order in which a sum of products reads them?",
        "yes, where every element is for several products; no",
    ),
    Decision(
        "products_apart",
        "On a grid, is a sum over several products a kernel for each product?",
        "yes; no",
    ),
    Decision(
        "merge_reduces",
        "Does a sum of sums become one sum?",
        "yes, where that recomputes little; no",
    ),
    Decision(
        "chosen_terms",
        "Are terms that are chosen from products computed from their factors?",
        "yes, where a kernel in one pass does so; no",
    ),
    Decision(
        "checkpoints",
        "Is what a checkpoint marks computed again?",
        "yes; no, where that takes no more memory",
    ),
]

#: name → the decision
DECISIONS: dict[str, Decision] = {row.name: row for row in _ROWS}
