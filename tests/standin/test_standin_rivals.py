"""What sessions on a GPU share, ours and their rivals': nobody does it in a way of its own; and the sessions
of PyTorch and of cuDNN's graphs over the stand-in GPU, with as much of these libraries as they ask for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.cuda.session import EngineCudaSession
from engine.cuda.trains import DeviceSession
from engine.ort.cuda_session import OrtCudaSession
from engine.rivals.cudnn_cuda import CudnnGraphSession
from engine.rivals.tensorrt_cuda import TensorRtSession
from engine.rivals.torch_cuda import TorchCudaSession
from tests.standin.conftest import Machine

# A net of one Identity, each pass of which is launched by the host.
SCRIPT = """
import contextlib, json
from types import SimpleNamespace
import numpy as np
from onnx import helper
from engine.cuda.runtime import import_cupy
from engine.graph.importer import from_proto
from engine.options import Options
from engine.rivals import torch_cuda, torch_here
from kernels.errors import KernelError
from tests.engine.harness import make_model

cupy = import_cupy()
pool = cupy.cuda.MemoryPool()

class Tensor:
    def __init__(self, array):
        self.shape, self.dtype, self.nbytes = array.shape, f"torch.{array.dtype}", array.nbytes
        self._memory = pool.malloc(array.nbytes)
    def data_ptr(self): return int(self._memory.ptr)
    def cuda(self): return self
    def contiguous(self): return self
    def copy_(self, of):
        stream = torch.now
        cupy.cuda.runtime.memcpyAsync(self.data_ptr(), of.data_ptr(), self.nbytes, 3, stream)

torch = SimpleNamespace(
    __version__="0", now=0, from_numpy=Tensor, inference_mode=contextlib.nullcontext,
    zeros_like=lambda it: Tensor(np.zeros(it.shape, np.float32)),
    backends=SimpleNamespace(
        cudnn=SimpleNamespace(version=lambda: 0), cuda=SimpleNamespace(matmul=SimpleNamespace())
    ),
    cuda=SimpleNamespace(
        is_available=lambda: True, mem_get_info=lambda: (1 << 30, 1 << 30), synchronize=lambda: None,
        ExternalStream=lambda ptr: ptr, set_stream=lambda ptr: setattr(torch, "now", ptr),
        default_stream=lambda: 0, empty_cache=lambda: None,
    ),
)
torch_here.imported = lambda: torch
torch_here.net = lambda *_: SimpleNamespace(cuda=lambda: SimpleNamespace(buffers=list))
torch_here.compiled = lambda torch, net, how: lambda *tensors: tensors

proto = make_model([helper.make_node("Identity", ["x"], ["y"], "same")], {"x": ("N", 6)}, ["y"], {})
session = torch_cuda.TorchCudaSession(
    from_proto(proto, "same"), 4, "fp32", Options(), torch_here.EAGER, False
)
x = np.arange(24, dtype=np.float32).reshape(4, 6)
session.bind({"x": x})
x[:] = 0  # what was bound stays as it was
session.run()
session.synchronize()
told = {"fetched": session.fetch()["y"].tolist(), "unstirred": session.stirring is None}
told["times"] = [session.time_runs(3) > 0, session.time_runs(1, cold=True) > 0, session.time_queued(2) > 0]
kept = session.witnesses()
told["right"] = [
    bool((values == session.stirring.inputs_of(one.number)["x"].reshape(-1)[places]).all())
    for one in kept for places, values in one.outputs.values()
]
told["shapes"] = [session.inputs["x"][0], session.outputs["y"][0]]
try:
    session._start = lambda: 1 / 0
    session.run()
except KernelError as error:
    told["words"] = str(error)
session.close()
try:
    session.fetch()
except RuntimeError as error:
    told["closed"] = str(error)
print(json.dumps(told))
"""

# Conv + Relu and Gemm, in float32: no kernel of its own, which the stand-in GPU would not run.
CUDNN = """
import ctypes, json
from types import SimpleNamespace
import numpy as np
from onnx import helper
from engine.cuda.runtime import import_cupy
from engine.graph.importer import from_proto
from engine.options import Options
from engine.rivals import cublaslt, cudnn_cuda, cudnn_library
from kernels.errors import KernelError, UnsupportedError
from tests.engine.harness import make_model, random
from tests.engine.rivals import nvidia
from tests.standin.device import Work

cupy = import_cupy()

class Memory:
    @property
    def stream(self): return cupy.cuda.get_current_stream()
    def array(self, at, dtype, count):
        nbytes = count * np.dtype(dtype).itemsize
        return np.frombuffer((ctypes.c_char * nbytes).from_address(at), dtype)
    def later(self, do): self.stream.it.put(Work(do))

memory = Memory()
cudnn_library.imported = lambda: nvidia.cudnn(memory)
cublaslt.loaded = lambda: nvidia.CublasLt(memory)
nvidia.CublasLt.failing = (21,)
w, f = random((4, 2, 3, 3), 1), random((3, 4 * 3 * 4), 2)
nodes = [
    helper.make_node("Conv", ["x", "w"], ["c"], "conv1"), helper.make_node("Relu", ["c"], ["r"], "relu1"),
    helper.make_node("Flatten", ["r"], ["f"], "flat"),
    helper.make_node("Gemm", ["f", "b"], ["y"], "fc", transB=1),
]
graph = from_proto(make_model(nodes, {"x": ("N", 2, 5, 6)}, ["y"], {"w": w, "b": f}), "net")
session = cudnn_cuda.CudnnGraphSession(graph, 3, "fp32", Options())

def right(x):
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    return np.maximum(np.einsum("ncijkl,mckl->nmij", windows, w), 0).reshape(len(x), -1) @ f.T

x = random((3, 2, 5, 6), 3)
session.bind({"x": x})
bound = x.copy()
x[:] = 0  # what was bound stays as it was
session.run()
session.synchronize()
told = {"error": float(np.abs(session.fetch()["y"] - right(bound)).max()), "facts": dict(session.facts)}
told["times"] = [session.time_runs(3) > 0, session.time_runs(1, cold=True) > 0, session.time_queued(2) > 0]
told["right"] = []
for one in session.witnesses():
    all_of_it = right(session.stirring.inputs_of(one.number)["x"]).reshape(-1)
    seen = one.outputs.values()
    told["right"] += [bool(np.allclose(values, all_of_it[at], 1e-4, 1e-4)) for at, values in seen]
told["memory"] = dict(session.memory)
session.close()
session.close()
try:
    session.fetch()
except RuntimeError as error:
    told["closed"] = str(error)
nvidia.Pygraph.refused = staticmethod(lambda graph: True)
try:
    cudnn_cuda.CudnnGraphSession(graph, 3, "fp16", Options())
except UnsupportedError as error:
    told["refused"] = str(error)

class Broken(nvidia.Pygraph):
    def execute_plan_at_index(self, *given): raise RuntimeError("CUDNN_STATUS_EXECUTION_FAILED")

broken = nvidia.cudnn(memory)
broken.pygraph = lambda **named: Broken(memory, **named)
cudnn_library.imported = lambda: broken
nvidia.Pygraph.refused = staticmethod(lambda graph: False)
try:
    cudnn_cuda.CudnnGraphSession(graph, 3, "fp32", Options())
except KernelError as error:
    told["broken"] = str(error)
print(json.dumps(told))
"""

# Of the model that its parser is given, answered by ONNX's reference.
TENSORRT = """
import ctypes, json
from types import SimpleNamespace
import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator
from engine.cuda.runtime import import_cupy
from engine.graph.importer import from_proto
from engine.options import Options
from engine.rivals import tensorrt_cuda
from kernels.errors import UnsupportedError
from tests.engine.harness import make_model, random
from tests.standin.device import Work

cupy, told = import_cupy(), {}

class Network:
    def __init__(self, flags):
        assert flags == 1 << 3
    num_inputs = property(lambda self: len(self.inputs))
    def get_input(self, index): return self.inputs[index]

class Parser:
    num_errors = 1
    def __init__(self, network, logger): self.network = network
    def parse(self, content):
        self.network.model = onnx.load_from_string(content)
        self.network.inputs = [SimpleNamespace(name=it.name) for it in self.network.model.graph.input]
        return all(node.op_type != "Sin" for node in self.network.model.graph.node)
    def get_error(self, index): return SimpleNamespace(desc=lambda: "no Sin here")

class Config:
    def set_memory_pool_limit(self, kind, nbytes): pass
    def set_flag(self, flag): told["tf32"] = True
    def clear_flag(self, flag): told["tf32"] = False

class Engine:
    def __init__(self, network):
        self.network, graph = network, network.model.graph
        self.names = [it.name for it in (*graph.output, *graph.input)]
    num_io_tensors = property(lambda self: len(self.names))
    def get_tensor_name(self, index): return self.names[index]
    def get_tensor_mode(self, name): return "in" if name == "x" else "out"
    def get_tensor_dtype(self, name): return "float"
    def get_tensor_shape(self, name): return self.network.inputs[0].shape if name == "x" else (3, 4)
    def create_execution_context(self): return Context(self)

class Context:
    def __init__(self, engine): self.engine, self.places = engine, {}
    def set_tensor_address(self, name, at):
        self.places[name] = at
        return True
    def execute_async_v3(self, stream):
        current = cupy.cuda.get_current_stream()
        assert stream == current.ptr
        def at(name):
            shape = self.engine.get_tensor_shape(name)
            memory = (ctypes.c_char * (4 * int(np.prod(shape)))).from_address(self.places[name])
            return np.frombuffer(memory, np.float32).reshape(shape)
        def do(): at("y")[...] = ReferenceEvaluator(self.engine.network.model).run(None, {"x": at("x")})[0]
        current.it.put(Work(do))
        return True

class Logger:
    ERROR = 1
    def __init__(self, level): pass

trt = SimpleNamespace(
    __version__="11", Logger=Logger, OnnxParser=Parser, nptype=lambda kind: np.float32,
    Builder=lambda logger: SimpleNamespace(
        create_network=Network, create_builder_config=Config,
        build_serialized_network=lambda network, config: network,
    ),
    NetworkDefinitionCreationFlag=SimpleNamespace(STRONGLY_TYPED=3),
    MemoryPoolType=SimpleNamespace(WORKSPACE=0), BuilderFlag=SimpleNamespace(TF32=7),
    Runtime=lambda logger: SimpleNamespace(deserialize_cuda_engine=Engine),
    TensorIOMode=SimpleNamespace(INPUT="in"),
)
tensorrt_cuda.imported = lambda: trt
w = random((6, 4), 1)

def net(op):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], "fc"), helper.make_node(op, ["a"], ["y"], "last")]
    return from_proto(make_model(nodes, {"x": ("N", 6)}, ["y"], {"w": w}), "net")

x = random((3, 6), 2)
for precision, bound in (("fp32", 1e-6), ("fp16", 1e-2), ("tf32", 1e-6)):
    session = tensorrt_cuda.TensorRtSession(net("Relu"), 3, precision, Options())
    session.bind({"x": x})
    session.run()
    session.synchronize()
    told[precision] = bool(np.abs(session.fetch()["y"] - np.maximum(x @ w, 0)).max() < bound)
    told[f"facts {precision}"] = dict(session.facts)
    told[f"flag {precision}"] = told["tf32"]
    told["times"] = session.time_runs(3) > 0
    told["witnesses"] = len(session.witnesses())
    session.close()
try:
    tensorrt_cuda.TensorRtSession(net("Sin"), 3, "fp32", Options())
except UnsupportedError as error:
    told["refused"] = str(error)
print(json.dumps(told))
"""


@pytest.mark.parametrize(
    "kind", [EngineCudaSession, OrtCudaSession, TorchCudaSession, CudnnGraphSession, TensorRtSession]
)
def test_no_contender_is_bound_timed_or_looked_at_in_a_way_of_its_own(kind: type[Any]) -> None:
    assert issubclass(kind, DeviceSession)
    shared = {name for name in vars(DeviceSession) if not name.startswith("_")}
    assert {"bind", "run", "fetch", "time_runs", "stirring", "stirring_ns", "witnesses"} <= shared
    between = kind.__mro__[: kind.__mro__.index(DeviceSession)]
    assert not [name for it in between for name in vars(it) if name in shared]


def test_pytorch_is_asked_as_the_others_are(machine: Machine) -> None:
    out, _ = machine.python("-c", SCRIPT)
    told = json.loads(out.splitlines()[-1])
    assert told["fetched"] == [[6.0 * row + column for column in range(6)] for row in range(4)]
    assert told["unstirred"], "nothing is changed before a pass is timed"
    assert told["times"] == [True, True, True]
    assert told["right"]
    assert all(told["right"])
    assert told["shapes"] == [[4, 6], [4, 6]]
    assert "PyTorch" in told["words"]
    assert "closed" in told["closed"]


def test_cudnn_s_graphs_are_asked_as_the_others_are(machine: Machine) -> None:
    out, _ = machine.python("-c", CUDNN)
    told = json.loads(out.splitlines()[-1])
    assert told["error"] < 1e-4
    assert told["times"] == [True, True, True]
    assert told["right"]
    assert all(told["right"])
    facts = told["facts"]
    assert facts["cuda_graph"] == "yes"
    assert (facts["tf32"], facts["layout"]) == ("no", "as ONNX has it")
    assert "conv1: eng" in facts["plans"], "which plan was chosen"
    assert "fc: cuBLASLt algorithm 22, the fastest of 1" in facts["plans"]
    assert told["memory"]["weights"] == 4 * (4 * 2 * 9 + 4 + 3 * 48)
    assert "closed" in told["closed"]
    assert told["refused"].startswith("node 'conv1' (Conv): cuDNN has no engine for")
    assert "CUDNN_STATUS_EXECUTION_FAILED" in told["broken"]


def test_tensorrt_is_asked_as_the_others_are(machine: Machine) -> None:
    out, _ = machine.python("-c", TENSORRT)
    told = json.loads(out.splitlines()[-1])
    assert [told[precision] for precision in ("fp32", "fp16", "tf32")] == [True] * 3
    assert [told[f"flag {precision}"] for precision in ("fp32", "fp16", "tf32")] == [False, False, True]
    assert told["facts tf32"]["tf32"] == "yes"
    assert told["facts fp32"]["cuda_graph"] == "yes"
    assert told["times"]
    assert told["witnesses"]
    assert told["refused"] == "TensorRT does not read net: no Sin here"
