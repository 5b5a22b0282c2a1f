"""Convolutions of small images whose blocks have a slice of the channels each, on the host: clusters that
complete each other's sums, bands that end within the image, slices of different length. On the device they
are run by tests/kernels/test_cuda_rungs.py."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from engine.options import Options
from engine.planning import choices
from engine.planning.planner import plan
from kernels import launch, nvrtc, packing, registry
from kernels.errors import UnsupportedError
from kernels.estimates import strip_slices as estimate
from kernels.estimates.image_slices import grid
from kernels.launch import image_slices
from kernels.ops import ACTIVATIONS
from kernels.ops.conv import Conv
from kernels.registry import Rung
from tests import sampling
from tests.bench.judge import on_the_host
from tests.engine.planning.test_layouts import network
from tests.kernels import cuda_cases
from tests.kernels.hosted import answer

pytestmark = pytest.mark.slow

RUNGS = [rung for rung in registry.rungs("cuda", "conv") if rung.launch == "conv_image_slices"]
SPLIT = [rung for rung in RUNGS if "OPERANDS" in rung.defines]

# µs of layers of AlexNet, one image, on an NVIDIA H100: docs/results/speed-tried.md.
MEASURED = {
    "slices_fp16": {"conv2": 6.1, "conv4": 5.2, "conv5": 4.1},
    "slices_tf32": {"conv2": 10.3, "conv4": 7.0, "conv5": 5.5},
    "slices_split": {"conv2": 11.9, "conv4": 8.5, "conv5": 6.8},
}

CASES = {
    "alexnet-3": Conv(1, 80, 7, 7, 48, 3, 3, 7, 7, 1, 1, 1, 1, 1, 1, bias=True, activation="relu"),
    "alexnet-2": Conv(1, 48, 8, 7, 64, 5, 5, 8, 7, 1, 1, 2, 2, 2, 2, group=2, bias=True),
    "odd": Conv(3, 37, 5, 11, 21, 3, 2, 0, 0, 1, 1, 1, 0, 0, 1, bias=True, activation="tanh"),
    "batch": Conv(7, 20, 4, 3, 17, 1, 1, 0, 0, activation="sigmoid"),
    "strides": Conv(1, 24, 15, 17, 16, 7, 7, 0, 0, 2, 3, 3, 2, 3, 3, bias=True),
    "dilation": Conv(2, 33, 13, 12, 19, 3, 3, 0, 0, 1, 2, 2, 0, 1, 3, 2, 3, bias=True),
    "groups": Conv(1, 72, 6, 5, 48, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, group=3, bias=True, activation="relu6"),
    "rows": Conv(1, 16, 3, 150, 16, 1, 3, 0, 0, 1, 1, 0, 1, 0, 1),  # longer than a block has threads for
    "one": Conv(1, 1, 1, 1, 1, 1, 1, 1, 1, bias=True),
}


def _case(params: Conv, seed: int = 0) -> cuda_cases.Case:
    return cuda_cases.conv_case(np.random.default_rng(seed), params)


def _alexnet(images: int) -> dict[str, Conv]:
    """Its second convolution to its fifth."""
    three = Conv(images, 256, 13, 13, 384, 3, 3, 13, 13, 1, 1, 1, 1, 1, 1, bias=True, activation="relu")
    wide = Conv(images, 96, 27, 27, 256, 5, 5, 27, 27, 1, 1, 2, 2, 2, 2, group=2, bias=True)
    return {
        "conv2": replace(wide, activation="relu"),
        "conv3": three,
        "conv4": replace(three, c=384, group=2),
        "conv5": replace(three, c=384, m=256, group=2),
    }


@pytest.mark.sampled(14)
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
@pytest.mark.parametrize("name", CASES)
def test_every_tap_reads_the_same_pixels_shifted(rung: Rung, name: str, hosted: on_the_host.Hosted) -> None:
    case, ran = _case(CASES[name]), 0
    ways = dict.fromkeys([(rung.reads[-1], rung.writes[0]), (rung.reads[0], rung.writes[-1])])
    for number, (reads, writes) in enumerate(ways):
        as_laid_out = rung.in_layouts(reads, writes)
        if launch.refusal(case.params, as_laid_out):
            continue
        found = answer(hosted, as_laid_out, case, at_end=number % 2 == 0)
        assert cuda_cases.differs(found, case, rung.precision) == "", (reads, writes)
        ran += 1
    assert ran


@pytest.mark.sampled(12)
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
@pytest.mark.parametrize(
    ("strips", "ranks", "band", "tiles"),
    [(1, 1, 7, 2), (2, 2, 3, 2), (1, 3, 4, 4), (4, 5, 2, 2), (3, 5, 7, 2), (2, 4, 1, 2), (1, 5, 7, 8)],
)
def test_a_cluster_completes_a_sum_however_it_is_cut(
    rung: Rung,
    strips: int,
    ranks: int,
    band: int,
    tiles: int,
    hosted: on_the_host.Hosted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = _case(CASES["alexnet-3"])
    cut = estimate.Cut(strips, ranks, band, 4, tiles)
    monkeypatch.setattr(estimate, "fit", lambda *_: cut)
    as_laid_out = rung.in_layouts(rung.reads[-1], rung.writes[-1])
    assert launch.launch(case.params, as_laid_out).grid == (-(-3 // strips) * ranks, -(-7 // band), 1)
    found = answer(hosted, as_laid_out, case)
    assert cuda_cases.differs(found, case, rung.precision) == ""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_every_activation_leaves_zeros_where_a_chunk_is_filled_up(
    activation: str | None, hosted: on_the_host.Hosted
) -> None:
    case = _case(replace(CASES["odd"], n=1, activation=activation))
    for rung in RUNGS:
        found = answer(hosted, rung.in_layouts(rung.reads[0], rung.writes[-1]), case)
        assert cuda_cases.differs(found, case, rung.precision) == ""


@pytest.mark.sampled(4, "long")
def test_what_lies_beside_a_window_has_no_say(hosted: on_the_host.Hosted) -> None:
    case = _case(replace(CASES["alexnet-3"], bias=False, activation=None))
    x = case.inputs[0]
    assert x is not None
    x[..., 3] = np.inf
    for rung in RUNGS:
        found = answer(hosted, rung, case)
        assert np.isfinite(found[..., :2]).all()
        assert np.isfinite(found[..., 5:]).all()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rung", SPLIT, ids=lambda rung: rung.name)
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_numbers_as_sums_of_two_are_scaled_by_the_largest_that_a_block_sees(
    rung: Rung, scale: float, hosted: on_the_host.Hosted
) -> None:
    case = _case(replace(CASES["alexnet-3"], n=3, bias=False, activation=None))
    plain, x = answer(hosted, rung, case), case.inputs[0]
    assert np.linalg.norm(plain - case.expected) < 1e-6 * np.linalg.norm(case.expected)
    assert x is not None
    x[1] *= np.float32(scale)
    x[2] = 0
    found = answer(hosted, rung, case)
    np.testing.assert_array_equal(found[0], plain[0])
    assert np.linalg.norm(found[1].astype(np.float64) / scale - plain[1]) < 1e-6 * np.linalg.norm(plain[1])
    assert not found[2].any()


@pytest.mark.parametrize(("precision", "values"), [("fp16", 2), ("tf32", 1), ("fp32-tc", 2)])
def test_weights_lie_as_the_lanes_of_an_instruction_take_them(precision: str, values: int) -> None:
    group, wide, channels, kh, kw, tile = 2, 21, 19, 2, 3, 32
    numbers = np.arange(group * wide * channels * kh * kw, dtype=np.float32) % 2039 + 1
    weight = numbers.reshape(group * wide, channels, kh, kw)
    packed, steps = packing.strips(weight, group, precision, tile), -(-channels // (8 * values))
    rest: np.ndarray
    shape = (group, tile // 16, steps, kh * kw)
    if precision == "fp32-tc":
        halves, back = packed[: -4 * group * tile].view(np.float16), packed[-4 * group * tile :]
        both = halves.reshape(*shape, 2, 32, 8).astype(np.float32).sum(axis=-3)
        scale = back.view(np.float32).reshape(group, tile // 16, 16)
        channel = np.arange(32)[:, None] // 4 + np.array([0, 0, 8, 8, 0, 0, 8, 8])
        rest = both * scale[:, :, channel][:, :, None, None]
    else:
        rest = packed.astype(np.float32)
    assert rest.shape == (*shape, 32, 4 * values)
    for g, o, c, tap in itertools.product(range(group), range(wide), range(channels), range(kh * kw)):
        step, word, value = c // (8 * values), c // values % 8, c % values
        lane, register = o % 8 * 4 + word % 4, word // 4 * 2 + o % 16 // 8
        place = (g, o // 16, step, tap, lane, register * values + value)
        assert rest[place] == weight[g * wide + o, c, tap // kw, tap % kw]
        rest[place] = 0
    assert not rest.any(), "beside the weights everything is zero"


@pytest.mark.sampled(6)
@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_blocks_of_most_threads_have_registers_enough(rung: Rung, monkeypatch: pytest.MonkeyPatch) -> None:
    params = Conv(2, 32, 56, 56, 64, 3, 3, 56, 56, 1, 1, 1, 1, 1, 1, bias=True)
    of = image_slices.sums(params, rung)
    ways = list(estimate.cuts(of, *image_slices.limits(rung)))
    most = {(cut.strips, cut.tiles): cut for cut in sorted(ways, key=lambda cut: (cut.warps, cut.ranks))}
    for cut in sampling.some(f"cuts of {rung.name}", list(most.values()), 2):
        monkeypatch.setattr(estimate, "fit", lambda *_, cut=cut: cut)
        how = launch.launch(params, rung)
        used = nvrtc.resources(nvrtc.compile_rung(rung, "sm_90", how.defines), "conv")
        assert used is not None
        assert used.spill_nbytes <= (96 if rung in SPLIT else 0), f"{cut}: {used}"
        assert used.registers * how.block[0] <= 65536


@pytest.mark.sampled(12)
@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
@pytest.mark.parametrize("images", [1, 8])
def test_sums_stay_in_registers_and_the_rest_in_shared_memory(rung: Rung, images: int) -> None:
    layers = list(enumerate(_alexnet(images).values()))
    for number, params in sampling.some(f"layers of {rung.name}", layers, 1):
        as_laid_out = rung.in_layouts(rung.reads[number % len(rung.reads)], rung.writes[-1])
        how = launch.launch(params, as_laid_out)
        # No text asks which of the two it is, so that it is assembled alike for both: by turns.
        arch = ("sm_90", "sm_90a")[(images == 8) ^ number // 2 % 2]
        used = nvrtc.resources(nvrtc.compile_rung(as_laid_out, arch, how.defines), "conv")
        assert used is not None
        # With two operands a number that is needed once before the sums and once behind them.
        assert used.spill_nbytes <= (96 if rung in SPLIT else 0), f"{used}"
        assert used.registers * how.block[0] <= 65536
        assert used.shared_nbytes + how.shared_nbytes <= 227 << 10


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_small_batches_of_alexnet_have_it_to_choose_from(rung: Rung) -> None:
    for images, there in ((1, True), (8, True), (64, False)):
        for name, params in _alexnet(images).items():
            found = choices.candidates("cuda", params, rung.precision, True, (9, 0))
            assert (rung in found) == there, (name, images)
            assert rung != found[0], "it is taken where it was timed, or named"
    first = Conv(1, 3, 227, 227, 96, 11, 11, 55, 55, 4, 4, bias=True)
    assert rung not in choices.candidates("cuda", first, rung.precision, True, (9, 0))
    assert rung.refusal(_alexnet(1)["conv3"], (8, 0))


@pytest.mark.parametrize("rung", [r for r in RUNGS if len(r.reads) > 1], ids=lambda rung: rung.name)
def test_it_stands_between_steps_that_keep_channels_side_by_side(rung: Rung) -> None:
    made = plan(network(), 3, "cuda", rung.precision, Options(rungs={"conv2": rung.name, "conv3": rung.name}))
    second, third = (step for step in made.steps if step.rung == rung.name)
    assert second.writes == third.reads == rung.writes[1]


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
@pytest.mark.parametrize("images", [1, 8])
def test_an_image_of_alexnet_fills_most_of_the_device_once(rung: Rung, images: int) -> None:
    for params in _alexnet(images).values():
        of = image_slices.sums(params, rung)
        cut = estimate.fit(of, *image_slices.limits(rung))
        assert cut is not None
        assert estimate.clocks(of, cut) == min(
            estimate.clocks(of, other) for other in estimate.cuts(of, *image_slices.limits(rung))
        )
        blocks = np.prod(grid(of, cut))
        assert blocks >= 60
        if images == 1:
            assert blocks <= 132
            assert estimate.nbytes(of, cut) <= 128 << 10


@pytest.mark.parametrize("rung", [r for r in RUNGS if r.name in MEASURED], ids=lambda rung: rung.name)
def test_the_estimate_is_near_what_launches_took(rung: Rung) -> None:
    for name, took in MEASURED[rung.name].items():
        us = launch.launch(_alexnet(1)[name], rung).microseconds
        assert us == pytest.approx(took, rel=0.05), name


def test_what_does_not_fit_is_refused_in_words() -> None:
    for rung in RUNGS:
        with pytest.raises(UnsupportedError, match="shared memory"):
            launch.launch(Conv(1, 16, 1, 8000, 16, 1, 101, 1, 7900), rung)
        with pytest.raises(UnsupportedError, match="up to 16 images"):
            launch.launch(replace(CASES["batch"], n=17, out_h=4, out_w=3), rung)
        if len(rung.reads) > 1:
            of_chunks = rung.in_layouts(rung.reads[1], rung.writes[0])
            with pytest.raises(UnsupportedError, match="whole chunks"):
                launch.launch(Conv(1, 6, 5, 5, 32, 1, 1, 5, 5, group=2), of_chunks)
