"""Every rung of the CUDA ladder against answers in float64, on a GPU."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from kernels import launch, registry
from kernels.estimates import nhwc_tiles, tensor_tiles
from kernels.languages.known import languages
from kernels.launch import products, sliced, tensor
from kernels.ops import OPS
from kernels.ops.conv import Conv
from kernels.ops.unary import Unary
from kernels.precision import PRECISIONS
from tests.kernels import cuda_cases, elementwise
from tests.kernels.cuda_device import Device

EVERY = [rung for op in OPS for rung in registry.rungs("cuda", op)]
# Of those in another language the ones whose compiler is here.
RUNGS = [rung for rung in EVERY if not rung.language or not languages()[rung.language].unavailable()]
TILED = [
    (rung, tile)
    for rung in RUNGS
    for tile in (*launch.TILES.get(rung.launch, ()), *tensor.tiles(rung), *sliced.tiles(rung))
]

# CuPy, which carries the arrays here, may be behind NumPy's newest.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@cache
def _cases(op: str) -> tuple[cuda_cases.Case, ...]:
    return tuple(cuda_cases.cases(op))


def _in_numbers(case: cuda_cases.Case) -> bool:
    """Whether it answers in numbers that may be NaN, of such and of conditions."""
    given = [array.dtype for array in case.inputs if array is not None]
    return case.dtype.kind == "f" and all(dtype.kind in "fb" for dtype in given)


def _failures(device: Device, rung: registry.Rung) -> tuple[int, list[str]]:
    """How many cases the rung took, and what was wrong with which."""
    tried, wrong = 0, []
    for case in _cases(rung.op):
        if not cuda_cases.takes(rung, case.params, device.capability):
            continue
        if not device.compiles(rung, case.params):
            pytest.skip(f"{rung.language} does not compile here")
        tried += 1
        actual, spilled = device.run(rung, case.params, case.inputs, case.expected.shape, case.dtype)
        if problem := spilled or cuda_cases.differs(actual, case, rung.precision):
            wrong.append(f"{case.params}: {problem}")
    return tried, wrong


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.label.replace(" ", "-"))
def test_rung_agrees_with_float64(device: Device, rung: registry.Rung) -> None:
    tried, wrong = _failures(device, rung)
    assert tried, "no case fits this rung"
    assert not wrong, f"{rung.label}: {len(wrong)} of {tried} cases\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("rung", "tile"),
    TILED,
    ids=lambda v: v.label.replace(" ", "-") if hasattr(v, "op") else "x".join(map(str, v)),
)
def test_every_tile_agrees_with_float64(
    device: Device, rung: registry.Rung, tile: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Left to itself, the launch shape gives small problems small tiles.
    parts = 3 if rung.launch.endswith(("_split", "_tensor", "_sliced")) else 1
    monkeypatch.setattr(products, "fit", lambda *_: (tile, parts))
    monkeypatch.setattr(tensor_tiles, "fit", lambda *_: (tile, parts))
    monkeypatch.setattr(nhwc_tiles, "fit", lambda *_: (tile, parts))
    monkeypatch.setattr(sliced, "fit", lambda *_: (tile, parts))
    tried, wrong = _failures(device, rung)
    assert not wrong, f"{rung.label}: {len(wrong)} of {tried} cases\n" + "\n".join(wrong)


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.label.replace(" ", "-"))
def test_same_inputs_give_the_same_bits(device: Device, rung: registry.Rung) -> None:
    # A race shows as a result that moves between runs of the same inputs.
    case = next(c for c in _cases(rung.op) if cuda_cases.takes(rung, c.params, device.capability))
    if not device.compiles(rung, case.params):
        pytest.skip(f"{rung.language} does not compile here")
    outcome = [
        device.run(rung, case.params, case.inputs, case.expected.shape, case.dtype)[0].tobytes()
        for _ in range(10)
    ]
    assert len(set(outcome)) == 1


@pytest.mark.parametrize(
    "rung",
    [rung for rung in RUNGS if rung.op not in ("cast", "transpose", "pad")],
    ids=lambda rung: rung.label.replace(" ", "-"),
)
def test_nan_passes_through(device: Device, rung: registry.Rung) -> None:
    # All inputs NaN: every activation, maximum and sum has to say so in every element.
    seen = set()
    for case in filter(_in_numbers, _cases(rung.op)):
        halves = [getattr(case.params, half, case.params) for half in ("conv", "pool")]
        kind = tuple(getattr(half, name, None) for half in halves for name in ("kind", "activation"))
        if kind in seen or not cuda_cases.takes(rung, case.params, device.capability):
            continue
        if not device.compiles(rung, case.params):
            pytest.skip(f"{rung.language} does not compile here")
        seen.add(kind)
        inputs = tuple(None if a is None else np.full_like(a, np.nan) for a in case.inputs)
        if rung.op == "grid_sample":  # a place that is NaN lies beyond the image
            inputs = (inputs[0], np.zeros_like(case.inputs[1]))
        actual, _ = device.run(rung, case.params, inputs, case.expected.shape, case.dtype)
        if rung.op == "unary":  # some of its functions answer NaN with a number
            np.testing.assert_array_equal(
                np.isnan(actual), np.isnan(elementwise.answer(case.params, inputs)), str(case.params)
            )
            continue
        # A window that lies in the padding alone reads nothing: the convolution there is the bias.
        share = float(np.isnan(actual).mean())
        assert share == 1.0 or (rung.op in ("conv", "conv_pool") and share > 0.5), (
            f"{case.params}: {share:.0%} NaN"
        )
    if not seen:
        pytest.skip("answers in no numbers that may be NaN")


def test_naive_kernels_agree_past_two_to_the_31_elements(device: Device) -> None:
    # Offsets, not only counts: the last elements lie beyond what 32 bits reach.
    import cupy

    size = 2**31 + 4099
    free, _ = cupy.cuda.runtime.memGetInfo()
    if free < 3 * 4 * size:
        pytest.skip("takes 26 GB of device memory")
    from kernels import nvrtc

    given = Unary("relu", size)
    rung = registry.find("cuda", "unary", 1)
    how = launch.launch(given, rung)
    kernel = cupy.RawModule(path=str(nvrtc.compile_rung(rung, device.arch, how.defines))).get_function(
        "unary"
    )
    x = cupy.ones(size, np.float32)
    y = cupy.full(size, np.nan, np.float32)
    x[-3:] = cupy.asarray([5.0, -7.0, 9.0], np.float32)
    kernel(how.grid, how.block, how.arguments([x.data.ptr], y.data.ptr, 0, rung))
    assert cupy.asnumpy(y[-4:]).tolist() == [1.0, 5.0, 0.0, 9.0]
    assert float(y[: 2**31].min()) == 1.0
    del x, y
    cupy.get_default_memory_pool().free_all_blocks()


def test_large_batches_agree_with_the_plain_kernel(device: Device) -> None:
    # LeNet-5's first layer at 10,000 images and AlexNet's second at 64, past one wave of blocks and grid.y.
    rng = np.random.default_rng(5)
    first = Conv(10_000, 1, 28, 28, 6, 5, 5, 24, 24, bias=True, activation="tanh")
    second = Conv(64, 96, 27, 27, 256, 5, 5, 27, 27, 1, 1, 2, 2, 2, 2, group=2, bias=True)
    for given in (first, replace(second, activation="relu")):
        x = rng.standard_normal((given.n, given.c, given.h, given.w), np.float32)
        weight = rng.standard_normal((given.m, given.c // given.group, given.kh, given.kw), np.float32)
        bias = rng.standard_normal(given.m, np.float32)
        shape = (given.n, given.m, given.out_h, given.out_w)
        answers = []
        ladder = [
            rung
            for rung in registry.rungs("cuda", "conv")
            if cuda_cases.takes(rung, given, device.capability) and device.compiles(rung, given)
        ]
        for rung in ladder:
            actual, spilled = device.run(rung, given, (x, weight, bias), shape, np.dtype(np.float32))
            assert not spilled
            answers.append(actual)
        for rung, actual in zip(ladder[1:], answers[1:], strict=True):
            error = np.linalg.norm(actual - answers[0]) / np.linalg.norm(answers[0])
            bound = 2e-6 if rung.precision == "fp32" else PRECISIONS[rung.precision].bound
            assert error < bound, f"{rung.label} on {given}: {error:.1e}"
