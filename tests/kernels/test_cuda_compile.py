"""The CUDA ladder compiles for every architecture, on a machine without a GPU."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernels import launch, nvrtc, overlaps, registry
from kernels.errors import KernelError
from kernels.estimates import tensor_tiles
from kernels.launch import cluster, products, sliced, tensor
from kernels.net import plan as sharing
from kernels.net.layers import layers
from kernels.net.records import Way
from kernels.net.text import one_kernel
from kernels.ops import OPS
from kernels.ops.gemm import Gemm
from tests import sampling
from tests.kernels import cuda_cases, nets
from tests.kernels.ptx import both, is_settled, ptx

ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
# No text asks for 8.6 or 8.9, so that what is compiled for them is what is compiled for 8.0: by turns.
ALIKE = ("sm_80", "sm_86", "sm_89")
RUNGS = [rung for op in OPS for rung in registry.rungs("cuda", op) if not rung.language]
FEW = 2  # of the tiles of a launch shape, in a run that takes a sample


def _least(rung: registry.Rung, number: int) -> str:
    """The oldest architecture that it says it runs on, which has the fewest instructions."""
    needed = rung.needs.get("architecture", rung.needs.get("compute_capability", (0, 0)))
    fitting = ("sm_75", ALIKE[number % len(ALIKE)], "sm_90")
    return next(arch for arch in fitting if (int(arch[3:-1]), int(arch[-1])) >= tuple(needed))


# What the oldest can be told, those between can; what is for newer ones alone, the newest sees.
EVERY = [
    (rung, arch)
    for number, rung in enumerate(RUNGS)
    for arch in dict.fromkeys((_least(rung, number), "sm_90"))
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable())),
]


def _rung(folder: Path, body: str, name: str = "mine", **header: str) -> registry.Rung:
    fields = {"launch": '"one_thread_an_output"', **header}
    lines = "\n".join(f"{key} = {value}" for key, value in fields.items())
    text = f'/*\nop = "unary"\nrung = 9\nname = "{name}"\nidea = "A test."\n{lines}\n*/\n{body}'
    (folder / f"09_{name}.cu").write_text(text)
    return registry.find("cuda", "unary", 9, [folder])


RELU = 'extern "C" __global__ void unary(const float* x, float* y, const UnaryParams p) { y[0] = %s; }'


def test_no_text_asks_for_an_architecture_that_is_not_compiled_for_each_time() -> None:
    asked: set[str] = set()
    for path in (registry.ROOT / "cuda").rglob("*.cu*"):
        lines = [line for line in path.read_text("utf-8").splitlines() if "__CUDA_ARCH__" in line]
        found = [re.findall(r"__CUDA_ARCH__ >= (\d+)0", line) for line in lines]
        assert all(found), f"{path}: {lines}"
        asked |= {f"sm_{number}" for numbers in found for number in numbers}
    assert asked
    assert asked <= set(ARCHITECTURES)


SPILLS = "local_y"  # the rung whose lesson is what it costs to ask for more registers than there are


@pytest.mark.sampled(64)
@pytest.mark.parametrize(
    ("rung", "arch"), EVERY, ids=[f"{rung.label.replace(' ', '-')}-{arch}" for rung, arch in EVERY]
)
def test_every_rung_compiles(rung: registry.Rung, arch: str) -> None:
    # What this lacks few rungs name. How many registers and how much memory one takes the newest is asked.
    if arch == "sm_75":
        text = ptx(rung, arch)
        assert f".target {arch}\n" in text
        assert re.search(rf"\.entry {rung.op}\w*\(", text)
        if is_settled(text):
            return
    cubin = nvrtc.compile_rung(rung, arch)
    assert cubin.read_bytes()[:4] == b"\x7fELF"
    assert f"{rung.op}".encode() in cubin.read_bytes()
    used = nvrtc.resources(cubin)
    assert used is not None
    if rung.name == SPILLS:
        assert used.spill_nbytes > 1024, f"{used}"
    else:
        assert used.spill_nbytes <= 192, f"{used}"  # 164 of conv's fft and winograd_2x2_3x3 on sm_90
    assert used.shared_nbytes <= 48 << 10


@pytest.mark.sampled(4)
@pytest.mark.parametrize("op", ["conv", "gemm"])
def test_every_tensor_tile_compiles_and_fits_its_block(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each with one of the precisions that take it: the last, which has most to hold in registers.
    found = {tile: rung for rung in RUNGS if rung.op == op for tile in tensor.tiles(rung)}
    for tile, rung in sampling.some(f"tensor tiles of {op}", list(found.items()), FEW):
        case = next(c for c in cuda_cases.cases(op) if not rung.refusal(c.params))
        monkeypatch.setattr(tensor_tiles, "fit", lambda *_, tile=tile: (tile, 2))
        how = launch.launch(case.params, rung)
        used = nvrtc.resources(nvrtc.compile_rung(rung, "sm_90", how.defines))
        assert used is not None
        assert used.registers * how.block[0] <= 65536
        assert used.spill_nbytes <= 128, f"{tile}: {used}"
        assert used.shared_nbytes <= 48 << 10


@pytest.mark.sampled(32)
@pytest.mark.parametrize(
    "rung", [r for r in RUNGS if len(r.writes) > 1], ids=lambda rung: rung.label.replace(" ", "-")
)
def test_every_rung_compiles_for_the_layouts_between_steps(rung: registry.Rung) -> None:
    as_laid_out = rung.in_layouts(rung.reads[-1], rung.writes[-1])
    case = next(c for c in cuda_cases.cases(rung.op) if cuda_cases.takes(as_laid_out, c.params))
    how = launch.launch(case.params, as_laid_out)
    cubin = nvrtc.compile_rung(as_laid_out, "sm_90", how.defines)
    for stage in how.kernels(rung.op):
        used = nvrtc.resources(cubin, stage.function)
        assert used is not None
        assert used.registers * stage.block[0] <= 65536
        assert used.spill_nbytes == 0, f"{used}"
        assert used.shared_nbytes <= 48 << 10


@pytest.mark.sampled(4, "long")
def test_every_sliced_tile_compiles_and_two_blocks_fit_beside_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rung = next(r for r in RUNGS if sliced.tiles(r))
    case = next(c for c in cuda_cases.cases("gemm") if not rung.refusal(c.params))
    for tile in sampling.some("sliced tiles", sliced.tiles(rung), FEW):
        monkeypatch.setattr(sliced, "fit", lambda *_, tile=tile: (tile, 2))
        how = launch.launch(case.params, rung)
        used = nvrtc.resources(nvrtc.compile_rung(rung, "sm_90", how.defines))
        assert used is not None
        assert used.registers * max(512, how.block[0]) <= 65536
        assert used.spill_nbytes == 0, f"{tile}: {used}"
        assert used.shared_nbytes <= 48 << 10


@pytest.mark.sampled(4, "long")
def test_every_spread_of_a_cluster_compiles_and_keeps_its_sums_in_registers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rung = next(r for r in RUNGS if r.launch == "gemm_cluster")
    # The most threads that a piece of y may be given leave each the fewest registers.
    most = {(spread.rows, spread.columns): spread for spread in cluster.spreads(k=7200)}
    for spread in most.values():
        monkeypatch.setattr(cluster, "fit", lambda *_, spread=spread: spread)
        how = launch.launch(Gemm(20, 20, 7200, trans_b=True), rung)
        used = nvrtc.resources(nvrtc.compile_rung(rung, "sm_90", how.defines))
        assert used is not None
        assert used.registers * spread.threads <= 65536
        assert used.spill_nbytes <= 128, f"{spread}: {used}"


@pytest.mark.sampled(14)
@pytest.mark.parametrize("shape", launch.TILES)
def test_every_tile_compiles_and_fits_its_block(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rung = next(r for r in RUNGS if r.launch == shape)
    case = next(iter(cuda_cases.cases(rung.op)))
    for tile in sampling.some(f"tiles of {shape}", list(launch.TILES[shape]), FEW):
        monkeypatch.setattr(products, "fit", lambda *_, tile=tile: (tile, 2))
        how = launch.launch(case.params, rung)
        cubin = nvrtc.compile_rung(rung, "sm_90", how.defines)
        for stage in how.kernels(rung.op):
            used = nvrtc.resources(cubin, stage.function)
            assert used is not None
            threads = stage.block[0] * stage.block[1] * stage.block[2]
            assert used.registers * threads <= 65536
            assert used.spill_nbytes <= 192, f"{tile}: {used}"  # that of conv_im2col 128 by 128 by 8


def test_a_compile_error_names_file_line_and_message(tmp_path: Path) -> None:
    rung = _rung(tmp_path, RELU % "nonsense(x[0])")
    with pytest.raises(KernelError, match="nonsense") as caught:
        nvrtc.compile_rung(rung, "sm_80")
    line = rung.source.split("extern")[0].count("\n") + 1
    assert str(caught.value).startswith(f"{rung.path}:{line}: ")
    assert "\n" not in str(caught.value)
    rung = _rung(tmp_path, RELU % "atomicAdd(1, x[0])")
    with pytest.raises(KernelError, match=r"argument types are: \(int, const float\)"):
        nvrtc.compile_rung(rung, "sm_80")


def test_an_unknown_architecture_is_refused_in_words(tmp_path: Path) -> None:
    rung = _rung(tmp_path, RELU % "x[0]")
    with pytest.raises(KernelError, match="sm_12345"):
        nvrtc.compile_rung(rung, "sm_12345")
    with pytest.raises(KernelError, match="sm_11"):
        nvrtc.compile_rung(rung, "sm_11")


def test_the_cache_follows_source_header_defines_and_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mine.cuh").write_text('#include "more.cuh"\n')
    header = tmp_path / "more.cuh"
    header.write_text("#define SCALE 2.0f\n")
    rung = _rung(tmp_path, '#include "mine.cuh"\n' + RELU % "SCALE * x[0]")
    first = nvrtc.compile_rung(rung, "sm_80")
    assert first.parent == tmp_path / "cache" / "cubin"
    stamp = first.stat().st_mtime_ns
    assert nvrtc.compile_rung(rung, "sm_80") == first
    assert first.stat().st_mtime_ns == stamp, "compiled again although nothing changed"
    others = {first, nvrtc.compile_rung(rung, "sm_90"), nvrtc.compile_rung(rung, "sm_80", {"X": 1})}
    header.write_text("#define SCALE 3.0f\n")
    others.add(nvrtc.compile_rung(rung, "sm_80"))
    others.add(nvrtc.compile_rung(replace(rung, source=rung.source + "\n"), "sm_80"))
    assert len(others) == 5
    left = {path.suffix for path in first.parent.iterdir()}
    assert left == {".cubin", ".log"}, "a half-written file was left"


def test_a_copy_of_a_rung_in_a_folder_of_the_user_finds_our_headers(tmp_path: Path) -> None:
    ours = registry.find("cuda", "gemm", "tensor_tf32")
    text = ours.source.replace(f"rung = {ours.number}", "rung = 99").replace(ours.name, "mine")
    (tmp_path / "99_mine.cu").write_text(text)
    mine = registry.find("cuda", "gemm", 99, [tmp_path])
    cubin = nvrtc.compile_rung(mine, "sm_80", tensor_tiles.GEMM_TILES[-1].defines)
    assert nvrtc.resources(cubin, "gemm")
    assert nvrtc.resources(cubin, "gemm_reduce")


def test_every_header_is_there_and_is_included() -> None:
    texts = [path.read_text(encoding="utf-8") for path in registry.HEADERS.rglob("*.cu*")]
    included = {name for text in texts for name in re.findall(r'#include "(.+?)"', text)}
    assert included == {path.name for path in registry.HEADERS.glob("*.cuh")}


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written_is_an_error_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(closed))
    with pytest.raises(KernelError, match="KERNELSCOPE_CACHE"):
        nvrtc.compile_rung(RUNGS[0], "sm_80")


def test_an_instruction_that_an_old_architecture_lacks_is_found_by_its_assembler_alone(
    tmp_path: Path,
) -> None:
    asks = 'float v; asm volatile("cp.async.commit_group;"); '
    rung = _rung(tmp_path, (RELU % "x[0]").replace("y[0]", asks + "y[0]"))
    assert not is_settled(ptx(rung, "sm_75"))
    with pytest.raises(KernelError, match="sm_75"):
        nvrtc.compile_rung(rung, "sm_75")
    assert nvrtc.compile_rung(rung, "sm_80").exists()
    assert is_settled(ptx(registry.find("cuda", "unary", 1), "sm_75"))


def test_no_fast_math_and_no_flush_to_zero() -> None:
    assert not any("fast" in option or "ftz" in option for option in nvrtc.OPTIONS)


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    ("way", "arch"),
    [
        (Way(1, 1, 256), "sm_75"),
        (Way(1, 8, 256), "sm_80"),
        (Way(4, 1, 128), "sm_90"),
        (Way(2, 4, 256), "sm_90a"),
        (Way(1, 20, 512, 1, 8, beside=2), "sm_90"),
        (Way(1, 8, 256, 1, 4, beside=4), "sm_80"),
        (Way(8, 1, 128, sent=True), "sm_90"),
        (Way(4, 4, 256, sent=True), "sm_90a"),
        (Way(1, 8, 512, tensor=True), "sm_80"),
        (Way(8, 8, 512, tensor=True), "sm_90"),
        (Way(8, 8, 512, sent=True), "sm_90"),
        (Way(8, 8, 256, tensor=True, half="float16", sent=True), "sm_90a"),
        (Way(2, 8, 256, 2, tensor=True), "sm_90a"),
        (Way(1, 8, 512, tensor=True, half="float16"), "sm_90a"),
        (Way(1, 8, 256, 2, tensor=True, half="float16"), "sm_90"),
        (Way(1, 16, 512, tensor=True, half="float16"), "sm_90"),
        (Way(8, 1, 128, tensor=True, sent=True), "sm_90"),
        (Way(4, 1, 256, tensor=True, half="float16", sent=True), "sm_90a"),
        (Way(1, 1, 512, tensor=True), "sm_90"),
        (Way(1, 1, 256, 2, tensor=True, half="float16"), "sm_90"),
        (Way(8, 8, 256, tensor=True, half="bfloat16", sent=True), "sm_90a"),
        (Way(1, 8, 512, tensor=True, half="bfloat16"), "sm_90a"),
        (Way(1, 1, 512, tensor=True, half="bfloat16"), "sm_90"),
    ],
    ids=str,
)
def test_a_net_in_one_kernel_compiles(way: Way, arch: str) -> None:
    digits = arch.removeprefix("sm_").rstrip("a")
    capability = int(digits[:-1]), int(digits[-1])
    found = layers(nets.lenet(3), 3)
    lies = sharing.room(found, way, sharing.block_nbytes(capability, way))
    assert lies is not None
    kernel = one_kernel(found, way, lies, 3, 132)
    path, text = both(kernel.rung(), arch, kernel.defines)
    if capability >= overlaps.CAPABILITY:
        assert overlaps.fault(text, weights=(1,)) is None
    used = nvrtc.resources(path, kernel.stage.function)
    assert used is not None
    assert used.spill_nbytes == 0
    assert used.registers * way.threads <= 65536
