"""docs/pytorch_names.md: each public name of PyTorch: there, there under another name, or not there and why.

PyTorch's names are read from the library itself, ours are looked up: what the page calls "there" can be had.
What is there under another name is a row of OTHERWISE, whose right side is looked up too; of what is not
there the first pattern of REASONS that fits its name says why. Needs PyTorch.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import lazygrad
from lazygrad import nn
from lazygrad.nn import unknown


class Space(NamedTuple):
    """A namespace of PyTorch: where its names are here, and which of its names are meant."""

    ours: str
    means: Callable[[Any], bool]


def _function(member: Any) -> bool:
    return callable(member) and not inspect.isclass(member) and not isinstance(member, types.ModuleType)


SPACES: dict[str, Space] = {
    "torch": Space("functional", _function),
    "torch.Tensor": Space("Tensor", lambda member: True),
    "torch.nn.functional": Space("nn.functional", _function),
    "torch.nn": Space("nn", inspect.isclass),
    "torch.special": Space("special", _function),
    "torch.linalg": Space("linalg", _function),
    "torch.fft": Space("fft", _function),
    "torch.optim": Space("nn.optim", inspect.isclass),
    "torch.optim.lr_scheduler": Space("nn.optim", inspect.isclass),
}

#: PyTorch's name → what does it here: a path within `lazygrad`.
OTHERWISE: dict[str, dict[str, str]] = {
    "torch": {
        "compile": "jit",
        "set_printoptions": "set_printoptions",
        "tensor": "Tensor",
        "load": "load",
        "save": "nn.state.safe_save",
        "gru": "nn.GRU",
        "lstm": "nn.LSTM",
        "rnn_tanh": "nn.RNN",
        "rnn_relu": "nn.RNN",
        "gru_cell": "nn.GRUCell",
        "lstm_cell": "nn.LSTMCell",
        "rnn_tanh_cell": "nn.RNNCell",
        "rnn_relu_cell": "nn.RNNCell",
        "fill": "Tensor.full_like",
        "lu_solve": "linalg.lu_solve",
        "lu_unpack": "linalg.lu_unpack",
        "orgqr": "linalg.householder_product",
        "frobenius_norm": "Tensor.matrix_norm",
        "nuclear_norm": "Tensor.matrix_norm",
        "grid_sampler": "Tensor.grid_sample",
        "grid_sampler_2d": "Tensor.grid_sample",
        "grid_sampler_3d": "Tensor.grid_sample",
        "affine_grid_generator": "Tensor.affine_grid",
        "convolution": "Tensor.conv2d",
        "max_pool1d_with_indices": "nn.functional.max_pool1d",
        "vmap": "vmap",
        "seed": "Tensor.manual_seed",
        "native_layer_norm": "nn.functional.layer_norm",
        "native_group_norm": "nn.functional.group_norm",
        "native_batch_norm": "nn.functional.batch_norm",
        "native_channel_shuffle": "Tensor.channel_shuffle",
        "native_dropout": "Tensor.dropout",
        "native_norm": "Tensor.norm",
        "to_dlpack": "Tensor.__dlpack__",
        "eig": "linalg.eig",
        "symeig": "Tensor.eigh",
    },
    "torch.Tensor": {
        "lu_solve": "linalg.lu_solve",
        "orgqr": "linalg.householder_product",
        "eig": "linalg.eig",
        "symeig": "Tensor.eigh",
        "ipu": "Tensor.to",
        "xpu": "Tensor.to",
        "mtia": "Tensor.to",
        "resize": "Tensor.reshape",
        "resize_": "Tensor.reshape",
        "resize_as": "Tensor.reshape_as",
        "resize_as_": "Tensor.reshape_as",
        "new": "Tensor.new_empty",
    },
    "torch.nn.functional": {
        "native_channel_shuffle": "nn.functional.channel_shuffle",
        "multi_head_attention_forward": "nn.MultiheadAttention",
        "pdist": "functional.pdist",
        "upsample_bilinear": "nn.functional.upsample",
        "upsample_nearest": "nn.functional.upsample",
        **{
            f"{kind}max_pool{n}d_with_indices": f"nn.functional.{kind}max_pool{n}d"
            for kind in ("", "adaptive_")
            for n in (1, 2, 3)
        },
    },
    "torch.nn": {
        "NLLLoss2d": "nn.NLLLoss",
    },
}

_LAYOUTS = (
    r"(sparse|coalesce|indices|values|crow|ccol|col_ind|row_ind|to_dense|dense_dim|smm|addmm$|hspmm|spmm|"
)
_LAYOUTS += r"dsmm|hsmm|nested|padded_tensor)"
#: Why PyTorch's names are not there: the first row whose pattern fits.
REASONS: tuple[tuple[str, str], ...] = (
    (_LAYOUTS, "sparse and nested layouts do not exist here"),
    (
        r"(cudnn|miopen|mkldnn|fbgemm|vulkan|cudagraph)",
        "another library's kernels: kernels are generated here",
    ),
    (
        r"(quant|^q_|qscheme|int_repr|choose_qparams)",
        "PyTorch's quantized tensors: `nn.quantized` has blocks of weights instead",
    ),
    (
        r"(complex|^real$|^imag$|conj|angle|polar|cfloat|cdouble|chalf|is_neg|resolve_neg|view_as_real)",
        "no complex dtypes: complex numbers are a last axis of 2 (`fft`; `functional.real`, `conj`, ...)",
    ),
    (r"(geqrf|ormqr)", "LAPACK's packed form of Q: `Tensor.qr` gives Q itself"),
    (r"(^name$|names|rename|align|refine)", "named axes: use `rearrange` or plain numbers"),
    (r"_copy$", "PyTorch's compiler's copies of views: every result is a value of its own here"),
    (
        r"(storage|data_ptr|is_set_to|^set_$|is_contiguous|stride|layout|pin|share_memory|record_stream|is_shared|slice_inverse|"
        r"dim_order|permuted|as_strided|from_file)",
        "a lazy tensor has no strides or storage to look at",
    ),
    (
        r"(cuda|hip|ipu|xpu|mtia|hpu|xla|metal|mps|is_cpu|is_meta|maia|get_device|is_mkldnn)",
        "devices are named: `to(device)`, `x.device`",
    ),
    (
        r"(hook|retain|grad_fn|grad_dtype|is_leaf|is_inference|output_nr|register|reinforce|anomaly|inference|"
        r"is_distributed|module_load|volatile)",
        "no graph of hooks: `Tensor.gradient`, `Function`; `CHECK=nan` finds the first NaN",
    ),
    (r"autocast", "`lazygrad.autocast` is one block for all devices, and has no state by device"),
    (
        r"(sym_|parse_|import_ir|merge_type|unify_type|fork$|wait$|while_loop|torch_function|boolean_dispatch|"
        r"assert_int|classproperty|typename|get_file_path|prepare_multi|profiler|init_num|abi$|thread_safe|"
        r"^read_|^Optional$|is_storage|compiled_with|constrain|hash_tensor|as_subclass|^index$|^new$)",
        "how PyTorch itself is built",
    ),
    (
        r"(determinis|interop|flush_denormal|warn_always|default_tensor_type)",
        "settings of PyTorch's own kernels and warnings, which have nothing to set here",
    ),
    (r"batch_norm_", "the parts of batch norm that PyTorch's own gradients call"),
    (
        r"^(segment_reduce|grouped_mm)$",
        "parts of rows of different lengths: `Tensor.scatter_reduce`, `Tensor.bmm`",
    ),
    (r"^(apply_|map_|map2_)$", "Python by element: write tensor operations, or `vmap` a function"),
    (
        r"[lL]inear_?[cC]ross_?[eE]ntropy",
        "`cross_entropy` of `linear`: kernels are fused as they are planned",
    ),
    (r"conv_tbc", "`conv1d` of a transposed tensor"),
    (r"norm_except_dim", "a part of weight normalization: `Tensor.norm` along the other axes"),
    (r"^CrossMapLRN2d$", "the older form of `LocalResponseNorm`"),
    (r"feature_dropout", "`Tensor.dropout2d` and `Tensor.feature_alpha_dropout`"),
    (r"^SparseAdam$", "sparse gradients do not exist here"),
    (
        r"^Uninitialized",
        "what stands in PyTorch for weights that its Lazy layers do not have yet; those layers are here",
    ),
    (r"(Base|Container|Options)$", "bases of PyTorch's own layers"),
    (
        r"lobpcg",
        "iterates on a few eigenpairs of a large matrix: `eigh` finds all, `svd_lowrank` the greatest",
    ),
    (r"scaled_(grouped_)?mm", "products of scaled fp8: `nn.quantized` multiplies with blocks"),
    (r"_$", "in place: `x.assign(...)`, operators such as `+=`, or `x[...] =`"),
)
NOT_WRITTEN = "not written yet"


def found_at(path: str) -> Any:
    """What a path within lazygrad leads to; AttributeError where it leads nowhere."""
    found: Any = lazygrad
    for name in path.split("."):
        found = getattr(found, name)
    return found


class Row(NamedTuple):
    """A name of PyTorch; `ours` where it is here, or `why` not."""

    name: str
    ours: str
    why: str


def is_public(name: str, member: Any, space: Space) -> bool:
    return not name.startswith("_") and space.means(member)


def rows(theirs: str) -> Iterator[Row]:
    """A row for each public name of a namespace of PyTorch."""
    import torch

    space = SPACES[theirs]
    module: Any = torch
    for part in theirs.split(".")[1:]:
        module = getattr(module, part)
    own = (
        getattr(module, "__all__", None)
        if theirs not in ("torch", "torch.Tensor", "torch.nn.functional")
        else None
    )
    for name in sorted(own or dir(module), key=str.lower):
        member = inspect.getattr_static(module, name) if theirs == "torch.Tensor" else getattr(module, name)
        if is_public(name, member, space) and not _is_from_elsewhere(name, member, theirs):
            yield _row(theirs, name)


def _is_from_elsewhere(name: str, member: Any, theirs: str) -> bool:
    """What a module of PyTorch only imports: Python's types and functions."""
    home = getattr(member, "__module__", None) or ""
    if theirs == "torch.nn.functional" and name in ("Optional", "Callable"):
        return True
    return home.partition(".")[0] in (
        "typing",
        "collections",
        "functools",
        "bisect",
        "math",
        "typing_extensions",
    )


def _row(theirs: str, name: str) -> Row:
    path = f"{SPACES[theirs].ours}.{name}"
    try:
        found_at(path)
        return Row(name, path, "")
    except (AttributeError, NotImplementedError):
        pass
    other = OTHERWISE.get(theirs, {}).get(name)
    if other is not None:
        return Row(name, other, "")
    if theirs == "torch.nn" and name in unknown.INSTEAD:
        return Row(name, "", unknown.INSTEAD[name])
    return Row(name, "", next((why for pattern, why in REASONS if re.search(pattern, name)), NOT_WRITTEN))


def page() -> str:
    import torch

    release = ".".join(torch.__version__.split(".")[:2])
    lines = [
        "# PyTorch's names",
        "",
        "Written by `python docs/generate.py names`, which looks each of them up: what is there, what",
        f"is there under another name, what is not and why. Of PyTorch {release}; our names are within",
        "`lazygrad`: `linalg` is `from lazygrad import linalg`.",
        "",
        "| namespace | here | names | there | under another name | not there |",
        "|---|---|---|---|---|---|",
    ]
    of = {theirs: list(rows(theirs)) for theirs in SPACES}
    for theirs, found in of.items():
        ours = SPACES[theirs].ours
        same = [row for row in found if row.ours == f"{ours}.{row.name}"]
        absent = [row for row in found if not row.ours]
        renamed = len(found) - len(same) - len(absent)
        lines.append(f"| `{theirs}` | `{ours}` | {len(found)} | {len(same)} | {renamed} | {len(absent)} |")
    for theirs, found in of.items():
        ours = SPACES[theirs].ours
        same = [row.name for row in found if row.ours == f"{ours}.{row.name}"]
        renamed_rows = [row for row in found if row.ours and row.ours != f"{ours}.{row.name}"]
        lines += ["", f"## {theirs}", "", f"There, as `{ours}.…`: {', '.join(same)}."]
        if renamed_rows:
            by_ours: dict[str, list[str]] = {}
            for row in renamed_rows:
                by_ours.setdefault(row.ours, []).append(row.name)
            lines += ["", "| there under another name | here |", "|---|---|"]
            lines += [f"| {', '.join(names)} | `{path}` |" for path, names in by_ours.items()]
        reasons: dict[str, list[str]] = {}
        for row in found:
            if row.why:
                reasons.setdefault(row.why, []).append(row.name)
        if reasons:
            order = [why for why in reasons if why != NOT_WRITTEN] + [NOT_WRITTEN] * (NOT_WRITTEN in reasons)
            lines += ["", "| not there | why |", "|---|---|"]
            lines += [f"| {', '.join(reasons[why])} | {why} |" for why in order]
    return "\n".join(lines) + "\n"


assert nn  # the namespaces that paths lead through are imported
