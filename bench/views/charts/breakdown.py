"""Where one host-to-host pass goes: copies in, operators, copies out, waiting, and the rest.

What happens once (records.PREPARE_PHASES) is no part of a pass, however it is spread: `stages` has it, beside
the pass over the data set.

Copies and waiting are phases of host-to-host passes; operator times come from a pass of their own, so the two
need not add up. What nothing explains is the rest and is always shown; where the operators claim more than
the pass had for them, they are scaled to it and a note says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from bench.results.records import PREPARE_PHASES, Layer, Measurement
from bench.results.rows import COMPLETED, Row
from bench.words import palette, units

# Below this, the operators' sum exceeding their pass is noise between two passes and not worth a sentence.
WORTH_SAYING = 0.05
# A first case's start-up is left out where it is more than this of what the case took once.
WORTH_LEAVING = 0.3
# Of a whole: what its parts leave of it below this is what adding and scaling them rounded away, and no time.
ROUNDING = 1e-12

_CATEGORY = {
    "Conv": "conv",
    "ConvTranspose": "conv",
    "MaxPool": "pool",
    "AveragePool": "pool",
    "GlobalAveragePool": "pool",
    "GlobalMaxPool": "pool",
    "Gemm": "fc",
    "MatMul": "fc",
}


@dataclass(frozen=True)
class Split:
    """Nanoseconds by palette.CATEGORIES key, in stacking order; they sum to total_ns, one pass.
    operators_over, phases_over: how many times too much they claimed before they were scaled to fit (1: they
    fitted)."""

    parts_ns: Mapping[str, float]
    total_ns: float
    operators_over: float = 1.0
    phases_over: float = 1.0


def category(layer: Layer) -> str:
    """A layer's category: that of the first of its operators which has one ("Conv+Relu" is conv)."""
    return category_of(layer.op_type)


def category_of(op_types: str) -> str:
    """The same of operators, with "+" or "," between them."""
    for op_type in op_types.replace("+", " ").replace(",", " ").split():
        if op_type in _CATEGORY:
            return _CATEGORY[op_type]
    return "other"


def split(measurement: Measurement) -> Split | None:
    """One pass of one batch, divided; None where no host-to-host pass was measured."""
    wall = measurement.wall_ns
    if measurement.disposition not in COMPLETED or not wall or wall <= 0:
        return None
    phases = measurement.phases
    h2d, d2h = phases.get("h2d", 0.0), phases.get("d2h", 0.0)
    compute, sync = phases.get("compute", 0.0), phases.get("sync", 0.0)
    # compute is the device's own clock and sync what launching and waiting cost beyond it; where there is no
    # such clock, the host measured how long it launched and then waited, and the operators ran during both.
    waited = sync > compute
    span = compute + sync if waited else compute
    ops = operators(measurement)
    claimed = sum(ops.values())
    operators_over = 1.0
    if not claimed or not span:
        ops = {"compute": compute}
    elif claimed > span:
        operators_over = claimed / span
        ops = {key: ns / operators_over for key, ns in ops.items()}
    if waited:
        sync = min(sync, _left(span, ops.values()))
    parts = {"h2d": h2d, **ops, "d2h": d2h, "sync": sync}
    phases_over = max(1.0, sum(parts.values()) / wall)  # a sum of medians may exceed the median of the sums
    parts = {key: ns / phases_over for key, ns in parts.items()}
    found = {**parts, "rest": _left(wall, parts.values())}
    ordered = {key: found[key] for key in palette.CATEGORIES if key == "rest" or found.get(key, 0) > 0}
    return Split(ordered, wall, operators_over, phases_over)


def _left(whole: float, parts: Iterable[float]) -> float:
    """What parts leave of a whole: nothing where it is a rounding of their sum."""
    left = whole - math.fsum(parts)
    return left if left > ROUNDING * whole else 0.0


def notes(items: Sequence[Row]) -> tuple[str, ...]:
    """A sentence for each kind of scaling that was needed, with where and by how much."""
    splits = [(row, found) for row in items if (found := split(row.measurement)) is not None]
    operator_sums = [(row, found.operators_over) for row, found in splits]
    phase_sums = [(row, found.phases_over) for row, found in splits]
    sentences = (
        ("Operator times exceed the pass they divide and are scaled down to it", operator_sums),
        ("Phases add up to more than their pass and are scaled down to it", phase_sums),
    )
    known = {row.case.batch for row in items}
    made = []
    for words, sums in sentences:
        where: dict[str, list[tuple[int, float]]] = {}
        for row, over in sums:
            if over > 1 + WORTH_SAYING:
                where.setdefault(row.contender, []).append((row.case.batch, over))
        if where:
            each = []
            for who, cases in where.items():
                batches = units.spans((batch for batch, _ in cases), known)
                each.append(f"{who} at batch {batches}, up to {max(over for _, over in cases):.2f}×")
            made.append(f"{words}: {'; '.join(each)}.")
    return tuple(made)


def operators(measurement: Measurement) -> dict[str, float]:
    """Operator times of the profile pass in ns by category (conv, pool, fc, other); {} where none were
    timed."""
    found: dict[str, float] = {}
    for layer in measurement.layers:
        if layer.time_ns:
            key = category(layer)
            found[key] = found.get(key, 0.0) + layer.time_ns
    return found


def stages(
    measurement: Measurement, start_up: Mapping[str, float] = MappingProxyType({})
) -> dict[str, float]:
    """Total execution time in ns by palette.STAGES key: what happens once, then the pass over the data
    set. start_up: what of it is of the process (`start_ups`), and of no batch size a part."""
    if measurement.disposition not in COMPLETED:
        return {}
    found = {key: ns - start_up.get(key, 0.0) for key, ns in _once(measurement).items()}
    wall = measurement.dataset_ns.get("wall", 0.0)
    compute = min(wall, measurement.dataset_ns.get("compute", 0.0))
    found["dataset_compute"], found["dataset_rest"] = compute, wall - compute
    return {key: ns for key, ns in found.items() if ns > 0}


def start_ups(items: Sequence[Row]) -> dict[str, dict[str, float]]:
    """What the first case of a contender paid beyond the one measured after it, in ns by phase, by the case's
    key: libraries, contexts and kernels that the process then had. Nothing where it is little of what that
    case took once, or where there is no second case to tell."""
    found = {}
    for who in dict.fromkeys(row.contender for row in items):
        own = [
            row.measurement
            for row in items
            if row.contender == who and row.measurement.disposition in COMPLETED
        ]
        own = sorted((m for m in own if m.started_at), key=lambda m: m.started_at)
        if len(own) < 2:
            continue
        first, second = _once(own[0]), _once(own[1])
        beyond = {key: ns - second[key] for key, ns in first.items() if ns > second[key]}
        if sum(beyond.values()) > WORTH_LEAVING * sum(first.values()):
            found[own[0].case.key] = beyond
    return found


def _once(measurement: Measurement) -> dict[str, float]:
    once = {key: measurement.phases.get(key, 0.0) for key in PREPARE_PHASES}
    return once | {"first_run": float(measurement.first_run_ns or 0)}
