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
import types as types_module
from typing import Any

from .. import helpers, nn
from ..codegen import compile as compiling
from ..codegen import opt as optimizer
from ..config import JIT_NESTED, Context, ContextVar, getenv
from ..device import (
    Allocator,
    Buffer,
    BufferSpec,
    CompiledDevice,
    CompileError,
    Compiler,
    Device,
    GlobalCounters,
)
from ..dtype import (
    ConstType,
    DType,
    ImageDType,
    PtrDType,
    dtypes,
    least_upper_dtype,
    sum_acc_dtype,
    to_dtype,
)
from ..engine.realize import run_schedule
from ..engine.replay import Replay
from ..gradient import gradient
from ..ir import (
    AxisType,
    Ops,
    PatternMatcher,
    UOp,
    Variable,
    graph_rewrite,
    sint,
)
from ..ir.args import KernelInfo
from ..ir.ops import start_value
from ..jit import JitError, TinyJit
from ..jit.captured import Captured
from ..nn import datasets, optim, state
from ..programs.runners import get_runner, method_cache
from ..renderer import Estimates, ProgramSpec, Renderer
from ..renderer.cstyle import CStyleRenderer, CUDARenderer, MetalRenderer, OpenCLRenderer
from ..renderer.llvmir import LLVMRenderer
from ..renderer.python import PythonRenderer
from ..runtime.clang import ClangDevice
from ..runtime.cpu import CPUDevice
from ..runtime.disk import DiskDevice
from ..runtime.null import NullDevice
from ..runtime.python import PythonDevice
from ..schedule.kernels.items import ScheduleItem
from ..schedule.place.kernel_ast import Kernel as ScheduledKernel
from ..shape import tracker, view
from ..tensor import Function, Tensor
from ..tensor.trace import Metadata
from . import (
    classic_text,
    enums,
    errors,
    files,
    flags,
    graph,
    kernel,
    patched,
    patterns,
    running,
    training,
    types,
)
from . import helpers as older

Names = dict[str, Any]

# *** names that only old scripts have


def context_var(name: str, default: int | str = 0) -> ContextVar:
    """A flag of the script's own, as `ContextVar(name, default)` made it."""
    return ContextVar.all.get(name) or ContextVar(name, default, f"a flag of {sys.argv[0]}")


def clang_renderer() -> Renderer:
    """The renderer of C for this machine."""
    return Device["CLANG"].renderer


# *** the table


def _public(module: types_module.ModuleType) -> Names:
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


#: What stands in the table under a path of its own.
_BELOW_NN = ("optim", "state", "datasets")


def _public_but_below(module: types_module.ModuleType) -> Names:
    return {name: value for name, value in _public(module).items() if name not in _BELOW_NN}


def _named(*objects: Any) -> Names:
    """What is called there as it is here."""
    return {each.__name__: each for each in objects}


def _functions(module: types_module.ModuleType) -> Names:
    """What a module of compat defines, without what it imports."""
    own = _public(module).items()
    return {name: value for name, value in own if getattr(value, "__module__", None) == module.__name__}


_GRAPH: Names = {
    **_named(UOp, Ops, patterns.UPat, PatternMatcher, graph_rewrite, Variable, KernelInfo, AxisType),
    **_named(classic_text.MemBuffer, classic_text.ConstBuffer, classic_text.print_tree),
    **_named(ScheduledKernel, Estimates, Metadata, dtypes),
    **_functions(graph),
    "sint": sint,
    "python_alu": {op: functools.partial(graph.exec_alu, op) for op in graph.GroupOp.ALU},
    "identity_element": start_value,
    **{name: value for name, value in vars(enums).items() if isinstance(value, enums.Family)},
    "ConstType": ConstType,
}
_TYPES: Names = {
    **_named(dtypes, DType, PtrDType, ImageDType, least_upper_dtype, sum_acc_dtype, to_dtype),
    **_named(types.AddrSpace, types.least_upper_float, types.can_lossless_cast, types.is_dtype_supported),
    "ConstType": ConstType,
    "DTypeLike": DType | str,
    "DTYPES_DICT": types.fields(),
    "INVERSE_DTYPES_DICT": {dtype: dtype.name for dtype in types.fields().values()},
    "can_safe_cast": types.can_lossless_cast,
    "promo_lattice": types.promotions(),
    "truncate": {dtype: functools.partial(types.rounded, dtype=dtype) for dtype in dtypes.all},
    "truncate_fp16": functools.partial(types.rounded, dtype=dtypes.float16),
    "truncate_bf16": functools.partial(types.rounded, dtype=dtypes.bfloat16),
    "float_to_fp16": functools.partial(types.rounded, dtype=dtypes.float16),
    "float_to_bf16": functools.partial(types.rounded, dtype=dtypes.bfloat16),
    "_to_np_dtype": types.to_numpy_dtype,
    "_from_np_dtype": types.from_numpy_dtype,
    "_to_torch_dtype": types.to_torch_dtype,
    "_from_torch_dtype": types.from_torch_dtype,
    **_named(types.float_to_fp8, types.fp8_to_float),
}
_DEVICE: Names = {
    **_named(Buffer, BufferSpec, Allocator, Compiler, CompileError, types.is_dtype_supported),
    "Device": Device,
    "BufferOptions": BufferSpec,
    "Compiled": CompiledDevice,
    "LRUAllocator": Allocator,
}
_HELPERS: Names = {
    **ContextVar.all,
    **flags.FLAGS,
    **{name: getattr(helpers, name) for name in helpers.__all__},
    **_functions(older),
    "ContextVar": context_var,
    "OSX": sys.platform == "darwin",
    "WIN": sys.platform == "win32",
    "CI": bool(os.environ.get("CI")),
    **_named(DType, dtypes, ImageDType, Metadata),
}
_OPTIMIZER = _named(kernel.Kernel, kernel.Opt, optimizer.OptOps, optimizer.KernelOptError, AxisType)
_RENDERER: Names = {**_named(Renderer, ProgramSpec, Estimates), "Program": ProgramSpec}
_CSTYLE: Names = {
    **_named(MetalRenderer, CUDARenderer, OpenCLRenderer),
    "MetalLanguage": MetalRenderer,
    "ClangRenderer": clang_renderer,
    "CStyleLanguage": CStyleRenderer,
}
_JIT: Names = {**_named(TinyJit, JitError), "CapturedJit": Captured, "GraphRunner": Replay}
_REALIZE: Names = {
    **_named(get_runner, run_schedule),
    "method_cache": method_cache,
    "Runner": running.CompiledRunner,
    **_functions(running),
}
_SCHEDULE = _named(ScheduleItem, running.create_schedule, running.create_schedule_with_vars)
_TRACKER = _named(tracker.ShapeTracker, view.View)
_TENSOR: Names = {
    **_named(Tensor, Function, dtypes, Variable),
    "Device": Device,
    "_to_np_dtype": types.to_numpy_dtype,
    "_from_np_dtype": types.from_numpy_dtype,
}

#: Below `tinygrad`: the path of a module, and what is in it.
MODULES: dict[str, Names] = {
    "": {
        **_named(Tensor, TinyJit, Variable, dtypes, Context, helpers.fetch, getenv, UOp, Function),
        "Device": Device,
        "GlobalCounters": GlobalCounters,
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
    "runtime": {},
    "runtime.support": {},
    "runtime.support.compiler_cuda": {"PTX": flags.FLAGS["PTX"]},
    "runtime.ops_clang": _named(ClangDevice),
    "runtime.ops_cpu": _named(CPUDevice),
    "runtime.ops_disk": _named(DiskDevice),
    "runtime.ops_null": _named(NullDevice),
    "runtime.ops_python": _named(PythonDevice, PythonRenderer),
    "renderer.llvmir": {**_RENDERER, **_named(LLVMRenderer)},
    "shape": {},
    "shape.view": {
        **_named(view.View, view.merge_dims, older.get_contraction),
        "_merge_dims": view.merge_dims,
        "strides_for_shape": view.strides_of,
    },
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
    "nn": {**_public_but_below(nn), **_named(training.RMSNorm, training.Embedding, Tensor)},
    "nn.optim": {**_public(optim), **_named(training.OptimizerGroup, training.Muon)},
    "nn.state": {
        **_public(state),
        **_named(training.get_parameters, training.load_state_dict),
        **{name: getattr(files, name) for name in files.__all__},
    },
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

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types_module.ModuleType:
        return types_module.ModuleType(spec.name, f"The names that scripts import from {spec.name}.")

    def exec_module(self, module: types_module.ModuleType) -> None:
        path = _path(module.__name__)
        names = dict(MODULES[path])
        names.setdefault("__all__", [name for name in names if not name.startswith("_")])
        vars(module).update(names)
        vars(module)["__getattr__"] = _missing(module.__name__)
        if path == "":  # `import tinygrad` gives the folders too: tinygrad.helpers.from_mv
            for below in MODULES:
                if below and "." not in below and below not in ("ops", "lazy", "jit", "realize"):
                    vars(module)[below] = _module(f"{ROOT}.{below}")
        elif path == "nn":  # `nn.state` is the one of the table, with what scripts took from it
            for below in _BELOW_NN:
                vars(module)[below] = _module(f"{ROOT}.nn.{below}")


def _module(name: str) -> types_module.ModuleType:
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
    patched.install()
    errors.install()
    flags.install()
    if "JIT_NESTED" not in os.environ:
        JIT_NESTED.set_default("error")


def uninstall() -> None:
    """Undo `install`, but for what scripts hold already."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in [n for n in sys.modules if n == ROOT or n.startswith(ROOT + ".")]:
        del sys.modules[name]
    patched.uninstall()
    errors.uninstall()
    flags.uninstall()
    if "JIT_NESTED" not in os.environ:
        JIT_NESTED.set_default("")
