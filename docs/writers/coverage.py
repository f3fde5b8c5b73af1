"""docs/coverage.md: what each method takes, and its gradient, by calling its example; which tests name it.

A method takes a dtype if its example can be called with it; central differences check its gradient.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from pathlib import Path
from typing import Any

from lazygrad import Tensor, dtypes

from .methods import methods

ROOT = Path(__file__).parent.parent.parent

# ---- which dtypes and gradients ----

KINDS = {
    "bool": ["bool"],
    "int": ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
    "float": ["float16", "bfloat16", "float32", "float64"],
    "fp8": ["fp8e4m3", "fp8e5m2"],
}


class _Casting(ast.NodeTransformer):
    """The first tensor that an example makes, in another dtype (and with gradients)."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.done = dtype, False

    def visit_Call(self, node: ast.Call) -> Any:
        made = isinstance(node.func, ast.Name) and node.func.id == "Tensor"
        created = isinstance(node.func, ast.Attribute) and ast.unparse(node.func) in (
            "Tensor.zeros",
            "Tensor.ones",
            "Tensor.full",
            "Tensor.eye",
        )
        if not self.done and (made or created):
            self.done = True
            return ast.parse(f"_as({ast.unparse(node)}, {self.dtype!r})", mode="eval").body
        return self.generic_visit(node)


#: Calls whose gradient is looked at, of methods whose example has no tensor that could be moved, or where
#: the result does not change with it.
CALLS = {
    "where": "(lambda x: (x > 1.5).where(x, 0.0))(Tensor([1.0, 2.0]))",
    "scatter": "Tensor([1.0, 2.0, 3.0]).scatter(0, Tensor([2, 0]), Tensor([5.0, 6.0]).double())",
    "scatter_add": "Tensor([1.0, 2.0, 3.0]).scatter_add(0, Tensor([2, 2]), Tensor([5.0, 6.0]).double())",
    "scatter_reduce": "Tensor([1.0, 2.0, 3.0]).scatter_reduce("
    "0, Tensor([2, 0]), Tensor([5.0, 6.0]).double(), 'prod')",
    "xlogy": "Tensor([1.0, 2.0]).xlogy(Tensor([3.0, 4.0]))",
    "xlog1py": "Tensor([1.0, 2.0]).xlog1py(Tensor([3.0, 4.0]))",
    "entr": "Tensor([0.2, 0.7]).entr()",
    "hypot": "Tensor([1.0, 2.0]).hypot(Tensor([3.0, 4.0]))",
    "erfc": "Tensor([0.2, -0.7]).erfc()",
    "erfcx": "Tensor([0.2, 0.7]).erfcx()",
    "index_copy": "Tensor([1.0, 2.0, 3.0]).index_copy(0, Tensor([2]), Tensor([5.0]).double())",
    "index_reduce": "Tensor([1.0, 2.0, 3.0]).index_reduce(0, Tensor([2]), Tensor([5.0]).double(), 'prod')",
    "put": "Tensor([1.0, 2.0, 3.0]).put(Tensor([2]), Tensor([5.0]).double())",
    "masked_scatter": "Tensor([1.0, 2.0]).masked_scatter(Tensor([True, False]), Tensor([5.0, 6.0]).double())",
    "triangular_solve": "Tensor([[4.0], [2.0]]).triangular_solve(Tensor([[2.0, 1.0], [0.0, 3.0]]))",
    "lu": "Tensor([[1.0, 2.0], [3.0, 1.0]]).lu()",
    "lstsq": "Tensor([[1.0, 2.0], [3.0, 1.0], [1.0, 1.0]]).lstsq(Tensor([[1.0], [3.0], [2.0]])).solution",
    "max_pool2d": "Tensor([[[[1.0, 5.0], [3.0, 2.0]]]]).max_pool2d(2)",
    "avg_pool2d": "Tensor([[[[1.0, 5.0], [3.0, 2.0]]]]).avg_pool2d(2)",
    "max_pool3d": "Tensor([[[[[1.0, 5.0], [3.0, 2.0]]]]]).max_pool3d((1, 2, 2))",
    "avg_pool3d": "Tensor([[[[[1.0, 5.0], [3.0, 2.0]]]]]).avg_pool3d((1, 2, 2))",
    "adaptive_avg_pool2d": "Tensor([[[[1.0, 5.0], [3.0, 2.0]]]]).adaptive_avg_pool2d(1)",
    "adaptive_max_pool2d": "Tensor([[[[1.0, 5.0], [3.0, 2.0]]]]).adaptive_max_pool2d(1)",
    "adaptive_avg_pool3d": "Tensor([[[[[1.0, 5.0], [3.0, 2.0]]]]]).adaptive_avg_pool3d(1)",
    "adaptive_max_pool3d": "Tensor([[[[[1.0, 5.0], [3.0, 2.0]]]]]).adaptive_max_pool3d(1)",
    "pixel_shuffle": "Tensor([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]).pixel_shuffle(2)",
    "pixel_unshuffle": "Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).pixel_unshuffle(2)",
    "channel_shuffle": "Tensor([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]).channel_shuffle(2)",
    "grid_sample": "Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).grid_sample(Tensor([[[[0.2, 0.3]]]]))",
    "batchnorm": "Tensor([[1.0, 2.0]]).batchnorm(None, None, Tensor([0.5, 0.5]), Tensor([2.0, 3.0]))",
    "scaled_dot_product_attention": "Tensor([[1.0, 2.0], [0.5, 1.0]]).scaled_dot_product_attention("
    "Tensor([[1.0, 0.0], [0.0, 2.0]]), Tensor([[1.0, 2.0], [3.0, 5.0]]))",
    "embedding": "(lambda w, i: i.embedding(w))(Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([1, 0]))",
    "ctc_loss": "Tensor([[[0.1, 0.6, 0.3]], [[0.5, 0.2, 0.3]]]).log().ctc_loss("
    "Tensor([[1]]), Tensor([2]), Tensor([1]))",
    "div": "Tensor([1.0, 2.0]).div(Tensor([3.0, 4.0]))",
    "logaddexp": "Tensor([1.0, 2.0]).logaddexp(Tensor([3.0, 4.0]))",
    "log_softmax": "Tensor([1.0, 2.0]).log_softmax()",
    "corrcoef": "Tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 1.5]]).corrcoef()",
    "renorm": "Tensor([[3.0, 4.0], [1.0, 1.0]]).renorm(2, 0, 2.0)",
    "newton_schulz": "Tensor([[3.0, 4.0], [1.0, 1.0]]).newton_schulz(2, (2.0, -1.5, 0.5))",
    "triplet_margin_loss": "Tensor([[1.0, 2.0]]).triplet_margin_loss("
    "Tensor([[0.0, 1.0]]), Tensor([[1.0, 3.0]]))",
    "gumbel_softmax": "Tensor([1.0, 2.0]).gumbel_softmax()",
}


def example_of(function: Any, called: str | None = None) -> ast.expr | None:
    """The tensor expression of a call, or of a method's example, without what reads its value."""
    found = re.search(r">>> (.*)", inspect.getdoc(function) or "")
    text = called or (found[1] if found else None)
    if text is None:
        return None
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    while called is None:
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.args:
            tree = tree.args[0]
        elif isinstance(tree, ast.ListComp):
            tree = tree.generators[0].iter
        elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute):
            shown = ("tolist", "item", "numpy", *(["round"] if function.__name__ != "round" else []))
            if tree.func.attr not in shown:
                return tree
            tree = tree.func.value
        elif isinstance(tree, ast.Attribute):
            tree = tree.value
        else:
            return None
    return tree


def code_of(function: Any, dtype: str, called: str | None = None) -> Any:
    """The example compiled, with `_as(tensor, dtype)` around its first tensor; None where it has none."""
    tree = example_of(function, called)
    if tree is None or function.__name__ not in ast.unparse(tree):
        return None
    casting = _Casting(dtype)
    text = ast.unparse(casting.visit(ast.parse(ast.unparse(tree), mode="eval")))
    return compile(text, function.__name__, "eval") if casting.done else None


#: What an example may raise for inputs of another kind.
REFUSALS = (TypeError, ValueError, OverflowError, IndexError, NotImplementedError)


def takes(function: Any, dtype: str) -> bool:
    """Whether the example can be called with its first tensor in a dtype."""
    try:
        eval(code_of(function, dtype), {"Tensor": Tensor, "math": math, "_as": lambda t, d: t.cast(d)})
    except REFUSALS:
        return False
    return True


#: Central differences go so far to both sides, and agree so well: where all is float64, and where it is not.
WIDE, NARROW = (1e-6, 1e-4), (2.0**-4, 2.0**-4)


def verified(function: Any) -> str:
    """What central differences say of the example's gradient with respect to its first tensor, in float64.

    yes     they agree with the gradient, which is not zero everywhere
    flat    the result does not change with the tensor, and its gradient is zero, or none
    no      it changes, and there is no gradient
    wrong   it changes, and the gradient is another one
    –       the result is no float, or random, or there is no example to try
    """
    code = code_of(function, "float64", CALLS.get(function.__name__))
    if code is None:
        return "–"
    begin: list[Any] = []
    narrow: list[Any] = []

    def result(given: Any) -> Any:
        """A weighted sum of the example's float results, where its first tensor has these values."""

        def _as(tensor: Any, dtype: str) -> Any:
            begin[:] = [tensor.cast(dtype).numpy()]
            return (tensor.cast(dtype) if given is None else given).clone()  # the example may write it

        made = eval(code, {"Tensor": Tensor, "math": math, "_as": _as})
        parts = made if isinstance(made, tuple | list) else (made,)
        floats = [p for p in parts if isinstance(p, Tensor) and dtypes.is_float(p.dtype)]
        narrow[:] = [p.dtype for p in floats if p.dtype is not dtypes.float64]
        floats = [p.double() for p in floats]
        total = None
        for p in floats:
            weights = ((Tensor.arange(p.numel()).double() + 1) * 0.7).sin() + 1.5
            total = (p.flatten() * weights).sum() + (0 if total is None else total)
        return total

    try:
        if result(None) is None:
            return "–"
        tilted = begin[0] + 0.003 * (1 + math.sqrt(2) * _counted(begin[0].shape))  # no ties, no corners
        for values in (tilted, tilted * 0.2, begin[0]):
            answer = _compared(result, values, *(NARROW if narrow else WIDE))
            if answer != "–":
                return answer
    except REFUSALS:
        return "–"
    return "–"


def _counted(shape: tuple[int, ...]) -> Any:
    import numpy as np

    return np.arange(math.prod(shape), dtype=np.float64).reshape(shape) % 7


def _compared(result: Any, values: Any, step: float, rtol: float) -> str:
    import numpy as np

    slopes = np.zeros_like(values)
    try:
        drawn = set()
        for seed in range(8):
            Tensor.manual_seed(seed)
            drawn.add(result(Tensor(values)).item())
        if max(drawn) - min(drawn) > 1e-9 * max(map(abs, drawn)):  # a plan for any size rounds otherwise
            return "–"  # random
        for place in np.ndindex(*values.shape):
            sides = []
            for sign in (1, -1):
                moved = values.copy()
                moved[place] += sign * step
                sides.append(result(Tensor(moved)).item())
            slopes[place] = (sides[0] - sides[1]) / (2 * step)
    except REFUSALS:
        return "–"
    if not np.isfinite(slopes).all():
        return "–"
    leaf = Tensor(values, requires_grad=True)
    try:
        (grad,) = result(leaf).gradient(leaf)
        found = grad.numpy()
    except REFUSALS:
        found = None
    if not slopes.any():
        return "flat" if found is None or not found.any() else "wrong"
    if found is None:
        return "no"
    pairs = [(found, slopes)]
    if found.ndim >= 2 and found.shape[-1] == found.shape[-2]:  # a symmetric matrix stays one as it changes
        pairs.append((found + found.swapaxes(-1, -2), slopes + slopes.swapaxes(-1, -2)))
    near = 0.1 * rtol * np.abs(slopes).max() + 1e-8
    return "yes" if any(np.allclose(f, s, rtol=rtol, atol=near) for f, s in pairs) else "wrong"


#: Gradients that are another function's on purpose, as PyTorch's are; tests hold them beside PyTorch's.
BY_CHOICE = {"ctc_loss": "of logits"}


def coverage_page() -> str:
    lines = [
        "# Coverage",
        "",
        "Written by `python docs/generate.py`. *Takes*: the kinds of dtypes that the method's example can be",
        "called with (bool; int: int8 to int64 and uint8 to uint64; float: float16, bfloat16, float32,",
        "float64; fp8: e4m3 and e5m2). *Gradient*: whether the gradient of the example's first tensor agrees",
        "with central differences in float64: *yes*; *flat* if the result does not change with the tensor;",
        "*no* if it does, but there is no gradient; – if the result is not a float, or is random, or the",
        "example has no tensor to change; *of logits*: it is the gradient of the logits, as in PyTorch.",
        "*Tests*: files that call the method; *table* is tests/tensor/table.py, and all examples run in",
        "tests/tensor/test_doctests.py. What PyTorch has in addition, and why it is not here:",
        "[pytorch_names.md](pytorch_names.md).",
        "",
        "| method | takes | gradient | tests |",
        "|---|---|---|---|",
    ]
    texts = {
        p.stem.removeprefix("test_"): p.read_text("utf-8") for p in sorted(ROOT.glob("tests/*/test_*.py"))
    }
    texts |= {
        p.stem.removeprefix("test_"): p.read_text("utf-8") for p in sorted(ROOT.glob("tests/test_*.py"))
    }
    texts["table"] = (ROOT / "tests" / "tensor" / "table.py").read_text("utf-8")
    for name, (function, others) in methods().items():
        if code_of(function, "float32") is None:
            kinds = ["–"]
        else:
            kinds = [kind for kind, dtyped in KINDS.items() if all(takes(function, n) for n in dtyped)]
        gradient = BY_CHOICE.get(name) or verified(function)
        called = re.compile(rf"[.\"'](?:{'|'.join(map(re.escape, [name, *others]))})[\"'(]")
        where = [stem for stem, text in texts.items() if called.search(text)]
        shown = ", ".join(where[:3]) + (", ..." if len(where) > 3 else "")
        lines.append(f"| {name} | {', '.join(kinds) or 'none'} | {gradient} | {shown or 'doctests'} |")
    return "\n".join(lines) + "\n"
