"""What a comparison keeps of a whole net beside its times; see bench.measure.runner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.measure.host_to_host import host_to_host
from bench.measure.images import predictions
from bench.measure.net_contender import NetContender
from bench.measure.reporter import Reporter
from bench.measure.timing import Timing
from bench.results import artifacts
from bench.results.records import Accuracy, Layer
from engine.backend import Witnessed
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
        predictions.hold(ours, theirs, net.bound_of(), name)


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


RECORDERS = (phases, answers, layers)
