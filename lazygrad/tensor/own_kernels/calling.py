"""`@kernel`: calling a kernel's function with tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...device import Device
from ...gradient import filled
from ...ir.index import substitute
from ...ir.ops import Ops
from ...ir.own import Array, CustomArg, OwnKernel
from ...ir.uop import UOp
from ...schedule.versions import placed
from ...shape import shape_text
from ..face import Tensor
from ..trace import called
from .arrays import KernelArray, Output
from .language import Language
from .recording import KernelError, Recorder, running


class OwnFunction:
    """A kernel that its user wrote. Called with tensors (and whatever else its function takes) it gives what
    the function returns: a tensor, or a tuple of them.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        return self.function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        recorder = Recorder(self.name, [])
        given = iter([_input(recorder, tensor, self.name) for tensor in tensors])

        def stand_in(value: Any) -> Any:
            return next(given) if isinstance(value, Tensor) else value

        with running(recorder):
            places = [stand_in(value) for value in args]
            named = {key: stand_in(value) for key, value in kwargs.items()}
            result = self.function(*places, **named)
            recorder.finish()
        return _results(self.name, recorder, tensors, result)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


class Kernel(Language):
    """`@kernel` makes a kernel of a function; its other names are what the function is written with."""

    def __call__(self, function: Callable[..., Any]) -> OwnFunction:
        if not callable(function):
            raise TypeError(f"@kernel stands above a function, not {function!r}")
        return OwnFunction(function)

    def __repr__(self) -> str:
        return "<lazygrad.kernel>"


kernel = Kernel()


class _Input(KernelArray):
    """An array that the kernel reads."""

    def __init__(self, recorder: Recorder, name: str, array: Array) -> None:
        self.input = len(recorder.inputs)
        recorder.inputs.append(array)
        # outputs are counted first, but not known yet: inputs have numbers from -1 down until the end
        memory = UOp(Ops.DEFINE_GLOBAL, array.dtype.ptr(array.size), (), -1 - self.input)
        super().__init__(name, memory, array.dtype, array.shape, False)


def _input(recorder: Recorder, tensor: Tensor, name: str) -> KernelArray:
    shape = tensor.shape
    if not all(isinstance(size, int) for size in shape):
        raise NotImplementedError(f"kernel {name} of a symbolic shape {shape_text(shape)} is not there yet")
    number = len(recorder.inputs)
    return _Input(recorder, f"input {number}", Array(tensor.dtype, shape))  # type: ignore[arg-type]


def _results(name: str, recorder: Recorder, tensors: list[Tensor], result: Any) -> Any:
    several = isinstance(result, (tuple, list))
    outputs = list(result) if several else [result]
    for each in outputs:
        if not isinstance(each, Output):
            raise KernelError(f"kernel {name} returns what kernel.zeros or kernel.copy gave, not {each!r}")
    device = next((tensor.device for tensor in tensors if tensor._device_known()), Device.DEFAULT)
    for tensor in tensors:
        if tensor._is_apart(tensors[0]):
            raise ValueError(f"kernel {name}: tensors on {tensors[0].device} and {tensor.device} do not meet")
    inputs = [placed(tensor.uop, device) for tensor in tensors]
    begins = [
        inputs[what].cast(array.dtype)
        if how == "copy"
        else placed(filled(array.shape, array.dtype, what), device)
        for array, (how, what) in zip(recorder.outputs, recorder.begins, strict=True)
    ]
    own = OwnKernel.of(
        name,
        tuple(recorder.outputs),
        tuple(recorder.inputs),
        (True,) * len(begins),
        _numbered(recorder),
        None,
    )
    with called(name):
        nodes = [
            UOp(Ops.CUSTOM, array.dtype, (*inputs, *begins), CustomArg(own, number))
            for number, array in enumerate(recorder.outputs)
        ]
    made = [
        type(tensors[0])._make(nodes[each.number]) if tensors else Tensor._make(nodes[each.number])
        for each in outputs
    ]
    return tuple(made) if several else made[0]


def _numbered(recorder: Recorder) -> UOp:
    """The steps, with inputs counted behind the outputs."""
    sink = recorder.sink()
    count = len(recorder.outputs)
    places = {
        UOp(Ops.DEFINE_GLOBAL, array.dtype.ptr(array.size), (), -1 - number): UOp(
            Ops.DEFINE_GLOBAL, array.dtype.ptr(array.size), (), count + number
        )
        for number, array in enumerate(recorder.inputs)
    }
    return substitute((sink,), places)[sink]
