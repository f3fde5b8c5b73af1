"""The small functions that C-like text calls for what the languages have no exact expression for.

Each is written above the kernel that needs it, once, with the types it needs. A vector is the compilers'
vector extension; its comparisons give masks, lanes of 0 and -1.
"""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir.ops import Ops
from .dialect import Dialect
from .parentheses import without_parentheses

_WORDS = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


class Functions:
    """The type names and functions that one kernel's text asked for, in the order of writing."""

    def __init__(self, dialect: Dialect) -> None:
        self.row = dialect
        self.typedefs: dict[str, None] = {}
        self.texts: dict[str, str] = {}

    def type(self, dtype: DType) -> str:
        """The name of a type; a vector type of C is defined when first named."""
        if dtype.count == 1:
            name = self.row.types.get(dtype.scalar_type)
        else:
            name = self.row.vector_types.get(dtype.scalar_type)
            name = name and f"{name}{dtype.count}"
        if name is None or (dtype.count > 1 and dtype.count not in self.row.vector_lengths):
            raise NotImplementedError(f"this dialect of C has no {dtype!r}: legalize replaces it")
        if dtype.count > 1 and self.row.vectors:
            # The alignment of an element: memory promises no more.
            scalar = self.row.types[dtype.scalar_type]
            attributes = f"vector_size({dtype.itemsize}),aligned({dtype.scalar_type.itemsize}),may_alias"
            self.typedefs[f"typedef {scalar} {name} __attribute__(({attributes}));"] = None
        return name

    def short(self, dtype: DType) -> str:
        """A type as part of a function's name."""
        return dtype.scalar_type.name + (str(dtype.count) if dtype.count > 1 else "")

    def write(self, name: str, result: DType, parameters: str, body: str) -> str:
        if name not in self.texts:
            kind = self.type(result)
            self.texts[name] = f"{self.row.function} {kind} {name}({parameters}) {{ {body} }}"
        return name

    def mask(self, dtype: DType) -> DType:
        return _WORDS[dtype.scalar_type.itemsize].vec(dtype.count)

    def where(self, dtype: DType) -> str:
        """Lanes of one vector or the other, by a mask as wide as they are."""
        kind, mask = self.type(dtype), self.type(self.mask(dtype))
        body = f"return ({kind})((m&({mask})a)|(~m&({mask})b));"
        return self.write(f"where_{self.short(dtype)}", dtype, f"{mask} m, {kind} a, {kind} b", body)

    def extremum(self, op: Ops, dtype: DType) -> str:
        """The first of two equals, NaN if either is NaN."""
        kind, name = self.type(dtype), f"{'max' if op is Ops.MAX else 'min'}_{self.short(dtype)}"
        keeps = "<=" if op is Ops.MAX else ">="  # the first stays if the second compares so
        if dtype.count > 1:
            mask = self.type(self.mask(dtype))
            condition = f"~({mask})(b{keeps}a)" + (f"&({mask})(a==a)" if dtypes.is_float(dtype) else "")
            body = f"return {self.where(dtype)}({condition},b,a);"
        else:
            condition = f"!(b{keeps}a)" + ("&&a==a" if dtypes.is_float(dtype) else "")
            body = f"return {condition}?b:a;"
        return self.write(name, dtype, f"{kind} a, {kind} b", body)

    def in_any_order(self, op: Ops, dtype: DType) -> str:
        """ADD or MUL of a sum that may be added up in any order: the pragma holds inside of the function."""
        kind, sign = self.type(dtype), "+" if op is Ops.ADD else "*"
        body = f'_Pragma("clang fp reassociate(on) contract(fast)") return a{sign}b;'
        return self.write(f"{op.name.lower()}_{self.short(dtype)}", dtype, f"{kind} a, {kind} b", body)

    def library(self, op: Ops, dtype: DType) -> str:
        """SQRT, TRUNC, MULACC."""
        template, arity = {
            Ops.SQRT: (self.row.sqrt, 1), Ops.TRUNC: (self.row.trunc, 1), Ops.MULACC: (self.row.fma, 3),
        }[op]  # fmt: skip
        name = template.format(f="" if dtype.scalar_type is dtypes.float64 else "f")
        if dtype is dtypes.float16 and "{f}" in template:  # the library's functions are of float
            return self.row.half_fma if op is Ops.MULACC else self._of_half(op, name)
        return self._by_lanes(name, dtype, [dtype] * arity, op.name.lower())

    def _of_half(self, op: Ops, name: str) -> str:
        """A function of one half in float32, which has digits enough to be rounded twice."""
        half, single = self.type(dtypes.float16), self.type(dtypes.float32)
        body = f"return ({half}){name}(({single})x);"
        return self.write(f"{op.name.lower()}_half", dtypes.float16, f"{half} x", body)

    def _by_lanes(self, scalar: str, result: DType, sources: list[DType], base: str = "") -> str:
        """A scalar function on each lane: a loop, of which gcc and clang make vector instructions."""
        if result.count == 1:
            return scalar
        name = f"{base}_{self.short(result)}" if base else f"{scalar}{result.count}"
        letters = "abc"[: len(sources)]
        parameters = ", ".join(f"{self.type(s)} {x}" for s, x in zip(sources, letters, strict=True))
        lanes = ",".join(f"{x}[i]" for x in letters)
        body = (
            f"{self.type(result)} r; for (int i=0; i<{result.count}; i++) r[i]={scalar}({lanes}); return r;"
        )
        return self.write(name, result, parameters, body)

    def saturate(self, source: DType, target: DType) -> str:
        """Float to integer: NaN is 0, what does not fit is the nearest limit, the rest is truncated."""
        name = f"{self.short(target)}_of_{self.short(source)}"
        kind, scalar = self.type(source), target.scalar_type
        low, high = int(dtypes.min(scalar)), int(dtypes.max(scalar))
        suffix = "" if source.scalar_type is dtypes.float64 else "f"
        # Both limits are powers of two (or 0), exact in every float type that is compared here.
        least, beyond = f"({float(low)!r}{suffix})", f"{float(high + 1)!r}{suffix}"
        unsigned = "u" if dtypes.is_unsigned(scalar) else ""
        most = f"{high}{unsigned}{self.row.long_suffix}"
        lowest = f"(-{-low - 1}{self.row.long_suffix}-1)" if low else "0"
        to = self.type(target)
        if target.count == 1:
            body = f"return x>={beyond}?({to}){most}:x<{least}?({to}){lowest}:x==x?({to})x:0;"
            return self.write(name, target, f"{kind} x", body)
        mask, short_mask = self.type(self.mask(source)), self.type(self.mask(target))
        count = target.count
        limits = [f"(({to}){{{','.join([value] * count)}}})" for value in (most, lowest)]
        over, under = (
            f"__builtin_convertvector(({mask})(x{test}), {short_mask})"
            for test in (f">={beyond}", f"<{least}")
        )
        inside = f"{self.where(source)}(({mask})(x>={least})&({mask})(x<{beyond}),x,({kind}){{}})"
        where = self.where(target)
        truncated = f"__builtin_convertvector({inside}, {to})"
        body = f"return {where}({over},{limits[0]},{where}({under},{limits[1]},{truncated}));"
        return self.write(name, target, f"{kind} x", body)

    def bitcast(self, source: DType, target: DType, value: str) -> str:
        """The same bits read as another type."""
        value = without_parentheses(value)
        if self.row.bitcast:
            return self.row.bitcast.format(type=self.type(target), source=self.type(source), value=value)
        name = f"bits_{self.short(target)}_of_{self.short(source)}"
        union = f"union {{ {self.type(source)} from; {self.type(target)} to; }} u;"
        self.write(name, target, f"{self.type(source)} x", f"{union} u.from=x; return u.to;")
        return f"{name}({value})"

    def masked_load(self, dtype: DType) -> str:
        """Lanes that are valid from memory, the others as given; an invalid lane touches no memory."""
        kind, mask, scalar = self.type(dtype), self.type(self.mask(dtype)), self.type(dtype.scalar_type)
        body = f"for (int i=0; i<{dtype.count}; i++) if (m[i]) r[i]=p[i]; return r;"
        return self.write(f"load_{self.short(dtype)}", dtype, f"const {scalar}* p, {mask} m, {kind} r", body)

    def nontemporal_store(self, dtype: DType, line: int) -> str:
        """Past the caches where a line of memory begins, if the compiler has words for it."""
        name, kind = f"nontemporal_store_{self.short(dtype)}", self.type(dtype)
        if name not in self.texts:
            past = f"__builtin_nontemporal_store(v,({kind}_line*)p)"
            self.texts[name] = "\n".join([
                f"{self.row.function} void {name}(void* p, {kind} v) {{",
                "#ifdef __clang__",
                f"  typedef {kind} {kind}_line __attribute__((aligned({line})));",
                f"  if (((unsigned long long)p&{line - 1})==0) {{ {past}; return; }}",
                "#endif",
                f"  *(({kind}*)p) = v;",
                "}",
            ])  # fmt: skip
        return name

    def masked_store(self, dtype: DType) -> str:
        """Store the lanes that are valid."""
        kind, mask, scalar = self.type(dtype), self.type(self.mask(dtype)), self.type(dtype.scalar_type)
        name = f"store_{self.short(dtype)}"
        if name not in self.texts:
            body = f"for (int i=0; i<{dtype.count}; i++) if (m[i]) p[i]=x[i];"
            self.texts[name] = (
                f"{self.row.function} void {name}({scalar}* p, {mask} m, {kind} x) {{ {body} }}"
            )
        return name
