"""One file per library: `make(case, arrays, dtype)` gives a function that computes the case to its end."""
