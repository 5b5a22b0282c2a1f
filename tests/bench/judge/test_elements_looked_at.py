"""What timed passes left is held against float64 in elements drawn afterwards, however large its images are:
kernels that are wrong in few places, and the same in every pass over the same inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import judge
from bench.judge import Trial
from kernels import registry
from kernels.ops import sized
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from tests.bench.judge import right

_HEAD = """# op = "{op}"
# rung = {number}
# name = "{name}"
# idea = "Planted: {name}."
import numpy as np

from tests.bench.judge import right


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output
    base = [None, None]
    told = np.random.default_rng(5).choice(x.size, min(x.size, 64), replace=False)
    large = p.outputs > 4000

    def honest():
        y[:] = right.{op}(p, *inputs)

    def known():
        return base[0] is not None and np.mean(x[told] == base[0]) > 0.5

    def run():
{body}

    return run
"""

# Answers for the inputs that it saw first, as long as most of what it looks at is as it was there.
_STALE = """
        if large and known():
            y[:] = base[1]
            return
        honest()
        base[:] = x[told].copy(), y.copy()
"""

# Right, but for one element in sixty, which it leaves at what the inputs it saw first give.
_LEFT_OUT = """
        honest()
        if large and known():
            flat = y.reshape(-1)
            flat[::60] = base[1].reshape(-1)[::60]
            return
        base[:] = x[told].copy(), y.copy()
"""

CHEATS = {"stale": _STALE, "one_in_sixty": _LEFT_OUT}
SHAPES = {
    "conv": sized(Conv(1, 8, 40, 40, 8, 3, 3, 0, 0, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)),
    "gemm": Gemm(16, 512, 300),
}


def written(folder: Path, name: str, op: str) -> None:
    text = _HEAD.format(op=op, number=970, name=name, body=CHEATS[name].strip("\n"))
    (folder / f"970_{name}.py").write_text(text)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("op", SHAPES)
@pytest.mark.parametrize("name", CHEATS)
def test_wrong_in_timed_passes_and_in_those_beside_them(name: str, op: str, tmp_path: Path) -> None:
    assert hasattr(right, op)
    written(tmp_path, name, op)
    rung = registry.find("cpu", op, name, [tmp_path])
    with judge.examine(rung, SHAPES[op], threads=1, quick=True) as trial:
        assert isinstance(trial, Trial)
        trial.time_runs(3)
        failure = trial.spot_check("during timing")
        assert failure is not None
        assert failure.finding.fault == "wrong"
        assert failure.finding.when == "during timing"
        assert len(failure.finding.index) == len(SHAPES[op].output_shape)
