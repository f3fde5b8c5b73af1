"""What the passes of planning make, as text: nodes and kernels have the numbers of their order.

0  BUFFER float (4, 8)
1  REDUCE_AXIS float (4, 1), (Ops.ADD, (1,)), of 0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..ir.expression import arg_text
from ..ir.ops import Ops
from ..ir.text import uop_text
from ..ir.uop import UOp
from ..shape.rules import shape_of
from ..shape.sizes import shape_text
from .graph.requested import Request, is_materialized
from .graph.versions import effective
from .kernels.template import Binding, BoundSize, Leaf, Memory, Output, Part, Template
from .kernels.writes import Writes
from .place.placement import Placed
from .rewrite.plain import PlainGraph

Form = Request | PlainGraph | Placed | Writes | Template
#: They are written where they are read.
_BESIDE = frozenset((Ops.CONST, Ops.DEVICE, Ops.UNIQUE))


def form_text(form: Form) -> str:
    """What a pass of planning made. Of kernels only which memory they read and write."""
    if isinstance(form, Request):
        return _graph(form.order, form.roots)
    if isinstance(form, PlainGraph):
        return _graph(form.order, [*form.results, *form.stored])
    if isinstance(form, Placed):
        return "\n".join(_placed(form))
    return "\n".join(_writes(form) if isinstance(form, Writes) else _template(form))


def line_keys(form: Form) -> tuple[str, ...]:
    """What each line of a graph's text says without the numbers of nodes, which change with every node
    before: the node, and what its sources are. Of other forms nothing.
    """
    if isinstance(form, Request | PlainGraph):
        roots = form.roots if isinstance(form, Request) else [*form.results, *form.stored]
        shown = {node: _own(node) for node in form.order if node.op not in _BESIDE}
        below = {node: "; ".join([shown.get(effective(s), _beside(s)) for s in node.src]) for node in shown}
        keys = [f"{text} <- {'' if is_materialized(node) else below[node]}" for node, text in shown.items()]
        return (*keys, "; ".join([shown.get(root, "?") for root in roots]))
    return ()


def kind_of(form: Form) -> str:
    """Forms of one kind have texts that compare line by line."""
    return "graph listing" if isinstance(form, Request | PlainGraph) else type(form).__name__


def asts_text(template: Template) -> str:
    """The different kernels of a template, with the numbers that they have in its text."""
    asts = dict.fromkeys(kernel.ast for kernel in template.kernels)
    return "\n".join(f"AST {number}\n{uop_text(ast)}" for number, ast in enumerate(asts))


# *** graphs


def _graph(order: Iterable[UOp], results: Iterable[UOp]) -> str:
    number: dict[UOp, str] = {}
    lines = []
    for node in order:
        if node.op in _BESIDE:
            continue
        number[node] = str(len(number))
        lines.append(f"{number[node]:>4}  {_node(node, number)}")
    wanted = ", ".join(number.get(node, "?") for node in results)
    return "\n".join([*lines, f"wanted: {wanted}"])


def _own(node: UOp) -> str:
    """What a line says of the node alone."""
    shown = f"{node.op.name} {node.dtype!r} {shape_text(shape_of(node))}".replace("dtypes.", "")
    if is_materialized(node):
        return shown
    if node.arg is not None and node.op not in (Ops.RESHAPE, Ops.EXPAND):  # their shape is
        shown += f", {arg_text(node)}"
    return shown


def _node(node: UOp, number: dict[UOp, str]) -> str:
    shown = _own(node)
    if is_materialized(node):
        return shown
    sources = [number.get(source) or number.get(effective(source)) or _beside(source) for source in node.src]
    return f"{shown}, of {', '.join(sources)}" if sources else shown


def _beside(node: UOp) -> str:
    return str(node.arg)


# *** kernels


def _numbers(graph: PlainGraph) -> dict[UOp, str]:
    nodes = [node for node in graph.order if node.op not in _BESIDE]
    return {node: f"{number} {node.op.name}" for number, node in enumerate(nodes)}


def _placed(placed: Placed) -> Iterator[str]:
    names = _numbers(placed.graph)
    for group in placed.groups:
        yield f"{group.kind} {group.id} over {group.shape}"
        for node in group.stores:
            yield f"    stores {names[node]}: {placed.reasons.get(node, 'it is computed there anyway')}"
        rows = {} if group.rows is None else group.rows.really_staged(placed.home)
        for node, nbytes in rows.items():
            yield f"    keeps a row of {names[node]}: {nbytes} bytes"


def _writes(writes: Writes) -> Iterator[str]:
    names = _numbers(writes.graph)
    for kernel in writes.order:
        group = writes.group(kernel)
        before = ", ".join(map(str, sorted(writes.before[kernel])))
        kind = "copy in memory" if group is None else group.kind
        yield f"{kind} {kernel}" + (f", after {before}" if before else "")
        for store in writes.targets[kernel]:
            where = "memory of its own" if store.assign is None else f"that of {names[store.assign.src[0]]}"
            yield f"    {names[store.node]} into {where}"


def _template(template: Template) -> Iterator[str]:
    asts: dict[UOp, int] = {}
    names: dict[Output, str] = {}
    for number, kernel in enumerate(template.kernels):
        names.update({output: f"output {n} of kernel {number}" for n, output in enumerate(kernel.outputs)})
        ast = asts.setdefault(kernel.ast, len(asts))
        after = sorted({template.maker_of[output] for output in kernel.after})
        yield f"kernel {number}, AST {ast}" + (f", after {after}" if after else "")
        for output in kernel.outputs:
            into = "memory of its own" if output.into is None else _memory(output.into, names)
            inner = template.inner.get(output)
            known = "" if inner is None else f", reached by {inner} of these kernels alone"
            yield f"    writes {output.size} {output.dtype!r} into {into}{known}".replace("dtypes.", "")
        yield from (f"    reads {_memory(read, names)}" for read in kernel.inputs)
        yield from (f"    takes {_binding(bind)}" for bind in kernel.binds)


def _memory(memory: Memory, names: dict[Output, str]) -> str:
    if isinstance(memory, Part):
        size, dtype = memory.size, memory.dtype
        text = f"{size} {dtype!r} from byte {memory.offset} of {_memory(memory.of, names)}"
        return text.replace("dtypes.", "")
    return names[memory] if isinstance(memory, Output) else f"node {memory.number} of the walk"


def _binding(bind: Binding) -> str:
    if isinstance(bind, Leaf):
        return f"node {bind.number} of the walk"
    if isinstance(bind, BoundSize):
        return f"bound Variable {bind.number}"
    variable, value = bind.unbind()
    return f"{variable.arg[0]} = {value}"
