"""Which of two takes less time, in words: one wording for every sentence, table, page and chart.

Whether one is faster is decided elsewhere, from the paired ratio of two that were timed in turns
(bench.results.stats.Verdict); here it is only told. "faster", "slower" and "as fast" are said of what is
decided, and of nothing else. What is not decided is told as that, naming both: a headline has no number of
it, a table the range in which the truth lies, and neither has a colour that says who wins.

A speed-up is the other's time over the own. One below 1 is told by how many times the other is faster:
"43.0× slower", for nobody reads 0.0233×. Ratios are plain numbers in CSV and JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
    """What the colour of a comparison may say. doubts: what speaks against it."""
    found = _ROLES.get(verdict, "")
    return "doubtful" if doubts and found in ("faster", "slower", "same") else found


def above_one(speedup: float) -> float:
    """By what factor one of two is faster, whichever."""
    return speedup if speedup >= 1 or not speedup else 1 / speedup


def speed(speedup: float) -> str:
    """ "2.20×", or of one below 1 "43.0× slower"; of two times as they are, decided or not."""
    shown = units.times(above_one(speedup))
    return shown if speedup >= 1 or shown == units.times(1.0) else f"{shown} slower"


def span(low: float, high: float) -> str:
    """The ends of an interval: "2.10× to 2.30×", "42.0× to 44.0× slower", "1.41× slower to 1.04× faster"."""
    if low > 0 and high > WILD * low or low <= 0:
        return "anything"
    one, other = speed(low), speed(high)
    if one.endswith(" slower") and other.endswith(" slower"):
        return f"{other.removesuffix(' slower')} to {one}"
    if one.endswith(" slower"):
        return f"{one} to {other} faster"
    return f"{one} to {other}"


def cell(verdict: str, speedup: float | None, low: float | None = None, high: float | None = None) -> str:
    """A comparison in a table: "2.20× faster", "43.0× slower", "same", "not decided"; with the ends of its
    interval, where they are given, behind it."""
    if speedup is None or verdict not in WORDS:
        return ""
    head = SHORT[verdict]
    if verdict in ("FASTER", "SLOWER"):
        head = f"{units.times(above_one(speedup))} {head}"
    if low is None or high is None:
        return head
    ends = span(low, high)
    return f"{head} ({ends.removesuffix(' slower') if verdict == 'SLOWER' else ends})"


def of(verdict: str, ratio: Ratio | None, ends: bool = False) -> str:
    """The same of an Interval; ends: with the ends of its interval."""
    if ratio is None:
        return ""
    known = ends and ratio.known
    return cell(verdict, ratio.value, ratio.low if known else None, ratio.high if known else None)


def order(verdict: str, ratio: Ratio, own: str, other: str, ends: bool = True) -> str:
    """What a sentence says of `own` beside `other`, to stand behind "is": "2.20× faster than ort-cpu (2.10×
    to 2.30×)", "as fast as ort-cpu (within 2 %)"; or, without a number, "not decided between 03 tiled and
    ort-cpu", which stands for itself. ends: with the ends of the interval."""
    if verdict not in ("FASTER", "SLOWER", "SAME"):
        return between((own, other))
    if verdict == "SAME":
        return f"as fast as {other} (within 2 %)"
    told = f"{units.times(above_one(ratio.value))} {WORDS[verdict]} than {other}"
    if not ends or not ratio.known:
        return told
    return f"{told} ({span(ratio.low, ratio.high).removesuffix(' slower')})"


def between(names: Sequence[str]) -> str:
    """ "not decided between 03 tiled and 08 async"."""
    named = list(names[: NAMED + 1])
    if more := len(names) - len(named):
        named.append(f"{more} more")
    return f"{NOT_DECIDED} between {', '.join(named[:-1])} and {named[-1]}"


def reason(undecided: str) -> str:
    """Why something is not decided, for a headline: without the words that it stands behind, and without a
    ratio that nobody may quote."""
    told = undecided.removeprefix(NOT_DECIDED).lstrip(": ").rstrip(".")
    head, found, tail = told.partition("the interval ")
    if found and "×" in tail:
        words = tail.split(" ")
        last = max(place for place, word in enumerate(words) if "×" in word or word == "∞")
        tail = " ".join(words[last + 1 :])
        return f"{head}the interval {tail}"
    return told
