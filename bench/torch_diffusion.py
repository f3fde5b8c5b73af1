"""Networks that take noise out of pictures, in modules of PyTorch: a U-Net and a transformer.

Ho, Jain, Abbeel: Denoising Diffusion Probabilistic Models, 2020, with the cross attention of Rombach and
others, 2022; Peebles, Xie: Scalable Diffusion Models with Transformers, 2023.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def _of_time(step: Tensor, width: int) -> Tensor:
    """Sines and cosines of the time step."""
    rates = torch.exp(-math.log(10000) * torch.arange(width // 2) / (width // 2))
    angles = step[:, None].float() * rates
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


class _Residual(nn.Module):
    """Two convolutions, between which the time step is added."""

    def __init__(self, inner: int, outer: int, time: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, inner), nn.GroupNorm(8, outer)
        self.conv1 = nn.Conv2d(inner, outer, 3, padding=1)
        self.conv2 = nn.Conv2d(outer, outer, 3, padding=1)
        self.time = nn.Linear(time, outer)
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.conv1(nn.functional.silu(self.norm1(x)))
        h = h + self.time(nn.functional.silu(time))[:, :, None, None]
        out: Tensor = self.skip(x) + self.conv2(nn.functional.silu(self.norm2(h)))
        return out


class _Attend(nn.Module):
    """Attention among the places of a picture, and to a text."""

    def __init__(self, width: int, text: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.own = nn.MultiheadAttention(width, 4, batch_first=True)
        self.cross = nn.MultiheadAttention(width, 4, kdim=text, vdim=text, batch_first=True)

    def forward(self, x: Tensor, text: Tensor) -> Tensor:
        h = self.norm(x).flatten(2).transpose(1, 2)
        y = self.norm1(h)
        h = h + self.own(y, y, y, need_weights=False)[0]
        h = h + self.cross(self.norm2(h), text, text, need_weights=False)[0]
        return x + h.transpose(1, 2).reshape(x.shape)


class UNet(nn.Module):
    """Noise in a latent picture: down by 2 and up again, with attention at the bottom."""

    def __init__(self, width: int, text: int = 64) -> None:
        super().__init__()
        time = 4 * width
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(4, width, 3, padding=1)
        self.down1 = _Residual(width, width, time)
        self.shrink = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.down2, self.attend = _Residual(width, 2 * width, time), _Attend(2 * width, text)
        self.middle = _Residual(2 * width, 2 * width, time)
        self.grow = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(2 * width, width, 3, padding=1))
        self.up = _Residual(2 * width, width, time)
        self.norm, self.last = nn.GroupNorm(8, width), nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, x: Tensor, step: Tensor, text: Tensor) -> Tensor:
        time = self.time(_of_time(step, self.width))
        high = self.down1(self.first(x), time)
        low = self.attend(self.down2(self.shrink(high), time), text)
        low = self.middle(low, time)
        out = self.up(torch.cat([self.grow(low), high], dim=1), time)
        made: Tensor = self.last(nn.functional.silu(self.norm(out)))
        return made


class _Block(nn.Module):
    """A transformer block whose normalizations are shifted and scaled by the time step."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        a, b, c, d, e, f = self.modulation(time)[:, None].chunk(6, dim=-1)
        y = self.norm1(x) * (1 + a) + b
        x = x + c * self.attention(y, y, y, need_weights=False)[0]
        return x + f * self.mlp(self.norm2(x) * (1 + d) + e)


class DiT(nn.Module):
    """Noise in a latent picture, cut into patches of 2 by 2."""

    def __init__(self, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.width = width
        self.patches = nn.Conv2d(4, width, 2, stride=2)
        self.places = nn.Parameter(torch.randn(1, 64, width) * 0.02)
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(depth))
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, 16)

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        time = self.time(_of_time(step, self.width))
        h = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            h = block(h, time)
        return nn.functional.pixel_shuffle(self.last(self.norm(h)).transpose(1, 2).unflatten(2, (8, 8)), 2)
