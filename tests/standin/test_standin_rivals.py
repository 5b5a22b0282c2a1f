"""What sessions on a GPU share, ours and their rivals': nobody does it in a way of its own; and PyTorch's
session over the stand-in GPU, with as much of PyTorch as it asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.cuda.session import EngineCudaSession
from engine.cuda.trains import DeviceSession
from engine.ort.cuda_session import OrtCudaSession
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


@pytest.mark.parametrize("kind", [EngineCudaSession, OrtCudaSession, TorchCudaSession])
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
