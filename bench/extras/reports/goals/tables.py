"""The tables of a report of goals: each goal with what came of it; each case's times, error and share of its
floor; images a second from host to host; how far apart the two runs are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.extras.reports.figures import Figure, row_of
from bench.extras.reports.goals import again, floors, judged
from bench.extras.reports.goals.judged import Held, Measured
from bench.extras.reports.goals.presets import Goals
from bench.results import doubt
from bench.results.machine_limits import MachineLimits
from bench.results.records import MEASURED_AS, ErrorStats, Measurement
from bench.results.rows import EndToEndRow, Row, derive, title
from bench.views.diff import tables as diff_tables
from bench.views.diff.records import Change
from bench.views.sentences.limits import matrix_rates
from bench.views.tables.comparison_tables import layer_name, seconds
from bench.views.tables.table import Column, Table, as_text, pick
from bench.words import orders, units
from kernels.precision import PRECISIONS

# The fact of a tuned reference (engine.backends.ort_cuda_tuned.facts).
_TUNED_ERROR = re.compile(r"(?P<layer>.+), relative L2 error (?P<size>\d\.\d+e[+-]\d+)")
_WHOSE = re.compile(r" \(of [^()]+\)$")  # as bench.results.doubt.of_other ends
# The reference as it comes, and at its best; what a machine has not is left out.
STRICT, LENIENT = "-tuned-strict", "-tuned"
BEYOND = "faster than its steps can be: the machine reaches more than was measured of it, or steps are one"


def _figure(place: int) -> Callable[[Held], Figure]:
    return lambda row: row.figures[place] if place < len(row.figures) else Figure()


def _cell(place: int) -> Callable[[Held], str]:
    """A figure and its interval."""

    def cell(row: Held) -> str:
        found = _figure(place)(row)
        if found.value is None:
            return judged.ONCE if found.why == judged.ONCE else ""
        told = judged.text(row.goal.value, found.value)
        exact = found.low is None or found.low == found.high
        return told if exact else f"{told} ({judged.spread(row.goal.value, found)})"

    return cell


GOALS: tuple[Column[Held], ...] = (
    Column("model", lambda row: title(row.goal.model), left=True),
    Column("precision", lambda row: row.goal.precision, left=True),
    Column("batch", lambda row: row.batch),
    Column("of", lambda row: judged.of_words(row.goal), left=True, title="what"),
    Column("wanted", cell=lambda row: judged.wanted_words(row.goal, row.wanted), title="goal"),
    Column("here", cell=_cell(0), doubts=lambda row: _figure(0)(row).doubts, title="here (95 % interval)"),
    Column("again", cell=_cell(1), doubts=lambda row: _figure(1)(row).doubts, title="second run"),
    Column("outcome", lambda row: row.outcome, doubts=lambda row: row.doubts, left=True, title="reached?"),
    Column("why", lambda row: _why(row) or None, left=True, title="why"),
)


def _why(row: Held) -> str:
    """Why a goal is not reached; and why what is decided is to be doubted."""
    told = [] if row.why in ("", row.outcome) else [row.why]
    if row.doubts:
        told += [
            *["the whole interval reaches it"] * (row.outcome == judged.REACHED),
            f"! {_short(row.doubts)}",
        ]
    return "; ".join(told)


def _short(doubts: Sequence[str]) -> str:
    """Doubts in a few words; those of a reference, or of another that ours is beside, with its name."""
    by_whose: dict[str, list[str]] = {}
    for text in doubts:
        whose = _WHOSE.search(text)
        by_whose.setdefault(whose[0] if whose else "", []).append(text)
    return ", ".join(doubt.in_short(texts) + whose for whose, texts in by_whose.items())


def goals(found: Sequence[Held]) -> Table[Held]:
    return Table(GOALS, found, "Goals", key="goals")


def _each(of: Callable[[Held], Any]) -> Callable[[Sequence[Held]], str]:
    """What goals are of, each once."""
    return lambda several: "; ".join(dict.fromkeys(as_text(of(one)) for one in several))


LACKING: tuple[Column[Sequence[Held]], ...] = (
    Column("goals", len),
    Column("why", lambda several: _lacks(several[0].why), left=True),
    Column("of", _each(lambda one: judged.of_words(one.goal)), left=True, title="what"),
    Column("precision", _each(lambda one: one.goal.precision), left=True),
    Column("batch", _each(lambda one: one.batch), left=True),
    Column("models", lambda several: len({one.goal.model for one in several})),
    Column("model", _each(lambda one: title(one.goal.model)), left=True, title="which"),
)


def _lacks(why: str) -> str:
    return "no run of it was taken, or the run was cut short" if why == judged.UNKNOWN else why


def lacking(found: Sequence[Held]) -> list[Table[Sequence[Held]]]:
    """The goals that nothing was measured for, a line for each reason; none where there are no such goals."""
    by_reason: dict[str, list[Held]] = {}
    for one in found:
        by_reason.setdefault(one.why, []).append(one)
    return [Table(LACKING, list(by_reason.values()), "Not measured", key="not-measured")] if found else []


# ---------------------------------------------------------------------------------------------------- cases


@dataclass(frozen=True)
class Beside:
    """A case of ours with its references. others: by name; floor_ns: None where it is not known."""

    own: Row
    others: dict[str, Row]
    floor_ns: float | None = None

    @property
    def telling(self) -> tuple[int, int]:
        """How much it tells: the same case may be measured for more than one goal."""
        return len(self.others), sum(layer.time_ns is not None for layer in self.own.measurement.layers)


def rows(
    goals: Goals, run: Measured, limits: Sequence[MachineLimits] = (), flowing: bool = False
) -> list[Beside]:
    """A line for each model, precision and batch size that our engine was timed at, the latest of each that
    tells most. flowing: of what was measured from end to end."""
    found: dict[tuple[str, str, int], Beside] = {}
    reference = f"ort-{goals.device}"
    for name, measurements in run.by_need.items():
        known = floors.fit(limits, run.environments[name])
        for made in measurements:
            case = made.case
            if case.backend != f"engine-{goals.device}" or (flowing and made.end_to_end is None):
                continue
            at = title(case.model), case.backend, case.precision, case.batch
            beside = {end: row_of(measurements, *at, reference + end) for end in ("", STRICT, LENIENT)}
            others = {reference + end: row for end, row in beside.items() if row is not None and row.against}
            own = row_of(measurements, *at)
            assert own is not None
            line = Beside(own, others, None if known is None else floors.floor_ns(made, known))
            key = title(case.model), case.precision, case.batch
            if key not in found or line.telling >= found[key].telling:
                found[key] = line
    order = [list(dict.fromkeys(key[place] for key in found)) for place in (0, 1)]
    return [found[k] for k in sorted(found, key=lambda k: (order[0].index(k[0]), order[1].index(k[1]), k[2]))]


def _time(row: Row) -> float | None:
    return None if row.median_ns is None else row.median_ns * 1e-9


def _other(name: str, get: Callable[[Row], Any], nothing: Any = None) -> Callable[[Beside], Any]:
    """What is read from the row of ours beside a reference."""
    return lambda line: get(line.others[name]) if name in line.others else nothing


def _their_time(row: Row) -> float | None:
    """Of what it is compared with; its interval stands in that one's own run."""
    if row.against is None:
        return None
    return _time(derive(row.against, None))


def worst(made: Measurement | None) -> tuple[str, ErrorStats] | None:
    """The layer whose own error is the largest part of its bound."""
    if made is None:
        return None
    judged_ = [(layer_name(layer), layer.isolated) for layer in made.layers if layer.isolated is not None]
    if not judged_:
        return None
    return max(judged_, key=lambda item: item[1].rel_l2 / item[1].bound if item[1].bound else item[1].rel_l2)


def error_words(made: Measurement | None) -> str:
    """Of the worst layer; of a tuned reference as its sweep had it, where its layers were not looked at; else
    of the output."""
    found = worst(made)
    if found is not None:
        name, error = found
        return f"{units.exponent(error.rel_l2)} ({name}){'' if error.ok else ', beyond its bound'}"
    if made is not None and (told := made.facts.get("tuned_worst_layer")):
        parts = _TUNED_ERROR.fullmatch(told)
        if parts is None:
            return told
        size = float(parts["size"])
        of = PRECISIONS.get(made.case.precision)
        beyond = "" if of is not None and size <= of.bound else ", beyond its bound"
        return f"{units.exponent(size)} ({parts['layer']}){beyond}"
    output = made.accuracy.output if made is not None and made.accuracy is not None else None
    return "" if output is None else f"{units.exponent(output.rel_l2)} (output)"


def _of(name: str, what: str) -> tuple[Column[Beside], ...]:
    """A reference's time, ours beside it, and its error."""
    return (
        Column(
            f"{what}_s",
            _other(name, _their_time),
            seconds,
            _other(name, lambda row: doubt.own(row.against) if row.against else (), ()),
            what,
        ),
        Column(
            f"{what}_speedup",
            _other(name, lambda row: row.speedup),
            cell=_other(name, _ratio, ""),
            doubts=_other(name, lambda row: row.speedup_doubts, ()),
            title=f"speed-up over {what}",
        ),
        Column(
            f"{what}_error",
            cell=_other(name, lambda row: error_words(row.against), ""),
            title=f"error of {what}",
            left=True,
        ),
    )


def _ratio(row: Row | EndToEndRow) -> str:
    return orders.cell(row.verdict, row.speedup, row.speedup_low, row.speedup_high)


def beside(
    goals: Goals, of: Callable[[str, str], tuple[Column[Beside], ...]], *own: Column[Beside]
) -> tuple[Column[Beside], ...]:
    """The case, what is told of ours, and of each reference: as it comes, and at its best."""
    reference = f"ort-{goals.device}"
    return (
        Column("model", lambda line: line.own.title, left=True),
        Column("precision", lambda line: line.own.case.precision, left=True),
        Column("batch", lambda line: line.own.case.batch),
        *own,
        *of(reference, "default"),
        *of(reference + STRICT, "tuned within the bound"),
        *of(reference + LENIENT, "tuned"),
    )


def cases(goals: Goals, run: Measured, limits: Sequence[MachineLimits]) -> Table[Beside]:
    """Our times beside the reference's, as it comes and at its best; errors; the share of the floor."""
    columns = beside(
        goals,
        _of,
        Column(
            "result",
            lambda line: line.own.measurement.disposition.replace("_", " "),
            left=True,
        ),
        Column("ours_s", lambda line: _time(line.own), seconds, lambda line: line.own.own_doubts, "ours"),
        Column(
            "ours_error", cell=lambda line: error_words(line.own.measurement), title="our error", left=True
        ),
        Column(
            "floor_s",
            lambda line: None if line.floor_ns is None else line.floor_ns * 1e-9,
            seconds,
            title="floor",
        ),
        Column(
            "of_floor",
            _of_floor,
            lambda share: units.percent(share, 0),
            lambda line: (BEYOND,) if (_of_floor(line) or 0.0) > 1 else (),
            "share of the floor",
        ),
    )
    notes = (
        "An error is ‖y − y₆₄‖ / ‖y₆₄‖ against float64, of the layer whose own is most of its bound; of a "
        "tuned reference as it was when it was tuned; of the output where layers were not looked at.",
        *_known(run, limits),
        *_measured_once(run),
    )
    return Table(columns, rows(goals, run, limits), "Times, errors and floors", notes, key="cases")


def _measured_once(run: Measured) -> tuple[str, ...]:
    made = [made for measured in run.by_need.values() for made in measured if made.disposition == "ok"]
    tuned = sum(made.case.backend.endswith(LENIENT) for made in made)
    same = sum(MEASURED_AS in made.facts for made in made)
    if not same:
        return ()
    return (
        f"In {same:,} of {tuned:,} cases the tuned reference's fastest configuration is within the bound; it "
        "was measured once, and stands in the columns of both.",
    )


def _of_floor(line: Beside) -> float | None:
    return line.floor_ns / line.own.median_ns if line.floor_ns and line.own.median_ns else None


def _known(run: Measured, limits: Sequence[MachineLimits]) -> tuple[str, ...]:
    """What the floors are by."""
    fits = {name: floors.fit(limits, environment) for name, environment in run.environments.items()}
    used = [known for known in limits if known in fits.values()]
    if not used:
        return ("What this machine reaches was not measured, so that there is no floor.",)
    others = sum(
        found is not None and not floors.is_of(found, run.environments[name]) for name, found in fits.items()
    )
    told = (
        f"The floors of {others:,} of {len(fits):,} runs are by what another GPU of the same name was "
        "measured to reach."
    )
    return (floors.NOTE, *map(_reached, used), *((told,) if others else ()))


def _reached(limits: MachineLimits) -> str:
    rates = [f"{units.si(limits.flops_per_s, 'FLOP/s')} ({limits.multiplied_by})"]
    rates += matrix_rates(limits)
    by = f" ({limits.matrix_by})" if limits.matrix_by else ""
    memory = f"{units.si(limits.bytes_per_s, 'B/s')} ({limits.copied_by})"
    return f"Measured: {', '.join(rates)}{by}, {memory}."


# ----------------------------------------------------------------------------------------- from end to end

FLOW_NOTE = (
    "Host images to host answers by the host's clock, in turns; a reference is sent the same bytes from the "
    "same buffers. A tuned one runs in the configuration that was found fastest for its forward pass."
)


def flows(goals: Goals, run: Measured) -> list[Table[Beside]]:
    """One, or none where nothing was measured from end to end."""
    found = [line for line in rows(goals, run, flowing=True) if line.own.end_to_end is not None]
    columns = beside(
        goals,
        _flow_of,
        Column(
            "ours_images_per_s",
            lambda line: _ours(line).images_per_s,
            units.si,
            lambda line: _ours(line).doubts,
            "ours, images/s",
        ),
        Column("in_flight", lambda line: _ours(line).record.lanes, cell=_lanes, title="batches in flight"),
    )
    return [Table(columns, found, "From end to end", (FLOW_NOTE,), key="end-to-end")] if found else []


def _ours(line: Beside) -> EndToEndRow:
    assert line.own.end_to_end is not None
    return line.own.end_to_end


def _theirs(row: Row) -> EndToEndRow | None:
    """Of what ours is held against; None where not both were measured so."""
    return derive(row.against, None).end_to_end if row.against is not None and row.end_to_end else None


def _flow_of(name: str, what: str) -> tuple[Column[Beside], ...]:
    """A reference's rate, and ours beside it."""

    def theirs(get: Callable[[EndToEndRow], Any], nothing: Any = None) -> Callable[[Beside], Any]:
        return _other(name, lambda row: nothing if (its := _theirs(row)) is None else get(its), nothing)

    def ours(get: Callable[[EndToEndRow], Any], nothing: Any = None) -> Callable[[Beside], Any]:
        def of(row: Row) -> Any:
            return get(row.end_to_end) if row.end_to_end and _theirs(row) else nothing

        return _other(name, of, nothing)

    return (
        Column(
            f"{what}_images_per_s",
            theirs(lambda its: its.images_per_s),
            units.si,
            theirs(lambda its: its.doubts, ()),
            f"{what}, images/s",
        ),
        Column(
            f"{what}_speedup",
            ours(lambda own: own.speedup),
            cell=ours(_ratio, ""),
            doubts=ours(lambda own: own.speedup_doubts, ()),
            title=f"speed-up over {what}",
        ),
    )


def _lanes(line: Beside) -> str:
    """Ours, and a reference's where it had room for another number."""
    ours = _ours(line).record.lanes
    theirs = {name: its.record.lanes for name, row in line.others.items() if (its := _theirs(row))}
    other = [f"{name} {lanes}" for name, lanes in theirs.items() if lanes != ours]
    return f"{ours} ({', '.join(other)})" if other else str(ours)


# -------------------------------------------------------------------------------------------- the second run

_WITHIN: Column[Change] = Column(
    "within", lambda change: again.said(change), left=True, title=f"within {again.WORDS}?"
)


def repeats(found: Sequence[again.Repeated]) -> Table[Change]:
    """Every case of both runs."""
    columns = pick(
        diff_tables.COLUMNS, "model", "who", "batch", "by", "ratio", "ratio_low", "ratio_high", _WITHIN
    )
    columns = tuple(replace(c, title="second over first") if c.name == "ratio" else c for c in columns)
    changes = [change for each in found for change in each.changes]
    notes = [f"{each.name}: {each.why}" for each in found if each.why]
    return Table(columns, changes, "The second run", (again.sentence(found), *notes), key="again")
