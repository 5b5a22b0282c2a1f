"""A run made small enough to ship or to send, with every chart and table as it was.

Of the samples those about the median are kept. The bootstrap distribution of the median of n samples lies
within ranks n/2 ± √n/2 or so; m samples spread evenly over the central √(m/n) of the sorted n have the same
one, so medians, intervals and verdicts stay (the tails go: a thinned run is no place to study them). Of every
backend one case a model keeps its layers' errors and its predictions; the others keep their layers' times.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from bench import gallery
from bench.records import Accuracy, Case, ErrorStats, Layer, Measurement, Run, Telemetry
from bench.rows import SOUND
from bench.stats import split_rounds
from bench.store import RESULTS_FILE, RUN_FILE, RunFolder, write_atomically
from kernels.errors import DataError, InputError

MOST_NBYTES = 300_000
_TELEMETRY = 5  # values kept of each reading: least, quartiles, most
_GREYS = 15  # of a kept image, above black


@dataclass(frozen=True)
class Grade:
    """How much goes. samples: kept of a measurement; shapes: whether every case keeps its layers' sizes, or
    only the times by which a pass is divided; images: kept of a data set, the first ones."""

    samples: int
    shapes: bool
    images: int


GRADES = (
    Grade(48, True, 400),
    Grade(48, False, 400),
    Grade(24, False, 400),
    Grade(24, False, 200),
    Grade(24, False, 100),
    Grade(12, False, 50),
)


def thin(source: Path, target: Path, most_nbytes: int = MOST_NBYTES) -> int:
    """Write the run in `source`, thinned as little as fits `most_nbytes`, to the new folder `target`; its
    size in bytes. Raises InputError where the source is no run, the target exists or nothing fits."""
    held = RunFolder.open(source)
    measurements = held.measurements()
    if not measurements:
        raise InputError(f"{source} holds no measurement yet, so there is nothing to thin")
    if target.exists():
        raise InputError(f"{target} exists already; name a new folder")
    size = 0
    for grade in GRADES:
        with tempfile.TemporaryDirectory(prefix="kernelscope-") as name:
            made = Path(name) / "run"
            _write(held.run, measurements, held.path, made, grade)
            size = sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
            if size <= most_nbytes:
                try:
                    shutil.copytree(made, target)
                except OSError as error:
                    raise InputError(f"cannot write {target}: {error.strerror or error}") from error
                return size
    raise InputError(
        f"{source} thinned takes {size:,} bytes at the least, above {most_nbytes:,}; "
        "run fewer batch sizes or models"
    )


def thin_measurement(measurement: Measurement, samples: int, errors: bool, shapes: bool) -> Measurement:
    """One measurement with at most about `samples` samples (see `keep`). errors: whether its layers keep
    theirs; shapes: their sizes and work."""
    kept, rounds = keep(measurement.samples_ns, measurement.rounds, samples)
    facts = measurement.facts
    if len(kept) < len(measurement.samples_ns):
        facts = facts | {"samples kept": f"{len(kept)} of {len(measurement.samples_ns):,}, about the median"}
    return msgspec.structs.replace(
        measurement,
        samples_ns=tuple(_rounded(value, 6) for value in kept),
        rounds=rounds,
        phases={name: _rounded(ns, 5) for name, ns in measurement.phases.items()},
        layers=tuple(_layer(layer, errors, shapes) for layer in measurement.layers),
        accuracy=_accuracy(measurement.accuracy),
        telemetry=_telemetry(measurement.telemetry),
        facts=facts,
    )


def keep(
    samples: Sequence[float], rounds: Sequence[int], most: int
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """At most about `most` of the samples, in the order taken, and where a round starts among them.

    The median of all is the same to the last bit; the bootstrap distribution of each round's median, and with
    it every interval and verdict, is nearly so. Rounds keep their shares.
    """
    if len(samples) <= most:
        return tuple(samples), tuple(rounds)
    values = np.asarray(samples, dtype=np.float64)
    parts = split_rounds(values, rounds)
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    chosen = np.zeros(len(values), dtype=bool)
    for start, part in zip(starts, parts, strict=True):
        count = max(1, round(most * len(part) / len(values)))
        chosen[start + np.argsort(part, kind="stable")[_central(len(part), count)]] = True
    _balance(values, chosen)
    at = np.cumsum(chosen) - chosen
    return tuple(values[chosen].tolist()), tuple(int(at[start]) for start in starts) if len(
        starts
    ) > 1 else ()


def _central(count: int, wanted: int) -> np.ndarray:
    """Ranks of `wanted` of `count` sorted samples, even over their central √(wanted/count)."""
    if wanted >= count:
        return np.arange(count)
    spread = ((np.arange(wanted) + 0.5) / wanted - 0.5) * np.sqrt((wanted + 2) / (count + 2))
    return np.unique(np.clip(np.floor((0.5 + spread) * count).astype(int), 0, count - 1))


def _balance(values: np.ndarray, chosen: np.ndarray) -> None:
    """Choose also the middle one or two of all, and as many below as above: the median is that of all."""
    order = np.argsort(values, kind="stable")
    count = len(order)
    low, high = (count - 1) // 2, count // 2
    chosen[order[[low, high]]] = True
    below, above = order[:low][::-1], order[high + 1 :]  # nearest the middle first
    lacking = int(chosen[below].sum()) - int(chosen[above].sum())
    light = above if lacking > 0 else below
    chosen[light[~chosen[light]][: abs(lacking)]] = True


def _layer(layer: Layer, errors: bool, shapes: bool) -> Layer:
    time_ns = None if layer.time_ns is None else _rounded(layer.time_ns, 5)
    if not errors and not shapes:
        return Layer(
            nodes=layer.nodes, op_type=layer.op_type, output=layer.output, time_ns=time_ns, clock=layer.clock
        )
    return msgspec.structs.replace(
        layer,
        time_ns=time_ns,
        isolated=_error(layer.isolated) if errors else None,
        propagated=_error(layer.propagated) if errors else None,
    )


def _error(error: ErrorStats | None) -> ErrorStats | None:
    if error is None:
        return None
    figures = {name: getattr(error, name) for name in ("rel_l2", "max_abs", "mean_abs", "max_rel", "ratio")}
    return msgspec.structs.replace(
        error, **{name: None if value is None else _rounded(value, 4) for name, value in figures.items()}
    )


def _accuracy(accuracy: Accuracy | None) -> Accuracy | None:
    return accuracy and msgspec.structs.replace(accuracy, output=_error(accuracy.output))


def _telemetry(seen: Telemetry) -> Telemetry:
    def few(values: tuple[float, ...]) -> tuple[float, ...]:
        if len(values) <= _TELEMETRY:
            return values
        places = np.linspace(0, len(values) - 1, _TELEMETRY).round().astype(int)
        return tuple(float(value) for value in np.sort(values)[places])

    return msgspec.structs.replace(
        seen,
        sm_clock_mhz=few(seen.sm_clock_mhz),
        power_w=few(seen.power_w),
        temperature_c=few(seen.temperature_c),
    )


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


# ---------------------------------------------------------------------------------------------- files


def _write(run: Run, measurements: Sequence[Measurement], source: Path, target: Path, grade: Grade) -> None:
    whole = _whole(measurements)
    lines = [
        msgspec.json.encode(thin_measurement(m, grade.samples, m.case in whole, grade.shapes)) + b"\n"
        for m in measurements
    ]
    write_atomically(target / RUN_FILE, msgspec.json.encode(_public(run)))
    write_atomically(target / RESULTS_FILE, b"".join(lines))
    datasets = {info.name: info.dataset for info in run.models}
    for case in whole:
        _answers(gallery.answers_path(source, case), gallery.answers_path(target, case))
        dataset = datasets.get(case.model, "")
        images = gallery.images_path(source, dataset, case)
        _images(images, gallery.images_path(target, dataset, case), grade.images)


def _public(run: Run) -> Run:
    """Without what tells of one machine alone: where its models lie, the GPU's serial number."""
    models = tuple(msgspec.structs.replace(info, path=Path(info.path).name) for info in run.models)
    environment = msgspec.structs.replace(run.environment, gpu_uuid="")
    return msgspec.structs.replace(run, models=models, environment=environment)


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
    with np.load(source, allow_pickle=False) as file:
        columns = dict(file)
    columns["confidence"] = columns["confidence"].round(3)
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target, **columns)


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
