"""`models quantize`: the file that it writes has the accuracy that it says, and what cannot be quantised is
said in one sentence."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from bench.questions import model_questions, quantizing
from bench.questions.messages import WhichQuantized
from engine import backends
from engine.backend import Options
from engine.graph import importer
from kernels.errors import InputError, KernelscopeError, UnsupportedError
from models import datasets
from tests.engine.harness import make_model

pytestmark = pytest.mark.slow


def quantize(model: str, out: Path, **named: object) -> dict[str, str]:
    asked = WhichQuantized(model=model, out=str(out), images=16, **named)  # type: ignore[arg-type]
    return dict(quantizing.quantize(asked, lambda text, done: None).lines)


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
def test_the_file_answers_as_it_is_said_to(tmp_path: Path, form: str) -> None:
    out = tmp_path / "small.onnx"
    said = quantize("lenet5-digits", out, format=form, per_channel=form == "qdq")
    made = importer.load(out)
    types = {node.op_type for node in made.nodes}
    assert "QuantizeLinear" in types
    assert ("QLinearConv" in types) == (form == "qoperator")
    assert "QLinearSoftmax" not in types
    weights = {name: array for name, array in made.initializers.items() if array.dtype == np.int8}
    assert {array.size for array in weights.values() if array.ndim == 4} == {150, 2400}
    test = datasets.load("digits")
    with closing(backends.get("ort-cpu").prepare(made, len(test), "fp32", Options())) as session:
        session.bind({made.inputs[0].name: (test.array[:, None] / 255).astype(np.float32)})
        session.run()
        (answers,) = session.fetch().values()
    right = float((answers.argmax(axis=1) == test.labels).mean())
    assert said["top-1"].startswith(f"{100 * right:.2f} %, in fp32 97.78 %")
    assert abs(right - 0.9778) < 0.005
    props = {prop.key: prop.value for prop in onnx.load(out).metadata_props}
    assert props["kernelscope.labels"].split() == list("0123456789")
    # Of this file the preprocessing and the classes are known; it is not quantised again.
    with pytest.raises(InputError, match=r"quantised already \(it has .*Linear.*\): take"):
        quantize(str(out), tmp_path / "again.onnx", dataset="digits")


def test_what_cannot_be_quantised_is_said(tmp_path: Path) -> None:
    bare = tmp_path / "bare.onnx"
    onnx.save(
        make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": ("N", 1, 4, 4)}, ["y"], {}, 17, {"y": 4}),
        bare,
    )
    with pytest.raises(InputError, match="model bare has no convolution and no matrix product"):
        quantize(str(bare), tmp_path / "out.onnx")
    flat = tmp_path / "flat.onnx"
    weights = {"w": np.eye(5, dtype=np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    onnx.save(make_model(nodes, {"x": ("N", 5)}, ["y"], weights, 17, {"y": 2}), flat)
    with pytest.raises(InputError, match="takes no images"):
        quantize(str(flat), tmp_path / "out.onnx", dataset="digits")
    with pytest.raises(InputError, match="could not be written"):
        quantize("lenet5-digits", tmp_path / "bare.onnx" / "out.onnx")
    assert not list(tmp_path.glob("out*"))


def test_a_quantiser_that_fails_is_told_with_what_may_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise ValueError("no such axis\nsecond line")

    monkeypatch.setattr("onnxruntime.quantization.quantize_static", failing)
    with pytest.raises(UnsupportedError, match=r"no such axis.*: try --format qoperator or --per-tensor"):
        quantize("lenet5-digits", tmp_path / "out.onnx", per_channel=True)


def test_it_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    missing = WhichQuantized(model=str(tmp_path / "none.onnx"), out=str(tmp_path / "out.onnx"), images=1)
    with pytest.raises(KernelscopeError, match="does not exist"):
        model_questions.quantized(missing)
