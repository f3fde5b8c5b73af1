"""A kernel's program: compiled once, kept in memory and on disk, loaded on each device that runs it."""
