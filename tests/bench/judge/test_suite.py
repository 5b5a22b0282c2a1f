"""Every operator is tried on small shapes, whatever it is timed on."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path

import pytest

from bench import judge
from bench.measure.answers.samples import small_shapes
from kernels import registry
from kernels.ops import OPS, sized
from kernels.ops._quantized import Quantized
from kernels.ops.pad import PAD_MODES, Pad
from kernels.ops.pool import Pool
from kernels.ops.qadd import QAdd
from tests.bench.judge.planting import TIMED

pytestmark = pytest.mark.slow

SMALL = 1 << 16


@pytest.mark.parametrize("op", OPS)
def test_every_operator_has_small_shapes_and_more_than_one(op: str) -> None:
    assert set(TIMED) == set(OPS)
    first = registry.rungs("cpu", op)[0]
    shapes = small_shapes(first, TIMED[op])
    assert len(shapes) >= 3
    assert len({shape.params for shape in shapes}) == len(shapes)
    for shape in shapes:
        assert type(shape.params) is OPS[op]
        assert max(map(math.prod, (shape.params.output_shape, *shape.params.input_shapes))) <= SMALL
    assert 1 <= len(small_shapes(first, TIMED[op], quick=True)) <= len(shapes)


@pytest.mark.parametrize("mode", PAD_MODES)
def test_pads_of_every_mode_are_tried_on_several_axes(mode: str) -> None:
    shapes = small_shapes(registry.find("cpu", "pad", 1), Pad((3, 5), (0, 2), (1, 1), mode=mode))
    assert {shape.params.mode for shape in shapes} == {mode}
    assert {len(shape.params.shape) for shape in shapes} >= {1, 2, 4}
    assert any(shape.params.begin != shape.params.end for shape in shapes)
    assert (mode == "constant") == any(min(*s.params.begin, *s.params.end) < 0 for s in shapes)


def test_pools_of_the_whole_image_are_tried_on_several_images() -> None:
    p = Pool("average", 4, 20, 6, 6, 6, 6, 1, 1)
    tried = [shape.params for shape in small_shapes(registry.find("cpu", "pool", 1), p)]
    assert len({(q.h, q.w) for q in tried}) >= 3
    assert all((q.kh, q.kw) == (q.h, q.w) for q in tried)
    # One value each as well, of windows that dilation and padding make as wide: other images need others.
    dilated = Pool("max", 1, 4, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2)
    for shape in small_shapes(registry.find("cpu", "pool", 1), dilated):
        assert shape.params == sized(shape.params) or shape.tag == "ceil"


@pytest.mark.parametrize("kind", ["max", "average"])
def test_windows_that_reach_beyond_the_padded_image_are_tried(kind: str) -> None:
    p = replace(TIMED["pool"], kind=kind)
    assert isinstance(p, Pool)
    tried = [shape.params for shape in small_shapes(registry.find("cpu", "pool", 1), p)]
    assert any((q.out_h - 1) * q.stride_h + q.kh > q.h + q.pad_top + q.pad_bottom for q in tried)


def test_a_field_of_a_convolution_is_turned_on_somewhere() -> None:
    """Each has several values among the shapes; of the kernel's two sizes one is enough."""
    tried = [shape.params for shape in small_shapes(registry.find("cpu", "conv", 1), TIMED["conv"])]
    for field in fields(OPS["conv"]):
        if field.name not in ("dtype", "kw"):
            assert len({getattr(p, field.name) for p in tried}) > 1, field.name
    assert any(p.dilation_h != p.dilation_w for p in tried)
    assert any(p.pad_top != p.pad_left for p in tried)


_RIGHT_WHERE_TIMED = """\
# op = "{op}"
# rung = 101
# name = "memorised"
# idea = "Planted: right on the timed shape alone."
{needs}
from kernels import cpu, registry
from tests.bench.judge.planting import TIMED

RIGHT = cpu.load(registry.find("cpu", "{op}", 1))
workspace = RIGHT.workspace


def bind(p, inputs, output, workspace):
    run = RIGHT.bind(p, inputs, output, workspace)

    def wrong():
        run()
        output.reshape(-1)[-1] += 3

    return run if p == TIMED["{op}"] else wrong
"""


@pytest.mark.sampled(8)
@pytest.mark.parametrize("op", OPS)
def test_a_rung_that_is_right_on_the_timed_shape_alone_is_caught(op: str, tmp_path: Path) -> None:
    p = TIMED[op]
    needs = '# [needs]\n# to = ["int32"]' if op == "cast" else ""
    if isinstance(p, Quantized | QAdd):
        needs = f'# [needs]\n# dtype = ["{p.dtype}"]\n# to = ["{p.to}"]'
    (tmp_path / "101_memorised.py").write_text(
        _RIGHT_WHERE_TIMED.format(op=op, needs=needs), encoding="utf-8"
    )
    rung = registry.find("cpu", op, 101, [tmp_path])
    with pytest.raises(judge.Wrong) as caught:
        judge.examine(rung, TIMED[op], threads=1)
    assert TIMED[op].words != caught.value.finding.params
