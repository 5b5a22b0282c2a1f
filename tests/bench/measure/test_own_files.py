"""Files of a user's whose outputs are of every kind, as the worker measures them: right ones are right at
every batch, and what cannot be compared is refused in words."""

import pytest
from onnx import helper

from tests.bench.measure.answers import drawn_models
from tests.bench.measure.test_files_of_others import _quick, measured
from tests.engine.harness import make_model

__all__ = ["_quick"]

pytestmark = pytest.mark.slow

# Whose operators our engine has, too.
KINDS = (
    drawn_models.several_rows, drawn_models.batch_second, drawn_models.the_input, drawn_models.mean_of_all,
    drawn_models.one_number, drawn_models.attention, drawn_models.normalised,
)  # fmt: skip


def all_ok(path, proto, *how, **named):
    """The measurements of all backends, each of which has to be ok."""
    made = [one for row in measured(path, proto, *how, **named) for one in row]
    assert [(one.case.key, one.reason) for one in made if one.disposition != "ok"] == []
    return made


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_right_is_right_wherever_its_images_are(tmp_path, kind):
    for one in all_ok(tmp_path / "own.onnx", drawn_models.model(kind, 1).whole_proto()):
        assert one.accuracy.output.ok
        assert "binding" not in one.facts
        assert not any("checked against" in text for text in one.validity.warnings)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "kind", [drawn_models.dynamic_range, drawn_models.running_sum, drawn_models.places, drawn_models.classes]
)
def test_what_our_engine_may_lack_is_right_on_the_reference(tmp_path, kind):
    all_ok(tmp_path / "own.onnx", drawn_models.model(kind, 1).whole_proto(), names=("ort-cpu",))


def test_numbers_that_are_drawn_are_refused_and_never_wrong(tmp_path):
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["r"], "noise"),
        helper.make_node("Add", ["x", "r"], ["y"], "add"),
    ]
    proto = make_model(nodes, {"x": ("N", 4)}, ["y"])
    (ours,), (theirs,) = measured(tmp_path / "noise.onnx", proto, (1,))
    assert (ours.disposition, theirs.disposition) == ("unsupported", "unsupported")
    told = "no answer of model noise can be compared: node noise (RandomNormalLike) draws"
    assert told in theirs.reason


def test_a_loss_of_nan_is_a_note_on_the_references_row(tmp_path):
    """ONNX Runtime's MaxPool takes NaN for less than any number."""
    nodes = [
        helper.make_node("Log", ["x"], ["l"], "log"),
        helper.make_node("MaxPool", ["l"], ["y"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    proto = make_model(nodes, {"x": ("N", 2, 6, 6)}, ["y"], ranks={"y": 4})
    made = all_ok(tmp_path / "logs.onnx", proto, (2,))
    told = {one.case.backend: " ".join(one.validity.warnings) for one in made}
    assert "numbers where the reference itself holds NaN" in told["ort-cpu"]
    assert "holds NaN" not in told["engine-cpu"]
