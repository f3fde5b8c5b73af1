"""What is said of a layer that there is none of."""

from __future__ import annotations

from collections.abc import Sequence

#: What PyTorch has because its models are registered, and what does without it here.
INSTEAD = {
    "ModuleList": "a list of layers is found as it is",
    "ModuleDict": "a dict of layers is found as it is",
    "Parameter": "Tensor(..., requires_grad=True) is trained",
    "ParameterList": "a list of tensors is found as it is",
    "utils": "clip_grad_norm_ and clip_grad_value_ stand in nn.optim",
    "ParameterDict": "a dict of tensors is found as it is",
}


def unknown_layer(name: str, known: Sequence[str]) -> str:
    """What to use instead, or the nearest names that exist."""
    import difflib

    if name in INSTEAD:
        return f"nn has no {name}: {INSTEAD[name]}"
    near = difflib.get_close_matches(name, known, 3, 0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"nn has no {name!r}{hint}"
