"""What the host does not show of convolutions by warpgroups: the blocks of a cluster that share a sum."""

from __future__ import annotations

import numpy as np
import pytest

from kernels import launch, layouts, registry
from kernels.estimates import wgmma_tiles
from kernels.layouts import PLAIN
from kernels.registry import Rung
from tests.kernels import cuda_cases, lying
from tests.kernels.cuda_device import Device
from tests.kernels.test_wgmma import CASES, RUNGS

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def _found(device: Device, rung: Rung, case: cuda_cases.Case) -> np.ndarray:
    """Whatever it is compiled to read and write."""
    shape, given = case.params.output_shape, list(case.inputs)
    if rung.read_layout != PLAIN:
        given[0] = lying.as_it_lies(rung.read_layout, given[0].reshape(case.params.input_shapes[0]))
    writes = rung.written_layout
    if writes == PLAIN:
        found, spilled = device.run(rung, case.params, tuple(given), shape, case.dtype)
    else:
        images, _, height, width = layouts.as_images(shape)
        dtype = layouts.dtype(writes)
        chunks = layouts.nbytes(writes, shape) // (images * height * width * dtype.itemsize)
        held, spilled = device.run(rung, case.params, tuple(given), (images, height, width, chunks), dtype)
        assert not held[..., shape[1] :].any(), "what fills a chunk up is zero, for readers multiply it"
        found = lying.brought_back(held, shape)
    assert not spilled
    return found.reshape(case.expected.shape)


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
@pytest.mark.parametrize("parts", [parts for parts in wgmma_tiles.CLUSTERS if parts > 1])
def test_the_blocks_of_a_cluster_add_up_their_sums(
    device: Device, rung: Rung, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if registry.find("cuda", "conv", rung.name).refusal(CASES[0], device.capability):
        pytest.skip("this device lacks its instructions")
    cut = wgmma_tiles.Cut(wgmma_tiles.ROWS, 128 if parts == 4 else 64, parts)
    monkeypatch.setattr(wgmma_tiles, "fit_clusters", lambda *_: cut)
    assert _agree(device, rung)


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
@pytest.mark.parametrize(
    "tile", [tile for tile in wgmma_tiles.CONV_WAVES if tile[0] > wgmma_tiles.ROWS], ids=str
)
def test_blocks_of_more_warpgroups_agree_with_float64(
    device: Device, rung: Rung, tile: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if rung.refusal(CASES[0], device.capability):
        pytest.skip("this device lacks its instructions")
    if tile not in wgmma_tiles.conv_waves(int(rung.defines.get("OPERANDS", 1))):
        pytest.skip(f"{rung.name} has no tiles of {tile}")
    monkeypatch.setattr(wgmma_tiles, "fit_clusters", lambda *_: wgmma_tiles.Cut(*tile, 1))
    assert _agree(device, rung)


def _agree(device: Device, rung: Rung) -> int:
    """How many ways to read and write a case there were; each is run three times."""
    ran = 0
    for params in CASES:
        case = cuda_cases.conv_case(np.random.default_rng(0), params)
        for reads, writes in [(r, w) for r in rung.reads for w in rung.writes]:
            as_laid_out = rung.in_layouts(reads, writes)
            if launch.refusal(params, as_laid_out):
                continue
            found = [_found(device, as_laid_out, case) for _ in range(3)]
            assert cuda_cases.differs(found[0], case, rung.precision) == "", (reads, writes)
            assert all(again.tobytes() == found[0].tobytes() for again in found), "the same bits"
            ran += 1
    return ran
