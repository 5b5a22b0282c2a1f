"""The known name that a mistyped name probably meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

MOST = 100  # letters: what is longer is no name that was mistyped
BEGINNING = 3  # letters of a name that may stand for all of it


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """ " (did you mean 'name'?)" with the nearest known name; `otherwise` where none is near."""
    near = nearest(word, known)
    return f" (did you mean {near!r}?)" if near else otherwise


def nearest(word: str, known: Iterable[str]) -> str:
    """The known name with the fewest edits from the word. "" where that takes more than one edit for each
    four letters, or one for each letter. A name may be unfinished (lenet6: lenet5-digits)."""
    sought = word.casefold()
    best, fewest = "", (min(max(1, len(word) // 4), len(word) - 1), True)
    for name in known if len(word) <= MOST else ():
        whole = name.casefold()
        begun = whole[: len(sought)] if len(sought) >= BEGINNING else whole
        for text, unfinished in ((whole, False), (begun, True)):
            if _at_least(sought, text) <= fewest[0]:
                cost = (_edits(sought, text), unfinished)
                if cost < fewest or (not best and cost == fewest):
                    best, fewest = name, cost
    return best


def _at_least(a: str, b: str) -> int:
    """A lower bound of the edits, by the letters that differ: quicker than `_edits`, and mostly enough."""
    here, there = Counter(a), Counter(b)
    return max((here - there).total(), (there - here).total())


def _edits(a: str, b: str) -> int:
    """The number of letters to insert, delete, change or swap with the next one to turn a into b."""
    rows = [list(range(len(b) + 1))]
    for i, letter in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            edits = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != other))
            if i > 1 and j > 1 and (letter, other) == (b[j - 2], a[i - 2]):
                edits = min(edits, rows[-2][j - 2] + 1)
            row.append(edits)
        rows.append(row)
    return rows[-1][-1]
