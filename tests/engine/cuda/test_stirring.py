"""What changes before a timed pass on the device: as numpy has it, bit for bit, and seen by every session."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine import backends
from engine.backend import Options, Queued, Witnessed
from engine.cuda import stirring as cuda_stirring
from engine.cuda.runtime import Staging, import_cupy
from engine.cuda.stirring import RING, CudaStirring, CudaTensor, refusal
from engine.rung_devices import prepare
from engine.stirring import LOOKED_AT, POISONED
from kernels import nvrtc, registry
from kernels.ops.cast import Cast
from kernels.ops.gemm import Gemm
from kernels.ops.unary import Unary
from tests.engine.backends.nets import small_net
from tests.engine.harness import run_ort
from tests.standin.device import Device, Work
from tests.standin.modules import nvrtc as compiler
from tests.standin.modules.cupy import Cupy
from tests.standin.settings import Settings

INPUTS = {
    "a": np.random.default_rng(0).standard_normal((5, 3, 7)).astype(np.float32),
    "b": np.random.default_rng(1).standard_normal((40, 11)).astype(np.float16),
    "c": np.random.default_rng(2).integers(0, 90, (300,)),
    "d": np.zeros((3, 4), np.bool_),
    "e": np.full((6000, 2), 7, np.int32),
}
OUTPUTS = {"y": ((64, 33), np.dtype(np.float32)), "z": ((9,), np.dtype(np.float16))}


class OnDevice:
    """Inputs and outputs on a device, stirred."""

    def __init__(self, cupy: Any) -> None:
        self.cupy, self.stream, pool = cupy, cupy.cuda.Stream(non_blocking=True), cupy.cuda.MemoryPool()
        self.staging = Staging(cupy, self.stream, 1 << 20)
        self._memory = {}
        places: dict[str, CudaTensor] = {}
        shapes = {name: (array.shape, array.dtype) for name, array in INPUTS.items()} | OUTPUTS
        for name, (shape, dtype) in shapes.items():
            nbytes = int(np.prod(shape)) * dtype.itemsize
            self._memory[name] = pool.malloc(nbytes)
            self._memory[name].memset_async(0, nbytes, self.stream)
            places[name] = CudaTensor(int(self._memory[name].ptr), shape, dtype)
        self.places = places
        for name, array in INPUTS.items():
            self.staging.upload(array, places[name].pointer)
        inputs, outputs = ({name: places[name] for name in of} for of in (INPUTS, OUTPUTS))
        self.stirring = CudaStirring(cupy, pool, inputs, outputs)
        self.stirring.begin(INPUTS, self.staging)
        self.stream.synchronize()

    def __getitem__(self, name: str) -> np.ndarray:
        found = np.empty(self.places[name].shape, self.places[name].dtype)
        self.staging.download(self.places[name].pointer, found)
        return found

    def write(self, name: str, array: np.ndarray) -> None:
        self.staging.upload(array, self.places[name].pointer)
        self.stream.synchronize()

    def put(self, work: Any) -> None:
        with self.stream:
            work()
        self.stream.synchronize()


def check(on: OnDevice, passes: int) -> None:
    """Passes that write their number into the outputs but at one place in three."""
    made = on.stirring.stirring
    assert made is not None
    left: list[dict[str, np.ndarray]] = []
    on.stirring.took(passes)
    for number in range(passes):
        on.put(on.stirring.stir)
        for name, expected in made.inputs_of(number).items():
            assert on[name].tobytes() == expected.tobytes(), (name, number)
        seen = {}
        for name, tensor in made.outputs.items():
            held = on[name].reshape(-1)
            poisoned = made.places(tensor, number, POISONED)
            assert np.isnan(held[poisoned]).all()
            others = np.setdiff1d(np.arange(tensor.size), poisoned)
            if number == 0:
                assert not held[others].any()
            held[np.arange(tensor.size) % 3 > 0] = number + 1
            on.write(name, held)
            seen[name] = held.copy()
        left.append(seen)
    on.put(on.stirring.settle)
    for name, array in INPUTS.items():
        assert on[name].tobytes() == array.tobytes(), "what was bound lies there again"
    found = on.stirring.witnesses(on.staging)
    numbers = [witness.number for witness in found]
    assert numbers == sorted({*numbers})
    assert numbers[0] == 0
    assert RING <= len(numbers) <= RING + 1
    assert on.stirring.witnesses(on.staging) == ()
    for witness in found:
        for name, tensor in made.outputs.items():
            places, values = witness.outputs[name]
            both = [made.places(tensor, witness.number, purpose) for purpose in (LOOKED_AT, POISONED)]
            assert np.array_equal(places, np.unique(both))
            assert values.tobytes() == left[witness.number][name][places].tobytes()


def test_each_timed_pass_has_the_same_chance_to_be_looked_at() -> None:
    """Also the second and those in the middle of a long train, and of a train before the last."""
    made, seen = CudaStirring.__new__(CudaStirring), np.zeros(300, int)
    for seed in range(600):
        made.stirring, made._timed = SimpleNamespace(seed=seed << 32), range(1000, 1300)  # type: ignore[assignment]
        kept = made._kept()
        assert len({place for _, place in kept}) == len(kept) == RING
        seen[[number - 1000 for number, _ in kept]] += 1
    expected = 600 * RING / 300
    assert np.abs(seen - expected).max() < 6 * np.sqrt(expected)


def test_what_the_stand_in_changes_is_what_can_be_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = cuda_stirring.source()
    _, program = compiler.nvrtcCreateProgram(source.source.encode(), source.path.name.encode())
    flags = [b"-arch=sm_90", f"-I{source.path.parent}".encode(), f"-DRING={RING}".encode()]
    compiler.nvrtcCompileProgram(program, len(flags), flags)
    (tmp_path / "it").write_bytes(program.cubin)
    monkeypatch.setattr(nvrtc, "compile_rung", lambda *_: tmp_path / "it")
    check(OnDevice(Cupy(Device(Settings()))), 3 * RING)


# CUDA's words for a compiler of the host. Threads run one after another, the first of a block last: it is the
# one that goes on when all have passed the barrier.
HOST = """
struct Three { unsigned x = 0, y = 0, z = 0; };
static Three blockIdx, blockDim, threadIdx, gridDim;
#define __device__
#define __forceinline__ inline
#define __global__
static void __syncthreads() {}
static void __threadfence() {}
static unsigned long long atomicAdd(unsigned long long* at, unsigned long long by) {
    const unsigned long long was = *at;
    *at += by;
    return was;
}
#include "stirring.cu"
extern "C" void launch(unsigned x, unsigned y, unsigned threads, void* state, void* tensors, u64 mask, int going_on) {
    gridDim.x = x, gridDim.y = y, blockDim.x = threads;
    for (blockIdx.y = 0; blockIdx.y < y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < x; ++blockIdx.x)
            for (unsigned i = threads; i-- > 0;) {
                threadIdx.x = i;
                stir((State*)state, (const Tensor*)tensors, mask, going_on);
            }
}
"""  # noqa: E501


@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler for the host")
def test_the_kernels_own_text_changes_what_can_be_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "host.cpp").write_text(HOST)
    folder = cuda_stirring.source().path.parent
    library = tmp_path / "host.so"
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-x", "c++", f"-I{folder}", f"-DRING={RING}"]
    subprocess.run(["g++", *flags, str(tmp_path / "host.cpp"), "-o", str(library)], check=True)
    launch = ctypes.CDLL(str(library)).launch

    def stir(grid: tuple[int, int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
        state, tensors, mask, going_on = (int(value) for value in arguments)
        pointers = (ctypes.c_void_p(state), ctypes.c_void_p(tensors), ctypes.c_uint64(mask))

        def do() -> None:
            launch(*grid, *block, *pointers, going_on)

        cupy.device.current.put(Work(do))

    cupy = Cupy(Device(Settings()))
    module = SimpleNamespace(get_function=lambda name: stir)
    monkeypatch.setattr(cupy, "RawModule", lambda path: module)
    monkeypatch.setattr(nvrtc, "compile_rung", lambda *_: library)
    check(OnDevice(cupy), 3 * RING)


@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_kernel_compiles_and_spills_nothing(arch: str) -> None:
    used = nvrtc.resources(nvrtc.compile_rung(cuda_stirring.source(), arch), "stir")
    assert used is not None
    assert used.spill_nbytes == used.stack_nbytes == 0


@pytest.mark.gpu
def test_what_the_device_changes_is_what_can_be_rebuilt() -> None:
    if reason := backends.get("engine-cuda").unavailable():
        pytest.skip(reason)
    check(OnDevice(import_cupy()), 3 * RING)


@pytest.mark.gpu
@pytest.mark.parametrize("graph", [True, False])
@pytest.mark.parametrize("backend", ["engine-cuda", "ort-cuda"])
def test_every_timed_pass_of_a_model_answers_what_it_was_given(backend: str, graph: bool) -> None:
    if reason := backends.get(backend).unavailable():
        pytest.skip(reason)
    model = small_net()
    session = backends.get(backend).prepare(model, 2, "fp32", Options(tuned=False, cuda_graph=graph))
    assert isinstance(session, Witnessed)
    for seed in range(2):
        drawn = np.random.default_rng(seed).standard_normal((2, 3, 12, 12)).astype(np.float32)
        session.bind({"x": drawn})
        assert session.stirring is None
        assert session.witnesses() == ()
        session.run()
        before = session.fetch()
        witnessed(session, partial(run_ort, model))
        session.run()
        for name, array in session.fetch().items():
            np.testing.assert_array_equal(array, before[name], "the bound inputs lie there again")
    if isinstance(session, Queued):
        assert session.time_queued(20) > 0
        assert len(session.witnesses()) == 21
    print(f"{backend}: stirring takes {session.stirring_ns:.0f} ns a pass")
    session.close()


@pytest.mark.gpu
@pytest.mark.parametrize(
    "params", [Gemm(5, 7, 30, trans_b=True), Cast(5000, "int64", "float16"), Unary("relu", 70_000)],
    ids=lambda params: params.op,
)  # fmt: skip
def test_every_timed_pass_of_a_rung_answers_what_it_was_given(params: Any) -> None:
    if reason := backends.get("engine-cuda").unavailable():
        pytest.skip(reason)
    rung = registry.default("cuda", params)
    dtype = np.dtype(getattr(params, "dtype", "float32"))
    given = [
        (np.random.default_rng(i).standard_normal(shape) * 9).astype(dtype)
        for i, shape in enumerate(params.input_shapes)
    ]
    session = prepare(rung, params, given)
    assert isinstance(session, Witnessed)

    def answer(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        now = [inputs.get(f"input {i}", array) for i, array in enumerate(given)]
        if params.op == "gemm":
            return {"output": now[0].astype(np.float64) @ now[1].astype(np.float64).swapaxes(1, 2)}
        return {"output": np.maximum(now[0], 0) if params.op == "unary" else now[0].astype(params.to)}

    witnessed(session, answer)
    assert session.strays() == ()
    session.bind({f"input {i}": given[i] for i in params.data_inputs})
    assert session.stirring is None
    witnessed(session, answer)
    session.close()


def test_a_pass_is_never_said_to_take_nothing() -> None:
    made = CudaStirring.__new__(CudaStirring)
    made.cost_ns = 5_000.0
    assert made.own_ns(60_000, 10) == 10_000
    assert made.own_ns(40_000, 10) == 2_000
    assert made.own_ns(40_000, 10, 0.0) == 40_000
    assert made.own_ns(0, 10) > 0


def test_a_type_of_no_known_values_is_not_stirred() -> None:
    assert refusal({"x": CudaTensor(0, (3,), np.dtype(np.complex64))}) is not None
    assert refusal({"x": CudaTensor(0, (3,), np.dtype(np.float16))}) is None


def witnessed(session: Any, answer: Any) -> None:
    """Of trains of a session every pass left the answer to what it was given."""
    for count, cold in ((1, False), (5, False), (1, True), (70, False)):
        assert session.time_runs(count, cold) > 0
        found = session.witnesses()
        assert found[0].number == 0
        assert len(found) - min(count, RING) in (0, 1)
        for witness in (found[0], found[1 % len(found)], found[-1]):
            expected = answer(session.stirring.inputs_of(witness.number))
            for name, (places, values) in witness.outputs.items():
                flat = expected[name].reshape(-1)[places]
                # A value near zero is a sum of large ones: what they round by is its error, too.
                np.testing.assert_allclose(values, flat, rtol=1e-3, atol=1e-5 + 1e-6 * np.abs(flat).max())
    assert session.stirring_ns > 0
