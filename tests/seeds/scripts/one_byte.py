"""A buffer of one byte: allocated, read, let go; allocated twice it says no."""

import tinygrad.helpers
from tinygrad import dtypes
from tinygrad.device import Buffer, BufferSpec

buf = Buffer(device="CLANG", size=1, dtype=dtypes.int8, options=BufferSpec(cpu_access=False)).allocate()
print(tinygrad.helpers.from_mv(buf.as_buffer())[0])
try:
    buf.allocate()
except AssertionError as error:
    print(error)
del buf
