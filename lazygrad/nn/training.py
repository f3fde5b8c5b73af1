"""A training run that can be interrupted: what moves in it, written to a file and read back, bit by bit.

What is left to the user is to make the same objects again, and to save between two steps.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..tensor import Tensor
from ..tensor.random.sampling import get_state, set_state, threefry
from .formats.source import shown
from .parameters import count as checked_count
from .state import get_state_dict, load_state_dict, safe_load, safe_load_metadata, safe_save

#: The text in a file's metadata that has what is no tensor.
KEY = "lazygrad.training"
VERSION = 1


class TrainingState:
    """All that moves in a run: `save` writes it to one file, `resume` goes on from there.

    parts  by name: a model, an optimizer, a schedule, a GradScaler, an EMA, a ShuffledOrder, metrics, and any
           object with tensors, or with `state_dict` and `load_state_dict` of tensors and of what JSON can say

    The file is a safetensors file with a tensor for each of a part (`model.layers.0.weight`) and a text with
    the rest: where the schedule and the data are, and the state of the random numbers (of Tensor, of Python's
    `random` and of `numpy.random`). A run that is resumed computes what it would have computed, to the bit.
    Save between two steps: gradients are no part of it.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.safetensors")
    >>> layer = nn.Linear(2, 2)
    >>> state = nn.TrainingState(model=layer, optimizer=nn.optim.SGD([layer.weight], lr=0.5))
    >>> state.resume(path)
    False
    >>> state.save(path)
    >>> state.resume(path)
    True
    """

    def __init__(self, **parts: Any) -> None:
        if not parts:
            raise TypeError(
                "TrainingState takes the objects that change in a run, by name: "
                "TrainingState(model=model, ...)"
            )
        self.components = parts

    def save(self, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None) -> None:
        """Write all of it. A file of that name stays until the new one is complete and on disk.

        notes  what else the file carries along: anything that JSON can say
        """
        tensors, content = self.collected(notes)
        safe_save(tensors, path, {KEY: json.dumps(content)})

    def collected(self, notes: Mapping[str, Any] | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The tensors of all parts, each once, and what JSON can say of the rest."""
        tensors: dict[str, Tensor] = {}
        same: dict[str, str] = {}  # a name → the name under which its tensor is
        first: dict[int, str] = {}
        texts: dict[str, Any] = {}
        for part, (own, rest) in self._states().items():
            texts[part] = rest
            for name, tensor in own.items():
                full = f"{part}.{name}"
                known = first.setdefault(id(tensor), full)
                if known == full:
                    tensors[full] = tensor
                else:
                    same[full] = known
        content = {"version": VERSION, "parts": texts, "same": same, "random": random_state()}
        return tensors, {**content, "notes": dict(notes or {})}

    def targets(self, where: str, content: Mapping[str, Any], saved: Collection[str]) -> dict[str, Tensor]:
        """The tensors to write, by the names of the saved ones, all compared with what was collected."""
        states, parts = self._states(), content["parts"]
        if parts.keys() != states.keys():
            raise ValueError(
                f"{where} has the parts {', '.join(map(shown, parts))}; this run has {', '.join(states)}"
            )
        targets = {f"{part}.{name}": t for part, (own, _) in states.items() for name, t in own.items()}
        _require_fits(where, targets, saved)
        return targets

    def set_rest(self, content: Mapping[str, Any]) -> None:
        """Give each part what was collected of it besides tensors."""
        for part, (own, rest) in self._states().items():
            if rest or content["parts"][part]:
                self.components[part].load_state_dict({**own, **content["parts"][part]})

    def resume(self, path: str | os.PathLike[str]) -> bool:
        """Be where the run was that wrote the file; False, and nothing, where there is no such file.

        Everything is compared before the first tensor is written: ValueError says what does not fit.
        """
        if not os.path.exists(path):
            return False
        content = checked_content(safe_load_metadata(path).get(KEY), str(path))
        tensors = {name: each for name, each in safe_load(path).items() if isinstance(each, Tensor)}
        tensors.update({name: tensors[known] for name, known in content["same"].items()})
        targets = self.targets(str(path), content, tensors)
        here = {name: value.to(targets[name].device) for name, value in tensors.items()}
        self.set_rest(content)
        # After that: a schedule writes the rate that it would give, the file has the one that was.
        load_state_dict(targets, here, verbose=False)
        set_random_state(content["random"])
        return True

    @staticmethod
    def notes(path: str | os.PathLike[str]) -> dict[str, Any]:
        """What `save` was given to carry along."""
        return dict(checked_content(safe_load_metadata(path).get(KEY), str(path))["notes"])

    def _states(self) -> dict[str, tuple[dict[str, Tensor], dict[str, Any]]]:
        """Of each part its tensors, and the rest of its state."""
        found = {}
        for name, part in self.components.items():
            state = part.state_dict() if hasattr(part, "state_dict") else get_state_dict(part)
            tensors = {key: value for key, value in state.items() if isinstance(value, Tensor)}
            rest = {key: value for key, value in state.items() if not isinstance(value, Tensor)}
            if not state:
                raise ValueError(f"{name} has no state: neither tensors nor a state_dict()")
            found[name] = tensors, rest
        return found


def checked_content(text: str | None, path: str) -> dict[str, Any]:
    """What `TrainingState.collected` said besides tensors, read from a file."""
    if text is None:
        raise ValueError(f"{path} is a safetensors file, but TrainingState.save did not write it")
    try:
        content: dict[str, Any] = json.loads(text)
        if content["version"] != VERSION:
            raise ValueError(f"{path} is of version {content['version']}, and this lazygrad reads {VERSION}")
        content["parts"], content["same"], content["random"], content["notes"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged: its description of the run cannot be read") from None
    return content


def _require_fits(path: str, targets: dict[str, Tensor], values: Collection[str]) -> None:
    missing = [name for name in targets if name not in values]
    unknown = [name for name in values if name not in targets]
    if missing or unknown:
        text = f"has no {missing[0]}" if missing else f"has {shown(unknown[0])}, which this run has not"
        raise ValueError(f"{path} is of another run: it {text} ({len(missing) + len(unknown)} differences)")


# *** random numbers


def random_state() -> dict[str, Any]:
    """Where the random numbers are: of Tensor, of Python, and of numpy if it is in use."""
    version, internal, gauss = random.getstate()
    state: dict[str, Any] = {"tensor": list(get_state()), "python": [version, list(internal), gauss]}
    if "numpy" in sys.modules:
        import numpy

        # A str, an array of 624 words, and three numbers.
        kind, words, *numbers = numpy.random.get_state(legacy=True)
        state["numpy"] = [kind, [int(word) for word in words], *numbers]
    return state


def set_random_state(state: dict[str, Any]) -> None:
    """Go on with the random numbers from there."""
    seed, base = state["tensor"]
    set_state((seed, base))
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    if "numpy" in state:
        import numpy

        kind, words, *numbers = state["numpy"]
        numpy.random.set_state((kind, numpy.array(words, numpy.uint32), *numbers))


# *** where the run is in its data


class ShuffledOrder:
    """The order of examples, another in each epoch, and how far in it a run is.

    count       how many examples there are          batch_size  how many indices each batch has
    seed        another seed is another order        shuffle     False: 0, 1, 2, ... in each epoch
    drop_last   leave out a last batch that is smaller

    Iterating gives what is left of this epoch as numpy arrays of integers; at its end the next epoch begins.
    A batch counts as done when it is given out: save behind the step that used it. The order of an epoch
    follows from seed and epoch alone (random words, sorted), so it is the same on every machine.

    >>> order = nn.ShuffledOrder(5, batch_size=2, seed=1)
    >>> [batch.tolist() for batch in order]
    [[2, 1], [4, 0], [3]]
    >>> order.epoch, order.position
    (1, 0)
    """

    def __init__(
        self, count: int, batch_size: int = 1, seed: int = 0, shuffle: bool = True, drop_last: bool = False
    ) -> None:
        self.count, self.batch_size = checked_count("count", count), checked_count("batch_size", batch_size)
        if drop_last and count < batch_size:
            raise ValueError(
                f"{count} examples are fewer than one batch of {batch_size}, "
                "and drop_last=True leaves them out"
            )
        self.seed, self.shuffle, self.drop_last = seed % (1 << 32), shuffle, drop_last
        #: how many epochs are done, and how many examples of this one
        self.epoch = self.position = 0
        self._orders: dict[int, Any] = {}

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return self.count // self.batch_size if self.drop_last else -(-self.count // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        end = self.count - self.count % self.batch_size if self.drop_last else self.count
        while self.position < end:
            start, self.position = self.position, min(self.position + self.batch_size, end)
            yield self.order()[start : self.position]
        self.epoch, self.position = self.epoch + 1, 0

    def order(self) -> Any:
        """The indices of this epoch, in their order."""
        import numpy as np

        if self.epoch not in self._orders:
            made: Any = np.arange(self.count)
            if self.shuffle:
                made = np.argsort(random_words(self.seed, self.epoch, self.count), kind="stable")
            self._orders = {self.epoch: made}
        return self._orders[self.epoch]

    def state_dict(self) -> dict[str, Any]:
        """Where it is, and what it is an order of."""
        names = ("count", "batch_size", "seed", "shuffle", "drop_last", "epoch", "position")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from where another one was: of as many examples, by the same seed."""
        for name in ("count", "batch_size", "shuffle", "drop_last"):
            if state_dict[name] != getattr(self, name):
                raise ValueError(
                    f"the order was of {name} {state_dict[name]}, this one is of {getattr(self, name)}"
                )
        epoch, position = int(state_dict["epoch"]), int(state_dict["position"])
        if epoch < 0 or not 0 <= position <= self.count:
            raise ValueError(f"epoch {epoch}, position {position} is not a position in {self.count} examples")
        self.seed, self.epoch, self.position = int(state_dict["seed"]), epoch, position
        self._orders.clear()


def random_words(seed: int, stream: int, count: int) -> Any:
    """`count` random integers of 64 bits, as a numpy array: what Threefry counts for a key of two words."""
    import numpy as np

    word: Any = np.uint32
    counter: tuple[Any, Any] = np.arange(count, dtype=word), np.zeros(count, word)
    key: tuple[Any, Any] = np.full(1, seed, word), np.full(1, stream % (1 << 32), word)
    high, low = threefry(
        counter,
        key,
        lambda a, b: a + (word(b) if isinstance(b, int) else b),
        lambda a, n: (a << word(n)) | (a >> word(32 - n)),
        lambda a, b: a ^ (word(b) if isinstance(b, int) else b),
    )
    return high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)
