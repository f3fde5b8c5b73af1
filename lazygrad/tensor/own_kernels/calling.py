"""`@kernel`: calling a kernel's function with tensors."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, overload

from ...config import CHECK
from ...device import Devices
from ...gradient import filled
from ...ir.args import Array, ProgramArg
from ...ir.index import substitute
from ...ir.ops import Ops
from ...ir.own import OwnKernel
from ...ir.uop import UOp
from ...schedule.graph.versions import new_buffer, placed
from ...shape import movement, shape_text
from ..face import Tensor
from ..modes import mode
from ..same_device import one_device
from ..trace import called
from ..transforms.given_gradient import Gradient, with_gradient
from .arrays import KernelArray, Output
from .flow import TraceAgain, own_function
from .graphs import graphs_of
from .language import Language
from .outside import refuse_outside
from .recording import KernelError, Recorder, running
from .traces import Given, NoKey, Trace, Traces, key_of

#: So often a function is traced again, each time with wider variables, at most.
MOST_TRACES = 64


class OwnFunction:
    """A kernel that its user wrote. Called with tensors (and whatever else its function takes) it gives what
    the function returns: a tensor, or a tuple of them.
    """

    def __init__(self, function: Callable[..., Any], as_written: bool = False) -> None:
        self.function, self.verbatim = function, as_written
        self.signature = inspect.signature(function)
        self._gradient: Gradient | None = None
        self._traces = Traces()
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        return self.function.__name__

    def gradient(self, function: Gradient) -> Gradient:
        """`@my_kernel.gradient` above the function that gives the gradients.

        It takes the gradient of the result (a tuple of them, where the kernel gives several), the result, and
        the arguments of the kernel, and gives the gradient of each argument, or None.
        """
        self._gradient = function
        return function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != len(self.signature.parameters):
            bound = self.signature.bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        wanted = mode.grad and any(each.requires_grad for each in _tensors_of(args, kwargs))
        if not wanted or self._gradient is None:
            result = self._run(args, kwargs, wanted)
            if result is not None:
                return result
        return with_gradient(self.name, self._run, self._gradient).apply(*args, **kwargs)

    def _run(self, args: Sequence[Any], kwargs: dict[str, Any], smooth: bool = False) -> Any:
        """The results for these arguments; with `smooth` None, if rules say nothing of the gradient."""
        tensors = _tensors_of(args, kwargs)
        device = one_device(tensors, f"kernel {self.name}")
        inputs = [placed(tensor.uop, device) for tensor in tensors]
        trace = self._trace(args, kwargs, inputs, device, smooth)
        if trace is None:
            return None
        with called(self.name):
            nodes = trace.on(inputs)
        kind = type(tensors[0]) if tensors else Tensor
        made = [kind._make(node, *tensors, view=False) for node in nodes]
        return tuple(made) if trace.several else made[0]

    def _trace(
        self,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        inputs: Sequence[UOp],
        device: Devices,
        smooth: bool,
    ) -> Trace | None:
        """What the function becomes for these arguments: kept, if all that it reads has a key."""
        given = [_given(self.name, value) for value in (*args, *kwargs.values())]
        if not isinstance(device, str):
            return self._traced(
                given[: len(args)], dict(zip(kwargs, given[len(args) :], strict=True)), inputs, device, smooth
            )

        def make() -> Trace | None:
            arrays = [each for each in given if type(each) is Given]
            places = [
                movement.reshape(new_buffer(device, math.prod(a.shape), a.dtype), a.shape) for a in arrays
            ]
            named = dict(zip(kwargs, given[len(args) :], strict=True))
            return self._traced(given[: len(args)], named, places, device, smooth)

        try:
            key = (*key_of(self.function, given), tuple(kwargs), device, smooth, CHECK.value)
            hash(key)
        except (NoKey, TypeError):
            return make()
        return self._traces.get(key, make)

    def _traced(
        self,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        inputs: Sequence[UOp],
        device: Devices,
        smooth: bool,
    ) -> Trace | None:
        """Run the function, again where it is then found out what its variables must hold."""
        known: dict[Any, Any] = {}
        for _ in range(MOST_TRACES):
            try:
                recorder, result = self._recorded(args, kwargs, known)
            except TraceAgain:
                continue
            several = isinstance(result, (tuple, list))
            outputs = list(result) if several else [result]
            for each in outputs:
                if not isinstance(each, Output):
                    raise KernelError(
                        f"kernel {self.name} returns what kernel.zeros or kernel.copy gave, not {each!r}"
                    )
            with called(self.name):
                nodes = _nodes(recorder, inputs, device, self.verbatim, smooth)
            return None if nodes is None else Trace(inputs, [nodes[o.number] for o in outputs], several)
        raise KernelError(f"kernel {self.name}: its variables have no dtype that holds all they are given")

    def _recorded(
        self, args: Sequence[Any], kwargs: dict[str, Any], known: dict[Any, Any]
    ) -> tuple[Recorder, Any]:
        """What the function does, and what it returns."""
        recorder = Recorder(self.name, [], known)
        names = iter(self.signature.parameters)

        def stand_in(value: Any, name: str) -> Any:
            return _input(recorder, value, name) if type(value) is Given else value

        with running(recorder):
            places = [stand_in(value, next(names, "an argument")) for value in args]
            named = {name: stand_in(value, name) for name, value in kwargs.items()}
            result = own_function(self.function)(*places, **named)
            recorder.finish()
            refuse_outside(recorder)
        return recorder, result

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


class Kernel(Language):
    """`@kernel` makes a kernel of a function; its other names are what the function is written with."""

    @overload
    def __call__(self, function: Callable[..., Any], *, as_written: bool = False) -> OwnFunction: ...
    @overload
    def __call__(self, function: None = None, *, as_written: bool) -> Callable[..., OwnFunction]: ...

    def __call__(self, function: Callable[..., Any] | None = None, *, as_written: bool = False) -> Any:
        """The kernel of a function.

        as_written  `@kernel(as_written=True)`: its loops stay as they are, where they could be fused with
                    what stands around them and optimized
        """
        if function is None:
            return functools.partial(self, as_written=as_written)
        if not callable(function):
            raise TypeError(f"@kernel stands above a function, not {function!r}")
        return OwnFunction(function, as_written)

    def __repr__(self) -> str:
        return "<lazygrad.kernel>"


kernel = Kernel()


def _tensors_of(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Tensor]:
    return [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]


def _given(name: str, value: Any) -> Any:
    """A tensor as what a trace knows of it."""
    if not isinstance(value, Tensor):
        return value
    shape = value.shape
    if not all(isinstance(size, int) for size in shape):
        raise NotImplementedError(
            f"kernel {name} of a tensor of shape {shape_text(shape)} is not implemented yet"
        )
    return Given(shape, value.dtype)  # type: ignore[arg-type]


def _input(recorder: Recorder, given: Given, name: str) -> KernelArray:
    array = Array(given.dtype, given.shape)
    number = len(recorder.inputs)
    recorder.inputs.append(array)
    return KernelArray(name, _unnumbered(number, array), array.dtype, array.shape, number)


def _unnumbered(number: int, array: Array) -> UOp:
    """An input's memory while the function runs: how many outputs are counted before it is not known yet."""
    return UOp(Ops.DEFINE_GLOBAL, array.dtype.ptr(array.size), (), -1 - number)


def _nodes(
    recorder: Recorder, inputs: Sequence[UOp], device: Devices, as_written: bool, smooth: bool
) -> list[UOp] | None:
    """The graph's node for each output: a tensor graph, if the kernel is pure, or its steps."""
    begins = [
        inputs[what].cast(array.dtype)
        if how == "copy"
        else placed(filled(array.shape, array.dtype, what), device)
        for array, (how, what) in zip(recorder.outputs, recorder.begins, strict=True)
    ]
    if recorder.does_nothing():
        return begins
    pure = None if as_written else graphs_of(recorder, inputs)
    if pure is not None or smooth:
        return pure
    begun = recorder.begun() if inputs else (True,) * len(begins)  # something says where it runs
    own = OwnKernel.of(
        recorder.name, tuple(recorder.outputs), tuple(recorder.inputs), begun, _numbered(recorder), ()
    )
    sources = (*inputs, *[begin for begin, counts in zip(begins, begun, strict=True) if counts])
    return [
        UOp(Ops.PROGRAM, array.dtype, sources, ProgramArg(own, number))
        for number, array in enumerate(recorder.outputs)
    ]


def _numbered(recorder: Recorder) -> UOp:
    """The steps, with inputs counted behind the outputs."""
    sink = recorder.sink()
    count = len(recorder.outputs)
    places = {
        _unnumbered(number, array): _unnumbered(-1 - count - number, array)
        for number, array in enumerate(recorder.inputs)
    }
    return substitute((sink,), places)[sink]
