"""A model declared as of an earlier opset of ONNX, where that means the same: ONNX Runtime takes a new one
some releases after ONNX does, and exporters are ahead of both."""

from __future__ import annotations

import onnx
from onnx import helper

from engine.graph.importer import OPSETS
from engine.graph.normal_form import every_node


def declared_earlier(proto: onnx.ModelProto) -> onnx.ModelProto | None:
    """A copy of the earliest opset at which each of its nodes is of the same version of its operator, and of
    the IR that goes with that; None where it cannot be declared earlier than it is."""
    entries = [entry for entry in proto.opset_import if entry.domain == ""]
    if len(entries) != 1 or proto.functions:
        return None
    opset = entries[0].version
    since = OPSETS[0]
    for node in every_node(proto):
        if node.domain == "":
            if not onnx.defs.has(node.op_type, opset):
                return None
            since = max(since, onnx.defs.get_schema(node.op_type, opset).since_version)
    ir = helper.find_min_ir_version_for([helper.make_opsetid("", since)])
    ir = min(proto.ir_version, max(ir, _OLDEST))
    if (since, ir) == (opset, proto.ir_version):
        return None
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    copy.ir_version = ir
    next(entry for entry in copy.opset_import if entry.domain == "").version = since
    return copy


# Types of elements that came with later IR versions are no reason to go below this one.
_OLDEST = 9
