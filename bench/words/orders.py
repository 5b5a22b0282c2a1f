"""Which of two takes less time, in words: one wording for every sentence, table, page and chart.

Whether one is faster is decided elsewhere, from the paired ratio of two that were timed in turns
(bench.results.stats.Verdict). "faster", "slower" and "as fast" are used only for what is decided. What is not
decided is said to be so, with both names: a headline gives no number for it, a table gives the range in which
the truth lies, and neither has a colour of a winner.

A speed-up is the other's time divided by the own. Below 1 the reciprocal is given: "43.0× slower", because
nobody can read 0.0233×. In CSV and JSON ratios are plain numbers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, Protocol

from bench.words import units

NOT_DECIDED = "not decided"
# A verdict as one reads it.
WORDS = {"FASTER": "faster", "SLOWER": "slower", "SAME": "as fast", "UNCLEAR": NOT_DECIDED}
SHORT = WORDS | {"SAME": "same"}
# What a colour may say: "undecided" and "doubtful" are never in the colour of the faster or the slower.
Role = Literal["faster", "slower", "same", "undecided", "doubtful", ""]
_ROLES: dict[str, Role] = {"FASTER": "faster", "SLOWER": "slower", "SAME": "same", "UNCLEAR": "undecided"}
STYLES: dict[Role, str] = {  # in a terminal, as rich names them
    "faster": "green",
    "slower": "red",
    "same": "",
    "undecided": "dim",
    "doubtful": "yellow",
    "": "",
}
# An interval that is this many times as high as it is low says nothing of a speed.
WILD = 100.0
NAMED = 3  # contenders that a sentence names, of those between which nothing is decided


class Ratio(Protocol):
    """A speed-up with its 95 % interval (bench.results.stats.Interval); known: whether it has one."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def known(self) -> bool: ...


def role(verdict: str, doubts: Collection[str] = ()) -> Role:
    """What the colour of a comparison may say. doubts: what speaks against the verdict."""
    known_role = _ROLES.get(verdict, "")
    return "doubtful" if doubts and known_role in ("faster", "slower", "same") else known_role


def decided(verdict: str) -> bool:
    """Whether the verdict says which of two takes less time, or that they take the same."""
    return verdict in ("FASTER", "SLOWER", "SAME")


def above_one(speedup: float) -> float:
    """The factor by which one of the two is faster, whichever it is."""
    return speedup if speedup >= 1 or not speedup else 1 / speedup


def speed(speedup: float) -> str:
    """ "2.20×", or below 1 "43.0× slower"; for any two times, decided or not."""
    factor = units.times(above_one(speedup))
    return factor if speedup >= 1 or factor == units.times(1.0) else f"{factor} slower"


def span(low: float, high: float) -> str:
    """The ends of an interval: "2.10× to 2.30×", "42.0× to 44.0× slower", "1.41× slower to 1.04× faster"."""
    if low <= 0 or high > WILD * low:
        return "any ratio"
    one, other = speed(low), speed(high)
    if one.endswith(" slower") and other.endswith(" slower"):
        return f"{other.removesuffix(' slower')} to {one}"
    if one.endswith(" slower"):
        return f"{one} to {other} faster"
    return f"{one} to {other}"


def cell(verdict: str, speedup: float | None, low: float | None = None, high: float | None = None) -> str:
    """A comparison in a table: "2.20× faster", "43.0× slower", "same", "not decided"; followed by its
    interval, if that is given."""
    if speedup is None or verdict not in WORDS:
        return ""
    head = SHORT[verdict]
    if verdict in ("FASTER", "SLOWER"):
        head = f"{units.times(above_one(speedup))} {head}"
    if low is None or high is None:
        return head
    ends = span(low, high)
    return f"{head} ({ends.removesuffix(' slower') if verdict == 'SLOWER' else ends})"


def interval_words(verdict: str, ratio: Ratio | None, ends: bool = False) -> str:
    """The same for an Interval; ends: with the ends of the interval."""
    if ratio is None:
        return ""
    known = ends and ratio.known
    return cell(verdict, ratio.value, ratio.low if known else None, ratio.high if known else None)


def order(verdict: str, ratio: Ratio, own: str, other: str, bound: float, ends: bool = True) -> str:
    """What a sentence says of `own` beside `other`, after "is": "2.20× faster than ort-cpu (2.10× to 2.30×)",
    "as fast as ort-cpu (within 2 %)"; or "not decided between 03 tiled and ort-cpu". bound: within which two
    are the same; ends: with the ends of the interval."""
    if not decided(verdict):
        return undecided_between((own, other))
    if verdict == "SAME":
        return f"as fast as {other} (within {units.percent(bound, 0)})"
    text = f"{units.times(above_one(ratio.value))} {WORDS[verdict]} than {other}"
    if not ends or not ratio.known:
        return text
    return f"{text} ({span(ratio.low, ratio.high).removesuffix(' slower')})"


def range_words(verdict: str, speedups: Iterable[float | None]) -> str:
    """Several comparisons of the same verdict: "1.30× to 2.40× faster", "as fast", "not decided"."""
    if verdict not in ("FASTER", "SLOWER"):
        return WORDS[verdict]
    factors = sorted(above_one(speedup) for speedup in speedups if speedup)
    low, high = units.times(factors[0]), units.times(factors[-1])
    return f"{low if low == high else f'{low} to {high}'} {WORDS[verdict]}"


_LINKS = {"FASTER": "than", "SLOWER": "than", "SAME": "as", "UNCLEAR": "against"}


def range_against(verdict: str, speedups: Iterable[float | None], other: str) -> str:
    """The same with the other's name: "1.30× to 2.40× faster than ort-cpu"."""
    return f"{range_words(verdict, speedups)} {_LINKS[verdict]} {other}"


def undecided_between(names: Sequence[str]) -> str:
    """ "not decided between 03 tiled and 08 async"."""
    return f"{NOT_DECIDED} between {listed(names)}"


def listed(names: Sequence[str]) -> str:
    """ "a, b and c", or "a, b, c and 4 more"."""
    few = list(names[:NAMED])
    if more := len(names) - len(few):
        few.append(f"{more} more" if more > 1 else names[-1])
    return f"{', '.join(few[:-1])} and {few[-1]}" if len(few) > 1 else few[0]


def reason(undecided: str) -> str:
    """Why something is not decided, for a headline: without the words that it follows, and without a ratio,
    which nobody may quote. "" where nothing is left."""
    cause = undecided.removeprefix(NOT_DECIDED).lstrip(": ").rstrip(".")
    cause = re.sub(r"the interval .*? reaches", "the interval reaches", cause)
    return "" if "×" in cause else cause
