"""Reading and writing at positions, searching and sorting."""
