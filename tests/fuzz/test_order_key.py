"""Equal order keys give equal bits: random kernels under random legal Opts, on numbers whose sums round.

Half of the kernels have long axes, so that sums are nested. An example is one kernel and four lists of Opts.
"""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt
from lazygrad.dtype import dtypes
from lazygrad.ir.ops import Ops
from tests.codegen.kernels import buffers_of, left_by, load, opened, plain, reduce, sink, store
from tests.codegen.programs import Programs
from tests.codegen.test_random_opts import random_opts
from tests.tuning.keys import key_of

from .harness import fuzzed


class LongPrograms(Programs):
    """Kernels of some axes that are longer than a block of a nested sum."""

    SIZES = (1, 3, 8, 16, 20, 40)


def sums(rng):
    """Sums of one or two axes of three, of a value, a square or a product of two inputs."""
    shape = [rng.choice((1, 3, 4, 8, 16, 36)) for _ in range(3)]
    x, y = load(1, plain(*shape)), load(2, plain(*shape))
    value = rng.choice((x, x * x, x * y, x + y))
    axes = rng.choice(((0,), (1,), (2,), (0, 2), (1, 2)))
    return sink(store(0, reduce(value, Ops.ADD, *axes)))


def drawn(seed):
    rng = random.Random(seed)
    if rng.random() < 0.5:
        return sums(rng)
    return rng.choice((Programs, LongPrograms))(seed, dtypes.float).kernel()


def contents_of(ast, seed):
    """Normal numbers for each float buffer; few whole ones elsewhere, as they may be indices."""
    rng = np.random.default_rng(seed)
    found = []
    for buffer in buffers_of(ast):
        real = dtypes.is_float(buffer.dtype.base)
        size = buffer.dtype.size
        numbers = rng.standard_normal(size).astype(np.float32) if real else rng.integers(0, 3, size)
        found.append(numbers.tolist())
    return found


def bits_of(ast, contents, opts):
    found = left_by(ast, "CPU", contents, opts=opts)
    return [np.array(values, np.float64).tobytes() for values in found]


def keys_and_bits(ast, seed, lists: int) -> list[tuple[str, list[bytes], tuple[Opt, ...]]]:
    """The key, the results and the Opts: of the plain loops, the heuristic's choice, and random lists."""
    renderer, rng = opened("CPU").renderer, random.Random(seed)
    contents, found = contents_of(ast, seed), {}
    for opts in [(), None, *(random_opts(ast, renderer.target, rng) for _ in range(lists))]:
        spec = compile_kernel(ast, renderer, opts)
        applied = tuple(spec.applied_opts)
        if applied not in found:
            found[applied] = key_of(ast, spec), bits_of(ast, contents, applied), applied
    return list(found.values())


@fuzzed(quick=8, sweep=2000, share=250)
@given(st.integers(0, 2**32 - 1))
def test_equal_keys_are_equal_bits(seed):
    ast = drawn(seed)
    if sum(buffer.dtype.size for buffer in buffers_of(ast)) > 20_000:
        return
    bits_of_key = {}
    for key, bits, opts in keys_and_bits(ast, seed, lists=2):
        first, others = bits_of_key.setdefault(key, (bits, opts))
        assert bits == first, f"{list(opts)} and {list(others)} have the key {key}"


def test_a_transposed_axis_that_shares_a_sum_is_walked_in_no_blocks():
    assert keys_and_bits(drawn(3230), 3230, lists=0)


def test_a_choice_of_integers_in_memory_hides_no_sum():
    """The product with a value that they leave out, 0, has the key of its other factor all the same."""
    bits_of_key = {}
    for key, bits, _ in keys_and_bits(drawn(133941), 133941, lists=2):
        assert bits_of_key.setdefault(key, bits) == bits


def test_some_keys_are_equal_and_where_they_differ_some_bits_do():
    same = differ = 0
    for seed in range(4):
        (key, bits, _), *others = keys_and_bits(sums(random.Random(seed)), seed, lists=3)
        same += sum(other == key for other, _, _ in others)
        differ += sum(other != key and other_bits != bits for other, other_bits, _ in others)
    assert same
    assert differ
