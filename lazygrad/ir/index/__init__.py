"""Canonical integer arithmetic on the `index` dtype, with bounds.

Every index expression is a polynomial: a sum of integer coefficients times products of *atoms* (ranges,
variables, and what has no simpler form: floor divisions, remainders, loaded values), plus a constant. The
constructors here are what the operators on the index dtype call; they return the one canonical node of that
polynomial, so that equal sums are the same object, and `//` and `%` simplify by arithmetic on the terms and
their bounds instead of by search.
"""

from .bounds import bounds, bounds_where, float_bounds, note_bounds
from .division import add, floordiv, mod, sub
from .nodes import (
    all_of,
    equal,
    evaluate,
    less,
    less_equal,
    logical_not,
    maximum,
    minimum,
    not_equal,
    rebuild,
    select,
    substitute,
)
from .polynomials import (
    FALSE,
    TRUE,
    Monomial,
    Terms,
    as_index,
    as_sint,
    build,
    conjuncts,
    const,
    mul,
    neg,
    order_key,
    sint,
    terms_of,
)

__all__ = [
    "FALSE",
    "TRUE",
    "Monomial",
    "Terms",
    "add",
    "all_of",
    "as_index",
    "as_sint",
    "bounds",
    "bounds_where",
    "build",
    "conjuncts",
    "const",
    "equal",
    "evaluate",
    "float_bounds",
    "floordiv",
    "less",
    "less_equal",
    "logical_not",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "neg",
    "not_equal",
    "note_bounds",
    "order_key",
    "rebuild",
    "select",
    "sint",
    "sub",
    "substitute",
    "terms_of",
]
