// PTX's `cp.async` on a CPU, in the place of the functions of those names in a kernel's text. A copy is done as late as it
// may be, when its thread waits for it; until then there is nothing but ones where it goes. Who watches memory
// (tests/runtime/emulated_cuda/machine.cpp) defines FETCHES, and does this itself.
#ifndef FETCHES
#include <vector>
struct Fetch { void* to; const void* from; unsigned size; bool valid; };
static thread_local std::vector<std::vector<Fetch>> fetches(1);
static inline void machine_fetch(void* to, const void* from, unsigned size, bool valid) {
  __builtin_memset(to, 255, size);
  fetches.back().push_back({to, from, size, valid});
}
static inline void machine_commit() { fetches.emplace_back(); }
static inline void machine_wait(int groups) {
  if (groups == 0) machine_commit();
  while ((int)fetches.size() > groups + 1) {
    for (auto& f : fetches.front()) if (f.valid) __builtin_memcpy(f.to, f.from, f.size); else __builtin_memset(f.to, 0, f.size);
    fetches.erase(fetches.begin());
  }
}
#endif
#define FETCH(size) \
  static inline void fetch_##size(void* to, const void* from) { machine_fetch(to, from, size, true); } \
  static inline void fetch_##size##_where(void* to, const void* from, bool valid) { machine_fetch(to, from, size, valid); }
FETCH(4)
FETCH(8)
FETCH(16)
static inline void fetch_commit() { machine_commit(); }
static inline void fetch_wait_0() { machine_wait(0); }
static inline void fetch_wait_1() { machine_wait(1); }
static inline void fetch_wait_2() { machine_wait(2); }
