"""What all cases of one model share: its graph, its images, the golden answers, the reference's answers.

Loaded when first needed and dropped when the next model's turn comes, so that a run over many models holds
one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from bench.measure import cases, rung_check, timing
from bench.measure.answers import accuracy, by_image, cross_check, memory_check, oracle
from bench.measure.answers.accuracy import Allowed
from bench.measure.answers.oracle import Golden
from bench.measure.answers.right import RightAnswers
from bench.measure.images import model_file, predictions
from bench.measure.images.image_feed import ImageFeed
from bench.measure.images.predictions import Predictions
from bench.results.records import ErrorStats, Job, ModelInfo
from bench.run import chosen_rungs, confined
from bench.words import units
from engine import backends
from engine.backend import Backend, Options
from engine.graph import importer
from engine.graph.graph import Graph, TensorInfo
from engine.options import DISABLED, Configuration
from engine.planning import groups
from kernels.errors import InputError, KernelscopeError, ModelError, OutOfMemoryError, UnsupportedError
from kernels.precision import NAMES, of
from kernels.registry import SUFFIX
from models import datasets
from models.datasets import Dataset

FILLERS = 32  # images that fill a batch beside the golden ones
REFERENCE_BATCH = 64
ORACLE = "float64 oracle"
# Beyond a case's time, in which whoever started this process ends it, if there still is anybody.
ALARM_S = 5.0
FALLBACK = "ort-cpu"  # judges where the oracle can't, and stands in for a reference that can't run here

Progress = Callable[[str, float | None], None]


class LoadedModel:
    """One model of a job. batches: the batch sizes it will run at. compared: backends of cases that are
    planned, beside those that the job means here. Raises KernelscopeError on loading."""

    def __init__(
        self,
        name: str,
        job: Job,
        batches: tuple[int, ...],
        progress: Progress,
        compared: Collection[str] = (),
    ) -> None:
        self._job = job
        self._progress = progress
        self.spec = cases.model_spec(name, job)
        self.path = self.spec.file(progress)
        # A job that names no backend means all that can run here: their devices say what is one group of
        # nodes, and a group must be no smaller than a step of any of them.
        asked = job.backends or [backend.name for backend in cases.choose_backends(())]
        devices = sorted({backends.get(name).device for name in (*asked, *compared)})
        found = self._read_graph()
        self.graph: Graph = replace(found.graph, devices=tuple(devices))
        self.notes = found.notes  # what was taken for what the file leaves open
        self.feed = ImageFeed(
            self.graph, job, self.spec.preprocess, self.spec.classes, dataset=self.spec.dataset
        )
        self._plain = Options(
            threads=job.threads,
            cuda_graph=job.cuda_graph,
            kernel_dirs=tuple(Path(name).expanduser() for name in job.kernel_dirs),
        )
        self.options = self.options_for("")  # with the rungs that are named for no device
        self._most = max(batches)
        self._dataset: Dataset | None = None
        self._golden: Golden | None = None
        self.compiled: set[str] = set()  # precisions whose kernels were compiled ahead (bench.measure.tuned)
        self.beside: Callable[[], None] = lambda: None  # begins what is done meanwhile
        self._placements: list[tuple[tuple[int, int], accuracy.Placement]] = []
        self._right: RightAnswers | None = None
        self._by_float64: RightAnswers | None = None  # where ONNX Runtime judges since the two differ
        self.judge = ORACLE  # or why another had to judge
        self.unchecked = ""  # where the oracle was not held against ONNX Runtime, and why
        self._filler: np.ndarray | None = None
        self._reference: dict[tuple[str, int], tuple[str, Predictions | None]] = {}
        self._check_weights()

    def _read_graph(self) -> model_file.Read:
        """The model's file; one that the user named may be anybody's, and is read within limits."""
        if self.spec.path is None:
            return model_file.Read(importer.load(self.path))
        try:
            with confined.confined(self._job.timeout_s + ALARM_S):
                return model_file.of_job(self.spec, self._job)
        except MemoryError:
            raise OutOfMemoryError(confined.too_large(f"model file {str(self.path)!r}")) from None

    def options_for(self, device: str, swaps: bool = False) -> Options:
        """The options with the job's rungs for nodes of this model on a device ("cpu" or "cuda"). swaps:
        those that take the place of nodes in a reference."""
        nodes = {node.name for node in self.graph.nodes}
        job, dirs = self._job, self._plain.kernel_dirs
        named = job.swaps if swaps else job.rungs
        asked = rung_check.meant_for(named, device, dirs, tuple(SUFFIX)) if device else named
        rungs = chosen_rungs.of_model(asked, self.spec.name, job.models, nodes, device)
        return replace(self._plain, rungs=rungs)

    def _check_weights(self) -> None:
        for name, array in self.graph.initializers.items():
            # Infinity has a meaning: masks of attention are of 0 and -inf, as exporters write them.
            if array.dtype.kind == "f" and np.isnan(array).any():
                raise ModelError(
                    f"weight {name} of model {self.graph.name} holds NaN: no answer of it means anything; "
                    "export the model again from weights that are numbers"
                )

    def tell(self, text: str) -> None:
        """What is being done with it, for whoever waits."""
        self._progress(text, None)

    # -------------------------------------------------------------------------------------------- what it is

    def info(self) -> ModelInfo:
        """The record of the model; FLOPs are those the engine's operators count, 0 where it refuses one."""
        batch = self.graph.fixed_batch or 1
        try:
            flops = sum(group.flops for group in groups.groups(self.graph, batch)) // batch
        except KernelscopeError:
            flops = 0
        return ModelInfo(
            name=self.spec.name,
            title=self.spec.title,
            path=str(self.spec.path or ""),
            dataset=self.spec.dataset,
            preprocess=self.feed.named_preprocess,
            labels=self.feed.order_from,
            image=self.feed.words(),
            notes=self.notes,
            sha256=self.graph.sha256,
            parameters=sum(a.size for a in self.graph.initializers.values() if a.dtype.kind == "f"),
            flops_per_image=flops,
        )

    @property
    def takes_images(self) -> bool:
        """Whether a data set can be fed."""
        return self.feed.image is not None

    def dataset(self, images: int) -> Dataset:
        """At least the first `images` images, fewer where there are fewer. Raises DataError."""
        if self._dataset is None or (len(self._dataset) < images and not self._exhausted):
            self._dataset = datasets.load(
                self.spec.dataset, images, self._progress, shape=self.feed.shape, seed=self._job.seed
            )
            self._exhausted = len(self._dataset) < images
        return self._dataset

    _exhausted = False

    # ---------------------------------------------------------------------------------------- inputs, checks

    def golden(self) -> Golden:
        """Golden answers of the first images. Where the oracle cannot run the model, or ONNX Runtime does not
        agree with it, ONNX Runtime on the CPU judges instead, and `judge` says so. Raises UnsupportedError
        where no two answers of the model can be compared."""
        if self._golden is None:
            if (drawn := by_image.random_node(self.graph)) is not None:
                raise UnsupportedError(
                    f"no answer of model {self.graph.name} can be compared: node {drawn[0]} ({drawn[1]}) "
                    "draws other numbers in each pass; export the model for inference, without what draws"
                )
            inputs = self._golden_inputs()
            self._progress(f"computing {self.graph.name} in float64", None)
            found, doubt = self._of_oracle(inputs)
            if found is None and self.golden_images > 1 and self.graph.fixed_batch is None:
                alone = by_image.cut(self.graph, inputs, slice(1))  # a file may be right for one image alone
                found, other = self._of_oracle(alone)
                inputs, doubt = (inputs, doubt) if found is None else (alone, other)
            if found is None or doubt:
                if found is not None:
                    self._by_float64 = RightAnswers(self.graph, found, True, self._fallback)
                    self._by_float64.layout = None  # as of what ONNX Runtime judges: all of a batch
                self.judge = f"checked against {FALLBACK}: {doubt}"
                answers = self._of_reference(inputs, str(doubt))
                found = Golden(by_image.count(self.graph, inputs), dict(inputs), answers)
            self._golden = self._as_judged(found)
        return self._golden

    def _of_oracle(self, inputs: Mapping[str, np.ndarray]) -> tuple[Golden | None, str | None]:
        """The oracle's answers, and why they cannot be trusted."""
        try:
            found = oracle.golden(self.graph, inputs)
            crossed = self._crossed(found)
            self.unchecked = crossed.unchecked
            return found, crossed.doubt
        except UnsupportedError as error:
            return None, str(error)

    def _of_reference(self, inputs: Mapping[str, np.ndarray], doubt: str) -> dict[str, np.ndarray]:
        """Its answers, as `_fallback`'s. Raises UnsupportedError where it gives none, either."""
        try:
            return self._fallback(inputs)
        except OutOfMemoryError:
            raise
        except KernelscopeError as error:
            raise UnsupportedError(
                f"nobody can say what is right for model {self.graph.name}: {doubt}; {error}"
            ) from error

    def _as_judged(self, found: Golden) -> Golden:
        self._right = RightAnswers(self.graph, found, self.judge == ORACLE, self._fallback)
        return replace(found, together=self._right.layout is None)

    @property
    def right(self) -> RightAnswers:
        """What passes are to answer. Raises as `golden` does."""
        self.golden()
        assert self._right is not None
        return self._right

    def work_out(self) -> None:
        """The oracle's part of `golden`, which is kept for whoever asks next; no backend is asked. Nothing
        where its images would have to be downloaded."""
        if not self.takes_images or datasets.available(self.spec.dataset) is None:
            found = oracle.golden(self.graph, self._golden_inputs())
            by_image.layout(self.graph, found.inputs, found.tensors, found.images, self._outputs_of)

    def _outputs_of(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return oracle.answered(self.graph, inputs, [info.name for info in self.graph.outputs])

    @property
    def golden_images(self) -> int:
        """How many images `golden` answers for."""
        return self.graph.fixed_batch or max(2, min(oracle.MAX_IMAGES, self._most))

    def given(self) -> Mapping[str, np.ndarray]:
        """The inputs that `golden` answers for."""
        return self._golden.inputs if self._golden is not None else self._golden_inputs()

    def _golden_inputs(self) -> dict[str, np.ndarray]:
        count = self.golden_images
        self.check_room(self.graph.fixed_batch or 1)
        if not self.takes_images:
            if self.spec.dataset != "random":
                raise InputError(self.feed.takes_none(self.spec.dataset))
            if not self.graph.inputs:
                raise UnsupportedError(
                    f"model {self.graph.name} has no inputs, so that all of it is one constant: there is "
                    "nothing to compare or to time"
                )
            return self._drawn(count, self._job.seed)
        pixels = self.feed.first_pixels(self.dataset(max(count, FILLERS)), max(count, FILLERS))
        pixels = pixels[np.arange(count) % len(pixels)]
        if not np.isfinite(pixels).all():
            raise InputError(
                f"the input of model {self.graph.name} holds NaN or infinity after preprocessing "
                f"{self.spec.preprocess}; use another --preprocess"
            )
        return self.feed.inputs(pixels)

    def _drawn(self, count: int, seed: int) -> dict[str, np.ndarray]:
        """Random inputs for so many images."""
        random = np.random.default_rng(seed)
        given, axes = self.feed.constants, self.graph.batch_axes
        return {
            info.name: np.repeat(np.expand_dims(given[info.name], axis), count, axis)
            if info.name in given
            else _random_input(info, count, random)
            for info, axis in ((info, axes.get(info.name, 0)) for info in self.graph.inputs)
        }

    def unseen(self, count: int) -> dict[str, np.ndarray]:
        """So many images that `golden` does not answer for, a few of them again and again; the same in each
        process. Raises as `golden`."""
        if not self.takes_images:
            return self._drawn(count, self._job.seed + 1)
        pixels = self.feed.first_pixels(
            self.dataset(self.golden_images + FILLERS), self.golden_images + FILLERS
        )
        others = pixels[self.golden_images :]
        if not len(others):  # a small data set: what a pass of comparisons is disturbed by
            return accuracy.disturbed(self.feed.inputs(pixels[np.arange(count) % len(pixels)]))
        return self.feed.inputs(np.ascontiguousarray(others[np.arange(count) % len(others)]))

    def doubts(self, batch: int) -> list[str]:
        """What speaks against the judgement of answers at this batch size, in sentences."""
        judge = self.judge_of(batch)
        return [*filter(None, ("" if judge == ORACLE else judge, self.unchecked))]

    def check_room(self, batch: int) -> None:
        """Raises OutOfMemoryError where memory does not hold the model, its right answers and passes at this
        batch size together."""
        memory_check.check(self.graph, batch, self.golden_images)

    def _crossed(self, found: Golden) -> cross_check.Crossed:
        """How the oracle's answers stand to ONNX Runtime's, layer by layer."""
        if backends.get(FALLBACK).unavailable() is not None:
            return cross_check.Crossed()  # there is nothing to compare with
        return cross_check.cross_check(self.graph, found)

    def _fallback(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Inputs and outputs of a pass of ONNX Runtime on the CPU, float64."""
        count = by_image.count(self.graph, inputs)
        how = Options(threads=self._job.threads)
        with closing(backends.get(FALLBACK).prepare(self.graph, count, "fp32", how)) as session:
            outputs = timing.answers(session, inputs)
        return {name: array.astype(np.float64) for name, array in {**inputs, **outputs}.items()}

    def placement(self, batch: int, seed: int) -> accuracy.Placement:
        """As `_placed`; the last two are kept, for all contenders are given the same."""
        for key, placed in self._placements:
            if key == (batch, seed):
                return placed
        placed = self._placed(batch, seed)
        self._placements = [*self._placements[-1:], ((batch, seed), placed)]
        return placed

    def _placed(self, batch: int, seed: int) -> accuracy.Placement:
        """A full batch with golden images at its first, middle and last places, others by `seed` between.

        Another seed puts other images at every place, the golden ones' included (there are at least two where
        the model allows it), so that an answer kept from before is a wrong one.
        """
        if self._filler is None and self.takes_images:
            self._filler = self.feed.first_pixels(self.dataset(FILLERS), FILLERS)
        inputs = self.golden().inputs
        order = np.roll(np.arange(self.golden().images), seed)
        axes = self.graph.batch_axes
        front = {name: np.moveaxis(a, axes.get(name, 0), 0)[order] for name, a in inputs.items()}
        placed = accuracy.place(front, batch, self._filler, seed)
        fed = {name: np.moveaxis(a, 0, axes.get(name, 0)) for name, a in placed.inputs.items()}
        placed = replace(placed, inputs={name: np.ascontiguousarray(a) for name, a in fed.items()})
        if self.right.layout is None:
            return replace(placed, rows=tuple(range(batch)), golden=())
        return replace(placed, golden=tuple(int(order[index]) for index in placed.golden))

    def judge_of(self, batch: int) -> str:
        """Who judges at this batch size: ORACLE, or why another."""
        return self.judge if self.judge != ORACLE else self.right.judge_of(batch) or ORACLE

    def check(
        self,
        outputs: Mapping[str, np.ndarray],
        placement: accuracy.Placement,
        precision: str,
        allowed: Allowed = Allowed.NOTHING,
    ) -> ErrorStats:
        """The outputs of a whole batch against the right answers (bench.measure.answers.right). Where float64
        and ONNX Runtime differ, the one or the other is wrong, and who agrees with either is not told to
        be."""
        stats = self.right.check(outputs, placement, precision, allowed)
        if not stats.ok and not all(np.isfinite(array).all() for array in outputs.values()):
            reason = "; ".join(filter(None, (stats.reason, self._out_of_range(precision))))
            stats = msgspec.structs.replace(stats, reason=reason)
        if stats.ok or self._by_float64 is None:
            return stats
        other = self._by_float64.check(outputs, placement, precision, allowed)
        if not other.ok:
            return stats
        note = "; ".join(filter(None, (other.note, f"right by float64, not by {FALLBACK}")))
        return msgspec.structs.replace(other, note=note)

    def _out_of_range(self, precision: str) -> str:
        """Which of the right numbers a precision that holds its operands in float16 cannot hold; "" if it
        holds them all."""
        if precision not in NAMES or of(precision).held != "float16":
            return ""
        most = float(np.finfo(np.float16).max)
        for name, array in self.golden().tensors.items():
            largest = float(np.max(np.abs(array), where=np.isfinite(array), initial=0.0))
            if largest > most:
                return (
                    f"the right numbers of {name} reach {units.exponent(largest)}, and {precision} holds "
                    f"none beyond {most:,.0f}: bf16 and fp32 hold them, and mixed takes such a one there"
                )
        return ""

    def unoptimised(
        self, backend: Backend, batch: int, precision: str, options: Options, inputs: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """What ONNX Runtime answers to these inputs where it changes nothing of the graph. Raises as
        Backend.prepare."""
        plain = replace(options.ort or Configuration(), optimization=DISABLED)
        how = replace(options, ort=plain)
        with closing(backend.prepare(self.graph, batch, precision, how)) as session:
            return timing.answers(session, inputs)

    @property
    def moves(self) -> bool:
        """Whether a right answer lay beyond the bound because it moves with one rounding of each layer: two
        right ones may differ by more than their bounds then."""
        return self._right is not None and self._right.moves

    def check_row(
        self,
        inputs: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        precision: str,
        allowed: Allowed = Allowed.NOTHING,
        row: int | None = None,
    ) -> ErrorStats | None:
        """As RightAnswers.check_row."""
        return self.right.check_row(inputs, outputs, precision, allowed, row)

    # ------------------------------------------------------------------------------------------- agreement

    def keep_reference(self, name: str, images: int, answers: Predictions) -> None:
        """Answers of a reference that is among the cases, so that it is not run once more."""
        self._reference.setdefault((name, images), (name, answers))

    def reference(self, backend: Backend, images: int) -> tuple[str, Predictions | None]:
        """What the reference of `backend` (or, where that can't run here, ONNX Runtime on the CPU) answers
        for the first `images` images, and which it was; it is run where no case has done so."""
        key = (backend.reference, images)
        if key not in self._reference:
            self._reference[key] = ("", None)
            for name in dict.fromkeys((backend.reference, FALLBACK)):
                other = backends.get(name)
                if other.unavailable() is None:
                    try:
                        self._reference[key] = (name, self._answers(other, images))
                        break
                    except KernelscopeError:
                        continue
        return self._reference[key]

    def _answers(self, backend: Backend, images: int) -> Predictions:
        self._progress(f"asking {backend.name} for the answers to agree with", None)
        batch = self.graph.fixed_batch or min(images, REFERENCE_BATCH)
        how = Options(threads=self._job.threads)
        with closing(backend.prepare(self.graph, batch, "fp32", how)) as session:
            return predictions.run(session, self.feed, self.dataset(images), images=images)


def _random_input(info: TensorInfo, count: int, random: np.random.Generator) -> np.ndarray:
    """Uniform in [−1, 1), or 0 and 1 for integers, with `count` along the axis that is the batch."""
    shape = tuple(size if isinstance(size, int) else count for size in info.shape)
    if np.dtype(info.dtype).kind != "f":
        return random.integers(0, 2, shape).astype(info.dtype)
    return (2 * random.random(math.prod(shape), np.float32) - 1).reshape(shape)
