"""The stages, in the order of their worth: what each is for, how long it may take, in how many processes.

A stage is a module of this package with `cases(machine)`: names → functions without arguments, which give
what was found as a dict that JSON holds. Peers that are missing raise ImportError or Missing.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .machine import Machine

Case = Callable[[], "dict[str, Any]"]
#: Seconds that all stages may take together.
WHOLE = 540


class Missing(Exception):
    """Something that a case needs is not on this machine: it is said, and no failure."""


class Stage(NamedTuple):
    """A part of the run.

    name, about  as in the table of the summary
    module       the file that has its cases
    seconds      what it may take, all cases together
    patience     what one case may take
    processes    among how many processes its cases are shared out, on a machine that has as many cores
    drawn        of so many cases a short dry run takes one, by lot
    part         which of the module's cases are its own
    ahead        whether its kernels are compiled while the first stages play, so that it need not wait
    """

    name: str
    about: str
    module: str
    seconds: float
    patience: float = 20
    processes: int = 1
    drawn: int = 1
    part: str = ""
    ahead: bool = False

    def cases(self, machine: Machine) -> dict[str, Case]:
        """Its cases, in their order."""
        module = importlib.import_module(self.module)
        found: dict[str, Case] = module.cases(machine, self.part) if self.part else module.cases(machine)
        return found


def _here(name: str) -> str:
    return f"{__package__}.{name}"


# fmt: off
STAGES = [
    Stage("device", "driver, target, and which of its features are true", _here("facts"), 25, 20, 1, 2),
    Stage("kernels", "kernels of tests, and random ones", _here("agreement"), 35, 15, 8, 6, "kernels"),
    Stage("ops", "every op's cases and gradients beside CPU", _here("agreement"), 70, 10, 10, 12, "ops"),
    Stage("programs", "programs of the replay corpus", _here("agreement"), 40, 20, 8, 10, "programs"),
    Stage("driver", "the tests of CUDA and of every device", _here("agreement"), 25, 10, 8, 8, "driver"),
    Stage("products", "products beside cuBLAS", _here("speed"), 50, 15, 1, 4, "products", True),
    Stage("attention", "attention beside PyTorch's", _here("speed"), 30, 15, 1, 6, "attention", True),
    Stage("bandwidth", "what moves memory, beside PyTorch", _here("speed"), 30, 10, 1, 3, "bandwidth", True),
    Stage("gpt2", "a step of training GPT-2 small", _here("networks"), 50, 40, 1, 3, "gpt2", True),
    Stage("resnet50", "ResNet-50, 64 pictures", _here("networks"), 35, 25, 1, 3, "resnet50", True),
    Stage("minilm", "MiniLM, 16 texts", _here("networks"), 20, 15, 1, 3, "minilm", True),
    Stage("smollm2", "a token of SmolLM2", _here("networks"), 25, 20, 1, 3, "smollm2", True),
    Stage("runtime", "graphs, streams, events, memory, faults, NCCL", _here("runtime"), 30, 15, 1, 3),
    Stage("beam", "BEAM over the ten slowest, and the model of time", _here("search"), 45, 12, 1, 5),
    Stage("sanitizer", "compute-sanitizer over ten kernels", _here("sanitize"), 30, 25, 1, 3),
]
# fmt: on


def drawn(names: Sequence[str], one_in: int, seed: int) -> list[str]:
    """Of so many names one, by lot, in their order; others for another seed, and always at least one."""
    lots = sorted(names, key=lambda name: zlib.crc32(f"{seed} {name}".encode()))
    chosen = set(lots[: -(-len(names) // one_in)])
    return [name for name in names if name in chosen]


def named(words: str) -> list[Stage]:
    """The stages of these names, separated by commas; all for none."""
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    known = {stage.name: stage for stage in STAGES}
    for word in wanted:
        if word not in known:
            raise ValueError(f"there is no stage {word!r}; there are {', '.join(known)}")
    return [stage for stage in STAGES if not wanted or stage.name in wanted]
