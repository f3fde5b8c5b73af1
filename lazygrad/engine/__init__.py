"""Running: schedules become launches, what a jit has recorded is launched again."""
