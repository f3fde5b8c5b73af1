// The words of CUDA C++ that generated kernels use, with a meaning on a CPU: one thread at a time, without barriers.
#define sqrtf __builtin_sqrtf
#define sqrt __builtin_sqrt
#define truncf __builtin_truncf
#define trunc __builtin_trunc
#define fmaf __builtin_fmaf
#define fma __builtin_fma
#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(threads)
static inline float __int_as_float(int bits) { float f; __builtin_memcpy(&f, &bits, 4); return f; }
struct float4 { float x, y, z, w; };
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct Place { int x, y, z; };
static Place blockIdx, threadIdx;
