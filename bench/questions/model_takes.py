"""What a model takes and gives, and what will be done to an image for it; shown before anything runs."""

from __future__ import annotations

from bench.measure.cases import ModelSpec, model_spec
from bench.measure.images import model_file
from bench.measure.images.image_feed import ImageFeed, shape_words
from bench.questions.asked import Takes
from bench.results.records import Job
from engine.graph import importer
from engine.graph.graph import Graph
from kernels.errors import InputError
from models import labels


def takes(job: Job) -> Takes:
    """The answer for the first model of a job. Raises KernelscopeError where its file cannot be read."""
    spec = model_spec(job.models[0], job)
    return feed_and_facts(spec, importer.load(spec.file()), job)[0]


def feed_and_facts(spec: ModelSpec, graph: Graph, job: Job) -> tuple[Takes, Graph, ImageFeed | None]:
    """The same for a graph that is read; also the graph with its other inputs as the job gives them, and how
    it is fed: None where the job does not fit the model."""
    notes: tuple[str, ...] = ()
    try:
        dims = job.dims_of(spec.name)
        graph, notes = model_file.fitted(graph, dims, job.inputs, spec.dataset, job.seed)
        feed = ImageFeed(graph, job, spec.preprocess, spec.classes, spec.dataset)
    except InputError as error:
        answer = Takes(
            model=spec.name, lines=tuple(ends(graph)), fixed_batch=graph.fixed_batch, refused=str(error)
        )
        return answer, graph, None
    refused = "" if feed.image or spec.dataset == "random" else feed.takes_none(spec.dataset)
    facts = (*lines(feed), *(("note", note) for note in notes))
    answer = Takes(model=spec.name, lines=facts, fixed_batch=graph.fixed_batch, refused=refused)
    return answer, graph, feed


def ends(graph: Graph) -> list[tuple[str, str]]:
    """Inputs, outputs and the batch, as facts."""
    facts = [
        (kind, f"{info.name}: {info.dtype}, {shape_words(info)}")
        for kind, infos in (("input", graph.inputs), ("output", graph.outputs))
        for info in infos
    ]
    return [
        *facts,
        ("batch", f"{graph.fixed_batch} alone: the file fixes it" if graph.fixed_batch else "any"),
    ]


def lines(feed: ImageFeed) -> list[tuple[str, str]]:
    """The same, with what is done to an image, and where the order of the classes comes from."""
    facts = ends(feed.graph)
    if words := feed.words():
        facts.append(
            ("an image is", words + (f" (as {feed.preprocess_from} says)" if feed.preprocess_from else ""))
        )
    elif name := feed.would_take:
        others = [info.name for info in feed.graph.inputs if info.name not in {name, *feed.constants}]
        give = " ".join(f"--input {other}=NUMBER" for other in others)
        words = f"not taken as long as other inputs have no value: with {give} (or =FILE.npy) {name} takes it"
        facts.append(("an image is", words))
    else:
        facts.append(("an image is", "not taken: random numbers are fed"))
    scores = feed.scores({info.name: _known(info.shape) for info in feed.graph.outputs}, None)
    facts.append(("scores", scores.output or "none: no accuracy"))
    facts.append(("classes", _order(feed)))
    return facts


def _known(shape: tuple[int | str | None, ...]) -> tuple[int, ...]:
    """The shape with open axes set to 2: behind the batch they may have any size but 1."""
    return tuple(dim if isinstance(dim, int) else 2 for dim in shape)


def _order(feed: ImageFeed) -> str:
    if feed.order_from:
        return f"in the order of {feed.order_from}" + (f": {labels.named(feed.order)}" if feed.order else "")
    return "in an order that the file does not say: folders named by number or a file of labels give it"
