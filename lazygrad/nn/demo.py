"""The demo: a small network learns to read handwritten digits, and the kernels of one step are shown."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..device import Device
from ..dtype import dtypes
from ..engine.realize import observe_kernels
from ..report.profile import output_shape
from ..schedule.kernels.items import ScheduleItem
from ..tensor import Tensor
from .convolution import Conv2d
from .datasets import digits
from .dropout import Dropout
from .layers import Linear
from .normalization import BatchNorm
from .optim import AdamW, Optimizer
from .state import get_parameters

BATCH = 128
EPOCHS = 27
#: Found by trying networks and schedules on other splits of the data and other seeds.
LEARNING_RATE = 1e-2
SMOOTHING = 0.1


class Network:
    """Images (batch, 1, 8, 8) → a score for each digit (batch, 10)."""

    def __init__(self) -> None:
        self.layers: list[Any] = [
            Conv2d(1, 32, 3, padding=1, bias=False),
            BatchNorm(32),
            Tensor.relu,
            Tensor.max_pool2d,
            Conv2d(32, 64, 3, padding=1, bias=False),
            BatchNorm(64),
            Tensor.relu,
            Tensor.max_pool2d,
            lambda x: x.flatten(1),
            Dropout(0.3),
            Linear(256, 10),
        ]

    def __call__(self, x: Tensor) -> Tensor:
        result: Tensor = x.sequential(self.layers)
        return result


class Batches:
    """Random images of a training set, each shifted by up to a pixel, and what they show."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.framed = images.squeeze(1).pad(((0, 0), (1, 1), (1, 1))).contiguous().realize(labels)
        self.labels = labels

    def draw(self, count: int) -> tuple[Tensor, Tensor]:
        """The next `count` of them."""
        which = Tensor.randint(count, high=len(self.labels))
        down, right = (Tensor.randint(count, high=3).reshape(count, 1, 1) for _ in range(2))
        rows = down + Tensor.arange(8).reshape(1, 8, 1)
        columns = right + Tensor.arange(8).reshape(1, 1, 8)
        images = self.framed[which.reshape(count, 1, 1), rows, columns].unsqueeze(1)
        return images, self.labels[which]


def train_step(network: Network, optimizer: Optimizer, batches: Batches) -> Tensor:
    """Draw a batch and move the network once; the loss."""
    images, labels = batches.draw(BATCH)
    loss = network(images).sparse_categorical_crossentropy(labels, label_smoothing=SMOOTHING)
    optimizer.zero_grad()
    loss.backward()
    return loss.realize(*optimizer.schedule_step())


@Tensor.test()
def accuracy(network: Network, images: Tensor, labels: Tensor) -> float:
    """The share of images that the network reads right."""
    right = network(images).argmax(1) == labels
    return float(right.cast(dtypes.float32).mean())


# ---- the kernels of a step ----


@dataclass
class Row:
    """One kernel or copy of a step, as it was seen in several."""

    name: str
    shape: str
    ops: int
    nbytes: int
    seconds: float
    calls: str


def observed(step: Callable[[], object], times: int = 5) -> list[Row]:
    """What runs in one call of `step`, with the median time of several calls."""
    runs: list[list[Row]] = []

    def see(item: ScheduleItem, name: str, seconds: float | None, ops: int, nbytes: int) -> None:
        calls = ", ".join(dict.fromkeys(str(call) for call in item.metadata))
        runs[-1].append(
            Row(" ".join(name.split()), output_shape(item.ast, item.bufs), ops, nbytes, seconds or 0.0, calls)
        )

    step()  # the first one also does what was left undone before
    for _ in range(times):
        runs.append([])
        with observe_kernels(see):
            step()
    last = runs[-1]
    same = [rows for rows in runs if [row.name for row in rows] == [row.name for row in last]]
    for place, row in enumerate(last):
        row.seconds = statistics.median(rows[place].seconds for rows in same)
    return last


def table(rows: list[Row]) -> str:
    """The rows as text, with their sum below."""
    total = sum(row.seconds for row in rows)
    cells = [("kernel", "shape", "FLOPs", "bytes", "time", "share", "from")]
    for row in rows:
        numbers = (_short(row.ops), _short(row.nbytes), _micro(row.seconds), f"{row.seconds / total:.1%}")
        cells.append((row.name, row.shape, *numbers, row.calls))
    ops, nbytes = sum(row.ops for row in rows), sum(row.nbytes for row in rows)
    cells.append((f"{len(rows)} in all", "", _short(ops), _short(nbytes), _micro(total), "", ""))
    widths = [max(len(line[column]) for line in cells) for column in range(7)]
    lines = []
    for line in cells:
        padded = [
            text.ljust(width) if column in (0, 1, 6) else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs"


def _short(number: int) -> str:
    """A count with three digits and k, M, G."""
    value, unit = float(number), ""
    for unit in ("", "k", "M", "G", "T"):  # noqa: B007
        if value < 999.5:
            break
        value /= 1000
    return f"{value:.0f}{unit}" if not unit or value >= 99.95 else f"{value:.3g}{unit}"


# ---- all of it ----


def run(epochs: int = EPOCHS, seed: int = 0) -> float:
    """Train, and print the accuracy and the kernels of one step. The same seed gives the same to the bit."""
    from tqdm import tqdm

    start = time.perf_counter()
    Tensor.manual_seed(seed)
    x_train, y_train, x_test, y_test = digits()
    batches, network = Batches(x_train, y_train), Network()
    optimizer = AdamW(get_parameters(network), lr=LEARNING_RATE)
    steps_of_epoch = len(y_train) // BATCH
    steps = epochs * steps_of_epoch
    weights = sum(p.numel() for p in optimizer.params)
    print(
        f"{len(y_train)} digits to learn from, {len(y_test)} held out; {weights} parameters, "
        f"{steps} steps of {BATCH} images on {Device.DEFAULT}"
    )
    with Tensor.train(), tqdm(total=steps * BATCH, unit=" images", unit_scale=True) as bar:
        for step in range(steps):
            optimizer.lr = LEARNING_RATE * 0.5 * (1 + math.cos(math.pi * step / steps))
            loss = train_step(network, optimizer, batches)
            if step % 10 == 0 or step == steps - 1:
                bar.set_postfix(loss=f"{loss.item():.4f}", refresh=False)
            bar.update(BATCH)
    result = accuracy(network, x_test, y_test)
    print(f"loss: {loss.item():.6f}")
    print(f"accuracy: {result:.1%}".replace("%", " %"))
    print(f"\nthe kernels of one training step on {Device.DEFAULT}:\n")
    with Tensor.train():
        print(table(observed(lambda: train_step(network, optimizer, batches))))
    print(f"\n{time.perf_counter() - start:.1f} s in all")
    return result
