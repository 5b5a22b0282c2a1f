"""Quantised files as other people bring them: right is called right on our engine and on ONNX Runtime."""

import pytest

from engine.passes import quantized
from tests.bench.measure.quantized_files import FILES
from tests.bench.measure.test_files_of_others import _quick, measured  # noqa: F401

pytestmark = pytest.mark.slow

# Of weights by another axis than the outputs' ONNX Runtime makes a QLinearConv that it refuses itself.
NOT_THEIRS = "odd_axes"


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_tool_is_right(name, tmp_path):
    (ours,), (theirs,) = measured(tmp_path / "file.onnx", FILES[name](), (2,))
    assert ours.disposition == "ok", ours.reason
    assert (theirs.disposition == "ok") == (name != NOT_THEIRS), theirs.reason
    told = "; ".join(ours.validity.warnings)
    assert "not trusted" not in told
    assert "not be checked alone" not in told


@pytest.mark.sampled(4, "long")
@pytest.mark.parametrize("name", ["resnet, operators, int8", "squeezenet"])
def test_a_sum_or_a_join_that_is_one_step_off_is_found(name, tmp_path, monkeypatch):
    zero_of = quantized._zero_of
    monkeypatch.setattr(quantized, "_zero_of", lambda whole: min(zero_of(whole) + 1, 127))
    (ours,), _ = measured(tmp_path / "file.onnx", FILES[name](), (2,))
    assert ours.disposition == "incorrect"
