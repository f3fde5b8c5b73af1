"""Published architectures of PyTorch under `torch.compile(backend="lazygrad")`, beside eager and inductor.

    python -m bench torch                       all: answers, a step of training, times
    python -m bench torch --only Llama resnet   those with one of these words in their names
    python -m bench torch --forward             no training
    python -m bench torch --no-inductor         eager only beside ours: inductor compiles slowly
    python -m bench torch --check               answers only, no times, no inductor
    python -m bench torch --calls               what a call of a tiny network costs, by backend
    python -m bench torch --save FILE           goes on where an earlier run with this file stopped
    python -m bench torch --table FILE ...      what files have, in parts of eager's time; measures nothing

Weights are random, and nothing is downloaded (`torch_models.py` says which architectures, and how wide). Each
has a process of its own, on one core and one thread, with empty caches of kernels. In it the sides take
turns, and the least processor time of each is shown.

Answers and gradients are compared with eager's. `forward` and `training` are the largest differences, as
parts of the largest number of a tensor (or of a 1000th of the largest of all, where that is more). Where one
is above 1e-3, both are compared with float64, and it is marked with how far we and eager are from that, and
how far we are from eager where both compute in float64: a network that makes much of small differences makes
much of roundings, and of smaller ones less. `first` is the processor time of the first call, with all that
compiles, here and in processes that were started for it. Before, PyTorch has traced the model, and a tiny
function was compiled, so that no side pays for imports, the start of LLVM, or inductor's headers of C++.
Inductor does not freeze weights. `ops in PyTorch` ran there for want of a row, or of something that a row
needs.

A file of `--save` has a line for each architecture as soon as it is measured. What failed is tried again.
The tally at the end says how many keep each bound, and names the others, the worst first.

What this needs: `pip install transformers timm torchvision`, with the torchvision of your PyTorch's kind.
What is missing is named and left out.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

from . import torch_table as table
from .torch_models import ARCHITECTURES, Architecture, declare_operators, without_dropout, without_zeros

#: Seconds for the turns of all sides, and the fewest turns.
SECONDS, TURNS = 3.0, 5
#: Seconds for one architecture.
LIMIT = 900

Call = Callable[[], Any]


def _leaves(answer: Any) -> list[Any]:
    """The tensors of floats in what a model gives."""
    import torch
    from torch.utils import _pytree as pytree

    given = dict(answer) if hasattr(answer, "to_tuple") else answer
    found = [x for x in pytree.tree_leaves(given) if isinstance(x, torch.Tensor)]
    return [x for x in found if x.is_floating_point()]


def _loss(answer: Any) -> Any:
    """A number that every part of the answer has a share in."""
    import torch

    leaves = [x.to(torch.promote_types(x.dtype, torch.float32)) for x in _leaves(answer)]
    parts = [(x - 0.5).square().mean() for x in leaves]
    return sum(parts[1:], parts[0])


def _difference(found: list[Any], expected: list[Any]) -> float:
    """The largest difference, as a part of the largest number of each tensor, but at least of a part of the
    largest of all.
    """
    if [x.shape for x in found] != [x.shape for x in expected]:
        return math.inf
    sizes = [float(x.detach().abs().max()) if x.numel() else 0.0 for x in expected]
    least = max(sizes, default=0.0) * table.EQUAL
    worst = 0.0
    for one, other, size in zip(found, expected, sizes, strict=True):
        if size == 0 == one.numel():
            continue
        far = float((one.detach().double() - other.detach().double()).abs().max())
        worst = max(worst, far / max(size, least, 1e-30)) if math.isfinite(far) else math.inf
    return worst


def _wide(value: Any) -> Any:
    """Float tensors as float64, in a nest."""
    import torch
    from torch.utils import _pytree as pytree

    def one(x: Any) -> Any:
        return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x

    return pytree.tree_map(one, value)


class _Side:
    """A model under one backend: `forward` and `step` are called, the latter makes gradients."""

    def __init__(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], backend: Any) -> None:
        import torch

        self.model = copy.deepcopy(model)
        self.run = self.model if backend is None else torch.compile(self.model, backend=backend)
        self.args, self.kwargs = args, kwargs

    def forward(self) -> Any:
        import torch

        with torch.no_grad():
            return self.run(*self.args, **self.kwargs)

    def step(self) -> Any:
        self.model.zero_grad(set_to_none=True)
        loss = _loss(self.run(*self.args, **self.kwargs))
        loss.backward()
        return loss

    def found(self, training: bool) -> list[Any]:
        """What is compared: the answer; or the loss, and then the gradients."""
        if not training:
            return _leaves(self.forward())
        loss = self.step()
        return [loss, *(p.grad for p in self.model.parameters() if p.grad is not None)]


def _times(calls: dict[str, Call]) -> dict[str, float]:
    """The least time of each call in seconds; they take turns."""
    best = dict.fromkeys(calls, math.inf)
    turns, end = 0, time.perf_counter() + SECONDS
    while turns < TURNS or time.perf_counter() < end:
        turns += 1
        for side, call in calls.items():
            begin = time.process_time()
            call()
            best[side] = min(best[side], time.process_time() - begin)
    return best


def _processor_time() -> float:
    """Seconds of this process and of the compilers that it started."""
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


def _start(backend: str, training: bool) -> None:
    """Compiles a tiny function, so that the first call of a model pays for nothing that is done once."""
    import torch
    import torch._dynamo

    torch._dynamo.reset()
    x = torch.ones(4, 4, requires_grad=training)
    torch.compile(lambda x: (x @ x).exp().sum(), backend=backend)(x)
    if training:
        torch.compile(lambda x: (x @ x).exp().sum(), backend=backend)(x).backward()


def _trace(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool) -> None:
    """Has PyTorch trace the model once, so that no side pays for what it does once in a process (imports, the
    sources of functions): the first of them would.
    """
    import torch._dynamo

    torch._dynamo.reset()
    _Side(model, args, kwargs, "aot_eager" if training else "eager").found(training)


def _graphs() -> dict[str, int]:
    """How many graphs Dynamo has made since it was reset, and how often it had to break one."""
    from torch._dynamo.utils import counters

    return {"graphs": counters["stats"]["unique_graphs"], "breaks": sum(counters["graph_break"].values())}


def measure(
    architecture: Architecture, training: bool = True, inductor: bool = True, timed: bool = True
) -> dict[str, Any]:
    """What the table says of one architecture, in this process."""
    import torch
    import torch._dynamo

    declare_operators()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, args, kwargs = architecture.make()
    without_zeros(without_dropout(model))
    backends = {"eager": None, "lazygrad": "lazygrad", **({"inductor": "inductor"} if inductor else {})}
    found: dict[str, Any] = {"fell": []}
    for kind in ("forward", "training") if training else ("forward",):
        training_now = kind == "training"
        model.train(training_now)
        sides, results = dict[str, _Side](), dict[str, list[Any]]()
        for side, backend in backends.items():
            if backend is not None:
                _trace(model, args, kwargs, training_now)
                _start(backend, training_now)
            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
            sides[side] = one = _Side(model, args, kwargs, backend)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                begin = _processor_time()
                results[side] = one.found(training_now)
                found[f"{kind} first {side}"] = _processor_time() - begin
            if side == "lazygrad":
                found |= {f"{kind} {key}": value for key, value in _graphs().items()}
                fell = [str(w.message) for w in caught if "runs in PyTorch" in str(w.message)]
                found["fell"] = sorted({*found["fell"], *fell})
        found[kind] = _difference(results["lazygrad"], results["eager"])
        if timed:
            calls = {side: one.step if training_now else one.forward for side, one in sides.items()}
            found |= {f"{kind} {side}": best for side, best in _times(calls).items()}
        if found[kind] > table.EQUAL:
            wide = copy.deepcopy(model).double(), _wide(args), _wide(kwargs)
            exact = _Side(*wide, None).found(training_now)
            found[f"{kind} exact"] = [_difference(results[side], exact) for side in ("lazygrad", "eager")]
            torch._dynamo.reset()
            ours = _Side(*wide, "lazygrad").found(training_now)
            found[f"{kind} wide"] = _difference(ours, exact)
    return found


def calls(inductor: bool = True) -> dict[str, tuple[float, float]]:
    """Microseconds of a call of a tiny network, by backend: forward, and a step of training.

    Its kernels take one. "dynamo alone" finds the graph that was compiled, and runs it as eager PyTorch does;
    "AOTAutograd" also makes its graphs of ATen operations, which run one by one.
    """
    import torch

    torch.set_num_threads(1)
    network = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    backends = {"eager": None, "dynamo alone": "eager", "AOTAutograd": "aot_eager"}
    backends |= {"lazygrad": "lazygrad", "inductor": "inductor"}
    found = dict[str, list[float]]()
    for side, backend in backends.items():
        if side == "inductor" and not inductor:
            continue
        one = _Side(network, (torch.ones(3, 4),), {}, backend)
        for call in (one.forward, one.step):
            call()
            best = math.inf
            for _ in range(3000):
                begin = time.perf_counter()
                call()
                best = min(best, time.perf_counter() - begin)
            found.setdefault(side, []).append(best * 1e6)
    return {side: (forward, step) for side, (forward, step) in found.items()}


# ---- all of them ----

#: What is asked of each architecture, which another process gets as words.
_ASKED = ("forward", "no_inductor", "check")


def _in_a_process(architecture: Architecture, given: argparse.Namespace) -> dict[str, Any]:
    """What `measure` finds in a process of one core, whose caches are empty."""
    words = [sys.executable, "-m", "bench.torch_compile", "--child", architecture.name]
    words += [f"--{name.replace('_', '-')}" for name in _ASKED if getattr(given, name)]
    with tempfile.TemporaryDirectory() as cache:
        places = dict.fromkeys(("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR"), cache)
        single = dict.fromkeys(("THREADS", "OMP_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"), "1")
        environment = {**os.environ, **places, **single}
        try:
            done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return {"failed": f"no answer in {LIMIT} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no answer"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench torch", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="words in the names of architectures")
    parser.add_argument("--forward", action="store_true", help="no training")
    parser.add_argument("--no-inductor", action="store_true", help="eager only beside ours")
    parser.add_argument("--check", action="store_true", help="answers only, no times, no inductor")
    parser.add_argument("--calls", action="store_true", help="what a call of a tiny network costs")
    parser.add_argument("--save", default="", metavar="FILE", help="keeps results as they come")
    parser.add_argument("--table", nargs="+", metavar="FILE", help="ratios and a tally of saved files")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        return _child(given)
    if given.calls:
        for side, (forward, step) in calls(not given.no_inductor).items():
            print(f"{side:12}  forward {forward:6.1f} us   training {step:6.1f} us")
        return 0
    kinds = ["forward"] if given.forward else ["forward", "training"]
    if given.table:
        saved = table.timed(table.read(*given.table))
        print("\n".join([*table.ratios(saved, kinds), "", *table.tally(saved, kinds)]))
        return 0
    print("\n".join(table.heading(kinds)), flush=True)
    results, missing = dict[str, table.Found](), set()
    asked = {name: getattr(given, name) for name in _ASKED}
    earlier = table.read(given.save) if os.path.exists(given.save) else []
    saved = {line["name"]: line["found"] for line in earlier if line["asked"] == asked}
    for architecture in ARCHITECTURES:
        if given.only and not any(word in architecture.name for word in given.only):
            continue
        if not architecture.is_there:
            missing.add(architecture.package)
            continue
        found = saved.get(architecture.name)
        if found is None:
            found = _in_a_process(architecture, given)
            if given.save:
                line = {"name": architecture.name, "asked": asked, "found": found}
                with open(given.save, "a", encoding="utf-8") as file:
                    print(json.dumps(line), file=file)
        results[architecture.name] = found
        print(table.row(architecture.name, found, kinds), flush=True)
    print("\n".join(["", *table.tally(results, kinds)]))
    if missing:
        print(f"\nNot installed, so left out: pip install {' '.join(sorted(missing))}")
    return 0


def _child(given: argparse.Namespace) -> int:
    """Measures one architecture in this process, and prints what is found."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    (architecture,) = [each for each in ARCHITECTURES if each.name == given.child]
    found = measure(
        architecture, not given.forward, not given.no_inductor and not given.check, not given.check
    )
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
