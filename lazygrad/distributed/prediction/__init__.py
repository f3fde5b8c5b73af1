"""How long a step of a program takes on many devices, predicted without running anything.

links.py     what joins the devices, and how long a collective takes on it
timeline.py  when each kernel and each collective of a step begins and ends
steps.py     a script, played on devices that only count, for one rank of a mesh
report.py    what is printed
"""
