"""The colours of every chart, on paper and on screen: one a backend, one a breakdown category.

Backends use the hues of the Okabe-Ito set (Okabe and Ito, "Color Universal Design", 2008), which people with
the usual colour-vision deficiencies can tell apart, as light as stands out on white and on dark paper (3:1).
Breakdown categories have an ordered palette of their own (after Paul Tol's "muted" scheme), so that none is
mistaken for a backend; in each set every colour has a lightness of its own, so that they are told apart in
grey. Colours are "#RRGGBB".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernels import precision as precisions

BACKENDS = {
    "engine-cuda": "#0A78BA",
    "ort-cuda": "#C98500",
    "engine-cpu": "#9761F2",
    "ort-cpu": "#009E73",
}
# A backend in another configuration: beside it in every chart, so its colour is told from all of the above.
VARIANTS = {
    "ort-cuda-tuned": "#CC79A7",
    "ort-cuda-tuned-strict": "#8C6D1F",
}
# What else a user could pick: as far from all of the above, and from each other, as stands out on paper.
RIVALS = {
    "torch-cpu": "#A8622A",
    "torch-compile-cpu": "#EE6677",
    "openvino-cpu": "#0066FF",
    "torch-cuda": "#BB00FF",
    "torch-cuda-graph": "#FF11BB",
    "torch-compile-cuda": "#00AA00",
    "torch-compile-cuda-tuned": "#779922",
    "cudnn-graph": "#008B95",
    "tensorrt-cuda": "#B05A9A",
    "ort-openvino-cpu": "#889966",
    "ort-tensorrt-cuda": "#CC3388",
    "ort-tensorrt-rtx-cuda": "#FF1177",
}
USER = "#D55E00"
OTHERS = ("#7A7A7A", "#8D7AB5", "#B0643C")

# In stacking order, from the bottom. "compute" stands for the operators where they were not timed one by one.
CATEGORIES = {
    "h2d": ("copy in", "#7ABFE0"),
    "conv": ("conv", "#2C1D82"),
    "pool": ("pool", "#289383"),
    "fc": ("fc", "#0E7532"),
    "other": ("other ops", "#A3A23C"),
    "compute": ("compute", "#695DAE"),
    "d2h": ("copy out", "#E1CF7A"),
    "sync": ("sync", "#811973"),
    "rest": ("rest", "#E8E8E8"),
}
# What happens once, and the pass over the data set that follows it: of no pass of a batch a part.
STAGES = {
    "load": ("load, once", "#2C1D82"),
    "compile": ("compile, once", "#882255"),
    "alloc": ("alloc, once", "#CD6778"),
    "upload": ("upload weights, once", "#DBCA75"),
    "first_run": ("first run, once", "#ABAA44"),
    "dataset_compute": ("data set: compute", "#017667"),
    "dataset_rest": ("data set: copies and rest", "#E8E8E8"),
}
OVERLAID = ("<", ">", "*")  # of the second run that is laid over another, the third, …

# What has a sign, on light paper and on dark: from blue over the paper's own colour, which is nothing, to
# red. Eyes that take green for red tell these two apart.
DIVERGING = (
    ("#1B5C9E", "#7FB2DA", "#F6F6F6", "#EF9F86", "#A81C2B"),
    ("#7FC0F5", "#3E719E", "#2E3238", "#9E5646", "#FF9A88"),
)
INK = "#222222"
MUTED = "#6A6A6A"
GRID = "#E3E3E3"
FAILED = "#B00020"
DOUBT = "#8A5A00"


def backend(name: str, user: bool = False) -> str:
    """The colour of a backend; `user` marks one that runs the user's own kernels. A name without a colour of
    its own always gets the same one of OTHERS."""
    if user:
        return USER
    if own := (BACKENDS | VARIANTS | RIVALS).get(name):
        return own
    return OTHERS[sum(name.encode()) % len(OTHERS)]


def marker(precision: str) -> str:
    """The point shape of a precision, as a letter that matplotlib and pyqtgraph both have."""
    return precisions.of(precision).marker if precisions.known(precision) else "h"


def dash(precision: str) -> Any:
    """The dash of what is dashed, by its precision."""
    return (
        ":"
        if precision == "floor"
        else precisions.of(precision).dash
        if precisions.known(precision)
        else "--"
    )


def overlaid(marker: str, number: int) -> str:
    """The point shape in the `number`th run that is drawn over another."""
    return OVERLAID[(number - 2) % len(OVERLAID)] if marker and number > 1 else marker


READABLE, PALE = 4.5, 0.78  # the contrast of text by WCAG; how far a pale ink is from the fill to the ink


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, 1 to 21, by WCAG: text needs 4.5, a line 3."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def blend(stops: Sequence[str], fraction: float) -> str:
    """The colour at a fraction of the way along evenly spaced stops."""
    at = min(1.0, max(0.0, fraction)) * (len(stops) - 1)
    index = min(int(at), len(stops) - 2)
    low, high = (_parts(stop) for stop in stops[index : index + 2])
    mixed = (round(a + (b - a) * (at - index)) for a, b in zip(low, high, strict=True))
    return "#{:02X}{:02X}{:02X}".format(*mixed)


def ink_on(fill: str) -> str:
    """White or black, whichever has more contrast on a fill; nearly black where that is enough to be read."""
    white, nearly, black = "#FFFFFF", "#16191D", "#000000"
    if contrast(white, fill) > contrast(black, fill):
        return white
    return nearly if contrast(nearly, fill) >= READABLE else black


def faint_on(fill: str) -> str:
    """As `ink_on`, paler where that can still be read: for what is said beside the main thing."""
    pale = blend((fill, ink_on(fill)), PALE)
    return pale if contrast(pale, fill) >= READABLE else ink_on(fill)


def edge(colour: str) -> str:
    """The outline of a fill of this colour on white paper: white, or grey if the fill is nearly white."""
    return MUTED if lightness(colour) > 88 else "#FFFFFF"


def lightness(colour: str) -> float:
    """CIE L* of "#RRGGBB", 0 to 100: how light it is on grey paper."""
    y = _luminance(colour)
    return 116 * float(y ** (1 / 3)) - 16 if y > 0.008856 else 903.3 * y


def _luminance(colour: str) -> float:
    parts = (part / 255 for part in _parts(colour))
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return float(sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True)))


def _parts(colour: str) -> tuple[int, ...]:
    """Red, green and blue of "#RRGGBB", 0 to 255."""
    return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))
