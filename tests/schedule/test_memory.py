"""Arenas: values whose lives touch never overlap, and little is wasted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lazygrad.schedule.kernels.arena import arrange

LIVES = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(0, 2000)).map(
        lambda life: (life[0], life[0] + life[1], life[2])
    ),
    max_size=40,
)


@given(LIVES, st.sampled_from([1, 64, 256]))
def test_lives_that_touch_do_not_overlap(lives, alignment):
    offsets, size = arrange(lives, alignment)
    for a, (first, last, nbytes) in enumerate(lives):
        assert offsets[a] % alignment == 0
        assert offsets[a] >= 0
        assert offsets[a] + nbytes <= size
        for b, (other_first, other_last, other_bytes) in enumerate(lives[:a]):
            if first <= other_last and other_first <= last:
                assert offsets[a] + nbytes <= offsets[b] or offsets[b] + other_bytes <= offsets[a]


def test_a_chain_needs_two_places():
    assert arrange([(n, n + 1, 1000) for n in range(10)]) == ([0, 1024] * 5, 2048)


def test_gaps_are_joined():
    lives = [(0, 1, 64), (0, 1, 64), (0, 3, 64), (2, 3, 128)]
    assert arrange(lives) == ([0, 64, 128, 0], 192)


def test_nothing():
    assert arrange([]) == ([], 0)
