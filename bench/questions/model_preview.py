"""A model's preview: its graph, attributes, weights and ends, what our engine would run, and what an image
of the chosen data set looks like going in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from bench.measure.cases import ModelSpec, model_spec
from bench.measure.images.image_feed import ImageFeed
from bench.questions import model_takes
from bench.questions.model_runs import runs
from bench.questions.preview import (
    Picture,
    Preview,
    PreviewNode,
    SeenImage,
    Tensor,
    Weight,
    WhichPreview,
)
from bench.results.records import Job
from bench.words import units
from engine.graph import importer
from engine.graph.graph import Graph, TensorInfo
from engine.graph.plan import TensorSpec
from engine.passes import known
from kernels import precision as precisions
from kernels.errors import InputError, KernelscopeError, UnsupportedError
from models import catalogue, datasets, names

DEVICES = ("cpu", "cuda")
MOST = 4000  # nodes, and weights, that are shown
MOST_TEXT = 200  # characters of an attribute
MOST_VALUES = 100_000  # of a weight that its statistics are taken of
BINS = 48
IMAGES = 3
SIDE = 320  # pixels of a picture's longer side at most
Progress = Callable[[str, float | None], None]


def preview(asked: WhichPreview, progress: Progress | None = None) -> Preview:
    """Raises KernelscopeError where the model's file cannot be read."""
    job = asked.job
    spec = model_spec(job.models[0], job)
    path = spec.file(progress)
    whole = importer.load(path)
    takes, graph, feed = model_takes.feed_and_facts(spec, whole, job)
    batch = graph.fixed_batch or asked.batch
    precision = precisions.asked(job.precisions[0], job.max_error)
    runs_by_device = {device: runs(graph, batch, device, precision) for device in DEVICES}
    specs = _specs(graph, batch)
    images, note = _images(spec, feed, job)
    nodes = tuple(
        PreviewNode(
            name=node.name,
            op=node.op_type,
            domain=node.domain,
            inputs=tuple(name for name in node.inputs if name and name not in graph.initializers),
            weights=tuple(name for name in node.inputs if name in graph.initializers),
            outputs=tuple(filter(None, node.outputs)),
            shape=next((specs[name].shape for name in node.outputs if name in specs), ()),
            attributes=tuple(sorted((name, attribute(value)) for name, value in node.attributes.items())),
            runs={device: of[node.name] for device, (of, _) in runs_by_device.items() if node.name in of},
        )
        for node in graph.nodes[:MOST]
    )
    read = dict.fromkeys(name for node in graph.nodes for name in node.inputs if name in graph.initializers)
    names_shown = list(read)[:MOST]
    return Preview(
        model=spec.name,
        takes=takes,
        facts=tuple(_facts(spec, graph, path.stat().st_size, str(path))),
        batch=batch,
        precision=precision,
        inputs=tuple(map(_tensor, graph.inputs)),
        outputs=tuple(map(_tensor, graph.outputs)),
        nodes=nodes,
        weights=tuple(weight(name, graph.initializers[name]) for name in names_shown),
        devices={device: words for device, (_, words) in runs_by_device.items()},
        images=images,
        images_note=note,
        left_out=len(graph.nodes) - len(nodes) + len(read) - len(names_shown),
    )


def _specs(graph: Graph, batch: int) -> dict[str, TensorSpec]:
    try:
        return dict(known(graph, batch).specs)
    except (InputError, UnsupportedError):
        return {}  # which `devices` says


def _facts(spec: ModelSpec, graph: Graph, size: int, path: str) -> list[tuple[str, str]]:
    parameters = sum(int(array.size) for array in graph.initializers.values())
    proto = graph.proto
    producer = f"{proto.producer_name} {proto.producer_version}".strip()
    facts = [
        ("file", path),
        ("size", units.nbytes(size)),
        ("ONNX", f"opset {graph.opset}, IR {proto.ir_version}" + (f", by {producer}" if producer else "")),
        ("nodes", f"{len(graph.nodes):,}"),
        ("parameters", f"{parameters:,}"),
    ]
    if spec.name in names.models():
        entry = catalogue.get(spec.name)
        facts.insert(0, ("title", entry.title))
        if entry.accuracy is not None:
            facts.append(("top-1", units.percent(entry.accuracy)))
        facts.append(("provenance", entry.provenance))
    return facts


def _tensor(info: TensorInfo) -> Tensor:
    return Tensor(name=info.name, dtype=info.dtype, shape=info.shape)


def attribute(value: Any) -> str:
    """Of a node, in a line."""
    if isinstance(value, np.ndarray):
        text = f"{value.dtype} of shape {'×'.join(map(str, value.shape)) or 'one value'}"
        if value.size <= 8:
            text += ": " + ", ".join(map(str, value.reshape(-1).tolist()))
    elif isinstance(value, float):
        text = f"{value:g}"
    elif isinstance(value, tuple):
        parts = (attribute(item) for item in value[:64])
        text = ", ".join(parts) + (", …" if len(value) > 64 else "")
    elif isinstance(value, int | str):
        text = str(value)
    elif hasattr(value, "node"):
        text = f"a graph of {len(value.node):,} nodes"
    else:
        text = type(value).__name__
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def weight(name: str, array: np.ndarray) -> Weight:
    """What is shown of an initializer."""
    shape, size = tuple(map(int, array.shape)), int(array.size)
    plain = Weight(name=name, dtype=array.dtype.name, shape=shape, elements=size, nbytes=int(array.nbytes))
    if array.dtype.kind not in "fiub" or not size:
        return plain
    step = -(-size // MOST_VALUES)
    values = array.reshape(-1)[::step].astype(np.float64)
    finite = values[np.isfinite(values)]
    missing = len(values) - len(finite)
    if not len(finite):
        return msgspec.structs.replace(plain, not_finite=missing, taken=len(values))
    low, high = float(finite.min()), float(finite.max())
    scale = max(abs(low), abs(high), 1e-300)
    return msgspec.structs.replace(
        plain,
        low=low,
        high=high,
        # Of values within ±1: sums and squares of the largest floats there are would be none.
        mean=float((finite / scale).mean() * scale),
        std=float((finite / scale).std() * scale),
        zeros=float((finite == 0).mean()),
        not_finite=missing,
        taken=len(values),
        counts=_counts(finite, low, high),
    )


def _counts(values: np.ndarray, low: float, high: float) -> tuple[int, ...]:
    """One bin where all are alike, or differ by so little that there is no room for bins between them."""
    with np.errstate(over="ignore", invalid="ignore"):
        edges = low / 2 + (high / 2 - low / 2) * np.linspace(0, 1, BINS + 1)
    if not (np.diff(edges) > 0).all():
        return (len(values),)
    return tuple(map(int, np.histogram(values / 2, edges)[0]))


def _number(value: float) -> float:
    """Within what JSON can say."""
    return float(np.nan_to_num(value))


# ------------------------------------------------------------------------------------------------- images


def _images(spec: ModelSpec, feed: ImageFeed | None, job: Job) -> tuple[tuple[SeenImage, ...], str]:
    """The first images of the data set before and after what is done to them; in words what they are, or why
    there are none. Nothing is fetched from a network for it."""
    if feed is None:
        return (), ""  # takes.refused says why
    if feed.image is None:
        return (), "The model takes no images: random numbers are fed."
    if spec.dataset in names.datasets() and (missing := datasets.available(spec.dataset)):
        return (), f"The images of {spec.dataset} are not here: {missing}."
    try:
        dataset = datasets.load(spec.dataset, IMAGES, shape=feed.shape)
        own = list(dataset.first(IMAGES))
        make = feed.preprocessing()
        planes = make.planes(make.fill([make.fit(image) for image in own]))
    except KernelscopeError as error:
        return (), f"{str(error)[:1].upper()}{str(error)[1:]}."
    images = []
    for index, (image, plane) in enumerate(zip(own, planes, strict=True)):
        label = ""
        if dataset.labels is not None:
            label = dataset.classes[int(dataset.labels[index])]
        images.append(
            SeenImage(
                label=label,
                own=picture(image if image.ndim == 3 else image[..., None]),
                given=picture(_seen(plane, make.blue_first)),
                channels=tuple((_number(c.min()), _number(c.mean()), _number(c.max())) for c in plane),
                size="×".join(map(str, plane.shape)),
            )
        )
    what = f"From {spec.dataset}"
    if spec.dataset == "random":
        what = "Random images" + (", as no data set is chosen" if job.dataset is None else "")
    return tuple(images), f"{what}. {feed.words()[:1].upper()}{feed.words()[1:]}."


def _seen(given: np.ndarray, blue_first: bool) -> np.ndarray:
    """(C, H, W) of any numbers as bytes (H, W, C), each channel from its lowest value to its highest."""
    planes = given[::-1] if blue_first else given
    low = planes.min(axis=(1, 2), keepdims=True).astype(np.float64)
    span = planes.max(axis=(1, 2), keepdims=True) - low
    scaled = (planes - low) / np.where(span > 0, span, 1) * 255
    return np.ascontiguousarray(scaled.round().astype(np.uint8).transpose(1, 2, 0))


def picture(pixels: np.ndarray) -> Picture:
    """Of uint8 (H, W, 1 or 3), every so many pixels where it is larger than SIDE."""
    step = -(-max(pixels.shape[:2]) // SIDE)
    part = np.ascontiguousarray(pixels[::step, ::step])
    height, width, channels = part.shape
    return Picture(width=width, height=height, channels=channels, pixels=part.tobytes())
