"""Functions of functions: `grad`, `vjp`, `jvp`, `vmap`, `jacobian`, `hessian`, and `gradcheck`.

All of them call the function once, look at the graph that it makes, and make another graph of it. They nest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...dtype import dtypes
from ...gradient import filled
from ...gradient import gradient as gradient_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...schedule.graph.versions import buffer_of
from ...shape import prod, resolve_equal, shape_text
from ..face import Tensor
from ..modes import Examples, enable_grad, mode
from ..same_device import devices_text, meeting
from ..storage import base_of, versions_of
from .batching import batched
from .function import Function, like_result, outputs_of

Function_ = Callable[..., Any]


class _Same(Function):
    """The same value as a node of its own, so that a gradient tells the argument from what it was made of."""

    def forward(self, x: Any) -> Any:
        return x.cast(x.dtype)

    def backward(self, grad: Any) -> Any:
        return grad


def _argument(x: Any, name: str, number: int) -> Tensor:
    """An argument to differentiate by, as a node of its own."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: argument {number} must be a Tensor, not {x!r}")
    if not dtypes.is_float(x.dtype):
        raise TypeError(f"{name}: argument {number} must be of floats, not of {x.dtype}")
    if not x._requires_grad:
        kind: Any = type(x)
        inner = object.__new__(kind)
        inner._setup(x.uop, True, leaf=False)
        x = inner
    made: Tensor = _Same.apply(x)
    return made


def _pulled(outputs: Sequence[Tensor], seeds: Sequence[Tensor], xs: Sequence[Tensor]) -> list[Tensor]:
    """The gradients of Σ output · seed by the xs; zeros where nothing depends on one."""
    totals: list[Tensor | None] = [None] * len(xs)
    for output, seed in zip(outputs, seeds, strict=True):
        if not dtypes.is_float(output.dtype):
            continue
        found = gradient_of(output.uop, seed.uop.cast(output.dtype), [x.uop for x in xs])
        for i, x in enumerate(xs):
            if x.uop in found:
                part = type(x)._make(found[x.uop], output, seed, x)
                before = totals[i]
                totals[i] = part if before is None else before + part
    return [
        x._make(filled(x.shape, x.dtype, 0.0)) if t is None else t for t, x in zip(totals, xs, strict=True)
    ]


def _numbers(argnums: int | Sequence[int], args: Sequence[Any], name: str) -> list[int]:
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise ValueError(f"{name}: argnums {argnums} for {len(args)} arguments")
    return [number % len(args) for number in numbers]


def _called(
    function: Function_, args: Sequence[Any], numbers: Sequence[int], name: str
) -> tuple[Any, list[Tensor]]:
    """(the result, the arguments to differentiate by as nodes of their own)."""
    given = list(args)
    for number in numbers:
        given[number] = _argument(args[number], name, number)
    with enable_grad():
        return function(*given), [given[number] for number in numbers]


def value_and_grad(function: Function_, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function_:
    """A function that gives (the value, its gradient); see `grad`.

    >>> value_and_grad(lambda x: (x * x).sum())(Tensor([3.0]))[0].item()
    9.0
    """

    def differentiated(*args: Any) -> Any:
        with enable_grad():
            result, xs = _called(function, args, _numbers(argnums, args, "grad"), "grad")
            value, aux = result if has_aux else (result, None)
            (output,) = outputs_of(value, "grad")
            if output.numel() != 1:
                raise ValueError(
                    f"grad: the function must return one number, not shape {shape_text(output.shape)} "
                    "(jacobian and vjp are for functions that give more)"
                )
            grads = _pulled([output], [output._filled(1.0)], xs)
        answer = grads[0] if isinstance(argnums, int) else tuple(grads)
        return ((value, aux), answer) if has_aux else (value, answer)

    return differentiated


def grad(function: Function_, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function_:
    """A function that gives the gradient of another, which gives one number.

    argnums  by which positional arguments: one number, or several for a tuple of gradients
    has_aux  whether the function gives (number, something else); then so does the gradient

    Arguments need no `requires_grad`. An argument that the number does not depend on has a gradient of zeros.

    >>> grad(lambda x: (x * x).sum())(Tensor([3.0, 4.0])).tolist()
    [6.0, 8.0]
    >>> grad(grad(lambda x: x ** 3))(Tensor(2.0)).item()
    12.0
    """
    both = value_and_grad(function, argnums, has_aux)

    def differentiated(*args: Any) -> Any:
        value, answer = both(*args)
        return (answer, value[1]) if has_aux else answer

    return differentiated


def vjp(function: Function_, *primals: Tensor) -> tuple[Any, Function_]:
    """(the result, a function from what flows into it to what flows into each argument).

    >>> y, pull = vjp(lambda x: x * x, Tensor([3.0, 4.0]))
    >>> pull(Tensor([1.0, 10.0]))[0].tolist()
    [6.0, 80.0]
    """
    result, xs = _called(function, primals, range(len(primals)), "vjp")
    outputs = outputs_of(result, "vjp")

    def pull(*cotangents: Tensor) -> tuple[Tensor, ...]:
        if len(cotangents) == 1 and isinstance(cotangents[0], (tuple, list)):
            cotangents = tuple(cotangents[0])
        _check_same_structure(outputs, cotangents, "vjp", "result", "cotangent")
        with enable_grad():
            return tuple(_pulled(outputs, cotangents, xs))

    return result, pull


def _check_same_structure(
    tensors: Sequence[Tensor], given: Sequence[Any], name: str, what: str, goes: str
) -> None:
    if len(tensors) != len(given):
        raise ValueError(f"{name} needs a {goes} for each of the {len(tensors)} {what}s, not {len(given)}")
    for number, (tensor, other) in enumerate(zip(tensors, given, strict=True)):
        if not isinstance(other, Tensor):
            raise TypeError(f"{name}: the {goes} of {what} {number} must be a Tensor, not {other!r}")
        if other.shape != tensor.shape:
            raise ValueError(
                f"{name}: {what} {number} has shape {shape_text(tensor.shape)} and its "
                f"{goes} {shape_text(other.shape)}: they must be equal"
            )
        if tensor._devices_differ(other):
            raise ValueError(
                f"{name}: {what} {number} is on {devices_text(tensor.device)} and its {goes} on "
                f"{devices_text(other.device)}; {meeting(tensor.device, other.device, 'it')}"
            )


def jvp(function: Function_, primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple[Any, Any]:
    """(the result, how it moves where the arguments move by the tangents).

    The gradient is linear in what flows in; its own gradient by that is the wanted product (Townsend 2017).

    >>> y, moved = jvp(lambda x: x * x, (Tensor([3.0, 4.0]),), (Tensor([1.0, 10.0]),))
    >>> moved.tolist()
    [6.0, 80.0]
    """
    if isinstance(primals, Tensor) or isinstance(tangents, Tensor):
        raise TypeError("jvp takes a tuple of arguments and one of tangents")
    result, xs = _called(function, primals, range(len(primals)), "jvp")
    _check_same_structure(primals, tangents, "jvp", "argument", "tangent")
    outputs = outputs_of(result, "jvp")
    moved = []
    with enable_grad():
        for output in outputs:
            if not dtypes.is_float(output.dtype):
                raise TypeError(f"jvp: the function must return floats, not {output.dtype}")
            flowing = output.empty(*output.shape, dtype=output.dtype, device=output.device).requires_grad_()
            pulled = _pulled([output], [flowing], xs)
            total: Any = None
            for part, tangent in zip(pulled, tangents, strict=True):
                product = (part * tangent).sum()
                total = product if total is None else total + product
            found = gradient_of(total.uop, filled((), total.dtype, 1.0), [flowing.uop])
            if flowing.uop in found:
                moved.append(output._make(found[flowing.uop].cast(output.dtype), total))
            else:
                moved.append(output._filled(0.0))
    return result, (tuple(moved) if isinstance(result, (tuple, list)) else moved[0])


# *** batches

#: What is said where a value is read that belongs to one example.
LEFT_BEHIND = (
    "this value was computed from one example within vmap and kept, or written to a tensor, there: it has no "
    "value outside; return it from the function instead"
)

Dims = int | None | Sequence[int | None]


def vmap(
    function: Function_,
    in_dims: Dims = 0,
    out_dims: int | Sequence[int] = 0,
    *,
    randomness: str = "different",
) -> Function_:
    """A function of one example as a function of a batch: its graph with one more axis, not a loop.

    in_dims     the axis of each argument that counts the examples; None for one that all examples share
    out_dims    where that axis stands in the results
    randomness  whether the examples draw "different" random numbers (the numbers that one call for the whole
                batch would draw), the "same", or none: with "error" drawing raises

    The function sees one example, without its values: `.item()` and branches on values raise, and so does
    reading what it leaves behind, as a value that it keeps or writes into another tensor. Custom gradients
    (`Function`) within it are replaced by those of what `forward` computes, where one differentiates the
    batch.

    >>> scaled = vmap(lambda row, x: (row * x).sum(), in_dims=(0, None))
    >>> scaled(Tensor([[1.0, 2.0], [3.0, 4.0]]), 10.0).tolist()
    [30.0, 70.0]
    """

    if randomness not in ("different", "same", "error"):
        raise ValueError(f"vmap: randomness must be 'different', 'same' or 'error', not {randomness!r}")

    def mapped(*args: Any) -> Any:
        dims: list[Any] = list(in_dims) if isinstance(in_dims, (tuple, list)) else [in_dims] * len(args)
        if len(dims) != len(args):
            raise ValueError(f"vmap: {len(dims)} in_dims for {len(args)} arguments")
        size: Any = None
        examples: dict[UOp, UOp] = {}
        made: list[Tensor] = []
        given: list[Any] = []
        for number, (arg, dim) in enumerate(zip(args, dims, strict=True)):
            if dim is None or not isinstance(arg, Tensor):
                given.append(arg)
                continue
            moved = _in_front(arg, dim, number)
            if size is not None and not resolve_equal(moved.shape[0], size):
                raise ValueError(
                    f"vmap: argument {number} of shape {shape_text(arg.shape)} has {moved.shape[0]} "
                    f"examples, those before it {size}"
                )
            size = moved.shape[0]
            one = moved.empty(*moved.shape[1:], dtype=moved.dtype, device=moved.device)
            if arg._requires_grad:
                one.requires_grad_()
            examples[one.uop] = moved.uop
            made.append(one)
            given.append(one)
        if size is None:
            raise ValueError("vmap: no argument is a Tensor with an axis of examples (in_dims)")
        level, outer = Examples(size, randomness), mode.examples
        mode.examples = (*outer, level)
        try:
            result = function(*given)
        finally:
            mode.examples = outer
        outputs = outputs_of(result, "vmap")
        stand_ins = [one.uop for one in made]
        for drawn in level.numbers.values():
            examples[drawn] = UOp(Ops.IOTA, drawn.dtype, (), size)
            stand_ins.append(drawn)
        for node in stand_ins:
            memory = versions_of(base_of(node))
            if node not in examples or any(buffer_of(version).is_allocated for version in memory):
                raise RuntimeError(
                    "vmap: the function read or wrote the values of an example (.item(), .numpy(), a branch "
                    "on a value, an assignment); it has to be written with Tensor operations alone"
                )
            for version in memory:
                version.facts["overwritten"] = LEFT_BEHIND
        nodes = batched([output.uop for output in outputs], examples, size)
        wholes = [output._make(node, output, view=False) for node, output in zip(nodes, outputs, strict=True)]
        places = [out_dims] * len(wholes) if isinstance(out_dims, int) else list(out_dims)
        if len(places) != len(wholes):
            raise ValueError(f"vmap: {len(places)} out_dims for {len(wholes)} results")
        turned = [t if place == 0 else t.movedim(0, place) for t, place in zip(wholes, places, strict=True)]
        return like_result(result, turned) if isinstance(result, (tuple, list)) else turned[0]

    return mapped


def _in_front(arg: Any, dim: int, number: int) -> Tensor:
    if arg.ndim == 0 or not -arg.ndim <= dim < arg.ndim:
        raise ValueError(f"vmap: argument {number} of shape {shape_text(arg.shape)} has no axis {dim}")
    moved: Tensor = arg if dim % arg.ndim == 0 else arg.movedim(dim, 0)
    return moved


def jacobian(function: Function_, argnums: int | Sequence[int] = 0) -> Function_:
    """A function that gives all first derivatives: of the result's shape and then the argument's.

    One graph: the gradients of all elements of the result are those of one element, with one more axis.

    >>> jacobian(lambda x: x * x)(Tensor([3.0, 4.0])).tolist()
    [[6.0, 0.0], [0.0, 8.0]]
    """

    def differentiated(*args: Any) -> Any:
        with enable_grad():
            result, xs = _called(function, args, _numbers(argnums, args, "jacobian"), "jacobian")
            answers = []
            for output in outputs_of(result, "jacobian"):
                count = prod(output.shape)
                if not isinstance(count, int):
                    raise NotImplementedError(
                        f"jacobian of symbolic size is not supported: shape {shape_text(output.shape)}"
                    )
                seed = output.empty(*output.shape, dtype=output.dtype, device=output.device).requires_grad_()
                basis = output.eye(count, dtype=output.dtype, device=output.device)
                basis = basis.reshape((count, *output.shape))
                pulled = _pulled([output], [seed], xs)
                nodes = batched([p.uop for p in pulled], {seed.uop: basis.uop}, count)
                lines = [p._make(node, p, view=False) for p, node in zip(pulled, nodes, strict=True)]
                parts = [line.reshape((*output.shape, *x.shape)) for line, x in zip(lines, xs, strict=True)]
                answers.append(parts[0] if isinstance(argnums, int) else tuple(parts))
        return tuple(answers) if isinstance(result, (tuple, list)) else answers[0]

    return differentiated


def hessian(function: Function_, argnums: int = 0) -> Function_:
    """A function that gives all second derivatives of one that gives a number.

    >>> hessian(lambda x: (x ** 3).sum())(Tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacobian(grad(function, argnums), argnums)


# *** a check


def gradcheck(
    function: Function_,
    inputs: Tensor | Sequence[Any],
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Whether gradients are what central differences say: (f(x + eps) - f(x - eps)) / (2 · eps).

    inputs  float64 tensors (others are passed on and not checked)

    >>> gradcheck(lambda x: x.sin() * x, Tensor([0.5, 2.0], dtype="float64"))
    True
    """
    import numpy as np

    given: list[Any] = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    numbers = [i for i, x in enumerate(given) if isinstance(x, Tensor) and dtypes.is_float(x.dtype)]
    if not numbers:
        raise ValueError("gradcheck: no input is a tensor of floats")
    for i in numbers:
        if given[i].dtype is not dtypes.float64:
            raise ValueError(
                f"gradcheck: input {i} is of {given[i].dtype}; differences need float64 to be exact enough"
            )
    found = jacobian(function, numbers)(*given)
    several = isinstance(found, tuple) and bool(found) and isinstance(found[0], tuple)
    exact = [[t.numpy() for t in row] for row in (found if several else (found,))]
    for at, i in enumerate(numbers):
        start = given[i].numpy()
        for place in range(math.prod(start.shape)):
            sides = []
            for sign in (1.0, -1.0):
                moved = start.copy()
                moved.reshape(-1)[place] += sign * eps
                again = list(given)
                again[i] = type(given[i])(moved, device=given[i].device)
                sides.append([o.numpy() for o in outputs_of(function(*again), "gradcheck")])
            for number, (high, low) in enumerate(zip(*sides, strict=True)):
                slope = (high - low) / (2 * eps)
                line = exact[number][at].reshape((*slope.shape, -1))[..., place]
                if not np.allclose(line, slope, rtol, atol, equal_nan=True):
                    if not raise_exception:
                        return False
                    worst = np.unravel_index(np.nanargmax(np.abs(line - slope)), slope.shape)
                    raise ValueError(
                        f"gradcheck: output {number} at {tuple(map(int, worst))} by element {place} of input "
                        f"{i}: the gradient says {line[worst]:.6g}, differences say {slope[worst]:.6g}"
                    )
    return True
