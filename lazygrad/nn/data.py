"""Batches of examples for a training loop: `DataLoader`."""

from __future__ import annotations

import collections
import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from ..device import Device, Devices
from ..device.mesh import Mesh
from ..schedule.graph.layouts import even_spans
from ..tensor import Generator, Tensor
from ..tensor.random.sampling import draw
from .parallel import from_local, map_tensors, share_of
from .parameters import count
from .sampled_order import SampledOrder
from .training import ShuffledOrder, random_words


@runtime_checkable
class Dataset(Protocol):
    """What has examples by number."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class DataLoader:
    """Examples in batches, in another order each epoch, made ready while the last batch is worked on.

    dataset     an array or a Tensor, whose first axis counts the examples; a tuple or a dict of such; or any
                object with `__len__` and `__getitem__`, whose examples are put together by `collate_fn`
    batch_size  how many examples each batch has        shuffle  False: 0, 1, 2, ... in each epoch
    drop_last   leave out a last batch that is smaller: all batches then have one shape, as a jit wants
    workers     threads that read examples ahead (`num_workers` is PyTorch's name); 0: they are read when
                the loop asks. Threads gain where reading waits for files, or computes in numpy
    prefetch    how many batches are made ahead for each worker
    collate_fn  a list of examples → a batch; not given: arrays, tensors and numbers are stacked to a Tensor,
                in tuples and dicts as they stand; texts stay a list
    seed        of the orders; if not given, drawn from `generator`, or from the stream that belongs to Tensor
    device      where the batches are, the default device if not given
    sampler     the numbers of the examples in their order, walked anew in each epoch; `batch_sampler`: lists
                of them, the batches
    rank, world      read this rank's share of each batch: share `rank` of `world`, divided as Tensor.shard
                     does it. The orders need one seed on all ranks (`distributed.init` sees to that)
    mesh, axis       the same, and batches are whole: tensors on a mesh, their first axis split along `axis`,
                     of which each process reads what its devices have
    worker_init_fn   called in each worker with its number, 0, 1, ..., before it reads
    timeout     seconds that a batch of a worker may take, TimeoutError if longer; 0: as long as it takes

    `prefetch_factor` is PyTorch's name of `prefetch`. Workers are threads, not processes: nothing is pickled
    or copied between them, datasets need no `if __name__ == "__main__"`, and what is written in pure Python
    runs in one of them at a time. `pin_memory` and `persistent_workers` are accepted and change nothing:
    copies are asynchronous where the device has them, and threads begin in microseconds.

    Iterating gives what is left of an epoch; at its end the next one begins. `state_dict` says where that is,
    so a loader is a part of `nn.TrainingState`: a run goes on with the example after the last it was given.
    An error of the dataset is raised in the loop, with a note that names the example.

    >>> loader = nn.DataLoader((Tensor([[1.0], [2.0], [3.0]]), Tensor([0, 1, 2])), batch_size=2)
    >>> [(x.tolist(), y.tolist()) for x, y in loader]
    [([[1.0], [2.0]], [0, 1]), ([[3.0]], [2])]
    >>> len(loader), loader.epoch
    (2, 1)
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        drop_last: bool = False,
        workers: int = 0,
        prefetch: int = 2,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        generator: Generator | None = None,
        seed: int | None = None,
        device: Devices | None = None,
        num_workers: int | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        worker_init_fn: Callable[[int], Any] | None = None,
        prefetch_factor: int | None = None,
        timeout: float = 0,
        pin_memory: bool = False,
        persistent_workers: bool = False,
        in_order: bool = True,
        multiprocessing_context: Any = None,
        rank: int = 0,
        world: int = 1,
        mesh: Mesh | None = None,
        axis: str = "data",
    ) -> None:
        if multiprocessing_context is not None:
            raise NotImplementedError(
                "DataLoader: workers are threads, which have no multiprocessing_context"
            )
        if not in_order:
            raise NotImplementedError(
                "DataLoader: in_order=False; batches come in the order of their examples"
            )
        if timeout < 0:
            raise ValueError(f"timeout must be at least 0 seconds, not {timeout}")
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: a sampler gives the order; shuffle=True cannot be combined with it")
        if batch_sampler is not None and (batch_size != 1 or shuffle or drop_last or sampler is not None):
            raise ValueError(
                "DataLoader: a batch_sampler makes the batches; batch_size, shuffle, sampler and drop_last "
                "do not go with it"
            )
        self.worker_init_fn, self.timeout = worker_init_fn, timeout
        prefetch = prefetch if prefetch_factor is None else prefetch_factor
        self.dataset, self.collate_fn, self.device = dataset, collate_fn, device
        self.workers = count("workers", workers if num_workers is None else num_workers, 0)
        self.prefetch = count("prefetch", prefetch)
        self._columns = _columns(dataset)
        if collate_fn is not None and self._columns:
            raise TypeError(
                "collate_fn puts single examples together; arrays are read in whole batches: change those"
            )
        length = _length(dataset, self._columns)
        self.order: ShuffledOrder | SampledOrder
        if batch_sampler is not None:
            self.order = SampledOrder(batch_sampler, None, False)
        elif sampler is not None:
            self.order = SampledOrder(sampler, count("batch_size", batch_size), drop_last)
        else:
            if seed is None:
                seed = _drawn_seed(generator) if shuffle else 0
            self.order = ShuffledOrder(length, batch_size, seed, shuffle, drop_last)

        if mesh is not None:
            if world != 1 or device is not None:
                raise ValueError("DataLoader: a mesh says which share is read and where batches are, alone")
            rank, world = share_of(mesh, axis)
        if not 0 <= rank < world:
            raise ValueError(f"DataLoader: rank {rank} is not a rank of a world of {world}")
        self.rank, self.world, self.mesh, self.axis = rank, world, mesh, axis
        parts = world if mesh is None else mesh.size(axis)
        if parts > 1 and isinstance(self.order, ShuffledOrder):
            left = length % batch_size
            for some in (batch_size, 0 if drop_last else left):
                if 0 < some < parts:
                    raise ValueError(
                        f"DataLoader: a batch of {some} examples has none for some of {parts} ranks: take "
                        "another batch_size, or leave out a smaller last batch with drop_last=True"
                    )

    @property
    def epoch(self) -> int:
        """How many epochs are done."""
        return self.order.epoch

    @property
    def position(self) -> int:
        """How many examples of this epoch were given out, to all ranks together."""
        return self.order.position

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return len(self.order)

    def __iter__(self) -> Iterator[Any]:
        device = Device.canonicalize(self.device)
        # What an outer loop is given moves `order`; what is made ahead is read off a copy of it.
        ahead = copy.copy(self.order)
        batches = self._plain(ahead, device) if self.workers == 0 else self._in_threads(ahead, device)
        epoch = self.order.epoch
        for indices, batch in batches:
            self.order.epoch, self.order.position = epoch, self.order.position + len(indices)
            yield batch
        self.order.epoch, self.order.position = epoch + 1, 0

    def state_dict(self) -> dict[str, Any]:
        """Where it is, and what it is an order of: numbers that JSON can say."""
        return self.order.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from where another loader of as many examples was."""
        self.order.load_state_dict(state_dict)

    def _plain(self, order: ShuffledOrder | SampledOrder, device: Devices) -> Iterator[tuple[Any, Any]]:
        for indices in order:
            yield indices, self._batch(indices, device)

    def _in_threads(self, order: ShuffledOrder | SampledOrder, device: Devices) -> Iterator[tuple[Any, Any]]:
        """The same batches in the same order, made by threads ahead of the loop."""
        from concurrent.futures import ThreadPoolExecutor

        numbers = itertools.count()
        begin = self.worker_init_fn
        starts = None if begin is None else lambda: begin(next(numbers))
        pool = ThreadPoolExecutor(self.workers, "lazygrad-data", starts)
        begun: collections.deque[Any] = collections.deque()
        try:
            for indices in order:
                begun.append((indices, pool.submit(self._batch, indices, device)))
                if len(begun) > self.workers * self.prefetch:
                    first, made = begun.popleft()
                    yield first, made.result(self.timeout or None)
            while begun:
                first, made = begun.popleft()
                yield first, made.result(self.timeout or None)
        finally:  # also where the loop is left early
            pool.shutdown(wait=False, cancel_futures=True)

    def _batch(self, indices: Any, device: Devices) -> Any:
        if self.world > 1:
            begin, end = even_spans(len(indices), self.world)[self.rank]
            batch = self._examples(indices[begin:end], device)
        else:
            batch = self._examples(indices, device)
        if self.mesh is None:
            return batch
        mesh, axis, count = self.mesh, self.axis, len(indices)
        return map_tensors(batch, lambda part: from_local(part, mesh, axis, count))

    def _examples(self, indices: Any, device: Devices) -> Any:
        if self._columns:
            return _map(self.dataset, lambda column: _rows(column, indices, device))
        examples = []
        for index in indices.tolist():
            try:
                examples.append(self.dataset[index])
            except Exception as error:
                error.add_note(f"while a DataLoader read example {index} of {len(self.dataset)}")
                raise
        try:
            return collate(examples, device) if self.collate_fn is None else self.collate_fn(examples)
        except Exception as error:
            error.add_note(f"while a DataLoader put the examples {_few(indices)} together")
            raise


def _few(indices: Any) -> str:
    shown = ", ".join(map(str, indices.tolist()[:8]))
    return shown if len(indices) <= 8 else f"{shown}, ..."


def _is_column(value: Any) -> bool:
    """Whether something is an array of examples, and not an example or a list of them."""
    return isinstance(value, Tensor) or (hasattr(value, "__array__") and hasattr(value, "shape"))


def _columns(dataset: Any) -> list[Any]:
    """The arrays that a dataset consists of; none where it is an object with examples."""
    if _is_column(dataset):
        return [dataset]
    parts = list(dataset.values()) if isinstance(dataset, Mapping) else dataset
    if not isinstance(dataset, (tuple, Mapping)) or not parts:
        return []
    for part in parts:
        if not _is_column(part):
            raise TypeError(
                f"a tuple or dict of a DataLoader holds arrays and Tensors, not {type(part).__name__}; "
                "give single examples as a list, or as an object with __len__ and __getitem__"
            )
    return list(parts)


def _length(dataset: Any, columns: list[Any]) -> int:
    if not columns:
        if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            raise TypeError(
                f"a DataLoader takes arrays, or an object with __len__ and __getitem__, not a "
                f"{type(dataset).__name__}; list(...) of what can only be walked through is one"
            )
        length = len(dataset)
    else:
        lengths = [column.shape[0] if len(column.shape) else -1 for column in columns]
        if -1 in lengths:
            raise ValueError("an array of a DataLoader needs an axis of examples, not shape ()")
        if len(set(lengths)) > 1:
            raise ValueError(
                f"the arrays of a DataLoader must have the same number of examples, not {lengths}"
            )
        length = lengths[0]
    if length == 0:
        raise ValueError("a DataLoader needs at least one example")
    return length


def _map(value: Any, function: Callable[[Any], Any]) -> Any:
    """A function of each array of a dataset, in its form."""
    if _is_column(value):
        return function(value)
    if isinstance(value, Mapping):
        return {key: function(part) for key, part in value.items()}
    made = [function(part) for part in value]
    return type(value)(*made) if hasattr(value, "_fields") else tuple(made)


def _rows(column: Any, indices: Any, device: Devices) -> Tensor:
    """Some examples of an array, in memory."""
    if isinstance(column, Tensor):
        batch: Tensor = column[Tensor(indices, device=_device_of(column))]
        return batch.to(device).realize()
    import numpy as np

    return Tensor(np.asarray(column)[indices], device=device).realize()


def _device_of(column: Tensor) -> Devices:
    return column.device if Device.runs_kernels(column.device) else Device.DEFAULT


def collate(examples: list[Any], device: Devices | None = None) -> Any:
    """Examples put together: arrays, tensors and numbers as one Tensor with a first axis more.

    Of tuples and dicts the parts are put together; texts, bytes and None stay a list.
    """
    first = examples[0]
    for number, example in enumerate(examples):
        alike = isinstance(example, type(first)) or isinstance(first, type(example))
        if not alike and not (_is_number(first) and _is_number(example)):
            kinds = f"{type(first).__name__} and {type(example).__name__}"
            raise TypeError(
                f"examples of one batch must be of one kind, not {kinds} (the first and number {number})"
            )
    if isinstance(first, Tensor):
        _need_one_shape([x.shape for x in examples])
        return Tensor.stack(*examples).to(device).realize()
    if isinstance(first, (str, bytes)) or first is None:
        return examples
    if isinstance(first, Mapping):
        return {key: collate([x[key] for x in examples], device) for key in first}
    if isinstance(first, (tuple, list)):
        if len({len(x) for x in examples}) > 1:
            raise ValueError(
                f"examples of one batch must have the same number of parts, not {[len(x) for x in examples]}"
            )
        made = [collate(list(parts), device) for parts in zip(*examples, strict=True)]
        return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)
    import numpy as np

    if _is_number(first):
        return Tensor(examples, device=device).realize()
    if not (hasattr(first, "__array__") and hasattr(first, "shape")):
        raise TypeError(
            f"a DataLoader cannot batch examples of type {type(first).__name__}: give a collate_fn"
        )
    _need_one_shape([x.shape for x in examples])
    return Tensor(np.stack([np.asarray(x) for x in examples]), device=device).realize()


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _need_one_shape(shapes: list[Any]) -> None:
    if len(set(map(tuple, shapes))) > 1:
        different = sorted(set(map(tuple, shapes)))
        raise ValueError(
            f"examples of one batch must have the same shape, not {' and '.join(map(str, different[:3]))}; "
            "a collate_fn may pad them"
        )


def _drawn_seed(generator: Generator | None) -> int:
    """A seed that follows from where the random numbers stand."""
    if generator is not None:
        drawn = Tensor.randint(1, high=1 << 32, dtype="uint32", generator=generator).item()
        return int(drawn)
    seed, base = draw(1)
    return int(random_words(seed, base, 1)[0]) & 0xFFFFFFFF
