"""A session over a whole data set: what it answers for each image, and how long that takes.

Files of predictions are `predictions/<case key>.npz` in a run folder: label (-1 where there is none),
predicted, confidence and top-5 hit of each image.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.measure.answers import accuracy
from bench.results import npz
from bench.results.records import Accuracy, ErrorStats
from engine.backend import Session
from engine.graph.graph import Graph
from kernels.cache import atomic_file
from kernels.errors import DataError, UnsupportedError
from models.datasets import Dataset
from models.preprocessing import preprocess

Progress = Callable[[str, float | None], None]


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a session answered; all arrays are (images,).

    label: int64, -1 where unknown; predicted: int64 class; confidence: float32 probability of that class;
    top5: bool, whether the label is among the five best; margin: float32, by how much the best score is above
    the next, over the length of the row of scores (NaN: unknown, or a row with NaN or infinity). wall_ns:
    binding, running and fetching all batches (preprocessing is not the backend's and not counted);
    compute_ns: running alone, device synchronised.
    """

    label: np.ndarray
    predicted: np.ndarray
    confidence: np.ndarray
    top5: np.ndarray
    margin: np.ndarray
    wall_ns: int = 0
    compute_ns: int = 0

    def __len__(self) -> int:
        return len(self.predicted)

    @property
    def labelled(self) -> bool:
        return len(self) > 0 and bool((self.label >= 0).all())


def run(
    session: Session,
    graph: Graph,
    dataset: Dataset,
    preprocessing: str,
    *,
    images: int | None = None,
    output: str | None = None,
    progress: Progress | None = None,
) -> Predictions:
    """Answers for the first `images` images of `dataset` (all where None), batch by batch.

    The last batch is filled by repeating images, and so is every batch larger than the data; those answers
    are dropped. output: the class scores, (batch, classes) or (batch, classes, 1, …); the graph's first where
    None. Raises UnsupportedError for a model without one image input or class scores, InputError for images
    that don't fit, and what the session raises.
    """
    if len(graph.inputs) != 1:
        raise UnsupportedError(
            f"model {graph.name} has {len(graph.inputs)} inputs; a data set feeds models with one, of images"
        )
    feed, scores = graph.inputs[0], output or graph.outputs[0].name
    count = min(images or len(dataset), len(dataset))
    if count == 0:
        raise DataError(f"data set {dataset.name} holds no image")
    batch = session.batch
    predicted, confidence = np.empty(count, np.int64), np.empty(count, np.float32)
    top5, margin = np.zeros(count, bool), np.full(count, np.nan, np.float32)
    label = np.full(count, -1, np.int64)
    if dataset.labels is not None:
        label[:] = dataset.labels[:count]
    wall_ns = compute_ns = 0
    for start in range(0, count, batch):
        kept = min(batch, count - start)
        pixels = preprocess(dataset.images[start : start + kept], preprocessing, feed.shape)
        full = pixels if kept == batch else pixels[np.arange(batch) % kept]
        begun = time.perf_counter_ns()
        session.bind({feed.name: full})
        bound = time.perf_counter_ns()
        session.run()
        session.synchronize()
        ran = time.perf_counter_ns()
        answers = session.fetch()[scores]
        wall_ns += time.perf_counter_ns() - begun
        compute_ns += ran - bound
        rows = answers.reshape(len(answers), -1)[:kept]
        if len(answers) != batch or rows.shape[1] < 2:
            raise UnsupportedError(
                f"output {scores} of model {graph.name} has shape {answers.shape}, not (batch, classes)"
            )
        part = slice(start, start + kept)
        best = accuracy.top_k(rows, 5)
        predicted[part] = best[:, 0]
        confidence[part] = probabilities(rows)[np.arange(kept), best[:, 0]]
        top5[part] = (best == label[part, None]).any(axis=1)
        margin[part] = margins(rows)
        if progress is not None:
            progress(f"{start + kept} of {count} images", (start + kept) / count)
    return Predictions(label, predicted, confidence, top5, margin, wall_ns, compute_ns)


def margins(scores: np.ndarray) -> np.ndarray:
    """By how much the best score of each row (n, classes ≥ 2) is above the next, over the row's length; NaN
    for a row that holds NaN or infinity."""
    rows = scores.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        two = np.partition(rows, -2, axis=1)[:, -2:]
        found = (two[:, 1] - two[:, 0]) / np.linalg.norm(rows, axis=1)
    return np.where(np.isfinite(rows).all(axis=1), np.nan_to_num(found), np.nan)


def conflicts(ours: Predictions, reference: Predictions, precision: str) -> np.ndarray:
    """The images (their places) that count against `ours`: no number was answered, or another class than the
    reference's where that was surer than two right answers in `precision` can differ."""
    broken = np.isnan(ours.margin) & ~np.isnan(reference.margin)
    differ = ours.predicted != reference.predicted
    return np.flatnonzero(broken | (differ & accuracy.decided(reference.margin, precision)))


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
    )


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
