// CUDA's half: each operation rounds (the compiler is told so by -fexcess-precision=16).
typedef _Float16 half;
