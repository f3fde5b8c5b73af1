"""Values that several devices or ranks hold: a graph over them becomes a graph for each.

No part of planning, which asks what `multi.py` says to `schedule/extensions.py`.
"""
