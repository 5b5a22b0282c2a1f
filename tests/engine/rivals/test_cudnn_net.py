"""`cudnn-graph`: our Graph as a pass of cuDNN graphs, cuBLASLt products and its own kernels. NumPy stands in
for the libraries (tests.engine.rivals.nvidia); the kernels are run from their PTX."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from onnx import helper

from bench.measure.answers import oracle
from engine import backends
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.machine import driver
from engine.ops import Kernel
from engine.rivals import cudnn_gpu, cudnn_library, cudnn_net
from engine.rivals.cublaslt import Products
from engine.rivals.cudnn_library import Graphs
from engine.rivals.cudnn_pass import Summed
from kernels import nvrtc
from kernels.environment import ROOT
from kernels.errors import UnavailableError, UnsupportedError
from tests.engine.harness import make_model, random
from tests.engine.rivals import nvidia
from tests.engine.rivals.nvidia import CublasLt, Memory

BOUNDS = {"float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}
Nodes = list[Any]


def node(op: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), [output], f"{op} {output}", **attributes)


def net(nodes: Nodes, shape: tuple[int, ...], outputs: str = "y", opset: int = 17, **more: Any) -> Graph:
    constants = {name: np.asarray(value) for name, value in more.items()}
    return from_proto(make_model(nodes, {"x": ("N", *shape)}, outputs.split(), constants, opset=opset), "net")


def answers(graph: Graph, held: str, nhwc: bool, x: np.ndarray, size: int = 1) -> Mapping[str, np.ndarray]:
    """Of two passes, the first of which is given something else."""
    memory = Memory(held, nhwc, size)
    graphs, products = Graphs(nvidia.cudnn(memory), memory), Products(CublasLt(memory), memory)  # type: ignore[arg-type]
    tf32 = nhwc and held == "float32"
    made = cudnn_net.built(graph, len(x), held, nhwc, tf32, memory, graphs, products)
    graphs.settle()
    given = np.float16 if held == "float16" else np.float32
    for value in (x * 0 + 3, x):
        memory.array(made.inputs[graph.inputs[0].name], given, x.size)[:] = value.reshape(-1)
        for step in made.steps:
            step()
    found = {}
    for info in graph.outputs:
        shape = np.shape(expected(graph, x)[info.name])
        flat = memory.array(made.outputs[info.name], given, int(np.prod(shape)))
        found[info.name] = flat.reshape(shape).astype(np.float32)
    graphs.close()
    products.close()
    return found


def expected(graph: Graph, x: np.ndarray) -> dict[str, np.ndarray]:
    return dict(oracle.run(graph, {"x": x}, [info.name for info in graph.outputs]))


def check(graph: Graph, shape: tuple[int, ...], size: int = 1, ways: str = "all") -> None:
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    right = expected(graph, x)
    for held, nhwc in (("float32", False), ("float32", True), ("float16", True), ("bfloat16", True)):
        if ways != "all" and held not in ways.split():
            continue
        for name, found in answers(graph, held, nhwc, x, size).items():
            error = np.linalg.norm(found - right[name]) / max(np.linalg.norm(right[name]), 1e-9)
            assert error <= BOUNDS[held], (held, nhwc, name, error)


@contextlib.contextmanager
def refusing(refused: Callable[[nvidia.Pygraph], bool]) -> Iterator[None]:
    """cuDNN has no engine for these graphs."""
    before = staticmethod(nvidia.Pygraph.refused)
    nvidia.Pygraph.refused = staticmethod(refused)
    try:
        yield
    finally:
        nvidia.Pygraph.refused = before


def filters(m: int, c: int, kh: int, kw: int, seed: int) -> np.ndarray:
    return random((m, c, kh, kw), seed) / np.sqrt(c * kh * kw).astype(np.float32)


# A block as ResNet has it: the sum joins the second convolution, whichever side it stands on.
BLOCK = net(
    [
        node("Conv", "x w1", "a", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "a s b m v", "an"),
        node("Relu", "an", "ar"),
        node("Conv", "ar w2 b2", "c", pads=[1, 1, 1, 1]),
        node("Conv", "x w3", "d"),
        node("Add", "c d", "e"),
        node("Relu", "e", "f"),
        node("Conv", "f w4", "g", group=10, pads=[0, 1, 2, 1], strides=[2, 1]),
        node("Clip", "g low high", "h"),
        node("Add", "h h2", "i"),
        node("GlobalAveragePool", "i", "j"),
        node("Flatten", "j", "k"),
        node("Gemm", "k w5 b5", "y", transB=1),
    ],
    (5, 9, 7),
    w1=filters(6, 5, 3, 3, 1), s=np.abs(random((6,), 2)) + 0.5, b=random((6,), 3), m=random((6,), 4),
    v=np.abs(random((6,), 5)) + 0.5, w2=filters(10, 6, 3, 3, 6), b2=random((10,), 7),
    w3=filters(10, 5, 1, 1, 8), w4=filters(10, 1, 3, 3, 9), low=np.float32(0), high=np.float32(6),
    h2=random((10, 1, 1), 10), w5=random((3, 10), 11), b5=random((3,), 12),
)  # fmt: skip
# As AlexNet, SqueezeNet and EfficientNet have it.
WIDE = net(
    [
        node("Conv", "x w1 b1", "a", strides=[2, 2], pads=[2, 2, 2, 2]),
        node("Relu", "a", "ar"),
        node("LRN", "ar", "b", size=5, alpha=0.02, beta=0.75, bias=2.0),
        node("MaxPool", "b", "c", kernel_shape=[3, 3], strides=[2, 2]),
        node("Conv", "c w2 b2", "d", group=2, pads=[1, 1, 1, 1]),
        node("Sigmoid", "d", "ds"),
        node("Conv", "c w3", "e"),
        node("Concat", "ds e c", "f", axis=1),
        node("GlobalAveragePool", "f", "g"),
        node("Conv", "g w4", "h"),
        node("HardSigmoid", "h", "hs"),
        node("Mul", "f hs", "i"),
        node("AveragePool", "i", "k", kernel_shape=[2, 2], pads=[0, 1, 1, 0], count_include_pad=1),
        node("Flatten", "k", "l"),
        node("Gemm", "l w5 b5", "n", transB=1, alpha=0.5),
        node("Tanh", "n", "o"),
        node("MatMul", "o w6", "p"),
        node("Softmax", "p", "y"),
    ],
    (3, 13, 15),
    w1=filters(16, 3, 5, 5, 1), b1=random((16,), 2), w2=filters(32, 8, 3, 3, 3), b2=random((32,), 4),
    w3=filters(5, 16, 1, 1, 5), w4=filters(53, 53, 1, 1, 6), w5=random((6, 53 * 3 * 3), 7) / 20,
    b5=random((6,), 8), w6=random((6, 4), 9),
)  # fmt: skip


@pytest.mark.sampled(6, "longest")
def test_a_residual_block_is_one_graph_a_convolution() -> None:
    made, items = cudnn_net._translated(BLOCK, 3)
    assert len([it for it in items if isinstance(it, Summed)]) == 1
    assert not [it for it in made.items if it.output == "an"], "the normalisation is in the weights"
    check(BLOCK, (3, 5, 9, 7))


@pytest.mark.sampled(6, "longest")
def test_a_net_like_alexnet_gives_the_answers_of_onnx() -> None:
    check(WIDE, (2, 3, 13, 15), size=5)
    # Its three channels are laid as so many as an engine takes.
    with refusing(lambda graph: graph.tensors[0].dim[1] in (3, 4)):
        check(WIDE, (2, 3, 13, 15), size=5, ways="float16")
    # Or squares of its pixels count as one, since the window steps over two.
    with refusing(lambda graph: graph.tensors[0].dim[1] in (3, 4, 8)):
        check(WIDE, (2, 3, 13, 15), size=5, ways="float16 bfloat16")
    # Two groups as one, with zeros between them; and one by one, each a part of the same images.
    with refusing(lambda graph: graph.tensors[0].dim[1] in (3, 8) or _groups(graph) != 1):
        check(WIDE, (2, 3, 13, 15), size=5, ways="float16")
    with refusing(lambda graph: "relu" in graph.calls or (_groups(graph) != 1 or _of_32(graph))):
        check(WIDE, (2, 3, 13, 15), size=5, ways="float16")
    with refusing(lambda graph: _groups(graph) != 1 or _of_32(graph)):
        check(WIDE, (2, 3, 13, 15), size=5)


def _groups(graph: nvidia.Pygraph) -> int:
    """Groups of the convolution."""
    return graph.tensors[0].dim[1] // graph.tensors[1].dim[1]


def _of_32(graph: nvidia.Pygraph) -> bool:
    return graph.tensors[1].dim[:2] == (32, 16)


@pytest.mark.sampled(4, "long")
def test_nets_of_every_kind_of_step_give_the_answers_of_onnx() -> None:
    """One pass of each way to lay a tensor: dense steps before and behind images, sums of any shape."""
    mixed = net(
        [
            node("Add", "x k", "a"),
            node("Relu", "a", "ar"),
            node("AveragePool", "ar", "b", kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1, pads=[1, 0] * 2),
            node("Mul", "b s", "c"),
            node("Add", "c t", "d"),
            node("Concat", "d b d", "e", axis=2),
            node("ReduceMean", "e", "f", axes=[3], keepdims=1),
            node("Sub", "e f", "g"),
            node("LeakyRelu", "g", "h", alpha=0.2),
            node("LogSoftmax", "h", "y", axis=1),
            node("MatMul", "h p", "q"),
            node("Transpose", "ar", "r", perm=[0, 2, 1, 3]),
            node("Slice", "r one two axis", "z"),
        ],
        (3, 6, 5),
        outputs="y q z",
        one=np.array([1], np.int64), two=np.array([3], np.int64), axis=np.array([1], np.int64),
        k=random((6, 5), 1), s=random((3, 1, 1), 2), t=random((3, 1, 1), 3), p=random((3, 4), 4),
    )  # fmt: skip
    check(mixed, (2, 3, 6, 5))


def test_convolutions_of_one_axis_and_of_groups_that_fill_no_vector() -> None:
    along = node("Conv", "x w1", "a", pads=[1, 1])
    graph = net([along, node("Conv", "a w2", "y", group=2)], (3, 9), w1=random((6, 3, 3), 1),
                w2=random((4, 3, 2), 2))  # fmt: skip
    check(graph, (2, 3, 9), ways="float32 float16")


def eight(x: str, y: str, scale: float, zero: int, more: dict[str, Any]) -> Nodes:
    """x to int8 and back."""
    more |= {f"{y}s": np.float32(scale), f"{y}z": np.int8(zero)}
    return [
        node("QuantizeLinear", f"{x} {y}s {y}z", f"{y}q"),
        node("DequantizeLinear", f"{y}q {y}s {y}z", y),
    ]


def weights(name: str, array: np.ndarray, more: dict[str, Any], axis: int = 0) -> Nodes:
    """Of int8 and a scale a channel, dequantized."""
    scales = np.linspace(0.01, 0.02, array.shape[0]).astype(np.float32)
    whole = np.clip(np.rint(array / scales.reshape(-1, *[1] * (array.ndim - 1))), -127, 127).astype(np.int8)
    more |= {f"{name}q": whole, f"{name}s": scales, f"{name}z": np.zeros(len(scales), np.int8)}
    return [node("DequantizeLinear", f"{name}q {name}s {name}z", name, axis=axis)]


def test_products_of_int8_are_those_of_whole_numbers() -> None:
    """Zero points, frames of what is no zero, ReLU in the limits, a maximum of int8, rows of pixels."""
    more: dict[str, Any] = {"b1": random((8,), 5)}
    nodes = [
        *eight("x", "a", 0.03, 3, more),
        *weights("w1", random((8, 3, 3, 3), 1), more),
        node("Conv", "a w1 b1", "b", pads=[1, 0, 1, 2]),
        node("Relu", "b", "br"),
        *eight("br", "c", 0.05, -128, more),
        node("MaxPool", "c", "d", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 0]),
        *eight("d", "e", 0.05, -128, more),
        *weights("w2", random((5, 8, 2, 2), 2), more),
        node("Conv", "e w2", "f", pads=[0, 1, 1, 0]),
        *eight("f", "g", 0.1, 5, more),
        node("Flatten", "g", "h"),
        *eight("h", "i", 0.1, 5, more),
        *weights("w3", random((6, 5 * 4 * 3), 3), more),
        node("Gemm", "i w3", "j", transB=1),
        *eight("j", "k", 0.3, -7, more),
        node("Softmax", "k", "y"),
    ]
    graph = net(nodes, (3, 9, 7), **more)
    made, _ = cudnn_net._translated(graph, 2)
    assert [it.params.op for it in made.items if isinstance(it, Kernel)].count("qconv") == 2
    assert cudnn_net.has_eight_bits(graph, 2)
    x = np.random.default_rng(3).standard_normal((2, 3, 9, 7)).astype(np.float32)
    right = expected(graph, x)["y"]
    for refused in (lambda graph: False, lambda graph: "mul" in graph.calls):
        with refusing(refused):
            found = answers(graph, "float32", True, x)["y"]
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        (
            net([node("CumSum", "x k", "y")], (3, 4), k=np.int64(1)),
            "'CumSum y' (CumSum): cuDNN's graphs have no cumulate here",
        ),
        (net([node("Sin", "x", "y")], (3,)), "there is no sin here, but identity"),
        (net([node("Conv", "x x", "y")], (3, 4, 4)), "its weights or bias are no constants"),
        (
            net([node("Conv", "x w", "y", group=5)], (10, 4, 4), w=random((5, 2, 1, 1), 1)),
            "do not fill 16 bytes",
        ),
    ],
    ids=["operator", "function", "weights", "groups"],
)
def test_what_has_no_translation_is_refused_with_node_operator_and_reason(graph: Graph, told: str) -> None:
    assert told in (backends.get("cudnn-graph").supports(graph, 2, "fp16") or "")
    with pytest.raises(UnsupportedError, match=r"node '.*' \("):
        cudnn_net.built(graph, 2, "float16", True, False, *3 * [None])  # type: ignore[arg-type]


def test_without_the_library_the_backend_says_what_would_bring_it(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = backends.get("cudnn-graph")
    monkeypatch.setattr(driver, "unavailable", lambda: None)
    monkeypatch.setenv("KERNELSCOPE_PYTHON_CUDNN", "/there/is/no/python")
    assert "KERNELSCOPE_PYTHON_CUDNN" in (backend.unavailable() or "")
    monkeypatch.delenv("KERNELSCOPE_PYTHON_CUDNN")
    if importlib.util.find_spec("cudnn") is None and not (ROOT / ".venv-cudnn").exists():
        assert "`make cudnn`" in (backend.unavailable() or "")
        assert "`pip install nvidia-cudnn-frontend`" in (backend.unavailable() or "")
        with pytest.raises(UnavailableError, match="cudnn-graph cannot run here"):
            backend.prepare(BLOCK, 2, "fp16")
        with pytest.raises(UnavailableError, match="cuDNN's frontend cannot be used: No module named"):
            cudnn_library.imported()


@pytest.mark.slow
@pytest.mark.sampled(4, "long")
def test_its_kernels_compile_for_the_oldest_and_the_newest_gpu() -> None:
    for held, arch in (("bfloat16", "sm_75"), ("float16", "sm_120")):
        assert nvrtc.compile_rung(cudnn_gpu.source(held, True, 5), arch).stat().st_size
