"""Per-operator times from ONNX Runtime's own profiler, told in terms of the ONNX nodes.

The profiler's intervals lie inside ONNX Runtime round each kernel; its own bookkeeping falls into them (about
3 µs a node, more than a small operator takes), so that cost is measured on an empty chain and taken off.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from engine.backend import OpTime
from engine.graph.graph import Graph
from engine.ort import sessions as ort
from kernels.errors import KernelscopeError

_MAX_RUNS = 300  # a run writes about 1 kB a node into the profile
_CHAIN = 16  # nodes of the calibration chain


def op_times(
    create: ort.Create, bind: Callable[[Any], Any], graph: Graph, threads: int, seconds: float
) -> tuple[OpTime, ...]:
    """Medians per operator of about `seconds` of profiled runs (a quarter of them warm-up, dropped).

    `create` makes a session of `graph` by what makes SessionOptions, `bind` an IO binding of such a session.
    The session is one of its own: the timed one never pays for profiling. Raises what `create` raises.
    """
    runtime = ort.import_onnxruntime()
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
        session, optimized = _profiled(create, lambda: ort.session_options(runtime, threads), Path(folder))
        binding = bind(session)
        runs = warm_up = 0
        started = time.perf_counter()
        with ort.translated(f"the profile of {graph.name}"):
            while runs < warm_up + _MAX_RUNS:
                session.run_with_iobinding(binding)
                runs += 1
                elapsed = time.perf_counter() - started
                if runs <= 3 or (elapsed < seconds / 4 and runs < _MAX_RUNS):
                    warm_up = runs
                elif elapsed >= seconds and runs >= warm_up + 3:
                    break
        file = Path(session.end_profiling())
        del binding, session
        durations, op_types = _read(file, warm_up)
        nodes = covered_nodes(graph, optimized)
    cost_ns = _profiler_cost_ns(threads)
    return tuple(
        OpTime(nodes.get(name, ()), op_types[name], max(0.0, _median_ns(micros) - cost_ns), "host")
        for name, micros in durations.items()
    )


class OrtProfile:
    """ONNX Runtime's own profile of the session that is made inside `recording`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session: Any = None
        self.zeros_ns: tuple[int, ...] = ()  # when it may have begun, in perf_counter_ns; after `end`

    @property
    def optimized(self) -> Path | None:
        """The model as ONNX Runtime runs it, None where it was not written."""
        path = self._folder / "optimized.onnx"
        return path if path.is_file() else None

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Sessions made inside write a profile; the last one's counts."""
        with ort.created_by(self._create):
            yield

    def _create(self, create: ort.Create, options: Callable[[], Any]) -> Any:
        self._session, _ = _profiled(create, options, self._folder)
        return self._session

    def end(self) -> Path | None:
        """Stop; the file that was written, None where no session was made. The session has to live still."""
        session, self._session = self._session, None
        if session is None:
            return None
        self.zeros_ns = _zeros(session)
        return Path(session.end_profiling())


def _profiled(create: ort.Create, options: Callable[[], Any], folder: Path) -> tuple[Any, Path | None]:
    """A session that writes its profile into the folder, and the model as ONNX Runtime runs it; None for the
    model where there is no room for it: times are had without their nodes."""
    optimized = folder / "optimized.onnx"

    def model_too() -> Any:
        session_and_file = _profiling(options(), folder)
        _write_optimized(session_and_file, optimized)
        return session_and_file

    try:
        return create(model_too), optimized
    except KernelscopeError:
        return create(lambda: _profiling(options(), folder)), None


def _profiling(options: Any, folder: Path) -> Any:
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    return options


def _write_optimized(options: Any, path: Path) -> None:
    """Have a session write the model as it runs it, its nodes alone: the weights, which nobody reads, go into
    a file beside it that leads nowhere (where there can be none, they are written)."""
    options.optimized_model_filepath = str(path)
    weights = path.with_suffix(".weights")
    with contextlib.suppress(OSError):
        weights.symlink_to(os.devnull)
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", weights.name)


def _zeros(session: Any) -> tuple[int, ...]:
    """When a session's profile began, in perf_counter_ns: by the system's clock, or by the steady one. Which
    of them a build of ONNX Runtime reads shows where the runs are known."""
    try:
        began = int(session.get_profiling_start_time_ns())
    except AttributeError:
        return ()
    before = time.perf_counter_ns()
    wall, steady = time.time_ns(), time.monotonic_ns()
    now = (before + time.perf_counter_ns()) // 2
    return (began - (wall - now), began - (steady - now))


def _read(file: Path, warm_up: int) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Durations in µs and op_type by node name, in the order they ran, of all runs after the warm-up."""
    durations: dict[str, list[int]] = {}
    op_types: dict[str, str] = {}
    run = 0
    for event in json.loads(file.read_text()):
        if event.get("cat") == "Session" and event["name"] == "model_run":
            run += 1
        elif event.get("cat") == "Node" and event["name"].endswith("_kernel_time") and run >= warm_up:
            name = event["name"].removesuffix("_kernel_time")
            durations.setdefault(name, []).append(event["dur"])
            op_types[name] = event["args"]["op_name"]
    return durations, op_types


def _median_ns(micros: list[int]) -> float:
    # The profile cuts durations to whole microseconds: the median within a bin of width 1, whose middle is
    # half a microsecond above what was written.
    return (statistics.median_grouped(micros, interval=1.0) + 0.5) * 1e3


@functools.cache
def _profiler_cost_ns(threads: int) -> float:
    """What the profiler adds to a node's interval: the time that it tells of a node that does nothing."""
    runtime = ort.import_onnxruntime()
    names = [f"t{i}" for i in range(_CHAIN + 1)]
    nodes = [onnx.helper.make_node("Neg", [names[i]], [names[i + 1]], name=f"neg{i}") for i in range(_CHAIN)]
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1])
        for name in (names[0], names[-1])
    ]
    graph = onnx.helper.make_graph(nodes, "chain", [ends[0]], [ends[1]])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
        session = runtime.InferenceSession(
            model.SerializeToString(),
            _profiling(ort.session_options(runtime, threads), Path(folder)),
            providers=["CPUExecutionProvider"],
        )
        for _ in range(100):
            session.run(None, {names[0]: np.zeros(1, np.float32)})
        durations, _ = _read(Path(session.end_profiling()), warm_up=50)
    return statistics.median(_median_ns(micros) for micros in durations.values())


def covered_nodes(graph: Graph, optimized: Path | None) -> dict[str, tuple[str, ...]]:
    """Name of an optimised node → names of the ONNX nodes that it computes, in graph order.

    An optimised node ends in a tensor of the original model (by its output, or by its name where the output
    lies in a blocked layout: "<tensor>_nchwc"); it covers that tensor's producer and whatever leads to it
    from tensors that other optimised nodes end in.
    """
    if optimized is None:
        return {}
    producers = {output: node for node in graph.nodes for output in node.outputs if output}
    nodes = onnx.load(str(optimized), load_external_data=False).graph.node
    reordered = {
        node.input[0]: node.output[0]
        for node in nodes
        if node.op_type == "ReorderOutput" and node.output[0] in producers
    }
    ends: dict[str, str] = {}
    for node in nodes:
        if node.op_type in ("ReorderInput", "ReorderOutput"):
            continue
        output = next(filter(None, node.output), "")  # an optional one may be absent
        blocked = node.name.removesuffix("_nchwc")
        if output in producers:
            ends[node.name] = output
        elif blocked in producers:
            ends[node.name] = blocked
        elif output in reordered:
            ends[node.name] = reordered[output]
        elif node.name in graph.by_name:
            ends[node.name] = next(filter(None, graph.by_name[node.name].outputs))
    stops = set(ends.values())
    covered = {}
    for name, end in ends.items():
        names_found: set[str] = set()
        waiting = [producers[end]]
        while waiting:
            node = waiting.pop()
            if node.name not in names_found:
                names_found.add(node.name)
                waiting += [producers[t] for t in node.reads if t in producers and t not in stops]
        covered[name] = tuple(sorted(names_found, key=graph.order.__getitem__))
    return covered
