"""The import paths of `tinygrad`, over four years, and the names that scripts took from each.

`install` makes `import tinygrad` and everything below it find these; a path or a name that is not in the
table is an ImportError that says so.
"""

from __future__ import annotations

import difflib
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Sequence
from typing import Any

from .. import helpers, nn
from ..codegen import compile as compiling
from ..codegen import opt as optimizer
from ..config import JIT_NESTED, Context, ContextVar, getenv
from ..device import Allocator, Buffer, BufferSpec, CompiledDevice, Compiler, Device, GlobalCounters
from ..dtype import (
    ConstType,
    DType,
    ImageDType,
    PtrDType,
    dtypes,
    from_numpy_name,
    least_upper_dtype,
    numpy_name,
    sum_acc_dtype,
    to_dtype,
    truncate,
)
from ..engine import JitError, TinyJit
from ..engine.programs import Runner, get_runner, method_cache
from ..engine.realize import run_schedule
from ..gradient import gradient
from ..ir import (
    Ops,
    PatternMatcher,
    UOp,
    UPat,
    Variable,
    graph_rewrite,
    linear_text,
    sint,
)
from ..ir.args import KernelInfo
from ..nn import datasets, optim, state
from ..renderer import Estimates, ProgramSpec, Renderer
from ..renderer.cstyle import CStyleRenderer, CUDARenderer, MetalRenderer, OpenCLRenderer
from ..renderer.llvmir import LLVMRenderer
from ..schedule.items import ScheduleItem
from ..schedule.kernel import Kernel as ScheduledKernel
from ..shape import tracker, view
from ..tensor import Function, Tensor
from ..tensor.trace import Metadata
from . import classic_text, enums, kernel, lazybuffer

Names = dict[str, Any]

# *** names that only old scripts have


def context_var(name: str, default: int | str = 0) -> ContextVar:
    """A flag of the script's own, as `ContextVar(name, default)` made it."""
    return ContextVar.all.get(name) or ContextVar(name, default, f"a flag of {sys.argv[0]}")


def create_schedule(nodes: Sequence[UOp]) -> list[ScheduleItem]:
    """The kernels that computing these nodes takes, in order."""
    first, *others = [Tensor._make(node) for node in nodes]
    return first.schedule(*others)


def least_upper_float(dtype: DType) -> DType:
    """The type itself if it is a float, else the default float."""
    return dtype if dtypes.is_float(dtype) else least_upper_dtype(dtype, dtypes.default_float)


def can_lossless_cast(source: DType, target: DType) -> bool:
    """Whether every value of a type is one of another type."""
    if source is target or source is dtypes.bool:
        return True
    if dtypes.is_float(target):
        exponent, mantissa = dtypes.finfo(target)
        if dtypes.is_float(source):
            return all(
                mine <= its for mine, its in zip(dtypes.finfo(source), (exponent, mantissa), strict=True)
            )
        bits = dtypes.iinfo(source).bits - (not dtypes.is_unsigned(source))
        return bits <= mantissa + 1 and dtypes.finfo(target).max >= dtypes.iinfo(source).max
    if dtypes.is_float(source) or target is dtypes.bool:
        return False
    mine, its = dtypes.iinfo(source), dtypes.iinfo(target)
    return its.min <= mine.min and mine.max <= its.max


def to_numpy_dtype(dtype: DType) -> type | None:
    """The class of numpy's scalars of a type; None where numpy has none."""
    import numpy as np

    return None if dtype.fmt is None else np.dtype(numpy_name(dtype)).type


def from_numpy_dtype(dtype: Any) -> DType:
    """The type of one of numpy's."""
    import numpy as np

    return from_numpy_name(np.dtype(dtype).name)


def print_uops(uops: Sequence[UOp]) -> None:
    """Print a linear program as a table."""
    print(linear_text(uops))


def clang_renderer() -> Renderer:
    """The renderer of C for this machine."""
    return Device["CLANG"].renderer


def all_int(values: Sequence[Any]) -> bool:
    """Whether every size is a number, and none symbolic."""
    return all(isinstance(value, int) for value in values)


def all_same(values: Sequence[Any]) -> bool:
    """Whether all are equal."""
    return all(value == values[0] for value in values)


def argfix(*values: Any) -> tuple[Any, ...]:
    """`f(1, 2)` and `f((1, 2))` alike."""
    return tuple(values[0]) if values and isinstance(values[0], (tuple, list)) else values


def argsort(values: Sequence[Any]) -> list[int]:
    """The places of the elements in rising order."""
    return sorted(range(len(values)), key=values.__getitem__)


def dedup(values: Sequence[Any]) -> list[Any]:
    """Each once, in the order of first appearance."""
    return list(dict.fromkeys(values))


def flatten(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """One list of all."""
    return [value for values in lists for value in values]


def round_up(number: int, amount: int) -> int:
    """The next multiple of `amount`."""
    return -(-number // amount) * amount


def ceildiv(number: int, divisor: int) -> int:
    """Division, rounded up."""
    return -(-number // divisor)


def partition(values: Sequence[Any], holds: Any) -> tuple[list[Any], list[Any]]:
    """Those for which it holds, and the others."""
    return [v for v in values if holds(v)], [v for v in values if not holds(v)]


# *** the table


def _public(module: types.ModuleType) -> Names:
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


_GRAPH: Names = {
    "UOp": UOp,
    "Ops": Ops,
    "UPat": UPat,
    "PatternMatcher": PatternMatcher,
    "graph_rewrite": graph_rewrite,
    "Variable": Variable,
    "sint": sint,
    "KernelInfo": KernelInfo,
    "print_uops": print_uops,
    "MemBuffer": classic_text.MemBuffer,
    "ConstBuffer": classic_text.ConstBuffer,
    "print_tree": classic_text.print_tree,
    **{name: value for name, value in vars(enums).items() if isinstance(value, enums.Family)},
    "Kernel": ScheduledKernel,
    "Estimates": Estimates,
    "Metadata": Metadata,
}
_TYPES: Names = {
    "dtypes": dtypes,
    "DType": DType,
    "PtrDType": PtrDType,
    "ImageDType": ImageDType,
    "ConstType": ConstType,
    "DTypeLike": DType | str,
    "DTYPES_DICT": dtypes.fields(),
    "least_upper_dtype": least_upper_dtype,
    "least_upper_float": least_upper_float,
    "can_lossless_cast": can_lossless_cast,
    "sum_acc_dtype": sum_acc_dtype,
    "to_dtype": to_dtype,
    "truncate": {dtype: functools.partial(truncate, dtype=dtype) for dtype in dtypes.all},
    "truncate_fp16": functools.partial(truncate, dtype=dtypes.float16),
    "truncate_bf16": functools.partial(truncate, dtype=dtypes.bfloat16),
    "_to_np_dtype": to_numpy_dtype,
    "_from_np_dtype": from_numpy_dtype,
}
_DEVICE: Names = {
    "Device": Device,
    "Buffer": Buffer,
    "BufferSpec": BufferSpec,
    "BufferOptions": BufferSpec,
    "Compiled": CompiledDevice,
    "Allocator": Allocator,
    "LRUAllocator": Allocator,
    "Compiler": Compiler,
}
_HELPERS: Names = {
    **{name: getattr(helpers, name) for name in helpers.__all__},
    "ContextVar": context_var,
    "all_int": all_int,
    "all_same": all_same,
    "argfix": argfix,
    "argsort": argsort,
    "ceildiv": ceildiv,
    "dedup": dedup,
    "flatten": flatten,
    "partition": partition,
    "round_up": round_up,
    "OSX": sys.platform == "darwin",
    "WIN": sys.platform == "win32",
    "CI": bool(os.environ.get("CI")),
    "DType": DType,
    "dtypes": dtypes,
    "ImageDType": ImageDType,
    "Metadata": Metadata,
}
_OPTIMIZER: Names = {
    "Kernel": kernel.Kernel,
    "Opt": kernel.Opt,
    "OptOps": optimizer.OptOps,
    "KernelOptError": optimizer.KernelOptError,
}
_RENDERER: Names = {"Renderer": Renderer, "ProgramSpec": ProgramSpec, "Program": ProgramSpec}
_CSTYLE: Names = {
    "MetalRenderer": MetalRenderer,
    "MetalLanguage": MetalRenderer,
    "CUDARenderer": CUDARenderer,
    "OpenCLRenderer": OpenCLRenderer,
    "ClangRenderer": clang_renderer,
    "CStyleLanguage": CStyleRenderer,
}
_JIT: Names = {"TinyJit": TinyJit, "JitError": JitError}
_REALIZE: Names = {
    "get_runner": get_runner,
    "method_cache": method_cache,
    "run_schedule": run_schedule,
    "CompiledRunner": Runner,
}
_SCHEDULE: Names = {"ScheduleItem": ScheduleItem, "create_schedule": create_schedule}
_TRACKER: Names = {"ShapeTracker": tracker.ShapeTracker, "View": view.View}
_TENSOR: Names = {"Tensor": Tensor, "Function": Function, "dtypes": dtypes, "Device": Device}

#: Below `tinygrad`: the path of a module, and what is in it.
MODULES: dict[str, Names] = {
    "": {
        "Tensor": Tensor,
        "TinyJit": TinyJit,
        "Variable": Variable,
        "dtypes": dtypes,
        "Device": Device,
        "GlobalCounters": GlobalCounters,
        "Context": Context,
        "fetch": helpers.fetch,
        "getenv": getenv,
        "UOp": UOp,
    },
    "tensor": _TENSOR,
    "lazy": {"LazyBuffer": UOp},
    "ops": {**_GRAPH, "LazyBuffer": UOp},
    "uop": _GRAPH,
    "uop.ops": _GRAPH,
    "dtype": _TYPES,
    "device": _DEVICE,
    "buffer": _DEVICE,
    "helpers": _HELPERS,
    "gradient": {"compute_gradient": gradient},
    "renderer": _RENDERER,
    "renderer.cstyle": {**_RENDERER, **_CSTYLE},
    "renderer.llvmir": {**_RENDERER, "LLVMRenderer": LLVMRenderer},
    "shape": {},
    "shape.view": {"View": view.View, "_merge_dims": view.merge_dims, "strides_for_shape": view.strides_of},
    "shape.shapetracker": {**_TRACKER, "sint": sint},
    "shape.symbolic": {"Variable": Variable, "sint": sint},
    "codegen": {"compile_kernel": compiling.compile_kernel},
    "codegen.kernel": _OPTIMIZER,
    "codegen.linearizer": {**_OPTIMIZER, "Linearizer": kernel.Kernel},
    "codegen.opt": _OPTIMIZER,
    "codegen.opt.kernel": _OPTIMIZER,
    "opt": _OPTIMIZER,
    "opt.kernel": _OPTIMIZER,
    "engine": {},
    "engine.jit": _JIT,
    "engine.realize": _REALIZE,
    "engine.schedule": _SCHEDULE,
    "features": {},
    "features.jit": _JIT,
    "jit": _JIT,
    "realize": _REALIZE,
    "scheduler": _SCHEDULE,
    "nn": {**_public(nn), "Tensor": Tensor},
    "nn.optim": _public(optim),
    "nn.state": _public(state),
    "nn.datasets": _public(datasets),
}
ROOT = "tinygrad"


def _path(name: str) -> str:
    return name.removeprefix(ROOT).removeprefix(".")


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes the modules of the table when they are imported."""

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != ROOT and not fullname.startswith(ROOT + "."):
            return None
        if _path(fullname) not in MODULES:
            near = difflib.get_close_matches(_path(fullname), MODULES, 1)
            hint = f"; did you mean {ROOT}.{near[0]}?" if near else ""
            raise ModuleNotFoundError(
                f"{fullname} is not one of the paths that are served{hint}", name=fullname
            )
        return _spec(fullname)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return types.ModuleType(spec.name, f"The names that scripts import from {spec.name}.")

    def exec_module(self, module: types.ModuleType) -> None:
        path = _path(module.__name__)
        names = dict(MODULES[path])
        names.setdefault("__all__", [name for name in names if not name.startswith("_")])
        vars(module).update(names)
        vars(module)["__getattr__"] = _missing(module.__name__)
        if path == "":  # `import tinygrad` gives the folders too: tinygrad.helpers.from_mv
            for below in MODULES:
                if below and "." not in below and below not in ("ops", "lazy", "jit", "realize"):
                    vars(module)[below] = _module(f"{ROOT}.{below}")


def _module(name: str) -> types.ModuleType:
    """A module of the table, as if it had been imported."""
    if name not in sys.modules:
        module = sys.modules[name] = importlib.util.module_from_spec(_spec(name))
        _finder.exec_module(module)
    return sys.modules[name]


def _missing(module: str) -> Any:
    def attribute(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        near = difflib.get_close_matches(name, MODULES[_path(module)], 1)
        hint = f"; did you mean {near[0]}?" if near else "; see docs/glossary.md"
        raise AttributeError(f"{module} has no {name!r} here{hint}")

    return attribute


_finder = Finder()


def _spec(name: str) -> importlib.machinery.ModuleSpec:
    return importlib.machinery.ModuleSpec(name, _finder, is_package=True)


def install() -> None:
    """From now on `tinygrad` is lazygrad in this process: its paths, its older names, its defaults."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    lazybuffer.install()
    if "JIT_NESTED" not in os.environ:
        JIT_NESTED.set_default("error")


def uninstall() -> None:
    """Undo `install`, but for what scripts hold already."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in [n for n in sys.modules if n == ROOT or n.startswith(ROOT + ".")]:
        del sys.modules[name]
    lazybuffer.uninstall()
    if "JIT_NESTED" not in os.environ:
        JIT_NESTED.set_default("")
