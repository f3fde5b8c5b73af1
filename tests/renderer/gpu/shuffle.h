// Threads of a warp that give each other what they hold, on a CPU: each leaves its own, they meet, and each takes that of
// another. Who watches memory (tests/runtime/emulated_cuda/machine.cpp) defines SHUFFLES, and does this itself.
#ifndef SHUFFLES
static unsigned char shuffled[1024][16];
static inline void machine_shuffle(const void* own, void* other, unsigned size, unsigned mask, unsigned bit) {
  __builtin_memcpy(shuffled[thread_number], own, size);
  meet_in_warp();
  __builtin_memcpy(other, shuffled[thread_number ^ bit], size);
  meet_in_warp();
}
#endif
template <class T> __attribute__((no_sanitize_thread)) static inline T shuffled_xor(unsigned mask, T own, unsigned bit) {
  T other;
  machine_shuffle(&own, &other, sizeof(T), mask, bit);
  return other;
}
