"""One capture of a function: what must be as it was then, the kernels, and what becomes of their outputs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from ..config import ContextVar, flags_state
from ..device import Buffer, Device
from ..dtype import default_float, default_int
from ..engine.actions import MemoryUses
from ..engine.replay import Replay
from ..locks import uninterrupted
from ..schedule.graph.versions import peel
from ..schedule.kernels.items import ScheduleItem
from ..tensor import Tensor
from ..tensor.modes import mode
from ..tensor.random import sampling
from ..tensor.storage import Storage, base_of
from .capture import Capture, Draws
from .describer import without_unnamed
from .environment import Environment
from .errors import Changed
from .layout import Layout, Moves, buffers_of, layout_of
from .limits import Limits
from .nest import Build, Nest
from .outputs import Output
from .results import Argument, ArgumentPart, Constant, Made, OutputPart, StoragePart
from .session import Session
from .specs import Call, Spec, note_bind
from .tensor_memory import memory_and_moves, settled, storage_in_memory
from .tensor_specs import TensorSpec, spec_for
from .writable_memory import begin_writes, end_writes, is_watched

#: The tensors on an output: their class, and how they look at it.
Views = list[tuple[type[Tensor], Moves]]


class External:
    """Memory from outside that the kernels use: what joins its tensors, the version that was there last.

    part  which of the storage's Buffers it is, one for each device     layout  how these lie
    """

    __slots__ = ("buffer", "changed", "layout", "node", "part", "shared", "storage")

    def __init__(self, storage: Storage, buffer: Buffer, shared: bool, written: bool) -> None:
        self.storage, self.buffer, self.shared, self.changed = storage, buffer, shared, written
        self.node = storage.version
        self.layout = layout_of(self.node)
        self.part = [each.base for each in buffers_of(self.node)].index(buffer)


class Gradient:
    """A tensor whose `grad` the function sets: that of argument `number`, or `tensor`.

    made   makes the new value; None where `grad` is None at the end
    reads  what the old value must be like, where the function adds to it
    """

    __slots__ = ("made", "number", "reads", "tensor", "was_none")

    def __init__(self, number: int | None, tensor: Tensor, was_none: bool) -> None:
        self.number, self.tensor, self.was_none = number, tensor, was_none
        self.made: Made | None = None
        self.reads: TensorSpec | None = None

    def of(self, call: Call) -> Tensor:
        return self.tensor if self.number is None else call.tensors[self.number]


class Stored(NamedTuple):
    """What a capture is besides the arguments, as another process left it, on the memory of this one.

    storages  whose memory is from outside        binds  the values that Variables had in the items
    """

    items: list[ScheduleItem]
    uses: MemoryUses
    storages: dict[Buffer, list[Storage]]
    binds: dict[str, int]
    read_values: dict[str, int]
    made: list[Made]
    outputs: list[Output]
    build: Build


class Captured:
    """One capture. `match` says whether a call is like it, `run` replays."""

    def __init__(self, args: list[Spec], kwargs: dict[str, Spec], environment: Environment) -> None:
        self.args, self.kwargs, self.environment = args, kwargs, environment
        #: what holds in a thread and changes what operations record
        self._modes = mode.grad, mode.training, mode.autocast, mode.generators
        self._flags_state = flags_state()
        self._flags = capture_flags()

    # *** after the capture

    def complete(
        self, capture: Capture, session: Session, specs: list[TensorSpec], call: Call, nest: Nest
    ) -> MemoryUses | None:
        """Make it ready to run again. What its memory is; None where it cannot be ready: it adds to a part of
        a gradient's memory, or reads an old gradient in a way that is not known any more.
        """
        for spec in (*self.args, *self.kwargs.values()):
            if not self.environment.every:
                without_unnamed(spec, self.environment.names)
        self.specs = specs
        #: what the tensors among the arguments are like
        self.signature = tuple(spec.signature for spec in specs)
        self.draws = capture.draws
        #: the module that trained in it, where nothing was learned from that
        self.trains = "" if capture.differentiates else capture.trains
        self.build = nest.build
        #: whether it leaves tensors besides its results, or some of these are older or constant
        self._lasting = session.keeps(nest.tensors)
        #: whether results that lie in other ways have a device's part in common
        self._shared = False
        roles = MemoryUses(fresh=capture.fresh, zeroed=capture.zeroed)
        self._begin_slots(call, roles)
        storages = session.storages()
        shards: dict[tuple[Buffer, ...], tuple[Layout, Views]] = {}
        self.made = [self._result(t, call, session, storages, roles, shards) for t in nest.tensors]
        used = {buffer.base for item in capture.items for buffer in item.bufs}
        self.gradients: list[Gradient] = []
        for tensor, was_set, before, after, memory in session.gradients():
            argument = next((n for n, t in enumerate(call.tensors) if t is tensor), None)
            if argument is None and not session.existed(tensor):
                continue
            gradient = Gradient(argument, tensor, not was_set)
            if after is not None:
                gradient.made = self._result(after, call, session, storages, roles, shards)
            old = None if before is None else memory_and_moves(before)
            if before is not None and old is not None and any(b.base in used for b in old[0]):
                gradient.reads = spec_for(before, f"the gradient of a tensor of shape {tensor.shape}", 0)
                buffers = session.prepare(before, gradient.reads)
                if any(now is not was for now, was in zip(buffers, old[0], strict=True)):
                    return None
                for buffer in buffers:
                    call.buffers.append(buffer)
                    self._add_slot(buffer, roles)
            if gradient.reads is None and not used.isdisjoint(memory):
                return None
            self.gradients.append(gradient)
        if self._shared:
            return None
        for bind in self.environment.binds():
            note_bind(call, bind, "a Variable outside of the arguments")
        #: the Variables whose values Python read, and these values
        self._read_values = {n: v for n, v in capture.read_values.items() if call.binds.get(n) == v}
        #: which values the other Variables may have
        self.limits = Limits(capture.limits, call.binds)
        self.outputs = [Output(bases, views, layout) for bases, (layout, views) in shards.items()]
        self._make_replay(capture.items, roles, storages, call, call.binds)
        return roles

    def restore(self, stored: Stored, specs: list[TensorSpec], call: Call) -> None:
        """Make it ready to run as another process had it; `call` fits it."""
        self.specs = specs
        self.signature = tuple(spec.signature for spec in specs)
        self.draws, self.build, self._lasting, self.trains = Draws(), stored.build, False, ""
        roles = stored.uses
        self._begin_slots(call, roles)
        self.gradients = []
        self._read_values, self.limits = stored.read_values, Limits()
        self.made, self.outputs = stored.made, stored.outputs
        self._make_replay(stored.items, roles, stored.storages, call, stored.binds)

    def _begin_slots(self, call: Call, roles: MemoryUses) -> None:
        #: slot → the number of a Buffer of the call; (number, slot) of others in the same memory
        self.slots: list[int] = []
        self.ties: list[tuple[int, int]] = []
        #: number of a Buffer of the call → that of the tensor; a tensor on several devices has several
        self.owners: list[int] = []
        for number, spec in enumerate(self.specs):
            self.owners += [number] * spec.count
        for buffer in call.buffers:
            self._add_slot(buffer, roles)

    def _make_replay(
        self,
        items: Sequence[ScheduleItem],
        roles: MemoryUses,
        storages: dict[Buffer, list[Storage]],
        call: Call,
        binds: dict[str, int],
    ) -> None:
        draws = self.draws

        def source(name: str, value: int) -> Hashable | None:
            return ("bind", name) if binds.get(name) == value else draws.source(name, value)

        self.replay = Replay(items, roles, source)
        self.replay.follow_flags()
        self._changing = bool(self.replay.sources or draws.start is not None or draws.final is not None)
        self._watch_memory(storages, roles, call)

    def _add_slot(self, buffer: Buffer, roles: MemoryUses) -> None:
        number = len(self.slots) + len(self.ties)
        slot = roles.arguments.setdefault(buffer.base, len(self.slots))
        if slot == len(self.slots):
            self.slots.append(number)
        else:
            self.ties.append((number, self.slots[slot]))

    def _result(
        self,
        tensor: Tensor,
        call: Call,
        session: Session,
        storages: dict[Buffer, list[Storage]],
        roles: MemoryUses,
        parts: dict[tuple[Buffer, ...], tuple[Layout, Views]],
    ) -> Made:
        """How one tensor of the result is made in a replay."""
        kind = type(tensor)
        number = next((n for n, t in enumerate(call.tensors) if t is tensor), None)
        if number is not None:
            self._lasting = True
            return Argument(number)
        place = memory_and_moves(tensor)
        if place is None or session.existed(tensor):
            self._lasting = True
            return Constant(tensor)
        buffers, moves = place
        bases = tuple([buffer.base for buffer in buffers])
        if bases[0] in roles.arguments:
            self._lasting = True
            owner = self.owners[self.slots[roles.arguments[bases[0]]]]
            return ArgumentPart(kind, owner, bases[0].size if len(bases) == 1 else None, moves)
        if all(base in roles.fresh or (base in roles.zeroed and base in buffers) for base in bases):
            if bases not in parts:
                self._shared = self._shared or any(base in roles.outputs for base in bases)
                for base in bases:
                    roles.outputs.setdefault(base, len(roles.outputs))
                parts[bases] = layout_of(base_of(peel(tensor._value()))), []
            views = parts[bases][1]
            views.append((kind, moves))
            return OutputPart(list(parts).index(bases), len(views) - 1)
        self._lasting = True
        return StoragePart(kind, storages[bases[0]][0], moves)

    def _watch_memory(self, storages: dict[Buffer, list[Storage]], roles: MemoryUses, call: Call) -> None:
        """Note whose memory is used, and which arguments must not be in the same memory as what else."""
        replay = self.replay
        bases = [buffer.base for buffer in call.buffers]
        for number, spec in enumerate(self.specs):
            begin = self.owners.index(number)
            spec.changed = any(base in replay.mutated for base in bases[begin : begin + spec.count])
        #: the numbers of the call's Buffers that are written
        self._changed = [number for number, owner in enumerate(self.owners) if self.specs[owner].changed]
        self.external = []
        for base in replay.external:
            found = storages.get(base, [])
            for storage in found:
                self.external.append(External(storage, base, len(found) > 1, base in replay.mutated))
        used = {*replay.external, *roles.arguments}

        def is_used(tensor: Tensor) -> bool:
            place = memory_and_moves(tensor)
            return place is not None and any(buffer.base in used for buffer in place[0])

        self.changed_external = [external for external in self.external if external.changed]
        self.environment.close(is_used, [gradient.of(call) for gradient in self.gradients])
        places = [memory_and_moves(tensor) for tensor in self.environment.tensors()]
        held = {buffer.base for place in places if place is not None for buffer in place[0]}
        #: arguments that the function also sees otherwise: they must be in the same memory every time
        self.pins = [(n, call.buffers[n]) for n in range(len(bases)) if bases[n] in held]
        self._needs_disjoint = bool(replay.mutated)

    @property
    def kernels(self) -> int:
        """How many kernels and copies a replay runs."""
        return self.replay.kernels

    @property
    def read_values(self) -> dict[str, int]:
        """The Variables whose values Python read, or the graph depends on, with these values."""
        return self._read_values

    @property
    def leaves_tensors(self) -> bool:
        """Whether it leaves tensors besides its results, or some of these are older or constant."""
        return self._lasting

    @property
    def devices(self) -> int:
        """On how many devices a replay runs."""
        return len({action.device for batch in self.replay.batches for action in batch.actions})

    def is_sizeable(self) -> bool:
        """Whether all that it does is to compute new results: then it can be run once more, and compared."""
        draws = self.draws
        drawn = draws.start is not None or draws.final is not None or draws.read
        given = any(spec.grad for spec in self.specs)
        return not (self.replay.mutated or self.gradients or drawn or given or self._lasting)

    def reads_value(self, name: str) -> bool:
        """Whether Python read the value of a Variable, or the graph is not the same for each value."""
        return name in self._read_values or name in self.limits.names

    def announce(self) -> None:
        """DEBUG=1: what was captured."""
        print(f"JIT captured {self.kernels} kernels with {len(self.slots)} inputs")
        self.replay.announce()

    # *** before a replay

    def match(self, args: tuple[Any, ...], kwargs: dict[str, Any], call: Call) -> None:
        """Gather the call's tensors. Raises Changed or Mismatch where the call is unlike the captured one."""
        specs = self.args
        if len(args) != len(specs) or ((kwargs or self.kwargs) and kwargs.keys() != self.kwargs.keys()):
            raise Changed("the form of the call", _form(specs, self.kwargs), _form(args, kwargs))
        changed: Changed | None = None
        for number, spec in enumerate(specs):
            try:
                spec.read(args[number], call)
            except Changed as reason:  # that a later tensor is of another shape counts more
                changed = changed or reason
        if kwargs:
            for key, spec in self.kwargs.items():
                try:
                    spec.read(kwargs[key], call)
                except Changed as reason:
                    changed = changed or reason
        if changed is not None:
            raise changed
        modes = mode.grad, mode.training, mode.autocast, mode.generators
        if modes != self._modes:
            raise Changed("Tensor.training, no_grad, autocast or the generator", self._modes, modes)
        overlay, changes = flags_state()
        if overlay is not self._flags_state[0] or changes != self._flags_state[1]:
            if capture_flags() != self._flags:
                raise Changed("a flag of lazygrad, a default dtype or device", self._flags, capture_flags())
            self._flags_state = overlay, changes
            self.replay.follow_flags()
        self.environment.check(call)
        for name, value in self._read_values.items():
            if call.binds[name] != value:
                raise Changed(f"the value of Variable {name}", value, call.binds[name])
        self.limits.check(call.binds)
        for gradient in self.gradients:
            now = gradient.of(call).grad
            if (now is None) is not gradient.was_none:
                raise Changed(
                    "the gradient of a tensor", *(("None", "set") if now is not None else ("set", "None"))
                )
            if gradient.reads is not None:
                gradient.reads.read(now, call)
        if call.mismatch is not None:
            raise call.mismatch
        if self.ties or self.pins or self._needs_disjoint:
            self._check_memory(call.buffers)
        for external in self.external:
            if external.storage.version is not external.node:
                self._settle(external)

    def _check_memory(self, buffers: list[Buffer]) -> None:
        for number, other in self.ties:
            if buffers[number] is not buffers[other]:
                raise Changed(self._name(number), "in the memory of another argument", "in memory of its own")
        for number, buffer in self.pins:
            if buffers[number] is not buffer:
                raise Changed(self._name(number), "a tensor that the function also sees otherwise", "another")
        if not self._needs_disjoint:
            return
        external, written = self.replay.external, self.replay.mutated
        visited: dict[Buffer, bool] = {}
        for number in self.slots:
            base = buffers[number].base
            writes = number < len(self.owners) and self.specs[self.owners[number]].changed
            if (base in external and (writes or base in written)) or (
                base in visited and (writes or visited[base])
            ):
                raise Changed(
                    self._name(number), "in memory of its own", "in memory that the function also writes"
                )
            visited[base] = writes

    def _name(self, number: int) -> str:
        return self.specs[self.owners[number]].name if number < len(self.owners) else "a gradient"

    # *** a replay

    def run(self, call: Call) -> Any:
        """Replay on the memory of this call."""
        return self.build(self.results(call))

    def results(self, call: Call, numbers: str | None = None) -> list[Tensor]:
        """The tensors that a replay gives, with a number for the Variable `numbers`.

        `build` puts them in their places.
        """
        replay = self.replay
        writes = []
        for each in self.changed_external:
            if is_watched(each.storage, each.buffer):
                writes.append(each.storage)
        for number in self._changed:
            storage = storage_in_memory(call.tensors[self.owners[number]])
            if is_watched(storage, call.buffers[number].base):
                writes.append(storage)
        if writes:
            writes = list(dict.fromkeys(writes))  # once, also where several devices hold it
            self._begin(writes, call)
        for gradient in self.gradients:
            if gradient.reads is None:  # nobody looks at the old one: its memory is free from here on
                gradient.of(call).grad = None
        buffers, handles, made = call.buffers, [], []
        for number in self.slots:
            handles.append(buffers[number]._buf)
        for output in self.outputs:
            taken, tensors = output.take(call.binds, numbers)
            for buffer in taken:
                handles.append(buffer._buf)
            made.append(tensors)
        values = self._values(call) if self._changing else []
        if writes:
            with uninterrupted():  # what was written must not seem as it was
                try:
                    replay.run(handles, values)
                finally:
                    self._end(writes)
        else:
            replay.run(handles, values)
        for gradient in self.gradients:
            tensor = gradient.of(call)
            tensor.grad = None if gradient.made is None else gradient.made(call, made)
        results = []
        for part in self.made:
            results.append(part(call, made))
        return results

    def _values(self, call: Call) -> list[int]:
        """What the changing integers are in this call."""
        seed = base = 0
        if self.draws.start is not None:
            seed, base = sampling.draw(self.draws.total)
        if self.draws.final is not None:
            sampling.set_state(self.draws.final)
        values = []
        for key in self.replay.sources:
            if key == "seed":
                values.append(seed)
            elif key[0] == "base":  # type: ignore[index]
                values.append(base + key[1])  # type: ignore[index]
            else:
                values.append(call.binds[key[1]])  # type: ignore[index]
        return values

    def _settle(self, external: External) -> None:
        """A tensor was written since, or given other memory: the kernels follow."""
        node = settled(external.storage)
        base = buffers_of(node)[external.part].base
        if base is not external.buffer:
            if layout_of(node) != external.layout:
                raise Changed("how a tensor lies on its devices", "as before", "otherwise")
            self._replace(external, base)
        external.node = node

    def _replace(self, external: External, buffer: Buffer) -> None:
        known = external.buffer
        if external.shared or (buffer.size, buffer.dtype, buffer.device) != (
            known.size,
            known.dtype,
            known.device,
        ):
            raise Changed("the memory of a tensor", "its own", "another's")
        if known in self.replay.external:
            self.replay.replace_external(known, buffer)
        external.buffer = buffer

    def _begin(self, writes: list[Storage], call: Call) -> None:
        begin_writes(writes)
        for external in self.changed_external:
            if external.storage.version is not external.node:
                self._settle(external)
        for number in self._changed:
            owner = self.owners[number]
            version = settled(storage_in_memory(call.tensors[owner]))
            call.buffers[number] = buffers_of(version)[number - self.owners.index(owner)]

    def _end(self, writes: list[Storage]) -> None:
        end_writes(writes)
        for external in self.changed_external:
            external.node = external.storage.version


def capture_flags() -> tuple[Any, ...]:
    """What changes the kernels of the same function."""
    flags = [flag.value for flag in (*ContextVar.of_code, *ContextVar.of_graphs)]
    return (*flags, default_float(), default_int(), Device.DEFAULT)


def _form(args: Any, kwargs: Any) -> str:
    return f"{len(args)} arguments and {sorted(kwargs) or 'no keywords'}"
