"""NVIDIA's driver for tests: the functions that the runtime calls, with host memory as the GPU's.

`driver.py` is the driver, `compiler.py` puts a kernel's text beside what NVRTC makes of it, `machine.py` runs
the text on the CPU (machine.cpp) and reports accesses outside of memory and races.
"""
