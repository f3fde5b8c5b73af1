"""Products, decompositions and functions of matrices, Fourier transforms."""
