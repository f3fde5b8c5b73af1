"""What becomes of a scheduled kernel on a grid of threads: rows that are inserted into the list of passes."""
