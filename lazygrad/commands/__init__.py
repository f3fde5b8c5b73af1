"""The commands of `python -m lazygrad`, one file each, named as it is typed.

A file offers `HELP`, a line for the list of commands; `arguments(parser)`, which declares what may follow it;
and `run(given)`, which does it and returns the exit status. `__main__` lists them.
"""
