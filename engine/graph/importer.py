"""ONNX file → Graph, checked. What no backend could run is an error; what ONNX's own checks find fault with
(an operator that its opset does not have, types that do not fit, an opset that we do not know) is written
into `Graph.refused`: our engine leaves such a model alone, and ONNX Runtime, which takes some of them, may
run it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import numpy_helper

from engine.graph import initializers as weights
from engine.graph.graph import Graph, Node, Shape, TensorInfo
from engine.graph.normal_form import captured, normalise
from engine.graph.proto_checks import check_names, check_size, check_wiring
from engine.graph.skeleton import checked
from kernels.errors import ModelError, UnsupportedError, one_line

OPSETS = range(7, 29)
_ORT_FORMAT = b"ORTM"  # from the fifth byte on, what ONNX Runtime's own format says of itself
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_NAMED_OPSETS = 3  # the first IR version that has to say its opset; before there was the first one alone


def load(path: str | Path) -> Graph:
    """The model in an `.onnx` file (external data beside it is read too); its name is the file's stem.

    Raises ModelError, one sentence, for a file that is missing, truncated, not ONNX or not valid, and
    UnsupportedError for inputs that are not tensors of numbers, and where no output is.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"model file {str(path)!r} does not exist") from None
    except IsADirectoryError:
        raise ModelError(f"model file {str(path)!r} is a folder; name an .onnx file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"model file {str(path)!r} cannot be read: {reason}") from None
    if not data:
        raise ModelError(f"model file {str(path)!r} is empty")
    if path.suffix.lower() == ".ort" or data[4:8] == _ORT_FORMAT:
        raise ModelError(
            f"model file {str(path)!r} is in ONNX Runtime's own format (.ort); name the .onnx file that it "
            "was made from"
        )
    if data.startswith(_LFS_POINTER):
        raise ModelError(
            f"model file {str(path)!r} is a Git LFS pointer, which stands in the place of the model until "
            "`git lfs pull` downloads it; run that in its repository"
        )
    digest = hashlib.sha256(data)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise ModelError(f"model file {str(path)!r} is truncated or is not an ONNX model") from None
    del data
    external = [t for t in proto.graph.initializer if onnx.external_data_helper.uses_external_data(t)]
    if external:
        _read_external(proto, path)
        for tensor in external:
            digest.update(tensor.raw_data)
    return from_proto(proto, path.stem, sha256=digest.hexdigest())


def _read_external(proto: onnx.ModelProto, path: Path) -> None:
    try:
        onnx.load_external_data_for_model(proto, str(path.parent))
    except MemoryError:
        raise
    except Exception as error:
        reason = one_line(error)
        raise ModelError(
            f"model file {str(path)!r} keeps weights in files beside it, and they cannot be read: {reason}"
        ) from None


def from_proto(
    proto: onnx.ModelProto,
    name: str = "",
    *,
    sha256: str = "",
    values: Mapping[str, np.ndarray] | None = None,
) -> Graph:
    """The Graph of a model in memory.

    The graph keeps a copy of `proto` without the values of large initializers, its missing and repeated node
    names filled in. name: defaults to that of the proto's graph. sha256: of its bytes where the caller knows
    it, else of its serialization. values: of the initializers that `proto` only declares
    (engine.graph.initializers), which the graph shares; `sha256` is then the caller's to say.
    Raises ModelError and UnsupportedError as `load` does.
    """
    values = values or {}
    name = name or proto.graph.name or "model"
    where = f"model {name!r}"
    if not proto.ir_version or not proto.HasField("graph") or not proto.graph.output:
        raise ModelError(f"{where} is truncated or is not an ONNX model: it has no graph with outputs")
    check_names(proto, where)
    check_size(proto, where)
    opset, refused = _opset(proto, where)
    if not sha256:
        try:
            sha256 = hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()
        except ValueError as error:
            raise ModelError(f"{where} cannot be serialized: {error}") from None
    proto = dense(proto, where)
    initializers = {
        tensor.name: _kept(values[tensor.name])
        if weights.is_declared(tensor) and tensor.name in values
        else _array(tensor, where)
        for tensor in proto.graph.initializer
    }
    proto = weights.light(proto, initializers)
    _open_negative(proto)
    normalise(proto, where)
    _fill_names(proto)
    check_wiring(proto, where)
    types, fault = checked(proto, opset, where)
    initializer_names = {tensor.name for tensor in proto.graph.initializer}
    inputs = tuple(_info(v, where, "input") for v in proto.graph.input if v.name not in initializer_names)
    left_out = numbers_alone(proto, types, where)
    nodes = []
    for node_proto in proto.graph.node:
        node = read_node(node_proto, where)
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            initializers[node_proto.output[0]] = constant(node, where)
        else:
            nodes.append(node)
    outputs = tuple(
        _info(v if v.type.tensor_type.HasField("shape") else types.get(v.name, v), where, "output")
        for v in proto.graph.output
    )
    return Graph(
        name,
        opset,
        inputs,
        outputs,
        tuple(nodes),
        initializers,
        proto,
        sha256,
        refused=refused or fault,
        left_out=left_out,
    )


def _opset(proto: onnx.ModelProto, where: str) -> tuple[int, str]:
    """The opset, and why the engine refuses it ("" where it does not). Raises ModelError where it is not
    said."""
    versions = [entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")]
    if not versions and all(node.domain for node in proto.graph.node) and proto.opset_import:
        return OPSETS[-1], ""  # all its operators are of other domains: any will do
    if not versions and proto.ir_version >= _NAMED_OPSETS:
        raise ModelError(f"{where} is truncated or is not an ONNX model: it does not say its opset")
    opset = versions[0] if versions else 1
    if not 0 < opset < 1 << 31:  # more than ONNX's own functions take
        raise ModelError(f"{where} is damaged or is not an ONNX model: it says that its opset is {opset}")
    if opset in OPSETS:
        return opset, ""
    return opset, (
        f"{where} is of opset {opset}, and opsets {OPSETS[0]} to {OPSETS[-1]} are supported by the engine; "
        "convert it with onnx.version_converter"
    )


def _open_negative(proto: onnx.ModelProto) -> None:
    """An axis that is declared negative, as some exporters write one of any size, is open."""
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value < 0:
                dim.ClearField("dim_value")


def _fill_names(proto: onnx.ModelProto) -> None:
    names_in_use = {node.name for node in proto.graph.node if node.name}
    seen: set[str] = set()
    for index, node in enumerate(proto.graph.node):
        if node.name and node.name not in seen:
            seen.add(node.name)
            continue
        name = f"{node.name or node.op_type}_{index}"
        while name in names_in_use:
            name = f"{name}_"
        node.name = name
        names_in_use.add(name)
        seen.add(name)


# Several elements a byte, which ONNX lays out as large as it is told, whatever is there of them.
_PACKED = frozenset(
    value
    for name, value in onnx.TensorProto.DataType.items()
    if name in ("INT2", "UINT2", "INT4", "UINT4", "FLOAT4E2M1")
)


def _array(tensor: onnx.TensorProto, where: str) -> np.ndarray:
    broken = f"{where} has a broken initializer {tensor.name!r}"
    if min(tensor.dims, default=0) < 0:
        raise ModelError(f"{broken}: its shape is {tuple(tensor.dims)}")
    if tensor.data_type in _PACKED:
        stored_nbytes = 4 * (len(tensor.raw_data) + len(tensor.int32_data))
        if math.prod(max(size, 1) for size in tensor.dims) > max(stored_nbytes, 1):
            raise ModelError(
                f"{broken}: its shape is {tuple(tensor.dims)}, with {stored_nbytes} elements at most"
            )
    try:
        array = numpy_helper.to_array(tensor)
    except MemoryError:
        raise
    except Exception as error:
        reason = one_line(error)
        raise ModelError(f"{broken}: {reason}") from None
    array.setflags(write=False)
    return array


def _kept(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.setflags(write=False)
    return view


def read_node(made: onnx.NodeProto, where: str) -> Node:
    """One node of a file. Raises ModelError for a broken tensor, or nothing, among its attributes."""
    attributes = {a.name: _attribute(a, made.name, where) for a in made.attribute}
    names = (tuple(made.input), tuple(made.output))
    return Node(made.name, made.op_type, *names, attributes, made.domain, captured(made), made.overload)


def _attribute(attribute: onnx.AttributeProto, node: str, where: str) -> Any:
    if attribute.ref_attr_name:
        return None
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, onnx.TensorProto):
        return _array(value, f"{where}, node {node!r},")
    if isinstance(value, onnx.GraphProto | onnx.SparseTensorProto | onnx.TypeProto | int | float):
        return value
    if value is None:
        raise ModelError(f"{where}, node {node!r}: its attribute {attribute.name!r} holds nothing")
    return tuple(item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in value)


def constant(node: Node, where: str) -> np.ndarray:
    """The value of a Constant node. Raises UnsupportedError for a sparse one, which is left only in
    functions and graphs within nodes."""
    attributes = node.attributes
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32)):
        if name in attributes:
            return np.array(attributes[name], dtype)
    for name in ("value_int", "value_ints"):
        if name in attributes:
            return np.array(attributes[name], np.int64)
    for name in ("value_string", "value_strings"):
        if name in attributes:
            return np.array(attributes[name], object)
    if isinstance(attributes.get("value"), np.ndarray):
        return attributes["value"]
    where = f"{where}, node {node.name!r} (Constant)"
    raise UnsupportedError(f"{where}: a sparse value is not supported, only a dense one")


def _info(value: onnx.ValueInfoProto, where: str, kind: str) -> TensorInfo:
    if value.type.WhichOneof("value") not in ("tensor_type", None):
        what = str(value.type.WhichOneof("value")).removesuffix("_type")
        raise UnsupportedError(
            f"{where} has an {kind} {value.name!r} of type {what}; only tensors are supported"
        )
    if kind == "input" and value.type.tensor_type.elem_type == onnx.TensorProto.STRING:
        raise UnsupportedError(
            f"{where} has an input {value.name!r} of texts (strings); only tensors of numbers are supported"
        )
    if kind == "input" and not value.type.tensor_type.HasField("shape"):
        raise UnsupportedError(
            f"{where} has an input {value.name!r} of unknown rank; its shape must be declared"
        )
    info = tensor_info(value)
    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
        if kind == "input" and dim.HasField("dim_value") and dim.dim_value < 1:
            raise ModelError(
                f"{where} has an input {value.name!r} of {dim.dim_value} along axis {axis}; a size is 1 or "
                "more, and a batch of any size is a symbol"
            )
    return info


def tensor_info(value: onnx.ValueInfoProto) -> TensorInfo:
    """The tensor as ONNX declares it; float32 where its type is not declared, and an axis that is declared
    negative (as some exporters write a batch) is of any size. Raises UnsupportedError for an element type
    that ONNX does not have."""
    tensor = value.type.tensor_type
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name if tensor.elem_type else "float32"
    except (KeyError, ValueError):
        raise UnsupportedError(
            f"tensor {value.name!r} is of element type {tensor.elem_type}, which ONNX does not have"
        ) from None
    shape: Shape = tuple(
        (int(d.dim_value) if d.dim_value >= 0 else None) if d.HasField("dim_value") else (d.dim_param or None)
        for d in tensor.shape.dim
    )
    return TensorInfo(value.name, dtype, shape)


# -------------------------------------------------------------------------------------------------- outputs

# Which outputs of a model are tensors of numbers: those alone can be held against each other.


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
    numeric_outputs = [value for value in proto.graph.output if value.name not in left_out]
    if not numeric_outputs:
        raise UnsupportedError(
            f"{where} gives out nothing but {'; '.join(words)}: only tensors of numbers can be compared"
        )
    copies = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in numeric_outputs]
    del proto.graph.output[:]
    proto.graph.output.extend(copies)
    return words


def _kind(value: onnx.ValueInfoProto, types: Mapping[str, onnx.ValueInfoProto]) -> str:
    """What an output is, in words, where it is no tensor of numbers; else ""."""
    typed_value = value if value.type.WhichOneof("value") else types.get(value.name, value)
    kind = typed_value.type.WhichOneof("value")
    if kind in (None, "tensor_type"):
        texts = typed_value.type.tensor_type.elem_type == onnx.TensorProto.STRING
        return "a tensor of texts" if texts else ""
    words = {"sequence_type": "a sequence", "map_type": "a map", "optional_type": "an optional value"}
    return words.get(kind, f"of type {kind.removesuffix('_type')}")


# --------------------------------------------------------------------------------------------------- sparse

# Sparse weights made dense: kernels read all elements.


MOST_ELEMENTS = 2**28


def dense(proto: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """The model with its sparse initializers and Constants as dense ones: a copy where there are any. Raises
    ModelError for a broken one, UnsupportedError for one of more elements than that."""
    constants = [
        (place, attribute.sparse_tensor)
        for place, node in enumerate(proto.graph.node)
        for attribute in node.attribute
        if node.op_type == "Constant" and attribute.name == "sparse_value"
    ]
    if not constants and not proto.graph.sparse_initializer:
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for tensor in proto.graph.sparse_initializer:
        copy.graph.initializer.append(_dense(tensor, tensor.values.name, where))
    del copy.graph.sparse_initializer[:]
    for place, tensor in constants:
        node = copy.graph.node[place]
        del node.attribute[:]
        node.attribute.append(
            onnx.helper.make_attribute("value", _dense(tensor, node.output[0] if node.output else "", where))
        )
    return copy


def _dense(tensor: onnx.SparseTensorProto, name: str, where: str) -> onnx.TensorProto:
    """ONNX: "indices … can have shape [NNZ], the linearized index … or [NNZ, rank]"."""
    shape = tuple(tensor.dims)
    if min(shape, default=1) < 0 or math.prod(shape) > MOST_ELEMENTS:
        raise UnsupportedError(
            f"{where} has a sparse tensor {name!r} of shape {shape}, and one of up to {MOST_ELEMENTS:,} "
            "elements is made dense"
        )
    try:
        values, indices = numpy_helper.to_array(tensor.values), numpy_helper.to_array(tensor.indices)
        if indices.size and indices.min() < 0:
            raise IndexError(f"an index of it is {indices.min()}")
        array = np.zeros(shape, values.dtype)
        if indices.ndim == 1:
            array.reshape(-1)[indices] = values
        else:
            array[tuple(indices.T)] = values
    except (ValueError, TypeError, IndexError) as error:
        raise ModelError(f"{where} has a broken sparse tensor {name!r}: {one_line(error)}") from None
    return numpy_helper.from_array(array, name)
