"""MEMORY_BUDGET and checkpoints: which values are computed again rather than kept."""
