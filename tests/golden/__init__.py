"""Golden files: what every way of reading a saved run, ladder or profile prints and writes, byte for byte.

`runs/` holds small recorded ones of each kind (a LeNet and a convolution, on the CPU and on the simulated
GPU); those that are shipped and those in `tests/data` are read as well. `expected.json.xz` holds what was
printed and written. `python -m tests.golden` shows what differs, `--write` makes the file anew: whoever does
so says in the commit what changed and why.

Left out of what is compared: the shapes of pictures inside an HTML page (their words stay), which depend on
the drawing library's version, and styles and scripts.
"""
