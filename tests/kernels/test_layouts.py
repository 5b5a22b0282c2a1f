"""Rungs that take tensors in other layouts than ONNX's: right in each of them, compiled for the host."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from kernels import launch, layouts, registry
from kernels.estimates import nhwc_tiles, tensor_tiles
from kernels.launch import nhwc
from kernels.layouts import HALVES, PLAIN, ROUNDED, SHORT
from kernels.ops import OPS
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pool import Pool
from kernels.registry import Rung
from tests.bench.judge import on_the_host
from tests.kernels import cuda_cases, lying
from tests.kernels.cuda_cases import Case
from tests.kernels.hosted import answer, small
from tests.kernels.simulated import check

pytestmark = pytest.mark.slow

ALL = [rung for op in OPS for rung in registry.rungs("cuda", op) if len(rung.reads) > 1]
# The host knows tensor cores that multiply floating-point numbers alone.
RUNGS = [rung for rung in ALL if rung.op != "qconv"]
WAYS = [
    (rung, reads, writes)
    for op in OPS
    if op != "qconv"
    for rung in registry.rungs("cuda", op)
    for reads in range(len(rung.reads))
    for writes in range(len(rung.writes))
    if reads or writes
]
MOST_FLOPS = 100_000
_TYPES = {HALVES: "fp16", SHORT: "bf16", ROUNDED: "tf32"}
CONV = registry.find("cuda", "conv", "nhwc_fp16")


def _richest(rung: Rung) -> Case:
    """The case with most to say of the rung, of those that are quickly computed thread by thread."""
    quick = (case for case in small(rung.op) if case.params.flops <= MOST_FLOPS)
    return max((c for c in quick if cuda_cases.takes(rung, c.params)), key=lambda c: len(c.params.words))


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("rung", "reads", "writes"), WAYS, ids=lambda of: getattr(of, "name", str(of)))
def test_a_rung_is_right_in_every_layout(
    rung: Rung, reads: int, writes: int, hosted: on_the_host.Hosted
) -> None:
    as_laid_out = rung.in_layouts(rung.reads[reads], rung.writes[writes])
    case = _richest(as_laid_out)
    coarsest = _TYPES.get(as_laid_out.written_layout, rung.precision)  # a kernel in float32 may write others
    assert cuda_cases.differs(answer(hosted, as_laid_out, case), case, coarsest) == ""


@pytest.mark.sampled(6, "longest")
@pytest.mark.parametrize("rung", [r for r in ALL if r.op == "qconv"], ids=lambda rung: rung.name)
def test_convolutions_of_bytes_are_right_in_every_layout(rung: Rung) -> None:
    """On the simulated GPU: windows beyond the image, groups, zero points of both, sums in parts; a number
    of channels that no chunk divides."""
    for number, (reads, writes) in enumerate(itertools.product(rung.reads, rung.writes)):
        as_laid_out = rung.in_layouts(reads, writes)
        able = [case for case in small("qconv") if cuda_cases.takes(as_laid_out, case.params)]
        for case in able[number::4]:
            outcome = check.ran_in_layouts(as_laid_out, case, number)
            assert not outcome.wrong, (outcome.wrong, reads, writes, case.params.words)
            assert not outcome.findings, (outcome.findings, reads, writes, case.params.words)


def _case(params: Conv) -> Case:
    return cuda_cases.conv_case(np.random.default_rng(0), params)


def test_partial_sums_are_added_into_chunks(
    hosted: on_the_host.Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nhwc_tiles, "fit", lambda *_: (tensor_tiles.CONV_TILES[-1], 3))
    params = Conv(1, 24, 7, 5, 18, 3, 3, 4, 3, 2, 2, 1, 1, 1, 1, bias=True, activation="relu")
    rung = CONV.in_layouts(PLAIN, HALVES)
    assert launch.launch(params, rung).defines["PARTS"] == 3
    case = _case(params)
    assert cuda_cases.differs(answer(hosted, rung, case), case, "fp16") == ""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["nhwc_fp16", "nhwc_tf32"])
@pytest.mark.parametrize(
    "params", [Lrn(130, 13, 6, 5, 0.5), Lrn(7, 9, 35, 9, 0.5), Lrn(3, 33, 1, 4, beta=0.6)]
)
def test_sums_over_channels_reach_into_the_chunks_beside(
    name: str, params: Lrn, hosted: on_the_host.Hosted
) -> None:
    """With channels that no chunk divides; a window of nine takes whole chunks of four."""
    rung = registry.find("cuda", "lrn", name)
    x = np.random.default_rng(0).standard_normal(params.input_shapes[0]).astype(np.float32)
    case = Case(params, (x,), cuda_cases.normalised(params, x))
    for reads, writes in ((0, 1), (1, 0), (1, 1)):
        for at_end in (True, False):
            as_laid_out = rung.in_layouts(rung.reads[reads], rung.writes[writes])
            found = answer(hosted, as_laid_out, case, at_end)
            assert cuda_cases.differs(found, case, rung.precision) == "", (reads, writes)


PRODUCTS = [
    (rung, params)
    for rung in RUNGS
    for m, n, k in ((1, 13, 77), (3, 20, 1030), (7, 9, 8), (130, 21, 45))
    for params in [Gemm(m, n, k, trans_b=True, alpha=0.5, beta=2.0, bias=True, activation="tanh")]
    if rung.op == "gemm" and rung.refusal(params) is None
]


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("rung", "params"), PRODUCTS, ids=lambda it: getattr(it, "name", None))
def test_products_read_and_write_chunks_that_no_size_divides(
    rung: Rung, params: Gemm, hosted: on_the_host.Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cuda_cases.gemm_case(np.random.default_rng(0), params)
    chunks = rung.reads[1]
    for parts in (1, 2):
        monkeypatch.setattr(tensor_tiles, "fit", lambda *_, of=parts: (tensor_tiles.GEMM_TILES[-1], of))
        for reads, writes in ((chunks, PLAIN), (PLAIN, chunks), (chunks, chunks)):
            for at_end in (True, False):
                found = answer(hosted, rung.in_layouts(reads, writes), case, at_end)
                assert cuda_cases.differs(found, case, rung.precision) == "", (reads, writes, parts)


def test_few_channels_are_folded_and_the_sum_is_the_same(hosted: on_the_host.Hosted) -> None:
    params = Conv(1, 3, 20, 23, 9, 5, 6, 6, 7, 3, 3, 1, 2, 0, 1, bias=True)
    assert nhwc.folding(params, 8) == launch.launch(params, CONV).defines["FOLD"] == 3
    case = _case(params)
    assert cuda_cases.differs(answer(hosted, CONV, case), case, "fp16") == ""


def test_folding_is_for_few_channels_and_a_stride() -> None:
    alexnet = Conv(1, 3, 227, 227, 96, 11, 11, 55, 55, 4, 4)
    assert nhwc.folding(alexnet, 8) == 4
    for other in ({"c": 64}, {"stride_w": 3}, {"dilation_h": 2}, {"stride_h": 1, "stride_w": 1}):
        assert nhwc.folding(replace(alexnet, **other), 8) == 1


def test_groups_that_are_no_whole_chunks_are_refused_in_words() -> None:
    params = Conv(1, 20, 9, 9, 32, 3, 3, 7, 7, group=2)
    assert launch.refusal(params, CONV) is None
    assert "groups of 10" in str(launch.refusal(params, CONV.in_layouts(HALVES, PLAIN)))
    params = replace(params, c=32, m=20)
    assert "groups of 10" in str(launch.refusal(params, CONV.in_layouts(PLAIN, HALVES)))


def test_what_32_bits_cannot_count_is_refused() -> None:
    params = Conv(2**18, 64, 64, 64, 64, 3, 3, 62, 62)
    assert "32 bits" in str(launch.refusal(replace(params, n=2**20), CONV))
    for rung in (rung for rung in RUNGS if rung.op in ("pool", "lrn", "lrn_pool")):
        window = Pool("max", 2**27, 8, 64, 64, 2, 2, 32, 32, 2, 2)
        sums = Lrn(2**27, 8, 4096, 5)
        window = replace(window, dtype=rung.needs.get("dtype", ["float32"])[0])
        given = {"pool": window, "lrn": sums, "lrn_pool": LrnPool.of(sums, window)}[rung.op]
        assert "32 bits" in str(launch.refusal(given, rung))


def test_a_tensor_goes_there_and_back() -> None:
    array = np.random.default_rng(0).integers(-9, 9, (2, 11, 3, 4)).astype(np.float32)
    for layout, channels in ((HALVES, 16), (ROUNDED, 12)):
        held = lying.as_it_lies(layout, array)
        assert held.shape == (2, 3, 4, channels)
        assert held.nbytes == layouts.nbytes(layout, array.shape)
        np.testing.assert_array_equal(lying.brought_back(held, array.shape), array)


def test_many_images_are_laid_out_a_few_at_a_time(
    hosted: on_the_host.Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = Conv(5, 4, 6, 5, 9, 3, 3, 4, 3, activation="relu")
    monkeypatch.setattr(nhwc, "_KEPT_NBYTES", 2 * 16 * 6 * 5)
    case = _case(params)
    for writes in (PLAIN, HALVES):
        rung = CONV.in_layouts(PLAIN, writes)
        how = launch.launch(params, rung)
        assert [stage.function for stage in how.stages("conv")] == ["conv_lay_out", "conv"] * 3
        assert how.workspace_nbytes == 2 * 16 * 6 * 5
        assert cuda_cases.differs(answer(hosted, rung, case), case, "fp16") == ""
