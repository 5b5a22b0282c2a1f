"""What a model's preview shows before anything runs: the question and its answer, as the window reads them.
Light: it imports nothing that reads a model (bench.questions.model_preview does)."""

from __future__ import annotations

import msgspec

from bench.questions.asked import Answer, Question, Takes
from bench.results.records import Job

Dims = tuple[int | str | None, ...]


class WhichPreview(Question, frozen=True, tag="preview"):
    """The preview of the first model of a job, at one batch size (of a file that fixes its own, at that one)
    and in the job's first precision."""

    job: Job
    batch: int = 1


class Tensor(msgspec.Struct, frozen=True):
    """An input or output of the model."""

    name: str
    dtype: str
    shape: Dims


class Run(msgspec.Struct, frozen=True):
    """What our engine does for a node on one device. kernel: operator and rung; chosen: what chose the rung;
    nodes: all that this step covers, in order; refused: why there is no kernel; note: why none is needed."""

    kernel: str = ""
    chosen: str = ""
    nodes: tuple[str, ...] = ()
    refused: str = ""
    note: str = ""


class PreviewNode(msgspec.Struct, frozen=True):
    """inputs: tensors that are neither weights nor left out; weights: initializers it reads, by name; shape:
    of its first output, () where it is not known; runs: by device."""

    name: str
    op: str
    domain: str
    inputs: tuple[str, ...]
    weights: tuple[str, ...]
    outputs: tuple[str, ...]
    shape: tuple[int, ...]
    attributes: tuple[tuple[str, str], ...]
    runs: dict[str, Run]


class Weight(msgspec.Struct, frozen=True):
    """An initializer. counts: a histogram of its finite values over low … high, in bins of one width (none:
    it holds no numbers); taken: how many values, evenly spread, the statistics are of."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    nbytes: int
    low: float = 0.0
    high: float = 0.0
    mean: float = 0.0
    std: float = 0.0
    zeros: float = 0.0
    not_finite: int = 0
    taken: int = 0
    counts: tuple[int, ...] = ()


class Picture(msgspec.Struct, frozen=True):
    """Pixels in rows, a byte a channel; channels: 1 (grey) or 3 (red, green, blue)."""

    width: int
    height: int
    channels: int
    pixels: bytes


class SeenImage(msgspec.Struct, frozen=True):
    """An image of the data set, and what the model is given of it: each channel's values from its lowest
    (black) to its highest, blue and red as the model has them. channels: lowest, mean and highest value."""

    label: str
    own: Picture
    given: Picture
    channels: tuple[tuple[float, float, float], ...]
    size: str


class Preview(Answer, frozen=True, tag="preview"):
    """takes: what the form shows of the file, too. left_out: nodes, weights beyond what is shown. devices:
    what our engine says of the whole model, by device. images_note: why there are no images, or what they
    are."""

    model: str
    takes: Takes
    facts: tuple[tuple[str, str], ...]
    batch: int
    precision: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    nodes: tuple[PreviewNode, ...]
    weights: tuple[Weight, ...]
    devices: dict[str, str]
    images: tuple[SeenImage, ...] = ()
    images_note: str = ""
    left_out: int = 0
