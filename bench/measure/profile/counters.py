"""What a GPU's hardware counted, brought to the kernels of a profile by the order of their launches, their
names and grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import msgspec

from bench.results import kernel_names as profile_names
from bench.results.events import Counters, Events


@dataclass(frozen=True)
class Counted:
    """A kernel in a pass in which the hardware counted: its name as compiled where the counting program says
    that, its grid (None where it says none)."""

    name: str
    grid: tuple[int, ...] | None
    counters: Counters


def attached(events: Events, counted: Sequence[Counted]) -> tuple[Events, str, str]:
    """The events with counters at the kernels of each profiled pass; how many of a pass have them, in words;
    and a note where not all do. Kernels are matched in the order of their launches; one that the other side
    does not have is left out, and those behind it are found again."""
    called = {call.correlation: call.start_ns for call in events.calls if call.correlation}
    passes: dict[int, list[int]] = {}
    for index, activity in enumerate(events.activities):
        if activity.kind == "kernel" and activity.run is not None:
            passes.setdefault(activity.run, []).append(index)
    theirs = [_key(kernel.name, kernel.grid) for kernel in counted]
    found = list(events.activities)
    shares = []
    for places in passes.values():
        places.sort(key=lambda i: (called.get(found[i].correlation, found[i].start_ns), found[i].start_ns))
        ours = [_key(found[i].name, found[i].grid) for i in places]
        matched = 0
        for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
            for step in range(block.size):
                place, kernel = places[block.a + step], counted[block.b + step]
                found[place] = msgspec.structs.replace(found[place], counters=kernel.counters)
            matched += block.size
        shares.append((matched, len(places)))
    matched, of = min(shares, key=lambda share: share[0] / share[1], default=(0, 0))
    words = f"{matched} of the {of} kernels of a pass, {len(counted)} seen by ncu"
    note = (
        f"{of - matched} of the {of} kernels of a pass have no counters: with `ncu` watching, others ran"
        if matched < of
        else ""
    )
    return msgspec.structs.replace(events, activities=tuple(found)), words, note


def _key(name: str, grid: tuple[int, ...] | None) -> tuple[str, tuple[int, ...] | None]:
    """What both sides say of a kernel alike: ncu and CUPTI may write templates in ways of their own."""
    return profile_names.short(name), tuple(grid) if grid else None
