"""A file that is cut off, of other shapes, or made to harm is refused in one sentence, quickly, in little
memory."""

from __future__ import annotations

import contextlib
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.extras.weights import caffe_text
from bench.extras.weights.importing import import_file
from kernels.errors import InputError
from tests.bench.extras.weights import made
from tests.bench.extras.weights.refusals import refused

pytestmark = pytest.mark.slow

GIB4 = 1 << 32


# ------------------------------------------------------------------- every format, as it should not be


WRITERS: dict[str, Callable[[Path, made.Weights], Path]] = {
    "alexnet.npy": lambda path, weights: made.npy(path, made.layers_of_caffe(weights)),
    "python2.npy": lambda path, weights: made.npy_of(path, made.pickle2(made.layers_of_caffe(weights))),
    "alexnet.caffemodel": lambda path, weights: (
        made.prototxt(path.with_suffix(".prototxt")) and made.caffemodel(path, weights)
    ),
    "old.caffemodel": lambda path, weights: (
        made.prototxt(path.with_suffix(".prototxt")) and made.caffemodel(path, weights, old=True)
    ),
    "alexnet.pth": made.torch_zip,
    "old.pth": made.torch_old,
    "alexnet.safetensors": made.safetensors,
}


@pytest.fixture(params=WRITERS)
def written(
    request: pytest.FixtureRequest, tmp_path: Path, caffe_weights: made.Weights, torch_weights: made.Weights
) -> tuple[Callable[[made.Weights], Path], made.Weights]:
    weights = caffe_weights if request.param.endswith((".npy", ".caffemodel")) else torch_weights
    return lambda changed: WRITERS[request.param](tmp_path / request.param, changed), weights


def test_cut_off_anywhere(written: tuple[Callable[[made.Weights], Path], made.Weights]) -> None:
    write, weights = written
    file = write(weights)
    data = file.read_bytes()
    for part in (0, 5, 9, 40, 300, len(data) // 2, len(data) - 700, len(data) - 1):
        file.write_bytes(data[:part])
        with refused("it", len(data)):
            import_file(file)


def test_shapes_the_other_way_round(written: tuple[Callable[[made.Weights], Path], made.Weights]) -> None:
    """As many values, in a shape that is not the layer's."""
    write, weights = written
    for name in [name for name, value in weights.items() if value.ndim > 1 and len(set(value.shape[:2])) > 1][
        1::2
    ]:
        value = weights[name]
        with refused(f"{name} has the shape .* where .* has", 2 * sum(v.nbytes for v in weights.values())):
            import_file(write(weights | {name: value.swapaxes(0, 1).copy()}))


def test_a_layer_that_is_missing_one_too_many_and_values_that_are_none(
    written: tuple[Callable[[made.Weights], Path], made.Weights],
) -> None:
    write, weights = written
    last = list(weights)[-1]
    size = 2 * sum(value.nbytes for value in weights.values())
    with refused(r"lacks|not \[weights, biases\]", size):
        import_file(write({name: value for name, value in weights.items() if name != last}))
    broken = weights[last].copy()
    broken[1] = np.nan
    with refused("not finite", size):
        import_file(write(weights | {last: broken}))


@pytest.mark.sampled(6)
def test_every_byte_of_what_describes_a_file_may_be_another(
    written: tuple[Callable[[made.Weights], Path], made.Weights],
) -> None:
    """Whatever is changed near the file's ends, where the structure is, ends in a sentence or in a model."""
    write, weights = written
    file = write(weights)
    data = file.read_bytes()
    random = np.random.default_rng(7)
    for place in [*random.integers(0, 700, 60), *random.integers(len(data) - 700, len(data), 30)]:
        changed = bytearray(data)
        changed[place] ^= int(random.integers(1, 256))
        file.write_bytes(changed)
        # A bias of another value is as good as any: that is a model.
        with contextlib.suppress(InputError):
            import_file(file)


# ----------------------------------------------------------------------------------- archives of torch


@pytest.mark.sampled(4, "long")
def test_archives_that_are_no_weights(tmp_path: Path, torch_weights: made.Weights) -> None:
    file = tmp_path / "a.pth"
    size = 2 * sum(value.nbytes for value in torch_weights.values())
    with refused("is compressed", size):
        import_file(made.torch_zip(file, torch_weights, way=zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("archive/data.pkl", bytes(1 << 26))
    with refused("is compressed"):
        import_file(file)
    with zipfile.ZipFile(file, "w") as many:
        for i in range(20_000):
            many.writestr(f"archive/data/{'x' * 20}{i}", b"")
    with refused("lists .* bytes of members"):
        import_file(file)
    with zipfile.ZipFile(file, "w") as scripted:
        scripted.writestr("model/data.pkl", b"\x80\x02N.")
        scripted.writestr("model/code/__torch__.py", "class AlexNet(Module): ...")
    with refused("scripted model.*torch.onnx.export"):
        import_file(file)
    with zipfile.ZipFile(file, "w") as other:
        other.writestr("readme", b"")
    with refused("not one of torch.save"):
        import_file(file)


@pytest.mark.parametrize(
    ("tensor", "saying"),
    [
        # A last layer of 2^31 classes, all of them the same few values.
        (made.torch_tensor("15", 7, ((1 << 31) - 1, 256), (0, 0)), "reaches beyond its values"),
        (made.torch_tensor("14", 10, (5, 2), (8, 1)), "reaches beyond its values"),
        (made.torch_tensor("14", 10, (-5, 2), (1, 1)), "size of -5"),
        (made.torch_tensor("14", 10, (5, 2), (-1, 1)), "size of -1"),
        (made.torch_tensor("14", 1 << 36, (5, 2)), "not as many as it says"),
        (made.torch_tensor("nowhere", 10, (5, 2)), "not as many as it says"),
    ],
)
def test_tensors_that_reach_beyond_their_values(
    tmp_path: Path, torch_weights: made.Weights, tensor: bytes, saying: str
) -> None:
    size = 2 * sum(value.nbytes for value in torch_weights.values())
    with refused(saying, size):
        import_file(made.torch_zip(tmp_path / "a.pth", torch_weights, {"classifier.6.weight": tensor}))


# ----------------------------------------------------------------------------------------- safetensors


@pytest.mark.parametrize(
    ("told", "saying"),
    [
        ({"dtype": "F32", "shape": [-7], "data_offsets": [0, 28]}, "size of -7"),
        ({"dtype": "F32", "shape": [7], "data_offsets": [0, 1 << 39]}, "does not lie where"),
        ({"dtype": "F32", "shape": [7], "data_offsets": [28, 0]}, "does not lie where"),
        ({"dtype": "F32", "shape": [7], "data_offsets": [1 << 38, (1 << 38) + 28]}, "does not lie where"),
        ({"dtype": "Q4", "shape": [7], "data_offsets": [0, 28]}, "not understood"),
        ({"dtype": ["F32"], "shape": [7], "data_offsets": [0, 28]}, "not understood"),
        ("no table", "not understood"),
        (None, "not understood"),
    ],
)
def test_headers_that_are_none(
    tmp_path: Path, torch_weights: made.Weights, told: object, saying: str
) -> None:
    with refused(saying):
        import_file(made.safetensors(tmp_path / "a.safetensors", torch_weights, {"classifier.6.bias": told}))


@pytest.mark.parametrize(
    "start", [struct.pack("<Q", GIB4), b"\xff" * 8, struct.pack("<Q", 100_008) + b"[" * 100_000, bytes(8)]
)
def test_headers_of_any_length(tmp_path: Path, start: bytes) -> None:
    (tmp_path / "a.safetensors").write_bytes(start + b'{"x":1}' * 4)
    with refused("header"):
        import_file(tmp_path / "a.safetensors")


# ----------------------------------------------------------------------------------------------- Caffe


def _layer(blob: bytes) -> bytes:
    return made.field(100, made.field(1, b"conv1") + made.field(7, blob))


@pytest.mark.parametrize(
    "data",
    [
        made.varint(100 << 3 | 2) + made.varint(GIB4) + b"xx",
        made.varint(100 << 3 | 2) + b"\xff" * 20,
        _layer(made.field(7, b"\x08" + b"\xff" * 9 + b"\x01")),
        _layer(made.field(5, b"xxx")),
        made.field(100, 7),
        made.field(5, 0) * 200_000,
        made.field(2, made.field(1, b"an older one")),
        _layer(made.blob(np.ones(2), False, (1 << 33, 1 << 33))),
    ],
)  # fmt: skip
def test_protocol_buffers_that_are_none(tmp_path: Path, data: bytes) -> None:
    made.prototxt(tmp_path / "deploy.prototxt")
    (tmp_path / "a.caffemodel").write_bytes(data)
    with refused("a.caffemodel: it", len(data)):
        import_file(tmp_path / "a.caffemodel")


INPUT = 'input: "data" input_dim: 1 input_dim: 3 input_dim: 9 input_dim: 9 '


@pytest.mark.parametrize(
    ("text", "saying"),
    [
        ("", "describes 0 layers"),
        ("layer {" * 1000, "nested deeper"),
        ('layer { name: "a" ', "cut off"),
        ("\0\1\2", "no description"),
        ("a " * 200_000, "no description"),
        ("} } }", "cannot be understood at '}'"),
        ("layer { name: }", "cannot be understood"),
        ('layer { name: "a" type: "ReLU" bottom: "data" top: "a" }', "names no input"),
        ("layer: 5 " + INPUT, "describes 0 layers"),
        (INPUT + 'layer { name: "a" type: "Crop" bottom: "data" top: "a" }', "is a crop; known are"),
        (INPUT + 'layer { name: "a" type: "ReLU" bottom: "b" top: "a" }', "one chain"),
        (
            INPUT + 'layer { name: "a" type: "ReLU" bottom: "data" top: "a" convolution_param: 3 }' * 2,
            "chain",
        ),
        (INPUT.replace("9", "-9") + 'layer { type: "ReLU" }', "'-9'; 0 to"),
        (INPUT.replace("9", "9999999999") + 'layer { type: "ReLU" }', "'9999999999'; 0 to"),
        *(
            (INPUT + f'layer {{ name: "a" type: "{kind}" bottom: "data" top: "a" {param} }}', saying)
            for kind, param, saying in (
                ("Convolution", "", "window without a size"),
                ("Convolution", "convolution_param { num_output: 4 kernel_size: 3 group: 2 }", "in 2 groups"),
                ("Convolution", "convolution_param { num_output: 4 kernel_size: 30 }", "leaves nothing"),
                ("Convolution", "convolution_param { num_output: 4 kernel_size: -3 }", "'-3'; 0 to"),
                ("Convolution", "convolution_param { num_output: 4 kernel_h: 3 kernel_w: 3 }", "kernel_h"),
                ("Pooling", "pooling_param { pool: AVE kernel_size: 3 }", "by AVE"),
                ("Pooling", "pooling_param { kernel_size: 2 stride: 3 }", "steps of 3"),
                ("LRN", "lrn_param { norm_region: WITHIN_CHANNEL }", "within channels"),
                ("ReLU", "relu_param { negative_slope: 0.1 }", "leaky"),
                ("Softmax", "", "InnerProduct"),
            )
        ),
    ],
)
def test_descriptions_that_are_none(tmp_path: Path, text: str, saying: str) -> None:
    (tmp_path / "a.caffemodel").write_bytes(b"")
    (tmp_path / "a.prototxt").write_text(text)
    with refused(saying):
        import_file(tmp_path / "a.prototxt")


def test_a_description_is_read_as_caffe_reads_it() -> None:
    text = "a: 1, b { c: 'x # y' d: -1e-5 } # e: 5\na: TRUE; b: { f { } }"
    assert caffe_text.parsed(text) == {
        "a": ["1", "TRUE"],
        "b": [{"c": ["x # y"], "d": ["-1e-5"]}, {"f": [{}]}],
    }
