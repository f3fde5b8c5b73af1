"""What this machine's processor does, measured by small kernels of our own: in, nothing; out, a `Row`.

`texts.py` writes them in LLVM IR, one idea each; `probes.py` says what each figure of a row is measured with;
`measure.py` runs them in turn and makes the row; `beside.py` prints it beside the data sheet's.
"""

from .beside import beside_the_data_sheet
from .measure import SECONDS, measure

__all__ = ["SECONDS", "beside_the_data_sheet", "measure"]
