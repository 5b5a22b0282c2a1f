"""A session over a whole data set: what it answers for each image, and how long that takes.

Files of predictions are `predictions/<case key>.npz` in a run folder: label (-1 where there is none),
predicted, confidence and top-5 hit of each image.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from bench.measure.answers import accuracy
from bench.measure.images.image_feed import ImageFeed, Scores, classes_of
from bench.measure.outcomes import Incorrect
from bench.results import gallery, npz
from bench.results.records import Accuracy, Case, ErrorStats
from engine.backend import Session
from kernels.cache import atomic_file
from kernels.errors import DataError, UnsupportedError
from models import labels
from models.datasets import Dataset

Progress = Callable[[str, float | None], None]
AHEAD = 64  # images at least that are read and prepared at once, whatever the batch, so that a pool has work
MOST_NAMED = 12


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a session answered; all arrays are (images,).

    label: int64, -1 where unknown; predicted: int64 class; confidence: float32 probability of that class;
    top5: bool, whether the label is among the five best; margin: float32, by how much the best score is above
    the next, over the length of the row of scores (NaN: unknown, or a row with NaN or infinity). wall_ns:
    binding, running and fetching all batches (preprocessing is not the backend's and not counted);
    compute_ns: running alone, device synchronised. places: of each image in its data set; names: of the
    classes, by the model's numbers, as far as they are known; refused, hint: see records.Accuracy.
    """

    label: np.ndarray
    predicted: np.ndarray
    confidence: np.ndarray
    top5: np.ndarray
    margin: np.ndarray
    wall_ns: int = 0
    compute_ns: int = 0
    places: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    names: tuple[str, ...] = ()
    refused: str = ""
    hint: str = ""

    def __len__(self) -> int:
        return len(self.predicted)

    @property
    def labelled(self) -> bool:
        return len(self) > 0 and bool((self.label >= 0).all())


def run(
    session: Session,
    feed: ImageFeed,
    dataset: Dataset,
    *,
    images: int | None = None,
    progress: Progress | None = None,
) -> Predictions:
    """Answers for the first `images` images of `dataset` (all where None), batch by batch; images that cannot
    be read are left out.

    The last batch is filled by repeating images, and so is every batch larger than the data; those answers
    are dropped. Labels are the model's numbers of the classes; where there are labels and the feed cannot say
    which those are, they are -1 and `refused` says why. Raises UnsupportedError for a model without class
    scores, InputError for images that don't fit, DataError where there are none, and what the session raises.
    """
    count = min(images or len(dataset), len(dataset))
    if count == 0:
        raise DataError(f"data set {dataset.name} holds no image")
    batch = session.batch
    taken = _Answers(feed, dataset)
    wall_ns = compute_ns = 0
    ahead = batch * max(1, -(-AHEAD // batch))
    for first in range(0, count, ahead):
        pixels, places = feed.pixels(dataset, first, min(first + ahead, count))
        for start in range(0, len(places), batch):
            part = pixels[start : start + batch]
            full = part if len(part) == batch else part[np.arange(batch) % len(part)]
            inputs = feed.inputs(full)
            begun = time.perf_counter_ns()
            session.bind(inputs)
            bound = time.perf_counter_ns()
            session.run()
            session.synchronize()
            ran = time.perf_counter_ns()
            answers = session.fetch()
            wall_ns += time.perf_counter_ns() - begun
            compute_ns += ran - bound
            taken.take(answers, places[start : start + batch], batch)
            if progress is not None:
                done = places[min(start + batch, len(places)) - 1] + 1
                progress(f"{done} of {count} images", done / count)
    return taken.predictions(wall_ns, compute_ns)


class _Answers:
    """Answers as they come; which output holds the scores is seen in the first batch."""

    def __init__(self, feed: ImageFeed, dataset: Dataset) -> None:
        self._feed, self._dataset = feed, dataset
        self._scores: Scores | None = None
        self._numbers: np.ndarray | None = None
        self._refused = ""
        self._parts: list[tuple[np.ndarray, ...]] = []

    def take(self, answers: Mapping[str, np.ndarray], places: Sequence[int], batch: int) -> None:
        name, kept = self._output(answers), len(places)
        if len(answers[name]) != batch:
            raise UnsupportedError(
                f"output {name} of model {self._feed.graph.name} has shape {answers[name].shape}, not "
                f"(batch, "
                "classes)"
            )
        rows = answers[name].reshape(batch, -1)[:kept]
        label, own = np.full(kept, -1, np.int64), np.full(kept, -1, np.int64)
        if self._dataset.labels is not None:
            own = self._dataset.labels[list(places)]
            label = label if self._numbers is None else self._numbers[own]
        best = accuracy.top_k(rows, 5)
        confidence = probabilities(rows)[np.arange(kept), best[:, 0]]
        hit = (best == label[:, None]).any(axis=1)
        self._parts.append((label, best[:, 0], confidence, hit, margins(rows), np.array(places), own))

    def _output(self, answers: Mapping[str, np.ndarray]) -> str:
        if self._scores is None:
            shapes = {info.name: answers[info.name].shape for info in self._feed.graph.outputs}
            self._scores = self._feed.scores(shapes, self._dataset)
            if not self._scores.output:
                raise UnsupportedError(self._scores.refused)
            self._refused = self._scores.refused
            if self._dataset.labelled and not self._refused:
                found = self._feed.matched(self._dataset, classes_of(shapes[self._scores.output]))
                self._numbers, self._refused = found.numbers, found.refused
        return self._scores.output

    def predictions(self, wall_ns: int, compute_ns: int) -> Predictions:
        if not self._parts:
            raise self._dataset.unreadable()
        label, predicted, confidence, top5, margin, places, own = map(
            np.concatenate, zip(*self._parts, strict=True)
        )
        found = Predictions(
            label.astype(np.int64),
            predicted,
            confidence.astype(np.float32),
            top5,
            margin.astype(np.float32),
            wall_ns,
            compute_ns,
            places=places,
            refused=self._refused,
            names=self._feed.class_names(self._dataset, self._numbers),
        )
        return replace(found, hint=self._hint(found, own))

    def _hint(self, found: Predictions, own: np.ndarray) -> str:
        """Whether another order of the classes would explain the answers far better, in a sentence."""
        if not self._dataset.labelled:
            return ""
        top1 = float((found.predicted == found.label).mean()) if found.labelled else None
        hint = labels.explained(own, found.predicted, top1)
        if hint is None:
            return ""
        names = self._dataset.classes
        order = [names[hint.order[n]] if n in hint.order else "?" for n in range(max(hint.order) + 1)]
        shown = ", ".join(order[:MOST_NAMED]) + (", …" if len(order) > MOST_NAMED else "")
        instead = "" if top1 is None else f" instead of {top1:.1%}"
        return (
            f"another order of the classes would explain the answers far better: {hint.right:.1%} of "
            f"{len(own):,} "
            f"images would be right{instead} if the model's classes were, in its order, {shown}"
        )


def margins(scores: np.ndarray) -> np.ndarray:
    """By how much the best score of each row (n, classes ≥ 2) is above the next, over the row's length; NaN
    for a row that holds NaN or infinity."""
    rows = scores.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        two = np.partition(rows, -2, axis=1)[:, -2:]
        found = (two[:, 1] - two[:, 0]) / np.linalg.norm(rows, axis=1)
    return np.where(np.isfinite(rows).all(axis=1), np.nan_to_num(found), np.nan)


def hold(
    ours: Predictions, theirs: Predictions, precision: str, name: str, moved: Callable[[], float]
) -> None:
    """Raises Incorrect where the answers differ from those of `name` on an image that it was sure of. moved:
    by what part of its length a right answer may be off beside rounding, asked for where any differs."""
    found = conflicts(ours, theirs, precision)
    if found.size:
        found = conflicts(ours, theirs, precision, moved())
    if found.size:
        first = int(found[0])
        raise Incorrect(
            None,
            "over the data set",
            f"{found.size:,} of {len(ours):,} images are answered otherwise than by {name}, which was sure "
            f"of them, first image {int(ours.places[first])}: class {int(ours.predicted[first])} instead of "
            f"{int(theirs.predicted[first])}",
        )


def conflicts(ours: Predictions, reference: Predictions, precision: str, moved: float = 0.0) -> np.ndarray:
    """The images (their places) that count against `ours`: no number was answered, or another class than the
    reference's where that was surer than two right answers in `precision` can differ. moved: see `hold`."""
    broken = np.isnan(ours.margin) & ~np.isnan(reference.margin)
    differ = ours.predicted != reference.predicted
    return np.flatnonzero(broken | (differ & accuracy.decided(reference.margin, precision, moved)))


def probabilities(scores: np.ndarray) -> np.ndarray:
    """Rows (n, classes) as probabilities: as they are where they are that already, else their softmax."""
    if (scores >= 0).all() and np.allclose(scores.sum(axis=1), 1.0, atol=1e-2):
        return scores
    with np.errstate(invalid="ignore"):  # a row of infinities has no probabilities: NaN is told
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)


def summary(
    ours: Predictions,
    reference: Predictions | None = None,
    reference_name: str = "",
    *,
    checked: int = 0,
    output: ErrorStats | None = None,
    notes: tuple[str, ...] = (),
) -> Accuracy:
    """The record of `ours`; agreement where `reference` answered the same images. See records.Accuracy."""
    same = reference is not None and len(reference) == len(ours)
    return Accuracy(
        images=len(ours),
        labelled=ours.labelled,
        top1=float((ours.predicted == ours.label).mean()) if ours.labelled else None,
        top5=float(ours.top5.mean()) if ours.labelled else None,
        agreement=accuracy.agreement(ours.predicted, reference.predicted) if reference and same else None,
        reference=reference_name if same else "",
        checked=checked,
        output=output,
        refused=ours.refused,
        hint=ours.hint,
        notes=notes,
    )


def keep_images(folder: str, name: str, dataset: Dataset, case: Case, ours: Predictions) -> None:
    """The images of data set `name` that were answered, where they are not kept already. Raises OSError."""
    target = gallery.images_path(Path(folder), name, case, written=False)
    if not target.exists():
        shown, _ = dataset.read(0, min(case.images, gallery.MOST), gallery.small_one)
        gallery.keep_images(target, gallery.stacked(shown), ours.names, case.images)


def save(path: Path, predictions: Predictions) -> None:
    """Write an npz file, whole or not at all. Raises OSError as the system gives it."""
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(
            stream,
            label=predictions.label,
            predicted=predictions.predicted,
            confidence=predictions.confidence,
            top5=predictions.top5,
            margin=predictions.margin,
            ns=np.array([predictions.wall_ns, predictions.compute_ns], np.int64),
        )


def load(path: Path) -> Predictions:
    """Read what `save` wrote. Raises DataError where it is missing or broken."""
    try:
        file = npz.arrays(path, ("label", "predicted", "confidence", "top5", "ns"), optional=("margin",))
        wall_ns, compute_ns = (int(value) for value in file["ns"])
        unknown = np.full(len(file["predicted"]), np.nan, np.float32)
        return Predictions(
            file["label"],
            file["predicted"],
            file["confidence"],
            file["top5"],
            file.get("margin", unknown),
            wall_ns,
            compute_ns,
        )
    except (OSError, ValueError, TypeError, OverflowError) as error:
        raise DataError(f"predictions {path} cannot be read ({error}): run the comparison again") from error
