"""Weights drawn from a seed: a model whose file only says between which values each of them lies.

A drawn tensor keeps its name, type and shape, and says where its values are (ONNX's external data): in no
file, but spread evenly, as "mean ± deviation" in its doc_string. They come from the bits of NumPy's PCG64,
whose stream is the same for ever and everywhere, by exact arithmetic and a few roundings: no function of a
mathematics library takes part, so every machine draws the same bytes.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

SEED = "weights_seed"  # the key of the file's metadata
_PLACE = ("location", "drawn")
_BITS = 23  # of a draw: with the half that centres it, it is exact in float32


class Recipe(NamedTuple):
    """What a tensor's values are spread about, and how far."""

    mean: float
    deviation: float


def recipe(tensor: TensorProto) -> Recipe | None:
    """What a tensor is drawn by; None where the file has its values."""
    if [(entry.key, entry.value) for entry in tensor.external_data] != [_PLACE]:
        return None
    mean, _, deviation = tensor.doc_string.partition(" ± ")
    return Recipe(float(mean), float(deviation))


def draw(name: str, shape: tuple[int, ...], by: Recipe, seed: int) -> np.ndarray:
    """float32, evenly between mean ± √3 · deviation; each tensor of a seed by a stream of its own."""
    count = math.prod(shape)
    bits = np.random.PCG64([seed, zlib.crc32(name.encode())])
    words = bits.random_raw(-(-count // 2)).astype("<u8").view("<u4")[:count]
    even = (words >> np.uint32(32 - _BITS)).astype(np.float32) + np.float32(0.5)  # 0.5 … 2²³ − 0.5
    even -= np.float32(1 << (_BITS - 1))
    step = 2.0 * math.sqrt(3.0) * by.deviation / (1 << _BITS)
    return (by.mean + step * even.astype(np.float64)).astype(np.float32).reshape(shape)


def bare(path: Path) -> onnx.ModelProto:
    """The model of a file without weights. Raises ValueError where it is no model."""
    try:
        return onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise ValueError(f"{path} is truncated or is not an ONNX model") from error


def emptied(proto: onnx.ModelProto, recipes: Mapping[str, Recipe], seed: int) -> onnx.ModelProto:
    """The model without the values of the tensors that `recipes` names, and without what exporters note
    about their machine."""
    left = onnx.ModelProto(
        ir_version=proto.ir_version,
        producer_name=proto.producer_name,
        producer_version=proto.producer_version,
        opset_import=proto.opset_import,
        functions=proto.functions,
    )
    left.metadata_props.add(key=SEED, value=str(seed))
    left.graph.name = proto.graph.name
    left.graph.input.extend(proto.graph.input)
    left.graph.output.extend(proto.graph.output)
    for node in proto.graph.node:
        kept = left.graph.node.add()
        kept.CopyFrom(node)
        kept.ClearField("doc_string")
        kept.ClearField("metadata_props")
    for tensor in proto.graph.initializer:
        by = recipes.get(tensor.name)
        if by is None:
            left.graph.initializer.add().CopyFrom(tensor)
            continue
        drawn = left.graph.initializer.add(
            name=tensor.name,
            data_type=tensor.data_type,
            dims=tensor.dims,
            data_location=TensorProto.EXTERNAL,
            doc_string=f"{by.mean:g} ± {by.deviation:g}",
        )
        drawn.external_data.add(key=_PLACE[0], value=_PLACE[1])
    for info in (*left.graph.input, *left.graph.output):
        info.ClearField("doc_string")
        info.ClearField("metadata_props")
    return left


def filled(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model with every weight drawn. Raises ValueError where it says no seed."""
    seeds = [entry.value for entry in proto.metadata_props if entry.key == SEED]
    if not seeds:
        raise ValueError("the model does not say from which seed its weights are drawn")
    whole = onnx.ModelProto()
    whole.CopyFrom(proto)
    for tensor in whole.graph.initializer:
        by = recipe(tensor)
        if by is None:
            continue
        values = draw(tensor.name, tuple(tensor.dims), by, int(seeds[0]))
        tensor.ClearField("doc_string")
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
        tensor.raw_data = values.astype("<f4").tobytes()
    return whole
