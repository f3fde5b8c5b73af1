"""What `python docs/generate.py` writes, one kind of page a file: tensor, coverage, face."""
