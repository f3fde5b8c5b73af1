"""A second of sleep (a hundredth here), profiled to a file and read back."""

import os
import pstats
import tempfile
import time

from tinygrad import helpers

PROFILE_FN = "out.proc"
os.chdir(tempfile.mkdtemp())
with helpers.Profiling(
    enabled=True, fn=(fn := os.path.join(os.getcwd(), PROFILE_FN) if PROFILE_FN else None)
):
    time.sleep(0.01)
pstats.Stats(PROFILE_FN).strip_dirs().sort_stats("tottime").print_stats(1)
