"""FMOD in C-like text: a short function where the quotient is of ordinary size, division by hand where not.

renderer/llvmir/remainder.py says why that is exact. The languages' own `fmod` is not called: some are not.
"""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir.ops import Ops
from .functions import Functions

#: type → its words, and the bits of a mantissa
_WORDS = {dtypes.float32: (dtypes.uint32, 23), dtypes.float64: (dtypes.uint64, 52)}


def remainder(functions: Functions, dtype: DType) -> str:
    """The function of two numbers, or of two vectors, that this makes sure is written."""
    by_hand = _by_hand(functions, dtype.scalar_type)
    name, kind = f"fmod_{functions.short(dtype)}", functions.type(dtype)
    trunc, fma = (functions.library(op, dtype) for op in (Ops.TRUNC, Ops.MULACC))
    parameters = f"{kind} a, {kind} b"
    scalar = dtype.scalar_type
    word, _ = _WORDS[scalar]
    if dtype.count == 1:
        bits = functions.type(word)
        x, y, found = (
            functions.bitcast(word, scalar, text)
            for text in ("sa&~sign", "sb&~sign", f"{functions.bitcast(scalar, word, 'r')}|(sa&sign)")
        )
        body = (
            f"{bits} sign=({bits})1<<{8 * word.itemsize - 1}, sa={functions.bitcast(scalar, word, 'a')}, "
            f"sb={functions.bitcast(scalar, word, 'b')}; {kind} x={x}, y={y}; "
            f"{kind} t={fma}(-{trunc}(x/y),y,x); if (!(t<y&&t>-y)) return {by_hand}(a,b); "
            f"{kind} r=t<0?t+y:t; return {found};"
        )
        return functions.write(name, dtype, parameters, body)
    mask = functions.mask(dtype)
    bits, where = functions.type(mask), functions.where(dtype)
    body = (
        f"{bits} sign=({bits}){{}}|({functions.type(mask.scalar_type)})"
        f"(({functions.type(word)})1<<{8 * word.itemsize - 1}); "
        f"{kind} x=({kind})(({bits})a&~sign), y=({kind})(({bits})b&~sign), t={fma}(-{trunc}(x/y),y,x), r; "
        f"{bits} right=({bits})(t<y)&({bits})(t>-y); int all=1; "
        f"for (int i=0; i<{dtype.count}; i++) all&=(int)right[i]; "
        f"if (!all) {{ for (int i=0; i<{dtype.count}; i++) r[i]={by_hand}(a[i],b[i]); return r; }} "
        f"r={where}(({bits})(t<0),t+y,t); return ({kind})(({bits})r|(({bits})a&sign));"
    )
    return functions.write(name, dtype, parameters, body)


def _by_hand(functions: Functions, dtype: DType) -> str:
    """m·2^p mod n·2^q is (m·2^(p-q) mod n)·2^q: as many bits at a time as a word has above a mantissa."""
    word, mantissa = _WORDS[dtype]
    bits, kind, width = functions.type(word), functions.type(dtype), 8 * word.itemsize
    step = width - mantissa - 1
    x, y = (functions.bitcast(dtype, word, value) for value in "ab")
    missing, found = (
        functions.bitcast(word, dtype, text) for text in ("top|hidden>>1", f"sign|((q-1)<<{mantissa})+m")
    )
    nothing = functions.bitcast(word, dtype, "sign")
    one = f"({bits})1"
    body = (
        f"{bits} sign={one}<<{width - 1}, hidden={one}<<{mantissa}, top=(sign-1)&~(hidden-1), "
        f"x={x}, y={y}&(sign-1), p, q, m, n, k, s; sign&=x; x^=sign; "
        f"if (x>=top||y>top||y==0) return {missing}; if (x<y) return a; "
        f"p=x>>{mantissa}; q=y>>{mantissa}; m=x&(hidden-1); n=y&(hidden-1); "
        f"if (p) m|=hidden; else p=1; if (q) n|=hidden; else q=1; m%=n; "
        f"for (k=p-q; k!=0; k-=s) {{ s=k<{step}?k:{step}; m=(m<<s)%n; }} "
        f"if (m==0) return {nothing}; "
        f"for (; m<hidden&&q>1; q--) m<<=1; return {found};"
    )
    return functions.write(f"fmod_by_hand_{functions.short(dtype)}", dtype, f"{kind} a, {kind} b", body)
