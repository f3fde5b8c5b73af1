"""First values of parameters: PyTorch's `torch.nn.init`, each writing a tensor in place and giving it back.

The *fans* of a weight (out, in, *window) are how many numbers a result is made of, in · window, and how many
results a number is a part of, out · window.
"""

from __future__ import annotations

import math

from ..shape import shape_text
from ..tensor import Tensor, no_grad
from ..tensor.signatures import Numbers


def _assigned(tensor: Tensor, value: Tensor) -> Tensor:
    with no_grad():
        tensor.assign(value.detach().cast(tensor.dtype))
    return tensor


def _sizes(tensor: Tensor, name: str, least: int = 2, most: int = 99) -> tuple[int, ...]:
    """The sizes of a weight, if it has as many axes as an initialization needs."""
    sizes = tensor.shape
    if not least <= len(sizes) <= most:
        wanted = f"{least}" if most == least else f"{least} to {most}" if most < 99 else f"at least {least}"
        raise ValueError(f"{name} is for tensors with {wanted} axes, not for shape {shape_text(sizes)}")
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) != len(sizes):
        raise ValueError(f"{name} is for tensors of known sizes, not for shape {shape_text(sizes)}")
    return tuple(numbers)


def fans(tensor: Tensor, name: str = "this") -> tuple[int, int]:
    """(fan_in, fan_out) of a weight.

    >>> nn.init.fans(Tensor.empty(8, 3, 5, 5))
    (75, 200)
    """
    out, into, *window = _sizes(tensor, name)
    return into * math.prod(window), out * math.prod(window)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much a nonlinearity shrinks the spread of what it gets: PyTorch's recommended values.

    param  the negative slope of leaky_relu, 0.01 if not given

    >>> nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1.0 + (0.01 if param is None else param) ** 2))
    known = {"relu": math.sqrt(2.0), "tanh": 5.0 / 3, "selu": 3.0 / 4, "sigmoid": 1.0, "linear": 1.0}
    if nonlinearity.startswith("conv"):
        nonlinearity = "linear"
    if nonlinearity not in known:
        raise ValueError(
            f"nonlinearity must be leaky_relu, {', '.join(known)} or a conv, not {nonlinearity!r}"
        )
    return known[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Numbers | None = None) -> Tensor:
    """Uniform in [a, b).

    >>> nn.init.uniform_(Tensor.empty(3), 2.0, 3.0).floor().tolist()
    [2.0, 2.0, 2.0]
    """
    return _assigned(
        tensor, Tensor.uniform(*tensor.shape, low=a, high=b, device=tensor.device, generator=generator)
    )


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Numbers | None = None) -> Tensor:
    """Normal.

    >>> nn.init.normal_(Tensor.empty(2), 3.0, 0.0).tolist()
    [3.0, 3.0]
    """
    return _assigned(
        tensor, Tensor.randn(*tensor.shape, device=tensor.device, generator=generator) * std + mean
    )


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Numbers | None = None,
) -> Tensor:
    """Normal, without what lies outside of [a, b].

    >>> (nn.init.trunc_normal_(Tensor.empty(100)).abs() <= 2.0).all().item()
    True
    """
    return _assigned(
        tensor,
        Tensor.truncated_normal(
            *tensor.shape, mean=mean, std=std, a=a, b=b, device=tensor.device, generator=generator
        ),
    )


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere.

    >>> nn.init.constant_(Tensor.empty(2), 0.5).tolist()
    [0.5, 0.5]
    """
    return _assigned(tensor, Tensor.full(tensor.shape, val, dtype=tensor.dtype, device=tensor.device))


def ones_(tensor: Tensor) -> Tensor:
    """Ones.

    >>> nn.init.ones_(Tensor.empty(2)).tolist()
    [1.0, 1.0]
    """
    return constant_(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros.

    >>> nn.init.zeros_(Tensor.empty(2)).tolist()
    [0.0, 0.0]
    """
    return constant_(tensor, 0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity, as far as the matrix reaches.

    >>> nn.init.eye_(Tensor.empty(2, 3)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    rows, columns = _sizes(tensor, "eye_", 2, 2)
    return _assigned(tensor, Tensor.eye(rows, columns, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The identity as the weight of a convolution: ones in the middle of the windows of equal channels.

    tensor  (out, in, *window) of one to three window axes; each of the groups begins again

    >>> nn.init.dirac_(Tensor.empty(2, 1, 3), groups=2).tolist()
    [[[0.0, 1.0, 0.0]], [[0.0, 1.0, 0.0]]]
    """
    out, into, *window = _sizes(tensor, "dirac_", 3, 5)
    if groups < 1 or out % groups:
        raise ValueError(f"dirac_: {groups} groups do not divide {out} channels")
    channel = Tensor.arange(out, device=tensor.device) % (out // groups)
    here = channel.reshape(-1, 1) == Tensor.arange(into, device=tensor.device)
    for size in window:
        here = here.unsqueeze(-1) & (Tensor.arange(size, device=tensor.device) == size // 2)
    return _assigned(tensor, here.where(1.0, 0.0))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Numbers | None = None) -> Tensor:
    """Uniform in ±gain · √(6 / (fan_in + fan_out)) (Glorot, Bengio 2010).

    >>> (nn.init.xavier_uniform_(Tensor.empty(3, 3)).abs() <= 1.0).all().item()
    True
    """
    bound = gain * math.sqrt(6.0 / max(1, sum(fans(tensor, "xavier_uniform_"))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Numbers | None = None) -> Tensor:
    """Normal of standard deviation gain · √(2 / (fan_in + fan_out)) (Glorot, Bengio 2010).

    >>> nn.init.xavier_normal_(Tensor.empty(3, 3), gain=0.0).abs().sum().item()
    0.0
    """
    std = gain * math.sqrt(2.0 / max(1, sum(fans(tensor, "xavier_normal_"))))
    return normal_(tensor, 0.0, std, generator)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str, name: str) -> float:
    """The standard deviation that keeps the spread through a layer and its nonlinearity."""
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode must be fan_in or fan_out, not {mode!r}")
    fan = fans(tensor, name)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(1, fan))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Numbers | None = None,
) -> Tensor:
    """Uniform in ±gain · √(3 / fan) (He et al. 2015); `a` is the negative slope of leaky_relu.

    >>> (nn.init.kaiming_uniform_(Tensor.empty(2, 6)).abs() <= 1.0).all().item()
    True
    """
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity, "kaiming_uniform_")
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Numbers | None = None,
) -> Tensor:
    """Normal of standard deviation gain / √fan (He et al. 2015); `a` is the negative slope of leaky_relu.

    >>> nn.init.kaiming_normal_(Tensor.empty(2, 6)).shape
    (2, 6)
    """
    std = _kaiming(tensor, a, mode, nonlinearity, "kaiming_normal_")
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Numbers | None = None) -> Tensor:
    """A random matrix whose rows or columns, whichever are fewer, are orthonormal (Saxe et al. 2013).

    Axes behind the first count as one. It is the Q of normal numbers, with signs that make it uniform.

    >>> q = nn.init.orthogonal_(Tensor.empty(2, 3))
    >>> (q @ q.transpose(0, 1)).round(4).abs().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows, *others = _sizes(tensor, "orthogonal_")
    columns = math.prod(others)
    tall, wide = max(rows, columns), min(rows, columns)
    q, r = Tensor.randn(tall, wide, device=tensor.device, generator=generator).qr()
    q = q * (r.diagonal() < 0).where(-1.0, 1.0)
    q = q if rows >= columns else q.transpose(0, 1)
    return _assigned(tensor, (q * gain).reshape(tensor.shape))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Numbers | None = None) -> Tensor:
    """Normal numbers, and zeros for a share of each column (Martens 2010).

    >>> (nn.init.sparse_(Tensor.empty(4, 3), 0.5) == 0.0).sum(0).tolist()
    [2, 2, 2]
    """
    rows, columns = _sizes(tensor, "sparse_", 2, 2)
    if not 0 <= sparsity <= 1:
        raise ValueError(f"sparsity must be a share, in [0, 1], not {sparsity}")
    order = Tensor.rand(rows, columns, device=tensor.device, generator=generator).argsort(0)
    values = Tensor.randn(rows, columns, device=tensor.device, generator=generator) * std
    return _assigned(tensor, (order < math.ceil(sparsity * rows)).where(0.0, values))
