"""The small functions of older scripts."""

from __future__ import annotations

import pytest

from lazygrad.compat import helpers as h


def test_sequences():
    assert (h.make_tuple(2, 3), h.make_tuple([1, 2], 3)) == ((2, 2, 2), (1, 2))
    assert (h.fully_flatten([1, [2, (3, [])]]), h.get_shape([[1, 2], [3, 4]])) == ([1, 2, 3], (2, 2))
    assert h.merge_dicts([{"a": 1}, {"b": 2}, {"a": 1}]) == {"a": 1, "b": 2}
    assert h.get_child({"a": [3, 4]}, "a.1") == 4
    assert (h.get_shape([]), h.get_shape(3), h.unwrap(0)) == ((0,), (), 0)


def test_sequences_that_are_refused():
    with pytest.raises(AssertionError, match="'a' is both 1 and 2"):
        h.merge_dicts([{"a": 1}, {"a": 2}])
    with pytest.raises(ValueError, match="inhomogeneous shape"):
        h.get_shape([[1], [1, 2]])
    with pytest.raises(AssertionError, match="unwrap of None"):
        h.unwrap(None)


@pytest.mark.parametrize(
    ("old", "new", "groups"),
    [
        ((2, 3, 4), (6, 4), [[0, 1], [2]]),
        ((2, 3, 1), (6,), [[0, 1, 2]]),
        ((2, 3), (2, 1, 3), [[0], [], [1]]),
        ((6,), (2, 3), None),
        ((2, 3), (3, 2), None),
    ],
)
def test_contraction(old, new, groups):
    assert h.get_contraction(old, new) == groups


def test_numbers():
    assert (h.cdiv(-7, 2), h.cmod(-7, 2), h.cdiv(7, 0), h.ceildiv(7, 2)) == (-3, -1, 0, 4)
    assert (h.round_up(5, 4), h.round_down(5, 4), h.polyN(2.0, [1.0, 2.0, 3.0])) == (8, 4, 11.0)
    assert (h.data64(0x1_0000_0002), h.data64_le(0x1_0000_0002)) == ((1, 2), (2, 1))
    assert (h.getbits(0b11010, 1, 3), h.i2u(8, -1)) == (0b101, 255)


def test_text():
    assert (h.strip_parens("(a+b)"), h.strip_parens("(a)+(b)")) == ("a+b", "(a)+(b)")
    assert (h.ansilen("\x1b[31mred\x1b[0m"), h.ansistrip("\x1b[31mred\x1b[0m")) == (3, "red")
    assert (h.time_to_str(0.5), h.time_to_str(2e-6, 1)) == ("  500.00ms", "2.00us")
    assert (h.size_to_str(512), h.size_to_str(3 << 20)) == ("512 B", "3.00 MB")
    assert (h.pluralize("kernel", 1), h.pluralize("kernel", 2)) == ("1 kernel", "2 kernels")
    assert h.word_wrap("abcde\nf", 2) == "ab\ncd\ne\nf"


def test_a_result_that_is_kept(tmp_path):
    from lazygrad.config import Context

    calls = []

    @h.diskcache
    def squared(x: int) -> int:
        calls.append(x)
        return x * x

    with Context(CACHEDB=str(tmp_path / "cache.db")):
        assert (squared(3), squared(3), squared(4)) == (9, 9, 16)
    assert calls == [3, 4]


def test_time():
    ran = []
    assert h.cpu_time_execution(lambda: ran.append(1), enable=False) is None
    assert h.cpu_time_execution(lambda: ran.append(2), enable=True) >= 0
    assert ran == [1, 2]
