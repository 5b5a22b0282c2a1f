"""One case on its way: prepared, checked, timed, checked again, taken apart; and what came of it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from bench import accuracy, artifacts, gallery, layers, predictions, stats, timing, tuning
from bench.material import ORACLE, Material
from bench.records import (
    Accuracy,
    Case,
    Disposition,
    ErrorStats,
    Job,
    Layer,
    Measurement,
    Telemetry,
    Validity,
)
from bench.timing import Timing
from engine import backends
from engine.backend import Backend, Options, Session, Variant
from kernels.errors import KernelscopeError, OutOfMemoryError, UnavailableError, UnsupportedError

UNQUIET = 0.05  # rounds that leave the median this uncertain are worth a warning
LAYERS_S = 0.5
END_TO_END_S = 0.3

Progress = Callable[[str, float | None], None]


class Incorrect(Exception):
    """The answers are wrong; carries the errors. Not timed, or its times not kept."""

    def __init__(self, error: ErrorStats, when: str) -> None:
        super().__init__(f"{when}: {error.reason}")
        self.error = error


class Contender:
    """A case with its session. Raises whatever the backend raises; `settle` puts that into a Measurement."""

    def __init__(self, case: Case, material: Material, job: Job) -> None:
        self.case = case
        self.backend: Backend = backends.get(case.backend)
        self.session: Session | None = None
        self.options = tuning.options(self.backend, material, job)
        self._material = material
        self._job = job
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._first_run_ns: int | None = None
        self._phases: dict[str, float] = {}
        self._wall_ns: float | None = None
        self._dataset_ns: dict[str, float] = {}
        self._output: ErrorStats | None = None
        self._checked = 0
        self._accuracy: Accuracy | None = None
        self._layers: tuple[Layer, ...] = ()
        self._facts: dict[str, str] = {}
        self._memory: dict[str, int] = {}
        self._warnings: list[str] = []

    @property
    def is_reference(self) -> bool:
        return self.backend.name == self.backend.reference and self.case.precision == "fp32"

    # ----------------------------------------------------------------------------------------------- stages

    def prepare(self) -> None:
        """Compile, allocate, upload; the first pass, apart; and the check without which nothing is timed."""
        case = self.case
        reason = self.backend.unavailable()
        if reason is not None:
            raise UnavailableError(reason)
        graph = self._material.graph
        refusal = self.backend.supports(graph, case.batch, case.precision)
        if refusal is not None:
            raise UnsupportedError(refusal)
        if isinstance(self.backend, Variant):
            self.options = self.backend.resolved(graph, case.batch, case.precision, self.options)
        self.session = self.backend.prepare(graph, case.batch, case.precision, self.options)
        self._placement = self._material.placement(case.batch, seed=self._job.seed)
        # Something else first, so that an answer left over from it is not taken for a right one.
        self.session.bind(_disturbed(self._placement.inputs))
        self._first_run_ns = timing.first_run(self.session)
        self.session.bind(self._placement.inputs)
        self.session.run()
        self.session.synchronize()
        self._judge("before timing")
        self._phases = {name: float(ns) for name, ns in self.session.phases.items()}

    def check_again(self) -> None:
        """After timing: the last timed pass must have been right, and so must a pass over other images."""
        session = self._open()
        self._judge("after timing")
        session.bind(_disturbed(self._placement.inputs))
        session.run()
        session.synchronize()
        self._placement = self._material.placement(self.case.batch, seed=self._job.seed + 1)
        session.bind(self._placement.inputs)
        session.run()
        session.synchronize()
        self._judge("after timing, with other images")

    def take_apart(self, median_ns: float) -> None:
        """Phases of an end-to-end pass; `median_ns` is what a pass takes on the device's clock."""
        seconds = min(END_TO_END_S, self._job.budget_s / 4)
        device_ns = None if self.backend.device == "cpu" else median_ns
        found = timing.end_to_end(self._open(), self._placement.inputs, device_ns, seconds)
        self._phases |= found.phases
        self._wall_ns = found.wall_ns

    def answer(self, folder: str, progress: Progress) -> None:
        """The pass over the data set: top-1, top-5, agreement, the whole pass's time."""
        case, material = self.case, self._material
        self._accuracy = Accuracy(images=0, labelled=False, checked=self._checked, output=self._output)
        if case.images == 0 or not material.takes_images:
            return
        try:
            ours = predictions.run(
                self._open(),
                material.graph,
                material.dataset(case.images),
                material.spec.preprocess,
                images=case.images,
                progress=progress,
            )
        except UnsupportedError as error:  # a model whose output is no row of class scores
            self._warnings.append(f"no accuracy: {error}")
            return
        if self.is_reference:
            material.keep_reference(case.backend, case.images, ours)
        name, theirs = ("", None) if self.is_reference else material.reference(self.backend, case.images)
        self._accuracy = predictions.summary(ours, theirs, name, checked=self._checked, output=self._output)
        self._dataset_ns = {"wall": float(ours.wall_ns), "compute": float(ours.compute_ns)}
        self._keep(folder, "predictions", lambda path: predictions.save(path, ours))
        self._keep_images(folder)

    def measure_layers(self, folder: str, errors: LayerErrors) -> None:
        """Times of every operator at this batch, and their errors, which are taken once a backend."""
        try:
            timed = layers.measure(
                self._material.graph,
                self.backend,
                self.case.precision,
                self.options,
                self._material.golden(),
                self.case.batch,
                session=self._open(),
                errors=False,
                seconds=min(LAYERS_S, self._job.budget_s),
            )
            self._layers = errors.merged(self, self._material, timed)
        except OutOfMemoryError as error:
            self._warnings.append(f"no layers: {error}")
            return
        self._keep(folder, "layers", lambda path: artifacts.save_layers(path, self._layers))

    def close(self) -> None:
        """Free the session; a failure to do so is the next case's to notice."""
        session, self.session = self.session, None
        if session is not None:
            self._facts, self._memory = dict(session.facts), dict(session.memory)
            session.close()

    # --------------------------------------------------------------------------------------------- outcomes

    def measured(self, timed: Timing, telemetry: Telemetry) -> Measurement:
        """The measurement of a case that went well. Call after `close`."""
        warnings = [*timed.warnings, *self._warnings]
        interval = stats.median_interval(timed.samples_ns, timed.rounds)
        if len(timed.samples_ns) < timing.Rules.min_samples:
            count = len(timed.samples_ns)
            fit = "sample fits" if count == 1 else "samples fit"
            warnings.append(f"only {count} {fit} the budget; a larger --budget helps")
        if interval.relative > UNQUIET:
            warnings.append(
                f"the machine was unquiet: between rounds the median moved by up to {interval.relative:.0%}"
            )
        if self._material.judge != ORACLE:
            warnings.append(self._material.judge)
        return self._record(
            "ok",
            samples_ns=tuple(timed.samples_ns),
            runs_per_sample=timed.runs_per_sample,
            rounds=tuple(timed.rounds),
            wall_ns=self._wall_ns,
            dataset_ns=self._dataset_ns,
            layers=self._layers,
            accuracy=self._accuracy,
            telemetry=telemetry,
            validity=Validity(stop_reason=timed.stop_reason, retries=timed.retries, warnings=tuple(warnings)),
        )

    def failed(self, error: BaseException) -> Measurement:
        """The measurement of a case that `error` ended. Call after `close`."""
        disposition, reason = outcome(error)
        accuracy = None
        if isinstance(error, Incorrect):
            accuracy = Accuracy(images=0, labelled=False, checked=self._checked, output=error.error)
        return self._record(disposition, reason=reason, accuracy=accuracy)

    def _record(self, disposition: Disposition, **fields: object) -> Measurement:
        record = Measurement(
            case=self.case,
            disposition=disposition,
            reference=self.backend.reference,
            first_run_ns=self._first_run_ns,
            phases=self._phases,
            facts=self._facts,
            memory=self._memory,
            started_at=self._started_at,
        )
        return msgspec.structs.replace(record, **fields)

    # ------------------------------------------------------------------------------------------- the inside

    def _open(self) -> Session:
        if self.session is None:
            raise RuntimeError(f"the session of {self.case.words} is closed")
        return self.session

    def _judge(self, when: str) -> None:
        lenient = isinstance(self.backend, Variant) and self.backend.lenient
        bound_of = accuracy.LOOSEST if lenient else self.case.precision
        stats_ = self._material.check(self._open().fetch(), self._placement, bound_of)
        self._output = stats_
        self._checked = len(self._placement.rows)
        if not stats_.ok:
            raise Incorrect(stats_, when)

    def _keep(self, folder: str, kind: str, write: Callable[..., None]) -> None:
        """Write a file beside the results; where that fails the measurement says so and is kept."""
        if not folder:
            return
        try:
            write(artifacts.path(folder, kind, self.case))
        except OSError as error:
            self._warnings.append(
                f"the {kind} could not be written: {(error.strerror or str(error)).lower()}"
            )

    def _keep_images(self, folder: str) -> None:
        """The images that were answered, once for all cases that share them."""
        if not folder:
            return
        dataset = self._material.dataset(self.case.images)
        target = gallery.images_path(Path(folder), self._material.spec.dataset, self.case)
        try:
            gallery.keep_images(target, dataset.images, dataset.classes, self.case.images)
        except OSError as error:
            self._warnings.append(f"the images could not be kept: {(error.strerror or str(error)).lower()}")


class LayerErrors:
    """Errors of layers by backend, precision and rungs: beyond that they do not depend on the batch, so they
    are taken once, of the rungs that were timed at the case's batch where some were. Of a reference in a
    configuration of its own, which chooses its algorithms out of sight, they are taken at each batch."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], dict[str, Layer]] = {}

    def merged(self, contender: Contender, material: Material, timed: tuple[Layer, ...]) -> tuple[Layer, ...]:
        """`timed` with the errors of the same tensors."""
        options = _with_rungs(contender.options, timed)
        key = (contender.case.backend, contender.case.precision, *options.rungs.items(), *_at(contender))
        if key not in self._found:
            try:
                found = self._measured(contender, material, options)
            except UnsupportedError:  # a rung that takes the case's batch and not that of the golden images
                found = self._measured(contender, material, contender.options)
            held = {layer.output: layer for layer in found if layer.output}
            if contender.options.ort is not None:
                held |= _errors_at(contender, material, held)
            self._found[key] = held
        known = self._found[key]
        return tuple(
            msgspec.structs.replace(
                layer, isolated=known[layer.output].isolated, propagated=known[layer.output].propagated
            )
            if layer.output in known
            else layer
            for layer in timed
        )

    @staticmethod
    def _measured(contender: Contender, material: Material, options: Options) -> tuple[Layer, ...]:
        golden = material.golden()
        reference = backends.get(contender.backend.reference)
        return layers.measure(
            material.graph,
            contender.backend,
            contender.case.precision,
            options,
            golden,
            golden.images,
            reference=reference if reference.unavailable() is None else None,
            times=False,
        )


def _with_rungs(options: Options, timed: Sequence[Layer]) -> Options:
    """The rungs that ran named by node where some were timed at the case's own batch, at another one other
    rungs would run."""
    if all(layer.chosen != "timed" for layer in timed):
        return options
    return replace(options, rungs={layer.nodes[0]: layer.rung for layer in timed if layer.rung})


def _at(contender: Contender) -> tuple[object, ...]:
    """What the errors of its layers hang on beside backend and precision."""
    configured = contender.options.ort
    return () if configured is None else (configured, contender.case.batch)


def _errors_at(contender: Contender, material: Material, held: Mapping[str, Layer]) -> dict[str, Layer]:
    """Layers of `held` with the errors that they have alone at the case's own batch."""
    case = contender.case
    errors = layers.errors_at(
        material.graph, contender.backend, case.precision, contender.options, material.golden(), case.batch
    )
    return {
        part.output: msgspec.structs.replace(held[part.output], isolated=stats_)
        for part, stats_ in errors
        if part.output in held
    }


def outcome(error: BaseException) -> tuple[Disposition, str]:
    """What an exception makes of a case, and the sentence for it."""
    match error:
        case Incorrect():
            return "incorrect", str(error)
        case UnsupportedError() | UnavailableError():
            return "unsupported", str(error)
        case OutOfMemoryError():
            return "out_of_memory", str(error)
        case MemoryError():
            return "out_of_memory", "the host's memory did not suffice; a smaller batch takes less"
        case KernelscopeError():
            return "failed", str(error)
        case _:
            text = str(error).strip().splitlines()
            return "failed", f"{type(error).__name__}: {text[0] if text else 'no message'}"


def is_bug(error: BaseException) -> bool:
    """Whether this is no outcome that the program knows, so that its traceback belongs into the log."""
    return not isinstance(error, KernelscopeError | Incorrect | MemoryError)


def trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


def _disturbed(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Other inputs of the same shapes: images in reverse order and negated (integers as they are)."""
    return {name: -a[::-1] if a.dtype.kind == "f" else a[::-1] for name, a in inputs.items()}
