"""How the work of a launch is shared out: of the ways that are considered, the one that should take least
time by an estimate.

Each module has the ways of one kind of kernel, and `fit`, which picks one; `image_slices` has what two kinds
share. Constants are fitted to timed launches on the device that `fitted_device` describes; a line above them
says to which.
"""
