"""What is kept of a wrong answer to look at."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import judge
from bench.judge import Wrong
from bench.judge.failure import pictures
from kernels import registry
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm

PLANTED = Path(__file__).parent / "planted"
CONV = Conv(3, 4, 9, 8, 6, 3, 3, 9, 8, pad_top=1, pad_left=1, group=2, bias=True)


def caught(rung="unwritten_edge", params=CONV):
    with pytest.raises(Wrong) as raised:
        judge.examine(registry.find("cpu", "conv", rung, [PLANTED]), params, threads=1)
    return raised.value


def test_whole_images_of_what_was_expected_and_got():
    wrong = caught()
    found = wrong.pictures()
    expected, got, index = found["expected"], found["got"], wrong.finding.index
    assert expected.shape == got.shape
    off = ~(np.abs(got - expected) <= found["tolerance"])
    assert off[..., -1].all()
    assert not off[..., :-1].any()
    assert tuple(found["at"]) == index
    at = np.searchsorted(found["images"], index[0]), np.searchsorted(found["channels"], index[1]), *index[2:]
    assert f"{expected[at]:.4g}" == f"{float(wrong.finding.expected):.4g}"
    assert f"{got[at]:.4g}" == f"{float(wrong.finding.got):.4g}"


def test_of_a_large_answer_a_part_about_the_place_is_kept(monkeypatch):
    monkeypatch.setattr(sys.modules["bench.judge.failure"], "MOST", 100)
    wrong = caught()
    found, index = wrong.pictures(), wrong.finding.index
    assert found["got"].size <= 100
    assert index[0] in found["images"]
    assert index[1] in found["channels"]
    assert 0 <= index[2] - found["row"] < found["got"].shape[2]


@pytest.mark.parametrize(
    ("shape", "index"),
    [((5,), (3,)), ((4, 6), (2, 5)), ((2, 3, 4), (1, 2, 3)), ((2, 3, 2, 4, 5), (1, 2, 1, 3, 4))],
)
def test_answers_of_any_number_of_axes(shape, index):
    from bench.judge.failure import Failure
    from bench.measure.answers.samples import Sample
    from bench.results.finding import Finding

    expected = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    got = expected.astype(np.float32)
    got[index] += 1
    sample = Sample(Gemm(1, 1, 1), (), expected)
    finding = Finding(fault="wrong", reason="", index=index)
    found = pictures(Failure(finding, sample.params, sample, got))
    assert found["got"].ndim == 4
    assert found["got"][tuple(found["at"])] == found["expected"][tuple(found["at"])] + 1


def test_the_right_image_of_a_repeated_batch():
    from bench.judge.failure import Failure
    from bench.measure.answers.samples import Sample
    from bench.results.finding import Finding

    few = np.stack([np.full((2, 3, 3), value, np.float64) for value in (1, 2)])
    rows = np.array([0, 1, 1, 0, 1])
    got = few[rows].astype(np.float32)
    got[2, 1, 0, 0] = 9
    sample = Sample(replace(CONV, n=2), (), few, rows)
    found = pictures(Failure(Finding(fault="wrong", reason="", index=(2, 1, 0, 0)), CONV, sample, got))
    assert np.argwhere(found["got"] != found["expected"]).tolist() == [[2, 1, 0, 0]]
