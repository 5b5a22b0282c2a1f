"""Reasons to distrust a figure, and how they are shown wherever the figure is shown.

The doubts of a measurement are its warnings, and that it has only one sample. A ratio also has the doubts of
the time by which it was divided (`of`; `rows`, `ladder_rows`). A time that varies is not
doubtful: its interval shows how well it is known, and so does the interval of a ratio, whose verdict is
decided or not (`Row.undecided`). Tables put MARK behind such a figure. Charts draw its point or bar hollow
and hatched, with MARK above a bar. Both say why in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from bench.results.records import TimedResult

MARK = " !"
ONE_SAMPLE = "one sample alone: nothing is known of its spread, and no verdict follows from it"
# How a warning begins that tells of one sample and why there are no more: the budget.
ONE_FITS, NO_TIME = "only 1 sample fits the budget", "the budget has no time"
UNQUIET = "the machine was unquiet"  # how bench.measure.unrest begins to tell of rounds that differ
STEADY = 0.05  # an interval of a quiet machine is narrower than this
UNSTEADY = (UNQUIET, "instances differ")  # the same of what instances differ by
# Of a rate (bench.results.machine_limits.MachineLimits.beyond).
IMPOSSIBLE = (
    "its bytes came faster than the memory and the caches of this machine give them: its time or their count "
    "is at fault"
)
CACHED = "out of the cache: faster than the memory gives bytes, which a cache has room for"
MEANING = "! behind a figure: to be doubted, for the reason told of it or of what it is compared with"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def own(measurement: TimedResult[Any]) -> tuple[str, ...]:
    """What speaks against a measurement by itself, in sentences. That its time is unsteady does not: the
    time stands beside its interval, and a verdict beside its own."""
    told = steady(measurement.validity.warnings)
    if any(text.startswith(ONE_FITS) for text in told):  # one reason, told once
        return tuple(text for text in told if NO_TIME not in text)
    return (*told, ONE_SAMPLE) if len(measurement.samples_ns) == 1 else told


def steady(warnings: Iterable[str]) -> tuple[str, ...]:
    """Warnings but for those that a time is unsteady."""
    return tuple(text for text in warnings if not text.startswith(UNSTEADY))


def unsteady(measurement: TimedResult[Any] | None) -> tuple[str, ...]:
    """Why its time is unsteady, in sentences; () where it is not."""
    if measurement is None:
        return ()
    return tuple(text for text in measurement.validity.warnings if text.startswith(UNSTEADY))


def ratio_unsteady(
    own: TimedResult[Any], other: TimedResult[Any] | None, relative: float | None
) -> tuple[str, ...]:
    """Why a ratio of two times is: why either time is; () where the ratio's own interval is narrow all the
    same. relative: that interval, as a fraction of the ratio (None: not known)."""
    if relative is not None and relative <= STEADY:
        return ()
    return (*unsteady(own), *unsteady(other))


def of_other(whose: str, doubts: Iterable[str]) -> tuple[str, ...]:
    """Another's doubts where a figure was held against it."""
    return tuple(f"{text} (of {whose})" for text in doubts)


def marked(text: str, doubts: Sequence[str]) -> str:
    """A figure as it is shown: with MARK behind it where there is something against it."""
    return f"{text}{MARK}" if text and doubts else text


def read_out(text: str, doubts: Sequence[str]) -> str:
    """A figure as it is read out: with what speaks against it."""
    return f"{text}{MARK} {'; '.join(doubts)}" if doubts else text


def without_figures(text: str) -> str:
    """The same for sentences that differ in their figures alone."""
    return _NUMBER.sub("#", text)


def worst(texts: Iterable[str]) -> str:
    """Of sentences that are alike, the one with the largest figures."""
    return max(texts, key=_figures)


def in_short(doubts: Iterable[str]) -> str:
    """Many doubts in the few words that a headline has room for: each kind once, up to its first colon, with
    the span of its figures."""
    kinds: dict[str, list[str]] = {}
    for text in doubts:
        short = re.split(r"[:;(]", text, maxsplit=1)[0].strip()
        kinds.setdefault(without_figures(short), []).append(short)
    return ", ".join(spanned(texts) for texts in kinds.values())


def spanned(texts: Sequence[str]) -> str:
    """Of sentences that are alike, one with the span of their figures: of "only 1 samples" and "only 9
    samples" "only 1–9 samples"."""
    low, high = (_NUMBER.findall(pick(texts, key=_figures)) for pick in (min, max))
    words = _NUMBER.split(texts[0])
    spans = [a if a == b else f"{a}–{b}" for a, b in zip(low, high, strict=True)]
    return "".join(word + span for word, span in zip(words, [*spans, ""], strict=True))


def _figures(text: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(text)]
