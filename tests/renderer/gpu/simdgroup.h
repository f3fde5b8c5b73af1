// Metal's SIMD-group matrices on a CPU. A thread has two of the 64 elements: which ones Metal does not say, so here they are
// in an order of their own, and what counts on another one is wrong.
#define simdgroup_barrier(flags) meet_in_warp()
template <class T> struct simdgroup_matrix { T own[2]; };
typedef simdgroup_matrix<float> simdgroup_float8x8;
typedef simdgroup_matrix<_Float16> simdgroup_half8x8;
static unsigned matrix_place(unsigned n) { return (2 * (thread_number % 32) + n) * 29 % 64; }
template <class T, int, int> static simdgroup_matrix<T> make_filled_simdgroup_matrix(T value) { return {{value, value}}; }
template <class T>
static void simdgroup_load(simdgroup_matrix<T>& to, const T* from, unsigned long row, ulong2 origin, bool transposed) {
  for (unsigned n = 0; n < 2; n++) {
    unsigned long i = matrix_place(n) / 8, j = matrix_place(n) % 8;
    to.own[n] = transposed ? from[(origin.y + j) * row + origin.x + i] : from[(origin.y + i) * row + origin.x + j];
  }
}
template <class T> static void simdgroup_store(simdgroup_matrix<T> from, T* to, unsigned long row) {
  for (unsigned n = 0; n < 2; n++) to[matrix_place(n) / 8 * row + matrix_place(n) % 8] = from.own[n];
}
static double matrices_of_warps[32][2][64];
template <class T, class Factor> static void simdgroup_multiply_accumulate(
    simdgroup_matrix<T>& to, simdgroup_matrix<Factor>& a, simdgroup_matrix<Factor>& b, simdgroup_matrix<T>& c) {
  auto& both = matrices_of_warps[thread_number / 32];
  meet_in_warp();
  for (unsigned n = 0; n < 2; n++) both[0][matrix_place(n)] = a.own[n], both[1][matrix_place(n)] = b.own[n];
  meet_in_warp();
  for (unsigned n = 0; n < 2; n++) {
    unsigned i = matrix_place(n) / 8, j = matrix_place(n) % 8;
    double sum = c.own[n];
    for (unsigned k = 0; k < 8; k++) sum += both[0][8 * i + k] * both[1][8 * k + j];
    to.own[n] = (T)sum;
  }
}
