"""The core of Tensor: a graph node, what memory it is a view of, how it is realized, read and written.

The families of methods (arithmetic, movement, ...) are mixins over this class.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..device import Buffer, Device, Devices
from ..dtype import (
    ConstType,
    DType,
    default_float,
    default_int,
    dtypes,
    least_upper_dtype,
    to_dtype,
)
from ..engine.inspect import InspectedKernel, inspect
from ..engine.realize import realize as realize_nodes
from ..gradient import GRADIENTS, filled
from ..ir.device import device_of
from ..ir.index import bounds, sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.items import ScheduleItem, create_schedule
from ..schedule.kernelize import kernelize as kernelize_nodes
from ..schedule.multi import laid_like, new_memory, sharded, value_of
from ..schedule.versions import (
    OverwrittenError,
    device_name,
    has_become,
    latest,
    new_buffer,
    peel,
    placed,
)
from ..shape.movement import base_and_tracker, broadcast_to, reshape
from ..shape.rules import shape_of
from ..shape.sizes import prod, shape_text
from .storage import Storage, base_of, chain_to, has_pad, is_in_memory, is_marked, is_view, marked

if TYPE_CHECKING:
    from . import Tensor

from .elementwise.bits import resized
from .live import live_tensors, register
from .modes import TestMode, TrainingFlag, TrainingMode, inference_mode, mode, no_grad
from .places import devices_text, meeting
from .sources import constant, copied, node_of, read_from
from .trace import note_line


class TensorBase(metaclass=TrainingFlag):
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
    _requires_grad: bool | None  #: None: nobody said
    grad: Tensor | None
    train: ClassVar[type[TrainingMode]] = TrainingMode
    test: ClassVar[type[TestMode]] = TestMode
    no_grad: ClassVar[type[no_grad]] = no_grad
    inference_mode: ClassVar[type[inference_mode]] = inference_mode

    def __init__(
        self,
        data: Any = None,
        device: Devices | None = None,
        dtype: DType | str | None = None,
        requires_grad: bool | None = None,
    ) -> None:
        wanted = None if dtype is None else to_dtype(dtype)
        node = node_of(data, Device.canonicalize(device), device is not None, wanted)
        note_line(base_of(node), "Tensor")
        self._setup(node, requires_grad, leaf=True)
        self._claim_memory()
        if requires_grad and not dtypes.is_float(self.dtype):
            raise TypeError(f"only float tensors have gradients, not {self.dtype}")
        if requires_grad:
            self._mark()

    def _setup(self, node: UOp, requires_grad: bool | None, leaf: bool) -> None:
        self._requires_grad = requires_grad
        self._leaf = leaf
        self.grad = None
        self._storage = None
        self._uop = node
        register(self)

    @classmethod
    def _make(cls, node: UOp, *parents: TensorBase, view: bool = True) -> Tensor:
        """The result of an operation on some tensors; `view=False`: a value, even if nothing is computed."""
        tracks: bool | None = None
        for parent in parents:
            if parent._requires_grad:
                tracks = True
        if tracks and not (mode.grad and dtypes.is_float(node.dtype)):
            node, tracks = UOp(Ops.DETACH, node.dtype, (node,)), None
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
        node = self._uop  # alive to the end: while it is, no other thread writes what it has become
        base = base_of(node)
        changed = "becomes" in base.facts or (base.op is Ops.MULTI and has_become(base))
        if changed and not (self._requires_grad and not self._leaf):
            self._uop = latest(node)
            if self._storage is None:
                self._note_reader()
        return self._uop

    def _note_reader(self) -> None:
        """Be known to the version of memory that this value is read from without being a view of it."""
        base = base_of(self._uop)
        if base.op in (Ops.BUFFER, Ops.ASSIGN, Ops.MULTI):
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
        if self._storage is not None:
            self._storage.refresh()
        elif is_view(node):
            self._storage = Storage(base_of(node))
            self._storage.add(self)

    def _needs_memory(self) -> UOp:
        """The node to compute so that this tensor is in memory: padding and bare constants are stored too."""
        node = self._value()
        if base_of(node).op is Ops.CONST or has_pad(node):
            if is_marked(node):
                node = node.replace(src=(UOp(Ops.CONTIGUOUS, node.dtype, node.src),))
            else:
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
    def device(self) -> Devices:
        return device_of(self._uop) or Device.DEFAULT

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def dim(self) -> int:
        """The number of axes.

        >>> Tensor([[1]]).dim()
        2
        """
        return self.ndim

    def numel(self) -> sint:
        """The number of elements.

        >>> Tensor([[1, 2], [3, 4]]).numel()
        4
        """
        total: sint = 1
        for size in self.shape:
            total = size * total if isinstance(size, UOp) else total * size
        return total

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one axis of it.

        >>> Tensor.zeros(2, 3).size()
        (2, 3)
        """
        if dim is None:
            return self.shape
        if not isinstance(dim, int) or not -self.ndim <= dim < self.ndim:
            raise IndexError(f"a tensor of shape {shape_text(self.shape)} has no axis {dim!r}")
        return self.shape[dim]

    def element_size(self) -> int:
        """Bytes of one element.

        >>> Tensor([1.0]).element_size()
        4
        """
        return self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """`element_size()` as an attribute, as numpy and PyTorch have it."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Bytes of all elements.

        >>> Tensor([1.0, 2.0]).nbytes()
        8
        """
        return self._static_numel() * self.dtype.itemsize

    def _static_numel(self) -> int:
        count = self.numel()
        return bounds(count)[1] if isinstance(count, UOp) else count

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through this tensor. Set it on a tensor you made to have `backward`
        fill `grad`."""
        return bool(self._requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, value: bool = True) -> Self:
        """Set `requires_grad` and return the tensor.

        >>> Tensor([1.0]).requires_grad_().requires_grad
        True
        """
        if value and not dtypes.is_float(self.dtype):
            raise TypeError(f"only float tensors have gradients, not {self.dtype}")
        if value and not self._requires_grad:
            self._mark()
        self._requires_grad = bool(value)
        self._leaf = True
        return self

    def _mark(self) -> None:
        """Be a node that no other tensor is: values from outside and memory of its own are such nodes."""
        node = self.uop
        alone = node.op in (Ops.COPY, Ops.ASSIGN, Ops.MULTI)
        if node.op is Ops.BUFFER:
            storage = self._memory()
            alone = storage is None or (len(storage.views()) < 2 and not storage.is_shared())
        if not alone and not is_marked(node):
            self._uop = marked(node)

    def __repr__(self) -> str:
        node = self._value()
        base = base_of(node)
        held = base.facts.get("buffer") if base.op is Ops.BUFFER else None
        grad = self.grad.uop if self.grad is not None else None
        shape = shape_text(self.shape)
        short = repr(self.dtype)[len("dtypes.") :]
        if base.op is Ops.MULTI:
            held = f"axis={base.arg.axis}"
        node_text = f"<UOp {self.device} {shape} {short} ({base.op!r}, {held})>"
        return f"<Tensor {node_text} on {self.device} with grad {grad}>"

    def __hash__(self) -> int:
        return id(self)

    # *** running

    def kernelize(self, *others: TensorBase) -> Self:
        """Plan: cut the graph below these tensors into kernels, make unallocated buffers. Runs nothing.

        >>> Tensor([1]).add(1).kernelize().tolist()
        [2]
        """
        tensors: tuple[TensorBase, ...] = _all_tensors(self, *others)
        kernelize_nodes([t._needs_memory() for t in tensors], pending_nodes)
        for tensor in tensors:
            tensor._claim_memory()
        return self

    def schedule_with_vars(self, *others: TensorBase) -> tuple[list[ScheduleItem], dict[UOp, int]]:
        """The kernels that computing these tensors takes, in order, and the values of their Variables.

        >>> (Tensor([1]) + 1).schedule_with_vars()[1]
        {}
        """
        self.kernelize(*others)
        items = create_schedule([t._value() for t in (self, *others)])
        values: dict[UOp, int] = {}
        for item in items:
            values.update(item.var_vals)
        return items, values

    def schedule(self, *others: TensorBase) -> list[ScheduleItem]:
        """The kernels that computing these tensors takes, in order.

        >>> len((Tensor([1]) + 1).schedule())
        2
        """
        return self.schedule_with_vars(*others)[0]

    def kernels(self, *others: TensorBase, target: str | None = None) -> list[InspectedKernel]:
        """The kernels that computing these tensors would run, to look at and to run by hand; runs nothing.

        target  for whom they are written, here or not: metal, cuda, cuda:sm_90, cl, c, llvm,
                llvm:aarch64, python; None is the device of each
        """
        return inspect(self.schedule(*others), target)

    def realize(self, *others: TensorBase) -> Self:
        """Compute these tensors now, together, and return the first.

        >>> Tensor([1]).realize().is_realized
        True
        """
        tensors: tuple[TensorBase, ...] = _all_tensors(self, *others)
        nodes: list[UOp] = []
        while True:
            before, nodes = nodes, [tensor._needs_memory() for tensor in tensors]
            try:
                realize_nodes(nodes, pending_nodes)
                break
            except OverwrittenError:  # by another thread: the tensor stands for a copy made before
                if nodes == before:
                    raise
        for tensor in tensors:  # stand for the memory, and let go of the graph
            tensor._claim_memory()
        return self

    @property
    def is_realized(self) -> bool:
        """Whether its memory holds its values already."""
        base = base_of(self._value())
        return base.op is Ops.CONST or is_in_memory(base)

    # *** writing

    def _set(self, node: UOp) -> None:
        """Stand for another node from now on."""
        self._uop = node
        self._storage = None
        self._note_reader()

    def replace(self, other: TensorBase) -> Self:
        """Stand for the same value as `other` from now on (no memory is written).

        >>> Tensor([1]).replace(Tensor([2])).tolist()
        [2]
        """
        if self.shape != other.shape:
            raise ValueError(f"replace needs shape {self.shape}, not {other.shape}")
        self._set(other.uop)
        return self

    def assign(self, value: Any) -> Self:
        """Write `value` into this tensor's memory; views of the same memory see it. Lazy, like everything.

        value  a tensor of this shape (or one that broadcasts to it), device and dtype; or a number

        Values computed from this tensor before the write keep what they read.

        >>> Tensor([1, 2]).assign(Tensor([3, 4])).tolist()
        [3, 4]
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
                f"assign needs a value on {devices_text(self.device)}, not on {devices_text(source.device)}; "
                f"{meeting(self.device, source.device, 'it')}"
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
            node = placed(node, self.device)
            self._set(laid_like(node, value_of(self.uop)) if isinstance(self.device, tuple) else node)
        else:
            self._write(storage, node)
        return self

    def _device_known(self) -> bool:
        return device_of(self._uop) is not None

    @staticmethod
    def _memory_like(version: UOp) -> UOp:
        """New memory where that of a version is, as large."""
        while version.op is Ops.ASSIGN:
            version = version.src[0]
        if version.op is Ops.MULTI:
            return new_memory(version)
        return new_buffer(device_name(version), version.arg, version.dtype)

    def _into_memory(self) -> Storage:
        """Give a tensor that is not in memory yet a buffer that it will be stored in."""
        storage = self._memory()
        if storage is None:
            device = self.device
            if isinstance(device, tuple):
                value = value_of(self.uop)
                self._uop = UOp(Ops.ASSIGN, self.dtype, (new_memory(value), value))
            else:
                shape = self.shape
                buffer = new_buffer(device, self._static_numel(), self.dtype)
                value = reshape(self.uop, (self.numel(),))
                self._uop = reshape(UOp(Ops.ASSIGN, self.dtype, (buffer, value)), shape)
            self._claim_memory()
            storage = self._storage
            if storage is None:
                raise RuntimeError("a stored tensor is a view of its buffer")
        return storage

    def _write(self, storage: Storage, node: UOp) -> None:
        """Make a new version of the storage with `node` written where this tensor looks."""
        if 0 in self.shape:
            return  # no element to write
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
        shared = storage.is_shared() or _is_held(version)  # asked first: who lets go now is a reader already
        keep_old_values(version)
        whole = tracker.contiguous and tracker.size == prod(shape_of(version))
        if not whole and isinstance(device_of(version), tuple):  # each device writes all of its part
            node, whole = _put_back(chain_to(peel(self.uop)), node, version), True
        if shared:  # others go on reading the old memory
            target = self._memory_like(version)
            if not whole:
                target = UOp(Ops.ASSIGN, self.dtype, (target, version))
        else:
            target = version
        if whole:
            written = UOp(Ops.ASSIGN, self.dtype, (target, reshape(node, shape_of(version))))
        else:
            written = UOp(Ops.ASSIGN, self.dtype, (target, node), tracker)
        storage.move_to(written)

    # *** copies and casts

    def contiguous(self) -> Tensor:
        """The same values, stored row by row in memory of their own (the tensor itself where it is so).

        >>> Tensor([[1, 2], [3, 4]]).T.contiguous().tolist()
        [[1, 3], [2, 4]]
        """
        node = self.uop
        if node.op is Ops.CONTIGUOUS:
            return self  # type: ignore[return-value]
        if is_view(node):
            base, tracker = base_and_tracker(peel(latest(node)))
            if tracker.contiguous and tracker.size == shape_of(base)[0]:
                return self  # type: ignore[return-value]
        return self._unary(UOp(Ops.CONTIGUOUS, self.dtype, (node,)))

    def clone(self) -> Tensor:
        """A copy in memory of its own; of a tensor on disk, in that of the default device.

        >>> Tensor([1]).clone().tolist()
        [1]
        """
        if not Device.runs_kernels(self.device):
            return self.to(Device.DEFAULT).clone()
        return self._unary(UOp(Ops.CONTIGUOUS, self.dtype, (self.uop,), "clone"))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """A copy in memory of its own, that is trained where this one is."""
        if self._requires_grad and not self._leaf:
            raise RuntimeError("a tensor that was computed with gradients is not copied deeply; detach() it")
        made = self.detach().clone().realize()
        made._requires_grad, made._leaf = self._requires_grad, True
        made.grad = copy.deepcopy(self.grad, memo)
        return made

    def detach(self) -> Tensor:
        """The same value, through which no gradient flows.

        >>> Tensor([1.0], requires_grad=True).detach().requires_grad
        False
        """
        made = self._unary(UOp(Ops.DETACH, self.dtype, (self.uop,)))
        made._requires_grad = False
        return made

    def to(self, device: Devices | None) -> Tensor:
        """A copy on another device; the tensor itself if it is there already.

        Of a sharded tensor the parts are gathered; several devices take a copy each (`shard`).

        >>> Tensor([1]).to("CPU").device
        'CPU'
        """
        name = Device.canonicalize(device)
        if name == self.device:
            return self  # type: ignore[return-value]
        if isinstance(name, tuple):
            return self.shard(name)
        node = copied(self.uop, name) if Device.runs_kernels(self.device) else read_from(self.uop, name)
        return self._unary(node)

    def shard(self, devices: Sequence[str] | Devices, axis: int | None = None) -> Tensor:
        """One tensor on several devices: in parts along `axis`, or a copy on each where it is None.

        The first parts are larger by one element where the axis does not divide; an axis has at least one
        element for each device. On one device it is `to`.

        >>> Tensor([1, 2, 3]).shard(("CPU", "CPU:1"), axis=0).mul(2).tolist()
        [2, 4, 6]
        """
        if not isinstance(devices, Iterable):
            raise TypeError(f"shard takes the names of devices, not {devices!r}")
        names = Device.canonicalize(devices if isinstance(devices, str) else tuple(devices))
        place = None if axis is None else self._shard_place(axis)
        if isinstance(names, str):
            return self.to(names)
        if self.device == names and self.shard_axis == place:
            return self  # type: ignore[return-value]
        size = 0 if place is None else self.shape[place]
        if isinstance(size, UOp):
            raise NotImplementedError(
                f"shard along axis {axis} of shape {shape_text(self.shape)}, whose size is symbolic"
            )
        if place is not None and size < len(names):
            raise ValueError(
                f"shard along axis {axis} of shape {shape_text(self.shape)}: {size} elements for "
                f"{len(names)} devices; name fewer devices, another axis, or no axis for a copy on each"
            )
        source = self if Device.runs_kernels(self.device) else self.to(names[0])
        return self._unary(sharded(source.uop, place, names))

    def _shard_place(self, axis: Any) -> int:
        if not hasattr(axis, "__index__"):
            raise TypeError(f"shard's axis is an int or None, not {axis!r}")
        if not -self.ndim <= axis < self.ndim:
            axes = f"its axes are from {-self.ndim} to {self.ndim - 1}" if self.ndim else "leave out the axis"
            raise IndexError(
                f"shard along axis {axis}: a tensor of shape {shape_text(self.shape)} has none; {axes}"
            )
        return int(axis) % self.ndim

    @property
    def shard_axis(self) -> int | None:
        """The axis along which the tensor is in parts on several devices; None for copies, or one device."""
        return value_of(self.uop).arg.axis if isinstance(self.device, tuple) else None

    def shard_like(self, other: TensorBase) -> Tensor:
        """This tensor on the devices of another, split along the same axis or copied as that is.

        >>> Tensor([1, 2]).shard_like(Tensor([3, 4]).shard(("CPU", "CPU:1"), axis=0)).shard_axis
        0
        """
        return self.shard(other.device, other.shard_axis)

    def shard_(self, devices: Sequence[str] | Devices, axis: int | None = None) -> Self:
        """`shard` in place: for the parameters of a model.

        >>> Tensor([1, 2]).shard_(("CPU", "CPU:1"), axis=0).device
        ('CPU', 'CPU:1')
        """
        moved = self.shard(devices, axis)
        if moved is not self:
            self._set(moved.uop)
        return self

    def to_(self, device: Devices | None) -> Self:
        """Move this tensor to another device, in place.

        >>> Tensor([1]).to_("CPU").device
        'CPU'
        """
        moved = self.to(device)
        if moved is not self:
            self._set(moved.uop)
        return self

    def cast(self, dtype: DType | str) -> Tensor:
        """The values in another dtype: float → int truncates and saturates, NaN → 0; integers wrap.

        >>> Tensor([1.7, -1.7]).cast("int32").tolist()
        [1, -1]
        """
        wanted = to_dtype(dtype)
        if wanted is self.dtype:
            return self  # type: ignore[return-value]
        return self._unary(self.uop.cast(wanted))

    def bitcast(self, dtype: DType | str) -> Tensor:
        """The same bits read as another dtype; where that has another size, the last axis becomes longer or
        shorter.

        >>> Tensor([1.0]).bitcast("int32").tolist()
        [1065353216]
        >>> Tensor([1.0]).bitcast("uint8").tolist()
        [0, 0, 128, 63]
        """
        wanted = to_dtype(dtype)
        if wanted is self.dtype:
            return self  # type: ignore[return-value]
        if wanted.itemsize != self.dtype.itemsize or not Device.runs_kernels(self.device):
            return resized(self, wanted)
        return self._unary(self.uop.bitcast(wanted))

    def _lift(self, other: Any) -> Tensor:
        """`other` as a tensor on this device; a number in the weakest dtype that fits this tensor's."""
        if isinstance(other, TensorBase):
            return other  # type: ignore[return-value]
        if isinstance(other, (bool, int, float)):
            return type(self)._make(constant(other, self._scalar_dtype(other), self.device))
        if other is None:
            raise TypeError("an operand is a number, a tensor, an array or a list, not None")
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


_MAY_SHARE = frozenset(
    (Ops.RESHAPE, Ops.EXPAND, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP)
    + (Ops.DETACH, Ops.BUFFER, Ops.MULTI, Ops.ASSIGN)
)


def _all_tensors(*given: Any) -> tuple[TensorBase, ...]:
    for one in given:
        if not isinstance(one, TensorBase):
            raise TypeError(f"only Tensors are computed, not {one!r}")
    return given


def kernels(tensors: TensorBase | Iterable[TensorBase], target: str | None = None) -> list[InspectedKernel]:
    """The kernels that a tensor, or several together, would run: `Tensor.kernels` says more."""
    first, *others = [tensors] if isinstance(tensors, TensorBase) else list(tensors)
    return first.kernels(*others, target=target)


def pending_nodes() -> list[UOp]:
    """The values that somebody holds and that are not computed yet.

    It only looks: they may be tensors of other threads.
    """
    return [node for node in (latest(t._uop) for t in live_tensors()) if not is_in_memory(base_of(node))]


def _put_back(chain: Sequence[UOp], node: UOp, memory: UOp) -> UOp:
    """All of the memory, with a value where a chain of movements on it looks."""
    chosen = filled(shape_of(node), dtypes.bool, True)
    for move in chain:
        node, chosen = _taken_back(move, node), _taken_back(move, chosen)
    return chosen.where(node, memory)


def _taken_back(move: UOp, node: UOp) -> UOp:
    """What lies before a movement other than an expand, from what lies after it; zeros where that is not."""
    before = GRADIENTS[move.op](node, move)[0]
    if before is None:
        raise RuntimeError(f"{move.op} is no movement")
    return before


def keep_old_values(version: UOp) -> None:
    """Values read from a version that is about to end, and no views of it, are copied before the write."""
    for ref in version.facts.pop("readers", ()):
        tensor = ref()
        if tensor is not None and tensor._storage is None and base_of(tensor._uop) is version:
            tensor._uop = UOp(Ops.CONTIGUOUS, tensor._uop.dtype, (tensor._uop,))


def _is_held(version: UOp) -> bool:
    """Whether memory of this version was handed out (numpy, DLPack): those readers must not see the write."""
    buffer: Buffer | None = version.facts.get("buffer")
    return buffer is not None and buffer.base.exported > 0
