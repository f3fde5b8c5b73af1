"""Horizontal fusion: kernels of a plan that do not need each other become one."""
