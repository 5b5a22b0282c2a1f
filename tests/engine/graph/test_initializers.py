"""Large weights are kept once: declared by the proto, given to ONNX Runtime as they are."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from bench.measure.answers import accuracy, oracle
from engine.backend import Options
from engine.backends import get
from engine.graph import initializers
from engine.graph.graph import Graph
from engine.graph.importer import from_proto, load
from engine.options import Configuration
from engine.ort import sessions as ort
from engine.ort.fused_conv import fused
from engine.ort.precision import to_fp16
from engine.planning.submodel import extract, with_outputs
from kernels.errors import ModelError, OutOfMemoryError, UnsupportedError
from tests.engine.backends.nets import small_net
from tests.engine.backends.shared import answers
from tests.engine.harness import make_model, random

X = random((3, 3, 12, 12))
LARGE = ["w3"]  # of small_net, the one above initializers.SMALL elements


def test_a_graph_keeps_large_weights_beside_its_proto_and_puts_them_together() -> None:
    whole = small_net().whole_proto()
    kept = from_proto(whole)
    assert initializers.declared(kept.proto) == LARGE
    assert not initializers.declared(whole), "the proto given is left as it was"
    assert kept.whole_proto() == whole
    assert kept.sha256 == from_proto(kept.whole_proto()).sha256
    assert kept.proto.ByteSize() < whole.ByteSize() / 4


def test_parts_and_rewritings_share_the_weights() -> None:
    graph = small_net()
    weight = graph.initializers["w3"]
    part = extract(graph, ["flatten", "fc3"], 2)
    for made in (part, with_outputs(graph, ["f"]), fused(graph)):
        assert np.shares_memory(made.initializers["w3"], weight)
        assert initializers.declared(made.proto) == LARGE
    assert not part.initializers["w3"].flags.writeable
    assert initializers.declared(to_fp16(graph).proto) == ["w3:fp16"]


def test_what_is_declared_without_values_is_refused(tmp_path: Path) -> None:
    proto = small_net().proto
    with pytest.raises(ModelError, match="broken initializer 'w3'"):
        from_proto(proto)
    path = tmp_path / "declared.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match="weights in files beside it"):
        load(path)


@pytest.mark.parametrize("rewrite", [lambda graph: graph, to_fp16, fused], ids=["plain", "fp16", "fused"])
def test_weights_given_as_arrays_give_the_answer_of_the_whole_model(rewrite, monkeypatch) -> None:
    """To the last bit, so that ONNX Runtime folds and fuses the same."""
    graph = rewrite(small_net())
    calls: list[int] = []
    monkeypatch.setattr(initializers, "whole", lambda *_: calls.append(1))
    by_reference = made(ort.import_onnxruntime(), graph).run(None, {"x": X})[0]
    assert not calls, "nothing was put together"
    monkeypatch.undo()
    serialised = made(Refusing(RuntimeError("no")), graph).run(None, {"x": X})[0]
    np.testing.assert_array_equal(by_reference, serialised)


def test_a_session_outlives_the_graph_whose_weights_it_reads() -> None:
    graph = small_net()
    expected = oracle.run(graph, {"x": X}, ["y"])["y"]
    runtime = ort.import_onnxruntime()
    session = ort.create_session(
        runtime, graph, 3, lambda: ort.session_options(runtime, 1, "disabled"), ["CPUExecutionProvider"]
    )
    size = graph.initializers["w3"].size
    del graph
    gc.collect()
    taken = [np.full(size, np.nan, np.float32) for _ in range(200)]  # where the weights were, had they gone
    actual = session.run(None, {"x": X})[0]
    assert len(taken) == 200
    assert accuracy.error_stats(actual, expected, "fp32").ok


class Refusing:
    """onnxruntime whose options do with weights given as arrays what `error` says."""

    def __init__(self, error: Exception) -> None:
        self.real, self.error = ort.import_onnxruntime(), error

    def __getattr__(self, name: str):
        return getattr(self.real, name)

    def SessionOptions(self):
        error = self.error

        class Options(self.real.SessionOptions):
            def add_external_initializers(self, *_):
                raise error

        return Options()


def made(runtime, graph: Graph):
    return ort.create_session(
        runtime, graph, 3, lambda: ort.session_options(runtime, 1), ["CPUExecutionProvider"]
    )


@pytest.mark.parametrize("error", [AttributeError("no such method"), RuntimeError("not in this build")])
def test_where_arrays_are_not_taken_the_whole_model_is_serialised(error) -> None:
    graph = small_net()
    actual = made(Refusing(error), graph).run(None, {"x": X})[0]
    np.testing.assert_array_equal(actual, answers(get("ort-cpu"), graph, {"x": X}, 3)["y"])


def test_what_is_wrong_with_the_model_or_the_memory_is_still_told() -> None:
    with pytest.raises(OutOfMemoryError):
        made(Refusing(RuntimeError("bad_alloc: 3 GiB")), small_net())
    node = helper.make_node("Florp", ["x", "w"], ["y"], "florp", domain="elsewhere")
    proto = make_model([node], {"x": ("N", 2)}, ["y"], {"w": random((64, 64))})
    proto.opset_import.append(helper.make_opsetid("elsewhere", 1))
    with pytest.raises(UnsupportedError, match="Florp"):
        made(ort.import_onnxruntime(), from_proto(proto))


def test_types_that_numpy_lacks_stay_in_the_proto() -> None:
    wide = onnx.helper.make_tensor("w", onnx.TensorProto.BFLOAT16, [64, 32], np.ones(64 * 32))
    nodes = [
        helper.make_node("Cast", ["w"], ["f"], "cast", to=onnx.TensorProto.FLOAT),
        helper.make_node("MatMul", ["x", "f"], ["y"], "product"),
    ]
    proto = make_model(nodes, {"x": ("N", 64)}, ["y"])
    proto.graph.initializer.append(wide)
    graph = from_proto(proto)
    assert not initializers.declared(graph.proto)
    assert graph.whole_proto() == graph.proto
    np.testing.assert_array_equal(
        made(ort.import_onnxruntime(), graph).run(None, {"x": np.ones((3, 64), np.float32)})[0],
        np.full((3, 32), 64, np.float32),
    )


def test_optimised_models_are_written_without_their_weights() -> None:
    """What each optimised node covers is still known, with weights that are fused and folded."""
    session = get("ort-cpu").prepare(small_net(), 2, options=Options(threads=1, ort=Configuration()))
    session.bind({"x": X[:2]})
    covered = {name for time in session.op_times(0.01) for name in time.nodes}
    session.close()
    assert {"conv1", "fc3", "prob"} <= covered
