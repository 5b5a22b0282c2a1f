"""Files of static quantisation: what ONNX Runtime's optimiser makes of them is told as its own, and a kernel
of ours that is a little wrong is found."""

import contextlib
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.numpy_helper import to_array

import engine.backends
from bench.measure import net_contender
from bench.measure.loaded_model import LoadedModel
from bench.measure.outcomes import Incorrect
from bench.results import doubt
from bench.results.records import Case
from tests.bench.measure.test_files_of_others import _quick, measured, net, node  # noqa: F401
from tests.bench.measure.test_worker import Fake, changed
from tests.engine.harness import make_model

pytestmark = pytest.mark.slow


def through(x, made, scale, zero):
    """QuantizeLinear and DequantizeLinear."""
    q = helper.make_node("QuantizeLinear", [x, scale, zero], [f"q {made}"], f"q {made}")
    return [q, helper.make_node("DequantizeLinear", [f"q {made}", scale, zero], [made], f"d {made}")]


def quantised(seed, softmax=True):
    """Two products, and between them a Softmax of eight bits, of which ONNX Runtime has tables, or a Relu."""
    random = np.random.default_rng(seed)
    constants = {
        "s": np.float32(2 / 255), "z": np.uint8(128), "ps": np.float32(1 / 255), "pz": np.uint8(0),
        "as": np.float32(0.05), "ys": np.float32(0.01),
        "ws": random.uniform(0.005, 0.02, 32).astype(np.float32), "wz": np.zeros(32, np.int8),
        "vs": np.float32(0.01), "vz": np.int8(0),
        "w": random.integers(-127, 128, (32, 32)).astype(np.int8),
        "v": random.integers(-127, 128, (32, 16)).astype(np.int8),
    }  # fmt: skip
    between = node("Softmax", "b", "c", axis=-1) if softmax else node("Relu", "b", "c")
    nodes = [
        *through("x", "a", "s", "z"),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], "wd", axis=1),
        helper.make_node("MatMul", ["a", "wd"], ["m"], "first"),
        *through("m", "b", "as", "z"),
        between,
        *through("c", "p", *(("ps", "pz") if softmax else ("as", "z"))),
        helper.make_node("DequantizeLinear", ["v", "vs", "vz"], ["vd"], "vd"),
        helper.make_node("MatMul", ["p", "vd"], ["n"], "second"),
        *through("n", "y", "ys", "z"),
    ]
    return make_model(nodes, {"x": ("N", 8, 32)}, ["y"], constants, 13, {"y": 3})


@pytest.mark.sampled(4, "long")
def test_what_the_optimiser_changes_is_told_of_the_reference_and_of_no_kernel(tmp_path):
    told = []
    for seed in range(2):
        ours, theirs = measured(tmp_path / f"{seed}.onnx", quantised(seed))
        for one in (*ours, *theirs):
            assert one.disposition == "ok", (seed, one.case.backend, one.reason)
        assert not any(net_contender.OPTIMISED in text for one in ours for text in one.validity.warnings)
        told += [
            text for one in theirs for text in doubt.own(one) if text.startswith(net_contender.OPTIMISED)
        ]
    assert told, "no Softmax of eight bits was off"
    assert all("its optimisation, not the file, is the cause" in text for text in told)


def test_an_optimiser_that_is_far_off_is_wrong_and_named(tmp_path, monkeypatch):
    def off(session, outputs):
        wrong = np.float32(1.0 if session.plain else 1.5)
        return {name: array * wrong for name, array in outputs.items()}

    class Optimising(Fake):
        def prepare(self, graph, batch, precision="fp32", options=None):
            session = super().prepare(graph, batch, precision, options)
            session.plain = options.ort is not None
            return session

    fake = Optimising("ort-fake", off)
    real = {name: engine.backends.get(name) for name in ("engine-cpu", "ort-cpu")}
    monkeypatch.setattr(engine.backends, "_found", lambda: real | {"ort-fake": fake})
    path = str(tmp_path / "far.onnx")
    onnx.save(quantised(0, softmax=False), path)
    job = changed(models=(path,), backends=("ort-fake",), dataset="random", images=())
    case = Case(model=path, backend="ort-fake", batch=2, precision="fp32")
    found = net_contender.NetContender(case, LoadedModel(path, job, (2,), lambda *_: None), job)
    with contextlib.closing(found), pytest.raises(Incorrect) as wrong:
        found.prepare()
    assert f"{net_contender.OPTIMISED} by " in str(wrong.value)
    assert str(wrong.value).endswith("its optimisation, not the file, is the cause")


PLANTS = {
    "zero": lambda w: {"w": np.clip(w["w"].astype(int) + 1, -128, 127).astype(np.int8)},
    "zero_of_input": lambda w: {"z": np.uint8(127)},
    "scale": lambda w: {"vs": np.float32(w["vs"] * 1.01)},
    "channel": lambda w: {"ws": np.r_[w["ws"][[1, 0]], w["ws"][2:]]},
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("softmax", [True, False])
def test_a_kernel_that_is_a_little_wrong_is_found_in_such_a_file(tmp_path, monkeypatch, plant, softmax):
    backend = engine.backends.get("engine-cpu")
    prepare = type(backend).prepare

    def planted(self, graph, *given, **named):
        """Wrong wherever it runs: in the whole model and in each layer alone."""
        wrong = PLANTS[plant](held)
        mixed = {name: wrong.get(name, array) for name, array in graph.initializers.items()}
        return prepare(self, replace(graph, initializers=mixed), *given, **named)

    proto = quantised(3, softmax)
    held = {it.name: to_array(it) for it in proto.graph.initializer}
    monkeypatch.setattr(type(backend), "prepare", planted)
    ours, _ = measured(tmp_path / "planted.onnx", proto, (2,))
    assert [one.disposition for one in ours] == ["incorrect"]
