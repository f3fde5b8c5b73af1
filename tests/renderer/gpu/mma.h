// PTX's `mma` on a CPU, in the place of the functions of that name in a kernel's text: the threads of a warp leave what
// they hold, meet, and each takes its sums. A warp is 4 threads along x times 8 along y.
static unsigned mma_words[1024][6];
template <int STEPS, int BYTES, class Wide, class Total, class Read>
__attribute__((no_sanitize_thread)) static void mma(Total* sums, const unsigned* words, Read read) {
  const int packed = 4 / BYTES, halves = STEPS / (4 * packed);
  int id = threadIdx.x + 4 * threadIdx.y + 32 * threadIdx.z, warp = id / 32 * 32, g = id % 32 / 4, t = id % 4;
  for (int n = 0; n < 3 * halves; n++) mma_words[id][n] = words[n];
  warp_meets();
  for (int u = 0; u < 2; u++) for (int v = 0; v < 2; v++) {
    Wide sum = sums[2 * u + v];
    for (int k = 0; k < STEPS; k++) {
      int half = k / (4 * packed), other = k / packed % 4, shift = 8 * BYTES * (k % packed);
      unsigned a = mma_words[warp + 4 * g + other][2 * half + u] >> shift;
      unsigned b = mma_words[warp + 4 * (2 * t + v) + other][2 * halves + half] >> shift;
      sum += (Wide)read(a) * (Wide)read(b);
    }
    sums[2 * u + v] = (Total)sum;
  }
  warp_meets();
}
#define MMA(name, STEPS, BYTES, Wide, Total, read) \
  template <class... Words> __attribute__((no_sanitize_thread)) static void name(Total& c0, Total& c1, Total& c2, Total& c3, Words... given) { \
    unsigned words[] = {given...}; \
    Total sums[] = {c0, c1, c2, c3}; \
    mma<STEPS, BYTES, Wide>(sums, words, [](unsigned bits) { return read; }); \
    c0 = sums[0]; c1 = sums[1]; c2 = sums[2]; c3 = sums[3]; \
  }
template <class T, class Bits> static T mma_as(Bits bits) { T value; __builtin_memcpy(&value, &bits, sizeof value); return value; }
MMA(mma_half_8, 8, 2, double, float, mma_as<_Float16>((unsigned short)bits))
MMA(mma_half_16, 16, 2, double, float, mma_as<_Float16>((unsigned short)bits))
MMA(mma_bfloat16_16, 16, 2, double, float, mma_as<float>(bits << 16))
// PTX's `ldmatrix`: thread 8m + r says where row r of matrix m begins, 16 bytes that each thread gets words of.
static const char* matrix_rows[1024];
__attribute__((no_sanitize_thread, noinline)) static int matrix_row_is(const void* at) {
  int id = threadIdx.x + 4 * threadIdx.y + 32 * threadIdx.z;
  matrix_rows[id] = (const char*)at;
  return id;
}
__attribute__((no_sanitize_thread, noinline)) static const char* matrix_row(int id) { return matrix_rows[id]; }
template <class T> static T matrix_at_row(int id, int byte) { return *(const T*)(matrix_row(id) + byte); }
template <int COUNT, bool TURNED> static void ldmatrix(const void* at, unsigned* words) {
#ifdef FETCHES
  machine_vector(at, 16);
#endif
  int id = matrix_row_is(at), g = id % 32 / 4, t = id % 4;
  warp_meets();
  for (int m = 0; m < COUNT; m++) {
    int first = id / 32 * 32 + 8 * m;
    if (TURNED) words[m] = matrix_at_row<unsigned short>(first + 2 * t, 2 * g) | (unsigned)matrix_at_row<unsigned short>(first + 2 * t + 1, 2 * g) << 16;
    else words[m] = matrix_at_row<unsigned>(first + g, 4 * t);
  }
  warp_meets();
}
#define LDMATRIX(suffix, TURNED) \
  static inline void ldmatrix_1##suffix(unsigned& a, const void* at) { ldmatrix<1, TURNED>(at, &a); } \
  static inline void ldmatrix_2##suffix(unsigned& a, unsigned& b, const void* at) { unsigned w[2]; ldmatrix<2, TURNED>(at, w); a = w[0]; b = w[1]; } \
  static inline void ldmatrix_4##suffix(unsigned& a, unsigned& b, unsigned& c, unsigned& d, const void* at) { \
    unsigned w[4]; ldmatrix<4, TURNED>(at, w); a = w[0]; b = w[1]; c = w[2]; d = w[3]; \
  }
LDMATRIX(, false)
LDMATRIX(_turned, true)
static float e4m3(unsigned char bits) {
  int exponent = bits >> 3 & 15, digits = bits & 7;
  float value = exponent == 15 && digits == 7 ? __builtin_nanf("") : exponent ? __builtin_ldexpf(8 + digits, exponent - 10) : __builtin_ldexpf(digits, -9);
  return bits & 128 ? -value : value;
}
MMA(mma_float_8, 8, 4, double, float, mma_as<float>(bits & 0xffffe000u))
MMA(mma_fp8e4m3_32, 32, 1, double, float, e4m3(bits))
MMA(mma_fp8e5m2_32, 32, 1, double, float, mma_as<_Float16>((unsigned short)(bits << 8)))
MMA(mma_char_32, 32, 1, long long, int, (signed char)bits)
MMA(mma_uchar_32, 32, 1, long long, int, (unsigned char)bits)
