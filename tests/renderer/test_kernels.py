"""Some thirty kernels in every language: golden texts with fixed Opts, and CUDA's compiled by NVRTC.

A kernel is what a line of Tensor code plans; its Opts are given, so that no choice of the optimizer changes
the text. Every text is also checked for what its language must be: balanced, and of words it knows.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from lazygrad import Context, Tensor, Variable, dtypes
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.device import CompileError, Device
from lazygrad.dtype import ALL_DTYPES
from lazygrad.ir import Ops, UOp
from lazygrad.renderer import ProgramSpec, Renderer
from lazygrad.renderer.cstyle import CStyleRenderer, CUDARenderer, MetalRenderer, OpenCLRenderer, WGSLRenderer
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.runtime._cuda_compiler import CUDACompiler
from lazygrad.target import Target
from tests.helpers import needs

UPCAST, UNROLL, LOCAL, THREAD = OptOps.UPCAST, OptOps.UNROLL, OptOps.LOCAL, OptOps.THREAD
GROUP, PADTO = OptOps.GROUP, OptOps.PADTO

RENDERERS: dict[str, Renderer] = {
    "c": CStyleRenderer(),
    "llvm": LLVMRenderer(Target("CPU", vector_bytes=32, native_dtypes=frozenset(ALL_DTYPES), has_fma=True)),
    "cl": OpenCLRenderer(),
    "cuda": CUDARenderer("sm_80"),
    "metal": MetalRenderer(),
    "wgsl": WGSLRenderer(),
}


def empty(*shape: int, dtype: Any = dtypes.float) -> Tensor:
    return Tensor.empty(*shape, dtype=dtype).realize()


def symbolic() -> Tensor:
    n = Variable("n", 1, 32).bind(5)
    return empty(32)[:n] + 1


def row_and_statistic() -> Tensor:
    x = empty(8, 16)
    return (x - x.max(1, keepdim=True)).exp2()


F16, BF16, F8 = dtypes.half, dtypes.bfloat16, dtypes.fp8e4m3
I8, I16, I64, U8, U32, F64 = dtypes.char, dtypes.short, dtypes.long, dtypes.uchar, dtypes.uint, dtypes.double

#: name → (the value, Opts for a CPU, Opts for a grid)
Row = tuple[Callable[[], Tensor], list[Opt], list[Opt]]
KERNELS: dict[str, Row] = {
    "add": (lambda: empty(4, 4) + empty(4, 4), [], []),
    "add-vectors": (
        lambda: empty(64) + empty(64),
        [Opt(UPCAST, 0, 4)],
        [Opt(UPCAST, 0, 4), Opt(LOCAL, 0, 4)],
    ),
    "shifted-vectors": (
        lambda: empty(65)[1:] + empty(64),
        [Opt(UPCAST, 0, 4)],
        [Opt(UPCAST, 0, 4), Opt(LOCAL, 0, 4)],
    ),
    "add-in-pieces": (lambda: empty(4096) + 1, [Opt(THREAD, 0, 4)], [Opt(LOCAL, 0, 64)]),
    "add-with-a-tail": (lambda: empty(30) + 1, [Opt(PADTO, 0, 4), Opt(UPCAST, 0, 4)], [Opt(PADTO, 0, 4)]),
    "dot": (lambda: (empty(2, dtype=dtypes.int) * empty(2, dtype=dtypes.int)).sum(), [], []),
    "row-sums": (lambda: empty(8, 64).sum(1), [Opt(UNROLL, 0, 8)], [Opt(LOCAL, 0, 4), Opt(UNROLL, 0, 4)]),
    "row-sums-grouped": (lambda: empty(8, 64).sum(1), [Opt(UNROLL, 0, 4)], [Opt(GROUP, 0, 16)]),
    "column-sums": (lambda: empty(64, 8).sum(0), [Opt(UPCAST, 0, 8)], [Opt(LOCAL, 0, 8)]),
    "maximum-of-ints": (lambda: empty(8, 8, dtype=dtypes.int).max(1), [], []),
    "product": (lambda: empty(4, 4).prod(1), [], []),
    "matmul": (
        lambda: empty(16, 16) @ empty(16, 16),
        [Opt(UPCAST, 0, 2), Opt(UPCAST, 1, 8)],
        [Opt(UPCAST, 0, 2), Opt(UPCAST, 1, 2), Opt(LOCAL, 0, 4), Opt(LOCAL, 1, 4)],
    ),
    "softmax": (row_and_statistic, [], [Opt(LOCAL, 0, 8)]),
    "padded": (lambda: empty(6).pad(((1, 2),)) * 2, [], []),
    "padded-vectors": (lambda: empty(6).pad(((1, 1),)) * 2, [Opt(UPCAST, 0, 4)], [Opt(LOCAL, 0, 4)]),
    "flipped": (lambda: empty(4, 4).flip(1) + empty(4, 4).T, [], []),
    "gather": (lambda: empty(10)[empty(4, dtype=dtypes.int)] + 1, [], []),
    "symbolic": (symbolic, [], []),
    "select": (lambda: (empty(8) < empty(8)).where(empty(8), -1.5), [], []),
    "bools": (lambda: (empty(8) > 0) & (empty(8, dtype=dtypes.bool) != True), [], []),  # noqa: E712
    "halves": (lambda: empty(8, dtype=F16) * empty(8, dtype=F16) + 1.5, [], []),
    "bfloat16": (lambda: empty(8, dtype=BF16) + 1, [], []),
    "fp8": (lambda: empty(8, dtype=F8).float() * 2, [], []),
    "doubles": (lambda: empty(8, dtype=F64) * 0.1, [], []),
    "casts-to-int": (lambda: empty(8).cast(dtypes.int), [], []),
    "casts-of-bytes": (lambda: empty(8, dtype=U8).float() / 255, [], []),
    "bitcast": (lambda: empty(8).bitcast(U32) >> 23, [], []),
    "division-of-ints": (lambda: empty(8, dtype=dtypes.int) // 7, [], []),
    "remainder-of-ints": (lambda: empty(8, dtype=dtypes.int) % empty(8, dtype=dtypes.int), [], []),
    "shorts-wrap": (lambda: empty(8, dtype=I16) * 300, [], []),
    "longs": (lambda: empty(8, dtype=I64) + (1 << 40), [], []),
    "signed-bytes": (lambda: empty(8, dtype=I8).maximum(3), [], []),
    "exp": (lambda: empty(8).exp(), [], []),
    "sine": (lambda: empty(8).sin(), [], []),
    "root-and-reciprocal": (lambda: empty(8).sqrt().reciprocal(), [], []),
    "infinities": (lambda: (empty(8) > 0).where(float("inf"), float("nan")), [], []),
    "a-deep-sum": (lambda: functools.reduce(lambda x, n: x * x + n, range(40), empty(4)), [], []),
}  # fmt: skip
#: Types that a language has not at all.
MISSING = {"metal": {"doubles"}, "wgsl": {"doubles"}}
CASES = [
    (language, name) for language in RENDERERS for name in KERNELS if name not in MISSING.get(language, ())
]


def ast_of(name: str) -> UOp:
    """Scheduled anew each time: what is stored and what inlined depends on the processor. Opts by hand are
    for what is predicted, whatever OPTS says.
    """
    with Context(OPTS=""):
        return [item.ast for item in KERNELS[name][0]().schedule() if item.ast.op is not Ops.COPY][-1]


def program(name: str, renderer: Renderer) -> ProgramSpec:
    _, on_cpu, on_grid = KERNELS[name]
    return compile_kernel(ast_of(name), renderer, on_grid if renderer.target.grid else on_cpu)


@pytest.mark.choice
@pytest.mark.parametrize(("language", "name"), CASES, ids=["-".join(case) for case in CASES])
def test_text(golden, language, name):
    assert golden(program(name, RENDERERS[language]).src)


def test_what_a_language_lacks_is_said():
    with pytest.raises(NotImplementedError, match="float64 on a device that has none"):
        program("doubles", RENDERERS["metal"])


# ---- CUDA: NVRTC reads every text ----


def compiled(source: str, arch: str) -> str:
    """The log of the compiler; empty where it accepts the text."""
    try:
        assert CUDACompiler(arch).compile(source).startswith(b"\x7fELF")
    except CompileError as error:
        return error.log
    return ""


@needs("nvrtc")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_nvrtc_compiles_every_kernel(arch):
    renderer = CUDARenderer(arch)
    # one text of many kernels, each in a namespace of its own: a compiler run takes a third of a second
    ways = [(name, opts) for name in KERNELS for opts in (KERNELS[name][2], [], None)]
    assert (
        compiled(in_one_text(compile_kernel(ast_of(name), renderer, opts).src for name, opts in ways), arch)
        == ""
    )


def in_one_text(sources: Iterable[str]) -> str:
    """CUDA's texts of many kernels."""
    parts, lines = [], dict[str, None]()
    for number, source in enumerate(sources):
        lines.update((line, None) for line in source.splitlines() if line.startswith("#"))
        body = "\n".join(line for line in source.splitlines() if not line.startswith("#"))
        parts.append(_in_namespace(f"kernel_{number}", body))
    return "\n".join([*lines, *parts])


def _in_namespace(space: str, body: str) -> str:
    plain = body.replace('extern "C" ', "")
    return f"namespace {space} {{\n{plain}\n}}"


@needs("nvrtc")
def test_nvrtc_refuses_what_is_wrong():
    assert "undefined" in compiled("__global__ void k(float* a) { a[0] = nothing; }", "sm_80")


# ---- WGSL: wgpu reads every text ----


@needs("webgpu")
def test_wgpu_takes_every_kernel():
    """As written for any implementation, on the adapter that is here."""
    device = Device["WEBGPU"]
    for name in KERNELS.keys() - MISSING["wgsl"]:
        for opts in (KERNELS[name][2], [], None):
            spec = compile_kernel(ast_of(name), RENDERERS["wgsl"], opts)
            assert device.load(spec, device.compile(spec))


# ---- Metal and the others: balanced, and of known words ----

#: What may stand in a Metal kernel besides numbers and the names that renderers give.
METAL_WORDS = frozenset(
    re.findall(
        r"\w+",
        """kernel void device constant threadgroup const inline using namespace metal include metal_stdlib
        if else for return bool char uchar short ushort int uint long ulong half float uint3 gid lid x y z w
        threadgroup_position_in_grid thread_position_in_threadgroup threadgroup_barrier mem_flags
        mem_threadgroup simd_shuffle_xor as_type precise sqrt trunc fma INFINITY NAN""",
    )
)
#: Names that renderers give, and vectors.
OURS = re.compile(
    r"(bad|data|[glru]idx|acc|val|alu|cast|temp|other)\d+|n|[xab]|[EGr]_\w+"
    r"|(bool|u?char|u?short|u?int|u?long|half|float)[234]"
)


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in MISSING["metal"]])
def test_metal_uses_words_that_metal_has(name):
    text = program(name, RENDERERS["metal"]).src
    functions = set(re.findall(r"^(?:static |inline )+\S+ (\w+)\(", text, re.M))
    numbers = r"(?<![\w.])\d[\w.]*(?:[eE][+-]?\d+)?\w*"
    words = set(re.findall(r"[A-Za-z_]\w*", re.sub(numbers, " ", re.sub(r"/\*.*?\*/", "", text))))
    strange = {w for w in words if w not in METAL_WORDS and w not in functions and not OURS.fullmatch(w)}
    assert not strange, text


@pytest.mark.parametrize("language", ["c", "cl", "cuda", "metal", "wgsl"])
def test_texts_are_balanced(language):
    for name in KERNELS:
        if name in MISSING.get(language, ()):
            continue
        text = program(name, RENDERERS[language]).src
        stack = []
        for letter in re.sub(r"/\*.*?\*/|//.*", "", text):
            if letter in "([{":
                stack.append(letter)
            elif letter in ")]}":
                assert stack, text
                assert stack.pop() + letter in ("()", "[]", "{}"), text
        assert not stack, text
