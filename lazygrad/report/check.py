"""Hunting a wrong number: CHECK=1 compares each kernel with the interpreter, CHECK=nan finds the first NaN or
infinity. What is found raises `CheckError` with the kernel, the user's line and the element.

The interpreter runs the plain loops of the same kernel (NOOPT, on device PYTHON) on copies of its memory, at
about a million operations a second. Integers and bools must be equal. Floats may differ by the roundings of
sums in another order and of functions; where they differ by more, the interval that rounding allows for this
very element is computed (`oracle/intervals.py`), and only a value outside of it is an error.
"""

from __future__ import annotations

import textwrap
from collections.abc import Container, Sequence
from typing import Any

from ..codegen.aligned_chunks import memory_of, shared_memory
from ..codegen.compile import stages
from ..codegen.direct_kernels import is_joined, record_of
from ..codegen.nests import nests_of
from ..config import CHECK, Context
from ..device import Buffer, Device
from ..dtype import dtypes
from ..ir.args import WORKING
from ..ir.index import bounds, evaluate
from ..ir.loops_text import loops_text
from ..ir.ops import Ops
from ..ir.own import OwnKernel
from ..ir.rewrite import transform
from ..ir.uop import UOp
from ..oracle.differences import differing, values_of
from ..oracle.intervals import epsilon, roundings, with_bounds
from ..programs.runners import Runner, get_runner, values_for
from ..schedule.kernels.items import ScheduleItem, output_count
from ..shape import ShapeTracker, shape_of
from ..shape.view import View
from .own_indices import with_reports

#: The device that says what a kernel means.
INTERPRETER = "PYTHON"


class CheckError(RuntimeError):
    """A kernel whose result is wrong (CHECK=1), or the first that is not finite (CHECK=nan).

    kernel    its displayed name                 metadata   the user calls it comes from, the latest first
    output    the number of the output           index      the element, counted row by row
    got       what the device computed           expected   what the interpreter computed (None: CHECK=nan)
    """

    def __init__(
        self,
        text: str,
        kernel: str,
        metadata: tuple[Any, ...],
        output: int,
        index: int,
        got: Any,
        expected: Any = None,
    ) -> None:
        super().__init__(text)
        self.kernel, self.metadata, self.output = kernel, metadata, output
        self.index, self.got, self.expected = index, got, expected


class Checker:
    """Looks at one kernel: made before it runs, `after` is called when it has run."""

    def __init__(self, item: ScheduleItem, runner: Runner) -> None:
        self.item, self.runner, self.mode = item, runner, CHECK.value
        self.outputs = output_count(item.ast)
        self.saved = [buffer.tobytes() for buffer in item.outputs]
        if self.mode == "nan":
            self.clean = self._inputs_are_finite()
        else:
            self.memory = [_copy(buffer) for buffer in item.bufs]  #: what the interpreter works on
            self._check_indices()

    def after(self) -> None:
        """Raise CheckError if what the kernel left is wrong; then it is as if it had not run."""
        try:
            if self.mode == "nan":
                self._check_finite()
            else:
                self._compare()
        except BaseException:
            for buffer, contents in zip(self.item.outputs, self.saved, strict=True):
                buffer.copyin(contents)
            raise

    # *** against the interpreter

    def _interpret(self, ast: UOp, memory: Sequence[Buffer]) -> None:
        """Run a kernel in the interpreter; `memory` by the numbers of its DEFINE_GLOBALs."""
        # sums that are joined have no loops in common
        for part in [UOp.sink(store) for store in ast.src] if is_joined(ast) else [ast]:
            numbers = sorted({node.arg for node in part.toposort() if node.op is Ops.DEFINE_GLOBAL})
            with Context(NOOPT=1):
                runner = get_runner(INTERPRETER, part)
            used = tuple([memory[number].ensure_allocated()._buf for number in numbers])
            runner.program(used, values_for(runner, self.item.var_vals))

    def _compare(self) -> None:
        ast = self.item.ast
        own = record_of(ast, OwnKernel)
        if own is not None and own.texts:
            return  # nothing else knows what it means
        nests = nests_of(ast)
        if not shared_memory(nests):
            nests = [ast]
        for place, nest in enumerate(nests):
            later = {memory_of(store) for each in nests[place + 1 :] for store in each.src}
            self._compare_nest(nest, later)

    def _compare_nest(self, ast: UOp, later: Container[int]) -> None:
        """Compare what a kernel, or a nest of one, stores; a nest is given what the program made before it.

        later  the outputs that others write again
        """
        numbers = sorted({memory_of(store) for store in ast.src})
        before = {number: self.memory[number].tobytes() for number in numbers}
        self._interpret(ast, self.memory)
        allowed = roundings(ast)
        made = {number: self.memory[number].tobytes() for number in numbers}
        results = {number: values_of(self.memory[number]) for number in numbers}
        limits: dict[int, tuple[Any, Any]] | None = None
        for number, expected in results.items():
            if number in later or self._is_working_memory(number):
                continue
            got = values_of(self.item.bufs[number])
            wrong = differing(got, expected, self.item.bufs[number].dtype, allowed)
            if wrong.any():
                if limits is None:
                    limits = self._limits(ast, before)
                wrong &= ~self._within(number, got, expected, limits, allowed)
                if wrong.any():
                    self._refuse(number, got, expected, wrong)
            made[number] = self.item.bufs[number].tobytes()
        for number, contents in made.items():
            self.memory[number].copyin(contents)

    def _is_working_memory(self, number: int) -> bool:
        """Whether an output is what a PROGRAM works in: nobody reads it, and each program uses it in its way.

        So are results of which several are right.
        """
        values = [store.src[2] for store in self.item.ast.src if store.src[0].arg == number]
        return all(
            value.op is Ops.PROGRAM and (value.arg.output == WORKING or value.arg.kernel.is_free)
            for value in values
        )

    def _limits(self, ast: UOp, before: dict[int, bytes]) -> dict[int, tuple[Any, Any]]:
        """For each output the least and greatest values that rounding allows; nothing where no rule says.

        before  what the outputs were
        """
        bounded = with_bounds(ast, len(self.memory))
        if bounded is None:
            return {}
        ast, numbers = bounded
        memory = list(self.memory)
        for number, pair in sorted(numbers.items()):
            old = memory[number].copyin(before[number])
            dtype = dtypes.float64 if dtypes.is_float(old.dtype) else old.dtype
            for _ in pair:  # where nothing is stored, nothing changes
                memory.append(Buffer(INTERPRETER, old.size, dtype).allocate().copyin(values_of(old)))
        self._interpret(ast, memory)
        return {
            number: (values_of(memory[low]), values_of(memory[high]))
            for number, (low, high) in numbers.items()
        }

    def _within(self, number: int, got: Any, expected: Any, limits: dict[int, Any], allowed: float) -> Any:
        import numpy as np

        dtype = self.item.bufs[number].dtype
        if number not in limits:
            if not dtypes.is_float(dtype):
                return np.zeros(got.shape, bool)
            finite = np.abs(expected[np.isfinite(expected)])
            margin = 16 * allowed * epsilon(dtype) * (finite.max() if finite.size else 0.0)
            with np.errstate(all="ignore"):
                return np.abs(got - expected) <= margin
        low, high = limits[number]
        if not dtypes.is_float(dtype):
            return (low <= got) & (got <= high)
        unknown = np.isnan(low) | np.isnan(high)
        return unknown | ((low <= got) & (got <= high))

    def _refuse(self, number: int, got: Any, expected: Any, wrong: Any) -> None:
        import numpy as np

        item, spec = self.item, self.runner.spec
        buffer = item.bufs[number]
        at = int(np.argmax(wrong))
        here, there = got[at].item(), expected[at].item()
        differ = int(wrong.sum())
        with np.errstate(all="ignore"):
            most = np.abs(got[wrong].astype(np.float64) - expected[wrong].astype(np.float64)).max()
        renderer = Device[buffer.device].renderer
        forms = dict(stages(item.ast, renderer, spec.applied_opts))
        loops = loops_text(forms["apply opts"]) if "apply opts" in forms else ""
        text = (
            f"kernel {spec.function_name} on {buffer.device} computes {here!r} "
            f"where the interpreter computes {there!r}\n"
            f"  at element {self._index_text(number, at)}; {differ} of {got.size} differ, "
            f"by {most:.6g} at most\n"
            f"  from {_lines(item)}\n"
            f"  opts {list(spec.applied_opts)}\n"
            f"{textwrap.indent(loops, '    ')}"
        )
        raise CheckError(text, spec.function_name, item.metadata, number, at, here, there)

    def _index_text(self, number: int, at: int) -> str:
        """An element of an output as the user counts."""
        buffer = self.item.bufs[number]
        store = next(store for store in self.item.ast.src if store.src[0].arg == number)
        tracker: ShapeTracker = store.src[1].arg
        name = repr(buffer.dtype).removeprefix("dtypes.")
        which = f" of output {number}" if self.outputs > 1 else ""
        if not tracker.contiguous or not all(isinstance(size, int) for size in tracker.shape):
            return f"{at}{which} ({name}, {buffer.size} elements)"
        place = []
        for size in reversed(tracker.shape):
            at, i = divmod(at, size)  # type: ignore[operator]
            place.append(i)
        return f"{tuple(reversed(place))}{which} ({name}, shape {tracker.shape})"

    # *** indices

    def _check_indices(self) -> None:
        """Raise IndexError where a gather, a scatter or a kernel of the user's own goes outside of arrays."""
        own = record_of(self.item.ast, OwnKernel)
        if own is not None and own.steps is not None:
            self._check_steps(own)
            return
        for node in self.item.ast.toposort():
            index, axis = None, None
            if node.op is Ops.LOAD and len(node.src) > 2:
                index, axis = node.src[2], node.src[1].arg
            elif node.op is Ops.STORE and len(node.src) > 3:
                index, axis = node.src[3], node.src[1].arg
            if index is not None:
                self._check_index(index, axis, "reads" if node.op is Ops.LOAD else "writes")

    def _check_index(self, index: UOp, tracker: Any, verb: str) -> None:
        import numpy as np

        size = _number(tracker.size, self.item.var_vals)
        least, most = bounds(self._by_extremes(index))
        if least >= 0 and most < size:
            return
        values = self._evaluate(index)
        outside = (values < 0) | (values >= size)
        if not outside.any():
            return
        at = int(np.argmax(outside))
        what = f"index {values[at].item()} is out of bounds for {size} elements"
        for position, limit in _conditions(index):
            found, most = self._evaluate(position)[at].item(), self._evaluate(limit)[at].item()
            if not 0 <= found < most:
                asked = found - most if found < 0 else found  # a negative one counts from the end
                what = f"index {asked} is out of bounds for an axis of size {most}"
                break
        shape = tuple(_number(n, self.item.var_vals) for n in shape_of(index))
        place = tuple(int(i) for i in np.unravel_index(at, shape))
        more = f" (and {int(outside.sum()) - 1} more)" if outside.sum() > 1 else ""
        raise IndexError(
            f"{what}: {_lines(self.item)} {verb} with it at {place} of an index of shape {shape}{more}, "
            f"in kernel {self.runner.spec.function_name}"
        )

    def _check_steps(self, own: OwnKernel) -> None:
        reporting = with_reports(self.item.ast, own)
        if reporting is None:
            return
        ast, accesses = reporting
        report = Buffer(INTERPRETER, 2 * len(accesses), dtypes.int64).allocate()
        report.copyin(bytes(16 * len(accesses)))
        self._interpret(ast, [*map(_copy, self.item.bufs), report])
        found = values_of(report).reshape(-1, 2).tolist()
        for access, (failed, place) in zip(accesses, found, strict=True):
            if failed:
                raise IndexError(f"{access.problem(place)}: kernel {own.name}, from {_lines(self.item)}")

    def _by_extremes(self, value: UOp) -> UOp:
        """An expression that has at least the values of an integer's elements, and no arrays: each array of
        integers in it is a Variable, from the least to the greatest number that is in memory now.

        So what is in range needs no evaluation of each element, which takes the interpreter minutes.
        """

        def extremes(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
            if node.op is Ops.VIEW and src:
                masked = any(view.mask is not None for view in node.arg.views)
                return _between(src[0], *bounds(src[0]), masked) if masked else src[0]
            if node.op is Ops.CONST:
                return UOp.const(node.dtype, node.arg) if node.dtype.count == 1 else None
            if node.op is Ops.LOAD and dtypes.is_int(node.dtype):
                values = values_of(self.memory[node.src[0].arg])
                if values.size:
                    return _between(node, int(values.min()), int(values.max()), can_be_zero=True)
            if node.op is Ops.IOTA:
                ends = _ends(node.src[0].arg.views[0])
                return _between(node, *ends) if ends else None
            if node.op is Ops.CHECK:
                return src[0]
            if node.op is Ops.WHERE and bounds(src[0]) in ((0, 0), (1, 1)):
                return src[1] if bounds(src[0])[0] else src[2]
            return None

        return transform(value, extremes, None)

    def _evaluate(self, value: UOp) -> Any:
        """All elements of an integer value of the AST, before the kernel runs."""
        shape = shape_of(value)
        size = 1
        for length in shape:
            size *= _number(length, self.item.var_vals)
        result = Buffer(INTERPRETER, max(size, 1), dtypes.int64).allocate()
        number = len(self.memory)
        target = UOp(Ops.DEFINE_GLOBAL, dtypes.int64.ptr(max(size, 1)), (), number)
        view = UOp(Ops.VIEW, dtypes.void, (), ShapeTracker.from_shape(shape))
        store = UOp(Ops.STORE, dtypes.void, (target, view, UOp(Ops.CAST, dtypes.int64, (value,))))
        self._interpret(UOp.sink(store), [*self.memory, result])
        return values_of(result)[:size]

    # *** not finite

    def _inputs_are_finite(self) -> tuple[bool, bool]:
        """(no input has NaN, nor infinity)."""
        import numpy as np

        nan = infinite = False
        for buffer in (*self.item.inputs, *self.item.outputs):
            if dtypes.is_float(buffer.dtype) and buffer.is_allocated:
                values = values_of(buffer)
                nan = nan or bool(np.isnan(values).any())
                infinite = infinite or bool(np.isinf(values).any())
        for node in self.item.ast.toposort():
            if node.op is Ops.CONST and dtypes.is_float(node.dtype):
                nan = nan or node.arg != node.arg
                infinite = infinite or node.arg in (float("inf"), float("-inf"))
        return not nan, not infinite

    def _check_finite(self) -> None:
        import numpy as np

        no_nan, no_infinity = self.clean
        for number, buffer in enumerate(self.item.outputs):
            if not dtypes.is_float(buffer.dtype):
                continue
            values = values_of(buffer)
            found = np.zeros(values.shape, bool)
            if no_nan:
                found |= np.isnan(values)
                if no_infinity:
                    found |= np.isinf(values)
            if found.any():
                at = int(np.argmax(found))
                value, name = values[at].item(), self.runner.spec.function_name
                inputs = "were finite" if no_infinity else "had no NaN"
                text = (
                    f"kernel {name} on {buffer.device} makes the first {value!r}; its inputs {inputs}\n"
                    f"  at element {self._index_text(number, at)}; {int(found.sum())} of {values.size} such\n"
                    f"  from {_lines(self.item)}"
                )
                raise CheckError(text, name, self.item.metadata, number, at, value)


# *** elements


def _copy(buffer: Buffer) -> Buffer:
    return Buffer(INTERPRETER, buffer.size, buffer.dtype).allocate().copyin(buffer.as_buffer())


def _number(value: Any, var_vals: dict[UOp, int]) -> int:
    if not isinstance(value, UOp):
        return int(value)
    by_name = {variable.arg[0]: number for variable, number in var_vals.items()}
    return evaluate(value, {n: by_name[n.arg[0]] for n in value.toposort() if n.op is Ops.DEFINE_VAR})


def _between(node: UOp, low: int, high: int, can_be_zero: bool = False) -> UOp:
    """Any number of the node's type between these, or 0 where a view leaves elements out."""
    if can_be_zero:
        low, high = min(low, 0), max(high, 0)
    return UOp(Ops.DEFINE_VAR, node.dtype, (), ("element", low, high))


def _ends(view: View) -> tuple[int, int] | None:
    """The least and the greatest address of a view, or 0; None where a size is symbolic."""
    if not isinstance(view.offset, int):
        return None
    low = high = view.offset
    for size, stride in zip(view.shape, view.strides, strict=True):
        if not isinstance(size, int) or not isinstance(stride, int):
            return None
        low, high = low + min((size - 1) * stride, 0), high + max((size - 1) * stride, 0)
    return min(low, 0), max(high, 0)


def _conditions(index: UOp) -> list[tuple[UOp, UOp]]:
    """(position, limit) for each axis of an index, in the shape of the index.

    Tensor methods make `where(check(0 <= i & i < size) & ..., place, -1)`.
    """
    if index.op is not Ops.WHERE:
        return []
    found = []
    stack: list[tuple[UOp, tuple[UOp, ...]]] = [(index.src[0], ())]
    visited: set[tuple[UOp, tuple[UOp, ...]]] = set()
    while stack:
        node, views = asked = stack.pop()
        if asked in visited:
            continue
        visited.add(asked)
        if node.op is Ops.CHECK:
            stack.append((node.src[0], views))
        elif node.op is Ops.AND:
            stack += [(source, views) for source in reversed(node.src)]
        elif node.op is Ops.VIEW:
            stack.append((node.src[0], (node, *views)))
        elif node.op is Ops.CMPLT:
            position, limit = node.src
            for view in views:
                position, limit = (UOp(Ops.VIEW, n.dtype, (n,), view.arg) for n in (position, limit))
            found.append((position, limit))
    return found


def _lines(item: ScheduleItem) -> str:
    """The user calls that a kernel comes from."""
    return ", ".join(map(str, item.metadata)) or "no recorded call"
