"""A kernel of one's own is written for one device: named for a node, it holds there and not on the others."""

from pathlib import Path

import pytest

from bench.measure import cases, rung_check
from bench.results.records import Job
from kernels.errors import InputError
from tests.bench.measure.answers.test_layer_check import kernels

BOTH = ("cpu", "cuda")


def folder(tmp_path: Path) -> tuple[Path, ...]:
    return tuple(map(Path, kernels(tmp_path, name="mine")))


def test_a_rung_of_one_device_is_not_asked_of_the_other(tmp_path: Path) -> None:
    dirs, asked = folder(tmp_path), {"conv1": "mine"}
    assert rung_check.meant_for(asked, "cpu", dirs, BOTH) == asked
    assert rung_check.meant_for(asked, "cuda", dirs, BOTH) == {}
    assert rung_check.meant_for(asked, "cuda", dirs, ("cuda",)) == asked, "nobody has it: that is told"
    assert rung_check.meant_for({"conv1": "nowhere"}, "cpu", dirs, BOTH) == {"conv1": "nowhere"}
    assert rung_check.meant_for({"conv1": "cuda/mine"}, "cuda", dirs, BOTH) == {"conv1": "cuda/mine"}
    assert rung_check.meant_for({"conv1": "1"}, "cuda", dirs, BOTH) == {"conv1": "1"}


def test_a_rung_that_no_compared_engine_has_is_told(tmp_path: Path) -> None:
    job = Job(
        models=("lenet5-digits",),
        backends=("engine-cpu",),
        batches=(1,),
        images=(40,),
        rungs={"conv1": "map_a_block"},  # of CUDA alone
    )
    with pytest.raises(InputError, match="no rung 'map_a_block' of conv on cpu"):
        cases.plan(job)
