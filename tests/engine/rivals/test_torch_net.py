"""Our Graph as a torch module: which operators have a translation, and where PyTorch is there, that its
answers are ONNX's. KERNELSCOPE_PYTHON_TORCH names a Python that has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from onnx import helper

from bench.measure import cases
from bench.measure.answers import oracle
from bench.results.records import Case, Job
from engine.backend import Options
from engine.backends import get
from engine.backends.torch import Torch
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.isolated import pool
from engine.rivals import torch_net
from kernels import numba_support
from kernels.environment import NEEDED, Environment
from kernels.errors import UnsupportedError
from tests.engine.backends.nets import small_net
from tests.engine.harness import make_model, random

TORCH = Environment("torch", "PyTorch", "torch", "", needs=NEEDED)
IMAGE = ("N", 4, 9, 7)
with_torch = pytest.mark.skipif(TORCH.missing() is not None, reason=str(TORCH.missing()))


def of_node(op: str, opset: int = 13, more: dict[str, np.ndarray] | None = None, **attributes: Any) -> Graph:
    node = helper.make_node(op, ["x", *(more or {})], ["y"], "n", **attributes)
    return from_proto(make_model([node], {"x": IMAGE}, ["y"], more or {}, opset=opset), "net")


GRAPHS = {
    "net": small_net(),
    "conv": of_node("Conv", more={"w": random((6, 2, 3, 2), 1)}, group=2, strides=[2, 1], dilations=[1, 2]),
    "conv uneven": of_node("Conv", more={"w": random((2, 4, 3, 3), 1)}, pads=[0, 1, 2, 0]),
    "conv same": of_node("Conv", more={"w": random((2, 4, 2, 2), 1)}, auto_pad="SAME_LOWER"),
    "max ceil": of_node("MaxPool", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
    "max uneven": of_node("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[0, 2, 1, 1]),
    "mean": of_node("AveragePool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "mean counted": of_node("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    "global": of_node("GlobalAveragePool"),
    "lrn": of_node("LRN", size=3, alpha=0.3, beta=0.6, bias=1.5),
    "softmax before 13": of_node("Softmax", opset=11),
    "log softmax": of_node("LogSoftmax", axis=2),
    "batch norm": of_node(
        "BatchNormalization",
        more={name: np.abs(random((4,), seed)) + 0.5 for seed, name in enumerate(("s", "b", "m", "v"))},
    ),
    "pad": of_node("Pad", more={"p": np.array([0, 1, 0, 2, 0, 0, 3, 0], np.int64), "v": np.float32(2.5)}),
    "clip": of_node("Clip", more={"low": np.float32(-0.5), "high": np.float32(0.25)}),
    "mean over": of_node("ReduceMean", axes=[2, 3], keepdims=0),
    "mul": of_node("Mul", more={"b": random((4, 1, 1), 3)}),
    "prelu": of_node("PRelu", more={"b": random((4, 1, 1), 3)}),
    "transposed": of_node("Transpose", perm=[0, 2, 3, 1]),
    "hard": of_node("HardSigmoid", alpha=0.3, beta=0.4),
}


@pytest.fixture(scope="module", autouse=True)
def ended() -> Iterator[None]:
    yield
    if TORCH.missing() is None:
        pool.close_all()


@with_torch
@pytest.mark.parametrize("name", GRAPHS)
def test_its_answers_are_those_of_onnx(name: str) -> None:
    graph, torch = GRAPHS[name], get("torch-cpu")
    shape = [2, *(size for size in graph.inputs[0].shape[1:] if isinstance(size, int))]
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    assert torch.supports(graph, 2, "fp32") is None
    session = torch.prepare(graph, 2, "fp32", Options(threads=1))
    try:
        session.bind({"x": x})
        session.run()
        found = session.fetch()["y"]
    finally:
        session.close()
    expected = oracle.run(graph, {"x": x}, ["y"])["y"]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


@with_torch
@pytest.mark.parametrize(
    ("graph", "told"),
    [
        (of_node("LRN", size=4), "its size 4 is even"),
        (of_node("AveragePool", kernel_shape=[3, 3], pads=[0, 1, 1, 1]), "not such as PyTorch's"),
        (of_node("Pad", more={"p": np.array([0, 0, 1, 1] * 2, np.int64)}, mode="reflect"), "only constant"),
    ],
    ids=["lrn", "mean", "pad"],
)
def test_what_pytorch_s_operator_cannot_say_is_refused_with_the_node(graph: Graph, told: str) -> None:
    with pytest.raises(UnsupportedError, match=r"node 'n' \(") as caught:
        get("torch-cpu").prepare(graph, 2, "fp32", Options(threads=1))
    assert told in str(caught.value)


@with_torch
@pytest.mark.skipif(numba_support.unavailable() is not None, reason="Numba is not here")
def test_kernels_of_ours_in_the_place_of_nodes() -> None:
    """Two batch sizes at once, as PyTorch knows an operator by its name in the whole process; a part of the
    net without these nodes is the plain one."""
    graph, rungs = small_net(), dict.fromkeys(("conv1", "fc3"), "register_tiles")
    expected, sessions = {}, []
    for batch in (2, 3):
        x = np.random.default_rng(batch).standard_normal((batch, 3, 12, 12)).astype(np.float32)
        session = get("torch-cpu-swapped").prepare(graph, batch, "fp32", Options(threads=1, rungs=rungs))
        session.bind({"x": x})
        sessions.append(session)
        expected[session] = oracle.run(graph, {"x": x}, ["y"])["y"]
    for session in sessions:
        session.run()
        np.testing.assert_allclose(session.fetch()["y"], expected[session], rtol=2e-5, atol=2e-6)
        assert session.backend.endswith("-swapped")
        said = session.facts["swapped"]
        assert "conv1 + relu1 by conv 08 register_tiles in one thread, fc3" in said
        session.close()
    part = get("torch-cpu-swapped").prepare(of_node("Erf"), 2, "fp32", Options(threads=1, rungs=rungs))
    assert "swapped" not in part.facts
    part.close()


def test_a_kernel_that_is_swapped_in_invites_pytorch_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(models=("lenet5-digits",), backends=(), swaps={"conv1": "register_tiles"})
    ort, torch = get("ort-cpu"), get("torch-cpu")
    for missing, named in ((None, ["ort-cpu", "ort-cpu-swapped", "torch-cpu", "torch-cpu-swapped"]),
                           ("it is not here", ["ort-cpu", "ort-cpu-swapped"])):  # fmt: skip
        monkeypatch.setattr(Torch, "unavailable", lambda self, missing=missing: missing)
        assert [it.name for it in cases.with_swapped([ort], job)] == named
        planned = [Case(model="lenet5-digits", backend="ort-cpu", precision="fp32", batch=1, images=8)]
        assert cases.uninvited(job, planned) == (missing or "")
        # Who names backends has these alone.
        own = msgspec.structs.replace(job, backends=("ort-cpu",))
        assert [it.name for it in cases.with_swapped([ort], own)] == ["ort-cpu", "ort-cpu-swapped"]
        assert cases.uninvited(own, planned) == ""
    assert [it.name for it in cases.with_swapped([torch], job)][-1] == "torch-cpu-swapped"
    assert "no fp16" in (get("torch-cuda-swapped").supports(small_net(), 2, "fp16") or "")


def test_an_operator_without_a_translation_is_named_without_asking_pytorch() -> None:
    said = torch_net.refusal(of_node("DepthToSpace", blocksize=2)) or ""
    assert said.startswith("node 'n' (DepthToSpace) has no translation to PyTorch here")
    assert torch_net.refusal(small_net()) is None
    assert "does not offer fp16" in (get("torch-cpu").supports(small_net(), 2, "fp16") or "")
