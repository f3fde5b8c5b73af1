"""The native loop that walks a captured list of kernels, in the languages of CPU and CLANG.

`lazygrad_replay(desc)` takes the address of four words: the block, the first row, how many rows, room for
arguments. The block is a list of words: addresses of buffers and integers. A row is

    the address of a kernel's entry,
    what runs its pieces on several threads (0: it runs as one), how many pieces, how many threads,
    how many buffers, how many integers, then for each of these the word of the block that holds it

so that replacing a buffer everywhere in the list is storing one word.

`lazygrad_copy` is an entry as a kernel's: it copies from its second buffer to its first as many bytes as its
first integer says, by the function (memmove) whose address is the second.

`lazygrad_loop` is an entry too, that of a loop over time: its one integer is the address of a table of words,

    how many turns, places, integers; which buffer is the working memory, from which byte on it is a block;
    how many rows,
    for each place eight words: buffer and offset in even turns, in odd ones, by how much the offset grows in
    a turn, the turn in which it is another, buffer and offset in that,
    the integers, the rows

In each turn the addresses of the places are written to the block, and the rows are walked.
"""

from __future__ import annotations

SYMBOL, COPY, LOOP = "lazygrad_replay", "lazygrad_copy", "lazygrad_loop"

LLVM = f"""\
define void @{SYMBOL}(ptr %desc) nounwind {{
start:
  %block = load ptr, ptr %desc
  %rows.at = getelementptr i64, ptr %desc, i64 1
  %rows = load ptr, ptr %rows.at
  %count.at = getelementptr i64, ptr %desc, i64 2
  %count = load i64, ptr %count.at
  %room.at = getelementptr i64, ptr %desc, i64 3
  %room = load ptr, ptr %room.at
  br label %next
next:
  %row = phi ptr [ %rows, %start ], [ %after, %done ]
  %left = phi i64 [ %count, %start ], [ %less, %done ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %end, label %read
read:
  %entry = load ptr, ptr %row
  %region.at = getelementptr i64, ptr %row, i64 1
  %region = load ptr, ptr %region.at
  %pieces.at = getelementptr i64, ptr %row, i64 2
  %pieces.word = load i64, ptr %pieces.at
  %pieces = trunc i64 %pieces.word to i32
  %threads.at = getelementptr i64, ptr %row, i64 3
  %threads.word = load i64, ptr %threads.at
  %threads = trunc i64 %threads.word to i32
  %buffers.at = getelementptr i64, ptr %row, i64 4
  %buffers = load i64, ptr %buffers.at
  %integers.at = getelementptr i64, ptr %row, i64 5
  %integers = load i64, ptr %integers.at
  %words = getelementptr i64, ptr %row, i64 6
  %all = add i64 %buffers, %integers
  br label %gather
gather:
  %i = phi i64 [ 0, %read ], [ %i.next, %copy ]
  %full = icmp eq i64 %i, %all
  br i1 %full, label %run, label %copy
copy:
  %word.at = getelementptr i64, ptr %words, i64 %i
  %word = load i64, ptr %word.at
  %from = getelementptr i64, ptr %block, i64 %word
  %value = load i64, ptr %from
  %to = getelementptr i64, ptr %room, i64 %i
  store i64 %value, ptr %to
  %i.next = add i64 %i, 1
  br label %gather
run:
  %vals = getelementptr i64, ptr %room, i64 %buffers
  %single = icmp eq ptr %region, null
  br i1 %single, label %here, label %spread
here:
  call void %entry(ptr %room, ptr %vals, i32 0, i32 1)
  br label %done
spread:
  call void %region(ptr %entry, ptr %room, ptr %vals, i32 %pieces, i32 %threads)
  br label %done
done:
  %after = getelementptr i64, ptr %words, i64 %all
  %less = sub i64 %left, 1
  br label %next
end:
  ret void
}}
"""

C = f"""\
#include <stdint.h>
typedef void (*entry_t)(void **bufs, int64_t *vals, int32_t piece, int32_t pieces);
typedef void (*region_t)(entry_t entry, void **bufs, int64_t *vals, int32_t pieces, int32_t threads);
void {SYMBOL}(int64_t *desc) {{
  int64_t *block = (int64_t *)desc[0], *row = (int64_t *)desc[1], *room = (int64_t *)desc[3];
  for (int64_t left = desc[2]; left > 0; left--) {{
    int64_t buffers = row[4], all = buffers + row[5];
    for (int64_t i = 0; i < all; i++) room[i] = block[row[6 + i]];
    entry_t entry = (entry_t)row[0];
    region_t region = (region_t)row[1];
    if (region) region(entry, (void **)room, room + buffers, (int32_t)row[2], (int32_t)row[3]);
    else entry((void **)room, room + buffers, 0, 1);
    row += 6 + all;
  }}
}}
"""

COPY_LLVM = f"""\
define void @{COPY}(ptr %bufs, ptr %vals, i32 %piece, i32 %pieces) nounwind {{
  %to = load ptr, ptr %bufs
  %from.at = getelementptr ptr, ptr %bufs, i64 1
  %from = load ptr, ptr %from.at
  %bytes = load i64, ptr %vals
  %move.at = getelementptr i64, ptr %vals, i64 1
  %move = load ptr, ptr %move.at
  call ptr %move(ptr %to, ptr %from, i64 %bytes)
  ret void
}}
"""

COPY_C = f"""\
#include <stddef.h>
#include <stdint.h>
typedef void *(*move_t)(void *to, const void *from, size_t bytes);
void {COPY}(void **bufs, int64_t *vals, int32_t piece, int32_t pieces) {{
  ((move_t)vals[1])(bufs[0], bufs[1], (size_t)vals[0]);
}}
"""

LOOP_LLVM = (
    LLVM
    + f"""\
define void @{LOOP}(ptr %bufs, ptr %vals, i32 %piece, i32 %pieces) nounwind {{
start:
  %desc = alloca [4 x i64], align 8
  %table = load ptr, ptr %vals
  %turns = load i64, ptr %table
  %places.at = getelementptr i64, ptr %table, i64 1
  %places = load i64, ptr %places.at
  %integers.at = getelementptr i64, ptr %table, i64 2
  %integers = load i64, ptr %integers.at
  %work.at = getelementptr i64, ptr %table, i64 3
  %work = load i64, ptr %work.at
  %skip.at = getelementptr i64, ptr %table, i64 4
  %skip = load i64, ptr %skip.at
  %count.at = getelementptr i64, ptr %table, i64 5
  %count = load i64, ptr %count.at
  %first = getelementptr i64, ptr %table, i64 6
  %place.words = mul i64 %places, 8
  %ints = getelementptr i64, ptr %first, i64 %place.words
  %rows = getelementptr i64, ptr %ints, i64 %integers
  %memory.at = getelementptr ptr, ptr %bufs, i64 %work
  %memory = load ptr, ptr %memory.at
  %block = getelementptr i8, ptr %memory, i64 %skip
  %behind = getelementptr i64, ptr %block, i64 %places
  %room = getelementptr i64, ptr %behind, i64 %integers
  %desc.rows = getelementptr i64, ptr %desc, i64 1
  %desc.count = getelementptr i64, ptr %desc, i64 2
  %desc.room = getelementptr i64, ptr %desc, i64 3
  store ptr %block, ptr %desc
  store ptr %rows, ptr %desc.rows
  store i64 %count, ptr %desc.count
  store ptr %room, ptr %desc.room
  br label %integer
integer:
  %i = phi i64 [ 0, %start ], [ %i.next, %write ]
  %written = icmp eq i64 %i, %integers
  br i1 %written, label %turn, label %write
write:
  %from = getelementptr i64, ptr %ints, i64 %i
  %value = load i64, ptr %from
  %to = getelementptr i64, ptr %behind, i64 %i
  store i64 %value, ptr %to
  %i.next = add i64 %i, 1
  br label %integer
turn:
  %t = phi i64 [ 0, %integer ], [ %t.next, %walk ]
  %over = icmp eq i64 %t, %turns
  br i1 %over, label %end, label %place
place:
  %p = phi i64 [ 0, %turn ], [ %p.next, %locate ]
  %located = icmp eq i64 %p, %places
  br i1 %located, label %walk, label %locate
locate:
  %p.words = mul i64 %p, 8
  %row = getelementptr i64, ptr %first, i64 %p.words
  %parity = and i64 %t, 1
  %side = mul i64 %parity, 2
  %special.at = getelementptr i64, ptr %row, i64 5
  %special = load i64, ptr %special.at
  %is.special = icmp eq i64 %special, %t
  %which = select i1 %is.special, i64 6, i64 %side
  %array.at = getelementptr i64, ptr %row, i64 %which
  %array = load i64, ptr %array.at
  %offset.at = getelementptr i64, ptr %array.at, i64 1
  %offset = load i64, ptr %offset.at
  %step.at = getelementptr i64, ptr %row, i64 4
  %step = load i64, ptr %step.at
  %grown = mul i64 %step, %t
  %moved = select i1 %is.special, i64 0, i64 %grown
  %total = add i64 %offset, %moved
  %base.at = getelementptr ptr, ptr %bufs, i64 %array
  %base = load ptr, ptr %base.at
  %address = getelementptr i8, ptr %base, i64 %total
  %place.to = getelementptr ptr, ptr %block, i64 %p
  store ptr %address, ptr %place.to
  %p.next = add i64 %p, 1
  br label %place
walk:
  call void @{SYMBOL}(ptr %desc)
  %t.next = add i64 %t, 1
  br label %turn
end:
  ret void
}}
"""
)

LOOP_C = (
    C
    + f"""\
void {LOOP}(void **bufs, int64_t *vals, int32_t piece, int32_t pieces) {{
  int64_t *table = (int64_t *)vals[0], turns = table[0], places = table[1], integers = table[2];
  int64_t *first = table + 6, *ints = first + 8 * places;
  int64_t *block = (int64_t *)((char *)bufs[table[3]] + table[4]);
  int64_t *rows = ints + integers, *room = block + places + integers;
  int64_t desc[4] = {{(int64_t)block, (int64_t)rows, table[5], (int64_t)room}};
  for (int64_t i = 0; i < integers; i++) block[places + i] = ints[i];
  for (int64_t t = 0; t < turns; t++) {{
    for (int64_t p = 0; p < places; p++) {{
      int64_t *place = first + 8 * p, *end = place + (t == place[5] ? 6 : 2 * (t & 1));
      block[p] = (int64_t)bufs[end[0]] + end[1] + (t == place[5] ? 0 : t * place[4]);
    }}
    {SYMBOL}(desc);
  }}
}}
"""
)
