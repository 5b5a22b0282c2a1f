"""Recorders of a comparison of whole nets: what is kept of a net beside its times. bench.measure.runner says
when they are called, and with what. A recorder returns nothing: it writes to `net.recorded`, `net.phases` and
`net.warnings`."""

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
    """Measure how long each phase of a pass takes, from the inputs on the host to the outputs on the host.
    Fills `phases` (ns by name), and "wall_ns" and "launched_ns" of the record (see HostToHost)."""
    # On a GPU, and in a process of its own, the timed passes leave out what it takes to start them.
    start_excluded = net.device != "cpu" or isinstance(net.first, Witnessed)
    seconds = min(HOST_TO_HOST_S, net.job.budget_s / 4)
    found = host_to_host(
        net.first, net.placement.inputs, timing.median_ns if start_excluded else None, seconds
    )
    net.phases |= found.phases
    net.recorded |= {"wall_ns": found.wall_ns, "launched_ns": found.launched_ns}


def answers(net: NetContender, timing: Timing, folder: str, reporter: Reporter) -> None:
    """Run the net once over the data set, if the job asks for it and the model takes images. Fills "accuracy"
    (top-1, top-5, agreement with the reference) and "dataset_ns" (ns of that run) of the record. With a
    folder the predictions and the images are written there. Raises Incorrect if an answer differs from the
    reference's on an image of which the reference was sure."""
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
        net.recorded["accuracy"] = Accuracy(images=0, labelled=False, refused=str(error), **checked)
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
        predictions.hold(ours, theirs, net.bound_precision(), name, loaded.right.steps)


def layers(net: NetContender, timing: Timing, folder: str, reporter: Reporter) -> None:
    """Fill "layers" of the record: the time and the errors of every layer at this batch size. Without times,
    if the job does not ask for them or memory does not suffice: then only the layers that were checked before
    timing. With a folder they are written there, too."""
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
    """Write a file into the folder, if there is one. If that fails, a warning says so, and the measurement is
    kept."""
    if not folder:
        return
    try:
        write(artifacts.path(folder, kind, net.case))
    except OSError as error:
        net.warnings.append(f"the {kind} could not be written: {system_words(error)}")


@dataclass(frozen=True)
class HostToHost:
    """Times of host-to-host passes, medians in ns. phases: by name: h2d (copy the inputs to the device),
    compute, d2h (copy the outputs back), sync (start the pass, and wait for it). wall_ns: the whole pass.
    passes: how many were measured. launched_ns: (median, low, high) of passes without copies, run and waited
    for; low and high are its 95 % interval."""

    phases: dict[str, float]
    wall_ns: float
    passes: int
    launched_ns: tuple[float, float, float]


def host_to_host(
    session: Session, inputs: Mapping[str, np.ndarray], device_ns: float | None = None, seconds: float = 0.3
) -> HostToHost:
    """Measure whole passes as an application makes them: bind, run, synchronize, fetch. There are at least
    five passes (three, if one takes longer than `seconds`), for about `seconds` in all. inputs: by name.

    h2d is the time of `bind`, d2h that of `fetch`. device_ns: ns of one pass without starting it, measured
    before; for sessions whose `run` only starts the pass (on a GPU). It is `compute`, and `sync` is the rest
    of the time of `run` and `synchronize`. With None, `compute` is the time of `run`, and `sync` that of
    `synchronize`.
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
                break  # three such long passes are enough
        launched = _launched(session, seconds / 3)
    h2d, compute, sync, d2h, wall = (float(statistics.median(column)) for column in zip(*laps, strict=True))
    if device_ns is not None:
        compute, sync = min(device_ns, compute + sync), max(compute + sync - device_ns, 0.0)
    return HostToHost({"h2d": h2d, "compute": compute, "d2h": d2h, "sync": sync}, wall, len(laps), launched)


def _launched(session: Session, seconds: float) -> tuple[float, float, float]:
    """(median, low, high) in ns of passes without copies, one after the other. The 95 % interval is between
    two of the sorted times, so that their distribution need not be known."""
    laps: list[float] = []
    end = time.perf_counter() + seconds
    while len(laps) < 3 or (time.perf_counter() < end and len(laps) < 1000):
        start = time.perf_counter_ns()
        session.run()
        session.synchronize()
        laps.append(float(time.perf_counter_ns() - start))
    laps = sorted(laps[len(laps) // 10 :])  # the first ones follow copies, and may be slower
    middle, reach = len(laps) / 2, 0.98 * math.sqrt(len(laps))
    low, high = max(0, int(middle - reach)), min(len(laps) - 1, math.ceil(middle + reach))
    return statistics.median(laps), laps[low], laps[high]


RECORDERS = (phases, answers, layers)
