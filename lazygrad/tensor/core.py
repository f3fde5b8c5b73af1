"""The core of Tensor: a graph node, what memory it is a view of, and what can be asked of both.

All else that a tensor does is in the families (__init__.py), which see it through face.py.
"""

from __future__ import annotations

import weakref
from typing import Any, ClassVar, Self

from ..device import Device, Devices
from ..dtype import DType, dtypes, to_dtype
from ..ir.index import bounds, sint
from ..ir.ops import MOVEMENT, Ops
from ..ir.text import short_text
from ..ir.uop import UOp
from ..ir.walks import device_of
from ..locks import table_lock
from ..schedule.calls import DEFERRED, Call, node_of_call
from ..schedule.graph.versions import has_become, latest
from ..shape.rules import shape_of
from ..shape.sizes import prod, shape_text, vmax
from .live import register
from .modes import TestMode, TrainingFlag, TrainingMode, autocast, inference_mode, mode, no_grad
from .print_options import printing
from .signatures import DTypeLike
from .sources import node_of, read_from
from .storage import LOOKS_AT, Storage, base_of, is_marked, is_padded, is_recorded, is_view, marked, overlaps
from .trace import note_line


class TensorCore(metaclass=TrainingFlag):
    """The node that a tensor stands for, and the memory that it is a view of."""

    __slots__ = (
        "__weakref__",
        "_frozen",
        "_leaf",
        "_of_new",
        "_of_value",
        "_own",
        "_requires_grad",
        "_storage",
        "_uop_or_call",
        "_writes",
        "grad",
    )
    _uop_or_call: UOp  #: its node, or the call that is to make it
    _storage: Storage | None
    _of_value: weakref.ref[TensorCore] | None  #: the tensor, not in memory, of whose value this is a part
    _own: bool  #: a new value (views.py), which may be written once it is realized: no memory is in it twice
    _of_new: tuple[sint, ...]  #: the shape of the new value, not in memory, of which this is a part; or ()
    _requires_grad: bool | None  #: None: nobody said
    _writes: int  #: only there once it was written while it was no memory: how often, since it was computed
    _frozen: bool  #: only there once it was trained and then told not to be: a parameter all the same
    grad: Self | None
    train: ClassVar[type[TrainingMode]] = TrainingMode
    test: ClassVar[type[TestMode]] = TestMode
    no_grad: ClassVar[type[no_grad]] = no_grad
    autocast: ClassVar[type[autocast]] = autocast
    inference_mode: ClassVar[type[inference_mode]] = inference_mode

    def __init__(
        self,
        data: Any = None,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
    ) -> None:
        wanted = None if dtype is None else to_dtype(dtype)
        node = node_of(data, Device.present(device), device is not None, wanted)
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
        self._of_value = None
        self._own = False
        self._of_new = ()
        self.grad = None
        self._storage = None
        self._uop_or_call = node
        register(self)

    @classmethod
    def _make(cls, node: UOp, *parents: TensorCore, view: bool = True) -> Self:
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

    @classmethod
    def _computed(cls, node: UOp, tracks: bool | None) -> Self:
        """A new value, of which it is known whether gradients flow to it."""
        made: Any = object.__new__(cls)
        made._setup(node, tracks, leaf=False)
        if node.op in _MAY_SHARE or node.op is Ops.PAD:
            made._note_reader()
        return made  # type: ignore[no-any-return]

    def _alias(self, parent: TensorCore) -> None:
        """Be another look at what the parent looks at, if that is memory: the same as `_join_memory`."""
        storage, base = parent._storage, base_of(self._uop_or_call)
        if storage is None or base is not storage.version or "forwarded_to" in base.facts:
            self._join_memory((parent,))
        elif is_view(self._uop_or_call):
            self._storage = storage
            storage.add(self)
        else:
            self._note_reader()

    def _join_memory(self, parents: tuple[TensorCore | None, ...]) -> None:
        """Be a view of the parent's memory where movement allows; else be known as a reader of it."""
        node = self._uop_or_call
        if not parents:
            self._claim_memory()
            return
        storage = parents[0]._memory() if parents[0] is not None else None
        if storage is not None and is_view(node) and base_of(node) is storage.version:
            self._storage = storage
            storage.add(self)
        else:
            self._note_reader()
            if storage is None and parents[0] is not None and node.op in MOVEMENT:
                self._note_whole(parents[0])

    def _note_whole(self, parent: TensorCore) -> None:
        """Remember of which value this is a part."""
        self._of_value = parent._of_value or weakref.ref(parent)
        self._of_new = parent.shape if parent._own else parent._of_new

    def _unary(self, node: UOp) -> Self:
        """The result of an operation on this tensor alone."""
        return type(self)._make(node, self)

    # *** what it is

    @property
    def _uop(self) -> UOp:
        """The node that was given last; one that was put off is made now."""
        held = self._uop_or_call
        return held if held.__class__ is UOp else self._made()

    @_uop.setter
    def _uop(self, node: UOp) -> None:
        self._uop_or_call = node

    def _made(self) -> UOp:
        """The node that was put off, or the memory that holds its value already."""
        with table_lock:
            held = self._uop_or_call
            if not isinstance(held, Call):  # another thread has made it
                return held
            node = None if self._requires_grad else self._computed_as()
            self._uop_or_call = node_of_call(held) if node is None else node
            self._note_reader()
            return self._uop_or_call

    def _computed_as(self) -> UOp | None:
        """The memory that holds the value of a call whose node was never made; None where there is none."""
        held = self._uop_or_call
        if isinstance(held, Call) and held.made is None and "forwarded_to" in held.facts:
            return latest(held.facts["forwarded_to"])
        return None

    def _deferred(self) -> Call | None:
        """The call that is to make its node, if that has neither been made nor computed."""
        held = self._uop_or_call
        return held if isinstance(held, Call) and held.is_open else None

    @property
    def uop(self) -> UOp:
        """The node of the tensor graph that this tensor stands for now."""
        node = self._node()
        storage = self._storage
        if storage is not None:
            storage.known = True  # whoever asks may keep it
        return node

    def _node(self) -> UOp:
        """The same for those who keep no graph on it."""
        node = base = (
            self._uop_or_call
        )  # alive to the end: while it is, no other thread writes what it has become
        if node.op is DEFERRED:
            node = base = self._made()
        if node.op in LOOKS_AT:
            base = base_of(node)
        if "forwarded_to" not in base.facts and base.op is not Ops.MULTI:
            return node
        if has_become(base) and not (self._requires_grad and not self._leaf) and not is_recorded(base):
            self._uop = latest(node)
            if self._storage is None:
                self._note_reader()
            return self._uop
        return node

    def _note_reader(self) -> None:
        """Be known to the version of memory that this value is read from without being a view of it."""
        base = base_of(self._uop_or_call)
        if base.op in (Ops.BUFFER, Ops.ASSIGN, Ops.MULTI):
            with table_lock:
                readers = base.facts.setdefault("readers", [])
                if len(readers) >= base.facts.get("most_readers", 16):  # look for those that died
                    readers[:] = [ref for ref in readers if ref() is not None]
                    base.facts["most_readers"] = max(16, 2 * len(readers))
                readers.append(weakref.ref(self))

    @property
    def lazydata(self) -> UOp:
        """The older name of `uop`."""
        return self.uop

    def _value(self) -> UOp:
        """The node that holds the value: what `uop` has become, also where `uop` is kept for gradients."""
        return latest(self.uop)

    def _memory(self) -> Storage | None:
        """The storage that this tensor is a view of; None where it is not (yet) in memory."""
        self._node()  # follow what has been computed since
        if self._storage is not None:
            self._storage.refresh()
        return self._storage

    def _claim_memory(self) -> Storage | None:
        """Be a view of the memory that holds the value: what is realized can be written, and views see it."""
        with table_lock:  # no other thread runs or writes what is looked at
            storage, node = self._storage, self._uop_or_call
            if node.op is DEFERRED:
                memory = None if self._requires_grad else self._computed_as()
                if memory is not None:
                    self._uop_or_call, made = memory, Storage(base_of(memory))
                    self._storage = made
                    made.add(self)
                    return made
                node = self._made()
            if storage is None and node.op in _PLAIN_VALUES and (self._leaf or not self._requires_grad):
                node = self._uop = latest(node)  # as `_node` does, but to be a view is to be no reader
                seen = is_view(node)
                if not seen:
                    self._note_reader()
            else:
                node = self._node()
                storage = self._storage
                seen = storage is None and is_view(node)
            if storage is not None:
                storage.refresh()
            elif seen:
                storage = self._storage = Storage(base_of(node))
                storage.add(self)
            return storage

    def _wanted(self) -> UOp:
        """The node to compute so that this tensor is in memory, or the call that it is put off as."""
        held = self._uop_or_call
        if isinstance(held, Call) and held.is_open and not held.way.results[held.which].is_view:
            return held
        return self._needs_memory()

    def _needs_memory(self) -> UOp:
        """The node to compute so that this tensor is in memory: padding and bare constants are stored too,
        and a new value of which several elements would share memory.
        """
        node = latest(self._node())
        if node.op not in _LOOKS_OR_NUMBERS:
            return node
        if base_of(node).op is Ops.CONST or is_padded(node) or self._has_twice(node):
            if is_marked(node):
                node = node.replace(src=(UOp(Ops.CONTIGUOUS, node.dtype, node.src),))
            else:
                node = UOp(Ops.CONTIGUOUS, node.dtype, (node,))
            if self._leaf or not self._requires_grad:
                self._uop = node
        return node

    def _has_twice(self, node: UOp) -> bool:
        """Whether elements of a new value, or of a part that repeats none, lie at one place of memory."""
        return overlaps(node) and (self._own or vmax(prod(self.shape)) <= vmax(prod(self._of_new)))

    @property
    def shape(self) -> tuple[sint, ...]:
        return shape_of(self._uop_or_call)

    @property
    def dtype(self) -> DType:
        return self._uop_or_call.dtype

    @property
    def device(self) -> Devices:
        return device_of(self._uop_or_call) or Device.DEFAULT

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
        if value and not Device.runs_kernels(self.device):  # a file is not trained, its copy is
            self._uop, self._storage = read_from(self._node(), Device.DEFAULT), None
            self._note_reader()
        if value and not self._requires_grad:
            self._mark()
        elif self._requires_grad and self._leaf:
            self._frozen = True
        self._requires_grad = bool(value)
        self._leaf = True
        return self

    def _mark(self) -> None:
        """Be a node that no other tensor is: values from outside and memory of its own are such nodes."""
        node = self.uop
        alone = node.op in (Ops.COPY, Ops.ASSIGN, Ops.MULTI)
        if node.op is Ops.BUFFER:
            storage = self._memory()
            alone = storage is not None and len(storage.views()) < 2 and not storage.is_shared()
        if not alone and not is_marked(node):
            self._uop = marked(node)

    def __repr__(self) -> str:
        if printing.options.values:
            return self._repr_with_values()
        node = self._value()
        base = base_of(node)
        held = base.facts.get("buffer") if base.op is Ops.BUFFER else None
        grad = short_text(self.grad.uop) if self.grad is not None else None
        shape = shape_text(self.shape)
        short = repr(self.dtype)[len("dtypes.") :]
        if base.op is Ops.MULTI:
            held = f"axis={base.arg.axis}"
        node_text = f"<UOp {self.device} {shape} {short} ({base.op!r}, {held})>"
        return f"<Tensor {node_text} on {self.device} with grad {grad}>"

    def _repr_with_values(self) -> str:
        raise NotImplementedError  # a family's (showing.py)

    def __hash__(self) -> int:
        return id(self)

    def _devices_differ(self, other: TensorCore) -> bool:
        """Whether the two are on devices that do not meet; a value that is on no device yet meets all."""
        mine, theirs = device_of(self._uop_or_call), device_of(other._uop_or_call)
        return mine != theirs and mine is not None and theirs is not None

    def _device_known(self) -> bool:
        return device_of(self._uop_or_call) is not None


_LOOKS_OR_NUMBERS = LOOKS_AT | {Ops.CONST}
#: What becomes memory and is asked for as nothing else.
_PLAIN_VALUES = frozenset(Ops) - LOOKS_AT - {Ops.MULTI, Ops.FUNCTION}
_MAY_SHARE = frozenset(
    (Ops.RESHAPE, Ops.EXPAND, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP)
    + (Ops.DETACH, Ops.BUFFER, Ops.MULTI, Ops.ASSIGN)
)
