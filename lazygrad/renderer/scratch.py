"""Memory of a kernel's own on a processor: where it lives. The runtimes provide what is named here."""

#: Bytes of a tile that lives on the stack at most; a larger one is in memory that its thread keeps.
MAX_STACK = 64 << 10
#: The function that gives a thread this memory (`runtime/_scratch.py`).
SYMBOL = "lazygrad_scratch"
#: The function that a kernel calls at its end, if it took some.
DONE = "lazygrad_scratch_done"
