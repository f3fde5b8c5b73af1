"""Text becomes running code: one file per device, found by its name, and imported when first asked for.

Each holds a class `<Name>Device`. Files that begin with `_` are shared by several devices.
"""
