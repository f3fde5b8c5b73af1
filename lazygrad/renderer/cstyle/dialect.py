"""What a language that looks like C is made of: its rows, and how it spells what rows have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...dtype import DType
from ...ir.pattern import PatternMatcher


@dataclass(frozen=True)
class Dialect:
    """One language. In braces: what is filled in.

    rows            what each op is: the rows of its own, then those that it shares
    types           dtype → the name of a scalar
    vector_types    dtype → a vector's name, less its length
    vector_lengths  which vectors it can load and store
    make_vector     `{type}` and `{lanes}` → a vector
    lane            `{vector}`, `{lane}` and `{letter}` → one lane
    long_suffix     of 64-bit literals
    kernel          `{bounds}`, `{name}`, `{parameters}` → the function's head; bounds: threads in a workgroup
    buffer, restrict     a parameter: `{buffer}float*{restrict} data0`
    variable, reference  another: `{variable}int{reference} n`
    more_parameters      at the end of the list
    local_memory, local_pointer    the qualifiers of memory that a workgroup shares, and of pointers into it
    local_aligned   another one, of memory that begins at a multiple of so many bytes, for vectors or matrices
    function        qualifiers of the small functions written before a kernel
    header          lines at the top of every text
    headers         a dtype that is used, or "INFINITY", "NAN" → a line
    sqrt, trunc, fma     functions, with `{f}` for the C library's letter
    half_fma        fma of float16, where there are such letters
    bitcast         `{value}` of type `{source}` → the same bits as `{type}`; empty = a small function of ours
    named, changing a value with a name, and one that changes: `{type}`, `{name}` and `{value}`
    counted         the head of a loop, of `{type}`, `{name}`, `{start}` and `{end}`
    vectors         whether vectors compute (the compilers' vector extension), or only load and store
    entry           whether the CPU's entry function is written too
    """

    rows: PatternMatcher
    types: Mapping[DType, str]
    vector_types: Mapping[DType, str]
    vector_lengths: frozenset[int]
    make_vector: str
    lane: str
    long_suffix: str
    kernel: str
    buffer: str = ""
    restrict: str = ""
    variable: str = "const "
    reference: str = ""
    more_parameters: str = ""
    local_memory: str = ""
    local_pointer: str = ""
    local_aligned: str = ""
    function: str = "inline"
    header: tuple[str, ...] = ()
    headers: Mapping[DType | str, str] = field(default_factory=dict)
    sqrt: str = "sqrt"
    trunc: str = "trunc"
    fma: str = "fma"
    half_fma: str = ""
    bitcast: str = ""
    named: str = "{type} {name} = {value};"
    changing: str = "{type} {name} = {value};"
    counted: str = "for ({type} {name} = {start}; {name} < {end}; {name}++) {{"
    vectors: bool = False
    entry: bool = False
