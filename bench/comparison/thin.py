"""A comparison made small: its samples packed, and where need be only one case a model of every backend keeps
its layers' errors and its predictions; the others keep their layers' times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from bench.comparison.kind import RunFolder
from bench.kinds import public as bench_public
from bench.results import gallery, npz
from bench.results.records import LEFT_OUT, Case, Layer, Measurement, Run
from bench.results.rows import SOUND
from kernels.errors import DataError

LESS = "run fewer batch sizes or models"
_GREYS = 15  # of a kept image, above black


@dataclass(frozen=True)
class ComparisonGrade:
    """How much goes. errors: whether every case keeps its layers' errors; shapes: their sizes, or only the
    times by which a pass is divided; images: kept of a data set, the first ones."""

    errors: bool
    shapes: bool
    images: int


GRADES = (
    ComparisonGrade(True, True, 400),
    ComparisonGrade(False, True, 400),
    ComparisonGrade(False, False, 400),
    ComparisonGrade(False, False, 200),
    ComparisonGrade(False, False, 100),
    ComparisonGrade(False, False, 50),
)


def thin_measurement(measurement: Measurement, errors: bool, shapes: bool) -> Measurement:
    """One measurement without what goes of its layers. errors: whether they keep theirs; shapes: their sizes
    and work."""
    if errors:
        return measurement
    timed = any(layer.time_ns is not None for layer in measurement.layers)
    layers = tuple(_layer(layer, shapes) for layer in measurement.layers if shapes or timed)
    if layers == measurement.layers:
        return measurement
    gone = "errors of its layers" if shapes else "errors and shapes of its layers"
    return msgspec.structs.replace(
        measurement, layers=layers, facts={**measurement.facts, LEFT_OUT: f"{gone}, to make the run small"}
    )


def _layer(layer: Layer, shapes: bool) -> Layer:
    if shapes:
        return msgspec.structs.replace(layer, isolated=None, propagated=None)
    return Layer(
        nodes=layer.nodes,
        op_type=layer.op_type,
        output=layer.output,
        time_ns=layer.time_ns,
        clock=layer.clock,
    )


# ---------------------------------------------------------------------------------------------- files


def lines(
    folder: RunFolder, measurements: Sequence[Measurement], target: Path, grade: ComparisonGrade
) -> list[Measurement]:
    """The measurements of `folder`, made small; answers and images into `target`."""
    whole = _whole(measurements)
    datasets = {info.name: info.dataset for info in folder.header.models}
    for case in whole:
        _answers(gallery.answers_path(folder.path, case), gallery.answers_path(target, case))
        dataset = datasets.get(case.model, "")
        images = gallery.images_path(folder.path, dataset, case)
        _images(images, gallery.images_path(target, dataset, case), grade.images)
    return [thin_measurement(m, grade.errors or m.case in whole, grade.shapes) for m in measurements]


def public(run: Run) -> Run:
    """Also a file of labels, of inputs or of a preprocessing by its name, without where it lies."""
    job = msgspec.structs.replace(
        run.job,
        labels=run.job.labels and Path(run.job.labels).name,
        preprocess=run.job.preprocess and Path(run.job.preprocess).name,
        inputs={name: Path(value).name for name, value in run.job.inputs.items()},
    )
    return bench_public.public(msgspec.structs.replace(run, job=job))


def _whole(measurements: Iterable[Measurement]) -> set[Case]:
    """The cases that keep what they have: of each model, backend and precision one that is sound. All of the
    largest batch that every one of them ran, with the most images, so that they can be compared; where there
    is none, each of its own largest."""
    sound: dict[str, dict[tuple[str, str], list[Case]]] = {}
    for m in measurements:
        if m.disposition in SOUND:
            case = m.case
            sound.setdefault(case.model, {}).setdefault((case.backend, case.precision), []).append(case)
    found = set()
    for contenders in sound.values():
        shared = set.intersection(*({_size(case) for case in cases} for cases in contenders.values()))
        for cases in contenders.values():
            found.add(max((c for c in cases if not shared or _size(c) == max(shared)), key=_size))
    return found


def _size(case: Case) -> tuple[int, int]:
    return case.images, case.batch


def _answers(source: Path, target: Path) -> None:
    """Answers with their confidence to a thousandth, which packs better; none where there are none."""
    try:
        gallery.load_answers(source)
    except DataError:
        return
    columns = npz.arrays(source)
    columns["confidence"] = columns["confidence"].round(3)
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target, **columns)  # type: ignore[arg-type]  # by name


def _images(source: Path, target: Path, count: int) -> None:
    """The first images, in few greys, which pack better; none where there are none."""
    if target.exists():
        return
    try:
        images = gallery.load_images(source)
    except DataError:
        return
    step = 255 / _GREYS
    pixels = (np.round(images.pixels / step) * step).astype(np.uint8)
    gallery.keep_images(target, pixels[:count], images.classes, count)
