"""Tables of rewrite rules that make a graph smaller and keep every value to the bit; `fold` applies them.

In come graphs of any form with arithmetic in them, out come graphs of the same form with the same numbers.
"""

from .algebra import algebra, fold, shaped

__all__ = ["algebra", "fold", "shaped"]
