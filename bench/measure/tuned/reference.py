"""In which configuration a reference backend runs a case fastest: whatever its error, and with every layer
within the precision's bound.

cuDNN chooses its algorithms in each session for itself, and a configuration that is right in one may be wrong
in the next: so winners are judged again in a session created anew. Sessions are made one at a time: while one
captures its CUDA graph, no other thread may allocate on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from bench.measure.answers import accuracy, layer_errors, oracle
from bench.measure.answers.accuracy import Allowed
from bench.measure.answers.oracle import Golden
from bench.measure.loaded_model import ORACLE, LoadedModel
from bench.measure.timing import Rules, first_run, one_pass
from bench.measure.tuned.sweep import Judge, Looks, Progress, Sweep
from bench.results.records import ErrorStats
from engine.backend import Backend, Options, Session
from engine.graph.graph import Graph
from engine.options import Configuration
from engine.ort.tuning import bearing
from engine.planning.choices import Choice, Tried
from kernels.errors import OutOfMemoryError, UnsupportedError

FINAL = Rules(
    warmup_s=0.1, rewarm_s=0.02, min_s=0.3, budget_s=0.8, width=0.03
)  # the fastest, not by how much
LOOKS = Looks(final=FINAL, first_s=0.05, near=1.25, default=True)
ANEW = "in a second session"


@dataclass
class LayerChecks:
    """Errors of a model's layers under configurations of a reference. Each layer is looked at once for all
    configurations that are the same for it: one without a convolution knows nothing of how those are searched
    for.

    Of one model on `backend` at one batch size and precision; `golden` has its inner tensors. `say` hears
    which layer is looked at, before it is. _known: by a layer's model and a configuration as far as it bears
    on it."""

    graph: Graph
    backend: Backend
    batch: int
    precision: str
    options: Options
    golden: Golden
    say: Callable[[str], None]
    _known: dict[tuple[str, Configuration], ErrorStats] = field(default_factory=dict)

    def errors(self, configuration: Configuration) -> Iterator[tuple[str, ErrorStats]]:
        """Of every layer its first node and how far off it is, as
        bench.measure.answers.layer_errors.errors_at has them. Raises OutOfMemoryError."""
        layer = "", configuration

        def known(model: Graph) -> ErrorStats | None:
            nonlocal layer
            layer = model.sha256, bearing(configuration, model)
            if layer not in self._known:
                self.say(f"checking {model.nodes[0].name} of {configuration.words}")
            return self._known.get(layer)

        options = replace(self.options, ort=configuration)
        at = (self.graph, self.backend, self.precision, options, self.golden, self.batch)
        for part, stats in layer_errors.errors_at(*at, known=known):
            self._known[layer] = stats
            yield part.nodes[0], stats


@dataclass(frozen=True)
class Subject:
    """What is tuned: `backend` on a model at one batch size and precision. options: with no configuration.
    lost: whether the device is still there after a failure."""

    backend: Backend
    loaded: LoadedModel
    batch: int
    precision: str
    options: Options
    lost: Callable[[], bool] = lambda: False

    @property
    def words(self) -> str:
        return f"{self.backend.name}, {self.loaded.graph.name}, {self.precision}, batch {self.batch}"


def sweep(
    subject: Subject,
    configurations: Sequence[Configuration],
    store: Callable[[Choice[Configuration]], None],
    progress: Progress,
    known: Choice[Configuration] | None = None,
    looks: Looks | None = None,
) -> Choice[Configuration]:
    """The choice among these, the first of which is the backend's own. known: an earlier one that did not
    end. Raises as Sweep.run does."""
    made = Answers(subject, progress)
    return Sweep(
        configurations, made.prepared, made, store, looks or LOOKS, subject.words, progress,
        subject.backend.device, known, name=lambda configuration: configuration.words, lost=subject.lost,
    ).run()  # fmt: skip


class Answers(Judge[Configuration, Session]):
    """Whether a whole model's answers, and all of its layers, are right in a configuration."""

    def __init__(self, subject: Subject, progress: Progress) -> None:
        self._subject = subject
        self._layers = _checks(subject, progress)
        self._placement = subject.loaded.placement(subject.batch, seed=0)

    def prepared(self, configuration: Configuration) -> Session:
        """A session that has run once."""
        subject = self._subject
        options = replace(subject.options, ort=configuration)
        session = subject.backend.prepare(subject.loaded.graph, subject.batch, subject.precision, options)
        try:
            one_pass(session, self._placement.inputs)
        except BaseException:
            session.close()
            raise
        return session

    def first(self, session: Session, tried: Tried[Configuration]) -> Tried[Configuration]:
        stats, within = self._checked(session)
        return msgspec.structs.replace(
            tried, error=stats.rel_l2, refused=stats.reason, within=stats.ok and within.ok
        )

    def timed(self, session: Session) -> str:
        return self._checked(session)[0].reason

    def again(self, session: Session) -> tuple[str, str]:
        stats, within = self._checked(session)
        refused, off = (f"{ANEW}: {each.reason}" if each.reason else "" for each in (stats, within))
        return refused, off

    def closely(self, tried: Tried[Configuration], whole: bool = False) -> Tried[Configuration]:
        """Every layer, at this batch."""
        if tried.strict:
            return tried
        found: list[tuple[str, ErrorStats]] = []
        try:
            for name, stats in self._layers.errors(tried.variant) if self._layers else ():
                found.append((name, stats))
                if not stats.ok and not whole:
                    break
        except (OutOfMemoryError, MemoryError):
            found = []  # beside the inputs of the whole model: then nothing is said of the layers
        right = bool(found) and all(stats.ok for _, stats in found)
        name, worst = max(found, key=lambda item: item[1].rel_l2, default=("", None))
        layer_error = worst.rel_l2 if worst else None
        return msgspec.structs.replace(tried, strict=right, layer=name, layer_error=layer_error)

    def _checked(self, session: Session) -> tuple[ErrorStats, ErrorStats]:
        """A pass over what is bound, which timed passes change, against float64: by the loosest bound, beyond
        which it is no answer, and by the precision's own, which a case is held against before it is timed."""
        first_run(session)
        check = partial(self._subject.loaded.check, session.fetch(), self._placement, allowed=Allowed.LIBRARY)
        stats = check(accuracy.LOOSEST)
        return stats, check(self._subject.precision) if stats.ok else stats


def _checks(subject: Subject, progress: Progress) -> LayerChecks | None:
    """The checks of layers; None where another than the oracle had to judge, which has no inner tensors."""
    loaded = subject.loaded
    golden = loaded.golden()
    if loaded.judge != ORACLE:
        return None
    try:
        golden = oracle.golden(loaded.graph, golden.inputs)
    except (UnsupportedError, OutOfMemoryError):
        return None
    return LayerChecks(
        graph=loaded.graph,
        backend=subject.backend,
        batch=subject.batch,
        precision=subject.precision,
        options=subject.options,
        golden=golden,
        say=lambda text: progress(text, None),
    )
