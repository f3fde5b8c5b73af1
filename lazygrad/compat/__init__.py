"""Scripts that were written for `tinygrad`, and the older printed forms.

`python -m lazygrad.compat script.py` runs such a script unchanged: `aliases` gives the import paths of four
years their meaning here: `lazybuffer`, `graph` and `enums` what nodes and operations were called, `types` and
`helpers` small functions, `flags` what lazygrad has no flag for, `files` and `training` state and optimizers,
`running` and `kernel` one program by hand.
Nothing of that touches a program that does not ask for it. `classic_text` prints kernels as they were printed
early in 2024; DEBUG_STYLE=classic chooses it.
"""
