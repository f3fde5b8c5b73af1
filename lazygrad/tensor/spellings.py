"""All methods, as type checkers see them: with both names of their arguments, and those that write in place.

`names.take_either_name` lets `dim` be called `axis`, `keepdim` `keepdims`, and the reverse; `in_place` makes
its methods from a list. A type checker reads both in spellings.pyi, which docs/generate.py writes from the
signatures.
"""

from __future__ import annotations

from .in_place import InPlaceMixin


class SpellingsMixin(InPlaceMixin):
    """The methods of Tensor."""

    __slots__ = ()
