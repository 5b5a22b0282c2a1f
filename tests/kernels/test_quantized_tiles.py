"""Products of bytes over chunks of channels: exact in every tile and every number of parts, on the simulated
GPU, at batches and sizes that are multiples of nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernels import launch, layouts, registry
from kernels.errors import KernelError
from kernels.estimates import nhwc_tiles, tensor_tiles, wgmma_tiles
from kernels.launch import nhwc
from kernels.ops import sized
from kernels.ops._quantized import Quantized
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from kernels.registry import Rung
from tests.kernels import quantized_cases
from tests.kernels.cuda_cases import Case
from tests.kernels.simulated import check

pytestmark = [pytest.mark.slow]

PADDED = QConv(sized(Conv(1, 33, 6, 7, 70, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1)), dtype="uint8", to="int8")
GROUPS = QConv(sized(Conv(3, 64, 5, 4, 96, 2, 3, 0, 0, 2, 1, 1, 0, 0, 2, 1, 2, group=2)), dtype="int8")
FOLDED = QConv(sized(Conv(1, 3, 19, 23, 24, 7, 7, 0, 0, 4, 4, 2, 1, 2, 1)), dtype="int8", to="uint8")
PIXELS = QConv(sized(Conv(130, 20, 1, 1, 17, 1, 1, 0, 0)), dtype="uint8", weight_dtype="uint8", to="float32")
CONVOLUTIONS = (
    quantized_cases.behind(PADDED, "int8", shifted=True, several=True, closer=True),
    quantized_cases.behind(GROUPS, "int8", shifted=False, several=False, closer=False),
    quantized_cases.behind(FOLDED, "uint8", shifted=True, several=False, closer=False),
    quantized_cases.behind(PIXELS, "float32", shifted=True, several=True, closer=False),
    replace(GROUPS, to="int32"),
)
PRODUCTS = tuple(
    quantized_cases.behind(QGemm(Gemm(m, n, k, trans_b=n % 2 == 1), dtype=dtype), to, True, n > 20, False)
    for m, n, k, dtype, to in (
        (1, 13, 77, "uint8", "int8"),
        (7, 32, 208, "int8", "uint8"),
        (130, 21, 48, "int8", "float32"),
    )
)


CUTS = [
    *(wgmma_tiles.Cut(*tile, 1) for tile in wgmma_tiles.CONV_WAVES),
    *(wgmma_tiles.Cut(wgmma_tiles.ROWS, 64, parts) for parts in wgmma_tiles.CLUSTERS if parts > 1),
]


def _case(params: Quantized, seed: int) -> Case:
    given = quantized_cases.inputs(params, seed)
    return Case(params, tuple(given), quantized_cases.answer(params, *given))


def _exact(rung: Rung, parts: int, number: int) -> None:
    """Two cases, each in a layout, by turns: translating a kernel takes longer than running it."""
    ways = [
        (seed, params, rung.in_layouts(reads, writes))
        for seed, params in enumerate(CONVOLUTIONS if rung.op == "qconv" else PRODUCTS)
        for reads in rung.reads
        for writes in rung.writes
    ]
    able = [way for way in ways if launch.refusal(way[1], way[2]) is None]
    for seed, params, as_laid_out in (able[5 * number % len(able)], able[(5 * number + 7) % len(able)]):
        assert launch.launch(params, as_laid_out).defines["PARTS"] == parts
        outcome = check.ran_in_layouts(as_laid_out, _case(params, seed), seed)
        told = as_laid_out.read_layout, as_laid_out.written_layout, params.words
        assert not outcome.wrong, (outcome.wrong, *told)
        assert not outcome.findings, (outcome.findings, *told)


@pytest.mark.sampled(18)
@pytest.mark.parametrize("tile", tensor_tiles.CONV_TILES, ids=lambda tile: f"{tile.rows}x{tile.columns}")
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(("op", "name"), [("qconv", "nhwc_bytes"), ("qgemm", "chunks_bytes")])
def test_tiles_of_warps_are_exact(
    op: str, name: str, tile: tensor_tiles.TensorTile, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nhwc_tiles, "fit", lambda *_: (tile, parts))
    _exact(registry.find("cuda", op, name), parts, tensor_tiles.CONV_TILES.index(tile) + parts)


@pytest.mark.sampled(18)
@pytest.mark.parametrize(
    "cut",
    CUTS,
    ids=lambda cut: f"{cut.rows}x{cut.columns}-{cut.parts}",
)
@pytest.mark.parametrize("op", ["qconv", "qgemm"])
def test_tiles_of_warpgroups_are_exact(
    op: str, cut: wgmma_tiles.Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wgmma_tiles, "fit_clusters", lambda *_: cut)
    _exact(registry.find("cuda", op, "wgmma_bytes"), cut.parts, CUTS.index(cut))


@pytest.mark.sampled(4, "long")
@pytest.mark.parametrize("name", ["nhwc_bytes", "wgmma_bytes"])
def test_many_images_of_bytes_are_laid_out_a_few_at_a_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An odd number of bytes an image, which is no whole number of words."""
    folded = QConv(sized(Conv(6, 3, 19, 23, 9, 7, 7, 0, 0, 4, 4, 2, 1, 2, 1)), dtype="int8", to="int8")
    monkeypatch.setattr(nhwc, "_KEPT_NBYTES", 1)
    case = _case(quantized_cases.behind(folded, "int8", shifted=True, several=False, closer=False), 0)
    writes = layouts.PLAIN if name == "nhwc_bytes" else layouts.BYTES
    rung = registry.find("cuda", "qconv", name).in_layouts(layouts.PLAIN, writes)
    stages = [stage.function for stage in launch.launch(case.params, rung).stages("qconv")]
    assert stages == ["qconv_lay_out", "qconv"] * 2
    outcome = check.ran_in_layouts(rung, case)
    assert (outcome.wrong, outcome.findings) == ("", ())


def test_what_is_no_byte_is_not_written_in_chunks() -> None:
    rung = registry.find("cuda", "qconv", "nhwc_bytes").in_layouts(layouts.PLAIN, layouts.BYTES)
    with pytest.raises(KernelError, match="gives float32"):
        launch.launch(replace(PADDED, to="float32"), rung)


def test_a_sum_of_bytes_that_is_nearly_a_tie_is_rounded_as_the_exact_one() -> None:
    """Products that are large beside what is left of them: float32 cannot tell the side of half-way."""
    params = replace(PRODUCTS[1], to="int8", out_scale=0.75, out_zero=0, low=-128, high=127, shifted=True)
    inputs = quantized_cases.inputs(params)
    sums = quantized_cases.sums(params, *inputs[:4]).reshape(-1, params.channels)
    inputs[4] = (np.arange(params.channels, dtype=np.int32) << 20) - sums[0].astype(np.int32)
    inputs[5] = np.full(params.channels, 0.375 / 256)
    inputs[6] = -0.375 / 256 * (np.arange(params.channels) << 20).astype(np.float64)
    case = Case(params, tuple(inputs), quantized_cases.answer(params, *inputs))
    assert len(np.unique(case.expected)) > 50
    assert check.ran(registry.find("cuda", "qgemm", "chunks_bytes"), case).wrong == ""


# Header, what stands there, what stands there instead, and whether it shows as a finding or in the answer.
MISTAKES = {
    "what is written is not shown to who reads in the background": (
        *("wgmma.cuh", 'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");', ";", "finding"),
    ),
    "a slab is multiplied before it has arrived": (
        *("wgmma.cuh", "wait_for_all_but<AHEAD_ - 1>();", "wait_for_all_but<AHEAD_>();", "finding"),
    ),
    "what lies outside is 0": ("quantized_chunks.cuh", "chunk_of_byte(zero)", "chunk_of_byte(0)", "answer"),
    "the product of the zero points is left out": (
        *("quantized_out.cuh", "terms * x_zero * own - x_zero * sums", "0 - x_zero * sums", "answer"),
    ),
    "what fills a chunk up counts": (
        *("quantized_chunks.cuh", "by[4] = {ones.x, ones.y, ones.z, ones.w}"),
        *("by[4] = {0x01010101u, 0x01010101u, 0x01010101u, 0x01010101u}", "answer"),
    ),
    "what is near a tie is not worked out again": (
        *("quantized_out.cuh", "if (__builtin_expect(!certain, 0))", "if (false)", "answer"),
    ),
}


@pytest.mark.sampled(4, "long")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_warpgroups_kernel_is_found(mistake: str, tmp_path: Path) -> None:
    name, text, instead, shows = MISTAKES[mistake]
    shipped = registry.find("cuda", "qconv", "wgmma_bytes")
    folder = tmp_path / "qconv"
    folder.mkdir()
    for header in registry.headers(shipped):
        content = header.text
        if header.name == name:
            assert content.count(text) == 1
            content = content.replace(text, instead)
        (folder / header.name).write_text(content, encoding="utf-8")
    own = shipped.source.replace("rung = 4", "rung = 90").replace("wgmma_bytes", "mine")
    (folder / "90_mine.cu").write_text(own, encoding="utf-8")
    rung = registry.find("cuda", "qconv", "mine", [tmp_path]).in_layouts(layouts.BYTES, layouts.BYTES)
    outcome = check.ran_in_layouts(rung, _ties(PADDED) if "tie" in mistake else _case(CONVOLUTIONS[0], 0))
    assert outcome.findings if shows == "finding" else outcome.wrong


def _ties(params: QConv) -> Case:
    """Small sums, each nearly half-way between two steps: float32 cannot hold by how little it is not."""
    told = replace(params, to="int8", shifted=True, out_scale=1.0, low=-128, high=127)
    given = quantized_cases.inputs(told)
    given[0], given[1] = given[0] % 4, (given[1].astype(np.int16) % 3 - 1).astype(np.int8)
    given[2], given[3] = np.zeros_like(given[2]), np.zeros_like(given[3])
    given[4] = np.zeros_like(given[4])
    given[5] = np.ones(told.channels)
    given[6] = np.full(told.channels, 0.5 - 2.0**-30)
    return Case(told, tuple(given), quantized_cases.answer(told, *given))
