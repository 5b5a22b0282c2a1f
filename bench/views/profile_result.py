"""What came of a profile, in the few words of a list: how long a profiled pass takes on each backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.results.profile_records import Profile
from bench.words import units

READS = ("breakdowns",)


def words(profile: Profile, lines: Sequence[Any]) -> str:
    """ "a profiled pass: engine-cpu 1.20 ms, ort-cpu 0.61 ms", as spans where there are several batch
    sizes."""
    passes: dict[str, list[float]] = {}
    for line in lines:
        found = next((part for part in line.breakdowns if part.window == "pass"), None)
        if found is not None:
            passes.setdefault(line.case.backend, []).append(found.wall)
    told = [
        f"{backend} {' – '.join(dict.fromkeys(units.duration(pick(walls)) for pick in (min, max)))}"
        for backend, walls in passes.items()
    ]
    return f"a profiled pass: {', '.join(told)}" if told else ""
