"""Imported by what is to draw charts soon: matplotlib with all that its formats load when they first draw."""

from __future__ import annotations

import fontTools.subset  # noqa: F401  (of what is embedded in a PDF)
import matplotlib
from matplotlib.backends import backend_agg, backend_pdf, backend_svg  # noqa: F401

import bench.views.drawing.draw_panels  # noqa: F401

matplotlib.use("agg")
