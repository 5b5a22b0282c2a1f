"""The rules of a verdict: bounds by precision, single elements, NaN in words, places in the batch."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.measure.answers import accuracy
from bench.measure.answers.timed_pass import PassCheck
from kernels.precision import PRECISIONS
from tests.engine.harness import random


@pytest.mark.parametrize(("precision", "bound"), [(name, found.bound) for name, found in PRECISIONS.items()])
def test_the_bound_is_on_the_relative_l2_error(precision: str, bound: float) -> None:
    expected = random((50, 20)).astype(np.float64) * 7
    noise = random((50, 20), 1).astype(np.float64)
    noise *= np.linalg.norm(expected) / np.linalg.norm(noise)
    good = accuracy.error_stats(expected + 0.9 * bound * noise, expected, precision)
    bad = accuracy.error_stats(expected + 1.1 * bound * noise, expected, precision)
    assert good.ok
    assert good.rel_l2 == pytest.approx(0.9 * bound)
    assert good.reason == ""
    assert not bad.ok
    assert "relative L2" in bad.reason


@pytest.mark.sampled(4, "long")
def test_one_element_far_off_fails_though_the_norm_is_small() -> None:
    expected = np.ones(10_000_000)
    actual = expected.copy()
    actual[1234567] += 2e-3
    stats = accuracy.error_stats(actual, expected, "fp32")
    assert stats.rel_l2 < PRECISIONS["fp32"].bound
    assert not stats.ok
    assert "(1234567,)" in stats.reason


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_nan_and_infinity_fail_in_words_with_their_place(value: float, word: str) -> None:
    actual = np.zeros((3, 4))
    actual[1, 2] = actual[2, 0] = value
    stats = accuracy.error_stats(actual, np.zeros((3, 4)), "fp16")
    assert not stats.ok
    assert stats.reason == f"{word} at index (1, 2), one of 2 such elements of 12"
    assert np.isfinite(stats.rel_l2)  # JSON has no infinity


def test_a_reference_that_is_zero_is_held_against_absolute_errors() -> None:
    zero = np.zeros((4, 4))
    assert accuracy.error_stats(zero, zero, "fp32").ok
    assert accuracy.error_stats(zero + 1e-6, zero, "fp32").ok
    assert not accuracy.error_stats(zero + 1e-3, zero, "fp32").ok


def test_a_reference_with_nan_judges_nobody() -> None:
    stats = accuracy.error_stats(np.ones(3), np.array([1.0, np.nan, 1.0]), "fp32")
    assert not stats.ok
    assert "reference itself" in stats.reason


def test_shapes_that_differ_are_an_error_not_a_broadcast() -> None:
    with pytest.raises(ValueError, match=r"\(3, 1\)"):
        accuracy.error_stats(np.ones((3, 1)), np.ones((3, 3)), "fp32")


@pytest.mark.parametrize("batch", [1, 2, 7, 8, 9, 10, 11, 16, 100])
@pytest.mark.parametrize("images", [1, 2, 3, 8])
def test_golden_images_stand_first_in_the_middle_and_last(batch: int, images: int) -> None:
    golden = {"x": random((images, 2, 2))}
    placed = accuracy.place(golden, batch, filler=np.full((3, 2, 2), 9.0))
    assert placed.inputs["x"].shape == (batch, 2, 2)
    assert placed.inputs["x"].dtype == np.float32
    assert len(set(placed.rows)) == len(placed.rows) == len(placed.golden) == min(batch, images)
    np.testing.assert_array_equal(placed.inputs["x"][list(placed.rows)], golden["x"][list(placed.golden)])
    assert 0 in placed.rows
    if images >= 3:
        assert batch - 1 in placed.rows
        middle = [row for row in placed.rows if images <= row < batch - images]
        assert middle or batch < 3 * images
    others = sorted(set(range(batch)) - set(placed.rows))
    assert (placed.inputs["x"][others] == 9.0).all()


def test_an_error_in_the_last_row_alone_is_found() -> None:
    golden = {"x": random((8, 3))}
    placed = accuracy.place(golden, 64)
    expected = {"y": np.tanh(golden["x"].astype(np.float64))}
    outputs = {"y": np.tanh(placed.inputs["x"])}
    assert accuracy.check(outputs, expected, placed, "fp32").ok
    outputs["y"][-1] += 1
    assert not accuracy.check(outputs, expected, placed, "fp32").ok


def test_of_several_outputs_the_worst_is_told_by_name() -> None:
    golden = {"x": random((2, 3))}
    placed = accuracy.place(golden, 2)
    expected = {"good": golden["x"].astype(np.float64), "bad": golden["x"].astype(np.float64)}
    stats = accuracy.check({"good": golden["x"], "bad": golden["x"] * 2}, expected, placed, "fp32")
    assert stats.reason.startswith("output bad: ")


def test_top_k_takes_ties_in_class_order_and_nan_last() -> None:
    scores = np.array([[0.1, 0.5, 0.5, 0.2], [np.nan, 1.0, 2.0, 0.0]])
    np.testing.assert_array_equal(accuracy.top_k(scores, 3), [[1, 2, 3], [2, 1, 3]])
    assert accuracy.top_k(scores, 5).shape == (2, 4)


def test_the_ratio_is_unknown_where_the_reference_is_exact_or_broken() -> None:
    expected = random((4, 4)).astype(np.float64)
    ours = accuracy.error_stats(expected * (1 + 4e-7), expected, "fp32")
    theirs = accuracy.error_stats(expected * (1 + 2e-7), expected, "fp32")
    assert accuracy.ratio(ours, theirs) == pytest.approx(2.0)
    assert accuracy.ratio(ours, accuracy.error_stats(expected, expected, "fp32")) is None
    assert accuracy.ratio(ours, accuracy.error_stats(expected * np.nan, expected, "fp32")) is None
    assert accuracy.ratio(ours, None) is None


@given(st.floats(1.0000001, 3.0), st.floats(0, 1e-3))
def test_an_error_is_never_told_to_be_above_a_larger_number(over: float, moves: float) -> None:
    expected = np.full(64, 1.0)
    moved = np.full(64, moves)
    bound = accuracy.error_stats(expected, expected, "fp32", moved=moved).bound
    stats = accuracy.error_stats(expected * (1 + bound * over), expected, "fp32", moved=moved)
    told = re.search(r"error (\S+) is above (\S+)$", stats.reason)
    assert stats.ok or told is None or float(told[1]) > float(told[2])
    assert stats.ok or told is not None


def test_a_pass_that_was_skipped_is_told_as_one() -> None:
    look = PassCheck({}, {}, "y", accuracy.judged(np.zeros(3), np.full(3, np.nan), "fp32"), 0, 0.5, np.nan)
    assert "never wrote all of y" in look.words
    assert "reference" not in look.words
