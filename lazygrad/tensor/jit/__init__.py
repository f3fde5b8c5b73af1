"""What the engine's jit asks of tensors."""
