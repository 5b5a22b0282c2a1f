"""Which case of one run is which of another."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

C = TypeVar("C")


def matched(
    a: Sequence[C], b: Sequence[C], keys: Sequence[Callable[[C], Hashable]]
) -> list[tuple[C | None, C | None]]:
    """Cases with the same first key belong together; of those that are left over, those whose next key one of
    each alone has, and so on. In A's order, then what only B has in its own."""
    left_a, left_b = list(range(len(a))), list(range(len(b)))
    other: dict[int, int] = {}
    for key in keys:
        ours, theirs = _by(a, left_a, key), _by(b, left_b, key)
        for name, places in ours.items():
            if len(places) == 1 and len(theirs.get(name, ())) == 1:
                other[places[0]] = theirs[name][0]
        left_a = [place for place in left_a if place not in other]
        taken = set(other.values())
        left_b = [place for place in left_b if place not in taken]
    found: list[tuple[C | None, C | None]] = [
        (case, b[other[place]] if place in other else None) for place, case in enumerate(a)
    ]
    return [*found, *((None, b[place]) for place in left_b)]


def _by(cases: Sequence[C], places: Sequence[int], key: Callable[[C], Hashable]) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = {}
    for place in places:
        found.setdefault(key(cases[place]), []).append(place)
    return found
