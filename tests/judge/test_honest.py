"""The judge accuses no rung that is right."""

from __future__ import annotations

from kernels import registry
from kernels.params import OPS, Conv
from tests.judge.honest import judged

COUNT = 60


def test_no_right_rung_is_accused_on_shapes_drawn_anew() -> None:
    found = list(judged(COUNT))
    assert [(one.rung.label, one.seed, one.params, one.said) for one in found if one.said] == []
    every = {rung for op in OPS for rung in registry.rungs("cpu", op)}
    assert {one.rung for one in found} == every
    convs = [one.params for one in found if isinstance(one.params, Conv)]
    for name in ("stride_h", "dilation_h", "group", "n", "pad_top"):
        assert len({getattr(p, name) for p in convs}) > 1, name
