"""Which outputs of a model are tensors of numbers: those alone can be held against each other."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from kernels.errors import UnsupportedError


def numbers_alone(
    proto: onnx.ModelProto, types: Mapping[str, onnx.ValueInfoProto], where: str
) -> tuple[str, ...]:
    """Take from the graph's outputs those that are no tensors of numbers: sequences and maps, as ZipMap of
    scikit-learn's exporter gives, and texts. What is left out, in words ("probabilities, a sequence").

    types: what ONNX infers of tensors, by name. Raises UnsupportedError where no output is left."""
    kinds = {value.name: _kind(value, types) for value in proto.graph.output}
    left_out = {name: kind for name, kind in kinds.items() if kind}
    if not left_out:
        return ()
    words = tuple(f"{name}, {kind}" for name, kind in left_out.items())
    kept = [value for value in proto.graph.output if value.name not in left_out]
    if not kept:
        raise UnsupportedError(
            f"{where} gives out nothing but {'; '.join(words)}: only tensors of numbers can be compared"
        )
    copies = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in kept]
    del proto.graph.output[:]
    proto.graph.output.extend(copies)
    return words


def _kind(value: onnx.ValueInfoProto, types: Mapping[str, onnx.ValueInfoProto]) -> str:
    """What an output is, in words, where it is no tensor of numbers; else ""."""
    told = value if value.type.WhichOneof("value") else types.get(value.name, value)
    kind = told.type.WhichOneof("value")
    if kind in (None, "tensor_type"):
        texts = told.type.tensor_type.elem_type == onnx.TensorProto.STRING
        return "a tensor of texts" if texts else ""
    words = {"sequence_type": "a sequence", "map_type": "a map", "optional_type": "an optional value"}
    return words.get(kind, f"of type {kind.removesuffix('_type')}")
