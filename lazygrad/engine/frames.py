"""Which of the frames on the stack are the user's: those of files outside of this package."""

from __future__ import annotations

import os

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
