"""What is said of one kernel that was judged, in sentences."""

from __future__ import annotations

from bench.results import doubt
from bench.results.finding import Finding
from bench.results.stats import SAME_BOUND, Interval
from bench.views.tables.compiled_tables import WITHOUT_TIMES
from bench.views.tables.judgement_tables import Against, JudgementOutput
from bench.words import orders, units

OUTCOMES = {
    "incorrect": "wrong",
    "timed_out": "never ended",
    "unsupported": "refused",
    "out_of_memory": "out of memory",
}


def heading(judged: JudgementOutput) -> str:
    """ "90 mine on cpu, conv 8×1×28×28 …: right, 1.20 ms (1.18 ms to 1.22 ms)"."""
    on = ", ".join(filter(None, (judged.device, judged.title)))  # neither is known of what is no kernel
    return f"{judged.name}{on and f' on {on}'}: {result(judged)}"


def result(judged: JudgementOutput) -> str:
    """How it ended, with its time."""
    if not judged.right:
        return OUTCOMES.get(judged.outcome, judged.outcome)
    if judged.simulated:
        return f"right ({WITHOUT_TIMES})"
    return f"right, {_time(judged)}" if judged.time_s is not None else "right"


def lines(judged: JudgementOutput) -> list[str]:
    """All that is to be said, a sentence each."""
    said = [judged.why] if judged.why else []
    found = judged.finding
    if found is not None and found.index and not _told_in(judged.why, found):
        said.append(f"first wrong element {found.index}: {found.got} instead of {found.expected}")
    said += [beside(judged, other) for other in judged.against if judged.right]
    said += [f"{doubt.MARK.strip()} {text}" for text in dict.fromkeys((*judged.doubts, *judged.notes))]
    said += judged.costs
    if compiled := judged.compiled:
        words = (
            ("registers", "{:.0f} registers a thread".format),
            ("shared_nbytes", lambda value: f"{units.nbytes(value)} shared"),
            ("spill_nbytes", lambda value: f"{units.nbytes(value)} spilled"),
            ("threads", "{:.0f} threads a block".format),
            ("occupancy", lambda value: f"{units.percent(value, 0)} occupancy"),
        )
        said.append(", ".join(text(compiled[name]) for name, text in words if compiled.get(name)))
    return said


def _told_in(why: str, found: Finding) -> bool:
    """Whether a reason names the first wrong element, and what it should be."""
    return found.expected in why and (str(found.index) in why or found.got in why)


def beside(judged: JudgementOutput, other: Against) -> str:
    """ "1.30× faster than ONNX Runtime (CPU), 1.56 ms"."""
    if other.speedup is None:
        return f"{other.title} was not timed: {other.reason or 'there is no time of both'}"
    low, high = other.speedup_low, other.speedup_high
    known = low is not None and high is not None
    ratio = Interval(other.speedup, low or 0.0, high or 0.0, known)
    told = orders.order(other.verdict, ratio, judged.name, other.title, SAME_BOUND)
    why = orders.reason(other.undecided)
    assert other.time_s is not None
    told += f" ({'; '.join(filter(None, (why, units.duration(other.time_s * 1e9))))})"
    return doubt.read_out(told, tuple(t for t in other.doubts if t not in judged.doubts))


def _time(judged: JudgementOutput) -> str:
    assert judged.time_s is not None
    told = units.duration(judged.time_s * 1e9)
    if judged.low_s is not None and judged.high_s is not None:
        told += f" ({units.duration(judged.low_s * 1e9)} to {units.duration(judged.high_s * 1e9)})"
    return doubt.marked(told, judged.doubts)
