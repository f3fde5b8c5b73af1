"""The node: one type for every form of the graph.

Nodes are immutable and hash-consed: the same four fields give the same object, so "equal" is `is` and a
shared subgraph is one object. The table of nodes holds them weakly.
"""

from __future__ import annotations

import itertools
import re
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any

from ..dtype import ConstType, DType, cast_value, const_bits, dtypes
from ..locks import table_lock
from .arithmetic import Arithmetic
from .facts import NodeFacts
from .ops import OPS, Ops

Key = tuple[Any, ...]

CONST, FUNCTION, SINK = Ops.CONST, Ops.FUNCTION, Ops.SINK  # as plain names: every new node asks for two


class _Ref(weakref.ref["UOp"]):
    """The table's weak reference; it knows its key, to leave the table when its node has died."""

    __slots__ = ("key",)
    key: Key


#: Key → node. A key names sources by their numbers, and the argument of a FUNCTION that keeps tensors for its
#: gradient (that is not `is_plain`) by its id: so a dead node's entry keeps nothing alive. Entries are added
#: without a lock, by `setdefault`, and taken out under it.
_table: dict[Key, _Ref] = {}
#: The references whose nodes have died and that are still in the table. What runs at a node's death is this
#: deque's `append` and nothing written in Python: there Ctrl-C would be lost, with a note on the screen.
_dead: deque[weakref.ref[UOp]] = deque()
_died = _dead.append
#: So many wait before they are taken out.
MOST_DEAD = 64
#: All that is alive, to be counted, and the dead that wait.
nodes: Sized = _table
_numbers = itertools.count()


def _drop_dead() -> None:
    """Take the nodes that died out of the table."""
    with table_lock:
        take, known = _dead.popleft, _table.get
        while _dead:
            ref = take()
            key = getattr(ref, "key", None)  # it has none if Ctrl-C came before it was given one
            if key is not None and known(key) is ref:  # else its successor's
                del _table[key]


class _Origin(threading.local):
    """What user call is being traced in this thread: an object that new nodes remember, or None."""

    current: Any = None


origin = _Origin()


class _Readers(threading.local):
    """Who is told, in this thread, what Python asks of the values that Variables are bound to.

    note   of each bound Variable whose value it asks for
    limit  of each index expression of which it asks whether it is 0 or more, and it is
    """

    note: Callable[..., None] | None = None
    limit: Callable[[UOp], None] | None = None


readers = _Readers()


class UOp(Arithmetic):
    """One operation. The same four fields give the same object.

    op     what is done, a row of the op table      src  the UOps it reads, in order
    dtype  the type of one element of its result    arg  the op's own constant, of the type its row declares

    `facts` caches what was worked out about the node (shape, bounds, origin, ...) by whoever first asked;
    ir/facts.py declares every one. `number` is its own, and was never another's.
    """

    __slots__ = ("__weakref__", "arg", "dtype", "facts", "number", "op", "src")
    op: Ops
    dtype: DType
    src: tuple[UOp, ...]
    arg: Any
    facts: NodeFacts[UOp]
    number: int

    def __new__(cls, op: Ops, dtype: DType = dtypes.void, src: tuple[UOp, ...] = (), arg: Any = None) -> UOp:
        if op is CONST:
            arg, bits = _constant(arg, dtype)
            key: Key = (op, dtype, bits, *[source.number for source in src]) if src else (op, dtype, bits)
        elif op is FUNCTION:
            key = (op, dtype, arg if arg.is_plain else id(arg), *[source.number for source in src])
        elif len(src) == 2:
            key = (op, dtype, arg, src[0].number, src[1].number)
        elif len(src) == 1:
            key = (op, dtype, arg, src[0].number)
        else:
            key = (op, dtype, arg, *[source.number for source in src]) if src else (op, dtype, arg)
        ref = _table.get(key)
        if ref is not None:
            found = ref()
            if found is not None:
                return found
        node = object.__new__(cls)
        node.op, node.dtype, node.src, node.arg = op, dtype, src, arg
        node.number = next(_numbers)
        current = origin.current
        node.facts = {} if current is None else {"origin": current}
        ref = _Ref(node, _died)
        ref.key = key
        if len(_dead) > MOST_DEAD:
            _drop_dead()
        return node if _table.setdefault(key, ref) is ref else _settle(node, ref)

    # *** structure

    def replace(self, **fields: Any) -> UOp:
        """A node with some of the four fields changed."""
        return UOp(
            fields.get("op", self.op),
            fields.get("dtype", self.dtype),
            fields.get("src", self.src),
            fields.get("arg", self.arg),
        )

    def toposort(self) -> list[UOp]:
        """Every node below (and this one, last), each after its sources, in the order of first visit.

        A SINK remembers what is below it: each pass over a kernel asks, and most change few kernels.
        """
        if self.op is not SINK:
            return toposort((self,))
        below = self.facts.get("below")
        if below is None:
            below = self.facts["below"] = tuple(toposort(self.src))
        return [*below, self]

    def __repr__(self) -> str:
        return _print(self)

    def __reduce__(self) -> Any:
        raise TypeError("a UOp is not pickled as it is: its identity is that of this process")

    def __copy__(self) -> UOp:
        return self

    def __deepcopy__(self, memo: Any) -> UOp:
        return self

    # *** building arithmetic; nothing is simplified here, except on the index dtype

    @staticmethod
    def const(dtype: DType, value: ConstType | tuple[ConstType, ...]) -> UOp:
        """A constant; of a vector type a value for each lane, or one for all."""
        return UOp(Ops.CONST, dtype, (), value)

    def sink(*nodes: UOp) -> UOp:
        """The end of several: `UOp.sink(a, b)`, or `a.sink(b)`."""
        return UOp(Ops.SINK, dtypes.void, nodes)

    def const_like(self, value: ConstType) -> UOp:
        """A constant of this node's dtype, in every lane."""
        if self.dtype.count > 1:
            return UOp(Ops.CONST, self.dtype, (), (value,) * self.dtype.count)
        return UOp(Ops.CONST, self.dtype.base if self.op is Ops.DEFINE_GLOBAL else self.dtype, (), value)

    def alu(self, op: Ops, *others: UOp) -> UOp:
        """`op` of this node and others; on the index dtype the canonical form of it."""
        sources = (self, *others)
        if sources[-1] is NotImplemented:
            return NotImplemented  # type: ignore[no-any-return]
        if sources[-1].dtype is dtypes.index:
            canonical = index_constructors.get(op)
            if canonical is not None:
                result: UOp = canonical(*sources)
                return result
        dtype = OPS[op].dtype
        if dtype is None:
            raise TypeError(f"{op} needs its dtype stated")
        made = sources[dtype].dtype if isinstance(dtype, int) else dtype.vec(self.dtype.count)
        return UOp(op, made, sources)

    def cast(self, dtype: DType) -> UOp:
        if dtype.count == 1 and self.dtype.count > 1:
            dtype = dtype.vec(self.dtype.count)
        return self if self.dtype is dtype else UOp(Ops.CAST, dtype, (self,))

    def bitcast(self, dtype: DType) -> UOp:
        if dtype.count == 1 and self.dtype.count > 1:
            dtype = dtype.vec(self.dtype.count)
        return self if self.dtype is dtype else UOp(Ops.BITCAST, dtype, (self,))

    def _coerce(self, other: UOp | ConstType) -> UOp:
        """A number as a node; NotImplemented for a tensor, which has a node of its own and answers itself."""
        if isinstance(other, UOp):
            return other
        if not isinstance(other, (int, float)) and hasattr(type(other), "uop"):
            return NotImplemented
        if self.dtype is dtypes.index and isinstance(other, float) and not other.is_integer():
            raise TypeError(
                f"sizes and Variables are whole numbers, {other!r} is not; "
                "Tensor(variable) computes with floats"
            )
        return self.const_like(other)

    def where(self, yes: UOp | ConstType, no: UOp | ConstType) -> UOp:
        """Elementwise `yes if self else no`; one of the two must be a UOp."""
        if not isinstance(yes, UOp):
            if not isinstance(no, UOp):
                raise TypeError("where needs a UOp for at least one of its two values")
            yes = no.const_like(yes)
        return self.alu(Ops.WHERE, yes, yes._coerce(no))

    def bind(self, value: int) -> UOp:
        """This Variable with its value for now; a value outside its bounds raises ValueError."""
        if self.op is not Ops.DEFINE_VAR:
            raise TypeError(f"only a Variable is bound, not {self.op}")
        name, low, high = self.arg
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"Variable {name} takes an int, not {value!r}")
        if not low <= value <= high:
            raise ValueError(f"Variable {name} must be between {low} and {high}, not {value}")
        return UOp(Ops.BIND, self.dtype, (self, UOp.const(self.dtype, value)))

    def unbind(self) -> tuple[UOp, int]:
        """The Variable and the value of a bound one."""
        if self.op is not Ops.BIND:
            raise TypeError(f"{self.op} is not a bound Variable")
        if readers.note is not None:
            readers.note(self)
        return self.src[0], self.src[1].arg

    @property
    def val(self) -> int:
        """The value of a bound Variable."""
        return self.unbind()[1]


#: (number, its type, dtype) → it as the dtype holds it, and its bits: programs write few numbers, but often.
#: The type counts since equal numbers may be held apart: an integer wraps, a float goes to the nearest end.
_constants: dict[tuple[Any, type, DType], tuple[Any, Any]] = {}
MAX_CONSTANTS = 1024


def _constant(value: Any, dtype: DType) -> tuple[Any, Any]:
    """A constant as its dtype holds it, one value per lane, and the bits that tell it from others."""
    if dtype.count == 1:
        if not value:  # two zeros are equal
            value = cast_value(value, dtype)
            return value, const_bits(value, dtype)
        known = _constants.get((value, value.__class__, dtype))
        if known is None:
            held = cast_value(value, dtype)
            known = held, const_bits(held, dtype)
            if len(_constants) >= MAX_CONSTANTS:
                _constants.clear()
            _constants[value, value.__class__, dtype] = known
        return known
    if not isinstance(value, tuple):
        value = (value,) * dtype.count
    if all(each is value[0] for each in value):  # the same in every lane: converted once
        first = cast_value(value[0], dtype)
        return (first,) * len(value), (const_bits(first, dtype),) * len(value)
    lanes = tuple(cast_value(each, dtype) for each in value)
    return lanes, tuple(const_bits(each, dtype) for each in lanes)


def _settle(node: UOp, ref: _Ref) -> UOp:
    """The node for a key whose place in the table is taken: by another thread's node, or by a dead one's."""
    with table_lock:
        held = _table.setdefault(ref.key, ref)
        if held is ref:
            return node
        other = held()
        if other is not None:
            return other
        _table[ref.key] = ref  # a dead one's place, which nobody else takes without the lock
        return node


def keep_origin(made: UOp, node: UOp) -> None:
    """What a node has been made into comes from the user's call that the node came from, if from no other."""
    if "origin" in node.facts:
        made.facts.setdefault("origin", node.facts["origin"])
    if "site" in node.facts:
        made.facts.setdefault("site", node.facts["site"])


def new_node(op: Ops, dtype: DType, src: tuple[UOp], arg: Any = None) -> UOp:
    """The same as `UOp(...)` for what cannot exist yet: what is first made of a new node. It is not looked
    for, which saves a third of the time.
    """
    node = object.__new__(UOp)
    node.op, node.dtype, node.src, node.arg = op, dtype, src, arg
    node.number = next(_numbers)
    current = origin.current
    node.facts = {} if current is None else {"origin": current}
    ref = _Ref(node, _died)
    ref.key = key = (op, dtype, arg, src[0].number)
    if len(_dead) > MOST_DEAD:
        _drop_dead()
    return node if _table.setdefault(key, ref) is ref else _settle(node, ref)


def one_of_its_own(op: Ops, arg: Any, dtype: DType = dtypes.void, src: tuple[UOp, ...] = ()) -> UOp:
    """A node that nobody makes again, as its argument is a new number or its source such a node: it is in no
    table."""
    node = _new(UOp)
    node.op, node.dtype, node.src, node.arg = op, dtype, src, arg
    node.number = next(_numbers)
    current = origin.current
    node.facts = {} if current is None else {"origin": current}
    return node


def unintern(node: UOp) -> None:
    """Whoever makes an equal node from now on gets another one."""
    for ref in weakref.getweakrefs(node):
        if type(ref) is _Ref:
            with table_lock:
                if _table.get(ref.key) is ref:
                    del _table[ref.key]


#: A node of a list: op, dtype, arg, the places of its sources in the list, its value's shape and device.
Row = tuple[Ops, DType, Any, tuple[int, ...], Any, Any]


def make_all(rows: Iterable[Row], made: list[UOp]) -> None:
    """Add to a list of nodes one for each row, as `UOp(...)` makes it: written out here, since that takes two
    thirds of the time. No CONST is among them.
    """
    add, known, number = made.append, _table.get, _numbers.__next__
    current = origin.current
    for op, dtype, arg, places, shape, device in rows:
        if len(places) == 2:
            first, second = places
            one, two = made[first], made[second]
            src: tuple[UOp, ...] = (one, two)
            key: Key = (op, dtype, arg, one.number, two.number)
        elif len(places) == 1:
            one = made[places[0]]
            src, key = (one,), (op, dtype, arg, one.number)
        else:
            src = tuple([made[place] for place in places])
            key = (op, dtype, arg, *[source.number for source in src])
        ref = known(key)
        if ref is not None:
            found = ref()
            if found is not None:
                if "shape" not in found.facts:
                    found.facts["shape"], found.facts["device"] = shape, device
                add(found)
                continue
        node = _new(UOp)
        node.op, node.dtype, node.src, node.arg, node.number = op, dtype, src, arg, number()
        if current is None:
            node.facts = {"shape": shape, "device": device}
        else:
            node.facts = {"origin": current, "shape": shape, "device": device}
        ref = _Ref(node, _died)
        ref.key = key
        add(node if _table.setdefault(key, ref) is ref else _settle(node, ref))
    if len(_dead) > MOST_DEAD:
        _drop_dead()


_new = object.__new__


def toposort(
    roots: Iterable[UOp],
    below: Callable[[UOp], Sequence[UOp]] | None = None,
    done: set[UOp] | None = None,
) -> list[UOp]:
    """Every node below the roots, each after its sources; no recursion.

    below  what counts as a node's sources; None: all of them
    done   nodes that were walked before: they and what is below them are left out; the walk adds to it
    """
    entered: set[UOp] = set()  # whose sources were put on the stack
    stack: list[UOp] = list(roots)[::-1]
    if below is None and done is None:  # as every pass walks: in three fifths of the time
        found: dict[UOp, None] = {}
        while stack:
            node = stack.pop()
            if node in found:
                continue
            src = node.src
            if not src or node in entered:
                found[node] = None
            else:
                entered.add(node)
                stack.append(node)
                stack += src[::-1]
        return list(found)
    done = set() if done is None else done
    order: list[UOp] = []
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        if node not in entered:
            waiting = [s for s in (node.src if below is None else below(node)) if s not in done]
            if waiting:
                entered.add(node)
                waiting.reverse()
                stack += waiting
                continue
        stack.pop()
        done.add(node)
        order.append(node)
    return order


#: What can be part of the text of a kernel in every language.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
#: Arguments that the scheduler makes.
_OF_KERNELS = re.compile(r"(const|offset)\d+", re.ASCII)


def Variable(name: str, low: int, high: int) -> UOp:
    """A symbolic integer from `low` to `high`, both included: a size that is an argument of the kernel.

    The name is part of kernels' text: at most 64 ASCII letters, digits and underscores, a letter first.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        shown = repr(name) if len(repr(name)) <= 100 else f"{repr(name)[:50]}... ({len(name):,} characters)"
        raise ValueError(
            "a Variable's name must be at most 64 ASCII letters, digits and underscores, with a letter "
            f"first, not {shown}"
        )
    if _OF_KERNELS.fullmatch(name):
        raise ValueError(
            f"Variable {name} needs another name: kernels call their own arguments const0, offset0, ..."
        )
    if not isinstance(low, int) or not isinstance(high, int) or low > high:
        raise ValueError(f"Variable {name} needs whole bounds with low <= high, not {low!r} and {high!r}")
    return UOp(Ops.DEFINE_VAR, dtypes.index, (), (name, low, high))


def live_nodes() -> int:
    """How many nodes exist now."""
    _drop_dead()
    return len(_table)


# *** filled by other modules of this folder, so that imports go one way

#: The canonical constructors of index arithmetic (ir/index/).
index_constructors: dict[Ops, Any] = {}


def _unprinted(node: UOp) -> str:
    return f"UOp({node.op}, {node.dtype})"


_print = _unprinted


def set_printer(printer: Any) -> None:
    """Install the function that `repr` of a node calls (text.py)."""
    global _print
    _print = printer
