"""What tables and charts of a ladder show, derived from its records: medians, rates, limits, gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.results import doubt, stats
from bench.results.ladder_records import Ladder, RungCase, RungMeasurement
from bench.results.machine_limits import Beyond
from bench.results.records import compared_in
from bench.results.stats import Interval


@dataclass(frozen=True)
class RungRow:
    """One measurement with what follows from it; None where it does not. Times in ns, rates a second.

    nbytes: what it reads and writes at least, weights as they lie for it (0: not known); beyond: whether they
    came faster than the memory gives them.

    limit: the time that the measured limits of the machine ask at least in this precision, over the time
    taken (a rung at its roofline is at 1). speedup: the time of the reference in the same precision (fp32's
    for fp32-tc) over this one's. gain: the time of the rung it is compared with (`below`) over this one's:
    the last right one of the ladder itself in the same precision. Whatever stands beside that ladder (side
    rungs, yardsticks, the first rung of another precision) is compared with the highest right rung of
    fp32; `beside` then says so. verdict, gain_verdict: as bench.results.stats names them, FASTER where this
    one takes less time ("" where nothing was compared); undecided, gain_undecided: why they are UNCLEAR, as a
    sentence without a full stop. reference, lower: the measurements that speedup and gain are over.
    """

    measurement: RungMeasurement
    time: Interval | None = None
    flops_per_s: float | None = None
    nbytes: int = 0
    bytes_per_s: float | None = None
    beyond: Beyond = ""
    limit: float | None = None
    speedup: Interval | None = None
    gain: Interval | None = None
    below: str = ""
    beside: bool = False
    verdict: str = ""
    undecided: str = ""
    gain_verdict: str = ""
    gain_undecided: str = ""
    reference: RungMeasurement | None = None
    lower: RungMeasurement | None = None

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against its own time, in sentences."""
        return (*_doubts(self.measurement), *([doubt.IMPOSSIBLE] if self.beyond == "impossible" else []))

    @property
    def speedup_doubts(self) -> tuple[str, ...]:
        """What speaks against its speed-up, where it is compared with the reference."""
        return self._over("the reference", self.reference, self.speedup)

    @property
    def gain_doubts(self) -> tuple[str, ...]:
        """What speaks against its gain over the rung below."""
        return self._over(self.below, self.lower, self.gain)

    @property
    def all_doubts(self) -> tuple[str, ...]:
        """What speaks against anything that is shown of it."""
        return tuple(dict.fromkeys((*self.doubts, *self.speedup_doubts, *self.gain_doubts)))

    @property
    def unsteady(self) -> tuple[str, ...]:
        """Why its time is unsteady, in sentences: it is known as far as its interval says, and no better."""
        return doubt.unsteady(self.measurement)

    @property
    def ratio_unsteady(self) -> tuple[str, ...]:
        """Why its speed-up is, which another run's is compared with."""
        known = self.speedup is not None and self.speedup.known
        relative = self.speedup.relative if known and self.speedup is not None else None
        return doubt.ratio_unsteady(self.measurement, self.reference, relative)

    def _over(self, whose: str, other: RungMeasurement | None, ratio: Interval | None) -> tuple[str, ...]:
        if other is None or ratio is None:
            return self.doubts
        return (*self.doubts, *doubt.of_other(whose, _doubts(other)))

    @property
    def case(self) -> RungCase:
        return self.measurement.case

    @property
    def name(self) -> str:
        return self.measurement.case.rung


def rows(ladder: Ladder, measurements: Sequence[RungMeasurement], scope: str = "rung") -> list[RungRow]:
    """The rows of the rungs and their references ("rung"), or of the whole models ("model"), in order."""
    scopes = ("rung", "reference") if scope == "rung" else ("model",)
    found = [m for m in measurements if m.case.scope in scopes]
    timed = [m for m in found if m.samples_ns]
    references = {m.case.precision: m for m in timed if m.case.is_reference}
    own = [m for m in timed if not m.case.is_reference and on_the_ladder(m.case)]
    made: list[RungRow] = []
    for measurement in found:
        case = measurement.case
        if not measurement.samples_ns:
            made.append(RungRow(measurement))
            continue
        time = stats.median_interval(
            measurement.samples_ns, measurement.rounds, instances=measurement.instances
        )
        seconds = time.value / 1e9
        rung = case.scope != "model"
        below, beside = (None, False) if case.is_reference else _neighbour(case, own)
        reference = None if case.is_reference else references.get(compared_in(case.precision))
        beside_reference = stats.compare(measurement, reference) if reference else None
        beside_lower = stats.compare(measurement, below) if below else None
        least = least_s(ladder, case.precision) if rung else 0.0
        nbytes = 0 if not rung else ladder.nbytes if measurement.nbytes is None else measurement.nbytes
        limits = ladder.reached if measurement.nbytes is not None else None
        surely = max(0, nbytes - ladder.unread)
        made.append(
            RungRow(
                measurement,
                time,
                flops_per_s=ladder.flops / seconds if rung and ladder.flops else None,
                nbytes=nbytes,
                bytes_per_s=nbytes / seconds if nbytes else None,
                # Of what it writes nothing is known here, which leaves half of its bytes to come at once.
                beyond=limits.beyond(surely, surely // 2, seconds) if limits else "",
                limit=least / seconds if least else None,
                speedup=beside_reference.ratio.inverse if beside_reference else None,
                gain=beside_lower.ratio.inverse if beside_lower else None,
                below=below.case.rung if below else "",
                beside=beside,
                verdict=beside_reference.verdict.value if beside_reference else "",
                undecided=beside_reference.undecided if beside_reference else "",
                gain_verdict=beside_lower.verdict.value if beside_lower else "",
                gain_undecided=beside_lower.undecided if beside_lower else "",
                reference=reference,
                lower=below,
            )
        )
    return made


def _doubts(measurement: RungMeasurement) -> tuple[str, ...]:
    """A rung's notes tell of its answers; a reference's tell that it is off itself."""
    notes = measurement.notes if measurement.case.is_reference else ()
    return (*doubt.own(measurement), *notes)


def on_the_ladder(case: RungCase) -> bool:
    """Whether a rung is one of the ladder itself: ours, not beside it, not a library's."""
    return not (case.side or case.user or case.yardstick)


def _neighbour(case: RungCase, own: Sequence[RungMeasurement]) -> tuple[RungMeasurement | None, bool]:
    """What a rung's gain is over, of the ladder's own that were timed, and whether it stands beside them."""
    if on_the_ladder(case) or case.user:
        lower = [m for m in own if m.case.precision == case.precision and m.case.number < case.number]
        if lower:
            return lower[-1], False
        if case.precision == "fp32":
            return None, False
    others = [m for m in own if m.case.precision == "fp32" and m.case.rung != case.rung]
    return (others[-1], True) if others else (None, False)


def least_s(ladder: Ladder, precision: str = "fp32") -> float:
    """Seconds that the machine's measured limits ask at least for the ladder's work in this precision (0: a
    limit is not known)."""
    limits = ladder.reached
    if limits is None or not (rate := limits.rate_of(ladder.job.op, precision)):
        return 0.0
    return max(ladder.flops / rate, ladder.least(precision) / ladder.moved_per_s(precision))


def bound(ladder: Ladder, precision: str = "fp32") -> str:
    """Which of its limits that is: "arithmetic", "memory" or "cache"; "" where it is not known."""
    least = least_s(ladder, precision)
    if not least:
        return ""
    if ladder.least(precision) / ladder.moved_per_s(precision) < least:
        return "arithmetic"
    return "cache" if ladder.cached(precision) else "memory"
