"""Copies into the memory of a workgroup, in CUDA: PTX's `cp.async`, or where a target has none a vector.

Each is a function of its own: the runtime replaces it where buffers begin between vectors.
"""

from __future__ import annotations

from ...dtype import PtrDType
from ...ir.uop import UOp
from .parentheses import without_parentheses
from .text import Text

#: What moves so many bytes at once.
_WORDS = {4: "unsigned int", 8: "uint2", 16: "uint4"}
_ZEROS = {4: "0", 8: "make_uint2(0,0)", 16: "make_uint4(0,0,0,0)"}


def fetch(ctx: Text, node: UOp) -> str:
    """A call that copies neighbours; zeros, where the source is not valid."""
    into, source = node.src
    assert isinstance(into.dtype, PtrDType)
    size = node.arg * into.dtype.base.itemsize
    masked = len(source.src) > 2
    verb = "fetch" if ctx.target.async_copies else "copy"
    name = f"{verb}_{size}{'_where' if masked else ''}"
    arguments = [ctx.of(into), ctx.of(source), *([ctx.of(source.src[2])] if masked else [])]
    parameters = f"void* to, const void* from{', bool valid' if masked else ''}"
    if ctx.target.async_copies:
        cache = "cg" if size == 16 else "ca"
        places = '"r"((unsigned int)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from))'
        read = f', "r"(valid?{size}:0)' if masked else ""
        text = f"cp.async.{cache}.shared.global [%0], [%1], {size}{', %2' if masked else ''};"
        body = f'asm volatile("{text}" : : {places}{read} : "memory");'
    else:
        word = _WORDS[size]
        found = f"*(({word}*)(from))"
        body = f"*(({word}*)(to)) = {f'(valid?{found}:{_ZEROS[size]})' if masked else found};"
    ctx.functions.texts.setdefault(name, f"{ctx.row.function} void {name}({parameters}) {{ {body} }}")
    for access in node.src:
        for part in (access, *access.src):  # they stand in this line
            ctx.waiting.pop(part, None)
    return f"{name}({','.join(map(without_parentheses, arguments))});"


def commit(ctx: Text, node: UOp) -> str:
    return _waits(ctx, "fetch_commit", "cp.async.commit_group;")


def wait(ctx: Text, node: UOp) -> str:
    last = f"cp.async.wait_group {node.arg};" if node.arg else "cp.async.wait_all;"
    return _waits(ctx, f"fetch_wait_{node.arg}", last)


def _waits(ctx: Text, name: str, instruction: str) -> str:
    if not ctx.target.async_copies:
        return ""
    body = f'asm volatile("{instruction}" : : : "memory");'
    ctx.functions.texts.setdefault(name, f"{ctx.row.function} void {name}() {{ {body} }}")
    return f"{name}();"
