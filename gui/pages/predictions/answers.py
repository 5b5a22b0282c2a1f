"""The answers of several contenders to the same images: which images a filter chooses, and who took what
for what.

Files of a run are read in a thread: 10,000 images take longer than the window may wait. Without Qt.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.results import gallery
from bench.results.gallery import Answers, Images
from kernels.errors import KernelscopeError

SHOWN = {
    "all": "All images",
    "wrong": "Wrong on any backend",
    "wrong here": "Wrong on the one chosen",
    "disagree": "Backends disagree",
}
ORDERS = {
    "index": "As in the data set",
    "unsure": "Least confident first",
    "sure": "Most confident first",
}


@dataclass(frozen=True)
class Filter:
    """Which images to show. label: a class, None for all; cell: (label, predicted) for the contender in
    focus."""

    shown: str = "all"
    label: int | None = None
    cell: tuple[int, int] | None = None
    order: str = "index"


@dataclass(frozen=True, eq=False)
class Answered:
    """The answers of contenders, all to the same images. images: None if the run has not kept them;
    problems: what could not be read, in sentences."""

    names: tuple[str, ...]
    answers: tuple[Answers, ...]
    images: Images | None
    problems: tuple[str, ...] = ()

    def __len__(self) -> int:
        return min((len(answers) for answers in self.answers), default=0)

    @property
    def labels(self) -> np.ndarray:
        """int64 (images,), -1 for unknown."""
        return self.answers[0].label[: len(self)] if self.answers else np.empty(0, np.int64)

    @property
    def labelled(self) -> bool:
        return len(self) > 0 and bool((self.labels >= 0).all())

    @property
    def predicted(self) -> np.ndarray:
        """int64 (contenders, images)."""
        return np.stack([answers.predicted[: len(self)] for answers in self.answers])

    def classes(self) -> list[int]:
        """All classes that are a label or an answer, sorted."""
        return [int(c) for c in np.unique(np.concatenate([self.labels, self.predicted.ravel()])) if c >= 0]

    def class_name(self, label: int) -> str:
        names = self.images.classes if self.images is not None else ()
        if label < 0:
            return "?"
        return names[label] if label < len(names) else str(label)

    def chosen(self, wanted: Filter, focus: int) -> np.ndarray:
        """The indices of the images that a filter chooses, in its order. focus: index of a contender."""
        if not len(self):
            return np.empty(0, np.int64)
        predicted, labels = self.predicted, self.labels
        mask = np.ones(len(self), bool)
        if wanted.shown == "wrong":
            mask &= ((predicted != labels) & (labels >= 0)).any(axis=0)
        elif wanted.shown == "wrong here":
            mask &= (predicted[focus] != labels) & (labels >= 0)
        elif wanted.shown == "disagree":
            mask &= (predicted != predicted[0]).any(axis=0)
        if wanted.label is not None:
            mask &= (labels if self.labelled else predicted[focus]) == wanted.label
        if wanted.cell is not None:
            mask &= (labels == wanted.cell[0]) & (predicted[focus] == wanted.cell[1])
        indices = np.flatnonzero(mask)
        if wanted.order != "index":
            confidence = self.answers[focus].confidence[indices]
            indices = indices[
                np.argsort(confidence if wanted.order == "unsure" else -confidence, kind="stable")
            ]
        return indices

    def confusion(self, focus: int) -> np.ndarray:
        """Counts (classes, classes) of `classes()`: one row for each label, one column for each answer."""
        classes = np.array(self.classes(), np.int64)
        known = self.labels >= 0
        rows = np.searchsorted(classes, self.labels[known])
        columns = np.searchsorted(classes, self.predicted[focus][known])
        counts = np.zeros((len(classes), len(classes)), np.int64)
        np.add.at(counts, (rows, columns), 1)
        return counts


@dataclass(frozen=True)
class Files:
    """Which files to read: the answers by contender, and the images. stamps: differ if a file was written
    again."""

    answers: tuple[tuple[str, Path], ...] = ()
    images: Path | None = None
    stamps: tuple[str, ...] = ()


def read(files: Files) -> Answered:
    """Read all that can be read; `problems` says what cannot."""
    names, answers, problems = [], [], []
    for name, path in files.answers:
        try:
            answers.append(gallery.load_answers(path))
            names.append(name)
        except KernelscopeError as error:
            problems.append(str(error))
    images = None
    if files.images is not None and files.images.is_file():
        try:
            images = gallery.load_images(files.images)
        except KernelscopeError as error:
            problems.append(str(error))
    elif answers:
        problems.append("this run has not kept its images; their answers are shown without them")
    return Answered(tuple(names), tuple(answers), images, tuple(problems))


def agreeing(answered: Answered) -> int:
    """The number of images to which all contenders give the same answer."""
    return int((answered.predicted == answered.predicted[0]).all(axis=0).sum()) if len(answered) else 0
