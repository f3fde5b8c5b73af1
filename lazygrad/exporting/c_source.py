"""A captured function as C: a source file, a header, and the weights in the source or in a file beside it.

Every kernel is rendered again, for any processor that gcc or clang know (vectors of 16 bytes). What is called
is one function with a pointer for each tensor and an integer for each Variable; memory in between is static,
so one thread at a time may call it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..codegen.compile import compile_kernel
from ..dtype import DType, dtypes
from ..engine.actions import Action
from ..ir.reports import FAILED, WORDS
from ..ir.uop import UOp
from ..jit.captured import Captured
from ..jit.results import OutputPart
from ..jit.specs import BoundSpec
from ..jit.tensor_specs import TensorSpec
from ..jit.tinyjit import TinyJit
from ..nn.formats.writing import atomic_file
from ..renderer.cstyle import FLAGS, CStyleRenderer
from ..renderer.cstyle.dialects import c_target
from ..renderer.scratch import DONE, SYMBOL
from ..runtime._scratch import bytes_wanted
from ..shape import shape_text
from .capturing import captured_with
from .container import ALIGNMENT, Sections
from .launches import Memory
from .signature import OwnResults, identifier, leaves, name_arguments, variables_in

#: Weights of more bytes lie in a file of their own, which the assembler includes: compilers are slow to read
#: numbers.
MOST_IN_TEXT = 1 << 20

_TYPES = {
    dtypes.bool: "unsigned char",
    dtypes.int8: "int8_t",
    dtypes.uint8: "uint8_t",
    dtypes.int16: "int16_t",
    dtypes.uint16: "uint16_t",
    dtypes.int32: "int32_t",
    dtypes.uint32: "uint32_t",
    dtypes.int64: "int64_t",
    dtypes.uint64: "uint64_t",
    dtypes.float32: "float",
    dtypes.float64: "double",
}


def save_c(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], path: str) -> None:
    """Write NAME.c and NAME.h, and NAME.bin where there are many weights."""
    inner = fn.fxn if isinstance(fn, TinyJit) else fn
    captured, _ = captured_with(OwnResults(inner), args, kwargs)
    name = os.path.splitext(os.path.basename(path))[0]
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise ValueError(f"a C function is named as the file is, and {name!r} is not a valid name in C")
    if captured.draws.start is not None:
        raise NotImplementedError("exporting random numbers to C is not supported: pass them as an argument")
    name_arguments(captured, inner, args)
    source = _Source(captured, name)
    base = os.path.splitext(path)[0]
    weights = source.weights()
    if len(weights) > MOST_IN_TEXT:
        _write(f"{base}.bin", weights)
    _write(f"{base}.h", source.header().encode())
    _write(f"{base}.c", source.text(weights).encode())


def _write(path: str, content: bytes) -> None:
    with atomic_file(path) as file:
        file.write(content)


_ALIGNED = f"__attribute__((aligned({ALIGNMENT})))"
#: float16 is converted by integer operations: on processors without such an instruction compilers call a
#: function for it that not every system has.
_RENDERER = CStyleRenderer(replace(c_target(), converted_dtypes=frozenset()))

#: Weights in a file, which the assembler looks for where the compiler is called unless NAME_WEIGHTS is set.
_INCLUDED = f"""\
#ifndef NAME_WEIGHTS
#define NAME_WEIGHTS "NAME.bin"
#endif
#ifdef __APPLE__
__asm__(".const_data\\n.balign {ALIGNMENT}\\n_NAME_weights:\\n.incbin \\"" NAME_WEIGHTS "\\"\\n.text\\n");
#else
__asm__(".pushsection .rodata\\n.balign {ALIGNMENT}\\nNAME_weights:\\n"
        ".incbin \\"" NAME_WEIGHTS "\\"\\n.popsection\\n");
#endif
extern const unsigned char NAME_weights[];
#define weights NAME_weights"""


class _Source:
    """One function in C, and what its texts need of the capture."""

    def __init__(self, captured: Captured, name: str) -> None:
        self.name, self.captured = name, captured
        self.replay = captured.replay
        self.sections = Sections()
        self.memory = Memory(self.replay, self.sections)
        self.preamble: dict[str, None] = {}
        self.functions: list[str] = []
        self._kernels: dict[UOp, tuple[str, list[str]]] = {}
        self.scratch = 0
        self._name_arguments()
        actions = [action for batch in self.replay.batches for action in batch.actions]
        places = [[self.memory.operand(place, action) for place in action.slots] for action in actions]
        kernels = [None if action.runner is None else self._function(action) for action in actions]
        self._assign_memory()
        self.calls = [
            self._call(action, kernel, used)
            for action, kernel, used in zip(actions, kernels, places, strict=True)
        ]

    # *** arguments

    def _name_arguments(self) -> None:
        self.parameters: list[str] = []
        #: Variable → its parameter
        self.names: dict[str, str] = {}
        #: results that are as another one: (copy, the other, bytes)
        self.copies: list[tuple[str, str, int]] = []
        self.comments: list[str] = []
        #: the parameter of each slot, then of each output
        self.pointers: list[str] = []
        taken: set[str] = set()
        tensors: dict[int, str] = {}
        for spec in leaves([*self.captured.args, *self.captured.kwargs.values()]):
            if isinstance(spec, TensorSpec) and spec.first is None:
                name = tensors[spec.number] = identifier(spec.name, taken, _KEYWORDS)
                self._parameter(name, spec.dtype, shape_text(spec.shape), const=not spec.changed)
                for variable in variables_in(spec.shape):
                    self._variable(variable, taken)
            elif isinstance(spec, BoundSpec):
                self._variable(spec.variable, taken)
        self.pointers += [f"(void*){tensors[number]}" for number in self.captured.slots]
        keys = enumerate(self.replay.sources)
        self.variables = {n: self.names[key[1]] for n, key in keys if isinstance(key, tuple)}
        results = self.captured.made
        outputs = [""] * len(self.captured.outputs)
        for number, made in enumerate(results):
            if not isinstance(made, OutputPart):
                raise NotImplementedError(
                    f"exporting result {number + 1} to C is not supported: the function computes no value"
                )
            output = self.captured.outputs[made.output]
            name = identifier("result" if len(results) == 1 else f"result_{number}", taken, _KEYWORDS)
            (like,) = output.likes
            if outputs[made.output]:
                self.copies.append((name, outputs[made.output], like.nbytes))
            else:
                outputs[made.output] = f"(void*){name}"
            fixed = None if output.symbolic else output.views[made.index].tracker.shape
            text = f"at most {like.size} elements" if fixed is None else shape_text(fixed)
            self._parameter(name, like.dtype, text, const=False)
        self.pointers += outputs

    def _variable(self, variable: UOp, taken: set[str]) -> None:
        name, low, high = variable.arg
        if name not in self.names:
            parameter = self.names[name] = identifier(name, taken, _KEYWORDS)
            self.parameters.append(f"int64_t {parameter}")
            self.comments.append(f"{parameter}: {low} to {high}")

    def _parameter(self, name: str, dtype: DType, text: str, const: bool) -> None:
        known = _TYPES.get(dtype)
        kind = known or ("uint16_t" if dtype.itemsize == 2 else "uint8_t")
        self.parameters.append(f"{'const ' if const else ''}{kind}* {name}")
        self.comments.append(f"{name}: {text} {dtype.name}{'' if known else ', its bits'}")

    # *** kernels

    def _call(self, action: Action, kernel: tuple[str, list[str]] | None, places: list[list[Any]]) -> str:
        pointers = [self._pointer(place) for place in places]
        if kernel is None or action.runner is None:
            return f"memset({pointers[0]}, 0, {action.bufs[0].nbytes});"
        function, wanted = kernel
        names: list[str] = [variable.arg[0] for variable in action.runner.vars]
        values = dict(zip(names, map(self._integer, action.values), strict=True))
        numbers = ", ".join([values[name] for name in wanted]) or "0"
        return (
            f"{{ void* memory[] = {{{', '.join(pointers)}}}; long long numbers[] = {{{numbers}}}; "
            f"{function}_entry(memory, numbers, 0, 1); }}"
        )

    def _integer(self, number: int) -> str:
        name = self.variables.get(number)
        return str(self.replay.integers[number]) if name is None else str(name)

    def _function(self, action: Action) -> tuple[str, list[str]]:
        """The name of a kernel's function, and those of its integers."""
        ast = action.item.ast
        if ast not in self._kernels:
            spec = compile_kernel(ast, _RENDERER)
            name = f"{self.name}_kernel{len(self._kernels)}"
            self._kernels[ast] = name, [variable.arg[0] for variable in spec.vars]
            self.scratch = max(self.scratch, bytes_wanted(spec.src))
            lines = spec.src.split("\n")
            start = next(n for n, line in enumerate(lines) if line.startswith(f"void {spec.function_name}("))
            for chunk in _chunks(lines[:start]):
                if SYMBOL not in chunk and DONE not in chunk:
                    self.preamble[chunk] = None
            text = re.sub(rf"\b{spec.function_name}(?=(_entry)?\()", name, "\n".join(lines[start:]))
            text = text.replace(f"{SYMBOL}(", "memory_for_tiles(").replace(f"  {DONE}(scratch);\n", "")
            text = re.sub(r"^void ", "static void ", text, flags=re.M)
            self.functions.append(f"/* {spec.function_name} */\n{text}")
        return self._kernels[ast]

    # *** memory

    def _assign_memory(self) -> None:
        self.offsets: list[int] = []
        self.workspace = -(-self.scratch // ALIGNMENT) * ALIGNMENT
        for row in self.memory.rows:
            own = row["content"] is None or row["written"]
            self.offsets.append(self.workspace if own else self.sections.table[row["content"]][0])
            if own:
                self.workspace += -(-row["bytes"] // ALIGNMENT) * ALIGNMENT

    def _pointer(self, place: list[Any]) -> str:
        kind, number, *rest = place
        if kind == "changing":
            return str(self.pointers[number])
        if kind == "part":
            return f"(char*){self.pointers[number]}+{rest[0]}"
        row = self.memory.rows[number]
        own = row["content"] is None or row["written"]
        text = f"{'workspace' if own else 'weights'}+{self.offsets[number] + rest[0]}"
        return text if own else f"(void*)({text})"

    def weights(self) -> bytes:
        content = bytearray()
        for (offset, _, _), part in zip(self.sections.table, self.sections.sections, strict=True):
            content += bytes(offset - len(content)) + bytes(part)
        return bytes(content)

    # *** texts

    @property
    def prototype(self) -> str:
        return f"int {self.name}({', '.join(self.parameters)})"

    def header(self) -> str:
        guard = f"{self.name.upper()}_H"
        lines = "\n".join(f"     {comment}" for comment in self.comments)
        return f"""\
/* Written by lazygrad.export. Build: cc -O2 {" ".join(FLAGS)} -c {self.name}.c, and link with -lm. */
#ifndef {guard}
#define {guard}
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif

/* Compute the results from the arguments, all in row-major order:
{lines}
   Returns 0, or 1 where an index was out of range. One thread at a time may call it. */
{self.prototype};

/* Make what the function keeps between calls what it was at first. */
void {self.name}_reset(void);

#ifdef __cplusplus
}}
#endif
#endif
"""

    def text(self, weights: bytes) -> str:
        kept = [
            f"  memcpy(workspace+{self.offsets[n]}, "
            f"weights+{self.sections.table[row['content']][0]}, {row['bytes']});"
            for n, row in enumerate(self.memory.rows)
            if row["content"] is not None and row["written"]
        ]
        checks = []
        for number, row in enumerate(self.memory.rows):
            for site in range(len(row.get("reports", ()))):
                word = f"((int64_t*)(workspace+{self.offsets[number]}))[{WORDS * site + FAILED}]"
                checks.append(f"  if ({word}) {{ {word} = 0; failed = 1; }}")
        return "\n".join(
            [
                f'#include "{self.name}.h"',
                "#include <string.h>",
                *self.preamble,
                "",
                self._weights_text(weights),
                f"static unsigned char workspace[{max(self.workspace, 1)}] {_ALIGNED};",
                "static inline char* memory_for_tiles(unsigned long nbytes) { return (char*)workspace; }",
                "",
                "\n\n".join(self.functions),
                "",
                f"void {self.name}_reset(void) {{",
                *kept,
                "}",
                "",
                f"{self.prototype} {{",
                "  static int ready = 0;",
                "  int failed = 0;",
                f"  if (!ready) {{ {self.name}_reset(); ready = 1; }}",
                *[f"  {call}" for call in self.calls],
                *[f"  memcpy({name}, {other}, {nbytes});" for name, other, nbytes in self.copies],
                *checks,
                "  return failed;",
                "}",
                "",
            ]
        )

    def _weights_text(self, weights: bytes) -> str:
        if len(weights) > MOST_IN_TEXT:
            return _INCLUDED.replace("NAME", self.name)
        padded = weights + bytes(-len(weights) % 8)
        numbers = [f"0x{int.from_bytes(padded[n : n + 8], 'little'):x}ull" for n in range(0, len(padded), 8)]
        rows = [",".join(numbers[n : n + 8]) for n in range(0, len(numbers), 8)] or ["0"]
        return (
            f"static const unsigned long long numbers[] {_ALIGNED} = {{\n"
            + ",\n".join(rows)
            + "\n};\n#define weights ((const unsigned char*)numbers)"
        )


def _chunks(lines: list[str]) -> list[str]:
    """The lines above a kernel, those of an #ifdef together."""
    found: list[str] = []
    inside = False
    for line in lines:
        if inside:
            found[-1] += f"\n{line}"
        else:
            found.append(line)
        inside = (inside or line.startswith("#if")) and not line.startswith("#endif")
    return found


#: What a parameter cannot be named: words of C, and those that the text has.
_KEYWORDS = {"auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum"}
_KEYWORDS |= {"extern", "float", "for", "goto", "if", "int", "long", "register", "return", "short", "signed"}
_KEYWORDS |= {"sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile"}
_KEYWORDS |= {"while", "workspace", "weights", "numbers", "ready", "failed", "half", "bool", "memory"}
