// What executes kernels of CUDA on a CPU, one thread after the other, and watches every access to memory. Kernels are
// compiled as for a thread sanitizer (-fsanitize=thread) without its library: the functions that it would call are here.
//
// The threads of a workgroup that meets at barriers are fibers. One runs until its next barrier, then the next one does;
// the accesses between two barriers of all are an *epoch*. Two threads that touch a byte in one epoch, one of them writing,
// or that belong to different workgroups, are a race, whatever order they happened to run in.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unordered_map>
#include <vector>

struct Place { int x, y, z; };
struct Range { uintptr_t begin, end, number; };
extern "C" Place blockIdx, threadIdx;
Place blockIdx, threadIdx;

enum { FINE, ILLEGAL_ADDRESS, MISALIGNED_ADDRESS };
static const size_t STACK = 1 << 16, SHARED = 1 << 18, GUARD = 4096;

static std::vector<Range> memory;  // what the device has, sorted
static std::vector<Range> arrays;  // shared memory of this workgroup
static char* shared_memory;
static Range stack;                // of the thread that runs
static int fault, checks, races;
static unsigned long looked_at;    // accesses that were checked, of all launches
static char* report;
static size_t room;
static const char* kernel;

struct Who { int block, thread, epoch; bool operator==(const Who& o) const { return block == o.block && thread == o.thread; } };
static Who now;
struct Cell { Who writer{-1, 0, 0}, reader{-1, 0, 0}, other{-1, 0, 0}; int coming = 0; bool unfenced = false; };
static std::unordered_map<uintptr_t, Cell> cells, shared_cells;
static std::vector<std::vector<uintptr_t>> unfenced;  // of each thread what it wrote and `wgmma` does not see yet

static jmp_buf back;
static bool in_fiber;
static ucontext_t scheduler;

static void say(const char* format, ...) {
  char line[400];
  va_list list;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  size_t used = strlen(report);
  if (used + strlen(line) + 2 < room) sprintf(report + used, "%s\n", line);
}

[[noreturn]] static void stop(int code) {
  fault = code;
  if (in_fiber) setcontext(&scheduler);
  longjmp(back, 1);
}

static const Range* found(const std::vector<Range>& ranges, uintptr_t at) {
  size_t low = 0, high = ranges.size();
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (ranges[middle].end <= at) low = middle + 1; else high = middle;
  }
  return low < ranges.size() && ranges[low].begin <= at ? &ranges[low] : nullptr;
}

static bool at_once(const Who& a, const Who& b) {
  return a.block >= 0 && !(a == b) && (a.block != b.block || a.epoch == b.epoch);
}

static void note(Cell& cell, bool write, bool is_shared, uintptr_t offset, int number) {
  const Who* with = at_once(cell.writer, now) ? &cell.writer : nullptr;
  if (write && !with) with = at_once(cell.reader, now) ? &cell.reader : at_once(cell.other, now) ? &cell.other : nullptr;
  if (cell.coming && ++races <= 4)
    say("%s: thread %d of workgroup %d %s byte %lu of shared array %d, to which a copy is on the way that nobody has waited for",
        kernel, now.thread, now.block, write ? "writes" : "reads", (unsigned long)offset, number);
  if (with && ++races <= 4)
    say("race in %s: thread %d of workgroup %d %s byte %lu of %s %d, which thread %d of workgroup %d %s with no barrier between",
        kernel, now.thread, now.block, write ? "writes" : "reads", (unsigned long)offset, is_shared ? "shared array" : "buffer",
        number, with->thread, with->block, with == &cell.writer ? "writes" : "reads");
  if (write && is_shared) {
    if ((int)unfenced.size() <= now.thread) unfenced.resize(now.thread + 1);
    cell.unfenced = true;
    unfenced[now.thread].push_back(arrays[number].begin + offset);
  }
  if (write) cell.writer = now;
  else if (!(cell.reader == now)) { cell.other = cell.reader; cell.reader = now; }
  else cell.reader = now;
}

static void touch(void* pointer, size_t size, bool write) {
  uintptr_t at = (uintptr_t)pointer;
  if (at >= stack.begin && at < stack.end) return;
  if (at - (uintptr_t)&blockIdx < sizeof blockIdx || at - (uintptr_t)&threadIdx < sizeof threadIdx) return;
  uintptr_t arena = (uintptr_t)shared_memory;
  bool is_shared = at >= arena && at < arena + SHARED;
  const std::vector<Range>& ranges = is_shared ? arrays : memory;
  const Range* range = found(ranges, at);
  if (!range || at + size > range->end) {
    say("%s: thread %d of workgroup %d %s %lu bytes outside of %s", kernel, now.thread, now.block,
        write ? "writes" : "reads", (unsigned long)size, is_shared ? "the shared arrays" : "all buffers");
    stop(ILLEGAL_ADDRESS);
  }
  if (size <= 16 && at % size) {
    say("%s: thread %d of workgroup %d touches %lu bytes that do not begin at a multiple of that", kernel, now.thread, now.block, (unsigned long)size);
    stop(MISALIGNED_ADDRESS);
  }
  if (!checks) return;
  looked_at++;
  for (size_t n = 0; n < size; n++)
    note((is_shared ? shared_cells : cells)[at + n], write, is_shared, at + n - range->begin, int(range->number));
}

extern "C" {
// ---- what a kernel calls

#define ACCESS(size) \
  void __tsan_read##size(void* p) { touch(p, size, false); } \
  void __tsan_write##size(void* p) { touch(p, size, true); } \
  void __tsan_unaligned_read##size(void* p) { touch(p, size, false); } \
  void __tsan_unaligned_write##size(void* p) { touch(p, size, true); }
ACCESS(1) ACCESS(2) ACCESS(4) ACCESS(8) ACCESS(16)
void __tsan_read_range(void* p, unsigned long size) { touch(p, size, false); }
void __tsan_write_range(void* p, unsigned long size) { touch(p, size, true); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

// A vector in memory begins at a multiple of its size.
void machine_vector(const void* p, unsigned long size) {
  if ((uintptr_t)p % size) {
    say("%s: a vector of %lu bytes does not begin at a multiple of that", kernel, size);
    stop(MISALIGNED_ADDRESS);
  }
}

// Arrays are apart from each other, and hold NaN at first.
void* machine_shared(unsigned long number, unsigned long bytes) {
  while (arrays.size() <= number) {
    uintptr_t begin = arrays.empty() ? (uintptr_t)shared_memory + GUARD : (arrays.back().end + 2 * GUARD) / 1024 * 1024;
    arrays.push_back({begin, begin, arrays.size()});
  }
  Range& range = arrays[number];
  if (range.begin == range.end) range.end = range.begin + bytes;
  return (void*)range.begin;
}

// A copy is done when its thread waits for it. Until then there are ones where it goes, and nobody may look there.
struct Fetch { char* to; const char* from; unsigned size; bool valid; };
static std::vector<std::vector<std::vector<Fetch>>> fetches;  // of each thread its groups
static std::vector<std::vector<Fetch>>& own_fetches() {
  if ((int)fetches.size() <= now.thread) fetches.resize(now.thread + 1);
  if (fetches[now.thread].empty()) fetches[now.thread].emplace_back();
  return fetches[now.thread];
}
static void coming(const Fetch& f, int more) {
  if (checks) for (unsigned n = 0; n < f.size; n++) shared_cells[(uintptr_t)f.to + n].coming += more;
}

void machine_fetch(void* to, const void* from, unsigned size, bool valid) {
  touch(to, size, true);
  if (valid) touch((void*)from, size, false);
  memset(to, 255, size);
  own_fetches().back().push_back({(char*)to, (const char*)from, size, valid});
  coming(own_fetches().back().back(), 1);
}
void machine_commit() { own_fetches().emplace_back(); }
void machine_wait(int groups) {
  if (groups == 0) machine_commit();
  auto& own = own_fetches();
  while ((int)own.size() > groups + 1) {
    for (auto& f : own.front()) {
      coming(f, -1);
      touch(f.to, f.size, true);
      if (f.valid) { touch((void*)f.from, f.size, false); memcpy(f.to, f.from, f.size); } else memset(f.to, 0, f.size);
    }
    own.erase(own.begin());
  }
}

// ---- `wgmma`: products of matrices that four warps begin together and that read shared memory by descriptors. A product
// is done when its thread waits for it. Until then its sums are NaN, and what it reads may not be written.

enum { F16, BF16, TF32, S8, U8 };
struct Product { std::vector<void*> sums; int columns, steps, kind, turned[2]; uint64_t at[2]; };
struct Own { std::vector<std::vector<Product>> groups{1}; std::unordered_map<void*, uint32_t> sums; bool fenced = false; std::vector<uint64_t> issued; };
static std::vector<Own> products;  // of each thread
static Own& own_products() {
  if ((int)products.size() <= now.thread) products.resize(now.thread + 1);
  return products[now.thread];
}

// Where an element of a matrix lies: "Matrix Descriptor", "Strides" and "Canonical Layouts" in PTX ISA. `outer` counts rows
// of the first matrix or columns of the second.
static const char* element_at(uint64_t descriptor, int turned, int size, int outer, int step) {
  uint64_t start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff) << 4;
  int mode = descriptor >> 62, line = mode == 1 ? 128 : mode == 2 ? 64 : mode == 3 ? 32 : 16;
  uint64_t at;
  if (turned) {  // lines go along rows or columns
    int place = outer * size;
    at = mode ? place / line * leading + step / 8 * stride : place / line * stride + step / 8 * leading;
    at += step % 8 * line + place % line;
  } else {
    int place = step * size;
    at = outer / 8 * stride + outer % 8 * line + (mode ? place : place / 16 * leading + place % 16);
  }
  at += start;
  if (mode) at ^= (at >> 7 & (line / 16 - 1)) << 4;  // the bits of the address from the fifth and from the eighth on
  return shared_memory + at;
}

static double number_at(const char* at, int kind) {
  uint32_t bits = 0;
  memcpy(&bits, at, kind == TF32 ? 4 : kind == S8 || kind == U8 ? 1 : 2);
  if (kind == S8) return (int8_t)bits;
  if (kind == U8) return (uint8_t)bits;
  if (kind == F16) {
    int exponent = bits >> 10 & 31, digits = bits & 1023;
    double value = exponent == 31 ? (digits ? __builtin_nan("") : __builtin_inf())
                   : exponent ? __builtin_ldexp(1024 + digits, exponent - 25) : __builtin_ldexp(digits, -24);
    return bits >> 15 ? -value : value;
  }
  bits = kind == BF16 ? bits << 16 : bits & 0xffffe000u;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

static int item(int kind) { return kind == TF32 ? 4 : kind == S8 || kind == U8 ? 1 : 2; }

// What a thread has of a product: "Register Fragments", PTX ISA. Reads what it needs; computes if it is the time.
static void multiply(const Product& p, std::unordered_map<void*, uint32_t>* sums) {
  int size = item(p.kind), warp = now.thread / 32 % 4, g = now.thread % 32 / 4, t = now.thread % 4;
  auto line = [&](int which, int outer) {
    std::vector<double> found;
    for (int k = 0; k < p.steps; k++) {
      const char* at = element_at(p.at[which], p.turned[which], size, outer, k);
      touch((void*)at, size, false);
      if (checks && shared_cells[(uintptr_t)at].unfenced && ++races <= 4)
        say("%s: thread %d of workgroup %d multiplies what was stored with no fence between the proxies", kernel, now.thread, now.block);
      found.push_back(number_at(at, p.kind));
    }
    return found;
  };
  std::vector<double> rows[2] = {line(0, 16 * warp + g), line(0, 16 * warp + g + 8)};
  for (int c = 0; c < p.columns / 8; c++) for (int v = 0; v < 2; v++) {
    std::vector<double> column = line(1, 8 * c + 2 * t + v);
    for (int u = 0; u < 2 && sums; u++) {
      uint32_t& bits = (*sums)[p.sums[4 * c + 2 * u + v]];
      double more = 0;
      for (int k = 0; k < p.steps; k++) more += rows[u][k] * column[k];
      if (p.kind == S8 || p.kind == U8) { bits += (uint32_t)(int64_t)more; continue; }
      float sum;
      memcpy(&sum, &bits, 4);
      sum = (float)(sum + more);
      memcpy(&bits, &sum, 4);
    }
  }
}

unsigned long machine_shared_address(const void* p) {
  uintptr_t at = (uintptr_t)p - (uintptr_t)shared_memory;
  if (at >= SHARED) { say("%s: thread %d makes a descriptor of what is no shared memory", kernel, now.thread); stop(ILLEGAL_ADDRESS); }
  return at;
}
void machine_proxy_fence() {
  if ((int)unfenced.size() <= now.thread) return;
  for (uintptr_t at : unfenced[now.thread]) if (shared_cells[at].writer == now) shared_cells[at].unfenced = false;
  unfenced[now.thread].clear();
}
void machine_group_fence() { own_products().fenced = true; }
void machine_group_product(void** sums, int columns, int steps, int kind, int rows_turned, int columns_turned, uint64_t a, uint64_t b) {
  Own& own = own_products();
  if (checks && !own.fenced && ++races <= 4)
    say("%s: thread %d of workgroup %d multiplies with no wgmma.fence after it had the sums", kernel, now.thread, now.block);
  Product p{std::vector<void*>(sums, sums + columns / 2), columns, steps, kind, {rows_turned, columns_turned}, {a, b}};
  for (void* sum : p.sums) if (!own.sums.count(sum)) {
    memcpy(&own.sums[sum], sum, 4);
    memset(sum, 255, 4);
  }
  own.issued.push_back(a); own.issued.push_back(b);
  if (checks) multiply(p, nullptr);
  own_products().groups.back().push_back(p);
}
void machine_group_commit() { own_products().groups.emplace_back(); }
void machine_group_wait(int groups) {
  Own& own = own_products();
  own.fenced = false;
  while ((int)own.groups.size() > groups + 1) {
    for (auto& p : own.groups.front()) multiply(p, &own.sums);
    own.groups.erase(own.groups.begin());
  }
  std::unordered_map<void*, uint32_t> waiting;
  for (auto& group : own.groups) for (auto& p : group) for (void* sum : p.sums) waiting[sum] = own.sums[sum];
  for (auto& sum : own.sums) if (!waiting.count(sum.first)) memcpy(sum.first, &sum.second, 4);
  own.sums = waiting;
}
static void end_of_products() {
  Own& own = own_products();
  bool left = false;
  for (auto& group : own.groups) left |= !group.empty();
  if (left && checks && ++races <= 4)
    say("%s: thread %d of workgroup %d ends and has not waited for its products", kernel, now.thread, now.block);
  int first = now.thread / 128 * 128;
  if (now.thread != first && own.issued != products[first].issued && checks && ++races <= 4)
    say("%s: threads %d and %d of workgroup %d multiply different matrices", kernel, first, now.thread, now.block);
}

static std::vector<ucontext_t> fibers;
static std::vector<char*> stacks;
static int running;
static void (*entry)(void**);
static void** arguments;

// Where a thread has stopped. What threads of a warp give each other orders no access to memory.
enum { NOWHERE, AT_BARRIER, IN_WARP, AT_END };
static std::vector<char> stopped;
static std::vector<unsigned> shuffles;  // of each thread how many it has done: odd ones have places of their own
static unsigned char left_there[2][1024][16];

static void stop_at(char what) {
  stopped[running] = what;
  swapcontext(&fibers[running], &scheduler);
}

void machine_meet() { stop_at(AT_BARRIER); }
void machine_warp_meets() { stop_at(IN_WARP); }

void machine_shuffle(const void* own, void* other, unsigned size, unsigned mask, unsigned bit) {
  int thread = running, threads = stopped.size(), from = thread ^ int(bit), warp = thread / 32 * 32;
  unsigned there = threads - warp >= 32 ? ~0u : (1u << (threads - warp)) - 1;
  if (mask != there) say("%s: thread %d of workgroup %d says that threads %x of its warp take part, and these are %x", kernel, thread, now.block, mask, there);
  if (from >= threads || from / 32 != thread / 32) {
    say("%s: thread %d of workgroup %d takes what thread %d has, which is none of its warp", kernel, thread, now.block, from);
    stop(ILLEGAL_ADDRESS);
  }
  unsigned turn = shuffles[thread]++ & 1;
  memcpy(left_there[turn][thread], own, size);
  stop_at(IN_WARP);
  memcpy(other, left_there[turn][from], size);
}

// Whether all threads go on; those of a warp that have met do before the others.
static bool goes_on(int threads) {
  bool some = false, all = true;
  for (int warp = 0; warp < threads; warp += 32) {
    int end = warp + 32 < threads ? warp + 32 : threads, waiting = 0;
    for (int n = warp; n < end; n++) waiting += stopped[n] == IN_WARP;
    if (waiting && waiting != end - warp) {
      say("%s: of %d threads of a warp %d wait at a shuffle, or at matrices, that the others do not reach", kernel, end - warp, waiting);
      fault = ILLEGAL_ADDRESS;
      return false;
    }
    some |= waiting != 0;
    all &= waiting == 0;
  }
  for (int n = 0; n < threads; n++) if (stopped[n] == IN_WARP || (!some && stopped[n] == AT_BARRIER)) stopped[n] = NOWHERE;
  return all;
}

static void fiber() {
  entry(arguments);
  stopped[running] = AT_END;
  for (auto& group : own_fetches()) if (!group.empty() && checks && ++races <= 4)
    say("%s: thread %d of workgroup %d ends and has not waited for its copies", kernel, now.thread, now.block);
  end_of_products();
  setcontext(&scheduler);
}

static void place(int thread, const unsigned* group) {
  threadIdx = {int(thread % group[0]), int(thread / group[0] % group[1]), int(thread / group[0] / group[1])};
  now.thread = thread;
}

static void run_meeting(int threads, const unsigned* group) {
  while ((int)stacks.size() < threads)
    stacks.push_back((char*)mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  fibers.resize(threads > (int)fibers.size() ? threads : fibers.size());
  stopped.assign(threads, NOWHERE);
  shuffles.assign(threads, 0);
  for (int n = 0; n < threads; n++) {
    getcontext(&fibers[n]);
    fibers[n].uc_stack.ss_sp = stacks[n];
    fibers[n].uc_stack.ss_size = STACK;
    makecontext(&fibers[n], fiber, 0);
  }
  in_fiber = true;
  for (int left = threads; left && !fault;) {
    for (running = 0; running < threads && !fault; running++) {
      if (stopped[running] != NOWHERE) continue;
      place(running, group);
      stack = {(uintptr_t)stacks[running], (uintptr_t)stacks[running] + STACK};
      swapcontext(&scheduler, &fibers[running]);
    }
    if (fault || !goes_on(threads)) continue;
    int before = left;
    left = 0;
    for (int n = 0; n < threads; n++) left += stopped[n] != AT_END;
    if (checks && left && (left != before || left != threads))
      say("%s: of %d threads %d wait at a barrier that the others do not reach", kernel, threads, left);
    now.epoch++;
  }
  in_fiber = false;
}

static void run_in_turn(int threads, const unsigned* group) {
  char here;
  stack = {(uintptr_t)&here - (1 << 22), (uintptr_t)&here + (1 << 12)};
  if (setjmp(back)) return;
  for (volatile int n = 0; n < threads; n++) {
    place(n, group);
    entry(arguments);
  }
}

// ---- what the driver calls

unsigned long machine_looked_at() { return looked_at; }

int machine_launch(const char* name, void (*function)(void**), void** params, const unsigned* grid, const unsigned* group,
                   int meets, const Range* ranges, int count, int check, char* text, unsigned long bytes) {
  kernel = name; entry = function; arguments = params; report = text; room = bytes; checks = check;
  if (!shared_memory) shared_memory = (char*)mmap(nullptr, SHARED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memory.assign(ranges, ranges + count);
  cells.clear();
  fault = races = 0;
  report[0] = 0;
  now = {-1, 0, 0};
  int threads = group[0] * group[1] * group[2];
  for (unsigned z = 0; z < grid[2]; z++) for (unsigned y = 0; y < grid[1]; y++) for (unsigned x = 0; x < grid[0]; x++) {
    blockIdx = {(int)x, (int)y, (int)z};
    now.block++;
    now.epoch = 0;
    arrays.clear();
    fetches.clear();
    unfenced.clear();
    products.clear();
    shared_cells.clear();
    memset(shared_memory, 255, SHARED);
    if (meets) run_meeting(threads, group); else run_in_turn(threads, group);
    if (fault) return fault;
  }
  if (races > 4) say("%d races in all", races);
  return 0;
}
}
