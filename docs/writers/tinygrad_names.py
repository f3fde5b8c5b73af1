"""docs/tinygrad_names.md: the public names that tinygrad's documentation of 0.10 and 0.11 lists, looked up.

Each is looked up twice: in lazygrad as it is, and as a script finds it that `python -m lazygrad.compat` runs.
What neither has is a row of ABSENT, with the reason.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import lazygrad
from lazygrad import helpers, nn
from lazygrad.compat import aliases
from lazygrad.compat.flags import ABSENT as ABSENT_FLAGS
from lazygrad.config import ContextVar
from lazygrad.device import GlobalCounters

MODULE = "tinygrad"


class Section(NamedTuple):
    """A page of that documentation, or a part of one.

    title   what it is about            names   as it lists them
    module  where a script finds them   path    within that module, "" for the module itself
    ours    the object of lazygrad that has them, without compat
    """

    title: str
    module: str
    path: str
    ours: Callable[[], Any]
    names: str


def _captured() -> Any:
    return lazygrad.TinyJit(lambda x: x)


def _bound() -> Any:
    return lazygrad.Variable("n", 1, 4).bind(2)


# fmt: off
SECTIONS = (
    Section("The front page", "", "", lambda: lazygrad, """
        Tensor TinyJit UOp Variable dtypes Context Device GlobalCounters fetch getenv"""),
    Section("Tensor: properties", "", "Tensor", lambda: lazygrad.Tensor, """
        shape dtype device ndim numel element_size nbytes is_floating_point size data item tolist numpy
        requires_grad grad training lazydata uop T"""),
    Section("Tensor: realizing, moving, gradients", "", "Tensor", lambda: lazygrad.Tensor, """
        schedule_with_vars schedule realize kernelize replace assign detach to to_ clone contiguous
        contiguous_backward fuse shard shard_ shard_like backward gradient train test"""),
    Section("Tensor: creation", "", "Tensor", lambda: lazygrad.Tensor, """
        empty empty_like zeros ones full arange linspace eye full_like zeros_like ones_like from_blob from_url
        manual_seed rand rand_like randn randn_like randint randperm normal uniform scaled_uniform
        glorot_uniform kaiming_uniform kaiming_normal"""),
    Section("Tensor: movement", "", "Tensor", lambda: lazygrad.Tensor, """
        view reshape expand permute flip shrink pad gather scatter scatter_reduce cat stack repeat
        repeat_interleave split chunk unfold meshgrid squeeze unsqueeze transpose flatten unflatten diag
        diagonal roll rearrange masked_select masked_fill multinomial __getitem__ __setitem__"""),
    Section("Tensor: reduction", "", "Tensor", lambda: lazygrad.Tensor, """
        sum prod max min any all isclose allclose mean var var_mean std std_mean softmax log_softmax logsumexp
        logcumsumexp argmax argmin"""),
    Section("Tensor: processing", "", "Tensor", lambda: lazygrad.Tensor, """
        avg_pool2d max_pool2d max_unpool2d conv2d conv_transpose2d dot matmul einsum cumsum cumprod cummax
        cummin triu tril interpolate sort argsort topk nonzero qr svd newton_schulz"""),
    Section("Tensor: network layers and losses", "", "Tensor", lambda: lazygrad.Tensor, """
        linear sequential layernorm batchnorm dropout one_hot scaled_dot_product_attention binary_crossentropy
        binary_crossentropy_logits sparse_categorical_crossentropy cross_entropy nll_loss"""),
    Section("Tensor: element by element", "", "Tensor", lambda: lazygrad.Tensor, """
        logical_not neg log log2 log10 log1p exp exp2 expm1 sqrt rsqrt sin cos tan asin acos atan trunc ceil
        floor round isinf isnan isfinite lerp square clamp clip sign abs reciprocal relu sigmoid logsigmoid
        hardsigmoid elu celu selu swish silu relu6 hardswish tanh sinh cosh atanh asinh acosh hardtanh erf
        gelu quick_gelu leaky_relu mish softplus softsign add sub mul div mod bitwise_xor bitwise_and
        bitwise_or
        bitwise_not lshift rshift pow maximum minimum where copysign logaddexp"""),
    Section("Tensor: casts", "", "Tensor", lambda: lazygrad.Tensor, """
        cast bitcast float half int bool bfloat16 double long short"""),
    Section("Tensor: hashes, kernels by hand", "", "Tensor", lambda: lazygrad.Tensor, """
        keccak hash custom_kernel"""),
    Section("nn", "nn", "", lambda: nn, """
        BatchNorm BatchNorm2d BatchNorm3d Conv1d Conv2d ConvTranspose1d ConvTranspose2d Linear GroupNorm
        InstanceNorm LayerNorm LayerNorm2d RMSNorm Embedding LSTMCell"""),
    Section("nn.optim", "nn.optim", "", lambda: nn.optim, """
        SGD Adam AdamW LAMB LARS Muon Optimizer OptimizerGroup"""),
    Section("nn.state", "nn.state", "", lambda: nn.state, """
        safe_load safe_save safe_load_metadata get_state_dict get_parameters load_state_dict tar_extract
        torch_load gguf_load zip_extract TensorIO"""),
    Section("nn.datasets", "nn.datasets", "", lambda: nn.datasets, "mnist cifar"),
    Section("dtypes", "", "dtypes", lambda: lazygrad.dtypes, """
        bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 fp8e4m3 fp8e5m2 float16 bfloat16 float32
        float64 half float double uchar ushort uint ulong char short int long void default_float default_int
        fp8s
        floats uints sints ints is_float is_int is_unsigned is_bool from_py as_const min max finfo fields
        imageh imagef"""),
    Section("Device", "", "Device", lambda: lazygrad.Device, """
        DEFAULT default canonicalize get_available_devices __getitem__"""),
    Section("TinyJit", "", "TinyJit", _captured, """
        captured reset jit_cache cnt input_replace free_intermediates"""),
    Section("Variable", "", "Variable", _bound, "bind unbind val vmin vmax"),
    Section("GlobalCounters", "", "GlobalCounters", lambda: GlobalCounters, """
        reset global_ops global_mem time_sum_s kernel_count mem_used"""),
    Section("helpers", "helpers", "", lambda: helpers, """
        prod argfix dedup flatten fully_flatten argsort all_same all_int make_tuple round_up ceildiv partition
        unwrap getenv temp Context ContextVar Timing Profiling colored ansistrip ansilen fetch tqdm trange
        to_mv mv_address from_mv flat_mv GlobalCounters diskcache diskcache_get diskcache_put diskcache_clear
        cpu_profile"""),
    Section("dtype", "dtype", "", lambda: importlib.import_module("lazygrad.dtype"), """
        DType PtrDType ImageDType ConstType dtypes DTypeLike least_upper_dtype least_upper_float
        sum_acc_dtype truncate to_dtype can_safe_cast"""),
)
#: Flags that its table of variables lists, or that scripts of the time set by `Context`.
FLAGS = """
    DEBUG BEAM NOOPT JIT VIZ PROFILE IMAGE FLOAT16 WINO CAPTURING TRACEMETA TC TC_OPT TC_SELECT USE_TC AMX
    TRANSCENDENTAL SPLIT_REDUCEOP NO_MEMORY_PLANNER RING ALL2ALL LRU PICKLE_BUFFERS CACHELEVEL CACHEDB
    IGNORE_BEAM_CACHE DEVECTORIZE DISABLE_COMPILER_CACHE DONT_REALIZE_EXPAND DONT_GROUP_REDUCES QUANTIZE
    VALIDATE_WITH_CPU FUSE_ARANGE FUSE_CONV_BW FUSE_OPTIM FUSE_ATTENTION RANGEIFY IGNORE_OOB TRACK_MATCH_STATS
    CORRECT_DIVMOD_FOLDING DISABLE_FAST_IDIV ALLOW_DEVICE_USAGE ALLOW_TF32 MAX_BUFFER_SIZE CPU_LLVM AMD_LLVM
    SPEC CHECK_OOB PCONTIG NOLOCALS SCACHE CCACHE USE_ATOMICS ALLREDUCE_CAST TUPLE_ORDER TRAINING JITBEAM
    EMULATE CPU_COUNT
"""
# fmt: on

#: What neither has, and why.
ABSENT = {
    "Tensor.keccak": "a hash of a tensor's bytes: `hashlib` of `tensor.data()`",
    "Tensor.hash": "a hash of a tensor's bytes: `hashlib` of `tensor.data()`",
    "nn.state.TensorIO": "a tensor is no file; `tensor.data()` gives its bytes",
    "nn.datasets.cifar": "`digits` and `mnist` are there",
    "TinyJit.input_replace": "what a jit has captured has no public parts but `jit_cache`",
    "TinyJit.free_intermediates": "memory between kernels is given back when a jit is",
    "helpers.cpu_profile": "`Profiling` and `Timing` are there",
    "EMULATE": "other devices' tensor cores: kernels for any target are rendered, `kernels(target=...)`",
    "CPU_COUNT": "`THREADS` says how many cores run a kernel",
}


def names_of(section: Section) -> list[str]:
    return section.names.split()


def _label(section: Section, name: str) -> str:
    return ".".join(part for part in (section.module, section.path, name) if part)


def _has(owner: Any, name: str) -> bool:
    try:
        getattr(owner, name)
    except (AttributeError, ImportError):
        return False
    return True


def places() -> dict[str, tuple[bool, bool]]:
    """For each name: whether lazygrad has it as it is, and whether a script has it under compat."""
    found: dict[str, tuple[bool, bool]] = {}
    plain = {(s, n): _has(s.ours(), n) for s in SECTIONS for n in names_of(s)}
    flags = set(ContextVar.all)
    aliases.install()
    try:
        for section in SECTIONS:
            module: Any = importlib.import_module(".".join(p for p in (MODULE, section.module) if p))
            owner = module if not section.path else getattr(module, section.path)
            if section.path in ("TinyJit", "Variable"):  # what one of them answers
                owner = section.ours()
            for name in names_of(section):
                found[_label(section, name)] = plain[section, name], _has(owner, name)
    finally:
        aliases.uninstall()
    for name in FLAGS.split():
        found[name] = name in flags, name in flags or name in ABSENT_FLAGS
    return found


def page() -> str:
    found = places()
    lines = [
        "# tinygrad's names",
        "",
        "Written by `python docs/generate.py names`, which looks each of them up. The names are those that",
        "the documentation of tinygrad 0.10 and 0.11 lists. Scripts that use them run unchanged under",
        "`python -m lazygrad.compat` ([compat.md](compat.md)); what is there without it, too, is in the",
        "column *in lazygrad*.",
        "",
        "| section | in lazygrad | for scripts, under compat | not there |",
        "|---|---|---|---|",
    ]
    rows = [(s.title, [(n, _label(s, n)) for n in names_of(s)]) for s in SECTIONS]
    for title, names in [*rows, ("flags", [(n, n) for n in FLAGS.split()])]:
        plain = [n for n, label in names if found[label][0]]
        compat = [n for n, label in names if not found[label][0] and found[label][1]]
        absent = [n for n, label in names if not any(found[label])]
        cells = (", ".join(each) or "–" for each in (plain, compat, absent))
        lines.append(f"| {title} | {' | '.join(cells)} |")
    lines += ["", "| not there | why |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in ABSENT.items()]
    return "\n".join(lines) + "\n"
