"""The parts of encoders, made of weights that were read: a product, a norm; and reading them from a folder.

Layers of `nn` begin with random numbers. These begin with what a file holds, and nothing is drawn for them.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ..device import Device
from ..dtype import dtypes
from ..nn.formats.source import shown
from ..shape import shape_text
from ..tensor import Tensor

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": lambda x: x.gelu("none"),
    "gelu_new": lambda x: x.gelu("tanh"),
    "gelu_pytorch_tanh": lambda x: x.gelu("tanh"),
    "relu": Tensor.relu,
    "silu": Tensor.silu,
    "swish": Tensor.silu,
    "tanh": Tensor.tanh,
}


@dataclass(frozen=True, slots=True)
class Dense:
    """x @ weight + bias.

    weight  (in, out), other than in files: a few rows of x take half the time of the other order
            (8 rows by 384 × 384 numbers: 26 and 55 us)
    bias    (out,)
    """

    weight: Tensor
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return x.linear(self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class Norm:
    """Layer normalization of the last axis (Ba et al. 2016)."""

    weight: Tensor
    bias: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        return x.layernorm(eps=self.eps) * self.weight + self.bias


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(n, length, heads · d) → (n, heads, length, d)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """(n, heads, length, d) → (n, length, heads · d)."""
    return x.transpose(1, 2).flatten(-2)


class Weights:
    """The tensors of a file, taken by name; those that were taken are brought into memory by `read` at once.

    tensors  by name, anywhere (device DISK for files); floats of any width
    origin   what errors call the file
    """

    def __init__(
        self, tensors: Mapping[str, Tensor], origin: object, find: Callable[[str], Tensor] | None = None
    ) -> None:
        self.tensors, self.origin = tensors, origin
        self.find = find or tensors.__getitem__
        self.taken: list[Tensor] = []

    def take(
        self, *names: str, shape: tuple[int, ...], or_zero: Collection[str] = (), turned: bool = False
    ) -> Tensor:
        """A tensor as float32 on the default device, or several, one behind the other along the first axis.

        shape    of each
        or_zero  those that are zero where the file does not have them; any other raises
        turned   the two axes change places
        """
        parts = []
        for name in names:
            if name not in self.tensors and name in or_zero:
                parts.append(Tensor.zeros(*shape))
                continue
            if name not in self.tensors:
                raise ValueError(f"{self.origin} has no tensor {shown(name)}, which the model needs")
            part = self.find(name)
            if part.shape != shape:
                raise ValueError(
                    f"{self.origin}: {shown(name)} has shape {shape_text(part.shape)}; "
                    f"by the configuration it is {shape_text(shape)}"
                )
            parts.append(part.to(Device.DEFAULT).cast(dtypes.float32))
        found = parts[0].cat(*parts[1:]) if len(parts) > 1 else parts[0]
        self.taken.append((found.transpose(0, 1) if turned else found).contiguous())
        return self.taken[-1]

    def read(self) -> None:
        """Bring what was taken into memory."""
        Tensor.realize(*self.taken)
        self.taken.clear()


class RandomWeights(Weights):
    """Weights that no file has, for trying out: products and tables of normal numbers with a deviation of
    0.02, no biases, norms that change nothing. `Tensor.manual_seed` decides which numbers they are.
    """

    def __init__(self) -> None:
        super().__init__({}, "random weights")

    def take(
        self, *names: str, shape: tuple[int, ...], or_zero: Collection[str] = (), turned: bool = False
    ) -> Tensor:
        whole = (shape[0] * len(names), *shape[1:])
        normal = names[0].endswith(("weight", "encodings")) and len(shape) > 1
        norm = names[0].endswith("orm.weight")
        found = Tensor.randn(*whole) * 0.02 if normal else Tensor.full(whole, float(norm))
        self.taken.append((found.transpose(0, 1) if turned else found).contiguous())
        return self.taken[-1]


def whole_number(config: Mapping[str, Any], key: str, origin: object, least: int = 1) -> int:
    """A size of a configuration."""
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{origin}: {key} must be a whole number of at least {least}, not {value!r}")
    return value


def open_tokenizer(path: pathlib.Path) -> Any:
    """The tokenizer in a tokenizer.json, of the library `tokenizers`."""
    if not path.is_file():
        raise FileNotFoundError(
            f"no file {path}; AutoTokenizer.from_pretrained(...).save_pretrained(...) writes it"
        )
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ImportError('texts need the library tokenizers: pip install "lazygrad[llm]"') from None
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises Exception itself
        raise ValueError(f"{path} is not a tokenizer: {error}") from None
