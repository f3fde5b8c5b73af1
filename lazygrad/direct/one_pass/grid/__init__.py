"""One pass on a grid of threads."""
