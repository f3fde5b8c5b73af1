"""Generators of random programs, files and faults: each finds a family of bugs, and shrinks what it finds."""
