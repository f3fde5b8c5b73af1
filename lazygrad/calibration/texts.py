"""Small kernels in LLVM IR, each of which does one thing over and over.

No pass over LLVM IR runs on them, so each instruction here is one of the machine's. What a kernel has loaded
or computed it adds up and stores in the end, else code generation would leave it out.

Most are `void name(ptr at, i64 n)`, called over and over by `repeat`. Vectors are of 32-bit integers, whose
sums take one cycle each and can be of any bits.
"""

from __future__ import annotations

#: `repeat(kernel, at, n, times)`, and the same for regions of the worker pool: `run` is its `run_region`.
REPEAT, REPEAT_REGION = "lazygrad_repeat", "lazygrad_repeat_region"
#: Bytes of a row of the matrix whose columns are walked.
ROW = 4096
#: Steps of a chase in a turn of its loop, and operations of the clock's chain.
CHASE_STEPS, CLOCK_STEPS = 8, 64
#: Indices that a turn of a loop of gathers takes, at most.
GATHER_STEPS = 16
#: So often a thread looks whether all others are there, some 50 ms: on a busy machine they may come late.
PATIENCE = 50_000_000

#: What all others use. `wait_for_all` is a kernel of pieces: `n` times, all threads meet. The counter is in
#: the first buffer, behind it whether one has given up.
COMMON = f"""\
@lazygrad_sink = internal global [64 x i8] zeroinitializer, align 64

define void @{REPEAT}(ptr %kernel, ptr %at, i64 %n, i64 %times) nounwind {{
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %i.next, %loop ]
  call void %kernel(ptr %at, i64 %n)
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %times
  br i1 %more, label %loop, label %end
end:
  ret void
}}

define void @lazygrad_wait_for_all(ptr %bufs, ptr %vals, i32 %piece, i32 %pieces) nounwind {{
start:
  %counter = load ptr, ptr %bufs
  %failed = getelementptr i8, ptr %counter, i64 64
  %n = load i64, ptr %vals
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %i.next, %met ]
  %there = phi i32 [ %pieces, %start ], [ %there.next, %met ]
  %before = atomicrmw add ptr %counter, i32 1 seq_cst
  br label %look
look:
  %looks = phi i64 [ 0, %loop ], [ %looks.next, %again ]
  %now = load atomic i32, ptr %counter acquire, align 4
  %left = sub i32 %there, %now
  %all = icmp sle i32 %left, 0
  br i1 %all, label %met, label %again
again:
  %looks.next = add i64 %looks, 1
  %patient = icmp ult i64 %looks.next, {PATIENCE}
  br i1 %patient, label %look, label %give.up
give.up:
  store atomic i32 1, ptr %failed monotonic, align 4
  br label %end
met:
  %there.next = add i32 %there, %pieces
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}

define ptr @lazygrad_chase(ptr %at, i64 %n) nounwind {{
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %i.next, %loop ]
  %p0 = phi ptr [ %at, %start ], [ %p{CHASE_STEPS}, %loop ]
{chr(10).join(f"  %p{step + 1} = load ptr, ptr %p{step}" for step in range(CHASE_STEPS))}
  %i.next = add i64 %i, {CHASE_STEPS}
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  ret ptr %p{CHASE_STEPS}
}}
"""


def _loop(name: str, step: int, carried: list[tuple[str, str, str]], body: list[str], setup: str = "") -> str:
    """`void name(ptr at, i64 n)`: a loop of i from 0 to n by `step`. `carried` are (name, type, first value):
    `body` computes `%name.next` of each, and they are added up in the end.
    """
    phis = [
        f"  %{each} = phi {kind} [ {first}, %start ], [ %{each}.next, %loop ]"
        for each, kind, first in carried
    ]
    after: list[str] = []
    total = f"%{carried[0][0]}.next" if carried else ""
    for each, kind, _ in carried[1:]:
        after.append(f"  %total.{each} = {_add(kind)} {kind} {total}, %{each}.next")
        total = f"%total.{each}"
    if carried:
        after.append(f"  store {carried[0][1]} {total}, ptr @lazygrad_sink, align 4")
    lines = "\n".join
    return f"""
define void @{name}(ptr %at, i64 %n) nounwind {{
start:
{setup}
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %i.next, %loop ]
{lines(phis)}
{lines(f"  {line}" for line in body)}
  %i.next = add i64 %i, {step}
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
{lines(after)}
  ret void
}}
"""


def _add(kind: str) -> str:
    return "fadd" if "float" in kind else "add"


def _sums(count: int, kind: str) -> list[tuple[str, str, str]]:
    return [(f"sum{number}", kind, "zeroinitializer" if "<" in kind else "0") for number in range(count)]


def _summed(values: list[str], sums: list[tuple[str, str, str]]) -> list[str]:
    """Lines that add values to sums, in turn."""
    lines = []
    latest = {each: f"%{each}" for each, _, _ in sums}
    count = len(values)
    for number, value in enumerate(values):
        each, kind, _ = sums[number % len(sums)]
        last = number + len(sums) >= count
        made = f"%{each}.next" if last else f"%{each}.{number}"
        lines.append(f"{made} = {_add(kind)} {kind} {latest[each]}, {value}")
        latest[each] = made
    return lines


def _loads(offsets: list[int], kind: str, base: str) -> tuple[list[str], list[str]]:
    """Lines that load vectors at so many bytes from a pointer on, and what they have loaded."""
    lines, values = [], []
    for number, offset in enumerate(offsets):
        lines.append(f"%at{number} = getelementptr i8, ptr {base}, i64 {offset}")
        lines.append(f"%value{number} = load {kind}, ptr %at{number}, align 4")
        values.append(f"%value{number}")
    return lines, values


def clock() -> str:
    """A chain of additions and exclusive ors of one cycle each; n counts turns."""
    body = []
    before = "%x"
    for step in range(CLOCK_STEPS):
        made = "%x.next" if step == CLOCK_STEPS - 1 else f"%x{step}"
        body.append(f"{made} = {'xor' if step % 2 else 'add'} i64 {before}, %y")
        before = made
    return _loop("clock", 1, [("x", "i64", "1")], body, "  %y = load i64, ptr %at")


def read_step(streams: int, width: int) -> int:
    """Bytes of each walk that a turn of `read` takes: whole lines, and 16 vectors in all or more."""
    return width * max(64 // width, 16 // streams)


def read(name: str, streams: int, apart: int, width: int) -> str:
    """So many walks, `apart` bytes from each other, in vectors; n is the bytes of each."""
    kind, step = f"<{width // 4} x i32>", read_step(streams, width)
    offsets = [stream * apart + at for at in range(0, step, width) for stream in range(streams)]
    loads, values = _loads(offsets, kind, "%base")
    sums = _sums(4, kind)
    return _loop(
        name, step, sums, ["%base = getelementptr i8, ptr %at, i64 %i", *loads, *_summed(values, sums)]
    )


def columns(name: str, wide: int, width: int) -> str:
    """All columns of a matrix of n bytes with rows of ROW bytes: so many bytes of each row, then the next."""
    kind, rows = f"<{width // 4} x i32>", max(1, 512 // wide)
    offsets = [row * ROW + at for row in range(rows) for at in range(0, wide, width)]
    loads, values = _loads(offsets, kind, "%base")
    sums = _sums(4, kind)
    down = _loop(
        f"{name}_down",
        rows * ROW,
        sums,
        ["%base = getelementptr i8, ptr %at, i64 %i", *loads, *_summed(values, sums)],
    )
    return f"""{down}
define void @{name}(ptr %at, i64 %n) nounwind {{
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %i.next, %loop ]
  %first = getelementptr i8, ptr %at, i64 %i
  call void @{name}_down(ptr %first, i64 %n)
  %i.next = add i64 %i, {wide}
  %more = icmp ult i64 %i.next, {ROW}
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


def store(name: str, width: int, past_caches: bool) -> str:
    """A walk that writes n bytes of zeros."""
    kind = f"<{width // 4} x i32>"
    how = f"align {width}, !nontemporal !0" if past_caches else f"align {width}"
    body = ["%base = getelementptr i8, ptr %at, i64 %i"]
    for number in range(16):
        body.append(f"%at{number} = getelementptr i8, ptr %base, i64 {number * width}")
        body.append(f"store {kind} zeroinitializer, ptr %at{number}, {how}")
    return _loop(name, 16 * width, [], body)


#: A gather's first argument points to two pointers: to numbers of 4 bytes, and to n indices of 4 bytes.
_GATHER_SETUP = """\
  %table = load ptr, ptr %at
  %index.at = getelementptr i8, ptr %at, i64 8
  %indices = load ptr, ptr %index.at"""


def gather() -> str:
    """Loads one by one, at indices that are loaded one by one."""
    body, values = [], []
    for step in range(8):
        body += [
            f"%place{step} = add i64 %i, {step}",
            f"%index.at{step} = getelementptr i32, ptr %indices, i64 %place{step}",
            f"%index{step} = load i32, ptr %index.at{step}",
            f"%wide{step} = zext i32 %index{step} to i64",
            f"%from{step} = getelementptr i32, ptr %table, i64 %wide{step}",
            f"%value{step} = load i32, ptr %from{step}",
        ]
        values.append(f"%value{step}")
    sums = _sums(4, "i32")
    return _loop("gather", 8, sums, [*body, *_summed(values, sums)], _GATHER_SETUP)


def gather_instruction(width: int) -> str:
    """The same by x86's instruction, for AVX2 with vectors of 32 bytes and for AVX-512."""
    lanes = width // 4
    kind = f"<{lanes} x i32>"
    body, values = [], []
    for step in range(GATHER_STEPS // lanes):
        if width == 64:
            mask = f"<16 x i1> {_splat(16, 'i1 true')}"
            call = f"@llvm.x86.avx512.mask.gather.dpi.512({kind} zeroinitializer, ptr %table"
            call += f", {kind} %index{step}, {mask}, i32 4)"
        else:
            mask = f"{kind} {_splat(lanes, 'i32 -1')}"
            call = f"@llvm.x86.avx2.gather.d.d.256({kind} zeroinitializer, ptr %table"
            call += f", {kind} %index{step}, {mask}, i8 4)"
        body += [
            f"%place{step} = add i64 %i, {step * lanes}",
            f"%index.at{step} = getelementptr i32, ptr %indices, i64 %place{step}",
            f"%index{step} = load {kind}, ptr %index.at{step}, align 4",
            f"%value{step} = call {kind} {call}",
        ]
        values.append(f"%value{step}")
    sums = _sums(min(2, len(values)), kind)
    declare = (
        "declare <16 x i32> @llvm.x86.avx512.mask.gather.dpi.512(<16 x i32>, ptr, <16 x i32>, <16 x i1>, i32)"
        if width == 64
        else "declare <8 x i32> @llvm.x86.avx2.gather.d.d.256(<8 x i32>, ptr, <8 x i32>, <8 x i32>, i8)"
    )
    made = _loop("gather_instruction", GATHER_STEPS, sums, [*body, *_summed(values, sums)], _GATHER_SETUP)
    return f"{made}\n{declare}\n"


def multiply_adds(name: str, width: int, chains: int, fused: bool) -> str:
    """So many chains `y = y * 0.5 + 1`, of 16 steps in a turn; n counts turns."""
    lanes = width // 4
    kind = f"<{lanes} x float>"
    half, one = _splat(lanes, "float 5.0e-01"), _splat(lanes, "float 1.0")
    carried = [(f"y{chain}", kind, _splat(lanes, f"float {chain + 1}.0")) for chain in range(chains)]
    body = []
    for step in range(16):
        for chain in range(chains):
            before = f"%y{chain}" if step == 0 else f"%y{chain}.{step - 1}"
            made = f"%y{chain}.next" if step == 15 else f"%y{chain}.{step}"
            if fused:
                call = f"@llvm.fma.v{lanes}f32({kind} {before}, {kind} {half}, {kind} {one})"
                body.append(f"{made} = call {kind} {call}")
            else:
                body.append(f"%product{chain}.{step} = fmul {kind} {before}, {half}")
                body.append(f"{made} = fadd {kind} %product{chain}.{step}, {one}")
    return _loop(name, 1, carried, body)


def fma_declaration(width: int) -> str:
    kind = f"<{width // 4} x float>"
    return f"declare {kind} @llvm.fma.v{width // 4}f32({kind}, {kind}, {kind})\n"


#: Type of the factors → the intrinsic, the type of its sums, that of its factors, how many it multiplies.
DOTS = {
    "int8": ("llvm.x86.avx512.vpdpbusd", "i32", "i32", 4),
    "int16": ("llvm.x86.avx512.vpdpwssd", "i32", "i16", 2),
    "bfloat16": ("llvm.x86.avx512bf16.dpbf16ps", "float", "bfloat", 2),
}


def dot(element: str, width: int, chains: int) -> str:
    """So many chains of sums of products, of 16 steps in a turn; n counts turns."""
    intrinsic, total, factor, count = DOTS[element]
    lanes = width // 4
    kind = f"<{lanes} x {total}>"
    packed = kind if factor == total else f"<{count * lanes} x {factor}>"
    carried = [(f"y{chain}", kind, "zeroinitializer") for chain in range(chains)]
    body = []
    for step in range(16):
        for chain in range(chains):
            before = f"%y{chain}" if step == 0 else f"%y{chain}.{step - 1}"
            made = f"%y{chain}.next" if step == 15 else f"%y{chain}.{step}"
            call = f"@{intrinsic}.{8 * width}({kind} {before}, {packed} %factor, {packed} %factor)"
            body.append(f"{made} = call {kind} {call}")
    setup = f"  %factor = load {packed}, ptr %at, align 4"
    declare = f"declare {kind} @{intrinsic}.{8 * width}({kind}, {packed}, {packed})\n"
    return _loop(f"dot_{element}", 1, carried, body, setup) + declare


def _splat(lanes: int, value: str) -> str:
    return f"<{', '.join([value] * lanes)}>"


def repeat_region() -> str:
    """Regions of the worker pool, one after the other, until threads of one have not met."""
    return f"""
define void @{REPEAT_REGION}(ptr %run, ptr %entry, ptr %bufs, ptr %vals, i32 %threads, i64 %times) nounwind {{
start:
  %counter = load ptr, ptr %bufs
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %i.next, %loop ]
  store atomic i32 0, ptr %counter seq_cst, align 4
  call void %run(ptr %entry, ptr %bufs, ptr %vals, i32 %threads, i32 %threads)
  %i.next = add i64 %i, 1
  %left = icmp ult i64 %i.next, %times
  %failed.at = getelementptr i8, ptr %counter, i64 64
  %failed = load atomic i32, ptr %failed.at seq_cst, align 4
  %met = icmp eq i32 %failed, 0
  %more = and i1 %left, %met
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""
