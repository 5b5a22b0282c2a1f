"""Two texts line by line beside each other: which lines are the same, which have changed, and which words of
them. Nothing of Qt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

ALIKE = 0.5  # of two lines' characters, from which they are one line that was changed
MOST_PAIRS = 4_000  # of lines of one change that are compared with each other; above it they pair in order
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")

Span = tuple[int, int]  # first column, length


@dataclass(frozen=True)
class Pair:
    """A row: the number of its line in either text (from 0; None: that side has none), and the columns that
    differ where both have one."""

    left: int | None
    right: int | None
    changed: bool = False
    left_spans: tuple[Span, ...] = ()
    right_spans: tuple[Span, ...] = ()


def pairs(left: list[str], right: list[str]) -> list[Pair]:
    """The rows that set two lists of lines side by side."""
    found: list[Pair] = []
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            found += [Pair(a0 + i, b0 + i) for i in range(a1 - a0)]
        else:
            found += _change(left, right, range(a0, a1), range(b0, b1))
    return found


def changes(rows: list[Pair]) -> list[Span]:
    """(first row, rows) of each run of changed rows."""
    found: list[Span] = []
    for index, row in enumerate(rows):
        if not row.changed:
            continue
        if found and sum(found[-1]) == index:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((index, 1))
    return found


def word_spans(left: str, right: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The columns of two lines that differ, in whole words."""
    a, b = _WORDS.findall(left), _WORDS.findall(right)
    spans: tuple[list[Span], list[Span]] = ([], [])
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            for made, words, first, last in ((spans[0], a, a0, a1), (spans[1], b, b0, b1)):
                # A line moved in or out as a whole says so by its place.
                if last > first and not (first == 0 and last == 1 and words[0].isspace()):
                    made.append((sum(map(len, words[:first])), sum(map(len, words[first:last]))))
    return tuple(spans[0]), tuple(spans[1])


def _change(left: list[str], right: list[str], a: range, b: range) -> list[Pair]:
    """The rows of one change: lines that are alike beside each other, the others alone."""
    found: list[Pair] = []
    i, j = a.start, b.start
    for one, other in _alike(left, right, a, b):
        found += [Pair(k, None, True) for k in range(i, one)]
        found += [Pair(None, k, True) for k in range(j, other)]
        found.append(Pair(one, other, True, *word_spans(left[one], right[other])))
        i, j = one + 1, other + 1
    found += [Pair(k, None, True) for k in range(i, a.stop)]
    found += [Pair(None, k, True) for k in range(j, b.stop)]
    return found


def _alike(left: list[str], right: list[str], a: range, b: range) -> list[tuple[int, int]]:
    """Which line of `a` became which of `b`: the pairing in order that has the most in common."""
    if len(a) * len(b) > MOST_PAIRS:
        return list(zip(a, b, strict=False))
    # best[i][j]: what the lines from a[i] and b[j] on have in common at best.
    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    common = [[_likeness(left[one], right[other]) for other in b] for one in a]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], common[i][j] + best[i + 1][j + 1])
    found, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if common[i][j] and best[i][j] == common[i][j] + best[i + 1][j + 1]:
            found.append((a[i], b[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _likeness(left: str, right: str) -> float:
    """What two lines have in common, 0 (not the same line) to 1; of empty lines nothing."""
    left, right = left.strip(), right.strip()
    if not left or not right:
        return 0.0
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.quick_ratio() < ALIKE:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= ALIKE else 0.0
