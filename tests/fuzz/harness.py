"""How a generator runs: a few examples in the default tests, many in the slow sweep, the commit as the seed.

    @fuzzed(quick=300, sweep=20_000)
    @given(programs())
    def test_writes(program):
        play(program)

makes one quick test, and slow ones, each with its share of the sweep, so that all cores work at it. `.ci/run`
sets FUZZ_SEED to the commit, so that every commit looks elsewhere; without it the seed is always the same. A
failure is shrunk by hypothesis and says what to type to see it again.
"""

from __future__ import annotations

import functools
import os
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings

#: Examples in one test of a sweep: some minutes of them, so that the cores end at about the same time.
SHARE = 2500

#: Failures of the generator itself, not of what it tests: how long and how often it draws.
NO_FAILURE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
NO_FAILURE += [HealthCheck.filter_too_much]


def fuzz_seed() -> str:
    """What the random examples of this run begin with: FUZZ_SEED, or "0"."""
    return os.environ.get("FUZZ_SEED", "0")


def number_of(*parts: object) -> int:
    """The seed of one test: another for each of its parts, the same in every process."""
    return zlib.crc32(repr(parts).encode())


def fuzzed(
    *, quick: int, sweep: int, share: int = SHARE
) -> Callable[[Callable[[], None]], Callable[..., None]]:
    """Give a test under `@given` a budget of examples: `quick` by default, `sweep` in all with `-m slow`."""
    shares = [min(share, sweep - first) for first in range(0, sweep, share)]
    cases = [pytest.param(quick, 0, id=f"{quick}-quick")]
    cases += [
        pytest.param(examples, part, id=f"{examples}-part-{part}", marks=pytest.mark.slow)
        for part, examples in enumerate(shares, 1)
    ]

    def decorate(test: Callable[[], None]) -> Callable[..., None]:
        @pytest.mark.parametrize(("examples", "part"), cases)
        def run(request: pytest.FixtureRequest, examples: int, part: int) -> None:
            # Hypothesis keeps settings and seeds on the function, and refuses to replace the settings.
            limits: dict[str, Any] = dict(
                max_examples=examples, deadline=None, database=None, derandomize=False
            )
            limits |= dict(
                suppress_health_check=NO_FAILURE, phases=(Phase.explicit, Phase.generate, Phase.shrink)
            )
            vars(test).pop("_hypothesis_internal_settings_applied", None)  # of another part in this process
            chosen = settings(**limits)(test)
            try:
                seed(number_of(fuzz_seed(), test.__qualname__, part))(chosen)()
            except Exception as error:
                error.add_note(
                    f"again: FUZZ_SEED={fuzz_seed()} python -m pytest -n 0 -m '' '{request.node.nodeid}'"
                )
                raise

        functools.update_wrapper(
            run, test, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=()
        )
        del run.__wrapped__  # else pytest asks for the arguments that `@given` draws
        return run

    return decorate
