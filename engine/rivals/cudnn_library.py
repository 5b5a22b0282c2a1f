"""cuDNN through the graph API of its frontend (`nvidia-cudnn-frontend`, the module `cudnn`): a convolution
with what follows it as one graph, and the fastest of its execution plans, chosen by time.

The names are those of the frontend's Python API, versions 1.18 to 1.26.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from engine.rivals.cudnn_gpu import Gpu
from kernels.errors import KernelError, KernelscopeError, Translated, UnavailableError
from kernels.ops.conv import Conv

# Loaded before cuDNN, which looks for them by these names: of their pip packages nobody else may know.
_LIBRARIES = (
    ("nvidia.cu13", "lib/libcudart.so.13"),
    ("nvidia.cu13", "lib/libnvrtc.so.13"),
    ("nvidia.cu13", "lib/libcublasLt.so.13"),
    ("nvidia.cudnn", "lib/libcudnn.so.9"),
)
MOST_PLANS = 40  # of a graph that are timed, the heuristics' best ones
MOST_SECONDS = 4.0  # of choosing a convolution's plan, once one is there
PATIENCE = 16  # plans that are tried behind the fastest one: the heuristics list their best ones first
FINALISTS = 4  # of them that are timed again; and later sessions of this process try no others
MOST_WORKSPACE = 2 << 30
# By convolution the names of the plans that were the fastest.
_known: dict[Convolution, tuple[str, ...]] = {}


def imported() -> Any:
    """The module `cudnn`, with its library loaded. Raises UnavailableError."""
    preload()
    try:
        cudnn = importlib.import_module("cudnn")
        cudnn.backend_version()
    except Exception as error:  # a library that does not load has many names
        raise UnavailableError(f"cuDNN's frontend cannot be used: {line(error)}") from error
    return cudnn


def preload() -> None:
    """Load what cuDNN needs from where pip has put it; what is not there the system may have."""
    for package, name in _LIBRARIES:
        for folder in _folders(package):
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(folder / name), ctypes.RTLD_GLOBAL)
                break


def _folders(package: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return []
    return [Path(place) for place in (spec.submodule_search_locations or ())] if spec is not None else []


def line(error: BaseException) -> str:
    """An error in a line."""
    text = " ".join((str(error).strip() or type(error).__name__).split())
    return text if len(text) <= 300 else text[:299] + "…"


class translated(Translated):
    """Around calls of cuDNN, cuBLASLt and CuPy."""

    __slots__ = ()

    def ours(self, error: Exception) -> KernelscopeError | None:
        said = line(error)
        if isinstance(error, MemoryError) or "out of memory" in said.lower() or "ALLOC_FAILED" in said:
            return self.ran_out(said)
        return KernelError(f"cuDNN failed on {self._what}: {said}")


@dataclass(frozen=True)
class Convolution:
    """A convolution as cuDNN computes it. conv: with the channels and maps that lie in memory; finished:
    whether its bias and activation are part of the graph; summed: whether another tensor is added before the
    activation; held: the type of all tensors; nhwc: whether channels lie innermost; strict: whether no
    tensor core rounds what it is given; lies: channels of the images that its input and its output are parts
    of, (0, 0) where they are whole.

    In int8 sums are int32, which is what comes out; finished: it is int8, the sum times a factor plus a
    shift, of float32 and one of each a map, in the places of what is added and of the bias."""

    conv: Conv
    finished: bool
    summed: bool
    held: str
    nhwc: bool
    strict: bool
    lies: tuple[int, int] = (0, 0)


@dataclass
class Plan:
    """An execution plan: run(x, weight, bias, other, y) puts it on the stream. words: what it is; workspace:
    bytes of scratch memory."""

    run: Callable[[int, int, int, int, int], None]
    words: str
    elapsed_ns: float
    workspace: int = 0


class Graphs:
    """cuDNN on one stream. It keeps the plan of each convolution that it has chosen one for: a net asks for
    the same again and again."""

    def __init__(self, cudnn: Any, gpu: Gpu) -> None:
        self._cudnn, self._gpu = cudnn, gpu
        self._handle = cudnn.create_handle()
        self.follow()
        self._chosen: dict[Convolution, list[Plan]] = {}
        self._graphs: list[Any] = []
        self._scratch: Any = None
        self._workspace, self._workspace_nbytes = 0, 0
        self.tried = 0

    @property
    def version(self) -> str:
        return str(self._cudnn.backend_version_string())

    def follow(self) -> None:
        """Work on the stream that the GPU has now."""
        self._cudnn.set_stream(handle=self._handle, stream=self._gpu.stream.ptr)

    def close(self) -> None:
        self._graphs.clear()
        self._chosen.clear()
        if self._handle is not None:
            self._cudnn.destroy_handle(self._handle)
            self._handle = None

    def plans(self, asked: Convolution, places: Sequence[int], seconds: float = MOST_SECONDS) -> list[Plan]:
        """The fastest plan for it, as the only one; none where cuDNN has no engine for such a graph. places:
        x, weight, bias, other and y, at which plans are tried (0: there is none)."""
        if asked not in self._chosen:
            best = self._fastest(asked, tuple(places), time.perf_counter() + seconds)
            self._chosen[asked] = [best] if best is not None else []
        return self._chosen[asked]

    def _fastest(self, asked: Convolution, places: tuple[int, ...], end: float) -> Plan | None:
        try:
            graph, names = self._graph(asked)
        except Exception as error:
            if not self._unsupported(error):
                raise
            return None
        plans = self._all(graph, names, places, end, _known.get(asked, ()))
        plans = plans or self._all(graph, names, places, end, ())
        if not plans:
            return None
        first = sorted(plans, key=lambda name: plans[name].elapsed_ns)[:FINALISTS]
        for name in first:
            plan = plans[name]
            again = min(self._gpu.time_ns(partial(plan.run, *places)) for _ in range(2))
            plan.elapsed_ns = min(plan.elapsed_ns, again)
        _known.setdefault(asked, tuple(first))
        self.tried += len(plans)
        self._graphs.append(graph)
        best = min((plans[name] for name in first), key=lambda plan: plan.elapsed_ns)
        best.words += f", the fastest of {len(plans)}"
        return best

    def _all(
        self, graph: Any, names: Sequence[Any], places: tuple[int, ...], end: float, among: tuple[str, ...]
    ) -> dict[str, Plan]:
        """Plans by name, with their times. among: no others are tried ((): all that are listed)."""
        plans: dict[str, Plan] = {}
        least, since = math.inf, 0
        for index in range(int(graph.get_execution_plan_count())):
            if since == PATIENCE or len(plans) == MOST_PLANS or (plans and time.perf_counter() > end):
                break
            name = str(graph.get_plan_name_at_index(index))
            if name in plans or (among and name not in among):
                continue
            if (plan := self._tried(graph, names, index, places)) is not None:
                plans[name] = plan
                since = 0 if plan.elapsed_ns < least else since + 1
                least = min(least, plan.elapsed_ns)
        return plans

    def _tried(self, graph: Any, names: Sequence[Any], index: int, places: tuple[int, ...]) -> Plan | None:
        """A plan with its time; None where it cannot be had, or asks for too much."""
        try:
            graph.build_plan_at_index(index)
            nbytes = int(graph.get_workspace_size_plan_at_index(index))
            if nbytes > MOST_WORKSPACE:
                return None
            self._room(nbytes)

            def run(x: int, weight: int, bias: int, other: int, y: int) -> None:
                pairs = zip(names, (x, weight, bias, other, y), strict=True)
                given = {name: place for name, place in pairs if name is not None}
                graph.execute_plan_at_index(given, self._workspace, index, self._handle)

            self._gpu.put(partial(run, *places))
            self._gpu.synchronize()
            elapsed = self._gpu.time_ns(partial(run, *places))
            return Plan(run, str(graph.get_plan_name_at_index(index)), elapsed, nbytes)
        except Exception as error:
            if not self._unsupported(error):
                raise
            return None

    def _unsupported(self, error: Exception) -> bool:
        """Whether cuDNN says that it has no such thing; it says so of a plan, too, that was promised."""
        kind = getattr(self._cudnn, "cudnnGraphNotSupportedError", ())
        words = ("NOT_SUPPORTED", "No valid engine", "not supported", "deselected", "Deselecting")
        return isinstance(error, kind) or any(word in str(error) for word in words)

    def _room(self, nbytes: int) -> None:
        """Scratch memory, one block for all plans: they run one after the other."""
        if nbytes > self._workspace_nbytes:
            self._scratch = None  # what it held may be part of what is asked for
            self._scratch = self._gpu.scratch(nbytes)
            self._workspace, self._workspace_nbytes = int(self._scratch.ptr), nbytes

    def settle(self) -> None:
        """All plans are chosen: keep as much scratch memory as these ask for."""
        self._workspace_nbytes = 0
        self._room(max((plan.workspace for plans in self._chosen.values() for plan in plans), default=0))

    def _graph(self, asked: Convolution) -> tuple[Any, tuple[Any, ...]]:
        """The graph with its plans listed, and its tensors: x, weight, bias, other, y."""
        cudnn, p, eight = self._cudnn, asked.conv, asked.held == "int8"
        real, whole = cudnn.data_type.FLOAT, cudnn.data_type.INT32
        held = {"float32": real, "float16": cudnn.data_type.HALF, "bfloat16": cudnn.data_type.BFLOAT16,
                "int8": cudnn.data_type.INT8}  # fmt: skip
        graph = cudnn.pygraph(
            io_data_type=held[asked.held],
            intermediate_data_type=real,
            compute_data_type=real,
            handle=self._handle,
        )

        def tensor(name: str, shape: tuple[int, ...], dtype: Any = held[asked.held], lies: int = 0) -> Any:
            stride = _strides(shape, asked.nhwc, lies)
            return graph.tensor(name=name, dim=list(shape), stride=stride, data_type=dtype)

        lies = asked.lies
        x = tensor("x", (p.n, p.c, p.h, p.w), lies=lies[0])
        weight = tensor("weight", (p.m, p.c // p.group, p.kh, p.kw))
        y = graph.conv_fprop(
            image=x,
            weight=weight,
            pre_padding=[p.pad_top, p.pad_left],
            post_padding=[p.pad_bottom, p.pad_right],
            stride=[p.stride_h, p.stride_w],
            dilation=[p.dilation_h, p.dilation_w],
            compute_data_type=whole if eight else real,
        )
        shape, bias, other = (p.n, p.m, p.out_h, p.out_w), None, None
        result = whole if eight and not asked.finished else held[asked.held]
        if eight and asked.finished:
            y.set_data_type(whole)
            other, bias = (tensor(name, (1, p.m, 1, 1), real) for name in ("factor", "shift"))
            y = graph.add(a=graph.mul(a=y, b=other), b=bias)
        elif asked.finished:
            if asked.summed:  # in this order: engines that are compiled beforehand know no other
                other = tensor("other", shape, lies=lies[1])
                y = graph.add(a=y, b=other)
            bias = tensor("bias", (1, p.m, 1, 1))
            y = graph.add(a=y, b=bias)
            if p.activation == "relu6":
                y = graph.relu(y, upper_clip=6.0)
            elif p.activation:
                y = getattr(graph, p.activation)(y)  # relu, tanh, sigmoid
        y.set_output(True).set_data_type(result)
        y.set_dim(list(shape)).set_stride(_strides(shape, asked.nhwc, lies[1]))
        graph.validate()
        graph.build_operation_graph()
        modes = cudnn.heur_mode
        graph.create_execution_plans([modes.A, modes.B, modes.FALLBACK])
        note = cudnn.numerical_note
        # What would compute in less than was asked for, and Winograd's largest tiles, which cost more digits
        # than float32 may lose here.
        unwanted = [note.DOWN_CONVERT_INPUTS, note.REDUCED_PRECISION_REDUCTION, note.WINOGRAD_TILE_13x13]
        graph.deselect_numeric_notes(unwanted + [note.TENSOR_CORE] * asked.strict)
        return graph, (x, weight, bias, other, y)


def _strides(shape: tuple[int, ...], nhwc: bool, lies: int = 0) -> list[int]:
    """lies: channels of the image that it is a part of (0: its own)."""
    _, c, h, w = shape
    c = lies or c
    return [c * h * w, 1, w * c, c] if nhwc else [c * h * w, h * w, w, 1]


def laid_out(array: np.ndarray, held: str, nhwc: bool) -> np.ndarray:
    """Weights (m, c, kh, kw) in this type and order."""
    return np.ascontiguousarray((array.transpose(0, 2, 3, 1) if nhwc else array).astype(held))
