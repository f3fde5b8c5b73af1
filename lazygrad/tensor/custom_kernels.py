"""A kernel as text, in the language of a device, as nodes of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..codegen.direct_kernels import LANGUAGES
from ..device import CompiledDevice, Device, DeviceError
from ..dtype import to_dtype
from ..gradient import filled
from ..ir.args import Array, ProgramArg
from ..ir.ops import Ops
from ..ir.own import OwnKernel, SourceText
from ..ir.uop import UOp
from ..schedule.graph.versions import placed
from ..shape import shape_text
from .face import Tensor
from .same_device import one_device
from .signatures import Several
from .trace import called
from .transforms.given_gradient import with_gradient


class CustomKernels(Tensor):
    """Kernels that are given as text."""

    @classmethod
    def custom_kernel(
        cls,
        source: str | Mapping[str, str],
        language: str | None = None,
        outputs: Any = None,
        grid: Several | Mapping[str, Several] | None = None,
        *,
        inputs: Sequence[Tensor] = (),
        group: Several | Mapping[str, Several] | None = None,
        name: str | Mapping[str, str] | None = None,
        gradient: Callable[..., Any] | None = None,
    ) -> Any:
        """The results of a kernel written in C, LLVM, OpenCL, CUDA or Metal: a tensor or a tuple of them.

        The kernel takes pointers to the elements of its outputs and then of its inputs, in row-major order.
        It is planned, cached and replayed as any other. The text is trusted: one that is wrong may give wrong
        numbers, or end the process.

        source    the text: a function that returns nothing, and what it needs. Or {language: text}, so that
                  the kernel runs on several kinds of device
        language  "c" on device CLANG, "llvm" on CPU, "opencl" on CL, "cuda" on CUDA, "metal" on METAL
        outputs   (shape, dtype) of the output, a tensor with that shape and dtype, or a list of these
        grid      how many workgroups are launched, along x, y, z. In C and LLVM: how many calls there are,
                  divided among the cores; the function then takes the index on each axis as a further 64-bit
                  argument. If languages differ in it, {language: grid}; `group` and `name` likewise
        inputs    tensors on one device
        group     the threads of each workgroup; C and LLVM have none
        name      the function, where the text has several
        gradient  takes the gradient of the result, the result, and the inputs, and gives the gradient of each
                  input, or None (of several outputs: a tuple of gradients, and of results)

        >>> text = "void twice(float* out, float* x) { for (int i = 0; i < 3; i++) out[i] = 2 * x[i]; }"
        >>> x = Tensor([1.0, 2.0, 3.0], device="CLANG")
        >>> Tensor.custom_kernel(text, "c", x, inputs=[x]).tolist()
        [2.0, 4.0, 6.0]
        """
        if outputs is None:
            raise TypeError("custom_kernel: say what it makes: outputs= (shape, dtype), or a tensor like it")
        several = isinstance(outputs, list)
        arrays = tuple([_array(each) for each in (outputs if several else [outputs])])
        tensors = list(inputs)
        sources = _sources(source, language)
        device = _device(tensors, list(sources))
        texts = _texts(sources, grid, group, name)
        function = texts[0].function
        own = OwnKernel.of(
            function, arrays, tuple(map(_array, tensors)), (not tensors,) * len(arrays), None, texts
        )

        def run(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
            sources = [placed(tensor.uop, device) for tensor in args]
            if not sources:  # something says where it runs
                sources = [placed(filled(array.shape, array.dtype, 0), device) for array in arrays]
            with called(function):
                made = [
                    cls._make(UOp(Ops.PROGRAM, array.dtype, tuple(sources), ProgramArg(own, n)), view=False)
                    for n, array in enumerate(arrays)
                ]
            return tuple(made) if several else made[0]

        return with_gradient(function, run, gradient).apply(*tensors)


def _array(like: Any) -> Array:
    """The shape and dtype that something states."""
    if isinstance(like, Tensor):
        shape, dtype = like.shape, like.dtype
    elif isinstance(like, tuple) and len(like) == 2 and isinstance(like[0], (tuple, list, int)):
        shape, dtype = (like[0],) if isinstance(like[0], int) else tuple(like[0]), to_dtype(like[1])
    else:
        raise TypeError(
            f"custom_kernel: an output must be (shape, dtype) or a tensor that is like it, not {like!r}"
        )
    if not all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in shape):
        raise ValueError(f"custom_kernel: arrays must have known sizes other than 0, not {shape_text(shape)}")
    return Array(dtype, shape)


def _sources(source: str | Mapping[str, str], language: str | None) -> Mapping[str, str]:
    """Language → text."""
    if isinstance(source, str):
        if language is None:
            raise TypeError(f"custom_kernel: say the language: one of {', '.join(LANGUAGES)}")
        source = {language: source}
    elif language is not None:
        raise TypeError("custom_kernel: a dict says the languages of its texts: leave language out")
    if not source:
        raise ValueError("custom_kernel: there is no text")
    for each in source:
        if each in _WITHOUT_DEVICE:
            raise NotImplementedError(
                f"custom_kernel: kernels in {each} are not implemented yet: use {', '.join(LANGUAGES)}"
            )
        if each not in LANGUAGES:
            raise ValueError(f"custom_kernel: a language must be {', '.join(LANGUAGES)}, not {each!r}")
    return source


def _texts(source: Mapping[str, str], grid: Any, group: Any, name: Any) -> tuple[SourceText, ...]:
    """Each text, with its function and its launch."""
    for what, said in (("grid", grid), ("group", group), ("name", name)):
        unknown = [each for each in said if each not in source] if isinstance(said, Mapping) else []
        if unknown:
            raise ValueError(f"custom_kernel: {what} is said for {unknown[0]!r}, of which there is no text")
    made = []
    for each, text in source.items():
        threads = _sizes("group", _said(group, each))
        if (
            threads is not None
            and each in _WITHOUT_GROUPS
            and (len(source) == 1 or isinstance(group, Mapping))
        ):
            raise ValueError(f"custom_kernel: a kernel in {each} has no workgroups: say grid= alone")
        function, places = _function(text, each, _said(name, each)), _sizes("grid", _said(grid, each))
        made.append(SourceText(each, function, text, places, None if each in _WITHOUT_GROUPS else threads))
    return tuple(made)


#: Languages of kernels that no device here takes.
_WITHOUT_DEVICE = ("ptx", "wgsl", "hip", "triton")
_WITHOUT_GROUPS = ("c", "llvm")


def _said(given: Any, language: str) -> Any:
    """What was said for a language, or for all."""
    return given.get(language) if isinstance(given, Mapping) else given


def _sizes(what: str, given: Several | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    sizes = (given,) if isinstance(given, int) else tuple(given)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ValueError(f"custom_kernel: a {what} has one to three sizes above 0, not {given!r}")
    return sizes


def _function(source: str, language: str, name: str | None) -> str:
    found = LANGUAGES[language].functions(source)
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


def _device(tensors: list[Tensor], languages: list[str]) -> str:
    """The device that the inputs are on, or the default one; it must take one of the languages."""
    name = one_device(tensors, "custom_kernel")
    if not isinstance(name, str):
        raise NotImplementedError("custom_kernel of tensors on several devices is not implemented yet")
    device = Device[name]
    suffix = device.renderer.suffix if isinstance(device, CompiledDevice) else None
    takes = next((language for language, of in LANGUAGES.items() if of.suffix == suffix), None)
    if takes in languages:
        return name
    given, wanted = languages[0], [LANGUAGES[language].device for language in languages]
    others = "which takes no texts"
    if takes is not None:
        others = f"which takes {takes}: add a text for it, {{{given!r}: ..., {takes!r}: ...}}, or"
    raise DeviceError(
        f"custom_kernel: a text in {' or '.join(languages)} runs on device {' or '.join(wanted)}, and the "
        f"tensors are on {name}, {others}{'' if takes else ':'} move them with .to({wanted[0]!r})"
    )
