"""Exported operators alone: machine code and launches, as other programs call them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import arguments, launch, numba_support, nvrtc, registry
from kernels.cpu import load
from kernels.errors import UnavailableError, UnsupportedError
from kernels.exported import cpu, cuda, library, torch_module
from kernels.exported.operator import Operator, identifier
from kernels.ops import Params, sized
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.registry import Rung

pytestmark = pytest.mark.slow
compiles = pytest.mark.skipif(numba_support.unavailable() is not None, reason="Numba is not here")
nvrtc_here = pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
HERE = Path(__file__).parent
CONV = Conv(1, 3, 20, 20, 8, 5, 5, 0, 0, bias=True, activation="relu")
RANDOM = np.random.default_rng(0)
WEIGHTS = [
    None,
    RANDOM.standard_normal((8, 3, 5, 5)).astype(np.float32),
    RANDOM.standard_normal(8).astype(np.float32),
]


def conv_of(n: int) -> Conv:
    return sized(Conv(**{**CONV.__dict__, "n": n}))


def shapes_of(sizes: Sequence[Params], weights: Sequence[Any]) -> list[Any]:
    return [
        ([p.input_shapes[i] for i, array in enumerate(weights) if array is None], p.output_shape)
        for p in sizes
    ]


def exported(rung: Rung, sizes: Sequence[Params], weights: Sequence[Any]) -> Operator:
    at = (
        identifier(rung.name, "here"),
        f"here by {rung.label}",
        rung,
        sizes,
        shapes_of(sizes, weights),
        weights,
    )
    return cpu.operator(*at) if rung.device == "cpu" else cuda.operator(*at, "sm_90")


def answer(rung: Rung, p: Params, x: np.ndarray, weights: Sequence[Any]) -> np.ndarray:
    """What the rung gives in a ladder."""
    kernel = load(rung)
    given = kernel.pack(p, list(weights))
    output = np.zeros(p.output_shape, p.out_dtype)
    scratch = np.zeros(kernel.workspace(p) // 4, np.float32)
    kernel.bind(p, [x if array is None else array for array in given], output, scratch)()
    return output


def called(path: Path, op: Operator, size: int, x: np.ndarray) -> np.ndarray:
    """What the library gives, as C calls it."""
    loaded = ctypes.CDLL(str(path))
    loaded.kernelscope_run.restype = loaded.kernelscope_open.restype = ctypes.c_char_p
    assert loaded.kernelscope_open() is None
    given = [x if it.array is None else np.ascontiguousarray(it.array) for it in op.inputs]
    output = np.full(op.sizes[size].output, np.nan, op.out_dtype)
    pointers = (ctypes.c_void_p * len(given))(*[array.ctypes.data for array in given])
    assert loaded.kernelscope_run(size, pointers, ctypes.c_void_p(output.ctypes.data), None) is None
    return output


@pytest.mark.sampled(4, "long")
@compiles
def test_machine_code_answers_as_the_rung_does(tmp_path: Path) -> None:
    conv, gemm = (registry.find("cpu", op, "register_tiles") for op in ("conv", "gemm"))
    sizes = [conv_of(1), conv_of(5)]
    made = exported(conv, sizes, WEIGHTS)
    files = library.written(made, tmp_path)
    for size, p in enumerate(sizes):
        x = RANDOM.standard_normal(p.input_shapes[0]).astype(np.float32)
        assert called(files[1], made, size, x).tobytes() == answer(conv, p, x, WEIGHTS).tobytes()
    assert [(it.place, it.packed) for it in made.inputs] == [(0, False), (1, True), (2, False)]
    # Another operator in the same process, whose functions have the same names.
    p = Gemm(4, 24, 40, trans_b=True)
    weights = [None, RANDOM.standard_normal((24, 40)).astype(np.float32)]
    other = exported(gemm, [p], weights)
    x = RANDOM.standard_normal((4, 40)).astype(np.float32)
    path = library.written(other, tmp_path / "gemm")[1]
    assert called(path, other, 0, x).tobytes() == answer(gemm, p, x, weights).tobytes()
    x = RANDOM.standard_normal(sizes[0].input_shapes[0]).astype(np.float32)
    assert called(files[1], made, 0, x).tobytes() == answer(conv, sizes[0], x, WEIGHTS).tobytes()


LOOPS = """\
# op = "unary"
# rung = 90
# name = "mine"
# idea = "Loops of mine."
# compiled = true
# [needs]
# kind = ["relu"]
import numpy as np
from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled


@compiled
def step(a, low, high, scratch):
    x, y, kept = simd.floats(a[1]), simd.floats(a[2]), simd.floats(a[3])
    for i in range(low, high):
        y[i] = x[i] if x[i] > 0 else np.float32(0)
        WRITES


def bind(p, inputs, output, workspace):
    kept = np.ones(4, np.float32)
    call = Call(step, [inputs[0], output, kept], workspace, 0, p.size)
    return RETURNS
"""


@pytest.mark.sampled(3)
@compiles
@pytest.mark.parametrize(
    ("writes", "returns", "told"),
    [
        ("pass", "call", ""),
        ("kept[0] = x[i]", "call", "it writes into an array that its bind made"),
        ("pass", "lambda: call()", "a part of its pass is Python"),
        ("pass", "1 / 0", "its bind fails: ZeroDivisionError"),
        ("x[i] = np.float32(0)", "call", "it writes into its inputs"),
    ],
)
def test_what_is_no_machine_code_alone_is_refused(
    tmp_path: Path, writes: str, returns: str, told: str
) -> None:
    from kernels.ops.unary import Unary

    text = LOOPS.replace("WRITES", writes).replace("RETURNS", returns)
    (tmp_path / "90_mine.py").write_text(text)
    (rung,) = (r for r in registry.rungs("cpu", "unary", [tmp_path]) if r.user)
    p = Unary(kind="relu", size=100)
    if told:
        with pytest.raises(UnsupportedError, match=told):
            exported(rung, [p], [None])
        return
    made = exported(rung, [p, Unary(kind="relu", size=200)], [None])
    assert len(made.tables) == 4 * 4, "what both sizes share is there once"
    x = RANDOM.standard_normal(100).astype(np.float32)
    assert (
        called(library.written(made, tmp_path / "out")[1], made, 0, x).tolist() == np.maximum(x, 0).tolist()
    )


def test_errors_say_what_would_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UnsupportedError, match=r"conv 02 im2col is Python that calls NumPy.*export a rung that"
    ):
        exported(registry.find("cpu", "conv", "im2col"), [conv_of(1)], WEIGHTS)
    for name, told in (("im2col_cublas", "cuBLAS"), ("texture", "texture")):
        with pytest.raises(UnsupportedError, match=told):
            exported(registry.find("cuda", "conv", name), [conv_of(1)], WEIGHTS)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"no C compiler .* install gcc or clang"):
        library.compiler()
    monkeypatch.setenv("CC", "no-such-cc")
    with pytest.raises(
        UnavailableError, match="the C compiler no-such-cc, which CC names, is not on the PATH"
    ):
        library.compiler()


# ----------------------------------------------------------------------------------------------------- CUDA

CALL = """
import ctypes, sys
loaded = ctypes.CDLL(sys.argv[1])
loaded.kernelscope_run.restype = ctypes.c_char_p
for size, stream in ((0, 0x42), (1, 0x42), (1, 0x43)):
    pointers = (ctypes.c_void_p * int(sys.argv[2]))(*[0x1000 * (i + 1) for i in range(int(sys.argv[2]))])
    wrong = loaded.kernelscope_run(size, pointers, ctypes.c_void_p(0xf000), ctypes.c_void_p(stream))
    if wrong:
        sys.exit(wrong.decode())
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a CUDA driver that writes down what it is asked."""
    folder = tmp_path_factory.mktemp("driver")
    command = [
        library.compiler(),
        "-shared",
        "-fPIC",
        "-o",
        str(folder / "libcuda.so.1"),
        str(HERE / "driver.c"),
    ]
    subprocess.run(command, check=True)
    return folder


def launched(
    path: Path, op: Operator, driver: Path, folder: Path, pointers: int, nbytes: int, **env: str
) -> tuple[list[str], str]:
    """What the driver is asked in three passes, and what the library says."""
    told = folder / "told"
    told.write_text("")
    around: Mapping[str, str] = {
        **os.environ, "LD_LIBRARY_PATH": str(driver), "TOLD": str(told), "POINTERS": str(pointers),
        "NBYTES": str(nbytes), **env,
    }  # fmt: skip
    command = [sys.executable, "-S", "-c", CALL, str(path), str(len(op.inputs))]
    done = subprocess.run(command, env=around, capture_output=True, text=True, check=False)
    return told.read_text().splitlines(), done.stderr.strip()


@pytest.mark.sampled(4, "long")
@nvrtc_here
def test_launches_are_those_of_the_rung(tmp_path: Path, driver: Path) -> None:
    sizes = [conv_of(1), conv_of(5)]
    rung = registry.find("cuda", "conv", "map_a_block")
    op = exported(rung, sizes, WEIGHTS)
    files = library.written(op, tmp_path)
    assert [path.suffix for path in files] == [".c", ".so", ".ptx", ".cubin"]
    size = arguments.layout(Conv).itemsize
    told, said = launched(files[1], op, driver, tmp_path, 4, size)
    expected = []
    for p, stream in ((sizes[0], 0x42), (sizes[1], 0x42), (sizes[1], 0x43)):
        how = launch.launch(p, rung)
        grid, block = (",".join(map(str, dims)) for dims in (how.grid, how.block))
        scalars = bytes(arguments.packed("conv", how.scalars).tobytes()).hex()
        pointers = f"{0x1000:x} {0x2000:x} {0x3000:x} {0xF000:x}"
        expected.append(f"launch conv {grid} {block} {how.shared_nbytes} {stream:#x} {pointers} {scalars}")
    assert told == ["init 0", "context of 0", "load cubin", *expected]
    assert said == ""
    # On another architecture the PTX is taken; without both, and where a launch fails, it says so.
    assert launched(files[1], op, driver, tmp_path, 4, size, OTHER_ARCHITECTURE="1")[0][2] == "load ptx"
    failed = launched(files[1], op, driver, tmp_path, 4, size, NO_LAUNCH="1")[1]
    assert failed == "here by conv 03 map_a_block: a launch failed: unspecified launch failure (719)"
    for path in files[2:]:
        path.unlink()
    assert "keep these files together" in launched(files[1], op, driver, tmp_path, 4, size)[1]


@pytest.mark.sampled(4, "long")
@nvrtc_here
def test_scratch_memory_constants_and_packed_weights(tmp_path: Path, driver: Path) -> None:
    size = arguments.layout(Conv).itemsize
    split = exported(registry.find("cuda", "conv", "split_sum"), [conv_of(1), conv_of(1)], WEIGHTS)
    told, said = launched(library.written(split, tmp_path)[1], split, driver, tmp_path, 5, size)
    assert said == ""
    scratch = [line.split()[10] for line in told if line.startswith("launch conv ")]
    # One stream has memory from the beginning, another gets its own.
    assert sum(line.startswith("alloc") for line in told) == 2
    assert scratch[0] == scratch[1] != scratch[2]
    assert any(line.startswith("launch conv_reduce ") for line in told)
    constant = exported(registry.find("cuda", "conv", "constant_weights"), [conv_of(1), conv_of(5)], WEIGHTS)
    told, said = launched(library.written(constant, tmp_path)[1], constant, driver, tmp_path, 4, size)
    nbytes = WEIGHTS[1].nbytes
    assert said == ""
    assert next(line for line in told if line.startswith("copy")) == f"copy 5000 2000 {nbytes} 0x42"
    packed = exported(registry.find("cuda", "conv", "tensor_fp16"), [conv_of(1), conv_of(5)], WEIGHTS)
    assert any(it.packed for it in packed.inputs)
    with pytest.raises(UnsupportedError, match="rearranges its weights once, and input 1 of this node"):
        exported(packed.rung, [conv_of(1)], [None, None, WEIGHTS[2]])


# -------------------------------------------------------------------------------------------------- PyTorch


@pytest.mark.sampled(4, "long")
@compiles
def test_the_module_for_torch_calls_the_library(tmp_path: Path) -> None:
    """With a stand-in for torch, of what the module uses; the GPU machine has the real one."""
    rung = registry.find("cpu", "conv", "register_tiles")
    p = conv_of(2)
    op = exported(rung, [p], WEIGHTS)
    library.written(op, tmp_path)
    torch_module.written(op, tmp_path)
    elsewhere = replace(op, name="elsewhere", features=("xop",))  # of AMD's processors of 2011 to 2017
    library.written(elsewhere, tmp_path)
    torch_module.written(elsewhere, tmp_path)
    x = RANDOM.standard_normal(p.input_shapes[0]).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    script = (
        f"import numpy as np, torch, {op.name} as made\n"
        "y = made.Module()(torch.from_numpy(np.load('x.npy')))\n"
        "np.save('y.npy', y.array)\n"
        "print(made.fake(*[torch.from_numpy(np.load('x.npy'))] * 3).array.shape)\n"
        "for wrong in (np.zeros((3, 3, 20, 20), np.float32), np.zeros((2, 3, 20, 20), np.float64)):\n"
        "    try: made.Module()(torch.from_numpy(wrong))\n"
        "    except (ValueError, TypeError) as error: print(error)\n"
        "try: import elsewhere\n"
        "except RuntimeError as error: print(error)\n"
    )
    folders = f"{tmp_path}{os.pathsep}{HERE / 'stand_in'}"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONPATH": folders},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert np.load(tmp_path / "y.npy").tobytes() == answer(rung, p, x, WEIGHTS).tobytes()
    fake, shape, kind, processor = done.stdout.splitlines()
    assert "this processor has no xop, for which it was compiled" in processor
    assert fake == "(2, 8, 16, 16)"
    assert "exported for inputs of ((2, 3, 20, 20),) and was given ((3, 3, 20, 20),); export it" in shape
    assert kind == "argument 1 is float64, and here by conv 08 register_tiles takes float32"
