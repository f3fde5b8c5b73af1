"""Ranks whose machines were measured apart: `measured.py FOLDER`. Each prints whose row it goes by."""

import os
import sys
from dataclasses import replace
from pathlib import Path

from lazygrad import Device, distributed
from lazygrad.config import CACHEDB
from lazygrad.runtime._measured import keep, measured_row, processor_name
from lazygrad.target.measured import SHIPPED, shipped_row

rank = os.environ["OMPI_COMM_WORLD_RANK"]
CACHEDB.set_default(str(Path(sys.argv[1], rank, "cache.db")))
shipped = shipped_row(SHIPPED[0])
assert shipped is not None
keep(replace(shipped, processor=processor_name(), machine=f"the machine of rank {rank}"))
distributed.init()
row = measured_row(Device[Device.DEFAULT].renderer.target.arch)
print(f"rank {rank} goes by {None if row is None else row.machine}\n", end="", flush=True)
