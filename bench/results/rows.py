"""The values that tables and charts show for each measurement: the median time with its interval, the
speed-up over the reference with its verdict, accuracy, errors, memory.

A record of a run holds raw samples. Every number here is computed from them, once, by bench.results.stats.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench.results import doubt, rates, stats
from bench.results.records import Case, EndToEnd, Measurement, compared_in, stem
from bench.words import palette, units

COMPLETED = ("ok", "incorrect")
# Small copies take as long to begin as to do, and several at once are faster than one after the other.
TELLING_NBYTES, FASTER = 4 << 20, 1.15
# A backend that refuses a model and a case that the user cancelled are no failures: nothing went wrong.
FAILURES = ("incorrect", "invalid", "out_of_memory", "crashed", "timed_out", "failed")


@dataclass(frozen=True)
class EndToEndRow:
    """The end-to-end time of one case: from images on the host to answers on the host, as a rate with several
    batches in flight. It is measured differently from the time of the forward pass. So never compare a number
    of this class with a number of a Row.

    - ns, low_ns, high_ns: the median time of one batch and its 95 % interval; None: the interval is not
      known.
    - speedup, speedup_low, speedup_high: the reference's end-to-end time divided by this case's, and its 95 %
      interval. None: not compared.
    - verdict: as bench.results.stats.Verdict names it; undecided: why it is UNCLEAR, "" if it is not.
    - against: the backend that is the reference, "" if there is none.
    - doubts: reasons to distrust the rate; speedup_doubts: reasons to distrust the speed-up and its verdict.
    """

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
        """The used fraction of what the bus can carry (1: all), in the direction that carries more bytes.
        None if there is no bus."""
        most = self.record.bus_bytes_per_s
        if not most:
            return None
        return max(self.record.nbytes_in, self.record.nbytes_out) * 1e9 / self.ns / most


@dataclass(frozen=True)
class Row:
    """One measurement as it is shown.

    - median_ns, low_ns, high_ns: the median time of one batch and its 95 % interval. None: not measured. From
      a single sample there is a median but no interval.
    - speedup, speedup_low, speedup_high: reference time divided by own time (above 1: this case is faster),
      and its 95 % interval. None: not compared. It is the paired ratio of bench.results.stats, not the
      quotient of two medians.
    - verdict: as bench.results.stats.Verdict names it, "" if nothing was compared.
    - undecided: why the verdict is UNCLEAR, as a sentence without a full stop, else "".
    - against: the measurement of the reference, None if nothing was compared.
    - provisional: the case is still being measured. Then `median_ns` comes from the first samples, and
      nothing else is known.
    """

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
        """Reasons to distrust the times of this case, in sentences."""
        return doubt.own(self.measurement)

    @property
    def speedup_doubts(self) -> tuple[str, ...]:
        """Reasons to distrust the speed-up and its verdict: those of this case and those of its reference, in
        sentences. () if nothing was compared."""
        if self.against is None:
            return ()
        who = f"the reference {label(self.against.case.backend, self.against.case.precision)}"
        return (*self.own_doubts, *doubt.of_other(who, doubt.own(self.against)))

    @property
    def doubts(self) -> tuple[str, ...]:
        """All reasons to distrust anything that is shown of this case, each once: those of its time, those of
        its speed-up, and why its verdict is UNCLEAR."""
        undecided = (self.undecided,) if self.undecided else ()
        return tuple(dict.fromkeys((*self.own_doubts, *self.speedup_doubts, *undecided)))

    @property
    def unsteady(self) -> tuple[str, ...]:
        """Why the time of this case varies, in sentences; () if it does not. This is no doubt: the interval
        of the time already shows how well the time is known."""
        return doubt.unsteady(self.measurement)

    @property
    def ratio_unsteady(self) -> tuple[str, ...]:
        """Why the speed-up varies, in sentences: the time of this case varies, or that of its reference. ()
        if the interval of the speed-up is narrow all the same. Used where speed-ups of two runs are
        compared."""
        ends = (self.speedup, self.speedup_low, self.speedup_high)
        relative = None if None in ends else stats.Interval(*ends).relative  # type: ignore[arg-type]
        return doubt.ratio_unsteady(self.measurement, self.against, relative)

    @property
    def completed(self) -> bool:
        """Whether the case was measured to its end. Its answers may still be wrong ("incorrect")."""
        return self.measurement.disposition in COMPLETED

    @property
    def failed(self) -> bool:
        """Whether something went wrong in this case: wrong or invalid answers, too little memory, a crash, a
        timeout, an error. A case that the backend does not support and a case that was cancelled did not
        fail."""
        return self.measurement.disposition in FAILURES

    @property
    def is_reference(self) -> bool:
        """Whether this case is compared with nothing, because its backend is the reference itself or it has
        none."""
        return self.measurement.reference in ("", self.case.backend)

    @property
    def image_ns(self) -> float | None:
        """Median time of one image in ns; None if there is no time."""
        return None if self.median_ns is None else self.median_ns / self.case.batch

    @property
    def images_per_s(self) -> float | None:
        return None if not self.median_ns else self.case.batch * 1e9 / self.median_ns

    @property
    def peak_nbytes(self) -> int | None:
        """Peak memory in bytes, of a GPU its own, as the backend reports it. If it reports no peak, the sum
        of the kinds of memory that it reports, or all that it takes of the device if that is more; the host's
        pages through which it copies are none of it. None if it reports nothing."""
        memory = self.measurement.memory
        if not memory or "peak" in memory:
            return memory.get("peak")
        known = sum(nbytes for kind, nbytes in memory.items() if kind not in ("device", "pinned"))
        return max(known, memory.get("device", 0))

    def accuracy_interval(self, name: str) -> tuple[float, float] | None:
        """The 95 % interval of an accuracy, (low, high) as fractions from 0 to 1. name: "top1" or "top5".
        None if that accuracy is not known."""
        found = self.measurement.accuracy
        rate = getattr(found, name, None)
        return None if found is None or rate is None else rates.interval(rate, found.images)

    @cached_property
    def end_to_end(self) -> EndToEndRow | None:
        """The end-to-end time, compared with the reference's; None if it was not measured."""
        return end_to_end_row(self.measurement, self.against)

    @property
    def contender(self) -> str:
        """The backend, followed by the precision if that is not "fp32" (see `label`)."""
        return label(self.case.backend, self.case.precision)


def label(backend: str, precision: str) -> str:
    """The name of a contender: "engine-cuda" in fp32, "engine-cuda fp16" in another precision."""
    return backend if precision == "fp32" else f"{backend} {precision}"


def title(model: str) -> str:
    """The name of a model in tables and charts. For a path it is the file's name without its suffix."""
    return stem(model)


def rows(measurements: Iterable[Measurement]) -> list[Row]:
    """One Row for each measurement, in the order given. Each takes some milliseconds.

    A case is compared with the measurement of its reference backend on the same model, batch size and number
    of images. That is the one in the same precision if it exists, else the one in the precision in which the
    reference stands for it (bf16: fp16), else the one in fp32.
    """
    measurements = list(measurements)
    found = {m.case: m for m in measurements if m.disposition in COMPLETED and m.samples_ns}
    return [derive(m, reference_of(m, found)) for m in measurements]


def reference_of(measurement: Measurement, found: Mapping[Case, Measurement]) -> Measurement | None:
    """The measurement with which `measurement` is compared, or None if there is none. found: the measurements
    to choose from, by case; it must hold only those that ran to the end and have samples. None also if
    `found` lacks the case of `measurement` itself."""
    case = measurement.case
    if measurement.reference in ("", case.backend) or case not in found:
        return None
    for precision in (case.precision, compared_in(case.precision), "fp32"):
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
    """Compute one row from the raw samples of a measurement and of its reference (None: it is not compared).
    Takes some milliseconds."""
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
    """The end-to-end time of one case, compared with its reference's. own: the measurement of the case;
    reference: the measurement with which its forward pass is compared, or None.

    Returns None if nothing was measured from end to end, or if the case was not measured to its end.
    """
    found = own.end_to_end
    if found is None or not found.samples_ns or own.disposition not in COMPLETED:
        return None
    interval = stats.median_interval(found.samples_ns, found.rounds)
    ratio_doubts = doubt.steady(found.warnings)
    doubts = ratio_doubts
    if interval.known and interval.relative > stats.UNQUIET_WIDTH:
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
        (*ratio_doubts, *doubt.of_other(whose, doubt.steady(theirs.warnings))),
    )


def warm_up() -> None:
    """Compute one made-up row and drop it. NumPy loads parts of itself at its first use; after this call the
    first real row does not wait for that."""
    case = Case(model="", backend="", precision="fp32", batch=1)
    samples = (1.0, 2.0, 3.0, 4.0)
    made_up = Measurement(case=case, disposition="ok", samples_ns=samples, rounds=(0, 2))
    derive(made_up, made_up)


def by_model(items: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each model, by the model's name. Models and rows keep their order."""
    found: dict[str, list[Row]] = {}
    for row in items:
        found.setdefault(row.case.model, []).append(row)
    return found


def contenders(items: Iterable[Row]) -> list[tuple[str, str]]:
    """All (backend, precision) of these rows, each once. The order is that of the palette, whatever order a
    live run brings them in; among equals the first seen comes first. References come last, so that they are
    drawn on top and read last."""
    seen: dict[tuple[str, str], bool] = {}
    for row in items:
        seen.setdefault((row.case.backend, row.case.precision), row.is_reference)
    places = {name: place for place, name in enumerate(palette.BACKENDS)}
    return sorted(seen, key=lambda pair: (seen[pair], places.get(pair[0], len(places))))


class RowCache:
    """Rows for a window, computed one at a time. The function `rows` computes all of them in one call, some
    milliseconds each. A window cannot wait that long whenever a measurement arrives.

    Call `add` for each measurement. Call `step` until it returns False or your time is over. Then read
    `rows`. Each row is computed once, and again when the measurement of its reference arrives later.
    """

    def __init__(self) -> None:
        self._measurements: dict[str, Measurement] = {}
        self._sound: dict[Case, Measurement] = {}
        self._rows: dict[str, Row] = {}
        self._queue: dict[str, None] = {}
        self._waiting: dict[tuple[str, str, int, int], set[str]] = {}  # keys by what a reference must match

    @property
    def pending(self) -> int:
        """How many rows are still to be computed."""
        return len(self._queue)

    def add(self, measurement: Measurement) -> None:
        """Add a measurement. It replaces an earlier one of the same case and goes to the end of the order."""
        case = measurement.case
        for table in (self._measurements, self._rows, self._queue):
            table.pop(case.key, None)
        self._measurements[case.key] = measurement
        self._queue[case.key] = None
        if measurement.disposition in COMPLETED and measurement.samples_ns:
            self._sound[case] = measurement
        else:
            self._sound.pop(case, None)
        if measurement.reference not in ("", case.backend):
            self._waiting.setdefault(self._pairing_key(case, measurement.reference), set()).add(case.key)
        for key in self._waiting.get(self._pairing_key(case, case.backend), ()):
            if key in self._measurements:
                self._queue[key] = None

    def drop(self, case: Case) -> None:
        """Forget the measurement of a case, if there is one. Rows that were compared with it stay as they
        are."""
        for table in (self._measurements, self._rows, self._queue):
            table.pop(case.key, None)
        self._sound.pop(case, None)

    def step(self) -> bool:
        """Compute one row. False if there was none to compute."""
        if not self._queue:
            return False
        key = next(iter(self._queue))
        del self._queue[key]
        measurement = self._measurements[key]
        self._rows[key] = derive(measurement, reference_of(measurement, self._sound))
        return True

    def rows(self) -> list[Row]:
        """The rows computed so far, in the order of their measurements."""
        return [self._rows[key] for key in self._measurements if key in self._rows]

    def row(self, case: Case) -> Row | None:
        """The row of a case, None if it is not computed yet."""
        return self._rows.get(case.key)

    @staticmethod
    def _pairing_key(case: Case, backend: str) -> tuple[str, str, int, int]:
        return case.model, backend, case.batch, case.images
