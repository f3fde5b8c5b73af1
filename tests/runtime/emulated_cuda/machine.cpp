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
struct Cell { Who writer{-1, 0, 0}, reader{-1, 0, 0}, other{-1, 0, 0}; int coming = 0; };
static std::unordered_map<uintptr_t, Cell> cells, shared_cells;

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
    uintptr_t begin = arrays.empty() ? (uintptr_t)shared_memory + GUARD : (arrays.back().end + 2 * GUARD) / 256 * 256;
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

static std::vector<ucontext_t> fibers;
static std::vector<char> done;
static std::vector<char*> stacks;
static int running;
static void (*entry)(void**);
static void** arguments;

void machine_meet() { swapcontext(&fibers[running], &scheduler); }

static void fiber() {
  entry(arguments);
  done[running] = 1;
  for (auto& group : own_fetches()) if (!group.empty() && checks && ++races <= 4)
    say("%s: thread %d of workgroup %d ends and has not waited for its copies", kernel, now.thread, now.block);
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
  done.assign(threads, 0);
  for (int n = 0; n < threads; n++) {
    getcontext(&fibers[n]);
    fibers[n].uc_stack.ss_sp = stacks[n];
    fibers[n].uc_stack.ss_size = STACK;
    makecontext(&fibers[n], fiber, 0);
  }
  in_fiber = true;
  for (int left = threads; left && !fault; now.epoch++) {
    int before = left;
    for (running = 0; running < threads && !fault; running++) {
      if (done[running]) continue;
      place(running, group);
      stack = {(uintptr_t)stacks[running], (uintptr_t)stacks[running] + STACK};
      swapcontext(&scheduler, &fibers[running]);
      left -= done[running];
    }
    if (checks && !fault && left && (left != before || left != threads))
      say("%s: of %d threads %d wait at a barrier that the others do not reach", kernel, threads, left);
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
    shared_cells.clear();
    memset(shared_memory, 255, SHARED);
    if (meets) run_meeting(threads, group); else run_in_turn(threads, group);
    if (fault) return fault;
  }
  if (races > 4) say("%d races in all", races);
  return 0;
}
}
