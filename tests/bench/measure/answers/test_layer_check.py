"""A wrong layer is a wrong result, whatever the model's output says; so are answers that differ."""

import functools
from dataclasses import replace

import msgspec
import numpy as np
import onnx
import pytest
from onnx import helper

from bench.measure import net_runner, timing
from bench.measure.answers import accuracy, layer_errors, oracle
from bench.measure.answers.layer_check import LayerCheck
from bench.measure.images import predictions
from bench.measure.images.predictions import Predictions
from bench.measure.loaded_model import LoadedModel
from bench.results import artifacts
from bench.results.messages import CaseStarted, Measured
from bench.results.records import Case, ErrorStats
from bench.views.diff import bisect
from engine import backends
from engine.backend import Options
from engine.graph import importer
from engine.planning import groups
from tests.bench.measure.test_worker import JOB, Fake, changed, fakes, go  # noqa: F401
from tests.engine.harness import make_model

pytestmark = pytest.mark.slow

HEADER = '# op = "conv"\n# rung = 77\n# name = "{name}"\n# idea = "Planted."\n'
KERNEL = """
import numpy as np
from tests.bench.ladder.planted._direct import convolve, finish, shaped

def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def run():
        y[...] = convolve(p, x, weight, {bias})
        finish(p, output)

    return run
"""


@pytest.fixture(autouse=True)
def _quick(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    quick = functools.partial(timing.Rules, min_s=0.02)
    monkeypatch.setattr(net_runner, "Rules", quick)


def kernels(tmp_path, bias="None", name="nobias"):
    """A folder with a convolution of one's own; `bias`: the expression that it takes as its bias."""
    (tmp_path / f"77_{name}.py").write_text(HEADER.format(name=name) + KERNEL.format(bias=bias))
    return (str(tmp_path),)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("layers", [True, False])
@pytest.mark.parametrize("bias", ["None", "0.9 * bias"])
def test_a_kernel_with_a_wrong_bias_is_incorrect_though_the_softmax_hides_it(tmp_path, layers, bias):
    job = changed(
        backends=("engine-cpu", "ort-cpu"),
        layers=layers,
        rungs={"conv1": "nobias"},
        kernel_dirs=kernels(tmp_path, bias),
    )
    found, _ = go(job)
    wrong = found["engine-cpu"]
    assert wrong.disposition == "incorrect"
    assert wrong.reason.startswith("layer conv1 (nobias) alone, fed right inputs: relative L2 error ")
    assert wrong.samples_ns == ()
    off = [layer.nodes[0] for layer in wrong.layers if layer.isolated is not None and not layer.isolated.ok]
    assert off == ["conv1"]
    assert wrong.accuracy.output.ok, "the output alone does not show it"
    assert "leave the reference is conv1 (Conv, rung nobias): fed right inputs" in bisect.words(wrong)
    assert "the fault is its own (isolated); behind it pool1" in bisect.words(wrong)
    assert found["ort-cpu"].disposition == "ok"


def test_a_kernel_that_is_wrong_at_the_cases_own_batch_alone_is_found(tmp_path):
    job = changed(
        backends=("engine-cpu",),
        batches=(40,),
        rungs={"conv1": "large"},
        kernel_dirs=kernels(tmp_path, "bias if p.n <= 8 else None", "large"),
    )
    found, _ = go(job)
    assert found["engine-cpu"].disposition == "incorrect"
    assert found["engine-cpu"].reason.startswith("layer conv1 (large) alone")


def test_a_kernel_that_refuses_so_few_images_is_looked_at_at_its_own_batch(tmp_path):
    own = kernels(tmp_path, "0.9 * bias", "tens")
    file = tmp_path / "77_tens.py"
    needs = "\n# needs = {multiple_of = {n = 10}}\n# idea"
    file.write_text(file.read_text().replace("\n# idea", needs, 1))
    job = changed(backends=("engine-cpu",), batches=(2, 40), rungs={"conv1": "tens"}, kernel_dirs=own)
    _, messages = go(job)
    found = {m.measurement.case.batch: m.measurement for m in messages if isinstance(m, Measured)}
    assert found[2].disposition == "unsupported"
    assert found[40].disposition == "incorrect"
    assert found[40].reason.startswith("layer conv1 (tens) alone")


def test_a_right_kernel_of_ones_own_is_ok(tmp_path):
    own = kernels(tmp_path, "bias", "right")
    found, _ = go(changed(backends=("engine-cpu",), rungs={"conv1": "right"}, kernel_dirs=own))
    assert found["engine-cpu"].disposition == "ok"


def test_what_was_checked_is_told_without_a_layer_pass(tmp_path):
    job = changed(backends=("engine-cpu", "ort-cpu"), batches=(20,))
    found, messages = go(job, tmp_path)
    assert not any(isinstance(m, CaseStarted) and m.stage == "layers" for m in messages)
    assert found["ort-cpu"].layers == (), "nobody looked at them"
    one = found["engine-cpu"]
    parts = groups.groups(LoadedModel("lenet5-digits", job, (20,), lambda *_: None).graph, 20)
    told = [(x.nodes, x.shape, x.flops, x.nbytes) for x in one.layers]
    assert told == [(x.nodes, x.shape, x.flops, x.nbytes) for x in parts], "those of the case's own batch"
    assert all(layer.isolated.ok and layer.propagated is None for layer in one.layers)
    assert {(layer.time_ns, layer.clock) for layer in one.layers} == {(None, "")}
    assert all(layer.rung for layer in one.layers if layer.op_type.startswith("Conv"))
    with np.load(artifacts.path(tmp_path, "layers", one.case)) as kept:
        assert np.isnan(kept["time_ns"]).all()
        assert list(kept["isolated"]) == [layer.isolated.rel_l2 for layer in one.layers]
    assert not artifacts.path(tmp_path, "layers", found["ort-cpu"].case).exists()


def test_layers_of_one_backend_alone_are_measured_and_nothing_of_the_reference(monkeypatch):
    looked_at = []
    real = layer_errors.isolated

    def noted(graph, backend, *rest):
        looked_at.append(backend.name)
        return real(graph, backend, *rest)

    monkeypatch.setattr(layer_errors, "isolated", noted)
    job = changed(backends=("engine-cpu", "ort-cpu"), layers=True, layers_of=("engine-cpu",))
    found, messages = go(job)
    pass_of = [m.case.backend for m in messages if isinstance(m, CaseStarted) and m.stage == "layers"]
    assert pass_of == ["engine-cpu"]
    assert set(looked_at) == {"engine-cpu"}
    assert found["ort-cpu"].layers == ()
    layers = found["engine-cpu"].layers
    assert any(layer.time_ns for layer in layers)
    assert all(
        x.isolated.ok and x.isolated.ratio is None and x.propagated is None for x in layers if x.output
    )


def test_a_layer_of_a_reference_beyond_its_bound_is_a_mark_and_no_failure(monkeypatch):
    real = layer_errors.isolated

    def off(*arguments, **options):
        found = real(*arguments, **options)
        name = next(iter(found))
        wrong = msgspec.structs.replace(found[name], ok=False, rel_l2=8.5e-4, reason="it is off by 8.5e-04")
        return found | {name: wrong}

    monkeypatch.setattr(layer_errors, "isolated", off)
    found, _ = go(changed(layers=True))
    measured = found["ort-cpu"]
    assert measured.disposition == "ok"
    assert "layer conv1 alone: it is off by 8.5e-04" in measured.validity.warnings


def test_a_layer_that_cannot_be_looked_at_is_told(monkeypatch):
    monkeypatch.setattr(layer_errors, "_alone", lambda *_: (None, True))
    monkeypatch.setattr(layer_errors, "_known", type(layer_errors._known)())
    found, _ = go(changed(backends=("engine-cpu",)))
    told = " ".join(found["engine-cpu"].validity.warnings)
    assert "layers could not be checked alone: conv1" in told


def test_a_step_that_reaches_across_groups_is_looked_at_as_one():
    loaded = LoadedModel("lenet5-digits", JOB, (2,), lambda *_: None)
    graph, golden = loaded.graph, loaded.golden()
    parts = groups.groups(graph, golden.images)
    across = (*parts[0].nodes, *parts[1].nodes)
    options = Options(threads=1)
    found = layer_errors.isolated(graph, backends.get("engine-cpu"), "fp32", options, golden, [across])
    assert set(found) == {part.output for part in parts}
    assert found[parts[0].output] is found[parts[1].output]
    assert all(stats.ok for stats in found.values())


def test_a_job_that_names_no_backend_groups_nodes_for_those_that_run(monkeypatch):
    job = msgspec.structs.replace(JOB, backends=())
    assert LoadedModel("lenet5-digits", job, (1,), lambda *_: None).graph.devices == ("cpu",)
    planned = LoadedModel("lenet5-digits", job, (1,), lambda *_: None, {"engine-cuda"})
    assert planned.graph.devices == ("cpu", "cuda")


# ------------------------------------------------------------------------------------- answers that differ


def answers(scores):
    scores = np.asarray(scores, np.float32)
    count = len(scores)
    best = accuracy.top_k(scores, 5)
    return Predictions(
        np.full(count, -1), best[:, 0], np.ones(count), np.zeros(count, bool), predictions.margins(scores)
    )


@pytest.mark.parametrize(
    ("precision", "first", "second"),
    [("fp32", 0.5004, 0.4996), ("fp32-tc", 0.5004, 0.4996), ("tf32", 0.53, 0.47), ("fp16", 0.58, 0.42)],
)
def test_an_image_counts_where_the_reference_was_surer_than_rounding(precision, first, second):
    reference = answers([[0.9, 0.1], [first, second], [0.5, 0.5]])
    agreeing = answers([[0.9, 0.1], [first, second], [0.49, 0.51]])
    close = answers([[0.9, 0.1], [second, first], [0.5, 0.5]])
    flipped = answers([[0.1, 0.9], [second, first], [0.5, 0.5]])
    assert predictions.conflicts(agreeing, reference, precision).tolist() == []
    at_tie = answers([[0.9, 0.1], [0.5, 0.5]])
    assert predictions.conflicts(answers([[0.9, 0.1], [0.4999, 0.5]]), at_tie, precision).size == 0
    assert 0 in predictions.conflicts(flipped, reference, precision)
    sure = bool(accuracy.decided(reference.margin[1:2], precision)[0])
    assert (1 in predictions.conflicts(close, reference, precision)) == sure


def test_rounding_is_given_more_room_the_lower_the_precision():
    margin = np.array([3.5e-4])
    assert accuracy.decided(margin, "fp32").all()
    assert not accuracy.decided(margin, "tf32").any()
    assert not accuracy.decided(np.array([0.05]), "tf32").any()
    assert accuracy.decided(np.array([0.05 + 0.01]), "tf32").all()


def test_no_number_counts_even_where_the_class_is_the_same():
    reference = answers([[0.9, 0.1]])
    broken = answers([[np.nan, np.nan]])
    assert broken.predicted[0] == reference.predicted[0]
    assert predictions.conflicts(broken, reference, "fp16").tolist() == [0]


def test_one_image_answered_otherwise_makes_a_case_incorrect(fakes):  # noqa: F811
    def fault(session, outputs):
        # Right on the images that are checked against float64, among which there is no 9.
        scores = outputs["probabilities"] if "probabilities" in outputs else next(iter(outputs.values()))
        nines = np.flatnonzero(scores.argmax(axis=1) == 9)[:1]
        scores[nines] = np.roll(scores[nines], 1, axis=1)
        return outputs

    found, _ = go(changed(backends=fakes(Fake("wrong-nine", fault))))
    assert found["ort-cpu"].disposition == "ok"
    wrong = found["wrong-nine"]
    assert wrong.disposition == "incorrect"
    assert "images are answered otherwise than by ort-cpu, which was sure of them" in wrong.reason
    assert wrong.accuracy.agreement < 1
    assert wrong.samples_ns == ()


# --------------------------------------------------------------------------------- how a bound is widened


def ill_conditioned():
    """y = x · (1e4, −1e4) of two nearly equal numbers: float32's last bit of x moves it by some 1e-2."""
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    weight = onnx.numpy_helper.from_array(np.array([[1e4], [-1e4]], np.float32), "w")
    ends = (
        [helper.make_tensor_value_info("x", float32, ["N", 2])],
        [helper.make_tensor_value_info("y", float32, ["N", 1])],
    )
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="cancels")
    made = helper.make_graph([node], "ill", *ends, [weight])
    proto = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    graph = importer.from_proto(proto, "ill")
    one = np.random.default_rng(0).random((4, 1), np.float32) + 1
    return graph, oracle.golden(graph, {"x": np.concatenate([one, one * np.float32(1 + 1e-6)], axis=1)})


def test_a_bound_is_widened_by_what_the_inputs_last_bit_moves():
    graph, golden = ill_conditioned()
    (part,) = groups.groups(graph, golden.images)
    right = golden.tensors["y"]
    plain = accuracy.error_stats((right * (1 + 1e-3)).astype(np.float32), right, "fp32")
    assert not plain.ok
    widened = oracle.judged_alone((right * (1 + 1e-3)).astype(np.float32), graph, part, golden, "fp32")
    assert widened.ok
    assert widened.bound > 1e-3
    assert not oracle.judged_alone((right * 3).astype(np.float32), graph, part, golden, "fp32").ok
    assert not oracle.judged_alone(np.full_like(right, np.nan), graph, part, golden, "fp32").ok


def with_equal_weights(path):
    """Scores near 1e12, all alike, then a softmax: as the light models of the onnx package have them."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    weights = {
        "w1": np.full((4, 3, 3, 3), 1e5, np.float32),
        "b1": np.full(4, 1.0, np.float32),
        "w2": np.full((256, 37), 1e4, np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Flatten", ["r"], ["f"], "flatten"),
        helper.make_node("MatMul", ["f", "w2"], ["m"], "fc"),
        helper.make_node("Softmax", ["m"], ["y"], "softmax"),
    ]
    ends = [
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)]
        for name, shape in (("x", ["N", 3, 8, 8]), ("y", ["N", 37]))
    ]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    made = helper.make_graph(nodes, "alike", *ends, initializers)
    proto = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(proto, path)
    return importer.load(path)


def test_scores_that_one_rounding_decides_are_judged_by_how_far_it_moves_them(tmp_path):
    graph = with_equal_weights(tmp_path / "alike.onnx")
    inputs = {"x": np.random.default_rng(0).random((2, 3, 8, 8), np.float32)}
    golden = oracle.golden(graph, inputs)
    np.testing.assert_allclose(golden.tensors["y"], 1 / 37)
    assert golden.tensors["m"].max() > 1e12
    decided = np.zeros((2, 37), np.float32)
    decided[:, 5] = 1  # as any float32 sums may have it
    moved = next(oracle.moved_along(graph, golden, ["y"]))["y"]
    placed = accuracy.Placement(inputs, (0, 1), (0, 1))
    expected = {"y": golden.tensors["y"]}
    assert not accuracy.check({"y": decided}, expected, placed, "fp32").ok
    stats = accuracy.check({"y": decided}, expected, placed, "fp32", {"y": moved})
    assert stats.ok, stats.reason
    told = accuracy.moving(stats, "fp32")
    assert "the right answer itself moves by" in told
    assert "says nothing of the kernels" in told
    assert not accuracy.check({"y": decided * np.nan}, expected, placed, "fp32", {"y": moved}).ok
    assert accuracy.moving(accuracy.check(expected, expected, placed, "fp32", {"y": moved}), "fp32") == ""


def test_a_net_that_is_well_conditioned_gains_next_to_nothing():
    loaded = LoadedModel("lenet5-digits", JOB, (2,), lambda *_: None)
    golden = loaded.golden()
    (name,) = [info.name for info in loaded.graph.outputs]
    right = golden.tensors[name]
    moved = next(oracle.moved_along(loaded.graph, golden, [name]))[name]
    assert 0 < np.linalg.norm(moved) / np.linalg.norm(right) < 1e-5
    off = (right * (1 + 1e-3)).astype(np.float32)
    assert not accuracy.judged(off, right, "fp32", accuracy.PROPAGATED_FACTOR, moved).ok


def variance_of_all(offset):
    """x · 1/√(E[x²] − E[x]²), of all of x, which lies about `offset`: what is left of both means is small."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["squares"]),
        helper.make_node("ReduceMean", ["squares"], ["mean of squares"], axes=[1, 2, 3]),
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[1, 2, 3]),
        helper.make_node("Mul", ["mean", "mean"], ["square of mean"]),
        helper.make_node("Sub", ["mean of squares", "square of mean"], ["variance"]),
        helper.make_node("Sqrt", ["variance"], ["deviation"]),
        helper.make_node("Div", ["x", "deviation"], ["y"]),
    ]
    graph = importer.from_proto(
        make_model(nodes, {"x": ("N", 4, 64, 64)}, ["y"], {}, 13, {"y": 4}), "variance"
    )
    x = offset + np.random.default_rng(0).random((2, 4, 64, 64), np.float32)
    return graph, {"x": x.astype(np.float32)}


def test_long_sums_that_nearly_cancel_are_as_unsure_as_float32_sums_leave_them():
    graph, inputs = variance_of_all(offset=100)
    golden = oracle.golden(graph, inputs)
    right, x = golden.tensors["y"], inputs["x"].reshape(2, -1)
    rows = [np.cumsum(of, axis=1, dtype=np.float32)[:, -1] / np.float32(of.shape[1]) for of in (x * x, x)]
    deviation = np.sqrt(rows[0] - rows[1] ** 2)  # as a loop adds, one term after the other
    found = inputs["x"] / deviation.reshape(-1, 1, 1, 1)
    assert not accuracy.judged(found, right, "fp32", accuracy.PROPAGATED_FACTOR).ok
    moved = next(oracle.moved_along(graph, golden, ["y"]))["y"]
    assert accuracy.judged(found, right, "fp32", accuracy.PROPAGATED_FACTOR, moved).ok
    # A kernel that is wrong by as much where nothing cancels is wrong.
    graph, inputs = variance_of_all(offset=0)
    golden = oracle.golden(graph, inputs)
    moved = next(oracle.moved_along(graph, golden, ["y"]))["y"]
    off = golden.tensors["y"] * (1 + 1e-3)
    assert not accuracy.judged(off, golden.tensors["y"], "fp32", accuracy.PROPAGATED_FACTOR, moved).ok


def test_what_is_no_number_widens_no_bound(monkeypatch):
    graph, golden = ill_conditioned()
    monkeypatch.setattr(oracle, "run", lambda *_, **__: {"y": np.full((4, 1), np.nan)})
    assert list(oracle.moved_along(graph, golden, ["y"])) == [{}]


@pytest.mark.sampled(4, "long")
def test_a_wrong_kernel_before_such_scores_is_found_all_the_same(tmp_path):
    path = tmp_path / "alike.onnx"
    with_equal_weights(path)
    job = changed(
        models=(str(path),),
        dataset="random",
        backends=("engine-cpu", "ort-cpu"),
        layers=False,
        rungs={"conv1": "off"},
        kernel_dirs=kernels(tmp_path, "bias", "off"),
    )
    found, _ = go(job)
    assert found["engine-cpu"].disposition == "ok", found["engine-cpu"].reason
    told = " ".join(found["engine-cpu"].validity.warnings)
    assert "moves by one rounding of its type" in told or found["engine-cpu"].accuracy.output.rel_l2 < 1e-4
    planted = KERNEL.replace("finish(p, output)", "y[:, 1] *= 1.001\n        finish(p, output)")
    (tmp_path / "77_off.py").write_text(HEADER.format(name="off") + planted.format(bias="bias"))
    found, _ = go(job)
    assert found["engine-cpu"].disposition == "incorrect"
    assert found["engine-cpu"].reason.startswith("layer conv1 (off) alone, fed right inputs")


def test_whole_numbers_are_exact_but_at_ties():
    expected = np.array([1_000_000, 5, 0])
    off = np.array([1_000_001, 5, 0])
    assert accuracy.error_stats(expected, expected, "fp32").ok
    stats = accuracy.error_stats(off, expected, "fp32")
    assert stats.reason == "1 of 3 whole numbers differ, first (0,): 1000001 instead of 1000000"
    assert accuracy.error_stats(off, expected, "fp32", moved=np.array([1.0, 0, 0])).ok
    assert not accuracy.error_stats(off, expected, "fp32", moved=np.array([0, 1.0, 0])).ok
    assert not accuracy.error_stats(np.array([True, False]), np.array([True, True]), "fp16").ok


def test_the_layers_of_a_wrong_case_are_known_without_times():
    loaded = LoadedModel("lenet5-digits", JOB, (2,), lambda *_: None)
    case = Case(model="lenet5-digits", backend="engine-cpu", precision="fp32", batch=2, images=0)
    backend = backends.get("engine-cpu")
    options = replace(loaded.options_for("cpu"), threads=1)
    check = LayerCheck(case, backend, options, loaded)
    assert check.known() == ()
    session = backend.prepare(loaded.graph, 2, "fp32", options)
    check.before_timing(session)
    session.close()
    layers = check.known()
    assert layers[0].nodes[0] == "conv1"
    assert all(isinstance(layer.isolated, ErrorStats) and layer.time_ns is None for layer in layers)
