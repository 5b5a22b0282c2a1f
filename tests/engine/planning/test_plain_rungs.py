"""No plan takes a rung that adds plainly for a long sum, unless it is named or nothing else applies."""

from __future__ import annotations

import pytest

from engine.options import Options
from engine.planning import choices
from engine.planning.planner import ladder_choice
from kernels import registry
from kernels.ops import OPS, Params, sized
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm

LONG: list[Params] = [
    Gemm(5, 7, 300),
    Gemm(5, 7, 300, trans_a=True, batch=3, stride_a=1500, stride_b=2100),
    sized(Conv(2, 40, 9, 9, 6, 3, 3, 0, 0)),
    sized(Conv(2, 40, 9, 9, 6, 5, 3, 0, 0, 2, 1, 1, 1, 1, 1, 2, 1, group=2)),
]
PLAIN = {rung.name for op in OPS for rung in registry.rungs("cuda", op) if rung.method == "plain"}


@pytest.mark.parametrize("p", LONG)
@pytest.mark.parametrize("capability", [(7, 5), (9, 0)])
def test_none_is_taken_for_a_long_sum(p: Params, capability: tuple[int, int]) -> None:
    found = choices.candidates("cuda", p, "fp32", True, capability)
    assert found
    assert not {rung.name for rung in found} & PLAIN
    assert registry.default("cuda", p, capability).name not in PLAIN
    choose = ladder_choice(Options(tuned=False), capability)
    assert choose("cuda", p, "node", True, "fp32").rung not in PLAIN


def test_for_a_short_one_they_are_as_good() -> None:
    found = choices.candidates("cuda", Gemm(5, 7, 60), "fp32", True, (9, 0))
    assert "naive" in {rung.name for rung in found}


def test_one_that_is_named_is_taken() -> None:
    choose = ladder_choice(Options(rungs={"node": "naive"}), (9, 0))
    assert choose("cuda", LONG[0], "node", True, "fp32").rung == "naive"
