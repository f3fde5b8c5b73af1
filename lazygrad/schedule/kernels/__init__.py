"""The kernels of a plan: `assemble` makes them of a placement; their order, memory, and list."""
