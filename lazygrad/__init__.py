"""lazygrad: a lazy tensor library and kernel compiler.

What you type builds a graph; when a value is needed, the graph is cut into fused kernels that lazygrad itself
generates.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import direct as _direct
from . import gpu as _gpu
from .config import VIZ as _VIZ
from .config import VIZ_SAVE as _VIZ_SAVE
from .config import Context
from .device import Device, GlobalCounters
from .dtype import DTYPES_BY_NAME, DType, dtypes
from .ir import UOp, Variable, announce_style
from .jit import JitError, TinyJit, jit
from .renderer import cstyle as _cstyle
from .report.check import CheckError
from .sharding import multi as _sharding
from .tensor import (
    Function,
    Generator,
    Tensor,
    announce_namespace,
    autocast,
    checkpoint,
    enable_grad,
    grad,
    gradcheck,
    hessian,
    jacobian,
    jvp,
    kernels,
    memory,
    new_tensor,
    no_grad,
    printoptions,
    set_printoptions,
    value_and_grad,
    vjp,
    vmap,
)
from .tuning import beam as _beam

# Each says what it knows to tables of the core when it is imported.
_EXTENSIONS = (_direct, _gpu, _sharding, _beam, _cstyle)

if _TYPE_CHECKING:
    from .array_api import numpy_function
    from .tensor.own_kernels import KernelError, kernel

__all__ = [
    "CheckError",
    "Context",
    "Device",
    "Function",
    "Generator",
    "GlobalCounters",
    "JitError",
    "KernelError",
    "Tensor",
    "TinyJit",
    "UOp",
    "Variable",
    "autocast",
    "checkpoint",
    "dtypes",
    "enable_grad",
    "export",
    "grad",
    "gradcheck",
    "hessian",
    "jacobian",
    "jit",
    "jvp",
    "kernel",
    "kernels",
    "load",
    "load_exported",
    "memory",
    "no_grad",
    "numpy_function",
    "printoptions",
    "profile",
    "set_printoptions",
    "value_and_grad",
    "vjp",
    "vmap",
]
__version__ = "0.1.0"


def load(path: _Any) -> _Any:
    """What a file holds, whatever it is called: its format is told by its bytes.

    path  a file, a folder with one model in it, or the index of weights in several files

    - safetensors, GGUF, `.npz`: tensors by name (`nn.formats.Weights`), those in blocks as
      `nn.quantized.QuantizedTensor`; what else the file states is its `.metadata`
    - a PyTorch checkpoint: the object that `torch.save` was given, with Tensors in place of PyTorch's
    - `.npy`: a tensor
    - ONNX: a function on a dict of tensors (`nn.onnx.OnnxRunner`)

    Tensors stay in the file until they are needed. `nn.formats.FileFormatError` says what is wrong with a
    file, NotImplementedError what of it is not read.
    """
    from .nn import formats

    file = formats.file_of(path)
    if formats.format_of(file) == formats.ONNX:
        from .nn.onnx import OnnxRunner

        return OnnxRunner(file)
    return formats.load_weights(file)


#: The Array API standard's functions, and PyTorch's under the names it has them by.
_NAMESPACES = ("array_api", "fft", "functional", "linalg", "special")
#: Methods of Tensor that make tensors, here as functions under the names that other libraries have for them.
_FUNCTIONS = (
    "arange", "cat", "einsum", "empty", "eye", "from_dlpack", "from_jax", "from_numpy", "full", "linspace",
    "manual_seed", "meshgrid", "ones", "rand", "randint", "randn", "randperm", "stack", "where", "zeros",
    "empty_like", "full_like", "ones_like", "rand_like", "randn_like", "to_jax", "zeros_like",
)  # fmt: skip


def __getattr__(name: str) -> _Any:
    """What is made or loaded when it is first asked for."""
    found: _Any
    if name == "export":
        from .exporting import writing

        found = writing.export
    elif name == "profile":
        from .inspection import profiling

        found = profiling.profile
    elif name == "load_exported":
        from . import exporting

        found = exporting.load_exported
    elif name in (*_NAMESPACES, "viz"):
        import importlib

        found = importlib.import_module(f".{name}", __name__)
    elif name == "numpy_function":
        from . import array_api

        found = array_api.numpy_function
    elif name in ("nn", "log", "read_log"):
        from .nn import logs  # which makes `nn` an attribute of this package

        found = globals()["nn"] if name == "nn" else getattr(logs, name)
    elif name == "random":
        from .random import Generator  # noqa: F401 - which makes `random` an attribute of this package

        found = globals()["random"]
    elif name in _FUNCTIONS:
        found = getattr(Tensor, name)
    elif isinstance(getattr(dtypes, name, None), DType):
        found = getattr(dtypes, name)
    elif name in ("kernel", "KernelError"):
        from .tensor import own_kernels

        found = getattr(own_kernels, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_near(name)}")
    globals()[name] = found
    return found


#: What people who come from PyTorch and JAX look for at the top, and where it is.
_INSTEAD = {
    "Module": "nn.Module",
    "amp": "lazygrad.autocast('bfloat16') and nn.optim.GradScaler",
    "autograd": "lazygrad.grad, Tensor.gradient and lazygrad.Function",
    "backends": "the flags of docs/env_vars.md",
    "compile": "nothing for fusion, which is always on; lazygrad.jit replays a function",
    "cuda": "device='CUDA'; Device.DEFAULT is the one in use, `python -m lazygrad devices` lists all",
    "device_put": "x.to('CUDA')",
    "func": "lazygrad.grad, lazygrad.vmap, lazygrad.jvp and the others",
    "numpy": "the methods of Tensor; numpy's functions take Tensors too",
    "optim": "nn.optim",
    "save": "nn.state.safe_save(model.state_dict(), path)",
    "set_default_dtype": "dtypes.default_float = dtypes.float64",
    "set_grad_enabled": "lazygrad.no_grad() and lazygrad.enable_grad()",
    "utils": "nn.DataLoader for batches, lazygrad.checkpoint, nn.optim.clip_grad_norm_",
}


def _near(name: str) -> str:
    import difflib

    if name in _INSTEAD:
        return f": use {_INSTEAD[name]}"
    known = [*__dir__(), *(n for n in dir(Tensor) if not n.startswith("_"))]
    near = difflib.get_close_matches(name, [] if name.startswith("_") else known, 1, 0.8)
    if not near:
        return ""
    return f"; did you mean {near[0] if near[0] in __dir__() else 'Tensor.' + near[0]}?"


def __dir__() -> list[str]:
    """All names, those that are made later included."""
    return sorted(
        {*globals(), *_FUNCTIONS, *_NAMESPACES, *DTYPES_BY_NAME, *__all__}
        | {"log", "nn", "random", "read_log", "viz"}
    )


as_tensor = asarray = new_tensor

if _TYPE_CHECKING:  # for type checkers; at run time __getattr__ makes them when they are asked for
    tensor = new_tensor  # the package of that name, which can be called
    arange, cat, einsum, empty, eye = Tensor.arange, Tensor.cat, Tensor.einsum, Tensor.empty, Tensor.eye
    from_dlpack, from_numpy, full, linspace = (
        Tensor.from_dlpack,
        Tensor.from_numpy,
        Tensor.full,
        Tensor.linspace,
    )
    manual_seed, ones, rand, randint = Tensor.manual_seed, Tensor.ones, Tensor.rand, Tensor.randint
    randn, randperm, stack, zeros = Tensor.randn, Tensor.randperm, Tensor.stack, Tensor.zeros
    float16, bfloat16, float32, float64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64
    int8, int16, int32, int64 = dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64
    uint8, uint16, uint32, uint64 = dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64


def _load_classic_style() -> None:
    from .compat import classic_text  # noqa: F401


announce_style("classic", _load_classic_style)


def _load_namespace() -> _Any:
    from . import array_api

    return array_api


announce_namespace(_load_namespace)


def _record() -> None:
    from .viz import live

    live.begin()


if _VIZ or _VIZ_SAVE.value:
    _record()
