"""The same computations in lazygrad and in the libraries people would use instead, side by side."""
