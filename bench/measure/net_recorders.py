"""What a comparison keeps of a whole net beside its times (bench.measure.recorder)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from bench.measure.answers.layer_check import LayerCheck
from bench.measure.contender import Contender
from bench.measure.end_to_end import Flows
from bench.measure.host_to_host import host_to_host
from bench.measure.images import predictions
from bench.measure.net_contender import NetContender
from bench.measure.recorder import Recorder
from bench.measure.timing import Timing
from bench.results import artifacts
from bench.results.records import Accuracy, Layer
from engine.backend import Witnessed
from kernels.errors import OutOfMemoryError, UnsupportedError, system_words

LAYERS_S = 0.2
HOST_TO_HOST_S = 0.15


class NetRecorder(Recorder):
    """Of whole nets, with files of a case beside the results."""

    def record(self, contender: Contender, timing: Timing) -> None:
        self.of(cast(NetContender, contender), timing)

    def of(self, net: NetContender, timing: Timing) -> None:
        """As `record`."""

    def _keep(self, net: NetContender, kind: str, write: Callable[..., None]) -> None:
        """Write a file beside the results; where that fails the measurement says so and is kept."""
        if not self._folder:
            return
        try:
            write(artifacts.path(self._folder, kind, net.case))
        except OSError as error:
            net.warnings.append(f"the {kind} could not be written: {system_words(error)}")


class EndToEndRate(NetRecorder):
    """Host images to host answers as a sustained rate, of a whole group together."""

    def before(self, ready: dict[str, Contender]) -> dict[str, Exception]:
        if not (self._job.end_to_end and ready):
            return {}
        nets = {key: cast(NetContender, contender) for key, contender in ready.items()}
        flows = Flows(next(iter(nets.values())).loaded, self._job, nets)
        flows.measure(
            lambda key, number: self._reporter.turn(nets[key].case, "end_to_end"), self._reporter.stopped
        )
        for key, rate in flows.results.items():
            nets[key].recorded["end_to_end"] = rate
        return flows.failed


class HostToHostPhases(NetRecorder):
    """The phases of a host-to-host pass."""

    def of(self, net: NetContender, timing: Timing) -> None:
        # What a pass is started by from outside of a process is no part of it.
        apart = net.device != "cpu" or isinstance(net.session, Witnessed)
        device_ns = timing.median_ns if apart else None
        seconds = min(HOST_TO_HOST_S, self._job.budget_s / 4)
        found = host_to_host(net.session, net.placement.inputs, device_ns, seconds)
        net.phases |= found.phases
        net.recorded |= {"wall_ns": found.wall_ns, "launched_ns": found.launched_ns}


class Answers(NetRecorder):
    """The pass over the data set: top-1, top-5, agreement, the whole pass's time."""

    def of(self, net: NetContender, timing: Timing) -> None:
        case, loaded = net.case, net.loaded
        checked: dict[str, Any] = {"checked": net.checked, "output": net.output}
        net.recorded["accuracy"] = Accuracy(images=0, labelled=False, **checked)
        if case.images == 0 or not loaded.takes_images:
            return
        dataset = loaded.dataset(case.images)
        try:
            ours = predictions.run(
                net.session, loaded.feed, dataset, images=case.images, progress=self._reporter.progress
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
        self._keep(net, "predictions", lambda path: predictions.save(path, ours))
        if self._folder:
            try:  # once for all cases that share them
                predictions.keep_images(self._folder, loaded.spec.dataset, dataset, case, ours)
            except OSError as error:
                net.warnings.append(f"the images could not be kept: {system_words(error)}")
        if theirs is not None:
            predictions.hold(ours, theirs, net.bound_of(), name)


class Layers(NetRecorder):
    """Every operator's time at this batch and its errors, or what was checked of it before timing."""

    def of(self, net: NetContender, timing: Timing) -> None:
        check: LayerCheck | None = net.layer_check
        assert check is not None
        layers: tuple[Layer, ...] = ()
        if self._job.times_layers(net.case.backend):
            self._reporter.turn(net.case, "layers")
            try:
                seconds = min(LAYERS_S, self._job.budget_s / 3)
                layers = check.measured(net.session, seconds, alone=bool(self._job.layers_of))
            except (OutOfMemoryError, UnsupportedError) as error:
                net.warnings.append(f"no times of layers: {error}")
        if layers := layers or check.known():
            net.recorded["layers"] = layers
            self._keep(net, "layers", lambda path: artifacts.save_layers(path, layers))


# In the order in which a case is asked for them.
RECORDERS = (EndToEndRate, HostToHostPhases, Answers, Layers)
