"""A network learns to read 1,797 real handwritten digits; the run can be interrupted, and exported.

python examples/digits.py
python examples/digits.py --epochs 20 --checkpoint digits.safetensors --export digits.lzg
"""

from __future__ import annotations

import argparse

import lazygrad
from lazygrad import Tensor, TinyJit, nn
from lazygrad.nn.state import get_parameters

BATCH = 64


def network() -> nn.Sequential:
    """Images (batch, 1, 8, 8) → a score for each digit."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.BatchNorm(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm(64),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(64 * 16, 10),
    )


def train(epochs: int, checkpoint: str | None) -> tuple[nn.Sequential, float]:
    """The trained network, and the part of digits it has not seen that it reads right."""
    x_train, y_train, x_test, y_test = nn.datasets.digits()
    x_train, y_train = x_train.realize(), y_train.realize()
    model = network()
    optimizer = nn.optim.AdamW(get_parameters(model), lr=1e-2)
    order = nn.ShuffledOrder(len(x_train), BATCH, seed=1, drop_last=True)
    schedule = nn.optim.CosineAnnealingLR(optimizer, epochs * len(order))
    loss_so_far = nn.metrics.RunningMean()
    run = nn.TrainingState(model=model, optimizer=optimizer, schedule=schedule, order=order, loss=loss_so_far)
    if checkpoint and run.resume(checkpoint):
        print(f"goes on after epoch {order.epoch} of {checkpoint}")

    @TinyJit
    def step(indices: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x_train[indices]).cross_entropy(y_train[indices], label_smoothing=0.1).backward()
        loss_so_far.update(loss)
        return loss.realize(*optimizer.schedule_step())

    while order.epoch < epochs:
        with Tensor.train():
            for indices in order:
                step(Tensor(indices, dtype="int32").realize())
                schedule.step()
        print(f"epoch {order.epoch:2}  loss {loss_so_far.compute():.3f}")
        if checkpoint:
            run.save(checkpoint)
    accuracy = nn.metrics.Accuracy()
    accuracy.update(model(x_test), y_test)
    return model, accuracy.compute()


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--small", action="store_true", help="two epochs: some seconds")
    parser.add_argument("--checkpoint", help="a file that the run is saved in, and goes on from")
    parser.add_argument("--export", help="where to write the network: .lzg, .c or .onnx")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    Tensor.manual_seed(options.seed)
    model, right = train(2 if options.small else options.epochs, options.checkpoint)
    print(f"reads {100 * right:.1f} % of digits that it has not seen")
    if options.export:
        lazygrad.export(model, (Tensor.zeros(1, 1, 8, 8).contiguous(),), options.export)
        print(f"wrote {options.export}")
    return right


if __name__ == "__main__":
    main()
