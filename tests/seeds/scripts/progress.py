"""A progress bar that is moved by hand, on the standard output."""

import sys

import tinygrad.helpers

sys.stderr = sys.stdout
iterable = [_ for _ in range(10)]  # noqa: C416
tqdm = tinygrad.helpers.tqdm(iterable=iterable, desc="list iterations", unit="  iterations", unit_scale=True)
for _n in range(len(iterable)):
    tqdm.update(n=1, close=True)
