"""What a comparison keeps of a whole net beside its times; see bench.measure.runner."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.measure.images import predictions
from bench.measure.net_contender import NetContender
from bench.measure.reporter import Reporter
from bench.measure.timing import Timing, no_garbage_collection
from bench.results import artifacts
from bench.results.records import Accuracy, Layer
from engine.backend import Session, Witnessed
from kernels.errors import OutOfMemoryError, UnsupportedError, system_words

LAYERS_S = 0.2
HOST_TO_HOST_S = 0.15


def phases(net: NetContender, timing: Timing, folder: str, reporter: Reporter) -> None:
    """The phases of a host-to-host pass."""
    # What a pass is started by from outside of a process is no part of it.
    apart = net.device != "cpu" or isinstance(net.first, Witnessed)
    seconds = min(HOST_TO_HOST_S, net.job.budget_s / 4)
    found = host_to_host(net.first, net.placement.inputs, timing.median_ns if apart else None, seconds)
    net.phases |= found.phases
    net.recorded |= {"wall_ns": found.wall_ns, "launched_ns": found.launched_ns}


def answers(net: NetContender, timing: Timing, folder: str, reporter: Reporter) -> None:
    """The pass over the data set: top-1, top-5, agreement, the whole pass's time."""
    case, loaded = net.case, net.loaded
    checked: dict[str, Any] = {"checked": net.checked, "output": net.output}
    net.recorded["accuracy"] = Accuracy(images=0, labelled=False, **checked)
    if case.images == 0 or not loaded.takes_images:
        return
    dataset = loaded.dataset(case.images)
    try:
        ours = predictions.run(
            net.first, loaded.feed, dataset, images=case.images, progress=reporter.progress
        )
    except UnsupportedError as error:  # a model whose output is no row of class scores
        net.warnings.append(f"no accuracy: {error}")
        return
    if net.is_reference:
        loaded.keep_reference(case.backend, case.images, ours)
    name, theirs = ("", None) if net.is_reference else loaded.reference(net.backend, case.images)
    net.recorded |= {
        "accuracy": predictions.summary(ours, theirs, name, **checked, notes=dataset.notes()),
        "dataset_ns": {"wall": float(ours.wall_ns), "compute": float(ours.compute_ns)},
    }
    _keep(net, folder, "predictions", lambda path: predictions.save(path, ours))
    if folder:
        try:  # once for all cases that share them
            predictions.keep_images(folder, loaded.spec.dataset, dataset, case, ours)
        except OSError as error:
            net.warnings.append(f"the images could not be kept: {system_words(error)}")
    if theirs is not None:
        predictions.hold(ours, theirs, net.bound_of(), name, loaded.right.steps)


def layers(net: NetContender, timing: Timing, folder: str, reporter: Reporter) -> None:
    """Every operator's time at this batch and its errors, or what was checked of it before timing."""
    found: tuple[Layer, ...] = ()
    if net.job.times_layers(net.case.backend):
        reporter.turn(net.case, "layers")
        try:
            seconds = min(LAYERS_S, net.job.budget_s / 3)
            found = net.layer_check.measured(net.first, seconds, alone=bool(net.job.layers_of))
        except (OutOfMemoryError, UnsupportedError) as error:
            net.warnings.append(f"no times of layers: {error}")
    if kept := found or net.layer_check.known():
        net.recorded["layers"] = kept
        _keep(net, folder, "layers", lambda path: artifacts.save_layers(path, kept))


def _keep(net: NetContender, folder: str, kind: str, write: Callable[..., None]) -> None:
    """Write a file beside the results; where that fails the measurement says so and is kept."""
    if not folder:
        return
    try:
        write(artifacts.path(folder, kind, net.case))
    except OSError as error:
        net.warnings.append(f"the {kind} could not be written: {system_words(error)}")


@dataclass(frozen=True)
class HostToHost:
    """Medians in ns over host-to-host passes: phases h2d, compute, d2h, sync, and the wall time of them.
    launched_ns: of passes that were launched and waited for without copies, and its 95 % interval."""

    phases: dict[str, float]
    wall_ns: float
    passes: int
    launched_ns: tuple[float, float, float]


def host_to_host(
    session: Session, inputs: Mapping[str, np.ndarray], device_ns: float | None = None, seconds: float = 0.3
) -> HostToHost:
    """Full passes as an application makes them: bind, run, wait, fetch; at least five, for about `seconds`.

    h2d is `bind`, d2h is `fetch`. Where `run` only launches (a GPU), `device_ns` is what the pass takes on
    the device's clock: that is `compute`, and `sync` what launching it and waiting for it cost beyond. Where
    it is None, `run` is `compute` and `synchronize` is `sync`.
    """
    laps: list[tuple[int, int, int, int, int]] = []
    end = time.perf_counter() + seconds
    with no_garbage_collection():
        while len(laps) < 5 or (time.perf_counter() < end and len(laps) < 1000):
            start = time.perf_counter_ns()
            session.bind(inputs)
            bound = time.perf_counter_ns()
            session.run()
            ran = time.perf_counter_ns()
            session.synchronize()
            waited = time.perf_counter_ns()
            session.fetch()
            fetched = time.perf_counter_ns()
            laps.append((bound - start, ran - bound, waited - ran, fetched - waited, fetched - start))
            if laps[-1][4] > 1e9 * seconds and len(laps) >= 3:
                break  # of passes that take longer than that three tell enough
        launched = _launched(session, seconds / 3)
    h2d, compute, sync, d2h, wall = (float(statistics.median(column)) for column in zip(*laps, strict=True))
    if device_ns is not None:
        compute, sync = min(device_ns, compute + sync), max(compute + sync - device_ns, 0.0)
    return HostToHost({"h2d": h2d, "compute": compute, "d2h": d2h, "sync": sync}, wall, len(laps), launched)


def _launched(session: Session, seconds: float) -> tuple[float, float, float]:
    """Passes one behind the other; by order statistics the interval needs no shape of their times."""
    laps: list[float] = []
    end = time.perf_counter() + seconds
    while len(laps) < 3 or (time.perf_counter() < end and len(laps) < 1000):
        start = time.perf_counter_ns()
        session.run()
        session.synchronize()
        laps.append(float(time.perf_counter_ns() - start))
    laps = sorted(laps[len(laps) // 10 :])  # the first come behind copies
    middle, reach = len(laps) / 2, 0.98 * math.sqrt(len(laps))
    low, high = max(0, int(middle - reach)), min(len(laps) - 1, math.ceil(middle + reach))
    return statistics.median(laps), laps[low], laps[high]


RECORDERS = (phases, answers, layers)
