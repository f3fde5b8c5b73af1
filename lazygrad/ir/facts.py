"""What a node remembers about itself: every key of `UOp.facts`, with the type of its value.

At run time `facts` is a plain dict; mypy checks keys and values against what stands here. Under each key is
its owner, the module (without `lazygrad/` and `.py`) that works it out; in parentheses who else sets it or
takes it away; then what it says. tests/ir/test_facts.py holds the code to that.

A fact holds no user of its node, nor the node itself, but weakly: else neither would ever be freed. Where a
value's class stands in a higher layer its type is Any, and the sentence names the class.
"""

from __future__ import annotations

import weakref
from typing import Any, Generic, Literal, TypedDict, TypeVar

from .args import Devices

#: The type of nodes. It remembers these facts, so it stands above them (ir/uop.py) and is filled in there.
Node = TypeVar("Node")


class NodeFacts(TypedDict, Generic[Node], total=False):
    """All of them; a node has those few that somebody has worked out or noted."""

    # *** where it came from

    origin: Any
    """ir/uop (schedule/calls, schedule/graph/versions, tensor/trace, viz/requests): the user's call that
    first made it, a Metadata.
    """

    site: Any
    """tensor/indexing/addresses (ir/uop, schedule/calls): on a CHECK, the user's call that its index comes
    from, a Site.
    """

    # *** of any value: shape and place

    shape: tuple[int | Node, ...] | None
    """shape/rules (shape/movement, ir/uop, schedule/calls, schedule/graph/versions, jit/outputs): the shape
    of its value; None where it has none.
    """

    device: Devices | None
    """ir/walks (ir/uop, schedule/calls, schedule/graph/versions, jit/outputs): the name of the device that
    its value lives on, or of several; None for bare numbers.
    """

    form: tuple[tuple[int, ...], Any, str]
    """tensor/recipes: of a BUFFER on one device, or such in another shape of numbers: its shape, dtype and
    device.
    """

    base_and_tracker: tuple[Node, Any]
    """shape/movement (jit/outputs): on a movement, the first node below that is none, and the
    ShapeTracker that says how its elements are looked at.
    """

    # *** of index expressions and conditions

    bounds: tuple[int, int]
    """ir/index/bounds (tensor/recipes): the least and the greatest value of an integer or bool; passes note
    it where a new node shows less than they know, also on a float that is sure to fit an integer type: what
    it truncates to.
    """

    float_bounds: tuple[float, float] | None
    """ir/index/bounds: the least and the greatest value of a float that is never NaN, rounded outwards; None
    where that is not known.
    """

    terms: tuple[dict[tuple[Node, ...], int], int]
    """ir/index/polynomials: an index as a polynomial, {product of atoms: coefficient} and constant."""

    order_key: str
    """ir/index/polynomials: a text that orders the atoms of a polynomial alike in every process."""

    ranges: frozenset[Node]
    """ir/nest: the RANGEs that it depends on and that nothing below it has closed; of a RANGE, those of its
    size: one that held itself would never be freed."""

    has_division: bool
    """simplify/validity: whether its arithmetic divides anywhere."""

    simplified: Node | Literal[True]
    """simplify/validity: a condition equal to this one with fewer divisions; True where that is itself."""

    multiple_of: int
    """renderer/alignment: the greatest power of two that is known to divide it."""

    strides: dict[Node, int | None]
    """codegen/expressions/ranges: by how much it moves when a RANGE moves by one, where only trying tells;
    None if not by the same everywhere.
    """

    # *** of a kernel's AST

    below: tuple[Node, ...]
    """ir/uop: on a SINK, every node below it, each after its sources."""

    buffer_count: int
    """schedule/kernels/items: how many buffers the kernel takes."""

    variables: list[Node]
    """schedule/kernels/items: the DEFINE_VARs of the kernel, by name; those of its sizes and views too."""

    digest: str
    """structure (schedule/stored): a digest of its structure, the same in every process; of constants,
    too."""

    shown_numbers: dict[str, int]
    """report/rows: by name of a program of this AST, how many others of that name were shown before it."""

    # *** for the plan

    checkpointed: Node
    """tensor/transforms/checkpoint: what it stands for where a checkpoint computes again: the value that it
    begins with, or the gradient that it waits for.
    """

    arg_binds: tuple[Node, ...]
    """schedule/graph/requested: the bound Variables in its argument."""

    open_sources: tuple[int, ...]
    """schedule/keys/lifted_numbers: which of its sources are constants that may become arguments of a
    kernel."""

    repeated_axes: frozenset[int]
    """schedule/rewrite/reduces_of_broadcasts: axes along which all its elements are certainly the same."""

    has_powers: bool
    """schedule/graph/powers: of an elementwise node, whether exponentials are among what it is made of."""

    # *** what has become of it

    forwarded_to: Node
    """schedule/graph/versions (schedule/calls, shape/movement, jit/session): what holds its value now: once
    planned an ASSIGN, once run a BUFFER, or movements of these; of a call that was put off, once made, its
    node.
    """

    send_order: int
    """schedule/graph/versions: on a CONTIGUOUS that says how a value lies: what has an earlier turn is sent
    first.
    """

    in_plan: int
    """sharding/between_ranks: on a COLLECTIVE, the number of the plan in whose order it is."""

    values: list[weakref.ref[Node]]
    """schedule/graph/versions (shape/movement, jit/session): on a version of memory, the nodes that became
    it.
    """

    # *** of a BUFFER, a version of some memory

    buffer: Any
    """schedule/graph/versions: the Buffer with the memory; not there once it is overwritten."""

    supersedes: weakref.ref[Node]
    """tensor/assigning: on new memory among ranks, the version that is written here, since
    others have its own memory.
    """

    fresh: Literal[True]
    """schedule/graph/versions (viz/requests): nothing has been written yet, and nobody may read it."""

    overwritten: Literal[True] | str | Exception
    """schedule/graph/versions (tensor/transforms/derivatives): its contents are gone: True where a later
    version took its memory, or the reason that a user is told.
    """

    run_order: tuple[int, int]
    """schedule/kernelize: when a KERNEL runs: the number of the plan that was bound, and its place in it."""

    last_sent: Node
    """schedule/kernelize (engine/realize): on a KERNEL that has not run, the ASSIGN of the last COLLECTIVE of
    its plan.
    """

    inner_users: int
    """schedule/kernelize: how many kernels of its plan touch it, where nothing else can reach it."""

    holders: tuple[weakref.ref[Any], ...]
    """tensor/storage: the Storages whose newest version it is, or was."""

    readers: list[weakref.ref[Any]]
    """tensor/core (tensor/assigning, jit/session): the tensors that are read from it and are no
    views of it, some of them long since elsewhere.
    """

    most_readers: int
    """tensor/core: so many readers are noted before those that died are looked for."""

    # *** of a KERNEL

    outputs: tuple[weakref.ref[Node], ...]
    """schedule/kernelize: the ASSIGNs that it stands for."""

    boundaries: tuple[Any, ...]
    """schedule/kernelize: for each output why the kernel ends there, a Boundary."""

    staged_rows: tuple[Any, ...]
    """schedule/kernelize: of which values it keeps a row for several loops, each a StagedValue."""

    only_copy: Literal[True]
    """schedule/kernelize: of a COPY: nobody copies the same again, as where its result is in memory that is
    written later; so running it may take over what it copies.
    """

    runner: Any
    """engine/realize: the mark of the thread that is to run it."""

    ran: Literal[True]
    """engine/realize: it has run."""
