"""Random numbers under PyTorch's and numpy's names: streams, and what draws from them. No logic is here."""

from .tensor import Generator, Tensor
from .tensor.random.sampling import fork_random, get_state, set_state

manual_seed = seed = Tensor.manual_seed
normal, rand, randint, randn = Tensor.normal, Tensor.rand, Tensor.randint, Tensor.randn
randperm, uniform = Tensor.randperm, Tensor.uniform

__all__ = [
    "Generator",
    "fork_random",
    "get_state",
    "manual_seed",
    "normal",
    "rand",
    "randint",
    "randn",
    "randperm",
    "seed",
    "set_state",
    "uniform",
]
