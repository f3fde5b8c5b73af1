"""What a person types: `Tensor`, one file per family of methods.

`Tensor` is a core (core.py: a graph node and its memory) and the FAMILIES below. A family is a class over the
face of all (face.py); none derives from another, none imports another for its methods.
"""
# ruff: noqa: I001 - on one screen
# fmt: off

import sys

from . import assigning, backward, computing, copying, creation, creation_like, custom_kernels, exchange, host
from . import numpy_calls, scanning, sharding, showing
from .elementwise import activation, arithmetic, bessel, casting, comparison, division, floats, functions
from .elementwise import gamma, incomplete_gamma, logic, operands, rounding, special
from .indexing import choosing, gathering, searching, sorting, subscripts, writing
from .linalg import contractions, decompositions, fourier, products, spectrograms
from .neural import adaptive_pooling, attention, class_losses, convolution, layers, losses, normalization
from .neural import pooling
from .random import distributions, sampling
from .reduce import reductions, running, statistics
from .shape import arranging, diagonals, folding, joining, movement, padding, rearranging, resizing, stacking

from .assembly import assemble
from .calling import CallablePackage, new_tensor
from .computing import kernels
from .face import Tensor
from .holders import memory
from .modes import autocast, enable_grad, no_grad
from .numpy_calls import announce_namespace
from .print_options import printoptions, set_printoptions
from .random.generator import Generator
from .transforms.checkpoint import checkpoint
from .transforms.derivatives import grad, gradcheck, hessian, jacobian, jvp, value_and_grad, vjp, vmap
from .transforms.function import Function

__all__ = [
    "Function", "Generator", "Tensor", "announce_namespace", "autocast", "checkpoint", "enable_grad", "grad",
    "gradcheck", "hessian", "jacobian", "jvp", "kernels", "memory", "new_tensor", "no_grad", "printoptions",
    "set_printoptions", "value_and_grad", "vjp", "vmap",
]

#: Each in the file before the dot, and the folder that the imports say. Nowhere else are they listed.
FAMILIES: tuple[type[Tensor], ...] = (
    # a tensor as a whole
    computing.Computing, copying.Copying, sharding.Sharding, assigning.Assigning, backward.Backward,
    host.Host, exchange.Exchange, numpy_calls.NumpyCalls, showing.Showing, custom_kernels.CustomKernels,
    scanning.Scanning,
    # new tensors
    creation.Creation, creation_like.CreationLike, sampling.Sampling, distributions.Distributions,
    # element by element
    casting.Casting, operands.Operands, arithmetic.Arithmetic, division.Division, rounding.Rounding,
    comparison.Comparison, choosing.Choosing, logic.Logic, floats.Floats, functions.Functions,
    special.Special, gamma.Gamma, incomplete_gamma.IncompleteGamma, bessel.Bessel, activation.Activation,
    # shape
    movement.Movement, rearranging.Rearranging, padding.Padding, arranging.Arranging, diagonals.Diagonals,
    joining.Joining, stacking.Stacking,
    # along axes
    reductions.Reductions, running.Running, statistics.Statistics, sorting.Sorting, searching.Searching,
    # by index
    subscripts.Subscripts, gathering.Gathering, writing.Writing,
    # matrices
    contractions.Contractions, products.Products, decompositions.Decompositions, fourier.Fourier,
    spectrograms.Spectrograms,
    # networks
    convolution.Convolution, pooling.Pooling, adaptive_pooling.AdaptivePooling, folding.Folding,
    resizing.Resizing, normalization.Normalization, attention.Attention, layers.Layers,
    class_losses.ClassLosses, losses.Losses,
)

assemble(Tensor, FAMILIES)

sys.modules[__name__].__class__ = CallablePackage
