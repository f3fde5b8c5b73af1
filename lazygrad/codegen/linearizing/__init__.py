"""Target code (form 6) becomes a linear program (form 7), and what becomes of that list."""
