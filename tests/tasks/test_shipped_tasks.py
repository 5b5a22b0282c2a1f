"""The page of the tasks, and tasks whose reference is a module of torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import judge
from bench.measure.answers import one_node, samples
from bench.measure.ladder import simulated
from kernels import launch, nvrtc, registry, tasks
from kernels.registry import Rung
from kernels.tasks import reference
from tests import tasks as pages

MODULES = sorted(path.parent for path in Path(__file__).parent.glob("modules/*/task.toml"))


def test_the_page_says_what_the_folders_say() -> None:
    assert pages.page() == pages.PAGE.read_text(encoding="utf-8"), "python -m tests.tasks --write"


def test_ten_modules_are_tasks() -> None:
    """What can be known of them without torch: sizes, launches, names of parameters."""
    assert len(MODULES) == 10
    for folder in MODULES:
        record = tasks.find(folder)
        rung = registry.find("cuda", record.op, "first", [folder])
        for sizes in (*record.task.spec.check, *record.task.spec.time):
            launch.launch(record(**sizes), rung)


@pytest.mark.skipif(reference.TORCH.missing() is not None, reason="torch is not installed")
@pytest.mark.parametrize("folder", MODULES, ids=lambda folder: folder.name)
def test_a_module_of_torch_answers(folder: Path) -> None:
    p = tasks.find(folder)(**tasks.find(folder).task.spec.check[-1])
    answer = one_node.answer(p, one_node.draw(p, np.random.default_rng(0)))
    assert (answer.shape, answer.dtype) == (p.output_shape, np.float64)
    assert np.isfinite(answer).all()


@pytest.mark.gpu
@pytest.mark.real_gpu
@pytest.mark.skipif(reference.TORCH.missing() is not None, reason="torch is not installed")
@pytest.mark.parametrize("folder", MODULES, ids=lambda folder: folder.name)
def test_a_kernel_is_judged_by_a_module_of_torch(folder: Path) -> None:
    record = tasks.find(folder)
    rung = registry.find("cuda", record.op, "first", [folder])
    judge.examine(rung, record(**record.task.spec.time[0])).close()


RUNGS = [rung for record in tasks.in_order() for rung in registry.rungs("cuda", record.op)]


@pytest.mark.sampled(8)
@pytest.mark.skipif(bool(simulated.missing()), reason=str(simulated.missing()))
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.label.replace(" ", "-"))
def test_a_kernel_of_a_task_is_right_without_a_gpu(rung: Rung) -> None:
    """On all sizes to check, every access watched, races among them; and so is one in a row of passes."""
    record = tasks.record_of(rung.op)
    shapes = samples.small_shapes(rung, record(**record.task.spec.check[-1]))
    with judge.examine(rung, shapes[-1].params, simulated=True) as trial:
        assert trial.check_unprepared("as if it were timed", 2) is None


@pytest.mark.sampled(16)
@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.label.replace(" ", "-"))
def test_a_kernel_of_a_task_compiles_for_the_oldest_and_the_newest(rung: Rung) -> None:
    record = tasks.record_of(rung.op)
    how = launch.launch(samples.small_shapes(rung, record(**record.task.spec.check[-1]))[-1].params, rung)
    for arch in ("sm_75", "sm_90"):
        assert ".entry" in nvrtc.ptx(rung, arch, how.defines)


PLANTED = [
    ("reduction", "shared_tree", "__syncthreads();  // the sums of the step before are there", "", "race"),
    ("reduction", "atomic", "*sum = 0.0f;", "", "uninitialised"),
    ("vector_add", "one_thread_an_element", "i < p.n", "i <= p.n", "outside"),
    ("histogram", "global_atomics", "atomicAdd(&counts[values[i]], 1)", "counts[values[i]] += 1", "race"),
    ("scan", "look_back", "__threadfence();  // whoever sees the state sees the sums", "", "race"),
    ("scan", "three_kernels", "before + own - piece", "before + own", "scale|place|wrong"),
    ("spmv", "warp_a_row", "+ lane; i < end", "+ lane; i < end - 1", "wrong|place"),
    ("row_top_k", "count_the_larger", "of[other] > v ||", "of[other] < v ||", "wrong|layout|place|sign"),
]


@pytest.mark.sampled(4)
@pytest.mark.skipif(bool(simulated.missing()), reason=str(simulated.missing()))
@pytest.mark.parametrize(("op", "name", "right", "wrong", "fault"), PLANTED)
def test_what_is_wrong_with_a_kernel_is_found(op: str, name: str, right: str, wrong: str, fault: str) -> None:
    rung = registry.find("cuda", op, name)
    assert rung.source.count(right) == 1
    planted = replace(rung, source=rung.source.replace(right, wrong))
    record = tasks.record_of(op)
    with pytest.raises(judge.Wrong) as found:
        judge.examine(planted, record(**record.task.spec.check[-1]), simulated=True)
    assert found.value.finding.fault in fault.split("|"), found.value.finding
