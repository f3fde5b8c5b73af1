"""Movement and padding by wrong shapes and axes."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from tests.tensor.wrong import LINE, M, Row, check, ids

#: Twice as long as what can be counted in 64 bits, squared or repeated.
FAR, ONE = 1 << 40, Tensor.ones(1, 1).realize()
FULL = Tensor.zeros(1 << 62)

ROWS: list[Row] = [
    # more elements than can be counted
    (
        "expand",
        lambda: ONE.expand(FAR, FAR),
        ValueError,
        f"at most 2**63 - 1 elements, not those of shape ({FAR}, {FAR})",
    ),
    (
        "broadcast_to",
        lambda: ONE.broadcast_to(FAR, FAR),
        ValueError,
        f"2**63 - 1 elements, not those of shape ({FAR}, {FAR})",
    ),
    ("pad", lambda: ONE.pad(((0, FAR), (0, FAR))), ValueError, f"not those of shape ({FAR + 1}, {FAR + 1})"),
    ("repeat", lambda: FULL.repeat(2), ValueError, f"not those of shape (2, {1 << 62})"),
    ("tile", lambda: FULL.tile(4), ValueError, f"not those of shape (4, {1 << 62})"),
    (
        "broadcast_to",
        lambda: M.broadcast_to(3),
        ValueError,
        "cannot broadcast (2, 3) to (3,): from the last axis on, sizes must be equal",
    ),
    ("chunk", lambda: LINE.chunk(0), ValueError, "chunk needs a positive number of chunks, not 0"),
    (
        "chunk",
        lambda: LINE.chunk(2, 3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "diagonal",
        lambda: LINE.diagonal(),
        IndexError,
        "axis 1 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("diagonal", lambda: M.diagonal(0, 1, 1), ValueError, "diagonal needs two different axes, not 1 and 1"),
    (
        "diagonal",
        lambda: M.diagonal(0, 0, 3),
        IndexError,
        "axis 3 is out of range for shape (2, 3): its axes are from -2 to 1",
    ),
    (
        "expand",
        lambda: M.expand(3, 3),
        ValueError,
        "cannot broadcast (2, 3) to (3, 3): from the last axis on, sizes must be equal",
    ),
    (
        "expand",
        lambda: M.expand(3),
        ValueError,
        "cannot broadcast (2, 3) to (3,): from the last axis on, sizes must be equal",
    ),
    (
        "expand",
        lambda: LINE.expand(-1, 3),
        ValueError,
        "cannot expand (1, 3) to (-1, 3): size -1 is negative",
    ),
    ("expand", lambda: LINE.expand("a"), TypeError, "a size must be an integer or a Variable, not 'a'"),
    ("expand_as", lambda: M.expand_as((2, 3)), TypeError, "expand_as: other must be a Tensor, not (2, 3)"),
    (
        "expand_as",
        lambda: M.expand_as(LINE),
        ValueError,
        "cannot broadcast (2, 3) to (3,): from the last axis on, sizes must be equal",
    ),
    ("flatten", lambda: M.flatten(1, 0), ValueError, "flatten needs start_dim <= end_dim, not 1 and 0"),
    (
        "flatten",
        lambda: LINE.flatten(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "flip",
        lambda: M.flip(2),
        IndexError,
        "axis 2 is out of range for shape (2, 3): its axes are from -2 to 1",
    ),
    ("flip", lambda: M.flip(0, 0), ValueError, "axes (0, 0) name an axis of shape (2, 3) twice"),
    (
        "moveaxis",
        lambda: M.moveaxis(0, 4),
        IndexError,
        "axis 4 is out of range for shape (2, 3): its axes are from -2 to 1",
    ),
    (
        "moveaxis",
        lambda: M.moveaxis((0, 1), (0, 0)),
        ValueError,
        "axes (0, 0) name an axis of shape (2, 3) twice",
    ),
    (
        "movedim",
        lambda: M.movedim((0, 1), 0),
        ValueError,
        "movedim needs as many sources as destinations, not (0, 1) and 0",
    ),
    (
        "narrow",
        lambda: LINE.narrow(0, -5, 1),
        ValueError,
        "narrow to 1 elements from -5 on: axis 0 has size 3",
    ),
    (
        "narrow",
        lambda: LINE.narrow(0, 0, -1),
        ValueError,
        "narrow to -1 elements from 0 on: axis 0 has size 3",
    ),
    ("narrow", lambda: LINE.narrow(0, 2, 5), ValueError, "narrow to 5 elements from 2 on: axis 0 has size 3"),
    (
        "pad",
        lambda: M.pad((1,)),
        ValueError,
        "pad needs pairs (before, after) from the last axis on, at most 2 for shape",
    ),
    (
        "pad",
        lambda: M.pad((1, 1, 1, 1, 1, 1)),
        ValueError,
        "pad needs pairs (before, after) from the last axis on, at most 2 for shape",
    ),
    (
        "pad",
        lambda: M.pad((1, 1), mode="refect"),
        ValueError,
        "pad's mode must be constant, reflect, replicate or circular, not 'refect'",
    ),
    ("pad", lambda: M.pad((1, 1), value="a"), TypeError, "pad: value must be a number, not 'a'"),
    ("pad", lambda: M.pad("a"), TypeError, "pad takes amounts (before, after, ...), not 'a'"),
    (
        "pad",
        lambda: M.pad((4, 4), mode="reflect"),
        ValueError,
        "pad by reflect of axis 1 with size 3 takes at most 2, not (4, 4)",
    ),
    ("pad", lambda: M.pad((-4, 0)), ValueError, "pad by (-4, 0) takes more than axis 1 of size 3 has"),
    (
        "pad",
        lambda: M.pad(((1, 1), (1,))),
        ValueError,
        "pad needs (before, after) for each axis of (2, 3), not ((1, 1), (1,))",
    ),
    (
        "permute",
        lambda: M.permute(0),
        ValueError,
        "cannot permute (2, 3) by (0,): name each axis of (0, 1) once",
    ),
    (
        "permute",
        lambda: M.permute(0, 0),
        ValueError,
        "cannot permute (2, 3) by (0, 0): name each axis of (0, 1) once",
    ),
    (
        "permute",
        lambda: M.permute(0, 2),
        IndexError,
        "axis 2 is out of range for shape (2, 3): its axes are from -2 to 1",
    ),
    ("rearrange", lambda: M.rearrange("a b"), ValueError, "rearrange 'a b' needs '->'"),
    (
        "rearrange",
        lambda: M.rearrange("a -> a"),
        ValueError,
        "rearrange 'a -> a' does not name the axes of shape (2, 3)",
    ),
    (
        "rearrange",
        lambda: M.rearrange("a b -> a c"),
        ValueError,
        "rearrange 'a b -> a c': both sides name the same axes, each once",
    ),
    (
        "rearrange",
        lambda: M.rearrange("(a b) c -> a b c", a=3),
        ValueError,
        "rearrange '(a b) c -> a b c': an axis of size 2 is not split by 3",
    ),
    (
        "rearrange",
        lambda: M.rearrange("a b -> b a", d=3),
        ValueError,
        "rearrange 'a b -> b a' has no axis 'd'",
    ),
    (
        "rearrange",
        lambda: M.rearrange("a (b -> b a"),
        ValueError,
        "rearrange 'a (b -> b a': a parenthesis is not closed",
    ),
    ("repeat", lambda: M.repeat(2), ValueError, "repeat needs a number for each axis of (2, 3), not (2,)"),
    ("repeat", lambda: M.repeat("a", 1), TypeError, "a size must be an integer or a Variable, not 'a'"),
    (
        "repeat_interleave",
        lambda: LINE.repeat_interleave(Tensor([1, 2])),
        ValueError,
        "repeat_interleave along axis 0 of shape (3,) needs a number that is not",
    ),
    ("repeat_interleave", lambda: LINE.repeat_interleave("a"), TypeError, "cannot make a Tensor from 'a'"),
    ("reshape", lambda: LINE.reshape(2, 2), ValueError, "cannot reshape (3,) into (2, 2): 3 elements into 4"),
    (
        "reshape",
        lambda: LINE.reshape(-1, -1),
        ValueError,
        "cannot reshape (3,) into (-1, -1): only one size can be -1",
    ),
    ("reshape", lambda: LINE.reshape("a"), TypeError, "a size must be an integer or a Variable, not 'a'"),
    ("reshape", lambda: LINE.reshape(-2), ValueError, "cannot reshape (3,) to (-2,): size -2 is negative"),
    ("reshape", lambda: LINE.reshape(1.5), TypeError, "a size must be an integer or a Variable, not 1.5"),
    ("reshape_as", lambda: LINE.reshape_as(3), TypeError, "reshape_as: other must be a Tensor, not 3"),
    (
        "reshape_as",
        lambda: LINE.reshape_as(M),
        ValueError,
        "cannot reshape (3,) into (2, 3): 3 elements into 6",
    ),
    ("roll", lambda: M.roll((1, 2), 0), ValueError, "roll needs a shift for each axis, not 2 for 1"),
    (
        "roll",
        lambda: M.roll(1, 2),
        IndexError,
        "axis 2 is out of range for shape (2, 3): its axes are from -2 to 1",
    ),
    ("roll", lambda: M.roll(0.5), TypeError, "roll: shifts must be an int or a sequence of ints, not 0.5"),
    ("roll", lambda: M.roll((1, 2)), ValueError, "roll by several shifts needs the axes they are for"),
    (
        "shrink",
        lambda: M.shrink([(0, 1)]),
        ValueError,
        "shrink needs (begin, end) for each axis of (2, 3), not ((0, 1),)",
    ),
    (
        "shrink",
        lambda: M.shrink([(0, 3), (0, 1)]),
        ValueError,
        "cannot shrink (2, 3) to ((0, 3), (0, 1)): axis 0 needs 0 <= 0 <= 3 <= 2",
    ),
    (
        "shrink",
        lambda: M.shrink("a"),
        TypeError,
        "shrink: arg must be a sequence of pairs (begin, end), not 'a'",
    ),
    (
        "shrink",
        lambda: M.shrink([(0, 1), 3]),
        ValueError,
        "shrink needs (begin, end) for each axis of (2, 3), not ((0, 1), 3)",
    ),
    (
        "shrink",
        lambda: M.shrink([(1, 0), None]),
        ValueError,
        "cannot shrink (2, 3) to ((1, 0), (0, 3)): axis 0 needs 0 <= 1 <= 0 <= 2",
    ),
    ("split", lambda: LINE.split(0), ValueError, "split needs a positive size, not 0"),
    ("split", lambda: LINE.split([1, 1]), ValueError, "split sizes (1, 1) add up to 2, axis 0 has size 3"),
    (
        "split",
        lambda: LINE.split(2, 3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("split", lambda: LINE.split([-1, 4]), ValueError, "split sizes must not be negative, as in (-1, 4)"),
    (
        "squeeze",
        lambda: LINE.squeeze("a"),
        TypeError,
        "squeeze: dim must be an int or a sequence of ints, not 'a'",
    ),
    (
        "squeeze",
        lambda: LINE.squeeze(3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "swapaxes",
        lambda: M.swapaxes(0, 4),
        IndexError,
        "axis 4 is out of range for shape (2, 3): its axes are from -2 to 1",
    ),
    (
        "swapdims",
        lambda: M.swapdims(0, 4),
        IndexError,
        "axis 4 is out of range for shape (2, 3): its axes are from -2 to 1",
    ),
    ("tile", lambda: LINE.tile("a"), TypeError, "a size must be an integer or a Variable, not 'a'"),
    ("tile", lambda: LINE.tile(-1), ValueError, "repeat needs numbers of at least 0, not (-1,)"),
    (
        "transpose",
        lambda: M.transpose(0, 4),
        IndexError,
        "axis 4 is out of range for shape (2, 3): its axes are from -2 to 1",
    ),
    (
        "unbind",
        lambda: LINE.unbind(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "unflatten",
        lambda: M.unflatten(1, "a"),
        TypeError,
        "unflatten: sizes must be a sequence of ints, not 'a'",
    ),
    (
        "unflatten",
        lambda: M.unflatten(1, (2, 2)),
        ValueError,
        "cannot reshape (2, 3) into (2, 2, 2): 6 elements into 8",
    ),
    (
        "unfold",
        lambda: LINE.unfold(0, 5, 1),
        ValueError,
        "a window of 5 elements does not fit into an axis of size 3, in shape (3,)",
    ),
    (
        "unfold",
        lambda: LINE.unfold(0, 2, 0),
        ValueError,
        "window sizes, strides and dilations must be positive, not 2, 0, 1",
    ),
    (
        "unfold",
        lambda: LINE.unfold(1, 2, 1),
        IndexError,
        "axis 1 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "unfold",
        lambda: LINE.unfold(0, -1, 1),
        ValueError,
        "window sizes, strides and dilations must be positive, not -1, 1, 1",
    ),
    ("unsqueeze", lambda: LINE.unsqueeze("a"), TypeError, "unsqueeze: dim must be an int, not 'a'"),
    (
        "unsqueeze",
        lambda: M.unsqueeze(5),
        IndexError,
        "axis 5 is out of range for shape (2, 3, 1): its axes are from -3 to 2",
    ),
    ("view", lambda: LINE.view(2, 2), ValueError, "cannot reshape (3,) into (2, 2): 3 elements into 4"),
    ("view_as", lambda: LINE.view_as(M), ValueError, "cannot reshape (3,) into (2, 3): 3 elements into 6"),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
