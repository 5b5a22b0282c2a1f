"""Weights drawn from a seed are the same everywhere, and near what activations need."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine.graph import importer
from kernels.errors import ModelError
from tests.engine.harness import make_model
from tests.zoo import scaling, shipped
from tests.zoo.drawn import Recipe, bare, draw, emptied, filled, recipe


def test_draws_are_the_same_on_every_machine() -> None:
    """By their bytes; who changes how they are drawn has every net measured anew."""
    values = draw("conv.weight", (3, 5, 7), Recipe(0.5, 0.25), seed=14)
    assert hashlib.sha256(values.astype("<f4").tobytes()).hexdigest()[:16] == "c2b6c12c57abb04b"


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (1.0, 0.1), (0.0, 3e-4)])
def test_draws_have_their_mean_and_deviation(mean: float, deviation: float) -> None:
    values = draw("w", (400, 501), Recipe(mean, deviation), 0)
    assert values.dtype == np.float32
    assert abs(float(values.mean()) - mean) < 0.01 * deviation
    assert float(values.std()) == pytest.approx(deviation, rel=0.01)
    assert np.abs(values - mean).max() <= 1.0001 * math.sqrt(3) * deviation


def test_each_tensor_and_each_seed_is_drawn_by_itself() -> None:
    by = Recipe(0.0, 1.0)
    first = draw("a", (1000,), by, 0)
    for other in (draw("b", (1000,), by, 0), draw("a", (1000,), by, 1)):
        assert abs(np.corrcoef(first, other)[0, 1]) < 0.2
    np.testing.assert_array_equal(draw("a", (999,), by, 0), first[:999])


def deep(layers: int = 12) -> onnx.ModelProto:
    """Convolutions with a skip round each, then a matrix; weights that would overflow."""
    random = np.random.default_rng(0)
    nodes, arrays, x = [], {}, "x"
    for i in range(layers):
        arrays[f"w{i}"] = 100 * random.standard_normal((8, 8, 3, 3), np.float32)
        arrays[f"b{i}"] = random.standard_normal(8, np.float32)
        nodes += [
            helper.make_node("Conv", [x, f"w{i}", f"b{i}"], [f"c{i}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
            helper.make_node("Add", [f"r{i}", x], [f"a{i}"]),
        ]
        x = f"a{i}"
    arrays |= {"m": random.standard_normal((3, 512), np.float32), "axes": np.array([1, 0])}
    arrays["rows"] = np.array([0, -1])
    nodes += [
        helper.make_node("Reshape", [x, "rows"], ["flat"]),
        helper.make_node("Transpose", ["m"], ["mt"], perm=[1, 0]),
        helper.make_node("MatMul", ["flat", "mt"], ["y"]),
    ]
    nodes[0].doc_string = "as somebody's machine has it: /home/somebody/net.py"
    return make_model(nodes, {"x": ("N", 8, 8, 8)}, ["y"], arrays, 17, {"y": 2})


def test_a_model_without_weights_is_filled_so_that_activations_stay_near_one(tmp_path: Path) -> None:
    proto = deep()
    found = scaling.recipes(proto, seed=3)
    left = emptied(proto, found, 3)
    assert {t.name for t in left.graph.initializer if recipe(t)} == set(found)
    assert set(found) == {t.name for t in proto.graph.initializer if t.data_type == TensorProto.FLOAT}
    assert b"somebody" not in left.SerializeToString()
    onnx.save(left, tmp_path / "net.onnx")
    with pytest.raises(ModelError, match="weights in files beside it"):
        importer.load(tmp_path / "net.onnx")
    whole = filled(bare(tmp_path / "net.onnx"))
    (made,) = shipped.write_all(tmp_path, tmp_path / "filled")
    assert made.read_bytes() == whole.SerializeToString()
    made.write_bytes(b"of before")
    assert shipped.write_all(tmp_path, made.parent) == [made]
    assert made.read_bytes() == b"of before"
    with pytest.raises(ValueError, match="name another folder"):
        shipped.write_all(tmp_path, tmp_path)
    onnx.checker.check_model(whole, full_check=True)
    kept = {t.name: numpy_helper.to_array(t) for t in whole.graph.initializer}
    np.testing.assert_array_equal(kept["rows"], [0, -1])
    x = np.random.default_rng(1).random((2, 8, 8, 8), np.float32)
    for node in whole.graph.node:
        assert not node.doc_string
    values = onnx.reference.ReferenceEvaluator(whole).run(None, {"x": x})
    assert 0.5 < np.std(values[0]) < 2


def test_what_a_weight_is_for_must_be_known() -> None:
    proto = deep(1)
    proto.graph.node[-1].op_type = "Max"
    with pytest.raises(ValueError, match="what the weight m of 1536 elements is for"):
        scaling.recipes(proto, 0)


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"junk")
    with pytest.raises(ValueError, match=r"net\.onnx is truncated or is not an ONNX model"):
        bare(tmp_path / "net.onnx")


def test_a_model_without_a_seed_is_told() -> None:
    with pytest.raises(ValueError, match="seed"):
        filled(deep(1))
    with pytest.raises(ValueError, match="no net alexnet ships; those that do are densenet121, "):
        shipped.model("alexnet")
    with pytest.raises(ValueError, match=r"no \.onnx file lies in"):
        shipped.write_all(Path("no such folder"), Path("filled"))
