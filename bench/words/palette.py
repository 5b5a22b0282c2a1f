"""The colours of every chart, on paper and on screen: one a backend, one a breakdown category.

Backends use the Okabe-Ito set (Okabe and Ito, "Color Universal Design", 2008), which people with the usual
colour-vision deficiencies can tell apart. Breakdown categories have an ordered palette of their own (after
Paul Tol's "muted" scheme), so that a category is never mistaken for a backend. Colours are "#RRGGBB".
"""

from __future__ import annotations

BACKENDS = {
    "engine-cuda": "#0072B2",
    "ort-cuda": "#E69F00",
    "engine-cpu": "#56B4E9",
    "ort-cpu": "#009E73",
}
# A backend in another configuration: beside it in every chart, so its colour is told from all of the above.
VARIANTS = {
    "ort-cuda-tuned": "#CC79A7",
    "ort-cuda-tuned-strict": "#8C6D1F",
}
USER = "#D55E00"
OTHERS = ("#4D4D4D", "#7F6AA8", "#A0522D")

# In stacking order, from the bottom. "compute" stands for the operators where they were not timed one by one.
CATEGORIES = {
    "h2d": ("copy in", "#88CCEE"),
    "conv": ("conv", "#332288"),
    "pool": ("pool", "#44AA99"),
    "fc": ("fc", "#117733"),
    "other": ("other ops", "#999933"),
    "compute": ("compute", "#6B5FB0"),
    "d2h": ("copy out", "#DDCC77"),
    "sync": ("sync", "#AA4499"),
    "rest": ("rest", "#C4C4C4"),
}
# What happens once, and the pass over the data set that follows it: of no pass of a batch a part.
STAGES = {
    "load": ("load, once", "#332288"),
    "compile": ("compile, once", "#882255"),
    "alloc": ("alloc, once", "#CC6677"),
    "upload": ("upload weights, once", "#DDCC77"),
    "first_run": ("first run, once", "#999933"),
    "dataset_compute": ("data set: compute", "#44AA99"),
    "dataset_rest": ("data set: copies and rest", "#C4C4C4"),
}
MARKERS = {"fp32": "o", "fp32-tc": "s", "tf32": "^", "fp16": "D"}
OVERLAID = ("<", ">", "*")  # of the second run that is laid over another, the third, …

INK = "#222222"
MUTED = "#6A6A6A"
GRID = "#E3E3E3"
FAILED = "#B00020"
DOUBT = "#8A5A00"


def backend(name: str, user: bool = False) -> str:
    """The colour of a backend; `user` marks one that runs the user's own kernels. A name that has no colour
    of its own gets one of OTHERS, the same one every time."""
    if user:
        return USER
    if own := (BACKENDS | VARIANTS).get(name):
        return own
    return OTHERS[sum(name.encode()) % len(OTHERS)]


def marker(precision: str) -> str:
    """The point shape of a precision, in the letters that matplotlib and pyqtgraph share in spirit."""
    return MARKERS.get(precision, "v")


def overlaid(marker: str, number: int) -> str:
    """The point shape in the run that is laid over another as its `number`th: of the first as it is."""
    return OVERLAID[(number - 2) % len(OVERLAID)] if marker and number > 1 else marker
