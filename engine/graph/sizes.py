"""A model whose open axes are given sizes: height and width of an image, the length of a sequence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import onnx

from engine.graph import importer
from engine.graph.graph import Graph
from kernels.errors import InputError
from kernels.nearest import did_you_mean


def names(graph: Graph) -> dict[str, tuple[str, int]]:
    """What an open axis can be called, with an input and axis that it is: its name in the file ("height"), or
    the input's name and the axis's number ("x.2"), which one without a name has alone."""
    axes: dict[str, tuple[str, int]] = {}
    for info in graph.inputs:
        for axis, size in enumerate(info.shape):
            if not isinstance(size, int):
                if size is not None:
                    axes.setdefault(size, (info.name, axis))
                axes.setdefault(f"{info.name}.{axis}", (info.name, axis))
    return axes


def sized(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph with these of its open axes of these sizes, by what they can be called (`names`). An axis
    that has a name gets its size wherever the file writes that name.

    Raises InputError for what no open axis is called, and a size that is not 1 or more."""
    if not sizes:
        return graph
    known = names(graph)
    symbols: dict[str, int] = {}
    places: dict[tuple[str, int], int] = {}
    shapes = {info.name: info.shape for info in graph.inputs}
    for called, size in sizes.items():
        if size < 1:
            raise InputError(f"axis {called} of model {graph.name} is given size {size}; 1 or more works")
        if called not in known:
            there = f"open are {', '.join(known)}" if known else "it has no open axis"
            raise InputError(
                f"model {graph.name} has no open axis {called!r}{did_you_mean(called, known)}; {there}"
            )
        name, axis = known[called]
        symbol = shapes[name][axis]
        if isinstance(symbol, str):
            if symbols.setdefault(symbol, size) != size:
                raise InputError(
                    f"axis {symbol} of model {graph.name} is given two sizes, {symbols[symbol]} and {size}"
                )
        else:
            places[name, axis] = size
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            wanted = symbols.get(dim.dim_param) or places.get((value.name, axis))
            if wanted is not None and not dim.dim_value:
                dim.dim_value = wanted
    sizes_by_name = symbols | {f"{name}.{axis}": size for (name, axis), size in places.items()}
    words = [f"{called}={size}" for called, size in sorted(sizes_by_name.items())]
    digest = hashlib.sha256("\0".join((graph.sha256, "sizes", *words)).encode()).hexdigest()
    sized_graph = importer.from_proto(proto, graph.name, sha256=digest, values=graph.initializers)
    return replace(sized_graph, devices=graph.devices, left_out=graph.left_out)
