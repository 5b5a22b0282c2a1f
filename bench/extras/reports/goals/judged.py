"""A goal held against what was measured: reached, not reached, or open, with the figure and the reason.

Reached is what the whole interval says, in the second run too where there is one; what straddles the goal is
open, and so is a figure of one sample alone. Why a goal is not reached is derived from the records. What is
decided by a figure that is to be doubted is marked as that figure is, with the doubt as a reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.extras.reports.figures import Figure, find, row_of, time
from bench.extras.reports.goals import floors
from bench.extras.reports.goals.presets import AT_MOST, Goal, Goals
from bench.extras.reports.needs import NOT_MEASURED, Taken
from bench.results.machine_limits import MachineLimits
from bench.results.records import Environment, Measurement, compared_in
from bench.results.rows import Row, derive
from bench.words import units
from kernels.precision import NAMES, budget, of, written

ONCE = "timed in the first run alone"
REACHED, MISSED, OPEN, UNKNOWN = "reached", "not reached", "open", NOT_MEASURED
FLOWING = ("end_to_end", "flow")  # goals of what was measured from end to end
OUTCOMES = (REACHED, MISSED, OPEN, UNKNOWN)


@dataclass(frozen=True)
class Held:
    """One goal at one batch size. figures: of the first run and the second; outcome: of OUTCOMES."""

    goal: Goal
    batch: int
    wanted: float
    figures: tuple[Figure, ...]
    outcome: str
    why: str = ""

    @property
    def at_most(self) -> bool:
        return self.goal.value in AT_MOST

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against an outcome that is decided: what does against its figures."""
        decided = self.outcome in (REACHED, MISSED)
        return tuple(dict.fromkeys(text for figure in self.figures for text in figure.doubts)) * decided


@dataclass(frozen=True)
class Measured:
    """The measurements of one run: all of a need's, or of the runs that the user named. environments: by
    need's name."""

    by_need: Mapping[str, Sequence[Measurement]]
    environments: Mapping[str, Environment]

    def of(self, need: str) -> Iterator[tuple[str, Sequence[Measurement]]]:
        """By the name of the run; of runs named by the user each may hold it, the last of them first."""
        if need in self.by_need:
            yield need, self.by_need[need]
        else:
            yield from reversed(list(self.by_need.items()))


def measured(taken: Taken) -> tuple[Measured, ...]:
    """What each run holds."""
    return tuple(
        Measured(
            {name: folder.measurements() for name, folder in runs.items()},
            {name: folder.header.environment for name, folder in runs.items()},
        )
        for runs in taken.runs
    )


def held(goals: Goals, taken: Taken) -> list[Held]:
    """Every goal at every batch size."""
    runs = [run for run in measured(taken) if run.by_need] or [Measured({}, {})]
    found = []
    for goal in goals.every:
        for batch, wanted in zip(goal.batches, goal.wanted, strict=True):
            figures = tuple(_figure(goal, batch, run, taken) for run in runs)
            if figures[0].value is not None:
                figures = figures[:1] + tuple(_once(goals, goal, figure) for figure in figures[1:])
            outcome, why = _outcome(goal, wanted, figures)
            if outcome == MISSED and figures[0].value is not None:
                why = "; ".join(
                    filter(None, (why, *_because(goal, batch, wanted, figures[0], runs[0], taken)))
                )
            found.append(Held(goal, batch, wanted, figures, outcome, why))
    return found


# ------------------------------------------------------------------------------------------------- figures


def _row(goal: Goal, batch: int, run: Measured) -> tuple[str, Row | None]:
    found: tuple[str, Row | None] = ("", None)
    for name, measurements in run.of(goal.need):
        at = (goal.model, goal.backend, goal.precision, batch)
        row = row_of(measurements, *at, goal.against, goal.than, goal.rival)
        if row is not None and _tells(goal, row):
            return name, row
        found = (name, row) if found[1] is None else found
    return found


def _tells(goal: Goal, row: Row) -> bool:
    """Whether what a goal is of was measured: one run may hold forward passes alone, another both clocks."""
    if goal.value in FLOWING and row.end_to_end is None:
        return False
    return row.against is not None or not goal.against


def _figure(goal: Goal, batch: int, run: Measured, taken: Taken) -> Figure:
    name, row = _row(goal, batch, run)
    if row is None:
        begun = NOT_MEASURED if goal.need in run.by_need else ""  # and cut short: nothing is lacking for it
        return Figure(why=begun or goal.lacks or taken.why.get(goal.need, NOT_MEASURED))
    made = row.measurement
    if made.disposition != "ok":
        reason = f": {made.reason}" if made.reason else ""
        return Figure(why=f"{made.disposition.replace('_', ' ')}{reason}", failed=True)
    if goal.value in _OF_LIMITS:
        limits = floors.fit(taken.limits, run.environments.get(name, Environment()))
        return _OF_LIMITS[goal.value](goal, row, limits)
    return _VALUES[goal.value](goal, batch, row, run)


def _once(goals: Goals, goal: Goal, figure: Figure) -> Figure:
    """Of a second run, where there is none as it was not to have what the goal is beside."""
    left_out = any(need.name == goal.need and goal.against in need.once for need in goals.needs)
    return Figure(why=ONCE) if left_out and figure.value is None and not figure.failed else figure


def _speedup(goal: Goal, batch: int, row: Row, run: Measured) -> Figure:
    if row.speedup is None:
        return Figure(why=_lacks(goal, batch, run))
    return Figure(row.speedup, row.speedup_low, row.speedup_high, row.speedup_doubts)


def _narrowed(goal: Goal, batch: int, row: Row, run: Measured) -> Figure:
    """Timed in the same run and not in the same turns, as precisions are."""
    within = budget(goal.precision) or 0.0
    for _, measurements in run.of(goal.need):
        named = (find(measurements, goal.model, goal.backend, name, batch) for name in NAMES)
        kept = [made for made in named if made is not None and made.samples_ns and _off(made) <= within]
        rows = [derive(made, None) for made in kept]
        fastest = min(rows, key=lambda whole: whole.median_ns or math.inf, default=None)
        if fastest is not None:
            return _speedup(goal, batch, derive(row.measurement, fastest.measurement), run)
    return Figure(why=f"{goal.backend}: no whole precision that stays within {written(within)} was measured")


def _off(made: Measurement) -> float:
    """How far an answer is from float64's; infinity where that is not known."""
    output = made.accuracy.output if made.accuracy is not None else None
    return math.inf if output is None else output.rel_l2


def _time(goal: Goal, batch: int, row: Row, run: Measured) -> Figure:
    if row.median_ns is None:
        return Figure(why="no time was measured")
    return time(row.median_ns, row.low_ns, row.high_ns, row.own_doubts)


def _launched(goal: Goal, batch: int, row: Row, run: Measured) -> Figure:
    """By itself, one such pass behind the other; of records from before that was measured: of host-to-host
    passes what lies between the copies, whose spread was not kept."""
    phases, launched = row.measurement.phases, row.measurement.launched_ns
    if row.case.backend.endswith("-cpu") or not phases.keys() >= {"compute", "sync"}:
        return Figure(why="no pass was launched and waited for by itself")
    between = (phases["compute"] + phases["sync"],) * 3
    return time(*(launched if len(launched) == 3 else between), row.own_doubts)


def _end_to_end(goal: Goal, batch: int, row: Row, run: Measured) -> Figure:
    found = row.end_to_end
    if found is None:
        return Figure(why=_unflowing(row))
    if found.speedup is None:
        return Figure(why=_lacks(goal, batch, run))
    return Figure(found.speedup, found.speedup_low, found.speedup_high, found.speedup_doubts)


def _flow(goal: Goal, batch: int, row: Row, run: Measured) -> Figure:
    """The longer of the forward pass and the bus alone, over what a batch took from end to end."""
    found = row.end_to_end
    if found is None or row.median_ns is None:
        return Figure(why=_unflowing(row))
    least = max(row.median_ns, (found.bus_share or 0.0) * found.ns)
    low, high = (None if ns is None else least / ns for ns in (found.high_ns, found.low_ns))
    return Figure(least / found.ns, low, high, (*found.doubts, *row.own_doubts))


def _peak(goal: Goal, batch: int, row: Row, run: Measured) -> Figure:
    nbytes = row.peak_nbytes
    if nbytes is None:
        return Figure(why="what memory it takes is not known")
    return Figure(float(nbytes), float(nbytes), float(nbytes))


def _lost(goal: Goal, batch: int, row: Row, run: Measured) -> Figure:
    """Of the same images, of which the difference is exact."""
    own = row.measurement.accuracy
    if own is None or own.top1 is None:
        return Figure(why="how many images it answers right was not measured")
    for _, measurements in run.of(goal.need):
        rivals = (find(measurements, goal.rival, goal.backend, goal.precision, count) for count in (batch, 1))
        for other in rivals:
            found = None if other is None else other.accuracy
            if found is not None and found.top1 is not None and found.images == own.images:
                lost = found.top1 - own.top1
                return Figure(lost, lost, lost)
    return Figure(why=f"{goal.rival}: {NOT_MEASURED} on the same images")


def _elapsed(goal: Goal, batch: int, row: Row, run: Measured) -> Figure:
    return Figure(why=goal.lacks or NOT_MEASURED)


def _rate(goal: Goal, row: Row, limits: MachineLimits | None) -> Figure:
    """Of all operations of a pass, those on other units too."""
    rate = limits.rate(goal.precision) if limits is not None else 0.0
    flops = sum(layer.flops for layer in row.measurement.layers)
    if not rate or not flops or row.median_ns is None:
        return Figure(why=_unlimited(rate, "operations of its layers are", row))
    least = flops / rate * 1e9
    low, high = (None if ns is None else least / ns for ns in (row.high_ns, row.low_ns))
    return Figure(least / row.median_ns, low, high, row.own_doubts)


def _reading(goal: Goal, row: Row, limits: MachineLimits | None) -> Figure:
    rate = limits.bytes_per_s if limits is not None else 0.0
    weights = sum(layer.parameters for layer in row.measurement.layers)
    if not rate or not weights or row.median_ns is None:
        return Figure(why=_unlimited(rate, "weights of its layers are", row))
    least = weights * of(goal.precision).weight_nbytes / rate * 1e9
    low, high = (None if ns is None else ns / least for ns in (row.low_ns, row.high_ns))
    return Figure(row.median_ns / least, low, high, row.own_doubts)


def _unlimited(rate: float, lacking: str, row: Row) -> str:
    if row.median_ns is None:
        return "no time was measured"
    return f"the {lacking} not known" if rate else "the machine's limits are not known"


_OF_LIMITS = {"rate": _rate, "reading": _reading}  # goals as shares of what the machine reaches
_VALUES = {
    "lost": _lost,
    "elapsed": _elapsed,
    "speedup": _speedup,
    "narrowed": _narrowed,
    "time": _time,
    "launched": _launched,
    "end_to_end": _end_to_end,
    "flow": _flow,
    "peak": _peak,
}


def _unflowing(row: Row) -> str:
    flow = row.measurement.end_to_end
    return (flow.refused if flow is not None else "") or "not measured from end to end"


def _lacks(goal: Goal, batch: int, run: Measured) -> str:
    """Why there is nothing to compare with: of the precision that the goal is held against in the same run,
    where the reference has not the goal's own (`row_of`)."""
    refused = ""
    for _, measurements in run.of(goal.need):
        asked = (goal.than,) if goal.than else (goal.precision, compared_in(goal.precision))
        for precision in dict.fromkeys(asked):
            other = find(measurements, goal.rival or goal.model, goal.against, precision, batch)
            if other is None:
                continue
            who = goal.against if precision == goal.precision else f"{goal.against} in {precision}"
            if not other.samples_ns:
                refused = f"{who}: {other.reason or other.disposition.replace('_', ' ')}"
                if other.disposition != "unsupported":
                    return refused
            flow = other.end_to_end
            if goal.value == "end_to_end" and flow is not None and flow.refused:
                return f"{who}: {flow.refused}"
    return refused or goal.lacks or f"{goal.against}: {NOT_MEASURED}"


# ------------------------------------------------------------------------------------------------ outcomes


def _outcome(goal: Goal, wanted: float, figures: Sequence[Figure]) -> tuple[str, str]:
    """What both runs say, and why that is not "reached"; the reason of a goal that is missed follows."""
    told = [_one(goal, wanted, figure) for figure in figures]
    first, why = told[0]
    for (outcome, _), figure in zip(told[1:], figures[1:], strict=True):
        if UNKNOWN not in (first, outcome) and outcome != first:
            ends = figure.why if figure.value is None else text(goal.value, figure.value)
            return OPEN, f"the second run says otherwise: {ends}, {outcome}"
    return first, why


def _one(goal: Goal, wanted: float, figure: Figure) -> tuple[str, str]:
    if figure.value is None:
        return (MISSED if figure.failed else UNKNOWN), figure.why
    if figure.low is None or figure.high is None:
        return OPEN, "one sample alone: no interval"
    worst, best = (figure.high, figure.low) if goal.value in AT_MOST else (figure.low, figure.high)
    sign = -1 if goal.value in AT_MOST else 1
    if sign * worst >= sign * wanted:
        return REACHED, ""
    if sign * best < sign * wanted:
        return MISSED, ""
    return OPEN, f"the interval, {spread(goal.value, figure)}, straddles the goal"


def _because(
    goal: Goal, batch: int, wanted: float, figure: Figure, run: Measured, taken: Taken
) -> Iterator[str]:
    """Why a goal is missed, out of the records: by how much; whether it can be reached at all by these steps;
    which step takes most."""
    assert figure.value is not None
    factor = figure.value / wanted if goal.value in AT_MOST else wanted / figure.value
    if goal.value == "lost":
        yield f"{units.percent(figure.value - wanted, 1)} more than is allowed"
        return
    yield f"{units.times(factor)} too {'large' if goal.value == 'peak' else 'slow'}"
    if goal.value == "peak":
        return
    name, row = _row(goal, batch, run)
    if row is None:
        return
    if goal.value in FLOWING:
        yield from _flowing(row)
        return
    limits = floors.fit(taken.limits, run.environments.get(name, Environment()))
    yield from _beneath(goal, figure, row, limits, wanted)
    step = floors.longest(row.measurement, limits)
    yield step.words if step is not None else "its steps were not timed one by one"


def _beneath(
    goal: Goal, figure: Figure, row: Row, limits: MachineLimits | None, wanted: float
) -> Iterator[str]:
    """Said where not even the floor would reach it."""
    floor = None if limits is None else floors.floor_ns(row.measurement, limits)
    if not floor or not row.median_ns:
        return
    if goal.value in _OF_LIMITS:
        return
    if goal.value in ("time", "launched"):
        most, beyond = floor * 1e-9, floor * 1e-9 > wanted
    else:
        most = (figure.value or 0.0) * row.median_ns / floor
        beyond = most < wanted
    if beyond:
        told = text(goal.value, most)
        by = "" if told == units.duration(floor) else f" ({units.duration(floor)} a pass)"
        yield f"with each of these steps at its limit it would be {told}{by}"


def _flowing(row: Row) -> Iterator[str]:
    found = row.end_to_end
    if found is None or row.median_ns is None:
        return
    yield f"of a batch the forward pass alone takes {units.percent(row.median_ns / found.ns, 0)}"
    if found.bus_share is not None:
        yield f"the bus is used at {units.percent(found.bus_share, 0)}"


# --------------------------------------------------------------------------------------------------- words


def text(value: str, number: float) -> str:
    """A figure of a kind of goal as people read it."""
    if value in ("time", "launched", "elapsed"):
        return units.si(number, "s")
    if value == "peak":
        return units.nbytes(number)
    if value == "lost":
        return units.percent(number, 1)
    return units.percent(number, 0) if value in ("flow", "rate") else units.times(number)


def spread(value: str, figure: Figure) -> str:
    """The ends of its interval."""
    assert figure.low is not None
    assert figure.high is not None
    return f"{text(value, figure.low)} to {text(value, figure.high)}"


def wanted_words(goal: Goal, wanted: float) -> str:
    return f"{'≤' if goal.value in AT_MOST else '≥'} {text(goal.value, wanted)}"


def of_words(goal: Goal) -> str:
    """What a goal is of."""
    named = {
        "speedup": "forward pass",
        "narrowed": f"beside the fastest whole precision within {written(budget(goal.precision) or 0.0)}",
        "time": "time of a pass",
        "launched": "launched and waited for",
        "end_to_end": "end to end",
        "flow": "end to end, of the slower of bus and pass",
        "peak": "peak memory",
        "rate": f"share of the matrix units' rate in {goal.precision}",
        "reading": "time of a pass, of the reading of its weights",
        "lost": f"top-1 lost beside {goal.rival}",
        "elapsed": "from the command to the last verdict",
    }[goal.value]
    than = f" running {goal.rival}" if goal.rival else ""
    than += f" in {goal.than}" if goal.than else ""
    return f"{named}, beside {goal.against}{than}" if goal.against else named
