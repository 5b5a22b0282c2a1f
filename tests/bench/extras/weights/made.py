"""Files of weights in the exact formats of Caffe, NumPy, PyTorch and safetensors, written byte by byte: what
the importers are to read must not be made by what reads it."""

from __future__ import annotations

import json
import pickle
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

THIN = 16  # by which the widths of the nets are divided
CLASSES = 7
Weights = dict[str, np.ndarray]


def drawn(shapes: Mapping[str, tuple[int, ...]], seed: int = 3) -> Weights:
    """Weights that keep activations near unit variance, and biases that are not zero."""
    random = np.random.default_rng(seed)
    found = {}
    for name, shape in shapes.items():
        if name.endswith("running_var"):
            value = random.uniform(0.5, 2, shape)
        elif len(shape) > 1:
            value = random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        else:
            value = random.standard_normal(shape) * 0.1
        found[name] = value.astype(np.float32)
    return found


# ------------------------------------------------------------------------------------------------------ NumPy


def layers_of_caffe(weights: Weights, side: int = 6) -> dict[str, list[np.ndarray]]:
    """As bvlc_alexnet.npy has them: (height, width, in, out), fc6 over (height, width, channel)."""
    layers: dict[str, list[np.ndarray]] = {}
    for name, value in weights.items():
        layer, _, kind = name.partition(".")
        if value.ndim == 4:
            value = value.transpose(2, 3, 1, 0)
        elif layer == "fc6" and kind == "weight" and value.shape[1] % side**2 == 0:
            value = value.reshape(len(value), -1, side, side).transpose(2, 3, 1, 0).reshape(-1, len(value))
        elif value.ndim == 2:
            value = value.T
        layers.setdefault(layer, []).append(np.ascontiguousarray(value))
    return layers


def npy(path: Path, data: object) -> Path:
    np.save(path, np.array(data, dtype=object), allow_pickle=True)
    return path


def npy_of(path: Path, pickled: bytes) -> Path:
    """An .npy of one object, whose pickle is anything."""
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": "|O", "fortran_order": False, "shape": ()})
        stream.write(pickled)
    return path


def text2(value: bytes) -> bytes:
    """A string as Python 2 pickles it."""
    return b"T" + struct.pack("<i", len(value)) + value


def array2(value: np.ndarray) -> bytes:
    """An array as Python 2 and its NumPy pickle it, opcode by opcode."""
    shape = b"(" + b"".join(b"J" + struct.pack("<i", size) for size in value.shape) + b"t"
    kind = b"cnumpy\ndtype\n" + text2(b"f4") + b"K\x00K\x01\x87R(K\x03" + text2(b"<")
    kind += b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text2(b"b") + b"\x87R"
    return made + b"(K\x01" + shape + kind + b"\x89" + text2(value.astype("<f4").tobytes()) + b"tb"


def pickle2(layers: dict[str, list[np.ndarray]]) -> bytes:
    """What numpy.save of Python 2 wrote for a dict: an array of one object."""
    items = b"".join(
        text2(name.encode()) + b"](" + b"".join(map(array2, pair)) + b"e" for name, pair in layers.items()
    )
    kind = b"cnumpy\ndtype\n" + text2(b"O8") + b"K\x00K\x01\x87R(K\x03" + text2(b"|")
    kind += b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb"
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text2(b"b") + b"\x87R"
    return b"\x80\x02" + made + b"(K\x01)" + kind + b"\x89](}(" + items + b"uetb."


# ---------------------------------------------------------------------------------------------------- PyTorch


def _text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def _numbers(values: tuple[int, ...]) -> bytes:
    return b"(" + b"".join(b"J" + struct.pack("<i", value) for value in values) + b"t"


def torch_tensor(
    key: str, count: int, shape: tuple[int, ...], strides: tuple[int, ...] | None = None, old: bool = False
) -> bytes:
    if strides is None:
        strides = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    storage = b"(" + _text("storage") + b"ctorch\nFloatStorage\n" + _text(key) + _text("cpu")
    storage += b"\x8a\x08" + struct.pack("<q", count) + (b"N" if old else b"") + b"tQ"
    state = b"ccollections\nOrderedDict\n)R"
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00" + _numbers(shape) + _numbers(strides)
        + b"\x89" + state + b"tR"
    )  # fmt: skip


def torch_pickle(tensors: Mapping[str, bytes]) -> bytes:
    items = b"".join(_text(name) + tensor for name, tensor in tensors.items())
    metadata = b"}" + _text("_metadata") + b"ccollections\nOrderedDict\n)Rsb"
    return b"\x80\x02ccollections\nOrderedDict\n)R(" + items + b"u" + metadata + b"."


def torch_zip(
    path: Path, weights: Weights, tensors: Mapping[str, bytes] | None = None, way: int = zipfile.ZIP_STORED
) -> Path:
    """As torch.save has written since 1.6; `tensors` instead of what is right."""
    right = {name: torch_tensor(str(i), v.size, v.shape) for i, (name, v) in enumerate(weights.items())}
    with zipfile.ZipFile(path, "w", way) as archive:
        archive.writestr("archive/data.pkl", torch_pickle(right | dict(tensors or {})))
        archive.writestr("archive/byteorder", "little")
        for i, value in enumerate(weights.values()):
            archive.writestr(f"archive/data/{i}", value.astype("<f4").tobytes())
        archive.writestr("archive/version", "3\n")
    return path


def torch_old(path: Path, weights: Weights) -> Path:
    """As torch.save wrote before 1.6."""
    right = {
        name: torch_tensor(str(i), v.size, v.shape, old=True) for i, (name, v) in enumerate(weights.items())
    }
    keys = [str(i) for i in range(len(weights))]
    system = {
        "protocol_version": 1001,
        "little_endian": True,
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    with path.open("wb") as stream:
        for value in (0x1950A86A20F9469CFC6C, 1001, system):
            stream.write(pickle.dumps(value, protocol=2))
        stream.write(torch_pickle(right))
        stream.write(pickle.dumps(keys, protocol=2))
        for value in weights.values():
            stream.write(struct.pack("<q", value.size) + value.astype("<f4").tobytes())
    return path


def safetensors(path: Path, weights: Weights, changed: Mapping[str, object] | None = None) -> Path:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, value in weights.items():
        told = {"dtype": "F32", "shape": value.shape, "data_offsets": [place, place + value.nbytes]}
        header[name] = told
        place += value.nbytes
    text = json.dumps(header | dict(changed or {})).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(v.tobytes() for v in weights.values()))
    return path


# ------------------------------------------------------------------------------------------------------ Caffe


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def blob(value: np.ndarray, old: bool, shape: tuple[int, ...] | None = None) -> bytes:
    shape = shape or value.shape
    if old:
        sizes = b"".join(field(i + 1, size) for i, size in enumerate((1,) * (4 - len(shape)) + shape))
    else:
        sizes = field(7, field(1, b"".join(map(varint, shape))))
    return sizes + field(5, value.astype("<f4").tobytes())


def caffemodel(path: Path, weights: Weights, old: bool = False, swapped: str = "") -> Path:
    """`old`: as before 2014; `swapped`: a parameter whose shape is written the other way round."""
    layers: dict[str, list[bytes]] = {}
    for name, value in weights.items():
        shape = value.shape[::-1] if name == swapped else value.shape
        layers.setdefault(name.partition(".")[0], []).append(blob(value, old, shape))
    whole = field(1, b"AlexNet")
    for name, held in layers.items():
        # Its type, its bottom and its top are there, too, and are not what is read.
        if old:
            layer = field(2, b"x") + field(3, b"y") + field(4, name.encode()) + field(5, 4)
            layer += b"".join(field(6, part) for part in held)
        else:
            layer = field(1, name.encode()) + field(2, b"Convolution") + field(3, b"x") + field(4, b"y")
            layer += b"".join(field(7, part) for part in held)
        whole += field(2 if old else 100, layer)
    path.write_bytes(whole)
    return path


def prototxt(path: Path, thin: int = THIN, classes: int = CLASSES, pool_first: bool = False) -> Path:
    """deploy.prototxt of bvlc_alexnet with its widths divided; `pool_first`: of CaffeNet, which pools before
    it normalises."""
    text = 'name: "AlexNet"\nlayer { name: "data" type: "Input" top: "data"\n'
    text += "  input_param { shape: { dim: 10 dim: 3 dim: 227 dim: 227 } } }  # ten crops\n"
    top = "data"

    def layer(name: str, kind: str, param: str = "", inplace: bool = False) -> None:
        nonlocal text, top
        out = top if inplace else name
        text += f'layer {{\n  name: "{name}"\n  type: "{kind}"\n  bottom: "{top}"\n'
        text += f'  top: "{out}"\n  {param}\n}}\n'
        top = out

    def conv(number: int, maps: int, more: str) -> None:
        spread = "param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }"
        layer(
            f"conv{number}",
            "Convolution",
            f"{spread} convolution_param {{ num_output: {maps // thin} {more} }}",
        )
        layer(f"relu{number}", "ReLU", inplace=True)

    def norm(number: int) -> None:
        layer(f"norm{number}", "LRN", "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }")

    def pool(number: int) -> None:
        layer(f"pool{number}", "Pooling", "pooling_param { pool: MAX kernel_size: 3 stride: 2 }")

    for number, maps, more in (
        (1, 96, "kernel_size: 11 stride: 4"),
        (2, 256, "pad: 2 kernel_size: 5 group: 2"),
    ):
        conv(number, maps, more)
        for step in (pool, norm) if pool_first else (norm, pool):
            step(number)
    conv(3, 384, "pad: 1 kernel_size: 3")
    conv(4, 384, "pad: 1 kernel_size: 3 group: 2")
    conv(5, 256, "pad: 1 kernel_size: 3 group: 2")
    pool(5)
    for number, outputs in ((6, 4096 // thin), (7, 4096 // thin), (8, classes)):
        layer(f"fc{number}", "InnerProduct", f"inner_product_param {{ num_output: {outputs} }}")
        if number < 8:
            layer(f"relu{number}", "ReLU", inplace=True)
            layer(f"drop{number}", "Dropout", "dropout_param { dropout_ratio: 0.5 }", inplace=True)
    layer("prob", "Softmax")
    path.write_text(text)
    return path
