"""The stand-in itself: its limits are CUDA's, and what it answers comes from a launch's own arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.cuda.copies import MEMORIES, LayerCopies, Memory
from engine.cuda.replays.overlap import overlapping
from kernels import arguments as kernel_arguments
from kernels import launch, registry
from kernels.launch import Stage
from kernels.ops import OPS, Params
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.ops.gemm import Gemm
from kernels.ops.pool import Pool
from kernels.ops.unary import Unary
from kernels.registry import Rung
from tests.kernels import cuda_cases, lying
from tests.standin import answers, arguments, unpacking
from tests.standin.code import Module
from tests.standin.device import Device
from tests.standin.errors import CudaError, OutOfMemoryError
from tests.standin.memory import Block, fill
from tests.standin.modules import driver
from tests.standin.modules import nvrtc as compiler
from tests.standin.modules.cupy import Cupy
from tests.standin.settings import Settings

RELU = registry.find("cuda", "unary", "naive")
CONV = Conv(3, 4, 9, 8, 6, 3, 3, 9, 8, 1, 1, 1, 1, 1, 1, group=2, bias=True)
PACKED: tuple[Params, ...] = (
    CONV,
    Gemm(5, 37, 70, trans_b=True, bias=True),
    Gemm(20, 33, 61),
    ConvPool(CONV, Pool("max", 3, 6, 9, 8, 3, 2, 3, 4, 3, 2)),
)


def compiled(rung: Rung, arch: str = "sm_90", **defines: Any) -> Module:
    """What the stand-in compiler makes of a rung."""
    flags = [f"-arch={arch}", f"-I{rung.path.parent}", f"-I{registry.ROOT / 'cuda'}"]
    flags += [f"-D{name}={value}" for name, value in {**rung.defines, **defines}.items()]
    given = [kernel_arguments.preamble(rung).encode()], [kernel_arguments.FILE.encode()]
    flags.append(f"--pre-include={kernel_arguments.FILE}")
    _, program = compiler.nvrtcCreateProgram(rung.source.encode(), rung.path.name.encode(), 1, *given)
    (result,) = compiler.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
    if result != compiler.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(program.log.decode())
    return Module.from_bytes(program.cubin)


@pytest.fixture
def cupy() -> Cupy:
    return Cupy(Device(Settings(memory_mib=64)))


@pytest.fixture
def load(tmp_path: Path, cupy: Cupy) -> Callable[..., Any]:
    """A rung's kernel on the device."""

    def get(rung: Rung, name: str = "", **options: Any) -> Any:
        path = tmp_path / f"{rung.name}-{options.get('arch', '')}.cubin"
        path.write_bytes(compiled(rung, **options).to_bytes())
        return cupy.RawModule(path=str(path)).get_function(name or rung.op)

    return get


def relu(x: int, y: int, size: int) -> tuple[Any, ...]:
    told = Unary("relu", size).scalars()
    return (np.uint64(x), np.uint64(y), kernel_arguments.packed("unary", told))


def test_nothing_is_done_before_somebody_waits(cupy: Cupy, load) -> None:
    x, y = cupy.asarray(np.float32([-1, 2, -3])), cupy.full(3, np.nan, np.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        load(RELU)((1,), (32,), relu(x.data.ptr, y.data.ptr, 3))
    assert np.isnan(y.values).all()
    stream.synchronize()
    assert y.values.tolist() == [0, 2, 0]


def test_a_graph_does_it_all_again(cupy: Cupy, load) -> None:
    x, y = cupy.asarray(np.float32([1, -1])), cupy.full(2, np.nan, np.float32)
    stream, kernel = cupy.cuda.Stream(), load(RELU)
    with stream:
        stream.begin_capture()
        kernel((1,), (32,), relu(x.data.ptr, y.data.ptr, 2))
        with pytest.raises(CudaError, match="capturing"):
            stream.synchronize()
        graph = stream.end_capture()
    stream.synchronize()
    assert np.isnan(y.values).all(), "what is captured is not done"
    for value in (3.0, 5.0):
        x[:1] = value
        graph.launch(stream)
        stream.synchronize()
        assert y.values.tolist() == [value, 0]
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record(stream)
    graph.launch(stream)
    stop.record(stream)
    with pytest.raises(CudaError, match="not ready"):
        cupy.cuda.get_elapsed_time(start, stop)
    stop.synchronize()
    assert cupy.cuda.get_elapsed_time(start, stop) > 0


@pytest.mark.parametrize(
    ("grid", "block", "shared_nbytes"),
    [
        ((0, 1, 1), (32, 1, 1), 0),
        ((2**31, 1, 1), (32, 1, 1), 0),
        ((1, 65536, 1), (32, 1, 1), 0),
        ((1, 1, 65536), (32, 1, 1), 0),
        ((1, 1, 1), (1025, 1, 1), 0),
        ((1, 1, 1), (32, 33, 1), 0),
        ((1, 1, 1), (1, 1, 65), 0),
        ((1, 1, 1), (32, 1, 1), (48 << 10) + 1),
    ],
)
def test_a_launch_beyond_cuda_s_limits_is_refused_and_costs_nothing_else(
    cupy: Cupy, load, grid, block, shared_nbytes
) -> None:
    x = cupy.asarray(np.float32([-1]))
    kernel, given = load(RELU), relu(x.data.ptr, x.data.ptr, 1)
    with pytest.raises(CudaError, match="invalid argument") as caught:
        kernel(grid, block, given, shared_mem=shared_nbytes)
    assert caught.value.status == 1
    kernel((1, 1, 1), (32, 1, 1), given, shared_mem=48 << 10)
    assert x.on_host().tolist() == [0]


def test_more_shared_memory_has_to_be_asked_for(cupy: Cupy, load) -> None:
    x, kernel = cupy.asarray(np.float32([-1])), load(RELU)
    kernel.max_dynamic_shared_size_bytes = 227 << 10
    kernel((1,), (32,), relu(x.data.ptr, x.data.ptr, 1), shared_mem=227 << 10)
    with pytest.raises(CudaError, match="invalid argument"):
        kernel.max_dynamic_shared_size_bytes = (227 << 10) + 1


def test_an_address_beyond_what_was_allocated_loses_the_device(cupy: Cupy, load) -> None:
    x = cupy.cuda.alloc(4096)
    kernel = load(RELU)
    kernel((1,), (32,), relu(x.ptr, x.ptr, 1024))
    cupy.cuda.runtime.deviceSynchronize()
    kernel((1,), (32,), relu(x.ptr, x.ptr, 1025))
    for ask in (cupy.cuda.runtime.deviceSynchronize, cupy.cuda.Device, lambda: cupy.cuda.alloc(1)):
        with pytest.raises(CudaError, match="illegal memory access") as caught:
            ask()
        assert caught.value.status == 700


def test_memory_that_was_freed_is_not_there_any_more(cupy: Cupy, load) -> None:
    pool = cupy.cuda.MemoryPool()
    x = pool.malloc(512)
    address, kernel = x.ptr, load(RELU)
    kernel((1,), (32,), relu(address, address, 1))
    cupy.cuda.runtime.deviceSynchronize()
    del x
    kernel((1,), (32,), relu(address, address, 1))
    cupy.cuda.runtime.deviceSynchronize()  # the pool keeps it
    pool.free_all_blocks()
    kernel((1,), (32,), relu(address, address, 1))
    with pytest.raises(CudaError, match="illegal memory access"):
        cupy.cuda.runtime.deviceSynchronize()


def test_memory_ends(cupy: Cupy) -> None:
    free, total = cupy.cuda.runtime.memGetInfo()
    assert free == total == 64 << 20
    held = cupy.cuda.alloc(48 << 20)
    with pytest.raises(OutOfMemoryError, match="Out of memory allocating"):
        cupy.cuda.alloc(32 << 20)
    del held
    cupy.cuda.alloc(32 << 20)
    with pytest.raises(CudaError, match="invalid argument"):
        cupy.cuda.runtime.memcpyAsync(8, cupy.cuda.alloc(8).ptr, 16, 2, 0)


@pytest.mark.parametrize("memory", MEMORIES)
def test_outputs_of_layers_are_copied_there_and_back_and_nothing_is_left(cupy: Cupy, memory: Memory) -> None:
    runtime, copied = cupy.cuda.runtime, []
    copy = runtime.memcpy
    runtime.memcpy = lambda to, source, nbytes, kind: (
        copied.append((nbytes, kind)),
        copy(to, source, nbytes, kind),
    )
    before = runtime.memGetInfo()
    copies = LayerCopies(cupy, (16, 4096), memory)
    assert runtime.memGetInfo() != before
    copies.run()
    copies.close()
    assert copied == [(16, 2), (16, 1), (4096, 2), (4096, 1)]
    assert runtime.memGetInfo() == before

    def full(*_: int) -> int:
        raise OutOfMemoryError("out of memory")

    if memory != "pageable":  # the device's is given back where the host's is not to be had
        setattr(runtime, "hostAlloc" if memory == "pinned" else "mallocManaged", full)
        with pytest.raises(OutOfMemoryError):
            LayerCopies(cupy, (16,), memory)
        assert runtime.memGetInfo() == before


def test_a_launch_with_other_arguments_than_the_kernel_takes_is_refused(cupy: Cupy, load) -> None:
    x = cupy.asarray(np.float32([-1]))
    with pytest.raises(CudaError, match="unary takes pointer, pointer, struct and was given"):
        load(RELU)((1,), (32,), relu(x.data.ptr, x.data.ptr, 1)[:-1])
    *pointers, struct = relu(x.data.ptr, x.data.ptr, 1)
    with pytest.raises(CudaError, match="a struct of another size"):
        load(RELU)((1,), (32,), (*pointers, struct["size"].reshape(())))
    with pytest.raises(TypeError, match="one element"):
        load(RELU)((1,), (32,), (*pointers, np.stack([struct, struct])))
    with pytest.raises(CudaError, match="not found"):
        load(RELU, "unary_reduce")


def test_code_for_another_device_is_not_loaded_and_what_it_lacks_not_compiled(load) -> None:
    with pytest.raises(CudaError, match="no kernel image"):
        load(RELU, arch="sm_80")
    tensor = registry.find("cuda", "gemm", "tensor_tf32")
    compiled(tensor, "sm_80")
    with pytest.raises(RuntimeError, match=r"11_tensor_tf32\.cu\(1\): error: .*sm_80"):
        compiled(tensor, "sm_75")


def test_a_launch_that_may_begin_early_gets_its_arguments_too(
    cupy: Cupy, load, monkeypatch: pytest.MonkeyPatch
) -> None:
    bindings = pytest.importorskip("cuda.bindings")
    monkeypatch.setattr(bindings, "driver", driver, raising=False)
    x = cupy.asarray(np.float32([-1, 4]))
    start = overlapping(
        cupy, load(RELU), Stage("unary", (1, 1, 1), (32, 1, 1)), relu(x.data.ptr, x.data.ptr, 2)
    )
    start()
    assert x.on_host().tolist() == [0, 4]
    assert cupy.device.ran[-1].early
    start = overlapping(cupy, load(RELU), Stage("unary", (0, 1, 1), (32, 1, 1)), relu(0, 0, 2))
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_VALUE when unary was launched"):
        start()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("op", sorted(OPS))
def test_an_operator_is_read_back_from_its_arguments(op: str) -> None:
    cases = [case.params for case in cuda_cases.cases(op)]
    assert cases
    kernel = compiled(registry.find("cuda", op, 1)).functions[op]
    for params in cases:
        scalars = params.scalars()
        # What the program packs, read as C would read it.
        told = kernel.told(kernel_arguments.packed(op, scalars).tobytes())
        assert told == [value.item() for value in scalars]
        optional = bool(getattr(params, "mask", ())) or getattr(params, "bias", False) is True
        back = arguments.params(op, told, optional)
        assert back.scalars() == scalars
        assert np.prod(back.output_shape) == np.prod(params.output_shape)


@pytest.mark.parametrize("params", PACKED, ids=lambda params: f"{params.op}-{params.m}")
def test_weights_are_read_back_from_how_a_rung_lays_them_out(params: Params) -> None:
    weight = np.random.default_rng(3).standard_normal(params.input_shapes[1], np.float32)
    packing_rungs = [
        r for r in registry.rungs("cuda", params.op) if r.packs and not r.refusal(params, (9, 0))
    ]
    assert packing_rungs
    for rung in packing_rungs:
        how = launch.launch(params, rung)
        module = compiled(rung, **how.defines)
        held = how.packed[1](weight)
        assert held.nbytes == unpacking.nbytes(module, params)
        back = unpacking.unpacked(module, params, held.reshape(-1).view(np.uint8))
        expected = lying.rounded(weight, rung.precision)
        np.testing.assert_allclose(back, expected, rtol=0, atol=2e-6, err_msg=rung.label)


def test_every_way_to_lay_weights_out_is_known() -> None:
    rungs = [rung for op in OPS for rung in registry.rungs("cuda", op) if rung.packs]
    assert {rung.launch for rung in rungs} == set(unpacking.LAYOUTS)


@pytest.mark.sampled(4, "long")
def test_an_answer_is_that_of_the_memory_it_is_given() -> None:
    memory = Device(Settings(memory_mib=8)).memory
    x, y = memory.allocate(4 * 6), memory.allocate(4 * 6)
    module = compiled(registry.find("cuda", "softmax", "naive"))
    answer = answers.bind(memory, module, "softmax", [x.address, y.address], [2, 3, 1, 0])
    x.array.view(np.float32)[:] = [0, 0, 0, 1, 1, 1]
    answer.do()
    np.testing.assert_allclose(y.array.view(np.float32), 1 / 3, rtol=1e-6)


def test_much_memory_is_set_to_zero_as_far_as_was_asked() -> None:
    block = Block((65 << 20) + 999, pinned=False)
    fill(block.array, 7)
    fill(block.array[333:-333], 0)
    assert not block.array[333:-333].any()
    assert (block.array[:333] == 7).all()
    assert (block.array[-333:] == 7).all()
