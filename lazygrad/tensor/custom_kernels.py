"""A kernel as text, in the language of a device, as nodes of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..device import CompiledDevice, Device, DeviceError
from ..dtype import to_dtype
from ..gradient import filled
from ..ir.ops import Ops
from ..ir.own import Array, CustomArg, OwnKernel, SourceText
from ..ir.uop import UOp
from ..renderer.given_text import SUFFIXES, functions_in
from ..schedule.versions import placed
from ..shape import shape_text
from .face import Tensor
from .places import one_device
from .signatures import Several
from .trace import called
from .transforms.given_gradient import with_gradient

#: language → the device that takes it
_DEVICES = {"c": "CLANG", "llvm": "CPU", "opencl": "CL", "cuda": "CUDA", "metal": "METAL"}


class CustomKernels(Tensor):
    """Kernels that are given as text."""

    @classmethod
    def custom_kernel(
        cls,
        source: str,
        language: str,
        outputs: Any,
        grid: Several | None = None,
        *,
        inputs: Sequence[Tensor] = (),
        group: Several | None = None,
        name: str | None = None,
        gradient: Callable[..., Any] | None = None,
    ) -> Any:
        """What a kernel makes that is written in C, LLVM, OpenCL, CUDA or Metal: a tensor or a tuple of them.

        The kernel takes pointers to the elements of its outputs and then of its inputs, which lie row by row.
        It is planned, cached and replayed as any other. The text is trusted: one that is wrong may give wrong
        numbers, or end the process.

        source    the text: a function that returns nothing, and what it needs
        language  "c" on device CLANG, "llvm" on CPU, "opencl" on CL, "cuda" on CUDA, "metal" on METAL
        outputs   (shape, dtype) of the output, a tensor that is like it, or a list of such
        grid      how many workgroups are launched, along x, y, z. In C: how many calls there are, which the
                  cores share; the function then takes the place on each axis as a further `long` argument
        inputs    tensors on one device
        group     the threads of each workgroup
        name      the function, where the text has several
        gradient  takes the gradient of the result, the result, and the inputs, and gives the gradient of each
                  input, or None (of several outputs: a tuple of gradients, and of results)

        >>> text = "void twice(float* out, float* x) { for (int i = 0; i < 3; i++) out[i] = 2 * x[i]; }"
        >>> x = Tensor([1.0, 2.0, 3.0], device="CLANG")
        >>> Tensor.custom_kernel(text, "c", x, inputs=[x]).tolist()
        [2.0, 4.0, 6.0]
        """
        several = isinstance(outputs, list)
        arrays = tuple([_array(each) for each in (outputs if several else [outputs])])
        tensors = list(inputs)
        device = _device(tensors, language)
        text = SourceText(language, _function(source, language, name), source, _sizes(grid), _sizes(group))
        own = OwnKernel.of(
            text.function, arrays, tuple(map(_array, tensors)), (not tensors,) * len(arrays), None, text
        )

        def run(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
            sources = [placed(tensor.uop, device) for tensor in args]
            if not sources:  # something says where it runs
                sources = [placed(filled(array.shape, array.dtype, 0), device) for array in arrays]
            with called(text.function):
                made = [
                    cls._make(UOp(Ops.CUSTOM, array.dtype, tuple(sources), CustomArg(own, n)), view=False)
                    for n, array in enumerate(arrays)
                ]
            return tuple(made) if several else made[0]

        return with_gradient(text.function, run, gradient).apply(*tensors)


def _array(like: Any) -> Array:
    """The shape and dtype that something states."""
    if isinstance(like, Tensor):
        shape, dtype = like.shape, like.dtype
    elif isinstance(like, tuple) and len(like) == 2 and isinstance(like[0], (tuple, list, int)):
        shape, dtype = (like[0],) if isinstance(like[0], int) else tuple(like[0]), to_dtype(like[1])
    else:
        raise TypeError(
            f"custom_kernel: an output is (shape, dtype) or a tensor that is like it, not {like!r}"
        )
    if not all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in shape):
        raise ValueError(
            f"custom_kernel: arrays have sizes that are known and not 0, not {shape_text(shape)}"
        )
    return Array(dtype, shape)  # type: ignore[arg-type]


def _sizes(given: Several | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    sizes = (given,) if isinstance(given, int) else tuple(given)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ValueError(f"custom_kernel: a grid has one to three sizes above 0, not {given!r}")
    return sizes


def _function(source: str, language: str, name: str | None) -> str:
    found = functions_in(source, language)
    if name is None and len(found) == 1:
        return found[0]
    if name in found:
        return str(name)
    if not found:
        raise ValueError(
            f"custom_kernel: no function of the text can be started by {language}: one that gives void"
        )
    listed = ", ".join(found)
    if name is None:
        raise ValueError(f"custom_kernel: the text has several functions: say name= one of {listed}")
    raise ValueError(f"custom_kernel: the text has no function {name}, but {listed}")


def _device(tensors: list[Tensor], language: str) -> str:
    """The device that the inputs are on, or the default one; it must take the language."""
    if language not in SUFFIXES:
        raise ValueError(f"custom_kernel: a language is {', '.join(SUFFIXES)}, not {language!r}")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"custom_kernel: inputs are tensors, not {tensor!r}")
    name = one_device(tensors, "custom_kernel")
    if not isinstance(name, str):
        raise NotImplementedError("custom_kernel of tensors on several devices is not there yet")
    device = Device[name]
    if not isinstance(device, CompiledDevice) or device.renderer.suffix != SUFFIXES[language]:
        wanted = _DEVICES[language]
        raise DeviceError(
            f"custom_kernel: a text in {language} runs on device {wanted}, and the tensors are on {name}: "
            f"move them with .to({wanted!r}), or write it for {name}"
        )
    return name
