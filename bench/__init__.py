"""Measurements of lazygrad: `python -m bench compile` prints where the time before a kernel runs goes."""
