"""Nets that are built by code of the program's (models.builders_transformers), with the weights of the
catalogue's."""

from __future__ import annotations

from pathlib import Path

import onnx

from models import builders_transformers
from tests.zoo.nets import Export


def export(wanted: Export, path: Path) -> None:
    """Write the file of a net."""
    net = builders_transformers.NETS[wanted.net.name]()
    proto = net.model(wanted.net.name, net.drawn())
    if wanted.form == "fixed":
        for value in (*proto.graph.input, *proto.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(proto, path)
