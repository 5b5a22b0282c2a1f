"""Answers too large to be looked at as a whole every time: what is wrong anywhere in them is still caught."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.judge import judged_session
from bench.judge.trial import Trial
from bench.measure.answers import comparison
from kernels import registry
from kernels.ops.conv import Conv
from tests.bench.ladder.test_judge import CONV, PLANTED

pytestmark = pytest.mark.slow

IMAGES = replace(CONV, n=600)
A_ROW = 4 * CONV.m * CONV.out_h * CONV.out_w
PART = 20  # images of each part that is looked at

FAULTY = """# op = "conv"
# rung = 70
# name = "faulty"
# idea = "Planted: image {image} is wrong from pass {first} on."
from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    passes = [0]

    def run():
        right = convolve(p, x, weight, bias)
        finish(p, right)
        if passes[0] >= {first}:
            right[{image}] = {what}
        passes[0] += 1
        y[:] = right

    return run
"""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_session, "LARGE_NBYTES", 100 * A_ROW)
    monkeypatch.setattr(judged_session, "PART_NBYTES", 3 * PART * A_ROW)
    monkeypatch.setattr(comparison, "CHUNK_NBYTES", 8 * A_ROW)  # several pieces a part


def trial(folder: Path, params: Conv = IMAGES, image: int = 0, what: str = "7", first: int = 0) -> Trial:
    (folder / "70_faulty.py").write_text(FAULTY.format(image=image, what=what, first=first))
    return Trial(registry.find("cpu", "conv", "faulty", [folder]), params, threads=1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("image", [0, 130, 599])
def test_one_wrong_image_is_found_and_named_by_its_place(image: int, tmp_path: Path) -> None:
    with trial(tmp_path, image=image) as made:
        failure = made.check("before timing")
    assert failure is not None
    assert failure.finding.fault == "wrong"
    assert failure.finding.index[0] == image
    assert failure.finding.elements == 600 * A_ROW // 4


def test_an_image_that_is_never_written_is_called_so(tmp_path: Path) -> None:
    with trial(tmp_path, image=333, what="output.reshape(y.shape)[333]") as made:
        failure = made.check("before timing")
    assert failure is not None
    assert failure.finding.fault == "unwritten"
    assert failure.finding.index[0] == 333


def test_what_goes_wrong_later_is_found_in_the_part_that_is_looked_at(tmp_path: Path) -> None:
    with trial(tmp_path, image=599, first=3) as made:
        assert made.check("before timing") is None  # two passes
        made.time_runs(3)
        failure = made.spot_check("during timing")
    assert failure is not None
    assert failure.finding.index[0] == 599
    assert failure.finding.when == "during timing"


@pytest.mark.sampled(4, "long")
def test_what_float64_says_of_one_row_is_named_by_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is drawn; here the wrong one, which is the last of the part."""
    monkeypatch.setattr("bench.judge.trial.secrets.randbelow", lambda count: count - 1)
    with trial(tmp_path, image=599, first=3) as made:
        assert made.check("before timing") is None
        made.time_runs(3)
        failure = made.spot_check("during timing")
    assert failure is not None
    assert failure.finding.index[0] == 599
    assert (failure.finding.got, failure.finding.expected != "7") == ("7", True)


def test_a_right_answer_passes_and_is_fetched_in_parts_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung = registry.find("cpu", "conv", "im2col", [PLANTED])
    with Trial(rung, IMAGES, threads=1) as made:
        fetch, fetched = made.session.output, []

        def output(rows: np.ndarray | None = None) -> np.ndarray:
            fetched.append(range(600) if rows is None else rows.tolist())
            return fetch(rows)

        monkeypatch.setattr(made.session, "output", output)
        assert made.check("before timing") is None
        assert {i for rows in fetched for i in rows} == set(range(600))
        assert max(map(len, fetched)) <= 3 * PART
        fetched.clear()
        made.time_runs(2)
        assert made.spot_check("during timing") is None
        assert fetched
        for looked in fetched:
            assert 2 * PART < len(looked) <= 3 * PART
            assert {0, 299, 300, 599} <= set(looked)
        assert made.error is not None
        assert 0 < made.error.rel_l2 < 1e-6
    with Trial(rung, replace(CONV, n=12), threads=1) as made:  # 12 images of 8: not large
        assert made.check("before timing") is None
