"""Reading a tensor from Python: numbers, lists, numpy, memoryviews, DLPack."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..device import Buffer, Device, Devices
from ..dtype import ConstType, DType, dtypes, from_numpy_name, numpy_name
from ..engine.realize import allocate_empty, bytes_on_host, read_part
from ..ir.args import MeshArg
from ..ir.index import evaluate, sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..locks import table_lock
from ..schedule.extensions import sharding
from ..schedule.graph.versions import buffer_of, latest, mark_buffer, new_buffer, peel, rebased
from ..shape.movement import base_and_tracker, reshape
from ..shape.view import View
from .computing import compute
from .dlpack import AsIntegers, as_bfloat16, is_bfloat16
from .face import Tensor
from .observer import observing
from .storage import base_of, is_in_memory

if TYPE_CHECKING:
    import numpy as np


class Host(Tensor):
    """Methods that compute a tensor and hand its elements to Python."""

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
                f"the truth value of a tensor of shape {self.shape} is ambiguous; "
                "use .any() or .all(), or compare one element"
            )
        return bool(self.item())

    def is_nonzero(self) -> bool:
        """Whether the only element is nonzero: `bool(x)`.

        >>> Tensor([0.0]).is_nonzero()
        False
        """
        return bool(self)

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
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return self._rows()

    def __contains__(self, value: Any) -> bool:
        equal: Tensor = self == value
        return bool(equal.any())

    def _rows(self) -> Iterator[Tensor]:
        for position in range(len(self)):
            yield self[position]

    # *** arrays

    def _host_buffer(self) -> tuple[Buffer, Any]:
        """This tensor's memory on the host, and the tracker that finds its elements there."""
        plain: Tensor = self
        call = self._deferred()
        if call is not None and not call.way.results[call.which].is_view:
            compute([call])
        value = latest(self._node())
        if base_of(value).op in (Ops.CONST, Ops.IOTA) or not base_and_tracker(peel(value))[1].contiguous:
            plain = self._unary(UOp(Ops.CONTIGUOUS, self.dtype, (self.uop,)))
        compute([latest(plain._node())])
        base, tracker = base_and_tracker(peel(latest(plain._node())))
        buffer = buffer_of(base)
        if not buffer.is_allocated:
            allocate_empty(buffer)
        return buffer.ensure_allocated(), tracker

    def _readable(self) -> Tensor:
        """This tensor on one device; on the CPU where its own could not bring the elements into order."""
        if isinstance(self.device, tuple):
            return self.to(self.device[0])
        if Device.runs_kernels(self.device):
            return self
        value = self._value()
        in_order = base_and_tracker(peel(value))[1].contiguous
        return self if in_order and self.dtype.fmt is not None else self.to("CPU")

    def _elements(self) -> tuple[Buffer, int, bool]:
        """The memory where the elements lie in order, which of its elements is the first, and whether it is
        read by parts, as a file is.
        """
        buffer, tracker = self._readable()._host_buffer()
        return buffer, tracker.views[-1].offset, Device[buffer.device].allocator.reads_parts

    def _one_of_copies(self) -> Tensor:
        """Where several devices have a copy in memory, that of the first, to be read at once; else itself."""
        if not isinstance(self.device, tuple):
            return self
        value = peel(self._value())
        base = base_of(value)
        if base.op is not Ops.MULTI or base.arg.axis is not None or not is_in_memory(base):
            return self
        return type(self)._make(rebased(value, base.src[0]))

    def _host_array(self) -> np.ndarray[Any, Any]:
        """The elements, in memory that belongs to the tensor (a file's: in memory of their own); bf16 and fp8
        as the integers of their bits.
        """
        import numpy as np

        if observing.by is not None:
            observing.by.value_is_read()
        numpy_dtype = np.dtype(numpy_name(self.dtype))
        shape = tuple(_bound_size(size) for size in self.shape)
        if 0 in shape:
            return np.empty(shape, numpy_dtype)
        buffer, offset, by_parts = self._elements()
        if by_parts:
            begin, offset = offset * buffer.dtype.itemsize, 0
            buffer = read_part(buffer, begin, math.prod(shape) * buffer.dtype.itemsize)
        flat = np.frombuffer(bytes_on_host(buffer), numpy_dtype)
        count = math.prod(shape)
        return flat[offset : offset + count].reshape(shape)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A writable copy as a numpy array; bfloat16 and fp8 come as float32.

        >>> Tensor([1, 2]).numpy()
        array([1, 2], dtype=int32)
        """
        import numpy as np

        source: Tensor = self._one_of_copies()
        if self.dtype.fmt is None:
            source = source._readable().cast(dtypes.float32)
        array = source._host_array()
        return np.array(array) if array.base is not None else array

    def data(self) -> memoryview:
        """The elements as a read-only memoryview of the tensor's shape, without a copy where the memory is
        the host's.

        >>> Tensor([1, 2]).data().tolist()
        [1, 2]
        """
        source: Tensor = self._readable().cast(dtypes.float32) if self.dtype.fmt is None else self
        view = source._host_array().view()
        view.flags.writeable = False
        return view.data

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a bare number for a 0-d tensor.

        >>> Tensor([[1, 2]]).tolist()
        [[1, 2]]
        """
        return self.numpy().tolist()

    def item(self) -> ConstType:
        """The value of a tensor of one element as a Python number.

        >>> Tensor([3]).item()
        3
        """
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

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The memory, shared without a copy through DLPack (the tensor is computed first).

        What may only be read is copied, because who is given a capsule may write there.
        """
        if self.dtype.fmt is None and self.dtype is not dtypes.bfloat16:
            raise BufferError(f"DLPack export of {self.dtype} is not supported; cast it first")
        array = self._shared_array(copy)
        if self.dtype is dtypes.bfloat16:  # a version that numpy writes without a word of its own on it
            max_version = None
        asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        capsule = array.__dlpack__(**{name: value for name, value in asked.items() if value is not None})
        return as_bfloat16(capsule) if self.dtype is dtypes.bfloat16 else capsule

    def _shared_array(self, copy: bool | None) -> np.ndarray[Any, Any]:
        """The elements for whoever may write: the tensor's memory, or a copy where nobody may write there."""
        part = self._part_of_memory()
        if part is not None and part.flags.writeable:
            return part
        self._host_array()  # computed first: equal values that are not computed yet become the same memory
        self._be_alone_in_memory()
        array = self._host_array()
        if array.flags.writeable:
            return array
        if copy is False:
            raise BufferError("this memory may only be read, so it is copied; copy=False cannot be")
        return array.copy()

    def _part_of_memory(self) -> np.ndarray[Any, Any] | None:
        """The elements in a part of memory where they lie in order, that is no beginning of it; else None."""
        import numpy as np

        view = self._view_of_memory()
        if view is None or view.contiguous or not is_in_order(view):
            return None
        self._be_alone_in_memory()
        self.realize()
        if observing.by is not None:
            observing.by.value_is_read()
        base, tracker = base_and_tracker(peel(latest(self._node())))
        flat = np.frombuffer(bytes_on_host(buffer_of(base).ensure_allocated()), numpy_name(self.dtype))
        begin: Any = tracker.views[-1].offset
        shape: Any = self.shape
        return flat[begin : begin + math.prod(shape)].reshape(shape)

    def _view_of_memory(self) -> View | None:
        """How this tensor looks at memory that is there, or will be; None where it does not."""
        storage = self._claim_memory()
        if storage is None or isinstance(self.device, tuple) or not Device.runs_kernels(self.device):
            return None
        tracker = base_and_tracker(peel(latest(self._node())))[1]
        view = tracker.views[-1]
        known = all(isinstance(each, int) for each in (*view.shape, *view.strides, view.offset))
        plain = known and len(tracker.views) == 1 and view.mask is None and 0 not in view.shape
        return view if plain else None

    def _be_alone_in_memory(self) -> None:
        """Take memory of its own, with its views, where others stand for the same contents: who is given it
        may write there.
        """
        with table_lock:
            storage = self._claim_memory()
            if storage is None or not storage.is_shared():
                return
            version = storage.version
            storage.move_to(UOp(Ops.ASSIGN, self.dtype, (self._memory_like(version), version)))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU: every device of this release has host memory

    # *** copies and pickles

    def __copy__(self) -> Tensor:
        """Another tensor on the same memory: a write through either is seen by both."""
        made: Any = object.__new__(type(self))
        storage = self._memory()
        made._setup(self.uop, self._requires_grad, self._leaf)
        made.grad = self.grad
        if storage is None:
            made._note_reader()
        else:
            made._storage = storage
            storage.add(made)
        vars_of(made).update(vars_of(self))
        return made  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickles as its values (it is computed first), dtype, device, `requires_grad` and `grad`.

        The copy is a tensor that was made and not computed: what it was computed from stays here.
        """
        values = self._host_array()
        lies: Any = self.shard_axis
        if isinstance(self.device, tuple):
            arg = sharding().value_of(self.uop).arg
            lies = tuple(arg.mesh), arg.placements
        fields = (self.dtype, self.device, self._requires_grad, self.grad, lies)
        return (_of_pickle, (type(self), values.copy(), *fields), vars_of(self) or None)

    @classmethod
    def from_dlpack(cls, source: Any) -> Tensor:
        """A tensor that shares the memory of any object with `__dlpack__` on the CPU (torch, numpy, ...).

        >>> Tensor.from_dlpack(Tensor([1, 2]).numpy()).tolist()
        [1, 2]
        """
        import numpy as np

        if not hasattr(source, "__dlpack__"):
            raise TypeError(f"from_dlpack takes an object with __dlpack__, such as an array, not {source!r}")
        try:
            if is_bfloat16(source) and not isinstance(source, np.ndarray):
                return cls._of_array(np.from_dlpack(AsIntegers(source)), dtypes.bfloat16)
            array = source if is_bfloat16(source) else np.from_dlpack(source)
        except (BufferError, RuntimeError) as error:
            raise TypeError(f"from_dlpack cannot take this memory: {error}") from error
        return cls._adopt(array)

    @classmethod
    def from_numpy(cls, array: np.ndarray[Any, Any]) -> Tensor:
        """A CPU tensor that shares the array's memory: writes through either are seen by both.

        What may only be read (an array of `bytes`, a file mapped for reading) is never written: an assignment
        moves the tensor to memory of its own. Numbers of the other byte order raise TypeError.

        >>> Tensor.from_numpy(Tensor([1, 2]).numpy()).tolist()
        [1, 2]
        """
        return cls._adopt(array)

    @classmethod
    def _adopt(cls, array: np.ndarray[Any, Any]) -> Tensor:
        if not hasattr(array, "flags"):
            raise TypeError(
                f"from_numpy takes a numpy array, not {array!r}; Tensor() takes numbers and lists"
            )
        if not array.dtype.isnative:
            raise TypeError(
                f"the array has numbers of the other byte order ({array.dtype.str}), whose memory cannot be "
                'shared; use Tensor(array) to copy it, or array.astype(array.dtype.newbyteorder("="))'
            )
        if not array.flags.c_contiguous:
            raise ValueError(
                "only a contiguous array can be shared without a copy; use Tensor(array) to copy it"
            )
        if is_bfloat16(array):  # ml_dtypes'
            return cls._of_array(array.view("uint16"), dtypes.bfloat16)
        return cls._of_array(array, from_numpy_name(array.dtype.name))

    @classmethod
    def _of_array(cls, array: np.ndarray[Any, Any], dtype: DType) -> Tensor:
        """A CPU tensor on the memory of an array, which holds the bits of `dtype`."""
        import numpy as np

        flat = np.frombuffer(array, dtype=array.dtype) if array.flags.writeable else array.reshape(-1)
        node = new_buffer("CPU", array.size, dtype)
        buffer = Buffer("CPU", array.size, dtype).allocate(opaque=flat)
        if not array.flags.writeable:
            buffer.export()  # whoever owns it relies on what it holds, for good
        mark_buffer(node, buffer)
        made: Any = object.__new__(cls)
        made._setup(reshape(node, array.shape), False, leaf=True)
        made._claim_memory()
        return made  # type: ignore[no-any-return]


def vars_of(tensor: Tensor) -> dict[str, Any]:
    """The attributes that a subclass of Tensor has added; a Tensor has none."""
    found: dict[str, Any] = getattr(tensor, "__dict__", {})
    return found


def is_in_order(view: View) -> bool:
    """Whether elements lie one after another, the last axis innermost."""
    step: Any = 1
    for size, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if size != 1 and stride != step:
            return False
        step = step * size
    return True


def _of_pickle(
    cls: type[Tensor],
    values: np.ndarray[Any, Any],
    dtype: DType,
    device: Devices,
    requires_grad: bool | None,
    grad: Tensor | None,
    lies: Any = None,
) -> Tensor:
    """The tensor that a pickle holds.

    lies  on several devices the mesh, and what each of its axes does; in older pickles the axis that is split
    """
    made: Tensor = cls._of_array(values, dtype)
    on_disk = isinstance(device, str) and device.startswith("DISK")
    if device != "CPU" and not on_disk:  # the values of a file travel without the file
        if isinstance(lies, tuple):
            mesh, places = MeshArg(*lies[0]), lies[1]
            axes: dict[int, list[str]] = {}
            for name, place in zip(mesh.names, places, strict=True):
                if place is not None:
                    axes.setdefault(place, []).append(name)
            made = made.shard(mesh, axes).realize()
        else:
            made = made.shard(device, lies).realize()
    made._requires_grad, made._leaf, made.grad = requires_grad, True, grad
    return made


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
