"""How the work of a launch is shared out: the way that should take least time, by an estimate.

One module a kind of kernel: the ways that are looked at, and `fit`, which picks one; what two kinds share
is in `image_slices`. Constants are fitted to timed launches on the device that `fitted_device` describes; a
line above them says to which.
"""
