"""What a kernel AST means, slowly and obviously: the oracle of the kernels that are made."""
