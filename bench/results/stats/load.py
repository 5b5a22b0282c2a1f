"""Whether other programs kept a machine too busy for a verdict, judged by what happened during the turns."""

from __future__ import annotations

from collections.abc import Mapping

# Of all cores, that other programs and the machine below a virtual one may have used while a contender had
# its turns. Where they use more than this, no quantile of a turn is free of them: docs/trust.md, "What
# other programs add on the host's clock", says why.
MOST_SHARE = 0.6


def overloaded(load: Mapping[str, float]) -> str:
    """Why nothing is decided on such a machine, as a sentence without a full stop; "" where something may be.
    load: of bench.results.records.Telemetry."""
    cores, used = load.get("cores", 0.0), used_by_others(load)
    if not used > MOST_SHARE * cores > 0:
        return ""
    return f"not decided: other programs used {used:.1f} of {cores:.0f} cores while this was measured"


def used_by_others(load: Mapping[str, float]) -> float:
    """How many cores other programs used, and the machine below a virtual one took."""
    wall = load.get("wall_s", 0.0)
    return (load.get("others_s", 0.0) + load.get("stolen_s", 0.0)) / wall if wall else 0.0
