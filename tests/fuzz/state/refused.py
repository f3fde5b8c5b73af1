"""What a capture cannot compare from call to call: clocks, files, random numbers, iterators."""

from __future__ import annotations

import itertools
import os
import random
import time

import numpy as np

from tests.fuzz.state.kinds import Config, refused


@refused
def a_random_number():
    return lambda: random.uniform(0, 1)


@refused
def a_random_number_by_another_name():
    draw = random.random
    return lambda: draw()


@refused
def a_random_choice():
    return lambda: random.choice([1.0, 2.0])


@refused
def random_bytes():
    return lambda: float(os.urandom(1)[0])


@refused
def a_random_number_of_an_object():
    held = Config()
    held.source = random.Random(3)
    return lambda: held.source.random()


@refused
def a_random_number_of_numpy():
    return lambda: float(np.random.rand())


@refused
def a_random_number_of_numpys_generator():
    held = Config()
    held.source = np.random.default_rng(3)
    return lambda: held.source.normal()


@refused
def a_new_generator_of_numpy():
    return lambda: float(np.random.default_rng().normal())


@refused
def an_iterator():
    held = iter([1.0] * 100)
    return lambda: next(held)


@refused
def an_iterator_of_an_object():
    config = Config()
    config.source = [itertools.count()]

    def read():
        total = 0.0
        for each in config.source[0]:
            total += each
            break
        return total

    return read


@refused
def a_generator():
    held = {"g": (float(n) for n in range(100))}
    return lambda: next(held["g"])


@refused
def a_clock():
    return lambda: time.time() % 1.0


@refused
def a_clock_by_another_name():
    clock = time.perf_counter
    return lambda: clock() % 1.0


@refused
def a_file():
    return lambda: float(len(open(__file__).read()))


@refused
def a_file_by_its_path():
    import pathlib

    path = pathlib.Path(__file__)
    return lambda: float(len(path.read_text()) + path.stat().st_size)


@refused
def a_file_that_is_open():
    held = open(__file__)  # noqa: SIM115
    return lambda: float(len(held.readline()))


@refused
def a_large_array():
    held = np.ones(1 << 19, np.float64)
    return lambda: float(held[7])


@refused
def a_very_long_list():
    held = [1.0] * 10_000
    return lambda: held[7]
