"""Which parentheses an expression needs where it stands: each row writes its own around what it gives."""

from __future__ import annotations


def is_name(text: str) -> bool:
    """Whether it is a variable, or one lane of it."""
    return text.replace(".", "").isidentifier() and not text[0].isdigit()


def of_choice(text: str) -> str:
    """An operand of `?:`, which binds less than all others: only another choice keeps its parentheses."""
    inner = without_parentheses(text)
    depth = 0
    for letter in inner:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "?" and depth == 0:
            return text
    return inner


def without_parentheses(text: str) -> str:
    """An expression without the parentheses around all of it, for where others stand already."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 else text
    return text
