"""`models quantize`: a model's products in eight bits, by ONNX Runtime's static quantiser.

The ranges of the activations are found on images of the training part of the model's data set, where it has
one; what the model answers before and after is compared on images that were not among these. It runs in the
process that reads models (bench.questions.model_reader).
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from bench.measure.answers import accuracy
from bench.measure.cases import ModelSpec, model_spec
from bench.measure.images import model_file, predictions
from bench.measure.images.image_feed import LABELS, PREPROCESS, SCORES, ImageFeed
from bench.questions.messages import Quantized, WhichQuantized
from bench.results.records import Job
from bench.words import units
from engine import backends
from engine.backend import Options
from engine.graph import importer
from engine.graph.graph import Graph
from engine.ort import sessions
from kernels.cache import atomic_file
from kernels.errors import (
    DataError,
    InputError,
    KernelscopeError,
    ModelError,
    UnsupportedError,
    one_line,
    system_words,
)
from kernels.precision import FP32
from models import datasets
from models.datasets import Dataset

Progress = Callable[[str, float | None], None]

BATCH = 8  # images in a calibration pass
COMPARED = 1000  # images at most on which the answers are compared
PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
WHOLE = ("QuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger")
# One of 256 steps for each answer: classes that differ little would become equal.
LEFT_ALONE = ("Softmax", "Sigmoid")
# Exact wherever it runs; ONNX Runtime's sums may leave 16 bits on processors without VNNI.
ANSWERS = "engine-cpu"
OTHERWISE = "ort-cpu"


def quantize(asked: WhichQuantized, progress: Progress) -> Quantized:
    """Write the quantised file. Raises KernelscopeError."""
    job = Job(models=(asked.model,), backends=(), dataset=asked.dataset, preprocess=asked.preprocess)
    spec = model_spec(asked.model, job)
    graph, notes = model_file.of_job(spec, job, progress)
    _check(graph)
    feed = ImageFeed(graph, job, spec.preprocess, spec.classes, spec.dataset)
    if feed.image is None:
        raise InputError(feed.takes_none(spec.dataset))
    calibration, test, held_out = _images(spec, feed, asked, progress)
    pixels = feed.first_pixels(calibration, asked.images)
    model = _written(graph, feed, pixels, asked, progress)
    _noted(model, feed)
    target = Path(asked.out).expanduser()
    try:
        with atomic_file(target) as temporary:
            onnx.save(model, temporary)
    except OSError as error:
        raise InputError(f"{asked.out} could not be written ({system_words(error)})") from error
    made = importer.load(target)
    after = ImageFeed(made, job, spec.preprocess, spec.classes, spec.dataset)
    lines = [("file", str(target)), ("calibrated on", _words(len(pixels), spec.dataset))]
    lines += _compared(graph, feed, made, after, test, progress)
    lines += [("note", note) for note in notes]
    if not held_out:
        lines.append(
            ("note", "the answers are compared on the images that the ranges were found on: it has no others")
        )
    return Quantized(lines=tuple(lines))


def _check(graph: Graph) -> None:
    """Raises InputError for a model in which there is nothing to quantise."""
    types = {node.op_type for node in graph.nodes}
    if found := types & set(WHOLE):
        raise InputError(
            f"model {graph.name} is quantised already (it has {min(found)}): take the file in float32"
        )
    if not types & set(PRODUCTS):
        raise InputError(
            f"model {graph.name} has no convolution and no matrix product: nothing of it would be quantised"
        )


def _images(
    spec: ModelSpec, feed: ImageFeed, asked: WhichQuantized, progress: Progress
) -> tuple[Dataset, Dataset, bool]:
    """Images to find ranges on, images to compare the answers on, and whether these are others."""
    if spec.dataset == "random":
        drawn = [datasets.load("random", asked.images, shape=feed.shape, seed=seed) for seed in (1, 2)]
        return drawn[0], drawn[1], True
    whole = datasets.load(spec.dataset, None, progress)
    if spec.dataset.startswith("folder:"):  # which has no training part
        try:
            return whole.part(1, 2), whole.part(2, 2), True
        except DataError:  # too few
            return whole, whole, False
    return datasets.load(spec.dataset, asked.images, progress, split="train"), whole, True


class _Fed:
    """Calibration images in batches, as ONNX Runtime's quantiser asks for them."""

    def __init__(self, feed: ImageFeed, pixels: np.ndarray, batch: int, progress: Progress) -> None:
        self._fed = self._batches(feed, pixels, batch, progress)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._fed, None)

    @staticmethod
    def _batches(
        feed: ImageFeed, pixels: np.ndarray, batch: int, progress: Progress
    ) -> Iterator[dict[str, np.ndarray]]:
        for start in range(0, len(pixels), batch):
            progress(f"finding ranges on {len(pixels)} images", start / len(pixels))
            part = pixels[start : start + batch]
            yield feed.inputs(part[np.arange(batch) % len(part)] if feed.graph.fixed_batch else part)
        progress("writing the weights in eight bits", None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the quantiser advises: to prepare the model, which was done."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _written(
    graph: Graph, feed: ImageFeed, pixels: np.ndarray, asked: WhichQuantized, progress: Progress
) -> onnx.ModelProto:
    """The quantised model, its batch normalisations folded before."""
    sessions.import_onnxruntime()
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    form = quantization.QuantFormat.QDQ if asked.format == "qdq" else quantization.QuantFormat.QOperator
    # What ONNX Runtime recommends for each form: S8S8 for QDQ, U8S8 for QOperator.
    of_x = quantization.QuantType.QInt8 if asked.format == "qdq" else quantization.QuantType.QUInt8
    types = sorted({*_known_types(asked.format)} - {*LEFT_ALONE})
    progress("preparing the model", None)
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder, _quiet():
        plain, prepared, made = (Path(folder) / f"{name}.onnx" for name in ("plain", "prepared", "made"))
        try:
            onnx.save(graph.whole_proto(), plain)
            quant_pre_process(str(plain), str(prepared), skip_symbolic_shape=True)
            quantization.quantize_static(
                prepared,
                made,
                _Fed(feed, pixels, graph.fixed_batch or BATCH, progress),
                form,
                op_types_to_quantize=types,
                per_channel=asked.per_channel,
                activation_type=of_x,
                weight_type=quantization.QuantType.QInt8,
            )
            return onnx.load(made)
        except (KernelscopeError, MemoryError):
            raise
        except OSError as error:
            raise ModelError(
                f"model {graph.name} could not be quantised in {folder} ({system_words(error)}): make room"
            ) from error
        except Exception as error:  # whatever ONNX Runtime's Python code raises on a model it cannot quantise
            raise UnsupportedError(
                f"ONNX Runtime's quantiser failed on model {graph.name} ({one_line(error)}): try "
                f"--format {'qoperator' if asked.format == 'qdq' else 'qdq'}"
                + (" or --per-tensor" if asked.per_channel else "")
            ) from error


def _known_types(form: str) -> tuple[str, ...]:
    """Operator types that the quantiser takes on."""
    from onnxruntime.quantization import registry

    other = registry.QDQRegistry if form == "qdq" else registry.QLinearOpsRegistry
    return (*registry.CommonOpsRegistry, *other)


def _noted(model: onnx.ModelProto, feed: ImageFeed) -> None:
    """What is known of the model in its file, so that its accuracy stays its own."""
    said = {prop.key: prop.value for prop in feed.graph.proto.metadata_props}
    said[PREPROCESS] = feed.preprocess
    if feed.order:
        said[LABELS] = "\n".join(feed.order)
    if feed.scores_said:
        said[SCORES] = feed.scores_said
    helper.set_model_props(model, said)


def _words(count: int, name: str) -> str:
    if name == "random":
        return f"{count:,} random images; those of real ones would have other ranges (--dataset)"
    return f"{count:,} images of {name}"


def _compared(
    graph: Graph, feed: ImageFeed, made: Graph, after: ImageFeed, test: Dataset, progress: Progress
) -> list[tuple[str, str]]:
    """Top-1 of both, where there are labels, and how many images both answer alike."""
    try:
        before, then = (
            _answered(each, fed, test, progress, words)
            for each, fed, words in ((graph, feed, "in fp32"), (made, after, "in eight bits"))
        )
    except UnsupportedError as error:  # no class scores
        return [("top-1", f"none: {error}")]
    lines = []
    if before.labelled and then.labelled:
        one, other = (float((found.predicted == found.label).mean()) for found in (before, then))
        lines.append(
            (
                "top-1",
                f"{units.percent(other)}, in fp32 {units.percent(one)}: {100 * (other - one):+.2f} points "
                f"on {len(then):,} test images",
            )
        )
    elif before.refused:
        lines.append(("top-1", f"none: {before.refused}"))
    same = accuracy.agreement(then.predicted, before.predicted)
    lines.append(("same answer", f"{units.percent(same)} of {len(then):,} images"))
    return lines


def _answered(
    graph: Graph, feed: ImageFeed, dataset: Dataset, progress: Progress, words: str
) -> predictions.Predictions:
    batch = graph.fixed_batch or min(BATCH, len(dataset))
    for name in (ANSWERS, OTHERWISE):
        try:
            with closing(backends.get(name).prepare(graph, batch, FP32, Options())) as session:
                return predictions.run(
                    session,
                    feed,
                    dataset,
                    images=COMPARED,
                    progress=lambda _, done: progress(f"answering the test images {words}", done),
                )
        except UnsupportedError:
            if name == OTHERWISE:
                raise
    raise AssertionError
