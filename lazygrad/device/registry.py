"""An open device (`CompiledDevice`), and the registry that opens devices by name (`Device`)."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, overload

from ..config import DEBUG, DEV
from ..ir.args import Devices
from ..renderer import ProgramSpec, Renderer
from ..target import Target
from .allocator import Allocator
from .facts import DeviceError, MissingDeviceError, open_lock

# *** a device


class Compiler:
    """Turns a renderer's text into bytes that the device can load."""

    def compile(self, source: str) -> bytes:
        """The binary; CompileError with the source and the log where the compiler refuses."""
        return source.encode()

    def version(self) -> str | None:
        """All that the binary depends on besides the text, for the disk cache; None keeps no binary there."""
        return None

    def disassemble(self, source: str) -> str:
        """The machine's instructions for the text; the text itself where nothing lower can be shown."""
        return source


#: A loaded kernel: `program(handles, values of the variables, wait=False)` → seconds if it waited.
Program = Callable[..., float | None]

#: A kernel of a recorded list: its program, and which of the list's handles and integers it takes.
Launch = tuple[Program, Sequence[int], Sequence[int]]
#: Runs a recorded list: `graph(handles, integers)`, of which each kernel takes its own.
Graph = Callable[[Sequence[Any], Sequence[int]], None]


class NativeCopy(NamedTuple):
    """What copies memory in a native loop: `address` is called as a kernel's entry, with how many bytes and
    `move` as integers.
    """

    address: int
    move: int
    keep_alive: Any


class NativeLoop(NamedTuple):
    """What runs a loop over time natively: `address` is called as a kernel's entry, with the address of a
    table as its integer.
    """

    address: int
    keep_alive: Any


class CompiledDevice:
    """One open device. Runtimes subclass it; a class is found as `<Name>Device` in `runtime/<name>.py`.

    name      canonical, as `CUDA:1`
    kind      the part before the colon: devices of one kind take the same programs
    renderer  None on a device that only holds data
    """

    has_graphs = False  #: whether `graph` makes one of several kernels
    fork_safe = True  #: whether a forked child may go on using a device that its parent opened

    def __init__(
        self,
        name: str,
        allocator: Allocator,
        renderer: Renderer | None = None,
        compiler: Compiler | None = None,
    ) -> None:
        self.name, self.kind = name, name.split(":")[0]
        self.allocator = allocator
        self._renderer, self.compiler = renderer, compiler

    def __repr__(self) -> str:
        return f"<device {self.name}>"

    @property
    def renderer(self) -> Renderer:
        if self._renderer is None:
            self._renderer = self._make_renderer()
        return self._renderer

    def _make_renderer(self) -> Renderer:
        """The renderer of a device that was opened without one, when it is first needed."""
        raise DeviceError(f"{self.name} holds data and runs no kernels; copy it to {Device.DEFAULT} first")

    @property
    def target(self) -> Target:
        return self.renderer.target

    def compile(self, spec: ProgramSpec) -> bytes:
        """The binary of a rendered kernel."""
        if self.compiler is None:
            raise DeviceError(f"{self.name} holds data and compiles no kernels")
        return self.compiler.compile(spec.src)

    def load(self, spec: ProgramSpec, lib: bytes) -> Program:
        """A binary made callable."""
        raise DeviceError(f"{self.name} holds data and runs no kernels")

    def replayer(self) -> Callable[[bytes], None] | None:
        """The native loop that runs a captured list of kernels, if it has one (_replay.py).

        It runs those of every device of this kind.
        """
        return None

    def copier(self) -> NativeCopy | None:
        """What the native loop copies with, from one device of this kind to another; None: the host does."""
        return None

    def looper(self) -> NativeLoop | None:
        """What runs all turns of a loop over time natively, if there is such; None: Python starts kernels."""
        return None

    def graph(self, launches: Sequence[Launch]) -> Graph:
        """A list of kernels made ready to run again as one, with other memory and other integers."""
        raise NotImplementedError(f"{self.name} runs kernels one by one")

    def transport(self, meeting: Any) -> Any:
        """What brings memory that the host does not see to other ranks; None: there is nothing.

        meeting  the way by which the ranks have met; `start` of what comes back is as that of
                 world.Transport, with handles for memory
        """
        return None

    def about(self) -> str:
        """What the machine is called, in a word for people; empty where the kind says it all."""
        return ""

    def check(self) -> None:
        """Raise DeviceError if something that only compiling or running needs is missing, and say what."""

    def synchronize(self) -> None:
        """Wait until everything started on the device is done; what kernels then report raises."""
        self.raise_reported()

    def raise_reported(self) -> None:
        """Let those who look at what kernels report do so; they may raise."""
        for looks in self.observers:
            looks(self.name)

    #: Called with a device's name when it has been waited for.
    observers: ClassVar[list[Callable[[str], None]]] = []


# *** the registry

#: Other libraries' names of kinds.
_ALSO = {"MPS": "METAL", "OPENCL": "CL"}
#: Tried in this order for the default; anything else is used only when asked for.
_REAL_GPUS = ("CUDA", "METAL")
#: Files of which one is there where such a GPU may be: without them nothing is imported to look for it.
_SIGNS = {
    "CUDA": (
        "/dev/nvidiactl",
        "/dev/nvmap",  # Jetson
        "/usr/lib/wsl/lib/libcuda.so.1",
        r"C:\Windows\System32\nvcuda.dll",
    ),
    "METAL": ("/System/Library/Frameworks/Metal.framework",),
}
_DATA_ONLY = ("NPY", "DISK")


class _Devices:
    """`Device["CPU"]` opens a device or finds it open; `Device.DEFAULT` is the name of the usual one."""

    def __init__(self) -> None:
        self._open: dict[str, CompiledDevice] = {}
        self._canonical: dict[str, str] = {}
        self._registered: dict[str, Callable[[str], CompiledDevice]] = {}
        self._parents: dict[
            str, str
        ] = {}  # after a fork: devices of the parent that this child must not touch
        self._default: str | None = None
        self._stand_in: Callable[[str, DeviceError], CompiledDevice] | None = None
        #: whether anybody has named a file as a device: else no tensor is asked whether it is on one
        self.uses_files = False
        self._present: set[Devices] = set()

    def known(self) -> list[str]:
        """Every kind of device there is a name for."""
        return sorted({*_runtime_files(), *self._registered})

    def opened(self) -> list[str]:
        """The devices that this process has opened."""
        return list(self._open)

    def status(self) -> dict[str, str]:
        """Every kind of device: "" if it works here, otherwise what is missing and how to get it."""
        found = {}
        for kind in self.known():
            try:
                if kind != "DISK":  # which opens with a path, and always can
                    self[kind].check()
                found[kind] = ""
            except DeviceError as error:
                found[kind] = str(error)
        return found

    def get_available_devices(self) -> Iterator[str]:
        """The kinds of devices that run kernels here."""
        return (kind for kind, problem in self.status().items() if not problem and self.runs_kernels(kind))

    def register(self, kind: str, make: Callable[[str], CompiledDevice]) -> None:
        """Add a kind of device that is not a file of runtime/: `make(name)` opens one."""
        self._registered[kind.upper()] = make

    def unregister(self, kind: str) -> None:
        """Take away what `register` added, with the devices of that kind that are open."""
        del self._registered[kind.upper()]
        for name in [name for name in self._open if name.partition(":")[0] == kind.upper()]:
            del self._open[name]
        self._canonical.clear()
        self._present.clear()

    @contextlib.contextmanager
    def stand_ins(self, kinds: Iterable[str], make: Callable[[str], CompiledDevice]) -> Iterator[list[str]]:
        """Within the block `make(name)` opens a device of these kinds where the real one is not here.

        Gives the kinds that it was needed for; their devices are closed at the end.
        """
        absent: list[str] = []

        def stand_in(name: str, error: DeviceError) -> CompiledDevice:
            kind = name.partition(":")[0]
            if kind in kinds and name == kind and kind not in absent:
                absent.append(kind)
            elif kind in kinds:
                self[kind]  # a number that a real device lacks is an error
            if kind not in absent:
                raise error
            return make(name)

        self._stand_in = stand_in
        try:
            yield absent
        finally:
            self._stand_in = None
            for name in [name for name in self._open if name.partition(":")[0] in absent]:
                del self._open[name]

    @overload
    def canonicalize(self, name: str | None) -> str: ...

    @overload
    def canonicalize(self, name: Devices | None) -> Devices: ...

    def canonicalize(self, name: Devices | None) -> Devices:
        """Upper case, without `:0`; None is the default. What follows `DISK:` is a path and stays so."""
        if name is None:
            return self.DEFAULT
        if isinstance(name, tuple):
            return self._several(name)
        found = self._canonical.get(name)
        if found is None:
            found = self._canonical[name] = self._canonicalize(name)
        return found

    @overload
    def present(self, name: str | None) -> str: ...

    @overload
    def present(self, name: Devices | None) -> Devices: ...

    def present(self, name: Devices | None) -> Devices:
        """`canonicalize`, of devices that are here: what cannot be opened is a DeviceError that lists those
        that can."""
        found = self.canonicalize(name)
        if name is None or found in self._present:
            return found
        for each in found if isinstance(found, tuple) else (found,):
            if self.runs_kernels(each):
                try:
                    self[each]
                except DeviceError as error:
                    here = ", ".join(self.get_available_devices())
                    raise type(error)(f"{error} (devices here: {here})") from None
        if self._stand_in is None:
            self._present.add(found)
        return found

    def _several(self, names: tuple[str, ...]) -> Devices:
        """The canonical names of devices that hold one tensor together; of one device, its name."""
        found = tuple([self.canonicalize(name) for name in names])
        for name in found:
            if found.count(name) > 1:
                names_text = ", ".join(found)
                raise ValueError(f"{names_text} names {name} twice; a device holds one part of a tensor")
            if not self.runs_kernels(name):
                raise ValueError(f"{name} holds data and runs no kernels: it cannot hold a part of a tensor")
        if not found:
            raise ValueError("a tensor must be on at least one device, not on ()")
        return found if len(found) > 1 else found[0]

    def _canonicalize(self, name: str) -> str:
        if not isinstance(name, str):
            if type(name).__name__ != "device" or not hasattr(name, "index"):
                raise TypeError(f"a device must be named by a string such as 'CPU', not {name!r}")
            name = str(name)  # PyTorch's
        kind, colon, rest = name.partition(":")
        kind = _ALSO.get(kind.upper(), kind.upper())
        known = self.known()
        if kind not in known:
            import difflib

            near = difflib.get_close_matches(kind, known, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise DeviceError(f"{name!r} is not a device.{hint} Known: {', '.join(known)}")
        if kind == "DISK":
            if not rest:
                raise DeviceError("DISK needs the path of a file: 'DISK:/path/to/file'")
            self.uses_files = True
            return f"DISK:{rest}"
        if colon and not (rest.isascii() and rest.isdigit()):
            raise DeviceError(f"{name!r}: after {kind}: comes the number of the device, as in {kind}:1")
        return f"{kind}:{int(rest)}" if rest and int(rest) else kind

    def runs_kernels(self, name: Devices) -> bool:
        """Whether a device computes: DISK and NPY only hold data. Those that hold a tensor together do."""
        return isinstance(name, tuple) or name.partition(":")[0] not in _DATA_ONLY

    def __getitem__(self, name: str) -> CompiledDevice:
        device = self._open.get(name)
        if device is not None:
            return device
        name = self.canonicalize(name)
        with open_lock:
            device = self._open.get(name)
            if device is None:
                if name in self._parents:
                    raise DeviceError(f"can only open device {name} from parent, not {self._parents[name]}")
                try:
                    device = self._make(name)
                except DeviceError as error:
                    if self._stand_in is None:
                        raise
                    device = self._stand_in(name, error)
                self._open[name] = device
                if DEBUG.value >= 1:
                    print(f"opened device {name} from pid:{os.getpid()}")
            return device

    def _make(self, name: str) -> CompiledDevice:
        kind = name.split(":")[0]
        make = self._registered.get(kind)
        if make is None:
            module = importlib.import_module(f"lazygrad.runtime.{kind.lower()}")
            wanted = f"{kind}DEVICE"
            make = next(value for key, value in vars(module).items() if key.upper() == wanted)
        return make(name)

    @property
    def DEFAULT(self) -> str:
        """DEV, or CPU=1 and the like in the environment, or a real GPU that works, or CPU."""
        requested: str | None = DEV.value
        if requested:
            return self.canonicalize(requested)
        if self._default is None:
            self._default = self._choose()
        return self._default

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:
        DEV.set_default(self.canonicalize(name))

    @property
    def default(self) -> CompiledDevice:
        """The usual device itself, open."""
        return self[self.DEFAULT]

    def _choose(self) -> str:
        for kind in self.known():
            if os.environ.get(kind) == "1" and kind not in _DATA_ONLY:
                return kind
        for kind in _REAL_GPUS:
            if kind in _runtime_files() and any(map(os.path.exists, _SIGNS[kind])) and self._works(kind):
                return kind
        return "CPU"

    def _works(self, kind: str) -> bool:
        """Whether a GPU can be the default; the CPU is always there. A driver that is broken warns."""
        try:
            device = self[kind]
            device.check()
        except MissingDeviceError as error:
            if DEBUG.value >= 1:
                print(f"the default device is CPU: {error}")
            return False
        except DeviceError as error:
            text = f"the default device is CPU: {error} (DEV=CPU chooses it without this warning)"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
            return False
        if DEBUG.value >= 1:
            print(f"the default device is {kind}: {device.about()}; DEV=CPU chooses the processor")
        return True

    def _after_fork_in_child(self) -> None:
        unsafe = [name for name, device in self._open.items() if not device.fork_safe]
        if unsafe:
            process = sys.modules.get("multiprocessing.process")
            child = process.current_process().name if process else f"the forked process {os.getpid()}"
            for name in unsafe:
                self._parents[name] = child
                del self._open[name]


_runtimes: frozenset[str] = frozenset()


def _runtime_files() -> frozenset[str]:
    """The devices of runtime/: one file each; files that begin with `_` are shared by several."""
    global _runtimes
    if not _runtimes:
        folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "runtime")
        files = (os.path.splitext(file) for file in os.listdir(folder))
        _runtimes = frozenset(
            name.upper() for name, end in files if end == ".py" and not name.startswith("_")
        )
    return _runtimes


Device = _Devices()

if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=Device._after_fork_in_child)
