"""What is said of a method or attribute that a Tensor does not have."""

from __future__ import annotations

from ..locks import WeakKeys

#: What was said of names by class: the search is slow, and some programs ask in a loop.
_said: WeakKeys[type, dict[str, str]] = WeakKeys()
#: Of so many names it is remembered.
MOST = 256
#: What people who come from PyTorch and JAX type on a tensor, and what to write here.
INSTEAD = {
    "is_cuda": "x.device is the name of its device",
    "mps": "x.to('METAL') moves it to that device",
    "pin_memory": "nothing needs it here",
    "share_memory_": "nothing needs it here",
    "register_hook": "there are no hooks; lazygrad.grad and x.gradient give gradients as values",
    "retain_grad": "loss.gradient(x) gives the gradient of any tensor",
    "grad_fn": "x.uop is the graph that x stands for",
    "is_leaf": "x.requires_grad says whether backward() gives it a gradient",
    "storage": "x.data() is its memory",
    "data_ptr": "x.data() is its memory, x.__dlpack__() its address",
    "at": "x[i] = value writes; what was computed from x before keeps the old values",
    "block_until_ready": "x.realize() computes it",
}


def unknown_name(cls: type, name: str) -> str:
    """The nearest names that exist, for one that does not."""
    if name.startswith("_"):
        return f"type object {cls.__name__!r} has no attribute {name!r}"
    said = _said.get(cls)
    if said is None:
        said = _said.put(cls, {})
    text = said.get(name)
    if text is None:
        if len(said) >= MOST:
            said.clear()
        text = said[name] = f"a Tensor has no attribute {name!r}{_hint(cls, name)}"
    return text


def _hint(cls: type, name: str) -> str:
    import difflib

    if name in INSTEAD:
        return f": {INSTEAD[name]}"
    known = [n for n in dir(cls) if not n.startswith("_")]
    near = difflib.get_close_matches(name, known, 3, 0.6)
    return f"; did you mean {' or '.join(near)}?" if near else "; docs/tensor/README.md lists all methods"
