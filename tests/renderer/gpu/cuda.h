// The words of CUDA C++ that generated kernels use, with a meaning on a CPU. Barriers need threads.h before this, unless
// who includes it says what a thread's place, shared memory and a barrier are (tests/runtime/emulated_cuda).
#define sqrtf __builtin_sqrtf
#define sqrt __builtin_sqrt
#define truncf __builtin_truncf
#define trunc __builtin_trunc
#define fmaf __builtin_fmaf
#define fma __builtin_fma
#define __device__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__ inline
#define __launch_bounds__(threads)
#ifndef __global__
#define __global__
#define __shared__ static
#define __syncthreads() meet()
#define warp_meets() meet_in_warp()
struct Place { int x, y, z; };
static thread_local Place blockIdx, threadIdx;
#else
#define MEETS  // who includes it says how
#endif
static inline float __int_as_float(int bits) { float f; __builtin_memcpy(&f, &bits, 4); return f; }
#define VECTORS(T, name) \
  struct name##2 { T x, y; }; \
  struct name##4 { T x, y, z, w; }; \
  static inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
  static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTORS(float, float)
VECTORS(double, double)
VECTORS(signed char, char)
VECTORS(unsigned char, uchar)
VECTORS(short, short)
VECTORS(unsigned short, ushort)
VECTORS(int, int)
VECTORS(unsigned int, uint)
VECTORS(long long, longlong)
VECTORS(unsigned long long, ulonglong)
#ifdef MEETS  // else threads run one after the other, and share nothing
#include "mma.h"
#include "fetch.h"
#include "shuffle.h"
#define __shfl_xor_sync(mask, value, bit) shuffled_xor(mask, +(value), bit)
#endif
