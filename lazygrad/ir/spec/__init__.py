"""What is legal in each form of the graph: one table per form, op → what a node of it must be like.

`verify` runs between stages in tests and under CHECK=1.
"""

from .checks import Check, Spec
from .kernel import KERNEL
from .linear import LINEAR
from .loops import LOOPS, SCHEDULED, TARGET, VECTORS, WIDTHS
from .tensor import PLAIN, TENSOR
from .verifier import SpecError, Supports, verify

#: The form of a number, as docs/design.md numbers them.
SPECS: dict[int, Spec] = {
    spec.form: spec for spec in (TENSOR, KERNEL, LOOPS, SCHEDULED, VECTORS, TARGET, LINEAR)
}

__all__ = [
    "KERNEL",
    "LINEAR",
    "LOOPS",
    "PLAIN",
    "SCHEDULED",
    "SPECS",
    "TARGET",
    "TENSOR",
    "VECTORS",
    "WIDTHS",
    "Check",
    "Spec",
    "SpecError",
    "Supports",
    "verify",
]
