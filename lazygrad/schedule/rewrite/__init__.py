"""Rewriting the requested graph before it is cut: `plain` walks it, the other files are its steps."""
