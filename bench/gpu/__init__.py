"""Ten minutes on an NVIDIA GPU, prepared: is it right there, how fast is it, what did it believe."""
