"""`@kernel`: calling a kernel's function with tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, overload

from ...device import Device
from ...gradient import filled
from ...ir.index import substitute
from ...ir.ops import Ops
from ...ir.own import Array, CustomArg, OwnKernel
from ...ir.uop import UOp
from ...schedule.versions import placed
from ...shape import shape_text
from ..face import Tensor
from ..modes import mode
from ..places import devices_text, meeting
from ..trace import called
from ..transforms.given_gradient import Gradient, with_gradient
from .arrays import KernelArray, Output
from .graphs import graphs_of
from .language import Language
from .recording import KernelError, Recorder, running


class OwnFunction:
    """A kernel that its user wrote. Called with tensors (and whatever else its function takes) it gives what
    the function returns: a tensor, or a tuple of them.
    """

    def __init__(self, function: Callable[..., Any], as_written: bool = False) -> None:
        self.function, self.as_written = function, as_written
        self.signature = inspect.signature(function)
        self._gradient: Gradient | None = None
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
        bound = self.signature.bind(*args, **kwargs)
        tensors = [value for value in (*bound.args, *bound.kwargs.values()) if isinstance(value, Tensor)]
        wanted = mode.grad and any(tensor.requires_grad for tensor in tensors)
        if not wanted or self._gradient is None:
            result = self._run(bound.args, bound.kwargs, wanted)
            if result is not None:
                return result
        return with_gradient(self.name, self._run, self._gradient).apply(*bound.args, **bound.kwargs)

    def _run(self, args: Sequence[Any], kwargs: dict[str, Any], smooth: bool = False) -> Any:
        """The results for these arguments; with `smooth` None, if rules say nothing of the gradient."""
        recorder = Recorder(self.name, [])
        tensors: list[Tensor] = []
        names = iter(self.signature.parameters)

        def stand_in(value: Any, name: str) -> Any:
            if not isinstance(value, Tensor):
                return value
            tensors.append(value)
            return _input(recorder, value, name)

        with running(recorder):
            places = [stand_in(value, next(names, "an argument")) for value in args]
            named = {name: stand_in(value, name) for name, value in kwargs.items()}
            result = self.function(*places, **named)
            recorder.finish()
        outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        for each in outputs:
            if not isinstance(each, Output):
                raise KernelError(
                    f"kernel {self.name} returns what kernel.zeros or kernel.copy gave, not {each!r}"
                )
        with called(self.name):
            nodes = _nodes(recorder, tensors, self.as_written, smooth)
        if nodes is None:
            return None
        kind = type(tensors[0]) if tensors else Tensor
        made = [kind._make(nodes[each.number], *tensors, view=False) for each in outputs]
        return tuple(made) if isinstance(result, (tuple, list)) else made[0]

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


def _input(recorder: Recorder, tensor: Tensor, name: str) -> KernelArray:
    shape = tensor.shape
    if not all(isinstance(size, int) for size in shape):
        raise NotImplementedError(
            f"kernel {recorder.name} of {name} of shape {shape_text(shape)} is not there yet"
        )
    array = Array(tensor.dtype, shape)  # type: ignore[arg-type]
    number = len(recorder.inputs)
    recorder.inputs.append(array)
    return KernelArray(name, _unnumbered(number, array), array.dtype, array.shape, number)


def _unnumbered(number: int, array: Array) -> UOp:
    """An input's memory while the function runs: how many outputs are counted before it is not known yet."""
    return UOp(Ops.DEFINE_GLOBAL, array.dtype.ptr(array.size), (), -1 - number)


def _nodes(recorder: Recorder, tensors: list[Tensor], as_written: bool, smooth: bool) -> list[UOp] | None:
    """The graph's node for each output: a tensor graph, if the kernel is pure, or its steps."""
    for tensor in tensors:
        if tensor._is_apart(tensors[0]):
            first, second = devices_text(tensors[0].device), devices_text(tensor.device)
            raise ValueError(
                f"kernel {recorder.name}: tensors on {first} and {second} do not meet; "
                f"{meeting(tensors[0].device, tensor.device)}"
            )
    device = next((tensor.device for tensor in tensors if tensor._device_known()), Device.DEFAULT)
    inputs = [placed(tensor.uop, device) for tensor in tensors]
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
        recorder.name, tuple(recorder.outputs), tuple(recorder.inputs), begun, _numbered(recorder), None
    )
    sources = (*inputs, *[begin for begin, counts in zip(begins, begun, strict=True) if counts])
    return [
        UOp(Ops.CUSTOM, array.dtype, sources, CustomArg(own, number))
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
