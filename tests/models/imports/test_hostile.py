"""A file that is cut off, of other shapes, or made to harm is refused in one sentence, quickly, in little
memory, and nothing that it names is run."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.errors import InputError
from models.imports import caffe_text, unpickler
from models.imports.importing import import_file
from tests.models.imports import made

HEADER2 = b"\x80\x02"
GIB4 = 1 << 32


@contextlib.contextmanager
def refused(saying: str, nbytes: int = 0, seconds: float = 20) -> Iterator[None]:
    """One sentence, no more memory than a few MB beside some copies of the file, and no model left behind."""
    began = time.monotonic()
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=saying) as caught:
            yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700
    assert peak < 32 * 2**20 + 6 * nbytes
    assert time.monotonic() - began < seconds, "refused, and not worn out"  # not a measure of speed
    folder = Path(os.environ["KERNELSCOPE_MODELS"])
    assert not folder.exists() or not list(folder.iterdir())


class Harm:
    """What unpickling would run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.path}",)


# ------------------------------------------------------------ every format, as it should not be


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


# ------------------------------------------------------------ pickles


def test_no_code_of_a_pickle_is_run(tmp_path: Path, torch_weights: made.Weights) -> None:
    mark = tmp_path / "harmed"
    harm = Harm(mark)
    made.npy(tmp_path / "a.npy", {"conv1": harm})
    (tmp_path / "b.pth").write_bytes(pickle.dumps({"features.0.weight": harm}, protocol=2))
    made.torch_zip(tmp_path / "c.pth", torch_weights, {"harm": pickle.dumps(harm, protocol=2)[2:-1]})
    made.npy_of(tmp_path / "d.npy", pickle.dumps(harm, protocol=5))
    made.npy_of(tmp_path / "e.npy", b"cos\nsystem\n(S'touch " + os.fsencode(mark) + b"'\ntR.")
    for name in ("a.npy", "b.pth", "c.pth", "d.npy", "e.npy"):
        with refused(r"(posix|os)\.system, which is never run", 1 << 22):
            import_file(tmp_path / name)
    assert not mark.exists()
    # Ways round the table of names: to build, to make a new object, by number, from what stands in the table.
    for code in (
        b"cbuiltins\neval\n(S'1'\ntR.", b"(S'touch x'\nios\nsystem\n.", b"(cnumpy\nndarray\nS'x'\no.",
        b"cnumpy\nndarray\n)\x81.", b"\x82\x01.", b"cnumpy\nndarray\n}S'x'\nS'y'\nsb.",
        b"S'numpy'\nS'load'\n\x93.",
        b"cnumpy\ndtype.__class__\n.", b"cnumpy.core.multiarray\n_reconstruct\ncos\nsystem\n\x85R.",
        b"(cnumpy\ndtype\n(S'O'\ntRt.", b"Pname\n.", b"S'x'\nQ.",
    ):  # fmt: skip
        made.npy_of(tmp_path / "f.npy", code)
        with refused("f.npy: it"):
            import_file(tmp_path / "f.npy")


def _deep() -> bytes:
    """Pairs of which each is the one before twice: 2^60 numbers in a few hundred bytes."""
    return b"K\x01" + b"q\x00h\x00\x86" * 60


LARGE = {
    "bytes of 4 GiB": HEADER2 + b"\x8e" + struct.pack("<Q", GIB4) + b"xxxx.",
    "bytes of 2^63": HEADER2 + b"\x8e" + struct.pack("<Q", (1 << 63) - 1) + b"xxxx.",
    "text of 4 GiB": HEADER2 + b"X" + struct.pack("<I", GIB4 - 1) + b"xxxx.",
    "text of Python 2 of a negative length": HEADER2 + b"T" + struct.pack("<i", -5) + b"xxxx.",
    "a frame of 2^63": b"\x80\x05\x95" + struct.pack("<Q", (1 << 63) - 1) + b"N.",
    "a place far off in the memo": HEADER2 + b"Nr" + struct.pack("<I", GIB4 - 1) + b".",
    "a number of 2 GiB": HEADER2 + b"\x8b" + struct.pack("<i", (1 << 31) - 1) + b"x.",
    "a number of many digits": b"L" + b"9" * 100_000 + b"L\n.",
    "endless steps": HEADER2 + b"N0" * 2_000_000 + b".",
    "a pile": HEADER2 + b"N" * 4_000_000 + b".",
    "a deep shape": b"cnumpy.core.multiarray\n_reconstruct\n)R(K\x01" + _deep() + b"NNNtb.",
    "a deep key": b"}" + _deep() + b"Ns.",
    "a deep type": b"cnumpy\ndtype\n" + _deep() + b"\x85R.",
    "a deep order": b"cnumpy\ndtype\nS'f4'\n\x85R(K\x03" + _deep() + b"tb.",
    "a deep dict of layers": b"}S'conv1'\n" + _deep() + b"s.",
    "the same bytes again and again": (
        b"\x80\x02c_codecs\nencode\nq\x01X" + struct.pack("<I", 1 << 20) + b"x" * (1 << 20)
        + b"X\x06\0\0\0latin1\x86q\x0200" + b"h\x01h\x02R" * 5000 + b"."
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LARGE)
def test_what_a_pickle_says_of_sizes_is_not_believed(tmp_path: Path, what: str) -> None:
    file = made.npy_of(tmp_path / "a.npy", LARGE[what])
    with refused("a.npy: it", file.stat().st_size):
        import_file(file)


def array(shape: bytes, data: bytes) -> bytes:
    return made.array2(np.zeros(2, np.float32)).replace(
        b"(J\x02\0\0\0t", shape).replace(made.text2(bytes(8)), data)  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "saying"),
    [
        (b"J\xff\xff\xff\xff\x85", "size of -1"),
        (b"J\xff\xff\xff\xffJ\xfe\xff\xff\xff\x86", "size of -1"),
        (b"J\x03\0\0\0\x85", "not 12 bytes"),
        (b"\x8a\x08" + struct.pack("<q", 1 << 62) + b"\x85", "size of 4611686018427387904"[:15]),
        (b"\x88\x85", "no whole number"),
        (b"(" + b"K\x00" * 200 + b"t", "shape that is none"),
    ],
)
def test_shapes_that_are_none(tmp_path: Path, shape: bytes, saying: str) -> None:
    pickled = b"\x80\x02" + array(shape, made.text2(bytes(8))) + b"."
    assert pickled != b"\x80\x02" + made.array2(np.zeros(2, np.float32)) + b"."
    with refused(saying):
        import_file(made.npy_of(tmp_path / "a.npy", pickled))


@pytest.mark.parametrize("protocol", range(2, 6))
def test_what_is_data_comes_out_as_it_went_in(protocol: int) -> None:
    data = {
        "w": np.arange(12, dtype=">f4").reshape(3, 4).T,
        1: [np.float32(0.5), "ä", b"\xff", None, True, -5, 2**40, 1e-3],
        "t": (np.zeros((2, 0)), np.arange(5, dtype=np.int64), {"x": ()}),
    }
    found: Any = unpickler.load(io.BytesIO(pickle.dumps(data, protocol=protocol)))
    np.testing.assert_array_equal(found["w"], data["w"])
    assert found[1] == data[1]
    assert [part.shape for part in found["t"][:2]] == [(2, 0), (5,)]
    assert found["t"][2] == {"x": ()}


# ------------------------------------------------------------ archives of torch


def test_archives_that_are_no_weights(tmp_path: Path, torch_weights: made.Weights) -> None:
    file = tmp_path / "a.pth"
    size = 2 * sum(value.nbytes for value in torch_weights.values())
    with refused("is compressed", size):
        import_file(made.torch_zip(file, torch_weights, way=zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("archive/data.pkl", bytes(1 << 28))
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


# ------------------------------------------------------------ safetensors


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


# ------------------------------------------------------------ Caffe


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
