"""A captured function as a page: HTML, JavaScript, WGSL and weights that run it in a browser with WebGPU.

In: a function and example arguments (`write.py`). Out: a folder. Kernels are planned and written for what
every implementation of WebGPU has, so that neither a GPU nor a driver is needed to make it. Here are the
files that are the same for all pages: index.html but for its title, page.js, which shows inputs and results,
and runtime.js, which reads the weights and runs the kernels.
"""
