"""How long a kernel takes on a Target: what it does, read off its loops or its program, and one clock."""
