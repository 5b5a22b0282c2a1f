"""NVIDIA's libraries as far as `cudnn-graph` asks for them, answered by NumPy: cuDNN's frontend and cuBLASLt;
and a GPU for its own kernels, which are run from their PTX on the CPU (kernels.ptx), where they may not touch
what lies beside a buffer. What nobody wrote is NaN."""

from __future__ import annotations

import bisect
import ctypes
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from engine.rivals import cublaslt, cudnn_gpu, cudnn_library
from kernels import nvrtc
from kernels.ptx.program import Buffer, Device, Program, packed

TYPES = {"FLOAT": np.float32, "HALF": np.float16, "BFLOAT16": np.dtype("bfloat16"), "INT8": np.int8,
         "INT32": np.int32}  # fmt: skip
KINDS = {0: np.float32, 2: np.float16, 3: np.int8, 10: np.int32, 14: np.dtype("bfloat16")}  # cudaDataType
COMPUTES = {0: (68, 77), 2: (68,), 3: (72,), 14: (68,)}  # cublasComputeType_t by it
_programs: dict[tuple[str, bool, int], Program] = {}


class Sees(Protocol):
    """What the libraries do with memory."""

    stream: Any

    def array(self, address: int, dtype: Any, count: int) -> np.ndarray: ...
    def later(self, do: Callable[[], object]) -> None: ...


class Memory:
    """What `Gpu` is to a session. size: channels of the normalisations of the net."""

    def __init__(self, held: str, nhwc: bool, size: int = 1) -> None:
        key = held, nhwc, size
        if key not in _programs:
            _programs[key] = Program(nvrtc.ptx(cudnn_gpu.source(*key), "sm_80"))
        self.device = Device(_programs[key])
        self.stream = SimpleNamespace(ptr=7)
        self._buffers: dict[int, Buffer] = {}
        self._free: list[tuple[int, int]] = []

    def new(self, nbytes: int) -> int:
        content = np.full(max(nbytes, 1), 0xFF, np.uint8)  # NaN, in all types
        buffer = self.device.buffer(f"memory {len(self._buffers)}", content, 1, writable=True)
        self._buffers[buffer.address] = buffer
        return buffer.address

    def scratch(self, nbytes: int) -> SimpleNamespace:
        return SimpleNamespace(ptr=self.new(nbytes))

    def take(self, nbytes: int) -> int:
        place = bisect.bisect_left(self._free, (nbytes, 0))
        return self._free.pop(place)[1] if place < len(self._free) else self.new(nbytes)

    def give(self, address: int) -> None:
        self.bytes(address)[:] = 0xFF  # nobody may need it
        bisect.insort(self._free, (self._buffers[address].bytes.nbytes, address))

    def bytes(self, address: int) -> np.ndarray:
        start = max(at for at in self._buffers if at <= address)
        return self._buffers[start].bytes[address - start :]

    def array(self, address: int, dtype: Any, count: int) -> np.ndarray:
        dtype = np.dtype(dtype)
        return self.bytes(address)[: count * dtype.itemsize].view(dtype)

    def constant(self, array: np.ndarray) -> int:
        address = self.new(array.nbytes)
        self.bytes(address)[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return address

    def launch(
        self, name: str, arguments: Sequence[Any], items: int = 0, blocks: int = 0, size: int = 1
    ) -> Callable[[], None]:
        threads = cudnn_gpu.ROW_THREADS if blocks else cudnn_gpu.THREADS
        grid, given = blocks or -(-items // threads), packed(arguments)

        def run() -> None:
            report = self.device.launch(name, (grid, 1, 1), (threads, 1, 1), given)
            assert not report.findings, (name, report.findings[0].words)

        return run

    def copy_rows(
        self, to: int, to_pitch: int, of: int, of_pitch: int, width: int, rows: int
    ) -> Callable[[], None]:
        def run() -> None:
            for row in range(rows):
                self.bytes(to + row * to_pitch)[:width] = self.bytes(of + row * of_pitch)[:width]

        return run

    def copy(self, to: int, of: int, nbytes: int) -> Callable[[], None]:
        return self.copy_rows(to, nbytes, of, nbytes, nbytes, 1)

    def clear(self, to: int, nbytes: int) -> Callable[[], None]:
        def run() -> None:
            self.bytes(to)[:nbytes] = 0

        return run

    def put(self, work: Callable[[], object]) -> None:
        """While plans are tried nothing lies where they read: nothing is run."""

    def time_ns(self, work: Callable[[], object]) -> float:
        return 1000.0

    def synchronize(self) -> None:
        pass

    def later(self, do: Callable[[], object]) -> None:
        """A library puts this on the stream: nothing waits here."""
        do()


# ------------------------------------------------------------------------------------------------- cuDNN


class Unsupported(RuntimeError):
    """cudnn.cudnnGraphNotSupportedError."""


class Tensor:
    def __init__(self, dim: Sequence[int] = (), stride: Sequence[int] = (), data_type: str = "") -> None:
        self.dim, self.stride, self.type, self.output = tuple(dim), tuple(stride), data_type, False
        self.value: Callable[[Mapping[Tensor, np.ndarray]], np.ndarray] = lambda given: given[self]

    def set_output(self, output: bool) -> Tensor:
        self.output = output
        return self

    def set_data_type(self, data_type: str) -> Tensor:
        self.type = data_type
        return self

    def set_dim(self, dim: Sequence[int]) -> Tensor:
        self.dim = tuple(dim)
        return self

    def set_stride(self, stride: Sequence[int]) -> Tensor:
        self.stride = tuple(stride)
        return self


class Pygraph:
    """cudnn.pygraph: two plans, of which the first asks for too much memory, and what is to be refused."""

    refused: Callable[[Pygraph], bool] = staticmethod(lambda graph: False)

    def __init__(self, memory: Sees, **named: Any) -> None:
        self.memory, self.named, self.calls = memory, named, list[str]()
        self.tensors: list[Tensor] = []

    def tensor(self, name: str, dim: list[int], stride: list[int], data_type: str) -> Tensor:
        self.tensors.append(Tensor(dim, stride, data_type))
        return self.tensors[-1]

    def _made(self, call: str, value: Callable[[Mapping[Tensor, np.ndarray]], np.ndarray]) -> Tensor:
        self.calls.append(call)
        self.tensors.append(Tensor())
        self.tensors[-1].value = value
        return self.tensors[-1]

    def conv_fprop(
        self,
        image: Tensor,
        weight: Tensor,
        pre_padding: list[int],
        post_padding: list[int],
        stride: list[int],
        dilation: list[int],
        compute_data_type: str,
    ) -> Tensor:
        assert self.named["compute_data_type"] == "FLOAT"
        assert compute_data_type == ("INT32" if image.type == "INT8" else "FLOAT")

        def value(given: Mapping[Tensor, np.ndarray]) -> np.ndarray:
            x, w = image.value(given), weight.value(given)
            x = np.pad(x, ((0, 0), (0, 0), *zip(pre_padding, post_padding, strict=True)))
            reach = [(size - 1) * step + 1 for size, step in zip(w.shape[2:], dilation, strict=True)]
            windows = np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
            windows = windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
            groups = x.shape[1] // w.shape[1]
            assert groups * w.shape[1] == x.shape[1], "cuDNN takes the groups from the channels"
            parts = zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
            return np.concatenate([np.einsum("ncijkl,mckl->nmij", a, b) for a, b in parts], 1)

        return self._made("conv", value)

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        return self._made(f"add {b.dim[2:] == (1, 1)}", lambda given: a.value(given) + b.value(given))

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        return self._made("mul", lambda given: a.value(given) * b.value(given))

    def relu(self, a: Tensor, upper_clip: float = np.inf) -> Tensor:
        return self._made("relu", lambda given: np.clip(a.value(given), 0, upper_clip))

    def tanh(self, a: Tensor) -> Tensor:
        return self._made("tanh", lambda given: np.tanh(a.value(given)))

    def sigmoid(self, a: Tensor) -> Tensor:
        return self._made("sigmoid", lambda given: 1 / (1 + np.exp(-a.value(given))))

    def validate(self) -> None:
        self.calls.append("validate")

    def build_operation_graph(self) -> None:
        if Pygraph.refused(self):
            raise Unsupported("No valid engine configs for it")

    def create_execution_plans(self, modes: list[str]) -> None:
        assert modes == ["A", "B", "FALLBACK"]

    def deselect_numeric_notes(self, notes: list[str]) -> None:
        self.calls.append(f"without {' '.join(notes)}")

    def get_execution_plan_count(self) -> int:
        return 4

    def build_plan_at_index(self, index: int) -> None:
        if index == 1:
            raise RuntimeError("CUDNN_STATUS_NOT_SUPPORTED")

    def get_workspace_size_plan_at_index(self, index: int) -> int:
        return cudnn_library.MOST_WORKSPACE + 1 if index == 0 else 100 * index

    def get_plan_name_at_index(self, index: int) -> str:
        return f"eng{index}"

    def execute_plan_at_index(
        self, given: Mapping[Tensor, int], workspace: int, index: int, handle: object
    ) -> None:
        assert handle == "handle"
        assert workspace
        assert index in (2, 3)
        arrays = {tensor: _strided(self.memory, at, tensor) for tensor, at in given.items()}
        (output,) = [tensor for tensor in given if tensor.output]

        def do() -> None:
            real = {of: array.astype(np.float64) for of, array in arrays.items() if of is not output}
            found = output.value(real)
            if output.type == "INT8":
                found = np.clip(np.rint(found), -128, 127)
            arrays[output][...] = found.astype(arrays[output].dtype)

        self.memory.later(do)


def _strided(memory: Sees, at: int, tensor: Tensor) -> np.ndarray:
    reach = 1 + sum((size - 1) * step for size, step in zip(tensor.dim, tensor.stride, strict=True))
    flat = memory.array(at, TYPES[tensor.type], reach)
    steps = [step * flat.itemsize for step in tensor.stride]
    return np.lib.stride_tricks.as_strided(flat, tensor.dim, steps)


def cudnn(memory: Sees) -> Any:
    """The module."""
    names = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "WINOGRAD_TILE_13x13")
    return SimpleNamespace(
        __version__="0",
        backend_version_string=lambda: "9",
        create_handle=lambda: "handle",
        destroy_handle=lambda handle: None,
        set_stream=lambda handle, stream: None,
        pygraph=lambda **named: Pygraph(memory, **named),
        data_type=SimpleNamespace(**{name: name for name in TYPES}),
        heur_mode=SimpleNamespace(A="A", B="B", FALLBACK="FALLBACK"),
        numerical_note=SimpleNamespace(**{name: name for name in names}),
        cudnnGraphNotSupportedError=Unsupported,
    )


# ---------------------------------------------------------------------------------------------- cuBLASLt


class CublasLt:
    """libcublasLt as ctypes gives it: three algorithms are proposed, the first for another GPU. failing:
    those that do not run."""

    failing: tuple[int, ...] = ()

    def __init__(self, memory: Sees) -> None:
        self._memory, self._held = memory, dict[int, Any]()

        def version() -> int:
            return 130000

        self.cublasLtGetVersion = version

    def _new(self, reference: Any, value: Any) -> int:
        reference._obj.value = len(self._held) + 1
        self._held[len(self._held) + 1] = value
        return 0

    def cublasLtCreate(self, handle: Any) -> int:
        return self._new(handle, "handle")

    def cublasLtDestroy(self, handle: Any) -> int:
        assert self._held.pop(handle.value) == "handle"
        assert not self._held, "all that was created is destroyed"
        return 0

    def cublasLtMatmulDescCreate(self, reference: Any, compute: Any, scale: Any) -> int:
        assert scale.value == (10 if compute.value == 72 else 0)
        return self._new(reference, {"compute": compute.value})

    def cublasLtMatrixLayoutCreate(self, reference: Any, kind: Any, rows: Any, columns: Any, ld: Any) -> int:
        assert ld.value >= rows.value
        sizes = {"type": kind.value, "rows": rows.value, "columns": columns.value, "ld": ld.value}
        return self._new(reference, sizes)

    def cublasLtMatmulPreferenceCreate(self, reference: Any) -> int:
        return self._new(reference, {})

    def _set(self, of: Any, attribute: Any, value: Any, size: Any) -> int:
        assert ctypes.sizeof(value._obj) == size.value
        self._held[of.value][attribute.value] = value._obj.value
        return 0

    cublasLtMatmulDescSetAttribute = cublasLtMatrixLayoutSetAttribute = _set
    cublasLtMatmulPreferenceSetAttribute = _set

    def _destroy(self, of: Any) -> int:
        del self._held[of.value]
        return 0

    cublasLtMatmulDescDestroy = cublasLtMatrixLayoutDestroy = cublasLtMatmulPreferenceDestroy = _destroy

    def cublasLtMatmulAlgoGetHeuristic(self, handle: Any, *rest: Any) -> int:
        preference, most, results, count = rest[5:]
        assert self._held[preference.value][1] == cublaslt.WORKSPACE
        assert most.value == len(results)
        for place, state in enumerate((15, 0, 0)):  # CUBLAS_STATUS_NOT_SUPPORTED
            results[place].state, results[place].algorithm[0] = state, 20 + place
        count._obj.value = 3
        return 0

    def cublasLtMatmul(self, handle: Any, *given: Any) -> int:
        (product, alpha, a, first, b, second, beta, c, third, d, fourth, algorithm, workspace, size,
         stream) = given  # fmt: skip
        assert self._held[handle.value] == "handle"
        assert stream.value == self._memory.stream.ptr
        assert (c.value, third.value) == (d.value, fourth.value)
        assert (beta._obj.value, size.value) == (0.0, cublaslt.WORKSPACE)
        assert workspace.value
        assert algorithm._obj[0] in (21, 22), "one that was proposed"
        if algorithm._obj[0] in self.failing:
            return 13  # CUBLAS_STATUS_EXECUTION_FAILED
        asked = self._held[product.value]
        layouts = [self._held[it.value] for it in (first, second, third)]
        kinds = [KINDS[layout["type"]] for layout in layouts]
        assert asked["compute"] in COMPUTES[layouts[0]["type"]]
        assert layouts[0]["type"] == layouts[1]["type"]
        assert layouts[2]["type"] == (10 if layouts[0]["type"] == 3 else layouts[0]["type"])

        def do() -> None:
            for number in range(layouts[2].get(5, 1)):
                places = [
                    self._matrix(it.value, layout, number, kind)
                    for it, layout, kind in zip((a, b, d), layouts, kinds, strict=True)
                ]
                left, right = (
                    (place.T if asked.get(attribute) else place).astype(np.float64)
                    for attribute, place in zip((3, 4), places[:2], strict=True)
                )
                y = alpha._obj.value * (left @ right)
                epilogue = asked.get(7, 0)
                if epilogue & 4:
                    y = y + self._memory.array(asked[8], kinds[2], len(y)).astype(np.float64)[:, None]
                places[2][...] = (np.maximum(y, 0) if epilogue & 2 else y).astype(kinds[2])

        self._memory.later(do)
        return 0

    def _matrix(self, at: int, layout: Mapping[Any, int], number: int, kind: Any) -> np.ndarray:
        """Column by column, as BLAS has it."""
        rows, columns, ld = layout["rows"], layout["columns"], layout["ld"]
        at += number * layout.get(6, 0) * np.dtype(kind).itemsize
        flat = self._memory.array(at, kind, ld * (columns - 1) + rows)
        return np.lib.stride_tricks.as_strided(flat, (rows, columns), (flat.itemsize, ld * flat.itemsize))
