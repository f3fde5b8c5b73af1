"""`Function`: an operation whose gradient its author writes.

The result of `Function.apply` is a FUNCTION node. It has become (schedule/graph/versions.py) the value that
`forward` computed, so planning and running see only that; the gradient walk sees the node, and asks
`backward`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ...dtype import DType, dtypes
from ...gradient import filled
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape.movement import forward_to
from ...shape.rules import shape_of
from ..face import Tensor
from ..modes import enable_grad, mode, no_grad
from ..trace import called


class Function:
    """An operation with a gradient of its own: override `forward` and `backward`, call `apply`.

        class Clipped(Function):
            def forward(self, x):                 # or @staticmethod forward(ctx, x), as in PyTorch
                self.save_for_backward(x)
                return x.clamp(-1, 1)

            def backward(self, grad):             # one gradient (or None) per positional argument
                (x,) = self.saved_tensors
                return grad * (x.abs() <= 2)

        y = Clipped.apply(x)

    forward    from tensors (and whatever else is passed) to one tensor or a tuple of them; within it nothing
               is recorded for gradients
    backward   from the gradient of the result, of its shape and dtype (one per result of a tuple), to the
               gradient of each positional argument of `apply`: a tensor of that argument's shape, or None.
               Written with tensor operations it can be differentiated again. Each call gets a copy of the
               object as `forward` left it.

    Inside both, `needs_input_grad` says for each positional argument whether its gradient is wanted, or may
    be (`y.gradient(x)` asks for that of any x, where no argument requires one), and `requires_grad` whether
    any is; attributes set in `forward` are there in `backward`.
    """

    #: For each positional argument, whether it is a tensor through which gradients flow.
    needs_input_grad: tuple[bool, ...] = ()
    #: The name under which kernels show the operation.
    metadata: str = ""
    _saved: tuple[Any, ...] = ()

    # each author chooses the arguments, and whether they are static methods or not
    forward: Callable[..., Any]
    backward: Callable[..., Any]

    @property
    def requires_grad(self) -> bool:
        """Whether the gradient of any argument is wanted."""
        return any(self.needs_input_grad)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (arguments, results, or others) for `saved_tensors` in `backward`."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept."""
        return self._saved

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """`forward` of these arguments, such that `backward` gives its gradients.

        Gradients flow to the positional arguments that are float tensors; keyword arguments are passed on.
        """
        context = cls()
        context.metadata = cls.__name__
        context.needs_input_grad = _through(args)
        recorded = context.requires_grad
        inputs = [_value_of(a) if recorded and isinstance(a, Tensor) else a for a in args]
        with no_grad(), called(cls.__name__):
            made = _method(cls, "forward")(context, *inputs, **kwargs)
        results = made if isinstance(made, tuple) else (made,)
        for result in results:
            if not isinstance(result, Tensor):
                raise TypeError(
                    f"{cls.__name__}.forward must give a tensor or a tuple of tensors, not {result!r}"
                )
        if not recorded:
            return made
        parents = [arg if isinstance(arg, Tensor) else None for arg in args]
        _let_go(context, inputs, results)
        outputs = tuple(_recorded(context, parents, results, place) for place in range(len(results)))
        return outputs if isinstance(made, tuple) else outputs[0]


def _through(args: tuple[Any, ...]) -> tuple[bool, ...]:
    """Through which arguments gradients flow: those that require one; where none does, every float of which
    nobody said that it does not, because `y.gradient(x)` asks for that of any tensor."""
    tensors = [a._requires_grad if isinstance(a, Tensor) and mode.grad else False for a in args]
    if any(tensors):
        return tuple(map(bool, tensors))
    return tuple(t is None and dtypes.is_float(a.dtype) for t, a in zip(tensors, args, strict=True))


def _method(cls: type[Function], name: str) -> Callable[..., Any]:
    method: Callable[..., Any] | None = getattr(cls, name, None)
    if method is None:
        raise NotImplementedError(f"{cls.__name__} has no {name}: a Function needs forward and backward")
    return method


def outputs_of(result: Any, name: str) -> list[Tensor]:
    """What a user's function gave, a tensor or several, as a list; TypeError where it is another thing."""
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    for output in found:
        if not isinstance(output, Tensor):
            raise TypeError(f"{name}: the function must return one or several Tensors, not {output!r}")
    return found


def like_result(result: Any, outputs: list[Tensor]) -> Any:
    """Outputs as the list or tuple, with names or without, that a user's function gave."""
    return type(result)(*outputs) if hasattr(result, "_fields") else type(result)(outputs)


def _value_of(tensor: Tensor) -> Tensor:
    """What forward gets for an argument: its value, of which writes to the tensor later change nothing."""
    made: Any = object.__new__(type(tensor))
    made._setup(tensor.uop, tensor._requires_grad, leaf=False)
    return made  # type: ignore[no-any-return]


def _recorded(
    context: Function, parents: list[Tensor | None], results: Sequence[Tensor], place: int
) -> Tensor:
    """A result of forward as a tensor whose gradient is backward's."""
    result = results[place]
    if not dtypes.is_float(result.dtype):
        return result
    inputs = tuple(p for p in parents if p is not None)
    positions = tuple(i for i, parent in enumerate(parents) if parent is not None)
    record = _Call(context, place, positions, len(parents), len(results), type(result))
    values = [each.uop for each in results]
    node = _node_of(values[place], [*(values if len(values) > 1 else ()), *(t.uop for t in inputs)], record)
    return type(result)._make(node, *inputs)


def _node_of(value: UOp, others: Iterable[UOp], record: _Call) -> UOp:
    node = UOp(Ops.FUNCTION, value.dtype, (value, *others), record)
    if "forwarded_to" not in node.facts:
        forward_to(node, value)
    return node


class _Saved(NamedTuple):
    """A tensor that backward will ask for: which result of forward it is, or which argument, or its node."""

    node: UOp | None
    result: int
    argument: int
    requires_grad: bool


def _let_go(context: Function, inputs: Sequence[Any], results: Sequence[Tensor]) -> None:
    """Keep the nodes of saved tensors and not the tensors.

    A tensor that exists is a value that somebody wants: it would be computed and stored before a write ends
    what it reads. And a saved result would hold its own node. An argument is the source of the FUNCTION node:
    a node that it had before its value was read would lead to no leaf.
    """

    def position(value: Any, among: Sequence[Any]) -> int:
        return next((n for n, other in enumerate(among) if other is value), -1)

    def saved(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        result, argument = position(value, results), position(value, inputs)
        node = value.uop if result < 0 and argument < 0 else None
        return _Saved(node, result, argument, value.requires_grad)

    for name, value in vars(context).items():
        setattr(context, name, saved(value))
    context._saved = tuple(saved(value) for value in context._saved)


_PACKAGE = __name__.partition(".")[0] + "."


def _is_plain(value: Any) -> bool:
    """Whether its text says all of a value: a number, a text, or which argument or result a tensor is."""
    if type(value) is _Saved:
        return value.node is None
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return value is None or type(value) in (int, bool, str, float, DType)


class _Call:
    """The argument of a FUNCTION node: the call that made it, and which of its results this is. The node's
    sources are this result; all results, where there are several; the arguments that are tensors.

    positions  for each of these arguments, which positional argument it was
    results    how many there are
    is_plain   whether the object that forward left keeps no tensor but arguments and results, and is of one
               of lazygrad's own classes: calls that are alike in all else are equal
    """

    def __init__(
        self,
        context: Function,
        place: int,
        positions: tuple[int, ...],
        arguments: int,
        results: int,
        kind: type[Tensor],
    ) -> None:
        self.context, self.number, self.positions = context, place, positions
        self.arguments, self.results, self.kind = arguments, results, kind
        ours = type(context).__module__.startswith(_PACKAGE)
        self.is_plain = ours and all(map(_is_plain, vars(context).values()))
        said = str(sorted(vars(context).items())) if self.is_plain else str(id(self))
        self._key = type(context), place, positions, arguments, results, kind, said

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"<Function {type(self.context).__name__}>"

    def gradients(self, grad: UOp, node: UOp) -> tuple[UOp | None, ...]:
        """The gradient of each source of the FUNCTION node, from that of the node."""
        name = type(self.context).__name__
        context = self._restored(node)
        grads = [
            self._tensor(grad if place == self.number else filled(shape_of(result), result.dtype, 0.0))
            for place, result in enumerate(self._results(node))
        ]
        with enable_grad(), called(f"{name}.backward"):
            found = _method(type(context), "backward")(context, *grads)
        answers = found if isinstance(found, (tuple, list)) else (found,)
        if len(answers) != self.arguments:
            raise ValueError(
                f"{name}.backward must give one gradient (or None) for each of the {self.arguments} "
                f"arguments of apply, not {len(answers)}"
            )
        arguments = self._arguments(node)
        made: list[UOp | None] = [None] * (len(node.src) - len(arguments))
        for position, source in zip(self.positions, arguments, strict=True):
            wanted = self.context.needs_input_grad[position]
            made.append(self._gradient(answers[position], source, position) if wanted else None)
        return tuple(made)

    def _results(self, node: UOp) -> tuple[UOp, ...]:
        return node.src[:1] if self.results == 1 else node.src[1 : 1 + self.results]

    def _arguments(self, node: UOp) -> tuple[UOp, ...]:
        return node.src[len(node.src) - len(self.positions) :]

    def _gradient(self, answer: Any, source: UOp, position: int) -> UOp | None:
        if answer is None:
            return None
        name = type(self.context).__name__
        if not isinstance(answer, Tensor):
            raise TypeError(
                f"{name}.backward gives {answer!r} for argument {position}; a gradient is a tensor or None"
            )
        if answer.shape != shape_of(source):
            raise ValueError(
                f"{name}.backward gives a gradient of shape {answer.shape} for argument {position} "
                f"of shape {shape_of(source)}"
            )
        return answer.uop.cast(source.dtype)

    def _restored(self, node: UOp) -> Function:
        """The object as forward left it, its tensors made again."""

        def restored(value: Any) -> Any:
            if not isinstance(value, _Saved):
                return value
            if value.node is not None:
                return self._tensor(value.node, value.requires_grad)
            if value.result < 0:
                source = self._arguments(node)[self.positions.index(value.argument)]
                return self._tensor(source, value.requires_grad)
            if value.result == self.number:
                return self._tensor(node)
            # another result: the FUNCTION node that it is, with the same sources
            result = self._results(node)[value.result]
            if not dtypes.is_float(result.dtype):
                return self._tensor(result, False)
            call = _Call(self.context, value.result, self.positions, self.arguments, self.results, self.kind)
            return self._tensor(_node_of(result, node.src[1:], call))

        context = copy.copy(self.context)
        for name, value in vars(context).items():
            setattr(context, name, restored(value))
        context._saved = tuple(restored(value) for value in context._saved)
        return context

    def _tensor(self, node: UOp, requires_grad: bool = True) -> Tensor:
        """A tensor within backward: what is computed from it is part of the gradient's graph."""
        made: Any = object.__new__(self.kind)
        made._setup(node, requires_grad and dtypes.is_float(node.dtype), leaf=False)
        return made  # type: ignore[no-any-return]
