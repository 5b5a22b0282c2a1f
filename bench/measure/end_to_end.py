"""`compare --end-to-end`: host images to host answers as a sustained rate, all contenders of a group in turn.

A clock of its own (engine.end_to_end) beside that of the forward pass: before that is timed, each contender
has its slots opened, is sampled in the same interleaved rounds, and closed again. The answers of the very
batches that were timed are checked, all that were in flight when a sample's clock stopped: they have to be
what the contender's own session gives for those images, made to numbers on the host, and that has to be what
float64 gives.

A reference that was tuned runs here, too, in the configuration that its sweep found: one session a slot, as
all others, and the sweep itself is not made again, for it is kept by model, precision and batch size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from bench.measure import instances, unrest
from bench.measure.answers import accuracy
from bench.measure.loaded_model import LoadedModel
from bench.measure.net_contender import NetContender, references_among
from bench.measure.outcomes import Incorrect
from bench.measure.timing import Rules, Timing, answers, one_pass, time_together, too_few_samples
from bench.results.records import EndToEnd, ErrorStats, Job
from engine import pipelines
from engine.backend import Backend, Variant
from engine.end_to_end import (
    PLACES,
    SPARE,
    VALUES,
    Affine,
    Arrays,
    CheckedBatch,
    Pipeline,
    Pool,
    Request,
    top,
)
from kernels.errors import KernelscopeError, UnsupportedError

WHEN = "from end to end"
SAMPLE_NS = 20_000_000  # a sample's least length: many batches, where they are short
MOVES = (
    "batches in flight got other answers than their images get alone: the right ones move with one rounding "
    "of each layer, so that nothing is said against these, nor for them"
)
ALIKE = "batches of other images get answers so alike that one in another's place would not be seen"


@dataclass(frozen=True)
class Sent:
    """The images of a group, and what is asked. plain: by input that travels, batch + SPARE rows."""

    plain: Arrays
    asked: Request


def sent(loaded: LoadedModel, batch: int, top_k: int) -> Sent:
    """What the cases of a model at this batch size are sent: bytes where its images are made numbers of by an
    affine function. Raises UnsupportedError where that many best classes are not to be had."""
    feed, graph, count = loaded.feed, loaded.graph, batch + SPARE
    scores = _scores(loaded, batch, top_k) if top_k else ""
    if feed.image is None:
        golden = loaded.golden().inputs
        order = np.arange(count) % len(next(iter(golden.values())))
        plain = {name: array[order] for name, array in golden.items() if name not in feed.constants}
        if not plain or any(graph.batch_axes.get(name, 0) for name in plain):
            raise UnsupportedError(f"model {graph.name} has no input that batches could be cut out of")
        image, affine = "", None
    else:
        image = feed.image[0].name
        dataset = loaded.dataset(count)
        pixels, affine = feed.as_bytes(dataset, count)
        if affine is None:
            pixels = feed.first_pixels(dataset, count)
        plain = {image: pixels[np.arange(count) % len(pixels)]}
    constants = {name: np.repeat(one[None], batch, axis=0) for name, one in feed.constants.items()}
    made = Affine(*affine) if affine is not None else None
    if made is not None and not np.array_equal(
        made.apply(plain[image][:2]), feed.first_pixels(loaded.dataset(count), 2)[: len(plain[image][:2])]
    ):
        raise UnsupportedError(f"the preprocessing of model {graph.name} is no affine function of bytes")
    return Sent(plain, Request(image, made, constants, scores, top_k))


def _scores(loaded: LoadedModel, batch: int, top_k: int) -> str:
    """The output whose best classes are wanted."""
    shapes = {
        info.name: tuple(dim if isinstance(dim, int) else batch for dim in info.shape)
        for info in loaded.graph.outputs
    }
    found = loaded.feed.scores(shapes, None)
    if not found.output:
        raise UnsupportedError(f"no best classes: {found.refused}")
    classes = int(np.prod(shapes[found.output][1:]))
    if top_k > classes:
        raise UnsupportedError(f"the best {top_k} of {classes} classes cannot be had: take a smaller --top-k")
    return found.output


class Flows:
    """Those of one group. results: by key, once they are measured; failed: whose timed answers were wrong, or
    who broke down."""

    def __init__(self, loaded: LoadedModel, job: Job, ready: Mapping[str, NetContender]) -> None:
        self._loaded, self._job, self._ready = loaded, job, ready
        self.results: dict[str, EndToEnd] = {}
        self.failed: dict[str, Exception] = {}
        # By device: why nobody there has as many batches in flight as it had room for.
        self._fewer: dict[str, str] = {}

    def measure(self, on_turn: Callable[[str, int], None], stopped: Callable[[], bool]) -> None:
        """Open, time, check and close. Raises what `stopped` makes of the timing."""
        flows: dict[str, Pipeline] = {}
        batch = next(iter(self._ready.values())).case.batch
        try:
            images = sent(self._loaded, batch, self._job.top_k)
        except (KernelscopeError, MemoryError) as error:
            self.results = {key: EndToEnd(refused=str(error)) for key in self._ready}
            return
        with contextlib.ExitStack() as stack:
            pools: dict[str, Pool] = {}
            for key in sorted(self._ready, key=lambda key: _place(self._ready[key].backend)):
                if (flow := self._opened(key, self._ready[key], images, pools)) is not None:
                    stack.callback(flow.close)
                    flows[key] = flow
            if not flows:
                return
            self._even(flows)
            found = time_together(
                flows,
                rules(self._job),
                self._job.seed,
                references=references_among({key: self._ready[key].backend for key in flows}),
                devices={key: self._ready[key].device for key in flows},
                judged_by={},
                on_turn=on_turn,
                stopped=stopped,
            )
            for key, timing in found.items():
                try:
                    if timing.error is not None:
                        raise timing.error
                    self.results[key] = self._result(self._ready[key], flows[key], timing, images)
                except Exception as error:  # one contender's failure is its own
                    self.failed[key] = error
        for key in flows.keys() - self.failed.keys():  # as it was: inputs are what the timing finds there
            session = self._ready[key].session
            try:
                one_pass(session, self._loaded.placement(batch, seed=self._job.seed).inputs)
            except Exception as error:
                self.failed[key] = error

    def _opened(
        self, key: str, entrant: NetContender, images: Sent, pools: dict[str, Pool]
    ) -> Pipeline | None:
        backend, case = entrant.backend, entrant.case
        try:
            if (reason := pipelines.refusal(backend)) is not None:
                raise UnsupportedError(reason)
            if backend.device not in pools:  # the same buffers for all on a device
                pools[backend.device] = Pool(images.plain, case.batch, pipelines.allocator(backend.device))
            pool = pools[backend.device]
            return pipelines.open_pipeline(
                backend, self._loaded.graph, case.precision, entrant.options, pool, images.asked
            )
        except (KernelscopeError, MemoryError) as error:  # the forward pass alone may well be measured
            self.results[key] = EndToEnd(refused=str(error) or "memory did not suffice")
        except Exception as error:
            self.failed[key] = error
        return None

    def _even(self, flows: Mapping[str, Pipeline]) -> None:
        """As many batches in flight for each on a device: who has fewer for want of memory would be slower by
        that alone."""
        for device in {self._ready[key].backend.device for key in flows}:
            here = {key: flow for key, flow in flows.items() if self._ready[key].backend.device == device}
            least = min(here, key=lambda key: len(here[key].slots))
            count, most = (of(len(flow.slots) for flow in here.values()) for of in (min, max))
            if count < most:
                who = self._ready[least].backend.name
                self._fewer[device] = (
                    f"memory had room for {count} in flight of {who}, so that no other has more"
                )
                for flow in here.values():
                    flow.keep(count)

    def _result(self, entrant: NetContender, flow: Pipeline, timing: Timing, images: Sent) -> EndToEnd:
        warnings = [*timing.warnings, *self._check(entrant, flow, images), *too_few_samples(timing)]
        if moved := unrest.warning(timing):
            warnings.append(moved)
        warnings += filter(None, [self._fewer.get(entrant.backend.device)])
        first = flow.slots[0]
        on_bus = first if isinstance(first, pipelines.CudaSlot) else None
        travelling = next(iter(images.plain.values())).dtype
        return EndToEnd(
            samples_ns=tuple(timing.samples_ns),
            rounds=tuple(timing.rounds),
            batches=flow.batches(timing.runs_per_sample),
            lanes=len(flow.slots),
            carries=str(travelling),
            nbytes_in=flow.pool.nbytes,
            nbytes_out=on_bus.nbytes_out if on_bus else 0,
            bus_bytes_per_s=on_bus.bus() if on_bus else None,
            top_k=images.asked.top_k,
            checked=sum(map(len, flow.kept)),
            warnings=tuple(dict.fromkeys(warnings)),
        )

    # ---------------------------------------------------------------------------------------------- the check

    def _check(self, entrant: NetContender, flow: Pipeline, images: Sent) -> list[str]:
        """Every batch that was in flight when the clock of a kept sample stopped. Raises Incorrect; returns
        what the check cannot tell."""
        session, bound = entrant.session, entrant.bound_precision()
        judged: ErrorStats | None = None

        told_apart = moves = False
        for kept in (kept for sample in flow.kept for kept in sample):
            inputs = numbers(flow.pool, kept, images.asked)
            expected = answers(session, inputs)
            wrong = unlike(kept.answers, expected, images.asked, bound)
            if wrong is not None:
                if not self._loaded.moves:
                    raise Incorrect(wrong, WHEN, f"a batch in flight got other answers: {wrong.reason}")
                moves = True
            if judged is None:
                judged = entrant.checked_row(inputs, expected)
                if judged is not None and not judged.ok:
                    raise Incorrect(judged, f"{WHEN}, on images that were timed")
            if not told_apart:  # what was kept may begin alike by chance, so one that does not is asked for
                elsewhere = replace(kept, offset=(kept.offset + 1) % flow.pool.offsets)
                other = answers(session, numbers(flow.pool, elsewhere, images.asked))
                told_apart = unlike(kept.answers, other, images.asked, bound) is not None
        return [*[MOVES] * moves, *[ALIKE] * (not told_apart)]


def _place(backend: Backend) -> int:
    """The best references first, then those as they come: where memory ends, it ends for what is held against
    them, and a search of algorithms has what room there is."""
    if isinstance(backend, Variant):
        return 0
    return 1 if backend.reference == backend.name else 2


def numbers(pool: Pool, kept: CheckedBatch, asked: Request) -> dict[str, np.ndarray]:
    """The inputs of a batch as a session takes them."""
    found = pool.changed(kept.number, kept.offset)
    if asked.affine is not None:
        found[asked.image] = asked.affine.apply(found[asked.image])
    return {**(asked.constants or {}), **found}


def unlike(got: Arrays, expected: Arrays, asked: Request, bound: str) -> ErrorStats | None:
    """How the answers of a batch are not those, or None where they are. Of best classes both what they score
    and what is scored by those that were named."""
    if not asked.top_k:
        wide = {name: np.asarray(array, np.float32) for name, array in got.items()}
        pairs = [(wide, expected)]
    else:
        scores = expected[asked.scores].reshape(len(expected[asked.scores]), -1)
        best = top(scores, asked.top_k)[VALUES]
        places = np.clip(np.asarray(got[PLACES], np.int64), 0, scores.shape[1] - 1)
        named = np.take_along_axis(scores, places, 1)
        pairs = [({VALUES: np.asarray(got[VALUES])}, {VALUES: best}), ({VALUES: named}, {VALUES: best})]
    for one, other in pairs:
        found = instances.error_against_first(one, other, bound, accuracy.PROPAGATED_FACTOR)
        if not found.ok:
            return found
    return None


def rules(job: Job) -> Rules:
    """As of the forward pass, with longer samples: several batches are in flight in each."""
    plain = Rules()
    return replace(
        plain,
        budget_s=job.budget_s,
        min_s=min(plain.min_s, job.budget_s / 3),
        warmup_s=min(plain.warmup_s, job.budget_s / 4),
        rewarm_s=min(plain.rewarm_s, job.budget_s / 20),
        sample_ns_host=min(SAMPLE_NS, round(job.budget_s * 1e8)),
        sample_ns_device=min(SAMPLE_NS, round(job.budget_s * 1e8)),
    )
