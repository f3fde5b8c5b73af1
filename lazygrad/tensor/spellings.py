"""All methods, with both names of their arguments as type checkers see them.

`names.take_either_name` lets `dim` be called `axis`, `keepdim` `keepdims`, and the reverse. A type checker
reads that in spellings.pyi, which docs/generate.py writes from the signatures.
"""

from __future__ import annotations

from .names import NamesMixin
from .neural import NeuralMixin


class SpellingsMixin(NeuralMixin, NamesMixin):
    """The methods of Tensor."""

    __slots__ = ()
