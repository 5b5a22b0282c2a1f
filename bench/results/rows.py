"""What a table and a chart show of a measurement, derived once from the records: the median with its
interval, the speed-up over the reference with its verdict, accuracy, errors, memory.

Records hold raw samples; every number here is computed from them by bench.results.stats.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench.results import doubt, rates, stats
from bench.results.records import Case, EndToEnd, Measurement, stem
from bench.words import palette, units

SOUND = ("ok", "incorrect")
# Small copies take as long to begin as to do, and several at once are faster than one after the other.
TELLING_NBYTES, FASTER = 4 << 20, 1.15
# A backend that refuses a model and a case that the user cancelled are no failures: nothing went wrong.
FAILURES = ("incorrect", "invalid", "out_of_memory", "crashed", "timed_out", "failed")


@dataclass(frozen=True)
class EndToEndRow:
    """A case from end to end: host images to host answers as a rate, another clock than that of the forward
    pass, so that a figure of one is compared with none of the other. Times in ns, of a batch; speedup: the
    reference's over the own, both from end to end. bus_share: of what the bus carries at most, the busier way
    (None: there is no bus). undecided: why the verdict is UNCLEAR. doubts: what speaks against the rate;
    speedup_doubts: against the speed-up and its verdict."""

    record: EndToEnd
    batch: int
    ns: float
    low_ns: float | None
    high_ns: float | None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    verdict: str = ""
    undecided: str = ""
    against: str = ""
    doubts: tuple[str, ...] = ()
    speedup_doubts: tuple[str, ...] = ()

    @property
    def images_per_s(self) -> float:
        return self.batch * 1e9 / self.ns

    @property
    def bus_share(self) -> float | None:
        most = self.record.bus_bytes_per_s
        if not most:
            return None
        return max(self.record.nbytes_in, self.record.nbytes_out) * 1e9 / self.ns / most


@dataclass(frozen=True)
class Row:
    """One measurement as shown. Times in ns (one batch, median and its 95 % interval); speedup is reference
    time over own time, so above 1 is faster; verdict as bench.results.stats names it ("" where nothing was
    compared); undecided: why it is UNCLEAR, as a sentence without a full stop ("" where it is decided, or
    nothing was compared). What rests on one sample has no interval. against: the measurement it was compared
    with. provisional: the case is being measured; its median is what was seen so far, and nothing else is
    known."""

    measurement: Measurement
    title: str
    median_ns: float | None = None
    low_ns: float | None = None
    high_ns: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    verdict: str = ""
    undecided: str = ""
    provisional: bool = False
    against: Measurement | None = None

    @property
    def case(self) -> Case:
        return self.measurement.case

    @property
    def own_doubts(self) -> tuple[str, ...]:
        """What speaks against this case's own times, in sentences."""
        return doubt.own(self.measurement)

    @property
    def speedup_doubts(self) -> tuple[str, ...]:
        """What speaks against the speed-up and its verdict."""
        if self.against is None:
            return ()
        who = f"the reference {label(self.against.case.backend, self.against.case.precision)}"
        return (*self.own_doubts, *doubt.of(who, doubt.own(self.against)))

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against anything that is shown of this case."""
        undecided = (self.undecided,) if self.undecided else ()
        return tuple(dict.fromkeys((*self.own_doubts, *self.speedup_doubts, *undecided)))

    @property
    def unsteady(self) -> tuple[str, ...]:
        """Why its time is unsteady, in sentences: it is known as far as its interval says, and no better."""
        return doubt.unsteady(self.measurement)

    @property
    def ratio_unsteady(self) -> tuple[str, ...]:
        """Why its speed-up is, which another run's is compared with."""
        ends = (self.speedup, self.speedup_low, self.speedup_high)
        relative = None if None in ends else stats.Interval(*ends).relative  # type: ignore[arg-type]
        return doubt.ratio_unsteady(self.measurement, self.against, relative)

    @property
    def sound(self) -> bool:
        """Whether this case ran to its end, so that its numbers are of a whole measurement."""
        return self.measurement.disposition in SOUND

    @property
    def failed(self) -> bool:
        """Whether this case is a failure of the comparison."""
        return self.measurement.disposition in FAILURES

    @property
    def is_reference(self) -> bool:
        return self.measurement.reference in ("", self.case.backend)

    @property
    def image_ns(self) -> float | None:
        return None if self.median_ns is None else self.median_ns / self.case.batch

    @property
    def images_per_s(self) -> float | None:
        return None if not self.median_ns else self.case.batch * 1e9 / self.median_ns

    @property
    def peak_nbytes(self) -> int | None:
        """Device or host memory in all: what the backend says is its peak, else the sum of the kinds it
        knows."""
        memory = self.measurement.memory
        return memory.get("peak", sum(memory.values())) if memory else None

    def accuracy_interval(self, name: str) -> tuple[float, float] | None:
        """Of "top1" or "top5", where that is known."""
        found = self.measurement.accuracy
        rate = getattr(found, name, None)
        return None if found is None or rate is None else rates.interval(rate, found.images)

    @cached_property
    def end_to_end(self) -> EndToEndRow | None:
        """Host images to host answers, beside the reference's; None where it was not measured."""
        return end_to_end_row(self.measurement, self.against)

    @property
    def contender(self) -> str:
        """The backend, with its precision where that is not plain fp32."""
        return label(self.case.backend, self.case.precision)


def label(backend: str, precision: str) -> str:
    return backend if precision == "fp32" else f"{backend} {precision}"


def title(model: str) -> str:
    """A model as it is named in tables and charts: a path by its file's stem."""
    return stem(model)


def rows(measurements: Iterable[Measurement]) -> list[Row]:
    """One Row a measurement, in the order given. The reference of a case is the measurement of its reference
    backend on the same model, batch and images: in the same precision where there is one, else in fp32."""
    measurements = list(measurements)
    found = {m.case: m for m in measurements if m.disposition in SOUND and m.samples_ns}
    return [derive(m, reference_of(m, found)) for m in measurements]


def reference_of(measurement: Measurement, found: Mapping[Case, Measurement]) -> Measurement | None:
    """What `measurement` is compared with, of those found sound with samples; None where it is nothing."""
    case = measurement.case
    if measurement.reference in ("", case.backend) or case not in found:
        return None
    for precision in (case.precision, "fp32"):
        other = Case(
            model=case.model,
            backend=measurement.reference,
            precision=precision,
            batch=case.batch,
            images=case.images,
        )
        if other in found:
            return found[other]
    return None


def derive(measurement: Measurement, reference: Measurement | None) -> Row:
    """One row from the raw samples of a measurement and its reference; some milliseconds."""
    name = title(measurement.case.model)
    if not measurement.samples_ns:
        return Row(measurement, name)
    own = stats.median_interval(measurement.samples_ns, measurement.rounds, instances=measurement.instances)
    low, high = (own.low, own.high) if own.known else (None, None)
    row = Row(measurement, name, own.value, low, high)
    if reference is None:
        return row
    ratio, verdict, undecided, _ = stats.compare(measurement, reference)  # own time over the reference's
    return dataclasses.replace(
        row,
        speedup=1 / ratio.value,
        speedup_low=1 / ratio.high if ratio.known else None,
        speedup_high=1 / ratio.low if ratio.known else None,
        verdict=verdict.value,
        undecided=undecided,
        against=reference,
    )


def end_to_end_row(own: Measurement, reference: Measurement | None) -> EndToEndRow | None:
    """None where nothing was measured, or the case is no sound one: its passes by themselves are not to be
    believed then, and no more are those in flight. reference: what the forward pass is compared with."""
    found = own.end_to_end
    if found is None or not found.samples_ns or own.disposition not in SOUND:
        return None
    interval = stats.median_interval(found.samples_ns, found.rounds)
    ratio_doubts = doubt.steady(found.warnings)
    doubts = ratio_doubts
    if interval.known and interval.relative > stats.UNQUIET:
        within = f"to within {units.percent(interval.relative, 0)} only"
        doubts += (
            f"from end to end the rate is known {within if interval.relative < 1 else 'hardly at all'}",
        )
    low, high = (interval.low, interval.high) if interval.known else (None, None)
    batch = own.case.batch
    carried = found.nbytes_in * 1e9 / interval.value
    if found.nbytes_in >= TELLING_NBYTES and carried > FASTER * (found.bus_bytes_per_s or math.inf):
        impossible = ("images went through faster than the bus was seen to carry them",)
        doubts, ratio_doubts = doubts + impossible, ratio_doubts + impossible
    theirs = reference.end_to_end if reference is not None else None
    if reference is None or theirs is None or not theirs.samples_ns:
        return EndToEndRow(found, batch, interval.value, low, high, doubts=doubts)
    ratio, verdict, undecided, _ = stats.compare(found, theirs)  # own time over the reference's
    whose = f"the reference {label(reference.case.backend, reference.case.precision)}"
    return EndToEndRow(
        found,
        batch,
        interval.value,
        low,
        high,
        1 / ratio.value,
        1 / ratio.high if ratio.known else None,
        1 / ratio.low if ratio.known else None,
        verdict.value,
        undecided,
        reference.case.backend,
        doubts,
        (*ratio_doubts, *doubt.of(whose, doubt.steady(theirs.warnings))),
    )


def warm_up() -> None:
    """Derive one row of nothing, so that the first real one does not wait for what NumPy loads by then."""
    case = Case(model="", backend="", precision="fp32", batch=1)
    samples = (1.0, 2.0, 3.0, 4.0)
    made_up = Measurement(case=case, disposition="ok", samples_ns=samples, rounds=(0, 2))
    derive(made_up, made_up)


def by_model(items: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by model, both in the order they came."""
    found: dict[str, list[Row]] = {}
    for row in items:
        found.setdefault(row.case.model, []).append(row)
    return found


def contenders(items: Iterable[Row]) -> list[tuple[str, str]]:
    """(backend, precision): the palette's order, whatever order a live run brings them in, then as they came;
    references last so that they are drawn on top and read last."""
    seen: dict[tuple[str, str], bool] = {}
    for row in items:
        seen.setdefault((row.case.backend, row.case.precision), row.is_reference)
    places = {name: place for place, name in enumerate(palette.BACKENDS)}
    return sorted(seen, key=lambda pair: (seen[pair], places.get(pair[0], len(places))))
