"""Patterns over nodes, and tables of rules made of them.

A rule is `(before, after)` or `(before, after, when)`. `before` is a pattern, written with plain operators
over `UPat.var` and `UPat.cvar`. `after` is an expression of the same variables, a constant, or a function of
the matched nodes that returns a node, or None for "not here". `when` is a condition on matched nodes. In a
renderer's table `after` is text: a template that `ctx.filled` fills in ("" is just that), or a function.
Functions name what they want: a parameter is the node captured under that name, `node` the whole one, `ctx`
what the caller of the rewrite passed.

The matcher knows which operations commute, so no rule is written twice. A table compiles to Python functions,
made per operation when it is first met: a rule that cannot match a node costs nothing there.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Self

from ..dtype import ConstType, DType, cast_value, const_bits, dtypes
from . import arithmetic
from .arithmetic import Arithmetic
from .ops import COMMUTATIVE, OPS, Ops
from .uop import UOp

#: Stands for "any arg" in a pattern.
ANY: Any = type("Any", (), {"__repr__": lambda self: "ANY"})()
#: A pattern with more ways to match than this is refused: write it as several rules.
MAX_VARIANTS = 128


def is_plain_const(node: UOp) -> bool:
    """Whether a CONST has its value everywhere: one seen through a masked VIEW is 0 outside the mask."""
    if not node.src or node.src[0].op is not Ops.VIEW:
        return True
    return all(view.mask is None for view in node.src[0].arg.views)


class UPat(Arithmetic):
    """A pattern: what a node must be like to match.

    op     an op, or a tuple of them; None = any
    dtype  a dtype, or a tuple or set of them, compared with the type of one lane; None = any
    src    a tuple of patterns, one for each source, in order; a last `...` allows more. A list: in any order.
           None = any sources. Where the op commutes, a pair is tried both ways round.
    arg    equal to this; ANY = any
    name   the matched node is captured under this name; the same name twice must be the same node
    """

    __slots__ = ("arg", "choices", "dtypes", "literal", "location", "more", "name", "ops", "plain", "src")

    def __init__(
        self,
        op: Ops | tuple[Ops, ...] | None = None,
        dtype: DType | Iterable[DType] | None = None,
        src: Sequence[Any] | None = None,
        arg: Any = ANY,
        name: str | None = None,
    ) -> None:
        self.ops = (op,) if isinstance(op, Ops) else None if op is None else tuple(op)
        self.dtypes = None if dtype is None else frozenset((dtype,) if isinstance(dtype, DType) else dtype)
        self.more = src is not None and len(src) > 0 and src[-1] is ...
        sources = src[:-1] if src is not None and self.more else src
        self.src: tuple[UPat, ...] | list[UPat] | None = None
        if sources is not None:
            self.src = list(sources) if isinstance(sources, list) else tuple(sources)
        self.arg, self.name = arg, name
        self.literal: ConstType | None = None
        self.plain = False
        self.choices: tuple[UPat, ...] = ()
        self.location = _caller()

    # *** the alphabet

    @staticmethod
    def var(name: str | None = None, dtype: DType | Iterable[DType] | None = None) -> UPat:
        """Any node."""
        return UPat(None, dtype, name=name)

    @staticmethod
    def cvar(name: str | None = None, dtype: DType | Iterable[DType] | None = None) -> UPat:
        """A constant, the same in every lane; `c.arg` is a number, or a tuple of equal ones in a vector."""
        pattern = UPat(Ops.CONST, dtype, name=name)
        pattern.plain = True
        return pattern

    @staticmethod
    def const(value: ConstType, dtype: DType | Iterable[DType] | None = None) -> UPat:
        """This constant, in every lane. 0 is not -0.0; -1 is all ones in unsigned types, True in bool."""
        pattern = UPat.cvar(None, dtype)
        pattern.literal = value
        return pattern

    @staticmethod
    def either(*choices: UPat, name: str | None = None) -> UPat:
        """What matches one of the patterns, the first that does."""
        pattern = UPat(name=name)
        pattern.choices = choices
        return pattern

    def named(self, name: str) -> UPat:
        """The same pattern, capturing its node under this name."""
        pattern = UPat.__new__(type(self))
        for slot in UPat.__slots__:
            setattr(pattern, slot, getattr(self, slot))
        pattern.name = name
        return pattern

    # *** operators build patterns of operations

    def alu(self, op: Ops, *others: Any) -> Self:
        return type(self)(op, src=(self, *map(self._coerce, others)))

    def _coerce(self, other: Any) -> Any:
        return other if isinstance(other, UPat) else UPat.const(other)

    def cast(self, dtype: DType | Iterable[DType] | None = None, name: str | None = None) -> UPat:
        return type(self)(Ops.CAST, dtype, (self,), name=name)

    def bitcast(self, dtype: DType | Iterable[DType] | None = None, name: str | None = None) -> UPat:
        return type(self)(Ops.BITCAST, dtype, (self,), name=name)

    def where(self, yes: Any, no: Any) -> UPat:
        return self.alu(Ops.WHERE, yes, no)

    # *** use

    def matches(self, node: UOp) -> dict[str, UOp] | None:
        """The captured nodes by name, if the node matches; else None."""
        names = sorted(self.names())
        found: Any = _compile([Rule(self, lambda **captured: captured, None, None)], names)[0](node, None)
        return None if found is None else {name: at for name, at in found.items() if at is not None}

    def names(self) -> set[str]:
        """The names that the pattern captures."""
        below = itertools.chain(self.src or (), self.choices)
        return {n for p in below for n in p.names()} | ({self.name} if self.name else set())

    def __repr__(self) -> str:
        return _pattern_text(self)


def _caller() -> tuple[str, int]:
    """The file and line that is making a pattern, outside of this module and of the operators."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename in (__file__, arithmetic.__file__) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _pattern_text(pattern: UPat) -> str:
    if pattern.choices:
        return "either(" + ", ".join(map(repr, pattern.choices)) + ")"
    if pattern.literal is not None:
        return repr(pattern.literal)
    if pattern.src is None:
        if pattern.name:
            return pattern.name
        return "|".join(op.name for op in pattern.ops) if pattern.ops else "_"
    inside = [repr(p) for p in pattern.src] + (["..."] if pattern.more else [])
    if pattern.ops and len(pattern.ops) == 1:
        symbol = OPS[pattern.ops[0]].symbol
        if symbol and len(inside) == 2:
            return f"({inside[0]} {symbol} {inside[1]})"
    name = "|".join(op.name.lower() for op in pattern.ops) if pattern.ops else "_"
    return f"{name}({', '.join(inside)})"


# *** rules

#: What a rule makes of a node, None where it does not apply; of a renderer's row that is text.
Matched = Callable[[UOp, Any], Any]


class Rule:
    """One row: what a node is like before, what it becomes, and when.

    on        the types of number for which the rule is true; None = for all
    location  file and line where the row is written
    """

    __slots__ = ("after", "before", "location", "matched", "on", "when")

    def __init__(
        self, before: UPat, after: Any, when: Callable[..., Any] | None, on: frozenset[DType] | None
    ) -> None:
        self.before, self.after, self.when, self.on = before, after, when, on
        self.location = before.location
        self.matched: Matched | None = None

    def __call__(self, node: UOp, ctx: Any = None) -> UOp | None:
        """What the node becomes, or None where the rule does not apply."""
        if not _may_start_with(self.before, node.op):
            return None
        if self.matched is None:
            _compile([self])
        if self.matched is None:
            raise RuntimeError(f"{self} did not compile")
        after: UOp | None = self.matched(node, ctx)
        return None if after is node else after

    def file_and_line(self) -> str:
        """`file:line` of the rule."""
        return f"{self.location[0]}:{self.location[1]}"

    def __repr__(self) -> str:
        after = (
            self.after.__name__ if callable(self.after) and not isinstance(self.after, UPat) else self.after
        )
        return f"{self.location[0].rsplit('/', 1)[-1]}:{self.location[1]} {self.before!r} -> {after!s}"


class PatternMatcher:
    """A table of rules; tables add with `+`. Of the rules that match a node, the first one decides.

    `on` says for which types of number the rules are true: it is checked against the type of the node's last
    source (of the node itself, where it has none), so that a rule for integers never meets a float.
    """

    def __init__(self, rules: Iterable[tuple[Any, ...] | Rule], on: Iterable[DType] | None = None) -> None:
        kinds = None if on is None else frozenset(on)
        self.rules: tuple[Rule, ...] = tuple(r if isinstance(r, Rule) else _rule(r, kinds) for r in rules)
        self.table: dict[Ops, tuple[tuple[Matched, Rule], ...]] = {}

    def __add__(self, other: PatternMatcher) -> PatternMatcher:
        return PatternMatcher(self.rules + other.rules)

    def ops(self) -> frozenset[Ops]:
        """The ops of which a rule may match a node."""
        return frozenset(op for op in Ops if any(_may_start_with(rule.before, op) for rule in self.rules))

    def rules_for(self, op: Ops) -> tuple[tuple[Matched, Rule], ...]:
        """The compiled rules that a node of this op may match."""
        found = self.table.get(op)
        if found is None:
            fitting = [rule for rule in self.rules if _may_start_with(rule.before, op)]
            for rule in fitting:
                rule.matched = rule.matched or _direct(rule)
            waiting = [rule for rule in fitting if rule.matched is None]
            if waiting:
                _compile(waiting)
            found = tuple((rule.matched, rule) for rule in fitting if rule.matched is not None)
            self.table[op] = found
        return found

    def rewrite(self, node: UOp, ctx: Any = None) -> UOp | None:
        """What the first matching rule makes of this node; None if none matches. Sources are not entered."""
        for matched, _ in self.rules_for(node.op):
            after: UOp | None = matched(node, ctx)
            if after is not None and after is not node:
                return after
        return None

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)


def _rule(row: tuple[Any, ...], on: frozenset[DType] | None) -> Rule:
    before, after, *when = row
    if not isinstance(before, UPat) or len(when) > 1:
        raise TypeError(f"a rule is (pattern, after) or (pattern, after, when), not {row!r}")
    rule = Rule(before, after, when[0] if when else None, on)
    known = before.names() | {"ctx", "node"}
    requested: set[str] = set(_parameters(rule.when)) if rule.when else set()
    if isinstance(after, UPat):
        requested |= after.names()
    elif callable(after):
        requested |= set(_parameters(after))
    if requested - known:
        raise TypeError(
            f"{rule}: {', '.join(sorted(requested - known))} is not captured by the pattern; "
            f"captured: {', '.join(sorted(before.names())) or 'nothing'}"
        )
    return rule


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters that have no default."""
    if isinstance(function, FunctionType):
        code = function.__code__
        names = code.co_varnames[: code.co_argcount - len(function.__defaults__ or ())]
        return names + code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    import inspect

    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.default is p.empty)


def _may_start_with(pattern: UPat, op: Ops) -> bool:
    if pattern.choices:
        return any(_may_start_with(choice, op) for choice in pattern.choices)
    return pattern.ops is None or op in pattern.ops


# *** from a pattern to a Python function


def _direct(rule: Rule) -> Matched | None:
    """The rule's own functions, where it asks for a node's op and types alone: no source is written."""
    before, on, kinds = rule.before, rule.on, rule.before.dtypes
    if before.ops is None or before.src is not None or before.choices or before.plain:
        return None
    if before.arg is not ANY or isinstance(rule.after, UPat):
        return None
    name = before.name or "node"
    after, when = _called(rule.after, name), _called(rule.when, name)
    if after is None or (rule.when is not None and when is None):
        return None
    if on is None and kinds is None and when is None:
        return after

    def matched(node: UOp, ctx: Any) -> Any:
        if on is not None and (node.src[-1] if node.src else node).dtype.scalar_type not in on:
            return None
        if kinds is not None and node.dtype.scalar_type not in kinds:
            return None
        return after(node, ctx) if when is None or when(node, ctx) else None

    return matched


def _called(function: Any, name: str) -> Callable[[UOp, Any], Any] | None:
    """A rule's text, or its function of the node under this name and `ctx`, called with both."""
    if isinstance(function, str):
        return (lambda node, ctx: ctx.filled(function, node)) if function else (lambda node, ctx: "")
    takes = _parameters(function) if isinstance(function, FunctionType) else None
    if takes == ("ctx", name):
        return lambda node, ctx: function(ctx, node)
    return (lambda node, ctx: function(node)) if takes == (name,) else None


def _is_literal(value: ConstType) -> Callable[[UOp], bool]:
    """A test whether a CONST is `value` in every lane."""

    @functools.cache
    def wanted(dtype: DType) -> Any:
        held = cast_value(value, dtype)
        exact = (
            held == value or (value == -1 and not dtypes.is_float(dtype)) or (value != value and held != held)
        )
        return const_bits(held, dtype) if exact else ANY

    def is_literal(node: UOp) -> bool:
        scalar = node.dtype.scalar_type
        want, arg = wanted(scalar), node.arg
        if want is ANY:
            return False
        if type(arg) is tuple:
            return all(const_bits(lane, scalar) == want for lane in arg) and is_plain_const(node)
        return bool(const_bits(arg, scalar) == want) and is_plain_const(node)

    return is_literal


def _is_uniform(node: UOp) -> bool:
    """Whether a CONST is plain and the same in every lane."""
    arg = node.arg
    if type(arg) is tuple:
        bits = [const_bits(lane, node.dtype) for lane in arg]
        return all(lane == bits[0] for lane in bits) and is_plain_const(node)
    return not node.src or is_plain_const(node)


#: A pattern with one order chosen for its sources, all the way down, and the names that capture its node.
Variant = tuple[UPat, tuple[Any, ...] | None, tuple[str, ...]]


def _variants(pattern: UPat) -> list[Variant]:
    """Every way to lay the pattern's sources over a node's."""
    own = () if pattern.name is None else (pattern.name,)
    if pattern.choices:
        return [
            (choice, below, (*own, *names))
            for chosen in pattern.choices
            for choice, below, names in _variants(chosen)
        ]
    if pattern.src is None:
        return [(pattern, None, own)]
    if isinstance(pattern.src, list):
        orders = list(itertools.permutations(pattern.src))
    else:
        orders = [pattern.src]
        if len(pattern.src) == 2 and pattern.ops is not None and any(op in COMMUTATIVE for op in pattern.ops):
            orders.append((pattern.src[1], pattern.src[0]))
    found: list[Variant] = [
        (pattern, below, own) for order in orders for below in itertools.product(*map(_variants, order))
    ]
    if len(found) > MAX_VARIANTS:
        raise ValueError(f"{pattern!r} can match in {len(found)} ways; split it into several rules")
    return found


@dataclass(eq=False)
class _Writer:
    """Writes the Python source of rules; `constants` are the objects that the source refers to."""

    constants: dict[str, Any]
    names: dict[Any, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def constant(self, value: Any, key: Any = None) -> str:
        """The name of an object in the source."""
        key = (type(value), id(value)) if key is None else key
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = f"k{len(self.constants)}"
            self.constants[name] = value
        return name

    def rule(self, name: str, rule: Rule, captures: list[str] | None) -> None:
        self.lines.append(f"def {name}(n, ctx):")
        emitted: set[tuple[str, ...]] = set()
        for variant in _variants(rule.before):
            body = tuple(self._variant(variant, rule, captures))
            if body not in emitted:  # the two orders of `x + x` are one
                emitted.add(body)
                self.lines.extend(body)
        self.lines.append(" return None")

    def _variant(self, variant: Variant, rule: Rule, captures: list[str] | None) -> Iterator[str]:
        """Nested ifs, level by level, so that cheap tests of the first level come before deep ones."""
        depth = 1
        captured: dict[str, str] = {}
        queue: list[tuple[str, Variant]] = [("n", variant)]
        counter = itertools.count()
        for place, (pattern, below, names) in queue:  # the queue grows while it is walked
            tests = self._tests(place, pattern, below, rule.on if place == "n" else None)
            for name in names:
                if name in captured:
                    tests.append(f"{place} is {captured[name]}")
                else:
                    captured[name] = place
            if tests:
                yield f"{' ' * depth}if {' and '.join(tests)}:"
                depth += 1
            if below:
                places = [f"a{next(counter)}" for _ in below]
                rest = ", *_" if pattern.more else ""
                yield f"{' ' * depth}{', '.join(places)}{rest or ','} = {place}.src"
                queue.extend(zip(places, below, strict=True))
        if rule.when is not None:
            yield f"{' ' * depth}if {self._call(rule.when, captured)}:"
            depth += 1
        yield f"{' ' * depth}result = {self._after(rule, captured, captures)}"
        yield f"{' ' * depth}if result is not None and result is not n: return result"

    def _tests(
        self, place: str, pattern: UPat, below: tuple[Any, ...] | None, on: frozenset[DType] | None
    ) -> list[str]:
        tests = []
        if pattern.ops is not None:
            if len(pattern.ops) == 1:
                tests.append(f"{place}.op is {self.constant(pattern.ops[0])}")
            else:
                tests.append(f"{place}.op in {self.constant(frozenset(pattern.ops), pattern.ops)}")
        if below is not None:
            comparison = ">=" if pattern.more else "=="
            tests.append(f"len({place}.src) {comparison} {len(below)}")
        if pattern.dtypes is not None:
            tests.append(f"{place}.dtype.scalar_type in {self.constant(pattern.dtypes, pattern.dtypes)}")
        if on is not None:
            tests.append(
                f"({place}.src[-1] if {place}.src else {place}).dtype.scalar_type in {self.constant(on, on)}"
            )
        if pattern.arg is not ANY:
            tests.append(f"{place}.arg == {self.constant(pattern.arg)}")
        if pattern.literal is not None:
            key = ("literal", type(pattern.literal), const_bits(pattern.literal, dtypes.float64))
            tests.append(f"{self.constant(_is_literal(pattern.literal), key)}({place})")
        elif pattern.plain:
            tests.append(f"uniform({place})")
        return tests

    def _call(self, function: Callable[..., Any], captured: dict[str, str]) -> str:
        # What the choice that matched does not capture is None.
        known = {"node": "n", **captured, "ctx": "ctx"}
        arguments = [f"{name}={known.get(name)}" for name in _parameters(function)]
        return f"{self.constant(function)}({', '.join(arguments)})"

    def _after(self, rule: Rule, captured: dict[str, str], captures: list[str] | None) -> str:
        after = rule.after
        if captures is not None:
            return f"{self.constant(after)}({', '.join(f'{n}={captured.get(n)}' for n in captures)})"
        if isinstance(after, UPat):
            return self._expression(after, captured, "n")
        if isinstance(after, UOp):
            return self.constant(after)
        if callable(after):
            return self._call(after, captured)
        if isinstance(after, str):
            return f"ctx.filled({self.constant(after, ('text', after))}, n)" if after else "''"
        return f"{self.constant(constant_like)}(n, {self.constant(after)})"

    def _expression(self, pattern: UPat, captured: dict[str, str], like: str) -> str:
        """The source that builds the pattern's node; a number takes the type of `like`."""
        if pattern.name is not None:
            return captured[pattern.name]
        if pattern.literal is not None:
            return f"{self.constant(constant_like)}({like}, {self.constant(pattern.literal)})"
        if pattern.ops is None or len(pattern.ops) != 1 or not isinstance(pattern.src, tuple):
            raise TypeError(f"{pattern!r} says no node to build: give its op and its sources")
        op = pattern.ops[0]
        nodes = [p for p in pattern.src if p.literal is None]
        beside = self._expression(nodes[-1], captured, like) if nodes else like
        sources = [self._expression(p, captured, beside) for p in pattern.src]
        if OPS[op].dtype is not None and OPS[op].evaluate is not None:
            return f"{sources[0]}.alu({', '.join([self.constant(op), *sources[1:]])})"
        arg = "None" if pattern.arg is ANY else self.constant(pattern.arg)
        if pattern.dtypes is None:
            dtype = "n.dtype"
        else:
            (only,) = pattern.dtypes
            dtype = f"{self.constant(only)}.vec({sources[0]}.dtype.count)"
        return f"{self.constant(UOp)}({self.constant(op)}, {dtype}, ({', '.join(sources)},), {arg})"


def constant_like(node: UOp, value: ConstType) -> UOp:
    """`value` in the node's dtype; where constants have a place (a VIEW, a DEVICE), at that of the node's."""
    src: tuple[UOp, ...] = ()
    if node.op is Ops.CONST:
        src = node.src
    else:
        for source in node.src:
            if source.op is Ops.CONST and source.src and is_plain_const(source):
                src = source.src
                break
    count = node.dtype.count
    return UOp(Ops.CONST, node.dtype, src, value if count == 1 else (value,) * count)


def _compile(rules: Sequence[Rule], captures: list[str] | None = None) -> list[Matched]:
    """Compile rules to functions `(node, ctx) -> UOp | None`, all in one go."""
    writer = _Writer({"CONST": Ops.CONST, "uniform": _is_uniform})
    for number, rule in enumerate(rules):
        writer.rule(f"rule{number}", rule, captures)
    # named after the file that has the rules: whoever looks at frames takes them for a part of it
    code = compile("\n".join(writer.lines), f"{rules[0].file_and_line()} (rules)", "exec")
    exec(code, writer.constants)
    for number, rule in enumerate(rules):
        rule.matched = writer.constants[f"rule{number}"]
    return [writer.constants[f"rule{number}"] for number in range(len(rules))]
