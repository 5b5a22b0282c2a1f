"""A user's kernel inside a model that saves what did not change is shown, in a comparison, with the time that
it takes over new inputs."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from bench.measure import cases
from bench.results.records import Job, Measurement, Run
from bench.run.client import run
from bench.run.kinds.comparison import KIND as COMPARISON
from engine.graph import importer
from models import catalogue

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("as_long_as_the_program")]

WAIT_S = 0.004
TRIES = 3  # comparisons, of which one has to tell: see where they are run
KERNEL = """\
# op = "conv"
# rung = 90
# name = "{name}"
# idea = "Waits beside its work."
# [needs]
# group = 1
# dilation = 1
import time

import numpy as np

calls = [0]


def counted():
    calls[0] += 1
    return calls[0]


ACTIVATIONS = {{"relu": lambda v: np.maximum(v, 0), "tanh": np.tanh}}


def bind(p, inputs, output, workspace):
    x, w = inputs[0].reshape(p.n, p.c, p.h, p.w), inputs[1].reshape(p.m, p.c, p.kh, p.kw)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    kept = [np.full_like(x, np.nan)]
    pads = ((0, 0), (0, 0), (p.pad_top, p.pad_bottom), (p.pad_left, p.pad_right))

    def run():
        share = float((x != kept[0]).mean())
        first, kept[0] = np.isnan(kept[0]).any(), x.copy()
        time.sleep({wait} * ({waits}))
        seen = np.lib.stride_tricks.sliding_window_view(np.pad(x, pads), (p.kh, p.kw), axis=(2, 3))
        v = np.einsum("nchwrs,mcrs->nmhw", seen[:, :, :: p.stride_h, :: p.stride_w], w, optimize=True)
        if p.bias:
            v = v + inputs[2].reshape(1, -1, 1, 1)
        y[:] = ({factor}) * ACTIVATIONS.get(p.activation, lambda v: v)(v)

    return run
"""


def _measured(
    folder: Path, name: str, waits: str = "1.0", factor: str = "1.0", l2: str = "warm"
) -> Measurement:
    (folder / "own").mkdir(parents=True)
    (folder / "own" / f"90_{name}.py").write_text(
        KERNEL.format(name=name, waits=waits, factor=factor, wait=WAIT_S)
    )
    graph = importer.load(catalogue.path("lenet5-digits"))
    node = next(node.name for node in graph.nodes if node.op_type == "Conv")
    job = Job(
        models=("lenet5-digits",), backends=("engine-cpu",), batches=(4,), images=(8,), dataset="random",
        budget_s=0.15, layers=False, rungs={node: name}, kernel_dirs=(str(folder / "own"),), threads=1, l2=l2,
    )  # fmt: skip
    planned = cases.plan(job)
    kept = COMPARISON.create(folder / "run", Run(job=job, cases=planned, command="", created_at=""))
    (found,) = run(job, planned, kept).measurements
    return found


@pytest.mark.sampled(6, "longest")
@pytest.mark.parametrize("l2", ["warm", "cold"])
def test_what_did_not_change_is_not_saved(tmp_path: Path, l2: str) -> None:
    """The kernel waits for as long as its share of changed inputs says. The comparison tells so, and the
    model's time is the one over new inputs, with warm caches or cold ones.

    The comparison is brief, and other tests run beside it. What they add to a pass may once be more than what
    the kernel saves: the comparison then sees no difference, and calls the kernel right. This test is not
    about that case, so of three comparisons one has to tell. A judge that does not look at new inputs tells
    in none."""
    for number in range(TRIES):
        found = _measured(tmp_path / str(number), "saves", waits="share", l2=l2)
        if any("new inputs" in told for told in found.validity.warnings):
            break
    assert found.disposition == "ok", found.reason
    assert any("its time is the one over new inputs" in warning for warning in found.validity.warnings)
    assert statistics.median(found.samples_ns) > 0.9e9 * WAIT_S


@pytest.mark.sampled(4, "long")
def test_who_does_all_its_work_is_let_be(tmp_path: Path) -> None:
    found = _measured(tmp_path, "honest")
    assert found.disposition == "ok", found.reason
    assert not any("new inputs" in warning for warning in found.validity.warnings)
    assert len(found.samples_ns) > 1


@pytest.mark.sampled(4, "long")
def test_who_is_wrong_over_new_inputs_alone_is_found(tmp_path: Path) -> None:
    found = _measured(tmp_path, "gives_up", factor="0.0 if counted() > 40 and share > 0.9 else 1.0")
    assert found.disposition == "incorrect", found.reason
    assert "inputs" in found.reason, "new ones, or those of a timed pass that was looked at"
