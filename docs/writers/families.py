"""Which methods stand on which page of docs/tensor/: groups that a user would look for."""

from __future__ import annotations

from typing import NamedTuple

#: What stands under a heading instead of the file's docstring, where that is for those who read the code.
INTRODUCTIONS = {"core": "The sizes of a tensor, and whether it has a gradient."}


class Family(NamedTuple):
    """One page."""

    page: str
    title: str
    sentence: str
    sections: dict[str, str]  # a heading → the file of lazygrad/tensor/ whose methods stand under it


FAMILIES = [
    Family(
        "values",
        "Sizes and values",
        "How large a tensor is, and its values as numbers, lists and arrays of numpy.",
        {"Sizes": "core", "Values": "host", "Other libraries": "exchange"},
    ),
    Family(
        "computing",
        "Computing, writing, gradients",
        "Operations on whole tensors: running, copying, writing, moving to a device, differentiating.",
        {
            "Running": "computing",
            "Copies and casts": "copying",
            "Gradients": "backward",
            "Devices": "sharding",
            "Assigning": "assigning",
            "In place": "in_place",
            "Kernels as text": "custom_kernels",
            "Loops over time": "scanning",
        },
    ),
    Family(
        "creation",
        "Creation",
        "Tensors filled by a rule, and tensors like another one.",
        {"By a rule": "creation", "Like another one": "creation_like"},
    ),
    Family(
        "random",
        "Random numbers",
        "Tensors of random numbers, random orders and choices, the seed.",
        {"Sampling": "random.sampling", "Distributions": "random.distributions"},
    ),
    Family(
        "movement",
        "Movement",
        "The same elements in another shape or order: reshape, permute, expand, split, pad, rotate.",
        {
            "Axes and elements": "shape.movement",
            "Formulas": "shape.rearranging",
            "Padding and windows": "shape.padding",
            "Arranging": "shape.arranging",
            "Diagonals and triangles": "shape.diagonals",
        },
    ),
    Family(
        "joining",
        "Joining",
        "Several tensors joined along an existing axis or a new one, and the reverse.",
        {"Along an axis": "shape.joining", "By numpy's names": "shape.stacking"},
    ),
    Family(
        "dtypes",
        "Dtypes and floats",
        "Casts by name, and the parts of floats: signs, exponents, NaN and infinities.",
        {"Casting": "elementwise.casting", "The parts of floats": "elementwise.floats"},
    ),
    Family(
        "arithmetic",
        "Arithmetic",
        "Sums, differences, products, quotients, remainders, rounding, element by element.",
        {
            "Sums and products": "elementwise.arithmetic",
            "Division": "elementwise.division",
            "Rounding": "elementwise.rounding",
        },
    ),
    Family(
        "comparison",
        "Comparison, choice, logic",
        "Comparing elements, choosing between them, logic on bools and bits.",
        {
            "Comparison": "elementwise.comparison",
            "Choice": "indexing.choosing",
            "Logic and bits": "elementwise.logic",
        },
    ),
    Family(
        "functions",
        "Functions",
        "Functions of one variable: roots, exponentials, angles, the gamma family, Bessel functions.",
        {
            "Elementary functions": "elementwise.functions",
            "Special functions": "elementwise.special",
            "The gamma family": "elementwise.gamma",
            "The incomplete gamma functions": "elementwise.incomplete_gamma",
            "Bessel functions": "elementwise.bessel",
        },
    ),
    Family(
        "reductions",
        "Reductions and statistics",
        "Sums, extremes and statistics along axes, and running values.",
        {
            "Along axes": "reduce.reductions",
            "Running values": "reduce.running",
            "Statistics": "reduce.statistics",
        },
    ),
    Family(
        "sorting",
        "Sorting and searching",
        "Order along an axis; what occurs, how often, and where.",
        {"Order": "indexing.sorting", "Occurrence": "indexing.searching"},
    ),
    Family(
        "indexing",
        "Indexing",
        "Parts of a tensor by number, slice, mask or tensor of indices, read and replaced.",
        {
            "Subscripts": "indexing.subscripts",
            "Gathering": "indexing.gathering",
            "Replacing": "indexing.writing",
        },
    ),
    Family(
        "products",
        "Products",
        "Products of matrices, vectors and tensors; distances.",
        {"Contractions": "linalg.contractions", "Further products": "linalg.products"},
    ),
    Family(
        "matrices",
        "Decompositions of matrices",
        "Decompositions, inverses, determinants, solutions of linear systems.",
        {"Decompositions": "linalg.decompositions"},
    ),
    Family(
        "fourier",
        "Fourier transforms",
        "The discrete Fourier transform and its relatives, over one axis and several.",
        {"Transforms": "linalg.fourier", "Of windows of a signal": "linalg.spectrograms"},
    ),
    Family(
        "activation",
        "Activations",
        "Activation functions, element by element or along an axis.",
        {"Functions": "elementwise.activation"},
    ),
    Family(
        "images",
        "Convolution, pooling, images",
        "Windows over the last axes: convolutions, pools and their reverse; images at other sizes.",
        {
            "Convolution": "neural.convolution",
            "Pooling": "neural.pooling",
            "Adaptive pooling": "neural.adaptive_pooling",
            "Windows put back": "shape.folding",
            "Other sizes": "shape.resizing",
        },
    ),
    Family(
        "layers",
        "Normalization, attention, layers",
        "Parts of networks as functions, which take their weights as arguments.",
        {"Normalization": "neural.normalization", "Attention": "neural.attention", "Layers": "neural.layers"},
    ),
    Family(
        "losses",
        "Losses",
        "How far predictions are from their targets.",
        {"Losses of classes": "neural.class_losses", "Losses of numbers and distances": "neural.losses"},
    ),
]
