"""What the two ONNX Runtime backends share: sessions, refusals, errors in one sentence.

onnxruntime is imported when the first session is made, never before: `--help` and the window do without.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from engine.graph import initializers
from engine.graph.graph import Graph
from engine.graph.importer import OPSETS
from engine.graph.normal_form import every_node
from engine.options import DISABLED
from kernels.errors import KernelError, KernelscopeError, Translated, UnavailableError, UnsupportedError
from kernels.spans import span

CREATE = "session creation"  # the name of its spans
SILENT = 4  # only what aborts the process: everything else reaches us as an exception
_OUT_OF_MEMORY = (
    "failed to allocate memory",
    "out of memory",
    "bad_alloc",
    "bfcarena",
    "alloc_failed",
    "cudaerrormemoryallocation",
    "available memory of",
)
_NO_SUCH_OPERATOR = "is not a registered function/op"  # told as a mere failure
# What fails within ONNX Runtime where a node is to run on no other device and has no kernel on this one.
_UNPLACED = "TransformerMemcpyImpl::IsNodeCompatibleWithProvider"
_ELEMENT_TYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
    "tensor(uint8)": "uint8",
    "tensor(int8)": "int8",
    "tensor(int16)": "int16",
    "tensor(uint16)": "uint16",
    "tensor(uint32)": "uint32",
    "tensor(uint64)": "uint64",
    "tensor(bool)": "bool",
}
# A function that makes a session of what makes SessionOptions.
Create = Callable[[Callable[[], Any]], Any]
_creators: list[Callable[[Create, Callable[[], Any]], Any]] = []


def import_onnxruntime() -> Any:
    """The onnxruntime module, told to be silent. Raises UnavailableError where it isn't installed."""
    try:
        import onnxruntime
    except ImportError as error:
        raise UnavailableError(
            f"ONNX Runtime cannot be imported ({first_line(error)}): install the extra cpu, or cuda on a "
            "machine with an NVIDIA GPU"
        ) from error
    onnxruntime.set_default_logger_severity(SILENT)
    return onnxruntime


def two_builds() -> str | None:
    """A sentence where onnxruntime and onnxruntime-gpu lie in one folder: the later overwrote the earlier.

    Two builds on different folders of the import path do no harm (the first is used).
    """
    places = []
    for name in ("onnxruntime", "onnxruntime-gpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            places.append(
                Path(str(importlib.metadata.distribution(name).locate_file("onnxruntime"))).resolve()
            )
    if len(places) == 2 and places[0] == places[1]:
        return (
            "onnxruntime and onnxruntime-gpu are both installed and overwrite each other's files: uninstall "
            "both, then install the extra cpu or the extra cuda alone"
        )
    return None


def cuda_major() -> int | None:
    """The CUDA major version that the installed onnxruntime was built for; None for a CPU build."""
    with contextlib.suppress(ImportError, ValueError):
        info = importlib.import_module("onnxruntime.capi.build_and_package_info")
        return int(str(getattr(info, "cuda_version", "")).split(".")[0])
    return None


def refusal(graph: Graph, batch: int, precision: str, precisions: Sequence[str], backend: str) -> str | None:
    """Why ONNX Runtime cannot run `graph` at this batch size and precision, in words, or None."""
    if precision not in precisions:
        return f"{backend} does not offer {precision}; it offers {', '.join(precisions)}"
    if batch < 1:
        return f"batch {batch} is not a batch size: it has to be 1 or more"
    fixed = graph.fixed_batch
    if fixed is not None and fixed != batch:
        return f"model {graph.name} has its batch fixed at {fixed}, so it cannot run at batch {batch}"
    for name, axis in graph.open_axes:
        called = next(info.shape[axis] for info in graph.inputs if info.name == name)
        return (
            f"input {name} of model {graph.name} leaves axis {axis} open ({called or 'unnamed'}) beside its "
            f"batch: give it a size, as with --dim {called or f'{name}.{axis}'}=128"
        )
    return None


def session_options(ort: Any, threads: int, optimization: str = "all") -> Any:
    """SessionOptions with `threads` threads inside an operator, one operator at a time, and this level of
    graph optimisation (engine.options.OPTIMIZATION)."""
    options = ort.SessionOptions()
    options.log_severity_level = SILENT
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    level = "ORT_DISABLE_ALL" if optimization == DISABLED else f"ORT_ENABLE_{optimization.upper()}"
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    # Else it rounds what is multiplied by weights of four bits to eight, and errs by a hundredth.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return options


@contextlib.contextmanager
def created_by(create: Callable[[Create, Callable[[], Any]], Any]) -> Iterator[None]:
    """Inside, `create_session` has this make the session: it is given a function that makes one of what makes
    SessionOptions, and what makes those."""
    _creators.append(create)
    try:
        yield
    finally:
        _creators.pop()


@span(CREATE)
def create_session(
    ort: Any, graph: Graph, batch: int, options: Callable[[], Any], providers: Sequence[Any]
) -> Any:
    """InferenceSession of `graph` with its batch axis set, so that every shape is known to the optimiser.

    options: makes new SessionOptions. Large weights are given to ONNX Runtime as the arrays that they are,
    which the session keeps alive; where it does not take them so, the whole model is serialised.
    Raises UnsupportedError where ONNX Runtime has no such operator, OutOfMemoryError, KernelError.
    """

    def create(options: Callable[[], Any]) -> Any:
        return _created(ort, graph, batch, options, providers)

    return _creators[-1](create, options) if _creators else create(options)


def _created(ort: Any, graph: Graph, batch: int, options: Callable[[], Any], providers: Sequence[Any]) -> Any:
    proto = graph.proto
    if any(info.shape and info.shape[0] is None for info in graph.inputs):
        proto = _with_batch(proto, {info.name for info in graph.inputs}, batch)

    def made(model: onnx.ModelProto, weights: Mapping[str, Any]) -> Any:
        how = options()
        for symbol in sorted(graph.batch_symbols):
            how.add_free_dimension_override_by_name(symbol, batch)
        for library in graph.libraries:
            how.register_custom_ops_library(library)
        if weights:
            how.add_external_initializers(list(weights), list(weights.values()))
        # Without its own fall-back, which would print, drop the options and carry on with the CPU.
        session = ort.InferenceSession(
            model.SerializeToString(), how, providers=list(providers), enable_fallback=False
        )
        session.weights = weights
        return session

    def whole(model: onnx.ModelProto) -> Any:
        beside = initializers.declared(model)
        if not beside:
            return made(model, {})
        try:
            return made(model, {name: _value(ort, graph.initializers[name]) for name in beside})
        except Exception as error:
            if _ran_out(error):
                raise
        return made(initializers.whole(model, graph.initializers), {})

    with translated(f"model {graph.name} at batch {batch}"):
        try:
            return whole(proto)
        except Exception as error:
            earlier = None if _ran_out(error) else declared_earlier(proto)
            if earlier is None:
                raise
            with contextlib.suppress(Exception):  # what it says of the model as it is says more
                return whole(earlier)
            raise


def _value(ort: Any, array: np.ndarray) -> Any:
    """An OrtValue on the array's own memory, where that is in one piece."""
    return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))


def _with_batch(proto: onnx.ModelProto, inputs: set[str], batch: int) -> onnx.ModelProto:
    """A copy whose inputs' unnamed first axis is `batch` (an unnamed axis has no override by name)."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for value in copy.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name in inputs and dims and not dims[0].WhichOneof("value"):
            dims[0].dim_value = batch
    return copy


def buffers_of(arguments: Sequence[Any]) -> dict[str, tuple[tuple[int, ...], np.dtype]] | None:
    """Shape and dtype by name of a session's inputs or outputs; None where a dimension is still unknown."""
    buffers = {}
    for argument in arguments:
        if any(not isinstance(dim, int) or dim < 0 for dim in argument.shape):
            return None
        buffers[argument.name] = (tuple(argument.shape), dtype_of(argument.name, argument.type))
    return buffers


def dtype_of(name: str, element_type: str) -> np.dtype:
    """NumPy's dtype for ONNX Runtime's "tensor(float)" and so on. Raises UnsupportedError for others."""
    dtype = _ELEMENT_TYPES.get(element_type)
    if dtype is None:
        raise UnsupportedError(
            f"tensor {name} has type {element_type}; the types supported are "
            + ", ".join(sorted(_ELEMENT_TYPES.values()))
        )
    return np.dtype(dtype)


class translated(Translated):
    """Round what ONNX Runtime does."""

    __slots__ = ()

    def ours(self, error: Exception) -> KernelscopeError | None:
        text = first_line(error)
        if _ran_out(error):
            return self.ran_out(text)
        refused = type(error).__name__ in ("NotImplemented", "InvalidGraph", "InvalidProtobuf")
        if _UNPLACED in str(error):
            return UnsupportedError(
                f"ONNX Runtime has no kernel on this device for every node of {self._what}"
            )
        if refused or _NO_SUCH_OPERATOR in text:
            return UnsupportedError(f"ONNX Runtime refuses {self._what}: {text}")
        return KernelError(f"ONNX Runtime failed on {self._what}: {text}")


def _ran_out(error: BaseException) -> bool:
    """Whether memory did not suffice."""
    return isinstance(error, MemoryError) or any(mark in str(error).lower() for mark in _OUT_OF_MEMORY)


def first_line(error: BaseException) -> str:
    """The message's first line without "[ONNXRuntimeError] : 1 : FAIL : ", cut to a readable length."""
    lines = str(error).strip().splitlines()
    text = lines[0].strip() if lines else type(error).__name__
    if text.startswith("[ONNXRuntimeError]"):
        text = text.split(" : ", 3)[-1]
    return text if len(text) <= 300 else text[:299] + "…"


# -------------------------------------------------------------------------------------------------- earlier

# A model declared as of an earlier opset of ONNX, where that means the same: ONNX Runtime takes a new one
# some releases after ONNX does, and exporters are ahead of both.


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


# ------------------------------------------------------------------------------------------------ placement

# Where ONNX Runtime put a session's nodes. It falls back to the CPU in silence; here that is an error, not a
# result.


_CPU = "CPUExecutionProvider"


def check_placement(session: Any, provider: str, what: str, helps: str) -> dict[str, str]:
    """What a record says of nodes that other providers run. Raises UnavailableError where the session has
    left the provider that was asked for, or no node runs there. helps: what would keep it."""
    providers = session.get_providers()
    if not providers or providers[0] != provider:
        raise UnavailableError(
            f"ONNX Runtime fell back from {provider} to {providers[0] if providers else 'nothing'} for "
            f"{what}: {helps}"
        )
    info = getattr(session, "get_provider_graph_assignment_info", None)
    if info is None or provider == _CPU:  # before ONNX Runtime 1.24
        return {}
    placed = [(part.ep_name, node) for part in info() for node in part.get_nodes()]
    elsewhere = [node for by, node in placed if by != provider]
    on_cpu = [node for by, node in placed if by == _CPU]
    if placed and len(elsewhere) == len(placed):
        where = "the CPU" if len(on_cpu) == len(placed) else "other providers"
        raise UnavailableError(f"ONNX Runtime placed every node of {what} on {where}")
    if not elsewhere:
        return {}
    names = ", ".join(f"{node.name} ({node.op_type})" for node in elsewhere[:5])
    text = f"{len(elsewhere)}: {names}{', …' if len(elsewhere) > 5 else ''}"
    return {"nodes_on_cpu" if len(on_cpu) == len(elsewhere) else "nodes_elsewhere": text}
