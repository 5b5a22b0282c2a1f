"""When contenders that are sampled together have enough, and why: the verdict is clear, the median is known,
more rounds would not help, or what they may spend is spent."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from bench.measure.instances import Growing
from bench.results import stats
from bench.results.records import StopReason
from bench.results.stats import UNQUIET_WIDTH, Outlook

if TYPE_CHECKING:
    from bench.measure.timing import Rules, Timeable, Timing

# By what a turn may be summed up where it is timed on the host's clock. What other programs add to a pass is
# one-sided, and low quantiles shed it; with a thread a core the very fastest passes are rare and of luck. So
# each host, net and number of threads has its own (docs/trust.md). Two fifths and not the median: of samples
# of two kinds, half and half, the median is now of the one and now of the other. The lowest comes first: it
# is taken where turns are of one sample each, which say nothing of which to take.
QUANTILES = (0.1, 0.25, 0.4)
COARSE = 0.005  # of a time; four steps are then the bound between two verdicts
RESERVE = 1.25  # rounds in all, of those after which a median was known


def choose_quantiles(
    timings: Mapping[str, Timing], references: Mapping[str, str], on_host: Collection[str]
) -> None:
    """Say by which quantile of their turns contenders on the host's clock are compared with their reference:
    by the one by which the reference's own turns differ least from the one before, as two that are compared
    have their turns one after the other. Nothing that is compared with it has a say. To be called once, after
    the first rounds and before any verdict is looked at."""
    for key in on_host:
        reference = timings.get(references.get(key, key if key in references.values() else ""))
        if reference is not None and _sound(reference) and not _coarse(reference):
            timings[key].quantile = min(QUANTILES, key=partial(stats.unsteadiness, reference))


def _coarse(timing: Timing) -> bool:
    """Whether a step of the clock is much of its times: the median alone is then told between two steps."""
    return stats.clock_tick(timing.samples_ns) > COARSE * timing.median_ns


def settle(
    timings: Mapping[str, Timing],
    active: Sequence[str],
    references: Mapping[str, str],
    rules: Rules,
    enough_rounds: bool,
) -> None:
    """Say of each of `active` that has enough why, after a round. Before there are enough rounds nothing but
    what is spent ends one."""
    for key in active:
        timings[key].stop_reason = _spent(timings[key], rules)
    if not enough_rounds:
        return
    known = {key for key in active if len(timings[key].samples_ns) >= rules.min_samples}
    pairs = {
        key: reference
        for key, reference in references.items()
        if key != reference and _sound(timings.get(key)) and _sound(timings.get(reference))
    }
    # Whoever is no reference first: a reference goes on for as long as anyone needs it.
    for key in sorted(known, key=lambda key: key in pairs.values()):
        own = timings[key]
        compared = [timings[other] for other, reference in pairs.items() if reference == key]
        if own.stop_reason or not all(other.stop_reason for other in compared):
            continue
        if key in pairs:
            own.stop_reason = _against(own, timings[pairs[key]])
        elif compared:
            reasons = [other.stop_reason for other in compared]
            own.stop_reason = next((reason for reason in reasons if reason != "verdict"), "verdict")
        else:
            own.stop_reason = _alone(own, rules)


def go_on_with_more(
    timings: Mapping[str, Timing],
    active: Sequence[str],
    references: Mapping[str, str],
    instances: Mapping[str, object],
) -> None:
    """A pair that stopped since more rounds would not help, as what its instances differ by is all that its
    verdict hangs on, goes on where both sides can have one more. What making one raises is its side's."""
    for key in active:
        pair = (key, references.get(key, key))
        if pair[0] == pair[1] or not all(_sound(timings.get(side)) for side in pair):
            continue
        own, reference = timings[pair[0]], timings[pair[1]]
        if own.stop_reason != "exhausted" or reference.stop_reason not in ("", "exhausted"):
            continue
        growing = [(side, of) for side in pair if isinstance(of := instances[side], Growing)]
        least = min((len(of) for _, of in growing), default=0)
        # One that had more for the sake of another pair has one already.
        if len(growing) == 2 and all(len(of) > least or _more(timings[side], of) for side, of in growing):
            own.stop_reason = reference.stop_reason = ""


def _more(own: Timing, of: Growing[Timeable]) -> bool:
    try:
        return of.more()
    except Exception as error:  # one contender's failure is its own
        own.error = error
        return False


def _spent(own: Timing, rules: Rules) -> StopReason:
    if len(own.samples_ns) >= rules.max_samples:
        return "max_samples"
    if own.spent_s + 0.5 * own.median_ns * own.runs_per_sample / 1e9 > rules.budget_s:
        return "budget"
    return ""


def _against(own: Timing, reference: Timing) -> StopReason:
    """Of one that is compared: clear, and not by times that are hardly known, or without hope of becoming so.
    Of instances too: two that happen to agree would else end it, and be wrong twice as often."""
    outlook, pair = stats.outlook(own, reference), (own, reference)
    if outlook is Outlook.CLEAR and all(stats.uncertainty(of, own.quantile) <= UNQUIET_WIDTH for of in pair):
        return "verdict"
    if reference.stop_reason:  # no round of its own has one to be paired with any more
        return reference.stop_reason
    return "exhausted" if outlook is Outlook.HOPELESS else ""


def _alone(own: Timing, rules: Rules) -> StopReason:
    """Of one that is compared with nobody: narrow enough, or without hope of becoming so.

    Who stops at a width stops where the rounds happen to differ little, and the interval then holds the truth
    less often than it says (92 of 100 at worst; Y. S. Chow and H. Robbins, "On the asymptotic theory of
    fixed-width sequential confidence intervals", 1965, have it right in the limit alone). A quarter of the
    rounds more, which were not chosen by what they showed, makes good for most of it; not where it is
    narrower than asked by far.
    """
    if not rules.width:
        return ""
    interval = stats.median_interval(own.samples_ns, own.rounds, instances=own.instances)
    taken = len(own.rounds)
    if interval.relative <= rules.width / 2:
        own.due = taken
    elif interval.relative <= rules.width and not own.due:
        own.due = math.ceil(RESERVE * taken)
    if own.due and taken >= own.due:
        return "interval"
    return "exhausted" if stats.outlook(own) is Outlook.HOPELESS else ""


def _sound(timing: Timing | None) -> bool:
    return timing is not None and timing.error is None and bool(timing.samples_ns)
