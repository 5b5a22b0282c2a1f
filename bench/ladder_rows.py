"""What tables and charts of a ladder show, derived from its records: medians, rates, limits, gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench import stats
from bench.ladder_records import Ladder, RungMeasurement
from bench.stats import Interval


@dataclass(frozen=True)
class RungRow:
    """One measurement with what follows from it; None where it does not. Times in ns, rates a second.

    limit: the time that the measured limits of the machine ask at least, over the time taken (a rung at its
    roofline is at 1). speedup: the reference's time over this one's. gain: the time of the rung below
    (`below`, the last one of the ladder itself that was right) over this one's.
    """

    measurement: RungMeasurement
    time: Interval | None = None
    flops_per_s: float | None = None
    bytes_per_s: float | None = None
    limit: float | None = None
    speedup: Interval | None = None
    gain: Interval | None = None
    below: str = ""

    @property
    def name(self) -> str:
        return self.measurement.case.rung


def rows(ladder: Ladder, measurements: Sequence[RungMeasurement], scope: str = "rung") -> list[RungRow]:
    """The rows of the rungs and their reference ("rung"), or of the whole models ("model"), in order."""
    scopes = ("rung", "reference") if scope == "rung" else ("model",)
    found = [m for m in measurements if m.case.scope in scopes]
    reference = next((m for m in found if m.case.number == 0 and m.samples_ns), None)
    made: list[RungRow] = []
    below: RungMeasurement | None = None
    for measurement in found:
        case = measurement.case
        if not measurement.samples_ns:
            made.append(RungRow(measurement))
            continue
        time = stats.median_interval(measurement.samples_ns, measurement.rounds)
        seconds = time.value / 1e9
        rung = case.scope != "model"
        gained = below is not None and case.number > 0
        made.append(
            RungRow(
                measurement,
                time,
                flops_per_s=ladder.flops / seconds if rung and ladder.flops else None,
                bytes_per_s=ladder.nbytes / seconds if rung else None,
                limit=least_s(ladder) / seconds if rung and least_s(ladder) else None,
                speedup=_ratio(reference, measurement) if reference and case.number else None,
                gain=_ratio(below, measurement) if gained and below else None,
                below=below.case.rung if gained and below else "",
            )
        )
        if case.number and not case.side and not case.user:
            below = measurement
    return made


def least_s(ladder: Ladder) -> float:
    """Seconds that the machine's measured limits ask at least for the ladder's work (0: not known)."""
    limits = ladder.limits
    if limits is None:
        return 0.0
    return max(ladder.flops / limits.flops_per_s, ladder.nbytes / limits.bytes_per_s)


def _ratio(over: RungMeasurement, under: RungMeasurement) -> Interval:
    return stats.ratio_interval(over.samples_ns, under.samples_ns, over.rounds, under.rounds)
