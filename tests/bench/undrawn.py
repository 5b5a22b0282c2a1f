"""Reports whose charts are not drawn: for what is about which of them stand where. A file holds the words of
its chart instead, so that two charts that differ are two that differ."""

from __future__ import annotations

import pytest

from bench.views.drawing import draw, draw_timeline, draw_together
from bench.views.reports import report_files


def undrawn(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(report_files, "small", lambda png, most=0: png)
    patch.setattr(draw_together, "cores", lambda: 1)  # other processes would draw
    patch.setattr(draw, "render", lambda chart, kinds, *_: dict.fromkeys(kinds, repr(chart).encode()))
    patch.setattr(draw_timeline, "render", lambda profile, shown, *_: repr((profile, shown)).encode())
