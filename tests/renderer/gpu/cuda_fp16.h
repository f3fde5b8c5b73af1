// CUDA's half: each operation rounds (the compiler is told so by -fexcess-precision=16).
typedef _Float16 half;
static inline half __hfma(half a, half b, half c) { return (half)((double)a * (double)b + (double)c); }
