"""Every public method of Tensor has a docstring with an example, and the example prints what it says."""

from __future__ import annotations

import doctest
import inspect
import math
import re
from typing import Any

from lazygrad import Tensor

#: Methods whose example would need more than a line, or another library: the pages in docs/ show them.
WITHOUT_EXAMPLE = frozenset({"kernels", "train", "test", "sequential"})
WITHOUT_EXAMPLE |= {"from_torch", "to_torch", "from_jax", "to_jax"}


def methods() -> dict[str, Any]:
    """Name → function, for every public method; other names of a method once."""
    found: dict[str, Any] = {}
    for name in dir(Tensor):
        if name.startswith("_"):
            continue
        member = inspect.unwrap(
            getattr(inspect.getattr_static(Tensor, name), "__func__", getattr(Tensor, name))
        )
        if inspect.isfunction(member) and member not in found.values():
            found[name] = member
    return found


NUMBER = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?")


class _Checker(doctest.OutputChecker):
    """Printed floats are equal to six digits: the last ones are the compiler's affair."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        mine, theirs = ([float(x) for x in NUMBER.findall(text)] for text in (got, want))
        if len(mine) == len(theirs) and mine:
            near = all(
                math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in zip(mine, theirs, strict=True)
            )
            want, got = (" ".join(NUMBER.sub("#", text).split()) for text in (want, got))
            if not near:
                return False
        return super().check_output(want, got, optionflags)


def test_every_method_has_an_example() -> None:
    for name, method in methods().items():
        text = inspect.getdoc(method) or ""
        assert text, f"{name} has no docstring"
        assert ">>>" in text or name in WITHOUT_EXAMPLE, f"{name} has no example"


def test_the_examples_print_what_they_say() -> None:
    Tensor.manual_seed(1)
    runner = doctest.DocTestRunner(_Checker(), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    parser = doctest.DocTestParser()
    said: list[str] = []
    for name, method in methods().items():
        code = inspect.getdoc(method) or ""
        names = {"Tensor": Tensor, "math": math}
        runner.run(parser.get_doctest(code, names, name, None, None), out=said.append)
    assert runner.failures == 0, "".join(said)
    assert runner.tries > 400
