"""The hardware that code is made for: what each machine has, and the rows of those that are known.

No device is opened here, and no driver asked: this stands below both.
"""

from .facts import Dot, Target
from .processors import PROCESSORS, Processor, refined

__all__ = ["PROCESSORS", "Dot", "Processor", "Target", "refined"]
