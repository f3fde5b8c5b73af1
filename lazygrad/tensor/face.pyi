"""Written by `python docs/generate.py face` from the files of the families."""

import builtins
import numpy as np
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from lazygrad.device.buffer import Buffer
from lazygrad.dtype import ConstType, DType, DTypeSaid
from lazygrad.inspection.kernels import InspectedKernel
from lazygrad.ir.args import Devices, MeshArg
from lazygrad.ir.index.polynomials import sint
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.schedule.kernels.items import ScheduleItem
from lazygrad.shape.view import View
from lazygrad.tensor.core import TensorCore
from lazygrad.tensor.placements import Placement
from lazygrad.tensor.print_options import PrintOptions
from lazygrad.tensor.signatures import Adaptive, Axis, CholeskyEx, DTypeLike, Eigh, InverseEx, LU, LUFactor, LeastSquares, Numbers, Pairs, Parsed, QR, SVD, Several, SignLog, SolveEx
from lazygrad.tensor.storage import Storage
from typing import Any, Literal, Self, overload

class Tensor(TensorCore):
    """A lazy array: a node of the tensor graph. Nothing runs until its values are asked for.

    data           a number, a (nested) list, a numpy array, bytes (uint8), a path (the bytes of a file,
                   lazily), a Tensor, or None (an empty tensor of shape (0,))
    device         where it lives; the default device if not given
    dtype          its element type; that of the data if not given
    requires_grad  whether `backward` fills its `grad`
    """

    # computing
    def kernelize(self, *others: Tensor) -> Self: 'Plan: cut the graph below these tensors into kernels, make unallocated buffers. Runs nothing.\n\n>>> Tensor([1]).add(1).kernelize().tolist()\n[2]'
    def schedule_with_vars(self, *others: Tensor) -> tuple[list[ScheduleItem], dict[UOp, builtins.int]]: 'The kernels that computing these tensors takes, in order, and the values of their Variables.\n\n>>> (Tensor([1]) + 1).schedule_with_vars()[1]\n{}'
    def schedule(self, *others: Tensor) -> list[ScheduleItem]: 'The kernels that computing these tensors takes, in order.\n\n>>> len((Tensor([1]) + 1).schedule())\n2'
    def kernels(self, *others: Tensor, target: str | None = None) -> list[InspectedKernel]: 'The kernels that computing these tensors would run, to look at and to run by hand; runs nothing.\n\ntarget  the target, which this machine need not have: metal, cuda, cuda:sm_90, cl, c,\n        llvm, llvm:aarch64, python, webgpu; None is the device of each. What was not planned yet is\n        planned for a GPU that is named, and stays so where it is run here later'
    def realize(self, *others: Tensor) -> Self: 'Compute these tensors now, together, and return the first.\n\n>>> Tensor([1]).realize().is_realized\nTrue'
    @property
    def is_realized(self) -> builtins.bool: 'Whether its memory holds its values already.'

    # copying
    def contiguous(self) -> Tensor: 'The same values in row-major order in memory of their own (the tensor itself if it is already).\n\n>>> Tensor([[1, 2], [3, 4]]).T.contiguous().tolist()\n[[1, 3], [2, 4]]'
    def clone(self) -> Tensor: 'A copy in memory of its own; of a tensor on disk, in that of the default device.\n\n>>> Tensor([1]).clone().tolist()\n[1]'
    def __deepcopy__(self, memo: dict[builtins.int, Any]) -> Tensor: ...
    def detach(self) -> Tensor: 'The same value, through which no gradient flows.\n\n>>> Tensor([1.0], requires_grad=True).detach().requires_grad\nFalse'
    def cast(self, dtype: DTypeSaid) -> Tensor: 'The values in another dtype: float → int truncates and saturates, NaN → 0; integers wrap.\n\n>>> Tensor([1.7, -1.7]).cast("int32").tolist()\n[1, -1]'
    def bitcast(self, dtype: DTypeSaid) -> Tensor: 'The same bits read as another dtype; where that has another size, the last axis becomes longer or\nshorter.\n\n>>> Tensor([1.0]).bitcast("int32").tolist()\n[1065353216]\n>>> Tensor([1.0]).bitcast("uint8").tolist()\n[0, 0, 128, 63]'

    # sharding
    def to(self, device: Devices | DTypeSaid | Tensor | None = None, dtype: DTypeLike = None, non_blocking: builtins.bool = False, copy: builtins.bool = False) -> Tensor: 'A copy on another device, or in another dtype; the tensor itself if it is there already.\n\nOf a sharded tensor the parts are gathered; several devices take a copy each (`shard`).\n\ndevice        a device or several, a dtype instead, or a tensor that is there and has the dtype\nnon_blocking  PyTorch\'s; every copy is computed when it is asked for\ncopy          a copy in memory of its own in any case\n\n>>> Tensor([1]).to("CPU").device\n\'CPU\'\n>>> Tensor([1]).to(dtype="float16").tolist()\n[1.0]'
    def _on(self, name: Devices) -> Tensor: ...
    def shard(self, devices: Sequence[str] | Devices | MeshArg, axis: builtins.int | Mapping[builtins.int, str | Sequence[str]] | None = None, *, dim: builtins.int | Mapping[builtins.int, str | Sequence[str]] | None = None) -> Tensor: 'One tensor on several devices: in parts along `axis`, or a copy on each where it is None.\n\nOn a Mesh, `axis` says which axes of the tensor are split along which axes of the mesh; along all\nothers there are copies. If a size is not divisible, the first parts are larger by one element; an\naxis has at least one element for each part. On one device it is `to`.\n\n>>> Tensor([1, 2, 3]).shard(("CPU", "CPU:1"), axis=0).mul(2).tolist()\n[2, 4, 6]\n>>> from lazygrad.distributed import Mesh\n>>> mesh = Mesh((2, 2), ("data", "model"))\n>>> Tensor.ones(4, 6).shard(mesh, {0: "data"}).placement\nPlacement(data: axis 0, model: copy)'
    def _placements(self, devices: Any, axis: Any) -> tuple[MeshArg, list[Any]]: ...
    def _check_shards(self, mesh: MeshArg, places: Sequence[Any], place: builtins.int) -> None: ...
    def _placement(self, axis: Any) -> builtins.int: ...
    @property
    def shard_axis(self) -> builtins.int | None: 'The axis along which the tensor is in parts on several devices; None for copies, or one device.\n\nOf several axes, the first; `placement` says all.'
    @property
    def placement(self) -> Placement: 'How the tensor lies on its devices.\n\n>>> (Tensor.ones(4, 6).shard(("CPU", "CPU:1"), axis=0) * 2).sum(0).placement\nPlacement(devices: pending sum)'
    def shard_like(self, other: Tensor) -> Tensor: 'This tensor on the devices of another, split along the same axes or copied as that is.\n\n>>> Tensor([1, 2]).shard_like(Tensor([3, 4]).shard(("CPU", "CPU:1"), axis=0)).shard_axis\n0'
    def _laid_as(self, other: Tensor) -> Tensor: ...
    def shard_(self, devices: Sequence[str] | Devices | MeshArg, axis: builtins.int | Mapping[builtins.int, str | Sequence[str]] | None = None, *, dim: builtins.int | Mapping[builtins.int, str | Sequence[str]] | None = None) -> Self: '`shard` in place: for the parameters of a model.\n\n>>> Tensor([1, 2]).shard_(("CPU", "CPU:1"), axis=0).device\n(\'CPU\', \'CPU:1\')'
    def to_(self, device: Devices | None) -> Self: 'Move this tensor to another device, in place.\n\n>>> Tensor([1]).to_("CPU").device\n\'CPU\''

    # assigning
    def _set(self, node: UOp) -> None: ...
    def _become_view(self, view: Tensor, name: str) -> Self: ...
    def detach_(self) -> Self: 'This tensor keeps its values and memory, and no gradient flows through it from now on; returns it.\n\n>>> Tensor([1.0], requires_grad=True).detach_().requires_grad\nFalse'
    def replace(self, other: Tensor) -> Self: 'Become the same value as `other` (no memory is written).\n\n>>> Tensor([1]).replace(Tensor([2])).tolist()\n[2]'
    def assign(self, value: Any) -> Self: "Write `value` into this tensor's memory; views of the same memory see it. Lazy, like everything.\n\nvalue  a tensor of this shape (or one that broadcasts to it), device and dtype; or a number. As in\n       numpy, axes of one element in front of the shape do not count\n\nValues computed from this tensor before the write keep the old values. A value that requires a\ngradient makes a tensor that is not in memory require it too; memory (what was realized, a parameter)\ntakes the numbers alone.\n\nWhat was taken from a tensor that is not in memory (`x[0]` of `x = a + b`) is a value of its own: a\nwrite to one of the two does not reach the other, and warns (RuntimeWarning) while that exists.\n\n>>> Tensor([1, 2]).assign(Tensor([3, 4])).tolist()\n[3, 4]"
    def _warn_of_a_lost_write(self, value: Any, part: Callable[[], Tensor] | None = None) -> None: ...
    def _whole(self) -> Any: ...
    def _of_one_value(self) -> list[Any]: ...
    def _assign(self, value: Any) -> Self: ...
    def _laid(self, node: UOp) -> UOp: ...
    def _overdue_node(self) -> UOp | None: ...
    @staticmethod
    def _memory_like(version: UOp) -> UOp: ...
    def _into_memory(self) -> Storage: ...
    def _write(self, storage: Storage, node: UOp) -> None: ...

    # backward
    def gradient(self, *targets: Tensor, gradient: Tensor | None = None) -> list[Tensor]: "The gradients of this scalar with respect to the targets; they can be differentiated again.\n\ngradient  what flows in from above, of this tensor's shape; needed if this tensor is not a scalar\n\n>>> (lambda x: (x * x).sum().gradient(x))(Tensor([3.0], requires_grad=True))[0].tolist()\n[6.0]"
    def backward(self, gradient: Tensor | None = None) -> Self: "Add this scalar's gradient to `grad` of every tensor that it depends on and that requires it.\n\n>>> (lambda x: ((x * x).sum().backward(), x.grad.tolist()))(Tensor([3.0], requires_grad=True))[1]\n[6.0]"

    # host
    def __len__(self) -> builtins.int: ...
    def __bool__(self) -> builtins.bool: ...
    def is_nonzero(self) -> builtins.bool: 'Whether the only element is nonzero: `bool(x)`.\n\n>>> Tensor([0.0]).is_nonzero()\nFalse'
    def __float__(self) -> builtins.float: ...
    def __int__(self) -> builtins.int: ...
    def __index__(self) -> builtins.int: ...
    def __format__(self, spec: str) -> str: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __contains__(self, value: Any) -> builtins.bool: ...
    def _rows(self) -> Iterator[Tensor]: ...
    def _host_buffer(self) -> tuple[Buffer, Any]: ...
    def _readable(self) -> Tensor: ...
    def _elements(self) -> tuple[Buffer, builtins.int, builtins.bool]: ...
    def _one_of_copies(self) -> Tensor: ...
    def _host_array(self) -> np.ndarray[Any, Any]: ...
    def numpy(self) -> np.ndarray[Any, Any]: 'A writable copy as a numpy array; bfloat16 and fp8 come as float32.\n\n>>> Tensor([1, 2]).numpy()\narray([1, 2], dtype=int32)'
    def data(self) -> memoryview: "The elements as a read-only memoryview of the tensor's shape, without a copy where the memory is\nthe host's.\n\n>>> Tensor([1, 2]).data().tolist()\n[1, 2]"
    def tolist(self) -> Any: 'The elements as nested lists of Python numbers; a bare number for a 0-d tensor.\n\n>>> Tensor([[1, 2]]).tolist()\n[[1, 2]]'
    def item(self) -> ConstType: 'The value of a tensor of one element as a Python number.\n\n>>> Tensor([3]).item()\n3'
    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> np.ndarray[Any, Any]: ...
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[builtins.int, builtins.int] | None = None, dl_device: tuple[builtins.int, builtins.int] | None = None, copy: builtins.bool | None = None) -> Any: ...
    def _shared_array(self, copy: builtins.bool | None) -> np.ndarray[Any, Any]: ...
    def _part_of_memory(self) -> np.ndarray[Any, Any] | None: ...
    def _view_of_memory(self) -> View | None: ...
    def _be_alone_in_memory(self) -> None: ...
    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]: ...
    def __copy__(self) -> Tensor: ...
    def __reduce_ex__(self, protocol: Any) -> Any: ...
    @classmethod
    def from_dlpack(cls, source: Any) -> Tensor: 'A tensor that shares the memory of any object with `__dlpack__` on the CPU (torch, numpy, ...).\n\n>>> Tensor.from_dlpack(Tensor([1, 2]).numpy()).tolist()\n[1, 2]'
    @classmethod
    def from_numpy(cls, array: np.ndarray[Any, Any]) -> Tensor: "A CPU tensor that shares the array's memory: writes through either are seen by both.\n\nWhat may only be read (an array of `bytes`, a file mapped for reading) is never written: an assignment\nmoves the tensor to memory of its own. Numbers of the other byte order raise TypeError.\n\n>>> Tensor.from_numpy(Tensor([1, 2]).numpy()).tolist()\n[1, 2]"
    @classmethod
    def _adopt(cls, array: np.ndarray[Any, Any]) -> Tensor: ...
    @classmethod
    def _of_array(cls, array: np.ndarray[Any, Any], dtype: DType) -> Tensor: ...

    # exchange
    @classmethod
    def from_torch(cls, source: Any, *, copy: builtins.bool | None = None) -> Tensor: "PyTorch's tensor as a Tensor on the CPU. No gradient passes between the two.\n\nIt shares memory, so that a write through either is seen by both, where the tensor is on the CPU and\nits elements lie without holes, in any order of the axes. Others, as `x[::2]` and `x.expand(...)`, are\ncopied.\n\ncopy  True: always copy; False: ValueError where memory cannot be shared; None: copy where needed"
    def to_torch(self) -> Any: "This tensor as PyTorch's, computed, on the CPU. No gradient passes between the two.\n\nIt shares memory where this tensor's is the CPU's, and its elements lie there without holes, in any\norder of the axes: a write through PyTorch is seen here. Once it is shared, writes to this tensor move\nit to memory of its own."
    @classmethod
    def from_jax(cls, source: Any, *, copy: builtins.bool | None = None) -> Tensor: "JAX's array as a Tensor on the CPU. No gradient passes between the two.\n\nIt shares memory where the array is on one CPU device. JAX's arrays do not change: a write to the\nTensor moves it to memory of its own.\n\ncopy  True: always copy; False: ValueError where memory cannot be shared; None: copy where needed"
    def to_jax(self) -> Any: "This tensor as JAX's array, computed, on the CPU. No gradient passes between the two.\n\nIt shares memory where this tensor's is the CPU's and begins at a multiple of 64 bytes, as lazygrad's\nown does; else it is a copy. Writes to this tensor move it to memory of its own, so that the array\nkeeps its values. TypeError for dtypes of 64 bits, unless JAX has them (`jax_enable_x64`)."

    # numpy_calls
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any: ...
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any: ...

    # showing
    def _repr_html_(self) -> str: ...
    def _repr_with_values(self) -> str: ...
    def _is_cut(self, options: PrintOptions) -> builtins.bool: ...
    def _values_text(self, options: PrintOptions, before: str = '') -> str: ...
    def _edges(self, count: builtins.int) -> Tensor: ...
    def _picture(self) -> str: ...

    # custom_kernels
    @classmethod
    def custom_kernel(cls, source: str | Mapping[str, str], language: str | None = None, outputs: Any = None, grid: Several | Mapping[str, Several] | None = None, *, inputs: Sequence[Tensor] = (), group: Several | Mapping[str, Several] | None = None, name: str | Mapping[str, str] | None = None, gradient: Callable[..., Any] | None = None) -> Any: 'The results of a kernel written in C, LLVM, OpenCL, CUDA or Metal: a tensor or a tuple of them.\n\nThe kernel takes pointers to the elements of its outputs and then of its inputs, in row-major order.\nIt is planned, cached and replayed as any other. The text is trusted: one that is wrong may give wrong\nnumbers, or end the process.\n\nsource    the text: a function that returns nothing, and what it needs. Or {language: text}, so that\n          the kernel runs on several kinds of device\nlanguage  "c" on device CLANG, "llvm" on CPU, "opencl" on CL, "cuda" on CUDA, "metal" on METAL\noutputs   (shape, dtype) of the output, a tensor with that shape and dtype, or a list of these\ngrid      how many workgroups are launched, along x, y, z. In C and LLVM: how many calls there are,\n          divided among the cores; the function then takes the index on each axis as a further 64-bit\n          argument. If languages differ in it, {language: grid}; `group` and `name` likewise\ninputs    tensors on one device\ngroup     the threads of each workgroup; C and LLVM have none\nname      the function, where the text has several\ngradient  takes the gradient of the result, the result, and the inputs, and gives the gradient of each\n          input, or None (of several outputs: a tuple of gradients, and of results)\n\n>>> text = "void twice(float* out, float* x) { for (int i = 0; i < 3; i++) out[i] = 2 * x[i]; }"\n>>> x = Tensor([1.0, 2.0, 3.0], device="CLANG")\n>>> Tensor.custom_kernel(text, "c", x, inputs=[x]).tolist()\n[2.0, 4.0, 6.0]'

    # scanning
    @staticmethod
    def scan(fn: Callable[..., Any], carry: Any, xs: Any = None, length: builtins.int | None = None, reverse: builtins.bool = False) -> tuple[Any, Any]: '(the carry at the end, the outputs of all iterations stacked), as `jax.lax.scan`.\n\n    for x in xs: carry, y = fn(carry, x)\n\nThe function is called once, on tensors without values, and what it computes runs in a loop: a few\nkernels for any number of iterations. Gradients flow to its arguments and to all tensors that it uses.\n\nfn       (carry, x) → (carry, y): a carry of the same structure, y any nest of tensors or None\ncarry    what the first iteration takes: a tensor or number, or a nest of them (tuples, lists, dicts)\nxs       what is iterated along the first axis: a tensor or a nest of them, or None\nlength   the number of iterations, if there are no xs\nreverse  start at the end; each y has the index of its x\n\n>>> total, sums = Tensor.scan(lambda c, x: (c + x, c + x), Tensor(0.0), Tensor([1.0, 2.0, 3.0]))\n>>> total.item(), sums.tolist()\n(6.0, [1.0, 3.0, 6.0])'

    # creation
    @classmethod
    def _created(cls, node: UOp, requires_grad: builtins.bool | None) -> Tensor: ...
    @classmethod
    def full(cls, shape: Any, fill_value: ConstType, *, dtype: DTypeLike = None, device: Devices | None = None, requires_grad: builtins.bool | None = None) -> Tensor: 'A tensor of one value; its dtype is that of the number if not given.\n\n>>> Tensor.full((2,), 7).tolist()\n[7, 7]'
    @classmethod
    def zeros(cls, *shape: Any, dtype: DTypeLike = None, **more: Any) -> Tensor: 'Zeros: `Tensor.zeros(2, 3)`.\n\n>>> Tensor.zeros(2).tolist()\n[0.0, 0.0]'
    @classmethod
    def ones(cls, *shape: Any, dtype: DTypeLike = None, **more: Any) -> Tensor: 'Ones: `Tensor.ones(2, 3)`.\n\n>>> Tensor.ones(2).tolist()\n[1.0, 1.0]'
    @classmethod
    def empty(cls, *shape: Any, dtype: DTypeLike = None, device: Devices | None = None, requires_grad: builtins.bool | None = None) -> Tensor: 'A new tensor with memory of its own, which holds zeros until it is written.\n\n>>> Tensor.empty(2).shape\n(2,)'
    def _like(self, dtype: DTypeLike, device: Devices | None) -> dict[str, Any]: ...
    def full_like(self, fill_value: ConstType, *, dtype: DTypeLike = None, device: Devices | None = None, **more: Any) -> Tensor: 'One value, with the shape, dtype and device of this tensor.\n\n>>> Tensor([1, 2]).full_like(7).tolist()\n[7, 7]'
    def zeros_like(self, *, dtype: DTypeLike = None, device: Devices | None = None, **more: Any) -> Tensor: 'Zeros, with the shape, dtype and device of this tensor.\n\n>>> Tensor([5, 6]).zeros_like().tolist()\n[0, 0]'
    def ones_like(self, *, dtype: DTypeLike = None, device: Devices | None = None, **more: Any) -> Tensor: 'Ones, with the shape, dtype and device of this tensor.\n\n>>> Tensor([5, 6]).ones_like().tolist()\n[1, 1]'
    def empty_like(self, *, dtype: DTypeLike = None, device: Devices | None = None, **more: Any) -> Tensor: 'New memory with the shape, dtype and device of this tensor; it reads as zeros.\n\n>>> Tensor([1, 2]).empty_like().shape\n(2,)'
    @classmethod
    def arange(cls, start: Any, stop: Any = None, step: ConstType = 1, *, end: Any = None, dtype: DTypeLike = None, device: Devices | None = None, requires_grad: builtins.bool | None = None) -> Tensor: "start, start + step, ... up to stop, which is not included; `arange(n)` counts from 0.\n\n`end` is PyTorch's name of `stop`.\n\nIntegers give the default int (int64 where they do not fit), floats the default float.\n\n>>> Tensor.arange(2, 8, 2).tolist()\n[2, 4, 6]"
    @classmethod
    def _symbolic_arange(cls, start: Any, stop: Any, step: Any, dtype: DTypeLike, device: Devices, requires_grad: builtins.bool | None) -> Tensor: ...
    @classmethod
    def linspace(cls, start: builtins.float, stop: builtins.float, steps: builtins.int, *, dtype: DTypeLike = None, device: Devices | None = None, requires_grad: builtins.bool | None = None) -> Tensor: '`steps` numbers from start to stop, both included, equally far apart.\n\n>>> Tensor.linspace(0, 1, 3).tolist()\n[0.0, 0.5, 1.0]'
    @classmethod
    def logspace(cls, start: builtins.float, stop: builtins.float, steps: builtins.int, base: builtins.float = 10.0, *, dtype: DTypeLike = None, device: Devices | None = None, requires_grad: builtins.bool | None = None) -> Tensor: '`steps` numbers from base^start to base^stop, with equal ratios.\n\n>>> Tensor.logspace(0, 2, 3, base=2.0).tolist()\n[1.0, 2.0, 4.0]'
    @classmethod
    def eye(cls, n: builtins.int, m: builtins.int | None = None, *, dtype: DTypeLike = None, device: Devices | None = None, requires_grad: builtins.bool | None = None) -> Tensor: 'Ones on the diagonal of an n×m (n×n) matrix.\n\n>>> Tensor.eye(2).tolist()\n[[1.0, 0.0], [0.0, 1.0]]'
    def _at_or_below(self, diagonal: builtins.int) -> Tensor: ...
    def tril(self, diagonal: builtins.int = 0) -> Tensor: 'Zeros above a diagonal of the last two axes (0 is the main one).\n\n>>> Tensor([[1, 2], [3, 4]]).tril().tolist()\n[[1, 0], [3, 4]]'
    def triu(self, diagonal: builtins.int = 0) -> Tensor: 'Zeros below a diagonal of the last two axes (0 is the main one).\n\n>>> Tensor([[1, 2], [3, 4]]).triu().tolist()\n[[1, 2], [0, 4]]'
    def diag(self, diagonal: builtins.int = 0) -> Tensor: 'A matrix with this 1-d tensor as its diagonal; of a matrix, its diagonal.\n\n>>> Tensor([1, 2]).diag().tolist()\n[[1, 0], [0, 2]]'

    # creation_like
    def randint_like(self, low: builtins.int, high: builtins.int | None = None, **more: Any) -> Tensor: 'Whole numbers from low (0 if only one bound is given) to high, which is not included, in the shape,\ndtype and on the device of this tensor.\n\n>>> Tensor([1, 2]).randint_like(3, 4).tolist()\n[3, 3]'
    def new_full(self, size: Any, fill_value: ConstType, **more: Any) -> Tensor: 'One value in a shape, in the dtype and on the device of this tensor.\n\n>>> Tensor([1.0]).new_full((2,), 3).tolist()\n[3.0, 3.0]'
    def new_zeros(self, *size: Any, **more: Any) -> Tensor: 'Zeros in the dtype and on the device of this tensor.\n\n>>> Tensor([1]).new_zeros(2).tolist()\n[0, 0]'
    def new_ones(self, *size: Any, **more: Any) -> Tensor: 'Ones in the dtype and on the device of this tensor.\n\n>>> Tensor([1]).new_ones(2).tolist()\n[1, 1]'
    def new_empty(self, *size: Any, **more: Any) -> Tensor: 'Memory in the dtype and on the device of this tensor; it reads zeros.\n\n>>> Tensor([1]).new_empty(2).shape\n(2,)'
    def new_tensor(self, data: Any, *, dtype: DTypeLike = None, device: Devices | None = None) -> Tensor: 'Data as a tensor in the dtype and on the device of this one.\n\n>>> Tensor([1.0]).new_tensor([2, 3]).tolist()\n[2.0, 3.0]'
    def cpu(self) -> Tensor: "The tensor on device CPU.\n\n>>> Tensor([1]).cpu().device\n'CPU'"
    def cuda(self, device: builtins.int | str | None = None) -> Tensor: 'The tensor on device CUDA, or on device number `device`; DeviceError if there is none.\n\n>>> Tensor([1]).cuda("cpu").device  # a whole name says another one\n\'CPU\''

    # random.sampling
    @staticmethod
    def manual_seed(seed: builtins.int = 0) -> None: 'Set the seed of the random numbers.\n\n>>> Tensor.manual_seed(0)'
    @classmethod
    def rand(cls, *shape: Any, dtype: DTypeLike = None, device: Devices | None = None, requires_grad: builtins.bool | None = None, generator: Numbers | None = None) -> Tensor: 'Uniform numbers in [0, 1).\n\n>>> Tensor.rand(2, 3).shape\n(2, 3)'
    @classmethod
    def randn(cls, *shape: Any, dtype: DTypeLike = None, device: Devices | None = None, requires_grad: builtins.bool | None = None, generator: Numbers | None = None) -> Tensor: 'Normally distributed numbers, mean 0 and variance 1 (Box and Muller 1958).\n\n>>> Tensor.randn(2, 3).shape\n(2, 3)'
    @classmethod
    def randint(cls, *shape: Any, low: builtins.int = 0, high: builtins.int = 10, dtype: DTypeLike = None, device: Devices | None = None, requires_grad: builtins.bool | None = None, generator: Numbers | None = None) -> Tensor: 'Whole numbers from low to high, which is not included, equally likely, to 2^-32 of the range.\n\n>>> Tensor.randint(2, low=3, high=4).tolist()\n[3, 3]'
    @classmethod
    def uniform(cls, *shape: Any, low: builtins.float = 0.0, high: builtins.float = 1.0, requires_grad: builtins.bool | None = None, **more: Any) -> Tensor: 'Uniform numbers in [low, high); of a dtype of integers cut towards zero.\n\n>>> Tensor.uniform(2, low=3.0, high=3.0).tolist()\n[3.0, 3.0]'
    @classmethod
    def normal(cls, *shape: Any, mean: builtins.float = 0.0, std: builtins.float = 1.0, requires_grad: builtins.bool | None = None, **more: Any) -> Tensor: 'Normally distributed numbers of this mean and standard deviation.\n\n>>> Tensor.normal(2, mean=5.0, std=0.0).tolist()\n[5.0, 5.0]'
    @classmethod
    def scaled_uniform(cls, *shape: Any, requires_grad: builtins.bool | None = None, **more: Any) -> Tensor: 'Uniform in [-1, 1), divided by the root of the number of elements.\n\n>>> Tensor.scaled_uniform(2, 3).shape\n(2, 3)'
    @classmethod
    def glorot_uniform(cls, *shape: Any, requires_grad: builtins.bool | None = None, **more: Any) -> Tensor: 'Uniform in ±sqrt(6 / (fan in + fan out)), for weights (out, in, ...) (Glorot, Bengio 2010).\n\n>>> Tensor.glorot_uniform(2, 3).shape\n(2, 3)'
    @classmethod
    def kaiming_uniform(cls, *shape: Any, a: builtins.float = 0.01, requires_grad: builtins.bool | None = None, **more: Any) -> Tensor: 'Uniform weights (out, in, ...) that keep the variance through a leaky relu of slope a (He et al.\n\n2015).\n\n>>> Tensor.kaiming_uniform(2, 3).shape\n(2, 3)'
    @classmethod
    def kaiming_normal(cls, *shape: Any, a: builtins.float = 0.01, requires_grad: builtins.bool | None = None, **more: Any) -> Tensor: 'Normal weights (out, in, ...) that keep the variance through a leaky relu of slope a (He et al.\n\n2015).\n\n>>> Tensor.kaiming_normal(2, 3).shape\n(2, 3)'
    def rand_like(self, *, dtype: DTypeLike = None, device: Devices | None = None, **more: Any) -> Tensor: 'Uniform numbers, with the shape, dtype and device of this tensor.\n\n>>> Tensor([1.0, 2.0]).rand_like().shape\n(2,)'
    def randn_like(self, *, dtype: DTypeLike = None, device: Devices | None = None, **more: Any) -> Tensor: 'Normally distributed numbers, with the shape, dtype and device of this tensor.\n\n>>> Tensor([1.0, 2.0]).randn_like().shape\n(2,)'
    def bernoulli(self, *, generator: Numbers | None = None) -> Tensor: '1 with the probability that an element gives, else 0.\n\n>>> Tensor([0.0, 1.0]).bernoulli().tolist()\n[0.0, 1.0]'
    def multinomial(self, num_samples: builtins.int = 1, replacement: builtins.bool = False, *, generator: Numbers | None = None) -> Tensor: 'Indices drawn by weight: of a 1-d tensor, or of each row of a matrix.\n\n>>> Tensor([0.0, 1.0]).multinomial().tolist()\n[1]'
    @classmethod
    def randperm(cls, n: builtins.int, *, dtype: DTypeLike = None, device: Devices | None = None, generator: Numbers | None = None, **more: Any) -> Tensor: 'A random order of 0 ... n - 1: the order of as many random keys.\n\n>>> sorted(Tensor.randperm(3).tolist())\n[0, 1, 2]'

    # random.distributions
    @classmethod
    def exponential(cls, *shape: Any, lambd: builtins.float = 1.0, requires_grad: builtins.bool | None = None, **more: Any) -> Tensor: 'Exponentially distributed numbers of rate `lambd`: mean 1 / lambd.\n\n>>> bool((Tensor.exponential(100) >= 0).all())\nTrue'
    @classmethod
    def laplace(cls, *shape: Any, loc: builtins.float = 0.0, scale: builtins.float = 1.0, requires_grad: builtins.bool | None = None, **more: Any) -> Tensor: "Numbers of Laplace's distribution: two exponentials back to back.\n\n>>> Tensor.laplace(3).shape\n(3,)"
    @classmethod
    def cauchy(cls, *shape: Any, median: builtins.float = 0.0, sigma: builtins.float = 1.0, requires_grad: builtins.bool | None = None, **more: Any) -> Tensor: "Numbers of Cauchy's distribution, which has no mean.\n\n>>> Tensor.cauchy(3).shape\n(3,)"
    @classmethod
    def log_normal(cls, *shape: Any, mean: builtins.float = 1.0, std: builtins.float = 2.0, requires_grad: builtins.bool | None = None, **more: Any) -> Tensor: 'e to the power of normally distributed numbers of this mean and standard deviation.\n\n>>> bool((Tensor.log_normal(10) > 0).all())\nTrue'
    @classmethod
    def geometric(cls, *shape: Any, p: builtins.float = 0.5, requires_grad: builtins.bool | None = None, **more: Any) -> Tensor: 'How many trials of probability p it takes until one succeeds: 1, 2, ..., as floats.\n\n>>> bool((Tensor.geometric(10, p=0.3) >= 1).all())\nTrue'
    @classmethod
    def truncated_normal(cls, *shape: Any, mean: builtins.float = 0.0, std: builtins.float = 1.0, a: builtins.float = -2.0, b: builtins.float = 2.0, requires_grad: builtins.bool | None = None, **more: Any) -> Tensor: 'Normally distributed numbers of which those outside of [a, b] do not occur, by inversion.\n\na, b  limits of the numbers themselves, as in `torch.nn.init.trunc_normal_`\n\n>>> bool((Tensor.truncated_normal(100, a=-1.0, b=1.0).abs() <= 1).all())\nTrue'
    @classmethod
    def gamma(cls, *shape: Any, concentration: builtins.float = 1.0, rate: builtins.float = 1.0, requires_grad: builtins.bool | None = None, generator: Numbers | None = None, **more: Any) -> Tensor: 'Numbers of the gamma distribution: mean concentration / rate.\n\n>>> bool((Tensor.gamma(10, concentration=0.5) >= 0).all())\nTrue'
    def standard_gamma(self, *, generator: Numbers | None = None) -> Tensor: 'A sample of the gamma distribution of rate 1 for each concentration in this tensor.\n\n>>> Tensor([0.5, 20.0]).standard_gamma().shape\n(2,)'
    @classmethod
    def beta(cls, *shape: Any, concentration1: builtins.float = 1.0, concentration0: builtins.float = 1.0, **more: Any) -> Tensor: 'Numbers in [0, 1] of the beta distribution: mean c1 / (c1 + c0) of the two concentrations.\n\n>>> Tensor.beta(3, concentration1=2.0, concentration0=3.0).shape\n(3,)'
    def poisson(self, *, generator: Numbers | None = None) -> Tensor: "A number of Poisson's distribution for each rate in this tensor, as floats.\n\n>>> Tensor([0.0, 3.0]).poisson()[0].item()\n0.0"
    def _poisson_by_rejection(self, generator: Numbers | None) -> Tensor: ...
    def dirichlet(self, *, generator: Numbers | None = None) -> Tensor: 'Positive numbers that add up to 1 along the last axis, for concentrations along it.\n\n>>> round(Tensor([1.0, 2.0]).dirichlet().sum().item(), 5)\n1.0'
    def binomial(self, prob: Any, count: builtins.int | None = None, *, generator: Numbers | None = None) -> Tensor: 'The number of successes in n trials (n: this tensor, at most `count`), each of probability `prob`.\n\nThe trials are made one by one, along an axis that is summed up: it runs to find the largest number,\nif `count` is not given.\n\n>>> Tensor([5.0]).binomial(Tensor([1.0])).tolist()\n[5.0]'
    def uniform_(self, from_: builtins.float = 0.0, to: builtins.float = 1.0, *, generator: Numbers | None = None) -> Any: "Write uniform numbers in [from_, to) into this tensor's memory; returns the tensor.\n\n>>> Tensor.zeros(3).uniform_().shape\n(3,)"
    def normal_(self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Numbers | None = None) -> Any: "Write normally distributed numbers into this tensor's memory; returns the tensor.\n\n>>> Tensor.zeros(3).normal_().shape\n(3,)"
    def exponential_(self, lambd: builtins.float = 1.0, *, generator: Numbers | None = None) -> Any: "Write exponentially distributed numbers into this tensor's memory; returns the tensor.\n\n>>> Tensor.zeros(3).exponential_().shape\n(3,)"
    def bernoulli_(self, p: builtins.float = 0.5, *, generator: Numbers | None = None) -> Any: "Write 1 with probability p, else 0, into this tensor's memory; returns the tensor.\n\n>>> Tensor.zeros(3).bernoulli_(1.0).tolist()\n[1.0, 1.0, 1.0]"
    def cauchy_(self, median: builtins.float = 0.0, sigma: builtins.float = 1.0, *, generator: Numbers | None = None) -> Any: "Write numbers of Cauchy's distribution into this tensor's memory; returns the tensor.\n\n>>> Tensor.zeros(3).cauchy_().shape\n(3,)"
    def log_normal_(self, mean: builtins.float = 1.0, std: builtins.float = 2.0, *, generator: Numbers | None = None) -> Any: "Write e to the power of normally distributed numbers into this tensor's memory; returns the tensor.\n\n>>> bool((Tensor.zeros(3).log_normal_() > 0).all())\nTrue"
    def geometric_(self, p: builtins.float, *, generator: Numbers | None = None) -> Any: 'Write how many trials of probability p it takes until one succeeds into this tensor\'s memory.\n\nReturns the tensor.\n\n>>> bool((Tensor.zeros(3, dtype="int32").geometric_(0.5) >= 1).all())\nTrue'
    def random_(self, from_: builtins.int = 0, to: builtins.int | None = None, *, generator: Numbers | None = None) -> Any: "Write whole numbers in [from_, to) into this tensor's memory; returns the tensor.\n\nOne number alone is `to`: `x.random_(6)` is 0 to 5. With neither they go up to the largest number of\nthe dtype, of floats up to 2 to the power of the mantissa's bits, below which no integer is left out.\n\n>>> Tensor.zeros(3).random_(5, 6).tolist()\n[5.0, 5.0, 5.0]"
    def _redrawn(self, name: str, draw: Any, generator: Numbers | None, **parameters: builtins.float) -> Any: ...

    # elementwise.casting
    def float(self) -> Tensor: 'Cast to float32.\n\n>>> Tensor([1]).float().tolist()\n[1.0]'
    def half(self) -> Tensor: 'Cast to float16.\n\n>>> Tensor([1]).half().dtype\ndtypes.half'
    def bfloat16(self) -> Tensor: 'Cast to bfloat16.\n\n>>> Tensor([1]).bfloat16().dtype\ndtypes.bfloat16'
    def double(self) -> Tensor: 'Cast to float64.\n\n>>> Tensor([1]).double().dtype\ndtypes.double'
    def int(self) -> Tensor: 'Cast to int32.\n\n>>> Tensor([1.5]).int().tolist()\n[1]'
    def long(self) -> Tensor: 'Cast to int64.\n\n>>> Tensor([1]).long().dtype\ndtypes.long'
    def short(self) -> Tensor: 'Cast to int16.\n\n>>> Tensor([1]).short().dtype\ndtypes.short'
    def char(self) -> Tensor: 'Cast to int8.\n\n>>> Tensor([1]).char().dtype\ndtypes.char'
    def byte(self) -> Tensor: 'Cast to uint8.\n\n>>> Tensor([1]).byte().dtype\ndtypes.uchar'
    def bool(self) -> Tensor: 'Whether elements are nonzero.\n\n>>> Tensor([0, 2]).bool().tolist()\n[False, True]'
    def type_as(self, other: Tensor) -> Tensor: 'Cast to the dtype of another tensor.\n\n>>> Tensor([1]).type_as(Tensor([0.5])).tolist()\n[1.0]'

    # elementwise.operands
    def _operand(self, other: Any) -> Tensor: ...
    def _lift(self, other: Any) -> Tensor: ...
    def _scalar_dtype(self, value: ConstType) -> DType: ...
    def _weak(self, value: ConstType) -> Tensor: ...
    def _binary(self, op: Ops, other: Any, reverse: builtins.bool = False, dtype: DType | None = None) -> Tensor: ...
    def _check_device(self, right: Tensor) -> None: ...
    def _ordered(self, other: Any, reverse: builtins.bool) -> tuple[Tensor, Tensor]: ...
    def _float(self) -> Tensor: ...
    def _in_common_float(self, other: Any) -> tuple[Tensor, Tensor]: ...
    def _wide(self) -> Tensor: ...
    def _sloped(self, function: Callable[..., Tensor], *more: Any) -> Tensor: ...
    def _sloped_pair(self, function: Callable[..., Tensor], other: Any, *more: Any) -> Tensor: ...
    def _function(self, op: Ops) -> Tensor: ...
    def _filled(self, value: ConstType, dtype: DType | None = None) -> Tensor: ...
    def _overwrite(self, value: Any) -> Self: ...
    def _write_back(self, result: Tensor) -> Self: ...

    # elementwise.arithmetic
    def add(self, other: Any, *, alpha: ConstType = 1) -> Tensor: 'Elementwise sum `self + alpha * other`; `or` on bools.\n\n>>> Tensor([1, 2]).add(3).tolist()\n[4, 5]'
    def sub(self, other: Any, reverse: builtins.bool = False, *, alpha: ConstType = 1) -> Tensor: 'Elementwise difference `self - alpha * other`; TypeError on two bools.\n\n>>> Tensor([5]).sub(3).tolist()\n[2]'
    def mul(self, other: Any) -> Tensor: 'Elementwise product; `and` on bools.\n\n>>> Tensor([1, 2]).mul(3).tolist()\n[3, 6]'
    def pow(self, exponent: Any, reverse: builtins.bool = False) -> Tensor: 'Elementwise power.\n\nA small whole Python exponent multiplies exactly, ±0.5 is a (reciprocal) root. An integer tensor to\na negative Python power raises ValueError; integer tensors to tensors of negative powers give the\ntruncated reciprocal.\n\n>>> Tensor([2, 3]).pow(2).tolist()\n[4, 9]'
    def _known_power(self, exponent: ConstType) -> Tensor | None: ...
    def square(self) -> Tensor: 'x·x.\n\n>>> Tensor([3]).square().tolist()\n[9]'
    def neg(self) -> Tensor: '-x; TypeError on bools.\n\n>>> Tensor([1, -2]).neg().tolist()\n[-1, 2]'
    def reciprocal(self) -> Tensor: '1 / x, in floats.\n\n>>> Tensor([4.0]).reciprocal().tolist()\n[0.25]'
    def abs(self) -> Tensor: '|x|; |-0.0| is 0.0, and the slope at 0 is 0.\n\n>>> Tensor([-2, 3]).abs().tolist()\n[2, 3]'
    def sign(self) -> Tensor: '-1, 0 or 1; 0 of NaN, as in PyTorch. The slope is 0 everywhere.\n\n>>> Tensor([-2.0, 0.0, 5.0]).sign().tolist()\n[-1.0, 0.0, 1.0]'
    def _below_zero(self) -> Tensor: ...
    def __add__(self, other: Any) -> Tensor: ...
    def __radd__(self, other: Any) -> Tensor: ...
    def __sub__(self, other: Any) -> Tensor: ...
    def __rsub__(self, other: Any) -> Tensor: ...
    def __mul__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor: ...
    def __pow__(self, other: Any) -> Tensor: ...
    def __rpow__(self, other: Any) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...

    # elementwise.division
    def div(self, other: Any, reverse: builtins.bool = False, *, rounding_mode: str | None = None) -> Tensor: 'Elementwise quotient in floats.\n\n`rounding_mode` "floor" or "trunc" rounds it (and keeps integers integers).\n\n>>> Tensor([7]).div(2, rounding_mode="floor").tolist()\n[3]'
    def _true_division(self, other: Any, reverse: builtins.bool) -> Tensor: ...
    def _truncated_division(self, other: Any, reverse: builtins.bool) -> Tensor: ...
    def floor_divide(self, other: Any, reverse: builtins.bool = False) -> Tensor: "Elementwise quotient rounded down; integers divided by 0 give 0.\n\nOf floats it is the whole number that belongs to `remainder`, as Python's, rounded to the dtype:\n1.0 // 0.1 is 9, because 0.1 is a little more than a tenth, and an infinity has none (NaN). Its slope\nis 0.\n\n>>> Tensor([7, -7]).floor_divide(2).tolist()\n[3, -4]"
    def idiv(self, other: Any) -> Tensor: 'Integer quotient rounded towards zero.\n\n>>> Tensor([7, -7]).idiv(2).tolist()\n[3, -3]'
    def remainder(self, other: Any, reverse: builtins.bool = False) -> Tensor: 'Elementwise remainder with the sign of the divisor; integers by 0 give 0, floats NaN.\n\nOf floats it is `fmod`, plus the divisor where that has another sign: exact but for this one sum. A\nmultiple of the divisor gives a zero with the sign of x (as in PyTorch).\n\n>>> Tensor([-7]).remainder(3).tolist()\n[2]'
    def fmod(self, other: Any) -> Tensor: 'Elementwise remainder with the sign of the dividend, also for zeros, as in C.\n\nFloats by 0 give NaN. Of floats it is exact for all numbers, however large the quotient is. Its slope\nin the divisor is the quotient, rounded towards zero, times -1.\n\n>>> Tensor([7, -7]).fmod(3).tolist()\n[1, -1]'
    def __truediv__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def __floordiv__(self, other: Any) -> Tensor: ...
    def __rfloordiv__(self, other: Any) -> Tensor: ...
    def __mod__(self, other: Any) -> Tensor: ...
    def __rmod__(self, other: Any) -> Tensor: ...
    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]: ...
    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]: ...

    # elementwise.rounding
    def trunc(self) -> Tensor: 'Rounded towards zero; integers are unchanged.\n\n>>> Tensor([1.8, -1.8]).trunc().tolist()\n[1.0, -1.0]'
    def floor(self) -> Tensor: 'Rounded down; integers are unchanged.\n\n>>> Tensor([1.8, -1.2]).floor().tolist()\n[1.0, -2.0]'
    def ceil(self) -> Tensor: 'Rounded up; integers are unchanged.\n\n>>> Tensor([1.2, -1.2]).ceil().tolist()\n[2.0, -1.0]'
    def round(self, decimals: builtins.int = 0) -> Tensor: 'Rounded to the nearest integer (or number of `decimals`), ties to even; integers are unchanged.\n\n>>> Tensor([0.5, 1.5, 1.6]).round().tolist()\n[0.0, 2.0, 2.0]'
    def __round__(self, digits: builtins.int | None = None) -> Tensor: ...
    def __floor__(self) -> builtins.int: ...
    def __ceil__(self) -> builtins.int: ...
    def __trunc__(self) -> builtins.int: ...
    def frac(self) -> Tensor: 'The fractional part: x - trunc(x).\n\n>>> Tensor([1.5, -1.5]).frac().tolist()\n[0.5, -0.5]'

    # elementwise.comparison
    def _compare(self, op: Ops, other: Any, reverse: builtins.bool = False) -> Tensor: ...
    def eq(self, other: Any) -> Tensor: 'self == other.\n\n>>> Tensor([1, 2]).eq(2).tolist()\n[False, True]'
    def ne(self, other: Any) -> Tensor: 'self != other.\n\n>>> Tensor([1, 2]).ne(2).tolist()\n[True, False]'
    def lt(self, other: Any) -> Tensor: 'self < other.\n\n>>> Tensor([1, 2]).lt(2).tolist()\n[True, False]'
    def le(self, other: Any) -> Tensor: 'self <= other.\n\n>>> Tensor([1, 2]).le(1).tolist()\n[True, False]'
    def gt(self, other: Any) -> Tensor: 'self > other.\n\n>>> Tensor([1, 2]).gt(1).tolist()\n[False, True]'
    def ge(self, other: Any) -> Tensor: 'self >= other.\n\n>>> Tensor([1, 2]).ge(2).tolist()\n[False, True]'
    def isnan(self) -> Tensor: 'Whether an element is NaN.\n\n>>> Tensor([1.0, math.nan]).isnan().tolist()\n[False, True]'
    def isinf(self, detect_positive: builtins.bool = True, detect_negative: builtins.bool = True) -> Tensor: 'Whether an element is infinite.\n\n>>> Tensor([1.0, math.inf]).isinf().tolist()\n[False, True]'
    def isfinite(self) -> Tensor: 'Whether an element is neither infinite nor NaN.\n\n>>> Tensor([1.0, math.inf]).isfinite().tolist()\n[True, False]'
    def isclose(self, other: Any, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False) -> Tensor: '|self - other| <= atol + rtol·|other|, elementwise.\n\n>>> Tensor([1.0, 2.0]).isclose(Tensor([1.0, 2.1])).tolist()\n[True, False]'
    def _bool(self) -> Tensor: ...
    def equal(self, other: Any) -> builtins.bool: 'Whether another tensor has the same shape and values, as a bool. It computes both.\n\n>>> Tensor([1, 2]).equal(Tensor([1, 2]))\nTrue'
    def __hash__(self) -> builtins.int: ...
    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __lt__(self, other: Any) -> Tensor: ...
    def __le__(self, other: Any) -> Tensor: ...
    def __gt__(self, other: Any) -> Tensor: ...
    def __ge__(self, other: Any) -> Tensor: ...

    # indexing.choosing
    @overload
    def where(self, yes: Any, no: Any) -> Tensor: "`yes` where this bool tensor is True, else `no`; broadcast, in the common dtype of the two.\n\nWithout values: the indices of the True elements, a tensor for each axis, as `nonzero(as_tuple=True)`.\n\nCalled on another tensor in PyTorch's order, `x.where(condition, other)`, it is `condition.where(x,\nother)`.\n\n>>> Tensor([True, False]).where(Tensor([1, 2]), 0).tolist()\n[1, 0]"
    @overload
    def where(self) -> tuple[Tensor, ...]: ...
    def masked_fill(self, mask: Tensor, value: Any) -> Tensor: '`value` where the mask is True, this tensor elsewhere; the dtype is kept.\n\n>>> Tensor([1, 2]).masked_fill(Tensor([True, False]), 9).tolist()\n[9, 2]'
    def maximum(self, other: Any) -> Tensor: 'The larger of two; NaN if one is; equal elements share the gradient.\n\n>>> Tensor([1, 5]).maximum(3).tolist()\n[3, 5]'
    def minimum(self, other: Any) -> Tensor: 'The smaller of two; NaN if one is; equal elements share the gradient.\n\n>>> Tensor([1, 5]).minimum(3).tolist()\n[1, 3]'
    def clamp(self, min: Any = None, max: Any = None) -> Tensor: 'Limited to [min, max]; either of which may be a tensor or missing; NaN if any of them is.\n\nThe gradient of an element at a limit is 0; a limit that is a tensor shares it, as in `maximum`.\n\n>>> Tensor([-3, 1, 9]).clamp(0, 5).tolist()\n[0, 1, 5]'
    def lerp(self, end: Tensor, weight: Any) -> Tensor: 'self + (end - self) * weight, computed from the nearer end: a weight of 1 gives `end` exactly.\n\n>>> Tensor([0.0]).lerp(Tensor([4.0]), 0.25).tolist()\n[1.0]'

    # elementwise.logic
    def logical_not(self) -> Tensor: 'Whether an element is 0.\n\n>>> Tensor([0, 2]).logical_not().tolist()\n[True, False]'
    def logical_and(self, other: Any) -> Tensor: 'Whether both are nonzero.\n\n>>> Tensor([0, 2]).logical_and(True).tolist()\n[False, True]'
    def logical_or(self, other: Any) -> Tensor: 'Whether at least one is nonzero.\n\n>>> Tensor([0, 2]).logical_or(False).tolist()\n[False, True]'
    def logical_xor(self, other: Any) -> Tensor: 'Whether exactly one is nonzero.\n\n>>> Tensor([0, 2]).logical_xor(True).tolist()\n[True, False]'
    def _bits(self, op: Ops, other: Any, reverse: builtins.bool = False) -> Tensor: ...
    def bitwise_and(self, other: Any) -> Tensor: 'Bitwise and; logical and on bools.\n\n>>> Tensor([6]).bitwise_and(3).tolist()\n[2]'
    def bitwise_or(self, other: Any) -> Tensor: 'Bitwise or; logical or on bools.\n\n>>> Tensor([6]).bitwise_or(3).tolist()\n[7]'
    def bitwise_xor(self, other: Any) -> Tensor: 'Bitwise exclusive or; logical on bools.\n\n>>> Tensor([6]).bitwise_xor(3).tolist()\n[5]'
    def bitwise_not(self) -> Tensor: 'All bits inverted; `not` on bools.\n\n>>> Tensor([0]).bitwise_not().tolist()\n[-1]'
    def lshift(self, other: Any, reverse: builtins.bool = False) -> Tensor: 'Bits shifted left; a shift by the width or more gives 0.\n\n>>> Tensor([1]).lshift(3).tolist()\n[8]'
    def rshift(self, other: Any, reverse: builtins.bool = False) -> Tensor: 'Bits shifted right, keeping the sign; a shift by the width or more gives 0, or -1 if negative.\n\n>>> Tensor([9]).rshift(1).tolist()\n[4]'
    def dp4a(self, other: Tensor, total: Any = 0) -> Tensor: '`total` and the four products of the bytes of two words, in int32: those of this tensor without\nsigns, from 0 to 255, those of `other` with, from -128 to 127. Sums wrap.\n\nOne instruction where the processor has it, as GPUs do.\n\n>>> Tensor([0x01020304]).dp4a(Tensor([0x01010101]), 5).tolist()\n[15]'
    def __and__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def __or__(self, other: Any) -> Tensor: ...
    def __ror__(self, other: Any) -> Tensor: ...
    def __xor__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def __lshift__(self, other: Any) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __invert__(self) -> Tensor: ...

    # elementwise.floats
    def signbit(self) -> Tensor: 'Whether the sign bit is set, also for -0.0 and NaN.\n\n>>> Tensor([-1.0, -0.0, 0.0]).signbit().tolist()\n[True, True, False]'
    def copysign(self, other: Any) -> Tensor: '|self| with the sign of `other`, also of zeros; the gradient of `other` is 0.\n\n>>> Tensor([1.0, 2.0]).copysign(Tensor([-0.0, 1.0])).tolist()\n[-1.0, 2.0]'
    def isposinf(self) -> Tensor: 'Whether an element is +inf.\n\n>>> Tensor([math.inf, -math.inf, 1.0]).isposinf().tolist()\n[True, False, False]'
    def isneginf(self) -> Tensor: 'Whether an element is -inf.\n\n>>> Tensor([math.inf, -math.inf, 1.0]).isneginf().tolist()\n[False, True, False]'
    def is_floating_point(self) -> builtins.bool: 'Whether the dtype is a float.\n\n>>> Tensor([1]).is_floating_point()\nFalse'
    def is_signed(self) -> builtins.bool: 'Whether the dtype has negative numbers.\n\n>>> Tensor([1], dtype="uint8").is_signed()\nFalse'
    def isreal(self) -> Tensor: 'True everywhere: there are no complex dtypes.\n\n>>> Tensor([1.0]).isreal().tolist()\n[True]'
    def nan_to_num(self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None) -> Tensor: 'NaN and infinities replaced; infinities by the largest and smallest finite number if not given.\n\n>>> Tensor([math.nan, 1.0, math.inf]).nan_to_num(posinf=9.0).tolist()\n[0.0, 1.0, 9.0]'
    def nextafter(self, other: Any) -> Tensor: 'The next float from here towards `other`; the slope is 1, in `other` 0.\n\n>>> Tensor([1.0, 0.0], dtype="float64").nextafter(2.0).tolist()\n[1.0000000000000002, 5e-324]'
    def frexp(self) -> tuple[Tensor, Tensor]: '(mantissa of size in [1/2, 1), exponent as int32) with x = mantissa·2^exponent; 0, NaN and\ninfinities are their own mantissa, with exponent 0.\n\n>>> [t.tolist() for t in Tensor([8.0, 0.75]).frexp()]\n[[0.5, 0.75], [4, 0]]'
    @staticmethod
    def _scaled(x: Tensor, exponent: Tensor) -> Tensor: ...
    def ldexp(self, other: Any) -> Tensor: 'x·2^other.\n\n>>> Tensor([0.5, 3.0]).ldexp(Tensor([4, -1])).tolist()\n[8.0, 1.5]'
    def heaviside(self, values: Any) -> Tensor: '0 below 0, 1 above, `values` at 0; NaN gives 0, as in PyTorch.\n\n>>> Tensor([-2.0, 0.0, 3.0]).heaviside(0.5).tolist()\n[0.0, 0.5, 1.0]'
    def fmax(self, other: Any) -> Tensor: 'The larger of two, NaN only where both are; of equal elements this tensor takes the gradient.\n\n>>> Tensor([math.nan, 1.0]).fmax(Tensor([2.0, math.nan])).tolist()\n[2.0, 1.0]'
    def fmin(self, other: Any) -> Tensor: 'The smaller of two, NaN only where both are; of equal elements this tensor takes the gradient.\n\n>>> Tensor([math.nan, 1.0]).fmin(Tensor([2.0, math.nan])).tolist()\n[2.0, 1.0]'
    def deg2rad(self) -> Tensor: 'Degrees as radians.\n\n>>> round(Tensor([180.0]).deg2rad().item(), 5)\n3.14159'
    def rad2deg(self) -> Tensor: 'Radians as degrees.\n\n>>> round(Tensor([math.pi]).rad2deg().item(), 4)\n180.0'
    def positive(self) -> Tensor: '+x: the tensor itself; TypeError on bools.\n\n>>> Tensor([-1]).positive().tolist()\n[-1]'
    def float_power(self, exponent: Any) -> Tensor: 'The power in float64.\n\n>>> Tensor([2.0]).float_power(-1).tolist()\n[0.5]'
    def clamp_min(self, min: Any) -> Tensor: 'Limited to at least `min`.\n\n>>> Tensor([1, 5]).clamp_min(3).tolist()\n[3, 5]'
    def clamp_max(self, max: Any) -> Tensor: 'Limited to at most `max`.\n\n>>> Tensor([1, 5]).clamp_max(3).tolist()\n[1, 3]'
    def addcmul(self, tensor1: Any, tensor2: Any, *, value: builtins.float = 1) -> Tensor: 'self + value·tensor1·tensor2.\n\n>>> Tensor([1.0]).addcmul(Tensor([2.0]), Tensor([3.0]), value=0.5).tolist()\n[4.0]'
    def addcdiv(self, tensor1: Any, tensor2: Any, *, value: builtins.float = 1) -> Tensor: 'self + value·tensor1 / tensor2.\n\n>>> Tensor([1.0]).addcdiv(Tensor([3.0]), Tensor([2.0]), value=2).tolist()\n[4.0]'
    def rsub(self, other: Any, *, alpha: builtins.float = 1) -> Tensor: 'other - alpha·self.\n\n>>> Tensor([1.0]).rsub(5.0, alpha=2).tolist()\n[3.0]'
    def contiguous_backward(self) -> Tensor: 'The tensor itself, whose gradient is stored before it flows on.\n\n>>> Tensor([1.0]).contiguous_backward().tolist()\n[1.0]'
    def _whole_pair(self, other: Any, name: str) -> tuple[Tensor, Tensor, DType]: ...
    def gcd(self, other: Any) -> Tensor: 'The greatest common divisor of integers, at least 0; gcd(0, 0) is 0.\n\n>>> Tensor([12, 0]).gcd(Tensor([-18, 5])).tolist()\n[6, 5]'
    def lcm(self, other: Any) -> Tensor: 'The least common multiple of integers, at least 0.\n\n>>> Tensor([4, 0]).lcm(Tensor([6, 5])).tolist()\n[12, 0]'

    # elementwise.functions
    def sqrt(self) -> Tensor: 'Square root; NaN below 0.\n\n>>> Tensor([4.0]).sqrt().tolist()\n[2.0]'
    def rsqrt(self) -> Tensor: '1 / sqrt(x).\n\n>>> Tensor([4.0]).rsqrt().tolist()\n[0.5]'
    def exp(self) -> Tensor: 'e to the x.\n\n>>> Tensor([0.0]).exp().tolist()\n[1.0]'
    def exp2(self) -> Tensor: '2 to the x.\n\n>>> Tensor([3.0]).exp2().tolist()\n[8.0]'
    def log(self) -> Tensor: 'Natural logarithm; -inf at 0, NaN below.\n\n>>> Tensor([1.0, 0.0]).log().tolist()\n[0.0, -inf]'
    def log2(self) -> Tensor: 'Logarithm to base 2.\n\n>>> Tensor([8.0]).log2().tolist()\n[3.0]'
    def log10(self) -> Tensor: 'Logarithm to base 10.\n\n>>> Tensor([1.0]).log10().tolist()\n[0.0]'
    def log1p(self) -> Tensor: 'log(1 + x), accurate near 0: the error of 1 + x is divided out.\n\n>>> Tensor([0.0]).log1p().tolist()\n[0.0]'
    def expm1(self) -> Tensor: 'exp(x) - 1, accurate near 0.\n\n>>> Tensor([0.0]).expm1().tolist()\n[0.0]'
    def sin(self) -> Tensor: 'Sine of radians.\n\n>>> Tensor([0.0]).sin().tolist()\n[0.0]'
    def cos(self) -> Tensor: 'Cosine of radians.\n\n>>> Tensor([0.0]).cos().tolist()\n[1.0]'
    def tan(self) -> Tensor: 'Tangent of radians.\n\n>>> Tensor([0.0]).tan().tolist()\n[0.0]'
    def _asin_slope(self) -> Tensor: ...
    def asin(self) -> Tensor: 'The angle in [-π/2, π/2] whose sine is x.\n\n>>> Tensor([0.0]).asin().tolist()\n[0.0]'
    def acos(self) -> Tensor: 'The angle in [0, π] whose cosine is x.\n\n>>> Tensor([1.0]).acos().tolist()\n[0.0]'
    def atan(self) -> Tensor: 'The angle in [-π/2, π/2] whose tangent is x: reduced to |x| <= tan(π/12), then a series.\n\n>>> Tensor([0.0]).atan().tolist()\n[0.0]'
    def atan2(self, other: Any) -> Tensor: 'The angle of the point (other, self), in [-π, π], with the sign of self, also where that is -0.0.\n\n>>> Tensor([0.0]).atan2(Tensor([1.0])).tolist()\n[0.0]'
    def sinh(self) -> Tensor: 'Hyperbolic sine.\n\n>>> Tensor([0.0]).sinh().tolist()\n[0.0]'
    def cosh(self) -> Tensor: 'Hyperbolic cosine.\n\n>>> Tensor([0.0]).cosh().tolist()\n[1.0]'
    def tanh(self) -> Tensor: 'Hyperbolic tangent.\n\n>>> Tensor([0.0]).tanh().tolist()\n[0.0]'
    def asinh(self) -> Tensor: 'The number whose hyperbolic sine is x.\n\n>>> Tensor([0.0]).asinh().tolist()\n[0.0]'
    def _acosh_slope(self) -> Tensor: ...
    def acosh(self) -> Tensor: 'The number >= 0 whose hyperbolic cosine is x.\n\n>>> Tensor([1.0]).acosh().tolist()\n[0.0]'
    def atanh(self) -> Tensor: 'The number whose hyperbolic tangent is x.\n\n>>> Tensor([0.0]).atanh().tolist()\n[0.0]'
    def erf(self) -> Tensor: 'The error function.\n\n>>> Tensor([0.0]).erf().tolist()\n[0.0]'
    def logaddexp(self, other: Any) -> Tensor: 'log(e^self + e^other), without overflow.\n\n>>> Tensor([-math.inf]).logaddexp(0.0).tolist()\n[0.0]'
    def logaddexp2(self, other: Any) -> Tensor: 'log2(2^self + 2^other), without overflow.\n\n>>> Tensor([1000.0]).logaddexp2(1000.0).tolist()\n[1001.0]'

    # elementwise.special
    def logit(self, eps: builtins.float | None = None) -> Tensor: 'log(x / (1 - x)), the inverse of sigmoid; NaN outside of [0, 1].\n\neps  if given, x is first limited to [eps, 1 - eps]\n\n>>> Tensor([0.5, 1.0]).logit().tolist()\n[0.0, inf]'
    def xlogy(self, other: Any) -> Tensor: 'x·log(other), which is 0 where x is 0 (NaN stays).\n\n>>> Tensor([0.0, 1.0]).xlogy(Tensor([0.0, 1.0])).tolist()\n[0.0, 0.0]'
    def xlog1py(self, other: Any) -> Tensor: 'x·log(1 + other), which is 0 where x is 0 (NaN stays).\n\n>>> Tensor([0.0, 2.0]).xlog1py(Tensor([-1.0, 0.0])).tolist()\n[0.0, 0.0]'
    def entr(self) -> Tensor: '-x·log(x): 0 at 0, -inf below.\n\n>>> Tensor([0.0, 1.0, -1.0]).entr().tolist()\n[0.0, -0.0, -inf]'
    def hypot(self, other: Any) -> Tensor: 'sqrt(self² + other²), without overflow; infinite where one is, and its slope at 0 is 0.\n\n>>> Tensor([3.0, 3e30]).hypot(Tensor([4.0, 4e30])).tolist()[0]\n5.0'
    def erfc(self) -> Tensor: '1 - erf(x), accurate where it is small (relative error below 8 units in the last place).\n\n>>> 2.0e-45 < Tensor([10.0], dtype="float64").erfc().item() < 2.1e-45\nTrue'
    def erfcx(self) -> Tensor: 'exp(x²)·erfc(x), which neither underflows nor cancels for large x.\n\n>>> round(Tensor([1000.0]).erfcx().item() * 1000 * math.pi**0.5, 5)\n1.0'
    def erfinv(self) -> Tensor: 'The number whose error function is x: infinite at ±1, NaN outside.\n\n>>> Tensor([0.0, 1.0, -1.0]).erfinv().tolist()\n[0.0, inf, -inf]'
    def ndtr(self) -> Tensor: 'The distribution function of the standard normal distribution.\n\n>>> Tensor([0.0]).ndtr().tolist()\n[0.5]'
    def log_ndtr(self) -> Tensor: 'The logarithm of `ndtr`, accurate in both tails.\n\n>>> round(Tensor([-100.0]).log_ndtr().item(), 2)\n-5005.52'
    def ndtri(self) -> Tensor: 'The inverse of `ndtr`: the quantiles of the standard normal distribution; NaN outside of [0, 1].\n\n>>> Tensor([0.5, 0.0]).ndtri().tolist()\n[0.0, -inf]'
    def _sin_pi(self) -> Tensor: ...

    # elementwise.gamma
    def lgamma(self) -> Tensor: "log |Γ(x)|: infinite at 0 and the negative integers.\n\nOn [1, 2] a fit of lgamma(x) / ((x - 1)(x - 2)), whose zeros stay exact; up to 8 by Γ(x + 1) = x·Γ(x);\nabove Stirling's series; below 0 by reflection, log π - log|sin πx| - lgamma(1 - x).\n\n>>> Tensor([1.0, 2.0, 3.0, 0.0]).lgamma().exp().tolist()\n[1.0, 1.0, 2.0, inf]"
    def digamma(self) -> Tensor: 'The slope of `lgamma`: ψ(x); NaN at the negative integers, -inf at 0.\n\n>>> round(Tensor([1.0]).digamma().item(), 6)\n-0.577216'
    def polygamma(self, n: builtins.int) -> Tensor: 'The n-th derivative of `digamma`; called as `x.polygamma(n)`.\n\nFor n > 20 and x below 0 it is NaN. NotImplementedError for n > 170, whose factorial no float holds.\n\n>>> round(Tensor([1.0]).polygamma(1).item(), 6)\n1.644934'
    def multigammaln(self, p: builtins.int) -> Tensor: 'The logarithm of the multivariate gamma function of p dimensions, for x > (p - 1) / 2.\n\n>>> round(Tensor([3.0]).multigammaln(1).item(), 6)\n0.693147'

    # elementwise.incomplete_gamma
    def igamma(self, other: Any) -> Tensor: "P(a, x) = ∫ t^(a-1)·e^-t dt from 0 to x, divided by Γ(a); a is this tensor, x is `other`.\n\nNaN where either is negative. Its gradient is that of x; NotImplementedError where a's is asked for.\n\n>>> round(Tensor([1.0]).igamma(Tensor([2.0])).item(), 6)\n0.864665"
    def igammac(self, other: Any) -> Tensor: 'Q(a, x) = 1 - P(a, x), accurate where it is small; see `igamma`.\n\n>>> round(Tensor([1.0]).igammac(Tensor([2.0])).item(), 6)\n0.135335'

    # elementwise.bessel
    def i0(self) -> Tensor: 'The modified Bessel function of the first kind of order 0.\n\n>>> Tensor([0.0]).i0().tolist()\n[1.0]'
    def i0e(self) -> Tensor: 'exp(-|x|)·i0(x).\n\n>>> Tensor([0.0]).i0e().tolist()\n[1.0]'
    def i1(self) -> Tensor: 'The modified Bessel function of the first kind of order 1.\n\n>>> Tensor([0.0]).i1().tolist()\n[0.0]'
    def i1e(self) -> Tensor: 'exp(-|x|)·i1(x).\n\n>>> Tensor([0.0]).i1e().tolist()\n[0.0]'
    def sinc(self) -> Tensor: 'sin(πx) / (πx), 1 at 0.\n\n>>> Tensor([0.0, 1.0]).sinc().tolist()\n[1.0, 0.0]'

    # elementwise.activation
    def relu(self) -> Tensor: 'max(x, 0); NaN stays, and the slope at 0 is 0.\n\n>>> Tensor([-1.0, 2.0]).relu().tolist()\n[0.0, 2.0]'
    def relu6(self) -> Tensor: 'min(max(x, 0), 6).\n\n>>> Tensor([-1.0, 2.0, 9.0]).relu6().tolist()\n[0.0, 2.0, 6.0]'
    def sigmoid(self) -> Tensor: '1 / (1 + e^-x), without overflow and accurate on both sides.\n\n>>> print(Tensor([0.0, 1.0]).sigmoid().numpy())\n[0.5       0.7310586]'
    def hardsigmoid(self) -> Tensor: 'min(max(x/6 + 1/2, 0), 1).\n\n>>> Tensor([-4.0, 0.0, 4.0]).hardsigmoid().tolist()\n[0.0, 0.5, 1.0]'
    def hardtanh(self, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> Tensor: 'Limited to [min_val, max_val]; integers stay integers, where the limits are whole.\n\n>>> Tensor([-4.0, 0.5, 4.0]).hardtanh().tolist()\n[-1.0, 0.5, 1.0]'
    def hardswish(self) -> Tensor: 'x · hardsigmoid(x).\n\n>>> Tensor([0.0, 1.5, 4.0]).hardswish().tolist()\n[0.0, 1.125, 4.0]'
    def silu(self) -> Tensor: 'x · sigmoid(x).\n\n>>> print(Tensor([-1.0, 0.0, 1.0]).silu().numpy())\n[-0.26894143  0.          0.7310586 ]'
    def gelu(self, approximate: str = 'tanh') -> Tensor: 'x · Φ(x), Φ the normal distribution: by tanh, or exactly (by erf) with `approximate="none"`.\n\n>>> print(Tensor([-1.0, 0.0, 1.0]).gelu("none").numpy())\n[-0.15865526  0.          0.8413447 ]'
    def quick_gelu(self) -> Tensor: 'x · sigmoid(1.702·x).\n\n>>> print(Tensor([0.0, 1.0]).quick_gelu().numpy())\n[0.         0.84579575]'
    def softplus(self, beta: builtins.float = 1.0, threshold: builtins.float | None = None) -> Tensor: 'log(1 + e^(beta·x)) / beta, without overflow.\n\n>>> print(Tensor([0.0, 1.0]).softplus().numpy())\n[0.6931472 1.3132617]'
    def logsigmoid(self) -> Tensor: 'log(sigmoid(x)), without overflow.\n\n>>> print(Tensor([0.0, 1.0]).logsigmoid().numpy())\n[-0.6931472 -0.3132617]'
    def mish(self) -> Tensor: 'x · tanh(softplus(x)).\n\n>>> print(Tensor([0.0, 1.0]).mish().numpy())\n[0.        0.8650984]'
    def leaky_relu(self, neg_slope: builtins.float = 0.01, *, negative_slope: builtins.float | None = None) -> Tensor: 'x, and `neg_slope`·x where x is negative.\n\n>>> Tensor([-8.0, 2.0]).leaky_relu(0.25).tolist()\n[-2.0, 2.0]'
    def elu(self, alpha: builtins.float = 1.0) -> Tensor: 'x, and alpha·(e^x - 1) where x is negative.\n\n>>> print(Tensor([-1.0, 2.0]).elu().numpy())\n[-0.63212055  2.        ]'
    def celu(self, alpha: builtins.float = 1.0) -> Tensor: 'x, and alpha·(e^(x/alpha) - 1) where x is negative.\n\n>>> print(Tensor([-1.0, 2.0]).celu(2.0).numpy())\n[-0.78693867  2.        ]'
    def selu(self) -> Tensor: 'The scaled elu of self-normalizing networks (Klambauer et al. 2017).\n\n>>> print(Tensor([-1.0, 2.0]).selu().numpy())\n[-1.1113307  2.101402 ]'
    def softsign(self) -> Tensor: 'x / (1 + |x|).\n\n>>> Tensor([-1.0, 3.0]).softsign().tolist()\n[-0.5, 0.75]'
    def threshold(self, threshold: builtins.float, value: builtins.float) -> Tensor: 'x where it is greater than `threshold`, `value` elsewhere.\n\n>>> Tensor([1.0, 2.0, 3.0]).threshold(1.5, -1.0).tolist()\n[-1.0, 2.0, 3.0]'
    def hardshrink(self, lambd: builtins.float = 0.5) -> Tensor: '0 within [-lambd, lambd], x elsewhere.\n\n>>> Tensor([-1.0, 0.25, 2.0]).hardshrink().tolist()\n[-1.0, 0.0, 2.0]'
    def softshrink(self, lambd: builtins.float = 0.5) -> Tensor: 'x moved towards 0 by `lambd`; 0 where it would pass it.\n\n>>> Tensor([-1.0, 0.25, 2.0]).softshrink().tolist()\n[-0.5, 0.0, 1.5]'
    def tanhshrink(self) -> Tensor: 'x - tanh(x).\n\n>>> print(Tensor([0.0, 1.0]).tanhshrink().numpy())\n[0.         0.23840582]'
    def glu(self, dim: builtins.int = -1, *, axis: builtins.int = -1) -> Tensor: 'The first half of an axis, times the sigmoid of the second (Dauphin et al. 2016).\n\n>>> Tensor([3.0, 5.0, 0.0, 0.0]).glu().tolist()\n[1.5, 2.5]'
    def prelu(self, weight: Tensor) -> Tensor: 'x, and weight·x where x is negative (He et al. 2015).\n\nweight  one number, or a 1-d tensor with one for each channel (axis 1)\n\n>>> Tensor([-8.0, 2.0]).prelu(Tensor([0.5])).tolist()\n[-4.0, 2.0]'
    def rrelu(self, lower: builtins.float = 0.125, upper: builtins.float = 0.3333333333333333, training: builtins.bool | None = None, *, generator: Numbers | None = None) -> Tensor: 'x, and a·x where x is negative: a is random in [lower, upper] in training, else their mean.\n\n(Xu et al. 2015.) `training` is `Tensor.training` if not given.\n\n>>> Tensor([-8.0, 2.0]).rrelu(0.25, 0.75, training=False).tolist()\n[-4.0, 2.0]'
    def gumbel_softmax(self, tau: builtins.float = 1.0, hard: builtins.bool = False, dim: builtins.int = -1, *, generator: Numbers | None = None, axis: builtins.int = -1) -> Tensor: 'A random choice along an axis by these logits, smooth in them (Jang, Gu, Poole 2016).\n\ntau   how smooth: towards 0 the result is a one-hot vector\nhard  the result is one-hot, and its gradient that of the smooth one\n\n>>> Tensor([[0.0, 100.0], [100.0, 0.0]]).gumbel_softmax(hard=True).tolist()\n[[0.0, 1.0], [1.0, 0.0]]'
    def dropout(self, p: builtins.float = 0.5, training: builtins.bool | None = None, *, generator: Numbers | None = None) -> Tensor: 'While training, elements are 0 with probability p and the others divided by 1 - p.\n\nElse the tensor itself. `training` is `Tensor.training` if not given.\n\n>>> Tensor([1.0, 2.0]).dropout(0.5).tolist()\n[1.0, 2.0]'
    def _dropped(self, p: builtins.float, training: builtins.bool | None, shape: Any, generator: Numbers | None) -> Tensor: ...
    def _channels_dropped(self, p: builtins.float, training: builtins.bool | None, axes: builtins.int, name: str, generator: Numbers | None) -> Tensor: ...
    def dropout1d(self, p: builtins.float = 0.5, training: builtins.bool | None = None, *, generator: Numbers | None = None) -> Tensor: '`dropout` of whole channels: shape (batch, channels, length), or without batch.\n\n>>> Tensor.ones(2, 3, 4).dropout1d(1.0, training=True).sum().item()\n0.0'
    def dropout2d(self, p: builtins.float = 0.5, training: builtins.bool | None = None, *, generator: Numbers | None = None) -> Tensor: '`dropout` of whole channels: shape (batch, channels, height, width), or without batch.\n\n>>> Tensor.ones(2, 3, 4, 4).dropout2d(1.0, training=True).sum().item()\n0.0'
    def dropout3d(self, p: builtins.float = 0.5, training: builtins.bool | None = None, *, generator: Numbers | None = None) -> Tensor: '`dropout` of whole channels: shape (batch, channels, depth, height, width), or without batch.\n\n>>> Tensor.ones(2, 3, 2, 2, 2).dropout3d(1.0, training=True).sum().item()\n0.0'
    def alpha_dropout(self, p: builtins.float = 0.5, training: builtins.bool | None = None, *, generator: Numbers | None = None) -> Tensor: "Dropout that keeps mean 0 and variance 1, for networks with `selu` (Klambauer et al. 2017).\n\nDropped elements become selu's limit -alpha·scale, then all are scaled and moved.\n\n>>> Tensor([1.0, 2.0]).alpha_dropout(0.5).tolist()\n[1.0, 2.0]"
    def feature_alpha_dropout(self, p: builtins.float = 0.5, training: builtins.bool | None = None, *, generator: Numbers | None = None) -> Tensor: '`alpha_dropout` of whole channels: shape (batch, channels, ...).\n\n>>> Tensor.ones(2, 3, 4).feature_alpha_dropout(0.0, training=True).sum().item()\n24.0'
    def _alpha_dropped(self, p: builtins.float, training: builtins.bool | None, shape: Any, generator: Numbers | None) -> Tensor: ...

    # shape.movement
    def _axis(self, axis: Any) -> builtins.int: ...
    def _axes(self, axis: Axis) -> tuple[builtins.int, ...]: ...
    def reshape(self, *shape: Any) -> Tensor: 'The same elements in row-major order in another shape.\n\nOne size may be -1, and None keeps a size.\n\n>>> Tensor([1, 2, 3, 4]).reshape(2, -1).tolist()\n[[1, 2], [3, 4]]'
    def reshape_as(self, other: Tensor) -> Tensor: 'This tensor in the shape of another.\n\n>>> Tensor([1, 2]).reshape_as(Tensor([[0], [0]])).tolist()\n[[1], [2]]'
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor: 'The axes from `start_dim` to `end_dim`, both included, become one.\n\n>>> Tensor([[1, 2], [3, 4]]).flatten().tolist()\n[1, 2, 3, 4]'
    @overload
    def unflatten(self, dim: builtins.int, sizes: Sequence[sint]) -> Tensor: 'One axis becomes several, of these sizes (one may be -1).\n\n>>> Tensor.zeros(6).unflatten(0, (2, 3)).shape\n(2, 3)'
    @overload
    def unflatten(self, *, axis: builtins.int, sizes: Sequence[sint]) -> Tensor: ...
    def squeeze(self, dim: Axis = None, *, axis: Axis = None) -> Tensor: 'Without the axes of size 1: all of them, or those named (a named axis of another size stays).\n\n>>> Tensor.zeros(1, 2, 1).squeeze().shape\n(2,)'
    @overload
    def unsqueeze(self, dim: builtins.int) -> Tensor: 'A new axis of size 1 at this position.\n\n>>> Tensor([1, 2]).unsqueeze(0).tolist()\n[[1, 2]]'
    @overload
    def unsqueeze(self, *, axis: builtins.int) -> Tensor: ...
    def permute(self, *order: Any, dims: Sequence[builtins.int] | None = None) -> Tensor: 'Axis i of the result is axis `order[i]` of this tensor.\n\n>>> Tensor.zeros(2, 3, 4).permute(2, 0, 1).shape\n(4, 2, 3)'
    def transpose(self, dim0: builtins.int = 1, dim1: builtins.int = 0) -> Tensor: 'Two axes exchanged; the first two if none are named.\n\n>>> Tensor([[1, 2], [3, 4]]).transpose().tolist()\n[[1, 3], [2, 4]]'
    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor: 'Two axes exchanged.\n\n>>> Tensor.zeros(2, 3).swapaxes(0, 1).shape\n(3, 2)'
    def movedim(self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]) -> Tensor: 'The axes `source` moved to the positions `destination`; the others keep their order.\n\n>>> Tensor.zeros(2, 3, 4).movedim(0, -1).shape\n(3, 4, 2)'
    @property
    def T(self) -> Tensor: 'All axes in reverse order: the transpose of a matrix.'
    @property
    def mT(self) -> Tensor: 'The last two axes exchanged: the transpose of every matrix of a batch.'
    def flip(self, *axes: Any, dims: Axis = None, dim: Axis = None, axis: Axis = None) -> Tensor: 'These axes run backwards: all of them in `flip()`, none in `flip(())`.\n\n>>> Tensor([1, 2, 3]).flip(0).tolist()\n[3, 2, 1]'
    def roll(self, shifts: builtins.int | Sequence[builtins.int], dims: Axis = None, *, axis: Axis = None, dim: Axis = None) -> Tensor: 'Elements shifted along axes by `shifts`; those that leave enter again on the other side.\n\nWithout axes the flattened tensor is rolled.\n\n>>> Tensor([1, 2, 3]).roll(1).tolist()\n[3, 1, 2]'
    def expand(self, *shape: Any) -> Tensor: 'Axes of size 1 repeated to these sizes without memory; -1 keeps a size, new axes are in front.\n\n>>> Tensor([[1], [2]]).expand(2, 2).tolist()\n[[1, 1], [2, 2]]'
    def expand_as(self, other: Tensor) -> Tensor: 'Broadcast to the shape of another tensor.\n\n>>> Tensor([1]).expand_as(Tensor([5, 6])).tolist()\n[1, 1]'
    def is_same_size(self, other: Tensor) -> builtins.bool: 'Whether another tensor has this shape.\n\n>>> Tensor([1]).is_same_size(Tensor([2]))\nTrue'
    def repeat(self, *repeats: Any) -> Tensor: 'The whole tensor tiled: `repeats[i]` times along axis i (new axes are in front).\n\n>>> Tensor([1, 2]).repeat(2).tolist()\n[1, 2, 1, 2]'
    def tile(self, *repeats: Any) -> Tensor: "`repeat` as numpy's tile: missing numbers are 1.\n\n>>> Tensor([1, 2]).tile(2).tolist()\n[1, 2, 1, 2]"
    def repeat_interleave(self, repeats: Any, dim: builtins.int | None = None, *, output_size: builtins.int | None = None, axis: builtins.int | None = None) -> Tensor: 'Each element (along one axis; of the flattened tensor without) `repeats` times in a row.\n\nrepeats      a number for all, or a 1-d tensor with one for each element, computed for the sum\noutput_size  the sum, where it is known: ValueError where it is another\n\n>>> Tensor([1, 2]).repeat_interleave(2).tolist()\n[1, 1, 2, 2]'
    def shrink(self, arg: Sequence[tuple[sint, sint] | None]) -> Tensor: 'The part `(begin, end)` of each axis; None keeps an axis whole.\n\n>>> Tensor([1, 2, 3]).shrink([(1, 3)]).tolist()\n[2, 3]'
    def _window(self, axis: builtins.int, begin: sint, end: sint) -> Tensor: ...
    @overload
    def narrow(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor: '`length` elements of one axis, from `start` on.\n\n>>> Tensor([1, 2, 3]).narrow(0, 1, 2).tolist()\n[2, 3]'
    @overload
    def narrow(self, *, axis: builtins.int, start: builtins.int, length: builtins.int) -> Tensor: ...
    @overload
    def narrow_copy(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor: '`narrow` in memory of its own.\n\n>>> Tensor([1, 2, 3]).narrow_copy(0, 1, 2).tolist()\n[2, 3]'
    @overload
    def narrow_copy(self, *, axis: builtins.int, start: builtins.int, length: builtins.int) -> Tensor: ...
    def split(self, sizes: builtins.int | Sequence[builtins.int], dim: builtins.int = 0, *, axis: builtins.int = 0) -> tuple[Tensor, ...]: 'Pieces of an axis: of this size (the last may be smaller), or of these sizes.\n\n>>> [t.tolist() for t in Tensor([1, 2, 3]).split(2)]\n[[1, 2], [3]]'
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0, *, axis: builtins.int = 0) -> tuple[Tensor, ...]: 'At most `chunks` equal pieces of an axis (the last may be smaller); `chunks` of an empty one.\n\n>>> [t.tolist() for t in Tensor([1, 2, 3]).chunk(2)]\n[[1, 2], [3]]'
    def unbind(self, dim: builtins.int = 0, *, axis: builtins.int = 0) -> tuple[Tensor, ...]: 'The slices along an axis, each without it.\n\n>>> [t.tolist() for t in Tensor([[1, 2], [3, 4]]).unbind()]\n[[1, 2], [3, 4]]'
    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor: 'The elements with equal indices on two axes (shifted by `offset`), as a new last axis.\n\n>>> Tensor([[1, 2], [3, 4]]).diagonal().tolist()\n[1, 4]'

    # shape.rearranging
    def rearrange(self, formula: str, **sizes: builtins.int) -> Tensor: 'Axes split, joined and put in another order by a formula with names, as einops writes it.\n\nformula  the axes before and after `->`; in parentheses those that are one axis there; `...` for all\n         that are not named; `1` for an axis of size 1\nsizes    of names in parentheses; one of each parenthesis may be left out\n\n>>> Tensor.zeros(2, 12, 5).rearrange("b (h w) c -> b c h w", h=3).shape\n(2, 5, 3, 4)'

    # shape.padding
    def pad(self, padding: Any, mode: str = 'constant', value: ConstType = 0) -> Tensor: 'Places added around the tensor.\n\npadding  as PyTorch: (before, after) of the last axis, then of the one before it, ... flat; or a\n         `(before, after)` (or None) for each axis. Negative amounts cut.\nmode     constant (`value`), reflect, replicate or circular\n\n>>> Tensor([1, 2]).pad((1, 0)).tolist()\n[0, 1, 2]'
    def _padding(self, padding: Any) -> tuple[tuple[Any, Any], ...]: ...
    def _pad_constant(self, amounts: Sequence[tuple[sint, sint]], value: ConstType) -> Tensor: ...
    def _pad_from_itself(self, axis: builtins.int, before: builtins.int, after: builtins.int, mode: str) -> Tensor: ...
    def _pool(self, kernel: Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = 1, dilation: builtins.int | Sequence[builtins.int] = 1) -> Tensor: ...
    @overload
    def unfold(self, dim: builtins.int, size: builtins.int, step: builtins.int) -> Tensor: 'All windows of `size` along an axis, `step` apart, as a new last axis.\n\n>>> Tensor([1, 2, 3]).unfold(0, 2, 1).tolist()\n[[1, 2], [2, 3]]'
    @overload
    def unfold(self, *, axis: builtins.int, size: builtins.int, step: builtins.int) -> Tensor: ...

    # shape.arranging
    def rot90(self, k: builtins.int = 1, dims: Sequence[builtins.int] = (0, 1)) -> Tensor: 'Turned k quarters from the first of two axes towards the second.\n\n>>> Tensor([[1, 2], [3, 4]]).rot90().tolist()\n[[2, 4], [1, 3]]'
    def fliplr(self) -> Tensor: 'The second axis backwards.\n\n>>> Tensor([[1, 2]]).fliplr().tolist()\n[[2, 1]]'
    def flipud(self) -> Tensor: 'The first axis backwards.\n\n>>> Tensor([1, 2]).flipud().tolist()\n[2, 1]'
    def t(self) -> Tensor: 'The transpose of a matrix; a 1-d tensor as it is.\n\n>>> Tensor([[1, 2]]).t().tolist()\n[[1], [2]]'
    def adjoint(self) -> Tensor: 'The last two axes exchanged (numbers are real).\n\n>>> Tensor([[1, 2]]).adjoint().tolist()\n[[1], [2]]'
    @property
    def mH(self) -> Tensor: 'The last two axes exchanged: `adjoint()`.'
    @property
    def H(self) -> Tensor: 'The transpose of a matrix.'
    def cartesian_prod(self, *args: Tensor) -> Tensor: 'All tuples of elements of 1-d tensors, one row for each; of one tensor, the tensor.\n\n>>> Tensor([1, 2]).cartesian_prod(Tensor([3, 4])).tolist()\n[[1, 3], [1, 4], [2, 3], [2, 4]]'
    def combinations(self, r: builtins.int = 2, with_replacement: builtins.bool = False) -> Tensor: 'All choices of r elements of a 1-d tensor in order, one row for each.\n\n>>> Tensor([1, 2, 3]).combinations().tolist()\n[[1, 2], [1, 3], [2, 3]]'
    def vander(self, N: builtins.int | None = None, increasing: builtins.bool = False) -> Tensor: 'The powers of the elements of a 1-d tensor, one row for each: from N - 1 down to 0, or upwards.\n\n>>> Tensor([2, 3]).vander(3).tolist()\n[[4, 2, 1], [9, 3, 1]]'
    def as_strided(self, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int = 0) -> Tensor: 'Element (i, j, ...) is number offset + i·stride[0] + j·stride[1] + ... of the flattened tensor.\n\nThe elements count in row-major order, whatever memory the tensor is in; the result is not a view.\n\n>>> Tensor([1, 2, 3, 4]).as_strided((3, 2), (1, 1)).tolist()\n[[1, 2], [2, 3], [3, 4]]'
    def sum_to_size(self, *size: Any) -> Tensor: 'The sum over the axes that broadcasting from this shape would have repeated.\n\n>>> Tensor([[1, 2], [3, 4]]).sum_to_size(1, 2).tolist()\n[[4, 6]]'

    # shape.diagonals
    def diag_embed(self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor: 'The last axis as the diagonal of a new pair of axes, zeros beside it.\n\n>>> Tensor([1, 2]).diag_embed().tolist()\n[[1, 0], [0, 2]]'
    def diagflat(self, offset: builtins.int = 0) -> Tensor: 'All elements as the diagonal of a matrix.\n\n>>> Tensor([[1], [2]]).diagflat().tolist()\n[[1, 0], [0, 2]]'
    def fill_diagonal_(self, fill_value: ConstType, wrap: builtins.bool = False) -> Any: 'Write a number into the diagonal of this tensor\'s memory; returns the tensor.\n\nwrap  of a matrix that is taller than wide: begin a new diagonal one row below the end of the last\n\nOf more than two axes, all of one size, the elements whose indices are equal.\n\n>>> Tensor.zeros(3, 2, dtype="int32").fill_diagonal_(7).tolist()\n[[7, 0], [0, 7], [0, 0]]'
    @classmethod
    def tril_indices(cls, row: builtins.int, col: builtins.int, offset: builtins.int = 0, *, device: Devices | None = None) -> Tensor: 'The indices of the lower triangle of a matrix: a row of row indices and a row of column indices.\n\n>>> Tensor.tril_indices(2, 2).tolist()\n[[0, 1, 1], [0, 0, 1]]'
    @classmethod
    def triu_indices(cls, row: builtins.int, col: builtins.int, offset: builtins.int = 0, *, device: Devices | None = None) -> Tensor: 'The indices of the upper triangle of a matrix: a row of row indices and a row of column indices.\n\n>>> Tensor.triu_indices(2, 2).tolist()\n[[0, 0, 1], [0, 1, 1]]'
    @classmethod
    def _offsets(cls, name: str, row: builtins.int, col: builtins.int, device: Devices | None, wanted: Callable[[builtins.int, builtins.int], builtins.bool]) -> Tensor: ...

    # shape.joining
    def _joined(self, others: Iterable[Any], method: str) -> list[Tensor]: ...
    def cat(self, *args: Any, dim: builtins.int = 0, axis: builtins.int = 0) -> Tensor: 'Tensors joined along an axis that exists.\n\n`a.cat(b, c, dim=0)` or `Tensor.cat(a, b, c)`, also of a list.\n\nAll other sizes must be equal, except that a tensor of shape (0,) is left out. Dtypes are promoted to\na common one.\n\n>>> Tensor([1]).cat(Tensor([2, 3])).tolist()\n[1, 2, 3]'
    def stack(self, *args: Any, dim: builtins.int = 0, axis: builtins.int = 0) -> Tensor: 'Tensors of one shape joined along a new axis.\n\n`a.stack(b, dim=0)` or `Tensor.stack(a, b)`, also of a list.\n\n>>> Tensor([1, 2]).stack(Tensor([3, 4])).tolist()\n[[1, 2], [3, 4]]'
    def meshgrid(self, *args: Tensor | Sequence[Tensor], indexing: str = 'ij') -> tuple[Tensor, ...]: 'Coordinate grids of 1-d tensors: grid i varies along axis i.\n\n>>> [t.tolist() for t in Tensor([1, 2]).meshgrid(Tensor([3]))]\n[[[1], [2]], [[3], [3]]]'

    # shape.stacking
    def atleast_1d(self) -> Tensor: 'A 0-d tensor with an axis of size 1; others as they are.\n\n>>> Tensor(3).atleast_1d().shape\n(1,)'
    def atleast_2d(self) -> Tensor: 'A 1-d tensor as a row; a 0-d tensor as a 1×1 matrix.\n\n>>> Tensor([1, 2]).atleast_2d().shape\n(1, 2)'
    def atleast_3d(self) -> Tensor: 'A 1-d tensor as (1, n, 1), a matrix as (m, n, 1).\n\n>>> Tensor([1, 2]).atleast_3d().shape\n(1, 2, 1)'
    def hstack(self, *args: Any) -> Tensor: 'Tensors side by side: 1-d tensors end to end, others along the second axis.\n\n>>> Tensor.hstack(Tensor([1]), Tensor([2, 3])).tolist()\n[1, 2, 3]'
    def vstack(self, *args: Any) -> Tensor: 'Tensors on top of each other; 1-d tensors are rows.\n\n>>> Tensor.vstack(Tensor([1, 2]), Tensor([3, 4])).tolist()\n[[1, 2], [3, 4]]'
    def dstack(self, *args: Any) -> Tensor: 'Tensors joined along the third axis.\n\n>>> Tensor.dstack(Tensor([1, 2]), Tensor([3, 4])).tolist()\n[[[1, 3], [2, 4]]]'
    def column_stack(self, *args: Any) -> Tensor: '1-d tensors as the columns of a matrix; matrices side by side.\n\n>>> Tensor.column_stack(Tensor([1, 2]), Tensor([3, 4])).tolist()\n[[1, 3], [2, 4]]'
    def block_diag(self, *args: Any) -> Tensor: 'Matrices (1-d tensors are rows) along the diagonal of a matrix of zeros.\n\n>>> Tensor.block_diag(Tensor([[1, 2]]), Tensor([3])).tolist()\n[[1, 2, 0], [0, 0, 3]]'
    def tensor_split(self, indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor, dim: builtins.int = 0, *, axis: builtins.int = 0) -> tuple[Tensor, ...]: 'An axis in a number of parts (the first ones are longer by one if it is not divisible), or cut\nbefore these indices.\n\n>>> [t.tolist() for t in Tensor([1, 2, 3, 4, 5]).tensor_split(2)]\n[[1, 2, 3], [4, 5]]'
    def hsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]: '`tensor_split` of the second axis; of a 1-d tensor, of its axis.\n\n>>> [t.tolist() for t in Tensor([[1, 2], [3, 4]]).hsplit(2)]\n[[[1], [3]], [[2], [4]]]'
    def vsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]: '`tensor_split` of the first axis.\n\n>>> [t.tolist() for t in Tensor([[1, 2], [3, 4]]).vsplit(2)]\n[[[1, 2]], [[3, 4]]]'
    def dsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]: '`tensor_split` of the third axis.\n\n>>> [t.shape for t in Tensor.zeros(1, 2, 4).dsplit(2)]\n[(1, 2, 2), (1, 2, 2)]'
    def _split_evenly(self, name: str, axis: builtins.int, rank: builtins.int, parts: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]: ...

    # reduce.reductions
    def _reduce(self, op: Ops, axis: Axis, keepdim: builtins.bool, identity: ConstType | None = None) -> Tensor: ...
    def _accumulated(self, op: Ops, axis: Axis, keepdim: builtins.bool, dtype: DTypeLike, identity: ConstType) -> Tensor: ...
    def _count(self, axes: tuple[builtins.int, ...]) -> sint: ...
    def sum(self, axis: Axis = None, keepdim: builtins.bool = False, dtype: DTypeLike = None, *, dim: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'The sum along axes; 0 over no elements.\n\n>>> Tensor([[1, 2], [3, 4]]).sum(0).tolist()\n[4, 6]'
    def prod(self, axis: Axis = None, keepdim: builtins.bool = False, dtype: DTypeLike = None, *, dim: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'The product along axes; 1 over no elements.\n\n>>> Tensor([2, 3]).prod().item()\n6'
    def max(self, axis: Axis | Tensor = None, keepdim: builtins.bool = False, *, dim: Axis | Tensor = None, keepdims: builtins.bool = False) -> Tensor: 'The largest element along axes; NaN if there is one; equal elements share the gradient.\n\nWith a tensor in place of the axis it is `maximum`, as in PyTorch.\n\n>>> Tensor([1, 3, 2]).max().item()\n3'
    def min(self, axis: Axis | Tensor = None, keepdim: builtins.bool = False, *, dim: Axis | Tensor = None, keepdims: builtins.bool = False) -> Tensor: 'The smallest element along axes; NaN if there is one; equal elements share the gradient.\n\nWith a tensor in place of the axis it is `minimum`, as in PyTorch.\n\n>>> Tensor([1, 3, 2]).min().item()\n1'
    def amax(self, dim: Axis = None, keepdim: builtins.bool = False, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor: "`max` by PyTorch's name for several axes.\n\n>>> Tensor([[1, 2], [3, 0]]).amax(1).tolist()\n[2, 3]"
    def amin(self, dim: Axis = None, keepdim: builtins.bool = False, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor: "`min` by PyTorch's name for several axes.\n\n>>> Tensor([[1, 2], [3, 0]]).amin(1).tolist()\n[1, 0]"
    def any(self, axis: Axis = None, keepdim: builtins.bool = False, *, dim: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'Whether any element along axes is nonzero.\n\n>>> Tensor([True, False]).any().item()\nTrue'
    def all(self, axis: Axis = None, keepdim: builtins.bool = False, *, dim: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'Whether all elements along axes are nonzero.\n\n>>> Tensor([True, False]).all().item()\nFalse'
    def allclose(self, other: Any, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False) -> builtins.bool: 'Whether all elements are close to those of `other` (see `isclose`). Runs now.\n\n>>> Tensor([1.0]).allclose(Tensor([1.0 + 1e-7]))\nTrue'
    def mean(self, axis: Axis = None, keepdim: builtins.bool = False, dtype: DTypeLike = None, *, dim: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'The average along axes, in floats; NaN over no elements.\n\n>>> Tensor([1.0, 2.0]).mean().item()\n1.5'
    def var(self, axis: Axis = None, keepdim: builtins.bool = False, correction: builtins.float | None = 1, *, unbiased: builtins.bool | None = None, dim: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'The variance along axes.\n\nSquared distances from the mean, their sum divided by `count - correction`.\n\nunbiased  instead of a correction: 1 for True, 0 for False; `var(False)` says it of all elements\n\n>>> Tensor([1.0, 3.0]).var().item()\n2.0'
    def std(self, axis: Axis = None, keepdim: builtins.bool = False, correction: builtins.float | None = 1, *, unbiased: builtins.bool | None = None, dim: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'The square root of the variance (`var`, which says what the arguments are).\n\n>>> Tensor([1.0, 3.0]).std(correction=0).item()\n1.0'
    def var_mean(self, axis: Axis = None, keepdim: builtins.bool = False, correction: builtins.float | None = 1, *, unbiased: builtins.bool | None = None, dim: Axis = None, keepdims: builtins.bool = False) -> tuple[Tensor, Tensor]: 'The variance and the mean.\n\n>>> [t.item() for t in Tensor([1.0, 3.0]).var_mean()]\n[2.0, 2.0]'
    def std_mean(self, axis: Axis = None, keepdim: builtins.bool = False, correction: builtins.float | None = 1, *, unbiased: builtins.bool | None = None, dim: Axis = None, keepdims: builtins.bool = False) -> tuple[Tensor, Tensor]: 'The standard deviation and the mean.\n\n>>> [t.item() for t in Tensor([1.0, 3.0]).std_mean(correction=0)]\n[1.0, 2.0]'
    def norm(self, p: builtins.float | str | None = 2, axis: Axis = None, keepdim: builtins.bool = False, *, dim: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'The p-norm of the elements along axes: (Σ|x|^p)^(1/p).\n\n`inf` is the greatest, 0 counts what is not 0, "nuc" is that of matrices (`matrix_norm`).\n\n>>> Tensor([3.0, 4.0]).norm().item()\n5.0'
    def _root(self, p: builtins.float) -> Tensor: ...
    def argmax(self, axis: builtins.int | None = None, keepdim: builtins.bool = False, *, dim: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor: 'The index of the largest element along an axis (of the flattened tensor): the first of equals.\n\nNaN wins.\n\n>>> Tensor([1, 5, 5]).argmax().item()\n1'
    def argmin(self, axis: builtins.int | None = None, keepdim: builtins.bool = False, *, dim: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor: 'The index of the smallest element along an axis (of the flattened tensor): the first of equals.\n\nNaN wins.\n\n>>> Tensor([4, 1, 1]).argmin().item()\n1'
    def _index_of(self, op: Ops, axis: builtins.int | None, keepdim: builtins.bool) -> Tensor: ...
    def _shift(self, axis: Axis) -> Tensor: ...
    def softmax(self, axis: builtins.int | None = -1, dtype: DTypeLike = None, *, dim: builtins.int | None = -1) -> Tensor: 'e^x divided by the sum of e^x along an axis.\n\naxis  None: as PyTorch has it, axis 0 of a tensor of 0, 1 or 3 axes and else axis 1, with a warning\n\n>>> Tensor([0.0, 0.0]).softmax().tolist()\n[0.5, 0.5]'
    def softmin(self, axis: builtins.int | None = -1, dtype: DTypeLike = None, *, dim: builtins.int | None = -1) -> Tensor: 'The softmax of -x.\n\n>>> Tensor([0.0, 0.0]).softmin().tolist()\n[0.5, 0.5]'
    def _said_or_implied(self, name: str, axis: builtins.int | None) -> builtins.int: ...
    def log_softmax(self, axis: builtins.int | None = -1, dtype: DTypeLike = None, *, dim: builtins.int | None = -1) -> Tensor: 'The logarithm of the softmax, without overflow.\n\n>>> Tensor([0.0]).log_softmax().tolist()\n[0.0]'
    def logsumexp(self, axis: Axis = None, keepdim: builtins.bool = False, *, dim: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'log(Σe^x) along axes, without overflow.\n\n>>> Tensor([0.0, -math.inf]).logsumexp().item()\n0.0'

    # reduce.running
    def _running(self, op: Ops, axis: builtins.int) -> Tensor: ...
    def _accumulated_along(self, op: Ops, axis: builtins.int, dtype: DTypeLike) -> Tensor: ...
    def cumsum(self, axis: builtins.int = 0, dtype: DTypeLike = None, *, dim: builtins.int = 0) -> Tensor: 'The running sum along an axis.\n\n>>> Tensor([1, 2, 3]).cumsum().tolist()\n[1, 3, 6]'
    def cumprod(self, axis: builtins.int = 0, dtype: DTypeLike = None, *, dim: builtins.int = 0) -> Tensor: 'The running product along an axis.\n\n>>> Tensor([1, 2, 3]).cumprod().tolist()\n[1, 2, 6]'
    def cummax(self, axis: builtins.int = 0, *, dim: builtins.int = 0) -> Tensor: 'The running maximum along an axis: NaN wins, the last of equals takes the gradient.\n\n`cummax_indices` says where each was.\n\n>>> Tensor([1, 3, 2]).cummax().tolist()\n[1, 3, 3]'
    def cummin(self, axis: builtins.int = 0, *, dim: builtins.int = 0) -> Tensor: 'The running minimum along an axis: NaN wins, the last of equals takes the gradient.\n\n`cummin_indices` says where each was.\n\n>>> Tensor([3, 1, 2]).cummin().tolist()\n[3, 1, 1]'
    def cummax_indices(self, axis: builtins.int = 0, *, dim: builtins.int = 0) -> Tensor: 'The index of the running maximum along an axis: the last of equals, the last NaN.\n\n>>> Tensor([1, 3, 2]).cummax_indices().tolist()\n[0, 1, 1]'
    def cummin_indices(self, axis: builtins.int = 0, *, dim: builtins.int = 0) -> Tensor: 'The index of the running minimum along an axis: the last of equals, the last NaN.\n\n>>> Tensor([3, 1, 2]).cummin_indices().tolist()\n[0, 1, 1]'
    def _winner(self, op: Ops, axis: builtins.int) -> Tensor: ...
    def logcumsumexp(self, axis: builtins.int = 0, *, dim: builtins.int = 0) -> Tensor: 'log of the running sum of e^x along an axis, without overflow.\n\nWhat was summed shrinks by e^(old maximum - new maximum) where the running maximum grows.\n\n>>> Tensor([0.0, -math.inf]).logcumsumexp().tolist()\n[0.0, 0.0]'

    # reduce.statistics
    def _no_nan(self, value: builtins.float) -> Tensor: ...
    def nansum(self, dim: Axis = None, keepdim: builtins.bool = False, *, dtype: Any = None, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'The sum along axes of what is not NaN.\n\n>>> Tensor([1.0, math.nan]).nansum().item()\n1.0'
    def nanmean(self, dim: Axis = None, keepdim: builtins.bool = False, *, dtype: Any = None, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'The average along axes of what is not NaN; NaN where nothing is.\n\n>>> Tensor([1.0, math.nan, 3.0]).nanmean().item()\n2.0'
    def count_nonzero(self, dim: Axis = None, keepdim: builtins.bool = False, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'How many elements along axes are nonzero.\n\n>>> Tensor([0, 3, 4]).count_nonzero().item()\n2'
    def aminmax(self, *, dim: Axis = None, keepdim: builtins.bool = False, axis: Axis = None, keepdims: builtins.bool = False) -> tuple[Tensor, Tensor]: 'The smallest and the largest element along axes.\n\n>>> [t.item() for t in Tensor([3, 1, 2]).aminmax()]\n[1, 3]'
    def _sorted_line(self, dim: builtins.int | None) -> tuple[Tensor, builtins.int]: ...
    def nanmedian(self, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Any: 'The value in the middle (the lower one of two) of what is not NaN along an axis, and its index.\n\nWithout an axis that of all elements, alone; equal elements share its gradient.\n\n>>> Tensor([1.0, math.nan, 3.0, 5.0]).nanmedian().item()\n3.0'
    def mode(self, dim: builtins.int = -1, keepdim: builtins.bool = False, *, axis: builtins.int = -1, keepdims: builtins.bool = False) -> tuple[Tensor, Tensor]: 'The most frequent value along an axis (the smallest of equally frequent ones), and its last index.\n\n>>> [t.item() for t in Tensor([3, 1, 3, 1, 2]).mode()]\n[1, 3]'
    def quantile(self, q: Any, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = 'linear', axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor: 'The value below which a part q of the elements along an axis lies; NaN where one is NaN.\n\nq              a number in [0, 1], or a 1-d tensor of them, which becomes the first axis of the result\ninterpolation  between two elements: linear, lower, higher, midpoint or nearest\n\nBetween two infinities, and at one, linear and midpoint give NaN, as in PyTorch; the others choose.\n\n>>> Tensor([1.0, 2.0, 4.0]).quantile([0.5, 0.75]).tolist()\n[2.0, 3.0]'
    def nanquantile(self, q: Any, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = 'linear', axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor: '`quantile` of what is not NaN; NaN where nothing is.\n\n>>> Tensor([1.0, math.nan, 4.0]).nanquantile(0.5).item()\n2.5'
    def _quantile(self, q: Any, dim: builtins.int | None, keepdim: builtins.bool, interpolation: str, name: str) -> Tensor: ...
    def diff(self, n: builtins.int = 1, dim: builtins.int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, axis: builtins.int = -1) -> Tensor: 'The n-th differences of neighbours along an axis; of bools whether they differ.\n\nprepend, append  tensors that the axis is lengthened by first\n\n>>> Tensor([1, 4, 9]).diff().tolist()\n[3, 5]'
    def trapezoid(self, x: Tensor | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1, axis: builtins.int = -1) -> Tensor: 'The area below points along an axis, by the trapezoidal rule.\n\nx   where the points are: a 1-d tensor, or a tensor that broadcasts      dx  else their distance\n\n>>> Tensor([1.0, 3.0]).trapezoid().item()\n2.0'
    def cumulative_trapezoid(self, x: Tensor | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1, axis: builtins.int = -1) -> Tensor: 'The running area below points along an axis.\n\n>>> Tensor([1.0, 3.0, 5.0]).cumulative_trapezoid().tolist()\n[2.0, 6.0]'
    def _trapezoids(self, x: Any, dx: builtins.float, dim: builtins.int) -> Tensor: ...
    def cov(self, *, correction: builtins.int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor: 'The covariances of variables: a row for each, a column for each observation; of one its variance.\n\nfweights  how often each observation counts (integers)      aweights  how much each weighs\n\n>>> Tensor([[0.0, 2.0], [1.0, 5.0]]).cov().tolist()\n[[2.0, 4.0], [4.0, 8.0]]'
    def corrcoef(self) -> Tensor: 'The correlations of variables: a row for each, a column for each observation.\n\n>>> Tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).corrcoef().round(5).tolist()\n[[1.0, -1.0], [-1.0, 1.0]]'
    def nanvar(self, dim: Axis = None, keepdim: builtins.bool = False, correction: builtins.float = 1, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'The variance along axes of what is not NaN.\n\n>>> Tensor([1.0, math.nan, 3.0]).nanvar().item()\n2.0'
    def nanstd(self, dim: Axis = None, keepdim: builtins.bool = False, correction: builtins.float = 1, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor: 'The standard deviation along axes of what is not NaN.\n\n>>> Tensor([1.0, math.nan, 3.0]).nanstd(correction=0).item()\n1.0'

    # indexing.sorting
    def _order(self, dim: builtins.int, descending: builtins.bool) -> tuple[UOp, builtins.int]: ...
    def _first(self, dim: builtins.int, descending: builtins.bool, k: builtins.int) -> tuple[UOp, builtins.int]: ...
    def _keys(self, dim: builtins.int, descending: builtins.bool) -> tuple[UOp, builtins.int]: ...
    def _in_order(self, order: UOp, axis: builtins.int) -> tuple[Tensor, Tensor]: ...
    def sort(self, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = True, axis: builtins.int = -1) -> tuple[Tensor, Tensor]: 'The values along an axis in order, and their indices.\n\nNaN counts as the largest; equal values keep their order, whether `stable` is asked for or not.\n\n>>> [t.tolist() for t in Tensor([3, 1, 2]).sort()]\n[[1, 2, 3], [1, 2, 0]]'
    def argsort(self, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = True, axis: builtins.int = -1) -> Tensor: 'The indices that sort an axis: `sort` without the values.\n\n>>> Tensor([3, 1, 2]).argsort().tolist()\n[1, 2, 0]'
    def topk(self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted_: builtins.bool = True, *, sorted: builtins.bool | None = None, axis: builtins.int = -1) -> tuple[Tensor, Tensor]: 'The k largest values along an axis (or the smallest ones) in order, and their indices.\n\nOf equal values, those that come first. `sorted=False` changes nothing.\n\n>>> [t.tolist() for t in Tensor([3, 1, 2]).topk(2)]\n[[3, 2], [0, 2]]'
    def kthvalue(self, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False, *, axis: builtins.int = -1, keepdims: builtins.bool = False) -> tuple[Tensor, Tensor]: 'The k-th smallest value along an axis, counted from 1, and its index.\n\n>>> [t.item() for t in Tensor([3, 1, 2]).kthvalue(2)]\n[2, 2]'
    def median(self, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Any: 'The value in the middle along an axis (the lower one of two), and its index.\n\nNaN if there is one. Without an axis the middle of all elements, alone; equal elements share its\ngradient, and of no elements it is NaN.\n\n>>> Tensor([3, 1, 2]).median().item()\n2'
    def msort(self) -> Tensor: 'The values along the first axis in order.\n\n>>> Tensor([3, 1, 2]).msort().tolist()\n[1, 2, 3]'

    # indexing.searching
    def searchsorted(self, values: Any, *, right: builtins.bool = False, side: str | None = None, out_int32: builtins.bool = False, sorter: Tensor | None = None) -> Tensor: 'The indices at which values would be inserted to keep this tensor sorted: a binary search.\n\nself     a 1-d tensor, or rows along the last axis; then values has as many rows; NaN come last\nright    after equal elements instead of before them; so does side="right"\nsorter   the order of an unsorted tensor, as `argsort` gives it\n\n>>> Tensor([1, 3, 5]).searchsorted(Tensor([3, 6])).tolist()\n[1, 3]'
    def bucketize(self, boundaries: Tensor, *, right: builtins.bool = False, out_int32: builtins.bool = False) -> Tensor: 'Between which of the sorted boundaries each element lies: how many are below it.\n\nright  whether boundaries that are equal count as below\n\n>>> Tensor([0, 3, 9]).bucketize(Tensor([1, 3, 5])).tolist()\n[0, 1, 3]'
    def isin(self, test_elements: Any, *, assume_unique: builtins.bool = False, invert: builtins.bool = False) -> Tensor: 'Whether each element occurs in `test_elements`; with `invert`, whether it does not.\n\n>>> Tensor([1, 2, 3]).isin(Tensor([2, 5])).tolist()\n[False, True, False]'
    def unique(self, sorted: builtins.bool = True, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int | None = None, *, axis: builtins.int | None = None) -> Any: "The different values, in order.\n\nIt is computed at once, since the shape depends on the values.\n\nreturn_inverse  also where each element is among them, in this tensor's shape\nreturn_counts   also how often each occurs\ndim             slices along this axis instead of elements, in lexicographic order (on the host)\n\n>>> Tensor([3, 1, 3]).unique().tolist()\n[1, 3]"
    def _unique_slices(self, axis: builtins.int, return_inverse: builtins.bool, return_counts: builtins.bool) -> Any: ...
    def unique_consecutive(self, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int | None = None, *, axis: builtins.int | None = None) -> Any: 'The values without those that repeat the one before them.\n\nIt is computed at once, since the shape depends on the values.\n\ndim  slices along this axis instead of the elements of the flattened tensor\n\n>>> Tensor([1, 1, 2, 1]).unique_consecutive().tolist()\n[1, 2, 1]'
    def bincount(self, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor: 'How often each number from 0 on occurs in a 1-d tensor of integers, or the sum of their weights.\n\nIt is computed at once, to find the largest number. Captured by a jit, and under `vmap`, there are\nexactly `minlength` counts, since their number cannot depend on the data; a number beyond them\nraises IndexError.\n\n>>> Tensor([1, 3, 1]).bincount().tolist()\n[0, 2, 0, 1]'
    def histc(self, bins: builtins.int = 100, min: ConstType = 0, max: ConstType = 0) -> Tensor: 'How many elements lie in each of some bins of equal width from min to max; others are not counted.\n\nIf min and max are equal, the smallest and the largest element are used.\n\n>>> Tensor([0.0, 1.0, 1.5, 4.0]).histc(4, 0, 4).tolist()\n[1.0, 2.0, 0.0, 1.0]'
    def histogram(self, bins: Any = 100, *, range: tuple[builtins.float, builtins.float] | None = None, weight: Tensor | None = None, density: builtins.bool = False) -> tuple[Tensor, Tensor]: '(how many elements, or the sum of their weights, in each bin; the edges of the bins).\n\nbins  a number of equal bins over `range` (by default from the smallest to the largest element), or\n      the edges\ndensity  the parts of the whole instead, divided by the widths of their bins\n\n>>> [t.tolist() for t in Tensor([0.0, 1.0, 3.0]).histogram(Tensor([0.0, 1.0, 4.0]))]\n[[1.0, 2.0], [0.0, 1.0, 4.0]]'
    def histogramdd(self, bins: Any, *, range: Sequence[builtins.float] | None = None, weight: Tensor | None = None, density: builtins.bool = False) -> tuple[Tensor, list[Tensor]]: '(how many points, or the sum of their weights, in each box of a grid; the edges along each axis).\n\nself     points, a row of coordinates each\nbins     a number of equal bins, one for each coordinate, or the edges along each\nrange    the smallest and the largest value of each coordinate, one pair after another\ndensity  the parts of the whole instead, divided by the volumes of their boxes\n\n>>> Tensor([[0.0, 0.0], [1.0, 3.0], [1.0, 4.0]]).histogramdd(2)[0].tolist()\n[[1.0, 0.0], [0.0, 2.0]]'

    # indexing.subscripts
    def __getitem__(self, key: Any) -> Tensor: ...
    def _nothing(self, key: tuple[Any, ...]) -> Tensor: ...
    def _parse(self, key: Any) -> Parsed: ...
    def _check_known(self, known: tuple[str, builtins.int, builtins.int] | None, axis: builtins.int) -> None: ...
    def _entry(self, entry: Any) -> Any: ...
    def _mask_positions(self, mask: Tensor) -> list[Any]: ...
    def _position(self, entry: Any, axis: builtins.int) -> sint: ...
    def _span(self, entry: slice, axis: builtins.int) -> tuple[tuple[sint, sint], builtins.int]: ...
    def _sliced(self, parsed: Parsed) -> Tensor: ...
    def _picked(self, tensors: Sequence[tuple[builtins.int, Any, builtins.bool]], wraps: builtins.bool = True) -> Tensor: ...
    def _flat_index(self, tensors: Sequence[tuple[builtins.int, Any, builtins.bool]], wraps: builtins.bool = True) -> tuple[UOp, tuple[sint, ...]]: ...
    def masked_select(self, mask: Tensor) -> Tensor: 'The elements where a mask is True, as a 1-d tensor.\n\nIt is computed at once, since the shape depends on the values.\n\n>>> Tensor([1, 2]).masked_select(Tensor([False, True])).tolist()\n[2]'
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def _assigned(self, value: Any) -> Tensor: ...
    def _fitted(self, source: Tensor, shape: tuple[sint, ...]) -> Tensor: ...
    def _scatter_to(self, target: Any, tensors: Sequence[tuple[builtins.int, Any, builtins.bool]], source: Tensor) -> None: ...
    def _set_through(self, parsed: Parsed, source: Tensor) -> None: ...
    def _set_masked(self, mask: Any, value: Any) -> None: ...

    # indexing.gathering
    def _index_along(self, dim: builtins.int, index: Any, shape: tuple[sint, ...], method: str) -> UOp: ...
    @overload
    def gather(self, dim: builtins.int, index: Tensor) -> Tensor: 'Elements picked along an axis: result[i][j] = self[index[i][j]][j] for axis 0.\n\nAn index out of range raises IndexError when a result is read; under `CHECK_INDEX=0` it gives 0.\n\nindex  integers, with as many axes as the tensor, on the others no larger; the result has its shape\n\n>>> Tensor([[1, 2], [3, 4]]).gather(1, Tensor([[1], [0]])).tolist()\n[[2], [3]]'
    @overload
    def gather(self, *, axis: builtins.int, index: Tensor) -> Tensor: ...
    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = None, *, axis: builtins.int | None = None) -> Tensor: '`gather` with an index that broadcasts on the other axes; of the flattened tensor without `dim`.\n\n>>> Tensor([[1, 2], [3, 4]]).take_along_dim(Tensor([[1], [0]]), 1).tolist()\n[[2], [3]]'
    @overload
    def scatter(self, dim: builtins.int, index: Tensor, src: Tensor | builtins.float, reduce: str | None = None) -> Tensor: 'A copy with values stored along an axis: result[index[i][j]][j] = src[i][j] for axis 0.\n\nreduce  None (of equal indices the last one is kept), "add" or "multiply"\n\n>>> Tensor([0, 0]).scatter(0, Tensor([1]), Tensor([5])).tolist()\n[0, 5]'
    @overload
    def scatter(self, *, axis: builtins.int, index: Tensor, src: Tensor | builtins.float, reduce: str | None = None) -> Tensor: ...
    @overload
    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor | builtins.float) -> Tensor: 'A copy with values added along an axis; indices may repeat.\n\n>>> Tensor([0, 1]).scatter_add(0, Tensor([1, 1]), Tensor([5, 6])).tolist()\n[0, 12]'
    @overload
    def scatter_add(self, *, axis: builtins.int, index: Tensor, src: Tensor | builtins.float) -> Tensor: ...
    def _scattered(self, dim: builtins.int, index: Any, src: Any, op: Ops | None, method: str) -> Tensor: ...
    @overload
    def scatter_reduce(self, dim: builtins.int, index: Tensor, src: Tensor | builtins.float, reduce: str, *, include_self: builtins.bool = True) -> Tensor: 'A copy with values combined along an axis: reduce is sum, prod, mean, amax or amin.\n\ninclude_self  whether the element that was there takes part\n\n>>> Tensor([4, 1]).scatter_reduce(0, Tensor([0, 1]), Tensor([3, 3]), "amax").tolist()\n[4, 3]'
    @overload
    def scatter_reduce(self, *, axis: builtins.int, index: Tensor, src: Tensor | builtins.float, reduce: str, include_self: builtins.bool = True) -> Tensor: ...
    @overload
    def index_select(self, dim: builtins.int, index: Tensor) -> Tensor: 'The slices of an axis at the indices in a 1-d tensor.\n\n>>> Tensor([[1, 2], [3, 4]]).index_select(1, Tensor([1])).tolist()\n[[2], [4]]'
    @overload
    def index_select(self, *, axis: builtins.int, index: Tensor) -> Tensor: ...
    @overload
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor: 'One slice of an axis, without it.\n\n>>> Tensor([[1, 2], [3, 4]]).select(1, 0).tolist()\n[1, 3]'
    @overload
    def select(self, *, axis: builtins.int, index: builtins.int) -> Tensor: ...
    def take(self, index: Any) -> Tensor: 'Elements of the flattened tensor; the result has the shape of the index.\n\n>>> Tensor([[1, 2], [3, 4]]).take(Tensor([3, 0])).tolist()\n[4, 1]'
    def nonzero_static(self, *, size: builtins.int, fill_value: builtins.int = -1) -> Tensor: 'The first `size` rows of `nonzero`, then rows of `fill_value`: of known shape.\n\nSo it is lazy, and a jit captures it.\n\n>>> Tensor([[0, 5], [7, 0]]).nonzero_static(size=3).tolist()\n[[0, 1], [1, 0], [-1, -1]]'
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor: 'The indices of the nonzero elements, one row for each.\n\nIt is computed at once, since the shape depends on the values.\n\nas_tuple  a 1-d tensor of indices for each axis instead: what `x[...]` takes\n\n>>> Tensor([0, 7, 8]).nonzero().tolist()\n[[1], [2]]'
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...

    # indexing.writing
    def _along(self, dim: builtins.int, index: Any, source: Any, name: str) -> tuple[builtins.int, Tensor]: ...
    @overload
    def index_add(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: ConstType = 1) -> Tensor: 'A copy with alpha·source[i] added to the slice index[i] of an axis, where indices repeat too.\n\n>>> Tensor([1, 1]).index_add(0, Tensor([0, 0]), Tensor([2, 3])).tolist()\n[6, 1]'
    @overload
    def index_add(self, *, axis: builtins.int, index: Tensor, source: Tensor, alpha: ConstType = 1) -> Tensor: ...
    @overload
    def index_copy(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor: 'A copy with source[i] stored as the slice index[i] of an axis.\n\n>>> Tensor([1, 2, 3]).index_copy(0, Tensor([2, 0]), Tensor([7, 8])).tolist()\n[8, 2, 7]'
    @overload
    def index_copy(self, *, axis: builtins.int, index: Tensor, source: Tensor) -> Tensor: ...
    @overload
    def index_fill(self, dim: builtins.int, index: Tensor, value: Any) -> Tensor: 'A copy with a number (or 0-d tensor) in the slices of an axis at the indices in a 1-d tensor.\n\n>>> Tensor([1, 2, 3]).index_fill(0, Tensor([0, -1]), 9).tolist()\n[9, 2, 9]'
    @overload
    def index_fill(self, *, axis: builtins.int, index: Tensor, value: Any) -> Tensor: ...
    @overload
    def index_reduce(self, dim: builtins.int, index: Tensor, source: Tensor, reduce: str, *, include_self: builtins.bool = True) -> Tensor: 'A copy with source[i] combined into the slice index[i] of an axis: prod, mean, amax or amin.\n\n>>> Tensor([1, 5]).index_reduce(0, Tensor([0, 1]), Tensor([3, 3]), "amax").tolist()\n[3, 5]'
    @overload
    def index_reduce(self, *, axis: builtins.int, index: Tensor, source: Tensor, reduce: str, include_self: builtins.bool = True) -> Tensor: ...
    def index_put(self, indices: Sequence[Any], values: Any, accumulate: builtins.bool = False) -> Tensor: 'A copy with `values` at x[indices]: stored, or added where `accumulate`.\n\nindices  integer or bool tensors for the first axes, which broadcast\n\n>>> Tensor([1, 1]).index_put((Tensor([0, 0]),), Tensor([2, 3]), accumulate=True).tolist()\n[6, 1]'
    def put(self, index: Tensor, source: Tensor, accumulate: builtins.bool = False) -> Tensor: 'A copy with values at indices of the flattened tensor: stored, or added where `accumulate`.\n\n>>> Tensor([[1, 2], [3, 4]]).put(Tensor([3, 0]), Tensor([8, 9])).tolist()\n[[9, 2], [3, 8]]'
    @overload
    def put_along_dim(self, indices: Tensor, values: Tensor | builtins.float, dim: builtins.int) -> Tensor: "A copy with values stored along an axis at indices that broadcast on the others (numpy's\n`put_along_axis`).\n\n>>> Tensor([[1, 2], [3, 4]]).put_along_dim(Tensor([[1], [0]]), 0, 1).tolist()\n[[1, 0], [0, 4]]"
    @overload
    def put_along_dim(self, indices: Tensor, values: Tensor | builtins.float, *, axis: builtins.int) -> Tensor: ...
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor: 'A copy in which the elements where a mask is True are replaced by those of `source`, in order.\n\nToo few elements raise IndexError when a result is read; under `CHECK_INDEX=0` they leave\nzeros.\n\n>>> Tensor([1, 2, 3]).masked_scatter(Tensor([True, False, True]), Tensor([7, 8])).tolist()\n[7, 2, 8]'
    def _replaced(self, view: Callable[[Tensor], Tensor], src: Any, name: str) -> Tensor: ...
    @overload
    def select_scatter(self, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor: 'A copy with one slice of an axis replaced.\n\n>>> Tensor([[1, 2], [3, 4]]).select_scatter(Tensor([8, 9]), 1, 0).tolist()\n[[8, 2], [9, 4]]'
    @overload
    def select_scatter(self, src: Tensor, *, axis: builtins.int, index: builtins.int) -> Tensor: ...
    def slice_scatter(self, src: Tensor, dim: builtins.int = 0, start: builtins.int | None = None, end: builtins.int | None = None, step: builtins.int = 1, *, axis: builtins.int = 0) -> Tensor: 'A copy with the part `start:end:step` of an axis replaced.\n\n>>> Tensor([1, 2, 3]).slice_scatter(Tensor([8, 9]), 0, 1).tolist()\n[1, 8, 9]'
    def diagonal_scatter(self, src: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor: 'A copy with a diagonal replaced.\n\n>>> Tensor([[1, 2], [3, 4]]).diagonal_scatter(Tensor([8, 9])).tolist()\n[[8, 2], [3, 9]]'
    def fill_(self, value: ConstType) -> Any: "Write one value into all of this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).fill_(3).tolist()\n[3, 3]"
    def zero_(self) -> Any: "Write zeros into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).zero_().tolist()\n[0, 0]"
    def copy_(self, src: Tensor) -> Any: "Write the values of another tensor, which broadcasts and is cast, into this one's memory.\n\n>>> Tensor([1, 2]).copy_(Tensor([3.5])).tolist()\n[3, 3]"

    # linalg.contractions
    def _contracted(self, other: Tensor, axes: Sequence[builtins.int], dtype: DTypeLike = None) -> Tensor: ...
    def matmul(self, other: Any, reverse: builtins.bool = False, dtype: DTypeLike = None) -> Tensor: 'The matrix product.\n\nA 1-d tensor is a row on the left and a column on the right; axes before the last two broadcast.\n\nself   (..., m, k) or (k,)    other  (..., k, n) or (k,)    dtype  what to accumulate in and return\n\n>>> Tensor([[1, 2]]).matmul(Tensor([[3], [4]])).tolist()\n[[11]]'
    def dot(self, other: Any, dtype: DTypeLike = None) -> Tensor: '`matmul`; of two 1-d tensors, their inner product.\n\n>>> Tensor([1, 2]).dot(Tensor([3, 4])).item()\n11'
    def _without(self, axes: Sequence[builtins.int]) -> Tensor: ...
    def __matmul__(self, other: Any) -> Tensor: ...
    def __rmatmul__(self, other: Any) -> Tensor: ...
    def mm(self, mat2: Tensor) -> Tensor: 'The product of two matrices.\n\n>>> Tensor([[1, 2]]).mm(Tensor([[3], [4]])).tolist()\n[[11]]'
    def bmm(self, mat2: Tensor) -> Tensor: 'The products of two batches of matrices.\n\n>>> Tensor.ones(2, 1, 3).bmm(Tensor.ones(2, 3, 1)).tolist()\n[[[3.0]], [[3.0]]]'
    def mv(self, vec: Tensor) -> Tensor: 'A matrix times a vector.\n\n>>> Tensor([[1, 2]]).mv(Tensor([3, 4])).tolist()\n[11]'
    @staticmethod
    def _need_axes(name: str, rank: builtins.int, *tensors: Tensor) -> None: ...
    def outer(self, vec2: Tensor) -> Tensor: 'All products of the elements of two vectors.\n\n>>> Tensor([1, 2]).outer(Tensor([3, 4])).tolist()\n[[3, 4], [6, 8]]'
    def inner(self, other: Any) -> Tensor: 'The sum of products along the last axes.\n\n>>> Tensor([1, 2]).inner(Tensor([3, 4])).item()\n11'
    def vdot(self, other: Tensor) -> Tensor: 'The inner product of two vectors.\n\n>>> Tensor([1, 2]).vdot(Tensor([3, 4])).item()\n11'
    def trace(self) -> Tensor: 'The sum of the diagonal of a matrix.\n\n>>> Tensor([[1, 2], [3, 4]]).trace().item()\n5'
    def tensordot(self, other: Tensor, dims: builtins.int | tuple[Sequence[builtins.int], Sequence[builtins.int]] = 2) -> Tensor: 'The sum of products over the last `dims` axes of this tensor and the first of the other.\n\ndims  a number of axes, or (axes of this tensor, axes of the other), paired in order\n\n>>> Tensor([1, 2]).tensordot(Tensor([3, 4]), 1).item()\n11'
    @staticmethod
    def einsum(formula: str, *operands: Any, dtype: DTypeLike = None) -> Tensor: 'A sum of products written with letters: `einsum("ij,jk->ik", a, b)`.\n\nA letter that the result lacks is summed over; a letter twice in one operand takes its diagonal;\n`...` stands for axes that broadcast. Without `->` the result has the letters that occur once, in\nalphabetical order.\n\n>>> Tensor.einsum("ij,j->i", Tensor([[1, 2], [3, 4]]), Tensor([1, 1])).tolist()\n[3, 7]'

    # linalg.products
    def _mixed(self, product: Any, beta: builtins.float, alpha: builtins.float) -> Tensor: ...
    def addmm(self, mat1: Any, mat2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor: 'beta·self + alpha·(mat1 @ mat2).\n\n>>> Tensor.ones(1, 1).addmm(Tensor([[2.0]]), Tensor([[3.0]])).tolist()\n[[7.0]]'
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor: 'beta·self + alpha·(batch1 @ batch2), of two batches of matrices.\n\n>>> Tensor.ones(1, 1, 1).baddbmm(Tensor([[[2.0]]]), Tensor([[[3.0]]])).tolist()\n[[[7.0]]]'
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor: 'beta·self + alpha·(the sum of the products of two batches of matrices).\n\n>>> Tensor.zeros(1, 1).addbmm(Tensor.ones(2, 1, 1), Tensor.ones(2, 1, 1)).tolist()\n[[2.0]]'
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor: 'beta·self + alpha·(matrix @ vector).\n\n>>> Tensor([1.0]).addmv(Tensor([[2.0, 3.0]]), Tensor([1.0, 1.0])).tolist()\n[6.0]'
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor: 'beta·self + alpha·(all products of two vectors).\n\n>>> Tensor.zeros(1, 2).addr(Tensor([2.0]), Tensor([3.0, 4.0])).tolist()\n[[6.0, 8.0]]'
    def vecdot(self, other: Any, *, dim: builtins.int = -1, axis: builtins.int = -1) -> Tensor: 'The inner products along an axis; the other axes broadcast.\n\n>>> Tensor([[1, 2], [3, 4]]).vecdot(Tensor([1, 1])).tolist()\n[3, 7]'
    def kron(self, other: Any) -> Tensor: 'The Kronecker product: every element of this tensor times all of the other, in blocks.\n\n>>> Tensor([1, 2]).kron(Tensor([1, 10])).tolist()\n[1, 10, 2, 20]'
    def cross(self, other: Any, dim: builtins.int = -1, *, axis: builtins.int = -1) -> Tensor: 'The cross product of vectors of three elements along an axis; the other axes broadcast.\n\n>>> Tensor([1, 0, 0]).cross(Tensor([0, 1, 0])).tolist()\n[0, 0, 1]'
    def chain_matmul(self, *others: Tensor) -> Tensor: 'The product of several matrices, in the order that takes the fewest multiplications.\n\n>>> Tensor([[2]]).chain_matmul(Tensor([[3]]), Tensor([[4]])).tolist()\n[[24]]'
    def vector_norm(self, ord: builtins.float | None = 2, dim: Axis = None, keepdim: builtins.bool = False, *, dtype: DTypeLike = None, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor: "The p-norm of all elements along axes; `norm` by its name in `linalg`.\n\ndtype  what it is computed in, and the result's\n\n>>> Tensor([3.0, 4.0]).vector_norm().item()\n5.0"
    def dist(self, other: Any, p: builtins.float = 2) -> Tensor: 'The p-norm of the difference.\n\n>>> Tensor([3.0, 0.0]).dist(Tensor([0.0, 4.0])).item()\n5.0'
    def cdist(self, x2: Any, p: builtins.float = 2.0, compute_mode: str = 'donot_use_mm_for_euclid_dist') -> Tensor: "The distances (p-norms) between the rows of two matrices, or of batches of them.\n\nself  (..., m, k)      x2  (..., n, k)      result  (..., m, n); where it is 0, so is its slope\ncompute_mode  PyTorch's; each distance is that of a difference here, in every mode\n\n>>> Tensor([[0.0, 0.0]]).cdist(Tensor([[3.0, 4.0]])).tolist()\n[[5.0]]"
    @overload
    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor: 'Slices along an axis whose p-norm is above `maxnorm` scaled down to it.\n\n>>> Tensor([[3.0, 4.0], [0.0, 1.0]]).renorm(2, 0, 1.0).round(3).tolist()\n[[0.6, 0.8], [0.0, 1.0]]'
    @overload
    def renorm(self, p: builtins.float, *, axis: builtins.int, maxnorm: builtins.float) -> Tensor: ...
    def _square(self, name: str) -> builtins.int: ...
    def matrix_power(self, n: builtins.int) -> Tensor: 'A square matrix to a whole power, by repeated squaring; a negative one inverts it first.\n\n>>> Tensor([[1, 1], [0, 1]]).matrix_power(3).tolist()\n[[1, 3], [0, 1]]'
    def matrix_exp(self) -> Tensor: "The exponential of square matrices: Taylor's series of A / 2^s, squared s times.\n\nIt runs, to choose s so that the norm of A / 2^s is at most 1/2. Captured by a jit, and under `vmap`,\ns is found on the device: 20 squarings are made, of which each matrix takes as many as it needs;\nmatrices with norms above 2^19 give NaN there.\n\n>>> Tensor([[0.0, 0.0], [0.0, 0.0]]).matrix_exp().tolist()\n[[1.0, 0.0], [0.0, 1.0]]"
    def newton_schulz(self, steps: builtins.int = 5, params: Sequence[builtins.float] = (3.4445, -4.775, 2.0315), eps: builtins.float = 1e-07) -> Tensor: 'A matrix with singular values near 1 and the same singular vectors, by products alone.\n\nX becomes a·X + b·(XXᵀ)X + c·(XXᵀ)²X, `steps` times, from X divided by its norm. The parameters are\nthose of the Muon optimizer (Jordan et al. 2024): fast, and not exact. (2, -1.5, 0.5) converges.\n\n>>> Tensor([[2.0, 0.0], [0.0, 3.0]]).newton_schulz(20, (2.0, -1.5, 0.5)).round(4).tolist()\n[[1.0, 0.0], [0.0, 1.0]]'

    # linalg.decompositions
    def _matrices(self, name: str, square: builtins.bool = False) -> Tensor: ...
    def _sides(self, name: str, right: Tensor) -> tuple[Tensor, Tensor, builtins.bool]: ...
    def inv(self) -> Tensor: 'The inverse of square matrices.\n\nWhere one is singular: a ValueError when it is computed, NaN in a jit.\n\n>>> Tensor([[2.0, 0.0], [0.0, 4.0]]).inv().tolist()\n[[0.5, 0.0], [0.0, 0.25]]'
    def inv_ex(self, *, check_errors: builtins.bool = False) -> InverseEx[Tensor]: 'The inverse, NaN where a matrix is singular, and `info`: 0, or which pivot is 0.\n\ncheck_errors  raise the ValueError that `inv` raises\n\n>>> [t.tolist() for t in Tensor([[[2.0]], [[0.0]]]).inv_ex()]\n[[[[0.5]], [[nan]]], [0, 1]]'
    def solve_ex(self, B: Any, *, left: builtins.bool = True, check_errors: builtins.bool = False) -> SolveEx[Tensor]: '`solve`, NaN where a matrix is singular, and `info`: 0, or which pivot is 0.\n\ncheck_errors  raise the ValueError that `solve` raises\n\n>>> [t.tolist() for t in Tensor([[0.0]]).solve_ex(Tensor([1.0]))]\n[[nan], 1]'
    def solve(self, B: Any, *, left: builtins.bool = True) -> Tensor: 'The X with self @ X = B (X @ self = B, where `left` is False).\n\nself  (..., n, n)      B  (..., n, k), or vectors (..., n)\n\n>>> Tensor([[2.0, 0.0], [0.0, 4.0]]).solve(Tensor([2.0, 2.0])).tolist()\n[1.0, 0.5]'
    def solve_triangular(self, B: Any, *, upper: builtins.bool, left: builtins.bool = True, unitriangular: builtins.bool = False) -> Tensor: '`solve` with the upper or lower triangle of this tensor (and ones on its diagonal, where\n`unitriangular`).\n\n>>> Tensor([[2.0, 9.0], [1.0, 1.0]]).solve_triangular(Tensor([[2.0], [3.0]]), upper=False).tolist()\n[[1.0], [2.0]]'
    def triangular_solve(self, A: Tensor, upper: builtins.bool = True, transpose: builtins.bool = False, unitriangular: builtins.bool = False) -> tuple[Tensor, Tensor]: "(the X with A @ X = self for a triangular A, A): PyTorch's older form of `solve_triangular`.\n\n>>> Tensor([[4.0]]).triangular_solve(Tensor([[2.0]]))[0].tolist()\n[[2.0]]"
    def pinv(self, rtol: builtins.float | Tensor | None = None, *, atol: builtins.float | Tensor | None = None) -> Tensor: 'The pseudoinverse (Moore and Penrose); singular values up to max(atol, rtol · the largest) count\nas 0.\n\nrtol        max(m, n) · eps of the dtype, if neither is given\nrtol, atol  numbers, or tensors of one for each matrix of a batch\n\n>>> Tensor([[2.0], [0.0]]).pinv().round(5).tolist()\n[[0.5, 0.0]]'
    def lstsq(self, B: Any, rcond: builtins.float | None = None) -> LeastSquares[Tensor]: 'The X with the smallest |self @ X - B| (of several, the shortest), by the pseudoinverse.\n\nsolution, residuals (the sums of squares of self @ X - B, empty where m <= n), rank and singular\nvalues of self.\n\n>>> Tensor([[1.0], [1.0]]).lstsq(Tensor([[1.0], [3.0]])).solution.round(5).tolist()\n[[2.0]]'
    def det(self) -> Tensor: 'The determinant of square matrices.\n\n>>> round(Tensor([[1.0, 2.0], [3.0, 4.0]]).det().item(), 5)\n-2.0'
    def slogdet(self) -> SignLog[Tensor]: 'The sign of the determinant and the logarithm of its size, which neither overflows.\n\n>>> [round(t.item(), 5) for t in Tensor([[0.0, 1.0], [1.0, 0.0]]).slogdet()]\n[-1.0, 0.0]'
    def logdet(self) -> Tensor: 'The logarithm of the determinant: NaN where it is negative.\n\n>>> Tensor([[1.0, 0.0], [0.0, 1.0]]).logdet().item()\n0.0'
    def cholesky(self, *, upper: builtins.bool = False) -> Tensor: 'The lower triangle L with L @ Lᵀ = self, of a symmetric positive definite matrix, of which the\nlower triangle is read; with `upper` the upper triangle Lᵀ, and the upper one is read.\n\nWhere one is not positive definite a ValueError when it is computed, NaN in a jit.\n\n>>> Tensor([[4.0, 0.0], [2.0, 2.0]]).cholesky().tolist()\n[[2.0, 0.0], [1.0, 1.0]]'
    def cholesky_ex(self, *, upper: builtins.bool = False, check_errors: builtins.bool = False) -> CholeskyEx[Tensor]: '`cholesky`, NaN where a matrix is not positive definite, and `info`: 0, or which column failed.\n\ncheck_errors  raise the ValueError that `cholesky` raises\n\n>>> Tensor([[1.0, 0.0], [0.0, -1.0]]).cholesky_ex().info.item()\n2'
    def cholesky_solve(self, L: Tensor, upper: builtins.bool = False) -> Tensor: 'The X with A @ X = self, where L is the Cholesky factor of A.\n\n>>> Tensor([[8.0]]).cholesky_solve(Tensor([[2.0]])).tolist()\n[[2.0]]'
    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor: 'The inverse of the matrix whose Cholesky factor this is.\n\n>>> Tensor([[2.0]]).cholesky_inverse().tolist()\n[[0.25]]'
    def qr(self, mode: str = 'reduced') -> QR[Tensor]: 'Q @ R = self, Q with orthonormal columns and R upper triangular.\n\nmode  "reduced": Q (m, k) and R (k, n), k = min(m, n); "complete": Q (m, m) and R (m, n), which\n      has a gradient where m <= n; "r": R alone, Q empty\n\n>>> Tensor([[0.0, 2.0], [3.0, 0.0]]).qr().R.abs().tolist()\n[[3.0, 0.0], [0.0, 2.0]]'
    def svd(self, full_matrices: builtins.bool = True) -> SVD[Tensor]: 'U @ diag(S) @ Vh = self, the singular values S in descending order.\n\nfull_matrices  U (m, m) and Vh (n, n); else U (m, k) and Vh (k, n), k = min(m, n). No gradient flows\n               through the columns of U and rows of Vh after the first k, which may be any basis.\n\nGradients of U and Vh need singular values that differ.\n\n>>> Tensor([[0.0, 2.0], [3.0, 0.0]]).svd().S.tolist()\n[3.0, 2.0]'
    def svdvals(self) -> Tensor: 'The singular values, in descending order.\n\n>>> Tensor([[0.0, 2.0], [3.0, 0.0]]).svdvals().tolist()\n[3.0, 2.0]'
    def eigh(self, UPLO: str = 'L') -> Eigh[Tensor]: 'Eigenvalues (in ascending order) and eigenvectors (in columns) of symmetric matrices, of which the\nlower triangle is read ("L"), or the upper one ("U").\n\nGradients of eigenvectors need eigenvalues that differ.\n\n>>> Tensor([[2.0, 0.0], [0.0, 1.0]]).eigh().eigenvalues.tolist()\n[1.0, 2.0]'
    def eigvalsh(self, UPLO: str = 'L') -> Tensor: 'The eigenvalues of symmetric matrices, in ascending order.\n\n>>> Tensor([[2.0, 0.0], [0.0, 1.0]]).eigvalsh().tolist()\n[1.0, 2.0]'
    def lu(self, *, pivot: builtins.bool = True) -> LU[Tensor]: 'P @ L @ U = self: a permutation, a lower triangle with ones on its diagonal, an upper triangle.\n\nColumns are pivoted by their largest element; `pivot=False` is not supported.\n\n>>> [t.tolist() for t in Tensor([[0.0, 2.0], [3.0, 0.0]]).lu()][2]\n[[3.0, 0.0], [0.0, 2.0]]'
    def lu_factor(self, *, pivot: builtins.bool = True) -> LUFactor[Tensor]: 'L and U in one matrix, without the ones of L, and the pivots, from 1 on: what `lu_solve` takes.\n\n>>> [t.tolist() for t in Tensor([[0.0, 2.0], [3.0, 0.0]]).lu_factor()]\n[[[3.0, 0.0], [0.0, 2.0]], [2, 2]]'
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor: 'The X with A @ X = self, from what `A.lu_factor()` gave.\n\n>>> Tensor([[2.0], [3.0]]).lu_solve(*Tensor([[0.0, 2.0], [3.0, 0.0]]).lu_factor()).tolist()\n[[1.0], [1.0]]'
    def matrix_rank(self, rtol: builtins.float | Tensor | None = None, *, atol: builtins.float | Tensor | None = None, hermitian: builtins.bool = False) -> Tensor: 'How many singular values are above max(atol, rtol · the largest); rtol as in `pinv`.\n\nrtol, atol  numbers, or tensors of one for each matrix of a batch\n\n>>> Tensor([[1.0, 1.0], [1.0, 1.0]]).matrix_rank().item()\n1'
    def matrix_norm(self, ord: Any = 'fro', dim: Sequence[builtins.int] = (-2, -1), keepdim: builtins.bool = False, *, dtype: DTypeLike = None, axis: Sequence[builtins.int] = (-2, -1), keepdims: builtins.bool = False) -> Tensor: 'A norm of matrices: "fro" (Frobenius), "nuc" (the sum of singular values), ±2 (the largest or\nsmallest singular value), ±1 (sums of columns), ±inf (sums of rows).\n\ndim    the axes of the rows and of the columns\ndtype  what it is computed in, and the result\'s\n\n>>> Tensor([[3.0, 0.0], [0.0, 4.0]]).matrix_norm().item()\n5.0'
    def cond(self, p: Any = None) -> Tensor: 'The condition number: the largest singular value divided by the smallest (p = -2: the inverse of\nthat), or |A|·|A⁻¹| by another norm; infinite for a singular matrix.\n\n>>> Tensor([[2.0, 0.0], [0.0, 1.0]]).cond().item()\n2.0'

    # linalg.fourier
    def fft(self, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, axis: builtins.int = -1) -> Tensor: 'The transform of complex numbers along an axis: X[k] = Σ x[j]·e^(-2πijk/n).\n\nn     the size: the axis is cut, or zeros are added      norm  where to divide by n: "backward" (in\n`ifft`, the default), "forward" (here), or "ortho" (by its root, in both)\n\n>>> Tensor([[1.0, 0.0], [0.0, 0.0]]).fft().tolist()\n[[1.0, 0.0], [1.0, 0.0]]'
    def ifft(self, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, axis: builtins.int = -1) -> Tensor: 'The inverse of `fft`.\n\n>>> Tensor([[1.0, 0.0], [1.0, 0.0]]).ifft().tolist()\n[[1.0, 0.0], [0.0, 0.0]]'
    def rfft(self, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, axis: builtins.int = -1) -> Tensor: 'The first n // 2 + 1 numbers of the transform of real numbers; the others mirror them.\n\n>>> Tensor([1.0, 0.0]).rfft().tolist()\n[[1.0, 0.0], [1.0, 0.0]]'
    def irfft(self, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, axis: builtins.int = -1) -> Tensor: 'The inverse of `rfft`: n real numbers (2·(m - 1) of m, if not given).\n\n>>> Tensor([[1.0, 0.0], [1.0, 0.0]]).irfft().tolist()\n[1.0, 0.0]'
    def fft2(self, s: Sequence[builtins.int] | None = None, dim: Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, axis: Sequence[builtins.int] = (-2, -1)) -> Tensor: '`fft` along two axes.\n\n>>> Tensor([[[1.0, 0.0]]]).fft2().tolist()\n[[[1.0, 0.0]]]'
    def ifft2(self, s: Sequence[builtins.int] | None = None, dim: Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, axis: Sequence[builtins.int] = (-2, -1)) -> Tensor: 'The inverse of `fft2`.\n\n>>> Tensor([[[1.0, 0.0]]]).ifft2().tolist()\n[[[1.0, 0.0]]]'
    def rfft2(self, s: Sequence[builtins.int] | None = None, dim: Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, axis: Sequence[builtins.int] = (-2, -1)) -> Tensor: '`fft2` of real numbers: half of the last axis.\n\n>>> Tensor([[1.0]]).rfft2().tolist()\n[[[1.0, 0.0]]]'
    def irfft2(self, s: Sequence[builtins.int] | None = None, dim: Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, axis: Sequence[builtins.int] = (-2, -1)) -> Tensor: 'The inverse of `rfft2`.\n\n>>> Tensor([[[1.0, 0.0], [1.0, 0.0]]]).irfft2().tolist()\n[[1.0, 0.0]]'
    def fftn(self, s: Sequence[builtins.int] | None = None, dim: Axis = None, norm: str | None = None, *, axis: Axis = None) -> Tensor: '`fft` along several axes (all, if none are named); s are the sizes.\n\n>>> Tensor([[[1.0, 0.0]]]).fftn().tolist()\n[[[1.0, 0.0]]]'
    def ifftn(self, s: Sequence[builtins.int] | None = None, dim: Axis = None, norm: str | None = None, *, axis: Axis = None) -> Tensor: 'The inverse of `fftn`.\n\n>>> Tensor([[[1.0, 0.0]]]).ifftn().tolist()\n[[[1.0, 0.0]]]'
    def rfftn(self, s: Sequence[builtins.int] | None = None, dim: Axis = None, norm: str | None = None, *, axis: Axis = None) -> Tensor: '`fftn` of real numbers: half of the last axis that is named.\n\n>>> Tensor([[1.0]]).rfftn().tolist()\n[[[1.0, 0.0]]]'
    def irfftn(self, s: Sequence[builtins.int] | None = None, dim: Axis = None, norm: str | None = None, *, axis: Axis = None) -> Tensor: 'The inverse of `rfftn`.\n\n>>> Tensor([[[1.0, 0.0], [1.0, 0.0]]]).irfftn().tolist()\n[[1.0, 0.0]]'
    def fftshift(self, dim: Axis = None, *, axis: Axis = None) -> Tensor: 'The second half of axes (all, if none are named) before the first: frequency 0 in the middle.\n\nThe axes are those of the tensor as it is.\n\n>>> Tensor([0, 1, 2, 3, 4]).fftshift().tolist()\n[3, 4, 0, 1, 2]'
    def ifftshift(self, dim: Axis = None, *, axis: Axis = None) -> Tensor: 'The inverse of `fftshift`.\n\n>>> Tensor([3, 4, 0, 1, 2]).ifftshift().tolist()\n[0, 1, 2, 3, 4]'
    @classmethod
    def fftfreq(cls, n: builtins.int, d: builtins.float = 1.0, *, dtype: DTypeLike = None, device: Devices | None = None) -> Tensor: 'The frequencies that the numbers of `fft` belong to, for samples d apart.\n\n>>> Tensor.fftfreq(4).tolist()\n[0.0, 0.25, -0.5, -0.25]'
    @classmethod
    def rfftfreq(cls, n: builtins.int, d: builtins.float = 1.0, *, dtype: DTypeLike = None, device: Devices | None = None) -> Tensor: 'The frequencies that the numbers of `rfft` belong to, for samples d apart.\n\n>>> Tensor.rfftfreq(4).tolist()\n[0.0, 0.25, 0.5]'
    def _complex_axis(self, name: str, dim: builtins.int) -> builtins.int: ...
    def _named(self, name: str, s: Any, dim: Any, rank: builtins.int) -> list[tuple[builtins.int, builtins.int | None]]: ...
    def _resized(self, axis: builtins.int, size: builtins.int) -> Tensor: ...
    def _transformed(self, name: str, n: builtins.int | None, dim: builtins.int, norm: str | None, inverse: builtins.bool) -> Tensor: ...

    # linalg.spectrograms
    def stft(self, n_fft: builtins.int, hop_length: builtins.int | None = None, win_length: builtins.int | None = None, window: Tensor | None = None, center: builtins.bool = True, pad_mode: str = 'reflect', normalized: builtins.bool = False, onesided: builtins.bool | None = None, return_complex: builtins.bool | None = None, align_to_window: builtins.bool | None = None) -> Tensor: "The transform of each window of a signal: (frequencies, windows, 2), after a batch axis.\n\nself        a signal (n,), or a batch of them (batch, n); complex ones are a batch (batch, n, 2)\nn_fft       the size of each transform\nhop_length  how far apart windows begin; n_fft // 4 if not given\nwin_length  the size of the window, n_fft if not given; in the middle of n_fft, zeros around it\nwindow      (win_length,), what each sample counts; ones if not given\ncenter      window t is around sample t · hop_length: the signal has borders of n_fft // 2, by\n            `pad_mode` as in `pad`; else it begins there\nnormalized  divided by √n_fft\nonesided    the n_fft // 2 + 1 frequencies that others mirror: for real signals, if not given\nreturn_complex   the result is the same for either: complex numbers are a trailing axis of 2\nalign_to_window  without `center`: whether the window's own samples begin at t · hop_length, rather\n                 than the zeros around it\n\n>>> Tensor([1.0, 0.0, 0.0, 0.0]).stft(2, 2, center=False).tolist()\n[[[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]]"
    def istft(self, n_fft: builtins.int, hop_length: builtins.int | None = None, win_length: builtins.int | None = None, window: Tensor | None = None, center: builtins.bool = True, normalized: builtins.bool = False, onesided: builtins.bool | None = None, length: builtins.int | None = None, return_complex: builtins.bool = False) -> Tensor: 'The signal that `stft` with the same arguments takes apart: (n,) or (batch, n).\n\nself            (frequencies, windows, 2), or these after a batch axis\nlength          the size of the signal: it is cut, or zeros are added\nreturn_complex  a complex signal (n, 2), from all n_fft frequencies\n\nOf frequencies that no signal has, it is the signal whose own are nearest. Where the squares of the\nwindow add up to nothing the signal is unknown: a ValueError when it is read, NaN under a jit.\n\n>>> x = Tensor([1.0, 2.0, 3.0, 4.0])\n>>> x.stft(2, 1).istft(2, 1).round(decimals=4).tolist()\n[1.0, 2.0, 3.0, 4.0]'
    def _stft_window(self, name: str, n_fft: builtins.int, hop_length: builtins.int | None, win_length: builtins.int | None, window: Tensor | None) -> tuple[builtins.int, Tensor | None]: ...

    # neural.convolution
    def conv2d(self, weight: Tensor, bias: Tensor | None = None, groups: builtins.int = 1, stride: Several = 1, dilation: Several = 1, padding: Several | str = 0, dtype: DTypeLike = None) -> Tensor: 'A convolution over any number of axes.\n\nself    (batch, channels, *sizes)        weight  (out channels, channels / groups, *kernel)\nbias    (out channels,)\npadding zeros around: a number, one for each axis, "same" or "valid"\n\nA tensor without the batch axis is a batch of one.\n\n>>> Tensor.arange(5).float().reshape(1, 1, 5).conv2d(Tensor.ones(1, 1, 2)).tolist()\n[[[1.0, 3.0, 5.0, 7.0]]]'
    def conv1d(self, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor: 'A convolution over one axis; see `conv2d`.\n\n>>> Tensor.ones(1, 1, 4).conv1d(Tensor.ones(1, 1, 2), stride=2).tolist()\n[[[2.0, 2.0]]]'
    def conv3d(self, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor: 'A convolution over three axes; see `conv2d`.\n\n>>> Tensor.ones(1, 1, 2, 2, 2).conv3d(Tensor.ones(1, 1, 2, 2, 2)).tolist()\n[[[[[8.0]]]]]'
    def _check_convolution(self, weight: Tensor, bias: Tensor | None, groups: builtins.int, out: sint, mul_groups: builtins.bool) -> None: ...
    def conv_transpose2d(self, weight: Tensor, bias: Tensor | None = None, groups: builtins.int = 1, stride: Several = 1, dilation: Several = 1, padding: Several = 0, output_padding: Several = 0) -> Tensor: 'The transpose of a convolution (its gradient as an operation of its own), over any number of axes.\n\nself  (batch, channels, *sizes)      weight  (channels, out channels / groups, *kernel)\n\n>>> Tensor([[[1.0, 2.0]]]).conv_transpose2d(Tensor([[[1.0, 1.0]]]), stride=2).tolist()\n[[[1.0, 1.0, 2.0, 2.0]]]'
    def _in_phases(self, w: Tensor, groups: builtins.int, steps: Sequence[builtins.int], gaps: Sequence[builtins.int]) -> Tensor: ...
    def _with_gaps(self, steps: Sequence[builtins.int]) -> Tensor: ...
    def conv_transpose1d(self, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor: 'The transpose of a convolution over one axis; see `conv_transpose2d`.\n\n>>> Tensor([[[1.0, 2.0]]]).conv_transpose1d(Tensor([[[1.0, 3.0]]])).tolist()\n[[[1.0, 5.0, 6.0]]]'
    def conv_transpose3d(self, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor: 'The transpose of a convolution over three axes; see `conv_transpose2d`.\n\n>>> Tensor.ones(1, 1, 1, 1, 1).conv_transpose3d(Tensor.ones(1, 1, 1, 1, 2)).tolist()\n[[[[[1.0, 1.0]]]]]'
    def _need_weights(self, name: str, axes: builtins.int, weight: Tensor) -> None: ...

    # neural.pooling
    def _pooled(self, kernel_size: Several, stride: Several | None, dilation: Several, padding: Several, ceil_mode: builtins.bool) -> tuple[tuple[builtins.int, ...], tuple[builtins.int, ...], tuple[builtins.int, ...], Pairs]: ...
    def max_pool2d(self, kernel_size: Several = (2, 2), stride: Several | None = None, dilation: Several = 1, padding: Several = 0, ceil_mode: builtins.bool = False, return_indices: builtins.bool = False) -> Any: 'The largest element of each window of the last axes (two, or as many as `kernel_size` has).\n\nWith `return_indices` also its index in the flattened last axes; of equal elements, the first.\nThe gradient goes to this element.\n\n>>> Tensor.arange(16).reshape(1, 1, 4, 4).max_pool2d().tolist()\n[[[[5, 7], [13, 15]]]]'
    def _windows_of(self, kernel: Sequence[builtins.int], steps: Sequence[builtins.int], gaps: Sequence[builtins.int], amounts: Pairs, value: Any) -> Tensor: ...
    def _flat_indices(self, count: builtins.int) -> Tensor: ...
    def max_pool1d(self, kernel_size: Several, stride: Several | None = None, **options: Any) -> Any: 'The largest element of each window of the last axis; see `max_pool2d`.\n\n>>> Tensor([[1.0, 3.0, 2.0, 0.0]]).max_pool1d(2).tolist()\n[[3.0, 2.0]]'
    def max_pool3d(self, kernel_size: Several, stride: Several | None = None, **options: Any) -> Any: 'The largest element of each window of the last three axes; see `max_pool2d`.\n\n>>> Tensor.arange(8).reshape(1, 2, 2, 2).max_pool3d(2).tolist()\n[[[[7]]]]'
    def avg_pool2d(self, kernel_size: Several = (2, 2), stride: Several | None = None, dilation: Several = 1, padding: Several = 0, ceil_mode: builtins.bool = False, count_include_pad: builtins.bool = True, divisor_override: builtins.int | None = None) -> Tensor: "The average of each window of the last axes.\n\nPadding counts as zeros unless `count_include_pad` is off. What `ceil_mode` adds after the padding\nnever counts. `divisor_override` divides the sum instead of the count. Averages of integers are\nintegers, rounded toward zero, as PyTorch's are for int64.\n\n>>> Tensor.arange(16).float().reshape(1, 1, 4, 4).avg_pool2d().tolist()\n[[[[2.5, 4.5], [10.5, 12.5]]]]"
    def avg_pool1d(self, kernel_size: Several, stride: Several | None = None, **options: Any) -> Tensor: 'The average of each window of the last axis; see `avg_pool2d`.\n\n>>> Tensor([[1.0, 3.0, 2.0, 0.0]]).avg_pool1d(2).tolist()\n[[2.0, 1.0]]'
    def avg_pool3d(self, kernel_size: Several, stride: Several | None = None, **options: Any) -> Tensor: 'The average of each window of the last three axes; see `avg_pool2d`.\n\n>>> Tensor.arange(8).float().reshape(1, 2, 2, 2).avg_pool3d(2).tolist()\n[[[[3.5]]]]'
    def _lp_pool(self, norm_type: builtins.float, kernel_size: Several, stride: Several | None, ceil_mode: builtins.bool, count: builtins.int) -> Tensor: ...
    def lp_pool1d(self, norm_type: builtins.float, kernel_size: Several, stride: Several | None = None, ceil_mode: builtins.bool = False) -> Tensor: 'The p-norm (Σx^p)^(1/p) of each window of the last axis.\n\n>>> Tensor([[3.0, 4.0, 0.0, 5.0]]).lp_pool1d(2, 2).tolist()\n[[5.0, 5.0]]'
    def lp_pool2d(self, norm_type: builtins.float, kernel_size: Several, stride: Several | None = None, ceil_mode: builtins.bool = False) -> Tensor: 'The p-norm (Σx^p)^(1/p) of each window of the last two axes.\n\n>>> Tensor([[[3.0, 4.0], [0.0, 0.0]]]).lp_pool2d(2, 2).tolist()\n[[[5.0]]]'
    def lp_pool3d(self, norm_type: builtins.float, kernel_size: Several, stride: Several | None = None, ceil_mode: builtins.bool = False) -> Tensor: 'The p-norm (Σx^p)^(1/p) of each window of the last three axes.\n\n>>> Tensor.ones(1, 2, 2, 1).lp_pool3d(2, (2, 2, 1)).tolist()\n[[[[2.0]]]]'

    # neural.adaptive_pooling
    def _adaptive(self, output_size: Adaptive, count: builtins.int, name: str) -> tuple[builtins.int, ...]: ...
    def _adaptive_windows(self, sizes: Sequence[builtins.int], value: Any) -> Tensor: ...
    def _adaptive_avg(self, output_size: Adaptive, count: builtins.int, name: str) -> Tensor: ...
    def _adaptive_max(self, output_size: Adaptive, return_indices: builtins.bool, count: builtins.int, name: str) -> Any: ...
    def adaptive_avg_pool1d(self, output_size: Adaptive) -> Tensor: 'The averages of `output_size` windows that cover the last axis.\n\n>>> Tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]).adaptive_avg_pool1d(2).tolist()\n[[2.0, 4.0]]'
    def adaptive_avg_pool2d(self, output_size: Adaptive) -> Tensor: 'The averages of windows that cover the last two axes; None keeps the size of an axis.\n\n>>> Tensor.arange(4).float().reshape(1, 2, 2).adaptive_avg_pool2d(1).tolist()\n[[[1.5]]]'
    def adaptive_avg_pool3d(self, output_size: Adaptive) -> Tensor: 'The averages of windows that cover the last three axes; None keeps the size of an axis.\n\n>>> Tensor.arange(8).float().reshape(1, 2, 2, 2).adaptive_avg_pool3d((1, 1, None)).tolist()\n[[[[3.0, 4.0]]]]'
    def adaptive_max_pool1d(self, output_size: Adaptive, return_indices: builtins.bool = False) -> Any: 'The maxima of `output_size` windows that cover the last axis, and where they were if asked.\n\n>>> Tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]).adaptive_max_pool1d(2).tolist()\n[[3.0, 5.0]]'
    def adaptive_max_pool2d(self, output_size: Adaptive, return_indices: builtins.bool = False) -> Any: 'The maxima of windows that cover the last two axes, and where they were if asked.\n\n>>> Tensor.arange(4).reshape(1, 2, 2).adaptive_max_pool2d((1, None)).tolist()\n[[[2, 3]]]'
    def adaptive_max_pool3d(self, output_size: Adaptive, return_indices: builtins.bool = False) -> Any: 'The maxima of windows that cover the last three axes, and where they were if asked.\n\n>>> Tensor.arange(8).reshape(1, 2, 2, 2).adaptive_max_pool3d(1).tolist()\n[[[[7]]]]'

    # shape.folding
    def _max_unpool(self, indices: Tensor, kernel_size: Several, stride: Several | None, padding: Several, output_size: Sequence[builtins.int] | None, count: builtins.int) -> Tensor: ...
    def max_unpool1d(self, indices: Tensor, kernel_size: Several, stride: Several | None = None, padding: Several = 0, output_size: Sequence[builtins.int] | None = None) -> Tensor: 'Maxima put back where `max_pool1d` found them, zeros elsewhere.\n\n>>> x, places = Tensor([[1.0, 3.0, 2.0, 0.0]]).max_pool1d(2, return_indices=True)\n>>> x.max_unpool1d(places, 2).tolist()\n[[0.0, 3.0, 2.0, 0.0]]'
    def max_unpool2d(self, indices: Tensor, kernel_size: Several = (2, 2), stride: Several | None = None, padding: Several = 0, output_size: Sequence[builtins.int] | None = None) -> Tensor: 'Maxima put back where `max_pool2d` found them, zeros elsewhere.\n\n>>> Tensor([[[[5.0]]]]).max_unpool2d(Tensor([[[[2]]]])).tolist()\n[[[[0.0, 0.0], [5.0, 0.0]]]]'
    def max_unpool3d(self, indices: Tensor, kernel_size: Several, stride: Several | None = None, padding: Several = 0, output_size: Sequence[builtins.int] | None = None) -> Tensor: 'Maxima put back where `max_pool3d` found them, zeros elsewhere.\n\n>>> Tensor([[[[5.0]]]]).max_unpool3d(Tensor([[[[1]]]]), (1, 1, 2)).tolist()\n[[[[0.0, 5.0]]]]'
    def im2col(self, kernel_size: Several, dilation: Several = 1, padding: Several = 0, stride: Several = 1) -> Tensor: 'The windows of images as columns: `torch.nn.functional.unfold`.\n\nself  (batch, channels, height, width), or without batch → (batch, channels · window, positions)\n\n>>> Tensor.arange(4).float().reshape(1, 1, 2, 2).im2col((1, 2)).tolist()\n[[[0.0, 2.0], [1.0, 3.0]]]'
    def fold(self, output_size: Several, kernel_size: Several, dilation: Several = 1, padding: Several = 0, stride: Several = 1) -> Tensor: 'Columns summed into images, where windows overlap: the transpose of `im2col`.\n\nself  (batch, channels · window, positions), or without batch → (batch, channels, *output_size)\n\n>>> Tensor.ones(1, 2, 2).fold((1, 3), (1, 2)).tolist()\n[[[[1.0, 2.0, 1.0]]]]'

    # shape.resizing
    def pixel_shuffle(self, upscale_factor: builtins.int) -> Tensor: 'Channels to pixels: (..., c·r², h, w) → (..., c, h·r, w·r) (Shi et al. 2016).\n\n>>> Tensor.arange(4).reshape(1, 4, 1, 1).pixel_shuffle(2).tolist()\n[[[[0, 1], [2, 3]]]]'
    def pixel_unshuffle(self, downscale_factor: builtins.int) -> Tensor: 'Pixels to channels: the inverse of `pixel_shuffle`.\n\n>>> Tensor.arange(4).reshape(1, 1, 2, 2).pixel_unshuffle(2).tolist()\n[[[[0]], [[1]], [[2]], [[3]]]]'
    def channel_shuffle(self, groups: builtins.int) -> Tensor: 'Channels (axis 1) dealt out anew: the first of each group, then the second of each, ...\n\n>>> Tensor.arange(4).reshape(1, 4, 1).channel_shuffle(2).flatten().tolist()\n[0, 2, 1, 3]'
    def interpolate(self, size: builtins.int | Sequence[builtins.int] | None = None, scale_factor: builtins.float | Sequence[builtins.float] | None = None, mode: str = 'nearest', align_corners: builtins.bool | None = None, recompute_scale_factor: builtins.bool | None = None, antialias: builtins.bool = False) -> Tensor: 'The last axes at another size: `torch.nn.functional.interpolate`.\n\nself  (batch, channels, *sizes)\nsize  the new sizes, or `scale_factor`, what to multiply them by\nmode  nearest, nearest-exact, linear (along any number of axes), bilinear, bicubic, trilinear or area\nantialias   bilinear and bicubic to a smaller size look at all old pixels that a new one covers\n\nPixels of uint8 stay such, rounded and limited to 0 to 255; other integers become floats, but for the\nmodes that only choose.\n\n>>> Tensor([[[1.0, 3.0]]]).interpolate(4).tolist()\n[[[1.0, 1.0, 3.0, 3.0]]]'
    def _new_sizes(self, size: Any, scale_factor: Any, recompute: builtins.bool) -> tuple[tuple[builtins.int, ...], tuple[builtins.float, ...]]: ...
    @classmethod
    def affine_grid(cls, theta: Tensor, size: Sequence[builtins.int], align_corners: builtins.bool = False) -> Tensor: 'Where each pixel of a result looks, in coordinates from -1 to 1: a grid for `grid_sample`.\n\ntheta  (batch, 2, 3) for images, (batch, 3, 4) for volumes: a matrix and a shift\nsize   (batch, channels, *sizes) of the result → (batch, *sizes, 2 or 3), x before y before z\n\n>>> Tensor.affine_grid(Tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2)).tolist()\n[[[[-0.5, 0.0], [0.5, 0.0]]]]'
    def grid_sample(self, grid: Tensor, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: builtins.bool | None = None) -> Tensor: 'The pixels at the positions of a grid: `torch.nn.functional.grid_sample`.\n\nself          (batch, channels, height, width), or with a depth before the height\ngrid          (batch, *sizes, 2 or 3): x, y (and z) from -1 to 1 → (batch, channels, *sizes)\nmode          bilinear, nearest, or (images only) bicubic\npadding_mode  what lies outside: zeros, border, or reflection\n\n>>> image, grid = Tensor([[[[1.0, 3.0]]]]), Tensor([[[[0.0, 0.0]]]])\n>>> image.grid_sample(grid).tolist()\n[[[[2.0]]]]'

    # neural.normalization
    def batchnorm(self, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, axis: builtins.int | Sequence[builtins.int] = 1, *, dim: builtins.int | Sequence[builtins.int] = 1) -> Tensor: '(self - mean) * invstd * weight + bias, where the four have the size of `axis` (the channels).\n\n>>> x, one = Tensor([[1.0, 3.0]]), Tensor.ones(2)\n>>> x.batchnorm(None, None, one, one).tolist()\n[[0.0, 2.0]]'
    def layernorm(self, axis: builtins.int | Sequence[builtins.int] = -1, eps: builtins.float = 1e-05, *, dim: builtins.int | Sequence[builtins.int] = -1) -> Tensor: 'Mean 0 and variance 1 along axes (the last one); eps is added to the variance (Ba et al. 2016).\n\n>>> Tensor([1.0, 3.0]).layernorm(eps=0.0).tolist()\n[-1.0, 1.0]'
    def rms_norm(self, axis: builtins.int | Sequence[builtins.int] = -1, eps: builtins.float = 1e-06, *, dim: builtins.int | Sequence[builtins.int] = -1) -> Tensor: 'Divided by the root of the mean square along axes, the last one (Zhang, Sennrich 2019).\n\n>>> Tensor([1.0, 7.0]).rms_norm(eps=0.0).tolist()\n[0.20000000298023224, 1.399999976158142]'
    def group_norm(self, num_groups: builtins.int, weight: Tensor | None = None, bias: Tensor | None = None, eps: builtins.float = 1e-05) -> Tensor: "Mean 0 and variance 1 of each sample's groups of channels (axis 1), then weight and bias.\n\n(Wu, He 2018.)\n\n>>> Tensor([[1.0, 3.0, 10.0, 30.0]]).group_norm(2, eps=0.0).tolist()\n[[-1.0, 1.0, -1.0, 1.0]]"
    def instance_norm(self, weight: Tensor | None = None, bias: Tensor | None = None, eps: builtins.float = 1e-05) -> Tensor: 'Mean 0 and variance 1 of each channel of each sample, then weight and bias (Ulyanov et al. 2016).\n\nself  (batch, channels, ...)\n\n>>> Tensor([[[1.0, 3.0], [10.0, 30.0]]]).instance_norm(eps=0.0).tolist()\n[[[-1.0, 1.0], [-1.0, 1.0]]]'
    def local_response_norm(self, size: builtins.int, alpha: builtins.float = 0.0001, beta: builtins.float = 0.75, k: builtins.float = 1.0) -> Tensor: 'x / (k + alpha · mean of x² over `size` neighbouring channels)^beta (Krizhevsky et al. 2012).\n\nself  (batch, channels, ...)\n\n>>> Tensor([[[2.0], [4.0]]]).local_response_norm(1, alpha=1.0, beta=1.0, k=0.0).tolist()\n[[[0.5], [0.25]]]'
    def normalize(self, p: builtins.float = 2.0, dim: builtins.int = 1, eps: builtins.float = 1e-12, *, axis: builtins.int = 1) -> Tensor: 'Divided by the p-norm along an axis, or by `eps` where that is greater.\n\n>>> Tensor([[3.0, 4.0]]).normalize().tolist()\n[[0.6000000238418579, 0.800000011920929]]'
    def _safe_norm(self, p: builtins.float, dim: builtins.int | Sequence[builtins.int], keepdim: builtins.bool) -> Tensor: ...
    def cosine_similarity(self, x2: Tensor, dim: builtins.int = 1, eps: builtins.float = 1e-08, *, axis: builtins.int = 1) -> Tensor: 'The cosine of the angle between vectors along an axis; norms below `eps` count as eps.\n\n>>> Tensor([[3.0, 4.0]]).cosine_similarity(Tensor([[4.0, 3.0]])).tolist()\n[0.9600000381469727]'
    def pairwise_distance(self, x2: Tensor, p: builtins.float = 2.0, eps: builtins.float = 1e-06, keepdim: builtins.bool = False, *, keepdims: builtins.bool = False) -> Tensor: 'The p-norm of self - x2 + eps along the last axis.\n\n>>> Tensor([[3.0, 4.0]]).pairwise_distance(Tensor([[0.0, 0.0]]), eps=0.0).tolist()\n[5.0]'

    # neural.attention
    def scaled_dot_product_attention(self, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: builtins.float = 0.0, is_causal: builtins.bool = False, enable_gqa: builtins.bool = False, scale: builtins.float | None = None, *, generator: Numbers | None = None) -> Tensor: 'softmax(self @ keyᵀ · scale + mask) @ value; self is the query.\n\nself        (..., m, d)     key  (..., n, d)     value  (..., n, e)\nattn_mask   bool (False is hidden), or numbers that are added to the scores\nis_causal   query i sees the keys up to i\nenable_gqa  several query heads (axis -3) share a key head\ndropout_p   the share of weights that training drops (`Tensor.training`), drawn from `generator`\n\n(Vaswani et al. 2017.) A query that sees no key gets zeros.\n\n>>> q, k, v = Tensor([[1.0]]), Tensor([[0.0], [0.0]]), Tensor([[2.0], [4.0]])\n>>> q.scaled_dot_product_attention(k, v).tolist()\n[[3.0]]'
    def _masked_softmax(self) -> Tensor: ...
    def rotary_embedding(self, cos: Tensor, sin: Tensor, interleaved: builtins.bool = False) -> Tensor: 'Pairs of the last axis rotated by angles: RoPE (Su et al. 2021).\n\ncos, sin     (..., positions, depth / 2), of the angle of each pair\ninterleaved  pairs are neighbours (2i, 2i + 1); else the two halves of the axis\n\n>>> Tensor([[1.0, 0.0]]).rotary_embedding(Tensor([[0.0]]), Tensor([[1.0]])).tolist()\n[[0.0, 1.0]]'

    # neural.layers
    def sequential(self, layers: Sequence[Callable[[Any], Any]]) -> Any: 'The result of one layer after another: `x.sequential([layer, Tensor.relu, layer])`.\n\n>>> Tensor([-1.0, 2.0]).sequential([Tensor.relu, lambda x: x * 2]).tolist()\n[0.0, 4.0]'
    def linear(self, weight: Tensor, bias: Tensor | None = None, dtype: DTypeLike = None) -> Tensor: 'self @ weight + bias; a weight with one axis scales. (Weights are (in, out).\n\n`nn.Linear` keeps (out, in).)\n\n>>> Tensor([[1.0, 2.0]]).linear(Tensor([[1.0], [1.0]]), Tensor([0.5])).tolist()\n[[3.5]]'
    def embedding(self, weight: Tensor, padding_idx: builtins.int | None = None, max_norm: builtins.float | None = None, norm_type: builtins.float = 2.0, *, wrap: builtins.bool = False) -> Tensor: 'The row of `weight` for each index in this tensor.\n\nweight       (symbols, depth) → (..., depth)\npadding_idx  the symbol whose row is not trained\nmax_norm     rows with a larger `norm_type`-norm are scaled down to it (in the result only)\nwrap         whether negative symbols count from the end; otherwise they are out of range\n\nA symbol that is out of range raises IndexError when a result is read (under `CHECK_INDEX=0` it gives\nzeros).\n\n>>> Tensor([1, 0]).embedding(Tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()\n[[3.0, 4.0], [1.0, 2.0]]'
    def _names(self, symbol: builtins.int, size: sint, wrap: builtins.bool) -> Tensor: ...
    def embedding_bag(self, weight: Tensor, offsets: Tensor | None = None, mode: str = 'mean', per_sample_weights: Tensor | None = None, padding_idx: builtins.int | None = None, include_last_offset: builtins.bool = False, *, wrap: builtins.bool = False) -> Tensor: 'The sum, mean or maximum of the embeddings of each bag of symbols.\n\nself     (bags, symbols); or all symbols in a 1-d tensor, and in `offsets` where each bag begins\nweight   (symbols, depth) → (bags, depth)\nper_sample_weights   what each symbol counts, for the sum\nwrap     whether negative symbols count from the end; otherwise they are out of range\n\nAn empty bag gives zeros. A symbol that is out of range raises IndexError when a result is\nread.\n\n>>> table = Tensor([[1.0, 2.0], [3.0, 4.0]])\n>>> Tensor([0, 1, 1]).embedding_bag(table, Tensor([0, 1]), "sum").tolist()\n[[1.0, 2.0], [6.0, 8.0]]'

    # neural.class_losses
    def one_hot(self, num_classes: builtins.int = -1) -> Tensor: 'Class numbers as vectors with a 1 at the class, on a new last axis.\n\nA number out of range raises IndexError when a result is read (under `CHECK_INDEX=0` it gives a\nvector of zeros). Without `num_classes` it is computed at once, to count them.\n\n>>> Tensor([0, 2]).one_hot(3).tolist()\n[[1, 0, 0], [0, 0, 1]]'
    def _class_checked(self, count: sint, unless: Any = None) -> Tensor: ...
    def _classes(self, count: sint) -> Tensor: ...
    def _reduced(self, reduction: str) -> Tensor: ...
    def _distance(self, target: Any, name: str, broadcast: builtins.bool = False) -> tuple[Tensor, Tensor]: ...
    def cross_entropy(self, Y: Tensor, reduction: str = 'mean', label_smoothing: builtins.float = 0.0, *, weight: Tensor | None = None, ignore_index: builtins.int = -100) -> Tensor: "The cross entropy of logits with classes on axis 1 (on axis 0 of a 1-d tensor).\n\nY             class numbers of the shape without the class axis, or probabilities of the logits' shape\nweight        of each class         label_smoothing  the share that is spread over all classes\nignore_index  the class number that does not count\n\nA number out of range (negative or too large) raises IndexError when a result is read; under\n`CHECK_INDEX=0` it does not count, and its loss is 0 but for the share of `label_smoothing`.\n\n>>> Tensor([[0.0, 0.0]]).cross_entropy(Tensor([1])).item()\n0.6931471824645996"
    def nll_loss(self, Y: Tensor, weight: Tensor | None = None, ignore_index: builtins.int | None = None, reduction: str = 'mean', label_smoothing: builtins.float = 0.0) -> Tensor: 'Minus the log probability (axis 1; axis 0 of a 1-d tensor) of the class that Y names.\n\nweight  of each class: losses are multiplied, and their mean divided by, the weights\n\nA number that is neither a class nor `ignore_index` raises IndexError when a result is read; under\n`CHECK_INDEX=0` it has a loss of 0, and does not count in the mean.\n\n>>> Tensor([[-1.0, -2.0]]).nll_loss(Tensor([1])).item()\n2.0'
    def sparse_categorical_crossentropy(self, Y: Tensor, ignore_index: builtins.int = -1, label_smoothing: builtins.float = 0.0, reduction: str = 'mean') -> Tensor: 'The cross entropy of logits with classes on the last axis.\n\nY holds class numbers; `ignore_index` does not count. A number out of range raises IndexError when a\nresult is read.\n\n>>> Tensor([[0.0, 0.0]]).sparse_categorical_crossentropy(Tensor([1])).item()\n0.6931471824645996'
    def binary_crossentropy(self, Y: Any, reduction: str = 'mean') -> Tensor: 'The cross entropy of probabilities with probabilities Y.\n\nLogarithms are limited to -100, as in PyTorch.\n\n>>> Tensor([0.5]).binary_crossentropy(Tensor([1.0])).item()\n0.6931471824645996'
    def binary_crossentropy_logits(self, Y: Any, reduction: str = 'mean', pos_weight: Any = None) -> Tensor: 'The cross entropy of logits with probabilities Y, without overflow.\n\npos_weight  what the wanted ones count, broadcast\n\n>>> Tensor([0.0]).binary_crossentropy_logits(Tensor([1.0])).item()\n0.6931471824645996'
    def multi_margin_loss(self, target: Tensor, p: builtins.int = 1, margin: builtins.float = 1.0, weight: Tensor | None = None, reduction: str = 'mean') -> Tensor: 'Σ max(0, margin - x[y] + x[i])^p over all classes i but y, divided by their number.\n\nself  (batch, classes) or (classes,)      target  (batch,) or ()\n\n>>> Tensor([[0.0, 1.0]]).multi_margin_loss(Tensor([0])).item()\n1.0'
    def _class_numbers(self, target: Any, shape: tuple[sint, ...], name: str) -> Tensor: ...
    def multilabel_margin_loss(self, target: Tensor, reduction: str = 'mean') -> Tensor: 'Σ max(0, 1 - (x[y] - x[i])) over wanted classes y and others i, divided by the number of classes.\n\ntarget  of the shape (batch, classes) or (classes,): class numbers, up to the first negative one\n\n>>> Tensor([[0.0, 1.0]]).multilabel_margin_loss(Tensor([[0, -1]])).item()\n1.0'
    def multilabel_soft_margin_loss(self, target: Tensor, weight: Tensor | None = None, reduction: str = 'mean') -> Tensor: 'The mean over classes of the cross entropy of logits with 0 or 1, for each sample.\n\n>>> Tensor([[0.0, 0.0]]).multilabel_soft_margin_loss(Tensor([[0.0, 1.0]])).item()\n0.6931471824645996'
    def ctc_loss(self, targets: Tensor, input_lengths: Tensor | Sequence[builtins.int], target_lengths: Tensor | Sequence[builtins.int], blank: builtins.int = 0, reduction: str = 'mean', zero_infinity: builtins.bool = False) -> Tensor: 'Minus the log probability of texts, summed over all their alignments (Graves et al. 2006).\n\nself            log probabilities (times, batch, classes), or (times, classes)\ntargets         (batch, longest), or all texts one after another in a 1-d tensor\ninput_lengths   how many times count, of each sample; where none do, an empty text has the loss 0\ntarget_lengths  how many classes a text has, of each sample\nblank           the class that separates\nzero_infinity   texts that do not fit count 0 instead of infinity\n\nThe gradient is PyTorch\'s: that with respect to logits of which these are the log_softmax. That of a\ntext that does not fit is 0, where PyTorch\'s is NaN without `zero_infinity`.\n\n"mean" divides each loss by the length of its text first.\n\n>>> logs = Tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()\n>>> print(round(logs.ctc_loss(Tensor([[1]]), [2], [1]).item(), 4))\n0.2877'
    def _lengths(self, lengths: Any, batch: builtins.int, most: sint, name: str) -> Tensor: ...
    def _padded_texts(self, texts: Tensor, sizes: Tensor, batch: builtins.int) -> Tensor: ...

    # neural.losses
    def mse_loss(self, target: Any, reduction: str = 'mean') -> Tensor: 'The squared difference from the target.\n\n>>> Tensor([1.0, 4.0]).mse_loss(Tensor([1.0, 2.0])).item()\n2.0'
    def l1_loss(self, target: Any, reduction: str = 'mean') -> Tensor: 'The absolute difference from the target.\n\n>>> Tensor([1.0, 4.0]).l1_loss(Tensor([1.0, 2.0])).item()\n1.0'
    def smooth_l1_loss(self, target: Any, reduction: str = 'mean', beta: builtins.float = 1.0) -> Tensor: 'Squared near the target, within `beta`, and linear beyond: d²/(2·beta), d - beta/2.\n\n>>> Tensor([0.5, 3.0]).smooth_l1_loss(Tensor([0.0, 0.0]), "none").tolist()\n[0.125, 2.5]'
    def huber_loss(self, target: Any, reduction: str = 'mean', delta: builtins.float = 1.0) -> Tensor: 'Squared near the target, within `delta`, and linear beyond: d²/2, delta·(d - delta/2) (Huber 1964).\n\n>>> Tensor([0.5, 3.0]).huber_loss(Tensor([0.0, 0.0]), "none").tolist()\n[0.125, 2.5]'
    def kl_div(self, target: Any, reduction: str = 'mean', log_target: builtins.bool = False) -> Tensor: 'target · (log target - self), where self holds log probabilities.\n\nreduction   also "batchmean": the sum divided by the size of the first axis\nlog_target  whether the target holds logarithms too\n\n>>> print(Tensor([[0.5, 0.5]]).log().kl_div(Tensor([[0.0, 1.0]]), "batchmean").numpy())\n0.6931472'
    def poisson_nll_loss(self, target: Any, log_input: builtins.bool = True, full: builtins.bool = False, eps: builtins.float = 1e-08, reduction: str = 'mean') -> Tensor: "Minus the log probability of counts by a Poisson distribution, without its constant.\n\nlog_input  whether self is the logarithm of the rate\nfull       add Stirling's approximation of log(target!), where target is greater than 1\n\n>>> Tensor([0.0]).poisson_nll_loss(Tensor([2.0])).item()\n1.0"
    def gaussian_nll_loss(self, target: Any, var: Tensor | builtins.float, full: builtins.bool = False, eps: builtins.float = 1e-06, reduction: str = 'mean') -> Tensor: 'Minus the log probability by normal distributions of this mean and variance (Nix, Weigend 1994).\n\nvar   of the shape of self, or one for each vector along the last axis, or a number; at least `eps`\nfull  add the constant log(2π)/2\n\n>>> Tensor([1.0]).gaussian_nll_loss(Tensor([3.0]), Tensor([1.0])).item()\n2.0'
    def soft_margin_loss(self, target: Any, reduction: str = 'mean') -> Tensor: 'log(1 + e^(-target·self)), where the target is 1 or -1.\n\n>>> Tensor([0.0]).soft_margin_loss(Tensor([1.0])).item()\n0.6931471824645996'
    def hinge_embedding_loss(self, target: Any, margin: builtins.float = 1.0, reduction: str = 'mean') -> Tensor: 'self where the target is 1, max(0, margin - self) where it is -1.\n\n>>> Tensor([0.25, 0.25]).hinge_embedding_loss(Tensor([1.0, -1.0]), reduction="none").tolist()\n[0.25, 0.75]'
    def margin_ranking_loss(self, input2: Any, target: Any, margin: builtins.float = 0.0, reduction: str = 'mean') -> Tensor: 'max(0, margin - target·(self - input2)): 1 says that self ranks higher, -1 that input2 does.\n\n>>> Tensor([1.0]).margin_ranking_loss(Tensor([3.0]), Tensor([1.0])).item()\n2.0'
    def cosine_embedding_loss(self, input2: Any, target: Any, margin: builtins.float = 0.0, reduction: str = 'mean') -> Tensor: '1 - cos where the target is 1, max(0, cos - margin) where it is -1.\n\nself, input2  (batch, n) or (n,)      target  (batch,) or ()\n\n>>> Tensor([3.0, 4.0]).cosine_embedding_loss(Tensor([3.0, 4.0]), Tensor(-1)).item()\n1.0'
    def triplet_margin_loss(self, positive: Any, negative: Any, margin: builtins.float = 1.0, p: builtins.float = 2.0, eps: builtins.float = 1e-06, swap: builtins.bool = False, reduction: str = 'mean') -> Tensor: 'max(0, margin + |self - positive| - |self - negative|), distances along the last axis.\n\nswap  take |positive - negative| where that is smaller than |self - negative| (Balntas et al. 2016)\n\n>>> Tensor([[0.0]]).triplet_margin_loss(Tensor([[3.0]]), Tensor([[1.0]])).item()\n3.0'

    # core, whose methods are in TensorCore: those with a second name of an argument
    def size(self, dim: builtins.int | None = None, *, axis: builtins.int | None = None) -> Any: 'The shape, or one axis of it.\n\n>>> Tensor.zeros(2, 3).size()\n(2, 3)'

    # names: other names
    def absolute(self) -> Tensor: '|x|; |-0.0| is 0.0, and the slope at 0 is 0.\n\n>>> Tensor([-2, 3]).abs().tolist()\n[2, 3]'
    def arccos(self) -> Tensor: 'The angle in [0, π] whose cosine is x.\n\n>>> Tensor([1.0]).acos().tolist()\n[0.0]'
    def arccosh(self) -> Tensor: 'The number >= 0 whose hyperbolic cosine is x.\n\n>>> Tensor([1.0]).acosh().tolist()\n[0.0]'
    def arcsin(self) -> Tensor: 'The angle in [-π/2, π/2] whose sine is x.\n\n>>> Tensor([0.0]).asin().tolist()\n[0.0]'
    def arcsinh(self) -> Tensor: 'The number whose hyperbolic sine is x.\n\n>>> Tensor([0.0]).asinh().tolist()\n[0.0]'
    def arctan(self) -> Tensor: 'The angle in [-π/2, π/2] whose tangent is x: reduced to |x| <= tan(π/12), then a series.\n\n>>> Tensor([0.0]).atan().tolist()\n[0.0]'
    def arctan2(self, other: Any) -> Tensor: 'The angle of the point (other, self), in [-π, π], with the sign of self, also where that is -0.0.\n\n>>> Tensor([0.0]).atan2(Tensor([1.0])).tolist()\n[0.0]'
    def arctanh(self) -> Tensor: 'The number whose hyperbolic tangent is x.\n\n>>> Tensor([0.0]).atanh().tolist()\n[0.0]'
    @overload
    def argwhere(self, *, as_tuple: Literal[False] = False) -> Tensor: 'The indices of the nonzero elements, one row for each.\n\nIt is computed at once, since the shape depends on the values.\n\nas_tuple  a 1-d tensor of indices for each axis instead: what `x[...]` takes\n\n>>> Tensor([0, 7, 8]).nonzero().tolist()\n[[1], [2]]'
    @overload
    def argwhere(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
    def bitwise_left_shift(self, other: Any, reverse: builtins.bool = False) -> Tensor: 'Bits shifted left; a shift by the width or more gives 0.\n\n>>> Tensor([1]).lshift(3).tolist()\n[8]'
    def bitwise_right_shift(self, other: Any, reverse: builtins.bool = False) -> Tensor: 'Bits shifted right, keeping the sign; a shift by the width or more gives 0, or -1 if negative.\n\n>>> Tensor([9]).rshift(1).tolist()\n[4]'
    def broadcast_to(self, *shape: Any) -> Tensor: 'Axes of size 1 repeated to these sizes without memory; -1 keeps a size, new axes are in front.\n\n>>> Tensor([[1], [2]]).expand(2, 2).tolist()\n[[1, 1], [2, 2]]'
    def clip(self, min: Any = None, max: Any = None) -> Tensor: 'Limited to [min, max]; either of which may be a tensor or missing; NaN if any of them is.\n\nThe gradient of an element at a limit is 0; a limit that is a tensor shares it, as in `maximum`.\n\n>>> Tensor([-3, 1, 9]).clamp(0, 5).tolist()\n[0, 1, 5]'
    def concat(self, *args: Any, dim: builtins.int = 0, axis: builtins.int = 0) -> Tensor: 'Tensors joined along an axis that exists.\n\n`a.cat(b, c, dim=0)` or `Tensor.cat(a, b, c)`, also of a list.\n\nAll other sizes must be equal, except that a tensor of shape (0,) is left out. Dtypes are promoted to\na common one.\n\n>>> Tensor([1]).cat(Tensor([2, 3])).tolist()\n[1, 2, 3]'
    def concatenate(self, *args: Any, dim: builtins.int = 0, axis: builtins.int = 0) -> Tensor: 'Tensors joined along an axis that exists.\n\n`a.cat(b, c, dim=0)` or `Tensor.cat(a, b, c)`, also of a list.\n\nAll other sizes must be equal, except that a tensor of shape (0,) is left out. Dtypes are promoted to\na common one.\n\n>>> Tensor([1]).cat(Tensor([2, 3])).tolist()\n[1, 2, 3]'
    def divide(self, other: Any, reverse: builtins.bool = False, *, rounding_mode: str | None = None) -> Tensor: 'Elementwise quotient in floats.\n\n`rounding_mode` "floor" or "trunc" rounds it (and keeps integers integers).\n\n>>> Tensor([7]).div(2, rounding_mode="floor").tolist()\n[3]'
    def fix(self) -> Tensor: 'Rounded towards zero; integers are unchanged.\n\n>>> Tensor([1.8, -1.8]).trunc().tolist()\n[1.0, -1.0]'
    def ger(self, vec2: Tensor) -> Tensor: 'All products of the elements of two vectors.\n\n>>> Tensor([1, 2]).outer(Tensor([3, 4])).tolist()\n[[3, 4], [6, 8]]'
    def greater(self, other: Any) -> Tensor: 'self > other.\n\n>>> Tensor([1, 2]).gt(1).tolist()\n[False, True]'
    def greater_equal(self, other: Any) -> Tensor: 'self >= other.\n\n>>> Tensor([1, 2]).ge(2).tolist()\n[False, True]'
    def inverse(self) -> Tensor: 'The inverse of square matrices.\n\nWhere one is singular: a ValueError when it is computed, NaN in a jit.\n\n>>> Tensor([[2.0, 0.0], [0.0, 4.0]]).inv().tolist()\n[[0.5, 0.0], [0.0, 0.25]]'
    def less(self, other: Any) -> Tensor: 'self < other.\n\n>>> Tensor([1, 2]).lt(2).tolist()\n[True, False]'
    def less_equal(self, other: Any) -> Tensor: 'self <= other.\n\n>>> Tensor([1, 2]).le(1).tolist()\n[True, False]'
    def mod(self, other: Any, reverse: builtins.bool = False) -> Tensor: 'Elementwise remainder with the sign of the divisor; integers by 0 give 0, floats NaN.\n\nOf floats it is `fmod`, plus the divisor where that has another sign: exact but for this one sum. A\nmultiple of the divisor gives a zero with the sign of x (as in PyTorch).\n\n>>> Tensor([-7]).remainder(3).tolist()\n[2]'
    def moveaxis(self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]) -> Tensor: 'The axes `source` moved to the positions `destination`; the others keep their order.\n\n>>> Tensor.zeros(2, 3, 4).movedim(0, -1).shape\n(3, 4, 2)'
    def multi_dot(self, *others: Tensor) -> Tensor: 'The product of several matrices, in the order that takes the fewest multiplications.\n\n>>> Tensor([[2]]).chain_matmul(Tensor([[3]]), Tensor([[4]])).tolist()\n[[24]]'
    def multiply(self, other: Any) -> Tensor: 'Elementwise product; `and` on bools.\n\n>>> Tensor([1, 2]).mul(3).tolist()\n[3, 6]'
    def mvlgamma(self, p: builtins.int) -> Tensor: 'The logarithm of the multivariate gamma function of p dimensions, for x > (p - 1) / 2.\n\n>>> round(Tensor([3.0]).multigammaln(1).item(), 6)\n0.693147'
    def ndimension(self) -> builtins.int: 'The number of axes.\n\n>>> Tensor([[1]]).dim()\n2'
    def negative(self) -> Tensor: '-x; TypeError on bools.\n\n>>> Tensor([1, -2]).neg().tolist()\n[-1, 2]'
    def nelement(self) -> sint: 'The number of elements.\n\n>>> Tensor([[1, 2], [3, 4]]).numel()\n4'
    def not_equal(self, other: Any) -> Tensor: 'self != other.\n\n>>> Tensor([1, 2]).ne(2).tolist()\n[True, False]'
    def pinverse(self, rtol: builtins.float | Tensor | None = None, *, atol: builtins.float | Tensor | None = None) -> Tensor: 'The pseudoinverse (Moore and Penrose); singular values up to max(atol, rtol · the largest) count\nas 0.\n\nrtol        max(m, n) · eps of the dtype, if neither is given\nrtol, atol  numbers, or tensors of one for each matrix of a batch\n\n>>> Tensor([[2.0], [0.0]]).pinv().round(5).tolist()\n[[0.5, 0.0]]'
    def ravel(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor: 'The axes from `start_dim` to `end_dim`, both included, become one.\n\n>>> Tensor([[1, 2], [3, 4]]).flatten().tolist()\n[1, 2, 3, 4]'
    def row_stack(self, *args: Any) -> Tensor: 'Tensors on top of each other; 1-d tensors are rows.\n\n>>> Tensor.vstack(Tensor([1, 2]), Tensor([3, 4])).tolist()\n[[1, 2], [3, 4]]'
    def sgn(self) -> Tensor: '-1, 0 or 1; 0 of NaN, as in PyTorch. The slope is 0 everywhere.\n\n>>> Tensor([-2.0, 0.0, 5.0]).sign().tolist()\n[-1.0, 0.0, 1.0]'
    def split_with_sizes(self, sizes: builtins.int | Sequence[builtins.int], dim: builtins.int = 0, *, axis: builtins.int = 0) -> tuple[Tensor, ...]: 'Pieces of an axis: of this size (the last may be smaller), or of these sizes.\n\n>>> [t.tolist() for t in Tensor([1, 2, 3]).split(2)]\n[[1, 2], [3]]'
    def subtract(self, other: Any, reverse: builtins.bool = False, *, alpha: ConstType = 1) -> Tensor: 'Elementwise difference `self - alpha * other`; TypeError on two bools.\n\n>>> Tensor([5]).sub(3).tolist()\n[2]'
    def swapdims(self, dim0: builtins.int = 1, dim1: builtins.int = 0) -> Tensor: 'Two axes exchanged; the first two if none are named.\n\n>>> Tensor([[1, 2], [3, 4]]).transpose().tolist()\n[[1, 3], [2, 4]]'
    def swish(self) -> Tensor: 'x · sigmoid(x).\n\n>>> print(Tensor([-1.0, 0.0, 1.0]).silu().numpy())\n[-0.26894143  0.          0.7310586 ]'
    def trapz(self, x: Tensor | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1, axis: builtins.int = -1) -> Tensor: 'The area below points along an axis, by the trapezoidal rule.\n\nx   where the points are: a 1-d tensor, or a tensor that broadcasts      dx  else their distance\n\n>>> Tensor([1.0, 3.0]).trapezoid().item()\n2.0'
    def true_divide(self, other: Any, reverse: builtins.bool = False, *, rounding_mode: str | None = None) -> Tensor: 'Elementwise quotient in floats.\n\n`rounding_mode` "floor" or "trunc" rounds it (and keeps integers integers).\n\n>>> Tensor([7]).div(2, rounding_mode="floor").tolist()\n[3]'
    def type(self, dtype: DTypeSaid) -> Tensor: 'The values in another dtype: float → int truncates and saturates, NaN → 0; integers wrap.\n\n>>> Tensor([1.7, -1.7]).cast("int32").tolist()\n[1, -1]'
    def unsafe_chunk(self, chunks: builtins.int, dim: builtins.int = 0, *, axis: builtins.int = 0) -> tuple[Tensor, ...]: 'At most `chunks` equal pieces of an axis (the last may be smaller); `chunks` of an empty one.\n\n>>> [t.tolist() for t in Tensor([1, 2, 3]).chunk(2)]\n[[1, 2], [3]]'
    def unsafe_split(self, sizes: builtins.int | Sequence[builtins.int], dim: builtins.int = 0, *, axis: builtins.int = 0) -> tuple[Tensor, ...]: 'Pieces of an axis: of this size (the last may be smaller), or of these sizes.\n\n>>> [t.tolist() for t in Tensor([1, 2, 3]).split(2)]\n[[1, 2], [3]]'
    def unsafe_split_with_sizes(self, sizes: builtins.int | Sequence[builtins.int], dim: builtins.int = 0, *, axis: builtins.int = 0) -> tuple[Tensor, ...]: 'Pieces of an axis: of this size (the last may be smaller), or of these sizes.\n\n>>> [t.tolist() for t in Tensor([1, 2, 3]).split(2)]\n[[1, 2], [3]]'
    def upsample(self, size: builtins.int | Sequence[builtins.int] | None = None, scale_factor: builtins.float | Sequence[builtins.float] | None = None, mode: str = 'nearest', align_corners: builtins.bool | None = None, recompute_scale_factor: builtins.bool | None = None, antialias: builtins.bool = False) -> Tensor: 'The last axes at another size: `torch.nn.functional.interpolate`.\n\nself  (batch, channels, *sizes)\nsize  the new sizes, or `scale_factor`, what to multiply them by\nmode  nearest, nearest-exact, linear (along any number of axes), bilinear, bicubic, trilinear or area\nantialias   bilinear and bicubic to a smaller size look at all old pixels that a new one covers\n\nPixels of uint8 stay such, rounded and limited to 0 to 255; other integers become floats, but for the\nmodes that only choose.\n\n>>> Tensor([[[1.0, 3.0]]]).interpolate(4).tolist()\n[[[1.0, 1.0, 3.0, 3.0]]]'
    def view(self, *shape: Any) -> Tensor: 'The same elements in row-major order in another shape.\n\nOne size may be -1, and None keeps a size.\n\n>>> Tensor([1, 2, 3, 4]).reshape(2, -1).tolist()\n[[1, 2], [3, 4]]'
    def view_as(self, other: Tensor) -> Tensor: 'This tensor in the shape of another.\n\n>>> Tensor([1, 2]).reshape_as(Tensor([[0], [0]])).tolist()\n[[1], [2]]'
    def xor(self, other: Any) -> Tensor: 'Bitwise exclusive or; logical on bools.\n\n>>> Tensor([6]).bitwise_xor(3).tolist()\n[5]'

    # in_place
    def abs_(self) -> Self: "`abs` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([-2, 3]).abs_().tolist()\n[2, 3]"
    def absolute_(self) -> Self: "`absolute` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([-2, 3]).absolute_().tolist()\n[2, 3]"
    def neg_(self) -> Self: "`neg` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, -2]).neg_().tolist()\n[-1, 2]"
    def negative_(self) -> Self: "`negative` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, -2]).negative_().tolist()\n[-1, 2]"
    def sign_(self) -> Self: "`sign` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([-2.0, 0.0, 5.0]).sign_().tolist()\n[-1.0, 0.0, 1.0]"
    def sgn_(self) -> Self: "`sgn` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([-2.0, 0.0, 5.0]).sgn_().tolist()\n[-1.0, 0.0, 1.0]"
    def square_(self) -> Self: "`square` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([3]).square_().tolist()\n[9]"
    def sqrt_(self) -> Self: "`sqrt` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([4.0]).sqrt_().tolist()\n[2.0]"
    def rsqrt_(self) -> Self: "`rsqrt` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([4.0]).rsqrt_().tolist()\n[0.5]"
    def reciprocal_(self) -> Self: "`reciprocal` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([4.0]).reciprocal_().tolist()\n[0.25]"
    def exp_(self) -> Self: "`exp` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).exp_().tolist()\n[1.0]"
    def exp2_(self) -> Self: "`exp2` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([3.0]).exp2_().tolist()\n[8.0]"
    def expm1_(self) -> Self: "`expm1` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).expm1_().tolist()\n[0.0]"
    def log_(self) -> Self: "`log` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.0, 0.0]).log_().tolist()\n[0.0, -inf]"
    def log2_(self) -> Self: "`log2` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([8.0]).log2_().tolist()\n[3.0]"
    def log10_(self) -> Self: "`log10` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.0]).log10_().tolist()\n[0.0]"
    def log1p_(self) -> Self: "`log1p` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).log1p_().tolist()\n[0.0]"
    def sigmoid_(self) -> Self: "`sigmoid` written into this tensor's memory; returns the tensor.\n\n>>> print(Tensor([0.0, 1.0]).sigmoid_().numpy())\n[0.5       0.7310586]"
    def sin_(self) -> Self: "`sin` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).sin_().tolist()\n[0.0]"
    def cos_(self) -> Self: "`cos` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).cos_().tolist()\n[1.0]"
    def tan_(self) -> Self: "`tan` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).tan_().tolist()\n[0.0]"
    def asin_(self) -> Self: "`asin` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).asin_().tolist()\n[0.0]"
    def acos_(self) -> Self: "`acos` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.0]).acos_().tolist()\n[0.0]"
    def atan_(self) -> Self: "`atan` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).atan_().tolist()\n[0.0]"
    def sinh_(self) -> Self: "`sinh` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).sinh_().tolist()\n[0.0]"
    def cosh_(self) -> Self: "`cosh` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).cosh_().tolist()\n[1.0]"
    def tanh_(self) -> Self: "`tanh` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).tanh_().tolist()\n[0.0]"
    def asinh_(self) -> Self: "`asinh` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).asinh_().tolist()\n[0.0]"
    def acosh_(self) -> Self: "`acosh` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.0]).acosh_().tolist()\n[0.0]"
    def atanh_(self) -> Self: "`atanh` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).atanh_().tolist()\n[0.0]"
    def arcsin_(self) -> Self: "`arcsin` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).arcsin_().tolist()\n[0.0]"
    def arccos_(self) -> Self: "`arccos` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.0]).arccos_().tolist()\n[0.0]"
    def arctan_(self) -> Self: "`arctan` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).arctan_().tolist()\n[0.0]"
    def arcsinh_(self) -> Self: "`arcsinh` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).arcsinh_().tolist()\n[0.0]"
    def arccosh_(self) -> Self: "`arccosh` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.0]).arccosh_().tolist()\n[0.0]"
    def arctanh_(self) -> Self: "`arctanh` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).arctanh_().tolist()\n[0.0]"
    def erf_(self) -> Self: "`erf` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).erf_().tolist()\n[0.0]"
    def erfc_(self) -> Self: '`erfc` written into this tensor\'s memory; returns the tensor.\n\n>>> 2.0e-45 < Tensor([10.0], dtype="float64").erfc_().item() < 2.1e-45\nTrue'
    def erfinv_(self) -> Self: "`erfinv` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0, 1.0, -1.0]).erfinv_().tolist()\n[0.0, inf, -inf]"
    def lgamma_(self) -> Self: "`lgamma` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.0, 2.0, 3.0, 0.0]).lgamma_().exp().tolist()\n[1.0, 1.0, 2.0, inf]"
    def digamma_(self) -> Self: "`digamma` written into this tensor's memory; returns the tensor.\n\n>>> round(Tensor([1.0]).digamma_().item(), 6)\n-0.577216"
    def logit_(self, eps: builtins.float | None = None) -> Self: "`logit` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.5, 1.0]).logit_().tolist()\n[0.0, inf]"
    def relu_(self) -> Self: "`relu` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([-1.0, 2.0]).relu_().tolist()\n[0.0, 2.0]"
    def deg2rad_(self) -> Self: "`deg2rad` written into this tensor's memory; returns the tensor.\n\n>>> round(Tensor([180.0]).deg2rad_().item(), 5)\n3.14159"
    def rad2deg_(self) -> Self: "`rad2deg` written into this tensor's memory; returns the tensor.\n\n>>> round(Tensor([math.pi]).rad2deg_().item(), 4)\n180.0"
    def floor_(self) -> Self: "`floor` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.8, -1.2]).floor_().tolist()\n[1.0, -2.0]"
    def ceil_(self) -> Self: "`ceil` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.2, -1.2]).ceil_().tolist()\n[2.0, -1.0]"
    def round_(self, decimals: builtins.int = 0) -> Self: "`round` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.5, 1.5, 1.6]).round_().tolist()\n[0.0, 2.0, 2.0]"
    def trunc_(self) -> Self: "`trunc` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.8, -1.8]).trunc_().tolist()\n[1.0, -1.0]"
    def fix_(self) -> Self: "`fix` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.8, -1.8]).fix_().tolist()\n[1.0, -1.0]"
    def frac_(self) -> Self: "`frac` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.5, -1.5]).frac_().tolist()\n[0.5, -0.5]"
    def nan_to_num_(self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None) -> Self: "`nan_to_num` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([math.nan, 1.0, math.inf]).nan_to_num_(posinf=9.0).tolist()\n[0.0, 1.0, 9.0]"
    def add_(self, other: Any, *, alpha: ConstType = 1) -> Self: "`add` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).add_(3).tolist()\n[4, 5]"
    def sub_(self, other: Any, reverse: builtins.bool = False, *, alpha: ConstType = 1) -> Self: "`sub` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([5]).sub_(3).tolist()\n[2]"
    def subtract_(self, other: Any, reverse: builtins.bool = False, *, alpha: ConstType = 1) -> Self: "`subtract` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([5]).subtract_(3).tolist()\n[2]"
    def mul_(self, other: Any) -> Self: "`mul` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).mul_(3).tolist()\n[3, 6]"
    def multiply_(self, other: Any) -> Self: "`multiply` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).multiply_(3).tolist()\n[3, 6]"
    def div_(self, other: Any, reverse: builtins.bool = False, *, rounding_mode: str | None = None) -> Self: '`div` written into this tensor\'s memory; returns the tensor.\n\n>>> Tensor([7]).div_(2, rounding_mode="floor").tolist()\n[3]'
    def divide_(self, other: Any, reverse: builtins.bool = False, *, rounding_mode: str | None = None) -> Self: '`divide` written into this tensor\'s memory; returns the tensor.\n\n>>> Tensor([7]).divide_(2, rounding_mode="floor").tolist()\n[3]'
    def true_divide_(self, other: Any, reverse: builtins.bool = False, *, rounding_mode: str | None = None) -> Self: '`true_divide` written into this tensor\'s memory; returns the tensor.\n\n>>> Tensor([7]).true_divide_(2, rounding_mode="floor").tolist()\n[3]'
    def floor_divide_(self, other: Any, reverse: builtins.bool = False) -> Self: "`floor_divide` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([7, -7]).floor_divide_(2).tolist()\n[3, -4]"
    def remainder_(self, other: Any, reverse: builtins.bool = False) -> Self: "`remainder` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([-7]).remainder_(3).tolist()\n[2]"
    def fmod_(self, other: Any) -> Self: "`fmod` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([7, -7]).fmod_(3).tolist()\n[1, -1]"
    def pow_(self, exponent: Any, reverse: builtins.bool = False) -> Self: "`pow` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([2, 3]).pow_(2).tolist()\n[4, 9]"
    def lerp_(self, end: Tensor, weight: Any) -> Self: "`lerp` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).lerp_(Tensor([4.0]), 0.25).tolist()\n[1.0]"
    def addcmul_(self, tensor1: Any, tensor2: Any, *, value: builtins.float = 1) -> Self: "`addcmul` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.0]).addcmul_(Tensor([2.0]), Tensor([3.0]), value=0.5).tolist()\n[4.0]"
    def addcdiv_(self, tensor1: Any, tensor2: Any, *, value: builtins.float = 1) -> Self: "`addcdiv` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.0]).addcdiv_(Tensor([3.0]), Tensor([2.0]), value=2).tolist()\n[4.0]"
    def clamp_(self, min: Any = None, max: Any = None) -> Self: "`clamp` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([-3, 1, 9]).clamp_(0, 5).tolist()\n[0, 1, 5]"
    def clamp_min_(self, min: Any) -> Self: "`clamp_min` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 5]).clamp_min_(3).tolist()\n[3, 5]"
    def clamp_max_(self, max: Any) -> Self: "`clamp_max` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 5]).clamp_max_(3).tolist()\n[1, 3]"
    def clip_(self, min: Any = None, max: Any = None) -> Self: "`clip` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([-3, 1, 9]).clip_(0, 5).tolist()\n[0, 1, 5]"
    def copysign_(self, other: Any) -> Self: "`copysign` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.0, 2.0]).copysign_(Tensor([-0.0, 1.0])).tolist()\n[-1.0, 2.0]"
    def hypot_(self, other: Any) -> Self: "`hypot` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([3.0, 3e30]).hypot_(Tensor([4.0, 4e30])).tolist()[0]\n5.0"
    def atan2_(self, other: Any) -> Self: "`atan2` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).atan2_(Tensor([1.0])).tolist()\n[0.0]"
    def arctan2_(self, other: Any) -> Self: "`arctan2` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).arctan2_(Tensor([1.0])).tolist()\n[0.0]"
    def nextafter_(self, other: Any) -> Self: '`nextafter` written into this tensor\'s memory; returns the tensor.\n\n>>> Tensor([1.0, 0.0], dtype="float64").nextafter_(2.0).tolist()\n[1.0000000000000002, 5e-324]'
    def ldexp_(self, other: Any) -> Self: "`ldexp` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.5, 3.0]).ldexp_(Tensor([4, -1])).tolist()\n[8.0, 1.5]"
    def xlogy_(self, other: Any) -> Self: "`xlogy` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0, 1.0]).xlogy_(Tensor([0.0, 1.0])).tolist()\n[0.0, 0.0]"
    def heaviside_(self, values: Any) -> Self: "`heaviside` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([-2.0, 0.0, 3.0]).heaviside_(0.5).tolist()\n[0.0, 0.5, 1.0]"
    def gcd_(self, other: Any) -> Self: "`gcd` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([12, 0]).gcd_(Tensor([-18, 5])).tolist()\n[6, 5]"
    def lcm_(self, other: Any) -> Self: "`lcm` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([4, 0]).lcm_(Tensor([6, 5])).tolist()\n[12, 0]"
    def bitwise_and_(self, other: Any) -> Self: "`bitwise_and` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([6]).bitwise_and_(3).tolist()\n[2]"
    def bitwise_or_(self, other: Any) -> Self: "`bitwise_or` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([6]).bitwise_or_(3).tolist()\n[7]"
    def bitwise_xor_(self, other: Any) -> Self: "`bitwise_xor` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([6]).bitwise_xor_(3).tolist()\n[5]"
    def bitwise_not_(self) -> Self: "`bitwise_not` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0]).bitwise_not_().tolist()\n[-1]"
    def bitwise_left_shift_(self, other: Any, reverse: builtins.bool = False) -> Self: "`bitwise_left_shift` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1]).bitwise_left_shift_(3).tolist()\n[8]"
    def bitwise_right_shift_(self, other: Any, reverse: builtins.bool = False) -> Self: "`bitwise_right_shift` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([9]).bitwise_right_shift_(1).tolist()\n[4]"
    def masked_fill_(self, mask: Tensor, value: Any) -> Self: "`masked_fill` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).masked_fill_(Tensor([True, False]), 9).tolist()\n[9, 2]"
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Self: "`masked_scatter` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2, 3]).masked_scatter_(Tensor([True, False, True]), Tensor([7, 8])).tolist()\n[7, 2, 8]"
    @overload
    def index_add_(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: ConstType = 1) -> Self: "`index_add` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 1]).index_add_(0, Tensor([0, 0]), Tensor([2, 3])).tolist()\n[6, 1]"
    @overload
    def index_add_(self, *, axis: builtins.int, index: Tensor, source: Tensor, alpha: ConstType = 1) -> Self: ...
    @overload
    def index_copy_(self, dim: builtins.int, index: Tensor, source: Tensor) -> Self: "`index_copy` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2, 3]).index_copy_(0, Tensor([2, 0]), Tensor([7, 8])).tolist()\n[8, 2, 7]"
    @overload
    def index_copy_(self, *, axis: builtins.int, index: Tensor, source: Tensor) -> Self: ...
    @overload
    def index_fill_(self, dim: builtins.int, index: Tensor, value: Any) -> Self: "`index_fill` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2, 3]).index_fill_(0, Tensor([0, -1]), 9).tolist()\n[9, 2, 9]"
    @overload
    def index_fill_(self, *, axis: builtins.int, index: Tensor, value: Any) -> Self: ...
    @overload
    def index_reduce_(self, dim: builtins.int, index: Tensor, source: Tensor, reduce: str, *, include_self: builtins.bool = True) -> Self: '`index_reduce` written into this tensor\'s memory; returns the tensor.\n\n>>> Tensor([1, 5]).index_reduce_(0, Tensor([0, 1]), Tensor([3, 3]), "amax").tolist()\n[3, 5]'
    @overload
    def index_reduce_(self, *, axis: builtins.int, index: Tensor, source: Tensor, reduce: str, include_self: builtins.bool = True) -> Self: ...
    def index_put_(self, indices: Sequence[Any], values: Any, accumulate: builtins.bool = False) -> Self: "`index_put` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 1]).index_put_((Tensor([0, 0]),), Tensor([2, 3]), accumulate=True).tolist()\n[6, 1]"
    @overload
    def scatter_(self, dim: builtins.int, index: Tensor, src: Tensor | builtins.float, reduce: str | None = None) -> Self: "`scatter` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0, 0]).scatter_(0, Tensor([1]), Tensor([5])).tolist()\n[0, 5]"
    @overload
    def scatter_(self, *, axis: builtins.int, index: Tensor, src: Tensor | builtins.float, reduce: str | None = None) -> Self: ...
    @overload
    def scatter_add_(self, dim: builtins.int, index: Tensor, src: Tensor | builtins.float) -> Self: "`scatter_add` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0, 1]).scatter_add_(0, Tensor([1, 1]), Tensor([5, 6])).tolist()\n[0, 12]"
    @overload
    def scatter_add_(self, *, axis: builtins.int, index: Tensor, src: Tensor | builtins.float) -> Self: ...
    @overload
    def scatter_reduce_(self, dim: builtins.int, index: Tensor, src: Tensor | builtins.float, reduce: str, *, include_self: builtins.bool = True) -> Self: '`scatter_reduce` written into this tensor\'s memory; returns the tensor.\n\n>>> Tensor([4, 1]).scatter_reduce_(0, Tensor([0, 1]), Tensor([3, 3]), "amax").tolist()\n[4, 3]'
    @overload
    def scatter_reduce_(self, *, axis: builtins.int, index: Tensor, src: Tensor | builtins.float, reduce: str, include_self: builtins.bool = True) -> Self: ...
    def put_(self, index: Tensor, source: Tensor, accumulate: builtins.bool = False) -> Self: "`put` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([[1, 2], [3, 4]]).put_(Tensor([3, 0]), Tensor([8, 9])).tolist()\n[[9, 2], [3, 8]]"
    def cumsum_(self, axis: builtins.int = 0, dtype: DTypeLike = None, *, dim: builtins.int = 0) -> Self: "`cumsum` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2, 3]).cumsum_().tolist()\n[1, 3, 6]"
    def cumprod_(self, axis: builtins.int = 0, dtype: DTypeLike = None, *, dim: builtins.int = 0) -> Self: "`cumprod` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2, 3]).cumprod_().tolist()\n[1, 2, 6]"
    def tril_(self, diagonal: builtins.int = 0) -> Self: "`tril` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([[1, 2], [3, 4]]).tril_().tolist()\n[[1, 0], [3, 4]]"
    def triu_(self, diagonal: builtins.int = 0) -> Self: "`triu` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([[1, 2], [3, 4]]).triu_().tolist()\n[[1, 2], [0, 4]]"
    def addmm_(self, mat1: Any, mat2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Self: "`addmm` written into this tensor's memory; returns the tensor.\n\n>>> Tensor.ones(1, 1).addmm_(Tensor([[2.0]]), Tensor([[3.0]])).tolist()\n[[7.0]]"
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Self: "`addmv` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1.0]).addmv_(Tensor([[2.0, 3.0]]), Tensor([1.0, 1.0])).tolist()\n[6.0]"
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Self: "`addr` written into this tensor's memory; returns the tensor.\n\n>>> Tensor.zeros(1, 2).addr_(Tensor([2.0]), Tensor([3.0, 4.0])).tolist()\n[[6.0, 8.0]]"
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Self: "`addbmm` written into this tensor's memory; returns the tensor.\n\n>>> Tensor.zeros(1, 1).addbmm_(Tensor.ones(2, 1, 1), Tensor.ones(2, 1, 1)).tolist()\n[[2.0]]"
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Self: "`baddbmm` written into this tensor's memory; returns the tensor.\n\n>>> Tensor.ones(1, 1, 1).baddbmm_(Tensor([[[2.0]]]), Tensor([[[3.0]]])).tolist()\n[[[7.0]]]"
    def i0_(self) -> Self: "`i0` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0]).i0_().tolist()\n[1.0]"
    def igamma_(self, other: Any) -> Self: "`igamma` written into this tensor's memory; returns the tensor.\n\n>>> round(Tensor([1.0]).igamma_(Tensor([2.0])).item(), 6)\n0.864665"
    def igammac_(self, other: Any) -> Self: "`igammac` written into this tensor's memory; returns the tensor.\n\n>>> round(Tensor([1.0]).igammac_(Tensor([2.0])).item(), 6)\n0.135335"
    def mvlgamma_(self, p: builtins.int) -> Self: "`mvlgamma` written into this tensor's memory; returns the tensor.\n\n>>> round(Tensor([3.0]).mvlgamma_(1).item(), 6)\n0.693147"
    def polygamma_(self, n: builtins.int) -> Self: "`polygamma` written into this tensor's memory; returns the tensor.\n\n>>> round(Tensor([1.0]).polygamma_(1).item(), 6)\n1.644934"
    @overload
    def renorm_(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Self: "`renorm` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([[3.0, 4.0], [0.0, 1.0]]).renorm_(2, 0, 1.0).round(3).tolist()\n[[0.6, 0.8], [0.0, 1.0]]"
    @overload
    def renorm_(self, p: builtins.float, *, axis: builtins.int, maxnorm: builtins.float) -> Self: ...
    def sinc_(self) -> Self: "`sinc` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0.0, 1.0]).sinc_().tolist()\n[1.0, 0.0]"
    def eq_(self, other: Any) -> Self: "`eq` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).eq_(2).tolist()\n[0, 1]"
    def ne_(self, other: Any) -> Self: "`ne` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).ne_(2).tolist()\n[1, 0]"
    def lt_(self, other: Any) -> Self: "`lt` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).lt_(2).tolist()\n[1, 0]"
    def le_(self, other: Any) -> Self: "`le` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).le_(1).tolist()\n[1, 0]"
    def gt_(self, other: Any) -> Self: "`gt` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).gt_(1).tolist()\n[0, 1]"
    def ge_(self, other: Any) -> Self: "`ge` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).ge_(2).tolist()\n[0, 1]"
    def not_equal_(self, other: Any) -> Self: "`not_equal` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).not_equal_(2).tolist()\n[1, 0]"
    def less_(self, other: Any) -> Self: "`less` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).less_(2).tolist()\n[1, 0]"
    def less_equal_(self, other: Any) -> Self: "`less_equal` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).less_equal_(1).tolist()\n[1, 0]"
    def greater_(self, other: Any) -> Self: "`greater` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).greater_(1).tolist()\n[0, 1]"
    def greater_equal_(self, other: Any) -> Self: "`greater_equal` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([1, 2]).greater_equal_(2).tolist()\n[0, 1]"
    def logical_and_(self, other: Any) -> Self: "`logical_and` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0, 2]).logical_and_(True).tolist()\n[0, 1]"
    def logical_or_(self, other: Any) -> Self: "`logical_or` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0, 2]).logical_or_(False).tolist()\n[0, 1]"
    def logical_xor_(self, other: Any) -> Self: "`logical_xor` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0, 2]).logical_xor_(True).tolist()\n[1, 0]"
    def logical_not_(self) -> Self: "`logical_not` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([0, 2]).logical_not_().tolist()\n[1, 0]"
    def float_power_(self, exponent: Any) -> Self: "`float_power` written into this tensor's memory; returns the tensor.\n\n>>> Tensor([2.0]).float_power_(-1).tolist()\n[0.5]"
    def as_strided_(self, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int = 0) -> Self: 'This tensor becomes `as_strided` of what it was, in the same memory; returns the tensor.\n\n>>> Tensor([1, 2, 3, 4]).as_strided_((3, 2), (1, 1)).tolist()\n[[1, 2], [2, 3], [3, 4]]'
    def squeeze_(self, dim: Axis = None, *, axis: Axis = None) -> Self: 'This tensor becomes `squeeze` of what it was, in the same memory; returns the tensor.\n\n>>> Tensor.zeros(1, 2, 1).squeeze_().shape\n(2,)'
    @overload
    def unsqueeze_(self, dim: builtins.int) -> Self: 'This tensor becomes `unsqueeze` of what it was, in the same memory; returns the tensor.\n\n>>> Tensor([1, 2]).unsqueeze_(0).tolist()\n[[1, 2]]'
    @overload
    def unsqueeze_(self, *, axis: builtins.int) -> Self: ...
    def t_(self) -> Self: 'This tensor becomes `t` of what it was, in the same memory; returns the tensor.\n\n>>> Tensor([[1, 2]]).t_().tolist()\n[[1], [2]]'
    def transpose_(self, dim0: builtins.int = 1, dim1: builtins.int = 0) -> Self: 'This tensor becomes `transpose` of what it was, in the same memory; returns the tensor.\n\n>>> Tensor([[1, 2], [3, 4]]).transpose_().tolist()\n[[1, 3], [2, 4]]'
    def swapaxes_(self, axis0: builtins.int, axis1: builtins.int) -> Self: 'This tensor becomes `swapaxes` of what it was, in the same memory; returns the tensor.\n\n>>> Tensor.zeros(2, 3).swapaxes_(0, 1).shape\n(3, 2)'
    def swapdims_(self, dim0: builtins.int = 1, dim1: builtins.int = 0) -> Self: 'This tensor becomes `swapdims` of what it was, in the same memory; returns the tensor.\n\n>>> Tensor([[1, 2], [3, 4]]).swapdims_().tolist()\n[[1, 3], [2, 4]]'
    def __iadd__(self, other: Any) -> Self: ...
    def __isub__(self, other: Any) -> Self: ...
    def __imul__(self, other: Any) -> Self: ...
    def __itruediv__(self, other: Any) -> Self: ...
    def __ifloordiv__(self, other: Any) -> Self: ...
    def __imod__(self, other: Any) -> Self: ...
    def __ipow__(self, other: Any) -> Self: ...
    def __iand__(self, other: Any) -> Self: ...
    def __ior__(self, other: Any) -> Self: ...
    def __ixor__(self, other: Any) -> Self: ...
    def __ilshift__(self, other: Any) -> Self: ...
    def __irshift__(self, other: Any) -> Self: ...
