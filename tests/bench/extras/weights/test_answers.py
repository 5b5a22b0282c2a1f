"""What was imported answers as the net does where its weights come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from bench.extras.weights import torchvision_nets
from bench.extras.weights.importing import import_file
from models import catalogue, imported
from models.builders import alexnet
from tests.bench.extras.weights import made

onnxruntime = pytest.importorskip("onnxruntime")


def images(side: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((2, 3, side, side)).astype(np.float32)


def answer(name: str, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(catalogue.path(name), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input": x})
    return np.asarray(found)


# ------------------------------------- the net as it was written for bvlc_alexnet.npy, in NumPy, (N, H, W, C)


def conv(x: np.ndarray, layer: list[np.ndarray], stride: int, pad: int, group: int) -> np.ndarray:
    weights, bias = layer
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    size = weights.shape[0]
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))[:, ::stride, ::stride]
    parts = zip(np.split(windows, group, 3), np.split(weights, group, 3), strict=True)
    return np.concatenate([np.einsum("nijcyx,yxco->nijo", w, k, optimize=True) for w, k in parts], 3) + bias


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def lrn(x: np.ndarray) -> np.ndarray:
    """Radius 2, alpha 2e-5 for each of the squares, beta 0.75, bias 1."""
    squares = np.pad(x.astype(np.float64) ** 2, ((0, 0), (0, 0), (0, 0), (2, 2)))
    sums = np.lib.stride_tricks.sliding_window_view(squares, 5, 3).sum(-1)
    return x / (1 + 2e-5 * sums) ** 0.75


def pool(x: np.ndarray) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::2, ::2].max((-1, -2))


def forward(layers: dict[str, list[np.ndarray]], x: np.ndarray) -> np.ndarray:
    y = pool(lrn(relu(conv(x, layers["conv1"], 4, 0, 1))))
    y = pool(lrn(relu(conv(y, layers["conv2"], 1, 2, 2))))
    y = relu(conv(y, layers["conv3"], 1, 1, 1))
    y = relu(conv(y, layers["conv4"], 1, 1, 2))
    y = pool(relu(conv(y, layers["conv5"], 1, 1, 2))).reshape(len(x), -1)
    for name in ("fc6", "fc7"):
        y = relu(y @ layers[name][0] + layers[name][1])
    y = y @ layers["fc8"][0] + layers["fc8"][1]
    raised = np.exp(y - y.max(1, keepdims=True))
    return np.asarray(raised / raised.sum(1, keepdims=True))


@pytest.mark.parametrize("way", ["python3", "python2", "named"])
def test_the_dict_of_layers_answers_as_numpy_does(
    tmp_path: Path, caffe_weights: made.Weights, way: str
) -> None:
    layers = made.layers_of_caffe(caffe_weights)
    if way == "python2":
        file = made.npy_of(tmp_path / "bvlc_alexnet.npy", made.pickle2(layers))
    else:
        named = {name: dict(zip(("weights", "biases"), pair, strict=True)) for name, pair in layers.items()}
        file = made.npy(tmp_path / "bvlc_alexnet.npy", named if way == "named" else layers)
    assert import_file(file) == "bvlc_alexnet"
    x = 60 * images(227)  # as pixels are, so that the normalisation matters
    wanted = forward(layers, x.transpose(0, 2, 3, 1))
    found = answer("bvlc_alexnet", x)
    assert found.shape == (2, made.CLASSES)
    assert 0.01 < np.ptp(wanted) < 0.9
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("old", [False, True])
def test_caffes_own_files_answer_as_the_dict_of_the_same_weights(
    tmp_path: Path, caffe_weights: made.Weights, old: bool
) -> None:
    import_file(made.npy(tmp_path / "a.npy", made.layers_of_caffe(caffe_weights)), "dict")
    made.prototxt(tmp_path / "deploy.prototxt")
    import_file(made.caffemodel(tmp_path / "bvlc.caffemodel", caffe_weights, old), "caffe")
    made.prototxt(tmp_path / "deploy.prototxt", pool_first=True)
    import_file(tmp_path / "deploy.prototxt", "caffenet")
    x = 60 * images(227)
    np.testing.assert_allclose(answer("caffe", x), answer("dict", x), atol=1e-6)
    assert np.abs(answer("caffenet", x) - answer("dict", x)).max() > 1e-3, "it pools before it normalises"


def test_caffes_own_files_answer_as_opencv_reads_them(tmp_path: Path, caffe_weights: made.Weights) -> None:
    dnn = pytest.importorskip("cv2").dnn
    if not hasattr(dnn, "readNetFromCaffe"):
        pytest.skip("OpenCV 5 reads no files of Caffe")
    x = 60 * images(227)
    for pool_first in (False, True):
        text = made.prototxt(tmp_path / "deploy.prototxt", pool_first=pool_first)
        weights = made.caffemodel(tmp_path / "bvlc.caffemodel", caffe_weights)
        name = import_file(weights)
        net = dnn.readNetFromCaffe(str(text), str(weights))
        net.setInput(x)
        wanted = net.forward()
        assert 0.01 < np.ptp(wanted) < 0.9
        np.testing.assert_allclose(answer(name, x), wanted, rtol=1e-4)


LENET = """
name: "LeNet"
input: "data"
input_dim: 64 input_dim: 1 input_dim: 28 input_dim: 28
layers { name: "conv1" type: CONVOLUTION bottom: "data" top: "conv1"
  convolution_param { num_output: 3 kernel_size: 4 } }
layers { name: "pool1" type: POOLING bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layers { name: "ip1" type: INNER_PRODUCT bottom: "pool1" top: "ip1" inner_product_param { num_output: 4 } }
layers { name: "prob" type: SOFTMAX bottom: "ip1" top: "prob" }
"""


def test_another_chain_of_caffes_and_windows_that_reach_beyond_the_image(tmp_path: Path) -> None:
    shapes: dict[str, tuple[int, ...]] = {
        "conv1.weight": (3, 1, 4, 4), "conv1.bias": (3,), "ip1.weight": (4, 3 * 13 * 13), "ip1.bias": (4,)
    }  # fmt: skip
    weights = made.drawn(shapes)
    (tmp_path / "lenet.prototxt").write_text(LENET)
    made.caffemodel(tmp_path / "lenet.caffemodel", weights, old=True)
    name = import_file(tmp_path / "lenet.prototxt")
    assert (name, catalogue.get(name).preprocess, catalogue.get(name).input_shape) == (
        "lenet",
        "unit",
        (1, 28, 28),
    )
    x = images(28)[:, :1]
    maps = conv(
        x.transpose(0, 2, 3, 1),
        [weights["conv1.weight"].transpose(2, 3, 1, 0), weights["conv1.bias"]],
        1,
        0,
        1,
    )
    padded = np.pad(maps, ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=-np.inf)
    pooled = padded.reshape(2, 13, 2, 13, 2, 3).max((2, 4)).transpose(0, 3, 1, 2).reshape(2, -1)
    logits = pooled @ weights["ip1.weight"].T + weights["ip1.bias"]
    raised = np.exp(logits)
    np.testing.assert_allclose(answer(name, x), raised / raised.sum(1, keepdims=True), atol=1e-5)


# ------------------------------------------------------------------------------------------ PyTorch's formats


@pytest.mark.parametrize("write", [made.torch_zip, made.torch_old, made.safetensors])
def test_torchvisions_weights_arrive_by_name(tmp_path: Path, torch_weights: made.Weights, write: Any) -> None:
    file = write(tmp_path / f"alex.{'safetensors' if write is made.safetensors else 'pth'}", torch_weights)
    name = import_file(file)
    model = onnx.load(catalogue.path(name))
    found = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    assert found.keys() == torch_weights.keys()
    for key, value in torch_weights.items():
        np.testing.assert_array_equal(found[key], value)
    assert {prop.key: prop.value for prop in model.metadata_props} == {
        "kernelscope.preprocess": "imagenet",
        "kernelscope.scores": "classifier.6",
    }
    assert answer(name, images(224)).shape == (2, made.CLASSES)


def test_a_training_run_of_several_gpus_keeps_them_deeper(
    tmp_path: Path, torch_weights: made.Weights
) -> None:
    name = import_file(
        made.torch_zip(tmp_path / "a.pth", {f"module.{key}": value for key, value in torch_weights.items()})
    )
    assert answer(name, images(224)).shape == (2, made.CLASSES)


NETS = ("alexnet", *(f"vgg{layers}{norm}" for layers in (11, 13, 16, 19) for norm in ("", "_bn")))


@pytest.mark.parametrize("named", NETS)
def test_torchvision_answers_the_same(tmp_path: Path, named: str) -> None:
    """Whole nets, in the three formats; where torchvision is installed, which the program does not need."""
    torch = pytest.importorskip("torch")
    net = pytest.importorskip("torchvision").models.get_model(named).eval()
    state = net.state_dict()
    for key, value in made.drawn(
        {key: tuple(value.shape) for key, value in state.items() if value.ndim}
    ).items():
        state[key].copy_(torch.from_numpy(value))
    x = images(224)
    with torch.no_grad():
        wanted = net(torch.from_numpy(x)).numpy()
    torch.save(state, tmp_path / "new.pth")
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    made.safetensors(tmp_path / "x.safetensors", {k: v.numpy() for k, v in state.items() if v.ndim})
    files = ("new.pth", "old.pth", "x.safetensors")
    for file in files if named == "alexnet" else files[NETS.index(named) % 3 :][:1]:  # hundreds of MB each
        name = import_file(tmp_path / file)
        found = answer(name, x)
        assert np.linalg.norm(found - wanted) <= 1e-5 * np.linalg.norm(wanted)
        imported.remove(name)


def test_whole_alexnets_have_the_shapes_of_the_papers_of_their_files() -> None:
    total = sum(int(np.prod(shape)) for shape in torchvision_nets.alexnet().parameters.values())
    assert total == 61_100_840
    assert sum(int(np.prod(shape)) for shape in alexnet().parameters.values()) == 60_965_224
    vgg = torchvision_nets.NETS["VGG-16"]()
    assert sum(int(np.prod(shape)) for shape in vgg.parameters.values()) == 138_357_544
