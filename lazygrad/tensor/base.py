"""The core of Tensor: a graph node, what memory it is a view of, how it is realized, read and written.

The families of methods (arithmetic, movement, ...) are mixins over this class.
"""

from __future__ import annotations

import contextlib
import pathlib
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..device import Buffer, BufferSpec, Device
from ..dtype import (
    ConstType,
    DType,
    default_float,
    default_int,
    dtypes,
    from_numpy_name,
    least_upper_dtype,
    numpy_name,
    to_dtype,
)
from ..engine.realize import allocate_empty
from ..engine.realize import realize as realize_nodes
from ..gradient import gradient as gradient_of
from ..ir.index import bounds, evaluate, sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.items import ScheduleItem, create_schedule
from ..schedule.kernelize import kernelize as kernelize_nodes
from ..schedule.versions import buffer_of, device_of, empty_buffer, latest, mark_buffer, new_buffer, peel
from ..shape.movement import base_and_tracker, broadcast_to, reshape, shrink
from ..shape.rules import shape_of
from .storage import Storage, base_of, has_pad, is_view

if TYPE_CHECKING:
    import numpy as np

    from .. import Tensor

_live: dict[int, _LiveRef] = {}


class _LiveRef(weakref.ref["TensorBase"]):
    """A weak reference that leaves the registry of tensors by itself."""

    __slots__ = ("key",)
    key: int


def _forget(ref: weakref.ref[TensorBase]) -> None:
    key = ref.key  # type: ignore[attr-defined]
    if _live.get(key) is ref:
        del _live[key]


class _Mode(threading.local):
    """What holds in this thread: whether gradients are recorded, whether layers train."""

    grad: bool = True
    training: bool = False


mode = _Mode()


class no_grad(contextlib.ContextDecorator):
    """Within it (or within a function it decorates) nothing is recorded for gradients."""

    enabled = False

    def __init__(self) -> None:
        self._outer: list[bool] = []

    def __enter__(self) -> Self:
        self._outer.append(mode.grad)
        mode.grad = self.enabled
        return self

    def __exit__(self, *exc: object) -> None:
        mode.grad = self._outer.pop()


class enable_grad(no_grad):
    """The opposite of `no_grad`."""

    enabled = True


class _TrainingMode(contextlib.ContextDecorator):
    """`Tensor.train()` and `Tensor.test()`: set the mode of this thread and restore it."""

    wanted = True

    def __init__(self, value: bool | None = None) -> None:
        self.value = self.wanted if value is None else value
        self._outer: list[bool] = []

    def __enter__(self) -> Self:
        self._outer.append(mode.training)
        mode.training = self.value
        return self

    def __exit__(self, *exc: object) -> None:
        mode.training = self._outer.pop()


class _TestMode(_TrainingMode):
    wanted = False


class _TrainingFlag(type):
    """`Tensor.training` reads and sets the mode of this thread."""

    @property
    def training(cls) -> bool:
        return mode.training

    @training.setter
    def training(cls, value: bool) -> None:
        mode.training = bool(value)


class TensorBase(metaclass=_TrainingFlag):
    """A lazy array: a node of the tensor graph. Nothing runs until its values are asked for.

    data           a number, a (nested) list, a numpy array, bytes (uint8), a path (the bytes of a file,
                   lazily), a Tensor, or None (an empty tensor of shape (0,))
    device         where it lives; the default device if not given
    dtype          its element type; that of the data if not given
    requires_grad  whether `backward` fills its `grad`
    """

    __slots__ = ("__weakref__", "_leaf", "_requires_grad", "_storage", "_uop", "grad")
    _uop: UOp
    _storage: Storage | None
    grad: Tensor | None
    train: ClassVar[type[_TrainingMode]] = _TrainingMode
    test: ClassVar[type[_TestMode]] = _TestMode

    def __init__(
        self,
        data: Any = None,
        device: str | None = None,
        dtype: DType | str | None = None,
        requires_grad: bool | None = None,
    ) -> None:
        wanted = None if dtype is None else to_dtype(dtype)
        node = _node_of(data, Device.canonicalize(device), device is not None, wanted)
        self._setup(node, bool(requires_grad), leaf=True)
        self._claim_memory()
        if requires_grad and not dtypes.is_float(self.dtype):
            raise TypeError(f"only float tensors have gradients, not {self.dtype}")

    def _setup(self, node: UOp, requires_grad: bool, leaf: bool) -> None:
        self._requires_grad = requires_grad
        self._leaf = leaf
        self.grad = None
        self._storage = None
        self._uop = node
        ref = _LiveRef(self, _forget)
        ref.key = id(self)
        _live[ref.key] = ref

    @classmethod
    def _make(cls, node: UOp, *parents: TensorBase, view: bool = True) -> Tensor:
        """The result of an operation on some tensors; `view=False`: a value, even if nothing is computed."""
        tracks = False
        for parent in parents:
            if parent._requires_grad:
                tracks = True
        if tracks and not (mode.grad and dtypes.is_float(node.dtype)):
            node, tracks = UOp(Ops.DETACH, node.dtype, (node,)), False
        made: Any = object.__new__(cls)
        made._setup(node, tracks, leaf=False)
        if node.op in _MAY_SHARE or node.op is Ops.PAD:
            made._join_memory(parents if view else (None,))
        return made  # type: ignore[no-any-return]

    def _join_memory(self, parents: tuple[TensorBase | None, ...]) -> None:
        """Be a view of the parent's memory where movement allows; else be known as a reader of it."""
        node = self._uop
        if not parents:
            self._claim_memory()
            return
        storage = parents[0]._memory() if parents[0] is not None else None
        if storage is not None and is_view(node) and base_of(node) is storage.version:
            self._storage = storage
            storage.add(self)
        else:
            self._note_reader()

    def _unary(self, node: UOp) -> Tensor:
        """The result of an operation on this tensor alone."""
        return type(self)._make(node, self)

    # *** what it is

    @property
    def uop(self) -> UOp:
        """The node of the tensor graph that this tensor stands for now."""
        if "becomes" in base_of(self._uop).facts and not (self._requires_grad and not self._leaf):
            self._uop = latest(self._uop)
            if self._storage is None:
                self._note_reader()
        return self._uop

    def _note_reader(self) -> None:
        """Be known to the version of memory that this value is read from without being a view of it."""
        base = base_of(self._uop)
        if base.op in (Ops.BUFFER, Ops.ASSIGN):
            readers = [ref for ref in base.facts.get("readers", ()) if ref() is not None]
            base.facts["readers"] = [*readers, weakref.ref(self)]

    @property
    def lazydata(self) -> UOp:
        """The older name of `uop`."""
        return self.uop

    def _value(self) -> UOp:
        """The node that holds the value: what `uop` has become, also where `uop` is kept for gradients."""
        return latest(self.uop)

    def _memory(self) -> Storage | None:
        """The storage that this tensor is a view of; None where it is not (yet) in memory."""
        self.uop  # noqa: B018 - follow what has been computed since
        if self._storage is not None:
            self._storage.refresh()
        return self._storage

    def _claim_memory(self) -> None:
        """Be a view of the memory that holds the value: what is realized can be written, and views see it."""
        node = self.uop
        if self._storage is None and is_view(node):
            self._storage = Storage(base_of(node))
            self._storage.add(self)

    def _needs_memory(self) -> UOp:
        """The node to compute so that this tensor is in memory: padding and bare constants are stored too."""
        node = self._value()
        if base_of(node).op is Ops.CONST or has_pad(node):
            node = UOp(Ops.CONTIGUOUS, node.dtype, (node,))
            if self._leaf or not self._requires_grad:
                self._uop = node
        return node

    @property
    def shape(self) -> tuple[sint, ...]:
        return shape_of(self._uop)

    @property
    def dtype(self) -> DType:
        return self._uop.dtype

    @property
    def device(self) -> str:
        return device_of(self._uop) or Device.DEFAULT

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    def numel(self) -> sint:
        """The number of elements."""
        total: sint = 1
        for size in self.shape:
            total = size * total if isinstance(size, UOp) else total * size
        return total

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one axis of it."""
        return self.shape if dim is None else self.shape[dim]

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._static_numel() * self.dtype.itemsize

    def _static_numel(self) -> int:
        count = self.numel()
        return bounds(count)[1] if isinstance(count, UOp) else count

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through this tensor. Set it on a tensor you made to have `backward`
        fill `grad`."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, value: bool = True) -> Self:
        """Set `requires_grad` and return the tensor."""
        if value and not dtypes.is_float(self.dtype):
            raise TypeError(f"only float tensors have gradients, not {self.dtype}")
        self._requires_grad = bool(value)
        self._leaf = True
        return self

    def __repr__(self) -> str:
        node = self._value()
        base = base_of(node)
        held = base.facts.get("buffer") if base.op is Ops.BUFFER else None
        grad = self.grad.uop if self.grad is not None else None
        shape = self.shape
        short = repr(self.dtype)[len("dtypes.") :]
        node_text = f"<UOp {self.device} {shape} {short} ({base.op!r}, {held})>"
        return f"<Tensor {node_text} on {self.device} with grad {grad}>"

    def __hash__(self) -> int:
        return id(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        first = self.shape[0]
        if isinstance(first, UOp):
            raise TypeError(f"len() of a symbolic size {first}; use .shape[0]")
        return first

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise ValueError(
                f"the truth of a tensor of shape {self.shape} is ambiguous; "
                "use .any() or .all(), or compare one element"
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        value = self.item()
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"only an integer tensor is an index, not {self.dtype}")
        return value

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)

    def __iter__(self) -> Iterator[Tensor]:
        for position in range(len(self)):
            yield self[position]  # type: ignore[index]

    # *** running

    def kernelize(self, *others: TensorBase) -> Self:
        """Plan: cut the graph below these tensors into kernels, make unallocated buffers. Runs nothing."""
        tensors: tuple[TensorBase, ...] = (self, *others)
        kernelize_nodes([t._needs_memory() for t in tensors], _pending_nodes)
        for tensor in tensors:
            tensor._claim_memory()
        return self

    def schedule_with_vars(self, *others: TensorBase) -> tuple[list[ScheduleItem], dict[UOp, int]]:
        """The kernels that computing these tensors takes, in order, and the values of their Variables."""
        self.kernelize(*others)
        items = create_schedule([t._value() for t in (self, *others)])
        values: dict[UOp, int] = {}
        for item in items:
            values.update(item.var_vals)
        return items, values

    def schedule(self, *others: TensorBase) -> list[ScheduleItem]:
        """The kernels that computing these tensors takes, in order."""
        return self.schedule_with_vars(*others)[0]

    def realize(self, *others: TensorBase) -> Self:
        """Compute these tensors now, together, and return the first."""
        tensors: tuple[TensorBase, ...] = (self, *others)
        realize_nodes([t._needs_memory() for t in tensors], _pending_nodes)
        for tensor in tensors:  # stand for the memory, and let go of the graph
            tensor._claim_memory()
        return self

    @property
    def is_realized(self) -> bool:
        """Whether its memory holds its values already."""
        base = base_of(self._value())
        return base.op is Ops.BUFFER or base.op is Ops.CONST

    # *** reading

    def _host_buffer(self) -> tuple[Buffer, Any]:
        """This tensor's memory on the host, and the tracker that finds its elements there."""
        plain: TensorBase = self
        value = self._value()
        if base_of(value).op in (Ops.CONST, Ops.IOTA) or not base_and_tracker(peel(value))[1].contiguous:
            plain = self._unary(UOp(Ops.CONTIGUOUS, self.dtype, (self.uop,)))
        realize_nodes([plain._value()], _pending_nodes)
        base, tracker = base_and_tracker(peel(plain._value()))
        buffer = buffer_of(base)
        if not buffer.is_allocated:
            allocate_empty(buffer)
        return buffer.ensure_allocated(), tracker

    def _host_array(self) -> np.ndarray[Any, Any]:
        """The elements, in memory that belongs to the tensor; bf16 and fp8 as the integers of their bits."""
        import numpy as np

        numpy_dtype = np.dtype(numpy_name(self.dtype))
        shape = tuple(_bound_size(size) for size in self.shape)
        if 0 in shape:
            return np.empty(shape, numpy_dtype)
        buffer, tracker = self._host_buffer()
        flat = np.frombuffer(buffer.as_buffer(), numpy_dtype)
        offset = tracker.views[-1].offset
        count = 1
        for size in shape:
            count *= size
        return flat[offset : offset + count].reshape(shape)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A writable copy as a numpy array; bfloat16 and fp8 come as float32."""
        import numpy as np

        source: TensorBase = self.cast(dtypes.float32) if self.dtype.fmt is None else self
        array = source._host_array()
        return np.array(array) if array.base is not None else array

    def data(self) -> memoryview:
        """The elements as a read-only memoryview of the tensor's shape, without a copy where the memory is
        the host's."""
        source: TensorBase = self.cast(dtypes.float32) if self.dtype.fmt is None else self
        view = source._host_array().view()
        view.flags.writeable = False
        return view.data

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a bare number for a 0-d tensor."""
        return self.numpy().tolist()

    def item(self) -> ConstType:
        """The value of a tensor of one element as a Python number."""
        if self.numel() != 1:
            raise ValueError(f"item() needs one element, this tensor has shape {self.shape}")
        value: ConstType = self.numpy().reshape(()).item()
        return value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        import numpy as np

        array = np.asarray(self.data()) if self.dtype.fmt is not None else self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return np.array(array) if copy else array

    def __dlpack__(self, **kwargs: Any) -> Any:
        """The memory, shared without a copy through DLPack (the tensor is computed first)."""
        if self.dtype.fmt is None:
            raise BufferError(f"DLPack export of {self.dtype} is not supported; cast it first")
        return self._host_array().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU: every device of this release has host memory

    @classmethod
    def from_dlpack(cls, source: Any) -> Tensor:
        """A tensor that shares the memory of any object with `__dlpack__` on the CPU (torch, numpy, ...)."""
        import numpy as np

        return cls._adopt(np.from_dlpack(source))

    @classmethod
    def from_numpy(cls, array: np.ndarray[Any, Any]) -> Tensor:
        """A CPU tensor that shares the array's memory: writes through either are seen by both."""
        return cls._adopt(array)

    @classmethod
    def _adopt(cls, array: np.ndarray[Any, Any]) -> Tensor:
        import numpy as np

        if not array.flags.c_contiguous:
            raise ValueError(
                "only a contiguous array can be shared without a copy; use Tensor(array) to copy it"
            )
        dtype = from_numpy_name(array.dtype.name)
        flat = np.frombuffer(array, dtype=array.dtype) if array.flags.writeable else array.reshape(-1)
        node = new_buffer("CPU", array.size, dtype)
        mark_buffer(node, Buffer("CPU", array.size, dtype).allocate(opaque=flat))
        made: Any = object.__new__(cls)
        made._setup(reshape(node, array.shape), False, leaf=True)
        made._claim_memory()
        return made  # type: ignore[no-any-return]

    # *** writing

    def _set(self, node: UOp) -> None:
        """Stand for another node from now on."""
        self._uop = node
        self._storage = None
        self._note_reader()

    def replace(self, other: TensorBase) -> Self:
        """Stand for the same value as `other` from now on (no memory is written)."""
        if self.shape != other.shape:
            raise ValueError(f"replace needs shape {self.shape}, not {other.shape}")
        self._set(other.uop)
        return self

    def assign(self, value: Any) -> Self:
        """Write `value` into this tensor's memory; views of the same memory see it. Lazy, like everything.

        value  a tensor of this shape (or one that broadcasts to it), device and dtype; or a number

        Values computed from this tensor before the write keep what they read.
        """
        source: Any = (
            value
            if isinstance(value, TensorBase)
            else type(self)(value, device=self.device, dtype=self.dtype)
        )
        if source is self:
            return self
        if source.device != self.device and source._device_known():
            raise ValueError(
                f"assign needs a value on {self.device}, not on {source.device}; move it with .to()"
            )
        if source.dtype is not self.dtype:
            raise TypeError(f"assign needs a value of {self.dtype}, not {source.dtype}; cast it first")
        try:
            node = broadcast_to(source.uop, self.shape)
        except ValueError:
            raise ValueError(f"assign needs shape {self.shape}, not {source.shape}") from None
        if self._requires_grad and not self._leaf and mode.grad:
            self._set(node)
            self._requires_grad = source._requires_grad
            return self
        if source._requires_grad:
            node = UOp(Ops.DETACH, node.dtype, (node,))
        storage = self._memory()
        if storage is None:
            self._set(node)
        else:
            self._write(storage, node)
        return self

    def _device_known(self) -> bool:
        return device_of(self._uop) is not None

    @staticmethod
    def _flat_size(version: UOp) -> int:
        while version.op is Ops.ASSIGN:
            version = version.src[0]
        size: int = version.arg
        return size

    def _into_memory(self) -> Storage:
        """Give a tensor that is not in memory yet a buffer that it will be stored in."""
        storage = self._memory()
        if storage is None:
            shape = self.shape
            buffer = new_buffer(self.device, self._static_numel(), self.dtype)
            value = reshape(self.uop, (self.numel(),))
            self._uop = reshape(UOp(Ops.ASSIGN, self.dtype, (buffer, value)), shape)
            self._claim_memory()
            storage = self._storage
            if storage is None:
                raise RuntimeError("a stored tensor is a view of its buffer")
        return storage

    def _write(self, storage: Storage, node: UOp) -> None:
        """Make a new version of the storage with `node` written where this tensor looks."""
        version = storage.version
        base, tracker = base_and_tracker(peel(self.uop))
        if base is not version:
            raise RuntimeError("a view stands on its storage's newest version")
        if any(
            stride == 0 and size != 1
            for v in tracker.views
            for size, stride in zip(v.shape, v.strides, strict=True)
        ):
            raise ValueError(
                f"cannot write to an expanded tensor of shape {self.shape}: several elements share memory"
            )
        _keep_old_values(version)
        size = shape_of(version)[0]
        whole = tracker.contiguous and tracker.size == size
        if storage.is_shared() or _is_held(version):  # others go on reading the old memory
            target = new_buffer(self.device, self._flat_size(version), self.dtype)
            if not whole:
                target = UOp(Ops.ASSIGN, self.dtype, (target, version))
        else:
            target = version
        if whole:
            written = UOp(Ops.ASSIGN, self.dtype, (target, reshape(node, (tracker.size,))))
        else:
            written = UOp(Ops.ASSIGN, self.dtype, (target, node), tracker)
        storage.move_to(written)

    # *** copies and casts

    def contiguous(self) -> Tensor:
        """The same values, stored row by row in memory of their own (the tensor itself where it is so)."""
        node = self.uop
        if node.op is Ops.CONTIGUOUS:
            return self  # type: ignore[return-value]
        if is_view(node):
            base, tracker = base_and_tracker(peel(latest(node)))
            if tracker.contiguous and tracker.size == shape_of(base)[0]:
                return self  # type: ignore[return-value]
        return self._unary(UOp(Ops.CONTIGUOUS, self.dtype, (node,)))

    def clone(self) -> Tensor:
        """A copy in memory of its own."""
        return self._unary(UOp(Ops.CONTIGUOUS, self.dtype, (self.uop,), "clone"))

    def detach(self) -> Tensor:
        """The same value, through which no gradient flows."""
        made = self._unary(UOp(Ops.DETACH, self.dtype, (self.uop,)))
        made._requires_grad = False
        return made

    def to(self, device: str | None) -> Tensor:
        """A copy on another device; the tensor itself if it is there already."""
        name = Device.canonicalize(device)
        if name == self.device:
            return self  # type: ignore[return-value]
        return self._unary(_copied(self.uop, name))

    def to_(self, device: str | None) -> Self:
        """Move this tensor to another device, in place."""
        moved = self.to(device)
        if moved is not self:
            self._set(moved.uop)
        return self

    def cast(self, dtype: DType | str) -> Tensor:
        """The values in another dtype: float → int truncates and saturates, NaN → 0; integers wrap."""
        wanted = to_dtype(dtype)
        if wanted is self.dtype:
            return self  # type: ignore[return-value]
        return self._unary(self.uop.cast(wanted))

    def bitcast(self, dtype: DType | str) -> Tensor:
        """The same bits read as another dtype of the same size."""
        wanted = to_dtype(dtype)
        if wanted.itemsize != self.dtype.itemsize:
            raise ValueError(
                f"bitcast from {self.dtype} needs a dtype of {self.dtype.itemsize} bytes, not {wanted}"
            )
        return self._unary(self.uop.bitcast(wanted))

    def _lift(self, other: Any) -> Tensor:
        """`other` as a tensor on this device; a number in the weakest dtype that fits this tensor's."""
        if isinstance(other, TensorBase):
            return other  # type: ignore[return-value]
        if isinstance(other, (bool, int, float)):
            return type(self)._make(constant(other, self._scalar_dtype(other), self.device))
        made: Tensor = type(self)(other, device=self.device)  # type: ignore[assignment]
        return made

    def _scalar_dtype(self, value: ConstType) -> DType:
        """The dtype a bare Python number takes beside this tensor (weak promotion, as in JAX and PyTorch)."""
        mine = self.dtype
        if isinstance(value, bool) or dtypes.is_float(mine):
            return mine if dtypes.is_float(mine) else least_upper_dtype(mine, dtypes.bool)
        if isinstance(value, float):
            return default_float()
        return mine if dtypes.is_int(mine) else default_int()

    # *** gradients

    def gradient(self, *targets: TensorBase, gradient: TensorBase | None = None) -> list[Tensor]:
        """The gradients of this scalar with respect to the targets; they can be differentiated again.

        gradient  what flows in from above, of this tensor's shape; needed where this tensor is no scalar
        """
        if gradient is None:
            if self.numel() != 1:
                raise ValueError(
                    f"the gradient of a tensor of shape {self.shape} needs gradient=, of that shape"
                )
            seed = broadcast_to(constant(1.0, self.dtype, self.device), self.shape)
        else:
            if gradient.shape != self.shape:
                raise ValueError(f"gradient= has shape {gradient.shape}, this tensor {self.shape}")
            seed = gradient.uop.cast(self.dtype)
        wanted = [target.uop for target in targets]
        found = gradient_of(self.uop, seed, wanted)
        results = []
        for target, node in zip(targets, wanted, strict=True):
            if node not in found:
                raise ValueError(
                    f"the result does not depend (differentiably) on the tensor of shape {target.shape}"
                )
            parents = [t for t in (self, gradient) if t is not None]
            results.append(type(self)._make(found[node], *parents))
        return results

    def backward(self, gradient: TensorBase | None = None) -> Self:
        """Add this scalar's gradient to `grad` of every tensor that it depends on and that requires it."""
        if not self._requires_grad:
            raise RuntimeError(
                "backward() on a tensor that requires no gradient: no tensor it depends on has requires_grad"
            )
        if gradient is None and self.numel() != 1:
            raise ValueError(f"backward() of a tensor of shape {self.shape} needs gradient=, of that shape")
        seed = (
            broadcast_to(constant(1.0, self.dtype, self.device), self.shape)
            if gradient is None
            else broadcast_to(gradient.uop.cast(self.dtype), self.shape)
        )
        below = set(self.uop.toposort())
        leaves: dict[UOp, list[TensorBase]] = {}
        for tensor in live_tensors():
            if tensor._leaf and tensor._requires_grad:
                node = tensor.uop
                source = node if node in below else _recorded_as(node, below)
                if source is not None:
                    leaves.setdefault(source, []).append(tensor)
        found = gradient_of(self.uop, seed, list(leaves))
        for node, tensors in leaves.items():
            if node not in found:
                continue
            for tensor in tensors:
                grad = type(self)._make(UOp(Ops.DETACH, node.dtype, (found[node],)))
                tensor.grad = grad if tensor.grad is None else tensor.grad + grad
        return self


_MAY_SHARE = frozenset(
    (Ops.RESHAPE, Ops.EXPAND, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP, Ops.DETACH, Ops.BUFFER, Ops.ASSIGN)
)


def live_tensors() -> list[TensorBase]:
    """Every tensor that exists now."""
    found = [ref() for ref in list(_live.values())]
    return [tensor for tensor in found if tensor is not None]


def _pending_nodes() -> list[UOp]:
    """The values that somebody holds and that are not computed yet."""
    return [node for node in (t._value() for t in live_tensors()) if base_of(node).op is not Ops.BUFFER]


def _recorded_as(node: UOp, graph: set[UOp]) -> UOp | None:
    """The node under which a value that has been realized since stands in an older graph."""
    base = base_of(node)
    for ref in base.facts.get("values", ()):
        recorded = ref()
        if recorded is not None and recorded in graph and latest(recorded) is node:
            return recorded  # type: ignore[no-any-return]
    return None


def _keep_old_values(version: UOp) -> None:
    """Values read from a version that is about to end, and no views of it, are copied before the write."""
    for ref in version.facts.pop("readers", ()):
        tensor = ref()
        if tensor is not None and tensor._storage is None and base_of(tensor._uop) is version:
            tensor._uop = UOp(Ops.CONTIGUOUS, tensor._uop.dtype, (tensor._uop,))


def _is_held(version: UOp) -> bool:
    """Whether memory of this version was handed out (numpy, DLPack): those readers must not see the write."""
    buffer: Buffer | None = version.facts.get("buffer")
    return buffer is not None and buffer.base.exported > 0


def _bound_size(size: sint) -> int:
    """The size that a symbolic dimension has now."""
    if not isinstance(size, UOp):
        return size
    from_binds: dict[UOp, int] = {}
    for node in size.toposort():
        if node.op is Ops.BIND:
            from_binds[node] = node.src[1].arg
        elif node.op is Ops.DEFINE_VAR:
            from_binds.setdefault(node, node.arg[2])
    return evaluate(size, from_binds)


# *** from data to a node


def constant(value: ConstType, dtype: DType, device: str) -> UOp:
    """A 0-d constant on a device."""
    return UOp(Ops.CONST, dtype, (UOp(Ops.DEVICE, arg=device),), value)


def _copied(node: UOp, device: str) -> UOp:
    return UOp(Ops.COPY, node.dtype, (node, UOp(Ops.DEVICE, arg=device)))


def _node_of(data: Any, device: str, device_given: bool, dtype: DType | None) -> UOp:
    if isinstance(data, TensorBase):
        node = data.uop
        if device_given and data.device != device:
            node = _copied(node, device)
        return node if dtype is None else node.cast(dtype)
    if isinstance(data, UOp):
        if data.dtype is dtypes.index:
            return UOp(Ops.CAST, dtype or default_int(), (data,))
        return data if dtype is None or dtype is data.dtype else UOp(Ops.CAST, dtype, (data,))
    if isinstance(data, (bool, int, float)):
        return constant(data, dtype or dtypes.from_py(data), device)
    if data is None:
        return empty_buffer(device, 0, dtype or default_float())
    if isinstance(data, pathlib.Path):
        return _file_node(data, dtype)
    if isinstance(data, (bytes, bytearray, memoryview)):
        import numpy as np

        array = np.frombuffer(data, dtype=np.uint8)
        return _array_node(array, device, dtype or dtypes.uint8)
    if isinstance(data, (list, tuple)):
        return _list_node(data, device, dtype)
    if type(data).__module__.partition(".")[0] == "numpy" or hasattr(data, "__array__"):
        import numpy as np

        return _array_node(np.asarray(data), device, dtype)
    raise TypeError(f"cannot make a Tensor from {data!r} of type {type(data).__name__}")


def _list_node(data: Sequence[Any], device: str, dtype: DType | None) -> UOp:
    import numpy as np

    leaves: list[Any] = []
    stack: list[Any] = [data]
    while stack:
        value = stack.pop()
        if isinstance(value, (list, tuple)):
            stack.extend(value)
        else:
            leaves.append(value)
    for leaf in leaves:
        if isinstance(leaf, TensorBase):
            raise TypeError("a list of tensors becomes a tensor with Tensor.stack(tensors)")
        if not isinstance(leaf, (bool, int, float, np.generic)):
            raise TypeError(f"cannot make a Tensor from {leaf!r} of type {type(leaf).__name__} in a list")
    if dtype is None:
        if leaves and all(isinstance(leaf, (bool, np.bool_)) for leaf in leaves):
            dtype = dtypes.bool
        elif leaves and all(isinstance(leaf, (bool, int, np.integer)) for leaf in leaves):
            dtype = default_int()
        else:
            dtype = default_float()
    _check_rectangular(data)
    wide = "float64" if dtypes.is_float(dtype) else "bool" if dtype is dtypes.bool else None
    try:
        array = np.array(data, dtype=wide)
        if wide is None:
            array = _exact_ints(array, dtype, leaves)
    except OverflowError:
        raise OverflowError(f"an integer of the list does not fit into {dtype}; give dtype=") from None
    return _array_node(array, device, dtype)


def _exact_ints(array: Any, dtype: DType, leaves: list[Any]) -> Any:
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    for leaf in leaves:
        if not low <= leaf <= high:
            raise OverflowError
    return array.astype(numpy_name(dtype))


def _check_rectangular(data: Sequence[Any]) -> None:
    level: list[Any] = [data]
    while level and all(isinstance(part, (list, tuple)) for part in level):
        lengths = {len(part) for part in level}
        if len(lengths) > 1:
            raise ValueError(
                f"a nested list must be rectangular; lists of lengths {sorted(lengths)} stand side by side"
            )
        level = [entry for part in level for entry in part]
    if any(isinstance(part, (list, tuple)) for part in level):
        raise ValueError("a nested list must be rectangular; numbers and lists stand side by side")


def _array_node(array: Any, device: str, dtype: DType | None) -> UOp:
    """A private copy of the array on device NPY, and the COPY of it to `device`."""
    import numpy as np

    source_dtype = from_numpy_name(array.dtype.name)
    wanted = dtype or source_dtype
    host_dtype = wanted if wanted.fmt is not None else dtypes.float32
    private = np.array(array, dtype=numpy_name(host_dtype), order="C", copy=True)
    if not dtypes.is_float(host_dtype) and dtypes.is_float(source_dtype):
        private, host_dtype = (
            np.array(array, order="C", copy=True),
            source_dtype,
        )  # CAST decides how floats become ints
    node = new_buffer("NPY", private.size, host_dtype)
    snapshot = Buffer("NPY", private.size, host_dtype, options=BufferSpec(private=device != "NPY"))
    mark_buffer(node, snapshot.allocate(opaque=private.reshape(-1)))
    moved = node if device == "NPY" else _copied(node, device)
    return reshape(moved, array.shape).cast(wanted)


def _file_node(path: pathlib.Path, dtype: DType | None) -> UOp:
    if not path.exists():
        raise FileNotFoundError(f"no file {path}")
    node = empty_buffer(f"DISK:{path.resolve()}", path.stat().st_size, dtypes.uint8)
    return node if dtype is None else node.cast(dtype)
