"""Files of a user's whose outputs are of every kind, as the worker measures them: right ones are right at
every batch, and what cannot be compared is refused in words."""

import functools

import onnx
import pytest
from onnx import helper

from bench.measure import runner, timing
from tests.bench.measure.answers import drawn_models
from tests.bench.measure.test_worker import changed, go
from tests.engine.harness import make_model

pytestmark = pytest.mark.slow

# Whose operators our engine has, too.
KINDS = (
    drawn_models.several_rows, drawn_models.batch_second, drawn_models.the_input, drawn_models.mean_of_all,
    drawn_models.one_number, drawn_models.attention, drawn_models.normalised,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _quick(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    quick = functools.partial(timing.Rules, warmup_s=0.01, rewarm_s=0.005, min_s=0.02)
    monkeypatch.setattr(runner, "Rules", quick)


def measured(path, proto, batches=(1, 3), backends=("engine-cpu", "ort-cpu")):
    """(backend, batch, disposition, reason) of each case."""
    onnx.save(proto, path)
    job = changed(models=(str(path),), backends=backends, batches=batches, dataset="random", images=())
    _, messages = go(job)
    made = [m.measurement for m in messages if isinstance(m, runner.Measured)]
    assert len(made) == len(batches) * len(backends)
    return [(one.case.backend, one.case.batch, one.disposition, one.reason) for one in made], made


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_right_is_right_wherever_its_images_are(tmp_path, kind):
    found, made = measured(tmp_path / "own.onnx", drawn_models.model(kind, 1).whole_proto())
    assert {one[2] for one in found} == {"ok"}, found
    for one in made:
        assert one.accuracy.output.ok
        assert "binding" not in one.facts
        assert not any("checked against" in text for text in one.validity.warnings)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "kind", [drawn_models.dynamic_range, drawn_models.running_sum, drawn_models.places, drawn_models.classes]
)
def test_what_our_engine_may_lack_is_right_on_the_reference(tmp_path, kind):
    graph = drawn_models.model(kind, 1)
    found, _ = measured(tmp_path / "own.onnx", graph.whole_proto(), backends=("ort-cpu",))
    assert {one[2] for one in found} == {"ok"}, found


def test_numbers_that_are_drawn_are_refused_and_never_wrong(tmp_path):
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["r"], "noise"),
        helper.make_node("Add", ["x", "r"], ["y"], "add"),
    ]
    found, _ = measured(tmp_path / "noise.onnx", make_model(nodes, {"x": ("N", 4)}, ["y"]), (1,))
    assert {one[2] for one in found} == {"unsupported"}
    (reason,) = [one[3] for one in found if one[0] == "ort-cpu"]
    assert "no answer of model noise can be compared: node noise (RandomNormalLike) draws" in reason


def test_a_loss_of_nan_is_a_note_on_the_references_row(tmp_path):
    """ONNX Runtime's MaxPool takes NaN for less than any number."""
    nodes = [
        helper.make_node("Log", ["x"], ["l"], "log"),
        helper.make_node("MaxPool", ["l"], ["y"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    proto = make_model(nodes, {"x": ("N", 2, 6, 6)}, ["y"], ranks={"y": 4})
    found, made = measured(tmp_path / "logs.onnx", proto, (2,))
    assert {one[2] for one in found} == {"ok"}, found
    told = {one.case.backend: " ".join(one.validity.warnings) for one in made}
    assert "numbers where the reference itself holds NaN" in told["ort-cpu"]
    assert "holds NaN" not in told["engine-cpu"]
