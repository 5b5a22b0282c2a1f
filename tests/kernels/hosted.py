"""A CUDA rung's answer, compiled for the host: each of its buffers stands between pages that nobody may
touch, what it does not write stays NaN."""

from __future__ import annotations

from functools import cache

import numpy as np

from engine.cuda.stages import kernel_calls
from kernels import launch, layouts
from kernels.layouts import PLAIN
from kernels.registry import Rung
from tests.bench.judge.on_the_host import Guarded, Hosted
from tests.kernels import cuda_cases, lying
from tests.kernels.cuda_cases import Case

MOST_FLOPS = 400_000  # of a case, which is computed thread by thread


@cache
def small(op: str, most_outputs: int | None = None) -> tuple[Case, ...]:
    """The cases of an operator that are few computations: drawn and answered once, not for each of its rungs.
    No test may change one."""
    return tuple(
        case
        for case in cuda_cases.cases(op)
        if case.params.flops <= MOST_FLOPS and (most_outputs is None or case.expected.size <= most_outputs)
    )


def answer(hosted: Hosted, rung: Rung, case: Case, at_end: bool = True) -> np.ndarray:
    """As the rung is compiled to read and write. at_end: whether buffers end, or begin, where a page does."""
    how = launch.launch(case.params, rung)
    module = hosted.RawModule(path=str(hosted.compiled(rung, "sm_90", how.defines)))
    held = [how.packed[i](a) if i in how.packed else a for i, a in enumerate(case.inputs) if a is not None]
    if rung.read_layout != PLAIN:
        images = held[0].reshape(case.params.laid[0])
        held[0] = lying.as_it_lies(rung.read_layout, images)
    # A texture begins where textures may, as the pages do; constants are copied from the device's memory.
    guarded = [Guarded(array, at_end and not how.texture) for array in held]
    addresses = [each.address for each in guarded]
    if how.constant:
        index = how.constant[1]
        constant = hosted.asarray(held[index])
        addresses[index] = int(constant.data.ptr)
    writes, shape = rung.written_layout, case.params.laid[1]
    # Nothing that was there before may be taken for an answer.
    nbytes = case.expected.size * case.dtype.itemsize if writes == PLAIN else layouts.nbytes(writes, shape)
    y = Guarded(np.full(nbytes, 0xFF, np.uint8), at_end)
    scratch = Guarded(np.full(how.workspace_nbytes or 0, 0xFF, np.uint8), at_end)
    for start in kernel_calls(hosted, module, rung, how, addresses, y.address, scratch.address):
        start()
    hosted.device.synchronize()
    if writes == PLAIN:
        return y.bytes.view(case.dtype).reshape(case.expected.shape).copy()
    images, channels, height, width = layouts.as_images(shape)
    filled = y.bytes.view(lying.of_case(writes, case.dtype)).reshape(images, height, width, -1)
    assert not filled[..., channels:].any(), "what fills a chunk up is zero, for readers multiply it"
    return lying.brought_back(filled, shape).reshape(case.expected.shape)
