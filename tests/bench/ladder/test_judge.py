"""The judge: right rungs pass, and each planted wrong one is caught and named, with where it is wrong."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from bench import judge
from bench.judge import Wrong
from bench.judge.judged_session import rebinding
from bench.measure.answers.samples import small_shapes
from bench.measure.ladder.entrants import params_of
from engine.rung_session import GUARD_NBYTES
from kernels import registry
from kernels.ops import OPS, Params, sized
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.ops.gemm import Gemm
from kernels.ops.lrn import Lrn
from kernels.ops.pad import Pad
from kernels.ops.pool import Pool
from kernels.ops.softmax import Softmax
from kernels.ops.transpose import Transpose
from kernels.ops.unary import Unary
from tests.bench.judge.planting import TIMED

pytestmark = pytest.mark.slow

PLANTED = Path(__file__).parent / "planted"
CONV = sized(Conv(4, 6, 14, 17, 8, 3, 3, 0, 0, 2, 1, 1, 1, 1, 1, group=2, bias=True, activation="relu"))

# What each planted rung is, and how the judge has to call it.
NAMES = {
    "off_by_one_pad": ("pad", "off by one"),
    "swapped_stride": ("stride", "swapped"),
    "missing_bias": ("bias", "missing"),
    "ignored_group": ("group", "first group"),
    "race": ("race", "repeated runs"),
    "stray_write": ("stray_write", "wrote right behind the end of the output: "),
    "unwritten_edge": ("unwritten", "never writes"),
    "stale": ("stale", "inputs of the pass before"),
    "batch_one": ("batch_one_only", "first image"),
    "half_sum": ("half_precision", "half precision"),
    "nan": ("nan", "NaN at element (0, 0, 0, 0)"),
    "zeros_only": ("zeros_only", "zeros"),
    "flipped_kernel": ("kernel", "flipped"),
    "ignored_dilation": ("dilation", "ignored"),
    "missing_activation": ("activation", "missing"),
    "written_input": ("input_written", "only to be read"),
    "rebound": ("unwritten", "`output = convolve(p, x, weight, bias)` makes a new array"),
    "adds_to_output": ("unwritten", "adds to what the output or the workspace held"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_planted_fault_is_caught_named_and_placed(name: str) -> None:
    rung = registry.find("cpu", "conv", name, [PLANTED])
    fault, words = NAMES[name]
    with pytest.raises(Wrong) as caught:
        judge.examine(rung, CONV, threads=1)
    finding = caught.value.finding
    assert finding.fault == fault, finding
    assert words in finding.reason
    assert finding.when == "before timing"
    if fault not in ("stray_write", "input_written"):
        assert len(finding.index) == 4
        assert finding.got != finding.expected
        assert caught.value.error_map is not None
        assert caught.value.error_map.ndim == 2


def test_a_view_that_takes_the_outputs_name_is_no_new_array() -> None:
    text = "def bind(p, x, y, w):\n    y = {0}\n    def run():\n        pass\n    return run\n"
    assert not rebinding(text.format("y.reshape(-1)"))
    assert "`y = np.exp(x)` makes a new array" in rebinding(text.format("np.exp(x)"))
    assert not rebinding("def step(a, low, high, scratch):\n    high = a[1]\n")


def test_every_planted_rung_is_tried() -> None:
    names = {path.stem.partition("_")[2] for path in PLANTED.glob("[0-9]*.py")}
    assert names == {*NAMES, "tires"}


def test_where_it_is_wrong_is_shown_on_the_image() -> None:
    rung = registry.find("cpu", "conv", "unwritten_edge", [PLANTED])
    with pytest.raises(Wrong) as caught:
        judge.examine(rung, CONV, threads=1)
    error_map = caught.value.error_map
    assert error_map is not None
    wrong = np.isnan(error_map) | (error_map > 1e-3)
    assert wrong[:, -1].all()
    assert not wrong[:, :-1].any()
    assert caught.value.finding.index[-1] == error_map.shape[1] - 1


def test_a_rung_that_goes_wrong_later_is_caught_during_and_after_timing() -> None:
    rung = registry.find("cpu", "conv", "tires", [PLANTED])
    trial = judge.examine(rung, CONV, threads=1)
    trial.time_runs(5)
    assert trial.spot_check("during timing") is None
    trial.time_runs(250)
    failure = trial.spot_check("during timing")
    assert failure is not None
    assert (failure.finding.when, failure.finding.index[0]) == ("during timing", 0)
    with pytest.raises(Wrong):
        trial.time_runs(1)
    assert trial.check("after timing") is not None


def _params(rung: registry.Rung) -> Params:
    conv = replace(CONV, stride_h=1, out_h=14) if rung.needs else CONV
    if rung.needs.get("depthwise"):
        conv = replace(CONV, c=4, m=8, group=4)
    elif rung.needs.get("kernel") == 1:
        stride = rung.needs.get("stride", 2)
        conv = sized(Conv(2, 6, 7, 9, 11, 1, 1, 0, 0, stride, 1, bias=True, activation="tanh"))
    elif rung.needs.get("group") == 1:
        conv = replace(conv, group=1)
    pool = Pool("max", 2, 3, 9, 9, 3, 3, 4, 4, 2, 2)
    if numbers := rung.needs.get("dtype"):
        pool = replace(pool, dtype=numbers[0])
    by_op: dict[str, Params] = {
        "conv": conv,
        "gemm": Gemm(3, 50, 40, trans_b=True, bias=True, activation="relu"),
        "pool": pool,
        "lrn": Lrn(2, 7, 20, 5),
        "conv_pool": ConvPool(CONV, sized(Pool("max", 4, 8, 7, 17, 3, 2, 0, 0, 2, 2, activation="tanh"))),
        "softmax": Softmax(3, 10, 1),
        "unary": Unary("tanh", 100),
        "transpose": Transpose((2, 3, 4), (2, 0, 1)),
        "pad": Pad((2, 5), (0, 1), (1, 0)),
    }
    return by_op[rung.op]


OURS = [rung for op in ("conv", "gemm", "pool", "lrn", "conv_pool", "softmax", "unary", "transpose", "pad")
        for rung in registry.rungs("cpu", op)]  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("rung", OURS, ids=lambda rung: rung.label)
def test_our_rungs_pass(rung: registry.Rung) -> None:
    with judge.examine(rung, _params(rung)) as trial:
        assert trial.checks >= 2
        assert trial.error is not None
        assert trial.error.ok
        trial.time_runs(2)
        assert trial.spot_check("during timing") is None
        assert trial.check("after timing") is None


def test_all_images_of_a_large_batch_are_judged() -> None:
    """The oracle answers for a few images; the batch repeats them, so that no image goes unseen."""
    rung = registry.find("cpu", "conv", "im2col")
    p = sized(Conv(40, 2, 8, 8, 3, 3, 3, 0, 0))
    with judge.examine(rung, p, quick=True) as trial:
        sample = trial.fresh()
        assert sample.expected.shape[0] == 8
        assert sample.rows is not None
        got = sample.whole(sample.expected).astype(np.float32)
        assert got.shape[0] == 40
        got[37, 1, 2, 3] += 1
        from bench.measure.answers.comparison import compare

        found = compare(got, sample, "fp32")
        assert found.index == (37, 1, 2, 3)
        assert found.wrong == 1


def test_shapes_a_rung_refuses_are_left_out() -> None:
    winograd = registry.find("cpu", "conv", "winograd")
    shapes = small_shapes(winograd, replace(CONV, stride_h=1, out_h=14))
    assert {"plain", "bias", "group", "batch"} <= {shape.tag for shape in shapes}
    assert not {"stride", "strides", "dilation"} & {shape.tag for shape in shapes}


@pytest.mark.parametrize("op", OPS)
def test_params_are_read_back_as_they_were_told(op: str) -> None:
    assert params_of(op, msgspec.json.decode(msgspec.json.encode(asdict(TIMED[op])))) == TIMED[op]


def test_two_operators_in_one_are_tried_on_what_either_is_tried_on() -> None:
    p = _params(registry.find("cpu", "conv_pool", 1))
    shapes = small_shapes(registry.find("cpu", "conv_pool", 1), p)
    assert {"plain", "bias", "group", "dilation", "pad", "activation", "own", "all"} <= {
        s.tag for s in shapes
    }
    assert any(s.params.conv.group > 1 for s in shapes)
    assert any(s.params.pool.activation for s in shapes)
    assert p.words == (
        "4×6×14×17 → 8×7×17, kernel 3×3, stride 2×1, pad 1, group 2, bias, relu; then → 3×8, max of 3×2, "
        "stride 2, tanh"
    )


def test_a_rung_that_raises_is_named_with_its_line(tmp_path: Path) -> None:
    from kernels.errors import KernelError

    file = tmp_path / "50_breaks.py"
    header = '# op = "conv"\n# rung = 50\n# name = "breaks"\n# idea = "Breaks."\n'
    file.write_text(
        header + "def bind(p, inputs, output, workspace):\n    def run():\n        1 / 0\n    return run\n"
    )
    with pytest.raises(KernelError, match=r"50_breaks\.py:7: .*ZeroDivisionError"):
        judge.examine(registry.find("cpu", "conv", "breaks", [tmp_path]), CONV)
    assert GUARD_NBYTES % 256 == 0
