"""What speaks against trusting a figure, and how that is told wherever the figure stands.

A measurement's doubts are its warnings and, where it has one sample, that; what was divided by another's time
has that one's doubts too (`of_ratio`; bench.results.rows, bench.ladder.show.rows), but that rounds differed,
where their ratio is known all the same: what a round did to both is divided out of it. Tables set MARK behind
such a figure, charts draw its point or bar hollow and hatched, with MARK behind what is written above a bar,
and both say why in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from bench.results.records import Validity

MARK = " !"
ONE_SAMPLE = "one sample alone: nothing is known of its spread, and no verdict follows from it"
UNQUIET = "the machine was unquiet"  # how bench.measure.unrest begins to tell of rounds that differ
# Of a rate (bench.ladder.records.MachineLimits.beyond).
IMPOSSIBLE = (
    "its bytes came faster than the memory and the caches of this machine give them: its time or their count "
    "is at fault"
)
CACHED = "out of the cache: faster than the memory gives bytes, which a cache has room for"
MEANING = "! behind a figure: to be doubted, for the reason told of it or of what it is compared with"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Sampled(Protocol):
    """What was timed: a case of a comparison, a rung."""

    @property
    def samples_ns(self) -> tuple[float, ...]: ...
    @property
    def validity(self) -> Validity: ...


def own(measurement: Sampled) -> tuple[str, ...]:
    """What speaks against a measurement by itself, in sentences."""
    alone = (ONE_SAMPLE,) if len(measurement.samples_ns) == 1 else ()
    return (*measurement.validity.warnings, *alone)


def of(whose: str, doubts: Iterable[str]) -> tuple[str, ...]:
    """Another's doubts where a figure was held against it."""
    return tuple(f"{text} (of {whose})" for text in doubts)


def of_ratio(
    own: Iterable[str], whose: str, others: Iterable[str], relative: float | None, steady: float
) -> tuple[str, ...]:
    """What speaks against a ratio of times. whose, others: whom it is over, and its doubts; relative: the
    ratio's own interval as a fraction of it (None: not known), which is of a quiet machine up to `steady`."""
    told = (*own, *of(whose, others))
    if relative is None or relative > steady:
        return told
    return tuple(text for text in told if not text.startswith(UNQUIET))


def marked(text: str, doubts: Sequence[str]) -> str:
    """A figure as it is shown: with MARK behind it where there is something against it."""
    return f"{text}{MARK}" if text and doubts else text


def told(text: str, doubts: Sequence[str]) -> str:
    """A figure as it is read out: with what speaks against it."""
    return f"{text}{MARK} {'; '.join(doubts)}" if doubts else text


def alike(text: str) -> str:
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
        kinds.setdefault(alike(short), []).append(short)
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
