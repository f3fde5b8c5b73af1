"""What is compiled for ARM is executed under an emulator: every kernel to the bit as the interpreter.

The op table on every type and hand-made programs are in test_exact.py and test_programs.py, random kernels
under random Opts in tests/codegen; a share of the suites of operations runs on it too (tests/conftest.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from lazygrad import Tensor, dtypes, nn
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.dtype import ALL_DTYPES, DType
from lazygrad.ir import Ops, UOp
from lazygrad.renderer import ProgramSpec, Renderer
from lazygrad.renderer.cstyle import FLAGS, CStyleRenderer
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.target import PROCESSORS
from tests import aarch64
from tests.codegen.kernels import buffers_of, in_memory, load, plain, sink, store
from tests.helpers import needs, slow_but_for

from .support import HOST, add_program, run_on_arm
from .test_exact import edges
from .test_gpu_runs import contents, interpreted
from .test_kernels import KERNELS, ast_of

pytestmark = needs("aarch64")

ARM = LLVMRenderer(aarch64.arm_target())


Arrays = list[np.ndarray[Any, Any]]


class Kernel(NamedTuple):
    """A program, and the types of its arguments: the program may know of some only the bits."""

    spec: ProgramSpec
    types: list[DType]


def kernel(ast: UOp, opts: list[Opt] | None, renderer: Renderer = ARM) -> Kernel:
    return Kernel(compile_kernel(ast, renderer, opts), [node.dtype.base for node in buffers_of(ast)])


def small(kernel: Kernel) -> Arrays:
    """Memory for each argument: outputs zero, inputs random; integers are small, so that they index."""
    found = contents(kernel.spec)
    for number, (dtype, array) in enumerate(zip(kernel.types, found, strict=True)):
        if dtype.fmt is None and number not in kernel.spec.outs:
            array[:] = in_memory(np.random.default_rng(number).integers(-4, 5, array.size).tolist(), dtype)
    return found


def seams(kernel: Kernel) -> Arrays:
    """The same; inputs begin with the values at the seams of their type, or have any bits."""
    found = contents(kernel.spec)
    for number, (dtype, array) in enumerate(zip(kernel.types, found, strict=True)):
        if number in kernel.spec.outs:
            continue
        if dtype.fmt is None:
            array[:] = np.random.default_rng(number).integers(0, 1 << 8 * dtype.itemsize, array.size)
        else:
            first = np.array(edges(dtype), array.dtype)[: array.size]
            array[: first.size] = first
    return found


def differences(kernel: Kernel, library: Path, fill: Callable[[Kernel], Arrays]) -> str:
    """What a kernel leaves in memory beside what the interpreter leaves there; "" if it is the same.

    Which of the NaNs a result is, is not said.
    """
    spec, arrays = kernel.spec, fill(kernel)
    values = tuple(5 for _ in spec.vars)
    expected = interpreted(spec, arrays, values)
    views = [memoryview(array) for array in arrays]
    entry = f"{spec.function_name}_entry"
    aarch64.emulator().call(library, entry, views, range(len(views)), values, spec.thread_chunks)
    for dtype, array, raw in zip(kernel.types, arrays, expected, strict=True):
        wanted = np.frombuffer(raw, array.dtype)
        differ = ~(_nans(array, dtype) & _nans(wanted, dtype)) & (_bits(array) != _bits(wanted))
        if differ.any():
            where = np.nonzero(differ)[0][:8]
            return f"{spec.function_name} at {where}: {array[where]}, not {wanted[where]}\n{spec.src}"
    return ""


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.view(f"uint{8 * array.itemsize}")


def _nans(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Where the elements are NaN, of types too that numpy has not."""
    if array.dtype.kind == "f":
        return np.isnan(array)
    if dtype is dtypes.bfloat16:
        return (array & 0x7FFF) > 0x7F80
    if dtypes.is_float(dtype):
        return (array & 0x7F) > (0x7E if dtype is dtypes.fp8e4m3 else 0x7C)
    return np.zeros(array.shape, bool)


def wrong(kernels: Iterable[Kernel], fill: Callable[[Kernel], Arrays] = seams) -> str:
    """The differences of kernels that LLVM compiles."""
    emulator, compiler = aarch64.emulator(), aarch64.cross_compiler()
    libraries = ((each, emulator.library(compiler.compile(each.spec.src))) for each in kernels)
    return "\n".join(filter(None, (differences(each, library, fill) for each, library in libraries)))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_do_what_their_programs_mean(name: str) -> None:
    lists = (KERNELS[name][1], [], None)
    assert not wrong((kernel(ast_of(name), opts) for opts in lists), small)


def test_c_text_does_what_its_programs_mean() -> None:
    """All kernels in one library: a compiler takes longest to begin."""
    renderer = CStyleRenderer(replace(HOST, vector_bytes=16))
    kernels = []
    for number, name in enumerate(KERNELS):
        made = kernel(ast_of(name), KERNELS[name][1], renderer)
        spec, named = made.spec, f"k{number}_{made.spec.function_name}"
        text = re.sub(rf"\b{spec.function_name}(?=\b|_entry\b)", named, spec.src)
        kernels.append(Kernel(replace(spec, name=named, src=text), made.types))
    flags = ("-O1", *FLAGS, f"-march={PROCESSORS['aarch64'].march}")
    library = aarch64.emulator().library_of_c([each.spec.src for each in kernels], flags)
    found = (differences(each, library, small) for each in kernels)
    assert not "\n".join(filter(None, found))


# ---- types ----


def value_of_each(dtype: DType, size: int = 64) -> UOp:
    """x cast to every type, and what arithmetic gives, each in a buffer of its own."""
    first = len(ALL_DTYPES) + 6
    x, y = (load(first + n, plain(size), dtype) for n in range(2))
    values = [x.cast(other) for other in ALL_DTYPES]
    values += [x.alu(op, y) for op in (Ops.ADD, Ops.MUL, Ops.MAX, Ops.CMPLT, Ops.CMPNE)]
    values.append(x.ne(y).where(x, y))
    return sink(*(store(n, value) for n, value in enumerate(values)))


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=lambda dtype: dtype.name)
def test_every_type(dtype: DType) -> None:
    ast = value_of_each(dtype)
    assert not wrong(kernel(ast, opts) for opts in ([], [Opt(OptOps.UPCAST, 0, 16)]))


FUNCTIONS = """exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh
atanh sqrt rsqrt reciprocal sigmoid erf erfinv lgamma digamma softplus gelu floor ceil round trunc square abs
sign"""


@pytest.mark.parametrize("dtype", slow_but_for(["float16", "bfloat16", "float32", "float64"], "float32"))
def test_functions_are_the_same_everywhere(dtype: str) -> None:
    """They are made of arithmetic: no library of mathematics is asked."""
    kernels = []
    for name in FUNCTIONS.split():
        value = getattr(Tensor.empty(96, dtype=dtype).realize(), name)()
        kernels.append(kernel(value.schedule()[-1].ast, None))
        called = re.findall(r"^declare .*@([\w.]+)\(", kernels[-1].spec.src, re.M)
        assert all(function.startswith("llvm.") for function in called)
    assert not wrong(kernels)


# ---- products ----


ARMS = [name for name, row in PROCESSORS.items() if row.triple.startswith("aarch64")]


@pytest.mark.parametrize("size", [(32, 32, 32), (17, 9, 33), (1, 64, 40)], ids=["square", "odd", "row"])
@pytest.mark.parametrize("processor", slow_but_for(ARMS, "aarch64"))
def test_products(size: tuple[int, int, int], processor: str) -> None:
    """As each processor has its plan for them."""
    m, k, n = size
    renderer = LLVMRenderer(aarch64.arm_target(processor))
    kernels: list[Kernel] = []
    for dtype in (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int8, dtypes.int32):
        a, b = (Tensor.empty(*shape, dtype=dtype).realize() for shape in ((m, k), (k, n)))
        kernels += [kernel(item.ast, None, renderer) for item in (a @ b).schedule()]
    assert not wrong(kernels, small)


# ---- tensors ----


@pytest.fixture
def device() -> Iterator[str]:
    with aarch64.registered() as name:
        yield name


def numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return Tensor.scaled_dot_product_attention(q, k, v, is_causal=True)


VALUES: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "softmax": (lambda x: x.softmax(1), [(7, 130)]),
    "layernorm": (lambda x: x.layernorm(), [(7, 130)]),
    "matmul": (lambda a, b: a @ b, [(130, 70), (70, 90)]),
    "convolution": (lambda x, w: x.conv2d(w, padding=1), [(2, 3, 15, 15), (8, 3, 3, 3)]),
    "attention": (attention, [(1, 2, 40, 16)] * 3),
    "sums": (lambda x: x.sum(0), [(1000, 7)]),
    "argmax": (lambda x: x.argmax(1), [(7, 130)]),
    "sort": (lambda x: x.sort(1)[0], [(3, 130)]),
    "inverse": (lambda x: (x + 8 * Tensor.eye(8, device=x.device)).inverse(), [(3, 8, 8)]),
    "cumsum": (lambda x: x.cumsum(1), [(4, 600)]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_as_on_this_processor(name: str, device: str) -> None:
    value, shapes = VALUES[name]
    arrays = [numbers(*shape, seed=n) for n, shape in enumerate(shapes)]
    found, expected = (value(*(Tensor(a, device=each) for a in arrays)) for each in (device, "CPU"))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-5, atol=2e-5)


def test_a_network_learns(device: str) -> None:
    """The same numbers after five steps."""
    losses = {}
    for each in (device, "CPU"):
        layers = [Tensor(numbers(*s, seed=n), device=each, requires_grad=True) for n, s in enumerate(SIZES)]
        x, y = Tensor(numbers(16, 12, seed=5), device=each), Tensor([n % 4 for n in range(16)], device=each)
        optimizer = nn.optim.Adam(layers, lr=0.01)
        losses[each] = []
        for _ in range(5):
            loss = ((x @ layers[0]).relu() @ layers[1]).cross_entropy(y)
            optimizer.zero_grad()
            loss.backward()
            with Tensor.train():
                optimizer.step()
            losses[each].append(loss.item())
    np.testing.assert_allclose(losses[device], losses["CPU"], rtol=1e-4)
    assert losses[device][-1] < losses[device][0]


SIZES = [(12, 32), (32, 4)]


def test_a_stray_access_ends_the_emulator_alone() -> None:
    """And the next kernel runs in another."""
    text = LLVMRenderer(aarch64.arm_target()).render("far", add_program(4096))
    small, large = numbers(16), numbers(1 << 20)
    emulator = aarch64.emulator()
    library = emulator.library(aarch64.cross_compiler().compile(text.replace("4096", str(1 << 20))))
    with pytest.raises(AssertionError, match="far_entry ended the emulator"):
        emulator.call(library, "far_entry", [memoryview(a) for a in (large, small, small)], [0])
    run_on_arm(ARM.render("near", add_program(16)), "near", [small, small.copy(), small.copy()])
