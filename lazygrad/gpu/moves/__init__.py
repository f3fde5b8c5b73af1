"""Opts that only a grid of threads takes, or takes in another way."""
