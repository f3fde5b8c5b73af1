"""Whatever is chosen, programs mean the same: each kind of program under random answers to every decision.

The expected numbers are those of the predicted answers. A failure names the answers that were others, in the
form that OPTS takes: with one of them alone the fault is found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import Context, Tensor
from lazygrad.decisions import Decided, observers, text_of

from .harness import fuzzed

RNG = np.random.default_rng(0)
X, Y, W = (RNG.standard_normal(shape).astype(np.float32) for shape in ((33, 24), (33, 17), (24, 20)))
IMAGES, FILTERS = (RNG.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 12, 12), (8, 3, 3, 3)))
Q, K, V = RNG.standard_normal((3, 1, 2, 33, 16)).astype(np.float32)
LONG = RNG.integers(-9, 9, (3, 5000)).astype(np.float32)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROWS, TAKEN = RNG.integers(0, 33, 70), np.array([2, 0, 2])


def gradient(f: Callable[[Tensor], Tensor], x: np.ndarray) -> Tensor:
    leaf = Tensor(x).requires_grad_()
    return f(leaf).square().sum().gradient(leaf)[0]


def heat(x: Tensor) -> Tensor:
    for _ in range(4):
        x = (x.roll(1, 0) + x.roll(-1, 0) + x.roll(1, 1) + x.roll(-1, 1)) / 4
    return x


def written(x: Tensor) -> Tensor:
    x[Tensor(ROWS[:5])] = 9.0
    x[3:7] += x[13:17] * 2
    return x


def attention(q: Tensor, causal: bool = False) -> Tensor:
    return q.scaled_dot_product_attention(Tensor(K), Tensor(V), is_causal=causal)


def as_float16(x: np.ndarray) -> Tensor:
    return Tensor(x).half()


PROGRAMS: dict[str, Callable[[], Tensor]] = {
    "product": lambda: Tensor(X) @ Tensor(W),
    "product of halves": lambda: as_float16(X) @ as_float16(W),
    "product of few rows": lambda: (Tensor(X[:2]) @ Tensor(W)).gelu(),
    "transposed": lambda: (Tensor(X).T.contiguous() * 2).T + 1,
    "softmax": lambda: Tensor(X).softmax(1),
    "log-sum-exp": lambda: Tensor(X).logsumexp(0),
    "variance": lambda: Tensor(X).var(1) + Tensor(X).var(),
    "layer norm": lambda: Tensor(X).layernorm() * 2,
    "norms": lambda: Tensor(X).square().sum().sqrt() + Tensor(X).abs().max(),
    "long sums": lambda: Tensor(LONG).sum(1) + Tensor(LONG).max(1) + Tensor(LONG).argmax(1),
    "running sums": lambda: Tensor(X).cumsum(1) + Tensor(X).cumsum(0),
    "convolution": lambda: Tensor(IMAGES).conv2d(Tensor(FILTERS), padding=1).relu(),
    "its gradient": lambda: gradient(lambda x: x.conv2d(Tensor(FILTERS), padding=1).relu(), IMAGES),
    "that of its weights": lambda: gradient(lambda w: Tensor(IMAGES).conv2d(w, padding=1), FILTERS),
    "pooling": lambda: gradient(lambda x: x.max_pool2d(3).mean((2, 3)), IMAGES),
    "attention": lambda: attention(Tensor(Q), True),
    "its gradient for queries": lambda: gradient(attention, Q),
    "perceptron": lambda: (Tensor(X) @ Tensor(W)).gelu().softmax(1).log().sum(1),
    "its gradient for inputs": lambda: gradient(lambda x: (x @ Tensor(W)).gelu().layernorm(), X),
    "heat": lambda: heat(Tensor(X)),
    "windows": lambda: Tensor(X).unfold(0, 5, 2).sum(-1).exp(),
    "sorted": lambda: Tensor(X).sort(1)[0] + Tensor(X).topk(3, 1)[0].sum(1, keepdim=True),
    "rows": lambda: Tensor(Y)[Tensor(ROWS)] * 2 + 1,
    "sum of rows": lambda: Tensor(Y)[Tensor(ROWS)].sum(0),
    "two indices": lambda: Tensor(CUBE)[:, Tensor([[0, 2], [1, 0]]), Tensor([[1, 3], [0, 2]])],
    "added to rows": lambda: Tensor.zeros(33, 5).index_add(0, Tensor(ROWS), Tensor.ones(70, 5)),
    "gradient of rows": lambda: gradient(lambda x: x[Tensor(ROWS)], Y),
    "gradient of columns": lambda: gradient(lambda x: x.index_select(1, Tensor(TAKEN)), X[:4, :3]),
    "written in place": lambda: written(Tensor(Y)),
    "joined": lambda: Tensor.cat(Tensor(X).exp(), Tensor(X) * 2, Tensor(X[:1]), dim=0).sum(1),
    "solved": lambda: (Tensor(X[:20, :20]) + Tensor.eye(20) * 9).inverse(),
    "integers": lambda: (Tensor(ROWS) * 3 // 7 % 5).bincount(minlength=5).cumsum(0),
    "of wide numbers": lambda: (Tensor(X).double() @ Tensor(W).double()).sum(0).exp(),
}
EXPECTED: dict[str, np.ndarray] = {}


@fuzzed(quick=5, sweep=4000)
@given(st.sampled_from(list(PROGRAMS)), st.integers(0, 1 << 30))
def test_no_choice_changes_what_a_program_means(name: str, seed: int) -> None:
    make, answers = PROGRAMS[name], list[Decided]()
    if name not in EXPECTED:
        with Context(OPTS=""):
            EXPECTED[name] = make().numpy()
    observers.append(answers.append)
    try:
        with Context(OPTS=f"random:{seed}", CACHELEVEL=0):
            got = make().numpy()
        np.testing.assert_allclose(got, EXPECTED[name], *TOLERANCES[got.dtype.name])
    except Exception as error:
        others = {
            f"{a.name}@{a.structure}={text_of(a.answer)}": 0 for a in answers if a.answer != a.predicted
        }
        error.add_note(f"{name} with OPTS=random:{seed}: " + "; ".join(others))
        raise
    finally:
        observers.remove(answers.append)


#: Relative and absolute: sums are done in another order.
TOLERANCES = {"float32": (2e-4, 2e-4), "float16": (2e-2, 2e-2), "float64": (1e-9, 1e-9)}
TOLERANCES |= dict.fromkeys(("int32", "int64"), (0, 0))
