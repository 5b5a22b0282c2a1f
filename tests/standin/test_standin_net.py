"""The stand-in answers a net in one kernel from what the kernel is told and given, teams of blocks too."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from engine.cuda.replays.one_kernel import WRONG
from kernels.net.layers import layers
from kernels.net.plan import room
from kernels.net.records import Way
from kernels.net.text import one_kernel
from kernels.ops import Params
from kernels.precision import PRECISIONS
from tests.kernels import nets
from tests.standin.conftest import Machine
from tests.standin.device import Device
from tests.standin.modules.cupy import Cupy
from tests.standin.settings import Settings
from tests.standin.test_standin_device import compiled

WAYS = [
    Way(1, 1, 96), Way(4, 1, 64), Way(1, 8, 64), Way(3, 4, 64), Way(1, 8, 64, tensor=True),
    Way(3, 16, 64, tensor=True), Way(2, 8, 64, tensor=True, half="float16"),
    Way(1, 8, 64, tensor=True, half="bfloat16"),
    Way(8, 1, 128, sent=True), Way(1, 1, 256, tensor=True), Way(1, 8, 128, 1, 8, beside=2),
]  # fmt: skip


@pytest.mark.parametrize("make", nets.EVERY, ids=lambda made: made.__name__)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.words)
def test_it_gives_the_right_answer(make: Callable[[int], Sequence[Params]], way: Way, tmp_path: Path) -> None:
    batch = 3
    case = nets.drawn(make(batch))
    found = layers(case.steps, batch)
    lies = room(found, way, 227 << 10)
    assert lies is not None
    kernel = one_kernel(found, way, lies, batch, multiprocessors=132)
    (tmp_path / "net.cubin").write_bytes(compiled(kernel.rung(), **kernel.defines).to_bytes())
    cupy = Cupy(Device(Settings(memory_mib=64)))
    function = cupy.RawModule(path=str(tmp_path / "net.cubin")).get_function("net")
    function.max_dynamic_shared_size_bytes = lies.nbytes
    x, weights = cupy.asarray(case.x), cupy.asarray(kernel.packed(case.weights))
    y = cupy.full(case.expected.size, np.nan, np.float32)
    ends = [np.uint64(array.data.ptr) for array in (x, weights, y)]
    function(kernel.stage.grid, kernel.stage.block, (*ends, np.int32(batch)), shared_mem=lies.nbytes)
    error = cupy.asnumpy(y) - case.expected.reshape(-1)
    of = {"": "tf32" if way.tensor else "fp32", "float16": "tf32", "bfloat16": "bf16"}
    bound = PRECISIONS[of[way.half]].bound
    assert np.linalg.norm(error) <= bound * np.linalg.norm(case.expected)


def test_its_clock_stamps_are_there_in_the_build_for_them_alone(tmp_path: Path) -> None:
    case = nets.drawn(nets.EVERY[0](3))
    found = layers(case.steps, 3)
    way = Way(1, 1, 96)
    lies = room(found, way, 227 << 10)
    assert lies is not None
    kernel = one_kernel(found, way, lies, 3, multiprocessors=132)
    plain, stamped = (compiled(kernel.rung(), **told) for told in (kernel.defines, kernel.stamped()))
    assert "stamps" not in plain.constants
    (tmp_path / "net.cubin").write_bytes(stamped.to_bytes())
    cupy = Cupy(Device(Settings(memory_mib=64)))
    module = cupy.RawModule(path=str(tmp_path / "net.cubin"))
    function = module.get_function("net")
    function.max_dynamic_shared_size_bytes = lies.nbytes
    arrays = (cupy.asarray(case.x), cupy.asarray(kernel.packed(case.weights)))
    y = cupy.full(case.expected.size, np.nan, np.float32)
    ends = [np.uint64(array.data.ptr) for array in (*arrays, y)]
    function(kernel.stage.grid, kernel.stage.block, (*ends, np.int32(3)), shared_mem=lies.nbytes)
    cupy.asnumpy(y)
    held = module.get_global("stamps")
    blocks, width = kernel.stamps_shape
    assert (blocks, width) == (kernel.stage.grid[0], len(found) + 3)
    rows = np.frombuffer(ctypes.string_at(int(held.ptr), 8 * blocks * width), np.int64).reshape(blocks, width)
    assert (rows[:, :-2] > 0).all()
    assert (rows[:, -1] > rows[:, -2]).all()


# A kernel for all that does nothing at all: what it is to write the kernels one by one have written before.
IDLE = """
from dataclasses import replace
from engine.backend import Options
from engine.backends.engine_cuda import BACKEND
from engine.cuda.replays.one_kernel import Trial
from tests.engine.planning.test_runs import net

loaded = Trial._loaded
Trial._loaded = lambda self, *how: replace(loaded(self, *how), start=lambda: None)
for options in (Options(anyway=True), Options()):
    session = BACKEND.prepare(net(), 3, "fp32", options)
    print(session.facts["one_kernel"])
    session.close()
"""


def test_a_kernel_that_writes_nothing_is_not_taken_for_a_fast_one(machine: Machine) -> None:
    out, _ = machine.python("-c", IDLE)
    assert out.splitlines() == [f"no: {WRONG}"] * 2, "now, and by what is kept of it"
