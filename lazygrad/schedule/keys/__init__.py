"""What of a graph is its structure, and what are its numbers and sizes, which become arguments."""
