"""Scheduling: the tensor graph (form 1) is cut into kernels (form 2), whose buffers and order it fixes."""
