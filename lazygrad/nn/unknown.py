"""What is said of a layer that there is none of."""

from __future__ import annotations

from collections.abc import Sequence

#: What PyTorch has, and what does without it here.
INSTEAD = {
    "Buffer": "write Tensor(..., requires_grad=False), or module.register_buffer(name, tensor)",
    "DataParallel": "share the inputs among devices with Tensor.shard (docs/sharding.md)",
    "SyncBatchNorm": "write nn.BatchNorm2d: of a batch that Tensor.shard shares it sees all parts",
}


def unknown_layer(name: str, known: Sequence[str]) -> str:
    """What to use instead, or the nearest names that exist."""
    import difflib

    if name in INSTEAD:
        return f"nn has no {name}: {INSTEAD[name]}"
    near = difflib.get_close_matches(name, known, 3, 0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"nn has no {name!r}{hint}"
