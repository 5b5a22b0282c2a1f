"""The bytes of a plan's steps: weights as their rungs pack them, tensors in the types that the plan gave."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cuda.calls import device_constants
from engine.cuda.stages import Launches
from engine.graph.plan import Plan, Step
from engine.options import Options
from engine.planning import traffic
from engine.planning.planner import plan
from kernels.layouts import HALVES
from kernels.ops import OPS, Params
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.pool import Pool
from kernels.precision import NAMES, PRECISIONS
from tests.engine.planning.test_layouts import NHWC, network, products
from tests.kernels import drawn, drawn_rows

pytestmark = pytest.mark.slow

BATCH, MANY, WIDE = 3, 16, 512
BIAS = ENDS = 4
COLUMN = 4  # what brings a scaled column back

# By rung of a product: its precision, and bytes of a weight and for each column of them.
PACKED = {
    "warp_columns": ("fp32", 4, 0),
    "sliced_sum": ("fp32", 4, 0),
    "tensor_tf32": ("tf32", 4, 0),
    "tensor_3xtf32": ("fp32-tc", 4, 0),
    "tensor_fp16": ("fp16", 2, 0),
    "half_columns": ("fp16", 2, 0),
    "streamed_fp16": ("fp16", 2, 0),
    "streamed_tf32": ("tf32", 4, 0),
    "scaled_columns": ("tf32", 2, COLUMN),
    "streamed_scaled": ("tf32", 2, COLUMN),
    "wgmma_scaled": ("tf32", 2, COLUMN),
    "wgmma_split": ("fp32-tc", 4, COLUMN),
    "columns_24_bits": ("fp32-tc", 3, COLUMN),
    "streamed_24_bits": ("fp32-tc", 3, COLUMN),
}  # fmt: skip


def counted(made: Plan) -> tuple[Step, ...]:
    """As a session counts them, of weights that were packed; the same as without any."""
    launches = [Launches(Options(tuned=False)).of_step(step)[1] for step in made.steps]
    constants, packed = device_constants(made, launches)
    steps = traffic.with_traffic(
        made.steps, [{i: constants[key].nbytes for i, key in its.items()} for its in packed]
    )
    assert traffic.planned_traffic(made, launches) == steps
    return steps


@pytest.mark.parametrize("rung", PACKED)
def test_a_weight_counts_as_its_rung_reads_it(rung: str) -> None:
    precision, weight, column = PACKED[rung]
    how = Options(rungs={"fc2": rung}, tuned=False, one_kernel=False, layouts="none")
    images = MANY if rung.startswith(("tensor", "wgmma")) else BATCH
    made = plan(products((WIDE, WIDE, WIDE, WIDE)), images, "cuda", precision, how)
    step = next(step for step in counted(made) if step.name == "fc2")
    ends = 2 * images * WIDE * ENDS
    assert step.nbytes == ends + WIDE * BIAS + WIDE * WIDE * weight + WIDE * column
    assert step.nbytes >= step.params.least_nbytes(precision)


def test_a_tensor_counts_in_the_type_and_layout_that_it_has() -> None:
    how = Options(rungs=NHWC, tuned=False, one_kernel=False)
    made = plan(network(), BATCH, "cuda", "fp16", how)
    steps = {step.name: step for step in counted(made)}
    norm = steps["norm1"]
    assert norm.reads == HALVES
    shape = norm.params.output_shape
    images, channels, height, width = norm.params.input_shapes[0]
    filled = -(-channels // 8) * 8
    assert norm.nbytes == 2 * images * filled * height * width + 4 * math.prod(shape)


def test_what_stays_in_float32_counts_as_that_in_any_precision() -> None:
    made = plan(products((WIDE, WIDE, WIDE, WIDE)), BATCH, "cpu", "fp32", Options(tuned=False))
    assert [step.nbytes for step in made.steps] == [step.params.nbytes for step in made.steps]
    named = Options(rungs={"fc2": "warp_columns"}, tuned=False, one_kernel=False)
    made = plan(products((WIDE, WIDE, WIDE, WIDE)), BATCH, "cuda", "fp16", named)
    step = next(step for step in counted(made) if step.name == "fc2")
    assert step.moved == step.params.nbytes, "a rung of fp32 in a plan of fp16"


STRATEGIES = {
    op: strategy
    for op in OPS
    if (strategy := getattr(drawn, op, None) or getattr(drawn_rows, op, None)) is not None
}


@pytest.mark.parametrize("op", STRATEGIES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_the_least_bytes_are_fewer_the_coarser_the_precision(op: str, data: st.DataObject) -> None:
    p: Params = data.draw(STRATEGIES[op]())
    assert p.nbytes_at(4, 4) == p.nbytes
    assert 0 <= p.unread <= p.nbytes
    found = [p.least_nbytes(precision) for precision in NAMES]
    assert found == sorted(found, reverse=True)
    for least, precision in zip(found, NAMES, strict=True):
        assert p.nbytes * PRECISIONS[precision].weight_nbytes // 4 - p.unread <= least
        assert least <= p.least_nbytes(precision, given=True) <= p.nbytes


def test_the_least_bytes_by_hand() -> None:
    gemm = Gemm(m=2, n=30, k=50, trans_b=True, bias=True)
    ends, weights = 2 * 50 + 2 * 30, 30 * 50 + 30
    assert [gemm.least_nbytes(precision) for precision in NAMES] == [
        4 * (ends + weights),
        4 * ends + 3 * weights,
        4 * ends + 2 * weights,
        2 * (ends + weights),
        2 * (ends + weights),
    ]
    assert gemm.least_nbytes("fp16", given=True) == 4 * ends + 2 * weights
    conv = Conv(n=1, c=4, h=5, w=5, m=8, kh=3, kw=3, out_h=3, out_w=3)
    assert conv.least_nbytes("tf32") == 4 * (100 + 72) + 2 * 288
    apart = replace(conv, stride_h=3, out_h=1)
    assert apart.unread == 4 * 4 * 2 * 5, "two rows that no window reaches"
    assert apart.least_nbytes("tf32") == 4 * (60 + 24) + 2 * 288


def test_windows_reach_what_they_reach() -> None:
    """Beside windows counted one by one: never more than they reach."""
    for size, kernel, stride, dilation, before, after in itertools.product(
        (5, 8), (1, 2, 3), (1, 2, 4), (1, 2), (0, 1), (0, 1)
    ):
        reach = (kernel - 1) * dilation + 1
        if size + before + after < reach or max(before, after) >= kernel:
            continue
        for ceil in (0, stride - 1):
            out = (size + before + after - reach + ceil) // stride + 1
            taken = {i * stride + j * dilation - before for i in range(out) for j in range(kernel)}
            found = Pool(
                "max", 1, 1, size, 1, kernel, 1, out, 1, stride, 1, before, 0, after, 0, dilation, 1
            ).least_read()
            there = len(taken & set(range(size)))
            assert found <= there
            if dilation == 1 and not before + after + ceil:
                assert found == there
