"""Kernels on a grid of threads: workgroups, blocks and warps, how long they take, and places in a launch.

No part of the compiler, which asks what `workgroups.py` says to `codegen/opt/grids.py` when it is imported.
"""
