"""What is said of a layer that there is none of."""

from __future__ import annotations

from collections.abc import Sequence

#: What PyTorch has because its models are registered, and what does without it here.
INSTEAD = {
    "ModuleList": "write a plain list of layers",
    "ModuleDict": "write a plain dict of layers",
    "Parameter": "write Tensor(..., requires_grad=True)",
    "ParameterList": "write a plain list of tensors",
    "utils": "clip_grad_norm_ and clip_grad_value_ are in nn.optim",
    "ParameterDict": "write a plain dict of tensors",
}


def unknown_layer(name: str, known: Sequence[str]) -> str:
    """What to use instead, or the nearest names that exist."""
    import difflib

    if name in INSTEAD:
        return f"nn has no {name}: {INSTEAD[name]}"
    near = difflib.get_close_matches(name, known, 3, 0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"nn has no {name!r}{hint}"
