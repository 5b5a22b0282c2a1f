"""The judge accuses no rung that is right. Each run draws other shapes; `python -m tests.bench.judge.honest`
draws as many as one likes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from bench import judge
from bench.measure.answers import comparison, samples
from kernels import registry
from kernels.ops import OPS, Params
from kernels.ops.conv import Conv
from tests import sampling
from tests.bench.judge import honest
from tests.bench.judge.honest import judged, turns

pytestmark = pytest.mark.slow

TAKEN = 8  # of a sample one in so many rungs, of half of the operators
FEW = ("softmax", "gemm")  # where it is not about all operators


def _rungs(ops: Iterable[str] = OPS) -> list[registry.Rung]:
    return [rung for op in ops for rung in registry.rungs("cpu", op)]


@pytest.mark.sampled
def test_no_right_rung_is_accused_on_shapes_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as often as any other, so that a further rung takes no shape from others."""
    first, turns_, kept = sampling.number("honest"), 3, slice(None)
    if not sampling.whole():
        ops = sampling.some("honest operators", list(OPS), len(OPS) // 2)
        monkeypatch.setattr(honest, "OPS", {op: OPS[op] for op in ops})
        turns_, kept = 1, slice(sampling.number("honest rungs") % TAKEN, None, TAKEN)
    every = _rungs(honest.OPS)
    found = list(judged(turns_ * len(every), first=first, kept=kept))
    assert [(one.rung.label, one.seed, one.params, one.said) for one in found if one.said] == []
    judged_rungs = {one.rung for one in found}
    assert judged_rungs == set(every) if sampling.whole() else len(judged_rungs) >= len(every) // TAKEN


def test_what_was_judged_is_kept_and_not_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, bool]] = []
    each = len(_rungs(FEW))
    monkeypatch.setattr(honest, "OPS", {op: OPS[op] for op in FEW})

    def said(rung: registry.Rung, params: Params, number: int, quick: bool) -> str:
        asked.append((rung.label, quick))
        return "wrong" if len(asked) == 2 else ""

    monkeypatch.setattr(honest, "_said", said)
    state, count = tmp_path / "state", each + 3
    before = list(itertools.islice(judged(count, state=state), each + 1))
    with state.open("a") as file:
        file.write('[1, "cpu"')  # it ended while it wrote
    after = list(judged(count, state=state))
    assert len(asked) == count
    assert [one.line for one in after[: each + 1]] == [one.line for one in before]
    assert [one.said for one in after].count("wrong") == 1
    # Of a rung that was judged before only the shapes that say most are tried.
    assert [quick for _, quick in asked] == [False] * each + [True] * 3
    assert next(judged(count, first=2, state=state)).line not in [one.line for one in after]
    assert len(asked) == count + 1
    assert len(honest._known(state)) == count + 1


@pytest.mark.sampled
def test_shapes_that_are_drawn_differ_in_all_that_a_convolution_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(honest, "OPS", {"conv": Conv})
    count = 12 * len(_rungs(["conv"]))
    convs = [params for _, params, _ in turns(count, "cpu", sampling.number("honest"))]
    assert all(isinstance(params, Conv) for params in convs)
    for name in ("stride_h", "dilation_h", "group", "n", "pad_top"):
        assert len({getattr(p, name) for p in convs}) > 1, name


ONE = Conv(n=1, c=1, h=3, w=3, m=1, kh=3, kw=3, out_h=1, out_w=1)


def test_a_sum_whose_terms_cancel_is_held_against_what_such_sums_are() -> None:
    """One element near 0, of terms near 1: Winograd's rounding is then above 1e-5 of it."""
    winograd = next(rung for rung in registry.rungs("cpu", "conv") if rung.name == "winograd")
    with judge.examine(winograd, ONE, "fp32", seed=9) as trial:
        assert trial.checks


@pytest.mark.parametrize("off", [3e-5, np.nan])
def test_an_error_beside_a_sum_whose_terms_cancel_is_still_one(off: float) -> None:
    image, weights = (np.ones((1, 1, 3, 3), np.float32) for _ in range(2))
    weights[..., 0] = -1
    weights[..., 1] = 0  # the terms add up to 0
    sample = samples.Sample(
        ONE, (image, weights), np.zeros((1, 1, 1, 1)), typical=samples.typical(ONE, (image, weights))
    )
    assert sample.typical == pytest.approx(np.sqrt(6))
    right, wrong = (np.full((1, 1, 1, 1), value, np.float32) for value in (1e-5, off * np.sqrt(6)))
    assert comparison.compare(right, sample, "fp32").stats.ok
    assert not comparison.compare(wrong, sample, "fp32").stats.ok
