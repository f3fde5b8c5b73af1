"""Functions of functions: derivatives, batching, checkpoints, gradients of one's own."""
