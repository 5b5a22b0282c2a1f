"""How images reach a model and its scores leave it: which input takes them and how, what its other inputs are
given, which output holds the scores, and in which order its classes are.

What the user says goes before what the model's file says of itself, and that before what is usual. Accuracy
is the model's own or there is none: `scores` and `matched` refuse in sentences that say what would help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.measure.images import other_inputs
from bench.results.records import Job
from engine.graph.graph import Graph, TensorInfo
from kernels.errors import InputError
from kernels.nearest import did_you_mean
from models import labels, preprocessing
from models.datasets import Dataset
from models.labels import Matched
from models.preprocessing import Preprocessing

LABELS, PREPROCESS, SCORES = "kernelscope.labels", "kernelscope.preprocess", "kernelscope.scores"
NAMES = "names"  # of classes, as ultralytics' exporter writes them


@dataclass(frozen=True)
class Scores:
    """Which output holds the class scores ("": none does, and why); refused: why there is no accuracy though
    there are answers to compare."""

    output: str
    refused: str = ""


class ImageFeed:
    """A model's, in a job. preprocess, classes: what is usual for it. Raises InputError for what the user
    says and the model has not."""

    def __init__(
        self,
        graph: Graph,
        job: Job,
        preprocess: str = "",
        classes: Sequence[str] = (),
        dataset: str = "random",
    ) -> None:
        self.graph = graph
        said = {prop.key: prop.value for prop in graph.proto.metadata_props}
        self._check_inputs(job)
        self.constants = {
            info.name: other_inputs.one_image(info, job.inputs[info.name], graph.batch_axes.get(info.name, 0))
            for info in graph.inputs
            if info.name in job.inputs
        }
        free = [info for info in graph.inputs if info.name not in self.constants]
        own = said.get(PREPROCESS, "")
        integer = bool(free) and np.dtype(free[0].dtype).kind in "ui"
        usual = preprocess or ("raw" if integer else "unit")
        self.preprocess, self._files = (
            (job.preprocess, True) if job.preprocess is not None else (own or usual, not own)
        )
        self.preprocess_from = (
            "" if job.preprocess is not None or not own else "the model's file"
        )  # where no one said
        flat = dataset != "random" or bool(own)
        # Pictures come one after the other: of an input whose batch lies behind another axis none is made.
        first = not free or not graph.batch_axes.get(free[0].name, 0)
        self.image = _image_input(free, self.preprocess, self._files, flat) if first else None
        # Of several, the first that would be given images if each other one were given a value; "": none.
        several = free if len(free) > 1 else []
        fits = (info.name for info in several if _image_input([info], self.preprocess, self._files, False))
        self.would_take = next(fits, "")
        self.order, self.order_from = self._order(job, said, classes)
        self.scores_said = job.scores or said.get(SCORES, "")
        if self.scores_said and self.scores_said not in (outputs := [info.name for info in graph.outputs]):
            raise InputError(
                f"model {graph.name} has no output {self.scores_said!r}"
                f"{did_you_mean(self.scores_said, outputs)}; "
                f"its outputs are {', '.join(outputs)}"
            )

    def _check_inputs(self, job: Job) -> None:
        known = [info.name for info in self.graph.inputs]
        for name in job.inputs:
            if name not in known and name not in self.graph.initializers:  # which it has become
                raise InputError(
                    f"model {self.graph.name} has no input {name!r}{did_you_mean(name, known)}; "
                    f"its inputs are {', '.join(known)}"
                )

    def _order(
        self, job: Job, said: Mapping[str, str], classes: Sequence[str]
    ) -> tuple[tuple[str, ...] | None, str]:
        if classes:
            return tuple(classes), "the catalogue"
        if job.labels == labels.ALPHABETICAL:
            return None, "the names' alphabetical order"
        if job.labels:
            return labels.read(job.labels), Path(job.labels).name
        for key in (LABELS, NAMES):
            if found := labels.of_metadata(said.get(key, "")):
                return found, "the model's file"
        return (), ""

    # ------------------------------------------------------------------------------------------------- inputs

    @property
    def shape(self) -> tuple[int | str | None, ...]:
        """(C, H, W) of one image, for random ones. Only where there is an image input."""
        assert self.image is not None
        return self.image[1]

    def preprocessing(self) -> Preprocessing:
        """Raises InputError where it does not fit the input."""
        assert self.image is not None
        info = self.image[0]
        return Preprocessing(self.preprocess, _batched(info), info.dtype, self._files)

    def inputs(self, pixels: np.ndarray) -> dict[str, np.ndarray]:
        """Every input for these images, in the model's order."""
        assert self.image is not None
        found = {}
        for info in self.graph.inputs:
            if info.name == self.image[0].name:
                found[info.name] = pixels
            else:
                one = self.constants[info.name]
                found[info.name] = np.repeat(one[None], len(pixels), axis=0)
        return found

    def pixels(self, dataset: Dataset, start: int, stop: int) -> tuple[np.ndarray, list[int]]:
        """The image input for the images `start` to `stop` that can be read, and their places."""
        make = self.preprocessing()
        if isinstance(dataset.images, np.ndarray):
            part = dataset.images[start:stop]
            return make(part), list(range(start, start + len(part)))
        images, places = dataset.read(start, stop, make.fit)
        return make.fill(images), places

    def first_pixels(self, dataset: Dataset, count: int) -> np.ndarray:
        """The image input for the first images, at most `count`. Raises DataError where none can be read."""
        make = self.preprocessing()
        return make.fill(dataset.first(count, make.fit))

    def as_bytes(
        self, dataset: Dataset, count: int
    ) -> tuple[np.ndarray, tuple[tuple[float, ...], tuple[float, ...], int] | None]:
        """The first images, at most `count`, as uint8 laid out as the image input, and what makes that of
        them: factors and offsets, one a channel, and how many values of a channel lie in a row. None where
        the input is not float32."""
        assert self.image is not None
        if self.image[0].dtype != "float32":
            return np.empty(0, np.uint8), None
        make = self.preprocessing()
        pixels = make.as_bytes(dataset.first(count, make.fit))
        return pixels, (*make.affine, pixels[0].size // len(make.affine[0]) if make.planar else 1)

    def words(self) -> str:
        """What is done to an image, for those who choose; "" where the model takes none."""
        if self.image is None:
            return ""
        return preprocessing.described(self.preprocess, _batched(self.image[0]), self._files)

    @property
    def named_preprocess(self) -> str:
        """Short enough for a line."""
        return self.preprocess if "=" not in self.preprocess else "as the model's file says"

    def takes_none(self, dataset: str) -> str:
        """Why a data set cannot be fed, in a sentence."""
        shapes = ", ".join(f"{info.name} {shape_words(info)}" for info in self.graph.inputs)
        if len(self.graph.inputs) - len(self.constants) > 1:
            return (
                f"model {self.graph.name} has {len(self.graph.inputs)} inputs ({shapes}): data set "
                f"{dataset} feeds "
                "one; give the others with --input NAME=NUMBER or --input NAME=FILE.npy"
            )
        return (
            f"model {self.graph.name} takes no images ({shapes}), so data set {dataset} cannot be fed to it; "
            "use random"
        )

    # ------------------------------------------------------------------------------------------------ answers

    def scores(self, shapes: Mapping[str, tuple[int, ...]], dataset: Dataset | None) -> Scores:
        """The output that holds the scores. shapes: of the outputs, with the batch; dataset: whose number of
        classes tells outputs apart, where no order of the model's does."""
        rows = {name: count for name, shape in shapes.items() if (count := classes_of(shape)) > 1}
        model = f"model {self.graph.name}"
        listed = ", ".join(f"{name} {_times(shape)}" for name, shape in shapes.items())
        if self.scores_said:
            if self.scores_said in rows:
                return Scores(self.scores_said)
            return Scores("", f"output {self.scores_said} of {model} is no row of class scores ({listed})")
        if not rows:
            return Scores("", f"no output of {model} is a row of class scores, (batch, classes): {listed}")
        first = next(iter(rows))
        wanted = self._wanted(dataset)
        fitting = [name for name, count in rows.items() if wanted is None or wanted(count)]
        if len(fitting) == 1:
            return Scores(fitting[0])
        if not fitting:
            return Scores(first)  # which `matched` says of
        if (found := self._one_softmax(fitting)) is not None:
            return Scores(found)
        why = (
            f"{model} has several outputs that could be its scores ({', '.join(fitting)}): give --scores NAME"
        )
        return Scores(fitting[0], why if dataset is not None and dataset.labelled else "")

    def _wanted(self, dataset: Dataset | None) -> Callable[[int], bool] | None:
        """Which numbers of classes can be the model's; None: any."""
        if self.order:
            return len(self.order).__eq__
        if dataset is None or not dataset.labelled:
            return None
        count = len(dataset.classes)
        return count.__le__ if dataset.numbers == "model's" else count.__eq__

    def _one_softmax(self, names: Sequence[str]) -> str | None:
        """Of two outputs one of which is the other's softmax, so that they answer alike, the first."""
        if len(names) != 2:
            return None
        for node in self.graph.nodes:
            if node.op_type in ("Softmax", "LogSoftmax") and {node.inputs[0], node.outputs[0]} == set(names):
                return names[0]
        return None

    def matched(self, dataset: Dataset, outputs: int) -> Matched:
        """The model's number of each class of a data set that has labels. outputs: how many it scores."""
        return dataset.matched(self.order, outputs, self.graph.name)

    def class_names(self, dataset: Dataset, numbers: np.ndarray | None) -> tuple[str, ...]:
        """By the model's numbers, as far as they are known."""
        if self.order:
            return self.order
        if numbers is None or not len(numbers):
            return ()
        found = {
            int(number): name for number, name in zip(numbers, dataset.classes, strict=True) if number >= 0
        }
        return tuple(found.get(number, str(number)) for number in range(max(found) + 1))


def classes_of(shape: Sequence[int]) -> int:
    """How many classes an output of this shape scores for each image: of (batch, classes), axes of one aside;
    0 where it is no row of scores."""
    wide = [dim for dim in shape[1:] if dim != 1]
    return wide[0] if len(wide) == 1 else 0


def _times(shape: Sequence[int]) -> str:
    return "×".join(["batch", *map(str, shape[1:])])


def shape_words(info: TensorInfo) -> str:
    """As batch×1×28×28."""
    return "×".join(
        "batch" if i == 0 and not isinstance(dim, int) else str(dim) for i, dim in enumerate(info.shape)
    )


def _batched(info: TensorInfo) -> tuple[int | str | None, ...]:
    """The shape with its batch open, so that it is not taken for an image's."""
    return (None, *info.shape[1:])


def _image_input(
    free: Sequence[TensorInfo], preprocess: str, files: bool, flat: bool
) -> tuple[TensorInfo, tuple[int | str | None, ...]] | None:
    """The one input that is given images, with (C, H, W) of one; None where there is none or several are
    open."""
    if len(free) != 1 or len(free[0].shape) < 2:
        return None
    kind = np.dtype(free[0].dtype).kind
    if kind not in "fui" or (kind != "f" and free[0].dtype != "uint8" and not flat):
        return None  # whole numbers that nobody calls pixels may be places in a table
    wanted = preprocessing.parse(preprocess, files).layout
    taken = preprocessing.layout(_batched(free[0]), wanted, flat)
    return None if taken is None else (free[0], (taken.channels, taken.height, taken.width))
